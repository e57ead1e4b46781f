//! Promise: where a device is waited for, what a read needs is told before it is read, all of it and nothing that is not there.

use bytes::Bytes;
use gridstone::base::{AlignedBuf, ByteRange, ByteSink, ByteSource, Key, Keys, Pending, Result};
use gridstone::engine::{
    Array, At, Call, CellData, Column, Context, Dedup, Opened, Options, ReadOrder, create_array_on, open_on,
};
use gridstone::schema::{Datatype, Order, Schema};
use gridstone::storage::{Listed, MemoryStorage, PutOutcome, Storage, Swept};
use gridstone_testkit::Dice;
use std::sync::{Arc, Mutex};

const GRID: &str = r#"{"dims":[{"name":"y","dtype":"int64","domain":["0","1999"],"tile":"1000"},
    {"name":"x","dtype":"int64","domain":["0","999"]}],"attrs":[{"name":"v","dtype":"int64","filters":"none"}]}"#;
/// A row of it lies in ten tiles, a few kilobytes in each.
const NARROW: &str = r#"{"dims":[{"name":"y","dtype":"int64","domain":["0","1999"],"tile":"1000"},
    {"name":"x","dtype":"int64","domain":["0","999"],"tile":"100"}],"attrs":[{"name":"v","dtype":"int64","filters":"none"}]}"#;
const LINE: &str = r#"{"sparse":true,"dims":[{"name":"x","dtype":"int64","domain":["0","399999"],"tile":"100000"}],
    "attrs":[{"name":"v","dtype":"int64"}]}"#;

/// What happened to the data files.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Event {
    Told(ByteRange),
    Read(ByteRange),
}

/// A storage whose data files are waited for whenever they are read.
#[derive(Debug)]
struct Slow {
    inner: MemoryStorage,
    events: Arc<Mutex<Vec<Event>>>,
}

#[derive(Debug)]
struct SlowSource {
    inner: Arc<dyn ByteSource>,
    events: Arc<Mutex<Vec<Event>>>,
}

impl SlowSource {
    fn note(&self, ranges: &[ByteRange], event: impl Fn(ByteRange) -> Event) {
        self.events.lock().unwrap().extend(ranges.iter().map(|range| event(*range)));
    }
}

impl ByteSource for SlowSource {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn submit(&self, ranges: &[ByteRange]) -> Result<Box<dyn Pending + '_>> {
        self.note(ranges, Event::Read);
        self.inner.submit(ranges)
    }

    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.note(&[ByteRange::new(offset, out.len() as u64)], Event::Read);
        self.inner.read_into(offset, out)
    }

    fn is_cold(&self) -> bool {
        true
    }

    fn prefetch(&self, ranges: &[ByteRange]) {
        self.note(ranges, Event::Told);
        assert!(ranges.iter().all(|range| range.end() <= self.len()), "{ranges:?} of {}", self.len());
    }
}

impl Storage for Slow {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn prepare(&self) -> Result<()> {
        self.inner.prepare()
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ByteSource>> {
        let inner = self.inner.open(name)?;
        Ok(Arc::new(SlowSource { inner, events: self.events.clone() }))
    }

    fn read_all(&self, name: &str) -> Result<Bytes> {
        self.inner.read_all(name)
    }

    fn create(&self, name: &str) -> Result<Box<dyn ByteSink>> {
        self.inner.create(name)
    }

