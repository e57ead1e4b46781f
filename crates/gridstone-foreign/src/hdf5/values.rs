//! The values of attributes: from stored bytes to numbers, texts and paths.

use super::attributes::{Access, StoredAttribute};
use super::datatype::{Datatype, whole_number};
use super::heaps::GlobalHeaps;
use crate::cursor::text_of;
use crate::error::{Error, Result};
use crate::model::{ForeignType, ForeignValue, ReferenceKind, TextPadding};
use std::collections::HashMap;

/// Bytes that a value may take in memory for each stored byte, at most.
const EXPANSION: u64 = 16;

/// The paths of the objects of the tree, by the addresses of their headers.
pub(super) type Paths = HashMap<u64, String>;

/// Reads values.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    pub(super) access: Access<'a>,
    pub(super) heaps: &'a GlobalHeaps,
    pub(super) paths: &'a Paths,
}

impl Values<'_> {
    /// The value of `attribute`.
    pub(super) fn value(&self, attribute: &StoredAttribute) -> Result<ForeignValue> {
        let StoredAttribute { datatype, space, value, .. } = attribute;
        if space.is_null {
            return Ok(ForeignValue::Empty);
        }
        self.access.budget.spend((value.len() as u64).saturating_mul(EXPANSION))?;
        self.cells(datatype, value)
    }

    fn cells(&self, datatype: &Datatype, bytes: &[u8]) -> Result<ForeignValue> {
        let cells = bytes.chunks_exact(datatype.size.max(1) as usize);
        match &datatype.shown {
            ForeignType::Array { dimensions, base } => {
                let cells = dimensions.iter().try_fold(1u64, |cells, &length| cells.checked_mul(length));
                let size = cells.and_then(|cells| u64::from(datatype.size).checked_div(cells)).unwrap_or_default();
                self.cells(&Datatype { shown: (**base).clone(), size: size as u32 }, bytes)
            }
            ForeignType::Boolean => Ok(ForeignValue::Booleans(bytes.iter().map(|&byte| byte != 0).collect())),
            ForeignType::Enumeration { base, .. } => integers(base, cells),
            ForeignType::Integer { .. } | ForeignType::BitField { .. } => integers(&datatype.shown, cells),
            ForeignType::Float { big_endian, layout: None, .. } => {
                Ok(ForeignValue::Floats(cells.map(|cell| float(cell, *big_endian)).collect()))
            }
            ForeignType::FixedText { padding, .. } => {
                Ok(ForeignValue::Texts(cells.map(|cell| text_of(trimmed(cell, *padding))).collect()))
            }
            ForeignType::VariableText { .. } => {
                let texts = cells.map(|cell| self.list(cell).map(|bytes| text_of(until_zero(&bytes))));
                Ok(ForeignValue::Texts(texts.collect::<Result<_>>()?))
            }
            ForeignType::Reference { to: ReferenceKind::Object, .. } => {
                let objects = cells.map(|cell| self.object(cell));
                Ok(ForeignValue::Objects(objects.collect::<Result<_>>()?))
            }
            shown if shown.has_variable_parts() => {
                Err(Error::unsupported("the attribute holds lists of variable length"))
            }
            ForeignType::Reference { .. } => Err(Error::unsupported("the attribute refers to parts of datasets")),
            _ => Ok(ForeignValue::Bytes(bytes.to_vec())),
        }
    }

    /// The first object of each list of references: the first scale of each axis.
    pub(super) fn first_of_lists(&self, attribute: &StoredAttribute) -> Result<Vec<Option<String>>> {
        let is_list = matches!(&attribute.datatype.shown, ForeignType::VariableLength { base }
            if matches!(**base, ForeignType::Reference { to: ReferenceKind::Object, .. }));
        if !is_list {
            return Err(Error::unsupported("the list of dimension scales has another type than lists of references"));
        }
        let cells = attribute.value.chunks_exact(attribute.datatype.size.max(1) as usize);
        cells.map(|cell| self.object(&self.list(cell)?)).collect()
    }

    /// The path of the object whose address `reference` begins with.
    fn object(&self, reference: &[u8]) -> Result<Option<String>> {
        let address = match reference {
            [] => None,
            reference => self.access.reader.cursor(reference, "reference").address()?,
        };
        let Some(path) = address.and_then(|address| self.paths.get(&address)) else { return Ok(None) };
        self.access.budget.spend(path.len() as u64)?;
        Ok(Some(path.clone()))
    }

    /// The bytes of a list in a global heap: length 4 | address | index 4.
    fn list(&self, cell: &[u8]) -> Result<Vec<u8>> {
        let Access { reader, budget, .. } = self.access;
        let mut cursor = reader.cursor(cell, "value of variable length");
        let length = cursor.u32()?;
        let address = cursor.address()?;
        let index = cursor.u32()?;
        match address {
            Some(address) if length > 0 && address > 0 => {
                let index = u16::try_from(index).map_err(|_| Error::damaged("a value has an impossible place"))?;
                self.heaps.object(reader, budget, address, index)
            }
            _ => Ok(Vec::new()),
        }
    }
}

fn integers<'a>(datatype: &ForeignType, cells: impl Iterator<Item = &'a [u8]>) -> Result<ForeignValue> {
    let values = cells.map(|cell| whole_number(datatype, cell)).collect::<Option<Vec<_>>>();
    let values = values.ok_or_else(|| Error::unsupported("the attribute holds integers of more than 8 bytes"))?;
    Ok(ForeignValue::Integers(values))
}

/// The float of IEEE 754 in `cell`, which has 2, 4 or 8 bytes.
fn float(cell: &[u8], big_endian: bool) -> f64 {
    let join = |value: u64, &byte: &u8| value << 8 | u64::from(byte);
    let bits = if big_endian { cell.iter().fold(0, join) } else { cell.iter().rev().fold(0, join) };
    match cell.len() {
        2 => half(bits as u16),
        4 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

/// The value of a float of 16 bits.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, mantissa) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => mantissa * 2f64.powi(-24),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + mantissa) * 2f64.powi(exponent - 25),
    }
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    bytes.get(..end).unwrap_or_default()
}

fn trimmed(bytes: &[u8], padding: TextPadding) -> &[u8] {
    match padding {
        TextPadding::ZeroTerminated => until_zero(bytes),
        TextPadding::ZeroPadded => trim_end(bytes, 0),
        TextPadding::SpacePadded => trim_end(bytes, b' '),
    }
}

fn trim_end(bytes: &[u8], byte: u8) -> &[u8] {
    let end = bytes.iter().rposition(|&found| found != byte).map_or(0, |last| last + 1);
    bytes.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_of_each_width() {
        assert_eq!(float(&[0x3c, 0x01], true), 1.0009765625);
        assert_eq!(float(&[0x01, 0x80], false), -(2f64.powi(-24)));
        assert_eq!(float(&[0x00, 0xfc], false), f64::NEG_INFINITY);
        assert!(float(&[0x7e, 0x00], true).is_nan());
        assert_eq!(float(&1.5f32.to_be_bytes(), true), 1.5);
        assert_eq!(float(&(-2.25f64).to_le_bytes(), false), -2.25);
    }

    #[test]
    fn texts_end_as_their_padding_says() {
        assert_eq!(trimmed(b"a\0b\0\0", TextPadding::ZeroTerminated), b"a");
        assert_eq!(trimmed(b"a\0b\0\0", TextPadding::ZeroPadded), b"a\0b");
        assert_eq!(trimmed(b"a b  ", TextPadding::SpacePadded), b"a b");
        assert_eq!(text_of(b"20 \xb0C"), "20 °C");
    }
}
