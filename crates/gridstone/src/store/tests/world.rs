//! Shared by the tests: a clock that stands still, ids that count, small arrays and fragments.

use crate::base::{Clock, Entropy, FileRef, Id, Result, xxh3};
use crate::fragment::{Description, FragmentKind, FragmentOrder, Location, Staged, ValueBounds};
use crate::schema::{KeyRange, Schema, Subarray, key};
use crate::storage::{MemoryStorage, Storage, data_name};
use crate::store::{Changes, Node, Operation, Snapshot, StandardRules, Store};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// A clock that shows the time it was set to.
#[derive(Debug, Default)]
pub(crate) struct SetClock(pub(crate) AtomicI64);

impl Clock for SetClock {
    fn now_us(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Ids that differ from each other in all processes of a test.
#[derive(Debug)]
pub(crate) struct Counting;

static NEXT: AtomicU64 = AtomicU64::new(1);

pub(crate) fn fresh() -> Id {
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let word = |salt: u64| u128::from(xxh3(&[n.to_le_bytes(), salt.to_le_bytes()].concat()));
    Id(((word(1) << 64) | word(2)).to_be_bytes())
}

impl Entropy for Counting {
    fn id(&self) -> Id {
        fresh()
    }

    fn secret(&self) -> Result<[u8; 32]> {
        Ok(bytemuck::cast([self.id().0, self.id().0]))
    }
}

pub(crate) fn store_in(storage: Arc<dyn Storage>) -> Store {
    Store::new(storage, Arc::new(SetClock::default()), Arc::new(Counting))
}

/// Cells 0 ..= 99,999 in one dimension.
pub(crate) fn schema() -> Schema {
    let text = r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","99999"],"tile":"100"}],
        "attrs":[{"name":"v","dtype":"float64"},{"name":"w","dtype":"int8"}]}"#;
    Schema::from_json(text).unwrap()
}

pub(crate) fn cells(lo: i64, hi: i64) -> Subarray {
    Subarray::new(vec![KeyRange::new(key::from_signed(lo), key::from_signed(hi))])
}

fn staged(lo: i64, hi: i64, location: Location, body: Option<Bytes>) -> Staged {
    let description = Description {
        id: fresh(),
        kind: FragmentKind::Dense,
        order: FragmentOrder { version: 0, index: 0 },
        schema: 0,
        bounds: cells(lo, hi),
        cells: (hi - lo + 1) as u64,
        attrs: vec![0, 1],
        over: None,
        stats: ValueBounds::default(),
        extra: Vec::new(),
        moved: Vec::new(),
        location,
    };
    Staged { description, body }
}

/// A small fragment whose bytes go into the log; they encode its box.
pub(crate) fn inline(lo: i64, hi: i64) -> Staged {
    let body = Bytes::from(format!("cells {lo} to {hi}"));
    let location = Location { file: FileRef::Log(0), offset: 0, len: body.len() as u64 };
    staged(lo, hi, location, Some(body))
}

/// A fragment in a data file that exists.
pub(crate) fn in_file(storage: &dyn Storage, lo: i64, hi: i64) -> Staged {
    let (id, bytes) = (fresh(), format!("cells {lo} to {hi}"));
    let mut sink = storage.create(&data_name(id)).unwrap();
    sink.write(bytes.as_bytes()).unwrap();
    sink.finish().unwrap();
    staged(lo, hi, Location { file: FileRef::Data(id), offset: 0, len: bytes.len() as u64 }, None)
}

pub(crate) fn add(array: Id, fragments: Vec<Staged>) -> Changes {
    Changes::new(vec![Operation::AddFragments { array, fragments }])
}

/// A store with one array at its root, and that array's id.
pub(crate) fn with_array(storage: Arc<dyn Storage>) -> (Store, Arc<Snapshot>, Id) {
    let (store, id) = (store_in(storage), fresh());
    let create = Operation::CreateArray { id, path: "/".to_owned(), schema: schema(), ext: None };
    let snapshot = store.create(Changes::new(vec![create])).unwrap();
    (store, snapshot, id)
}

/// `count` commits of one small fragment each after `snapshot`.
pub(crate) fn commits(store: &Store, mut snapshot: Arc<Snapshot>, array: Id, count: u64) -> Arc<Snapshot> {
    for _ in 0..count {
        snapshot = add_one(store, &snapshot, array).unwrap();
    }
    snapshot
}

pub(crate) fn add_one(store: &Store, snapshot: &Arc<Snapshot>, array: Id) -> Result<Arc<Snapshot>> {
    let at = (snapshot.version() as i64 * 37) % 99_000;
    store.commit(snapshot, add(array, vec![inline(at, at + 9)]), &mut StandardRules)
}

/// Everything that a user can see in a snapshot, as text, without the locations of fragments.
pub(crate) fn seen(snapshot: &Snapshot) -> Vec<String> {
    let mut lines = vec![format!("version {} at {} of {}", snapshot.version(), snapshot.time_us(), snapshot.store())];
    for node in snapshot.nodes().unwrap() {
        lines.push(format!("{} {} {} {:?}", node.kind(), node.path(), node.id(), node.metadata().all().unwrap()));
        if let Node::Array(array) = node {
            let fragments = array.fragments(None).unwrap();
            assert_eq!(fragments.len() as u64, array.count_fragments());
            lines.push(format!("{} {:?} {:?}", array.is_hidden(), array.owner(), array.field_metadata().unwrap()));
            lines.extend(array.schemas().all().unwrap().iter().map(|schema| schema.to_stored_json()));
            lines.extend(fragments.iter().map(|d| format!("{} {:?} {}", d.id, d.order, d.bounds)));
        }
    }
    lines
}

/// Every fragment of the array has the bytes that it was committed with.
pub(crate) fn check_bytes(store: &Store, snapshot: &Snapshot, array: Id) {
    for d in snapshot.array_by_id(array).unwrap().fragments(None).unwrap() {
        let source = store.files().open(d.location.file).unwrap();
        let range = crate::base::ByteRange::new(d.location.offset, d.location.len);
        let range_of = d.bounds.ranges()[0];
        let expected = format!("cells {} to {}", key::to_signed(range_of.lo), key::to_signed(range_of.hi));
        assert_eq!(source.read_one(range).unwrap(), expected);
        assert_eq!(d.location.offset % 64, 0);
    }
}

pub(crate) fn memory() -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new())
}
