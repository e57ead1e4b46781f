//! Values as `expect.json` holds them, and the canonical bytes of a column, of which long columns are only a checksum.
//!
//! Integers, dates and durations are numbers, booleans true and false, strings strings; floats are the hexadecimal
//! digits of their bits, the most significant first, since NaN payloads and -0.0 matter; bytes are hexadecimal; a null
//! is null. Canonical bytes of a column, cell by cell: a byte 1 (0 for null, and nothing else then), then a fixed-width
//! value's little-endian bytes, or a u32 length and the bytes.

use gridstone::base::{ElementKind, xxh3};
use gridstone::schema::{Attribute, Datatype};
use serde_json::{Value, json};

/// The bytes of one cell; `None`: null.
pub(crate) type Cell = Option<Vec<u8>>;

/// Columns of more cells than this are given by count and checksum.
const LISTED_MAX: usize = 240;

/// The column as `expect.json` holds it.
pub(crate) fn column(datatype: Datatype, cells: &[Cell]) -> Value {
    if cells.len() <= LISTED_MAX {
        return Value::Array(cells.iter().map(|c| value(datatype, c.as_deref())).collect());
    }
    json!({"count": cells.len(), "xxh3": format!("{:016x}", xxh3(&canonical(datatype, cells)))})
}

/// The column of an attribute: of an enumerated one the categories of its codes.
pub(crate) fn of_attr(attr: &Attribute, cells: &[Cell]) -> Value {
    let Some(categories) = attr.categories() else { return column(attr.datatype(), cells) };
    let category = |code: &Vec<u8>| {
        let code = code.iter().rev().fold(0, |code, byte| code << 8 | usize::from(*byte));
        categories.values().nth(code).map(<[u8]>::to_vec)
    };
    let values: Vec<Cell> = cells.iter().map(|cell| cell.as_ref().and_then(category)).collect();
    column(categories.datatype(), &values)
}

fn canonical(datatype: Datatype, cells: &[Cell]) -> Vec<u8> {
    let mut out = Vec::new();
    for cell in cells {
        let Some(bytes) = cell else {
            out.push(0);
            continue;
        };
        out.push(1);
        if datatype.is_var() {
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        }
        out.extend_from_slice(bytes);
    }
    out
}

fn value(datatype: Datatype, cell: Option<&[u8]>) -> Value {
    let Some(bytes) = cell else { return Value::Null };
    let mut word = [0; 8];
    word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    match datatype {
        Datatype::String => return Value::String(String::from_utf8_lossy(bytes).into_owned()),
        Datatype::Bytes
        | Datatype::FixedBytes(_)
        | Datatype::Vector(..)
        | Datatype::List(_)
        | Datatype::Complex64
        | Datatype::Complex128 => return Value::String(bytes.iter().map(|b| format!("{b:02x}")).collect()),
        Datatype::Bool => return Value::Bool(bytes == [1]),
        _ => {}
    }
    match datatype.element().kind {
        ElementKind::Float => Value::String(bytes.iter().rev().map(|b| format!("{b:02x}")).collect()),
        ElementKind::Unsigned => json!(u64::from_le_bytes(word)),
        ElementKind::Signed => {
            let unused = 64 - 8 * bytes.len().min(8) as u32;
            json!(i64::from_le_bytes(word).wrapping_shl(unused).wrapping_shr(unused))
        }
    }
}
