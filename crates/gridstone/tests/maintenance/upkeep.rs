//! Promise: what is deleted goes, large parts of sparse arrays that nothing reaches into are copied, many tiny fragments are no
//! matter, and all this may go on in the background.

use crate::support::columns::longs;
use crate::support::dense::{BOTH, consolidate, created, created_uncached, read as read_box, schema, write_box};
use crate::support::sparse::{delete, line, stage, write};
use gridstone::base::ErrorKind;
use gridstone::engine::{
    Array, At, AutoConsolidate, Call, CellData, Context, Dedup, Isolation, Opened, Options, ReadOrder, Strategy,
    Transaction, commit_receipts_on, create_array_on, open_on,
};
use gridstone::storage::{HookedStorage, MemoryStorage, Operation, Storage};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(120);

fn cells(array: &Array) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (cells, _, _) = array.read(None, None, ReadOrder::Row, &Call::default()).unwrap();
    let bytes = |c: &gridstone::engine::Column| c.view().values().to_vec();
    vec![(bytes(&cells.dims[0]), bytes(&cells.attrs[0]))]
}

#[test]
fn deleted_cells_and_their_tombstones_go() {
    let (array, _) = created(line(1_000), 1 << 30);
    write(&array, &(0..4_000).collect::<Vec<_>>(), 1);
    delete(&array, &(0..100).collect::<Vec<_>>());
    let before = cells(&array);
    assert!(consolidate(&array, &Strategy::Tiered).merges.is_empty(), "a fortieth is deleted");
    delete(&array, &(1_000..3_000).collect::<Vec<_>>());
    let (version, now) = (array.version(), cells(&array));
    let done = consolidate(&array, &Strategy::Tiered);
    assert_eq!((done.merges.len(), done.after), (1, 1));
    let fragments = array.fragments().unwrap();
    assert_eq!((fragments[0].cells, fragments[0].kind), (1_900, "sparse"));
    assert_eq!(cells(&array), now);
    assert_eq!(cells(&array.at(At::Version(version - 1)).unwrap()), before);
    assert!(consolidate(&array, &Strategy::All).merges.is_empty());
    // All cells deleted: nothing is left. A tombstone over nothing goes as well.
    delete(&array, &(0..4_000).collect::<Vec<_>>());
    delete(&array, &[77_777]);
    assert_eq!(consolidate(&array, &Strategy::All).after, 0);
    assert!(cells(&array)[0].0.is_empty());
}

#[test]
fn a_purge_of_nothing_is_no_commit() {
    let (array, _) = created(line(1_000), 1 << 30);
    write(&array, &[0, 1_000], 1);
    write(&array, &(2_000..3_000).collect::<Vec<_>>(), 2);
    delete(&array, &[500]);
    write(&array, &[500], 3);
    let before = cells(&array);
    consolidate(&array, &Strategy::All);
    let version = array.version();
    assert_eq!((cells(&array), array.fragments().unwrap().len()), (before, 1));
    consolidate(&array, &Strategy::All);
    assert_eq!(array.version(), version);
}

#[test]
fn tiles_that_nothing_reaches_into_are_copied() {
    let (array, _) = created(line(10_000), 1 << 30);
    for n in 0..4 {
        write(&array, &(n * 100_000..n * 100_000 + 50_000).collect::<Vec<_>>(), n);
    }
    let before = cells(&array);
    let done = consolidate(&array, &Strategy::All);
    assert_eq!((done.after, done.counters.tiles_copied, done.counters.blocks_decoded), (1, 20, 0));
    assert_eq!(cells(&array), before);
    assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
    // An update and a deletion reach into two tiles; the cells of these are merged.
    write(&array, &[5, 250_000], 9);
    delete(&array, &[100_005]);
    let before = cells(&array);
    let done = consolidate(&array, &Strategy::All);
    assert_eq!((done.after, done.counters.tiles_copied), (1, 18));
    assert_eq!(cells(&array), before);
    assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
}

