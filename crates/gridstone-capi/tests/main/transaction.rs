//! Transactions: one version, or none.

use crate::support::*;
use gridstone_capi::*;
use serde_json::json;
use std::ffi::CStr;
use std::ptr::{null, null_mut};

/// A store of a group at "/".
fn grouped(name: &str) -> (Held, std::ffi::CString) {
    let (context, uri) = (context(), c(&format!("mem://capi-{name}")));
    // SAFETY: the texts live through the call.
    drop(Held::of(|out| unsafe { gridstone_group_create(context.0, uri.as_ptr(), null(), out) }));
    (context, uri)
}

fn begin(context: &Held, uri: &CStr, isolation: u32) -> Held {
    // SAFETY: the texts live through the call.
    Held::of(|out| unsafe { gridstone_transaction_begin(context.0, uri.as_ptr(), isolation, null(), out) })
}

fn commit(transaction: &Held) -> gridstone_status {
    let mut version = 0;
    // SAFETY: the place is there.
    unsafe { gridstone_transaction_commit(transaction.0, null(), &raw mut version) }
}

fn create(transaction: &Held, path: &CStr) -> Held {
    let schema = schema(true);
    // SAFETY: the text lives through the call.
    Held::of(|out| unsafe {
        gridstone_transaction_create_array(transaction.0, path.as_ptr(), schema.0, 0, null(), out)
    })
}

/// The array at a path of the newest version.
fn open(context: &Held, uri: &CStr, path: &CStr) -> Held {
    // SAFETY: all zeros are a value of the options.
    let mut options: gridstone_open_options = unsafe { std::mem::zeroed() };
    (options.size, options.path) = (size_of::<gridstone_open_options>(), path.as_ptr());
    let options = &raw const options;
    // SAFETY: the options live through the call.
    Held::of(|out| unsafe { gridstone_array_open(context.0, uri.as_ptr(), options, out) })
}

fn kind(transaction: &Held, path: &CStr) -> u32 {
    // SAFETY: the text lives through the call.
    number_of(|out| unsafe { gridstone_transaction_kind(transaction.0, path.as_ptr(), out) })
}

#[test]
fn arrays_groups_and_metadata_become_one_version() {
    let (context, uri) = grouped("tx-all");
    let transaction = begin(&context, &uri, GRIDSTONE_ISOLATION_SNAPSHOT);
    for (path, at) in [(c"/a", 1), (c"/deep/b", 2)] {
        let array = create(&transaction, path);
        write_sparse(&array, &[at], &[10]);
        assert_eq!(sparse(&array), [(at, 10)], "it sees what it has written");
    }
    // SAFETY: the texts live through the calls.
    unsafe {
        let handle = transaction.0;
        ok(gridstone_transaction_create_group(handle, c"/empty".as_ptr()));
        let (keys, values) = ([c"unit".as_ptr(), c"n".as_ptr()], [c"\"m\"".as_ptr(), c"1.50".as_ptr()]);
        ok(gridstone_transaction_set_metadata(handle, c"/a".as_ptr(), keys.as_ptr(), values.as_ptr(), 2));
        let (gone, none) = ([c"unit".as_ptr()], [null()]);
        ok(gridstone_transaction_set_metadata(handle, c"/".as_ptr(), keys.as_ptr(), values.as_ptr(), 1));
        ok(gridstone_transaction_set_metadata(handle, c"/".as_ptr(), gone.as_ptr(), none.as_ptr(), 1));
        let value = |path: &CStr, key: &CStr| {
            text_of(|out| gridstone_transaction_metadata(handle, path.as_ptr(), key.as_ptr(), out))
        };
        assert_eq!(value(c"/a", c"n"), "1.50");
        assert_eq!(
            json_of(|out| gridstone_transaction_metadata(handle, c"/a".as_ptr(), null(), out)),
            json!({"n": 1.5, "unit": "m"})
        );
        let mut out = 7;
        let missing = gridstone_transaction_metadata(handle, c"/".as_ptr(), c"unit".as_ptr(), &raw mut out);
        fails(missing, GRIDSTONE_ERROR_NOT_FOUND, "unit");
        let children = json_of(|out| gridstone_transaction_children(handle, c"/".as_ptr(), out));
        assert_eq!(children[0], json!({"name": "a", "kind": "array"}));
        assert_eq!(children.as_array().unwrap().len(), 3);

        let exists = number_of(|out| gridstone_transaction_base_version(handle, out));
        let mut call = call();
        call.message = c"all at once".as_ptr();
        let version = number_of(|out| gridstone_transaction_commit(handle, &raw const call, out));
        assert_eq!(version, exists + 1);
        let mut open = 1;
        assert_eq!(number_of(|out| gridstone_transaction_version(handle, out, &raw mut open)), version);
        assert_eq!(open, 0);
        assert_eq!(number_of(|out| gridstone_transaction_version(handle, out, null_mut())), version);
    }
    assert_eq!(sparse(&open(&context, &uri, c"/a")), [(1, 10)]);
    assert_eq!(sparse(&open(&context, &uri, c"/deep/b")), [(2, 10)]);
}

