//! Datatypes.
//!
//! ```text
//! class and version 1 | flags 3 | bytes 4 | properties of the class
//! ```
//!
//! Types of compounds, arrays, enumerations and lists hold other types; their depth is bounded.

use crate::cursor::{Cursor, name_of};
use crate::error::{Error, Result};
use crate::model::{
    BitRange, CompoundMember, EnumerationMember, FloatBits, ForeignType, ReferenceKind, TextPadding, WholeNumber,
};

/// Types inside types.
const DEPTH_MAX: u32 = 16;

/// A datatype and the bytes that a value takes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Datatype {
    pub(super) shown: ForeignType,
    pub(super) size: u32,
}

/// The fields that all classes have.
struct Prefix {
    version: u8,
    flags: u32,
    size: u32,
    depth: u32,
}

impl Prefix {
    fn flag(&self, bit: u32) -> bool {
        self.flags >> bit & 1 != 0
    }

    fn count(&self) -> u32 {
        self.flags & 0xffff
    }
}

impl Datatype {
    pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Self> {
        parse_within(cursor, 0)
    }
}

fn parse_within(cursor: &mut Cursor<'_>, depth: u32) -> Result<Datatype> {
    if depth > DEPTH_MAX {
        return Err(Error::limit(format!("a datatype is nested more than {DEPTH_MAX} times")));
    }
    let first = cursor.u8()?;
    let flags = cursor.uint(3)? as u32;
    let prefix = Prefix { version: first >> 4, flags, size: cursor.u32()?, depth };
    if prefix.size == 0 || !(1..=5).contains(&prefix.version) {
        let Prefix { version, size, .. } = prefix;
        return Err(Error::unsupported(format!("a datatype of version {version} has {size} bytes")));
    }
    let shown = match first & 0x0f {
        0 => integer(cursor, &prefix)?,
        1 => float(cursor, &prefix)?,
        2 => time(cursor, &prefix)?,
        3 => text(&prefix)?,
        4 => bit_field(cursor, &prefix)?,
        5 => opaque(cursor, &prefix)?,
        6 => compound(cursor, &prefix)?,
        7 => reference(&prefix)?,
        8 => enumeration(cursor, &prefix)?,
        9 => variable_length(cursor, &prefix)?,
        10 => array(cursor, &prefix)?,
        11 => complex(cursor, &prefix)?,
        class => return Err(Error::unsupported(format!("a datatype has the unknown class {class}"))),
    };
    Ok(Datatype { shown, size: prefix.size })
}

/// The bits in use; `None` if all are.
fn bits(cursor: &mut Cursor<'_>, prefix: &Prefix) -> Result<Option<BitRange>> {
    let range = BitRange { offset: cursor.u16()?, precision: cursor.u16()? };
    let all = prefix.size.saturating_mul(8);
    let end = u32::from(range.offset) + u32::from(range.precision);
    if range.precision == 0 || end > all {
        return Err(Error::damaged(format!(
            "a number of {} bytes has {} bits from bit {} on",
            prefix.size, range.precision, range.offset
        )));
    }
    Ok((u32::from(range.precision) != all).then_some(range))
}

fn integer(cursor: &mut Cursor<'_>, prefix: &Prefix) -> Result<ForeignType> {
    let bits = bits(cursor, prefix)?;
    Ok(ForeignType::Integer { width: prefix.size, signed: prefix.flag(3), big_endian: prefix.flag(0), bits })
}

fn bit_field(cursor: &mut Cursor<'_>, prefix: &Prefix) -> Result<ForeignType> {
    let bits = bits(cursor, prefix)?;
    Ok(ForeignType::BitField { width: prefix.size, big_endian: prefix.flag(0), bits })
}

fn time(cursor: &mut Cursor<'_>, prefix: &Prefix) -> Result<ForeignType> {
    cursor.u16()?;
    Ok(ForeignType::Time { width: prefix.size, big_endian: prefix.flag(0) })
}

