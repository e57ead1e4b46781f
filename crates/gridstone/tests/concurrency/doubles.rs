//! Promise: a cell that was written once is read once, whatever merges and vacuums go on: where cells may lie several times at one
//! place, no reader takes a merged fragment together with what it was made of.

use crate::support::columns::longs;
use gridstone::engine::{
    Array, At, Call, CellData, Context, Dedup, Keep, Opened, Options, ReadOrder, Strategy, VacuumOptions,
    create_array_on, open_on,
};
use gridstone::schema::Schema;
use gridstone::storage::{MemoryStorage, Storage};
use gridstone_testkit::Dice;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const WRITERS: i64 = 4;
/// Each writer commits so often, then waits until all was merged once more, and again.
const WRITES: i64 = 15;
const CHUNKS: i64 = 10;
/// Places of the array: few, so that most cells have others beside them.
const PLACES: usize = 50;
const CELLS: i64 = 3;

fn context() -> Context {
    Context::new(&Options { threads: Some(1), ..Options::default() }).unwrap().with_fold_versions(8)
}

fn open(storage: &Arc<dyn Storage>) -> Array {
    match open_on(&context(), storage.clone(), "/", true, At::Latest).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

fn created() -> Arc<dyn Storage> {
    let schema = format!(
        r#"{{"sparse":true,"duplicates":true,"capacity":40,
        "dims":[{{"name":"x","dtype":"int64","domain":["0","{}"],"tile":"10"}}],"attrs":[{{"name":"v","dtype":"int64"}}]}}"#,
        PLACES - 1
    );
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    create_array_on(&context(), storage.clone(), "/", Schema::from_json(&schema).unwrap(), false).unwrap();
    storage
}

/// The values of all cells, each of which was written once.
fn values(array: &Array) -> BTreeSet<i64> {
    let (cells, ..) = array.read(None, None, ReadOrder::Any, &Call::default()).unwrap();
    let (words, _) = cells.attrs[0].view().values().as_chunks::<8>();
    let found: BTreeSet<i64> = words.iter().map(|word| i64::from_le_bytes(*word)).collect();
    assert_eq!(found.len(), words.len(), "a cell was read twice at version {}", array.version());
    found
}

/// Writes cells with values that nobody else writes; gives them.
fn write(array: &Array, writer: i64, number: i64, dice: &mut Dice) -> Vec<i64> {
    let values: Vec<i64> = (0..CELLS).map(|cell| (writer * WRITES * CHUNKS + number) * CELLS + cell).collect();
    let x = longs(values.iter().map(|_| dice.below(PLACES) as i64));
    let v = longs(values.iter().copied());
    let attrs = vec![("v".to_owned(), v.view())];
    let data = CellData { dims: vec![x.view()], attrs, sorted: false, dedup: Dedup::Error };
    array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
    values
}

/// A writer, which has ended when this is dropped: the others do not wait for one that failed.
struct Ending<'a>(&'a AtomicUsize);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// The rounds of merges, which nobody waits for any more when this is dropped.
struct Endless<'a>(&'a AtomicUsize);

impl Drop for Endless<'_> {
    fn drop(&mut self) {
        self.0.store(usize::MAX, Ordering::SeqCst);
    }
}

#[test]
fn no_cell_is_read_twice_or_missed_while_fragments_are_merged() {
    let storage = created();
    let (acknowledged, ended) = (Mutex::new(BTreeSet::new()), AtomicUsize::new(0));
    let goes_on = || ended.load(Ordering::SeqCst) < WRITERS as usize;
    let (reads, merges, rounds) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (storage, acknowledged, ended, rounds) = (&storage, &acknowledged, &ended, &rounds);
            scope.spawn(move || {
                let _end = Ending(ended);
                let (array, mut dice) = (open(storage), Dice::new(writer as u64));
                for chunk in 0..CHUNKS {
                    let before = rounds.load(Ordering::SeqCst);
                    for number in 0..WRITES {
                        let values = write(&array, writer, chunk * WRITES + number, &mut dice);
                        acknowledged.lock().unwrap().extend(values);
                    }
                    while rounds.load(Ordering::SeqCst) <= before {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let array = open(&storage);
                while goes_on() {
                    let before = acknowledged.lock().unwrap().clone();
                    array.refresh().unwrap();
                    let found = values(&array);
                    assert!(found.is_superset(&before), "{:?} are missed", before.difference(&found));
                    // The same handle again: nothing comes or goes.
                    assert_eq!(values(&array), found);
                    reads.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        scope.spawn(|| {
            let (_end, array) = (Endless(&rounds), open(&storage));
            while goes_on() {
                for strategy in [Strategy::Tiered, Strategy::All] {
                    array.refresh().unwrap();
                    let report = array.consolidate(&strategy, 2_000, false, &Call::default()).unwrap();
                    merges.fetch_add(report.merges.len(), Ordering::SeqCst);
                }
                let options = VacuumOptions { keep: Keep::Versions(2_000), safety_us: 3_600_000_000, dry_run: false };
                array.vacuum(&options, &Call::default()).unwrap();
                rounds.fetch_add(1, Ordering::SeqCst);
            }
        });
    });
    let array = open(&storage);
    let all = acknowledged.into_inner().unwrap();
    assert_eq!(values(&array), all);
    array.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
    assert_eq!((values(&array), array.fragments().unwrap().len()), (all, 1));
    assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
    let (reads, merges) = (reads.into_inner(), merges.into_inner());
    println!("{reads} reads, {merges} merges");
    assert!(reads > 5 && merges >= CHUNKS as usize / 2, "{reads} reads, {merges} merges");
}
