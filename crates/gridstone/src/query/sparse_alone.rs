//! Sparse cells of one fragment that stands alone: decoded straight into the columns of the result.
//!
//! There is nothing to merge, so a cell's place in the result is known once the rows before it are counted. Blocks that lie
//! wholly in the box are decoded where their cells belong; of others the rows inside are picked from a scratch buffer.

use super::Cells;
use super::deliver::is_deliverable;
use super::dense::attrs_of;
use super::fetch::{Want, fetch_bytes, fetch_coordinates, submissions};
use super::sparse::{Sweep, Unit, rows_inside};
use crate::base::{AlignedBuf, Counters, Error, Result};
use crate::fragment::{Fragment, FragmentKind};
use crate::schema::{Datatype, key};
use crate::tile::{Column, gather_into};
use bytes::Bytes;

/// A column of the result that grows.
struct Growing {
    datatype: Datatype,
    values: AlignedBuf,
}

impl Growing {
    fn width(&self) -> usize {
        self.datatype.width().unwrap_or(1)
    }

    /// Room for `counts` more cells, cut into a slice for each of them.
    /// A Budget error if there is no memory for them.
    fn grow(&mut self, counts: &[usize]) -> Result<Vec<&mut [u8]>> {
        let (width, old) = (self.width(), self.values.len());
        let more = counts.iter().sum::<usize>() * width;
        self.values.try_reserve(more)?;
        self.values.resize(old + more);
        let mut rest = self.values.as_mut_slice().get_mut(old..).unwrap_or_default();
        let mut slices = Vec::with_capacity(counts.len());
        for count in counts {
            let (slice, later) = rest.split_at_mut(count * width);
            slices.push(slice);
            rest = later;
        }
        Ok(slices)
    }
}

type Slices<'a> = std::vec::IntoIter<&'a mut [u8]>;

/// For each column the slices that it grows by.
fn slices<'a>(columns: &'a mut [Growing], counts: &[usize]) -> Result<Vec<Slices<'a>>> {
    columns.iter_mut().map(|c| c.grow(counts).map(Vec::into_iter)).collect()
}

/// A block on its way into the result.
struct Item<'a> {
    coords: Vec<Vec<u64>>,
    /// The rows in the box; `None`: all.
    rows: Option<Vec<u32>>,
    dims: Vec<&'a mut [u8]>,
    attrs: Vec<&'a mut [u8]>,
    wants: &'a [Want],
    bytes: &'a [Bytes],
}

impl Sweep {
    /// Whether all cells come from one fragment, and all attributes are of fixed width without nulls.
    pub(super) fn stands_alone(&self) -> bool {
        let one = self.queues.len() == 1 && self.fragments.len() == 1;
        let kind = self.fragments.first().map(|f| f.description().kind);
        one && kind == Some(FragmentKind::Sparse) && attrs_of(&self.schema, &self.request).all(is_deliverable)
    }

    /// All cells in global order; `None`, found out early, if they are more than `cells_max`.
    pub(super) fn collect_alone(&mut self, cells_max: u64) -> Result<Option<Cells>> {
        let growing = |datatype| Growing { datatype, values: AlignedBuf::default() };
        let mut dims: Vec<Growing> = self.schema.dims().iter().map(|d| growing(d.datatype())).collect();
        let mut attrs: Vec<Growing> = attrs_of(&self.schema, &self.request).map(|a| growing(a.datatype())).collect();
        let mut count = 0;
        loop {
            self.context.cancel.check()?;
            let units = self.next_group(self.context.batch_bytes());
            if units.is_empty() {
                break;
            }
            let held = units.iter().map(|u| u.at.cells as u64).sum::<u64>().saturating_mul(self.row_bytes.0);
            self.context.budget.take(held);
            let added = self.place(&units, &mut dims, &mut attrs);
            self.context.budget.give(held);
            count += added?;
            if count as u64 > cells_max {
                return Ok(None);
            }
            self.context.progress.report(count as u64, self.total.max(count as u64));
        }
        Counters::add(&self.context.counters.cells_returned, count as u64);
        let column = |grown: Growing| Column::new(grown.datatype, grown.values, None, None);
        let columns = |all: Vec<Growing>| all.into_iter().map(column).collect::<Result<Vec<Column>>>();
        Ok(Some(Cells { count, dims: columns(dims)?, attrs: columns(attrs)? }))
    }

