//! Arrays in files of NumPy's own format.
//!
//! ```text
//! 0x93 "NUMPY" | version 2 | header bytes: 2 in version 1, else 4 | header: a dict of Python | cells
//! {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
//! ```
//!
//! `descr` of a record is a list of pairs of a name and a type, with a shape if the field holds arrays. A name may be a
//! pair of a title and a name.

use crate::error::{Error, ErrorKind, Result};
use crate::model::{CompoundMember, ForeignDataset, ForeignType, Layout, TextPadding};
use crate::source::ByteSource;

const SIGNATURE: &[u8; 6] = b"\x93NUMPY";
/// The longest header that is read.
const HEADER_BYTES_MAX: u64 = 1 << 20;
/// Values inside values.
const DEPTH_MAX: u32 = 24;

/// The array in `source`, whose name is empty. Fails with the kind `Format` if it is no file of NumPy.
pub fn dataset(source: &dyn ByteSource) -> Result<ForeignDataset> {
    let length = source.length();
    let mut prefix = vec![0; length.min(12) as usize];
    source.read_at(0, &mut prefix)?;
    if prefix.get(..6) != Some(SIGNATURE) {
        return Err(Error::new(ErrorKind::Format, "this is no file of NumPy: its first bytes are others"));
    }
    let (start, header) = match prefix.get(6..) {
        Some(&[1, _, low, high, ..]) => (10, u64::from(u16::from_le_bytes([low, high]))),
        Some(&[2 | 3, _, a, b, c, d]) => (12, u64::from(u32::from_le_bytes([a, b, c, d]))),
        _ => return Err(Error::unsupported("the file of NumPy has an unknown version, or ends in its first bytes")),
    };
    if header > HEADER_BYTES_MAX || start + header > length {
        return Err(Error::damaged(format!("the header of the file of NumPy should have {header} bytes")));
    }
    let mut bytes = vec![0; header as usize];
    source.read_at(start, &mut bytes)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| Error::damaged("the header of the file of NumPy is no text"))?;
    described(&Literal::parse(text)?, start + header, length)
}

fn described(header: &Literal, offset: u64, file_bytes: u64) -> Result<ForeignDataset> {
    let missing = |what: &str| Error::damaged(format!("the header of the file of NumPy has no {what}"));
    let field = |name: &str| header.field(name).ok_or_else(|| missing(name));
    let (datatype, size) = datatype_of(field("descr")?)?;
    let Literal::Bool(by_columns) = *field("fortran_order")? else { return Err(missing("fortran_order")) };
    let shape = field("shape")?.lengths().ok_or_else(|| missing("shape"))?;
    let cells =
        if shape.contains(&0) { Some(0) } else { shape.iter().try_fold(1u64, |n, &length| n.checked_mul(length)) };
    let length = cells.and_then(|cells| cells.checked_mul(size)).filter(|&length| length <= file_bytes - offset);
    let length = length.ok_or_else(|| {
        Error::damaged(format!("an array of shape {shape:?} with cells of {size} bytes goes past the end of the file"))
    })?;
    let layout = match by_columns && shape.len() > 1 {
        true => Layout::ColumnMajor { offset, length },
        false => Layout::Contiguous { offset: Some(offset), length },
    };
    let element_size = u32::try_from(size).map_err(|_| Error::limit(format!("a cell has {size} bytes")))?;
    Ok(ForeignDataset {
        name: String::new(),
        max_shape: shape.iter().copied().map(Some).collect(),
        dimension_scales: vec![None; shape.len()],
        dimension_names: Vec::new(),
        shape,
        is_null: false,
        datatype,
        element_size,
        fill: None,
        attributes: Vec::new(),
        is_scale: false,
        is_bare_dimension: false,
        layout,
        refused: Vec::new(),
    })
}

/// The type that `descr` says, and its bytes.
fn datatype_of(descr: &Literal) -> Result<(ForeignType, u64)> {
    match descr {
        Literal::Text(text) => simple_type(text),
        Literal::Tuple(fields) => record_type(fields),
        _ => Err(Error::damaged("the type of the array is neither a text nor a list")),
    }
}

