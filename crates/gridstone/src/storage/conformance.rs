//! The conformance suite of storages, called once by the tests of each storage and decorator.

use super::{PutOutcome, Storage, Swept};
use crate::base::{ByteRange, Clock, Error, ErrorKind, NeverCancel};
use crate::runtime::{Pool, SystemClock};
use std::sync::Arc;
use std::time::Duration;

/// Checks a storage; `make` returns an empty, unprepared one.
pub(super) fn check(make: &dyn Fn() -> Arc<dyn Storage>) {
    let prepared = || {
        let storage = make();
        storage.prepare().unwrap();
        storage
    };
    preparing_is_idempotent(&*make());
    absent_objects_are_not_found(&*prepared());
    a_sink_writes_an_object(&*prepared());
    a_dropped_sink_leaves_nothing(&*prepared());
    a_source_gives_every_range(&*prepared());
    a_source_never_gives_short_bytes(&*prepared());
    an_open_source_outlives_its_name(&*prepared());
    put_if_absent_creates_once(&*prepared());
    several_objects_come_in_order(&*prepared());
    a_start_is_that_of_the_object(&*prepared());
    several_objects_are_deleted(&*prepared());
    what_is_there_can_be_made_durable(&*prepared());
    the_storages_time_is_that_of_what_it_writes(&*prepared());
    put_replaces(&*prepared());
    starts_are_what_is_there(&*prepared());
    listing_shows_one_folder(&*prepared());
    a_survey_tells_length_and_time(&*prepared());
    put_if_unchanged_compares(&*prepared());
    of_racing_changes_of_one_content_one_happens(prepared());
    bad_names_are_refused(&*prepared());
    removing_takes_all_that_is_known(&*prepared());
    removing_needs_a_log(&*make());
    of_racing_writers_one_creates(prepared());
}

fn preparing_is_idempotent(storage: &dyn Storage) {
    storage.prepare().unwrap();
    storage.put_if_absent("_log/1", b"kept").unwrap();
    storage.prepare().unwrap();
    assert_eq!(storage.read_all("_log/1").unwrap(), "kept");
    assert!(!storage.describe().is_empty());
}

fn absent_objects_are_not_found(storage: &dyn Storage) {
    for name in ["_log/1", "_data", "_elsewhere/1"] {
        assert_eq!(storage.open(name).err().unwrap().kind(), ErrorKind::NotFound);
        assert_eq!(storage.read_all(name).err().unwrap().kind(), ErrorKind::NotFound);
        assert!(!storage.exists(name).unwrap());
    }
    assert_eq!(storage.sync("_log/1").err().unwrap().kind(), ErrorKind::NotFound);
    storage.delete("_log/1").unwrap();
}

fn a_sink_writes_an_object(storage: &dyn Storage) {
    let mut sink = storage.create("_data/a.frag").unwrap();
    assert_eq!(storage.create("_data/a.frag").err().unwrap().kind(), ErrorKind::Exists);
    for piece in [&b"abc"[..], b"", b"defg"] {
        sink.write(piece).unwrap();
    }
    sink.write(&[b'x'; 700_000]).unwrap();
    sink.finish().unwrap();
    let bytes = storage.read_all("_data/a.frag").unwrap();
    assert_eq!((bytes.len(), &bytes[..8]), (700_007, &b"abcdefgx"[..]));
    assert_eq!(storage.create("_data/a.frag").err().unwrap().kind(), ErrorKind::Exists);
    storage.sync("_data/a.frag").unwrap();
    storage.create("_data/empty.frag").unwrap().finish().unwrap();
    assert!(storage.open("_data/empty.frag").unwrap().is_empty());
}

fn a_dropped_sink_leaves_nothing(storage: &dyn Storage) {
    let mut sink = storage.create("_data/a.frag").unwrap();
    sink.write(b"abc").unwrap();
    drop(sink);
    assert!(!storage.exists("_data/a.frag").unwrap());
    assert!(storage.list("_data").unwrap().is_empty());
    storage.create("_data/a.frag").unwrap().finish().unwrap();
}

