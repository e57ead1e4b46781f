//! Promise: a vacuum forgets what it was told to forget and nothing else. Every version that is kept reads as before, every
//! other says that it has expired, whoever else is at work and wherever the vacuum is stopped.

use crate::support::columns::{bytes_of, numbers, view};
use crate::support::line::{Cells, SIDE, create, read, stage, write};
use crate::support::random::Random;
use crate::support::store::{context, nothing_is_left, open, options, store_of, vacuum};
use gridstone::base::{ErrorKind, NeverCancel, Result, Silent};
use gridstone::engine::{Array, At, Call, Keep, ReadOrder, Strategy, VacuumOptions, VacuumReport};
use gridstone::runtime::{SystemClock, SystemEntropy};
use gridstone::schema::Order;
use gridstone::storage::{CountingStorage, Fault, FaultPlan, FaultyStorage, MemoryStorage, Operation, Storage};
use gridstone::store::Store;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A store with a history, and what every version of it holds.
struct World {
    storage: Arc<dyn Storage>,
    fold_versions: u64,
    arrays: BTreeMap<&'static str, Array>,
    now: BTreeMap<&'static str, Cells>,
    past: BTreeMap<u64, BTreeMap<&'static str, Cells>>,
    random: Random,
}

impl World {
    fn new(seed: u64, fold_versions: u64) -> Self {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let context = context(fold_versions);
        let mut world = Self {
            arrays: ["/line", "/grid"].map(|path| (path, create(&context, &storage, path, false))).into(),
            now: [("/line", Cells::new()), ("/grid", Cells::new())].into(),
            past: BTreeMap::new(),
            random: Random(seed),
            fold_versions,
            storage,
        };
        world.note();
        world
    }

    /// Notes what the versions hold that came to be since the last call.
    fn note(&mut self) {
        let newest = store_of(&self.storage).latest().unwrap().version();
        let from = self.past.last_key_value().map_or(newest, |(v, _)| v + 1);
        self.past.extend((from..=newest).map(|version| (version, self.now.clone())));
    }

    fn cells(&mut self, count: u64) -> Cells {
        (0..count).map(|_| (self.random.below(SIDE as u64) as i64, (self.random.next() | 1) as i64)).collect()
    }

    fn step(&mut self) {
        let path = if self.random.below(3) == 0 { "/grid" } else { "/line" };
        let array = self.arrays[path].clone();
        match self.random.below(12) {
            0 => drop(array.consolidate(&Strategy::All, 1 << 20, false, &Call::default()).unwrap()),
            1 => drop(array.consolidate(&Strategy::Tiered, 1 << 20, false, &Call::default()).unwrap()),
            2 => {
                let gone: Vec<i64> = self.now[path].keys().copied().step_by(3).collect();
                let staged = array.stage_delete(&[view(&bytes_of(gone.iter().copied()))], &Call::default()).unwrap();
                array.commit(vec![staged], None).unwrap();
                self.now.get_mut(path).unwrap().retain(|x, _| !gone.contains(x));
            }
            3 => {
                let cells = self.cells(9_000);
                write(&array, &cells).unwrap();
                self.now.get_mut(path).unwrap().extend(cells);
            }
            4 if path == "/grid" => {
                let values: Vec<i64> = (0..SIDE).map(|_| (self.random.next() | 1) as i64).collect();
                let bytes = bytes_of(values.iter().copied());
                let data = vec![("v".to_owned(), view(&bytes))];
                array
                    .commit(vec![array.stage_dense(None, &data, Order::Row, &Call::default()).unwrap()], None)
                    .unwrap();
                self.now.get_mut(path).unwrap().extend((0..SIDE).zip(values));
            }
            5 if self.random.below(4) == 0 => {
                let made = create(&context(self.fold_versions), &self.storage, path, true);
                self.arrays.insert(path, made);
                self.now.insert(path, Cells::new());
            }
            6 => {
                let newest = *self.past.last_key_value().unwrap().0;
                let floor = self.floor();
                let version = floor + self.random.below(newest - floor + 1);
                let name = format!("tag {}", self.random.below(3));
                if self.random.below(2) == 0 || array.untag(&name).is_err() {
                    array.tag(&name, Some(version), true).unwrap();
                }
            }
            7 => array.set_metadata(vec![("k".to_owned(), Some("1".to_owned()))]).map(drop).unwrap(),
            _ => {
                let count = 1 + self.random.below(30);
                let cells = self.cells(count);
                write(&array, &cells).unwrap();
                self.now.get_mut(path).unwrap().extend(cells);
            }
        }
        self.note();
    }