#[test]
fn kinds_moves_and_removals_are_seen_inside() {
    let (context, uri) = grouped("tx-tree");
    let transaction = begin(&context, &uri, GRIDSTONE_ISOLATION_SERIALIZABLE);
    let array = create(&transaction, c"/a");
    assert_eq!(kind(&transaction, c"/a"), GRIDSTONE_KIND_ARRAY);
    assert_eq!(kind(&transaction, c"/"), GRIDSTONE_KIND_GROUP);
    assert_eq!(kind(&transaction, c"/b"), GRIDSTONE_KIND_NONE);
    // SAFETY: the texts live through the calls.
    unsafe {
        let handle = transaction.0;
        ok(gridstone_transaction_move(handle, c"/a".as_ptr(), c"/new/b".as_ptr()));
        assert_eq!(kind(&transaction, c"/new"), GRIDSTONE_KIND_GROUP);
        write_sparse(&array, &[3], &[30]);
        let again = Held::of(|out| gridstone_transaction_array(handle, c"/new/b".as_ptr(), out));
        assert_eq!(sparse(&again), [(3, 30)]);
        ok(gridstone_transaction_remove(handle, c"/new".as_ptr()));
        assert_eq!(kind(&transaction, c"/new/b"), GRIDSTONE_KIND_NONE);
        let mut out = 7;
        let missing = gridstone_transaction_array(handle, c"/new/b".as_ptr(), &raw mut out);
        fails(missing, GRIDSTONE_ERROR_NOT_FOUND, "/new/b");
        fails(gridstone_transaction_remove(handle, c"/".as_ptr()), GRIDSTONE_ERROR_INPUT, "root");
        let missing = gridstone_transaction_move(handle, c"/x".as_ptr(), c"/y".as_ptr());
        fails(missing, GRIDSTONE_ERROR_NOT_FOUND, "/x");
        assert_eq!(out, 7);
    }
    ok(commit(&transaction));
}

#[test]
fn of_an_ended_transaction_arrays_do_nothing_more() {
    let (context, uri) = grouped("tx-ended");
    for way in 0..3 {
        let transaction = begin(&context, &uri, 0);
        let path = c(&format!("/a{way}"));
        let array = create(&transaction, &path);
        write_sparse(&array, &[1], &[10]);
        let part = match way {
            0 => {
                ok(commit(&transaction));
                fails(commit(&transaction), GRIDSTONE_ERROR_INPUT, "was committed; begin another one");
                // One that has ended stays as it is.
                ok(gridstone_transaction_abort(transaction.0));
                "was committed"
            }
            1 => {
                ok(gridstone_transaction_abort(transaction.0));
                ok(gridstone_transaction_abort(transaction.0));
                fails(commit(&transaction), GRIDSTONE_ERROR_INPUT, "was aborted");
                "was aborted"
            }
            _ => {
                let freed = transaction.free();
                fails(gridstone_transaction_abort(freed), GRIDSTONE_ERROR_HANDLE, "freed");
                "was aborted"
            }
        };
        let (at, values) = ([2_i64], [20_i32]);
        let given = [column(c"x", &at), column(c"v", &values)];
        let mut version = 7;
        // SAFETY: the columns live through the call.
        let refused =
            unsafe { gridstone_array_write_cells(array.0, given.as_ptr(), 2, null(), null(), &raw mut version) };
        fails(refused, GRIDSTONE_ERROR_INPUT, part);
        let mut read = 7;
        // SAFETY: the place is there.
        let refused = unsafe { gridstone_read_create(array.0, null(), null(), &raw mut read) };
        fails(refused, GRIDSTONE_ERROR_INPUT, part);
        assert_eq!((version, read), (7, 7));
    }
    // SAFETY: the texts live through the calls.
    unsafe {
        let root = Held::of(|out| gridstone_group_open(context.0, uri.as_ptr(), null(), out));
        let children = json_of(|out| gridstone_group_children(root.0, out));
        assert_eq!(children, json!([{"name": "a0", "kind": "array"}]));
    }
}

