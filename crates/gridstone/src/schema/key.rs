//! Ordered keys: a `u64` for every coordinate; the order of keys is the order of the values.
//!
//! - unsigned integers: zero-extended;
//! - signed integers, datetimes, timedeltas: sign-extended to 64 bits, sign bit flipped;
//! - floats: float16 and float32 widened to float64 (exact), -0.0 made +0.0; if negative all bits are flipped, else the sign bit.
//!   NaN has no key and is refused; so is NaT.
//!
//! Differences between keys of integers are differences between the values.

use super::{Datatype, KeyRange, Sorting};
use crate::base::{Element, ElementKind, Error, Result, wide};
use half::f16;

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

/// The key of the integer `value` in a column of `datatype`, rounded to the nearest float there; `None` if it is no coordinate of that type.
pub fn of_int(datatype: Datatype, value: i128) -> Option<u64> {
    let Element { kind, width } = datatype.element();
    let bits = u32::from(width) * 8;
    match kind {
        _ if datatype.sorting() != Sorting::Keys => None,
        ElementKind::Unsigned => u64::try_from(value).ok().filter(|value| bits == 64 || *value >> bits == 0),
        ElementKind::Signed => {
            let half = 1i128 << (bits - 1);
            let value = i64::try_from(value).ok().filter(|_| (-half..half).contains(&value))?;
            (!datatype.is_time() || value != i64::MIN).then(|| from_signed(value))
        }
        ElementKind::Float if width == 4 => Some(from_float(f64::from(value as f32))),
        ElementKind::Float => of_float(datatype, value as f64),
    }
}

/// The key of the float `value`, rounded to what a column of `datatype` holds; `None` for NaN, and where that type is no float.
pub fn of_float(datatype: Datatype, value: f64) -> Option<u64> {
    let Element { kind, width } = datatype.element();
    let held = match (kind, width) {
        _ if datatype.sorting() != Sorting::Keys => return None,
        (ElementKind::Float, 2) => f64::from(f16::from_f64(value)),
        (ElementKind::Float, 4) => f64::from(value as f32),
        (ElementKind::Float, _) => value,
        _ => return None,
    };
    (!held.is_nan()).then(|| from_float(held))
}

/// All coordinates that a dimension of `datatype` can have: NaN, NaT and the infinities are none.
pub fn range_of(datatype: Datatype) -> KeyRange {
    let Element { kind, width } = datatype.element();
    let shift = u64::BITS - u32::from(width).clamp(1, 8) * 8;
    match kind {
        ElementKind::Unsigned => KeyRange::new(0, u64::MAX >> shift),
        ElementKind::Signed => {
            let low = from_signed(i64::MIN >> shift);
            KeyRange::new(low + u64::from(datatype.is_time()), from_signed(i64::MAX >> shift))
        }
        ElementKind::Float => {
            let greatest = match width {
                2 => f64::from(f16::MAX),
                4 => f64::from(f32::MAX),
                _ => f64::MAX,
            };
            KeyRange::new(from_float(-greatest), from_float(greatest))
        }
    }
}

/// Calls `f` with every value of a little-endian column as `[u8; N]`.
fn words<const N: usize>(bytes: &[u8]) -> impl ExactSizeIterator<Item = [u8; N]> + '_ {
    let (chunks, _) = bytes.as_chunks::<N>();
    chunks.iter().copied()
}

