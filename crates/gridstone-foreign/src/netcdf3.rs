//! NetCDF files of the classic forms: CDF-1, CDF-2 with wide offsets, CDF-5 with wide counts.
//!
//! ```text
//! "CDF" | version | records | dimensions | attributes | variables
//! a list        tag 4 | count | entries; tag and count are zero if it is empty
//! a dimension   name | length; 0: the records
//! an attribute  name | type 4 | count | values, padded to 4
//! a variable    name | rank | dimensions | attributes | type 4 | bytes | offset
//! a name        bytes | text, padded to 4
//! ```
//!
//! Numbers are big-endian. Counts have 8 bytes in CDF-5, else 4; offsets have 4 bytes in CDF-1, else 8.
//!
//! The cells of a variable lie in one piece. Variables along the record dimension lie record by record: a record
//! holds the cells of all of them, each padded to 4 bytes. A single such variable is not padded.
//!
//! Dimensions without a variable of their name become bare dimensions, as NetCDF-4 writes them.

use crate::cursor::{name_of, text_of};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{
    ForeignAttribute, ForeignDataset, ForeignFile, ForeignGroup, ForeignType, ForeignValue, Layout, Refused,
    TextPadding, WholeNumber,
};
use crate::source::ByteSource;

const DIMENSIONS: u32 = 10;
const VARIABLES: u32 = 11;
const ATTRIBUTES: u32 = 12;
/// What is read of a header at first, and at most.
const HEADER_BYTES_MIN: u64 = 64 << 10;
const HEADER_BYTES_MAX: u64 = 64 << 20;
/// Axes of a variable; the library of the format allows 1024.
const RANK_MAX: u64 = 1024;

/// The tree of the file in `source`. Fails with the kind `Format` if it is not of a classic form.
pub fn tree(source: &dyn ByteSource) -> Result<ForeignFile> {
    let length = source.length();
    let mut take = length.min(HEADER_BYTES_MIN);
    loop {
        let mut bytes = vec![0; take as usize];
        source.read_at(0, &mut bytes)?;
        let version = match bytes.get(..4) {
            Some(&[b'C', b'D', b'F', version]) if [1, 2, 5].contains(&version) => version,
            _ => {
                return Err(Error::new(ErrorKind::Format, "this is no NetCDF file of the forms CDF-1, CDF-2 or CDF-5"));
            }
        };
        let mut cursor = HeaderCursor { rest: bytes.get(4..).unwrap_or_default(), version, is_short: false };
        match Header::parse(&mut cursor) {
            Ok(header) => {
                header.check_places(take - cursor.rest.len() as u64)?;
                return header.tree(length);
            }
            Err(_) if cursor.is_short && take < length.min(HEADER_BYTES_MAX) => {
                take = length.min(HEADER_BYTES_MAX).min(take * 4);
            }
            Err(error) => return Err(error),
        }
    }
}

/// A position in the header.
struct HeaderCursor<'a> {
    rest: &'a [u8],
    version: u8,
    /// A read went past the end.
    is_short: bool,
}

impl<'a> HeaderCursor<'a> {
    fn take(&mut self, count: u64) -> Result<&'a [u8]> {
        let split = usize::try_from(count).ok().and_then(|count| self.rest.split_at_checked(count));
        let Some((taken, rest)) = split else {
            self.is_short = true;
            return Err(Error::damaged(format!(
                "the header of the NetCDF file needs {count} bytes more than there are"
            )));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self, width: u64) -> Result<u64> {
        Ok(self.take(width)?.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    fn tag(&mut self) -> Result<u32> {
        Ok(self.number(4)? as u32)
    }

    fn count_width(&self) -> u64 {
        if self.version == 5 { 8 } else { 4 }
    }

    fn count(&mut self) -> Result<u64> {
        self.number(self.count_width())
    }

    fn offset(&mut self) -> Result<u64> {
        self.number(if self.version == 1 { 4 } else { 8 })
    }

    fn padded(&mut self, count: u64) -> Result<&'a [u8]> {
        let bytes = self.take(count)?;
        self.take(padding_of(count))?;
        Ok(bytes)
    }

    fn name(&mut self) -> Result<String> {
        let count = self.count()?;
        name_of(self.padded(count)?)
    }

    /// The number of entries of the list with `tag`.
    fn list(&mut self, tag: u32) -> Result<u64> {
        let (found, count) = (self.tag()?, self.count()?);
        match found {
            0 if count == 0 => Ok(0),
            found if found == tag => Ok(count),
            found => Err(Error::damaged(format!("a list of the NetCDF file has the tag {found}, expected {tag}"))),
        }
    }
}

/// Bytes up to the next multiple of 4.
fn padding_of(count: u64) -> u64 {
    count.wrapping_neg() % 4
}

/// A type: its number, and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Type {
    number: u32,
    width: u32,
}

