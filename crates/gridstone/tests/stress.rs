//! Sixteen writers of a thousand small overlapping writes each, readers and a consolidator at work: no write fails,
//! nobody sees a write in part, and the end is what the writes come to when they are done one by one in the order of
//! their versions. In one process on memory, and in four processes on a folder.
//!
//! A torn write shows itself: both arrays have an upper and a lower half, and every write puts into the lower half
//! what it puts into the upper, the halves often being fragments of their own. So at every version the halves are
//! equal. `GRIDSTONE_TEST_WRITES` says how many writes each writer makes.

use crate::child::{Child, Folder, say};
use crate::writer::{CellMap, as_text, bytes_of, numbers, view};
use gridstone::engine::{
    Array, At, Call, CellData, Context, Dedup, Durability, Opened, Options, ReadOrder, Staged, Strategy,
    create_array_on, open_on,
};
use gridstone::schema::{Order, Schema};
use gridstone::storage::{LocalStorage, MemoryStorage, Storage};
use gridstone_testkit::Dice;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const WRITERS: u64 = 16;
const PROCESSES: u64 = 4;
/// Rows of a half, and columns.
const HALF: i64 = 16;
const COLUMNS: i64 = 16;
const PATHS: [&str; 2] = ["/grid", "/cells"];
/// Both arrays have been created.
const FIRST: u64 = 2;

fn writes(usual: u64) -> u64 {
    std::env::var("GRIDSTONE_TEST_WRITES").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A store that many threads work on, each by handles of its own.
#[derive(Clone)]
struct World {
    storage: Arc<dyn Storage>,
    context: Context,
}

impl World {
    fn on(storage: Arc<dyn Storage>) -> Self {
        let options = Options { threads: Some(1), durability: Durability::Close, ..Options::default() };
        Self { storage, context: Context::new(&options).unwrap() }
    }

    fn in_folder(folder: &Path) -> Self {
        Self::on(Arc::new(LocalStorage::new(folder, Durability::Close).unwrap()))
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

/// Does a write; its version.
fn commit(arrays: &[Array; 2], writer: u64, number: u64) -> u64 {
    let value = token(writer, number);
    match write_of(writer, number) {
        Write::Box { rows, columns } => {
            let lower = (rows.0 + HALF, rows.1 + HALF);
            let staged = [rows, lower].map(|rows| stage_box(&arrays[0], rows, columns, value));
            arrays[0].commit(staged.into(), None)
        }
        Write::Cells { place, cells, apart } => {
            let array = &arrays[place];
            array.commit(halves(&cells, apart).iter().map(|cells| stage_cells(array, cells, value)).collect(), None)
        }
        Write::Delete { place, cells, apart } => {
            let stage = |cells: &BTreeSet<_>| {
                let dims = coordinates(cells);
                arrays[place].stage_delete(&[view(&dims[0]), view(&dims[1])], &Call::default()).unwrap()
            };
            arrays[place].commit(halves(&cells, apart).iter().map(stage).collect(), None)
        }
        Write::Notes { place } => {
            let note = |key: &str| (key.to_owned(), Some(value.to_string()));
            arrays[place].set_metadata(vec![note("upper"), note("lower")])
        }
    }
    .unwrap_or_else(|e| panic!("write {number} of writer {writer} failed: {e}"))
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
    let (found, ..) = array.read(None, None, ReadOrder::Row, &Call::default()).unwrap();
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
    Content { cells, notes }
}

/// Follows the store until the writers are done: versions advance, and a version read twice is the same.
fn follow(world: &World, done: &AtomicBool, reads: &AtomicU64) {
    let (arrays, mut seen) = (world.arrays(false), [0, 0]);
    while !done.load(Ordering::Relaxed) {
        for (array, seen) in arrays.iter().zip(&mut seen) {
            let version = array.refresh().unwrap();
            assert!(version >= *seen, "version {version} after {seen}");
            *seen = version;
            let (first, pinned) = (read(array), array.at(At::Version(version)).unwrap());
            assert_eq!(first, read(&pinned), "version {version} read twice");
            reads.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Merges what it can until the writers are done.
fn consolidate(world: &World, done: &AtomicBool, merges: &AtomicU64) {
    let arrays = world.arrays(true);
    for round in 0.. {
        for array in &arrays {
            if done.load(Ordering::Relaxed) {
                return;
            }
            array.refresh().unwrap();
            let strategy = if round % 8 == 7 { Strategy::All } else { Strategy::Tiered };
            let report = array.consolidate(&strategy, 100_000, false, &Call::default()).unwrap();
            let written = report.merges.iter().filter(|merge| merge.written.is_some()).count();
            merges.fetch_add(written as u64, Ordering::Relaxed);
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Who works on the store beside the writers until they are done, counting what they did. More maintenance is one more
/// entry.
type Keeper = fn(&World, &AtomicBool, &AtomicU64);
const KEEPERS: [(&str, Keeper); 3] = [("reader", follow), ("another reader", follow), ("consolidator", consolidate)];

/// Runs `write` beside the keepers, and gives what it gives. Fails if a keeper had nothing to do.
fn beside_keepers<T>(world: &World, write: impl FnOnce() -> T) -> T {
    let (done, counts) = (AtomicBool::new(false), KEEPERS.map(|_| AtomicU64::new(0)));
    let outcome = std::thread::scope(|scope| {
        for ((_, keeper), count) in KEEPERS.iter().zip(&counts) {
            let done = &done;
            scope.spawn(move || keeper(world, done, count));
        }
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(write));
        done.store(true, Ordering::Relaxed);
        outcome.unwrap_or_else(|e| std::panic::resume_unwind(e))
    });
    for ((name, _), count) in KEEPERS.iter().zip(counts) {
        let count = count.into_inner();
        println!("{name}: {count}");
        assert!(count > 0, "the {name} did nothing");
    }
    outcome
}

/// Checks the end: every write has a version of its own, and the store holds what they come to in that order.
fn check(world: &World, made: Vec<(u64, u64, u64)>, writes: u64) {
    assert_eq!(made.len() as u64, WRITERS * writes, "writes that were acknowledged");
    let by_version: BTreeMap<u64, (u64, u64)> = made.into_iter().map(|(version, w, n)| (version, (w, n))).collect();
    assert_eq!(by_version.len() as u64, WRITERS * writes, "two writes were told the same version");
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
    let changes = by_version.values().collect::<Vec<_>>().windows(2).filter(|w| w[0].0 != w[1].0).count();
    println!("{} versions, {changes} changes of hand", arrays[0].version());
}

#[test]
fn sixteen_threads_of_a_thousand_overlapping_writes() {
    let writes = writes(1_000);
    let world = World::on(Arc::new(MemoryStorage::new()));
    world.create();
    let writer = |writer: u64| {
        let arrays = world.arrays(true);
        (0..writes).map(|n| (commit(&arrays, writer, n), writer, n)).collect::<Vec<_>>()
    };
    let made = beside_keepers(&world, || {
        std::thread::scope(|scope| {
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
                let (arrays, writer) = (world.arrays(true), process * (WRITERS / PROCESSES) + thread);
                for n in 0..writes {
                    say("made", commit(&arrays, writer, n) << 32 | writer << 24 | n);
                }
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
