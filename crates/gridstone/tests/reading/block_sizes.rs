//! Blocks of any size: written by contexts that choose it, read by contexts that chose another.

use crate::support::array::column;
use gridstone::base::{ByteRange, ErrorKind};
use gridstone::engine::{
    Array, At, BlockCells, Call, CellData, Column, Context, Dedup, Opened, Options, ReadOrder, create_array_on, open_on,
};
use gridstone::fragment::Fragment;
use gridstone::runtime::{SystemClock, SystemEntropy};
use gridstone::schema::{Datatype, Order, Schema};
use gridstone::storage::MemoryStorage;
use gridstone::store::Store;
use gridstone_testkit::Dice;
use std::collections::BTreeMap;
use std::sync::Arc;

const SIDES: (i64, i64) = (300, 400);
/// Dense and sparse.
const SIZES: [(u32, u32); 6] = [(100, 100), (50_000, 50_000), (1_000, 1_000), (16_384, 1_024), (1, 7), (1 << 20, 1)];

type Place = (i64, i64);
type Model = BTreeMap<Place, i64>;

fn context((dense, sparse): (u32, u32)) -> Context {
    let blocks = BlockCells { dense, sparse, ..BlockCells::default() };
    Context::new(&Options { threads: Some(2), blocks, ..Options::default() }).unwrap()
}

fn open(storage: &MemoryStorage, sizes: (u32, u32)) -> Array {
    match open_on(&context(sizes), Arc::new(storage.clone()), "/", true, At::Latest).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

fn create(sparse: bool, filters: &str) -> MemoryStorage {
    let (rows, columns) = SIDES;
    let json = format!(
        r#"{{"sparse":{sparse},"capacity":3000,"dims":[
        {{"name":"y","dtype":"int64","domain":["0","{}"],"tile":"170"}},
        {{"name":"x","dtype":"int64","domain":["0","{}"],"tile":"250"}}],
        "attrs":[{{"name":"v","dtype":"int64","filters":"{filters}"}},{{"name":"n","dtype":"int64","nullable":true}}]}}"#,
        rows - 1,
        columns - 1
    );
    let storage = MemoryStorage::new();
    let schema = Schema::from_json(&json).unwrap();
    create_array_on(&context(SIZES[0]), Arc::new(storage.clone()), "/", schema, false).unwrap();
    storage
}

fn longs(values: impl Iterator<Item = i64>) -> Column {
    column(Datatype::Int64, values.map(i64::to_le_bytes))
}

fn words(column: &Column) -> Vec<i64> {
    column.view().values().as_chunks::<8>().0.iter().map(|word| i64::from_le_bytes(*word)).collect()
}

/// A box inside the domain, inclusive.
fn a_box(dice: &mut Dice) -> [(i64, i64); 2] {
    [SIDES.0, SIDES.1].map(|side| {
        let (a, b) = (dice.below(side as usize) as i64, dice.below(side as usize) as i64);
        (a.min(b), a.max(b))
    })
}

fn texts(sub: [(i64, i64); 2]) -> Vec<(String, String)> {
    sub.map(|(lo, hi)| (lo.to_string(), hi.to_string())).to_vec()
}

fn places([ys, xs]: [(i64, i64); 2]) -> impl Iterator<Item = Place> + Clone {
    (ys.0..=ys.1).flat_map(move |y| (xs.0..=xs.1).map(move |x| (y, x)))
}

