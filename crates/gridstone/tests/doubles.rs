//! Promise: a cell that was written once is read once, whatever merges and vacuums go on: where cells may lie several times at one
//! place, no reader takes a merged fragment together with what it was made of.

use crate::consolidate_dense::longs;
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

const WRITERS: i64 = 4;
/// Commits of each writer, at least and at most: they go on until so many merges were made beside them.
const WRITES: (i64, i64) = (150, 20_000);
const MERGES: usize = 8;
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
    let values: Vec<i64> = (0..CELLS).map(|cell| (writer * WRITES.1 + number) * CELLS + cell).collect();
    let x = longs(values.iter().map(|_| dice.below(PLACES) as i64));
    let v = longs(values.iter().copied());
    let attrs = vec![("v".to_owned(), v.view())];
    let data = CellData { dims: vec![x.view()], attrs, sorted: false, dedup: Dedup::Error };
    array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
    values
}

/// A writer that has not ended; whether it fails or not, the others are not to wait for it.
struct Writing<'a>(&'a AtomicUsize);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn no_cell_is_read_twice_or_missed_while_fragments_are_merged() {
    let storage = created();
    let (acknowledged, writing) = (Mutex::new(BTreeSet::new()), AtomicUsize::new(WRITERS as usize));
    let goes_on = || writing.load(Ordering::SeqCst) > 0;
    let (reads, merges) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (storage, acknowledged, writing, merges) = (&storage, &acknowledged, &writing, &merges);
            scope.spawn(move || {
                let _writing = Writing(writing);
                let (array, mut dice) = (open(storage), Dice::new(writer as u64));
                let enough = |number: i64| number >= WRITES.0 && merges.load(Ordering::SeqCst) >= MERGES;
                for number in (0..WRITES.1).take_while(|number| !enough(*number)) {
                    let values = write(&array, writer, number, &mut dice);
                    acknowledged.lock().unwrap().extend(values);
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
            let array = open(&storage);
            while goes_on() {
                for strategy in [Strategy::Tiered, Strategy::All] {
                    array.refresh().unwrap();
                    let report = array.consolidate(&strategy, 2_000, false, &Call::default()).unwrap();
                    merges.fetch_add(report.merges.len(), Ordering::SeqCst);
                }
                let options = VacuumOptions { keep: Keep::Versions(2_000), safety_us: 3_600_000_000, dry_run: false };
                array.vacuum(&options, &Call::default()).unwrap();
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
    assert!(reads > 5 && merges >= MERGES, "{reads} reads, {merges} merges");
}
