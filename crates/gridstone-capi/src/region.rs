//! Regions: the boxes that a read, a write or a deletion is about.

use crate::array::{ArrayObject, gridstone_array};
use crate::handle::{Brief, Object, get, get_optional, gridstone_handle, insert};
use crate::memory::{Out, optional_texts, slice};
use crate::status::{Failure, Outcome, gridstone_status, guarded};
use gridstone::engine::{self, Array, End, Span};
use gridstone::schema::Schema;
use std::ffi::c_char;
use std::sync::Arc;

/// Boxes of cells. Where a function takes one, 0 means the whole domain.
pub type gridstone_region = gridstone_handle;

/// Boxes as they were added; each array gives them its own meaning.
#[derive(Default)]
pub(crate) struct Region(Brief<Parts>);

#[derive(Default)]
struct Parts {
    boxes: Vec<Vec<Span>>,
    /// Whether they are cut to the domain.
    is_cut: bool,
    /// What they mean in the array that they were last used with.
    resolution: Option<Resolution>,
}

/// What boxes mean in arrays of one schema.
struct Resolution {
    schema: Arc<Schema>,
    region: Arc<gridstone::schema::Region>,
}

impl Object for Region {
    const NAME: &'static str = "a region";
}

impl Region {
    fn add(&self, spans: Vec<Span>) {
        self.0.with(|parts| {
            parts.boxes.push(spans);
            parts.resolution = None;
        });
    }

    /// The boxes as they were added, of a region that is not cut.
    pub(crate) fn uncut_boxes(&self) -> Option<Vec<Vec<Span>>> {
        self.0.with(|parts| (!parts.is_cut && !parts.boxes.is_empty()).then(|| parts.boxes.clone()))
    }

    fn cut(&self) {
        self.0.with(|parts| {
            parts.is_cut = true;
            parts.resolution = None;
        });
    }

    /// The region in arrays of a schema; it is kept for the next call with the same one.
    pub(crate) fn in_schema(&self, schema: &Arc<Schema>) -> Outcome<Arc<gridstone::schema::Region>> {
        let known = self.0.with(|parts| match &parts.resolution {
            Some(known) if Arc::ptr_eq(&known.schema, schema) => Ok(Arc::clone(&known.region)),
            _ => Err((parts.boxes.clone(), parts.is_cut)),
        });
        let (boxes, is_cut) = match known {
            Ok(region) => return Ok(region),
            Err(parts) => parts,
        };
        if boxes.is_empty() {
            return Err(Failure::input("the region has no box: add one, or give 0 for the whole domain"));
        }
        let resolve = if is_cut { engine::region_within } else { engine::region_of };
        let region = Arc::new(resolve(schema, &boxes)?);
        let resolution = Resolution { schema: Arc::clone(schema), region: Arc::clone(&region) };
        self.0.with(|parts| {
            // Another thread may have changed it meanwhile.
            if parts.boxes.len() == boxes.len() && parts.is_cut == is_cut {
                parts.resolution = Some(resolution);
            }
        });
        Ok(region)
    }
}

/// The region of an array that a handle means; `None` for 0, the whole domain.
pub(crate) fn region_of(array: &Array, handle: gridstone_region) -> Outcome<Option<Arc<gridstone::schema::Region>>> {
    if handle == 0 { Ok(None) } else { region_in(&array.schema()?, handle) }
}

/// As [`region_of`], of arrays of a schema.
pub(crate) fn region_in(
    schema: &Arc<Schema>,
    handle: gridstone_region,
) -> Outcome<Option<Arc<gridstone::schema::Region>>> {
    let Some(region) = get_optional::<Region>(handle)? else { return Ok(None) };
    region.in_schema(schema).map(Some)
}

/// Spans of pairs of ends.
fn spans<T: Copy>(ends: &[T], end: impl Fn(T) -> Option<End>) -> Outcome<Vec<Span>> {
    if ends.is_empty() || !ends.len().is_multiple_of(2) {
        return Err(Failure::input(format!(
            "a box has {} ends; give the low and the high end of each dimension",
            ends.len()
        )));
    }
    let span = |pair: &[T]| match pair {
        [lo, hi] => Span { lo: end(*lo), hi: end(*hi), below: false },
        _ => Span::default(),
    };
    Ok(ends.chunks_exact(2).map(span).collect())
}

