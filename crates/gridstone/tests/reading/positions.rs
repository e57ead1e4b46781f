//! Promise: cells at chosen positions are those of the box around them, however they are chosen, stored or laid over each other. What is assigned
//! by positions is read by them. No block is read that holds none of them.

use crate::support::random::Random;
use crate::support::store::context;
use gridstone::base::AlignedBuf;
use gridstone::engine::{
    Array, AxisPositions, BlockCells, Call, CellData, Cells, Chosen, Context, Dedup, Durability, End, Mask, Options,
    ReadOrder, Span, create_array_on, open_on,
};
use gridstone::fragment::{AsStored, TileSources};
use gridstone::schema::{Datatype, Order, Schema};
use gridstone::storage::{MemoryStorage, Storage};
use gridstone::tile::{Column, ColumnView};
use gridstone_testkit::Relaying;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A cell: a number, a number or none, a text.
type Row = (i64, Option<i32>, String);

struct World {
    random: Random,
    sizes: Vec<u64>,
    storage: Arc<dyn Storage>,
    /// Every third world is read through chunks of another layout.
    tiles: Arc<dyn TileSources>,
}

fn strings(values: impl Iterator<Item = String>) -> Column {
    let (mut bytes, mut offsets) = (Vec::new(), vec![0u64]);
    for value in values {
        bytes.extend_from_slice(value.as_bytes());
        offsets.push(bytes.len() as u64);
    }
    Column::new(Datatype::String, AlignedBuf::from_slice(&bytes), Some(offsets), None).unwrap()
}

fn column<T: Copy, const N: usize>(datatype: Datatype, values: &[T], bytes: impl Fn(T) -> [u8; N]) -> Column {
    let all: Vec<u8> = values.iter().flat_map(|value| bytes(*value)).collect();
    Column::new(datatype, AlignedBuf::from_slice(&all), None, None).unwrap()
}

/// The three attributes of some cells.
fn columns_of(rows: &[Row]) -> [Column; 3] {
    let numbers: Vec<i64> = rows.iter().map(|row| row.0).collect();
    let maybe: Vec<u8> = rows.iter().flat_map(|row| row.1.unwrap_or(0).to_le_bytes()).collect();
    let validity: Vec<u8> = rows.iter().map(|row| u8::from(row.1.is_some())).collect();
    [
        column(Datatype::Int64, &numbers, i64::to_le_bytes),
        Column::new(Datatype::Int32, AlignedBuf::from_slice(&maybe), None, Some(validity)).unwrap(),
        strings(rows.iter().map(|row| row.2.clone())),
    ]
}

fn rows_of(columns: &[Column]) -> Vec<Row> {
    let (v, n, s) = (columns[0].view(), columns[1].view(), columns[2].view());
    let number = |row: usize| i64::from_le_bytes(v.value(row).try_into().unwrap());
    let maybe = |row: usize| {
        let is_there = n.validity().is_none_or(|valid| valid[row] != 0);
        is_there.then(|| i32::from_le_bytes(n.value(row).try_into().unwrap()))
    };
    let text = |row: usize| String::from_utf8(s.value(row).to_vec()).unwrap();
    (0..v.len()).map(|row| (number(row), maybe(row), text(row))).collect()
}

