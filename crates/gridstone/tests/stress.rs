//! Sixteen writers of a thousand small overlapping writes each, beside readers, a consolidator, a vacuum and a writer that
//! sleeps between preparing and committing: no write fails, nobody sees a write in part, and the end is what the writes come to
//! when they are done one by one in the order of their versions. In one process on memory, and in four processes on a folder.
//!
//! The vacuum keeps a few versions only, so the log cannot tell that order in the end: writers remember what they were
//! told. Now and then they wait until what they wrote before has been vacuumed, so that the floor rises through the whole run
//! however the threads are scheduled. Who reads a version that has been vacuumed is told so, and goes on with the newest.
//!
//! A torn write shows itself: both arrays have an upper and a lower half, and every write puts into the lower half
//! what it puts into the upper, the halves often being fragments of their own. So at every version the halves are
//! equal. `GRIDSTONE_TEST_WRITES` says how many writes each writer makes, at least ten.

use crate::child::{Child, Folder, say};
use crate::vacuum::{nothing_is_left, options, store_of};
use crate::writer::{CellMap, as_text, bytes_of, numbers, view};
use gridstone::base::{ErrorKind, Result};
use gridstone::engine::{
    Array, At, Call, CellData, Context, Dedup, Durability, Keep, Opened, Options, ReadOrder, Staged, Strategy,
    VacuumOptions, commit_receipts_on, create_array_on, open_on,
};
use gridstone::schema::{Order, Schema};
use gridstone::storage::{LocalStorage, MemoryStorage, Storage};
use gridstone_testkit::Dice;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

const WRITERS: u64 = 16;
/// The number of the writer that sleeps, after those that do not.
const SLEEPER: u64 = WRITERS;
/// The number of one whose writes are all refused.
const REFUSED: u64 = WRITERS + 1;
const PROCESSES: u64 = 4;
/// Rows of a half, and columns.
const HALF: i64 = 16;
const COLUMNS: i64 = 16;
const PATHS: [&str; 2] = ["/grid", "/cells"];
/// Both arrays have been created.
const FIRST: u64 = 2;
/// How often a writer waits for the floor, at least.
const STOPS: u64 = 4;
/// How long the floor may stay where it is while somebody waits: vacuums come every few milliseconds.
const PATIENCE: Duration = Duration::from_secs(240);
/// An object in the store that says that somebody has failed, and that nobody need be waited for.
const GAVE_UP: &str = "_log/gave-up";

fn writes(usual: u64) -> u64 {
    std::env::var("GRIDSTONE_TEST_WRITES").ok().and_then(|text| text.parse().ok()).unwrap_or(usual).max(10)
}

/// A store that many threads work on, each by handles of its own.
#[derive(Clone)]
struct World {
    storage: Arc<dyn Storage>,
    context: Context,
    /// How old a file is that a vacuum takes although no version ever named it.
    safety_us: i64,
    /// How long somebody waits for the floor to rise before he says that it never will.
    patience: Duration,
}

impl World {
    fn on(storage: Arc<dyn Storage>, safety_us: i64) -> Self {
        let options = Options { threads: Some(1), durability: Durability::Close, ..Options::default() };
        Self { storage, context: Context::new(&options).unwrap(), safety_us, patience: PATIENCE }
    }

    /// Nothing but records is safe: roots and packs that a commit has just folded may be condemned before a record names them.
    fn in_memory() -> Self {
        Self::on(Arc::new(MemoryStorage::new()), 1)
    }

    /// In a folder records are temporary files first, of which the safety age alone says that somebody is at work on them.
    fn in_folder(folder: &Path) -> Self {
        Self::on(Arc::new(LocalStorage::new(folder, Durability::Close).unwrap()), 3_600_000_000)
    }

    /// The same store for a reader that claims every version it reads, and remembers nothing of the others.
    fn claiming(&self) -> Self {
        let (lease_after_us, lease_term_us) = (0, 1_000_000);
        let options = Options { threads: Some(1), cache: 0, lease_after_us, lease_term_us, ..Options::default() };
        Self { context: Context::new(&options).unwrap(), ..self.clone() }
    }

    /// The oldest version that can be opened.
    fn floor(&self) -> u64 {
        store_of(&self.storage).floor().unwrap().map_or(1, |floor| floor.version)
    }

