//! Promise: the sorted copy of a pack changes how reads are answered and never what they answer: with it, without it, and whatever
//! became of it, every version reads the same.

use crate::support::columns::{bytes_of, numbers, view};
use crate::support::copy::HISTORY;
use crate::support::sorted::{
    FOLD, answers, check_same, context, copies, lived, memory, open, options, schema, some, tried, without_copies,
};
use gridstone::base::{CounterSnapshot, Id, Key, Keys};
use gridstone::engine::{
    Array, At, Call, CellData, Context, Dedup, Isolation, Keep, Opened, Options, ReadOrder, Staged, Strategy,
    Transaction, VacuumOptions, commit_receipts_on, copy_on, create_array_on, move_node_on, open_on, verify_on,
};
use gridstone::schema::Schema;
use gridstone::storage::{Fault, FaultPlan, FaultyStorage, HookedStorage, MemoryStorage, Operation, Storage};
use gridstone_testkit::Dice;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const KINDS: [(bool, bool, &str); 8] = [
    (true, false, "row"),
    (true, true, "row"),
    (true, true, "hilbert"),
    (true, true, "tied"),
    (true, false, "tied"),
    (false, false, "row"),
    (true, false, "col"),
    (true, false, "text"),
];

#[test]
fn every_version_reads_the_same_with_copies_and_without() {
    for (seed, (sparse, duplicates, order)) in (0..8u64).flat_map(|seed| KINDS.map(|kind| (seed, kind))) {
        let (storage, mut dice) = (memory(), Dice::new(seed));
        let array = lived(&storage, schema(sparse, duplicates, order), 110, &mut dice);
        assert!(copies(&storage).len() >= 3, "{} copies", copies(&storage).len());
        check_same(&storage, &without_copies(&storage), array.version(), seed);
        // A handle that was open all the time, and holds fragments that are in copies by now.
        let latest = answers(&open(&without_copies(&storage), At::Latest), &mut Dice::new(seed));
        assert_eq!(answers(&array, &mut Dice::new(seed)), latest);
        let report = verify_on(&context(), storage.clone(), &Call::default()).unwrap();
        assert!(report.damage.is_empty() && report.orphans.objects == 0, "{report:?}");
        array.consolidate(&Strategy::All, 1 << 20, false, &Call::default()).unwrap();
        assert_eq!(answers(&array, &mut Dice::new(seed)), latest, "merged from copies: seed {seed}");
    }
}

const SQUARE: &str = r#"{"sparse":true,"dims":[{"name":"y","dtype":"int64","domain":["0","9999"],"tile":"1000"},
    {"name":"x","dtype":"int64","domain":["0","9999"],"tile":"1000"}],"attrs":[{"name":"v","dtype":"int64"}]}"#;

/// A cell of the square, and its value.
type Cell = ((i64, i64), i64);

fn scattered(dice: &mut Dice, count: i64, commit: i64) -> Vec<Cell> {
    (0..count).map(|n| ((dice.below(10_000) as i64, dice.below(10_000) as i64), commit * count + n)).collect()
}

fn stage(array: &Array, cells: &[Cell]) -> Staged {
    let column = |f: fn(&Cell) -> i64| bytes_of(cells.iter().map(f));
    let (y, x, v) = (column(|c| c.0.0), column(|c| c.0.1), column(|c| c.1));
    let attrs = vec![("v".to_owned(), view(&v))];
    let data = CellData { dims: vec![view(&y), view(&x)], attrs, sorted: false, dedup: Dedup::Last };
    array.stage_cells(data, &Call::default()).unwrap()
}

/// The values that commits of cells leave in a box, sorted.
fn left_in<'a>(commits: impl IntoIterator<Item = &'a Vec<Cell>>, ((top, bottom), (left, right)): Square) -> Vec<i64> {
    let inside = |c: &&Cell| (top..=bottom).contains(&c.0.0) && (left..=right).contains(&c.0.1);
    let cells: BTreeMap<(i64, i64), i64> = commits.into_iter().flatten().filter(inside).copied().collect();
    let mut values: Vec<i64> = cells.into_values().collect();
    values.sort_unstable();
    values
}

/// Low and high of y and x.
type Square = ((i64, i64), (i64, i64));

