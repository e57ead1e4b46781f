//! Promise: whatever somebody does, others may commit, merge and vacuum at any moment of it: it comes to its end, or says that
//! what it rested on is gone, and nothing is lost.

use crate::support::copy::{HISTORY, WHOLE, memory};
use crate::support::line::{Cells, create, read, stage, write};
use crate::support::store::{context, open, store_of};
use gridstone::base::{Entropy, ErrorKind, Result};
use gridstone::engine::{
    Array, At, Call, Condition, Isolation, Keep, Strategy, Transaction, VacuumOptions, commit_receipts_on, copy_on,
    create_array_on, move_node_on, verify_on,
};
use gridstone::runtime::SystemEntropy;
use gridstone::schema::Schema;
use gridstone::storage::{HookedStorage, MemoryStorage, Operation, Storage, data_name};
use gridstone_testkit::Dice;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// Where what is done writes; others do not touch these places.
const OWN: i64 = 10_000;

/// What others write over what was done.
const LATER: i64 = 77;

/// As a user has it: files of commits under way are young, and left alone.
fn vacuum_options() -> VacuumOptions {
    VacuumOptions { keep: Keep::Versions(1), safety_us: 3_600_000_000, dry_run: false }
}

/// What others write in `round`: some in a record, some in a file.
fn others(round: i64) -> Cells {
    (0..9_000).map(|x| (x, round)).collect()
}

/// Others write, merge and vacuum; says whether they have written over what was done.
fn overtake(storage: &Arc<dyn Storage>, round: i64) -> bool {
    let array = open(&context(4), storage, "/line", At::Latest).unwrap();
    write(&array, &others(round)).unwrap();
    for x in 0..3 {
        write(&array, &Cells::from([(x, round)])).unwrap();
    }
    // What was committed and seen is written over, and must not come again.
    array.refresh().unwrap();
    let seen = read(&array).unwrap().get(&OWN) == Some(&1);
    if seen {
        write(&array, &Cells::from([(OWN, LATER)])).unwrap();
    }
    array.consolidate(&Strategy::All, 1 << 20, false, &Call::default()).unwrap();
    array.vacuum(&vacuum_options(), &Call::default()).unwrap();
    seen
}

/// A store that others may overtake, and an array of it that was opened before.
struct Scene {
    storage: Arc<dyn Storage>,
    array: Array,
    /// The same storage, where nobody is overtaken.
    plain: Arc<dyn Storage>,
}

impl Scene {
    fn fresh(&self) -> Result<Array> {
        open(&context(4), &self.storage, "/line", At::Latest)
    }
}

/// What was done, the ways in which it may say that it was overtaken, and how it is done.
type Act = (&'static str, &'static [ErrorKind], fn(&Scene) -> Result<()>);

const EXPIRED: &[ErrorKind] = &[ErrorKind::SnapshotExpired];

