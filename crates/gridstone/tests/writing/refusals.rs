//! What is refused, with the kind of error that says what the caller would do, and a message that names the culprit.

use crate::support::array::{bytes, column, create, sub};
use gridstone::base::{AlignedBuf, Error, ErrorKind};
use gridstone::engine::{
    Array, At, Call, CellData, Column, ColumnView, Context, Dedup, Durability, Opened, Options, ReadOrder,
    create_array_on, open, open_on,
};
use gridstone::schema::{Datatype, Order, Schema};
use gridstone::storage::{Fault, FaultPlan, FaultyStorage, MemoryStorage, Storage, log_name};
use std::sync::Arc;

const GRID: &str = r#"{"dims":[{"name":"lat","dtype":"int32","domain":["-9","9"],"tile":"4"}],
    "attrs":[{"name":"sog","dtype":"uint8"},{"name":"heading","dtype":"uint8","nullable":true}]}"#;
const POINTS: &str = r#"{"sparse":true,"dims":[{"name":"lat","dtype":"int32","domain":["-9","9"]},{"name":"lon","dtype":"int32","domain":["0","99"]}],
    "attrs":[{"name":"sog","dtype":"uint8"}]}"#;

fn refuse<T>(outcome: Result<T, Error>, kind: ErrorKind, words: &[&str]) {
    let error = outcome.err().unwrap_or_else(|| panic!("{words:?} was accepted"));
    assert_eq!(error.kind(), kind, "{error}");
    for word in words {
        assert!(error.message().contains(word), "{word:?} is not in: {error}");
    }
}

fn ints(values: &[i32]) -> Column {
    column(Datatype::Int32, values.iter().map(|v| v.to_le_bytes()))
}

