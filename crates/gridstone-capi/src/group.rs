//! Groups: names for arrays and for other groups.

use crate::array::{ArrayObject, gridstone_array};
use crate::call::{Asked, gridstone_call};
use crate::context::gridstone_context;
use crate::handle::{Brief, Object, get, gridstone_handle, insert};
use crate::memory::{Out, optional_text, options, text};
use crate::schema::{Parts, gridstone_schema};
use crate::status::{Failure, Outcome, gridstone_status, guarded};
use crate::store::{
    GRIDSTONE_KIND_ARRAY, GRIDSTONE_KIND_GROUP, GRIDSTONE_OPEN_WRITE, Wanted, gridstone_open_options, opened, wanted,
};
use crate::text::{gridstone_text, text_handle};
use gridstone::engine::{self, At, Context, Group, Opened};
use serde_json::json;
use std::ffi::c_char;

/// A group at one version of its store. Many threads may use one.
pub type gridstone_group = gridstone_handle;

pub(crate) struct GroupObject {
    group: Brief<Group>,
    writable: bool,
    /// Whether it was opened at a version.
    pinned: bool,
}

impl Object for GroupObject {
    const NAME: &'static str = "a group";
}

impl GroupObject {
    fn new(group: Group, writable: bool, pinned: bool) -> Self {
        Self { group: Brief::new(group), writable, pinned }
    }

    /// The group at the version that it shows now.
    pub(crate) fn shown(&self) -> Group {
        self.group.with(|group| group.clone())
    }

    pub(crate) fn pinned(&self) -> bool {
        self.pinned
    }

    /// The group, if it may be written.
    pub(crate) fn to_write(&self) -> Outcome<Group> {
        if self.writable {
            return Ok(self.shown());
        }
        Err(Failure::input("this group is open for reading; open it with GRIDSTONE_OPEN_WRITE, and without a version"))
    }

    /// Moves on to the newest version.
    fn refresh(&self) -> gridstone::base::Result<u64> {
        let newer = self.shown().refreshed()?;
        let (version, older) = self.group.with(|shown| {
            // Another thread may have moved it further.
            let older = (newer.version() > shown.version()).then(|| std::mem::replace(shown, newer));
            (shown.version(), older)
        });
        // Dropping it may take locks of the engine.
        drop(older);
        Ok(version)
    }

    /// Moves on after a change of its own, which is done whatever becomes of this.
    pub(crate) fn follow(&self) {
        let _ = self.refresh();
    }
}

/// Names, or paths, with their kinds, as JSON.
pub(crate) fn nodes_json(name: &str, nodes: &[(String, &'static str)]) -> String {
    let node = |(called, kind): &(String, &'static str)| json!({name: called, "kind": kind});
    serde_json::Value::Array(nodes.iter().map(node).collect()).to_string()
}

/// How an option struct opens: for writing, and at a version.
///
/// # Safety
/// The contract of the header.
unsafe fn ways(given: *const gridstone_open_options) -> Outcome<(bool, bool)> {
    // SAFETY: passed on.
    let Some(given) = (unsafe { options(given) })? else { return Ok((false, false)) };
    // SAFETY: passed on.
    let is_newest = matches!(unsafe { wanted(&given) }?, Wanted::At(At::Latest));
    Ok((given.mode == GRIDSTONE_OPEN_WRITE, !is_newest))
}

/// The handle of what was opened, and its kind.
fn handle_of(found: Opened, (writable, pinned): (bool, bool)) -> Outcome<(gridstone_handle, u32)> {
    Ok(match found {
        Opened::Array(array) => (insert(ArrayObject(array))?, GRIDSTONE_KIND_ARRAY),
        Opened::Group(group) => (insert(GroupObject::new(group, writable, pinned))?, GRIDSTONE_KIND_GROUP),
    })
}

/// Opens whatever lies at a path, and says what it is.
///
/// @param context the context.
/// @param uri the store.
/// @param options_given path, version and mode, or NULL: "/", the newest version, for reading.
/// @param node where the handle of the array or group goes; free it with `gridstone_free`.
/// @param kind where `GRIDSTONE_KIND_ARRAY` or `GRIDSTONE_KIND_GROUP` goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_open(
    context: gridstone_context,
    uri: *const c_char,
    options_given: *const gridstone_open_options,
    node: *mut gridstone_handle,
    kind: *mut u32,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, kind_out, uri) = unsafe { (Out::new(node, "node")?, Out::new(kind, "kind")?, text(uri, "uri")?) };
        let context = get::<Context>(context)?;
        // SAFETY: the contract of the header.
        let (found, ways) = unsafe { (opened(&context, uri, options_given)?, ways(options_given)?) };
        let (handle, kind) = handle_of(found, ways)?;
        out.put(handle);
        kind_out.put(kind);
        Ok(())
    })
}

