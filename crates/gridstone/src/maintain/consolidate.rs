//! Merging fragments of cells: the read that a user would do over them, into new fragments, which take their place.
//!
//! Cells stream from a sweep of the inputs in global order into fragments of about the target size. Where several inputs
//! have a cell the newest one stays, or all where the array allows duplicates; tombstones in between have done their work.
//! Nothing is visible before the caller commits the replacement.

use super::plan::Merge;
use crate::array::{Operation, Removed};
use crate::base::{Error, Id, Result};
use crate::fragment::{Description, Staged};
use crate::query::{CellStream, Cells, ReadContext, ReadOrder, Request, Sweeper, Target, WriteContext};
use crate::schema::Schema;
use crate::tile::{Column, ColumnView};
use std::sync::Arc;

/// Merged fragments that nothing refers to yet.
#[derive(Debug)]
pub struct Merged {
    /// What they take the place of.
    pub removed: Vec<Removed>,
    /// They, all of the greatest order of those; none if every cell is deleted.
    pub fragments: Vec<Staged>,
}

impl Merged {
    /// The operation that puts them in place.
    pub fn operation(&self, array: Id) -> Operation {
        Operation::ReplaceFragments { array, removed: self.removed.clone(), fragments: self.fragments.clone() }
    }
}

/// Does `merge` for the array that `target` is of (its fragments do not matter); fragments are cut at about `target_bytes`.
///
/// What is written is in `done` after an error too: the caller sees to it that the files go.
pub fn merge_cells(
    read: &ReadContext,
    write: &WriteContext<'_>,
    target: &Target,
    merge: &Merge,
    target_bytes: u64,
    done: &mut Vec<Staged>,
) -> Result<Merged> {
    let schema = &target.schema;
    let places = places_of(schema, merge)?;
    let mut fragments: Vec<Arc<Description>> = merge.inputs.iter().chain(&merge.applied).cloned().collect();
    fragments.sort_by_key(|d| d.order);
    let stored: u64 = merge.inputs.iter().map(|d| d.location.len).sum();
    let bytes_per_cell = stored / merge.cells().max(1) + 1;
    let inputs = Target { fragments, ..target.clone() };
    let request = Request { sub: schema.domain(), attrs: places.clone(), order: ReadOrder::Global };
    let mut cells = Sweeper::new(read, &inputs, &request)?;
    let mut out = Output { write, schema, places, cells_max: (target_bytes / bytes_per_cell).max(1), open: None, done };
    while let Some(batch) = cells.next_batch()? {
        write.cancel.check()?;
        out.append(&batch)?;
    }
    out.close()?;
    let order = merge.order();
    done.iter_mut().for_each(|staged| staged.description.order = order);
    let removed = merge.inputs.iter().chain(&merge.retired).map(|d| Removed::of(d)).collect();
    Ok(Merged { removed, fragments: done.clone() })
}

/// The places in the schema of the attributes that the inputs have.
fn places_of(schema: &Schema, merge: &Merge) -> Result<Vec<usize>> {
    let ids = merge.inputs.first().map(|d| d.attrs.as_slice()).unwrap_or_default();
    let place = |id: &u32| schema.attrs().iter().position(|a| a.id() == *id);
    let places: Vec<usize> = ids.iter().filter_map(place).collect();
    if places.len() == ids.len() { Ok(places) } else { Err(Error::corruption("fragments of unknown attributes")) }
}

/// Fragments being written one after the other.
struct Output<'a> {
    write: &'a WriteContext<'a>,
    schema: &'a Arc<Schema>,
    places: Vec<usize>,
    cells_max: u64,
    open: Option<(CellStream, u64, Cells)>,
    done: &'a mut Vec<Staged>,
}

impl Output<'_> {
    fn append(&mut self, batch: &Cells) -> Result<()> {
        // Cells at one place stay in one fragment: those of two fragments of one order would stand in no order.
        if let Some((_, count, last)) = &self.open
            && *count >= self.cells_max
            && !continues(last, batch)
        {
            self.close()?;
        }
        let (mut stream, count) = match self.open.take() {
            Some((stream, count, _)) => (stream, count),
            None => (CellStream::of_cells(self.write, self.schema.clone(), self.places.clone())?, 0),
        };
        let dims: Vec<ColumnView<'_>> = batch.dims.iter().map(Column::view).collect();
        let attrs: Vec<ColumnView<'_>> = batch.attrs.iter().map(Column::view).collect();
        stream.append(self.write.cancel, &dims, &attrs)?;
        self.open = Some((stream, count + batch.count as u64, last_of(batch)));
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        if let Some((stream, ..)) = self.open.take() {
            self.done.extend(stream.finish(self.write.cancel)?);
        }
        Ok(())
    }
}

/// The coordinates of the last cell of a batch.
fn last_of(batch: &Cells) -> Cells {
    let row = batch.count.saturating_sub(1);
    let dims = batch.dims.iter().map(|c| c.view().copy_range(row, batch.count)).collect();
    Cells { count: batch.count - row, dims, attrs: Vec::new() }
}

/// Whether a batch begins at the place where the one before ended.
fn continues(last: &Cells, batch: &Cells) -> bool {
    let first = |c: &Column| c.view().copy_range(0, batch.count.min(1));
    last.dims.iter().zip(&batch.dims).all(|(a, b)| a.view().values() == first(b).view().values())
}