/// What writes leaves `OWN` as it is told beside it, or as it was.
const ACTS: &[Act] = &[
    ("write", &[], |scene| write(&scene.array, &Cells::from([(OWN, 1)])).map(drop)),
    ("write a file", &[], |scene| write(&scene.array, &(OWN..OWN + 9_000).map(|x| (x, 1)).collect()).map(drop)),
    ("write what was staged", &[], |scene| {
        let staged = stage(&scene.array, &(OWN..OWN + 9_000).map(|x| (x, 1)).collect());
        overtake(&scene.plain, 3);
        scene.array.commit(vec![staged], None).map(drop)
    }),
    ("refresh and read", EXPIRED, |scene| {
        scene.array.refresh()?;
        whole(&read(&scene.array)?);
        Ok(())
    }),
    ("open and read", EXPIRED, |scene| {
        let array = scene.fresh().unwrap();
        whole(&read(&array)?);
        Ok(())
    }),
    ("list fragments", EXPIRED, |scene| scene.fresh().unwrap().fragments().map(drop)),
    ("list versions", EXPIRED, |scene| scene.fresh().unwrap().history(&Call::default()).map(drop)),
    ("delete a box", &[], |scene| {
        let staged = scene.array.stage_delete_box(Some(&[(OWN.to_string(), OWN.to_string())]))?;
        scene.array.commit(vec![staged], None).map(drop)
    }),
    ("delete by condition", &[], |scene| scene.array.delete_where(None, &negative(), None, &Call::default()).map(drop)),
    ("merge", EXPIRED, |scene| {
        scene.array.refresh().unwrap();
        scene.array.consolidate(&Strategy::All, 1 << 20, false, &Call::default()).map(drop)
    }),
    ("vacuum", &[ErrorKind::Conflict], |scene| scene.array.vacuum(&vacuum_options(), &Call::default()).map(drop)),
    ("tag the newest", EXPIRED, |scene| scene.array.tag("t", None, false).map(drop)),
    ("set metadata", &[], |scene| scene.array.set_metadata(vec![("k".into(), Some("1".into()))]).map(drop)),
    ("create an array", &[], |scene| create_small(&scene.storage)),
    ("move an array", &[], |scene| {
        create_small(&scene.plain)?;
        move_node_on(&context(4), scene.storage.clone(), "/small", "/moved", None).map(drop)
    }),
    ("verify", EXPIRED, |scene| {
        let report = verify_on(&context(4), scene.storage.clone(), &Call::default())?;
        assert!(report.damage.is_empty(), "{report:?}");
        Ok(())
    }),
    ("commit a transaction", EXPIRED, |scene| {
        let transaction = Transaction::begin_on(&context(4), scene.storage.clone(), Isolation::Snapshot)?;
        write(&transaction.array("/line")?, &Cells::from([(OWN, 1)]))?;
        transaction.commit(None).map(drop)
    }),
    ("commit a serializable transaction", &[ErrorKind::SnapshotExpired, ErrorKind::Conflict], |scene| {
        let transaction = Transaction::begin_on(&context(4), scene.storage.clone(), Isolation::Serializable)?;
        let inside = transaction.array("/line")?;
        whole(&read(&inside)?);
        write(&inside, &Cells::from([(OWN, 1)]))?;
        // What is staged is seen, whatever was vacuumed since.
        let seen = read(&inside)?;
        assert_eq!(seen.get(&OWN), Some(&1));
        whole(&seen);
        transaction.commit(None).map(drop)
    }),
    ("commit a receipt", EXPIRED, |scene| {
        let receipt = scene.array.receipt(vec![stage(&scene.array, &Cells::from([(OWN, 1)]))])?;
        commit_receipts_on(&context(4), scene.storage.clone(), &[receipt], None).map(drop)
    }),
    ("commit a receipt for a delete", &[ErrorKind::SnapshotExpired, ErrorKind::Conflict], |scene| {
        let receipt = scene.fresh().unwrap().receipt_where(None, &negative(), &Call::default())?;
        commit_receipts_on(&context(4), scene.storage.clone(), &[receipt], None).map(drop)
    }),
    ("copy a version", EXPIRED, |scene| {
        let target = memory();
        copy_on((&context(4), scene.storage.clone()), (&context(4), target.clone()), &WHOLE, &Call::default())?;
        whole(&read(&open(&context(4), &target, "/line", At::Latest)?)?);
        Ok(())
    }),
    ("copy the history", EXPIRED, |scene| {
        let target = memory();
        copy_on((&context(4), scene.storage.clone()), (&context(4), target.clone()), &HISTORY, &Call::default())?;
        whole(&read(&open(&context(4), &target, "/line", At::Latest)?)?);
        Ok(())
    }),
];

fn create_small(storage: &Arc<dyn Storage>) -> Result<()> {
    let schema = r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","9"]}],"attrs":[{"name":"v","dtype":"int8"}]}"#;
    create_array_on(&context(4), storage.clone(), "/small", Schema::from_json(schema)?, false).map(drop)
}

fn negative() -> Condition {
    Condition::parse("v < 0").unwrap()
}

