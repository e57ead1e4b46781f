//! Sparse cells that a condition selects, in ascending global order.

use super::candidates::{BlockRole, assign};
use super::filter::Filter;
use super::whole_tiles::{TileAnswers, take_whole_tiles};
use crate::base::{Cancel, Counters, Progress, Result};
use crate::condition::{Selection, Verdict};
use crate::fragment::{Fragment, FragmentKind, FragmentOrder, Role};
use crate::query::block::fetch::{Want, fetch};
use crate::query::block::sparse::{SparseBlock, Unit, fetch_coordinates};
use crate::query::cells::chunk::{Chunk, Precedence, RowSelection};
use crate::query::cells::k_way_merge::{Frontier, merge};
use crate::query::cells::merged_rows::{Run, Stretches};
use crate::query::request::{ALONE_BYTES_MAX, ReadContext, Request, Target};
use crate::query::sparse::SparseReader;
use crate::schema::{Attribute, Datatype};
use crate::tile::coordinates::joined_texts;
use crate::tile::{CellKeys, Cells, Column};
use std::sync::Arc;

/// Blocks of one tile that are taken together, at most.
const RUN_BLOCKS_MAX: usize = 16;

/// A read of a sparse array with a condition, under way.
pub(in crate::query) struct FilteredSparseReader {
    sweep: SparseReader,
    filter: Arc<Filter>,
    /// What each unit of the sweep is read for.
    duties: Vec<BlockRole>,
    /// Whether all units are of one fragment, and the overlay is empty: then nothing is merged.
    alone: bool,
    /// Whether the answer to a request takes long: then all blocks of a fragment in a batch are asked for together, and decoded side by side. Else each
    /// thread takes some blocks from the first look to the last, while they are in its cache. Where one fragment stands alone that is for it to say.
    far: bool,
    /// Cells of the blocks taken.
    scanned: u64,
}

/// A block under way.
struct Look<'a> {
    unit: &'a Unit,
    duty: BlockRole,
    /// Coordinates as keys.
    coords: Vec<Vec<u64>>,
    /// The rows wanted; `None`: all.
    inside: Option<Vec<u32>>,
    /// The condition's attributes; none where statistics decide.
    early: Vec<Column>,
    /// Those of `inside` that are selected; `None`: all rows of the block.
    selected: Option<Vec<u32>>,
}

/// Merged rows of a chunk that are selected.
struct Survivors {
    /// The chunk's place among those merged.
    place: usize,
    chunk: Arc<Chunk>,
    rows: Vec<u32>,
}

impl Survivors {
    /// The block that they come from; `None`: the overlay.
    fn unit(&self) -> Option<&Unit> {
        self.chunk.sifted.as_ref()?.unit.as_ref()
    }

    fn queue(&self) -> Option<usize> {
        self.unit().map(|unit| unit.queue)
    }

    fn tile(&self) -> Option<(usize, u64)> {
        self.unit().map(|unit| (unit.queue, unit.at.tile))
    }
}

impl Look<'_> {
    fn inside_count(&self) -> usize {
        self.inside.as_ref().map_or(self.unit.at.cells, Vec::len)
    }

    fn selected_count(&self) -> usize {
        self.selected.as_ref().map_or(self.unit.at.cells, Vec::len)
    }
}

/// The rows of a column, `None`: all of them.
fn picked(column: Column, rows: Option<&[u32]>) -> Column {
    match rows {
        Some(rows) => column.view().gather(rows),
        None => column,
    }
}

fn picked_keys(coords: &[Vec<u64>], rows: Option<&[u32]>) -> Vec<Vec<u64>> {
    let pick = |keys: &Vec<u64>, rows: &[u32]| rows.iter().filter_map(|r| keys.get(*r as usize).copied()).collect();
    coords.iter().map(|keys| rows.map_or_else(|| keys.clone(), |rows| pick(keys, rows))).collect()
}

