//! Many writers at once, in threads: no commit is lost, none is doubled.

use super::world::*;
use crate::array::{Snapshot, Store};
use crate::base::Id;
use crate::storage::{Durability, LocalStorage, Storage};
use std::collections::BTreeSet;
use std::sync::Arc;

const THREADS: u64 = 8;
const COMMITS: u64 = 50;

fn race(storage: Arc<dyn Storage>) {
    let (_, one, id) = with_array(Arc::clone(&storage));
    let versions: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| write(&storage, &one, id))).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    let distinct: BTreeSet<u64> = versions.iter().copied().collect();
    assert_eq!(distinct, (2..=THREADS * COMMITS + 1).collect());
    let store = store_in(storage);
    let last = store.latest().unwrap();
    assert_eq!(last.array("/").unwrap().count_fragments(), THREADS * COMMITS);
    assert_eq!(store.history(1, u64::MAX).unwrap().count() as u64, last.version());
    check_bytes(&store, &last, id);
}

fn write(storage: &Arc<dyn Storage>, one: &Arc<Snapshot>, id: Id) -> Vec<u64> {
    let store: Store = store_in(Arc::clone(storage));
    let mut snapshot = Arc::clone(one);
    let commit = |_| {
        snapshot = add_one(&store, &snapshot, id).unwrap();
        snapshot.version()
    };
    (0..COMMITS).map(commit).collect()
}

#[test]
fn no_commit_is_lost_in_memory() {
    race(memory());
}

#[test]
fn no_commit_is_lost_in_a_directory() {
    let folder = std::env::temp_dir().join(format!("gridstone-races-{}", std::process::id()));
    let storage = LocalStorage::new(&folder, Durability::Full).unwrap();
    storage.prepare().unwrap();
    race(Arc::new(storage.clone()));
    storage.remove_everything().unwrap();
}
