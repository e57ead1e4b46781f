//! Copies between stores, moves within one, and upgrades.

use crate::call::{Asked, gridstone_call};
use crate::context::gridstone_context;
use crate::handle::{get, get_optional};
use crate::memory::{OptionStruct, Out, optional_text, options, text};
use crate::status::{gridstone_status, guarded};
use crate::store::{Wanted, gridstone_open_options, wanted};
use crate::text::{gridstone_text, text_handle};
use gridstone::engine::{self, At, Context, CopyOptions};
use std::ffi::c_char;

/// What is copied, and to where; 0 everywhere: the newest version of a whole store.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct gridstone_copy_options {
    /// `sizeof(gridstone_copy_options)`
    pub size: usize,
    /// the array or group; NULL: "/", all that the store holds
    pub path: *const c_char,
    /// where it is put in the target; NULL: "/"
    pub target_path: *const c_char,
    /// the version; 0: not by a version
    pub version: u64,
    /// the tag of a version; NULL: not by a tag
    pub tag: *const c_char,
    /// the newest version that was committed by then, in microseconds since 1970 in UTC; looked at if `by_time` is not 0
    pub time_us: i64,
    /// not 0: by `time_us`
    pub by_time: u32,
    /// not 0: every version of the whole store up to that one, into an empty place or an earlier copy, which gets what it lacks
    pub history: u32,
    /// not 0: what lies at the target's path is replaced
    pub overwrite: u32,
    /// 0
    pub reserved: u32,
}

// SAFETY: it begins with its size; zeros are the usual values.
unsafe impl OptionStruct for gridstone_copy_options {
    const NAME: &'static str = "gridstone_copy_options";

    fn reserved(&self) -> u32 {
        self.reserved
    }
}

/// Copies a version of a store, or what lies in it, or its whole history, to another store.
///
/// @param context the context of the source.
/// @param uri the source.
/// @param target_context the context of the target, with its key and its options; 0: that of the source.
/// @param target the target, which is made if there is none.
/// @param options_given what is copied, or NULL: the newest version of the whole store.
/// @param call what goes with the call, or NULL.
/// @param report where the text goes, an object of JSON that says what was copied; free it with `gridstone_free`.
///
/// `GRIDSTONE_ERROR_EXISTS`: something lies at the target's path. `GRIDSTONE_ERROR_CONFLICT`: a copy has commits of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_store_copy(
    context: gridstone_context,
    uri: *const c_char,
    target_context: gridstone_context,
    target: *const c_char,
    options_given: *const gridstone_copy_options,
    call: *const gridstone_call,
    report: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, uri, target, asked, given) = unsafe {
            (
                Out::new(report, "report")?,
                text(uri, "uri")?,
                text(target, "target")?,
                Asked::new(call)?,
                options(options_given)?,
            )
        };
        let from = get::<Context>(context)?;
        let to = get_optional::<Context>(target_context)?.unwrap_or_else(|| from.clone());
        let (mut path, mut target_path) = ("/", "/");
        let (mut version, mut history, mut overwrite) = (Wanted::At(At::Latest), false, false);
        if let Some(given) = given {
            // SAFETY: the contract of the header.
            unsafe {
                path = optional_text(given.path, "path")?.unwrap_or("/");
                target_path = optional_text(given.target_path, "target_path")?.unwrap_or("/");
                version = wanted(&gridstone_open_options {
                    size: size_of::<gridstone_open_options>(),
                    path: given.path,
                    version: given.version,
                    tag: given.tag,
                    time_us: given.time_us,
                    by_time: given.by_time,
                    mode: 0,
                })?;
            }
            (history, overwrite) = (given.history != 0, given.overwrite != 0);
        }
        let (at, tag) = match &version {
            Wanted::At(at) => (*at, None),
            Wanted::Tag(tag) => (At::Latest, Some(tag.as_str())),
        };
        let what = CopyOptions { path, target_path, at, tag, history, overwrite };
        let done = asked.run(|call| engine::copy((&from, uri), (&to, target), &what, call))?;
        out.put(text_handle(done.to_json())?);
        Ok(())
    })
}

/// Moves what lies at a path, and everything below it, in one commit; groups above the new path that are missing are created. Handles and
/// receipts still mean it.
///
/// @param context the context.
/// @param uri the store.
/// @param path where it lies.
/// @param target_path where it goes; nothing may lie there.
/// @param call its `message`, or NULL.
/// @param version where the version goes, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_store_move(
    context: gridstone_context,
    uri: *const c_char,
    path: *const c_char,
    target_path: *const c_char,
    call: *const gridstone_call,
    version: *mut u64,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, uri, path, target, asked) = unsafe {
            (
                Out::optional(version, "version")?,
                text(uri, "uri")?,
                text(path, "path")?,
                text(target_path, "target_path")?,
                Asked::new(call)?,
            )
        };
        asked.check_keyless()?;
        out.put(engine::move_node(&*get::<Context>(context)?, uri, path, target, asked.message)?);
        Ok(())
    })
}

/// Brings a store to the newest format that this library writes, in one commit; older versions of the library cannot read it then.
///
/// @param context the context.
/// @param uri the store.
/// @param version where the version goes, or NULL; the present one if there is nothing to do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_store_upgrade(
    context: gridstone_context,
    uri: *const c_char,
    version: *mut u64,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, uri) = unsafe { (Out::optional(version, "version")?, text(uri, "uri")?) };
        out.put(engine::upgrade(&*get::<Context>(context)?, uri)?);
        Ok(())
    })
}
