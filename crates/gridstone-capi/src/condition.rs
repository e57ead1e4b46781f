//! Conditions by themselves: what one means for an array.

use crate::array::{ArrayObject, gridstone_array};
use crate::handle::get;
use crate::memory::{Out, text};
use crate::read::condition_of;
use crate::status::{gridstone_status, guarded};
use crate::text::{gridstone_text, text_handle};
use gridstone::engine::check_condition;
use std::ffi::c_char;

/// What a condition means for an array, as JSON: the `columns` that decide it, the `box` that it confines cells to, and whether it is
/// the same for every cell (`constant`). No cell is read. Free the text.
///
/// @param array the array.
/// @param condition the condition, as "sog > 3 and kind = 'tug'".
/// @param meaning where the handle of the text goes.
///
/// `GRIDSTONE_ERROR_INPUT`: it is no condition, or does not fit the array; the message says where.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_check_condition(
    array: gridstone_array,
    condition: *const c_char,
    meaning: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, condition) = unsafe { (Out::new(meaning, "meaning")?, text(condition, "condition")?) };
        let schema = get::<ArrayObject>(array)?.0.schema()?;
        out.put(text_handle(check_condition(&condition_of(condition)?, &schema)?.to_json())?);
        Ok(())
    })
}