impl FilteredSparseReader {
    /// Plans the read.
    pub(super) fn new(context: &ReadContext, target: &Target, request: &Request, filter: Arc<Filter>) -> Result<Self> {
        let attrs = filter.early.iter().chain(&filter.late).copied().collect();
        let mut sweep = SparseReader::new(context, target, &Request { attrs, ..request.clone() })?;
        sweep.request.attrs.clone_from(&request.attrs);
        let duties = assign(&mut sweep, &filter)?;
        for queue in &mut sweep.queues {
            if let Some(chunk) = queue.take() {
                queue.push(sift_overlay(&filter, chunk)?);
            }
        }
        let first = sweep.units.first().map(|u| u.queue);
        let one = sweep.units.iter().all(|u| Some(u.queue) == first);
        let alone = one && sweep.queues.iter().all(|q| q.head().is_none());
        let mut asked = sweep.fragments.iter().zip(0..).filter(|(_, queue)| !alone || Some(*queue) == first);
        let far = asked.any(|(fragment, _)| fragment.source().remote_gap().is_some());
        Ok(Self { sweep, filter, duties, alone, far, scanned: 0 })
    }

    pub(super) fn sweep(&self) -> &SparseReader {
        &self.sweep
    }

    /// As [`take_whole_tiles`].
    pub(super) fn take_whole_tiles(&mut self, answers: &mut TileAnswers<'_>) -> Result<()> {
        take_whole_tiles(&mut self.sweep, Some(&mut self.duties), answers)
    }

    pub(super) fn set_cancel(&mut self, cancel: Arc<dyn Cancel>) {
        self.sweep.set_cancel(cancel);
    }

    pub(super) fn set_progress(&mut self, progress: Arc<dyn Progress>) {
        self.sweep.set_progress(progress);
    }

    pub(super) fn filter(&self) -> &Filter {
        &self.filter
    }

    pub(super) fn is_far(&self) -> bool {
        self.far
    }

    /// The next cells, of about `bytes` of blocks; `None` at the end.
    pub(super) fn next(&mut self, bytes: u64) -> Result<Option<Cells>> {
        loop {
            self.sweep.context.cancel.check()?;
            let cells = if self.alone { self.next_apart(bytes)? } else { self.next_merged(bytes)? };
            let total = self.sweep.total;
            self.sweep.context.progress.report(self.scanned, total);
            if let Some(cells) = cells {
                Counters::add(&self.sweep.context.counters.cells_returned, cells.count as u64);
                return Ok(Some(cells));
            }
            if self.sweep.units_left() == 0 {
                return Ok(None);
            }
        }
    }

    /// The cells that the next blocks give; `None` if there are none.
    fn next_merged(&mut self, bytes: u64) -> Result<Option<Cells>> {
        self.load(bytes)?;
        let found = self.merged(self.sweep.units_left() > 0)?;
        if found.is_empty() {
            return Ok(None);
        }
        found.to_cells(&self.sweep.schema, &self.sweep.request).map(Some)
    }

    /// The same of a fragment that stands alone.
    fn next_apart(&mut self, bytes: u64) -> Result<Option<Cells>> {
        let items = self.next_items(bytes);
        let mut found = self.sift_all(&items, |run| self.sift_apart(run))?.into_iter().flatten();
        let Some(mut all) = found.next() else { return Ok(None) };
        found.try_for_each(|cells| all.append(cells))?;
        Ok(Some(Cells { dims: joined_texts(&self.sweep.schema, all.dims)?, ..all }))
    }

    /// The next blocks, about `bytes` of them, those of each fragment in its order.
    fn next_items(&mut self, bytes: u64) -> Vec<(Unit, BlockRole)> {
        let start = self.sweep.units.len() - self.sweep.units_left();
        let group = self.sweep.next_group(bytes);
        self.scanned += group.iter().map(|unit| unit.at.cells as u64).sum::<u64>();
        let duties = self.duties.get(start..).unwrap_or_default().iter().copied();
        let mut items: Vec<(Unit, BlockRole)> = group.into_iter().zip(duties).collect();
        items.sort_by_key(|(unit, _)| (unit.queue, unit.at.tile, unit.at.block));
        items
    }

