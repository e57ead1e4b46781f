//! Writes: a box of a dense array, or cells; at once, or staged for a commit of several.

use crate::array::{ArrayObject, gridstone_array};
use crate::call::{Asked, gridstone_call};
use crate::cell::{columns, gridstone_column, split};
use crate::handle::{Exclusive, Object, get, gridstone_handle, insert};
use crate::memory::{OptionStruct, Out, options, slice};
use crate::region::{gridstone_region, region_of};
use crate::schema::{GRIDSTONE_ORDER_COLUMN, GRIDSTONE_ORDER_ROW};
use crate::status::{Failure, Outcome, gridstone_status, guarded};
use gridstone::engine::Staged;
use gridstone::engine::{Array, CellData, Dedup};
use gridstone::schema::Order;
use std::collections::HashSet;
use std::sync::Arc;

/// Written cells that no commit refers to yet: nobody sees them.
pub type gridstone_staged = gridstone_handle;

/// Several cells at one place in one write are an error.
pub const GRIDSTONE_DEDUP_ERROR: u32 = 0;
/// The first of several cells at one place in one write is kept.
pub const GRIDSTONE_DEDUP_FIRST: u32 = 1;
/// The last of several cells at one place in one write is kept.
pub const GRIDSTONE_DEDUP_LAST: u32 = 2;

/// How cells are written; 0 everywhere: they come in any order, and two at one place are an error.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct gridstone_cells_options {
    /// `sizeof(gridstone_cells_options)`
    pub size: usize,
    /// `GRIDSTONE_DEDUP_ERROR`, `_FIRST` or `_LAST`
    pub dedup: u32,
    /// not 0: the cells come in global order, which is checked
    pub sorted: u32,
}

// SAFETY: it begins with its size; zeros are the usual values.
unsafe impl OptionStruct for gridstone_cells_options {
    const NAME: &'static str = "gridstone_cells_options";
}

/// What was staged, until a commit takes it.
pub(crate) struct StagedObject(pub(crate) Exclusive<Staged>);

impl Object for StagedObject {
    const NAME: &'static str = "a staged write";
}

/// The handle of what was staged.
pub(crate) fn staged_handle(staged: Staged) -> Outcome<gridstone_staged> {
    insert(StagedObject(Exclusive::new(staged)))
}

/// The order of the cells of a box.
pub(crate) fn layout(order: u32) -> Outcome<Order> {
    match order {
        GRIDSTONE_ORDER_ROW => Ok(Order::Row),
        GRIDSTONE_ORDER_COLUMN => Ok(Order::Col),
        other => Err(Failure::input(format!("order is {other}; a box is in GRIDSTONE_ORDER_ROW or _COLUMN"))),
    }
}

/// What becomes of several cells at one place.
pub(crate) fn dedup_of(dedup: u32) -> Outcome<Dedup> {
    let name = match dedup {
        GRIDSTONE_DEDUP_ERROR => "error",
        GRIDSTONE_DEDUP_FIRST => "first",
        GRIDSTONE_DEDUP_LAST => "last",
        other => return Err(Failure::input(format!("dedup is {other}; it is GRIDSTONE_DEDUP_ERROR, _FIRST or _LAST"))),
    };
    Ok(Dedup::parse(name)?)
}

/// Stages a box.
///
/// # Safety
/// The contract of the header.
unsafe fn stage_box(
    array: &Array,
    (region, order): (gridstone_region, u32),
    (given, count): (*const gridstone_column, usize),
    asked: &Asked,
) -> Outcome<Staged> {
    let schema = array.schema()?;
    let (region, layout) = (region_of(array, region)?, layout(order)?);
    // SAFETY: passed on.
    let given = unsafe { columns(&schema, given, count) }?;
    asked.run(|call| {
        let cells = split(&schema, &given, call.cancel.as_ref())?;
        if !cells.dims.is_empty() {
            return Err(gridstone::base::Error::input("a box has no coordinates: give its attributes, or write cells"));
        }
        array.stage_box(region.as_deref(), &cells.attrs, layout, call)
    })
}

/// Stages cells.
///
/// # Safety
/// The contract of the header.
unsafe fn stage_cells(
    array: &Array,
    (given, count): (*const gridstone_column, usize),
    how: *const gridstone_cells_options,
    asked: &Asked,
) -> Outcome<Staged> {
    let schema = array.schema()?;
    // SAFETY: passed on.
    let (given, how) = unsafe { (columns(&schema, given, count)?, options(how)?) };
    let (dedup, sorted) = how.map_or((0, false), |how| (how.dedup, how.sorted != 0));
    let dedup = dedup_of(dedup)?;
    asked.run(|call| {
        let cells = split(&schema, &given, call.cancel.as_ref())?;
        array.stage_cells(CellData { dims: cells.dims, attrs: cells.attrs, sorted, dedup }, call)
    })
}

/// Writes a box of a dense array, in one commit. Cells at coordinates are for `gridstone_array_write_cells`.
///
/// @param array an array that is open for writing.
/// @param region the box, or 0: the whole domain.
/// @param order how the values of the box lie: `GRIDSTONE_ORDER_ROW` or `_COLUMN`.
/// @param given the attributes, a value for each cell of the box; those that are left out keep what they are.
/// @param count how many.
/// @param call what goes with the call, or NULL.
/// @param version where the version of the commit goes, or NULL; the array shows it from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_write(
    array: gridstone_array,
    region: gridstone_region,
    order: u32,
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
        let staged = unsafe { stage_box(&array.0, (region, order), (given, count), &asked) }?;
        out.put(asked.commit(&array.0, staged)?);
        Ok(())
    })
}

