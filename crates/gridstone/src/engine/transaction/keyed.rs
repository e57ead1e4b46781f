//! Transactions with a commit key. Their records are their own, so that the version that a record says was read is theirs.

use super::{Open, Transaction};
use crate::base::{Error, ErrorKind, Result};
use crate::engine::content::{KeyedContent, Naming, TransactionContent};
use crate::store::{Changes, CommitKey, Committed, Keyed, Rebase, Snapshot};
use std::sync::Arc;

impl Open {
    /// Notes what is staged, if the commit has a key.
    pub(super) fn give(&mut self, given: impl FnOnce(&mut TransactionContent)) {
        if let Some(keyed) = &mut self.keyed {
            given(&mut keyed.content);
        }
    }
}

impl Transaction {
    /// The same transaction, in which nothing was staged yet, whose commit has the key `key`. Statements count in their
    /// order within an array.
    ///
    /// If a commit with that key was done before, the transaction begins on the version that this one had read, so that
    /// the same statements find the same. Its commit then commits nothing. If that version was vacuumed, it begins on the
    /// newest.
    ///
    /// # Errors
    /// Input: something was staged, or it has ended; Corruption, Storage.
    pub fn with_key(self, key: CommitKey, naming: Naming) -> Result<Self> {
        if self.with(|open| Ok(open.keyed.is_some() || !open.provisional.is_empty()))? {
            return Err(Error::input("a transaction is given its commit key when it begins, and one only"));
        }
        let super::Shared { store, base, .. } = self.shared.as_ref();
        let begun = match store.keyed_commit(base, &key)?.1 {
            Some(commit) => self.as_before(commit.version)?,
            None => self,
        };
        begun.with(|open| {
            open.keyed = Some(KeyedContent::new(key, naming));
            Ok(())
        })?;
        Ok(begun)
    }

    /// Another transaction, on the version that the commit of `version` had read, or on the newest.
    fn as_before(&self, version: u64) -> Result<Self> {
        let super::Shared { context, store, isolation, .. } = self.shared.as_ref();
        let read = store.record(version).and_then(|record| store.at_version(record.read_version));
        match read {
            Ok(base) => Ok(Self::over(context, store.clone(), base, *isolation)),
            Err(e) if e.kind() == ErrorKind::SnapshotExpired => self.again(),
            Err(e) => Err(e),
        }
    }

    /// The commit with the key of `keyed` that was done before, if it has a key.
    ///
    /// # Errors
    /// Conflict if the key was given to other content; Corruption, Storage.
    pub(super) fn done_before(&self, base: &Arc<Snapshot>, keyed: Option<&Keyed>) -> Result<Option<Committed>> {
        keyed.map_or(Ok(None), |keyed| self.shared.store.done_before(base, keyed))
    }

    /// Commits after `base` by the rules that `rules` gives, unless there is nothing to commit.
    pub(super) fn commit_changes(
        &self,
        base: &Arc<Snapshot>,
        changes: Changes,
        rules: impl FnOnce(&Changes) -> Result<Box<dyn Rebase>>,
    ) -> Result<Committed> {
        if changes.operations.is_empty() {
            return Ok(Committed { snapshot: Arc::clone(base), version: base.version(), is_repeat: false });
        }
        let mut rules = rules(&changes)?;
        self.shared.store.commit_once(base, changes, rules.as_mut())
    }
}
