//! Whatever a power cut leaves of what was not yet made durable, the store is whole, holds all that was acknowledged,
//! and goes on working.
//!
//! Each script of the [`crate::support::life`] is lived on a folder whose changing calls are recorded below all logic of the engine. For one prefix
//! of the record in four, and for each with `GRIDSTONE_TEST_DEEP`, the folder is rebuilt as a power cut may leave it (see [`disk`]), several times, and checked.
//! The harness is tried itself: records in which one kind of fsync is left out, or comes too late, must be found
//! wanting.

mod disk;
mod trace;

use crate::format::{older, vectors};
use crate::support::child::Folder;
use crate::support::life::alternating::Alternating;
use crate::support::life::script::{Ground, Life, Script, is_tried, seed};
use crate::support::life::{check, scripts};
use crate::support::scratch::unsynced;
use crate::support::{line, store};
use disk::{Cut, Disk, Image};
use gridstone::base::ErrorKind;
use gridstone::engine::{Call, RepairOptions, repair_on, upgrade_on, verify_on};
use gridstone::storage::{Durability, LocalStorage, Storage};
use gridstone_testkit::Dice;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use trace::{Event, Recorder};

/// Events of a chapter at least, on the average: fewer would mean that calls are not recorded.
const EVENTS_MIN: usize = 8;

const STORE: &str = "store";
const SOURCE: &str = "source";

/// What a power cut may take from who is asked to wait for the disk, or not to.
impl Recording {
    /// What is wrong with the store that a cut left in `ground`.
    fn wrong(&self, ground: &Ground, suspect: &Suspect) -> Result<(), String> {
        match self.durability {
            Durability::Full => check::survives(ground, &self.life, suspect.steps, suspect.versions.clone()).map(drop),
            Durability::Close => {
                self.records_are_whole(&suspect.image)?;
                check::tells(ground, &self.life, *suspect.versions.end()).map(drop)
            }
        }
    }

    /// As [`Recording::wrong`], where handles with both durabilities took turns: the log is cut where a power cut tore it, and every
    /// durable commit is there, with all before it.
    fn wrong_after_the_cut(&self, ground: &Ground, suspect: &Suspect) -> Result<(), String> {
        self.records_are_whole(&suspect.image)?;
        let is_durable = |version: &u64| !self.deferred.contains(version);
        let said = *suspect.versions.start();
        let oldest = (0..=said).rev().find(is_durable).unwrap_or(0);
        let (context, options) = (self.life.script.context(), RepairOptions { dry_run: false, cut: true });
        match repair_on(&context, ground.store.clone(), options, &Call::default()) {
            Err(e) if e.kind() == ErrorKind::NotFound && oldest == 0 => {}
            Err(e) => return Err(format!("the repair: {:?}: {e}", e.kind())),
            Ok(report) => {
                // A lease that was torn keeps no version, and takes none along.
                if let Some(damage) = report.remaining.iter().find(|damage| !damage.versions.is_empty()) {
                    return Err(format!("after the cut: {damage:?}"));
                }
                if let Some(lost) = report.lost.iter().find(|lost| lost.version <= oldest) {
                    return Err(format!("{lost:?} was cut off, version {oldest} is durable"));
                }
            }
        }
        check::survives(ground, &self.life, suspect.steps, oldest..=*suspect.versions.end()).map(drop)
    }

    /// Whatever became of names: a record that has its name has its bytes.
    fn records_are_whole(&self, image: &Image) -> Result<(), String> {
        let is_record = |path: &str| path.strip_prefix("/_log/").is_some_and(|name| name.parse::<u64>().is_ok());
        for (path, content) in image.iter().filter(|(path, _)| is_record(path)) {
            if content.as_ref().is_some_and(|bytes| !self.records.contains(bytes.as_slice())) {
                return Err(format!("{path} is not what was written"));
            }
        }
        Ok(())
    }
}

/// The versions whose records say that they are not durable.
fn deferred(events: &[Event]) -> HashSet<u64> {
    let (mut written, mut deferred) = (HashMap::<&Path, Vec<u8>>::new(), HashSet::new());
    for event in events {
        match event {
            Event::Write(path, bytes) => written.entry(path).or_default().extend_from_slice(bytes),
            Event::Link(from, to) => {
                let version: Option<u64> =
                    to.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
                let says = |bytes: &Vec<u8>| bytes.windows(15).any(|window| window == b"\"durable\":false");
                if written.get(from.as_path()).is_some_and(says) {
                    deferred.extend(version);
                }
            }
            _ => {}
        }
    }
    deferred
}