pub(crate) fn simple_type(text: &str) -> Result<(ForeignType, u64)> {
    let unknown = || Error::unsupported(format!("the type {text:?} of NumPy is not read"));
    let mut letters = text.chars();
    let (order, kind) = (letters.next().ok_or_else(unknown)?, letters.next().ok_or_else(unknown)?);
    let width: u32 = letters.as_str().parse().map_err(|_| unknown())?;
    let big_endian = order == '>';
    let is_known = match kind {
        'i' | 'u' => [1, 2, 4, 8].contains(&width),
        'f' => [2, 4, 8].contains(&width),
        'c' => [8, 16].contains(&width),
        'b' => width == 1,
        _ => true,
    };
    let datatype = match kind {
        _ if !is_known || !"<>|=".contains(order) => return Err(unknown()),
        'i' | 'u' => ForeignType::Integer { width, signed: kind == 'i', big_endian, bits: None },
        'f' => ForeignType::Float { width, big_endian, layout: None },
        'c' => ForeignType::Complex { width, big_endian },
        'b' => ForeignType::Boolean,
        'S' | 'a' => ForeignType::FixedText { length: width, padding: TextPadding::ZeroPadded, utf8: false },
        'V' => ForeignType::Opaque { size: width, tag: String::new() },
        _ => return Err(unknown()),
    };
    Ok((datatype, u64::from(width)))
}

fn record_type(fields: &[Literal]) -> Result<(ForeignType, u64)> {
    let wrong = || Error::damaged("a field of the array's type is no pair of a name and a type");
    let (mut members, mut size) = (Vec::new(), 0u64);
    for field in fields {
        let Literal::Tuple(parts) = field else { return Err(wrong()) };
        let [name, descr, shape @ ..] = &parts[..] else { return Err(wrong()) };
        let name = match name {
            Literal::Text(name) => name,
            Literal::Tuple(names) => match &names[..] {
                [_, Literal::Text(name)] => name,
                _ => return Err(wrong()),
            },
            _ => return Err(wrong()),
        };
        let (mut datatype, mut bytes) = datatype_of(descr)?;
        if let [shape] = shape {
            let dimensions = shape.lengths().ok_or_else(wrong)?;
            bytes = dimensions.iter().try_fold(bytes, |bytes, &length| bytes.checked_mul(length)).ok_or_else(wrong)?;
            datatype = ForeignType::Array { dimensions, base: Box::new(datatype) };
        }
        let offset = u32::try_from(size).map_err(|_| wrong())?;
        size = size.checked_add(bytes).ok_or_else(wrong)?;
        // Fields without names are the gaps of an aligned record.
        if !name.is_empty() {
            members.push(CompoundMember { name: name.clone(), offset, datatype });
        }
    }
    let whole = u32::try_from(size).map_err(|_| wrong())?;
    Ok((ForeignType::Compound { size: whole, members }, size))
}

/// A value as Python writes it; lists are tuples, and a dict is a tuple of pairs.
#[derive(Debug, Clone, PartialEq)]
enum Literal {
    Text(String),
    Number(u64),
    Bool(bool),
    Tuple(Vec<Literal>),
}

impl Literal {
    fn parse(text: &str) -> Result<Self> {
        let mut rest = text;
        let value = value(&mut rest, 0)?;
        match rest.trim().is_empty() {
            true => Ok(value),
            false => Err(not_python(rest)),
        }
    }

    fn field(&self, wanted: &str) -> Option<&Self> {
        let Self::Tuple(pairs) = self else { return None };
        pairs.iter().find_map(|pair| match pair {
            Self::Tuple(pair) => match &pair[..] {
                [Self::Text(name), value] if name == wanted => Some(value),
                _ => None,
            },
            _ => None,
        })
    }

    fn lengths(&self) -> Option<Vec<u64>> {
        let number = |value: &Self| if let Self::Number(value) = value { Some(*value) } else { None };
        match self {
            Self::Tuple(values) => values.iter().map(number).collect(),
            Self::Number(length) => Some(vec![*length]),
            _ => None,
        }
    }
}

fn not_python(rest: &str) -> Error {
    let shown: String = rest.chars().take(20).collect();
    Error::damaged(format!("the header of the file of NumPy cannot be read at {shown:?}"))
}

