//! Vacuum: forgetting versions that nobody wants any more, and deleting the files that only they named.
//!
//! 1. The floor is chosen: the least version that is to stay by age or number, that has a tag, or that a lease names.
//! 2. A root of exactly that version is written, unless there is one, made durable and read back.
//! 3. Files are listed. Those that no version from the floor on names go: if a version below the floor named them, if they
//!    were condemned before, or if they are older than the safety age.
//! 4. They are committed as `condemn`, together with the floor. From here on nobody can put them to use: a commit that tries is
//!    a conflict. A file that another commit named first leaves the list; a tag, or another vacuum, that came first: all
//!    over again.
//! 5. The floor is published, durable. From here on versions below it cannot be opened.
//! 6. What is condemned is deleted, then records below the floor, but for young ones.
//!
//! Stopped anywhere, what is left is found by the next vacuum: before 4 as unnamed files, after it as condemned ones, and the
//! floor to be published in the state. Memory: ids of the files named, and of those that go.

use crate::array::{
    Changes, Condemned, Floor, Names, Operation, RECORD_GRACE_US, Rebase, Record, Recorded, Retained, Snapshot, Store,
};
use crate::base::{Cancel, Error, ErrorKind, Id, Progress, Result};
use crate::storage::{DATA, LEASE, LOG, Listed, MANIFEST, data_name, manifest_name};
use std::sync::Arc;

/// How often a vacuum begins again because another commit came first.
const ATTEMPTS: usize = 8;

/// The most files that one vacuum condemns; ids take room in the log.
const CONDEMNED_MAX: usize = 1 << 20;

/// Which versions are to stay; the newest always does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Those that were the newest at some moment of the last so many microseconds.
    AgeUs(i64),
    /// The newest ones, so many. Versions that only a vacuum made do not count.
    Versions(u64),
}

/// What a vacuum is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VacuumOptions {
    /// Which versions are to stay.
    pub keep: Keep,
    /// Files that no version names are left alone until they are so old, and records of forgotten versions for an hour: somebody
    /// may be about to commit them. With 0 nothing is, and nobody else may be writing.
    pub safety_us: i64,
    /// Whether to say only what would be done.
    pub dry_run: bool,
}

/// Objects and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Tally {
    fn add(&mut self, bytes: u64) {
        *self = Self { objects: self.objects + 1, bytes: self.bytes + bytes };
    }

    fn of(files: &[(Id, u64)]) -> Self {
        Self { objects: files.len() as u64, bytes: files.iter().map(|(_, bytes)| bytes).sum() }
    }
}

/// What keeps a version that need not stay otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The tag; `None` for a reader's lease.
    pub tag: Option<String>,
    /// The version.
    pub version: u64,
}

/// What a vacuum did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VacuumReport {
    /// The oldest version before.
    pub oldest_before: u64,
    /// The oldest version that stays.
    pub oldest: u64,
    /// The newest version, not counting the one that the vacuum commits.
    pub newest: u64,
    /// Log records deleted; younger ones are left to the next vacuum.
    pub records: Tally,
    /// Data files deleted.
    pub data: Tally,
    /// Manifest roots and pages deleted. A dry run cannot tell all of them.
    pub manifest: Tally,
    /// Temporary files deleted.
    pub temporary: Tally,
    /// Expired leases deleted.
    pub leases: u64,
    /// Files left that no version names and that are not old enough.
    pub young: Tally,
    /// Tags and leases that keep versions older than those asked for.
    pub held_by: Vec<Holder>,
    /// The version in which the files were condemned, if there were new ones.
    pub committed: Option<u64>,
}

/// Vacuums the store.
///
/// # Errors
/// Input (impossible options), Corruption (a record, root or page that is needed to tell what is named), Storage,
/// Cancelled. Whenever it stops, every version that is kept reads as before, and the next vacuum goes on.
pub fn vacuum(
    store: &Store,
    options: &VacuumOptions,
    cancel: &dyn Cancel,
    progress: &dyn Progress,
) -> Result<VacuumReport> {
    check(options)?;
    let mut overtaken = None;
    for _ in 0..ATTEMPTS {
        cancel.check()?;
        let (published, newest) = (store.floor()?, store.latest()?);
        let attempt = Attempt { store, options, cancel, progress };
        match attempt.run(published, Arc::clone(&newest)) {
            Err(e) if matches!(e.kind(), ErrorKind::Conflict | ErrorKind::SnapshotExpired) => overtaken = Some(e),
            Err(e) if e.may_be_missing() && is_overtaken(store, published, &newest)? => overtaken = Some(e),
            outcome => return outcome,
        }
    }
    Err(overtaken
        .unwrap_or_else(|| Error::conflict("the store changes faster than it can be vacuumed; try again later")))
}