fn float(cursor: &mut Cursor<'_>, prefix: &Prefix) -> Result<ForeignType> {
    let range = BitRange { offset: cursor.u16()?, precision: cursor.u16()? };
    let found = FloatBits {
        bits: range,
        exponent_offset: cursor.u8()?,
        exponent_bits: cursor.u8()?,
        mantissa_offset: cursor.u8()?,
        mantissa_bits: cursor.u8()?,
        exponent_bias: cursor.u32()?,
        sign_bit: (prefix.flags >> 8) as u8,
        vax_order: prefix.flag(6),
    };
    // The mantissa's first bit is implied in all floats of IEEE 754.
    let is_implied = prefix.flags >> 4 & 3 == 2;
    let known = ieee(prefix.size).is_some_and(|ieee| is_implied && ieee == found);
    let layout = (!known).then_some(found);
    Ok(ForeignType::Float { width: prefix.size, big_endian: prefix.flag(0), layout })
}

/// The bits of a float of IEEE 754.
fn ieee(width: u32) -> Option<FloatBits> {
    let (exponent_bits, mantissa_bits, exponent_bias) = match width {
        2 => (5, 10, 15),
        4 => (8, 23, 127),
        8 => (11, 52, 1023),
        _ => return None,
    };
    Some(FloatBits {
        bits: BitRange { offset: 0, precision: width as u16 * 8 },
        exponent_offset: mantissa_bits,
        exponent_bits,
        mantissa_offset: 0,
        mantissa_bits,
        exponent_bias,
        sign_bit: width as u8 * 8 - 1,
        vax_order: false,
    })
}

fn text(prefix: &Prefix) -> Result<ForeignType> {
    let padding = match prefix.flags & 0x0f {
        0 => TextPadding::ZeroTerminated,
        1 => TextPadding::ZeroPadded,
        2 => TextPadding::SpacePadded,
        other => return Err(Error::unsupported(format!("a text has the unknown padding {other}"))),
    };
    Ok(ForeignType::FixedText { length: prefix.size, padding, utf8: prefix.flags >> 4 & 0x0f == 1 })
}

fn opaque(cursor: &mut Cursor<'_>, prefix: &Prefix) -> Result<ForeignType> {
    let tag = cursor.take((prefix.flags & 0xff) as usize)?;
    let end = tag.iter().position(|&byte| byte == 0).unwrap_or(tag.len());
    let tag = String::from_utf8_lossy(tag.get(..end).unwrap_or_default()).into_owned();
    Ok(ForeignType::Opaque { size: prefix.size, tag })
}

fn reference(prefix: &Prefix) -> Result<ForeignType> {
    let to = match prefix.flags & 0x0f {
        0 => ReferenceKind::Object,
        1 => ReferenceKind::Region,
        2..=4 => ReferenceKind::Standard,
        other => return Err(Error::unsupported(format!("a reference has the unknown type {other}"))),
    };
    Ok(ForeignType::Reference { size: prefix.size, to })
}

/// A name, padded to eight bytes in the first two versions.
fn member_name(cursor: &mut Cursor<'_>, version: u8) -> Result<String> {
    let start = cursor.position();
    let name = name_of(cursor.until_zero()?)?;
    if version < 3 {
        let length = cursor.position() - start;
        cursor.skip(length.next_multiple_of(8) - length)?;
    }
    Ok(name)
}

