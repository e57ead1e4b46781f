//! The index of foreign files: which datasets a file of HDF5, NetCDF or NumPy, or a folder of Zarr, holds, and where their
//! bytes lie.
//!
//! The crate reads metadata only. It never reads or decodes the bytes of a chunk; of an object that holds several it reads the
//! index. What it finds is a tree of plain structures ([`model`]); the entries of a chunk index are streamed, since a dataset may
//! have millions of them.
//!
//! ```text
//! ByteSource --> Hdf5File::open --> tree()            ForeignFile: groups, datasets, attributes, layouts
//!                               \-> for_each_chunk()  ChunkEntry: place, offset, length, filter mask
//!            --> netcdf3::tree                         ForeignFile
//!            --> npy::dataset                          ForeignDataset
//! a folder   --> zarr::tree                            ForeignFile
//!                zarr::for_each_chunk                  ObjectEntry: place, offset, length, state of the object
//! ```
//!
//! Files are not trusted:
//!
//! 1. Every length is checked against the file before memory is allocated.
//! 2. Every walk has a budget of bytes, in proportion to the file, so that circles in a file end in an error.
//! 3. Depths of groups and datatypes are bounded.
//! 4. An object that cannot be read becomes a [`model::Refused`] with the reason; its siblings are read.

mod budget;
mod cursor;
mod error;
pub mod hdf5;
pub mod model;
pub mod netcdf3;
pub mod npy;
mod source;
pub mod zarr;

pub use error::{Error, ErrorKind, Result};
pub use hdf5::Hdf5File;
pub use source::{ByteSource, FileSource};