const SMALL: Square = ((2_000, 2_499), (7_000, 7_499));
const ALL: Square = ((0, 9_999), (0, 9_999));

/// The values in a box, sorted, and what they cost.
fn read(array: &Array, (y, x): Square) -> (Vec<i64>, CounterSnapshot) {
    let sub = [y, x].map(|(low, high)| (low.to_string(), high.to_string()));
    let (cells, _, counters) = array.read(Some(&sub), None, ReadOrder::Row, &Call::default()).unwrap();
    let mut values = numbers(&cells.attrs[0]);
    values.sort_unstable();
    (values, counters)
}

fn created(context: &Context, storage: &Arc<dyn Storage>, path: &str) -> Array {
    create_array_on(context, storage.clone(), path, Schema::from_json(SQUARE).unwrap(), false).unwrap()
}

/// An array opened with empty caches.
fn opened(options: &Options, storage: &Arc<dyn Storage>, path: &str) -> Array {
    match open_on(&Context::new(options).unwrap(), storage.clone(), path, true, At::Latest).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

#[test]
fn a_small_box_opens_few_of_many_small_fragments() {
    for key in [None, Some(Arc::new(Key::from_slice(&[7; 32]).unwrap()) as Arc<dyn Keys>)] {
        let (storage, mut dice) = (memory(), Dice::new(3));
        let sealed = Options { key: key.clone(), ..options() };
        let array = created(&Context::new(&sealed).unwrap(), &storage, "/");
        let commits: Vec<Vec<Cell>> = (0..6 * FOLD as i64).map(|n| scattered(&mut dice, 100, n)).collect();
        for cells in &commits {
            array.commit(vec![stage(&array, cells)], None).unwrap();
        }
        let (found, with) = read(&opened(&sealed, &storage, "/"), SMALL);
        assert_eq!(found, left_in(&commits, SMALL));
        assert!(found.len() > 10);
        // Six folds, of which the first packed one fragment less; what came since is in the log.
        assert!(with.fragments_touched <= 6 + 1, "{with:?}");
        if key.is_none() {
            let (same, without) = read(&opened(&sealed, &without_copies(&storage), "/"), SMALL);
            assert!(same == found && without.fragments_touched >= 90, "{without:?}");
            assert!(with.bytes_decoded * 3 < without.bytes_decoded, "{with:?}");
        }
    }
}

/// Where a look is a request, there are none.
#[test]
fn far_stores_have_no_copies() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let (array, mut dice) = (created(&context(), &storage, "/"), Dice::new(2));
    for n in 0..2 * FOLD as i64 {
        array.commit(vec![stage(&array, &scattered(&mut dice, 10, n))], None).unwrap();
    }
    assert_eq!((copies(&storage).len(), array.fragments().unwrap().len() as u64), (0, 2 * FOLD));
}

/// Of a version that has few of a copy's fragments, the copy may take more memory than they do.
#[test]
fn a_copy_that_finds_no_room_is_not_held() {
    let (storage, mut dice) = (memory(), Dice::new(4));
    let wide = Options { fold_versions: 64, ..options() };
    let array = created(&Context::new(&wide).unwrap(), &storage, "/");
    let commits: Vec<Vec<Cell>> = (0..64).map(|n| scattered(&mut dice, 400, n)).collect();
    for cells in &commits {
        array.commit(vec![stage(&array, cells)], None).unwrap();
    }
    assert_eq!(copies(&storage).len(), 1);
    let oldest: Vec<Id> = array.fragments().unwrap().iter().take(54).map(|f| f.id).collect();
    array.consolidate(&Strategy::Fragments(oldest), 1 << 30, false, &Call::default()).unwrap();
    let tight = Options { memory_budget: 3 << 20, ..wide.clone() };
    // The merged one, those of the last commits in the log, and the other small ones alone or as their copy.
    for (options, touched) in [(&wide, 1 + 1 + 1), (&tight, 1 + 1 + 9)] {
        for square in [SMALL, ALL] {
            let (found, counters) = read(&opened(options, &storage, "/"), square);
            assert_eq!(found, left_in(&commits, square));
            assert_eq!(counters.fragments_touched, touched, "{counters:?}");
        }
    }
}

