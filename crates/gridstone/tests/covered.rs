//! Promise: what newer fragments hide goes without being read, and without anything being written for it; older versions have it as long as they
//! are kept.

use crate::vacuum::{Cells, context, create, open, options, read, write};
use crate::writer::{Random, bytes_of, view};
use gridstone::engine::{Array, At, Call, Keep, Strategy, VacuumOptions, create_array_on};
use gridstone::schema::{Order, Schema};
use gridstone::storage::{CountingStorage, MemoryStorage, Operation, Storage};
use std::sync::Arc;

const SIDE: i64 = 20_000;

fn overwrite(array: &Array, within: (i64, i64), value: i64) {
    let bytes = bytes_of((within.0..=within.1).map(|x| x * 7 + value));
    let sub = [(within.0.to_string(), within.1.to_string())];
    let staged =
        array.stage_dense(Some(&sub), &vec![("v".to_owned(), view(&bytes))], Order::Row, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
}

fn delete(array: &Array, within: Option<(i64, i64)>) {
    let sub = within.map(|(low, high)| [(low.to_string(), high.to_string())]);
    let staged = array.stage_delete_box(sub.as_ref().map(|sub| sub.as_slice())).unwrap();
    array.commit(vec![staged], None).unwrap();
}

fn expected(value: i64) -> Cells {
    (0..SIDE).map(|x| (x, x * 7 + value)).filter(|(_, v)| *v != 0).collect()
}

fn data_of(counted: &CountingStorage) -> u64 {
    let counts = counted.snapshot();
    let read: u64 = counts.reads.iter().filter(|(name, _)| name.starts_with("_data")).map(|(_, n)| n).sum();
    read + counts.count(Operation::Create)
}

#[test]
fn what_is_written_over_goes_unread_and_unwritten() {
    for strategy in [Strategy::Tiered, Strategy::Updates, Strategy::All] {
        let counted = Arc::new(CountingStorage::new(Arc::new(MemoryStorage::new())));
        let storage: Arc<dyn Storage> = counted.clone();
        let array = create(&context(64), &storage, "/grid", false);
        (1..=10).for_each(|value| overwrite(&array, (0, SIDE - 1), value));
        write(&array, &[(5, 5), (6, 6)].into()).unwrap();
        delete(&array, Some((0, 99)));
        // Slabs over the whole of it, one after the other.
        (0..4).for_each(|n| overwrite(&array, (n * 5_000, n * 5_000 + 4_999), 50));
        let before = array.version();
        let plan = array.consolidate(&strategy, 1 << 30, true, &Call::default()).unwrap();
        assert_eq!((plan.merges[0].kind, plan.merges[0].fragments, plan.before), ("hidden", 12, 16), "{plan:?}");
        assert_eq!(array.version(), before);
        let touched = data_of(&counted);
        let report = array.consolidate(&strategy, 1 << 30, false, &Call::default()).unwrap();
        let first = &report.merges[0];
        assert_eq!((first.kind, first.fragments, report.before), ("hidden", 12, 16), "{report:?}");
        // What is left lies side by side: only who merges all has something to do.
        let left = if matches!(strategy, Strategy::All) { (2, 1) } else { (1, 4) };
        assert_eq!((report.merges.len(), report.after), left, "{report:?}");
        let made: u64 = report.merges.iter().filter_map(|merge| merge.written).map(|(files, _)| files).sum();
        assert_eq!(
            (made, data_of(&counted) - touched),
            (left.0 as u64 - 1, made),
            "no data file of a hidden one was read"
        );
        assert_eq!(read(&array).unwrap(), expected(50));
        let old = array.at(At::Version(before)).unwrap();
        assert_eq!((read(&old).unwrap(), old.fragments().unwrap().len()), (expected(50), 16));
        assert_eq!(read(&array.at(At::Version(5)).unwrap()).unwrap(), expected(4));
        assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
        let again = array.consolidate(&strategy, 1 << 30, false, &Call::default()).unwrap();
        assert!(again.merges.is_empty(), "{again:?}");
    }
}

/// A store that only overwrites needs no consolidation to shrink.
#[test]
fn a_vacuum_takes_out_what_is_hidden_and_a_dry_run_says_so() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let array = create(&context(64), &storage, "/grid", false);
    let line = create(&context(64), &storage, "/line", false);
    (1..=10).for_each(|value| overwrite(&array, (0, SIDE - 1), value));
    let many: Cells = (0..9_000).map(|x| (x, x)).collect();
    write(&line, &many).unwrap();
    delete(&line, None);
    let newest = line.version();
    let day = VacuumOptions { safety_us: 86_400_000_000, ..options(Keep::Versions(1)) };
    let plan = array.vacuum(&VacuumOptions { dry_run: true, ..day }, &Call::default()).unwrap();
    assert_eq!((plan.oldest, plan.newest, plan.hidden, plan.data.objects), (newest, newest, 10, 10), "{plan:?}");
    let done = array.vacuum(&day, &Call::default()).unwrap();
    assert_eq!((done.hidden, done.data, done.oldest), (10, plan.data, newest + 1), "{done:?}");
    assert_eq!(storage.list("_data").unwrap().len(), 1);
    assert_eq!(read(&array).unwrap(), expected(10));
    assert!(read(&open(&context(64), &storage, "/line", At::Latest).unwrap()).unwrap().is_empty());
    // Another one finds nothing more to do.
    let again = array.vacuum(&day, &Call::default()).unwrap();
    assert_eq!((again.hidden, again.oldest, again.committed), (0, done.oldest, None), "{again:?}");
    // Of several versions that are to stay none is counted that only took something out.
    overwrite(&array, (0, SIDE - 1), 11);
    let newest = array.version();
    let two = array.vacuum(&VacuumOptions { keep: Keep::Versions(2), ..day }, &Call::default()).unwrap();
    assert_eq!((two.hidden, two.data.objects, two.newest), (1, 0, newest + 1), "{two:?}");
    assert_eq!(read(&array.at(At::Version(newest)).unwrap()).unwrap(), expected(11));
    assert_eq!(read(&array.at(At::Version(two.oldest)).unwrap()).unwrap(), expected(10));
}

