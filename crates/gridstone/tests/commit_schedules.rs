//! Commits and reads under many schedules, explored by shuttle: it takes control before every operation on the
//! storage. Promised: history is one line, no commit is lost or doubled, readers see prefixes of it, whatever folds.

use bytes::Bytes;
use gridstone::array::{Changes, Operation, Snapshot, StandardRules, Store};
use gridstone::base::{Clock, Entropy, FileRef, Id};
use gridstone::fragment::{Description, FragmentKind, FragmentOrder, Location, Staged};
use gridstone::schema::{KeyRange, Schema, Subarray};
use gridstone::storage::{HookedStorage, MemoryStorage, Storage};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now_us(&self) -> i64 {
        0
    }
}

/// Ids in the order in which they are asked for, so that a schedule can be repeated.
#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl Entropy for Counting {
    fn id(&self) -> Id {
        Id(u128::from(self.0.fetch_add(1, Ordering::Relaxed)).to_be_bytes())
    }
}

/// What the threads of one exploration share; each has a [`Store`] of its own, as processes have.
#[derive(Clone)]
struct World {
    storage: Arc<dyn Storage>,
    entropy: Arc<Counting>,
    fold_versions: u64,
}

const ARRAY: Id = Id([0xff; 16]);

impl World {
    fn new(fold_versions: u64) -> Self {
        let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let storage = Arc::new(HookedStorage::new(memory, |_, _| shuttle::thread::yield_now()));
        Self { storage, entropy: Arc::default(), fold_versions }
    }

    fn store(&self) -> Store {
        let (storage, entropy) = (Arc::clone(&self.storage), Arc::clone(&self.entropy));
        Store::new(storage, Arc::new(Still), entropy).with_fold_versions(self.fold_versions)
    }

    fn create(&self) -> gridstone::base::Result<Arc<Snapshot>> {
        let text = r#"{"dims":[{"name":"x","dtype":"uint64","domain":["0","9"]}],"attrs":[{"name":"v","dtype":"int8"}]}"#;
        let schema = Schema::from_json(text).unwrap();
        self.store().create(Changes::new(vec![Operation::CreateArray { id: ARRAY, path: "/".into(), schema }]))
    }

    fn fragment(&self) -> Staged {
        let (id, body) = (self.entropy.id(), Bytes::from_static(b"cells"));
        let description = Description {
            id,
            kind: FragmentKind::Dense,
            order: FragmentOrder { version: 0, index: 0 },
            schema: 0,
            bounds: Subarray::new(vec![KeyRange::new(1, 2)]),
            cells: 2,
            attrs: vec![0],
            location: Location { file: FileRef::Log(0), offset: 0, len: body.len() as u64 },
        };
        Staged { description, body: Some(body) }
    }

    /// Commits `count` fragments one by one, each after what the one before gave back; their ids.
    fn write(&self, mut snapshot: Arc<Snapshot>, count: usize) -> Vec<Id> {
        let store = self.store();
        let one = |_| {
            let fragment = self.fragment();
            let id = fragment.description.id;
            let changes = Changes::new(vec![Operation::AddFragments { array: ARRAY, fragments: vec![fragment] }]);
            snapshot = store.commit(&snapshot, changes, &mut StandardRules).unwrap();
            assert!(ids(&snapshot).contains(&id));
            id
        };
        (0..count).map(one).collect()
    }

    /// Follows the store, checking that what it sees only grows, by whole versions.
    fn read(&self, mut snapshot: Arc<Snapshot>, rounds: usize) {
        for _ in 0..rounds {
            let next = self.store().refresh(&snapshot).unwrap();
            let (before, after) = (ids(&snapshot), ids(&next));
            assert!(after.starts_with(&before));
            assert_eq!(after.len() as u64, next.version() - 1);
            let opened = self.store().latest().unwrap();
            assert!(opened.version() >= next.version());
            assert!(ids(&opened).starts_with(&after));
            snapshot = next;
        }
    }
}

fn ids(snapshot: &Snapshot) -> Vec<Id> {
    let array = snapshot.array_by_id(ARRAY).unwrap();
    array.fragments(None).unwrap().iter().map(|d| d.id).collect()
}

fn explore(writers: usize, commits: usize, fold_versions: u64, schedules: usize) {
    let scenario = move || {
        let world = World::new(fold_versions);
        let one = world.create().unwrap();
        let spawn = |work: Box<dyn FnOnce(World, Arc<Snapshot>) -> Vec<Id> + Send>| {
            let (world, one) = (world.clone(), Arc::clone(&one));
            shuttle::thread::spawn(move || work(world, one))
        };
        let mut threads: Vec<_> =
            (0..writers).map(|_| spawn(Box::new(move |w, one| w.write(one, commits)))).collect();
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

#[test]
fn of_two_that_create_a_store_one_is_told_that_it_exists() {
    let scenario = || {
        let world = World::new(64);
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
