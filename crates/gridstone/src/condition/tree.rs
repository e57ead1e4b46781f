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
//! Values that are computed have nodes of their own (`compare_values`, `value_in`, …), whose parts are
//! [`super::Expression`]s. What needs no computing never takes these forms.
//!
//! Literals: `int`, `float`, `bool`, `text`, `bytes` (hexadecimal), `datetime` and `timedelta` (ticks, NumPy's unit).

use super::expression::Expression;
use super::shared::{Branch, Measure, Term};
use crate::base::{Error, Result};
use crate::schema::{Datatype, TimeUnit};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::hash::{Hash, Hasher};

/// The largest depth of the tree: what recursion and serde_json support. Operators of values count half.
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
    /// A computed truth by itself: `starts_with(name, 'A')`.
    Value {
        /// What is computed.
        value: Term,
    },
    /// Two values compared, of which one at least is computed.
    CompareValues {
        /// The comparison.
        is: Comparison,
        /// The left one.
        left: Term,
        /// The right one.
        right: Term,
    },
    /// A computed value that equals one of some literals.
    ValueIn {
        /// What is computed.
        value: Term,
        /// The literals.
        values: Vec<Literal>,
    },
    /// A value between two others, both inclusive, of which one at least is computed.
    ValueBetween {
        /// The value.
        value: Term,
        /// The least.
        low: Term,
        /// The greatest.
        high: Term,
    },
    /// A computed value that is null.
    ValueIsNull {
        /// What is computed.
        value: Term,
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

    /// The condition that `value` is by itself.
    pub fn of_value(value: Expression) -> Self {
        match value {
            Expression::Column { column } => Self::Column { column },
            Expression::Literal { value: Literal::Bool(true) } => Self::True {},
            Expression::Literal { value: Literal::Bool(false) } => Self::False {},
            Expression::Condition { condition } => (*condition).clone(),
            computed => Self::Value { value: computed.into() },
        }
    }

    /// As [`Condition::of_value`]; an Input error for a literal that is no bool.
    pub fn by_itself(value: Expression) -> Result<Self> {
        match Self::of_value(value) {
            Self::Value { value } if value.is_literal() => {
                Err(Error::input(format!("{}, by itself, is no condition; compare it with a column", *value)))
            }
            condition => Ok(condition),
        }
    }

    /// The comparison of two values; an Input error if both are literals.
    pub fn compared(left: Expression, is: Comparison, right: Expression) -> Result<Self> {
        Ok(match (left, right) {
            (Expression::Literal { .. }, Expression::Literal { .. }) => {
                return Err(Error::input("two values are compared; one side must be a column"));
            }
            (Expression::Column { column }, Expression::Literal { value }) => Self::Compare { is, column, value },
            (Expression::Literal { value }, Expression::Column { column }) => {
                Self::Compare { is: is.flipped(), column, value }
            }
            (Expression::Column { column: left }, Expression::Column { column: right }) => {
                Self::CompareColumns { is, left, right }
            }
            (left, right) => Self::CompareValues { is, left: left.into(), right: right.into() },
        })
    }

    /// Whether a value equals one of some literals; an Input error if it is a literal.
    pub fn among(value: Expression, values: Vec<Literal>) -> Result<Self> {
        Ok(match value {
            Expression::Literal { .. } => return Err(Error::input("a value is looked for; it must be a column")),
            Expression::Column { column } => Self::In { column, values },
            computed => Self::ValueIn { value: computed.into(), values },
        })
    }

    /// Whether a value lies between two others, both inclusive; an Input error if it is a literal.
    pub fn ranged(value: Expression, low: Expression, high: Expression) -> Result<Self> {
        Ok(match (value, low, high) {
            (Expression::Literal { .. }, ..) => {
                return Err(Error::input("a value stands before \"between\"; it must be a column"));
            }
            (
                Expression::Column { column },
                Expression::Literal { value: low },
                Expression::Literal { value: high },
            ) => Self::Between { column, low, high },
            (value, low, high) => Self::ValueBetween { value: value.into(), low: low.into(), high: high.into() },
        })
    }

    /// Whether a value is null; an Input error if it is a literal.
    pub fn null(value: Expression) -> Result<Self> {
        Ok(match value {
            Expression::Literal { .. } => return Err(Error::input("a value is never null; test a column")),
            Expression::Column { column } => Self::IsNull { column },
            computed => Self::ValueIsNull { value: computed.into() },
        })
    }

    /// Whether a value is not null; an Input error if it is a literal.
    pub fn not_null(value: Expression) -> Result<Self> {
        match value {
            Expression::Column { column } => Ok(Self::IsNotNull { column }),
            other => Self::null(other).map(Self::negate),
        }
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
            Self::Value { value } | Self::ValueIn { value, .. } | Self::ValueIsNull { value } => {
                value.check_parts()?;
                self.check_form(value.is_computed())
            }
            Self::CompareValues { left, right, .. } => {
                left.check_parts()?;
                right.check_parts()?;
                let literals = left.is_literal() && right.is_literal();
                self.check_form((left.is_computed() || right.is_computed()) && !literals)
            }
            Self::ValueBetween { value, low, high } => {
                [value, low, high].into_iter().try_for_each(|part| part.check_parts())?;
                let plain = value.is_column() && low.is_literal() && high.is_literal();
                self.check_form(!plain && !value.is_literal())
            }
            _ => Ok(()),
        }
    }

    /// An Input error unless the node is the only form of what it says.
    fn check_form(&self, only: bool) -> Result<()> {
        let message =
            || Error::input(format!("{self}: nothing is computed here; write it as the parser of texts does"));
        if only { Ok(()) } else { Err(message()) }
    }

    /// Its size, from that of its parts.
    pub(super) fn measure(&self) -> Measure {
        match self {
            Self::Not { arg } => Measure::around(2, [arg.measure]),
            Self::And { args } | Self::Or { args } => Measure::around(2, args.iter().map(|arg| arg.measure)),
            Self::In { values, .. } => Measure::leaf(2, values.len() + 1),
            Self::Value { value } | Self::ValueIsNull { value } => Measure::around(2, [value.measure]),
            Self::ValueIn { value, values } => Measure::around(2, [value.measure, Measure::leaf(0, values.len())]),
            Self::CompareValues { left, right, .. } => Measure::around(2, [left.measure, right.measure]),
            Self::ValueBetween { value, low, high } => Measure::around(2, [value.measure, low.measure, high.measure]),
            _ => Measure::leaf(2, 1),
        }
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

/// The unit of this name.
pub(super) fn unit_named(name: &str) -> Option<TimeUnit> {
    match Datatype::parse(&format!("datetime64[{name}]")) {
        Ok(Datatype::Datetime(step)) if step.count() == 1 => Some(step.unit()),
        _ => None,
    }
}

/// Ticks as text, NaT included.
pub(super) fn ticks_text(ticks: i64) -> String {
    if ticks == i64::MIN { "NaT".to_owned() } else { ticks.to_string() }
}

/// Parses the text of [`ticks_text`].
pub(super) fn ticks_of(text: &str) -> Option<i64> {
    if text == "NaT" { Some(i64::MIN) } else { text.parse().ok() }
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
