//! Promise: a sealed store shows nothing and takes nothing: no byte of what was written lies in the storage, whatever is
//! changed there is an error, and without the right key it does not open; with it, it is a store like any other.

use crate::support::scratch::Folder;
use gridstone::base::{AlignedBuf, Error, ErrorKind, Key, KeyId, Keys, Result};
use gridstone::engine::{
    Array, At, Call, CellData, Column, Context, Dedup, Durability, Opened, Options, ReadOrder, Strategy,
    create_array_on, key_id, open_on,
};
use gridstone::runtime::SystemEntropy;
use gridstone::schema::{Datatype, Order, Schema};
use gridstone::storage::{
    CountingStorage, FLOOR, Fault, FaultPlan, FaultyStorage, HookedStorage, KeyRing, LATEST, LocalStorage,
    MemoryStorage, Operation, SealedStorage, Sealing, Storage, log_name,
};
use gridstone_testkit::{Session, Size, cases};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

/// Written as values, names, texts and messages; all but its first byte, which some values change, must not be seen.
const MARKER: &[u8] = b"MARKMARK";
const LINE: &str = r#"{"dims":[{"name":"MARKMARKi","dtype":"int64","domain":["0","99999"],"tile":"50000"}],
    "attrs":[{"name":"v","dtype":"int64","filters":"none"}]}"#;
const POINTS: &str = r#"{"sparse":true,"capacity":100,"dims":[{"name":"x","dtype":"int64","domain":["0","99999"],"tile":"100"}],
    "attrs":[{"name":"v","dtype":"int64","filters":"none"}]}"#;

fn key(byte: u8) -> Key {
    Key::from_slice(&[byte; 32]).unwrap()
}

fn with(keys: Option<Arc<dyn Keys>>) -> Context {
    Context::new(&Options { threads: Some(2), key: keys, ..Options::default() }).unwrap()
}

fn keyed(byte: u8) -> Context {
    with(Some(Arc::new(key(byte))))
}

fn longs(values: impl IntoIterator<Item = i64>) -> Column {
    let bytes: Vec<u8> = values.into_iter().flat_map(i64::to_le_bytes).collect();
    Column::new(Datatype::Int64, AlignedBuf::from_slice(&bytes), None, None).unwrap()
}

fn created(context: &Context, storage: &Arc<dyn Storage>, path: &str, schema: &str) -> Result<Array> {
    create_array_on(context, storage.clone(), path, Schema::from_json(schema).unwrap(), false)
}

