//! The answer to a question.

use super::columns::join;
use crate::tile::Column;

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultColumn {
    /// Its name.
    pub name: String,
    /// The attribute whose categories its values are codes of.
    pub categories: Option<usize>,
    /// Whether some of its values may be null.
    pub nullable: bool,
}

/// The answer to a question.
#[derive(Debug)]
pub struct Answer {
    /// How many groups.
    pub rows: usize,
    /// Their keys, then the aggregates.
    pub columns: Vec<(ResultColumn, Column)>,
}

impl Answer {
    /// Appends the groups of another answer to the same question.
    pub fn append(&mut self, more: Self) {
        self.rows += more.rows;
        self.columns.iter_mut().zip(&more.columns).for_each(|((_, mine), (_, more))| join(mine, more));
    }

    /// The groups from one on, so many of them at most.
    #[must_use]
    pub fn part(&self, from: usize, rows: usize) -> Self {
        let to = from.saturating_add(rows).min(self.rows);
        let cut = |(named, column): &(ResultColumn, Column)| (named.clone(), column.view().copy_range(from, to));
        Self { rows: to.saturating_sub(from), columns: self.columns.iter().map(cut).collect() }
    }

    /// Bytes that its columns take.
    pub fn size_bytes(&self) -> u64 {
        self.columns.iter().map(|(_, column)| column.size_bytes() as u64).sum()
    }

    /// Some of its groups.
    #[must_use]
    pub fn of_rows(self, rows: &[u32]) -> Self {
        let gather = |(named, column): (ResultColumn, Column)| (named, column.view().gather(rows));
        Self { rows: rows.len(), columns: self.columns.into_iter().map(gather).collect() }
    }
}
