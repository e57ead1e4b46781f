//! The targets: functions of any bytes that must not panic and must not ask for much memory at once.
//!
//! Each says whether its input was accepted, so that the driver goes on from there. A new decoder is one more entry of
//! [`TARGETS`], with a function that gives inputs to start from.

use crate::copies::{sorted_copy, sorted_copy_corpus};
use crate::corpus::{Seed, seeds};
use crate::foreign::{FOREIGN_MAX, foreign, foreign_corpus};
use crate::foreign_files::{foreign_file, foreign_files};
use crate::receipts::{receipt, receipt_corpus};
use crate::seal;
use crate::sealed::{sealed, sealed_corpus};
use crate::stores::copied;
use gridstone::base::{Budget, Counters, Element, Error, ErrorKind, FileRef, Id, NeverCancel, Silent, xxh3};
use gridstone::codec::Pipeline;
use gridstone::fragment::{AsStored, Description, Location, Mask, Role, Root, ValueBounds};
use gridstone::maintain::verify;
use gridstone::query::{ReadContext, ReadOrder, Request, Target as ReadTarget, read_dense, read_sparse};
use gridstone::runtime::{Arena, LruCache, Pool, SystemClock, SystemEntropy};
use gridstone::schema::Schema;
use gridstone::storage::{LOG, MANIFEST, MemoryStorage, Storage, StoreFiles, data_name, log_name};
use gridstone::store::{Floor, Lease, Node, Record, RootRef, Store, fuzzing};
use gridstone_testkit::{Case, Kind, Session, Size};
use std::sync::Arc;

/// A function under attack.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Decodes the bytes; whether they were accepted.
    pub run: fn(&[u8]) -> bool,
    /// Inputs to start from.
    pub corpus: fn() -> Vec<Vec<u8>>,
    /// The most bytes that one allocation may take, for an input of so many bytes.
    pub allocation_max: fn(usize) -> usize,
}

/// What a few bytes may make the crate pco allocate, whatever the block decodes to: a table of 2^14 bins of 16 bytes, or
/// a lookback window of 2^15 values of 8 bytes.
const PCO_MAX: usize = 1 << 18;

/// A page of rows may claim as much, before it is decompressed.
fn rows_max(len: usize) -> usize {
    (64 << 20) + small(len)
}

/// A value of a row may claim as much.
fn value_max(len: usize) -> usize {
    (256 << 20) + small(len)
}

/// Every target.
pub const TARGETS: [Target; 19] = [
    Target { name: "codec", run: codec, corpus: codec_corpus, allocation_max: |len| PCO_MAX + 64 * len },
    Target { name: "foreign", run: foreign, corpus: foreign_corpus, allocation_max: |len| FOREIGN_MAX + 64 * len },
    Target {
        name: "foreign_file",
        run: foreign_file,
        corpus: foreign_files,
        allocation_max: |len| (4 << 20) + 256 * len,
    },
    Target { name: "fragment", run: fragment, corpus: fragment_corpus, allocation_max: |_| 64 << 20 },
    Target { name: "log_record", run: log_record, corpus: record_corpus, allocation_max: small },
    Target { name: "manifest_root", run: manifest_root, corpus: root_corpus, allocation_max: rows_max },
    Target { name: "manifest_rows", run: manifest_rows, corpus: rows_corpus, allocation_max: rows_max },
    Target { name: "manifest_value", run: manifest_value, corpus: value_corpus, allocation_max: value_max },
    Target { name: "manifest_page", run: manifest_page, corpus: page_corpus, allocation_max: small },
    Target { name: "hint", run: hint, corpus: hint_corpus, allocation_max: small },
    Target { name: "floor", run: floor, corpus: floor_corpus, allocation_max: small },
    Target { name: "lease", run: lease, corpus: lease_corpus, allocation_max: small },
    Target { name: "receipt", run: receipt, corpus: receipt_corpus, allocation_max: |_| 64 << 20 },
    Target { name: "sealed", run: sealed, corpus: sealed_corpus, allocation_max: small },
    Target { name: "sorted_copy", run: sorted_copy, corpus: sorted_copy_corpus, allocation_max: |_| 64 << 20 },
    Target { name: "schema", run: schema, corpus: schema_corpus, allocation_max: small },
    Target { name: "mask", run: mask, corpus: mask_corpus, allocation_max: |len| (1 << 17) + 256 * len },
    Target {
        name: "condition",
        run: condition,
        corpus: condition_corpus,
        allocation_max: |len| (1 << 20) + 4_096 * len,
    },
    Target { name: "operations", run: operations, corpus: operations_corpus, allocation_max: |_| 256 << 20 },
];

