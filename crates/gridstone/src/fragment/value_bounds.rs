//! Bounds of the values of a fragment's attributes, in its description: a condition may rule the fragment out unopened.
//!
//! ```text
//! form   u8, 0
//! then per attribute, by ascending number, at most 32:
//!   number u32 · flags u8 (1 some cell is null, 2 some is NaN or NaT, 4 some has another value, 8 low follows, 16 high follows)
//!   · of low, then of high: u8 length, at most 16, and the bytes
//! ```
//! A bound is the ordered key of a number, bool or time, u64 big-endian; or a text cut to 16 bytes, high ones rounded up. A bound that is
//! missing where there are values is not known. So is everything in another form, which is kept as it is.

use super::encode::EncodedTile;
use super::root::{Field, Role};
use crate::base::{ByteReader, ByteWriter, Error, Result};
use crate::schema::{Datatype, Sorting, key};
use crate::tile::{Bound, ColumnView, Statistics};

const FORM: u8 = 0;
const NULLS: u8 = 1;
const NANS: u8 = 2;
const VALUES: u8 = 4;
const LOW: u8 = 8;
const HIGH: u8 = 16;
/// Attributes that are spoken of, at most.
const ATTRS_MAX: usize = 32;
/// Bytes of a bound, at most.
const BOUND_BYTES_MAX: usize = 16;
/// Bytes of it all, in whatever form.
const BYTES_MAX: usize = 4_096;

/// What a description says of the values of a fragment's attributes; by default nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValueBounds {
    bytes: Vec<u8>,
}

/// What is known of the values of one attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueSpread {
    /// Whether some may be null.
    pub nulls: bool,
    /// Whether some may be NaN or NaT.
    pub nans: bool,
    /// Whether there may be others.
    pub values: bool,
    /// No value is less; `None`: not known.
    pub min: Option<Bound>,
    /// No value is greater; `None`: not known.
    pub max: Option<Bound>,
}

impl ValueBounds {
    /// These, as they are stored; of no bytes nothing is known. Corruption if they are too many.
    pub fn new(bytes: Vec<u8>) -> Result<Self> {
        match bytes.len() {
            0..=BYTES_MAX => Ok(Self { bytes }),
            len => Err(Error::corruption(format!("bounds of values take {len} bytes, and at most {BYTES_MAX} may be"))),
        }
    }

    /// The bytes that are stored; empty if nothing is known.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What is known of the attribute with this permanent number and type. If a part is not understood, nothing is: what
    /// follows it cannot be told apart.
    pub fn of(&self, attr: u32, datatype: Datatype) -> Option<ValueSpread> {
        let entries = self.entries().ok()?.collect::<Result<Vec<_>>>().ok()?;
        if !entries.iter().is_sorted_by(|a, b| a.attr < b.attr) {
            return None;
        }
        let entry = entries.into_iter().find(|entry| entry.attr == attr)?;
        let bound = |limit: Option<Limit>| limit.and_then(|limit| limit.bound(datatype));
        let has = |kind: u8| entry.kinds & kind != 0;
        Some(ValueSpread {
            nulls: has(NULLS),
            nans: has(NANS),
            values: has(VALUES),
            min: bound(entry.low),
            max: bound(entry.high),
        })
    }

    /// Corruption if `values` of an attribute lie beyond what is said of them.
    pub fn check(&self, attr: u32, values: ColumnView<'_>) -> Result<()> {
        if self.bytes.first() != Some(&FORM) {
            return Ok(());
        }
        let Some(known) = self.entries()?.find(|entry| entry.as_ref().map_or(true, |e| e.attr == attr)) else {
            return Ok(());
        };
        let found = Entry::of(attr, values.datatype(), &Statistics::of(values), values.len() as u64);
        match found {
            Some(found) if !known?.covers(&found) => {
                Err(Error::corruption("values lie beyond the bounds that the description of the fragment has of them"))
            }
            _ => Ok(()),
        }
    }

