//! Versions, fragments, tags, and what a store takes.

use crate::support::*;
use gridstone_capi::*;
use serde_json::json;
use std::ffi::CStr;
use std::ptr::{null, null_mut};

fn tag(store: &Store, name: &CStr, version: u64, replace: i32, tagged: &mut u64) -> gridstone_status {
    // SAFETY: the texts live through the call.
    unsafe { gridstone_store_tag(store.context.0, store.uri.as_ptr(), name.as_ptr(), version, replace, tagged) }
}

#[track_caller]
fn tags(node: &Held) -> serde_json::Value {
    // SAFETY: the place is there.
    json_of(|out| unsafe { gridstone_tags(node.0, out) })
}

#[test]
fn versions_and_fragments_are_listed() {
    let store = store("history", true);
    let versions = [write_sparse(&store.array, &[1, 2], &[1, 2]), write_sparse(&store.array, &[3], &[3])];
    // SAFETY: the places are there.
    unsafe {
        let history = json_of(|out| gridstone_history(store.array.0, null(), out));
        let found: Vec<u64> = history.as_array().unwrap().iter().map(|v| v["version"].as_u64().unwrap()).collect();
        assert_eq!(found[found.len() - 2..], versions);
        assert!(history[0]["time_us"].as_i64().unwrap() > 0);
        let fragments = json_of(|out| gridstone_array_fragments(store.array.0, out));
        let cells: Vec<_> = fragments.as_array().unwrap().iter().map(|f| (&f["version"], &f["cells"])).collect();
        assert_eq!(cells, [(&json!(versions[0]), &json!(2)), (&json!(versions[1]), &json!(1))]);
        let mut out = 7;
        let refused = gridstone_history(store.context.0, null(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_HANDLE, "an array or a group is needed");
        fails(gridstone_history(store.array.0, null(), null_mut()), GRIDSTONE_ERROR_INPUT, "versions is a null");
        fails(gridstone_array_fragments(0, &raw mut out), GRIDSTONE_ERROR_HANDLE, "an array is needed");
        let freed = store.again().free();
        fails(gridstone_array_fragments(freed, &raw mut out), GRIDSTONE_ERROR_HANDLE, "freed");
        assert_eq!(out, 7);
    }
}

#[test]
fn of_an_array_without_cells_there_are_no_fragments() {
    let store = store("history-empty", true);
    // SAFETY: the place is there.
    assert_eq!(text_of(|out| unsafe { gridstone_array_fragments(store.array.0, out) }), "[]");
}

#[test]
fn tags_name_versions_until_they_are_taken_away() {
    let store = store("tags", true);
    let first = write_sparse(&store.array, &[1], &[1]);
    write_sparse(&store.array, &[2], &[2]);
    assert_eq!(tags(&store.array), json!({}));
    let mut tagged = 0;
    ok(tag(&store, c"as delivered", first, 0, &mut tagged));
    assert_eq!(tagged, first);
    let newest = refresh(&store.array);
    ok(tag(&store, c"newest", 0, 0, &mut tagged));
    assert_eq!(tagged, newest);
    assert_eq!(tags(&store.array), json!({"as delivered": first, "newest": newest}));
    assert_eq!(tags(&store.again()), json!({"as delivered": first, "newest": newest}));

    // SAFETY: all zeros are a value of the options, and they live through the call.
    let delivered = unsafe {
        let mut options: gridstone_open_options = std::mem::zeroed();
        (options.size, options.tag) = (size_of::<gridstone_open_options>(), c"as delivered".as_ptr());
        Held::of(|out| gridstone_array_at(store.array.0, &raw const options, out))
    };
    assert_eq!(sparse(&delivered), [(1, 1)]);

    fails(tag(&store, c"newest", first, 0, &mut tagged), GRIDSTONE_ERROR_EXISTS, "newest");
    ok(tag(&store, c"newest", first, 1, &mut tagged));
    assert_eq!(tagged, first);
    fails(tag(&store, c"x", 10_000, 0, &mut tagged), GRIDSTONE_ERROR_NOT_FOUND, "10000");
    fails(tag(&store, c"", 0, 0, &mut tagged), GRIDSTONE_ERROR_INPUT, "");
    // SAFETY: the texts live through the calls.
    unsafe {
        let (context, uri) = (store.context.0, store.uri.as_ptr());
        let untagged = number_of(|out| gridstone_store_untag(context, uri, c"newest".as_ptr(), out));
        assert_eq!(untagged, first);
        let missing = gridstone_store_untag(context, uri, c"newest".as_ptr(), null_mut());
        fails(missing, GRIDSTONE_ERROR_NOT_FOUND, "newest");
        fails(gridstone_store_untag(context, uri, null(), null_mut()), GRIDSTONE_ERROR_INPUT, "name is a null");
        let refused = gridstone_store_tag(context, null(), c"x".as_ptr(), 0, 0, null_mut());
        fails(refused, GRIDSTONE_ERROR_INPUT, "uri is a null pointer");
    }
    assert_eq!(tags(&store.array), json!({"as delivered": first}));
}

#[test]
fn a_store_tells_what_it_takes_and_what_would_go() {
    let folder = Folder::new("usage");
    let store = store_in(&folder, false);
    write_dense(&store.array, &[1; 10]);
    let (context, uri) = (store.context.0, store.uri.as_ptr());
    let (mut taken, mut freed) = (0, 0);
    // SAFETY: the places are there.
    unsafe {
        ok(gridstone_store_usage(context, uri, null(), null(), &raw mut taken, &raw mut freed));
        let (taken_text, freed_text) = (read_text(&Held(taken)), read_text(&Held(freed)));
        ok(gridstone_store_usage(context, uri, null(), null(), &raw mut taken, null_mut()));
        drop(Held(taken));
        for text in [taken_text, freed_text] {
            assert!(serde_json::from_str::<serde_json::Value>(&text).unwrap().is_object(), "{text}");
        }
        taken = 7;
        let nowhere = c"mem://capi-no-usage".as_ptr();
        let missing = gridstone_store_usage(context, nowhere, null(), null(), &raw mut taken, null_mut());
        fails(missing, GRIDSTONE_ERROR_NOT_FOUND, "");
        let refused = gridstone_store_usage(context, uri, null(), null(), null_mut(), null_mut());
        fails(refused, GRIDSTONE_ERROR_INPUT, "taken is a null pointer");
        assert_eq!(taken, 7);
    }
}
