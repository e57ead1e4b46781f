//! Promised: of commits made at once by many threads none is lost and none doubled, and each makes a version.

use crate::support::writers::{World, ids};
use gridstone::storage::{Durability, LocalStorage, MemoryStorage, Storage};
use std::collections::BTreeSet;
use std::sync::Arc;

const THREADS: usize = 8;
const COMMITS: usize = 50;

fn race(storage: Arc<dyn Storage>) {
    let world = World::new(storage, gridstone::base::limits::FOLD_VERSIONS);
    let one = world.create().unwrap();
    let written: BTreeSet<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| world.write(Arc::clone(&one), COMMITS))).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    let store = world.store();
    let last = store.latest().unwrap();
    let found = ids(&last);
    assert_eq!((found.len(), last.version()), (THREADS * COMMITS, (THREADS * COMMITS) as u64 + 1));
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), written);
    assert_eq!(store.history(1, u64::MAX).unwrap().map(Result::unwrap).count() as u64, last.version());
}

#[test]
fn in_memory() {
    race(Arc::new(MemoryStorage::new()));
}

#[test]
fn in_a_directory() {
    let folder = std::env::temp_dir().join(format!("gridstone-commits-{}", std::process::id()));
    let storage = LocalStorage::new(&folder, Durability::Full).unwrap();
    race(Arc::new(storage.clone()));
    storage.remove_everything().unwrap();
}