fn compound(cursor: &mut Cursor<'_>, prefix: &Prefix) -> Result<ForeignType> {
    let offset_bytes = if prefix.version < 3 { 4 } else { (prefix.size.ilog2() / 8 + 1) as usize };
    let mut members = Vec::new();
    for _ in 0..prefix.count() {
        let name = member_name(cursor, prefix.version)?;
        let offset = cursor.uint(offset_bytes)? as u32;
        let dimensions = if prefix.version == 1 { old_dimensions(cursor)? } else { Vec::new() };
        let Datatype { mut shown, size } = parse_within(cursor, prefix.depth + 1)?;
        let mut size = u64::from(size);
        if !dimensions.is_empty() {
            size = dimensions.iter().fold(size, |size, &length| size.saturating_mul(length));
            shown = ForeignType::Array { dimensions, base: Box::new(shown) };
        }
        if u64::from(offset).saturating_add(size) > u64::from(prefix.size) {
            return Err(Error::damaged(format!(
                "the member {name:?} goes past the {} bytes of its compound",
                prefix.size
            )));
        }
        members.push(CompoundMember { name, offset, datatype: shown });
    }
    Ok(complex_pair(prefix.size, &members).unwrap_or(ForeignType::Compound { size: prefix.size, members }))
}

/// The shape that a member of the first version has beside its type.
fn old_dimensions(cursor: &mut Cursor<'_>) -> Result<Vec<u64>> {
    let rank = usize::from(cursor.u8()?);
    cursor.skip(11)?;
    let lengths = (0..4).map(|_| cursor.u32().map(u64::from)).collect::<Result<Vec<_>>>()?;
    let used = lengths.get(..rank).ok_or_else(|| Error::damaged(format!("a member of a compound has {rank} axes")))?;
    Ok(used.to_vec())
}

/// A compound of the two floats `r` and `i`, which is how complex numbers are written.
fn complex_pair(size: u32, members: &[CompoundMember]) -> Option<ForeignType> {
    let [real, imaginary] = members else { return None };
    let ForeignType::Float { width, big_endian, layout: None } = real.datatype else { return None };
    let is_pair = real.name == "r"
        && imaginary.name == "i"
        && real.datatype == imaginary.datatype
        && real.offset == 0
        && imaginary.offset == width
        && size == 2 * width;
    is_pair.then_some(ForeignType::Complex { width: size, big_endian })
}

fn complex(cursor: &mut Cursor<'_>, prefix: &Prefix) -> Result<ForeignType> {
    let part = parse_within(cursor, prefix.depth + 1)?;
    match part.shown {
        ForeignType::Float { width, big_endian, layout: None } if prefix.size == width * 2 => {
            Ok(ForeignType::Complex { width: prefix.size, big_endian })
        }
        _ => Err(Error::unsupported("a complex number has parts that are not floats of IEEE 754")),
    }
}

fn enumeration(cursor: &mut Cursor<'_>, prefix: &Prefix) -> Result<ForeignType> {
    let base = parse_within(cursor, prefix.depth + 1)?;
    let names = (0..prefix.count()).map(|_| member_name(cursor, prefix.version)).collect::<Result<Vec<_>>>()?;
    let mut members = Vec::new();
    for name in names {
        let value = cursor.take(base.size as usize)?;
        let value = whole_number(&base.shown, value)
            .ok_or_else(|| Error::unsupported("the values of an enumeration are not integers of up to 8 bytes"))?;
        members.push(EnumerationMember { name, value });
    }
    let is_boolean = base.size == 1
        && members
            .iter()
            .map(|member| (member.name.as_str(), member.value))
            .eq([("FALSE", WholeNumber::Signed(0)), ("TRUE", WholeNumber::Signed(1))]);
    Ok(match is_boolean {
        true => ForeignType::Boolean,
        false => ForeignType::Enumeration { base: Box::new(base.shown), members },
    })
}

