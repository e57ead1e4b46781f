//! Promise: what the system reads straight to its place in a result is what was written, whatever the box, the layout and the width of a
//! cell; and a damaged byte of it is found. Long rows are read so, and single cells are not.

use crate::support::child::Folder;
use gridstone::base::{
    AlignedBuf, Budget, ByteRange, ByteSink, ByteSource, Counters, ErrorKind, FileRef, Files, Id, NeverCancel, Pending,
    Result, Silent,
};
use gridstone::engine::{
    Array, At, Call, Column, Context, Durability, Opened, Options, ReadOrder, create_array_on, open_on,
};
use gridstone::fragment::AsStored;
use gridstone::query::{ReadContext, Request, Target, read_dense};
use gridstone::runtime::{Arena, LruCache, Pool, SystemClock, SystemEntropy};
use gridstone::schema::{Datatype, KeyRange, Order, Schema, Subarray};
use gridstone::storage::{LocalStorage, Storage};
use gridstone::store::Store;
use gridstone_testkit::Dice;
use std::io::IoSliceMut;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const ROWS: usize = 700;
const COLUMNS: usize = 1_500;

/// Types of cells, and their widths in bytes.
const TYPES: [(&str, Datatype, usize); 4] = [
    ("int8", Datatype::Int8, 1),
    ("float32", Datatype::Float32, 4),
    ("int64", Datatype::Int64, 8),
    ("complex128", Datatype::Complex128, 16),
];

fn context() -> Context {
    let (threads, durability) = (Some(2), Durability::Close);
    Context::new(&Options { threads, durability, cache: 0, ..Options::default() }).unwrap()
}

fn on(folder: &Path) -> Arc<dyn Storage> {
    Arc::new(LocalStorage::new(folder, Durability::Close).unwrap())
}

fn opened(folder: &Path) -> Array {
    match open_on(&context(), on(folder), "/", false, At::Latest).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

/// Byte `byte` of a cell.
fn byte_of(row: usize, column: usize, byte: usize) -> u8 {
    let cell = (row * COLUMNS + column) as u64 * 16 + byte as u64;
    (cell.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

/// The cells of a box, in row or column order.
fn expected((rows, columns): (&[usize], &[usize]), by_row: bool, width: usize) -> Vec<u8> {
    let cell = |row: usize, column: usize| (0..width).map(move |byte| byte_of(row, column, byte));
    match by_row {
        true => rows.iter().flat_map(|r| columns.iter().flat_map(move |c| cell(*r, *c))).collect(),
        false => columns.iter().flat_map(|c| rows.iter().flat_map(move |r| cell(*r, *c))).collect(),
    }
}

fn create(folder: &Path, dtype: (&str, Datatype, usize), cell_order: &str, tile: (usize, usize)) {
    let schema = format!(
        r#"{{"cell_order":"{cell_order}","dims":[{{"name":"y","dtype":"int64","domain":["0","{}"],"tile":"{}"}},
        {{"name":"x","dtype":"int64","domain":["0","{}"],"tile":"{}"}}],
        "attrs":[{{"name":"v","dtype":"{}","filters":"none"}}]}}"#,
        ROWS - 1,
        tile.0,
        COLUMNS - 1,
        tile.1,
        dtype.0
    );
    let schema = Schema::from_json(&schema).unwrap();
    let array = create_array_on(&context(), on(folder), "/", schema, false).unwrap();
    let (rows, columns): (Vec<usize>, Vec<usize>) = ((0..ROWS).collect(), (0..COLUMNS).collect());
    let values = expected((&rows, &columns), true, dtype.2);
    let column = Column::new(dtype.1, AlignedBuf::from_slice(&values), None, None).unwrap();
    let data = [("v".to_owned(), column.view())].into_iter().collect();
    let staged = array.stage_dense(None, &data, Order::Row, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
}

fn read(array: &Array, (rows, columns): (&[usize], &[usize]), order: ReadOrder) -> Result<Vec<u8>> {
    let ends = |of: &[usize]| (of[0].to_string(), of[of.len() - 1].to_string());
    let (cells, ..) = array.read(Some(&[ends(rows), ends(columns)]), None, order, &Call::default())?;
    Ok(cells.attrs[0].view().values().to_vec())
}

fn span(of: usize, dice: &mut Dice) -> Vec<usize> {
    let len = (*dice.pick(&[1, 7, of / 3, of])).min(of);
    let from = dice.below(of - len + 1);
    (from..from + len).collect()
}

#[test]
fn boxes_of_every_layout_and_width() {
    for (n, dtype) in TYPES.into_iter().enumerate() {
        for (cell_order, tile) in
            [("row", (300, 1_000)), ("col", (300, 1_000)), ("row", (ROWS, COLUMNS)), ("col", (700, 90))]
        {
            let (folder, mut dice) = (Folder::new("straight"), Dice::new(n as u64));
            create(&folder.0, dtype, cell_order, tile);
            let array = opened(&folder.0);
            for _ in 0..40 {
                let (rows, columns) = (span(ROWS, &mut dice), span(COLUMNS, &mut dice));
                for (order, by_row) in [(ReadOrder::Row, true), (ReadOrder::Col, false)] {
                    let found = read(&array, (&rows, &columns), order).unwrap();
                    let what = (dtype.0, cell_order, tile, rows[0], rows.len(), columns[0], columns.len(), order);
                    assert!(found == expected((&rows, &columns), by_row, dtype.2), "{what:?}");
                }
            }
        }
    }
}

/// One byte is changed, and changed back: a read says that it is damaged, or gives what was written and did not need it.
#[test]
fn damage_is_found() {
    let (folder, mut dice) = (Folder::new("straight-damage"), Dice::new(1));
    create(&folder.0, TYPES[1], "row", (300, 1_000));
    let file = std::fs::read_dir(folder.0.join("_data")).unwrap().next().unwrap().unwrap().path();
    let sound = std::fs::read(&file).unwrap();
    let (all_rows, all_columns): (Vec<usize>, Vec<usize>) = ((0..ROWS).collect(), (0..COLUMNS).collect());
    let everything = expected((&all_rows, &all_columns), true, 4);
    let (mut found, mut found_whole) = (0, 0);
    for _ in 0..60 {
        let (at, bit) = (dice.below(ROWS * COLUMNS * 4), 1 << dice.below(8));
        let mut bytes = sound.clone();
        bytes[4_096 + at] ^= bit;
        std::fs::write(&file, &bytes).unwrap();
        let (rows, columns) = (span(ROWS, &mut dice), span(COLUMNS, &mut dice));
        match read(&opened(&folder.0), (&rows, &columns), ReadOrder::Row) {
            Ok(cells) => assert!(cells == expected((&rows, &columns), true, 4), "byte {at} of the pages, bit {bit}"),
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Corruption, "{e}");
                found += 1;
            }
        }
        match read(&opened(&folder.0), (&all_rows, &all_columns), ReadOrder::Row) {
            // Between two pages lie bytes that are nothing.
            Ok(cells) => assert!(cells == everything, "byte {at} of the pages, bit {bit}"),
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Corruption, "{e}");
                found_whole += 1;
            }
        }
    }
    assert!((5..56).contains(&found), "{found} of 60 reads needed what was damaged");
    assert!(found_whole > 55, "{found_whole} of 60 reads of everything found it");
}

