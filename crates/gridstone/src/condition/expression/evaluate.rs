//! Evaluates a bound expression: one pass per node over whole columns.

use super::super::batch::Batch;
use super::super::bind::{Field, Place};
use super::arithmetic::{joined, negated, too_large};
use super::bind::{BoundExpression, Node};
use super::cast::cast;
use super::function::TextFunction;
use super::vector::{Values, Vector, both};
use super::{Operator, choice};
use crate::base::{AlignedBuf, Error, Result};
use crate::schema::{Categories, Datatype};
use crate::tile::coordinates::coordinate_column;
use crate::tile::{Column, ColumnView};
use std::borrow::Cow;

impl BoundExpression {
    /// The value of each row.
    ///
    /// # Errors
    /// Input: a result that does not fit its type; the batch lacks a column.
    pub fn evaluate(&self, batch: &Batch<'_>) -> Result<Column> {
        let rows = batch.rows();
        match &self.node {
            Node::Column(field) => column_of(*field, batch),
            Node::Category(field, categories) => decoded(categories, column_of(*field, batch)?.view()),
            Node::Run(run) => repeated(run, self.datatype, rows),
            Node::OfText(function, arg) => of_text(*function, arg.evaluate(batch)?.view()),
            Node::Search(pattern, arg) => {
                let found = arg.evaluate(batch)?;
                truths(
                    rows,
                    |row| pattern.holds(&text_at(found.view(), row)),
                    found.view().validity().map(<[u8]>::to_vec),
                )
            }
            Node::SearchFor(search, arg, part) => {
                let (found, part) = (arg.evaluate(batch)?, part.evaluate(batch)?);
                let (found, part) = (found.view(), part.view());
                let flags = |view: ColumnView<'_>| view.validity().map(<[u8]>::to_vec);
                let valid = both(flags(found).as_ref(), flags(part).as_ref());
                truths(rows, |row| search.holds(&text_at(found, row), &text_at(part, row)), valid)
            }
            Node::Coalesce(args) => choice::coalesce(args, self.datatype, batch),
            Node::Case(whens, otherwise) => choice::case((whens, otherwise.as_deref()), self.datatype, batch),
            Node::Cast(arg) => cast(arg.evaluate(batch)?, self.datatype, &self.text),
            Node::Truth(is, not) => {
                let (is, not) = (is.evaluate(batch)?, not.evaluate(batch)?);
                let known = (0..rows).map(|row| u8::from(is.contains(row) || not.contains(row))).collect();
                truths(rows, |row| is.contains(row), Some(known))
            }
            _ => self.vector(batch)?.into_column(self.datatype, &self.text),
        }
    }

    /// The values of each row in another type.
    pub(super) fn evaluate_as(&self, datatype: Datatype, batch: &Batch<'_>) -> Result<Column> {
        cast(self.evaluate(batch)?, datatype, &self.text)
    }

    /// The numbers that a node computes.
    fn vector(&self, batch: &Batch<'_>) -> Result<Vector> {
        let rows = batch.rows();
        Ok(match &self.node {
            Node::Column(field) => match batch.column(*field)? {
                Some(view) => Vector::of(view),
                None => Vector::of(self.evaluate(batch)?.view()),
            },
            Node::Integer(value) => {
                let values = match u64::try_from(*value) {
                    Ok(value) if self.datatype == Datatype::UInt64 => Values::Unsigned(vec![value; rows]),
                    _ => Values::Signed(vec![i64::try_from(*value).unwrap_or(i64::MAX); rows]),
                };
                Vector { values, valid: None }
            }
            Node::Float(value) => Vector { values: Values::Float(vec![*value; rows]), valid: None },
            Node::Negate(arg) if arg.datatype.is_time() => self.times(arg.vector(batch)?, i64::checked_neg)?,
            Node::Negate(arg) => negated(arg.vector(batch)?, &self.text)?,
            Node::Binary(operator, left, right, float) => self.binary(*operator, (left, right), *float, batch)?,
            Node::Number(function, arg) => function.of(arg.vector(batch)?, &self.text)?,
            Node::Part(part, step, arg) => {
                let found = arg.vector(batch)?;
                let mut valid = found.valid.clone().unwrap_or_else(|| vec![1; found.len()]);
                let Values::Signed(ticks) = &found.values else { return Err(unlike()) };
                valid.iter_mut().zip(ticks).for_each(|(flag, tick)| *flag &= u8::from(*tick != i64::MIN));
                let each = ticks.iter().zip(&valid).map(|(tick, ok)| if *ok == 0 { 0 } else { part.of(*tick, *step) });
                Vector { values: Values::Signed(each.collect()), valid: Some(valid).filter(|v| v.contains(&0)) }
            }
            Node::Period(period, arg) => self.times(arg.vector(batch)?, |tick| period.start(tick))?,
            _ => Vector::of(self.evaluate(batch)?.view()),
        })
    }

