//! Appending to a dense array: a block goes behind the end of the domain, wherever that is when its commit succeeds.
//!
//! A commit that lost its place to another append is placed again: by whole tiles in its description alone
//! (`moved`), else it is cut again from the caller's buffer, which is held until the outcome is known.

use super::content::{self, Given};
use super::labels::LabelParts;
use super::write::{DenseData, by_place, for_domain};
use super::{Array, Call, Staged};
use crate::base::{Error, ErrorKind, Id, Result};
use crate::fragment::FragmentKind;
use crate::query::{DenseWrite, write_dense};
use crate::schema::{Dimension, Extent, KeyRange, Labels, Order, Subarray};
use crate::store::{ArrayState, Changes, Operation, Rebase, Record, Snapshot, StandardRules};
use crate::tile::ColumnView;
use std::sync::Arc;

/// A dense block to append: as long as the domain along every axis but one.
#[derive(Debug)]
pub struct Appended<'a> {
    /// The axis that becomes longer.
    pub axis: usize,
    /// By how many coordinates.
    pub count: u64,
    /// Values by attribute name.
    pub data: DenseData<'a>,
    /// How they are laid out.
    pub layout: Order,
    /// Labels of its coordinates along the axis, of the type that those of the dimension have.
    pub labels: Option<ColumnView<'a>>,
}

impl Array {
    /// Appends a block in one commit and gives its version. Every block is placed behind those of all commits before it, also
    /// of other processes. In a transaction it is staged behind what the transaction sees.
    ///
    /// With a key in `call`, the same block is appended once.
    ///
    /// # Errors
    /// Bounds: no such axis, or its type has no coordinates left; Input: a block of another shape; Unsupported: a sparse array;
    /// Schema: a tile without an extent would have too many cells; those of [`Array::commit`].
    pub fn append(&self, block: &Appended<'_>, message: Option<&str>, call: &Call) -> Result<u64> {
        self.check_writable()?;
        let given = self.given_of(block, call)?;
        if let Some(done) = self.done_before(given.as_ref())? {
            self.session().move_to(Arc::clone(&done.snapshot));
            return Ok(done.version);
        }
        self.note_ends()?;
        loop {
            let (snapshot, state) = self.state()?;
            let LabelParts { operations, staged: mut all } = self.labels_behind(&snapshot, &state, block, call)?;
            all.insert(0, self.staged_behind(&state, block, call)?.with_given(given.clone()));
            let mut rules = Placed::behind(self.id(), block, &snapshot, &state)?;
            match self.commit_parts(operations, all, message.map(str::to_owned), &snapshot, &mut rules) {
                Err(_) if rules.is_lost => self.session().move_to(self.store().refresh(&snapshot)?),
                outcome => return outcome,
            }
        }
    }

    fn given_of(&self, block: &Appended<'_>, call: &Call) -> Result<Option<Given>> {
        let (_, state) = self.state()?;
        let columns = by_place(state.schema(), &block.data)?;
        // Where the block lies is left out, also whether there is room: it may have been appended before, to the end.
        let mut packed: Vec<KeyRange> = sides_of(&state, block)?.1;
        packed.iter_mut().for_each(|side| *side = KeyRange::new(0, side.hi.wrapping_sub(side.lo)));
        if let Some(own) = packed.get_mut(block.axis) {
            *own = KeyRange::new(0, block.count - 1);
        }
        let packed = Subarray::new(packed);
        self.given(call, || {
            let body = content::of_appended(state.schema(), block.axis, &packed, &columns, block.layout);
            block.labels.as_ref().map_or(body, |labels| content::of_labelled(body, labels))
        })
    }

    /// What the labels of the block need behind the end of the array as it is in `state`.
    fn labels_behind(
        &self,
        snapshot: &Snapshot,
        state: &ArrayState,
        block: &Appended<'_>,
        call: &Call,
    ) -> Result<LabelParts> {
        let range = block_of(state, block)?.ranges().get(block.axis).copied().unwrap_or(KeyRange::EMPTY);
        self.append_labels((snapshot, state), (block.axis, range), block.labels, call)
    }

