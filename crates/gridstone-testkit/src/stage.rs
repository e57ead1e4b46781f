//! Applies a change to a real array, in one of the ways that the engine offers.

use crate::Dice;
use crate::coord::{Dim, Place, box_cells, box_texts};
use crate::model::{Change, Model};
use crate::value::{Value, column};
use gridstone::base::Result;
use gridstone::engine::{Array, Call, CellData, Column, ColumnView, Dedup, ReadOrder, Staged};
use gridstone::schema::Order;

/// Stages `change`: whole or streamed, in any layout, chosen at random.
pub fn stage(array: &Array, model: &Model, change: &Change, dice: &mut Dice) -> Result<Staged> {
    match change {
        Change::Box { sub, attrs, columns } => {
            let texts = box_texts(model.dims(), sub);
            let cells = box_cells(sub);
            if dice.chance(35) {
                let rows = order_of(model, &cells, ReadOrder::Global);
                return stream(array, model, Some(&texts), (attrs, columns), &[], &rows, dice);
            }
            let (layout, order) = *dice.pick(&[(Order::Row, ReadOrder::Row), (Order::Col, ReadOrder::Col)]);
            let columns = pick(model, attrs, columns, &order_of(model, &cells, order));
            let mut data = named(model, attrs, &columns);
            dice.shuffle(&mut data);
            array.stage_dense(Some(&texts), &data, layout, &Call::default())
        }
        Change::Cells { cells, attrs, columns, dedup } => {
            let rows = order_of(model, cells, ReadOrder::Global);
            let streamable = model.schema().sparse() && *dedup == Dedup::Error && !model.refuses(change);
            if streamable && dice.chance(35) {
                return stream(array, model, None, (attrs, columns), cells, &rows, dice);
            }
            let sorted = dice.chance(30);
            let rows = if sorted { rows } else { (0..cells.len()).collect() };
            let dims = dim_columns(model.dims(), cells, &rows);
            let columns = pick(model, attrs, columns, &rows);
            let attrs = named(model, attrs, &columns);
            let dims = dims.iter().map(Column::view).collect();
            array.stage_cells(CellData { dims, attrs, sorted, dedup: *dedup }, &Call::default())
        }
        Change::Clear { sub } => array.stage_delete_box(Some(&box_texts(model.dims(), sub))),
        Change::Delete { cells } => {
            let rows: Vec<usize> = (0..cells.len()).collect();
            let dims = dim_columns(model.dims(), cells, &rows);
            array.stage_delete(&dims.iter().map(Column::view).collect::<Vec<_>>(), &Call::default())
        }
    }
}

/// The rows of `cells` in `order`, equal cells in the order of writing.
fn order_of(model: &Model, cells: &[Place], order: ReadOrder) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..cells.len()).collect();
    rows.sort_by(|a, b| model.compare(order, &cells[*a], &cells[*b]));
    rows
}

fn dim_columns(dims: &[Dim], cells: &[Place], rows: &[usize]) -> Vec<Column> {
    dims.iter().enumerate().map(|(d, dim)| dim.column(rows.iter().map(|r| cells[*r][d]))).collect()
}

fn pick(model: &Model, attrs: &[usize], columns: &[Vec<Value>], rows: &[usize]) -> Vec<Column> {
    let one = |(attr, values): (&usize, &Vec<Value>)| {
        let values: Vec<Value> = rows.iter().map(|r| values[*r].clone()).collect();
        column(&model.schema().attrs()[*attr], &values)
    };
    attrs.iter().zip(columns).map(one).collect()
}

fn named<'a>(model: &Model, attrs: &[usize], columns: &'a [Column]) -> Vec<(String, ColumnView<'a>)> {
    let name = |attr: &usize| model.schema().attrs()[*attr].name().to_owned();
    attrs.iter().map(name).zip(columns.iter().map(Column::view)).collect()
}

/// Streams the rows, which are in global order, in random portions.
fn stream(
    array: &Array,
    model: &Model,
    sub: Option<&[(String, String)]>,
    (attrs, columns): (&[usize], &[Vec<Value>]),
    cells: &[Place],
    rows: &[usize],
    dice: &mut Dice,
) -> Result<Staged> {
    let names: Vec<String> = attrs.iter().map(|a| model.schema().attrs()[*a].name().to_owned()).collect();
    let mut writer = array.writer(sub, Some(&names))?;
    let mut rest = rows;
    while !rest.is_empty() {
        let most = if dice.chance(20) { rest.len() } else { rest.len().min(1 + rest.len() / 3) };
        let (head, tail) = rest.split_at(dice.below(most + 1));
        let dims = if cells.is_empty() { Vec::new() } else { dim_columns(model.dims(), cells, head) };
        let columns = pick(model, attrs, columns, head);
        let dims: Vec<ColumnView<'_>> = dims.iter().map(Column::view).collect();
        let columns: Vec<ColumnView<'_>> = columns.iter().map(Column::view).collect();
        writer.append(&Call::default(), &dims, &columns)?;
        rest = tail;
    }
    writer.finish(&Call::default())
}
