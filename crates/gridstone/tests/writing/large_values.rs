//! Promise: values of any sizes can be written, whichever way they come; a block holds no more of them than it has room for,
//! or one cell alone.

use gridstone::base::{AlignedBuf, ErrorKind};
use gridstone::engine::{
    Array, At, BlockCells, Call, CellData, Column, Context, Dedup, Opened, Options, ReadOrder, Strategy,
    create_array_on, open_on,
};
use gridstone::fragment::{Fragment, FragmentKind};
use gridstone::runtime::{SystemClock, SystemEntropy};
use gridstone::schema::{Datatype, Order, Schema};
use gridstone::storage::{MemoryStorage, Storage};
use gridstone::store::Store;
use gridstone::tile::{BlockGrid, TileGrid};
use gridstone_testkit::Dice;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The values of an attribute that may be null, and of one that may not.
type Values = (Option<Vec<u8>>, Vec<u8>);
type Model = BTreeMap<(i64, i64), Values>;

const ROOM: usize = 1_000;
const SIDES: (i64, i64) = (24, 30);

fn context(threads: usize, room_bytes: u64) -> Context {
    let blocks = BlockCells { dense: 64, sparse: 16, room_bytes };
    Context::new(&Options { threads: Some(threads), blocks, ..Options::default() }).unwrap()
}

fn create(storage: &Arc<dyn Storage>, sparse: bool) {
    let json = format!(
        r#"{{"sparse":{sparse},"capacity":50,"dims":[
        {{"name":"y","dtype":"int64","domain":["0","23"],"tile":"10"}},
        {{"name":"x","dtype":"int64","domain":["0","29"],"tile":"12"}}],
        "attrs":[{{"name":"b","dtype":"bytes","nullable":true}},{{"name":"n","dtype":"int32"}},{{"name":"w","dtype":"bytes"}}]}}"#
    );
    create_array_on(&context(1, 1 << 26), storage.clone(), "/", Schema::from_json(&json).unwrap(), false).unwrap();
}

fn open(storage: &Arc<dyn Storage>, threads: usize, room_bytes: u64) -> Array {
    match open_on(&context(threads, room_bytes), storage.clone(), "/", true, At::Latest).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

fn longs(values: impl Iterator<Item = i64>) -> Column {
    let bytes: Vec<u8> = values.flat_map(i64::to_le_bytes).collect();
    Column::new(Datatype::Int64, AlignedBuf::from_slice(&bytes), None, None).unwrap()
}

fn bytes_column<'a>(values: impl Iterator<Item = Option<&'a [u8]>>, nullable: bool) -> Column {
    let (mut all, mut offsets, mut validity) = (Vec::new(), vec![0], Vec::new());
    for value in values {
        all.extend_from_slice(value.unwrap_or_default());
        offsets.push(all.len() as u64);
        validity.push(u8::from(value.is_some()));
    }
    Column::new(Datatype::Bytes, AlignedBuf::from_slice(&all), Some(offsets), nullable.then_some(validity)).unwrap()
}

fn columns<'a>(values: impl Iterator<Item = &'a Values> + Clone) -> [Column; 3] {
    let numbers: Vec<u8> = values.clone().flat_map(|(_, w)| (w.len() as i32).to_le_bytes()).collect();
    [
        bytes_column(values.clone().map(|(b, _)| b.as_deref()), true),
        Column::new(Datatype::Int32, AlignedBuf::from_slice(&numbers), None, None).unwrap(),
        bytes_column(values.map(|(_, w)| Some(w.as_slice())), false),
    ]
}

/// Mostly short, now and then longer than a block has room for; of some kinds all about as long.
fn value(dice: &mut Dice, kind: usize) -> Values {
    let len = |dice: &mut Dice| match (kind, dice.below(20)) {
        (0, 0) => dice.below(3 * ROOM),
        (0, _) => dice.below(9),
        (1, _) => dice.below(ROOM),
        (2, _) => ROOM / 2 + dice.below(2 * ROOM),
        _ => dice.below(90),
    };
    let one = |dice: &mut Dice| {
        let (len, letter) = (len(dice), b'a' + dice.below(20) as u8);
        vec![letter; len]
    };
    let short = one(dice);
    (dice.chance(80).then(|| one(dice)), short)
}

