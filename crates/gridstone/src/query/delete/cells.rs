//! The cells of a dense array that a condition selects, and the tombstones at them.
//!
//! Cells that were never written read as fill and may be selected too; there is nothing to delete. So only what fragments
//! reach is looked at: the boxes of dense ones, and the cells of sparse ones.

use super::request::{DeleteRequest, Judged};
use crate::base::{Progress, Result};
use crate::condition::{Batch, Coordinates};
use crate::fragment::{Description, FragmentKind, FragmentOrder, Staged};
use crate::query::dense::read::read_dense;
use crate::query::points::list::Points;
use crate::query::points::read_points;
use crate::query::request::{ReadContext, ReadOrder, Request, Target, WriteContext};
use crate::query::sparse::SparseReader;
use crate::query::write::cells::write_tombstones;
use crate::schema::{Order, Subarray};
use crate::tile::coordinates::coordinate_column;
use crate::tile::{BlockGrid, Column, ColumnView, TileGrid, unravel};
use std::sync::Arc;

/// Stages tombstones for the cells selected.
pub(super) fn delete(
    read: &ReadContext,
    write: &WriteContext<'_>,
    target: &Target,
    request: &DeleteRequest<'_>,
    staged: &mut Vec<Staged>,
    progress: &dyn Progress,
) -> Result<()> {
    let (seen, own): (Vec<_>, Vec<_>) =
        target.fragments.iter().cloned().partition(|d: &Arc<Description>| d.order.version <= request.version);
    let (seen, own) = (Written::of(&seen, &request.sub), Written::of(&own, &request.sub));
    let judged = Judged::of(seen.cells().saturating_add(own.cells()), progress);
    let mut search = Search { read, write, target, request, order: request.order(), staged, judged };
    search.written(seen)?;
    // Staged by the transaction that this is a part of: what deletes them is given an order after theirs when it is staged.
    search.order = FragmentOrder { version: 0, index: 0 };
    search.written(own)?;
    search.judged.up_to(u64::MAX);
    Ok(())
}

/// What fragments have written.
struct Written {
    /// Boxes of dense ones.
    regions: Vec<Subarray>,
    /// Those that hold single cells.
    single: Vec<Arc<Description>>,
}

impl Written {
    fn of(fragments: &[Arc<Description>], sub: &Subarray) -> Self {
        let of_kind = |kind: FragmentKind| fragments.iter().filter(move |d| d.kind == kind);
        let mut boxes: Vec<Subarray> = of_kind(FragmentKind::Dense).filter_map(|d| d.bounds.intersect(sub)).collect();
        boxes.sort_by_key(|region| std::cmp::Reverse(region.cells()));
        let mut regions: Vec<Subarray> = Vec::new();
        for region in boxes {
            // Cells looked at twice are deleted twice, which does no harm; most overwrites lie inside a larger box.
            if !regions.iter().any(|larger| larger.covers(&region)) {
                regions.push(region);
            }
        }
        Self { regions, single: of_kind(FragmentKind::Sparse).cloned().collect() }
    }

    /// How many cells are looked at, at most.
    fn cells(&self) -> u64 {
        let regions = self.regions.iter().map(|region| u64::try_from(region.cells()).unwrap_or(u64::MAX));
        regions.chain(self.single.iter().map(|d| d.cells)).fold(0, u64::saturating_add)
    }
}

struct Search<'a> {
    read: &'a ReadContext,
    write: &'a WriteContext<'a>,
    target: &'a Target,
    request: &'a DeleteRequest<'a>,
    /// That of what deletes.
    order: FragmentOrder,
    staged: &'a mut Vec<Staged>,
    judged: Judged<'a>,
}