    /// The block behind the end of the array as it is in `state`.
    fn staged_behind(&self, state: &ArrayState, block: &Appended<'_>, call: &Call) -> Result<Staged> {
        let context = self.write_context(state, call)?;
        let sub = block_of(state, block)?;
        let schema = for_domain(state.schema(), Some(&sub))?;
        let write = DenseWrite { sub, columns: by_place(&schema, &block.data)?, layout: block.layout };
        Ok(self.staged(vec![write_dense(&context, &schema, &write)?]).with_growth(state.schema(), &schema))
    }
}

/// The dimension along which a block is appended, and the domain, which is as long along all others as the block.
fn sides_of<'s>(state: &'s ArrayState, block: &Appended<'_>) -> Result<(&'s Dimension, Vec<KeyRange>)> {
    let schema = state.schema();
    if schema.sparse() {
        return Err(Error::unsupported("a block is appended to a dense array; write cells into a sparse one"));
    }
    let dim = schema
        .dims()
        .get(block.axis)
        .ok_or_else(|| Error::bounds(format!("there is no axis {}; the array has {}", block.axis, schema.ndim())))?;
    if block.count == 0 {
        return Err(Error::input("a block to append has at least one coordinate along its axis"));
    }
    let others = schema.dims().iter().enumerate().filter(|(axis, _)| *axis != block.axis);
    if let Some((_, other)) = others.clone().find(|(_, other)| other.range().is_empty()) {
        return Err(Error::bounds(format!(
            "the array has no coordinate along dimension {:?} yet, so it is not known how long a block to append is there; \
             write the first one as a box",
            other.name()
        )));
    }
    Ok((dim, state.domain().ranges().to_vec()))
}

/// Where a block lies behind the end of an array.
fn block_of(state: &ArrayState, block: &Appended<'_>) -> Result<Subarray> {
    let (dim, mut ranges) = sides_of(state, block)?;
    let Some(place) = dim.behind(block.count) else {
        let all = state.schema().widest().ranges().get(block.axis).copied().unwrap_or(dim.range());
        let low = dim.behind(1).map(|first| first.lo);
        return Err(Error::bounds(format!(
            "dimension {:?} has {} coordinates left behind its end, {} were appended; its type {} has no more",
            dim.name(),
            low.map_or(0, |low| (u128::from(all.hi) + 1).saturating_sub(u128::from(low))),
            block.count,
            dim.datatype()
        )));
    };
    if let Some(own) = ranges.get_mut(block.axis) {
        *own = place;
    }
    Ok(Subarray::new(ranges))
}

/// The rules of a block that was placed behind `end`: [`StandardRules`], and the block moves with the end of the domain.
struct Placed {
    array: Id,
    axis: usize,
    /// The domain along the axis that the block was placed behind.
    end: KeyRange,
    /// The labels of the dimension there, and whether the block has some of its own.
    labels: Option<Labels>,
    is_labelled: bool,
    /// The block's coordinates along the axis, and what was seen there of the array that the labels lie in, if others share it.
    range: KeyRange,
    shared: Option<SharedLabels>,
    /// Whether another commit took the place, and the block has to be cut again.
    is_lost: bool,
}

/// The labels of the dimension at `axis`.
fn labels_of(state: &ArrayState, axis: usize) -> Option<&Labels> {
    state.schema().dims().get(axis).and_then(Dimension::labels)
}

/// What an array of shared labels holds at the coordinates of a block: its domain, and the fragments there.
type SharedLabels = (Subarray, Vec<Id>);

/// What lies at `range` in the array of these labels, if others share it and it is there.
fn seen_of(snapshot: &Snapshot, labels: Option<&Labels>, range: KeyRange) -> Result<Option<SharedLabels>> {
    let Some(id) = labels.and_then(Labels::shared) else { return Ok(None) };
    let Some(state) = snapshot.find_array(id)? else { return Ok(None) };
    let mut ids: Vec<Id> = state.fragments(Some(&Subarray::new(vec![range])))?.iter().map(|found| found.id).collect();
    ids.sort_unstable();
    Ok(Some((state.domain().clone(), ids)))
}