    /// Takes the next blocks, about `bytes` of them, into the queues.
    fn load(&mut self, bytes: u64) -> Result<()> {
        let mut room = bytes;
        loop {
            let items = self.next_items(room);
            if items.is_empty() {
                return Ok(());
            }
            let mut taken = 0;
            for (queue, chunk) in self.sift_all(&items, |run| self.sift(run))?.into_iter().flatten() {
                taken += chunk.size_bytes();
                if let Some(queue) = self.sweep.queues.get_mut(queue) {
                    queue.push(chunk);
                }
            }
            if !self.sweep.row_bytes.1 || taken >= room {
                return Ok(());
            }
            room -= taken;
        }
    }

    /// What `one` makes of runs of neighbouring blocks, in their order.
    fn sift_all<R: Send>(
        &self,
        items: &[(Unit, BlockRole)],
        one: impl Fn(&[(Unit, BlockRole)]) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let context = &self.sweep.context;
        let same_tile =
            |a: &(Unit, BlockRole), b: &(Unit, BlockRole)| (a.0.queue, a.0.at.tile) == (b.0.queue, b.0.at.tile);
        let runs: Vec<&[(Unit, BlockRole)]> = match self.far {
            true => items.chunk_by(|a, b| a.0.queue == b.0.queue).collect(),
            // Columns of neighbouring tiles lie close together.
            false if self.alone => items.chunks(RUN_BLOCKS_MAX).collect(),
            false => items.chunk_by(same_tile).flat_map(|tile| tile.chunks(RUN_BLOCKS_MAX)).collect(),
        };
        let held = items.iter().map(|(u, _)| u.at.cells as u64).sum::<u64>().saturating_mul(self.sweep.row_bytes.0);
        context.budget.take(held);
        let sifted = match held <= ALONE_BYTES_MAX && !self.far {
            true => runs.into_iter().map(one).collect(),
            false => context.pool.map(runs, context.cancel.as_ref(), one),
        };
        context.budget.give(held);
        sifted
    }

    /// What is left of blocks of one tile, or of one fragment.
    fn sift(&self, run: &[(Unit, BlockRole)]) -> Result<Vec<(usize, Chunk)>> {
        let context = &self.sweep.context;
        context.cancel.check()?;
        let Some((first, _)) = run.first() else { return Ok(Vec::new()) };
        let fragment = self.sweep.fragment(first)?;
        let mut looks = self.place(fragment, run)?;
        looks.retain(|look| look.inside_count() > 0);
        if self.sweep.is_tombstones(first) {
            return Ok(looks.into_iter().map(|look| (first.queue, self.unsifted(look))).collect());
        }
        self.judge(fragment, &mut looks)?;
        let before = looks.len();
        looks.retain(|look| look.selected_count() > 0 || look.duty.hides);
        Counters::add(&context.counters.blocks_rejected, (before - looks.len()) as u64);
        Ok(looks.into_iter().map(|look| (first.queue, self.sifted(look))).collect())
    }

