//! Promise: in an object store everything holds that holds in a folder: no commit is lost, none is done twice, and each step
//! takes few requests.

// The storage's own tests use more of it.
#[allow(dead_code, reason = "shared with the tests of the storage")]
#[path = "../../src/storage/object/tests/faulty.rs"]
mod faulty;

mod ahead;
mod ahead_lost;
mod openings;
mod server;

use crate::support::columns::{bytes_of, view};
use crate::support::line::{Cells, create, read, read_in, write};
use crate::support::store::{context, nothing_is_left, open, vacuum};
use faulty::{Faulty, Plan, Trouble};
use gridstone::base::{CounterSnapshot, ErrorKind, Progress, Result};
use gridstone::engine::{
    Array, At, Call, CancelFlag, CellData, CopyOptions, Dedup, Keep, ReadOrder, Strategy, copy_on, create_array_on,
};
use gridstone::schema::Schema;
use gridstone::storage::{CountingStorage, MemoryStorage, ObjectStorage, Operation, Storage, log_name};
use gridstone_testkit::Dice;
use object_store::ObjectStore;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

type Bucket = Arc<dyn ObjectStore>;

fn storage(bucket: &Bucket) -> Arc<dyn Storage> {
    Arc::new(ObjectStorage::over("s3://box/a", "a", bucket.clone(), bucket.clone()).unwrap())
}

fn bucket() -> (Bucket, Arc<Plan>) {
    Faulty::planned()
}

/// The array, opened as another process would.
fn array(bucket: &Bucket) -> Array {
    open(&context(64), &storage(bucket), "/line", At::Latest).unwrap()
}

/// How often each kind of request was made.
fn requests(plan: &Plan) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    plan.seen().into_iter().for_each(|what| *counts.entry(what).or_default() += 1);
    counts
}

#[test]
fn an_array_lives_in_a_bucket() {
    let (bucket, _) = bucket();
    create(&context(8), &storage(&bucket), "/line", false);
    let mut expected = Cells::new();
    for round in 0..30i64 {
        // Every fifth is too large for a record.
        let cells: Cells = (0..if round % 5 == 0 { 9_000 } else { 20 }).map(|x| (x + 10 * round, round)).collect();
        write(&open(&context(8), &storage(&bucket), "/line", At::Latest).unwrap(), &cells).unwrap();
        expected.extend(cells);
    }
    let found = array(&bucket);
    assert_eq!(read(&found).unwrap(), expected);
    assert_eq!(found.version(), 31);
    let old = open(&context(8), &storage(&bucket), "/line", At::Version(2)).unwrap();
    assert_eq!(read(&old).unwrap().len(), 9_000);
    let merger = open(&context(8), &storage(&bucket), "/line", At::Latest).unwrap();
    merger.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
    vacuum(&merger, Keep::Versions(1)).unwrap();
    nothing_is_left(&storage(&bucket), "after a vacuum");
    let found = array(&bucket);
    assert_eq!(read(&found).unwrap(), expected);
    assert!(found.verify(&Call::default()).unwrap().damage.is_empty());
    storage(&bucket).remove_everything().unwrap();
    let error = open(&context(8), &storage(&bucket), "/line", At::Latest).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    create(&context(8), &storage(&bucket), "/line", false);
    assert!(read(&array(&bucket)).unwrap().is_empty());
}

#[test]
fn copies_go_into_buckets_and_out_of_them() {
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let made = create(&context(8), &memory, "/line", false);
    let mut expected = Cells::new();
    for round in 0..20i64 {
        let cells: Cells = (0..if round == 3 { 9_000 } else { 20 }).map(|x| (x + 10 * round, round)).collect();
        write(&made, &cells).unwrap();
        expected.extend(cells);
    }
    vacuum(&made, Keep::Versions(12)).unwrap();
    for history in [false, true] {
        let (bucket, _) = bucket();
        let options = CopyOptions { path: "/", target_path: "/", at: At::Latest, tag: None, history, overwrite: false };
        let copied = |from: &Arc<dyn Storage>, to: &Arc<dyn Storage>| {
            copy_on((&context(8), from.clone()), (&context(8), to.clone()), &options, &Call::default()).unwrap()
        };
        copied(&memory, &storage(&bucket));
        assert_eq!(read(&array(&bucket)).unwrap(), expected);
        let old = open(&context(8), &storage(&bucket), "/line", At::Version(15)).map(|old| read(&old).unwrap());
        assert_eq!(old.is_ok(), history);
        let back: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        copied(&storage(&bucket), &back);
        assert_eq!(read(&open(&context(8), &back, "/line", At::Latest).unwrap()).unwrap(), expected);
        nothing_is_left(&storage(&bucket), "a copy");
        write(&array(&bucket), &Cells::from([(1, 1)])).unwrap();
    }
}

