//! What goes with a call and ends with it: progress, cancel, keys; and members that are for later.

use crate::fixture::{Handle, fails, longs, made, message, numbers, ok, raws, sparse, write};
use gridstone_capi::*;
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

const NO_CALL: gridstone_call = gridstone_call {
    size: size_of::<gridstone_call>(),
    cancel: 0,
    progress: None,
    user: null_mut(),
    message: null(),
    commit_key: null(),
    commit_key_bytes: 0,
    flags: 0,
    reserved: 0,
};

const V: &str = r#"{"name":"v","dtype":"int64"}"#;

unsafe extern "C" fn count(user: *mut c_void, _done: u64, _total: u64) -> i32 {
    unsafe { &*user.cast::<AtomicU64>() }.fetch_add(1, Ordering::SeqCst);
    0
}

/// A call that counts its reports.
fn counted(calls: &AtomicU64) -> gridstone_call {
    gridstone_call { progress: Some(count), user: std::ptr::from_ref(calls).cast_mut().cast(), ..NO_CALL }
}

/// Fragments that lie across each other, so that a read takes many steps.
fn filled() -> Handle {
    let array = sparse(V);
    for part in 0..4 {
        let at: Vec<i64> = (0..250).map(|i| i * 4 + part).collect();
        write(&array, &[longs("x", &at), longs("v", &at)]);
    }
    array
}

/// A read in small batches, begun with a call.
fn read_of(array: &Handle, order: u32, call: &gridstone_call) -> Handle {
    let mut options: gridstone_read_options = unsafe { std::mem::zeroed() };
    (options.size, options.order, options.batch_bytes) = (size_of::<gridstone_read_options>(), order, 64);
    made(|out| unsafe { gridstone_read_create(array.0, &raw const options, call, out) })
}

/// The next 10 values.
fn next(read: &Handle, call: *const gridstone_call) -> (gridstone_status, Vec<i64>) {
    let (mut values, mut cells) = ([0_i64; 10], 0);
    let mut buffer: gridstone_buffer = unsafe { std::mem::zeroed() };
    (buffer.size, buffer.name) = (size_of::<gridstone_buffer>(), c"v".as_ptr());
    (buffer.values, buffer.values_bytes) = (values.as_mut_ptr().cast(), size_of_val(&values));
    let status = unsafe { gridstone_read_next(read.0, &raw mut buffer, 1, call, &raw mut cells, null_mut()) };
    (status, values.into_iter().take(cells as usize).collect())
}

#[test]
fn a_read_reports_to_the_call_under_way_and_to_no_earlier_one() {
    let array = filled();
    for order in [GRIDSTONE_ORDER_ROW, GRIDSTONE_ORDER_GLOBAL, GRIDSTONE_ORDER_ANY] {
        let (first, second) = (AtomicU64::new(0), AtomicU64::new(0));
        let read = read_of(&array, order, &counted(&first));
        let at_begin = first.load(Ordering::SeqCst);
        let mut all = Vec::new();
        for _ in 0..20 {
            let (status, found) = next(&read, null());
            ok(status);
            all.extend(found);
        }
        assert_eq!(first.load(Ordering::SeqCst), at_begin, "order {order}: a call that has ended was reported to");
        for _ in 0..20 {
            let (status, found) = next(&read, &counted(&second));
            ok(status);
            all.extend(found);
        }
        let seen = second.load(Ordering::SeqCst);
        let mut stream = unsafe { std::mem::zeroed::<ArrowArrayStream>() };
        ok(unsafe { gridstone_read_to_arrow(read.0, &raw mut stream) });
        loop {
            let mut batch = unsafe { std::mem::zeroed::<ArrowArray>() };
            assert_eq!(unsafe { stream.get_next.unwrap()(&raw mut stream, &raw mut batch) }, 0);
            let Some(release) = batch.release else { break };
            unsafe { release(&raw mut batch) };
        }
        unsafe { stream.release.unwrap()(&raw mut stream) };
        assert_eq!((first.load(Ordering::SeqCst), second.load(Ordering::SeqCst)), (at_begin, seen), "order {order}");
        let (read, third) = (read_of(&array, order, &NO_CALL), AtomicU64::new(0));
        while !next(&read, &counted(&third)).1.is_empty() {}
        assert!(third.load(Ordering::SeqCst) > 0, "order {order}: no report");
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 400, "order {order}");
    }
}

#[test]
fn what_cancels_the_call_that_began_a_read_does_not_cancel_a_later_one() {
    let array = filled();
    let cancel = made(|out| unsafe { gridstone_cancel_create(out) });
    let call = gridstone_call { cancel: cancel.0, ..NO_CALL };
    let read = read_of(&array, GRIDSTONE_ORDER_GLOBAL, &call);
    ok(gridstone_cancel_set(cancel.0));
    ok(next(&read, null()).0);
}

/// What a callback of progress has seen of the library.
struct Seen {
    array: u64,
    cancel: u64,
    version: AtomicI32,
    set: AtomicI32,
}

