//! The messages of a dataset, put together and checked against each other and the file.

use super::attributes::Access;
use super::dataspace::Dataspace;
use super::datatype::Datatype;
use super::header::{ObjectHeader, kind};
use super::heaps::LocalHeap;
use super::layout::StoredLayout;
use super::properties;
use crate::cursor::name_of;
use crate::error::{Error, Result};
use crate::model::{ExternalPart, ForeignFilter, Layout};

/// What the messages of a dataset say.
#[derive(Debug)]
pub(super) struct DatasetParts {
    pub(super) space: Dataspace,
    pub(super) datatype: Datatype,
    pub(super) fill: Option<Vec<u8>>,
    pub(super) layout: Layout,
}

/// Reads the dataset with `header`. A layout that cannot be read is refused by itself.
pub(super) fn read(access: Access<'_>, header: &ObjectHeader) -> Result<DatasetParts> {
    let space = needed(access, header, kind::DATASPACE, "shape")?;
    let space = Dataspace::parse(access.reader.cursor(&space, "dataspace"))?;
    let datatype = needed(access, header, kind::DATATYPE, "datatype")?;
    let datatype = Datatype::parse(&mut access.reader.cursor(&datatype, "datatype"))?;
    let fill = fill(access, header, &datatype)?;
    let layout =
        layout(access, header, &space, &datatype).unwrap_or_else(|error| Layout::Refused { reason: error.to_string() });
    Ok(DatasetParts { space, datatype, fill, layout })
}

fn message(access: Access<'_>, header: &ObjectHeader, kind: u16) -> Result<Option<Vec<u8>>> {
    let found = header.first(kind);
    found.map(|message| access.shared.resolve(access.reader, access.budget, message)).transpose()
}

fn needed(access: Access<'_>, header: &ObjectHeader, kind: u16, what: &str) -> Result<Vec<u8>> {
    let found = message(access, header, kind)?;
    found.ok_or_else(|| Error::damaged(format!("the dataset has no {what}")))
}

fn fill(access: Access<'_>, header: &ObjectHeader, datatype: &Datatype) -> Result<Option<Vec<u8>>> {
    let value = match message(access, header, kind::FILL)? {
        Some(body) => properties::fill(access.reader.cursor(&body, "fill value"))?,
        None => match message(access, header, kind::OLD_FILL)? {
            Some(body) => properties::old_fill(access.reader.cursor(&body, "fill value"))?,
            None => None,
        },
    };
    match value {
        Some(value) if value.len() != datatype.size as usize => Err(Error::damaged(format!(
            "the fill value has {} bytes, the dataset's cells have {}",
            value.len(),
            datatype.size
        ))),
        value => Ok(value),
    }
}

fn layout(access: Access<'_>, header: &ObjectHeader, space: &Dataspace, datatype: &Datatype) -> Result<Layout> {
    if let Some(body) = message(access, header, kind::EXTERNAL_FILES)? {
        return external(access, &body);
    }
    let body = needed(access, header, kind::LAYOUT, "layout")?;
    let filters = message(access, header, kind::FILTERS)?;
    let filters = match &filters {
        Some(body) => properties::filters(access.reader.cursor(body, "filters"))?,
        None => Vec::new(),
    };
    let cells = space.cells()?;
    let length = cells.checked_mul(u64::from(datatype.size));
    let length = length.ok_or_else(|| Error::limit(format!("{cells} cells take more than 2^64 bytes")));
    match StoredLayout::parse(access.reader.cursor(&body, "layout"))? {
        StoredLayout::Compact(bytes) => compact(bytes, length?),
        StoredLayout::Contiguous { address, length: stored } => contiguous(access, address, stored, length?),
        StoredLayout::Virtual => Ok(Layout::Virtual),
        StoredLayout::Chunked { chunk, element_size, index } => {
            if element_size != u64::from(datatype.size) || chunk.len() != space.shape.len() {
                return Err(Error::damaged(format!(
                    "chunks of shape {chunk:?} with cells of {element_size} bytes do not fit the shape {:?} with cells \
                     of {} bytes",
                    space.shape, datatype.size
                )));
            }
            Ok(Layout::Chunked { chunk, filters: filters_of(filters)?, index })
        }
    }
}

/// A mask of filters has 32 bits.
fn filters_of(filters: Vec<ForeignFilter>) -> Result<Vec<ForeignFilter>> {
    if filters.len() > 32 {
        return Err(Error::damaged(format!("the dataset has {} filters; the format allows 32", filters.len())));
    }
    Ok(filters)
}

fn compact(mut bytes: Vec<u8>, length: u64) -> Result<Layout> {
    let found = bytes.len();
    let length = usize::try_from(length).ok().filter(|&length| length <= found);
    let length = length.ok_or_else(|| Error::damaged(format!("the dataset has only {found} bytes in its header")))?;
    bytes.truncate(length);
    Ok(Layout::Compact { bytes })
}

fn contiguous(access: Access<'_>, address: Option<u64>, stored: Option<u64>, length: u64) -> Result<Layout> {
    let Some(address) = address.filter(|_| length > 0) else {
        return Ok(Layout::Contiguous { offset: None, length });
    };
    if let Some(stored) = stored.filter(|&stored| stored < length) {
        return Err(Error::damaged(format!("the dataset takes {length} bytes, only {stored} bytes are stored")));
    }
    let offset = access.reader.offset_of(address, length, "dataset")?;
    Ok(Layout::Contiguous { offset: Some(offset), length })
}

/// The files of an external layout: version | - 3 | room 2 | used 2 | heap | each: name, offset, bytes.
fn external(access: Access<'_>, body: &[u8]) -> Result<Layout> {
    let mut cursor = access.reader.cursor(body, "list of external files");
    cursor.version(1)?;
    cursor.skip(5)?;
    let count = cursor.u16()?;
    let heap = LocalHeap::read(access.reader, access.budget, cursor.defined_address()?)?;
    let mut files = Vec::new();
    for _ in 0..count {
        let (name, offset, length) = (cursor.length()?, cursor.length()?, cursor.length()?);
        let unlimited = u64::MAX >> (64 - 8 * u32::from(access.reader.widths().length));
        let file = name_of(heap.text(name)?)?;
        files.push(ExternalPart { file, offset, length: (length != unlimited).then_some(length) });
    }
    Ok(Layout::External { files })
}