impl Type {
    fn parse(cursor: &mut HeaderCursor<'_>) -> Result<Self> {
        let number = cursor.tag()?;
        let width = match number {
            1 | 2 | 7 => 1,
            3 | 8 => 2,
            4 | 5 | 9 => 4,
            6 | 10 | 11 => 8,
            _ => return Err(Error::damaged(format!("the NetCDF file has a value of the unknown type {number}"))),
        };
        Ok(Self { number, width })
    }

    fn shown(self) -> ForeignType {
        let width = self.width;
        match self.number {
            2 => ForeignType::FixedText { length: 1, padding: TextPadding::ZeroPadded, utf8: false },
            5 | 6 => ForeignType::Float { width, big_endian: true, layout: None },
            number => {
                ForeignType::Integer { width, signed: [1, 3, 4, 10].contains(&number), big_endian: true, bits: None }
            }
        }
    }
}

/// An attribute with the bytes of its values.
#[derive(Debug)]
struct Attribute<'a> {
    name: String,
    datatype: Type,
    bytes: &'a [u8],
}

#[derive(Debug)]
struct Variable<'a> {
    name: String,
    dimensions: Vec<usize>,
    attributes: Vec<Attribute<'a>>,
    datatype: Type,
    offset: u64,
}

#[derive(Debug)]
struct Dimension {
    name: String,
    /// 0: the records.
    length: u64,
}

#[derive(Debug)]
struct Header<'a> {
    /// `None`: as many as the file has.
    records: Option<u64>,
    dimensions: Vec<Dimension>,
    attributes: Vec<Attribute<'a>>,
    variables: Vec<Variable<'a>>,
}

impl<'a> Header<'a> {
    fn parse(cursor: &mut HeaderCursor<'a>) -> Result<Self> {
        let width = cursor.count_width();
        let records = cursor.count()?;
        let records = (records != u64::MAX >> (64 - 8 * width)).then_some(records);
        let mut dimensions = Vec::new();
        for _ in 0..cursor.list(DIMENSIONS)? {
            dimensions.push(Dimension { name: cursor.name()?, length: cursor.count()? });
        }
        if dimensions.iter().filter(|dimension| dimension.length == 0).count() > 1 {
            return Err(Error::damaged("the NetCDF file has two record dimensions; it has one at most"));
        }
        let attributes = attributes(cursor)?;
        let mut variables = Vec::new();
        for _ in 0..cursor.list(VARIABLES)? {
            variables.push(variable(cursor)?);
        }
        let header = Self { records, dimensions, attributes, variables };
        header.variables.iter().try_for_each(|variable| header.check_axes(variable))?;
        Ok(header)
    }

