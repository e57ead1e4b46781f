//! Limits on what the engine accepts from a caller or from disk, and numbers that several floors share.

use super::{Error, Result};

/// The largest number of dimensions of an array.
pub const DIMENSIONS_MAX: usize = 8;
/// The largest number of axes of an array: one per dimension, and for a text dimension one per word.
pub const AXES_MAX: usize = 32;
/// The largest number of boxes that are read or deleted at once.
pub const BOXES_MAX: usize = 1 << 16;
/// The largest number of attributes of an array.
pub const ATTRIBUTES_MAX: usize = 4_096;
/// The largest length of a dimension's, attribute's or array's name, in bytes of UTF-8.
pub const NAME_BYTES_MAX: usize = 255;

/// The largest nesting depth of lists and objects in a metadata value: what common readers of JSON accept.
pub const METADATA_LEVELS_MAX: usize = 128;
/// The largest capacity of a sparse data tile, in cells.
pub const CAPACITY_MAX: u64 = 1 << 30;
/// The largest space tile of a dense array, in cells.
pub const TILE_CELLS_MAX: u64 = 1 << 31;
/// The largest decoded block, in bytes: it bounds what a length found on disk may make the engine allocate at once.
pub const BLOCK_BYTES_MAX: usize = 1 << 30;
/// The largest single value of a variable-length attribute, in bytes.
pub const VALUE_BYTES_MAX: usize = 1 << 29;
/// The largest cell of a fixed-width attribute, in bytes.
pub const CELL_BYTES_MAX: usize = 1 << 16;
/// The largest size in bytes of a column of a block. Blocks of wide cells have fewer cells, so that no column exceeds
/// it.
pub const WIDE_BLOCK_BYTES: usize = 1 << 20;
/// The largest number of variable-length bytes in a block besides its largest cell, so that reading one cell takes no
/// more memory than that.
pub const BLOCK_ROOM_BYTES: u64 = 64 << 20;
/// The largest number of categories of an enumerated attribute: the list is in the schema, which every opening reads.
pub const CATEGORIES_MAX: usize = 1 << 16;
/// The largest total size of an attribute's categories, in bytes.
pub const CATEGORIES_BYTES_MAX: usize = 1 << 20;
/// The largest number of cells in any block: what a fragment found on disk may claim.
pub const BLOCK_CELLS_MAX: u32 = 1 << 20;
/// The largest number of cells in a dense block, unless a context sets another.
pub const DENSE_BLOCK_CELLS: u64 = 16_384;
/// The largest number of cells in a sparse block, unless a context sets another.
pub const SPARSE_BLOCK_CELLS: u64 = 1_024;
/// Fragments up to this size are stored in the body of the record that commits them, in bytes.
pub const INLINE_BYTES_MAX: usize = 128 * 1024;
/// The largest number of fragment descriptions in a manifest page.
pub const PAGE_FRAGMENTS_MAX: usize = 4_096;
/// A writer that finds the newest root this many versions behind folds first.
pub const FOLD_VERSIONS: u64 = 64;
/// A writer that finds at least this many bytes of records since the newest root folds first, since an opening reads
/// all of them. Records of 64 KiB, the size of a thousand cells of ten numbers, are still folded by their number.
pub const FOLD_BYTES: u64 = 4 << 20;
/// The largest size of a hint, in bytes: what an opening reads to spare itself the records since the root.
pub const HINT_BYTES_MAX: usize = 256 << 10;
/// The longest line of a record in a hint, with its checksum, in bytes.
pub const HINT_LINE_BYTES_MAX: usize = 64 << 10;
/// The largest size of a log record's line, in bytes.
pub const RECORD_LINE_BYTES_MAX: usize = 256 << 20;
/// The largest total size of the bodies of a log record, in bytes.
pub const RECORD_BODIES_BYTES_MAX: usize = 1 << 30;
/// The largest size of the line of a manifest root, in bytes: those of GS0 hold the whole state.
pub const ROOT_LINE_BYTES_MAX: usize = 1 << 30;
/// The largest size of the rows of a page of the manifest, in bytes: what a length found on disk may make the engine
/// allocate at once.
pub const ROW_PAGE_BYTES_MAX: usize = 64 << 20;
/// The largest value of a row of the manifest, in bytes.
pub const ROW_VALUE_BYTES_MAX: usize = 256 << 20;
/// The largest size of the entry of a fragment on a page of the manifest, in bytes.
pub const ENTRY_BYTES_MAX: usize = 1 << 16;
/// The most bytes of what newer releases say of a fragment in its description.
pub const EXTRA_BYTES_MAX: usize = 1 << 15;
/// The largest size of a metadata key, in bytes.
pub const METADATA_KEY_BYTES_MAX: usize = 1 << 16;
/// The largest size of a metadata value, in bytes of its JSON text.
pub const METADATA_VALUE_BYTES_MAX: usize = 64 << 20;
/// The largest size of a commit key, in bytes.
pub const COMMIT_KEY_BYTES_MAX: usize = 128;
/// The number of the last commit keys that a store keeps.
pub const COMMIT_KEYS_KEPT: u64 = 100_000;
/// The number of commit keys whose rows lie together.
pub const COMMIT_KEYS_PER_EPOCH: u64 = 8_192;
/// Parts of a file no further apart than this are read together. A pread that hits the page cache costs about half a
/// microsecond with its buffer, in which a core copies some 8 KiB. (Measured: 0.4 µs for 64 bytes, 0.9 µs for 8 KiB,
/// 1.35 µs for 16 KiB.) So reading a smaller gap is cheaper than another call.
pub const GAP_BYTES: u64 = 8 * 1024;
/// The largest number of buffers that one read of a file fills; systems accept 1,024.
pub const READ_PARTS_MAX: usize = 1_000;

/// Limits of the blocks that are written: cells, and bytes of variable-length values. Each fragment records its own
/// limits, which its readers use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockCells {
    /// The largest number of cells in a block of dense fragments.
    pub dense: u32,
    /// The largest number of cells in a block of sparse fragments and of tombstones.
    pub sparse: u32,
    /// The largest number of variable-length bytes in a block besides its largest cell.
    pub room_bytes: u64,
}

impl Default for BlockCells {
    fn default() -> Self {
        Self { dense: DENSE_BLOCK_CELLS as u32, sparse: SPARSE_BLOCK_CELLS as u32, room_bytes: BLOCK_ROOM_BYTES }
    }
}

impl BlockCells {
    /// These limits, or fewer cells if cells of `width` bytes would make large blocks.
    #[must_use]
    pub fn fitting(self, width: usize) -> Self {
        if width <= WIDE_BLOCK_BYTES / DENSE_BLOCK_CELLS as usize {
            return self;
        }
        let most = (WIDE_BLOCK_BYTES / width).max(1) as u32;
        Self { dense: self.dense.min(most), sparse: self.sparse.min(most), ..self }
    }

    /// An Input error if readers would refuse such blocks.
    pub fn check(self) -> Result<()> {
        for (kind, cells) in [("dense", self.dense), ("sparse", self.sparse)] {
            if cells == 0 || cells > BLOCK_CELLS_MAX {
                return Err(Error::input(format!(
                    "{kind} blocks of {cells} cells are impossible; a block has 1 to {BLOCK_CELLS_MAX}"
                )));
            }
        }
        Ok(())
    }
}
