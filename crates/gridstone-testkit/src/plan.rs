//! Random schemas with the coordinates that cells get, and random cases.

use crate::Dice;
use crate::coord::{Coord, Dim, Place};
use crate::enumeration;
use crate::model::Change;
use crate::text::{near, text_dimension};
use crate::value::random;
use gridstone::base::limits::AXES_MAX;
use gridstone::engine::Dedup;
use gridstone::schema::{
    Attribute, Datatype, Dimension, Extent, Filters, Order, Primitive, Schema, SchemaOptions, TimeUnit,
};
use proptest::prelude::*;
use std::sync::Arc;

/// The size of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Up to about 150 cells in many tiles.
    Tiny,
    /// Tens of thousands of cells: several blocks per tile, fragments too large for the log.
    Blocks,
}

/// The kind of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Dense arrays.
    Dense,
    /// Sparse arrays without duplicates.
    Sparse,
    /// Sparse arrays with duplicates.
    Duplicates,
}

/// A test case, determined by its seeds.
#[derive(Debug, Clone)]
pub struct Case {
    /// Which array.
    pub kind: Kind,
    /// How large.
    pub size: Size,
    /// The seed of schema and context.
    pub seed: u64,
    /// The seed of every operation.
    pub operations: Vec<u64>,
}

/// Cases of any kind with up to `operations_max` operations.
pub fn cases(size: Size, operations_max: usize) -> impl Strategy<Value = Case> {
    let kind = prop_oneof![Just(Kind::Dense), Just(Kind::Sparse), Just(Kind::Duplicates)];
    let operations = proptest::collection::vec(any::<u64>().no_shrink(), 1..=operations_max);
    (kind, any::<u64>().no_shrink(), operations).prop_map(move |(kind, seed, operations)| Case {
        kind,
        size,
        seed,
        operations,
    })
}

/// A schema, and per dimension the coordinates that cells get.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The schema.
    pub schema: Arc<Schema>,
    /// Coordinates in use, ascending; contiguous for dense arrays.
    pub used: Vec<Vec<Coord>>,
    /// How large.
    pub size: Size,
    /// How many attributes the first schema had.
    pub firsts: u32,
}

const INTEGERS: [Datatype; 10] = [
    Datatype::Int8,
    Datatype::Int16,
    Datatype::Int32,
    Datatype::Int64,
    Datatype::UInt8,
    Datatype::UInt16,
    Datatype::UInt32,
    Datatype::UInt64,
    Datatype::Datetime(TimeUnit::Microsecond.step()),
    Datatype::Timedelta(TimeUnit::Hour.step()),
];
const FLOATS: [Datatype; 2] = [Datatype::Float32, Datatype::Float64];
const OTHERS: [&str; 17] = [
    "bool",
    "string",
    "bytes",
    "float16",
    "complex64",
    "complex128",
    "bytes[5]",
    "bytes[8]",
    "uint8[3]",
    "float16[3]",
    "bool[2,2]",
    "int32[4]",
    "timedelta64[s][3]",
    "list[int8]",
    "list[float64]",
    "list[bool]",
    "list[complex64]",
];
const PIPELINES: [&str; 12] = [
    "auto",
    "auto",
    "none",
    "zstd:1",
    "lz4",
    "gzip:1",
    "delta,zstd:1",
    "for",
    "delta,for",
    "shuffle,lz4",
    "bitshuffle,zstd",
    "pco",
];

