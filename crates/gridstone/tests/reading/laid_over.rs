//! Promise: of many small writes over a dense array each cell reads as the newest of those that speak of the attribute asked for left
//! it: others in between, of other attributes or deleted since, change nothing. With sorted copies of packs and without.

use crate::support::columns::{bytes_of, numbers, view};
use gridstone::engine::{
    Array, At, Call, CellData, Context, Dedup, Durability, Opened, Options, ReadOrder, create_array_on, open_on,
};
use gridstone::schema::{Order, Schema};
use gridstone::storage::{MemoryStorage, Storage};
use gridstone_testkit::Dice;
use std::sync::Arc;

const SIDE: usize = 48;
const ATTRS: [&str; 2] = ["v", "w"];

fn options() -> Options {
    Options { threads: Some(2), durability: Durability::Close, fold_versions: 16, ..Options::default() }
}

/// The array with empty caches.
fn opened(storage: &Arc<dyn Storage>) -> Array {
    match open_on(&Context::new(&options()).unwrap(), storage.clone(), "/", true, At::Latest).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

fn created(storage: &Arc<dyn Storage>, cell_order: &str) -> Array {
    let schema = format!(
        r#"{{"cell_order":"{cell_order}","dims":[{{"name":"y","dtype":"int64","domain":["0","47"],"tile":"20"}},
        {{"name":"x","dtype":"int64","domain":["0","47"],"tile":"16"}}],
        "attrs":[{{"name":"v","dtype":"int64","filters":"none"}},{{"name":"w","dtype":"int64"}}]}}"#
    );
    let schema = Schema::from_json(&schema).unwrap();
    create_array_on(&Context::new(&options()).unwrap(), storage.clone(), "/", schema, false).unwrap()
}

/// What an array should say: of each attribute a value per cell.
struct Model {
    fill: i64,
    cells: [Vec<i64>; 2],
}

impl Model {
    fn set(&mut self, attr: usize, (y, x): (usize, usize), value: i64) {
        self.cells[attr][y * SIDE + x] = value;
    }

    fn expected(&self, attr: usize, (y, x): (Span, Span), order: Order) -> Vec<i64> {
        let cell = |y: usize, x: usize| self.cells[attr][y * SIDE + x];
        match order {
            Order::Col => x.flat_map(|x| y.clone().map(move |y| cell(y, x))).collect(),
            _ => y.flat_map(|y| x.clone().map(move |x| cell(y, x))).collect(),
        }
    }
}

type Span = std::ops::RangeInclusive<usize>;

fn span(dice: &mut Dice) -> Span {
    let (a, b) = (dice.below(SIDE), dice.below(SIDE));
    a.min(b)..=a.max(b)
}

fn sides(y: &Span, x: &Span) -> [(String, String); 2] {
    [y, x].map(|of| (of.start().to_string(), of.end().to_string()))
}

/// Writes or deletes in one commit, and in the model.
fn change(array: &Array, model: &mut Model, n: i64, dice: &mut Dice) {
    let call = Call::default();
    // Few places, so that most are written again and again.
    let cells: Vec<(usize, usize)> =
        (0..1 + dice.below(40)).map(|_| (dice.below(12) * 4, dice.below(12) * 4)).collect();
    let coords = [0, 1].map(|dim| bytes_of(cells.iter().map(|c| if dim == 0 { c.0 as i64 } else { c.1 as i64 })));
    let dims: Vec<_> = coords.iter().map(|bytes| view(bytes)).collect();
    let staged = match dice.below(30) {
        0 => {
            for (attr, cell) in [0, 1].into_iter().flat_map(|attr| cells.iter().map(move |cell| (attr, *cell))) {
                model.set(attr, cell, model.fill);
            }
            array.stage_delete(&dims, &call)
        }
        1 if n % 3 == 0 => {
            let (y, x) = (span(dice), span(dice));
            for (attr, y, x) in [0, 1]
                .into_iter()
                .flat_map(|a| y.clone().map(move |y| (a, y)))
                .flat_map(|(a, y)| x.clone().map(move |x| (a, y, x)))
            {
                model.set(attr, (y, x), model.fill);
            }
            array.stage_delete_box(Some(&sides(&y, &x)))
        }
        kind => {
            let attrs: &[usize] = match kind {
                2 | 3 => &[0],
                4 | 5 => &[1],
                _ => &[0, 1],
            };
            let value = |attr: usize, row: usize| n * 1_000 + attr as i64 * 500 + row as i64;
            let values: Vec<Vec<u8>> =
                attrs.iter().map(|attr| bytes_of((0..cells.len()).map(|row| value(*attr, row)))).collect();
            for attr in attrs {
                cells.iter().enumerate().for_each(|(row, cell)| model.set(*attr, *cell, value(*attr, row)));
            }
            let attrs = attrs.iter().zip(&values).map(|(attr, bytes)| (ATTRS[*attr].to_owned(), view(bytes))).collect();
            array.stage_cells(CellData { dims, attrs, sorted: false, dedup: Dedup::Last }, &call)
        }
    };
    array.commit(vec![staged.unwrap()], None).unwrap();
}

/// Whether boxes read as the model says, of one attribute and of both.
fn check(array: &Array, model: &Model, told: &str, dice: &mut Dice) {
    for (attrs, order) in
        [(vec![0], Order::Row), (vec![1], Order::Row), (vec![0, 1], Order::Col), (vec![1], Order::Col)]
    {
        let (y, x) = (span(dice), span(dice));
        let names: Vec<String> = attrs.iter().map(|attr| ATTRS[*attr].to_owned()).collect();
        let read = if order == Order::Row { ReadOrder::Row } else { ReadOrder::Col };
        let (cells, ..) = array.read(Some(&sides(&y, &x)), Some(&names), read, &Call::default()).unwrap();
        for (attr, column) in attrs.iter().zip(&cells.attrs) {
            let expected = model.expected(*attr, (y.clone(), x.clone()), order);
            assert!(numbers(column) == expected, "{told}: {} of {y:?}, {x:?}", ATTRS[*attr]);
        }
    }
}

#[test]
fn the_newest_that_speaks_of_an_attribute_counts() {
    for (seed, near, cell_order) in [(1, true, "row"), (2, false, "row"), (3, true, "col"), (4, false, "col")] {
        let memory = if near { MemoryStorage::new().near() } else { MemoryStorage::new() };
        let (storage, mut dice): (Arc<dyn Storage>, _) = (Arc::new(memory), Dice::new(seed));
        let array = created(&storage, cell_order);
        let fill = numbers(&array.read(None, None, ReadOrder::Row, &Call::default()).unwrap().0.attrs[0])[0];
        let base: Vec<i64> = (0..(SIDE * SIDE) as i64).map(|n| -n).collect();
        let mut model = Model { fill, cells: [base.clone(), base.iter().map(|v| v - 10_000).collect()] };
        let columns = model.cells.clone().map(bytes_of);
        let data = ATTRS.iter().zip(&columns).map(|(name, bytes)| ((*name).to_owned(), view(bytes))).collect();
        array.commit(vec![array.stage_dense(None, &data, Order::Row, &Call::default()).unwrap()], None).unwrap();
        for n in 1..=90 {
            change(&array, &mut model, n, &mut dice);
            let told = format!("seed {seed}, after {n}");
            check(&array, &model, &told, &mut dice);
            if n % 10 == 0 {
                check(&opened(&storage), &model, &format!("{told}, opened"), &mut dice);
            }
        }
        assert_eq!(!crate::support::sorted::copies(&storage).is_empty(), near, "copies are where a look costs little");
    }
}
