//! Whatever kills a writer, and whenever: what was acknowledged is there, nothing is there in part, and the store goes
//! on working.
//!
//! Twice: processes killed at random moments on a real file system, and faults at every single storage operation of
//! every kind of write, in memory and in a folder.

use crate::support::child::{Child, Folder, say};
use crate::support::random::Random;
use crate::support::writer::{Kind, Model, Place, Write, Writer, verify, version_of};
use gridstone::base::{ErrorKind, limits::FOLD_VERSIONS};
use gridstone::storage::{
    Durability, Fault, FaultPlan, FaultyStorage, HookedStorage, LocalStorage, MemoryStorage, Operation, Storage,
    log_name,
};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn local(folder: &Path) -> Arc<dyn Storage> {
    Arc::new(LocalStorage::new(folder, Durability::Full).unwrap())
}

/// The killed process: goes on where the store is, and says every version once it is acknowledged.
pub(crate) fn write_for_ever(store: &Path) {
    let storage = local(store);
    let mut version = version_of(&storage);
    let mut writer = Writer::open(&storage);
    say("open", version);
    loop {
        let made = writer.commit(&Write::of(version + 1)).unwrap();
        assert_eq!(made, version + 1, "this process is the only writer");
        say("version", made);
        version = made;
    }
}

/// Runs the writer, kills it at a moment that `random` chooses, and gives the last version that it said, or `version`.
fn kill_a_writer(store: &Path, random: &mut Random, version: u64) -> u64 {
    let mut child = Child::start("write-for-ever", store, 0);
    let delay_us = match random.below(5) {
        0 => random.below(1_000),
        1 => random.below(20_000),
        _ => {
            assert_eq!(child.hear("open"), Some(version), "the version that the writer finds");
            random.below(60_000)
        }
    };
    std::thread::sleep(Duration::from_micros(delay_us));
    child.kill();
    std::iter::from_fn(|| child.hear("version")).last().unwrap_or(version)
}

/// Three short lives for the first versions of a store, and a long one with several folds.
#[test]
fn a_hundred_kills_lose_nothing_and_leave_nothing_in_part() {
    let seed = std::env::var("GRIDSTONE_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(2_016);
    let mut random = Random(seed);
    for (life, kills) in [5, 5, 10, 80].into_iter().enumerate() {
        let folder = Folder::new(&format!("kills-{life}"));
        let storage = local(&folder.0);
        let mut model = Model::default();
        for kill in 1..=kills {
            let what = format!("GRIDSTONE_TEST_SEED={seed}, life {life}, kill {kill}");
            let said = kill_a_writer(&folder.0, &mut random, model.version);
            let found = version_of(&storage);
            assert!(found == said || found == said + 1, "{what}: version {said} was said, {found} is there");
            model.advance(found);
            model.check(&storage, &what);
            let next = Writer::open(&storage).commit(&Write::of(found + 1));
            assert_eq!(next.unwrap(), found + 1, "{what}: the commit afterwards");
            model.advance(found + 1);
        }
        model.check(&storage, &format!("GRIDSTONE_TEST_SEED={seed}, life {life}, after the last kill"));
        verify(&storage);
        println!("life {life}: {kills} kills, {} versions", model.version);
        let folded = !storage.list("_manifest").unwrap().is_empty();
        assert_eq!(folded, model.version > FOLD_VERSIONS, "folds begin after {FOLD_VERSIONS} versions");
        assert!(life < 3 || folded, "the writers were too slow to be killed around a fold");
    }
}

/// A store at a version of the known writer, to be copied before each fault.
struct Start {
    storage: Arc<dyn Storage>,
    model: Model,
}

impl Start {
    fn at(version: u64) -> Self {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let mut writer = Writer::open(&storage);
        for next in 1..=version {
            assert_eq!(writer.commit(&Write::of(next)).unwrap(), next);
        }
        let mut model = Model::default();
        model.advance(version);
        Self { storage, model }
    }

    fn copy_to(&self, storage: Arc<dyn Storage>) -> Arc<dyn Storage> {
        if self.model.version > 0 {
            storage.prepare().unwrap();
        }
        for name in ["_log", "_data", "_manifest"].iter().flat_map(|folder| self.storage.list(folder).unwrap()) {
            storage.put(&name, &self.storage.read_all(&name).unwrap()).unwrap();
        }
        storage
    }
}

/// A commit that is going to be disturbed.
struct Case<'a> {
    start: &'a Start,
    write: Write,
    /// Whether another writer takes the version that this one is after.
    beaten: bool,
}