/// A read sees a round of the others whole, but for the cells that each of its later commits has.
fn whole(cells: &Cells) {
    let rounds: BTreeSet<i64> = (10..9_000).map(|x| cells[&x]).collect();
    assert_eq!(rounds.len(), 1, "a round was seen in part");
    let round = rounds.first().copied().unwrap();
    assert!((0..3).all(|x| cells[&x] == round || cells[&x] == round - 1), "{cells:?}");
}

/// What others do.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Others {
    /// They write, merge and vacuum, and keep what is the newest then.
    Overtake,
    /// They vacuum, and keep what is the newest: nothing that anybody needs is gone.
    Vacuum,
}

impl Others {
    fn strike(self, storage: &Arc<dyn Storage>, round: i64) -> bool {
        if self == Self::Overtake {
            return overtake(storage, round);
        }
        let array = open(&context(4), storage, "/line", At::Latest).unwrap();
        array.vacuum(&vacuum_options(), &Call::default()).unwrap();
        false
    }
}

/// Does `act`, overtaken before its operation of number `at`; says whether it was, and whether it came to its end.
fn overtaken(act: &Act, others: Others, at: u64) -> (bool, bool) {
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    create(&context(4), &memory, "/line", false);
    overtake(&memory, 0);
    let first = open(&context(4), &memory, "/line", At::Latest).unwrap();
    for x in [OWN, 12, 11, 12, 11, 12] {
        write(&first, &Cells::from([(x, if x == OWN { -1 } else { 0 })])).unwrap();
    }
    let (operations, rounds, armed) = (Arc::new(AtomicU64::new(1 << 60)), Arc::new(AtomicI64::new(0)), memory.clone());
    let (counted, counting) = (rounds.clone(), operations.clone());
    let seen = Arc::new(AtomicBool::new(false));
    let saw = seen.clone();
    let storage: Arc<dyn Storage> = Arc::new(HookedStorage::new(memory.clone(), move |_, _| {
        if counting.fetch_add(1, Ordering::SeqCst) == at {
            let seen = others.strike(&armed, 2 + counted.fetch_add(1, Ordering::SeqCst));
            saw.store(seen, Ordering::SeqCst);
        }
    }));
    let array = open(&context(4), &storage, "/line", At::Latest).unwrap();
    // What opening it took does not count.
    operations.store(0, Ordering::SeqCst);
    let outcome = act.2(&Scene { storage, array, plain: memory.clone() });
    if let Err(e) = &outcome {
        let allowed = act.1.contains(&e.kind()) && (others == Others::Overtake || act.0 == "vacuum");
        assert!(allowed, "{}, {others:?} before operation {at}: {e}", act.0);
    }
    let struck = rounds.load(Ordering::SeqCst) > 0;
    let newest = open(&context(4), &memory, "/line", At::Latest).unwrap();
    let cells = read(&newest).unwrap();
    whole(&cells);
    assert!(!struck || cells[&10] >= 2 || others == Others::Vacuum, "{}: what others wrote was lost", act.0);
    let own = cells.get(&OWN).copied();
    let gone = ["delete a box", "delete by condition", "commit a receipt for a delete"].contains(&act.0);
    let wrote = !gone && (act.0.starts_with("write") || act.0.starts_with("commit"));
    match (outcome.is_ok(), own) {
        (true, None) => assert!(gone, "{}, overtaken before operation {at}", act.0),
        (true, Some(LATER)) => assert!(wrote && struck, "{}, overtaken before operation {at}", act.0),
        (true, own) => assert_eq!(own, Some(if wrote { 1 } else { -1 }), "{}, overtaken before operation {at}", act.0),
        (false, own) => assert_eq!(own, Some(-1), "{}, overtaken before operation {at}", act.0),
    }
    let came_again = seen.load(Ordering::SeqCst) && own != Some(LATER);
    assert!(!came_again, "{}, overtaken before operation {at}: it came again", act.0);
    assert!(newest.verify(&Call::default()).unwrap().damage.is_empty(), "{}", act.0);
    (struck, outcome.is_ok())
}

