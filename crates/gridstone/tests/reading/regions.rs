//! Promise: several boxes read together give what they give one by one, each cell once and in the order asked for; and of what is stored
//! only the blocks that one of them touches are read.

use crate::support::columns::{bytes_of, numbers, view};
use gridstone::engine::{
    Array, BlockCells, Call, CellData, Cells, Condition, Context, Dedup, Options, ReadOrder, Span, Strategy,
    create_array_on,
};
use gridstone::schema::Schema;
use gridstone::storage::{MemoryStorage, Storage};
use gridstone_testkit::{Dice, on_random};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The corners of a box: low and high along each axis.
type Corners = [(i64, i64); 2];
/// A place, and a value.
type Cell = ([i64; 2], i64);

const LOW: i64 = -20;
const HIGH: i64 = 39;
const ORDERS: [ReadOrder; 4] = [ReadOrder::Row, ReadOrder::Col, ReadOrder::Global, ReadOrder::Any];

fn span((lo, hi): (i64, i64)) -> Span {
    Span::between(&lo.to_string(), &hi.to_string())
}

fn boxes_of(boxes: &[Corners]) -> Vec<Vec<Span>> {
    boxes.iter().map(|corners| corners.iter().copied().map(span).collect()).collect()
}

fn holds(boxes: &[Corners], at: [i64; 2]) -> bool {
    boxes.iter().any(|corners| corners.iter().zip(at).all(|((lo, hi), at)| (*lo..=*hi).contains(&at)))
}

fn cells_of(cells: &Cells) -> Vec<Cell> {
    let (x, y) = (numbers(&cells.dims[0]), numbers(&cells.dims[1]));
    x.into_iter().zip(y).zip(numbers(&cells.attrs[0])).map(|((x, y), v)| ([x, y], v)).collect()
}

/// An array of some layout, with a history of writes, deletes and merges.
struct World {
    array: Array,
    dice: Dice,
    next: i64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let order = ["row", "col", "hilbert"][dice.below(3)];
        let tile = |dice: &mut Dice| match dice.below(3) {
            _ if order == "hilbert" => "null".to_owned(),
            0 => format!("\"{}\"", HIGH - LOW + 1),
            _ => format!("\"{}\"", 3 + dice.below(20)),
        };
        let dims = ["x", "y"].map(|name| {
            let tile = tile(&mut dice);
            format!(r#"{{"name":"{name}","dtype":"int64","domain":["{LOW}","{HIGH}"],"tile":{tile}}}"#)
        });
        let (capacity, duplicates) = (5 + dice.below(200), dice.below(3) == 0);
        let schema = format!(
            r#"{{"sparse":true,"duplicates":{duplicates},"capacity":{capacity},"cell_order":"{order}","dims":[{}],
            "attrs":[{{"name":"v","dtype":"int64","nullable":{}}}]}}"#,
            dims.join(","),
            dice.below(2) == 0
        );
        // Without a cache no small fragment is held: each is read block by block.
        let cache = if dice.below(2) == 0 { 0 } else { 16 << 20 };
        let blocks = BlockCells { sparse: 1 + dice.below(9) as u32, ..BlockCells::default() };
        let options = Options { threads: Some(1 + dice.below(2)), cache, blocks, ..Options::default() };
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let schema = Schema::from_json(&schema).unwrap();
        let array = create_array_on(&Context::new(&options).unwrap(), storage, "/", schema, false).unwrap();
        Self { array, dice, next: 0 }
    }

    fn range(&mut self) -> (i64, i64) {
        let lo = LOW + self.dice.below((HIGH - LOW + 1) as usize) as i64;
        let len = [0, 0, 2, 9, 40][self.dice.below(5)];
        (lo, (lo + len).min(HIGH))
    }

    fn places(&mut self, count: usize) -> [Vec<i64>; 2] {
        let [x, y] = [self.range(), self.range()];
        let dice = &mut self.dice;
        [x, y].map(|(lo, hi)| {
            let (lo, hi) = if dice.below(2) == 0 { (lo, hi) } else { (LOW, HIGH) };
            (0..count).map(|_| lo + dice.below((hi - lo + 1) as usize) as i64).collect()
        })
    }

    fn write(&mut self) {
        let count = [1, 20, 300][self.dice.below(3)];
        let [x, y] = self.places(count).map(bytes_of);
        let v = bytes_of(self.next..self.next + count as i64);
        self.next += count as i64;
        let attrs = vec![("v".to_owned(), view(&v))];
        let data = CellData { dims: vec![view(&x), view(&y)], attrs, sorted: false, dedup: Dedup::Last };
        let staged = self.array.stage_cells(data, &Call::default()).unwrap();
        self.array.commit(vec![staged], None).unwrap();
    }

    fn live(&mut self) {
        for _ in 0..2 + self.dice.below(8) {
            match self.dice.below(10) {
                0 => {
                    let sub = [self.range(), self.range()].map(|(lo, hi)| (lo.to_string(), hi.to_string()));
                    let staged = self.array.stage_delete_box(Some(&sub)).unwrap();
                    self.array.commit(vec![staged], None).unwrap();
                }
                1 => {
                    let [x, y] = self.places(30).map(bytes_of);
                    let staged = self.array.stage_delete(&[view(&x), view(&y)], &Call::default()).unwrap();
                    self.array.commit(vec![staged], None).unwrap();
                }
                2 => {
                    let condition = Condition::parse(&format!("v < {}", self.dice.below(300))).unwrap();
                    self.array.delete_where(None, &condition, None, &Call::default()).unwrap();
                }
                3 => {
                    self.array.consolidate(&Strategy::Tiered, 1 << 20, false, &Call::default()).unwrap();
                }
                _ => self.write(),
            }
        }
    }

    /// Boxes that may overlap, or all combinations of some rows and columns.
    fn boxes(&mut self) -> Vec<Corners> {
        if self.dice.below(2) == 0 {
            let count = [1, 2, 3, 9, 70][self.dice.below(5)];
            return (0..count).map(|_| [self.range(), self.range()]).collect();
        }
        let rows: Vec<_> = (0..1 + self.dice.below(9)).map(|_| self.range()).collect();
        let cols = match self.dice.below(2) {
            0 => vec![(LOW, HIGH)],
            _ => (0..1 + self.dice.below(9)).map(|_| self.range()).collect(),
        };
        rows.iter().flat_map(|row| cols.iter().map(|col| [*row, *col])).collect()
    }

    fn read(&self, boxes: &[Corners], condition: Option<&Condition>, order: ReadOrder) -> Vec<Cell> {
        let region = self.array.region(&boxes_of(boxes)).unwrap();
        let attrs = ["v".to_owned()];
        let call = Call::default();
        let (cells, counters) = self.array.read_region(Some(&region), Some(&attrs), condition, order, &call).unwrap();
        assert_eq!(counters.cells_returned, cells.count as u64);
        let mut scan = self.array.scan_region(Some(&region), Some(&attrs), condition, order, 700, &call).unwrap();
        let mut streamed = Vec::new();
        while let Some(batch) = scan.next_batch().unwrap() {
            streamed.extend(cells_of(&batch));
        }
        let read = cells_of(&cells);
        assert_eq!(told(&streamed, order), told(&read, order), "a stream, {order:?}");
        read
    }
}

