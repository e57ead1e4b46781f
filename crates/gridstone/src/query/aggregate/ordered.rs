//! Keys of groups in ascending order, taken from the columns of a block, to compare those of several blocks.
//!
//! The order is that of [`super::groups::Groups::sorted`]: by the keys from the first on, NaN and then null after all others.

use super::key::GroupKey;
use crate::base::Result;
use crate::tile::Column;
use std::cmp::Ordering;

/// The values of one key.
#[derive(Debug)]
enum Values {
    Words(Vec<u64>),
    Texts(Column),
}

/// The keys of groups, a column per key.
#[derive(Debug)]
pub(super) struct OrderedKeys(Vec<(Values, Option<Vec<u8>>)>);

impl OrderedKeys {
    /// The keys in the first of `columns`, which are those of groups.
    pub(super) fn new(keys: &[GroupKey], columns: &[Column]) -> Result<Self> {
        let column = |(key, column): (&GroupKey, &Column)| {
            let view = column.view();
            let given = key.of_edges();
            let values = match given.is_text() {
                true => Values::Texts(column.clone()),
                false => Values::Words(given.words(view)?),
            };
            Ok((values, view.validity().filter(|valid| valid.contains(&0)).map(<[u8]>::to_vec)))
        };
        keys.iter().zip(columns).map(column).collect::<Result<_>>().map(Self)
    }

    /// The order of the key in a row, and of another one.
    pub(super) fn compare(&self, row: usize, (other, place): (&Self, usize)) -> Ordering {
        for ((mine, valid), (theirs, others)) in self.0.iter().zip(&other.0) {
            let is_null = |valid: &Option<Vec<u8>>, row: usize| valid.as_ref().is_some_and(|v| v.get(row) == Some(&0));
            let nulls = (is_null(valid, row), is_null(others, place));
            let order = match nulls {
                (false, false) => compare_values((mine, row), (theirs, place)),
                (a, b) => a.cmp(&b),
            };
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    }

    /// Bytes that they take.
    pub(super) fn size_bytes(&self) -> u64 {
        let size = |(values, valid): &(Values, Option<Vec<u8>>)| {
            let values = match values {
                Values::Words(words) => words.len() * 8,
                Values::Texts(column) => column.size_bytes(),
            };
            (values + valid.as_ref().map_or(0, Vec::len)) as u64
        };
        self.0.iter().map(size).sum()
    }
}

fn compare_values((mine, row): (&Values, usize), (theirs, place): (&Values, usize)) -> Ordering {
    match (mine, theirs) {
        (Values::Words(mine), Values::Words(theirs)) => mine.get(row).cmp(&theirs.get(place)),
        (Values::Texts(mine), Values::Texts(theirs)) => mine.view().value(row).cmp(theirs.view().value(place)),
        _ => Ordering::Equal,
    }
}
