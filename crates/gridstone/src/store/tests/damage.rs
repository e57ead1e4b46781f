//! Flips every byte and truncates every object at every length: the result is an error or the same meaning.

use super::world::*;
use crate::base::{ErrorKind, xxh3};
use crate::storage::{MemoryStorage, Storage, log_name, manifest_name};
use crate::store::page::{self, PageInfo};
use crate::store::{Changes, Floor, Operation, Record, RootRef, Snapshot, StandardRules, Store, root};
use bytes::Bytes;
use std::sync::Arc;

/// `read` must fail, or return the same, for every bit of `bytes` flipped and every prefix of them.
fn attack<T: PartialEq + std::fmt::Debug>(bytes: &[u8], read: impl Fn(&[u8]) -> crate::base::Result<T>) {
    let whole = read(bytes).unwrap();
    for cut in 0..bytes.len() {
        read(&bytes[..cut]).unwrap_err();
    }
    let mut longer = bytes.to_vec();
    longer.push(0);
    read(&longer).unwrap_err();
    for at in 0..bytes.len() {
        for flip in [0x01, 0x10, 0x20, 0x80, 0xff] {
            let mut bad = bytes.to_vec();
            bad[at] ^= flip;
            if let Ok(found) = read(&bad) {
                assert_eq!(found, whole, "byte {at}");
            }
        }
    }
}

fn rich_store(memory: &MemoryStorage) -> (Store, Arc<Snapshot>) {
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    let (store, one, id) = with_array(Arc::clone(&storage));
    let text = r#"{"a":1}"#.to_owned();
    let mut changes = add(id, vec![inline(0, 9), in_file(storage.as_ref(), 10, 19), inline(20, 29)]);
    changes.operations.push(Operation::SetMetadata { node: id, changes: vec![("k".to_owned(), Some(text))] });
    changes.message = Some("hä?\n".to_owned());
    let two = store.commit(&one, changes, &mut StandardRules).unwrap();
    (store, two)
}

#[test]
fn a_record_survives_no_damage() {
    let memory = MemoryStorage::new();
    rich_store(&memory);
    let bytes = memory.read_all(&log_name(2)).unwrap();
    attack(&bytes, |bytes| Record::decode(bytes, 2));
    assert_eq!(Record::decode(&bytes, 3).unwrap_err().kind(), ErrorKind::Corruption);
    let record = Record::decode(&bytes, 2).unwrap();
    assert_eq!(record.inline.len(), 2);
    for inline in &record.inline {
        record.body(inline, &bytes).unwrap();
        let mut bad = bytes.to_vec();
        bad[inline.range.offset as usize] ^= 1;
        assert_eq!(record.body(inline, &Bytes::from(bad)).unwrap_err().kind(), ErrorKind::Corruption);
    }
}

/// A record that is intact but has an impossible value: the line is changed and its checksum made anew.
fn reworded(memory: &MemoryStorage, from: &str, to: &str) -> crate::base::Error {
    let bytes = memory.read_all(&log_name(2)).unwrap();
    let end = bytes.iter().position(|b| *b == b'\n').unwrap();
    let line = std::str::from_utf8(&bytes[..end]).unwrap();
    assert!(line.contains(from), "{line}");
    // Padding compensates the change in length, so that bodies keep their offsets.
    let line = format!("{:<end$}", line.replacen(from, to, 1).trim_end());
    let mut sealed = format!("{line}\n{:016x}\n", xxh3(line.as_bytes())).into_bytes();
    sealed.extend_from_slice(&bytes[end + 18..]);
    Record::decode(&sealed, 2).unwrap_err()
}

