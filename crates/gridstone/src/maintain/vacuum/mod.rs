//! Vacuum: forgets versions that are no longer needed, and deletes the files that only they named.
//!
//! 1. Folders are listed. Files that earlier vacuums condemned and left behind are deleted, and so is what lies below
//!    the published floor. So a full disk gets room before anything is written to it.
//! 2. Fragments of the newest version that newer ones hide are removed, in a version of its own ([`super::plan`]).
//!    Folders are listed again then.
//! 3. The floor is chosen: the least version that must stay because of its age or number, a tag, or a lease.
//! 4. A root of exactly that version is written, unless it exists, made durable and read back.
//! 5. Files that no version from the floor on names are deleted in three cases: a version below the floor named them,
//!    they were condemned before, or they are older than the safety age.
//! 6. They are committed as `condemn`, together with the floor. From here on no commit can use them: one that tries
//!    gets a conflict. A file that another commit named first leaves the list. If a tag or another vacuum came first,
//!    the vacuum starts again.
//! 7. The floor is published, durably. From here on versions below it cannot be opened.
//! 8. The condemned files are deleted, then records below the floor, except young ones.
//!
//! The current time is that of the storage's own clock, by which it dates objects: this machine's clock decides
//! nothing. If a vacuum is interrupted, the next one finds the rest: before step 6 as unnamed files, after it as
//! condemned ones, with the floor to publish in the state. Memory: ids of the named files, and of the existing ones.

mod deletion;
mod fate;
mod floor;
mod forget;
mod listing;
mod report;
mod spare;

pub use forget::forget;
pub use report::{Holder, Tally, VacuumReport};

use super::plan::{HIDDEN_BYTES_MAX, hidden};
use crate::base::{Cancel, Detail, Error, ErrorKind, Id, Level, Progress, Result};
use crate::storage::{DATA, LEASE, LOG, MANIFEST, data_name, log_name, manifest_name};
use crate::store::{
    ArrayState, Changes, Condemned, Floor, HiddenRules, Names, Node, Operation, RECORD_GRACE_US, Removed, Retained,
    RootRef, Snapshot, Store,
};
use deletion::Deletion;
use fate::{Going, fate};
use listing::{File, Listing};
use spare::Spare;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How often a vacuum starts again because another commit came first.
const ATTEMPTS: usize = 8;

/// Which versions must stay; the newest always does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Those that were the newest at some moment of the last so many microseconds, by the storage's times of their
    /// records.
    AgeUs(i64),
    /// As many of the newest ones. Versions made only by a vacuum do not count; nor do, if several versions stay, those
    /// that only removed hidden fragments.
    Versions(u64),
}

/// The options of a vacuum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VacuumOptions {
    /// Which versions must stay.
    pub keep: Keep,
    /// The age up to which unnamed files are kept; records of forgotten versions are kept for an hour. A writer may be
    /// about to commit the files, or need the records. With 0 nothing is kept, and no writer may be active.
    pub safety_us: i64,
    /// Whether to report only what would be done.
    pub dry_run: bool,
}

/// Vacuums the store.
///
/// # Errors
/// Input (impossible options), Corruption (a record, root or page needed to find the named files), Storage (the message
/// says how much was deleted before), Cancelled. Wherever it stops, every kept version reads as before, and the next
/// vacuum continues.
pub fn vacuum(
    store: &Store,
    options: &VacuumOptions,
    cancel: &dyn Cancel,
    progress: &dyn Progress,
) -> Result<VacuumReport> {
    check(options)?;
    let begun_us = store.begun_us();
    let (mut overtaken, mut report) = (None, VacuumReport::default());
    for _ in 0..ATTEMPTS {
        cancel.check()?;
        let (published, newest) = (store.floor()?, store.latest()?);
        let attempt = Attempt { store, options, cancel, progress };
        match attempt.run(published, Arc::clone(&newest), &mut report) {
            Err(e) if matches!(e.kind(), ErrorKind::Conflict | ErrorKind::SnapshotExpired) => overtaken = Some(e),
            Err(e) if e.may_be_missing() && is_overtaken(store, published, &newest)? => overtaken = Some(e),
            outcome => {
                outcome.map_err(|e| told(e, report.freed()))?;
                tell(store, options, &report, ("vacuumed", begun_us));
                return Ok(report);
            }
        }
    }
    Err(overtaken
        .unwrap_or_else(|| Error::conflict("the store changes faster than it can be vacuumed; try again later")))
}