#[test]
fn of_two_transactions_that_touch_the_same_one_is_refused() {
    let store = store("tx-conflict", true);
    let pair = [0, 1].map(|_| begin(&store.context, &store.uri, GRIDSTONE_ISOLATION_SERIALIZABLE));
    for (value, transaction) in [1, 2].into_iter().zip(&pair) {
        // SAFETY: the text lives through the call.
        let array = Held::of(|out| unsafe { gridstone_transaction_array(transaction.0, c"/".as_ptr(), out) });
        assert_eq!(sparse(&array), []);
        write_sparse(&array, &[1], &[value]);
    }
    ok(commit(&pair[0]));
    fails(commit(&pair[1]), GRIDSTONE_ERROR_CONFLICT, "");
    fails(commit(&pair[1]), GRIDSTONE_ERROR_INPUT, "failed to commit; begin another one");
    assert_eq!(sparse(&store.again()), [(1, 1)]);
}

#[test]
fn the_same_transaction_with_the_same_key_is_committed_once() {
    let (context, uri) = grouped("tx-keyed");
    let mut keyed = call();
    (keyed.commit_key, keyed.commit_key_bytes) = (b"load".as_ptr(), 4);
    let keyed = &raw const keyed;
    let mut versions = Vec::new();
    // SAFETY: the texts live through the calls.
    unsafe {
        for _ in 0..2 {
            let transaction = Held::of(|out| gridstone_transaction_begin(context.0, uri.as_ptr(), 0, keyed, out));
            ok(gridstone_transaction_create_group(transaction.0, c"/g".as_ptr()));
            versions.push(number_of(|out| gridstone_transaction_commit(transaction.0, null(), out)));
        }
        assert_eq!(versions[0], versions[1]);
        let transaction = begin(&context, &uri, 0);
        let mut version = 7;
        let refused = gridstone_transaction_commit(transaction.0, keyed, &raw mut version);
        fails(refused, GRIDSTONE_ERROR_INPUT, "a transaction is given its commit key when it begins");
        ok(commit(&transaction));
        assert_eq!(version, 7);
    }
}

#[test]
fn receipts_become_a_part_of_a_transaction() {
    let (context, uri) = grouped("tx-receipts");
    let id = c"0123456789abcdef0123456789abcdef";
    let schema = schema(true);
    let create = |transaction: &Held| {
        let (path, handle) = (c"/a".as_ptr(), transaction.0);
        // SAFETY: the texts live through the call.
        Held::of(|out| unsafe { gridstone_transaction_create_array(handle, path, schema.0, 0, id.as_ptr(), out) })
    };
    // Another process stages cells of an array that is not there yet.
    let (own, texts) = (begin(&context, &uri, 0), [1, 2]);
    let array = create(&own);
    let texts = texts.map(|at| {
        let staged = stage_sparse(&array, &[at], &[at as i32]);
        // SAFETY: the handle lives through the call.
        c(&text_of(|out| unsafe { gridstone_receipt(array.0, &raw const staged.0, 1, out) }))
    });
    ok(gridstone_transaction_abort(own.0));

    let transaction = begin(&context, &uri, 0);
    drop(create(&transaction));
    let pointers = pointers(&texts);
    // SAFETY: the texts live through the calls.
    unsafe {
        let handle = transaction.0;
        let bad = [c"{}".as_ptr()];
        let refused = gridstone_transaction_add_receipts(handle, bad.as_ptr(), 1);
        fails(refused, GRIDSTONE_ERROR_INPUT, "receipts[0]");
        fails(gridstone_transaction_add_receipts(handle, null(), 1), GRIDSTONE_ERROR_INPUT, "receipts is a null");
        ok(gridstone_transaction_add_receipts(handle, pointers.as_ptr(), 2));
    }
    ok(commit(&transaction));
    assert_eq!(sparse(&open(&context, &uri, c"/a")), [(1, 1), (2, 2)]);
}