fn places() -> impl Iterator<Item = (i64, i64)> + Clone {
    (0..SIDES.0).flat_map(|y| (0..SIDES.1).map(move |x| (y, x)))
}

fn named(columns: &[Column; 3]) -> Vec<(String, gridstone::engine::ColumnView<'_>)> {
    ["b", "n", "w"].iter().zip(columns).map(|(name, column)| ((*name).to_owned(), column.view())).collect()
}

fn write_box(array: &Array, model: &mut Model, (rows, kind): (std::ops::Range<i64>, usize), dice: &mut Dice) {
    let places: Vec<_> = places().filter(|(y, _)| rows.contains(y)).collect();
    let values: Vec<Values> = places.iter().map(|_| value(dice, kind)).collect();
    let columns = columns(values.iter());
    let sub = [(rows.start.to_string(), (rows.end - 1).to_string()), ("0".to_owned(), (SIDES.1 - 1).to_string())];
    let staged = array.stage_dense(Some(&sub), &named(&columns), Order::Row, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
    model.extend(places.into_iter().zip(values));
}

/// All cells in global order, in portions.
fn stream(array: &Array, model: &mut Model, kind: usize, dice: &mut Dice) {
    let grid = TileGrid::new(&array.schema().unwrap(), &array.schema().unwrap().domain()).unwrap();
    let mut ordered: Vec<(i64, i64)> = Vec::new();
    for tile in 0..grid.len() {
        let (ys, xs) = (grid.coords(tile)[0] as i64 * 10, grid.coords(tile)[1] as i64 * 12);
        ordered.extend(places().filter(|(y, x)| (ys..ys + 10).contains(y) && (xs..xs + 12).contains(x)));
    }
    // Of the first tile the values are short.
    let values: Vec<Values> =
        ordered.iter().zip(0..).map(|(_, n)| value(dice, if n < 120 { 3 } else { kind })).collect();
    let mut writer = array.writer(None, None).unwrap();
    let mut from = 0;
    while from < ordered.len() {
        let to = (from + 1 + dice.below(200)).min(ordered.len());
        let columns = columns(values[from..to].iter());
        let views: Vec<_> = columns.iter().map(Column::view).collect();
        let dims = [longs(ordered[from..to].iter().map(|p| p.0)), longs(ordered[from..to].iter().map(|p| p.1))];
        let dims: Vec<_> = dims.iter().map(Column::view).collect();
        writer.append(&Call::default(), if array.schema().unwrap().sparse() { &dims } else { &[] }, &views).unwrap();
        from = to;
    }
    array.commit(vec![writer.finish(&Call::default()).unwrap()], None).unwrap();
    model.extend(ordered.into_iter().zip(values));
}

fn write_cells(array: &Array, model: &mut Model, kind: usize, dice: &mut Dice) {
    let cells: Model =
        places().filter(|_| dice.chance(40)).collect::<Vec<_>>().into_iter().map(|p| (p, value(dice, kind))).collect();
    let (y, x) = (longs(cells.keys().map(|p| p.0)), longs(cells.keys().map(|p| p.1)));
    let columns = columns(cells.values());
    let data = CellData { dims: vec![y.view(), x.view()], attrs: named(&columns), sorted: false, dedup: Dedup::Error };
    array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
    model.extend(cells);
}

fn check(storage: &Arc<dyn Storage>, model: &Model, what: &str) {
    let array = open(storage, 2, 1 << 26);
    let (cells, ..) = array.read(None, None, ReadOrder::Row, &Call::default()).unwrap();
    assert_eq!(cells.count, model.len(), "{what}");
    let [b, n, w] = [0, 1, 2].map(|place| cells.attrs[place].view());
    for (row, ((y, x), (first, second))) in model.iter().enumerate() {
        assert_eq!(b.is_valid(row).then(|| b.value(row)), first.as_deref(), "{what}: {y}, {x}");
        assert_eq!(
            (w.value(row), n.value(row)),
            (second.as_slice(), &(second.len() as i32).to_le_bytes()[..]),
            "{what}: {y}, {x}"
        );
    }
    assert!(array.verify(&Call::default()).unwrap().damage.is_empty(), "{what}");
}

/// Each block of a fragment holds no more of a column than `room` besides its largest cell; gives how many cells the blocks of each have.
fn blocks(storage: &Arc<dyn Storage>, room: usize, what: &str) -> Vec<u32> {
    let store = Store::new(storage.clone(), Arc::new(SystemClock), Arc::new(SystemEntropy));
    let snapshot = store.latest().unwrap();
    let state = snapshot.array("/").unwrap();
    let schema = state.schema();
    let mut sizes = Vec::new();
    for description in state.fragments(None).unwrap() {
        let source = store.files().open(description.location.file).unwrap();
        let fragment = Fragment::open(source, description, schema).unwrap();
        let root = fragment.root();
        sizes.push(root.block_cells);
        for tile in 0..root.tiles {
            let counts: Vec<usize> = if root.kind == FragmentKind::Dense {
                let region = TileGrid::new(schema, &root.bounds).unwrap().tile_box(tile).unwrap();
                let grid = BlockGrid::new(&region.shape(), Order::Row, u64::from(root.block_cells));
                (0..grid.len()).map(|block| grid.cells(block) as usize).collect()
            } else {
                let (stripe, local) = fragment.stripe_of(tile).unwrap();
                let cells = fragment.stripe(stripe).unwrap().tile_cells(local).unwrap();
                (0..fragment.tile_blocks(tile).unwrap()).map(|b| fragment.sparse_block_cells(cells, b)).collect()
            };
            for (field, (block, cells)) in
                (0..root.fields.len()).flat_map(|f| counts.iter().copied().enumerate().map(move |b| (f, b)))
            {
                if !root.fields[field].datatype.is_var() {
                    continue;
                }
                let place = fragment.block(field, tile, block, cells).unwrap();
                let bytes = fragment.source().read_one(place.range).unwrap();
                let column = fragment.decode(&place, &bytes).unwrap();
                let largest = (0..cells).map(|row| column.view().value(row).len()).max().unwrap_or(0);
                let all = column.view().values().len();
                assert!(
                    all - largest <= room,
                    "{what}: {all} bytes in a block of {cells} cells, the largest has {largest}"
                );
            }
        }
    }
    sizes
}

#[test]
fn values_of_any_sizes_come_back_in_blocks_that_have_room() {
    for (seed, sparse) in [(1, false), (2, true), (3, false), (4, true)] {
        for kind in 0..4 {
            let mut dice = Dice::new(seed * 10 + kind as u64);
            let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
            create(&storage, sparse);
            let (array, mut model) = (open(&storage, 2, ROOM as u64), Model::new());
            let what = format!("sparse {sparse}, kind {kind}, seed {seed}");
            stream(&array, &mut model, kind, &mut dice);
            // A stream cannot know what comes: later blocks may be larger.
            let sizes = blocks(&storage, if sparse { ROOM } else { 4 * ROOM }, &format!("{what}, streamed"));
            assert!(sparse || kind != 2 || sizes.len() > 1, "{what}: no tile is a fragment of its own");
            check(&storage, &model, &what);
            if !sparse {
                write_box(&array, &mut model, (0..SIDES.0, kind), &mut dice);
                write_box(&array, &mut model, (3..17, 3), &mut dice);
            }
            for _ in 0..3 {
                write_cells(&array, &mut model, kind, &mut dice);
            }
            check(&storage, &model, &what);
            array.refresh().unwrap();
            array.consolidate(&Strategy::All, 1 << 40, false, &Call::default()).unwrap();
            let sizes = blocks(&storage, ROOM, &format!("{what}, merged"));
            assert!(sparse || kind == 3 || sizes.iter().any(|cells| *cells < 64), "{what}: {sizes:?}");
            check(&storage, &model, &what);
        }
    }
}

/// What is written, streamed and merged with many threads is what one thread makes of it.
#[test]
fn large_values_do_not_depend_on_threads() {
    for (sparse, kind) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
        let made = [1, 4].map(|threads| {
            let mut dice = Dice::new(7);
            let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
            create(&storage, sparse);
            let (array, mut model) = (open(&storage, threads, ROOM as u64), Model::new());
            stream(&array, &mut model, kind, &mut dice);
            if !sparse {
                write_box(&array, &mut model, (0..SIDES.0, kind), &mut dice);
            }
            write_cells(&array, &mut model, kind, &mut dice);
            let mut files: Vec<Vec<u8>> = fragments(&storage);
            array.refresh().unwrap();
            array.consolidate(&Strategy::All, 1 << 40, false, &Call::default()).unwrap();
            files.extend(fragments(&storage));
            files
        });
        assert!(made[0] == made[1], "sparse {sparse}, kind {kind}");
    }
}