/// Evaluates an expression with an iterator over the keys of a column of little-endian values. The expression is copied
/// per type, so that each is compiled to a tight loop.
macro_rules! with_keys {
    ($datatype:expr, $values:expr, |$keys:ident| $body:expr) => {{
        let Element { kind, width } = $datatype.element();
        macro_rules! keys_of {
            ($key:expr) => {{
                let $keys = words($values).map($key);
                $body
            }};
        }
        match (kind, width) {
            (ElementKind::Unsigned, 1) => keys_of!(|w| u64::from(u8::from_le_bytes(w))),
            (ElementKind::Unsigned, 2) => keys_of!(|w| u64::from(u16::from_le_bytes(w))),
            (ElementKind::Unsigned, 4) => keys_of!(|w| u64::from(u32::from_le_bytes(w))),
            (ElementKind::Unsigned, _) => keys_of!(u64::from_le_bytes),
            (ElementKind::Signed, 1) => keys_of!(|w| from_signed(i64::from(i8::from_le_bytes(w)))),
            (ElementKind::Signed, 2) => keys_of!(|w| from_signed(i64::from(i16::from_le_bytes(w)))),
            (ElementKind::Signed, 4) => keys_of!(|w| from_signed(i64::from(i32::from_le_bytes(w)))),
            (ElementKind::Signed, _) => keys_of!(|w| from_signed(i64::from_le_bytes(w))),
            (ElementKind::Float, 2) => keys_of!(|w| from_float(f64::from(f16::from_le_bytes(w)))),
            (ElementKind::Float, 4) => keys_of!(|w| from_float(f64::from(f32::from_le_bytes(w)))),
            (ElementKind::Float, _) => keys_of!(|w| from_float(f64::from_le_bytes(w))),
        }
    }};
}

/// The keys of a column of little-endian values. An Input error names the first row whose value is NaN or NaT, or
/// says that the bytes are not whole values.
pub fn encode(datatype: Datatype, values: &[u8]) -> Result<Vec<u64>> {
    let mut keys = Vec::new();
    encode_into(datatype, values, &mut keys)?;
    Ok(keys)
}

/// Like [`encode`], but appends to `keys`; after an error some may have been appended.
pub fn encode_into(datatype: Datatype, values: &[u8], keys: &mut Vec<u64>) -> Result<()> {
    let Element { kind, width } = datatype.element();
    if datatype.sorting() != Sorting::Keys || !values.len().is_multiple_of(usize::from(width)) {
        return Err(Error::input(format!("{} bytes are no column of {datatype} coordinates", values.len())));
    }
    let from = keys.len();
    match (kind, width) {
        (ElementKind::Float, 2) => floats(words(values).map(|w| f64::from(f16::from_le_bytes(w))), keys)?,
        (ElementKind::Float, 4) => floats(words(values).map(|w| f64::from(f32::from_le_bytes(w))), keys)?,
        (ElementKind::Float, _) => floats(words(values).map(f64::from_le_bytes), keys)?,
        _ => with_keys!(datatype, values, |found| keys.extend(found)),
    }
    if datatype.is_time()
        && let Some(row) = keys.iter().skip(from).position(|k| *k == 0)
    {
        return Err(Error::input(format!("row {row}: NaT is no coordinate; drop such rows or give them a time")));
    }
    Ok(())
}

fn floats(values: impl ExactSizeIterator<Item = f64>, keys: &mut Vec<u64>) -> Result<()> {
    keys.reserve(values.len());
    for (row, value) in values.enumerate() {
        if value.is_nan() {
            return Err(Error::input(format!("row {row}: NaN is no coordinate; drop such rows or fill them")));
        }
        keys.push(from_float(value));
    }
    Ok(())
}

wide! {
    /// Tests a column of little-endian coordinates without making keys of them: clears the flags of the rows outside
    /// `wanted`, and returns whether all rows lie in `bounds`. NaN and NaT lie in no range.
    pub fn mark(datatype: Datatype, values: &[u8], bounds: KeyRange, wanted: KeyRange, flags: &mut [bool]) -> bool { mark_any }
}

#[inline(always)]
fn mark_any(datatype: Datatype, values: &[u8], bounds: KeyRange, wanted: KeyRange, flags: &mut [bool]) -> bool {
    let (bounds, wanted) = (Span::of(without_nat(datatype, bounds)), Span::of(wanted));
    // Without a branch, so that it compiles to vector instructions.
    with_keys!(datatype, values, |keys| keys.zip(flags).fold(true, |whole, (k, flag)| {
        *flag &= wanted.holds(k);
        whole & bounds.holds(k)
    }))
}

wide! {
    /// Whether all of a column of little-endian coordinates lie in `bounds`. NaN and NaT lie in no range.
    pub fn within(datatype: Datatype, values: &[u8], bounds: KeyRange) -> bool { within_any }
}

