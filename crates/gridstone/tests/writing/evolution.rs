//! Promise: the schema of an array changes without anything being written again; what was written before, and what is written
//! by those who have not seen the change, reads as the newest schema says, and older versions as theirs says.

use gridstone::base::{AlignedBuf, ErrorKind};
use gridstone::engine::{
    Array, At, Call, CellData, Column, Condition, Context, Dedup, Isolation, Keep, Opened, Options, ReadOrder, Receipt,
    Staged, Strategy, Transaction, VacuumOptions, commit_receipts_on, create_array_on, create_group_on, open_on,
    verify_on,
};
use gridstone::schema::{Attribute, Datatype, Evolution, Framing, Order, Schema};
use gridstone::storage::{MemoryStorage, Storage};
use std::sync::Arc;

const LINE: &str = r#"{"sparse":true,"capacity":500,"dims":[{"name":"x","dtype":"int64","domain":["0","99999"],"tile":"100"}],
    "attrs":[{"name":"v","dtype":"int64"}]}"#;
const FIELD: &str = r#"{"dims":[{"name":"y","dtype":"int64","domain":["0","9"],"tile":"4"},
    {"name":"x","dtype":"int64","domain":["0","9"],"tile":"5"}],
    "attrs":[{"name":"v","dtype":"int64","fill":"-1"},{"name":"w","dtype":"int64"}]}"#;

fn context(storage: &Arc<dyn Storage>) -> (Context, Arc<dyn Storage>) {
    (Context::new(&Options { threads: Some(2), ..Options::default() }).unwrap(), storage.clone())
}

fn created(json: &str) -> (Array, Arc<dyn Storage>) {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let (context, on) = context(&storage);
    (create_array_on(&context, on, "/", Schema::from_json(json).unwrap(), false).unwrap(), storage)
}