fn at_any_moment(others: Others) {
    for act in ACTS {
        let (mut at, mut refused) = (0, 0);
        loop {
            let (struck, done) = overtaken(act, others, at);
            if !struck {
                assert!(done, "{} alone", act.0);
                break;
            }
            (at, refused) = (at + 1, refused + u64::from(!done));
        }
        println!("{}: {at} operations, refused {refused} times", act.0);
        assert!(at > 1, "{}", act.0);
    }
}

#[test]
fn others_overtake_at_any_moment() {
    at_any_moment(Others::Overtake);
}

#[test]
fn others_vacuum_at_any_moment() {
    at_any_moment(Others::Vacuum);
}

/// Others vacuum so often, and a waiting file is so old, that it is condemned, deleted and forgotten. They keep so many versions.
fn forget(storage: &Arc<dyn Storage>, keep: u64) {
    let options = VacuumOptions { keep: Keep::Versions(keep), safety_us: 1, dry_run: false };
    let array = open(&context(64), storage, "/line", At::Latest).unwrap();
    for round in 0..3 {
        write(&array, &Cells::from([(1, round)])).unwrap();
        // A file that nobody names, so that each vacuum has something to condemn, whatever it keeps.
        storage.put(&data_name(SystemEntropy.id()), b"left behind").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
        array.vacuum(&options, &Call::default()).unwrap();
    }
    // What the last one condemned, and nothing older.
    assert!(store_of(storage).latest().unwrap().retained().condemned_data().unwrap().len() <= 1);
}

#[test]
fn a_file_forgotten_while_its_commit_is_under_way_is_a_conflict() {
    let large: Cells = (OWN..OWN + 9_000).map(|x| (x, 1)).collect();
    // With few versions kept the floor passes the commit, with many only the records do.
    for (fold_versions, keep) in [(3, 1), (64, 1), (3, 1_000), (64, 1_000)] {
        let (mut at, mut refused) = (0, 0);
        loop {
            let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
            create(&context(fold_versions), &memory, "/line", false);
            let (operations, struck) = (Arc::new(AtomicU64::new(1 << 60)), Arc::new(AtomicBool::new(false)));
            let (armed, counting, striking) = (memory.clone(), operations.clone(), struck.clone());
            let storage: Arc<dyn Storage> = Arc::new(HookedStorage::new(memory.clone(), move |_, _| {
                if counting.fetch_add(1, Ordering::SeqCst) == at {
                    striking.store(true, Ordering::SeqCst);
                    forget(&armed, keep);
                }
            }));
            let array = open(&context(fold_versions), &storage, "/line", At::Latest).unwrap();
            let staged = stage(&array, &large);
            std::thread::sleep(std::time::Duration::from_millis(2));
            operations.store(0, Ordering::SeqCst);
            let outcome = array.commit(vec![staged], None);
            let newest = open(&context(fold_versions), &memory, "/line", At::Latest).unwrap();
            let damage = newest.verify(&Call::default()).unwrap().damage;
            assert!(damage.is_empty(), "before operation {at}: {damage:?}");
            let cells = read(&newest).unwrap();
            match outcome {
                Ok(_) => assert!(large.iter().all(|(x, v)| cells.get(x) == Some(v)), "before operation {at}"),
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::Conflict, "before operation {at}: {e}");
                    assert!(!cells.contains_key(&OWN), "before operation {at}");
                    refused += 1;
                }
            }
            if !struck.load(Ordering::SeqCst) {
                break;
            }
            at += 1;
        }
        println!("fold after {fold_versions}, {keep} kept: {at} operations, refused {refused} times");
        assert!(at > 2 && refused > 1);
    }
}

