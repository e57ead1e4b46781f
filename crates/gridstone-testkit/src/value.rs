//! Attribute values as bytes, and columns of them.

use crate::Dice;
use crate::enumeration;
use gridstone::base::AlignedBuf;
use gridstone::engine::{Column, ColumnView};
use gridstone::schema::{Attribute, Datatype, Primitive};

/// A value's little-endian bytes; `None`: null.
pub type Value = Option<Vec<u8>>;

/// A column of `values`; bytes under a null are not zero, so that no code relies on them.
pub fn column(attr: &Attribute, values: &[Value]) -> Column {
    let junk: Vec<u8> = vec![1; attr.datatype().width().unwrap_or(3 * attr.datatype().item_width())];
    let mut bytes = Vec::new();
    let mut offsets = vec![0u64];
    for value in values {
        bytes.extend_from_slice(value.as_deref().unwrap_or(&junk));
        offsets.push(bytes.len() as u64);
    }
    let validity = values.iter().any(Option::is_none).then(|| values.iter().map(|v| u8::from(v.is_some())).collect());
    let offsets = attr.datatype().is_var().then_some(offsets);
    Column::new(attr.datatype(), AlignedBuf::from_slice(&bytes), offsets, validity).unwrap()
}

/// The values of a column.
pub fn values_of(view: ColumnView<'_>) -> Vec<Value> {
    (0..view.len()).map(|row| view.is_valid(row).then(|| view.value(row).to_vec())).collect()
}

/// `count` random values of `attr`: small, wild, constant or ascending ones.
pub fn random(attr: &Attribute, count: usize, dice: &mut Dice) -> Vec<Value> {
    let style = dice.below(4);
    let nulls = if attr.nullable() { *dice.pick(&[0, 20, 100]) } else { 0 };
    let base = dice.word();
    let value = |i: usize, dice: &mut Dice| {
        if nulls > 0 && dice.chance(nulls) {
            return None;
        }
        let word = match style {
            0 => dice.word() % 10,
            1 => dice.word(),
            2 => base,
            _ => base.wrapping_add(i as u64),
        };
        Some(match attr.categories() {
            Some(categories) => enumeration::code(categories, attr.datatype().width().unwrap(), word),
            None => bytes_of(attr.datatype(), word, style == 1, dice),
        })
    };
    (0..count).map(|i| value(i, dice)).collect()
}

fn bytes_of(datatype: Datatype, word: u64, wild: bool, dice: &mut Dice) -> Vec<u8> {
    let special = wild && dice.chance(10);
    match datatype {
        Datatype::Bool => vec![(word & 1) as u8],
        Datatype::Float32 if special => {
            dice.pick(&[f32::NAN, -0.0, f32::INFINITY, f32::MIN, 1e-45]).to_le_bytes().to_vec()
        }
        Datatype::Float64 if special => {
            dice.pick(&[f64::NAN, -0.0, f64::NEG_INFINITY, f64::MAX, 5e-324]).to_le_bytes().to_vec()
        }
        Datatype::Float16 if special => dice.pick(&[0x7e01u16, 0x8000, 0x7c00, 0xfbff, 1]).to_le_bytes().to_vec(),
        Datatype::Float32 if !wild => (word as f32 / 4.0).to_le_bytes().to_vec(),
        Datatype::Float64 if !wild => (word as f64 / 4.0).to_le_bytes().to_vec(),
        Datatype::String => {
            let letters = ["a", "b", "é", "漢", "", "zz"];
            let len = if special { 90 } else { word as usize % 7 };
            (0..len).map(|i| letters[(word >> (i % 50)) as usize % letters.len()]).collect::<String>().into_bytes()
        }
        Datatype::Bytes => {
            let len = if special { 200 } else { word as usize % 9 };
            (0..len).map(|i| (word >> (i % 8 * 8)) as u8).collect()
        }
        Datatype::FixedBytes(len) => (0..len).map(|i| (word >> (i % 8 * 8)) as u8).collect(),
        Datatype::Vector(primitive, shape) => items(primitive, shape.count(), word, wild, dice),
        Datatype::List(primitive) => {
            let count = if special { 150 } else { word as usize % 5 };
            items(primitive, count, word, wild, dice)
        }
        Datatype::Complex64 => items(Primitive::Float32, 2, word, wild, dice),
        Datatype::Complex128 => items(Primitive::Float64, 2, word, wild, dice),
        fixed if special => {
            let edge = *dice.pick(&[0, u64::MAX, 1 << 63, (1 << 63) - 1, 1 << 7, 1 << 15]);
            edge.to_le_bytes()[..fixed.width().unwrap()].to_vec()
        }
        fixed => word.to_le_bytes()[..fixed.width().unwrap()].to_vec(),
    }
}

/// Several values derived from one word.
fn items(primitive: Primitive, count: usize, word: u64, wild: bool, dice: &mut Dice) -> Vec<u8> {
    (0..count as u64).flat_map(|i| bytes_of(primitive.datatype(), word.wrapping_add(i), wild, dice)).collect()
}
