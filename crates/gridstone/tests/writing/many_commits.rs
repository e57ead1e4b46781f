//! Promise: a tiny commit costs the same however many came before it: requests and bytes are counted, and folds are among them.

use crate::support::columns::longs;
use crate::support::copy::memory;
use gridstone::engine::{Call, CellData, Context, Dedup, Options, create_array_on};
use gridstone::schema::Schema;
use gridstone::storage::{CountingStorage, Storage};
use std::sync::Arc;
use std::time::{Duration, Instant};

const COMMITS: i64 = 20_480;
/// As many as a page of fragments describes: the last page grows until it is full, so costs repeat after so many.
const WINDOW: i64 = 4_096;

/// What some commits took.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    requests: u64,
    read: u64,
    written: u64,
}

#[test]
fn twenty_thousand_tiny_commits_cost_the_same_each() {
    let schema = r#"{"sparse":true,"dims":[{"name":"x","dtype":"int64","domain":["0","999999"],"tile":"1000"}],
        "attrs":[{"name":"v","dtype":"int64"}]}"#;
    let counting = Arc::new(CountingStorage::new(memory()));
    let storage: Arc<dyn Storage> = counting.clone();
    let context = Context::new(&Options { threads: Some(1), ..Options::default() }).unwrap();
    let array = create_array_on(&context, storage, "/a", Schema::from_json(schema).unwrap(), false).unwrap();
    let (mut costs, mut times) = (Vec::new(), Vec::new());
    let (mut since, mut cost) = (Duration::ZERO, Cost::default());
    for n in 0..COMMITS {
        // The same number of digits each, in a version too.
        let x = longs([500_000 + n]);
        let begun = Instant::now();
        let data = CellData {
            dims: vec![x.view()],
            attrs: vec![("v".to_owned(), x.view())],
            sorted: true,
            dedup: Dedup::Error,
        };
        array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
        since += begun.elapsed();
        if (n + 1) % 1_024 == 0 {
            times.push(std::mem::take(&mut since).as_millis());
            let seen = counting.snapshot();
            counting.reset();
            cost.requests += seen.total();
            cost.read += seen.bytes_read;
            cost.written += seen.bytes_written;
        }
        if (n + 1) % WINDOW == 0 {
            costs.push(std::mem::take(&mut cost));
        }
    }
    println!("milliseconds per 1,024 commits: {times:?}\nper {WINDOW} commits: {costs:?}");
    let (first, last) = (costs[1], costs[costs.len() - 1]);
    for (what, early, late) in [
        ("requests", first.requests, last.requests),
        ("bytes read", first.read, last.read),
        ("bytes written", first.written, last.written),
    ] {
        assert!(late <= early + early / 20 + 100, "{what}: {early} for commits in the beginning, {late} for the last");
    }
    assert!(first.requests / WINDOW as u64 <= 8, "{first:?}");
}
