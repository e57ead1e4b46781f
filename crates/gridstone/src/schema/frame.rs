//! The frame of a Hilbert curve: where coordinates lie along it.
//!
//! The curve runs through a cube of 2^bits places a side. The frame says, per dimension, which coordinates the cube spans:
//! the cells of a tile for a dimension with integer tiles, a range of coordinates for others. It stays when the domain
//! grows, so cells keep their places. Coordinates beyond it have the place of its nearest end.

use super::{Dimension, Extent, key};

/// What the places of floats are proportional to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Their ordered keys, so that all floats differ in their places where the bits suffice.
    Key,
    /// Their values.
    Value,
}

impl Framing {
    /// Its name in a schema.
    pub fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Value => "value",
        }
    }

    /// The framing of this name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Key, Self::Value].into_iter().find(|framing| framing.name() == name)
    }
}

/// What a side of the cube spans: keys, or offsets in a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    /// The least.
    pub low: u64,
    /// The greatest; it may lie beyond all keys, so that a side has a place for each.
    pub high: u128,
}

impl Side {
    /// How many keys or offsets it spans.
    fn count(self) -> u128 {
        self.high - u128::from(self.low) + 1
    }

    fn contains(self, key: u64) -> bool {
        self.low <= key && u128::from(key) <= self.high
    }

    /// The greatest key.
    fn last(self) -> u64 {
        u64::try_from(self.high).unwrap_or(u64::MAX)
    }
}

/// The frame of an array's curve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    framing: Framing,
    bits: u32,
    sides: Vec<Side>,
}

/// No side is longer than all keys are many.
const COUNT_MAX: u128 = 1 << 64;

impl Frame {
    /// The frame of `sides`, per dimension the least and the greatest offset in a tile, or the least and the greatest key. `None`
    /// if the sides are not those of `dims`, or the bits not 0 to 64.
    pub fn new(framing: Framing, bits: u32, sides: Vec<Side>, dims: &[Dimension]) -> Option<Self> {
        let fits = |(side, dim): (&Side, &Dimension)| {
            let spans = match dim.extent() {
                Extent::Cells(n) => side.low == 0 && side.high >= u128::from(n - 1),
                Extent::Whole | Extent::Length(_) => true,
            };
            spans && u128::from(side.low) <= side.high && side.high - u128::from(side.low) < COUNT_MAX
        };
        let all = sides.len() == dims.len() && sides.iter().zip(dims).all(fits) && bits <= u64::BITS;
        all.then_some(Self { framing, bits, sides })
    }

    /// The frame of an array that has none written: one place for each key from the low end of the domain on, with as many
    /// bits as the longest dimension needs.
    pub(super) fn of_keys(dims: &[Dimension]) -> Self {
        let largest = |d: &Dimension| match d.extent() {
            Extent::Cells(n) => n - 1,
            Extent::Whole | Extent::Length(_) => d.range().hi.saturating_sub(d.range().lo),
        };
        let bits = dims.iter().map(|d| u64::BITS - largest(d).leading_zeros()).max().unwrap_or(0);
        let side = |d: &Dimension| {
            let low = if matches!(d.extent(), Extent::Cells(_)) { 0 } else { d.range().lo };
            Side { low, high: u128::from(low) + (1 << bits) - 1 }
        };
        Self { framing: Framing::Key, bits, sides: dims.iter().map(side).collect() }
    }

    /// What the places of floats are proportional to.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// The bits of a place.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Per dimension the least and the greatest key, or offset in a tile, that has a place of its own.
    pub fn sides(&self) -> &[Side] {
        &self.sides
    }

    fn is_by_value(&self, dim: &Dimension) -> bool {
        self.framing == Framing::Value && dim.datatype().is_float()
    }

    /// The place along the curve of a key of dimension number `at`, `dim`: below 2^bits, and monotone in the offset or key.
    ///
    /// With the side `low ..= high`, an integer or key `v` has the place `floor((v - low) * 2^bits / (high - low + 1))`,
    /// in whole numbers. A float by its value has `floor((v/2 - low/2) / (high/2 - low/2) * 2^bits)`, each step rounded
    /// to float64. Both are clamped to `0 ..= 2^bits - 1`.
    pub fn place(&self, at: usize, dim: &Dimension, key: u64) -> u64 {
        let Some(side) = self.sides.get(at) else { return 0 };
        if self.is_by_value(dim) {
            return self.place_of_float(*side, key::to_float(key));
        }
        let key = match dim.extent() {
            Extent::Cells(n) => dim.offset_in_tile(key, n),
            Extent::Whole | Extent::Length(_) => key,
        };
        let offset = key.clamp(side.low, side.last()) - side.low;
        match side.count() {
            count if count == 1 << self.bits => offset,
            count => ((u128::from(offset) << self.bits) / count) as u64,
        }
    }

    fn place_of_float(&self, side: Side, value: f64) -> u64 {
        let (low, high) = (key::to_float(side.low) / 2.0, key::to_float(side.last()) / 2.0);
        let last = u64::MAX.checked_shr(u64::BITS - self.bits).unwrap_or(0);
        let part = (value / 2.0 - low) / (high - low);
        let place = (part * 2f64.powi(self.bits as i32)).floor();
        // A frame of one value has no parts: what is not above it has the first place.
        if place.is_nan() { 0 } else { (place.max(0.0) as u64).min(last) }
    }

