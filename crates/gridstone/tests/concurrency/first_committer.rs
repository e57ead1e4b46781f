//! Promise: who removes or replaces what it has read loses to whoever wrote to it meanwhile, and nobody loses to a neighbour while the
//! cells are few, however many boxes they are read and written in.

use crate::support::columns::as_text;
use crate::support::pair::{begin, cells, memory, one, opened, schema};
use crate::support::writer::{commit_cells, context};
use gridstone::base::ErrorKind;
use gridstone::engine::{Array, Call, Isolation, ReadOrder, Span, Transaction, create_array_on};
use gridstone::schema::Schema;
use gridstone::storage::{HookedStorage, MemoryStorage, Operation, Storage};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// A store with an array below two groups, and another one beside.
fn nested() -> Arc<dyn Storage> {
    let storage = memory();
    for path in ["/g/h/a", "/g/b"] {
        create_array_on(&context(), storage.clone(), path, schema(true), false).unwrap();
        commit_cells(&opened(&context(), &storage, path), &one(3, 4, 1), None).unwrap();
    }
    storage
}

/// A way to take away the array at "/g/h/a".
type Removal = (&'static str, fn(&Transaction));

const REMOVALS: [Removal; 6] = [
    ("removed", |tx| tx.remove("/g/h/a").unwrap()),
    ("replaced", |tx| {
        let made = tx.create_array("/g/h/a", schema(true), true).unwrap();
        commit_cells(&made, &one(3, 4, 2), None).unwrap();
    }),
    ("removed with a group", |tx| tx.remove("/g").unwrap()),
    ("replaced with a group", |tx| drop(tx.create_array("/g/h", schema(false), true).unwrap())),
    ("moved and removed", |tx| {
        tx.move_node("/g/h", "/elsewhere").unwrap();
        tx.remove("/elsewhere/a").unwrap();
    }),
    ("written and removed", |tx| {
        commit_cells(&tx.array("/g/h/a").unwrap(), &one(9, 9, 2), None).unwrap();
        tx.remove("/g/h/a").unwrap();
    }),
];

/// What a transaction has read of the array before, and what others do to it.
type Deed = fn(&Array);

fn outcome(read: Deed, remove: fn(&Transaction), theirs: Deed) -> Result<u64, String> {
    let storage = nested();
    let transaction = begin(&storage);
    read(&transaction.array("/g/h/a").unwrap());
    remove(&transaction);
    theirs(&opened(&context(), &storage, "/g/h/a"));
    transaction.commit(None).map_err(|e| {
        assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
        e.message().to_owned()
    })
}

fn write_cell(array: &Array, y: i64, x: i64) {
    commit_cells(array, &one(y, x, 7), None).unwrap();
}

fn set_key(array: &Array, key: &str) {
    array.set_metadata(vec![(key.to_owned(), Some("7".to_owned()))]).unwrap();
}

#[test]
fn whoever_removes_what_it_has_read_has_written_all_of_it() {
    let read: Deed = |a| drop(cells(a, ((3, 3), (0, 9))));
    let read_key: Deed = |a| drop(a.metadata("n").unwrap());
    for (what, remove) in REMOVALS {
        let text = outcome(read, remove, |a| write_cell(a, 3, 4)).expect_err(what);
        for part in ["wrote to \"/g/h/a\" at y 3, x 4", "read and removed", "run it again"] {
            assert!(text.contains(part), "{what}: {text}");
        }
        let erase: Deed = |a| assert!(a.commit(vec![a.stage_delete_box(None).unwrap()], None).is_ok());
        assert!(outcome(read, remove, erase).is_err(), "{what}");
        let text = outcome(read_key, remove, |a| set_key(a, "n")).expect_err(what);
        assert!(text.contains("set the metadata key \"n\""), "{what}: {text}");
        let all_keys: Deed = |a| drop(a.metadata_keys().unwrap());
        assert!(outcome(all_keys, remove, |a| set_key(a, "other")).is_err(), "{what}");
    }
}

#[test]
fn whoever_removes_what_it_has_not_read_stands() {
    let read: Deed = |a| {
        cells(a, ((3, 3), (0, 9)));
        a.metadata("n").unwrap();
    };
    for (what, remove) in REMOVALS {
        let theirs: Deed = |a| {
            write_cell(a, 4, 4);
            set_key(a, "m");
        };
        outcome(read, remove, theirs).expect(what);
        let theirs: Deed = |a| {
            write_cell(a, 3, 4);
            set_key(a, "n");
        };
        outcome(|_| (), remove, theirs).expect(what);
    }
}

/// Others removed it too: nothing of theirs is undone, whatever they wrote to it before in the same version.
#[test]
fn what_others_have_removed_as_well_is_nobodys_loss() {
    let storage = nested();
    let (transaction, others) = (begin(&storage), begin(&storage));
    cells(&transaction.array("/g/h/a").unwrap(), ((3, 3), (0, 9)));
    transaction.remove("/g").unwrap();
    write_cell(&others.array("/g/h/a").unwrap(), 3, 4);
    others.remove("/g/h/a").unwrap();
    others.commit(None).unwrap();
    transaction.commit(None).unwrap();
    assert!(cells(&opened(&context(), &storage, "/sparse"), ((0, 9), (0, 9))).is_empty());
}

/// Rows and columns of the array of many boxes.
const SIDES: (i64, i64) = (800, 100);

/// Pairs of neighbours, 2,500 of them, in the rows of a number modulo 16.
fn pairs(of: i64) -> Vec<(i64, i64)> {
    (0..SIDES.0 / 16).flat_map(|n| (0..SIDES.1 / 2).map(move |x| (n * 16 + of, x * 2))).collect()
}

fn wide(sparse: bool) -> Arc<dyn Storage> {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let (rows, columns) = (SIDES.0 - 1, SIDES.1 - 1);
    let text = format!(
        r#"{{"sparse":{sparse},"dims":[{{"name":"y","dtype":"int64","domain":["0","{rows}"],"tile":"100"}},
            {{"name":"x","dtype":"int64","domain":["0","{columns}"],"tile":"100"}}],"attrs":[{{"name":"v","dtype":"int64"}}]}}"#
    );
    create_array_on(&context(), storage.clone(), "/wide", Schema::from_json(&text).unwrap(), false).unwrap();
    storage
}

