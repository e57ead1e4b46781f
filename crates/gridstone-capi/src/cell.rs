//! Columns of cells: those that a caller gives, and room that it wants filled.

use crate::memory::{OptionStruct, check_apart, list, optional_text, options_at, places, slice, slice_mut, text};
use crate::status::{Failure, Outcome};
use gridstone::base::Cancel;
use gridstone::engine::OutColumn;
use gridstone::engine::{Column, ColumnView};
use gridstone::schema::{Datatype, Schema};
use smallvec::SmallVec;
use std::ffi::{c_char, c_void};

/// Values of one attribute or dimension, a value for each cell.
///
/// Values of fixed width lie side by side. Values that vary in length, texts and bytes, lie one behind the other, and `offsets` says where
/// each begins and where the last ends.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct gridstone_column {
    /// `sizeof(gridstone_column)`
    pub size: usize,
    /// the name of the attribute or dimension
    pub name: *const c_char,
    /// the type of the values, as "float32" or "datetime64[s]", which must be that of the schema; or NULL: it is not compared
    pub r#type: *const c_char,
    /// the values
    pub values: *const c_void,
    /// bytes of `values`
    pub values_bytes: usize,
    /// where each value begins in `values`, and where the last ends; NULL if values are of fixed width
    pub offsets: *const u64,
    /// numbers in `offsets`: one more than cells
    pub offset_count: usize,
    /// for each cell 1 if there is a value, 0 if it is null; NULL: none is null
    pub validity: *const u8,
    /// bytes of `validity`: as many as cells
    pub validity_count: usize,
}

// SAFETY: it begins with its size; pointers have a value for each pattern of bits.
unsafe impl OptionStruct for gridstone_column {
    const NAME: &'static str = "gridstone_column";
}

/// Room for values of one attribute or dimension.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct gridstone_buffer {
    /// `sizeof(gridstone_buffer)`
    pub size: usize,
    /// the name of the attribute or dimension
    pub name: *const c_char,
    /// the type of the values, which must be that of the schema; or NULL: it is not compared
    pub r#type: *const c_char,
    /// room for values
    pub values: *mut c_void,
    /// bytes of `values`
    pub values_bytes: usize,
    /// room for offsets, for values that vary in length; else NULL
    pub offsets: *mut u64,
    /// numbers that `offsets` has room for: one more than cells
    pub offset_count: usize,
    /// room for a byte for each cell, 1: a value, 0: null; needed where a value may be null, else NULL is allowed
    pub validity: *mut u8,
    /// bytes of `validity`
    pub validity_count: usize,
    /// is set by reads: the bytes of `values` that were filled
    pub filled_bytes: usize,
}

// SAFETY: as above.
unsafe impl OptionStruct for gridstone_buffer {
    const NAME: &'static str = "gridstone_buffer";
}

/// The type of the column called `name`, an attribute or a dimension.
pub(crate) fn type_of(schema: &Schema, name: &str) -> Outcome<Datatype> {
    if let Some(attr) = schema.attrs().iter().find(|attr| attr.name() == name) {
        return Ok(attr.datatype());
    }
    match schema.coordinates().find(|dim| dim.name() == name) {
        Some(dim) => Ok(dim.datatype()),
        None => Ok(schema.attr(name)?.1.datatype()),
    }
}

/// Refuses a type that is not that of the schema.
///
/// # Safety
/// The contract of the header.
unsafe fn check_type(given: *const c_char, name: &str, found: Datatype) -> Outcome<()> {
    // SAFETY: passed on.
    match unsafe { optional_text(given, "type") }? {
        Some(text) if Datatype::parse(text)? != found => {
            Err(Failure::input(format!("{name:?} was given as {text:?}, and it is {found}")))
        }
        _ => Ok(()),
    }
}

/// A column of the caller: its name, and its values of the type that the schema says.
pub(crate) struct GivenColumn<'a> {
    pub(crate) name: &'a str,
    datatype: Datatype,
    values: &'a [u8],
    offsets: Option<&'a [u64]>,
    validity: Option<&'a [u8]>,
}

impl<'a> GivenColumn<'a> {
    /// The values, checked, which takes a while for texts.
    pub(crate) fn view(&self, cancel: &dyn Cancel) -> gridstone::base::Result<ColumnView<'a>> {
        let view = ColumnView::checked(self.datatype, self.values, self.offsets, self.validity, cancel);
        view.map_err(|e| e.context(format!("{:?}", self.name)))
    }
}