fn opened(context: &Context, storage: &Arc<dyn Storage>, path: &str, at: At) -> Result<Array> {
    match open_on(context, storage.clone(), path, at == At::Latest, at)? {
        Opened::Array(array) => Ok(array),
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

fn write_line(array: &Array, from: i64, values: &[i64]) -> Result<u64> {
    let column = longs(values.iter().copied());
    let sub = [(from.to_string(), (from + values.len() as i64 - 1).to_string())];
    let data = vec![("v".to_owned(), column.view())];
    array.commit(vec![array.stage_dense(Some(&sub), &data, Order::Row, &Call::default())?], Some("MARKMARK".to_owned()))
}

fn write_points(array: &Array, xs: &[i64], value: i64) -> Result<u64> {
    let (x, v) = (longs(xs.iter().copied()), longs(xs.iter().map(|_| value)));
    let attrs = vec![("v".to_owned(), v.view())];
    let data = CellData { dims: vec![x.view()], attrs, sorted: false, dedup: Dedup::Error };
    array.commit(vec![array.stage_cells(data, &Call::default())?], None)
}

fn values(array: &Array, sub: Option<(i64, i64)>) -> Result<Vec<i64>> {
    let sub = sub.map(|(lo, hi)| vec![(lo.to_string(), hi.to_string())]);
    let (cells, _, _) = array.read(sub.as_deref(), None, ReadOrder::Row, &Call::default())?;
    Ok(cells.attrs[0].view().values().as_chunks::<8>().0.iter().map(|w| i64::from_le_bytes(*w)).collect())
}

fn marker() -> i64 {
    i64::from_le_bytes(MARKER.try_into().unwrap())
}

fn names(storage: &dyn Storage) -> Vec<String> {
    ["_log", "_manifest", "_data", "_lease"].iter().flat_map(|folder| storage.list(folder).unwrap()).collect()
}

fn shows_marker(bytes: &[u8]) -> bool {
    bytes.windows(MARKER.len() - 1).any(|window| window == &MARKER[1..])
}

/// A dense and a sparse array in groups, values in records, files, packs and pages, metadata, a merge, 100 versions.
fn long_life(context: &Context, storage: &Arc<dyn Storage>) -> Result<(Vec<i64>, Vec<i64>)> {
    let line = created(context, storage, "/MARKMARK/line", LINE)?;
    let points = created(context, storage, "/points", POINTS)?;
    let large: Vec<i64> = (0..50_000).map(|i| if i % 3 == 0 { marker() } else { i }).collect();
    write_line(&line, 0, &large)?;
    write_line(&line, 10, &[marker(); 5])?;
    for step in 0..80 {
        points.refresh()?;
        write_points(&points, &[step, step + 1_000], marker() + step)?;
    }
    points.consolidate(&Strategy::All, 1 << 30, false, &Call::default())?;
    line.refresh()?;
    line.set_metadata(vec![("MARKMARK".to_owned(), Some("\"MARKMARK\"".to_owned()))])?;
    for step in 0..10 {
        line.set_metadata(vec![("step".to_owned(), Some(step.to_string()))])?;
    }
    let mut expected = large;
    expected[10..15].fill(marker());
    let all = (0..80).chain(0..80).map(|step| marker() + step).collect();
    Ok((expected, all))
}

#[test]
fn a_sealed_store_is_a_store_like_any_other_and_shows_nothing() {
    let folder = Folder::new("sealing");
    let local: Arc<dyn Storage> = Arc::new(LocalStorage::new(folder.path().join("a.gs"), Durability::Close).unwrap());
    for storage in [Arc::new(MemoryStorage::new()) as Arc<dyn Storage>, local] {
        let context = keyed(1);
        let (line, points) = long_life(&context, &storage).unwrap();
        let array = opened(&keyed(1), &storage, "/MARKMARK/line", At::Latest).unwrap();
        assert_eq!(array.key_id(), Some(key_id(&key(1)).unwrap()));
        assert_eq!(values(&array, Some((0, 49_999))).unwrap(), line);
        assert_eq!(array.metadata("MARKMARK").unwrap().as_deref(), Some("\"MARKMARK\""));
        assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
        let sparse = opened(&keyed(1), &storage, "/points", At::Latest).unwrap();
        assert_eq!(values(&sparse, None).unwrap(), points);
        assert_eq!(sparse.fragments().unwrap().len(), 1);
        let old = opened(&keyed(1), &storage, "/points", At::Version(40)).unwrap();
        assert_eq!(values(&old, None).unwrap().len(), 2 * 36);
        let all = names(storage.as_ref());
        assert!(all.len() > 95 && all.iter().filter(|name| name.starts_with("_manifest")).count() >= 2, "{all:?}");
        for name in all {
            let bytes = storage.read_all(&name).unwrap();
            assert!(bytes.starts_with(b"GRIDSEAL") && !shows_marker(&bytes), "{name}");
        }
    }
    // The same, not sealed, does show it: the marker is where it is looked for.
    let plain: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    long_life(&with(None), &plain).unwrap();
    let shown = names(plain.as_ref()).iter().filter(|name| shows_marker(&plain.read_all(name).unwrap())).count();
    assert!(shown > 80, "{shown} objects");
    assert_eq!(opened(&with(None), &plain, "/points", At::Latest).unwrap().key_id(), None);
}

/// Every file of a folder is looked at before each operation: those that are being written, too.
#[test]
fn no_file_ever_holds_plaintext_not_even_a_temporary_one() {
    let folder = Folder::new("sealing-temporary");
    let root = folder.path().join("a.gs");
    let local: Arc<dyn Storage> = Arc::new(LocalStorage::new(&root, Durability::Close).unwrap());
    let looked = Arc::new(Mutex::new(0));
    let (count, place) = (looked.clone(), root.clone());
    let hooked: Arc<dyn Storage> = Arc::new(HookedStorage::new(local, move |_, _| {
        for file in
            ["_log", "_data", "_manifest"].iter().filter_map(|f| std::fs::read_dir(place.join(f)).ok()).flatten()
        {
            assert!(!shows_marker(&std::fs::read(file.unwrap().path()).unwrap()));
            *count.lock().unwrap() += 1;
        }
    }));
    let context = keyed(1);
    let line = created(&context, &hooked, "/", LINE).unwrap();
    let column = longs([marker(); 50_000]);
    let mut writer = line.writer(None, None).unwrap();
    for _ in 0..2 {
        writer.append(&Call::default(), &[], &[column.view()]).unwrap();
    }
    let staged = writer.finish(&Call::default()).unwrap();
    // Given up half-way: nothing is left.
    let mut given_up = line.writer(None, None).unwrap();
    given_up.append(&Call::default(), &[], &[column.view()]).unwrap();
    drop(given_up);
    line.commit(vec![staged], None).unwrap();
    assert_eq!(values(&line, Some((0, 9))).unwrap(), [marker(); 10]);
    assert!(*looked.lock().unwrap() > 10);
    assert_eq!(std::fs::read_dir(root.join("_data")).unwrap().count(), 1);
}

/// Two records and a fragment in one of them.
fn small(context: &Context, storage: &Arc<dyn Storage>) -> Array {
    let array = created(context, storage, "/", POINTS).unwrap();
    write_points(&array, &[5, 7], 42).unwrap();
    array
}

fn reread(storage: &Arc<dyn Storage>) -> Result<Vec<i64>> {
    values(&opened(&keyed(1), storage, "/", At::Latest)?, None)
}

#[test]
fn every_damaged_byte_of_a_store_is_corruption_and_never_another_value() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    small(&keyed(1), &storage);
    for name in names(storage.as_ref()) {
        let whole = storage.read_all(&name).unwrap();
        let number = log_name(1);
        for place in 0..whole.len() {
            let mut bad = whole.to_vec();
            bad[place] ^= 1 << (place % 8);
            storage.put(&name, &bad).unwrap();
            let error = reread(&storage).expect_err("damage was not noticed");
            assert_eq!(error.kind(), ErrorKind::Corruption, "byte {place} of {name}: {error}");
            assert!(error.message().contains(&name[..number.len()]), "{error}");
        }
        for end in (0..whole.len()).step_by(7) {
            storage.put(&name, &whole[..end]).unwrap();
            assert_eq!(reread(&storage).unwrap_err().kind(), ErrorKind::Corruption, "{name} cut to {end}");
        }
        storage.put(&name, &whole).unwrap();
    }
    assert_eq!(reread(&storage).unwrap(), [42, 42]);
}

#[test]
fn objects_cannot_change_places() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let array = small(&keyed(1), &storage);
    write_points(&array, &(0..20_000).collect::<Vec<_>>(), 1).unwrap();
    write_points(&array, &(500..20_500).collect::<Vec<_>>(), 2).unwrap();
    let files = storage.list("_data").unwrap();
    assert_eq!(files.len(), 2);
    let before = reread(&storage).unwrap();
    // With the lines that the hint has, an opening needs few of the records.
    storage.delete(LATEST).unwrap();
    for (a, b) in [(log_name(3), log_name(4)), (log_name(2), log_name(1)), (files[0].clone(), files[1].clone())] {
        let [first, second] = [&a, &b].map(|name| storage.read_all(name).unwrap());
        storage.put(&a, &second).unwrap();
        storage.put(&b, &first).unwrap();
        let error = reread(&storage).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{a} and {b}: {error}");
        assert!(error.message().contains("segment"), "{error}");
        storage.put(&a, &first).unwrap();
        storage.put(&b, &second).unwrap();
    }
    // A later version cannot be forged of an earlier one.
    storage.put(&log_name(5), &storage.read_all(&log_name(4)).unwrap()).unwrap();
    assert_eq!(reread(&storage).unwrap_err().kind(), ErrorKind::Corruption);
    storage.delete(&log_name(5)).unwrap();
    assert_eq!(reread(&storage).unwrap(), before);
}

