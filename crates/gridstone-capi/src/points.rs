//! Reads of unknown size, whose cells the library holds as a result: any cells, single points, chosen positions.

use crate::array::{ArrayObject, gridstone_array};
use crate::call::{Asked, gridstone_call};
use crate::cell::{columns, gridstone_column, split};
use crate::handle::get;
use crate::memory::{OptionStruct, Out, list, slice, texts};
use crate::read::{Reading, gridstone_read_options};
use crate::result::{ResultObject, gridstone_result};
use crate::status::{Failure, Outcome, gridstone_status, guarded};
use gridstone::engine::{AxisPositions, Chosen};
use gridstone::schema::Schema;
use std::ffi::c_char;

/// All positions of a dimension.
pub const GRIDSTONE_POSITIONS_ALL: u32 = 0;
/// `count` positions from `start` on, each `step` after the one before.
pub const GRIDSTONE_POSITIONS_STRIDED: u32 = 1;
/// The positions in `list`, each with every position of the other dimensions.
pub const GRIDSTONE_POSITIONS_LISTED: u32 = 2;
/// The positions in `list`, point by point with those of the other paired dimensions.
pub const GRIDSTONE_POSITIONS_PAIRED: u32 = 3;

/// What is chosen along one dimension. Positions are counted from the low end of its domain.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct gridstone_positions {
    /// `sizeof(gridstone_positions)`
    pub size: usize,
    /// `GRIDSTONE_POSITIONS_ALL`, `_STRIDED`, `_LISTED` or `_PAIRED`
    pub kind: u32,
    /// 0
    pub reserved: u32,
    /// the first position, of `_STRIDED`
    pub start: u64,
    /// how many positions, of `_STRIDED`
    pub count: u64,
    /// from one position to the next, of `_STRIDED`; below 0: downwards
    pub step: i64,
    /// positions in any order, each as often as it is wanted, of `_LISTED` and `_PAIRED`
    pub list: *const u64,
    /// numbers in `list`
    pub list_count: usize,
}

// SAFETY: it begins with its size; numbers and a pointer have a value for each pattern of bits.
unsafe impl OptionStruct for gridstone_positions {
    const NAME: &'static str = "gridstone_positions";

    fn reserved(&self) -> u32 {
        self.reserved
    }
}

/// The attributes of these names, or all for a null pointer.
///
/// # Safety
/// The contract of the header.
unsafe fn attributes(schema: &Schema, first: *const *const c_char, count: usize) -> Outcome<Vec<String>> {
    // SAFETY: passed on.
    let names = unsafe { texts(first, count, "attributes") }?;
    match first.is_null() {
        true => Ok(schema.attrs().iter().map(|attr| attr.name().to_owned()).collect()),
        false => Ok(names.into_iter().map(str::to_owned).collect()),
    }
}

/// Reads any number of cells at once, with their coordinates in front, of sparse and dense arrays. A read in portions takes less memory.
///
/// @param array the array.
/// @param options_given what is read, or NULL: all attributes of all cells, in row order; `batch_bytes` is not looked at.
/// @param call what goes with the call, or NULL.
/// @param result where the handle goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_read_all(
    array: gridstone_array,
    options_given: *const gridstone_read_options,
    call: *const gridstone_call,
    result: *mut gridstone_result,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        let schema = array.0.schema()?;
        // SAFETY: the contract of the header.
        let (out, asked, what) = unsafe {
            (Out::new(result, "result")?, Asked::new(call)?, Reading::new(&array.0, &schema, options_given)?)
        };
        let (region, condition) = (what.region.as_deref(), what.condition.as_ref());
        let read = |call: &_| array.0.read_region(region, Some(&what.attrs), condition, what.order, call);
        let (cells, counters) = asked.run(read)?;
        out.put(ResultObject::of_cells(&schema, &what.attrs, (cells, None), counters)?.into_handle()?);
        Ok(())
    })
}

