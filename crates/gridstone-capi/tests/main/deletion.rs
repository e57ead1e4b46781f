//! Deleting by boxes, by conditions, by coordinates.

use crate::support::*;
use gridstone_capi::*;
use std::ffi::c_char;
use std::ptr::{null, null_mut};

fn delete(array: &Held, region: gridstone_region, condition: *const c_char) -> u64 {
    // SAFETY: the text lives through the call.
    number_of(|out| unsafe { gridstone_array_delete(array.0, region, condition, null(), out) })
}

fn filled(name: &str) -> Store {
    let store = store(name, true);
    write_sparse(&store.array, &[1, 2, 3, 7], &[10, 20, 30, 70]);
    store
}

#[test]
fn cells_of_a_box_go_and_older_versions_have_them() {
    let store = filled("delete-box");
    let (before, region) = (version(&store.array), boxed(&[2, 6]));
    assert_eq!(delete(&store.array, region.0, null()), before + 1);
    assert_eq!(sparse(&store.array), [(1, 10), (7, 70)]);
    // SAFETY: all zeros are a value of the options.
    let mut options: gridstone_open_options = unsafe { std::mem::zeroed() };
    (options.size, options.version) = (size_of::<gridstone_open_options>(), before);
    // SAFETY: the options live through the call.
    let older = Held::of(|out| unsafe { gridstone_array_at(store.array.0, &raw const options, out) });
    assert_eq!(sparse(&older).len(), 4);
}

#[test]
fn without_a_region_every_cell_goes_also_those_of_others_beyond_the_domain() {
    let store = filled("delete-all");
    let other = {
        // SAFETY: all zeros are a value of the options.
        let mut options: gridstone_open_options = unsafe { std::mem::zeroed() };
        (options.size, options.mode) = (size_of::<gridstone_open_options>(), GRIDSTONE_OPEN_WRITE);
        let options = &raw const options;
        let (context, uri) = (store.context.0, store.uri.as_ptr());
        // SAFETY: the options live through the call.
        Held::of(|out| unsafe { gridstone_array_open(context, uri, options, out) })
    };
    let mut grow = call();
    grow.flags = GRIDSTONE_CALL_GROW;
    let (at, values) = ([99_i64, -5], [1_i32, 2]);
    let given = [column(c"x", &at), column(c"v", &values)];
    // SAFETY: the columns live through the call.
    ok(unsafe { gridstone_array_write_cells(other.0, given.as_ptr(), 2, null(), &raw const grow, null_mut()) });
    delete(&store.array, 0, null());
    assert_eq!(sparse(&store.array), []);
    // Also ends that were left open, of a region.
    write_sparse(&other, &[99, 3], &[1, 3]);
    let ends = [c"4".as_ptr(), null()];
    // SAFETY: the ends live through the calls.
    let region = Held::of(|out| unsafe { gridstone_region_create(out) });
    // SAFETY: as above.
    ok(unsafe { gridstone_region_add_texts(region.0, ends.as_ptr(), 2) });
    delete(&store.array, region.0, null());
    assert_eq!(sparse(&store.array), [(3, 3)]);
}

