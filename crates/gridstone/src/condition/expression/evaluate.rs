//! Evaluates a bound expression: one pass per node over whole columns.

use super::super::batch::Batch;
use super::super::bind::{Field, Place};
use super::super::selection::Selection;
use super::arithmetic::{joined, negated};
use super::bind::{BoundExpression, Node, TextFunction};
use super::pick::Pick;
use super::search::Search;
use super::vector::Vector;
use crate::base::{AlignedBuf, Error, Result};
use crate::schema::Datatype;
use crate::tile::coordinates::coordinate_column;
use crate::tile::{Column, ColumnView, Numbers};

impl BoundExpression {
    /// The value of each row.
    ///
    /// # Errors
    /// Input: a result that does not fit its type; the batch lacks a column.
    pub fn evaluate(&self, batch: &Batch<'_>) -> Result<Column> {
        let rows = batch.rows();
        match &self.node {
            Node::Column(field) => column_of(*field, batch),
            Node::Text(text) => texts(std::iter::repeat_n(text.as_str(), rows), None),
            Node::OfText(function, arg) => of_text(*function, arg.evaluate(batch)?.view()),
            Node::Search(search, arg) => found_in(search, arg.evaluate(batch)?.view()),
            Node::Category(field, names) => categories(names, column_of(*field, batch)?.view()),
            Node::Coalesce(args) => self.coalesced(args, batch),
            Node::Case(case) => case.evaluate(self.datatype, self.nullable, batch),
            _ => self.vector(batch)?.into_column(self.datatype, &self.text),
        }
    }

    /// The value of each row, a number as one of another type.
    ///
    /// # Errors
    /// As [`BoundExpression::evaluate`].
    pub(super) fn evaluate_as(&self, datatype: Datatype, batch: &Batch<'_>) -> Result<Column> {
        match self.datatype == datatype {
            true => self.evaluate(batch),
            false => self.vector(batch)?.into_column(datatype, &self.text),
        }
    }

    /// The numbers that a node computes.
    fn vector(&self, batch: &Batch<'_>) -> Result<Vector> {
        let rows = batch.rows();
        Ok(match &self.node {
            Node::Integer(value) => {
                let values = match u64::try_from(*value) {
                    Ok(value) if self.datatype == Datatype::UInt64 => Numbers::Unsigned(vec![value; rows]),
                    _ => Numbers::Signed(vec![i64::try_from(*value).unwrap_or(i64::MAX); rows]),
                };
                Vector { values, valid: None }
            }
            Node::Float(value) => Vector { values: Numbers::Float(vec![*value; rows]), valid: None },
            Node::Negate(arg) if arg.datatype.is_time() => self.times(arg.vector(batch)?, i64::checked_neg)?,
            Node::Negate(arg) => negated(arg.vector(batch)?, &self.text)?,
            Node::Binary(operator, left, right, float) => {
                let (a, b) = (left.vector(batch)?, right.vector(batch)?);
                let nats = if self.datatype.is_time() { nats(&[&a, &b]) } else { Vec::new() };
                let blank = |vector: Vector| blanked(vector, &nats);
                let unsigned = self.datatype == Datatype::UInt64;
                let made = joined(*operator, (blank(a), blank(b)), (*float, unsigned), &self.text)?;
                with_nats(made, &nats)
            }
            Node::Number(function, arg) => function.of(arg.vector(batch)?, &self.text)?,
            Node::Part(part, step, arg) => {
                let found = arg.vector(batch)?;
                let mut valid = found.valid.clone().unwrap_or_else(|| vec![1; found.len()]);
                let Numbers::Signed(ticks) = &found.values else { return Err(unlike()) };
                valid.iter_mut().zip(ticks).for_each(|(flag, tick)| *flag &= u8::from(*tick != i64::MIN));
                let each = ticks.iter().zip(&valid).map(|(tick, ok)| if *ok == 0 { 0 } else { part.of(*tick, *step) });
                Vector { values: Numbers::Signed(each.collect()), valid: Some(valid).filter(|v| v.contains(&0)) }
            }
            Node::Period(period, arg) => self.times(arg.vector(batch)?, |tick| period.start(tick))?,
            Node::Cast(arg) => Vector::of(arg.vector(batch)?.into_column(self.datatype, &self.text)?.view()),
            Node::Column(_)
            | Node::Text(_)
            | Node::OfText(..)
            | Node::Search(..)
            | Node::Category(..)
            | Node::Case(_)
            | Node::Coalesce(_) => Vector::of(self.evaluate(batch)?.view()),
        })
    }

