//! The footprint of a fragment: the cells that it writes or deletes.
//!
//! A dense fragment and a deletion have their box. Sparse cells, tombstones and the rows that a mask marks are told by their coordinates while few;
//! of more the MBRs of their tiles stand for them, so that what is read for it stays small.

use super::block::masks::open_mask;
use super::block::open::open_fragment;
use super::block::sparse::{SparseBlock, broken_index, fetch_coordinates, touched_blocks};
use super::request::{Area, ReadContext};
use crate::base::Result;
use crate::fragment::{Description, Fragment, FragmentKind, Mask};
use crate::schema::{Schema, Subarray};
use crate::store::{CELLS_MAX, CellSet};
use std::sync::Arc;

/// Cells of the blocks that are read for the rows of a mask: these may be few in each.
const LOOKED_AT_MAX: usize = 16 * CELLS_MAX;

/// Blocks whose coordinates are held together.
const TOGETHER: usize = 64;

/// A fragment that writes: what a version, or a transaction, has added to an array.
#[derive(Debug, Clone, Copy)]
pub struct Footprint<'a> {
    /// The array's schema.
    pub schema: &'a Arc<Schema>,
    /// The fragment.
    pub fragment: &'a Arc<Description>,
    /// Of a mask: the fragment that it lies over. Without it all of that one's box counts.
    pub under: Option<&'a Arc<Description>>,
}

impl Footprint<'_> {
    /// Puts into `found` what it has of `near`.
    ///
    /// # Errors
    /// NotFound, Corruption, Storage.
    pub fn add_to(&self, context: &ReadContext, near: &CellSet, found: &mut CellSet) -> Result<()> {
        let Self { schema, fragment: description, under } = *self;
        let cells = match (description.kind, under) {
            (FragmentKind::Sparse | FragmentKind::Tombstones, _) => {
                Cells { fragment: open_fragment(context, schema, description)?, mask: None, count: description.cells }
            }
            (FragmentKind::Mask, Some(under)) => Cells {
                fragment: open_fragment(context, schema, under)?,
                mask: Some(open_mask(context, description, (under.id, under.cells))?),
                count: description.cells,
            },
            (FragmentKind::Dense | FragmentKind::Deletion | FragmentKind::Mask, _) => {
                found.add_common(near, &description.bounds);
                return Ok(());
            }
        };
        match cells.few_blocks(context, near)? {
            Some(blocks) => cells.by_coordinates(context, schema, &blocks, near, found),
            None => cells.by_tiles(near, found),
        }
    }
}

/// The cells of a fragment, or those that a mask marks.
struct Cells {
    fragment: Arc<Fragment>,
    mask: Option<Arc<Mask>>,
    count: u64,
}

impl Cells {
    /// The blocks that may have some of `near`; `None` if they are too many, or the cells are.
    fn few_blocks(&self, context: &ReadContext, near: &CellSet) -> Result<Option<Vec<SparseBlock>>> {
        let Some(hull) = near.hull().filter(|_| self.count <= CELLS_MAX as u64) else { return Ok(None) };
        let (mut blocks, mut cells) = (Vec::new(), 0usize);
        touched_blocks(context, &self.fragment, Area::whole(hull), |block, _| {
            if cells <= LOOKED_AT_MAX && self.marks(&block) && near.touches(&block.bounds) {
                cells += block.cells;
                blocks.push(block);
            }
        })?;
        Ok((cells <= LOOKED_AT_MAX).then_some(blocks))
    }

    fn marks(&self, block: &SparseBlock) -> bool {
        let first = block.first_row(&self.fragment);
        self.mask.as_ref().is_none_or(|mask| mask.touches(block.tile, first, block.cells))
    }

    fn by_coordinates(
        &self,
        context: &ReadContext,
        schema: &Schema,
        blocks: &[SparseBlock],
        near: &CellSet,
        found: &mut CellSet,
    ) -> Result<()> {
        for group in blocks.chunks(TOGETHER) {
            let wants: Vec<_> = group.iter().map(|block| (&self.fragment, block)).collect();
            for (block, columns) in group.iter().zip(fetch_coordinates(context, schema, &wants, false)?) {
                let first = block.first_row(&self.fragment);
                let mut cell = Vec::with_capacity(columns.len());
                for row in 0..block.cells {
                    if self.mask.as_ref().is_some_and(|mask| !mask.has(block.tile, first + row)) {
                        continue;
                    }
                    cell.clear();
                    cell.extend(columns.iter().filter_map(|column| column.get(row).copied()));
                    if near.contains(&cell) {
                        found.add_cell(&cell);
                    }
                }
            }
        }
        Ok(())
    }

    fn by_tiles(&self, near: &CellSet, found: &mut CellSet) -> Result<()> {
        let wrong = || broken_index(&self.fragment);
        for number in 0..self.fragment.stripes() {
            let stripe = self.fragment.stripe(number)?;
            for local in 0..stripe.tiles() {
                let tile = self.fragment.first_tile(number) + local as u64;
                if self.mask.as_ref().is_some_and(|mask| !mask.has_some(tile)) {
                    continue;
                }
                let bounds: Subarray = stripe.tile_bounds(local).ok_or_else(wrong)?.to_subarray();
                found.add_common(near, &bounds);
            }
        }
        Ok(())
    }
}