fn opened(storage: &Arc<dyn Storage>, at: At) -> Array {
    let (context, on) = context(storage);
    match open_on(&context, on, "/", at == At::Latest, at).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

fn longs(values: impl IntoIterator<Item = i64>) -> Column {
    let bytes: Vec<u8> = values.into_iter().flat_map(i64::to_le_bytes).collect();
    Column::new(Datatype::Int64, AlignedBuf::from_slice(&bytes), None, None).unwrap()
}

/// A number that no filter makes smaller, so that fragments of many are large (splitmix64).
fn noise(i: i64) -> i64 {
    let z = (i as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ (z >> 27)) as i64
}

fn text(name: &str) -> String {
    name.to_owned()
}

fn attr(name: &str, nullable: bool, fill: &str) -> Attribute {
    Attribute::new(name, Datatype::Int64, nullable, Some(fill), "auto").unwrap()
}

fn adding(attrs: Vec<Attribute>) -> Evolution {
    Evolution { add: attrs, ..Evolution::default() }
}

fn dropping(name: &str) -> Evolution {
    Evolution { drop: vec![text(name)], ..Evolution::default() }
}

fn growing(domains: &[(&str, i64, i64)]) -> Evolution {
    let domains = domains.iter().map(|(name, lo, hi)| (text(name), lo.to_string(), hi.to_string())).collect();
    Evolution { domains, ..Evolution::default() }
}

/// Stages cells with the same value in every attribute of the handle's schema, per cell.
fn staged(array: &Array, dims: &[&[i64]], values: &[i64]) -> Staged {
    let dims: Vec<Column> = dims.iter().map(|c| longs(c.iter().copied())).collect();
    let column = longs(values.iter().copied());
    let schema = array.schema().unwrap();
    let attrs = schema.attrs().iter().map(|a| (a.name().to_owned(), column.view())).collect();
    let dims = dims.iter().map(Column::view).collect();
    array.stage_cells(CellData { dims, attrs, sorted: false, dedup: Dedup::Error }, &Call::default()).unwrap()
}

fn write(array: &Array, dims: &[&[i64]], values: &[i64]) -> u64 {
    array.commit(vec![staged(array, dims, values)], None).unwrap()
}

fn numbers(column: &Column) -> Vec<Option<i64>> {
    let number = |row: usize| i64::from_le_bytes(column.view().value(row).try_into().unwrap());
    (0..column.len()).map(|row| column.view().is_valid(row).then(|| number(row))).collect()
}

fn column(array: &Array, name: &str, order: ReadOrder) -> Vec<Option<i64>> {
    let (cells, _, _) = array.read(None, Some(&[text(name)]), order, &Call::default()).unwrap();
    numbers(&cells.attrs[0])
}

/// Coordinates and the values of one attribute.
fn cells(array: &Array, name: &str, order: ReadOrder) -> Vec<(Vec<i64>, Option<i64>)> {
    let (cells, _, _) = array.read(None, Some(&[text(name)]), order, &Call::default()).unwrap();
    let dims: Vec<Vec<Option<i64>>> = cells.dims.iter().map(numbers).collect();
    let values = numbers(&cells.attrs[0]);
    (0..cells.count).map(|row| (dims.iter().map(|d| d[row].unwrap()).collect(), values[row])).collect()
}

fn all(array: &Array) -> u64 {
    let report = array.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
    assert_eq!(report.overtaken, 0);
    report.after
}

fn names(array: &Array) -> Vec<String> {
    array.schema().unwrap().attrs().iter().map(|a| a.name().to_owned()).collect()
}

/// A place in global order by definition: tiles counted from 0, where the domain began, then the place itself.
fn rank(place: &[i64], tiles: [Option<i64>; 2], orders: (Order, Order)) -> (Vec<i64>, Vec<i64>) {
    let turned = |order: Order, mut values: Vec<i64>| {
        if order == Order::Col {
            values.reverse();
        }
        values
    };
    let tile = (0..2).map(|d| tiles[d].map_or(0, |n| place[d].div_euclid(n))).collect();
    (turned(orders.0, tile), turned(orders.1, place.to_vec()))
}

#[test]
fn cells_stay_in_global_order_when_the_domain_grows() {
    let orders = [Order::Row, Order::Col];
    for (tiles, tile_order, cell_order) in [[Some(7), Some(10)], [None, Some(10)], [Some(7), None], [None, None]]
        .into_iter()
        .flat_map(|t| orders.into_iter().flat_map(move |a| orders.into_iter().map(move |b| (t, a, b))))
    {
        let dim = |name: &str, tile: Option<i64>| {
            let tile = tile.map_or_else(|| text("null"), |n| format!("\"{n}\""));
            format!(r#"{{"name":"{name}","dtype":"int64","domain":["0","24"],"tile":{tile}}}"#)
        };
        let (array, storage) = created(&format!(
            r#"{{"sparse":true,"capacity":5,"tile_order":"{tile_order}","cell_order":"{cell_order}",
            "dims":[{},{}],"attrs":[{{"name":"v","dtype":"int64"}}]}}"#,
            dim("y", tiles[0]),
            dim("x", tiles[1])
        ));
        let put = |places: &[(i64, i64)], value: i64| {
            let (y, x): (Vec<i64>, Vec<i64>) = places.iter().copied().unzip();
            write(&array, &[&y, &x], &vec![value; y.len()])
        };
        let grid = |lo: i64, hi: i64, step: usize| -> Vec<(i64, i64)> {
            (lo..=hi).step_by(step).flat_map(|y| (lo..=hi).step_by(3).map(move |x| (y, x))).collect()
        };
        put(&grid(0, 24, 2), 1);
        let before = cells(&array, "v", ReadOrder::Global);
        let grown = array.alter(&growing(&[("y", -9, 60), ("x", -9, 40)]), None).unwrap();
        put(&grid(-9, 40, 5), 2);
        put(&[(-9, 40), (3, 3), (24, 24), (40, -9), (-9, 0)], 3);
        let expected: usize = cells(&array, "v", ReadOrder::Row).len();
        for merged in [false, true] {
            if merged {
                assert_eq!(all(&array), 1);
            }
            for array in [array.clone(), opened(&storage, At::Latest)] {
                let found = cells(&array, "v", ReadOrder::Global);
                let ranks: Vec<_> = found.iter().map(|(p, _)| rank(p, tiles, (tile_order, cell_order))).collect();
                assert!(ranks.is_sorted_by(|a, b| a < b), "{tiles:?} {tile_order} {cell_order}");
                assert_eq!(found.len(), expected);
                let (y, x): (Vec<i64>, Vec<i64>) = found.iter().map(|(p, _)| (p[0], p[1])).unzip();
                let (y, x) = (longs(y.into_iter().rev()), longs(x.into_iter().rev()));
                let (points, _) = array.points(&[y.view(), x.view()], None, &Call::default()).unwrap();
                let values: Vec<Option<i64>> = found.iter().rev().map(|(_, v)| *v).collect();
                assert_eq!(numbers(&points.attrs[0]), values);
            }
        }
        assert_eq!(cells(&array.at(At::Version(grown - 1)).unwrap(), "v", ReadOrder::Global), before);
        assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
    }
}

