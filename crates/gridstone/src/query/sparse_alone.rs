//! Sparse cells of one fragment that stands alone: read and decoded straight into the columns of the result.
//!
//! There is nothing to merge.
//! 1. Count: a block wholly in the box, and without a masked row, has all its cells there; of others the coordinates are
//!    read, and the rows wanted picked.
//! 2. Take memory for so many cells. It is used again after an earlier result, since first-touch page faults of fresh
//!    memory would cost more than decoding.
//! 3. Fill: per column and tile, neighbouring blocks are read into a scratch buffer, checked, and decoded at their place;
//!    where only some rows are wanted, those are picked from what was decoded.

use super::Cells;
use super::coordinates::joined_texts;
use super::deliver::is_deliverable;
use super::dense::{ALONE_BYTES_MAX, attrs_of};
use super::masks;
use super::neighbours::Neighbours;
use super::sparse::{Sweep, Unit};
use super::sparse_blocks::{SparseBlock, fetch_places, outside_bounds};
use crate::base::{Ahead, AlignedBuf, ByteRange, Counters, Error, Result};
use crate::fragment::{BlockRef, Fragment, FragmentKind, Role};
use crate::schema::{Attribute, Datatype, key};
use crate::tile::{Column, gather_into};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

/// A block with cells in the box.
struct Part {
    at: SparseBlock,
    /// `None`: all of them.
    some: Option<Picked>,
}

/// The rows of a block that lie in the box, and their coordinates, a column per dimension.
struct Picked {
    rows: Vec<u32>,
    coords: Vec<Column>,
}

impl Part {
    fn count(&self) -> usize {
        self.some.as_ref().map_or(self.at.cells, |picked| picked.rows.len())
    }
}

/// What is stored of a cell, and what of it goes into one column of the result.
struct Filling {
    role: Role,
    datatype: Datatype,
    values: AlignedBuf,
}

impl Filling {
    fn width(&self) -> usize {
        self.datatype.width().unwrap_or(1)
    }
}

/// Blocks of one tile, and their cells' places in one column.
struct Task<'a> {
    role: Role,
    width: usize,
    parts: &'a [Part],
    out: &'a mut [u8],
}

/// A block that is to be read, and the place of its cells.
struct Wanted<'a> {
    role: Role,
    width: usize,
    part: &'a Part,
    block: BlockRef,
    out: &'a mut [u8],
}

impl Sweep {
    /// Whether all cells come from one fragment, which has all attributes asked for, of fixed width without nulls.
    pub(super) fn stands_alone(&self) -> bool {
        let one = self.queues.len() == 1 && self.fragments.len() == 1;
        let whole = self
            .fragments
            .first()
            .map(|f| f.description())
            .is_some_and(|d| d.kind == FragmentKind::Sparse && !self.deletions.touch(d.order, &self.request.sub));
        let held = |attr: &Attribute| self.fragments.iter().all(|f| f.description().attrs.contains(&attr.id()));
        one && whole && attrs_of(&self.schema, &self.request).all(|attr| is_deliverable(attr) && held(attr))
    }

    /// All cells in global order; `None`, found out early, if they are more than `cells_max`.
    pub(super) fn collect_alone(&mut self, cells_max: u64) -> Result<Option<Cells>> {
        let Some(parts) = self.count(cells_max)? else { return Ok(None) };
        let count = parts.iter().map(Part::count).sum();
        let dims = self.schema.dims().iter().zip(0u32..).map(|(d, n)| (Role::Dimension(n), d.datatype()));
        let attrs = attrs_of(&self.schema, &self.request).map(|a| (Role::Attribute(a.id()), a.datatype()));
        let mut fillings = Vec::with_capacity(self.schema.ndim() + self.request.attrs.len());
        for (role, datatype) in dims.chain(attrs) {
            let values = self.context.arena.take_cells(count, datatype.width().unwrap_or(1))?;
            fillings.push(Filling { role, datatype, values });
        }
        if let Some(fragment) = self.fragments.first() {
            self.fill_all(fragment, &parts, &mut fillings)?;
        }
        Counters::add(&self.context.counters.cells_returned, count as u64);
        self.context.progress.report(count as u64, count as u64);
        let column = |f: Filling| Column::new(f.datatype, f.values, None, None);
        let mut dims = fillings.into_iter().map(column).collect::<Result<Vec<Column>>>()?;
        let attrs = dims.split_off(self.schema.ndim());
        Ok(Some(Cells { count, dims: joined_texts(&self.schema, dims)?, attrs }))
    }

