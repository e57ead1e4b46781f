//! Groups: trees, opening whatever lies there, changes of children.

use crate::support::*;
use gridstone_capi::*;
use serde_json::json;
use std::ffi::{CStr, CString};
use std::ptr::{null, null_mut};

/// A store with "/sea/t" and "/sea/deep".
fn tree(name: &str) -> (Held, CString, Held) {
    let (context, uri) = (context(), c(&format!("mem://capi-{name}")));
    // SAFETY: the texts live through the calls.
    unsafe {
        let root = Held::of(|out| gridstone_group_create(context.0, uri.as_ptr(), null(), out));
        let sea = Held::of(|out| gridstone_group_create_group(root.0, c"sea".as_ptr(), out));
        let schema = schema(true);
        let array = Held::of(|out| gridstone_group_create_array(sea.0, c"t".as_ptr(), schema.0, 0, out));
        write_sparse(&array, &[1], &[10]);
        drop(Held::of(|out| gridstone_group_create_group(sea.0, c"deep".as_ptr(), out)));
        ok(gridstone_group_refresh(root.0, null_mut()));
        (context, uri, root)
    }
}

fn options(path: Option<&CStr>, mode: u32, version: u64) -> gridstone_open_options {
    // SAFETY: all zeros are a value of it.
    let mut options: gridstone_open_options = unsafe { std::mem::zeroed() };
    options.size = size_of::<gridstone_open_options>();
    (options.path, options.mode, options.version) = (path.map_or(null(), CStr::as_ptr), mode, version);
    options
}

#[test]
fn a_tree_is_walked() {
    let (.., root) = tree("group-walk");
    // SAFETY: the places are there.
    unsafe {
        let children = json_of(|out| gridstone_group_children(root.0, out));
        assert_eq!(children, json!([{"name": "sea", "kind": "group"}]));
        let all = json_of(|out| gridstone_group_walk(root.0, out));
        let wanted = [("/sea", "group"), ("/sea/deep", "group"), ("/sea/t", "array")];
        assert_eq!(all, json!(wanted.map(|(path, kind)| json!({"path": path, "kind": kind}))));
        assert_eq!(text_of(|out| gridstone_group_path(root.0, out)), "/");
        assert!(text_of(|out| gridstone_group_uri(root.0, out)).contains("capi-group-walk"));
        for (name, there) in [(c"sea", 1), (c"sea/t", 1), (c"lake", 0)] {
            assert_eq!(number_of(|out| gridstone_group_contains(root.0, name.as_ptr(), out)), there, "{name:?}");
        }
    }
}

#[test]
fn whatever_lies_at_a_path_is_opened() {
    let (context, uri, root) = tree("group-open");
    let (mut node, mut kind) = (0, 0);
    // SAFETY: the texts live through the calls.
    unsafe {
        for (path, wanted) in [(c"/sea/t", GRIDSTONE_KIND_ARRAY), (c"/sea", GRIDSTONE_KIND_GROUP)] {
            let options = options(Some(path), GRIDSTONE_OPEN_READ, 0);
            ok(gridstone_open(context.0, uri.as_ptr(), &raw const options, &raw mut node, &raw mut kind));
            assert_eq!(kind, wanted);
            let node = Held(node);
            if kind == GRIDSTONE_KIND_ARRAY {
                assert_eq!(sparse(&node), [(1, 10)]);
            } else {
                assert_eq!(text_of(|out| gridstone_group_path(node.0, out)), "/sea");
            }
        }
        ok(gridstone_group_open_child(root.0, c"sea/t".as_ptr(), &raw mut node, &raw mut kind));
        assert_eq!(kind, GRIDSTONE_KIND_ARRAY);
        // The group is open for writing, and its child is too.
        write_sparse(&Held(node), &[2], &[20]);
        node = 7;
        let missing = gridstone_group_open_child(root.0, c"lake".as_ptr(), &raw mut node, &raw mut kind);
        fails(missing, GRIDSTONE_ERROR_NOT_FOUND, "lake");
        let options = options(Some(c"/lake"), 0, 0);
        let missing = gridstone_open(context.0, uri.as_ptr(), &raw const options, &raw mut node, &raw mut kind);
        fails(missing, GRIDSTONE_ERROR_NOT_FOUND, "/lake");
        let refused = gridstone_open(context.0, uri.as_ptr(), null(), &raw mut node, null_mut());
        fails(refused, GRIDSTONE_ERROR_INPUT, "kind is a null pointer");
        let refused = gridstone_open(context.0, null(), null(), &raw mut node, &raw mut kind);
        fails(refused, GRIDSTONE_ERROR_INPUT, "uri is a null pointer");
        assert_eq!(node, 7);
    }
}

