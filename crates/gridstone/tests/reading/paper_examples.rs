//! The 4 x 4 arrays that the TileDB paper explains itself with (figures 1 to 4, 6 and 7), as tests.
//!
//! Where the format differs from the paper by design, the test at hand says so: one file per fragment instead of a
//! folder with a file per attribute, pages per data tile and attribute inside it, coordinates a column per dimension,
//! and offsets of variable-length values that start again at 0 in every block.

use gridstone::base::ByteRange;
use gridstone::engine::{
    Array, At, Call, CellData, Cells, Context, Dedup, Opened, Options, ReadOrder, create_array_on, open_on,
};
use gridstone::fragment::{Fragment, FragmentKind, Role};
use gridstone::runtime::{SystemClock, SystemEntropy};
use gridstone::schema::{Datatype, Order, Schema};
use gridstone::storage::{MemoryStorage, Storage};
use gridstone::store::Store;
use gridstone::tile::{Column, ColumnView};
use std::sync::Arc;

/// Figure 1, left: attribute a1 of the dense array, row by row.
const DENSE_A1: [i32; 16] = [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15];
/// Figure 1, left: attribute a2 of the dense array, row by row.
const DENSE_A2: [&str; 16] =
    ["a", "bb", "e", "ff", "ccc", "dddd", "ggg", "hhhh", "i", "jj", "m", "nn", "kkk", "llll", "ooo", "pppp"];
/// Figure 1, right: the non-empty cells of the sparse array in the order of figure 7; a1 counts them.
const SPARSE: [((i32, i32), &str); 8] = [
    ((1, 1), "a"),
    ((1, 2), "bb"),
    ((1, 4), "ccc"),
    ((2, 3), "dddd"),
    ((3, 1), "e"),
    ((4, 2), "ff"),
    ((3, 3), "ggg"),
    ((3, 4), "hhhh"),
];

/// A way to lay out the cells: space tile extents, tile order, cell order.
#[derive(Debug, Clone, Copy)]
struct Layout {
    extents: (u32, u32),
    tile_order: &'static str,
    cell_order: &'static str,
}

/// Figures 2 and 3, from left to right; the middle one is also that of figures 6 and 7.
const LEFT: Layout = Layout { extents: (4, 2), tile_order: "row", cell_order: "row" };
const MIDDLE: Layout = Layout { extents: (2, 2), tile_order: "row", cell_order: "row" };
const RIGHT: Layout = Layout { extents: (2, 2), tile_order: "col", cell_order: "row" };

/// The schema of figure 1; nothing is filtered, so that the bytes on disk are the values.
fn schema(layout: Layout, sparse: bool, capacity: u32) -> Schema {
    let Layout { extents: (rows, cols), tile_order, cell_order } = layout;
    let json = format!(
        r#"{{"sparse":{sparse},"capacity":{capacity},"tile_order":"{tile_order}","cell_order":"{cell_order}",
        "coord_filters":"none",
        "dims":[{{"name":"rows","dtype":"int32","domain":["1","4"],"tile":"{rows}"}},
                {{"name":"columns","dtype":"int32","domain":["1","4"],"tile":"{cols}"}}],
        "attrs":[{{"name":"a1","dtype":"int32","filters":"none"}},{{"name":"a2","dtype":"string","filters":"none"}}]}}"#
    );
    Schema::from_json(&json).unwrap()
}

fn create(layout: Layout, sparse: bool, capacity: u32) -> (Arc<dyn Storage>, Array) {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let context = Context::new(&Options::default()).unwrap();
    let array = create_array_on(&context, storage.clone(), "/", schema(layout, sparse, capacity), false).unwrap();
    (storage, array)
}

/// Values as they are handed to a write: numbers side by side; characters and where each value starts.
struct Values {
    a1: Vec<u8>,
    a2: String,
    offsets: Vec<u64>,
}

impl Values {
    fn new(a1: &[i32], a2: &[&str]) -> Self {
        let ends = a2.iter().scan(0, |end, text| {
            *end += text.len() as u64;
            Some(*end)
        });
        Self { a1: bytes_of(a1), a2: a2.concat(), offsets: std::iter::once(0).chain(ends).collect() }
    }

    fn columns(&self) -> [ColumnView<'_>; 2] {
        let a2 = ColumnView::new(Datatype::String, self.a2.as_bytes(), Some(&self.offsets), None);
        [ColumnView::new(Datatype::Int32, &self.a1, None, None).unwrap(), a2.unwrap()]
    }