#[test]
fn what_an_intact_record_cannot_mean_is_refused() {
    let memory = MemoryStorage::new();
    rich_store(&memory);
    let refuse = |from: &str, to: &str, kind: ErrorKind, word: &str| {
        let error = reworded(&memory, from, to);
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(word), "{error}");
    };
    refuse("set_metadata", "set_metadatum", ErrorKind::Unsupported, "set_metadatum");
    refuse("\"gs\":1", "\"gs\":2", ErrorKind::Unsupported, "version 2");
    refuse("\"dense\"", "\"fuzzy\"", ErrorKind::Unsupported, "fuzzy");
    refuse("\"version\":2", "\"version\":3", ErrorKind::Corruption, "version 3");
    refuse("\"read_version\":1", "\"read_version\":2", ErrorKind::Corruption, "read version 2");
    refuse("\"attrs\":[0,1]", "\"attrs\":[1,0]", ErrorKind::Corruption, "out of order");
    refuse("\"offset\":64", "\"offset\":65", ErrorKind::Corruption, "is not where");
    refuse("\"offset\":64", "\"offset\":\"18446744073709551552\"", ErrorKind::Corruption, "is not where");
    refuse("\"message\"", "\"massage\"", ErrorKind::Unsupported, "it holds \"massage\"");
    refuse("\"parent\":\"", "\"parent\":null,\"x\":\"", ErrorKind::Unsupported, "newer release");
    refuse("\"cells\":10", "\"cells\":10,\"rows\":10", ErrorKind::Unsupported, "it holds \"rows\"");
    refuse("{\"body\"", "{\"pocket\"", ErrorKind::Unsupported, "it holds \"pocket\"");
    refuse("\"cells\":10", "\"cells\":true", ErrorKind::Corruption, "not understood");
    refuse("\"changes\":[[\"k\"", "\"changes\":[[5", ErrorKind::Corruption, "not understood");
    refuse("\"ops\":[", "\"ops\":[[[[", ErrorKind::Corruption, "not understood");
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    let line = format!("{{\"gs\":1,\"ops\":{}", "[".repeat(1 << 20));
    let sealed = format!("{line}\n{:016x}\n", xxh3(line.as_bytes()));
    assert_eq!(Record::decode(sealed.as_bytes(), 1).unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn a_root_a_page_and_the_floor_survive_no_damage() {
    let memory = MemoryStorage::new();
    let (store, two) = rich_store(&memory);
    let id = two.array("/").unwrap().id();
    let store = store.with_fold_versions(1);
    let three = store.commit(&two, add(id, vec![inline(30, 39)]), &mut StandardRules).unwrap();
    let reference = three.root().unwrap();
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    let bytes = memory.read_all(&manifest_name(reference.id)).unwrap();
    attack(&bytes, |bytes| root::decode(bytes, reference, &storage).map(|root| root::encode(&root).unwrap()));
    let decoded = root::decode(&bytes, reference, &storage).unwrap();
    assert_eq!(root::encode(&decoded).unwrap(), bytes);
    let newer = RootRef { version: 3, ..reference };
    assert_eq!(root::decode(&bytes, newer, &storage).unwrap_err().kind(), ErrorKind::Corruption);

    let info: PageInfo = three.array("/").unwrap().shelves[0].info().clone();
    let bytes = memory.read_all(&manifest_name(info.id)).unwrap();
    attack(&bytes, |bytes| page::decode(bytes, &info));
    let other = PageInfo { count: 2, ..info.clone() };
    assert_eq!(page::decode(&bytes, &other).unwrap_err().kind(), ErrorKind::Corruption);

    let floor = Floor { version: 2, root: reference };
    attack(&floor.encode().unwrap(), Floor::decode);
}

#[test]
fn a_damaged_newest_record_is_not_skipped() {
    let memory = MemoryStorage::new();
    let (_, two) = rich_store(&memory);
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    let mut bytes = memory.read_all(&log_name(2)).unwrap().to_vec();
    bytes[20] ^= 1;
    memory.put(&log_name(2), &bytes).unwrap();
    let store = store_in(storage);
    assert_eq!(store.latest().unwrap_err().kind(), ErrorKind::Corruption);
    assert_eq!(store.at_version(1).unwrap().version(), 1);
    let id = two.array("/").unwrap().id();
    let error = add_one(&store, &store.at_version(1).unwrap(), id).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitUnknown, "{error}");
    // Only its checksum proves that it has a later format.
    let line = "{\"gs\":7,\"version\":2}";
    let sound = format!("{line}\n{:016x}\n", crate::base::xxh3(line.as_bytes()));
    for (bytes, kind) in [("{\"gs\":7,", ErrorKind::CommitUnknown), (sound.as_str(), ErrorKind::Unsupported)] {
        memory.put(&log_name(2), bytes.as_bytes()).unwrap();
        assert_eq!(store.latest().unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(add_one(&store, &store.at_version(1).unwrap(), id).unwrap_err().kind(), kind, "{bytes}");
    }
}

#[test]
fn a_record_of_another_log_is_found_out() {
    let (mine, other) = (MemoryStorage::new(), MemoryStorage::new());
    rich_store(&mine);
    rich_store(&other);
    mine.put(&log_name(2), &other.read_all(&log_name(2)).unwrap()).unwrap();
    let error = store_in(Arc::new(mine)).latest().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.message().contains("parent"), "{error}");
}

#[test]
fn a_damaged_inline_fragment_stops_the_fold() {
    let memory = MemoryStorage::new();
    let (store, two) = rich_store(&memory);
    let mut bytes = memory.read_all(&log_name(2)).unwrap().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    memory.put(&log_name(2), &bytes).unwrap();
    let error = store.with_fold_versions(1).commit(&two, Changes::default(), &mut StandardRules).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.message().contains("checksum"), "{error}");
}