/// Attributes for themselves: a fragment goes when the last of its attributes is written over.
#[test]
fn attributes_are_hidden_one_by_one() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let schema = r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","999"],"tile":"500"}],
        "attrs":[{"name":"a","dtype":"int64"},{"name":"b","dtype":"int64"}]}"#;
    let schema = Schema::from_json(schema).unwrap();
    let array = create_array_on(&context(64), storage.clone(), "/", schema, false).unwrap();
    let fill = |names: &[&str], value: i64| {
        let bytes = bytes_of((0..1_000).map(|_| value));
        let data: Vec<_> = names.iter().map(|name| ((*name).to_owned(), view(&bytes))).collect();
        array.commit(vec![array.stage_dense(None, &data, Order::Row, &Call::default()).unwrap()], None).unwrap();
    };
    let shed = || {
        let report = array.consolidate(&Strategy::Updates, 1 << 30, true, &Call::default()).unwrap();
        report.merges.iter().filter(|m| m.kind == "hidden").map(|m| m.fragments).sum::<u64>()
    };
    fill(&["a", "b"], 1);
    fill(&["a"], 2);
    assert_eq!(shed(), 0);
    fill(&["b"], 3);
    assert_eq!(shed(), 1);
    fill(&["a", "b"], 4);
    assert_eq!(shed(), 3);
}

/// Random writes, deletes and merges: the cells are those before, whatever goes unread.
#[test]
fn no_cell_changes_when_what_is_hidden_goes() {
    for seed in 0..20 {
        let mut random = Random(seed);
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let array = create(&context(5), &storage, "/grid", false);
        let mut now = Cells::new();
        let mut hidden = 0;
        for round in 0..60 {
            let (low, len) = (random.below(4) as i64 * 5_000, 1 + random.below(20_000) as i64);
            let within = (low, (low + len).min(SIDE - 1));
            match random.below(6) {
                0 => {
                    delete(&array, Some(within));
                    now.retain(|x, _| !(within.0..=within.1).contains(x));
                }
                1 => {
                    let cells: Cells = (0..20).map(|_| (random.below(SIDE as u64) as i64, round + 1)).collect();
                    write(&array, &cells).unwrap();
                    now.extend(cells);
                }
                2 => {
                    let which = [Strategy::Tiered, Strategy::Updates, Strategy::All][random.below(3) as usize].clone();
                    let report = array.consolidate(&which, 1 << 30, false, &Call::default()).unwrap();
                    hidden += report.merges.iter().filter(|m| m.kind == "hidden").map(|m| m.fragments).sum::<u64>();
                }
                3 => {
                    let keep = Keep::Versions(1 + random.below(5));
                    hidden += array.vacuum(&options(keep), &Call::default()).unwrap().hidden;
                }
                _ => {
                    overwrite(&array, within, round + 1);
                    now.extend((within.0..=within.1).map(|x| (x, x * 7 + round + 1)));
                }
            }
            assert_eq!(read(&array).unwrap(), now, "seed {seed}, round {round}");
        }
        assert!(hidden > 0);
        assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
    }
}

/// Where the disk is not waited for, a record says so; those of creations, folds, merges and vacuums are waited for whatever the context says.
#[test]
fn a_record_says_whether_it_is_durable() {
    use crate::vacuum::store_of;
    use gridstone::array::Recorded;
    use gridstone::storage::{Durability, LocalStorage};
    for (durability, defers) in [(Durability::Full, false), (Durability::Close, true)] {
        let folder = crate::scratch::Folder::new("says-durable");
        let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(folder.path().join("a.gs"), durability).unwrap());
        let line = create(&context(1_000), &storage, "/line", false);
        (0..4).for_each(|n| _ = write(&line, &(0..9_000).map(|x| (x + n, x)).collect()).unwrap());
        let store = store_of(&storage);
        // A fold, which nothing but the root tells of.
        store.pack(&store.latest().unwrap()).unwrap();
        let folds = store.latest().unwrap().version();
        line.refresh().unwrap();
        line.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
        line.refresh().unwrap();
        write(&line, &[(1, 1)].into()).unwrap();
        let (mut plain, mut waited) = (0, 0);
        let mut check = |from: u64| {
            let store = store_of(&storage);
            let newest = store.latest().unwrap().version();
            for version in from..=newest {
                let record = store.record(version).unwrap();
                let is = |o: &Recorded| matches!(o, Recorded::ReplaceFragments { .. } | Recorded::Condemn(_));
                let waits = version == 1 || version == folds || record.operations.iter().any(is);
                let what = &record.operations;
                assert_eq!(record.durable, waits || !defers, "version {version}, {durability:?}: {what:?}");
                (plain, waited) = (plain + u32::from(!waits), waited + u32::from(waits));
            }
            newest
        };
        let newest = check(1);
        line.vacuum(&options(Keep::Versions(2)), &Call::default()).unwrap();
        line.refresh().unwrap();
        write(&line, &[(2, 2)].into()).unwrap();
        check(newest + 1);
        assert!(plain >= 5 && waited >= 4, "{plain} {waited}");
    }
}