    /// What they say, attribute by attribute; nothing in an unknown form.
    fn entries(&self) -> Result<impl Iterator<Item = Result<Entry>> + '_> {
        let mut r = ByteReader::new(&self.bytes, "bounds of values");
        let known = r.remaining() > 0 && r.u8()? == FORM;
        Ok(std::iter::from_fn(move || (known && r.remaining() > 0).then(|| Entry::read(&mut r))).take(ATTRS_MAX))
    }
}

/// One bound: the bytes that are compared.
#[derive(Debug, Clone, Copy)]
struct Limit {
    len: u8,
    bytes: [u8; BOUND_BYTES_MAX],
}

impl PartialEq for Limit {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Limit {}

impl Limit {
    /// Those bytes, which are few enough.
    fn new(bytes: &[u8]) -> Option<Self> {
        let mut held = [0; BOUND_BYTES_MAX];
        held.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self { len: bytes.len() as u8, bytes: held })
    }

    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    fn low(datatype: Datatype, bound: &Bound) -> Option<Self> {
        match datatype.sorting() {
            Sorting::Keys => Self::key(datatype, bound),
            Sorting::Bytes => Self::new(bound.bytes.get(..BOUND_BYTES_MAX).unwrap_or(&bound.bytes)),
            Sorting::None => None,
        }
    }

    fn high(datatype: Datatype, bound: &Bound) -> Option<Self> {
        match (datatype.sorting(), bound.bytes.get(..BOUND_BYTES_MAX)) {
            (Sorting::Keys, _) => Self::key(datatype, bound),
            (Sorting::Bytes, Some(cut)) if bound.bytes.len() > BOUND_BYTES_MAX => Self::above(cut),
            (Sorting::Bytes, _) => Self::new(&bound.bytes),
            (Sorting::None, _) => None,
        }
    }

    fn key(datatype: Datatype, bound: &Bound) -> Option<Self> {
        match key::encode(datatype, &bound.bytes).ok()?.as_slice() {
            [key] => Self::new(&key.to_be_bytes()),
            _ => None,
        }
    }

    /// The least of these bytes or fewer that is above every text that begins with `cut`.
    fn above(cut: &[u8]) -> Option<Self> {
        let place = cut.iter().rposition(|byte| *byte < u8::MAX)?;
        let mut above = Self::new(cut.get(..=place)?)?;
        *above.bytes.get_mut(place)? += 1;
        Some(above)
    }

    /// As statistics have it.
    fn bound(&self, datatype: Datatype) -> Option<Bound> {
        let bytes = match datatype.sorting() {
            Sorting::Keys => {
                let mut bytes = Vec::with_capacity(8);
                let key = u64::from_be_bytes(self.as_slice().try_into().ok()?);
                key::decode(datatype, [key], &mut bytes);
                // A bound that no value of the type has tells nothing.
                if key::encode(datatype, &bytes).ok()? != [key] {
                    return None;
                }
                bytes
            }
            Sorting::Bytes => self.as_slice().to_vec(),
            Sorting::None => return None,
        };
        Some(Bound { bytes, exact: false })
    }
}

/// What is said of one attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    attr: u32,
    /// Which kinds of cells there are.
    kinds: u8,
    low: Option<Limit>,
    high: Option<Limit>,
}

impl Entry {
    /// What these statistics of `cells` cells say; `None` if they do not fit them.
    fn of(attr: u32, datatype: Datatype, statistics: &Statistics, cells: u64) -> Option<Self> {
        let Statistics { null_count, nan_count, min, max, .. } = statistics;
        let values = cells.checked_sub(*null_count)?.checked_sub(*nan_count)?;
        let kind = |count: u64, kind: u8| if count > 0 { kind } else { 0 };
        Some(Self {
            attr,
            kinds: kind(*null_count, NULLS) | kind(*nan_count, NANS) | kind(values, VALUES),
            low: min.as_ref().and_then(|min| Limit::low(datatype, min)),
            high: max.as_ref().and_then(|max| Limit::high(datatype, max)),
        })
    }