/// Cells as they may be compared: those in any order sorted.
fn told(cells: &[Cell], order: ReadOrder) -> Vec<Cell> {
    let mut cells = cells.to_vec();
    if order == ReadOrder::Any {
        cells.sort_unstable();
    }
    cells
}

/// The cells of each place, whatever gave them.
fn by_place(cells: &[Cell]) -> BTreeMap<[i64; 2], Vec<i64>> {
    let mut found: BTreeMap<[i64; 2], Vec<i64>> = BTreeMap::new();
    cells.iter().for_each(|(at, v)| found.entry(*at).or_default().push(*v));
    found.values_mut().for_each(|values| values.sort_unstable());
    found
}

#[test]
fn several_boxes_give_what_they_give_one_by_one_and_what_lies_in_them_of_the_box_around() {
    on_random(300, any::<u64>(), |seed| {
        let mut world = World::new(*seed);
        world.live();
        for _ in 0..3 {
            let boxes = world.boxes();
            let condition = match world.dice.below(3) {
                0 => Some(format!("v >= {}", world.dice.below(300))),
                1 => Some(format!("v < {} and x > {}", world.dice.below(900), world.range().0)),
                _ => None,
            };
            let condition = condition.map(|text| Condition::parse(&text).unwrap());
            let chosen = ORDERS[world.dice.below(4)];
            for order in ORDERS {
                let found = world.read(&boxes, condition.as_ref(), order);
                let mut around = world.read(&[[(LOW, HIGH); 2]], condition.as_ref(), order);
                around.retain(|(at, _)| holds(&boxes, *at));
                assert_eq!(told(&found, order), told(&around, order), "{order:?}, {boxes:?}");
                if order != chosen {
                    continue;
                }
                let one_by_one =
                    boxes.iter().flat_map(|corners| by_place(&world.read(&[*corners], condition.as_ref(), order)));
                assert_eq!(by_place(&found), one_by_one.collect(), "{order:?}, {boxes:?}");
            }
        }
    });
}

