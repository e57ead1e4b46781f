//! The checksummed line: the common form of log records, manifest roots, the floor and leases.
//!
//! ```text
//! {"gs":1, …}  one line of JSON, its first field the format version, padded with spaces
//! \n
//! 16 lower-case hexadecimal digits: xxh3 of the line, padding included, newline excluded
//! \n
//! body         whatever follows; the line says what it is
//! ```
//! The version is checked before anything else, so a later format may change everything after it.

use super::shape::{hex, parse_hex};
use crate::base::{Error, ErrorKind, Result, limits, newer, unknown_name, xxh3};

/// The format version that this engine writes.
pub(super) const FORMAT: u64 = 1;
/// The format versions that it reads, the oldest first.
const READ: [u64; 2] = [0, FORMAT];

const PREFIX: &[u8] = b"{\"gs\":";
/// The length of newline, 16 digits, newline.
const SEAL_LEN: usize = 18;

/// A line whose checksum has been verified.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    /// The format version.
    pub(super) format: u64,
    /// The JSON text.
    pub(super) json: &'a str,
    /// The checksum, by which other objects refer to this one.
    pub(super) xxh3: u64,
    /// Where the body starts, in bytes from the start of the file.
    pub(super) body: usize,
}

/// The line of `json` and its checksum, padded so that what follows starts at a multiple of `alignment`. A Storage
/// error if the line is longer than any reader accepts.
pub(super) fn seal(mut json: String, alignment: usize) -> Result<Vec<u8>> {
    let padded = (json.len() + SEAL_LEN).next_multiple_of(alignment) - SEAL_LEN;
    json.extend(std::iter::repeat_n(' ', padded - json.len()));
    if json.len() > limits::RECORD_LINE_BYTES_MAX {
        return Err(Error::input(format!(
            "one commit would need {} bytes of log, at most {} are allowed; commit in several steps",
            json.len(),
            limits::RECORD_LINE_BYTES_MAX
        )));
    }
    Ok(sealed(json))
}

/// The line of `json` and its checksum, of any length.
pub(super) fn sealed(json: String) -> Vec<u8> {
    let seal = format!("\n{}\n", hex(xxh3(json.as_bytes())));
    let mut bytes = json.into_bytes();
    bytes.extend_from_slice(seal.as_bytes());
    bytes
}

/// The verified line at the start of `bytes`; `what` names the object in errors. Unsupported if it has another format
/// version, Corruption if the bytes are damaged.
pub(super) fn open<'a>(bytes: &'a [u8], what: &str) -> Result<Line<'a>> {
    let format = check_format(bytes, what)?;
    let damaged = |why: &str| Error::corruption(format!("{what} is damaged: {why}"));
    let searched = bytes.get(..limits::ROOT_LINE_BYTES_MAX + 1).unwrap_or(bytes);
    let end = searched.iter().position(|b| *b == b'\n').ok_or_else(|| damaged("its first line does not end"))?;
    let (line, rest) = bytes.split_at_checked(end).ok_or_else(|| damaged("its first line does not end"))?;
    let seal = rest.get(1..SEAL_LEN - 1).and_then(|digits| std::str::from_utf8(digits).ok()).and_then(parse_hex);
    let seal = seal.filter(|_| rest.get(SEAL_LEN - 1) == Some(&b'\n'));
    let seal = seal.ok_or_else(|| damaged("its checksum is cut or not hexadecimal"))?;
    if seal != xxh3(line) {
        return Err(damaged("its line does not match its checksum"));
    }
    let json = std::str::from_utf8(line).map_err(|e| damaged("its line is not UTF-8").with_source(e))?;
    Ok(Line { format, json, xxh3: seal, body: end + SEAL_LEN })
}

/// Whether these first bytes of an object include its whole line and checksum.
pub(super) fn is_whole(start: &[u8]) -> bool {
    start.iter().position(|b| *b == b'\n').is_some_and(|end| start.len() >= end + SEAL_LEN)
}

/// A whole line and its checksum, and what follows; `None` if the line does not end, or its checksum.
pub(super) fn split_whole(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|b| *b == b'\n')?;
    bytes.split_at_checked(end + SEAL_LEN)
}

