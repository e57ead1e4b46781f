//! The tree of a condition, and its JSON form.
//!
//! JSON, one object per node, `op` first; literals are objects of one key, numbers as text so that none is rounded:
//!
//! ```json
//! {"op": "and", "args": [
//!   {"op": "compare", "is": ">", "column": "sog", "value": {"float": "3.5"}},
//!   {"op": "in", "column": "status", "values": [{"int": "1"}, {"int": "5"}]},
//!   {"op": "between", "column": "t", "low": {"text": "2024-01-01"}, "high": {"datetime": ["1704153600", "s"]}},
//!   {"op": "compare_columns", "is": "<", "left": "a", "right": "b"},
//!   {"op": "not", "arg": {"op": "is_null", "column": "name"}},
//!   {"op": "or", "args": [{"op": "is_not_null", "column": "v"}, {"op": "column", "column": "flag"}, {"op": "true"}]}]}
//! ```
//! Computed values have nodes of their own, `compare_values`, `in_values`, `value_is_null`, `value_is_not_null`, `holds`:
//! `{"op": "holds", "value": {"op": "function", "name": "like", "args": […]}}`. A case within has conditions again:
//! `{"op": "case", "whens": [{"if": {…}, "then": {…}}, …], "else": {…}}`. Literals: `int`, `float`, `bool`, `text`, `bytes` (hexadecimal), `datetime` and `timedelta` (ticks, NumPy's unit).

use super::expression::Expression;
use crate::base::{Error, Result};
use crate::schema::notation::{ticks_of, unit_named};
use crate::schema::{Datatype, TimeUnit};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// The largest depth of the tree: what recursion and serde_json support.
pub(super) const DEPTH_MAX: usize = 50;
/// The largest number of nodes and literals of one condition.
pub(super) const SIZE_MAX: usize = 1 << 20;
/// The largest size of a condition's text or JSON, in bytes.
pub(super) const TEXT_BYTES_MAX: usize = 64 << 20;

/// A comparison of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Comparison {
    /// Equal.
    #[serde(rename = "==")]
    Eq,
    /// Not equal.
    #[serde(rename = "!=")]
    Ne,
    /// Less.
    #[serde(rename = "<")]
    Lt,
    /// Less or equal.
    #[serde(rename = "<=")]
    Le,
    /// Greater.
    #[serde(rename = ">")]
    Gt,
    /// Greater or equal.
    #[serde(rename = ">=")]
    Ge,
}

impl Comparison {
    /// Its symbol.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
        }
    }

    /// The comparison that is written so; an Input error if there is none.
    pub fn parse(symbol: &str) -> Result<Self> {
        let all = [Self::Eq, Self::Ne, Self::Lt, Self::Le, Self::Gt, Self::Ge];
        let unknown = || Error::input(format!("{symbol:?} is no comparison; there are ==, !=, <, <=, > and >="));
        all.into_iter().find(|is| is.symbol() == symbol).ok_or_else(unknown)
    }

    /// The same comparison with its sides exchanged.
    #[must_use]
    pub fn flipped(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
            same => same,
        }
    }
}

/// A value in a condition. It has no column's type yet; [`Condition::bind`] converts it, exactly.
#[derive(Debug, Clone)]
pub enum Literal {
    /// An integer.
    Int(i128),
    /// A float; NaN is one.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// Text; compared with a column of times, a time in ISO 8601 or a number and a unit.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Ticks since 1970-01-01 (the least is NaT).
    Datetime(i64, TimeUnit),
    /// Ticks (the least is NaT).
    Timedelta(i64, TimeUnit),
}