    /// The blocks with cells in the box; `None` if these are more than `cells_max`.
    fn count(&mut self, cells_max: u64) -> Result<Option<Vec<Part>>> {
        let mut parts = Vec::with_capacity(self.units_left());
        let mut count = 0;
        loop {
            self.context.cancel.check()?;
            let group = self.next_group(self.context.batch_bytes());
            if group.is_empty() {
                return Ok(Some(parts));
            }
            let held = group.iter().map(|u| u.at.cells as u64).sum::<u64>().saturating_mul(self.row_bytes.0);
            self.context.budget.take(held);
            let picked = self.pick(&group);
            self.context.budget.give(held);
            let mut picked = picked?.into_iter();
            for unit in group {
                Counters::add(&self.context.counters.cells_scanned, unit.at.cells as u64);
                let some = if self.is_whole(&unit.at) { None } else { picked.next() };
                let part = Part { at: unit.at, some };
                count += part.count() as u64;
                if part.count() > 0 {
                    parts.push(part);
                }
            }
            if count > cells_max {
                return Ok(None);
            }
        }
    }

    /// Whether all cells of a block are wanted: they lie in the box and none is masked.
    fn is_whole(&self, at: &SparseBlock) -> bool {
        let masked = |fragment: &Arc<Fragment>| {
            let masks = self.masks.over(fragment.description().id);
            masks::touch(masks, at.tile, at.first_row(fragment), at.cells)
        };
        self.request.sub.covers(&at.bounds) && (self.masks.is_empty() || !self.fragments.first().is_some_and(masked))
    }

    /// What is wanted of those of `units` that are not wanted whole.
    fn pick(&self, units: &[Unit]) -> Result<Vec<Picked>> {
        let Some(fragment) = self.fragments.first() else { return Ok(Vec::new()) };
        let split: Vec<&Unit> = units.iter().filter(|unit| !self.is_whole(&unit.at)).collect();
        let blocks: Vec<_> = split.iter().map(|unit| (fragment, &unit.at)).collect();
        let bytes = blocks.iter().map(|(_, at)| at.cells as u64 * 8).sum::<u64>() * self.schema.ndim() as u64;
        let places = fetch_places(&self.context, &self.schema, &blocks, bytes > ALONE_BYTES_MAX)?;
        let mut found = Vec::with_capacity(split.len());
        for (unit, coords) in split.into_iter().zip(places) {
            let rows = self.rows_placed(unit, &coords)?;
            let coords = coords.iter().map(|c| c.view().gather(&rows)).collect();
            found.push(Picked { rows, coords });
        }
        Ok(found)
    }

    fn fill_all(&self, fragment: &Fragment, parts: &[Part], fillings: &mut [Filling]) -> Result<()> {
        let context = &self.context;
        let tiles: Vec<&[Part]> = parts.chunk_by(|a, b| a.at.tile == b.at.tile).collect();
        let mut tasks = Vec::with_capacity(tiles.len() * fillings.len());
        let row_bytes: usize = fillings.iter().map(Filling::width).sum();
        for filling in &mut *fillings {
            let (role, width) = (filling.role, filling.width());
            let mut rest = filling.values.as_mut_slice();
            for parts in &tiles {
                let cells: usize = parts.iter().map(Part::count).sum();
                let (out, later) = rest.split_at_mut((cells * width).min(rest.len()));
                rest = later;
                tasks.push(Task { role, width, parts, out });
            }
        }
        let cells: usize = parts.iter().map(|p| p.at.cells).sum();
        let total = (parts.iter().map(Part::count).sum::<usize>() * row_bytes) as u64;
        let done = AtomicU64::new(0);
        let tell = |bytes: usize| {
            let now = done.fetch_add(bytes as u64, Relaxed) + bytes as u64;
            if now < total {
                context.progress.report(now / row_bytes as u64, total / row_bytes as u64);
            }
        };
        let source = fragment.source().as_ref();
        let mut spans = Vec::new();
        if source.is_waited_for() {
            spans = tasks.iter().map(|task| self.span(fragment, task)).collect::<Result<_>>()?;
        }
        let ahead = Mutex::new(Ahead::default());
        let fill = |(at, task): (usize, Task<'_>)| {
            if !spans.is_empty() {
                ahead.lock().unwrap_or_else(PoisonError::into_inner).before(at, &spans, source);
            }
            let bytes = task.out.len();
            let mut near = Neighbours::new();
            self.gather(fragment, task, &mut near)?;
            self.decode(fragment, near, |_| ())?;
            tell(bytes);
            Ok(())
        };
        if source.far_gap().is_some() {
            // What is asked for together arrives together, of all columns; decoding takes less than waiting.
            let mut near = Neighbours::new();
            tasks.into_iter().try_for_each(|task| self.gather(fragment, task, &mut near))?;
            return self.decode(fragment, near, tell);
        }
        if (cells * row_bytes) as u64 <= ALONE_BYTES_MAX {
            return tasks.into_iter().enumerate().try_for_each(fill);
        }
        context.pool.map(tasks.into_iter().enumerate().collect(), context.cancel.as_ref(), fill).map(drop)
    }

