//! Floor `engine`: the public face: contexts, stores, arrays.
//!
//! Handles are cheap, safe to share between threads, and pinned to an immutable snapshot that `refresh` and one's own
//! commits move forward. Nothing below this floor holds global state.

mod array;
mod background;
mod call;
mod consolidate;
mod context;
mod group;
mod listing;
mod open;
mod points;
mod staged;
mod writer;

pub use crate::base::limits::BlockCells;
pub use crate::maintain::{Damage, Strategy, VerifyReport};
pub use crate::query::{Cells, Dedup, ReadOrder, Scan};
pub use crate::runtime::{Arena, CancelFlag};
pub use crate::storage::Durability;
pub use crate::tile::{Column, ColumnView};
pub use array::{Array, CellData, DenseData, ReadBox};
pub use background::{AutoConsolidate, Consolidating};
pub use call::Call;
pub use consolidate::{ConsolidateReport, MergeListing, Selection, parse_strategy};
pub use context::{Context, Options};
pub use group::Group;
pub use listing::{FragmentListing, TileListing, VersionListing};
pub use open::{At, Opened, create_array, create_array_on, create_group, delete_store, exists, open, open_on};
pub use staged::Staged;
pub use writer::Writer;
