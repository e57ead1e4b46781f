//! Promise: a read of many small tiles in an object store asks for them together, and not for one after the other.

use super::{Bucket, bucket, requests, storage};
use crate::support::columns::{bytes_of, numbers, view};
use crate::support::store::{context, open};
use gridstone::base::{Error, Result};
use gridstone::engine::{
    Array, At, Call, CellData, Condition, Context, Dedup, Options, ReadOrder, UserFilter, create_array_on,
    register_filter,
};
use gridstone::schema::{Attribute, Datatype, Evolution, Order, Schema};
use gridstone::storage::{CountingStorage, Operation, Storage};
use gridstone::tile::ColumnView;
use gridstone_testkit::Dice;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

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
    let reader = open(&crate::support::writer::context(), &storage(&bucket), "/grid", At::Latest).unwrap();
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

/// Attributes of every kind: plain ones, such as may be null, texts, bools, and one that was added after the cells.
const KINDS: &str = r#"{"sparse":true,"capacity":500,"coord_filters":"none","dims":[{"name":"x","dtype":"int64","domain":["0","99999"]}],
    "attrs":[{"name":"v","dtype":"int64","filters":"none"},{"name":"w","dtype":"int64","filters":"none"},{"name":"n","dtype":"int64","nullable":true},
    {"name":"s","dtype":"string","filters":"none"},{"name":"b","dtype":"bool"}]}"#;
const KINDS_CELLS: i64 = 60_000;

/// A cell of an array of `KINDS`, by its place.
#[derive(Debug, Clone, PartialEq)]
struct Kinds(i64, i64, Option<i64>, String, bool);

/// Whether a condition selects a cell.
type Selects = dyn Fn(i64, &Kinds) -> bool;

fn kinds() -> Vec<Kinds> {
    let mut dice = Dice::new(17);
    let mut kinds = |x: i64| {
        let n = (!dice.chance(10)).then(|| dice.below(1_000) as i64);
        Kinds(dice.below(1 << 40) as i64, dice.word() as i64, n, format!("{:04}", x * 7 % 10_000), dice.chance(50))
    };
    (0..KINDS_CELLS).map(&mut kinds).collect()
}

