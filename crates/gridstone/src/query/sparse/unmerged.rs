//! Sparse cells that nothing has to be merged with: read and decoded straight into the columns of the result.
//!
//! That is so where one fragment alone has cells in the box; and where several have, if a place may have several cells and nobody
//! asked for global order: those of each fragment stand one behind the other then.
//! 1. Count: a block wholly in the box, and without a masked row, has all its cells there; of others the coordinates are
//!    read along the dimensions in which their MBR is not in the box, and the rows wanted picked.
//! 2. Take memory for so many cells. It is used again after an earlier result, since first-touch page faults of fresh
//!    memory would cost more than decoding.
//! 3. Fill: per column and tile, neighbouring blocks are read into a scratch buffer, checked, and decoded at their place;
//!    where only some rows are wanted, those alone are decoded, if the filters can find single cells.

use super::SparseReader;
use crate::base::{Ahead, AlignedBuf, ByteRange, Counters, Error, Result};
use crate::fragment::{BlockRef, Description, Fragment, FragmentKind, Role};
use crate::query::block::coalesced::CoalescedReads;
use crate::query::block::sparse::{SparseBlock, Unit, fetch_some, outside_bounds};
use crate::query::cells::chunk::{Chunk, Queue};
use crate::query::cells::merged_rows::Stretches;
use crate::query::request::{ALONE_BYTES_MAX, ReadOrder, attrs_of, is_deliverable};
use crate::schema::{Datatype, key};
use crate::tile::coordinates::joined_texts;
use crate::tile::{Cells, Column};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

/// A block with cells in the box.
struct Part {
    /// Its fragment's place.
    queue: usize,
    at: SparseBlock,
    /// `None`: all of them.
    some: Option<Picked>,
}

/// The rows of a block that lie in the box, and their coordinates, a column per dimension; `None`: not read yet, since the MBR lies in the box along
/// this one.
struct Picked {
    rows: Vec<u32>,
    coords: Vec<Option<Column>>,
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

/// Blocks of one tile of a fragment, and their cells' places in one column.
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

/// A fragment that is read, what is read of it, and where that lies if it has to be waited for.
struct Source<'a> {
    fragment: &'a Fragment,
    spans: Vec<ByteRange>,
    ahead: Mutex<Ahead>,
}

impl SparseReader {
    /// Whether nothing has to be merged. Of each fragment with cells in the box all attributes asked for are there, of fixed width
    /// without nulls.
    pub(super) fn stands_apart(&self) -> bool {
        let mut present = vec![false; self.fragments.len()];
        for unit in &self.units {
            present.get_mut(unit.queue).into_iter().for_each(|flag| *flag = true);
        }
        let present = self.fragments.iter().zip(present).filter(|(_, flag)| *flag);
        let present: Vec<&Description> = present.map(|(fragment, _)| fragment.description().as_ref()).collect();
        let overlay = self.queues.get(self.fragments.len()).and_then(Queue::head).map(|(chunk, _)| chunk);
        let in_turn = match (present.as_slice(), overlay) {
            ([], _) => false,
            ([_], None) => true,
            (_, overlay) => self.may_stand_in_turn(&present, overlay),
        };
        let attrs = || attrs_of(&self.schema, &self.request);
        let whole = |d: &&Description| {
            d.kind == FragmentKind::Sparse
                && !self.deletions.touch(d.order, &self.request.sub)
                && attrs().all(|attr| d.attrs.contains(&attr.id()))
        };
        in_turn && attrs().all(is_deliverable) && present.iter().all(whole)
    }

    /// Whether the cells of fragments may stand one behind the other, those of the overlay last. Sorted by coordinates later, cells of one
    /// place are to be in the order in which they were written.
    fn may_stand_in_turn(&self, present: &[&Description], overlay: Option<&Arc<Chunk>>) -> bool {
        let newest = present.iter().map(|d| d.order).max();
        let numbers = self.schema.coordinates().all(|dim| dim.number().is_some());
        let later = |chunk: &Arc<Chunk>| {
            let cells = (0..chunk.len()).all(|row| !chunk.is_tombstone(row));
            let newer = || (0..chunk.len()).all(|row| Some(chunk.order(row)) > newest);
            cells && numbers && (self.request.order == ReadOrder::Any || newer())
        };
        self.schema.options().duplicates && self.request.order != ReadOrder::Global && overlay.is_none_or(later)
    }

