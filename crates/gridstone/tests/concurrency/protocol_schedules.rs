//! The commit protocol where nothing can be relied on but the storage's conditions: answers go astray, puts land after their senders were told of
//! an error, clocks are wrong by days, and a vacuum forgets what it may. Explored by shuttle, which takes control before every operation.
//!
//! Promised: what was acknowledged is there; what was refused never comes; of what is unknown nothing is deleted, so that it is there whole or
//! not at all; no change is there twice; the log opens.

use crate::support::writers::World;
use gridstone::base::{Clock, ErrorKind, Id, NeverCancel, Silent};
use gridstone::maintain::{Keep, VacuumOptions, vacuum};
use gridstone::storage::{HookedStorage, MemoryStorage, Storage, Stray, StrayStorage};
use gridstone::store::{Snapshot, StandardRules};
use shuttle::rand::{Rng, thread_rng};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

const HOUR_US: i64 = 3_600_000_000;

/// The storage's clock, as far off as a machine's may be.
#[derive(Debug)]
struct Clockwork {
    storage_us: Arc<AtomicI64>,
    off_us: i64,
}

impl Clock for Clockwork {
    fn now_us(&self) -> i64 {
        self.storage_us.load(Ordering::Relaxed) + self.off_us
    }
}

/// What is done to a cast of writers.
#[derive(Debug, Clone, Copy)]
struct Weather {
    writers: usize,
    commits: usize,
    /// Whether fragments lie in files of their own.
    filed: bool,
    /// Of how many reads of the log one goes astray; 0: none does.
    stray_one_in: u32,
    /// Of how many puts into the log one is late; 0: none is.
    late_one_in: u32,
    vacuums: usize,
    /// By how many hours the storage's clock jumps between two vacuums.
    jump_hours: i64,
    fold_versions: u64,
    /// Whether each commit hides those before it, which vacuums then take out.
    covering: bool,
}

/// How often what the test is about has happened, in all schedules.
#[derive(Debug, Default)]
struct Seen {
    astray: AtomicU64,
    landed: AtomicU64,
    unknown: AtomicU64,
    committed: AtomicU64,
    raised: AtomicU64,
}

fn count(of: &AtomicU64) {
    of.fetch_add(1, Ordering::Relaxed);
}

/// What a writer was told of its fragments.
#[derive(Debug, Default)]
struct Told {
    committed: BTreeSet<Id>,
    /// The last version that has one of them.
    version: u64,
    refused: BTreeSet<Id>,
    unknown: BTreeSet<Id>,
}

/// One of a cast, with a clock of its own, behind a network.
#[derive(Clone)]
struct Writer {
    world: World,
    weather: Weather,
    seen: Arc<Seen>,
}

impl Writer {
    fn write(&self, one: &Arc<Snapshot>) -> Told {
        let (store, mut told, mut base) = (self.world.store(), Told::default(), Arc::clone(one));
        for _ in 0..self.weather.commits {
            let (id, changes) = if self.weather.filed { self.world.filed_addition() } else { self.world.addition() };
            match store.commit(&base, changes, &mut StandardRules) {
                Ok(next) => {
                    told.committed.insert(id);
                    told.version = next.version();
                    base = next;
                    count(&self.seen.committed);
                }
                Err(e) if e.kind() == ErrorKind::CommitUnknown => {
                    told.unknown.insert(id);
                    count(&self.seen.unknown);
                }
                // Answers that went astray elsewhere than after a put, and files that a vacuum has condemned.
                Err(_) => {
                    told.refused.insert(id);
                }
            }
        }
        told
    }
}

fn stray(one_in: u32, seen: &Seen, name: &str) -> Option<Stray> {
    if one_in == 0 || !name.starts_with("_log/") || !thread_rng().gen_ratio(1, one_in) {
        return None;
    }
    count(&seen.astray);
    let kinds = [Stray::Refused, Stray::Missing, Stray::Rubbish, Stray::Failed, Stray::Unknown, Stray::Newer];
    Some(kinds[thread_rng().gen_range(0..kinds.len())])
}

