//! The report of a vacuum, or of its dry run.

use crate::base::Id;

/// Objects and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Tally {
    pub(in crate::maintain) fn add(&mut self, bytes: u64) {
        *self = Self { objects: self.objects + 1, bytes: self.bytes + bytes };
    }

    pub(super) fn of(files: &[(Id, u64)]) -> Self {
        Self { objects: files.len() as u64, bytes: files.iter().map(|(_, bytes)| bytes).sum() }
    }

    /// The sum of both.
    #[must_use]
    pub(in crate::maintain) fn and(self, other: Self) -> Self {
        Self { objects: self.objects + other.objects, bytes: self.bytes + other.bytes }
    }
}

/// A tag or lease that keeps a version which would otherwise go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The tag; `None` for a reader's lease.
    pub tag: Option<String>,
    /// The version.
    pub version: u64,
}

/// The report of a vacuum, or of its dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VacuumReport {
    /// The oldest version before.
    pub oldest_before: u64,
    /// The oldest version that stays.
    pub oldest: u64,
    /// The newest version, not counting the one in which the vacuum condemns files; the one without hidden fragments,
    /// if the vacuum made it.
    pub newest: u64,
    /// Log records deleted; younger ones are left to the next vacuum.
    pub records: Tally,
    /// Data files deleted.
    pub data: Tally,
    /// Manifest roots and pages deleted. A dry run does not know all of them.
    pub manifest: Tally,
    /// Temporary files deleted.
    pub temporary: Tally,
    /// Expired leases deleted.
    pub leases: u64,
    /// Files kept that no version names and that are not old enough.
    pub young: Tally,
    /// Tags and leases that keep versions older than those requested.
    pub held_by: Vec<Holder>,
    /// The version in which the files were condemned, if there were new ones.
    pub committed: Option<u64>,
    /// Fragments of the newest version that newer ones hide, which were removed before.
    pub hidden: u64,
}

impl VacuumReport {
    /// The total deleted, without leases.
    pub(super) fn freed(&self) -> Tally {
        self.records.and(self.data).and(self.manifest).and(self.temporary)
    }
}
