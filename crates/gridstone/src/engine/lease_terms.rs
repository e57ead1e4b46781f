//! When leases are written, and for how long.

use crate::base::{Error, Result};

/// When leases are written, and for how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeaseTerms {
    /// How old a snapshot in use is when it gets one, in microseconds.
    pub(super) after_us: i64,
    /// How long one holds, in microseconds.
    pub(super) term_us: i64,
}

impl LeaseTerms {
    /// An Input error if they are impossible.
    pub(super) fn check(self) -> Result<Self> {
        if self.after_us < 0 || self.term_us <= 0 {
            return Err(Error::input(format!(
                "leases after {} µs for {} µs are impossible; give 0 or more, and more than 0",
                self.after_us, self.term_us
            )));
        }
        Ok(self)
    }
}
