//! Promise: what is readable is read. With any byte of any object damaged, or the object cut or lost, a read around damage never panics, gives
//! every cell outside of what it reports as it is, and within that the cell as it is or none: never an older value.

use crate::support::columns::{bytes_of, numbers, view};
use gridstone::base::ErrorKind;
use gridstone::engine::{
    Array, At, BlockCells, Call, CellData, Cells, Condition, Context, Dedup, Durability, Opened, Options, ReadOrder,
    SkippedCells, Span, create_array_on, open_on,
};
use gridstone::schema::{Order, Schema};
use gridstone::storage::{MemoryStorage, Storage, log_name};
use gridstone_testkit::{
    Case, Coord, Dice, Expected, Model, Place, Session, Size, Value, box_cells, box_texts, cases, on_random, rows_of,
};
use std::collections::BTreeMap;
use std::sync::Arc;

fn open(storage: &MemoryStorage) -> gridstone::base::Result<Array> {
    let options =
        Options { threads: Some(1), memory_budget: 1 << 20, durability: Durability::Close, ..Options::default() };
    match open_on(&Context::new(&options)?, Arc::new(storage.clone()), "/", false, At::Latest)? {
        Opened::Array(array) => Ok(array),
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

/// The cells of a result over `sub` with their coordinates.
fn placed(model: &Model, sub: &[(Coord, Coord)], cells: &Cells) -> Vec<Expected> {
    let rows = rows_of(model, cells);
    if !cells.dims.is_empty() {
        return rows;
    }
    box_cells(sub).into_iter().zip(rows).map(|(place, (_, values))| (place, values)).collect()
}

/// What an undamaged store reads as, and what may be read where something is left out.
struct Truth<'m> {
    model: &'m Model,
    /// The box that is read, and as text.
    sub: Vec<(Coord, Coord)>,
    texts: Vec<(String, String)>,
    condition: Option<Condition>,
    rows: Vec<Expected>,
    /// By place, without a condition.
    all: BTreeMap<Place, Vec<Vec<Value>>>,
    blank: Vec<Value>,
}

impl<'m> Truth<'m> {
    fn of(model: &'m Model, sub: Vec<(Coord, Coord)>, array: &Array, condition: Option<Condition>) -> Self {
        let (call, texts) = (Call::default(), box_texts(model.dims(), &sub));
        let plain = array.read(Some(&texts), None, ReadOrder::Row, &call).unwrap().0;
        let mut all: BTreeMap<Place, Vec<Vec<Value>>> = BTreeMap::new();
        for (place, values) in placed(model, &sub, &plain) {
            all.entry(place).or_default().push(values);
        }
        let rows = match &condition {
            None => placed(model, &sub, &plain),
            Some(condition) => {
                placed(model, &sub, &array.read_where(Some(&texts), None, condition, ReadOrder::Row, &call).unwrap().0)
            }
        };
        let blank = model.schema().attrs().iter().map(|a| (!a.nullable()).then(|| a.fill().to_vec())).collect();
        Self { model, sub, texts, condition, rows, all, blank }
    }

    fn in_a_hole(&self, skipped: &[SkippedCells], place: &Place) -> bool {
        skipped.iter().any(|hole| {
            let mut sides = self.model.dims().iter().zip(place).zip(&hole.domain);
            sides.all(|((dim, at), (lo, hi))| dim.coord(lo) <= *at && *at <= dim.coord(hi))
        })
    }

    /// Whether these values may be read in a hole: each as it is, or (of a dense array) none.
    fn may_be(&self, (place, values): &Expected) -> bool {
        let dense = !self.model.schema().sparse();
        self.all.get(place).is_some_and(|rows| {
            rows.iter().any(|row| {
                let mut pairs = values.iter().zip(row).zip(&self.blank);
                pairs.all(|((found, there), blank)| found == there || (dense && found == blank))
            })
        })
    }

    fn check(&self, found: &[Expected], skipped: &[SkippedCells], what: &str) {
        if skipped.is_empty() {
            assert_eq!(found, self.rows, "{what}: nothing is said to be left out");
            return;
        }
        let outside = |rows: &[Expected]| -> Vec<Expected> {
            rows.iter().filter(|row| !self.in_a_hole(skipped, &row.0)).cloned().collect()
        };
        assert_eq!(outside(found), outside(&self.rows), "{what}: {skipped:?}");
        let wrong = found.iter().find(|row| !self.may_be(row));
        assert!(wrong.is_none(), "{what}: {wrong:?} was never there, beside {skipped:?}");
        if self.model.schema().sparse() {
            // Nothing is given twice.
            for (place, rows) in &self.all {
                let given = found.iter().filter(|row| row.0 == *place).count();
                assert!(given <= rows.len(), "{what}: {place:?} is there {given} times");
            }
        }
    }

    /// Reads the damaged store; says whether something was left out.
    fn read(&self, storage: &MemoryStorage, name: &str, what: &str) -> bool {
        let array = match open(storage) {
            Ok(array) => array,
            Err(error) => {
                assert!(!name.starts_with("_data"), "{what}: {error}");
                let kinds = [ErrorKind::Corruption, ErrorKind::NotFound, ErrorKind::Unsupported];
                assert!(kinds.contains(&error.kind()), "{what}: {error}");
                return true;
            }
        };
        let call = Call::default();
        let condition = self.condition.as_ref();
        let part = array.read_around(Some(&self.texts), None, condition, ReadOrder::Row, &call);
        // A version that nobody knows is of a later format, and no damage, for all that anyone can tell.
        if part.as_ref().is_err_and(|e| e.kind() == ErrorKind::Unsupported && e.message().contains("knows version")) {
            return true;
        }
        let part = part.unwrap_or_else(|e| panic!("{what}: {e}"));
        self.check(&placed(self.model, &self.sub, &part.cells), &part.skipped, what);
        let (mut scan, skipped) =
            array.scan_around(Some(&self.texts), None, condition, (ReadOrder::Row, 3_000), &call).unwrap();
        let mut found = Vec::new();
        while let Some(batch) = scan.next_batch().unwrap_or_else(|e| panic!("{what}: {e}")) {
            found.extend(placed(self.model, &self.sub, &batch));
        }
        self.check(&found, &skipped, &format!("{what}, streamed"));
        !part.skipped.is_empty()
    }
}

/// One damage of an object: a bit flipped, bytes lost from its end or in its middle, or all of it.
fn damage(bytes: &[u8], dice: &mut Dice) -> (Option<Vec<u8>>, String) {
    let at = dice.below(bytes.len());
    let mut bad = bytes.to_vec();
    match dice.below(8) {
        0 => (None, "lost".to_owned()),
        1 => (Some(bytes[..at].to_vec()), format!("cut to {at} bytes")),
        2 => {
            let end = bytes.len().min(at + 4_096);
            bad[at..end].fill(0);
            (Some(bad), format!("zeros from {at} on"))
        }
        _ => {
            bad[at] ^= 1 << dice.below(8);
            (Some(bad), format!("flipped at {at}"))
        }
    }
}

fn a_condition(model: &Model, dice: &mut Dice) -> Option<Condition> {
    let attrs = model.schema().attrs();
    let attr = attrs.get(dice.below(attrs.len()))?;
    // Those of an enumerated attribute are codes.
    let kind = if attr.categories().is_some() { String::new() } else { attr.datatype().to_string() };
    let text = match kind.as_str() {
        "int8" | "int16" | "int32" | "int64" => format!("{} >= 0", attr.name()),
        "uint8" | "uint16" | "uint32" | "uint64" => format!("{} > 4", attr.name()),
        _ => format!("{} is not null", attr.name()),
    };
    Condition::parse(&text).ok()
}

/// Damages objects of a random store; gives how often that was tried, and how often something was left out.
fn attack(case: &Case, tries: usize) -> (usize, usize) {
    let storage = MemoryStorage::new();
    let mut session = Session::new(case, Arc::new(storage.clone()), false);
    for seed in &case.operations {
        session.step(&mut Dice::new(*seed));
    }
    let (mut dice, healthy) = (Dice::new(case.seed), open(&storage).unwrap());
    let condition = if dice.chance(40) { a_condition(session.model(), &mut dice) } else { None };
    let truth = Truth::of(session.model(), session.plan().everything(), &healthy, condition);
    let objects = |folder: &str| storage.list(folder).unwrap();
    let names: Vec<String> = ["_data", "_data", "_manifest", "_log"].iter().flat_map(|f| objects(f)).collect();
    let newest = log_name(healthy.version());
    let mut noticed = 0;
    for _ in 0..tries {
        let name = dice.pick(&names).clone();
        let whole = storage.read_all(&name).unwrap();
        let (bad, how) = damage(&whole, &mut dice);
        if bad.is_none() && name == newest {
            // Of the loss of the newest record nothing tells.
            continue;
        }
        match &bad {
            Some(bad) => storage.put(&name, bad).unwrap(),
            None => storage.delete(&name).unwrap(),
        }
        let what = format!("{name} {how} of {}", whole.len());
        noticed += usize::from(truth.read(&storage, &name, &what));
        storage.put(&name, &whole).unwrap();
    }
    (tries, noticed)
}

#[test]
fn tiny_arrays_are_read_around_damage() {
    on_random(600, cases(Size::Tiny, 12), |case| {
        attack(case, 12);
    });
}

#[test]
fn arrays_of_many_blocks_are_read_around_damage() {
    on_random(20, cases(Size::Blocks, 6), |case| {
        attack(case, 10);
    });
}

/// A dense array of 40 by 40 cells in blocks of 100, in a file of its own, and an update on top.
fn layered() -> (MemoryStorage, Array) {
    let json = r#"{"dims":[{"name":"y","dtype":"int64","domain":["0","199"],"tile":"100"},{"name":"x","dtype":"int64","domain":["0","199"],"tile":"100"}],
        "attrs":[{"name":"v","dtype":"int64","filters":"none"},{"name":"w","dtype":"int64","filters":"none"}]}"#;
    let storage = MemoryStorage::new();
    let blocks = BlockCells { dense: 1_000, sparse: 100, ..BlockCells::default() };
    let context = Context::new(&Options { threads: Some(1), blocks, ..Options::default() }).unwrap();
    let array =
        create_array_on(&context, Arc::new(storage.clone()), "/", Schema::from_json(json).unwrap(), false).unwrap();
    for base in [0i64, 1_000_000] {
        let (rows, high) = if base == 0 { (200, "199") } else { (100, "99") };
        let values = bytes_of((0..rows * 200).map(|i| base + i));
        let sides = [("0".to_owned(), high.to_owned()), ("0".to_owned(), "199".to_owned())];
        let data = ["v", "w"].map(|name| (name.to_owned(), view(&values))).to_vec();
        let staged = array.stage_dense(Some(&sides), &data, Order::Row, &Call::default()).unwrap();
        array.commit(vec![staged], None).unwrap();
    }
    let (place, value) = (bytes_of([5i64]), bytes_of([-7i64]));
    let dims = vec![view(&place), view(&place)];
    let attrs = ["v", "w"].map(|name| (name.to_owned(), view(&value))).to_vec();
    let data = CellData { dims, attrs, sorted: false, dedup: Dedup::Error };
    array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
    (storage, array)
}

