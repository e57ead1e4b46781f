//! Sorted copies: nothing rests on one, so an array reads as without it unless its checksums say that it is right.

use crate::seal;
use crate::stores::{FOLD, column, context, copied};
use crate::targets::accepted;
use gridstone::engine::{Array, At, Call, CellData, Cells, Dedup, Opened, ReadOrder, create_array_on, open_on};
use gridstone::schema::{Datatype, Schema};
use gridstone::storage::{DATA, LOG, MANIFEST, MemoryStorage, Storage};
use std::sync::{Arc, OnceLock};

const CELLS: &str = r#"{"sparse":true,"capacity":8,"dims":[{"name":"y","dtype":"int16","domain":["-9","9"],"tile":"5"},
    {"name":"x","dtype":"int64","domain":["0","99"],"tile":"10"}],
    "attrs":[{"name":"v","dtype":"int64","filters":"delta,for"},{"name":"w","dtype":"int64","filters":"shuffle,zstd:1"}]}"#;
const GRID: &str = r#"{"dims":[{"name":"y","dtype":"int16","domain":["-9","9"],"tile":"5"},
    {"name":"x","dtype":"int64","domain":["0","99"],"tile":"10"}],
    "attrs":[{"name":"v","dtype":"int64","filters":"pco"},{"name":"w","dtype":"int64","filters":"none"}]}"#;

/// A store that has folded, the name of the copy, and what its array holds.
struct Scene {
    storage: MemoryStorage,
    copies: Vec<String>,
    held: Vec<Vec<u8>>,
}

fn write(array: &Array, number: i64) {
    let at = |i: i64| (((i * 7 + number * 3) % 19 - 9) as i16, (i * 13 + number) % 100);
    let places: std::collections::BTreeMap<(i16, i64), i64> = (0..15).map(|i| (at(i), i * number)).collect();
    let y = column(Datatype::Int16, places.keys().flat_map(|(y, _)| y.to_le_bytes()));
    let x = column(Datatype::Int64, places.keys().flat_map(|(_, x)| x.to_le_bytes()));
    let v = column(Datatype::Int64, places.values().flat_map(|v| v.to_le_bytes()));
    let attrs = vec![("v".to_owned(), v.view()), ("w".to_owned(), v.view())];
    let data = CellData { dims: vec![y.view(), x.view()], attrs, sorted: false, dedup: Dedup::Error };
    array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
}

fn scene(json: &str) -> Scene {
    let storage = MemoryStorage::new().near();
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let array = create_array_on(&context(), shared.clone(), "/", Schema::from_json(json).unwrap(), false).unwrap();
    (0..2 * FOLD as i64).for_each(|number| write(&array, number));
    let is_copy = |name: &String| storage.read_all(name).unwrap().starts_with(b"GS0SORT\n");
    let copies = storage.list(DATA).unwrap().into_iter().filter(is_copy).collect();
    let held = read(&shared).unwrap();
    Scene { storage, copies, held }
}

fn scenes() -> &'static [Scene] {
    static SCENES: OnceLock<Vec<Scene>> = OnceLock::new();
    SCENES.get_or_init(|| vec![scene(CELLS), scene(GRID)])
}

fn read(storage: &Arc<dyn Storage>) -> Option<Vec<Vec<u8>>> {
    let Opened::Array(array) = open_on(&context(), storage.clone(), "/", false, At::Latest).unwrap() else {
        return None;
    };
    let found = accepted(array.read(None, None, ReadOrder::Row, &Call::default()))?;
    let bytes = |cells: &Cells| cells.dims.iter().chain(&cells.attrs).map(|c| c.view().values().to_vec()).collect();
    Some(bytes(&found.0))
}

/// Which store, which of its copies, and the bytes in the place of that.
pub(crate) fn sorted_copy(data: &[u8]) -> bool {
    let Some(([selector, place], bytes)) = data.split_first_chunk::<2>() else { return false };
    let scene = &scenes()[usize::from(*selector) % scenes().len()];
    let name = &scene.copies[usize::from(*place) % scene.copies.len()];
    let storage: Arc<dyn Storage> = Arc::new(copied(&scene.storage, &[LOG, MANIFEST, DATA]));
    storage.delete(name).unwrap();
    storage.put(name, bytes).unwrap();
    assert_eq!(read(&storage).as_ref(), Some(&scene.held), "a damaged copy changed what is read");
    let mut sealed = bytes.to_vec();
    seal::sorted_copy(&mut sealed);
    storage.delete(name).unwrap();
    storage.put(name, &sealed).unwrap();
    // What somebody has sealed is believed.
    read(&storage).is_some()
}

pub(crate) fn sorted_copy_corpus() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for (n, scene) in scenes().iter().enumerate() {
        assert!(!scene.copies.is_empty(), "no copy was written");
        for (place, name) in scene.copies.iter().enumerate() {
            inputs.push([&[n as u8, place as u8][..], &scene.storage.read_all(name).unwrap()].concat());
        }
    }
    inputs
}
