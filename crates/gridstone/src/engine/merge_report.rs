//! What a consolidation did, or would do.

use crate::base::CounterSnapshot;

/// A merge that is planned, or was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeListing {
    /// "dense": boxes become dense fragments; "sparse": cells become fragments of cells; "tombstones": fragments of these become one;
    /// "hidden": fragments that newer ones hide go, and nothing is read or written.
    pub kind: &'static str,
    /// Fragments that are taken out, tombstones among them.
    pub fragments: u64,
    /// Cells read, at most.
    pub cells: u64,
    /// Bytes read, at most.
    pub bytes: u64,
    /// Fragments and bytes that will be written, about.
    pub estimate: (u64, u64),
    /// Bytes of memory that it takes, about.
    pub memory: u64,
    /// Fragments and bytes written; `None` while it is but planned.
    pub written: Option<(u64, u64)>,
}

/// What a consolidation did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConsolidateReport {
    /// The merges, in the order they were done in.
    pub merges: Vec<MergeListing>,
    /// Merges given up because another commit took out what they were to merge.
    pub overtaken: u64,
    /// Fragments of the array before.
    pub before: u64,
    /// Fragments of the array after it.
    pub after: u64,
    /// What the last consolidation of this array in the background failed with, told once.
    pub background_failure: Option<String>,
    /// What the reads of all merges did.
    pub counters: CounterSnapshot,
}
