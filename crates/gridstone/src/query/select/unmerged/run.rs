//! A run of neighbouring blocks of one fragment, and which rows of each are wanted.

use crate::fragment::Fragment;
use crate::query::block::sparse::Unit;
use crate::query::select::candidates::BlockRole;
use crate::query::select::filter::Filter;
use crate::query::select::sparse::FilteredSparseReader;
use crate::query::sparse::SparseReader;
use std::sync::Arc;

/// Neighbouring blocks of one fragment.
pub(super) struct Run<'a> {
    pub(super) sieve: &'a FilteredSparseReader,
    pub(super) fragment: &'a Arc<Fragment>,
    pub(super) items: &'a [(Unit, BlockRole)],
}

/// Rows of a block.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) unit: &'a Unit,
    /// The number of the block's first row.
    pub(super) start: usize,
    /// Some of its rows, ascending.
    pub(super) rows: &'a [u32],
}

impl<'a> Run<'a> {
    pub(super) fn sweep(&self) -> &'a SparseReader {
        self.sieve.sweep()
    }

    pub(super) fn filter(&self) -> &'a Filter {
        self.sieve.filter()
    }

    pub(super) fn cells(&self) -> usize {
        self.items.iter().map(|(unit, _)| unit.at.cells).sum()
    }

    /// The blocks in which some of `rows` lie.
    pub(super) fn parts<'r>(&self, rows: &'r [u32]) -> Vec<Part<'r>>
    where
        'a: 'r,
    {
        let (mut parts, mut rest, mut start) = (Vec::with_capacity(self.items.len()), rows, 0);
        for (unit, _) in self.items {
            let end = start + unit.at.cells;
            let (rows, later) = rest.split_at(rest.partition_point(|row| (*row as usize) < end));
            if !rows.is_empty() {
                parts.push(Part { unit, start, rows });
            }
            (rest, start) = (later, end);
        }
        parts
    }
}