/// Whatever commit folds, of whatever part of a store: every array whose fragments it packed has its copy of them.
#[test]
fn every_array_has_its_copy_whoever_folds() {
    let committed = |how: &str, storage: &Arc<dyn Storage>| {
        let (context, mut dice) = (context(), Dice::new(6));
        let arrays = ["/a", "/b"].map(|path| created(&context, storage, path));
        let mut commits: [Vec<Vec<Cell>>; 2] = Default::default();
        // Two versions made the arrays; those up to the one before the fold are packed.
        for n in 0..FOLD as i64 - 2 {
            let transaction = Transaction::begin_on(&context, storage.clone(), Isolation::Snapshot).unwrap();
            for (path, commits) in ["/a", "/b"].into_iter().zip(&mut commits) {
                let (array, cells) = (transaction.array(path).unwrap(), scattered(&mut dice, 20, n));
                array.commit(vec![stage(&array, &cells)], None).unwrap();
                commits.push(cells);
            }
            transaction.commit(None).unwrap();
        }
        assert_eq!(copies(storage).len(), 0, "nothing was folded yet");
        for array in &arrays {
            array.refresh().unwrap();
        }
        let cells = scattered(&mut dice, 20, 1_000);
        let at_first = |array: &Array| stage(array, &cells);
        match how {
            "array" => _ = arrays[0].commit(vec![at_first(&arrays[0])], None).unwrap(),
            "transaction" => {
                let transaction = Transaction::begin_on(&context, storage.clone(), Isolation::Serializable).unwrap();
                let array = transaction.array("/a").unwrap();
                array.commit(vec![at_first(&array)], None).unwrap();
                transaction.commit(None).unwrap();
            }
            "receipt" => {
                let receipt = arrays[0].receipt(vec![at_first(&arrays[0])]).unwrap();
                commit_receipts_on(&context, storage.clone(), &[receipt], None).unwrap();
            }
            "creation" => _ = created(&context, storage, "/c"),
            "tag" => _ = arrays[1].tag("here", None, false).unwrap(),
            "move" => _ = move_node_on(&context, storage.clone(), "/b", "/d", None).unwrap(),
            "metadata" => {
                let Opened::Group(root) = open_on(&context, storage.clone(), "/", true, At::Latest).unwrap() else {
                    panic!("an array where two were created below")
                };
                root.set_metadata(vec![("k".to_owned(), Some("1".to_owned()))]).unwrap();
            }
            _ => _ = arrays[0].consolidate(&Strategy::Manifest, 1, false, &Call::default()).unwrap(),
        }
        if ["array", "transaction", "receipt"].contains(&how) {
            commits[0].push(cells);
        }
        commits
    };
    for how in ["array", "transaction", "receipt", "creation", "tag", "move", "metadata", "manifest"] {
        let storage = memory();
        let commits = committed(how, &storage);
        assert_eq!(copies(&storage).len(), 2, "{how}");
        for (path, commits) in ["/a", if how == "move" { "/d" } else { "/b" }].into_iter().zip(&commits) {
            let (found, counters) = read(&opened(&options(), &storage, path), ALL);
            assert_eq!(found, left_in(commits, ALL), "{how}: {path}");
            assert!(counters.fragments_touched <= 2, "{how}: {counters:?}");
        }
        let report = verify_on(&context(), storage.clone(), &Call::default()).unwrap();
        assert!(report.damage.is_empty() && report.orphans.objects == 0, "{how}: {report:?}");
    }
}

