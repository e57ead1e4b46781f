//! The layout message: where the cells of a dataset lie.
//!
//! ```text
//! version 1, 2   version | rank | class | - 5 | [address] | lengths 4 each | [element bytes 4] | [compact bytes]
//! version 3      version | class | compact: bytes 2, cells | contiguous: address, bytes | chunked: rank | address | lengths
//! version 4, 5   as 3, but chunked: flags | rank | width | lengths | kind of index | its parameters | address
//! ```
//!
//! The rank of a chunked layout counts one more axis: the bytes of an element.

use super::dataspace::RANK_MAX;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::model::ChunkIndex;

/// Chunks at the edges are stored without filters.
const PLAIN_EDGES: u8 = 0x01;
/// The single chunk has filters, and its length is given.
const SINGLE_IS_FILTERED: u8 = 0x02;

/// The layout as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StoredLayout {
    Compact(Vec<u8>),
    /// `length` is unknown in the first versions.
    Contiguous {
        address: Option<u64>,
        length: Option<u64>,
    },
    Chunked {
        chunk: Vec<u64>,
        element_size: u64,
        index: ChunkIndex,
    },
    Virtual,
}

impl StoredLayout {
    pub(super) fn parse(mut cursor: Cursor<'_>) -> Result<Self> {
        let version = cursor.u8()?;
        match version {
            1 | 2 => first_versions(cursor),
            3..=5 => later_versions(cursor, version),
            _ => Err(cursor.unknown_version(version)),
        }
    }
}

fn first_versions(mut cursor: Cursor<'_>) -> Result<StoredLayout> {
    let (rank, class) = (cursor.u8()?, cursor.u8()?);
    cursor.skip(5)?;
    let address = if class == 0 { None } else { cursor.address()? };
    let lengths = lengths(&mut cursor, rank, 4)?;
    match class {
        0 => {
            let length = cursor.u32()?;
            Ok(StoredLayout::Compact(cursor.take(length as usize)?.to_vec()))
        }
        1 => Ok(StoredLayout::Contiguous { address, length: None }),
        2 => chunked(lengths, btree1(address)),
        _ => Err(unknown_class(class)),
    }
}

fn later_versions(mut cursor: Cursor<'_>, version: u8) -> Result<StoredLayout> {
    match cursor.u8()? {
        0 => {
            let length = cursor.u16()?;
            Ok(StoredLayout::Compact(cursor.take(usize::from(length))?.to_vec()))
        }
        1 => Ok(StoredLayout::Contiguous { address: cursor.address()?, length: Some(cursor.length()?) }),
        2 if version == 3 => {
            let rank = cursor.u8()?;
            let address = cursor.address()?;
            let lengths = lengths(&mut cursor, rank, 4)?;
            chunked(lengths, btree1(address))
        }
        2 => chunked_of_version_4(cursor),
        3 => Ok(StoredLayout::Virtual),
        class => Err(unknown_class(class)),
    }
}

fn unknown_class(class: u8) -> Error {
    Error::unsupported(format!("a dataset has the unknown layout {class}"))
}

fn lengths(cursor: &mut Cursor<'_>, rank: u8, width: usize) -> Result<Vec<u64>> {
    if rank > RANK_MAX + 1 {
        return Err(Error::damaged(format!("a chunk has {rank} axes; the format allows {RANK_MAX}")));
    }
    (0..rank).map(|_| cursor.uint(width)).collect()
}

fn btree1(address: Option<u64>) -> ChunkIndex {
    address.map_or(ChunkIndex::Empty, |address| ChunkIndex::BTree1 { address })
}

fn chunked(mut chunk: Vec<u64>, index: ChunkIndex) -> Result<StoredLayout> {
    let element_size = chunk.pop().unwrap_or_default();
    if element_size == 0 || chunk.contains(&0) {
        return Err(Error::damaged(format!("chunks have the shape {chunk:?} with {element_size} bytes a cell")));
    }
    Ok(StoredLayout::Chunked { chunk, element_size, index })
}

fn chunked_of_version_4(mut cursor: Cursor<'_>) -> Result<StoredLayout> {
    let (flags, rank, width) = (cursor.u8()?, cursor.u8()?, cursor.u8()?);
    let lengths = lengths(&mut cursor, rank, usize::from(width))?;
    let kind = cursor.u8()?;
    let plain_edges = flags & PLAIN_EDGES != 0;
    let mut single = None;
    match kind {
        1 if flags & SINGLE_IS_FILTERED != 0 => single = Some((cursor.length()?, cursor.u32()?)),
        1 | 2 => {}
        3 => cursor.skip(1)?,
        4 => cursor.skip(5)?,
        5 => cursor.skip(6)?,
        _ => return Err(Error::unsupported(format!("a dataset has the unknown index of chunks {kind}"))),
    }
    let Some(address) = cursor.address()? else {
        return chunked(lengths, ChunkIndex::Empty);
    };
    let index = match kind {
        1 => ChunkIndex::Single {
            address,
            length: single.map(|(length, _)| length),
            filter_mask: single.map(|(_, mask)| mask).unwrap_or_default(),
        },
        2 => ChunkIndex::Implicit { address },
        3 => ChunkIndex::FixedArray { address, plain_edges },
        4 => ChunkIndex::ExtensibleArray { address, plain_edges },
        _ => ChunkIndex::BTree2 { address, plain_edges },
    };
    chunked(lengths, index)
}
