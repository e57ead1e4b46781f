//! Stub, to be replaced.
use super::batch::Batch;
use super::bind::{Needed, Place};
use super::tree::Literal;
use crate::base::{Error, Result};
use crate::schema::{Datatype, Schema};
use crate::tile::Column;

/// A value per cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// A column.
    Column {
        /// Its name.
        column: String,
    },
    /// A literal.
    Literal {
        /// It.
        value: Literal,
    },
}

/// Bound.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundExpression {
    place: Place,
    datatype: Datatype,
    nullable: bool,
}

impl Expression {
    /// Parses.
    pub fn parse(text: &str) -> Result<Self> {
        match text.trim().parse::<f64>() {
            Ok(value) => Ok(Self::Literal { value: Literal::Float(value) }),
            Err(_) => Ok(Self::Column { column: text.trim().to_owned() }),
        }
    }

    /// Binds.
    pub fn bind(&self, schema: &Schema) -> Result<BoundExpression> {
        let Self::Column { column } = self else { return Err(Error::input("stub")) };
        if let Some(dim) = schema.coordinates().find(|d| d.name() == column) {
            let axes = dim.axes();
            let place = match dim.number() {
                Some(_) => Place::Dim(axes.start),
                None => Place::Text { axis: axes.start, words: axes.len() },
            };
            return Ok(BoundExpression { place, datatype: dim.datatype(), nullable: false });
        }
        let (place, attr) = schema.attr(column)?;
        Ok(BoundExpression { place: Place::Attr(place), datatype: attr.datatype(), nullable: attr.nullable() })
    }
}

impl BoundExpression {
    /// Its type.
    pub fn datatype(&self) -> Datatype {
        self.datatype
    }
    /// Nullable.
    pub fn nullable(&self) -> bool {
        self.nullable
    }
    /// Columns.
    pub fn columns(&self) -> Needed {
        let mut needed = Needed::default();
        match self.place {
            Place::Dim(axis) => needed.dims.push(axis),
            Place::Text { axis, words } => needed.dims.extend(axis..axis + words),
            Place::Attr(place) => needed.attrs.push(place),
        }
        needed
    }
    /// Plain.
    pub fn plain(&self) -> Option<Place> {
        Some(self.place)
    }
    /// Evaluates.
    pub fn evaluate(&self, _batch: &Batch<'_>) -> Result<Column> {
        Err(Error::input("stub"))
    }
}

/// An aggregate as written.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// Distinct.
    pub distinct: bool,
    /// Star.
    pub star: bool,
    /// Arguments.
    pub args: Vec<Expression>,
}

impl Call {
    /// Parses.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || Error::input(format!("{text:?} is no aggregate"));
        let (name, rest) = text.trim().strip_suffix(')').and_then(|t| t.split_once('(')).ok_or_else(wrong)?;
        let (distinct, rest) = rest.strip_prefix("distinct ").map_or((false, rest), |rest| (true, rest));
        let star = rest.trim() == "*";
        let args = if star || rest.trim().is_empty() {
            Vec::new()
        } else {
            rest.split(',').map(Expression::parse).collect::<Result<_>>()?
        };
        Ok(Self { name: name.trim().to_lowercase(), distinct, star, args })
    }
}
