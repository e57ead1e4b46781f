//! Coordinates as plain numbers, dimensions by definition, and boxes of coordinates.

use gridstone::base::AlignedBuf;
use gridstone::engine::{Column, ColumnView};
use gridstone::schema::{Coordinate, Datatype, Framing, Order, Schema};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::{LazyLock, Mutex};

/// A coordinate.
#[derive(Debug, Clone, Copy)]
pub enum Coord {
    /// A coordinate of an integer, datetime or timedelta dimension.
    Int(i128),
    /// A coordinate of a float dimension; never NaN, never -0.0.
    Float(f64),
    /// A coordinate of a text dimension.
    Text(&'static str),
}

impl Coord {
    /// Makes a text coordinate. The text is kept for as long as the tests run, so that a coordinate is a plain value;
    /// there are few different texts.
    pub fn of_text(text: &str) -> Self {
        static KNOWN: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
        let mut known = KNOWN.lock().unwrap();
        if let Some(found) = known.get(text) {
            return Self::Text(found);
        }
        let kept: &'static str = String::from(text).leak();
        known.insert(kept);
        Self::Text(kept)
    }
}

impl Ord for Coord {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.chars().cmp(b.chars()),
            _ => panic!("coordinates of two kinds"),
        }
    }
}

impl PartialOrd for Coord {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Coord {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Coord {}

/// The coordinates of a cell.
pub type Place = Vec<Coord>;

/// A side of the frame of a Hilbert curve, as numbers.
#[derive(Debug, Clone, Copy, Default)]
struct Curve {
    by_value: bool,
    bits: u32,
    low: u64,
    high: u128,
}

/// A dimension: the meaning of its domain and extent.
#[derive(Debug, Clone)]
pub struct Dim {
    /// Its type.
    pub datatype: Datatype,
    /// The least coordinate.
    pub lo: Coord,
    /// The greatest coordinate; for text one that is greater than all.
    pub hi: Coord,
    /// The least coordinate when the array was made: tiles are counted from it.
    pub first: Coord,
    /// Where coordinates lie along a Hilbert curve.
    curve: Curve,
    /// The tile extent; `None`: one tile.
    pub extent: Option<Coord>,
    /// The length of the longest text in bytes of UTF-8, for a text dimension.
    pub max_bytes: Option<usize>,
}

impl Dim {
    /// The dimensions of `schema`, read from their texts.
    pub fn all(schema: &Schema) -> Vec<Self> {
        let mut dims: Vec<Self> = schema.coordinates().map(Self::of).collect();
        if schema.options().cell_order == Order::Hilbert {
            let frame = schema.frame();
            let (by_value, bits) = (frame.framing() == Framing::Value, frame.bits());
            for (dim, side) in dims.iter_mut().zip(frame.sides()) {
                dim.curve = Curve { by_value, bits, low: side.low, high: side.high };
            }
        }
        dims
    }

    /// Takes over what a dimension has from when the array was made.
    pub(crate) fn keep(&mut self, before: &Self) {
        (self.first, self.curve) = (before.first, before.curve);
    }

    fn of(dim: Coordinate<'_>) -> Self {
        let (datatype, max_bytes) = (dim.datatype(), dim.max_bytes());
        let Some(axis) = dim.number() else {
            let above = std::iter::repeat_n(char::MAX, max_bytes.unwrap() / 4 + 1).collect::<String>();
            let (lo, hi) = (Coord::of_text(""), Coord::of_text(&above));
            return Self { datatype, lo, hi, first: lo, curve: Curve::default(), extent: None, max_bytes };
        };
        let (lo, hi, tile) = axis.texts();
        let zero = Coord::Int(0);
        let curve = Curve::default();
        let mut made = Self { datatype, lo: zero, hi: zero, first: zero, curve, extent: None, max_bytes };
        (made.lo, made.hi) = (made.coord(&lo), made.coord(&hi));
        made.first = made.lo;
        // An extent of 32-bit floats need not be a 32-bit float.
        made.extent = tile.map(|text| match datatype.is_float() {
            true => Coord::Float(text.parse().unwrap()),
            false => Coord::Int(text.parse().unwrap()),
        });
        made
    }

