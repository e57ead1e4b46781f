//! Promise: small dense writes scattered over an array become few fragments, without what they lie on being written again, and read as
//! before.

use crate::support::dense::{BOTH, consolidate, created, read, schema, write_box, write_cells};
use gridstone::engine::{Array, At, Call, Strategy};
use gridstone::storage::Storage;
use gridstone_testkit::Dice;
use std::sync::Arc;

const SIDE: i64 = 600;

/// A base, and scattered patches of these attributes.
fn patched(
    nullable: bool,
    budget: u64,
    count: i64,
    attrs: impl Fn(i64) -> &'static [&'static str],
) -> (Array, Arc<dyn Storage>) {
    let (array, storage) = created(schema(SIDE, 100, nullable), budget);
    write_box(&array, ((0, SIDE - 1), (0, SIDE - 1)), &BOTH, 0);
    for n in 1..=count {
        let (i, j) = (n * 379 % (SIDE - 9), n * 617 % (SIDE - 9));
        write_box(&array, ((i, i + n % 9), (j, j + n % 7)), attrs(n), n);
    }
    (array, storage)
}

/// Data files that are there.
fn files(storage: &Arc<dyn Storage>) -> usize {
    storage.list("_data").unwrap().len()
}

#[test]
fn scattered_patches_become_few_fragments_of_cells() {
    for strategy in [Strategy::Tiered, Strategy::Updates] {
        // Of the smaller budget patches become cells group by group.
        let budget = if strategy == Strategy::Tiered { 64 << 20 } else { 1 << 20 };
        let (array, storage) = patched(false, budget, 300, |_| &BOTH);
        let (packed, before) = (files(&storage), (array.version(), read(&array)));
        let planned = array.consolidate(&strategy, 1 << 30, true, &Call::default()).unwrap();
        let done = consolidate(&array, &strategy);
        assert_eq!(planned.before, 301);
        // In a small budget cells go in portions.
        assert!(done.after < 12 && planned.after < 12, "{} fragments are left of 301", done.after);
        assert!(done.merges.iter().all(|merge| merge.kind == "sparse"), "{:?}", done.merges);
        let written: u64 = done.merges.iter().filter_map(|merge| merge.written).map(|(_, bytes)| bytes).sum();
        assert!(written < 1 << 20, "{written} bytes were written: the base among them");
        let made: u64 = done.merges.iter().filter_map(|merge| merge.written).map(|(fragments, _)| fragments).sum();
        assert!(files(&storage) <= packed + made as usize, "what only the merges read is left");
        assert!(read(&array) == before.1, "{strategy:?} changed what is read");
        assert!(read(&array.at(At::Version(before.0)).unwrap()) == before.1, "an older version reads otherwise");
        // What comes later lies over them, and in the end everything becomes one.
        write_box(&array, ((5, 9), (0, 599)), &BOTH, 1_000);
        write_cells(&array, &[(5, 5), (300, 300)], 1_001);
        let later = read(&array);
        let all = consolidate(&array, &Strategy::All);
        assert_eq!(all.after, 1);
        assert!(read(&array) == later);
    }
}

#[test]
fn patches_that_make_a_box_stay_dense() {
    let (array, _) = created(schema(SIDE, 100, false), 64 << 20);
    for n in 0..60 {
        write_box(&array, ((n * 10, n * 10 + 9), (0, 99)), &BOTH, n);
    }
    let expected = read(&array);
    let done = consolidate(&array, &Strategy::Tiered);
    assert!(done.merges.iter().all(|merge| merge.kind == "dense") && done.after == 1, "{:?}", done.merges);
    assert!(read(&array) == expected);
}