    /// Appends the cells of `units` that lie in the box; gives how many they are.
    fn place(&self, units: &[Unit], dims: &mut [Growing], attrs: &mut [Growing]) -> Result<usize> {
        let context = &self.context;
        let blocks = units.iter().map(|u| Ok((self.fragment(u)?, &u.at))).collect::<Result<Vec<_>>>()?;
        let coords = fetch_coordinates(context, &self.schema, &blocks, true)?;
        let mut kept = Vec::with_capacity(units.len());
        let (mut wants, mut counts) = (Vec::new(), Vec::with_capacity(units.len()));
        for (unit, coords) in units.iter().zip(coords) {
            Counters::add(&context.counters.cells_scanned, unit.at.cells as u64);
            let rows = rows_inside(&self.request.sub, unit, &coords);
            let count = rows.as_ref().map_or(unit.at.cells, Vec::len);
            if count > 0 {
                self.want_values(unit, &mut wants)?;
                counts.push(count);
                kept.push((coords, rows));
            }
        }
        let mut bytes = Vec::with_capacity(wants.len());
        for group in submissions(&wants) {
            context.cancel.check()?;
            bytes.extend(fetch_bytes(context, group)?);
        }
        let Some((fragment, _)) = blocks.first() else { return Ok(0) };
        let mut dim_slices = slices(dims, &counts)?;
        let mut attr_slices = slices(attrs, &counts)?;
        let per_unit = self.request.attrs.len().max(1);
        let parts = kept.into_iter().zip(wants.chunks(per_unit).zip(bytes.chunks(per_unit)));
        let items = parts.map(|((coords, rows), (wants, bytes))| {
            let dims = dim_slices.iter_mut().filter_map(Iterator::next).collect();
            let attrs = attr_slices.iter_mut().filter_map(Iterator::next).collect();
            Item { coords, rows, dims, attrs, wants, bytes }
        });
        let items: Vec<Item<'_>> = items.collect();
        context.pool.map(items, context.cancel.as_ref(), |item| self.fill(fragment, item))?;
        Counters::add(&context.counters.blocks_alone, wants.len() as u64);
        Ok(counts.iter().sum())
    }

    fn fill(&self, fragment: &Fragment, item: Item<'_>) -> Result<()> {
        let mut scratch = Vec::new();
        for ((slice, keys), dim) in item.dims.into_iter().zip(&item.coords).zip(self.schema.dims()) {
            scratch.clear();
            match &item.rows {
                None => key::decode(dim.datatype(), keys.iter().copied(), &mut scratch),
                Some(rows) => {
                    let picked = rows.iter().filter_map(|r| keys.get(*r as usize).copied());
                    key::decode(dim.datatype(), picked, &mut scratch);
                }
            }
            if scratch.len() != slice.len() {
                return Err(Error::corruption("a block has fewer coordinates than cells"));
            }
            slice.copy_from_slice(&scratch);
        }
        let counters = &self.context.counters;
        let attrs = attrs_of(&self.schema, &self.request);
        for (((slice, want), bytes), attr) in item.attrs.into_iter().zip(item.wants).zip(item.bytes).zip(attrs) {
            self.context.cancel.check()?;
            let width = attr.datatype().width().unwrap_or(1);
            Counters::add(&counters.blocks_decoded, 1);
            Counters::add(&counters.bytes_decoded, (want.block.cells() * width) as u64);
            match &item.rows {
                None => fragment.decode_into(&want.block, bytes, slice)?,
                Some(rows) => {
                    scratch.resize(want.block.cells() * width, 0);
                    fragment.decode_into(&want.block, bytes, &mut scratch)?;
                    gather_into(&scratch, rows, width, slice);
                }
            }
        }
        Ok(())
    }
}
