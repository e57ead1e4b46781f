//! Cells that come in any order and any number, written as if they had come at once, in bounded memory.
//!
//! 1. Cells are held until they take a sixteenth of the budget; then they are sorted and written as a *run*, a fragment that
//!    nothing refers to.
//! 2. At the end the runs are merged into fragments. A few runs of an array with duplicates are fragments as they are.
//!
//! The runs stand in the order that they came in, so what a merge does with cells at one place is what a single write does.

use super::cells::{RewriteCells, rewrite_cells};
use super::passes::merge_in_passes;
use crate::base::{Error, Id, Result, Silent};
use crate::fragment::{Description, FragmentOrder, Staged};
use crate::query::block::open::open_fragment;
use crate::query::points::list::Points;
use crate::query::points::rows_at;
use crate::query::request::{BudgetHold, ReadContext, ReadOrder, Request, Target, WriteContext};
use crate::query::sparse::SparseReader;
use crate::query::write::cells::{CellWrite, sorting_bytes, stage_cells};
use crate::query::write::dense::check_columns;
use crate::query::write::order::Dedup;
use crate::schema::Schema;
use crate::tile::coordinates::{axis_keys, check_coordinates, no_coordinates, reached_domain};
use crate::tile::{Column, ColumnView};
use std::sync::Arc;

/// Rows taken over at once, between two looks at how much is held.
const PORTION: usize = 16_384;
/// So many runs are left as they are, where that changes nothing that is read.
const RUNS_KEPT: usize = 8;
/// Bytes of a fragment that runs are merged into, about.
const FRAGMENT_BYTES: u64 = 512 << 20;

/// Cells on their way into an array, in any order.
#[derive(Debug)]
pub struct UnsortedCells {
    schema: Arc<Schema>,
    places: Vec<usize>,
    dedup: Dedup,
    dims: Vec<Column>,
    attrs: Vec<Column>,
    run_bytes: usize,
    /// Whether the domain of the schema grows to take in what comes, also beyond ends that are not open.
    grows: bool,
    /// Cells in the runs, as they were given.
    spilled: u64,
}

impl UnsortedCells {
    /// Without a cell yet; those of the attributes at `places` (ascending) come.
    ///
    /// # Errors
    /// Input: attributes are missing.
    pub fn new(context: &WriteContext<'_>, schema: Arc<Schema>, places: Vec<usize>, dedup: Dedup) -> Result<Self> {
        if places.is_empty() || (schema.sparse() && places.len() != schema.attrs().len()) {
            return Err(Error::input("a stream needs at least one attribute, of a sparse array every one"));
        }
        let dims = no_coordinates(&schema);
        let attrs = places.iter().filter_map(|p| schema.attrs().get(*p));
        let attrs = attrs.map(|a| Column::empty(a.datatype(), a.nullable())).collect();
        let run_bytes = usize::try_from(context.budget.limit_bytes() / 16).unwrap_or(usize::MAX);
        Ok(Self { dims, attrs, schema, places, dedup, run_bytes, grows: false, spilled: 0 })
    }

    /// From now on the domain of the schema grows to take in what comes. Runs that were written before stay as they are:
    /// the order of cells does not depend on the domain.
    pub fn grows(&mut self) {
        self.grows = true;
    }

    /// The schema, over the domain that the cells need.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Appends cells: a column per dimension, and one per attribute of the stream. What is written meanwhile is in `runs`,
    /// after an error too. After an error this is of no more use.
    ///
    /// # Errors
    /// As [`crate::query::write::cells::write_cells()`]; rows are counted from the first of these cells, but those of two that are the same cell from the
    /// first of all that were appended.
    pub fn append(
        &mut self,
        context: &WriteContext<'_>,
        (dims, columns): (&[ColumnView<'_>], &[ColumnView<'_>]),
        runs: &mut Vec<Staged>,
    ) -> Result<()> {
        // Everything is checked before it is taken, so that the row named is one of the caller's.
        let cells = self.check(context, dims)?;
        if columns.len() != self.places.len() {
            let (given, needed) = (columns.len(), self.places.len());
            return Err(Error::input(format!("{given} columns were given, the stream has {needed}")));
        }
        let placed: Vec<_> = self.places.iter().copied().zip(columns.iter().copied()).collect();
        check_columns(&self.schema, &placed, cells as u128)?;
        for from in (0..cells).step_by(PORTION) {
            context.cancel.check()?;
            let to = (from + PORTION).min(cells);
            let held = self.dims.iter_mut().chain(&mut self.attrs).zip(dims.iter().chain(columns));
            held.for_each(|(held, view)| held.append(*view, from, to));
            // A write numbers its cells in 32 bits.
            let many = self.dims.first().map_or(0, Column::len) >= (u32::MAX as usize) / 2;
            if self.held_bytes().max(self.sorted_bytes() / 2) >= self.run_bytes || many {
                self.spill(context, runs)?;
            }
        }
        Ok(())
    }

