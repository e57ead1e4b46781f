//! Binds a condition to a schema: resolves names, converts literals, and pushes `not` down to the leaves.

use super::complaint::nearest;
use super::computed::{self, Computed};
use super::enumerated::{self, Asked};
use super::expression::BoundExpression;
use super::pair::Pair;
use super::simplify;
use super::tree::Condition;
use super::values::Values;
use crate::base::{Error, Result};
use crate::schema::{Attribute, Datatype, Region, Schema};
use std::sync::Arc;

/// The position of a column in the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// An axis, by its index.
    Dim(usize),
    /// A text dimension, by the index of its first axis and the number of its axes.
    Text {
        /// The first axis.
        axis: usize,
        /// How many axes it has.
        words: usize,
    },
    /// An attribute, by its index.
    Attr(usize),
}

/// The columns that a condition uses, by index in the schema, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needed {
    /// Axes.
    pub dims: Vec<usize>,
    /// Attributes.
    pub attrs: Vec<usize>,
}

/// A column of the schema, as a leaf uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) place: Place,
    pub(super) datatype: Datatype,
    pub(super) nullable: bool,
}

impl Field {
    /// Whether it may have NaN or NaT: coordinates never do.
    pub(super) fn may_be_nan(self) -> bool {
        matches!(self.place, Place::Attr(_)) && (self.datatype.is_float() || self.datatype.is_time())
    }
}

/// A node of a bound condition. Every node determines which rows are *true*.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Constant(bool),
    /// Rows with a value.
    Valid(Field),
    /// Rows without a value.
    Null(Field),
    /// Rows with a value in the set.
    In(Field, Values),
    Pair(Pair),
    /// Rows whose computed values pass a test.
    Computed(Box<Computed>),
    /// Rows whose cells lie in the region.
    Within(Arc<Region>),
    And(Vec<Node>),
    Or(Vec<Node>),
}

/// A condition bound to a schema: checked, and ready to be evaluated on columns of that schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    pub(super) root: Node,
}

impl Condition {
    /// Checks the condition's names and literals against `schema`; an Input error names the column, its type and what
    /// does not fit.
    pub fn bind(&self, schema: &Schema) -> Result<Bound> {
        self.check()?;
        Ok(Bound { root: build(self, schema, false)? })
    }
}

impl Bound {
    /// The columns that its evaluation needs. These are fewer than its text names if a column decides nothing.
    pub fn columns(&self) -> Needed {
        let mut places = Vec::new();
        gather(&self.root, &mut places);
        places.sort_unstable();
        places.dedup();
        let axes = |place: &Place| match place {
            Place::Dim(axis) => *axis..axis + 1,
            Place::Text { axis, words } => *axis..axis + words,
            Place::Attr(_) => 0..0,
        };
        let mut dims: Vec<usize> = places.iter().flat_map(axes).collect();
        dims.sort_unstable();
        dims.dedup();
        let attrs = places.iter().filter_map(|p| if let Place::Attr(a) = p { Some(*a) } else { None }).collect();
        Needed { dims, attrs }
    }

    /// The condition that is true for every row.
    pub fn always() -> Self {
        Self { root: Node::Constant(true) }
    }

    /// The condition that is true where this one is, for cells in `region` only.
    #[must_use]
    pub fn within(self, region: Region) -> Self {
        let inside = if region.boxes().is_empty() { Node::Constant(false) } else { Node::Within(Arc::new(region)) };
        Self { root: simplify::join(vec![inside, self.root], true) }
    }

    /// Whether its evaluation computes values, which may fail.
    pub(super) fn computes(&self) -> bool {
        fn any(node: &Node) -> bool {
            match node {
                Node::Computed(_) => true,
                Node::And(args) | Node::Or(args) => args.iter().any(any),
                _ => false,
            }
        }
        any(&self.root)
    }

    /// The constant result, if it is the same for every row of any data.
    pub fn constant(&self) -> Option<bool> {
        if let Node::Constant(value) = self.root { Some(value) } else { None }
    }
}

fn gather(node: &Node, places: &mut Vec<Place>) {
    match node {
        Node::Constant(_) => {}
        Node::Valid(field) | Node::Null(field) | Node::In(field, _) => places.push(field.place),
        Node::Computed(computed) => {
            for needed in computed.expressions().into_iter().map(BoundExpression::columns) {
                places.extend(needed.dims.into_iter().map(Place::Dim).chain(needed.attrs.into_iter().map(Place::Attr)));
            }
        }
        Node::Pair(pair) => places.extend([pair.left.place, pair.right.place]),
        Node::Within(region) => places.extend((0..region.ndim()).map(Place::Dim)),
        Node::And(args) | Node::Or(args) => args.iter().for_each(|a| gather(a, places)),
    }
}

