//! Random columns and random conditions on them.

use super::super::{Comparison, Condition, Literal};
use super::oracle::{Cells, Value};
use crate::base::AlignedBuf;
use crate::schema::{Datatype, Schema, TimeUnit};
use crate::tile::Column;
use half::f16;
use proptest::prelude::*;
use proptest::sample::select;

/// Dimensions, then attributes.
pub(super) const COLUMNS: [(&str, &str, bool); 29] = [
    ("x", "int64", false),
    ("y", "float32", false),
    ("z", "datetime64[s]", false),
    ("n", "string", false),
    ("b", "bool", true),
    ("i8", "int8", false),
    ("i16", "int16", true),
    ("i32", "int32", true),
    ("i64", "int64", true),
    ("u8", "uint8", true),
    ("u16", "uint16", false),
    ("u32", "uint32", false),
    ("u64", "uint64", true),
    ("f", "float32", true),
    ("d", "float64", true),
    ("g", "float64", false),
    ("t", "datetime64[ns]", true),
    ("t2", "datetime64[ns]", false),
    ("m", "datetime64[M]", false),
    ("w", "timedelta64[ms]", true),
    ("q", "timedelta64[Y]", false),
    ("t6", "datetime64[6h]", true),
    ("w15", "timedelta64[15m]", false),
    ("s", "string", true),
    ("r", "bytes", false),
    ("s2", "string", false),
    ("r2", "bytes", true),
    ("h", "float16", true),
    ("k", "bytes[2]", true),
];
pub(super) const DIMS: usize = 4;

