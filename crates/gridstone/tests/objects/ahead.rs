//! Promise: a read of many small tiles in an object store asks for them together, and not for one after the other.

use super::{Bucket, bucket, requests, storage};
use crate::vacuum::{context, open};
use crate::writer::{bytes_of, numbers, view};
use gridstone::engine::{Array, At, Call, CellData, Condition, Dedup, ReadOrder, create_array_on};
use gridstone::schema::{Order, Schema};
use gridstone::tile::ColumnView;
use gridstone_testkit::Dice;
use std::collections::BTreeMap;

const ROWS: usize = 128;
const COLUMNS: usize = 512;

/// 256 tiles of 256 cells, of values that no filter makes smaller: some of them wait for nothing but their places, others may be null.
fn grid(bucket: &Bucket) -> Array {
    let schema = format!(
        r#"{{"sparse":false,"dims":[{{"name":"y","dtype":"int64","domain":["0","{}"],"tile":"8"}},
        {{"name":"x","dtype":"int64","domain":["0","{}"],"tile":"32"}}],
        "attrs":[{{"name":"v","dtype":"int64"}},{{"name":"n","dtype":"int64","nullable":true}}]}}"#,
        ROWS - 1,
        COLUMNS - 1
    );
    create_array_on(&context(64), storage(bucket), "/grid", Schema::from_json(&schema).unwrap(), false).unwrap()
}

fn opened(bucket: &Bucket) -> Array {
    open(&context(64), &storage(bucket), "/grid", At::Latest).unwrap()
}

/// Both attributes, row by row: the value, and the one that is null where it is `None`.
type Cells = Vec<(i64, Option<i64>)>;

fn write(array: &Array, (y, x): ((usize, usize), (usize, usize)), expected: &mut Cells, dice: &mut Dice) {
    let mut written = Vec::new();
    for row in y.0..=y.1 {
        for column in x.0..=x.1 {
            let cell = (dice.word() as i64, (!dice.chance(10)).then(|| dice.word() as i64));
            expected[row * COLUMNS + column] = cell;
            written.push(cell);
        }
    }
    let v = bytes_of(written.iter().map(|cell| cell.0));
    let (n, valid): (Vec<i64>, Vec<u8>) =
        written.iter().map(|cell| (cell.1.unwrap_or(0), u8::from(cell.1.is_some()))).unzip();
    let n = bytes_of(n);
    let nullable = ColumnView::new(view(&n).datatype(), &n, None, Some(&valid)).unwrap();
    let attrs = vec![("v".to_owned(), view(&v)), ("n".to_owned(), nullable)];
    let bounds = [y, x].map(|(from, to)| (from.to_string(), to.to_string()));
    array.commit(vec![array.stage_dense(Some(&bounds), &attrs, Order::Row, &Call::default()).unwrap()], None).unwrap();
}

fn read(array: &Array, (y, x): ((usize, usize), (usize, usize))) -> Cells {
    let bounds = [y, x].map(|(from, to)| (from.to_string(), to.to_string()));
    let (cells, ..) = array.read(Some(&bounds), None, ReadOrder::Row, &Call::default()).unwrap();
    let valid = cells.attrs[1].view();
    let nullable = numbers(&cells.attrs[1]).into_iter().enumerate().map(|(row, n)| valid.is_valid(row).then_some(n));
    numbers(&cells.attrs[0]).into_iter().zip(nullable).collect()
}

fn of_box(cells: &Cells, (y, x): ((usize, usize), (usize, usize))) -> Cells {
    (y.0..=y.1).flat_map(|row| cells[row * COLUMNS + x.0..=row * COLUMNS + x.1].to_vec()).collect()
}

#[test]
fn many_small_tiles_come_together() {
    let (bucket, plan) = bucket();
    let (mut expected, mut dice) = (vec![(0, None); ROWS * COLUMNS], Dice::new(28));
    let writer = grid(&bucket);
    let whole = ((0, ROWS - 1), (0, COLUMNS - 1));
    write(&writer, whole, &mut expected, &mut dice);
    let narrow = ((0, ROWS - 1), (40, 50));
    // The patches lie over the first fragment, and over each other.
    let patches = [((3, 90), (20, 300)), ((50, 120), (100, 411)), ((0, 127), (200, 230))];
    for patched in [false, true] {
        if patched {
            patches.into_iter().for_each(|patch| write(&writer, patch, &mut expected, &mut dice));
        }
        for sub in [whole, narrow] {
            let reader = opened(&bucket);
            plan.clear();
            assert_eq!(read(&reader, sub), of_box(&expected, sub), "{sub:?}, patched: {patched}");
            let counts = requests(&plan);
            println!("{sub:?}, patched: {patched}: {counts:?}");
            // Of each fragment its end, its index, and both attributes.
            let most = if patched { 16 } else { 4 };
            assert!(counts["get"] <= most && counts.len() == 1, "{sub:?}, patched: {patched}: {counts:?}");
        }
    }
}