impl Plan {
    /// The plan of `seed`.
    pub fn new(kind: Kind, size: Size, seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let sparse = kind != Kind::Dense;
        let ndim = match size {
            Size::Tiny => *dice.pick(&[1, 1, 2, 2, 2, 3, 3, 4, 5, 8]),
            Size::Blocks => *dice.pick(&[1, 2, 2, 3]),
        };
        let mut room = if size == Size::Tiny { 150 } else { 20_000 + dice.below(25_000) };
        let (mut dims, mut used) = (Vec::new(), Vec::new());
        for d in 0..ndim {
            let last = size == Size::Blocks && d + 1 == ndim;
            let most = if size == Size::Tiny { room.min(13) } else { room.min(400) };
            let width = if last { room } else { 1 + dice.below(most) };
            let (axes, coords) = if sparse && dice.chance(25) {
                // One axis is left for each dimension to come.
                let free = AXES_MAX - dims.len() - (ndim - d - 1);
                text_dimension(&format!("d{d}"), width, free, &mut dice)
            } else {
                let (dim, coords) = dimension(d, sparse, ndim, width, size, &mut dice);
                (vec![dim], coords)
            };
            room = (room / coords.len().max(1)).max(1);
            dims.extend(axes);
            used.push(coords);
        }
        let count = if size == Size::Tiny { 1 + dice.below(4) } else { 1 + dice.below(2) };
        let attrs = (0..count).map(|a| attribute(a, size, &mut dice)).collect();
        let capacity = match size {
            Size::Tiny => *dice.pick(&[1, 2, 7, 30, 10_000]),
            Size::Blocks => *dice.pick(&[700, 1_024, 1_500, 2_500, 10_000, 100_000]),
        };
        let (tile_order, plain) = (*dice.pick(&[Order::Row, Order::Col]), *dice.pick(&[Order::Row, Order::Col]));
        // The curve needs numbers.
        let text = used.iter().any(|used| matches!(used.first(), Some(Coord::Text(_))));
        let cell_order = if sparse && !text && dice.chance(35) { Order::Hilbert } else { plain };
        let named: &&str = dice.pick(&["auto", "none", "zstd:1", "shuffle,lz4"]);
        let coord_filters = Filters::parse(named).unwrap();
        let duplicates = kind == Kind::Duplicates;
        let options = SchemaOptions { sparse, capacity, tile_order, cell_order, duplicates, coord_filters };
        let schema = Arc::new(framed(Schema::new(dims, attrs, options).unwrap(), seed));
        let firsts = schema.attrs().len() as u32;
        Self { schema, used, size, firsts }
    }

    /// A box between coordinates in use, sometimes extending to the ends of a sparse domain.
    pub fn a_box(&self, dice: &mut Dice) -> Vec<(Coord, Coord)> {
        let dims = Dim::all(&self.schema);
        let thin = dice.chance(30);
        let range = |used: &Vec<Coord>, dim: &Dim, dice: &mut Dice| {
            if self.schema.sparse() && dice.chance(20) {
                return (dim.lo, dim.hi);
            }
            let (a, b) = (dice.below(used.len()), dice.below(used.len()));
            let b = if thin { used.len().min(a + 1 + b % 3) - 1 } else { b };
            match (used[a.min(b)], used[a.max(b)]) {
                (Coord::Text(lo), Coord::Text(hi)) => {
                    let (lo, hi) = (near(lo, dice), near(hi, dice));
                    (lo.min(hi), lo.max(hi))
                }
                ends => ends,
            }
        };
        self.used.iter().zip(&dims).map(|(used, dim)| range(used, dim, dice)).collect()
    }

    /// The box of all coordinates in use; for a sparse array the whole domain.
    pub fn everything(&self) -> Vec<(Coord, Coord)> {
        if self.schema.sparse() {
            return Dim::all(&self.schema).iter().map(|d| (d.lo, d.hi)).collect();
        }
        self.used.iter().map(|used| (used[0], used[used.len() - 1])).collect()
    }

    /// A random change.
    pub fn change(&self, dice: &mut Dice) -> Change {
        let sparse = self.schema.sparse();
        if dice.chance(9) {
            return Change::Clear { sub: self.a_box(dice) };
        }
        if dice.chance(18) {
            let most = if self.size == Size::Tiny { 40 } else { 6_000 };
            let count = dice.below(most) + usize::from(dice.chance(90));
            return Change::Delete { cells: self.cells(count, dice) };
        }
        let attrs = self.attrs(sparse, dice);
        if !sparse && dice.chance(60) {
            let sub = self.a_box(dice);
            let count = crate::box_cells(&sub).len();
            let columns = self.columns(&attrs, count, dice);
            return Change::Box { sub, attrs, columns };
        }
        let most = *dice.pick(if self.size == Size::Tiny { &[1, 4, 60][..] } else { &[10, 1_100, 9_000] });
        let count = dice.below(most + 1);
        let cells = self.cells(count, dice);
        let dedup = *dice.pick(&[Dedup::Error, Dedup::First, Dedup::Last, Dedup::Last, Dedup::Error]);
        let columns = self.columns(&attrs, cells.len(), dice);
        Change::Cells { cells, attrs, columns, dedup }
    }

    /// Attributes by index, ascending; all of them if `all`.
    fn attrs(&self, all: bool, dice: &mut Dice) -> Vec<usize> {
        let count = self.schema.attrs().len();
        let first = dice.below(count);
        (0..count).filter(|a| all || *a == first || dice.chance(70)).collect()
    }

    fn columns(&self, attrs: &[usize], count: usize, dice: &mut Dice) -> Vec<Vec<crate::Value>> {
        attrs.iter().map(|a| random(&self.schema.attrs()[*a], count, dice)).collect()
    }