    fn floor(&self) -> u64 {
        store_of(&self.storage).floor().unwrap().map_or(1, |f| f.version)
    }

    /// The least version that a tag keeps, or `asked`.
    fn least(&self, asked: u64) -> u64 {
        let latest = store_of(&self.storage).latest().unwrap();
        latest.retained().tags().unwrap().values().copied().fold(asked, u64::min)
    }

    /// Every version from `kept` on reads as it did; of those below, each has expired or reads as it did.
    fn check(&self, kept: u64, what: &str) {
        let (context, floor) = (context(self.fold_versions), self.floor());
        assert!(floor <= kept, "{what}: floor {floor}, versions from {kept} on are kept");
        for (version, expected) in &self.past {
            for path in ["/line", "/grid"] {
                let found = open(&context, &self.storage, path, At::Version(*version)).and_then(|array| read(&array));
                match found {
                    Ok(found) => {
                        assert!(found == expected[path], "{what}: {path} in version {version} reads otherwise")
                    }
                    Err(e) => {
                        assert!(
                            *version < floor,
                            "{what}: {path} in version {version}, which is kept from {floor}: {e}"
                        );
                        assert_eq!(e.kind(), ErrorKind::SnapshotExpired, "{what}: {e}");
                    }
                }
            }
        }
    }

    fn check_files(&self, what: &str) {
        nothing_is_left(&self.storage, what);
    }

    fn copy(&self) -> Arc<dyn Storage> {
        let copy: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        for name in ["_log", "_data", "_manifest", "_lease"].iter().flat_map(|f| self.storage.list(f).unwrap()) {
            copy.put(&name, &self.storage.read_all(&name).unwrap()).unwrap();
        }
        copy
    }

    /// The same world in another storage.
    fn on(&self, storage: Arc<dyn Storage>) -> Self {
        let context = context(self.fold_versions);
        let arrays = ["/line", "/grid"].map(|path| (path, open(&context, &storage, path, At::Latest).unwrap())).into();
        let (now, past) = (self.now.clone(), self.past.clone());
        Self { storage, fold_versions: self.fold_versions, arrays, now, past, random: Random(7) }
    }
}

fn bytes_in(storage: &Arc<dyn Storage>) -> u64 {
    let mut bytes = 0;
    for folder in ["_log", "_data", "_manifest"] {
        storage.survey(folder, &mut |listed| bytes += listed.bytes).unwrap();
    }
    bytes
}

#[test]
fn random_histories_keep_what_they_are_told_to_keep() {
    for seed in 0..12 {
        let mut world = World::new(seed, [2, 3, 7, 64][seed as usize % 4]);
        for round in 0..4 {
            for _ in 0..(5 + world.random.below(25)) {
                world.step();
            }
            let (newest, count) = (*world.past.last_key_value().unwrap().0, 1 + world.random.below(20));
            let asked = world.least(newest.saturating_sub(count - 1).max(1));
            let before = bytes_in(&world.storage);
            let report = vacuum(&world.arrays["/line"], Keep::Versions(count)).unwrap();
            let what = format!("seed {seed}, round {round}, {count} versions of {newest}: {report:?}");
            // Without what newer fragments hide, the version that stays alone is another one with the same cells.
            let asked = if count == 1 && report.hidden > 0 { world.least(report.newest) } else { asked };
            world.note();
            assert!(report.oldest <= asked.max(report.oldest_before), "{what}");
            assert_eq!(report.oldest, world.floor(), "{what}");
            world.check(asked.max(report.oldest_before), &what);
            world.check_files(&what);
            // What lay in records below the floor and is still wanted lies in a pack now; a root and pages were written.
            let freed = report.data.bytes + report.manifest.bytes;
            let after = bytes_in(&world.storage);
            assert!(after + freed <= before + before / 4 + (64 << 10), "{what}: {before} bytes before, {after} after");
            let again = vacuum(&world.arrays["/grid"], Keep::Versions(count)).unwrap();
            let nothing = (0, 0, 0, None);
            let done = (again.data.objects, again.manifest.objects, again.records.objects, again.committed);
            assert_eq!(done, nothing, "{what}; then at once: {again:?}");
            world.arrays.values().for_each(|array| assert!(array.refresh().is_ok()));
        }
    }
}