#[test]
fn many_tiny_fragments_are_merged_within_the_memory() {
    for budget in [16u64 << 20, 64 << 20, 1 << 30] {
        let (array, _) = created(line(1_000), budget);
        for portion in (0..25_000).collect::<Vec<i64>>().chunks(1_000) {
            let staged = portion.iter().map(|n| stage(&array, &[n * 13 % 5_000, 10_000 + n], *n)).collect();
            array.commit(staged, None).unwrap();
        }
        let before = cells(&array);
        for _ in 0..4 {
            consolidate(&array, &Strategy::All);
        }
        assert_eq!(cells(&array), before);
        let left = array.fragments().unwrap().len();
        assert!(left < 10, "{left} fragments are left");
        assert!(array.context().peak_bytes() <= budget, "{} bytes", array.context().peak_bytes());
    }
}

/// Single cells, boxes of four and tombstones over one large fragment.
#[test]
fn many_tiny_fragments_over_a_dense_one_are_merged_within_the_memory() {
    for budget in [16u64 << 20, 64 << 20, 1 << 30] {
        let (array, _) = created(schema(1_000, 100, false), budget);
        write_box(&array, ((0, 999), (0, 999)), &BOTH, 1);
        let column = |values: &[i64]| longs(values.iter().copied());
        for portion in (0..25_000).collect::<Vec<i64>>().chunks(1_000) {
            let tiny = |n: &i64| {
                let (x, y) = (n * 7_919 % 998, n * 104_729 % 998);
                let (v, call) = (column(&[*n; 4]), Call::default());
                let (xs, ys) = (column(&[x]), column(&[y]));
                match n % 5 {
                    0 => {
                        let data = BOTH.iter().map(|name| ((*name).to_owned(), v.view())).collect();
                        let sub = [(x, x + 1), (y, y + 1)].map(|(from, to)| (from.to_string(), to.to_string()));
                        array.stage_dense(Some(&sub), &data, gridstone::schema::Order::Row, &call).unwrap()
                    }
                    1 => array.stage_delete(&[xs.view(), ys.view()], &call).unwrap(),
                    _ => {
                        let one = column(&[-n]);
                        let attrs = BOTH.iter().map(|name| ((*name).to_owned(), one.view())).collect();
                        let dims = vec![xs.view(), ys.view()];
                        let data = CellData { dims, attrs, sorted: false, dedup: Dedup::Error };
                        array.stage_cells(data, &call).unwrap()
                    }
                }
            };
            array.commit(portion.iter().map(tiny).collect(), None).unwrap();
        }
        assert_eq!(array.fragments().unwrap().len(), 25_001);
        let before = read_box(&array);
        for strategy in [Strategy::Tiered, Strategy::All, Strategy::All] {
            consolidate(&array, &strategy);
            assert!(read_box(&array) == before, "{strategy:?}");
        }
        let kinds: Vec<&str> = array.fragments().unwrap().iter().map(|f| f.kind).collect();
        assert_eq!(kinds, ["dense", "tombstones"]);
        assert!(array.context().peak_bytes() <= budget, "{} bytes", array.context().peak_bytes());
    }
}

#[test]
fn it_goes_on_in_the_background_once_at_a_time() {
    let (array, storage) = created(line(1_000), 1 << 30);
    for n in 0..40 {
        write(&array, &[n, 500], n);
    }
    let (before, version) = (cells(&array), array.version());
    let running = array.consolidate_in_background(Strategy::All, 1 << 30).unwrap();
    let report = running.wait(LONG).unwrap();
    assert_eq!(report.as_ref().as_ref().unwrap().after, 1);
    assert!(running.is_done());
    assert_eq!((array.version(), array.fragments().unwrap().len()), (version, 40), "this handle stays where it was");
    array.refresh().unwrap();
    assert_eq!((cells(&array), array.fragments().unwrap().len()), (before, 1));
    let reader = match open_on(array.context(), storage, "/", false, At::Latest).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group where an array was created"),
    };
    assert!(reader.consolidate_in_background(Strategy::All, 1).is_err(), "it is not writable");
}

