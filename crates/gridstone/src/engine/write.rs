//! Writing to an array: fragments are staged, and then committed.
//!
//! A call with a key hashes what it was given ([`super::content`]) and looks whether a commit with that key has been
//! done; then nothing is staged.

use super::boxes::{ReadBox, hull_of, parse_box};
use super::content::{self, Given, Naming};
use super::session::Submission;
use super::sorted_copies::copy_packs;
use super::{Array, Call, Staged};
use crate::base::{Error, ErrorKind, Id, Result};
use crate::fragment;
use crate::query::{
    CellWrite, Dedup, DenseWrite, WriteContext, check_columns, write_cells, write_dense, write_tombstones,
};
use crate::runtime::SystemEntropy;
use crate::schema::{Order, Region, Schema, Subarray};
use crate::store::{ArrayState, Changes, Committed, Growth, Keyed, Operation, Rebase, Snapshot, StandardRules};
use crate::tile::ColumnView;
use crate::tile::coordinates::reached_domain;
use std::sync::Arc;

/// Writes of at most so many cells are packed in little time: trying all filters would take most of a small commit.
const QUICK_CELLS_MAX: usize = 2_048;

/// Values of a dense box, by attribute name.
pub type DenseData<'a> = Vec<(String, ColumnView<'a>)>;

/// Cells by coordinates.
#[derive(Debug)]
pub struct CellData<'a> {
    /// A column of coordinates per dimension.
    pub dims: Vec<ColumnView<'a>>,
    /// Values by attribute name.
    pub attrs: Vec<(String, ColumnView<'a>)>,
    /// Whether the caller says that they are in global order.
    pub sorted: bool,
    /// What to do with duplicates.
    pub dedup: Dedup,
}

impl Array {
    pub(super) fn write_context<'a>(&'a self, state: &ArrayState, call: &'a Call) -> Result<WriteContext<'a>> {
        self.check_writable()?;
        let widest = state.schema().attrs().iter().filter_map(|a| a.datatype().width()).max().unwrap_or(0);
        Ok(WriteContext {
            pool: &self.context().pool,
            files: self.store().files(),
            entropy: &SystemEntropy,
            budget: &self.context().budget,
            arena: &self.context().arena,
            cancel: call.cancel.as_ref(),
            progress: call.progress.as_ref(),
            schema_number: state.schemas().count().saturating_sub(1),
            inline: true,
            quick_cells_max: QUICK_CELLS_MAX,
            blocks: self.context().blocks.fitting(widest),
        })
    }

    pub(super) fn check_writable(&self) -> Result<()> {
        if self.writable() {
            return Ok(());
        }
        Err(Error::input("this array was opened for reading; open it with mode \"r+\" to write"))
    }

    pub(super) fn staged(&self, fragments: Vec<fragment::Staged>) -> Staged {
        Staged::new(self.id(), fragments, self.store().storage().clone())
    }

    /// As [`Array::stage_box`], of a box in texts.
    ///
    /// # Errors
    /// As there.
    pub fn stage_dense(&self, sub: ReadBox<'_>, data: &DenseData<'_>, layout: Order, call: &Call) -> Result<Staged> {
        self.check_writable()?;
        let region = parse_box(self.schema()?.as_ref(), sub)?;
        self.stage_box(region.as_ref(), data, layout, call)
    }

    /// Writes a dense box (`None`: the whole domain) from buffers laid out in `layout`; nothing is visible before the commit.
    /// A call that grows takes a box beyond the domain, and any call one beyond an end that is open.
    ///
    /// # Errors
    /// Input (not writable, unknown attributes, columns of another type or length), Bounds (a box outside the domain), Schema (a tile
    /// would have too many cells), Budget, Storage, Cancelled; Conflict if the key of the call was given to other content.
    pub fn stage_box(
        &self,
        region: Option<&Region>,
        data: &DenseData<'_>,
        layout: Order,
        call: &Call,
    ) -> Result<Staged> {
        let (_, state) = self.state()?;
        let context = self.write_context(&state, call)?;
        let sub = hull_of(state.schema(), region)?;
        let schema = &for_box(state.schema(), &sub, call.grows)?;
        let write = DenseWrite { sub, columns: by_place(schema, data)?, layout };
        self.stage_once(
            call,
            || content::of_box(schema, &write.sub, &write.columns, layout),
            || {
                if write.sub.cells() == 0 && !schema.sparse() {
                    check_columns(schema, &write.columns, 0)?;
                    return Ok(self.staged(Vec::new()));
                }
                Ok(self.staged(vec![write_dense(&context, schema, &write)?]).with_growth(state.schema(), schema))
            },
        )
    }

