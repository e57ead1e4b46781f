//! Writers and readers of one small store, for the tests that let many of them loose on it.

use bytes::Bytes;
use gridstone::base::{ByteRange, Clock, Entropy, ErrorKind, FileRef, Files, Id, Result};
use gridstone::fragment::{Description, FragmentKind, FragmentOrder, Location, Staged, ValueBounds};
use gridstone::runtime::SystemClock;
use gridstone::schema::{KeyRange, Schema, Subarray};
use gridstone::storage::{Storage, StoreFiles, data_name};
use gridstone::store::{Changes, Operation, Recorded, Removed, Snapshot, StandardRules, Store};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
struct Still;

impl Clock for Still {
    /// Later than any file is written: to a vacuum without a safety age all of them are old.
    fn now_us(&self) -> i64 {
        1 << 52
    }
}

/// Ids in the order in which they are asked for, so that a schedule can be repeated.
#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl Entropy for Counting {
    fn id(&self) -> Id {
        Id(u128::from(self.0.fetch_add(1, Ordering::Relaxed)).to_be_bytes())
    }

    fn secret(&self) -> Result<[u8; 32]> {
        Ok(bytemuck::cast([self.id().0, self.id().0]))
    }
}

/// What the threads of one exploration share; each has a [`Store`] of its own, as processes have.
#[derive(Clone)]
pub(crate) struct World {
    storage: Arc<dyn Storage>,
    entropy: Arc<Counting>,
    clock: Arc<dyn Clock>,
    fold_versions: u64,
    /// Whether each fragment hides those before it.
    covering: bool,
}

pub(crate) const ARRAY: Id = Id([0xff; 16]);

/// The bytes of every fragment.
const CELLS: &[u8] = b"cells";

impl World {
    /// No store yet, in `storage`.
    pub(crate) fn new(storage: Arc<dyn Storage>, fold_versions: u64) -> Self {
        Self { storage, entropy: Arc::default(), clock: Arc::new(Still), fold_versions, covering: false }
    }

    /// The same, with a clock that goes.
    pub(crate) fn timely(self) -> Self {
        Self { clock: Arc::new(SystemClock), ..self }
    }

    /// The same, where each fragment lies over all cells, so that a vacuum takes out those before it.
    pub(crate) fn covering(self) -> Self {
        Self { covering: true, ..self }
    }

