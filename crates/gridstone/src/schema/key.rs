//! Ordered keys: a `u64` for every coordinate, whose order is the order of the values.
//!
//! - unsigned integers: zero-extended;
//! - signed integers, datetimes, timedeltas: sign-extended to 64 bits, sign bit flipped;
//! - floats: float32 widened to float64 (exact), -0.0 made +0.0; if negative all bits are flipped, else the sign bit.
//!   NaN has no key and is refused; so is NaT.
//!
//! Differences between keys of integers are differences between the values.

use super::Datatype;
use crate::base::{Element, ElementKind, Error, Result};

const SIGN: u64 = 1 << 63;

/// The key of a signed value.
pub fn from_signed(value: i64) -> u64 {
    value as u64 ^ SIGN
}

/// The signed value of a key.
pub fn to_signed(key: u64) -> i64 {
    (key ^ SIGN) as i64
}

/// The key of a float that is not NaN.
pub fn from_float(value: f64) -> u64 {
    let bits = if value == 0.0 { 0 } else { value.to_bits() };
    if bits & SIGN != 0 { !bits } else { bits | SIGN }
}

/// The float of a key.
pub fn to_float(key: u64) -> f64 {
    f64::from_bits(if key & SIGN != 0 { key & !SIGN } else { !key })
}

/// Calls `f` with every value of a little-endian column as `[u8; N]`.
fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    let (chunks, _) = bytes.as_chunks::<N>();
    chunks.iter().copied()
}

/// The keys of a column of little-endian values. An Input error names the first row whose value is NaN or NaT, or
/// says that the bytes are not whole values.
pub fn encode(datatype: Datatype, values: &[u8]) -> Result<Vec<u64>> {
    let Element { kind, width } = datatype.element();
    if datatype.is_var() || !values.len().is_multiple_of(usize::from(width)) {
        return Err(Error::input(format!("{} bytes are no column of {datatype} coordinates", values.len())));
    }
    let keys: Vec<u64> = match (kind, width) {
        (ElementKind::Unsigned, 1) => values.iter().map(|b| u64::from(*b)).collect(),
        (ElementKind::Unsigned, 2) => words(values).map(|w| u64::from(u16::from_le_bytes(w))).collect(),
        (ElementKind::Unsigned, 4) => words(values).map(|w| u64::from(u32::from_le_bytes(w))).collect(),
        (ElementKind::Unsigned, _) => words(values).map(u64::from_le_bytes).collect(),
        (ElementKind::Signed, 1) => words(values).map(|w| from_signed(i64::from(i8::from_le_bytes(w)))).collect(),
        (ElementKind::Signed, 2) => words(values).map(|w| from_signed(i64::from(i16::from_le_bytes(w)))).collect(),
        (ElementKind::Signed, 4) => words(values).map(|w| from_signed(i64::from(i32::from_le_bytes(w)))).collect(),
        (ElementKind::Signed, _) => words(values).map(|w| from_signed(i64::from_le_bytes(w))).collect(),
        (ElementKind::Float, 4) => floats(words(values).map(|w| f64::from(f32::from_le_bytes(w))))?,
        (ElementKind::Float, _) => floats(words(values).map(f64::from_le_bytes))?,
    };
    if datatype.is_time()
        && let Some(row) = keys.iter().position(|k| *k == 0)
    {
        return Err(Error::input(format!("row {row}: NaT is no coordinate; drop such rows or give them a time")));
    }
    Ok(keys)
}

fn floats(values: impl Iterator<Item = f64>) -> Result<Vec<u64>> {
    values
        .enumerate()
        .map(|(row, v)| {
            if v.is_nan() {
                return Err(Error::input(format!("row {row}: NaN is no coordinate; drop such rows or fill them")));
            }
            Ok(from_float(v))
        })
        .collect()
}

/// Appends the little-endian values of `keys` to `out`; the mirror of [`encode`].
pub fn decode(datatype: Datatype, keys: impl IntoIterator<Item = u64>, out: &mut Vec<u8>) {
    let Element { kind, width } = datatype.element();
    for key in keys {
        match (kind, width) {
            (ElementKind::Float, 4) => out.extend_from_slice(&(to_float(key) as f32).to_le_bytes()),
            (ElementKind::Float, _) => out.extend_from_slice(&to_float(key).to_le_bytes()),
            (ElementKind::Signed, w) => push(&to_signed(key).to_le_bytes(), w, out),
            (ElementKind::Unsigned, w) => push(&key.to_le_bytes(), w, out),
        }
    }
}

/// The low `width` bytes of a little-endian word.
fn push(word: &[u8; 8], width: u8, out: &mut Vec<u8>) {
    out.extend(word.iter().take(usize::from(width)));
}

#[cfg(test)]
mod tests {
    use super::super::TimeUnit;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn edges_keep_their_order() {
        let signed: Vec<u64> = [i64::MIN, -1, 0, 1, i64::MAX].map(from_signed).to_vec();
        assert!(signed.is_sorted() && signed[0] == 0 && signed[4] == u64::MAX);
        let floats = [f64::NEG_INFINITY, f64::MIN, -1.5, -f64::MIN_POSITIVE, 0.0, 5e-324, 1.0, f64::INFINITY];
        assert!(floats.map(from_float).is_sorted());
        assert_eq!(from_float(-0.0), from_float(0.0));
        assert!(to_float(from_float(-0.0)).is_sign_positive());
    }

    #[test]
    fn nan_and_nat_are_refused_by_row() {
        let bytes = [1.0f32, f32::NAN].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        assert!(encode(Datatype::Float32, &bytes).unwrap_err().message().contains("row 1"));
        let nat = i64::MIN.to_le_bytes();
        assert!(encode(Datatype::Datetime(TimeUnit::Second), &nat).is_err());
        assert!(encode(Datatype::Int64, &nat).is_ok());
        assert!(encode(Datatype::Int64, &[0; 7]).is_err());
    }

    proptest! {
        #[test]
        fn columns_come_back(values in proptest::collection::vec(any::<i64>(), 0..50)) {
            for datatype in [Datatype::Int8, Datatype::Int16, Datatype::Int32, Datatype::Int64, Datatype::UInt8,
                Datatype::UInt16, Datatype::UInt32, Datatype::UInt64] {
                let width = datatype.width().unwrap();
                let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()[..width].to_vec()).collect();
                let keys = encode(datatype, &bytes).unwrap();
                let mut back = Vec::new();
                decode(datatype, keys, &mut back);
                prop_assert_eq!(back, bytes);
            }
        }

        #[test]
        fn float_order_is_key_order(a in any::<f64>(), b in any::<f64>()) {
            prop_assume!(!a.is_nan() && !b.is_nan());
            prop_assert_eq!(a.partial_cmp(&b).unwrap(), from_float(a).cmp(&from_float(b)));
        }
    }
}
