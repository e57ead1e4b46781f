//! Metadata of arrays, groups, attributes and dimensions.

use crate::support::*;
use gridstone_capi::*;
use serde_json::json;
use std::ffi::{CStr, c_char};
use std::ptr::{null, null_mut};

fn set(node: gridstone_handle, field: *const c_char, pairs: &[(&CStr, Option<&CStr>)]) -> gridstone_status {
    let keys: Vec<_> = pairs.iter().map(|(key, _)| key.as_ptr()).collect();
    let values: Vec<_> = pairs.iter().map(|(_, value)| value.map_or(null(), CStr::as_ptr)).collect();
    // SAFETY: the texts live through the call.
    unsafe { gridstone_metadata_set(node, field, keys.as_ptr(), values.as_ptr(), pairs.len(), null_mut()) }
}

#[track_caller]
fn all(node: gridstone_handle, field: *const c_char) -> serde_json::Value {
    // SAFETY: the text lives through the call.
    json_of(|out| unsafe { gridstone_metadata_all(node, field, out) })
}

#[test]
fn values_come_back_as_they_were_written() {
    let store = store("meta", false);
    let array = store.array.0;
    let texts = [
        c"null",
        c"true",
        c"-1.50",
        c"18446744073709551615",
        c"0.1000000000000000055511151231257827",
        c"\"sea \\u00e4\"",
        c"[1, {\"deep\": []}]",
        c"{\"$datetime64\": [null, \"s\"]}",
    ];
    let before = version(&store.array);
    for text in texts {
        ok(set(array, null(), &[(c"key \"with\" marks", Some(text))]));
        // SAFETY: the texts live through the call.
        let found =
            text_of(|out| unsafe { gridstone_metadata_get(array, null(), c"key \"with\" marks".as_ptr(), out) });
        assert_eq!(found.as_str(), text.to_str().unwrap());
        // SAFETY: the place is there.
        let found = text_of(|out| unsafe { gridstone_metadata_all(array, null(), out) });
        assert_eq!(found, format!("{{\"key \\\"with\\\" marks\":{}}}", text.to_str().unwrap()));
    }
    assert_eq!(version(&store.array), before + texts.len() as u64);
}

#[test]
fn many_keys_are_one_commit() {
    let store = store("meta-many", false);
    let (array, before) = (store.array.0, version(&store.array));
    ok(set(array, null(), &[(c"b", Some(c"1")), (c"a", Some(c"2")), (c"c", Some(c"3"))]));
    ok(set(array, null(), &[(c"b", None), (c"d", Some(c"4"))]));
    assert_eq!(version(&store.array), before + 2);
    assert_eq!(all(array, null()), json!({"a": 2, "c": 3, "d": 4}));
    // SAFETY: the texts live through the calls.
    unsafe {
        assert_eq!(json_of(|out| gridstone_metadata_keys(array, null(), out)), json!(["a", "c", "d"]));
        let removed = number_of(|out| gridstone_metadata_remove(array, null(), c"a".as_ptr(), out));
        assert_eq!(removed, before + 3);
        let mut version = 7;
        let missing = gridstone_metadata_remove(array, null(), c"a".as_ptr(), &raw mut version);
        fails(missing, GRIDSTONE_ERROR_NOT_FOUND, "\"a\"");
        let missing = gridstone_metadata_get(array, null(), c"a".as_ptr(), &raw mut version);
        fails(missing, GRIDSTONE_ERROR_NOT_FOUND, "\"a\"");
        assert_eq!(version, 7);
    }
    // Nothing to set is nothing to commit.
    ok(set(array, null(), &[]));
    assert_eq!(version(&store.array), before + 3);
    assert_eq!(all(store.again().0, null()), json!({"c": 3, "d": 4}));
}

