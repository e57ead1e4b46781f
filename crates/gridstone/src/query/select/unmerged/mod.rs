//! Selected cells of one fragment that nothing has to be merged with: straight from stored bytes to columns of the result.
//!
//! Of a run of blocks, by one thread while they are in its cache:
//! 1. Judge: the condition's attributes of all blocks, into buffers that are used again, and the condition on all of them at once.
//!    Coordinates too where it looks at them.
//! 2. Place: of blocks in which a row is selected the coordinates, of those rows alone; which of them lie in the box and are not deleted.
//! 3. Fill: the other attributes of the rows that are left.
//!
//! Of a source whose answers take long, one run is all blocks of a batch, decoded by all threads; the other attributes come with the coordinates, so
//! that two answers are waited for.
//!
//! Rows are numbered from the first row of the run's first block on.

mod buffers;
mod columns;
mod run;

use super::candidates::BlockRole;
use super::sparse::FilteredSparseReader;
use super::unmerged::run::{Part, Run};
use crate::base::{Counters, Result};
use crate::condition::{Selection, Verdict};
use crate::query::block::deletions::clear_inside;
use crate::query::block::masks;
use crate::query::block::masks::is_masked;
use crate::query::block::sparse::{SparseBlock, Unit, outside_bounds, outside_dimension};
use crate::schema::{Datatype, Dimension, key};
use crate::tile::{Cells, Column};
use buffers::give_back;
use columns::Asked;

/// What a run was judged by, all rows of it.
struct Judged {
    /// The condition's attributes; where no block asks for them none.
    early: Vec<Column>,
    /// The coordinates, a column per axis, where the condition looks at them; else none.
    places: Vec<Column>,
    /// The rows selected.
    rows: Vec<u32>,
}

impl FilteredSparseReader {
    /// What is selected of neighbouring blocks of the fragment that stands alone; coordinates as they are stored, a column per axis.
    pub(super) fn sift_apart(&self, items: &[(Unit, BlockRole)]) -> Result<Option<Cells>> {
        let context = &self.sweep().context;
        context.cancel.check()?;
        let Some((first, _)) = items.first() else { return Ok(None) };
        let run = Run { sieve: self, fragment: self.sweep().fragment(first)?, items };
        let scanned = items.iter().map(|(unit, _)| unit.at.cells as u64).sum();
        Counters::add(&context.counters.cells_scanned, scanned);
        let judged = run.judge()?;
        let Judged { early, places, rows } = judged;
        let kept = run.parts(&rows).len();
        Counters::add(&context.counters.blocks_rejected, (items.len() - kept) as u64);
        let late = run.attrs(&self.filter().late);
        // Whoever waits long for an answer asks for the other attributes too, before it is known which rows lie in the box.
        let besides = if self.is_far() { late.as_slice() } else { &[] };
        let (rows, mut dims) = run.place(rows, &places, besides)?;
        let besides = dims.split_off(self.sweep().schema.ndim());
        let cells = match rows.is_empty() {
            true => None,
            false => {
                let late = if self.is_far() { besides } else { run.read_rows(&late, &rows)? };
                Some(Cells { count: rows.len(), dims, attrs: run.arranged(&rows, &early, late) })
            }
        };
        give_back(early.into_iter().chain(places));
        Ok(cells)
    }
}

impl<'a> Run<'a> {
    /// Which rows the condition selects.
    fn judge(&self) -> Result<Judged> {
        let filter = self.filter();
        let given = (0..filter.early.len()).any(|place| filter.gives(place));
        let is_some = |duty: &BlockRole| duty.verdict == Verdict::Some;
        let reads = |duty: &BlockRole| is_some(duty) || (duty.verdict == Verdict::All && given);
        let asked = self.items.iter().any(|(_, duty)| is_some(duty));
        let mut wanted = if asked && !filter.dims.is_empty() { self.axes() } else { Vec::new() };
        let axes = wanted.len();
        if self.items.iter().any(|(_, duty)| reads(duty)) {
            wanted.extend(self.attrs(&filter.early));
        }
        let mut places = self.read_whole(&wanted, reads)?;
        let early = places.split_off(axes);
        self.check_places(&places)?;
        let found = if asked {
            let keys =
                places.iter().map(|c| key::encode(c.datatype(), c.view().values())).collect::<Result<Vec<_>>>()?;
            Some(filter.select(self.cells(), &keys, &early)?)
        } else {
            None
        };
        Ok(Judged { early, places, rows: self.selected(found.as_ref()) })
    }

    /// The rows selected, where the blocks that statistics do not tell of were judged to be `found`.
    fn selected(&self, found: Option<&Selection>) -> Vec<u32> {
        if let Some(found) = found
            && self.items.iter().all(|(_, duty)| duty.verdict == Verdict::Some)
        {
            return found.rows().map(|row| row as u32).collect();
        }
        let (mut rows, mut start) = (Vec::new(), 0u32);
        for (unit, duty) in self.items {
            let all = start..start + unit.at.cells as u32;
            start = all.end;
            match duty.verdict {
                Verdict::All => rows.extend(all),
                Verdict::Some => rows.extend(all.filter(|row| found.is_some_and(|f| f.contains(*row as usize)))),
                Verdict::None => {}
            }
        }
        rows
    }

