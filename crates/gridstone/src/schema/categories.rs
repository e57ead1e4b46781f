//! Categories: the allowed values of an enumerated attribute.
//!
//! A cell has the *code* of its category, which is the index in the list. Codes are an ordinary unsigned column; the
//! list is in the schema. The list only grows, at its end, so a code means the same under every schema of an array.

use super::{Datatype, Sorting, bytes_to_text, key, text_to_bytes};
use crate::base::{Error, Result, limits};
use std::collections::HashMap;

/// The categories of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub struct Categories {
    datatype: Datatype,
    values: Vec<Vec<u8>>,
    ordered: bool,
    /// The code of each value, by the value's identity.
    codes: HashMap<Vec<u8>, u32>,
}

impl Categories {
    /// Parses the categories in `texts`, values of `datatype`. `ordered`: they compare by their indexes, not by their
    /// values. A Schema error names one that is no value, or is a duplicate.
    pub fn new<T: AsRef<str>>(datatype: Datatype, texts: &[T], ordered: bool) -> Result<Self> {
        let known = match datatype {
            Datatype::FixedBytes(_) => false,
            other => other.sorting() != Sorting::None,
        };
        if !known {
            return Err(Error::schema(format!(
                "categories are strings, bytes, numbers, booleans or times, not {datatype}"
            )));
        }
        Self { datatype, values: Vec::new(), ordered, codes: HashMap::new() }.extended(texts)
    }

    /// These categories, with more at the end.
    pub fn extended<T: AsRef<str>>(&self, texts: &[T]) -> Result<Self> {
        let mut made = self.clone();
        let mut bytes: usize = made.values.iter().map(Vec::len).sum();
        for text in texts {
            let text = text.as_ref();
            let value = text_to_bytes(self.datatype, text)?;
            bytes += value.len();
            let code = made.values.len() as u32;
            if made.codes.insert(self.identity(&value)?, code).is_some() {
                return Err(Error::schema(format!("the category {text:?} is named twice; each is there once")));
            }
            made.values.push(value);
        }
        let (count, most) = (made.values.len(), limits::CATEGORIES_MAX);
        if count > most || bytes > limits::CATEGORIES_BYTES_MAX {
            return Err(Error::schema(format!(
                "{count} categories of {bytes} bytes are too many: an attribute has at most {most}, of {} bytes together; \
                 store the values themselves",
                limits::CATEGORIES_BYTES_MAX
            )));
        }
        Ok(made)
    }

    /// The identity of a value: -0.0 is 0.0. A Schema error for NaN and NaT, which equal nothing.
    fn identity(&self, value: &[u8]) -> Result<Vec<u8>> {
        if self.datatype.sorting() == Sorting::Bytes {
            return Ok(value.to_vec());
        }
        match key::encode(self.datatype, value) {
            Ok(keys) => Ok(keys.iter().flat_map(|key| key.to_le_bytes()).collect()),
            Err(_) => Err(Error::schema(
                "NaN and NaT are no categories: they equal nothing; make the attribute nullable instead",
            )),
        }
    }

    /// The type of the values.
    pub fn datatype(&self) -> Datatype {
        self.datatype
    }

    /// Whether they compare by their indexes.
    pub fn ordered(&self) -> bool {
        self.ordered
    }

    /// Whether their indexes are in the order in which they compare.
    pub fn ascend(&self) -> bool {
        let keys = |value: &Vec<u8>| key::encode(self.datatype, value).unwrap_or_default();
        let ascends = |a: &Vec<u8>, b: &Vec<u8>| match self.datatype.sorting() {
            Sorting::Bytes => a < b,
            Sorting::Keys | Sorting::None => keys(a) < keys(b),
        };
        self.ordered || self.values.windows(2).all(|pair| matches!(pair, [a, b] if ascends(a, b)))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is none (yet).
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values' bytes, by code.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.values.iter().map(Vec::as_slice)
    }

    /// The values as text, by code.
    pub fn texts(&self) -> Vec<String> {
        self.values().map(|value| bytes_to_text(self.datatype, value)).collect()
    }

    /// The code of the category with these bytes.
    pub fn code_of(&self, value: &[u8]) -> Option<u32> {
        self.codes.get(&self.identity(value).ok()?).copied()
    }

