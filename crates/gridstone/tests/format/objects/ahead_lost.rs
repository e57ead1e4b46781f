//! Promise: what was asked for ahead and does not come, is not wanted any more, or was never needed does no harm: a read that fails says why, one
//! that is stopped stops, and the next gives what is there. Nothing is asked for that the read does not need, nor more than the memory holds.

use super::{Bucket, bucket, requests, storage};
use crate::support::columns::{bytes_of, numbers, view};
use crate::support::store::open;
use gridstone::base::{ErrorKind, Result};
use gridstone::engine::{Array, At, Call, CancelFlag, Context, Options, ReadOrder, create_array_on};
use gridstone::schema::{Order, Schema};
use gridstone::tile::ColumnView;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use std::sync::Arc;
use std::time::Duration;

const ROWS: i64 = 96;
const COLUMNS: i64 = 256;

fn context(threads: usize, memory_budget: u64) -> Context {
    Context::new(&Options { threads: Some(threads), memory_budget, cache: 0, ..Options::default() }).unwrap()
}

fn opened(bucket: &Bucket, threads: usize) -> Array {
    open(&context(threads, 1 << 30), &storage(bucket), "/grid", At::Latest).unwrap()
}

/// Tiles of 8 × 32 cells of a value, and of one that may be null.
fn grid(bucket: &Bucket) -> Array {
    let schema = format!(
        r#"{{"dims":[{{"name":"y","dtype":"int64","domain":["0","{}"],"tile":"8"}},
        {{"name":"x","dtype":"int64","domain":["0","{}"],"tile":"32"}}],
        "attrs":[{{"name":"v","dtype":"int64","filters":"none"}},{{"name":"n","dtype":"int64","nullable":true,"filters":"none"}}]}}"#,
        ROWS - 1,
        COLUMNS - 1
    );
    create_array_on(&context(1, 1 << 30), storage(bucket), "/grid", Schema::from_json(&schema).unwrap(), false).unwrap()
}

fn value(cell: i64, number: i64) -> i64 {
    (cell * 31 + number).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64)
}

/// Writes all cells, and gives them.
fn write(array: &Array, number: i64) -> Vec<i64> {
    let values: Vec<i64> = (0..ROWS * COLUMNS).map(|cell| value(cell, number)).collect();
    let (v, valid) = (bytes_of(values.iter().copied()), vec![1; values.len()]);
    let n = ColumnView::new(view(&v).datatype(), &v, None, Some(&valid)).unwrap();
    let attrs = vec![("v".to_owned(), view(&v)), ("n".to_owned(), n)];
    array.commit(vec![array.stage_dense(None, &attrs, Order::Row, &Call::default()).unwrap()], None).unwrap();
    values
}

fn read(array: &Array, call: &Call) -> Result<[Vec<i64>; 2]> {
    let (cells, ..) = array.read(None, None, ReadOrder::Row, call)?;
    Ok([0, 1].map(|place| numbers(&cells.attrs[place])))
}

/// Whoever waits for a request that another began and that fails asks anew: it is told itself what is wrong.
#[test]
fn a_request_that_fails_fails_the_read_alone() {
    let (bucket, plan) = bucket();
    let values = write(&grid(&bucket), 1);
    let expected = [values.clone(), values];
    for threads in [1, 2, 5] {
        let mut failed = 0;
        for n in 1..12 {
            let reader = opened(&bucket, threads);
            plan.clear();
            plan.fail("get", n, super::Trouble::Before);
            match read(&reader, &Call::default()) {
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::Storage, "{e}");
                    failed += 1;
                }
                Ok(found) => assert!(found == expected, "request {n}, {threads} threads: other cells"),
            }
            plan.clear();
            assert!(read(&reader, &Call::default()).unwrap() == expected, "after request {n} had failed");
        }
        assert!(failed > 1, "{threads} threads: {failed} reads failed");
    }
}

