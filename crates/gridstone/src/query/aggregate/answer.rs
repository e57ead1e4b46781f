//! The answer to a question, and the order of its groups.

use super::columns::join;
use super::groups::{Groups, RowGroups};
use super::key::{Bin, GroupKey};
use crate::base::{Error, Result};
use crate::tile::{Column, ColumnView};
use std::sync::Arc;

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
    /// The answer in the order of columns, each with whether it descends; those that are equal there stay in their order, and nulls
    /// come last. At most `limit` groups are left.
    ///
    /// # Errors
    /// Input: there is no such column, or its values have no order.
    pub fn ordered(self, by: &[(String, bool)], limit: Option<usize>) -> Result<Self> {
        let mut ranks = Vec::with_capacity(by.len());
        for (name, descends) in by {
            ranks.push(ranks_of(name, self.column(name)?.view(), *descends)?);
        }
        let mut rows: Vec<u32> = (0..self.rows as u32).collect();
        let key = |row: &u32| ranks.iter().map(|ranks| ranks.get(*row as usize).copied()).collect::<Vec<_>>();
        match ranks.as_slice() {
            [] => {}
            [only] => rows.sort_by_key(|row| only.get(*row as usize).copied()),
            _ => rows.sort_by_cached_key(key),
        }
        rows.truncate(limit.unwrap_or(usize::MAX));
        Ok(self.of_rows(&rows))
    }

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

    fn column(&self, name: &str) -> Result<&Column> {
        let found = self.columns.iter().find(|(named, _)| named.name == name).map(|(_, column)| column);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.columns.iter().map(|(named, _)| named.name.as_str()).collect();
            Error::input(format!("the answer has no column {name:?} to be ordered by; there are {}", names.join(", ")))
        })
    }
}

/// The number of each value among the different values in their order.
fn ranks_of(name: &str, view: ColumnView<'_>, descends: bool) -> Result<Vec<u64>> {
    let key = GroupKey { name: name.to_owned(), datatype: view.datatype(), nullable: true, bin: Bin::None };
    let mut groups = Groups::new(Arc::new(vec![key]))?;
    let of_rows = match groups.of_rows(view.len(), &[view])? {
        RowGroups::One(group) => vec![group; view.len()],
        RowGroups::Each(all) => all,
    };
    let sorted = groups.sorted();
    let mut ranks = vec![0u64; sorted.len()];
    for (rank, group) in (0u64..).zip(&sorted) {
        if let Some(slot) = ranks.get_mut(*group as usize) {
            *slot = if descends { sorted.len() as u64 - rank } else { rank };
        }
    }
    let rank = |(row, group): (usize, &u32)| match view.is_valid(row) {
        true => ranks.get(*group as usize).copied().unwrap_or(0),
        false => u64::MAX,
    };
    Ok(of_rows.iter().enumerate().map(rank).collect())
}