fn blocks(dense: u32, tiles: Arc<dyn TileSources>) -> Context {
    let blocks = BlockCells { dense, sparse: 32, ..BlockCells::default() };
    Context::new(&Options { blocks, tiles, durability: Durability::Close, threads: Some(3), ..Options::default() })
        .unwrap()
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let ndim = 1 + random.below(3) as usize;
        let side_max = [4_000, 90, 22][ndim - 1];
        let sizes: Vec<u64> = (0..ndim).map(|_| 1 + random.below(side_max)).collect();
        let dims: Vec<String> = sizes
            .iter()
            .enumerate()
            .map(|(dim, size)| {
                let tile = 1 + random.below(*size);
                let tile = if random.below(3) == 0 { String::new() } else { format!(r#","tile":"{tile}""#) };
                let low = random.below(100) as i64 - 50;
                format!(r#"{{"name":"d{dim}","dtype":"int32","domain":["{low}","{}"]{tile}}}"#, low + *size as i64 - 1)
            })
            .collect();
        let order = ["row", "col"][random.below(2) as usize];
        let schema = format!(
            r#"{{"sparse":false,"cell_order":"{order}","dims":[{}],"attrs":[{{"name":"v","dtype":"int64"}},
            {{"name":"n","dtype":"int32","nullable":true}},{{"name":"s","dtype":"string"}}]}}"#,
            dims.join(",")
        );
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        create_array_on(&context(64), storage.clone(), "/", Schema::from_json(&schema).unwrap(), false).unwrap();
        let tiles: Arc<dyn TileSources> =
            if seed.is_multiple_of(3) { Arc::new(Relaying::default()) } else { Arc::new(AsStored) };
        Self { random, sizes, storage, tiles }
    }

    fn array(&mut self) -> Array {
        let context = blocks([7, 60, 16_384][self.random.below(3) as usize], self.tiles.clone());
        match open_on(&context, self.storage.clone(), "/", true, gridstone::engine::At::Latest).unwrap() {
            gridstone::engine::Opened::Array(array) => array,
            gridstone::engine::Opened::Group(_) => panic!("a group"),
        }
    }

    fn row(&mut self) -> Row {
        let number = (self.random.next() | 1) as i64;
        let maybe = (self.random.below(4) > 0).then(|| self.random.next() as i32);
        (number, maybe, "x".repeat(self.random.below(9) as usize) + &number.to_string()[..2])
    }

    fn rows(&mut self, count: usize) -> Vec<Row> {
        (0..count).map(|_| self.row()).collect()
    }

    /// A box, as texts of its ends, and its cells.
    fn sub(&mut self, array: &Array) -> (Vec<(String, String)>, usize) {
        let schema = array.schema().unwrap();
        let (mut sub, mut cells) = (Vec::new(), 1);
        for (dim, size) in schema.dims().iter().zip(self.sizes.clone()) {
            let (a, b) = (self.random.below(size), self.random.below(size));
            let (a, b) = if self.random.below(3) == 0 { (0, size - 1) } else { (a.min(b), a.max(b)) };
            sub.push((dim.text(dim.range().lo + a), dim.text(dim.range().lo + b)));
            cells *= (b - a + 1) as usize;
        }
        (sub, cells)
    }

    fn write(&mut self) {
        let array = self.array();
        let (sub, cells) = self.sub(&array);
        let staged = match self.random.below(5) {
            0 | 1 => {
                let columns = columns_of(&self.rows(cells));
                let named = ["v", "n", "s"].iter().zip(&columns).map(|(name, c)| ((*name).to_owned(), c.view()));
                // Some attributes alone now and then.
                let skipped = self.random.below(6) as usize;
                let data = named.enumerate().filter(|(at, _)| *at != skipped).map(|(_, named)| named).collect();
                array.stage_dense(Some(&sub), &data, Order::Row, &Call::default()).unwrap()
            }
            2 | 3 => {
                let count = 1 + self.random.below(60) as usize;
                let columns = columns_of(&self.rows(count));
                let schema = array.schema().unwrap();
                let sizes = self.sizes.clone();
                let keys: Vec<Vec<u64>> = schema
                    .dims()
                    .iter()
                    .zip(sizes)
                    .map(|(dim, size)| (0..count).map(|_| dim.range().lo + self.random.below(size)).collect())
                    .collect();
                let dims = gridstone::tile::coordinates::coordinate_columns(&schema, &keys).unwrap();
                let attrs = ["v", "n", "s"].iter().zip(&columns).map(|(name, c)| ((*name).to_owned(), c.view()));
                let data = CellData {
                    dims: dims.iter().map(Column::view).collect(),
                    attrs: attrs.collect(),
                    sorted: false,
                    dedup: Dedup::Last,
                };
                array.stage_cells(data, &Call::default()).unwrap()
            }
            _ => array.stage_delete_box(Some(&sub)).unwrap(),
        };
        array.commit(vec![staged], None).unwrap();
    }

    fn chosen(&mut self) -> Selection {
        let points = self.random.below(60);
        let sizes = self.sizes.clone();
        let masked = self.random.below(sizes.len() as u64) as usize..sizes.len();
        let (pairs, masks) = (self.random.below(3) == 0, self.random.below(3) == 0);
        let one = |(dim, size): (usize, &u64)| match () {
            () if masks && masked.contains(&dim) => Chosen::Masked,
            () if !masks && pairs && self.random.below(3) > 0 => {
                Chosen::Paired((0..points).map(|_| self.random.below(*size)).collect())
            }
            () => Chosen::Combined(axis(&mut self.random, *size)),
        };
        let chosen: Vec<Chosen> = sizes.iter().enumerate().map(one).collect();
        let cells: u64 = if masks { sizes[masked.clone()].iter().product() } else { 0 };
        let share = [2, 30, 1_000][self.random.below(3) as usize];
        let mask = (0..cells).map(|_| u8::from(self.random.below(share) == 0)).collect();
        Selection { chosen, first: masked.start, shape: sizes[masked].to_vec(), mask: masks.then_some(mask) }
    }
}