/// Threads that share a record all find that it folded: one of them writes the copy, and none waits for ever.
#[test]
fn threads_that_commit_together_write_each_copy_once() {
    const THREADS: i64 = 8;
    const EACH: i64 = 60;
    let inner = memory();
    let made = Arc::new(Mutex::new(Vec::new()));
    let (seen, slow) = (made.clone(), || std::thread::sleep(Duration::from_micros(300)));
    let storage: Arc<dyn Storage> =
        Arc::new(HookedStorage::new(inner.clone(), move |operation, name: &str| match operation {
            // Who comes meanwhile waits in line, and shares the next record; all of them find that no copy is there.
            Operation::PutIfAbsent | Operation::Exists => slow(),
            Operation::Create => seen.lock().unwrap().push(name.to_owned()),
            _ => {}
        }));
    let array = created(&context(), &storage, "/");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let array = array.clone();
            scope.spawn(move || {
                for n in 0..EACH {
                    let place = thread * EACH + n;
                    array.commit(vec![stage(&array, &[((place, place), place)])], None).unwrap();
                }
            });
        }
    });
    array.refresh().unwrap();
    let written = copies(&inner);
    assert!(array.version() < (THREADS * EACH) as u64, "none shared a record");
    assert_eq!(written.len() as u64, (array.version() - 1) / FOLD, "{} versions", array.version());
    for name in &written {
        assert_eq!(made.lock().unwrap().iter().filter(|made| *made == name).count(), 1, "{name}");
    }
    assert_eq!(read(&array, ALL).0, (0..THREADS * EACH).collect::<Vec<_>>());
    assert_eq!(read(&opened(&options(), &inner, "/"), ALL).0, (0..THREADS * EACH).collect::<Vec<_>>());
}

/// Wherever a copy is damaged, or cut short, or another file lies in its place: reads answer as without it.
#[test]
fn damaged_copies_are_passed_over() {
    for (sparse, duplicates, order) in KINDS {
        let (storage, mut dice) = (memory(), Dice::new(5));
        lived(&storage, schema(sparse, duplicates, order), 70, &mut dice);
        let plain = without_copies(&storage);
        let read = |name: String| (storage.read_all(&name).unwrap().to_vec(), name);
        let sound: Vec<(Vec<u8>, String)> = copies(&storage).into_iter().map(read).collect();
        assert!(sound.len() >= 3);
        for round in 0..60 {
            for (n, (bytes, name)) in sound.iter().enumerate() {
                let mut changed = bytes.clone();
                let at = dice.below(changed.len());
                match round % 6 {
                    0 => changed.truncate(at),
                    // Another's in its place.
                    1 => changed = sound[(n + 1) % sound.len()].0.clone(),
                    _ => (0..1 + dice.below(20)).for_each(|_| {
                        let at = dice.below(bytes.len());
                        changed[at] ^= 1 << dice.below(8);
                    }),
                }
                storage.put(name, &changed).unwrap();
            }
            let expected = answers(&open(&plain, At::Latest), &mut Dice::new(round));
            assert_eq!(answers(&open(&storage, At::Latest), &mut Dice::new(round)), expected, "round {round}");
        }
    }
}

/// Whatever fails while a copy is written: the commit before it stands, and is acknowledged.
#[test]
fn a_commit_stands_whether_its_copy_can_be_written_or_not() {
    for fault in [Fault::Error, Fault::ErrorAfter, Fault::Torn, Fault::Full, Fault::Kill] {
        let mut after = 0;
        for n in 1.. {
            let plan = FaultPlan::new();
            let storage: Arc<dyn Storage> = Arc::new(FaultyStorage::new(memory(), plan.clone()));
            let array = create_array_on(&context(), storage.clone(), "/", schema(true, false, "row"), false).unwrap();
            let mut dice = Dice::new(9);
            for value in 0..FOLD as i64 - 1 {
                tried(&array, &some(&mut dice, 10), value, false).unwrap();
            }
            plan.clear();
            plan.fail_nth(n, fault);
            let outcome = tried(&array, &some(&mut dice, 10), FOLD as i64, false);
            let struck = plan.struck();
            plan.clear();
            after += usize::from(struck && outcome.is_ok());
            check_same(&storage, &without_copies(&storage), open(&storage, At::Latest).version(), n);
            if !struck {
                assert_eq!(copies(&storage).len(), 1);
                break;
            }
        }
        assert!(after >= 3, "{fault:?} struck {after} times after the commit");
    }
}

