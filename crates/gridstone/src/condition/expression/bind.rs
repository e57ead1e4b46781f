//! Binds an expression to a schema: names become columns, and every node gets a type.

use super::super::bind::{Bound, Field, Needed, Place, find, needed};
use super::super::tree::{Condition, Literal};
use super::arithmetic::NumberFunction;
use super::cast::{can_cast, makes_nulls};
use super::choice::BoundWhen;
use super::function::TextFunction;
use super::period::{Part, Period};
use super::search::{Pattern, Search};
use super::step::common_step;
use super::tree::type_named;
use super::{Expression, Operator, When};
use crate::base::{ElementKind, Error, Result};
use crate::schema::{Categories, Datatype, Schema, Sorting, TimeStep};
use std::sync::Arc;

/// A node of a bound expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Column(Field),
    /// The values of a column of categories.
    Category(Field, Arc<Categories>),
    /// An integer, a bool, or a time in ticks.
    Integer(i128),
    Float(f64),
    /// Text, or bytes.
    Run(Vec<u8>),
    Negate(Box<BoundExpression>),
    /// Whether it is computed in floats.
    Binary(Operator, Box<BoundExpression>, Box<BoundExpression>, bool),
    Number(NumberFunction, Box<BoundExpression>),
    OfText(TextFunction, Box<BoundExpression>),
    Search(Pattern, Box<BoundExpression>),
    /// A search for a text that is computed too.
    SearchFor(Search, Box<BoundExpression>, Box<BoundExpression>),
    Part(Part, TimeStep, Box<BoundExpression>),
    Period(Period, Box<BoundExpression>),
    Coalesce(Vec<BoundExpression>),
    Case(Vec<BoundWhen>, Option<Box<BoundExpression>>),
    Cast(Box<BoundExpression>),
    /// A condition, and its opposite; where neither is true, null.
    Truth(Bound, Bound),
}

/// A node, the type of its values, and whether these may be null.
pub(super) type Typed = (Node, Datatype, bool);

/// An expression bound to a schema: checked, and ready to be evaluated on columns of that schema.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundExpression {
    pub(super) node: Node,
    pub(super) datatype: Datatype,
    pub(super) nullable: bool,
    /// As it was written, for errors.
    pub(in crate::condition) text: String,
}

impl Expression {
    /// Checks names and types against `schema`. A column by itself gives what it stores, of categories their codes.
    ///
    /// # Errors
    /// Input: it names what does not fit.
    pub fn bind(&self, schema: &Schema) -> Result<BoundExpression> {
        self.check()?;
        let Self::Column { column } = self else { return self.value(schema) };
        let field = find(schema, column)?;
        let (node, datatype, nullable) = (Node::Column(field), field.datatype, field.nullable);
        Ok(BoundExpression { node, datatype, nullable, text: self.to_string() })
    }

    /// The same, as a part of a computation: of categories their values.
    pub(in crate::condition) fn value(&self, schema: &Schema) -> Result<BoundExpression> {
        let (node, datatype, nullable) = match self {
            Self::Column { column } => column_value(schema, column)?,
            Self::Literal { value } => of_literal(value)?,
            Self::Negate { arg } => {
                let arg = arg.value(schema)?;
                let datatype = match arg.datatype {
                    datatype if datatype.is_float() => Datatype::Float64,
                    datatype if is_number(datatype) => Datatype::Int64,
                    datatype @ Datatype::Timedelta(_) => datatype,
                    _ => return Err(self.unfit(&[&arg])),
                };
                let nullable = arg.nullable;
                (Node::Negate(Box::new(arg)), datatype, nullable)
            }
            Self::Binary { operator, left, right } => {
                self.binary(*operator, left.value(schema)?, right.value(schema)?)?
            }
            Self::Function { name, args } => {
                let args = args.iter().map(|arg| arg.value(schema)).collect::<Result<Vec<_>>>()?;
                self.function(name, args)?
            }
            Self::Cast { arg, to } => {
                let (arg, to) = (arg.value(schema)?, type_named(to)?);
                if !can_cast(arg.datatype, to) {
                    return Err(self.unfit(&[&arg]));
                }
                let nullable = arg.nullable || makes_nulls(arg.datatype, to);
                (Node::Cast(Box::new(arg)), to, nullable)
            }
            Self::Case { whens, otherwise } => self.case(schema, whens, otherwise.as_deref())?,
            Self::Condition { condition } => {
                let not = Condition::Not { arg: condition.clone() };
                let (is, not) = (condition.bind_part(schema)?, not.bind_part(schema)?);
                let nullable = is.may_be_unknown() || not.may_be_unknown();
                (Node::Truth(is, not), Datatype::Bool, nullable)
            }
        };
        Ok(BoundExpression { node, datatype, nullable, text: self.to_string() })
    }

