//! Floor `codec`: filters, and pipelines of filters, that turn the bytes of a block into the bytes of a page.
//!
//! A filter gets bytes and an [`crate::base::Element`] (kind and width), never a datatype, and does no I/O. A pipeline
//! is named by text, `"delta,for"` or `"shuffle,zstd:3"`: encoding runs the filters from left to right, decoding from
//! right to left. Each filter is a file of this folder with `encode` beside its inverse `decode`; the file's doc is the
//! bit-exact layout. Numbers on disk are little-endian; bits are numbered from the least significant.
//!
//! ```text
//! cells --Element e0--> filter 1 --Element e1--> filter 2 --> … --> stored block
//! ```
//!
//! | name | accepts | element of its output | length | layout |
//! |---|---|---|---|---|
//! | `none` | all | the same | n | the pipeline without a filter |
//! | `shuffle` | all | byte | n | [`shuffle`] |
//! | `bitshuffle` | all | byte | n | [`bitshuffle`] |
//! | `delta` | integers | signed, same width | n | [`delta`] |
//! | `for` | all, as bit patterns | byte | packed | [`frame`] |
//! | `rle` | all, as bit patterns | byte | varies | [`rle`] |
//! | `dict` | all, as bit patterns | byte | packed | [`dictionary`] |
//! | `pco:0..=12` | integers and floats of 2, 4, 8 bytes | byte | compressed | [`pco`] |
//! | `lz4` | all | byte | compressed | [`lz4`] |
//! | `zstd:1..=22` | all | byte | compressed | [`zstd`] |
//! | `gzip:1..=12` | all | byte | compressed | [`gzip`] |
//! | `acme.xor` | all | byte | at most 2 n + 4096 | its author: [`UserFilter`] |
//!
//! [`foreign`] has the filters of chunks that other formats wrote, by names of their own.
//!
//! Invariants:
//!
//! - `decode(encode(x)) == x`, bit for bit, NaN payloads and -0.0 included.
//! - No input makes `decode` panic, hang or write past its buffer; further allocations are bounded by that buffer's
//!   length plus about two MiB. Bytes that `encode` cannot have written give an error of kind Corruption, *if* the
//!   filter can detect it: checksums are the caller's.
//! - Encoding is deterministic, [`choose`] included: no clock, no randomness.
//! - No filter lengthens its input beyond [`Filter::encoded_len_max`]: a header and a small fraction.

mod auto;
pub mod bits;
pub mod bitshuffle;
pub mod delta;
pub mod dictionary;
mod filter;
pub mod foreign;
pub mod frame;
pub mod gzip;
pub mod lz4;
pub mod pco;
mod pipeline;
mod registry;
pub mod rle;
mod rounding;
pub mod shuffle;
mod user;
mod word;
pub mod zstd;

#[cfg(test)]
mod conformance;

pub use auto::{Effort, choose};
pub use filter::{Filter, Picks};
pub use foreign::ForeignPipeline;
pub use pipeline::Pipeline;
pub use rounding::Rounding;
pub use user::{FilterFamily, UserFilter, register, register_family, registered_ids};
