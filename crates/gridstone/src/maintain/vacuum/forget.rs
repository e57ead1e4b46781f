//! Forgets old versions of a copy of a history. Its log is that of another store, so nothing is committed: the floor is
//! published, and what only older versions named is deleted.
//!
//! The copy must have no writer but the one that brings it up to date. A writer would not learn from the log which files
//! are gone.

use super::fate::Going;
use super::listing::Listing;
use super::{Attempt, VacuumOptions, VacuumReport, check, tell, told};
use crate::base::{Cancel, Progress, Result};
use crate::storage::{data_name, manifest_name};
use crate::store::{Floor, Store};

/// Forgets the versions of a copy that `options` do not keep, without a commit.
///
/// # Errors
/// Those of [`super::vacuum`]; wherever it stops, every kept version reads as before, and the next call continues.
pub fn forget(
    store: &Store,
    options: &VacuumOptions,
    cancel: &dyn Cancel,
    progress: &dyn Progress,
) -> Result<VacuumReport> {
    check(options)?;
    let (begun_us, mut report) = (store.begun_us(), VacuumReport::default());
    let attempt = Attempt { store, options, cancel, progress };
    attempt.forget(&mut report).map_err(|e| told(e, report.freed()))?;
    tell(store, options, &report, ("forgot versions of a copy", begun_us));
    Ok(report)
}

impl Attempt<'_> {
    fn forget(&self, report: &mut VacuumReport) -> Result<()> {
        let (published, newest) = (self.store.floor()?, self.store.latest()?);
        let oldest = published.map_or(1, |floor| floor.version);
        let mut listing = Listing::of(self.store)?;
        let now_us = self.now_us(&listing)?;
        let before_us = self.old_us(now_us, self.options.safety_us);
        let (floor, held_by) = self.floor(&newest, oldest, &listing, now_us)?;
        let found = self.find(newest, oldest, (oldest, floor), (&listing, before_us))?;
        let floor = found.floor;
        (report.oldest_before, report.oldest, report.newest) = (oldest, floor, found.newest.version());
        (report.held_by, report.young) = (held_by, found.data.young.and(found.manifest.young));
        self.sweep(before_us, report)?;
        if self.options.dry_run {
            (report.data, report.manifest) = (found.data.tally(), found.manifest.tally());
        } else {
            if let Some(root) = found.rooted.root().filter(|_| floor > oldest) {
                self.store.publish_floor(Floor { version: floor, root })?;
                // The hint may have lines of records below the floor.
                self.store.renew_hint(&found.newest);
            }
            let count = |going: &Going| going.tally().objects;
            let mut deletion = self.deletion(count(&found.data) + count(&found.manifest));
            let data = found.data.all().map(|(id, bytes)| (data_name(*id), *bytes));
            deletion.run(data, &mut report.data)?;
            let manifest = found.manifest.all().map(|(id, bytes)| (manifest_name(*id), *bytes));
            deletion.run(manifest, &mut report.manifest)?;
        }
        self.delete_records(&mut listing, floor, now_us, report)?;
        self.delete_leases(now_us, report)
    }
}
