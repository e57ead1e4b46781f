//! Floor `fragment`: one immutable file of cells: its format, its index, its reader and its writer.
//!
//! Sans-I/O: works over [`crate::base::ByteSource`] and [`crate::base::ByteSink`] and never sees a path. The format is
//! specified bit by bit in `docs/format/fragment.md`.

pub(crate) mod box_index;
mod box_runs;
mod chunk;
mod copy;
mod dense;
mod description;
mod encode;
pub mod external;
mod format;
mod index;
mod mask;
mod reader;
mod rename;
mod root;
mod sample;
mod source;
mod statistics;
mod stripe;
mod value_bounds;
mod writer;

pub use chunk::ChunkedBlock;
pub use dense::{AsStored, DenseFragment};
#[cfg(test)]
pub(crate) use description::EXTERNAL_PART;
pub use description::{Description, FragmentKind, FragmentOrder, Location, Part, Staged};
pub use encode::{Cells, EncodedPage, EncodedTile, Packing, PageBytes, SparseShape, encode_tile, sparse_shape};
pub use external::{ExternalFragment, ExternalSpec, ExternalWriter, ForeignSource};
pub use format::CHUNK_BYTES;
pub use mask::Mask;
pub use reader::{BlockRef, Fragment};
pub use rename::{HEADER_BYTES, renamed_header, renamed_mask};
pub use root::{Field, Role, Root, Section, StripeInfo};
pub use sample::sampled;
pub use source::{BlockSource, StoredBlock, StoredPart, TileSource, TileSources};
pub use stripe::{IndexBox, Keys, Stripe};
pub use value_bounds::{ValueBounds, ValueSpread};
pub use writer::{FragmentSpec, FragmentWriter, Written};
