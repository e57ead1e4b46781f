//! Repair: rebuilds damaged objects from what is still readable in the store.
//!
//! 1. The whole store is verified.
//! 2. In memory, over the unchanged store: the floor is restored; packs are filled from the records, and records from
//!    packs. Roots and pages are folded again, and accepted if they have the checksum by which they are named. If the
//!    newest version still does not open, a version that names a new root is made from the records; a store of an older
//!    format is upgraded by that version. The hint is set.
//! 3. The rebuilt objects are verified like the store. An object that did not remove the damage is dropped.
//! 4. Only then, and only if requested, they are written: a damaged object is copied to `_damaged/` before another
//!    takes its name.
//!
//! Nothing sound is overwritten or deleted. An object that cannot be rebuilt is left as it is and is reported. Where a
//! newer release wrote unknown data, nothing is repaired: that is no damage. Only a repair with `cut` gives up
//! versions: those after the last sound one, whose records are set aside ([`super::cut`]).

use super::cut::{self, LostVersion};
use super::verify_store::{StoreDamage, StoreReport, check};
use crate::base::{Error, ErrorKind, Result};
use crate::query::ReadContext;
use crate::storage::{
    DATA, FLOOR, LATEST, LOG, MANIFEST, OverlayStorage, PutOutcome, Storage, StoreFiles, data_name, log_name,
    manifest_name,
};
use crate::store::{Floor, Inspection, Store};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The largest number of passes: a rebuilt object may make others rebuildable.
const PASSES: usize = 4;

/// A change of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairAction {
    /// The object's name.
    pub object: String,
    /// What was done, or would be.
    pub what: String,
}

/// The result of a repair, or of its dry run.
#[derive(Debug, Clone, Default)]
pub struct RepairReport {
    /// The damage found.
    pub damage: Vec<StoreDamage>,
    /// The repairs of it.
    pub actions: Vec<RepairAction>,
    /// The damage left afterwards.
    pub remaining: Vec<StoreDamage>,
    /// The locations of the damaged objects that were replaced.
    pub kept: Vec<String>,
    /// The version that was committed, to name a new root.
    pub committed: Option<u64>,
    /// The versions that were cut off the log, oldest first.
    pub lost: Vec<LostVersion>,
}

/// Options of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepairOptions {
    /// Whether to report only what would be done.
    pub dry_run: bool,
    /// Whether the log is cut at its last sound version, if it is not sound to its end.
    pub cut: bool,
}

/// Repairs the store, or only reports what would be done.
///
/// # Errors
/// NotFound if there is no store; Unsupported if a newer release wrote part of it; Conflict if it was written to
/// meanwhile; Storage, Access, Cancelled. Wherever it stops, everything readable before stays readable.
pub fn repair(store: &Store, context: &ReadContext, options: RepairOptions) -> Result<RepairReport> {
    let overlay = OverlayStorage::new(Arc::clone(store.storage()));
    let trial = store.on(Arc::new(overlay.clone()));
    // Files of other formats are not the store's: whatever became of them, no version is given up for it.
    let files = StoreFiles::own(Arc::clone(trial.storage()));
    let context = ReadContext { files: Arc::new(files), ..context.clone() };
    let before = inspected(&trial, &context)?.1;
    let mut report = RepairReport { damage: before.damage, ..RepairReport::default() };
    if report.damage.is_empty() {
        return Ok(report);
    }
    let mut work = Work { trial: &trial, overlay: &overlay, context: &context, report: &mut report };
    work.run(options.cut)?;
    if !options.dry_run {
        publish(store, &overlay, &mut report)?;
    }
    Ok(report)
}

fn inspected(store: &Store, context: &ReadContext) -> Result<(Inspection, StoreReport)> {
    let found = store.inspect(context.cancel.as_ref())?;
    let report = check(store, context, &found)?;
    Ok((found, report))
}

/// A repair in memory.
struct Work<'a> {
    trial: &'a Store,
    overlay: &'a OverlayStorage,
    context: &'a ReadContext,
    report: &'a mut RepairReport,
}