#[test]
fn deletions_by_condition_are_staged_in_a_transaction() {
    let store = store("tx-delete", true);
    write_sparse(&store.array, &[1, 2], &[10, 20]);
    let transaction = begin(&store.context, &store.uri, 0);
    // SAFETY: the texts live through the calls.
    unsafe {
        let array = Held::of(|out| gridstone_transaction_array(transaction.0, c"/".as_ptr(), out));
        let staged = Held::of(|out| gridstone_stage_delete(array.0, 0, c"v > 15".as_ptr(), null(), out));
        let written = stage_sparse(&array, &[5], &[50]);
        let both = [staged.0, written.0];
        ok(gridstone_commit(array.0, both.as_ptr(), 2, null(), null_mut()));
        assert_eq!(sparse(&array), [(1, 10), (5, 50)]);
    }
    assert_eq!(sparse(&store.again()), [(1, 10), (2, 20)]);
    ok(commit(&transaction));
    assert_eq!(sparse(&store.again()), [(1, 10), (5, 50)]);
}

#[test]
fn wrong_arguments_of_transactions_are_refused() {
    let (context, uri) = grouped("tx-wrong");
    let transaction = begin(&context, &uri, 0);
    let (handle, schema) = (transaction.0, schema(true));
    let (mut out, mut kind) = (7, 7);
    // SAFETY: the texts live through the calls; null pointers are refused.
    unsafe {
        let out = &raw mut out;
        let refused = gridstone_transaction_begin(context.0, uri.as_ptr(), 5, null(), out);
        fails(refused, GRIDSTONE_ERROR_INPUT, "isolation is 5");
        let nowhere = c"mem://capi-there-is-none".as_ptr();
        fails(gridstone_transaction_begin(context.0, nowhere, 0, null(), out), GRIDSTONE_ERROR_NOT_FOUND, "");
        fails(gridstone_transaction_begin(context.0, null(), 0, null(), out), GRIDSTONE_ERROR_INPUT, "uri is a null");
        fails(gridstone_transaction_array(handle, null(), out), GRIDSTONE_ERROR_INPUT, "path is a null pointer");
        fails(gridstone_transaction_kind(handle, null(), &raw mut kind), GRIDSTONE_ERROR_INPUT, "path is a null");
        fails(gridstone_transaction_create_group(handle, null()), GRIDSTONE_ERROR_INPUT, "path is a null pointer");
        let refused = gridstone_transaction_move(handle, c"/a".as_ptr(), null());
        fails(refused, GRIDSTONE_ERROR_INPUT, "target_path is a null pointer");
        let refused = gridstone_transaction_create_array(handle, c"/a".as_ptr(), schema.0, 0, c"zz".as_ptr(), out);
        fails(refused, GRIDSTONE_ERROR_INPUT, "zz");
        let refused = gridstone_transaction_create_array(handle, c"/a".as_ptr(), handle, 0, null(), out);
        fails(refused, GRIDSTONE_ERROR_HANDLE, "is a transaction; a schema is needed");
        drop(create(&transaction, c"/a"));
        let refused = gridstone_transaction_create_array(handle, c"/a".as_ptr(), schema.0, 0, null(), out);
        fails(refused, GRIDSTONE_ERROR_EXISTS, "/a");
        drop(Held::of(|out| gridstone_transaction_create_array(handle, c"/a".as_ptr(), schema.0, 1, null(), out)));
        let (keys, values) = ([c"k".as_ptr()], [c"{not json".as_ptr()]);
        let refused = gridstone_transaction_set_metadata(handle, c"/a".as_ptr(), keys.as_ptr(), values.as_ptr(), 1);
        fails(refused, GRIDSTONE_ERROR_INPUT, "k");
        let refused = gridstone_transaction_set_metadata(handle, c"/a".as_ptr(), null(), values.as_ptr(), 1);
        fails(refused, GRIDSTONE_ERROR_INPUT, "keys is a null pointer");
        fails(gridstone_transaction_commit(schema.0, null(), out), GRIDSTONE_ERROR_HANDLE, "a transaction is needed");
        assert_eq!((*out, kind), (7, 7));
    }
}