/// A column of the caller, of the type that `type_of` says for its name.
///
/// # Safety
/// The contract of the header.
unsafe fn column<'a>(
    one: &gridstone_column,
    type_of: impl FnOnce(&str) -> Outcome<Datatype>,
) -> Outcome<GivenColumn<'a>> {
    // SAFETY: passed on.
    unsafe {
        let name = text(one.name, "gridstone_column.name")?;
        let datatype = type_of(name)?;
        check_type(one.r#type, name, datatype)?;
        let values = slice(one.values.cast::<u8>(), one.values_bytes, format_args!("values of {name:?}"))?;
        let offsets = slice(one.offsets, one.offset_count, format_args!("offsets of {name:?}"))?;
        let validity = slice(one.validity, one.validity_count, format_args!("validity of {name:?}"))?;
        let (offsets, validity) =
            ((!one.offsets.is_null()).then_some(offsets), (!one.validity.is_null()).then_some(validity));
        Ok(GivenColumn { name, datatype, values, offsets, validity })
    }
}

/// The columns that a caller gave.
///
/// # Safety
/// The contract of the header.
pub(crate) unsafe fn columns<'a>(
    schema: &Schema,
    first: *const gridstone_column,
    count: usize,
) -> Outcome<Vec<GivenColumn<'a>>> {
    // SAFETY: passed on.
    let given = unsafe { list(first, count) }?;
    // SAFETY: passed on.
    given.iter().map(|one| unsafe { column(one, |name| type_of(schema, name)) }).collect()
}

