//! The frame of a Hilbert curve: where coordinates lie along it.
//!
//! The curve runs through a cube of 2^bits places a side. The frame says, per dimension, which coordinates the cube spans:
//! the cells of a tile for a dimension with integer tiles, a range of coordinates for others. It stays when the domain
//! grows, so cells keep their places. Coordinates beyond it have the place of its nearest end.

use super::places::Places;
use super::{Dimension, Extent};

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
    pub(super) fn count(self) -> u128 {
        self.high - u128::from(self.low) + 1
    }

    fn contains(self, key: u64) -> bool {
        self.low <= key && u128::from(key) <= self.high
    }

    /// The greatest key.
    pub(super) fn last(self) -> u64 {
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

/// The most bits that a float dimension asks for in the frame of a new array.
const FLOAT_BITS_MAX: u32 = 32;

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

    /// The frame of a new array with a curve: floats by their values, integers by their tile or domain. The frame has the
    /// most bits that a dimension asks for. An integer one asks for those that its side needs, so that each coordinate has
    /// a place of its own; an index has 128 bits at most. A float one asks for 32, as far as an index has 64.
    pub(super) fn of_values(dims: &[Dimension]) -> Self {
        let side = |d: &Dimension| match d.extent() {
            Extent::Cells(n) => Side { low: 0, high: u128::from(n - 1) },
            Extent::Whole | Extent::Length(_) => Side { low: d.range().lo, high: d.range().hi.into() },
        };
        let ndim = (dims.len() as u32).max(1);
        let asked = |d: &Dimension| match d.datatype().is_float() {
            true => FLOAT_BITS_MAX.min(u64::BITS / ndim),
            false => (u128::BITS - (side(d).count() - 1).leading_zeros()).min(u128::BITS / ndim),
        };
        let bits = dims.iter().map(asked).max().unwrap_or(0);
        Self { framing: Framing::Value, bits, sides: dims.iter().map(side).collect() }
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

    /// The places along the curve of the coordinates of dimension number `at`, `dim`: below 2^bits, and monotone in the offset
    /// or key; `None` if there is no such dimension.
    ///
    /// With the side `low ..= high`, an integer or key `v` has the place `floor((v - low) * 2^bits / (high - low + 1))`,
    /// in whole numbers. A float by its value has `floor((v/2 - low/2) / (high/2 - low/2) * 2^bits)`, each step rounded
    /// to float64. Both are clamped to `0 ..= 2^bits - 1`.
    pub fn places(&self, at: usize, dim: &Dimension) -> Option<Places> {
        self.sides.get(at).map(|side| Places::new(self.framing, self.bits, *side, dim))
    }

    /// The place of one key.
    pub fn place(&self, at: usize, dim: &Dimension, key: u64) -> u64 {
        self.places(at, dim).map_or(0, |places| places.of(dim, key))
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
    use crate::schema::{Datatype, key};
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

    #[test]
    fn frames_of_new_arrays_are_by_value_and_have_the_bits_that_a_dimension_asks_for() {
        let of = |text: &[(&str, &str, &str, Option<&str>)]| {
            let dims = dims(text);
            let frame = Frame::of_values(&dims);
            assert_eq!(Frame::new(Framing::Value, frame.bits(), frame.sides().to_vec(), &dims), Some(frame.clone()));
            (frame.bits(), frame.tells_cells(&dims), frame.sides().to_vec())
        };
        let (byte, all) = (("int8", "-9", "90", None), ("int64", "-9223372036854775808", "9223372036854775807", None));
        let (tiled, float) = (("int64", "-9", "90000", Some("1000")), ("float64", "-180", "180", None));
        assert_eq!(of(&[byte]), (7, true, vec![side((1 << 63) - 9, (1 << 63) + 90)]));
        assert_eq!(of(&[tiled, byte]), (10, true, vec![side(0, 999), side((1 << 63) - 9, (1 << 63) + 90)]));
        assert_eq!(of(&[all]), (64, true, vec![side(0, u64::MAX)]));
        let bits_of = |text: &[_]| (of(text).0, of(text).1);
        assert_eq!(bits_of(&[all, byte]), (64, true));
        assert_eq!(bits_of(&[("uint32", "0", "4294967295", None), byte]), (32, true));
        assert_eq!(bits_of(&[all, byte, byte]), (42, false));
        assert_eq!(bits_of(&[all, float]), (64, false));
        assert_eq!(bits_of(&[tiled; 8]), (10, true));
        assert_eq!(bits_of(&[("int32", "0", "99999", None); 8]), (16, false));
        assert_eq!(bits_of(&[byte; 8]), (7, true));
        assert_eq!(
            of(&[float, tiled]),
            (32, false, vec![side(key::from_float(-180.0), key::from_float(180.0)), side(0, 999)])
        );
        assert_eq!(bits_of(&[float, float, float]), (21, false));
        // One cell, and it may grow.
        assert_eq!(bits_of(&[("int8", "4", "4", None)]), (0, true));
    }

    /// By value, floats at the ends of what there is, and sides without a length.
    #[test]
    fn places_of_floats_have_no_gaps_in_their_definition() {
        let place = |low: f64, high: f64, bits: u32, value: f64| {
            let dim = Dimension::new("x", Datatype::Float64, "0", "1", None).unwrap();
            let sides = vec![side(key::from_float(low), key::from_float(high))];
            Frame::new(Framing::Value, bits, sides, std::slice::from_ref(&dim)).unwrap().place(
                0,
                &dim,
                key::from_float(value),
            )
        };
        let (most, least) = (f64::MAX, 5e-324);
        assert_eq!([-most, 0.0, most].map(|v| place(-most, most, 32, v)), [0, 1 << 31, u32::MAX.into()]);
        assert_eq!(
            [-180.0, -90.0, -1e-300, 0.0, 90.0, 180.0, 181.0, most].map(|v| place(-180.0, 180.0, 2, v)),
            [0, 1, 2, 2, 3, 3, 3, 3]
        );
        // Halved they are equal: nothing lies between them.
        assert_eq!(
            [-1.0, 0.0, least, 2.0 * least, 1.0].map(|v| place(0.0, least, 32, v)),
            [0, 0, 0, u32::MAX.into(), u32::MAX.into()]
        );
        assert_eq!([-2.0 * least, 0.0, 2.0 * least, 4.0 * least].map(|v| place(0.0, 4.0 * least, 4, v)), [0, 0, 8, 15]);
        assert_eq!([1.0, 2.0, 3.0].map(|v| place(2.0, 2.0, 32, v)), [0, 0, u32::MAX.into()]);
        assert_eq!([-most, most].map(|v| place(-1.0, 1.0, 64, v)), [0, u64::MAX]);
        assert_eq!([-1.0, 1.0].map(|v| place(-1.0, 1.0, 0, v)), [0, 0]);
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
        /// The quotient by multiplication is the one of the definition.
        #[test]
        fn places_of_integers_are_exact(
            ends in any::<(u64, u64)>(), narrow in 0u32..64, bits in 0u32..65, keys in proptest::collection::vec(any::<u64>(), 20)) {
            let (low, high) = (ends.0.min(ends.1) >> narrow, ends.0.max(ends.1) >> narrow);
            let dim = Dimension::new("x", Datatype::UInt64, "0", "18446744073709551615", None).unwrap();
            for (low, high) in [(low, high), (0, high), (low, u64::MAX), (0, u64::MAX), (low, low)] {
                let frame = Frame::new(Framing::Value, bits, vec![side(low, high)], std::slice::from_ref(&dim)).unwrap();
                let count = u128::from(high - low) + 1;
                let near = [low, high, high.saturating_sub(1), low + (high - low) / 2, low + (high - low) / 3];
                let inside = keys.iter().map(|key| low + (u128::from(*key) % count) as u64);
                let all: Vec<u64> = keys.iter().copied().chain(near).chain(inside).collect();
                let defined = |key: &u64| ((u128::from(*key.clamp(&low, &high) - low) << bits) / count) as u64;
                let expected: Vec<u64> = all.iter().map(defined).collect();
                let places = frame.places(0, &dim).unwrap();
                prop_assert_eq!(&places.of_all(&dim, &all), &expected);
                prop_assert_eq!(all.iter().map(|key| places.of(&dim, *key)).collect::<Vec<_>>(), expected);
            }
        }

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
