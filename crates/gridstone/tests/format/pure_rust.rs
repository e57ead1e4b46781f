//! A short life of both kinds of array through filters that are written in Rust alone: what Miri can run of the whole
//! way down and up (`make deep`), and is little enough to.

use crate::support::columns::{as_text, bytes_of, numbers, view};
use gridstone::engine::{
    Array, Call, CellData, Context, Dedup, Durability, Options, ReadOrder, Strategy, create_array_on,
};
use gridstone::schema::{Order, Schema};
use gridstone::storage::MemoryStorage;
use std::sync::Arc;

const FILTERS: [&str; 6] = ["none", "lz4", "delta,for", "shuffle,lz4", "bitshuffle", "pco"];

fn array(sparse: bool, filters: &str) -> Array {
    let options = Options { threads: Some(1), durability: Durability::Close, ..Options::default() };
    let context = Context::new(&options).unwrap().with_fold_versions(2);
    let dim = |name: &str| format!(r#"{{"name":"{name}","dtype":"int64","domain":["0","5"],"tile":"4"}}"#);
    let schema = Schema::from_json(&format!(
        r#"{{"sparse":{sparse},"capacity":4,"coord_filters":"delta","dims":[{},{}],
        "attrs":[{{"name":"v","dtype":"int64","filters":"{filters}"}}]}}"#,
        dim("y"),
        dim("x")
    ));
    create_array_on(&context, Arc::new(MemoryStorage::new()), "/", schema.unwrap(), false).unwrap()
}

fn write_cells(array: &Array, cells: &[(i64, i64)], value: i64) {
    let (rows, columns) = (bytes_of(cells.iter().map(|c| c.0)), bytes_of(cells.iter().map(|c| c.1)));
    let values = bytes_of(cells.iter().map(|_| value));
    let (dims, attrs) = (vec![view(&rows), view(&columns)], vec![("v".to_owned(), view(&values))]);
    let data = CellData { dims, attrs, sorted: false, dedup: Dedup::Error };
    array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
}

fn values(array: &Array) -> Vec<i64> {
    numbers(&array.read(None, None, ReadOrder::Row, &Call::default()).unwrap().0.attrs[0])
}

#[test]
fn dense_and_sparse_through_every_filter() {
    for filters in FILTERS {
        for sparse in [false, true] {
            let array = array(sparse, filters);
            if !sparse {
                let box_values = bytes_of(0..36);
                let data = vec![("v".to_owned(), view(&box_values))];
                let bounds = [as_text((0, 5)), as_text((0, 5))];
                let staged = array.stage_dense(Some(&bounds), &data, Order::Row, &Call::default()).unwrap();
                array.commit(vec![staged], None).unwrap();
            }
            write_cells(&array, &[(0, 1), (5, 5), (2, 3)], 100);
            write_cells(&array, &[(2, 3), (4, 0)], 200);
            let expected = |at: usize| match at {
                1 | 35 => 100,
                15 | 24 => 200,
                _ => at as i64,
            };
            let all: Vec<i64> = if sparse { vec![100, 200, 200, 100] } else { (0..36).map(expected).collect() };
            assert_eq!(values(&array), all, "{filters}");
            array.consolidate(&Strategy::All, 1 << 20, false, &Call::default()).unwrap();
            assert_eq!(values(&array), all, "{filters}, merged");
            assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
        }
    }
}