#[test]
fn a_dense_array_grows_on_both_sides() {
    let (array, storage) = created(FIELD);
    let v = longs(0..100);
    let w = longs(100..200);
    let data = vec![(text("v"), v.view()), (text("w"), w.view())];
    array.commit(vec![array.stage_dense(None, &data, Order::Row, &Call::default()).unwrap()], None).unwrap();
    array.alter(&growing(&[("y", -8, 11), ("x", 0, 12)]), None).unwrap();
    let refused = array.alter(&growing(&[("y", -7, 11)]), None).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Schema);
    assert!(refused.message().contains("only grows"), "{refused}");
    let expected = |y: i64, x: i64| if (0..10).contains(&y) && x < 10 { y * 10 + x } else { -1 };
    let whole: Vec<Option<i64>> = (-8..12).flat_map(|y| (0..13).map(move |x| Some(expected(y, x)))).collect();
    assert_eq!(column(&array, "v", ReadOrder::Row), whole);
    write(&array, &[&[-8, 11], &[12, 12]], &[7, 8]);
    let (mut written, at) = (whole, |y: i64, x: i64| ((y + 8) * 13 + x) as usize);
    (written[at(-8, 12)], written[at(11, 12)]) = (Some(7), Some(8));
    for _ in 0..2 {
        assert_eq!(column(&array, "v", ReadOrder::Row), written);
        assert_eq!(column(&opened(&storage, At::Latest), "v", ReadOrder::Row), written);
        all(&array);
    }
    assert_eq!(column(&array.at(At::Version(2)).unwrap(), "v", ReadOrder::Row).len(), 100);
}

#[test]
fn older_cells_have_fill_or_null_in_attributes_that_came_later() {
    let (array, storage) = created(LINE);
    // One fragment that is read block by block, one that is held decoded.
    let many: Vec<i64> = (0..40_000).map(|i| i * 2).collect();
    let wild: Vec<i64> = many.iter().map(|i| noise(*i)).collect();
    write(&array, &[&many], &wild);
    assert!(array.fragments().unwrap()[0].bytes > 160 << 10);
    write(&array, &[&[1, 3]], &[10, 30]);
    let before = array.version();
    array.alter(&adding(vec![attr("q", false, "5"), attr("n", true, "0")]), None).unwrap();
    let string = Attribute::new("s", Datatype::String, false, Some("older"), "auto").unwrap();
    write(&array, &[&[3, 4]], &[31, 41]);
    array.alter(&adding(vec![string]), None).unwrap();
    let check = |array: &Array| {
        let (q, n) = (cells(array, "q", ReadOrder::Row), cells(array, "n", ReadOrder::Row));
        assert_eq!(q.len(), 40_002);
        for ((place, q), (_, n)) in q.iter().zip(&n) {
            let later = match place[0] {
                3 => Some(31),
                4 => Some(41),
                _ => None,
            };
            assert_eq!((*q, *n), (later.or(Some(5)), later), "{place:?}");
        }
        let (found, _, _) = array.read(None, Some(&[text("s")]), ReadOrder::Any, &Call::default()).unwrap();
        assert!((0..found.count).all(|row| found.attrs[0].view().value(row) == b"older"));
        // Points, of both kinds of fragments, in both attributes.
        let x = longs([4, 1, 79_998, 3]);
        let asked = [text("q"), text("n"), text("s")];
        let (points, _) = array.points(&[x.view()], Some(&asked), &Call::default()).unwrap();
        assert_eq!(numbers(&points.attrs[0]), [Some(41), Some(5), Some(5), Some(31)]);
        assert_eq!(numbers(&points.attrs[1]), [Some(41), None, None, Some(31)]);
        assert_eq!(points.attrs[2].view().value(2), b"older");
    };
    check(&array);
    check(&opened(&storage, At::Latest));
    assert_eq!(all(&array), 1);
    check(&array);
    assert_eq!(array.fragments().unwrap()[0].attrs, ["v", "q", "n", "s"]);
    assert_eq!(names(&opened(&storage, At::Version(before))), ["v"]);
    assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
}