unsafe extern "C" fn call_back(user: *mut c_void, _done: u64, _total: u64) -> i32 {
    let seen = unsafe { &*user.cast::<Seen>() };
    let mut version = 0;
    seen.version.store(unsafe { gridstone_array_version(seen.array, &raw mut version) }, Ordering::SeqCst);
    assert!(message().contains("progress callback"), "{}", message());
    seen.set.store(gridstone_cancel_set(seen.cancel), Ordering::SeqCst);
    0
}

#[test]
fn a_progress_callback_may_cancel_and_call_nothing_else() {
    let array = filled();
    let cancel = made(|out| unsafe { gridstone_cancel_create(out) });
    let seen = Seen { array: array.0, cancel: cancel.0, version: AtomicI32::new(-1), set: AtomicI32::new(-1) };
    let user = std::ptr::from_ref(&seen).cast_mut().cast();
    let call = gridstone_call { progress: Some(call_back), user, cancel: cancel.0, ..NO_CALL };
    let at: Vec<i64> = (0..1000).collect();
    let given = [longs("x", &at), longs("v", &at)];
    let raw = raws(&given);
    let mut version = 0;
    let status =
        unsafe { gridstone_array_write_cells(array.0, raw.as_ptr(), 2, null(), &raw const call, &raw mut version) };
    assert_eq!(seen.version.load(Ordering::SeqCst), GRIDSTONE_ERROR_BUSY);
    assert_eq!(seen.set.load(Ordering::SeqCst), GRIDSTONE_OK);
    assert!([GRIDSTONE_OK, GRIDSTONE_ERROR_CANCELLED].contains(&status), "{status}");
    ok(unsafe { gridstone_array_version(array.0, &raw mut version) });
}

#[test]
fn commits_refuse_what_belongs_to_staging_and_what_is_cancelled() {
    let array = sparse(V);
    let given = [longs("x", &[1]), longs("v", &[7])];
    let raw = raws(&given);
    let staged = made(|out| unsafe { gridstone_stage_cells(array.0, raw.as_ptr(), 2, null(), null(), out) });
    let commit = |call: &gridstone_call| unsafe { gridstone_commit(array.0, &staged.0, 1, call, null_mut()) };
    let key = [1_u8; 4];
    let keyed = gridstone_call { commit_key: key.as_ptr(), commit_key_bytes: 4, ..NO_CALL };
    fails(commit(&keyed), GRIDSTONE_ERROR_INPUT, "commit_key to the calls that stage");
    let grown = gridstone_call { flags: GRIDSTONE_CALL_GROW, ..NO_CALL };
    fails(commit(&grown), GRIDSTONE_ERROR_INPUT, "GRIDSTONE_CALL_GROW");
    let cancel = made(|out| unsafe { gridstone_cancel_create(out) });
    ok(gridstone_cancel_set(cancel.0));
    let stopped = gridstone_call { cancel: cancel.0, ..NO_CALL };
    fails(commit(&stopped), GRIDSTONE_ERROR_CANCELLED, "");
    // Nothing has used the staged write up.
    ok(commit(&NO_CALL));
    fails(commit(&NO_CALL), GRIDSTONE_ERROR_HANDLE, "given to a commit");
}

#[test]
fn a_commit_that_cannot_take_all_leaves_the_others() {
    let (array, other) = (sparse(V), sparse(V));
    let given = [longs("x", &[1]), longs("v", &[7])];
    let raw = raws(&given);
    let stage =
        |array: &Handle| made(|out| unsafe { gridstone_stage_cells(array.0, raw.as_ptr(), 2, null(), null(), out) });
    let (first, second, foreign) = (stage(&array), stage(&array), stage(&other));
    let commit = |all: &[u64]| unsafe { gridstone_commit(array.0, all.as_ptr(), all.len(), null(), null_mut()) };
    assert_ne!(commit(&[first.0, foreign.0]), GRIDSTONE_OK);
    ok(commit(&[second.0]));
    fails(commit(&[first.0, second.0]), GRIDSTONE_ERROR_HANDLE, "given to a commit");
    ok(commit(&[first.0]));
}

#[test]
fn members_for_later_are_0() {
    let array = sparse(V);
    let mut options: gridstone_read_options = unsafe { std::mem::zeroed() };
    (options.size, options.reserved) = (size_of::<gridstone_read_options>(), 1);
    let refused = unsafe { gridstone_read_create(array.0, &raw const options, null(), &mut 0) };
    fails(refused, GRIDSTONE_ERROR_INPUT, "gridstone_read_options.reserved is 1");
    let mut options: gridstone_context_options = unsafe { std::mem::zeroed() };
    (options.size, options.reserved) = (size_of::<gridstone_context_options>(), 2);
    let refused = unsafe { gridstone_context_create(&raw const options, &mut 0) };
    fails(refused, GRIDSTONE_ERROR_INPUT, "gridstone_context_options.reserved is 2");
    let call = gridstone_call { reserved: 3, ..NO_CALL };
    let refused = unsafe { gridstone_array_count(array.0, 0, null(), &raw const call, &mut 0) };
    fails(refused, GRIDSTONE_ERROR_INPUT, "gridstone_call.reserved is 3");
}