/// The integer in `bytes`; `None` if the type is no integer of up to eight bytes.
pub(super) fn whole_number(datatype: &ForeignType, bytes: &[u8]) -> Option<WholeNumber> {
    let (signed, big_endian, bits) = match datatype {
        ForeignType::Integer { signed, big_endian, bits, .. } => (*signed, *big_endian, *bits),
        ForeignType::BitField { big_endian, bits, .. } => (false, *big_endian, *bits),
        _ => return None,
    };
    if bytes.len() > 8 {
        return None;
    }
    let join = |value: u64, &byte: &u8| value << 8 | u64::from(byte);
    let raw = if big_endian { bytes.iter().fold(0, join) } else { bytes.iter().rev().fold(0, join) };
    let range = bits.unwrap_or(BitRange { offset: 0, precision: bytes.len() as u16 * 8 });
    let unused = 64u32.checked_sub(u32::from(range.precision))?;
    let shifted = raw.checked_shr(u32::from(range.offset))?.checked_shl(unused)?;
    Some(if signed {
        WholeNumber::Signed((shifted as i64).checked_shr(unused)?)
    } else {
        let value = shifted.checked_shr(unused)?;
        i64::try_from(value).map_or(WholeNumber::Unsigned(value), WholeNumber::Signed)
    })
}

fn variable_length(cursor: &mut Cursor<'_>, prefix: &Prefix) -> Result<ForeignType> {
    let base = parse_within(cursor, prefix.depth + 1)?;
    match prefix.flags & 0x0f {
        0 => Ok(ForeignType::VariableLength { base: Box::new(base.shown) }),
        1 => Ok(ForeignType::VariableText { utf8: prefix.flags >> 8 & 0x0f == 1 }),
        other => Err(Error::unsupported(format!("a value of variable length has the unknown type {other}"))),
    }
}

fn array(cursor: &mut Cursor<'_>, prefix: &Prefix) -> Result<ForeignType> {
    let rank = cursor.u8()?;
    cursor.skip(if prefix.version < 3 { 3 } else { 0 })?;
    let dimensions = (0..rank).map(|_| cursor.u32().map(u64::from)).collect::<Result<Vec<_>>>()?;
    cursor.skip(if prefix.version < 3 { 4 * usize::from(rank) } else { 0 })?;
    let base = parse_within(cursor, prefix.depth + 1)?;
    let size = dimensions.iter().fold(u64::from(base.size), |size, &length| size.saturating_mul(length));
    if size != u64::from(prefix.size) {
        return Err(Error::damaged(format!(
            "an array of shape {dimensions:?} and {} bytes a cell should have {} bytes",
            base.size, prefix.size
        )));
    }
    Ok(ForeignType::Array { dimensions, base: Box::new(base.shown) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::Widths;

    fn parse(bytes: &[u8]) -> Result<Datatype> {
        Datatype::parse(&mut Cursor::new(bytes, Widths { offset: 8, length: 8 }, "datatype"))
    }

    #[test]
    fn an_integer_of_twelve_bits() {
        let found = parse(&[0x10, 0x09, 0, 0, 2, 0, 0, 0, 4, 0, 12, 0]).unwrap().shown;
        let bits = Some(BitRange { offset: 4, precision: 12 });
        assert_eq!(found, ForeignType::Integer { width: 2, signed: true, big_endian: true, bits });
        assert_eq!(whole_number(&found, &[0xff, 0xe5]), Some(WholeNumber::Signed(-2)));
        assert_eq!(whole_number(&found, &[0x7f, 0xf5]), Some(WholeNumber::Signed(2047)));
    }

    #[test]
    fn nested_types_have_an_end() {
        let list = [0x19, 0, 0, 0, 16, 0, 0, 0];
        assert!(parse(&list.repeat(100)).unwrap_err().message().contains("nested more than"));
    }

    #[test]
    fn every_shorter_type_is_refused() {
        let mut whole = vec![0x36, 1, 0, 0, 4, 0, 0, 0, b'a', 0, 0];
        whole.extend_from_slice(&[0x11, 0x20, 31, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0]);
        let float = ForeignType::Float { width: 4, big_endian: false, layout: None };
        let members = vec![CompoundMember { name: "a".into(), offset: 0, datatype: float }];
        assert_eq!(parse(&whole).unwrap().shown, ForeignType::Compound { size: 4, members });
        for length in 0..whole.len() {
            assert!(parse(&whole[..length]).is_err(), "length {length}");
        }
    }
}