    /// An error unless the axes of a variable are dimensions of the file, the records first. One that is wrong makes all strides wrong.
    fn check_axes(&self, variable: &Variable<'_>) -> Result<()> {
        for (place, number) in variable.dimensions.iter().enumerate() {
            let name = &variable.name;
            match self.dimensions.get(*number) {
                None => {
                    return Err(Error::damaged(format!("the variable {name:?} has a dimension that the file lacks")));
                }
                Some(dimension) if dimension.length == 0 && place > 0 => {
                    return Err(Error::damaged(format!("the variable {name:?} has the records inside of others")));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// An error if the cells of two variables overlap, or lie in the header, which ends at `header_end`. The first records stand for
    /// all of them.
    fn check_places(&self, header_end: u64) -> Result<()> {
        let mut places = Vec::with_capacity(self.variables.len());
        for variable in &self.variables {
            places.push((variable.offset, self.bytes_of(variable)?, self.has_records(variable), &variable.name));
        }
        places.sort();
        let mut end = header_end;
        for (offset, bytes, _, name) in places.iter().filter(|(_, bytes, _, _)| *bytes > 0) {
            if *offset < end {
                return Err(Error::damaged(format!(
                    "the variable {name:?} begins at byte {offset}, inside of what ends at byte {end}"
                )));
            }
            end = offset.saturating_add(*bytes);
        }
        let mut records = places.iter().filter(|(_, _, has_records, _)| *has_records).map(|place| place.0);
        let last_fixed = places.iter().filter(|(_, _, has_records, _)| !has_records).map(|place| place.0).next_back();
        match (records.next(), last_fixed) {
            (Some(first), Some(last)) if last > first => {
                Err(Error::damaged("the NetCDF file has a variable without records behind the first record"))
            }
            _ => Ok(()),
        }
    }

    /// Whether the variable lies along the record dimension.
    fn has_records(&self, variable: &Variable<'_>) -> bool {
        let first = variable.dimensions.first().and_then(|&number| self.dimensions.get(number));
        first.is_some_and(|dimension| dimension.length == 0)
    }

    /// Bytes of the variable, or of one record of it.
    fn bytes_of(&self, variable: &Variable<'_>) -> Result<u64> {
        let axes = variable.dimensions.iter().skip(usize::from(self.has_records(variable)));
        let bytes = axes
            .map(|&number| self.dimensions.get(number))
            .try_fold(u64::from(variable.datatype.width), |bytes, dimension| bytes.checked_mul(dimension?.length));
        bytes.ok_or_else(|| {
            Error::damaged(format!(
                "the variable {:?} has dimensions that the file lacks, or is too large",
                variable.name
            ))
        })
    }

    /// Bytes from one record to the next.
    fn stride(&self) -> Result<u64> {
        let mut recorded = self.variables.iter().filter(|variable| self.has_records(variable));
        if let (Some(single), None) = (recorded.next(), recorded.next()) {
            return self.bytes_of(single);
        }
        self.variables.iter().filter(|variable| self.has_records(variable)).try_fold(0u64, |stride, variable| {
            let bytes = self.bytes_of(variable)?;
            let padded = bytes.checked_add(padding_of(bytes)).and_then(|bytes| stride.checked_add(bytes));
            padded.ok_or_else(|| Error::damaged("a record of the NetCDF file has more than 2^64 bytes"))
        })
    }

    /// The number of records of a file of `length` bytes.
    fn count_records(&self, stride: u64, length: u64) -> u64 {
        let recorded = self.variables.iter().filter(|variable| self.has_records(variable));
        let first = recorded.map(|variable| variable.offset).min().unwrap_or(length);
        let found = length.saturating_sub(first).checked_div(stride).unwrap_or_default();
        self.records.unwrap_or(found)
    }

    fn tree(&self, length: u64) -> Result<ForeignFile> {
        let mut root = ForeignGroup { attributes: shown_attributes(&self.attributes), ..ForeignGroup::default() };
        let stride = self.stride()?;
        let records = self.count_records(stride, length);
        for variable in &self.variables {
            match self.dataset(variable, RecordShape { stride, records }, length) {
                Ok(dataset) => root.datasets.push(dataset),
                Err(error) => {
                    root.refused.push(Refused { name: variable.name.clone(), reason: error.to_string() });
                }
            }
        }
        let bare = self.dimensions.iter().filter(|dimension| !self.variables.iter().any(|v| v.name == dimension.name));
        root.datasets.extend(bare.map(|dimension| bare_dimension(dimension, records)));
        Ok(ForeignFile { format: "netcdf3".to_owned(), root })
    }

    fn dataset(&self, variable: &Variable<'_>, record: RecordShape, length: u64) -> Result<ForeignDataset> {
        let bytes = self.bytes_of(variable)?;
        let has_records = self.has_records(variable);
        let axes: Vec<&Dimension> = variable.dimensions.iter().filter_map(|&at| self.dimensions.get(at)).collect();
        let mut shape: Vec<u64> = axes.iter().map(|axis| axis.length).collect();
        let mut max_shape: Vec<Option<u64>> = shape.iter().copied().map(Some).collect();
        if let (true, Some(first), Some(max)) = (has_records, shape.first_mut(), max_shape.first_mut()) {
            (*first, *max) = (record.records, None);
        }
        let offset = variable.offset;
        let layout = match has_records {
            true => Layout::Records { offset, length: bytes, stride: record.stride },
            false => Layout::Contiguous { offset: Some(offset), length: bytes },
        };
        let before = if has_records { record.records.saturating_sub(1).checked_mul(record.stride) } else { Some(0) };
        let end = before.and_then(|before| before.checked_add(bytes)?.checked_add(offset));
        let is_empty = shape.contains(&0);
        let layout = match end {
            _ if is_empty => Layout::Contiguous { offset: None, length: 0 },
            Some(end) if end <= length => layout,
            _ => Layout::Refused {
                reason: format!(
                    "the {bytes} bytes at byte {offset} (of each record) go past the file's {length} bytes"
                ),
            },
        };
        let fill = variable.attributes.iter().find(|attribute| attribute.name == "_FillValue");
        let fill =
            fill.filter(|fill| fill.datatype == variable.datatype && fill.bytes.len() == fill.datatype.width as usize);
        Ok(ForeignDataset {
            name: variable.name.clone(),
            is_scale: axes.len() == 1 && axes.iter().any(|axis| axis.name == variable.name),
            shape,
            max_shape,
            is_null: false,
            datatype: variable.datatype.shown(),
            element_size: variable.datatype.width,
            fill: fill.map(|fill| fill.bytes.to_vec()),
            attributes: shown_attributes(&variable.attributes),
            dimension_scales: axes.iter().map(|axis| Some(format!("/{}", axis.name))).collect(),
            dimension_names: Vec::new(),
            is_bare_dimension: false,
            layout,
            refused: Vec::new(),
        })
    }
}

/// How records lie in the file.
#[derive(Debug, Clone, Copy)]
struct RecordShape {
    stride: u64,
    records: u64,
}

fn attributes<'a>(cursor: &mut HeaderCursor<'a>) -> Result<Vec<Attribute<'a>>> {
    let mut found = Vec::new();
    for _ in 0..cursor.list(ATTRIBUTES)? {
        let name = cursor.name()?;
        let datatype = Type::parse(cursor)?;
        let bytes = cursor.count()?.checked_mul(u64::from(datatype.width));
        let bytes = bytes.ok_or_else(|| Error::damaged(format!("the attribute {name:?} has more than 2^64 bytes")))?;
        found.push(Attribute { name, datatype, bytes: cursor.padded(bytes)? });
    }
    Ok(found)
}

fn variable<'a>(cursor: &mut HeaderCursor<'a>) -> Result<Variable<'a>> {
    let name = cursor.name()?;
    let rank = cursor.count()?;
    if rank > RANK_MAX {
        return Err(Error::damaged(format!("the variable {name:?} has {rank} axes; the format allows {RANK_MAX}")));
    }
    let dimensions = (0..rank).map(|_| cursor.count().map(|number| usize::try_from(number).unwrap_or(usize::MAX)));
    let dimensions = dimensions.collect::<Result<Vec<_>>>()?;
    let attributes = attributes(cursor)?;
    let datatype = Type::parse(cursor)?;
    cursor.count()?; // the bytes, which the shape gives too, and without overflow
    Ok(Variable { name, dimensions, attributes, datatype, offset: cursor.offset()? })
}