impl Search<'_> {
    /// Deletes the cells selected of what was written.
    fn written(&mut self, written: Written) -> Result<()> {
        written.regions.iter().try_for_each(|region| self.region(region))?;
        if written.single.is_empty() { Ok(()) } else { self.single_cells(written.single, &written.regions) }
    }

    /// Judges the cells of a box, tile by tile.
    fn region(&mut self, region: &Subarray) -> Result<()> {
        let order = self.target.schema.options().cell_order;
        let cells = (self.read.batch_bytes() / self.target.row_bytes()).max(1);
        let grid = TileGrid::new(&self.target.schema, region)?;
        for tile in (0..grid.len()).filter_map(|tile| grid.tile_box(tile)) {
            let pieces = BlockGrid::new(&tile.shape(), order, cells);
            for piece in 0..pieces.len() {
                self.read.cancel.check()?;
                let piece = pieces.block_box(piece).within(&tile);
                self.piece(&piece, order)?;
                self.judged.more(piece.cells() as u64);
            }
        }
        Ok(())
    }

    fn piece(&mut self, piece: &Subarray, order: Order) -> Result<()> {
        let attrs = self.request.condition.columns().attrs;
        let layout = if order == Order::Row { ReadOrder::Row } else { ReadOrder::Col };
        let request = Request::of_box(piece.clone(), attrs.clone(), layout);
        let columns = if attrs.is_empty() { Vec::new() } else { read_dense(self.read, self.target, &request)?.attrs };
        let count = piece.cells() as usize;
        let mut batch = Batch::new(count).with_box(piece, order);
        for (place, column) in attrs.iter().zip(&columns) {
            batch = batch.with_attr(*place, column.view());
        }
        let selected = self.request.condition.evaluate(&batch)?;
        if selected.count() == count {
            let mut description =
                Description::deletion(self.write.entropy.id(), self.write.schema_number, piece.clone());
            description.order = self.order;
            self.staged.push(Staged { description, body: None });
            return Ok(());
        }
        let shape = piece.shape();
        let mut keys: Vec<Vec<u64>> = vec![Vec::new(); shape.len()];
        for row in selected.rows() {
            let offsets = unravel(row as u64, &shape, order);
            for ((column, offset), range) in keys.iter_mut().zip(offsets).zip(piece.ranges()) {
                column.push(range.lo + offset);
            }
        }
        let dims = self.target.schema.dims().iter().zip(&keys);
        let columns = dims.map(|(dim, keys)| coordinate_column(dim.datatype(), keys)).collect::<Result<Vec<_>>>()?;
        self.bury(&columns)
    }

    /// Judges the cells of sparse fragments, but for those in boxes that were looked at.
    fn single_cells(&mut self, fragments: Vec<Arc<Description>>, seen: &[Subarray]) -> Result<()> {
        let attrs = self.request.condition.columns().attrs;
        let written = Target { fragments, ..self.target.clone() };
        let request = Request::of_box(self.request.sub.clone(), Vec::new(), ReadOrder::Global);
        let mut sweep = SparseReader::new(self.read, &written, &request)?;
        while let Some(cells) = sweep.next(self.read.batch_bytes())? {
            let views: Vec<ColumnView<'_>> = cells.dims.iter().map(Column::view).collect();
            let points = Points::new(self.read, &self.target.schema, &views)?;
            let values = read_points(self.read, self.target, &points, &attrs)?;
            let mut batch = Batch::of_cells(&self.target.schema, &values, &attrs);
            for (dim, column) in views.iter().enumerate() {
                batch = batch.with_dim(dim, Coordinates::Column(*column));
            }
            let selected = self.request.condition.evaluate(&batch)?;
            let near: Vec<&Subarray> =
                seen.iter().filter(|region| points.bounds().is_some_and(|b| b.intersects(region))).collect();
            let unseen = |row: &usize| !near.iter().any(|region| region.contains(points.cell_of_row(*row)));
            let rows: Vec<u32> = selected.rows().filter(unseen).map(|row| row as u32).collect();
            let dims: Vec<Column> = views.iter().map(|view| view.gather(&rows)).collect();
            self.bury(&dims)?;
            self.judged.more(values.count as u64);
        }
        Ok(())
    }

    fn bury(&mut self, dims: &[Column]) -> Result<()> {
        let views: Vec<ColumnView<'_>> = dims.iter().map(Column::view).collect();
        if let Some(mut staged) = write_tombstones(self.write, &self.target.schema, &views)? {
            staged.description.order = self.order;
            self.staged.push(staged);
        }
        Ok(())
    }
}
