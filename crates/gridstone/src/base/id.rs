//! Permanent random identities of arrays, fragments, manifests and commits.

use super::{Error, Result};
use std::fmt;

/// A random 128-bit identity, written as 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub [u8; 16]);

/// By what the id of a sorted copy differs from those of its pack and array. Random ids do so as rarely as two are the same.
const BESIDE: u128 = 0x6772_6964_7374_6f6e_6520_736f_7274_6564;

impl Id {
    /// The identity written in `text`; a Corruption error if that is not 32 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self> {
        let bad = || Error::corruption(format!("an id has 32 lower-case hexadecimal digits, found {text:?}"));
        let digits = text.as_bytes();
        if digits.len() != 32 || digits.iter().any(|d| !matches!(d, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(bad());
        }
        let number = u128::from_str_radix(text, 16).map_err(|e| bad().with_source(e))?;
        Ok(Self(number.to_be_bytes()))
    }

    /// The identity of the sorted copy of the fragments of `array` in the pack that has this one: nobody has to be told of it.
    #[must_use]
    pub fn beside(self, array: Self) -> Self {
        Self((u128::from_be_bytes(self.0) ^ u128::from_be_bytes(array.0) ^ BESIDE).to_be_bytes())
    }
}

/// One of `ids` that is there twice, if one is.
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
