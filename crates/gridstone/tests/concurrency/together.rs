//! Promise: writers, readers, merges and vacuums of one store at once do not harm each other: no commit is lost, no read torn.

use crate::support::line::{Cells, create, read, write};
use crate::support::store::{context, open, options, store_of, vacuum};
use gridstone::base::ErrorKind;
use gridstone::engine::{Array, At, Call, Keep, Strategy, VacuumOptions};
use gridstone::storage::{MemoryStorage, Storage};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const WRITERS: i64 = 3;
const ROUNDS: i64 = 60;

/// Two cells in each commit; in every tenth a file of its own.
fn write_pairs(array: &Array, writer: i64) {
    for round in 1..=ROUNDS {
        let mut cells: Cells = [(2 * writer, round), (2 * writer + 1, round)].into();
        if round % 10 == 0 {
            cells.extend((100..9_000).map(|x| (x, writer)));
        }
        write(array, &cells).unwrap();
    }
}

/// Reads until `done`: pairs are whole and never go back. Gives how often.
fn read_pairs(array: &Array, done: &AtomicBool) -> u64 {
    let (mut last, mut reads) = (Cells::new(), 0);
    while !done.load(Ordering::Relaxed) {
        array.refresh().unwrap();
        match read(array) {
            Ok(found) => {
                for writer in 0..WRITERS {
                    let pair = [2 * writer, 2 * writer + 1].map(|x| found.get(&x).copied().unwrap_or(0));
                    assert_eq!(pair[0], pair[1], "half a commit is seen");
                    assert!(pair[0] >= last.get(&writer).copied().unwrap_or(0), "a commit was lost again");
                    last.insert(writer, pair[0]);
                }
                reads += 1;
            }
            Err(e) => assert_eq!(e.kind(), ErrorKind::SnapshotExpired, "{e}"),
        }
    }
    reads
}

/// Vacuums until `done`. Files of commits under way are unnamed: only the safety age keeps them.
fn vacuum_on_and_on(array: &Array, keep: Keep, done: &AtomicBool) {
    let options = VacuumOptions { safety_us: 3_600_000_000, ..options(keep) };
    while !done.load(Ordering::Relaxed) {
        if let Err(e) = array.vacuum(&options, &Call::default()) {
            assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
        }
    }
}

fn merge_on_and_on(array: &Array, done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        array.refresh().unwrap();
        if let Err(e) = array.consolidate(&Strategy::All, 1 << 20, false, &Call::default()) {
            assert_eq!(e.kind(), ErrorKind::SnapshotExpired, "{e}");
        }
    }
}

/// Writers, a consolidator, a reader and two vacuums at once: no commit is lost, no read is torn.
#[test]
fn everybody_at_once() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    create(&context(8), &storage, "/line", false);
    let done = AtomicBool::new(false);
    let array = || open(&context(8), &storage, "/line", At::Latest).unwrap();
    std::thread::scope(|scope| {
        let spawned = |writer| {
            let array = array();
            scope.spawn(move || write_pairs(&array, writer))
        };
        let writers: Vec<_> = (0..WRITERS).map(spawned).collect();
        for keep in [Keep::AgeUs(0), Keep::Versions(2)] {
            let (array, done) = (array(), &done);
            scope.spawn(move || vacuum_on_and_on(&array, keep, done));
        }
        let (merger, reader, done) = (array(), array(), &done);
        scope.spawn(move || merge_on_and_on(&merger, done));
        let reads = scope.spawn(move || read_pairs(&reader, done));
        let outcomes: Vec<_> = writers.into_iter().map(|thread| thread.join()).collect();
        done.store(true, Ordering::Relaxed);
        outcomes.into_iter().for_each(|outcome| outcome.unwrap());
        println!("{} reads", reads.join().unwrap());
    });
    let last = array();
    let found = read(&last).unwrap();
    assert!((0..2 * WRITERS).all(|x| found.get(&x) == Some(&ROUNDS)), "a commit was lost");
    assert!(last.verify(&Call::default()).unwrap().damage.is_empty());
    vacuum(&last, Keep::Versions(1)).unwrap();
    assert_eq!(read(&array()).unwrap(), found);
    assert!(store_of(&storage).floor().unwrap().unwrap().version > 1);
}