#[test]
fn space_is_freed_and_a_dry_run_says_how_much() {
    let mut world = World::new(5, 64);
    for _ in 0..30 {
        let cells: Cells = (0..9_000).map(|x| (x, (world.random.next() | 1) as i64)).collect();
        write(&world.arrays["/line"], &cells).unwrap();
        world.now.insert("/line", cells);
        world.note();
    }
    world.arrays["/line"].consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
    world.note();
    let before = bytes_in(&world.storage);
    let plan = VacuumOptions { dry_run: true, ..options(Keep::Versions(1)) };
    let planned = world.arrays["/line"].vacuum(&plan, &Call::default()).unwrap();
    assert_eq!(bytes_in(&world.storage), before, "a dry run changes nothing");
    assert_eq!((planned.data.objects, planned.committed, planned.records.objects), (30, None, planned.newest - 1));
    let done = vacuum(&world.arrays["/line"], Keep::Versions(1)).unwrap();
    assert_eq!((done.data, done.records, done.oldest), (planned.data, planned.records, planned.newest));
    let after = bytes_in(&world.storage);
    assert!(before > 30 * 140_000 && after < 200_000, "{before} bytes before, {after} after");
    world.check(planned.newest, "all but the newest");
    world.check_files("all but the newest");
    assert_eq!(vacuum(&world.arrays["/line"], Keep::Versions(0)).unwrap_err().kind(), ErrorKind::Input);
}

/// A world worth a vacuum: files that go, pages that go and that stay, and a staged file that nobody committed.
fn dusty() -> World {
    let mut world = World::new(3, 5);
    for number in 0..10 {
        let cells = if number < 3 { large(number) } else { world.cells(20) };
        write(&world.arrays["/line"], &cells).unwrap();
        world.now.get_mut("/line").unwrap().extend(cells);
        world.note();
        if number == 4 {
            world.arrays["/line"].consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
            world.note();
        }
    }
    world.storage.put("_data/00000000000000000000000000000001.frag", b"orphan").unwrap();
    world
}

fn faults_of(operation: Operation) -> &'static [Fault] {
    use Operation::{Exists, List, Open, Put, Read, ReadAll, Survey};
    match operation {
        Read | ReadAll | Open | Exists | List | Survey => &[Fault::Kill, Fault::Error],
        // The floor is replaced in one step.
        Put => &[Fault::Kill, Fault::Error, Fault::ErrorAfter, Fault::Full],
        _ => &[Fault::Kill, Fault::Error, Fault::ErrorAfter, Fault::Torn, Fault::Full],
    }
}