#[test]
fn a_condition_selects_what_goes() {
    let store = filled("delete-where");
    let (before, region) = (version(&store.array), boxed(&[0, 5]));
    assert_eq!(delete(&store.array, region.0, c"v > 15".as_ptr()), before + 1);
    assert_eq!(sparse(&store.array), [(1, 10), (7, 70)]);
    assert_eq!(delete(&store.array, 0, c"v > 1000".as_ptr()), before + 1, "nothing was selected");
    let mut out = 7;
    // SAFETY: the texts live through the calls.
    unsafe {
        let refused = gridstone_array_delete(store.array.0, 0, c"nothing > 1".as_ptr(), null(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_INPUT, "nothing");
        let refused = gridstone_array_delete(store.array.0, 0, c"\xff".as_ptr(), null(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_INPUT, "condition is no UTF-8");
    }
    assert_eq!(out, 7);
}

#[test]
fn a_deleted_dense_cell_reads_as_never_written() {
    let store = store("delete-dense", false);
    write_dense(&store.array, &[5; 10]);
    let region = boxed(&[3, 4]);
    delete(&store.array, region.0, null());
    assert_eq!(dense(&store.array), [5, 5, 5, 0, 0, 5, 5, 5, 5, 5]);
    delete(&store.array, 0, c"v = 5".as_ptr());
    assert_eq!(dense(&store.array), [0; 10]);
}

#[test]
fn cells_at_coordinates_go() {
    let store = filled("delete-cells");
    let at = [2_i64, 5, 7];
    let given = [column(c"x", &at)];
    let array = store.array.0;
    // SAFETY: the columns live through the calls.
    unsafe {
        number_of(|out| gridstone_array_delete_cells(array, given.as_ptr(), 1, null(), out));
        assert_eq!(sparse(&store.array), [(1, 10), (3, 30)]);
        let mut out = 7;
        let beyond = [10_i64];
        let outside = [column(c"x", &beyond)];
        let refused = gridstone_array_delete_cells(array, outside.as_ptr(), 1, null(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_BOUNDS, "x");
        let refused = gridstone_array_delete_cells(array, null(), 0, null(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_INPUT, "no coordinates were given");
        let values = [1_i32];
        let attribute = [column(c"x", &at), column(c"v", &values)];
        let refused = gridstone_array_delete_cells(array, attribute.as_ptr(), 2, null(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_INPUT, "\"v\" is an attribute");
        let refused = gridstone_array_delete_cells(array, null(), 1, null(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_INPUT, "gridstone_column is a null pointer");
        assert_eq!(out, 7);
    }
}

#[test]
fn staged_deletions_and_writes_are_one_commit() {
    let store = filled("delete-staged");
    let (at, region, array) = ([7_i64], boxed(&[1, 2]), store.array.0);
    let given = [column(c"x", &at)];
    // SAFETY: the columns live through the calls.
    unsafe {
        let of_box = Held::of(|out| gridstone_stage_delete(array, region.0, null(), null(), out));
        let of_cells = Held::of(|out| gridstone_stage_delete_cells(array, given.as_ptr(), 1, null(), out));
        let written = stage_sparse(&store.array, &[8], &[80]);
        let (before, all) = (version(&store.array), [of_box.0, of_cells.0, written.0]);
        let done = number_of(|out| gridstone_commit(array, all.as_ptr(), 3, null(), out));
        assert_eq!(done, before + 1);
        assert_eq!(sparse(&store.array), [(3, 30), (8, 80)]);
        let mut staged = 7;
        let refused = gridstone_stage_delete(array, 0, c"v = 30".as_ptr(), null(), &raw mut staged);
        fails(refused, GRIDSTONE_ERROR_INPUT, "transaction");
        fails(
            gridstone_stage_delete(array, 0, null(), null(), null_mut()),
            GRIDSTONE_ERROR_INPUT,
            "staged is a null pointer",
        );
        assert_eq!(staged, 7);
    }
}

#[test]
fn wrong_handles_and_arrays_for_reading_are_refused() {
    let store = filled("delete-handles");
    let (mut out, reading) = (7, store.again());
    let freed = store.again().free();
    // SAFETY: the place is there.
    unsafe {
        let refused = gridstone_array_delete(freed, 0, null(), null(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_HANDLE, "freed");
        let refused = gridstone_array_delete(store.context.0, 0, null(), null(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_HANDLE, "an array is needed");
        let refused = gridstone_array_delete(store.array.0, store.array.0, null(), null(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_HANDLE, "a region is needed");
        for condition in [null(), c"v = 1".as_ptr()] {
            let refused = gridstone_array_delete(reading.0, 0, condition, null(), &raw mut out);
            fails(refused, GRIDSTONE_ERROR_INPUT, "");
        }
    }
    assert_eq!(out, 7);
    assert_eq!(sparse(&store.again()).len(), 4);
}

#[test]
fn a_region_without_a_box_is_refused_and_deletes_nothing() {
    let store = filled("delete-nothing");
    // SAFETY: the place is there.
    let region = Held::of(|out| unsafe { gridstone_region_create(out) });
    let before = version(&store.array);
    // SAFETY: null means nothing.
    let refused = unsafe { gridstone_array_delete(store.array.0, region.0, null(), null(), null_mut()) };
    fails(refused, GRIDSTONE_ERROR_INPUT, "the region has no box");
    assert_eq!((version(&store.array), sparse(&store.array).len()), (before, 4));
}
