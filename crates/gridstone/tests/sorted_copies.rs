//! Promise: the sorted copy of a pack changes how reads are answered and never what they answer: with it, without it, and whatever
//! became of it, every version reads the same.

use crate::writer::{bytes_of, numbers, view};
use gridstone::base::{CounterSnapshot, Id, Result};
use gridstone::engine::{
    Array, At, Call, CellData, Cells, Column, ColumnView, Condition, Context, Dedup, Durability, Keep, Opened, Options,
    ReadOrder, Strategy, VacuumOptions, create_array_on, open_on, verify_on,
};
use gridstone::schema::{Attribute, Datatype, Evolution, Schema};
use gridstone::storage::{Fault, FaultPlan, FaultyStorage, MemoryStorage, Storage};
use gridstone_testkit::Dice;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Cells along a side.
const SIDE: i64 = 60;
const FOLD: u64 = 16;

fn schema(sparse: bool, duplicates: bool, order: &str) -> Schema {
    let tile = |cells: i64| if order == "hilbert" { "null".to_owned() } else { format!("\"{cells}\"") };
    let json = format!(
        r#"{{"sparse":{sparse},"duplicates":{duplicates},"capacity":64,"cell_order":"{order}",
        "dims":[{{"name":"y","dtype":"int32","domain":["-30","29"],"tile":{}}},
                {{"name":"x","dtype":"int64","domain":["0","59"],"tile":{}}}],
        "attrs":[{{"name":"v","dtype":"int64"}},{{"name":"t","dtype":"string","nullable":true}},
                 {{"name":"w","dtype":"int16","filters":"zstd:1"}}]}}"#,
        tile(20),
        tile(15)
    );
    let json = if sparse { json } else { json.replace(r#""capacity":64,"#, "").replace(r#""duplicates":false,"#, "") };
    Schema::from_json(&json).unwrap()
}

fn context() -> Context {
    let (threads, durability) = (Some(2), Durability::Close);
    Context::new(&Options { threads, durability, fold_versions: FOLD, ..Options::default() }).unwrap()
}

fn open(storage: &Arc<dyn Storage>, at: At) -> Array {
    match open_on(&context(), storage.clone(), "/", at == At::Latest, at).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

fn memory() -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new().near())
}

/// The sorted copies that lie in a store, by name.
fn copies(storage: &Arc<dyn Storage>) -> BTreeSet<String> {
    let names = storage.list("_data").unwrap();
    let id = |name: &String| Id::parse(name.strip_prefix("_data/")?.strip_suffix(".frag")?).ok();
    let magic = |name: &String| storage.read_all(name).unwrap().starts_with(b"GS0SORT\n");
    names.iter().filter(|name| id(name).is_some() && magic(name)).cloned().collect()
}

/// The same store without them.
fn without_copies(storage: &Arc<dyn Storage>) -> Arc<dyn Storage> {
    let (plain, copies) = (MemoryStorage::new().near(), copies(storage));
    for folder in ["_log", "_data", "_manifest"] {
        for name in storage.list(folder).unwrap().into_iter().filter(|name| !copies.contains(name)) {
            plain.put(&name, &storage.read_all(&name).unwrap()).unwrap();
        }
    }
    Arc::new(plain)
}

fn texts(cells: &[(i64, i64)]) -> (Vec<u8>, Vec<u64>, Vec<u8>) {
    let (mut bytes, mut offsets, mut valid) = (Vec::new(), vec![0u64], Vec::new());
    for (y, x) in cells {
        if (x + y) % 5 != 0 {
            bytes.extend(format!("{y}/{x}").into_bytes());
        }
        valid.push(u8::from((x + y) % 5 != 0));
        offsets.push(bytes.len() as u64);
    }
    (bytes, offsets, valid)
}

/// Commits `v`, `t` and `w` of these cells, or `v` alone.
fn tried(array: &Array, cells: &[(i64, i64)], value: i64, alone: bool) -> Result<u64> {
    let (y, x) = places(cells);
    let v = bytes_of((0..).take(cells.len()).map(|n| value * 1_000 + n));
    let w: Vec<u8> = cells.iter().flat_map(|c| (c.0 as i16).to_le_bytes()).collect();
    let (t, offsets, valid) = texts(cells);
    let mut attrs = vec![("v".to_owned(), view(&v))];
    if !alone {
        let t = ColumnView::new(Datatype::String, &t, Some(&offsets), Some(&valid)).unwrap();
        attrs.extend([("t".to_owned(), t), ("w".to_owned(), narrow(Datatype::Int16, &w))]);
    }
    let dims = vec![narrow(Datatype::Int32, &y), view(&x)];
    let data = CellData { dims, attrs, sorted: false, dedup: Dedup::Last };
    array.commit(vec![array.stage_cells(data, &Call::default())?], None)
}

