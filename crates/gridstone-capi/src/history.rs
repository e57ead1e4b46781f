//! What a store has been through: versions, fragments, tags, and the room that it takes.

use crate::array::{ArrayObject, gridstone_array, told};
use crate::call::{Asked, gridstone_call};
use crate::context::gridstone_context;
use crate::group::GroupObject;
use crate::handle::{forget, get, get_either, gridstone_handle};
use crate::memory::{Out, text};
use crate::status::{gridstone_status, guarded};
use crate::text::{gridstone_text, json_list, text_handle};
use crate::upkeep::{gridstone_vacuum_options, vacuum_options};
use gridstone::engine::{self, Context, FragmentListing, VersionListing};
use serde_json::{Map, Value, json};
use std::ffi::c_char;

/// The versions up to the one that a handle shows, as a list of JSON, oldest first. Those of an array are the ones that changed it; those
/// of a group are all of its store. Each has its number, its time in microseconds since 1970 in UTC, message, id, tags, and what it did.
///
/// @param node an array or a group.
/// @param call what goes with the call, or NULL.
/// @param versions where the text goes; free it with `gridstone_free`.
///
/// `GRIDSTONE_ERROR_SNAPSHOT_EXPIRED`: the version that the handle shows was vacuumed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_history(
    node: gridstone_handle,
    call: *const gridstone_call,
    versions: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, asked) = unsafe { (Out::new(versions, "versions")?, Asked::new(call)?) };
        let found = match get_either::<ArrayObject, GroupObject>(node)? {
            Ok(array) => asked.run(|call| array.0.history(call))?,
            Err(group) => asked.run(|call| group.shown().history(group.pinned(), call))?,
        };
        out.put(text_handle(json_list(found.iter().map(VersionListing::to_json)))?);
        Ok(())
    })
}

/// The fragments of an array at the version that it shows, as a list of JSON, oldest first: id, kind, version, cells, bytes, attributes,
/// domain.
///
/// @param array the array.
/// @param fragments where the text goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_fragments(
    array: gridstone_array,
    fragments: *mut gridstone_text,
) -> gridstone_status {
    // SAFETY: the contract of the header.
    unsafe { told(array, fragments, |array| Ok(json_list(array.fragments()?.iter().map(FragmentListing::to_json)))) }
}

/// The tags of the store of an array or group, as an object of JSON: `{"as delivered": 3}`.
///
/// @param node an array or a group. An array that is open for writing shows the newest tags, anything else those of its version.
/// @param tags where the text goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_tags(node: gridstone_handle, tags: *mut gridstone_text) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(tags, "tags") }?;
        let found = match get_either::<ArrayObject, GroupObject>(node)? {
            Ok(array) => array.0.tags()?,
            Err(group) => group.shown().tags()?,
        };
        let named: Map<String, Value> = found.into_iter().map(|(name, version)| (name, json!(version))).collect();
        out.put(text_handle(Value::Object(named).to_string())?);
        Ok(())
    })
}

/// Gives a version of a store a name, which keeps it from being vacuumed. That is a commit of its own.
///
/// @param context the context.
/// @param uri the store.
/// @param name 1 to 255 bytes without control characters.
/// @param version the version; 0: the newest.
/// @param replace not 0: a name that is in use is moved.
/// @param tagged where the version that has the name goes, or NULL.
///
/// `GRIDSTONE_ERROR_EXISTS`: the name is in use, and `replace` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_store_tag(
    context: gridstone_context,
    uri: *const c_char,
    name: *const c_char,
    version: u64,
    replace: i32,
    tagged: *mut u64,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, uri, name) = unsafe { (Out::optional(tagged, "tagged")?, text(uri, "uri")?, text(name, "name")?) };
        let version = (version != 0).then_some(version);
        out.put(engine::tag(&*get::<Context>(context)?, uri, name, version, replace != 0)?);
        Ok(())
    })
}

/// Takes the name of a version away.
///
/// @param context the context.
/// @param uri the store.
/// @param name the name.
/// @param version where the version that had it goes, or NULL.
///
/// `GRIDSTONE_ERROR_NOT_FOUND`: no version is called so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_store_untag(
    context: gridstone_context,
    uri: *const c_char,
    name: *const c_char,
    version: *mut u64,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, uri, name) = unsafe { (Out::optional(version, "version")?, text(uri, "uri")?, text(name, "name")?) };
        out.put(engine::untag(&*get::<Context>(context)?, uri, name)?);
        Ok(())
    })
}

/// What a store takes, and what a vacuum would free. Nothing is changed.
///
/// @param context the context.
/// @param uri the store.
/// @param options_given those of the vacuum, or NULL; `dry_run` is not looked at.
/// @param call what goes with the call, or NULL.
/// @param taken where a text of JSON goes: versions, bytes, and those of each array; free it with `gridstone_free`.
/// @param freed where a text goes as `gridstone_vacuum` gives it, or NULL; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_store_usage(
    context: gridstone_context,
    uri: *const c_char,
    options_given: *const gridstone_vacuum_options,
    call: *const gridstone_call,
    taken: *mut gridstone_text,
    freed: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        let wants_freed = !freed.is_null();
        // SAFETY: the contract of the header.
        let (taken_out, freed_out, uri, asked, options) = unsafe {
            (
                Out::new(taken, "taken")?,
                Out::optional(freed, "freed")?,
                text(uri, "uri")?,
                Asked::new(call)?,
                vacuum_options(options_given)?,
            )
        };
        let context = get::<Context>(context)?;
        let (taken, freed) = asked.run(|call| engine::store_usage(&context, uri, &options, call))?;
        let taken = text_handle(taken.to_json())?;
        if wants_freed {
            let freed = text_handle(freed.to_json());
            if freed.is_err() {
                forget(taken);
            }
            freed_out.put(freed?);
        }
        taken_out.put(taken);
        Ok(())
    })
}