fn shown_attributes(attributes: &[Attribute<'_>]) -> Vec<ForeignAttribute> {
    attributes.iter().map(shown_attribute).collect()
}

fn shown_attribute(attribute: &Attribute<'_>) -> ForeignAttribute {
    let Attribute { name, datatype, bytes } = attribute;
    let cells = || {
        bytes
            .chunks_exact(datatype.width as usize)
            .map(|cell| cell.iter().fold(0u64, |value, &byte| value << 8 | u64::from(byte)))
    };
    let count = (bytes.len() / datatype.width as usize) as u64;
    let (mut shape, mut shown) = (vec![count], datatype.shown());
    let value = match shown {
        ForeignType::FixedText { padding, .. } => {
            shape = Vec::new();
            shown = ForeignType::FixedText { length: bytes.len() as u32, padding, utf8: false };
            ForeignValue::Texts(vec![text(bytes)])
        }
        ForeignType::Float { width: 4, .. } => {
            ForeignValue::Floats(cells().map(|bits| f64::from(f32::from_bits(bits as u32))).collect())
        }
        ForeignType::Float { .. } => ForeignValue::Floats(cells().map(f64::from_bits).collect()),
        ForeignType::Integer { width, signed: true, .. } => {
            let unused = 64 - 8 * width;
            let extend = |bits: u64| WholeNumber::Signed((bits << unused) as i64 >> unused);
            ForeignValue::Integers(cells().map(extend).collect())
        }
        _ => {
            let number = |bits: u64| i64::try_from(bits).map_or(WholeNumber::Unsigned(bits), WholeNumber::Signed);
            ForeignValue::Integers(cells().map(number).collect())
        }
    };
    ForeignAttribute { name: name.clone(), shape, datatype: shown, value }
}

/// The text without zeros at the end.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    text_of(bytes.get(..end).unwrap_or_default())
}