#[test]
fn a_second_one_is_refused_while_the_first_goes_on() {
    let gate = Arc::new(Mutex::new(()));
    let held = gate.clone();
    let hooked = HookedStorage::new(Arc::new(MemoryStorage::new()), move |_, _: &str| {
        if std::thread::current().name() == Some("gridstone-upkeep") {
            drop(held.lock().unwrap());
        }
    });
    let context = Context::new(&Options { threads: Some(1), ..Options::default() }).unwrap();
    let array = create_array_on(&context, Arc::new(hooked), "/", line(1_000), false).unwrap();
    for n in 0..10 {
        write(&array, &[n, 500], n);
    }
    let closed = gate.lock().unwrap();
    let first = array.consolidate_in_background(Strategy::All, 1 << 30).unwrap();
    for _ in 0..2 {
        let refused = array.consolidate_in_background(Strategy::All, 1 << 30).unwrap_err();
        assert!(refused.kind() == ErrorKind::Input && refused.message().contains("already"), "{refused}");
    }
    assert!(!first.is_done());
    drop(closed);
    assert_eq!(first.wait(LONG).unwrap().as_ref().as_ref().unwrap().after, 1);
    array.consolidate_in_background(Strategy::All, 1 << 30).unwrap().wait(LONG).unwrap();
}

#[test]
fn what_goes_wrong_in_the_background_is_told_by_the_next_call() {
    let (array, storage) = created_uncached(schema(400, 50, false));
    for n in 0..2 {
        write_box(&array, ((n * 200, n * 200 + 199), (0, 399)), &["v", "w"], n);
    }
    let files = storage.list("_data").unwrap();
    let name = if files[0].contains('/') { files[0].clone() } else { format!("_data/{}", files[0]) };
    let whole = storage.read_all(&name).unwrap();
    let mut damaged = whole.to_vec();
    damaged[5_000] ^= 1;
    storage.put(&name, &damaged).unwrap();
    let outcome = array.consolidate_in_background(Strategy::All, 1 << 30).unwrap().wait(LONG).unwrap();
    assert_eq!(outcome.as_ref().as_ref().unwrap_err().kind(), ErrorKind::Corruption);
    storage.put(&name, &whole).unwrap();
    let before = read_box(&array);
    let report = consolidate(&array, &Strategy::All);
    assert!(report.background_failure.unwrap().contains("checksum"));
    assert_eq!((report.after, consolidate(&array, &Strategy::All).background_failure), (1, None));
    assert_eq!(read_box(&array), before);
}

#[test]
fn a_policy_keeps_the_fragments_few() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let auto_consolidate = Some(AutoConsolidate { fragments: 16, ..AutoConsolidate::default() });
    let context = Context::new(&Options { threads: Some(1), auto_consolidate, ..Options::default() }).unwrap();
    let array = create_array_on(&context, storage, "/", line(1_000), false).unwrap();
    let begun = Instant::now();
    for n in 0..300 {
        write(&array, &[n, 1_000 + n % 7], n);
        if let Some(running) = array.upkeep() {
            running.wait(LONG).unwrap();
        }
    }
    let (x, _) = cells(&array).remove(0);
    assert_eq!(x.len(), 307 * 8);
    array.refresh().unwrap();
    let left = array.fragments().unwrap().len();
    assert!(left < 60, "{left} fragments after {:?}", begun.elapsed());
    let refused = Context::new(&Options {
        auto_consolidate: Some(AutoConsolidate { fragments: 1, ..AutoConsolidate::default() }),
        ..Options::default()
    });
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Input);
}

/// An array of a context with a policy.
fn looked_after(fragments: u64, storage: &Arc<dyn Storage>) -> Array {
    let auto_consolidate = Some(AutoConsolidate { fragments, ..AutoConsolidate::default() });
    let context = Context::new(&Options { threads: Some(1), auto_consolidate, cache: 0, ..Options::default() });
    create_array_on(&context.unwrap(), storage.clone(), "/", line(1_000), false).unwrap()
}

