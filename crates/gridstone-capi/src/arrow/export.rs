//! Columns as arrays of Arrow, over the same memory where Arrow lays it out alike.
//!
//! ```text
//! column --Node--> buffers: shared with the column, or made      --ArrowArray--> handed over; the release callback drops
//!                  (bits, times in another unit, item offsets)                   what the private data holds
//! ```
//! Each node holds the columns' home by itself, since a consumer may move it out of its parent.

use super::abi::{ArrowArray, ArrowSchema, Owned, Releasable};
use super::types::{ArrowType, metadata_bytes, unit_of};
use crate::field::Field;
use crate::status::{Failure, Outcome};
use gridstone::base::AlignedBuf;
use gridstone::engine::{Column, ColumnView};
use gridstone::schema::calendar::Moment;
use gridstone::schema::{Datatype, Primitive, TimeUnit};
use std::any::Any;
use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;

/// What keeps the memory of shared buffers.
pub(super) type Home = Arc<dyn Any + Send + Sync>;

/// Not a time.
const NAT: i64 = i64::MIN;

/// Where empty buffers begin.
static NOTHING: [u64; 1] = [0];

/// A buffer of an array.
enum Part {
    /// There is none: no value is null.
    Absent,
    /// In the memory of the column.
    Shared(*const c_void),
    Made(AlignedBuf),
}

/// An array before it is handed over.
pub(super) struct Node {
    length: usize,
    null_count: usize,
    parts: Vec<Part>,
    children: Vec<Node>,
    dictionary: Option<Box<Node>>,
}

/// Values without their type: bytes, where each begins, which are valid.
#[derive(Clone, Copy)]
struct Values<'a> {
    bytes: &'a [u8],
    count: usize,
    offsets: Option<&'a [u64]>,
    validity: Option<&'a [u8]>,
}

impl<'a> Values<'a> {
    fn of(view: ColumnView<'a>) -> Self {
        Self { bytes: view.values(), count: view.len(), offsets: view.offsets(), validity: view.validity() }
    }

    /// So many items of these bytes, of which none is null.
    fn items(self, count: usize) -> Self {
        Self { count, offsets: None, validity: None, ..self }
    }

    fn ticks(self) -> impl Iterator<Item = i64> {
        self.bytes.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes))
    }
}

fn shared<T>(values: &[T]) -> Part {
    Part::Shared(if values.is_empty() { NOTHING.as_ptr().cast() } else { values.as_ptr().cast() })
}

/// Flags, a byte each, as bits.
fn bits(flags: impl Iterator<Item = bool>) -> AlignedBuf {
    let mut bytes = Vec::with_capacity(flags.size_hint().0.div_ceil(8));
    for (place, flag) in flags.enumerate() {
        if place % 8 == 0 {
            bytes.push(0u8);
        }
        if let (true, Some(last)) = (flag, bytes.last_mut()) {
            *last |= 1 << (place % 8);
        }
    }
    AlignedBuf::from_slice(&bytes)
}

/// The validity bitmap of flags, and how many are null.
fn validity(flags: Option<&[u8]>) -> (Part, usize) {
    let Some(flags) = flags else { return (Part::Absent, 0) };
    match flags.iter().filter(|flag| **flag == 0).count() {
        0 => (Part::Absent, 0),
        nulls => (Part::Made(bits(flags.iter().map(|flag| *flag != 0))), nulls),
    }
}

fn flat(values: Values<'_>, more: Vec<Part>) -> Node {
    let (bitmap, null_count) = validity(values.validity);
    let parts = std::iter::once(bitmap).chain(more).collect();
    Node { length: values.count, null_count, parts, children: Vec::new(), dictionary: None }
}

fn nested(values: Values<'_>, more: Vec<Part>, child: Node) -> Node {
    Node { children: vec![child], ..flat(values, more) }
}

/// The array of values of a type.
fn node(datatype: Datatype, values: Values<'_>) -> Outcome<Node> {
    let count = values.count;
    Ok(match datatype {
        Datatype::Bool => flat(values, vec![Part::Made(bits(values.bytes.iter().map(|byte| *byte != 0)))]),
        Datatype::String | Datatype::Bytes => {
            let offsets = values.offsets.unwrap_or(&NOTHING);
            flat(values, vec![shared(offsets), shared(values.bytes)])
        }
        Datatype::Datetime(_) | Datatype::Timedelta(_) => times(datatype, values)?,
        Datatype::Complex64 => nested(values, vec![], node(Datatype::Float32, values.items(2 * count))?),
        Datatype::Complex128 => nested(values, vec![], node(Datatype::Float64, values.items(2 * count))?),
        Datatype::Vector(primitive, shape) => vectors(primitive, shape.sides(), values)?,
        Datatype::List(primitive) => {
            let width = primitive.width() as u64;
            let offsets: Vec<u8> =
                values.offsets.unwrap_or(&NOTHING).iter().flat_map(|end| (end / width).to_ne_bytes()).collect();
            let child = node(primitive.datatype(), values.items(values.bytes.len() / primitive.width()))?;
            nested(values, vec![Part::Made(AlignedBuf::from_slice(&offsets))], child)
        }
        _ => flat(values, vec![shared(values.bytes)]),
    })
}

