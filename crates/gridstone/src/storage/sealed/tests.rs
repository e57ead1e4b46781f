//! The promises of sealing, object by object: the same bytes back, or an error of the right kind.

use super::header::{HEADER_BYTES, SEGMENT_LOG2};
use super::*;
use crate::base::{Id, Key, Keys};
use crate::runtime::SystemEntropy;
use crate::storage::{CountingStorage, Durability, LocalStorage, MemoryStorage, Operation, conformance};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Mutex;

const SEGMENT: usize = 1 << SEGMENT_LOG2;
const NAME: &str = "_data/a.frag";

fn key(byte: u8) -> Key {
    Key::from_slice(&[byte; 32]).unwrap()
}

fn ring(byte: u8) -> Arc<KeyRing> {
    Arc::new(KeyRing::new(Arc::new(key(byte))))
}

fn over(inner: &MemoryStorage, sealing: Sealing) -> SealedStorage {
    SealedStorage::new(Arc::new(inner.clone()), sealing, Arc::new(SystemEntropy))
}

fn pair() -> (MemoryStorage, SealedStorage) {
    let inner = MemoryStorage::new();
    let sealed = over(&inner, Sealing::Always(ring(7)));
    (inner, sealed)
}

fn counted(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 % 251) as u8).collect()
}

fn lengths() -> [usize; 9] {
    [0, 1, 100, SEGMENT - 1, SEGMENT, SEGMENT + 1, 2 * SEGMENT, 2 * SEGMENT + 5, 5 * SEGMENT - 1]
}

#[test]
fn sealing_changes_nothing_for_those_above() {
    let make = |sealing: fn() -> Sealing| move || Arc::new(over(&MemoryStorage::new(), sealing())) as Arc<dyn Storage>;
    conformance::check(&make(|| Sealing::Always(ring(1))));
    conformance::check(&make(|| Sealing::AsFound(ring(1))));
    conformance::check(&make(|| Sealing::Without));
}

