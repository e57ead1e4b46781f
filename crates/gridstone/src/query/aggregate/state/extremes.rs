//! The least and the greatest values. NaN and NaT win, as in NumPy.

use super::super::words::{NanPlace, column_of, words_into};
use super::input::{Input, Known, Rows, State, for_each_valid, strange};
use super::payload::Payload;
use crate::base::{AlignedBuf, Error, Result};
use crate::schema::{Datatype, Sorting};
use crate::tile::{Column, ColumnView};

#[derive(Debug)]
enum Best {
    /// Words of values, where there are some.
    Words(Vec<u64>, Vec<bool>),
    /// Bytes of values.
    Bytes(Payload),
}

/// The least, or the greatest, value per group.
#[derive(Debug)]
pub(in crate::query) struct Extremes {
    best: Best,
    datatype: Datatype,
    greatest: bool,
}

impl Extremes {
    /// A state over values of a type.
    ///
    /// # Errors
    /// Input: values of this type have no order.
    pub(in crate::query) fn new(datatype: Datatype, greatest: bool, text: &str) -> Result<Self> {
        let best = match datatype.sorting() {
            Sorting::Keys => Best::Words(Vec::new(), Vec::new()),
            Sorting::Bytes => Best::Bytes(Payload::new(datatype)),
            Sorting::None => return Err(Error::input(format!("{text}: values of {datatype} have no order"))),
        };
        Ok(Self { best, datatype, greatest })
    }

    fn nan(&self) -> NanPlace {
        if self.greatest { NanPlace::Last } else { NanPlace::First }
    }

    fn take(&mut self, rows: Rows<'_>, view: ColumnView<'_>) {
        let (greatest, nan) = (self.greatest, self.nan());
        match &mut self.best {
            Best::Words(best, known) => {
                let mut words = Vec::with_capacity(view.len());
                words_into(view, nan, &mut words);
                if let (Rows::One(group, _), None) = (rows, view.validity()) {
                    let run = if greatest { words.iter().max() } else { words.iter().min() };
                    let slots = best.get_mut(group as usize).zip(known.get_mut(group as usize));
                    if let (Some(run), Some((slot, known))) = (run, slots) {
                        *slot = if !*known || (*run > *slot) == greatest { *run } else { *slot };
                        *known = true;
                    }
                    return;
                }
                for_each_valid(rows, view.validity(), |row, group| {
                    let slots = best.get_mut(group).zip(known.get_mut(group));
                    if let (Some(word), Some((slot, known))) = (words.get(row), slots)
                        && (!*known || (*word > *slot) == greatest)
                    {
                        *slot = *word;
                        *known = true;
                    }
                });
            }
            Best::Bytes(best) => for_each_valid(rows, view.validity(), |row, group| {
                let value = view.value(row);
                if best.get(group).is_none_or(|held| if greatest { value > held } else { value < held }) {
                    best.set(group, value);
                }
            }),
        }
    }

    fn column(&self, groups: &[u32]) -> Result<Column> {
        match &self.best {
            Best::Words(best, known) => {
                let word = |group: &u32| {
                    let known = known.get(*group as usize).copied().unwrap_or(false);
                    best.get(*group as usize).copied().filter(|_| known)
                };
                column_of(self.datatype, self.nan(), groups.iter().map(word))
            }
            Best::Bytes(best) => best.column(groups),
        }
    }
}

/// A column of one value.
fn single(datatype: Datatype, value: &[u8]) -> Result<Column> {
    let offsets = datatype.is_var().then(|| vec![0, value.len() as u64]);
    Column::new(datatype, AlignedBuf::from_slice(value), offsets, None)
}

impl State for Extremes {
    fn fresh(&self) -> Box<dyn State> {
        let best = match &self.best {
            Best::Words(..) => Best::Words(Vec::new(), Vec::new()),
            Best::Bytes(_) => Best::Bytes(Payload::new(self.datatype)),
        };
        Box::new(Self { best, ..*self })
    }

    fn grow(&mut self, groups: usize) {
        match &mut self.best {
            Best::Words(best, known) => {
                best.resize(groups, 0);
                known.resize(groups, false);
            }
            Best::Bytes(best) => best.grow(groups),
        }
    }

    fn update(&mut self, rows: Rows<'_>, input: &Input<'_>) -> Result<()> {
        self.take(rows, input.values()?);
        Ok(())
    }

    fn absorb(&mut self, groups: &[u32], fields: &[ColumnView<'_>]) -> Result<()> {
        let view = fields.first().filter(|view| view.datatype() == self.datatype).ok_or_else(strange)?;
        self.take(Rows::Each(groups), *view);
        Ok(())
    }

    fn can_know(&self) -> bool {
        true
    }

    fn known(&self, _rows: u64, known: Option<&Known>) -> Result<Option<Vec<Column>>> {
        let Some(known) = known else { return Ok(None) };
        let value = match &known.ends {
            // NaN and NaT win, whatever the ends are.
            _ if known.nans > 0 => column_of(self.datatype, self.nan(), std::iter::once(Some(self.nan().word())))?,
            Some((least, greatest)) => single(self.datatype, if self.greatest { greatest } else { least })?,
            None if known.valid() == 0 && self.datatype.sorting() == Sorting::Keys => {
                column_of(self.datatype, self.nan(), std::iter::once(None))?
            }
            None => return Ok(None),
        };
        Ok(Some(vec![value]))
    }

    fn kinds(&self) -> Vec<(String, Datatype)> {
        vec![("value".to_owned(), self.datatype)]
    }

    fn fields(&self, groups: &[u32]) -> Result<Vec<Column>> {
        Ok(vec![self.column(groups)?])
    }

    fn finish(&self, groups: &[u32]) -> Result<Column> {
        self.column(groups)
    }

    fn size_bytes(&self) -> u64 {
        match &self.best {
            Best::Words(best, _) => (best.capacity() * 9) as u64,
            Best::Bytes(best) => best.size_bytes(),
        }
    }
}