/// Members of a copy that lie beyond the domain of an older version stand between its cells in the order of blocks: points of that
/// version are found nevertheless.
#[test]
fn points_of_a_version_from_before_the_domain_grew_are_found_in_a_copy_from_after_it() {
    let json = r#"{"sparse":true,"dims":[{"name":"y","dtype":"int64","domain":["0","999"],"tile":"100"},
        {"name":"x","dtype":"int64","domain":["0","99"],"tile":"10"}],"attrs":[{"name":"v","dtype":"int64"}]}"#;
    for low in [false, true] {
        let storage = memory();
        let context = Context::new(&Options { fold_versions: 64, ..options() }).unwrap();
        let array = create_array_on(&context, storage.clone(), "/", Schema::from_json(json).unwrap(), false).unwrap();
        let write = |array: &Array, cells: &[Cell]| {
            let column = |f: fn(&Cell) -> i64| bytes_of(cells.iter().map(f));
            let (y, x, v) = (column(|c| c.0.0), column(|c| c.0.1), column(|c| c.1));
            let attrs = vec![("v".to_owned(), view(&v))];
            let data = CellData { dims: vec![view(&y), view(&x)], attrs, sorted: false, dedup: Dedup::Last };
            let staged = array.stage_cells(data, &Call::default().growing(true)).unwrap();
            array.commit(vec![staged], None).unwrap()
        };
        let mut dice = Dice::new(5);
        let mut some = |reach: i64, value: i64| -> Vec<Cell> {
            let cell = |n: i64| ((dice.below(reach as usize) as i64, n % 100), value);
            (0..200).map(cell).collect()
        };
        let before: Vec<Vec<Cell>> = (0..12).map(|commit| some(1_000, commit)).collect();
        let version = before.iter().map(|cells| write(&array, cells)).max().unwrap();
        for commit in 12..66 {
            let far = |((y, x), v): Cell| ((if low { -y } else { 1_000 + y }, x), v);
            let cells: Vec<Cell> = some(1_000, commit).into_iter().map(far).collect();
            write(&array, &cells);
        }
        assert_eq!(copies(&storage).len(), 1);
        let want: BTreeMap<(i64, i64), i64> = before.into_iter().flatten().collect();
        let places: Vec<(i64, i64)> = want.keys().copied().collect();
        let (y, x) = (bytes_of(places.iter().map(|p| p.0)), bytes_of(places.iter().map(|p| p.1)));
        let found = |array: &Array| {
            let single = |n: usize| {
                let at = |column: &[u8]| column[n * 8..n * 8 + 8].to_vec();
                let (y, x) = (at(&y), at(&x));
                array.points(&[view(&y), view(&x)], None, &Call::default()).unwrap().0.count
            };
            (0..places.len()).step_by(31).filter(|n| single(*n) == 1).count()
        };
        // The newest version first, whose look leaves the copy in the cache.
        let (newest, looks) = (open(&storage, At::Latest), places.len().div_ceil(31));
        assert_eq!(found(&newest), looks);
        assert_eq!(found(&newest.at(At::Version(version)).unwrap()), looks, "after the newest, low end: {low}");
        assert_eq!(found(&open(&storage, At::Version(version))), looks, "alone, low end: {low}");
    }
}

/// A vacuum leaves the copies of packs that kept versions name, and takes those of others.
#[test]
fn a_copy_stays_and_goes_with_its_pack() {
    let storage = memory();
    let mut dice = Dice::new(11);
    let array = lived(&storage, schema(true, false, "row"), 80, &mut dice);
    let before = copies(&storage);
    assert!(before.len() >= 3);
    let vacuum = |keep| array.vacuum(&VacuumOptions { keep, safety_us: 0, dry_run: false }, &Call::default()).unwrap();
    vacuum(Keep::Versions(1));
    assert_eq!(copies(&storage), before, "the newest version names all packs");
    array.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
    vacuum(Keep::Versions(1));
    assert_eq!(copies(&storage), BTreeSet::new());
    assert!(storage.list("_data").unwrap().len() <= 2);
}

/// With its history a store takes its copies along to places that have them.
#[test]
fn copies_go_along_with_a_history() {
    let (storage, mut dice) = (memory(), Dice::new(12));
    let array = lived(&storage, schema(true, false, "row"), 80, &mut dice);
    let far: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    for (target, kept) in [(memory(), copies(&storage)), (far, BTreeSet::new())] {
        copy_on((&context(), storage.clone()), (&context(), target.clone()), &HISTORY, &Call::default()).unwrap();
        assert_eq!(copies(&target), kept);
        check_same(&storage, &target, array.version(), 12);
    }
    assert!(copies(&storage).len() >= 3);
}
