//! Commits and reads under many schedules, explored by shuttle: it takes control before every operation on the
//! storage. Promised: history is one line, no commit is lost or doubled, readers see prefixes of it, whatever folds
//! and merges.

use crate::support::writers::{World, ids};
use gridstone::base::Id;
use gridstone::storage::{HookedStorage, MemoryStorage, Storage};
use gridstone::store::Snapshot;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn world(fold_versions: u64) -> World {
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let storage = HookedStorage::new(memory, |_, _| shuttle::thread::yield_now());
    World::new(Arc::new(storage), fold_versions)
}

fn explore(writers: usize, commits: usize, fold_versions: u64, schedules: usize) {
    let scenario = move || {
        let world = world(fold_versions);
        let one = world.create().unwrap();
        let spawn = |work: Box<dyn FnOnce(World, Arc<Snapshot>) -> Vec<Id> + Send>| {
            let (world, one) = (world.clone(), Arc::clone(&one));
            shuttle::thread::spawn(move || work(world, one))
        };
        let mut threads: Vec<_> = (0..writers).map(|_| spawn(Box::new(move |w, one| w.write(one, commits)))).collect();
        threads.push(spawn(Box::new(|w, one| {
            w.read(one, 2);
            Vec::new()
        })));
        let written: BTreeSet<Id> = threads.into_iter().flat_map(|t| t.join().unwrap()).collect();

        let store = world.store();
        let last = store.latest().unwrap();
        let found = ids(&last);
        assert_eq!(found.len(), writers * commits);
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), written);
        let records: Vec<_> = store.history(1, u64::MAX).unwrap().map(Result::unwrap).collect();
        assert!(records.windows(2).all(|pair| pair[1].parent == Some(pair[0].xxh3)));
        assert_eq!(records.len() as u64, last.version());
    };
    shuttle::check_random(scenario, schedules);
}

#[test]
fn two_writers_and_a_reader_without_folds() {
    explore(2, 2, 64, 2_000);
}

#[test]
fn three_writers_and_a_reader_without_folds() {
    explore(3, 2, 64, 1_000);
}

#[test]
fn two_writers_and_a_reader_that_always_fold() {
    explore(2, 3, 1, 2_000);
}

#[test]
fn three_writers_and_a_reader_that_fold_now_and_then() {
    explore(3, 3, 3, 1_000);
}

/// Who works on a store at once: each is a thread. Where a vacuum is one of them: `vacuum_schedules`.
struct Cast {
    writers: usize,
    commits: usize,
    mergers: usize,
    merges: usize,
}

/// The ids that were written and are in `id`, which may be merged.
fn written_in(id: Id, merges: &BTreeMap<Id, [Id; 2]>) -> Vec<Id> {
    match merges.get(&id) {
        Some(inputs) => inputs.iter().flat_map(|id| written_in(*id, merges)).collect(),
        None => vec![id],
    }
}

/// Writers, mergers and a reader: every write is there exactly once, in a fragment of its own or in a merged one.
fn explore_merges(cast: &'static Cast, fold_versions: u64, schedules: usize) {
    let scenario = move || {
        let world = world(fold_versions);
        let one = world.create().unwrap();
        let (w, o) = (&world, &one);
        let with = || (w.clone(), Arc::clone(o));
        let writer = |(world, one): (World, Arc<Snapshot>)| move || world.write(one, cast.commits);
        let merger = |(world, one): (World, Arc<Snapshot>)| move || world.merge(one, cast.merges);
        let writers: Vec<_> = (0..cast.writers).map(|_| shuttle::thread::spawn(writer(with()))).collect();
        let mergers: Vec<_> = (0..cast.mergers).map(|_| shuttle::thread::spawn(merger(with()))).collect();
        let (reading, from) = with();
        let reader = shuttle::thread::spawn(move || reading.count(from, 2));
        let mut written: Vec<Id> = writers.into_iter().flat_map(|t| t.join().unwrap()).collect();
        let merges: BTreeMap<Id, [Id; 2]> = mergers.into_iter().flat_map(|t| t.join().unwrap()).collect();
        reader.join().unwrap();

        let store = world.store();
        let last = store.latest().unwrap();
        let mut found: Vec<Id> = ids(&last).into_iter().flat_map(|id| written_in(id, &merges)).collect();
        found.sort();
        written.sort();
        assert_eq!(found, written);
        assert_eq!(last.version() as usize, 1 + written.len() + merges.len());
        world.count(one, 1);
    };
    shuttle::check_random(scenario, schedules);
}

#[test]
fn writers_and_a_merger_without_folds() {
    explore_merges(&Cast { writers: 2, commits: 2, mergers: 1, merges: 3 }, 64, 1_000);
}

#[test]
fn writers_and_two_mergers_that_always_fold() {
    explore_merges(&Cast { writers: 2, commits: 3, mergers: 2, merges: 2 }, 1, 1_000);
}

#[test]
fn writers_and_two_mergers_that_fold_now_and_then() {
    explore_merges(&Cast { writers: 2, commits: 3, mergers: 2, merges: 3 }, 3, 1_000);
}

#[test]
fn of_two_that_create_a_store_one_is_told_that_it_exists() {
    let scenario = || {
        let world = world(64);
        let create = || {
            let world = world.clone();
            shuttle::thread::spawn(move || world.create().map(|s| s.version()).map_err(|e| e.kind()))
        };
        let mut outcomes = [create(), create()].map(|thread| thread.join().unwrap());
        outcomes.sort_by_key(Result::is_err);
        assert_eq!(outcomes, [Ok(1), Err(gridstone::base::ErrorKind::Exists)]);
        assert_eq!(world.store().latest().unwrap().version(), 1);
    };
    shuttle::check_random(scenario, 1_000);
}
