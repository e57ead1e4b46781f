//! Binds an expression to a schema: names become columns, and every node gets a type.

use super::super::bind::{Field, Needed, Place, find};
use super::super::tree::Literal;
use super::arithmetic::NumberFunction;
use super::case::BoundCase;
use super::period::{Part, Period};
use super::search::Search;
use super::{Expression, Operator, When};
use crate::base::{Element, ElementKind, Error, Result};
use crate::schema::{Categories, Datatype, Schema, Sorting, TimeStep};
use std::fmt;

/// A function of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextFunction {
    Lower,
    Upper,
    /// How many characters.
    Length,
}

/// A node of a bound expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Column(Field),
    Integer(i128),
    Float(f64),
    Text(String),
    Negate(Box<BoundExpression>),
    /// Whether it is computed in floats.
    Binary(Operator, Box<BoundExpression>, Box<BoundExpression>, bool),
    Number(NumberFunction, Box<BoundExpression>),
    OfText(TextFunction, Box<BoundExpression>),
    /// Whether a text has something.
    Search(Search, Box<BoundExpression>),
    /// The texts of the categories of a column of codes.
    Category(Field, Vec<String>),
    Part(Part, TimeStep, Box<BoundExpression>),
    Period(Period, Box<BoundExpression>),
    Coalesce(Vec<BoundExpression>),
    Case(Box<BoundCase>),
    Cast(Box<BoundExpression>),
}

/// An expression bound to a schema: checked, and ready to be evaluated on columns of that schema.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundExpression {
    pub(super) node: Node,
    pub(super) datatype: Datatype,
    pub(super) nullable: bool,
    /// As it was written, for errors.
    pub(super) text: String,
}

impl Expression {
    /// Checks names and types against `schema`.
    ///
    /// # Errors
    /// Input: it names what does not fit.
    pub fn bind(&self, schema: &Schema) -> Result<BoundExpression> {
        let (node, datatype, nullable) = match self {
            Self::Column { column } => {
                let field = find(schema, column)?;
                (Node::Column(field), field.datatype, field.nullable)
            }
            Self::Literal { value } => of_literal(value)?,
            Self::Negate { arg } => {
                let arg = arg.bind(schema)?;
                let datatype = match arg.kind(schema)? {
                    Kind::Number(datatype) if datatype.is_float() => Datatype::Float64,
                    Kind::Number(_) => Datatype::Int64,
                    Kind::Time(datatype @ Datatype::Timedelta(_)) => datatype,
                    _ => return Err(self.unfit(&[&arg])),
                };
                let nullable = arg.nullable;
                (Node::Negate(Box::new(arg)), datatype, nullable)
            }
            Self::Binary { operator, left, right } => self.binary(schema, *operator, left, right)?,
            Self::Function { name, args } => self.function(schema, name, args)?,
            Self::Case { whens, otherwise } => self.case(schema, whens, otherwise.as_deref())?,
            Self::Cast { arg, to } => {
                let (arg, datatype) = (arg.bind(schema)?, Datatype::parse(to)?);
                let plain = datatype.sorting() == Sorting::Keys && !datatype.is_time();
                if !plain || !matches!(arg.kind(schema)?, Kind::Number(_)) {
                    return Err(self.unfit(&[&arg]));
                }
                let nullable = arg.nullable;
                (Node::Cast(Box::new(arg)), datatype, nullable)
            }
        };
        Ok(BoundExpression { node, datatype, nullable, text: self.to_string() })
    }

    fn unfit(&self, args: &[&BoundExpression]) -> Error {
        let types: Vec<String> = args.iter().map(|arg| format!("{} is {}", arg.text, arg.datatype)).collect();
        Error::input(format!("{self} cannot be computed: {}", types.join(", ")))
    }

