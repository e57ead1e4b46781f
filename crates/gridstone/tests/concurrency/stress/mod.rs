//! Sixteen writers of many small overlapping writes each, beside readers, a consolidator, a vacuum and a writer that
//! sleeps between preparing and committing: no write fails, nobody sees a write in part, and the end is what the writes come to
//! when they are done one by one in the order of their versions. In one process on memory, and in four processes on a folder; where a
//! place of the sparse array has one cell, and where it may have several.
//!
//! The vacuum keeps a few versions only, so the log cannot tell that order in the end: writers remember what they were
//! told. Now and then they wait until what they wrote before has been vacuumed, so that the floor rises through the whole run
//! however the threads are scheduled. Who reads a version that has been vacuumed is told so, and goes on with the newest.
//!
//! A torn write shows itself: both arrays have an upper and a lower half, and every write puts into the lower half
//! what it puts into the upper, the halves often being fragments of their own. So at every version the halves are
//! equal. `GRIDSTONE_TEST_WRITES` says how many writes each writer makes, at least ten; `make deep` asks for a thousand.

mod interleaved;
mod keepers;
mod writes;

use crate::support::child::{Child, Folder, say};
use crate::support::store::{nothing_is_left, options, store_of};
use gridstone::base::{ErrorKind, Result};
use gridstone::engine::{
    Array, At, Call, Context, Durability, Keep, Opened, Options, Strategy, create_array_on, open_on,
};
use gridstone::schema::Schema;
use gridstone::storage::{MemoryStorage, Storage};
use keepers::beside_keepers;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use writes::{Order, commit, read, replayed};

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
/// How long the floor may stay where it is while somebody waits. Vacuums come every few milliseconds, and a consolidation
/// holds the floor for one merge at a time. But in deep runs sixteen writers of a thousand writes each, the vacuum and the
/// consolidation may share a machine of two cores and a slow disk, and then a single merge takes long.
const PATIENCE: Duration = Duration::from_secs(600);
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
    /// Whether cells of the sparse array may lie several times at one place.
    doubled: bool,
}

impl World {
    fn on(storage: Arc<dyn Storage>, safety_us: i64) -> Self {
        let options = Options { threads: Some(1), durability: Durability::Close, ..Options::default() };
        Self { storage, context: Context::new(&options).unwrap(), safety_us, patience: PATIENCE, doubled: false }
    }

    /// Nothing but records is safe: roots and packs that a commit has just folded may be condemned before a record names them.
    fn in_memory() -> Self {
        Self::on(Arc::new(MemoryStorage::new()), 1)
    }

    /// In a folder records are temporary files first, of which the safety age alone says that somebody is at work on them.
    fn in_folder(folder: &Path) -> Self {
        Self::on(crate::support::scratch::unsynced(folder), 3_600_000_000)
    }