/// Fixed-size lists in each other, from the outermost axis to the innermost.
fn vectors(primitive: Primitive, sides: &[u32], values: Values<'_>) -> Outcome<Node> {
    let Some((side, inner)) = sides.split_first() else { return node(primitive.datatype(), values) };
    let child = vectors(primitive, inner, values.items(values.count * *side as usize))?;
    Ok(nested(values, vec![], child))
}

/// Times in a unit that Arrow has; NaT is null.
fn times(datatype: Datatype, values: Values<'_>) -> Outcome<Node> {
    let flags: Option<Vec<u8>> = values.ticks().any(|tick| tick == NAT).then(|| {
        let is_valid = |row: usize| values.validity.is_none_or(|flags| flags.get(row) == Some(&1));
        values.ticks().enumerate().map(|(row, tick)| u8::from(tick != NAT && is_valid(row))).collect()
    });
    let values = Values { validity: flags.as_deref().or(values.validity), ..values };
    let (step, is_span) = match datatype {
        Datatype::Datetime(step) => (step, false),
        Datatype::Timedelta(step) => (step, true),
        _ => return Ok(flat(values, vec![shared(values.bytes)])),
    };
    let Some(unit) = unit_of(datatype).filter(|unit| unit.step() != step) else {
        return Ok(flat(values, vec![shared(values.bytes)]));
    };
    let moment = |tick: i64| if is_span { Moment::of_timedelta(tick, step) } else { Moment::of_datetime(tick, step) };
    let mut made = Vec::with_capacity(values.bytes.len());
    for (row, tick) in values.ticks().enumerate() {
        let is_valid = values.validity.is_none_or(|flags| flags.get(row) == Some(&1));
        let tick = if is_valid { in_unit(moment(tick), unit, datatype)? } else { 0 };
        made.extend_from_slice(&tick.to_ne_bytes());
    }
    Ok(flat(values, vec![Part::Made(AlignedBuf::from_slice(&made))]))
}

fn in_unit(moment: Moment, unit: TimeUnit, datatype: Datatype) -> Outcome<i64> {
    moment.ticks(unit).ok_or_else(|| {
        Failure::input(format!("values of type {datatype} lie beyond what Arrow's times hold; read them into buffers"))
    })
}

/// The array of a column; codes refer to the dictionary of their categories.
fn of_column(field: &Field, column: &Column) -> Outcome<Node> {
    let values = Values::of(column.view());
    let Some(known) = &field.categories else { return node(field.datatype, values) };
    let (mut bytes, mut offsets) = (Vec::new(), vec![0u64]);
    for value in known.values() {
        bytes.extend_from_slice(value);
        offsets.push(bytes.len() as u64);
    }
    let offsets = known.datatype().is_var().then_some(offsets);
    let entries = Column::new(known.datatype(), AlignedBuf::from_slice(&bytes), offsets, None)?;
    let mut dictionary = node(known.datatype(), Values::of(entries.view()))?;
    dictionary.keep(&entries);
    let codes = codes(field, values, known.len())?;
    let values = Values { bytes: &codes, ..values };
    let mut made = node(field.datatype, values)?;
    made.parts.truncate(1);
    made.parts.push(Part::Made(AlignedBuf::from_slice(&codes)));
    Ok(Node { dictionary: Some(Box::new(dictionary)), ..made })
}

/// Codes of so many categories, those of nulls as 0.
fn codes(field: &Field, values: Values<'_>, known: usize) -> Outcome<Vec<u8>> {
    let width = field.datatype.width().unwrap_or(1);
    let mut made = values.bytes.to_vec();
    for (row, code) in made.chunks_exact_mut(width).enumerate() {
        if values.validity.is_some_and(|flags| flags.get(row) != Some(&1)) {
            code.fill(0);
            continue;
        }
        let number = code.iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        if number >= known as u64 {
            let message = format!("{:?}, row {row}: the code {number} is none of its {known} categories", field.name);
            return Err(Failure::input(message));
        }
    }
    Ok(made)
}

impl Node {
    /// Copies what is shared with a column that goes.
    fn keep(&mut self, column: &Column) {
        let view = column.view();
        let copy = |bytes: &[u8]| Part::Made(AlignedBuf::from_slice(bytes));
        let offsets: Vec<u8> = view.offsets().unwrap_or_default().iter().flat_map(|end| end.to_ne_bytes()).collect();
        for (place, part) in self.parts.iter_mut().enumerate() {
            if let Part::Shared(_) = part {
                *part = if place == 1 && view.offsets().is_some() { copy(&offsets) } else { copy(view.values()) };
            }
        }
    }