    /// Which rows of blocks are wanted at all.
    fn place<'a>(&self, fragment: &Arc<Fragment>, run: &'a [(Unit, BlockRole)]) -> Result<Vec<Look<'a>>> {
        let sweep = &self.sweep;
        let blocks: Vec<_> = run.iter().map(|(unit, _)| (fragment, &unit.at)).collect();
        let keys = fetch_coordinates(&sweep.context, &sweep.schema, &blocks, self.far)?;
        let look = |((unit, duty), coords): (&'a (Unit, BlockRole), Vec<Vec<u64>>)| {
            Counters::add(&sweep.context.counters.cells_scanned, unit.at.cells as u64);
            let inside = sweep.rows_inside(unit, &coords);
            Look { unit, duty: *duty, coords, inside, early: Vec::new(), selected: None }
        };
        Ok(run.iter().zip(keys).map(look).collect())
    }

    /// Which rows are selected; the condition's attributes are read where statistics do not tell.
    fn judge(&self, fragment: &Arc<Fragment>, looks: &mut [Look<'_>]) -> Result<()> {
        let given = (0..self.filter.early.len()).any(|place| self.filter.gives(place));
        let asks = |duty: BlockRole| duty.verdict == Verdict::Some || (duty.verdict == Verdict::All && given);
        let asked: Vec<&SparseBlock> = looks.iter().filter(|l| asks(l.duty)).map(|l| &l.unit.at).collect();
        let mut early = self.values(fragment, &self.filter.early, &asked)?.into_iter();
        for look in looks {
            if asks(look.duty) {
                look.early = early.next().unwrap_or_default();
            }
            look.selected = match look.duty.verdict {
                Verdict::All => look.inside.clone(),
                Verdict::None => Some(Vec::new()),
                Verdict::Some => {
                    let found = self.filter.select(look.unit.at.cells, &look.coords, &look.early)?;
                    rows_of(&found, look.inside.as_deref())
                }
            };
        }
        Ok(())
    }

    /// The values of `attrs`, by place, in blocks of one fragment: for each block a column per attribute.
    pub(super) fn values(
        &self,
        fragment: &Arc<Fragment>,
        attrs: &[usize],
        blocks: &[&SparseBlock],
    ) -> Result<Vec<Vec<Column>>> {
        let attrs: Vec<_> = attrs.iter().filter_map(|place| self.sweep.schema.attrs().get(*place)).collect();
        let mut wants = Vec::with_capacity(blocks.len() * attrs.len());
        for at in blocks {
            for attr in &attrs {
                let Some(field) = fragment.field(Role::Attribute(attr.id())) else { continue };
                let block = fragment.block(field, at.tile, at.block, at.cells)?;
                wants.push(Want { source: fragment.clone(), block });
            }
        }
        let mut found = fetch(&self.sweep.context, &wants, self.far)?.into_iter();
        // An attribute that came after the fragment is blank in it.
        let mut column = |attr: &Attribute, at: &SparseBlock| match fragment.field(Role::Attribute(attr.id())) {
            Some(_) => Ok(found.next()),
            None => Column::blanks(attr, at.cells).map(Some),
        };
        let mut all = Vec::with_capacity(blocks.len());
        for at in blocks {
            let of_block = attrs.iter().filter_map(|attr| column(attr, at).transpose());
            all.push(of_block.collect::<Result<Vec<Column>>>()?);
        }
        Ok(all)
    }

    /// Rows of a block on their way into the merge: those selected, and the others if they may hide something.
    fn sifted(&self, look: Look<'_>) -> Chunk {
        let rows = if look.duty.hides { look.inside } else { look.selected.clone() };
        let selected = match look.selected {
            Some(selected) if look.duty.hides => {
                let mut flags = vec![false; look.unit.at.cells];
                for row in selected {
                    if let Some(flag) = flags.get_mut(row as usize) {
                        *flag = true;
                    }
                }
                let flag = |row: &u32| flags.get(*row as usize).copied().unwrap_or(false);
                Some(rows.as_ref().map_or_else(|| flags.clone(), |rows| rows.iter().map(flag).collect()))
            }
            _ => None,
        };
        let early =
            look.early.into_iter().enumerate().map(|(place, column)| {
                if self.filter.gives(place) { picked(column, rows.as_deref()) } else { nothing() }
            });
        let (columns, coords) = (early.collect(), picked_keys(&look.coords, rows.as_deref()));
        self.chunk(look.unit, coords, columns, Some(RowSelection { unit: Some(look.unit.clone()), rows, selected }))
    }

    /// Rows of a block of tombstones.
    fn unsifted(&self, look: Look<'_>) -> Chunk {
        self.chunk(look.unit, picked_keys(&look.coords, look.inside.as_deref()), Vec::new(), None)
    }

    fn chunk(&self, unit: &Unit, coords: Vec<Vec<u64>>, columns: Vec<Column>, sifted: Option<RowSelection>) -> Chunk {
        let refs: Vec<&[u64]> = coords.iter().map(Vec::as_slice).collect();
        let description = self.sweep.fragments.get(unit.queue).map(|f| f.description());
        let order = description.map_or(FragmentOrder { version: 0, index: 0 }, |d| d.order);
        let kind = description.map_or(FragmentKind::Sparse, |d| d.kind);
        Chunk {
            keys: self.sweep.layout.keys(&refs),
            coords,
            columns,
            standing: Precedence::Fragment(order, kind),
            sifted,
        }
    }

    /// The cells that are final, merged, those selected, with all attributes asked for. `more`: blocks are still to come.
    fn merged(&mut self, more: bool) -> Result<Stretches> {
        let taken = self.sweep.units.len() - self.sweep.units_left();
        let frontier = Frontier { keys: &self.sweep.firsts, row: taken };
        let duplicates = self.sweep.schema.options().duplicates;
        let (found, tied) = merge(&mut self.sweep.queues, more.then_some(&frontier), duplicates);
        Counters::add(&self.sweep.context.counters.cells_merged, tied);
        // The rows that are left of each chunk that took part.
        let mut left: Vec<Option<Vec<u32>>> = vec![None; found.chunks().len()];
        let mut runs: Vec<Run> = Vec::new();
        for run in found.runs() {
            let place = run.chunk as usize;
            let (Some(chunk), Some(rows)) = (found.chunks().get(place), left.get_mut(place)) else { continue };
            let rows = rows.get_or_insert_default();
            let from = rows.len() as u32;
            rows.extend((run.from..run.to).filter(|row| chunk.is_selected(*row as usize)));
            let to = rows.len() as u32;
            match runs.last_mut() {
                Some(last) if last.chunk == run.chunk && last.to == from => last.to = to,
                _ if to > from => runs.push(Run { chunk: run.chunk, from, to }),
                _ => {}
            }
        }
        let (mut chunks, mut numbers) = (Vec::new(), Vec::new());
        for made in self.survivors(found.chunks(), left)? {
            numbers.push(chunks.len() as u32);
            chunks.extend(made);
        }
        let renumbered = |run: Run| numbers.get(run.chunk as usize).map(|chunk| Run { chunk: *chunk, ..run });
        Ok(Stretches::new(chunks, runs.into_iter().filter_map(renumbered).collect()))
    }

    /// Chunks of the rows that are `left` of each (`None`: it took no part); `None` where there are none.
    fn survivors(&self, chunks: &[Arc<Chunk>], left: Vec<Option<Vec<u32>>>) -> Result<Vec<Option<Arc<Chunk>>>> {
        let context = &self.sweep.context;
        let mut made: Vec<Option<Arc<Chunk>>> = vec![None; chunks.len()];
        let mut items: Vec<Survivors> = Vec::with_capacity(chunks.len());
        for (place, (chunk, rows)) in chunks.iter().zip(left).enumerate() {
            let Some(rows) = rows else { continue };
            if !rows.is_empty() {
                items.push(Survivors { place, chunk: chunk.clone(), rows });
            } else if chunk.sifted.is_some() {
                Counters::add(&context.counters.blocks_rejected, 1);
            }
        }
        items.sort_by_key(|item| (item.tile(), item.unit().map(|unit| unit.at.block)));
        let together = |a: &Survivors, b: &Survivors| match self.far {
            true => a.queue() == b.queue(),
            false => a.tile() == b.tile(),
        };
        let runs: Vec<&[Survivors]> = items.chunk_by(together).collect();
        let cells: usize = items.iter().filter_map(Survivors::unit).map(|unit| unit.at.cells).sum();
        let all = match cells as u64 * self.sweep.row_bytes.0 <= ALONE_BYTES_MAX && !self.far {
            true => runs.into_iter().map(|run| self.survive(run)).collect::<Result<Vec<_>>>(),
            false => context.pool.map(runs, context.cancel.as_ref(), |run| self.survive(run)),
        };
        for (place, chunk) in all?.into_iter().flatten() {
            if let Some(slot) = made.get_mut(place) {
                *slot = Some(Arc::new(chunk));
            }
        }
        Ok(made)
    }

    /// The rows that are left of chunks of one tile, or of one fragment, with the attributes that were not read yet.
    fn survive(&self, run: &[Survivors]) -> Result<Vec<(usize, Chunk)>> {
        let blocks: Vec<&SparseBlock> = run.iter().filter_map(|item| Some(&item.unit()?.at)).collect();
        let mut late = match run.first().and_then(Survivors::unit) {
            Some(unit) => self.values(self.sweep.fragment(unit)?, &self.filter.late, &blocks)?.into_iter(),
            None => Vec::new().into_iter(),
        };
        let mut made = Vec::with_capacity(run.len());
        for item @ Survivors { place, chunk, rows } in run {
            let coords = picked_keys(&chunk.coords, Some(rows));
            let columns = if item.unit().is_some() {
                let of_block = chunk.sifted.as_ref().and_then(|s| s.rows.as_ref());
                let in_block: Vec<u32> = match of_block {
                    Some(all) => rows.iter().filter_map(|r| all.get(*r as usize).copied()).collect(),
                    None => rows.clone(),
                };
                let late = late.next().unwrap_or_default();
                let late = late.into_iter().map(|column| picked(column, Some(&in_block))).collect();
                self.filter.arranged(|place| early_of(&chunk.columns, place, Some(rows)), late)
            } else {
                chunk.columns.iter().map(|column| column.view().gather(rows)).collect()
            };
            let standing = Precedence::Rows(Vec::new());
            made.push((*place, Chunk { keys: CellKeys::Narrow(Vec::new()), coords, columns, standing, sifted: None }));
        }
        Ok(made)
    }
}