impl Case<'_> {
    /// The operations of the commit that are worth a fault, by number from 1. Of a stretch that repeats itself (the
    /// writes of a file; a fold's reading of records and writing of a pack) the ends are: in between nothing becomes
    /// visible.
    fn operations(&self) -> Vec<(u64, Operation)> {
        let (_, _, mut writer, plan) = self.ready(Arc::new(MemoryStorage::new()));
        writer.commit(&self.write).unwrap();
        let journal = plan.journal();
        let alike = |a: usize, b: usize| journal.get(a).is_some() && journal.get(a) == journal.get(b);
        let inside = |n: usize| n >= 6 && (n - 6..n).all(|m| alike(m, m + 3));
        (1..).zip(journal.iter().copied()).filter(|(n, _)| !inside(*n as usize - 1)).collect()
    }

    /// A copy of the start in `storage`, what it holds, and a writer about to commit, whose operations the plan counts
    /// from here.
    fn ready(&self, storage: Arc<dyn Storage>) -> (Arc<dyn Storage>, Model, Writer, Arc<FaultPlan>) {
        let storage = self.start.copy_to(storage);
        let mut model = self.start.model.clone();
        let plan = FaultPlan::new();
        let faulty: Arc<dyn Storage> = Arc::new(FaultyStorage::new(storage.clone(), plan.clone()));
        let writer = Writer::open(&faulty);
        if self.beaten {
            let other = Write::new(Kind::FewCells(Place::Sparse), 77);
            Writer::open(&storage).commit(&other).unwrap();
            model.apply(&other);
        }
        plan.clear();
        (storage, model, writer, plan)
    }

    /// Disturbs the n-th operation of the commit on a copy of the start in `storage`, and checks what that led to.
    fn strike(&self, storage: Arc<dyn Storage>, fault: Fault, n: u64) {
        let what = format!("{fault:?} at operation {n} of {}", self.name());
        let (storage, mut model, mut writer, plan) = self.ready(storage);
        let data_files = storage.list("_data").unwrap();
        plan.fail_nth(n, fault);
        let outcome = writer.commit(&self.write).map_err(|e| e.kind());
        assert!(plan.struck(), "{what}: the commit took fewer operations this time");
        let before = model.version;
        let found = version_of(&storage);
        match outcome {
            Ok(version) => assert_eq!((version, found), (before + 1, before + 1), "{what}: said to be committed"),
            Err(ErrorKind::CommitUnknown) => assert!(found == before || found == before + 1, "{what}: version {found}"),
            Err(kind) => {
                assert_eq!(found, before, "{what}: said not to be committed ({kind:?})");
                // The dead remove nothing, nor is a file that was torn one's own; and folds leave packs.
                if matches!(fault, Fault::Error | Fault::Full) && before < FOLD_VERSIONS {
                    assert_eq!(storage.list("_data").unwrap(), data_files, "{what}: a file was left behind");
                }
            }
        }
        if found > before {
            model.apply(&self.write);
        }
        model.check(&storage, &what);
        if fault == Fault::Kill {
            writer = Writer::open(&storage);
        }
        plan.clear();
        self.go_on(writer, model, &storage, &what);
    }

    /// The write again if it was not committed, else another one; by the same handle where it still lives.
    fn go_on(&self, mut writer: Writer, mut model: Model, storage: &Arc<dyn Storage>, what: &str) {
        let created = matches!(self.write, Write::Create(_)) && model.version > self.start.model.version;
        let next = if created {
            Write::Note(Place::Dense, "after".to_owned(), Some("1".to_owned()))
        } else {
            self.write.clone()
        };
        if created {
            writer = Writer::open(storage);
        }
        let version = writer.commit(&next).unwrap_or_else(|e| panic!("{what}, then a commit: {e}"));
        model.apply(&next);
        assert_eq!(version, model.version, "{what}, then a commit");
        model.check(storage, &format!("{what}, then a commit"));
    }

    fn name(&self) -> String {
        let write = format!("{:?}", self.write);
        let write: String = write.chars().take(40).collect();
        format!("{write}… after version {}{}", self.start.model.version, if self.beaten { ", beaten" } else { "" })
    }
}

/// Every kind of write, plain and beaten to its version, and those that make an array, that fold and that fold again.
fn for_each_case(mut f: impl FnMut(&Case<'_>)) {
    for (version, place) in [(0, Place::Dense), (1, Place::Sparse)] {
        f(&Case { start: &Start::at(version), write: Write::Create(place), beaten: false });
    }
    // The next version is the 8th, with which the hint is written.
    let start = Start::at(7);
    for kind in Kind::ALL {
        for beaten in [false, true] {
            f(&Case { start: &start, write: Write::new(kind, 1_000), beaten });
        }
    }
    for version in [FOLD_VERSIONS, 2 * FOLD_VERSIONS] {
        f(&Case { start: &Start::at(version), write: Write::new(Kind::FewCells(Place::Sparse), 1_001), beaten: false });
    }
}

/// How an operation can fail. What needs no space is not told by a full device, what writes nothing is not torn.
fn faults(operation: Operation) -> &'static [Fault] {
    match operation {
        Operation::Read | Operation::ReadAll | Operation::Open | Operation::Exists | Operation::List => {
            &[Fault::Kill, Fault::Error]
        }
        _ => &[Fault::Kill, Fault::Error, Fault::ErrorAfter, Fault::Torn, Fault::Full],
    }
}

