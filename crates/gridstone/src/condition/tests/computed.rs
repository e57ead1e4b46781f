//! Conditions on computed values: random ones against a model that goes value by value in 128 bits; patterns against a
//! matcher of their own; texts, JSON and refusals.

use super::super::{Batch, Call, Comparison, Condition, Expression, Facts, Literal, Verdict};
use crate::base::AlignedBuf;
use crate::schema::Schema;
use crate::tile::Column;
use proptest::prelude::*;
use proptest::sample::select;
use std::cmp::Ordering;

pub(super) fn schema() -> Schema {
    Schema::from_json(
        r#"{"sparse":true,"dims":[{"name":"x","dtype":"int64","domain":["0","99"]}],"attrs":[
        {"name":"i","dtype":"int8"},{"name":"n","dtype":"int64","nullable":true},{"name":"d","dtype":"float64"},
        {"name":"s","dtype":"string","nullable":true},{"name":"t","dtype":"datetime64[s]"},
        {"name":"k","dtype":"string","categories":["Low","high"],"codes":"uint8"},
        {"name":"e","dtype":"float64","nullable":true},{"name":"u","dtype":"uint64"},{"name":"b","dtype":"bool"},
        {"name":"t2","dtype":"datetime64[s]"},{"name":"r","dtype":"bytes"}]}"#,
    )
    .unwrap()
}

/// A row of the columns `i`, `n`, `d`, `s`.
pub(super) type Row = (i8, Option<i64>, f64, Option<String>);

fn texts(rows: &[Row]) -> Column {
    let (mut bytes, mut offsets) = (Vec::new(), vec![0u64]);
    for row in rows {
        bytes.extend_from_slice(row.3.as_deref().unwrap_or("").as_bytes());
        offsets.push(bytes.len() as u64);
    }
    let valid = rows.iter().map(|row| u8::from(row.3.is_some())).collect();
    Column::new(schema().attrs()[3].datatype(), AlignedBuf::from_slice(&bytes), Some(offsets), Some(valid)).unwrap()
}

/// The columns `i`, `n`, `d`, `s` of rows.
pub(super) fn columns(rows: &[Row]) -> [Column; 4] {
    let schema = schema();
    let fixed = |place: usize, bytes: Vec<u8>, valid: Option<Vec<u8>>| {
        Column::new(schema.attrs()[place].datatype(), AlignedBuf::from_slice(&bytes), None, valid).unwrap()
    };
    let i = fixed(0, rows.iter().map(|row| row.0 as u8).collect(), None);
    let valid = rows.iter().map(|row| u8::from(row.1.is_some())).collect();
    let n = fixed(1, rows.iter().flat_map(|row| row.1.unwrap_or(i64::MIN).to_le_bytes()).collect(), Some(valid));
    let d = fixed(2, rows.iter().flat_map(|row| row.2.to_le_bytes()).collect(), None);
    [i, n, d, texts(rows)]
}

/// The batch of columns, which are the first attributes.
pub(super) fn batch(columns: &[Column]) -> Batch<'_> {
    let empty = Batch::new(columns[0].len());
    (0..).zip(columns).fold(empty, |batch, (place, column)| batch.with_attr(place, column.view()))
}

/// The rows that a condition selects, or the message of the error.
pub(super) fn selected(condition: &Condition, rows: &[Row]) -> Result<Vec<usize>, String> {
    let bound = condition.bind(&schema()).map_err(|e| e.to_string())?;
    assert_eq!(bound.prune(&Facts::new(0)), Verdict::None);
    let found = bound.evaluate(&batch(&columns(rows))).map_err(|e| e.to_string())?;
    Ok(found.rows().collect())
}

/// A value of the model.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    pub(super) fn float(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