fn axis(random: &mut Random, size: u64) -> AxisPositions {
    match random.below(4) {
        0 => AxisPositions::All,
        1 => {
            let start = random.below(size);
            let step = 1 + random.below(7) as i64;
            let falls = random.below(2) == 0;
            let room = if falls { start } else { size - 1 - start };
            let count = random.below(room / step as u64 + 2);
            AxisPositions::Strided { start, count, step: if falls { -step } else { step } }
        }
        _ => {
            let count = random.below(40);
            let near = random.below(size);
            let spread = 1 + random.below(size - near);
            AxisPositions::Listed((0..count).map(|_| near + random.below(spread)).collect())
        }
    }
}

#[derive(Debug)]
struct Selection {
    chosen: Vec<Chosen>,
    first: usize,
    shape: Vec<u64>,
    mask: Option<Vec<u8>>,
}

impl Selection {
    fn mask(&self) -> Option<Mask<'_>> {
        self.mask.as_ref().map(|cells| Mask::new(self.first, self.shape.clone(), cells).unwrap())
    }

    /// The positions of point `point`, of the masked dimensions.
    fn masked(&self, point: usize) -> Vec<u64> {
        let mut number = self.mask.iter().flatten().zip(0u64..).filter(|(cell, _)| **cell != 0).nth(point).unwrap().1;
        let inner_first = self.shape.iter().rev().map(|n| {
            let position = number % n;
            number /= n;
            position
        });
        let mut positions: Vec<u64> = inner_first.collect();
        positions.reverse();
        positions
    }
}

fn positions(axis: &AxisPositions, size: u64) -> Vec<u64> {
    match axis {
        AxisPositions::All => (0..size).collect(),
        AxisPositions::Strided { start, count, step } => {
            (0..*count as i64).map(|n| (*start as i64 + n * step) as u64).collect()
        }
        AxisPositions::Listed(list) => list.clone(),
    }
}

/// The places in a whole row-major read of the cells chosen, in the order of the result.
fn places(sizes: &[u64], selection: &Selection) -> Vec<usize> {
    let listed = |chosen: &Chosen| if let Chosen::Paired(list) = chosen { Some(list.len()) } else { None };
    let masked = selection.mask.as_ref().map(|cells| cells.iter().filter(|cell| **cell != 0).count());
    let points = selection.chosen.iter().find_map(listed).or(masked);
    let mut found = Vec::new();
    for point in 0..points.unwrap_or(1) {
        let masked = if selection.mask.is_some() { selection.masked(point) } else { Vec::new() };
        let mut cells = vec![0usize];
        for (dim, (size, chosen)) in sizes.iter().zip(&selection.chosen).enumerate() {
            let along = match chosen {
                Chosen::Combined(axis) => positions(axis, *size),
                Chosen::Paired(list) => vec![list[point]],
                Chosen::Masked => vec![masked[dim - selection.first]],
            };
            cells = cells.iter().flat_map(|c| along.iter().map(move |p| c * *size as usize + *p as usize)).collect();
        }
        found.extend(cells);
    }
    found
}