/// Tells to stop when `left` steps are done.
struct Stopping(CancelFlag, AtomicI64);

impl Progress for Stopping {
    fn report(&self, _: u64, _: u64) {
        if self.1.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.cancel();
        }
    }
}

/// Wherever it is stopped: what it wrote goes, though requests are given up once somebody stops them. They are slow enough for that.
#[test]
fn a_copy_that_is_stopped_leaves_nothing_in_a_bucket() {
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let made = create(&context(8), &memory, "/line", false);
    for round in 0..12i64 {
        write(&made, &(0..if round % 3 == 0 { 20_000 } else { 20 }).map(|x| (x, 77 * x * round)).collect()).unwrap();
    }
    for history in [false, true] {
        let options = CopyOptions { path: "/", target_path: "/", at: At::Latest, tag: None, history, overwrite: false };
        let mut stopped = 0;
        for n in [1, 2, 3, 5, 8, 13, 21] {
            let (bucket, plan) = bucket();
            let slow = ThrottleConfig {
                wait_get_per_call: Duration::from_millis(40),
                wait_list_per_call: Duration::from_millis(80),
                ..ThrottleConfig::default()
            };
            let bucket: Bucket = Arc::new(ThrottledStore::new(bucket, slow));
            let flag = CancelFlag::new();
            let progress = Arc::new(Stopping(flag.clone(), AtomicI64::new(n)));
            let call = Call { cancel: Arc::new(flag), progress, ..Call::default() };
            let (from, to) = ((&context(8), memory.clone()), (&context(8), storage(&bucket)));
            let Err(error) = call.run(|| copy_on(from, to, &options, &call)) else { continue };
            assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
            let place = storage(&bucket);
            let left: Vec<String> =
                ["_log", "_data", "_manifest", "_lease"].iter().flat_map(|f| place.list(f).unwrap()).collect();
            assert!(left.is_empty(), "history {history}, stopped after {n} steps: {left:?}");
            stopped += usize::from(plan.seen().contains(&"put"));
            create(&context(8), &place, "/line", false);
        }
        assert!(stopped > 2, "history {history}: {stopped}");
    }
}

fn point(array: &Array, x: i64) -> CounterSnapshot {
    let range = [(x.to_string(), x.to_string())];
    let (cells, _, counters) =
        array.read(Some(&range), None, gridstone::engine::ReadOrder::Row, &Call::default()).unwrap();
    assert_eq!(cells.count, 1);
    counters
}

#[test]
fn each_step_takes_few_requests() {
    let (bucket, plan) = bucket();
    create(&context(64), &storage(&bucket), "/line", false);
    let writer = array(&bucket);
    let large: Cells = (0..20_000).map(|x| (x, x)).collect();
    write(&writer, &large).unwrap();
    let small: Cells = [(7, 70)].into();
    plan.clear();
    write(&writer, &small).unwrap();
    let seen = plan.seen();
    assert_eq!(seen, ["put", "get", "get"], "a small commit is the record, and looks at the one before and the floor");

    plan.clear();
    let reader = array(&bucket);
    let counts = requests(&plan);
    // The hint and the floor, a list of the short log, three records.
    assert_eq!(counts, [("get", 5), ("list", 1)].into(), "an open");

    plan.clear();
    let counting = Arc::new(CountingStorage::new(storage(&bucket)));
    let counted: Arc<dyn Storage> = counting.clone();
    let through = open(&context(64), &counted, "/line", At::Latest).unwrap();
    counting.reset();
    plan.clear();
    point(&through, 15_000);
    let (asked, counts) = (counting.snapshot(), requests(&plan));
    println!("a point: {:?} {counts:?}", asked.operations);
    // The small fragment's record; of the large one the end, the index of a stripe, and a block.
    assert!(asked.count(Operation::Open) <= 2 && asked.count(Operation::List) == 0, "{:?}", asked.operations);
    assert!(counts["get"] <= 5 && counts.len() == 1, "a point: {counts:?}");

    plan.clear();
    reader.refresh().unwrap();
    assert_eq!(
        plan.seen(),
        ["get", "get"],
        "a refresh without news: the next record, which is not there, and the floor"
    );
}

const LONG_LINE: &str = r#"{"sparse":true,"dims":[{"name":"x","dtype":"int64","domain":["0","399999"],"tile":"100000"}],
    "attrs":[{"name":"v","dtype":"int64"}]}"#;

