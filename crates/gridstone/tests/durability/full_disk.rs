//! Promise: a disk that is full can be made room on: what an earlier vacuum condemned goes before anything is written, what newer fragments hide
//! goes by one small commit, and then writing works again.

use crate::support::columns::{bytes_of, view};
use crate::support::line::{create, read, write};
use crate::support::store::{SetClock, context_with, nothing_is_left, open};
use bytes::Bytes;
use gridstone::base::{ByteSink, ByteSource, Error, Result};
use gridstone::engine::{Array, At, Call, Context, Keep, Strategy, VacuumOptions};
use gridstone::runtime::SystemClock;
use gridstone::schema::Order;
use gridstone::storage::{
    CountingStorage, Fault, FaultPlan, FaultyStorage, Listed, MemoryStorage, Operation, PutOutcome, Storage, Swept,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const SIDE: i64 = 20_000;
const DAY: i64 = 86_400_000_000;

/// The sizes of what lies on a disk that holds so many bytes.
#[derive(Debug, Default)]
struct Room {
    sizes: Mutex<BTreeMap<String, u64>>,
    bytes_max: AtomicU64,
}

impl Room {
    /// Notes that `name` grows to `len` bytes, if there is room for it.
    fn take(&self, name: &str, len: u64) -> Result<()> {
        let mut sizes = self.sizes.lock().unwrap();
        let others: u64 = sizes.iter().filter(|(known, _)| *known != name).map(|(_, bytes)| bytes).sum();
        if others + len > self.bytes_max.load(Ordering::Relaxed) {
            return Err(Error::storage(format!("{name}: no space is left on the device")).without_effect());
        }
        sizes.insert(name.to_owned(), len);
        Ok(())
    }

    fn free(&self, name: &str) {
        self.sizes.lock().unwrap().remove(name);
    }

    fn taken(&self) -> u64 {
        self.sizes.lock().unwrap().values().sum()
    }

    fn set(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }
}

/// A storage in memory that is full when so many bytes lie in it.
#[derive(Debug, Clone)]
struct Disk {
    inner: MemoryStorage,
    room: Arc<Room>,
}

impl Disk {
    fn new(bytes_max: u64) -> Self {
        let room = Arc::new(Room::default());
        room.set(bytes_max);
        Self { inner: MemoryStorage::new(), room }
    }
}

/// A file that grows as it is written.
struct Growing {
    inner: Option<Box<dyn ByteSink>>,
    room: Arc<Room>,
    name: String,
    len: u64,
}

impl ByteSink for Growing {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.len += bytes.len() as u64;
        self.room.take(&self.name, self.len)?;
        self.inner.as_mut().unwrap().write(bytes)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.inner.take().unwrap().finish()
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        if self.inner.is_some() {
            self.room.free(&self.name);
        }
    }
}

impl Storage for Disk {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn now_us(&self) -> Result<i64> {
        self.inner.now_us()
    }