/// Coordinates as the array has them.
fn places(cells: &[(i64, i64)]) -> (Vec<u8>, Vec<u8>) {
    let y = cells.iter().flat_map(|c| (c.0 as i32).to_le_bytes()).collect();
    (y, bytes_of(cells.iter().map(|c| c.1)))
}

fn narrow(datatype: Datatype, bytes: &[u8]) -> ColumnView<'_> {
    ColumnView::new(datatype, bytes, None, None).unwrap()
}

fn some(dice: &mut Dice, count: usize) -> Vec<(i64, i64)> {
    (0..count).map(|_| (dice.below(SIDE as usize) as i64 - 30, dice.below(SIDE as usize) as i64)).collect()
}

/// A box, as text.
fn sub(dice: &mut Dice) -> Vec<(String, String)> {
    let mut side = |low: i64| {
        let (a, b) = (dice.below(SIDE as usize) as i64 + low, dice.below(SIDE as usize) as i64 + low);
        (a.min(b).to_string(), a.max(b).to_string())
    };
    vec![side(-30), side(0)]
}

/// An array after `commits` writes of all kinds, most of them of cells.
fn lived(storage: &Arc<dyn Storage>, schema: Schema, commits: usize, dice: &mut Dice) -> Array {
    let sparse = schema.sparse();
    let array = create_array_on(&context(), storage.clone(), "/", schema, false).unwrap();
    for n in 0..commits as i64 {
        match dice.below(24) {
            0 => {
                let (y, x) = places(&some(dice, 3));
                let gone = array.stage_delete(&[narrow(Datatype::Int32, &y), view(&x)], &Call::default());
                array.commit(vec![gone.unwrap()], None).unwrap();
            }
            1 => {
                let staged = array.stage_delete_box(Some(&sub(dice))).unwrap();
                array.commit(vec![staged], None).unwrap();
            }
            2 => {
                let low = n * 1_000 - 4_000;
                let condition = Condition::parse(&format!("v between {low} and {}", low + 2_002)).unwrap();
                array.delete_where(None, &condition, None, &Call::default()).unwrap();
            }
            3 => {
                let added = Attribute::new(&format!("a{n}"), Datatype::Int16, true, None, "auto").unwrap();
                let wider = vec![("x".to_owned(), "0".to_owned(), (60 + n).to_string())];
                let change = match dice.below(3) {
                    0 if !sparse => Evolution { add: vec![added], ..Evolution::default() },
                    1 => Evolution { nullable: vec!["w".to_owned()], ..Evolution::default() },
                    _ => Evolution { domains: wider, ..Evolution::default() },
                };
                // Hilbert order lets no domain grow.
                let _ = array.alter(&change, None);
            }
            kind => {
                let count = 1 + dice.below(30);
                tried(&array, &some(dice, count), n, !sparse && kind == 4).unwrap();
            }
        }
    }
    array
}

/// All that a version says, asked in many ways.
fn answers(array: &Array, dice: &mut Dice) -> Vec<String> {
    let call = Call::default();
    let mut all = Vec::new();
    let tell = |cells: &Cells| {
        let columns = cells.dims.iter().chain(&cells.attrs);
        let column = |c: &Column| {
            let view = c.view();
            let value = |row| view.is_valid(row).then(|| view.value(row).to_vec());
            format!("{:?}", (0..c.len()).map(value).collect::<Vec<_>>())
        };
        columns.map(column).collect::<Vec<_>>().join(";")
    };
    let v = ["v".to_owned()];
    for order in [ReadOrder::Row, ReadOrder::Col, ReadOrder::Global] {
        all.push(tell(&array.read(None, None, order, &call).unwrap().0));
        all.push(tell(&array.read(Some(&sub(dice)), None, order, &call).unwrap().0));
        all.push(tell(&array.read(Some(&sub(dice)), Some(&v), order, &call).unwrap().0));
    }
    let low = dice.below(120_000);
    let condition = Condition::parse(&format!("v > {low} and x < 40")).unwrap();
    all.push(tell(&array.read_where(Some(&sub(dice)), None, &condition, ReadOrder::Row, &call).unwrap().0));
    let w = ["w".to_owned()];
    all.push(tell(&array.read_where(Some(&sub(dice)), Some(&w), &condition, ReadOrder::Row, &call).unwrap().0));
    for count in [1, 1, 1, 30, 400] {
        let (y, x) = places(&some(dice, count));
        all.push(tell(&array.points(&[narrow(Datatype::Int32, &y), view(&x)], None, &call).unwrap().0));
    }
    all
}

