//! Promise: a merge of much more than fits takes what it is allowed and no more, in budgets of 16 MiB, 64 MiB and 1 GiB: of a large one it takes
//! 64 MiB at most. The counter is that of a context which does nothing else.

use crate::support::columns::longs;
use crate::support::dense::{BOTH, noise, read, schema, write_box, write_cells};
use gridstone::engine::{
    Array, At, Call, CellData, Context, Dedup, Durability, Opened, Options, ReadOrder, Strategy, create_array_on,
    open_on,
};
use gridstone::schema::Schema;
use gridstone::storage::{MemoryStorage, Storage};
use std::sync::Arc;

const BUDGETS: [u64; 3] = [16 << 20, 64 << 20, 1 << 30];
/// What merges take of a budget at most.
const MERGE_BYTES_MAX: u64 = 64 << 20;

fn context(budget: u64) -> Context {
    let (threads, durability) = (Some(2), Durability::Close);
    Context::new(&Options { threads, durability, memory_budget: budget, ..Options::default() }).unwrap()
}

fn opened(storage: &Arc<dyn Storage>, budget: u64) -> Array {
    match open_on(&context(budget), storage.clone(), "/", true, At::Latest).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

/// Merges everything in a context of its own; what is read afterwards is `same` as before.
fn merged<T: PartialEq>(storage: &Arc<dyn Storage>, budget: u64, same: impl Fn(&Array) -> T) {
    let before = same(&opened(storage, 1 << 30));
    let array = opened(storage, budget);
    let report = array.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
    let (peak, most) = (array.context().peak_bytes(), budget.min(MERGE_BYTES_MAX));
    assert!(peak <= most, "{peak} bytes of {most}");
    assert!(peak >= most / 16, "{peak} bytes: what was merged is too little to tell");
    assert!(report.merges.iter().all(|merge| merge.written.is_some()), "{report:?}");
    assert!(same(&opened(storage, 1 << 30)) == before, "other cells are read than before");
}

/// 70 MB of two attributes, a tile of 1 MiB; and one of 8 MiB, of which a budget of 16 MiB holds one at a time.
#[test]
fn dense() {
    for (budget, tile) in BUDGETS.into_iter().flat_map(|budget| [(budget, 256), (budget, 700)]) {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let array =
            create_array_on(&context(1 << 30), storage.clone(), "/", schema(2_100, tile, false), false).unwrap();
        write_box(&array, ((0, 2_099), (0, 2_099)), &BOTH, 1);
        for n in 2..8 {
            write_box(&array, ((n * 150, n * 150 + 600), (n * 100, n * 100 + 700)), &BOTH, n);
            write_cells(&array, &(0..2_000).map(|i| (noise(n + i).rem_euclid(2_100), i)).collect::<Vec<_>>(), n);
        }
        merged(&storage, budget, read);
    }
}

/// Three million cells in six fragments that lie among each other.
#[test]
fn sparse() {
    const CELLS: i64 = 500_000;
    let schema = r#"{"sparse":true,"capacity":10000,"dims":[{"name":"x","dtype":"int64","domain":["0","2999999"],"tile":"100000"}],
        "attrs":[{"name":"v","dtype":"int64"}]}"#;
    for budget in BUDGETS {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let schema = Schema::from_json(schema).unwrap();
        let array = create_array_on(&context(1 << 30), storage.clone(), "/", schema, false).unwrap();
        for part in 0..6 {
            let (x, v) = (longs((0..CELLS).map(|i| 6 * i + part)), longs((0..CELLS).map(|i| noise(i + part))));
            let attrs = vec![("v".to_owned(), v.view())];
            let data = CellData { dims: vec![x.view()], attrs, sorted: true, dedup: Dedup::Error };
            array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
        }
        merged(&storage, budget, |array| {
            let (cells, ..) = array.read(None, None, ReadOrder::Row, &Call::default()).unwrap();
            cells.dims.iter().chain(&cells.attrs).map(|c| c.view().values().to_vec()).collect::<Vec<_>>()
        });
    }
}