    fn prepare(&self) -> Result<()> {
        self.inner.prepare()
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ByteSource>> {
        self.inner.open(name)
    }

    fn read_all(&self, name: &str) -> Result<Bytes> {
        self.inner.read_all(name)
    }

    fn create(&self, name: &str) -> Result<Box<dyn ByteSink>> {
        let inner = Some(self.inner.create(name)?);
        Ok(Box::new(Growing { inner, room: self.room.clone(), name: name.to_owned(), len: 0 }))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<PutOutcome> {
        if self.inner.exists(name)? {
            return Ok(PutOutcome::Exists);
        }
        self.room.take(name, bytes.len() as u64)?;
        self.inner.put_if_absent(name, bytes)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.room.take(name, bytes.len() as u64)?;
        self.inner.put(name, bytes)
    }

    fn put_hint(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.room.take(name, bytes.len() as u64)?;
        self.inner.put_hint(name, bytes)
    }

    fn sync(&self, name: &str) -> Result<()> {
        self.inner.sync(name)
    }

    fn exists(&self, name: &str) -> Result<bool> {
        self.inner.exists(name)
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.inner.delete(name)?;
        self.room.free(name);
        Ok(())
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.inner.list(folder)
    }

    fn survey(&self, folder: &str, visit: &mut dyn FnMut(Listed)) -> Result<()> {
        self.inner.survey(folder, visit)
    }

    fn sweep(&self, folder: &str, before_us: i64, delete: bool) -> Result<Swept> {
        self.inner.sweep(folder, before_us, delete)
    }

    fn put_if_unchanged(&self, name: &str, expected: Option<&[u8]>, bytes: &[u8]) -> Result<bool> {
        self.room.take(name, bytes.len() as u64)?;
        self.inner.put_if_unchanged(name, expected, bytes)
    }

    fn remove_everything(&self) -> Result<()> {
        self.inner.remove_everything()
    }
}

fn context() -> Context {
    context_with(64, Arc::new(SystemClock))
}

fn overwrite(array: &Array, value: i64) -> Result<u64> {
    let bytes = bytes_of((0..SIDE).map(|x| x * 7 + value));
    let staged = array.stage_dense(None, &vec![("v".to_owned(), view(&bytes))], Order::Row, &Call::default())?;
    array.commit(vec![staged], None)
}

fn newest_alone() -> VacuumOptions {
    VacuumOptions { keep: Keep::Versions(1), safety_us: DAY, dry_run: false }
}

/// Again and again: written over until nothing more fits, then made room on, by a vacuum alone or after a consolidation.
#[test]
fn a_store_that_only_overwrites_shrinks_on_a_full_disk() {
    for consolidates in [false, true] {
        let disk = Disk::new(2 << 20);
        let storage: Arc<dyn Storage> = Arc::new(disk.clone());
        let array = create(&context(), &storage, "/grid", false);
        let mut value = 0;
        for round in 0..4 {
            let error = loop {
                value += 1;
                match overwrite(&array, value) {
                    Ok(_) => assert!(disk.room.taken() < 2 << 20),
                    Err(e) => break e,
                }
            };
            assert!(error.message().contains("no space"), "{error}");
            value -= 1;
            if consolidates {
                let report = array.consolidate(&Strategy::Tiered, 1 << 30, false, &Call::default()).unwrap();
                assert_eq!((report.merges[0].kind, report.after), ("hidden", 1), "round {round}: {report:?}");
            }
            let report = array.vacuum(&newest_alone(), &Call::default()).unwrap();
            assert!(report.data.bytes > 1 << 20, "round {round}: {report:?}");
            assert_eq!(storage.list("_data").unwrap().len(), 1);
            assert_eq!(read(&array).unwrap().get(&1), Some(&(7 + value)), "round {round}");
        }
        assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
    }
}

/// A vacuum that died after it had said what goes; then the disk is filled to the last byte.
#[test]
fn what_was_condemned_goes_before_anything_is_written() {
    let disk = Disk::new(u64::MAX);
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let array = create(&context(), &storage, "/grid", false);
    (1..=5).for_each(|value| _ = overwrite(&array, value).unwrap());
    let plan = FaultPlan::new();
    plan.fail_nth_of(Operation::Delete, 1, Fault::Kill);
    let dying: Arc<dyn Storage> = Arc::new(FaultyStorage::new(storage.clone(), plan));
    let dying = open(&context(), &dying, "/grid", At::Latest).unwrap();
    dying.vacuum(&newest_alone(), &Call::default()).unwrap_err();
    assert_eq!(storage.list("_data").unwrap().len(), 5);
    disk.room.set(disk.room.taken());
    let array = open(&context(), &storage, "/grid", At::Latest).unwrap();
    let report = array.vacuum(&newest_alone(), &Call::default()).unwrap();
    assert_eq!(report.data.objects, 4, "{report:?}");
    overwrite(&array, 6).unwrap();
    // Where there is no room for the rest, the error says what was done.
    disk.room.set(u64::MAX);
    (7..=9).for_each(|value| _ = overwrite(&array, value).unwrap());
    let plan = FaultPlan::new();
    plan.fail_nth_of(Operation::Delete, 1, Fault::Kill);
    let dying: Arc<dyn Storage> = Arc::new(FaultyStorage::new(storage.clone(), plan));
    let dying = open(&context(), &dying, "/grid", At::Latest).unwrap();
    dying.vacuum(&newest_alone(), &Call::default()).unwrap_err();
    overwrite(&array, 10).unwrap();
    disk.room.set(0);
    let error = array.vacuum(&newest_alone(), &Call::default()).unwrap_err();
    assert!(
        error.message().contains("though it has deleted at least 6 objects") && error.to_string().contains("no space"),
        "{error}"
    );
    assert_eq!(storage.list("_data").unwrap().len(), 2);
    disk.room.set(u64::MAX);
    array.vacuum(&newest_alone(), &Call::default()).unwrap();
    assert_eq!((storage.list("_data").unwrap().len(), read(&array).unwrap().get(&0)), (1, Some(&10)));
}

/// Where there is no room for a root, a lower floor that has one will do.
#[test]
fn a_vacuum_without_room_for_a_root_takes_a_floor_that_has_one() {
    let disk = Disk::new(u64::MAX);
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let line = create(&context_with(16, Arc::new(SystemClock)), &storage, "/line", false);
    (0..30).for_each(|value| _ = write(&line, &(0..2_000).map(|x| (x, x + value)).collect()).unwrap());
    disk.room.set(disk.room.taken() + 20_000);
    let report = line.vacuum(&VacuumOptions { safety_us: 0, ..newest_alone() }, &Call::default()).unwrap();
    assert!(report.oldest > 1 && report.oldest < report.newest && report.records.objects > 10, "{report:?}");
    disk.room.set(u64::MAX);
    line.vacuum(&VacuumOptions { safety_us: 0, ..newest_alone() }, &Call::default()).unwrap();
    nothing_is_left(&storage, "after both");
}

/// Of a bucket a thousand objects go by one request.
#[test]
fn thousands_of_versions_go_by_few_requests() {
    let clock = Arc::new(SetClock::default());
    let counted = Arc::new(CountingStorage::new(Arc::new(MemoryStorage::new())));
    let storage: Arc<dyn Storage> = counted.clone();
    let array = create(&context_with(64, clock), &storage, "/line", false);
    (1..=2_500).for_each(|value| _ = write(&array, &[(7, value)].into()).unwrap());
    let before = counted.snapshot().count(Operation::Delete);
    let options = VacuumOptions { safety_us: 0, ..newest_alone() };
    let report = array.vacuum(&options, &Call::default()).unwrap();
    assert_eq!(report.records.objects, 2_500);
    let requests = counted.snapshot().count(Operation::Delete) - before;
    assert!(requests <= 5, "{requests} requests for {} objects", report.records.objects + report.data.objects);
}