/// At every operation of a vacuum: whatever happens there, the store opens, kept versions are whole, and the next vacuum
/// finishes the work.
#[test]
fn a_vacuum_may_stop_or_die_at_every_operation() {
    let world = dusty();
    let keep = Keep::Versions(4);
    let run = |storage: Arc<dyn Storage>| -> Result<VacuumReport> {
        vacuum(&open(&context(5), &storage, "/line", At::Latest)?, keep)
    };
    let plan = FaultPlan::new();
    let healthy = world.on(world.copy());
    let report = run(Arc::new(FaultyStorage::new(healthy.storage.clone(), plan.clone()))).unwrap();
    let kept = report.oldest;
    let journal = plan.journal();
    assert!(report.data.objects > 1 && report.manifest.objects > 1 && report.records.objects > 5, "{report:?}");
    let mut struck = 0;
    for (n, operation) in (1..).zip(&journal) {
        for fault in faults_of(*operation) {
            let what = format!("{fault:?} at operation {n} of {}, {operation:?}", journal.len());
            let mut hurt = world.on(world.copy());
            let plan = FaultPlan::new();
            plan.fail_nth(n, *fault);
            let outcome = run(Arc::new(FaultyStorage::new(hurt.storage.clone(), plan.clone())));
            assert!(plan.struck(), "{what}");
            struck += 1;
            hurt.note();
            hurt.check(kept, &what);
            let next = run(hurt.storage.clone());
            let next = next.unwrap_or_else(|e| panic!("{what}, which gave {outcome:?}; then a vacuum: {e}"));
            hurt.note();
            assert!(next.oldest == kept && hurt.floor() == kept, "{what}: {next:?}");
            hurt.check(kept, &format!("{what}, then a vacuum"));
            hurt.check_files(&format!("{what}, then a vacuum"));
            write(&hurt.arrays["/line"], &[(1, 1)].into()).unwrap_or_else(|e| panic!("{what}, then a write: {e}"));
        }
    }
    println!("{struck} faults at {} operations", journal.len());
}

/// A writer that has prepared a commit sleeps through the vacuum, which passes its version.
#[test]
fn a_writer_that_slept_through_a_vacuum_commits_at_the_end() {
    for fold_versions in [3, 64] {
        let mut world = World::new(11, fold_versions);
        let asleep = open(&context(fold_versions), &world.storage, "/line", At::Latest).unwrap();
        let staged = stage(&asleep, &[(7, 77)].into());
        for _ in 0..20 {
            world.step();
        }
        let awake = world.arrays["/line"].clone();
        awake.refresh().unwrap();
        vacuum(&awake, Keep::Versions(1)).unwrap();
        world.note();
        if awake.id() == asleep.id() {
            let version = asleep.commit(vec![staged], None).unwrap();
            world.now.get_mut("/line").unwrap().insert(7, 77);
            world.note();
            assert_eq!(world.past.last_key_value().unwrap().0, &version);
        }
        world.check(world.floor(), "after the sleeper's commit");
        world.check_files("after the sleeper's commit");
    }
}

fn large(seed: i64) -> Cells {
    (0..9_000).map(|x| (x, x * 31 + seed)).collect()
}