    /// Writes cells, into a sparse or a dense array; nothing is visible before the commit. What takes more than half of the budget to sort
    /// is sorted in runs, which are merged; what is in order already is written in portions. A call that grows takes cells beyond the domain,
    /// and any call cells beyond an end that is open.
    ///
    /// # Errors
    /// Input (not writable, unknown attributes, columns of another type or length, NaN, duplicates), Bounds (a cell outside the
    /// domain: the message names its row), Budget, Storage, Cancelled; Conflict if the key of the call was given to other content.
    pub fn stage_cells(&self, data: CellData<'_>, call: &Call) -> Result<Staged> {
        let (_, state) = self.state()?;
        let context = self.write_context(&state, call)?;
        let reachable = state.schema().reachable(call.grows);
        let reached = match reachable == state.schema().domain() {
            true => None,
            false => Some(reached_domain(call.cancel.as_ref(), state.schema(), &reachable, &data.dims)?),
        };
        let schema = &for_domain(state.schema(), reached.as_ref())?;
        let columns = by_place(schema, &data.attrs)?;
        let write = CellWrite { dims: data.dims, columns, sorted: data.sorted, dedup: data.dedup };
        let hash = || content::of_cells(schema, &write.dims, &write.columns, write.dedup);
        let stage = || match (self.is_beyond_memory(schema, &write), write.sorted) {
            (true, true) => self.stage_sorted(&context, schema, &write, call),
            (true, false) => self.stage_in_runs(schema, &write, call),
            (false, _) => Ok(self.staged(write_cells(&context, schema, &write)?.into_iter().collect())),
        };
        self.stage_once(call, hash, || Ok(stage()?.with_growth(state.schema(), schema)))
    }