/// For what is written in JSON or in words of fixed width.
fn small(len: usize) -> usize {
    (1 << 16) + 256 * len
}

/// Whether it worked; fails on an error that damage must not give.
pub(crate) fn accepted<T>(outcome: Result<T, Error>) -> Option<T> {
    use ErrorKind::{
        Bounds, Budget, Conflict, Corruption, Exists, Input, NotFound, Schema, SnapshotExpired, Unsupported,
    };
    let expected =
        [Corruption, Unsupported, Schema, NotFound, Exists, Conflict, Input, Bounds, SnapshotExpired, Budget];
    outcome.inspect_err(|e| assert!(expected.contains(&e.kind()), "{:?}: {e}", e.kind())).ok()
}

const PIPELINES: [&str; 18] = [
    "none",
    "zstd:1",
    "lz4",
    "gzip:1",
    "delta",
    "for",
    "shuffle",
    "bitshuffle",
    "pco",
    "delta,for",
    "shuffle,zstd",
    "bitshuffle,lz4",
    "delta,pco",
    "delta,shuffle,gzip",
    "rle",
    "dict",
    "delta,rle",
    "dict,zstd",
];
const ELEMENTS: [Element; 8] = [
    Element::unsigned(1),
    Element::signed(2),
    Element::unsigned(4),
    Element::signed(8),
    Element::float(4),
    Element::float(8),
    Element::unsigned(8),
    Element::BYTE,
];

/// The fragment that the masks of the corpus lie over, and its cells.
const MASKED: (Id, u64) = (Id([7; 16]), 1_000);

/// A mask; its checksum is put right, and it is asked for as what it says it is.
fn mask(data: &[u8]) -> bool {
    let Some(len) = data.len().checked_sub(8) else { return false };
    let mut bytes = data[..len].to_vec();
    bytes.extend_from_slice(&xxh3(&data[..len]).to_le_bytes());
    let Some(rows) = data.get(32..40).and_then(|raw| raw.try_into().ok()).map(u64::from_le_bytes) else { return false };
    let Some(mask) = accepted(Mask::decode(&bytes, MASKED.0, rows, MASKED.1)) else { return false };
    let again = mask.encode(MASKED.0).unwrap();
    assert_eq!(Mask::decode(&again, MASKED.0, mask.rows(), MASKED.1).unwrap(), mask);
    true
}

fn mask_corpus() -> Vec<Vec<u8>> {
    let of = |rows: &[(u64, usize)]| {
        let mut mask = Mask::default();
        rows.iter().for_each(|(tile, row)| mask.add(*tile, 100, *row));
        mask.encode(MASKED.0).unwrap()
    };
    vec![
        of(&[(0, 0)]),
        of(&[(1, 5), (1, 6), (9, 99)]),
        of(&(0..300).map(|n| (n / 40, n as usize % 40)).collect::<Vec<_>>()),
    ]
}

/// The text of a condition: parsed, printed, parsed again, bound to a schema.
fn condition(data: &[u8]) -> bool {
    gridstone::condition::fuzz(data).unwrap();
    gridstone::condition::Condition::parse(&String::from_utf8_lossy(data)).is_ok()
}