/// Patches of some attributes, of single cells, deletes in between: in any order, by every strategy, again and again.
#[test]
fn what_is_read_stays_whatever_lies_between_patches() {
    for (seed, nullable) in [(1, false), (2, true), (3, false), (4, true)] {
        let (mut dice, mut merged) = (Dice::new(seed), 0);
        let (array, _) = patched(nullable, 64 << 20, 40, |n| if n % 4 == 0 { &["w"] } else { &BOTH });
        for round in 0..12 {
            for n in 0..30i64 {
                let (i, j) = (dice.below(590) as i64, dice.below(590) as i64);
                match dice.below(8) {
                    0 => write_cells(&array, &[(i, j), (j, i.max(j) + 5)], n),
                    1 => crate::support::dense::delete(&array, &[(i, j), (i + 3, j)]),
                    2 => {
                        let sides = [(i.to_string(), (i + 4).to_string()), (j.to_string(), (j + 4).to_string())];
                        array.commit(vec![array.stage_delete_box(Some(&sides)).unwrap()], None).unwrap();
                    }
                    3 => write_box(&array, ((i, i + 2), (j, j + 8)), &["v"], n),
                    _ => write_box(&array, ((i, i + 8), (j, j + 3)), &BOTH, n + round * 100),
                }
            }
            let (version, expected) = (array.version(), read(&array));
            let strategy = [Strategy::Tiered, Strategy::Updates][dice.below(2)].clone();
            merged += consolidate(&array, &strategy).merges.iter().filter(|merge| merge.kind == "sparse").count();
            assert!(read(&array) == expected, "round {round}, {strategy:?} of version {version}, seed {seed}");
        }
        assert!(merged > 0);
    }
}

/// What a patch lies on decides: without a larger dense fragment beneath, patches are what will be a box.
#[test]
fn tiles_in_any_order_become_one_box_whatever_is_merged_meanwhile() {
    let (array, _) = created(schema(320, 32, false), 64 << 20);
    let (mut dice, mut tiles) = (Dice::new(5), (0..100i64).collect::<Vec<_>>());
    dice.shuffle(&mut tiles);
    for (done, tile) in tiles.iter().enumerate() {
        let (y, x) = (tile / 10 * 32, tile % 10 * 32);
        write_box(&array, ((y, y + 31), (x, x + 31)), &BOTH, *tile);
        if done % 17 == 16 {
            consolidate(&array, &[Strategy::Tiered, Strategy::Updates][done % 2]);
        }
    }
    let expected = read(&array);
    let done = consolidate(&array, &Strategy::All);
    assert_eq!(done.after, 1, "{:?}", done.merges);
    assert!(read(&array) == expected && array.fragments().unwrap().iter().all(|f| f.kind == "dense"));
}

/// Patches of two dense islands make cells of one of them at a time, so that each island stays whole with what lies in it.
#[test]
fn patches_of_islands_stay_apart() {
    let (array, _) = created(schema(SIDE, 100, false), 64 << 20);
    for island in [0, 300] {
        write_box(&array, ((island, island + 199), (0, 199)), &BOTH, island);
    }
    for n in 0..200 {
        let (i, j) = (n * 79 % 190 + 300 * (n / 7 % 2), n * 61 % 190);
        write_box(&array, ((i, i + 3), (j, j + 2)), &BOTH, n);
    }
    let expected = read(&array);
    for strategy in [Strategy::Tiered, Strategy::Updates, Strategy::Tiered] {
        consolidate(&array, &strategy);
        assert!(read(&array) == expected, "{strategy:?}");
        for f in array.fragments().unwrap() {
            let rows = [&f.domain[0].0, &f.domain[0].1].map(|end| end.parse::<i64>().unwrap() < 200);
            assert_eq!(rows[0], rows[1], "{f:?} lies in both");
        }
    }
    let done = consolidate(&array, &Strategy::All);
    assert_eq!(done.after, 2, "{:?}", done.merges);
    assert!(read(&array) == expected);
}

/// A small array is no patch of itself.
#[test]
fn a_small_array_stays_dense() {
    let (array, _) = created(schema(30, 30, false), 64 << 20);
    write_box(&array, ((0, 29), (0, 29)), &BOTH, 1);
    write_cells(&array, &[(3, 4)], 2);
    for strategy in [Strategy::Updates, Strategy::Tiered] {
        consolidate(&array, &strategy);
        assert_eq!(array.fragments().unwrap().len(), 2);
    }
    assert_eq!(consolidate(&array, &Strategy::All).after, 1);
}
