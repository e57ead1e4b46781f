//! Promise: a whole object is read in ranges, no longer than its kind allows; a start is one request.

use super::*;

#[test]
fn a_start_is_one_request() {
    let (bucket, plan) = Faulty::planned();
    let storage = over(bucket);
    let content: Vec<u8> = (0..1_000_000u32).map(|i| (i % 251) as u8).collect();
    storage.put(&log_name(1), &content).unwrap();
    storage.log.set(Log::Alive);
    plan.clear();
    assert_eq!(storage.read_start(&log_name(1), 4_096).unwrap(), content[..4_096]);
    assert_eq!(storage.read_start(&log_name(1), 4_000_000).unwrap(), content);
    assert_eq!(plan.seen(), ["get", "get"]);
    // The store sends only what is requested.
    let question = Question::start(&storage.client, &log_name(1), 4_096).unwrap();
    assert_eq!(question.first(&storage.client).unwrap().bytes.len(), 4_096);
}

/// The record and the floor are requested before either has arrived; sealed ones too.
#[test]
fn a_start_and_the_floor_go_out_together() {
    let (bucket, plan) = Faulty::planned();
    let keys = Arc::new(crate::storage::KeyRing::new(Arc::new(crate::base::Key::from_slice(&[7; 32]).unwrap())));
    let sealing = crate::storage::Sealing::Always(keys);
    let sealed = crate::storage::SealedStorage::new(Arc::new(over(bucket.clone())), sealing, Arc::new(SystemEntropy));
    let plain: Arc<dyn Storage> = Arc::new(over(bucket));
    for storage in [plain, Arc::new(sealed)] {
        storage.put(&log_name(1), &[1; 50_000]).unwrap();
        storage.put(FLOOR, b"{\"gs\":0}").unwrap();
        plan.clear();
        plan.gather(2);
        let (start, floor) = storage.read_start_and_floor(&log_name(1), 20_000);
        assert_eq!((start.unwrap(), floor.unwrap()), (vec![1; 20_000].into(), "{\"gs\":0}".into()));
        assert_eq!(plan.seen(), ["get", "get"]);
        plan.clear();
    }
}

#[test]
fn beside_a_tombstone_there_is_no_record() {
    let bucket: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let (alive, fresh) = (over(bucket.clone()), over(bucket));
    alive.put(&log_name(1), b"record").unwrap();
    alive.read_all(&log_name(1)).unwrap();
    alive.client.put(FLOOR, removal::TOMBSTONE).unwrap();
    for (storage, kind) in [(&alive, ErrorKind::Storage), (&fresh, ErrorKind::NotFound)] {
        let (start, floor) = storage.read_start_and_floor(&log_name(1), 10);
        assert_eq!((start.unwrap_err().kind(), floor.unwrap_err().kind()), (kind, kind));
        let mut kinds = Vec::new();
        let names = [log_name(1), FLOOR.to_owned()];
        let _ = storage.read_each(&names, &mut |_, bytes| {
            kinds.push(bytes.err().map(|e| e.kind()));
            Ok(())
        });
        assert_eq!(kinds[1], Some(kind));
    }
}

#[test]
fn a_long_object_comes_in_pieces_side_by_side() {
    let (bucket, plan) = Faulty::planned();
    let storage = over(bucket);
    let content: Vec<u8> = (0..(3 * content::PIECE_BYTES + 100) as u32).map(|i| (i % 253) as u8).collect();
    storage.put("_data/a.frag", &content).unwrap();
    plan.clear();
    assert!(storage.read_all("_data/a.frag").unwrap() == content);
    assert_eq!(plan.seen(), ["get"; 4]);
    plan.clear();
    let names = ["_data/a.frag".to_owned(), "_data/b.frag".to_owned()];
    let mut found = Vec::new();
    let mut visit = |_: &str, bytes: Result<Bytes>| {
        found.push(bytes.ok().map(|bytes| bytes == content));
        Ok(())
    };
    storage.read_each(&names, &mut visit).unwrap();
    assert_eq!(found, [Some(true), None]);
    assert_eq!(plan.seen(), ["get"; 5]);
}

/// A length beyond what its kind allows is an error before any bytes are held in memory.
#[test]
fn an_object_that_is_too_long_is_damage() {
    let (bucket, plan) = Faulty::planned();
    let storage = over(bucket);
    storage.log.set(Log::Alive);
    for (name, len) in [(LATEST, 300_000), (FLOOR, 100_000), ("_lease/a", 100_000)] {
        assert_eq!(storage.put(name, &vec![b'1'; len]).unwrap_err().kind(), ErrorKind::Input, "nobody writes it");
        storage.client.put(name, &vec![b'1'; len]).unwrap();
        plan.clear();
        let error = storage.read_all(name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.message().contains(name) && error.message().contains(&len.to_string()), "{error}");
        assert_eq!(plan.seen(), ["get"]);
        storage.read_each(&[name.to_owned()], &mut |_, bytes| bytes.map(drop)).unwrap_err();
    }
    assert!(!storage.is_removed().unwrap(), "who deletes a store is not kept from it");
}

#[test]
fn many_objects_are_deleted_by_the_thousand() {
    let (bucket, plan) = Faulty::planned();
    let storage = over(bucket);
    let names: Vec<String> = (0..2_500).map(|n| format!("_data/{n}.frag")).collect();
    names.iter().step_by(100).for_each(|name| storage.put(name, b"x").unwrap());
    plan.clear();
    storage.delete_each(&names).unwrap();
    assert_eq!(plan.seen(), ["delete"; 3]);
    assert!(storage.list("_data").unwrap().is_empty());
    assert_eq!(storage.delete_each(&["..".to_owned()]).unwrap_err().kind(), ErrorKind::Input);
}

#[test]
fn the_time_is_the_stores_rounded_down() {
    let (bucket, plan) = Faulty::planned();
    let storage = over(bucket);
    let before = SystemClock.now_us();
    let now = storage.now_us().unwrap();
    assert_eq!(now % 1_000_000, 0);
    assert!((before - 1_000_000..=SystemClock.now_us()).contains(&now), "{now} after {before}");
    assert_eq!(plan.seen(), ["put", "head", "delete"]);
    assert_eq!(storage.sweep("_log", i64::MAX, false).unwrap(), Swept::default(), "nothing is left");
}