/// Creates a group in a store, which is made if there is none, and those above it that are missing. The group is open for writing. One
/// that is there is left as it is.
///
/// @param context the context.
/// @param uri the store.
/// @param path where in the store; NULL: "/".
/// @param group where the handle goes; free it with `gridstone_free`.
///
/// `GRIDSTONE_ERROR_EXISTS`: an array lies there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_group_create(
    context: gridstone_context,
    uri: *const c_char,
    path: *const c_char,
    group: *mut gridstone_group,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, uri, path) =
            unsafe { (Out::new(group, "group")?, text(uri, "uri")?, optional_text(path, "path")?.unwrap_or("/")) };
        let made = engine::create_group(&*get::<Context>(context)?, uri, path)?;
        out.put(insert(GroupObject::new(made, true, false))?);
        Ok(())
    })
}

/// Opens a group.
///
/// @param context the context.
/// @param uri the store.
/// @param options_given path, version and mode, or NULL: "/", the newest version, for reading.
/// @param group where the handle goes; free it with `gridstone_free`.
///
/// `GRIDSTONE_ERROR_NOT_FOUND`: nothing lies there, or an array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_group_open(
    context: gridstone_context,
    uri: *const c_char,
    options_given: *const gridstone_open_options,
    group: *mut gridstone_group,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, uri) = unsafe { (Out::new(group, "group")?, text(uri, "uri")?) };
        let context = get::<Context>(context)?;
        // SAFETY: the contract of the header.
        let (found, (writable, pinned)) = unsafe { (opened(&context, uri, options_given)?, ways(options_given)?) };
        out.put(insert(GroupObject::new(found.into_group()?, writable, pinned))?);
        Ok(())
    })
}

/// The version of its store that a group shows.
///
/// @param group the group.
/// @param version where the version goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_group_version(group: gridstone_group, version: *mut u64) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(version, "version") }?;
        out.put(get::<GroupObject>(group)?.shown().version());
        Ok(())
    })
}

/// A text of a group.
///
/// # Safety
/// The contract of the header.
unsafe fn told(
    group: gridstone_group,
    out: *mut gridstone_text,
    value: impl FnOnce(&Group) -> gridstone::base::Result<String>,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: passed on.
        let out = unsafe { Out::new(out, "text") }?;
        out.put(text_handle(value(&get::<GroupObject>(group)?.shown())?)?);
        Ok(())
    })
}

/// The URI of the store of a group.
///
/// @param group the group.
/// @param uri where the text goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_group_uri(group: gridstone_group, uri: *mut gridstone_text) -> gridstone_status {
    // SAFETY: the contract of the header.
    unsafe { told(group, uri, |group| Ok(group.uri())) }
}

/// The path of a group in its store.
///
/// @param group the group.
/// @param path where the text goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_group_path(group: gridstone_group, path: *mut gridstone_text) -> gridstone_status {
    // SAFETY: the contract of the header.
    unsafe { told(group, path, |group| Ok(group.path().to_owned())) }
}

/// What is in a group, as a list of JSON sorted by name: `[{"name": "t", "kind": "array"}, …]`; kinds are "array" and "group".
///
/// @param group the group.
/// @param children where the text goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_group_children(
    group: gridstone_group,
    children: *mut gridstone_text,
) -> gridstone_status {
    // SAFETY: the contract of the header.
    unsafe { told(group, children, |group| Ok(nodes_json("name", &group.children()?))) }
}

/// Everything below a group, each group followed by what is in it, as a list of JSON: `[{"path": "/sea/t", "kind": "array"}, …]`.
///
/// @param group the group.
/// @param nodes where the text goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_group_walk(group: gridstone_group, nodes: *mut gridstone_text) -> gridstone_status {
    // SAFETY: the contract of the header.
    unsafe { told(group, nodes, |group| Ok(nodes_json("path", &group.walk()?))) }
}

/// Whether there is anything called so in a group.
///
/// @param group the group.
/// @param name a name, or a path below the group.
/// @param contains where 1 or 0 goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_group_contains(
    group: gridstone_group,
    name: *const c_char,
    contains: *mut i32,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, name) = unsafe { (Out::new(contains, "contains")?, text(name, "name")?) };
        out.put(i32::from(get::<GroupObject>(group)?.shown().contains(name)?));
        Ok(())
    })
}