    fn named(&self) -> Vec<(String, ColumnView<'_>)> {
        let [a1, a2] = self.columns();
        vec![("a1".to_owned(), a1), ("a2".to_owned(), a2)]
    }
}

fn bytes_of(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn numbers(column: &Column) -> Vec<i32> {
    let (words, rest) = column.view().values().as_chunks::<4>();
    assert!(rest.is_empty());
    words.iter().map(|w| i32::from_le_bytes(*w)).collect()
}

fn texts(column: &Column) -> Vec<String> {
    (0..column.len()).map(|row| String::from_utf8(column.view().value(row).to_vec()).unwrap()).collect()
}

/// A box of the array, inclusive.
type Box2 = [(i32, i32); 2];
const WHOLE: Box2 = [(1, 4), (1, 4)];

fn as_text(bounds: Box2) -> Vec<(String, String)> {
    bounds.iter().map(|(lo, hi)| (lo.to_string(), hi.to_string())).collect()
}

fn write_box(array: &Array, bounds: Box2, a1: &[i32], a2: &[&str], layout: Order) {
    let values = Values::new(a1, a2);
    let staged = array.stage_dense(Some(&as_text(bounds)), &values.named(), layout, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
}

/// Writes cells, in the order given; `sorted` says that it is the global order.
fn write_cells(array: &Array, cells: &[((i32, i32), i32, &str)], sorted: bool) {
    let dims = [0, 1].map(|d| cells.iter().map(|(at, ..)| [at.0, at.1][d]).collect::<Vec<i32>>()).map(|c| bytes_of(&c));
    let dims = dims.iter().map(|d| ColumnView::new(Datatype::Int32, d, None, None).unwrap()).collect();
    let (a1, a2): (Vec<i32>, Vec<&str>) = cells.iter().map(|(_, number, text)| (*number, *text)).unzip();
    let values = Values::new(&a1, &a2);
    let data = CellData { dims, attrs: values.named(), sorted, dedup: Dedup::Error };
    let staged = array.stage_cells(data, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
}

/// The sparse array of figure 1 as one fragment, its cells given in no order.
fn sparse_array(layout: Layout, capacity: u32) -> (Arc<dyn Storage>, Array) {
    let (storage, array) = create(layout, true, capacity);
    let mut cells: Vec<_> = SPARSE.into_iter().zip(0..).map(|((at, text), number)| (at, number, text)).collect();
    cells.reverse();
    cells.swap(1, 5);
    write_cells(&array, &cells, false);
    (storage, array)
}

/// The dense array of figure 1 as one fragment.
fn dense_array(layout: Layout) -> (Arc<dyn Storage>, Array) {
    let (storage, array) = create(layout, false, 10_000);
    write_box(&array, WHOLE, &DENSE_A1, &DENSE_A2, Order::Row);
    (storage, array)
}

fn read(array: &Array, bounds: Box2, order: ReadOrder) -> Cells {
    array.read(Some(&as_text(bounds)), None, order, &Call::default()).unwrap().0
}

/// Attribute a1 of a box.
fn a1(array: &Array, bounds: Box2, order: ReadOrder) -> Vec<i32> {
    numbers(&read(array, bounds, order).attrs[0])
}

/// The coordinates and both attributes of the cells of a box of a sparse array.
fn cells(array: &Array, bounds: Box2, order: ReadOrder) -> Vec<((i32, i32), i32, String)> {
    let found = read(array, bounds, order);
    let at = numbers(&found.dims[0]).into_iter().zip(numbers(&found.dims[1]));
    let values = numbers(&found.attrs[0]).into_iter().zip(texts(&found.attrs[1]));
    at.zip(values).map(|(at, (number, text))| (at, number, text)).collect()
}

/// The stored fragments, opened through the floor of fragments, past all that could rearrange what they hold.
fn stored_fragments(storage: &Arc<dyn Storage>) -> Vec<Fragment> {
    let store = Store::new(storage.clone(), Arc::new(SystemClock), Arc::new(SystemEntropy));
    let snapshot = store.latest().unwrap();
    let array = snapshot.array("/").unwrap();
    let open = |d: &Arc<_>| {
        let description: &Arc<gridstone::fragment::Description> = d;
        let source = store.files().open(description.location.file).unwrap();
        Fragment::open(source, description.clone(), array.schema()).unwrap()
    };
    array.fragments(None).unwrap().iter().map(open).collect()
}

/// The stored bytes of the page of a field in a tile of `cells` cells, which is one block, and where they lie.
fn page(fragment: &Fragment, role: Role, tile: u64, cells: usize) -> (ByteRange, Vec<u8>) {
    assert_eq!(fragment.tile_blocks(tile).unwrap(), 1);
    let field = fragment.field(role).unwrap();
    let range = fragment.block(field, tile, 0, cells).unwrap().range;
    (range, fragment.source().read_one(range).unwrap().to_vec())
}

fn words(bytes: &[u8]) -> Vec<u32> {
    let (words, rest) = bytes.as_chunks::<4>();
    assert!(rest.is_empty());
    words.iter().map(|w| u32::from_le_bytes(*w)).collect()
}

/// The offsets (one more than cells) and the characters in a stored block of variable-length values without nulls:
/// `u32 0 | u32 length of the offsets | offsets | characters`.
fn offsets_and_characters(block: &[u8]) -> (Vec<u32>, String) {
    let lengths = words(&block[..8]);
    assert_eq!(lengths[0], 0, "no validity is stored where nothing is null");
    let (offsets, characters) = block[8..].split_at(lengths[1] as usize);
    (words(offsets), String::from_utf8(characters.to_vec()).unwrap())
}

const A1: Role = Role::Attribute(0);
const A2: Role = Role::Attribute(1);

#[test]
fn figure_1_the_dense_array_reads_back_in_every_order() {
    for layout in [LEFT, MIDDLE, RIGHT] {
        let (_, array) = dense_array(layout);
        let by_row = read(&array, WHOLE, ReadOrder::Row);
        assert_eq!((by_row.count, by_row.dims.len()), (16, 0));
        assert_eq!(numbers(&by_row.attrs[0]), DENSE_A1);
        assert_eq!(texts(&by_row.attrs[1]), DENSE_A2);
        let by_column = read(&array, WHOLE, ReadOrder::Col);
        assert_eq!(numbers(&by_column.attrs[0]), [0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15]);
        let turned = |i: usize| DENSE_A2[i % 4 * 4 + i / 4];
        assert_eq!(texts(&by_column.attrs[1]), (0..16).map(turned).collect::<Vec<_>>());
        // "Each cell is identified by its coordinates […] cell (4,4) contains (15, pppp)."
        let corner = read(&array, [(4, 4), (4, 4)], ReadOrder::Any);
        assert_eq!((numbers(&corner.attrs[0]), texts(&corner.attrs[1])), (vec![15], vec!["pppp".to_owned()]));
    }
}

#[test]
fn figure_1_a_column_major_buffer_is_the_same_array() {
    let (_, array) = create(MIDDLE, false, 10_000);
    let turned: [usize; 16] = std::array::from_fn(|i| i % 4 * 4 + i / 4);
    write_box(&array, WHOLE, &turned.map(|i| DENSE_A1[i]), &turned.map(|i| DENSE_A2[i]), Order::Col);
    let found = read(&array, WHOLE, ReadOrder::Row);
    assert_eq!(
        (numbers(&found.attrs[0]), texts(&found.attrs[1])),
        (DENSE_A1.to_vec(), DENSE_A2.map(String::from).to_vec())
    );
}

#[test]
fn figure_1_the_sparse_array_has_eight_cells_and_the_others_are_empty() {
    for layout in [LEFT, MIDDLE, RIGHT] {
        for capacity in [1, 2, 3, 100] {
            let (_, array) = sparse_array(layout, capacity);
            let mut expected: Vec<_> =
                SPARSE.into_iter().zip(0..).map(|((at, text), n)| (at, n, text.to_owned())).collect();
            expected.sort();
            assert_eq!(cells(&array, WHOLE, ReadOrder::Row), expected, "{layout:?}, {capacity}");
            expected.sort_by_key(|((row, column), ..)| (*column, *row));
            assert_eq!(cells(&array, WHOLE, ReadOrder::Col), expected, "{layout:?}, {capacity}");
            // "several cells in the sparse array are empty, e.g., cell (4,1)."
            assert_eq!(cells(&array, [(4, 4), (1, 1)], ReadOrder::Any), []);
        }
    }
}

/// The values of figure 1 count the cells in the middle order, so that order reads 0 to 15. On 4 x 4 cells two columns
/// of 2 x 2 tiles are walked as one column of 4 x 2, if the cells in them lie row by row.
#[test]
fn figure_2_three_global_orders_of_the_dense_array() {
    let expected = [
        (LEFT, [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15]),
        (MIDDLE, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),
        (RIGHT, [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15]),
    ];
    for (layout, order) in expected {
        let (_, array) = dense_array(layout);
        assert_eq!(a1(&array, WHOLE, ReadOrder::Global), order, "{layout:?}");
    }
    // The remaining choices: columns inside the tiles, and one tile.
    let (_, array) = dense_array(Layout { cell_order: "col", ..LEFT });
    assert_eq!(a1(&array, WHOLE, ReadOrder::Global), [0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15]);
    let (_, array) = dense_array(Layout { cell_order: "col", ..MIDDLE });
    assert_eq!(a1(&array, WHOLE, ReadOrder::Global), [0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15]);
    let (_, array) = dense_array(Layout { extents: (4, 4), ..MIDDLE });
    assert_eq!(a1(&array, WHOLE, ReadOrder::Global), DENSE_A1);
}

/// Section 4.2: a write populates its buffers in the global order, in as many pieces as it likes.
#[test]
fn figure_2_a_write_in_global_order_gives_figure_1() {
    let places = |layout: Layout| -> Vec<usize> {
        let (_, array) = dense_array(layout);
        let find = |value: i32| DENSE_A1.iter().position(|v| *v == value).unwrap();
        a1(&array, WHOLE, ReadOrder::Global).into_iter().map(find).collect()
    };
    for layout in [LEFT, MIDDLE, RIGHT] {
        let order = places(layout);
        for piece in [1, 3, 4, 7, 16] {
            let (_, array) = create(layout, false, 10_000);
            let mut writer = array.writer(None, None).unwrap();
            for run in order.chunks(piece) {
                let (a1, a2): (Vec<i32>, Vec<&str>) = run.iter().map(|i| (DENSE_A1[*i], DENSE_A2[*i])).unzip();
                writer.append(&Call::default(), &[], &Values::new(&a1, &a2).columns()).unwrap();
            }
            array.commit(vec![writer.finish(&Call::default()).unwrap()], None).unwrap();
            let found = read(&array, WHOLE, ReadOrder::Row);
            assert_eq!(numbers(&found.attrs[0]), DENSE_A1, "{layout:?} by {piece}");
            assert_eq!(texts(&found.attrs[1]), DENSE_A2, "{layout:?} by {piece}");
            assert_eq!(array.fragments().unwrap().len(), 1);
        }
    }
}

/// Data tiles of a sparse array: MBR, first and last cell in global order.
type DataTile = (Box2, (i32, i32), (i32, i32));

fn data_tiles(layout: Layout, capacity: u32) -> Vec<DataTile> {
    let (storage, array) = sparse_array(layout, capacity);
    let schema = array.schema().unwrap();
    let value = |d: usize, key: u64| schema.dims()[d].text(key).parse::<i32>().unwrap();
    let fragments = stored_fragments(&storage);
    let [fragment] = fragments.as_slice() else { panic!("one write makes one fragment") };
    let listed = array.tiles(None, &Call::default()).unwrap();
    assert_eq!(listed.iter().map(|t| t.cells).sum::<u64>(), 8);
    assert!(
        listed[..listed.len() - 1].iter().all(|t| t.cells == u64::from(capacity)),
        "all tiles but the last are full"
    );
    let described = |(tile, number): (&gridstone::engine::TileListing, u64)| {
        let mbr = [0, 1].map(|d| (value(d, tile.bounds.ranges()[d].lo), value(d, tile.bounds.ranges()[d].hi)));
        let (stripe, local) = fragment.stripe_of(number).unwrap();
        let stripe = fragment.stripe(stripe).unwrap();
        let (first, last) = stripe.tile_ends(local).unwrap();
        let cell = |keys: gridstone::fragment::Keys<'_>| {
            let keys: Vec<u64> = keys.iter().collect();
            (value(0, keys[0]), value(1, keys[1]))
        };
        (mbr, cell(first), cell(last))
    };
    listed.iter().zip(0..).map(described).collect()
}

/// Each order puts the same two cells together here, since every 2 x 2 space tile holds two; the tiles' sequence differs.
#[test]
fn figure_3_data_tiles_of_capacity_2_and_their_mbrs() {
    let upper_left = ([(1, 1), (1, 2)], (1, 1), (1, 2));
    let upper_right = ([(1, 2), (3, 4)], (1, 4), (2, 3));
    let lower_left = ([(3, 4), (1, 2)], (3, 1), (4, 2));
    let lower_right = ([(3, 3), (3, 4)], (3, 3), (3, 4));
    assert_eq!(data_tiles(LEFT, 2), [upper_left, lower_left, upper_right, lower_right]);
    assert_eq!(data_tiles(MIDDLE, 2), [upper_left, upper_right, lower_left, lower_right]);
    assert_eq!(data_tiles(RIGHT, 2), [upper_left, lower_left, upper_right, lower_right]);
}

/// "Data tiles in the sparse case may overlap, but each non-empty cell corresponds to exactly one data tile."
#[test]
fn figure_3_data_tiles_may_overlap() {
    let tiles = data_tiles(MIDDLE, 3);
    assert_eq!(
        tiles,
        [([(1, 1), (1, 4)], (1, 1), (1, 4)), ([(2, 4), (1, 3)], (2, 3), (4, 2)), ([(3, 3), (3, 4)], (3, 3), (3, 4)),]
    );
    let (_, array) = sparse_array(MIDDLE, 3);
    assert_eq!(cells(&array, [(3, 3), (3, 3)], ReadOrder::Global), [((3, 3), 6, "ggg".to_owned())]);
}

/// The three fragments of figure 4: dense over all, dense over [3:4, 3:4], sparse. The figure's own sparse cells are
/// replaced by others, which lie over the first fragment, over the second, and in a tile of their own.
fn figure_4() -> (Arc<dyn Storage>, Array) {
    let (storage, array) = dense_array(MIDDLE);
    write_box(&array, [(3, 4), (3, 4)], &[112, 113, 114, 115], &["M", "NN", "OOO", "PPPP"], Order::Row);
    write_cells(&array, &[((4, 3), 214, "x"), ((1, 2), 201, "yy"), ((2, 4), 207, "zzz"), ((3, 3), 212, "")], false);
    (storage, array)
}

#[test]
fn figure_4_newer_fragments_overwrite_older_ones() {
    let (storage, array) = figure_4();
    let listed = array.fragments().unwrap();
    let kinds: Vec<_> = listed.iter().map(|f| (f.kind, f.cells, f.domain.clone())).collect();
    let expected = [("dense", 16, WHOLE), ("dense", 4, [(3, 4), (3, 4)]), ("sparse", 4, [(1, 4), (2, 4)])];
    assert_eq!(kinds, expected.map(|(kind, cells, bounds)| (kind, cells, as_text(bounds))));
    let view = [0, 201, 4, 5, 2, 3, 6, 207, 8, 9, 212, 113, 10, 11, 214, 115];
    let words = ["a", "yy", "e", "ff", "ccc", "dddd", "ggg", "zzz", "i", "jj", "", "NN", "kkk", "llll", "x", "PPPP"];
    let found = read(&array, WHOLE, ReadOrder::Row);
    assert_eq!((numbers(&found.attrs[0]), texts(&found.attrs[1])), (view.to_vec(), words.map(String::from).to_vec()));
    assert_eq!(a1(&array, WHOLE, ReadOrder::Global), [0, 201, 2, 3, 4, 5, 6, 207, 8, 9, 10, 11, 212, 113, 214, 115]);
    // Any box sees the same; every one is tried.
    let ranges = || (1..=4).flat_map(|lo| (lo..=4).map(move |hi| (lo, hi)));
    for (rows, columns) in ranges().flat_map(|rows| ranges().map(move |columns| (rows, columns))) {
        let inside = |i: &usize| {
            let (row, column) = (*i as i32 / 4 + 1, *i as i32 % 4 + 1);
            (rows.0..=rows.1).contains(&row) && (columns.0..=columns.1).contains(&column)
        };
        let expected: Vec<i32> = (0..16).filter(inside).map(|i| view[i]).collect();
        assert_eq!(a1(&array, [rows, columns], ReadOrder::Row), expected, "{rows:?} x {columns:?}");
    }
    // A fragment is a batch made visible at one instant: before it the array was the overlap of the older ones.
    let context = Context::new(&Options::default()).unwrap();
    let Opened::Array(before) = open_on(&context, storage, "/", false, At::Version(3)).unwrap() else {
        panic!("a group")
    };
    assert_eq!(a1(&before, WHOLE, ReadOrder::Row), [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 112, 113, 10, 11, 114, 115]);
}

/// Section 4.2: "a deletion is an insertion of an empty cell"; a dense cell then reads as the fill.
#[test]
fn figure_4_a_deleted_cell_is_empty_in_every_fragment_under_it() {
    let (_, array) = figure_4();
    let (rows, columns) = (bytes_of(&[3, 1, 1]), bytes_of(&[3, 2, 1]));
    let dims = [&rows, &columns].map(|bytes| ColumnView::new(Datatype::Int32, bytes, None, None).unwrap());
    let staged = array.stage_delete(&dims, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
    let found = read(&array, WHOLE, ReadOrder::Row);
    assert_eq!(numbers(&found.attrs[0]), [0, 0, 4, 5, 2, 3, 6, 207, 8, 9, 0, 113, 10, 11, 214, 115]);
    assert_eq!(texts(&found.attrs[1])[..3], ["", "", "e"]);
    assert_eq!(texts(&found.attrs[1])[10..12], ["", "NN"]);
}

/// The paper has one file per fixed-size attribute and two per variable-size one. Here they are pages of one file, one
/// page per data tile and attribute; an attribute's pages lie side by side in tile order, and read one after the other
/// they are the paper's files. Offsets count from 0 in each block, so that a block can be decoded alone.
#[test]
fn figure_6_physical_organization_of_the_dense_fragment() {
    let (storage, _) = dense_array(MIDDLE);
    let fragments = stored_fragments(&storage);
    let [fragment] = fragments.as_slice() else { panic!("one write makes one fragment") };
    assert_eq!((fragment.root().kind, fragment.root().tiles), (FragmentKind::Dense, 4));
    let pages = |role| (0..4).map(|tile| page(fragment, role, tile, 4)).collect::<Vec<_>>();
    let (a1, a2) = (pages(A1), pages(A2));
    let places: Vec<u64> = a1.iter().chain(&a2).map(|(range, _)| range.offset).collect();
    assert!(places.is_sorted_by(|a, b| a < b), "a1 tile by tile, then a2 tile by tile: {places:?}");

    let a1_file: Vec<u32> = a1.iter().flat_map(|(_, bytes)| words(bytes)).collect();
    assert_eq!(a1_file, (0..16).collect::<Vec<u32>>());
    let (mut a2_file, mut a2_var_file) = (Vec::new(), String::new());
    for (_, block) in &a2 {
        let (offsets, characters) = offsets_and_characters(block);
        assert_eq!((offsets.len(), offsets[0]), (5, 0));
        a2_file.extend(offsets[..4].iter().map(|offset| offset + a2_var_file.len() as u32));
        a2_var_file.push_str(&characters);
    }
    assert_eq!(a2_file, [0, 1, 3, 6, 10, 11, 13, 16, 20, 21, 23, 26, 30, 31, 33, 36]);
    assert_eq!(a2_var_file, "abbcccddddeffggghhhhijjkkkllllmnnooopppp");
    // "Cell (2,3) appears 7th in the global cell order": so does its value.
    assert_eq!(&a2_var_file[a2_file[6] as usize..a2_file[7] as usize], "ggg");
}

/// As figure 6; besides, the paper has one file of coordinates, cell by cell. Here every dimension is a column of its
/// own, in the order of the dimensions and before the attributes. With one data tile the pages are the paper's files.
#[test]
fn figure_7_physical_organization_of_the_sparse_fragment() {
    let (storage, _) = sparse_array(MIDDLE, 8);
    let fragments = stored_fragments(&storage);
    let [fragment] = fragments.as_slice() else { panic!("one write makes one fragment") };
    assert_eq!((fragment.root().kind, fragment.root().tiles), (FragmentKind::Sparse, 1));
    let roles = [Role::Dimension(0), Role::Dimension(1), A1, A2];
    assert_eq!(fragment.root().fields.iter().map(|f| f.role).collect::<Vec<_>>(), roles);
    let pages = roles.map(|role| page(fragment, role, 0, 8));
    assert!(pages.is_sorted_by(|a, b| a.0.offset < b.0.offset));
    let [rows, columns, a1, a2] = pages.map(|(_, bytes)| bytes);
    let coords: Vec<(u32, u32)> = words(&rows).into_iter().zip(words(&columns)).collect();
    assert_eq!(coords, [(1, 1), (1, 2), (1, 4), (2, 3), (3, 1), (4, 2), (3, 3), (3, 4)]);
    assert_eq!(words(&a1), [0, 1, 2, 3, 4, 5, 6, 7]);
    let (offsets, characters) = offsets_and_characters(&a2);
    assert_eq!(offsets, [0, 1, 3, 6, 10, 11, 13, 16, 20]);
    assert_eq!(characters, "abbcccddddeffggghhhh");
}

#[test]
fn figure_7_with_the_data_tiles_of_figure_3() {
    let (storage, _) = sparse_array(MIDDLE, 2);
    let fragments = stored_fragments(&storage);
    let [fragment] = fragments.as_slice() else { panic!("one write makes one fragment") };
    let tile =
        |number| [Role::Dimension(0), Role::Dimension(1), A1].map(|role| words(&page(fragment, role, number, 2).1));
    assert_eq!(tile(0), [[1, 1], [1, 2], [0, 1]]);
    assert_eq!(tile(1), [[1, 2], [4, 3], [2, 3]]);
    assert_eq!(tile(2), [[3, 4], [1, 2], [4, 5]]);
    assert_eq!(tile(3), [[3, 3], [3, 4], [6, 7]]);
    let values = |number| offsets_and_characters(&page(fragment, A2, number, 2).1);
    assert_eq!(values(1), (vec![0, 3, 7], "cccdddd".to_owned()));
    assert_eq!(values(3), (vec![0, 3, 7], "ggghhhh".to_owned()));
}

/// Section 4.2: a sparse fragment may be written in global order or not; it is the same fragment.
#[test]
fn figure_7_sorted_and_unsorted_cells_make_the_same_pages() {
    let pages = |storage: &Arc<dyn Storage>| {
        let fragments = stored_fragments(storage);
        assert_eq!(fragments.len(), 1);
        let tiles = (0..4).flat_map(|tile| [Role::Dimension(0), Role::Dimension(1), A1, A2].map(|role| (tile, role)));
        tiles.map(|(tile, role)| page(&fragments[0], role, tile, 2)).collect::<Vec<_>>()
    };
    let (unsorted, _) = sparse_array(MIDDLE, 2);
    let (sorted, array) = create(MIDDLE, true, 2);
    let cells: Vec<_> = SPARSE.into_iter().zip(0..).map(|((at, text), number)| (at, number, text)).collect();
    write_cells(&array, &cells, true);
    assert_eq!(pages(&sorted), pages(&unsorted));
}

/// Section 4.1: the whole upper left tile, its upper row, and its left column, which is two ranges of the order.
#[test]
fn section_4_1_subarrays_read_in_the_global_order() {
    let (_, dense) = dense_array(MIDDLE);
    assert_eq!(a1(&dense, [(1, 2), (1, 2)], ReadOrder::Global), [0, 1, 2, 3]);
    assert_eq!(a1(&dense, [(1, 1), (1, 2)], ReadOrder::Global), [0, 1]);
    assert_eq!(a1(&dense, [(1, 2), (1, 1)], ReadOrder::Global), [0, 2]);
    // Across tiles: rows 2 and 3, columns 2 to 4.
    assert_eq!(a1(&dense, [(2, 3), (2, 4)], ReadOrder::Global), [3, 6, 7, 9, 12, 13]);
    assert_eq!(a1(&dense, [(2, 3), (2, 4)], ReadOrder::Row), [3, 6, 7, 9, 12, 13]);
    assert_eq!(a1(&dense, [(2, 3), (2, 4)], ReadOrder::Col), [3, 9, 6, 12, 7, 13]);
    for capacity in [2, 3, 8] {
        let (_, sparse) = sparse_array(MIDDLE, capacity);
        assert_eq!(a1(&sparse, WHOLE, ReadOrder::Global), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(a1(&sparse, [(2, 4), (2, 4)], ReadOrder::Global), [3, 5, 6, 7], "{capacity}");
        assert_eq!(a1(&sparse, [(3, 4), (1, 4)], ReadOrder::Global), [4, 5, 6, 7], "{capacity}");
        assert_eq!(a1(&sparse, [(3, 4), (1, 4)], ReadOrder::Row), [4, 6, 7, 5], "{capacity}");
        assert_eq!(a1(&sparse, [(2, 2), (1, 2)], ReadOrder::Global), Vec::<i32>::new(), "{capacity}");
    }
}