#[test]
fn sealing_changes_nothing_on_disk() {
    let root = std::env::temp_dir().join(format!("gridstone-sealed-{}", SystemEntropy.id()));
    conformance::check(&|| {
        let local = LocalStorage::new(root.join(SystemEntropy.id().to_string()), Durability::Close).unwrap();
        Arc::new(SealedStorage::new(Arc::new(local), Sealing::Always(ring(1)), Arc::new(SystemEntropy)))
    });
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn objects_of_every_length_come_back_however_they_were_written() {
    for len in lengths() {
        let (inner, sealed) = pair();
        let content = counted(len);
        sealed.put("_log/1", &content).unwrap();
        for (i, piece) in
            [1, 7, 4096, SEGMENT - 1, SEGMENT, SEGMENT + 1, 3 * SEGMENT, usize::MAX].into_iter().enumerate()
        {
            if piece == 1 && len > 2 * SEGMENT {
                continue;
            }
            let name = format!("_data/{i}.frag");
            let mut sink = sealed.create(&name).unwrap();
            content.chunks(piece.min(len.max(1))).for_each(|bytes| sink.write(bytes).unwrap());
            sink.finish().unwrap();
            assert_eq!(sealed.read_all(&name).unwrap(), content, "{len} in pieces of {piece}");
            assert_eq!(inner.read_all(&name).unwrap().len(), inner.read_all("_log/1").unwrap().len());
        }
        let segments = len.div_ceil(SEGMENT).max(1);
        assert_eq!(inner.read_all("_log/1").unwrap().len(), HEADER_BYTES + len + 16 * segments);
        assert_eq!(sealed.read_all("_log/1").unwrap(), content);
        assert_eq!(sealed.open("_log/1").unwrap().len(), len as u64);
    }
}

proptest! {
    #[test]
    fn any_ranges_are_read(len in 0..4 * SEGMENT, at in prop::collection::vec((0.0..1.0f64, 0.0..1.0f64), 0..8)) {
        let (_, sealed) = pair();
        let content = counted(len);
        sealed.put(NAME, &content).unwrap();
        let source = sealed.open(NAME).unwrap();
        let range = |(from, part): &(f64, f64)| {
            let offset = (len as f64 * from) as usize;
            // Squared: short ranges are the usual ones.
            ByteRange::new(offset as u64, ((len - offset) as f64 * part * part) as u64)
        };
        let ranges: Vec<ByteRange> = at.iter().map(range).collect();
        for (range, found) in ranges.iter().zip(source.read(&ranges).unwrap()) {
            let expected = &content[range.offset as usize..range.end() as usize];
            prop_assert_eq!(&found, expected);
            let mut out = vec![0; expected.len()];
            source.read_into(range.offset, &mut out).unwrap();
            prop_assert_eq!(out, expected);
            prop_assert!(found.is_empty() || found.as_ptr() as u64 % 64 == range.offset % 64);
        }
    }
}

#[test]
fn a_long_read_into_the_callers_memory_goes_in_runs() {
    let (_, sealed) = pair();
    let content = counted(200 * SEGMENT + 77);
    sealed.put(NAME, &content).unwrap();
    let mut out = vec![0; content.len() - 10];
    sealed.open(NAME).unwrap().read_into(5, &mut out).unwrap();
    assert_eq!(out, content[5..content.len() - 5]);
}

/// Reads an object in every way; each result must be what was written.
fn read_every_way(sealed: &SealedStorage, content: &[u8]) -> Result<()> {
    let mut worst = Ok(());
    let mut out = vec![0; content.len()];
    let whole = sealed.open(NAME).and_then(|source| {
        source.read_into(0, &mut out)?;
        source.read_one(ByteRange::new(0, content.len() as u64))
    });
    for found in [sealed.read_all(NAME), whole] {
        match found {
            Ok(bytes) => assert_eq!(bytes, content, "other plaintext was given out"),
            Err(error) => worst = Err(error),
        }
    }
    worst
}

#[test]
fn every_flipped_bit_is_an_error_and_never_other_plaintext() {
    let (inner, sealed) = pair();
    let content = counted(50);
    sealed.put(NAME, &content).unwrap();
    let whole = inner.read_all(NAME).unwrap().to_vec();
    for place in 0..whole.len() {
        for bit in 0..8 {
            let mut bad = whole.clone();
            bad[place] ^= 1 << bit;
            inner.put(NAME, &bad).unwrap();
            let error = read_every_way(&sealed, &content).expect_err("a flipped bit was not noticed");
            assert_eq!(error.kind(), ErrorKind::Corruption, "byte {place}: {error}");
            assert!(error.message().contains(NAME), "{error}");
            // A reader without a key does not take it for a store that is not sealed.
            let keyless = over(&inner, Sealing::Without).read_all(NAME).unwrap_err();
            let expected = if place < HEADER_BYTES { ErrorKind::Corruption } else { ErrorKind::Access };
            assert_eq!(keyless.kind(), expected, "byte {place}: {keyless}");
        }
    }
}

/// The header's checksum is no protection, so the key binds the header's fields.
#[test]
fn a_forged_header_does_not_open_an_object() {
    let (inner, sealed) = pair();
    sealed.put(NAME, &counted(50)).unwrap();
    let whole = inner.read_all(NAME).unwrap().to_vec();
    for (place, value) in [(13, 12), (13, 13), (13, 20), (13, 21), (12, 2), (8, 1), (14, 1), (16, 0), (32, 0), (63, 0)]
    {
        let mut forged = whole.clone();
        forged[place] ^= value | 1;
        forged[place] = if place == 13 { value } else { forged[place] };
        let sum = crate::base::xxh3(&forged[8..64]);
        forged[64..72].copy_from_slice(&sum.to_le_bytes());
        inner.put(NAME, &forged).unwrap();
        let kind = sealed.read_all(NAME).unwrap_err().kind();
        let expected = match place {
            13 if value <= 20 => ErrorKind::Corruption,
            8 | 12 | 13 | 14 => ErrorKind::Unsupported,
            16 => ErrorKind::Access,
            _ => ErrorKind::Corruption,
        };
        assert_eq!(kind, expected, "byte {place}");
    }
}

#[test]
fn damage_in_a_large_object_names_the_segment_and_leaves_the_others_readable() {
    let (inner, sealed) = pair();
    let content = counted(3 * SEGMENT + 9);
    sealed.put(NAME, &content).unwrap();
    let mut bad = inner.read_all(NAME).unwrap().to_vec();
    bad[HEADER_BYTES + SEGMENT + 16 + 100] ^= 1;
    inner.put(NAME, &bad).unwrap();
    let source = sealed.open(NAME).unwrap();
    let error = source.read_one(ByteRange::new(SEGMENT as u64, 1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.message().contains("segment 1 of 4") && error.message().contains(NAME), "{error}");
    for segment in [0, 2, 3] {
        let at = segment * SEGMENT;
        assert_eq!(source.read_one(ByteRange::new(at as u64, 9)).unwrap(), content[at..at + 9]);
    }
}

#[test]
fn an_object_that_was_cut_or_grew_is_noticed() {
    for len in [0, 40, SEGMENT, 2 * SEGMENT + 5] {
        let (inner, sealed) = pair();
        let content = counted(len);
        sealed.put(NAME, &content).unwrap();
        let whole = inner.read_all(NAME).unwrap().to_vec();
        let mut longer = whole.clone();
        longer.extend_from_slice(&counted(SEGMENT + 17));
        let ends = (0..HEADER_BYTES + 60).chain([whole.len() - 1, whole.len() - 5, whole.len() - 16, whole.len() - 21]);
        let ends = ends.chain([HEADER_BYTES + SEGMENT + 16, HEADER_BYTES + 2 * (SEGMENT + 16)]);
        for end in ends.chain(whole.len() + 1..whole.len() + 40).chain([longer.len()]) {
            if end == whole.len() || end > longer.len() {
                continue;
            }
            inner.put(NAME, &longer[..end]).unwrap();
            let error = sealed.read_all(NAME).expect_err("it has another length");
            assert_eq!(error.kind(), ErrorKind::Corruption, "{len} cut to {end}: {error}");
        }
    }
}

/// Each length of an object has one plain length, so that no two objects of one content differ in it.
#[test]
fn lengths_and_plain_lengths_belong_together() {
    let header = Header { segment_log2: SEGMENT_LOG2, key: KeyId([0; 16]), salt: [0; 32] };
    let plain_len = |sealed| Segments::new(&header, sealed, "x").map(|segments| segments.plain_len).ok();
    let stride = SEGMENT as u64 + 16;
    let sealed_len = |plain: u64| 72 + plain + 16 * plain.div_ceil(SEGMENT as u64).max(1);
    let mut expected = (0..3 * SEGMENT as u64).peekable();
    for sealed in 0..sealed_len(2 * SEGMENT as u64 + 100) {
        let plain = expected.next_if(|plain| sealed_len(*plain) == sealed);
        assert_eq!(plain_len(sealed), plain, "{sealed} bytes");
    }
    assert_eq!(plain_len(72 + stride * (1 << 32)), Some(1 << 46));
    for impossible in [72 + stride + 16, 72 + stride * (1 << 32) + 17, u64::MAX] {
        assert_eq!(plain_len(impossible), None);
    }
}

#[test]
fn segments_and_objects_cannot_change_places() {
    let (inner, sealed) = pair();
    sealed.put(NAME, &counted(3 * SEGMENT)).unwrap();
    sealed.put("_data/b.frag", &counted(3 * SEGMENT)).unwrap();
    let (a, b) = (inner.read_all(NAME).unwrap(), inner.read_all("_data/b.frag").unwrap());
    let refused = |bytes: &[u8]| {
        inner.put(NAME, bytes).unwrap();
        assert_eq!(sealed.read_all(NAME).unwrap_err().kind(), ErrorKind::Corruption);
    };
    refused(&b);
    refused(&[&a[..HEADER_BYTES], &b[HEADER_BYTES..]].concat());
    refused(&[&b[..HEADER_BYTES], &a[HEADER_BYTES..]].concat());
    let part = |n: usize| &a[HEADER_BYTES + n * (SEGMENT + 16)..HEADER_BYTES + (n + 1) * (SEGMENT + 16)];
    for order in [&[1, 0, 2][..], &[0, 2, 1], &[0, 0, 2], &[0, 1], &[0, 2], &[0, 1, 2, 2], &[2]] {
        let parts: Vec<u8> = order.iter().flat_map(|n| part(*n)).copied().collect();
        refused(&[&a[..HEADER_BYTES], &parts].concat());
    }
    inner.put(NAME, &a).unwrap();
    assert_eq!(sealed.read_all(NAME).unwrap(), counted(3 * SEGMENT));
}

#[test]
fn the_same_bytes_are_never_sealed_to_the_same() {
    let (inner, sealed) = pair();
    let mut seen: Vec<Vec<u8>> = Vec::new();
    for round in 0..20 {
        let name = format!("_log/{}", round % 2);
        sealed.put(&name, &[0; 64]).unwrap();
        let bytes = inner.read_all(&name).unwrap();
        seen.extend([bytes[32..64].to_vec(), bytes[HEADER_BYTES..HEADER_BYTES + 16].to_vec()]);
        seen.push(bytes[HEADER_BYTES + 16..HEADER_BYTES + 32].to_vec());
    }
    let count = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), count);
}