fn condition_corpus() -> Vec<Vec<u8>> {
    let texts = [
        "i > 3 and u in (1, 5)",
        "not (f between -1 and 2.5e3) or \"d\" is not null",
        "1 < x <= 0x1f & ~ b | s == 'it''s'",
        "t >= timestamp '2020-01-01T00:00:00Z' and f != nan",
        "`u` not in (18446744073709551615, -1) and r == b'00ff'",
        "case s when 'a' then i + 1 when 'b' then null else -(u) end > 1 and if(b, x, 0) < nullif(x, 7)",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// A pipeline, an element, the length to decode to, and stored bytes.
fn codec(data: &[u8]) -> bool {
    let Some(([pipeline, element, low, high], stored)) = data.split_first_chunk::<4>() else { return false };
    let pipeline = Pipeline::parse(PIPELINES[usize::from(*pipeline) % PIPELINES.len()]).unwrap();
    let element = ELEMENTS[usize::from(*element) % ELEMENTS.len()];
    let len = usize::from(u16::from_le_bytes([*low, *high]));
    let Some(values) = accepted(pipeline.decode(stored, element, len)) else { return false };
    assert_eq!(values.len(), len);
    if let Some(again) = accepted(pipeline.encode(&values, element)) {
        assert!(pipeline.decode(&again, element, len).unwrap() == values, "other bytes came back");
    }
    true
}

fn codec_corpus() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for (p, pipeline) in PIPELINES.iter().enumerate() {
        for (e, element) in ELEMENTS.iter().enumerate() {
            // The last is one value throughout: a few bytes that become many, and are encoded again.
            for (len, step) in [(8u16, 3), (400, 3), (9_600, 3), (65_528, 0)] {
                let value = |n: u16| u64::from(n) * step + u64::from(n % 7).min(step);
                let values: Vec<u8> = (0..len / 8).flat_map(|n| value(n).to_le_bytes()).collect();
                let pipeline = Pipeline::parse(pipeline).unwrap();
                let Ok(stored) = pipeline.encode(&values, *element) else { continue };
                let [low, high] = len.to_le_bytes();
                inputs.push([&[p as u8, e as u8, low, high][..], &stored].concat());
            }
        }
    }
    inputs
}

fn seed_of(selector: u8) -> &'static Seed {
    &seeds()[usize::from(selector) % seeds().len()]
}

/// Which store, and a fragment of its array. It is opened, verified and read as it is, and sealed anew.
fn fragment(data: &[u8]) -> bool {
    let Some((selector, bytes)) = data.split_first() else { return false };
    let seed = seed_of(*selector);
    read_fragment(seed, bytes);
    let mut sealed = bytes.to_vec();
    seal::fragment(&mut sealed);
    read_fragment(seed, &sealed)
}

/// What a store would say of a fragment, if it believed it.
fn described(root: Option<Root>, bytes: &[u8], seed: &Seed) -> Description {
    let id = bytes.get(32..48).and_then(|id| id.try_into().ok()).map_or(Id([1; 16]), Id);
    let location = Location { file: FileRef::Data(Id([1; 16])), offset: 0, len: bytes.len() as u64 };
    let first = Description::clone(&seed.fragments[0].0);
    // What the first says of its values is not true of other bytes.
    let stats = ValueBounds::default();
    let Some(root) = root else { return Description { id, location, stats, ..first } };
    let attr = |role: Role| match role {
        Role::Attribute(number) => Some(number),
        Role::Dimension(_) => None,
    };
    let attrs = root.fields.iter().filter_map(|field| attr(field.role)).collect();
    Description { id, location, kind: root.kind, bounds: root.bounds, cells: root.cells, attrs, stats, ..first }
}

fn read_fragment(seed: &Seed, bytes: &[u8]) -> bool {
    let root = seal::root_of(bytes).map(|(root, ..)| root);
    let description = Arc::new(described(root, bytes, seed));
    let storage = MemoryStorage::new();
    storage.put(&data_name(Id([1; 16])), bytes).unwrap();
    let context = ReadContext {
        place: Id([2; 16]),
        pool: Arc::new(Pool::new(Some(1)).unwrap()),
        files: Arc::new(StoreFiles::own(Arc::new(storage))),
        tiles: Arc::new(AsStored),
        cache: Arc::new(LruCache::new(0)),
        budget: Arc::new(Budget::new(16 << 20)),
        arena: Arc::new(Arena::new(0)),
        counters: Arc::new(Counters::default()),
        cancel: Arc::new(NeverCancel),
        progress: Arc::new(Silent),
    };
    let report = match verify(&context, &seed.schema, std::slice::from_ref(&description)) {
        // Only then: a field names a filter that may be the user's.
        Err(e) if e.kind() == ErrorKind::Unsupported => return false,
        report => report.unwrap(),
    };
    let target = ReadTarget { array: Id([3; 16]), schema: seed.schema.clone(), fragments: vec![description] };
    let request = Request::new(&seed.schema, None, None, ReadOrder::Row).unwrap();
    let read = if seed.schema.sparse() { read_sparse } else { read_dense };
    accepted(read(&context, &target, &request)).is_some() && report.damage.is_empty()
}