/// The format version of the line at the start of `bytes`, one that this engine reads.
fn check_format(bytes: &[u8], what: &str) -> Result<u64> {
    let digits = bytes.strip_prefix(PREFIX).map(|rest| {
        let end = rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    });
    let found = digits.and_then(|d| std::str::from_utf8(d).ok()).and_then(|text| text.parse::<u64>().ok());
    match found {
        Some(known) if READ.contains(&known) => Ok(known),
        Some(_) if is_misread(bytes, digits.map_or(0, <[u8]>::len)) => {
            Err(Error::corruption(format!("{what} is damaged: its format version does not match its checksum")))
        }
        Some(other) => {
            let error = Error::unsupported(format!(
                "{what} is of format version {other}, this Gridstone knows versions up to {FORMAT}; use a newer Gridstone"
            ));
            Err(if is_sound(bytes) { error.foreign() } else { error })
        }
        None => Err(Error::corruption(format!("{what} does not start with the format version"))),
    }
}

/// Whether these bytes start with a line that matches its checksum, whatever its format.
fn is_sound(bytes: &[u8]) -> bool {
    let line = bytes.iter().position(|b| *b == b'\n').and_then(|end| bytes.split_at_checked(end));
    line.is_some_and(|(line, rest)| rest.get(1..SEAL_LEN - 1) == Some(hex(xxh3(line)).as_bytes()))
}

/// Whether the line would match its checksum with a known version in place of its `digits`. If so, these are damaged.
fn is_misread(bytes: &[u8], digits: usize) -> bool {
    let searched = bytes.get(..limits::RECORD_LINE_BYTES_MAX + 1).unwrap_or(bytes);
    let Some((line, rest)) = searched.iter().position(|b| *b == b'\n').and_then(|end| bytes.split_at_checked(end))
    else {
        return false;
    };
    let after = line.get(PREFIX.len() + digits..).unwrap_or_default();
    READ.iter().any(|known| {
        let meant = [PREFIX, known.to_string().as_bytes(), after].concat();
        rest.get(1..SEAL_LEN - 1) == Some(hex(xxh3(&meant)).as_bytes())
    })
}

/// Parses the JSON of a verified line. Unsupported if it has unknown names; Corruption, naming what it fails to be, if
/// they are not the cause.
pub(super) fn parse<T: serde::de::DeserializeOwned>(line: Line<'_>, what: &str) -> Result<T> {
    serde_json::from_str(line.json).map_err(|e| {
        let wrong = Error::corruption(format!("{what} is intact but not understood: {e}")).with_source(e);
        explained::<T>(line, what, wrong)
    })
}

/// Explains `error`, which parsing the verified line as a `T` gave: Unsupported instead of Corruption if the line has a
/// name that a `T` does not know.
pub(super) fn explained<T: serde::de::DeserializeOwned>(line: Line<'_>, what: &str, error: Error) -> Error {
    match error.kind() {
        ErrorKind::Corruption => unknown_name::<T>(line.json).map_or(error, |name| newer(what, name)),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    #[test]
    fn a_line_survives_and_its_body_is_aligned() {
        let mut bytes = seal("{\"gs\":0,\"x\":1}".to_owned(), 64).unwrap();
        assert_eq!(bytes.len(), 64);
        bytes.extend_from_slice(b"body");
        let line = open(&bytes, "it").unwrap();
        assert_eq!((line.json.trim_end(), line.body), ("{\"gs\":0,\"x\":1}", 64));
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_an_error() {
        let bytes = seal("{\"gs\":0,\"x\":1}".to_owned(), 1).unwrap();
        for cut in 0..bytes.len() {
            open(&bytes[..cut], "it").unwrap_err();
        }
        for at in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[at / 8] ^= 1 << (at % 8);
            open(&bad, "it").unwrap_err();
        }
    }

    #[test]
    fn another_format_is_named() {
        let error = open(b"{\"gs\":17,\"anything\"", "version 3").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains("17") && error.message().contains("up to 1"), "{error}");
        let mut bytes = seal("{\"gs\":0,\"x\":1}".to_owned(), 1).unwrap();
        bytes[6] = b'7';
        assert_eq!(open(&bytes, "it").unwrap_err().kind(), ErrorKind::Corruption, "the line fits with 0 in its place");
        bytes[6] = b'1';
        assert_eq!(open(&bytes, "it").unwrap_err().kind(), ErrorKind::Corruption, "a known version, and another sum");
        assert_eq!(open(b"PK\x03\x04", "it").unwrap_err().kind(), ErrorKind::Corruption);
    }
}