fn explore(weather: Weather, schedules: usize) -> Arc<Seen> {
    let seen = Arc::new(Seen::default());
    let all = Arc::clone(&seen);
    shuttle::check_random(move || play(weather, &seen), schedules);
    all
}

fn play(weather: Weather, seen: &Arc<Seen>) {
    let storage_us = Arc::new(AtomicI64::new(1 << 50));
    let clock = |off_us| Arc::new(Clockwork { storage_us: Arc::clone(&storage_us), off_us });
    let memory = MemoryStorage::new().with_clock(clock(0));
    let hooked: Arc<dyn Storage> =
        Arc::new(HookedStorage::new(Arc::new(memory.clone()), |_, _| shuttle::thread::yield_now()));
    let mut still = World::new(Arc::new(memory.clone()), weather.fold_versions).dated(clock(0));
    if weather.covering {
        still = still.covering();
    }
    let one = still.create().unwrap();
    let world = still.through(Arc::clone(&hooked));
    let networks: Vec<StrayStorage> = (0..weather.writers)
        .map(|_| {
            let (reads, one_in) = (Arc::clone(seen), weather.stray_one_in);
            let late = move |name: &str| {
                weather.late_one_in > 0 && name.starts_with("_log/0") && thread_rng().gen_ratio(1, weather.late_one_in)
            };
            StrayStorage::new(Arc::clone(&hooked), move |name| stray(one_in, &reads, name), late)
        })
        .collect();
    let done = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = networks
        .iter()
        .zip([0, 30 * HOUR_US, -30 * HOUR_US, 2 * HOUR_US].into_iter().cycle())
        .map(|(network, off_us)| {
            let world = world.through(Arc::new(network.clone())).dated(clock(off_us));
            let (writer, one) = (Writer { world, weather, seen: Arc::clone(seen) }, Arc::clone(&one));
            shuttle::thread::spawn(move || writer.write(&one))
        })
        .collect();
    let lander = {
        let (networks, done, seen) = (networks.clone(), Arc::clone(&done), Arc::clone(seen));
        shuttle::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                shuttle::thread::yield_now();
                land(&networks, &seen);
            }
        })
    };
    let keeper = {
        let (world, seen, storage_us) = (world.clone(), Arc::clone(seen), Arc::clone(&storage_us));
        let still = still.clone();
        shuttle::thread::spawn(move || {
            let mut sights = Vec::new();
            for _ in 0..weather.vacuums {
                sights.push(fragments(&still));
                keep_one(&world, &seen);
                sights.push(fragments(&still));
                storage_us.fetch_add(weather.jump_hours * HOUR_US, Ordering::Relaxed);
            }
            sights
        })
    };
    let told: Vec<Told> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
    let mut sights = keeper.join().unwrap();
    done.store(true, Ordering::Relaxed);
    lander.join().unwrap();
    while land(&networks, seen) {}
    sights.push(fragments(&still));
    check_sights(&sights, &told);
    if !weather.covering {
        check(&still, &told);
    }
}

/// The fragments of the newest version, and the version that the newest of them was committed as.
fn fragments(world: &World) -> (Vec<Id>, u64) {
    let newest = world.store().latest().unwrap();
    let all = newest.array("/").unwrap().fragments(None).unwrap();
    (world.read_all(&newest).unwrap(), all.last().map_or(0, |d| d.order.version))
}

/// Seen one after the other: what has gone stays away, what was refused never comes, and what was acknowledged last is not below the end.
fn check_sights(sights: &[(Vec<Id>, u64)], told: &[Told]) {
    let mut gone = BTreeSet::new();
    for (before, after) in sights.iter().zip(&sights[1..]) {
        gone.extend(before.0.iter().filter(|id| !after.0.contains(id)).copied());
        let back: Vec<&Id> = after.0.iter().filter(|id| gone.contains(id)).collect();
        assert!(back.is_empty(), "committed twice: {back:?}");
    }
    for (found, _) in sights {
        assert!(told.iter().all(|one| found.iter().all(|id| !one.refused.contains(id))), "refused, and there");
    }
    let (_, last) = sights.last().unwrap();
    assert!(told.iter().all(|one| one.version <= *last), "an acknowledged version is hidden by an earlier one");
}