#[inline(always)]
fn within_any(datatype: Datatype, values: &[u8], bounds: KeyRange) -> bool {
    let bounds = Span::of(without_nat(datatype, bounds));
    with_keys!(datatype, values, |keys| keys.fold(true, |whole, k| whole & bounds.holds(k)))
}

/// A range of keys, in a form in which one comparison tests both ends of a key.
#[derive(Clone, Copy)]
struct Span {
    lo: u64,
    len: u64,
    /// Whether it has any key.
    some: bool,
}

impl Span {
    fn of(range: KeyRange) -> Self {
        Self { lo: range.lo, len: range.hi.wrapping_sub(range.lo), some: range.lo <= range.hi }
    }

    fn holds(self, key: u64) -> bool {
        (key.wrapping_sub(self.lo) <= self.len) & self.some
    }
}

/// The key of NaT is 0. (Those of NaN lie beyond those of the infinities.)
fn without_nat(datatype: Datatype, bounds: KeyRange) -> KeyRange {
    if datatype.is_time() { KeyRange { lo: bounds.lo.max(1), ..bounds } } else { bounds }
}

/// Appends the little-endian values of `keys` to `out`; the inverse of [`encode`].
pub fn decode(datatype: Datatype, keys: impl IntoIterator<Item = u64>, out: &mut Vec<u8>) {
    let Element { kind, width } = datatype.element();
    let keys = keys.into_iter();
    match (kind, width) {
        (ElementKind::Float, 2) => append(keys.map(|key| f16::from_f64(to_float(key)).to_le_bytes()), out),
        (ElementKind::Float, 4) => append(keys.map(|key| (to_float(key) as f32).to_le_bytes()), out),
        (ElementKind::Float, _) => append(keys.map(|key| to_float(key).to_le_bytes()), out),
        (ElementKind::Signed, 1) => append(keys.map(|key| (to_signed(key) as i8).to_le_bytes()), out),
        (ElementKind::Signed, 2) => append(keys.map(|key| (to_signed(key) as i16).to_le_bytes()), out),
        (ElementKind::Signed, 4) => append(keys.map(|key| (to_signed(key) as i32).to_le_bytes()), out),
        (ElementKind::Signed, _) => append(keys.map(|key| to_signed(key).to_le_bytes()), out),
        (ElementKind::Unsigned, 1) => append(keys.map(|key| (key as u8).to_le_bytes()), out),
        (ElementKind::Unsigned, 2) => append(keys.map(|key| (key as u16).to_le_bytes()), out),
        (ElementKind::Unsigned, 4) => append(keys.map(|key| (key as u32).to_le_bytes()), out),
        (ElementKind::Unsigned, _) => append(keys.map(u64::to_le_bytes), out),
    }
}

