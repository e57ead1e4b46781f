//! Floor `engine`: the public face: contexts, stores, arrays.
//!
//! The [front page](crate) says which type is for what. Functions that end in `_on` take a [`Storage`] where their namesakes
//! take a URI: a [`MemoryStorage`] of one's own in tests, or another place that objects can be kept in.
//!
//! Handles are cheap, safe to share between threads, and pinned to an immutable snapshot that `refresh` and one's own
//! commits move forward. Nothing below this floor holds global state, but for the user-defined filters that a process registers.
//!
//! # Reports as JSON
//!
//! Reports and listings have a method `to_json` for programs in other languages: one object on one line, whose keys stand in
//! the order of the method's documentation. A later release may add keys. In all of these texts:
//!
//! - Counts, sizes and versions are whole numbers from 0 to 2^64 - 1. A reader that holds numbers as 64-bit floats rounds large ones.
//! - Sizes are bytes. Times (`time_us`) are microseconds since 1970, UTC, below 0 before it.
//! - Ids are texts of 32 hexadecimal digits.
//! - A domain is a list with a list per dimension: the low and the high coordinate, inclusive, as texts.
//! - Null stands for what is not known, or is not there. Each method says what it means.

mod address;
mod aggregate;
mod answers;
mod append;
mod around;
mod array;
mod attach;
mod background;
mod boxes;
mod call;
mod children;
mod claim;
mod conditions;
mod consolidate;
mod content;
mod context;
mod copy;
mod delete;
mod evolution;
mod first_committer;
mod group;
mod health;
mod history;
mod labels;
mod lease_terms;
mod listing;
mod merge_events;
mod merge_report;
mod moves;
mod noted;
mod open;
mod parts;
mod points;
mod portions;
mod positions;
mod queue;
mod reading;
mod receipts;
mod regions;
mod report;
mod retention;
mod seal;
mod session;
mod shared_labels;
mod sorted_copies;
mod staged;
mod staged_reads;
mod transaction;
mod upgrade;
mod upkeep;
mod write;
mod writer;

#[doc(hidden)]
pub use crate::base::limits::BlockCells;
pub use crate::base::{Detail, Event, Events, Level};
pub use crate::codec::{
    FilterFamily, UserFilter, register as register_filter, register_family as register_filter_family,
    registered_ids as registered_filters,
};
#[doc(hidden)]
pub use crate::condition::{Batch, Bound, Coordinates, Facts, Verdict};
pub use crate::condition::{
    Branch, Call as AggregateCall, Comparison, Condition, Expression, Literal, Selection, When,
};
pub use crate::maintain::{
    AffectedCells, ArrayUsage, Damage, Holder, Keep, LostVersion, RepairAction, RepairOptions, RepairReport,
    StoreDamage, StoreReport, StoreUsage, Strategy, Tally, VacuumOptions, VacuumReport, VerifyReport,
};
pub use crate::query::{
    Aggregate, Answer, AxisPositions, By, Chosen, Dedup, Mask, OutColumn, PartialTable, Portions, Question, ReadOrder,
    ResultColumn, Scan, Width,
};
pub use crate::runtime::CancelFlag;
#[doc(hidden)]
pub use crate::runtime::{Arena, PerProcess};
pub use crate::storage::{Durability, MemoryStorage, Storage, StorageOptions, is_remote, key_from_environment, key_id};
pub use crate::store::{CommitKey, Field};
pub use crate::tile::{Cells, Column, ColumnView, Native};
pub use address::At;
pub use aggregate::{Counted, finish_partials, merge_partials, reduction_of_nothing};
pub use answers::{AnswerStream, Ending, select_groups};
pub use append::Appended;
pub use around::{Partial, SkippedCells};
pub use array::Array;
pub use attach::{AttachedBox, SourceState};
pub use boxes::{End, ReadBox, Span, region_of, region_within};
pub use call::Call;
pub use conditions::{ConditionListing, check_condition, select_rows};
pub use consolidate::{MergeChoice, parse_strategy};
pub use content::Naming;
pub use context::{Context, Options};
pub use copy::{CopyOptions, CopyReport, copy, copy_on};
pub use group::Group;
pub use health::{repair, repair_on, verify_on, verify_uri};
pub use history::{CellChange, Change, VersionListing};
pub use labels::Listed;
pub use listing::{FragmentListing, TileListing, tile_ends};
pub use merge_report::{ConsolidateReport, MergeListing};
pub use moves::{move_node, move_node_on};
pub use open::{
    Opened, create_array, create_array_on, create_group, create_group_on, delete_store, exists, open, open_on,
};
pub use portions::PortionsOf;
pub use receipts::{Receipt, commit_receipts, commit_receipts_on, commit_receipts_once};
pub use retention::{forget_copied, open_tagged, store_usage, tag, untag};
pub use staged::Staged;
pub use transaction::{Isolation, Transaction};
pub use upgrade::{upgrade, upgrade_on};
pub use upkeep::{AutoConsolidate, Consolidating};
pub use write::{CellData, DenseData};
pub use writer::Writer;

#[cfg(test)]
mod tests;
