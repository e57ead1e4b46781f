//! Dimension scales, as HDF5 and NetCDF-4 write them.
//!
//! 1. `CLASS` = `DIMENSION_SCALE` makes a dataset a scale.
//! 2. `DIMENSION_LIST` holds references to the scales of each axis.
//! 3. A scale of one axis is its own scale: a coordinate variable of NetCDF-4.
//! 4. `_Netcdf4Coordinates` holds the numbers of the dimensions of a scale of several axes; `_Netcdf4Dimid` is a
//!    scale's own number.
//! 5. `NAME` begins with a sentence if the scale is a dimension of NetCDF-4 without values.

use super::attributes::StoredAttributes;
use super::values::Values;
use crate::error::Result;
use crate::model::{ForeignValue, WholeNumber};
use std::collections::HashMap;

const CLASS: &str = "CLASS";
const NAME: &str = "NAME";
const SCALE: &str = "DIMENSION_SCALE";
const SCALES_OF_AXES: &str = "DIMENSION_LIST";
const USERS_OF_SCALE: &str = "REFERENCE_LIST";
const NUMBER: &str = "_Netcdf4Dimid";
const NUMBERS_OF_AXES: &str = "_Netcdf4Coordinates";
const BARE_DIMENSION: &str = "This is a netCDF dimension but not a netCDF variable";
/// Attributes that only NetCDF-4 writes.
const NETCDF4: [&str; 4] = ["_NCProperties", "_nc3_strict", NUMBER, NUMBERS_OF_AXES];

/// Paths of the scales with numbers.
pub(super) type Numbers = HashMap<i64, String>;

/// What the attributes of a dataset say of scales.
#[derive(Debug, Default)]
pub(super) struct ScaleFacts {
    pub(super) is_scale: bool,
    pub(super) is_bare_dimension: bool,
    pub(super) number: Option<i64>,
}

/// Whether the attribute only links axes and scales. The scales of a dataset hold the same.
pub(super) fn is_reserved(name: &str) -> bool {
    [SCALES_OF_AXES, USERS_OF_SCALE].contains(&name)
}

/// Whether an object with `attributes` was written by NetCDF-4.
pub(super) fn is_netcdf4(attributes: &StoredAttributes) -> bool {
    NETCDF4.iter().any(|name| attributes.get(name).is_some())
}

impl ScaleFacts {
    pub(super) fn read(values: &Values<'_>, attributes: &StoredAttributes) -> Self {
        let is_scale = text(values, attributes, CLASS).is_some_and(|class| class == SCALE);
        let is_bare = text(values, attributes, NAME).is_some_and(|name| name.starts_with(BARE_DIMENSION));
        let number = numbers(values, attributes, NUMBER).and_then(|numbers| numbers.first().copied());
        Self { is_scale, is_bare_dimension: is_scale && is_bare, number }
    }
}

/// The scale of each of `rank` axes of the dataset at `path`.
pub(super) fn scales_of(
    values: &Values<'_>,
    attributes: &StoredAttributes,
    by_number: &Numbers,
    path: &str,
    rank: usize,
) -> Result<Vec<Option<String>>> {
    if let Some(list) = attributes.get(SCALES_OF_AXES) {
        let mut scales = values.first_of_lists(list)?;
        scales.resize(rank, None);
        return Ok(scales);
    }
    if let Some(of_axes) = numbers(values, attributes, NUMBERS_OF_AXES).filter(|of_axes| of_axes.len() == rank) {
        return Ok(of_axes.iter().map(|number| by_number.get(number).cloned()).collect());
    }
    let is_coordinate = rank == 1 && ScaleFacts::read(values, attributes).is_scale;
    Ok(if is_coordinate { vec![Some(path.to_owned())] } else { vec![None; rank] })
}

fn text(values: &Values<'_>, attributes: &StoredAttributes, name: &str) -> Option<String> {
    match values.value(attributes.get(name)?).ok()? {
        ForeignValue::Texts(texts) => texts.into_iter().next(),
        _ => None,
    }
}

fn numbers(values: &Values<'_>, attributes: &StoredAttributes, name: &str) -> Option<Vec<i64>> {
    let ForeignValue::Integers(found) = values.value(attributes.get(name)?).ok()? else { return None };
    let signed = found.iter().map(|&number| match number {
        WholeNumber::Signed(number) => Some(number),
        WholeNumber::Unsigned(_) => None,
    });
    signed.collect()
}