/// What lies far apart is asked for side by side: who asked for one after the other would wait for the first until that failed.
#[test]
fn tiles_far_apart_are_asked_for_side_by_side() {
    let (bucket, plan) = bucket();
    let schema = r#"{"sparse":false,"dims":[{"name":"y","dtype":"int64","domain":["0","7"],"tile":"1"},
        {"name":"x","dtype":"int64","domain":["0","131071"],"tile":"131072"}],
        "attrs":[{"name":"v","dtype":"int64","filters":"none"}]}"#;
    let made = create_array_on(&context(64), storage(&bucket), "/grid", Schema::from_json(schema).unwrap(), false);
    let made = made.unwrap();
    let v = bytes_of((0..8 << 17).map(|n| n * 7));
    let staged = made.stage_dense(None, &vec![("v".to_owned(), view(&v))], Order::Row, &Call::default()).unwrap();
    made.commit(vec![staged], None).unwrap();
    // It keeps what it opened.
    let reader = open(&crate::writer::context(), &storage(&bucket), "/grid", At::Latest).unwrap();
    let bounds = [("0".to_owned(), "7".to_owned()), ("500".to_owned(), "509".to_owned())];
    let column = || numbers(&reader.read(Some(&bounds), None, ReadOrder::Row, &Call::default()).unwrap().0.attrs[0]);
    let expected: Vec<i64> = (0..8).flat_map(|y| (500..510).map(move |x| (y * 131_072 + x) * 7)).collect();
    assert_eq!(column(), expected);
    plan.clear();
    plan.gather(8);
    assert_eq!(column(), expected);
    assert_eq!(requests(&plan).into_iter().collect::<Vec<_>>(), [("get", 8)]);
}

/// A condition is judged on all blocks of a batch at once: coordinates, its attribute, and the others come one after the other, but each for
/// all tiles.
#[test]
fn a_condition_on_many_tiles_takes_few_requests() {
    let (bucket, plan) = bucket();
    let schema = r#"{"sparse":true,"capacity":500,"dims":[{"name":"x","dtype":"int64","domain":["0","99999"]}],
        "attrs":[{"name":"v","dtype":"int64"},{"name":"w","dtype":"int64"}]}"#;
    let made = create_array_on(&context(64), storage(&bucket), "/grid", Schema::from_json(schema).unwrap(), false);
    let made = made.unwrap();
    let (mut dice, mut expected) = (Dice::new(3), BTreeMap::new());
    // The second lies over a part of the first, so that they are merged.
    for (fragments, (from, to)) in [(1, (0, 60_000)), (2, (40_000, 90_000))] {
        let cells: Vec<(i64, (i64, i64))> =
            (from..to).map(|x| (x, (dice.below(1 << 40) as i64, dice.word() as i64))).collect();
        let x = bytes_of(cells.iter().map(|cell| cell.0));
        let (v, w) = (bytes_of(cells.iter().map(|cell| cell.1.0)), bytes_of(cells.iter().map(|cell| cell.1.1)));
        let attrs = vec![("v".to_owned(), view(&v)), ("w".to_owned(), view(&w))];
        let data = CellData { dims: vec![view(&x)], attrs, sorted: false, dedup: Dedup::Error };
        made.commit(vec![made.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
        expected.extend(cells);
        let reader = opened(&bucket);
        plan.clear();
        let condition = Condition::parse("v < 549755813888").unwrap();
        let (found, _) = reader.read_where(None, None, &condition, ReadOrder::Row, &Call::default()).unwrap();
        let columns = [&found.dims[0], &found.attrs[0], &found.attrs[1]].map(numbers);
        let found: Vec<_> =
            columns[0].iter().zip(&columns[1]).zip(&columns[2]).map(|((x, v), w)| (*x, (*v, *w))).collect();
        let selected: Vec<_> =
            expected.iter().filter(|cell| cell.1.0 < 1 << 39).map(|cell| (*cell.0, *cell.1)).collect();
        assert!(found == selected && !found.is_empty(), "{} cells, {} expected", found.len(), selected.len());
        let counts = requests(&plan);
        println!("{} cells of {fragments} fragments: {counts:?}", found.len());
        assert!(counts["get"] <= 8 * fragments && counts.len() == 1, "{counts:?}");
    }
}

/// What the condition looks at comes for many tiles at once, and then the other values of the tiles in which something is selected.
#[test]
fn a_condition_on_a_dense_array_takes_few_requests() {
    let (bucket, plan) = bucket();
    let (mut expected, mut dice) = (vec![(0, None); ROWS * COLUMNS], Dice::new(5));
    let writer = grid(&bucket);
    write(&writer, ((0, ROWS - 1), (0, COLUMNS - 1)), &mut expected, &mut dice);
    for (patched, text) in [(false, "v < 0"), (false, "n > 9000000000000000000"), (true, "n is null and v < 0")] {
        if patched {
            write(&writer, ((3, 90), (20, 300)), &mut expected, &mut dice);
        }
        let selected = expected.iter().filter(|(v, n)| match text {
            "v < 0" => *v < 0,
            "n > 9000000000000000000" => n.is_some_and(|n| n > 9_000_000_000_000_000_000),
            _ => n.is_none() && *v < 0,
        });
        let mut selected: Vec<_> = selected.copied().collect();
        let reader = opened(&bucket);
        plan.clear();
        let condition = Condition::parse(text).unwrap();
        let (cells, _) = reader.read_where(None, None, &condition, ReadOrder::Row, &Call::default()).unwrap();
        let valid = cells.attrs[1].view();
        let n = numbers(&cells.attrs[1]).into_iter().enumerate().map(|(row, n)| valid.is_valid(row).then_some(n));
        let mut found: Vec<_> = numbers(&cells.attrs[0]).into_iter().zip(n).collect();
        found.sort_unstable();
        selected.sort_unstable();
        assert!(found == selected && !found.is_empty(), "{text}: {} cells, {} expected", found.len(), selected.len());
        let counts = requests(&plan);
        println!("{text}, {} cells: {counts:?}", found.len());
        assert!(counts["get"] <= if patched { 12 } else { 6 } && counts.len() == 1, "{text}: {counts:?}");
    }
}
