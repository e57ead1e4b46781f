//! What a store knows of a fragment without opening it.

use super::{ExternalSpec, ValueBounds};
use crate::base::{ByteReader, ByteWriter, FileRef, Id, Result, limits};
use crate::schema::{KeyRange, Subarray};

/// Precedence: the version that committed the fragment, then its place in that commit. Newer wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FragmentOrder {
    /// The version that committed it (of a merged fragment: the greatest of its inputs).
    pub version: u64,
    /// Its place among the fragments of that commit.
    pub index: u32,
}

impl FragmentOrder {
    /// Newer than all that `version` has, older than all that comes later: of a delete of what was seen there.
    pub fn after(version: u64) -> Self {
        Self { version, index: u32::MAX }
    }

    /// Of the tombstones that a merge leaves over its dense result of this order, for what the result cannot say: newer than all that was
    /// committed with it, older than all that comes later. No fragment has such a place in its commit, so they are known by it.
    pub fn leftover(self) -> Self {
        Self { version: self.version, index: self.index | 1 << 31 }
    }
}

/// What a fragment holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FragmentKind {
    /// Every cell of a box.
    Dense,
    /// Cells with coordinates.
    Sparse,
    /// Coordinates whose older cells are deleted.
    Tombstones,
    /// A box whose older cells are deleted; it has no bytes.
    Deletion,
    /// Rows of one sparse fragment that are deleted; see [`super::Mask`].
    Mask,
}

impl FragmentKind {
    /// The name used in the log and in listings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Sparse => "sparse",
            Self::Tombstones => "tombstones",
            Self::Deletion => "deletion",
            Self::Mask => "mask",
        }
    }

    /// Whether it holds cells.
    pub fn holds_cells(self) -> bool {
        matches!(self, Self::Dense | Self::Sparse)
    }

    /// Whether it says that all older cells at its places are deleted.
    pub fn deletes(self) -> bool {
        matches!(self, Self::Tombstones | Self::Deletion)
    }

    /// The kind of this name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Dense, Self::Sparse, Self::Tombstones, Self::Deletion, Self::Mask].into_iter().find(|k| k.name() == name)
    }
}

/// Where a fragment's bytes lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Location {
    /// The data file, or the log record whose body holds it.
    pub file: FileRef,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

/// A fragment as described in a record or a manifest page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Its permanent id.
    pub id: Id,
    /// What it holds.
    pub kind: FragmentKind,
    /// Its precedence.
    pub order: FragmentOrder,
    /// The number, in its array's history, of the schema it was written with.
    pub schema: u32,
    /// The box written (dense) or deleted, or the minimum bounding rectangle of the cells; of a mask that of its fragment.
    pub bounds: Subarray,
    /// How many cells it holds; of a mask how many rows it deletes.
    pub cells: u64,
    /// The attributes it has values of, by permanent number, ascending; empty for tombstones.
    pub attrs: Vec<u32>,
    /// Where it lies.
    pub location: Location,
    /// Of a mask: the fragment whose rows it deletes.
    pub over: Option<Id>,
    /// What is known of the values of its attributes.
    pub stats: ValueBounds,
    /// By how many whole tiles per dimension the box of a dense fragment lies off the one in its root. Empty: by none.
    pub moved: Vec<i64>,
    /// What newer releases say of it, by ascending bits.
    pub extra: Vec<Part>,
}

/// The bit of the part that external fragments have: u64 bytes of their sources, as far as known, and u32 sources. A folder, sized, may follow:
/// paths of sources count from it, and not from the folder of the store. Older releases pass the part over.
pub(crate) const EXTERNAL_PART: u8 = 18;
/// Bytes of the part that all external fragments have.
const EXTERNAL_BYTES: usize = 12;

