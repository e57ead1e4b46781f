//! Each verb that takes a call is stopped by it: before it begins, and in the middle by what its progress gives.

use crate::support::*;
use gridstone_capi::*;
use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

/// A verb, by its name.
type Verb<'a> = (&'static str, Box<dyn Fn(*const gridstone_call) -> gridstone_status + 'a>);

/// Frees what a call has put.
fn freed(status: gridstone_status, handle: gridstone_handle) -> gridstone_status {
    let (message, kept) = (last_error(), status);
    ok(gridstone_free(handle));
    assert!(kept == GRIDSTONE_OK || (handle == 0 && !message.is_empty()), "{message}");
    kept
}

/// A verb that puts a handle.
fn puts<'a>(
    name: &'static str,
    verb: impl Fn(*const gridstone_call, *mut gridstone_handle) -> gridstone_status + 'a,
) -> Verb<'a> {
    let run = move |call| {
        let mut handle = 0;
        let status = verb(call, &raw mut handle);
        freed(status, handle)
    };
    (name, Box::new(run))
}

/// A sparse array of 4 fragments across each other, in tiles so small that each verb has many steps.
fn filled(name: &str) -> Store {
    let (context, schema, uri) = (context(), schema_to(99_999, 1_000, true), c(&format!("mem://capi-{name}")));
    // SAFETY: the texts live through the call.
    let array = Held::of(|out| unsafe { gridstone_array_create(context.0, uri.as_ptr(), null(), schema.0, 0, out) });
    let store = Store { array, context, uri };
    for part in 0..4_i64 {
        let at: Vec<i64> = (0..5_000).map(|i| i * 20 + part).collect();
        let values: Vec<i32> = at.iter().map(|x| *x as i32).collect();
        write_sparse(&store.array, &at, &values);
    }
    store
}

/// The newest version, and how many cells it has.
fn state(store: &Store) -> (u64, u64) {
    let version = refresh(&store.array);
    // SAFETY: the place is there.
    (version, number_of(|out| unsafe { gridstone_array_count(store.array.0, 0, null(), null(), out) }))
}

/// Verbs that read.
fn readers<'a>(store: &'a Store, asked: &'a gridstone_question) -> Vec<Verb<'a>> {
    let (array, context, uri) = (store.array.0, store.context.0, store.uri.as_ptr());
    // SAFETY: null means the usual choices; what is pointed to lives as long as the verbs.
    vec![
        puts("read_all", move |call, out| unsafe { gridstone_array_read_all(array, null(), call, out) }),
        puts("read_create", move |call, out| unsafe { gridstone_read_create(array, null(), call, out) }),
        puts("aggregate", move |call, out| unsafe { gridstone_array_aggregate(array, asked, call, out) }),
        puts("answers_create", move |call, out| unsafe { gridstone_answers_create(array, asked, call, out) }),
        (
            "count",
            Box::new(move |call| unsafe { gridstone_array_count(array, 0, c"v % 3 = 1".as_ptr(), call, &mut 0) }),
        ),
        puts("verify", move |call, out| unsafe { gridstone_array_verify(array, call, out) }),
        puts("store_verify", move |call, out| unsafe { gridstone_store_verify(context, uri, call, out) }),
        puts("store_copy", move |call, out| unsafe {
            let target = c"mem://capi-cancel-copy".as_ptr();
            gridstone_store_copy(context, uri, 0, target, null(), call, out)
        }),
    ]
}

/// Verbs that change the store.
fn writers<'a>(store: &'a Store, given: &'a [gridstone_column; 2], receipts: &'a [CString]) -> Vec<Verb<'a>> {
    let (array, context, uri) = (store.array.0, store.context.0, store.uri.as_ptr());
    // SAFETY: as above.
    vec![
        (
            "write_cells",
            Box::new(move |call| unsafe {
                gridstone_array_write_cells(array, given.as_ptr(), 2, null(), call, null_mut())
            }),
        ),
        (
            "delete",
            Box::new(move |call| unsafe { gridstone_array_delete(array, 0, c"v > 90000".as_ptr(), call, null_mut()) }),
        ),
        puts("stage_cells", move |call, out| unsafe {
            gridstone_stage_cells(array, given.as_ptr(), 2, null(), call, out)
        }),
        (
            "commit_receipts",
            Box::new(move |call| unsafe {
                let texts = pointers(receipts);
                gridstone_commit_receipts(context, uri, texts.as_ptr(), texts.len(), call, null_mut())
            }),
        ),
        puts("vacuum", move |call, out| unsafe { gridstone_vacuum(array, null(), call, out) }),
        puts("consolidate", move |call, out| unsafe {
            let mut options: gridstone_consolidate_options = std::mem::zeroed();
            (options.size, options.strategy) = (size_of::<gridstone_consolidate_options>(), c"all".as_ptr());
            gridstone_array_consolidate(array, &raw const options, call, out)
        }),
    ]
}