/// A data file that waits for its commit: young, it is left alone; old, it is condemned, and the commit is refused, also after
/// the state has forgotten the file.
#[test]
fn a_file_condemned_before_its_commit_is_a_conflict() {
    let world = World::new(12, 64);
    let array = &world.arrays["/line"];
    for _ in 0..3 {
        write(array, &[(1, 1)].into()).unwrap();
    }
    let staged = stage(array, &large(1));
    let day = VacuumOptions { safety_us: 86_400_000_000, ..options(Keep::Versions(1)) };
    let report = array.vacuum(&day, &Call::default()).unwrap();
    assert_eq!((report.young.objects, report.data.objects), (1, 0));
    array.commit(vec![staged], None).unwrap();

    for forgotten in [false, true] {
        let late = open(&context(64), &world.storage, "/line", At::Latest).unwrap();
        let staged = stage(&late, &large(2));
        vacuum(array, Keep::Versions(1)).unwrap();
        if forgotten {
            write(array, &[(2, 2)].into()).unwrap();
            vacuum(array, Keep::Versions(1)).unwrap();
            write(array, &[(2, 3)].into()).unwrap();
            vacuum(array, Keep::Versions(1)).unwrap();
            let state = store_of(&world.storage).latest().unwrap();
            assert!(state.retained().condemned_data().unwrap().is_empty(), "{:?}", state.retained());
        }
        let before = store_of(&world.storage).latest().unwrap().version();
        let error = late.commit(vec![staged], None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert!(error.message().contains("vacuum"), "{error}");
        assert_eq!(store_of(&world.storage).latest().unwrap().version(), before);
        late.refresh().unwrap();
        write(&late, &large(2)).unwrap();
    }
}

/// Versions between the floor and the vacuum's own stay readable by handles that were opened before it, although the records
/// and pages that these refer to are gone.
#[test]
fn handles_opened_before_the_vacuum_go_on_reading_kept_versions() {
    for fold_versions in [2, 4, 64] {
        let mut world = World::new(13, fold_versions);
        for _ in 0..30 {
            world.step();
        }
        let newest = *world.past.last_key_value().unwrap().0;
        let handle = |version| open(&context(fold_versions), &world.storage, "/line", At::Version(version)).unwrap();
        let handles: Vec<(u64, Array)> = (newest - 20..=newest).map(|version| (version, handle(version))).collect();
        let mut writer = open(&context(fold_versions), &world.storage, "/line", At::Latest).unwrap();
        let scans: Vec<_> = handles
            .iter()
            .map(|(v, array)| (*v, array.scan(None, None, ReadOrder::Any, 4_000, &Call::default()).unwrap()))
            .collect();
        let report = vacuum(&world.arrays["/line"], Keep::Versions(6)).unwrap();
        for (version, array) in &handles {
            let found = read(array);
            match found {
                Ok(found) => assert!(found == world.past[version]["/line"], "version {version} reads otherwise"),
                Err(e) => assert!(*version < report.oldest && e.kind() == ErrorKind::SnapshotExpired, "{version}: {e}"),
            }
            if *version >= report.oldest {
                assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
                assert_eq!(array.fragments().unwrap().is_empty(), world.past[version]["/line"].is_empty());
            }
        }
        for (version, mut scan) in scans {
            let mut found = Cells::new();
            let outcome = loop {
                match scan.next_batch() {
                    Ok(Some(cells)) => found.extend(numbers(&cells.dims[0]).into_iter().zip(numbers(&cells.attrs[0]))),
                    Ok(None) => break Ok(()),
                    Err(e) => break Err(e),
                }
            };
            match outcome {
                Ok(()) => assert!(found == world.past[&version]["/line"], "version {version} scans otherwise"),
                Err(e) => assert!(version < report.oldest && e.kind() == ErrorKind::SnapshotExpired, "{version}: {e}"),
            }
        }
        world.note();
        // A writer from before it merges, commits large files and folds.
        writer.consolidate(&Strategy::All, 1 << 20, false, &Call::default()).unwrap();
        writer = writer.clone();
        let cells = large(9);
        write(&writer, &cells).unwrap();
        world.note();
        let now = read(&open(&context(4), &world.storage, "/line", At::Latest).unwrap()).unwrap();
        assert!(cells.iter().all(|(x, v)| now.get(x) == Some(v)));
        vacuum(&writer, Keep::Versions(1)).unwrap();
        world.check_files("at the end");
    }
}

/// What a vacuum reads is bounded by the records of the versions and the manifest objects, not by fragments or their bytes.
#[test]
fn a_vacuum_reads_records_and_manifest_objects_once_and_no_data() {
    let world = World::new(14, 16);
    for number in 0..200 {
        write(&world.arrays["/line"], &[(number, number + 1)].into()).unwrap();
    }
    for seed in 0..5 {
        write(&world.arrays["/line"], &large(seed)).unwrap();
    }
    let store = store_of(&world.storage);
    let (newest, manifest) = (store.latest().unwrap().version(), world.storage.list("_manifest").unwrap().len() as u64);
    let counted = Arc::new(CountingStorage::new(world.storage.clone()));
    let storage: Arc<dyn Storage> = counted.clone();
    let store = Store::new(storage, Arc::new(SystemClock), Arc::new(SystemEntropy)).with_fold_versions(16);
    gridstone::maintain::vacuum(&store, &options(Keep::Versions(50)), &NeverCancel, &Silent).unwrap();
    let counts = counted.snapshot();
    let reads = counts.count(Operation::ReadAll);
    assert!(
        reads < newest + 2 * manifest + 120,
        "{reads} objects read; {newest} versions, {manifest} manifest objects"
    );
    let data: u64 = counts.reads.iter().filter(|(name, _)| name.starts_with("_data")).map(|(_, n)| n).sum();
    assert!(data <= 16, "{data} reads of data files: only those just moved out of the log are read back");
}
