//! Attached cells against a model: boxes, chosen cells, updates over them, and bringing them home.

use super::world::{Row, World, cells_of, columns_of, number_of, row, rows_of};
use gridstone::engine::{AxisPositions, Call, Chosen, Strategy};
use gridstone::schema::{KeyRange, Order, Subarray};

fn seed() -> u64 {
    std::env::var("GRIDSTONE_TEST_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(2016)
}

impl World {
    /// A box of the domain.
    fn draw_box(&mut self) -> Subarray {
        let bounds = self.bounds();
        let range = |range: &KeyRange| {
            let size = range.hi - range.lo + 1;
            let (a, b) = (self.random.below(size), self.random.below(size));
            KeyRange::new(range.lo + a.min(b), range.lo + a.max(b))
        };
        Subarray::new(bounds.ranges().iter().map(range).collect())
    }

    fn texts(&self, sub: &Subarray) -> Vec<(String, String)> {
        let schema = self.array.schema().unwrap();
        sub.ranges().iter().zip(schema.dims()).map(|(range, dim)| (dim.text(range.lo), dim.text(range.hi))).collect()
    }

    fn expected(&self, sub: &Subarray) -> Vec<Row> {
        let bounds = self.bounds();
        cells_of(sub).iter().map(|cell| self.cells[number_of(&bounds, cell)].clone()).collect()
    }

    fn check(&mut self, what: &str) {
        let whole = self.bounds();
        assert!(rows_of(&self.read(None, None)) == self.expected(&whole), "{what}");
        for _ in 0..3 {
            let sub = self.draw_box();
            let texts = self.texts(&sub);
            assert!(rows_of(&self.read(Some(&texts), None)) == self.expected(&sub), "{what}, {sub:?}");
        }
        let (bounds, points) = (self.bounds(), 1 + self.random.below(40));
        let along: Vec<Vec<u64>> =
            self.sizes.clone().iter().map(|size| (0..points).map(|_| self.random.below(*size)).collect()).collect();
        let chosen = along.iter().cloned().map(Chosen::Paired).collect();
        let (cells, _) = self.array.read_positions(chosen, None, None, &Call::default()).unwrap();
        let cell = |point: usize| -> Vec<u64> {
            along.iter().zip(bounds.ranges()).map(|(positions, range)| range.lo + positions[point]).collect()
        };
        let expected: Vec<Row> =
            (0..points as usize).map(|point| self.cells[number_of(&bounds, &cell(point))].clone()).collect();
        assert!(rows_of(&cells.attrs) == expected, "{what}, points");
        let every = self.sizes.iter().map(|size| AxisPositions::Strided { start: 0, count: size.div_ceil(3), step: 3 });
        let (cells, _) =
            self.array.read_positions(every.map(Chosen::Combined).collect(), None, None, &Call::default()).unwrap();
        let is_third = |cell: &Vec<u64>| cell.iter().zip(bounds.ranges()).all(|(key, range)| (key - range.lo) % 3 == 0);
        let thirds = cells_of(&bounds).into_iter().filter(is_third);
        let expected: Vec<Row> = thirds.map(|cell| self.cells[number_of(&bounds, &cell)].clone()).collect();
        assert!(rows_of(&cells.attrs) == expected, "{what}, every third");
    }

    /// Writes over a part of the cells, or deletes it.
    fn update(&mut self) {
        let sub = self.draw_box();
        let (texts, bounds) = (self.texts(&sub), self.bounds());
        let deletes = self.random.below(3) == 0;
        let blank: Row = (0, None, String::new());
        let rows: Vec<Row> =
            (0..sub.cells()).map(|_| if deletes { blank.clone() } else { row(&mut self.random) }).collect();
        let staged = if deletes {
            self.array.stage_delete_box(Some(&texts)).unwrap()
        } else {
            let columns = columns_of(&rows);
            let data = ["v", "n", "s"].iter().zip(&columns).map(|(name, c)| ((*name).to_owned(), c.view())).collect();
            self.array.stage_dense(Some(&texts), &data, Order::Row, &Call::default()).unwrap()
        };
        self.array.commit(vec![staged], None).unwrap();
        for (cell, row) in cells_of(&sub).iter().zip(rows) {
            let number = number_of(&bounds, cell);
            self.cells[number] = row;
            self.updated[number] = true;
        }
    }

    fn sources(&self) -> usize {
        self.array.sources(&Call::default()).unwrap().len()
    }

    fn consolidate(&self, strategy: &Strategy) {
        self.array.consolidate(strategy, 1 << 20, false, &Call::default()).unwrap();
    }
}

#[test]
fn cells_of_attached_files_are_those_written_there_and_updates_lie_over_them() {
    for round in 0..70 {
        let mut world = World::new(seed() + round * 7_919);
        let what = format!("seed {}, round {round}", seed());
        let file = std::fs::read(world.file()).unwrap();
        world.check(&what);
        // Every fifth file has nothing written over it when it is brought home.
        for step in 0..if round % 5 == 4 { 0 } else { 4 } {
            world.update();
            world.check(&format!("{what}, update {step}"));
        }
        for strategy in [Strategy::Tiered, Strategy::Updates] {
            world.consolidate(&strategy);
            let hidden = world.updated.iter().all(|updated| *updated);
            assert!(hidden || world.sources() == 1, "{what}: {strategy:?} brings nothing home");
            world.check(&format!("{what}, {strategy:?}"));
        }
        assert!(world.array.verify(&Call::default()).unwrap().damage.is_empty(), "{what}");
        let sub = world.draw_box();
        world.consolidate(&if round % 2 == 0 { Strategy::All } else { Strategy::Box(sub) });
        world.check(&format!("{what}, home"));
        assert_eq!(std::fs::read(world.file()).unwrap(), file, "{what}: the file is not written");
        assert_eq!(world.sources(), 0, "{what}");
        std::fs::remove_file(world.file()).unwrap();
        world.check(&format!("{what}, without the file"));
        assert!(world.array.verify(&Call::default()).unwrap().damage.is_empty(), "{what}");
    }
}
