//! Receipts: staged here, committed there.

use crate::support::*;
use gridstone_capi::*;
use std::ptr::{null, null_mut};

/// The receipt for one staged write.
#[track_caller]
fn receipt_of(array: &Held, staged: &Held) -> String {
    // SAFETY: the handle lives through the call.
    text_of(|out| unsafe { gridstone_receipt(array.0, &raw const staged.0, 1, out) })
}

/// Commits receipts.
fn commit(store: &Store, receipts: &[String], key: &[u8], version: &mut u64) -> gridstone_status {
    let texts: Vec<_> = receipts.iter().map(|text| c(text)).collect();
    let pointers = pointers(&texts);
    let mut call = call();
    call.message = c"gathered".as_ptr();
    (call.commit_key, call.commit_key_bytes) = (if key.is_empty() { null() } else { key.as_ptr() }, key.len());
    let (context, uri) = (store.context.0, store.uri.as_ptr());
    // SAFETY: the texts live through the call.
    unsafe { gridstone_commit_receipts(context, uri, pointers.as_ptr(), pointers.len(), &raw const call, version) }
}

#[test]
fn receipts_of_two_writes_are_one_version() {
    let store = store("receipts", true);
    let texts: Vec<String> = [(1, 10), (2, 20)]
        .map(|(at, value)| receipt_of(&store.array, &stage_sparse(&store.array, &[at], &[value])))
        .into();
    let before = refresh(&store.array);
    assert_eq!(sparse(&store.array), []);
    let mut version = 0;
    ok(commit(&store, &texts, b"", &mut version));
    assert_eq!(version, before + 1);
    assert_eq!(refresh(&store.array), version);
    assert_eq!(sparse(&store.array), [(1, 10), (2, 20)]);
    // SAFETY: the place is there.
    let history = json_of(|out| unsafe { gridstone_history(store.array.0, null(), out) });
    assert_eq!(history.as_array().unwrap().last().unwrap()["message"], "gathered");
    // A receipt is committed once.
    fails(commit(&store, &texts, b"", &mut version), GRIDSTONE_ERROR_CONFLICT, "committed");
}

#[test]
fn the_same_receipts_with_the_same_key_are_committed_once() {
    let store = store("receipts-keyed", true);
    let texts = [receipt_of(&store.array, &stage_sparse(&store.array, &[1], &[10]))];
    let (mut first, mut second) = (0, 0);
    ok(commit(&store, &texts, b"step 7", &mut first));
    ok(commit(&store, &texts, b"step 7", &mut second));
    assert_eq!(first, second);
    let others = [receipt_of(&store.array, &stage_sparse(&store.array, &[2], &[20]))];
    fails(commit(&store, &others, b"step 7", &mut second), GRIDSTONE_ERROR_CONFLICT, "key");
    assert_eq!(second, first, "a failed call left its place as it was");
}

#[test]
fn a_receipt_says_how_much_it_commits() {
    let store = store("receipt-info", true);
    let text = c(&receipt_of(&store.array, &stage_sparse(&store.array, &[1, 2, 3], &[1, 2, 3])));
    let (mut cells, mut bytes) = (0, 0);
    // SAFETY: the texts live through the calls.
    unsafe {
        ok(gridstone_receipt_info(text.as_ptr(), &raw mut cells, &raw mut bytes));
        ok(gridstone_receipt_info(text.as_ptr(), null_mut(), null_mut()));
        assert_eq!(cells, 3);
        assert!(bytes > 0);
        let (cells, bytes) = (&raw mut cells, &raw mut bytes);
        fails(gridstone_receipt_info(c"{}".as_ptr(), cells, bytes), GRIDSTONE_ERROR_INPUT, "receipt");
        fails(gridstone_receipt_info(c"nonsense".as_ptr(), cells, bytes), GRIDSTONE_ERROR_INPUT, "receipt");
        fails(gridstone_receipt_info(null(), cells, bytes), GRIDSTONE_ERROR_INPUT, "receipt is a null pointer");
        assert_eq!((*cells, *bytes > 0), (3, true));
    }
}

