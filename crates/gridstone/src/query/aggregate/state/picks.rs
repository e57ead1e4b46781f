//! A row per group that is picked by a rank: `first`, `last`, `any_value`, `arg_max` and `arg_min`.
//!
//! The order of the array is that of the coordinates, row by row, whatever the order of its cells on disk. Cells at one place
//! keep the order in which they are read. Among rows of one rank the earliest is picked. Rows whose argument is null, or
//! whose rank is, are left out. NaN and NaT rank as they do in `max` and `min`.

use super::super::words::{NanPlace, column_of, words_into};
use super::input::{Input, Positions, Rows, State, field, for_each_valid, longs_field, strange};
use super::payload::Payload;
use crate::base::{Error, Result};
use crate::schema::{Datatype, Sorting};
use crate::tile::{Column, ColumnView};
use std::cmp::Ordering;

/// What rows are ranked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) enum Rank {
    /// Nothing: the row that comes first.
    Any,
    /// Their places in the order of the array; whether the last one is picked.
    Place {
        /// Whether the last row is picked.
        last: bool,
    },
    /// Values of a type, the second argument.
    By {
        /// The type of the values.
        datatype: Datatype,
        /// Whether the greatest is picked.
        greatest: bool,
    },
}

/// A picked row per group.
#[derive(Debug)]
pub(in crate::query) struct Picks {
    rank: Rank,
    payload: Payload,
    /// The ranks of the picked rows: words, or bytes.
    words: Vec<u64>,
    bytes: Option<Payload>,
    /// Their places: a word per axis, and a number.
    places: Vec<u64>,
    place_words: usize,
}

/// One row that may be picked.
struct Candidate<'a> {
    word: u64,
    bytes: &'a [u8],
    place: &'a [u64],
}

impl Picks {
    /// A state over values of a type, in an array of so many axes.
    ///
    /// # Errors
    /// Input: the type of the rank has no order.
    pub(in crate::query) fn new(datatype: Datatype, rank: Rank, ndim: usize, text: &str) -> Result<Self> {
        let bytes = match rank {
            Rank::By { datatype, .. } => match datatype.sorting() {
                Sorting::None => return Err(Error::input(format!("{text}: values of {datatype} have no order"))),
                Sorting::Bytes => Some(Payload::new(datatype)),
                Sorting::Keys => None,
            },
            Rank::Any | Rank::Place { .. } => None,
        };
        let place_words = if rank == Rank::Any { 0 } else { ndim + 1 };
        Ok(Self { rank, payload: Payload::new(datatype), words: Vec::new(), bytes, places: Vec::new(), place_words })
    }

    fn nan(&self) -> NanPlace {
        if matches!(self.rank, Rank::By { greatest: true, .. }) { NanPlace::Last } else { NanPlace::First }
    }

    fn place(&self, group: usize) -> &[u64] {
        self.places.get(group * self.place_words..(group + 1) * self.place_words).unwrap_or_default()
    }

    /// Whether a row takes the place of the one that is picked.
    fn wins(&self, group: usize, row: &Candidate<'_>) -> bool {
        if !self.payload.is_known(group) {
            return true;
        }
        let place = row.place.cmp(self.place(group));
        match self.rank {
            Rank::Any => false,
            Rank::Place { last } => place == if last { Ordering::Greater } else { Ordering::Less },
            Rank::By { greatest, .. } => {
                let rank = match &self.bytes {
                    Some(bytes) => row.bytes.cmp(bytes.get(group).unwrap_or_default()),
                    None => row.word.cmp(&self.words.get(group).copied().unwrap_or(0)),
                };
                let better = if greatest { rank.reverse() } else { rank };
                better.then(place) == Ordering::Less
            }
        }
    }

    fn put(&mut self, group: usize, value: &[u8], row: &Candidate<'_>) {
        self.payload.set(group, value);
        self.words.get_mut(group).into_iter().for_each(|word| *word = row.word);
        if let Some(bytes) = &mut self.bytes {
            bytes.set(group, row.bytes);
        }
        let width = self.place_words;
        if let Some(slot) = self.places.get_mut(group * width..(group + 1) * width)
            && slot.len() == row.place.len()
        {
            slot.copy_from_slice(row.place);
        }
    }

