//! Cells that lie in files of other formats: what such files hold, attaching them, and their states.

use crate::array::{ArrayObject, gridstone_array};
use crate::call::{Asked, gridstone_call};
use crate::handle::get;
use crate::memory::{Out, text, texts};
use crate::status::{Failure, Outcome, gridstone_status, guarded};
use crate::text::{gridstone_text, json_list, text_handle};
use crate::write::{gridstone_staged, staged_handle, take_all};
use gridstone::base::Id;
use gridstone::engine::{Array, Staged};
use gridstone_attach::{Attached, stage, tree};
use std::ffi::c_char;

/// The groups, datasets and attributes of a file of HDF5, NetCDF or NumPy, or of a folder of Zarr, as JSON. Free the text.
///
/// @param path the file or folder.
/// @param tree_out where the handle of the text goes.
///
/// `GRIDSTONE_ERROR_STORAGE`: it cannot be read. `GRIDSTONE_ERROR_INPUT`: it is of another format.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_tree(path: *const c_char, tree_out: *mut gridstone_text) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, path) = unsafe { (Out::new(tree_out, "tree_out")?, text(path, "path")?) };
        out.put(text_handle(tree(path)?)?);
        Ok(())
    })
}

/// The state of a file now, as an array that it is attached to records it, as JSON: `uri`, `size`, `time_us`, `etag`. Free the text.
///
/// @param array the array.
/// @param uri the file.
/// @param state where the handle of the text goes.
///
/// `GRIDSTONE_ERROR_SOURCE_CHANGED`: there is no such file. `GRIDSTONE_ERROR_ACCESS`: the context does not allow it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_look_at_source(
    array: gridstone_array,
    uri: *const c_char,
    state: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, uri) = unsafe { (Out::new(state, "state")?, text(uri, "uri")?) };
        if uri.is_empty() {
            return Err(Failure::input("uri is empty; name the file, as its path or URL"));
        }
        out.put(text_handle(get::<ArrayObject>(array)?.0.look_at_source(uri)?.to_json())?);
        Ok(())
    })
}

/// Stages what a text of JSON says.
///
/// # Safety
/// The contract of the header.
unsafe fn attached(array: &Array, spec: *const c_char, asked: &Asked) -> Outcome<Staged> {
    // SAFETY: passed on.
    let attached = Attached::parse(unsafe { text(spec, "spec") }?)?;
    asked.run(|call| stage(array, &attached, call))
}

/// Attaches files of another format, in one commit: their cells become those of a box of the array, and stay where they are.
///
/// @param array an array that is open for writing.
/// @param spec what is attached, and where its chunks lie, as JSON.
/// @param call what goes with the call, or NULL.
/// @param version where the version of the commit goes, or NULL; the array shows it from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_attach(
    array: gridstone_array,
    spec: *const c_char,
    call: *const gridstone_call,
    version: *mut u64,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let (out, asked) = unsafe { (Out::optional(version, "version")?, Asked::new(call)?) };
        // SAFETY: the contract of the header.
        let staged = unsafe { attached(&array.0, spec, &asked) }?;
        out.put(asked.commit(&array.0, staged)?);
        Ok(())
    })
}

/// As `gridstone_array_attach`, without the commit.
///
/// @param array an array that is open for writing.
/// @param spec what is attached, and where its chunks lie, as JSON.
/// @param call what goes with the call, or NULL.
/// @param staged where the handle goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_stage_attached(
    array: gridstone_array,
    spec: *const c_char,
    call: *const gridstone_call,
    staged: *mut gridstone_staged,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let (out, asked) = unsafe { (Out::new(staged, "staged")?, Asked::new(call)?) };
        // SAFETY: the contract of the header.
        out.put(staged_handle(unsafe { attached(&array.0, spec, &asked) }?)?);
        Ok(())
    })
}

/// The files of other formats that cells of an array lie in, each once, with their state now, as a JSON array. Free the text.
///
/// @param array the array.
/// @param call what goes with the call, or NULL.
/// @param sources where the handle of the text goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_sources(
    array: gridstone_array,
    call: *const gridstone_call,
    sources: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let (out, asked) = unsafe { (Out::new(sources, "sources")?, Asked::new(call)?) };
        let found = asked.run(|call| array.0.sources(call))?;
        out.put(text_handle(json_list(found.iter().map(|source| source.to_json())))?);
        Ok(())
    })
}

/// The boxes of an array whose cells lie in files of other formats, oldest first, as a JSON array. Free the text.
///
/// @param array the array.
/// @param call what goes with the call, or NULL.
/// @param boxes where the handle of the text goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_attached(
    array: gridstone_array,
    call: *const gridstone_call,
    boxes: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let (out, asked) = unsafe { (Out::new(boxes, "boxes")?, Asked::new(call)?) };
        let (schema, found) = (array.0.schema()?, asked.run(|call| array.0.attached(call))?);
        out.put(text_handle(json_list(found.iter().map(|one| one.to_json(&schema))))?);
        Ok(())
    })
}

/// Puts staged cells of files in the place of attached boxes whose files have changed, in one commit. What was written over these stays
/// over the new ones. The handles of what was staged are used up, as by
/// `gridstone_commit`, and are still to be freed.
///
/// @param array the array that they were staged for.
/// @param staged the handles.
/// @param staged_count how many.
/// @param replaced the ids of the attached boxes.
/// @param replaced_count how many.
/// @param version where the version goes, or NULL; the array shows it from now on.
///
/// `GRIDSTONE_ERROR_CONFLICT`: one of the boxes is no attached one any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_replace_attached(
    array: gridstone_array,
    staged: *const gridstone_staged,
    staged_count: usize,
    replaced: *const *const c_char,
    replaced_count: usize,
    version: *mut u64,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let (out, ids) = unsafe { (Out::optional(version, "version")?, texts(replaced, replaced_count, "replaced")?) };
        let id = |text: &str| Id::given(text).map_err(|e| e.context("replaced"));
        let ids = ids.into_iter().map(id).collect::<gridstone::base::Result<Vec<Id>>>()?;
        // SAFETY: the contract of the header.
        let staged = unsafe { take_all(&array.0, staged, staged_count) }?;
        out.put(array.0.replace_attached(staged, &ids)?);
        Ok(())
    })
}
