//! Promise: a merge of fragments changes what lies in the files and nothing that anybody reads, now or at an older
//! version, whoever else is at work.

use crate::support::crowd;
use gridstone::base::{AlignedBuf, Cancel, ErrorKind};
use gridstone::engine::{
    Array, At, Call, CellData, Column, Context, Dedup, Opened, Options, ReadOrder, Strategy, create_array_on, open_on,
};
use gridstone::schema::{Datatype, Schema};
use gridstone::storage::{MemoryStorage, Storage};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const LINE: &str = r#"{"sparse":true,"capacity":16,"dims":[{"name":"x","dtype":"int64","domain":["0","999"],"tile":"100"}],
    "attrs":[{"name":"v","dtype":"int64"}]}"#;

fn longs(values: impl IntoIterator<Item = i64>) -> Column {
    let bytes: Vec<u8> = values.into_iter().flat_map(i64::to_le_bytes).collect();
    Column::new(Datatype::Int64, AlignedBuf::from_slice(&bytes), None, None).unwrap()
}

fn created(json: &str, budget: u64) -> (Array, Arc<dyn Storage>) {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let options = Options { threads: Some(2), memory_budget: budget, ..Options::default() };
    let context = Context::new(&options).unwrap();
    let schema = Schema::from_json(json).unwrap();
    (create_array_on(&context, storage.clone(), "/", schema, false).unwrap(), storage)
}

fn reopened(storage: &Arc<dyn Storage>, at: At) -> Array {
    let context = Context::new(&Options { threads: Some(1), ..Options::default() }).unwrap();
    match open_on(&context, storage.clone(), "/", at == At::Latest, at).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

fn write(array: &Array, xs: &[i64], value: i64) -> u64 {
    let (x, v) = (longs(xs.iter().copied()), longs(xs.iter().map(|_| value)));
    let attrs = vec![("v".to_owned(), v.view())];
    let data = CellData { dims: vec![x.view()], attrs, sorted: false, dedup: Dedup::Error };
    array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap()
}

fn cells(array: &Array) -> Vec<(i64, i64)> {
    let (cells, _, _) = array.read(None, None, ReadOrder::Row, &Call::default()).unwrap();
    let column = |c: &Column| {
        let words = c.view().values().as_chunks::<8>().0.iter();
        words.map(|word| i64::from_le_bytes(*word)).collect::<Vec<_>>()
    };
    column(&cells.dims[0]).into_iter().zip(column(&cells.attrs[0])).collect()
}

fn all(array: &Array) -> gridstone::engine::ConsolidateReport {
    array.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap()
}

#[test]
fn many_commits_become_one_fragment_and_every_version_reads_as_before() {
    let (array, storage) = created(LINE, 1 << 30);
    let mut seen = Vec::new();
    for number in 0..150 {
        let version = write(&array, &[number * 7 % 1000, number * 11 % 1000 + 1 - number % 2], number);
        seen.push((version, cells(&array)));
    }
    let planned = array.consolidate(&Strategy::All, 1 << 30, true, &Call::default()).unwrap();
    assert_eq!((planned.before, planned.after, array.fragments().unwrap().len()), (150, 1, 150));
    let report = all(&array);
    assert_eq!((report.before, report.after, report.overtaken), (150, 1, 0));
    assert_eq!(array.fragments().unwrap().len(), 1);
    assert_eq!(array.fragments().unwrap()[0].version, seen[149].0, "it has the order of the newest of them");
    for array in [array.clone(), reopened(&storage, At::Latest)] {
        assert_eq!(cells(&array), seen[149].1);
    }
    for (version, expected) in seen.iter().step_by(13) {
        assert_eq!(&cells(&array.at(At::Version(*version)).unwrap()), expected);
        assert_eq!(&cells(&reopened(&storage, At::Version(*version))), expected);
    }
    // On through two folds: what was taken out is forgotten and does not come back.
    for number in 0..150 {
        write(&array, &[number], 1_000);
    }
    assert_eq!(reopened(&storage, At::Latest).fragments().unwrap().len(), 151);
    assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
}

#[test]
fn what_another_merge_took_is_left_alone() {
    let (array, storage) = created(LINE, 1 << 30);
    for number in 0..10 {
        write(&array, &[number, 500], number);
    }
    let late = reopened(&storage, At::Latest);
    let before = cells(&array);
    assert_eq!(all(&array).after, 1);
    let report = all(&late);
    assert_eq!((report.overtaken, report.merges.len()), (1, 0));
    late.refresh().unwrap();
    assert_eq!((cells(&late), late.fragments().unwrap().len()), (before, 1));
}

#[test]
fn writes_between_planning_and_committing_stay_newer() {
    let (array, storage) = created(LINE, 1 << 30);
    for number in 0..10 {
        write(&array, &[5, 20 + number], number);
    }
    let late = reopened(&storage, At::Latest);
    write(&array, &[5], -1);
    assert_eq!(all(&late).overtaken, 0);
    array.refresh().unwrap();
    assert!(cells(&array).contains(&(5, -1)));
    assert_eq!(array.fragments().unwrap().len(), 2);
}

#[test]
fn fragments_with_another_that_touches_them_in_between_are_refused() {
    let (array, _) = created(LINE, 1 << 30);
    for number in 0..3 {
        write(&array, &[number, 50], number);
    }
    let ids: Vec<_> = array.fragments().unwrap().iter().map(|f| f.id).collect();
    let refused = |ids: &[gridstone::base::Id]| {
        array.consolidate(&Strategy::Fragments(ids.to_vec()), 1, false, &Call::default()).unwrap_err()
    };
    assert!(refused(&[ids[0], ids[2]]).message().contains("cannot be merged"));
    assert!(refused(&[ids[0], array.id()]).message().contains("no fragment"));
    assert_eq!(array.fragments().unwrap().len(), 3);
}

#[test]
fn a_merge_stays_within_its_memory() {
    let budget = 16 << 20;
    let (array, _) = created(LINE, budget);
    for number in 0..400 {
        let xs: Vec<i64> = (0..500).map(|i| (i * 2 + number) % 1000).collect();
        write(&array, &xs, number);
    }
    let before = cells(&array);
    while all(&array).merges.iter().any(|m| m.written.is_some()) {}
    assert_eq!(cells(&array), before);
    assert!(array.fragments().unwrap().len() < 10, "{}", array.fragments().unwrap().len());
    assert!(array.context().peak_bytes() <= budget, "{} bytes", array.context().peak_bytes());
}

/// Says stop when it is asked for the n-th time.
struct After(AtomicU64);

impl Cancel for After {
    fn cancelled(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
    }
}

#[test]
fn a_merge_that_is_stopped_leaves_no_file() {
    let wide = LINE.replace("999", "9999999").replace("\"16\"", "10000").replace(":16,", ":10000,");
    let (array, storage) = created(&wide, 16 << 20);
    for number in 0..2i64 {
        let xs: Vec<i64> = (0..100_000).map(|i| i * 97 + number).collect();
        let mut state = number as u64 + 1;
        let noise = xs.iter().map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state ^ state >> 29) as i64
        });
        let (x, v) = (longs(xs.iter().copied()), longs(noise));
        let attrs = vec![("v".to_owned(), v.view())];
        let data = CellData { dims: vec![x.view()], attrs, sorted: false, dedup: Dedup::Error };
        array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
    }
    let before = storage.list("_data").unwrap();
    let (mut stopped, mut asked) = (0, 1);
    loop {
        let call = Call { cancel: Arc::new(After(AtomicU64::new(asked))), ..Call::default() };
        match array.consolidate(&Strategy::All, 1, false, &call) {
            Ok(report) => break assert!(report.merges[0].written.unwrap().0 > 1, "one output alone shows nothing"),
            Err(e) => assert_eq!(e.kind(), ErrorKind::Cancelled),
        }
        assert_eq!(storage.list("_data").unwrap(), before, "stopped when asked for the {asked}th time");
        (stopped, asked) = (stopped + 1, asked + asked / 8 + 1);
    }
    assert!(stopped > 10, "{stopped}");
}

