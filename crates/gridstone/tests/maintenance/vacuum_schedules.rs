//! A vacuum beside writers, a merger and a reader under many schedules, explored by shuttle, which takes control before every
//! operation on the storage. Promised: no commit is lost; a reader sees what was committed up to its version, or that the
//! version has been vacuumed; no file that a kept version needs is removed, and none that nobody needs is left; a lease that is there
//! before a vacuum begins, and until it ends, keeps its version.
//!
//! The log forgets what was committed, so each remembers what it was told: from that follows what every version holds.

use crate::support::store::nothing_is_left;
use crate::support::writers::{ARRAY, World};
use gridstone::base::{ErrorKind, Id, NeverCancel, Result, Silent};
use gridstone::maintain::{Keep, VacuumOptions, VacuumReport, vacuum};
use gridstone::storage::{HookedStorage, LEASE, MemoryStorage, Storage, lease_name};
use gridstone::store::{Changes, Lease, MergeRules, Snapshot, StandardRules, Store};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Who works on a store at once, a thread each; and a merger and a reader.
#[derive(Debug)]
struct Cast {
    writers: usize,
    /// Commits of each writer.
    commits: usize,
    /// Whether what they write lies in files of its own, which a vacuum may condemn before they are committed.
    filed: bool,
    /// Whether they commit after version 1 each time, as if they had slept since.
    asleep: bool,
    merges: usize,
    /// How often others come before one more, who holds a lease all the time, lets go of it; 0: there is no such one.
    patience: usize,
    /// How many versions each vacuum keeps, time after time.
    vacuums: &'static [&'static [u64]],
    fold_versions: u64,
}

/// What a commit did to the array.
#[derive(Debug)]
enum Did {
    Add(Id),
    Merge(Id, [Id; 2]),
}

/// Commits by version.
type Told = BTreeMap<u64, Did>;

/// A version, and what was seen of it.
type Sight = (u64, Vec<Id>);

/// What was committed up to `version`, by ascending order.
fn held_at(told: &Told, version: u64) -> Vec<Id> {
    let mut held = Vec::new();
    for did in told.range(..=version).map(|(_, did)| did) {
        match did {
            Did::Add(id) => held.push(*id),
            Did::Merge(id, [a, b]) => {
                // It has the order of the newer one.
                *held.iter_mut().find(|held| *held == b).unwrap() = *id;
                held.retain(|held| held != a);
            }
        }
    }
    held
}

/// How often what a test is about has happened, in all schedules.
#[derive(Debug, Default)]
struct Seen {
    raised: AtomicU64,
    removed: AtomicU64,
    expired: AtomicU64,
    settled: AtomicU64,
    refused: AtomicU64,
    merged: AtomicU64,
    /// Leases without which their versions would have gone.
    leased: AtomicU64,
}

fn count(of: &AtomicU64, more: u64) {
    of.fetch_add(more, Ordering::Relaxed);
}

/// What `look` finds in `snapshot`; `None` if the version has been vacuumed. Nothing else may be amiss.
fn settling<T>(
    (store, seen): (&Store, &Seen),
    snapshot: &Arc<Snapshot>,
    look: impl Fn(&Snapshot) -> Result<T>,
) -> Option<T> {
    match store.settling(snapshot, look) {
        Ok((settled, found)) => {
            count(&seen.settled, u64::from(!Arc::ptr_eq(&settled, snapshot)));
            Some(found)
        }
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::SnapshotExpired, "{e}");
            count(&seen.expired, 1);
            None
        }
    }
}

/// One of the cast at work.
#[derive(Clone)]
struct Player {
    cast: &'static Cast,
    world: World,
    /// The same world, for looks at it that no schedule comes between.
    still: World,
    one: Arc<Snapshot>,
    seen: Arc<Seen>,
}

impl Player {
    /// Commits; a conflict is what may come of what a vacuum or another merge has taken.
    fn commit(&self, store: &Store, base: &Arc<Snapshot>, changes: Changes, may_fail: bool) -> Option<Arc<Snapshot>> {
        match store.commit(base, changes, &mut StandardRules) {
            Ok(next) => Some(next),
            Err(e) => {
                assert!(may_fail && e.kind() == ErrorKind::Conflict, "{e}");
                None
            }
        }
    }