/// Whether every version of two stores says the same, versions in any order through one context each.
fn check_same(one: &Arc<dyn Storage>, other: &Arc<dyn Storage>, versions: u64, seed: u64) {
    let (mine, theirs) = (open(one, At::Latest), open(other, At::Latest));
    for n in 0..=24 {
        let version = if n == 0 { versions } else { 1 + Dice::new(seed * 31 + n).below(versions as usize) as u64 };
        let asked = seed * 7_919 + n;
        let (a, b) = (mine.at(At::Version(version)).unwrap(), theirs.at(At::Version(version)).unwrap());
        let (a, b) = (answers(&a, &mut Dice::new(asked)), answers(&b, &mut Dice::new(asked)));
        for (place, (a, b)) in a.iter().zip(&b).enumerate() {
            assert_eq!(a, b, "seed {seed}, version {version}, question {place}");
        }
    }
}

const KINDS: [(bool, bool, &str); 5] =
    [(true, false, "row"), (true, true, "row"), (true, true, "hilbert"), (false, false, "row"), (true, false, "col")];

#[test]
fn every_version_reads_the_same_with_copies_and_without() {
    for (seed, (sparse, duplicates, order)) in (0..8u64).flat_map(|seed| KINDS.map(|kind| (seed, kind))) {
        let (storage, mut dice) = (memory(), Dice::new(seed));
        let array = lived(&storage, schema(sparse, duplicates, order), 110, &mut dice);
        assert!(copies(&storage).len() >= 3, "{} copies", copies(&storage).len());
        check_same(&storage, &without_copies(&storage), array.version(), seed);
        // A handle that was open all the time, and holds fragments that are in copies by now.
        let latest = answers(&open(&without_copies(&storage), At::Latest), &mut Dice::new(seed));
        assert_eq!(answers(&array, &mut Dice::new(seed)), latest);
        let report = verify_on(&context(), storage.clone(), &Call::default()).unwrap();
        assert!(report.damage.is_empty() && report.orphans.objects == 0, "{report:?}");
        array.consolidate(&Strategy::All, 1 << 20, false, &Call::default()).unwrap();
        assert_eq!(answers(&array, &mut Dice::new(seed)), latest, "merged from copies: seed {seed}");
    }
}

/// A hundred commits of scattered cells in a large square, and what a read of one box there costs.
fn scattered(storage: &Arc<dyn Storage>) -> (Array, CounterSnapshot, CounterSnapshot) {
    let json = r#"{"sparse":true,"dims":[{"name":"y","dtype":"int64","domain":["0","9999"],"tile":"1000"},
        {"name":"x","dtype":"int64","domain":["0","9999"],"tile":"1000"}],"attrs":[{"name":"v","dtype":"int64"}]}"#;
    let array = create_array_on(&context(), storage.clone(), "/", Schema::from_json(json).unwrap(), false).unwrap();
    let mut dice = Dice::new(3);
    for n in 0..(6 * FOLD as i64) {
        let cells: Vec<(i64, i64)> = (0..100).map(|_| (dice.below(10_000) as i64, dice.below(10_000) as i64)).collect();
        let (y, x) = (bytes_of(cells.iter().map(|c| c.0)), bytes_of(cells.iter().map(|c| c.1)));
        let v = bytes_of((0..100).map(|i| n * 100 + i));
        let attrs = vec![("v".to_owned(), view(&v))];
        let data = CellData { dims: vec![view(&y), view(&x)], attrs, sorted: false, dedup: Dedup::Last };
        array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
    }
    let asked = [("2000".to_owned(), "2499".to_owned()), ("7000".to_owned(), "7499".to_owned())];
    let cost = |storage: &Arc<dyn Storage>| {
        let (cells, _, counters) =
            open(storage, At::Latest).read(Some(&asked), None, ReadOrder::Row, &Call::default()).unwrap();
        (numbers(&cells.attrs[0]), counters)
    };
    let ((with, cheap), (without, dear)) = (cost(storage), cost(&without_copies(storage)));
    assert_eq!(with, without);
    assert!(with.len() > 10);
    (array, cheap, dear)
}