fn build(condition: &Condition, schema: &Schema, negated: bool) -> Result<Node> {
    let find = |name: &str| find(schema, name);
    let set = |column: &str, asked: Asked<'_>| {
        let field = find(column)?;
        let values = accepted(schema, column, field, asked)?;
        let values = if negated { values.complement(field.datatype) } else { values };
        Ok(simplify::leaf(field, values))
    };
    Ok(match condition {
        Condition::True {} => Node::Constant(!negated),
        Condition::False {} => Node::Constant(negated),
        Condition::Column { column } => set(column, Asked::Flag)?,
        Condition::Compare { is, column, value } => set(column, Asked::Compared(*is, value))?,
        Condition::In { column, values } => set(column, Asked::Among(values))?,
        Condition::Between { column, low, high } => set(column, Asked::Between(low, high))?,
        Condition::CompareColumns { is, left, right } => {
            let (a, b) = (find(left)?, find(right)?);
            let categories = |field: Field| attribute_at(schema, field).and_then(Attribute::categories);
            enumerated::check_pair(*is, (left, categories(a)), (right, categories(b)))?;
            Pair::node(*is, (left, a), (right, b), negated)?
        }
        Condition::CompareValues { is, left, right } => computed::compared(*is, (left, right), schema, negated)?,
        Condition::InValues { value, values } => computed::tested(value, schema, Asked::Among(values), negated)?,
        Condition::Holds { value } => computed::tested(value, schema, Asked::Flag, negated)?,
        Condition::ValueIsNull { value } => computed::nulls(value, schema, !negated)?,
        Condition::ValueIsNotNull { value } => computed::nulls(value, schema, negated)?,
        Condition::IsNull { column } => nulls(find(column)?, !negated),
        Condition::IsNotNull { column } => nulls(find(column)?, negated),
        Condition::Not { arg } => build(arg, schema, !negated)?,
        Condition::And { args } | Condition::Or { args } => {
            let parts = args.iter().map(|a| build(a, schema, negated)).collect::<Result<Vec<_>>>()?;
            // De Morgan's laws, which hold in three-valued logic.
            let all = matches!(condition, Condition::And { .. }) != negated;
            simplify::join(parts, all)
        }
    })
}

/// The attribute of `field`, if it is one.
fn attribute_at(schema: &Schema, field: Field) -> Option<&Attribute> {
    if let Place::Attr(place) = field.place { schema.attrs().get(place) } else { None }
}

/// The stored values of a column that match `asked`.
fn accepted(schema: &Schema, column: &str, field: Field, asked: Asked<'_>) -> Result<Values> {
    let attr = attribute_at(schema, field);
    match attr.and_then(|attr| Some((attr, attr.categories()?))) {
        Some((attr, categories)) => enumerated::codes(attr, categories, asked),
        None => enumerated::values(column, field.datatype, asked),
    }
}

fn nulls(field: Field, wanted: bool) -> Node {
    match (field.nullable, wanted) {
        (false, wanted) => Node::Constant(!wanted),
        (true, true) => Node::Null(field),
        (true, false) => Node::Valid(field),
    }
}

pub(super) fn find(schema: &Schema, name: &str) -> Result<Field> {
    if let Some(dim) = schema.coordinates().find(|d| d.name() == name) {
        let axes = dim.axes();
        let place = match dim.number() {
            Some(_) => Place::Dim(axes.start),
            None => Place::Text { axis: axes.start, words: axes.len() },
        };
        return Ok(Field { place, datatype: dim.datatype(), nullable: false });
    }
    if let Some((place, attr)) = schema.attrs().iter().enumerate().find(|(_, a)| a.name() == name) {
        return Ok(Field { place: Place::Attr(place), datatype: attr.datatype(), nullable: attr.nullable() });
    }
    let names: Vec<&str> =
        schema.coordinates().map(|d| d.name()).chain(schema.attrs().iter().map(|a| a.name())).collect();
    let meant = nearest(name, names.iter().copied()).map_or(String::new(), |n| format!("; did you mean {n:?}?"));
    let shown = names.iter().take(20).copied().collect::<Vec<_>>().join(", ");
    let more = if names.len() > 20 { ", …" } else { "" };
    Err(Error::input(format!(
        "no dimension or attribute {name:?}{meant} (there are: {shown}{more}; text stands in single quotes)"
    )))
}