    fn write(&self) -> Told {
        let (store, mut snapshot, mut told) = (self.world.store(), Arc::clone(&self.one), Told::new());
        for _ in 0..self.cast.commits {
            let (id, changes) = if self.cast.filed { self.world.filed_addition() } else { self.world.addition() };
            let Some(next) = self.commit(&store, &snapshot, changes, self.cast.filed) else {
                count(&self.seen.refused, 1);
                continue;
            };
            told.insert(next.version(), Did::Add(id));
            if let Some((version, held)) = self.look(&store, &next) {
                assert_eq!(held.last(), Some(&id), "version {version} of {told:?}");
            }
            snapshot = if self.cast.asleep { Arc::clone(&self.one) } else { next };
        }
        told
    }

    fn merge(&self) -> Told {
        let (store, mut snapshot, mut told) = (self.world.store(), Arc::clone(&self.one), Told::new());
        for _ in 0..self.cast.merges {
            snapshot = store.refresh(&snapshot).unwrap();
            let mut lease = leased(&store, &snapshot);
            let planned = settling((&store, &self.seen), &snapshot, |snapshot| self.world.mergers(snapshot));
            let planned = planned.unwrap_or_default();
            let orders = planned.iter().map(|(_, [a, b], _)| (a.order, b.order));
            let mut rules = MergeRules::new(ARRAY, &snapshot, orders);
            for (turn, (id, of, changes)) in planned.into_iter().enumerate() {
                // As a consolidation does between merges: the new lease is there before the old one goes.
                if lease.0 != rules.seen().version() {
                    let (_, old) = std::mem::replace(&mut lease, leased(&store, rules.seen()));
                    store.storage().delete(&old).unwrap();
                }
                // What it cannot look at the commit finds anew.
                if rules.begin(turn, of.to_vec()).is_err_and(|e| e.kind() == ErrorKind::Conflict) {
                    continue;
                }
                let seen = Arc::clone(rules.seen());
                match store.commit(&seen, changes, &mut rules) {
                    Ok(next) => {
                        count(&self.seen.merged, 1);
                        told.insert(next.version(), Did::Merge(id, of.map(|removed| removed.id)));
                        rules.committed(next);
                    }
                    // A vacuum may have begun before the lease was there.
                    Err(e) => assert!([ErrorKind::Conflict, ErrorKind::SnapshotExpired].contains(&e.kind()), "{e}"),
                }
            }
            snapshot = Arc::clone(rules.seen());
            store.storage().delete(&lease.1).unwrap();
        }
        told
    }

    /// Follows the store and opens its oldest version; gives all that was opened, for a look in the end, and what it saw of
    /// each version.
    fn read(&self) -> (Vec<Arc<Snapshot>>, Vec<Sight>) {
        let (store, mut opened) = (self.world.store(), vec![Arc::clone(&self.one)]);
        for _ in 0..2 {
            opened.push(store.refresh(opened.last().unwrap()).unwrap());
            if let Some(floor) = store.floor().unwrap() {
                match store.at_version(floor.version) {
                    Ok(oldest) => opened.insert(0, oldest),
                    Err(e) => {
                        assert_eq!(e.kind(), ErrorKind::SnapshotExpired, "{e}");
                        assert_ne!(store.floor().unwrap(), Some(floor), "the floor has not moved: {e}");
                    }
                }
            }
        }
        let seen = opened.iter().filter_map(|snapshot| self.look(&store, snapshot)).collect();
        (opened, seen)
    }

    /// Holds a lease on the newest version for a while.
    fn hold(&self) {
        let store = self.world.store();
        let (_, name) = leased(&store, &store.refresh(&self.one).unwrap());
        (0..self.cast.patience).for_each(|_| shuttle::thread::yield_now());
        store.storage().delete(&name).unwrap();
    }

    /// The version of `snapshot`, and what it holds; `None` if it has been vacuumed.
    fn look(&self, store: &Store, snapshot: &Arc<Snapshot>) -> Option<Sight> {
        let held = settling((store, &self.seen), snapshot, |snapshot| self.world.read_all(snapshot));
        held.map(|held| (snapshot.version(), held))
    }