/// A question of many groups.
fn question(key: &gridstone_group_key, aggregate: &gridstone_aggregate) -> gridstone_question {
    // SAFETY: all zeros are a value of it.
    let mut asked: gridstone_question = unsafe { std::mem::zeroed() };
    asked.size = size_of::<gridstone_question>();
    (asked.keys, asked.key_count) = (key, 1);
    (asked.aggregates, asked.aggregate_count) = (aggregate, 1);
    asked
}

/// Counts the reports in its first half, and stops its call at the report whose number the second says.
unsafe extern "C" fn stop_at(user: *mut c_void, _done: u64, _total: u64) -> i32 {
    let [told, last] = unsafe { &*user.cast::<[AtomicU64; 2]>() };
    i32::from(told.fetch_add(1, Ordering::SeqCst) + 1 >= last.load(Ordering::SeqCst))
}

#[test]
fn each_verb_is_stopped_before_it_begins_and_in_the_middle() {
    let store = filled("cancel");
    let (at, values): (Vec<i64>, Vec<i32>) = (0..20_000).map(|i| (i64::from(i), i)).unzip();
    let given = [column(c"x", &at), column(c"v", &values)];
    // SAFETY: all zeros are a value of both.
    let (mut key, mut aggregate): (gridstone_group_key, gridstone_aggregate) = unsafe { std::mem::zeroed() };
    (key.size, key.expression) = (size_of::<gridstone_group_key>(), c"v".as_ptr());
    (aggregate.size, aggregate.text) = (size_of::<gridstone_aggregate>(), c"count(*)".as_ptr());
    let asked = question(&key, &aggregate);
    let staged = stage_sparse(&store.array, &[77_777], &[7]);
    // SAFETY: the handle lives through the call.
    let receipts = [c(&text_of(|out| unsafe { gridstone_receipt(store.array.0, &raw const staged.0, 1, out) }))];
    let mut before = state(&store);

    let cancel = Held::of(|out| unsafe { gridstone_cancel_create(out) });
    ok(gridstone_cancel_set(cancel.0));
    let verbs = || readers(&store, &asked).into_iter().chain(writers(&store, &given, &receipts));
    for (name, verb) in verbs() {
        let mut stopped = call();
        stopped.cancel = cancel.0;
        assert_eq!(verb(&raw const stopped), GRIDSTONE_ERROR_CANCELLED, "{name}: {}", last_error());
        assert_eq!(state(&store), before, "{name}");
    }

    let mut reported = Vec::new();
    for (name, verb) in verbs() {
        for last in [1, 2, 5] {
            let counts = [AtomicU64::new(0), AtomicU64::new(last)];
            let mut told = call();
            told.progress = Some(stop_at);
            told.user = (&raw const counts).cast_mut().cast();
            // What reports nothing is not stopped by it: it is not run to its end here.
            if ["commit_receipts", "vacuum", "read_create"].contains(&name) {
                continue;
            }
            let status = verb(&raw const told);
            let count = counts[0].load(Ordering::SeqCst);
            assert!(count <= last, "{name} reported {count} times, and was to stop at {last}");
            if count < last || status == GRIDSTONE_OK {
                // It came to its end, maybe with its last report, when there was nothing left to stop.
                ok(status);
                before = state(&store);
                break;
            }
            assert_eq!(status, GRIDSTONE_ERROR_CANCELLED, "{name}: {}", last_error());
            assert_eq!(state(&store), before, "{name}");
            reported.push(name);
        }
    }
    reported.dedup();
    // Between the cells and the commit there is always a look. Others may be done before the next look.
    assert!(reported.contains(&"write_cells") && reported.contains(&"delete"), "{reported:?}");
    assert!(reported.len() >= 5, "few were stopped in the middle: {reported:?}");
}
