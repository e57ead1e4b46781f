//! Promise: fragments that a condition rules out by the bounds of their values are not opened, and nothing that they hide shows.

use crate::support::columns::{longs, numbers};
use crate::support::copy::{HISTORY, WHOLE, array, copied, memory};
use crate::support::store::options;
use crate::support::writer::context;
use gridstone::base::{AlignedBuf, CounterSnapshot, ErrorKind};
use gridstone::engine::{
    Array, At, Call, CellData, Column, Condition, Context, Dedup, Keep, Options, ReadOrder, Receipt, RepairOptions,
    Staged, Strategy, commit_receipts_on, create_array_on, repair_on, verify_on,
};
use gridstone::schema::{Attribute, Datatype, Evolution, Order, Schema};
use gridstone::storage::{CountingStorage, Storage};
use std::sync::Arc;

const LINE: &str = r#"{"sparse":true,"duplicates":DUPLICATES,"dims":[{"name":"x","dtype":"int64","domain":["0","999999"],"tile":"1000"}],
    "attrs":[{"name":"v","dtype":"int64"},{"name":"w","dtype":"int64"}]}"#;
const FIELD: &str = r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","99"],"tile":"10"}],
    "attrs":[{"name":"v","dtype":"int64"},{"name":"w","dtype":"int64"}]}"#;

fn created(json: &str) -> (Array, Arc<dyn Storage>) {
    let (storage, schema) = (memory(), Schema::from_json(json).unwrap());
    (create_array_on(&context(), storage.clone(), "/a", schema, false).unwrap(), storage)
}

fn line(duplicates: bool) -> (Array, Arc<dyn Storage>) {
    created(&LINE.replace("DUPLICATES", &duplicates.to_string()))
}

/// Cells from `from` to `to` with the value `v`; `w` is their place.
fn staged(array: &Array, (from, to): (i64, i64), v: i64) -> Staged {
    let (x, v) = (longs(from..=to), longs((from..=to).map(|_| v)));
    let attrs = vec![("v".to_owned(), v.view()), ("w".to_owned(), x.view())];
    let data = CellData { dims: vec![x.view()], attrs, sorted: false, dedup: Dedup::Error };
    array.stage_cells(data, &Call::default()).unwrap()
}

fn write(array: &Array, cells: (i64, i64), v: i64) {
    array.commit(vec![staged(array, cells, v)], None).unwrap();
}

/// The same of a dense array, of some attributes.
fn paint(array: &Array, (from, to): (i64, i64), attrs: &[(&str, i64)]) {
    let columns: Vec<Column> = attrs.iter().map(|(_, v)| longs((from..=to).map(|_| *v))).collect();
    let data = attrs.iter().zip(&columns).map(|((name, _), column)| ((*name).to_owned(), column.view())).collect();
    let sub = [(from.to_string(), to.to_string())];
    let made = array.stage_dense(Some(&sub), &data, Order::Row, &Call::default()).unwrap();
    array.commit(vec![made], None).unwrap();
}

/// The coordinates and the values of an attribute where a condition selects cells, which a stream finds too.
fn found(array: &Array, text: &str, attr: &str) -> (Vec<i64>, Vec<i64>, CounterSnapshot) {
    let (condition, attrs) = (Condition::parse(text).unwrap(), [attr.to_owned()]);
    let read = array.read_where(None, Some(&attrs), &condition, ReadOrder::Row, &Call::default());
    let (cells, counters) = read.unwrap();
    let (places, values) = (numbers(&cells.dims[0]), numbers(&cells.attrs[0]));
    let mut scan = array.scan_where(None, Some(&attrs), &condition, ReadOrder::Row, 1 << 20, &Call::default()).unwrap();
    let mut streamed = Vec::new();
    while let Some(batch) = scan.next_batch().unwrap() {
        streamed.extend(numbers(&batch.dims[0]));
    }
    assert_eq!(streamed, places, "{text}");
    (places, values, counters)
}

/// How many fragments a condition leaves unopened, and the places that it selects.
fn unopened(array: &Array, text: &str) -> (u64, Vec<i64>) {
    let (places, _, counters) = found(array, text, "w");
    (counters.fragments_pruned, places)
}

fn places(ranges: &[(i64, i64)]) -> Vec<i64> {
    ranges.iter().flat_map(|(from, to)| *from..=*to).collect()
}

