//! The last commit keys at one version: those in the records since the manifest root, over those in its rows.
//!
//! ```text
//! number      0 … 8,191 | 8,192 … 16,383 | … | … next - 1      of each key, in the order of records and within each
//! rows        epoch 0   | epoch 1        | …                   by hash within an epoch
//! kept                         |<------ the last 100,000 ----->|
//! ```
//! A fold adds the rows of the newest epochs, which is one as a rule, and cuts out the epochs that only have numbers that
//! are not kept. A lookup reads one page per epoch, all of them together. A number decides whether a key is kept, so it
//! does not matter when folds happen. Numbers of keys in records are known once the count in the rows is read, and only
//! commits with keys read that.

use super::commit_key::{CommitKey, KeyRow, Keyed, KeyedCommit, decode_count, encode_count};
use super::record::Record;
use super::rows::{Change, RowMap, key};
use crate::base::Result;
use crate::base::limits::{COMMIT_KEYS_KEPT, COMMIT_KEYS_PER_EPOCH};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The commit keys of a version.
pub(super) struct KeyWindow<'a> {
    /// The rows of the manifest root.
    pub(super) rows: &'a RowMap,
    /// The records since.
    pub(super) since: &'a [Arc<Record>],
}

/// What a fold changes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct KeyChanges {
    pub(super) rows: Vec<Change>,
    /// The rows of the epochs that go.
    pub(super) cut: Option<Range<Bytes>>,
}

/// The first number that is kept if the next key gets the number `next`.
fn first_kept(next: u64) -> u64 {
    next.saturating_sub(COMMIT_KEYS_KEPT)
}

fn epoch(number: u64) -> u64 {
    number / COMMIT_KEYS_PER_EPOCH
}

impl<'a> KeyWindow<'a> {
    /// The keys of the records since, oldest first, each with the version of its record.
    fn recent(&self) -> impl DoubleEndedIterator<Item = (u64, &'a Keyed)> + use<'a> {
        self.since.iter().flat_map(|record| record.keys.iter().map(|keyed| (record.version, keyed)))
    }

    /// How many keys the rows have counted.
    fn folded(&self) -> Result<u64> {
        self.rows.get(&key::commit_key_count())?.map_or(Ok(0), |value| decode_count(&value))
    }

    /// The commit that `wanted` was given to; `None` if that is not among the last keys.
    ///
    /// # Errors
    /// Corruption if a page of the manifest is missing or damaged, Storage.
    pub(super) fn find(&self, wanted: &CommitKey) -> Result<Option<KeyedCommit>> {
        let newest_first = self.recent().rev().zip(0u64..COMMIT_KEYS_KEPT);
        if let Some(((version, keyed), _)) = newest_first.into_iter().find(|((_, keyed), _)| keyed.key == *wanted) {
            return Ok(Some(KeyedCommit { version, content: keyed.content }));
        }
        let folded = self.folded()?;
        let first = first_kept(folded.saturating_add(self.recent().count() as u64));
        if first >= folded {
            return Ok(None);
        }
        let places: Vec<Bytes> =
            (epoch(first)..=epoch(folded - 1)).map(|epoch| key::commit_key(epoch, wanted.as_bytes())).collect();
        // A key that was forgotten and given again is in two epochs.
        let Some(value) = self.rows.get_each(&places)?.into_iter().rev().flatten().next() else { return Ok(None) };
        let row = KeyRow::decode(&value)?;
        Ok((row.number >= first).then_some(row.commit))
    }

    /// What the records since change in the rows.
    ///
    /// # Errors
    /// Those of [`KeyWindow::find`].
    pub(super) fn changes(&self) -> Result<KeyChanges> {
        let added = self.recent().count() as u64;
        if added == 0 {
            return Ok(KeyChanges::default());
        }
        let folded = self.folded()?;
        let next = folded.saturating_add(added);
        let first = epoch(first_kept(next));
        let mut rows = BTreeMap::from([(key::commit_key_count(), Some(encode_count(next)?))]);
        for ((version, keyed), number) in self.recent().zip(folded..).filter(|(_, number)| epoch(*number) >= first) {
            let row = KeyRow { commit: KeyedCommit { version, content: keyed.content }, number };
            rows.insert(key::commit_key(epoch(number), keyed.key.as_bytes()), Some(row.encode()));
        }
        let is_cut = first > epoch(first_kept(folded));
        let cut = is_cut.then(|| key::commit_key_epoch(0)..key::commit_key_epoch(first));
        Ok(KeyChanges { rows: rows.into_iter().map(|(key, value)| Change { key, value }).collect(), cut })
    }
}