    /// Waits until `version` has been vacuumed; whether it was, or nobody will do it any more. Fails if the floor stays where it is for too long:
    /// else a vacuum that never raises it would let everybody wait for ever.
    fn outlives(&self, version: u64, done: &AtomicBool) -> bool {
        let mut risen = (self.floor(), Instant::now());
        loop {
            // Asked first: what happened before all was done counts.
            let last = done.load(Ordering::Relaxed);
            if self.floor() > version || last {
                return self.floor() > version;
            }
            assert!(!self.storage.exists(GAVE_UP).unwrap(), "somebody has failed");
            let floor = self.floor();
            if floor > risen.0 {
                risen = (floor, Instant::now());
            }
            if risen.1.elapsed() > self.patience {
                self.storage.put(GAVE_UP, b"").unwrap();
                panic!("version {version} was not vacuumed: the floor has been {floor} for {:?}", self.patience);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn create(&self) {
        for (path, sparse) in PATHS.into_iter().zip([false, true]) {
            let schema = Schema::from_json(&format!(
                r#"{{"sparse":{sparse},"capacity":64,"dims":[
                {{"name":"y","dtype":"int64","domain":["0","{}"],"tile":"5"}},
                {{"name":"x","dtype":"int64","domain":["0","{}"],"tile":"7"}}],
                "attrs":[{{"name":"v","dtype":"int64"}}]}}"#,
                2 * HALF - 1,
                COLUMNS - 1
            ));
            create_array_on(&self.context, self.storage.clone(), path, schema.unwrap(), false).unwrap();
        }
    }

    fn arrays(&self, writable: bool) -> [Array; 2] {
        PATHS.map(|path| match open_on(&self.context, self.storage.clone(), path, writable, At::Latest).unwrap() {
            Opened::Array(array) => array,
            Opened::Group(_) => panic!("{path} is a group"),
        })
    }
}

/// One write: what it does to the upper half of one of the arrays, and so to the lower.
#[derive(Debug)]
enum Write {
    Box { rows: (i64, i64), columns: (i64, i64) },
    Cells { place: usize, cells: BTreeSet<(i64, i64)>, apart: bool },
    Delete { place: usize, cells: BTreeSet<(i64, i64)>, apart: bool },
    Notes { place: usize },
}

/// A write of its own number, so that whoever reads a value knows who wrote it.
fn token(writer: u64, write: u64) -> i64 {
    (writer * 1_000_000 + write + 1) as i64
}

fn write_of(writer: u64, write: u64) -> Write {
    let mut dice = Dice::new(token(writer, write) as u64);
    let range = |dice: &mut Dice, count: i64| {
        let (a, b) = (dice.below(count as usize) as i64, dice.below(count as usize) as i64);
        (a.min(b), a.max(b))
    };
    let cells = |dice: &mut Dice| {
        let place = |dice: &mut Dice| (dice.below(HALF as usize) as i64, dice.below(COLUMNS as usize) as i64);
        (0..1 + dice.below(6)).map(|_| place(dice)).collect::<BTreeSet<_>>()
    };
    let apart = dice.chance(50);
    match dice.below(100) {
        0..4 => Write::Box { rows: range(&mut dice, HALF), columns: range(&mut dice, COLUMNS) },
        4..70 => Write::Cells { place: dice.below(2), cells: cells(&mut dice), apart },
        70..90 => Write::Delete { place: dice.below(2), cells: cells(&mut dice), apart },
        _ => Write::Notes { place: dice.below(2) },
    }
}

/// The cells in the upper half, those in the lower, or both.
fn halves(cells: &BTreeSet<(i64, i64)>, apart: bool) -> Vec<BTreeSet<(i64, i64)>> {
    let lower = cells.iter().map(|(y, x)| (y + HALF, *x));
    if apart { vec![cells.clone(), lower.collect()] } else { vec![cells.iter().copied().chain(lower).collect()] }
}

fn coordinates(cells: &BTreeSet<(i64, i64)>) -> [Vec<u8>; 2] {
    [bytes_of(cells.iter().map(|at| at.0)), bytes_of(cells.iter().map(|at| at.1))]
}

fn stage_cells(array: &Array, cells: &BTreeSet<(i64, i64)>, value: i64) -> Staged {
    let (dims, values) = (coordinates(cells), bytes_of(cells.iter().map(|_| value)));
    let attrs = vec![("v".to_owned(), view(&values))];
    let dims = dims.iter().map(|b| view(b)).collect();
    array.stage_cells(CellData { dims, attrs, sorted: false, dedup: Dedup::Error }, &Call::default()).unwrap()
}

