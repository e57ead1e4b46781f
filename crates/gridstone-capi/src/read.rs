//! Reads into buffers of the caller: a box of a dense array at once, or any cells a portion at a time.

use crate::array::{ArrayObject, gridstone_array};
use crate::call::{Asked, gridstone_call};
use crate::cell::{Buffers, gridstone_buffer};
use crate::field::Field;
use crate::handle::{Exclusive, Object, get, gridstone_handle, insert};
use crate::memory::{OptionStruct, Out, optional_text, options, texts};
use crate::region::{gridstone_region, region_in, region_of};
use crate::schema::{GRIDSTONE_ORDER_ANY, GRIDSTONE_ORDER_COLUMN, GRIDSTONE_ORDER_GLOBAL, GRIDSTONE_ORDER_ROW};
use crate::status::{Failure, Outcome, gridstone_status, guarded};
use crate::text::{gridstone_text, text_handle};
use crate::write::layout;
use gridstone::base::{ErrorKind, NeverCancel, Silent};
use gridstone::engine::{Condition, ReadOrder};
use gridstone::engine::{OutColumn, Portions, PortionsOf};
use gridstone::schema::{Datatype, Schema};
use smallvec::SmallVec;
use std::ffi::c_char;
use std::sync::Arc;

/// A read that is given in portions.
pub type gridstone_read = gridstone_handle;

/// What is read; 0 everywhere: all attributes of all cells, in row order.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct gridstone_read_options {
    /// `sizeof(gridstone_read_options)`
    pub size: usize,
    /// the cells, or 0: the whole domain
    pub region: gridstone_region,
    /// the names of attributes, or NULL: all
    pub attributes: *const *const c_char,
    /// texts in `attributes`
    pub attribute_count: usize,
    /// a condition, as "sog > 3 and kind = 'tug'", or NULL: every cell
    pub condition: *const c_char,
    /// `GRIDSTONE_ORDER_ROW`, `_COLUMN`, `_GLOBAL` or `_ANY`
    pub order: u32,
    /// 0
    pub reserved: u32,
    /// bytes of a batch that the library holds meanwhile; 0: 8 MiB
    pub batch_bytes: u64,
}

// SAFETY: it begins with its size; zeros are the usual values.
unsafe impl OptionStruct for gridstone_read_options {
    const NAME: &'static str = "gridstone_read_options";

    fn reserved(&self) -> u32 {
        self.reserved
    }
}

const BATCH_BYTES: u64 = 8 << 20;

/// The order of a read.
pub(crate) fn read_order(order: u32) -> Outcome<ReadOrder> {
    let name = match order {
        GRIDSTONE_ORDER_ROW => "row",
        GRIDSTONE_ORDER_COLUMN => "col",
        GRIDSTONE_ORDER_GLOBAL => "global",
        GRIDSTONE_ORDER_ANY => "any",
        other => {
            let message = format!("order is {other}; it is GRIDSTONE_ORDER_ROW, _COLUMN, _GLOBAL or _ANY");
            return Err(Failure::input(message));
        }
    };
    Ok(ReadOrder::parse(name)?)
}

/// What is read, checked.
pub(crate) struct Reading {
    pub(crate) region: Option<Arc<gridstone::schema::Region>>,
    pub(crate) attrs: Vec<String>,
    pub(crate) condition: Option<Condition>,
    pub(crate) order: ReadOrder,
    pub(crate) batch_bytes: u64,
}

impl Reading {
    /// What an option struct asks of an array.
    ///
    /// # Safety
    /// The contract of the header.
    pub(crate) unsafe fn new(
        array: &gridstone::engine::Array,
        schema: &Schema,
        given: *const gridstone_read_options,
    ) -> Outcome<Self> {
        let all = || schema.attrs().iter().map(|attr| attr.name().to_owned()).collect();
        // SAFETY: passed on.
        let Some(given) = (unsafe { options(given) })? else {
            let order = ReadOrder::Row;
            return Ok(Self { region: None, attrs: all(), condition: None, order, batch_bytes: BATCH_BYTES });
        };
        // SAFETY: passed on.
        let (attrs, condition) = unsafe {
            let attrs = texts(given.attributes, given.attribute_count, "attributes")?;
            (attrs, optional_text(given.condition, "condition")?)
        };
        Ok(Self {
            region: region_of(array, given.region)?,
            attrs: if given.attributes.is_null() { all() } else { attrs.into_iter().map(str::to_owned).collect() },
            condition: condition.map(condition_of).transpose()?,
            order: read_order(given.order)?,
            batch_bytes: if given.batch_bytes == 0 { BATCH_BYTES } else { given.batch_bytes },
        })
    }
}

