//! What accompanies one call: a way to stop it and somebody to tell how far it is.

use crate::base::{Cancel, NeverCancel, Progress, Silent};
use crate::runtime::under;
use std::sync::Arc;

/// Cancellation and progress of one call; by default neither.
#[derive(Clone)]
pub struct Call {
    /// Asked at least once per block.
    pub cancel: Arc<dyn Cancel>,
    /// Told cells done and cells in all.
    pub progress: Arc<dyn Progress>,
}

impl Call {
    /// Does `work`, whose waits for a network are given up once the call is cancelled (but for those of a commit).
    pub fn run<R>(&self, work: impl FnOnce() -> R) -> R {
        under(Some(Arc::clone(&self.cancel)), work)
    }
}

impl Default for Call {
    fn default() -> Self {
        Self { cancel: Arc::new(NeverCancel), progress: Arc::new(Silent) }
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Call")
    }
}
