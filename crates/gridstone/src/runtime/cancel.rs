//! A flag that cancels work from another thread.

use crate::base::Cancel;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that every clone can raise; it is never lowered.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag {
    raised: Arc<AtomicBool>,
}

impl CancelFlag {
    /// A flag that is not raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels the work.
    pub fn cancel(&self) {
        self.raised.store(true, Ordering::Relaxed);
    }
}

impl Cancel for CancelFlag {
    fn cancelled(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }
}