#[test]
fn every_fault_at_every_operation_of_every_write_in_memory() {
    for_each_case(|case| {
        for (n, operation) in case.operations() {
            for fault in faults(operation) {
                case.strike(Arc::new(MemoryStorage::new()), *fault, n);
            }
        }
    });
}

#[test]
fn death_before_every_operation_of_every_write_in_a_folder() {
    let folder = Folder::new("deaths");
    for_each_case(|case| {
        for (n, _) in case.operations() {
            let store = folder.0.join("store");
            case.strike(crate::support::scratch::unsynced(&store), Fault::Kill, n);
            std::fs::remove_dir_all(store).unwrap();
        }
    });
}

/// What reaches the storage, in order.
type Journal = Arc<Mutex<Vec<(Operation, String)>>>;

/// A writer on a folder after `version`, and the journal of what it does from here.
fn watched(folder: &Path, version: u64) -> (Writer, Journal) {
    let storage = Start::at(version).copy_to(local(folder));
    let journal = Journal::default();
    let log = journal.clone();
    let note = move |operation, name: &str| log.lock().unwrap().push((operation, name.to_owned()));
    let hooked: Arc<dyn Storage> = Arc::new(HookedStorage::new(storage, note));
    let writer = Writer::open(&hooked);
    journal.lock().unwrap().clear();
    (writer, journal)
}

/// The changing operations since the last call; folders stand for names made at random, and a run of writes for one.
fn changes(journal: &Journal) -> Vec<(Operation, String)> {
    let mut found = std::mem::take(&mut *journal.lock().unwrap());
    found.retain(|(operation, _)| faults(*operation) != faults(Operation::Read));
    for (_, name) in found.iter_mut().filter(|(_, name)| !name.starts_with("_log")) {
        name.truncate(name.find('/').unwrap());
    }
    found.dedup_by(|a, b| a == b && a.0 == Operation::Write);
    found
}

/// What survives a power cut is decided by the order of fsyncs. They happen inside `finish` and `put_if_absent`, which
/// return after them; so the order of these calls is the order of durability, as far as a test can see it.
#[test]
fn what_a_record_names_is_durable_before_the_record() {
    let folder = Folder::new("order");
    let file = |folder: &str| [Operation::Create, Operation::Write, Operation::Finish].map(|o| (o, folder.to_owned()));
    let record = |version| [(Operation::PutIfAbsent, log_name(version))];
    let small = Write::new(Kind::FewCells(Place::Sparse), 1);

    // A small commit is one object; the hint comes after it, with every eighth.
    let (mut writer, journal) = watched(&folder.0.join("small"), 6);
    writer.commit(&small).unwrap();
    assert_eq!(changes(&journal), record(7));
    writer.commit(&small).unwrap();
    let hint = [(Operation::PutHint, "_log/latest".to_owned())];
    assert_eq!(changes(&journal), [record(8), hint].concat());

    // A large one finishes its data file first.
    for kind in [Kind::WholeBox, Kind::ManyCells] {
        let (mut writer, journal) = watched(&folder.0.join(format!("{kind:?}")), 8);
        writer.commit(&Write::new(kind, 1)).unwrap();
        assert_eq!(changes(&journal), [file("_data").as_slice(), &record(9)].concat(), "{kind:?}");
    }

    // One that folds: the pack, a page for each array and the root, then the record that names the root.
    let (mut writer, journal) = watched(&folder.0.join("fold"), FOLD_VERSIONS);
    writer.commit(&small).unwrap();
    // What comes after it nothing rests on: a sorted copy of the fragments of each array.
    let files = ["_data", "_manifest", "_manifest", "_manifest"].map(file).concat();
    assert_eq!(
        changes(&journal),
        [files.as_slice(), &record(FOLD_VERSIONS + 1), &file("_data"), &file("_data")].concat()
    );
}

/// A reader is no danger to anybody: opening and reading change nothing.
#[test]
fn reading_changes_nothing() {
    let start = Start::at(2 * FOLD_VERSIONS + 5);
    let changed = Arc::new(Mutex::new(Vec::new()));
    let log = changed.clone();
    let storage: Arc<dyn Storage> =
        Arc::new(HookedStorage::new(start.storage.clone(), move |operation, name: &str| {
            log.lock().unwrap().push((operation, name.to_owned()));
        }));
    start.model.check(&storage, "through a hook");
    verify(&storage);
    assert!(!changed.lock().unwrap().is_empty());
    assert_eq!(changes(&changed), []);
}