#[test]
fn a_small_box_opens_few_of_many_small_fragments() {
    let storage = memory();
    let (_, with, without) = scattered(&storage);
    // Six folds, of which the first packed one fragment less; what came since is in the log.
    assert!(with.fragments_touched <= 6 + 1 && without.fragments_touched >= 90, "{with:?} {without:?}");
    assert!(with.bytes_decoded * 3 < without.bytes_decoded, "{with:?}");
}

/// Wherever a copy is damaged, or cut short, or another file lies in its place: reads answer as without it.
#[test]
fn damaged_copies_are_passed_over() {
    for (sparse, duplicates, order) in KINDS {
        let (storage, mut dice) = (memory(), Dice::new(5));
        lived(&storage, schema(sparse, duplicates, order), 70, &mut dice);
        let plain = without_copies(&storage);
        let read = |name: String| (storage.read_all(&name).unwrap().to_vec(), name);
        let sound: Vec<(Vec<u8>, String)> = copies(&storage).into_iter().map(read).collect();
        assert!(sound.len() >= 3);
        for round in 0..60 {
            for (n, (bytes, name)) in sound.iter().enumerate() {
                let mut changed = bytes.clone();
                let at = dice.below(changed.len());
                match round % 6 {
                    0 => changed.truncate(at),
                    // Another's in its place.
                    1 => changed = sound[(n + 1) % sound.len()].0.clone(),
                    _ => (0..1 + dice.below(20)).for_each(|_| {
                        let at = dice.below(bytes.len());
                        changed[at] ^= 1 << dice.below(8);
                    }),
                }
                storage.put(name, &changed).unwrap();
            }
            let expected = answers(&open(&plain, At::Latest), &mut Dice::new(round));
            assert_eq!(answers(&open(&storage, At::Latest), &mut Dice::new(round)), expected, "round {round}");
        }
    }
}

/// Whatever fails while a copy is written: the commit before it stands, and is acknowledged.
#[test]
fn a_commit_stands_whether_its_copy_can_be_written_or_not() {
    for fault in [Fault::Error, Fault::ErrorAfter, Fault::Torn, Fault::Full, Fault::Kill] {
        let mut after = 0;
        for n in 1.. {
            let plan = FaultPlan::new();
            let storage: Arc<dyn Storage> = Arc::new(FaultyStorage::new(memory(), plan.clone()));
            let array = create_array_on(&context(), storage.clone(), "/", schema(true, false, "row"), false).unwrap();
            let mut dice = Dice::new(9);
            for value in 0..FOLD as i64 - 1 {
                tried(&array, &some(&mut dice, 10), value, false).unwrap();
            }
            plan.clear();
            plan.fail_nth(n, fault);
            let outcome = tried(&array, &some(&mut dice, 10), FOLD as i64, false);
            let struck = plan.struck();
            plan.clear();
            after += usize::from(struck && outcome.is_ok());
            check_same(&storage, &without_copies(&storage), open(&storage, At::Latest).version(), n);
            if !struck {
                assert_eq!(copies(&storage).len(), 1);
                break;
            }
        }
        assert!(after >= 3, "{fault:?} struck {after} times after the commit");
    }
}

/// A vacuum leaves the copies of packs that kept versions name, and takes those of others.
#[test]
fn a_copy_stays_and_goes_with_its_pack() {
    let storage = memory();
    let mut dice = Dice::new(11);
    let array = lived(&storage, schema(true, false, "row"), 80, &mut dice);
    let before = copies(&storage);
    assert!(before.len() >= 3);
    let vacuum = |keep| array.vacuum(&VacuumOptions { keep, safety_us: 0, dry_run: false }, &Call::default()).unwrap();
    vacuum(Keep::Versions(1));
    assert_eq!(copies(&storage), before, "the newest version names all packs");
    array.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
    vacuum(Keep::Versions(1));
    assert_eq!(copies(&storage), BTreeSet::new());
    let left = storage.list("_data").unwrap();
    assert!(left.len() <= 2, "{left:?}");
}