#[test]
fn of_ten_thousand_fragments_a_condition_opens_three() {
    for (json, step) in [(LINE.replace("DUPLICATES", "false"), 10), (LINE.replace("DUPLICATES", "true"), 5)] {
        let (made, storage) = created(&json);
        for commit in 0..10 {
            let small = |n: i64| staged(&made, (n * step, n * step + 6), n + 1);
            let staged = (commit * 1_000..(commit + 1) * 1_000).map(small).collect();
            made.commit(staged, None).unwrap();
        }
        made.vacuum(&options(Keep::Versions(1)), &Call::default()).unwrap();
        let counting = Arc::new(CountingStorage::new(storage.clone()));
        let counted: Arc<dyn Storage> = counting.clone();
        let one = Context::new(&Options { threads: Some(1), ..Options::default() }).unwrap();
        let opened = array(&one, &counted, "/a", At::Latest);
        counting.reset();
        let condition = Condition::parse("v between 5000 and 5002").unwrap();
        let (cells, counters) = opened.read_where(None, None, &condition, ReadOrder::Row, &Call::default()).unwrap();
        assert_eq!((cells.count, counters.fragments_pruned, counters.fragments_touched), (21, 9_997, 3), "{step}");
        assert_eq!(counters.fragments_considered, 10_000);
        let seen = counting.snapshot();
        let pages = seen.reads.iter().filter(|(name, _)| name.starts_with("_manifest/")).map(|(_, n)| n).sum::<u64>();
        assert!(pages <= 8 && seen.total() <= 40, "{seen:?}");
        let data: Vec<_> = seen.touched.iter().filter(|name| name.starts_with("_data/")).collect();
        assert!(data.iter().all(|name| *name == data[0]), "one pack: {data:?}");
    }
}

/// Ten thousand fragments beside each other; their values are in no order.
#[test]
fn of_ten_thousand_fragments_those_that_match_are_opened_at_any_share() {
    let (made, storage) = line(false);
    for commit in 0..10 {
        let small = |n: i64| staged(&made, (n * 10, n * 10 + 6), n * 7_919 % 10_000);
        made.commit((commit * 1_000..(commit + 1) * 1_000).map(small).collect(), None).unwrap();
    }
    for matches in [10, 100, 1_000, 5_000, 9_999] {
        let condition = Condition::parse(&format!("v < {matches}")).unwrap();
        // Another reader, which holds none of them yet.
        let reader = array(&context(), &storage, "/a", At::Latest);
        let (cells, counters) = reader.read_where(None, None, &condition, ReadOrder::Any, &Call::default()).unwrap();
        let opened = (counters.fragments_touched, counters.fragments_pruned);
        assert_eq!((cells.count as u64, opened), (7 * matches, (matches, 10_000 - matches)), "{matches}");
    }
    // Where something older that matches lies below all of them, none can be left out.
    let (under, _) = line(false);
    write(&under, (0, 999_999), 0);
    under.commit((0..1_000).map(|n| staged(&under, (n * 10, n * 10 + 6), n + 1)).collect(), None).unwrap();
    assert_eq!(unopened(&under, "v == 0").0, 0);
    assert_eq!(unopened(&under, "v == 7").0, 1_000);
}

#[test]
fn a_sparse_fragment_that_hides_what_is_selected_is_opened() {
    for duplicates in [false, true] {
        let (array, _) = line(duplicates);
        write(&array, (0, 9), 7);
        write(&array, (5, 14), 3);
        write(&array, (20, 29), 3);
        let expected = if duplicates { (2, places(&[(0, 9)])) } else { (1, places(&[(0, 4)])) };
        assert_eq!(unopened(&array, "v == 7"), expected);
        // Below it lies nothing, and below the two others nothing that is selected.
        assert_eq!(unopened(&array, "v == 3"), (1, places(&[(5, 14), (20, 29)])));
        assert_eq!(unopened(&array, "v == 4"), (3, Vec::new()));
        assert_eq!(unopened(&array, "v == 7 or w == 25").0, if duplicates { 1 } else { 0 });
        // A deletion stays, and what it deletes is unopened with it.
        array.delete_where(None, &Condition::parse("v == 3 and x < 10").unwrap(), None, &Call::default()).unwrap();
        let left = if duplicates { places(&[(0, 9)]) } else { places(&[(0, 4)]) };
        assert_eq!(unopened(&array, "v == 7").1, left, "{duplicates}");
        assert_eq!(unopened(&array, "v == 3").1, places(&[(10, 14), (20, 29)]));
    }
}

