//! The fixed parts of a fragment file, format GS0, and the ids of its index sections.
//!
//! ```text
//! header 64 B | stripe 0: pages, index sections | stripe 1: ... | root | footer 64 B
//!
//! header   "GRIDFRAG" | u32 version = 0 | u32 0 | u64 required features | u64 optional features
//!          | id 16 B | u64 0 | u64 xxh3 of the 56 bytes before
//! footer   u64 root offset | u64 root length | u64 root xxh3 | u64 fragment length | u32 version = 0 | u32 0
//!          | "GRIDFEND" | u64 0 | u64 xxh3 of the 56 bytes before
//! ```
//! Offsets count from the first byte of the header, so a fragment reads alike as a file, in a pack and in a record.

use crate::base::{ByteReader, ByteWriter, Error, Id, Result, xxh3};

/// The format version written and read.
pub(super) const VERSION: u32 = 0;
/// Length of the header and of the footer, in bytes.
pub(super) const FRAME_BYTES: u64 = 64;
const MAGIC: &[u8; 8] = b"GRIDFRAG";
const END_MAGIC: &[u8; 8] = b"GRIDFEND";
/// The required feature bits that `docs/format/reserved.md` has given away and that cannot be read, by what they say of a fragment.
const RESERVED: [(u64, &str); 1] = [(1, "it tells which cells of its tiles were written")];
/// The required feature of fragments whose cells lie in files of another format.
pub(super) const EXTERNAL: u64 = 2;

/// Raw pages of at least this many bytes are page-aligned and checksummed per chunk.
pub(super) const LARGE_PAGE_BYTES: u64 = 64 * 1024;
/// The alignment and the checksum chunk of large raw pages, in bytes.
pub const CHUNK_BYTES: u64 = 4_096;
/// The alignment of every other page and of index sections, in bytes.
pub(super) const ALIGNMENT: u64 = 64;

/// The index sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SectionId {
    /// Cells per tile: u64 (sparse and tombstones).
    TileCells = 1,
    /// MBR per tile: per dimension lo and hi key, u64 (sparse and tombstones).
    TileBounds = 2,
    /// Bounding coordinates per tile: the first cell's keys, the last cell's keys (sparse and tombstones).
    TileEnds = 3,
    /// Number of the first block of each tile in the stripe, and of the end: u32, tiles + 1.
    BlockStarts = 4,
    /// MBR per block (sparse and tombstones).
    BlockBounds = 5,
    /// The first cell's keys per block (sparse and tombstones).
    BlockFirsts = 6,
    /// Per field and tile: u64 offset, u64 stored length, u32 pipeline, u32 number of the first chunk checksum.
    Pages = 7,
    /// Per field and block: u32 stored length, u32 CRC32C of the stored bytes (0 in large raw pages).
    Blocks = 8,
    /// Per attribute and tile: 64 bytes of statistics.
    Statistics = 9,
    /// Bounds of variable-length values: u32 length and bytes each.
    Texts = 10,
    /// CRC32C per 4 KiB of each large raw page: u32.
    ChunkChecksums = 11,
    /// The chunks of an external fragment ([`super::external`]).
    Grid = 13,
    /// The files whose bytes it shows.
    Sources = 14,
    /// Where pages lie in these files.
    ForeignPages = 15,
    /// How the values of each field lie in the records of a page.
    ForeignFields = 16,
    /// Per list and tile the page that holds it.
    TilePages = 17,
}

impl SectionId {
    const ALL: [Self; 16] = [
        Self::TileCells,
        Self::TileBounds,
        Self::TileEnds,
        Self::BlockStarts,
        Self::BlockBounds,
        Self::BlockFirsts,
        Self::Pages,
        Self::Blocks,
        Self::Statistics,
        Self::Texts,
        Self::ChunkChecksums,
        Self::Grid,
        Self::Sources,
        Self::ForeignPages,
        Self::ForeignFields,
        Self::TilePages,
    ];

    /// The section of this number, `None` for one that a newer writer added.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|id| *id as u32 == number)
    }
}

/// The header of the fragment `id`, which needs the features `required`.
pub(super) fn encode_header(id: Id, required: u64) -> Vec<u8> {
    let mut w = ByteWriter::new();
    w.raw(MAGIC);
    w.u32(VERSION);
    w.u32(0);
    w.u64(required);
    w.u64(0);
    w.raw(&id.0);
    w.u64(0);
    w.u64(xxh3(w.as_slice()));
    w.into_bytes()
}

/// Checks a header and gives the fragment's id and the features that it needs.
pub(super) fn decode_header(bytes: &[u8]) -> Result<(Id, u64)> {
    let mut r = ByteReader::new(bytes, "a fragment's header");
    let magic = r.take(8)?;
    let version = r.u32()?;
    r.u32()?;
    let required = r.u64()?;
    r.u64()?;
    let mut id = [0; 16];
    id.copy_from_slice(r.take(16)?);
    r.u64()?;
    if magic != MAGIC {
        return Err(Error::corruption("this is no fragment: its first bytes are not GRIDFRAG"));
    }
    check_sum(bytes, &mut r, "header")?;
    check_version(version)?;
    check_features(required)?;
    Ok((Id(id), required))
}