/// What every file held that became a log record.
fn records(events: &[Event]) -> HashSet<Vec<u8>> {
    let (mut written, mut records) = (HashMap::<&Path, Vec<u8>>::new(), HashSet::new());
    for event in events {
        match event {
            Event::Write(path, bytes) => written.entry(path).or_default().extend_from_slice(bytes),
            Event::Link(from, _) => records.extend(written.get(from.as_path()).cloned()),
            _ => {}
        }
    }
    records
}

/// The record of a life, its paths relative to the folder in which the store was made.
struct Recording {
    /// Holds what is copied from.
    folder: Folder,
    durability: Durability,
    life: Life,
    events: Vec<Event>,
    /// The bytes of each log record.
    records: HashSet<Vec<u8>>,
    /// The versions that may be lost.
    deferred: HashSet<u64>,
}

/// A life on a disk that is waited for as `durability` says.
fn recorded(script: Script, durability: Durability) -> Recording {
    let folder = Folder::new("power");
    let recorder = Arc::new(Recorder::default());
    let store = folder.0.join(STORE);
    let store: Arc<dyn Storage> = Arc::new(LocalStorage::with_calls(&store, durability, recorder.clone()).unwrap());
    let ground = Ground { store, source: unsynced(folder.0.join(SOURCE)) };
    let life = Life::rehearsed_on(script, &ground, |_| {}, |version| recorder.note(Event::Said(version)));
    let events: Vec<Event> = recorder.events().into_iter().map(|event| relative(event, &folder.0)).collect();
    let (records, deferred) = (records(&events), deferred(&events));
    Recording { folder, durability, life, events, records, deferred }
}

/// A life on a disk that is waited for at every other step.
fn alternating(script: Script) -> Recording {
    let folder = Folder::new("power-both");
    let recorder = Arc::new(Recorder::default());
    let store = Arc::new(Alternating::new(&folder.0.join(STORE), &recorder));
    let ground = Ground { store: store.clone(), source: unsynced(folder.0.join(SOURCE)) };
    let said = |version| {
        recorder.note(Event::Said(version));
        store.turn();
    };
    let life = Life::rehearsed_on(script, &ground, |_| {}, said);
    let events: Vec<Event> = recorder.events().into_iter().map(|event| relative(event, &folder.0)).collect();
    let (records, deferred) = (records(&events), deferred(&events));
    Recording { folder, durability: Durability::Close, life, events, records, deferred }
}

fn relative(event: Event, top: &Path) -> Event {
    let cut = |path: PathBuf| path.strip_prefix(top).unwrap().to_owned();
    match event {
        Event::Create(path) => Event::Create(cut(path)),
        Event::Write(path, bytes) => Event::Write(cut(path), bytes),
        Event::SyncFile(path) => Event::SyncFile(cut(path)),
        Event::SyncFolder(path) => Event::SyncFolder(cut(path)),
        Event::Close(path) => Event::Close(cut(path)),
        Event::Link(from, to) => Event::Link(cut(from), cut(to)),
        Event::Rename(from, to) => Event::Rename(cut(from), cut(to)),
        Event::RemoveFile(path) => Event::RemoveFile(cut(path)),
        Event::MakeFolder(path) => Event::MakeFolder(cut(path)),
        Event::RemoveFolder(path) => Event::RemoveFolder(cut(path)),
        Event::RemoveAll(path) => Event::RemoveAll(cut(path)),
        Event::Said(version) => Event::Said(version),
    }
}

/// An image to be checked: where it came from, the steps that were acknowledged, and the versions that it may show.
struct Suspect {
    what: String,
    image: Image,
    steps: usize,
    versions: RangeInclusive<u64>,
}

/// Which images are looked at.
#[derive(Clone, Copy)]
struct Images {
    seed: u64,
    /// So many by dice after each event.
    mixed: u64,
    /// Those after each event, not only after those that are tried.
    each: bool,
}

impl Images {
    fn tried(mixed: u64) -> Self {
        Self { seed: seed(), mixed, each: false }
    }

    fn each() -> Self {
        Self { seed: seed(), mixed: 1, each: true }
    }
}