    /// The smallest type of codes that leaves room for as many categories again.
    pub fn codes_type(&self) -> Datatype {
        match self.len() {
            0..=128 => Datatype::UInt8,
            129..=32_768 => Datatype::UInt16,
            _ => Datatype::UInt32,
        }
    }

    /// A Schema error unless `codes` is a type of codes with room for all categories.
    pub(super) fn check_codes(&self, codes: Datatype) -> Result<()> {
        let room = match codes {
            Datatype::UInt8 => 1 << 8,
            Datatype::UInt16 => 1 << 16,
            Datatype::UInt32 => 1u64 << 32,
            other => return Err(Error::schema(format!("codes are uint8, uint16 or uint32, not {other}"))),
        };
        if self.len() as u64 <= room {
            return Ok(());
        }
        Err(Error::schema(format!(
            "{} categories need more codes than the {room} of {codes}, which cannot change; add another attribute with wider \
             codes",
            self.len()
        )))
    }

    /// A Schema error unless these are `before`, perhaps with more at the end.
    pub(super) fn check_follows(&self, before: &Self) -> Result<()> {
        let kept = self.values.get(..before.len()) == Some(&before.values);
        if kept && self.datatype == before.datatype && self.ordered == before.ordered {
            return Ok(());
        }
        Err(Error::schema(
            "categories stay as they are, in their order, and new ones come behind them: what is stored is their places",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::TimeUnit;

    #[test]
    fn codes_are_places() {
        let made = Categories::new(Datatype::String, &["ok", "bad", ""], true).unwrap();
        assert_eq!((made.code_of(b"bad"), made.code_of(b""), made.code_of(b"x")), (Some(1), Some(2), None));
        let more = made.extended(&["x"]).unwrap();
        assert_eq!((more.code_of(b"x"), more.texts().len()), (Some(3), 4));
        assert!(more.check_follows(&made).is_ok() && made.check_follows(&more).is_err());
        let other = Categories::new(Datatype::String, &["ok", "bad", ""], false).unwrap();
        assert!(other.check_follows(&made).is_err());
        let swapped = Categories::new(Datatype::String, &["bad", "ok", "", "x"], true).unwrap();
        assert!(swapped.check_follows(&made).is_err());
    }

    #[test]
    fn what_is_no_list_of_categories_is_refused() {
        let refuse = |datatype: &str, texts: &[&str], word: &str| {
            let error = Categories::new(Datatype::parse(datatype).unwrap(), texts, false).unwrap_err();
            assert!(error.message().contains(word), "{error}");
        };
        refuse("string", &["a", "b", "a"], "\"a\" is named twice");
        refuse("float64", &["0.0", "-0.0"], "twice");
        refuse("float32", &["NaN"], "NaN");
        refuse("datetime64[s]", &["NaT"], "NaT");
        refuse("int8", &["128"], "int8");
        refuse("complex64", &[], "complex64");
        refuse("int8[3]", &[], "int8[3]");
        refuse("bytes[3]", &[], "bytes[3]");
        // Under Miri this many texts take minutes.
        if !cfg!(miri) {
            let many: Vec<String> = (0..=limits::CATEGORIES_MAX).map(|i| i.to_string()).collect();
            assert!(Categories::new(Datatype::String, &many, false).unwrap_err().message().contains("too many"));
        }
    }

    #[test]
    fn codes_have_room_to_grow() {
        let of = |count: usize| {
            let texts: Vec<String> = (0..count).map(|i| i.to_string()).collect();
            Categories::new(Datatype::Datetime(TimeUnit::Second.step()), &texts, false).unwrap()
        };
        let most = if cfg!(miri) { 3 } else { 5 };
        for (count, width) in [(0, 1), (128, 1), (129, 2), (32_768, 2), (32_769, 4)].into_iter().take(most) {
            assert_eq!(of(count).codes_type().width(), Some(width), "{count} categories");
        }
        assert!(of(256).check_codes(Datatype::UInt8).is_ok());
        assert!(of(257).check_codes(Datatype::UInt8).unwrap_err().message().contains("another attribute"));
        assert!(of(1).check_codes(Datatype::Int8).is_err());
    }
}
