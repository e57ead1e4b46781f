//! Floor `store`: the commit log, snapshots, the manifest and metadata. It gives the state of a store at each of its
//! versions.
//!
//! The log is the source of truth: it has one object per committed version, created only if absent. A [`Snapshot`] is
//! the state after replaying the log from the newest manifest root. Invariants:
//!
//! - versions are contiguous from the floor, and each record names its parent's checksum, so history is linear;
//! - everything that a record names was durable before the record was;
//! - the outcome of a commit is never guessed: it is committed, not committed, or a CommitUnknown error;
//! - a damaged object raises an error that names it; nothing is skipped.

mod bases;
mod cell_set;
mod commit;
mod commit_events;
mod commit_key;
mod committed;
mod conflict;
mod cut;
mod delta;
mod draft;
mod duplicates;
mod durability;
mod extension;
mod field;
mod field_metadata;
mod floor;
mod fold;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod group_commit;
mod handle;
mod hidden_arrays;
mod hint;
mod inspect;
mod inspect_rows;
mod kept;
mod kept_state;
mod key_window;
mod lease;
mod line;
mod log;
mod merge_rules;
mod names;
mod newest;
mod node_metadata;
mod node_row;
mod operation;
mod outcome;
mod overlap;
mod page;
mod page_parts;
mod path;
mod presence;
mod provisional;
mod rebuild;
mod recall;
mod receipt;
mod record;
mod retained;
mod retention;
mod root;
mod root_gs0;
mod rows;
mod schemas;
mod serializable;
mod shape;
mod shelf;
mod snapshot;
mod state;
mod times;
mod tree;
mod wording;

pub use bases::{Base, Bases, Place};
pub use cell_set::{CELLS_MAX, CellSet};
pub use commit_key::{CommitKey, Keyed, KeyedCommit};
pub use committed::Committed;
pub use conflict::{DeleteRules, HiddenRules, Queueing, Rebase, StandardRules};
pub use field::Field;
pub use floor::{Floor, UNFINISHED};
pub use group_commit::GroupCommit;
pub use handle::{CommitQueue, History, Queues, Store};
pub use hidden_arrays::check_label_form;
pub use inspect::{Affected, Flaw, Inspection, KnownArray, KnownFile, Versions};
pub use kept::{Kept, KeptFile, Owner};
pub use lease::Lease;
pub use merge_rules::MergeRules;
pub use names::Names;
pub use node_metadata::{Metadata, NodeMetadata};
pub use node_row::Child;
pub use operation::{Changes, Condemned, Operation, Recorded, Removed};
pub use outcome::RECORD_GRACE_US;
pub use overlap::Overlap;
pub use provisional::{Provisional, StagedBodies};
pub use recall::Remade;
pub use receipt::{Growth, Receipt, ReceiptRules};
pub use record::Record;
pub use retained::Retained;
pub use retention::Leases;
pub use schemas::Schemas;
pub use serializable::{Reads, Serializable};
pub use shape::RootRef;
pub use snapshot::Snapshot;
pub use state::{ArrayState, GroupState, LostBoxes};
pub use tree::Node;
pub use wording::Inline;

#[cfg(test)]
mod tests;
