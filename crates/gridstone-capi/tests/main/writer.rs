//! Writers: portions that become one write.

use crate::support::*;
use gridstone_capi::*;
use std::ptr::{null, null_mut};

fn options() -> gridstone_writer_options {
    // SAFETY: all zeros are a value of it.
    let mut options: gridstone_writer_options = unsafe { std::mem::zeroed() };
    options.size = size_of::<gridstone_writer_options>();
    options
}

/// A writer of an array.
#[track_caller]
fn writer(array: &Held, options: &gridstone_writer_options) -> Held {
    // SAFETY: the options live through the call.
    Held::of(|out| unsafe { gridstone_writer_create(array.0, options, null(), out) })
}

/// Appends columns.
fn append(writer: &Held, given: &[gridstone_column]) -> gridstone_status {
    // SAFETY: the columns live through the call.
    unsafe { gridstone_writer_append(writer.0, given.as_ptr(), given.len(), null()) }
}

/// Ends a writer and commits what it wrote.
#[track_caller]
fn commit(array: &Held, writer: &Held) -> u64 {
    // SAFETY: the places are there.
    unsafe {
        let staged = Held::of(|out| gridstone_writer_finish(writer.0, null(), out));
        number_of(|out| gridstone_commit(array.0, &raw const staged.0, 1, null(), out))
    }
}

fn unsorted(dedup: u32) -> gridstone_writer_options {
    let mut options = options();
    (options.kind, options.dedup) = (GRIDSTONE_WRITER_UNSORTED, dedup);
    options
}

#[test]
fn a_box_in_global_order_comes_in_portions() {
    let store = store("writer-dense", false);
    write_dense(&store.array, &[-1; 10]);
    let region = boxed(&[0, 4]);
    let mut options = options();
    options.region = region.0;
    let names = [c"v".as_ptr()];
    (options.attributes, options.attribute_count) = (names.as_ptr(), 1);
    let writer = writer(&store.array, &options);
    ok(append(&writer, &[column(c"v", &[1, 2, 3])]));
    ok(append(&writer, &[column(c"v", &[4, 5])]));
    assert_eq!(dense(&store.again()), [-1; 10], "nothing is seen before the commit");
    commit(&store.array, &writer);
    assert_eq!(dense(&store.array), [1, 2, 3, 4, 5, -1, -1, -1, -1, -1]);
}

#[test]
fn a_box_that_is_not_complete_is_refused_and_the_writer_is_over() {
    let store = store("writer-short", false);
    let writer = writer(&store.array, &options());
    ok(append(&writer, &[column(c"v", &[1, 2, 3])]));
    let mut staged = 7;
    // SAFETY: the place is there.
    unsafe {
        let refused = gridstone_writer_finish(writer.0, null(), &raw mut staged);
        fails(refused, GRIDSTONE_ERROR_INPUT, "");
        let refused = gridstone_writer_finish(writer.0, null(), &raw mut staged);
        fails(refused, GRIDSTONE_ERROR_HANDLE, "a writer was given to a commit, finished or aborted");
    }
    assert_eq!(staged, 7);
    fails(append(&writer, &[column(c"v", &[4])]), GRIDSTONE_ERROR_HANDLE, "a writer");
}

#[test]
fn cells_in_any_order_become_one_write() {
    let store = store("writer-unsorted", true);
    let writer = writer(&store.array, &unsorted(GRIDSTONE_DEDUP_LAST));
    ok(append(&writer, &[column(c"x", &[7_i64, 1]), column(c"v", &[70, 10])]));
    // The order of the columns does not matter.
    ok(append(&writer, &[column(c"v", &[71, 30]), column(c"x", &[7_i64, 3])]));
    let before = refresh(&store.array);
    assert_eq!(commit(&store.array, &writer), before + 1);
    assert_eq!(sparse(&store.array), [(1, 10), (3, 30), (7, 71)]);
}

#[test]
fn the_first_of_two_cells_stays_or_both_are_refused() {
    for (dedup, expected) in [(GRIDSTONE_DEDUP_FIRST, Some(70)), (GRIDSTONE_DEDUP_ERROR, None)] {
        let store = store(&format!("writer-dedup-{dedup}"), true);
        let writer = writer(&store.array, &unsorted(dedup));
        ok(append(&writer, &[column(c"x", &[7_i64]), column(c"v", &[70])]));
        let second = append(&writer, &[column(c"x", &[7_i64]), column(c"v", &[71])]);
        if let Some(value) = expected {
            ok(second);
            commit(&store.array, &writer);
            assert_eq!(sparse(&store.array), [(7, value)]);
            continue;
        }
        let mut staged = 7;
        // SAFETY: the place is there.
        let end = unsafe { gridstone_writer_finish(writer.0, null(), &raw mut staged) };
        assert!([second, end].contains(&GRIDSTONE_ERROR_INPUT), "{}", last_error());
        assert_eq!((staged, sparse(&store.again())), (7, vec![]));
    }
}