/// Some megabytes that no filter makes smaller come in a few long requests, not in one per column, tile or quarter of a megabyte.
#[test]
fn much_is_asked_for_at_once() {
    let (bucket, plan) = bucket();
    let schema = Schema::from_json(LONG_LINE).unwrap();
    create_array_on(&context(64), storage(&bucket), "/line", schema, false).unwrap();
    let mut dice = Dice::new(8);
    let cells: Cells = (0..400_000).map(|x| (x, dice.word() as i64)).collect();
    write(&array(&bucket), &cells).unwrap();
    for order in [ReadOrder::Row, ReadOrder::Any] {
        let reader = array(&bucket);
        plan.clear();
        assert_eq!(read_in(&reader, order).unwrap(), cells);
        let counts = requests(&plan);
        println!("3.2 MB: {counts:?}");
        // The end, the index, the values, and the coordinates if they are far from these.
        assert!(counts["get"] <= 5 && counts.len() == 1, "{order:?}: {counts:?}");
    }
}

/// Writes cells, and gives the error of whatever fails.
fn tried(array: &Array, cells: &Cells) -> Result<u64> {
    let (x, v) = (bytes_of(cells.keys().copied()), bytes_of(cells.values().copied()));
    let attrs = vec![("v".to_owned(), view(&v))];
    let data = CellData { dims: vec![view(&x)], attrs, sorted: false, dedup: Dedup::Error };
    array.commit(vec![array.stage_cells(data, &Call::default())?], None)
}

/// Whichever request of a commit loses its answer, and whether it took effect: the commit is done once.
#[test]
fn a_lost_answer_never_commits_twice() {
    let (bucket, plan) = bucket();
    create(&context(4), &storage(&bucket), "/line", false);
    let mut expected = Cells::new();
    let (mut version, mut struck) = (1, 0);
    for what in ["put", "get", "head"] {
        for trouble in [Trouble::After, Trouble::Before, Trouble::Twice] {
            for n in 1..=3 {
                let writer = open(&context(4), &storage(&bucket), "/line", At::Latest).unwrap();
                // One in a record, the next in a file of its own.
                let cells: Cells = (0..if version % 2 == 0 { 9_000 } else { 1 }).map(|x| (x, version)).collect();
                plan.clear();
                plan.fail(what, n, trouble);
                let outcome = tried(&writer, &cells);
                struck += usize::from(plan.struck());
                plan.clear();
                let found = array(&bucket);
                let newer = found.version() as i64 - version;
                match outcome {
                    Ok(made) => assert_eq!((newer, made as i64), (1, version + 1), "{what} {n} {trouble:?}"),
                    Err(e) if e.kind() == ErrorKind::CommitUnknown => assert!((0..=1).contains(&newer), "{e}"),
                    Err(e) => assert_eq!(newer, 0, "{what} {n} {trouble:?}: {e}"),
                }
                if newer == 1 {
                    expected.extend(cells);
                }
                version += newer;
                assert_eq!(read(&found).unwrap(), expected);
                assert_eq!(found.history(&Call::default()).unwrap().len() as i64, version);
            }
        }
    }
    assert!(struck > 12, "{struck} faults");
}

/// Sixteen writers, each with clients of its own, as processes have.
#[test]
fn sixteen_writers_lose_nothing() {
    const WRITES: i64 = 12;
    let (bucket, plan) = bucket();
    create(&context(8), &storage(&bucket), "/line", false);
    std::thread::scope(|scope| {
        for writer in 0..16i64 {
            let bucket = &bucket;
            scope.spawn(move || {
                let array = open(&context(8), &storage(bucket), "/line", At::Latest).unwrap();
                for round in 0..WRITES {
                    write(&array, &[(writer * 100 + round, round)].into()).unwrap();
                }
            });
        }
    });
    let found = array(&bucket);
    let expected: Cells =
        (0..16).flat_map(|writer| (0..WRITES).map(move |round| (writer * 100 + round, round))).collect();
    assert_eq!(read(&found).unwrap(), expected);
    assert_eq!(found.version() as i64, 16 * WRITES + 1);
    assert!(found.verify(&Call::default()).unwrap().damage.is_empty());
    assert!(requests(&plan)["list"] <= 1 + 16 + 1, "who opens a young store lists it, and nobody else anything");
}