/// A part of a description that only some fragments have, or that this release does not read. It is kept as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The bit of its flag, 16 to 31.
    pub bit: u8,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl Description {
    /// The deletion of a box; its order is not set.
    pub fn deletion(id: Id, schema: u32, bounds: Subarray) -> Self {
        let location = Location { file: FileRef::Nowhere, offset: 0, len: 0 };
        let order = FragmentOrder { version: 0, index: 0 };
        Self {
            id,
            kind: FragmentKind::Deletion,
            order,
            schema,
            bounds,
            cells: 0,
            attrs: Vec::new(),
            location,
            over: None,
            stats: ValueBounds::default(),
            extra: Vec::new(),
            moved: Vec::new(),
        }
    }

    /// The part that says that a fragment's cells lie in the files of `spec`.
    pub fn external_part(spec: &ExternalSpec) -> Part {
        let bytes = spec.sources.iter().filter_map(|source| source.object.size).fold(0, u64::saturating_add);
        let mut content = bytes.to_le_bytes().to_vec();
        content.extend_from_slice(&(spec.sources.len() as u32).to_le_bytes());
        Part { bit: EXTERNAL_PART, bytes: content }
    }

    /// Whether its cells lie in files of another format.
    pub fn is_external(&self) -> bool {
        self.extra.iter().any(|part| part.bit == EXTERNAL_PART)
    }

    /// The folder, or the URL of one, that paths of its sources count from; `None`: the one that the store lies in.
    ///
    /// # Errors
    /// Corruption: the part that says so is damaged.
    pub fn sources_from(&self) -> Result<Option<&str>> {
        let part = self.extra.iter().find(|part| part.bit == EXTERNAL_PART);
        let more = part.and_then(|part| part.bytes.get(EXTERNAL_BYTES..)).unwrap_or_default();
        if more.is_empty() {
            return Ok(None);
        }
        let mut reader = ByteReader::new(more, "the folder of foreign sources");
        let folder = reader.string()?;
        reader.expect_end()?;
        Ok(Some(folder))
    }

    /// From now on paths of its sources count from this folder, if they did from that of the store.
    ///
    /// # Errors
    /// Corruption, as [`Description::sources_from`]; Input: a path of more than 4 GiB.
    pub fn count_sources_from(&mut self, folder: &str) -> Result<()> {
        if self.sources_from()?.is_none()
            && let Some(part) = self.extra.iter_mut().find(|part| part.bit == EXTERNAL_PART)
        {
            let mut writer = ByteWriter::new();
            writer.sized(folder.as_bytes())?;
            part.bytes.resize(EXTERNAL_BYTES, 0);
            part.bytes.extend_from_slice(&writer.into_bytes());
        }
        Ok(())
    }

    /// Whether it is so short that it may lie in a log record.
    pub fn is_small(&self) -> bool {
        self.location.len <= limits::INLINE_BYTES_MAX as u64
    }

    /// Moves it along an axis by `by` coordinates, which are `tiles` whole tiles. `None`, and nothing, if there is no such place.
    #[must_use]
    pub fn shift(&mut self, axis: usize, by: u64, tiles: i64) -> Option<()> {
        let mut ranges = self.bounds.ranges().to_vec();
        let mut moved = if self.moved.is_empty() { vec![0; ranges.len()] } else { self.moved.clone() };
        let (range, along) = (ranges.get_mut(axis)?, moved.get_mut(axis)?);
        *range = KeyRange::new(range.lo.checked_add(by)?, range.hi.checked_add(by)?);
        *along = along.checked_add(tiles)?;
        (self.bounds, self.moved) = (Subarray::new(ranges), moved);
        Some(())
    }

    /// What is wrong with how its parts fit together, if anything is.
    pub fn contradiction(&self) -> Option<&'static str> {
        let (deletion, nowhere) = (self.kind == FragmentKind::Deletion, self.location.file == FileRef::Nowhere);
        if deletion != nowhere {
            return Some("a deletion, and nothing else, lies nowhere");
        }
        if deletion && (self.cells > 0 || self.location.len > 0 || self.location.offset > 0) {
            return Some("a deletion has neither cells nor bytes");
        }
        if (self.kind == FragmentKind::Mask) != self.over.is_some() {
            return Some("a mask, and nothing else, lies over a fragment");
        }
        if !self.moved.is_empty() && (self.kind != FragmentKind::Dense || self.moved.len() != self.bounds.ndim()) {
            return Some("a dense fragment, and nothing else, is moved, along each of its dimensions");
        }
        (!self.kind.holds_cells() && !self.attrs.is_empty()).then_some("what deletes has no values of attributes")
    }
}

/// A fragment that has been written and that no commit refers to yet. Its description's order is not set.
#[derive(Debug, Clone)]
pub struct Staged {
    /// What the commit will say of it; for an inline fragment `location` gives the length only.
    pub description: Description,
    /// Its bytes, if they are to live in the record's body.
    pub body: Option<bytes::Bytes>,
}