#[test]
fn the_domain_grows_with_a_writer_that_may() {
    let store = store("writer-grow", true);
    let mut grow = call();
    grow.flags = GRIDSTONE_CALL_GROW;
    let options = unsorted(GRIDSTONE_DEDUP_ERROR);
    let create = |call: &gridstone_call| {
        let (options, call) = (&raw const options, &raw const *call);
        // SAFETY: the structs live through the call.
        Held::of(|out| unsafe { gridstone_writer_create(store.array.0, options, call, out) })
    };
    let cells = ([50_i64], [5_i32]);
    let given = [column(c"x", &cells.0), column(c"v", &cells.1)];
    let writer = create(&call());
    fails(append(&writer, &given), GRIDSTONE_ERROR_BOUNDS, "x");
    let writer = create(&grow);
    ok(append(&writer, &given));
    commit(&store.array, &writer);
    assert_eq!(sparse(&store.array), [(50, 5)]);
}

#[test]
fn the_same_writer_with_the_same_key_is_committed_once() {
    let store = store("writer-keyed", true);
    let mut keyed = call();
    (keyed.commit_key, keyed.commit_key_bytes) = (b"day 1".as_ptr(), 5);
    let mut versions = Vec::new();
    for _ in 0..2 {
        let options = unsorted(GRIDSTONE_DEDUP_ERROR);
        let (options, keyed) = (&raw const options, &raw const keyed);
        // SAFETY: the structs live through the call.
        let writer = Held::of(|out| unsafe { gridstone_writer_create(store.array.0, options, keyed, out) });
        ok(append(&writer, &[column(c"x", &[1_i64]), column(c"v", &[10])]));
        versions.push(commit(&store.array, &writer));
    }
    assert_eq!(versions[0], versions[1]);
}

#[test]
fn what_is_wrong_with_columns_leaves_a_writer_as_it_is() {
    let store = store("writer-columns", true);
    let writer = writer(&store.array, &unsorted(GRIDSTONE_DEDUP_ERROR));
    let (at, values) = ([1_i64], [10_i32]);
    let (x, v) = (column(c"x", &at), column(c"v", &values));
    fails(append(&writer, &[x, column(c"w", &values)]), GRIDSTONE_ERROR_INPUT, "no attribute \"w\"");
    fails(append(&writer, &[x]), GRIDSTONE_ERROR_INPUT, "every portion needs the writer's attributes: v");
    fails(append(&writer, &[x, v, v]), GRIDSTONE_ERROR_INPUT, "given twice");
    let mut typed = v;
    typed.r#type = c"float32".as_ptr();
    fails(append(&writer, &[x, typed]), GRIDSTONE_ERROR_INPUT, "float32");
    let mut nameless = v;
    nameless.name = null();
    fails(append(&writer, &[x, nameless]), GRIDSTONE_ERROR_INPUT, "gridstone_column.name is a null pointer");
    let mut empty = v;
    empty.values = null();
    fails(append(&writer, &[x, empty]), GRIDSTONE_ERROR_INPUT, "values of \"v\" is a null pointer");
    // SAFETY: a null pointer is refused.
    fails(unsafe { gridstone_writer_append(writer.0, null(), 2, null()) }, GRIDSTONE_ERROR_INPUT, "null pointer");
    ok(append(&writer, &[x, v]));
    commit(&store.array, &writer);
    assert_eq!(sparse(&store.array), [(1, 10)]);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let (sparse, dense) = (store("writer-options-sparse", true), store("writer-options-dense", false));
    let (region, mut handle) = (boxed(&[0, 4]), 7);
    let names = [c"w".as_ptr()];
    let create = |array: gridstone_handle, change: &dyn Fn(&mut gridstone_writer_options), handle: &mut u64| {
        let mut options = options();
        change(&mut options);
        // SAFETY: the options live through the call.
        unsafe { gridstone_writer_create(array, &raw const options, null(), handle) }
    };
    let refused = create(sparse.array.0, &|o| o.kind = 9, &mut handle);
    fails(refused, GRIDSTONE_ERROR_INPUT, "kind is 9; it is GRIDSTONE_WRITER_ORDERED or _UNSORTED");
    let refused = create(sparse.array.0, &|o| (o.kind, o.dedup) = (1, 9), &mut handle);
    fails(refused, GRIDSTONE_ERROR_INPUT, "dedup is 9");
    let refused = create(sparse.array.0, &|o| o.dedup = 1, &mut handle);
    fails(refused, GRIDSTONE_ERROR_INPUT, "leave dedup 0");
    let refused = create(sparse.array.0, &|o| (o.kind, o.region) = (1, region.0), &mut handle);
    fails(refused, GRIDSTONE_ERROR_INPUT, "leave region 0");
    let refused = create(dense.array.0, &|o| o.region = dense.array.0, &mut handle);
    fails(refused, GRIDSTONE_ERROR_HANDLE, "is an array; a region is needed");
    let refused = create(dense.array.0, &|o| (o.attributes, o.attribute_count) = (names.as_ptr(), 1), &mut handle);
    fails(refused, GRIDSTONE_ERROR_INPUT, "no attribute \"w\"");
    let refused = create(dense.array.0, &|o| o.size = 3, &mut handle);
    fails(refused, GRIDSTONE_ERROR_INPUT, "sizeof(gridstone_writer_options)");
    fails(create(dense.again().0, &|_| (), &mut handle), GRIDSTONE_ERROR_INPUT, "");
    fails(create(0, &|_| (), &mut handle), GRIDSTONE_ERROR_HANDLE, "an array is needed");
    assert_eq!(handle, 7);
    // SAFETY: a null pointer is refused.
    let refused = unsafe { gridstone_writer_create(dense.array.0, null(), null(), null_mut()) };
    fails(refused, GRIDSTONE_ERROR_INPUT, "writer is a null pointer");
}