/// What the fragments hold between header and footer, which have their ids.
fn fragments(storage: &Arc<dyn Storage>) -> Vec<Vec<u8>> {
    let store = Store::new(storage.clone(), Arc::new(SystemClock), Arc::new(SystemEntropy));
    let state = store.latest().unwrap();
    let described = state.array("/").unwrap().fragments(None).unwrap();
    let bytes = |d: Arc<gridstone::fragment::Description>| {
        let source = store.files().open(d.location.file).unwrap();
        let range = gridstone::base::ByteRange::new(d.location.offset + 64, d.location.len - 128);
        source.read_one(range).unwrap().to_vec()
    };
    described.into_iter().map(bytes).collect()
}

/// Short values and few large ones do not make blocks smaller.
#[test]
fn a_large_value_among_short_ones_changes_nothing() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    create(&storage, false);
    let (array, mut dice, mut model) = (open(&storage, 2, ROOM as u64), Dice::new(1), Model::new());
    let values: Vec<Values> =
        places().map(|(y, x)| (None, vec![b'a'; if (y, x) == (3, 3) { 9 * ROOM } else { 5 }])).collect();
    let columns = columns(values.iter());
    let staged = array.stage_dense(None, &named(&columns), Order::Row, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
    assert_eq!(blocks(&storage, ROOM, "one large value"), [64]);
    model.extend(places().zip(values));
    check(&storage, &model, "one large value");
    write_box(&array, &mut model, (0..4, 2), &mut dice);
    assert!(blocks(&storage, ROOM, "many large values")[1] < 64);
}

#[test]
fn a_value_that_no_reader_accepts_is_refused_by_name() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    create(&storage, true);
    let array = open(&storage, 1, 1 << 26);
    let large = vec![0; (1 << 29) + 1];
    let w = bytes_column([Some(&b"a"[..]), Some(&large[..])].into_iter(), false);
    let (b, n) = (bytes_column([None, None].into_iter(), true), AlignedBuf::from_slice(&[0; 8]));
    let columns = [b, Column::new(Datatype::Int32, n, None, None).unwrap(), w];
    let (y, x) = (longs(0..2), longs(0..2));
    let data = CellData { dims: vec![y.view(), x.view()], attrs: named(&columns), sorted: false, dedup: Dedup::Error };
    let refused = array.stage_cells(data, &Call::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Input);
    for part in ["attribute \"w\"", "row 1", "536870913 bytes", "at most 536870912", "cut it into several cells"] {
        assert!(refused.message().contains(part), "{refused}");
    }
}