fn bare_dimension(dimension: &Dimension, records: u64) -> ForeignDataset {
    let is_record = dimension.length == 0;
    let length = if is_record { records } else { dimension.length };
    ForeignDataset {
        name: dimension.name.clone(),
        shape: vec![length],
        max_shape: vec![(!is_record).then_some(length)],
        is_null: false,
        datatype: ForeignType::Float { width: 4, big_endian: true, layout: None },
        element_size: 4,
        fill: None,
        attributes: Vec::new(),
        dimension_scales: vec![Some(format!("/{}", dimension.name))],
        dimension_names: Vec::new(),
        is_scale: true,
        is_bare_dimension: true,
        layout: Layout::Contiguous { offset: None, length: length.saturating_mul(4) },
        refused: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CDF-1: records 3; dimensions t (records), x = 2; variables a(t, x) int16, b(t) int8, c(x) float.
    fn file() -> Vec<u8> {
        let mut bytes = b"CDF\x01\0\0\0\x03\0\0\0\x0a\0\0\0\x02".to_vec();
        bytes.extend_from_slice(b"\0\0\0\x01t\0\0\0\0\0\0\0\0\0\0\x01x\0\0\0\0\0\0\x02");
        bytes.extend_from_slice(b"\0\0\0\x0c\0\0\0\x01\0\0\0\x05title\0\0\0\0\0\0\x02\0\0\0\x02hi\0\0");
        bytes.extend_from_slice(b"\0\0\0\x0b\0\0\0\x03");
        let empty = [0; 8];
        for (name, axes, kind, offset) in [(b'a', &[0, 1][..], 3, 300), (b'b', &[0], 1, 304), (b'c', &[1], 5, 290)] {
            bytes.extend_from_slice(&[0, 0, 0, 1, name, 0, 0, 0, 0, 0, 0, axes.len() as u8]);
            axes.iter().for_each(|&axis| bytes.extend_from_slice(&[0, 0, 0, axis]));
            bytes.extend_from_slice(&empty);
            bytes.extend_from_slice(&[0, 0, 0, kind, 0, 0, 0, 8]);
            bytes.extend_from_slice(&i32::to_be_bytes(offset));
        }
        bytes.resize(324, 7);
        bytes
    }

    #[test]
    fn record_variables_have_strides() {
        let found = tree(&file()).unwrap().root;
        let layouts: Vec<_> = found.datasets.iter().map(|dataset| dataset.layout.clone()).collect();
        assert_eq!(layouts[0], Layout::Records { offset: 300, length: 4, stride: 8 });
        assert_eq!(layouts[1], Layout::Records { offset: 304, length: 1, stride: 8 });
        assert_eq!(layouts[2], Layout::Contiguous { offset: Some(290), length: 8 });
        assert_eq!(
            (&found.datasets[0].shape[..], &found.datasets[0].max_shape[..]),
            (&[3, 2][..], &[None, Some(2)][..])
        );
        let bare: Vec<_> = found.datasets.iter().filter(|d| d.is_bare_dimension).map(|d| d.name.as_str()).collect();
        assert_eq!(bare, ["t", "x"]);
        assert_eq!(found.attributes[0].value, ForeignValue::Texts(vec!["hi".into()]));
    }

    #[test]
    fn a_file_that_ends_in_a_record_is_refused_there() {
        let mut short = file();
        short.truncate(320);
        let found = tree(&short).unwrap().root;
        assert!(matches!(found.datasets[1].layout, Layout::Refused { .. }));
        assert!(matches!(found.datasets[2].layout, Layout::Contiguous { .. }));
    }

    #[test]
    fn the_record_dimension_is_one_and_comes_first() {
        let whole = file();
        let place = |wanted: &[u8]| whole.windows(wanted.len()).position(|found| found == wanted).unwrap();
        let mut two = whole.clone();
        two[place(b"\0\0\0\x01x") + 11] = 0;
        assert!(tree(&two).unwrap_err().to_string().contains("two record dimensions"));
        let mut inside = whole.clone();
        // The axes of `a`, the other way round.
        let axes = place(b"\0\0\0\x01a") + 12;
        inside[axes..axes + 8].rotate_left(4);
        assert!(tree(&inside).unwrap_err().to_string().contains("\"a\" has the records inside"));
        let mut lacking = whole.clone();
        lacking[axes + 7] = 2;
        assert!(tree(&lacking).unwrap_err().to_string().contains("lacks"));
    }

    #[test]
    fn variables_lie_apart() {
        let whole = file();
        for (wanted, changed, told) in
            [(304, 302, "inside of what ends"), (290, 10, "inside"), (290, 310, "behind the first")]
        {
            let (wanted, changed) = (i32::to_be_bytes(wanted), i32::to_be_bytes(changed));
            let mut bytes = whole.clone();
            let place = bytes.windows(4).position(|found| found == wanted).unwrap();
            bytes[place..place + 4].copy_from_slice(&changed);
            let error = tree(&bytes).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }

    /// The last byte of the cells of a variable.
    fn end_of(dataset: &ForeignDataset) -> u64 {
        match dataset.layout {
            Layout::Contiguous { offset: Some(offset), length } => offset + length,
            Layout::Records { offset, length, stride } => offset + length + stride * (dataset.shape[0] - 1),
            _ => 0,
        }
    }

    #[test]
    fn every_changed_byte_and_every_length_gives_cells_within_the_file() {
        let whole = file();
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let found = tree(&bytes).map(|found| found.root.datasets).unwrap_or_default();
                assert!(found.iter().all(|dataset| end_of(dataset) <= 324), "byte {at} = {value}");
            }
            let found = tree(&whole[..at].to_vec()).map(|found| found.root.datasets).unwrap_or_default();
            assert!(found.iter().all(|dataset| end_of(dataset) <= at as u64), "length {at}");
        }
    }
}