/// An Unsupported error that names what a fragment with these required features needs, if it needs anything.
fn check_features(required: u64) -> Result<()> {
    let required = required & !EXTERNAL;
    if required == 0 {
        return Ok(());
    }
    let mut needs: Vec<String> =
        RESERVED.iter().filter(|(bit, _)| required & bit != 0).map(|(_, what)| (*what).to_owned()).collect();
    let unknown = RESERVED.iter().fold(required, |left, (bit, _)| left & !bit);
    if unknown != 0 {
        needs.push(format!("it has features {unknown:#x}"));
    }
    Err(Error::unsupported(format!(
        "a fragment cannot be read by this version: {}; use a newer Gridstone",
        needs.join(", and ")
    )))
}

fn check_sum(bytes: &[u8], r: &mut ByteReader<'_>, what: &str) -> Result<()> {
    let found = xxh3(bytes.get(..r.position()).unwrap_or_default());
    let stored = r.u64()?;
    if found == stored { Ok(()) } else { Err(Error::corruption(format!("a fragment's {what} fails its checksum"))) }
}

fn check_version(version: u32) -> Result<()> {
    if version == VERSION {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "a fragment has format version {version}, this version of Gridstone reads {VERSION}; use a newer one"
    )))
}

/// Where the root lies and how long the fragment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Footer {
    /// Offset of the root, in bytes.
    pub(super) root_offset: u64,
    /// Length of the root, in bytes.
    pub(super) root_len: u64,
    /// xxh3 of the root.
    pub(super) root_xxh3: u64,
    /// Length of the fragment, header and footer included, in bytes.
    pub(super) len: u64,
}

impl Footer {
    /// The footer's 64 bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut w = ByteWriter::new();
        for word in [self.root_offset, self.root_len, self.root_xxh3, self.len] {
            w.u64(word);
        }
        w.u32(VERSION);
        w.u32(0);
        w.raw(END_MAGIC);
        w.u64(0);
        w.u64(xxh3(w.as_slice()));
        w.into_bytes()
    }

    /// Checks the last 64 bytes of a fragment of `len` bytes.
    pub(super) fn decode(bytes: &[u8], len: u64) -> Result<Self> {
        let mut r = ByteReader::new(bytes, "a fragment's footer");
        let footer = Self { root_offset: r.u64()?, root_len: r.u64()?, root_xxh3: r.u64()?, len: r.u64()? };
        let version = r.u32()?;
        r.u32()?;
        let magic = r.take(8)?;
        r.u64()?;
        if magic != END_MAGIC {
            return Err(Error::corruption("a fragment does not end with a footer; it was cut off or overwritten"));
        }
        check_sum(bytes, &mut r, "footer")?;
        check_version(version)?;
        let root_end = footer.root_offset.checked_add(footer.root_len);
        if footer.len != len || root_end != len.checked_sub(FRAME_BYTES) || footer.root_offset < FRAME_BYTES {
            return Err(Error::corruption(format!(
                "a fragment's footer says {} bytes with the root at {}, found {len} bytes",
                footer.len, footer.root_offset
            )));
        }
        Ok(footer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    #[test]
    fn frames_survive_and_every_flipped_bit_is_seen() {
        let header = encode_header(Id([7; 16]), 0);
        let footer = Footer { root_offset: 100, root_len: 36, root_xxh3: 9, len: 200 };
        let tail = footer.encode();
        assert_eq!((header.len(), tail.len()), (64, 64));
        assert_eq!(decode_header(&header).unwrap(), (Id([7; 16]), 0));
        assert_eq!(Footer::decode(&tail, 200).unwrap(), footer);
        for bit in 0..512 {
            let flip = |bytes: &[u8]| {
                let mut bad = bytes.to_vec();
                bad[bit / 8] ^= 1 << (bit % 8);
                bad
            };
            assert_eq!(decode_header(&flip(&header)).unwrap_err().kind(), ErrorKind::Corruption);
            assert_eq!(Footer::decode(&flip(&tail), 200).unwrap_err().kind(), ErrorKind::Corruption);
        }
        assert!(Footer::decode(&tail, 201).is_err() && Footer::decode(&tail[1..], 200).is_err());
    }

    #[test]
    fn features_that_are_required_are_refused_by_name_and_optional_ones_passed_over() {
        let with = |required: u64, optional: u64| {
            let mut header = encode_header(Id([7; 16]), 0);
            header[16..24].copy_from_slice(&required.to_le_bytes());
            header[24..32].copy_from_slice(&optional.to_le_bytes());
            let sum = xxh3(&header[..56]).to_le_bytes();
            header[56..].copy_from_slice(&sum);
            decode_header(&header)
        };
        assert_eq!(with(0, u64::MAX).unwrap(), (Id([7; 16]), 0));
        assert_eq!(with(EXTERNAL, 0).unwrap(), (Id([7; 16]), EXTERNAL));
        for (required, words) in
            [(1, "which cells"), (3, "which cells"), (1 << 63, "0x8000"), (6, "0x4"), (5, "written, and it has")]
        {
            let error = with(required, 0).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