/// A raw copy of a store, in a place whose writes heed no condition: it is read there, and nothing is committed to it.
#[test]
fn a_copy_is_not_committed_to_where_conditions_are_ignored() {
    let (from, _) = bucket();
    create(&context(8), &storage(&from), "/line", false);
    write(&array(&from), &[(1, 1)].into()).unwrap();
    let (to, plan) = bucket();
    let place = || -> Arc<dyn Storage> {
        Arc::new(ObjectStorage::over("s3://elsewhere/a", "a", to.clone(), to.clone()).unwrap())
    };
    for name in ["_log", "_data", "_manifest"].iter().flat_map(|folder| storage(&from).list(folder).unwrap()) {
        place().put(&name, &storage(&from).read_all(&name).unwrap()).unwrap();
    }
    plan.ignore_conditions();
    let before = place().list("_log").unwrap();
    let copy = open(&context(8), &place(), "/line", At::Latest).unwrap();
    assert_eq!(read(&copy).unwrap(), [(1, 1)].into());
    let error = write(&copy, &[(2, 2)].into()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert_eq!(place().list("_log").unwrap(), before);
}

/// The deletion of the store was begun between our put and our look, and its process died.
#[test]
fn a_record_put_into_a_store_that_is_being_deleted_is_taken_back() {
    let (bucket, plan) = bucket();
    create(&context(8), &storage(&bucket), "/line", false);
    let (healthy, begun) = (bucket.clone(), std::sync::atomic::AtomicBool::new(false));
    let hooked: Arc<dyn Storage> =
        Arc::new(gridstone::storage::HookedStorage::new(storage(&bucket), move |operation, name: &str| {
            if operation == Operation::PutIfAbsent && name == log_name(2) && !begun.swap(true, Ordering::Relaxed) {
                plan.fail("delete", 1, Trouble::Dead);
                storage(&healthy).remove_everything().unwrap_err();
                plan.clear();
            }
        }));
    let line = open(&context(8), &hooked, "/line", At::Latest).unwrap();
    let error = write(&line, &[(1, 1)].into()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

/// A clock that is a day and an hour ahead.
#[derive(Debug)]
struct Ahead;

impl gridstone::base::Clock for Ahead {
    fn now_us(&self) -> i64 {
        gridstone::runtime::SystemClock.now_us() + 25 * 3_600_000_000
    }
}

/// A writer whose clock is wrong dates its commits by the storage.
#[test]
fn a_writer_whose_clock_is_wrong_goes_by_the_storage() {
    use gridstone::storage::{Durability, LocalStorage};
    let folder = crate::support::scratch::Folder::new("clocks");
    let local =
        || -> Arc<dyn Storage> { Arc::new(LocalStorage::new(folder.path().join("a.gs"), Durability::Close).unwrap()) };
    let (bucket, _) = bucket();
    // Of another process: nothing was proved under this name.
    let elsewhere = || -> Arc<dyn Storage> {
        Arc::new(ObjectStorage::over("s3://clocks/a", "a", bucket.clone(), bucket.clone()).unwrap())
    };
    for (made, found) in [(local(), local()), (storage(&bucket), elsewhere())] {
        create(&context(64), &made, "/line", false);
        let wrong = crate::support::store::context_with(64, Arc::new(Ahead));
        let writer = open(&wrong, &found, "/line", At::Latest).unwrap();
        write(&writer, &[(1, 1)].into()).unwrap();
        let dated = writer.history(&Call::default()).unwrap().last().unwrap().time_us;
        let off_us = dated - gridstone::base::Clock::now_us(&gridstone::runtime::SystemClock);
        assert!(off_us.abs() < 60_000_000, "{}: off by {off_us}", found.describe());
    }
}

/// Of the record before, however long, the start alone is read, beside the floor: a commit takes two rounds.
#[test]
fn a_commit_after_a_long_record_reads_its_start() {
    let (bucket, plan) = bucket();
    create(&context(64), &storage(&bucket), "/line", false);
    let mut dice = Dice::new(7);
    let mut long = || -> Cells { (0..7_000).map(|x| (x, dice.word() as i64)).collect() };
    // Four fragments of about 60 KiB in one record.
    let mut write_long = |writer: &Array| {
        let staged = (0..4).map(|_| crate::support::line::stage(writer, &long())).collect();
        writer.commit(staged, None).unwrap();
    };
    let counting = Arc::new(CountingStorage::new(storage(&bucket)));
    let counted: Arc<dyn Storage> = counting.clone();
    let writer = open(&context(64), &counted, "/line", At::Latest).unwrap();
    write_long(&writer);
    counting.reset();
    write(&writer, &[(1, 1)].into()).unwrap();
    let read = counting.snapshot().bytes_read;
    assert!((60_000..70_000).contains(&read), "{read} bytes were read");

    let writer = array(&bucket);
    write_long(&writer);
    // That was version 4, whose hint may still be under way.
    while storage(&bucket).read_all("_log/latest").is_err() {
        std::thread::sleep(Duration::from_millis(5));
    }
    plan.clear();
    plan.slow(Duration::from_millis(200));
    write(&writer, &[(2, 2)].into()).unwrap();
    assert_eq!((plan.rounds(), plan.seen()), (2, vec!["put", "get", "get"]));
}
