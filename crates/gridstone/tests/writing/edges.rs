//! The edges of what is accepted: whole 64-bit domains, nothing at all, special floats, far too much.

use crate::support::array::{bytes, column, create, sub};
use gridstone::base::ErrorKind;
use gridstone::engine::{Array, Call, CellData, Cells, Column, Dedup, ReadOrder};
use gridstone::schema::{Datatype, Order};

fn write_cells(array: &Array, dims: &[Column], values: &[u8], dedup: Dedup) -> gridstone::base::Result<u64> {
    let values = bytes(values);
    let dims = dims.iter().map(Column::view).collect();
    let data = CellData { dims, attrs: vec![("v".to_owned(), values.view())], sorted: false, dedup };
    array.commit(vec![array.stage_cells(data, &Call::default())?], None)
}

fn write_box(array: &Array, ranges: &[(&str, &str)], values: &[u8]) {
    let values = bytes(values);
    let data = vec![("v".to_owned(), values.view())];
    let staged = array.stage_dense(Some(&sub(ranges)), &data, Order::Row, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
}

fn read(array: &Array, ranges: &[(&str, &str)], order: ReadOrder) -> Cells {
    array.read(Some(&sub(ranges)), None, order, &Call::default()).unwrap().0
}

fn values(cells: &Cells) -> Vec<u8> {
    cells.attrs[0].view().values().to_vec()
}

const LEAST: &str = "-9223372036854775808";
const GREATEST: &str = "9223372036854775807";
const LAST: &str = "18446744073709551615";

#[test]
fn dense_arrays_over_all_64_bits() {
    for tile in ["1", "10", "1000000", "2147483648"] {
        let array = create(&format!(
            r#"{{"dims":[{{"name":"x","dtype":"int64","domain":["{LEAST}","{GREATEST}"],"tile":"{tile}"}}],"attrs":[{{"name":"v","dtype":"uint8","fill":"9"}}]}}"#
        ));
        write_box(&array, &[(LEAST, "-9223372036854775805")], &[1, 2, 3, 4]);
        write_box(&array, &[("9223372036854775804", GREATEST)], &[5, 6, 7, 8]);
        write_box(&array, &[("-1", "1")], &[10, 11, 12]);
        assert_eq!(values(&read(&array, &[(LEAST, "-9223372036854775804")], ReadOrder::Row)), [1, 2, 3, 4, 9]);
        for order in [ReadOrder::Row, ReadOrder::Col, ReadOrder::Global] {
            assert_eq!(values(&read(&array, &[("9223372036854775803", GREATEST)], order)), [9, 5, 6, 7, 8]);
        }
        assert_eq!(values(&read(&array, &[("-2", "2")], ReadOrder::Row)), [9, 10, 11, 12, 9]);
        assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
    }
    let array = create(&format!(
        r#"{{"dims":[{{"name":"x","dtype":"uint64","domain":["0","{LAST}"],"tile":"7"}},{{"name":"y","dtype":"uint64","domain":["0","{LAST}"],"tile":"5"}}],
        "attrs":[{{"name":"v","dtype":"uint8"}}]}}"#
    ));
    write_box(&array, &[("18446744073709551614", LAST), ("0", "1")], &[1, 2, 3, 4]);
    write_cells(
        &array,
        &[column(Datatype::UInt64, [u64::MAX.to_le_bytes()]), column(Datatype::UInt64, [1u64.to_le_bytes()])],
        &[8],
        Dedup::Error,
    )
    .unwrap();
    assert_eq!(values(&read(&array, &[("18446744073709551614", LAST), ("0", "1")], ReadOrder::Row)), [1, 2, 3, 8]);
}

