//! Promise: a cell that was deleted from a dense array whose attributes cannot be null stays deleted through every merge, as if it had never been
//! written; what it held goes from the disk; and tombstones, however many were written, become few.

use crate::support::dense::{
    BOTH, consolidate, created, created_uncached, delete, noise, read, schema, write_box, write_cells,
};
use crate::support::sparse::line;
use crate::support::store::{nothing_is_left, vacuum};
use gridstone::engine::{Array, At, Call, Condition, Keep, MergeChoice, Strategy};
use gridstone::schema::{Evolution, Schema};
use gridstone::storage::Storage;
use gridstone_testkit::Dice;
use std::sync::Arc;

const SIDE: i64 = 40;

fn kinds(array: &Array) -> Vec<&'static str> {
    array.fragments().unwrap().iter().map(|f| f.kind).collect()
}

/// Whether the bytes of a value lie in some object of the store.
fn holds(storage: &Arc<dyn Storage>, value: i64) -> bool {
    ["_data", "_log"].into_iter().flat_map(|folder| storage.list(folder).unwrap()).any(|name| {
        let bytes = storage.read_all(&name).unwrap();
        bytes.windows(8).any(|window| window == value.to_le_bytes())
    })
}

/// The value of a cell that [`write_box`] has written.
fn written(number: i64, (x, y): (i64, i64)) -> i64 {
    noise(number * 1_000_003 + x * 1_009 + y * 7)
}

fn raw(fill: i64) -> Schema {
    Schema::from_json(&format!(
        r#"{{"dims":[{{"name":"x","dtype":"int64","domain":["0","{0}"],"tile":"10"}},
        {{"name":"y","dtype":"int64","domain":["0","{0}"],"tile":"10"}}],
        "attrs":[{{"name":"v","dtype":"int64","filters":"none","fill":"{fill}"}},
        {{"name":"w","dtype":"int64","filters":"none","fill":"{fill}"}}]}}"#,
        SIDE - 1
    ))
    .unwrap()
}

#[test]
fn what_was_deleted_goes_from_the_disk() {
    let doomed = [(3, 4), (17, 39), (39, 0), (20, 20)];
    for (updated, merges) in [(false, 1), (true, 1)] {
        let (array, storage) = created_uncached(raw(-5));
        write_box(&array, ((0, SIDE - 1), (0, SIDE - 1)), &BOTH, 1);
        delete(&array, &doomed);
        if updated {
            write_box(&array, ((0, 9), (20, 39)), &BOTH, 2);
            write_cells(&array, &[(17, 39), (30, 30)], 3);
        }
        let before = read(&array);
        assert!(doomed.iter().all(|cell| holds(&storage, written(1, *cell))), "the test looks in the wrong place");
        assert_eq!(consolidate(&array, &Strategy::All).merges.len(), merges);
        assert_eq!((read(&array), kinds(&array)), (before, vec!["dense", "tombstones"]));
        assert_eq!(array.fragments().unwrap()[1].cells, if updated { 3 } else { 4 });
        vacuum(&array, Keep::Versions(1)).unwrap();
        for cell in doomed {
            assert!(!holds(&storage, written(1, cell)), "the value at {cell:?} is still there");
        }
        let version = array.version();
        consolidate(&array, &Strategy::All);
        assert_eq!(array.version(), version, "there was nothing more to do");
        assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
        nothing_is_left(&storage, "a merge that did nothing");
        // What is deleted now goes too, and what was left over before becomes one with it.
        delete(&array, &[(1, 1)]);
        let before = read(&array);
        consolidate(&array, &Strategy::All);
        assert_eq!((read(&array), kinds(&array)), (before, vec!["dense", "tombstones"]));
        vacuum(&array, Keep::Versions(1)).unwrap();
        assert!(!holds(&storage, written(if updated { 2 } else { 1 }, (1, 1))) && !holds(&storage, written(1, (1, 1))));
    }
}