    /// How many cells these coordinates are for, once they are checked and the domain reaches to them if it grows.
    fn check(&mut self, context: &WriteContext<'_>, dims: &[ColumnView<'_>]) -> Result<usize> {
        let (own, reachable) = (self.schema.domain(), self.schema.reachable(self.grows));
        if reachable == own {
            return check_coordinates(context.cancel, &self.schema, dims);
        }
        let domain = reached_domain(context.cancel, &self.schema, &reachable, dims)?;
        if domain != own {
            let reached = self.schema.reaching(&domain);
            reached.check_limits()?;
            self.schema = Arc::new(reached);
        }
        Ok(dims.first().map_or(0, ColumnView::len))
    }

    /// Bytes that sorting what is held takes, besides it.
    fn sorted_bytes(&self) -> usize {
        let cells = self.dims.first().map_or(0, Column::len) as u64;
        usize::try_from(sorting_bytes(&self.schema, cells)).unwrap_or(usize::MAX)
    }

    fn held_bytes(&self) -> usize {
        self.dims.iter().chain(&self.attrs).map(Column::size_bytes).sum()
    }

    /// Writes what is held as a run.
    fn spill(&mut self, context: &WriteContext<'_>, runs: &mut Vec<Staged>) -> Result<()> {
        // Only the end of the stream may be kept for a record's body.
        runs.extend(self.write(&WriteContext { inline: false, ..context.clone() })?);
        Ok(())
    }

    /// Writes what is held, sorted, and lets go of it.
    fn write(&mut self, context: &WriteContext<'_>) -> Result<Option<Staged>> {
        let empty = |c: &Column| Column::empty(c.datatype(), c.view().validity().is_some());
        let empty = |held: &mut Vec<Column>| {
            let next = held.iter().map(empty).collect();
            std::mem::replace(held, next)
        };
        // The cells, and what they are sorted by or the same again encoded.
        let bytes = self.held_bytes() + self.held_bytes().max(self.sorted_bytes());
        let _held = BudgetHold::take(context.budget, bytes as u64);
        let (dims, attrs) = (empty(&mut self.dims), empty(&mut self.attrs));
        let first_row = self.spilled;
        self.spilled += dims.first().map_or(0, Column::len) as u64;
        let write = CellWrite {
            dims: dims.iter().map(Column::view).collect(),
            columns: self.places.iter().copied().zip(attrs.iter().map(Column::view)).collect(),
            sorted: false,
            dedup: self.dedup,
        };
        stage_cells(context, &self.schema, &write, first_row)
    }

    /// Ends the stream. The fragments are in `done`; `runs` are of no more use but for those among them that were moved
    /// there. `array`: its id, for what is cached meanwhile.
    ///
    /// # Errors
    /// Input: two cells at one place, which are named, where the array allows one and `dedup` says to refuse them; Storage,
    /// Cancelled.
    pub fn finish(
        mut self,
        read: &ReadContext,
        write: &WriteContext<'_>,
        array: Id,
        runs: &mut Vec<Staged>,
        done: &mut Vec<Staged>,
    ) -> Result<()> {
        if runs.is_empty() {
            done.extend(self.write(write)?);
            return Ok(());
        }
        // What is told is how much was merged.
        let silent = WriteContext { progress: &Silent, ..write.clone() };
        self.spill(&silent, runs)?;
        // Of these cells one of each place is to be left, though the array could hold all.
        let one_each = self.schema.options().duplicates && self.dedup != Dedup::Error;
        let schema = if one_each { Arc::new(self.schema.with_one_cell_each()) } else { self.schema.clone() };
        if runs.len() == 1 || (schema.options().duplicates && runs.len() <= RUNS_KEPT) {
            done.append(runs);
            return Ok(());
        }
        let target = Target { array, schema, fragments: self.ordered(runs) };
        let (bytes, cells) = runs.iter().fold((0, 0u64), |(bytes, cells), run| {
            (bytes + run.description.location.len, cells + run.description.cells)
        });
        let fragments = merge_in_passes(read, &silent, &target, target.fragments.clone(), runs)?;
        let merged = Target { fragments, ..target.clone() };
        let cells_max = (FRAGMENT_BYTES / (bytes / cells.max(1) + 1)).max(1);
        rewrite_cells(read, write, &RewriteCells { target: &merged, places: self.places.clone(), cells_max }, done)?;
        let kept: u64 = done.iter().map(|staged| staged.description.cells).sum();
        if self.dedup == Dedup::Error && kept < cells {
            return Err(self.shared(read, &target)?);
        }
        Ok(())
    }

    /// The runs as a merge takes them: the one whose cells stay where several are at one place has the greatest order.
    fn ordered(&self, runs: &[Staged]) -> Vec<Arc<Description>> {
        let last = runs.len() as u64;
        let version = |place: u64| if self.dedup == Dedup::First { last - place } else { place + 1 };
        let described = runs.iter().zip(0u64..).map(|(run, place)| {
            let order = FragmentOrder { version: version(place), index: 0 };
            Arc::new(Description { order, ..run.description.clone() })
        });
        let mut ordered: Vec<_> = described.collect();
        ordered.sort_by_key(|d| d.order);
        ordered
    }

    /// The error for the first cell that two runs have.
    fn shared(&self, read: &ReadContext, target: &Target) -> Result<Error> {
        let found = self.shared_cell(read, target)?.unwrap_or_default();
        let key = |axis: usize| found.get(axis).copied().unwrap_or(0);
        Ok(Error::input(format!(
            "two of the {} cells that were appended are the same cell ({}); drop one, pass dedup=\"first\" or \"last\", or let \
             the array allow duplicates",
            self.spilled,
            self.schema.describe_cell(key)
        )))
    }

    /// The coordinates, as keys, of a cell that two runs have.
    fn shared_cell(&self, read: &ReadContext, target: &Target) -> Result<Option<Vec<u64>>> {
        let request = Request::of_box(self.schema.domain(), Vec::new(), ReadOrder::Global);
        for (place, run) in target.fragments.iter().enumerate() {
            let alone = Target { fragments: vec![run.clone()], ..target.clone() };
            let later = target.fragments.get(place + 1..).unwrap_or_default().to_vec();
            let later = Target { fragments: later, ..target.clone() };
            let opened =
                later.fragments.iter().map(|d| open_fragment(read, &self.schema, d)).collect::<Result<Vec<_>>>()?;
            let mut sweep = SparseReader::new(read, &alone, &request)?;
            while let Some(cells) = sweep.next(read.batch_bytes())? {
                let touches = |rows: &[u32]| {
                    let dims: Vec<Column> = cells.dims.iter().map(|c| c.view().gather(rows)).collect();
                    let views: Vec<ColumnView<'_>> = dims.iter().map(Column::view).collect();
                    Ok(!rows_at(read, &later, &Points::new(read, &self.schema, &views)?, &opened)?.is_empty())
                };
                let all: Vec<u32> = (0..cells.count as u32).collect();
                if let Some(row) = bisect(&all, &touches)? {
                    let cell: Vec<Column> = cells.dims.iter().map(|c| c.view().gather(&[row])).collect();
                    return Ok(Some(axis_keys(&self.schema, &cell)?.concat()));
                }
            }
        }
        Ok(None)
    }
}

/// One of `rows` for which `test` holds, if it holds for them together.
fn bisect(rows: &[u32], test: &impl Fn(&[u32]) -> Result<bool>) -> Result<Option<u32>> {
    if rows.is_empty() || !test(rows)? {
        return Ok(None);
    }
    let mut rest = rows;
    while rest.len() > 1 {
        let (low, high) = rest.split_at(rest.len() / 2);
        rest = if test(low)? { low } else { high };
    }
    Ok(rest.first().copied())
}
