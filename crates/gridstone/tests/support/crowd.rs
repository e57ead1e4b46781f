//! An array in a folder that a crowd of writers fills, each commit in two halves.

use super::scratch::Folder;
use gridstone::base::AlignedBuf;
use gridstone::engine::{
    Array, At, Call, CellData, Column, Context, Dedup, Durability, Opened, Options, ReadOrder, create_array_on, open_on,
};
use gridstone::schema::{Datatype, Schema};
use gridstone::storage::{LocalStorage, Storage};
use std::sync::Arc;

pub(crate) const WRITERS: i64 = 8;
pub(crate) const COMMITS: i64 = 100;
const JSON: &str = r#"{"sparse":true,"capacity":4,"dims":[{"name":"writer","dtype":"int64","domain":["0","7"],"tile":"2"},
    {"name":"commit","dtype":"int64","domain":["0","99"]},{"name":"half","dtype":"int64","domain":["0","1"]}],
    "attrs":[{"name":"v","dtype":"int64"}]}"#;

pub(crate) fn open(folder: &std::path::Path, writable: bool) -> Array {
    let options = Options { threads: Some(1), durability: Durability::Close, ..Options::default() };
    let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(folder, Durability::Close).unwrap());
    match open_on(&Context::new(&options).unwrap(), storage, "/", writable, At::Latest).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

fn longs(values: &[i64]) -> Column {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Column::new(Datatype::Int64, AlignedBuf::from_slice(&bytes), None, None).unwrap()
}

/// Both halves of a commit, a fragment each.
pub(crate) fn write(array: &Array, writer: i64, commit: i64) -> u64 {
    let half = |half: i64| {
        let (dims, value) = ([longs(&[writer]), longs(&[commit]), longs(&[half])], longs(&[writer * 1_000 + commit]));
        let dims = dims.iter().map(Column::view).collect();
        let data = CellData { dims, attrs: vec![("v".to_owned(), value.view())], sorted: false, dedup: Dedup::Error };
        array.stage_cells(data, &Call::default()).unwrap()
    };
    array.commit(vec![half(0), half(1)], None).unwrap()
}

/// The cells there are, checked; fails where one half is there without the other.
pub(crate) fn read(array: &Array) -> usize {
    let (cells, _, _) = array.read(None, None, ReadOrder::Row, &Call::default()).unwrap();
    let column =
        |c: &Column| c.view().values().as_chunks::<8>().0.iter().map(|w| i64::from_le_bytes(*w)).collect::<Vec<_>>();
    let (writer, commit, half) = (column(&cells.dims[0]), column(&cells.dims[1]), column(&cells.dims[2]));
    let values = column(&cells.attrs[0]);
    assert_eq!(cells.count % 2, 0, "half a commit is seen");
    for row in 0..cells.count {
        assert_eq!(half[row], row as i64 % 2, "half a commit is seen");
        assert_eq!((writer[row], commit[row]), (writer[row - row % 2], commit[row - row % 2]), "half a commit is seen");
        assert_eq!(values[row], writer[row] * 1_000 + commit[row]);
    }
    cells.count
}

/// A folder with the empty array.
pub(crate) fn created(name: &str) -> Folder {
    let folder = Folder::new(name);
    let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(folder.path(), Durability::Close).unwrap());
    let context = Context::new(&Options { threads: Some(1), ..Options::default() }).unwrap();
    create_array_on(&context, storage, "/", Schema::from_json(JSON).unwrap(), false).unwrap();
    folder
}