    /// The error of values that do not fit what is computed.
    pub(super) fn unfit(&self, args: &[&BoundExpression]) -> Error {
        let types: Vec<String> = args.iter().map(|arg| format!("{} is {}", arg.text, arg.datatype)).collect();
        Error::input(format!("{self} cannot be computed: {}", types.join(", ")))
    }

    fn binary(&self, operator: Operator, left: BoundExpression, right: BoundExpression) -> Result<Typed> {
        if left.datatype.is_time() || right.datatype.is_time() {
            return self.of_times(operator, left, right);
        }
        let (a, b) = (left.datatype, right.datatype);
        if !is_number(a) || !is_number(b) {
            return Err(self.unfit(&[&left, &right]));
        }
        let datatype = match operator {
            Operator::Divide => Datatype::Float64,
            _ if a.is_float() || b.is_float() => Datatype::Float64,
            _ if a == Datatype::UInt64 || b == Datatype::UInt64 => Datatype::UInt64,
            _ => Datatype::Int64,
        };
        let divides = matches!(operator, Operator::FloorDivide | Operator::Remainder) && !datatype.is_float();
        let nullable = left.nullable || right.nullable || divides;
        let float = datatype.is_float();
        Ok((Node::Binary(operator, Box::new(left), Box::new(right), float), datatype, nullable))
    }

    /// An operator beside a time. Both sides are counted in the finer step first.
    fn of_times(&self, operator: Operator, left: BoundExpression, right: BoundExpression) -> Result<Typed> {
        use Datatype::{Datetime, Timedelta};
        let (a, b) = (left.datatype, right.datatype);
        let nullable = left.nullable || right.nullable;
        let whole = |datatype: Datatype| is_number(datatype) && !datatype.is_float();
        if let (Operator::Multiply, Timedelta(_), true) | (Operator::Multiply, _, false) = (operator, a, whole(b))
            && (matches!(a, Timedelta(_)) && whole(b) || matches!(b, Timedelta(_)) && whole(a))
        {
            let datatype = if a.is_time() { a } else { b };
            return Ok((Node::Binary(operator, Box::new(left), Box::new(right), false), datatype, nullable));
        }
        let step = common_step(a, b).ok_or_else(|| self.unfit(&[&left, &right]))?;
        let (result, to) = match (operator, a, b) {
            (Operator::Subtract, Datetime(_), Datetime(_)) => (Timedelta(step), (Datetime(step), Datetime(step))),
            (Operator::Add | Operator::Subtract, Datetime(_), Timedelta(_)) => {
                (Datetime(step), (Datetime(step), Timedelta(step)))
            }
            (Operator::Add, Timedelta(_), Datetime(_)) => (Datetime(step), (Timedelta(step), Datetime(step))),
            (Operator::Add | Operator::Subtract, Timedelta(_), Timedelta(_)) => {
                (Timedelta(step), (Timedelta(step), Timedelta(step)))
            }
            (Operator::Divide, Timedelta(_), Timedelta(_)) => (Datatype::Float64, (Timedelta(step), Timedelta(step))),
            _ => return Err(self.unfit(&[&left, &right])),
        };
        let sides = (Box::new(left.counted_as(to.0)), Box::new(right.counted_as(to.1)));
        Ok((Node::Binary(operator, sides.0, sides.1, operator == Operator::Divide), result, nullable))
    }

    fn case(&self, schema: &Schema, whens: &[When], otherwise: Option<&Self>) -> Result<Typed> {
        let mut bound = Vec::with_capacity(whens.len());
        for When { when, then } in whens {
            let then = then.as_ref().map(|then| then.value(schema)).transpose()?;
            bound.push(BoundWhen { when: when.bind_part(schema)?, then });
        }
        let otherwise = otherwise.map(|value| value.value(schema)).transpose()?;
        let values: Vec<&BoundExpression> =
            bound.iter().filter_map(|when| when.then.as_ref()).chain(&otherwise).collect();
        let datatype = common(&values).ok_or_else(|| self.unfit(&values))?;
        let nullable = values.len() <= bound.len() || values.iter().any(|value| value.nullable);
        Ok((Node::Case(bound, otherwise.map(Box::new)), datatype, nullable))
    }
}

/// Whether something is computed with values of a type as with numbers; bools count as 0 and 1.
pub(super) fn is_number(datatype: Datatype) -> bool {
    datatype.sorting() == Sorting::Keys && !datatype.is_time()
}

fn column_value(schema: &Schema, column: &str) -> Result<Typed> {
    let field = find(schema, column)?;
    let attr = if let Place::Attr(place) = field.place { schema.attrs().get(place) } else { None };
    Ok(match attr.and_then(|attr| attr.categories()) {
        Some(categories) => {
            (Node::Category(field, Arc::new(categories.clone())), categories.datatype(), field.nullable)
        }
        None => (Node::Column(field), field.datatype, field.nullable),
    })
}