/// Lets late puts take effect; says whether there was one.
fn land(networks: &[StrayStorage], seen: &Seen) -> bool {
    let landed = networks.iter().filter_map(StrayStorage::land).count();
    seen.landed.fetch_add(landed as u64, Ordering::Relaxed);
    landed > 0
}

/// A vacuum that keeps a version; the records that it leaves are those that are young by the storage's clock.
fn keep_one(world: &World, seen: &Seen) {
    let options = VacuumOptions { keep: Keep::Versions(1), safety_us: 24 * HOUR_US, dry_run: false };
    match vacuum(&world.store(), &options, &NeverCancel, &Silent) {
        Ok(report) if report.oldest > report.oldest_before => count(&seen.raised),
        Ok(_) => {}
        Err(e) => assert_eq!(e.kind(), ErrorKind::Conflict, "{e}"),
    }
}

/// What there is in the end is what was told.
fn check(world: &World, told: &[Told]) {
    let newest = world.store().latest().unwrap();
    let found = world.read_all(&newest).unwrap();
    let distinct: BTreeSet<Id> = found.iter().copied().collect();
    assert_eq!(distinct.len(), found.len(), "a change is there twice");
    for one in told {
        assert!(one.committed.is_subset(&distinct), "lost: {:?}", one.committed.difference(&distinct));
        assert!(one.refused.is_disjoint(&distinct), "refused, and there: {:?}", one.refused);
    }
    let known = |id: &Id| told.iter().any(|one| one.committed.contains(id) || one.unknown.contains(id));
    assert!(distinct.iter().all(known));
    world.write(newest, 1);
}

const CALM: Weather = Weather {
    writers: 2,
    commits: 2,
    filed: false,
    stray_one_in: 0,
    late_one_in: 0,
    vacuums: 0,
    jump_hours: 0,
    fold_versions: 64,
    covering: false,
};

fn often(of: &AtomicU64) -> bool {
    of.load(Ordering::Relaxed) > 50
}

#[test]
fn stray_answers() {
    let seen = explore(Weather { stray_one_in: 6, ..CALM }, 1_500);
    assert!(often(&seen.astray) && often(&seen.unknown) && often(&seen.committed), "{seen:?}");
}

#[test]
fn late_effects() {
    for filed in [false, true] {
        let seen = explore(Weather { late_one_in: 3, writers: 3, filed, ..CALM }, 1_000);
        let unknown = seen.unknown.load(Ordering::Relaxed);
        assert!(often(&seen.landed) && unknown > 0 && often(&seen.committed), "{seen:?}");
    }
}

#[test]
fn vacuums_while_hours_pass() {
    let weather = Weather { vacuums: 3, jump_hours: 2, writers: 2, commits: 3, fold_versions: 2, ..CALM };
    for covering in [false, true] {
        let seen = explore(Weather { covering, ..weather }, 800);
        assert!(often(&seen.raised) && often(&seen.committed), "{seen:?}");
    }
}

#[test]
fn late_effects_while_hours_pass() {
    let weather = Weather { vacuums: 3, jump_hours: 2, late_one_in: 2, commits: 2, covering: true, ..CALM };
    let seen = explore(Weather { fold_versions: 2, ..weather }, 1_500);
    assert!(often(&seen.raised) && often(&seen.landed) && often(&seen.committed), "{seen:?}");
}

#[test]
fn all_weathers_at_once() {
    let weather =
        Weather { stray_one_in: 12, late_one_in: 6, vacuums: 3, jump_hours: 2, filed: true, fold_versions: 3, ..CALM };
    for covering in [false, true] {
        let seen = explore(Weather { covering, ..weather }, 1_000);
        assert!(often(&seen.astray) && often(&seen.landed) && often(&seen.unknown) && often(&seen.raised), "{seen:?}");
    }
}