fn stage_box(array: &Array, (from, to): (i64, i64), columns: (i64, i64), value: i64) -> Staged {
    let values = bytes_of((0..(to - from + 1) * (columns.1 - columns.0 + 1)).map(|_| value));
    let data = vec![("v".to_owned(), view(&values))];
    let bounds = [as_text((from, to)), as_text(columns)];
    array.stage_dense(Some(&bounds), &data, Order::Row, &Call::default()).unwrap()
}

/// A write that has been prepared: in which array, and what is to be committed.
enum Prepared {
    Fragments(usize, Vec<Staged>),
    Notes(usize, i64),
}

fn prepare(arrays: &[Array; 2], writer: u64, number: u64) -> Prepared {
    let value = token(writer, number);
    match write_of(writer, number) {
        Write::Box { rows, columns } => {
            let lower = (rows.0 + HALF, rows.1 + HALF);
            Prepared::Fragments(0, [rows, lower].map(|rows| stage_box(&arrays[0], rows, columns, value)).into())
        }
        Write::Cells { place, cells, apart } => {
            let stage = |cells| stage_cells(&arrays[place], cells, value);
            Prepared::Fragments(place, halves(&cells, apart).iter().map(stage).collect())
        }
        Write::Delete { place, cells, apart } => {
            let stage = |cells: &BTreeSet<_>| {
                let dims = coordinates(cells);
                arrays[place].stage_delete(&[view(&dims[0]), view(&dims[1])], &Call::default()).unwrap()
            };
            Prepared::Fragments(place, halves(&cells, apart).iter().map(stage).collect())
        }
        Write::Notes { place } => Prepared::Notes(place, value),
    }
}

impl Prepared {
    fn commit(self, arrays: &[Array; 2]) -> Result<u64> {
        match self {
            Self::Fragments(place, staged) => arrays[place].commit(staged, None),
            Self::Notes(place, value) => {
                let note = |key: &str| (key.to_owned(), Some(value.to_string()));
                arrays[place].set_metadata(vec![note("upper"), note("lower")])
            }
        }
    }
}

/// Does a write; its version.
fn commit(arrays: &[Array; 2], writer: u64, number: u64) -> u64 {
    let version = prepare(arrays, writer, number).commit(arrays);
    version.unwrap_or_else(|e| panic!("write {number} of writer {writer} failed: {e}"))
}

/// Does the writes of `writer`, and tells the version of each. Stops on the way until the version of the stop before has been
/// vacuumed.
fn write_all(world: &World, writer: u64, writes: u64, mut tell: impl FnMut(u64, u64)) {
    let (arrays, stretch) = (world.arrays(true), (writes / (STOPS + 1)).max(2));
    let mut stop = 0;
    for number in 0..writes {
        if number > 0 && number % stretch == 0 {
            world.outlives(stop, &AtomicBool::new(false));
        }
        let version = commit(&arrays, writer, number);
        if number % stretch == 0 {
            stop = version;
        }
        tell(version, number);
    }
}

/// What an array holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Content {
    cells: CellMap,
    notes: BTreeMap<String, String>,
}

/// What the writes come to, in this order.
fn replayed(made: &BTreeMap<u64, (u64, u64)>) -> [Content; 2] {
    let mut all = [Content::default(), Content::default()];
    for (writer, number) in made.values() {
        let value = token(*writer, *number);
        match write_of(*writer, *number) {
            Write::Box { rows, columns } => {
                let upper = (rows.0..=rows.1).flat_map(|y| (columns.0..=columns.1).map(move |x| (y, x))).collect();
                all[0].cells.extend(halves(&upper, false).remove(0).into_iter().map(|at| (at, value)));
            }
            Write::Cells { place, cells, .. } => {
                all[place].cells.extend(halves(&cells, false).remove(0).into_iter().map(|at| (at, value)));
            }
            Write::Delete { place, cells, .. } => {
                let gone = halves(&cells, false).remove(0);
                all[place].cells.retain(|at, _| !gone.contains(at));
            }
            Write::Notes { place } => {
                all[place].notes = ["upper", "lower"].map(|key| (key.to_owned(), value.to_string())).into();
            }
        }
    }
    all
}

/// What an array holds at the version of its handle; fails where the halves differ.
fn read(array: &Array) -> Content {
    seen(array).unwrap()
}

