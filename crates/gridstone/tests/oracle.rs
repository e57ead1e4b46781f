//! Random histories of random arrays against the naive oracle: in memory, on disk, and on a storage that fails.

use gridstone::storage::{Durability, LocalStorage, MemoryStorage, Storage};
use gridstone_testkit::{Case, Session, Size, cases};
use proptest::prelude::*;
use std::sync::Arc;

/// `usual` cases, scaled as `PROPTEST_CASES` is to proptest's own default of 256.
fn config(usual: u32) -> ProptestConfig {
    let asked: u32 = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(256);
    let cases = (u64::from(usual) * u64::from(asked) / 256).max(1) as u32;
    ProptestConfig { cases, max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() }
}

fn in_memory(case: &Case, faults: bool) {
    Session::new(case, Arc::new(MemoryStorage::new()), faults).run(case);
}

proptest! {
    #![proptest_config(config(6_000))]
    #[test]
    fn tiny_arrays_agree(case in cases(Size::Tiny, 10)) {
        in_memory(&case, false);
    }
}

proptest! {
    #![proptest_config(config(40))]
    #[test]
    fn long_histories_agree(case in cases(Size::Tiny, 160)) {
        in_memory(&case, false);
    }
}

proptest! {
    #![proptest_config(config(100))]
    #[test]
    fn arrays_of_many_blocks_agree(case in cases(Size::Blocks, 7)) {
        in_memory(&case, false);
    }
}

proptest! {
    #![proptest_config(config(3_000))]
    #[test]
    fn what_fails_is_all_or_nothing(case in cases(Size::Tiny, 10)) {
        in_memory(&case, true);
    }
}

proptest! {
    #![proptest_config(config(40))]
    #[test]
    fn what_fails_with_many_blocks_is_all_or_nothing(case in cases(Size::Blocks, 6)) {
        in_memory(&case, true);
    }
}

proptest! {
    #![proptest_config(config(250))]
    #[test]
    fn arrays_on_disk_agree(case in cases(Size::Tiny, 10), faults in any::<bool>()) {
        on_disk(&case, faults);
    }
}

fn on_disk(case: &Case, faults: bool) {
    let folder = crate::scratch::Folder::new("oracle");
    let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(folder.path(), Durability::Close).unwrap());
    Session::new(case, storage, faults).run(case);
}