pub(super) fn is_float(value: &Expression) -> bool {
    match value {
        Expression::Column { column } => column == "d",
        Expression::Literal { value } => matches!(value, Literal::Float(_)),
        Expression::Negate { arg } => is_float(arg),
        Expression::Binary { operator, left, right } => operator.symbol() == "/" || is_float(left) || is_float(right),
        Expression::Function { name, args } => name == "sqrt" || args.iter().any(is_float),
        Expression::Cast { to, .. } => to == "float64",
        Expression::Case { whens, otherwise } => {
            whens.iter().filter_map(|when| when.then.as_ref()).chain(otherwise.as_deref()).any(is_float)
        }
    }
}

/// The value of a row: null is `None`, an overflow an error.
pub(super) fn model(value: &Expression, row: &Row) -> Result<Option<Number>, ()> {
    let whole = |value: i128| i64::try_from(value).map(|v| Some(Number::Int(v.into()))).map_err(|_| ());
    Ok(match value {
        Expression::Column { column } => match column.as_str() {
            "i" => Some(Number::Int(row.0.into())),
            "n" => row.1.map(|value| Number::Int(value.into())),
            _ => Some(Number::Float(row.2)),
        },
        Expression::Literal { value: Literal::Int(value) } => Some(Number::Int(*value)),
        Expression::Literal { value: Literal::Float(value) } => Some(Number::Float(*value)),
        Expression::Negate { arg } => match model(arg, row)? {
            Some(Number::Int(value)) => return whole(-value),
            other => other.map(|value| Number::Float(-value.float())),
        },
        Expression::Cast { arg, .. } => model(arg, row)?.map(|value| Number::Float(value.float())),
        Expression::Function { name, args } if name == "coalesce" => match model(&args[0], row)? {
            None => model(&args[1], row)?,
            found => found,
        },
        Expression::Function { name, args } => match (name.as_str(), model(&args[0], row)?) {
            (_, None) => None,
            ("sqrt", Some(value)) => Some(Number::Float(value.float().sqrt())),
            ("abs", Some(Number::Int(value))) => return whole(value.abs()),
            ("floor", Some(Number::Int(value))) => Some(Number::Int(value)),
            ("abs", Some(value)) => Some(Number::Float(value.float().abs())),
            (_, Some(value)) => Some(Number::Float(value.float().floor())),
        },
        Expression::Binary { operator, left, right } => {
            let (Some(a), Some(b)) = (model(left, row)?, model(right, row)?) else { return Ok(None) };
            if is_float(value) {
                let (a, b) = (a.float(), b.float());
                return Ok(Some(Number::Float(match operator.symbol() {
                    "+" => a + b,
                    "-" => a - b,
                    "*" => a * b,
                    _ => a / b,
                })));
            }
            let (Number::Int(a), Number::Int(b)) = (a, b) else { unreachable!() };
            match operator.symbol() {
                "+" => return whole(a + b),
                "-" => return whole(a - b),
                "*" => return whole(a * b),
                _ if b == 0 => None,
                "//" => return whole(a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0)),
                _ => Some(Number::Int((a % b + b) % b)),
            }
        }
        Expression::Case { whens, otherwise } => {
            for when in whens {
                if super::case::truth(&when.condition, row)? == Some(true) {
                    return when.then.as_ref().map_or(Ok(None), |value| model(value, row));
                }
            }
            return otherwise.as_ref().map_or(Ok(None), |value| model(value, row));
        }
        Expression::Literal { .. } => unreachable!(),
    })
}

