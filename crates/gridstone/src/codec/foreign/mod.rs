//! Filters of foreign chunks: what HDF5, NetCDF-4 and Zarr store, decoded without their libraries.
//!
//! A [`ForeignPipeline`] is text as a [`super::Pipeline`] is, `"shuffle:4,deflate,fletcher32"`. It names the filters in
//! the order in which the writer of the chunk applied them; decoding runs them from right to left. The names are not
//! those of Gridstone's own filters: parameters follow colons, and a filter knows bytes and no element.
//!
//! ```text
//! cells --filter 0--> … --filter n-1--> bytes in the foreign file
//! ```
//!
//! | name | written by | encodes too | layout |
//! |---|---|---|---|
//! | `none` | | | the pipeline without a filter |
//! | `shuffle:W` | HDF5, numcodecs | yes | [`shuffle`] |
//! | `bitshuffle:W[:B][:lz4\|:zstd]` | HDF5's 32008 | yes | [`bitshuffle`] |
//! | `deflate` | HDF5, numcodecs | yes | [`deflate`] |
//! | `gzip` | Zarr, numcodecs | yes | [`gzip`] |
//! | `zstd` | HDF5's 32015, Zarr | yes | one or several Zstandard frames |
//! | `lz4` | numcodecs | yes | [`lz4`] |
//! | `lz4h5` | HDF5's 32004 | yes | [`lz4h5`] |
//! | `lzf` | HDF5's 32000 | no | [`lzf`] |
//! | `bzip2` | HDF5's 307, numcodecs | yes | [`bzip2`] |
//! | `blosc` | HDF5's 32001, Zarr | no | [`blosc`] |
//! | `fletcher32` | HDF5, numcodecs | yes | [`fletcher32`] |
//! | `crc32c` | Zarr | yes | [`crc32c`] |
//! | `delta:T[:A]` | numcodecs | yes | [`delta`] |
//! | `fixedscaleoffset:O:S:T[:A]` | numcodecs | yes | [`fixed_scale_offset`] |
//! | `hdf5.32013:PARAMETERS` | any | no | its author: [`user`] |
//!
//! Invariants:
//!
//! - The bytes are not trusted. No input makes `decode` panic, hang or write past its buffer.
//! - A result has exactly the length that the caller expects. Intermediate results are bounded by it:
//!   [`ForeignPipeline::decode`] says how.
//! - Bytes that a writer cannot have made give an error of kind Corruption where the filter can detect it, and of kind
//!   Unsupported where they are of a variant that is not read.

pub mod bitshuffle;
pub mod blosc;
pub mod bzip2;
pub mod crc32c;
pub mod deflate;
pub mod delta;
mod filter;
pub mod fixed_scale_offset;
pub mod fletcher32;
pub mod gzip;
pub mod lz4;
pub mod lz4h5;
pub mod lzf;
mod names;
mod number;
mod pipeline;
pub mod shuffle;
pub mod user;
mod window;
mod zstd;

#[cfg(test)]
mod conformance;

pub use pipeline::ForeignPipeline;
