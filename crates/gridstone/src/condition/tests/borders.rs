//! Single cases at the limits of types and bounds, and mistakes.

use super::super::{Batch, Condition, Coordinates, Facts, Verdict};
use super::world::schema;
use crate::base::{AlignedBuf, ErrorKind};
use crate::schema::{KeyRange, Order, Schema, Subarray, key};
use crate::tile::{Column, Statistics};

/// The rows of one attribute's values, of a schema with `x` in [0, 99] and `v` of `dtype`.
fn rows_of<const N: usize>(dtype: &str, values: &[[u8; N]], text: &str) -> Vec<usize> {
    let schema = small(dtype);
    let bound = Condition::parse(text).unwrap().bind(&schema).unwrap();
    let datatype = schema.attrs()[0].datatype();
    let column = Column::new(datatype, AlignedBuf::from_slice(values.as_flattened()), None, None).unwrap();
    let batch = Batch::new(values.len()).with_attr(0, column.view());
    bound.evaluate(&batch).unwrap().rows().collect()
}

fn small(dtype: &str) -> Schema {
    Schema::from_json(&format!(
        r#"{{"sparse":true,"dims":[{{"name":"x","dtype":"int64","domain":["0","99"]}},
        {{"name":"y","dtype":"float32","domain":["-1","1"]}}],"attrs":[{{"name":"v","dtype":"{dtype}"}}]}}"#
    ))
    .unwrap()
}

