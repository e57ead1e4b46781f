//! Selected cells of one fragment that nothing has to be merged with: straight from stored bytes to columns of the result.
//!
//! Of a run of blocks, by one thread while they are in its cache:
//! 1. Judge: the condition's attributes of all blocks, into buffers that are used again, and the condition on all of them at once.
//!    Coordinates too where it looks at them.
//! 2. Place: of blocks in which a row is selected the coordinates, of those rows alone; which of them lie in the box and are not deleted.
//! 3. Fill: the other attributes of the rows that are left.
//!
//! Rows are numbered from the first row of the run's first block on.

mod spare;

use super::Filter;
use super::candidates::Duty;
use super::sieve::Sieve;
use crate::base::{AlignedBuf, Counters, Error, Result};
use crate::fragment::{BlockRef, Fragment, Role};
use crate::query::condition::{Selection, Verdict};
use crate::query::deletions::clear_inside;
use crate::query::deliver::is_deliverable;
use crate::query::masks::is_masked;
use crate::query::neighbours::Neighbours;
use crate::query::sparse::{Sweep, Unit};
use crate::query::sparse_blocks::{SparseBlock, outside_bounds};
use crate::query::{Cells, masks};
use crate::schema::{Attribute, Datatype, key};
use crate::tile::Column;
use spare::{give_back, lend};
use std::sync::Arc;

/// Neighbouring blocks of one fragment.
struct Run<'a> {
    sieve: &'a Sieve,
    fragment: &'a Arc<Fragment>,
    items: &'a [(Unit, Duty)],
}

/// Rows of a block.
#[derive(Clone, Copy)]
struct Part<'a> {
    unit: &'a Unit,
    /// The number of the block's first row.
    start: usize,
    /// Some of its rows, ascending.
    rows: &'a [u32],
}

/// A block of a column that is to be read, and the place of its cells.
struct Wanted<'a> {
    block: BlockRef,
    width: usize,
    start: usize,
    /// Those that are wanted; `None`: all.
    rows: Option<&'a [u32]>,
    out: &'a mut [u8],
}

/// What a run was judged by, all rows of it.
struct Judged {
    /// The condition's attributes; where no block asks for them none.
    early: Vec<Column>,
    /// The coordinates, a column per axis, where the condition looks at them; else none.
    places: Vec<Column>,
    /// The rows selected.
    rows: Vec<u32>,
}

impl Sieve {
    /// What is selected of neighbouring blocks of the fragment that stands alone; coordinates as they are stored, a column per axis.
    pub(super) fn sift_apart(&self, items: &[(Unit, Duty)]) -> Result<Option<Cells>> {
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
        let (rows, dims) = run.place(rows, &places)?;
        let cells = match rows.is_empty() {
            true => None,
            false => Some(Cells { count: rows.len(), dims, attrs: run.fill(&rows, &early)? }),
        };
        give_back(early.into_iter().chain(places));
        Ok(cells)
    }
}