/// The condition that a text is.
pub(crate) fn condition_of(text: &str) -> Outcome<Condition> {
    Ok(Condition::parse(text)?)
}

/// Reads a box of a dense array, whole, into buffers of the caller.
///
/// @param array a dense array.
/// @param region one box, or 0: the whole domain.
/// @param order the order of the cells in the buffers: `GRIDSTONE_ORDER_ROW` or `_COLUMN`.
/// @param buffers one for each attribute that is wanted, each as large as the box; `filled_bytes` is set.
/// @param buffer_count how many.
/// @param call what goes with the call, or NULL.
///
/// `GRIDSTONE_ERROR_INPUT`: a buffer has another size than the box; the message says which is needed. Cells that were not written are
/// the fill of their attribute. What buffers hold after an error is not specified.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_read(
    array: gridstone_array,
    region: gridstone_region,
    order: u32,
    buffers: *mut gridstone_buffer,
    buffer_count: usize,
    call: *const gridstone_call,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        let schema = array.0.schema()?;
        // SAFETY: the contract of the header.
        let (mut out, asked) = unsafe { (Buffers::new(&schema, buffers, buffer_count)?, Asked::new(call)?) };
        let region = region_in(&schema, region)?;
        layout(order)?;
        let order = read_order(order)?;
        if schema.sparse() {
            return Err(Failure::input("the array is sparse: read its cells in portions, with gridstone_read_create"));
        }
        let names: SmallVec<[String; 3]> = out.columns.iter().map(|column| column.name.to_owned()).collect();
        let mut are_plain = true;
        for column in &out.columns {
            let attr = schema.attr(column.name)?.1;
            let has_parts = column.offsets.is_some() || column.validity.is_some();
            let datatype = attr.datatype();
            are_plain &= !has_parts && !attr.nullable() && !datatype.is_var() && datatype != Datatype::Bool;
        }
        let cells = if are_plain {
            let mut slices: SmallVec<[&mut [u8]; 4]> = out.columns.iter_mut().map(|one| &mut *one.values).collect();
            asked.run(|call| array.0.read_box_into(region.as_deref(), Some(&names), order, &mut slices, call))?;
            drop(slices);
            let width = out.first_type().and_then(Datatype::width).unwrap_or(1).max(1);
            out.columns.first().map_or(0, |column| column.values.len() / width)
        } else {
            let (found, ..) = asked.run(|call| array.0.read_box(region.as_deref(), Some(&names), order, call))?;
            out.copy_whole(&found.attrs, found.count)?;
            found.count
        };
        out.note_filled(cells);
        Ok(())
    })
}

/// A read in portions: the names of its columns, and the engine's part.
pub(crate) struct ReadObject {
    /// The dimensions, then the attributes that are read.
    names: Vec<String>,
    schema: Arc<Schema>,
    pub(crate) portions: Exclusive<Portions>,
}

impl Object for ReadObject {
    const NAME: &'static str = "a read";
}

impl ReadObject {
    /// What its columns are.
    pub(crate) fn fields(&self) -> Outcome<Vec<Field>> {
        let dims = Field::of_dimensions(&self.schema);
        let attrs = self.names.get(dims.len()..).unwrap_or_default();
        Ok(dims.into_iter().chain(Field::of_attributes(&self.schema, attrs)?).collect())
    }
}