/// While a merge writes, others commit and vacuum: they leave the version that it was planned at, so it is not for nothing.
#[test]
fn a_vacuum_does_not_undo_a_merge_under_way() {
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let first = create(&context(4), &memory, "/line", false);
    for x in 0..6 {
        write(&first, &(x..9_000).map(|x| (x, 1)).collect()).unwrap();
    }
    let (armed, struck) = (memory.clone(), Arc::new(AtomicBool::new(false)));
    let striking = struck.clone();
    let storage: Arc<dyn Storage> = Arc::new(HookedStorage::new(memory.clone(), move |operation, _| {
        if operation == Operation::PutIfAbsent && !striking.swap(true, Ordering::SeqCst) {
            let array = open(&context(4), &armed, "/line", At::Latest).unwrap();
            for x in [OWN, OWN + 1, OWN + 2] {
                write(&array, &Cells::from([(x, 2)])).unwrap();
            }
            array.vacuum(&vacuum_options(), &Call::default()).unwrap();
        }
    }));
    let array = open(&context(4), &storage, "/line", At::Latest).unwrap();
    let planned = array.version();
    let report = array.consolidate(&Strategy::All, 1 << 20, false, &Call::default()).unwrap();
    assert!(struck.load(Ordering::SeqCst) && report.overtaken == 0, "{report:?}");
    let newest = open(&context(4), &memory, "/line", At::Latest).unwrap();
    assert!(newest.fragments().unwrap().len() < 6, "{:?}", newest.fragments());
    assert_eq!(read(&newest).unwrap().len(), 9_003);
    newest.vacuum(&vacuum_options(), &Call::default()).unwrap();
    assert!(store_of(&memory).floor().unwrap().unwrap().version > planned, "the merge holds nothing any more");
}

/// Whenever a delete of a dense array, which looks at each version since, is about to commit, others write and vacuum, and keep one version, for thirty times. It is tried sixteen times at most: whoever does
/// not claim the version that he looks at never finds it still there.
#[test]
fn a_delete_comes_to_its_end_however_often_others_vacuum() {
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let first = create(&context(4), &memory, "/grid", false);
    write(&first, &(0..100).map(|x| (x, if x == 50 { 1 } else { -1 })).collect()).unwrap();
    let (struck, armed) = (Arc::new(AtomicI64::new(0)), memory.clone());
    let striking = struck.clone();
    let storage: Arc<dyn Storage> = Arc::new(HookedStorage::new(memory.clone(), move |operation, name| {
        if operation == Operation::PutIfAbsent && name.starts_with("_log/") && striking.load(Ordering::SeqCst) < 30 {
            let round = striking.fetch_add(1, Ordering::SeqCst);
            let array = open(&context(4), &armed, "/grid", At::Latest).unwrap();
            for x in 0..3 {
                write(&array, &Cells::from([(OWN + x, round)])).unwrap();
            }
            array.vacuum(&vacuum_options(), &Call::default()).unwrap();
        }
    }));
    let array = open(&context(4), &storage, "/grid", At::Latest).unwrap();
    array.delete_where(None, &negative(), None, &Call::default()).unwrap();
    assert_eq!(struck.load(Ordering::SeqCst), 30);
    let cells = read(&open(&context(4), &memory, "/grid", At::Latest).unwrap()).unwrap();
    assert_eq!(cells.range(..100).collect::<Vec<_>>(), [(&50, &1)]);
    assert_eq!(cells.range(OWN..).collect::<Vec<_>>(), [(&OWN, &29), (&(OWN + 1), &29), (&(OWN + 2), &29)]);
}

/// Others write and vacuum before every fourth operation or so.
#[test]
fn an_array_opens_however_often_others_vacuum() {
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    write(&create(&context(4), &memory, "/line", false), &Cells::from([(1, 1)])).unwrap();
    let (struck, armed) = (Arc::new(AtomicI64::new(0)), memory.clone());
    let (striking, dice) = (struck.clone(), std::sync::Mutex::new(Dice::new(5)));
    let storage: Arc<dyn Storage> = Arc::new(HookedStorage::new(memory, move |_, _| {
        if dice.lock().unwrap().chance(25) {
            let round = striking.fetch_add(1, Ordering::SeqCst);
            let array = open(&context(4), &armed, "/line", At::Latest).unwrap();
            for x in 0..3 {
                write(&array, &Cells::from([(OWN + x, round)])).unwrap();
            }
            array.vacuum(&vacuum_options(), &Call::default()).unwrap();
        }
    }));
    for _ in 0..50 {
        open(&context(4), &storage, "/line", At::Latest).unwrap();
    }
    assert!(struck.load(Ordering::SeqCst) > 50);
}
