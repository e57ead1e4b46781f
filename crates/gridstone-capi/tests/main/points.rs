//! Reads of cells, points and positions as results.

use super::fixture::*;
use gridstone_capi::*;
use std::ptr::{null, null_mut};

/// A dense array of 4 x 5 cells, each ten times its row and its column.
fn grid() -> Handle {
    let schema = r#"{"dims":[{"name":"i","dtype":"int64","domain":["0","3"],"tile":"2"},
        {"name":"j","dtype":"int64","domain":["0","4"],"tile":"2"}],"attrs":[{"name":"v","dtype":"int64"}]}"#;
    let array = array(schema);
    let values: Vec<i64> = (0..20).map(|k| k / 5 * 10 + k % 5).collect();
    let raw = [longs("v", &values)];
    let raw = raws(&raw);
    ok(unsafe { gridstone_array_write(array.0, 0, GRIDSTONE_ORDER_ROW, raw.as_ptr(), 1, null(), null_mut()) });
    array
}

fn points(array: &Handle, given: &[Given]) -> Result<Handle, gridstone_status> {
    let (raw, mut result) = (raws(given), 0);
    let status = unsafe { gridstone_array_points(array.0, raw.as_ptr(), raw.len(), null(), 0, null(), &mut result) };
    if status == GRIDSTONE_OK { Ok(Handle(result)) } else { Err(status) }
}

#[test]
fn points_of_a_dense_array_come_in_their_order_and_repeat() {
    let array = grid();
    let found = points(&array, &[longs("j", &[4, 0, 4, 2]), longs("i", &[3, 0, 3, 1])]).ok().unwrap();
    let found = columns(&found);
    assert_eq!((found.len(), found[0].longs()), (1, vec![34, 0, 34, 12]));
    let none = points(&array, &[longs("i", &[]), longs("j", &[])]).ok().unwrap();
    assert_eq!(rows(&none), 0);
}

#[test]
fn points_of_a_sparse_array_are_the_cells_that_exist() {
    let array = sparse(r#"{"name":"v","dtype":"int64"}"#);
    write(&array, &[longs("x", &[7, 3]), longs("v", &[70, 30])]);
    let found = columns(&points(&array, &[longs("x", &[7, 4, 3, 7])]).ok().unwrap());
    assert_eq!((found[0].longs(), found[1].longs()), (vec![7, 3, 7], vec![70, 30, 70]));
}

#[test]
fn wrong_points_are_named() {
    let array = grid();
    let fails = |given: &[Given], status, part| {
        assert_eq!(points(&array, given).err(), Some(status), "{}", message());
        assert!(message().contains(part), "{}", message());
    };
    fails(&[longs("i", &[0, 4]), longs("j", &[0, 0])], GRIDSTONE_ERROR_BOUNDS, "row 1");
    fails(&[longs("i", &[0])], GRIDSTONE_ERROR_INPUT, "i, j");
    fails(&[longs("i", &[0]), longs("j", &[0]), longs("v", &[0])], GRIDSTONE_ERROR_INPUT, "attribute");
    fails(&[longs("i", &[0]), longs("j", &[0, 1])], GRIDSTONE_ERROR_INPUT, "");
}

fn axis(kind: u32) -> gridstone_positions {
    gridstone_positions {
        size: size_of::<gridstone_positions>(),
        kind,
        reserved: 0,
        start: 0,
        count: 0,
        step: 0,
        list: null(),
        list_count: 0,
    }
}

#[test]
fn positions_give_a_shape_and_rows_in_its_order() {
    let (array, list) = (grid(), [3u64, 0, 3]);
    let listed = gridstone_positions { list: list.as_ptr(), list_count: 3, ..axis(GRIDSTONE_POSITIONS_LISTED) };
    let down = gridstone_positions { start: 4, count: 3, step: -2, ..axis(GRIDSTONE_POSITIONS_STRIDED) };
    let read = |axes: &[gridstone_positions]| {
        made(|out| unsafe { gridstone_array_positions(array.0, axes.as_ptr(), axes.len(), null(), 0, null(), out) })
    };
    let result = read(&[listed, down]);
    assert_eq!((shape(&result), columns(&result)[0].longs()), (vec![3, 3], vec![34, 32, 30, 4, 2, 0, 34, 32, 30]));
    let result = read(&[axis(GRIDSTONE_POSITIONS_ALL), gridstone_positions { list_count: 1, ..listed }]);
    assert_eq!((shape(&result), columns(&result)[0].longs()), (vec![4, 1], vec![3, 13, 23, 33]));
    let paired = gridstone_positions { kind: GRIDSTONE_POSITIONS_PAIRED, ..listed };
    let result = read(&[paired, paired]);
    assert_eq!((shape(&result), columns(&result)[0].longs()), (vec![3], vec![33, 0, 33]));
    let mut result = 0;
    let wrong = [axis(9), axis(GRIDSTONE_POSITIONS_ALL)];
    let status = unsafe { gridstone_array_positions(array.0, wrong.as_ptr(), 2, null(), 0, null(), &mut result) };
    fails(status, GRIDSTONE_ERROR_INPUT, "kind is 9");
    let wrong = [gridstone_positions { start: 4, ..down }, down];
    let status = unsafe { gridstone_array_positions(array.0, wrong.as_ptr(), 2, null(), 0, null(), &mut result) };
    fails(status, GRIDSTONE_ERROR_BOUNDS, "");
}

#[test]
fn a_read_takes_region_attributes_condition_and_order() {
    let array = grid();
    let region = made(|out| unsafe { gridstone_region_create(out) });
    ok(unsafe { gridstone_region_add(region.0, [1, 2, 0, 4].as_ptr(), 4) });
    let (name, condition) = (c("v"), c("v >= 12"));
    let (attributes, mut result) = ([name.as_ptr()], 0);
    let options = gridstone_read_options {
        size: size_of::<gridstone_read_options>(),
        region: region.0,
        attributes: attributes.as_ptr(),
        attribute_count: 1,
        condition: condition.as_ptr(),
        order: GRIDSTONE_ORDER_COLUMN,
        reserved: 0,
        batch_bytes: 0,
    };
    ok(unsafe { gridstone_array_read_all(array.0, &options, null(), &mut result) });
    let result = Handle(result);
    assert_eq!(columns(&result)[2].longs(), [20, 21, 12, 22, 13, 23, 14, 24]);
    let bad = c("v >=");
    let options = gridstone_read_options { condition: bad.as_ptr(), ..options };
    fails(unsafe { gridstone_array_read_all(array.0, &options, null(), &mut 0) }, GRIDSTONE_ERROR_INPUT, "");
}
