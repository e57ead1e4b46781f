//! Counters of one query: what was considered, fetched, decoded and returned. Tests assert them.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Live counters, added to from any thread.
        #[derive(Debug, Default)]
        pub struct Counters { $($(#[$doc])* pub $name: AtomicU64,)* }

        /// The counters' values at one moment.
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
        pub struct CounterSnapshot { $($(#[$doc])* pub $name: u64,)* }

        impl Counters {
            /// The values now.
            pub fn snapshot(&self) -> CounterSnapshot {
                CounterSnapshot { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }

        impl CounterSnapshot {
            /// Names and values, in a fixed order.
            pub fn entries(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

counters! {
    /// Fragments of the snapshot that the plan considered.
    fragments_considered,
    /// Fragments in the box that were not opened because a condition excluded them by the bounds of their values.
    fragments_pruned,
    /// Fragments whose index was used.
    fragments_touched,
    /// Data tiles that the plan considered.
    tiles_considered,
    /// Data tiles of which at least one block was fetched.
    tiles_read,
    /// Dense data tiles (or parts) not fetched because a newer fragment covers them.
    tiles_shadowed,
    /// Data tiles in the box that were not fetched because a condition excluded them by their statistics and boxes.
    tiles_pruned,
    /// Data tiles that aggregates took from the index alone.
    tiles_from_index,
    /// Blocks of cells on which a condition was evaluated without selecting one, so that nothing else of them was
    /// fetched.
    blocks_rejected,
    /// Data tiles that a merge copied as they are stored, without decoding them.
    tiles_copied,
    /// Blocks decoded (one attribute or dimension of one block each).
    blocks_decoded,
    /// Blocks that were copied without a merge because only one fragment has them.
    blocks_alone,
    /// Cells scanned (coordinates tested against the box, or dense cells copied).
    cells_scanned,
    /// Cells that went through a merge of several fragments.
    cells_merged,
    /// Cells returned.
    cells_returned,
    /// Requests sent to storage after coalescing.
    requests,
    /// Bytes fetched from storage.
    bytes_fetched,
    /// Bytes after decoding.
    bytes_decoded,
    /// Bytes of sorted runs written because groups passed their share of the memory budget.
    bytes_spilled,
    /// Parts of a box omitted because they are damaged.
    regions_skipped,
    /// Entries of the overlay that were applied, each once, on however many attributes. A read of a dense array with a
    /// condition counts them once for its attributes and once for the others.
    overlay_entries,
}

impl Counters {
    /// Adds `n` to one of the counters.
    pub fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}