pub(super) fn schema() -> Schema {
    let ends = |dtype: &str| match dtype {
        "float32" => ("-3e38", "3e38"),
        "datetime64[s]" => ("-9223372036854775807", "9223372036854775807"),
        _ => ("-9223372036854775808", "9223372036854775807"),
    };
    let dims: Vec<String> = COLUMNS[..DIMS]
        .iter()
        .map(|(name, dtype, _)| {
            if *dtype == "string" {
                return format!(r#"{{"name":"{name}","dtype":"string","max_bytes":16}}"#);
            }
            let (lo, hi) = ends(dtype);
            format!(r#"{{"name":"{name}","dtype":"{dtype}","domain":["{lo}","{hi}"]}}"#)
        })
        .collect();
    let attrs: Vec<String> = COLUMNS[DIMS..]
        .iter()
        .map(|(name, dtype, nullable)| format!(r#"{{"name":"{name}","dtype":"{dtype}","nullable":{nullable}}}"#))
        .collect();
    Schema::from_json(&format!(r#"{{"sparse":true,"dims":[{}],"attrs":[{}]}}"#, dims.join(","), attrs.join(",")))
        .unwrap()
}

fn integers(bits: u32, signed: bool) -> BoxedStrategy<i128> {
    let (lo, hi) = if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    prop_oneof![
        3 => lo.max(-3)..5i128,
        1 => select(vec![lo, lo + 1, hi - 1, hi, hi / 2]),
        1 => lo..=hi,
    ]
    .boxed()
}

fn floats() -> BoxedStrategy<f64> {
    let edges = [
        0.0,
        -0.0,
        0.1,
        2.5,
        -2.5,
        300.0,
        16_777_217.0,
        9_007_199_254_740_993.0,
        5e-324,
        -5e-324,
        1e-45,
        -1e-45,
        9_223_372_036_854_775_808.0,
        18_446_744_073_709_551_616.0,
        -9_223_372_036_854_775_808.0,
        3.4028235e38,
        65_504.0,
        65_519.9,
        65_520.0,
        2_049.0,
        6e-8,
        2.9e-8,
        1e39,
        -1e39,
        f64::MAX,
        f64::MIN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    let singles = [f64::from(0.1f32), f64::from(f32::MAX), f64::from(f32::MIN_POSITIVE)];
    prop_oneof![
        2 => (-4i32..5).prop_map(f64::from),
        2 => select([edges.as_slice(), &singles].concat()),
        1 => any::<f64>(),
        1 => any::<f32>().prop_map(f64::from),
    ]
    .boxed()
}

/// Ticks whose time the oracle can compute in 128 bits.
fn ticks(unit: TimeUnit) -> BoxedStrategy<i64> {
    match unit {
        TimeUnit::Year | TimeUnit::Month | TimeUnit::Week | TimeUnit::Day => (-300i64..300).boxed(),
        TimeUnit::Hour | TimeUnit::Minute => (-9_000_000i64..9_000_000).boxed(),
        _ => prop_oneof![
            3 => -3i64..4,
            1 => select(vec![i64::MIN + 1, i64::MAX, 86_400, 2_678_400_000_000_000, 31_536_000]),
            1 => any::<i64>().prop_map(|t| t.max(i64::MIN + 1)),
        ]
        .boxed(),
    }
}

fn or_nat(ticks: BoxedStrategy<i64>) -> BoxedStrategy<i64> {
    prop_oneof![9 => ticks, 1 => Just(i64::MIN)].boxed()
}

fn texts() -> BoxedStrategy<String> {
    prop_oneof![3 => select(vec!["", "a", "a\0", "ab", "b", "é", "It's"]).prop_map(str::to_owned), 1 => "\\PC{0,3}"]
        .boxed()
}

/// Texts that are valid coordinates: no NUL, and short enough.
fn names() -> BoxedStrategy<String> {
    let known = vec!["", "a", "ab", "b", "é", "It's", "abcdefgh", "abcdefghi", "abcdefgé", "\u{10ffff}"];
    prop_oneof![3 => select(known).prop_map(str::to_owned), 1 => "\\PC{0,3}".prop_map(|t| t.replace('\0', ""))].boxed()
}

fn runs() -> BoxedStrategy<Vec<u8>> {
    prop_oneof![
        3 => select(vec![vec![], vec![0], vec![0, 0], vec![255], vec![255, 255], b"a'\\".to_vec()]),
        1 => proptest::collection::vec(any::<u8>(), 0..3),
        1 => (60usize..70).prop_map(|n| vec![255; n]),
    ]
    .boxed()
}

fn values(datatype: Datatype, dim: bool) -> BoxedStrategy<Value> {
    match datatype {
        Datatype::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Datatype::String if dim => names().prop_map(Value::Text).boxed(),
        Datatype::String => texts().prop_map(Value::Text).boxed(),
        Datatype::Bytes => runs().prop_map(Value::Bytes).boxed(),
        Datatype::Datetime(unit) | Datatype::Timedelta(unit) => {
            (if dim { ticks(unit.unit()) } else { or_nat(ticks(unit.unit())) }).prop_map(Value::Ticks).boxed()
        }
        Datatype::Float32 if dim => (-4i32..5).prop_map(|v| Value::Float(f64::from(v as f32 / 10.0))).boxed(),
        Datatype::Float32 => floats().prop_map(|v| Value::Float(f64::from(v as f32))).boxed(),
        Datatype::Float16 => floats().prop_map(|v| Value::Float(f64::from(f16::from_f64(v)))).boxed(),
        Datatype::Float64 => floats().prop_map(Value::Float).boxed(),
        Datatype::FixedBytes(len) => runs().prop_map(move |v| Value::Bytes(resized(v, len as usize))).boxed(),
        other => {
            let element = other.element();
            let signed = element.kind == crate::base::ElementKind::Signed;
            integers(u32::from(element.width) * 8, signed).prop_map(Value::Int).boxed()
        }
    }
}

fn resized(mut bytes: Vec<u8>, len: usize) -> Vec<u8> {
    bytes.resize(len, b'a');
    bytes
}

/// `rows` cells of every column.
pub(super) fn world(rows: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Cells>> {
    rows.prop_flat_map(|rows| {
        let column = |(place, (name, dtype, nullable)): (usize, &(&'static str, &str, bool))| {
            let (name, nullable, datatype) = (*name, *nullable, Datatype::parse(dtype).unwrap());
            let value = values(datatype, place < DIMS);
            let cell = if nullable {
                prop_oneof![4 => value.prop_map(Some), 1 => Just(None)].boxed()
            } else {
                value.prop_map(Some).boxed()
            };
            proptest::collection::vec(cell, rows).prop_map(move |cells| Cells { name, datatype, nullable, cells })
        };
        COLUMNS.iter().enumerate().map(column).collect::<Vec<_>>()
    })
}

/// The cells in the engine's form; the values under nulls are arbitrary.
pub(super) fn column(cells: &Cells) -> Column {
    let (mut bytes, mut offsets) = (Vec::new(), vec![0u64]);
    let width = cells.datatype.width();
    for cell in &cells.cells {
        match cell {
            None => bytes.extend(vec![1; width.unwrap_or(0)]),
            Some(Value::Int(v)) => bytes.extend(v.to_le_bytes().into_iter().take(width.unwrap())),
            Some(Value::Float(v)) if width == Some(2) => bytes.extend(f16::from_f64(*v).to_le_bytes()),
            Some(Value::Float(v)) if width == Some(4) => bytes.extend((*v as f32).to_le_bytes()),
            Some(Value::Float(v)) => bytes.extend(v.to_le_bytes()),
            Some(Value::Bool(v)) => bytes.push(u8::from(*v)),
            Some(Value::Text(v)) => bytes.extend(v.as_bytes()),
            Some(Value::Bytes(v)) => bytes.extend(v),
            Some(Value::Ticks(v)) => bytes.extend(v.to_le_bytes()),
        }
        offsets.push(bytes.len() as u64);
    }
    let validity = cells.nullable.then(|| cells.cells.iter().map(|c| u8::from(c.is_some())).collect());
    let offsets = width.is_none().then_some(offsets);
    Column::new(cells.datatype, AlignedBuf::from_slice(&bytes), offsets, validity).unwrap()
}

const UNITS: [TimeUnit; 9] = [
    TimeUnit::Year,
    TimeUnit::Month,
    TimeUnit::Week,
    TimeUnit::Day,
    TimeUnit::Hour,
    TimeUnit::Second,
    TimeUnit::Millisecond,
    TimeUnit::Nanosecond,
    TimeUnit::Attosecond,
];

fn literal(datatype: Datatype) -> BoxedStrategy<Literal> {
    let timed = |units: Vec<TimeUnit>| select(units).prop_flat_map(|u| or_nat(ticks(u)).prop_map(move |t| (t, u)));
    match datatype {
        Datatype::Bool => any::<bool>().prop_map(Literal::Bool).boxed(),
        // Some are longer than coordinates may be, or have a NUL.
        Datatype::String => prop_oneof![
            2 => texts(),
            2 => names(),
            1 => names().prop_map(|t| t + "abcdefghijklmnopq"),
        ]
        .prop_map(Literal::Text)
        .boxed(),
        Datatype::Bytes => runs().prop_map(Literal::Bytes).boxed(),
        // Shorter ones are padded, which the oracle does not do.
        Datatype::FixedBytes(len) => {
            let full = move |v: Vec<u8>| if v.len() < len as usize { resized(v, len as usize) } else { v };
            runs().prop_map(move |v| Literal::Bytes(full(v))).boxed()
        }
        Datatype::Datetime(_) => timed(UNITS.to_vec()).prop_map(|(t, u)| Literal::Datetime(t, u)).boxed(),
        Datatype::Timedelta(step) if matches!(step.unit(), TimeUnit::Year | TimeUnit::Month) => {
            timed(UNITS[..2].to_vec()).prop_map(|(t, u)| Literal::Timedelta(t, u)).boxed()
        }
        Datatype::Timedelta(_) => timed(UNITS[2..].to_vec()).prop_map(|(t, u)| Literal::Timedelta(t, u)).boxed(),
        _ => prop_oneof![
            integers(64, true).prop_map(Literal::Int),
            integers(66, true).prop_map(Literal::Int),
            integers(8, false).prop_map(Literal::Int),
            any::<i128>().prop_map(Literal::Int),
            floats().prop_map(Literal::Float),
            floats().prop_map(Literal::Float),
        ]
        .boxed(),
    }
}

fn comparison() -> impl Strategy<Value = Comparison> {
    use Comparison::{Eq, Ge, Gt, Le, Lt, Ne};
    select(vec![Eq, Ne, Lt, Le, Gt, Ge])
}

/// Columns that can be compared with each other.
const FAMILIES: [&[&str]; 7] = [
    &["x", "y", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f", "d", "g", "h"],
    &["b"],
    &["z", "t", "t2", "m", "t6"],
    &["w", "w15"],
    &["q"],
    &["s", "s2", "n"],
    &["r", "r2", "k"],
];

fn leaf() -> BoxedStrategy<Condition> {
    let one = select(COLUMNS.to_vec()).prop_flat_map(|(name, dtype, _)| {
        let name = name.to_owned();
        let literals = || literal(Datatype::parse(dtype).unwrap());
        (Just(name), comparison(), literals(), literals(), proptest::collection::vec(literals(), 0..12), 0u8..6)
    });
    let one = one.prop_map(|(column, is, value, high, values, kind)| match kind {
        0 => Condition::In { column, values },
        1 => Condition::Between { column, low: value, high },
        2 => Condition::IsNull { column },
        3 => Condition::IsNotNull { column },
        _ => Condition::Compare { is, column, value },
    });
    let two = select(FAMILIES.to_vec()).prop_flat_map(|f| (select(f), select(f), comparison()));
    let two = two.prop_map(|(a, b, is)| Condition::CompareColumns { is, left: a.to_owned(), right: b.to_owned() });
    prop_oneof![
        8 => one,
        2 => two,
        1 => Just(Condition::Column { column: "b".to_owned() }),
        1 => select(vec![Condition::True {}, Condition::False {}]),
    ]
    .boxed()
}

/// A tree whose columns and literals fit the schema.
pub(super) fn condition() -> impl Strategy<Value = Condition> {
    leaf().prop_recursive(4, 24, 4, |inner| {
        let some = || proptest::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            some().prop_map(Condition::all),
            some().prop_map(Condition::any),
            inner.clone().prop_map(Condition::negate),
        ]
    })
}
