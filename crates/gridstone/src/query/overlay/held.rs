//! What an overlay holds: small fragments, and sorted copies of packs of them. Both are rows in global order; a row of a copy has
//! the precedence of the fragment that it is from.

use super::small::SmallFragment;
use super::sorted_copy::SortedCopy;
use super::values::{Live, Values};
use crate::base::Result;
use crate::fragment::{FragmentKind, FragmentOrder};
use crate::query::block::deletions::Deletions;
use crate::query::block::masks::{Masks, is_masked};
use crate::query::request::ReadContext;
use crate::schema::{Attribute, Subarray};
use crate::tile::{CellKeys, KeyLayout};

/// A source of rows.
#[derive(Debug)]
pub(in crate::query) enum HeldRows {
    Small(SmallFragment),
    Sorted(SortedCopy),
}

impl HeldRows {
    /// Bytes of memory it takes, about, at `width` bytes for a decoded row.
    pub(super) fn size_bytes(&self, width: u64) -> u64 {
        match self {
            Self::Small(small) => super::values::held_bytes(small.fragment.description(), width),
            // Its blocks are decoded where they are asked for, at worst all of them.
            Self::Sorted(copy) => (copy.len() as u64).saturating_mul(width),
        }
    }

    /// The least box of all its cells.
    pub(super) fn bounds(&self) -> &Subarray {
        match self {
            Self::Small(small) => &small.fragment.description().bounds,
            Self::Sorted(copy) => &copy.fragment().description().bounds,
        }
    }

    /// How many cells it holds.
    pub(in crate::query) fn len(&self) -> usize {
        match self {
            Self::Small(small) => small.len(),
            Self::Sorted(copy) => copy.len(),
        }
    }

    /// The precedence of a row.
    pub(in crate::query) fn order(&self, row: u32) -> FragmentOrder {
        match self {
            Self::Small(small) => small.fragment.description().order,
            Self::Sorted(copy) => copy.order(row),
        }
    }

    /// The least precedence of its rows.
    pub(super) fn least_order(&self) -> FragmentOrder {
        match self {
            Self::Small(small) => small.fragment.description().order,
            Self::Sorted(copy) => copy.fragment().description().order,
        }
    }

    /// Whether its rows delete.
    pub(in crate::query) fn is_tombstone(&self) -> bool {
        matches!(self, Self::Small(small) if small.fragment.description().kind == FragmentKind::Tombstones)
    }

    /// Whether its rows have values of the attribute with this permanent number.
    pub(in crate::query) fn has(&self, attr: u32) -> bool {
        match self {
            Self::Small(small) => small.fragment.description().attrs.contains(&attr),
            Self::Sorted(copy) => copy.has(attr),
        }
    }

    /// A row's coordinate along a dimension, as an ordered key.
    pub(in crate::query) fn coordinate(&self, dim: usize, row: u32) -> Option<u64> {
        match self {
            Self::Small(small) => small.coordinate(dim, row),
            Self::Sorted(copy) => copy.coordinate(dim, row),
        }
    }

    /// A row's coordinates.
    pub(in crate::query) fn cell(&self, row: u32) -> impl Iterator<Item = u64> + Clone {
        (0..self.bounds().ndim()).filter_map(move |dim| self.coordinate(dim, row))
    }

    /// A row's precedence; its coordinates go into `cell`.
    pub(in crate::query) fn look(&self, row: u32, cell: &mut Vec<u64>) -> FragmentOrder {
        cell.clear();
        match self {
            Self::Small(small) => {
                cell.extend((0..self.bounds().ndim()).filter_map(|dim| small.coordinate(dim, row)));
                small.fragment.description().order
            }
            Self::Sorted(copy) => copy.look(row, cell),
        }
    }

    /// The keys of `rows`, which ascend, in global order.
    pub(in crate::query) fn keys(&self, layout: &KeyLayout, rows: &[u32]) -> CellKeys {
        let coords: Vec<Vec<u64>> = (0..self.bounds().ndim())
            .map(|dim| match self {
                Self::Small(small) => {
                    let column = small.coordinates(dim);
                    picked(rows, |row| column.get(row as usize).copied())
                }
                Self::Sorted(copy) => copy.coordinates(dim, rows),
            })
            .collect();
        layout.keys(&coords.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// The live rows whose cells lie in `sub`, ascending. `ends`: see [`super::tile_ends`].
    pub(super) fn rows_in(
        &self,
        context: &ReadContext,
        sub: &Subarray,
        (layout, ends): (&KeyLayout, Option<&[(u128, u128)]>),
        live: &Live,
    ) -> Result<Vec<u32>> {
        let small = match self {
            Self::Sorted(copy) => return copy.rows_in(context, sub, live),
            Self::Small(small) => small,
        };
        let all = 0..small.len() as u32;
        if sub.covers(self.bounds()) {
            return Ok(all.collect());
        }
        let inside = |row: &u32| sub.contains(self.cell(*row));
        let Some(ends) = ends else { return Ok(all.filter(inside).collect()) };
        let between = ends.iter().flat_map(|(first, last)| small.rows_between(layout, *first, *last));
        Ok(between.filter(inside).collect())
    }

    /// The live rows at the cell of this box and this word, ascending. The layout has words; other cells may share one.
    pub(super) fn rows_at(
        &self,
        context: &ReadContext,
        (layout, domain): (&KeyLayout, &Subarray),
        cell: (&Subarray, u128),
        live: &Live,
    ) -> Result<Vec<u32>> {
        match self {
            Self::Small(small) => Ok(small.rows_at(layout, cell).collect()),
            Self::Sorted(copy) => copy.rows_at(context, (layout, domain), cell, live),
        }
    }

    /// Whether the cell of a row lies in a box deleted since.
    pub(in crate::query) fn is_deleted(&self, row: u32, deletions: &Deletions) -> bool {
        deletions.take(self.order(row), self.cell(row))
    }

    /// Whether one of `masks` deletes a row. Members of a copy that a mask lies over are not live in it.
    pub(in crate::query) fn is_masked(&self, row: u32, masks: &Masks) -> bool {
        let Self::Small(small) = self else { return false };
        let over = masks.over(small.fragment.description().id);
        let (tile, row) = small.place(row);
        is_masked(over, tile, row)
    }

    /// The values of an attribute at `rows`, `None` if there are none of it.
    pub(in crate::query) fn values(
        &self,
        context: &ReadContext,
        attr: &Attribute,
        rows: &[u32],
    ) -> Result<Option<Values>> {
        match self {
            Self::Small(small) => small.values(context, attr.id()),
            Self::Sorted(copy) => copy.values(context, attr, rows),
        }
    }
}

fn picked(rows: &[u32], coordinate: impl Fn(u32) -> Option<u64>) -> Vec<u64> {
    let mut found = Vec::with_capacity(rows.len());
    found.extend(rows.iter().filter_map(|row| coordinate(*row)));
    found
}
