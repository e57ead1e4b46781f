//! The check of every byte says what is damaged, once.

use crate::support::columns::{bytes_of, view};
use gridstone::engine::{Array, At, Call, Context, Opened, Options, create_array_on, open_on};
use gridstone::fragment::Fragment;
use gridstone::runtime::{SystemClock, SystemEntropy};
use gridstone::schema::Schema;
use gridstone::storage::{MemoryStorage, Storage};
use gridstone::store::Store;
use std::sync::Arc;

const SCHEMA: &str = r#"{"sparse":true,"capacity":1000,"coord_filters":"none",
    "dims":[{"name":"x","dtype":"int64","domain":["0","99999"],"tile":null}],
    "attrs":[{"name":"v","dtype":"int64","filters":"none"},{"name":"w","dtype":"int64","filters":"none"}]}"#;

/// A small budget, so that stripes end early.
fn context() -> Context {
    Context::new(&Options { threads: Some(1), memory_budget: 1 << 20, ..Options::default() }).unwrap()
}

fn opened(storage: &Arc<dyn Storage>) -> Array {
    match open_on(&context(), storage.clone(), "/", false, At::Latest).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("an array was made"),
    }
}

/// The only fragment: its file, and a byte of the first index section of each stripe.
fn index_bytes(storage: &Arc<dyn Storage>) -> (String, Vec<u64>) {
    let store = Store::new(storage.clone(), Arc::new(SystemClock), Arc::new(SystemEntropy));
    let snapshot = store.latest().unwrap();
    let array = snapshot.array("/").unwrap();
    let description = array.fragments(None).unwrap().remove(0);
    let source = store.files().open(description.location.file).unwrap();
    let fragment = Fragment::open(source, description.clone(), array.schema()).unwrap();
    let first = |stripe| fragment.root().sections.iter().find(|s| s.stripe as usize == stripe).unwrap().range.offset;
    (storage.list("_data").unwrap().remove(0), (0..fragment.stripes()).map(first).collect())
}

#[test]
fn a_damaged_index_is_reported_once_per_stripe() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let schema = Schema::from_json(SCHEMA).unwrap();
    let array = create_array_on(&context(), storage.clone(), "/", schema, false).unwrap();
    let cells = bytes_of(0..50_000);
    let mut writer = array.writer(None, None).unwrap();
    writer.append(&Call::default(), &[view(&cells)], &[view(&cells), view(&cells)]).unwrap();
    array.commit(vec![writer.finish(&Call::default()).unwrap()], None).unwrap();
    let sound = opened(&storage).verify(&Call::default()).unwrap();
    assert!(sound.damage.is_empty() && (sound.fragments, sound.tiles) == (1, 50), "{sound:?}");

    let (name, places) = index_bytes(&storage);
    assert!(places.len() > 2, "{places:?}");
    let whole = storage.read_all(&name).unwrap();
    for damaged in [&places[1..2], &places[..]] {
        let mut bytes = whole.to_vec();
        damaged.iter().for_each(|place| bytes[*place as usize] ^= 1);
        storage.put(&name, &bytes).unwrap();
        let report = opened(&storage).verify(&Call::default()).unwrap();
        assert_eq!((report.damage.len(), report.tiles), (damaged.len(), 50), "{report:?}");
        let tiles: Vec<_> = report.damage.iter().map(|d| d.tile.unwrap()).collect();
        assert!(tiles.is_sorted_by(|a, b| a < b) && report.damage.iter().all(|d| d.column.is_none()));
        assert_eq!(report.blocks == 0, damaged.len() == places.len());
    }
}
