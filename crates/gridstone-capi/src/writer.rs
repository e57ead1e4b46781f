//! Writers: cells that come a portion at a time, and are one write in the end.

use crate::array::{ArrayObject, gridstone_array};
use crate::call::{Asked, gridstone_call};
use crate::cell::{columns, gridstone_column, split};
use crate::handle::{Exclusive, Object, get, gridstone_handle, insert};
use crate::memory::{OptionStruct, Out, options, texts};
use crate::region::{gridstone_region, region_of};
use crate::status::{Failure, Outcome, gridstone_status, guarded};
use crate::write::{dedup_of, gridstone_staged, staged_handle};
use gridstone::base::{Error, Result};
use gridstone::engine::{Array, ColumnView, Naming, Writer};
use gridstone::schema::Schema;
use std::ffi::c_char;
use std::sync::Arc;

/// A write whose cells come a portion at a time.
pub type gridstone_writer = gridstone_handle;

/// The cells come in global order: tile by tile, each in its cell order. Nothing is kept in memory but a tile.
pub const GRIDSTONE_WRITER_ORDERED: u32 = 0;
/// The cells come in any order, each with its coordinates; what memory does not hold waits in files.
pub const GRIDSTONE_WRITER_UNSORTED: u32 = 1;

/// What a writer takes; 0 everywhere: all attributes of all cells of the domain in global order.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct gridstone_writer_options {
    /// `sizeof(gridstone_writer_options)`
    pub size: usize,
    /// the box that is written in global order, or 0: the whole domain; 0 for cells in any order
    pub region: gridstone_region,
    /// the names of the attributes that are written, or NULL: all
    pub attributes: *const *const c_char,
    /// texts in `attributes`
    pub attribute_count: usize,
    /// `GRIDSTONE_WRITER_ORDERED` or `GRIDSTONE_WRITER_UNSORTED`
    pub kind: u32,
    /// of cells in any order: `GRIDSTONE_DEDUP_ERROR`, `_FIRST` or `_LAST`
    pub dedup: u32,
}

// SAFETY: it begins with its size; zeros are the usual values.
unsafe impl OptionStruct for gridstone_writer_options {
    const NAME: &'static str = "gridstone_writer_options";
}

/// The engine's part, and what each portion has to have.
pub(crate) struct WriterObject {
    writer: Exclusive<Writer>,
    schema: Arc<Schema>,
    /// The attributes that are written, in the order of the schema.
    attrs: Vec<String>,
}

impl Object for WriterObject {
    const NAME: &'static str = "a writer";
}

impl WriterObject {
    /// The columns in the writer's order.
    fn in_order<'v>(&self, given: &[(String, ColumnView<'v>)]) -> Result<Vec<ColumnView<'v>>> {
        let find = |name: &String| given.iter().find(|(n, _)| n == name).map(|(_, view)| *view);
        let ordered: Vec<ColumnView<'v>> = self.attrs.iter().filter_map(find).collect();
        if ordered.len() != self.attrs.len() || given.len() != self.attrs.len() {
            let message = format!("every portion needs the writer's attributes: {}", self.attrs.join(", "));
            return Err(Error::input(message));
        }
        Ok(ordered)
    }
}

/// Starts the engine's writer that an option struct asks for.
///
/// # Safety
/// The contract of the header.
unsafe fn start(
    array: &Array,
    schema: &Schema,
    given: *const gridstone_writer_options,
    asked: &Asked,
) -> Outcome<(Writer, Vec<String>)> {
    // SAFETY: passed on.
    let given = unsafe { options(given) }?;
    let (mut attrs, mut region, mut kind, mut dedup) = (None, None, GRIDSTONE_WRITER_ORDERED, 0);
    if let Some(given) = given {
        // SAFETY: passed on.
        let names = unsafe { texts(given.attributes, given.attribute_count, "attributes") }?;
        attrs = (!given.attributes.is_null()).then(|| names.into_iter().map(str::to_owned).collect::<Vec<_>>());
        region = region_of(array, given.region)?;
        (kind, dedup) = (given.kind, given.dedup);
    }
    let begin = |grows: bool| match kind {
        GRIDSTONE_WRITER_ORDERED if dedup != 0 => {
            Err(Failure::input("cells in global order have one place each: leave dedup 0"))
        }
        GRIDSTONE_WRITER_ORDERED => Ok(array.box_writer(region.as_deref(), attrs.as_deref(), grows)?),
        GRIDSTONE_WRITER_UNSORTED if region.is_some() => {
            Err(Failure::input("cells in any order have coordinates: leave region 0"))
        }
        GRIDSTONE_WRITER_UNSORTED => {
            let writer = array.unsorted_writer(attrs.as_deref(), dedup_of(dedup)?)?;
            Ok(if grows { writer.growing()? } else { writer })
        }
        other => Err(Failure::input(format!("kind is {other}; it is GRIDSTONE_WRITER_ORDERED or _UNSORTED"))),
    };
    let writer = begin(asked.call.grows)?;
    let writer = match &asked.call.commit_key {
        Some(key) => asked.run(|_| writer.with_key(key.clone(), Naming::Id))?,
        None => writer,
    };
    let is_written = |name: &str| attrs.as_ref().is_none_or(|attrs| attrs.iter().any(|given| given == name));
    let names = schema.attrs().iter().map(|attr| attr.name()).filter(|name| is_written(name)).map(str::to_owned);
    Ok((writer, names.collect()))
}

