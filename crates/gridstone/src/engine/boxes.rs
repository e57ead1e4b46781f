//! Boxes as callers write them.

use crate::base::{Error, Result};
use crate::schema::{KeyRange, Schema, Subarray};

/// A box as text: low and high of every dimension, inclusive; `None`: the whole domain.
pub type ReadBox<'a> = Option<&'a [(String, String)]>;

/// The box written as text; Bounds errors name the dimension.
pub(super) fn parse_box(schema: &Schema, sub: ReadBox<'_>) -> Result<Option<Subarray>> {
    let Some(sub) = sub else { return Ok(None) };
    if sub.len() != schema.ndim() {
        return Err(Error::bounds(format!(
            "a box of {} dimensions was given, the array has {}",
            sub.len(),
            schema.ndim()
        )));
    }
    let mut ranges = Vec::with_capacity(sub.len());
    for (dim, (lo, hi)) in schema.dims().iter().zip(sub) {
        let key = |text: &str| {
            let (from, to, _) = dim.texts();
            dim.key(text).map_err(|e| {
                Error::bounds(format!("{text} is outside dimension {:?}, whose domain is ({from}, {to})", dim.name()))
                    .with_source(e)
            })
        };
        let (from, to) = (key(lo)?, key(hi)?);
        if from > to {
            return Err(Error::bounds(format!("the range {lo}..={hi} of dimension {:?} is empty", dim.name())));
        }
        ranges.push(KeyRange::new(from, to));
    }
    Ok(Some(Subarray::new(ranges)))
}