/// Is set when a thread ends, also by a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Writers, readers and two consolidators on one array: no write fails, nobody sees half a commit.
#[test]
fn writers_and_readers_do_not_notice() {
    let folder = crowd::created("consolidators");
    let (done, merges, over) = (AtomicBool::new(false), AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for strategy in [Strategy::All, Strategy::Tiered] {
            let (folder, done, merges, over) = (&folder, &done, &merges, &over);
            scope.spawn(move || {
                let _over = Over(over);
                let array = crowd::open(folder.path(), true);
                while !done.load(Ordering::Relaxed) {
                    array.refresh().unwrap();
                    let report = array.consolidate(&strategy, 10_000, false, &Call::default()).unwrap();
                    merges.fetch_add(report.merges.len() as u64, Ordering::Relaxed);
                    crowd::read(&array);
                }
            });
        }
        let writer = |number: i64| {
            let array = crowd::open(folder.path(), true);
            for commit in 0..crowd::COMMITS {
                // Both go on beside each other, however slow one of them is: after each quarter of the commits there is a merge.
                let wanted = (4 * commit / crowd::COMMITS) as u64;
                while merges.load(Ordering::Relaxed) < wanted && !over.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                crowd::write(&array, number, commit);
            }
        };
        let writers: Vec<_> = (0..crowd::WRITERS).map(|number| scope.spawn(move || writer(number))).collect();
        let outcomes: Vec<_> = writers.into_iter().map(|w| w.join()).collect();
        done.store(true, Ordering::Relaxed);
        outcomes.into_iter().for_each(Result::unwrap);
    });
    assert!(merges.into_inner() >= 3, "the consolidators did nothing");
    let array = crowd::open(folder.path(), true);
    assert_eq!(crowd::read(&array), (2 * crowd::WRITERS * crowd::COMMITS) as usize);
    all(&array);
    assert_eq!(crowd::read(&array), (2 * crowd::WRITERS * crowd::COMMITS) as usize);
    assert!(array.fragments().unwrap().len() < 10);
}