    /// The same, with this clock.
    pub(crate) fn dated(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// The same, seen through `storage`, which leads to where it is kept.
    pub(crate) fn through(&self, storage: Arc<dyn Storage>) -> Self {
        Self { storage, ..self.clone() }
    }

    /// A store object that shares nothing with others but the storage.
    pub(crate) fn store(&self) -> Store {
        let (storage, entropy) = (Arc::clone(&self.storage), Arc::clone(&self.entropy));
        Store::new(storage, Arc::clone(&self.clock), entropy).with_fold_versions(self.fold_versions)
    }

    /// Creates the store, with one small array at its root.
    pub(crate) fn create(&self) -> Result<Arc<Snapshot>> {
        let text =
            r#"{"dims":[{"name":"x","dtype":"uint64","domain":["0","9"]}],"attrs":[{"name":"v","dtype":"int8"}]}"#;
        let schema = Schema::from_json(text).unwrap();
        self.store().create(Changes::new(vec![Operation::CreateArray {
            id: ARRAY,
            path: "/".into(),
            schema,
            ext: None,
        }]))
    }

    /// Where it is kept.
    pub(crate) fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    fn fragment(&self) -> Staged {
        let (id, body) = (self.entropy.id(), Bytes::from_static(CELLS));
        let description = Description {
            id,
            // Nothing that is newer hides single cells of a dense array whole: a vacuum takes none of them out.
            kind: if self.covering { FragmentKind::Dense } else { FragmentKind::Sparse },
            order: FragmentOrder { version: 0, index: 0 },
            schema: 0,
            bounds: Subarray::new(vec![KeyRange::new(1, 2)]),
            cells: 2,
            attrs: vec![0],
            location: Location { file: FileRef::Log(0), offset: 0, len: body.len() as u64 },
            over: None,
            stats: ValueBounds::default(),
            extra: Vec::new(),
            moved: Vec::new(),
        };
        Staged { description, body: Some(body) }
    }

    /// Changes that add a new fragment, and its id.
    pub(crate) fn addition(&self) -> (Id, Changes) {
        let fragment = self.fragment();
        let id = fragment.description.id;
        (id, Changes::new(vec![Operation::AddFragments { array: ARRAY, fragments: vec![fragment] }]))
    }

    /// As [`World::addition`], of a fragment that lies in a file of its own by now.
    pub(crate) fn filed_addition(&self) -> (Id, Changes) {
        let mut fragment = self.fragment();
        let id = fragment.description.id;
        let mut sink = self.storage.create(&data_name(id)).unwrap();
        sink.write(CELLS).unwrap();
        sink.finish().unwrap();
        (fragment.description.location.file, fragment.body) = (FileRef::Data(id), None);
        (id, Changes::new(vec![Operation::AddFragments { array: ARRAY, fragments: vec![fragment] }]))
    }

    /// Changes that merge the two oldest fragments of `snapshot`: what comes of it, and of what. `None` if there are no two.
    pub(crate) fn merger(&self, snapshot: &Snapshot) -> Result<Option<(Id, [Id; 2], Changes)>> {
        let first = self.mergers(snapshot)?.into_iter().next();
        Ok(first.map(|(id, [a, b], changes)| (id, [a.id, b.id], changes)))
    }

    /// The same of each two neighbours among the fragments, the oldest first.
    pub(crate) fn mergers(&self, snapshot: &Snapshot) -> Result<Vec<(Id, [Removed; 2], Changes)>> {
        let fragments = snapshot.array_by_id(ARRAY)?.fragments(None)?;
        let merger = |[a, b]: &[Arc<Description>; 2]| {
            let mut merged = self.fragment();
            let id = merged.description.id;
            (merged.description.order, merged.description.cells) = (b.order, a.cells + b.cells);
            let removed = [Removed::of(a), Removed::of(b)];
            let operation =
                Operation::ReplaceFragments { array: ARRAY, removed: removed.to_vec(), fragments: vec![merged] };
            (id, removed, Changes::new(vec![operation]))
        };
        Ok(fragments.as_chunks().0.iter().map(merger).collect())
    }

    /// The ids of the fragments of `snapshot`, by ascending order. The bytes of each are read.
    pub(crate) fn read_all(&self, snapshot: &Snapshot) -> Result<Vec<Id>> {
        let files = StoreFiles::own(Arc::clone(&self.storage));
        let mut found = Vec::new();
        for d in snapshot.array_by_id(ARRAY)?.fragments(None)? {
            let range = ByteRange::new(d.location.offset, d.location.len);
            let bytes = files.open(d.location.file)?.read_one(range)?;
            assert_eq!(&bytes[..], CELLS, "fragment {} in version {}", d.id, snapshot.version());
            found.push(d.id);
        }
        Ok(found)
    }

    /// Commits `count` fragments one by one, each after what the one before gave back; their ids.
    pub(crate) fn write(&self, mut snapshot: Arc<Snapshot>, count: usize) -> Vec<Id> {
        let store = self.store();
        let one = |_| {
            let (id, changes) = self.addition();
            snapshot = store.commit(&snapshot, changes, &mut StandardRules).unwrap();
            assert!(ids(&snapshot).contains(&id));
            id
        };
        (0..count).map(one).collect()
    }

    /// Merges the two oldest fragments, so often; what each merged fragment was made from. A merge whose inputs another
    /// took first is given up, by a Conflict and nothing else.
    pub(crate) fn merge(&self, mut snapshot: Arc<Snapshot>, rounds: usize) -> BTreeMap<Id, [Id; 2]> {
        let (store, mut merges) = (self.store(), BTreeMap::new());
        for _ in 0..rounds {
            snapshot = store.refresh(&snapshot).unwrap();
            let Some((id, of, changes)) = self.merger(&snapshot).unwrap() else { continue };
            match store.commit(&snapshot, changes, &mut StandardRules) {
                Ok(next) => {
                    snapshot = next;
                    merges.insert(id, of);
                }
                Err(e) => assert_eq!(e.kind(), ErrorKind::Conflict, "{e}"),
            }
        }
        merges
    }

    /// Follows the store, checking that at each version the cells are those that were added up to it, merged or not.
    pub(crate) fn count(&self, mut snapshot: Arc<Snapshot>, rounds: usize) {
        for _ in 0..rounds {
            let store = self.store();
            let next = store.refresh(&snapshot).unwrap();
            assert!(next.version() >= snapshot.version());
            let added = |operation: &Recorded| matches!(operation, Recorded::AddFragments { .. });
            let records = store.history(1, next.version()).unwrap().map(Result::unwrap);
            let adds = records.filter(|record| record.operations.iter().any(added)).count() as u64;
            let fragments = next.array_by_id(ARRAY).unwrap().fragments(None).unwrap();
            assert_eq!(fragments.iter().map(|d| d.cells).sum::<u64>(), 2 * adds, "version {}", next.version());
            assert!(fragments.is_sorted_by(|a, b| a.order < b.order));
            snapshot = next;
        }
    }

    /// Follows the store, checking that what it sees only grows, by whole versions.
    pub(crate) fn read(&self, mut snapshot: Arc<Snapshot>, rounds: usize) {
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

/// The fragments' ids, by ascending order.
pub(crate) fn ids(snapshot: &Snapshot) -> Vec<Id> {
    let array = snapshot.array_by_id(ARRAY).unwrap();
    array.fragments(None).unwrap().iter().map(|d| d.id).collect()
}