/// The images of prefixes of the events, each once.
fn suspects<'a>(life: &'a Life, events: &'a [Event], images: Images) -> impl Iterator<Item = Suspect> + 'a {
    let Images { seed, mixed, .. } = images;
    let (mut disk, mut steps, mut dice) = (Disk::new(), 0, Dice::new(seed));
    let mut seen = HashSet::new();
    events.iter().enumerate().flat_map(move |(n, event)| {
        disk.apply(event);
        if let Event::Said(_) = event {
            steps += 1;
        }
        if steps < 2 * life.script.prelude || !(images.each || is_tried((life.script.name, n))) {
            return Vec::new();
        }
        let versions = life.possible(steps);
        let plain = [Cut::Lost, Cut::Kept, Cut::NamesOnly, Cut::BytesOnly];
        let dice = &mut dice;
        let cuts: Vec<Cut> = plain.into_iter().chain((0..mixed).map(|_| Cut::Mixed(dice.word()))).collect();
        let mut found = Vec::new();
        for cut in cuts {
            let image = disk.after(cut, STORE);
            let mut hasher = DefaultHasher::new();
            (&image, steps).hash(&mut hasher);
            if seen.insert(hasher.finish()) {
                let what = format!("{}, seed {seed}, {cut:?} after event {n}, {}", life.script.name, shown(event));
                found.push(Suspect { what, image, steps, versions: versions.clone() });
            }
        }
        found
    })
}

fn shown(event: &Event) -> String {
    match event {
        Event::Write(path, bytes) => format!("write of {} bytes to {}", bytes.len(), path.display()),
        other => format!("{other:?}"),
    }
}

/// Puts the image into a folder.
fn lay(image: &Image, work: &Path) {
    let _ = fs::remove_dir_all(work);
    for (path, content) in image {
        let path = work.join(path.trim_start_matches('/'));
        match content {
            None => fs::create_dir_all(path).unwrap(),
            Some(bytes) => fs::write(path, bytes).unwrap(),
        }
    }
}

/// Puts the image into a folder and checks what a process finds there.
fn checked(suspect: &Suspect, recording: &Recording, work: &Path, wrong: Wrong) -> Result<(), String> {
    lay(&suspect.image, work);
    let ground = Ground { store: unsynced(work), source: unsynced(recording.folder.0.join(SOURCE)) };
    wrong(recording, &ground, suspect).map_err(|wrong| format!("{}: {wrong}", suspect.what))
}

/// What is wrong with what a cut left.
type Wrong = fn(&Recording, &Ground, &Suspect) -> Result<(), String>;

/// Checks images on two threads, until one is wrong; gives how many there were.
fn check_all(recording: &Recording, events: &[Event], images: Images) -> Result<usize, String> {
    check_so(recording, events, images, Recording::wrong)
}

fn check_so(recording: &Recording, events: &[Event], images: Images, is_wrong: Wrong) -> Result<usize, String> {
    let folder = Folder::new(&format!("power-{}-{}", images.seed, events.len()));
    let all = std::sync::Mutex::new(suspects(&recording.life, events, images));
    let count = AtomicUsize::new(0);
    let wrong = std::sync::Mutex::new(None);
    std::thread::scope(|scope| {
        for n in 0..2 {
            let (all, count, wrong, work) = (&all, &count, &wrong, folder.0.join(format!("work-{n}")));
            scope.spawn(move || {
                while wrong.lock().unwrap().is_none() {
                    let Some(suspect) = all.lock().unwrap().next() else { break };
                    count.fetch_add(1, Ordering::Relaxed);
                    if let Err(what) = checked(&suspect, recording, &work, is_wrong) {
                        wrong.lock().unwrap().get_or_insert(what);
                    }
                }
            });
        }
    });
    wrong.into_inner().unwrap().map_or(Ok(count.into_inner()), Err)
}

fn mixed() -> u64 {
    if std::env::var_os("GRIDSTONE_TEST_DEEP").is_some() { 40 } else { 2 }
}

#[test]
fn a_power_cut_at_any_point_of_any_work_loses_nothing() {
    for script in scripts().into_iter().filter(Script::is_wanted) {
        let (recording, begun) = (recorded(script, Durability::Full), Instant::now());
        let (events, last) = (recording.events.len(), recording.life.last());
        match check_all(&recording, &recording.events, Images::tried(mixed())) {
            Ok(images) => {
                println!("{}: {events} events, {images} images, {last} versions, {:?}", script.name, begun.elapsed())
            }
            Err(wrong) => panic!("GRIDSTONE_TEST_SEED={}: {wrong}", seed()),
        }
        let chapters = recording.life.chapters.len();
        assert!(events > EVENTS_MIN * chapters, "{}: {events} events", script.name);
    }
}