fn whole(array: &Array) -> Vec<Row> {
    rows_of(&array.read(None, None, ReadOrder::Row, &Call::default()).unwrap().0.attrs)
}

#[test]
fn chosen_cells_are_those_of_the_whole() {
    let seed = std::env::var("GRIDSTONE_TEST_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(2016);
    for round in 0..60u64 {
        let mut world = World::new(seed + round * 7_919);
        (0..world.random.below(7)).for_each(|_| world.write());
        let array = world.array();
        let all = whole(&array);
        for step in 0..30 {
            let chosen = world.chosen();
            let what = format!("seed {seed}, round {round}, step {step}: {:?} of {:?}", chosen, world.sizes);
            let expected: Vec<Row> = places(&world.sizes, &chosen).into_iter().map(|at| all[at].clone()).collect();
            let (cells, _) = array
                .read_positions(chosen.chosen.clone(), chosen.mask(), None, &Call::default())
                .unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_eq!(cells.count, expected.len(), "{what}");
            assert_eq!(rows_of(&cells.attrs), expected, "{what}");
        }
    }
}

#[test]
fn what_is_assigned_is_what_is_read() {
    let seed = std::env::var("GRIDSTONE_TEST_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(2016);
    for round in 0..60u64 {
        let mut world = World::new(seed + round * 104_729);
        (0..world.random.below(4)).for_each(|_| world.write());
        let array = world.array();
        let mut all = whole(&array);
        for step in 0..4 {
            let chosen = world.chosen();
            let what = format!("seed {seed}, round {round}, step {step}: {:?} of {:?}", chosen, world.sizes);
            let places = places(&world.sizes, &chosen);
            let rows = world.rows(places.len());
            let columns = columns_of(&rows);
            let data = ["v", "n", "s"].iter().zip(&columns).map(|(name, c)| ((*name).to_owned(), c.view())).collect();
            match array.stage_positions(chosen.chosen.clone(), chosen.mask(), &data, &Call::default()) {
                Ok(staged) => array.commit(vec![staged], None).unwrap(),
                Err(e) if places.is_empty() => panic!("{what}: {e}"),
                Err(e) => panic!("{what}: {e}"),
            };
            places.iter().zip(rows).for_each(|(at, row)| all[*at] = row);
            assert_eq!(whole(&array), all, "{what}");
        }
    }
}

#[test]
fn blocks_without_a_chosen_cell_are_not_read() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let schema = r#"{"sparse":false,"dims":[{"name":"y","dtype":"int32","domain":["0","1023"],"tile":"256"},
        {"name":"x","dtype":"int32","domain":["0","1023"],"tile":"256"}],"attrs":[{"name":"v","dtype":"int32"}]}"#;
    let array = create_array_on(&context(64), storage, "/", Schema::from_json(schema).unwrap(), false).unwrap();
    let values: Vec<i32> = (0..1 << 20).collect();
    let data = column(Datatype::Int32, &values, i32::to_le_bytes);
    let view: ColumnView<'_> = data.view();
    let staged = array.stage_dense(None, &vec![("v".to_owned(), view)], Order::Row, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
    // Two rows, far apart: a block holds 64 rows of a tile.
    let chosen = vec![
        Chosen::Combined(AxisPositions::Listed(vec![900, 3, 4, 900])),
        Chosen::Combined(AxisPositions::Strided { start: 1_023, count: 512, step: -2 }),
    ];
    let (cells, counters) = array.read_positions(chosen, None, None, &Call::default()).unwrap();
    let found: Vec<i32> =
        cells.attrs[0].view().values().as_chunks::<4>().0.iter().map(|b| i32::from_le_bytes(*b)).collect();
    let expected: Vec<i32> =
        [900, 3, 4, 900].into_iter().flat_map(|y| (0..512).map(move |n| y * 1_024 + 1_023 - 2 * n)).collect();
    assert_eq!(found, expected);
    assert!(counters.bytes_decoded <= 8 * 16_384 * 4, "{counters:?}");
}