/// Opens what is called so in a group, at the group's version, for reading or writing as the group is.
///
/// @param group the group.
/// @param name a name, or a path below the group.
/// @param child where the handle of the array or group goes; free it with `gridstone_free`.
/// @param kind where `GRIDSTONE_KIND_ARRAY` or `GRIDSTONE_KIND_GROUP` goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_group_open_child(
    group: gridstone_group,
    name: *const c_char,
    child: *mut gridstone_handle,
    kind: *mut u32,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, kind_out, name) =
            unsafe { (Out::new(child, "child")?, Out::new(kind, "kind")?, text(name, "name")?) };
        let group = get::<GroupObject>(group)?;
        let ways = (group.writable, group.pinned);
        let (handle, kind) = handle_of(group.shown().open(name, group.writable, group.pinned)?, ways)?;
        out.put(handle);
        kind_out.put(kind);
        Ok(())
    })
}

/// Moves a group on to the newest version of its store, and puts its number.
///
/// @param group a group that was opened without a version.
/// @param version where the version goes, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_group_refresh(group: gridstone_group, version: *mut u64) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::optional(version, "version") }?;
        let group = get::<GroupObject>(group)?;
        if group.pinned {
            return Err(Failure::input("this group was opened at a version; open it without one to follow the newest"));
        }
        out.put(group.refresh()?);
        Ok(())
    })
}

/// Creates an array in a group. The array is open for writing, and the group shows it.
///
/// @param group a group that is open for writing.
/// @param name a name, or a path below the group.
/// @param schema the schema.
/// @param overwrite not 0: what is there is replaced by a new array.
/// @param array where the handle goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_group_create_array(
    group: gridstone_group,
    name: *const c_char,
    schema: gridstone_schema,
    overwrite: i32,
    array: *mut gridstone_array,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, name) = unsafe { (Out::new(array, "array")?, text(name, "name")?) };
        let (group, schema) = (get::<GroupObject>(group)?, get::<Parts>(schema)?.schema()?);
        let made = group.to_write()?.create_array(name, schema, overwrite != 0)?;
        group.follow();
        out.put(insert(ArrayObject(made))?);
        Ok(())
    })
}

/// Creates a group in a group, which shows it; one that is there is opened.
///
/// @param group a group that is open for writing.
/// @param name a name, or a path below the group.
/// @param child where the handle goes, open for writing; free it with `gridstone_free`.
///
/// `GRIDSTONE_ERROR_INPUT`: an array is called so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_group_create_group(
    group: gridstone_group,
    name: *const c_char,
    child: *mut gridstone_group,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, name) = unsafe { (Out::new(child, "child")?, text(name, "name")?) };
        let group = get::<GroupObject>(group)?;
        let made = group.to_write()?.create_group(name)?;
        group.follow();
        out.put(insert(GroupObject::new(made, true, false))?);
        Ok(())
    })
}

/// Removes what is called so in a group, with everything below it, in one commit.
///
/// @param group a group that is open for writing.
/// @param name a name, or a path below the group.
/// @param call its `message`, or NULL.
/// @param version where the version goes, or NULL; the group shows it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_group_remove(
    group: gridstone_group,
    name: *const c_char,
    call: *const gridstone_call,
    version: *mut u64,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, name, asked) =
            unsafe { (Out::optional(version, "version")?, text(name, "name")?, Asked::new(call)?) };
        asked.check_keyless()?;
        let group = get::<GroupObject>(group)?;
        let removed = group.to_write()?.remove(name, asked.message.as_deref())?;
        group.follow();
        out.put(removed);
        Ok(())
    })
}

/// Moves what is called so in a group, with everything below it, in one commit.
///
/// @param group a group that is open for writing.
/// @param name a name, or a path below the group.
/// @param target a name or path below the group or, from "/" on, a path in the store; nothing may lie there.
/// @param call its `message`, or NULL.
/// @param version where the version goes, or NULL; the group shows it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_group_move(
    group: gridstone_group,
    name: *const c_char,
    target: *const c_char,
    call: *const gridstone_call,
    version: *mut u64,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, name, target, asked) = unsafe {
            (Out::optional(version, "version")?, text(name, "name")?, text(target, "target")?, Asked::new(call)?)
        };
        asked.check_keyless()?;
        let group = get::<GroupObject>(group)?;
        let moved = group.to_write()?.move_child(name, target, asked.message.as_deref())?;
        group.follow();
        out.put(moved);
        Ok(())
    })
}