fn of_literal(value: &Literal) -> Result<Typed> {
    let (node, datatype) = match value {
        Literal::Int(value) => {
            let datatype = match value {
                value if i64::try_from(*value).is_ok() => Datatype::Int64,
                value if u64::try_from(*value).is_ok() => Datatype::UInt64,
                _ => return Err(Error::input(format!("{value} does not fit 64 bits; write it as a float: {value}.0"))),
            };
            (Node::Integer(*value), datatype)
        }
        Literal::Float(value) => (Node::Float(*value), Datatype::Float64),
        Literal::Bool(value) => (Node::Integer(i128::from(*value)), Datatype::Bool),
        Literal::Text(text) => (Node::Run(text.as_bytes().to_vec()), Datatype::String),
        Literal::Bytes(bytes) => (Node::Run(bytes.clone()), Datatype::Bytes),
        Literal::Datetime(ticks, unit) => (Node::Integer((*ticks).into()), Datatype::Datetime(unit.step())),
        Literal::Timedelta(ticks, unit) => (Node::Integer((*ticks).into()), Datatype::Timedelta(unit.step())),
    };
    Ok((node, datatype, false))
}

/// Whether an integer is a value of a type of integers.
fn holds(datatype: Datatype, value: i128) -> bool {
    let element = datatype.element();
    let bits = u32::from(element.width) * 8;
    match element.kind {
        ElementKind::Unsigned => (0..1i128 << bits).contains(&value),
        ElementKind::Signed => (-(1i128 << (bits - 1))..1i128 << (bits - 1)).contains(&value),
        ElementKind::Float => false,
    }
}

/// The type of a choice among values: their own, in which numbers that are written out take part if they fit; else
/// that of a sum of numbers, or the finest step of times. `None`: there is none.
pub(super) fn common(values: &[&BoundExpression]) -> Option<Datatype> {
    let first = values.first()?.datatype;
    if values.iter().all(|value| value.datatype == first) {
        return Some(first);
    }
    let numbers = values.iter().all(|value| is_number(value.datatype) && value.datatype != Datatype::Bool);
    if !numbers {
        return values.iter().try_fold(first, |found, value| {
            let step = common_step(found, value.datatype)?;
            match (found, value.datatype) {
                (Datatype::Datetime(_), Datatype::Datetime(_)) => Some(Datatype::Datetime(step)),
                (Datatype::Timedelta(_), Datatype::Timedelta(_)) => Some(Datatype::Timedelta(step)),
                _ => None,
            }
        });
    }
    let strong = |value: &&&BoundExpression| !matches!(value.node, Node::Integer(_) | Node::Float(_));
    if let Some(own) = values.iter().find(strong).map(|value| value.datatype) {
        let fits = |value: &&BoundExpression| match value.node {
            Node::Integer(number) => own.is_float() || holds(own, number),
            Node::Float(_) => own.is_float(),
            _ => value.datatype == own,
        };
        if values.iter().all(fits) {
            return Some(own);
        }
    }
    Some(match () {
        () if values.iter().any(|value| value.datatype.is_float()) => Datatype::Float64,
        () if values.iter().any(|value| value.datatype == Datatype::UInt64) => Datatype::UInt64,
        () => Datatype::Int64,
    })
}

impl BoundExpression {
    /// The same time in other ticks.
    fn counted_as(self, datatype: Datatype) -> Self {
        if self.datatype == datatype {
            return self;
        }
        let (nullable, text) = (self.nullable, self.text.clone());
        Self { node: Node::Cast(Box::new(self)), datatype, nullable, text }
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
        let mut places = Vec::new();
        self.gather(&mut places);
        needed(places)
    }

    /// Adds the columns that its evaluation needs.
    pub(in crate::condition) fn gather(&self, places: &mut Vec<Place>) {
        match &self.node {
            Node::Column(field) | Node::Category(field, _) => places.push(field.place),
            Node::Integer(_) | Node::Float(_) | Node::Run(_) => {}
            Node::Binary(_, left, right, _) | Node::SearchFor(_, left, right) => {
                left.gather(places);
                right.gather(places);
            }
            Node::Negate(arg)
            | Node::Number(_, arg)
            | Node::OfText(_, arg)
            | Node::Search(_, arg)
            | Node::Part(_, _, arg)
            | Node::Period(_, arg)
            | Node::Cast(arg) => arg.gather(places),
            Node::Coalesce(args) => args.iter().for_each(|arg| arg.gather(places)),
            Node::Case(whens, otherwise) => {
                for BoundWhen { when, then } in whens {
                    when.gather(places);
                    then.iter().for_each(|then| then.gather(places));
                }
                otherwise.iter().for_each(|value| value.gather(places));
            }
            Node::Truth(is, not) => {
                is.gather(places);
                not.gather(places);
            }
        }
    }
}
