//! Deleting cells: those of boxes, those that a condition selects, those at coordinates.

use crate::array::{ArrayObject, gridstone_array};
use crate::call::{Asked, gridstone_call};
use crate::cell::{columns, gridstone_column, split};
use crate::handle::{get, get_optional};
use crate::memory::{Out, optional_text};
use crate::read::condition_of;
use crate::region::{Region, gridstone_region, region_of};
use crate::status::{Failure, Outcome, gridstone_status, guarded};
use crate::write::{gridstone_staged, staged_handle};
use gridstone::base::Error;
use gridstone::engine::{Array, End, Span, Staged};
use gridstone::schema::{Datatype, Schema};
use std::ffi::c_char;

/// The ends of all that a type of dimensions can say; `None` for texts, which have none.
fn ends_of(datatype: Datatype) -> Option<(End, End)> {
    let ints = |low: i128, high: i128| Some((End::Int(low), End::Int(high)));
    match datatype {
        Datatype::Int8 => ints(i8::MIN.into(), i8::MAX.into()),
        Datatype::Int16 => ints(i16::MIN.into(), i16::MAX.into()),
        Datatype::Int32 => ints(i32::MIN.into(), i32::MAX.into()),
        Datatype::Int64 => ints(i64::MIN.into(), i64::MAX.into()),
        Datatype::UInt8 => ints(0, u8::MAX.into()),
        Datatype::UInt16 => ints(0, u16::MAX.into()),
        Datatype::UInt32 => ints(0, u32::MAX.into()),
        Datatype::UInt64 => ints(0, u64::MAX.into()),
        // The least number is NaT.
        Datatype::Datetime(_) | Datatype::Timedelta(_) => ints((i64::MIN + 1).into(), i64::MAX.into()),
        Datatype::Float32 => Some((End::Float(f32::MIN.into()), End::Float(f32::MAX.into()))),
        Datatype::Float64 => Some((End::Float(f64::MIN), End::Float(f64::MAX))),
        _ => None,
    }
}

/// The boxes of a deletion, whose open ends reach as far as the types: it holds for cells, too, that others make room for meanwhile.
fn reaching(schema: &Schema, mut boxes: Vec<Vec<Span>>) -> Vec<Vec<Span>> {
    for spans in &mut boxes {
        for (dim, span) in schema.coordinates().zip(spans) {
            let Some((low, high)) = ends_of(dim.datatype()) else { continue };
            span.lo.get_or_insert(low);
            span.hi.get_or_insert(high);
        }
    }
    boxes
}

/// Stages the deletion of all cells of a region.
fn stage_region(array: &Array, region: gridstone_region, asked: &Asked) -> Outcome<Staged> {
    let schema = array.schema()?;
    let boxes = match get_optional::<Region>(region)? {
        None => vec![vec![Span::default(); schema.coordinates().count()]],
        Some(given) => match given.uncut_boxes() {
            Some(boxes) => boxes,
            None => {
                let cut = given.in_schema(&schema)?;
                return asked.run(|call| array.stage_deletion(&cut, call));
            }
        },
    };
    let region = array.region(&reaching(&schema, boxes))?;
    asked.run(|call| array.stage_deletion(&region, call))
}

/// Stages the deletion of cells at coordinates.
///
/// # Safety
/// The contract of the header.
unsafe fn stage_cells(array: &Array, first: *const gridstone_column, count: usize, asked: &Asked) -> Outcome<Staged> {
    let schema = array.schema()?;
    // SAFETY: passed on.
    let given = unsafe { columns(&schema, first, count) }?;
    if let Some(stranger) = given.iter().find(|column| !schema.coordinates().any(|dim| dim.name() == column.name)) {
        let message = format!("{:?} is an attribute; a deletion takes the coordinates of cells", stranger.name);
        return Err(Failure::input(message));
    }
    asked.run(|call| {
        let cells = split(&schema, &given, call.cancel.as_ref())?;
        if cells.dims.is_empty() {
            return Err(Error::input("no coordinates were given; give a column for each dimension"));
        }
        array.stage_delete(&cells.dims, call)
    })
}