fn write_box(array: &Array, model: &mut Model, sub: [(i64, i64); 2], seed: i64) {
    let value = |(y, x): Place| y * 1_000 + x * (seed % 7) + seed;
    let v = longs(places(sub).map(value));
    let data = vec![("v".to_owned(), v.view()), ("n".to_owned(), v.view())];
    let staged = array.stage_dense(Some(&texts(sub)), &data, Order::Row, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
    model.extend(places(sub).map(|place| (place, value(place))));
}

fn write_cells(array: &Array, model: &mut Model, count: usize, dice: &mut Dice) {
    let cells: Model =
        (0..count).map(|_| ((dice.below(300) as i64, dice.below(400) as i64), dice.below(1 << 40) as i64)).collect();
    let (y, x) = (longs(cells.keys().map(|p| p.0)), longs(cells.keys().map(|p| p.1)));
    let v = longs(cells.values().copied());
    let attrs = vec![("v".to_owned(), v.view()), ("n".to_owned(), v.view())];
    let data = CellData { dims: vec![y.view(), x.view()], attrs, sorted: false, dedup: Dedup::Error };
    array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
    model.extend(cells);
}

fn delete(array: &Array, model: &mut Model, count: usize, dice: &mut Dice) {
    let places: Vec<Place> = (0..count).map(|_| (dice.below(300) as i64, dice.below(400) as i64)).collect();
    let (y, x) = (longs(places.iter().map(|p| p.0)), longs(places.iter().map(|p| p.1)));
    array.commit(vec![array.stage_delete(&[y.view(), x.view()], &Call::default()).unwrap()], None).unwrap();
    places.iter().for_each(|place| {
        model.remove(place);
    });
}

/// Boxes, streams and points, through contexts of every size.
fn check(storage: &MemoryStorage, model: &Model, sparse: bool, fill: i64, dice: &mut Dice) {
    for sizes in SIZES {
        let array = open(storage, sizes);
        let everything = [(0, SIDES.0 - 1), (0, SIDES.1 - 1)];
        for sub in [everything, a_box(dice), a_box(dice), [(170, 170), (3, 399)], [(0, 299), (250, 250)]] {
            let inside: Vec<(Place, i64)> = if sparse {
                let [ys, xs] = sub;
                let inside = |(y, x): &Place| (ys.0..=ys.1).contains(y) && (xs.0..=xs.1).contains(x);
                model.iter().filter(|(place, _)| inside(place)).map(|(p, v)| (*p, *v)).collect()
            } else {
                places(sub).map(|place| (place, model.get(&place).copied().unwrap_or(fill))).collect()
            };
            let expected: Vec<i64> = inside.iter().map(|(_, v)| *v).collect();
            let (cells, ..) = array.read(Some(&texts(sub)), None, ReadOrder::Row, &Call::default()).unwrap();
            assert_eq!(words(&cells.attrs[0]), expected, "{sizes:?} {sub:?}");
            let valid = |(row, place): (usize, &Place)| {
                cells.attrs[1].view().is_valid(row) == model.contains_key(place)
                    && model.get(place).is_none_or(|v| words(&cells.attrs[1])[row] == *v)
            };
            let few = inside.iter().enumerate().step_by(997).map(|(row, (place, _))| (row, place));
            assert!(few.into_iter().all(valid), "{sizes:?} {sub:?}");
            let mut scan = array.scan(Some(&texts(sub)), None, ReadOrder::Row, 100_000, &Call::default()).unwrap();
            let mut streamed = Vec::new();
            while let Some(batch) = scan.next_batch().unwrap() {
                streamed.extend(words(&batch.attrs[0]));
            }
            assert_eq!(streamed, expected, "{sizes:?} {sub:?}");
        }
        let asked: Vec<Place> = (0..500).map(|_| (dice.below(300) as i64, dice.below(400) as i64)).collect();
        let (y, x) = (longs(asked.iter().map(|p| p.0)), longs(asked.iter().map(|p| p.1)));
        let (cells, _) = array.points(&[y.view(), x.view()], None, &Call::default()).unwrap();
        let found = asked.iter().filter(|p| !sparse || model.contains_key(p));
        let expected: Vec<i64> = found.map(|p| model.get(p).copied().unwrap_or(fill)).collect();
        assert_eq!(words(&cells.attrs[0]), expected, "{sizes:?}");
        assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
    }
}

/// The block sizes that the fragments record, oldest fragment first.
fn recorded(storage: &MemoryStorage) -> Vec<u32> {
    let store = Store::new(Arc::new(storage.clone()), Arc::new(SystemClock), Arc::new(SystemEntropy));
    let snapshot = store.latest().unwrap();
    let state = snapshot.array_by_id(snapshot.node("/").unwrap().id()).unwrap();
    let schema = state.schema();
    let open = |description: Arc<gridstone::fragment::Description>| {
        let source = store.files().open(description.location.file).unwrap();
        assert!(source.read_one(ByteRange::new(description.location.offset, 8)).is_ok());
        Fragment::open(source, description, schema).unwrap().root().block_cells
    };
    state.fragments(None).unwrap().into_iter().map(open).collect()
}

#[test]
fn dense_arrays_of_mixed_block_sizes_read_back() {
    for filters in ["none", "auto"] {
        let storage = create(false, filters);
        let (mut model, mut dice) = (Model::new(), Dice::new(17));
        let fill = i64::MIN;
        for (round, sizes) in SIZES.into_iter().enumerate() {
            let array = open(&storage, sizes);
            let sub = if round == 1 { [(0, SIDES.0 - 1), (0, SIDES.1 - 1)] } else { a_box(&mut dice) };
            write_box(&array, &mut model, sub, round as i64 + 1);
            write_cells(&array, &mut model, if round % 2 == 0 { 20_000 } else { 50 }, &mut dice);
        }
        let found = recorded(&storage);
        let expected: Vec<u32> = SIZES.iter().flat_map(|(dense, sparse)| [*dense, *sparse]).collect();
        assert_eq!(found, expected);
        check(&storage, &model, false, fill, &mut dice);
    }
}

#[test]
fn sparse_arrays_of_mixed_block_sizes_read_back() {
    let storage = create(true, "auto");
    let (mut model, mut dice) = (Model::new(), Dice::new(18));
    for sizes in SIZES {
        let array = open(&storage, sizes);
        write_cells(&array, &mut model, 15_000, &mut dice);
        check_alone_and_merged(&storage, &model, &mut dice);
        delete(&array, &mut model, 3_000, &mut dice);
    }
    assert_eq!(recorded(&storage), SIZES.map(|(_, sparse)| [sparse; 2]).concat());
    check(&storage, &model, true, 0, &mut dice);
}

/// The first fragment stands alone, the later ones are merged.
fn check_alone_and_merged(storage: &MemoryStorage, model: &Model, dice: &mut Dice) {
    let array = open(storage, SIZES[dice.below(SIZES.len())]);
    let (cells, ..) = array.read(None, None, ReadOrder::Row, &Call::default()).unwrap();
    assert_eq!(words(&cells.attrs[0]), model.values().copied().collect::<Vec<_>>());
}

#[test]
fn impossible_block_sizes_are_refused() {
    for (dense, sparse) in [(0, 1_024), (16_384, 0), ((1 << 20) + 1, 1), (1, u32::MAX)] {
        let blocks = BlockCells { dense, sparse, ..BlockCells::default() };
        let error = Context::new(&Options { blocks, ..Options::default() }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    }
}