#[test]
fn what_cannot_be_chosen_is_said() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let schema = r#"{"sparse":false,"dims":[{"name":"y","dtype":"int32","domain":["5","14"]}],"attrs":[{"name":"v","dtype":"int32"}]}"#;
    let array = create_array_on(&context(64), storage, "/", Schema::from_json(schema).unwrap(), false).unwrap();
    let refused = |chosen| array.read_positions(chosen, None, None, &Call::default()).unwrap_err().to_string();
    let listed = |list| vec![Chosen::Combined(AxisPositions::Listed(list))];
    assert!(refused(listed(vec![3, 10])).contains("position 10 lies outside"));
    assert!(refused(vec![]).contains("0 choices were given for 1 dimensions"));
    assert!(refused(vec![Chosen::Paired(vec![11])]).contains("\"y\""));
    let strided = AxisPositions::Strided { start: 3, count: 5, step: -1 };
    assert!(refused(vec![Chosen::Combined(strided)]).contains("outside"));
}

#[test]
fn both_ends_of_a_full_domain_are_chosen_and_too_much_is_refused_at_once() {
    for tile in ["1", "2", "100"] {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let schema = format!(
            r#"{{"sparse":false,"dims":[{{"name":"y","dtype":"uint64","domain":["0","{}"],"tile":"{tile}"}}],"attrs":[{{"name":"v","dtype":"int32"}}]}}"#,
            u64::MAX - 1
        );
        let array = create_array_on(&context(64), storage, "/", Schema::from_json(&schema).unwrap(), false).unwrap();
        let ends = vec![0, u64::MAX - 1, u64::MAX - 2, 1];
        let values = column(Datatype::Int32, &[1, 2, 3, 4], i32::to_le_bytes);
        let data = vec![("v".to_owned(), values.view())];
        let listed = || vec![Chosen::Combined(AxisPositions::Listed(ends.clone()))];
        let staged = array.stage_positions(listed(), None, &data, &Call::default()).unwrap();
        array.commit(vec![staged], None).unwrap();
        for chosen in [listed(), vec![Chosen::Paired(ends.clone())]] {
            let (cells, _) = array.read_positions(chosen, None, None, &Call::default()).unwrap();
            assert_eq!(cells.attrs[0].view().values(), values.view().values(), "tile {tile}");
        }
        let much = vec![Chosen::Combined(AxisPositions::Strided { start: 0, count: 1 << 60, step: 2 })];
        let refused = array.read_positions(much, None, None, &Call::default()).unwrap_err();
        assert_eq!(refused.kind(), gridstone::base::ErrorKind::Budget, "{refused}");
    }
}

/// A dimension of a sparse array.
#[derive(Debug, Clone, Copy)]
enum Side {
    /// Integers: the lowest, and how many.
    Counted(i32, u64),
    Floats,
    Texts,
}

