//! A file of chunks in some layout, attached to an array, and what its cells are.

use crate::support::random::Random;
use crate::support::scratch::{Folder, unsynced};
use gridstone::base::{AlignedBuf, ByteRange};
use gridstone::codec::foreign::ForeignPipeline;
use gridstone::engine::{Array, Call, Context, Durability, Options, ReadOrder, create_array_on};
use gridstone::fragment::external::{
    ChunkGrid, DecodingStep, ExternalSpec, ForeignField, ForeignPage, ForeignSource, StoredValue, TextPadding,
    TilePage, ValueKind,
};
use gridstone::schema::{Datatype, Schema, Subarray};
use gridstone::tile::Column;
use std::path::PathBuf;

/// A cell: a number, a number or none, a text.
pub(super) type Row = (i64, Option<i32>, String);

/// The stored number that stands for none.
const NONE: i32 = -99;
/// Bytes of a text's place.
const TEXT: usize = 5;

pub(super) struct World {
    pub(super) random: Random,
    pub(super) folder: Folder,
    pub(super) sizes: Vec<u64>,
    pub(super) array: Array,
    /// The cells, the last dimension going fastest.
    pub(super) cells: Vec<Row>,
    /// Which of them were written or deleted since.
    pub(super) updated: Vec<bool>,
    /// The chunks that were written to the file, and their longest encoded form.
    pub(super) chunks: u64,
    pub(super) lists: usize,
}

/// How the file is laid out.
struct Layout {
    grid: ChunkGrid,
    /// The pipeline of each list.
    pipelines: Vec<String>,
    big_endian: bool,
    together: bool,
}

fn context(threads: usize) -> Context {
    let (threads, durability) = (Some(threads), Durability::Close);
    Context::new(&Options { threads, durability, sources: Some(Vec::new()), ..Options::default() }).unwrap()
}

pub(super) fn row(random: &mut Random) -> Row {
    let number = random.next() as i64;
    let maybe = (random.below(4) > 0).then(|| (random.next() as i32) | 1).filter(|n| *n != NONE);
    (number, maybe, "yz".repeat(random.below(3) as usize))
}

pub(super) fn columns_of(rows: &[Row]) -> [Column; 3] {
    let values: Vec<u8> = rows.iter().flat_map(|row| row.0.to_le_bytes()).collect();
    let maybe: Vec<u8> = rows.iter().flat_map(|row| row.1.unwrap_or(0).to_le_bytes()).collect();
    let validity = rows.iter().map(|row| u8::from(row.1.is_some())).collect();
    let (mut texts, mut offsets) = (Vec::new(), vec![0]);
    for row in rows {
        texts.extend_from_slice(row.2.as_bytes());
        offsets.push(texts.len() as u64);
    }
    let of = |datatype, bytes: &[u8], offsets, validity| {
        Column::new(datatype, AlignedBuf::from_slice(bytes), offsets, validity).unwrap()
    };
    [
        of(Datatype::Int64, &values, None, None),
        of(Datatype::Int32, &maybe, None, Some(validity)),
        of(Datatype::String, &texts, Some(offsets), None),
    ]
}

pub(super) fn rows_of(columns: &[Column]) -> Vec<Row> {
    let (v, n, s) = (columns[0].view(), columns[1].view(), columns[2].view());
    let number = |row: usize| i64::from_le_bytes(v.value(row).try_into().unwrap());
    let maybe = |row: usize| n.is_valid(row).then(|| i32::from_le_bytes(n.value(row).try_into().unwrap()));
    let text = |row: usize| String::from_utf8(s.value(row).to_vec()).unwrap();
    (0..v.len()).map(|row| (number(row), maybe(row), text(row))).collect()
}

/// The members of a record, as the file stores them.
fn members(row: &Row, big_endian: bool) -> [Vec<u8>; 3] {
    let (number, maybe) = (row.0, row.1.unwrap_or(NONE));
    let mut text = row.2.clone().into_bytes();
    text.resize(TEXT, 0);
    match big_endian {
        true => [number.to_be_bytes().to_vec(), maybe.to_be_bytes().to_vec(), text],
        false => [number.to_le_bytes().to_vec(), maybe.to_le_bytes().to_vec(), text],
    }
}