    /// The same, where cells of the sparse array may lie several times at one place.
    fn with_doubles(self, doubled: bool) -> Self {
        Self { doubled, ..self }
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
            let duplicates = sparse && self.doubled;
            let schema = Schema::from_json(&format!(
                r#"{{"sparse":{sparse},"duplicates":{duplicates},"capacity":64,"dims":[
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

/// Does the writes of `writer`, and tells the version of each. Stops on the way until the version of the stop before has been
/// vacuumed.
fn write_all(world: &World, writer: u64, writes: u64, mut tell: impl FnMut(u64, u64)) {
    let (arrays, stretch) = (world.arrays(true), (writes / (STOPS + 1)).max(2));
    let mut stop = 0;
    for number in 0..writes {
        if number > 0 && number % stretch == 0 {
            world.outlives(stop, &AtomicBool::new(false));
        }
        let version = commit(world, &arrays, writer, number);
        if number % stretch == 0 {
            stop = version;
        }
        tell(version, number);
    }
}

/// A write that was made: its version, its writer and its number.
type Made = (u64, u64, u64);

/// Whether `outcome`, of something done at `version`, says that the version has been vacuumed, which must be true then.
fn is_expired<T>(world: &World, version: u64, outcome: &Result<T>) -> bool {
    let Err(e) = outcome else { return false };
    let (kind, floor) = (e.kind(), world.floor());
    assert!(kind == ErrorKind::SnapshotExpired && version < floor, "version {version}, the floor is {floor}: {e}");
    true
}

/// Checks the end: every write has a version of its own, and the store holds what they come to in that order.
fn check(world: &World, made: Vec<Made>, writes: u64) {
    let acknowledged = made.len();
    let order = Order::of(made);
    assert_eq!(order.len(), acknowledged, "two writes were told the same version");
    for writer in 0..WRITERS {
        let own = order.writes().filter(|(w, _)| *w == writer).map(|(_, n)| n);
        assert!(own.eq(0..writes), "the writes of writer {writer} are in its order");
    }
    assert!(order.first() > Some(FIRST));
    let arrays = world.arrays(true);
    let (contents, emptied) = replayed(&order, world.doubled);
    assert!(emptied > 0, "no delete by a condition has found anything");
    for (array, expected) in arrays.iter().zip(&contents) {
        let expected = expected.clone();
        assert_eq!(read(array), expected, "{}", array.path().unwrap());
        array.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
        assert_eq!(read(array), expected, "{} merged", array.path().unwrap());
        let report = array.verify(&Call::default()).unwrap();
        assert!(report.damage.is_empty(), "{:?}", report.damage);
    }
    arrays[0].vacuum(&options(Keep::Versions(1)), &Call::default()).unwrap();
    nothing_is_left(&world.storage, "in the end");
    for (array, expected) in world.arrays(false).iter().zip(contents) {
        assert_eq!(read(array), expected, "{} vacuumed", array.path().unwrap());
        assert_eq!(array.at(At::Version(FIRST)).unwrap_err().kind(), ErrorKind::SnapshotExpired);
    }
    let changes = order.writes().collect::<Vec<_>>().windows(2).filter(|w| w[0].0 != w[1].0).count();
    println!("{} versions, {changes} changes of hand, {emptied} cells deleted by conditions", arrays[0].version());
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

fn threads_write(world: &World, writes: u64) {
    world.create();
    let writer = |writer: u64| {
        let mut made = Vec::new();
        write_all(world, writer, writes, |version, n| made.push((version, writer, n)));
        made
    };
    let made = beside_keepers(world, || {
        std::thread::scope(|scope| {
            let writer = &writer;
            let threads: Vec<_> = (0..WRITERS).map(|n| scope.spawn(move || writer(n))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        })
    });
    check(world, made, writes);
}

#[test]
fn sixteen_threads_of_many_overlapping_writes() {
    threads_write(&World::in_memory(), writes(150));
}

#[test]
fn sixteen_threads_where_cells_may_lie_several_times_at_one_place() {
    threads_write(&World::in_memory().with_doubles(true), writes(150));
}

/// What a process is to do: its number, how many writes each of its threads makes, and on what store.
fn order(process: u64, writes: u64, doubled: bool) -> u64 {
    writes << 8 | u64::from(doubled) << 7 | process
}

/// One of the processes: its threads write, and say each version with who made it.
pub(crate) fn write_in_threads(store: &Path, order: u64) {
    let (process, doubled, writes) = (order & 0x7f, order & 0x80 != 0, order >> 8);
    let world = World::in_folder(store).with_doubles(doubled);
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

fn processes_write(writes: u64, doubled: bool) {
    let folder = Folder::new("stress");
    let world = World::in_folder(&folder.0).with_doubles(doubled);
    world.create();
    let made = beside_keepers(&world, || {
        let start = |process| Child::start("write-in-threads", &folder.0, order(process, writes, doubled));
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

#[test]
fn four_processes_of_four_threads() {
    processes_write(writes(60), false);
}

#[test]
fn four_processes_where_cells_may_lie_several_times_at_one_place() {
    processes_write(writes(40), true);
}