/// Half of the images by dice, since each is looked at for less.
#[test]
fn without_waiting_for_the_disk_a_power_cut_is_told_and_no_record_is_torn() {
    let asks_no_more = |script: &Script| script.heal.is_none() && !script.past && !script.damages;
    for script in scripts().into_iter().filter(|script| script.is_wanted() && asks_no_more(script)) {
        let (recording, begun) = (recorded(script, Durability::Close), Instant::now());
        match check_all(&recording, &recording.events, Images::tried(mixed() / 2)) {
            Ok(images) => println!("{}: {images} images, {:?}", script.name, begun.elapsed()),
            Err(wrong) => panic!("GRIDSTONE_TEST_SEED={}: {wrong}", seed()),
        }
        let unsynced = without(&recording.events, |event| syncs_file(event, "_log"));
        assert!(
            check_all(&recording, &unsynced, Images::each()).is_err(),
            "{}: torn records were not found",
            script.name
        );
    }
}

/// Handles that wait for the disk and such that do not take turns. What was waited for is there after any cut, and what it stands on.
#[test]
fn a_durable_commit_over_others_loses_nothing() {
    // Of a sealed store the recorder cannot tell which records are durable.
    let asks_no_more =
        |script: &Script| script.heal.is_none() && !script.past && !script.damages && script.keys.is_none();
    let mut deferred = 0;
    for script in scripts().into_iter().filter(|script| script.is_wanted() && asks_no_more(script)) {
        let (recording, begun) = (alternating(script), Instant::now());
        deferred += recording.deferred.len();
        match check_so(&recording, &recording.events, Images::tried(mixed() / 2), Recording::wrong_after_the_cut) {
            Ok(images) => println!("{}: {images} images, {:?}", script.name, begun.elapsed()),
            Err(wrong) => panic!("GRIDSTONE_TEST_SEED={}: {wrong}", seed()),
        }
    }
    assert!(deferred > 0, "{deferred} commits did not wait for the disk");
}

/// Also where a repair makes it, a durable version comes after the data files of the versions before it, which had not waited for the disk.
#[test]
fn a_repair_makes_durable_what_its_version_stands_on() {
    let (folder, recorder) = (Folder::new("power-repair"), Arc::new(Recorder::default()));
    let local = LocalStorage::with_calls(folder.0.join(STORE), Durability::Close, recorder.clone()).unwrap();
    let (storage, context): (Arc<dyn Storage>, _) = (Arc::new(local), store::context(4));
    let line = line::create(&context, &storage, "/line", false);
    for step in 0.. {
        line::write(&line, &[(step, step)].into()).unwrap();
        if !storage.list("_manifest").unwrap().is_empty() {
            break;
        }
    }
    line::write(&line, &(0..12_000).map(|x| (x, x * 0x9E37_79B9)).collect()).unwrap();
    for name in storage.list("_manifest").unwrap() {
        storage.delete(&name).unwrap();
    }
    let before = recorder.events();
    let syncs = |event: &Event, name: &str| matches!(event, Event::SyncFile(path) if path.ends_with(name));
    let is_deferred = |name: &String| !before.iter().any(|event| syncs(event, name));
    let data = storage.list("_data").unwrap().into_iter().find(is_deferred).unwrap();
    let options = RepairOptions { dry_run: false, cut: false };
    assert!(repair_on(&context, storage, options, &Call::default()).unwrap().committed.is_some());
    let events = recorder.events().split_off(before.len());
    let last_of = |is: &dyn Fn(&Event) -> bool| events.iter().rposition(is).unwrap();
    let synced = last_of(&|event| syncs(event, &data));
    let named = last_of(&|event| matches!(event, Event::Link(_, to) if to.parent().unwrap().ends_with("_log")));
    assert!(synced < named && named < last_of(&|event| syncs_folder(event, "_log")), "{events:?}");
}

