//! Stores: creating, opening, deleting, tags.

use crate::array::{ArrayObject, gridstone_array};
use crate::context::gridstone_context;
use crate::handle::{get, insert};
use crate::memory::{OptionStruct, Out, optional_text, options, text};
use crate::schema::{Parts, gridstone_schema};
use crate::status::{Failure, Outcome, gridstone_status, guarded};
use gridstone::engine::{self, At, Context, Opened};
use std::ffi::c_char;

/// Opens for reading, and for nothing else.
pub const GRIDSTONE_OPEN_READ: u32 = 0;
/// Opens for reading and writing.
pub const GRIDSTONE_OPEN_WRITE: u32 = 1;

/// Nothing lies at a path.
pub const GRIDSTONE_KIND_NONE: u32 = 0;
/// An array lies there.
pub const GRIDSTONE_KIND_ARRAY: u32 = 1;
/// A group lies there.
pub const GRIDSTONE_KIND_GROUP: u32 = 2;

/// The number of a kind of node that the engine names.
pub(crate) fn kind_of(name: Option<&str>) -> u32 {
    match name {
        Some("array") => GRIDSTONE_KIND_ARRAY,
        Some(_) => GRIDSTONE_KIND_GROUP,
        None => GRIDSTONE_KIND_NONE,
    }
}

/// How a store is opened; 0 everywhere: at its newest version, for reading.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct gridstone_open_options {
    /// `sizeof(gridstone_open_options)`
    pub size: usize,
    /// the path in the store, as "/runs/7"; NULL: "/"
    pub path: *const c_char,
    /// the version; 0: not by a version
    pub version: u64,
    /// the tag of a version; NULL: not by a tag
    pub tag: *const c_char,
    /// the newest version that was committed by then, in microseconds since 1970 in UTC; looked at if `by_time` is not 0
    pub time_us: i64,
    /// not 0: by `time_us`
    pub by_time: u32,
    /// `GRIDSTONE_OPEN_READ` or `GRIDSTONE_OPEN_WRITE`; a version, a tag and a time are for reading
    pub mode: u32,
}

// SAFETY: it begins with its size; zeros are the usual values.
unsafe impl OptionStruct for gridstone_open_options {
    const NAME: &'static str = "gridstone_open_options";
}

/// What to open, of an option struct.
pub(crate) enum Wanted {
    At(At),
    Tag(String),
}

/// The version that is wanted.
///
/// # Safety
/// The contract of the header.
pub(crate) unsafe fn wanted(given: &gridstone_open_options) -> Outcome<Wanted> {
    // SAFETY: passed on.
    let tag = unsafe { optional_text(given.tag, "tag") }?;
    let ways = usize::from(given.version != 0) + usize::from(tag.is_some()) + usize::from(given.by_time != 0);
    if ways > 1 {
        return Err(Failure::input("a version, a tag and a time were given together; give one of them"));
    }
    Ok(match tag {
        Some(tag) => Wanted::Tag(tag.to_owned()),
        None if given.version != 0 => Wanted::At(At::Version(given.version)),
        None if given.by_time != 0 => Wanted::At(At::Time(given.time_us)),
        None => Wanted::At(At::Latest),
    })
}

/// Opens what is at a path.
///
/// # Safety
/// The contract of the header.
pub(crate) unsafe fn opened(context: &Context, uri: &str, given: *const gridstone_open_options) -> Outcome<Opened> {
    // SAFETY: passed on.
    let Some(given) = (unsafe { options(given) })? else {
        return Ok(engine::open(context, uri, "/", false, At::Latest)?);
    };
    // SAFETY: passed on.
    let (path, wanted) = unsafe { (optional_text(given.path, "path")?.unwrap_or("/"), wanted(&given)?) };
    let writable = match given.mode {
        GRIDSTONE_OPEN_READ => false,
        GRIDSTONE_OPEN_WRITE => true,
        other => return Err(Failure::input(format!("mode is {other}; it is GRIDSTONE_OPEN_READ or _WRITE"))),
    };
    match wanted {
        Wanted::Tag(_) if writable => {
            Err(Failure::input("a tag is opened for reading; open the newest version to write"))
        }
        Wanted::Tag(tag) => Ok(engine::open_tagged(context, uri, path, &tag)?),
        Wanted::At(at) => Ok(engine::open(context, uri, path, writable, at)?),
    }
}

/// Creates an array in a store, which is made if there is none. The array is open for writing.
///
/// @param context the context.
/// @param uri a folder, "s3://bucket/key", or "mem://name".
/// @param path where in the store, as "/runs/7"; NULL: "/", the array is the store.
/// @param schema the schema.
/// @param overwrite not 0: what is there is replaced by a new array.
/// @param array where the handle goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_create(
    context: gridstone_context,
    uri: *const c_char,
    path: *const c_char,
    schema: gridstone_schema,
    overwrite: i32,
    array: *mut gridstone_array,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, uri, path) =
            unsafe { (Out::new(array, "array")?, text(uri, "uri")?, optional_text(path, "path")?.unwrap_or("/")) };
        let (context, schema) = (get::<Context>(context)?, get::<Parts>(schema)?.schema()?);
        let made = engine::create_array(&context, uri, path, schema, overwrite != 0)?;
        out.put(insert(ArrayObject(made))?);
        Ok(())
    })
}

/// Opens an array.
///
/// @param context the context.
/// @param uri the store.
/// @param options_given path, version and mode, or NULL: "/", the newest version, for reading.
/// @param array where the handle goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_open(
    context: gridstone_context,
    uri: *const c_char,
    options_given: *const gridstone_open_options,
    array: *mut gridstone_array,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, uri) = unsafe { (Out::new(array, "array")?, text(uri, "uri")?) };
        let context = get::<Context>(context)?;
        // SAFETY: the contract of the header.
        let found = unsafe { opened(&context, uri, options_given) }?;
        out.put(insert(ArrayObject(found.into_array()?))?);
        Ok(())
    })
}

/// Whether there is a store: puts 1 or 0.
///
/// @param context the context.
/// @param uri where the store would be.
/// @param exists where 1 or 0 goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_store_exists(
    context: gridstone_context,
    uri: *const c_char,
    exists: *mut i32,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, uri) = unsafe { (Out::new(exists, "exists")?, text(uri, "uri")?) };
        out.put(i32::from(engine::exists(&*get::<Context>(context)?, uri)?));
        Ok(())
    })
}

/// Deletes a store with all its versions. `GRIDSTONE_ERROR_NOT_FOUND`: there is none.
///
/// @param context the context.
/// @param uri the store.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_store_delete(context: gridstone_context, uri: *const c_char) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let uri = unsafe { text(uri, "uri") }?;
        Ok(engine::delete_store(&*get::<Context>(context)?, uri)?)
    })
}