    /// Corruption if one of all coordinates of the run lies outside its block's MBR.
    fn check_places(&self, places: &[Column]) -> Result<()> {
        let dims = self.sweep().schema.dims();
        let mut start = 0;
        for SparseBlock { tile, cells, bounds, .. } in self.items.iter().map(|(unit, _)| &unit.at) {
            let end = start + cells;
            for ((column, dim), bounds) in places.iter().zip(dims).zip(bounds.ranges()) {
                let width = dim.datatype().width().unwrap_or(1);
                let values = column.view().values().get(start * width..end * width).unwrap_or_default();
                if !key::within(dim.datatype(), values, *bounds) {
                    return Err(outside_bounds(self.fragment, *tile, dim));
                }
            }
            start = end;
        }
        Ok(())
    }

    /// The coordinates.
    fn axes(&self) -> Vec<Asked<'a>> {
        self.sweep().schema.dims().iter().zip(0u32..).map(|(dim, n)| Asked::Dim(n, dim.datatype())).collect()
    }

    /// The attributes at `places` in the schema.
    fn attrs(&self, places: &[usize]) -> Vec<Asked<'a>> {
        let attrs = &self.sweep().schema.attrs();
        places.iter().filter_map(|place| Some(Asked::Attr(*place, attrs.get(*place)?))).collect()
    }

    /// Which of `rows` lie in the box and are not deleted, their coordinates, and the columns `besides` of them. `places`: the coordinates of all
    /// rows, if they are known.
    fn place(&self, rows: Vec<u32>, places: &[Column], besides: &[Asked<'_>]) -> Result<(Vec<u32>, Vec<Column>)> {
        let mut unknown = if places.is_empty() { self.axes() } else { Vec::new() };
        unknown.extend(besides);
        let mut found: Vec<Column> = places.iter().map(|column| column.view().gather(&rows)).collect();
        found.extend(self.read_rows(&unknown, &rows)?);
        let (mut wanted, mut from) = (vec![true; rows.len()], 0);
        for part in self.parts(&rows) {
            let to = from + part.rows.len();
            let flags = wanted.get_mut(from..to).unwrap_or_default();
            self.mark(part, &found, from, flags)?;
            from = to;
        }
        if wanted.iter().all(|flag| *flag) {
            return Ok((rows, found));
        }
        let kept: Vec<u32> = wanted.iter().zip(0u32..).filter(|(flag, _)| **flag).map(|(_, at)| at).collect();
        found = found.iter().map(|column| column.view().gather(&kept)).collect();
        Ok((kept.iter().filter_map(|at| rows.get(*at as usize).copied()).collect(), found))
    }

    /// Clears the flags of the rows of `part` that are not wanted, whose coordinates stand in `found` from row `from` on. Corruption if one
    /// lies outside the block's MBR.
    fn mark(&self, part: Part<'_>, found: &[Column], from: usize, flags: &mut [bool]) -> Result<()> {
        let (sweep, unit, at) = (self.sweep(), part.unit, &part.unit.at);
        let cut = sweep.is_cut(unit);
        let area = sweep.request.area();
        let coords: Vec<Option<&Column>> = found.iter().map(Some).collect();
        if let Some(place) = area.clear_stored(&sweep.schema, &at.bounds, (&coords, from), flags)? {
            return Err(outside_dimension(&sweep.schema, self.fragment, at.tile, place));
        }
        if cut {
            let keys = |(column, dim): (&Column, &Dimension)| {
                let width = dim.datatype().width().unwrap_or(1);
                let values = column.view().values().get(from * width..(from + flags.len()) * width).unwrap_or_default();
                key::encode(dim.datatype(), values)
            };
            let keys = found.iter().zip(sweep.schema.dims()).map(keys).collect::<Result<Vec<_>>>()?;
            clear_inside(sweep.deletions.newer(self.fragment.description().order, &at.bounds), &keys, flags);
        }
        let masks = sweep.masks.over(self.fragment.description().id);
        let first = at.first_row(self.fragment);
        if masks::touch(masks, at.tile, first, at.cells) {
            for (flag, row) in flags.iter_mut().zip(part.rows) {
                *flag &= !is_masked(masks, at.tile, first + *row as usize - part.start);
            }
        }
        Ok(())
    }

    /// The columns asked for of `rows`, of which `late` are those of the attributes that the condition does not look at; `early`: the condition's
    /// attributes, of all rows.
    fn arranged(&self, rows: &[u32], early: &[Column], late: Vec<Column>) -> Vec<Column> {
        let picked = |place: usize| early.get(place).map(|column| column.view().gather(rows));
        self.filter().arranged(|place| picked(place).unwrap_or_else(|| Column::empty(Datatype::UInt8, false)), late)
    }
}
