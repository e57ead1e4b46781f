//! The storage over a store in memory, and over one that fails by plan; also against a server, if there is one.

use super::*;
use crate::base::{ByteRange, Clock};
use crate::runtime::SystemClock;
use crate::storage::conformance;
use crate::storage::{LATEST, log_name};
use object_store::memory::InMemory;

mod doubt;
#[allow(dead_code, reason = "shared with the tests of the whole")]
mod faulty;
mod hints;
mod proving;
mod reading;
mod removing;
mod server;

use faulty::{Faulty, Plan, Trouble};

/// A store in memory, behind the interface of object stores.
fn over(store: Arc<dyn ObjectStore>) -> ObjectStorage {
    ObjectStorage::over("s3://box/a", "a", Arc::clone(&store), store).unwrap()
}

fn fresh() -> ObjectStorage {
    over(Arc::new(InMemory::new()))
}

#[test]
fn an_object_store_conforms() {
    conformance::check(&|| Arc::new(fresh()));
}

#[test]
fn stores_in_one_bucket_do_not_meet() {
    let bucket: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let [one, other] =
        ["a", "a/b"].map(|key| ObjectStorage::over("s3://box", key, bucket.clone(), bucket.clone()).unwrap());
    one.put("_log/1", b"one").unwrap();
    other.put("_log/2", b"other").unwrap();
    assert_eq!(one.list("_log").unwrap(), ["_log/1"]);
    one.remove_everything().unwrap();
    assert_eq!(other.list("_log").unwrap(), ["_log/2"]);
}

/// Several objects are requested concurrently, each once. A missing one is reported in its position, also under sealing
/// and overlays.
#[test]
fn several_objects_are_asked_for_together() {
    let (bucket, plan) = Faulty::planned();
    let keys = Arc::new(crate::storage::KeyRing::new(Arc::new(crate::base::Key::from_slice(&[7; 32]).unwrap())));
    let plain = || Arc::new(over(bucket.clone()));
    let sealed = || {
        let sealing = crate::storage::Sealing::Always(keys.clone());
        crate::storage::SealedStorage::new(plain(), sealing, Arc::new(SystemEntropy))
    };
    let names: Vec<String> = (1..=12).map(log_name).collect();
    let overlaid = crate::storage::OverlayStorage::new(plain());
    let pairs: [(Arc<dyn Storage>, Arc<dyn Storage>); 3] =
        [(plain(), plain()), (Arc::new(sealed()), Arc::new(sealed())), (plain(), Arc::new(overlaid))];
    for (written, storage) in pairs {
        for (name, n) in names.iter().zip(1u8..).filter(|(_, n)| *n != 5) {
            written.put(name, &[n; 300]).unwrap();
        }
        storage.read_all(&names[0]).unwrap();
        plan.clear();
        plan.gather_these(names.clone());
        let mut found = Vec::new();
        storage
            .read_each(&names, &mut |_, bytes| {
                found.push(bytes.map_or_else(|e| Err(e.kind()), |bytes| Ok(bytes[0])));
                Ok(())
            })
            .unwrap();
        let expected = (1..=12u8).map(|n| if n == 5 { Err(ErrorKind::NotFound) } else { Ok(n) });
        assert_eq!(found, expected.collect::<Vec<_>>());
        assert_eq!(plan.seen(), ["get"; 12]);
        plan.clear();
        written.remove_everything().unwrap();
    }
}

/// Objects changed in the overlay are returned together with those below.
#[test]
fn several_objects_of_an_overlay_are_those_above() {
    let below = Arc::new(fresh());
    let names: Vec<String> = (1..=3).map(log_name).collect();
    names.iter().for_each(|name| below.put(name, b"below").unwrap());
    let overlay = crate::storage::OverlayStorage::new(below);
    overlay.put(&names[1], b"above").unwrap();
    overlay.delete(&names[2]).unwrap();
    let mut found = Vec::new();
    let mut visit = |_: &str, bytes: Result<Bytes>| {
        found.push(bytes.map_err(|e| e.kind()));
        Ok(())
    };
    overlay.read_each(&names, &mut visit).unwrap();
    assert_eq!(found, [Ok("below".into()), Ok("above".into()), Err(ErrorKind::NotFound)]);
}

#[test]
fn opening_is_one_request_and_brings_the_end() {
    let (bucket, plan) = Faulty::planned();
    let storage = over(bucket);
    let content: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
    storage.put("_data/large.frag", &content).unwrap();
    storage.put("_data/small.frag", &content[..1_000]).unwrap();
    plan.clear();
    let small = storage.open("_data/small.frag").unwrap();
    for _ in 0..3 {
        assert_eq!(small.read_one(ByteRange::new(10, 900)).unwrap(), content[10..910]);
    }
    assert_eq!(plan.seen(), ["get"], "a small object comes whole");
    plan.clear();
    let large = storage.open("_data/large.frag").unwrap();
    let end = ByteRange::new(200_000 - source::TAIL_BYTES, source::TAIL_BYTES);
    assert_eq!(large.read_one(end).unwrap(), content[end.offset as usize..]);
    assert_eq!(plan.seen(), ["get"], "its end was there");
    assert_eq!(large.read_one(ByteRange::new(199_000, 500)).unwrap(), content[199_000..199_500]);
    assert_eq!(plan.seen(), ["get", "get"], "it is not kept");
}