fn fragment_corpus() -> Vec<Vec<u8>> {
    let of = |(n, seed): (usize, &'static Seed)| {
        seed.fragments.iter().map(move |(_, bytes)| [&[n as u8][..], bytes].concat())
    };
    seeds().iter().enumerate().flat_map(of).collect()
}

/// Which store, which of its versions, and the record of that version. The store is opened at it.
fn log_record(data: &[u8]) -> bool {
    let Some(([selector, version], bytes)) = data.split_first_chunk::<2>() else { return false };
    let seed = seed_of(*selector);
    let version = 1 + u64::from(*version) % seed.version;
    let _ = accepted(Record::decode(bytes, version));
    let sealed = seal::line(bytes, 64);
    if let Some(record) = accepted(Record::decode(&sealed, version)) {
        let file = sealed.clone().into();
        record.inline.iter().for_each(|inline| drop(accepted(record.body(inline, &file))));
    }
    let storage = copied(&seed.storage, &[LOG, MANIFEST]);
    storage.put(&log_name(version), &sealed).unwrap();
    let store = Store::new(Arc::new(storage), Arc::new(SystemClock), Arc::new(SystemEntropy));
    let Some(snapshot) = accepted(store.at_version(version)) else { return false };
    for node in accepted(snapshot.nodes()).unwrap_or_default() {
        match node {
            Node::Group(group) => drop(accepted(snapshot.children(group.path()))),
            Node::Array(array) => {
                let _ = (accepted(array.fragments(None)), accepted(array.schemas().all()));
            }
        }
    }
    true
}

fn record_corpus() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for (n, seed) in seeds().iter().enumerate() {
        for version in 1..=seed.version {
            inputs.push([&[n as u8, (version - 1) as u8][..], &seed.record(version)].concat());
        }
    }
    inputs
}

/// Which store's pages are at hand, and a manifest root.
fn manifest_root(data: &[u8]) -> bool {
    let Some((selector, bytes)) = data.split_first() else { return false };
    let storage: Arc<dyn Storage> = Arc::new(seed_of(*selector).storage.clone());
    let _ = accepted(fuzzing::manifest_root(bytes, &storage));
    let same = accepted(fuzzing::manifest_root(&seal::root(bytes), &storage));
    assert_ne!(same, Some(false), "another root came back");
    same.is_some()
}

fn root_corpus() -> Vec<Vec<u8>> {
    let of = |(n, seed): (usize, &Seed)| {
        let plain = |root: Vec<u8>| {
            let end = root.iter().position(|b| *b == b'\n').map_or(root.len(), |end| end + 18);
            [&[n as u8][..], &root[..end], &seal::plain(&root[end..])].concat()
        };
        seed.manifest(b"{").into_iter().map(plain).collect::<Vec<_>>()
    };
    seeds().iter().enumerate().flat_map(of).collect()
}

fn manifest_rows(data: &[u8]) -> bool {
    let _ = accepted(fuzzing::manifest_rows(data));
    let mut sealed = data.to_vec();
    seal::rows(&mut sealed);
    let same = accepted(fuzzing::manifest_rows(&sealed));
    assert_ne!(same, Some(false), "other rows came back");
    same.is_some()
}

/// Top pages of roots, plain and compressed.
fn rows_corpus() -> Vec<Vec<u8>> {
    let top = |root: Vec<u8>| {
        let end = root.iter().position(|b| *b == b'\n').map_or(root.len(), |end| end + 18);
        [root[end..].to_vec(), seal::plain(&root[end..])]
    };
    seeds().iter().flat_map(|seed| seed.manifest(b"{")).flat_map(top).collect()
}

fn manifest_value(data: &[u8]) -> bool {
    let _ = accepted(fuzzing::manifest_value(data));
    let mut sealed = data.to_vec();
    seal::rows(&mut sealed);
    let same = accepted(fuzzing::manifest_value(&sealed));
    assert_ne!(same, Some(false), "another value came back");
    same.is_some()
}

/// Values of rows that are objects of their own, plain and compressed.
fn value_corpus() -> Vec<Vec<u8>> {
    seeds().iter().flat_map(|seed| seed.manifest(b"GSVALUE")).flat_map(|value| [seal::plain(&value), value]).collect()
}

fn manifest_page(data: &[u8]) -> bool {
    let _ = accepted(fuzzing::manifest_page(data));
    let mut sealed = data.to_vec();
    seal::page(&mut sealed);
    let same = accepted(fuzzing::manifest_page(&sealed));
    assert_ne!(same, Some(false), "another page came back");
    same.is_some()
}