/// As [`read`], or why it cannot be read.
fn seen(array: &Array) -> Result<Content> {
    let (found, ..) = array.read(None, None, ReadOrder::Row, &Call::default())?;
    let values = numbers(&found.attrs[0]);
    let cells: CellMap = if found.dims.is_empty() {
        (0..2 * HALF * COLUMNS).map(|i| (i / COLUMNS, i % COLUMNS)).zip(values).filter(|(_, v)| *v != 0).collect()
    } else {
        numbers(&found.dims[0]).into_iter().zip(numbers(&found.dims[1])).zip(values).collect()
    };
    let lower: CellMap = cells.range((HALF, 0)..).map(|((y, x), v)| ((y - HALF, *x), *v)).collect();
    let upper: CellMap = cells.range(..(HALF, 0)).map(|(at, v)| (*at, *v)).collect();
    let torn = upper.iter().chain(&lower).find(|(at, v)| upper.get(at) != Some(v) || lower.get(at) != Some(v));
    assert_eq!(torn, None, "a write is seen in part at version {}", array.version());
    let note = |key: String| array.metadata(&key).unwrap().map(|value| (key, value));
    let notes: BTreeMap<String, String> = array.metadata_keys().unwrap().into_iter().filter_map(note).collect();
    assert_eq!(notes.get("upper"), notes.get("lower"), "metadata is seen in part at version {}", array.version());
    Ok(Content { cells, notes })
}

/// Whether `outcome`, of something done at `version`, says that the version has been vacuumed, which must be true then.
fn is_expired<T>(world: &World, version: u64, outcome: &Result<T>) -> bool {
    let Err(e) = outcome else { return false };
    let (kind, floor) = (e.kind(), world.floor());
    assert!(kind == ErrorKind::SnapshotExpired && version < floor, "version {version}, the floor is {floor}: {e}");
    true
}

/// What somebody has done: what it was, how often, and how often at least.
type Figures = Vec<(&'static str, u64, u64)>;

/// What one who works beside the writers has before him.
struct Desk<'a> {
    world: &'a World,
    /// Waits until everybody is at work.
    ready: &'a Barrier,
    /// Whether the writers are done.
    done: &'a AtomicBool,
    /// Writes of his own: their versions, writers and numbers.
    made: &'a Mutex<Vec<Made>>,
}

type Made = (u64, u64, u64);

impl Desk<'_> {
    fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed)
    }
}

/// Follows the store until the writers are done: versions advance, and a version read twice is the same.
fn follow(desk: &Desk<'_>) -> Figures {
    follow_as(desk, desk.world)
}

fn follow_claiming(desk: &Desk<'_>) -> Figures {
    follow_as(desk, &desk.world.claiming())
}

fn follow_as(desk: &Desk<'_>, world: &World) -> Figures {
    let (arrays, mut last, mut reads, mut expired) = (world.arrays(false), [0, 0], 0, 0);
    desk.ready.wait();
    loop {
        // The last round is one at rest, so that every reader has something to read.
        let at_rest = desk.is_done();
        for (array, last) in arrays.iter().zip(&mut last) {
            let version = array.refresh().unwrap();
            assert!(version >= *last, "version {version} after {last}");
            *last = version;
            let first = seen(array);
            let again = array.at(At::Version(version)).and_then(|pinned| seen(&pinned));
            let lost = [&first, &again].map(|outcome| is_expired(world, version, outcome));
            expired += lost.iter().filter(|lost| **lost).count() as u64;
            if lost == [false; 2] {
                assert_eq!(first.unwrap(), again.unwrap(), "version {version} read twice");
                reads += 1;
            }
        }
        if at_rest {
            return vec![("reads", reads, 1), ("versions that had expired", expired, 0)];
        }
    }
}

