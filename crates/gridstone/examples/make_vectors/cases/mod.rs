//! The vectors, one function each. Their names are folders; a function that changes changes bytes on disk.

mod beside;
mod composite;
mod day_two;
mod dense;
mod enumerated;
mod rows;
mod sealed;
mod sparse;
mod stores;
mod text;
mod times;
mod types;

use super::case::Case;
use super::value::Cell;
use gridstone::base::Result;
use gridstone::schema::{Datatype, key, text_to_bytes};

/// Every vector.
pub(crate) fn all() -> Result<Vec<Case>> {
    let mut cases = dense::cases()?;
    cases.extend(sparse::cases()?);
    cases.extend(types::cases()?);
    cases.extend(text::cases()?);
    cases.extend(composite::cases()?);
    cases.extend(enumerated::cases()?);
    cases.extend(stores::cases()?);
    cases.extend(sealed::cases()?);
    cases.extend(times::cases()?);
    cases.extend(beside::cases()?);
    cases.extend(rows::cases()?);
    cases.extend(day_two::cases()?);
    Ok(cases)
}

/// A number that looks random, the same on every machine (splitmix64).
fn noise(i: u64) -> u64 {
    let mut z = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Cells of the values written as text; "null" is null.
fn texts(datatype: Datatype, values: &[&str]) -> Result<Vec<Cell>> {
    let cell = |text: &&str| if *text == "null" { Ok(None) } else { text_to_bytes(datatype, text).map(Some) };
    values.iter().map(cell).collect()
}

/// Cells of the low `width` bytes of integers.
fn ints(width: usize, values: impl IntoIterator<Item = i64>) -> Vec<Cell> {
    values.into_iter().map(|v| Some(v.to_le_bytes().into_iter().take(width).collect())).collect()
}

fn doubles(values: impl IntoIterator<Item = f64>) -> Vec<Cell> {
    values.into_iter().map(|v| Some(v.to_le_bytes().to_vec())).collect()
}

fn singles(values: impl IntoIterator<Item = f32>) -> Vec<Cell> {
    values.into_iter().map(|v| Some(v.to_le_bytes().to_vec())).collect()
}

/// Null where `is_null` says so.
fn with_nulls(cells: Vec<Cell>, is_null: impl Fn(usize) -> bool) -> Vec<Cell> {
    cells.into_iter().enumerate().map(|(i, c)| if is_null(i) { None } else { c }).collect()
}

/// The ordered key of a signed coordinate.
fn signed(value: i64) -> u64 {
    key::from_signed(value)
}
