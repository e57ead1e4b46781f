//! Cases: random ones against a model that goes row by row, and stops at the first condition that is true; texts, JSON
//! and mistakes.

use super::super::{Batch, Call, Comparison, Condition, Coordinates, Expression, Literal, When};
use super::computed::{
    Number, Row, batch, columns, comes_back, holds, is_float, model, numbers, order, rows, schema, selected,
};
use crate::base::AlignedBuf;
use crate::schema::{Datatype, KeyRange, Order, Schema, Subarray, key};
use crate::tile::Column;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// Whether a condition is true of a row; `None`: unknown. An error: a value that overflows.
pub(super) fn truth(condition: &Condition, row: &Row) -> Result<Option<bool>, ()> {
    let column = |name: &str| model(&Expression::Column { column: name.to_owned() }, row);
    let compared = |is: &Comparison, value: Option<Number>, literal: &Literal| {
        let against = match literal {
            Literal::Int(value) => Number::Int(*value),
            Literal::Float(value) => Number::Float(*value),
            other => panic!("{other}"),
        };
        value.map(|value| holds(*is, order(value, against)))
    };
    Ok(match condition {
        Condition::Compare { is, column: name, value } => compared(is, column(name)?, value),
        Condition::IsNull { column: name } => Some(column(name)?.is_none()),
        Condition::CompareValues { is, left, right: Expression::Literal { value } } => {
            compared(is, model(left, row)?, value)
        }
        Condition::Not { arg } => truth(arg, row)?.map(|held| !held),
        Condition::And { args } => {
            let all = args.iter().map(|arg| truth(arg, row)).collect::<Result<Vec<_>, ()>>()?;
            if all.contains(&Some(false)) { Some(false) } else { (!all.contains(&None)).then_some(true) }
        }
        Condition::Or { args } => {
            let all = args.iter().map(|arg| truth(arg, row)).collect::<Result<Vec<_>, ()>>()?;
            if all.contains(&Some(true)) { Some(true) } else { (!all.contains(&None)).then_some(false) }
        }
        other => panic!("{other}"),
    })
}

fn literal(float: bool, value: i128) -> Literal {
    if float { Literal::Float(value as f64 / 2.0) } else { Literal::Int(value) }
}

/// Conditions on columns, which never fail, and on computed values.
fn conditions() -> BoxedStrategy<Condition> {
    let signs = || select(vec!["==", "!=", "<", "<=", ">", ">="]).prop_map(|sign| Comparison::parse(sign).unwrap());
    let plain = (signs(), select(vec!["i", "n", "d"]), -4i128..5).prop_map(|(is, name, at)| Condition::Compare {
        is,
        column: name.to_owned(),
        value: literal(name == "d", at),
    });
    let plain = prop_oneof![4 => plain, 1 => Just(Condition::IsNull { column: "n".to_owned() })].boxed();
    let computed = (signs(), numbers(), -4i128..5).prop_map(|(is, left, at)| {
        let value = literal(is_float(&left), at);
        Condition::CompareValues { is, left, right: Expression::Literal { value } }
    });
    let two = || proptest::collection::vec(plain.clone(), 2..4);
    let one = prop_oneof![
        3 => plain.clone(),
        3 => computed,
        1 => two().prop_map(Condition::all),
        1 => two().prop_map(Condition::any),
    ];
    (one, any::<bool>())
        .prop_map(|(condition, negated)| if negated { Condition::negate(condition) } else { condition })
        .boxed()
}

/// Numbers of one type, and cases of them.
fn results(float: bool) -> BoxedStrategy<Expression> {
    let column = Expression::Column { column: if float { "d" } else { "n" }.to_owned() };
    let leaves = prop_oneof![
        3 => numbers().prop_filter("of the type", move |value| is_float(value) == float),
        1 => Just(column),
        1 => (-9i128..9).prop_map(move |value| Expression::Literal { value: literal(float, value) }),
    ];
    leaves
        .prop_recursive(3, 16, 3, |inner| {
            let some = option::weighted(0.8, inner.clone());
            let whens = proptest::collection::vec((conditions(), some.clone()), 1..4);
            let made = (whens, some).prop_map(|(whens, otherwise)| Expression::Case {
                whens: whens.into_iter().map(|(condition, then)| When { condition: condition.into(), then }).collect(),
                otherwise: otherwise.map(Box::new),
            });
            let has_value = |case: &Expression| Expression::from_json(&case.to_json()).is_ok();
            let made = made.prop_filter("a value", has_value);
            prop_oneof![3 => made, 1 => inner.prop_map(|arg| Expression::Negate { arg: Box::new(arg) })]
        })
        .boxed()
}