    fn binary(&self, schema: &Schema, operator: Operator, left: &Self, right: &Self) -> Result<(Node, Datatype, bool)> {
        let (left, right) = (left.bind(schema)?, right.bind(schema)?);
        let datatype = match (left.kind(schema)?, right.kind(schema)?) {
            (Kind::Number(a), Kind::Number(b)) => match operator {
                Operator::Divide => Datatype::Float64,
                _ if a.is_float() || b.is_float() => Datatype::Float64,
                _ if a == Datatype::UInt64 || b == Datatype::UInt64 => Datatype::UInt64,
                _ => Datatype::Int64,
            },
            (Kind::Time(Datatype::Datetime(a)), Kind::Time(Datatype::Datetime(b)))
                if a == b && operator == Operator::Subtract =>
            {
                Datatype::Timedelta(a)
            }
            (Kind::Time(a), Kind::Time(Datatype::Timedelta(b)))
                if step_of(a) == Some(b) && matches!(operator, Operator::Add | Operator::Subtract) =>
            {
                a
            }
            (Kind::Time(Datatype::Timedelta(a)), Kind::Time(b))
                if step_of(b) == Some(a) && operator == Operator::Add =>
            {
                b
            }
            _ => return Err(self.unfit(&[&left, &right])),
        };
        let divides = matches!(operator, Operator::FloorDivide | Operator::Remainder) && !datatype.is_float();
        let nullable = left.nullable || right.nullable || divides;
        let float = datatype.is_float();
        Ok((Node::Binary(operator, Box::new(left), Box::new(right), float), datatype, nullable))
    }

    fn function(&self, schema: &Schema, name: &str, args: &[Self]) -> Result<(Node, Datatype, bool)> {
        if let ("date", [value]) = (name, args) {
            let value = value.bind(schema)?;
            let (period, datatype, nullable) = (Period::new(value.datatype, "1D")?, value.datatype, value.nullable);
            return Ok((Node::Period(period, Box::new(value)), datatype, nullable));
        }
        if Search::is_known(name) {
            let [value, Self::Literal { value: Literal::Text(sought) }] = args else {
                return Err(Error::input(format!(
                    "{self}: {name} takes a text and a pattern, as in {name}(name, 'a')"
                )));
            };
            let value = value.bind(schema)?.decoded(schema)?;
            if value.datatype != Datatype::String {
                return Err(self.unfit(&[&value]));
            }
            let (search, nullable) = (Search::new(name, sought)?, value.nullable);
            return Ok((Node::Search(search, Box::new(value)), Datatype::Bool, nullable));
        }
        if name == "period" {
            let [value, Self::Literal { value: Literal::Text(length) }] = args else {
                return Err(Error::input(format!("{self}: period takes a time and a length, as in period(t, '1h')")));
            };
            let value = value.bind(schema)?;
            let (period, datatype, nullable) = (Period::new(value.datatype, length)?, value.datatype, value.nullable);
            return Ok((Node::Period(period, Box::new(value)), datatype, nullable));
        }
        let bound = args.iter().map(|arg| arg.bind(schema)).collect::<Result<Vec<_>>>()?;
        if name == "coalesce" {
            let bound = bound.into_iter().map(|arg| arg.decoded(schema)).collect::<Result<Vec<_>>>()?;
            return self.coalesce(bound);
        }
        let [arg] = <[BoundExpression; 1]>::try_from(bound).map_err(|_| self.unknown(name, args.len()))?;
        let (nullable, datatype) = (arg.nullable, arg.datatype);
        if let Some(function) = NumberFunction::named(name) {
            let Kind::Number(datatype) = arg.kind(schema)? else { return Err(self.unfit(&[&arg])) };
            let result = match datatype {
                _ if datatype.is_float() || !function.keeps_integers() => Datatype::Float64,
                Datatype::UInt64 => Datatype::UInt64,
                _ => Datatype::Int64,
            };
            return Ok((Node::Number(function, Box::new(arg)), result, nullable));
        }
        if let Some(part) = Part::named(name) {
            let Datatype::Datetime(step) = datatype else { return Err(self.unfit(&[&arg])) };
            // NaT has no part.
            return Ok((Node::Part(part, step, Box::new(arg)), Datatype::Int64, true));
        }
        let (function, result) = match name {
            "lower" => (TextFunction::Lower, Datatype::String),
            "upper" => (TextFunction::Upper, Datatype::String),
            "length" | "len" => (TextFunction::Length, Datatype::Int64),
            _ => return Err(self.unknown(name, args.len())),
        };
        let arg = arg.decoded(schema)?;
        if arg.datatype != Datatype::String {
            return Err(self.unfit(&[&arg]));
        }
        Ok((Node::OfText(function, Box::new(arg)), result, nullable))
    }