impl Side {
    fn json(self, number: usize) -> String {
        let ends = |dtype: &str, low: String, high: String| {
            format!(r#"{{"name":"d{number}","dtype":"{dtype}","domain":["{low}","{high}"]}}"#)
        };
        match self {
            Self::Counted(low, size) => ends("int32", low.to_string(), (i64::from(low) + size as i64 - 1).to_string()),
            Self::Floats => ends("float64", "-1.0".to_owned(), "1.0".to_owned()),
            Self::Texts => format!(r#"{{"name":"d{number}","dtype":"string","max_bytes":12}}"#),
        }
    }

    fn column(self, random: &mut Random, count: usize) -> Column {
        match self {
            Self::Counted(low, size) => {
                let numbers: Vec<i32> = (0..count).map(|_| low + random.below(size) as i32).collect();
                column(Datatype::Int32, &numbers, i32::to_le_bytes)
            }
            Self::Floats => {
                let numbers: Vec<f64> = (0..count).map(|_| random.below(9) as f64 / 8.0 - 0.5).collect();
                column(Datatype::Float64, &numbers, f64::to_le_bytes)
            }
            Self::Texts => strings((0..count).map(|_| "gene-".repeat(2)[..random.below(10) as usize].to_owned())),
        }
    }

    /// A part of it: of a text and a float dimension all, or up to an end.
    fn span(self, random: &mut Random) -> Span {
        let all = Span { lo: None, hi: None, below: false };
        match self {
            Self::Counted(low, size) => {
                let ends = [random.below(size), random.below(size)].map(|at| i128::from(low) + i128::from(at));
                let [lo, hi] = [ends[0].min(ends[1]), ends[0].max(ends[1])].map(End::Int);
                Span { lo: Some(lo), hi: Some(hi), below: false }
            }
            Self::Floats if random.below(2) == 0 => Span { hi: Some(End::Float(-0.0)), ..all },
            Self::Texts if random.below(2) == 0 => Span { hi: Some("gene-".to_owned().into()), below: true, ..all },
            _ => all,
        }
    }
}

/// A cell of a sparse array: the bytes of its coordinates, and its attributes.
fn cells_of(cells: &Cells) -> Vec<(Vec<Vec<u8>>, Row)> {
    let place = |row: usize| cells.dims.iter().map(|column| column.view().value(row).to_vec()).collect();
    rows_of(&cells.attrs).into_iter().enumerate().map(|(row, values)| (place(row), values)).collect()
}

struct SparseWorld {
    world: World,
    sides: Vec<Side>,
}

impl SparseWorld {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let mut sides = Vec::new();
        for _ in 0..1 + random.below(2) {
            let most = [9, 60, 4_000][random.below(3) as usize];
            sides.push(Side::Counted(random.below(100) as i32 - 50, 1 + random.below(most)));
        }
        for side in [Side::Floats, Side::Texts] {
            if random.below(3) == 0 {
                sides.insert(random.below(sides.len() as u64 + 1) as usize, side);
            }
        }
        let dims: Vec<String> = sides.iter().enumerate().map(|(number, side)| side.json(number)).collect();
        let (order, doubles) = (["row", "col"][random.below(2) as usize], random.below(3) == 0);
        let schema = format!(
            r#"{{"sparse":true,"capacity":100,"duplicates":{doubles},"cell_order":"{order}","dims":[{}],"attrs":[
            {{"name":"v","dtype":"int64"}},{{"name":"n","dtype":"int32","nullable":true}},{{"name":"s","dtype":"string"}}]}}"#,
            dims.join(",")
        );
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        create_array_on(&context(64), storage.clone(), "/", Schema::from_json(&schema).unwrap(), false).unwrap();
        Self { world: World { random, sizes: Vec::new(), storage, tiles: Arc::new(AsStored) }, sides }
    }

    fn columns(&mut self, count: usize) -> Vec<Column> {
        self.sides.clone().into_iter().map(|side| side.column(&mut self.world.random, count)).collect()
    }

    /// Adds a fragment of many cells or of few, or deletes cells or a box.
    fn write(&mut self) {
        let (array, call) = (self.world.array(), Call::default());
        let most = [30, 2_000][self.world.random.below(2) as usize];
        let count = 1 + self.world.random.below(most) as usize;
        let dims = self.columns(count);
        let dims: Vec<ColumnView<'_>> = dims.iter().map(Column::view).collect();
        let staged = match self.world.random.below(6) {
            0 => array.stage_delete(&dims, &call).unwrap(),
            1 => {
                let spans = self.sides.clone().into_iter().map(|side| side.span(&mut self.world.random)).collect();
                array.stage_delete_region(&array.region(&[spans]).unwrap()).unwrap()
            }
            _ => {
                let columns = columns_of(&self.world.rows(count));
                let attrs = ["v", "n", "s"].iter().zip(&columns).map(|(name, c)| ((*name).to_owned(), c.view()));
                let dedup = if array.schema().unwrap().options().duplicates { Dedup::Error } else { Dedup::Last };
                array.stage_cells(CellData { dims, attrs: attrs.collect(), sorted: false, dedup }, &call).unwrap()
            }
        };
        array.commit(vec![staged], None).unwrap();
    }

    fn chosen(&mut self) -> Vec<AxisPositions> {
        let random = &mut self.world.random;
        let along = |side: &Side| match side {
            Side::Counted(_, size) if random.below(4) == 0 => {
                AxisPositions::Listed((0..random.below(3_000)).map(|_| random.below(*size)).collect())
            }
            Side::Counted(_, size) => axis(random, *size),
            Side::Floats | Side::Texts => AxisPositions::All,
        };
        self.sides.iter().map(along).collect()
    }

    /// Whether a cell lies at chosen positions.
    fn holds(&self, wanted: &[Option<BTreeSet<u64>>], place: &[Vec<u8>]) -> bool {
        self.sides.iter().zip(wanted).zip(place).all(|((side, wanted), bytes)| match (side, wanted) {
            (Side::Counted(low, _), Some(wanted)) => {
                let value = i32::from_le_bytes(bytes.as_slice().try_into().unwrap());
                wanted.contains(&((value - low) as u64))
            }
            _ => true,
        })
    }

    fn wanted(&self, chosen: &[AxisPositions]) -> Vec<Option<BTreeSet<u64>>> {
        let along = |(side, chosen): (&Side, &AxisPositions)| match side {
            Side::Counted(_, size) => Some(positions(chosen, *size).into_iter().collect()),
            Side::Floats | Side::Texts => None,
        };
        self.sides.iter().zip(chosen).map(along).collect()
    }
}

