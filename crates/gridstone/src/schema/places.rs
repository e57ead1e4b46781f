//! The places of coordinates along one side of the frame of a Hilbert curve.
//!
//! What follows from the frame alone is worked out once, so that a place costs two multiplications, or one division of floats.

use super::frame::{Framing, Side};
use super::{Dimension, Extent, key};

/// How the coordinates of one dimension get their places: below 2^bits, and monotone in the key or the offset in a tile.
#[derive(Debug, Clone, Copy)]
pub struct Places(Rule);

#[derive(Debug, Clone, Copy)]
enum Rule {
    /// As many places as keys: the distance from the low end.
    Distance { low: u64, last: u64 },
    /// `floor((u - low) * 2^bits / count)`. `inverse` is 2^(64 + bits) / count, rounded down.
    Share { low: u64, last: u64, bits: u32, count: u128, inverse: u128 },
    /// `floor((v/2 - low) / span * scale)`, each step rounded to float64; `low` and `span` are of halves.
    Value { low: f64, span: f64, scale: f64, last: u64 },
}

impl Places {
    /// Those along `side`, which has 2^bits of them, of the coordinates of `dim`.
    pub(super) fn new(framing: Framing, bits: u32, side: Side, dim: &Dimension) -> Self {
        let (low, last, count) = (side.low, side.last(), side.count());
        if framing == Framing::Value && dim.datatype().is_float() {
            let (low, high) = (key::to_float(low) / 2.0, key::to_float(last) / 2.0);
            let last = u64::MAX.checked_shr(u64::BITS - bits).unwrap_or(0);
            return Self(Rule::Value { low, span: high - low, scale: 2f64.powi(bits as i32), last });
        }
        if count == 1 << bits {
            return Self(Rule::Distance { low, last });
        }
        // One less at most where 2^128 is one more than fits: the remainder corrects it.
        let inverse = if bits == u64::BITS { u128::MAX / count } else { (1 << (u64::BITS + bits)) / count };
        Self(Rule::Share { low, last, bits, count, inverse })
    }

    /// The place of a key of `dim`.
    pub fn of(&self, dim: &Dimension, key: u64) -> u64 {
        match (self.0, dim.extent()) {
            (Rule::Value { .. }, _) | (_, Extent::Whole | Extent::Length(_)) => self.0.place(key),
            (_, Extent::Cells(n)) => self.0.place(dim.offset_in_tile(key, n)),
        }
    }

    /// The places of keys of `dim`.
    pub fn of_all(&self, dim: &Dimension, keys: &[u64]) -> Vec<u64> {
        let (rule, tile) = (self.0, dim.extent());
        let all = keys.iter().copied();
        match (rule, tile) {
            (Rule::Value { .. }, _) => all.map(|key| rule.place(key)).collect(),
            (_, Extent::Cells(n)) => all.map(|key| rule.place(dim.offset_in_tile(key, n))).collect(),
            (Rule::Distance { .. }, _) => all.map(|key| rule.place(key)).collect(),
            (Rule::Share { .. }, _) => all.map(|key| rule.place(key)).collect(),
        }
    }
}

impl Rule {
    #[inline]
    fn place(self, key: u64) -> u64 {
        match self {
            Self::Distance { low, last } => key.clamp(low, last) - low,
            Self::Share { low, last, bits, count, inverse } => {
                let offset = u128::from(key.clamp(low, last) - low);
                // It is the quotient or one less: offset * inverse / 2^64 lies less than 1 below it.
                let place = (offset * inverse) >> 64;
                let rest = (offset << bits) - place * count;
                (place + u128::from(rest >= count)) as u64
            }
            // The conversion cuts off what is behind the point, and gives 0 below 0 and for what is no number.
            Self::Value { low, span, scale, last } => {
                (((key::to_float(key) / 2.0 - low) / span * scale) as u64).min(last)
            }
        }
    }
}
