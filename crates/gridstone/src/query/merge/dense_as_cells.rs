//! Dense fragments written as cells with coordinates, in files that only who asked for it reads: a merge of cells takes them like any
//! other fragment of cells then.

use crate::base::Result;
use crate::fragment::{Description, FragmentKind, Staged};
use crate::query::dense::read::read_dense;
use crate::query::request::{ReadContext, ReadOrder, Request, Target, WriteContext};
use crate::query::write::cells::{CellWrite, write_cells};
use crate::query::write::order::Dedup;
use crate::schema::{Order, Subarray};
use crate::tile::coordinates::coordinate_column;
use crate::tile::{Column, ColumnView, unravel};
use std::sync::Arc;

/// The fragments, oldest order first, with the dense ones among them as fragments of cells: of those that follow each other as many
/// in one as fit a batch, of which each place has the newest value. All have values of the attributes at `places` in the schema. What
/// is written is in `scratch`, after an error too.
///
/// # Errors
/// Corruption, Storage, Cancelled.
pub fn dense_as_cells(
    read: &ReadContext,
    write: &WriteContext<'_>,
    target: &Target,
    places: &[usize],
    fragments: &[Arc<Description>],
    scratch: &mut Vec<Staged>,
) -> Result<Vec<Arc<Description>>> {
    // Not a part of any commit, so in files of their own.
    let write = WriteContext { inline: false, ..write.clone() };
    let cells_max = read.batch_bytes() / target.row_bytes().max(1);
    let mut found = Vec::with_capacity(fragments.len());
    let is_dense = |d: &Arc<Description>| d.kind == FragmentKind::Dense;
    for run in fragments.chunk_by(|a, b| is_dense(a) == is_dense(b)) {
        if !run.first().is_some_and(is_dense) {
            found.extend_from_slice(run);
            continue;
        }
        let mut rest = run;
        while !rest.is_empty() {
            let mut cells = 0u64;
            let fit = rest.iter().take_while(|d| {
                cells = cells.saturating_add(d.cells);
                cells <= cells_max
            });
            let (group, later) = rest.split_at(fit.count().max(1).min(rest.len()));
            if let Some(mut staged) = as_cells(read, &write, target, places, group)? {
                staged.description.order = group.iter().map(|d| d.order).max().unwrap_or(staged.description.order);
                found.push(Arc::new(staged.description.clone()));
                scratch.push(staged);
            }
            rest = later;
        }
    }
    Ok(found)
}

/// The cells of dense fragments, oldest first, as one fragment of cells.
fn as_cells(
    read: &ReadContext,
    write: &WriteContext<'_>,
    target: &Target,
    places: &[usize],
    group: &[Arc<Description>],
) -> Result<Option<Staged>> {
    let schema = &target.schema;
    let attrs = places.iter().filter_map(|place| schema.attrs().get(*place));
    let mut values: Vec<Column> = attrs.map(|a| Column::empty(a.datatype(), a.nullable())).collect();
    let mut keys: Vec<Vec<u64>> = vec![Vec::new(); schema.ndim()];
    for d in group {
        read.cancel.check()?;
        let alone = Target { fragments: vec![Arc::clone(d)], ..target.clone() };
        let request = Request::of_box(d.bounds.clone(), places.to_vec(), ReadOrder::Row);
        let cells = read_dense(read, &alone, &request)?;
        for (column, more) in values.iter_mut().zip(&cells.attrs) {
            column.try_append(more.view())?;
        }
        add_places(&d.bounds, &mut keys);
    }
    let dims = schema.dims().iter().zip(&keys).map(|(dim, keys)| coordinate_column(dim.datatype(), keys));
    let dims = dims.collect::<Result<Vec<Column>>>()?;
    let dims: Vec<ColumnView<'_>> = dims.iter().map(Column::view).collect();
    let columns = places.iter().copied().zip(values.iter().map(Column::view)).collect();
    // Where two have written a place the later one counts.
    write_cells(write, schema, &CellWrite { dims, columns, sorted: false, dedup: Dedup::Last })
}

/// Adds the keys of all places of a box, the last dimension fastest.
fn add_places(bounds: &Subarray, keys: &mut [Vec<u64>]) {
    let shape = bounds.shape();
    let cells: u64 = shape.iter().product();
    for row in 0..cells {
        let offsets = unravel(row, &shape, Order::Row);
        for ((column, offset), range) in keys.iter_mut().zip(offsets).zip(bounds.ranges()) {
            column.push(range.lo + offset);
        }
    }
}