/// A condition on the cells of an array, by the names of its dimensions and attributes.
///
/// Reads, deletions and aggregates take one. Statistics of stored blocks rule out most that hold no such cell.
///
/// ```
/// use gridstone::engine::check_condition;
/// use gridstone::{Attribute, Condition, Datatype, Dimension, Schema, SchemaOptions};
///
/// # fn main() -> gridstone::Result<()> {
/// let dim = Dimension::new("mmsi", Datatype::Int64, "0", "999999999", None)?;
/// let attr = Attribute::new("sog", Datatype::Float32, true, None, "auto")?;
/// let options = SchemaOptions { sparse: true, ..SchemaOptions::default() };
/// let schema = Schema::new(vec![dim], vec![attr], options)?;
///
/// let quick = Condition::parse("mmsi between 200000000 and 299999999 and (sog > 20 or sog is null)")?;
/// let meaning = check_condition(&quick, &schema)?;
/// assert_eq!(meaning.columns, ["mmsi", "sog"]);
/// assert_eq!(meaning.bounds, Some(vec![("200000000".to_owned(), "299999999".to_owned())]));
/// assert!(check_condition(&Condition::parse("speed > 20")?, &schema).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Condition {
    /// Always true.
    True {},
    /// Never true.
    False {},
    /// A boolean column by itself.
    Column {
        /// Its name.
        column: String,
    },
    /// A column compared with a literal.
    Compare {
        /// The comparison.
        is: Comparison,
        /// The column's name.
        column: String,
        /// The literal.
        value: Literal,
    },
    /// Two columns compared.
    CompareColumns {
        /// The comparison.
        is: Comparison,
        /// The left one's name.
        left: String,
        /// The right one's name.
        right: String,
    },
    /// A column that equals one of some literals.
    In {
        /// Its name.
        column: String,
        /// The literals.
        values: Vec<Literal>,
    },
    /// A column between two literals, both inclusive.
    Between {
        /// Its name.
        column: String,
        /// The least.
        low: Literal,
        /// The greatest.
        high: Literal,
    },
    /// A column without a value.
    IsNull {
        /// Its name.
        column: String,
    },
    /// A column with a value.
    IsNotNull {
        /// Its name.
        column: String,
    },
    /// Two values compared, of which one at least is computed.
    CompareValues {
        /// The comparison.
        is: Comparison,
        /// The left one.
        left: Expression,
        /// The right one.
        right: Expression,
    },
    /// A computed value that equals one of some literals.
    InValues {
        /// The value.
        value: Expression,
        /// The literals.
        values: Vec<Literal>,
    },
    /// A computed value that is null.
    ValueIsNull {
        /// The value.
        value: Expression,
    },
    /// A computed value that is not null.
    ValueIsNotNull {
        /// The value.
        value: Expression,
    },
    /// A computed value that is true, such as `name like 'a%'`.
    Holds {
        /// The value, a boolean.
        value: Expression,
    },
    /// The negation; if the argument is unknown because of a null, unknown again.
    Not {
        /// The argument.
        arg: Branch,
    },
    /// All of them.
    And {
        /// Two or more.
        args: Vec<Branch>,
    },
    /// At least one of them.
    Or {
        /// Two or more.
        args: Vec<Branch>,
    },
}

impl Condition {
    /// All of `args`; true if there is none.
    pub fn all(mut args: Vec<Self>) -> Self {
        match (args.len(), args.pop()) {
            (0, _) | (_, None) => Self::True {},
            (1, Some(only)) => only,
            (_, Some(last)) => {
                args.push(last);
                Self::And { args: args.into_iter().map(Branch::from).collect() }
            }
        }
    }

    /// At least one of `args`; false if there is none.
    pub fn any(mut args: Vec<Self>) -> Self {
        match (args.len(), args.pop()) {
            (0, _) | (_, None) => Self::False {},
            (1, Some(only)) => only,
            (_, Some(last)) => {
                args.push(last);
                Self::Or { args: args.into_iter().map(Branch::from).collect() }
            }
        }
    }

    /// The negation of `arg`.
    pub fn negate(arg: Self) -> Self {
        Self::Not { arg: arg.into() }
    }

