//! Changed schemas, appended blocks, labels.

use crate::support::*;
use gridstone_capi::*;
use std::ffi::{CStr, c_char};
use std::ptr::{null, null_mut};

fn alter(array: &Held, evolution: *const c_char, labels: &[gridstone_column], version: &mut u64) -> gridstone_status {
    let first = if labels.is_empty() { null() } else { labels.as_ptr() };
    // SAFETY: the texts and columns live through the call.
    unsafe { gridstone_array_alter(array.0, evolution, first, labels.len(), null(), version) }
}

/// A column of labels, with their type.
fn labels<T>(name: &CStr, datatype: &CStr, values: &[T]) -> gridstone_column {
    let mut labels = column(name, values);
    labels.r#type = datatype.as_ptr();
    labels
}

fn append(
    array: &Held,
    dimension: &CStr,
    length: u64,
    values: &[i32],
    labels: Option<&gridstone_column>,
    version: &mut u64,
) -> gridstone_status {
    let (given, labels) = ([column(c"v", values)], labels.map_or(null(), std::ptr::from_ref));
    let (array, dimension, order) = (array.0, dimension.as_ptr(), GRIDSTONE_ORDER_ROW);
    // SAFETY: the columns live through the call.
    unsafe { gridstone_array_append(array, dimension, length, order, given.as_ptr(), 1, labels, null(), version) }
}

#[test]
fn a_schema_changes_and_old_cells_are_read_through_it() {
    let store = store("alter", false);
    let before = write_dense(&store.array, &[4; 10]);
    let evolution = c(r#"{"add": [{"name": "w", "dtype": "int16", "nullable": false, "fill": "9", "filters": "auto"}],
        "rename": [["x", "column"]]}"#);
    let mut version = 0;
    ok(alter(&store.array, evolution.as_ptr(), &[], &mut version));
    assert_eq!(version, before + 1);
    assert_eq!(dense(&store.array), [4; 10]);
    // SAFETY: the place is there.
    let schema = json_of(|out| unsafe { gridstone_schema_json(store.array.0, out) });
    assert_eq!((&schema["attrs"][1]["name"], &schema["dims"][0]["name"]), (&"w".into(), &"column".into()));
    // Nothing changes: nothing is committed.
    ok(alter(&store.array, c"{}".as_ptr(), &[], &mut version));
    ok(alter(&store.array, null(), &[], &mut version));
    assert_eq!(version, before + 1);
}

#[test]
fn what_cannot_change_is_refused() {
    let store = store("alter-wrong", false);
    let (mut version, before) = (7, refresh(&store.array));
    for (text, status, part) in [
        (c"nonsense", GRIDSTONE_ERROR_SCHEMA, ""),
        (c"{\"drop\": [\"w\"]}", GRIDSTONE_ERROR_SCHEMA, "w"),
        (c"{\"drop\": [\"v\"]}", GRIDSTONE_ERROR_SCHEMA, "last attribute"),
        (c"{\"domains\": [[\"x\", \"0\", \"5\"]]}", GRIDSTONE_ERROR_SCHEMA, "x"),
    ] {
        fails(alter(&store.array, text.as_ptr(), &[], &mut version), status, part);
    }
    fails(alter(&store.again(), c"{\"nullable\": [\"v\"]}".as_ptr(), &[], &mut version), GRIDSTONE_ERROR_INPUT, "");
    fails(alter(&store.context, c"{}".as_ptr(), &[], &mut version), GRIDSTONE_ERROR_HANDLE, "an array is needed");
    let mut keyed = call();
    (keyed.commit_key, keyed.commit_key_bytes) = (b"k".as_ptr(), 1);
    // SAFETY: the texts live through the calls; null pointers are refused.
    unsafe {
        let (array, text) = (store.array.0, c"{}".as_ptr());
        let refused = gridstone_array_alter(array, text, null(), 0, &raw const keyed, &raw mut version);
        fails(refused, GRIDSTONE_ERROR_INPUT, "takes no commit key");
        let refused = gridstone_array_alter(array, text, null(), 1, null(), &raw mut version);
        fails(refused, GRIDSTONE_ERROR_INPUT, "gridstone_column is a null pointer");
    }
    assert_eq!((version, refresh(&store.array)), (7, before));
}

#[test]
fn blocks_are_appended_behind_each_other() {
    let store = store("append", false);
    write_dense(&store.array, &[1; 10]);
    let mut version = 0;
    ok(append(&store.array, c"x", 3, &[2, 3, 4], None, &mut version));
    assert_eq!(version, crate::support::version(&store.array));
    ok(append(&store.array, c"x", 1, &[5], None, &mut version));
    assert_eq!(dense_of(&store.array, 14)[9..], [1, 2, 3, 4, 5]);
    version = 7;
    fails(append(&store.array, c"y", 1, &[5], None, &mut version), GRIDSTONE_ERROR_NOT_FOUND, "there are x");
    fails(append(&store.array, c"x", 2, &[5], None, &mut version), GRIDSTONE_ERROR_INPUT, "");
    let at = [1_i64];
    let given = [column(c"x", &at)];
    // SAFETY: the columns live through the calls; null pointers are refused.
    unsafe {
        let (array, x) = (store.array.0, c"x".as_ptr());
        let refused = gridstone_array_append(array, x, 1, 0, given.as_ptr(), 1, null(), null(), &raw mut version);
        fails(refused, GRIDSTONE_ERROR_INPUT, "a block has no coordinates");
        let refused = gridstone_array_append(array, x, 1, 9, null(), 0, null(), null(), &raw mut version);
        fails(refused, GRIDSTONE_ERROR_INPUT, "order is 9");
        let refused = gridstone_array_append(array, null(), 1, 0, null(), 0, null(), null(), &raw mut version);
        fails(refused, GRIDSTONE_ERROR_INPUT, "dimension is a null pointer");
    }
    let sparse = crate::support::store("append-sparse", true);
    fails(append(&sparse.array, c"x", 1, &[5], None, &mut version), GRIDSTONE_ERROR_UNSUPPORTED, "");
    assert_eq!(version, 7);
}