fn page_corpus() -> Vec<Vec<u8>> {
    seeds().iter().flat_map(|seed| seed.manifest(b"GSPAGE")).collect()
}

/// A number, and lines of records, as they are and with other checksums; whether either were accepted.
fn hint(data: &[u8]) -> bool {
    let encoded = |lines: &[u8]| {
        let count = fuzzing::hint(lines);
        assert!(count.is_some(), "a hint reads the same when it is encoded again");
        count.unwrap_or(0)
    };
    let whole = encoded(data);
    let Some((number, mut rest)) = data.split_first_chunk::<32>() else { return false };
    let (mut lines, mut count) = (number.to_vec(), 0);
    while let Some(end) = rest.iter().position(|b| *b == b'\n') {
        lines.extend(seal::line(&rest[..end], 1));
        rest = rest.get(end + 18..).unwrap_or_default();
        count += 1;
    }
    let sealed = encoded(&lines);
    whole > 0 || (count > 0 && sealed == count)
}

fn hint_corpus() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for seed in seeds() {
        for version in 1..=seed.version {
            let records = (1.max(version.saturating_sub(2))..=version).map(|version| seed.record(version));
            let lines = records.flat_map(|record| {
                let end = record.iter().position(|b| *b == b'\n').unwrap();
                record[..end + 18].to_vec()
            });
            inputs.push(format!("{version:<31}\n").into_bytes().into_iter().chain(lines).collect());
        }
    }
    inputs
}

fn floor(data: &[u8]) -> bool {
    let _ = accepted(Floor::decode(data));
    let Some(floor) = accepted(Floor::decode(&seal::line(data, 1))) else { return false };
    assert_eq!(Floor::decode(&floor.encode().unwrap()).unwrap(), floor);
    true
}

fn floor_corpus() -> Vec<Vec<u8>> {
    let floor = |version| Floor { version, root: RootRef { id: Id([7; 16]), version, xxh3: version ^ 0xabcd } };
    [1, 64, u64::MAX].into_iter().map(|version| floor(version).encode().unwrap()).collect()
}

fn lease(data: &[u8]) -> bool {
    let _ = accepted(Lease::decode(data));
    let Some(lease) = accepted(Lease::decode(&seal::line(data, 1))) else { return false };
    assert_eq!(Lease::decode(&lease.encode().unwrap()).unwrap(), lease);
    true
}

fn lease_corpus() -> Vec<Vec<u8>> {
    let lease = |version| Lease { version, written_us: -(version as i64), expires_us: 1 + version as i64 };
    [1, 64, u64::MAX >> 2].into_iter().map(|version| lease(version).encode().unwrap()).collect()
}

fn schema(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let Some(schema) = accepted(Schema::from_json(text)) else { return false };
    assert_eq!(Schema::from_json(&schema.to_json()).unwrap(), schema);
    true
}

fn schema_corpus() -> Vec<Vec<u8>> {
    let mut texts: Vec<Vec<u8>> = seeds().iter().map(|seed| seed.schema.to_json().into_bytes()).collect();
    for kind in [Kind::Dense, Kind::Sparse, Kind::Duplicates] {
        texts.extend((0..8).map(|n| gridstone_testkit::Plan::new(kind, Size::Tiny, n).schema.to_json().into_bytes()));
    }
    texts
}

/// The kind and the seed of an array, then a seed for each operation: what the engine says is compared with the oracle.
fn operations(data: &[u8]) -> bool {
    let Some(([kind, faults], rest)) = data.split_first_chunk::<2>() else { return false };
    let (words, _) = rest.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let Some((seed, operations)) = words.split_first() else { return false };
    let kind = [Kind::Dense, Kind::Sparse, Kind::Duplicates][usize::from(*kind) % 3];
    let operations = operations.iter().take(20).copied().collect();
    let case = Case { kind, size: Size::Tiny, seed: *seed, operations };
    Session::new(&case, Arc::new(MemoryStorage::new()), faults % 2 == 1).run(&case);
    true
}

fn operations_corpus() -> Vec<Vec<u8>> {
    (0..12u8)
        .map(|n| (0..2 + 8 * 12).map(|i| n.wrapping_mul(31).wrapping_add(i).wrapping_mul(n | 1)).collect())
        .collect()
}
