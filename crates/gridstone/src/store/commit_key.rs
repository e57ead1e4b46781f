//! Commit keys: what makes a repeated commit the same one.
//!
//! ```json
//! {"key":"6a6f622d34","content":"0123456789abcdef0123456789abcdef"}      in a record; the key's bytes in hexadecimal digits
//! ```
//! ```text
//! row      u64 version · 16 bytes content, as the digits read · u64 number      little-endian; more bytes belong to newer releases
//! count    {"next":7}
//! ```
//! A caller gives a key with a commit. The store keeps it with a hash of what was given, and with its number: keys are
//! counted, those of one record in their order. A later commit with a known key does nothing.

use super::node_row::read as read_row;
use super::shape::{IdText, Whole};
use crate::base::{ByteReader, ByteWriter, Error, Id, Result, limits};
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::sync::Arc;

/// A caller's key of a commit: 1 to 128 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommitKey(Arc<[u8]>);

impl CommitKey {
    /// The key of these bytes; an Input error if there are none, or too many.
    pub fn new(bytes: &[u8]) -> Result<Self> {
        if bytes.is_empty() || bytes.len() > limits::COMMIT_KEY_BYTES_MAX {
            return Err(Error::input(format!(
                "a commit key of {} bytes was given; it has 1 to {} bytes, such as a UUID or the name of a job and a number",
                bytes.len(),
                limits::COMMIT_KEY_BYTES_MAX
            )));
        }
        Ok(Self(bytes.into()))
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Display for CommitKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match std::str::from_utf8(&self.0) {
            Ok(text) => write!(f, "{text:?}"),
            Err(_) => write!(f, "0x{}", digits(&self.0)),
        }
    }
}

/// A key with the hash of what was given for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyed {
    /// The key.
    pub key: CommitKey,
    /// The hash of what the caller gave.
    pub content: u128,
}

/// A commit that a key was given to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyedCommit {
    /// The version that it made.
    pub version: u64,
    /// The hash of what was given.
    pub content: u128,
}

impl KeyedCommit {
    /// A Conflict error unless it is the commit of `keyed`.
    pub fn check(&self, keyed: &Keyed) -> Result<()> {
        if self.content == keyed.content {
            return Ok(());
        }
        Err(Error::conflict(format!(
            "the commit key {} was given to another commit, version {}: what was given then (its content has the hash {:032x}) is not what \
             is given now ({:032x}). A key is for one content; give new content a key of its own. Nothing was committed",
            keyed.key, self.version, self.content, keyed.content
        )))
    }
}

/// A key in a record.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyText {
    key: DigitsText,
    content: IdText,
}

impl KeyText {
    pub(super) fn of(keyed: &Keyed) -> Self {
        Self { key: DigitsText(keyed.key.clone()), content: IdText(Id(keyed.content.to_be_bytes())) }
    }

    pub(super) fn read(self) -> Keyed {
        Keyed { key: self.key.0, content: u128::from_be_bytes(self.content.0.0) }
    }
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A key as pairs of lower-case hexadecimal digits.
struct DigitsText(CommitKey);

impl Serialize for DigitsText {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.serialize_str(&digits(self.0.as_bytes()))
    }
}

impl<'de> Deserialize<'de> for DigitsText {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        let value = |digit: &u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let byte = |pair: &[u8]| match pair {
            [high, low] => Some(value(high)? << 4 | value(low)?),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
        let key = bytes.and_then(|bytes| CommitKey::new(&bytes).ok());
        key.map(Self)
            .ok_or_else(|| D::Error::custom(format!("a commit key is pairs of hexadecimal digits, found {text:?}")))
    }
}

/// The row of a key: its commit, and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyRow {
    pub(super) commit: KeyedCommit,
    pub(super) number: u64,
}

impl KeyRow {
    pub(super) fn encode(&self) -> Bytes {
        let mut w = ByteWriter::new();
        w.u64(self.commit.version);
        w.raw(&self.commit.content.to_be_bytes());
        w.u64(self.number);
        w.into_bytes().into()
    }

    pub(super) fn decode(value: &[u8]) -> Result<Self> {
        let mut r = ByteReader::new(value, "the row of a commit key");
        let version = r.u64()?;
        let content = r.take(16)?.first_chunk::<16>().copied().unwrap_or_default();
        let commit = KeyedCommit { version, content: u128::from_be_bytes(content) };
        Ok(Self { commit, number: r.u64()? })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CountText {
    next: Whole,
}

/// The row that says how many keys there were.
pub(super) fn encode_count(next: u64) -> Result<Bytes> {
    let json = serde_json::to_vec(&CountText { next: Whole(next) })
        .map_err(|e| Error::input("the number of commit keys cannot be written as JSON").with_source(e))?;
    Ok(json.into())
}

pub(super) fn decode_count(value: &[u8]) -> Result<u64> {
    read_row::<CountText>(value, "the number of commit keys").map(|text| text.next.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_1_to_128_bytes() {
        assert!(CommitKey::new(b"").is_err());
        assert!(CommitKey::new(&[7; 129]).unwrap_err().message().contains("129 bytes"));
        for key in [&b"a"[..], &[0; 128], "jöb".as_bytes()] {
            assert_eq!(CommitKey::new(key).unwrap().as_bytes(), key);
        }
        assert_eq!(CommitKey::new(b"job 4").unwrap().to_string(), "\"job 4\"");
        assert_eq!(CommitKey::new(&[0xff, 1]).unwrap().to_string(), "0xff01");
    }

    #[test]
    fn texts_and_rows_survive() {
        let keyed = Keyed { key: CommitKey::new(b"job-4").unwrap(), content: u128::MAX / 3 };
        let text = serde_json::to_string(&KeyText::of(&keyed)).unwrap();
        assert_eq!(text, r#"{"key":"6a6f622d34","content":"55555555555555555555555555555555"}"#);
        assert_eq!(serde_json::from_str::<KeyText>(&text).unwrap().read(), keyed);
        let long = "00".repeat(129);
        for bad in ["", "6", "6A", "6g", &long] {
            let text = format!(r#"{{"key":"{bad}","content":"{:032x}"}}"#, 0);
            assert!(serde_json::from_str::<KeyText>(&text).is_err(), "{bad}");
        }
        let row = KeyRow { commit: KeyedCommit { version: 9, content: 1 << 100 }, number: 100_001 };
        assert_eq!(KeyRow::decode(&row.encode()).unwrap(), row);
        assert_eq!(KeyRow::decode(&[&row.encode()[..], b"newer"].concat()).unwrap(), row);
        assert!(KeyRow::decode(&row.encode()[..31]).is_err());
        assert_eq!(decode_count(&encode_count(u64::MAX).unwrap()).unwrap(), u64::MAX);
        assert!(decode_count(b"{}").is_err());
    }
}
