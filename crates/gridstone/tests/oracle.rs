//! Random histories of random arrays against the naive oracle: in memory, on disk, and on a storage that fails.

use gridstone::storage::MemoryStorage;
use gridstone_testkit::{Case, Session, Size, cases, on_random};
use proptest::prelude::*;
use std::sync::Arc;

fn in_memory(case: &Case, faults: bool) {
    Session::new(case, Arc::new(MemoryStorage::new()), faults).run(case);
}

#[test]
fn tiny_arrays_agree() {
    on_random(6_000, cases(Size::Tiny, 10), |case| in_memory(case, false));
}

#[test]
fn long_histories_agree() {
    on_random(40, cases(Size::Tiny, 160), |case| in_memory(case, false));
}

#[test]
fn arrays_of_many_blocks_agree() {
    on_random(100, cases(Size::Blocks, 7), |case| in_memory(case, false));
}

#[test]
fn what_fails_is_all_or_nothing() {
    on_random(3_000, cases(Size::Tiny, 10), |case| in_memory(case, true));
}

#[test]
fn what_fails_with_many_blocks_is_all_or_nothing() {
    on_random(40, cases(Size::Blocks, 6), |case| in_memory(case, true));
}

#[test]
fn arrays_on_disk_agree() {
    on_random(250, (cases(Size::Tiny, 10), any::<bool>()), |(case, faults)| on_disk(case, *faults));
}

fn on_disk(case: &Case, faults: bool) {
    let folder = crate::scratch::Folder::new("oracle");
    let storage = crate::scratch::unsynced(folder.path());
    Session::new(case, storage, faults).run(case);
}