#[test]
fn a_store_opens_with_its_key_alone() {
    let sealed: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let plain: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    small(&keyed(1), &sealed);
    small(&with(None), &plain);
    let ids = [1, 2].map(|byte| key_id(&key(byte)).unwrap().to_string());
    let refused = |context: &Context, storage: &Arc<dyn Storage>| {
        let errors = [
            opened(context, storage, "/", At::Latest).err().unwrap(),
            opened(context, storage, "/", At::Version(1)).err().unwrap(),
            opened(context, storage, "/", At::Time(i64::MAX)).err().unwrap(),
            created(context, storage, "/more", POINTS).err().unwrap(),
        ];
        for error in &errors {
            assert_eq!(error.kind(), ErrorKind::Access, "{error}");
        }
        errors[0].message().to_owned()
    };
    let none = refused(&with(None), &sealed);
    assert!(none.contains(&ids[0]) && none.contains("no key was given"), "{none}");
    let other = refused(&keyed(2), &sealed);
    assert!(other.contains(&ids[0]) && other.contains(&ids[1]), "{other}");
    let needless = refused(&keyed(1), &plain);
    assert!(needless.contains("not sealed"), "{needless}");
    assert_eq!(names(plain.as_ref()).len() + names(sealed.as_ref()).len(), 4, "nothing was written");
    assert_eq!(values(&opened(&with(None), &plain, "/", At::Latest).unwrap(), None).unwrap(), [42, 42]);
}