fn refused(text: &str, words: &[&str]) {
    let error = Condition::parse(text).and_then(|c| c.bind(&schema())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    for word in words {
        assert!(error.message().contains(word), "{text}: {error}");
    }
}

#[test]
fn literals_beyond_a_type() {
    let v = [0u8, 1, 254, 255].map(|v| v.to_le_bytes());
    let all = [0, 1, 2, 3];
    for text in ["v < 300", "v >= -1", "v > -1e300", "v != 2.5", "v < inf", "v != nan", "not v == nan", "not v < nan"] {
        assert_eq!(rows_of("uint8", &v, text), all, "{text}");
    }
    for text in ["v > 255.5", "v == 2.5", "v == 256", "v in (-1, 0.5, nan)", "v < nan", "v == nan", "v >= inf"] {
        assert_eq!(rows_of("uint8", &v, text), [0usize; 0], "{text}");
    }
    assert_eq!(rows_of("uint8", &v, "v > 253.5 and v <= 254.999"), [2]);
    let v = [i64::MIN, -1, 0, i64::MAX].map(i64::to_le_bytes);
    assert_eq!(rows_of("int64", &v, "v < 9223372036854775808"), all);
    assert_eq!(rows_of("int64", &v, "v >= 9223372036854775808.0"), [0usize; 0]);
    assert_eq!(rows_of("int64", &v, "v == -0x8000_0000_0000_0000"), [0]);
    assert_eq!(rows_of("int64", &v, "v > -170141183460469231731687303715884105728"), all);
    let v = [0, 1 << 63, u64::MAX].map(u64::to_le_bytes);
    assert_eq!(rows_of("uint64", &v, "v >= 9223372036854775808"), [1, 2]);
    assert_eq!(rows_of("uint64", &v, "v > 18446744073709551615"), [0usize; 0]);
    assert_eq!(rows_of("uint64", &v, "v == 18446744073709551616.0"), [0usize; 0]);
}

#[test]
fn floats_compare_as_ieee_and_exactly() {
    let v = [0.1f32, -0.0, 0.0, f32::NAN, f32::INFINITY, -1e-45].map(f32::to_le_bytes);
    assert_eq!(rows_of("float32", &v, "v == 0.1"), [0usize; 0]);
    assert_eq!(rows_of("float32", &v, "v == 0.1f32"), [0]);
    assert_eq!(rows_of("float32", &v, "v > 0.1"), [0, 4]);
    assert_eq!(rows_of("float32", &v, "v == 0"), [1, 2]);
    assert_eq!(rows_of("float32", &v, "v < 0.0"), [5]);
    assert_eq!(rows_of("float32", &v, "v > -0.0"), [0, 4]);
    assert_eq!(rows_of("float32", &v, "v != 0"), [0, 3, 4, 5]);
    assert_eq!(rows_of("float32", &v, "v is nan"), [3]);
    assert_eq!(rows_of("float32", &v, "v is not nan"), [0, 1, 2, 4, 5]);
    assert_eq!(rows_of("float32", &v, "not v > 0"), [1, 2, 3, 5]);
    assert_eq!(rows_of("float32", &v, "v > 1e39"), [4]);
    assert_eq!(rows_of("float32", &v, "v < 1e-300 and v > -1e-300"), [1, 2]);
}

#[test]
fn times_of_every_unit() {
    // 2024-05-01 is day 19,844.
    let v = [0, 19_843, 19_844, i64::MIN, i64::MAX].map(i64::to_le_bytes);
    assert_eq!(rows_of("datetime64[D]", &v, "v >= '2024-05-01'"), [2, 4]);
    assert_eq!(rows_of("datetime64[D]", &v, "v > '2024-04-30T00:00:00.000000001'"), [2, 4]);
    assert_eq!(rows_of("datetime64[D]", &v, "v == '2024-05-01T02:00+02:00'"), [2]);
    assert_eq!(rows_of("datetime64[D]", &v, "v == '2024-04-30T22:30-01:30'"), [2]);
    assert_eq!(rows_of("datetime64[D]", &v, "v == timestamp '2024-05'"), [2]);
    assert_eq!(rows_of("datetime64[D]", &v, "v == timestamp '1714521600 s'"), [2]);
    assert_eq!(rows_of("datetime64[D]", &v, "v < '1970-01-02' and v != 'NaT'"), [0]);
    assert_eq!(rows_of("datetime64[D]", &v, "v != date '1970-01-01'"), [1, 2, 3, 4]);
    assert_eq!(rows_of("datetime64[D]", &v, "v is nan"), [3]);
    assert_eq!(rows_of("datetime64[D]", &v, "v > timestamp '9223372036854775807 Y'"), [0usize; 0]);
    let v = [i64::MIN + 1, -1, 0, 54, i64::MAX].map(i64::to_le_bytes);
    assert_eq!(rows_of("datetime64[Y]", &v, "v > '1969-12-31T23:59:59.999999999999999999'"), [2, 3, 4]);
    assert_eq!(rows_of("datetime64[Y]", &v, "v <= '2024'"), [0, 1, 2, 3]);
    assert_eq!(rows_of("timedelta64[ms]", &v, "v >= '1 as'"), [3, 4]);
    assert_eq!(rows_of("timedelta64[ms]", &v, "v == '54000 us'"), [3]);
    assert_eq!(rows_of("timedelta64[Y]", &v, "v > '647 M'"), [3, 4]);
    refused("t > '2024-02-30'", &["\"t\" is datetime64[ns]", "2024-02-30", "write 2024-05-01"]);
    refused("w > '5 M'", &["\"w\" is timedelta64[ms]", "months"]);
    refused("w > 5", &["timedelta64[ms]", "5, which is a number", "'90 s'"]);
    refused("t == timestamp '2500-01-01T00:00:00.000000000'", &["64 bits"]);
}

#[test]
fn boxes_that_conditions_confine_to() {
    let schema = small("int8");
    let bounds = |text: &str| Condition::parse(text).unwrap().bind(&schema).unwrap().bounds(&schema);
    let found = |text: &str| bounds(text).map(|b| schema.describe(&b));
    let shown = |x: &str, y: &str| Some(format!("(x from {x}, y from {y})"));
    assert_eq!(found("x > 3.5 and v == 1"), shown("4 to 99", "-1.0 to 1.0"));
    assert_eq!(found("x in (5, 90, 300) or x == 7"), shown("5 to 90", "-1.0 to 1.0"));
    assert_eq!(found("x < 5 or v == 1"), shown("0 to 99", "-1.0 to 1.0"));
    assert_eq!(found("x < 5 or (x between 7 and 9 and y > 0)"), shown("0 to 9", "-1.0 to 1.0"));
    assert_eq!(found("y < 0.1 and y >= 0"), shown("0 to 99", "0.0 to 0.099999994"));
    assert_eq!(found("y < 0"), shown("0 to 99", "-1.0 to -1e-45"));
    assert_eq!(found("not x < 98"), shown("98 to 99", "-1.0 to 1.0"));
    for nothing in ["x > 99", "false", "x < 3 and x > 3", "x is null", "y > 1 or x < 0", "v == 300"] {
        assert_eq!(found(nothing), None, "{nothing}");
    }
}

#[test]
fn statistics_decide() {
    let schema = small("float64");
    let bytes: Vec<u8> = [1.0, -0.0, f64::NAN].iter().flat_map(|v: &f64| v.to_le_bytes()).collect();
    let datatype = schema.attrs()[0].datatype();
    let column = Column::new(datatype, AlignedBuf::from_slice(&bytes), None, None).unwrap();
    let statistics = Statistics::of(column.view());
    let verdict = |text: &str| {
        let facts = Facts::new(3).with_attr(0, &statistics);
        Condition::parse(text).unwrap().bind(&schema).unwrap().prune(&facts)
    };
    for text in ["v > 1", "v < 0", "v == nan", "v between 2 and 3", "v == 0.5 and v == 0.6"] {
        assert_eq!(verdict(text), Verdict::None, "{text}");
    }
    for text in ["v != 2", "not v > 1", "v <= 1 or v is nan", "v is not null"] {
        assert_eq!(verdict(text), Verdict::All, "{text}");
    }
    for text in ["v <= 1", "v is nan", "v != 1", "v == 0.5"] {
        assert_eq!(verdict(text), Verdict::Some, "{text}");
    }
}

#[test]
fn dense_boxes_need_no_coordinates() {
    let dims = r#"[{"name":"a","dtype":"int8","domain":["-5","5"]},{"name":"b","dtype":"uint16","domain":["0","9"]}]"#;
    let schema = Schema::from_json(&format!(r#"{{"dims":{dims},"attrs":[{{"name":"v","dtype":"int8"}}]}}"#)).unwrap();
    let range = |lo, hi| KeyRange::new(key::from_signed(lo), key::from_signed(hi));
    let sub = Subarray::new(vec![range(-2, 1), KeyRange::new(3, 5)]);
    let bound = Condition::parse("a < 0 and b != 4").unwrap().bind(&schema).unwrap();
    let rows = |order| {
        let batch = Batch::new(12).with_box(&sub, order);
        bound.evaluate(&batch).unwrap().rows().collect::<Vec<_>>()
    };
    assert_eq!(rows(Order::Row), [0, 2, 3, 5]);
    assert_eq!(rows(Order::Col), [0, 1, 8, 9]);
    let pair = Condition::parse("a == b or a == -2").unwrap().bind(&schema).unwrap();
    let batch = Batch::new(12).with_box(&sub, Order::Row);
    assert_eq!(pair.evaluate(&batch).unwrap().runs().collect::<Vec<_>>(), [(0, 3)]);
}

#[test]
fn batches_that_do_not_fit_are_refused() {
    let schema = small("int32");
    let bound = Condition::parse("v > 1 and x > 1").unwrap().bind(&schema).unwrap();
    assert_eq!((bound.columns().dims, bound.columns().attrs), (vec![0], vec![0]));
    let column = |dtype: &str, bytes: &[u8]| {
        Column::new(crate::schema::Datatype::parse(dtype).unwrap(), AlignedBuf::from_slice(bytes), None, None).unwrap()
    };
    let (good, narrow, short) = (column("int32", &[2; 8]), column("int16", &[0; 4]), column("int32", &[0; 4]));
    let keys = Coordinates::Keys(&[key::from_signed(5), key::from_signed(0)]);
    let batch = |c: &Column| bound.evaluate(&Batch::new(2).with_attr(0, c.view()).with_dim(0, keys)).map(|s| s.count());
    assert_eq!(batch(&good).unwrap(), 1);
    assert!(batch(&narrow).unwrap_err().message().contains("int16"));
    assert!(batch(&short).unwrap_err().message().contains("2 values of int32"));
    assert!(bound.evaluate(&Batch::new(2).with_attr(0, good.view())).is_err());
    let none = Condition::parse("v > 1 and x > 500").unwrap().bind(&schema).unwrap();
    assert!(none.evaluate(&Batch::new(2)).is_err());
}

#[test]
fn mistakes_are_named() {
    refused("i33 > 1", &["\"i33\"", "did you mean \"i32\"", "there are: x, y"]);
    refused("zzzzzz > 1", &["there are: x, y"]);
    refused("f > 'abc'", &["\"f\" is float32", "'abc', which is text", "a number"]);
    refused("s == 5", &["\"s\" is string", "single quotes"]);
    refused("s in ('a', 5)", &["\"s\" is string", "5, which is a number"]);
    refused("r == 'a'", &["\"r\" is bytes", "b'"]);
    refused("b == 1", &["\"b\" is bool", "true or false"]);
    refused("i8 == true", &["\"i8\" is int8", "true or false"]);
    refused("t > 5", &["\"t\" is datetime64[ns]"]);
    refused("i8", &["\"i8\" is int8", "no condition by itself"]);
    refused("s < r", &["\"s\" is string and \"r\" is bytes"]);
    refused("t == w", &["cannot be compared"]);
    refused("w == q", &["cannot be compared"]);
}

#[test]
fn halves_compare_exactly() {
    let v = [0x2e66u16, 0x2e67, 0x8000, 0x7e00, 0x7c00, 0x8001, 0x7bff].map(u16::to_le_bytes);
    assert_eq!(rows_of("float16", &v, "v == 0.1"), [0usize; 0]);
    assert_eq!(rows_of("float16", &v, "v < 0.1 and v > 0.09"), [0]);
    assert_eq!(rows_of("float16", &v, "v between 0.1 and 0.2"), [1]);
    assert_eq!(rows_of("float16", &v, "v == 0"), [2]);
    assert_eq!(rows_of("float16", &v, "v < 0"), [5]);
    assert_eq!(rows_of("float16", &v, "v > 65504"), [4]);
    assert_eq!(rows_of("float16", &v, "v >= 65503.9 and v < 70000"), [6]);
    assert_eq!(rows_of("float16", &v, "v is nan"), [3]);
    assert_eq!(rows_of("float16", &v, "v != 1e300"), [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn bytes_of_a_length_are_compared_with_literals_padded_by_zeros() {
    let v = [*b"ab\0\0", *b"abc\0", *b"\0\0\0\0", *b"b\xff\0\x01"];
    assert_eq!(rows_of("bytes[4]", &v, "v == b'ab'"), [0]);
    assert_eq!(rows_of("bytes[4]", &v, "v > b'ab'"), [1, 3]);
    assert_eq!(rows_of("bytes[4]", &v, "v <= x'6162'"), [0, 2]);
    assert_eq!(rows_of("bytes[4]", &v, "v in (b'', b'abc', b'abcde')"), [1, 2]);
    assert_eq!(rows_of("bytes[4]", &v, "v == b'ab\\0\\0\\0'"), [0usize; 0]);
    assert_eq!(rows_of("bytes[4]", &v, "v != b'b' and not v < b'b'"), [3]);
}

#[test]
fn values_without_order_are_asked_for_null_alone() {
    for dtype in ["complex64", "complex128", "uint8[3]", "list[int32]", "bool[2]", "bool[1]"] {
        let schema = Schema::from_json(&format!(
            r#"{{"sparse":true,"dims":[{{"name":"x","dtype":"int64","domain":["0","99"]}}],
            "attrs":[{{"name":"v","dtype":"{dtype}","nullable":true}},{{"name":"w","dtype":"{dtype}"}}]}}"#
        ))
        .unwrap();
        let bind = |text: &str| Condition::parse(text).unwrap().bind(&schema);
        for text in ["v == 1", "v in (1, 2)", "v between 0 and 1", "v", "v == w", "x == v", "v == true", "v != b'a'"] {
            let error = bind(text).unwrap_err();
            assert!(error.message().contains(&format!("\"v\" is {dtype}")), "{text}: {error}");
            assert!(error.message().contains("v is not null"), "{text}: {error}");
        }
        let datatype = schema.attrs()[0].datatype();
        let offsets = datatype.is_var().then(|| vec![0, 0, 0, 0]);
        let bytes = vec![0; 3 * datatype.width().unwrap_or(0)];
        let values = AlignedBuf::from_slice(&bytes);
        let column = Column::new(datatype, values, offsets, Some(vec![1, 0, 1])).unwrap();
        let batch = Batch::new(3).with_attr(0, column.view());
        assert_eq!(bind("v is not null").unwrap().evaluate(&batch).unwrap().rows().collect::<Vec<_>>(), [0, 2]);
        assert_eq!(bind("w is null").unwrap().constant(), Some(false));
        let statistics = Statistics::of(column.view());
        assert_eq!((statistics.null_count, &statistics.min, &statistics.max), (1, &None, &None));
        let all = Statistics { null_count: 3, ..statistics.clone() };
        let verdict = |of: &Statistics| bind("v is null").unwrap().prune(&Facts::new(3).with_attr(0, of));
        assert_eq!((verdict(&statistics), verdict(&all)), (Verdict::Some, Verdict::All));
    }
}

#[test]
fn long_chains_take_linear_time() {
    let text = (0..20_000).map(|i| format!("i64 == {}", i * 2)).collect::<Vec<_>>().join(" or ");
    let bound = Condition::parse(&text).unwrap().bind(&schema()).unwrap();
    let values: Vec<u8> = (0..100i64).flat_map(i64::to_le_bytes).collect();
    let datatype = crate::schema::Datatype::Int64;
    let column = Column::new(datatype, AlignedBuf::from_slice(&values), None, None).unwrap();
    let place = schema().attr("i64").unwrap().0;
    let found = bound.evaluate(&Batch::new(100).with_attr(place, column.view())).unwrap();
    assert_eq!(found.rows().collect::<Vec<_>>(), (0..100).step_by(2).collect::<Vec<_>>());
}

#[test]
fn pairs_are_pruned_by_their_ends() {
    let schema = schema();
    let verdict = |text: &str, left: (&str, &[u8]), right: (&str, &[u8])| {
        let known = [left, right].map(|(name, bytes)| {
            let (place, attr) = schema.attr(name).unwrap();
            let offsets = attr.datatype().is_var().then(|| (0..=bytes.len() as u64).collect());
            let column = Column::new(attr.datatype(), AlignedBuf::from_slice(bytes), offsets, None).unwrap();
            (place, Statistics::of(column.view()))
        });
        let facts = known.iter().fold(Facts::new(2), |facts, (place, of)| facts.with_attr(*place, of));
        Condition::parse(text).unwrap().bind(&schema).unwrap().prune(&facts)
    };
    for (left, right) in [(("i8", [1, 3]), ("u8", [3, 5])), (("s", *b"ac"), ("s2", *b"cd"))] {
        let of =
            |sign: &str| verdict(&format!("{} {sign} {}", left.0, right.0), (left.0, &left.1), (right.0, &right.1));
        assert_eq!((of("<="), of(">")), (Verdict::All, Verdict::None));
        assert_eq!(
            (of("=="), of("<"), of(">="), of("!=")),
            (Verdict::Some, Verdict::Some, Verdict::Some, Verdict::Some)
        );
    }
    let same = |text: &str| verdict(text, ("s", b"aa"), ("s2", b"aa"));
    assert_eq!((same("s == s2"), same("s < s2")), (Verdict::All, Verdict::None));
}