fn value(rest: &mut &str, depth: u32) -> Result<Literal> {
    *rest = rest.trim_start();
    let open = rest.chars().next().unwrap_or_default();
    match open {
        _ if depth > DEPTH_MAX => Err(Error::limit("the header of the file of NumPy is nested too deeply")),
        '(' => sequence(rest, ')', depth),
        '[' => sequence(rest, ']', depth),
        '{' => sequence(rest, '}', depth),
        '\'' | '"' => text(rest, open),
        '0'..='9' => {
            let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            let (digits, after) = rest.split_at(end);
            let number = digits.parse().map_err(|_| not_python(rest))?;
            *rest = after.strip_prefix('L').unwrap_or(after);
            Ok(Literal::Number(number))
        }
        _ => match (rest.strip_prefix("True"), rest.strip_prefix("False")) {
            (Some(after), _) => {
                *rest = after;
                Ok(Literal::Bool(true))
            }
            (_, Some(after)) => {
                *rest = after;
                Ok(Literal::Bool(false))
            }
            _ => Err(not_python(rest)),
        },
    }
}

fn text(rest: &mut &str, quote: char) -> Result<Literal> {
    let inside = rest.get(1..).unwrap_or_default();
    match inside.split_once(quote) {
        Some((text, after)) if !text.contains('\\') => {
            *rest = after;
            Ok(Literal::Text(text.to_owned()))
        }
        _ => Err(not_python(rest)),
    }
}

/// Values up to `close`. A value that a colon follows makes a pair with the next one.
fn sequence(rest: &mut &str, close: char, depth: u32) -> Result<Literal> {
    *rest = rest.get(1..).unwrap_or_default();
    let mut values = Vec::new();
    loop {
        *rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix(close) {
            *rest = after;
            return Ok(Literal::Tuple(values));
        }
        let mut found = value(rest, depth + 1)?;
        *rest = rest.trim_start();
        if let (true, Some(after)) = (close == '}', rest.strip_prefix(':')) {
            *rest = after;
            found = Literal::Tuple(vec![found, value(rest, depth + 1)?]);
            *rest = rest.trim_start();
        }
        values.push(found);
        match rest.strip_prefix(',') {
            Some(after) => *rest = after,
            None if rest.starts_with(close) => {}
            None => return Err(not_python(rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, cells: usize) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend_from_slice(&[1, 0]);
        bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
        bytes.extend_from_slice(header.as_bytes());
        bytes.resize(bytes.len() + cells, 0);
        bytes
    }

    #[test]
    fn a_plain_array_in_each_order() {
        let header = "{'descr': '>f4', 'fortran_order': False, 'shape': (3, 2), }\n";
        let found = dataset(&file(header, 24)).unwrap();
        assert_eq!(found.shape, [3, 2]);
        assert_eq!(found.datatype, ForeignType::Float { width: 4, big_endian: true, layout: None });
        assert_eq!(found.layout, Layout::Contiguous { offset: Some(10 + header.len() as u64), length: 24 });
        let found = dataset(&file(&header.replace("False", "True"), 24)).unwrap();
        assert!(matches!(found.layout, Layout::ColumnMajor { length: 24, .. }));
    }

    #[test]
    fn records_have_offsets_and_gaps() {
        let header = "{'descr': [('a', '|u1'), ('', '|V3'), (('Title', 'b'), '<i4', (2,))], 'fortran_order': False, 'shape': (5,)}";
        let found = dataset(&file(header, 60)).unwrap();
        let ForeignType::Compound { size: 12, members } = found.datatype else { panic!("{:?}", found.datatype) };
        let places: Vec<_> = members.iter().map(|member| (member.name.as_str(), member.offset)).collect();
        assert_eq!(places, [("a", 0), ("b", 4)]);
    }

    #[test]
    fn what_cannot_be_read_says_so() {
        let header = "{'descr': '|O', 'fortran_order': False, 'shape': (5,)}";
        assert_eq!(dataset(&file(header, 60)).unwrap_err().message(), "the type \"|O\" of NumPy is not read");
        let header = "{'descr': '<i4', 'fortran_order': False, 'shape': (5,)}";
        assert!(dataset(&file(header, 19)).unwrap_err().message().contains("goes past the end"));
        assert!(dataset(&file(&"(".repeat(1000), 0)).unwrap_err().message().contains("nested too deeply"));
        for length in 0..header.len() {
            assert!(dataset(&file(&header[..length], 20)).is_err(), "length {length}");
        }
    }
}