#[test]
fn the_policy_sees_transactions_and_receipts() {
    for by_receipt in [false, true] {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let array = looked_after(16, &storage);
        for n in 0..100 {
            if by_receipt {
                let receipt = array.receipt(vec![stage(&array, &[n, 1_000], n)]).unwrap();
                commit_receipts_on(array.context(), storage.clone(), &[receipt], None).unwrap();
            } else {
                let transaction = Transaction::begin_on(array.context(), storage.clone(), Isolation::Snapshot).unwrap();
                write(&transaction.array("/").unwrap(), &[n, 1_000], n);
                transaction.commit(None).unwrap();
            }
            while let Some(running) = array.upkeep() {
                running.wait(LONG).unwrap();
            }
        }
        array.refresh().unwrap();
        let left = array.fragments().unwrap().len();
        assert!(left < 40, "by receipt: {by_receipt}, {left} fragments are left");
        assert_eq!(cells(&array)[0].0.len(), 101 * 8);
    }
}

#[test]
fn the_policy_does_not_run_into_damage_after_every_commit() {
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let (name, looks) = (Arc::new(Mutex::new(String::new())), Arc::new(AtomicU64::new(0)));
    let (asked, counting) = (name.clone(), looks.clone());
    let storage: Arc<dyn Storage> = Arc::new(HookedStorage::new(memory.clone(), move |operation, name: &str| {
        let beside = std::thread::current().name() == Some("gridstone-upkeep");
        if beside && operation == Operation::Open && *asked.lock().unwrap() == name {
            counting.fetch_add(1, Ordering::SeqCst);
        }
    }));
    let array = looked_after(8, &storage);
    let all: Vec<i64> = (0..20_000).collect();
    let commits = |count: i64| {
        for n in 0..count {
            write(&array, &all, n);
            while let Some(running) = array.upkeep() {
                running.wait(LONG).unwrap();
            }
        }
    };
    commits(1);
    let damaged = memory.list("_data").unwrap().remove(0);
    let whole = memory.read_all(&damaged).unwrap();
    let mut changed = whole.to_vec();
    changed[5_000] ^= 1;
    memory.put(&damaged, &changed).unwrap();
    *name.lock().unwrap() = damaged.clone();
    commits(30);
    // Three times, after eight more commits each; a look or two each time.
    let looked = looks.load(Ordering::SeqCst);
    assert!((3..=8).contains(&looked), "{looked} looks");

    // Merged on request there are few again, which the policy is to know.
    memory.put(&damaged, &whole).unwrap();
    array.refresh().unwrap();
    let report = consolidate(&array, &Strategy::All);
    assert!(report.background_failure.unwrap().contains("checksum"));
    assert_eq!(report.after, 1);
    commits(6);
    array.refresh().unwrap();
    assert_eq!(array.fragments().unwrap().len(), 7, "not yet");
    commits(4);
    array.refresh().unwrap();
    assert!(array.fragments().unwrap().len() < 7, "{} fragments", array.fragments().unwrap().len());
}

/// The same of cells.
#[test]
fn cells_that_were_cut_at_the_target_are_left_alone() {
    let (array, _) = created(line(1_000), 1 << 30);
    for n in 0..6 {
        write(&array, &(n..900_000).step_by(7).collect::<Vec<_>>(), n);
    }
    let before = cells(&array);
    let all = |target: u64| array.consolidate(&Strategy::All, target, false, &Call::default()).unwrap();
    all(100_000);
    let (version, parts) = (array.version(), array.fragments().unwrap().len());
    assert!(parts > 3, "{parts} fragments");
    assert!(all(100_000).merges.is_empty());
    assert_eq!(array.version(), version);
    write(&array, &[5], 9);
    assert_eq!(all(100_000).merges.len(), 1);
    assert!(all(1 << 30).after == 1 && cells(&array) != before);
}