    fn coalesce(&self, args: Vec<BoundExpression>) -> Result<(Node, Datatype, bool)> {
        if args.is_empty() {
            return Err(self.unknown("coalesce", 0));
        }
        let datatype = self.shared_type(&args.iter().collect::<Vec<_>>())?;
        let nullable = args.iter().all(|arg| arg.nullable);
        Ok((Node::Coalesce(args), datatype, nullable))
    }

    /// The type of the results of several values: the one that all have. Numbers in the text take the type of the others.
    ///
    /// # Errors
    /// Input: the types differ, or a number in the text is none of that type.
    pub(super) fn shared_type(&self, args: &[&BoundExpression]) -> Result<Datatype> {
        let is_number = |arg: &BoundExpression| matches!(arg.node, Node::Integer(_) | Node::Float(_));
        let types = || args.iter().map(|arg| arg.datatype);
        let datatype = match args.iter().find(|arg| !is_number(arg)) {
            Some(arg) => arg.datatype,
            None => {
                let widest = types().find(|datatype| datatype.is_float());
                let widest = widest.or_else(|| types().find(|datatype| *datatype == Datatype::UInt64));
                widest.unwrap_or(Datatype::Int64)
            }
        };
        let fits = |arg: &&BoundExpression| match arg.node {
            Node::Integer(value) => takes(datatype, value),
            Node::Float(_) => datatype.is_float(),
            _ => arg.datatype == datatype,
        };
        if args.iter().all(fits) { Ok(datatype) } else { Err(self.unfit(args)) }
    }

    fn unknown(&self, name: &str, given: usize) -> Error {
        Error::input(format!(
            "{self}: there is no function {name:?} of {given} values; there are abs, floor, ceil, round, sqrt, exp, ln, log10, lower, \
             upper, length, like(a, 'b%'), ilike, starts_with, ends_with, contains, regexp_matches, year, month, day, hour, \
             minute, second, dayofweek, date, period(t, '1h'), coalesce(a, b, …), nullif(a, b), if(a > 1, b, c), cast(x as type) and \
             case when a > 1 then b else c end"
        ))
    }
}

/// Whether an integer in the text can be a value of a type.
fn takes(datatype: Datatype, value: i128) -> bool {
    let Element { kind, width } = datatype.element();
    let bits = u32::from(width) * 8;
    match kind {
        _ if datatype.sorting() != Sorting::Keys || datatype.is_time() => false,
        _ if datatype == Datatype::Bool => (0..=1).contains(&value),
        ElementKind::Float => true,
        ElementKind::Unsigned => (0..1i128 << bits).contains(&value),
        ElementKind::Signed => (-(1i128 << (bits - 1))..1i128 << (bits - 1)).contains(&value),
    }
}

/// What can be computed of values.
enum Kind {
    Number(Datatype),
    Time(Datatype),
    Other,
}

fn step_of(datatype: Datatype) -> Option<TimeStep> {
    match datatype {
        Datatype::Datetime(step) | Datatype::Timedelta(step) => Some(step),
        _ => None,
    }
}

fn of_literal(value: &Literal) -> Result<(Node, Datatype, bool)> {
    Ok(match value {
        Literal::Int(value) => {
            let datatype = match value {
                value if i64::try_from(*value).is_ok() => Datatype::Int64,
                value if u64::try_from(*value).is_ok() => Datatype::UInt64,
                _ => return Err(Error::input(format!("{value} does not fit 64 bits; write it as a float: {value}.0"))),
            };
            (Node::Integer(*value), datatype, false)
        }
        Literal::Float(value) => (Node::Float(*value), Datatype::Float64, false),
        Literal::Bool(value) => (Node::Integer(i128::from(*value)), Datatype::Int64, false),
        Literal::Text(text) => (Node::Text(text.clone()), Datatype::String, false),
        Literal::Bytes(_) | Literal::Datetime(..) | Literal::Timedelta(..) => {
            return Err(Error::input("bytes and times are no values of expressions"));
        }
    })
}

