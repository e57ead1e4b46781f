//! External fragments: dense fragments whose cells lie in files of another format, which are never written.
//!
//! Such a fragment has the header, the root and the footer of a native one. In place of pages it has tables that say where the
//! chunks of the foreign files lie, how they are packed, and how an attribute's values are decoded from them
//! (`docs/format/external.md`).
//!
//! - [`ChunkGrid`]: the chunks over the box. A chunk is a tile, and one block.
//! - `table`: sources, pages, which page holds which tile.
//! - `value`, `decode`: records of a page, and the steps from there to an attribute's values.
//! - `bytes`: all sources as one space of offsets.
//! - `index`, `tiles`: the open fragment, as a [`super::TileSource`].
//! - `writer`: writes one.

mod bytes;
mod decode;
mod grid;
mod index;
mod table;
mod tiles;
mod value;
mod writer;

pub use grid::ChunkGrid;
pub(super) use index::External;
pub use table::{ChunkKeys, ForeignPage, ForeignSource, OWN_SOURCE};
pub use tiles::ExternalFragment;
pub use value::{DecodingStep, FloatBits, ForeignField, StoredValue, TextPadding, ValueKind};
pub use writer::{ExternalSpec, ExternalWriter, TilePage};
