//! Deleting what a condition selects: look, stage, commit; again if another commit changed what was looked at. In a transaction, and for
//! a receipt: look at what it sees, and stage.

use super::boxes::{parse_box, whole_of};
use super::claim::Claim;
use super::content::{self, Given};
use super::regions::narrowed;
use super::{Array, Call, ReadBox, Staged};
use crate::base::{Entropy, Error, ErrorKind, Progress, Result};
use crate::condition::Condition;
use crate::fragment;
use crate::query::{DeleteRequest, Target, delete_where};
use crate::runtime::SystemEntropy;
use crate::schema::Region;
use crate::store::{Changes, DeleteRules, Operation, Snapshot, StandardRules};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often a delete is tried whose fragments others merge meanwhile.
const TRIES: usize = 16;

impl Array {
    /// Deletes every cell of a box (`None`: the whole domain that this handle has seen) that was written before the commit, those
    /// that this handle has not seen among them. The box may reach beyond the domain, which another commit may have made grow.
    /// Nothing is deleted before the commit.
    ///
    /// # Errors
    /// Input (not writable), Bounds (a box that no cell can lie in), Corruption, Storage.
    pub fn stage_delete_box(&self, sub: ReadBox<'_>) -> Result<Staged> {
        let schema = self.schema()?;
        let region = parse_box(&schema, sub)?.unwrap_or_else(|| whole_of(&schema));
        if schema.is_without_cells() {
            self.note_ends()?;
        }
        self.stage_delete_region(&region)
    }

    /// As [`Array::stage_delete_box`], of a region.
    ///
    /// # Errors
    /// As [`Array::stage_delete_box`].
    pub fn stage_delete_region(&self, region: &Region) -> Result<Staged> {
        self.stage_deletion(region, &Call::default())
    }

    /// As [`Array::stage_delete_region`], for a call that may have a key.
    ///
    /// # Errors
    /// As [`Array::stage_delete_box`]; Conflict if the key was given to other content.
    pub fn stage_deletion(&self, region: &Region, call: &Call) -> Result<Staged> {
        let (_, state) = self.state()?;
        self.check_writable()?;
        let schema = state.schema();
        region.boxes().iter().try_for_each(|sub| schema.check_possible(sub))?;
        let number = state.schemas().count().saturating_sub(1);
        let deletion = |sub: &crate::schema::Subarray| fragment::Staged {
            description: fragment::Description::deletion(SystemEntropy.id(), number, sub.clone()),
            body: None,
        };
        self.stage_once(
            call,
            || content::of_deletion(Some(region), None),
            || Ok(self.staged(region.boxes().iter().map(deletion).collect())),
        )
    }

    /// As [`Array::delete_region_where`], of a box.
    ///
    /// # Errors
    /// As there.
    pub fn delete_where(
        &self,
        sub: ReadBox<'_>,
        condition: &Condition,
        message: Option<String>,
        call: &Call,
    ) -> Result<u64> {
        let region = parse_box(self.schema()?.as_ref(), sub)?;
        self.delete_region_where(region.as_ref(), condition, message, call)
    }

    /// Deletes the cells in a region (`None`: the whole domain) that `condition` selects, and gives the version that did it; the
    /// present one if none was selected. Cells that others commit meanwhile stay, whatever they hold; but if fragments are merged
    /// meanwhile, all that is there by then is looked at again; of a dense array only if they were merged with newer ones.
    ///
    /// In a transaction the cells that it sees are judged, those that it has staged before among them, and what it stages later is not; gives the
    /// version that it reads. Nothing is looked at again: the commit is a Conflict if fragments that were looked at were merged (of a dense array: with newer ones).
    ///
    /// # Errors
    /// Input (not writable; a message within a transaction; a condition that does not fit the schema), Corruption, Storage, Cancelled; Conflict if others
    /// merge the same fragments again and again.
    pub fn delete_region_where(
        &self,
        region: Option<&Region>,
        condition: &Condition,
        message: Option<String>,
        call: &Call,
    ) -> Result<u64> {
        let mut tries = if self.in_transaction() { TRIES } else { 1 };
        let (done, total) = (AtomicU64::new(0), AtomicU64::new(0));
        let forward = Forward { whole: Arc::clone(&call.progress), done, total };
        let given = self.given(call, || content::of_deletion(region, Some(condition)))?;
        let call = &Call { progress: Arc::new(forward), ..call.clone() };
        let mut claim = None;
        loop {
            if let Some(done) = self.done_before(given.as_ref())? {
                self.session().move_to(done.snapshot);
                return Ok(done.version);
            }
            match self.try_delete_where(region, condition, given.as_ref(), message.clone(), call) {
                Err(e) if matches!(e.kind(), ErrorKind::Conflict | ErrorKind::SnapshotExpired) && tries < TRIES => {
                    tries += 1;
                    // Whoever was overtaken once is in a store that others vacuum while they write: another look would fare alike.
                    // What was claimed before is held until the next claim holds.
                    let newer = self.claimed_newest()?;
                    drop(claim.replace(newer));
                }
                outcome => return outcome,
            }
        }
    }

