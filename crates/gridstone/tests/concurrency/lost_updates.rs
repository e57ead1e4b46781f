//! Promise: no update is lost. A default transaction whose commit would undo what another one wrote meanwhile, into cells or metadata
//! keys that it has both read and written, is a Conflict; no other is.

use crate::support::columns::{as_text, bytes_of, numbers, view};
use crate::support::line;
use crate::support::pair::{begin, cells, memory, one, opened};
use crate::support::writer::{CellMap, commit_cells, context};
use gridstone::base::ErrorKind;
use gridstone::engine::{Array, Call, Condition, Keep, Strategy, VacuumOptions};
use gridstone::schema::Order;
use gridstone::storage::{HookedStorage, MemoryStorage, Operation, Storage};
use gridstone_testkit::Dice;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

const PATHS: [&str; 2] = ["/dense", "/sparse"];

type Span = (i64, i64);

fn only(at: (i64, i64)) -> (Span, Span) {
    ((at.0, at.0), (at.1, at.1))
}

/// The value of a cell, 0 if there is none, read as its box.
fn value(array: &Array, at: (i64, i64)) -> i64 {
    cells(array, only(at)).get(&at).copied().unwrap_or(0)
}

/// The same, read as a point.
fn value_of_point(array: &Array, at: (i64, i64)) -> i64 {
    let (y, x) = (bytes_of([at.0]), bytes_of([at.1]));
    let (found, _) = array.points(&[view(&y), view(&x)], None, &Call::default()).unwrap();
    numbers(&found.attrs[0]).first().copied().unwrap_or(0)
}

