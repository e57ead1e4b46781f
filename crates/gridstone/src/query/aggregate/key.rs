//! A key of groups: values become words, in bins those of the low edges.
//!
//! A bin of width w has the values v with floor(v / w) = its number, computed in float64 for floats and exactly for integers. Its
//! low edge, which is the key in results, is the number times w. NaN and NaT are a group each, and so is null.

use super::words::{NanPlace, words_into};
use crate::base::{Error, Result};
use crate::schema::calendar::date_text;
use crate::schema::{Datatype, Sorting, key};
use crate::tile::ColumnView;

/// How values become keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bin {
    /// Each value is one.
    None,
    /// Integers in bins of a whole width.
    Whole(u64),
    /// Numbers in bins of any width.
    Float(f64),
}

/// One key of the groups.
#[derive(Debug, Clone)]
pub(super) struct GroupKey {
    pub(super) name: String,
    /// The type of the values that are given.
    pub(super) datatype: Datatype,
    pub(super) nullable: bool,
    pub(super) bin: Bin,
}

impl GroupKey {
    /// A key of values of a type.
    ///
    /// # Errors
    /// Input: values of this type are no keys, or have no bins.
    pub(super) fn check(&self) -> Result<()> {
        let name = &self.name;
        match (self.datatype.sorting(), self.bin) {
            (Sorting::None, _) => {
                Err(Error::input(format!("values of {} are no keys of groups: {name:?}", self.datatype)))
            }
            (Sorting::Bytes, Bin::None) => Ok(()),
            (Sorting::Bytes, _) => Err(Error::input(format!("{name:?} is {}, which has no bins", self.datatype))),
            (Sorting::Keys, Bin::Whole(0)) => Err(Error::input(format!("{name:?}: the width of a bin is more than 0"))),
            (Sorting::Keys, Bin::Float(_)) if self.datatype.is_time() => Err(Error::input(format!(
                "{name:?} is {}, which has bins of whole numbers of its unit, or of periods such as '1h'",
                self.datatype
            ))),
            (Sorting::Keys, Bin::Float(width)) if !(width > 0.0 && width.is_finite()) => {
                Err(Error::input(format!("{name:?}: the width of a bin is a finite number more than 0, not {width}")))
            }
            (Sorting::Keys, _) => Ok(()),
        }
    }

    /// The type of the key in results.
    pub(super) fn result(&self) -> Datatype {
        match self.bin {
            Bin::None => self.datatype,
            Bin::Float(_) => Datatype::Float64,
            Bin::Whole(_) if self.datatype.is_time() => self.datatype,
            Bin::Whole(_) if self.datatype.element().kind == crate::base::ElementKind::Unsigned => Datatype::UInt64,
            Bin::Whole(_) => Datatype::Int64,
        }
    }

    /// The same whose values are keys of groups, as results have them.
    pub(super) fn of_edges(&self) -> Self {
        Self { datatype: self.result(), bin: Bin::None, ..self.clone() }
    }

    pub(super) fn is_text(&self) -> bool {
        self.datatype.sorting() == Sorting::Bytes
    }

    /// The words of the keys of values; of texts none.
    pub(super) fn words(&self, view: ColumnView<'_>) -> Result<Vec<u64>> {
        let mut words = self.words_of_values(view);
        match self.bin {
            Bin::None => {}
            Bin::Whole(width) => self.whole_bins(width, view, &mut words)?,
            Bin::Float(width) => {
                for word in &mut words {
                    let edge = bin_number(self.number(*word), width) * width;
                    *word = if edge.is_nan() { u64::MAX } else { key::from_float(edge) };
                }
            }
        }
        Ok(words)
    }

    /// The words of the values themselves.
    pub(super) fn words_of_values(&self, view: ColumnView<'_>) -> Vec<u64> {
        let mut words = Vec::with_capacity(view.len());
        words_into(view, NanPlace::Last, &mut words);
        words
    }

    /// Words of values become those of the low edges of their bins.
    fn whole_bins(&self, width: u64, view: ColumnView<'_>, words: &mut [u64]) -> Result<()> {
        // Neighbours are often of one bin, and a division takes long.
        let mut last: Option<(u64, u64, u64)> = None;
        for (row, word) in words.iter_mut().enumerate() {
            if NanPlace::Last.is_nan(self.datatype, *word) || !view.is_valid(row) {
                continue;
            }
            if let Some((low, high, edge)) = last
                && (low..=high).contains(word)
            {
                *word = edge;
                continue;
            }
            let edge = self.edge(*word, width)?;
            last = Some((edge, edge.saturating_add(width - 1), edge));
            *word = edge;
        }
        Ok(())
    }

    /// The word of the low edge of the bin of whole numbers that the value of a word lies in.
    pub(super) fn edge(&self, word: u64, width: u64) -> Result<u64> {
        if width == 1 {
            return Ok(word);
        }
        if self.result() == Datatype::UInt64 {
            return Ok(word - word % width);
        }
        let shift = u64::from(self.datatype.is_time());
        let value = i128::from(key::to_signed(word.wrapping_add(shift)));
        let edge = value.div_euclid(i128::from(width)) * i128::from(width);
        let edge = i64::try_from(edge).map_err(|_| {
            let shown = match (self.datatype, i64::try_from(value)) {
                (Datatype::Datetime(step), Ok(ticks)) => date_text(ticks, step),
                _ => value.to_string(),
            };
            Error::input(format!(
                "{:?}: the bin of {shown} begins before what 64 bits hold; give narrower bins",
                self.name
            ))
        })?;
        Ok(key::from_signed(edge).wrapping_sub(shift))
    }

    /// The number that the word of a value stands for.
    pub(super) fn number(&self, word: u64) -> f64 {
        match self.datatype {
            datatype if datatype.is_float() => key::to_float(word),
            datatype if datatype.element().kind == crate::base::ElementKind::Unsigned => word as f64,
            _ => key::to_signed(word) as f64,
        }
    }
}

/// The number of the bin that a value lies in.
pub(super) fn bin_number(value: f64, width: f64) -> f64 {
    (value / width).floor()
}