#[test]
fn a_box_is_read_in_row_or_column_order_alone() {
    let array = crate::fixture::array(
        r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","3"]}],"attrs":[{"name":"v","dtype":"int64"}]}"#,
    );
    let mut values = [0_i64; 4];
    let mut buffer: gridstone_buffer = unsafe { std::mem::zeroed() };
    (buffer.size, buffer.name) = (size_of::<gridstone_buffer>(), c"v".as_ptr());
    (buffer.values, buffer.values_bytes) = (values.as_mut_ptr().cast(), size_of_val(&values));
    for order in [GRIDSTONE_ORDER_GLOBAL, GRIDSTONE_ORDER_ANY, GRIDSTONE_ORDER_HILBERT] {
        let refused = unsafe { gridstone_array_read(array.0, 0, order, &raw mut buffer, 1, null()) };
        fails(refused, GRIDSTONE_ERROR_INPUT, "a box is in GRIDSTONE_ORDER_ROW or _COLUMN");
    }
    ok(unsafe { gridstone_array_read(array.0, 0, GRIDSTONE_ORDER_COLUMN, &raw mut buffer, 1, null()) });
}

#[test]
fn null_buffers_with_sizes_are_null_and_no_overlap() {
    let array = sparse(r#"{"name":"v","dtype":"int64"},{"name":"w","dtype":"int64"}"#);
    write(&array, &[longs("x", &[1]), longs("v", &[1]), numbers("w", &[2_i64], i64::to_ne_bytes)]);
    let read = made(|out| unsafe { gridstone_read_create(array.0, null(), null(), out) });
    let mut buffers: [gridstone_buffer; 2] = unsafe { std::mem::zeroed() };
    for (buffer, name) in buffers.iter_mut().zip([c"v", c"w"]) {
        (buffer.size, buffer.name, buffer.values_bytes) = (size_of::<gridstone_buffer>(), name.as_ptr(), 80);
    }
    let given = buffers.as_mut_ptr();
    let refused = unsafe { gridstone_read_next(read.0, given, 2, null(), &mut 0, null_mut()) };
    fails(refused, GRIDSTONE_ERROR_INPUT, "values of \"v\" is a null pointer");
    let mut room = [0_i64; 10];
    (buffers[0].values, buffers[0].values_bytes) = (room.as_mut_ptr().cast(), usize::MAX);
    (buffers[1].values, buffers[1].values_bytes) = (room.as_mut_ptr().cast(), 8);
    let given = buffers.as_mut_ptr();
    let refused = unsafe { gridstone_read_next(read.0, given, 2, null(), &mut 0, null_mut()) };
    fails(refused, GRIDSTONE_ERROR_INPUT, "overlap");
}

#[test]
fn a_source_without_a_name_is_a_wrong_argument() {
    let array = sparse(V);
    let refused = unsafe { gridstone_array_look_at_source(array.0, c"".as_ptr(), &mut 0) };
    fails(refused, GRIDSTONE_ERROR_INPUT, "uri is empty");
}

/// Ends a child of a fork with whether `work` is done, and gives that; `None`: it stands still.
fn in_a_child(work: impl FnOnce() -> bool) -> Option<bool> {
    let child = unsafe { libc::fork() };
    if child == 0 {
        let done = work();
        unsafe { libc::_exit(if done { 0 } else { 1 }) };
    }
    assert!(child > 0);
    let mut status = 0;
    for _ in 0..2000 {
        if unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child {
            return Some(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, &raw mut status, 0);
    }
    None
}

#[test]
fn schemas_and_regions_work_in_children_forked_beside_threads_that_use_them() {
    let schema = made(|out| unsafe { gridstone_schema_create(null(), out) });
    ok(unsafe { gridstone_schema_add_axis(schema.0, c"x".as_ptr(), c"int64".as_ptr(), 0, 9, 0) });
    let mut attribute: gridstone_attribute = unsafe { std::mem::zeroed() };
    (attribute.size, attribute.r#type) = (size_of::<gridstone_attribute>(), c"int32".as_ptr());
    for number in 0..200 {
        let name = crate::fixture::c(&format!("attribute-{number}"));
        attribute.name = name.as_ptr();
        ok(unsafe { gridstone_schema_add_attribute(schema.0, &raw const attribute) });
    }
    let region = made(|out| unsafe { gridstone_region_create(out) });
    let use_both = || {
        let (mut text, ends) = (0, [0_i64, 1]);
        let told = unsafe { gridstone_schema_json(schema.0, &raw mut text) };
        let added = unsafe { gridstone_region_add(region.0, ends.as_ptr(), 2) };
        gridstone_free(text);
        told == GRIDSTONE_OK && added == GRIDSTONE_OK
    };
    let stop = std::sync::atomic::AtomicBool::new(false);
    let found: Vec<Option<bool>> = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) && use_both() {
                    std::hint::spin_loop()
                }
            });
        }
        let found = (0..60).map(|_| in_a_child(use_both)).collect();
        stop.store(true, Ordering::Relaxed);
        found
    });
    assert!(found.iter().all(|one| *one == Some(true)), "{found:?}");
}
