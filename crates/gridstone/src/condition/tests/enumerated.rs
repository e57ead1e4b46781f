//! Conditions on enumerated attributes: accepted codes, pruning by statistics of codes, refusals.

use super::super::{Batch, Condition, Facts, Verdict};
use crate::base::{AlignedBuf, ErrorKind};
use crate::schema::Schema;
use crate::tile::{Column, Statistics};

fn schema(ordered: bool) -> Schema {
    let categories = r#""categories":["low","mid","high","absent"],"codes":"uint8""#;
    Schema::from_json(&format!(
        r#"{{"sparse":true,"dims":[{{"name":"x","dtype":"int64","domain":["0","99"]}}],"attrs":[
        {{"name":"v","dtype":"string",{categories},"ordered":{ordered},"nullable":true}},
        {{"name":"w","dtype":"string",{categories},"ordered":{ordered}}},
        {{"name":"n","dtype":"float64","categories":["-1.5","1e300","2.0"],"codes":"uint16"}},
        {{"name":"flag","dtype":"bool","categories":["true","false"]}},
        {{"name":"plain","dtype":"string"}},{{"name":"number","dtype":"uint8"}}]}}"#
    ))
    .unwrap()
}

/// The rows that a condition selects. `v` has the codes 0 to 3 and a null; `w` has these codes in reverse; `n` has 0,
/// 1, 2, 0, 1; `flag` alternates.
fn rows(text: &str, ordered: bool) -> Vec<usize> {
    let schema = schema(ordered);
    let bound = Condition::parse(text).unwrap().bind(&schema).unwrap_or_else(|e| panic!("{text}: {e}"));
    let column = |place: usize, bytes: &[u8], validity: Option<Vec<u8>>| {
        Column::new(schema.attrs()[place].datatype(), AlignedBuf::from_slice(bytes), None, validity).unwrap()
    };
    let v = column(0, &[0, 1, 2, 3, 250], Some(vec![1, 1, 1, 1, 0]));
    let w = column(1, &[3, 2, 1, 0, 0], None);
    let n = column(2, &[0, 0, 1, 0, 2, 0, 0, 0, 1, 0], None);
    let flag = column(3, &[0, 1, 0, 1, 0], None);
    let batch = Batch::new(5).with_attr(0, v.view()).with_attr(1, w.view());
    let batch = batch.with_attr(2, n.view()).with_attr(3, flag.view());
    bound.evaluate(&batch).unwrap().rows().collect()
}

#[test]
fn categories_are_compared_as_values_or_by_their_places() {
    for ordered in [false, true] {
        assert_eq!(rows("v == 'mid'", ordered), [1]);
        assert_eq!(rows("v != 'mid'", ordered), [0, 2, 3]);
        assert_eq!(rows("v in ('high', 'low', 'nothing')", ordered), [0, 2]);
        assert_eq!(rows("not v in ('high', 'low', 'nothing')", ordered), [1, 3]);
        assert_eq!(rows("v == 'nothing'", ordered), [0usize; 0]);
        assert_eq!(rows("v != 'nothing'", ordered), [0, 1, 2, 3]);
        assert_eq!(rows("v is null", ordered), [4]);
        assert_eq!(rows("v is not null and v == 'low'", ordered), [0]);
        assert_eq!(rows("v == w", ordered), [0usize; 0]);
        assert_eq!(rows("v != w", ordered), [0, 1, 2, 3]);
        assert_eq!(rows("flag", ordered), [0, 2, 4]);
        assert_eq!(rows("not flag", ordered), [1, 3]);
        assert_eq!(rows("n > 0", ordered), [1, 2, 4]);
        assert_eq!(rows("n <= 2", ordered), [0, 2, 3]);
        assert_eq!(rows("n between -2 and 2", ordered), [0, 2, 3]);
        assert_eq!(rows("n == nan", ordered), [0usize; 0]);
    }
    assert_eq!(rows("v < 'low'", false), [2, 3]);
    assert_eq!(rows("v < 'low'", true), [0usize; 0]);
    assert_eq!(rows("v >= 'mid'", false), [1]);
    assert_eq!(rows("v >= 'mid'", true), [1, 2, 3]);
    assert_eq!(rows("v between 'low' and 'mid'", false), [0, 1]);
    assert_eq!(rows("v between 'mid' and 'high'", true), [1, 2]);
    assert_eq!(rows("not v > 'mid'", true), [0, 1]);
    assert_eq!(rows("v < w", true), [0, 1]);
}

#[test]
fn what_holds_of_every_category_needs_no_look() {
    let constant = |text: &str| Condition::parse(text).unwrap().bind(&schema(false)).unwrap().constant();
    assert_eq!(constant("w in ('low', 'mid', 'high', 'absent')"), Some(true));
    assert_eq!(constant("w == 'nothing'"), Some(false));
    assert_eq!(constant("w == 'low'"), None);
    assert_eq!(constant("w is null"), Some(false));
}

#[test]
fn statistics_of_codes_prune() {
    let of = |text: &str, codes: &[u8]| {
        let schema = schema(false);
        let column = Column::new(schema.attrs()[1].datatype(), AlignedBuf::from_slice(codes), None, None).unwrap();
        let statistics = Statistics::of(column.view());
        let facts = Facts::new(codes.len() as u64).with_attr(1, &statistics);
        Condition::parse(text).unwrap().bind(&schema).unwrap().prune(&facts)
    };
    assert_eq!(of("w == 'mid'", &[0, 0]), Verdict::None);
    assert_eq!(of("w == 'low'", &[0, 0]), Verdict::All);
    assert_eq!(of("w in ('high', 'absent')", &[2, 3, 2]), Verdict::All);
    assert_eq!(of("w in ('low', 'absent')", &[1, 2]), Verdict::None);
    assert_eq!(of("w in ('low', 'absent')", &[0, 3]), Verdict::Some);
    assert_eq!(of("w != 'nothing'", &[0, 3]), Verdict::All);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    for (text, ordered, words) in [
        ("v == 3", false, &["\"v\" is string", "text in single quotes"][..]),
        ("v", false, &["no condition by itself"]),
        ("v < 'nothing'", true, &["'nothing' is none of them", "low < mid < high < absent"]),
        ("v between 'low' and 'nothing'", true, &["none of them"]),
        ("v < w", false, &["cannot be compared with each other", "ordered"]),
        ("v == plain", true, &["cannot be compared"]),
        ("plain == v", true, &["cannot be compared"]),
        ("v == number", false, &["cannot be compared"]),
        ("v == n", false, &["cannot be compared"]),
    ] {
        let error = Condition::parse(text).unwrap().bind(&schema(ordered)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(words.iter().all(|word| error.message().contains(word)), "{text}: {error}");
    }
}