#[test]
fn near_ranges_are_one_request_and_far_ones_are_side_by_side() {
    let (bucket, plan) = Faulty::planned();
    let storage = over(bucket);
    let content: Vec<u8> = (0..4_000_000u32).map(|i| (i % 251) as u8).collect();
    storage.put("_data/a.frag", &content).unwrap();
    let source = storage.open("_data/a.frag").unwrap();
    plan.clear();
    let gap = source::GAP_BYTES;
    let asked = [(0, 100), (100 + gap, 100), (2 * gap + 201, 50), (3_500_000, 7)];
    let ranges = asked.map(|(offset, len)| ByteRange::new(offset, len));
    let found = source.read(&ranges).unwrap();
    for (range, bytes) in ranges.iter().zip(found) {
        assert_eq!(bytes, content[range.offset as usize..range.end() as usize]);
    }
    assert_eq!(plan.seen(), ["get"; 3]);
    plan.clear();
    // Each answer waits until all have been requested.
    plan.gather(3);
    source.read(&ranges).unwrap();
}

#[test]
fn an_object_that_changed_or_went_is_told() {
    let storage = fresh();
    let large = vec![7; 300_000];
    let opened = || {
        storage.put("_data/a.frag", &large).unwrap();
        storage.open("_data/a.frag").unwrap()
    };
    let range = [ByteRange::new(0, 10)];
    let source = opened();
    storage.put("_data/a.frag", &large).unwrap();
    let error = source.read(&range).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert!(error.message().contains("replaced"), "{error}");
    let source = opened();
    storage.delete("_data/a.frag").unwrap();
    let error = source.read(&range).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("open the newest version"), "{error}");
}

#[test]
fn a_large_object_is_sent_in_parts() {
    let (bucket, plan) = Faulty::planned();
    let storage = over(bucket);
    let content: Vec<u8> = (0..(2 * sink::PART_BYTES + 100) as u32).map(|i| (i % 253) as u8).collect();
    let mut sink = storage.create("_data/a.frag").unwrap();
    for piece in content.chunks(3_000_000) {
        sink.write(piece).unwrap();
    }
    assert!(!storage.exists("_data/a.frag").unwrap(), "nothing is seen before it is finished");
    sink.finish().unwrap();
    assert!(storage.read_all("_data/a.frag").unwrap() == content);
    let seen = plan.seen();
    assert_eq!(seen.iter().filter(|what| **what == "part").count(), 3);
    assert_eq!(seen.iter().filter(|what| **what == "complete").count(), 1);
    plan.clear();
    // Exactly one part, and a name that is free again.
    for finished in [false, true] {
        let mut sink = storage.create("_data/b.frag").unwrap();
        sink.write(&content[..sink::PART_BYTES]).unwrap();
        if finished {
            sink.finish().unwrap();
        }
    }
    assert_eq!(plan.seen().iter().filter(|what| **what == "abort").count(), 1, "{:?}", plan.seen());
    assert!(storage.read_all("_data/b.frag").unwrap() == content[..sink::PART_BYTES]);
}

#[test]
fn a_part_that_fails_fails_the_write_and_leaves_nothing() {
    let (bucket, plan) = Faulty::planned();
    let storage = over(bucket);
    let mut sink = storage.create("_data/a.frag").unwrap();
    plan.fail("part", 1, Trouble::Before);
    sink.write(&vec![1; sink::PART_BYTES]).unwrap();
    sink.write(b"more").unwrap();
    assert_eq!(sink.finish().unwrap_err().kind(), ErrorKind::Storage);
    assert_eq!(plan.seen().last(), Some(&"abort"));
    assert!(storage.list("_data").unwrap().is_empty());
    storage.create("_data/a.frag").unwrap().finish().unwrap();
}

#[test]
fn temporary_objects_are_swept_and_never_listed() {
    let bucket: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let storage = over(bucket);
    storage.put("_log/1", b"record").unwrap();
    storage.client.put("_log/.probe-1", b"12345").unwrap();
    assert_eq!(storage.list("_log").unwrap(), ["_log/1"]);
    assert_eq!(storage.sweep("_log", 0, true).unwrap(), Swept::default(), "none is so old");
    let later = SystemClock.now_us() + 1_000_000;
    for _ in 0..2 {
        assert_eq!(storage.sweep("_log", later, false).unwrap(), Swept { files: 1, bytes: 5 });
    }
    storage.sweep("_log", later, true).unwrap();
    assert_eq!(storage.sweep("_log", later, true).unwrap(), Swept::default());
    assert_eq!(storage.list("_log").unwrap(), ["_log/1"]);
}

/// A store that treats conditional writes as plain ones would let one commit overwrite another.
#[test]
fn a_store_without_conditions_is_refused() {
    let (bucket, plan) = Faulty::planned();
    plan.ignore_conditions();
    let storage = over(bucket);
    let error = storage.prepare().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("If-None-Match"), "{error}");
    assert_eq!(storage.sweep("_log", i64::MAX, false).unwrap(), Swept::default(), "nothing is left");
    let (bucket, plan) = Faulty::planned();
    plan.refuse_conditions();
    assert_eq!(over(bucket).prepare().unwrap_err().kind(), ErrorKind::Unsupported);
}
