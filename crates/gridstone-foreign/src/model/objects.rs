//! Chunks that are objects of their own, or several in one.

use serde::{Deserialize, Serialize};

/// A codec of a chunk that is an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectCodec {
    /// The filter as a foreign pipeline names it; with `parameters` the id of a user-defined one.
    pub name: String,
    /// The parameters of a user-defined filter.
    pub parameters: Option<String>,
}

/// The index of an object that holds several chunks: the offset and length of each, all bits set where there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardIndex {
    /// Chunks of an object along each axis.
    pub counts: Vec<u64>,
    /// Whether the index is in front of the chunks; otherwise it is behind them.
    pub at_start: bool,
    /// The order of the bytes of its numbers.
    pub big_endian: bool,
    /// Whether a CRC32C follows it.
    pub has_checksum: bool,
}

/// A chunk in an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectEntry {
    /// The chunk's number along each axis.
    pub place: Vec<u64>,
    /// The object's number along each axis.
    pub object: Vec<u64>,
    /// The offset in the object.
    pub offset: u64,
    /// Stored bytes.
    pub length: u64,
    /// Bytes of the object.
    pub object_size: u64,
    /// When the object was last changed, in microseconds since 1970, UTC.
    pub time_us: i64,
}
