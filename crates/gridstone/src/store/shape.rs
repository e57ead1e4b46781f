//! JSON shapes shared by records, roots and the floor: numbers that JSON cannot hold, ids, boxes, references.
//!
//! - 64-bit checksums and box keys: strings of 16 lower-case hexadecimal digits;
//! - other integers: JSON numbers up to 2^53 in magnitude, decimal strings beyond, since many readers of JSON keep
//!   numbers as doubles;
//! - ids: strings of 32 lower-case hexadecimal digits.

use crate::base::{Error, Id, Result, limits};
use crate::schema::{KeyRange, Subarray};
use serde::de::{Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The greatest integer that a double, and so any reader of JSON, holds exactly with all below it.
const EXACT_MAX: u64 = 1 << 53;

/// 16 lower-case hexadecimal digits.
pub(super) fn hex(value: u64) -> String {
    format!("{value:016x}")
}

/// Parses the text of [`hex`]; strict, so that each value has one spelling.
pub(super) fn parse_hex(text: &str) -> Option<u64> {
    let strict = text.len() == 16 && text.bytes().all(|d| matches!(d, b'0'..=b'9' | b'a'..=b'f'));
    strict.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// A 64-bit checksum or ordered key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hex(pub(super) u64);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.serialize_str(&hex(self.0))
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        let wrong = || D::Error::invalid_value(Unexpected::Str(&text), &"16 lower-case hexadecimal digits");
        parse_hex(&text).map(Self).ok_or_else(wrong)
    }
}

/// Bytes, two lower-case hexadecimal digits each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct BytesText(pub(super) Vec<u8>);

impl Serialize for BytesText {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |half: u8| char::from(DIGITS.get(usize::from(half)).copied().unwrap_or(b'0'));
        let text: String = self.0.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
        s.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for BytesText {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        let half = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let bytes: Option<Vec<u8>> = pairs.iter().map(|[high, low]| Some(half(*high)? << 4 | half(*low)?)).collect();
        let wrong = || D::Error::invalid_value(Unexpected::Str(&text), &"lower-case hexadecimal digits in pairs");
        bytes.filter(|_| rest.is_empty()).map(Self).ok_or_else(wrong)
    }
}

/// A permanent id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IdText(pub(super) Id);

impl Serialize for IdText {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for IdText {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        Id::parse(&String::deserialize(d)?).map(Self).map_err(D::Error::custom)
    }
}

/// Ids as JSON writes them.
pub(super) fn id_texts<'a>(ids: impl IntoIterator<Item = &'a Id>) -> Vec<IdText> {
    ids.into_iter().copied().map(IdText).collect()
}

/// Parses the texts of [`id_texts`].
pub(super) fn ids<C: FromIterator<Id>>(texts: Vec<IdText>) -> C {
    texts.into_iter().map(|text| text.0).collect()
}

macro_rules! exact_number {
    ($(#[$doc:meta])* $name:ident: $t:ty, $visitor:ident, $magnitude:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) struct $name(pub(super) $t);

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
                if $magnitude(self.0) <= EXACT_MAX { self.0.serialize(s) } else { s.collect_str(&self.0) }
            }
        }

        struct $visitor;

        impl Visitor<'_> for $visitor {
            type Value = $name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer, as a string beyond 2^53")
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> std::result::Result<$name, E> {
                let wrong = |_| E::invalid_value(Unexpected::Unsigned(value), &self);
                <$t>::try_from(value).map($name).map_err(wrong)
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> std::result::Result<$name, E> {
                let wrong = |_| E::invalid_value(Unexpected::Signed(value), &self);
                <$t>::try_from(value).map($name).map_err(wrong)
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<$name, E> {
                text.parse().map($name).map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
                d.deserialize_any($visitor)
            }
        }
    };
}

exact_number!(
    /// An unsigned integer.
    Whole: u64, WholeVisitor, |value: u64| value
);
exact_number!(
    /// A signed integer.
    Signed: i64, SignedVisitor, i64::unsigned_abs
);

/// A box: per dimension its least and greatest ordered key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BoxText(Vec<(Hex, Hex)>);

impl BoxText {
    pub(super) fn of(bounds: &Subarray) -> Self {
        Self(bounds.ranges().iter().map(|r| (Hex(r.lo), Hex(r.hi))).collect())
    }