#[test]
fn files_of_writers_that_were_not_finished_are_gone() {
    const CELLS: i64 = 1 << 20;
    let (folder, context) = (Folder::new("writers"), context_of(8 << 20));
    let (schema, uri) = (schema_to(CELLS - 1, 1 << 16, false), folder.uri());
    // SAFETY: the texts live through the call.
    let array = Held::of(|out| unsafe { gridstone_array_create(context.0, uri.as_ptr(), null(), schema.0, 0, out) });
    // What no filter makes small.
    let mut state = 1_u32;
    let mut next = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.cast_signed()
    };
    let values: Vec<i32> = (0..CELLS).map(&mut next).collect();
    let (half, all) = (&values[..values.len() / 4 * 3], values.as_slice());
    for way in 0..3 {
        let writer = writer(&array, &options());
        ok(append(&writer, &[column(c"v", half)]));
        assert_eq!(folder.data_files(), 1, "it writes as the cells come");
        match way {
            0 => {
                ok(gridstone_writer_abort(writer.0));
                fails(gridstone_writer_abort(writer.0), GRIDSTONE_ERROR_HANDLE, "a writer was given");
            }
            1 => fails(append(&writer, &[column(c"v", all)]), GRIDSTONE_ERROR_INPUT, ""),
            _ => {}
        }
        let freed = writer.free();
        assert_eq!(folder.data_files(), 0, "way {way}");
        fails(gridstone_writer_abort(freed), GRIDSTONE_ERROR_HANDLE, "freed");
        fails(gridstone_free(freed), GRIDSTONE_ERROR_HANDLE, "freed");
    }
    let mut staged = 7;
    // SAFETY: the place is there.
    unsafe {
        let refused = gridstone_writer_finish(array.0, null(), &raw mut staged);
        fails(refused, GRIDSTONE_ERROR_HANDLE, "is an array; a writer is needed");
        let writer = writer(&array, &options());
        fails(gridstone_writer_finish(writer.0, null(), null_mut()), GRIDSTONE_ERROR_INPUT, "staged is a null");
        // That left it as it was.
        ok(append(&writer, &[column(c"v", all)]));
        // What was finished and is not committed goes with its handle.
        drop(Held::of(|out| gridstone_writer_finish(writer.0, null(), out)));
        assert_eq!((staged, folder.data_files()), (7, 0));
    }
    let writer = writer(&array, &options());
    ok(append(&writer, &[column(c"v", all)]));
    commit(&array, &writer);
    assert_eq!(dense_of(&array, values.len()), values);
}

#[test]
fn a_second_thread_finds_a_writer_busy() {
    let store = store("writer-busy", true);
    let writer = writer(&store.array, &unsorted(GRIDSTONE_DEDUP_LAST));
    let at: Vec<i64> = (0..200_000).map(|cell| cell % 10).collect();
    let values = vec![1_i32; at.len()];
    let begin = std::sync::Barrier::new(4);
    let statuses: Vec<gridstone_status> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    begin.wait();
                    append(&writer, &[column(c"x", &at), column(c"v", &values)])
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(statuses.contains(&GRIDSTONE_OK));
    assert!(statuses.iter().all(|status| [GRIDSTONE_OK, GRIDSTONE_ERROR_BUSY].contains(status)), "{statuses:?}");
    commit(&store.array, &writer);
    assert_eq!(sparse(&store.array).len(), 10);
}
