//! The superblock: where the root group is, and how wide addresses are.
//!
//! ```text
//! version 0, 1   signature 8 | versions 4 | widths 2 | - | B-tree sizes 4 | flags 4 | [2, -2] | base, free space,
//!                end, driver block | symbol table entry of the root
//! version 2, 3   signature 8 | version | widths 2 | flags | base, extension, end, root | checksum 4
//! ```
//!
//! It lies at byte 0, 512, 1024, 2048 and so on. Bytes before it are the user block.

use super::checksum::verified;
use crate::cursor::{Cursor, Widths};
use crate::error::{Error, ErrorKind, Result};
use crate::source::ByteSource;

const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";
/// Bytes of the longest superblock: version 1, with addresses of 8 bytes.
const BYTES_MAX: u64 = 160;

/// What the superblock says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Superblock {
    /// Absolute offset of the superblock.
    pub(super) base: u64,
    pub(super) widths: Widths,
    /// Address of the root group's object header.
    pub(super) root: u64,
    /// Address of the object header that continues the superblock.
    pub(super) extension: Option<u64>,
    /// Address of a description of the file's parts, if it was written in several.
    pub(super) driver: Option<u64>,
}

impl Superblock {
    /// Finds and reads the superblock.
    pub(super) fn read(source: &dyn ByteSource) -> Result<Self> {
        let base = find(source)?;
        let mut bytes = vec![0; (source.length() - base).min(BYTES_MAX) as usize];
        source.read_at(base, &mut bytes)?;
        let version = bytes.get(8).copied().unwrap_or_default();
        match version {
            0 | 1 => first_versions(&bytes, base, version),
            2 | 3 => later_versions(&bytes, base),
            _ => Err(Error::unsupported(format!("version {version} of the superblock is not known"))),
        }
    }
}

fn find(source: &dyn ByteSource) -> Result<u64> {
    let mut at = 0;
    loop {
        let mut found = [0; 8];
        if source.length() < at + 16 {
            let message = "this is no HDF5 file: its signature is at none of the places where it may be";
            return Err(Error::new(ErrorKind::Format, message));
        }
        source.read_at(at, &mut found)?;
        if found == SIGNATURE {
            return Ok(at);
        }
        at = if at == 0 { 512 } else { at * 2 };
    }
}

fn widths(offset: u8, length: u8) -> Result<Widths> {
    if [offset, length].iter().any(|width| ![2, 4, 8].contains(width)) {
        return Err(Error::unsupported(format!(
            "the file has addresses of {offset} and lengths of {length} bytes; 2, 4 and 8 are read"
        )));
    }
    Ok(Widths { offset, length })
}

fn first_versions(bytes: &[u8], base: u64, version: u8) -> Result<Superblock> {
    let width = |at: usize| bytes.get(at).copied().unwrap_or_default();
    let widths = widths(width(13), width(14))?;
    let mut cursor = Cursor::new(bytes, widths, "superblock");
    cursor.skip(if version == 0 { 24 } else { 28 })?;
    cursor.address()?; // base; the place where the superblock was found holds
    cursor.address()?; // free space
    cursor.address()?; // end of the file
    let driver = cursor.address()?;
    cursor.length()?; // the root's name
    let root = cursor.defined_address()?;
    Ok(Superblock { base, widths, root, extension: None, driver })
}

fn later_versions(bytes: &[u8], base: u64) -> Result<Superblock> {
    let width = |at: usize| bytes.get(at).copied().unwrap_or_default();
    let widths = widths(width(9), width(10))?;
    let length = 12 + 4 * usize::from(widths.offset) + 4;
    let whole = bytes.get(..length).ok_or_else(|| Error::damaged("the file ends inside its superblock"))?;
    let mut cursor = Cursor::new(verified(whole, "superblock")?, widths, "superblock");
    cursor.skip(12)?;
    cursor.address()?; // base
    let extension = cursor.address()?;
    cursor.address()?; // end of the file
    let root = cursor.defined_address()?;
    Ok(Superblock { base, widths, root, extension, driver: None })
}

#[cfg(test)]
mod tests {
    use super::super::checksum::lookup3;
    use super::*;

    fn version_2(base: usize) -> Vec<u8> {
        let mut bytes = vec![0; base];
        bytes.extend_from_slice(&SIGNATURE);
        bytes.extend_from_slice(&[2, 8, 8, 0]);
        for address in [base as u64, u64::MAX, 4096, 48] {
            bytes.extend_from_slice(&address.to_le_bytes());
        }
        let sum = lookup3(&bytes[base..]);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    #[test]
    fn it_is_found_behind_a_user_block() {
        for base in [0, 512, 4096] {
            let found = Superblock::read(&version_2(base)).unwrap();
            assert_eq!((found.base, found.root, found.extension), (base as u64, 48, None));
        }
    }

    #[test]
    fn every_changed_byte_and_every_shorter_file_is_refused() {
        let whole = version_2(0);
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x15;
            assert!(Superblock::read(&bytes).is_err(), "byte {at}");
            assert!(Superblock::read(&whole[..at].to_vec()).is_err(), "length {at}");
        }
    }

    #[test]
    fn other_files_are_of_another_format() {
        let error = Superblock::read(&b"CDF\x01".repeat(2000)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format);
    }
}