    /// Whether no two cells of a domain of `dims` have the same places in the same tile.
    pub fn tells_cells(&self, dims: &[Dimension]) -> bool {
        let told = |(side, dim): (&Side, &Dimension)| {
            let within = match dim.extent() {
                Extent::Cells(_) => true,
                Extent::Whole | Extent::Length(_) => side.contains(dim.range().lo) && side.contains(dim.range().hi),
            };
            within && side.count() <= 1 << self.bits && !self.is_by_value(dim)
        };
        self.sides.iter().zip(dims).all(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Datatype;
    use proptest::prelude::*;

    fn dims(text: &[(&str, &str, &str, Option<&str>)]) -> Vec<Dimension> {
        let dim = |(dtype, lo, hi, tile): &(&str, &str, &str, Option<&str>)| {
            Dimension::new("x", Datatype::parse(dtype).unwrap(), lo, hi, *tile).unwrap()
        };
        text.iter().map(dim).collect()
    }

    #[test]
    fn frames_of_keys_have_a_place_for_each_cell() {
        let dims = dims(&[("int8", "-9", "90", Some("7")), ("int16", "-3", "200", None)]);
        let frame = Frame::of_keys(&dims);
        assert_eq!((frame.bits(), frame.tells_cells(&dims)), (8, true));
        let place = |at: usize, text: &str| frame.place(at, &dims[at], dims[at].key(text).unwrap());
        assert_eq!(
            [place(0, "-9"), place(0, "-3"), place(0, "-2"), place(1, "-3"), place(1, "200")],
            [0, 6, 0, 0, 203]
        );
        let all = Dimension::new("x", Datatype::UInt64, "0", "18446744073709551615", None).unwrap();
        let frame = Frame::of_keys(std::slice::from_ref(&all));
        assert_eq!((frame.bits(), frame.place(0, &all, u64::MAX), frame.place(0, &all, 5)), (64, u64::MAX, 5));
        let one = Dimension::new("x", Datatype::Int8, "4", "4", None).unwrap();
        let frame = Frame::of_keys(std::slice::from_ref(&one));
        assert_eq!((frame.bits(), frame.place(0, &one, one.range().lo)), (0, 0));
        assert!(frame.tells_cells(&[one]));
    }

    fn side(low: u64, high: u64) -> Side {
        Side { low, high: high.into() }
    }

    /// Keys of floats begin high: the side reaches beyond all keys, and nothing is stretched into what there is.
    #[test]
    fn a_side_may_end_beyond_all_keys() {
        let float = dims(&[("float32", "-2.0", "2.0", None), ("int8", "0", "3", None)]);
        let frame = Frame::of_keys(&float);
        assert_eq!((frame.bits(), frame.tells_cells(&float)), (64, true));
        for text in ["-2.0", "-1.5", "0.0", "2.0"] {
            let key = float[0].key(text).unwrap();
            assert_eq!(frame.place(0, &float[0], key), key - float[0].range().lo);
        }
        assert_eq!(frame.place(1, &float[1], float[1].key("3").unwrap()), 3);
        let sides = frame.sides().to_vec();
        assert_eq!(Frame::new(Framing::Key, 64, sides, &float), Some(frame));
        let longer = vec![Side { low: 1, high: 1 + (1 << 64) }, side(0, 3)];
        assert_eq!(Frame::new(Framing::Key, 64, longer, &float), None);
    }

    #[test]
    fn coordinates_beyond_the_frame_have_its_last_place() {
        let small = dims(&[("int32", "0", "9", None)]);
        let frame = Frame::of_keys(&small);
        let grown = vec![small[0].grown("-100", "100").unwrap()];
        assert!(frame.tells_cells(&small) && !frame.tells_cells(&grown));
        let place = |text: &str| frame.place(0, &grown[0], grown[0].key(text).unwrap());
        assert_eq!(["-100", "-1", "0", "9", "15", "16", "100"].map(place), [0, 0, 0, 9, 15, 15, 15]);
    }

    proptest! {
        #[test]
        fn places_are_monotone_and_below_the_side(
            low in any::<f64>(), high in any::<f64>(), bits in 0u32..33, values in proptest::collection::vec(any::<f64>(), 2),
            key in any::<bool>(), ints in any::<(u64, u64, u64, u64)>()) {
            let dim = Dimension::new("x", Datatype::Float64, "0", "1", None).unwrap();
            let keys = |a: f64, b: f64| {
                let finite = |v: f64| key::from_float(if v.is_finite() { v } else { 0.5 });
                (finite(a).min(finite(b)), finite(a).max(finite(b)))
            };
            let ((lo, hi), (a, b)) = (keys(low, high), keys(values[0], values[1]));
            let framing = if key { Framing::Key } else { Framing::Value };
            let frame = Frame::new(framing, bits, vec![side(lo, hi)], std::slice::from_ref(&dim)).unwrap();
            let (first, last) = (frame.place(0, &dim, a), frame.place(0, &dim, b));
            prop_assert!(first <= last && u128::from(last) < 1 << bits);
            let dim = Dimension::new("x", Datatype::UInt64, "0", "18446744073709551615", None).unwrap();
            let (lo, hi) = (ints.0.min(ints.1), ints.0.max(ints.1));
            let frame = Frame::new(framing, bits, vec![side(lo, hi)], std::slice::from_ref(&dim)).unwrap();
            let (first, last) = (frame.place(0, &dim, ints.2.min(ints.3)), frame.place(0, &dim, ints.2.max(ints.3)));
            prop_assert!(first <= last && u128::from(last) < 1 << bits);
        }
    }
}