/// Merges what it can until the writers are done.
fn consolidate(desk: &Desk<'_>) -> Figures {
    let (arrays, mut written, mut overtaken, mut expired) = (desk.world.arrays(true), 0, 0, 0);
    desk.ready.wait();
    for round in 0.. {
        let at_rest = desk.is_done();
        for array in &arrays {
            let version = array.refresh().unwrap();
            let strategy = if round % 8 == 7 { Strategy::All } else { Strategy::Tiered };
            let outcome = array.consolidate(&strategy, 100_000, false, &Call::default());
            if is_expired(desk.world, version, &outcome) {
                expired += 1;
                continue;
            }
            let report = outcome.unwrap();
            written += report.merges.iter().filter(|merge| merge.written.is_some()).count() as u64;
            overtaken += report.overtaken;
        }
        if at_rest {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    vec![("merges", written, 1), ("merges that were overtaken", overtaken, 0), ("plans that had expired", expired, 0)]
}

/// Vacuums until the writers are done.
fn vacuum(desk: &Desk<'_>) -> Figures {
    let array = &desk.world.arrays(true)[0];
    let (mut raised, mut versions, mut data, mut manifest) = (0, 0, 0, 0);
    desk.ready.wait();
    for keep in [Keep::Versions(1), Keep::Versions(12), Keep::AgeUs(0), Keep::AgeUs(100_000)].into_iter().cycle() {
        if desk.is_done() {
            break;
        }
        let options = VacuumOptions { safety_us: desk.world.safety_us, ..options(keep) };
        let report = array.vacuum(&options, &Call::default()).unwrap();
        assert!(report.oldest >= report.oldest_before && report.oldest == desk.world.floor(), "{report:?}");
        raised += u64::from(report.oldest > report.oldest_before);
        versions += report.oldest - report.oldest_before;
        data += report.data.objects;
        manifest += report.manifest.objects;
        std::thread::sleep(Duration::from_millis(5));
    }
    vec![
        ("times that the floor was raised", raised, STOPS),
        ("versions vacuumed", versions, STOPS),
        ("data files removed", data, 0),
        ("roots and pages removed", manifest, STOPS - 1),
    ]
}

/// Prepares writes, sleeps until their version has been vacuumed, and commits. What is in memory gets a version at the end of
/// the log; a receipt, of which nobody can tell any more whether it was committed, is refused.
fn sleep(desk: &Desk<'_>) -> Figures {
    let (world, mut commits) = (desk.world, 0);
    for number in 0.. {
        let arrays = world.arrays(true);
        let prepared = prepare(&arrays, SLEEPER, number);
        let (place, cells) = (number as usize % 2, (0..9).map(|x| (number as i64 % HALF, x)).collect());
        let staged = stage_cells(&arrays[place], &cells, token(REFUSED, number));
        let receipt = arrays[place].receipt(vec![staged]).unwrap();
        if number == 0 {
            desk.ready.wait();
        }
        let asleep = arrays[0].version().max(arrays[1].version());
        if !world.outlives(asleep + 1, desk.done) {
            break;
        }
        let refusal = commit_receipts_on(&world.context, world.storage.clone(), &[receipt], None).unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::SnapshotExpired, "{refusal}");
        let version = prepared.commit(&arrays).unwrap_or_else(|e| panic!("a write prepared at {asleep} failed: {e}"));
        assert!(version > asleep + 1, "version {version}, prepared at {asleep}");
        desk.made.lock().unwrap().push((version, SLEEPER, number));
        commits += 1;
    }
    vec![("commits of what slept, and as many refusals", commits, 1)]
}

/// Who works on the store beside the writers until they are done, and gives what he did. More maintenance is one more
/// entry.
type Keeper = fn(&Desk<'_>) -> Figures;
const KEEPERS: [(&str, Keeper); 5] = [
    ("reader", follow),
    ("reader with leases", follow_claiming),
    ("consolidator", consolidate),
    ("vacuum", vacuum),
    ("sleeper", sleep),
];

/// Runs `write` beside the keepers; what it and they have made. Fails if a keeper had nothing to do.
fn beside_keepers(world: &World, write: impl FnOnce() -> Vec<Made>) -> Vec<Made> {
    let (ready, done, made) = (Barrier::new(KEEPERS.len() + 1), AtomicBool::new(false), Mutex::default());
    let desk = Desk { world, ready: &ready, done: &done, made: &made };
    let work = |keeper: Keeper| {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| keeper(&desk)));
        caught.unwrap_or_else(|e| {
            world.storage.put(GAVE_UP, b"").unwrap();
            std::panic::resume_unwind(e)
        })
    };
    let (written, figures) = std::thread::scope(|scope| {
        let work = &work;
        let keepers: Vec<_> = KEEPERS.iter().map(|(_, keeper)| scope.spawn(move || work(*keeper))).collect();
        ready.wait();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(write));
        done.store(true, Ordering::Relaxed);
        let figures: Vec<Figures> = keepers.into_iter().map(|keeper| keeper.join().unwrap()).collect();
        (outcome.unwrap_or_else(|e| std::panic::resume_unwind(e)), figures)
    });
    for ((name, _), figures) in KEEPERS.iter().zip(figures) {
        for (what, count, least) in figures {
            println!("{name}: {count} {what}");
            assert!(count >= least, "{name}: {count} {what}, at least {least} were expected");
        }
    }
    [written, made.into_inner().unwrap()].concat()
}