    /// The box; a Corruption error if it is empty or has an impossible number of dimensions.
    pub(super) fn bounds(&self) -> Result<Subarray> {
        if self.0.is_empty() || self.0.len() > limits::AXES_MAX {
            return Err(Error::corruption(format!("a box has {} dimensions", self.0.len())));
        }
        let range = |(lo, hi): &(Hex, Hex)| {
            if lo.0 > hi.0 {
                return Err(Error::corruption(format!("a box runs from {:#x} down to {:#x}", lo.0, hi.0)));
            }
            Ok(KeyRange::new(lo.0, hi.0))
        };
        Ok(Subarray::new(self.0.iter().map(range).collect::<Result<_>>()?))
    }
}

/// A domain: a box whose ends may be missing along a dimension, where it has no coordinate yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DomainText(Vec<Option<(Hex, Hex)>>);

impl DomainText {
    pub(super) fn of(domain: &Subarray) -> Self {
        Self(domain.ranges().iter().map(|r| (!r.is_empty()).then_some((Hex(r.lo), Hex(r.hi)))).collect())
    }

    /// The domain; a Corruption error as [`BoxText::bounds`] gives it.
    pub(super) fn domain(&self) -> Result<Subarray> {
        let whole = self.0.iter().map(|range| range.unwrap_or((Hex(0), Hex(0)))).collect();
        let known = BoxText(whole).bounds()?;
        let ranges = known.ranges().iter().zip(&self.0);
        Ok(Subarray::new(ranges.map(|(range, text)| text.map_or(KeyRange::EMPTY, |_| *range)).collect()))
    }
}

/// A manifest root, as records and the floor name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootRef {
    /// Its object's id.
    pub id: Id,
    /// The version whose state it holds.
    pub version: u64,
    /// The xxh3 of its line.
    pub xxh3: u64,
}

/// A [`RootRef`] in JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RootText {
    id: IdText,
    version: Whole,
    xxh3: Hex,
}

impl From<RootRef> for RootText {
    fn from(root: RootRef) -> Self {
        Self { id: IdText(root.id), version: Whole(root.version), xxh3: Hex(root.xxh3) }
    }
}

impl From<RootText> for RootRef {
    fn from(text: RootText) -> Self {
        Self { id: text.id.0, version: text.version.0, xxh3: text.xxh3.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_doubles_are_strings() {
        let text = |v: u64| serde_json::to_string(&Whole(v)).unwrap();
        assert_eq!(text(EXACT_MAX), "9007199254740992");
        assert_eq!(text(u64::MAX), "\"18446744073709551615\"");
        for value in [0, EXACT_MAX, EXACT_MAX + 1, u64::MAX] {
            assert_eq!(serde_json::from_str::<Whole>(&text(value)).unwrap().0, value);
        }
        for value in [i64::MIN, -1, 0, i64::MAX] {
            let text = serde_json::to_string(&Signed(value)).unwrap();
            assert_eq!(serde_json::from_str::<Signed>(&text).unwrap().0, value);
        }
        for bad in ["-1", "1.5", "1e3", "\"\"", "null", "18446744073709551616"] {
            assert!(serde_json::from_str::<Whole>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn hexadecimal_has_one_spelling() {
        assert_eq!(parse_hex(&hex(0xAB)), Some(0xAB));
        for bad in ["00000000000000AB", "ab", "+0000000000000ab", "00000000000000abc"] {
            assert_eq!(parse_hex(bad), None);
        }
    }

    #[test]
    fn impossible_boxes_are_refused() {
        let read = |text: &str| serde_json::from_str::<BoxText>(text).unwrap().bounds();
        let key = |v: u64| hex(v);
        assert!(read(&format!("[[\"{}\",\"{}\"]]", key(2), key(2))).is_ok());
        assert!(read(&format!("[[\"{}\",\"{}\"]]", key(2), key(1))).is_err());
        assert!(read("[]").is_err());
    }

    #[test]
    fn a_domain_may_lack_coordinates() {
        let key = |v: u64| hex(v);
        let text = format!("[[\"{}\",\"{}\"],null]", key(2), key(9));
        let domain = serde_json::from_str::<DomainText>(&text).unwrap().domain().unwrap();
        assert_eq!(domain.ranges(), [KeyRange::new(2, 9), KeyRange::EMPTY]);
        assert_eq!(serde_json::to_string(&DomainText::of(&domain)).unwrap(), text);
        let backward = format!("[[\"{}\",\"{}\"]]", key(2), key(1));
        assert!(serde_json::from_str::<DomainText>(&backward).unwrap().domain().is_err());
        assert!(serde_json::from_str::<DomainText>("[]").unwrap().domain().is_err());
    }
}