#[test]
fn chosen_cells_of_a_sparse_array_are_those_of_the_whole() {
    let seed = std::env::var("GRIDSTONE_TEST_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(2016);
    for round in 0..60u64 {
        let mut world = SparseWorld::new(seed + round * 7_919);
        (0..world.world.random.below(7)).for_each(|_| world.write());
        let (array, call) = (world.world.array(), Call::default());
        let all = cells_of(&array.read_region(None, None, None, ReadOrder::Row, &call).unwrap().0);
        for step in 0..20 {
            let chosen = world.chosen();
            let what = format!("seed {seed}, round {round}, step {step}: {chosen:?} of {:?}", world.sides);
            let wanted = world.wanted(&chosen);
            let expected: Vec<_> = all.iter().filter(|(place, _)| world.holds(&wanted, place)).cloned().collect();
            let chosen = chosen.into_iter().map(Chosen::Combined).collect();
            let (cells, _) = array.read_positions(chosen, None, None, &call).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_eq!(cells.count, expected.len(), "{what}");
            assert_eq!(cells_of(&cells), expected, "{what}");
        }
    }
}

#[test]
fn what_cannot_be_chosen_of_a_sparse_array_is_said() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let dims = [Side::Counted(5, 10), Side::Floats, Side::Texts].into_iter().enumerate();
    let dims: Vec<String> = dims.map(|(number, side)| side.json(number)).collect();
    let schema = format!(r#"{{"sparse":true,"dims":[{}],"attrs":[{{"name":"v","dtype":"int32"}}]}}"#, dims.join(","));
    let array = create_array_on(&context(64), storage, "/", Schema::from_json(&schema).unwrap(), false).unwrap();
    let refused = |chosen: [Chosen; 3]| {
        array.read_positions(chosen.to_vec(), None, None, &Call::default()).unwrap_err().to_string()
    };
    let (all, one) = (Chosen::Combined(AxisPositions::All), Chosen::Combined(AxisPositions::Listed(vec![0])));
    let outside = Chosen::Combined(AxisPositions::Listed(vec![3, 10]));
    assert!(refused([outside, all.clone(), all.clone()]).contains("position 10 lies outside"));
    assert!(refused([all.clone(), one.clone(), all.clone()]).contains("is float64 and has no positions"));
    assert!(refused([all.clone(), all.clone(), one]).contains("is string and has no positions"));
    assert!(refused([Chosen::Paired(vec![1]), all.clone(), all.clone()]).contains("by their coordinates"));
    let mask = Mask::new(0, vec![10], &[1; 10]).unwrap();
    let chosen = vec![all.clone(), all.clone(), all.clone()];
    assert!(array.read_positions(chosen, Some(mask), None, &Call::default()).is_err());
    assert!(array.read_positions(vec![all], None, None, &Call::default()).is_err());
}