    /// The coordinate in a text that the engine wrote.
    pub fn coord(&self, text: &str) -> Coord {
        match self.datatype {
            Datatype::String => Coord::of_text(text),
            Datatype::Float32 => Coord::Float(f64::from(text.parse::<f64>().unwrap() as f32)),
            Datatype::Float64 => Coord::Float(text.parse().unwrap()),
            _ => Coord::Int(text.parse().unwrap()),
        }
    }

    /// The space tile of a coordinate: the number of whole extents between the first low end and it, below 0 before that.
    pub fn tile(&self, at: Coord) -> i128 {
        match (at, self.first, self.extent) {
            (_, _, None) => 0,
            (Coord::Int(v), Coord::Int(lo), Some(Coord::Int(n))) => (v - lo).div_euclid(n),
            (Coord::Float(v), Coord::Float(lo), Some(Coord::Float(n))) => {
                ((v - lo) / n).floor().clamp(-(2f64.powi(53)), 2f64.powi(53)) as i128
            }
            _ => panic!("coordinates of two kinds"),
        }
    }

    /// The place of a coordinate along the curve, as the page on keys of the format defines it.
    fn place(&self, at: Coord) -> u64 {
        let Curve { by_value, bits, low, high } = self.curve;
        let last = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        let u = match (at, self.first, self.extent) {
            (Coord::Float(v), ..) if by_value => {
                let (v_low, v_high) = (float_of(low), float_of(u64::try_from(high).unwrap_or(u64::MAX)));
                let place = ((v / 2.0 - v_low / 2.0) / (v_high / 2.0 - v_low / 2.0) * 2f64.powi(bits as i32)).floor();
                return if place >= last as f64 { last } else { place.max(0.0) as u64 };
            }
            (Coord::Float(v), ..) => u128::from(steps(v)),
            (Coord::Int(v), Coord::Int(first), Some(Coord::Int(n))) => (v - first).rem_euclid(n) as u128,
            (Coord::Int(v), ..) if self.is_signed() => (v + (1 << 63)) as u128,
            (Coord::Int(v), ..) => v as u128,
            _ => panic!("coordinates of two kinds"),
        };
        let low = u128::from(low);
        (((u.clamp(low, high) - low) << bits) / (high - low + 1)) as u64
    }

    fn is_signed(&self) -> bool {
        !matches!(self.datatype, Datatype::UInt8 | Datatype::UInt16 | Datatype::UInt32 | Datatype::UInt64)
    }

    /// A coordinate as a user writes it.
    pub fn text(&self, at: Coord) -> String {
        match at {
            Coord::Int(v) => v.to_string(),
            Coord::Float(v) if self.datatype == Datatype::Float32 => format!("{:?}", v as f32),
            Coord::Float(v) => format!("{v:?}"),
            Coord::Text(text) => text.to_owned(),
        }
    }

    /// Coordinates as a column.
    pub fn column(&self, coords: impl Iterator<Item = Coord>) -> Column {
        let (mut bytes, mut offsets) = (Vec::new(), vec![0u64]);
        let width = self.datatype.width().unwrap_or(0);
        for at in coords {
            match at {
                Coord::Text(text) => bytes.extend_from_slice(text.as_bytes()),
                Coord::Int(v) => bytes.extend_from_slice(&v.to_le_bytes()[..width]),
                Coord::Float(v) if width == 4 => bytes.extend_from_slice(&(v as f32).to_le_bytes()),
                Coord::Float(v) => bytes.extend_from_slice(&v.to_le_bytes()),
            }
            offsets.push(bytes.len() as u64);
        }
        let offsets = self.datatype.is_var().then_some(offsets);
        Column::new(self.datatype, AlignedBuf::from_slice(&bytes), offsets, None).unwrap()
    }

