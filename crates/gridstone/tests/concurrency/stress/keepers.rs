//! Who works on the store beside the writers: readers, a consolidator, a vacuum, and one that sleeps.

use super::writes::{prepare, seen, stage_cells, token};
use super::{GAVE_UP, HALF, Made, REFUSED, SLEEPER, STOPS, World, is_expired};
use crate::support::store::options;
use gridstone::base::ErrorKind;
use gridstone::engine::{At, Call, Keep, Strategy, VacuumOptions, commit_receipts_on};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::Duration;

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
        let version =
            prepared.commit(world, &arrays).unwrap_or_else(|e| panic!("a write prepared at {asleep} failed: {e}"));
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
pub(super) fn beside_keepers(world: &World, write: impl FnOnce() -> Vec<Made>) -> Vec<Made> {
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