    /// The array of rows with these columns, which `home` keeps.
    pub(super) fn of_rows<'a>(rows: usize, columns: impl Iterator<Item = (&'a Field, &'a Column)>) -> Outcome<Self> {
        let children = columns.map(|(field, column)| of_column(field, column)).collect::<Outcome<_>>()?;
        Ok(Self { length: rows, null_count: 0, parts: vec![Part::Absent], children, dictionary: None })
    }

    /// Hands the array over; its release callback drops what it holds.
    pub(super) fn into_array(self, home: &Home) -> ArrowArray {
        let pointer = |part: &Part| match part {
            Part::Absent => std::ptr::null(),
            Part::Shared(pointer) => *pointer,
            Part::Made(made) if made.is_empty() => NOTHING.as_ptr().cast(),
            Part::Made(made) => made.as_slice().as_ptr().cast(),
        };
        let mut owner = Box::new(ArrayOwner {
            buffers: self.parts.iter().map(pointer).collect(),
            children: self.children.into_iter().map(|child| Box::into_raw(Box::new(child.into_array(home)))).collect(),
            dictionary: self.dictionary.map(|node| Box::into_raw(Box::new(node.into_array(home)))),
            _parts: self.parts,
            _home: Arc::clone(home),
        });
        ArrowArray {
            length: self.length as i64,
            null_count: self.null_count as i64,
            offset: 0,
            n_buffers: owner.buffers.len() as i64,
            n_children: owner.children.len() as i64,
            buffers: owner.buffers.as_mut_ptr(),
            children: owner.children.as_mut_ptr(),
            dictionary: owner.dictionary.unwrap_or(std::ptr::null_mut()),
            release: Some(release_array),
            private_data: Box::into_raw(owner).cast(),
        }
    }
}

/// What an array that was handed over holds.
struct ArrayOwner {
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    dictionary: Option<*mut ArrowArray>,
    _parts: Vec<Part>,
    _home: Home,
}

/// What a schema that was handed over holds.
struct SchemaOwner {
    format: CString,
    name: CString,
    metadata: Option<Vec<u8>>,
    children: Vec<*mut ArrowSchema>,
    dictionary: Option<*mut ArrowSchema>,
}

/// Releases nested structs that were not moved away, and frees their places.
///
/// # Safety
/// The pointers are those of boxes that were handed over with their parent, which is being released.
unsafe fn release_nested<T: Releasable>(nested: impl Iterator<Item = *mut T>) {
    for pointer in nested {
        // SAFETY: the caller's promise.
        let child = unsafe { Box::from_raw(pointer) };
        if let Some(release) = child.release_of() {
            let pointer = Box::into_raw(child);
            // SAFETY: it was not released yet, and its place is freed after it.
            unsafe {
                release(pointer);
                drop(Box::from_raw(pointer));
            }
        }
    }
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: the interface says that a consumer calls it once, with a struct that `into_array` has made, or to which that was moved.
    unsafe {
        let owner = Box::from_raw((*array).private_data.cast::<ArrayOwner>());
        release_nested(owner.children.iter().copied().chain(owner.dictionary));
        array.write(ArrowArray::released());
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: as above, of `schema_of`.
    unsafe {
        let owner = Box::from_raw((*schema).private_data.cast::<SchemaOwner>());
        release_nested(owner.children.iter().copied().chain(owner.dictionary));
        schema.write(ArrowSchema::released());
    }
}

/// Hands a type over; its release callback drops what it holds.
pub(super) fn schema_of(made: &ArrowType) -> Outcome<ArrowSchema> {
    let zero = |_| Failure::input(format!("the name {:?} has a zero in it, which Arrow cannot show", made.name));
    let (format, name) =
        (CString::new(made.format.as_str()).map_err(zero)?, CString::new(made.name.as_str()).map_err(zero)?);
    // Those that are made are released if a later one fails.
    let owned = |child: &ArrowType| Ok(Owned::of(schema_of(child)?));
    let children: Vec<Owned<ArrowSchema>> = made.children.iter().map(owned).collect::<Outcome<_>>()?;
    let dictionary = made.dictionary.as_deref().map(owned).transpose()?;
    let mut owner = Box::new(SchemaOwner {
        format,
        name,
        metadata: metadata_bytes(&made.metadata),
        children: children.into_iter().map(Owned::into_raw).collect(),
        dictionary: dictionary.map(Owned::into_raw),
    });
    Ok(ArrowSchema {
        format: owner.format.as_ptr(),
        name: owner.name.as_ptr(),
        metadata: owner.metadata.as_ref().map_or(std::ptr::null(), |bytes| bytes.as_ptr().cast::<c_char>()),
        flags: made.flags,
        n_children: owner.children.len() as i64,
        children: owner.children.as_mut_ptr(),
        dictionary: owner.dictionary.unwrap_or(std::ptr::null_mut()),
        release: Some(release_schema),
        private_data: Box::into_raw(owner).cast(),
    })
}