#[test]
fn sparse_arrays_over_all_64_bits() {
    for tile in ["null", "\"10\"", "\"18446744073709551615\""] {
        for order in ["row", "col"] {
            let array = create(&format!(
                r#"{{"sparse":true,"capacity":2,"tile_order":"{order}","dims":[{{"name":"x","dtype":"int64","domain":["{LEAST}","{GREATEST}"],"tile":{tile}}},
                {{"name":"y","dtype":"uint64","domain":["0","{LAST}"],"tile":{tile}}}],"attrs":[{{"name":"v","dtype":"uint8"}}]}}"#
            ));
            let x = column(Datatype::Int64, [i64::MAX, i64::MIN, 0, i64::MIN, i64::MAX].map(i64::to_le_bytes));
            let y = column(Datatype::UInt64, [u64::MAX, 0, 5, u64::MAX, 0].map(u64::to_le_bytes));
            write_cells(&array, &[x, y], &[1, 2, 3, 4, 5], Dedup::Error).unwrap();
            let all = [(LEAST, GREATEST), ("0", LAST)];
            assert_eq!(values(&read(&array, &all, ReadOrder::Row)), [2, 4, 3, 5, 1]);
            assert_eq!(values(&read(&array, &all, ReadOrder::Col)), [2, 5, 3, 4, 1]);
            assert_eq!(values(&read(&array, &[(GREATEST, GREATEST), (LAST, LAST)], ReadOrder::Row)), [1]);
            for order in [ReadOrder::Row, ReadOrder::Col, ReadOrder::Global] {
                let mut scan = array.scan(None, None, order, 1, &Call::default()).unwrap();
                let mut found = Vec::new();
                while let Some(batch) = scan.next_batch().unwrap() {
                    found.extend(values(&batch));
                }
                assert_eq!(found, values(&read(&array, &all, order)));
            }
        }
    }
}

const LINE: &str = r#"{"sparse":true,"dims":[{"name":"x","dtype":"float64","domain":["-1.0","1.0"],"tile":"0.1"}],"attrs":[{"name":"v","dtype":"uint8"}]}"#;

#[test]
fn nothing_is_written_and_nothing_is_read() {
    let array = create(LINE);
    let before = array.version();
    let version = write_cells(&array, &[column::<8>(Datatype::Float64, [])], &[], Dedup::Error).unwrap();
    let deleted = array.stage_delete(&[column::<8>(Datatype::Float64, []).view()], &Call::default()).unwrap();
    assert_eq!((deleted.cells(), array.commit(vec![deleted], None).unwrap()), (0, before));
    let streamed = array.writer(None, None).unwrap().finish(&Call::default()).unwrap();
    assert_eq!((streamed.cells(), array.commit(vec![streamed], None).unwrap(), version), (0, before, before));
    for order in [ReadOrder::Row, ReadOrder::Col, ReadOrder::Global, ReadOrder::Any] {
        let cells = read(&array, &[("-1.0", "1.0")], order);
        assert_eq!((cells.count, cells.dims.len(), cells.attrs.len()), (0, 1, 1));
        assert!(array.scan(None, None, order, 1 << 20, &Call::default()).unwrap().next_batch().unwrap().is_none());
    }
    assert_eq!(array.nonempty_domain().unwrap(), None);
}

#[test]
fn negative_zero_is_zero_and_nan_is_no_coordinate() {
    let array = create(LINE);
    let x = column(Datatype::Float64, [-0.0f64, 0.5].map(f64::to_le_bytes));
    write_cells(&array, &[x], &[1, 2], Dedup::Error).unwrap();
    let cells = read(&array, &[("-0.0", "0.0")], ReadOrder::Row);
    assert_eq!((values(&cells), cells.dims[0].view().values()), (vec![1], &0f64.to_le_bytes()[..]));
    write_cells(&array, &[column(Datatype::Float64, [0f64.to_le_bytes()])], &[3], Dedup::Error).unwrap();
    assert_eq!(values(&read(&array, &[("-1.0", "1.0")], ReadOrder::Row)), [3, 2]);
    let both = column(Datatype::Float64, [0f64, -0.0].map(f64::to_le_bytes));
    let error = write_cells(&array, &[both], &[4, 5], Dedup::Error).unwrap_err();
    assert!(error.kind() == ErrorKind::Input && error.message().contains("same cell"), "{error}");
    array
        .commit(
            vec![
                array
                    .stage_delete(&[column(Datatype::Float64, [(-0f64).to_le_bytes()]).view()], &Call::default())
                    .unwrap(),
            ],
            None,
        )
        .unwrap();
    assert_eq!(values(&read(&array, &[("-1.0", "1.0")], ReadOrder::Row)), [2]);
    let nan = column(Datatype::Float64, [0.1, f64::NAN].map(f64::to_le_bytes));
    let error = write_cells(&array, &[nan], &[4, 5], Dedup::Error).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Input && error.message().contains("row 1") && error.message().contains("\"x\""),
        "{error}"
    );
    let error = array.read(Some(&sub(&[("NaN", "1.0")])), None, ReadOrder::Row, &Call::default()).unwrap_err();
    assert!(error.kind() == ErrorKind::Bounds && error.message().contains("NaN"), "{error}");
}