fn fields(layout: &Layout) -> Vec<ForeignField> {
    let value = |kind, width, count| StoredValue {
        kind,
        width,
        count,
        big_endian: layout.big_endian && kind != ValueKind::Bytes,
    };
    let null = DecodingStep::Null { values: vec![format!("{:x}", NONE as u32)] };
    let parts = [
        (value(ValueKind::Int, 8, 1), vec![]),
        (value(ValueKind::Int, 4, 1), vec![null]),
        (value(ValueKind::Bytes, TEXT as u32, 1), vec![DecodingStep::Text { padding: TextPadding::Zeros }]),
    ];
    let mut offset = 0;
    let field = |(attr, (value, steps)): (u32, (StoredValue, Vec<DecodingStep>))| {
        let size = value.size() as u32;
        // A record has a byte that is nobody's.
        let (list, at, step) = if layout.together { (0, offset, 18) } else { (attr, 0, size) };
        offset += size;
        ForeignField { attr, list, offset: at, step, value, steps }
    };
    (0..).zip(parts).map(field).collect()
}

impl Layout {
    fn draw(random: &mut Random, bounds: &Subarray) -> Self {
        let shape = bounds.shape();
        let sides: Vec<u64> = shape.iter().map(|n| 1 + random.below(n + 3)).collect();
        let lead = |(range, side): (&gridstone::schema::KeyRange, &u64)| range.lo - random.below(*side);
        let origin = bounds.ranges().iter().zip(&sides).map(lead).collect();
        let mut ranks: Vec<u32> = (0..shape.len() as u32).collect();
        ranks.rotate_left(random.below(shape.len() as u64) as usize);
        let together = random.below(2) == 0;
        let pipelines = (0..if together { 1 } else { 3 }).map(|_| {
            ["none", "deflate", "shuffle:8,deflate", "deflate,fletcher32", "shuffle:18,zstd", "bzip2"]
                [random.below(6) as usize]
                .to_owned()
        });
        let pipelines = pipelines.collect();
        let grid = ChunkGrid::new(bounds.clone(), origin, sides, ranks, random.below(2) == 0).unwrap();
        Self { grid, pipelines, big_endian: random.below(2) == 0, together }
    }

    /// The records of a list from those of all members.
    fn records(&self, list: usize, rows: &[Row]) -> Vec<u8> {
        let of = |row: &Row| {
            let members = members(row, self.big_endian);
            if self.together { [members.concat(), vec![0xab]].concat() } else { members[list].clone() }
        };
        rows.iter().flat_map(of).collect()
    }
}

/// The number of a cell of a box, the last dimension going fastest.
pub(super) fn number_of(bounds: &Subarray, cell: &[u64]) -> usize {
    let along = bounds.ranges().iter().zip(cell);
    along.fold(0, |number, (range, key)| number * (range.hi - range.lo + 1) as usize + (key - range.lo) as usize)
}