/// Tells the caller's log what was deleted.
fn tell(store: &Store, options: &VacuumOptions, report: &VacuumReport, (what, begun_us): (&'static str, Option<i64>)) {
    if options.dry_run {
        return;
    }
    store.tell((Level::Info, "vacuum", what), || {
        let (freed, seconds) = (report.freed(), store.seconds_since(begun_us));
        vec![
            ("version", Detail::Number(report.committed.unwrap_or(report.newest))),
            ("oldest", Detail::Number(report.oldest)),
            ("versions", Detail::Number(report.oldest.saturating_sub(report.oldest_before))),
            ("objects", Detail::Number(freed.objects)),
            ("bytes", Detail::Number(freed.bytes)),
            ("seconds", Detail::Seconds(seconds)),
        ]
    });
}

/// An error of the storage, with the amount deleted before it.
fn told(error: Error, freed: Tally) -> Error {
    match error.kind() {
        ErrorKind::Storage if freed.objects > 0 => error.context(format!(
            "the vacuum was not finished, though it has deleted at least {} objects of {} bytes; another one goes on",
            freed.objects, freed.bytes
        )),
        _ => error,
    }
}

/// Whether another vacuum has run since, which may have deleted objects read before, or a root just written.
fn is_overtaken(store: &Store, published: Option<Floor>, newest: &Snapshot) -> Result<bool> {
    if store.floor()? != published {
        return Ok(true);
    }
    let mut since = store.history(newest.version().saturating_add(1), u64::MAX)?;
    Ok(since.any(|record| record.is_ok_and(|record| record.is_upkeep())))
}

fn check(options: &VacuumOptions) -> Result<()> {
    match options.keep {
        Keep::Versions(0) => Err(Error::input("a vacuum keeps at least 1 version; the newest always stays")),
        Keep::AgeUs(age) if age < 0 => Err(Error::input("versions are kept for an age of 0 or more")),
        _ if options.safety_us < 0 => Err(Error::input("the safety age is 0 or more")),
        _ => Ok(()),
    }
}

/// One try, from the listing to the last deletion.
struct Attempt<'a> {
    store: &'a Store,
    options: &'a VacuumOptions,
    cancel: &'a dyn Cancel,
    progress: &'a dyn Progress,
}

/// The findings of one try.
struct Found {
    newest: Arc<Snapshot>,
    /// The floor's version, based on its root (not in a dry run).
    rooted: Arc<Snapshot>,
    /// The least version that an earlier vacuum may have left.
    base: u64,
    floor: u64,
    named: Names,
    data: Going,
    manifest: Going,
}

