//! Cells on their way into a merge: chunks in global order, one queue per source.

use crate::fragment::{FragmentKind, FragmentOrder};
use crate::query::block::sparse::Unit;
use crate::tile::{CellKeys, Column};
use std::collections::VecDeque;
use std::sync::Arc;

/// Precedence and life of a chunk's rows.
#[derive(Debug)]
pub(in crate::query) enum Precedence {
    /// All rows come from one fragment.
    Fragment(FragmentOrder, FragmentKind),
    /// Rows of many small fragments: the order of each, and whether it is a tombstone.
    Rows(Vec<(FragmentOrder, bool)>),
}

/// Cells in ascending global order.
#[derive(Debug)]
pub(in crate::query) struct Chunk {
    /// Their keys; empty where the chunk's source stands alone, so that nothing is compared.
    pub(in crate::query) keys: CellKeys,
    /// Coordinates as ordered keys, a column per dimension.
    pub(in crate::query) coords: Vec<Vec<u64>>,
    /// Attribute values; empty for tombstones.
    pub(in crate::query) columns: Vec<Column>,
    pub(in crate::query) standing: Precedence,
    /// Of a read with a condition.
    pub(in crate::query) sifted: Option<RowSelection>,
}

/// What a condition says of a chunk's rows, and where their other values are.
#[derive(Debug)]
pub(in crate::query) struct RowSelection {
    /// The block they come from; `None`: the overlay, whose values are all at hand.
    pub(in crate::query) unit: Option<Unit>,
    /// Their rows in the block; `None`: all of it.
    pub(in crate::query) rows: Option<Vec<u32>>,
    /// Which of them are selected; `None`: all.
    pub(in crate::query) selected: Option<Vec<bool>>,
}

impl Chunk {
    pub(in crate::query) fn len(&self) -> usize {
        self.coords.first().map_or(0, Vec::len)
    }

    /// Whether no row deletes.
    pub(super) fn is_all_cells(&self) -> bool {
        matches!(self.standing, Precedence::Fragment(_, FragmentKind::Sparse | FragmentKind::Dense))
    }

    /// Bytes of memory it takes.
    pub(in crate::query) fn size_bytes(&self) -> u64 {
        let columns: usize = self.columns.iter().map(Column::size_bytes).sum();
        (columns + self.len() * 8 * (self.coords.len() + 1)) as u64
    }

    /// Whether a condition selects a row; without one all are.
    pub(in crate::query) fn is_selected(&self, row: usize) -> bool {
        let selected = self.sifted.as_ref().and_then(|s| s.selected.as_ref());
        selected.is_none_or(|flags| flags.get(row).copied().unwrap_or(false))
    }

    pub(in crate::query) fn order(&self, row: usize) -> FragmentOrder {
        match &self.standing {
            Precedence::Fragment(order, _) => *order,
            Precedence::Rows(rows) => rows.get(row).map_or(FragmentOrder { version: 0, index: 0 }, |r| r.0),
        }
    }

    pub(in crate::query) fn is_tombstone(&self, row: usize) -> bool {
        match &self.standing {
            Precedence::Fragment(_, kind) => *kind == FragmentKind::Tombstones,
            Precedence::Rows(rows) => rows.get(row).is_some_and(|r| r.1),
        }
    }
}

/// The chunks of one source, in ascending global order, and how far the first has been read.
#[derive(Debug, Default)]
pub(in crate::query) struct Queue {
    chunks: VecDeque<Arc<Chunk>>,
    next: usize,
}

impl Queue {
    pub(in crate::query) fn push(&mut self, chunk: Chunk) {
        if chunk.len() > 0 {
            self.chunks.push_back(Arc::new(chunk));
        }
    }

    /// The chunk and row of the first cell that has not been read.
    pub(in crate::query) fn head(&self) -> Option<(&Arc<Chunk>, usize)> {
        self.chunks.front().map(|chunk| (chunk, self.next))
    }

    /// Takes the first chunk out, if nobody else holds it.
    pub(in crate::query) fn take(&mut self) -> Option<Chunk> {
        self.chunks.pop_front().and_then(Arc::into_inner)
    }

    /// Its chunks that are not read, wholly or in part.
    pub(in crate::query) fn chunks(&self) -> impl Iterator<Item = &Arc<Chunk>> {
        self.chunks.iter()
    }

    /// The row of the first chunk that comes next.
    pub(super) fn next_row(&self) -> usize {
        self.next
    }

    /// Marks so many whole chunks, and the rows before this one of the next, as read.
    pub(super) fn advance(&mut self, (whole, row): (usize, usize)) {
        self.chunks.drain(..whole.min(self.chunks.len()));
        self.next = row;
    }
}
