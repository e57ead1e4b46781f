//! HDF5 files, which NetCDF-4 files are too.
//!
//! Superblocks of version 0 to 3, both forms of groups, object headers and attributes, and all indexes of chunks are
//! read. Files that were written in several parts, filters inside fractal heaps and the sources of virtual datasets
//! are not.

mod attributes;
mod btree1;
mod btree2;
mod checksum;
mod chunks;
mod dataset;
mod dataspace;
mod datatype;
mod element;
mod extensible_array;
mod fixed_array;
mod fractal_heap;
mod header;
mod heaps;
mod layout;
mod links;
mod properties;
mod reader;
mod scales;
mod shared;
mod superblock;
mod tree;
mod values;

use crate::error::Result;
use crate::model::{ChunkEntry, ForeignDataset, ForeignFile};
use crate::source::ByteSource;
use attributes::Access;
use reader::Reader;
use shared::SharedHeaps;
use std::sync::Arc;
use superblock::Superblock;

/// An HDF5 file whose metadata can be read.
#[derive(Debug)]
pub struct Hdf5File {
    reader: Reader,
    root: u64,
    shared: SharedHeaps,
}

impl Hdf5File {
    /// Reads the superblock of `source`. Fails with the kind `Format` if it is no HDF5 file.
    pub fn open(source: Arc<dyn ByteSource>) -> Result<Self> {
        let superblock = Superblock::read(source.as_ref())?;
        let reader = Reader::new(source, superblock.base, superblock.widths);
        let budget = reader.budget();
        if let Some(address) = superblock.driver
            && reader.bytes(&budget, address, 16, "driver block")?.get(8..12) == Some(b"NCSA")
        {
            return Err(shared::split_file());
        }
        let shared = match superblock.extension {
            Some(address) => shared::read_extension(&reader, &budget, address)?,
            None => SharedHeaps::default(),
        };
        Ok(Self { reader, root: superblock.root, shared })
    }

    /// All groups and datasets. The chunks of datasets are left to [`Self::for_each_chunk`].
    pub fn tree(&self) -> Result<ForeignFile> {
        let budget = self.reader.budget();
        let access = Access { reader: &self.reader, budget: &budget, shared: &self.shared };
        tree::read(access, self.root)
    }

    /// Calls `f` with each stored chunk of `dataset`, in the order of its index. An error of `f` ends the walk.
    ///
    /// Memory holds one path of the index at a time. Chunks that lie outside the present shape are left out.
    pub fn for_each_chunk(&self, dataset: &ForeignDataset, f: &mut dyn FnMut(ChunkEntry) -> Result<()>) -> Result<()> {
        chunks::for_each_chunk(&self.reader, dataset, f)
    }
}
