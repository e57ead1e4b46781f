//! Results: columns of the library.

use super::fixture::*;
use gridstone_capi::*;
use std::ptr::{null, null_mut};

fn ships() -> Handle {
    let array = sparse(r#"{"name":"v","dtype":"int64"},{"name":"name","dtype":"string","nullable":true}"#);
    let names = texts("name", &["tug", "", "ferry"]).with_nulls(&[1, 0, 1]);
    write(&array, &[longs("x", &[7, 3, 5]), longs("v", &[70, -3, 5]), names]);
    array
}

#[test]
fn a_result_has_coordinates_values_texts_and_nulls() {
    let array = ships();
    let result = read_all(&array);
    drop(array);
    assert_eq!((rows(&result), shape(&result)), (3, vec![3]));
    let found = columns(&result);
    let kinds: Vec<(&str, &str)> = found.iter().map(|c| (c.name.as_str(), c.kind.as_str())).collect();
    assert_eq!(kinds, [("x", "int64"), ("v", "int64"), ("name", "string")]);
    assert_eq!((found[0].longs(), found[1].longs()), (vec![3, 5, 7], vec![-3, 5, 70]));
    assert_eq!(found[2].cells(), [None, Some(b"ferry".to_vec()), Some(b"tug".to_vec())]);
    let (mut index, name) = (0, c("name"));
    ok(unsafe { gridstone_result_find(result.0, name.as_ptr(), &mut index) });
    assert_eq!(index, 2);
    assert_eq!(told(|out| unsafe { gridstone_result_categories(result.0, 0, out) }), "null");
    let counters: serde_json::Value =
        serde_json::from_str(&told(|out| unsafe { gridstone_result_counters(result.0, out) })).unwrap();
    assert_eq!(counters["cells_returned"], 3);
}

#[test]
fn an_empty_result_has_its_columns_and_types() {
    let result = read_all(&sparse(r#"{"name":"t","dtype":"string"}"#));
    let found = columns(&result);
    assert_eq!((rows(&result), found.len()), (0, 2));
    assert_eq!((found[1].kind.as_str(), found[1].offsets.as_deref()), ("string", Some(&[0][..])));
}

#[test]
fn codes_come_with_their_categories() {
    let kinds = r#"{"name":"kind","dtype":"string","categories":["tug","ferry"],"nullable":true}"#;
    let array = sparse(kinds);
    write(&array, &[longs("x", &[1, 2]), bytes("kind", &[1, 0])]);
    let result = read_all(&array);
    assert_eq!((columns(&result)[1].kind.as_str(), columns(&result)[1].values.clone()), ("uint8", vec![1, 0]));
    assert_eq!(told(|out| unsafe { gridstone_result_categories(result.0, 1, out) }), r#"["tug","ferry"]"#);
}

#[test]
fn a_column_fills_no_more_than_the_size_says() {
    let result = read_all(&ships());
    let mut short = BLANK;
    (short.size, short.validity_count) = (std::mem::offset_of!(gridstone_column, values), 77);
    ok(unsafe { gridstone_result_column(result.0, 1, &mut short) });
    assert!(!short.name.is_null() && short.values.is_null());
    assert_eq!(short.validity_count, 77);
    #[repr(C)]
    struct Longer {
        known: gridstone_column,
        later: u64,
    }
    let mut long = Longer { known: BLANK, later: 9 };
    long.known.size = size_of::<Longer>();
    ok(unsafe { gridstone_result_column(result.0, 1, (&raw mut long).cast()) });
    assert_eq!((long.known.values_bytes, long.later, long.known.size), (24, 0, size_of::<Longer>()));
    long.known.size = 3;
    fails(unsafe { gridstone_result_column(result.0, 1, &mut long.known) }, GRIDSTONE_ERROR_INPUT, "sizeof");
}

#[test]
fn wrong_arguments_are_named() {
    let (array, unknown) = (ships(), c("nothing"));
    let result = read_all(&array);
    let (mut out, mut index) = (BLANK, 5);
    unsafe {
        fails(gridstone_result_column(result.0, 3, &mut out), GRIDSTONE_ERROR_INPUT, "3 columns");
        fails(gridstone_result_column(result.0, 0, null_mut()), GRIDSTONE_ERROR_INPUT, "null pointer");
        fails(gridstone_result_find(result.0, unknown.as_ptr(), &mut index), GRIDSTONE_ERROR_NOT_FOUND, "x, v, name");
        fails(gridstone_result_find(result.0, null(), &mut index), GRIDSTONE_ERROR_INPUT, "name");
        fails(gridstone_result_rows(array.0, &mut index), GRIDSTONE_ERROR_HANDLE, "a result is needed");
        fails(gridstone_result_rows(result.0, null_mut()), GRIDSTONE_ERROR_INPUT, "rows");
        fails(gridstone_result_shape(result.0, null_mut(), null_mut()), GRIDSTONE_ERROR_INPUT, "sides");
        fails(gridstone_array_read_all(array.0, null(), null(), null_mut()), GRIDSTONE_ERROR_INPUT, "result");
        assert_eq!(gridstone_free(result.0), GRIDSTONE_OK);
        fails(gridstone_result_columns(result.0, &mut index), GRIDSTONE_ERROR_HANDLE, "freed");
        fails(gridstone_result_counters(result.0, &mut index), GRIDSTONE_ERROR_HANDLE, "freed");
    }
    assert_eq!(index, 5);
}
