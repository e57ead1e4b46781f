//! The rows of a sparse array's fragments that a condition selects, and the masks over them.

use super::request::{DeleteRequest, Judged};
use crate::base::{Error, FileRef, Id, Progress, Result, limits};
use crate::condition::{Batch, Coordinates};
use crate::fragment::{Description, Fragment, FragmentKind, FragmentOrder, Location, Mask, Role, Staged, ValueBounds};
use crate::query::block::deletions::Deletions;
use crate::query::block::fetch::{Want, fetch};
use crate::query::block::masks::{Masks, is_masked};
use crate::query::block::open::open_all;
use crate::query::block::sparse::{SparseBlock, fetch_coordinates, touched_blocks};
use crate::query::points::list::Points;
use crate::query::points::{read_points, rows_at};
use crate::query::request::{Area, ReadContext, ReadOrder, Request, Target, WriteContext};
use crate::query::sparse::SparseReader;
use crate::query::write::cells::write_tombstones;
use crate::schema::Attribute;
use crate::tile::{Column, ColumnView};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;

/// Masks the rows that hold the cells selected.
pub(super) fn mask(
    read: &ReadContext,
    write: &WriteContext<'_>,
    target: &Target,
    request: &DeleteRequest<'_>,
    staged: &mut Vec<Staged>,
    progress: &dyn Progress,
) -> Result<()> {
    let holds = |d: &&Arc<Description>| d.kind == FragmentKind::Sparse && d.bounds.intersects(&request.sub);
    let described = target.fragments.iter().filter(holds).cloned().collect();
    let fragments = open_all(read, &target.schema, described)?;
    let old = Masks::load(read, &target.fragments)?;
    // Staged by the transaction that this is a part of.
    let is_own = |d: &&Arc<Description>| d.order.version > request.version || d.kind == FragmentKind::Mask;
    let own: Vec<_> = target.fragments.iter().filter(is_own).cloned().collect();
    let search = Search { read, target, request, fragments, old, own };
    let mut judged =
        Judged::of(search.fragments.iter().map(|f| f.description().cells).fold(0, u64::saturating_add), progress);
    let masks = match target.schema.options().duplicates {
        true => search.each_row(&mut judged)?,
        false => search.each_cell(write, &mut judged, staged)?,
    };
    judged.up_to(u64::MAX);
    for (fragment, mask) in search.fragments.iter().zip(masks) {
        if mask.rows() > 0 {
            staged.push(stage(write, fragment.description(), &mask)?);
        }
    }
    Ok(())
}

struct Search<'a> {
    read: &'a ReadContext,
    target: &'a Target,
    request: &'a DeleteRequest<'a>,
    fragments: Vec<Arc<Fragment>>,
    /// What is masked already.
    old: Masks,
    /// What is not committed yet, and masks.
    own: Vec<Arc<Description>>,
}