    /// This, and cells of which `other` is said.
    fn add(&mut self, other: &Self) {
        let bound = |mine: Option<Limit>, others: Option<Limit>, takes_others: fn(&[u8], &[u8]) -> bool| match (
            self.kinds & VALUES != 0,
            other.kinds & VALUES != 0,
        ) {
            (true, true) => mine
                .zip(others)
                .map(|(mine, others)| if takes_others(others.as_slice(), mine.as_slice()) { others } else { mine }),
            (true, false) => mine,
            (false, _) => others,
        };
        let (low, high) = (bound(self.low, other.low, |a, b| a < b), bound(self.high, other.high, |a, b| a > b));
        (self.low, self.high, self.kinds) = (low, high, self.kinds | other.kinds);
    }

    /// Whether all that is said of `other` lies within this.
    fn covers(&self, other: &Self) -> bool {
        let both = |mine: &Option<Limit>, others: &Option<Limit>, holds: fn(&[u8], &[u8]) -> bool| match (mine, others)
        {
            (Some(mine), Some(others)) => holds(mine.as_slice(), others.as_slice()),
            (Some(_), None) => other.kinds & VALUES == 0,
            (None, _) => true,
        };
        other.kinds & !self.kinds == 0
            && both(&self.low, &other.low, |mine, others| mine <= others)
            && both(&self.high, &other.high, |mine, others| mine >= others)
    }

    fn write(&self, w: &mut ByteWriter) {
        let has = |limit: &Option<Limit>, flag: u8| if limit.is_some() { flag } else { 0 };
        w.u32(self.attr);
        w.u8(self.kinds | has(&self.low, LOW) | has(&self.high, HIGH));
        for limit in self.low.iter().chain(&self.high) {
            w.u8(limit.len);
            w.raw(limit.as_slice());
        }
    }

    fn read(r: &mut ByteReader<'_>) -> Result<Self> {
        let (attr, flags) = (r.u32()?, r.u8()?);
        let wrong = || Error::corruption(format!("the bounds of the values of attribute {attr} are impossible"));
        if flags & !(NULLS | NANS | VALUES | LOW | HIGH) != 0 {
            return Err(wrong());
        }
        let mut limit = |flag: u8| -> Result<Option<Limit>> {
            if flags & flag == 0 {
                return Ok(None);
            }
            let len = usize::from(r.u8()?);
            Limit::new(r.take(len)?).ok_or_else(wrong).map(Some)
        };
        Ok(Self { attr, kinds: flags & (NULLS | NANS | VALUES), low: limit(LOW)?, high: limit(HIGH)? })
    }
}

/// The bounds of a fragment that is being written, tile by tile.
#[derive(Debug)]
pub(super) struct BoundsFold {
    /// Place, type, and what is known so far, of the attributes that are spoken of.
    attrs: Vec<(usize, Datatype, Option<Entry>)>,
}

impl BoundsFold {
    /// The bounds of no tile yet.
    pub(super) fn new(fields: &[Field]) -> Self {
        let ordered = fields.iter().enumerate().filter_map(|(place, field)| match field.role {
            Role::Attribute(attr) if field.datatype.sorting() != Sorting::None => {
                Some((place, field.datatype, Some(Entry { attr, kinds: 0, low: None, high: None })))
            }
            _ => None,
        });
        Self { attrs: ordered.take(ATTRS_MAX).collect() }
    }

    /// Takes the cells of a tile in.
    pub(super) fn add(&mut self, tile: &EncodedTile) {
        for (place, datatype, known) in &mut self.attrs {
            let statistics = tile.pages.get(*place).and_then(|page| page.statistics.as_ref());
            *known = known.and_then(|mut known| {
                known.add(&Entry::of(known.attr, *datatype, statistics?, tile.cells)?);
                Some(known)
            });
        }
    }