#[test]
fn too_much_is_a_budget_error() {
    let array = create(
        r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","1152921504606846975"],"tile":"1000"},{"name":"y","dtype":"int64","domain":["0","1152921504606846975"],"tile":"1000"}],
        "attrs":[{"name":"v","dtype":"uint8"},{"name":"s","dtype":"string"},{"name":"n","dtype":"int32","nullable":true}]}"#,
    );
    for (x, y) in [
        ("1152921504606846975", "0"),
        ("0", "1152921504606846975"),
        ("1152921504606846975", "1152921504606846975"),
        ("1099511627775", "1048575"),
    ] {
        for attr in ["v", "s", "n"] {
            for order in [ReadOrder::Row, ReadOrder::Global] {
                let attrs = [attr.to_owned()];
                let error =
                    array.read(Some(&sub(&[("0", x), ("0", y)])), Some(&attrs), order, &Call::default()).unwrap_err();
                assert!(error.kind() == ErrorKind::Budget, "{error} ({:?})", error.kind());
                assert!(error.message().contains("scan"), "{error}");
            }
        }
    }
}

/// A stream over far more cells than anybody will read starts at once or is refused, and never ends early.
#[test]
fn a_stream_over_a_huge_box_starts() {
    let array = create(
        r#"{"dims":[{"name":"x","dtype":"uint64","domain":["0","18446744073709551615"],"tile":"1000"},{"name":"y","dtype":"uint64","domain":["0","18446744073709551615"],"tile":"1000"}],
        "attrs":[{"name":"v","dtype":"uint8"}]}"#,
    );
    let (u32_max, u40_max) = ("4294967295", "1099511627775");
    let numbered = [(u32_max, "4294967294"), ("18446744073709551614", "0"), ("0", "18446744073709551614")];
    let beyond = [(u32_max, u32_max), (u40_max, u40_max), (LAST, LAST), (LAST, "0"), ("0", LAST)];
    for (hi_x, hi_y) in numbered.into_iter().chain(beyond) {
        for order in [ReadOrder::Row, ReadOrder::Col, ReadOrder::Global] {
            let ranges = sub(&[("0", hi_x), ("0", hi_y)]);
            match array.scan(Some(&ranges), None, order, 1, &Call::default()) {
                Ok(mut scan) => {
                    for _ in 0..3 {
                        let batch = scan.next_batch().unwrap();
                        assert!(batch.is_some_and(|b| b.count > 0), "{hi_x} x {hi_y} in {order:?} ends early");
                    }
                }
                Err(e) => {
                    assert!(e.kind() == ErrorKind::Bounds, "{e}");
                    assert!(!numbered.contains(&(hi_x, hi_y)), "{hi_x} x {hi_y} in {order:?}: {e}");
                }
            }
        }
    }
}

/// Cells of one place, written in several fragments and over block boundaries, are read in order of writing.
#[test]
fn duplicates_of_a_place_keep_their_order_across_blocks() {
    let array = create(
        r#"{"sparse":true,"duplicates":true,"capacity":2,"dims":[{"name":"x","dtype":"int64","domain":["0","9"]},{"name":"y","dtype":"int64","domain":["0","9"]}],"attrs":[{"name":"v","dtype":"uint8"}]}"#,
    );
    // The budget of the overlay is a quarter of 8 MiB; the last fragment passes it.
    let long = |v: i64, n: usize| column(Datatype::Int64, vec![v.to_le_bytes(); n]);
    for first in [0u8, 50, 100] {
        let some: Vec<u8> = (first..first + 5).collect();
        write_cells(&array, &[long(4, 5), long(4, 5)], &some, Dedup::Error).unwrap();
    }
    let many = 60_000;
    write_cells(&array, &[long(5, many), long(5, many)], &vec![7; many], Dedup::Error).unwrap();
    let expected: Vec<u8> = (0..5).chain(50..55).chain(100..105).collect();
    for order in [ReadOrder::Row, ReadOrder::Col, ReadOrder::Global] {
        assert_eq!(values(&read(&array, &[("4", "4"), ("4", "4")], order)), expected, "{order:?}");
    }
}