    /// The ticks that `each` makes of ticks; NaT stays.
    fn times(&self, found: Vector, each: impl Fn(i64) -> Option<i64>) -> Result<Vector> {
        let Numbers::Signed(ticks) = &found.values else { return Err(unlike()) };
        let mut made = Vec::with_capacity(ticks.len());
        for (row, tick) in ticks.iter().enumerate() {
            made.push(match *tick {
                i64::MIN => i64::MIN,
                tick => match each(tick) {
                    Some(made) => made,
                    None if !found.is_valid(row) => 0,
                    None => {
                        return Err(Error::input(format!("{}: a result does not fit {}", self.text, self.datatype)));
                    }
                },
            });
        }
        Ok(Vector { values: Numbers::Signed(made), valid: found.valid })
    }

    /// The first of several values that is not null. Each is computed for the rows alone that the ones before leave null.
    fn coalesced(&self, args: &[BoundExpression], batch: &Batch<'_>) -> Result<Column> {
        let mut pick = Pick::new(self.datatype, batch);
        let mut left = Selection::all_or_none(batch.rows(), true);
        for arg in args {
            left = pick.take(arg, &left)?;
        }
        pick.into_column(self.nullable)
    }
}

fn unlike() -> Error {
    Error::input("times are signed whole numbers")
}

/// The rows at which a time is NaT.
fn nats(sides: &[&Vector]) -> Vec<usize> {
    let is_nat = |vector: &Vector, row: usize| matches!(&vector.values, Numbers::Signed(ticks) if ticks.get(row) == Some(&i64::MIN));
    let rows = sides.first().map_or(0, |side| side.len());
    (0..rows).filter(|row| sides.iter().any(|side| is_nat(side, *row))).collect()
}

/// The same with 0 at some rows.
fn blanked(mut vector: Vector, rows: &[usize]) -> Vector {
    put(&mut vector, rows, 0);
    vector
}

fn with_nats(mut vector: Vector, rows: &[usize]) -> Vector {
    put(&mut vector, rows, i64::MIN);
    vector
}

fn put(vector: &mut Vector, rows: &[usize], tick: i64) {
    if let Numbers::Signed(ticks) = &mut vector.values {
        rows.iter().for_each(|row| ticks.get_mut(*row).into_iter().for_each(|slot| *slot = tick));
    }
}

fn column_of(field: Field, batch: &Batch<'_>) -> Result<Column> {
    let copy = |view: ColumnView<'_>| view.copy_range(0, view.len());
    if let Some(view) = batch.column(field)? {
        return Ok(copy(view));
    }
    match field.place {
        Place::Text { .. } => Ok(copy(batch.texts(field)?.view())),
        Place::Dim(_) => coordinate_column(field.datatype, &batch.keys(field)?),
        Place::Attr(place) => Err(Error::input(format!("the batch lacks the values of attribute {place}"))),
    }
}

fn text_at(view: ColumnView<'_>, row: usize) -> String {
    String::from_utf8_lossy(view.value(row)).into_owned()
}

fn of_text(function: TextFunction, view: ColumnView<'_>) -> Result<Column> {
    let rows = 0..view.len();
    let valid = view.validity().map(<[u8]>::to_vec);
    match function {
        TextFunction::Lower => texts(rows.map(|row| text_at(view, row).to_lowercase()), valid),
        TextFunction::Upper => texts(rows.map(|row| text_at(view, row).to_uppercase()), valid),
        TextFunction::Length => {
            let count = |row: usize| text_at(view, row).chars().count() as i64;
            Vector { values: Numbers::Signed(rows.map(count).collect()), valid }.into_column(Datatype::Int64, "length")
        }
    }
}

/// A byte per text: whether it has what is sought.
fn found_in(search: &Search, view: ColumnView<'_>) -> Result<Column> {
    let mut found = Vec::with_capacity(view.len());
    for row in 0..view.len() {
        found.push(u8::from(search.holds(&String::from_utf8_lossy(view.value(row)))));
    }
    let valid = view.validity().map(<[u8]>::to_vec);
    Column::new(Datatype::Bool, AlignedBuf::from_slice(&found), None, valid)
}

/// The texts of codes; a code without a category has an empty one.
fn categories(names: &[String], view: ColumnView<'_>) -> Result<Column> {
    let codes = Vector::of(view);
    let name = |row: usize| usize::try_from(codes.integer(row)).ok().and_then(|code| names.get(code));
    texts((0..view.len()).map(|row| name(row).map_or("", String::as_str)), view.validity().map(<[u8]>::to_vec))
}

fn texts(all: impl Iterator<Item = impl AsRef<str>>, valid: Option<Vec<u8>>) -> Result<Column> {
    let (mut bytes, mut offsets) = (Vec::new(), vec![0u64]);
    for text in all {
        bytes.extend_from_slice(text.as_ref().as_bytes());
        offsets.push(bytes.len() as u64);
    }
    Column::new(Datatype::String, AlignedBuf::from_slice(&bytes), Some(offsets), valid)
}