#[test]
fn a_read_that_is_stopped_stops() {
    let (inner, _) = bucket();
    let values = write(&grid(&inner), 1);
    let slow = ThrottleConfig { wait_get_per_call: Duration::from_millis(60), ..ThrottleConfig::default() };
    let bucket: Bucket = Arc::new(ThrottledStore::new(inner, slow));
    let expected = [values.clone(), values];
    for threads in [1, 2, 5] {
        let mut stopped = 0;
        for after in [0, 30, 70, 110, 150, 190, 230] {
            let (reader, flag) = (opened(&bucket, threads), CancelFlag::new());
            let call = Call { cancel: Arc::new(flag.clone()), ..Call::default() };
            let found = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(after));
                    flag.cancel();
                });
                read(&reader, &call)
            });
            match found {
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::Cancelled, "{e}");
                    stopped += 1;
                }
                Ok(found) => assert!(found == expected, "stopped after {after} ms, {threads} threads: other cells"),
            }
            assert!(read(&reader, &Call::default()).unwrap() == expected, "after a read that was stopped");
        }
        assert!(stopped > 1, "{threads} threads: {stopped} reads were stopped");
    }
}

/// A fragment that a newer one covers wholly is not looked at: neither its values nor its index.
#[test]
fn what_is_covered_is_not_asked_for() {
    let (bucket, plan) = bucket();
    let array = grid(&bucket);
    let mut values = Vec::new();
    for number in 1..6 {
        values = write(&array, number);
    }
    let expected = [values.clone(), values];
    // Two threads may both ask for an index.
    let reader = opened(&bucket, 1);
    plan.clear();
    assert!(read(&reader, &Call::default()).unwrap() == expected, "other cells");
    // Its end, its index, and both attributes.
    assert!(requests(&plan)["get"] <= 4, "{:?}", requests(&plan));
    let old: Vec<_> = array.fragments().unwrap().iter().take(4).map(|f| f.id).collect();
    for id in old {
        let name = storage(&bucket).list("_data").unwrap().into_iter().find(|name| name.contains(&id.to_string()));
        storage(&bucket).delete(&name.unwrap()).unwrap();
    }
    let reader = opened(&bucket, 2);
    assert!(read(&reader, &Call::default()).unwrap() == expected, "other cells once the old ones were gone");
}

/// One column of large blocks: each is needed for a few of its cells, and a group of them is of no more than its share.
#[test]
fn no_more_is_asked_for_than_the_memory_holds() {
    const TILES: i64 = 96;
    let (bucket, _) = bucket();
    let schema = format!(
        r#"{{"dims":[{{"name":"y","dtype":"int64","domain":["0","{}"],"tile":"16"}},
        {{"name":"x","dtype":"int64","domain":["0","1023"],"tile":"1024"}}],"attrs":[{{"name":"v","dtype":"int64","filters":"none"}}]}}"#,
        16 * TILES - 1
    );
    let made =
        create_array_on(&context(1, 1 << 30), storage(&bucket), "/grid", Schema::from_json(&schema).unwrap(), false);
    let made = made.unwrap();
    let v = bytes_of((0..TILES << 14).map(|n| n * 7));
    let staged = made.stage_dense(None, &vec![("v".to_owned(), view(&v))], Order::Row, &Call::default()).unwrap();
    made.commit(vec![staged], None).unwrap();
    let bounds = [("0".to_owned(), (16 * TILES - 1).to_string()), ("5".to_owned(), "5".to_owned())];
    let expected: Vec<i64> = (0..16 * TILES).map(|y| (y * 1_024 + 5) * 7).collect();
    for budget in [2u64 << 20, 16 << 20, 1 << 30] {
        let reader = open(&context(2, budget), &storage(&bucket), "/grid", At::Latest).unwrap();
        let (cells, ..) = reader.read(Some(&bounds), None, ReadOrder::Row, &Call::default()).unwrap();
        assert!(numbers(&cells.attrs[0]) == expected, "other cells");
        let (peak, all) = (reader.context().peak_bytes(), (TILES as u64) << 17);
        println!("budget {budget}: at most {peak} bytes at once of {all}");
        assert!(peak <= budget && peak >= 1 << 17, "{peak} bytes of {budget}");
    }
}