#[test]
fn a_dense_fragment_that_hides_what_is_selected_is_opened() {
    let (array, _) = created(FIELD);
    paint(&array, (0, 9), &[("v", 5), ("w", 1)]);
    paint(&array, (5, 14), &[("v", 6), ("w", 2)]);
    paint(&array, (50, 59), &[("v", 7), ("w", 3)]);
    assert_eq!(unopened(&array, "v == 5"), (1, places(&[(0, 4)])));
    assert_eq!(unopened(&array, "v == 7"), (2, places(&[(50, 59)])));
    assert_eq!(unopened(&array, "v == 8"), (3, Vec::new()));
    // The fill is selected wherever nothing hides it.
    assert_eq!(unopened(&array, "v == 0"), (0, places(&[(15, 49), (60, 99)])));
    assert_eq!(unopened(&array, "v == 0 and x < 40"), (0, places(&[(15, 39)])));
    assert_eq!(unopened(&array, "v == 0 and x < 40 or v == 5").1, places(&[(0, 4), (15, 39)]));
    // What is selected is of a newer fragment, another value of an older one.
    paint(&array, (50, 54), &[("v", 5)]);
    assert_eq!(found(&array, "v == 5 and x > 20", "w").1, [3; 5]);
    assert_eq!(found(&array, "v == 5 and x > 20", "v").1, [5; 5]);
    // No fragment has both, and cells do.
    assert_eq!(unopened(&array, "v == 5 and w == 3").1, places(&[(50, 54)]));
    paint(&array, (52, 53), &[("w", 8)]);
    assert_eq!(unopened(&array, "v == 5 and w == 8").1, places(&[(52, 53)]));
    assert_eq!(unopened(&array, "v == 9 and w == 8"), (2, Vec::new()));
    // Deleted cells are the fill again.
    array.delete_where(None, &Condition::parse("w == 8").unwrap(), None, &Call::default()).unwrap();
    assert_eq!(unopened(&array, "v == 0 and x > 20").1, places(&[(20 + 1, 49), (52, 53), (60, 99)]));
}

#[test]
fn attributes_that_came_later_or_have_another_name_are_known() {
    let (array, _) = line(false);
    write(&array, (0, 9), 7);
    let more = Attribute::new("n", Datatype::Int64, false, Some("4"), "auto").unwrap();
    let (name, nullable) = (vec![("v".to_owned(), "z".to_owned())], vec!["w".to_owned()]);
    array.alter(&Evolution { add: vec![more], rename: name, nullable, ..Evolution::default() }, None).unwrap();
    let (x, n) = (longs(20..30), longs([5; 10]));
    let attrs = vec![("z".to_owned(), n.view()), ("w".to_owned(), x.view()), ("n".to_owned(), n.view())];
    let data = CellData { dims: vec![x.view()], attrs, sorted: false, dedup: Dedup::Error };
    array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
    assert_eq!(unopened(&array, "n == 4"), (1, places(&[(0, 9)])));
    assert_eq!(unopened(&array, "n == 5"), (1, places(&[(20, 29)])));
    assert_eq!(unopened(&array, "z == 7"), (1, places(&[(0, 9)])));
    assert_eq!(unopened(&array, "w is null"), (2, Vec::new()));
}

#[test]
fn nulls_nan_and_long_texts_rule_out() {
    let schema = r#"{"sparse":true,"dims":[{"name":"x","dtype":"int64","domain":["0","99"],"tile":"10"}],
        "attrs":[{"name":"t","dtype":"string","nullable":true},{"name":"f","dtype":"float32"},{"name":"w","dtype":"int64"}]}"#;
    let (array, _) = created(schema);
    let write = |at: i64, text: Option<&str>, value: f32| {
        let bytes = text.unwrap_or_default().as_bytes();
        let offsets = Some(vec![0, bytes.len() as u64]);
        let valid = Some(vec![u8::from(text.is_some())]);
        let t = Column::new(Datatype::String, AlignedBuf::from_slice(bytes), offsets, valid).unwrap();
        let f = Column::new(Datatype::Float32, AlignedBuf::from_slice(&value.to_le_bytes()), None, None).unwrap();
        let x = longs([at]);
        let attrs = vec![("t".to_owned(), t.view()), ("f".to_owned(), f.view()), ("w".to_owned(), x.view())];
        let data = CellData { dims: vec![x.view()], attrs, sorted: false, dedup: Dedup::Error };
        array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
    };
    let long = "somewhere beyond sixteen bytes";
    write(1, None, f32::NAN);
    write(2, Some(long), -0.0);
    write(3, Some(""), f32::INFINITY);
    for (text, count, at) in [
        ("t is null", 2, &[1][..]),
        ("t is not null", 1, &[2, 3]),
        ("t == 'somewhere beyond sixteen bytes'", 2, &[2]),
        ("t > 'somewhere beyone'", 3, &[]),
        // No more than sixteen bytes are known.
        ("t == 'somewhere beyond sixteen bytez'", 2, &[]),
        ("t <= ''", 2, &[3]),
        ("f != f", 2, &[1]),
        ("f == 0", 2, &[2]),
        ("f < 0", 3, &[]),
        ("f > 1e30", 2, &[3]),
        ("not (f == 0)", 1, &[1, 3]),
    ] {
        assert_eq!(unopened(&array, text), (count, at.to_vec()), "{text}");
    }
}