#[test]
fn values_written_before_nulls_were_allowed_are_valid() {
    for json in [LINE.to_owned(), LINE.replace("\"sparse\":true", "\"sparse\":false").replace("\"capacity\":500,", "")]
    {
        let (array, _) = created(&json);
        let many: Vec<i64> = (0..30_000).map(|i| i * 3).collect();
        let wild: Vec<i64> = many.iter().map(|i| noise(*i)).collect();
        write(&array, &[&many], &wild);
        assert!(array.fragments().unwrap()[0].bytes > 160 << 10);
        array.alter(&Evolution { nullable: vec![text("v")], ..Evolution::default() }, None).unwrap();
        // Nulls beside them, in a large fragment and in a small one: every fourth cell of what is written.
        let some_null = |xs: &[i64]| {
            let (x, values) = (longs(xs.iter().copied()), xs.iter().flat_map(|x| noise(*x).to_le_bytes()));
            let validity = Some((0..xs.len()).map(|row| u8::from(row % 4 != 0)).collect());
            let bytes = AlignedBuf::from_slice(&values.collect::<Vec<u8>>());
            let v = Column::new(Datatype::Int64, bytes, None, validity).unwrap();
            let attrs = vec![(text("v"), v.view())];
            let data = CellData { dims: vec![x.view()], attrs, sorted: false, dedup: Dedup::Error };
            array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap()
        };
        some_null(&(0..30_000).map(|i| i * 3 + 1).collect::<Vec<_>>());
        assert!(array.fragments().unwrap()[1].bytes > 160 << 10);
        some_null(&[6, 5]);
        for merged in [false, true] {
            if merged {
                all(&array);
            }
            let x = longs([9, 1, 5, 3, 6, 12, 4]);
            let (points, _) = array.points(&[x.view()], None, &Call::default()).unwrap();
            let known = |x: i64| Some(noise(x));
            let expected = [known(9), None, known(5), known(3), None, known(12), known(4)];
            assert_eq!(numbers(&points.attrs[0]), expected, "merged: {merged}");
            let sub = [(text("0"), text("12"))];
            let (read, _, _) = array.read(Some(&sub), None, ReadOrder::Row, &Call::default()).unwrap();
            let valid: Vec<i64> = numbers(&read.attrs[0]).into_iter().flatten().collect();
            assert_eq!(valid, [0, 3, 4, 5, 7, 9, 10, 12].map(noise));
        }
    }
}

#[test]
fn dropped_attributes_leave_with_the_fragments_that_are_written_anew() {
    let (array, storage) = created(FIELD);
    let wild = longs((0..100).map(noise));
    let box_of = |name: &str| {
        let data = vec![(text(name), wild.view())];
        array.commit(vec![array.stage_dense(None, &data, Order::Row, &Call::default()).unwrap()], None).unwrap()
    };
    let both = vec![(text("v"), wild.view()), (text("w"), wild.view())];
    array.commit(vec![array.stage_dense(None, &both, Order::Row, &Call::default()).unwrap()], None).unwrap();
    box_of("w");
    let whole = array.fragments().unwrap()[0].bytes;
    let (before, seen) = (array.version(), column(&array, "v", ReadOrder::Row));
    array.alter(&dropping("w"), None).unwrap();
    assert_eq!(array.fragments().unwrap()[1].attrs, Vec::<String>::new());
    let unknown = array.read(None, Some(&[text("w")]), ReadOrder::Row, &Call::default()).unwrap_err();
    assert!(unknown.message().contains("no attribute \"w\""), "{unknown}");
    assert_eq!(all(&array), 1, "of the second fragment nothing is left");
    let left = array.fragments().unwrap();
    assert!(left[0].bytes < whole - 500, "{} of {whole} bytes", left[0].bytes);
    assert_eq!((left[0].attrs.clone(), column(&array, "v", ReadOrder::Row)), (vec![text("v")], seen));
    let version = array.version();
    assert_eq!((all(&array), array.version()), (1, version), "there is nothing left to do");
    // An attribute of the same name is another one.
    array.alter(&adding(vec![attr("w", true, "0")]), None).unwrap();
    assert!(column(&array, "w", ReadOrder::Row).iter().all(Option::is_none));
    let old = opened(&storage, At::Version(before));
    assert_eq!(column(&old, "w", ReadOrder::Row), numbers(&wild));
    let keep = VacuumOptions { keep: Keep::Versions(1), safety_us: 0, dry_run: false };
    array.vacuum(&keep, &Call::default()).unwrap();
    array.refresh().unwrap();
    assert!(column(&opened(&storage, At::Latest), "w", ReadOrder::Row).iter().all(Option::is_none));
    assert!(verify_on(&context(&storage).0, storage.clone(), &Call::default()).unwrap().damage.is_empty());
}

