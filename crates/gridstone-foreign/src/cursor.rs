//! A checked cursor over the bytes of one structure. Every read that goes past the end is an error that names the
//! structure.

use crate::error::{Error, Result};

/// The widths of addresses and lengths in a file, in bytes: 2, 4 or 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Widths {
    pub(crate) offset: u8,
    pub(crate) length: u8,
}

/// A position in the bytes of a structure.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    widths: Widths,
    what: &'static str,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `bytes`, which are a `what`.
    pub(crate) fn new(bytes: &'a [u8], widths: Widths, what: &'static str) -> Self {
        Self { bytes, at: 0, widths, what }
    }

    /// A cursor over other bytes of the same file.
    pub(crate) fn over<'b>(&self, bytes: &'b [u8], what: &'static str) -> Cursor<'b> {
        Cursor::new(bytes, self.widths, what)
    }

    pub(crate) fn widths(&self) -> Widths {
        self.widths
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    /// The bytes that are left.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let taken = self.rest().get(..count).ok_or_else(|| {
            Error::damaged(format!(
                "the {} ends too early: {count} bytes are needed, {} are left",
                self.what,
                self.remaining()
            ))
        })?;
        self.at += count;
        Ok(taken)
    }

    pub(crate) fn skip(&mut self, count: usize) -> Result<()> {
        self.take(count).map(|_| ())
    }

    /// An unsigned little-endian number of 1 to 8 bytes.
    pub(crate) fn uint(&mut self, width: usize) -> Result<u64> {
        if width > 8 {
            return Err(Error::damaged(format!("the {} has a number of {width} bytes", self.what)));
        }
        let taken = self.take(width)?;
        Ok(taken.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?.first().copied().unwrap_or_default())
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        Ok(self.uint(2)? as u16)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(self.uint(4)? as u32)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.uint(8)
    }

    /// A length or a count, in the width that the file has for them.
    pub(crate) fn length(&mut self) -> Result<u64> {
        self.uint(usize::from(self.widths.length))
    }

    /// An address. `None` is the undefined address: all bits are set.
    pub(crate) fn address(&mut self) -> Result<Option<u64>> {
        let value = self.uint(usize::from(self.widths.offset))?;
        let undefined = u64::MAX >> (64 - 8 * u32::from(self.widths.offset.clamp(1, 8)));
        Ok((value != undefined).then_some(value))
    }

    /// An address that must be defined.
    pub(crate) fn defined_address(&mut self) -> Result<u64> {
        self.address()?.ok_or_else(|| Error::damaged(format!("the {} has no address where it needs one", self.what)))
    }

    /// The bytes up to the next zero, which is consumed.
    pub(crate) fn until_zero(&mut self) -> Result<&'a [u8]> {
        let end = self.rest().iter().position(|&byte| byte == 0);
        let end = end.ok_or_else(|| Error::damaged(format!("the {} has a name without an end", self.what)))?;
        let taken = self.take(end)?;
        self.skip(1)?;
        Ok(taken)
    }

    /// Takes `signature`, or fails with what the structure is.
    pub(crate) fn signature(&mut self, signature: &[u8; 4]) -> Result<()> {
        let found = self.take(4)?;
        if found != signature {
            return Err(Error::damaged(format!(
                "expected a {} with the signature {:?}, found the bytes {found:02x?}",
                self.what,
                String::from_utf8_lossy(signature)
            )));
        }
        Ok(())
    }

    /// Takes a version, which must be `expected`.
    pub(crate) fn version(&mut self, expected: u8) -> Result<()> {
        let found = self.u8()?;
        if found != expected {
            return Err(self.unknown_version(found));
        }
        Ok(())
    }

    pub(crate) fn unknown_version(&self, found: u8) -> Error {
        Error::unsupported(format!("version {found} of the {} is not known", self.what))
    }
}

/// A name of a file. Bytes that are not UTF-8 are an error, since a name must find its object again.
pub(crate) fn name_of(bytes: &[u8]) -> Result<String> {
    String::from_utf8(bytes.to_vec())
        .map_err(|_| Error::unsupported(format!("the name {:?} is not UTF-8", String::from_utf8_lossy(bytes))))
}

/// A text that is shown: UTF-8, or else Latin-1.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|&byte| char::from(byte)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTHS: Widths = Widths { offset: 4, length: 8 };

    #[test]
    fn numbers_are_little_endian_and_an_address_of_ones_is_undefined() {
        let mut cursor = Cursor::new(&[1, 2, 0xff, 0xff, 0xff, 0xff, 5, 0, 0, 0], WIDTHS, "test");
        assert_eq!(cursor.u16().unwrap(), 0x0201);
        assert_eq!(cursor.address().unwrap(), None);
        assert_eq!(cursor.defined_address().unwrap(), 5);
        assert_eq!(cursor.remaining(), 0);
    }

    #[test]
    fn a_read_past_the_end_names_the_structure() {
        let error = Cursor::new(&[1], WIDTHS, "fractal heap").u16().unwrap_err();
        assert_eq!(error.message(), "the fractal heap ends too early: 2 bytes are needed, 1 are left");
        assert!(Cursor::new(b"abc", WIDTHS, "link").until_zero().is_err());
    }
}
