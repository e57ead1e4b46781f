//! Counts of rows, or of those that have a value.

use super::input::{Input, Known, Rows, State, field, for_each_valid, longs_field, pick, valid_count, words_column};
use crate::base::{Error, Result};
use crate::schema::Datatype;
use crate::tile::{Column, ColumnView};

/// A count per group.
#[derive(Debug)]
pub(in crate::query) struct Counts {
    counts: Vec<u64>,
    /// Whether nulls count too.
    all: bool,
}

impl Counts {
    /// A count of all rows, or of those whose argument has a value.
    pub(in crate::query) fn new(all: bool) -> Self {
        Self { counts: Vec::new(), all }
    }
}

impl State for Counts {
    fn fresh(&self) -> Box<dyn State> {
        Box::new(Self::new(self.all))
    }

    fn grow(&mut self, groups: usize) {
        self.counts.resize(groups, 0);
    }

    fn update(&mut self, rows: Rows<'_>, input: &Input<'_>) -> Result<()> {
        let validity = if self.all { None } else { input.values()?.validity() };
        if let Rows::One(group, count) = rows {
            let more = valid_count(count, validity);
            self.counts.get_mut(group as usize).into_iter().for_each(|total| *total += more);
            return Ok(());
        }
        for_each_valid(rows, validity, |_, group| {
            if let Some(count) = self.counts.get_mut(group) {
                *count += 1;
            }
        });
        Ok(())
    }

    fn absorb(&mut self, groups: &[u32], fields: &[ColumnView<'_>]) -> Result<()> {
        for (group, more) in groups.iter().zip(field(fields, 0)?) {
            if let Some(count) = self.counts.get_mut(*group as usize) {
                *count = count.checked_add(more).ok_or_else(|| Error::input("a count does not fit 64 bits"))?;
            }
        }
        Ok(())
    }

    fn can_know(&self) -> bool {
        true
    }

    fn known(&self, rows: u64, known: Option<&Known>) -> Result<Option<Vec<Column>>> {
        let count = match known {
            Some(known) if !self.all => known.valid(),
            _ => rows,
        };
        Ok(Some(vec![longs_field(std::iter::once(count))?]))
    }

    fn kinds(&self) -> Vec<(String, Datatype)> {
        vec![("count".to_owned(), Datatype::UInt64)]
    }

    fn fields(&self, groups: &[u32]) -> Result<Vec<Column>> {
        Ok(vec![longs_field(pick(&self.counts, groups))?])
    }

    fn finish(&self, groups: &[u32]) -> Result<Column> {
        words_column(Datatype::Int64, pick(&self.counts, groups))
    }

    fn size_bytes(&self) -> u64 {
        (self.counts.capacity() * 8) as u64
    }
}
