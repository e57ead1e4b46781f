//! How much metadata a walk may read. Files with circles, or with structures that share their parts, would be walked
//! for ever; a sound file is read once, so that a multiple of its length is enough.

use crate::error::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a walk may read in a small file, in bytes.
const FLOOR_BYTES: u64 = 32 << 20;
/// How often each byte of the file may be read.
const PASSES_MAX: u64 = 4;

/// The bytes that a walk may still read.
#[derive(Debug)]
pub(crate) struct Budget {
    left: AtomicU64,
}

impl Budget {
    /// The budget of one walk through a file of `length` bytes.
    pub(crate) fn of_file(length: u64) -> Self {
        Self { left: AtomicU64::new(length.saturating_mul(PASSES_MAX).saturating_add(FLOOR_BYTES)) }
    }

    /// Takes `bytes` from the budget.
    pub(crate) fn spend(&self, bytes: u64) -> Result<()> {
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        match taken {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::limit(
                "the metadata refer to each other so often that reading them takes many times the file's length",
            )),
        }
    }
}