#[test]
fn a_sparse_cell_of_dropped_attributes_alone_is_still_there() {
    let (array, _) = created(LINE);
    write(&array, &[&[5, 7]], &[50, 70]);
    array.alter(&adding(vec![attr("q", false, "9")]), None).unwrap();
    array.alter(&dropping("v"), None).unwrap();
    for _ in 0..2 {
        assert_eq!(cells(&array, "q", ReadOrder::Row), [(vec![5], Some(9)), (vec![7], Some(9))]);
        all(&array);
    }
    assert_eq!(array.fragments().unwrap()[0].attrs, ["q"]);
}

#[test]
fn whoever_has_not_seen_the_change_writes_and_merges_as_before() {
    let (array, storage) = created(LINE);
    write(&array, &[&[1, 2]], &[10, 20]);
    let (writer, merger) = (opened(&storage, At::Latest), opened(&storage, At::Latest));
    write(&merger, &[&[2, 3]], &[21, 31]);
    let stream = writer.writer(None, None).unwrap();
    array.refresh().unwrap();
    array.alter(&adding(vec![attr("q", false, "5")]), None).unwrap();
    write(&array, &[&[3]], &[32]);
    array.alter(&Evolution { rename: vec![(text("v"), text("u"))], ..growing(&[("x", 0, 200_000)]) }, None).unwrap();
    write(&array, &[&[150_000]], &[4]);
    // The merge was planned over fragments of the first schema; they are there still.
    assert_eq!(merger.version(), 3);
    let merged = merger.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
    assert_eq!((merged.overtaken, merged.merges.len()), (0, 1));
    let expected = [(1, 10, 5), (2, 21, 5), (3, 32, 32), (150_000, 4, 4)];
    let both = |array: &Array| -> Vec<(i64, i64, i64)> {
        let (u, q) = (cells(array, "u", ReadOrder::Row), cells(array, "q", ReadOrder::Row));
        u.iter().zip(&q).map(|((p, u), (_, q))| (p[0], u.unwrap(), q.unwrap())).collect()
    };
    array.refresh().unwrap();
    assert_eq!(both(&array), expected);
    // The stream was begun before all that.
    let mut stream = stream;
    let (x, v) = (longs([1, 8]), longs([11, 80]));
    stream.append(&Call::default(), &[x.view()], &[v.view()]).unwrap();
    let stale = stream.finish(&Call::default()).unwrap();
    assert_eq!(names(&writer), ["v"]);
    writer.commit(vec![stale], None).unwrap();
    assert_eq!(names(&writer), ["u", "q"], "its own commit has moved it");
    let expected = [(1, 11, 5), (2, 21, 5), (3, 32, 32), (8, 80, 5), (150_000, 4, 4)];
    assert_eq!(both(&writer), expected, "a newer cell is newer whole");
    assert_eq!(all(&writer), 1);
    assert_eq!(both(&writer), expected);
}