/// A store of the older format that has a floor is upgraded, and its floor is raised.
#[test]
fn a_power_cut_over_an_older_floor_loses_nothing() {
    let (folder, recorder) = (Folder::new("power-older"), Arc::new(Recorder::default()));
    let local = LocalStorage::with_calls(folder.0.join(STORE), Durability::Full, recorder.clone()).unwrap();
    let (storage, case): (Arc<dyn Storage>, _) = (Arc::new(local), older::case("vacuumed"));
    let (memory, expect) = (vectors::loaded(&case), vectors::json(&case.join("expect.json")));
    let context = vectors::context_of(&expect);
    storage.prepare().unwrap();
    for name in ["_log", "_data", "_manifest"].iter().flat_map(|folder| memory.list(folder).unwrap()) {
        storage.put(&name, &memory.read_all(&name).unwrap()).unwrap();
    }
    let begun = recorder.events().len();
    recorder.note(Event::Said(upgrade_on(&context, storage.clone()).unwrap()));
    let array = older::an_array(&context, &storage, &expect).unwrap();
    older::vacuum(&array).unwrap();
    recorder.note(Event::Said(array.version()));
    let work = folder.0.join("work");
    let (mut disk, mut said, mut dice, mut images) = (Disk::new(), 0, Dice::new(seed()), HashSet::new());
    for (n, event) in recorder.events().into_iter().enumerate() {
        let event = relative(event, &folder.0);
        disk.apply(&event);
        if let Event::Said(version) = event {
            said = version;
        }
        for cut in
            [Cut::Lost, Cut::Kept, Cut::NamesOnly, Cut::BytesOnly, Cut::Mixed(dice.word()), Cut::Mixed(dice.word())]
        {
            let image = disk.after(cut, STORE);
            if n + 1 < begun || !images.insert((image.clone(), said)) {
                continue;
            }
            lay(&image, &work);
            let (storage, what) = (unsynced(&work), format!("{cut:?} after event {n}, {}", shown(&event)));
            older::newest_is_the_last(&context, &storage, &expect);
            assert!(store::store_of(&storage).latest().unwrap().version() >= said, "{what}");
            let damage = verify_on(&context, storage.clone(), &Call::default()).unwrap().damage;
            assert!(damage.iter().all(|damage| damage.versions.is_empty()), "{what}: {damage:?}");
            upgrade_on(&context, storage.clone()).unwrap();
            older::vacuum(&older::an_array(&context, &storage, &expect).unwrap()).unwrap();
            older::newest_is_the_last(&context, &storage, &expect);
        }
    }
    assert!(images.len() > 20, "{}", images.len());
}

/// A file whose bytes found no room may say so only when it is closed.
#[test]
fn every_file_is_closed_before_it_is_given_its_name() {
    for durability in [Durability::Full, Durability::Close] {
        let (mut open, mut named) = (HashSet::new(), 0);
        for event in recorded(scripts().swap_remove(0), durability).events {
            match event {
                Event::Create(path) => drop(open.insert(path)),
                Event::Close(path) => assert!(open.remove(&path), "{} is closed twice", path.display()),
                Event::Link(from, to) | Event::Rename(from, to) => {
                    assert!(!open.contains(&from), "{} is still written", to.display());
                    named += 1;
                }
                Event::RemoveFile(path) => drop(open.remove(&path)),
                _ => {}
            }
        }
        assert!(open.is_empty() && named > 50, "{open:?}, {named}");
    }
}

/// The record as it would be if the engine left out what `left_out` says.
fn without(events: &[Event], left_out: impl Fn(&Event) -> bool) -> Vec<Event> {
    events.iter().filter(|event| !left_out(event)).cloned().collect()
}

fn syncs_folder(event: &Event, folder: &str) -> bool {
    matches!(event, Event::SyncFolder(path) if path.ends_with(folder))
}

fn syncs_file(event: &Event, folder: &str) -> bool {
    matches!(event, Event::SyncFile(path) if path.parent().is_some_and(|parent| parent.ends_with(folder)))
}

/// The record as it would be if every file and name in `folder` were made durable after the next log record only.
fn late(events: &[Event], folder: &str) -> Vec<Event> {
    let (mut found, mut held) = (Vec::new(), Vec::new());
    for event in events {
        if syncs_folder(event, folder) || syncs_file(event, folder) {
            held.push(event.clone());
            continue;
        }
        found.push(event.clone());
        if syncs_folder(event, "_log") {
            found.append(&mut held);
        }
    }
    found
}

#[test]
fn a_missing_or_late_fsync_is_found() {
    let recording = recorded(scripts().swap_remove(0), Durability::Full);
    let events = &recording.events;
    let mut broken = Vec::new();
    for folder in ["_log", "_data", "_manifest"] {
        broken.push((format!("no fsync of the folder {folder}"), without(events, |e| syncs_folder(e, folder))));
        broken.push((format!("no fsync of files in {folder}"), without(events, |e| syncs_file(e, folder))));
    }
    for folder in ["_data", "_manifest"] {
        broken.push((format!("records before what they name in {folder}"), late(events, folder)));
    }
    broken.push(("no fsync of the store's folder".to_owned(), without(events, |e| syncs_folder(e, STORE))));
    let above = |event: &Event| matches!(event, Event::SyncFolder(path) if path.as_os_str().is_empty());
    broken.push(("no fsync of the folder above the store".to_owned(), without(events, above)));
    for (what, broken) in broken {
        assert_ne!(broken.len(), 0);
        match check_all(&recording, &broken, Images::each()) {
            Ok(images) => panic!("{what}: not found in {images} images"),
            Err(wrong) => println!("{what}: found: {wrong}"),
        }
    }
}