/// The files of a store, and how often bytes of them were read into several buffers at once.
#[derive(Debug)]
struct Counted {
    inner: Arc<dyn Files>,
    calls: Arc<AtomicU64>,
}

impl Files for Counted {
    fn open(&self, file: FileRef) -> Result<Arc<dyn ByteSource>> {
        Ok(Arc::new(CountedSource { inner: self.inner.open(file)?, calls: Arc::clone(&self.calls) }))
    }

    fn is_near(&self) -> bool {
        self.inner.is_near()
    }

    fn create(&self, id: Id) -> Result<Box<dyn ByteSink>> {
        self.inner.create(id)
    }

    fn remove(&self, id: Id) -> Result<()> {
        self.inner.remove(id)
    }
}

#[derive(Debug)]
struct CountedSource {
    inner: Arc<dyn ByteSource>,
    calls: Arc<AtomicU64>,
}

impl ByteSource for CountedSource {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn submit(&self, ranges: &[ByteRange]) -> Result<Box<dyn Pending + '_>> {
        self.inner.submit(ranges)
    }

    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.inner.read_into(offset, out)
    }

    fn scatters(&self) -> bool {
        self.inner.scatters()
    }

    fn read_into_each(&self, offset: u64, outs: &mut [IoSliceMut<'_>]) -> Result<()> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.inner.read_into_each(offset, outs)
    }
}

/// The cells of a box of the array in `folder`, and how often bytes were read into several buffers at once for them.
fn counted(folder: &Path, sub: impl Fn(&Schema) -> Subarray) -> (Vec<u8>, u64) {
    let store = Store::new(on(folder), Arc::new(SystemClock), Arc::new(SystemEntropy));
    let (snapshot, calls) = (store.latest().unwrap(), Arc::new(AtomicU64::new(0)));
    let array = snapshot.array("/").unwrap();
    let (schema, fragments) = (Arc::clone(array.schema()), array.fragments(None).unwrap());
    let request = Request::new(&schema, Some(sub(&schema)), None, ReadOrder::Row).unwrap();
    let context = ReadContext {
        place: snapshot.store(),
        pool: Arc::new(Pool::new(Some(2)).unwrap()),
        files: Arc::new(Counted { inner: store.files(), calls: Arc::clone(&calls) }),
        tiles: Arc::new(AsStored),
        cache: Arc::new(LruCache::new(0)),
        budget: Arc::new(Budget::new(256 << 20)),
        arena: Arc::new(Arena::new(0)),
        counters: Arc::new(Counters::default()),
        cancel: Arc::new(NeverCancel),
        progress: Arc::new(Silent),
    };
    let cells = read_dense(&context, &Target { array: array.id(), schema, fragments }, &request).unwrap();
    (cells.attrs[0].view().values().to_vec(), calls.load(Ordering::Relaxed))
}

/// Elsewhere than on Linux nothing is read straight.
#[test]
fn long_rows_are_read_straight_and_a_column_is_not() {
    let folder = Folder::new("straight-calls");
    create(&folder.0, TYPES[1], "row", (300, 1_000));
    let (rows, columns): (Vec<usize>, Vec<usize>) = ((0..ROWS).collect(), (0..COLUMNS).collect());
    let (cells, calls) = counted(&folder.0, Schema::domain);
    assert!(cells == expected((&rows, &columns), true, 4));
    let on_linux = cfg!(target_os = "linux");
    assert_eq!(calls > 0, on_linux, "{calls} calls for whole rows");
    let (cells, calls) = counted(&folder.0, |schema| {
        let [rows, columns] = [0, 1].map(|dim| schema.domain().ranges()[dim]);
        Subarray::new(vec![rows, KeyRange::new(columns.lo, columns.lo)])
    });
    assert!(cells == expected((&rows, &columns[..1]), true, 4));
    assert_eq!(calls, 0, "a column has a cell here and a cell there");
}
