//! Cells that come in global order already, more than there is memory to hold the keys of: checked, then encoded, a portion at a time.

use super::WriteContext;
use super::coordinates::{check_coordinates, coordinate_keys};
use super::ordered_cells::{not_sorted, order_keys, same_cell};
use super::rewrite::Held;
use super::stream::CellStream;
use super::write_cells::{CellWrite, Dedup, sorting_bytes};
use super::write_dense::check_columns;
use crate::base::Result;
use crate::fragment::Staged;
use crate::schema::Schema;
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
    let cells = check_coordinates(context.cancel, schema, &write.dims)?;
    let one_each = write.dedup == Dedup::Error && !schema.options().duplicates;
    let mut shared = None;
    for rows in portions(context, schema, cells) {
        context.cancel.check()?;
        // The last row of the portion before is looked at once more: what comes next is compared with it.
        let from = rows.start.saturating_sub(1);
        let (given, keys) = keys_of(context, schema, write, from..rows.end)?;
        if let Some(at) = keys.first_step(Ordering::Less, context.cancel)? {
            return Err(not_sorted(from + at));
        }
        if one_each
            && shared.is_none()
            && let Some(at) = keys.first_step(Ordering::Equal, context.cancel)?
        {
            // That a later row is out of order is said first, as of a write at once.
            shared = Some(same_cell(schema, &given, from as u64, &[at as u32 - 1, at as u32]));
        }
    }
    shared.map_or(Ok(()), Err)
}

/// Stages cells of a sparse array that [`check_sorted`] found in order and, where the array has one of a place, each at its own.
///
/// # Errors
/// As [`super::write_cells()`].
pub fn write_sorted(context: &WriteContext<'_>, schema: &Arc<Schema>, write: &CellWrite<'_>) -> Result<Option<Staged>> {
    // Before a row of them is written: they may be shorter than the coordinates.
    check_columns(schema, &write.columns, u128::from(write.cells()))?;
    let places = write.columns.iter().map(|(place, _)| *place).collect();
    let mut stream = CellStream::new(context, schema.clone(), schema.domain(), places)?;
    let cells = write.cells();
    for rows in portions(context, schema, cells as usize) {
        let copied = |view: &ColumnView<'_>| view.copy_range(rows.start, rows.end);
        let dims: Vec<Column> = write.dims.iter().map(copied).collect();
        let attrs: Vec<Column> = write.columns.iter().map(|(_, view)| copied(view)).collect();
        let bytes = dims.iter().chain(&attrs).map(Column::size_bytes).sum::<usize>() as u64;
        let _held = Held::take(context.budget, bytes + sorting_bytes(schema, rows.len() as u64));
        let (dims, attrs): (Vec<_>, Vec<_>) =
            (dims.iter().map(Column::view).collect(), attrs.iter().map(Column::view).collect());
        stream.append((context.pool, context.cancel), &dims, &attrs)?;
        context.progress.report(rows.end as u64, cells);
    }
    stream.finish(context.cancel)
}

/// Rows whose keys take a sixteenth of the budget at most, one after the other.
fn portions(context: &WriteContext<'_>, schema: &Schema, cells: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let each = sorting_bytes(schema, 1).max(1);
    let portion = (context.budget.limit_bytes() / 16 / each).clamp(PORTION.start, PORTION.end) as usize;
    (0..cells).step_by(portion).map(move |from| from..(from + portion).min(cells))
}

/// The coordinates of some rows as keys, a column per axis, and the keys of these cells.
fn keys_of(
    context: &WriteContext<'_>,
    schema: &Schema,
    write: &CellWrite<'_>,
    rows: Range<usize>,
) -> Result<(Vec<Vec<u64>>, CellKeys)> {
    let _held = Held::take(context.budget, sorting_bytes(schema, rows.len() as u64));
    let dims: Vec<Column> = write.dims.iter().map(|dim| dim.copy_range(rows.start, rows.end)).collect();
    let given = coordinate_keys(context.cancel, schema, &dims.iter().map(Column::view).collect::<Vec<_>>())?;
    let keys = order_keys(context.pool, context.cancel, schema, &given)?;
    Ok((given, keys))
}
