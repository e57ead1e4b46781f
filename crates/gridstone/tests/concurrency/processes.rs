//! Many processes write one store at once: no write is lost, none fails, history is one line, and whoever reads
//! meanwhile sees whole writes only.

use crate::support::child::{Child, Folder, say};
use crate::support::columns::{as_text, bytes_of, numbers, view};
use crate::support::writer::{CellMap, commit_cells, context};
use gridstone::engine::{Array, At, Call, Context, Opened, ReadOrder, create_array, open};
use gridstone::schema::{Order, Schema};
use std::collections::BTreeSet;
use std::path::Path;

const WRITERS: i64 = 8;
const WRITES: i64 = 100;
/// Cells of a write: a run of columns in the writer's row.
const RUN: i64 = 16;
/// Cells more that a write makes which is larger than a log record takes in.
const MORE: i64 = 6_000;
/// Both arrays have been created.
const FIRST: u64 = 2;
const LAST: u64 = FIRST + (WRITERS * WRITES) as u64;

fn create(store: &str) {
    let schema = |sparse: bool| {
        Schema::from_json(&format!(
            r#"{{"sparse":{sparse},"capacity":1000,"coord_filters":"none",
            "dims":[{{"name":"writer","dtype":"int64","domain":["0","{}"],"tile":"3"}},
                    {{"name":"place","dtype":"int64","domain":["0","{}"],"tile":"700"}}],
            "attrs":[{{"name":"v","dtype":"int64","filters":"none"}}]}}"#,
            WRITERS - 1,
            WRITES * RUN + MORE
        ))
        .unwrap()
    };
    for (path, sparse) in [("/grid", false), ("/points", true)] {
        create_array(&context(), store, path, schema(sparse), false).unwrap();
    }
}

fn array(context: &Context, store: &str, path: &str, at: At) -> Array {
    match open(context, store, path, at == At::Latest, at).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("{path} is a group"),
    }
}

fn token(writer: i64, write: i64) -> i64 {
    (writer + 1) * 1_000 + write
}

/// How a write is made: as cells of the sparse array, as a box of the dense one, or as cells of the dense one.
fn is_sparse(write: i64) -> bool {
    write % 3 == 0
}

/// Whether a write, of the sparse array, is too large for a log record.
fn is_large(write: i64) -> bool {
    write % 33 == 0
}

/// Process `number` of those that write: says each version that it made.
pub(crate) fn write_beside_others(store: &Path, number: u64) {
    let (store, number, context) = (store.to_str().unwrap(), number as i64, context());
    let grid = array(&context, store, "/grid", At::Latest);
    let points = array(&context, store, "/points", At::Latest);
    for write in 0..WRITES {
        let message = Some(format!("{number}/{write}"));
        let places = write * RUN..(write + 1) * RUN;
        let more = if is_large(write) { WRITES * RUN..WRITES * RUN + MORE } else { 0..0 };
        let cells: CellMap = places.clone().chain(more).map(|x| ((number, x), token(number, write))).collect();
        let made = if is_sparse(write) {
            commit_cells(&points, &cells, message)
        } else if write % 3 == 1 {
            commit_cells(&grid, &cells, message)
        } else {
            let values = bytes_of(cells.values().copied());
            let bounds = [as_text((number, number)), as_text((places.start, places.end - 1))];
            let data = vec![("v".to_owned(), view(&values))];
            let staged = grid.stage_dense(Some(&bounds), &data, Order::Row, &Call::default()).unwrap();
            grid.commit(vec![staged], message)
        };
        say("version", made.unwrap());
    }
}