    fn now_us(&self) -> Result<i64> {
        self.inner.now_us()
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<PutOutcome> {
        self.inner.put_if_absent(name, bytes)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.inner.put(name, bytes)
    }

    fn put_hint(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.inner.put_hint(name, bytes)
    }

    fn sync(&self, name: &str) -> Result<()> {
        self.inner.sync(name)
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.inner.delete(name)
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
        self.inner.put_if_unchanged(name, expected, bytes)
    }

    fn exists(&self, name: &str) -> Result<bool> {
        self.inner.exists(name)
    }

    fn remove_everything(&self) -> Result<()> {
        self.inner.remove_everything()
    }
}

fn context(sealed: bool) -> Context {
    let key = sealed.then(|| Arc::new(Key::from_slice(&[7; 32]).unwrap()) as Arc<dyn Keys>);
    Context::new(&Options { threads: Some(1), key, ..Options::default() }).unwrap()
}

/// Values that no filter makes smaller.
fn noise(count: i64) -> Column {
    let mut dice = Dice::new(8);
    let bytes: Vec<u8> = (0..count).flat_map(|_| dice.word().to_le_bytes()).collect();
    Column::new(Datatype::Int64, AlignedBuf::from_slice(&bytes), None, None).unwrap()
}

/// An array of one fragment of some megabytes in a storage that is slow from now on, and what happens to its data file.
fn made(schema: &str, sealed: bool) -> (Array, Arc<Mutex<Vec<Event>>>) {
    let (inner, schema) = (MemoryStorage::new(), Schema::from_json(schema).unwrap());
    let array = create_array_on(&context(sealed), Arc::new(inner.clone()), "/", schema.clone(), false).unwrap();
    let staged = if schema.sparse() {
        let x: Vec<u8> = (0..400_000i64).flat_map(i64::to_le_bytes).collect();
        let x = Column::new(Datatype::Int64, AlignedBuf::from_slice(&x), None, None).unwrap();
        let v = noise(400_000);
        let attrs = vec![("v".to_owned(), v.view())];
        let data = CellData { dims: vec![x.view()], attrs, sorted: true, dedup: Dedup::Error };
        array.stage_cells(data, &Call::default()).unwrap()
    } else {
        let v = noise(2_000_000);
        array.stage_dense(None, &vec![("v".to_owned(), v.view())], Order::Row, &Call::default()).unwrap()
    };
    array.commit(vec![staged], None).unwrap();
    let events = Arc::new(Mutex::new(Vec::new()));
    let slow: Arc<dyn Storage> = Arc::new(Slow { inner, events: events.clone() });
    match open_on(&context(sealed), slow, "/", false, At::Latest).unwrap() {
        Opened::Array(array) => (array, events),
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

/// Whether every byte of `range` was told.
fn is_covered(range: ByteRange, told: &[ByteRange]) -> bool {
    let mut at = range.offset;
    while at < range.end() {
        let Some(next) = told.iter().filter(|t| t.offset <= at && at < t.end()).map(|t| t.end()).max() else {
            return false;
        };
        at = next;
    }
    true
}

#[test]
fn what_a_read_needs_is_told_before_it_is_read() {
    let sub =
        |rows: (i64, i64)| Some(vec![(rows.0.to_string(), rows.1.to_string()), ("0".to_owned(), "999".to_owned())]);
    let reads = [(GRID, sub((100, 1_900)), 1_801_000), (NARROW, sub((5, 5)), 1_000), (LINE, None, 400_000)];
    for ((schema, sub, cells), sealed) in reads.iter().flat_map(|read| [(read, false), (read, true)]) {
        let (array, events) = made(schema, sealed);
        let (found, ..) = array.read(sub.as_deref(), None, ReadOrder::Any, &Call::default()).unwrap();
        assert_eq!(found.count, *cells);
        let (mut told, mut bytes, mut untold) = (Vec::new(), 0, Vec::new());
        for event in events.lock().unwrap().iter() {
            match *event {
                Event::Told(range) => told.push(range),
                Event::Read(range) if is_covered(range, &told) => bytes += range.len,
                Event::Read(range) => untold.push(range),
            }
        }
        assert!(bytes >= *cells as u64 * 8, "{bytes} bytes were told: {schema} {sealed}");
        // The header and the end of a fragment are its first two reads; with a key, the header of the sealed object before it.
        let few: u64 = untold.iter().map(|range| range.len).sum();
        assert!(untold.len() <= 3 && few <= 100_000, "untold: {untold:?}: {schema} {sealed}");
    }
}