#[test]
fn receipts_outlive_changes_of_the_schema() {
    let (array, storage) = created(LINE);
    let receipt = |xs: &[i64], value: i64| -> Receipt {
        let staged = staged(&array, &[xs], &vec![value; xs.len()]);
        Receipt::from_json(&array.receipt(vec![staged]).unwrap().to_json().unwrap()).unwrap()
    };
    let (first, second) = (receipt(&[1, 2], 10), receipt(&[2, 99_999], 20));
    let other = opened(&storage, At::Latest);
    other.alter(&adding(vec![attr("q", true, "0")]), None).unwrap();
    commit_receipts_on(&context(&storage).0, storage.clone(), &[first], None).unwrap();
    other.refresh().unwrap();
    other.alter(&Evolution { drop: vec![text("v")], ..growing(&[("x", -100, 100_000)]) }, None).unwrap();
    commit_receipts_on(&context(&storage).0, storage.clone(), &[second], None).unwrap();
    other.refresh().unwrap();
    let expected: Vec<(Vec<i64>, Option<i64>)> = [1, 2, 99_999].map(|x| (vec![x], None)).to_vec();
    assert_eq!(cells(&other, "q", ReadOrder::Row), expected);
    all(&other);
    assert_eq!(cells(&other, "q", ReadOrder::Row), expected);
}

#[test]
fn conditions_see_fill_and_null_in_attributes_that_came_later() {
    for duplicates in [false, true] {
        let (array, _) =
            created(&LINE.replace("\"capacity\":500", &format!("\"capacity\":500,\"duplicates\":{duplicates}")));
        write(&array, &[&[1, 2]], &[10, 20]);
        array.alter(&adding(vec![attr("q", false, "5"), attr("n", true, "0")]), None).unwrap();
        write(&array, &[&[3, 4]], &[5, 6]);
        let delete = |text: &str| {
            let before = array.version();
            array.delete_where(None, &Condition::parse(text).unwrap(), None, &Call::default()).unwrap() > before
        };
        let places =
            |array: &Array| cells(array, "v", ReadOrder::Row).into_iter().map(|(p, _)| p[0]).collect::<Vec<_>>();
        assert!(!delete("q > 6 or n > 6"));
        assert!(delete("q = 5 and n is null and v = 10"));
        assert_eq!(places(&array), [2, 3, 4]);
        assert!(delete("q = 5"));
        assert_eq!(places(&array), [4]);
    }
    let (array, _) = created(FIELD);
    write(&array, &[&[1, 2], &[1, 2]], &[10, 20]);
    array.alter(&adding(vec![attr("q", false, "5")]), None).unwrap();
    let condition = Condition::parse("q = 5 and v = 10").unwrap();
    array.delete_where(None, &condition, None, &Call::default()).unwrap();
    assert_eq!(column(&array, "v", ReadOrder::Row).iter().filter(|v| **v != Some(-1)).count(), 1);
}

#[test]
fn transactions_change_schemas_and_write_by_them() {
    let (array, storage) = created(LINE);
    write(&array, &[&[1]], &[10]);
    let begin = || Transaction::begin_on(&context(&storage).0, storage.clone(), Isolation::Snapshot).unwrap();
    let (given_up, done, late) = (begin(), begin(), begin());
    for transaction in [&given_up, &done] {
        let inside = transaction.array("/").unwrap();
        inside.alter(&adding(vec![attr("q", false, "5")]), None).unwrap();
        write(&inside, &[&[2]], &[20]);
        inside
            .alter(&Evolution { rename: vec![(text("q"), text("p"))], ..growing(&[("x", 0, 300_000)]) }, None)
            .unwrap();
        write(&inside, &[&[300_000]], &[30]);
        let seen = [(vec![1], Some(5)), (vec![2], Some(20)), (vec![300_000], Some(30))];
        assert_eq!(cells(&inside, "p", ReadOrder::Row), seen);
        assert!(inside.alter(&dropping("p"), Some(text("why"))).unwrap_err().message().contains("one message"));
    }
    late.array("/").unwrap().alter(&dropping("v"), None).unwrap_err();
    late.array("/").unwrap().alter(&adding(vec![attr("z", true, "0")]), None).unwrap();
    given_up.abort();
    array.refresh().unwrap();
    assert_eq!(names(&array), ["v"]);
    done.commit(None).unwrap();
    array.refresh().unwrap();
    assert_eq!((names(&array), cells(&array, "p", ReadOrder::Row).len()), (vec![text("v"), text("p")], 3));
    assert_eq!(late.commit(None).unwrap_err().kind(), ErrorKind::Conflict);
    let history = array.history(&Call::default()).unwrap();
    assert_eq!(history.last().unwrap().operations.iter().filter(|change| change.name == "alter_array").count(), 2);
}

