//! Chooses the floor: the least version that must stay because of its age or number, a tag, or a lease.

use super::listing::Listing;
use super::report::Holder;
use super::{Attempt, Keep};
use crate::base::Result;
use crate::store::Snapshot;

impl Attempt<'_> {
    /// The floor, at least `base`, and what holds it lower than requested.
    pub(super) fn floor(
        &self,
        newest: &Snapshot,
        base: u64,
        listing: &Listing,
        now_us: i64,
    ) -> Result<(u64, Vec<Holder>)> {
        let asked = match self.options.keep {
            // Includes a version that just removed hidden fragments.
            Keep::AgeUs(0) => newest.version(),
            Keep::AgeUs(age) => listing.newest_at(now_us.saturating_sub(age), base, newest.version()),
            Keep::Versions(count) => self.counted(newest.version(), base, count)?,
        };
        let asked = asked.clamp(base, newest.version());
        let leases = self.store.leases_at(now_us)?.held;
        let leases = leases.into_iter().map(|version| Holder { tag: None, version });
        let tags = newest.retained().tags()?.into_iter();
        let tags = tags.map(|(name, version)| Holder { tag: Some(name), version });
        let (mut floor, holders) = lowered(asked, base, tags, leases);
        // A vacuum's own commits change nothing: the version before is the same. A floor that advanced because of them
        // would move with every vacuum.
        while floor > base && self.store.record(floor)?.is_upkeep() {
            floor -= 1;
        }
        Ok((floor, holders))
    }

    /// The first of the `count` newest versions that changed something. If only the newest is to stay, a version that
    /// only removed hidden fragments replaces the one before, which has the same cells.
    fn counted(&self, newest: u64, base: u64, count: u64) -> Result<u64> {
        let (mut version, mut left) = (newest, count);
        loop {
            let record = self.store.record(version)?;
            left -= u64::from(!record.is_upkeep() && (count == 1 || !record.is_removal()));
            if left == 0 || version <= base {
                return Ok(version);
            }
            version -= 1;
        }
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
}
