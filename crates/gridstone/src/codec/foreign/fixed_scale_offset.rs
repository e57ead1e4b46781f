//! Foreign filter `fixedscaleoffset:O:S:T[:A]`: the `fixedscaleoffset` of numcodecs. Numbers of type T are stored as numbers
//! of type A, by default T, with the offset O and the scale S:
//!
//! ```text
//! stored = round((x - O) * S), ties to even         x = stored / S + O
//! ```
//!
//! Both are computed as NumPy does: in float32 where the number that is read is one, else in float64. An integer x is cut
//! to a whole number. Only what was rounded before comes back as it was.

use super::filter::ForeignFilter;
use super::number::{Conversion, Kind, Number};
use crate::base::Result;

const NAME: &str = "fixedscaleoffset";

/// The foreign filter `fixedscaleoffset`.
#[derive(Debug, Clone, Copy)]
pub struct FixedScaleOffset {
    pub(super) offset: f64,
    pub(super) scale: f64,
    pub(super) types: Conversion,
}

impl FixedScaleOffset {
    fn stored(&self, value: f64) -> f64 {
        match is_float32(self.types.of) {
            true => ((value as f32 - self.offset as f32) * self.scale as f32).round_ties_even().into(),
            false => ((value - self.offset) * self.scale).round_ties_even(),
        }
    }

    fn value(&self, stored: f64) -> f64 {
        match is_float32(self.types.stored) {
            true => (stored as f32 / self.scale as f32 + self.offset as f32).into(),
            false => stored / self.scale + self.offset,
        }
    }
}

fn is_float32(number: Number) -> bool {
    number.kind == Kind::Float && number.width == 4
}

impl ForeignFilter for FixedScaleOffset {
    fn name(&self) -> String {
        format!("{NAME}:{}:{}:{}", self.offset, self.scale, self.types.name())
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        self.types.stored_len(len)
    }

    fn encode(&self, input: &[u8]) -> Result<Vec<u8>> {
        let Conversion { of, stored } = self.types;
        let mut out = self.types.stored_place(NAME, input)?;
        for (bytes, place) in input.chunks_exact(of.width).zip(out.chunks_exact_mut(stored.width)) {
            stored.put_float(self.stored(of.float(bytes)), place);
        }
        Ok(out)
    }

    fn decode(&self, input: &[u8], out: &mut [u8]) -> Result<usize> {
        let Conversion { of, stored } = self.types;
        let out = self.types.values_place(NAME, input, out)?;
        for (bytes, place) in input.chunks_exact(stored.width).zip(out.chunks_exact_mut(of.width)) {
            of.put_float(self.value(stored.float(bytes)), place);
        }
        Ok(out.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::*;

    fn filter(of: &str, stored: &str) -> FixedScaleOffset {
        let types = Conversion { of: Number::parse(of).unwrap(), stored: Number::parse(stored).unwrap() };
        FixedScaleOffset { offset: 1_000.0, scale: 10.0, types }
    }

    #[test]
    fn exact_bytes() {
        let values: Vec<u8> = [1_000.0f64, 1_000.1, 1_000.25, 999.96].iter().flat_map(|v| v.to_le_bytes()).collect();
        let stored = filter("<f8", "|u1").encode(&values).unwrap();
        assert_eq!(stored, [0, 1, 2, 0]);
        let mut out = [0; 32];
        assert_eq!(filter("<f8", "|u1").decode(&stored, &mut out).unwrap(), 32);
        assert_eq!(out[8..16], 1_000.1f64.to_le_bytes());
    }

    #[test]
    fn damage_is_an_error() {
        for (of, stored) in [("<f8", "|u1"), ("<i4", ">f4"), ("<f4", "<i8")] {
            let bytes: Vec<u8> = (0..96).collect();
            let filter = filter(of, stored);
            conformance::check_damage(&filter, &bytes, bytes.len() / filter.types.stored.width * filter.types.of.width);
        }
    }
}
