//! B-trees of version 2: records of one length, in order.
//!
//! ```text
//! header    "BTHD" | version | type | node bytes 4 | record bytes 2 | depth 2 | percents 2 | root | records of the root 2 |
//!           records | checksum 4
//! internal  "BTIN" | version | type | records | children | checksum 4
//!           a child: address | its records | records below it, unless it is a leaf
//! leaf      "BTLF" | version | type | records | checksum 4
//! ```
//!
//! Numbers of records have as many bytes as the largest possible one needs.

use super::checksum::verified;
use super::reader::Reader;
use crate::budget::Budget;
use crate::error::{Error, Result};

/// Levels of a tree. A node has at least two children, so that sound trees stay far below.
const DEPTH_MAX: u16 = 32;
/// Bytes of a node that hold no records: signature, version, type and checksum.
const NODE_OVERHEAD: u64 = 10;

/// What is called with each record.
type RecordFn<'f> = &'f mut dyn FnMut(&[u8]) -> Result<()>;

/// The header of a tree.
#[derive(Debug)]
pub(super) struct BTree2 {
    /// The type of the records.
    pub(super) kind: u8,
    node_bytes: u64,
    pub(super) record_bytes: u16,
    depth: u16,
    root: Option<u64>,
    root_records: u16,
    /// For each level above the leaves: bytes of a number of records below a child.
    total_widths: Vec<usize>,
    /// Bytes of a number of records of a child.
    count_width: usize,
}

/// A node to read.
#[derive(Debug, Clone, Copy)]
struct Node {
    address: u64,
    records: u64,
    level: u16,
}

impl BTree2 {
    /// Reads the header at `address`.
    pub(super) fn read(reader: &Reader, budget: &Budget, address: u64) -> Result<Self> {
        let widths = reader.widths();
        let length = 22 + u64::from(widths.offset) + u64::from(widths.length);
        let bytes = reader.bytes(budget, address, length, "B-tree")?;
        let mut cursor = reader.cursor(verified(&bytes, "B-tree")?, "B-tree");
        cursor.signature(b"BTHD")?;
        cursor.version(0)?;
        let kind = cursor.u8()?;
        let node_bytes = u64::from(cursor.u32()?);
        let (record_bytes, depth) = (cursor.u16()?, cursor.u16()?);
        cursor.skip(2)?;
        let (root, root_records) = (cursor.address()?, cursor.u16()?);
        if record_bytes == 0 || node_bytes < NODE_OVERHEAD + u64::from(record_bytes) || depth > DEPTH_MAX {
            return Err(Error::damaged(format!(
                "a B-tree of depth {depth} has nodes of {node_bytes} bytes for records of {record_bytes} bytes"
            )));
        }
        let mut tree = Self {
            kind,
            node_bytes,
            record_bytes,
            depth,
            root,
            root_records,
            total_widths: Vec::new(),
            count_width: 0,
        };
        tree.find_widths(u64::from(widths.offset))?;
        Ok(tree)
    }

    fn find_widths(&mut self, address_bytes: u64) -> Result<()> {
        let record = u64::from(self.record_bytes);
        let in_leaf = (self.node_bytes - NODE_OVERHEAD) / record;
        self.count_width = width_of(in_leaf);
        let mut below = in_leaf;
        let mut total_width = 0;
        for _ in 0..self.depth {
            self.total_widths.push(total_width);
            let pointer = address_bytes + (self.count_width + total_width) as u64;
            let room = self.node_bytes.checked_sub(NODE_OVERHEAD + pointer);
            let in_node = room.ok_or_else(|| Error::damaged("the nodes of a B-tree have no room for a child"))?
                / (record + pointer);
            below = (in_node + 1).saturating_mul(below).saturating_add(in_node);
            total_width = width_of(below);
        }
        Ok(())
    }

    /// Calls `f` with each record, in order.
    pub(super) fn for_each_record(&self, reader: &Reader, budget: &Budget, f: RecordFn<'_>) -> Result<()> {
        match self.root {
            Some(address) if self.root_records > 0 => {
                let root = Node { address, records: u64::from(self.root_records), level: self.depth };
                self.visit(reader, budget, root, f)
            }
            _ => Ok(()),
        }
    }

    fn visit(&self, reader: &Reader, budget: &Budget, node: Node, f: RecordFn<'_>) -> Result<()> {
        let record = usize::from(self.record_bytes);
        let pointer = self.pointer_bytes(reader, node.level);
        let pointers = if node.level == 0 { 0 } else { (node.records + 1).saturating_mul(pointer) };
        let used = node.records.saturating_mul(record as u64).saturating_add(pointers).saturating_add(NODE_OVERHEAD);
        if used > self.node_bytes {
            return Err(Error::damaged(format!("a node of a B-tree has {} records, more than fit", node.records)));
        }
        let bytes = reader.bytes(budget, node.address, used, "node of a B-tree")?;
        let mut cursor = reader.cursor(verified(&bytes, "node of a B-tree")?, "node of a B-tree");
        cursor.signature(if node.level == 0 { b"BTLF" } else { b"BTIN" })?;
        cursor.version(0)?;
        if cursor.u8()? != self.kind {
            return Err(Error::damaged("a node belongs to another B-tree"));
        }
        let records = cursor.take(record * node.records as usize)?;
        let mut records = records.chunks_exact(record);
        if node.level == 0 {
            return records.try_for_each(f);
        }
        for child in 0..=node.records {
            let address = cursor.defined_address()?;
            let count = cursor.uint(self.count_width)?;
            cursor.skip(self.total_width(node.level))?;
            self.visit(reader, budget, Node { address, records: count, level: node.level - 1 }, f)?;
            if child < node.records {
                records.next().map_or(Ok(()), &mut *f)?;
            }
        }
        Ok(())
    }

    fn total_width(&self, level: u16) -> usize {
        usize::from(level).checked_sub(1).and_then(|below| self.total_widths.get(below)).copied().unwrap_or_default()
    }

    fn pointer_bytes(&self, reader: &Reader, level: u16) -> u64 {
        u64::from(reader.widths().offset) + (self.count_width + self.total_width(level)) as u64
    }
}

/// Bytes that hold numbers up to `limit`.
pub(super) fn width_of(limit: u64) -> usize {
    (limit.checked_ilog2().unwrap_or_default() / 8 + 1) as usize
}