    /// The floor, the newest version and the versions of leases by name, as they are at this moment.
    fn standing(&self) -> (u64, u64, BTreeMap<String, u64>) {
        let (store, storage) = (self.still.store(), self.still.storage());
        let lease = |name: String| {
            let version = Lease::decode(&storage.read_all(&name).unwrap()).unwrap().version;
            (name, version)
        };
        let floor = store.floor().unwrap().map_or(1, |floor| floor.version);
        let leases = storage.list(LEASE).unwrap().into_iter().map(lease).collect();
        (floor, store.latest().unwrap().version(), leases)
    }

    /// Whether a vacuum kept what `leases` named before it began, if that was not below `floor`, the floor then. Without leases it
    /// would have kept what is not below `wanted`.
    fn check_leases(&self, leases: &BTreeMap<String, u64>, floor: u64, wanted: u64) {
        let (now, _, left) = self.standing();
        for (name, version) in leases.iter().filter(|(name, version)| left.contains_key(*name) && **version >= floor) {
            assert!(now <= *version, "{name} holds version {version}, the floor rose from {floor} to {now}");
            count(&self.seen.leased, u64::from(*version < wanted));
        }
    }

    /// Vacuums; the versions that it made.
    fn vacuum(&self, keeps: &[u64]) -> Vec<u64> {
        let store = self.world.store();
        let mut made = Vec::new();
        for keep in keeps {
            let (floor, newest, leases) = self.standing();
            match vacuumed(&store, *keep) {
                Ok(report) => {
                    // Another vacuum may have begun before they were there.
                    let held = if self.cast.vacuums.len() == 1 { leases } else { BTreeMap::new() };
                    self.check_leases(&held, floor, newest.saturating_sub(*keep) + 1);
                    count(&self.seen.raised, u64::from(report.oldest > report.oldest_before));
                    count(&self.seen.removed, report.data.objects + report.manifest.objects);
                    made.extend(report.committed);
                }
                Err(e) => assert!(self.cast.vacuums.len() > 1 && e.kind() == ErrorKind::Conflict, "{e}"),
            }
        }
        made
    }
}

/// Writes a lease on the version of `snapshot`, by the clock that vacuums go by; that version, and the name of the lease.
fn leased(store: &Store, snapshot: &Snapshot) -> (u64, String) {
    let (version, now) = (snapshot.version(), store.now_us());
    let lease = Lease { version, written_us: now, expires_us: now + 60_000_000 };
    let name = lease_name(store.fresh_id());
    store.storage().put_hint(&name, &lease.encode().unwrap()).unwrap();
    (version, name)
}

/// Without a safety age: files of commits under way are fair game.
fn vacuumed(store: &Store, keep: u64) -> Result<VacuumReport> {
    let options = VacuumOptions { keep: Keep::Versions(keep), safety_us: 0, dry_run: false };
    vacuum(store, &options, &NeverCancel, &Silent)
}