impl BoundExpression {
    /// A column of categories that are texts as these texts, any other expression as it is.
    ///
    /// # Errors
    /// Input: the categories are no texts.
    pub(in crate::condition) fn decoded(self, schema: &Schema) -> Result<Self> {
        let Node::Column(field @ Field { place: Place::Attr(place), .. }) = self.node else { return Ok(self) };
        let Some(categories) = schema.attrs().get(place).and_then(|attr| attr.categories()) else { return Ok(self) };
        if categories.datatype() != Datatype::String {
            return Err(Error::input(format!(
                "{} has categories of {}; only those of texts are computed with",
                self.text,
                categories.datatype()
            )));
        }
        let texts = categories.values().map(|value| String::from_utf8_lossy(value).into_owned()).collect();
        Ok(Self { node: Node::Category(field, texts), datatype: Datatype::String, ..self })
    }

    /// A column of categories that compare otherwise than their codes as these texts, any other expression as it is.
    ///
    /// # Errors
    /// Input: the categories are no texts.
    pub fn comparable(self, schema: &Schema) -> Result<Self> {
        let Some(Place::Attr(place)) = self.plain() else { return Ok(self) };
        let categories = schema.attrs().get(place).and_then(|attr| attr.categories());
        if categories.is_none_or(Categories::ascend) { Ok(self) } else { self.decoded(schema) }
    }

    /// As it was written.
    pub(in crate::condition) fn text(&self) -> &str {
        &self.text
    }

    fn kind(&self, schema: &Schema) -> Result<Kind> {
        if let Node::Column(Field { place: Place::Attr(place), .. }) = &self.node
            && schema.attrs().get(*place).is_some_and(|attr| attr.categories().is_some())
        {
            return Err(Error::input(format!("{} has categories, with which nothing is computed", self.text)));
        }
        Ok(match self.datatype {
            datatype if datatype.is_time() => Kind::Time(datatype),
            datatype if datatype.sorting() == Sorting::Keys => Kind::Number(datatype),
            _ => Kind::Other,
        })
    }

    /// The type of its values.
    pub fn datatype(&self) -> Datatype {
        self.datatype
    }

    /// Whether a value may be null.
    pub fn nullable(&self) -> bool {
        self.nullable
    }

    /// The column that it is, if it is nothing else.
    pub fn plain(&self) -> Option<Place> {
        if let Node::Column(field) = &self.node { Some(field.place) } else { None }
    }

    /// The columns that its evaluation needs.
    pub fn columns(&self) -> Needed {
        let mut needed = Needed::default();
        self.gather(&mut needed);
        for places in [&mut needed.dims, &mut needed.attrs] {
            places.sort_unstable();
            places.dedup();
        }
        needed
    }

    pub(super) fn gather(&self, needed: &mut Needed) {
        match &self.node {
            Node::Column(field) | Node::Category(field, _) => match field.place {
                Place::Dim(axis) => needed.dims.push(axis),
                Place::Text { axis, words } => needed.dims.extend(axis..axis + words),
                Place::Attr(place) => needed.attrs.push(place),
            },
            Node::Integer(_) | Node::Float(_) | Node::Text(_) => {}
            Node::Binary(_, left, right, _) => {
                left.gather(needed);
                right.gather(needed);
            }
            Node::Negate(arg)
            | Node::Number(_, arg)
            | Node::OfText(_, arg)
            | Node::Search(_, arg)
            | Node::Part(_, _, arg)
            | Node::Period(_, arg)
            | Node::Cast(arg) => arg.gather(needed),
            Node::Coalesce(args) => args.iter().for_each(|arg| arg.gather(needed)),
            Node::Case(case) => case.gather(needed),
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column { column } if super::super::token::is_plain(column) => f.write_str(column),
            Self::Column { column } => write!(f, "\"{}\"", column.replace('"', "\"\"")),
            Self::Literal { value } => write!(f, "{value}"),
            Self::Negate { arg } => write!(f, "-({arg})"),
            Self::Binary { operator, left, right } => write!(f, "({left} {} {right})", operator.symbol()),
            Self::Cast { arg, to } => write!(f, "cast({arg} as {to})"),
            Self::Function { name, args } => {
                let args: Vec<String> = args.iter().map(Self::to_string).collect();
                write!(f, "{name}({})", args.join(", "))
            }
            Self::Case { whens, otherwise } => {
                f.write_str("case")?;
                for When { condition, then } in whens {
                    write!(f, " when {} then ", **condition)?;
                    match then {
                        Some(value) => value.fmt(f)?,
                        None => f.write_str("null")?,
                    }
                }
                if let Some(value) = otherwise {
                    write!(f, " else {value}")?;
                }
                f.write_str(" end")
            }
        }
    }
}
