//! Bit rounding by the oracle: of the two neighbours with that many bits it takes the nearer one, by their distances.

use gridstone::schema::Attribute;

/// The stored value for `bytes`, the values of a cell of `attr`.
pub(crate) fn stored(attr: &Attribute, bytes: &[u8]) -> Vec<u8> {
    let Some(rounding) = attr.rounding() else { return bytes.to_vec() };
    let keep: u32 = rounding.to_string().trim_start_matches("bitround:").parse().unwrap();
    let width = attr.datatype().element().size();
    bytes.chunks(width).flat_map(|value| rounded(value, keep)).collect()
}

fn rounded(value: &[u8], keep: u32) -> Vec<u8> {
    let width = value.len();
    let mantissa = [0, 0, 10, 0, 23, 0, 0, 0, 52][width];
    let mut wide = [0; 8];
    wide[..width].copy_from_slice(value);
    let bits = u64::from_le_bytes(wide);
    let sign = bits >> (8 * width - 1) << (8 * width - 1);
    let size = bits ^ sign;
    let infinite = ((1u64 << (8 * width as u32 - 1 - mantissa)) - 1) << mantissa;
    let step = 1u64 << (mantissa - keep);
    let (below, above) = (size / step * step, size / step * step + step);
    let near = match (size - below).cmp(&(above - size)) {
        std::cmp::Ordering::Less => below,
        std::cmp::Ordering::Greater => above,
        std::cmp::Ordering::Equal if (below / step).is_multiple_of(2) => below,
        std::cmp::Ordering::Equal => above,
    };
    let kept = match size {
        special if special >= infinite => special,
        _ if near >= infinite => below,
        _ => near,
    };
    (kept | sign).to_le_bytes()[..width].to_vec()
}
