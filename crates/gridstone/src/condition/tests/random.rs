//! Evaluation, pruning and bounds of random conditions on random columns.

use super::super::{Batch, Condition, Coordinates, Facts, Verdict};
use super::oracle::{Cells, holds_in};
use super::world::{COLUMNS, DIMS, column, condition, schema, world};
use crate::schema::{KeyRange, Region, Subarray, key};
use crate::tile::coordinates::axis_keys;
use crate::tile::{Column, Statistics};
use proptest::prelude::*;

fn expected(condition: &Condition, world: &[Cells]) -> Vec<usize> {
    let rows = world[0].cells.len();
    (0..rows).filter(|row| holds_in(condition, world, *row) == Some(true)).collect()
}

/// The keys of the coordinates, a column per axis.
fn keys_of(columns: &[Column]) -> Vec<Vec<u64>> {
    axis_keys(&schema(), &columns[..DIMS]).unwrap()
}

/// Boxes between pairs of rows, as a region.
fn region_of(keys: &[Vec<u64>], corners: &[(usize, usize)]) -> Region {
    let rows = keys[0].len();
    let range =
        |k: &Vec<u64>, a: usize, b: usize| KeyRange::new(k[a % rows].min(k[b % rows]), k[a % rows].max(k[b % rows]));
    Region::new(corners.iter().map(|(a, b)| Subarray::new(keys.iter().map(|k| range(k, *a, *b)).collect())).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn rows_are_those_of_the_oracle(world in world(0..150), condition in condition()) {
        let columns: Vec<Column> = world.iter().map(column).collect();
        let keys = keys_of(&columns);
        let rows = world[0].cells.len();
        let bound = condition.bind(&schema()).unwrap();
        let needed = bound.columns();
        for as_keys in [false, true] {
            let mut batch = Batch::new(rows);
            for (dim, column) in schema().coordinates().zip(&columns) {
                for d in dim.axes().filter(|d| needed.dims.contains(d)) {
                    let first = d == dim.axes().start;
                    batch = match as_keys {
                        true => batch.with_dim(d, Coordinates::Keys(&keys[d])),
                        false if first => batch.with_dim(d, Coordinates::Column(column.view())),
                        false => batch,
                    };
                }
            }
            for a in &needed.attrs {
                batch = batch.with_attr(*a, columns[DIMS + a].view());
            }
            let found = bound.evaluate(&batch).unwrap();
            prop_assert_eq!(found.rows().collect::<Vec<_>>(), expected(&condition, &world), "{}", condition);
            prop_assert_eq!(found.len(), rows);
        }
    }

    #[test]
    fn pruning_is_never_wrong(world in world(1..5), condition in condition(), known in any::<u32>()) {
        let columns: Vec<Column> = world.iter().map(column).collect();
        let statistics: Vec<Statistics> = columns.iter().map(|c| Statistics::of(c.view())).collect();
        let keys = keys_of(&columns);
        let ranges = keys.iter().map(|k| KeyRange::new(*k.iter().min().unwrap(), *k.iter().max().unwrap()));
        let sub = Subarray::new(ranges.collect());
        let rows = world[0].cells.len();
        let mut facts = Facts::new(rows as u64);
        if known % 8 != 0 { facts = facts.within(&sub); }
        for a in (0..COLUMNS.len() - DIMS).filter(|a| known >> (a + 3) & 3 != 0) {
            facts = facts.with_attr(a, &statistics[DIMS + a]);
        }
        let count = expected(&condition, &world).len();
        match condition.bind(&schema()).unwrap().prune(&facts) {
            Verdict::None => prop_assert_eq!(count, 0, "{}", condition),
            Verdict::All => prop_assert_eq!(count, rows, "{}", condition),
            Verdict::Some => {}
        }
    }

    #[test]
    fn regions_select_what_lies_in_a_box(
        world in world(1..30), condition in condition(), corners in proptest::collection::vec(any::<(usize, usize)>(), 0..5)
    ) {
        let columns: Vec<Column> = world.iter().map(column).collect();
        let keys = keys_of(&columns);
        let (schema, region) = (schema(), region_of(&keys, &corners));
        let bound = condition.bind(&schema).unwrap().within(region.clone());
        let inside = |row: usize| region.boxes().iter().any(|b| b.contains(keys.iter().map(|k| k[row])));
        let wanted: Vec<usize> = expected(&condition, &world).into_iter().filter(|row| inside(*row)).collect();
        for as_keys in [false, true] {
            let mut batch = Batch::new(world[0].cells.len());
            for (dim, column) in schema.coordinates().zip(&columns) {
                for d in dim.axes() {
                    batch = match as_keys {
                        true => batch.with_dim(d, Coordinates::Keys(&keys[d])),
                        false if d == dim.axes().start => batch.with_dim(d, Coordinates::Column(column.view())),
                        false => batch,
                    };
                }
            }
            for (a, column) in columns[DIMS..].iter().enumerate() {
                batch = batch.with_attr(a, column.view());
            }
            prop_assert_eq!(bound.evaluate(&batch).unwrap().rows().collect::<Vec<_>>(), wanted.clone(), "{}", condition);
        }
        let ranges = keys.iter().map(|k| KeyRange::new(*k.iter().min().unwrap(), *k.iter().max().unwrap()));
        let (around, rows) = (Subarray::new(ranges.collect()), world[0].cells.len());
        match bound.prune(&Facts::new(rows as u64).within(&around)) {
            Verdict::None => prop_assert_eq!(wanted.len(), 0, "{}", condition),
            Verdict::All => prop_assert_eq!(wanted.len(), rows, "{}", condition),
            Verdict::Some => {}
        }
        for sub in [schema.domain(), around] {
            let reach = bound.reach(&sub);
            for row in &wanted {
                prop_assert!(reach.as_ref().is_some_and(|b| b.contains(keys.iter().map(|k| k[*row]))), "{}", condition);
            }
        }
    }

    #[test]
    fn bounds_hold_what_is_selected(world in world(1..40), condition in condition()) {
        let columns: Vec<Column> = world.iter().map(column).collect();
        let keys = keys_of(&columns);
        let schema = schema();
        let bounds = condition.bind(&schema).unwrap().bounds(&schema);
        if let Some(sub) = &bounds { schema.check_inside(sub).unwrap(); }
        for row in expected(&condition, &world) {
            let inside = bounds.as_ref().is_some_and(|b| b.contains(keys.iter().map(|k| k[row])));
            prop_assert!(inside, "{} in {:?}", condition, bounds);
        }
    }

    #[test]
    fn trees_come_back_from_text_and_json(condition in condition()) {
        prop_assert_eq!(&Condition::parse(&condition.to_string()).unwrap(), &condition, "{}", condition);
        prop_assert_eq!(&Condition::from_json(&condition.to_json()).unwrap(), &condition);
    }

    #[test]
    fn no_text_panics(condition in condition(), cuts in any::<[usize; 4]>(), noise in "\\PC{0,6}", bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        super::super::fuzz(&bytes).unwrap();
        let mut text = if cuts[0] % 2 == 0 { condition.to_string() } else { condition.to_json() }.into_bytes();
        let (a, b) = (cuts[1] % (text.len() + 1), cuts[2] % (text.len() + 1));
        match cuts[3] % 3 {
            0 => text.truncate(a),
            1 => { text.drain(a.min(b)..a.max(b)); }
            _ => { text.splice(a..a, noise.bytes()); }
        }
        super::super::fuzz(&text).unwrap();
    }
}

/// The pruning test is not vacuous: verdicts other than `Some` are common, and each occurs.
#[test]
fn pruning_decides_often() {
    let schema = schema();
    let counts = |text: &str, rows: u64, sub: &Subarray| {
        Condition::parse(text).unwrap().bind(&schema).unwrap().prune(&Facts::new(rows).within(sub))
    };
    let mut ranges = schema.domain().ranges().to_vec();
    ranges[0] = KeyRange::new(key::from_signed(10), key::from_signed(20));
    ranges[1] = KeyRange::new(key::from_float(0.5), key::from_float(2.5));
    let sub = Subarray::new(ranges);
    assert_eq!(counts("x > 20", 3, &sub), Verdict::None);
    assert_eq!(counts("x > 9.5 and y < 2.75", 3, &sub), Verdict::All);
    assert_eq!(counts("x > 10", 3, &sub), Verdict::Some);
    assert_eq!(counts("x > 20 or y between 0 and 3", 3, &sub), Verdict::All);
    assert_eq!(counts("not (x in (3, 21) or y > 2.5)", 3, &sub), Verdict::All);
    assert_eq!(counts("x > y", 3, &sub), Verdict::All);
    assert_eq!(counts("x <= y", 3, &sub), Verdict::None);
    assert_eq!(counts("x is null", 3, &sub), Verdict::None);
    assert_eq!(counts("s is null and x > 30", 3, &sub), Verdict::None);
    assert_eq!(counts("s is null", 3, &sub), Verdict::Some);
    assert_eq!(counts("true", 0, &sub), Verdict::None);
}