/// Starts a write whose cells come a portion at a time, in bounded memory. Nothing is seen of it before a commit. A writer serves one
/// thread at a time. Freed before its end it is aborted, and its files are gone.
///
/// @param array an array that is open for writing.
/// @param options_given what is written, and in which order it comes, or NULL: all attributes of the domain in global order.
/// @param call the `commit_key` of its commit and `GRIDSTONE_CALL_GROW`, or NULL.
/// @param writer where the handle goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_writer_create(
    array: gridstone_array,
    options_given: *const gridstone_writer_options,
    call: *const gridstone_call,
    writer: *mut gridstone_writer,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        let schema = array.0.schema()?;
        // SAFETY: the contract of the header.
        let (out, asked) = unsafe { (Out::new(writer, "writer")?, Asked::new(call)?) };
        // SAFETY: the contract of the header.
        let (writer, attrs) = unsafe { start(&array.0, &schema, options_given, &asked) }?;
        out.put(insert(WriterObject { writer: Exclusive::new(writer), schema, attrs })?);
        Ok(())
    })
}

/// Appends cells to a writer.
///
/// @param writer the writer.
/// @param given the writer's attributes, each with a value for each cell, and the coordinates of every dimension. A writer of a dense
/// array in global order takes no coordinates: the cells are those behind the last ones.
/// @param count how many.
/// @param call what goes with the call, or NULL.
///
/// A null pointer, a wrong name or type, and a text that is none leave the writer as it is. After any other error, and after a cancel, it
/// is closed and what it wrote is gone. `GRIDSTONE_ERROR_BUSY`: another thread is using it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_writer_append(
    writer: gridstone_writer,
    given: *const gridstone_column,
    count: usize,
    call: *const gridstone_call,
) -> gridstone_status {
    guarded(|| {
        let object = get::<WriterObject>(writer)?;
        // SAFETY: the contract of the header.
        let (given, asked) = unsafe { (columns(&object.schema, given, count)?, Asked::new(call)?) };
        object.writer.with(WriterObject::NAME, |writer| {
            asked.run(|call| {
                let cells = split(&object.schema, &given, call.cancel.as_ref())?;
                writer.append(call, &cells.dims, &object.in_order(&cells.attrs)?)
            })
        })
    })
}

/// Ends a writer: what it has is a staged write, for `gridstone_commit` or `gridstone_receipt`. The writer is used up, also if it fails,
/// and is still to be freed.
///
/// @param writer the writer.
/// @param call what goes with the call, or NULL.
/// @param staged where the handle of the staged write goes; free it with `gridstone_free`.
///
/// `GRIDSTONE_ERROR_INPUT`: the box is not complete, or two cells lie at one place; what was written is gone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_writer_finish(
    writer: gridstone_writer,
    call: *const gridstone_call,
    staged: *mut gridstone_staged,
) -> gridstone_status {
    guarded(|| {
        let object = get::<WriterObject>(writer)?;
        // SAFETY: the contract of the header.
        let (out, asked) = unsafe { (Out::new(staged, "staged")?, Asked::new(call)?) };
        let mut writer = object.writer.take(WriterObject::NAME)?;
        out.put(staged_handle(asked.run(|call| writer.finish(call))?)?);
        Ok(())
    })
}

/// Gives up a writer: its files are deleted. It is used up, and is still to be freed; freeing one that was not finished does the same.
///
/// @param writer the writer.
///
/// `GRIDSTONE_ERROR_BUSY`: another thread is using it; cancel that call first.
#[unsafe(no_mangle)]
pub extern "C" fn gridstone_writer_abort(writer: gridstone_writer) -> gridstone_status {
    guarded(|| {
        let object = get::<WriterObject>(writer)?;
        drop(object.writer.take(WriterObject::NAME)?);
        Ok(())
    })
}