    /// Parses the condition from JSON (see the module); an Input error says what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(Error::input(format!("a condition of {} bytes; {TEXT_BYTES_MAX} are allowed", text.len())));
        }
        let condition: Self = serde_json::from_str(text)
            .map_err(|e| Error::input(format!("this is no condition in JSON: {e}")).with_source(e))?;
        condition.check()?;
        Ok(condition)
    }

    /// The condition as JSON on one line.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// An Input error if it is deeper or larger than the limits, or an `and` or `or` has fewer than two parts.
    pub(super) fn check(&self) -> Result<()> {
        self.measure().check()?;
        self.check_parts()
    }

    pub(super) fn check_parts(&self) -> Result<()> {
        match self {
            Self::Not { arg } => arg.check_parts(),
            Self::And { args } | Self::Or { args } if args.len() < 2 => {
                Err(Error::input("\"and\" and \"or\" need two parts at least"))
            }
            Self::And { args } | Self::Or { args } => args.iter().try_for_each(|arg| arg.check_parts()),
            Self::CompareValues { left, right, .. } => computed(&[left, right]),
            Self::InValues { value, .. }
            | Self::ValueIsNull { value }
            | Self::ValueIsNotNull { value }
            | Self::Holds { value } => computed(&[value]),
            _ => Ok(()),
        }
    }

    /// Its size, from that of its parts.
    fn measure(&self) -> Measure {
        match self {
            Self::Not { arg } => Measure::around(std::slice::from_ref(arg)),
            Self::And { args } | Self::Or { args } => Measure::around(args),
            Self::In { values, .. } => Measure { levels: 1, parts: values.len() + 1 },
            Self::CompareValues { left, right, .. } => Measure::of(&[left, right], 0),
            Self::InValues { value, values } => Measure::of(&[value], values.len()),
            Self::ValueIsNull { value } | Self::ValueIsNotNull { value } | Self::Holds { value } => {
                Measure::of(&[value], 0)
            }
            _ => Measure { levels: 1, parts: 1 },
        }
    }
}

/// An Input error unless one of `values` at least is computed, and each is well formed.
fn computed(values: &[&Expression]) -> Result<()> {
    if !values.iter().any(|value| value.is_computed()) {
        return Err(Error::input(
            "a condition on computed values has none; use compare, compare_columns, in, is_null or column",
        ));
    }
    values.iter().try_for_each(|value| value.check())
}

/// How large a condition is.
#[derive(Debug, Clone, Copy)]
struct Measure {
    levels: usize,
    /// Nodes and literals.
    parts: usize,
}

impl Measure {
    /// That of a node with these parts.
    fn around(args: &[Branch]) -> Self {
        let levels = args.iter().map(|arg| arg.measure.levels).max().unwrap_or(0);
        Self { levels: levels + 1, parts: args.iter().map(|arg| arg.measure.parts).sum::<usize>() + 1 }
    }

    /// That of a node with these values and as many literals.
    fn of(values: &[&Expression], literals: usize) -> Self {
        let levels = values.iter().map(|value| value.levels()).max().unwrap_or(0);
        Self { levels: levels + 1, parts: values.iter().map(|value| value.parts()).sum::<usize>() + literals + 1 }
    }

    fn check(self) -> Result<()> {
        if self.levels > DEPTH_MAX {
            return Err(Error::input(format!(
                "a condition of more than {DEPTH_MAX} levels; write a and b and c, not a and (b and (c))"
            )));
        }
        if self.parts > SIZE_MAX {
            return Err(Error::input(format!("a condition of more than {SIZE_MAX} parts; ask in several calls")));
        }
        Ok(())
    }
}

/// A condition that others may share as a part of theirs; cheap to clone, measured once.
#[derive(Debug, Clone)]
pub struct Branch {
    condition: Arc<Condition>,
    measure: Measure,
}

impl From<Condition> for Branch {
    fn from(condition: Condition) -> Self {
        Self { measure: condition.measure(), condition: Arc::new(condition) }
    }
}

impl Branch {
    /// A condition made of parts; an Input error if it is deeper or larger than the engine takes.
    pub fn new(condition: Condition) -> Result<Self> {
        let made = Self::from(condition);
        made.measure.check()?;
        Ok(made)
    }

    /// How many levels it has.
    pub(super) fn levels(&self) -> usize {
        self.measure.levels
    }

    /// How many nodes and literals it has.
    pub(super) fn parts(&self) -> usize {
        self.measure.parts
    }

    /// The opposite.
    ///
    /// # Errors
    /// Those of [`Branch::new`].
    pub fn negated(&self) -> Result<Self> {
        Self::new(Condition::Not { arg: self.clone() })
    }

    /// Both; what is an `and` already is one with more parts.
    ///
    /// # Errors
    /// Those of [`Branch::new`].
    pub fn and(&self, other: &Self) -> Result<Self> {
        let parts = |side: &Self| if let Condition::And { args } = &**side { Some(args.clone()) } else { None };
        Self::new(Condition::And { args: self.joined(other, parts) })
    }

    /// At least one of both; what is an `or` already is one with more parts.
    ///
    /// # Errors
    /// Those of [`Branch::new`].
    pub fn or(&self, other: &Self) -> Result<Self> {
        let parts = |side: &Self| if let Condition::Or { args } = &**side { Some(args.clone()) } else { None };
        Self::new(Condition::Or { args: self.joined(other, parts) })
    }