#[test]
fn a_handle_that_fell_behind_is_told_and_nothing_is_a_version() {
    let (array, storage) = created(LINE);
    let late = opened(&storage, At::Latest);
    let version = array.alter(&growing(&[("x", 0, 99_999)]), None).unwrap();
    assert_eq!(version, 1, "nothing became larger");
    array.alter(&adding(vec![attr("q", true, "0")]), Some(text("a column for quality"))).unwrap();
    let history = array.history(&Call::default()).unwrap();
    assert_eq!(history.last().unwrap().message.as_deref(), Some("a column for quality"));
    let error = late.alter(&adding(vec![attr("z", true, "0")]), None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("look at the new schema"), "{error}");
    late.refresh().unwrap();
    late.alter(&adding(vec![attr("z", true, "0")]), None).unwrap();
    assert_eq!(names(&late), ["v", "q", "z"]);
    let reader = opened(&storage, At::Version(1));
    assert_eq!(reader.alter(&dropping("v"), None).unwrap_err().kind(), ErrorKind::Input);
}

#[test]
fn a_new_array_of_an_evolved_schema_begins_anew() {
    let (array, _) = created(FIELD);
    array.alter(&dropping("v"), None).unwrap();
    let schema = Schema::clone(&array.schema().unwrap());
    assert_eq!((schema.attrs()[0].id(), schema.next_id()), (1, 2));
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let copy = create_array_on(&context(&storage).0, storage, "/", schema, false).unwrap();
    let schema = copy.schema().unwrap();
    assert_eq!((schema.attrs()[0].id(), schema.next_id()), (0, 1));
}

#[test]
fn damage_after_the_floor_is_found_whatever_the_schema() {
    let (array, storage) = created(LINE);
    write(&array, &[&[1]], &[10]);
    array.alter(&Evolution { add: vec![attr("q", false, "5")], ..growing(&[("x", 0, 900_000)]) }, None).unwrap();
    let keep = VacuumOptions { keep: Keep::Versions(1), safety_us: 0, dry_run: false };
    array.vacuum(&keep, &Call::default()).unwrap();
    array.refresh().unwrap();
    let many: Vec<i64> = (0..30_000).map(|i| 100_000 + i).collect();
    let wild: Vec<i64> = many.iter().map(|i| noise(*i)).collect();
    write(&array, &[&many], &wild);
    let check = || verify_on(&context(&storage).0, storage.clone(), &Call::default()).unwrap();
    assert!(check().damage.is_empty(), "{:?}", check().damage);
    let fragment = array.fragments().unwrap().into_iter().find(|f| !f.inline && f.cells == 30_000).unwrap();
    let name = format!("_data/{}.frag", fragment.id);
    let mut bytes = storage.read_all(&name).unwrap().to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    storage.put(&name, &bytes).unwrap();
    let damage = check().damage;
    assert_eq!(damage.len(), 1, "{damage:?}");
    assert_eq!((damage[0].object.as_str(), damage[0].cells[0].array.as_str()), (name.as_str(), "/"));
}

