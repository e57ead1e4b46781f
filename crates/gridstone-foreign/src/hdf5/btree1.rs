//! B-trees of version 1: members of old groups, and chunks.
//!
//! ```text
//! node   "TREE" | type | level | entries 2 | left | right | key, child, key, child, ..., key
//! ```
//!
//! A child of a node of level 0 is what the tree holds. The level falls by one from a node to its children, so that
//! no node is below itself.

use super::reader::Reader;
use crate::budget::Budget;
use crate::error::{Error, Result};

/// Levels of a tree. A node has at least two children, so that sound trees stay far below.
const LEVELS_MAX: u8 = 32;

/// What a tree holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum BTree1 {
    /// Nodes of symbols. A key is an offset in the local heap.
    Group,
    /// Chunks. A key is bytes 4 | filter mask 4 | first cell of the chunk, 8 each, and a zero.
    Chunks { rank: usize },
}

/// What is called with each key and its child.
type LeafFn<'f> = &'f mut dyn FnMut(&[u8], u64) -> Result<()>;

impl BTree1 {
    /// Calls `f` with each key and child of the leaves below the root at `address`, in order.
    pub(super) fn for_each_leaf(self, reader: &Reader, budget: &Budget, address: u64, f: LeafFn<'_>) -> Result<()> {
        self.visit(reader, budget, address, None, f)
    }

    fn visit(self, reader: &Reader, budget: &Budget, address: u64, level: Option<u8>, f: LeafFn<'_>) -> Result<()> {
        let pointer = u64::from(reader.widths().offset);
        let prefix = 8 + 2 * pointer;
        let bytes = reader.bytes(budget, address, prefix, "B-tree")?;
        let mut cursor = reader.cursor(&bytes, "B-tree");
        cursor.signature(b"TREE")?;
        let (kind, found, entries) = (cursor.u8()?, cursor.u8()?, cursor.u16()?);
        if kind != self.kind() {
            return Err(Error::damaged("a node belongs to a B-tree of another kind"));
        }
        if level.is_some_and(|level| level != found) || found > LEVELS_MAX {
            return Err(Error::damaged(format!("a node of a B-tree has the wrong level {found}")));
        }
        let key = self.key_bytes(reader);
        let length = u64::from(entries) * (key as u64 + pointer);
        let bytes = reader.bytes(budget, address.saturating_add(prefix), length, "B-tree")?;
        let mut cursor = reader.cursor(&bytes, "B-tree");
        for _ in 0..entries {
            let key = cursor.take(key)?;
            let child = cursor.defined_address()?;
            match found.checked_sub(1) {
                None => f(key, child)?,
                Some(below) => self.visit(reader, budget, child, Some(below), f)?,
            }
        }
        Ok(())
    }

    fn kind(self) -> u8 {
        match self {
            Self::Group => 0,
            Self::Chunks { .. } => 1,
        }
    }

    fn key_bytes(self, reader: &Reader) -> usize {
        match self {
            Self::Group => usize::from(reader.widths().length),
            Self::Chunks { rank } => 8 + 8 * (rank + 1),
        }
    }
}