    pub(super) fn finish(self) -> ValueBounds {
        let mut w = ByteWriter::new();
        for (.., entry) in self.attrs {
            if let Some(entry) = entry.filter(|entry| entry.kinds != 0) {
                if w.as_slice().is_empty() {
                    w.u8(FORM);
                }
                entry.write(&mut w);
            }
        }
        ValueBounds { bytes: w.into_bytes() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::AlignedBuf;
    use crate::tile::Column;

    fn column(datatype: Datatype, bytes: &[u8], validity: Option<&[u8]>) -> Column {
        let validity = validity.map(<[u8]>::to_vec);
        Column::new(datatype, AlignedBuf::from_slice(bytes), None, validity).unwrap()
    }

    fn texts(texts: &[&[u8]]) -> Column {
        let mut offsets = vec![0];
        texts.iter().for_each(|text| offsets.push(offsets.last().unwrap() + text.len() as u64));
        Column::new(Datatype::Bytes, AlignedBuf::from_slice(&texts.concat()), Some(offsets), None).unwrap()
    }

    /// The bounds of one attribute, number 3, in tiles with these columns.
    fn folded(tiles: &[Column]) -> ValueBounds {
        let mut known: Option<Entry> = None;
        for tile in tiles {
            let view = tile.view();
            let entry = Entry::of(3, view.datatype(), &Statistics::of(view), view.len() as u64).unwrap();
            known.get_or_insert(Entry { attr: 3, kinds: 0, low: None, high: None }).add(&entry);
        }
        let datatype = tiles[0].view().datatype();
        let made = BoundsFold { attrs: vec![(0, datatype, known)] }.finish();
        for tile in tiles {
            made.check(3, tile.view()).unwrap();
        }
        made
    }

    fn range(spread: &ValueSpread) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let bytes = |bound: &Option<Bound>| bound.as_ref().map(|b| b.bytes.clone());
        (bytes(&spread.min), bytes(&spread.max))
    }

    #[test]
    fn numbers_nulls_and_nan_are_told_over_all_tiles() {
        let longs = |values: &[i64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let (a, b) = (longs(&[5, -7]), longs(&[i64::MAX, 3]));
        let made = folded(&[column(Datatype::Int64, &a, None), column(Datatype::Int64, &b, Some(&[0, 1]))]);
        assert_eq!(made.as_bytes().len(), 1 + 5 + 9 + 9);
        let spread = made.of(3, Datatype::Int64).unwrap();
        assert_eq!((spread.nulls, spread.nans, spread.values), (true, false, true));
        assert_eq!(range(&spread), (Some((-7i64).to_le_bytes().to_vec()), Some(5i64.to_le_bytes().to_vec())));
        assert_eq!(made.of(4, Datatype::Int64), None);
        let beyond = column(Datatype::Int64, &longs(&[6]), None);
        assert!(made.check(3, beyond.view()).unwrap_err().to_string().contains("beyond the bounds"));
        assert!(made.check(4, beyond.view()).is_ok());

        let floats = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let (none, some) = (floats(&[f32::NAN, f32::NAN]), floats(&[-0.0, 2.5]));
        let nothing = column(Datatype::Float32, &floats(&[1.0]), Some(&[0]));
        let made = folded(&[nothing.clone(), column(Datatype::Float32, &none, None)]);
        let spread = made.of(3, Datatype::Float32).unwrap();
        assert_eq!((spread.nulls, spread.nans, spread.values, range(&spread)), (true, true, false, (None, None)));
        assert_eq!(made.as_bytes().len(), 6);
        let one = column(Datatype::Float32, &some, None);
        assert!(made.check(3, one.view()).is_err(), "no values were told of");
        let made = folded(&[column(Datatype::Float32, &none, None), one, nothing]);
        let spread = made.of(3, Datatype::Float32).unwrap();
        assert_eq!((spread.nulls, spread.nans, spread.values), (true, true, true));
        assert_eq!(range(&spread), (Some(0f32.to_le_bytes().to_vec()), Some(2.5f32.to_le_bytes().to_vec())));
    }

    #[test]
    fn texts_are_cut_and_rounded_up() {
        let long = [b"abcdefghijklmno".as_slice(), &[0xff, 0xff, 1]].concat();
        let made = folded(&[texts(&[&long, b"x"]), texts(&[b"b", &long])]);
        assert_eq!(
            range(&made.of(3, Datatype::Bytes).unwrap()),
            (Some([b"abcdefghijklmno".as_slice(), &[0xff]].concat()), Some(b"x".to_vec()))
        );
        let made = folded(&[texts(&[&long])]);
        assert_eq!(range(&made.of(3, Datatype::Bytes).unwrap()).1, Some(b"abcdefghijklmnp".to_vec()));
        let (highest, empty) = (vec![0xff; 17], texts(&[b""]));
        let made = folded(&[texts(&[&highest]), texts(&[b"a"]), empty]);
        assert_eq!(range(&made.of(3, Datatype::Bytes).unwrap()), (Some(Vec::new()), None), "nothing is above");
        let exact = vec![0xff; 16];
        let made = folded(&[texts(&[&exact])]);
        assert_eq!(range(&made.of(3, Datatype::Bytes).unwrap()), (Some(exact.clone()), Some(exact)));
    }

    #[test]
    fn what_is_unknown_or_damaged_tells_nothing() {
        let whole = folded(&[column(Datatype::UInt8, &[4, 9], None)]);
        let named = |bytes: &[u8]| ValueBounds::new(bytes.to_vec()).unwrap();
        let values = column(Datatype::UInt8, &[200], None);
        for cut in 2..whole.as_bytes().len() {
            let cut = named(&whole.as_bytes()[..cut]);
            assert_eq!(cut.of(3, Datatype::UInt8), None);
            assert!(cut.check(3, values.view()).is_err());
        }
        let mut newer = whole.as_bytes().to_vec();
        newer[0] = 1;
        for unknown in [named(&[]), named(&newer), named(&[FORM])] {
            assert_eq!(unknown.of(3, Datatype::UInt8), None);
            unknown.check(3, values.view()).unwrap();
        }
        let mut flagged = whole.as_bytes().to_vec();
        flagged[5] |= 128;
        assert_eq!(named(&flagged).of(3, Datatype::UInt8), None);
        // An attribute behind it, or in the bytes that are not understood, is not told of either.
        let behind = |number: u8| [vec![number, 0, 0, 0], vec![VALUES | LOW, 1, 4]].concat();
        flagged.extend(behind(4));
        assert_eq!(named(&flagged).of(4, Datatype::UInt8), None);
        let descending = named(&[whole.as_bytes(), &behind(2)].concat());
        assert_eq!((descending.of(2, Datatype::Bytes), descending.of(3, Datatype::UInt8)), (None, None));
        assert!(ValueBounds::new(vec![0; BYTES_MAX + 1]).is_err());
    }

    /// A bound may be wider than the type: it is no bound then, and not the type's lowest bits.
    #[test]
    fn a_bound_that_no_value_has_is_none() {
        let high = 1_000u64.to_be_bytes();
        let bytes = [&[FORM][..], &3u32.to_le_bytes(), &[VALUES | HIGH, 8], &high].concat();
        let spread = ValueBounds::new(bytes).unwrap().of(3, Datatype::UInt8).unwrap();
        assert_eq!(range(&spread), (None, None));
    }

    #[test]
    fn any_bytes_are_taken_without_a_panic() {
        let (numbers, texts) = (column(Datatype::Int64, &[7; 16], None), texts(&[b"a", b"b"]));
        let mut word = 1u64;
        for round in 0..20_000usize {
            let mut bytes: Vec<u8> = Vec::new();
            while bytes.len() < round % 60 {
                word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                bytes.push(if word >> 61 < 5 { (word >> 56) as u8 % 17 } else { (word >> 40) as u8 });
            }
            bytes.splice(..bytes.len().min(6), [FORM, 3, 0, 0, 0, VALUES | LOW | HIGH]);
            let any = ValueBounds::new(bytes).unwrap();
            for datatype in [Datatype::Int64, Datatype::Float16, Datatype::String, Datatype::Complex64] {
                let _ = any.of(3, datatype);
            }
            let _ = (any.check(3, numbers.view()), any.check(3, texts.view()));
        }
    }
}