#[test]
fn a_group_is_no_array_and_an_array_no_group() {
    let (context, uri, _) = tree("group-kinds");
    let mut node = 7;
    // SAFETY: the texts live through the calls.
    unsafe {
        let refused = gridstone_array_open(context.0, uri.as_ptr(), null(), &raw mut node);
        fails(refused, GRIDSTONE_ERROR_NOT_FOUND, "is a group");
        let at_array = options(Some(c"/sea/t"), 0, 0);
        let refused = gridstone_group_open(context.0, uri.as_ptr(), &raw const at_array, &raw mut node);
        fails(refused, GRIDSTONE_ERROR_NOT_FOUND, "is an array");
        let refused = gridstone_group_create(context.0, uri.as_ptr(), c"/sea/t".as_ptr(), &raw mut node);
        fails(refused, GRIDSTONE_ERROR_EXISTS, "/sea/t");
    }
    assert_eq!(node, 7);
}

#[test]
fn children_are_moved_and_removed() {
    let (_context, _uri, root) = tree("group-change");
    // SAFETY: the texts live through the calls.
    unsafe {
        let before = number_of(|out| gridstone_group_version(root.0, out));
        let mut call = call();
        call.message = c"tidied".as_ptr();
        let call = &raw const call;
        let moved = number_of(|out| gridstone_group_move(root.0, c"sea/t".as_ptr(), c"/air/t".as_ptr(), call, out));
        assert_eq!(moved, before + 1);
        assert_eq!(number_of(|out| gridstone_group_version(root.0, out)), moved, "the group shows it");
        let refused = gridstone_group_move(root.0, c"sea".as_ptr(), c"air".as_ptr(), null(), null_mut());
        fails(refused, GRIDSTONE_ERROR_EXISTS, "/air");
        number_of(|out| gridstone_group_remove(root.0, c"sea".as_ptr(), call, out));
        let all = json_of(|out| gridstone_group_walk(root.0, out));
        assert_eq!(all, json!([{"path": "/air", "kind": "group"}, {"path": "/air/t", "kind": "array"}]));
        let history = json_of(|out| gridstone_history(root.0, null(), out));
        let messages: Vec<_> = history.as_array().unwrap().iter().map(|version| &version["message"]).collect();
        assert_eq!(messages.iter().filter(|message| **message == "tidied").count(), 2);
        let mut version = 7;
        let missing = gridstone_group_remove(root.0, c"sea".as_ptr(), null(), &raw mut version);
        fails(missing, GRIDSTONE_ERROR_NOT_FOUND, "/sea");
        let mut keyed = *call;
        (keyed.commit_key, keyed.commit_key_bytes) = (b"k".as_ptr(), 1);
        let refused = gridstone_group_remove(root.0, c"air".as_ptr(), &raw const keyed, &raw mut version);
        fails(refused, GRIDSTONE_ERROR_INPUT, "takes no commit key");
        assert_eq!(version, 7);
    }
}

