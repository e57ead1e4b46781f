//! Tombstones that merges write: those of many fragments as one, and those of cells that a dense result holds although they are deleted.

use crate::base::{Result, Silent};
use crate::fragment::{Description, FragmentKind, Staged};
use crate::query::block::open::open_fragment;
use crate::query::block::sparse::{fetch_coordinates, touched_blocks};
use crate::query::dense::read::read_dense;
use crate::query::request::{Area, BudgetHold, ReadContext, ReadOrder, Request, Target, WriteContext};
use crate::query::write::cells::write_tombstones;
use crate::schema::{Evolution, Order, Schema, Subarray};
use crate::tile::coordinates::coordinate_columns;
use crate::tile::{Column, ColumnView, unravel};
use std::sync::Arc;

/// All cells that fragments of tombstones delete, as one fragment of them; `None` if there is none. They are held in memory.
///
/// # Errors
/// Corruption, Storage, Cancelled.
pub fn merge_tombstones(
    read: &ReadContext,
    write: &WriteContext<'_>,
    schema: &Arc<Schema>,
    fragments: &[Arc<Description>],
) -> Result<Option<Staged>> {
    let cells: u64 = fragments.iter().map(|d| d.cells).sum();
    let _held = BudgetHold::take(&read.budget, cells.saturating_mul(16 * schema.ndim() as u64));
    let mut keys: Vec<Vec<u64>> = vec![Vec::with_capacity(cells as usize); schema.ndim()];
    for description in fragments {
        read.cancel.check()?;
        let fragment = open_fragment(read, schema, description)?;
        let mut blocks = Vec::new();
        touched_blocks(read, &fragment, Area::whole(&description.bounds), |block, _| blocks.push(block))?;
        let blocks: Vec<_> = blocks.iter().map(|block| (&fragment, block)).collect();
        for block in fetch_coordinates(read, schema, &blocks, true)? {
            keys.iter_mut().zip(block).for_each(|(column, more)| column.extend(more));
        }
    }
    buried(write, schema, keys)
}

/// Tombstones at the cells with these keys, a column per axis.
fn buried(write: &WriteContext<'_>, schema: &Schema, keys: Vec<Vec<u64>>) -> Result<Option<Staged>> {
    let dims = coordinate_columns(schema, &keys)?;
    drop(keys);
    let dims: Vec<ColumnView<'_>> = dims.iter().map(Column::view).collect();
    write_tombstones(&WriteContext { progress: &Silent, ..write.clone() }, schema, &dims)
}

/// Which cells of a dense array are deleted, where not all of its attributes may be null: those that read as null if one may.
pub(super) struct Deleted {
    /// The schema in which it may.
    schema: Arc<Schema>,
    /// Its place there.
    place: usize,
}

impl Deleted {
    /// Of what has values of the attributes at `places`; `None` if all of these may be null, so that a deleted cell is null.
    pub(in crate::query) fn new(schema: &Arc<Schema>, places: &[usize]) -> Result<Option<Self>> {
        let attrs = places.iter().filter_map(|place| Some((*place, schema.attrs().get(*place)?)));
        let solid = attrs.filter(|(_, attr)| !attr.nullable());
        // Values of one width are read more quickly.
        let Some((place, attr)) = solid.min_by_key(|(_, attr)| attr.datatype().width().unwrap_or(usize::MAX)) else {
            return Ok(None);
        };
        let evolution = Evolution { nullable: vec![attr.name().to_owned()], ..Evolution::default() };
        let schema = Arc::new(schema.evolved(schema, &evolution)?);
        Ok(Some(Self { schema, place }))
    }

    /// The rows of the deleted cells of a box that dense fragments among `target`'s cover, laid out in the array's cell order.
    pub(in crate::query) fn rows(&self, read: &ReadContext, target: &Target, region: &Subarray) -> Result<Vec<usize>> {
        let order = self.schema.options().cell_order;
        let layout = if order == Order::Row { ReadOrder::Row } else { ReadOrder::Col };
        let target = Target { schema: Arc::clone(&self.schema), ..target.clone() };
        let request = Request::of_box(region.clone(), vec![self.place], layout);
        let cells = read_dense(read, &target, &request)?;
        let validity = cells.attrs.first().and_then(|column| column.view().validity()).unwrap_or_default();
        Ok(validity.iter().enumerate().filter(|(_, valid)| **valid == 0).map(|(row, _)| row).collect())
    }
}

/// Cells that a merge holds although they are deleted, until they are written as tombstones.
pub(super) struct Leftover<'a> {
    read: &'a ReadContext,
    schema: &'a Schema,
    keys: Vec<Vec<u64>>,
    held: Option<BudgetHold<'a>>,
}

impl<'a> Leftover<'a> {
    /// None yet.
    pub(in crate::query) fn new(read: &'a ReadContext, schema: &'a Schema) -> Self {
        Self { read, schema, keys: vec![Vec::new(); schema.ndim()], held: None }
    }

    fn bytes(&self) -> u64 {
        // Their keys, and those again in order.
        self.keys.iter().map(|column| column.len() as u64 * 16).sum()
    }

    /// Adds those at `rows` of a box, laid out in the array's cell order.
    pub(in crate::query) fn add(&mut self, region: &Subarray, rows: &[usize]) {
        let (shape, order) = (region.shape(), self.schema.options().cell_order);
        for row in rows {
            let offsets = unravel(*row as u64, &shape, order);
            for ((column, offset), range) in self.keys.iter_mut().zip(offsets).zip(region.ranges()) {
                column.push(range.lo + offset);
            }
        }
        let bytes = self.bytes();
        self.held = None;
        self.held = Some(BudgetHold::take(&self.read.budget, bytes));
    }

    /// Whether they take an eighth of the memory.
    pub(super) fn is_full(&self) -> bool {
        self.bytes() >= self.read.batch_bytes()
    }

    /// Writes them, if there are some, and begins anew. The result has no order yet.
    pub(in crate::query) fn write(&mut self, write: &WriteContext<'_>, done: &mut Vec<Staged>) -> Result<()> {
        let none = vec![Vec::new(); self.schema.ndim()];
        let keys = std::mem::replace(&mut self.keys, none);
        if keys.first().is_some_and(|column| !column.is_empty()) {
            done.extend(buried(write, self.schema, keys)?);
        }
        self.held = None;
        Ok(())
    }
}

/// Whether one of the fragments deletes single cells.
pub(super) fn deletes_cells(fragments: &[Arc<Description>]) -> bool {
    fragments.iter().any(|d| d.kind == FragmentKind::Tombstones)
}