/// How many writes of each writer `version` shows. Checks that every write is there whole or not at all, that no
/// writer's writes have a gap, and that each version shows one write more than the one before it.
fn progress(context: &Context, store: &str, version: u64) -> Vec<i64> {
    let at = |path| array(context, store, path, At::Version(version));
    let (grid, ..) = at("/grid").read(None, None, ReadOrder::Row, &Call::default()).unwrap();
    let (points, ..) = at("/points").read(None, None, ReadOrder::Row, &Call::default()).unwrap();
    let width = WRITES * RUN + MORE + 1;
    let places = |i: i64| (i / width, i % width);
    let mut found: CellMap = (0..).map(places).zip(numbers(&grid.attrs[0])).filter(|(_, v)| *v != 0).collect();
    let rows = numbers(&points.dims[0]);
    found.extend(rows.into_iter().zip(numbers(&points.dims[1])).zip(numbers(&points.attrs[0])));

    let mut expected = CellMap::new();
    let mut counts = Vec::new();
    for writer in 0..WRITERS {
        let count = (0..WRITES).take_while(|write| found.contains_key(&(writer, write * RUN))).count() as i64;
        for write in 0..count {
            let more = if is_large(write) { WRITES * RUN..WRITES * RUN + MORE } else { 0..0 };
            let places = (write * RUN..(write + 1) * RUN).chain(more);
            expected.extend(places.map(|x| ((writer, x), token(writer, write))));
        }
        counts.push(count);
    }
    let difference = found.iter().zip(&expected).find(|(a, b)| a != b);
    assert_eq!(difference, None, "found and expected cell in version {version}, which shows {counts:?} writes");
    assert_eq!(found.len(), expected.len(), "cells in version {version}, which shows {counts:?} writes");
    assert_eq!(counts.iter().sum::<i64>() as u64, version - FIRST, "writes in version {version}: {counts:?}");
    counts
}

/// The process that reads: says each version that it has checked, until the last.
pub(crate) fn read_beside_writers(store: &Path, _number: u64) {
    let store = store.to_str().unwrap();
    let (context, mut seen, mut before) = (context(), FIRST, vec![0; WRITERS as usize]);
    let follower = array(&context, store, "/points", At::Latest);
    while seen < LAST {
        let version = follower.refresh().unwrap();
        assert!(version >= seen, "version {version} after {seen}");
        let now = progress(&context, store, version);
        assert!(now.iter().zip(&before).all(|(now, before)| now >= before), "{before:?}, then {now:?}");
        assert_eq!(progress(&context, store, seen), before, "a version does not change");
        (seen, before) = (version, now);
        say("checked", version);
    }
}

/// The history is one line from the first version to the last, a write each; the writes that it tells, by version.
fn history(context: &Context, store: &str) -> Vec<(u64, String)> {
    let mut versions = Vec::new();
    for path in ["/grid", "/points"] {
        versions.extend(array(context, store, path, At::Latest).history(&Call::default()).unwrap());
    }
    versions.sort_by_key(|listed| listed.version);
    assert!(versions.iter().map(|listed| listed.version).eq(1..=LAST), "versions are contiguous");
    assert!(versions.is_sorted_by(|a, b| a.time_us < b.time_us), "times ascend");
    assert_eq!(versions.iter().map(|listed| listed.commit_id).collect::<BTreeSet<_>>().len(), versions.len());
    let writes = versions.into_iter().skip(FIRST as usize);
    writes
        .map(|listed| {
            assert_eq!(listed.operations.len(), 1, "one write in a version: {listed:?}");
            (listed.version, listed.message.unwrap())
        })
        .collect()
}

#[test]
fn eight_processes_commit_a_hundred_writes_each_while_a_ninth_reads() {
    let folder = Folder::new("processes");
    let store = folder.0.to_str().unwrap();
    create(store);
    let mut reader = Child::start("read-beside-writers", &folder.0, 0);
    let mut writers: Vec<Child> =
        (0..WRITERS as u64).map(|number| Child::start("write-beside-others", &folder.0, number)).collect();
    let mut said = Vec::new();
    for (number, writer) in writers.iter_mut().enumerate() {
        let versions: Vec<u64> = std::iter::from_fn(|| writer.hear("version")).collect();
        assert!(writer.succeeds(), "writer {number} failed after {} of {WRITES} writes", versions.len());
        assert!(versions.is_sorted_by(|a, b| a < b), "writer {number}: {versions:?}");
        said.extend(versions.into_iter().zip((0..).map(|write| format!("{number}/{write}"))));
    }
    said.sort();
    let context = context();
    assert_eq!(history(&context, store), said, "the versions that writers were told, and those that history tells");
    assert_eq!(said.len() as i64, WRITERS * WRITES);
    assert_eq!(progress(&context, store, LAST), vec![WRITES; WRITERS as usize]);
    let checked: Vec<u64> = std::iter::from_fn(|| reader.hear("checked")).collect();
    assert!(reader.succeeds(), "the reader failed after {checked:?}");
    assert!(checked.len() > 2 && checked.last() == Some(&LAST), "the reader saw {checked:?}");
    let mixed = said.windows(2).filter(|w| w[0].1.split('/').next() != w[1].1.split('/').next()).count();
    assert!(mixed > 8, "the writers wrote one after the other: {mixed} changes of hand");
    println!("{} versions read while {mixed} changes of hand happened", checked.len());
}