/// Whether another vacuum has been at work since, which may have taken away what was looked at, or a root just written.
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

/// The floor for versions from `asked` on, and what holds it lower.
fn lowered(
    asked: u64,
    least: u64,
    tags: impl Iterator<Item = Holder>,
    leases: impl Iterator<Item = Holder>,
) -> (u64, Vec<Holder>) {
    let mut holders: Vec<Holder> = tags.chain(leases).filter(|h| (least..asked).contains(&h.version)).collect();
    holders.sort_by(|a, b| (a.version, &a.tag).cmp(&(b.version, &b.tag)));
    holders.dedup();
    (holders.first().map_or(asked, |h| h.version), holders)
}

/// Why a file goes or stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// A kept version names it.
    Stays,
    /// It was condemned by an earlier vacuum.
    Condemned,
    /// Only forgotten versions named it, or nobody for a long time.
    Goes,
    /// Nobody names it, but it was written a short while ago.
    Young,
}

fn fate(named: bool, condemned: bool, dropped: bool, old: bool) -> Fate {
    match (named, condemned, dropped || old) {
        (true, _, _) => Fate::Stays,
        (_, true, _) => Fate::Condemned,
        (_, _, true) => Fate::Goes,
        _ => Fate::Young,
    }
}

/// Files of one folder that go, with their bytes.
#[derive(Debug, Default)]
struct Going {
    fresh: Vec<(Id, u64)>,
    condemned: Vec<(Id, u64)>,
    young: Tally,
}

impl Going {
    fn take(&mut self, fate: Fate, id: Id, bytes: u64) {
        match fate {
            Fate::Stays => {}
            Fate::Condemned => self.condemned.push((id, bytes)),
            Fate::Goes if self.fresh.len() < CONDEMNED_MAX => self.fresh.push((id, bytes)),
            Fate::Goes | Fate::Young => self.young.add(bytes),
        }
    }

    fn ids(&self) -> Vec<Id> {
        self.fresh.iter().map(|(id, _)| *id).collect()
    }

    fn tally(&self) -> Tally {
        let (fresh, condemned) = (Tally::of(&self.fresh), Tally::of(&self.condemned));
        Tally { objects: fresh.objects + condemned.objects, bytes: fresh.bytes + condemned.bytes }
    }

    fn all(&self) -> impl Iterator<Item = &(Id, u64)> {
        self.condemned.iter().chain(&self.fresh)
    }
}

/// One try, from the choice of the floor to the last deletion.
struct Attempt<'a> {
    store: &'a Store,
    options: &'a VacuumOptions,
    cancel: &'a dyn Cancel,
    progress: &'a dyn Progress,
}

/// What one try has found out.
struct Found {
    newest: Arc<Snapshot>,
    /// The floor's version, resting on its root (not in a dry run).
    rooted: Arc<Snapshot>,
    /// The least version that a vacuum before this one may have left.
    base: u64,
    floor: u64,
    named: Names,
    data: Going,
    manifest: Going,
}