    /// The coordinates in a column; fails on -0.0.
    pub fn coords(&self, view: ColumnView<'_>) -> Vec<Coord> {
        assert_eq!(view.datatype(), self.datatype);
        let signed = self.is_signed();
        let one = |bytes: &[u8]| match (self.datatype, bytes.len()) {
            (Datatype::String, _) => Coord::of_text(std::str::from_utf8(bytes).unwrap()),
            (Datatype::Float32, _) => Coord::Float(f64::from(f32::from_le_bytes(bytes.try_into().unwrap()))),
            (Datatype::Float64, _) => Coord::Float(f64::from_le_bytes(bytes.try_into().unwrap())),
            (_, n) => {
                let negative = signed && bytes[n - 1] & 0x80 != 0;
                let mut word = [if negative { 0xff } else { 0 }; 16];
                word[..n].copy_from_slice(bytes);
                Coord::Int(i128::from_le_bytes(word))
            }
        };
        let all: Vec<Coord> = (0..view.len()).map(|row| one(view.value(row))).collect();
        let negative_zero = |c: &Coord| matches!(c, Coord::Float(v) if v.to_bits() == (-0.0f64).to_bits());
        assert!(!all.iter().any(negative_zero), "a coordinate was read as -0.0");
        all
    }
}

/// The rank of a float among all floats.
fn steps(v: f64) -> u64 {
    let bits = v.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The float of this rank.
fn float_of(rank: u64) -> f64 {
    f64::from_bits(if rank >> 63 == 1 { rank & !(1 << 63) } else { !rank })
}

/// Compares cells in row- or column-major order.
pub(crate) fn compare_plain(order: Order, a: &Place, b: &Place) -> Ordering {
    match order {
        Order::Row => a.cmp(b),
        Order::Col => a.iter().rev().cmp(b.iter().rev()),
        Order::Hilbert => panic!("a curve needs dimensions"),
    }
}

/// The index of a cell along the Hilbert curve of its tile, bit by bit, as the page on keys of the format defines it.
fn along_curve(dims: &[Dim], place: &Place) -> Vec<u64> {
    let bits = dims.first().map_or(0, |dim| dim.curve.bits);
    let mut x: Vec<u64> = place.iter().zip(dims).map(|(c, d)| d.place(*c)).collect();
    for bit in (1..bits).rev() {
        let low = (1u64 << bit) - 1;
        for d in 0..x.len() {
            if x[d] >> bit & 1 == 1 {
                x[0] ^= low;
            } else {
                let exchanged = (x[0] ^ x[d]) & low;
                x[0] ^= exchanged;
                x[d] ^= exchanged;
            }
        }
    }
    for d in 1..x.len() {
        x[d] ^= x[d - 1];
    }
    let last = x[x.len() - 1];
    let turned = (1..bits).filter(|bit| last >> bit & 1 == 1).fold(0, |turned, bit| turned ^ ((1u64 << bit) - 1));
    (0..bits).rev().flat_map(|bit| x.iter().map(move |x| (x ^ turned) >> bit & 1).collect::<Vec<_>>()).collect()
}

/// The global order by its definition: tiles in tile order, then cells in cell order.
pub(crate) fn compare_global(schema: &Schema, dims: &[Dim], a: &Place, b: &Place) -> Ordering {
    let tiles = |p: &Place| p.iter().zip(dims).map(|(c, d)| Coord::Int(d.tile(*c))).collect::<Place>();
    compare_plain(schema.options().tile_order, &tiles(a), &tiles(b)).then_with(|| match schema.options().cell_order {
        Order::Hilbert => along_curve(dims, a).cmp(&along_curve(dims, b)).then_with(|| a.cmp(b)),
        plain => compare_plain(plain, a, b),
    })
}

/// Whether `place` lies in the box.
pub fn inside(sub: &[(Coord, Coord)], place: &Place) -> bool {
    sub.iter().zip(place).all(|((lo, hi), c)| lo <= c && c <= hi)
}

/// Every cell of an integer box in row-major order.
pub fn box_cells(sub: &[(Coord, Coord)]) -> Vec<Place> {
    let mut cells: Vec<Place> = vec![Vec::new()];
    for (lo, hi) in sub {
        let (Coord::Int(lo), Coord::Int(hi)) = (*lo, *hi) else { panic!("a dense box of floats") };
        let longer = |cell: &Place| {
            (lo..=hi).map(|v| cell.iter().copied().chain([Coord::Int(v)]).collect()).collect::<Vec<Place>>()
        };
        cells = cells.iter().flat_map(longer).collect();
    }
    cells
}

/// The box in the engine's form.
pub fn box_texts(dims: &[Dim], sub: &[(Coord, Coord)]) -> Vec<(String, String)> {
    sub.iter().zip(dims).map(|((lo, hi), d)| (d.text(*lo), d.text(*hi))).collect()
}