fn nothing() -> Column {
    Column::empty(Datatype::UInt8, false)
}

/// The rows of one of the condition's attributes.
fn early_of(early: &[Column], place: usize, rows: Option<&[u32]>) -> Column {
    match (early.get(place), rows) {
        (Some(column), Some(rows)) => column.view().gather(rows),
        (Some(column), None) => column.clone(),
        (None, _) => nothing(),
    }
}

/// The selected rows, among those `inside`; `None` if these are all rows of the block.
fn rows_of(found: &Selection, inside: Option<&[u32]>) -> Option<Vec<u32>> {
    match inside {
        None if found.count() == found.len() => None,
        None => Some(found.rows().map(|row| row as u32).collect()),
        Some(inside) => Some(inside.iter().copied().filter(|row| found.contains(*row as usize)).collect()),
    }
}

/// The overlay's rows, judged: they are in memory.
fn sift_overlay(filter: &Filter, chunk: Chunk) -> Result<Chunk> {
    let Chunk { keys, coords, mut columns, standing, .. } = chunk;
    let late = columns.split_off(filter.early.len().min(columns.len()));
    let rows = coords.first().map_or(0, Vec::len);
    let found = filter.select(rows, &coords, &columns)?;
    let selected = Some((0..rows).map(|row| found.contains(row)).collect());
    let columns = filter.arranged(|place| early_of(&columns, place, None), late);
    Ok(Chunk { keys, coords, columns, standing, sifted: Some(RowSelection { unit: None, rows: None, selected }) })
}
