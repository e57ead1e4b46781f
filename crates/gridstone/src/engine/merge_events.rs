//! What consolidations tell the caller's log.

use super::Array;
use super::merge_report::{ConsolidateReport, MergeListing};
use crate::base::{Detail, Error, ErrorKind, Level, Result};
use crate::store::Snapshot;

impl Array {
    /// Tells of a merge that is committed, in the version of `seen`.
    pub(super) fn tell_merge(&self, done: &MergeListing, seen: &Snapshot) {
        self.store().tell((Level::Info, "merge", "merged"), || {
            let (fragments, bytes) = done.written.unwrap_or_default();
            let mut details = self.merge_details(done);
            details.extend([
                ("version", Detail::Number(seen.version())),
                ("fragments", Detail::Number(fragments)),
                ("bytes", Detail::Number(bytes)),
            ]);
            details
        });
    }

    /// Tells of a merge that was given up because another commit came first.
    pub(super) fn tell_given_up(&self, planned: &MergeListing, why: &Error) {
        self.store().tell((Level::Debug, "merge", "given up"), || {
            let mut details = self.merge_details(planned);
            details.push(("reason", Detail::Text(why.message().to_owned())));
            details
        });
    }

    /// Tells of a consolidation in the background that failed: no caller waits for it.
    pub(super) fn tell_background(&self, outcome: &Result<ConsolidateReport>) {
        if let Err(error) = outcome
            && error.kind() != ErrorKind::Cancelled
        {
            self.store().tell((Level::Warning, "merge", "failed in the background"), || {
                vec![("path", Detail::Text(self.path_now())), ("reason", Detail::Text(error.message().to_owned()))]
            });
        }
    }

    fn merge_details(&self, merge: &MergeListing) -> Vec<(&'static str, Detail)> {
        vec![
            ("path", Detail::Text(self.path_now())),
            ("kind", Detail::Text(merge.kind.to_owned())),
            ("removed", Detail::Number(merge.fragments)),
            ("cells", Detail::Number(merge.cells)),
        ]
    }

    fn path_now(&self) -> String {
        self.state().map(|(_, state)| state.path().to_owned()).unwrap_or_default()
    }
}
