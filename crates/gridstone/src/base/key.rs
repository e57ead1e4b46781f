//! Keys of sealed stores. A key is never shown: its debug text is its type's name, and its bytes are wiped when it is
//! dropped.

use super::{Error, Result};
use std::fmt;
use zeroize::Zeroizing;

/// The length of a key, in bytes.
pub const KEY_BYTES: usize = 32;

/// A secret of 32 bytes, from which the keys of all objects of a store are derived.
#[derive(Clone)]
pub struct Key(Zeroizing<[u8; KEY_BYTES]>);

impl Key {
    /// The key of these bytes; an Input error, which does not show them, if they are not 32.
    pub fn from_slice(bytes: &[u8]) -> Result<Self> {
        if bytes.len() != KEY_BYTES {
            return Err(Error::input(format!("a key has {KEY_BYTES} bytes, not {}", bytes.len())));
        }
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        key.copy_from_slice(bytes);
        Ok(Self(key))
    }

    /// Parses the key in `text`: 64 hexadecimal digits or base64 (either alphabet, padded or not), ignoring surrounding
    /// spaces. An Input error, which does not show the text, if it is neither.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim().as_bytes();
        let digits: Option<Zeroizing<Vec<u8>>> = match text.len() {
            64 => text.iter().map(|c| hex_digit(*c)).collect::<Option<Vec<u8>>>().map(Zeroizing::new),
            _ => None,
        };
        if let Some(digits) = digits {
            let pair = |pair: &[u8; 2]| pair[0] << 4 | pair[1];
            return Self::from_slice(&Zeroizing::new(
                digits.as_slice().as_chunks().0.iter().map(pair).collect::<Vec<u8>>(),
            ));
        }
        let unpadded = text.strip_suffix(b"=").unwrap_or(text);
        let sixes = unpadded.iter().map(|c| base64_digit(*c)).collect::<Option<Vec<u8>>>().map(Zeroizing::new);
        match sixes {
            Some(sixes) if sixes.len() == 43 => Self::from_sixes(&sixes),
            _ => Err(Error::input(format!(
                "a key is written as 64 hexadecimal digits or as 44 characters of base64 (32 bytes); this text of {} \
                 characters is neither",
                text.len()
            ))),
        }
    }

    /// The key of 43 groups of six bits, the last two of which must be 0.
    fn from_sixes(sixes: &[u8]) -> Result<Self> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(KEY_BYTES + 1));
        for four in sixes.chunks(4) {
            let group = four.iter().fold(0u32, |bits, six| bits << 6 | u32::from(*six)) << (6 * (4 - four.len()));
            bytes.extend_from_slice(group.to_be_bytes().get(1..).unwrap_or_default());
        }
        if bytes.get(KEY_BYTES..) != Some(&[0]) {
            return Err(Error::input("this base64 text has stray bits at its end: some of a key was lost"));
        }
        Self::from_slice(bytes.get(..KEY_BYTES).unwrap_or_default())
    }

    /// The secret itself.
    pub fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

fn hex_digit(c: u8) -> Option<u8> {
    (c as char).to_digit(16).map(|digit| digit as u8)
}

fn base64_digit(c: u8) -> Option<u8> {
    match c {
        b'A'..=b'Z' => Some(c - b'A'),
        b'a'..=b'z' => Some(c - b'a' + 26),
        b'0'..=b'9' => Some(c - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// The id of a key: derived from it, not secret, written as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub [u8; 16]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({self})")
    }
}

/// Returns keys when they are needed.
pub trait Keys: Send + Sync + fmt::Debug {
    /// The key of this id, with which some object is sealed; without an id the current key, with which new objects are
    /// sealed. The caller compares the result with the requested id.
    ///
    /// # Errors
    /// Access if the key is not available.
    fn key(&self, id: Option<KeyId>) -> Result<Key>;
}

/// A single key acts as the whole set of keys.
impl Keys for Key {
    fn key(&self, _id: Option<KeyId>) -> Result<Key> {
        Ok(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    fn counted() -> Vec<u8> {
        (0..32).map(|i| i * 8 + 3).collect()
    }

    #[test]
    fn a_key_is_read_from_every_way_to_write_it() {
        let hex = "030b131b232b333b434b535b636b737b838b939ba3abb3bbc3cbd3dbe3ebf3fb";
        let base64 = "AwsTGyMrMztDS1NbY2tze4OLk5ujq7O7w8vT2+Pr8/s=";
        let texts = [
            hex.to_owned(),
            hex.to_uppercase(),
            format!(" {hex}\n"),
            base64.to_owned(),
            base64.trim_end_matches('=').to_owned(),
            base64.replace('+', "-").replace('/', "_"),
        ];
        for text in texts {
            assert_eq!(Key::parse(&text).unwrap().bytes().as_slice(), counted(), "{text}");
        }
        assert_eq!(Key::from_slice(&counted()).unwrap().bytes().as_slice(), counted());
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_repeated() {
        let hex = "0".repeat(63);
        let bad = ["", "secret!", &hex, &format!("{hex}g"), &format!("{hex}00"), &"A".repeat(42), &"A".repeat(45)];
        for text in bad {
            let error = Key::parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input);
            assert!(text.is_empty() || !error.message().contains(text), "{error}");
        }
        assert!(Key::parse(&format!("{}B", "A".repeat(42))).is_err(), "stray bits");
        assert!(Key::from_slice(&[7; 31]).unwrap_err().message().contains("31"));
    }

    #[test]
    fn a_key_does_not_show_itself() {
        let key = Key::from_slice(&[0xab; 32]).unwrap();
        assert_eq!(format!("{key:?} {:?}", Some(&key)), "Key Some(Key)");
        assert_eq!(KeyId([0x0f; 16]).to_string(), "0f".repeat(16));
    }
}
