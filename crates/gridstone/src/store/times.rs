//! Times of commits, from clocks that may be wrong.
//!
//! Times label versions and decide nothing, so no clock may stop a commit. Each time is later than the one before: a
//! writer whose clock is behind takes the time just after it. Where the storage returns its own time, a writer whose
//! clock is far off uses the storage's.

use super::snapshot::Snapshot;
use crate::base::Notices;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// A clock that is off by no more counts as right: commits under way and slow answers take time too.
const TOLERATED_US: i64 = 10 * 60 * 1_000_000;

/// What a writer knows of clocks; it reports each wrong clock once.
#[derive(Debug, Default)]
pub(super) struct Times {
    notices: Option<Arc<Notices>>,
    /// The correction that is added to the machine's clock.
    correction_us: AtomicI64,
    noticed: AtomicBool,
}

impl Times {
    /// Sends reports of wrong clocks to `notices`.
    pub(super) fn telling(notices: Arc<Notices>) -> Self {
        Self { notices: Some(notices), ..Self::default() }
    }

    /// Compares the times that the storage's and the machine's clocks show at about the same moment, UTC in
    /// microseconds.
    pub(super) fn compare(&self, storage_us: i64, machine_us: i64) {
        let off_us = machine_us.saturating_sub(storage_us);
        if off_us.saturating_abs() <= TOLERATED_US {
            self.correction_us.store(0, Ordering::Relaxed);
            return;
        }
        self.correction_us.store(off_us.saturating_neg(), Ordering::Relaxed);
        self.notice(format!(
            "the clock of this machine is {} the clock of the storage; commits are dated by the storage's. Set this machine's clock right",
            told(off_us, "ahead of", "behind")
        ));
    }

    /// The time of a commit after `previous`, made when the machine's clock shows `machine_us`.
    pub(super) fn after(&self, previous: &Snapshot, machine_us: i64) -> i64 {
        let now_us = machine_us.saturating_add(self.correction_us.load(Ordering::Relaxed));
        if previous.version() == 0 {
            return now_us;
        }
        let ahead_us = previous.time_us().saturating_sub(now_us);
        if ahead_us > TOLERATED_US {
            self.notice(format!(
                "version {} is dated {} this machine's clock; commits are dated just after it until then. Set the clock of the machine \
                 that wrote it right, or this one's",
                previous.version(),
                told(ahead_us, "ahead of", "behind")
            ));
        }
        now_us.max(previous.time_us().saturating_add(1))
    }

    fn notice(&self, text: String) {
        if let Some(notices) = &self.notices
            && !self.noticed.swap(true, Ordering::Relaxed)
        {
            notices.add(text);
        }
    }
}

/// `25 hours ahead of`.
fn told(off_us: i64, ahead: &str, behind: &str) -> String {
    let minutes = off_us.unsigned_abs() / 60_000_000;
    let (count, unit) = match minutes {
        0..120 => (minutes, "minutes"),
        120..2_880 => (minutes / 60, "hours"),
        _ => (minutes / 1_440, "days"),
    };
    format!("{count} {unit} {}", if off_us < 0 { behind } else { ahead })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_far_off_the_storage_s_is_corrected_and_noticed_once() {
        let (notices, hour) = (Arc::new(Notices::default()), 3_600_000_000);
        let times = Times::telling(Arc::clone(&notices));
        times.compare(hour - TOLERATED_US, hour);
        assert_eq!((times.after(&Snapshot::before_all(), hour), notices.take().len()), (hour, 0));
        for _ in 0..2 {
            times.compare(hour, 26 * hour);
            assert_eq!(times.after(&Snapshot::before_all(), 27 * hour), 2 * hour);
        }
        let told = notices.take();
        assert!(told.len() == 1 && told[0].contains("25 hours ahead of the clock of the storage"), "{told:?}");
        times.compare(30 * hour, 30 * hour);
        assert_eq!(times.after(&Snapshot::before_all(), 31 * hour), 31 * hour);
    }

    #[test]
    fn differences_are_told_in_round_units() {
        let hour = 3_600_000_000;
        assert_eq!(told(hour, "ahead of", "behind"), "60 minutes ahead of");
        assert_eq!(told(-25 * hour, "ahead of", "behind"), "25 hours behind");
        assert_eq!(told(72 * hour, "ahead of", "behind"), "3 days ahead of");
    }
}