/// Cells along a curve, before and after the domain grew at both ends, past the frame of the curve: inside, outside and tied
/// in its corner.
#[test]
fn cells_along_a_curve_stay_when_the_domain_grows() {
    let (old, few) = (Some(("key", 4, 15)), Some(("value", 1, 5)));
    let kinds = [(false, "null"), (true, "null"), (false, "\"4\""), (true, "\"4\"")];
    for (frame, (duplicates, tile)) in [None, old, few].into_iter().flat_map(|frame| kinds.map(|kind| (frame, kind))) {
        let schema = format!(
            r#"{{"sparse":true,"capacity":5,"cell_order":"hilbert","duplicates":{duplicates},
            "dims":[{{"name":"y","dtype":"int64","domain":["0","9"]}},{{"name":"x","dtype":"int64","domain":["0","9"],"tile":{tile}}}],
            "attrs":[{{"name":"v","dtype":"int64"}}]"#
        );
        let schema = frame.map_or(Schema::from_json(&format!("{schema}}}")), |(by, bits, high)| {
            let low = if tile == "null" { 1u64 << 63 } else { 0 };
            let sides = format!(r#"[["{}","{}"],["{low}","{}"]]"#, 1u64 << 63, (1u64 << 63) + high, low + high);
            Schema::from_stored_json(&format!(r#"{schema},"frame":{{"by":"{by}","bits":{bits},"sides":{sides}}}}}"#))
        });
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let (context, on) = context(&storage);
        let array = create_array_on(&context, on, "/", schema.unwrap(), false).unwrap();
        let made = array.schema().unwrap().frame();
        let mut expected: Vec<(Vec<i64>, Option<i64>)> = Vec::new();
        let mut put = |places: &[(i64, i64)], value: i64| {
            let (y, x): (Vec<i64>, Vec<i64>) = places.iter().copied().unzip();
            write(&array, &[&y, &x], &vec![value; y.len()]);
            for (y, x) in places {
                if !duplicates {
                    expected.retain(|(place, _)| place != &[*y, *x]);
                }
                expected.push((vec![*y, *x], Some(value)));
            }
            expected.sort();
        };
        let grid = |lo: i64, hi: i64, step: usize| -> Vec<(i64, i64)> {
            (lo..=hi).step_by(step).flat_map(|y| (lo..=hi).map(move |x| (y, x))).collect()
        };
        put(&grid(0, 9, 1), 1);
        array.alter(&growing(&[("y", -20, 60), ("x", -7, 70)]), None).unwrap();
        assert_eq!(array.schema().unwrap().frame(), made);
        // Behind the frame all have its last place, and below 0 the first.
        put(&grid(-7, 30, 3), 2);
        put(&[(-20, -7), (60, 70), (60, 69), (59, 70), (5, 5), (-1, -1), (-1, 0)], 3);
        put(&[(60, 70), (-20, -7), (16, 16), (17, 16)], 4);
        for merged in [false, true] {
            if merged {
                assert_eq!(all(&array), 1);
            }
            for array in [array.clone(), opened(&storage, At::Latest)] {
                let mut found = cells(&array, "v", ReadOrder::Global);
                found.sort();
                assert_eq!(found, expected, "{frame:?} {duplicates} {tile}");
                let (y, x): (Vec<i64>, Vec<i64>) = found.iter().map(|(p, _)| (p[0], p[1])).unzip();
                let (y, x) = (longs(y), longs(x));
                let (points, _) = array.points(&[y.view(), x.view()], None, &Call::default()).unwrap();
                if !duplicates {
                    assert_eq!(numbers(&points.attrs[0]), found.iter().map(|(_, v)| *v).collect::<Vec<_>>());
                }
            }
            assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
        }
    }
}

/// A new array has a frame by value, however it is created; it is written down and stays.
#[test]
fn new_curves_have_a_frame_by_value() {
    let text = r#"{"sparse":true,"cell_order":"hilbert","dims":[{"name":"y","dtype":"float64","domain":["-2.0","2.0"]},
        {"name":"x","dtype":"int64","domain":["0","99"],"tile":"10"}],"attrs":[{"name":"v","dtype":"int64"}]}"#;
    let (array, storage) = created(text);
    let frame = array.schema().unwrap().frame();
    assert_eq!((frame.framing(), frame.bits(), frame.sides()[1].high), (Framing::Value, 32, 9));
    let schema = || Schema::from_json(text).unwrap();
    let (context, on) = context(&(Arc::new(MemoryStorage::new()) as Arc<dyn Storage>));
    let group = create_group_on(&context, on.clone(), "/").unwrap();
    assert_eq!(group.create_array("a", schema(), false).unwrap().schema().unwrap().frame(), frame);
    let transaction = Transaction::begin_on(&context, on, Isolation::Snapshot).unwrap();
    assert_eq!(transaction.create_array("/b", schema(), false).unwrap().schema().unwrap().frame(), frame);
    array.alter(&growing(&[("x", -5, 150)]), None).unwrap();
    array.alter(&adding(vec![attr("w", true, "0")]), None).unwrap();
    let again = opened(&storage, At::Latest).schema().unwrap();
    assert_eq!((again.frame(), again.dims()[1].origin()), (frame, 1 << 63));
}