impl Search<'_> {
    fn blank(&self) -> Vec<Mask> {
        vec![Mask::default(); self.fragments.len()]
    }

    /// Where a place may hold several cells each is judged by itself.
    fn each_row(&self, judged: &mut Judged<'_>) -> Result<Vec<Mask>> {
        let mut masks = self.blank();
        let deletions = Deletions::of(&self.target.fragments, &self.request.sub);
        for (fragment, mask) in self.fragments.iter().zip(&mut masks) {
            let mut blocks = Vec::new();
            touched_blocks(self.read, fragment, Area::whole(&self.request.sub), |at, _| blocks.push(at))?;
            let largest = blocks.iter().map(|at| at.cells).max().unwrap_or(1) as u64;
            let room = self.read.batch_bytes() / largest.saturating_mul(self.target.row_bytes()).max(1);
            for group in blocks.chunks(usize::try_from(room).unwrap_or(usize::MAX).max(1)) {
                self.read.cancel.check()?;
                self.judge_blocks(fragment, group, &deletions, mask)?;
                judged.more(group.iter().map(|at| at.cells as u64).sum());
            }
        }
        Ok(masks)
    }

    fn judge_blocks(
        &self,
        fragment: &Arc<Fragment>,
        blocks: &[SparseBlock],
        deletions: &Deletions,
        mask: &mut Mask,
    ) -> Result<()> {
        let schema = &self.target.schema;
        let attrs = self.request.condition.columns().attrs;
        let pairs: Vec<_> = blocks.iter().map(|at| (fragment, at)).collect();
        let coords = fetch_coordinates(self.read, schema, &pairs, true)?;
        let mut wants = Vec::with_capacity(blocks.len() * attrs.len());
        for at in blocks {
            for attr in attrs.iter().filter_map(|place| schema.attrs().get(*place)) {
                let Some(field) = fragment.field(Role::Attribute(attr.id())) else { continue };
                let block = fragment.block(field, at.tile, at.block, at.cells)?;
                wants.push(Want { source: fragment.clone(), block });
            }
        }
        let mut values = fetch(self.read, &wants, true)?.into_iter();
        for (at, coords) in blocks.iter().zip(&coords) {
            let held = |attr: &Attribute| fragment.field(Role::Attribute(attr.id())).is_some();
            let mut columns = Vec::with_capacity(attrs.len());
            for attr in attrs.iter().filter_map(|place| schema.attrs().get(*place)) {
                // An attribute that came after the fragment is blank in it.
                columns.extend(if held(attr) { values.next() } else { Some(Column::blanks(attr, at.cells)?) });
            }
            let mut batch = Batch::new(at.cells);
            for (dim, keys) in coords.iter().enumerate() {
                batch = batch.with_dim(dim, Coordinates::Keys(keys));
            }
            for (place, column) in attrs.iter().zip(&columns) {
                batch = batch.with_attr(*place, column.view());
            }
            let (order, tile_cells) = (fragment.description().order, tile_cells(fragment, at.tile)?);
            let first = at.first_row(fragment);
            for row in self.request.condition.evaluate(&batch)?.rows() {
                let cell = coords.iter().filter_map(move |c| c.get(row).copied());
                if self.request.sub.contains(cell.clone()) && !deletions.take(order, cell) {
                    self.add(fragment, mask, (at.tile, tile_cells, first + row));
                }
            }
        }
        Ok(())
    }

    /// Where a place holds one cell, that cell is judged, and all rows that were ever written there go with it.
    fn each_cell(
        &self,
        write: &WriteContext<'_>,
        judged: &mut Judged<'_>,
        staged: &mut Vec<Staged>,
    ) -> Result<Vec<Mask>> {
        let schema = &self.target.schema;
        let attrs = self.request.condition.columns().attrs;
        let request = Request::of_box(self.request.sub.clone(), attrs.clone(), ReadOrder::Global);
        let mut masks = self.blank();
        let places: HashMap<Id, usize> =
            self.fragments.iter().enumerate().map(|(place, f)| (f.description().id, place)).collect();
        let mut sweep = SparseReader::new(self.read, self.target, &request)?;
        while let Some(cells) = sweep.next(self.read.batch_bytes())? {
            judged.more(cells.count as u64);
            let selected = self.request.condition.evaluate(&Batch::of_cells(schema, &cells, &attrs))?;
            let rows: Vec<u32> = selected.rows().map(|row| row as u32).collect();
            if rows.is_empty() {
                continue;
            }
            let dims: Vec<Column> = cells.dims.iter().map(|c| c.view().gather(&rows)).collect();
            let views: Vec<ColumnView<'_>> = dims.iter().map(Column::view).collect();
            let points = Points::new(self.read, schema, &views)?;
            self.bury_own(write, &points, staged)?;
            for (fragment, tile, row) in rows_at(self.read, self.target, &points, &self.fragments)? {
                let place = places.get(&fragment.description().id);
                if let Some(mask) = place.and_then(|place| masks.get_mut(*place)) {
                    self.add(&fragment, mask, (tile, tile_cells(&fragment, tile)?, row));
                }
            }
        }
        Ok(masks)
    }

    /// Stages tombstones at the points where the cell is the transaction's own. A mask alone would take back that it was written,
    /// and show again what others write there before the transaction is committed: it has overwritten that, and then deleted.
    fn bury_own(&self, write: &WriteContext<'_>, points: &Points, staged: &mut Vec<Staged>) -> Result<()> {
        if self.own.iter().all(|d| d.kind == FragmentKind::Mask) {
            return Ok(());
        }
        let own = Target { fragments: self.own.clone(), ..self.target.clone() };
        let cells = read_points(self.read, &own, points, &[])?;
        let dims: Vec<ColumnView<'_>> = cells.dims.iter().map(Column::view).collect();
        staged.extend(write_tombstones(write, &self.target.schema, &dims)?);
        Ok(())
    }

    /// Masks a row, unless it is masked already.
    fn add(&self, fragment: &Fragment, mask: &mut Mask, (tile, cells, row): (u64, usize, usize)) {
        if !is_masked(self.old.over(fragment.description().id), tile, row) {
            mask.add(tile, cells, row);
        }
    }
}

fn tile_cells(fragment: &Fragment, tile: u64) -> Result<usize> {
    let wrong = || Error::corruption(format!("fragment {}: no tile {tile}", fragment.description().id));
    let (stripe, local) = fragment.stripe_of(tile).ok_or_else(wrong)?;
    let cells = fragment.stripe(stripe)?.tile_cells(local).ok_or_else(wrong)?;
    usize::try_from(cells).map_err(|_| wrong())
}

/// A mask over one fragment, in memory while small enough for a record's body, else in a data file.
fn stage(write: &WriteContext<'_>, over: &Description, mask: &Mask) -> Result<Staged> {
    let bytes = mask.encode(over.id)?;
    let id: Id = write.entropy.id();
    let location = Location { file: FileRef::Data(id), offset: 0, len: bytes.len() as u64 };
    let body = if write.inline && bytes.len() <= limits::INLINE_BYTES_MAX {
        Some(Bytes::from(bytes))
    } else {
        let mut file = write.files.create(id)?;
        file.write(&bytes)?;
        file.finish()?;
        None
    };
    let description = Description {
        id,
        kind: FragmentKind::Mask,
        order: FragmentOrder { version: 0, index: 0 },
        schema: write.schema_number,
        bounds: over.bounds.clone(),
        cells: mask.rows(),
        attrs: Vec::new(),
        location,
        over: Some(over.id),
        stats: ValueBounds::default(),
        extra: Vec::new(),
        moved: Vec::new(),
    };
    Ok(Staged { description, body })
}