    fn take(
        &mut self,
        rows: Rows<'_>,
        values: ColumnView<'_>,
        by: Option<ColumnView<'_>>,
        place_of: impl Fn(usize, &mut Vec<u64>),
    ) {
        let mut words = Vec::new();
        if let Some(by) = by.filter(|_| self.bytes.is_none()) {
            words_into(by, self.nan(), &mut words);
        }
        let both: Option<Vec<u8>> = match (values.validity(), by.and_then(|by| by.validity())) {
            (Some(a), Some(b)) => Some(a.iter().zip(b).map(|(a, b)| a & b).collect()),
            (a, b) => a.or(b).map(<[u8]>::to_vec),
        };
        let mut place = Vec::with_capacity(self.place_words);
        for_each_valid(rows, both.as_deref(), |row, group| {
            place.clear();
            if self.place_words > 0 {
                place_of(row, &mut place);
            }
            let bytes = by.filter(|_| self.bytes.is_some()).map(|by| by.value(row)).unwrap_or_default();
            let candidate = Candidate { word: words.get(row).copied().unwrap_or(0), bytes, place: &place };
            if self.wins(group, &candidate) {
                self.put(group, values.value(row), &candidate);
            }
        });
    }
}

impl State for Picks {
    fn fresh(&self) -> Box<dyn State> {
        let bytes = self.bytes.as_ref().map(|bytes| Payload::new(bytes.datatype()));
        let payload = Payload::new(self.payload.datatype());
        Box::new(Self { payload, words: Vec::new(), bytes, places: Vec::new(), ..*self })
    }

    fn grow(&mut self, groups: usize) {
        self.payload.grow(groups);
        self.bytes.iter_mut().for_each(|bytes| bytes.grow(groups));
        if matches!(self.rank, Rank::By { .. }) {
            self.words.resize(groups, 0);
        }
        self.places.resize(groups * self.place_words, 0);
    }

    fn update(&mut self, rows: Rows<'_>, input: &Input<'_>) -> Result<()> {
        let Positions { axes, first } = input.positions;
        let by = input.args.get(1).copied().filter(|_| matches!(self.rank, Rank::By { .. }));
        self.take(rows, input.values()?, by, |row, place| {
            place.extend(axes.iter().map(|keys| keys.get(row).copied().unwrap_or(0)));
            place.push(first + row as u64);
        });
        Ok(())
    }

    fn absorb(&mut self, groups: &[u32], fields: &[ColumnView<'_>]) -> Result<()> {
        let value = *fields.first().ok_or_else(strange)?;
        let ranked = matches!(self.rank, Rank::By { .. });
        let by = fields.get(1).copied().filter(|_| ranked);
        let from = 1 + usize::from(ranked);
        let places = (0..self.place_words).map(|word| field(fields, from + word)).collect::<Result<Vec<_>>>()?;
        if value.datatype() != self.payload.datatype() || (ranked && by.is_none()) {
            return Err(strange());
        }
        self.take(Rows::Each(groups), value, by, |row, place| {
            place.extend(places.iter().map(|words| words.get(row).copied().unwrap_or(0)));
        });
        Ok(())
    }

    fn kinds(&self) -> Vec<(String, Datatype)> {
        let mut kinds = vec![("value".to_owned(), self.payload.datatype())];
        if let Rank::By { datatype, .. } = self.rank {
            kinds.push(("rank".to_owned(), datatype));
        }
        kinds.extend((0..self.place_words).map(|word| (format!("place{word}"), Datatype::UInt64)));
        kinds
    }

    fn fields(&self, groups: &[u32]) -> Result<Vec<Column>> {
        let mut fields = vec![self.payload.column(groups)?];
        if let Rank::By { datatype, .. } = self.rank {
            let word = |group: &u32| {
                self.words.get(*group as usize).copied().filter(|_| self.payload.is_known(*group as usize))
            };
            fields.push(match &self.bytes {
                Some(bytes) => bytes.column(groups)?,
                None => column_of(datatype, self.nan(), groups.iter().map(word))?,
            });
        }
        for word in 0..self.place_words {
            let of = |group: &u32| self.place(*group as usize).get(word).copied().unwrap_or(0);
            fields.push(longs_field(groups.iter().map(of))?);
        }
        Ok(fields)
    }

    fn finish(&self, groups: &[u32]) -> Result<Column> {
        self.payload.column(groups)
    }

    fn size_bytes(&self) -> u64 {
        let bytes = self.bytes.as_ref().map_or(0, Payload::size_bytes);
        self.payload.size_bytes() + bytes + ((self.words.capacity() + self.places.capacity()) * 8) as u64
    }
}
