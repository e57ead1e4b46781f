//! Promise: a store that is being deleted exists or does not, wherever its deletion is interrupted.

use super::*;

const NAMES: [&str; 7] = [
    "_data/a.frag",
    "_data/b.frag",
    "_manifest/a",
    "_lease/a",
    "_damaged/a",
    "_log/latest",
    "_log/00000000000000000002",
];

fn filled(bucket: &Arc<dyn ObjectStore>, floor: bool) -> ObjectStorage {
    let storage = over(bucket.clone());
    storage.put_if_absent(&log_name(1), b"first").unwrap();
    for name in NAMES {
        storage.put(name, b"x").unwrap();
    }
    if floor {
        storage.put(FLOOR, b"{\"gs\":0}").unwrap();
    }
    storage
}

/// Whether there is a store.
fn is_store(storage: &ObjectStorage) -> bool {
    storage.exists(&log_name(1)).unwrap() || storage.exists(FLOOR).unwrap()
}

fn everything(storage: &ObjectStorage) -> Vec<String> {
    let mut all = Vec::new();
    for folder in ["_log", "_data", "_manifest", "_lease", "_damaged", "_removed"] {
        storage.each_object(folder, &mut |listed| all.push(listed.name)).unwrap();
    }
    all
}

#[test]
fn a_deletion_cut_short_anywhere_leaves_a_store_or_none() {
    for (floor, trouble) in
        [(false, Trouble::Dead), (true, Trouble::Dead), (false, Trouble::After), (true, Trouble::After)]
    {
        let (mut cut, mut gone) = (0, 0);
        for n in 1.. {
            let (bucket, plan) = Faulty::planned();
            filled(&bucket, floor);
            plan.clear();
            plan.fail("", n, trouble);
            let outcome = over(bucket.clone()).remove_everything();
            let struck = plan.struck();
            plan.clear();
            if !struck {
                outcome.unwrap();
                assert!(everything(&over(bucket)).is_empty());
                break;
            }
            cut += 1;
            let found = over(bucket.clone());
            if is_store(&found) {
                assert_eq!(everything(&found).len(), NAMES.len() + 1 + usize::from(floor), "it is there, whole");
            } else {
                gone += 1;
                assert!(found.list("_log").unwrap().is_empty());
                assert!(
                    found.read_all(FLOOR).is_err()
                        && found.read_all(LATEST).is_err()
                        && found.open(&log_name(1)).is_err()
                );
                // Either a new store in its place starts empty, or a second deletion completes the first.
                if n % 2 == 0 {
                    over(bucket.clone()).prepare().unwrap();
                    assert_eq!(over(bucket.clone()).put_if_absent(&log_name(1), b"new").unwrap(), PutOutcome::Created);
                    assert_eq!(everything(&over(bucket)), [log_name(1)]);
                } else {
                    over(bucket.clone()).remove_everything().unwrap();
                    assert!(everything(&over(bucket)).is_empty());
                }
            }
        }
        assert!(cut > 8 && gone > 5, "{cut} cuts, {gone} after the tombstone");
    }
}

#[test]
fn who_has_seen_the_store_is_told_that_it_goes() {
    let bucket: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let alive = filled(&bucket, false);
    assert!(is_store(&alive));
    alive.client.put(FLOOR, removal::TOMBSTONE).unwrap();
    let errors = [
        alive.read_all(FLOOR).map(drop).unwrap_err(),
        alive.put_if_unchanged(FLOOR, Some(b"x"), b"y").map(drop).unwrap_err(),
        over(bucket.clone()).put_if_absent(&log_name(3), b"late").map(drop).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Storage);
        assert!(error.message().contains("being deleted"), "{error}");
    }
    let fresh = over(bucket);
    assert_eq!(fresh.read_all(FLOOR).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(!is_store(&fresh));
}

#[test]
fn a_deletion_stops_where_another_has_finished_it() {
    let (bucket, plan) = Faulty::planned();
    filled(&bucket, false);
    let slow = over(bucket.clone());
    slow.client.put(FLOOR, removal::TOMBSTONE).unwrap();
    plan.clear();
    // Between the listing and the check of the tombstone, another deletion ends and a store is created.
    over(bucket.clone()).remove_everything().unwrap();
    over(bucket.clone()).prepare().unwrap();
    let storage = over(bucket.clone());
    storage.put_if_absent(&log_name(2), b"new").unwrap();
    let error = removal::finish(&slow.client).unwrap_err();
    assert!(error.message().contains("another process has finished it"), "{error}");
    assert_eq!(everything(&storage), [log_name(2)]);
}

#[test]
fn a_place_without_a_log_is_left_alone() {
    let (bucket, plan) = Faulty::planned();
    let storage = over(bucket);
    storage.put("_data/not-ours", b"x").unwrap();
    plan.clear();
    storage.remove_everything().unwrap();
    assert_eq!(plan.seen(), ["get", "list"]);
    assert_eq!(storage.list("_data").unwrap(), ["_data/not-ours"]);
}
