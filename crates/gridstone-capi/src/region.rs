//! Regions: the boxes that a read, a write or a deletion is about.

use crate::handle::{Brief, Object, get, get_optional, gridstone_handle, insert};
use crate::memory::{Out, optional_texts, slice};
use crate::status::{Failure, Outcome, gridstone_status, guarded};
use gridstone::engine::{Array, End, Span};
use std::ffi::c_char;

/// Boxes of cells. Where a function takes one, 0 means the whole domain.
pub type gridstone_region = gridstone_handle;

/// Boxes as they were added; each array gives them its own meaning.
#[derive(Default)]
pub(crate) struct Region(Brief<Vec<Vec<Span>>>);

impl Object for Region {
    const NAME: &'static str = "a region";
}

impl Region {
    fn add(&self, spans: Vec<Span>) {
        self.0.with(|boxes| boxes.push(spans));
    }

    pub(crate) fn boxes(&self) -> Vec<Vec<Span>> {
        self.0.with(|boxes| boxes.clone())
    }
}

/// The region of an array that a handle means; `None` for 0, the whole domain.
pub(crate) fn region_of(array: &Array, handle: gridstone_region) -> Outcome<Option<gridstone::schema::Region>> {
    let Some(region) = get_optional::<Region>(handle)? else { return Ok(None) };
    Ok(Some(array.region(&region.boxes())?))
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

/// As `gridstone_region_add`, by texts, for dimensions of any type: "12", "-0.5", "2026-03-01", "BRCA1". NULL is the end of the domain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_region_add_texts(
    region: gridstone_region,
    ends: *const *const c_char,
    count: usize,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let texts = unsafe { optional_texts(ends, count, "ends") }?;
        get::<Region>(region)?.add(spans(&texts, |end| end.map(|text| End::Text(text.to_owned())))?);
        Ok(())
    })
}