/// A torn or overwritten record is damage, not a question of keys.
#[test]
fn what_a_crash_leaves_is_not_mistaken_for_a_wrong_key() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    small(&keyed(1), &storage);
    let record = storage.read_all(&log_name(2)).unwrap();
    for torn in [&record[..record.len() / 2], &record[..30], b"", &[0; 4096], &record[1..]] {
        storage.put(&log_name(2), torn).unwrap();
        // Without the key of the store its first record says so already.
        for (number, context) in [keyed(1), keyed(2), with(None)].into_iter().enumerate() {
            let kind = opened(&context, &storage, "/", At::Latest).unwrap_err().kind();
            // With its header whole, which key it needs comes first.
            let header = torn.len() > 72 && torn[0] == b'G' || number > 0;
            assert!(
                kind == ErrorKind::Corruption || (header && kind == ErrorKind::Access),
                "{kind:?} of {}",
                torn.len()
            );
        }
        assert_eq!(reread(&storage).unwrap_err().kind(), ErrorKind::Corruption);
    }
    storage.put(&log_name(2), &record).unwrap();
    // Leftovers that nobody names, and hints that say anything.
    storage.put("_data/00000000000000000000000000000001.frag", &record[..50]).unwrap();
    for hint in [&b""[..], b"7", &record, &[0; 100]] {
        storage.put_hint(LATEST, hint).unwrap();
        assert_eq!(reread(&storage).unwrap(), [42, 42]);
    }
    assert!(!storage.exists(FLOOR).unwrap());
}

#[test]
fn commits_survive_every_failure_of_the_storage_below() {
    for fault in [Fault::Error, Fault::ErrorAfter, Fault::Torn, Fault::Full] {
        for n in 1..40 {
            let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
            small(&keyed(1), &memory);
            let plan = FaultPlan::new();
            let faulty: Arc<dyn Storage> = Arc::new(FaultyStorage::new(memory.clone(), plan.clone()));
            let array = opened(&keyed(1), &faulty, "/", At::Latest).unwrap();
            plan.clear();
            plan.fail_nth(n, fault);
            let done = write_points(&array, &(100..20_100).collect::<Vec<_>>(), 9);
            let struck = plan.struck();
            let found = reread(&memory).unwrap();
            match done {
                Ok(_) => assert_eq!(found.len(), 20_002, "{fault:?} at {n}"),
                Err(e) if e.kind() == ErrorKind::CommitUnknown => assert!([2, 20_002].contains(&found.len())),
                Err(_) => assert_eq!(found, [42, 42], "{fault:?} at {n}"),
            }
            if !struck {
                break;
            }
            assert!(n < 39, "a commit takes fewer operations");
        }
    }
}

#[test]
fn writers_in_parallel_lose_nothing() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    created(&keyed(1), &storage, "/", POINTS).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let storage = &storage;
            scope.spawn(move || {
                let array = opened(&keyed(1), storage, "/", At::Latest).unwrap();
                for step in 0..25 {
                    write_points(&array, &[writer * 100 + step], writer).unwrap();
                }
            });
        }
    });
    assert_eq!(reread(&storage).unwrap().len(), 100);
    assert_eq!(opened(&keyed(1), &storage, "/", At::Latest).unwrap().version(), 101);
}

/// One with a key and one without create the same store at once: it is of one sort, and the other is told.
#[test]
fn creators_with_and_without_a_key_do_not_mix() {
    for _ in 0..20 {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let create = |context: Context, path: &'static str| {
            let storage = storage.clone();
            move || created(&context, &storage, path, POINTS).map(drop)
        };
        let (sealed, plain) = std::thread::scope(|scope| {
            let sealed = scope.spawn(create(keyed(1), "/a"));
            let plain = scope.spawn(create(with(None), "/b"));
            (sealed.join().unwrap(), plain.join().unwrap())
        });
        assert!(sealed.is_ok() != plain.is_ok());
        let error: Error = sealed.and(plain).unwrap_err();
        assert!([ErrorKind::Access, ErrorKind::CommitUnknown].contains(&error.kind()), "{:?} {error}", error.kind());
        let sorts: Vec<bool> =
            names(storage.as_ref()).iter().map(|n| storage.read_all(n).unwrap().starts_with(b"GRIDSEAL")).collect();
        assert!(!sorts.is_empty() && sorts.iter().all(|sort| *sort == sorts[0]));
    }
}