#[test]
fn groups_for_reading_and_of_versions_are_not_written() {
    let (context, uri, root) = tree("group-reading");
    let schema = schema(true);
    // SAFETY: the texts live through the calls.
    unsafe {
        let version = number_of(|out| gridstone_group_version(root.0, out));
        drop(Held::of(|out| gridstone_group_create_group(root.0, c"new".as_ptr(), out)));
        let at_version = options(None, GRIDSTONE_OPEN_READ, version);
        let at_version = Held::of(|out| gridstone_group_open(context.0, uri.as_ptr(), &raw const at_version, out));
        let reading = Held::of(|out| gridstone_group_open(context.0, uri.as_ptr(), null(), out));
        let mut node = 7;
        for group in [&at_version, &reading] {
            let name = c"other".as_ptr();
            let refused = gridstone_group_create_group(group.0, name, &raw mut node);
            fails(refused, GRIDSTONE_ERROR_INPUT, "GRIDSTONE_OPEN_WRITE");
            let refused = gridstone_group_create_array(group.0, name, schema.0, 0, &raw mut node);
            fails(refused, GRIDSTONE_ERROR_INPUT, "GRIDSTONE_OPEN_WRITE");
            let refused = gridstone_group_remove(group.0, c"sea".as_ptr(), null(), null_mut());
            fails(refused, GRIDSTONE_ERROR_INPUT, "GRIDSTONE_OPEN_WRITE");
            let refused = gridstone_group_move(group.0, c"sea".as_ptr(), name, null(), null_mut());
            fails(refused, GRIDSTONE_ERROR_INPUT, "GRIDSTONE_OPEN_WRITE");
        }
        assert_eq!(node, 7);
        assert_eq!(number_of(|out| gridstone_group_contains(at_version.0, c"new".as_ptr(), out)), 0);
        assert_eq!(number_of(|out| gridstone_group_contains(reading.0, c"new".as_ptr(), out)), 1);
        let refused = gridstone_group_refresh(at_version.0, null_mut());
        fails(refused, GRIDSTONE_ERROR_INPUT, "opened at a version");
        let written = options(None, GRIDSTONE_OPEN_WRITE, version);
        let refused = gridstone_group_open(context.0, uri.as_ptr(), &raw const written, &raw mut node);
        fails(refused, GRIDSTONE_ERROR_INPUT, "");
        // A child of a group at a version shows that version.
        let mut kind = 0;
        ok(gridstone_group_open_child(at_version.0, c"sea".as_ptr(), &raw mut node, &raw mut kind));
        let sea = Held(node);
        fails(gridstone_group_refresh(sea.0, null_mut()), GRIDSTONE_ERROR_INPUT, "opened at a version");
    }
}

#[test]
fn wrong_handles_and_null_pointers_of_groups_are_refused() {
    let (context, uri, root) = tree("group-wrong");
    let schema = schema(true);
    let mut node = 7;
    // SAFETY: null pointers are refused.
    unsafe {
        let out = &raw mut node;
        fails(gridstone_group_children(context.0, out), GRIDSTONE_ERROR_HANDLE, "a group is needed");
        fails(gridstone_group_children(root.0, null_mut()), GRIDSTONE_ERROR_INPUT, "is a null pointer");
        fails(gridstone_group_contains(root.0, null(), null_mut()), GRIDSTONE_ERROR_INPUT, "null pointer");
        fails(gridstone_group_create_group(root.0, null(), out), GRIDSTONE_ERROR_INPUT, "name is a null pointer");
        let refused = gridstone_group_create_array(root.0, c"sea".as_ptr(), schema.0, 0, out);
        fails(refused, GRIDSTONE_ERROR_EXISTS, "/sea");
        let refused = gridstone_group_create_array(root.0, c"a".as_ptr(), root.0, 0, out);
        fails(refused, GRIDSTONE_ERROR_HANDLE, "is a group; a schema is needed");
        fails(gridstone_group_create_group(root.0, c"sea/t".as_ptr(), out), GRIDSTONE_ERROR_INPUT, "");
        let freed = Held::of(|out| gridstone_group_open(context.0, uri.as_ptr(), null(), out)).free();
        fails(gridstone_group_walk(freed, out), GRIDSTONE_ERROR_HANDLE, "freed");
        fails(gridstone_group_refresh(0, null_mut()), GRIDSTONE_ERROR_HANDLE, "0 is no handle; a group");
    }
    assert_eq!(node, 7);
}