/// Numbers; `//` and `%` of integers only.
pub(super) fn numbers() -> BoxedStrategy<Expression> {
    let column = |name: &str| Expression::Column { column: name.to_owned() };
    let literal = |value| Expression::Literal { value };
    let leaves = prop_oneof![
        4 => select(vec![column("i"), column("n"), column("d")]),
        1 => select(vec![-3i128, 0, 1, 7, i128::from(i64::MAX)]).prop_map(move |v| literal(Literal::Int(v))),
        1 => select(vec![-0.5f64, 2.0, 1e300]).prop_map(move |v| literal(Literal::Float(v))),
    ];
    leaves
        .prop_recursive(4, 24, 2, |inner| {
            let signs = select(vec!["+", "-", "*", "/", "//", "%"]);
            prop_oneof![
                4 => (signs, inner.clone(), inner.clone()).prop_map(|(sign, left, right)| {
                    let whole = matches!(sign, "//" | "%") && !is_float(&left) && !is_float(&right);
                    let sign = if whole || !matches!(sign, "//" | "%") { sign } else { "-" };
                    let Expression::Binary { operator, .. } = Expression::parse(&format!("a {sign} b")).unwrap() else {
                        unreachable!()
                    };
                    Expression::Binary { operator, left: Box::new(left), right: Box::new(right) }
                }),
                1 => inner.clone().prop_map(|arg| Expression::Negate { arg: Box::new(arg) }),
                1 => (select(vec!["abs", "floor", "sqrt"]), inner.clone())
                    .prop_map(|(name, arg)| Expression::Function { name: name.to_owned(), args: vec![arg] }),
                1 => inner.prop_map(|arg| Expression::Cast { arg: Box::new(arg), to: "float64".to_owned() }),
            ]
        })
        .prop_filter("computed", |value| !matches!(value, Expression::Column { .. } | Expression::Literal { .. }))
        .boxed()
}

pub(super) fn rows() -> impl Strategy<Value = Vec<Row>> {
    let i = prop_oneof![any::<i8>(), select(vec![i8::MIN, -1, 0, 1, i8::MAX])];
    let n = prop_oneof![
        2 => (-9i64..9).prop_map(Some),
        2 => Just(None),
        1 => select(vec![i64::MIN, i64::MAX]).prop_map(Some)
    ];
    let d = prop_oneof![
        2 => (-9i32..9).prop_map(|v| f64::from(v) / 4.0),
        1 => select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, f64::MAX, f64::MIN_POSITIVE])
    ];
    let s = prop_oneof![1 => Just(None), 4 => "[aAbÄß日\\n_%]{0,5}".prop_map(Some)];
    proptest::collection::vec((i, n, d, s), 0..70)
}

pub(super) fn order(a: Number, b: Number) -> Option<Ordering> {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
        (a, b) => a.float().partial_cmp(&b.float()),
    }
}

pub(super) fn holds(is: Comparison, order: Option<Ordering>) -> bool {
    match is {
        Comparison::Eq => order == Some(Ordering::Equal),
        Comparison::Ne => order != Some(Ordering::Equal),
        Comparison::Lt => order == Some(Ordering::Less),
        Comparison::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Comparison::Gt => order == Some(Ordering::Greater),
        Comparison::Ge => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

/// Whether a pattern of `like` without escapes matches, tried letter by letter.
fn like(text: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|skipped| like(&text[skipped..], rest)),
        ['_', rest @ ..] => !text.is_empty() && like(&text[1..], rest),
        [letter, rest @ ..] => text.first() == Some(letter) && like(&text[1..], rest),
    }
}