impl Work<'_> {
    fn run(&mut self, cut: bool) -> Result<()> {
        for _ in 0..PASSES {
            let (found, checked) = inspected(self.trial, self.context)?;
            let flawed = checked.damage.iter().map(|d| d.object.as_str()).collect();
            let done = self.report.actions.len();
            self.floor(&found)?;
            self.files(&found, &flawed)?;
            self.records(&found, &flawed)?;
            self.manifest(&found)?;
            if self.report.actions.len() == done {
                break;
            }
        }
        if cut {
            self.cut()?;
        }
        self.newest()?;
        self.hint()?;
        self.settle()
    }

    /// Cuts the log at its last sound version.
    fn cut(&mut self) -> Result<()> {
        let (found, checked) = inspected(self.trial, self.context)?;
        let Some(cut) = cut::find(self.trial, &found, &checked.damage, self.context.cancel.as_ref())? else {
            return Ok(());
        };
        for lost in &cut.lost {
            let name = log_name(lost.version);
            if self.trial.storage().exists(&name)? {
                self.overlay.delete(&name)?;
                let what = format!("cut off: version {} is the last sound one", cut.newest);
                self.report.actions.push(RepairAction { object: name, what });
            }
        }
        self.report.lost = cut.lost;
        Ok(())
    }

    fn put(&mut self, name: String, bytes: &[u8], what: &str) -> Result<()> {
        if self.overlay.changes().contains_key(&name) {
            return Ok(());
        }
        self.overlay.put(&name, bytes)?;
        self.report.actions.push(RepairAction { object: name, what: what.to_owned() });
        Ok(())
    }

    /// Restores the floor: the one that was decided, or none if the log is complete.
    fn floor(&mut self, found: &Inspection) -> Result<()> {
        if !found.is_flawed(FLOOR) || self.overlay.changes().contains_key(FLOOR) {
            return Ok(());
        }
        match found.floor {
            Some(Floor { version, root }) => {
                let what = format!("put back: version {version} is the oldest that is kept");
                self.put(FLOOR.to_owned(), &Floor { version, root }.encode_as(found.format)?, &what)
            }
            None if self.trial.storage().exists(&log_name(1))? => {
                self.overlay.delete(FLOOR)?;
                let what = "taken away: all records from version 1 on are there".to_owned();
                self.report.actions.push(RepairAction { object: FLOOR.to_owned(), what });
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn files(&mut self, found: &Inspection, flawed: &BTreeSet<&str>) -> Result<()> {
        for (id, file) in found.data.iter().filter(|(id, _)| flawed.contains(data_name(**id).as_str())) {
            self.context.cancel.check()?;
            if let Some(bytes) = self.trial.repack(file, found)? {
                self.put(data_name(*id), &bytes, "made again from the log records that its fragments came from")?;
            }
        }
        Ok(())
    }

    fn records(&mut self, found: &Inspection, flawed: &BTreeSet<&str>) -> Result<()> {
        for name in flawed {
            let version = name.strip_prefix(LOG).and_then(|n| n.strip_prefix('/')).and_then(|n| n.parse().ok());
            let Some(version) = version else { continue };
            if let Some((name, bytes)) = self.trial.refill(version, found)? {
                self.put(name, &bytes, "its fragments put back from the data file that they were copied to")?;
            }
        }
        Ok(())
    }

    /// Restores roots and pages, oldest first, since each is folded from the one before.
    fn manifest(&mut self, found: &Inspection) -> Result<()> {
        for root in &found.roots {
            self.context.cancel.check()?;
            let pages = found.pages.iter().filter(|(_, roots)| roots.contains(root));
            let torn = pages.map(|(id, _)| id).chain([&root.id]).any(|id| found.is_flawed(&manifest_name(*id)));
            if !torn {
                continue;
            }
            for (name, bytes) in self.trial.refold(*root, found, self.context.cancel.as_ref())? {
                self.put(name, &bytes, "folded again from the log; its checksum is the one by which it is named")?;
            }
        }
        Ok(())
    }

    /// Adds a version that names a new root, if the newest version lacks a root or page to be opened or read.
    fn newest(&mut self) -> Result<()> {
        let found = self.trial.inspect(self.context.cancel.as_ref())?;
        let holds = |versions: &[(u64, u64)]| versions.iter().any(|(lo, hi)| (*lo..=*hi).contains(&found.newest));
        let folder = format!("{MANIFEST}/");
        if !found.flaws.iter().any(|f| f.object.starts_with(&folder) && holds(&f.versions)) {
            return Ok(());
        }
        if let Some(folded) = self.trial.fold_anew(&found)? {
            let upgrades = if folded.format() > found.format { ", and upgrades the store" } else { "" };
            let what =
                format!("committed: names a new root, folded from the log up to version {}{upgrades}", found.newest);
            self.report.actions.push(RepairAction { object: log_name(folded.version()), what });
            self.report.committed = Some(folded.version());
        }
        Ok(())
    }

    fn hint(&mut self) -> Result<()> {
        let found = self.trial.inspect(self.context.cancel.as_ref())?;
        let missing = !self.trial.storage().exists(LATEST)?;
        if found.is_flawed(LATEST) || missing || !self.report.lost.is_empty() {
            self.put(LATEST.to_owned(), found.newest.to_string().as_bytes(), "set to the newest version")?;
        }
        Ok(())
    }

    /// Drops objects that did not remove the damage.
    fn settle(&mut self) -> Result<()> {
        let (_, after) = inspected(self.trial, self.context)?;
        let bad: BTreeSet<String> = after.damage.iter().map(|d| d.object.clone()).collect();
        let (failed, kept) =
            std::mem::take(&mut self.report.actions).into_iter().partition(|a| bad.contains(&a.object));
        self.report.actions = kept;
        let failed: Vec<RepairAction> = failed;
        failed.iter().for_each(|action| self.overlay.forget(&action.object));
        self.report.remaining =
            if failed.is_empty() { after.damage } else { inspected(self.trial, self.context)?.1.damage };
        Ok(())
    }
}

/// Writes the objects made in memory: data, then manifest, then the log, so that nothing is named before it exists.
fn publish(store: &Store, overlay: &OverlayStorage, report: &mut RepairReport) -> Result<()> {
    let storage = store.storage();
    storage.prepare()?;
    let changes = overlay.changes();
    let committed = report.committed.map(log_name);
    for folder in [DATA, MANIFEST, LOG] {
        let inside = changes.iter().filter(|(name, _)| name.split('/').next() == Some(folder));
        let written = inside.clone().filter(|(name, bytes)| bytes.is_some() && Some(*name) != committed.as_ref());
        // The newest first: a log whose end is removed in part has no gap except at the version after the last sound
        // one.
        let taken = inside.rev().filter(|(_, bytes)| bytes.is_none());
        for (name, bytes) in written.chain(taken) {
            replace(storage.as_ref(), name, bytes.as_deref(), report)?;
        }
    }
    // A version that was cut off has the name of the one that is committed.
    let cut_off = |name: &&String| report.lost.iter().any(|lost| log_name(lost.version) == **name);
    if let Some(name) = committed.as_ref().filter(cut_off) {
        replace(storage.as_ref(), name, None, report)?;
    }
    // The new version comes last. It is durable, and so is everything it depends on.
    let Some((name, Some(bytes))) = committed.and_then(|name| changes.get_key_value(&name)) else { return Ok(()) };
    overlay.synced().iter().try_for_each(|name| storage.sync(name))?;
    if storage.put_if_absent(name, bytes)? == PutOutcome::Exists {
        return Err(Error::conflict(format!("{name} was committed meanwhile; run the repair again")));
    }
    if storage.defers_sync() { storage.sync(name) } else { Ok(()) }
}

/// Replaces a damaged object by `bytes` (`None`: deletes it), and keeps a copy of it.
fn replace(storage: &dyn Storage, name: &str, bytes: Option<&[u8]>, report: &mut RepairReport) -> Result<()> {
    if name == LATEST {
        return bytes.map_or(Ok(()), |bytes| storage.put_hint(name, bytes));
    }
    if name == FLOOR {
        match storage.read_all(FLOOR).and_then(|bytes| Floor::decode(&bytes)) {
            Ok(_) => return Err(Error::conflict("the log's floor has been put back meanwhile; run the repair again")),
            Err(e) if e.kind() == ErrorKind::Unsupported => return Err(e),
            Err(_) => {}
        }
    }
    match storage.set_aside(name) {
        Ok(kept) => report.kept.push(kept),
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    match bytes {
        Some(bytes) => storage.put(name, bytes),
        None => storage.delete(name),
    }
}