/// Columns of which the caller says the type too, as labels are.
///
/// # Safety
/// The contract of the header.
pub(crate) unsafe fn typed_columns<'a>(first: *const gridstone_column, count: usize) -> Outcome<Vec<GivenColumn<'a>>> {
    // SAFETY: passed on.
    let given = unsafe { list(first, count) }?;
    let typed = |one: &gridstone_column| {
        // SAFETY: passed on.
        unsafe {
            let datatype = Datatype::parse(text(one.r#type, "gridstone_column.type")?)?;
            column(one, |_| Ok(datatype))
        }
    };
    given.iter().map(typed).collect()
}

/// Columns of cells: those of the dimensions in the order of the schema, if there are any, and those of attributes by name.
pub(crate) struct Split<'a> {
    pub(crate) dims: Vec<ColumnView<'a>>,
    pub(crate) attrs: Vec<(String, ColumnView<'a>)>,
}

/// Parts columns into dimensions and attributes. Either all dimensions are given or none.
pub(crate) fn split<'a>(
    schema: &Schema,
    given: &[GivenColumn<'a>],
    cancel: &dyn Cancel,
) -> gridstone::base::Result<Split<'a>> {
    let names: Vec<&str> = schema.coordinates().map(|dim| dim.name()).collect();
    let (mut dims, mut attrs) = (Vec::new(), Vec::new());
    for name in &names {
        dims.extend(given.iter().find(|column| column.name == *name).map(|column| column.view(cancel)).transpose()?);
    }
    for (place, column) in given.iter().enumerate() {
        if given.iter().take(place).any(|earlier| earlier.name == column.name) {
            return Err(gridstone::base::Error::input(format!("the column {:?} is given twice", column.name)));
        }
        if !names.contains(&column.name) {
            attrs.push((column.name.to_owned(), column.view(cancel)?));
        }
    }
    if !dims.is_empty() && dims.len() != names.len() {
        let message = format!(
            "coordinates of {} dimensions were given, the array has {}: {}",
            dims.len(),
            names.len(),
            names.join(", ")
        );
        return Err(gridstone::base::Error::input(message));
    }
    Ok(Split { dims, attrs })
}

/// Room for a few buffers lies with the call.
const FEW: usize = 3;

/// Buffers of the caller, and where the bytes that were filled are written.
pub(crate) struct Buffers<'a> {
    pub(crate) columns: SmallVec<[OutColumn<'a>; FEW]>,
    /// In the order in which the caller gave them.
    structs: SmallVec<[Struct<'a>; FEW]>,
}

/// The struct of a buffer.
struct Struct<'a> {
    name: &'a str,
    datatype: Datatype,
    place: *mut gridstone_buffer,
}

impl<'a> Buffers<'a> {
    /// The buffers that a caller gave, no two of which overlap.
    ///
    /// # Safety
    /// The contract of the header.
    pub(crate) unsafe fn new(schema: &Schema, first: *mut gridstone_buffer, count: usize) -> Outcome<Self> {
        let bytes = |one: &gridstone_buffer| {
            let offsets = (one.offsets as usize, one.offset_count.saturating_mul(size_of::<u64>()));
            [(one.values as usize, one.values_bytes), offsets, (one.validity as usize, one.validity_count)]
        };
        // SAFETY: passed on.
        let all = unsafe { places(first.cast_const(), count) }?;
        // A wrong count is found at the second struct, so nothing is reserved for it.
        let mut given: SmallVec<[gridstone_buffer; FEW]> = SmallVec::new();
        for place in all.clone() {
            // SAFETY: passed on.
            given.push(unsafe { options_at(place) }?);
        }
        // One buffer of plain values overlaps with nothing.
        if given.len() > 1 || given.iter().any(|one| !one.offsets.is_null() || !one.validity.is_null()) {
            check_apart(given.iter().flat_map(bytes))?;
        }
        let mut made =
            Self { columns: SmallVec::with_capacity(given.len()), structs: SmallVec::with_capacity(given.len()) };
        for (one, place) in given.iter().zip(all) {
            // SAFETY: passed on; they do not overlap.
            unsafe {
                let name: &'a str = text(one.name, "gridstone_buffer.name")?;
                let datatype = type_of(schema, name)?;
                check_type(one.r#type, name, datatype)?;
                let values = slice_mut(one.values.cast::<u8>(), one.values_bytes, format_args!("values of {name:?}"))?;
                let offsets = slice_mut(one.offsets, one.offset_count, format_args!("offsets of {name:?}"))?;
                let validity = slice_mut(one.validity, one.validity_count, format_args!("validity of {name:?}"))?;
                let (offsets, validity) =
                    ((!one.offsets.is_null()).then_some(offsets), (!one.validity.is_null()).then_some(validity));
                made.columns.push(OutColumn { name, values, offsets, validity });
                made.structs.push(Struct { name, datatype, place: place.cast_mut() });
            }
        }
        Ok(made)
    }

    /// The type of the first buffer.
    pub(crate) fn first_type(&self) -> Option<Datatype> {
        self.structs.first().map(|one| one.datatype)
    }

    /// Copies columns of `cells` cells, one for each buffer, which must have just that room.
    pub(crate) fn copy_whole(&mut self, columns: &[Column], cells: usize) -> Outcome<()> {
        for (out, column) in self.columns.iter_mut().zip(columns) {
            copy_column(out, column.view(), cells)?;
        }
        Ok(())
    }

    /// Writes into each buffer's struct how many bytes of its values `cells` cells fill.
    pub(crate) fn note_filled(&self, cells: usize) {
        for Struct { name, datatype, place } in &self.structs {
            let Some(column) = self.columns.iter().find(|column| column.name == *name) else { continue };
            let end = column.offsets.as_ref().and_then(|offsets| offsets.get(cells)).map(|end| *end as usize);
            let bytes = if cells == 0 { 0 } else { end.unwrap_or_else(|| cells * datatype.width().unwrap_or(0)) };
            // SAFETY: `new` has read a struct there.
            unsafe {
                if (*(*place).cast::<usize>()) > std::mem::offset_of!(gridstone_buffer, filled_bytes) {
                    (&raw mut (**place).filled_bytes).write(bytes);
                }
            }
        }
    }
}

/// Copies a whole column into a buffer.
fn copy_column(out: &mut OutColumn<'_>, view: ColumnView<'_>, cells: usize) -> Outcome<()> {
    let name = out.name;
    let (given, needed) = (out.values.len(), view.values().len());
    let is_var = view.offsets().is_some();
    if given < needed || (given != needed && !is_var) {
        let message = format!("the buffer for {name:?} has {given} bytes, and {cells} cells take {needed}");
        return Err(Failure::input(message));
    }
    if let Some(values) = out.values.get_mut(..needed) {
        values.copy_from_slice(view.values());
    }
    match (view.offsets(), out.offsets.as_deref_mut()) {
        (Some(from), Some(to)) if to.len() >= from.len() => to.iter_mut().zip(from).for_each(|(to, from)| *to = *from),
        (Some(from), to) => {
            let room = to.map_or(0, |to| to.len());
            let message = format!("the buffer for {name:?} has room for {room} offsets, and needs {}", from.len());
            return Err(Failure::input(message));
        }
        (None, Some(_)) => {
            return Err(Failure::input(format!("values of {name:?} are of fixed width and have no offsets")));
        }
        (None, None) => {}
    }
    match (view.validity(), out.validity.as_deref_mut()) {
        (flags, Some(to)) if to.len() >= cells => {
            let slots = to.iter_mut().take(cells).enumerate();
            slots.for_each(|(row, slot)| *slot = flags.map_or(1, |flags| flags.get(row).copied().unwrap_or(0)));
            Ok(())
        }
        (_, Some(to)) => {
            Err(Failure::input(format!("validity of {name:?} has {} bytes, and there are {cells} cells", to.len())))
        }
        (Some(_), None) => {
            Err(Failure::input(format!("values of {name:?} may be null: give a buffer for validity too")))
        }
        (None, None) => Ok(()),
    }
}
