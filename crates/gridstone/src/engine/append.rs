//! Appending to a dense array: a block goes behind the end of the domain, wherever that is when its commit succeeds.
//!
//! A commit that lost its place to another append is placed again: by whole tiles in its description alone
//! (`moved`), else it is cut again from the caller's buffer, which is held until the outcome is known.

use super::content::{self, Given};
use super::write::{DenseData, by_place, for_domain};
use super::{Array, Call, Staged};
use crate::base::{Error, Id, Result};
use crate::fragment::FragmentKind;
use crate::query::{DenseWrite, write_dense};
use crate::schema::{Extent, KeyRange, Order, Subarray};
use crate::store::{ArrayState, Changes, Operation, Rebase, Record, Snapshot, StandardRules};
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
            let staged = self.staged_behind(&state, block, call)?.with_given(given.clone());
            let end = state.domain().ranges().get(block.axis).copied().unwrap_or(KeyRange::EMPTY);
            let mut rules = Placed { array: self.id(), axis: block.axis, end, is_lost: false };
            match self.commit_by(vec![staged], message.map(str::to_owned), &snapshot, &mut rules) {
                Err(_) if rules.is_lost => self.session().move_to(self.store().refresh(&snapshot)?),
                outcome => return outcome,
            }
        }
    }

    fn given_of(&self, block: &Appended<'_>, call: &Call) -> Result<Option<Given>> {
        let (_, state) = self.state()?;
        let columns = by_place(state.schema(), &block.data)?;
        let shape = block_of(&state, block)?.shape();
        let packed = Subarray::new(shape.iter().map(|n| KeyRange::new(0, n.saturating_sub(1))).collect());
        self.given(call, || content::of_appended(state.schema(), block.axis, &packed, &columns, block.layout))
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

/// Where a block lies behind the end of an array.
fn block_of(state: &ArrayState, block: &Appended<'_>) -> Result<Subarray> {
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
    let Some(place) = dim.behind(block.count) else {
        let all = schema.widest().ranges().get(block.axis).copied().unwrap_or(dim.range());
        let low = dim.behind(1).map(|first| first.lo);
        return Err(Error::bounds(format!(
            "dimension {:?} has {} coordinates left behind its end, {} were appended; its type {} has no more",
            dim.name(),
            low.map_or(0, |low| (u128::from(all.hi) + 1).saturating_sub(u128::from(low))),
            block.count,
            dim.datatype()
        )));
    };
    let mut ranges = state.domain().ranges().to_vec();
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
    /// Whether another commit took the place, and the block has to be cut again.
    is_lost: bool,
}

impl Placed {
    fn place(&mut self, newest: &Snapshot, changes: &mut Changes) -> Result<()> {
        StandardRules::check(newest, changes)?;
        let state = newest.array_by_id(self.array)?;
        let (Some(own), Some(dim)) = (state.domain().ranges().get(self.axis), state.schema().dims().get(self.axis))
        else {
            return self.lost();
        };
        if own.hi == self.end.hi && own.is_empty() == self.end.is_empty() {
            return if self.fits(&state, changes) { Ok(()) } else { self.lost() };
        }
        let by = own.hi.checked_sub(self.end.hi).filter(|_| !self.end.is_empty());
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
        Err(Error::conflict("another commit made the domain reach to where the block was placed"))
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
