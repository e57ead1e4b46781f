//! Changes of the schema, blocks that are appended, and labels.

use crate::array::{ArrayObject, gridstone_array};
use crate::call::{Asked, gridstone_call};
use crate::cell::{columns, gridstone_column, split, typed_columns};
use crate::handle::{get, insert};
use crate::memory::{Out, optional_text, text};
use crate::status::{Failure, GRIDSTONE_ERROR_NOT_FOUND, Outcome, gridstone_status, guarded};
use crate::text::{gridstone_text, text_handle};
use crate::write::layout;
use gridstone::base::Error;
use gridstone::engine::{Appended, Array, Listed};
use gridstone::schema::{Evolution, Schema};
use std::ffi::c_char;

/// The place of the dimension of this name.
fn axis_of(schema: &Schema, name: &str) -> Outcome<usize> {
    schema.coordinates().position(|dim| dim.name() == name).ok_or_else(|| {
        let names: Vec<&str> = schema.coordinates().map(|dim| dim.name()).collect();
        Failure::new(
            GRIDSTONE_ERROR_NOT_FOUND,
            format!("there is no dimension {name:?}; there are {}", names.join(", ")),
        )
    })
}

/// Changes the schema of an array, and lists labels of its dimensions, in one commit. What was written before is read through the new
/// schema. The text is an object of JSON; members that are left out change nothing:
///
/// `{"domains": [["x", "0", "99"]], "add": [attribute, …], "drop": ["v"], "rename": [["old", "new"]], "fill": [["v", "0"]],
/// "filters": [["v", "zstd:3"]], "nullable": ["v"], "categories": [["kind", ["tug"]]], "labels": [["x", null]]}`
///
/// An attribute is described as `gridstone_schema_json` shows it.
///
/// @param array an array that is open for writing.
/// @param evolution the text, or NULL: only labels change.
/// @param labels columns called as the dimensions are, each with the type of its labels and one for each coordinate of the domain; or
/// NULL.
/// @param label_count how many.
/// @param call what goes with the call, but no key; or NULL.
/// @param version where the version goes, or NULL; the present one if nothing changes. The array shows it from now on.
///
/// `GRIDSTONE_ERROR_SCHEMA`: it cannot change so. `GRIDSTONE_ERROR_CONFLICT`: another commit has changed the schema; refresh and look.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_alter(
    array: gridstone_array,
    evolution: *const c_char,
    labels: *const gridstone_column,
    label_count: usize,
    call: *const gridstone_call,
    version: *mut u64,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let (out, asked, evolution, given) = unsafe {
            (
                Out::optional(version, "version")?,
                Asked::new(call)?,
                optional_text(evolution, "evolution")?,
                typed_columns(labels, label_count)?,
            )
        };
        asked.check_keyless()?;
        let evolution = evolution.map(Evolution::from_json).transpose()?.unwrap_or_default();
        let message = asked.message.clone();
        if given.is_empty() {
            out.put(array.0.alter(&evolution, message)?);
            return Ok(());
        }
        out.put(asked.run(|call| {
            let mut listed = Vec::with_capacity(given.len());
            for column in &given {
                let values = column.view(call.cancel.as_ref())?;
                listed.push(Listed { dimension: column.name.to_owned(), values });
            }
            array.0.alter_labelled(&evolution, &listed, message, call)
        })?);
        Ok(())
    })
}

/// Appends a block along a dimension of a dense array, whose domain grows by it, in one commit. It comes behind what others have appended
/// by then. In a transaction it is staged.
///
/// @param array an array that is open for writing.
/// @param dimension the dimension that becomes longer; along the others the block is as long as the domain.
/// @param length coordinates of the block along the dimension.
/// @param order how the values of the block lie: `GRIDSTONE_ORDER_ROW` or `_COLUMN`.
/// @param given the attributes, a value for each cell of the block.
/// @param count how many.
/// @param labels the labels of its coordinates along the dimension, with their type, if the dimension has listed ones; or NULL.
/// @param call what goes with the call, or NULL.
/// @param version where the version of the commit goes, or NULL; the array shows it from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_append(
    array: gridstone_array,
    dimension: *const c_char,
    length: u64,
    order: u32,
    given: *const gridstone_column,
    count: usize,
    labels: *const gridstone_column,
    call: *const gridstone_call,
    version: *mut u64,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        let schema = array.0.schema()?;
        // SAFETY: the contract of the header.
        let (out, asked, dimension, given, labels) = unsafe {
            (
                Out::optional(version, "version")?,
                Asked::new(call)?,
                text(dimension, "dimension")?,
                columns(&schema, given, count)?,
                typed_columns(labels, usize::from(!labels.is_null()))?,
            )
        };
        let (axis, layout) = (axis_of(&schema, dimension)?, layout(order)?);
        if let Some(stranger) = labels.iter().find(|column| column.name != dimension) {
            let message = format!("the labels are called {:?}; those of {dimension:?} are needed", stranger.name);
            return Err(Failure::input(message));
        }
        out.put(asked.run(|call| {
            let cells = split(&schema, &given, call.cancel.as_ref())?;
            if !cells.dims.is_empty() {
                return Err(Error::input("a block has no coordinates: give its attributes"));
            }
            let labels = labels.first().map(|column| column.view(call.cancel.as_ref())).transpose()?;
            let block = Appended { axis, count: length, data: cells.attrs, layout, labels };
            array.0.append(&block, asked.message.as_deref(), call)
        })?);
        Ok(())
    })
}

/// The array that the labels of a dimension lie in, open for reading. It has one dimension, a label for each coordinate, and one attribute.
/// Labels may be null in it.
///
/// @param array the array.
/// @param dimension the dimension.
/// @param labels where the handle goes; free it with `gridstone_free`.
///
/// `GRIDSTONE_ERROR_NOT_FOUND`: there is no such dimension, or it has no listed labels; those at steps stand in its schema.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_labels(
    array: gridstone_array,
    dimension: *const c_char,
    labels: *mut gridstone_array,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let (out, dimension) = unsafe { (Out::new(labels, "labels")?, text(dimension, "dimension")?) };
        let axis = axis_of(array.0.schema()?.as_ref(), dimension)?;
        let found: Option<Array> = array.0.labels(axis)?;
        let found = found.ok_or_else(|| {
            Failure::new(GRIDSTONE_ERROR_NOT_FOUND, format!("dimension {dimension:?} has no list of labels"))
        })?;
        out.put(insert(ArrayObject(found))?);
        Ok(())
    })
}

/// The id of an array that has the labels of a dimension, which other arrays may share: `{"labels": [["x", {"shared": id}]]}` in
/// `gridstone_array_alter`.
///
/// @param array the array.
/// @param dimension the dimension.
/// @param path the path of a dense array of one dimension and one attribute, from "/" on or from the array's group on.
/// @param id where the text goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_shared_labels(
    array: gridstone_array,
    dimension: *const c_char,
    path: *const c_char,
    id: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, dimension, path) =
            unsafe { (Out::new(id, "id")?, text(dimension, "dimension")?, text(path, "path")?) };
        let found = get::<ArrayObject>(array)?.0.shared_labels(dimension, path)?;
        out.put(text_handle(found.to_string())?);
        Ok(())
    })
}
