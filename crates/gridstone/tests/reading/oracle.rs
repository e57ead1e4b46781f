//! Random histories of random arrays against the naive oracle: in memory, on disk, and on a storage that fails.

use gridstone::storage::MemoryStorage;
use gridstone_testkit::{Case, Kind, Relaying, Session, Size, cases, on_random};
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

/// Dense fragments are read through a source whose chunks have an origin of their own, axes in another order and padded edges.
fn laid_out_anew(case: &Case, faults: bool) {
    let storage = Arc::new(MemoryStorage::new());
    Session::through(Arc::new(Relaying::default()), case, storage, faults).run(case);
}

#[test]
fn arrays_read_through_another_layout_agree() {
    on_random(1_500, cases(Size::Tiny, 10), |case| laid_out_anew(case, false));
}

#[test]
fn arrays_of_many_blocks_read_through_another_layout_agree() {
    on_random(40, cases(Size::Blocks, 7), |case| laid_out_anew(case, false));
}

#[test]
fn what_fails_in_another_layout_is_all_or_nothing() {
    on_random(500, cases(Size::Tiny, 10), |case| laid_out_anew(case, true));
}

#[test]
fn arrays_on_disk_agree() {
    on_random(250, (cases(Size::Tiny, 10), any::<bool>()), |(case, faults)| on_disk(case, *faults));
}

/// Each of these failed once, and is the least of its kind.
#[test]
fn cases_that_failed_agree() {
    let deleted_before_a_merge = Case {
        kind: Kind::Dense,
        size: Size::Tiny,
        seed: 7_872_511_800_377_082_688,
        operations: vec![
            10_959_593_956_575_120_523,
            17_220_203_904_097_012_084,
            12_791_951_056_162_259_471,
            14_880_508_728_485_821_309,
            2_414_481_499_864_560_239,
            6_868_168_132_467_278_811,
            11_691_123_084_515_321_227,
        ],
    };
    in_memory(&deleted_before_a_merge, false);
}

fn on_disk(case: &Case, faults: bool) {
    let folder = crate::support::scratch::Folder::new("oracle");
    let storage = crate::support::scratch::unsynced(folder.path());
    Session::new(case, storage, faults).run(case);
}
