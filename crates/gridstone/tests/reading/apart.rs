//! Promise: where places may have several cells, fragments are read one behind the other without being merged: every cell once, and sorted by
//! coordinates those of one place in the order in which they were written; whatever was deleted meanwhile.

use crate::support::columns::{bytes_of, numbers, view};
use gridstone::engine::{
    Array, Call, CellData, Condition, Context, Dedup, Durability, Options, ReadOrder, Strategy, create_array_on,
};
use gridstone::schema::Schema;
use gridstone::storage::{MemoryStorage, Storage};
use gridstone_testkit::Dice;
use std::sync::Arc;

const SIDE: i64 = 4_000;
/// So many cells take more than a small fragment may.
const LARGE: usize = 25_000;

/// A cell: its place, and its value, which says when it was written.
type Cell = (i64, i64);

struct World {
    array: Array,
    cells: Vec<Cell>,
    next: i64,
}

impl World {
    fn new(order: &str) -> Self {
        let (tile, threads) = (if order == "hilbert" { "null" } else { "\"100\"" }, Some(2));
        let schema = format!(
            r#"{{"sparse":true,"duplicates":true,"capacity":500,"cell_order":"{order}","dims":[{{"name":"x","dtype":"int64",
            "domain":["0","{}"],"tile":{tile}}}],"attrs":[{{"name":"v","dtype":"int64","filters":"none"}}]}}"#,
            SIDE - 1
        );
        let options = Options { threads, durability: Durability::Close, fold_versions: 10, ..Options::default() };
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new().near());
        let schema = Schema::from_json(&schema).unwrap();
        let array = create_array_on(&Context::new(&options).unwrap(), storage, "/", schema, false).unwrap();
        Self { array, cells: Vec::new(), next: 0 }
    }

    fn write(&mut self, count: usize, dice: &mut Dice) {
        let cells: Vec<Cell> = (self.next..).take(count).map(|v| (dice.below(SIDE as usize) as i64, v)).collect();
        let (x, v) = (bytes_of(cells.iter().map(|c| c.0)), bytes_of(cells.iter().map(|c| c.1)));
        let attrs = vec![("v".to_owned(), view(&v))];
        let data = CellData { dims: vec![view(&x)], attrs, sorted: false, dedup: Dedup::Error };
        self.array.commit(vec![self.array.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
        self.next += count as i64;
        self.cells.extend(cells);
    }

    fn delete(&mut self, dice: &mut Dice) {
        match dice.below(3) {
            0 => {
                let lo = dice.below(SIDE as usize) as i64;
                let hi = (lo + 50).min(SIDE - 1);
                let staged = self.array.stage_delete_box(Some(&[(lo.to_string(), hi.to_string())])).unwrap();
                self.array.commit(vec![staged], None).unwrap();
                self.cells.retain(|(x, _)| !(lo..=hi).contains(x));
            }
            1 => {
                let places: Vec<i64> = (0..20).map(|_| dice.below(SIDE as usize) as i64).collect();
                let x = bytes_of(places.iter().copied());
                self.array.commit(vec![self.array.stage_delete(&[view(&x)], &Call::default()).unwrap()], None).unwrap();
                self.cells.retain(|(x, _)| !places.contains(x));
            }
            _ => {
                let from = dice.below(self.next.max(1) as usize) as i64;
                let condition = Condition::parse(&format!("v between {from} and {}", from + 30)).unwrap();
                self.array.delete_where(None, &condition, None, &Call::default()).unwrap();
                self.cells.retain(|(_, v)| !(from..=from + 30).contains(v));
            }
        }
    }

    /// What is read of a box, and the cells of other fragments that were compared for it.
    fn read(&self, (lo, hi): (i64, i64), order: ReadOrder) -> (Vec<Cell>, u64) {
        let sub = [(lo.to_string(), hi.to_string())];
        let (cells, _, counters) = self.array.read(Some(&sub), None, order, &Call::default()).unwrap();
        (numbers(&cells.dims[0]).into_iter().zip(numbers(&cells.attrs[0])).collect(), counters.cells_merged)
    }

    fn check(&self, dice: &mut Dice, what: &str) {
        for _ in 0..4 {
            let lo = dice.below(SIDE as usize) as i64;
            let hi = (lo + *dice.pick(&[0, 3, 300, SIDE])).min(SIDE - 1);
            // By place, and there as written.
            let mut expected: Vec<Cell> = self.cells.iter().filter(|(x, _)| (lo..=hi).contains(x)).copied().collect();
            expected.sort_unstable();
            for order in [ReadOrder::Row, ReadOrder::Col, ReadOrder::Global] {
                assert!(self.read((lo, hi), order).0 == expected, "{what}, {lo} to {hi}, {order:?}");
            }
            let mut any = self.read((lo, hi), ReadOrder::Any).0;
            any.sort_unstable();
            assert!(any == expected, "{what}, {lo} to {hi}, in any order");
        }
    }
}

#[test]
fn large_and_small_fragments_and_deletes_in_any_order() {
    for seed in 0..40 {
        let mut dice = Dice::new(seed);
        let mut world = World::new(if seed % 5 == 0 { "hilbert" } else { "row" });
        for step in 0..6 + seed as usize % 20 {
            match dice.below(10) {
                0..=2 => world.write(LARGE, &mut dice),
                3..=7 => {
                    let count = 1 + dice.below(60);
                    world.write(count, &mut dice);
                }
                8 if seed % 2 == 0 => world.delete(&mut dice),
                _ if dice.chance(30) => {
                    world.array.consolidate(&Strategy::Tiered, 1 << 30, false, &Call::default()).unwrap();
                }
                _ => {}
            }
            world.check(&mut dice, &format!("seed {seed}, step {step}"));
        }
    }
}

/// Four large fragments, and then a small one, whose cells are put behind theirs: nothing is compared where nobody asks for
/// order, nor where cells are sorted afterwards.
#[test]
fn nothing_is_merged() {
    let (mut world, mut dice) = (World::new("row"), Dice::new(7));
    for _ in 0..4 {
        world.write(LARGE, &mut dice);
    }
    let nothing_is_compared = |world: &World, what: &str| {
        for order in [ReadOrder::Any, ReadOrder::Row] {
            assert_eq!(world.read((0, SIDE - 1), order).1, 0, "{what}, {order:?}");
        }
    };
    world.check(&mut dice, "large ones");
    nothing_is_compared(&world, "large ones");
    assert!(world.read((0, SIDE - 1), ReadOrder::Global).1 > 0, "the counter counts");
    world.write(5, &mut dice);
    world.check(&mut dice, "and a small one");
    nothing_is_compared(&world, "and a small one");
}