#[test]
fn labels_are_listed_and_continued() {
    let store = store("labels", false);
    write_dense(&store.array, &[1; 10]);
    let mut version = 0;
    let steps: Vec<i64> = (0..10).map(|step| step * step).collect();
    let nine = labels(c"x", c"int64", &steps[..9]);
    fails(alter(&store.array, null(), &[nine], &mut version), GRIDSTONE_ERROR_INPUT, "");
    let untyped = column(c"x", &steps);
    fails(
        alter(&store.array, null(), &[untyped], &mut version),
        GRIDSTONE_ERROR_INPUT,
        "gridstone_column.type is a null pointer",
    );
    ok(alter(&store.array, null(), &[labels(c"x", c"int64", &steps)], &mut version));
    let more = [100_i64];
    let wrong = labels(c"y", c"int64", &more);
    fails(append(&store.array, c"x", 1, &[2], Some(&wrong), &mut version), GRIDSTONE_ERROR_INPUT, "called \"y\"");
    fails(append(&store.array, c"x", 1, &[2], None, &mut version), GRIDSTONE_ERROR_INPUT, "labels");
    ok(append(&store.array, c"x", 1, &[2], Some(&labels(c"x", c"int64", &more)), &mut version));
    // SAFETY: the texts live through the calls.
    unsafe {
        let listed = Held::of(|out| gridstone_array_labels(store.array.0, c"x".as_ptr(), out));
        let mut found = [0_i64; 11];
        let mut buffer: gridstone_buffer = std::mem::zeroed();
        (buffer.size, buffer.name) = (size_of::<gridstone_buffer>(), c"label".as_ptr());
        (buffer.values, buffer.values_bytes) = (found.as_mut_ptr().cast(), size_of_val(&found));
        let mut validity = [0_u8; 11];
        (buffer.validity, buffer.validity_count) = (validity.as_mut_ptr(), validity.len());
        ok(gridstone_array_read(listed.0, 0, 0, &raw mut buffer, 1, null()));
        assert_eq!(validity, [1; 11]);
        assert_eq!(found, [0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 100]);
        let mut out = 7;
        let missing = gridstone_array_labels(store.array.0, c"y".as_ptr(), &raw mut out);
        fails(missing, GRIDSTONE_ERROR_NOT_FOUND, "there is no dimension \"y\"");
        ok(alter(&store.array, c"{\"labels\": [[\"x\", null]]}".as_ptr(), &[], &mut version));
        let missing = gridstone_array_labels(store.array.0, c"x".as_ptr(), &raw mut out);
        fails(missing, GRIDSTONE_ERROR_NOT_FOUND, "has no list of labels");
        assert_eq!(out, 7);
    }
}

#[test]
fn labels_are_shared_by_id() {
    let (context, uri) = (context(), c"mem://capi-shared-labels".as_ptr());
    let schema = schema(false);
    // SAFETY: the texts live through the calls.
    unsafe {
        let root = Held::of(|out| gridstone_group_create(context.0, uri, null(), out));
        let attribute = c(r#"{"dims": [{"name": "x", "dtype": "int64", "domain": ["0", "9"], "tile": "5"}],
            "attrs": [{"name": "v", "dtype": "int64", "nullable": false, "fill": null, "filters": "auto"}]}"#);
        let steps = Held::of(|out| gridstone_schema_from_json(attribute.as_ptr(), out));
        let coordinate = Held::of(|out| gridstone_group_create_array(root.0, c"x".as_ptr(), steps.0, 0, out));
        let values: Vec<i64> = (100..110).collect();
        let given = [column(c"v", &values)];
        ok(gridstone_array_write(coordinate.0, 0, 0, given.as_ptr(), 1, null(), null_mut()));
        let array = Held::of(|out| gridstone_group_create_array(root.0, c"t".as_ptr(), schema.0, 0, out));
        let (x, path) = (c"x".as_ptr(), c"/x".as_ptr());
        let id = text_of(|out| gridstone_array_shared_labels(array.0, x, path, out));
        let evolution = c(&format!(r#"{{"labels": [["x", {{"shared": "{id}"}}]]}}"#));
        let mut version = 0;
        ok(alter(&array, evolution.as_ptr(), &[], &mut version));
        drop(Held::of(|out| gridstone_array_labels(array.0, x, out)));
        let mut out = 7;
        let missing = gridstone_array_shared_labels(array.0, x, c"/y".as_ptr(), &raw mut out);
        fails(missing, GRIDSTONE_ERROR_NOT_FOUND, "/y");
        let refused = gridstone_array_shared_labels(array.0, x, null(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_INPUT, "path is a null pointer");
        assert_eq!(out, 7);
    }
}
