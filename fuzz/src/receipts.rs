//! Receipts: texts that come from anywhere, and are committed to a store.

use crate::stores::{column, context, copied};
use crate::targets::accepted;
use gridstone::engine::{
    Array, At, Call, CellData, Condition, Dedup, Opened, ReadOrder, Receipt, commit_receipts_on, create_array_on,
    open_on,
};
use gridstone::schema::{Datatype, Schema};
use gridstone::storage::{DATA, LOG, MANIFEST, MemoryStorage, Storage};
use std::sync::{Arc, OnceLock};

const SPARSE: &str = r#"{"sparse":true,"capacity":8,"dims":[{"name":"x","dtype":"int64","domain":["0","99"],"tile":"10"}],
    "attrs":[{"name":"v","dtype":"int64"}]}"#;
const DENSE: &str = r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","99"],"tile":"10"}],
    "attrs":[{"name":"v","dtype":"int64","nullable":true}]}"#;

/// A store with staged files, and the receipts for them.
struct Scene {
    storage: MemoryStorage,
    receipts: Vec<String>,
}

fn stage(array: &Array, xs: std::ops::Range<i64>, value: i64) -> gridstone::engine::Staged {
    let x = column(Datatype::Int64, xs.clone().flat_map(i64::to_le_bytes));
    let v = column(Datatype::Int64, xs.flat_map(|_| value.to_le_bytes()));
    let attrs = vec![("v".to_owned(), v.view())];
    let data = CellData { dims: vec![x.view()], attrs, sorted: true, dedup: Dedup::Error };
    array.stage_cells(data, &Call::default()).unwrap()
}

fn scene(json: &str) -> Scene {
    let storage = MemoryStorage::new();
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let array = create_array_on(&context(), shared, "/", Schema::from_json(json).unwrap(), false).unwrap();
    for value in 0..3 {
        array.commit(vec![stage(&array, 10 * value..10 * value + 12, value)], None).unwrap();
    }
    let condition = Condition::parse("v < 2").unwrap();
    let place = ("17".to_owned(), "40".to_owned());
    let receipts = [
        array.receipt(vec![stage(&array, 50..70, 5)]),
        array.receipt(vec![stage(&array, 0..20, 5), stage(&array, 15..25, 6)]),
        array.receipt(vec![array.stage_delete_box(Some(&[place])).unwrap()]),
        array.receipt_where(None, &condition, &Call::default()),
    ];
    Scene { storage, receipts: receipts.into_iter().map(|receipt| receipt.unwrap().to_json().unwrap()).collect() }
}

fn scenes() -> &'static [Scene] {
    static SCENES: OnceLock<Vec<Scene>> = OnceLock::new();
    SCENES.get_or_init(|| vec![scene(SPARSE), scene(DENSE)])
}

/// Which store, and the text of a receipt: read, written again, committed to a copy of the store, which then opens and is read.
pub(crate) fn receipt(data: &[u8]) -> bool {
    let Some((selector, text)) = data.split_first() else { return false };
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let Some(receipt) = accepted(Receipt::from_json(text)) else { return false };
    let again = receipt.to_json().unwrap();
    assert_eq!(Receipt::from_json(&again).unwrap().to_json().unwrap(), again, "another receipt came back");
    let scene = &scenes()[usize::from(*selector) % scenes().len()];
    let storage: Arc<dyn Storage> = Arc::new(copied(&scene.storage, &[LOG, MANIFEST, DATA]));
    let Some(committed) = accepted(commit_receipts_on(&context(), storage.clone(), &[receipt], None)) else {
        return false;
    };
    assert!(committed > 0);
    let Opened::Array(array) = open_on(&context(), storage, "/", false, At::Latest).unwrap() else { return false };
    accepted(array.read(None, None, ReadOrder::Row, &Call::default())).is_some()
}

pub(crate) fn receipt_corpus() -> Vec<Vec<u8>> {
    let of = |(n, scene): (usize, &'static Scene)| {
        scene.receipts.iter().map(move |text| [&[n as u8][..], text.as_bytes()].concat())
    };
    scenes().iter().enumerate().flat_map(of).collect()
}