/// Like a cell that was never written, so with the fill that the array has by then.
#[test]
fn a_deleted_cell_has_the_fill_of_its_version() {
    let (array, _) = created(raw(-5), 1 << 30);
    write_box(&array, ((0, 19), (0, 39)), &BOTH, 1);
    delete(&array, &[(7, 7)]);
    write_box(&array, ((5, 10), (8, 12)), &BOTH, 2);
    consolidate(&array, &Strategy::All);
    assert_eq!(kinds(&array), ["dense", "tombstones"]);
    let at = |array: &Array, (x, y): (i64, i64)| {
        let bytes = read(array)[0].0.clone();
        let from = (x * SIDE + y) as usize * 8;
        i64::from_le_bytes(bytes[from..from + 8].try_into().unwrap())
    };
    let old = array.version();
    let step = Evolution { fill: vec![("v".to_owned(), Some("77".to_owned()))], ..Evolution::default() };
    array.alter(&step, None).unwrap();
    let found = [(7, 7), (30, 30), (7, 8)].map(|cell| at(&array, cell));
    assert_eq!(found, [77, 77, written(2, (7, 8))]);
    assert_eq!(at(&array.at(At::Version(old)).unwrap(), (7, 7)), -5);
    // Merged again under the new fill, and written again.
    write_box(&array, ((0, 3), (0, 3)), &BOTH, 3);
    consolidate(&array, &Strategy::All);
    assert_eq!((at(&array, (7, 7)), kinds(&array)), (77, vec!["dense", "tombstones"]));
    write_cells(&array, &[(7, 7)], 9);
    consolidate(&array, &Strategy::All);
    assert_eq!((at(&array, (7, 7)), kinds(&array)), (-9, vec!["dense"]));
}

/// One deletion lies over two boxes. In one of them the cell held what is the fill: its merge changes no value, and the deletion must
/// not be forgotten with that of the other.
#[test]
fn a_deleted_cell_that_held_the_fill_stays_deleted() {
    let doomed = [(5, 5), (35, 35)];
    for strategy in [Strategy::All, Strategy::Tiered] {
        let (array, _) = created(raw(written(2, doomed[1])), 1 << 30);
        write_box(&array, ((0, 9), (0, 9)), &BOTH, 1);
        write_box(&array, ((30, 39), (30, 39)), &BOTH, 2);
        delete(&array, &doomed);
        // The second makes one of the tombstones that the first left over each box.
        consolidate(&array, &strategy);
        consolidate(&array, &strategy);
        let version = array.version();
        consolidate(&array, &strategy);
        assert_eq!(array.version(), version, "{strategy:?}: there was nothing more to do");
        let step = Evolution { fill: vec![("v".to_owned(), Some("77".to_owned()))], ..Evolution::default() };
        array.alter(&step, None).unwrap();
        let bytes = read(&array)[0].0.clone();
        for (x, y) in doomed {
            let from = (x * SIDE + y) as usize * 8;
            assert_eq!(bytes[from..from + 8], 77i64.to_le_bytes(), "{strategy:?} at {x}, {y}");
        }
    }
}

/// Single deletes: in a dense array, and in a sparse one of which they are less than a tenth.
#[test]
fn many_tombstones_become_few() {
    for (sparse, strategy) in [(false, Strategy::Tiered), (false, Strategy::Updates), (true, Strategy::Tiered)] {
        let (array, _) = created(if sparse { line(1_000) } else { schema(SIDE, 10, false) }, 1 << 30);
        if sparse {
            crate::support::sparse::write(&array, &(0..20_000).collect::<Vec<_>>(), 1);
        } else {
            write_box(&array, ((0, SIDE - 1), (0, SIDE - 1)), &BOTH, 1);
        }
        for n in 0..100 {
            match sparse {
                true => crate::support::sparse::delete(&array, &[n * 50]),
                false => delete(&array, &[(n % SIDE, n * 7 % SIDE)]),
            }
        }
        let (before, version) = (everything(&array), array.version());
        assert_eq!(array.fragments().unwrap().len(), 101);
        assert_eq!(consolidate(&array, &strategy).after, 2, "{strategy:?}, sparse: {sparse}");
        assert_eq!(kinds(&array)[1], "tombstones");
        assert!(everything(&array) == before && everything(&array.at(At::Version(version)).unwrap()) == before);
        assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
    }
}

/// The bytes of all that a read of everything gives.
fn everything(array: &Array) -> Vec<Vec<u8>> {
    let (cells, ..) = array.read(None, None, gridstone::engine::ReadOrder::Row, &Call::default()).unwrap();
    cells.dims.iter().chain(&cells.attrs).map(|column| column.view().values().to_vec()).collect()
}