/// Reads single cells by their coordinates, which may come in any order and repeat. A dense array gives a row for each point, without
/// coordinates: a cell that was not written is the fill. A sparse array gives the cells that exist, with theirs in front, in the order of
/// the points.
///
/// @param array the array.
/// @param points the coordinates of every dimension, a column for each.
/// @param point_count how many columns.
/// @param attributes_given the names of attributes, or NULL: all.
/// @param attribute_count how many.
/// @param call what goes with the call, or NULL.
/// @param result where the handle goes; free it with `gridstone_free`.
///
/// `GRIDSTONE_ERROR_BOUNDS`: a point lies outside of the domain; the message names its row.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_points(
    array: gridstone_array,
    points: *const gridstone_column,
    point_count: usize,
    attributes_given: *const *const c_char,
    attribute_count: usize,
    call: *const gridstone_call,
    result: *mut gridstone_result,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        let schema = array.0.schema()?;
        // SAFETY: the contract of the header.
        let (out, asked, given, attrs) = unsafe {
            (
                Out::new(result, "result")?,
                Asked::new(call)?,
                columns(&schema, points, point_count)?,
                attributes(&schema, attributes_given, attribute_count)?,
            )
        };
        let (cells, counters) = asked.run(|call| {
            let points = split(&schema, &given, call.cancel.as_ref())?;
            if let Some((name, _)) = points.attrs.first() {
                let message = format!("{name:?} is an attribute; points are given by coordinates of every dimension");
                return Err(gridstone::base::Error::input(message));
            }
            array.0.points(&points.dims, Some(&attrs), call)
        })?;
        out.put(ResultObject::of_cells(&schema, &attrs, (cells, None), counters)?.into_handle()?);
        Ok(())
    })
}

/// What is chosen along a dimension.
///
/// # Safety
/// The contract of the header.
unsafe fn chosen(given: &gridstone_positions) -> Outcome<Chosen> {
    // SAFETY: passed on.
    let list = unsafe { slice(given.list, given.list_count, "gridstone_positions.list") }?;
    match given.kind {
        GRIDSTONE_POSITIONS_ALL => Ok(Chosen::Combined(AxisPositions::All)),
        GRIDSTONE_POSITIONS_STRIDED => {
            let (start, count, step) = (given.start, given.count, given.step);
            Ok(Chosen::Combined(AxisPositions::Strided { start, count, step }))
        }
        GRIDSTONE_POSITIONS_LISTED => Ok(Chosen::Combined(AxisPositions::Listed(list.to_vec()))),
        GRIDSTONE_POSITIONS_PAIRED => Ok(Chosen::Paired(list.to_vec())),
        other => Err(Failure::input(format!(
            "gridstone_positions.kind is {other}; it is GRIDSTONE_POSITIONS_ALL, _STRIDED, _LISTED or _PAIRED"
        ))),
    }
}

/// The sides of the cells of a dense array that are chosen: the points, if some dimensions are paired, then each other dimension.
fn shape(schema: &Schema, chosen: &[Chosen]) -> Vec<u64> {
    let points = chosen.iter().find_map(|axis| match axis {
        Chosen::Paired(list) => Some(list.len() as u64),
        _ => None,
    });
    let side = |(axis, dim): (&Chosen, &gridstone::schema::Dimension)| match axis {
        Chosen::Combined(AxisPositions::All) => Some(u64::try_from(dim.range().count()).unwrap_or(u64::MAX)),
        Chosen::Combined(AxisPositions::Strided { count, .. }) => Some(*count),
        Chosen::Combined(AxisPositions::Listed(list)) => Some(list.len() as u64),
        Chosen::Paired(_) | Chosen::Masked => None,
    };
    points.into_iter().chain(chosen.iter().zip(schema.dims()).filter_map(side)).collect()
}

/// Reads the cells at chosen positions, one choice for each dimension. A dense array gives a row for each combination, in row order of
/// the shape that `gridstone_result_shape` gives: the points, if some dimensions are paired, then each other dimension. A sparse array
/// gives the cells that exist, with their coordinates, each once and in row order.
///
/// @param array the array.
/// @param axes a choice for each dimension.
/// @param axis_count how many.
/// @param attributes_given the names of attributes, or NULL: all.
/// @param attribute_count how many.
/// @param call what goes with the call, or NULL.
/// @param result where the handle goes; free it with `gridstone_free`.
///
/// `GRIDSTONE_ERROR_BOUNDS`: a dimension does not have a position.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_positions(
    array: gridstone_array,
    axes: *const gridstone_positions,
    axis_count: usize,
    attributes_given: *const *const c_char,
    attribute_count: usize,
    call: *const gridstone_call,
    result: *mut gridstone_result,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        let schema = array.0.schema()?;
        // SAFETY: the contract of the header.
        let (out, asked, given, attrs) = unsafe {
            (
                Out::new(result, "result")?,
                Asked::new(call)?,
                list(axes, axis_count)?,
                attributes(&schema, attributes_given, attribute_count)?,
            )
        };
        // SAFETY: the contract of the header.
        let axes = given.iter().map(|axis| unsafe { chosen(axis) }).collect::<Outcome<Vec<_>>>()?;
        let shape = (!schema.sparse()).then(|| shape(&schema, &axes));
        let (cells, counters) = asked.run(|call| array.0.read_positions(axes, None, Some(&attrs), call))?;
        out.put(ResultObject::of_cells(&schema, &attrs, (cells, shape), counters)?.into_handle()?);
        Ok(())
    })
}