/// A block of a newer fragment that is damaged leaves its cells empty in that attribute; it does not show what lay there before, and what came
/// after it stays.
#[test]
fn a_damaged_newer_block_does_not_reveal_older_values() {
    let (storage, array) = layered();
    let newer = &array.fragments().unwrap()[1];
    let name = format!("_data/{}.frag", newer.id);
    let whole = storage.read_all(&name).unwrap();
    let mut bad = whole.to_vec();
    // The first cell of `v`.
    let first = 1_000_000i64.to_le_bytes();
    let at = whole.windows(8).position(|bytes| bytes == first).unwrap();
    bad[at] ^= 1;
    storage.put(&name, &bad).unwrap();
    let array = open(&storage).unwrap();
    let error = array.read(None, None, ReadOrder::Row, &Call::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    let part = array.read_around(None, None, None, ReadOrder::Row, &Call::default()).unwrap();
    let [hole] = part.skipped.as_slice() else { panic!("{:?}", part.skipped) };
    assert_eq!(
        (hole.fragment, hole.tile, hole.column.as_deref(), hole.cells),
        (Some(newer.id), Some(0), Some("v"), 1_000)
    );
    assert_eq!(hole.domain, [("0".to_owned(), "9".to_owned()), ("0".to_owned(), "99".to_owned())]);
    assert!(hole.message.contains("checksum"), "{}", hole.message);
    let (v, w) = (numbers(&part.cells.attrs[0]), numbers(&part.cells.attrs[1]));
    for (i, (v, w)) in v.into_iter().zip(w).enumerate() {
        let (y, x, i) = (i / 200, i % 200, i as i64);
        let there = if (y, x) == (5, 5) { -7 } else { i + if y < 100 { 1_000_000 } else { 0 } };
        let lost = y < 10 && x < 100 && (y, x) != (5, 5);
        assert_eq!((v, w), (if lost { 0 } else { there }, there), "({y}, {x})");
    }
    assert_eq!(part.counters.regions_skipped, 1);
    // Where nothing is damaged nothing is looked for.
    let sides = [("100".to_owned(), "199".to_owned()), ("0".to_owned(), "199".to_owned())];
    let part = array.read_around(Some(&sides), None, None, ReadOrder::Row, &Call::default()).unwrap();
    assert!(part.skipped.is_empty() && part.counters.regions_skipped == 0);
    // A whole file: its box.
    storage.delete(&name).unwrap();
    let part = open(&storage).unwrap().read_around(None, None, None, ReadOrder::Row, &Call::default()).unwrap();
    let [hole] = part.skipped.as_slice() else { panic!("{:?}", part.skipped) };
    assert_eq!((hole.fragment, hole.tile, hole.column.as_deref(), hole.cells), (Some(newer.id), None, None, 20_000));
    let v = numbers(&part.cells.attrs[0]);
    assert!(v[..20_000].iter().enumerate().all(|(i, v)| *v == if i == 1_005 { -7 } else { 0 }));
    assert!((20_000..40_000).all(|i| v[i] == i as i64));
}

/// A box of [`layered`], rows and columns.
fn of_rows((y0, y1): (u8, u8), (x0, x1): (u8, u8)) -> Vec<Span> {
    [(y0, y1), (x0, x1)].map(|(lo, hi)| Span::between(&lo.to_string(), &hi.to_string())).to_vec()
}

/// What a stream around damage gives: cells, and what it says was left out.
fn streamed(array: &Array, boxes: &[Vec<Span>], condition: Option<&str>) -> (usize, Vec<SkippedCells>) {
    let (region, call) = (array.region(boxes).unwrap(), Call::default());
    let condition = condition.map(|text| Condition::parse(text).unwrap());
    let region = Some(&region).filter(|_| !boxes.is_empty());
    let form = (ReadOrder::Row, 100_000);
    let (mut scan, skipped) = array.scan_region_around(region, None, condition.as_ref(), form, &call).unwrap();
    let mut count = 0;
    while let Some(batch) = scan.next_batch().unwrap() {
        count += batch.count;
    }
    (count, skipped)
}

/// Between the boxes that are asked for, and where a condition selects nothing, damage is nobody's concern; where they touch it, it is.
#[test]
fn damage_where_nobody_looks_is_not_told() {
    let (storage, array) = layered();
    let newer = &array.fragments().unwrap()[1];
    let name = format!("_data/{}.frag", newer.id);
    let mut bad = storage.read_all(&name).unwrap().to_vec();
    // The block of rows 0 to 9 and columns 0 to 99 of `v`, and, in a chunk that it shares with no other, that of rows 40 to 49.
    for first in [1_000_000i64, 1_000_000 + 45 * 200] {
        let at = bad.windows(8).position(|bytes| bytes == first.to_le_bytes()).unwrap();
        bad[at] ^= 1;
    }
    storage.put(&name, &bad).unwrap();
    let array = open(&storage).unwrap();
    let rows = |skipped: &[SkippedCells]| skipped.iter().map(|hole| hole.domain[0].clone()).collect::<Vec<_>>();
    let text = |lo: &str, hi: &str| (lo.to_owned(), hi.to_owned());
    assert_eq!(rows(&streamed(&array, &[], None).1), [text("0", "9"), text("40", "49")]);
    let apart = [of_rows((0, 9), (100, 199)), of_rows((20, 29), (0, 99)), of_rows((60, 69), (0, 9))];
    let (count, skipped) = streamed(&array, &apart, None);
    assert_eq!((count, rows(&skipped)), (2_100, vec![]), "between the boxes");
    let touching = [apart.to_vec(), vec![of_rows((45, 45), (3, 3))]].concat();
    assert_eq!(rows(&streamed(&array, &touching, None).1), [text("40", "49")], "of two one is asked for");
    let region = array.region(&touching).unwrap();
    let part = array.read_region_around(Some(&region), None, None, ReadOrder::Row, &Call::default()).unwrap();
    assert_eq!((rows(&part.skipped), part.counters.regions_skipped), (vec![text("40", "49")], 1));
    for (nothing, boxes) in [("y > 5 and y < 3", 0), ("y < -1", 0), ("y > 100", 1), ("v > 5 and v < 3", 0)] {
        let within: Vec<_> = std::iter::repeat_n(of_rows((0, 50), (0, 199)), boxes).collect();
        assert_eq!(streamed(&array, &within, Some(nothing)), (0, vec![]), "{nothing}");
    }
}

/// A fragment that has only `v` is damaged at each of its bytes in turn: reads by a condition on `w` go around it.
#[test]
fn a_damaged_fragment_of_another_attribute_is_read_around_under_a_condition() {
    let json = r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","9"],"tile":"5"}],
        "attrs":[{"name":"v","dtype":"int64","nullable":true,"filters":"none"},{"name":"w","dtype":"int64","filters":"none"}]}"#;
    let storage = MemoryStorage::new();
    let context = Context::new(&Options { threads: Some(1), ..Options::default() }).unwrap();
    let schema = Schema::from_json(json).unwrap();
    let array = create_array_on(&context, Arc::new(storage.clone()), "/", schema, false).unwrap();
    let write = |(low, high): (i64, i64), names: &[&str]| {
        let values = bytes_of(low..=high);
        let data: Vec<_> = names.iter().map(|name| ((*name).to_owned(), view(&values))).collect();
        let sides = [(low.to_string(), high.to_string())];
        array.commit(vec![array.stage_dense(Some(&sides), &data, Order::Row, &Call::default()).unwrap()], None).unwrap()
    };
    write((0, 9), &["v", "w"]);
    let damaged = log_name(write((3, 8), &["v"]));
    write((0, 0), &["v", "w"]);
    let (whole, condition) = (storage.read_all(&damaged).unwrap(), Condition::parse("w >= 0").unwrap());
    let expected: Vec<u8> = bytes_of(0..10);
    let mut skipped = 0;
    for at in 0..whole.len() {
        let mut bad = whole.to_vec();
        bad[at] ^= 4;
        storage.put(&damaged, &bad).unwrap();
        let Ok(opened) = open(&storage) else { continue };
        let found = opened.read_around(None, None, Some(&condition), ReadOrder::Row, &Call::default());
        let found = found.unwrap_or_else(|error| panic!("flipped at {at}: {error}"));
        if found.skipped.is_empty() {
            assert_eq!(found.cells.attrs[1].view().values(), expected, "flipped at {at}");
        }
        skipped += usize::from(!found.skipped.is_empty());
    }
    assert!(skipped > 100, "{skipped} of {}", whole.len());
}