/// Deletes cells in one commit. A deleted cell of a dense array reads as never written. How many go tells `gridstone_array_count` with
/// the same region and condition before.
///
/// @param array an array that is open for writing.
/// @param region the cells, or 0: all of them. Ends that were left open reach as far as the types do, also beyond the domain that the
/// array shows, unless there is a condition.
/// @param condition which of them, as "sog > 100": those that the array shows, so that what others commit meanwhile stays; or NULL:
/// every one that was written before the commit, by others too.
/// @param call what goes with the call, or NULL.
/// @param version where the version of the commit goes, or NULL; the present one if a condition selects nothing. The array shows it from
/// now on.
///
/// `GRIDSTONE_ERROR_CONFLICT`: others merge the same fragments again and again, or the key was given to other content.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_delete(
    array: gridstone_array,
    region: gridstone_region,
    condition: *const c_char,
    call: *const gridstone_call,
    version: *mut u64,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let (out, asked, condition) =
            unsafe { (Out::optional(version, "version")?, Asked::new(call)?, optional_text(condition, "condition")?) };
        let Some(condition) = condition else {
            let staged = stage_region(&array.0, region, &asked)?;
            out.put(asked.commit(&array.0, staged)?);
            return Ok(());
        };
        let (region, condition) = (region_of(&array.0, region)?, condition_of(condition)?);
        let message = asked.message.clone();
        out.put(asked.run(|call| array.0.delete_region_where(region.as_deref(), &condition, message, call))?);
        Ok(())
    })
}

/// As `gridstone_array_delete`, without the commit: staged for one commit with other changes.
///
/// @param array an array that is open for writing.
/// @param region the cells, or 0: all of them.
/// @param condition which of them, or NULL: every one. With a condition only in a transaction; elsewhere there is
/// `gridstone_receipt_where`.
/// @param call what goes with the call, or NULL.
/// @param staged where the handle goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_stage_delete(
    array: gridstone_array,
    region: gridstone_region,
    condition: *const c_char,
    call: *const gridstone_call,
    staged: *mut gridstone_staged,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let (out, asked, condition) =
            unsafe { (Out::new(staged, "staged")?, Asked::new(call)?, optional_text(condition, "condition")?) };
        let made = match condition {
            None => stage_region(&array.0, region, &asked)?,
            Some(condition) => {
                let (region, condition) = (region_of(&array.0, region)?, condition_of(condition)?);
                asked.run(|call| array.0.stage_deletion_where(region.as_deref(), &condition, call))?
            }
        };
        out.put(staged_handle(made)?);
        Ok(())
    })
}

/// Deletes the cells at coordinates in one commit; where no cell lies, nothing is deleted.
///
/// @param array an array that is open for writing.
/// @param given the coordinates of every dimension, a value for each cell.
/// @param count how many columns.
/// @param call what goes with the call, or NULL.
/// @param version where the version of the commit goes, or NULL; the array shows it from now on.
///
/// `GRIDSTONE_ERROR_BOUNDS`: a coordinate lies outside of the domain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_delete_cells(
    array: gridstone_array,
    given: *const gridstone_column,
    count: usize,
    call: *const gridstone_call,
    version: *mut u64,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let (out, asked) = unsafe { (Out::optional(version, "version")?, Asked::new(call)?) };
        // SAFETY: the contract of the header.
        let staged = unsafe { stage_cells(&array.0, given, count, &asked) }?;
        out.put(asked.commit(&array.0, staged)?);
        Ok(())
    })
}

/// As `gridstone_array_delete_cells`, without the commit.
///
/// @param array an array that is open for writing.
/// @param given a column for each dimension; all have as many values.
/// @param count how many columns.
/// @param call what goes with the call, or NULL.
/// @param staged where the handle goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_stage_delete_cells(
    array: gridstone_array,
    given: *const gridstone_column,
    count: usize,
    call: *const gridstone_call,
    staged: *mut gridstone_staged,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let (out, asked) = unsafe { (Out::new(staged, "staged")?, Asked::new(call)?) };
        // SAFETY: the contract of the header.
        out.put(staged_handle(unsafe { stage_cells(&array.0, given, count, &asked) }?)?);
        Ok(())
    })
}
