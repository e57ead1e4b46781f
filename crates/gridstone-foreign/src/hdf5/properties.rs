//! The messages of a dataset that say what its cells are made of: the fill value and the filters.
//!
//! ```text
//! fill, old          bytes 4 | value
//! fill, version 1    version | times 2 | defined | bytes 4 | value
//!       version 2    version | times 2 | defined | [bytes 4 | value]
//!       version 3    version | flags | [bytes 4 | value]
//! filters, version 1 version | filters | - 6 | each: id 2 | name bytes 2 | flags 2 | parameters 2 | name | parameters, padded
//!          version 2 version | filters | each: id 2 | [name bytes 2] | flags 2 | parameters 2 | name | parameters
//! ```

use crate::cursor::Cursor;
use crate::error::Result;
use crate::model::ForeignFilter;

/// The value of the message of the first form, if it has one.
pub(super) fn old_fill(mut cursor: Cursor<'_>) -> Result<Option<Vec<u8>>> {
    value_of(&mut cursor)
}

/// The value of the message, if it has one.
pub(super) fn fill(mut cursor: Cursor<'_>) -> Result<Option<Vec<u8>>> {
    let version = cursor.u8()?;
    let has_value = match version {
        1 | 2 => {
            cursor.skip(2)?;
            let defined = cursor.u8()? != 0;
            defined || version == 1
        }
        3 => cursor.u8()? & 0x20 != 0,
        _ => return Err(cursor.unknown_version(version)),
    };
    if has_value { value_of(&mut cursor) } else { Ok(None) }
}

fn value_of(cursor: &mut Cursor<'_>) -> Result<Option<Vec<u8>>> {
    if cursor.remaining() < 4 {
        return Ok(None);
    }
    let length = cursor.u32()?;
    if length == 0 || length == u32::MAX {
        return Ok(None);
    }
    Ok(Some(cursor.take(length as usize)?.to_vec()))
}

/// The filters of a dataset.
pub(super) fn filters(mut cursor: Cursor<'_>) -> Result<Vec<ForeignFilter>> {
    let (version, count) = (cursor.u8()?, cursor.u8()?);
    match version {
        1 => cursor.skip(6)?,
        2 => {}
        _ => return Err(cursor.unknown_version(version)),
    }
    (0..count).map(|_| filter(&mut cursor, version)).collect()
}

fn filter(cursor: &mut Cursor<'_>, version: u8) -> Result<ForeignFilter> {
    let id = cursor.u16()?;
    let has_name = version == 1 || id >= 256;
    let name_bytes = if has_name { usize::from(cursor.u16()?) } else { 0 };
    let (flags, count) = (cursor.u16()?, cursor.u16()?);
    let name = cursor.take(if version == 1 { name_bytes.next_multiple_of(8) } else { name_bytes })?;
    let parameters = (0..count).map(|_| cursor.u32()).collect::<Result<Vec<_>>>()?;
    if version == 1 && count % 2 == 1 {
        cursor.skip(4)?;
    }
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    let name = match String::from_utf8_lossy(name.get(..end).unwrap_or_default()).into_owned() {
        name if name.is_empty() => standard_name(id).to_owned(),
        name => name,
    };
    Ok(ForeignFilter { id: u32::from(id), name, parameters, optional: flags & 1 != 0 })
}

/// Names of the filters of the format itself.
fn standard_name(id: u16) -> &'static str {
    match id {
        1 => "deflate",
        2 => "shuffle",
        3 => "fletcher32",
        4 => "szip",
        5 => "nbit",
        6 => "scaleoffset",
        _ => "",
    }
}