impl Placed {
    /// Those of a block that was placed behind the end in `state`.
    fn behind(array: Id, block: &Appended<'_>, snapshot: &Snapshot, state: &ArrayState) -> Result<Self> {
        let end = state.domain().ranges().get(block.axis).copied().unwrap_or(KeyRange::EMPTY);
        let labels = labels_of(state, block.axis).cloned();
        let range = block_of(state, block)?.ranges().get(block.axis).copied().unwrap_or(KeyRange::EMPTY);
        let shared = seen_of(snapshot, labels.as_ref(), range)?;
        let is_labelled = block.labels.is_some();
        Ok(Self { array, axis: block.axis, end, labels, is_labelled, range, shared, is_lost: false })
    }

    fn place(&mut self, newest: &Snapshot, changes: &mut Changes) -> Result<()> {
        if newest.find_array(self.array)?.is_some_and(|state| labels_of(&state, self.axis) != self.labels.as_ref()) {
            return self.lost();
        }
        // Others may have put labels at the block's coordinates.
        if seen_of(newest, self.labels.as_ref(), self.range)? != self.shared {
            return self.lost();
        }
        match StandardRules::check(newest, changes) {
            // Labels that are listed make another schema, which is made again of what others made of it.
            Err(e)
                if e.kind() == ErrorKind::Conflict
                    && changes.alters(self.array)
                    && newest.find_array(self.array)?.is_some() =>
            {
                return self.lost();
            }
            checked => checked?,
        }
        let state = newest.array_by_id(self.array)?;
        let (Some(own), Some(dim)) = (state.domain().ranges().get(self.axis), state.schema().dims().get(self.axis))
        else {
            return self.lost();
        };
        if own.hi == self.end.hi && own.is_empty() == self.end.is_empty() {
            // Labels that were listed for the domain as it was lack those of what lies below it by now.
            let is_listed_for_all = !self.is_labelled || *own == self.end;
            return if is_listed_for_all && self.fits(&state, changes) { Ok(()) } else { self.lost() };
        }
        // Labels would have to move too: they lie elsewhere, or say what is at the place.
        let stays = self.is_labelled || self.labels.as_ref().is_some_and(|labels| labels.shared().is_some());
        let by = own.hi.checked_sub(self.end.hi).filter(|_| !self.end.is_empty() && !stays);
        let (Some(by), Extent::Cells(tile)) = (by, dim.extent()) else { return self.lost() };
        if !by.is_multiple_of(tile) || !self.fits(&state, changes) || !self.shift(changes, by, by / tile) {
            return self.lost();
        }
        self.end = *own;
        Ok(())
    }

    /// Whether the block is as long as the domain along every other axis.
    fn fits(&self, state: &ArrayState, changes: &Changes) -> bool {
        changes.added_to(self.array).all(|added| {
            let pairs = added.bounds.ranges().iter().zip(state.domain().ranges()).enumerate();
            added.kind == FragmentKind::Dense && pairs.filter(|(axis, _)| *axis != self.axis).all(|(_, (a, b))| a == b)
        })
    }

    /// Moves the block, and what the domain grows to, by so many coordinates; `false` if there is no such place.
    fn shift(&self, changes: &mut Changes, by: u64, tiles: u64) -> bool {
        let Ok(tiles) = i64::try_from(tiles) else { return false };
        let mut moved = Vec::new();
        for operation in &changes.operations {
            let mut operation = operation.clone();
            let done = match &mut operation {
                Operation::Grow { dimension, range, .. } if *dimension as usize == self.axis => {
                    range.hi.checked_add(by).map(|hi| range.hi = hi)
                }
                Operation::AddFragments { fragments, .. } => {
                    fragments.iter_mut().try_for_each(|f| f.description.shift(self.axis, by, tiles))
                }
                _ => Some(()),
            };
            if done.is_none() {
                return false;
            }
            moved.push(operation);
        }
        changes.operations = moved;
        true
    }

    fn lost(&mut self) -> Result<()> {
        self.is_lost = true;
        Err(Error::conflict(
            "another commit made the domain reach to where the block was placed, or changed the labels there",
        ))
    }
}

impl Rebase for Placed {
    fn newest_suffices(&self) -> bool {
        true
    }

    fn rebase(&mut self, _lost_to: &Record, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        self.place(newest, changes)
    }

    fn rebase_past_floor(&mut self, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        self.place(newest, changes)
    }
}