fn cases() -> impl Strategy<Value = Expression> {
    any::<bool>().prop_flat_map(results).prop_filter("a case", |value| matches!(value, Expression::Case { .. }))
}

/// The numbers of a column.
fn numbers_of(column: &Column) -> Vec<Option<Number>> {
    let each = column.view().values().as_chunks::<8>().0.iter().map(|bytes| match column.datatype() {
        Datatype::Int64 => Number::Int(i64::from_le_bytes(*bytes).into()),
        Datatype::Float64 => Number::Float(f64::from_le_bytes(*bytes)),
        other => panic!("{other}"),
    });
    each.enumerate().map(|(row, value)| column.view().is_valid(row).then_some(value)).collect()
}

fn same(a: Option<Number>, b: Option<Number>) -> bool {
    match (a, b) {
        (Some(Number::Float(a)), Some(b)) => a == b.float() || (a.is_nan() && b.float().is_nan()),
        (Some(Number::Int(a)), Some(Number::Int(b))) => a == b,
        (a, b) => a.is_none() && b.is_none(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn cases_are_those_of_the_model(rows in rows(), case in cases()) {
        prop_assert_eq!(&Expression::parse(&case.to_string()).unwrap(), &case, "{}", case);
        prop_assert_eq!(&Expression::from_json(&case.to_json()).unwrap(), &case);
        let bound = case.bind(&schema()).unwrap();
        let each: Result<Vec<_>, ()> = rows.iter().map(|row| model(&case, row)).collect();
        match (each, bound.evaluate(&batch(&columns(&rows)))) {
            (Ok(each), Ok(found)) => {
                prop_assert_eq!(found.datatype(), bound.datatype());
                prop_assert!(bound.nullable() || each.iter().all(Option::is_some));
                for (row, (wanted, found)) in each.into_iter().zip(numbers_of(&found)).enumerate() {
                    prop_assert!(same(found, wanted), "{}: {:?}, not {:?} of {:?}", case, found, wanted, rows[row]);
                }
            }
            (Err(()), Err(error)) => prop_assert!(error.message().contains("cast"), "{}", error),
            (wanted, found) => prop_assert!(false, "{}: {:?}, not {:?}", case, found, wanted),
        }
    }

    #[test]
    fn conditions_on_cases_are_those_of_the_model(rows in rows(), case in cases(), at in -4i128..5) {
        let value = literal(is_float(&case), at);
        let condition =
            Condition::CompareValues { is: Comparison::Gt, left: case, right: Expression::Literal { value } };
        comes_back(&condition);
        let each: Result<Vec<_>, ()> = rows.iter().map(|row| truth(&condition, row)).collect();
        match (each, selected(&condition, &rows)) {
            (Ok(each), Ok(found)) => {
                let wanted: Vec<usize> = (0..rows.len()).filter(|row| each[*row] == Some(true)).collect();
                prop_assert_eq!(found, wanted, "{}", condition);
            }
            (wanted, found) => prop_assert!(wanted.is_err() && found.is_err(), "{}: {:?}", condition, found),
        }
    }

    #[test]
    fn texts_are_taken_row_by_row(rows in rows(), at in -9i64..9) {
        let text = format!("case when n > {at} then s when i < 0 then upper(s) when d > 1 then null else 'élse' end");
        let bound = Expression::parse(&text).unwrap().bind(&schema()).unwrap();
        let found = bound.evaluate(&batch(&columns(&rows))).unwrap();
        for (row, (i, n, d, s)) in rows.iter().enumerate() {
            let wanted = match (n, i, d) {
                (Some(n), ..) if *n > at => s.clone(),
                (_, i, _) if *i < 0 => s.as_ref().map(|s| s.to_uppercase()),
                (.., d) if *d > 1.0 => None,
                _ => Some("élse".to_owned()),
            };
            let view = found.view();
            let text = view.is_valid(row).then(|| String::from_utf8(view.value(row).to_vec()).unwrap());
            prop_assert_eq!(text, wanted);
        }
    }
}

fn comes_from(text: &str, printed: &str) {
    let found = Expression::parse(text).unwrap();
    assert_eq!(found.to_string(), printed);
    assert_eq!(Expression::parse(printed).unwrap(), found, "{printed}");
    assert_eq!(Expression::from_json(&found.to_json()).unwrap(), found);
    super::super::fuzz(text.as_bytes()).unwrap();
}

#[test]
fn texts_of_cases() {
    comes_from("CASE WHEN a > 1 THEN b ELSE c END", "case when a > 1 then b else c end");
    comes_from("case a when 1 then 'x' when 2 then 'y' end", "case when a == 1 then 'x' when a == 2 then 'y' end");
    comes_from("case a + b when c then -1 else null end", "case when (a + b) == c then -1 end");
    comes_from("case when a and not b or c then 1 end * 2", "(case when (a and not b) or c then 1 end * 2)");
    comes_from("if(a > 1, b, null)", "case when a > 1 then b end");
    comes_from("IFF(s like 'a%', 1, 0)", "case when like(s, 'a%') then 1 else 0 end");
    comes_from("nullif(a, -1)", "case when a == -1 then null else a end");
    comes_from("ifnull(a, nvl(b, 0))", "coalesce(a, coalesce(b, 0))");
    comes_from("case lower(s) when 'a' then 1 end", "case when lower(s) == 'a' then 1 end");
    comes_from("case when a in (1, 2) then 1 end::float32", "cast(case when a in (1, 2) then 1 end as float32)");
    comes_from("case when \"end\" > 1 then \"then\" end", "case when \"end\" > 1 then \"then\" end");
    comes_from(
        "case when case when a then 1 else 2 end > b then case b when 1 then 2 end else 3 end",
        "case when case when a then 1 else 2 end > b then case when b == 1 then 2 end else 3 end",
    );
    comes_from("case -a when 1 then b end", "case when -(a) == 1 then b end");
    comes_from("case + (a - 1) * 2 when 1 then b end", "case when ((a - 1) * 2) == 1 then b end");
    comes_from("case when a then case -b when 1 then 2 end end", "case when a then case when -(b) == 1 then 2 end end");
    // The words are names elsewhere.
    comes_from("case - a", "(\"case\" - a)");
    comes_from("f(case - \"when\", when)", "f((\"case\" - \"when\"), \"when\")");
    comes_from("case", "\"case\"");
    comes_from("end - when", "(\"end\" - \"when\")");
    let plain = Condition::parse("case like 'a%' and end > 5 or case - 1 < then").unwrap();
    assert_eq!(plain.to_string(), "(like(\"case\", 'a%') and \"end\" > 5) or (\"case\" - 1) < \"then\"");
    comes_back(&plain);
    for text in [
        "case when a > 1 then b else c end > 3 and d",
        "x between case when a then 1 else 2 end and 3",
        "case when a > 1 then true else false end",
        "case a when 1 then 'x' end in ('x', 'y')",
        "not case when a then b end is null",
        "case when a then b end is nan",
    ] {
        comes_back(&Condition::parse(text).unwrap());
    }
    let call = Call::parse("count(distinct case when a > 1 then b end)").unwrap();
    assert!(call.distinct && matches!(call.args[0], Expression::Case { .. }));
}

#[test]
fn json_of_cases_is_stable() {
    let json = concat!(
        r#"{"op":"case","whens":[{"if":{"op":"compare","is":">","column":"a","value":{"int":"1"}},"#,
        r#""then":{"op":"column","column":"b"}},{"if":{"op":"is_null","column":"c"}}],"#,
        r#""else":{"op":"literal","value":{"int":"0"}}}"#
    );
    let case = Expression::parse("case when a > 1 then b when c is null then null else 0 end").unwrap();
    assert_eq!(case.to_json(), json);
    assert_eq!(Expression::from_json(json).unwrap(), case);
    for bad in [
        r#"{"op":"case","whens":[]}"#,
        r#"{"op":"case","whens":[],"else":{"op":"column","column":"b"}}"#,
        r#"{"op":"case","whens":[{"if":{"op":"true"}}]}"#,
        r#"{"op":"case","whens":[{"if":{"op":"and","args":[]},"then":{"op":"column","column":"b"}}]}"#,
        r#"{"op":"case","whens":[{"if":{"op":"true"},"then":{"op":"column","column":"b"},"also":1}]}"#,
        r#"{"op":"function","name":"if","args":[]}"#,
        r#"{"op":"function","name":"end","args":[]}"#,
    ] {
        assert!(Expression::from_json(bad).is_err(), "{bad}");
    }
}

#[test]
fn mistakes_in_cases_are_named() {
    let refused = |text: &str, message: &str, caret: usize| {
        let error = Expression::parse(text).unwrap_err();
        let lines: Vec<&str> = error.message().lines().collect();
        assert!(lines[0].contains(message), "{text}: {error}");
        assert_eq!(lines[2].chars().count(), caret + 3, "{error}");
    };
    refused("case when a > 1 then b", "expected \"when\", \"else\" or \"end\" in a case, found the end", 22);
    refused("case when a > 1 then b else c", "expected \"end\"", 29);
    refused("case when a > 1 then b c end", "found the name c", 23);
    refused("case when a > 1 else b end", "expected \"then\"", 16);
    refused("case when a > 1, b end", "expected \"then\"", 15);
    refused("case a then b end", "expected \"when\"", 7);
    refused("case end", "expected \"when\"", 5);
    refused("case when then b end", "expected a condition, found \"then\"", 10);
    refused("case when a then end", "expected a value, found \"end\"", 17);
    refused("case when a > 1 then b end end", "expected the end, found \"end\"", 27);
    refused("case a when null then b end", "nothing equals null", 12);
    refused("case 1 when 2 then b end", "two values are compared", 12);
    refused("case when a then b > 1 end", "found \">\"", 19);
    refused("if(a > 1, b)", "expected \",\"", 11);
    refused("nullif(a)", "expected \",\"", 8);
    let nulls = Expression::parse("case when a then null end").unwrap_err();
    assert!(nulls.message().contains("not null"), "{nulls}");
}

#[test]
fn depth_and_size_of_cases_have_limits() {
    let nested = |depth: usize| format!("{}a{}", "case when b then ".repeat(depth), " end".repeat(depth));
    let most = Expression::parse(&nested(24)).unwrap();
    assert_eq!(Expression::from_json(&most.to_json()).unwrap(), most);
    let conditions = |depth: usize| format!("{}a{}", "case when ".repeat(depth), " > 1 then 2 end".repeat(depth));
    let most = Condition::parse(&format!("{} > 1", conditions(16))).unwrap();
    comes_back(&most);
    for deep in [nested(25), nested(10_000), conditions(17), conditions(5_000), "case when ".repeat(10_000)] {
        assert!(Condition::parse(&format!("{deep} > 1")).is_err());
        super::super::fuzz(deep.as_bytes()).unwrap();
    }
    // Each form copies its value; copies of copies would grow exponentially.
    let squared =
        (0..12).fold("a".to_owned(), |text, _| format!("case {text} when 1 then 1 {}end", "when 2 then 2 ".repeat(9)));
    assert!(Expression::parse(&squared).unwrap_err().message().contains("too large"));
    let doubled = (0..16).fold("a".to_owned(), |text, _| format!("case when {text} is nan then 1 end"));
    assert!(Expression::parse(&doubled).is_ok_and(|made| made.parts() > 1 << 16));
    let long = format!("case a {} end", (0..1_500).map(|k| format!("when {k} then {k}")).collect::<Vec<_>>().join(" "));
    comes_from(&long, &Expression::parse(&long).unwrap().to_string());
}

#[test]
fn what_no_row_takes_cannot_fail() {
    let row = |i: i8, n: i64| (i, Some(n), 0.0, None);
    let rows = [row(1, i64::MAX), row(-1, 5), row(0, i64::MIN)];
    let found = |text: &str| {
        let bound = Expression::parse(text).unwrap().bind(&schema()).unwrap();
        bound.evaluate(&batch(&columns(&rows))).map(|column| numbers_of(&column))
    };
    let ints = |text: &str| -> Vec<Option<i128>> {
        let each = found(text).unwrap().into_iter();
        each.map(|value| value.map(|v| if let Number::Int(v) = v { v } else { panic!("{text}") })).collect()
    };
    assert!(found("n * 2").is_err());
    assert_eq!(ints("case when i < 0 then n * 2 else 0 end"), [Some(0), Some(10), Some(0)]);
    assert_eq!(ints("case when i >= 0 then 7 when n * 2 == 10 then 8 end"), [Some(7), Some(8), Some(7)]);
    assert!(found("case when n * 2 == 10 then 8 when i >= 0 then 7 end").is_err());
    assert_eq!(ints("case when i == -1 then cast(n as int8) + 1 end"), [None, Some(6), None]);
    assert_eq!(ints("coalesce(nullif(n, 5), n * n)"), [Some(i64::MAX.into()), Some(25), Some(i64::MIN.into())]);
    assert_eq!(ints("case when n // i > 0 then n // i else -1 end")[2], Some(-1));
}

#[test]
fn results_have_one_type() {
    let bind = |text: &str| Expression::parse(text).unwrap().bind(&schema());
    let typed = |text: &str| bind(text).map(|bound| (bound.datatype().to_string(), bound.nullable())).unwrap();
    let is = |name: &str, nullable: bool| (name.to_owned(), nullable);
    assert_eq!(typed("case when b then 1 else 0 end"), is("int64", false));
    assert_eq!(typed("case when b then 1 else 0.5 end"), is("float64", false));
    assert_eq!(typed("case when b then 0 else i end"), is("int8", false));
    assert_eq!(typed("case when b then 0 else d end"), is("float64", false));
    assert_eq!(typed("case when b then 0 else u end"), is("uint64", false));
    assert_eq!(typed("case when b then 0 else n end"), is("int64", true));
    assert_eq!(typed("case when b then true else false end"), is("bool", false));
    assert_eq!(typed("case when b then true else b end"), is("bool", false));
    assert_eq!(typed("case when b then t end"), is("datetime64[s]", true));
    assert_eq!(typed("case when b then k else 'none' end"), is("string", false));
    assert_eq!(typed("coalesce(0, e)"), is("float64", false));
    for text in [
        "case when b then i else n end",
        "case when b then 1000 else i end",
        "case when b then -1 else u end",
        "case when b then 0.5 else n end",
        "case when b then s else 1 end",
        "case when b then t else 1 end",
        "coalesce(i, 128)",
    ] {
        assert!(bind(text).unwrap_err().message().contains("cannot be computed"), "{text}");
    }
    assert!(bind("case when i then 1 end").unwrap_err().message().contains("no condition by itself"));
    assert!(bind("case when nothing > 1 then 1 end").unwrap_err().message().contains("nothing"));
}

#[test]
fn coordinates_of_rows_that_take_a_value() {
    let dims = r#"[{"name":"a","dtype":"int8","domain":["-5","5"]},{"name":"b","dtype":"uint16","domain":["0","9"]}]"#;
    let schema = Schema::from_json(&format!(r#"{{"dims":{dims},"attrs":[{{"name":"v","dtype":"int8"}}]}}"#)).unwrap();
    let range = |lo, hi| KeyRange::new(key::from_signed(lo), key::from_signed(hi));
    let sub = Subarray::new(vec![range(-2, 1), KeyRange::new(3, 5)]);
    let text = "case when a + b > 3 then a * 100 + b when a == -2 then b + 0 else -(a) end";
    let bound = Expression::parse(text).unwrap().bind(&schema).unwrap();
    let found = bound.evaluate(&Batch::new(12).with_box(&sub, Order::Row)).unwrap();
    let cells = (-2i128..=1).flat_map(|a| (3i128..=5).map(move |b| (a, b)));
    let wanted = cells.map(|(a, b)| {
        if a + b > 3 {
            a * 100 + b
        } else if a == -2 {
            b
        } else {
            -a
        }
    });
    for (found, wanted) in numbers_of(&found).into_iter().zip(wanted) {
        assert!(same(found, Some(Number::Int(wanted))), "{found:?} {wanted}");
    }
    let texts = r#"{"sparse":true,"dims":[{"name":"n","dtype":"string","max_bytes":16}],"attrs":[{"name":"v","dtype":"int8"}]}"#;
    let schema = Schema::from_json(texts).unwrap();
    let bound = Expression::parse("case when length(n) > 1 then upper(n) else n end").unwrap().bind(&schema).unwrap();
    let names = Column::new(Datatype::String, AlignedBuf::from_slice(b"abcd"), Some(vec![0, 1, 3, 4]), None).unwrap();
    let keys = crate::tile::coordinates::axis_keys(&schema, std::slice::from_ref(&names)).unwrap();
    let by_keys = (0..).zip(&keys).fold(Batch::new(3), |b, (axis, keys)| b.with_dim(axis, Coordinates::Keys(keys)));
    for batch in [by_keys, Batch::new(3).with_dim(0, Coordinates::Column(names.view()))] {
        let found = bound.evaluate(&batch).unwrap();
        assert_eq!(found.view().values(), b"aBCd");
        assert_eq!(found.view().offsets(), Some(&[0, 1, 3, 4][..]));
    }
}