    /// All cells; `None`, found out early, if they are more than `cells_max`.
    pub(super) fn collect_apart(&mut self, cells_max: u64) -> Result<Option<Cells>> {
        let Some(mut parts) = self.count(cells_max)? else { return Ok(None) };
        // Those of one fragment stay in their order.
        parts.sort_by_key(|part| part.queue);
        let overlay = self.queues.get(self.fragments.len()).map(|queue| queue.chunks().cloned().collect());
        let overlay = Stretches::whole(overlay.unwrap_or_default());
        let count = parts.iter().map(Part::count).sum::<usize>() + overlay.cells();
        if count as u64 > cells_max {
            return Ok(None);
        }
        let dims = self.schema.dims().iter().zip(0u32..).map(|(d, n)| (Role::Dimension(n), d.datatype()));
        let attrs = attrs_of(&self.schema, &self.request).map(|a| (Role::Attribute(a.id()), a.datatype()));
        let mut fillings = Vec::with_capacity(self.schema.ndim() + self.request.attrs.len());
        for (role, datatype) in dims.chain(attrs) {
            let values = self.context.arena.take_cells(count, datatype.width().unwrap_or(1))?;
            fillings.push(Filling { role, datatype, values });
        }
        self.fill_all(&parts, &mut fillings)?;
        if !overlay.is_empty() {
            fill_behind(&overlay.to_cells(&self.schema, &self.request)?, &mut fillings)?;
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
                let some = if self.takes_all(&unit) { None } else { picked.next() };
                let part = Part { queue: unit.queue, at: unit.at, some };
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

    /// What is wanted of those of `units` that are not wanted whole.
    fn pick(&self, units: &[Unit]) -> Result<Vec<Picked>> {
        let split: Vec<&Unit> = units.iter().filter(|unit| !self.takes_all(unit)).collect();
        let blocks = split.iter().map(|unit| Ok((self.fragment(unit)?, &unit.at))).collect::<Result<Vec<_>>>()?;
        let bytes = blocks.iter().map(|(_, at)| at.cells as u64 * 8).sum::<u64>() * self.schema.ndim() as u64;
        let deciding: Vec<Vec<bool>> = blocks.iter().map(|(_, at)| self.request.area().deciding(&at.bounds)).collect();
        let wanted =
            blocks.iter().copied().zip(&deciding).map(|((fragment, at), deciding)| (fragment, at, deciding.as_slice()));
        let mut columns = fetch_some(&self.context, wanted, bytes > ALONE_BYTES_MAX)?.into_iter();
        let mut found = Vec::with_capacity(split.len());
        for (unit, deciding) in split.into_iter().zip(&deciding) {
            let coords: Vec<Option<Column>> =
                deciding.iter().map(|read| read.then(|| columns.next()).flatten()).collect();
            let rows = self.rows_placed(unit, &coords.iter().map(Option::as_ref).collect::<Vec<_>>())?;
            let picked = |column: Option<Column>| column.map(|column| column.view().gather(&rows));
            let coords = coords.into_iter().map(picked).collect();
            found.push(Picked { rows, coords });
        }
        Ok(found)
    }

    /// Reads what `parts` say, which are sorted by fragment, to the front of `fillings`.
    fn fill_all(&self, parts: &[Part], fillings: &mut [Filling]) -> Result<()> {
        let context = &self.context;
        let row_bytes: usize = fillings.iter().map(Filling::width).sum();
        let cells: usize = parts.iter().map(|p| p.at.cells).sum();
        let total = (parts.iter().map(Part::count).sum::<usize>() * row_bytes) as u64;
        let done = AtomicU64::new(0);
        let tell = |bytes: usize| {
            let now = done.fetch_add(bytes as u64, Relaxed) + bytes as u64;
            if now < total {
                context.progress.report(now / row_bytes as u64, total / row_bytes as u64);
            }
        };
        let small = (cells * row_bytes) as u64 <= ALONE_BYTES_MAX;
        let mut near = Vec::new();
        let mut far = Vec::new();
        for (fragment, tasks) in self.tasks(parts, fillings) {
            match fragment.source().remote_gap() {
                Some(_) => far.push((fragment, tasks)),
                None => near.push((self.source(fragment, &tasks)?, tasks)),
            }
        }
        // What is asked for together arrives together, of all columns; decoding takes less than waiting.
        let together = |(fragment, tasks): (&Fragment, Vec<Task<'_>>)| {
            let mut near = CoalescedReads::new();
            tasks.into_iter().try_for_each(|task| self.gather(fragment, task, &mut near))?;
            self.decode(fragment, near, tell)
        };
        match far.len() {
            0 | 1 => far.into_iter().try_for_each(together)?,
            _ => context.pool.map(far, context.cancel.as_ref(), together).map(drop)?,
        }
        let (sources, tasks): (Vec<Source<'_>>, Vec<Vec<Task<'_>>>) = near.into_iter().unzip();
        let tasks = sources
            .iter()
            .zip(tasks)
            .flat_map(|(source, tasks)| tasks.into_iter().enumerate().map(move |(at, task)| (source, at, task)));
        let fill = |(source, at, task): (&Source<'_>, usize, Task<'_>)| {
            if !source.spans.is_empty() {
                let mut ahead = source.ahead.lock().unwrap_or_else(PoisonError::into_inner);
                ahead.before(at, &source.spans, source.fragment.source().as_ref());
            }
            let bytes = task.out.len();
            let mut near = CoalescedReads::new();
            self.gather(source.fragment, task, &mut near)?;
            self.decode(source.fragment, near, |_| ())?;
            tell(bytes);
            Ok(())
        };
        if small {
            return tasks.into_iter().try_for_each(fill);
        }
        context.pool.map(tasks.collect(), context.cancel.as_ref(), fill).map(drop)
    }

    /// What is to be done, column by column and tile by tile, of each fragment.
    fn tasks<'t>(&self, parts: &'t [Part], fillings: &'t mut [Filling]) -> Vec<(&Fragment, Vec<Task<'t>>)> {
        let alike = |a: &Part, b: &Part| a.queue == b.queue && a.at.tile == b.at.tile;
        let mut tasks: Vec<(&Fragment, Vec<Task<'t>>)> =
            self.fragments.iter().map(|f| (f.as_ref(), Vec::new())).collect();
        for filling in fillings {
            let (role, width) = (filling.role, filling.width());
            let mut rest = filling.values.as_mut_slice();
            for parts in parts.chunk_by(alike) {
                let cells: usize = parts.iter().map(Part::count).sum();
                let (out, later) = rest.split_at_mut((cells * width).min(rest.len()));
                rest = later;
                if let Some((_, tasks)) = parts.first().and_then(|part| tasks.get_mut(part.queue)) {
                    tasks.push(Task { role, width, parts, out });
                }
            }
        }
        tasks.retain(|(_, tasks)| !tasks.is_empty());
        tasks
    }

    fn source<'f>(&self, fragment: &'f Fragment, tasks: &[Task<'_>]) -> Result<Source<'f>> {
        let mut spans = Vec::new();
        if fragment.source().is_cold() {
            spans = tasks.iter().map(|task| self.span(fragment, task)).collect::<Result<_>>()?;
        }
        Ok(Source { fragment, spans, ahead: Mutex::new(Ahead::default()) })
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
    fn gather<'t>(&self, fragment: &Fragment, task: Task<'t>, near: &mut CoalescedReads<Wanted<'t>>) -> Result<()> {
        let field = fragment.promised_field(task.role)?;
        let mut rest = task.out;
        for part in task.parts {
            let (out, later) = rest.split_at_mut((part.count() * task.width).min(rest.len()));
            rest = later;
            if let (Some(picked), Role::Dimension(n)) = (&part.some, task.role)
                && let Some(Some(coords)) = picked.coords.get(n as usize)
            {
                let coords = coords.view().values();
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
    fn decode(&self, fragment: &Fragment, near: CoalescedReads<Wanted<'_>>, tell: impl Fn(usize)) -> Result<()> {
        near.read(&self.context, fragment, |wanted, bytes, decoded| {
            let Wanted { role, width, part, block, out } = wanted;
            tell(out.len());
            Counters::add(&self.context.counters.bytes_decoded, (block.cells() * width) as u64);
            match &part.some {
                None => fragment.decode_into(&block, bytes, out)?,
                Some(picked) => fragment.decode_rows_into(&block, bytes, &picked.rows, decoded, out)?,
            }
            self.check_bounds(fragment, part, role, out)
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

/// Copies cells to the end of columns.
fn fill_behind(cells: &Cells, fillings: &mut [Filling]) -> Result<()> {
    for (column, filling) in cells.dims.iter().chain(&cells.attrs).zip(fillings) {
        let values = column.view().values();
        let all = filling.values.as_mut_slice();
        let end = all.len().checked_sub(values.len()).and_then(|from| all.get_mut(from..));
        end.ok_or_else(|| Error::corruption("small fragments have more cells than were counted"))?
            .copy_from_slice(values);
    }
    Ok(())
}