/// Begins a read that is given in portions as large as the buffers of each call, of sparse and dense arrays. It shows the version that
/// the array shows now, whatever is committed meanwhile.
///
/// @param array the array.
/// @param options_given what is read, or NULL: all attributes of all cells.
/// @param call what goes with the call, or NULL.
/// @param read_out where the handle goes; free it with `gridstone_free`, also before the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_read_create(
    array: gridstone_array,
    options_given: *const gridstone_read_options,
    call: *const gridstone_call,
    read_out: *mut gridstone_read,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        let schema = array.0.schema()?;
        // SAFETY: the contract of the header.
        let (out, asked, what) = unsafe {
            (Out::new(read_out, "read")?, Asked::new(call)?, Reading::new(&array.0, &schema, options_given)?)
        };
        let wanted = PortionsOf {
            region: what.region.as_deref(),
            attrs: &what.attrs,
            condition: what.condition.as_ref(),
            order: what.order,
            bytes: what.batch_bytes,
        };
        let mut portions = asked.run(|call| array.0.portions(&wanted, call))?;
        // Each call has its own, and this one ends here.
        portions.set_cancel(Arc::new(NeverCancel));
        portions.set_progress(Arc::new(Silent));
        let portions = Exclusive::new(portions);
        let dims = schema.coordinates().map(|dim| dim.name().to_owned());
        let names = dims.chain(what.attrs.iter().cloned()).collect();
        out.put(insert(ReadObject { names, schema, portions })?);
        Ok(())
    })
}

/// Fills buffers from their start with the next cells, as many whole cells as fit into all of them. No cell comes twice, and none is left
/// out.
///
/// @param read the read.
/// @param buffers one for each dimension and attribute that is wanted; others may be given in each call.
/// @param buffer_count how many.
/// @param call what goes with the call, or NULL.
/// @param cells where the number of cells goes; 0 only after the last one.
/// @param complete where 1 goes once all cells were given, else 0; or NULL.
///
/// `GRIDSTONE_ERROR_BUDGET`: the next cell does not fit; the message says which buffer is too small. `GRIDSTONE_ERROR_INPUT`: a buffer
/// is not of its column's kind. After both the read goes on with the same cells. After any other error it is over, as it is not known
/// which cells were given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_read_next(
    read: gridstone_read,
    buffers: *mut gridstone_buffer,
    buffer_count: usize,
    call: *const gridstone_call,
    cells: *mut u64,
    complete: *mut i32,
) -> gridstone_status {
    guarded(|| {
        let read = get::<ReadObject>(read)?;
        // SAFETY: the contract of the header.
        let (out, complete_out, mut given, asked) = unsafe {
            let places = (Out::new(cells, "cells")?, Out::optional(complete, "complete")?);
            (places.0, places.1, Buffers::new(&read.schema, buffers, buffer_count)?, Asked::new(call)?)
        };
        if given.columns.is_empty() {
            return Err(Failure::input("no buffer was given: the cells would be lost"));
        }
        let mut columns = placed(&read.names, std::mem::take(&mut given.columns))?;
        let (filled, is_complete) = read.portions.with(ReadObject::NAME, |portions| {
            portions.set_cancel(Arc::clone(&asked.call.cancel));
            portions.set_progress(Arc::clone(&asked.call.progress));
            let outcome = asked.run(|_| portions.fill(&mut columns));
            portions.set_progress(Arc::new(Silent));
            let goes_on = [ErrorKind::Budget, ErrorKind::Input].map(crate::status::status_of);
            if outcome.as_ref().is_err_and(|failure| !goes_on.contains(&failure.status())) {
                portions.give_up();
            }
            given.columns = columns.into_iter().flatten().collect();
            Ok((outcome?, portions.is_complete()))
        })?;
        given.note_filled(filled);
        out.put(filled as u64);
        complete_out.put(i32::from(is_complete));
        Ok(())
    })
}

/// The buffers in the places of their columns.
fn placed<'a>(names: &[String], given: impl IntoIterator<Item = OutColumn<'a>>) -> Outcome<Vec<Option<OutColumn<'a>>>> {
    let mut places: Vec<Option<OutColumn<'a>>> = names.iter().map(|_| None).collect();
    for column in given {
        let place = names.iter().position(|name| name == column.name);
        let slot = place.and_then(|place| places.get_mut(place));
        let slot = slot.ok_or_else(|| {
            Failure::input(format!("the read has no column {:?}; it has {}", column.name, names.join(", ")))
        })?;
        if slot.is_some() {
            return Err(Failure::input(format!("two buffers are given for {:?}", column.name)));
        }
        *slot = Some(column);
    }
    Ok(places)
}

/// What a read has done so far, as JSON: names of counters and their values. Free the text.
///
/// @param read the read.
/// @param counters where the handle of the text goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_read_counters(
    read: gridstone_read,
    counters: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(counters, "counters") }?;
        let read = get::<ReadObject>(read)?;
        let found = read.portions.with(ReadObject::NAME, |portions| Ok(portions.counters()))?;
        out.put(text_handle(found.to_json())?);
        Ok(())
    })
}
