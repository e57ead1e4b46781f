//! The types of Arrow: which one a column has, as in the Python package.
//!
//! Arrow has no datetimes coarser than seconds, nor finer than nanoseconds. Coarser ones, and timedeltas from weeks to minutes, become
//! seconds. Finer ones, and timedeltas in years or months, become ticks of int64. NaT is null. Complex numbers and vectors are fixed-size
//! lists. The metadata of a column keeps its type and whether it may be null.

use super::abi::{FLAG_NULLABLE, FLAG_ORDERED};
use crate::field::Field;
use gridstone::schema::calendar::in_months;
use gridstone::schema::{Datatype, TimeUnit};
use serde_json::json;

/// A type of Arrow, as a schema of the interface has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArrowType {
    pub(super) format: String,
    pub(super) name: String,
    pub(super) flags: i64,
    /// Pairs of keys and values.
    pub(super) metadata: Vec<(&'static str, String)>,
    pub(super) children: Vec<ArrowType>,
    pub(super) dictionary: Option<Box<ArrowType>>,
}

/// The unit in which times go to Arrow; `None`: as plain ticks.
pub(super) fn unit_of(datatype: Datatype) -> Option<TimeUnit> {
    let (step, is_span) = match datatype {
        Datatype::Datetime(step) => (step, false),
        Datatype::Timedelta(step) => (step, true),
        _ => return None,
    };
    match step.unit() {
        fine @ (TimeUnit::Millisecond | TimeUnit::Microsecond | TimeUnit::Nanosecond) => Some(fine),
        TimeUnit::Picosecond | TimeUnit::Femtosecond | TimeUnit::Attosecond => None,
        coarse if is_span && in_months(coarse) => None,
        _ => Some(TimeUnit::Second),
    }
}

/// The letter of a unit.
fn letter(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Millisecond => "m",
        TimeUnit::Microsecond => "u",
        TimeUnit::Nanosecond => "n",
        _ => "s",
    }
}

/// The format of a type, and the type of what is nested in it.
fn format_of(datatype: Datatype) -> (String, Option<ArrowType>) {
    let plain = match datatype {
        Datatype::Bool => "b",
        Datatype::Int8 => "c",
        Datatype::UInt8 => "C",
        Datatype::Int16 => "s",
        Datatype::UInt16 => "S",
        Datatype::Int32 => "i",
        Datatype::UInt32 => "I",
        Datatype::Int64 => "l",
        Datatype::UInt64 => "L",
        Datatype::Float16 => "e",
        Datatype::Float32 => "f",
        Datatype::Float64 => "g",
        Datatype::String => "U",
        Datatype::Bytes => "Z",
        Datatype::FixedBytes(width) => return (format!("w:{width}"), None),
        Datatype::Complex64 => return ("+w:2".to_owned(), Some(item(Datatype::Float32))),
        Datatype::Complex128 => return ("+w:2".to_owned(), Some(item(Datatype::Float64))),
        Datatype::List(primitive) => return ("+L".to_owned(), Some(item(primitive.datatype()))),
        Datatype::Vector(primitive, shape) => {
            let mut inner = item(primitive.datatype());
            let (first, rest) = shape.sides().split_first().unwrap_or((&1, &[]));
            for side in rest.iter().rev() {
                inner = ArrowType { format: format!("+w:{side}"), children: vec![inner], ..item(Datatype::Bool) };
            }
            return (format!("+w:{first}"), Some(inner));
        }
        Datatype::Datetime(_) => match unit_of(datatype) {
            Some(unit) => return (format!("ts{}:", letter(unit)), None),
            None => "l",
        },
        Datatype::Timedelta(_) => match unit_of(datatype) {
            Some(unit) => return (format!("tD{}", letter(unit)), None),
            None => "l",
        },
    };
    (plain.to_owned(), None)
}

/// The type of the items of lists.
fn item(datatype: Datatype) -> ArrowType {
    let (format, inner) = format_of(datatype);
    ArrowType {
        format,
        name: "item".to_owned(),
        flags: FLAG_NULLABLE,
        metadata: Vec::new(),
        children: inner.into_iter().collect(),
        dictionary: None,
    }
}

impl ArrowType {
    /// The type of a column.
    pub(super) fn of(field: &Field) -> Self {
        let (format, inner) = format_of(field.datatype);
        let value_type = field.categories.as_ref().map_or(field.datatype, |known| known.datatype());
        let is_nullable = field.nullable || value_type.is_time();
        let is_ordered = field.categories.as_ref().is_some_and(|known| known.ordered());
        let flags = if is_nullable { FLAG_NULLABLE } else { 0 } | if is_ordered { FLAG_ORDERED } else { 0 };
        let mut metadata =
            vec![("gridstone.dtype", value_type.to_string()), ("gridstone.nullable", field.nullable.to_string())];
        if let Some(known) = &field.categories {
            let codes = field.datatype.to_string();
            let kept = json!({"categories": known.texts(), "ordered": known.ordered(), "codes": codes});
            metadata.push(("gridstone.categories", kept.to_string()));
        }
        let dictionary =
            field.categories.as_ref().map(|known| Box::new(Self { name: String::new(), ..item(known.datatype()) }));
        let children = inner.into_iter().collect();
        Self { format, name: field.name.clone(), flags, metadata, children, dictionary }
    }

    /// The type of rows with these columns.
    pub(super) fn of_rows(fields: &[Field]) -> Self {
        let children = fields.iter().map(Self::of).collect();
        Self {
            format: "+s".to_owned(),
            name: String::new(),
            flags: 0,
            metadata: Vec::new(),
            children,
            dictionary: None,
        }
    }
}

/// Keys and values as the interface lays them out; `None` if there are none.
pub(super) fn metadata_bytes(pairs: &[(&'static str, String)]) -> Option<Vec<u8>> {
    if pairs.is_empty() {
        return None;
    }
    let mut bytes = (pairs.len() as i32).to_ne_bytes().to_vec();
    for text in pairs.iter().flat_map(|(key, value)| [*key, value.as_str()]) {
        bytes.extend_from_slice(&(text.len() as i32).to_ne_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    Some(bytes)
}