impl Attempt<'_> {
    fn run(&self, published: Option<Floor>, newest: Arc<Snapshot>, report: &mut VacuumReport) -> Result<()> {
        if !self.options.dry_run {
            self.store.check_writable(&newest)?;
        }
        let before = published.map_or(1, |f| f.version);
        let oldest = self.finished(before, &newest)?;
        let base = newest.retained().floor().map_or(oldest, |f| f.version.max(oldest));
        let mut listing = Listing::of(self.store)?;
        if oldest == base {
            self.release(&newest, oldest, &mut listing, report)?;
        }
        let now_us = self.now_us(&listing)?;
        let before_us = self.old_us(now_us, self.options.safety_us);
        self.sweep(before_us, report)?;
        self.delete_records(&mut listing, oldest, now_us, report)?;
        let hidden = report.hidden;
        let newest = self.uncovered(newest, report)?;
        if report.hidden > hidden && !self.options.dry_run {
            // That commit may have folded, into a root below the floor.
            listing = Listing::of(self.store)?;
        }
        let (floor, held_by) = self.floor(&newest, base, &listing, now_us)?;
        let found = self.find(newest, oldest, (base, floor), (&listing, before_us))?;
        let floor = found.floor;
        (report.oldest_before, report.oldest, report.newest) = (before, floor, found.newest.version());
        (report.held_by, report.young) = (held_by, found.data.young.and(found.manifest.young));
        if self.options.dry_run {
            (report.data, report.manifest) = (found.data.tally(), found.manifest.tally());
        } else {
            let condemned = self.condemn(&found)?;
            report.committed = Some(condemned.version()).filter(|v| *v > report.newest);
            let decided = condemned.retained().floor().map(|root| Floor { version: root.version, root });
            match decided.filter(|f| f.version == floor).or(published).filter(|f| f.version >= floor) {
                Some(decided) => self.store.publish_floor(decided)?,
                None if floor <= oldest => {}
                None => return Err(Error::conflict("another vacuum has raised the floor")),
            }
            if floor > before {
                // The hint may have lines of records below the floor.
                self.store.renew_hint(&condemned);
            }
            self.delete(&found, condemned.retained(), report)?;
        }
        self.delete_records(&mut listing, floor, now_us, report)?;
        self.delete_leases(now_us, report)
    }

    /// Publishes the floor that an earlier vacuum has decided, if it died before it published it; returns the published
    /// floor. If there is no room for it, the old one stays.
    fn finished(&self, published: u64, newest: &Snapshot) -> Result<u64> {
        match newest.retained().floor().filter(|root| root.version > published && !self.options.dry_run) {
            None => Ok(published),
            Some(root) => match self.store.publish_floor(Floor { version: root.version, root }) {
                Ok(()) => {
                    let oldest = || vec![("oldest", Detail::Number(root.version))];
                    self.store.tell((Level::Info, "vacuum", "recovered: an earlier one had stopped"), oldest);
                    Ok(root.version)
                }
                Err(e) if e.kind() == ErrorKind::Storage => Ok(published),
                Err(e) => Err(e),
            },
        }
    }

    /// The current time by the storage's clock. If that cannot be read, since it takes a write, the time of the newest
    /// record is used. Then files count as younger than they are, and more stays. A dry run, which deletes nothing,
    /// uses this machine's clock if that is later.
    fn now_us(&self, listing: &Listing) -> Result<i64> {
        let latest_us = listing.latest_us();
        match (self.store.storage().now_us(), latest_us) {
            (Err(_), _) if self.options.dry_run => Ok(self.store.now_us().max(latest_us.unwrap_or(i64::MIN))),
            (Err(e), Some(latest_us)) if e.kind() == ErrorKind::Storage => Ok(latest_us),
            (now, _) => now,
        }
    }

    fn deletion(&self, total: u64) -> Deletion<'_> {
        let storage = self.store.storage().as_ref();
        Deletion { storage, cancel: self.cancel, progress: self.progress, done: 0, total }
    }

    /// Deletes existing files that were condemned before: no version from the published floor, `oldest`, on names them.
    fn release(&self, newest: &Snapshot, oldest: u64, listing: &mut Listing, report: &mut VacuumReport) -> Result<()> {
        let retained = newest.retained();
        let (condemned_data, condemned_manifest) = (retained.condemned_data()?, retained.condemned_manifest()?);
        let is_left = |files: &[File], condemned: &BTreeSet<Id>| files.iter().any(|file| condemned.contains(&file.id));
        let left = is_left(&listing.data, &condemned_data) || is_left(&listing.manifest, &condemned_manifest);
        if self.options.dry_run || !left {
            return Ok(());
        }
        let mut named = Names::default();
        named.add_snapshot(self.store, &*self.store.at_version(oldest)?)?;
        self.add_records(&mut named, oldest, newest.version(), oldest)?;
        let goes = |file: &File| condemned_data.contains(&file.id) && !named.has_data(file.id);
        let (data, rest): (Vec<File>, Vec<File>) = listing.data.iter().partition(|file| goes(file));
        listing.data = rest;
        let goes = |file: &File| condemned_manifest.contains(&file.id) && !named.has_manifest(file.id);
        let (manifest, rest): (Vec<File>, Vec<File>) = listing.manifest.iter().partition(|file| goes(file));
        listing.manifest = rest;
        let mut deletion = self.deletion((data.len() + manifest.len()) as u64);
        deletion.run(data.iter().map(|file| (data_name(file.id), file.bytes)), &mut report.data)?;
        deletion.run(manifest.iter().map(|file| (manifest_name(file.id), file.bytes)), &mut report.manifest)
    }

    /// The newest version without the fragments that newer ones hide: committed so, or, in a dry run, simulated.
    fn uncovered(&self, newest: Arc<Snapshot>, report: &mut VacuumReport) -> Result<Arc<Snapshot>> {
        let (mut operations, mut bare) = (Vec::new(), Arc::clone(&newest));
        let (mut room, mut hidden) = (HIDDEN_BYTES_MAX, 0);
        for node in newest.nodes()? {
            let Node::Array(array) = node else { continue };
            self.cancel.check()?;
            if !array.schema().is_writable() {
                continue;
            }
            let removed = self.hidden(&array, &mut room)?;
            if removed.is_empty() {
                continue;
            }
            hidden += removed.len() as u64;
            if self.options.dry_run {
                bare = Arc::new(bare.without(array.id(), removed)?);
            } else {
                let fragments = Vec::new();
                operations.push(Operation::ReplaceFragments { array: array.id(), removed, fragments });
            }
        }
        if !operations.is_empty() {
            bare = self.store.commit(&newest, Changes::new(operations), &mut HiddenRules)?;
        }
        report.hidden += hidden;
        Ok(bare)
    }

    fn hidden(&self, array: &ArrayState, room: &mut usize) -> Result<Vec<Removed>> {
        let hidden = hidden(array.schema(), &self.store.fragments_of(array)?, room);
        Ok(hidden.iter().map(|d| Removed::of(d)).collect())
    }

    /// Finds which versions name each file, and which files go.
    fn find(
        &self,
        newest: Arc<Snapshot>,
        oldest: u64,
        (base, floor): (u64, u64),
        (listing, before_us): (&Listing, i64),
    ) -> Result<Found> {
        let (floor, rooted) = self.rooted(&newest, oldest, (base, floor))?;
        let mut named = Names::default();
        named.add_snapshot(self.store, &rooted)?;
        self.add_records(&mut named, floor, newest.version(), floor)?;
        let mut dropped = Names::default();
        if floor > oldest {
            dropped.add_snapshot(self.store, &*self.store.at_version(oldest)?)?;
            self.add_records(&mut dropped, oldest, floor, oldest)?;
        }
        if self.options.dry_run && floor == newest.version() {
            // Includes what would be removed before. Last, since pages are looked at once, without what is gone.
            dropped.add_snapshot(self.store, &*self.store.at_version(floor)?)?;
        }
        let retained = newest.retained();
        let (condemned_data, condemned_manifest) = (retained.condemned_data()?, retained.condemned_manifest()?);
        let mut data = Going::default();
        for File { id, bytes, modified_us } in listing.data.iter().copied() {
            let (named, dropped) = (named.has_data(id), dropped.has_data(id));
            let fate = fate(named, condemned_data.contains(&id), dropped, modified_us <= before_us);
            data.take(fate, id, bytes);
        }
        let mut manifest = Going::default();
        for File { id, bytes, modified_us } in listing.manifest.iter().copied() {
            let (named, dropped) = (named.has_manifest(id), dropped.has_manifest(id));
            let fate = fate(named, condemned_manifest.contains(&id), dropped, modified_us <= before_us);
            manifest.take(fate, id, bytes);
        }
        Ok(Found { newest, rooted, base, floor, named, data, manifest })
    }

    /// The floor's version, based on its root. If there is no room for that, a lower floor that already has a root.
    fn rooted(&self, newest: &Arc<Snapshot>, oldest: u64, (base, floor): (u64, u64)) -> Result<(u64, Arc<Snapshot>)> {
        if self.options.dry_run && floor == newest.version() {
            return Ok((floor, Arc::clone(newest)));
        }
        if self.options.dry_run || (floor == oldest && floor == base) {
            return Ok((floor, self.store.at_version(floor)?));
        }
        // The root may never have come along with a copy of a history.
        let is_there = |root: &RootRef| self.store.storage().exists(&manifest_name(root.id)).unwrap_or(true);
        let known = newest.retained().floor().filter(|root| root.version != floor || is_there(root));
        match (self.store.rooted(floor, known), newest.root()) {
            (Err(e), Some(root)) if e.kind() == ErrorKind::Storage && (base + 1..floor).contains(&root.version) => {
                Ok((root.version, self.store.rooted(root.version, Some(root)).map_err(|_| e)?))
            }
            (rooted, _) => Ok((floor, rooted?)),
        }
    }

    /// Adds the files that the records after `after` up to `to` name; roots from version `from` on.
    fn add_records(&self, names: &mut Names, after: u64, to: u64, from: u64) -> Result<()> {
        for record in self.store.history(after.saturating_add(1), to)? {
            self.cancel.check()?;
            names.add_record(self.store, &record?, from)?;
        }
        Ok(())
    }

    /// Commits the floor and the files that go, if either is new; returns the state with them.
    fn condemn(&self, found: &Found) -> Result<Arc<Snapshot>> {
        let raised = found.floor > found.base;
        if !raised && found.data.fresh.is_empty() && found.manifest.fresh.is_empty() {
            return Ok(found.newest.clone());
        }
        let retained = found.newest.retained();
        let condemned = Condemned {
            floor: if raised { found.rooted.root() } else { retained.floor() },
            data: found.data.ids(),
            manifest: found.manifest.ids(),
            forget: forgotten(retained, found)?,
        };
        let base = self.store.resting_on(&found.newest, &found.rooted)?;
        let changes = Changes::new(vec![Operation::Condemn(condemned)]);
        let mut spare = Spare { store: self.store, floor: found.floor, named: found.named.clone() };
        self.store.commit(&base, changes, &mut spare)
    }

    /// The time up to which a file is at least `age_us` old. With a safety age of 0 every file is: times may be whole
    /// seconds.
    fn old_us(&self, now_us: i64, age_us: i64) -> i64 {
        if self.options.safety_us == 0 { i64::MAX } else { now_us.saturating_sub(age_us) }
    }

    /// Deletes the condemned files that are still to go.
    fn delete(&self, found: &Found, condemned: &Retained, report: &mut VacuumReport) -> Result<()> {
        let mut deletion = self.deletion(found.data.tally().objects + found.manifest.tally().objects);
        let (condemned_data, condemned_manifest) = (condemned.condemned_data()?, condemned.condemned_manifest()?);
        let data = found.data.all().filter(|(id, _)| condemned_data.contains(id));
        deletion.run(data.map(|(id, bytes)| (data_name(*id), *bytes)), &mut report.data)?;
        let manifest = found.manifest.all().filter(|(id, _)| condemned_manifest.contains(id));
        deletion.run(manifest.map(|(id, bytes)| (manifest_name(*id), *bytes)), &mut report.manifest)
    }

    /// Deletes records below `floor`, except young ones: a commit in progress may need them to determine its outcome.
    fn delete_records(&self, listing: &mut Listing, floor: u64, now_us: i64, report: &mut VacuumReport) -> Result<()> {
        let old = listing.take_records(floor, self.old_us(now_us, RECORD_GRACE_US));
        if self.options.dry_run {
            old.iter().for_each(|(_, bytes)| report.records.add(*bytes));
            return Ok(());
        }
        let names = old.iter().map(|(version, bytes)| (log_name(*version), *bytes));
        self.deletion(old.len() as u64).run(names, &mut report.records)
    }

    /// Deletes expired leases.
    fn delete_leases(&self, now_us: i64, report: &mut VacuumReport) -> Result<()> {
        let expired = self.store.leases_at(now_us)?.expired;
        report.leases += expired.len() as u64;
        if self.options.dry_run {
            return Ok(());
        }
        let names = expired.into_iter().map(|name| (name, 0));
        self.deletion(report.leases).run(names, &mut Tally::default())
    }

    /// Deletes the incomplete files of dead writers.
    fn sweep(&self, before_us: i64, report: &mut VacuumReport) -> Result<()> {
        for folder in [LOG, DATA, MANIFEST, LEASE] {
            let swept = self.store.storage().sweep(folder, before_us, !self.options.dry_run)?;
            report.temporary = report.temporary.and(Tally { objects: swept.files, bytes: swept.bytes });
        }
        Ok(())
    }
}

/// Files condemned before that do not exist any more.
fn forgotten(retained: &Retained, found: &Found) -> Result<Vec<Id>> {
    let gone = |ids: &BTreeSet<Id>, going: &Going| {
        let mut left = ids.clone();
        for (id, _) in &going.condemned {
            left.remove(id);
        }
        left
    };
    let data = gone(&retained.condemned_data()?, &found.data);
    Ok(data.into_iter().chain(gone(&retained.condemned_manifest()?, &found.manifest)).collect())
}