/// Writes cells at coordinates, in one commit; into sparse and dense arrays.
///
/// @param array an array that is open for writing.
/// @param given the coordinates of every dimension, and attributes, each with a value for each cell.
/// @param count how many.
/// @param how in which order they come, and what becomes of several at one place, or NULL.
/// @param call what goes with the call, or NULL.
/// @param version where the version of the commit goes, or NULL; the array shows it from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_write_cells(
    array: gridstone_array,
    given: *const gridstone_column,
    count: usize,
    how: *const gridstone_cells_options,
    call: *const gridstone_call,
    version: *mut u64,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let (out, asked) = unsafe { (Out::optional(version, "version")?, Asked::new(call)?) };
        // SAFETY: the contract of the header.
        let staged = unsafe { stage_cells(&array.0, (given, count), how, &asked) }?;
        out.put(asked.commit(&array.0, staged)?);
        Ok(())
    })
}

/// As `gridstone_array_write`, without the commit: many threads or processes stage, and one commits all of it. Free the handle; what
/// was not committed by then is deleted.
///
/// @param array an array that is open for writing.
/// @param region one box, or 0: the whole domain.
/// @param order the order of the cells in the columns: `GRIDSTONE_ORDER_ROW` or `_COLUMN`.
/// @param given a column for each attribute.
/// @param count how many columns.
/// @param call what goes with the call, or NULL.
/// @param staged where the handle goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_stage(
    array: gridstone_array,
    region: gridstone_region,
    order: u32,
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
        out.put(staged_handle(unsafe { stage_box(&array.0, (region, order), (given, count), &asked) }?)?);
        Ok(())
    })
}

/// As `gridstone_array_write_cells`, without the commit.
///
/// @param array an array that is open for writing.
/// @param given a column for each dimension and attribute; all have as many values.
/// @param count how many columns.
/// @param how what is asked of the cells, or NULL.
/// @param call what goes with the call, or NULL.
/// @param staged where the handle goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_stage_cells(
    array: gridstone_array,
    given: *const gridstone_column,
    count: usize,
    how: *const gridstone_cells_options,
    call: *const gridstone_call,
    staged: *mut gridstone_staged,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let (out, asked) = unsafe { (Out::new(staged, "staged")?, Asked::new(call)?) };
        // SAFETY: the contract of the header.
        out.put(staged_handle(unsafe { stage_cells(&array.0, (given, count), how, &asked) }?)?);
        Ok(())
    })
}

/// What handles of staged writes hold, taken for a commit to `array`; or none of it, if one cannot be.
///
/// # Safety
/// The contract of the header.
pub(crate) unsafe fn take_all(array: &Array, first: *const gridstone_staged, count: usize) -> Outcome<Vec<Staged>> {
    // SAFETY: passed on.
    let handles = unsafe { slice(first, count, "staged") }?;
    if handles.iter().collect::<HashSet<_>>().len() != handles.len() {
        return Err(Failure::input("a staged write is given twice to one commit"));
    }
    let objects = handles.iter().map(|handle| get::<StagedObject>(*handle)).collect::<Outcome<Vec<Arc<_>>>>()?;
    for object in &objects {
        object.0.with(StagedObject::NAME, |staged| Ok(array.check_commit(staged)?))?;
    }
    let (mut taken, mut missing) = (Vec::with_capacity(count), None);
    for object in &objects {
        match object.0.take(StagedObject::NAME) {
            Ok(staged) => taken.push((object, staged)),
            Err(failure) => missing = Some(failure),
        }
    }
    // Another thread has taken one in between, or is using it: all that was taken here is put back.
    if let Some(failure) = missing {
        for (object, staged) in taken {
            object.0.put_back(staged);
        }
        return Err(failure);
    }
    Ok(taken.into_iter().map(|(_, staged)| staged).collect())
}

/// Commits staged writes in one version: all of them, or none. Their handles are used up, and are still to be freed.
///
/// Handles of writes for another array, of which one is used up or in use by another thread, and those of a commit that was cancelled
/// before it began stay as they are. After any other error they are used up, and what they wrote is deleted, unless
/// `GRIDSTONE_ERROR_COMMIT_UNKNOWN` says that the commit may have happened.
///
/// @param array the array that they were staged for.
/// @param staged the handles.
/// @param count how many; 0 commits nothing.
/// @param call its `message`, and its `cancel` until the commit begins, or NULL. A `commit_key` and `GRIDSTONE_CALL_GROW` belong to the
/// calls that stage, and are refused here.
/// @param version where the version goes, or NULL; the array shows it from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_commit(
    array: gridstone_array,
    staged: *const gridstone_staged,
    count: usize,
    call: *const gridstone_call,
    version: *mut u64,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let (out, asked) = unsafe { (Out::optional(version, "version")?, Asked::new(call)?) };
        asked.check_commit()?;
        // SAFETY: the contract of the header.
        let taken = unsafe { take_all(&array.0, staged, count) }?;
        out.put(array.0.commit(taken, asked.message)?);
        Ok(())
    })
}
