//! Promise: opening a store in an object store takes a few requests, however many versions it has.

use super::{Bucket, array, bucket, requests, storage};
use crate::support::line::{Cells, create, read, stage, write};
use crate::support::store::{context, open, vacuum};
use gridstone::base::ErrorKind;
use gridstone::engine::{Array, At, Call, CopyOptions, Keep, copy_on};
use gridstone::storage::{CountingStorage, LATEST, Storage, log_name};
use gridstone_testkit::Dice;
use std::sync::Arc;
use std::time::Duration;

/// How many versions lie between two hints.
const HINT_EVERY: u64 = 4;
/// The hint and the floor; the hint's record, the three that may follow it, and two that do not; the root, and the floor
/// again.
const REQUESTS_MAX: usize = 10;

/// An array of so many versions, each of them of one cell.
fn of_versions(bucket: &Bucket, versions: u64) -> Array {
    create(&context(64), &storage(bucket), "/line", false);
    let writer = array(bucket);
    (2..=versions as i64).for_each(|n| assert_eq!(write(&writer, &[(n, n)].into()).unwrap(), n as u64));
    assert_eq!(writer.version(), versions);
    hinted(bucket, versions);
    writer
}

/// Waits until there is the hint of a log of so many versions: nobody does while he commits.
fn hinted(bucket: &Bucket, versions: u64) {
    let version = versions / HINT_EVERY * HINT_EVERY;
    let number = |hint: &[u8]| String::from_utf8_lossy(&hint[..hint.len().min(32)]).trim().to_owned();
    let says = || storage(bucket).read_all(LATEST).is_ok_and(|hint| number(&hint) == version.to_string());
    let mut left = 2_000;
    while version > 0 && !says() {
        assert!(left > 0, "the hint does not come");
        left -= 1;
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whatever the hint says, that of others or of a storage that went wrong.
#[test]
fn opening_a_young_store_takes_five_requests() {
    for hint in [None, Some("1"), Some("2"), Some("3"), Some("junk"), Some("")] {
        let (bucket, plan) = bucket();
        of_versions(&bucket, 2);
        if let Some(hint) = hint {
            storage(&bucket).put(LATEST, hint.as_bytes()).unwrap();
        }
        plan.clear();
        plan.slow(Duration::from_millis(200));
        assert_eq!(array(&bucket).version(), 2);
        let (counts, rounds) = (requests(&plan), plan.rounds());
        // An empty object is found to be so by a second look.
        let more = usize::from(hint == Some(""));
        assert!(counts.values().sum::<usize>() <= 5 + more, "{hint:?}: {counts:?}");
        assert!(rounds <= 3 + more, "{hint:?}: {rounds} rounds of {counts:?}");
    }
}

#[test]
fn opening_an_old_store_takes_three_rounds() {
    let (bucket, plan) = bucket();
    of_versions(&bucket, 301);
    plan.clear();
    plan.slow(Duration::from_millis(300));
    assert_eq!(array(&bucket).version(), 301);
    let (counts, rounds) = (requests(&plan), plan.rounds());
    println!("301 versions: {rounds} rounds of {counts:?}");
    assert!(rounds <= 3, "{rounds} rounds of {counts:?}");
    assert!(counts["get"] <= REQUESTS_MAX && counts.len() == 1, "{counts:?}");
}

/// Whatever the number of versions, and of those since the last hint and the last root.
#[test]
fn opening_takes_at_most_ten_requests() {
    let (bucket, plan) = bucket();
    create(&context(64), &storage(&bucket), "/line", false);
    let (writer, mut expected, mut most) = (array(&bucket), Cells::new(), 0);
    for version in 1..=1_000u64 {
        if version > 1 {
            let cell = (version as i64, -(version as i64));
            assert_eq!(write(&writer, &[cell].into()).unwrap(), version);
            expected.extend([cell]);
        }
        if !matches!(version, 1..=20 | 60..=70 | 124..=132 | 300..=310 | 997..=1_000) {
            continue;
        }
        hinted(&bucket, version);
        plan.clear();
        let found = array(&bucket);
        let counts = requests(&plan);
        assert_eq!(found.version(), version);
        if matches!(version, 1 | 8 | 9 | 63..=65 | 301 | 1_000) {
            println!("{version} versions: {counts:?}");
            assert_eq!(read(&found).unwrap(), expected, "{version}");
        }
        most = most.max(counts.values().sum());
        assert!(most <= REQUESTS_MAX, "{version} versions: {counts:?}");
    }
    assert_eq!(most, REQUESTS_MAX, "so many are needed");
}

/// A commit sends as many requests as before, one after the other as many; the hint beside it waits for nobody.
#[test]
fn a_commit_waits_for_no_hint() {
    let (bucket, plan) = bucket();
    let writer = of_versions(&bucket, 50);
    for version in 51..=58 {
        plan.clear();
        write(&writer, &[(version, version)].into()).unwrap();
        hinted(&bucket, version as u64);
        let looks = usize::from((version as u64).is_multiple_of(HINT_EVERY));
        let puts = plan.seen().iter().filter(|what| **what == "put").count();
        assert_eq!(puts, 1 + looks, "{version}");
    }
    plan.clear();
    plan.slow(Duration::from_millis(200));
    write(&writer, &[(59, 59)].into()).unwrap();
    assert_eq!((plan.rounds(), plan.seen()), (2, vec!["put", "get", "get"]));
}

/// The cells that are in records are no matter of an opening; nor is a bucket that a history was copied into.
#[test]
fn opening_among_long_records_takes_as_few_requests() {
    let (from, _) = bucket();
    create(&context(64), &storage(&from), "/line", false);
    let (writer, mut dice) = (array(&from), Dice::new(5));
    let mut expected = Cells::new();
    for _ in 2..=31 {
        // About 60 KiB each, and three of them in a record.
        let parts = || (0..7_000).map(|x| (x, dice.word() as i64)).collect::<Cells>();
        let parts: Vec<Cells> = std::iter::repeat_with(parts).take(3).collect();
        writer.commit(parts.iter().map(|cells| stage(&writer, cells)).collect(), None).unwrap();
        expected = parts.into_iter().next_back().unwrap();
    }
    hinted(&from, 31);
    let (to, plan) = bucket();
    let options =
        CopyOptions { path: "/", target_path: "/", at: At::Latest, tag: None, history: true, overwrite: false };
    copy_on((&context(64), storage(&from)), (&context(64), storage(&to)), &options, &Call::default()).unwrap();
    let renewed = || storage(&to).read_all(LATEST).is_ok_and(|hint| hint.starts_with(b"31 "));
    while !renewed() {
        std::thread::sleep(Duration::from_millis(5));
    }
    for bucket in [&from, &to] {
        let counting = Arc::new(CountingStorage::new(storage(bucket)));
        let counted: Arc<dyn Storage> = counting.clone();
        let found = open(&context(64), &counted, "/line", At::Latest).unwrap();
        let (reads, bytes) = (counting.snapshot().reads.len(), counting.snapshot().bytes_read);
        println!("31 versions of long records: {reads} objects, {bytes} bytes");
        assert!(reads <= REQUESTS_MAX && bytes <= 4 * (64 << 10) + (32 << 10), "{reads} objects, {bytes} bytes");
        assert_eq!((found.version(), read(&found).unwrap()), (31, expected.clone()));
    }
    plan.clear();
    array(&to);
    let counts = requests(&plan);
    assert!(counts["get"] <= REQUESTS_MAX && counts.len() == 1, "{counts:?}");
}

/// What a vacuum forgets is not in the hint either.
#[test]
fn a_vacuum_writes_the_hint_anew() {
    let (bucket, plan) = bucket();
    create(&context(64), &storage(&bucket), "/line", false);
    let writer = array(&bucket);
    for n in 2..=8 {
        writer.commit(vec![stage(&writer, &[(n, n)].into())], Some(format!("secret {n}"))).unwrap();
    }
    hinted(&bucket, 8);
    let hint = || storage(&bucket).read_all(LATEST).unwrap();
    let tells = |hint: &[u8]| hint.windows(6).any(|part| part == b"secret");
    assert!(tells(&hint()));
    vacuum(&writer, Keep::Versions(1)).unwrap();
    let mut left = 2_000;
    while tells(&hint()) {
        assert!(left > 0, "the hint still tells of forgotten versions");
        left -= 1;
        std::thread::sleep(Duration::from_millis(5));
    }
    plan.clear();
    assert_eq!(read(&array(&bucket)).unwrap(), (2..=8).map(|n| (n, n)).collect());
    assert!(array(&bucket).verify(&Call::default()).unwrap().damage.is_empty());
}

/// Long records that a root stands behind are not read to find the newest version, and those that it needs are, in one more round.
#[test]
fn opening_reads_long_records_only_if_it_needs_them() {
    let (bucket, plan) = bucket();
    create(&context(64), &storage(&bucket), "/line", false);
    let mut dice = Dice::new(5);
    let writer = array(&bucket);
    // About 60 KiB each, none of which filters make smaller.
    (1..=20).for_each(|_| drop(write(&writer, &(0..7_000).map(|x| (x, dice.word() as i64)).collect())));
    hinted(&bucket, 21);
    // The number alone, as earlier releases wrote it.
    storage(&bucket).put(LATEST, b"20").unwrap();
    plan.clear();
    plan.slow(Duration::from_millis(300));
    let found = array(&bucket);
    assert_eq!(found.version(), 21);
    let (counts, rounds) = (requests(&plan), plan.rounds());
    assert!(rounds <= 4 && counts["get"] <= 2 + 6 + 19 + 1, "{rounds} rounds of {counts:?}");
    plan.clear();
    assert_eq!(read(&found).unwrap().len(), 7_000);
}

/// Wherever one record is missing, what needs it or would commit into the gap fails. An opening needs none of
/// which the hint has the line.
#[test]
fn a_missing_record_is_never_taken_for_the_end() {
    for versions in [4, 9, 16, 17, 20, 23, 24] {
        let (bucket, _) = bucket();
        of_versions(&bucket, versions);
        for gone in 1..versions {
            let (place, name) = (storage(&bucket), log_name(gone));
            let bytes = place.read_all(&name).unwrap();
            place.delete(&name).unwrap();
            let hint = place.read_all(LATEST).unwrap();
            for known in [gone < versions / HINT_EVERY * HINT_EVERY, false] {
                let opened = open(&context(64), &storage(&bucket), "/line", At::Latest);
                if known {
                    assert_eq!(opened.unwrap().version(), versions, "{gone} of {versions}");
                } else {
                    let error = opened.map(|array| array.version());
                    let error = error.expect_err(&format!("version {gone} of {versions} is missing"));
                    assert_eq!(error.kind(), ErrorKind::Corruption, "{gone} of {versions}: {error}");
                    assert!(error.message().contains(&format!("version {gone} ")), "{gone} of {versions}: {error}");
                }
                // The same with a hint that is a number alone.
                place.put(LATEST, &hint[..32]).unwrap();
            }
            place.put(LATEST, &hint).unwrap();
            place.put(&name, &bytes).unwrap();
        }
        assert_eq!(array(&bucket).version(), versions);
    }
}

/// A wild hint, one that is far behind, and none at all where there are many versions: the newest is found, at some more requests.
#[test]
fn a_hint_is_never_trusted() {
    let (bucket, _) = bucket();
    of_versions(&bucket, 150);
    let place = storage(&bucket);
    for hint in ["8", "64", "144", "148", "150"] {
        place.put(LATEST, hint.as_bytes()).unwrap();
        assert_eq!(array(&bucket).version(), 150, "{hint}");
    }
    for hint in ["200", "99999999", "18446744073709551615", "-1"] {
        place.put(LATEST, hint.as_bytes()).unwrap();
        assert_eq!(array(&bucket).version(), 150, "{hint}");
    }
    place.delete(LATEST).unwrap();
    assert_eq!(array(&bucket).version(), 150);
    // What the hint names beyond the end is looked for in the whole log.
    place.put(LATEST, b"160").unwrap();
    place.put(&log_name(159), b"a record of later").unwrap();
    let error = open(&context(64), &place, "/line", At::Latest).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
}

/// The records since the last fold come side by side, so that opening takes as long after sixty commits as after one.
#[test]
fn opening_asks_for_its_records_together() {
    let (bucket, plan) = bucket();
    create(&context(64), &storage(&bucket), "/line", false);
    let (writer, mut expected) = (array(&bucket), Cells::new());
    let follower = array(&bucket);
    for n in 0..29 {
        write(&writer, &[(n, n)].into()).unwrap();
        expected.insert(n, n);
    }
    assert_eq!(writer.version(), 30);
    plan.clear();
    // A reader that asked for one after the other would wait for ever for the first; it fails after a while.
    hinted(&bucket, 30);
    storage(&bucket).put(LATEST, b"28").unwrap();
    plan.clear();
    plan.gather_these((1..28).map(log_name).collect());
    let found = array(&bucket);
    let counts = requests(&plan);
    // The hint and the floor, six records from 28 on, 27 before it, and the floor again.
    assert!(counts["get"] <= 36 && counts.len() == 1, "an open: {counts:?}");
    plan.clear();
    assert_eq!(read(&found).unwrap(), expected);
    // A reader that follows from version 1 asks for one, two, four, eight and sixteen more.
    plan.clear();
    plan.gather_these((17..31).map(log_name).collect());
    assert_eq!(follower.refresh().unwrap(), 30);
    let counts = requests(&plan);
    assert!(counts["get"] <= 31 + 2 && counts.values().sum::<usize>() <= 31 + 5, "a refresh: {counts:?}");
    plan.clear();
    assert_eq!(read(&follower).unwrap(), expected);
    storage(&bucket).delete(&log_name(17)).unwrap();
    let error = open(&context(64), &storage(&bucket), "/line", At::Latest).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert!(error.message().contains("version 17"), "{error}");
}