fn play(cast: &'static Cast, seen: &Arc<Seen>) {
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let storage = HookedStorage::new(Arc::clone(&memory), |_, _| shuttle::thread::yield_now());
    let world = World::new(Arc::new(storage), cast.fold_versions);
    let still = world.through(memory);
    let one = world.create().unwrap();
    let player = || {
        let (world, still) = (world.clone(), still.clone());
        Player { cast, world, still, one: Arc::clone(&one), seen: Arc::clone(seen) }
    };
    let write = |player: Player| shuttle::thread::spawn(move || player.write());
    let mut authors: Vec<_> = (0..cast.writers).map(|_| write(player())).collect();
    let (merger, reader) = (player(), player());
    authors.push(shuttle::thread::spawn(move || merger.merge()));
    let reader = shuttle::thread::spawn(move || reader.read());
    let holder = player();
    let holder = (cast.patience > 0).then(|| shuttle::thread::spawn(move || holder.hold()));
    let start = |(player, keeps): (Player, &'static [u64])| shuttle::thread::spawn(move || player.vacuum(keeps));
    let vacuums: Vec<_> = cast.vacuums.iter().map(|keeps| start((player(), keeps))).collect();
    let mut told = Told::new();
    for (version, did) in authors.into_iter().flat_map(|thread| thread.join().unwrap()) {
        assert!(told.insert(version, did).is_none(), "two commits were told the same version");
    }
    let upkeep: Vec<u64> = vacuums.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    let (opened, seen) = reader.join().unwrap();
    holder.into_iter().for_each(|thread| thread.join().unwrap());
    let late = opened.iter().filter_map(|snapshot| player().look(&world.store(), snapshot));
    for (version, held) in seen.into_iter().chain(late) {
        assert_eq!(held, held_at(&told, version), "version {version} of {told:?}");
    }
    check(&player(), &told, &upkeep);
}

/// Every version that is kept holds what was committed up to it; then all but the newest goes.
fn check(player: &Player, told: &Told, upkeep: &[u64]) {
    let (store, world) = (player.world.store(), &player.world);
    let newest = store.latest().unwrap().version();
    assert_eq!(newest as usize, 1 + told.len() + upkeep.len(), "{told:?}, vacuums: {upkeep:?}");
    let floor = store.floor().unwrap().map_or(1, |floor| floor.version);
    for version in 1..=newest {
        match store.at_version(version) {
            Ok(snapshot) => {
                let held = world.read_all(&snapshot).unwrap_or_else(|e| panic!("version {version} of {told:?}: {e}"));
                assert!(version >= floor && held == held_at(told, version), "version {version} of {told:?}: {held:?}");
            }
            Err(e) => assert!(version < floor && e.kind() == ErrorKind::SnapshotExpired, "version {version}: {e}"),
        }
    }
    vacuumed(&store, 1).unwrap();
    nothing_is_left(world.storage(), "in the end");
    let last = world.store().latest().unwrap();
    assert_eq!(world.read_all(&last).unwrap(), held_at(told, newest));
}

/// Plays so many schedules; in some of them the floor rose, files went, and readers were told so.
fn explore(cast: &'static Cast, schedules: usize) -> Arc<Seen> {
    let seen = Arc::new(Seen::default());
    let shared = Arc::clone(&seen);
    shuttle::check_random(move || play(cast, &shared), schedules);
    println!("{seen:?}");
    assert!(seen.merged.load(Ordering::Relaxed) > 5, "{seen:?}");
    for figure in [&seen.raised, &seen.removed] {
        assert!(figure.load(Ordering::Relaxed) > schedules as u64 / 2, "{seen:?}");
    }
    seen
}

const USUAL: Cast = Cast {
    writers: 2,
    commits: 2,
    filed: false,
    asleep: false,
    merges: 2,
    patience: 0,
    vacuums: &[&[2, 1]],
    fold_versions: 64,
};

#[test]
fn a_vacuum_without_folds() {
    let seen = explore(&USUAL, 1_000);
    assert!(seen.settled.load(Ordering::Relaxed) > 0, "{seen:?}");
}

#[test]
fn a_vacuum_where_everybody_folds() {
    let seen = explore(const { &Cast { vacuums: &[&[1, 1]], fold_versions: 1, ..USUAL } }, 1_000);
    assert!(seen.expired.load(Ordering::Relaxed) > 0, "{seen:?}");
}

/// Whoever holds a lease when a vacuum begins, and until it ends, keeps the version.
#[test]
fn a_vacuum_beside_a_lease() {
    let seen = explore(const { &Cast { patience: 120, vacuums: &[&[1, 1, 1]], fold_versions: 3, ..USUAL } }, 1_000);
    assert!(seen.leased.load(Ordering::Relaxed) > 100, "{seen:?}");
}

#[test]
fn two_vacuums_and_folds_now_and_then() {
    explore(const { &Cast { vacuums: &[&[1, 2], &[2, 1]], fold_versions: 3, ..USUAL } }, 1_000);
}

/// What slept through a vacuum is committed at the end.
#[test]
fn a_vacuum_beside_writers_that_sleep() {
    explore(const { &Cast { commits: 3, asleep: true, vacuums: &[&[1, 1]], fold_versions: 2, ..USUAL } }, 1_000);
}

/// A file of a commit under way may be condemned first: the commit is refused then, and else stands.
#[test]
fn a_vacuum_beside_writers_of_files() {
    let seen = explore(const { &Cast { writers: 3, filed: true, merges: 1, fold_versions: 3, ..USUAL } }, 1_000);
    assert!(seen.refused.load(Ordering::Relaxed) > 0, "{seen:?}");
}

/// What somebody else does to `world`, all at once: three commits, a file that nobody needs, and a vacuum that keeps so many versions:
/// one, with records of commits that may be under way, or all, where even young files are taken for unneeded.
fn overtake(world: &World, keep: u64) {
    let store = world.store();
    let mut newest = store.latest().unwrap();
    for _ in 0..3 {
        newest = store.commit(&newest, world.addition().1, &mut StandardRules).unwrap();
    }
    let _unneeded = world.filed_addition();
    let safety_us = if keep == 1 { 3_600_000_000 } else { 0 };
    let options = VacuumOptions { keep: Keep::Versions(keep), safety_us, dry_run: false };
    let report = vacuum(&store, &options, &NeverCancel, &Silent).unwrap();
    assert!(report.committed.is_some() && (report.oldest > report.oldest_before) == (keep == 1), "{report:?}");
}

/// What is done in a world that others work on, after its version 1; the second world is the same without them.
type Act<'a> = dyn Fn(&World, &Arc<Snapshot>, &World) + 'a;

/// Does `act` after version 1 of a store that is a few versions on. Before the operations of these numbers others overtake it, and
/// their vacuums keep so many versions: one, or all. Says how often that was. The second world is the same without that.
fn overtaken(before: [(u64, u64); 2], act: &Act<'_>) -> u64 {
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let world = World::new(Arc::clone(&memory), 2).timely();
    let one = world.create().unwrap();
    overtake(&world, before[0].1);
    let (operations, times) = (AtomicU64::new(0), Arc::new(AtomicU64::new(0)));
    let (others, counted) = (world.clone(), Arc::clone(&times));
    let hook = move |_, _: &str| {
        let number = operations.fetch_add(1, Ordering::Relaxed);
        if let Some((_, keep)) = before.iter().find(|(at, _)| *at == number) {
            counted.fetch_add(1, Ordering::Relaxed);
            overtake(&others, *keep);
        }
    };
    act(&world.through(Arc::new(HookedStorage::new(memory, hook))), &one, &world);
    times.load(Ordering::Relaxed)
}

/// Others commit and vacuum before any operation of a commit, of following and of opening, and before any second one: each comes
/// to its end, whatever was taken away under it.
#[test]
fn a_vacuum_before_any_two_operations() {
    let committed = |world: &World, base: &Arc<Snapshot>, quiet: &World| {
        let (id, changes) = world.addition();
        let next = world.store().commit(base, changes, &mut StandardRules).unwrap();
        let store = quiet.store();
        let newest = store.latest().unwrap();
        let held = quiet.read_all(&newest).unwrap();
        assert_eq!(held.iter().filter(|held| **held == id).count(), 1, "once, not twice and not never");
        // Version 1 and those of vacuums add nothing.
        assert!(newest.version() >= next.version() && newest.version() > held.len() as u64);
        if let Some(held) = settling((&store, &Seen::default()), &next, |next| quiet.read_all(next)) {
            assert_eq!(held.last(), Some(&id));
        }
    };
    let seen = |found: &Arc<Snapshot>, quiet: &World| {
        let held = settling((&quiet.store(), &Seen::default()), found, |found| quiet.read_all(found));
        assert!(found.version() > 1 && held.is_none_or(|held| held.len() as u64 >= found.version() / 2));
    };
    let acts: [&Act<'_>; 4] = [
        &|world, one, quiet| committed(world, one, quiet),
        &|world, _, quiet| committed(world, &world.store().latest().unwrap(), quiet),
        &|world, one, quiet| seen(&world.store().refresh(one).unwrap(), quiet),
        &|world, _, quiet| seen(&world.store().latest().unwrap(), quiet),
    ];
    for (act, keeps) in acts.iter().flat_map(|act| [[1, 1], [ALL, 1]].map(|keeps| (act, keeps))) {
        let (mut first, mut pairs) = (0, 0);
        while overtaken([(first, keeps[0]), (u64::MAX, 1)], act) > 0 {
            let both = |second: &u64| overtaken([(first, keeps[0]), (*second, keeps[1])], act) == 2;
            pairs += (first + 1..).take_while(both).count();
            first += 1;
        }
        println!("{keeps:?}: {first} operations, {pairs} pairs");
        assert!(first > 3 && pairs > 10, "{keeps:?}: {first} operations, {pairs} pairs");
    }
}

/// More versions than there are.
const ALL: u64 = 1_000;