    /// The parts of both sides, each a part itself where `parts` has none of it.
    fn joined(&self, other: &Self, parts: impl Fn(&Self) -> Option<Vec<Self>>) -> Vec<Self> {
        let mut all = parts(self).unwrap_or_else(|| vec![self.clone()]);
        match parts(other) {
            Some(more) => all.extend(more),
            None => all.push(other.clone()),
        }
        all
    }
}

impl Deref for Branch {
    type Target = Condition;

    fn deref(&self) -> &Condition {
        &self.condition
    }
}

impl PartialEq for Branch {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.condition, &other.condition) || self.condition == other.condition
    }
}

impl Eq for Branch {}

impl Hash for Branch {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}

impl Serialize for Branch {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.condition.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Branch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Condition::deserialize(deserializer).map(Self::from)
    }
}

/// The bits that identify floats in trees: NaN equals itself, -0.0 is not 0.0.
fn float_bits(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => float_bits(*a) == float_bits(*b),
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Datetime(a, u), Self::Datetime(b, v)) | (Self::Timedelta(a, u), Self::Timedelta(b, v)) => {
                (a, u) == (b, v)
            }
            _ => false,
        }
    }
}

impl Eq for Literal {}

impl Hash for Literal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Int(value) => value.hash(state),
            Self::Float(value) => float_bits(*value).hash(state),
            Self::Bool(value) => value.hash(state),
            Self::Text(value) => value.hash(state),
            Self::Bytes(value) => value.hash(state),
            Self::Datetime(ticks, unit) | Self::Timedelta(ticks, unit) => (ticks, unit).hash(state),
        }
    }
}

/// A literal in its JSON form.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Written {
    Int(String),
    Float(String),
    Bool(bool),
    Text(String),
    Bytes(String),
    Datetime(String, String),
    Timedelta(String, String),
}

/// NumPy's name of a unit.
pub(super) fn unit_name(unit: TimeUnit) -> String {
    unit.step().to_string()
}

/// Ticks as text, NaT included.
pub(super) fn ticks_text(ticks: i64) -> String {
    if ticks == i64::MIN { "NaT".to_owned() } else { ticks.to_string() }
}

impl Serialize for Literal {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let written = match self {
            Self::Int(value) => Written::Int(value.to_string()),
            Self::Float(value) => Written::Float(format!("{value:?}")),
            Self::Bool(value) => Written::Bool(*value),
            Self::Text(value) => Written::Text(value.clone()),
            Self::Bytes(value) => Written::Bytes(crate::schema::bytes_to_text(Datatype::Bytes, value)),
            Self::Datetime(ticks, unit) => Written::Datetime(ticks_text(*ticks), unit_name(*unit)),
            Self::Timedelta(ticks, unit) => Written::Timedelta(ticks_text(*ticks), unit_name(*unit)),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Literal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let bad = |text: &str, what: &str| de::Error::custom(format!("{text:?} is no {what}"));
        let time = |ticks: &str, unit: &str| -> std::result::Result<(i64, TimeUnit), D::Error> {
            let unit = unit_named(unit).ok_or_else(|| bad(unit, "unit of time"))?;
            Ok((ticks_of(ticks).ok_or_else(|| bad(ticks, "number of ticks"))?, unit))
        };
        Ok(match Written::deserialize(deserializer)? {
            Written::Int(text) => Self::Int(text.parse().map_err(|_| bad(&text, "integer of 128 bits"))?),
            Written::Float(text) => Self::Float(text.parse().map_err(|_| bad(&text, "float"))?),
            Written::Bool(value) => Self::Bool(value),
            Written::Text(text) => Self::Text(text),
            Written::Bytes(text) => {
                let bytes = crate::schema::text_to_bytes(Datatype::Bytes, &text);
                Self::Bytes(bytes.map_err(|_| bad(&text, "hexadecimal text"))?)
            }
            Written::Datetime(ticks, unit) => time(&ticks, &unit).map(|(t, u)| Self::Datetime(t, u))?,
            Written::Timedelta(ticks, unit) => time(&ticks, &unit).map(|(t, u)| Self::Timedelta(t, u))?,
        })
    }
}