    /// Random cells: from all coordinates in use or from a few, so that some are named twice.
    pub(crate) fn cells(&self, count: usize, dice: &mut Dice) -> Vec<Place> {
        let narrow = dice.chance(30);
        let one = |dice: &mut Dice| {
            let near = |used: &Vec<Coord>, dice: &mut Dice| {
                let most = if narrow { used.len().min(1 + used.len() / 8) } else { used.len() };
                used[dice.below(most)]
            };
            self.used.iter().map(|used| near(used, dice)).collect()
        };
        let mut cells: Vec<Place> = (0..count).map(|_| one(dice)).collect();
        if dice.chance(50) {
            let mut seen = std::collections::BTreeSet::new();
            cells.retain(|c| seen.insert(c.clone()));
        }
        cells
    }
}

/// A schema with the frame of its Hilbert curve, if it has one: that of a new array, that of older releases, or one with few
/// places, so that many cells share theirs.
fn framed(schema: Schema, seed: u64) -> Schema {
    let mut dice = Dice::new(!seed);
    if schema.options().cell_order != Order::Hilbert || dice.chance(30) {
        return schema.of_new_array();
    }
    let (old, by) = (schema.frame(), *dice.pick(&["value", "value", "key"]));
    let old_sides = old.sides().iter().map(|side| (side.low.into(), side.high));
    let (by, bits, sides): (_, _, Vec<(u128, u128)>) = match dice.chance(20) {
        true => ("key", old.bits(), old_sides.collect()),
        false => {
            let bits = dice.below(5) as u32;
            (by, bits, schema.dims().iter().map(|dim| small_side(dim, &mut dice)).collect())
        }
    };
    let sides: Vec<String> = sides.iter().map(|(low, high)| format!(r#"["{low}","{high}"]"#)).collect();
    let made = schema.of_new_array().to_stored_json();
    let rest = made.split(",\"frame\":").next().unwrap();
    let frame = format!(r#"{{"by":"{by}","bits":{bits},"sides":[{}]}}"#, sides.join(","));
    Schema::from_stored_json(&format!("{rest},\"frame\":{frame}}}")).unwrap()
}

/// A part of the domain, or a tile and perhaps more.
fn small_side(dim: &Dimension, dice: &mut Dice) -> (u128, u128) {
    if let Extent::Cells(n) = dim.extent() {
        let more = u128::from(n) * dice.below(2) as u128;
        return (0, (u128::from(n - 1) + more).min(u64::MAX.into()));
    }
    let range = dim.range();
    let mut key = |from: u64| from + (u128::from(range.hi - from) * dice.below(1_001) as u128 / 1_000) as u64;
    let low = key(range.lo);
    (low.into(), key(low).into())
}

/// Least and greatest value of an integer type that may be a coordinate.
pub(crate) fn limits(datatype: Datatype) -> (i128, i128) {
    let bits = datatype.width().unwrap() as u32 * 8;
    match datatype {
        Datatype::UInt8 | Datatype::UInt16 | Datatype::UInt32 | Datatype::UInt64 => (0, (1 << bits) - 1),
        time if time.is_time() => (i128::from(i64::MIN) + 1, i128::from(i64::MAX)),
        _ => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
    }
}

fn dimension(
    number: usize,
    sparse: bool,
    ndim: usize,
    width: usize,
    size: Size,
    dice: &mut Dice,
) -> (Dimension, Vec<Coord>) {
    let name = format!("d{number}");
    if sparse && dice.chance(30) {
        return float_dimension(&name, width.min(60), dice);
    }
    let datatype = *dice.pick(&INTEGERS);
    let (least, greatest) = limits(datatype);
    let width = (width as i128).min(greatest - least + 1);
    let len = (width + dice.between(0, width * 2 + 4)).min(greatest - least + 1);
    let (lo, hi) = match dice.below(5) {
        0 => (least, greatest),
        1 => (least, least + len - 1),
        2 => (greatest - len + 1, greatest),
        3 => ((-len / 2).max(least), (-len / 2).max(least) + len - 1),
        _ => {
            let lo = dice.between(least, greatest - len + 1);
            (lo, lo + len - 1)
        }
    };
    let from = *dice.pick(&[lo, hi - width + 1, dice.clone().between(lo, hi - width + 1)]);
    let mut coords: Vec<Coord> = (from..from + width).map(Coord::Int).collect();
    if sparse && size == Size::Blocks && dice.chance(50) {
        coords = (0..width).map(|_| Coord::Int(dice.between(lo, hi))).collect();
    }
    if sparse {
        coords.extend([Coord::Int(lo), Coord::Int(hi)]);
        coords.sort();
        coords.dedup();
    }
    let tile = extent(hi - lo + 1, width, sparse, ndim, dice).map(|n| n.to_string());
    (Dimension::new(&name, datatype, &lo.to_string(), &hi.to_string(), tile.as_deref()).unwrap(), coords)
}

/// An extent that need not divide the domain. A dense tile holds at most 2^31 cells.
fn extent(count: i128, width: i128, sparse: bool, ndim: usize, dice: &mut Dice) -> Option<i128> {
    let most = if sparse { i128::from(u64::MAX) } else { 1 << (31 / ndim.max(1)) };
    let most = most.min(count);
    match dice.below(6) {
        0 if count <= most => None,
        0 | 1 => Some(dice.between(1, most)),
        2 => Some(most),
        3 => Some((width / 2 + 1).min(most)),
        _ => Some(dice.between(1, width.min(most).max(1)).max(width / 40).min(most)),
    }
}

fn float_dimension(name: &str, width: usize, dice: &mut Dice) -> (Dimension, Vec<Coord>) {
    let datatype = *dice.pick(&FLOATS);
    let round = |v: f64| if datatype == Datatype::Float32 { f64::from(v as f32) } else { v };
    let (lo, hi) = *dice.pick(&[(-1.0, 1.0), (0.0, 360.0), (-1e30, 1e30), (1e-3, 1e-2), (-7.5, 0.0)]);
    let (lo, hi) = (round(lo), round(hi));
    let mut values = vec![lo, hi];
    for _ in 0..width {
        values.push(round(lo + (hi - lo) * (dice.word() as f64 / u64::MAX as f64)).clamp(lo, hi));
    }
    if lo <= 0.0 && hi >= 0.0 {
        values.push(0.0);
    }
    let mut coords: Vec<Coord> = values.into_iter().map(|v| Coord::Float(if v == 0.0 { 0.0 } else { v })).collect();
    coords.sort();
    coords.dedup();
    let text = |v: f64| if datatype == Datatype::Float32 { format!("{:?}", v as f32) } else { format!("{v:?}") };
    let tile = match dice.below(3) {
        0 => None,
        1 => Some((hi - lo) / 3.7),
        _ => Some((hi - lo) / 1e4 * (1.0 + dice.below(5_000) as f64)),
    };
    let tile = tile.map(|v| format!("{v:?}"));
    (Dimension::new(name, datatype, &text(lo), &text(hi), tile.as_deref()).unwrap(), coords)
}

/// Sometimes with bit rounding in front; filters that do not fit it are drawn again.
fn rounded(filters: String, dice: &mut Dice) -> String {
    if dice.chance(80) { filters } else { format!("bitround:{},{filters}", 1 + dice.below(9)) }
}

pub(crate) fn attribute(number: usize, size: Size, dice: &mut Dice) -> Attribute {
    let others = OTHERS.into_iter().map(|name| Datatype::parse(name).unwrap());
    let all: Vec<Datatype> = INTEGERS.into_iter().chain(FLOATS).chain(others).collect();
    let datatype = if size == Size::Blocks && dice.chance(50) { Datatype::Int64 } else { *dice.pick(&all) };
    let fill = match datatype {
        _ if dice.chance(60) => None,
        Datatype::Bool => Some("true"),
        Datatype::String => Some("fill é"),
        Datatype::Bytes => Some("00ff"),
        Datatype::Float16 | Datatype::Float32 | Datatype::Float64 => Some("NaN"),
        Datatype::Complex64 | Datatype::Complex128 => Some("1.5-NaNj"),
        Datatype::FixedBytes(5) => Some("00ff000001"),
        Datatype::Vector(Primitive::UInt8, _) => Some("[7,0,255]"),
        Datatype::List(Primitive::Float64) => Some("[7,NaN]"),
        Datatype::FixedBytes(_) | Datatype::Vector(..) | Datatype::List(_) => None,
        _ => Some("7"),
    };
    let (nullable, name) = (dice.chance(40), format!("a{number}"));
    let enumerated = dice.chance(15).then(|| enumeration::categories(dice));
    loop {
        let filters = dice.pick(&PIPELINES).to_string();
        let made = match &enumerated {
            Some(categories) => {
                let codes = *dice.pick(&[None, Some(Datatype::UInt8), Some(Datatype::UInt16), Some(Datatype::UInt32)]);
                let last = categories.texts().pop().filter(|_| dice.chance(40));
                Attribute::enumerated(&name, (categories.clone(), codes), nullable, last.as_deref(), &filters)
            }
            None => Attribute::new(&name, datatype, nullable, fill, &rounded(filters, dice)),
        };
        if let Ok(attr) = made {
            return attr;
        }
    }
}