    /// Writes tombstones for the cells at these coordinates; nothing is deleted before the commit.
    ///
    /// # Errors
    /// Input (not writable, columns of another type or length), Bounds (a cell outside the domain), Budget, Storage, Cancelled;
    /// Conflict if the key of the call was given to other content.
    pub fn stage_delete(&self, dims: &[ColumnView<'_>], call: &Call) -> Result<Staged> {
        let (_, state) = self.state()?;
        let context = self.write_context(&state, call)?;
        self.stage_once(
            call,
            || content::of_deleted_cells(dims),
            || Ok(self.staged(write_tombstones(&context, state.schema(), dims)?.into_iter().collect())),
        )
    }

    /// What a call was given, if its commit has a key; `hash` takes its hash.
    ///
    /// # Errors
    /// Input: a key within a transaction.
    pub(super) fn given(&self, call: &Call, hash: impl FnOnce() -> u128) -> Result<Option<Given>> {
        if call.commit_key.is_some() {
            self.check_keyless()?;
        }
        let matters = call.commit_key.is_some() || self.session().wants_content();
        Ok(matters.then(|| Given { key: call.commit_key.clone(), naming: Naming::Id, body: hash() }))
    }

    /// An Input error within a transaction, whose commit has the key.
    pub(super) fn check_keyless(&self) -> Result<()> {
        if self.in_transaction() {
            return Err(Error::input(
                "a transaction has one commit key, given when it begins; leave the key of the write out",
            ));
        }
        Ok(())
    }

    /// The key with the content of what was given; `None` without a key.
    pub(super) fn keyed(&self, given: Option<&Given>) -> Result<Option<Keyed>> {
        let Some((given, key)) = given.and_then(|given| Some((given, given.key.clone()?))) else { return Ok(None) };
        let path = if given.naming == Naming::Path { self.path()? } else { String::new() };
        Ok(Some(Keyed { key, content: content::of_array(given.naming, self.id(), &path, given.body) }))
    }

    /// The commit that was done before with the key of what was given; looked for in the newest version.
    ///
    /// # Errors
    /// Conflict if the key was given to other content; Corruption, Storage.
    pub(super) fn done_before(&self, given: Option<&Given>) -> Result<Option<Committed>> {
        match self.keyed(given)? {
            Some(keyed) => self.store().done_before(&self.snapshot(), &keyed),
            None => Ok(None),
        }
    }

    /// What `stage` stages, unless a commit with the key of the call was done before.
    pub(super) fn stage_once(
        &self,
        call: &Call,
        hash: impl FnOnce() -> u128,
        stage: impl FnOnce() -> Result<Staged>,
    ) -> Result<Staged> {
        let given = self.given(call, hash)?;
        match self.done_before(given.as_ref())? {
            Some(done) => Ok(self.staged(Vec::new()).repeating(done)),
            None => Ok(stage()?.with_given(given)),
        }
    }

    /// An Input error if [`Array::commit`] would refuse these fragments at once.
    pub fn check_commit(&self, staged: &Staged) -> Result<()> {
        if staged.array != self.id() {
            return Err(Error::input(format!(
                "fragments written for array {} cannot be committed to array {}",
                staged.array,
                self.id()
            )));
        }
        self.check_writable()
    }

    /// Commits staged fragments in one version, moves to it and gives it. If the commit certainly did not happen, the
    /// fragments' files are removed; who wants to keep them for another try asks [`Array::check_commit`] first.
    ///
    /// What was staged with a key is committed once: if a commit with the key has the same content, nothing is written, and
    /// its version is given. A key without any cell is not kept.
    ///
    /// # Errors
    /// Conflict if the key was given to other content, and where [`StandardRules`] say so; Input if one of several writes
    /// has a key; CommitUnknown, Storage.
    pub fn commit(&self, staged: Vec<Staged>, message: Option<String>) -> Result<u64> {
        self.commit_by(staged, message, &self.snapshot(), &mut StandardRules)
    }

    /// The same of fragments that were staged with a look at `snapshot`, by these rules.
    pub(super) fn commit_by(
        &self,
        staged: Vec<Staged>,
        message: Option<String>,
        snapshot: &Arc<Snapshot>,
        rules: &mut dyn Rebase,
    ) -> Result<u64> {
        staged.iter().try_for_each(|s| self.check_commit(s))?;
        if staged.len() > 1 && staged.iter().any(Staged::has_key) {
            return Err(Error::input("a commit key is for one write; give that of several to a transaction"));
        }
        if let Some(done) = staged.iter().find_map(Staged::repeated) {
            self.session().move_to(Arc::clone(&done.snapshot));
            return Ok(done.version);
        }
        self.commit_parts(Vec::new(), staged, message, snapshot, rules)
    }

    /// Commits `operations`, and then fragments of this array and of its hidden ones. Where there is nothing of it nothing is committed.
    pub(super) fn commit_parts(
        &self,
        mut operations: Vec<Operation>,
        mut staged: Vec<Staged>,
        message: Option<String>,
        snapshot: &Arc<Snapshot>,
        rules: &mut dyn Rebase,
    ) -> Result<u64> {
        self.session().make_room(&mut staged)?;
        if operations.is_empty() && staged.iter().all(|part| part.fragments.is_empty()) {
            return Ok(self.version());
        }
        let keyed = self.keyed(staged.iter().find_map(Staged::given))?;
        let mut arrays: Vec<Id> = Vec::new();
        for part in &staged {
            if !arrays.contains(&part.array) {
                arrays.push(part.array);
            }
        }
        for array in arrays {
            let own = || staged.iter().filter(move |part| part.array == array);
            let grow = |g: Growth| Operation::Grow { array, dimension: g.dimension, range: g.range };
            operations.extend(Staged::growth(own()).into_iter().map(grow));
            let fragments = own().flat_map(|part| part.fragments.iter().cloned()).collect();
            operations.push(Operation::AddFragments { array, fragments });
        }
        let changes = Changes::new(operations).with_message(message).with_key(keyed);
        self.submit(snapshot, changes, staged, rules)
    }

    /// Commits changes, made with a look at `snapshot`, or gives them to the transaction; gives the version that the handle shows then. The files that
    /// `staged` holds stay if the changes are committed, or may be.
    pub(super) fn submit(
        &self,
        snapshot: &Arc<Snapshot>,
        changes: Changes,
        staged: Vec<Staged>,
        rules: &mut dyn Rebase,
    ) -> Result<u64> {
        match self.session().submit(changes, staged)? {
            Submission::Kept(version) => Ok(version),
            Submission::Direct(changes, mut staged) => {
                let outcome = self.commit_outside(snapshot, changes, rules);
                let keeps = match &outcome {
                    Ok(done) => !done.is_repeat,
                    Err(e) => e.kind() == ErrorKind::CommitUnknown,
                };
                if keeps {
                    staged.iter_mut().for_each(Staged::keep_files);
                }
                outcome.map(|done| done.version)
            }
        }
    }

    /// Commits `changes`, made with a look at `snapshot`, moves to their version and gives it.
    pub(super) fn commit_changes(&self, snapshot: &Arc<Snapshot>, changes: Changes) -> Result<u64> {
        self.check_writable()?;
        self.submit(snapshot, changes, Vec::new(), &mut StandardRules)
    }

    /// The same of a handle that belongs to no transaction; gives the store with it.
    pub(super) fn commit_outside(
        &self,
        snapshot: &Arc<Snapshot>,
        changes: Changes,
        rules: &mut dyn Rebase,
    ) -> Result<Committed> {
        let done = self.store().commit_once(snapshot, changes, rules)?;
        self.look_after(&done.snapshot);
        self.session().move_to(Arc::clone(&done.snapshot));
        copy_packs(self.context(), self.store(), snapshot, &done.snapshot);
        Ok(done)
    }

    /// Packs the list of fragments, in a version that changes nothing else; gives the version.
    pub(super) fn pack(&self, snapshot: &Arc<Snapshot>) -> Result<u64> {
        self.check_writable()?;
        let newer = self.store().pack(snapshot)?;
        self.session().move_to(Arc::clone(&newer));
        copy_packs(self.context(), self.store(), snapshot, &newer);
        Ok(self.version())
    }
}

/// The schema made to reach to a box that is written.
///
/// # Errors
/// Bounds: the box lies beyond the domain, which does not grow there; Schema, as [`for_domain`].
pub(super) fn for_box(schema: &Arc<Schema>, sub: &Subarray, grows: bool) -> Result<Arc<Schema>> {
    if sub.cells() == 0 || schema.domain().covers(sub) {
        return Ok(Arc::clone(schema));
    }
    schema.check_possible(sub)?;
    if !schema.reachable(grows).covers(sub) {
        schema.check_inside(sub)?;
    }
    for_domain(schema, Some(sub))
}

/// The schema made to reach to `domain`, if that is given.
///
/// # Errors
/// Schema: a tile without an extent would have too many cells.
pub(super) fn for_domain(schema: &Arc<Schema>, domain: Option<&Subarray>) -> Result<Arc<Schema>> {
    let Some(reached) = domain.map(|domain| schema.reaching(domain)).filter(|r| r.domain() != schema.domain()) else {
        return Ok(Arc::clone(schema));
    };
    reached.check_limits()?;
    Ok(Arc::new(reached))
}

/// Named columns by their attributes' places, ascending.
pub(super) fn by_place<'a>(
    schema: &Schema,
    named: &[(String, ColumnView<'a>)],
) -> Result<Vec<(usize, ColumnView<'a>)>> {
    let mut placed = Vec::with_capacity(named.len());
    for (name, view) in named {
        placed.push((schema.attr(name)?.0, *view));
    }
    placed.sort_by_key(|(place, _)| *place);
    Ok(placed)
}