/// A matrix of 3,000 rows, ten cells in each, in row order.
fn matrix(order: &str) -> Array {
    let schema = format!(
        r#"{{"sparse":true,"capacity":1000,"cell_order":"{order}","dims":[
        {{"name":"x","dtype":"int64","domain":["0","2999"],"tile":{}}},{{"name":"y","dtype":"int64","domain":["0","999"],"tile":{}}}],
        "attrs":[{{"name":"v","dtype":"int64"}}]}}"#,
        if order == "hilbert" { "null" } else { "\"3000\"" },
        if order == "hilbert" { "null" } else { "\"1000\"" }
    );
    let blocks = BlockCells { sparse: 50, ..BlockCells::default() };
    let context = Context::new(&Options { blocks, ..Options::default() }).unwrap();
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let array = create_array_on(&context, storage, "/", Schema::from_json(&schema).unwrap(), false).unwrap();
    let (x, y) = (bytes_of((0..30_000).map(|n| n / 10)), bytes_of((0..30_000).map(|n| n % 10 * 97 + n / 10 % 30)));
    let v = bytes_of(0..30_000);
    let attrs = vec![("v".to_owned(), view(&v))];
    let data = CellData { dims: vec![view(&x), view(&y)], attrs, sorted: false, dedup: Dedup::Error };
    array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
    array
}

#[test]
fn of_a_matrix_only_the_blocks_that_hold_chosen_rows_are_read() {
    let rows: Vec<i64> = (0..20).map(|n| (n * 1_499) % 3_000).collect();
    let boxes: Vec<Corners> = rows.iter().map(|row| [(*row, *row), (0, 999)]).collect();
    for order in ["row", "hilbert"] {
        let array = matrix(order);
        let region = array.region(&boxes_of(&boxes)).unwrap();
        let call = Call::default();
        let (cells, seen) = array.read_region(Some(&region), None, None, ReadOrder::Row, &call).unwrap();
        let mut expected = rows.clone();
        expected.sort_unstable();
        assert_eq!(
            cells_of(&cells).chunk_by(|a, b| a.0[0] == b.0[0]).map(|row| row[0].0[0]).collect::<Vec<_>>(),
            expected
        );
        assert_eq!(cells.count, 200);
        let one_by_one: Vec<_> = boxes
            .iter()
            .map(|corners| {
                let region = array.region(&boxes_of(&[*corners])).unwrap();
                array.read_region(Some(&region), None, None, ReadOrder::Row, &call).unwrap().1
            })
            .collect();
        assert!(seen.tiles_read <= one_by_one.iter().map(|seen| seen.tiles_read).sum(), "{order}: {seen:?}");
        assert!(seen.cells_scanned <= one_by_one.iter().map(|seen| seen.cells_scanned).sum(), "{order}: {seen:?}");
        if order == "row" {
            assert!(seen.tiles_read <= 20 && seen.cells_scanned <= 20 * 50 && seen.cells_merged == 0, "{seen:?}");
        }
        // With a condition too.
        let condition = Condition::parse("v >= 15000").unwrap();
        let (cells, seen) = array.read_region(Some(&region), None, Some(&condition), ReadOrder::Row, &call).unwrap();
        assert_eq!(cells.count, expected.iter().filter(|row| **row >= 1_500).count() * 10);
        assert!(order != "row" || seen.cells_scanned <= 20 * 50, "{seen:?}");
    }
}

#[test]
fn as_many_boxes_as_may_be_given_are_read() {
    let array = matrix("row");
    let mut dice = Dice::new(7);
    let places: Vec<[i64; 2]> = (0..1 << 16).map(|_| [dice.below(3_000) as i64, dice.below(1_000) as i64]).collect();
    let boxes: Vec<Corners> = places.iter().map(|[x, y]| [(*x, *x), (*y, (*y + 3).min(999))]).collect();
    let region = array.region(&boxes_of(&boxes)).unwrap();
    let (cells, _) = array.read_region(Some(&region), None, None, ReadOrder::Row, &Call::default()).unwrap();
    let (all, _) = array.read_region(None, None, None, ReadOrder::Row, &Call::default()).unwrap();
    let mut covered = vec![false; 3_000 * 1_000];
    boxes.iter().for_each(|[(x, _), (lo, hi)]| (*lo..=*hi).for_each(|y| covered[(x * 1_000 + y) as usize] = true));
    let mut expected = cells_of(&all);
    expected.retain(|([x, y], _)| covered[(x * 1_000 + y) as usize]);
    assert_eq!(cells_of(&cells), expected);
}
