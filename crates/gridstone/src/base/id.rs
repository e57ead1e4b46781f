//! Permanent random ids of arrays, fragments, manifests and commits.

use super::{Error, Result};
use std::fmt;

/// A random 128-bit id, written as 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub [u8; 16]);

/// The constant by which the id of a sorted copy is derived from those of its pack and array. A collision with another
/// id is as unlikely as one of two random ids.
const BESIDE: u128 = 0x6772_6964_7374_6f6e_6520_736f_7274_6564;

impl Id {
    /// Parses the id in `text`; a Corruption error if that is not 32 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self> {
        let bad = || Error::corruption(format!("an id has 32 lower-case hexadecimal digits, found {text:?}"));
        let digits = text.as_bytes();
        if digits.len() != 32 || digits.iter().any(|d| !matches!(d, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(bad());
        }
        let number = u128::from_str_radix(text, 16).map_err(|e| bad().with_source(e))?;
        Ok(Self(number.to_be_bytes()))
    }

    /// Parses an id that a caller gives; an Input error if it is none.
    pub fn given(text: &str) -> Result<Self> {
        Self::parse(text).map_err(|e| Error::input(e.message().to_owned()))
    }

    /// The id of the sorted copy of the fragments of `array` in the pack with this id. It is derived, so it is stored
    /// nowhere.
    #[must_use]
    pub fn beside(self, array: Self) -> Self {
        Self((u128::from_be_bytes(self.0) ^ u128::from_be_bytes(array.0) ^ BESIDE).to_be_bytes())
    }
}

/// An id that occurs twice in `ids`, if any.
pub fn id_named_twice(ids: impl IntoIterator<Item = Id>) -> Option<Id> {
    let mut sorted: Vec<u128> = ids.into_iter().map(|id| u128::from_be_bytes(id.0)).collect();
    sorted.sort_unstable();
    let twice = sorted.windows(2).find(|pair| pair.first() == pair.last());
    twice.and_then(|pair| pair.first()).map(|id| Id(id.to_be_bytes()))
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}