impl Attempt<'_> {
    fn run(&self, published: Option<Floor>, newest: Arc<Snapshot>) -> Result<VacuumReport> {
        let oldest = published.map_or(1, |f| f.version);
        let base = newest.retained().floor().map_or(oldest, |f| f.version.max(oldest));
        let now_us = self.store.now_us();
        let (floor, held_by) = self.floor(&newest, base, now_us)?;
        let before_us = now_us.saturating_sub(self.options.safety_us);
        let found = self.find(newest, oldest, (base, floor), before_us)?;
        let mut report = VacuumReport {
            oldest_before: oldest,
            oldest: floor,
            newest: found.newest.version(),
            held_by,
            data: found.data.tally(),
            manifest: found.manifest.tally(),
            young: Tally {
                objects: found.data.young.objects + found.manifest.young.objects,
                bytes: found.data.young.bytes + found.manifest.young.bytes,
            },
            ..VacuumReport::default()
        };
        if !self.options.dry_run {
            let condemned = self.condemn(&found)?;
            report.committed = Some(condemned.version()).filter(|v| *v > report.newest);
            let decided = condemned.retained().floor().map(|root| Floor { version: root.version, root });
            match decided.filter(|f| f.version == floor).or(published).filter(|f| f.version >= floor) {
                Some(decided) => self.store.publish_floor(decided)?,
                None if floor <= oldest => {}
                None => return Err(Error::conflict("another vacuum has raised the floor")),
            }
            self.delete(&found, condemned.retained(), &mut report)?;
        }
        self.clear(floor, (before_us, now_us), &mut report)?;
        Ok(report)
    }

    /// The floor, and what holds it lower than was asked for.
    fn floor(&self, newest: &Snapshot, base: u64, now_us: i64) -> Result<(u64, Vec<Holder>)> {
        let asked = match self.options.keep {
            Keep::AgeUs(age) => self.store.version_at(now_us.saturating_sub(age))?.0,
            Keep::Versions(count) => self.counted(newest.version(), base, count)?,
        };
        let asked = asked.clamp(base, newest.version());
        let leases = self.store.leases()?.into_iter().filter_map(|(_, lease)| lease).filter(|l| l.holds(now_us));
        let leases = leases.map(|lease| Holder { tag: None, version: lease.version });
        let tags = newest.retained().tags().iter();
        let tags = tags.map(|(name, version)| Holder { tag: Some(name.clone()), version: *version });
        let (mut floor, holders) = lowered(asked, base, tags, leases);
        // What a vacuum committed changed nothing: the version before is the same, and a floor that moved on for it would move
        // with every vacuum.
        while floor > base && self.store.record(floor)?.is_upkeep() {
            floor -= 1;
        }
        Ok((floor, holders))
    }

    /// The first of the `count` newest versions that are not a vacuum's.
    fn counted(&self, newest: u64, base: u64, count: u64) -> Result<u64> {
        let (mut version, mut left) = (newest, count);
        loop {
            left -= u64::from(!self.store.record(version)?.is_upkeep());
            if left == 0 || version <= base {
                return Ok(version);
            }
            version -= 1;
        }
    }

    /// Who names what, and what lies there.
    fn find(&self, newest: Arc<Snapshot>, oldest: u64, (base, floor): (u64, u64), before_us: i64) -> Result<Found> {
        let known = newest.retained().floor();
        let rooted = match self.options.dry_run || (floor == oldest && floor == base) {
            true => self.store.at_version(floor)?,
            false => self.store.rooted(floor, known)?,
        };
        let mut named = Names::default();
        named.add_snapshot(self.store, &rooted)?;
        self.add_records(&mut named, floor, newest.version(), floor)?;
        let mut dropped = Names::default();
        if floor > oldest {
            dropped.add_snapshot(self.store, &*self.store.at_version(oldest)?)?;
            self.add_records(&mut dropped, oldest, floor, oldest)?;
        }
        let retained = newest.retained();
        let mut data = Going::default();
        self.survey(DATA, ".frag", &mut |id, listed| {
            let (named, dropped) = (named.has_data(id), dropped.has_data(id));
            let fate = fate(named, retained.condemned_data().contains(&id), dropped, listed.modified_us <= before_us);
            data.take(fate, id, listed.bytes);
        })?;
        let mut manifest = Going::default();
        self.survey(MANIFEST, "", &mut |id, listed| {
            let (named, dropped) = (named.has_manifest(id), dropped.has_manifest(id));
            let fate =
                fate(named, retained.condemned_manifest().contains(&id), dropped, listed.modified_us <= before_us);
            manifest.take(fate, id, listed.bytes);
        })?;
        Ok(Found { newest, rooted, base, floor, named, data, manifest })
    }

    /// Adds what the records after `after` up to `to` name; roots from version `from` on.
    fn add_records(&self, names: &mut Names, after: u64, to: u64, from: u64) -> Result<()> {
        for record in self.store.history(after.saturating_add(1), to)? {
            self.cancel.check()?;
            names.add_record(self.store, &record?, from)?;
        }
        Ok(())
    }

    fn survey(&self, folder: &str, ending: &str, visit: &mut dyn FnMut(Id, &Listed)) -> Result<()> {
        self.store.storage().survey(folder, &mut |listed| {
            let file = listed.name.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
            // What is not named like a store's file is not the store's.
            if let Some(Ok(id)) = file.and_then(|file| file.strip_suffix(ending)).map(Id::parse) {
                visit(id, &listed);
            }
        })
    }

    /// Commits the floor and what goes, if there is anything new in it; gives the state that has it.
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
            forget: forgotten(retained, found),
        };
        let base = self.store.resting_on(&found.newest, &found.rooted)?;
        let changes = Changes::new(vec![Operation::Condemn(condemned)]);
        let mut spare = Spare { store: self.store, floor: found.floor, named: found.named.clone() };
        self.store.commit(&base, changes, &mut spare)
    }

    /// Deletes what was condemned, as far as it is still to go.
    fn delete(&self, found: &Found, condemned: &Retained, report: &mut VacuumReport) -> Result<()> {
        let total = report.data.objects + report.manifest.objects;
        (report.data, report.manifest) = (Tally::default(), Tally::default());
        for (id, bytes) in found.data.all().filter(|(id, _)| condemned.condemned_data().contains(id)) {
            self.remove(&data_name(*id), report.data.objects, total)?;
            report.data.add(*bytes);
        }
        for (id, bytes) in found.manifest.all().filter(|(id, _)| condemned.condemned_manifest().contains(id)) {
            self.remove(&manifest_name(*id), report.data.objects + report.manifest.objects, total)?;
            report.manifest.add(*bytes);
        }
        Ok(())
    }

    fn remove(&self, name: &str, done: u64, total: u64) -> Result<()> {
        self.cancel.check()?;
        self.progress.report(done, total);
        self.store.storage().delete(name)
    }

    /// Deletes records below the floor, leases that have expired, and what dead writers left half-written.
    fn clear(&self, floor: u64, (before_us, now_us): (i64, i64), report: &mut VacuumReport) -> Result<()> {
        let (storage, delete) = (self.store.storage(), !self.options.dry_run);
        let grace_us = if self.options.safety_us == 0 { 0 } else { RECORD_GRACE_US };
        let mut below = Vec::new();
        storage.survey(LOG, &mut |listed| {
            let digits = listed.name.rsplit('/').next().filter(|file| file.len() == 20);
            if digits.and_then(|d| d.parse::<u64>().ok()).is_some_and(|version| version < floor) {
                // Of a young one a commit under way may have to ask whether it counted.
                if listed.modified_us <= now_us.saturating_sub(grace_us) {
                    report.records.add(listed.bytes);
                    below.push(listed.name);
                }
            }
        })?;
        let expired = self.store.leases()?.into_iter().filter(|(_, lease)| lease.is_none_or(|l| !l.holds(now_us)));
        let leases: Vec<String> = expired.map(|(name, _)| name).collect();
        report.leases = leases.len() as u64;
        for name in below.into_iter().chain(leases).filter(|_| delete) {
            self.cancel.check()?;
            storage.delete(&name)?;
        }
        for folder in [LOG, DATA, MANIFEST, LEASE] {
            let swept = storage.sweep(folder, before_us, delete)?;
            report.temporary.objects += swept.files;
            report.temporary.bytes += swept.bytes;
        }
        Ok(())
    }
}

