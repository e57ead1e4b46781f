//! What accompanies one call: a way to stop it, somebody to tell how far it is, and the key of its commit.

use crate::base::{Cancel, NeverCancel, Progress, Silent};
use crate::runtime::under;
use crate::store::CommitKey;
use std::sync::Arc;

/// Cancellation and progress of one call, and the key of its commit; by default none of them.
#[derive(Clone)]
pub struct Call {
    /// Asked at least once per block.
    pub cancel: Arc<dyn Cancel>,
    /// Told cells done and cells in all.
    pub progress: Arc<dyn Progress>,
    /// The caller's key of the commit that the call stages or makes: repeated with the same content, it is done once.
    pub commit_key: Option<CommitKey>,
    /// Whether the domain grows, in the same commit, to take in what is written.
    pub grows: bool,
}

impl Call {
    /// The same call, for a commit with this key.
    #[must_use]
    pub fn with_key(&self, commit_key: Option<CommitKey>) -> Self {
        Self { commit_key, ..self.clone() }
    }

    /// The same call, that lets the domain grow if `grows`.
    #[must_use]
    pub fn growing(&self, grows: bool) -> Self {
        Self { grows, ..self.clone() }
    }

    /// Does `work`, whose waits for a network are given up once the call is cancelled (but for those of a commit).
    pub fn run<R>(&self, work: impl FnOnce() -> R) -> R {
        under(Some(Arc::clone(&self.cancel)), work)
    }
}

impl Default for Call {
    fn default() -> Self {
        Self { cancel: Arc::new(NeverCancel), progress: Arc::new(Silent), commit_key: None, grows: false }
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Call")
    }
}