fn write_box(array: &Array, y: Span, x: Span, value: i64) {
    let values = bytes_of((0..(y.1 - y.0 + 1) * (x.1 - x.0 + 1)).map(|_| value));
    let data = vec![("v".to_owned(), view(&values))];
    let staged = array.stage_dense(Some(&[as_text(y), as_text(x)]), &data, Order::Row, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
}

fn delete_cells(array: &Array, places: &[(i64, i64)]) {
    let (rows, columns) = (bytes_of(places.iter().map(|p| p.0)), bytes_of(places.iter().map(|p| p.1)));
    let staged = array.stage_delete(&[view(&rows), view(&columns)], &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
}

fn delete_box(array: &Array, y: Span, x: Span) {
    array.commit(vec![array.stage_delete_box(Some(&[as_text(y), as_text(x)])).unwrap()], None).unwrap();
}

fn delete_where(array: &Array, text: &str) {
    array.delete_where(None, &Condition::parse(text).unwrap(), None, &Call::default()).unwrap();
}

fn set_key(array: &Array, key: &str, number: i64) {
    array.set_metadata(vec![(key.to_owned(), Some(number.to_string()))]).unwrap();
}

fn key(array: &Array, name: &str) -> i64 {
    array.metadata(name).unwrap().map_or(0, |text| text.parse().unwrap())
}

/// Whether a transaction stands that does `mine` while others do `theirs`.
fn stands(storage: &Arc<dyn Storage>, path: &str, mine: impl Fn(&Array), theirs: impl Fn(&Array)) -> bool {
    let transaction = begin(storage);
    mine(&transaction.array(path).unwrap());
    theirs(&opened(&context(), storage, path));
    match transaction.commit(None) {
        Ok(_) => true,
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
            false
        }
    }
}

/// One way to add one to something, and what it is afterwards.
type Counter = (&'static str, fn(&Array), fn(&Array) -> i64);

const COUNTERS: [Counter; 3] = [
    (
        "a cell",
        |a| {
            commit_cells(a, &one(3, 4, value(a, (3, 4)) + 1), None).unwrap();
        },
        |a| value(a, (3, 4)),
    ),
    (
        "a point",
        |a| {
            commit_cells(a, &one(3, 4, value_of_point(a, (3, 4)) + 1), None).unwrap();
        },
        |a| value(a, (3, 4)),
    ),
    ("a metadata key", |a| set_key(a, "n", key(a, "n") + 1), |a| key(a, "n")),
];

#[test]
fn of_two_transactions_that_increment_one_fails_and_counts_when_run_again() {
    for (path, (what, increment, read)) in PATHS.iter().flat_map(|path| COUNTERS.map(|counter| (path, counter))) {
        let storage = memory();
        let (first, second) = (begin(&storage), begin(&storage));
        increment(&first.array(path).unwrap());
        increment(&second.array(path).unwrap());
        first.commit(None).unwrap();
        let error = second.commit(None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{what} of {path}: {error}");
        for part in ["version 3", *path, "read and written", "run it again"] {
            assert!(error.message().contains(part), "{error}");
        }
        let again = second.again().unwrap();
        increment(&again.array(path).unwrap());
        again.commit(None).unwrap();
        assert_eq!(read(&opened(&context(), &storage, path)), 2, "{what} of {path}");
    }
}

#[test]
fn the_error_names_the_cell_or_the_key() {
    let storage = memory();
    let told = |mine: fn(&Array)| {
        let transaction = begin(&storage);
        mine(&transaction.array("/sparse").unwrap());
        mine(&opened(&context(), &storage, "/sparse"));
        transaction.commit(None).unwrap_err().message().to_owned()
    };
    let text = told(COUNTERS[0].1);
    assert!(text.contains("wrote to \"/sparse\" at y 3, x 4"), "{text}");
    let text = told(COUNTERS[2].1);
    assert!(text.contains("set the metadata key \"n\" of \"/sparse\""), "{text}");
}

/// The cells of one writer of sixteen, scattered over the square that all of them read.
fn scattered(writer: i64) -> Vec<(i64, i64)> {
    (0..8).map(|n| ((writer * 7 + n * 13) % 100, (n * 16 + writer) % 128)).collect()
}

#[test]
fn sixteen_writers_of_disjoint_cells_of_one_box_never_conflict() {
    const ROUNDS: i64 = 12;
    let storage = memory();
    let barrier = Barrier::new(16);
    std::thread::scope(|scope| {
        for writer in 0..16 {
            let (storage, barrier) = (&storage, &barrier);
            scope.spawn(move || {
                let mut transaction = begin(storage);
                for _ in 0..ROUNDS {
                    barrier.wait();
                    transaction = transaction.again().unwrap();
                    for path in PATHS {
                        let array = transaction.array(path).unwrap();
                        let seen = cells(&array, ((0, 99), (0, 127)));
                        let next = |at: &(i64, i64)| (*at, seen.get(at).copied().unwrap_or(0) + 1);
                        commit_cells(&array, &scattered(writer).iter().map(next).collect(), None).unwrap();
                    }
                    transaction.commit(None).unwrap();
                }
            });
        }
    });
    for path in PATHS {
        let found = cells(&opened(&context(), &storage, path), ((0, 99), (0, 127)));
        assert_eq!((found.len(), found.values().all(|v| *v == ROUNDS)), (128, true), "{path}");
    }
}

#[test]
fn sixteen_writers_of_one_cell_win_one_at_a_time() {
    const ROUNDS: usize = 15;
    for path in PATHS {
        let storage = memory();
        let barrier = Barrier::new(16);
        let wins: Vec<usize> = std::thread::scope(|scope| {
            let run = |_| {
                let (storage, barrier) = (&storage, &barrier);
                scope.spawn(move || {
                    let (mut transaction, mut wins) = (begin(storage), 0);
                    for _ in 0..ROUNDS {
                        barrier.wait();
                        transaction = transaction.again().unwrap();
                        (COUNTERS[0].1)(&transaction.array(path).unwrap());
                        barrier.wait();
                        match transaction.commit(None) {
                            Ok(_) => wins += 1,
                            Err(e) => assert_eq!(e.kind(), ErrorKind::Conflict, "{e}"),
                        }
                    }
                    wins
                })
            };
            let threads: Vec<_> = (0..16).map(run).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(wins.iter().sum::<usize>(), ROUNDS, "one of each round");
        assert_eq!(value(&opened(&context(), &storage, path), (3, 4)), ROUNDS as i64);
    }
}

/// What others may do to the cell (3, 4), and to one that is as near as can be.
type Write = (&'static str, fn(&Array, (i64, i64)));

const WRITES: [Write; 5] = [
    ("a box", |a, (y, x)| match a.schema().unwrap().sparse() {
        true => {
            commit_cells(a, &(0..9).map(|n| ((y, x + n), 5)).collect(), None).unwrap();
        }
        false => write_box(a, (y, y + 2), (x, x + 9), 5),
    }),
    ("cells", |a, at| {
        commit_cells(a, &CellMap::from([(at, 5), ((140, 140), 5), ((0, 0), 5)]), None).unwrap();
    }),
    ("tombstones", |a, at| delete_cells(a, &[at, (140, 140), (0, 0)])),
    ("a deletion", |a, (y, x)| delete_box(a, (y, y + 2), (x, x + 20))),
    ("a delete by condition", |a, (y, x)| delete_where(a, &format!("y == {y} && x == {x} || v == 140"))),
];

/// A store whose cells are their own numbers, the cell (140, 140) is 140.
fn numbered() -> Arc<dyn Storage> {
    let storage = memory();
    for path in PATHS {
        let all = (0..150).flat_map(|y| (0..150).map(move |x| ((y, x), 1 + y * 1_000 + x)));
        let array = opened(&context(), &storage, path);
        commit_cells(&array, &all.chain([((140, 140), 140)]).collect(), None).unwrap();
    }
    storage
}

#[test]
fn whatever_others_do_to_the_cell_is_found_and_beside_it_is_not() {
    for (path, (what, write)) in PATHS.iter().flat_map(|path| WRITES.map(|write| (path, write))) {
        let storage = numbered();
        assert!(!stands(&storage, path, COUNTERS[0].1, |a| write(a, (3, 4))), "{what} in {path}");
        assert!(stands(&storage, path, COUNTERS[0].1, |a| write(a, (3, 5))), "{what} in {path}, beside");
    }
}

#[test]
fn whatever_a_transaction_does_to_what_it_has_read_counts() {
    for (path, (what, write)) in PATHS.iter().flat_map(|path| WRITES.map(|write| (path, write))) {
        let mine = |a: &Array| {
            cells(a, ((0, 9), (0, 149)));
            write(a, (3, 4));
        };
        let theirs = |at: (i64, i64)| {
            move |a: &Array| {
                commit_cells(a, &one(at.0, at.1, 7), None).unwrap();
            }
        };
        let storage = numbered();
        assert!(!stands(&storage, path, mine, theirs((3, 4))), "{what} in {path}");
        assert!(stands(&storage, path, mine, theirs((3, 3))), "{what} in {path}, beside");
        assert!(stands(&storage, path, |a| write(a, (50, 60)), theirs((3, 4))), "{what} in {path}, elsewhere");
        let reads_elsewhere = |a: &Array| {
            cells(a, ((20, 30), (0, 149)));
            write(a, (3, 4));
        };
        let blind = stands(&storage, path, reads_elsewhere, theirs((3, 4)));
        assert_eq!(blind, what != "a delete by condition", "{what} in {path}: only a condition reads what it deletes");
    }
}

/// Deletes by condition lie over fragments that the transaction has staged itself, too.
#[test]
fn what_is_written_and_deleted_again_counts() {
    let mine = |a: &Array| {
        value(a, (3, 4));
        commit_cells(a, &CellMap::from([((3, 4), -5), ((9, 9), -5)]), None).unwrap();
        delete_where(a, "v < 0");
    };
    for path in PATHS {
        let theirs = |at: (i64, i64)| {
            move |a: &Array| {
                commit_cells(a, &one(at.0, at.1, 7), None).unwrap();
            }
        };
        assert!(!stands(&memory(), path, mine, theirs((3, 4))));
        assert!(!stands(&memory(), path, mine, theirs((9, 9))), "the condition looked at it");
        assert!(stands(&memory(), path, mine, theirs((9, 10))));
    }
}

#[test]
fn who_only_reads_or_only_writes_never_conflicts() {
    for path in PATHS {
        let storage = memory();
        let theirs = |a: &Array| COUNTERS.iter().for_each(|(_, increment, _)| increment(a));
        let blind = |a: &Array| {
            commit_cells(a, &one(3, 4, 9), None).unwrap();
            set_key(a, "n", 9);
        };
        assert!(stands(&storage, path, blind, theirs), "written, not read");
        let elsewhere = |a: &Array| {
            COUNTERS.iter().for_each(|(_, _, read)| {
                read(a);
            });
            commit_cells(a, &one(8, 8, 9), None).unwrap();
            set_key(a, "m", 9);
        };
        assert!(stands(&storage, path, elsewhere, theirs), "read, and others written");
        let reads = |a: &Array| {
            COUNTERS.iter().for_each(|(_, _, read)| {
                read(a);
            })
        };
        assert!(stands(&storage, path, reads, theirs), "read");
        let all_keys = |a: &Array| {
            a.metadata_keys().unwrap();
            set_key(a, "n", 9);
        };
        assert!(!stands(&storage, path, all_keys, theirs), "who reads all keys has read this one");
        assert!(stands(&storage, path, all_keys, |a| set_key(a, "m", 1)));
    }
}

/// A new array is nobody else's, and a cell that is read back is not the store's.
#[test]
fn arrays_of_the_transaction_itself_are_no_reads_of_others() {
    let storage = memory();
    let transaction = begin(&storage);
    let made = transaction.create_array("/new", crate::support::pair::schema(true), false).unwrap();
    commit_cells(&made, &one(1, 1, 1), None).unwrap();
    assert_eq!(value(&made, (1, 1)), 1);
    commit_cells(&opened(&context(), &storage, "/sparse"), &one(1, 1, 1), None).unwrap();
    transaction.commit(None).unwrap();
}

#[test]
fn merges_in_between_never_conflict() {
    for path in PATHS {
        let storage = numbered();
        let outside = opened(&context(), &storage, path);
        (0..6).for_each(|n| {
            commit_cells(&outside, &one(3, n, 5), None).unwrap();
        });
        let merge = |_: &Array| {
            let outside = opened(&context(), &storage, path);
            let report = outside.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
            assert!(!report.merges.is_empty());
        };
        let lower = |a: &Array| {
            cells(a, ((0, 9), (0, 149)));
            commit_cells(a, &one(3, 4, 9), None).unwrap();
            delete_cells(a, &[(4, 4)]);
        };
        assert!(stands(&storage, path, lower, merge), "{path}");
    }
}

/// Each version is looked at, however far ahead the newest is: a merge and a fold hide the write, and do not undo it.
#[test]
fn a_write_far_behind_the_newest_version_is_found() {
    let storage = memory();
    for hit in [true, false] {
        let theirs = |a: &Array| {
            commit_cells(a, &one(3, if hit { 4 } else { 5 }, 9), None).unwrap();
            (0..150).for_each(|n| {
                commit_cells(a, &one(100, n % 150, 9), None).unwrap();
            });
            a.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
        };
        assert_eq!(stands(&storage, "/sparse", COUNTERS[0].1, theirs), !hit);
    }
}

/// Who has leases is left alone by vacuums; a transaction of a moment has none.
#[test]
fn versions_in_between_that_are_gone_are_never_passed_over() {
    let gone = |mine: fn(&Array), theirs: i64| {
        let storage = memory();
        let transaction = begin(&storage);
        mine(&transaction.array("/sparse").unwrap());
        let outside = opened(&context(), &storage, "/sparse");
        for n in 0..5 {
            commit_cells(&outside, &one(theirs, n, 9), None).unwrap();
        }
        outside.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
        let options = VacuumOptions { keep: Keep::Versions(1), safety_us: 0, dry_run: false };
        outside.vacuum(&options, &Call::default()).unwrap();
        transaction.commit(None).map_err(|e| e.kind())
    };
    assert_eq!(gone(COUNTERS[0].1, 3), Err(ErrorKind::SnapshotExpired));
    assert_eq!(gone(COUNTERS[0].1, 100), Err(ErrorKind::SnapshotExpired), "nobody can tell that it was elsewhere");
    assert_eq!(gone(COUNTERS[2].1, 100), Err(ErrorKind::SnapshotExpired), "of metadata too");
    assert!(
        gone(
            |a| {
                commit_cells(a, &one(3, 4, 9), None).unwrap();
            },
            3
        )
        .is_ok(),
        "what was only written stands"
    );
    let reads = |a: &Array| {
        value(a, (3, 4));
        commit_cells(a, &one(8, 8, 9), None).unwrap();
    };
    assert!(gone(reads, 3).is_ok(), "what was only read matters to nobody");
}

/// The file of a version in between goes in the moment in which it is to be looked into.
#[test]
fn a_file_in_between_that_is_gone_is_an_expired_snapshot() {
    let inner = memory();
    let armed = Arc::new(AtomicBool::new(false));
    let (trigger, behind) = (armed.clone(), inner.clone());
    let storage: Arc<dyn Storage> = Arc::new(HookedStorage::new(inner.clone(), move |operation, name: &str| {
        if operation == Operation::Open && name.starts_with("_data/") && trigger.swap(false, Ordering::SeqCst) {
            behind.delete(name).unwrap();
        }
    }));
    let transaction = begin(&storage);
    (COUNTERS[0].1)(&transaction.array("/sparse").unwrap());
    let mut random = crate::support::random::Random(3);
    let large = (0..15_000).map(|n| ((n / 150, n % 150), random.next() as i64)).filter(|(at, _)| *at != (3, 4));
    commit_cells(&opened(&context(), &inner, "/sparse"), &large.collect(), None).unwrap();
    armed.store(true, Ordering::SeqCst);
    let error = transaction.commit(None).unwrap_err();
    assert!(!armed.load(Ordering::SeqCst), "it was looked into");
    assert_eq!(error.kind(), ErrorKind::SnapshotExpired, "{error}");
}

/// Sparse cells of others at every third place of two stretches, of which nothing lies in between.
fn stretches(count: i64) -> line::Cells {
    (0..count / 2).flat_map(|n| [(n * 3, 5), (1_000_000 + n * 3, 5)]).collect()
}

/// A line of cells, long enough for fragments that are not told by their coordinates.
fn line() -> Arc<dyn Storage> {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let text = r#"{"sparse":true,"capacity":1000,"dims":[{"name":"x","dtype":"int64","domain":["0","9999999"]}],
        "attrs":[{"name":"v","dtype":"int64"}]}"#;
    let schema = gridstone::schema::Schema::from_json(text).unwrap();
    gridstone::engine::create_array_on(&context(), storage.clone(), "/line", schema, false).unwrap();
    storage
}

/// Whether a transaction stands that reads and writes the cell at `x` of `storage` while others do `theirs`.
fn stands_at(storage: &Arc<dyn Storage>, x: i64, theirs: impl Fn(&Array)) -> bool {
    let mine = |a: &Array| {
        a.read(Some(&[as_text((x, x))]), None, gridstone::engine::ReadOrder::Any, &Call::default()).unwrap();
        line::write(a, &line::Cells::from([(x, 1)])).unwrap();
    };
    stands(storage, "/line", mine, theirs)
}

#[test]
fn large_fragments_are_told_by_the_boxes_of_their_tiles() {
    let writes = |count: i64| {
        move |a: &Array| {
            line::write(a, &stretches(count)).unwrap();
        }
    };
    let (few, many) = (writes(60_000), writes(70_000));
    for (x, beside_few, beside_many) in
        [(30_000, false, false), (30_001, true, false), (500_000, true, true), (1_030_001, true, false)]
    {
        assert_eq!(stands_at(&line(), x, few), beside_few, "{x}, few");
        assert_eq!(stands_at(&line(), x, many), beside_many, "{x}, many");
    }
    let points = |a: &Array| {
        let x = bytes_of(stretches(70_000).into_keys());
        a.commit(vec![a.stage_delete(&[view(&x)], &Call::default()).unwrap()], None).unwrap();
    };
    assert!(!stands_at(&line(), 30_001, points) && stands_at(&line(), 500_000, points), "tombstones as well");
}

#[test]
fn rows_of_masks_are_told_alike() {
    let filled = || {
        let storage = line();
        let all = (0..80_000).map(|n| (n, n)).chain((1_000_000..1_080_000).map(|n| (n, n)));
        line::write(&opened(&context(), &storage, "/line"), &all.collect()).unwrap();
        storage
    };
    let where_ = |text: &'static str| move |a: &Array| delete_where(a, text);
    // Few rows, here and there.
    let few = where_("v < 50 || v >= 1000100 && v < 1000110");
    assert!(!stands_at(&filled(), 49, few) && !stands_at(&filled(), 1_000_100, few));
    assert!(stands_at(&filled(), 50, few) && stands_at(&filled(), 1_000_099, few));
    // So many that their tiles stand for them.
    let many = where_("v < 70500");
    assert!(!stands_at(&filled(), 70_400, many) && !stands_at(&filled(), 70_900, many));
    assert!(stands_at(&filled(), 71_001, many) && stands_at(&filled(), 1_000_500, many));
}

/// What one side does in a random history: the cells that it reads, and those that it writes.
#[derive(Default)]
struct Deeds {
    read: BTreeSet<(i64, i64)>,
    written: BTreeSet<(i64, i64)>,
}

/// Some reads and writes of the cells of a square, in every way that there is.
fn act(dice: &mut Dice, array: &Array, deeds: &mut Deeds) {
    const END: usize = 8;
    let side = |dice: &mut Dice| {
        let lo = dice.below(END) as i64;
        (lo, (lo + dice.below(4) as i64).min(END as i64 - 1))
    };
    let (y, x) = (side(dice), side(dice));
    let square: Vec<(i64, i64)> = (y.0..=y.1).flat_map(|y| (x.0..=x.1).map(move |x| (y, x))).collect();
    let some: Vec<(i64, i64)> = (0..1 + dice.below(5)).map(|_| (side(dice).0, side(dice).0)).collect();
    match dice.below(8) {
        0 | 1 => {
            cells(array, (y, x));
            deeds.read.extend(square);
        }
        2 => {
            some.iter().for_each(|at| {
                value_of_point(array, *at);
            });
            deeds.read.extend(some);
        }
        3 => {
            delete_cells(array, &some.iter().copied().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>());
            deeds.written.extend(some);
        }
        4 => {
            delete_box(array, y, x);
            deeds.written.extend(square);
        }
        5 if !array.schema().unwrap().sparse() => {
            write_box(array, y, x, 3);
            deeds.written.extend(square);
        }
        6 => {
            let there: Vec<_> = cells(array, (y, x)).into_keys().collect();
            let text = format!("y >= {} && y <= {} && x >= {} && x <= {} && v > 0", y.0, y.1, x.0, x.1);
            delete_where(array, &text);
            deeds.read.extend(square);
            deeds.written.extend(there);
        }
        _ => {
            commit_cells(array, &some.iter().map(|at| (*at, 4)).collect(), None).unwrap();
            deeds.written.extend(some);
        }
    }
}

/// A transaction fails if, and only if, one of the versions in between wrote a cell that it has both read and written.
#[test]
fn random_histories_agree_with_sets_of_cells() {
    let mut outcomes = [0; 2];
    for (seed, path) in (0..300u64).flat_map(|seed| PATHS.map(|path| (seed, path))) {
        let (mut dice, storage) = (Dice::new(seed), memory());
        let all = (0..64).map(|n| ((n / 8, n % 8), n + 1)).collect();
        commit_cells(&opened(&context(), &storage, path), &all, None).unwrap();
        let transaction = begin(&storage);
        let inside = transaction.array(path).unwrap();
        let mut mine = Deeds::default();
        (0..2 + dice.below(6)).for_each(|_| act(&mut dice, &inside, &mut mine));
        let (mut theirs, outside) = (Deeds::default(), opened(&context(), &storage, path));
        (0..1 + dice.below(3)).for_each(|_| act(&mut dice, &outside, &mut theirs));
        let both: BTreeSet<_> = mine.read.intersection(&mine.written).copied().collect();
        let lost = both.intersection(&theirs.written).next();
        match (transaction.commit(None), lost) {
            (Ok(_), None) => outcomes[0] += 1,
            (Err(e), Some(_)) if e.kind() == ErrorKind::Conflict => outcomes[1] += 1,
            (outcome, lost) => panic!("seed {seed}, {path}: {outcome:?}, lost {lost:?}"),
        }
    }
    assert!(outcomes.iter().all(|times| *times > 50), "{outcomes:?}");
}