fn read_each(array: &Array, boxes: &[(i64, i64)]) {
    for (y, x) in boxes {
        let bounds = [as_text((*y, *y)), as_text((*x, *x + 1))];
        array.read(Some(&bounds), None, ReadOrder::Any, &Call::default()).unwrap();
    }
}

/// Writes the cells of boxes, or deletes all boxes at once.
fn write_each(array: &Array, boxes: &[(i64, i64)], delete: bool) {
    if delete {
        let spans = |(y, x): &(i64, i64)| {
            let (y, x, after) = (y.to_string(), x.to_string(), (x + 1).to_string());
            vec![Span::between(&y, &y), Span::between(&x, &after)]
        };
        let region = array.region(&boxes.iter().map(spans).collect::<Vec<_>>()).unwrap();
        array.commit(vec![array.stage_delete_region(&region).unwrap()], None).unwrap();
    } else {
        let both: BTreeSet<_> = boxes.iter().flat_map(|(y, x)| [(*y, *x), (*y, *x + 1)]).collect();
        commit_cells(array, &both.into_iter().map(|at| (at, 1)).collect(), None).unwrap();
    }
}

#[test]
fn many_small_boxes_conflict_only_where_they_meet() {
    for (sparse, mine, theirs) in [(false, false, false), (true, false, true), (false, true, false), (true, true, true)]
    {
        for hit in [false, true] {
            let storage = wide(sparse);
            let transaction = begin(&storage);
            let array = transaction.array("/wide").unwrap();
            read_each(&array, &pairs(1));
            write_each(&array, &pairs(1), mine);
            let mut others = pairs(2);
            others.extend(hit.then_some(pairs(1)[1_234]));
            write_each(&opened(&context(), &storage, "/wide"), &others, theirs);
            let outcome = transaction.commit(None).map_err(|e| e.kind());
            let expected = if hit { Err(ErrorKind::Conflict) } else { Ok(3) };
            assert_eq!(outcome, expected, "sparse {sparse}, mine {mine}, theirs {theirs}");
        }
    }
}

#[test]
fn many_small_boxes_read_serializably_conflict_only_where_they_meet() {
    let storage = wide(true);
    for (at, stands) in [((2, 0), true), ((3, 40), true), ((17, 40), false)] {
        let transaction = Transaction::begin_on(&context(), storage.clone(), Isolation::Serializable).unwrap();
        let array = transaction.array("/wide").unwrap();
        read_each(&array, &pairs(1));
        commit_cells(&array, &one(5, 5, 1), None).unwrap();
        commit_cells(&opened(&context(), &storage, "/wide"), &one(at.0, at.1, 1), None).unwrap();
        assert_eq!(transaction.commit(None).is_ok(), stands, "{at:?}");
    }
}

/// Files are looked into for who has read what it wrote; other commits of the process go on meanwhile.
#[test]
fn nobody_waits_for_a_look_into_files() {
    let inner = memory();
    let beside: Arc<Mutex<Option<Transaction>>> = Arc::default();
    let (waiting, (told, came)) = (beside.clone(), mpsc::channel());
    let storage: Arc<dyn Storage> = Arc::new(HookedStorage::new(inner.clone(), move |operation, name: &str| {
        let looks = operation == Operation::Open && name.starts_with("_data/");
        let Some(other) = waiting.lock().unwrap().take_if(|_| looks) else { return };
        let (done, committed) = mpsc::channel();
        std::thread::spawn(move || done.send(other.commit(None).unwrap()));
        told.send(committed.recv_timeout(Duration::from_secs(5))).unwrap();
    }));
    let transaction = begin(&storage);
    // One that was begun from another meets it in one queue.
    let other = transaction.again().unwrap();
    write_cell(&other.array("/dense").unwrap(), 1, 1);
    let array = transaction.array("/sparse").unwrap();
    cells(&array, ((3, 3), (4, 4)));
    write_cell(&array, 3, 4);
    let mut random = crate::support::random::Random(3);
    let large = (0..15_000).map(|n| ((n / 150, n % 150), random.next() as i64)).filter(|(at, _)| *at != (3, 4));
    commit_cells(&opened(&context(), &inner, "/sparse"), &large.collect(), None).unwrap();
    *beside.lock().unwrap() = Some(other);
    let version = transaction.commit(None).unwrap();
    let earlier = came.try_recv().expect("files were looked into").expect("the other commit did not wait");
    assert_eq!((earlier, version), (4, 5));
}