fn write_kinds(bucket: &Bucket, schema: &str, cells: &[Kinds]) -> Array {
    let made = create_array_on(&context(64), storage(bucket), "/grid", Schema::from_json(schema).unwrap(), false);
    let made = made.unwrap();
    let (x, v, w) =
        (bytes_of(0..KINDS_CELLS), bytes_of(cells.iter().map(|c| c.0)), bytes_of(cells.iter().map(|c| c.1)));
    let n = bytes_of(cells.iter().map(|c| c.2.unwrap_or(0)));
    let valid: Vec<u8> = cells.iter().map(|c| u8::from(c.2.is_some())).collect();
    let texts: String = cells.iter().map(|c| c.3.as_str()).collect();
    let offsets: Vec<u64> = (0..=cells.len() as u64).map(|n| 4 * n).collect();
    let bools: Vec<u8> = cells.iter().map(|c| u8::from(c.4)).collect();
    let attrs = vec![
        ("v".to_owned(), view(&v)),
        ("w".to_owned(), view(&w)),
        ("n".to_owned(), ColumnView::new(Datatype::Int64, &n, None, Some(&valid)).unwrap()),
        ("s".to_owned(), ColumnView::new(Datatype::String, texts.as_bytes(), Some(&offsets), None).unwrap()),
        ("b".to_owned(), ColumnView::new(Datatype::Bool, &bools, None, None).unwrap()),
    ];
    let data = CellData { dims: vec![view(&x)], attrs, sorted: true, dedup: Dedup::Error };
    made.commit(vec![made.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
    let later = Attribute::new("later", Datatype::Int64, true, None, "auto").unwrap();
    made.alter(&Evolution { add: vec![later], ..Evolution::default() }, None).unwrap();
    made
}

/// The cells that a condition selects, with their places.
fn read_kinds(array: &Array, text: &str, sub: Option<&[(String, String)]>) -> Result<Vec<(i64, Kinds)>> {
    let condition = Condition::parse(text).unwrap();
    let (found, _) = array.read_where(sub, None, &condition, ReadOrder::Row, &Call::default())?;
    let (v, w, n) = (numbers(&found.attrs[0]), numbers(&found.attrs[1]), numbers(&found.attrs[2]));
    let [valid, s, b, later] = [2, 3, 4, 5].map(|place| found.attrs[place].view());
    assert!((0..found.count).all(|row| !later.is_valid(row)));
    let cell = |row: usize| {
        let text = String::from_utf8(s.value(row).to_vec()).unwrap();
        Kinds(v[row], w[row], valid.is_valid(row).then(|| n[row]), text, b.value(row) == [1])
    };
    Ok(numbers(&found.dims[0]).into_iter().enumerate().map(|(row, x)| (x, cell(row))).collect())
}

/// Where one fragment serves the box alone, two answers are waited for, whatever the attributes: that to the request for what the condition
/// looks at, and that for all the rest.
#[test]
fn a_condition_on_attributes_of_all_kinds_is_waited_for_twice() {
    let (bucket, plan) = bucket();
    let cells = kinds();
    write_kinds(&bucket, KINDS, &cells);
    let counting = Arc::new(CountingStorage::new(storage(&bucket)));
    let counted: Arc<dyn Storage> = counting.clone();
    // It keeps what it opened, and the index; of attributes of variable length a batch is sixteen blocks for each thread.
    let options = Options { threads: Some(8), ..Options::default() };
    let reader = open(&Context::new(&options).unwrap(), &counted, "/grid", At::Latest).unwrap();
    let sub = [("100".to_owned(), "50777".to_owned())];
    let cases: [(&str, &Selects); 7] = [
        ("v < 549755813888", &|_, c| c.0 < 1 << 39),
        ("n is null", &|_, c| c.2.is_none()),
        ("s < '0100' and n > 5 and b == true", &|_, c| c.3.as_str() < "0100" && c.2.is_some_and(|n| n > 5) && c.4),
        ("x < 3000 or v < 1000000", &|x, c| x < 3_000 || c.0 < 1_000_000),
        ("x < 3000 or n == 7", &|x, c| x < 3_000 || c.2 == Some(7)),
        ("b == false and later is null", &|_, c| !c.4),
        ("v >= 0", &|_, _| true),
    ];
    for (text, selects) in cases {
        for sub in [None, Some(sub.as_slice())] {
            let inside = |x: i64| sub.is_none() || (100..=50_777).contains(&x);
            let selected: Vec<(i64, Kinds)> =
                (0..).zip(&cells).filter(|(x, c)| inside(*x) && selects(*x, c)).map(|(x, c)| (x, c.clone())).collect();
            for warm in [false, true] {
                plan.clear();
                counting.reset();
                let found = read_kinds(&reader, text, sub).unwrap();
                assert!(found == selected && !found.is_empty(), "{text}: {} cells of {}", found.len(), selected.len());
                let (waits, gets) = (counting.snapshot().count(Operation::Read), requests(&plan)["get"]);
                println!("{text}, {sub:?}, warm: {warm}: {waits} waits, {gets} requests");
                assert!(!warm || (waits <= 2 && gets <= 6), "{text}, {sub:?}: {waits} waits, {gets} requests");
            }
        }
    }
}

/// A filter that changes nothing, and is left only after two threads have been in it together.
#[derive(Default)]
struct Meeting {
    inside: Mutex<(usize, bool)>,
    met: Condvar,
}

impl UserFilter for Meeting {
    fn encode(&self, input: &[u8], _: usize) -> Result<Vec<u8>> {
        Ok(input.to_vec())
    }

    fn decode(&self, input: &[u8], _: usize, _: usize) -> Result<Vec<u8>> {
        let mut inside = self.inside.lock().unwrap();
        inside.0 += 1;
        inside.1 |= inside.0 > 1;
        self.met.notify_all();
        let (mut inside, _) = self.met.wait_timeout_while(inside, Duration::from_secs(20), |inside| !inside.1).unwrap();
        inside.0 -= 1;
        if inside.1 { Ok(input.to_vec()) } else { Err(Error::storage("nobody came")) }
    }
}

/// What came is decoded by all threads: by one alone, each of these would wait in vain for another.
#[test]
fn a_condition_on_many_tiles_is_decoded_side_by_side() {
    let (bucket, _) = bucket();
    let cells = kinds();
    let mut schema = KINDS.to_owned();
    for (name, dtype) in [("v", "int64"), ("w", "int64"), ("s", "string")] {
        let id = format!("meeting.{name}");
        register_filter(&id, Arc::new(Meeting::default()), false).unwrap();
        let plain = format!(r#"{{"name":"{name}","dtype":"{dtype}","filters":"none"}}"#);
        assert!(schema.contains(&plain));
        schema = schema.replace(&plain, &plain.replace("none", &id));
    }
    write_kinds(&bucket, &schema, &cells);
    let options = Options { threads: Some(2), ..Options::default() };
    let reader = open(&Context::new(&options).unwrap(), &storage(&bucket), "/grid", At::Latest).unwrap();
    let found = read_kinds(&reader, "v < 549755813888", None).unwrap();
    assert_eq!(found.len(), cells.iter().filter(|cell| cell.0 < 1 << 39).count());
}

#[test]
fn a_coordinate_outside_its_blocks_box_is_damage_where_it_is_read() {
    crate::support::stray_cell::check(&storage(&bucket().0));
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
