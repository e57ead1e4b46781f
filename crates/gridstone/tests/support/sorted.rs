//! Arrays with a random life in a store that has sorted copies, and the answers of all their versions.

use super::columns::{bytes_of, view};
use gridstone::base::{Id, Result};
use gridstone::engine::{
    Array, At, Call, CellData, Cells, Column, ColumnView, Condition, Context, Dedup, Durability, Opened, Options,
    ReadOrder, create_array_on, open_on,
};
use gridstone::schema::{Attribute, Datatype, Evolution, Schema};
use gridstone::storage::{MemoryStorage, Storage};
use gridstone_testkit::Dice;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Cells along a side.
const SIDE: i64 = 60;
pub(crate) const FOLD: u64 = 16;

/// `order`: of cells; "text" stands for row order along a dimension of texts, "tied" for a curve with few places.
pub(crate) fn schema(sparse: bool, duplicates: bool, order: &str) -> Schema {
    let tied = order == "tied";
    let (order, y) = match order {
        "text" => ("row", r#"{"name":"y","dtype":"string","max_bytes":15}"#),
        "hilbert" | "tied" => ("hilbert", r#"{"name":"y","dtype":"int32","domain":["-30","29"],"tile":null}"#),
        _ => (order, r#"{"name":"y","dtype":"int32","domain":["-30","29"],"tile":"20"}"#),
    };
    let tile = |cells: i64| if order == "hilbert" { "null".to_owned() } else { format!("\"{cells}\"") };
    let json = format!(
        r#"{{"sparse":{sparse},"duplicates":{duplicates},"capacity":64,"cell_order":"{order}",
        "dims":[{y},{{"name":"x","dtype":"int64","domain":["0","59"],"tile":{}}}],
        "attrs":[{{"name":"v","dtype":"int64"}},{{"name":"t","dtype":"string","nullable":true}},
                 {{"name":"w","dtype":"int16","filters":"zstd:1"}}]}}"#,
        tile(15)
    );
    if tied {
        let low = |value: i64| (1u64 << 63).wrapping_add_signed(value);
        let sides = format!(r#"[["{}","{}"],["{}","{}"]]"#, low(-30), low(29), low(10), low(39));
        let made = json.trim_end_matches('}');
        return Schema::from_stored_json(&format!(r#"{made},"frame":{{"by":"value","bits":2,"sides":{sides}}}}}"#))
            .unwrap();
    }
    let bare = |json: String| json.replace(r#""capacity":64,"#, "").replace(r#""duplicates":false,"#, "");
    Schema::from_json(&if sparse { json } else { bare(json) }).unwrap()
}

pub(crate) fn options() -> Options {
    Options { threads: Some(2), durability: Durability::Close, fold_versions: FOLD, ..Options::default() }
}

pub(crate) fn context() -> Context {
    Context::new(&options()).unwrap()
}

pub(crate) fn open(storage: &Arc<dyn Storage>, at: At) -> Array {
    match open_on(&context(), storage.clone(), "/", at == At::Latest, at).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

pub(crate) fn memory() -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new().near())
}

/// The sorted copies that lie in a store, by name.
pub(crate) fn copies(storage: &Arc<dyn Storage>) -> BTreeSet<String> {
    let names = storage.list("_data").unwrap();
    let id = |name: &String| Id::parse(name.strip_prefix("_data/")?.strip_suffix(".frag")?).ok();
    let magic = |name: &String| storage.read_all(name).unwrap().starts_with(b"GS0SORT\n");
    names.iter().filter(|name| id(name).is_some() && magic(name)).cloned().collect()
}

/// The same store without them.
pub(crate) fn without_copies(storage: &Arc<dyn Storage>) -> Arc<dyn Storage> {
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
pub(crate) fn tried(array: &Array, cells: &[(i64, i64)], value: i64, alone: bool) -> Result<u64> {
    let places = Places::of(array, cells);
    let v = bytes_of((0..).take(cells.len()).map(|n| value * 1_000 + n));
    let w: Vec<u8> = cells.iter().flat_map(|c| (c.0 as i16).to_le_bytes()).collect();
    let (t, offsets, valid) = texts(cells);
    let mut attrs = vec![("v".to_owned(), view(&v))];
    if !alone {
        let t = ColumnView::new(Datatype::String, &t, Some(&offsets), Some(&valid)).unwrap();
        attrs.extend([("t".to_owned(), t), ("w".to_owned(), narrow(Datatype::Int16, &w))]);
        let schema = array.schema()?;
        attrs.retain(|(name, _)| schema.attr(name).is_ok());
    }
    let data = CellData { dims: places.views().to_vec(), attrs, sorted: false, dedup: Dedup::Last };
    array.commit(vec![array.stage_cells(data, &Call::default())?], None)
}

/// Coordinates as an array has them.
struct Places {
    y: Vec<u8>,
    /// Where `y` is text.
    offsets: Option<Vec<u64>>,
    x: Vec<u8>,
}

impl Places {
    fn of(array: &Array, cells: &[(i64, i64)]) -> Self {
        let x = bytes_of(cells.iter().map(|c| c.1));
        if !is_text(array) {
            return Self { y: cells.iter().flat_map(|c| (c.0 as i32).to_le_bytes()).collect(), offsets: None, x };
        }
        let texts: Vec<String> = cells.iter().map(|c| text_of(c.0)).collect();
        let mut offsets = vec![0u64];
        offsets.extend(texts.iter().scan(0, |end, text| {
            *end += text.len() as u64;
            Some(*end)
        }));
        Self { y: texts.concat().into_bytes(), offsets: Some(offsets), x }
    }

    fn views(&self) -> [ColumnView<'_>; 2] {
        let y = match &self.offsets {
            None => narrow(Datatype::Int32, &self.y),
            Some(offsets) => ColumnView::new(Datatype::String, &self.y, Some(offsets), None).unwrap(),
        };
        [y, view(&self.x)]
    }
}

fn is_text(array: &Array) -> bool {
    array.schema().unwrap().coordinates().next().unwrap().datatype() == Datatype::String
}

/// A coordinate as text that sorts as the number does, and is told from others by its second word alone.
fn text_of(y: i64) -> String {
    format!("ordinate {:02}", y + 30)
}

fn narrow(datatype: Datatype, bytes: &[u8]) -> ColumnView<'_> {
    ColumnView::new(datatype, bytes, None, None).unwrap()
}

pub(crate) fn some(dice: &mut Dice, count: usize) -> Vec<(i64, i64)> {
    (0..count).map(|_| (dice.below(SIDE as usize) as i64 - 30, dice.below(SIDE as usize) as i64)).collect()
}

/// A box, as text.
fn sub(array: &Array, dice: &mut Dice) -> Vec<(String, String)> {
    let mut side = |low: i64| {
        let (a, b) = (dice.below(SIDE as usize) as i64 + low, dice.below(SIDE as usize) as i64 + low);
        (a.min(b), a.max(b))
    };
    let (y, x) = (side(-30), side(0));
    let y = if is_text(array) { (text_of(y.0), text_of(y.1)) } else { (y.0.to_string(), y.1.to_string()) };
    vec![y, (x.0.to_string(), x.1.to_string())]
}

/// An array after `commits` writes of all kinds, most of them of cells.
pub(crate) fn lived(storage: &Arc<dyn Storage>, schema: Schema, commits: usize, dice: &mut Dice) -> Array {
    let sparse = schema.sparse();
    let array = create_array_on(&context(), storage.clone(), "/", schema, false).unwrap();
    for n in 0..commits as i64 {
        match dice.below(24) {
            0 => {
                let gone = array.stage_delete(&Places::of(&array, &some(dice, 3)).views(), &Call::default());
                array.commit(vec![gone.unwrap()], None).unwrap();
            }
            1 => {
                let staged = array.stage_delete_box(Some(&sub(&array, dice))).unwrap();
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
                let change = match dice.below(4) {
                    0 if n > 60 => Evolution { drop: vec!["t".to_owned()], ..Evolution::default() },
                    1 if !sparse => Evolution { add: vec![added], ..Evolution::default() },
                    2 => Evolution { nullable: vec!["w".to_owned()], ..Evolution::default() },
                    _ => Evolution { domains: wider, ..Evolution::default() },
                };
                // What is refused changes nothing.
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
pub(crate) fn answers(array: &Array, dice: &mut Dice) -> Vec<String> {
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
        all.push(tell(&array.read(Some(&sub(array, dice)), None, order, &call).unwrap().0));
        all.push(tell(&array.read(Some(&sub(array, dice)), Some(&v), order, &call).unwrap().0));
    }
    let low = dice.below(120_000);
    let condition = Condition::parse(&format!("v > {low} and x < 40")).unwrap();
    all.push(tell(&array.read_where(Some(&sub(array, dice)), None, &condition, ReadOrder::Row, &call).unwrap().0));
    let w = ["w".to_owned()];
    all.push(tell(&array.read_where(Some(&sub(array, dice)), Some(&w), &condition, ReadOrder::Row, &call).unwrap().0));
    for count in [1, 1, 1, 30, 400] {
        let places = Places::of(array, &some(dice, count));
        all.push(tell(&array.points(&places.views(), None, &call).unwrap().0));
    }
    all
}

/// Whether every version of two stores says the same, versions in any order through one context each.
pub(crate) fn check_same(one: &Arc<dyn Storage>, other: &Arc<dyn Storage>, versions: u64, seed: u64) {
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