pub(super) fn comes_back(condition: &Condition) {
    let (text, json) = (condition.to_string(), condition.to_json());
    assert_eq!(&Condition::parse(&text).unwrap_or_else(|e| panic!("{text}: {e}")), condition, "{text}");
    assert_eq!(&Condition::from_json(&json).unwrap(), condition, "{json}");
    super::super::fuzz(text.as_bytes()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn computed_values_are_those_of_the_model(
        rows in rows(), value in numbers(), is in select(vec!["==", "!=", "<", "<=", ">", ">="]), at in -4i128..5,
        negated in any::<bool>()
    ) {
        let is = Comparison::parse(is).unwrap();
        let float = is_float(&value);
        let literal = if float { Literal::Float(at as f64 / 2.0) } else { Literal::Int(at) };
        let against = if float { Number::Float(at as f64 / 2.0) } else { Number::Int(at) };
        let right = Expression::Literal { value: literal };
        let plain = Condition::CompareValues { is, left: value.clone(), right };
        let condition = if negated { Condition::negate(plain) } else { plain };
        comes_back(&condition);
        let each: Result<Vec<_>, ()> = rows.iter().map(|row| model(&value, row)).collect();
        match (each, selected(&condition, &rows)) {
            (Ok(each), Ok(found)) => {
                let chosen = |value: &Option<Number>| value.is_some_and(|v| holds(is, order(v, against)) != negated);
                let wanted: Vec<usize> = (0..rows.len()).filter(|row| chosen(&each[*row])).collect();
                prop_assert_eq!(found, wanted, "{}", condition);
            }
            (Err(()), Err(message)) => prop_assert!(message.contains("cast"), "{}", message),
            (wanted, found) => prop_assert!(false, "{}: {:?}, not {:?}", condition, found, wanted),
        }
    }

    #[test]
    fn two_computed_values_are_compared(rows in rows(), left in numbers(), right in numbers()) {
        let condition = Condition::CompareValues { is: Comparison::Lt, left: left.clone(), right: right.clone() };
        comes_back(&condition);
        let pairs: Result<Vec<_>, ()> = rows.iter().map(|row| Ok((model(&left, row)?, model(&right, row)?))).collect();
        let (Ok(pairs), Ok(found)) = (pairs, selected(&condition, &rows)) else { return Ok(()) };
        for (row, pair) in pairs.iter().enumerate() {
            // Integers and floats are compared exactly by the engine, not by this model.
            let (Some(a), Some(b)) = *pair else { prop_assert!(!found.contains(&row)); continue };
            if is_float(&left) == is_float(&right) {
                prop_assert_eq!(found.contains(&row), order(a, b) == Some(Ordering::Less), "{}", condition);
            }
        }
    }

    #[test]
    fn patterns_match_as_letter_by_letter(rows in rows(), pattern in "[aAbÄß日%_\\n]{0,5}", negated in any::<bool>()) {
        let sign = if negated { "not like" } else { "like" };
        let condition = Condition::parse(&format!("s {sign} '{pattern}'")).unwrap();
        comes_back(&condition);
        let pattern: Vec<char> = pattern.chars().collect();
        let letters = |text: &String| text.chars().collect::<Vec<char>>();
        let holds = |row: &Row| row.3.as_ref().is_some_and(|text| like(&letters(text), &pattern) != negated);
        let wanted: Vec<usize> = (0..rows.len()).filter(|row| holds(&rows[*row])).collect();
        prop_assert_eq!(selected(&condition, &rows).unwrap(), wanted);
    }
}

#[test]
fn texts_of_computed_conditions() {
    let same = |a: &str, b: &str| {
        let condition = Condition::parse(a).unwrap();
        assert_eq!(condition, Condition::parse(b).unwrap(), "{a} | {b}");
        comes_back(&condition);
    };
    same("d * 1.852 > 10 and lower(s) like 'a%'", "(((d) * 1.852)) > 10 AND LIKE(LOWER(s), 'a%')");
    same("(a + b) * 2 > 3", "((a + b) * 2) > 3");
    same("((a + b)) > 3 or (c)", "a + b > 3 or c");
    same("a + b between 1 and c", "a + b >= 1 and a + b <= c");
    same("a between b and 3", "a >= b and a <= 3");
    same("a + 1 not in (1, -2)", "not (a + 1 in (1, -2))");
    same("abs(a) is not null", "(abs(a)) is not null");
    same("a / b is nan", "a / b != a / b");
    same("a::float64 - -5 > -b", "cast(a as float64) - (-5) > -(b)");
    same("1 < a % 5 <= 3", "1 < a % 5 and a % 5 <= 3");
    same("contains(s, 'x') and not starts_with(s, 'y')", "contains(s,'x') & ~starts_with(s,'y')");
    same("like like 'like'", "like(like, 'like')");
    same("t - timestamp '2024-01-01T00:00:00' > '5 s'", "(t - timestamp '2024-01-01T00:00:00') > '5 s'");
    assert!(matches!(Condition::parse("a > -5").unwrap(), Condition::Compare { .. }));
    assert!(matches!(Condition::parse("(a) < ((b))").unwrap(), Condition::CompareColumns { .. }));
}

#[test]
fn expressions_and_calls_come_back() {
    for text in ["(a + 1)", "cast(x as float32)", "\"my col\"", "lower(s)", "-(x)", "coalesce(a, b, 0)", "x'00ff'"] {
        let found = Expression::parse(text).unwrap();
        assert_eq!(found.to_string(), text);
        assert_eq!(Expression::from_json(&found.to_json()).unwrap(), found);
    }
    assert_eq!(Call::parse("MEAN(sog * 1.852)").unwrap().name, "mean");
    for bad in [
        r#"{"op":"function","name":"a b","args":[]}"#,
        r#"{"op":"function","name":"cast","args":[]}"#,
        r#"{"op":"cast","arg":{"op":"column","column":"a"},"to":"float"}"#,
        r#"{"op":"cast","arg":{"op":"column","column":"a"},"to":"string"}"#,
    ] {
        assert!(Expression::from_json(bad).is_err(), "{bad}");
    }
    let plain = r#"{"op":"holds","value":{"op":"column","column":"a"}}"#;
    assert!(Condition::from_json(plain).unwrap_err().message().contains("computed"));
}

#[test]
fn depth_of_values_has_limits() {
    for deep in [
        vec!["a"; 10_000].join(" + "),
        vec!["a"; 10_000].join(" * "),
        format!("{}a", "-".repeat(10_000)),
        format!("{}a", "abs(".repeat(10_000)),
        format!("a{}", "::float64".repeat(5_000)),
    ] {
        assert!(Expression::parse(&deep).unwrap_err().message().contains("levels"), "{}", &deep[..20]);
        assert!(Condition::parse(&format!("{deep} > 1")).unwrap_err().message().contains("levels"));
    }
    let most = format!("{}a{} > 1", "abs(".repeat(48), ")".repeat(48));
    comes_back(&Condition::parse(&most).unwrap());
}

#[test]
fn patterns_escape_and_refuse() {
    let row = |text: &str| (0i8, None, 0.0, Some(text.to_owned()));
    let rows = [row("50%"), row("500"), row("Straße"), row("STRASSE"), row("a\\b"), row("日本")];
    let found = |text: &str| selected(&Condition::parse(text).unwrap(), &rows);
    assert_eq!(found("s like '50\\%'").unwrap(), [0]);
    assert_eq!(found("s like '50_'").unwrap(), [0, 1]);
    assert_eq!(found("s ilike 'stra%'").unwrap(), [2, 3]);
    assert_eq!(found("s like 'a\\\\b'").unwrap(), [4]);
    assert_eq!(found("length(s) == 2").unwrap(), [5]);
    assert_eq!(found("regexp_matches(s, '^[0-9]+$')").unwrap(), [1]);
    assert_eq!(found("upper(s) == 'STRASSE'").unwrap(), [2, 3]);
    assert!(found("s like 'a\\'").unwrap_err().contains("ends with"));
    assert!(found("regexp_matches(s, '(')").unwrap_err().contains("no pattern"));
    assert!(found("regexp_matches(s, '(a{1000}){1000}')").unwrap_err().contains("no pattern"));
    assert!(found("i like 'a'").unwrap_err().contains("int8"));
    assert!(found("i + s > 1").unwrap_err().contains("string"));
    assert!(found("i + 1").unwrap_err().contains("no condition by itself"));
    assert!(found("lower(s) > 1").unwrap_err().contains("text"));
    assert!(found("r + 1 > 1").is_err());
}

#[test]
fn categories_are_their_texts_in_functions_and_comparisons() {
    let schema = schema();
    let k = Column::new(schema.attrs()[5].datatype(), AlignedBuf::from_slice(&[0, 1, 0]), None, None).unwrap();
    let found = |text: &str| {
        let bound = Condition::parse(text).unwrap().bind(&schema).unwrap();
        bound.evaluate(&Batch::new(3).with_attr(5, k.view())).unwrap().rows().collect::<Vec<_>>()
    };
    assert_eq!(found("k like 'L%'"), [0, 2]);
    assert_eq!(found("lower(k) == 'low'"), [0, 2]);
    assert_eq!(found("upper(k) == 'HIGH'"), [1]);
    assert_eq!(found("lower(k) == k"), [1]);
}