#[test]
fn bounds_are_kept_by_folds_copies_receipts_merges_and_repairs() {
    let (made, storage) = line(false);
    let texts: Vec<String> = (0..70i64)
        .map(|n| made.receipt(vec![staged(&made, (n * 10, n * 10 + 9), n)]).unwrap().to_json().unwrap())
        .collect();
    for text in &texts {
        commit_receipts_on(&context(), storage.clone(), &[Receipt::from_json(text).unwrap()], None).unwrap();
    }
    let known = |storage: &Arc<dyn Storage>, fragments: u64| {
        let array = array(&context(), storage, "/a", At::Latest);
        assert_eq!(unopened(&array, "v == 33"), (fragments - 1, places(&[(330, 339)])));
        let report = array.verify(&Call::default()).unwrap();
        assert!(report.fragments == fragments && report.damage.is_empty(), "{report:?}");
    };
    known(&storage, 70);
    for copying in [WHOLE, HISTORY] {
        let target = memory();
        copied(&storage, &target, &copying).unwrap();
        known(&target, 70);
    }
    // The pages of the root are made again from the records.
    let is_page = |name: &String| storage.read_all(name).unwrap().starts_with(b"GSPAGE");
    let pages: Vec<String> = storage.list("_manifest").unwrap().into_iter().filter(is_page).collect();
    assert!(!pages.is_empty());
    pages.iter().for_each(|page| storage.delete(page).unwrap());
    repair_on(&context(), storage.clone(), RepairOptions { dry_run: false, cut: false }, &Call::default()).unwrap();
    known(&storage, 70);
    let report = verify_on(&context(), storage.clone(), &Call::default()).unwrap();
    assert!(report.damage.is_empty(), "{report:?}");
    let made = array(&context(), &storage, "/a", At::Latest);
    let first = made.fragments().unwrap().iter().take(20).map(|f| f.id).collect();
    made.consolidate(&Strategy::Fragments(first), 1 << 20, false, &Call::default()).unwrap();
    known(&storage, 51);
    made.consolidate(&Strategy::All, 1 << 20, false, &Call::default()).unwrap();
    let made = array(&context(), &storage, "/a", At::Latest);
    assert_eq!(unopened(&made, "v == 70"), (1, Vec::new()));
}

#[test]
fn bounds_that_leave_out_a_value_are_damage() {
    let (made, storage) = line(false);
    let text = made.receipt(vec![staged(&made, (0, 9), 7)]).unwrap().to_json().unwrap();
    let high = "800000000000000708";
    assert!(text.contains(high), "{text}");
    let commit = |text: &str| commit_receipts_on(&context(), storage.clone(), &[Receipt::from_json(text)?], None);
    for (wrong, kind) in [("0", ErrorKind::Input), ("0G", ErrorKind::Input), ("zz", ErrorKind::Input)] {
        let stats = text.split("\"stats\":\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(commit(&text.replace(stats, wrong)).unwrap_err().kind(), kind, "{wrong}");
    }
    // The high bound of `v` is one less than its values.
    let (low, rest) = text.split_once(high).unwrap();
    assert!(rest.starts_with("8000000000000007"), "{text}");
    commit(&format!("{low}80000000000000070880000000000000{}{}", "06", &rest[16..])).unwrap();
    let report = verify_on(&context(), storage.clone(), &Call::default()).unwrap();
    assert_eq!(report.damage.len(), 1, "{report:?}");
    assert!(format!("{report:?}").contains("beyond the bounds"), "{report:?}");
}
