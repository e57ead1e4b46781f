//! Deletes many objects in batches; a bucket takes each batch as one request.

use super::report::Tally;
use crate::base::{Cancel, Progress, Result};
use crate::storage::Storage;

/// The largest number of objects in a batch: what a bucket accepts at once.
const BATCH: usize = 1_000;

/// Deletions with progress reports.
pub(super) struct Deletion<'a> {
    pub(super) storage: &'a dyn Storage,
    pub(super) cancel: &'a dyn Cancel,
    pub(super) progress: &'a dyn Progress,
    /// The number of objects deleted, and the total.
    pub(super) done: u64,
    pub(super) total: u64,
}

impl Deletion<'_> {
    /// Deletes objects, which are passed with their bytes, and counts them in `tally`.
    pub(super) fn run(&mut self, objects: impl Iterator<Item = (String, u64)>, tally: &mut Tally) -> Result<()> {
        let mut objects = objects.peekable();
        while objects.peek().is_some() {
            self.cancel.check()?;
            self.progress.report(self.done, self.total);
            let (names, bytes): (Vec<String>, Vec<u64>) = objects.by_ref().take(BATCH).unzip();
            self.storage.delete_each(&names)?;
            self.done += names.len() as u64;
            bytes.into_iter().for_each(|bytes| tally.add(bytes));
        }
        Ok(())
    }
}