/// The cells of a box in the order of their numbers.
pub(super) fn cells_of(bounds: &Subarray) -> Vec<Vec<u64>> {
    let mut cells = vec![Vec::new()];
    for range in bounds.ranges() {
        cells = cells
            .into_iter()
            .flat_map(|cell: Vec<u64>| (range.lo..=range.hi).map(move |key| [cell.as_slice(), &[key]].concat()))
            .collect();
    }
    cells
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let ndim = 1 + random.below(3) as usize;
        let most = [900, 40, 12][ndim - 1];
        let sizes: Vec<u64> = (0..ndim).map(|_| 1 + random.below(most)).collect();
        let dim = |(number, size): (usize, &u64)| {
            let tile = 1 + random.below(*size);
            let low = random.below(100) as i64 - 50;
            format!(
                r#"{{"name":"d{number}","dtype":"int32","domain":["{low}","{}"],"tile":"{tile}"}}"#,
                low + *size as i64 - 1
            )
        };
        let dims: Vec<String> = sizes.iter().enumerate().map(dim).collect();
        let order = ["row", "col"][random.below(2) as usize];
        let schema = format!(
            r#"{{"sparse":false,"cell_order":"{order}","dims":[{}],"attrs":[{{"name":"v","dtype":"int64"}},
            {{"name":"n","dtype":"int32","nullable":true}},{{"name":"s","dtype":"string"}}]}}"#,
            dims.join(",")
        );
        let folder = Folder::new("attached");
        let storage = unsynced(folder.path().join("store"));
        let threads = 1 + random.below(3) as usize;
        let array =
            create_array_on(&context(threads), storage, "/", Schema::from_json(&schema).unwrap(), false).unwrap();
        let mut world =
            Self { random, folder, sizes, array, cells: Vec::new(), updated: Vec::new(), chunks: 0, lists: 0 };
        world.attach();
        world
    }

    pub(super) fn file(&self) -> PathBuf {
        self.folder.path().join("cells.bin")
    }

    pub(super) fn bounds(&self) -> Subarray {
        self.array.schema().unwrap().domain()
    }

    /// Writes the file, and attaches it.
    fn attach(&mut self) {
        let bounds = self.bounds();
        let layout = Layout::draw(&mut self.random, &bounds);
        self.cells = (0..bounds.cells()).map(|_| row(&mut self.random)).collect();
        self.updated = vec![false; self.cells.len()];
        let fill = row(&mut self.random);
        let (mut bytes, mut tiles) = (b"a head of some bytes".to_vec(), Vec::new());
        self.lists = layout.pipelines.len();
        for chunk in 0..layout.grid.len() {
            let inside = layout.grid.chunk_box(chunk);
            let kind = self.random.below(8);
            let mut rows = vec![row(&mut self.random); layout.grid.stored_cells(chunk).unwrap_or(1) as usize];
            for cell in inside.iter().flat_map(cells_of) {
                let number = number_of(&bounds, &cell);
                if kind == 0 {
                    self.cells[number] = fill.clone();
                }
                rows[layout.grid.place_of_cell(&cell).unwrap().1 as usize] = self.cells[number].clone();
            }
            let page = |(list, pipeline): (usize, &String)| {
                let records = layout.records(list, &rows);
                match kind {
                    0 => TilePage::Fill,
                    1 => TilePage::Kept(records),
                    _ => stored(&mut bytes, &records, pipeline),
                }
            };
            tiles.push(Ok(layout.pipelines.iter().enumerate().map(page).collect()));
            self.chunks += u64::from(kind > 1 && inside.is_some()) * layout.pipelines.len() as u64;
        }
        std::fs::write(self.file(), &bytes).unwrap();
        let object = self.array.look_at_source("cells.bin").unwrap();
        let fills = (0..self.lists).map(|list| layout.records(list, std::slice::from_ref(&fill))).collect();
        let spec = ExternalSpec {
            fields: fields(&layout),
            grid: layout.grid,
            sources: vec![ForeignSource { object, keys: None }],
            fills,
        };
        let staged = self.array.stage_external(spec, &mut tiles.into_iter(), &Call::default()).unwrap();
        self.array.commit(vec![staged], Some("attached".into())).unwrap();
    }

    /// The cells of a box as they are read.
    pub(super) fn read(&self, sub: Option<&[(String, String)]>, attrs: Option<&[String]>) -> Vec<Column> {
        self.array.read(sub, attrs, ReadOrder::Row, &Call::default()).unwrap().0.attrs
    }
}

fn stored(bytes: &mut Vec<u8>, records: &[u8], pipeline: &str) -> TilePage {
    let encoded = ForeignPipeline::parse(pipeline).unwrap().encode(records).unwrap();
    let page = ForeignPage::new(0, ByteRange::new(bytes.len() as u64, encoded.len() as u64), records.len() as u32);
    bytes.extend_from_slice(&encoded);
    bytes.extend_from_slice(b"gap");
    TilePage::Stored { page, pipeline: pipeline.to_owned() }
}
