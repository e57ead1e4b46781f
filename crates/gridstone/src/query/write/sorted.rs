//! Cells that come in global order already, more than there is memory to hold the keys of: checked, then encoded, a portion at a time.

use super::cells::{CellWrite, sorting_bytes};
use super::dense::check_columns;
use super::order::{Dedup, kept, not_sorted, same_cell};
use super::stream::CellStream;
use crate::base::Result;
use crate::fragment::Staged;
use crate::query::cells::keys::order_keys;
use crate::query::request::{BudgetHold, WriteContext};
use crate::schema::Schema;
use crate::tile::coordinates::coordinate_keys;
use crate::tile::{CellKeys, Column, ColumnView};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// Cells of a portion: neither so few that threads wait for each other, nor so many that they take a noticeable time to be stopped in.
const PORTION: Range<u64> = 4_096..1 << 18;

/// Checks that cells are in global order, where one of a place is to be there also that no two are at one place.
///
/// # Errors
/// Those of a write at once, with the same rows: Bounds, Input.
pub fn check_sorted(context: &WriteContext<'_>, schema: &Schema, write: &CellWrite<'_>) -> Result<()> {
    let cells = write.cells() as usize;
    let whole = || coordinate_keys(context.cancel, schema, &write.dims).map(drop);
    if write.dims.len() != schema.coordinates().count() || write.dims.iter().any(|dim| dim.len() != cells) {
        return whole();
    }
    let one_each = write.dedup == Dedup::Error && !schema.options().duplicates;
    let (mut disordered, mut shared) = (None, None);
    for rows in portions(context, schema, cells) {
        context.cancel.check()?;
        // The last row of the portion before is looked at once more: what comes next is compared with it.
        let from = rows.start.saturating_sub(1);
        let placed = match Placed::of(context, schema, write, from..rows.end) {
            Ok(placed) => placed,
            // Once more over everything, for the number of the row.
            Err(error) => return whole().and(Err(error)),
        };
        if disordered.is_none()
            && let Some(at) = placed.keys.first_step(Ordering::Less, context.cancel)?
        {
            disordered = Some(not_sorted(from + at));
        }
        if one_each
            && shared.is_none()
            && let Some(at) = placed.keys.first_step(Ordering::Equal, context.cancel)?
        {
            shared = Some(same_cell(schema, &placed.given, from as u64, &[at as u32 - 1, at as u32]));
        }
    }
    // In the order in which a write at once looks: any row's place, the values, the order of all rows, then two that are one cell.
    check_columns(schema, &write.columns, cells as u128)?;
    disordered.or(shared).map_or(Ok(()), Err)
}

/// Stages cells of a sparse array that [`check_sorted`] found in order, and, where the array has one of a place and `dedup` refuses more,
/// each at its own. Of several at one place, which stand together, `dedup` may take one.
///
/// # Errors
/// As [`super::cells::write_cells()`].
pub fn write_sorted(context: &WriteContext<'_>, schema: &Arc<Schema>, write: &CellWrite<'_>) -> Result<Option<Staged>> {
    let places = write.columns.iter().map(|(place, _)| *place).collect();
    let mut stream = CellStream::new(context, schema.clone(), schema.domain(), places)?;
    let cells = write.cells();
    for rows in portions(context, schema, cells as usize) {
        let taken = taken_of(context, schema, write, rows.clone())?;
        let copied = |view: &ColumnView<'_>| {
            let portion = view.copy_range(rows.start, rows.end);
            match &taken {
                Some(taken) => portion.view().gather(taken),
                None => portion,
            }
        };
        let dims: Vec<Column> = write.dims.iter().map(copied).collect();
        let attrs: Vec<Column> = write.columns.iter().map(|(_, view)| copied(view)).collect();
        let bytes = dims.iter().chain(&attrs).map(Column::size_bytes).sum::<usize>() as u64;
        let _held = BudgetHold::take(context.budget, bytes + sorting_bytes(schema, rows.len() as u64));
        let (dims, attrs): (Vec<_>, Vec<_>) =
            (dims.iter().map(Column::view).collect(), attrs.iter().map(Column::view).collect());
        stream.append(context, (&dims, &attrs), &mut Vec::new())?;
        context.progress.report(rows.end as u64, cells);
    }
    stream.finish(context.cancel)
}

/// Which of some rows are taken, counted from the first of them, where `dedup` takes one of each place; `None`: all are.
fn taken_of(
    context: &WriteContext<'_>,
    schema: &Schema,
    write: &CellWrite<'_>,
    rows: Range<usize>,
) -> Result<Option<Vec<u32>>> {
    // The row before tells whether the first one is the first of its place, the row behind whether the last one is the last.
    let looked = match write.dedup {
        Dedup::Error => return Ok(None),
        Dedup::First => rows.start.saturating_sub(1)..rows.end,
        Dedup::Last => rows.start..(rows.end + 1).min(write.cells() as usize),
    };
    let before = (rows.start - looked.start) as u32;
    let placed = Placed::of(context, schema, write, looked)?;
    let inside = kept(context.cancel, &placed.keys, write.dedup)?.into_iter().filter_map(|at| at.checked_sub(before));
    let taken: Vec<u32> = inside.filter(|at| (*at as usize) < rows.len()).collect();
    Ok((taken.len() < rows.len()).then_some(taken))
}

/// Rows whose keys take a sixteenth of the budget at most, one after the other.
fn portions(context: &WriteContext<'_>, schema: &Schema, cells: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let each = sorting_bytes(schema, 1).max(1);
    let portion = (context.budget.limit_bytes() / 16 / each).clamp(PORTION.start, PORTION.end) as usize;
    (0..cells).step_by(portion).map(move |from| from..(from + portion).min(cells))
}

/// The places of some rows.
struct Placed<'b> {
    /// The coordinates as keys, a column per axis.
    given: Vec<Vec<u64>>,
    /// The keys of the cells in global order.
    keys: CellKeys,
    _held: BudgetHold<'b>,
}

impl<'b> Placed<'b> {
    fn of(context: &WriteContext<'b>, schema: &Schema, write: &CellWrite<'_>, rows: Range<usize>) -> Result<Self> {
        let _held = BudgetHold::take(context.budget, sorting_bytes(schema, rows.len() as u64));
        let dims: Vec<Column> = write.dims.iter().map(|dim| dim.copy_range(rows.start, rows.end)).collect();
        let given = coordinate_keys(context.cancel, schema, &dims.iter().map(Column::view).collect::<Vec<_>>())?;
        let keys = order_keys(context.pool, context.cancel, schema, &given)?;
        Ok(Self { given, keys, _held })
    }
}