    /// Moves to the newest version, and claims it. A vacuum that had looked at the claims before may have passed it already:
    /// then the next one is taken.
    fn claimed_newest(&self) -> Result<Claim> {
        let mut tries = 1;
        loop {
            let version = self.refresh()?;
            let claim = self.claim_version(version);
            if tries == TRIES || self.store.floor()?.is_none_or(|floor| floor.version <= version) {
                return Ok(claim);
            }
            tries += 1;
        }
    }

    fn try_delete_where(
        &self,
        region: Option<&Region>,
        condition: &Condition,
        given: Option<&Given>,
        message: Option<String>,
        call: &Call,
    ) -> Result<u64> {
        let StagedDelete { snapshot, sparse, staged } = self.stage_delete_where(region, condition, call)?;
        if staged.fragments.is_empty() {
            if let Some(given) = given {
                self.session().give(self.id(), given.body)?;
            }
            return Ok(snapshot.version());
        }
        let staged = staged.with_given(given.cloned());
        if self.in_transaction() {
            if !sparse {
                self.session().deletes_as_of_base(self.id())?;
            }
            return self.commit(vec![staged], message);
        }
        let operations = vec![Operation::AddFragments { array: self.id(), fragments: staged.fragments.clone() }];
        let changes = Changes::new(operations).with_message(message).with_key(self.keyed(given)?);
        match sparse {
            true => self.submit(&snapshot, changes, vec![staged], &mut StandardRules),
            false => self.submit(&snapshot, changes, vec![staged], &mut DeleteRules { array: self.id() }),
        }
    }

    /// What deletes the cells in a region (`None`: the whole domain) that `condition` selects of those that a transaction sees: for one
    /// change with what is to take their place.
    ///
    /// # Errors
    /// Input (not in a transaction; not writable; a condition that does not fit the schema), Corruption, Storage, Cancelled.
    pub fn stage_deletion_where(&self, region: Option<&Region>, condition: &Condition, call: &Call) -> Result<Staged> {
        if !self.in_transaction() {
            return Err(Error::input(
                "what a condition selects is deleted with other changes in a transaction; begin one",
            ));
        }
        let given = self.given(call, || content::of_deletion(region, Some(condition)))?;
        let StagedDelete { sparse, staged, .. } = self.stage_delete_where(region, condition, call)?;
        if !sparse {
            self.session().deletes_as_of_base(self.id())?;
        }
        Ok(staged.with_given(given))
    }

    /// Looks for the cells in a region that `condition` selects, and stages what deletes them.
    pub(super) fn stage_delete_where(
        &self,
        region: Option<&Region>,
        condition: &Condition,
        call: &Call,
    ) -> Result<StagedDelete> {
        let (snapshot, state) = self.state()?;
        let schema = state.schema().clone();
        let sparse = schema.sparse();
        let write = self.write_context(&state, call)?;
        let (reach, bound) = narrowed(&schema, region, Some(condition))?;
        let Some(sub) = reach else {
            // That nothing lies there is so by the ends of the domain.
            self.note_ends()?;
            return Ok(StagedDelete { snapshot, sparse, staged: self.staged(Vec::new()) });
        };
        self.note(&sub);
        let target = Target { array: self.id(), fragments: self.described(&snapshot, &state, Some(&sub))?, schema };
        let request = DeleteRequest { sub, condition: &bound, version: snapshot.version() };
        let read = self.read_context(&snapshot, call);
        let mut found = Vec::new();
        let outcome = read.explain_missing(delete_where(&read, &write, &target, &request, &mut found));
        // From here on the files go with it, unless somebody keeps them.
        let staged = self.staged(found);
        outcome?;
        // Who was told of the last cells may have stopped the work.
        call.cancel.check()?;
        Ok(StagedDelete { snapshot, sparse, staged })
    }
}

/// Progress of work that may begin again, with more to do or with less: it stands until it is further than it was, and comes to its
/// end.
struct Forward {
    whole: Arc<dyn Progress>,
    /// The most that was told, done and in all.
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress for Forward {
    fn report(&self, done: u64, total: u64) {
        let most = self.total.fetch_max(total, Ordering::Relaxed).max(total);
        let now = if done == total { most } else { done };
        if self.done.fetch_max(now, Ordering::Relaxed) <= now {
            self.whole.report(now, most);
        }
    }
}

/// What deletes the cells that a condition selects in a snapshot.
pub(super) struct StagedDelete {
    /// What was looked at.
    pub(super) snapshot: Arc<Snapshot>,
    /// Whether it is of a sparse array.
    sparse: bool,
    /// Nothing, if no cell is selected.
    pub(super) staged: Staged,
}