fn append<const N: usize>(values: impl Iterator<Item = [u8; N]>, out: &mut Vec<u8>) {
    out.reserve(values.size_hint().0 * N);
    values.for_each(|value| out.extend_from_slice(&value));
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
    fn a_type_has_all_its_coordinates() {
        let ends = |datatype: Datatype| {
            let KeyRange { lo, hi } = range_of(datatype);
            [lo, hi].map(|end| super::super::scalar::key_text(datatype, end))
        };
        assert_eq!(ends(Datatype::Int8), ["-128", "127"]);
        assert_eq!(ends(Datatype::UInt16), ["0", "65535"]);
        assert_eq!(ends(Datatype::Int64), ["-9223372036854775808", "9223372036854775807"]);
        assert_eq!(ends(Datatype::parse("datetime64[s]").unwrap()), ["-9223372036854775807", "9223372036854775807"]);
        assert_eq!(ends(Datatype::Float32), ["-3.4028235e38", "3.4028235e38"]);
        assert_eq!(ends(Datatype::Float64), ["-1.7976931348623157e308", "1.7976931348623157e308"]);
    }

    #[test]
    fn nan_and_nat_are_refused_by_row() {
        let bytes = [1.0f32, f32::NAN].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        assert!(encode(Datatype::Float32, &bytes).unwrap_err().message().contains("row 1"));
        let nat = i64::MIN.to_le_bytes();
        assert!(encode(Datatype::Datetime(TimeUnit::Second.step()), &nat).is_err());
        assert!(encode(Datatype::Int64, &nat).is_ok());
        assert!(encode(Datatype::Int64, &[0; 7]).is_err());
        assert!(encode(Datatype::Complex64, &[0; 8]).is_err());
    }

    fn bytes_of(datatype: Datatype, values: &[i64]) -> Vec<u8> {
        let value = |v: &i64| match datatype {
            Datatype::Float32 => (*v as f32 * 1e-9).to_le_bytes().to_vec(),
            Datatype::Float64 => f64::from_bits(*v as u64).to_le_bytes().to_vec(),
            other => v.to_le_bytes()[..other.width().unwrap()].to_vec(),
        };
        values.iter().flat_map(value).collect()
    }

    proptest! {
        #[test]
        fn marks_say_what_keys_say(values in proptest::collection::vec(any::<i64>(), 1..50), ends in any::<[u64; 4]>()) {
            // One range in eight is empty: its ends are swapped.
            let range = |a: u64, b: u64| if (a ^ b).is_multiple_of(8) { KeyRange { lo: a.max(b), hi: a.min(b) } } else { KeyRange::new(a.min(b), a.max(b)) };
            for datatype in [Datatype::Int8, Datatype::Int16, Datatype::Int32, Datatype::Int64, Datatype::UInt8,
                Datatype::UInt16, Datatype::UInt32, Datatype::UInt64, Datatype::Float32, Datatype::Float64,
                Datatype::Datetime(TimeUnit::Second.step())] {
                let bytes = bytes_of(datatype, &values);
                // Half of the ends are keys of values, so that edges are met.
                let keys = encode(datatype, &bytes);
                let end = |i: usize| keys.as_ref().ok().filter(|_| ends[i] % 2 == 0).map_or(ends[i], |k| k[ends[i] as usize % k.len()]);
                let (bounds, wanted) = (range(end(0), end(1)), range(end(2), end(3)));
                let mut flags = vec![true; values.len()];
                let whole = mark(datatype, &bytes, bounds, wanted, &mut flags);
                let mut plainly = vec![true; values.len()];
                prop_assert_eq!(mark_any(datatype, &bytes, bounds, wanted, &mut plainly), whole);
                prop_assert_eq!(&plainly, &flags);
                match keys {
                    Err(_) => prop_assert!(!mark(datatype, &bytes, range(from_float(f64::NEG_INFINITY), from_float(f64::INFINITY)), wanted, &mut flags)),
                    Ok(keys) => {
                        prop_assert_eq!(within(datatype, &bytes, bounds), whole);
                        prop_assert_eq!(whole, keys.iter().all(|k| bounds.contains(*k)));
                        prop_assert_eq!(flags, keys.iter().map(|k| wanted.contains(*k)).collect::<Vec<_>>());
                    }
                }
            }
        }

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
        fn halves_come_back_and_keep_their_order(a in any::<u16>(), b in any::<u16>()) {
            let (x, y) = (f16::from_bits(a), f16::from_bits(b));
            prop_assume!(!x.is_nan() && !y.is_nan());
            let bytes: Vec<u8> = [a, b].iter().flat_map(|v| v.to_le_bytes()).collect();
            let keys = encode(Datatype::Float16, &bytes).unwrap();
            prop_assert_eq!(x.partial_cmp(&y).unwrap(), keys[0].cmp(&keys[1]));
            let mut back = Vec::new();
            decode(Datatype::Float16, keys, &mut back);
            let plus = |v: u16| if v == 0x8000 { 0 } else { v };
            prop_assert_eq!(back, [plus(a), plus(b)].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>());
        }

        #[test]
        fn float_order_is_key_order(a in any::<f64>(), b in any::<f64>()) {
            prop_assume!(!a.is_nan() && !b.is_nan());
            prop_assert_eq!(a.partial_cmp(&b).unwrap(), from_float(a).cmp(&from_float(b)));
        }
    }
}
