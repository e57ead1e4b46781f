//! Arrays at one version: what they are, and moving on to another version.

use crate::handle::{Object, get, gridstone_handle, insert};
use crate::memory::{Out, options};
use crate::status::{gridstone_status, guarded};
use crate::store::{Wanted, gridstone_open_options, wanted};
use crate::text::{gridstone_text, text_handle};
use gridstone::engine::Array;
use gridstone::schema::{Coordinate, Datatype, TimeStep};
use serde_json::json;

/// An array at one version of its store. Many threads may use one.
pub type gridstone_array = gridstone_handle;

pub(crate) struct ArrayObject(pub(crate) Array);

impl Object for ArrayObject {
    const NAME: &'static str = "an array";
}

/// A number of an array.
///
/// # Safety
/// The contract of the header.
unsafe fn number<T>(
    array: gridstone_array,
    out: *mut T,
    name: &str,
    value: impl FnOnce(&Array) -> gridstone::base::Result<T>,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: passed on.
        let out = unsafe { Out::new(out, name) }?;
        out.put(value(&get::<ArrayObject>(array)?.0)?);
        Ok(())
    })
}

/// A text of an array.
///
/// # Safety
/// The contract of the header.
pub(crate) unsafe fn told(
    array: gridstone_array,
    out: *mut gridstone_text,
    value: impl FnOnce(&Array) -> gridstone::base::Result<String>,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: passed on.
        let out = unsafe { Out::new(out, "text") }?;
        out.put(text_handle(value(&get::<ArrayObject>(array)?.0)?)?);
        Ok(())
    })
}

/// The version of its store that an array shows.
///
/// @param array the array.
/// @param version where the version goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_version(array: gridstone_array, version: *mut u64) -> gridstone_status {
    // SAFETY: the contract of the header.
    unsafe { number(array, version, "version", |array| Ok(array.version())) }
}

/// When the version of an array was committed, in microseconds since 1970 in UTC.
///
/// @param array the array.
/// @param time_us where the time goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_time_us(array: gridstone_array, time_us: *mut i64) -> gridstone_status {
    // SAFETY: the contract of the header.
    unsafe { number(array, time_us, "time_us", |array| Ok(array.time_us())) }
}

/// The number of dimensions.
///
/// @param array the array.
/// @param ndim where the number goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_ndim(array: gridstone_array, ndim: *mut u64) -> gridstone_status {
    // SAFETY: the contract of the header.
    unsafe { number(array, ndim, "ndim", |array| Ok(array.schema()?.coordinates().count() as u64)) }
}

/// Whether only the cells that were written exist: 1, or 0.
///
/// @param array the array.
/// @param sparse where 1 or 0 goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_sparse(array: gridstone_array, sparse: *mut i32) -> gridstone_status {
    // SAFETY: the contract of the header.
    unsafe { number(array, sparse, "sparse", |array| Ok(i32::from(array.schema()?.sparse()))) }
}

/// The URI of the store of an array. Free the text.
///
/// @param array the array.
/// @param uri where the handle of the text goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_uri(array: gridstone_array, uri: *mut gridstone_text) -> gridstone_status {
    // SAFETY: the contract of the header.
    unsafe { told(array, uri, |array| Ok(array.uri())) }
}

/// The path of an array in its store. Free the text.
///
/// @param array the array.
/// @param path where the handle of the text goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_path(array: gridstone_array, path: *mut gridstone_text) -> gridstone_status {
    // SAFETY: the contract of the header.
    unsafe { told(array, path, Array::path) }
}

/// The smallest box that holds all cells that were written, as JSON: `[[low, high], …]` with texts, or `null` if there are none. They are
/// what `gridstone_region_add_texts` takes; of times ticks with their unit, as "20454 D". Free the text.
///
/// @param array the array.
/// @param domain where the handle of the text goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_nonempty_domain(
    array: gridstone_array,
    domain: *mut gridstone_text,
) -> gridstone_status {
    // SAFETY: the contract of the header.
    unsafe { told(array, domain, |array| Ok(json!(with_units(array, array.nonempty_domain()?)?).to_string())) }
}

/// Ends of a box, of times with the unit.
fn with_units(
    array: &Array,
    ends: Option<Vec<(String, String)>>,
) -> gridstone::base::Result<Option<Vec<(String, String)>>> {
    let Some(ends) = ends else { return Ok(None) };
    let schema = array.schema()?;
    let with_unit = |step: TimeStep, ticks: String| match ticks.parse::<i128>() {
        Ok(number) => format!("{} {}", number * i128::from(step.count()), step.unit().step()),
        Err(_) => ticks,
    };
    let named = |(dim, (low, high)): (Coordinate<'_>, (String, String))| match dim.datatype() {
        Datatype::Datetime(step) | Datatype::Timedelta(step) => (with_unit(step, low), with_unit(step, high)),
        _ => (low, high),
    };
    Ok(Some(schema.coordinates().zip(ends).map(named).collect()))
}

/// Moves an array on to the newest version of its store, and puts its number.
///
/// @param array the array.
/// @param version where the version goes that it shows then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_refresh(array: gridstone_array, version: *mut u64) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::optional(version, "version") }?;
        out.put(get::<ArrayObject>(array)?.0.refresh()?);
        Ok(())
    })
}

/// The same array at another version, for reading.
///
/// @param array the array.
/// @param options_given the version, tag or time; `path` and `mode` are not looked at; NULL: the newest version.
/// @param other where the handle goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_at(
    array: gridstone_array,
    options_given: *const gridstone_open_options,
    other: *mut gridstone_array,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, given) = unsafe { (Out::new(other, "other")?, options(options_given)?) };
        // SAFETY: the contract of the header.
        let wanted = given.map(|given| unsafe { wanted(&given) }).transpose()?;
        let array = get::<ArrayObject>(array)?;
        let found = match wanted.unwrap_or(Wanted::At(gridstone::engine::At::Latest)) {
            Wanted::At(at) => array.0.at(at)?,
            Wanted::Tag(tag) => array.0.at_tag(&tag)?,
        };
        out.put(insert(ArrayObject(found))?);
        Ok(())
    })
}