    /// Where the blocks of a task lie, from the first to the last.
    fn span(&self, fragment: &Fragment, task: &Task<'_>) -> Result<ByteRange> {
        let field = fragment.promised_field(task.role)?;
        let range = |part: &Part| Ok(fragment.block(field, part.at.tile, part.at.block, part.at.cells)?.range);
        let (Some(first), Some(last)) = (task.parts.first(), task.parts.last()) else {
            return Ok(ByteRange::new(0, 0));
        };
        let (first, last) = (range(first)?, range(last)?);
        Ok(ByteRange::new(first.offset, last.end().saturating_sub(first.offset)))
    }

    /// Adds the blocks of a task to `near`; what is known already, coordinates that were picked, goes to its place at once.
    fn gather<'t>(&self, fragment: &Fragment, task: Task<'t>, near: &mut Neighbours<Wanted<'t>>) -> Result<()> {
        let field = fragment.promised_field(task.role)?;
        let mut rest = task.out;
        for part in task.parts {
            let (out, later) = rest.split_at_mut((part.count() * task.width).min(rest.len()));
            rest = later;
            if let (Some(picked), Role::Dimension(n)) = (&part.some, task.role) {
                let coords = picked.coords.get(n as usize).map(|c| c.view().values()).unwrap_or_default();
                if coords.len() != out.len() {
                    return Err(Error::corruption("a block has fewer coordinates than cells"));
                }
                out.copy_from_slice(coords);
                continue;
            }
            let block = fragment.block(field, part.at.tile, part.at.block, part.at.cells)?;
            near.push(block.range, Wanted { role: task.role, width: task.width, part, block, out });
        }
        Ok(())
    }

    /// Reads and decodes blocks; `tell` is told the bytes that each took in the result.
    fn decode(&self, fragment: &Fragment, near: Neighbours<Wanted<'_>>, tell: impl Fn(usize)) -> Result<()> {
        near.read(&self.context, fragment, |wanted, bytes, decoded| {
            let Wanted { role, width, part, block, out } = wanted;
            tell(out.len());
            Counters::add(&self.context.counters.bytes_decoded, (block.cells() * width) as u64);
            let Some(picked) = &part.some else {
                fragment.decode_into(&block, bytes, out)?;
                return self.check_bounds(fragment, part, role, out);
            };
            decoded.resize(block.cells() * width, 0);
            fragment.decode_into(&block, bytes, decoded)?;
            gather_into(decoded, &picked.rows, width, out);
            Ok(())
        })
    }

    /// Corruption if coordinates lie outside their block's MBR, and so perhaps outside the box or the domain.
    fn check_bounds(&self, fragment: &Fragment, part: &Part, role: Role, values: &[u8]) -> Result<()> {
        let Role::Dimension(n) = role else { return Ok(()) };
        let (dim, bounds) = (self.schema.dims().get(n as usize), part.at.bounds.ranges().get(n as usize));
        let (Some(dim), Some(bounds)) = (dim, bounds) else { return Ok(()) };
        if key::within(dim.datatype(), values, *bounds) {
            return Ok(());
        }
        Err(outside_bounds(fragment, part.at.tile, dim))
    }
}