impl<'a> Run<'a> {
    fn sweep(&self) -> &'a Sweep {
        self.sieve.sweep()
    }

    fn filter(&self) -> &'a Filter {
        self.sieve.filter()
    }

    fn cells(&self) -> usize {
        self.items.iter().map(|(unit, _)| unit.at.cells).sum()
    }

    /// The blocks in which some of `rows` lie.
    fn parts<'r>(&self, rows: &'r [u32]) -> Vec<Part<'r>>
    where
        'a: 'r,
    {
        let (mut parts, mut rest, mut start) = (Vec::with_capacity(self.items.len()), rows, 0);
        for (unit, _) in self.items {
            let end = start + unit.at.cells;
            let (rows, later) = rest.split_at(rest.partition_point(|row| (*row as usize) < end));
            if !rows.is_empty() {
                parts.push(Part { unit, start, rows });
            }
            (rest, start) = (later, end);
        }
        parts
    }

    /// Which rows the condition selects.
    fn judge(&self) -> Result<Judged> {
        let filter = self.filter();
        let given = (0..filter.early.len()).any(|place| filter.gives(place));
        let is_some = |duty: &Duty| duty.verdict == Verdict::Some;
        let reads = |duty: &Duty| is_some(duty) || (duty.verdict == Verdict::All && given);
        let asked = self.items.iter().any(|(_, duty)| is_some(duty));
        let places = if asked && !filter.dims.is_empty() { self.read_places()? } else { Vec::new() };
        let early = if self.items.iter().any(|(_, duty)| reads(duty)) { self.read_early(&reads)? } else { Vec::new() };
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

    /// All coordinates of the run.
    fn read_places(&self) -> Result<Vec<Column>> {
        let dims = self.sweep().schema.dims().iter().zip(0u32..);
        let columns: Vec<_> = dims.map(|(dim, n)| (Role::Dimension(n), dim.datatype())).collect();
        let places = self.read_whole(&columns, &|_| true)?;
        let all: Vec<u32> = (0..self.cells() as u32).collect();
        for part in self.parts(&all) {
            for ((column, dim), bounds) in
                places.iter().zip(self.sweep().schema.dims()).zip(part.unit.at.bounds.ranges())
            {
                let width = dim.datatype().width().unwrap_or(1);
                let values = column.view().values().get(part.start * width..(part.start + part.rows.len()) * width);
                if !key::within(dim.datatype(), values.unwrap_or_default(), *bounds) {
                    return Err(outside_bounds(self.fragment, part.unit.at.tile, dim));
                }
            }
        }
        Ok(places)
    }

    /// The condition's attributes, of the blocks that `reads` says; what stands in the other rows nobody looks at.
    fn read_early(&self, reads: &impl Fn(&Duty) -> bool) -> Result<Vec<Column>> {
        let attrs = self.attrs(&self.filter().early);
        let plain: Vec<_> = attrs.iter().filter(|attr| self.is_plain(attr)).map(|attr| column_of(attr)).collect();
        let mut plain = self.read_whole(&plain, reads)?.into_iter();
        let blocks: Vec<&SparseBlock> =
            self.items.iter().filter(|(_, duty)| reads(duty)).map(|(unit, _)| &unit.at).collect();
        let mut columns = Vec::with_capacity(attrs.len());
        for (attr, place) in attrs.iter().zip(&self.filter().early) {
            if self.is_plain(attr) {
                columns.extend(plain.next());
                continue;
            }
            let mut found = self.sieve.values(self.fragment, &[*place], &blocks)?.into_iter().flatten();
            let mut column = Column::empty(attr.datatype(), attr.nullable());
            for (unit, duty) in self.items {
                let of_block = if reads(duty) { found.next() } else { None };
                let of_block = of_block.map_or_else(|| Column::blanks(attr, unit.at.cells), Ok)?;
                column.try_append(of_block.view())?;
            }
            columns.push(column);
        }
        Ok(columns)
    }

    /// The attributes at `places` in the schema.
    fn attrs(&self, places: &[usize]) -> Vec<&'a Attribute> {
        places.iter().filter_map(|place| self.sweep().schema.attrs().get(*place)).collect()
    }

    /// Whether an attribute is in the fragment, and its cells need nothing but their bytes.
    fn is_plain(&self, attr: &Attribute) -> bool {
        is_deliverable(attr) && self.fragment.field(Role::Attribute(attr.id())).is_some()
    }

    /// Which of `rows` lie in the box and are not deleted, and their coordinates. `places`: of all rows, if they are known.
    fn place(&self, rows: Vec<u32>, places: &[Column]) -> Result<(Vec<u32>, Vec<Column>)> {
        let dims = self.sweep().schema.dims().iter().zip(0u32..);
        let columns: Vec<_> = dims.map(|(dim, n)| (Role::Dimension(n), dim.datatype())).collect();
        let mut found: Vec<Column> = match places {
            [] => self.read_rows(&columns, &rows)?,
            places => places.iter().map(|column| column.view().gather(&rows)).collect(),
        };
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
        let mut keys = Vec::new();
        let ranges = at.bounds.ranges().iter().zip(sweep.request.sub.ranges());
        for ((column, dim), (bounds, range)) in found.iter().zip(sweep.schema.dims()).zip(ranges) {
            let width = dim.datatype().width().unwrap_or(1);
            let values = column.view().values().get(from * width..(from + flags.len()) * width).unwrap_or_default();
            if !key::mark(dim.datatype(), values, *bounds, *range, flags) {
                return Err(outside_bounds(self.fragment, at.tile, dim));
            }
            if cut {
                keys.push(key::encode(dim.datatype(), values)?);
            }
        }
        if cut {
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

    /// The columns asked for of `rows`; `early`: the condition's attributes, of all rows.
    fn fill(&self, rows: &[u32], early: &[Column]) -> Result<Vec<Column>> {
        let filter = self.filter();
        let attrs = self.attrs(&filter.late);
        let plain: Vec<_> = attrs.iter().filter(|attr| self.is_plain(attr)).map(|attr| column_of(attr)).collect();
        let mut plain = self.read_rows(&plain, rows)?.into_iter();
        let parts = self.parts(rows);
        let blocks: Vec<&SparseBlock> = parts.iter().map(|part| &part.unit.at).collect();
        let mut late = Vec::with_capacity(attrs.len());
        for (attr, place) in attrs.iter().zip(&filter.late) {
            if self.is_plain(attr) {
                late.extend(plain.next());
                continue;
            }
            let found = self.sieve.values(self.fragment, &[*place], &blocks)?.into_iter().flatten();
            let mut column = Column::empty(attr.datatype(), attr.nullable());
            for (part, of_block) in parts.iter().zip(found) {
                let mine: Vec<u32> = part.rows.iter().map(|row| row - part.start as u32).collect();
                column.try_append(of_block.view().gather(&mine).view())?;
            }
            late.push(column);
        }
        let picked = |place: usize| early.get(place).map(|column| column.view().gather(rows));
        Ok(filter.arranged(|place| picked(place).unwrap_or_else(|| Column::empty(Datatype::UInt8, false)), late))
    }

    /// Columns of fixed width without nulls, all rows of them: those of blocks that `reads` says are read, what stands in the others is
    /// anything. In buffers that [`give_back`] takes.
    fn read_whole(&self, columns: &[(Role, Datatype)], reads: &dyn Fn(&Duty) -> bool) -> Result<Vec<Column>> {
        let (mut near, cells) = (Neighbours::new(), self.cells());
        let mut buffers = columns.iter().map(|(_, d)| lend(cells * width_of(*d))).collect::<Result<Vec<_>>>()?;
        for ((role, datatype), buffer) in columns.iter().zip(&mut buffers) {
            let (field, width) = (self.fragment.promised_field(*role)?, width_of(*datatype));
            let mut rest = buffer.as_mut_slice();
            for (unit, duty) in self.items {
                let at = &unit.at;
                let (out, later) = rest.split_at_mut((at.cells * width).min(rest.len()));
                rest = later;
                if reads(duty) {
                    let block = self.fragment.block(field, at.tile, at.block, at.cells)?;
                    near.push(block.range, Wanted { block, width, start: 0, rows: None, out });
                }
            }
        }
        self.decode(near)?;
        made(columns, buffers)
    }

    /// The cells `rows` of columns of fixed width without nulls.
    fn read_rows(&self, columns: &[(Role, Datatype)], rows: &[u32]) -> Result<Vec<Column>> {
        let (mut near, parts) = (Neighbours::new(), self.parts(rows));
        let buffer = |(_, d): &(Role, Datatype)| AlignedBuf::try_zeroed(rows.len() * width_of(*d));
        let mut buffers = columns.iter().map(buffer).collect::<Result<Vec<_>>>()?;
        for ((role, datatype), buffer) in columns.iter().zip(&mut buffers) {
            let (field, width) = (self.fragment.promised_field(*role)?, width_of(*datatype));
            let mut rest = buffer.as_mut_slice();
            for Part { unit, start, rows } in &parts {
                let (out, later) = rest.split_at_mut((rows.len() * width).min(rest.len()));
                rest = later;
                let at = &unit.at;
                let block = self.fragment.block(field, at.tile, at.block, at.cells)?;
                let some = (rows.len() < at.cells).then_some(*rows);
                near.push(block.range, Wanted { block, width, start: *start, rows: some, out });
            }
        }
        self.decode(near)?;
        made(columns, buffers)
    }

    fn decode(&self, near: Neighbours<Wanted<'_>>) -> Result<()> {
        let (context, mut mine) = (&self.sweep().context, Vec::new());
        near.read(context, self.fragment, |wanted, bytes, decoded| {
            let Wanted { block, width, start, rows, out } = wanted;
            Counters::add(&context.counters.bytes_decoded, (block.cells() * width) as u64);
            let Some(rows) = rows else { return self.fragment.decode_into(&block, bytes, out) };
            mine.clear();
            mine.extend(rows.iter().map(|row| row - start as u32));
            self.fragment.decode_rows_into(&block, bytes, &mine, decoded, out)
        })
    }
}

fn width_of(datatype: Datatype) -> usize {
    datatype.width().unwrap_or(1)
}

fn column_of(attr: &Attribute) -> (Role, Datatype) {
    (Role::Attribute(attr.id()), attr.datatype())
}

fn made(columns: &[(Role, Datatype)], buffers: Vec<AlignedBuf>) -> Result<Vec<Column>> {
    let impossible = |e: Error| Error::corruption("a block holds impossible values").with_source(e);
    let column = |((_, datatype), buffer): (&(Role, Datatype), AlignedBuf)| {
        Column::new(*datatype, buffer, None, None).map_err(impossible)
    };
    columns.iter().zip(buffers).map(column).collect()
}