/// Makes a region without a box; add at least one before it is used. Free it with `gridstone_free`.
///
/// @param region where the handle goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_region_create(region: *mut gridstone_region) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(region, "region") }?;
        out.put(insert(Region::default())?);
        Ok(())
    })
}

/// Adds a box by integers: positions, or the ticks of times.
///
/// @param region the region.
/// @param ends low and high end of each dimension in turn, both included.
/// @param count twice the number of dimensions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_region_add(
    region: gridstone_region,
    ends: *const i64,
    count: usize,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let ends = unsafe { slice(ends, count, "ends") }?;
        get::<Region>(region)?.add(spans(ends, |end| Some(End::Int(end.into())))?);
        Ok(())
    })
}

/// As `gridstone_region_add`, by floats.
///
/// @param region the region.
/// @param ends low and high end of each dimension in turn, both included.
/// @param count twice the number of dimensions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_region_add_floats(
    region: gridstone_region,
    ends: *const f64,
    count: usize,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let ends = unsafe { slice(ends, count, "ends") }?;
        get::<Region>(region)?.add(spans(ends, |end| Some(End::Float(end)))?);
        Ok(())
    })
}

/// As `gridstone_region_add`, by texts, for dimensions of any type: "12", "-0.5", "2026-03-01T06", "BRCA1". NULL is the end of the domain.
///
/// A written date or time is a period, as "2026-03" is a month: a low end is its first instant, a high end its last. Ticks are written
/// "20454" or with their unit, "20454 D"; four digits alone could be a year or ticks, and are an error of the call that uses the region.
///
/// @param region the region.
/// @param ends low and high end of each dimension in turn, both included.
/// @param count twice the number of dimensions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_region_add_texts(
    region: gridstone_region,
    ends: *const *const c_char,
    count: usize,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let texts = unsafe { optional_texts(ends, count, "ends") }?;
        get::<Region>(region)?.add(spans(&texts, |end| end.map(|text| End::Notation(text.to_owned())))?);
        Ok(())
    })
}

/// Cuts a region, from now on, to the domain of each array that it is used with. Without it a box that reaches beyond the domain is
/// `GRIDSTONE_ERROR_BOUNDS`, but that a deletion without a condition reaches as far as its boxes.
///
/// Where nothing is left, reads in portions, questions and deletions have no cells. A whole box that is read or written is
/// `GRIDSTONE_ERROR_BOUNDS`: ask `gridstone_region_cells` before.
///
/// @param region the region.
#[unsafe(no_mangle)]
pub extern "C" fn gridstone_region_cut(region: gridstone_region) -> gridstone_status {
    guarded(|| {
        get::<Region>(region)?.cut();
        Ok(())
    })
}

/// The cells of a region in an array, which tells how large buffers are for `gridstone_array_read`.
///
/// @param array the array.
/// @param region the region, or 0: the whole domain.
/// @param cells where the number goes: positions, written or not. Several boxes give their sum, equal ones counted once, which is at
/// least what they have together. More than 64 bits hold are `UINT64_MAX`.
///
/// `GRIDSTONE_ERROR_BOUNDS`: a box reaches beyond the domain, and the region is not cut.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_region_cells(
    array: gridstone_array,
    region: gridstone_region,
    cells: *mut u64,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(cells, "cells") }?;
        let schema = get::<ArrayObject>(array)?.0.schema()?;
        let count = match region_in(&schema, region)? {
            None => schema.domain().cells(),
            Some(region) => {
                region.boxes().iter().try_for_each(|part| schema.check_inside(part))?;
                region.boxes().iter().fold(0_u128, |sum, part| sum.saturating_add(part.cells()))
            }
        };
        out.put(u64::try_from(count).unwrap_or(u64::MAX));
        Ok(())
    })
}