#[test]
fn a_missing_or_wrong_key_is_an_access_error_that_names_both() {
    let (inner, sealed) = pair();
    sealed.put("_log/1", b"secret").unwrap();
    let (right, wrong) = (key_id(&key(7)).unwrap().to_string(), key_id(&key(8)).unwrap().to_string());
    assert_eq!(sealed.key_id().unwrap().to_string(), right);
    for sealing in [Sealing::Always(ring(8)), Sealing::AsFound(ring(8))] {
        let other = over(&inner, sealing);
        for error in [other.read_all("_log/1").map(drop).unwrap_err(), other.open("_log/1").map(drop).unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Access);
            assert!(error.message().contains(&right) && error.message().contains(&wrong), "{error}");
        }
        assert_eq!(other.key_id(), None);
    }
    let keyless = over(&inner, Sealing::Without).read_all("_log/1").unwrap_err();
    assert_eq!(keyless.kind(), ErrorKind::Access);
    assert!(keyless.message().contains(&right) && keyless.message().contains("GRIDSTONE_KEY"), "{keyless}");
}

#[test]
fn a_store_is_of_one_sort() {
    let line = b"{\"gs\":0}";
    let (inner, sealed) = pair();
    inner.put("_log/1", line).unwrap();
    let error = sealed.read_all("_log/1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Access, "{error}");
    assert!(error.message().contains("not sealed"), "{error}");
    // Once an object has been opened, one that is not sealed is foreign.
    sealed.put("_log/2", b"").unwrap();
    sealed.read_all("_log/2").unwrap();
    assert_eq!(sealed.read_all("_log/1").unwrap_err().kind(), ErrorKind::Corruption);
    // Garbage was never a store of the other sort.
    inner.put("_log/1", &[0; 500]).unwrap();
    assert_eq!(over(&inner, Sealing::Always(ring(7))).read_all("_log/1").unwrap_err().kind(), ErrorKind::Corruption);

    // Found as not sealed: it stays so, and no sealed object is accepted.
    inner.put("_log/1", line).unwrap();
    let found = over(&inner, Sealing::AsFound(ring(7)));
    assert_eq!(found.read_all("_log/1").unwrap(), &line[..]);
    assert_eq!(found.read_all("_log/2").unwrap_err().kind(), ErrorKind::Corruption);
    found.put("_log/3", line).unwrap();
    assert_eq!(inner.read_all("_log/3").unwrap(), &line[..]);
    assert_eq!(found.key_id(), None);
}

#[test]
fn what_is_written_first_is_of_the_sort_that_the_store_is() {
    for (first, sealed) in
        [(FLOOR.to_owned(), true), (log_name(1), true), (FLOOR.to_owned(), false), (log_name(1), false)]
    {
        let inner = MemoryStorage::new();
        match sealed {
            true => over(&inner, Sealing::Always(ring(7))).put(&first, b"x").unwrap(),
            false => inner.put(&first, b"{\"gs\":0}").unwrap(),
        }
        over(&inner, Sealing::AsFound(ring(7))).put(NAME, b"cells").unwrap();
        assert_eq!(inner.read_all(NAME).unwrap() != b"cells"[..], sealed, "{first}");
    }
    let inner = MemoryStorage::new();
    over(&inner, Sealing::AsFound(ring(7))).put(NAME, b"cells").unwrap();
    assert_ne!(inner.read_all(NAME).unwrap(), b"cells"[..], "a new store is sealed");
}

#[test]
fn the_hint_says_nothing_of_the_store() {
    let inner = MemoryStorage::new();
    for (hint, sealing) in
        [(&b"8"[..], Sealing::Always(ring(7))), (b"", Sealing::AsFound(ring(7))), (b"8", Sealing::Without)]
    {
        inner.put_hint(LATEST, hint).unwrap();
        assert_eq!(over(&inner, sealing).read_all(LATEST).unwrap(), hint);
    }
    over(&inner, Sealing::Always(ring(7))).put_hint(LATEST, b"9").unwrap();
    let found = over(&inner, Sealing::AsFound(ring(7)));
    assert_eq!(found.read_all(LATEST).unwrap(), "9");
    // What no key protects is left out, but for the number.
    let long = [b"12".repeat(16), b"\nand records".to_vec()].concat();
    over(&inner, Sealing::Always(ring(7))).put_hint(LATEST, &long).unwrap();
    let stored = inner.read_all(LATEST).unwrap();
    assert!(!stored.windows(7).any(|part| part == b"records"), "the hint is sealed");
    for (plain, held) in [(false, long.len()), (true, 32)] {
        if plain {
            inner.put_hint(LATEST, &long).unwrap();
        }
        for sealing in [Sealing::Always(ring(7)), Sealing::AsFound(ring(7))] {
            assert_eq!(over(&inner, sealing.clone()).read_all(LATEST).unwrap(), long[..held]);
            assert_eq!(over(&inner, sealing.clone()).read_start(LATEST, 100).unwrap(), long[..held]);
            assert_eq!(over(&inner, sealing).read_start_and_floor(LATEST, 100).0.unwrap(), long[..held]);
        }
    }
    over(&inner, Sealing::Always(ring(7))).put_hint(LATEST, b"9").unwrap();
    inner.put("_log/1", b"{\"gs\":0}").unwrap();
    assert_eq!(found.read_all("_log/1").unwrap(), "{\"gs\":0}", "a sealed hint does not make a sealed store");
}

/// Several keys, and the requests for them.
#[derive(Debug, Default)]
struct Several {
    keys: HashMap<KeyId, Key>,
    current: u8,
    asked: Mutex<Vec<Option<KeyId>>>,
}

impl Keys for Several {
    fn key(&self, id: Option<KeyId>) -> Result<Key> {
        self.asked.lock().unwrap().push(id);
        match id {
            None => Ok(key(self.current)),
            Some(id) => self.keys.get(&id).cloned().ok_or_else(|| Error::access("no such key here")),
        }
    }
}

#[test]
fn keys_rotate() {
    let inner = MemoryStorage::new();
    let several = |current: u8, held: &[u8]| {
        let keys = held.iter().map(|byte| (key_id(&key(*byte)).unwrap(), key(*byte))).collect();
        Arc::new(Several { keys, current, asked: Mutex::default() })
    };
    let with = |keys: &Arc<Several>| over(&inner, Sealing::Always(Arc::new(KeyRing::new(keys.clone()))));
    with(&several(1, &[1])).put("_log/1", b"old").unwrap();
    let both = several(2, &[1, 2]);
    let storage = with(&both);
    storage.put("_log/2", b"new").unwrap();
    for _ in 0..3 {
        assert_eq!(storage.read_all("_log/1").unwrap(), "old");
        assert_eq!(storage.read_all("_log/2").unwrap(), "new");
    }
    let id = |byte| key_id(&key(byte)).unwrap();
    assert_eq!(*both.asked.lock().unwrap(), [None, Some(id(1))], "each is asked for once");
    let late = with(&several(2, &[2]));
    assert_eq!(late.read_all("_log/2").unwrap(), "new");
    let error = late.read_all("_log/1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Access);
    assert!(!error.is_foreign(), "a key that cannot be had says nothing about the object");
    assert!(error.message().contains("no such key here") && error.message().contains(&id(1).to_string()), "{error}");
}

#[test]
fn a_small_read_fetches_its_segments_only() {
    let (inner, sealed) = pair();
    sealed.put(NAME, &counted(40 * SEGMENT)).unwrap();
    let counting = Arc::new(CountingStorage::new(Arc::new(inner)));
    let sealed = SealedStorage::new(counting.clone(), Sealing::Always(ring(7)), Arc::new(SystemEntropy));
    let source = sealed.open(NAME).unwrap();
    let reads = |ranges: &[(usize, usize)], count: u64, segments: usize| {
        counting.reset();
        let ranges: Vec<ByteRange> = ranges.iter().map(|(at, len)| ByteRange::new(*at as u64, *len as u64)).collect();
        source.read(&ranges).unwrap();
        let counts = counting.snapshot();
        assert_eq!((counts.requests, counts.bytes_read), (count, (segments * (SEGMENT + 16)) as u64), "{ranges:?}");
        assert_eq!(counts.count(Operation::Read), 1);
    };
    reads(&[(8 * SEGMENT + 4096, 4096)], 1, 1);
    reads(&[(8 * SEGMENT - 1, 2)], 1, 2);
    reads(&[(5, 10), (100, 10), (SEGMENT - 1, 1)], 1, 1);
    reads(&[(0, 1), (30 * SEGMENT, 1)], 2, 2);
    reads(&[(SEGMENT, SEGMENT)], 1, 1);
}

/// The segments that hold a start are read at once, with one byte more, and opened; the bytes behind them are not read.
#[test]
fn a_start_takes_one_read_of_its_segments() {
    let (inner, sealed) = pair();
    let content = counted(4 * SEGMENT + 7);
    sealed.put(NAME, &content).unwrap();
    let counting = Arc::new(CountingStorage::new(Arc::new(inner.clone())));
    let through = SealedStorage::new(counting.clone(), Sealing::Always(ring(7)), Arc::new(SystemEntropy));
    for (len, segments) in [(1, 1), (SEGMENT, 1), (SEGMENT + 1, 2), (4 * SEGMENT, 4)] {
        counting.reset();
        assert_eq!(through.read_start(NAME, len as u64).unwrap(), content[..len]);
        let counts = counting.snapshot();
        assert_eq!((counts.total(), counts.bytes_read), (1, (HEADER_BYTES + segments * (SEGMENT + 16) + 1) as u64));
    }
    let bytes = inner.read_all(NAME).unwrap();
    for (at, sound) in
        [(HEADER_BYTES + 5, false), (HEADER_BYTES + SEGMENT + 15, false), (HEADER_BYTES + SEGMENT + 17, true)]
    {
        let mut bad = bytes.to_vec();
        bad[at] ^= 1;
        inner.put(NAME, &bad).unwrap();
        assert_eq!(sealed.read_start(NAME, 100).is_ok(), sound, "byte {at}");
    }
    // Truncated at a segment's end: the one before is not the last.
    inner.put(NAME, &bytes[..HEADER_BYTES + SEGMENT + 16]).unwrap();
    assert_eq!(sealed.read_start(NAME, 100).unwrap_err().kind(), ErrorKind::Corruption);
    inner.put(NAME, &bytes[..HEADER_BYTES + SEGMENT + 17]).unwrap();
    assert_eq!(sealed.read_start(NAME, 100).unwrap(), content[..100], "a cut behind it is for who reads further");
}

/// An entropy that always returns the same.
#[derive(Debug)]
struct Same;

impl Entropy for Same {
    fn id(&self) -> Id {
        Id([0x42; 16])
    }

    fn secret(&self) -> Result<[u8; 32]> {
        Ok([0x42; 32])
    }
}

/// A source of randomness that always fails.
#[derive(Debug)]
struct Broken;

impl Entropy for Broken {
    fn id(&self) -> Id {
        SystemEntropy.id()
    }

    fn secret(&self) -> Result<[u8; 32]> {
        Err(Error::storage("no randomness"))
    }
}

#[test]
fn nothing_is_sealed_without_randomness() {
    let inner = MemoryStorage::new();
    let keys = Arc::new(KeyRing::new(Arc::new(key(7))));
    let sealed = SealedStorage::new(Arc::new(inner.clone()), Sealing::Always(keys), Arc::new(Broken));
    let refused = |done: Result<()>| assert_eq!(done.unwrap_err().message(), "no randomness");
    refused(sealed.put("_log/floor", b"plain text"));
    refused(sealed.put_if_absent("_log/1", b"plain text").map(drop));
    refused(sealed.put_hint("_log/latest", b"1"));
    refused(sealed.create("_data/1.frag").map(drop));
    let names = ["_log", "_data"].map(|folder| inner.list(folder).unwrap()).concat();
    assert_eq!(names, Vec::<String>::new());
}

/// The bytes are fixed by the format; the independent reader's implementation (`vectors/gsreader/seal.py`) made them.
#[test]
fn the_bytes_are_those_of_the_specification() {
    let inner = MemoryStorage::new();
    let keys = Arc::new(KeyRing::new(Arc::new(key(7))));
    let sealed = SealedStorage::new(Arc::new(inner.clone()), Sealing::Always(keys), Arc::new(Same));
    sealed.put("_log/1", b"plain text").unwrap();
    let hex: String = inner.read_all("_log/1").unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, KNOWN.concat());
}

const KNOWN: [&str; 4] = [
    "475249445345414c00000000010e000004b0462c388234aa75213951b4c46bd3",
    "4242424242424242424242424242424242424242424242424242424242424242",
    "4034b2734f97e21a",
    "808cd91237b78deeb69556fedd2614dc0eb1229f5a94ef569857",
];