    /// Both sides joined. NaT on a side makes the result NaT, or NaN.
    fn binary(
        &self,
        operator: Operator,
        (left, right): (&Self, &Self),
        float: bool,
        batch: &Batch<'_>,
    ) -> Result<Vector> {
        let (a, b) = (left.vector(batch)?, right.vector(batch)?);
        let times = [(left, &a), (right, &b)].into_iter().filter(|(side, _)| side.datatype.is_time());
        let nats = nats(batch.rows(), &times.map(|(_, vector)| vector).collect::<Vec<_>>());
        let blank = |vector: Vector| blanked(vector, &nats);
        let unsigned = self.datatype == Datatype::UInt64;
        let made = joined(operator, (blank(a), blank(b)), (float, unsigned), &self.text)?;
        let made = with_nats(made, &nats);
        match (&made.values, self.datatype.is_time()) {
            // The least of 64 bits stands for NaT alone.
            (Values::Signed(ticks), true) if ticks.iter().filter(|tick| **tick == i64::MIN).count() > nats.len() => {
                Err(too_large(&self.text))
            }
            _ => Ok(made),
        }
    }

    /// The ticks that `each` makes of ticks; NaT stays.
    fn times(&self, found: Vector, each: impl Fn(i64) -> Option<i64>) -> Result<Vector> {
        let Values::Signed(ticks) = &found.values else { return Err(unlike()) };
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
        Ok(Vector { values: Values::Signed(made), valid: found.valid })
    }
}

/// The error of times that are no ticks, which no column gives.
pub(super) fn unlike() -> Error {
    Error::input("times are counted in signed ticks")
}

/// The rows at which a time is NaT.
fn nats(rows: usize, sides: &[&Vector]) -> Vec<usize> {
    let is_nat = |vector: &Vector, row: usize| matches!(&vector.values, Values::Signed(ticks) if ticks.get(row) == Some(&i64::MIN));
    if sides.is_empty() {
        return Vec::new();
    }
    (0..rows).filter(|row| sides.iter().any(|side| is_nat(side, *row))).collect()
}

/// The same with 0 at some rows.
fn blanked(mut vector: Vector, rows: &[usize]) -> Vector {
    put(&mut vector, rows, 0);
    vector
}

fn with_nats(mut vector: Vector, rows: &[usize]) -> Vector {
    put(&mut vector, rows, i64::MIN);
    if let Values::Float(values) = &mut vector.values {
        rows.iter().for_each(|row| values.get_mut(*row).into_iter().for_each(|slot| *slot = f64::NAN));
    }
    vector
}

fn put(vector: &mut Vector, rows: &[usize], tick: i64) {
    if let Values::Signed(ticks) = &mut vector.values {
        rows.iter().for_each(|row| ticks.get_mut(*row).into_iter().for_each(|slot| *slot = tick));
    }
}

/// The values of codes.
fn decoded(categories: &Categories, codes: ColumnView<'_>) -> Result<Column> {
    let datatype = categories.datatype();
    let all: Vec<&[u8]> = categories.values().collect();
    let blank = vec![0; datatype.width().unwrap_or(0)];
    let found = Vector::of(codes);
    let (mut bytes, mut offsets) = (Vec::new(), vec![0u64]);
    for row in 0..codes.len() {
        let code = usize::try_from(found.integer(row)).ok().filter(|_| found.is_valid(row));
        bytes.extend_from_slice(code.and_then(|code| all.get(code).copied()).unwrap_or(&blank));
        offsets.push(bytes.len() as u64);
    }
    Column::new(datatype, AlignedBuf::from_slice(&bytes), datatype.is_var().then_some(offsets), found.valid)
}

/// The same text or bytes for each row.
fn repeated(run: &[u8], datatype: Datatype, rows: usize) -> Result<Column> {
    let offsets = (0..=rows).map(|row| (row * run.len()) as u64).collect();
    Column::new(datatype, AlignedBuf::from_slice(&run.repeat(rows)), Some(offsets), None)
}

/// A bool for each row.
fn truths(rows: usize, each: impl Fn(usize) -> bool, valid: Option<Vec<u8>>) -> Result<Column> {
    let bytes: Vec<u8> = (0..rows).map(|row| u8::from(each(row))).collect();
    Column::new(Datatype::Bool, AlignedBuf::from_slice(&bytes), None, valid.filter(|valid| valid.contains(&0)))
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

/// The text of a row.
pub(super) fn text_at(view: ColumnView<'_>, row: usize) -> Cow<'_, str> {
    String::from_utf8_lossy(view.value(row))
}

fn of_text(function: TextFunction, view: ColumnView<'_>) -> Result<Column> {
    let rows = 0..view.len();
    let valid = view.validity().map(<[u8]>::to_vec);
    match function {
        TextFunction::Lower => texts(rows.map(|row| text_at(view, row).to_lowercase()), valid),
        TextFunction::Upper => texts(rows.map(|row| text_at(view, row).to_uppercase()), valid),
        TextFunction::Length => {
            let count = |row: usize| text_at(view, row).chars().count() as i64;
            Vector { values: Values::Signed(rows.map(count).collect()), valid }.into_column(Datatype::Int64, "length")
        }
    }
}

/// A column of texts.
pub(super) fn texts(all: impl Iterator<Item = impl AsRef<str>>, valid: Option<Vec<u8>>) -> Result<Column> {
    let (mut bytes, mut offsets) = (Vec::new(), vec![0u64]);
    for text in all {
        bytes.extend_from_slice(text.as_ref().as_bytes());
        offsets.push(bytes.len() as u64);
    }
    Column::new(Datatype::String, AlignedBuf::from_slice(&bytes), Some(offsets), valid)
}