/// Keys by id; the last is current.
#[derive(Debug)]
struct Several(Vec<u8>, Mutex<Vec<Option<KeyId>>>);

impl Keys for Several {
    fn key(&self, id: Option<KeyId>) -> Result<Key> {
        self.1.lock().unwrap().push(id);
        let mut held = self.0.iter().rev().map(|byte| key(*byte));
        let found = held.find(|key| id.is_none_or(|id| key_id(key).unwrap() == id));
        found.ok_or_else(|| Error::access("that key is not in the safe"))
    }
}

#[test]
fn keys_rotate_in_the_life_of_a_store() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let safe = |held: &[u8]| Arc::new(Several(held.to_vec(), Mutex::default()));
    let array = small(&with(Some(safe(&[1]))), &storage);
    assert_eq!(write_points(&array, &[8], 43).unwrap(), 3);
    let both = safe(&[1, 2]);
    let context = with(Some(both.clone()));
    let array = opened(&context, &storage, "/", At::Latest).unwrap();
    write_points(&array, &(100..9_000).collect::<Vec<_>>(), 44).unwrap();
    assert_eq!(values(&array, None).unwrap().len(), 8_903);
    opened(&context, &storage, "/", At::Latest).unwrap();
    assert_eq!(*both.1.lock().unwrap(), [Some(key_id(&key(1)).unwrap()), None], "each key is asked for once");
    let current = key_id(&key(2)).unwrap();
    assert_eq!(opened(&context, &storage, "/", At::Latest).unwrap().key_id(), Some(current));
    // The hint has the lines of the older records, under the current key: their cells are not in it.
    let later = opened(&with(Some(safe(&[2]))), &storage, "/", At::Latest);
    let refused = [later.and_then(|array| values(&array, None)).unwrap_err(), {
        storage.delete(LATEST).unwrap();
        opened(&with(Some(safe(&[2]))), &storage, "/", At::Latest).unwrap_err()
    }];
    for error in refused {
        assert_eq!(error.kind(), ErrorKind::Access);
        assert!(error.message().contains("not in the safe"), "{error}");
    }
}

/// 65,536 cells of eight bytes in one raw page: a cell is one chunk of 4 KiB, which lies in one segment.
#[test]
fn a_small_read_of_a_large_page_opens_its_segments_only() {
    const SEGMENT: u64 = 16_384 + 16;
    let memory = MemoryStorage::new();
    let plain: Arc<dyn Storage> = Arc::new(memory.clone());
    let array = created(&keyed(1), &plain, "/", LINE).unwrap();
    write_line(&array, 0, &(0..100_000).collect::<Vec<_>>()).unwrap();
    let counting = Arc::new(CountingStorage::new(plain));
    let storage: Arc<dyn Storage> = counting.clone();
    let array = opened(&keyed(1), &storage, "/", At::Latest).unwrap();
    assert_eq!(values(&array, Some((3, 3))).unwrap(), [3]);
    for at in [70_000, 20_000, 4_000] {
        counting.reset();
        assert_eq!(values(&array, Some((at, at + 9))).unwrap(), (at..at + 10).collect::<Vec<_>>());
        let counts = counting.snapshot();
        assert!((SEGMENT..=2 * SEGMENT).contains(&counts.bytes_read), "{} bytes", counts.bytes_read);
        assert_eq!((counts.count(Operation::Read), counts.requests, counts.count(Operation::Open)), (1, 1, 0));
    }
}

fn sealed_over(inner: Arc<dyn Storage>) -> Arc<dyn Storage> {
    let ring = Arc::new(KeyRing::new(Arc::new(key(3))));
    Arc::new(SealedStorage::new(inner, Sealing::Always(ring), Arc::new(SystemEntropy)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn random_histories_agree_on_a_sealed_store(case in cases(Size::Tiny, 12), faults in any::<bool>()) {
        Session::new(&case, sealed_over(Arc::new(MemoryStorage::new())), faults).run(&case);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 15, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn arrays_of_many_blocks_agree_on_a_sealed_store(case in cases(Size::Blocks, 7)) {
        let folder = Folder::new("sealing-oracle");
        let local = LocalStorage::new(folder.path(), Durability::Close).unwrap();
        Session::new(&case, sealed_over(Arc::new(local)), false).run(&case);
    }
}