fn a_source_gives_every_range(storage: &dyn Storage) {
    let content: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
    storage.put("_data/a.frag", &content).unwrap();
    let source = storage.open("_data/a.frag").unwrap();
    assert_eq!(source.len(), 100_000);
    let asked = [(99_990, 10), (0, 5), (3, 4), (0, 5), (7, 0), (50_000, 20_000), (100_000, 0), (128, 1), (0, 100_000)];
    let ranges = asked.map(|(offset, len)| ByteRange::new(offset, len));
    let found = source.read(&ranges).unwrap();
    assert_eq!(found.len(), ranges.len());
    for (range, bytes) in ranges.iter().zip(found) {
        assert_eq!(bytes, content[range.offset as usize..range.end() as usize], "{range:?}");
    }
    assert!(source.read(&[]).unwrap().is_empty());
}

fn a_source_never_gives_short_bytes(storage: &dyn Storage) {
    storage.put("_data/a.frag", b"0123456789").unwrap();
    let source = storage.open("_data/a.frag").unwrap();
    for (offset, len) in [(10, 1), (0, 11), (11, 0), (u64::MAX, 0), (5, u64::MAX), (u64::MAX, u64::MAX)] {
        let error = source.read(&[ByteRange::new(0, 1), ByteRange::new(offset, len)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.message().contains(&format!("at offset {offset}")), "{error}");
    }
}

fn an_open_source_outlives_its_name(storage: &dyn Storage) {
    storage.put("_data/a.frag", b"still here").unwrap();
    let source = storage.open("_data/a.frag").unwrap();
    storage.delete("_data/a.frag").unwrap();
    assert!(!storage.exists("_data/a.frag").unwrap());
    assert_eq!(source.read_one(ByteRange::new(0, 5)).unwrap(), "still");
}

fn several_objects_come_in_order(storage: &dyn Storage) {
    let names: Vec<String> = (1..=9).map(|n| format!("_log/{n}")).collect();
    for (name, n) in names.iter().zip(1..).filter(|(_, n)| n % 4 != 0) {
        storage.put(name, &vec![n; 100 * n as usize]).unwrap();
    }
    let mut shown = Vec::new();
    let seen = storage.read_each(&names, &mut |name, bytes| {
        let found = match bytes {
            Ok(bytes) => Some((bytes.len(), bytes[0])),
            Err(e) => (e.kind() != ErrorKind::NotFound).then(|| panic!("{e}")),
        };
        shown.push((name.to_owned(), found));
        Ok(())
    });
    seen.unwrap();
    let there = |n: &u8| (!n.is_multiple_of(4)).then_some((100 * usize::from(*n), *n));
    let expected: Vec<_> = names.iter().cloned().zip((1..=9u8).map(|n| there(&n))).collect();
    assert_eq!(shown, expected);
    let mut asked = 0;
    let stopped = storage.read_each(&names, &mut |_, _| {
        asked += 1;
        if asked < 3 { Ok(()) } else { Err(Error::conflict("enough")) }
    });
    assert_eq!((stopped.unwrap_err().kind(), asked), (ErrorKind::Conflict, 3));
    storage.read_each(&[], &mut |_, _| panic!("nothing was asked for")).unwrap();
}

fn a_start_is_that_of_the_object(storage: &dyn Storage) {
    let content: Vec<u8> = (0..70_000u32).map(|i| (i % 251) as u8).collect();
    for name in ["_log/1", "_data/a.frag"] {
        assert_eq!(storage.read_start(name, 5).unwrap_err().kind(), ErrorKind::NotFound);
        storage.put(name, &content).unwrap();
        for len in [0, 1, 64, 65_536, 69_999, 70_000, 70_001, u64::MAX] {
            let start = storage.read_start(name, len).unwrap();
            assert_eq!(start, content[..len.min(70_000) as usize], "{name}: {len}");
        }
    }
    storage.put("_log/floor", b"low").unwrap();
    let (record, floor) = storage.read_start_and_floor("_log/1", 3);
    assert_eq!((record.unwrap().as_ref(), floor.unwrap().as_ref()), (&content[..3], &b"low"[..]));
}

fn several_objects_are_deleted(storage: &dyn Storage) {
    let names: Vec<String> = (0..25).map(|n| format!("_data/{n}.frag")).collect();
    for name in names.iter().step_by(2) {
        storage.put(name, b"x").unwrap();
    }
    storage.put("_data/kept.frag", b"x").unwrap();
    storage.delete_each(&[]).unwrap();
    storage.delete_each(&names).unwrap();
    assert_eq!(storage.list("_data").unwrap(), ["_data/kept.frag"]);
    let bad = ["_data/kept.frag".to_owned(), "../outside".to_owned()];
    assert_eq!(storage.delete_each(&bad).unwrap_err().kind(), ErrorKind::Input);
}

fn what_is_there_can_be_made_durable(storage: &dyn Storage) {
    for name in ["_log/1", "_log/floor", "_manifest/a", "_data/a.frag"] {
        assert_eq!(storage.sync(name).unwrap_err().kind(), ErrorKind::NotFound, "{name}");
        storage.put_if_absent(name, b"x").unwrap();
        storage.sync(name).unwrap();
        storage.sync(name).unwrap();
        assert_eq!(storage.read_all(name).unwrap(), "x");
    }
}

/// Some storages date objects in whole seconds.
fn the_storages_time_is_that_of_what_it_writes(storage: &dyn Storage) {
    let before = storage.now_us().unwrap();
    storage.put("_data/a.frag", b"x").unwrap();
    let after = storage.now_us().unwrap();
    let mut written = Vec::new();
    storage.survey("_data", &mut |listed| written.push(listed.modified_us)).unwrap();
    assert!(before - 1_000_000 <= written[0] && written[0] <= after + 1_000_000, "{before}, {written:?}, {after}");
    let apart = SystemClock.now_us() - after;
    assert!(apart.abs() < 5_000_000, "{apart} microseconds from the clock of this machine");
    // The question leaves nothing behind, visible or hidden.
    assert!(storage.list("_log").unwrap().is_empty());
    assert_eq!(storage.sweep("_log", i64::MAX, false).unwrap(), Swept::default());
}

/// Checks that a storage reads no object whole that is longer than its kind allows; `make` returns an empty, unprepared
/// one.
pub(super) fn check_lengths(make: &dyn Fn() -> Arc<dyn Storage>) {
    let storage = make();
    storage.prepare().unwrap();
    for (name, len) in [("_log/latest", 300_000), ("_log/floor", 70_000), ("_lease/a", 70_000)] {
        storage.put(name, &vec![b'7'; len]).unwrap();
        let error = storage.read_all(name).unwrap_err();
        assert!(error.kind() == ErrorKind::Corruption && error.message().contains(name), "{error}");
        assert!(storage.exists(name).unwrap());
        storage.put(name, b"7").unwrap();
        assert_eq!(storage.read_all(name).unwrap(), "7");
    }
    storage.put("_data/a.frag", &[7; 70_000]).unwrap();
    assert_eq!(storage.read_all("_data/a.frag").unwrap().len(), 70_000);
}

fn put_if_absent_creates_once(storage: &dyn Storage) {
    assert_eq!(storage.put_if_absent("_log/1", b"first").unwrap(), PutOutcome::Created);
    assert_eq!(storage.put_if_absent("_log/1", b"second").unwrap(), PutOutcome::Exists);
    assert_eq!(storage.read_all("_log/1").unwrap(), "first");
    assert_eq!(storage.list("_log").unwrap(), ["_log/1"]);
    storage.delete("_log/1").unwrap();
    assert_eq!(storage.put_if_absent("_log/1", b"").unwrap(), PutOutcome::Created);
    assert!(storage.read_all("_log/1").unwrap().is_empty());
}

fn put_replaces(storage: &dyn Storage) {
    for (round, text) in ["1", "22", ""].into_iter().enumerate() {
        let put = if round % 2 == 0 { Storage::put } else { Storage::put_hint };
        put(storage, "_log/latest", text.as_bytes()).unwrap();
        // A hint may still be on its way.
        let seen = || storage.read_all("_log/latest").unwrap() == text;
        assert!((0..2_000).any(|_| seen() || waited()), "{text:?}");
    }
    assert_eq!(storage.list("_log").unwrap(), ["_log/latest"]);
}

/// Waits a little and returns false.
pub(super) fn waited() -> bool {
    let (open, nothing) = std::sync::mpsc::channel::<()>();
    let waited = nothing.recv_timeout(Duration::from_millis(5)).is_ok();
    drop(open);
    waited
}

/// Reading the start of an object returns what it has, alone and together with the floor; several objects are deleted
/// at once.
fn starts_are_what_is_there(storage: &dyn Storage) {
    let content: Vec<u8> = (0..70_000u32).map(|i| (i % 251) as u8).collect();
    for len in [0, 1, 100, 16_384, 70_000] {
        storage.put("_log/1", &content[..len]).unwrap();
        for asked in [0, 1, 99, 100, 101, 16_383, 16_384, 16_385, 69_999, 70_000, u64::MAX >> 8] {
            let expected = &content[..len.min(usize::try_from(asked).unwrap())];
            assert_eq!(storage.read_start("_log/1", asked).unwrap(), expected, "{asked} of {len}");
            let (start, floor) = storage.read_start_and_floor("_log/1", asked);
            assert_eq!(start.unwrap(), expected, "{asked} of {len}");
            assert_eq!(floor.unwrap_err().kind(), ErrorKind::NotFound);
        }
    }
    let names = ["_log/1", "_log/9"].map(str::to_owned);
    let mut shown = Vec::new();
    let mut visit = |_: &str, start: crate::base::Result<bytes::Bytes>| {
        shown.push(start.map(|start| start == content[..20_000]).map_err(|e| e.kind()));
        Ok(())
    };
    storage.read_each_start(&names, 20_000, &mut visit).unwrap();
    assert_eq!(shown, [Ok(true), Err(ErrorKind::NotFound)]);
    storage.put("_log/floor", b"a floor").unwrap();
    let (start, floor) = storage.read_start_and_floor("_log/2", 10);
    assert_eq!((start.unwrap_err().kind(), floor.unwrap()), (ErrorKind::NotFound, "a floor".into()));
    assert_eq!(storage.read_start("_log/2", 10).unwrap_err().kind(), ErrorKind::NotFound);
    storage.put("_log/2", b"x").unwrap();
    for (most, expected) in [(3, true), (2, false)] {
        let few = storage.list_few("_log", most).unwrap();
        assert_eq!(few.is_some(), expected);
        assert!(few.is_none_or(|names| names == ["_log/1", "_log/2", "_log/floor"]));
    }
    let names = ["_log/1", "_log/2", "_log/3"].map(str::to_owned);
    storage.delete_each(&names).unwrap();
    assert_eq!(storage.list("_log").unwrap(), ["_log/floor"]);
    storage.delete_each(&[]).unwrap();
}

fn listing_shows_one_folder(storage: &dyn Storage) {
    for name in ["_log/2", "_log/10", "_log/1", "_data/x.frag"] {
        storage.put(name, b"").unwrap();
    }
    assert_eq!(storage.list("_log").unwrap(), ["_log/1", "_log/10", "_log/2"]);
    assert_eq!(storage.list("_data").unwrap(), ["_data/x.frag"]);
    assert!(storage.list("_lease").unwrap().is_empty());
    assert!(storage.list("_lo").unwrap().is_empty());
}

fn a_survey_tells_length_and_time(storage: &dyn Storage) {
    let from = SystemClock.now_us() - 2_000_000;
    for (name, bytes) in [("_data/b.frag", &b"four"[..]), ("_data/a.frag", b""), ("_log/1", b"x")] {
        storage.put(name, bytes).unwrap();
    }
    let mut found = Vec::new();
    storage.survey("_data", &mut |listed| found.push(listed)).unwrap();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let seen: Vec<_> = found.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(seen, ["_data/a.frag", "_data/b.frag"]);
    // A sealing storage takes more room, the same amount for each of these.
    assert_eq!(found[1].bytes - found[0].bytes, 4, "{found:?}");
    let to = SystemClock.now_us() + 2_000_000;
    assert!(found.iter().all(|l| (from..to).contains(&l.modified_us)), "{found:?}");
    storage.survey("_lease", &mut |listed| panic!("{listed:?} in an empty folder")).unwrap();
    storage.survey("_elsewhere", &mut |listed| panic!("{listed:?} in no folder")).unwrap();
    assert_eq!(storage.sweep("_data", i64::MAX, true).unwrap(), Swept::default());
    assert_eq!(storage.list("_data").unwrap().len(), 2);
}

fn put_if_unchanged_compares(storage: &dyn Storage) {
    let put = |expected: Option<&[u8]>, bytes: &[u8]| storage.put_if_unchanged("_log/floor", expected, bytes).unwrap();
    assert!(!put(Some(b"one"), b"two"));
    assert!(!storage.exists("_log/floor").unwrap());
    assert!(put(None, b"one"));
    assert!(!put(None, b"two") && !put(Some(b"on"), b"two") && !put(Some(b""), b"two"));
    assert_eq!(storage.read_all("_log/floor").unwrap(), "one");
    assert!(put(Some(b"one"), b"two"));
    assert_eq!(storage.read_all("_log/floor").unwrap(), "two");
    assert_eq!(storage.list("_log").unwrap(), ["_log/floor"]);
}

/// Eight threads count to 200 together: no step is lost, none is done twice.
fn of_racing_changes_of_one_content_one_happens(storage: Arc<dyn Storage>) {
    storage.put("_log/floor", b"0").unwrap();
    let count = |_: u8| {
        let mut wins = 0u32;
        loop {
            let held = storage.read_all("_log/floor").unwrap();
            let number: u32 = std::str::from_utf8(&held).unwrap().parse().unwrap();
            if number >= 200 {
                return Ok(wins);
            }
            let next = (number + 1).to_string();
            wins += u32::from(storage.put_if_unchanged("_log/floor", Some(&held), next.as_bytes()).unwrap());
        }
    };
    let wins = Pool::new(Some(8)).unwrap().map((0..8).collect(), &NeverCancel, count).unwrap();
    assert_eq!(wins.iter().sum::<u32>(), 200, "{wins:?}");
}

fn bad_names_are_refused(storage: &dyn Storage) {
    for name in ["", "/etc/passwd", "../outside", "_log/../../outside", "_log/.tmp-1", "_log/a\0b"] {
        let errors = [
            storage.open(name).map(drop).unwrap_err(),
            storage.read_all(name).map(drop).unwrap_err(),
            storage.read_start(name, 1).map(drop).unwrap_err(),
            storage.delete_each(&[name.to_owned()]).unwrap_err(),
            storage.create(name).map(drop).unwrap_err(),
            storage.put_if_absent(name, b"").map(drop).unwrap_err(),
            storage.put(name, b"").unwrap_err(),
            storage.put_hint(name, b"").unwrap_err(),
            storage.sync(name).unwrap_err(),
            storage.delete(name).unwrap_err(),
            storage.exists(name).map(drop).unwrap_err(),
            storage.list(name).map(drop).unwrap_err(),
            storage.survey(name, &mut |_| ()).unwrap_err(),
            storage.sweep(name, 0, true).map(drop).unwrap_err(),
            storage.put_if_unchanged(name, None, b"").map(drop).unwrap_err(),
        ];
        assert!(errors.iter().all(|error| error.kind() == ErrorKind::Input), "{errors:?}");
    }
}

fn removing_takes_all_that_is_known(storage: &dyn Storage) {
    for name in ["_log/1", "_log/floor", "_data/a.frag", "_manifest/a"] {
        storage.put(name, b"x").unwrap();
    }
    storage.remove_everything().unwrap();
    for folder in ["_log", "_data", "_manifest", "_lease", "_removed"] {
        assert!(storage.list(folder).unwrap().is_empty());
    }
    storage.remove_everything().unwrap();
    storage.prepare().unwrap();
    assert_eq!(storage.put_if_absent("_log/1", b"again").unwrap(), PutOutcome::Created);
}

fn removing_needs_a_log(storage: &dyn Storage) {
    storage.remove_everything().unwrap();
    assert!(!storage.exists("_log/1").unwrap());
}

/// Eight threads create each of 200 names: for each name, one thread gets `Created`, and its bytes are stored in full.
fn of_racing_writers_one_creates(storage: Arc<dyn Storage>) {
    let names: Vec<String> = (0..200).map(|i| format!("_log/{i:020}")).collect();
    let wins = |writer: u8| {
        let content = vec![writer; 5_000 + writer as usize];
        let put = |name: &String| storage.put_if_absent(name, &content).unwrap() == PutOutcome::Created;
        Ok(names.iter().map(put).collect::<Vec<bool>>())
    };
    let wins = Pool::new(Some(8)).unwrap().map((0..8).collect(), &NeverCancel, wins).unwrap();
    for (i, name) in names.iter().enumerate() {
        let winners: Vec<u8> = (0..8).filter(|writer| wins[*writer as usize][i]).collect();
        assert_eq!(winners.len(), 1, "{name}: {winners:?}");
        assert_eq!(storage.read_all(name).unwrap(), vec![winners[0]; 5_000 + winners[0] as usize]);
    }
    assert_eq!(storage.list("_log").unwrap(), names);
}