#[test]
fn a_deletion_by_condition_goes_into_a_receipt() {
    let store = store("receipt-where", true);
    write_sparse(&store.array, &[1, 2, 3], &[10, 200, 30]);
    let (region, condition) = (boxed(&[0, 5]), c"v > 15".as_ptr());
    let text = text_of(|out| unsafe {
        // SAFETY: the texts live through the call.
        gridstone_receipt_where(store.array.0, region.0, condition, null(), out)
    });
    // What is written meanwhile stays.
    write_sparse(&store.array, &[4], &[400]);
    let mut version = 0;
    ok(commit(&store, &[text], b"", &mut version));
    refresh(&store.array);
    assert_eq!(sparse(&store.array), [(1, 10), (4, 400)]);
    let mut out = 7;
    // SAFETY: the texts live through the calls.
    unsafe {
        let refused = gridstone_receipt_where(store.array.0, 0, c"w > 1".as_ptr(), null(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_INPUT, "w");
        let refused = gridstone_receipt_where(store.array.0, 0, c"v >".as_ptr(), null(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_INPUT, "");
        let refused = gridstone_receipt_where(store.array.0, 0, null(), null(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_INPUT, "condition is a null pointer");
    }
    assert_eq!(out, 7);
}

#[test]
fn staged_writes_of_a_receipt_are_used_up() {
    let store = store("receipt-used-up", true);
    let staged = stage_sparse(&store.array, &[1], &[10]);
    let mut out = 7;
    let twice = [staged.0, staged.0];
    // SAFETY: the handles live through the calls.
    unsafe {
        let refused = gridstone_receipt(store.array.0, twice.as_ptr(), 2, &raw mut out);
        fails(refused, GRIDSTONE_ERROR_INPUT, "twice");
        fails(
            gridstone_receipt(store.array.0, twice.as_ptr(), 1, null_mut()),
            GRIDSTONE_ERROR_INPUT,
            "receipt is a null pointer",
        );
        fails(gridstone_receipt(store.array.0, null(), 1, &raw mut out), GRIDSTONE_ERROR_INPUT, "staged is a null");
        receipt_of(&store.array, &staged);
        let refused = gridstone_receipt(store.array.0, twice.as_ptr(), 1, &raw mut out);
        fails(refused, GRIDSTONE_ERROR_HANDLE, "given to a commit");
        let freed = staged.free();
        let refused = gridstone_receipt(store.array.0, &raw const freed, 1, &raw mut out);
        fails(refused, GRIDSTONE_ERROR_HANDLE, "freed");
        let wrong = store.array.0;
        let refused = gridstone_receipt(store.array.0, &raw const wrong, 1, &raw mut out);
        fails(refused, GRIDSTONE_ERROR_HANDLE, "is an array; a staged write is needed");
        let refused = gridstone_receipt(store.context.0, null(), 0, &raw mut out);
        fails(refused, GRIDSTONE_ERROR_HANDLE, "is a context; an array is needed");
    }
    assert_eq!(out, 7);
}

#[test]
fn a_wrong_receipt_is_named_and_nothing_is_committed() {
    let (store, other) = (store("receipts-wrong", true), crate::support::store("receipts-other", true));
    let good = receipt_of(&store.array, &stage_sparse(&store.array, &[1], &[10]));
    let strange = receipt_of(&other.array, &stage_sparse(&other.array, &[1], &[10]));
    let mut version = 7;
    let refused = commit(&store, &[good.clone(), "[]".to_owned()], b"", &mut version);
    fails(refused, GRIDSTONE_ERROR_INPUT, "receipts[1]");
    fails(commit(&store, &[good.clone(), strange], b"", &mut version), GRIDSTONE_ERROR_INPUT, "store");
    fails(commit(&store, &[good.clone(), good.clone()], b"", &mut version), GRIDSTONE_ERROR_INPUT, "");
    // SAFETY: the places are there.
    unsafe {
        let (context, uri) = (store.context.0, store.uri.as_ptr());
        let out = &raw mut version;
        fails(
            gridstone_commit_receipts(context, null(), null(), 0, null(), out),
            GRIDSTONE_ERROR_INPUT,
            "uri is a null pointer",
        );
        fails(
            gridstone_commit_receipts(context, uri, null(), 1, null(), out),
            GRIDSTONE_ERROR_INPUT,
            "receipts is a null",
        );
        let one_null = [null()];
        let refused = gridstone_commit_receipts(context, uri, one_null.as_ptr(), 1, null(), out);
        fails(refused, GRIDSTONE_ERROR_INPUT, "receipts[0] is a null pointer");
        let refused = gridstone_commit_receipts(0, uri, null(), 0, null(), out);
        fails(refused, GRIDSTONE_ERROR_HANDLE, "0 is no handle; a context");
        assert_eq!(*out, 7);
        // Nothing but the newest version comes of no receipts.
        ok(gridstone_commit_receipts(context, uri, null(), 0, null(), out));
        assert_eq!(*out, refresh(&store.array));
    }
    assert_eq!(sparse(&store.array), []);
    ok(commit(&store, &[good], b"", &mut version));
}