/// Files condemned before that are not there any more.
fn forgotten(retained: &Retained, found: &Found) -> Vec<Id> {
    let gone = |ids: &std::collections::BTreeSet<Id>, going: &Going| {
        let mut left = ids.clone();
        for (id, _) in &going.condemned {
            left.remove(id);
        }
        left
    };
    let data = gone(retained.condemned_data(), &found.data);
    data.into_iter().chain(gone(retained.condemned_manifest(), &found.manifest)).collect()
}

/// Looks at the commits that came before the one that condemns: what they name leaves the list.
struct Spare<'a> {
    store: &'a Store,
    floor: u64,
    named: Names,
}

impl Rebase for Spare<'_> {
    fn rebase(&mut self, lost_to: &Record, _newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        for operation in &lost_to.operations {
            match operation {
                Recorded::Condemn(_) => return Err(Error::conflict("another vacuum came first")),
                Recorded::Tag { version, .. } if *version < self.floor => {
                    return Err(Error::conflict(format!("version {version} was tagged meanwhile and stays")));
                }
                _ => {}
            }
        }
        self.named.add_record(self.store, lost_to, self.floor)?;
        for operation in &mut changes.operations {
            if let Operation::Condemn(Condemned { data, manifest, .. }) = operation {
                data.retain(|id| !self.named.has_data(*id));
                manifest.retain(|id| !self.named.has_manifest(*id));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(tag: Option<&str>, version: u64) -> Holder {
        Holder { tag: tag.map(str::to_owned), version }
    }

    #[test]
    fn the_floor_is_the_least_of_what_is_asked_tagged_and_leased() {
        let floor = |tags: &[u64], leases: &[u64]| {
            let tags = tags.iter().map(|v| held(Some("t"), *v));
            lowered(50, 10, tags, leases.iter().map(|v| held(None, *v)))
        };
        assert_eq!(floor(&[], &[]), (50, vec![]));
        assert_eq!(floor(&[50, 60], &[70]), (50, vec![]));
        assert_eq!(floor(&[40, 60], &[30, 30]), (30, vec![held(None, 30), held(Some("t"), 40)]));
        assert_eq!(floor(&[], &[3]), (50, vec![]), "what is gone does not come back");
    }

    #[test]
    fn a_named_file_stays_whatever_else_is_said_of_it() {
        for bits in 0..16u8 {
            let [named, condemned, dropped, old] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
            let expected = match (named, condemned, dropped || old) {
                (true, _, _) => Fate::Stays,
                (false, true, _) => Fate::Condemned,
                (false, false, true) => Fate::Goes,
                (false, false, false) => Fate::Young,
            };
            assert_eq!(fate(named, condemned, dropped, old), expected);
        }
    }
}