#[test]
fn groups_attributes_and_dimensions_have_their_own() {
    let store = store("meta-fields", false);
    let array = store.array.0;
    ok(set(array, c"v".as_ptr(), &[(c"units", Some(c"\"m\""))]));
    ok(set(array, c"x".as_ptr(), &[(c"units", Some(c"\"km\""))]));
    assert_eq!(all(array, null()), json!({}));
    assert_eq!(all(array, c"v".as_ptr()), json!({"units": "m"}));
    assert_eq!(all(array, c"x".as_ptr()), json!({"units": "km"}));
    let mut out = 7;
    // SAFETY: the texts live through the calls.
    unsafe {
        let refused = gridstone_metadata_keys(array, c"w".as_ptr(), &raw mut out);
        assert_ne!(refused, GRIDSTONE_OK);
        fails(refused, refused, "w");
        number_of(|out| gridstone_metadata_remove(array, c"v".as_ptr(), c"units".as_ptr(), out));
        assert_eq!(all(array, c"v".as_ptr()), json!({}));

        let uri = c"mem://capi-meta-group";
        let group = Held::of(|out| gridstone_group_create(store.context.0, uri.as_ptr(), null(), out));
        ok(set(group.0, null(), &[(c"made by", Some(c"\"a model\""))]));
        assert_eq!(all(group.0, null()), json!({"made by": "a model"}), "the group shows what it has set");
        let refused = gridstone_metadata_keys(group.0, c"v".as_ptr(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_INPUT, "a group has no attribute or dimension \"v\"");
        let reading = Held::of(|out| gridstone_group_open(store.context.0, uri.as_ptr(), null(), out));
        assert_eq!(all(reading.0, null()), json!({"made by": "a model"}));
        let refused = set(reading.0, null(), &[(c"k", Some(c"1"))]);
        fails(refused, GRIDSTONE_ERROR_INPUT, "GRIDSTONE_OPEN_WRITE");
    }
    assert_eq!(out, 7);
}

#[test]
fn what_is_no_metadata_is_refused_and_nothing_is_set() {
    let store = store("meta-wrong", false);
    let (array, before) = (store.array.0, version(&store.array));
    for text in [c"", c"nonsense", c"{\"a\": 1", c"NaN", c"1 2"] {
        fails(set(array, null(), &[(c"good", Some(c"1")), (c"bad", Some(text))]), GRIDSTONE_ERROR_INPUT, "bad");
    }
    fails(set(array, null(), &[(c"", Some(c"1"))]), GRIDSTONE_ERROR_INPUT, "");
    fails(set(array, null(), &[(c"\xff", Some(c"1"))]), GRIDSTONE_ERROR_INPUT, "keys[0] is no UTF-8");
    fails(set(array, null(), &[(c"k", Some(c"\"\xff\""))]), GRIDSTONE_ERROR_INPUT, "values[0] is no UTF-8");
    fails(set(store.again().0, null(), &[(c"k", Some(c"1"))]), GRIDSTONE_ERROR_INPUT, "");
    fails(set(store.context.0, null(), &[]), GRIDSTONE_ERROR_HANDLE, "is a context; an array or a group is needed");
    fails(set(0, null(), &[]), GRIDSTONE_ERROR_HANDLE, "0 is no handle; an array or a group is needed");
    let freed = store.again().free();
    let mut out = 7;
    // SAFETY: null pointers are refused.
    unsafe {
        let keys = [c"k".as_ptr()];
        let refused = gridstone_metadata_set(array, null(), keys.as_ptr(), null(), 1, null_mut());
        fails(refused, GRIDSTONE_ERROR_INPUT, "values is a null pointer");
        let none = [null()];
        let refused = gridstone_metadata_set(array, null(), none.as_ptr(), none.as_ptr(), 1, null_mut());
        fails(refused, GRIDSTONE_ERROR_INPUT, "keys[0] is a null pointer");
        fails(gridstone_metadata_get(array, null(), null(), &raw mut out), GRIDSTONE_ERROR_INPUT, "key is a null");
        let refused = gridstone_metadata_get(array, null(), c"k".as_ptr(), null_mut());
        fails(refused, GRIDSTONE_ERROR_INPUT, "value is a null pointer");
        fails(gridstone_metadata_all(freed, null(), &raw mut out), GRIDSTONE_ERROR_HANDLE, "freed");
    }
    assert_eq!((out, version(&store.array)), (7, before));
    assert_eq!(all(array, null()), json!({}));
}