/// Checks the end: every write has a version of its own, and the store holds what they come to in that order.
fn check(world: &World, made: Vec<Made>, writes: u64) {
    let acknowledged = made.len();
    let by_version: BTreeMap<u64, (u64, u64)> = made.into_iter().map(|(version, w, n)| (version, (w, n))).collect();
    assert_eq!(by_version.len(), acknowledged, "two writes were told the same version");
    for writer in 0..WRITERS {
        let own = by_version.values().filter(|(w, _)| *w == writer).map(|(_, n)| *n);
        assert!(own.eq(0..writes), "the writes of writer {writer} are in its order");
    }
    assert!(by_version.keys().next() > Some(&FIRST));
    let arrays = world.arrays(true);
    for (array, expected) in arrays.iter().zip(replayed(&by_version)) {
        assert_eq!(read(array), expected, "{}", array.path().unwrap());
        array.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
        assert_eq!(read(array), expected, "{} merged", array.path().unwrap());
        let report = array.verify(&Call::default()).unwrap();
        assert!(report.damage.is_empty(), "{:?}", report.damage);
    }
    arrays[0].vacuum(&options(Keep::Versions(1)), &Call::default()).unwrap();
    nothing_is_left(&world.storage, "in the end");
    for (array, expected) in world.arrays(false).iter().zip(replayed(&by_version)) {
        assert_eq!(read(array), expected, "{} vacuumed", array.path().unwrap());
        assert_eq!(array.at(At::Version(FIRST)).unwrap_err().kind(), ErrorKind::SnapshotExpired);
    }
    let changes = by_version.values().collect::<Vec<_>>().windows(2).filter(|w| w[0].0 != w[1].0).count();
    println!("{} versions, {changes} changes of hand", arrays[0].version());
}

/// A vacuum that does nothing makes the test fail; it does not make it wait for ever.
#[test]
fn a_floor_that_never_rises_is_a_failure() {
    let world = World { patience: Duration::from_millis(30), ..World::in_memory() };
    world.create();
    let waits = || world.outlives(FIRST, &AtomicBool::new(false));
    let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(waits)).unwrap_err();
    let told = told.downcast_ref::<String>().unwrap();
    assert!(told.contains("was not vacuumed: the floor has been 1"), "{told}");
    assert!(world.storage.exists(GAVE_UP).unwrap(), "others are told");
}

#[test]
fn sixteen_threads_of_a_thousand_overlapping_writes() {
    let writes = writes(1_000);
    let world = World::in_memory();
    world.create();
    let writer = |writer: u64| {
        let mut made = Vec::new();
        write_all(&world, writer, writes, |version, n| made.push((version, writer, n)));
        made
    };
    let made = beside_keepers(&world, || {
        std::thread::scope(|scope| {
            let writer = &writer;
            let threads: Vec<_> = (0..WRITERS).map(|n| scope.spawn(move || writer(n))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        })
    });
    check(&world, made, writes);
}

/// One of the processes: its threads write, and say each version with who made it.
pub(crate) fn write_in_threads(store: &Path, number: u64) {
    let (process, writes) = (number & 0xff, number >> 8);
    let world = World::in_folder(store);
    std::thread::scope(|scope| {
        for thread in 0..WRITERS / PROCESSES {
            let world = &world;
            scope.spawn(move || {
                let writer = process * (WRITERS / PROCESSES) + thread;
                write_all(world, writer, writes, |version, n| say("made", version << 32 | writer << 24 | n));
            });
        }
    });
}

#[test]
fn four_processes_of_four_threads() {
    let writes = writes(150);
    let folder = Folder::new("stress");
    let world = World::in_folder(&folder.0);
    world.create();
    let made = beside_keepers(&world, || {
        let start = |process| Child::start("write-in-threads", &folder.0, writes << 8 | process);
        let mut children: Vec<Child> = (0..PROCESSES).map(start).collect();
        let mut made = Vec::new();
        // A child that is not listened to waits when its pipe is full.
        std::thread::scope(|scope| {
            let listen = |child: &mut Child| {
                let said: Vec<u64> = std::iter::from_fn(|| child.hear("made")).collect();
                assert!(child.succeeds(), "a process failed after {} writes", said.len());
                said
            };
            let threads: Vec<_> = children.iter_mut().map(|child| scope.spawn(move || listen(child))).collect();
            threads.into_iter().for_each(|thread| made.extend(thread.join().unwrap()));
        });
        made.into_iter().map(|said| (said >> 32, said >> 24 & 0xff, said & 0xff_ffff)).collect()
    });
    check(&world, made, writes);
}