fn change(array: &Array, dice: &mut Dice, number: i64) {
    let place = |dice: &mut Dice| (dice.below(SIDE as usize) as i64, dice.below(SIDE as usize) as i64);
    let area = |dice: &mut Dice, most: usize| {
        let ((x, y), (w, h)) = (place(dice), (dice.below(most) as i64, dice.below(most) as i64));
        ((x, (x + w).min(SIDE - 1)), (y, (y + h).min(SIDE - 1)))
    };
    match dice.below(20) {
        0 => write_box(array, ((0, SIDE - 1), (0, SIDE - 1)), &BOTH, number),
        1..=4 => write_box(array, area(dice, 12), &BOTH, number),
        5 => write_box(array, area(dice, 12), &["w"], number),
        6..=8 => {
            let mut cells: Vec<_> = (0..1 + dice.below(6)).map(|_| place(dice)).collect();
            cells.sort_unstable();
            cells.dedup();
            write_cells(array, &cells, number);
        }
        9 => {
            let (x, y) = area(dice, 8);
            let sub = [(x.0.to_string(), x.1.to_string()), (y.0.to_string(), y.1.to_string())];
            array.commit(vec![array.stage_delete_box(Some(&sub)).unwrap()], None).unwrap();
        }
        10..=11 => {
            let from = dice.word() as i64;
            let condition =
                Condition::parse(&format!("v >= {from} and v <= {}", from.saturating_add(1 << 60))).unwrap();
            array.delete_where(None, &condition, None, &Call::default()).unwrap();
        }
        _ => delete(array, &(0..1 + dice.below(12)).map(|_| place(dice)).collect::<Vec<_>>()),
    }
}

/// Two arrays live the same life, but one of them is merged again and again. At every step, at all their versions, and with another fill, they are the
/// same.
#[test]
fn merges_change_nothing_that_is_read() {
    let mut left = 0;
    for seed in 0..30 {
        let mut dice = Dice::new(seed);
        let budget = if seed % 3 == 0 { 1 << 20 } else { 1 << 30 };
        let ((merged, _), (plain, _)) = (created(raw(-5), budget), created(raw(-5), 1 << 30));
        let mut versions = Vec::new();
        for number in 1..45 {
            let at_once = dice.word();
            change(&merged, &mut Dice::new(at_once), number);
            change(&plain, &mut Dice::new(at_once), number);
            versions.push((merged.version(), plain.version()));
            if !dice.chance(3) {
                continue;
            }
            let strategy = match dice.below(6) {
                0 => Strategy::Tiered,
                1 => Strategy::Updates,
                2 => merged.strategy(&MergeChoice::Box(&[("5", "20"), ("0", "9")].map(texts))).unwrap(),
                _ => Strategy::All,
            };
            let target = if dice.chance(3) { 4_000 } else { 1 << 30 };
            merged.consolidate(&strategy, target, false, &Call::default()).unwrap();
            left += kinds(&merged).iter().filter(|kind| **kind == "tombstones").count();
            assert!(read(&merged) == read(&plain), "seed {seed}, step {number}, {strategy:?}");
        }
        let step = Evolution { fill: vec![("v".to_owned(), Some("99".to_owned()))], ..Evolution::default() };
        merged.alter(&step, None).unwrap();
        plain.alter(&step, None).unwrap();
        assert!(read(&merged) == read(&plain), "seed {seed}, with another fill");
        consolidate(&merged, &Strategy::All);
        assert!(read(&merged) == read(&plain), "seed {seed}, merged with another fill");
        for (ours, theirs) in versions {
            let (ours, theirs) = (merged.at(At::Version(ours)).unwrap(), plain.at(At::Version(theirs)).unwrap());
            assert!(read(&ours) == read(&theirs), "seed {seed}, version {}", ours.version());
        }
        assert!(merged.verify(&Call::default()).unwrap().damage.is_empty());
    }
    assert!(left > 100, "{left} fragments of tombstones: too few to tell");
}

fn texts((from, to): (&str, &str)) -> (String, String) {
    (from.to_owned(), to.to_owned())
}
