//! Whether some values, or all, are not zero. NaN is not zero.

use super::input::{Input, Rows, State, field, for_each_valid, longs_field, pick};
use crate::base::{AlignedBuf, Error, Result};
use crate::schema::{Datatype, Sorting};
use crate::tile::{Column, ColumnView, Numbers};

/// How many values there are per group, and how many of them are not zero.
#[derive(Debug)]
pub(in crate::query) struct Truths {
    counts: Vec<u64>,
    set: Vec<u64>,
    /// Whether all have to be, rather than one.
    all: bool,
}

impl Truths {
    /// A state over values of a type.
    ///
    /// # Errors
    /// Input: values of this type are no numbers.
    pub(in crate::query) fn new(datatype: Datatype, all: bool, text: &str) -> Result<Self> {
        if datatype.sorting() != Sorting::Keys || matches!(datatype, Datatype::Datetime(_)) {
            return Err(Error::input(format!("{text}: values of {datatype} are neither true nor false")));
        }
        Ok(Self { counts: Vec::new(), set: Vec::new(), all })
    }
}

impl State for Truths {
    fn fresh(&self) -> Box<dyn State> {
        Box::new(Self { counts: Vec::new(), set: Vec::new(), all: self.all })
    }

    fn grow(&mut self, groups: usize) {
        self.counts.resize(groups, 0);
        self.set.resize(groups, 0);
    }

    fn update(&mut self, rows: Rows<'_>, input: &Input<'_>) -> Result<()> {
        let view = input.values()?;
        let set: Vec<bool> = match Numbers::of(view) {
            Numbers::Signed(values) => values.iter().map(|value| *value != 0).collect(),
            Numbers::Unsigned(values) => values.iter().map(|value| *value != 0).collect(),
            Numbers::Float(values) => values.iter().map(|value| *value != 0.0).collect(),
        };
        for_each_valid(rows, view.validity(), |row, group| {
            if let (Some(count), Some(held)) = (self.counts.get_mut(group), self.set.get_mut(group)) {
                *count += 1;
                *held += u64::from(set.get(row) == Some(&true));
            }
        });
        Ok(())
    }

    fn absorb(&mut self, groups: &[u32], fields: &[ColumnView<'_>]) -> Result<()> {
        for ((group, count), set) in groups.iter().zip(field(fields, 0)?).zip(field(fields, 1)?) {
            let slots = self.counts.get_mut(*group as usize).zip(self.set.get_mut(*group as usize));
            if let Some((counts, held)) = slots {
                *counts += count;
                *held += set;
            }
        }
        Ok(())
    }

    fn kinds(&self) -> Vec<(String, Datatype)> {
        ["count", "set"].map(|name| (name.to_owned(), Datatype::UInt64)).to_vec()
    }

    fn fields(&self, groups: &[u32]) -> Result<Vec<Column>> {
        Ok(vec![longs_field(pick(&self.counts, groups))?, longs_field(pick(&self.set, groups))?])
    }

    fn finish(&self, groups: &[u32]) -> Result<Column> {
        let (mut values, mut valid) = (Vec::with_capacity(groups.len()), Vec::with_capacity(groups.len()));
        for (count, set) in pick(&self.counts, groups).zip(pick(&self.set, groups)) {
            values.push(u8::from(if self.all { set == count && count > 0 } else { set > 0 }));
            valid.push(u8::from(count > 0));
        }
        let validity = valid.contains(&0).then_some(valid);
        Column::new(Datatype::Bool, AlignedBuf::from_slice(&values), None, validity)
    }

    fn size_bytes(&self) -> u64 {
        ((self.counts.capacity() + self.set.capacity()) * 8) as u64
    }
}
