//! Folders of Zarr, versions 2 and 3: groups and arrays by their metadata, and the chunks that lie in files of their own.
//!
//! ```text
//! data.zarr/ zarr.json | .zgroup               group; .zattrs has its attributes in version 2
//!     temperature/ zarr.json | .zarray         array: shape, chunks, type, codecs, fill
//!                  c/0/1 | 0.1 | 0/1           chunk, or an object of several with an index
//! ```
//!
//! 1. An array that cannot be read is refused by name, with the reason; its siblings are read.
//! 2. Which chunks there are is found by listing folders. A missing chunk is the fill.
//! 3. A link to a folder is another name of what lies there; one that leads out of the folder is refused. Links of chunks are followed,
//!    and it is for the reader to decide whether it may.

mod base64;
mod chunks;
mod codec;
mod dataset;
mod datatype;
mod fill;
mod json;
mod keys;
mod tree;
mod version2;
mod version3;

pub use chunks::for_each_chunk;

use crate::error::Result;
use crate::model::ForeignFile;
use std::path::Path;

/// The tree of the folder at `path`; an array alone is the dataset `array`.
///
/// # Errors
/// Format: it is no folder of Zarr. Io; Damaged, Unsupported: the metadata of the root.
pub fn tree(path: &Path) -> Result<ForeignFile> {
    tree::tree(path)
}