fn dense(array: &Array, ranges: &[(&str, &str)], data: &[(&str, ColumnView<'_>)]) -> Result<u64, Error> {
    let data = data.iter().map(|(name, view)| ((*name).to_owned(), *view)).collect();
    Ok(array.stage_dense(Some(&sub(ranges)), &data, Order::Row, &Call::default())?.cells())
}

fn cells(array: &Array, dims: &[&Column], values: &Column, sorted: bool) -> Result<u64, Error> {
    let dims = dims.iter().map(|d| d.view()).collect();
    let data = CellData { dims, attrs: vec![("sog".to_owned(), values.view())], sorted, dedup: Dedup::Error };
    Ok(array.stage_cells(data, &Call::default())?.cells())
}

#[test]
fn dense_writes() {
    let array = create(GRID);
    let two = bytes(&[1, 2]);
    let box_of_two = [("0", "1")];
    use ErrorKind::{Bounds, Input};
    refuse(dense(&array, &box_of_two, &[("soggy", two.view())]), Input, &["soggy", "sog, heading"]);
    refuse(dense(&array, &box_of_two, &[("sog", ints(&[1, 2]).view())]), Input, &["\"sog\"", "int32", "uint8"]);
    refuse(dense(&array, &[("0", "2")], &[("sog", two.view())]), Input, &["\"sog\"", "2 values", "3 cells"]);
    refuse(dense(&array, &box_of_two, &[("sog", two.view()), ("sog", two.view())]), Input, &["twice"]);
    refuse(dense(&array, &box_of_two, &[]), Input, &["attribute"]);
    refuse(dense(&array, &[("8", "10")], &[("sog", two.view())]), Bounds, &["lat from 8 to 10", "lat from -9 to 9"]);
    refuse(dense(&array, &[("1", "0")], &[("sog", two.view())]), Bounds, &["\"lat\"", "low end 1", "high end 0"]);
    refuse(dense(&array, &[("0", "one")], &[("sog", two.view())]), Bounds, &["one", "\"lat\""]);
    refuse(dense(&array, &[("0", "1"), ("0", "1")], &[("sog", two.view())]), Bounds, &["2 dimensions", "has 1"]);
    let null = Column::new(Datatype::UInt8, AlignedBuf::from_slice(&[1, 2]), None, Some(vec![1, 0])).unwrap();
    refuse(dense(&array, &box_of_two, &[("sog", null.view())]), Input, &["\"sog\"", "row 1", "null"]);
    assert_eq!(dense(&array, &box_of_two, &[("heading", null.view())]).unwrap(), 2);
    let sparse = create(POINTS);
    refuse(dense(&sparse, &[("0", "1"), ("0", "0")], &[("sog", two.view())]), Input, &["sparse", "cells"]);
}

#[test]
fn cell_writes() {
    let array = create(POINTS);
    let (lat, lon, sog) = (ints(&[0, 1]), ints(&[5, 5]), bytes(&[1, 2]));
    use ErrorKind::{Bounds, Input};
    refuse(cells(&array, &[&lat], &sog, false), Input, &["1 dimensions", "has 2"]);
    refuse(cells(&array, &[&lat, &bytes(&[5, 5])], &sog, false), Input, &["\"lon\"", "uint8", "int32"]);
    refuse(cells(&array, &[&lat, &ints(&[5])], &sog, false), Input, &["\"lon\"", "1 coordinates", "2"]);
    refuse(cells(&array, &[&lat, &lon], &bytes(&[1]), false), Input, &["\"sog\"", "1 values", "2 cells"]);
    refuse(cells(&array, &[&lat, &lon], &ints(&[1, 2]), false), Input, &["\"sog\"", "int32"]);
    refuse(cells(&array, &[&lat, &ints(&[5, 100])], &sog, false), Bounds, &["row 1", "100", "\"lon\"", "(0, 99)"]);
    refuse(cells(&array, &[&ints(&[3, 3]), &lon], &sog, false), Input, &["rows 0 and 1", "lat=3, lon=5", "dedup"]);
    refuse(cells(&array, &[&ints(&[3, 2]), &lon], &sog, true), Input, &["row 1", "row 0", "sorted"]);
    let view = lat.view();
    let dims = vec![view, lon.view()];
    let data = CellData { dims: dims.clone(), attrs: Vec::new(), sorted: false, dedup: Dedup::Error };
    refuse(array.stage_cells(data, &Call::default()), Input, &["missing: sog"]);
    let nulls = Column::new(Datatype::Int32, AlignedBuf::from_slice(&[0; 8]), None, Some(vec![1, 0])).unwrap();
    refuse(cells(&array, &[&nulls, &lon], &sog, false), Input, &["\"lat\"", "row 1", "null"]);
    refuse(array.stage_delete(&[view], &Call::default()), Input, &["1 dimensions", "has 2"]);
    refuse(array.stage_delete(&[view, ints(&[0, -1]).view()], &Call::default()), Bounds, &["row 1", "-1", "\"lon\""]);
}

#[test]
fn streams() {
    let array = create(GRID);
    let names = ["sog".to_owned()];
    let three = bytes(&[1, 2, 3]);
    use ErrorKind::{Bounds, Input};
    refuse(array.writer(Some(&sub(&[("0", "10")])), Some(&names)), Bounds, &["10"]);
    refuse(array.writer(None, Some(&["sag".to_owned()])), Input, &["sag"]);
    let mut short = array.writer(Some(&sub(&[("0", "4")])), Some(&names)).unwrap();
    short.append(&Call::default(), &[], &[three.view()]).unwrap();
    refuse(short.finish(&Call::default()), Input, &["3 of the 5 cells", "lat"]);
    refuse(short.append(&Call::default(), &[], &[three.view()]), Input, &["closed"]);
    let mut long = array.writer(Some(&sub(&[("0", "4")])), Some(&names)).unwrap();
    long.append(&Call::default(), &[], &[three.view()]).unwrap();
    refuse(long.append(&Call::default(), &[], &[three.view()]), Input, &["6 cells", "5"]);
    let mut wrong = array.writer(None, Some(&names)).unwrap();
    refuse(wrong.append(&Call::default(), &[], &[three.view(), three.view()]), Input, &["2 columns", "1"]);
    let array = create(POINTS);
    let mut descending = array.writer(None, None).unwrap();
    descending.append(&Call::default(), &[ints(&[3]).view(), ints(&[3]).view()], &[bytes(&[1]).view()]).unwrap();
    refuse(
        descending.append(&Call::default(), &[ints(&[3]).view(), ints(&[3]).view()], &[bytes(&[1]).view()]),
        Input,
        &["row 1", "global order"],
    );
    let twice = ["sog".to_owned(), "sog".to_owned()];
    refuse(array.writer(None, Some(&twice)).map(drop), Input, &["attribute"]);
}

#[test]
fn reads() {
    let array = create(GRID);
    let call = Call::default();
    let names = |name: &str| vec![name.to_owned()];
    refuse(
        array.read(None, Some(&names("speed")), ReadOrder::Row, &call),
        ErrorKind::Input,
        &["speed", "sog, heading"],
    );
    refuse(array.read(Some(&sub(&[("-10", "0")])), None, ReadOrder::Row, &call), ErrorKind::Bounds, &["-10", "-9"]);
    refuse(
        array.read(Some(&sub(&[("0", "99999999999")])), None, ReadOrder::Row, &call),
        ErrorKind::Bounds,
        &["99999999999", "\"lat\""],
    );
    refuse(array.scan(None, Some(&names("")), ReadOrder::Row, 1, &call), ErrorKind::Input, &["\"\""]);
    refuse(array.at(At::Version(9)), ErrorKind::NotFound, &["version 9", "1 to 1"]);
    refuse(array.at(At::Version(0)), ErrorKind::NotFound, &["version 0"]);
    refuse(array.at(At::Time(0)), ErrorKind::NotFound, &["younger"]);
}

fn context() -> Context {
    Context::new(&Options { threads: Some(1), durability: Durability::Close, ..Options::default() }).unwrap()
}

fn store(json: &str) -> (MemoryStorage, Array) {
    let storage = MemoryStorage::new();
    let array =
        create_array_on(&context(), Arc::new(storage.clone()), "/", Schema::from_json(json).unwrap(), false).unwrap();
    (storage, array)
}

fn open_memory(storage: &MemoryStorage, writable: bool, at: At) -> Result<Array, Error> {
    match open_on(&context(), Arc::new(storage.clone()), "/", writable, at)? {
        Opened::Array(array) => Ok(array),
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

#[test]
fn stores_that_are_none_or_of_the_future() {
    let folder = crate::support::scratch::Folder::new("refusals");
    let uri = folder.path().join("nothing").display().to_string();
    refuse(open(&context(), &uri, "/", false, At::Latest), ErrorKind::NotFound, &["no Gridstone store", "nothing"]);
    let file = folder.path().join("file.txt");
    std::fs::write(&file, "text").unwrap();
    let error = open(&context(), &file.display().to_string(), "/", false, At::Latest).unwrap_err();
    assert!(error.message().contains("file.txt"), "{error}");
    let (storage, array) = store(GRID);
    refuse(
        open_on(&context(), Arc::new(storage.clone()), "/north", false, At::Latest),
        ErrorKind::NotFound,
        &["/north", "version 1"],
    );
    refuse(open_memory(&storage, true, At::Version(1)), ErrorKind::Input, &["read-only"]);
    let create =
        || create_array_on(&context(), Arc::new(storage.clone()), "/", Schema::from_json(GRID).unwrap(), false);
    refuse(create(), ErrorKind::Exists, &["/ exists", "overwrite"]);
    let future = format!("{{\"gs\":7,\"version\":{}}}\n", array.version() + 1);
    storage.put(&log_name(2), future.as_bytes()).unwrap();
    refuse(
        open_memory(&storage, false, At::Latest),
        ErrorKind::Unsupported,
        &["version 2", "format version 7", "newer Gridstone"],
    );
    assert_eq!(open_memory(&storage, false, At::Version(1)).unwrap().version(), 1);
}

/// A fragment file whose header and footer say another format version, checksums and all.
#[test]
fn fragments_of_the_future() {
    let json = r#"{"dims":[{"name":"x","dtype":"int32","domain":["0","199999"]}],"attrs":[{"name":"v","dtype":"uint8","filters":"none"}]}"#;
    let (storage, array) = store(json);
    let many = bytes(&vec![1; 200_000]);
    let staged = array.stage_dense(None, &vec![("v".to_owned(), many.view())], Order::Row, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
    let name = storage.list("_data").unwrap().remove(0);
    let mut bytes = storage.read_all(&name).unwrap().to_vec();
    bytes[8] = 3;
    let seal = gridstone::base::xxh3(&bytes[..56]);
    bytes[56..64].copy_from_slice(&seal.to_le_bytes());
    storage.put(&name, &bytes).unwrap();
    let array = open_memory(&storage, false, At::Latest).unwrap();
    let read = array.read(None, None, ReadOrder::Row, &Call::default());
    refuse(read, ErrorKind::Unsupported, &["fragment", "format version 3", "newer"]);
}

#[test]
fn read_only_handles() {
    let (storage, array) = store(GRID);
    let staged = array.stage_dense(
        Some(&sub(&[("0", "1")])),
        &vec![("sog".to_owned(), bytes(&[1, 2]).view())],
        Order::Row,
        &Call::default(),
    );
    let reader = open_memory(&storage, false, At::Latest).unwrap();
    refuse(
        dense(&reader, &[("0", "1")], &[("sog", bytes(&[1, 2]).view())]),
        ErrorKind::Input,
        &["opened for reading", "r+"],
    );
    refuse(reader.commit(vec![staged.unwrap()], None), ErrorKind::Input, &["opened for reading"]);
    refuse(reader.set_metadata(vec![("k".to_owned(), None)]), ErrorKind::Input, &["opened for reading"]);
    refuse(reader.writer(None, None), ErrorKind::Input, &["opened for reading"]);
    refuse(reader.stage_delete(&[ints(&[0]).view()], &Call::default()), ErrorKind::Input, &["opened for reading"]);
    let pinned = open_memory(&storage, false, At::Version(1)).unwrap();
    refuse(pinned.refresh(), ErrorKind::Input, &["opened at a version"]);
    assert_eq!(array.version(), 1);
}

#[test]
fn a_full_disk() {
    let (healthy, plan) = (MemoryStorage::new(), FaultPlan::new());
    let storage: Arc<dyn Storage> = Arc::new(FaultyStorage::new(Arc::new(healthy.clone()), plan.clone()));
    let json = r#"{"dims":[{"name":"x","dtype":"int32","domain":["0","299999"]}],"attrs":[{"name":"v","dtype":"uint8","filters":"none"}]}"#;
    let array = create_array_on(&context(), storage, "/", Schema::from_json(json).unwrap(), false).unwrap();
    for cells in [10, 300_000] {
        let many = bytes(&vec![7; cells]);
        let write = || {
            let ranges = vec![("0".to_owned(), (cells - 1).to_string())];
            let staged =
                array.stage_dense(Some(&ranges), &vec![("v".to_owned(), many.view())], Order::Row, &Call::default())?;
            array.commit(vec![staged], None)
        };
        let before = array.version();
        plan.fail_nth(1, Fault::Full);
        let error = write().unwrap_err();
        assert_eq!((error.kind(), error.os_error()), (ErrorKind::Storage, Some(28)), "{error}");
        assert_eq!(array.version(), before);
        plan.clear();
        assert_eq!(healthy.list("_data").unwrap().len(), 0, "what was begun is removed");
        assert_eq!(write().unwrap(), before + 1, "the same handle goes on once there is space");
    }
}
