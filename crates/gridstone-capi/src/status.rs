//! What calls give: a status, and the error of the thread.
//!
//! Each function of C runs in [`guarded`]. It clears the thread's error, does the work, and keeps what went wrong. A panic of the
//! engine, which is a mistake in it, becomes `GRIDSTONE_ERROR_FAILED`: nothing unwinds into C.

use crate::words::in_c;
use gridstone::base::{Error, ErrorKind};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a call gives: `GRIDSTONE_OK`, or the kind of what went wrong. `gridstone_last_error` says what it was.
pub type gridstone_status = i32;

/// The call did what it was asked for.
pub const GRIDSTONE_OK: gridstone_status = 0;
/// An argument is wrong: a null pointer, a size, a type, a value. The message names it.
pub const GRIDSTONE_ERROR_INPUT: gridstone_status = 1;
/// A schema is contradictory or not supported, or values do not fit it.
pub const GRIDSTONE_ERROR_SCHEMA: gridstone_status = 2;
/// A position or a coordinate is outside of the domain.
pub const GRIDSTONE_ERROR_BOUNDS: gridstone_status = 3;
/// The store, array, group, attribute, version or key does not exist.
pub const GRIDSTONE_ERROR_NOT_FOUND: gridstone_status = 4;
/// What is to be created exists.
pub const GRIDSTONE_ERROR_EXISTS: gridstone_status = 5;
/// Another commit made this one impossible. Nothing was changed.
pub const GRIDSTONE_ERROR_CONFLICT: gridstone_status = 6;
/// It is not known whether the commit happened. Nothing was deleted.
pub const GRIDSTONE_ERROR_COMMIT_UNKNOWN: gridstone_status = 7;
/// Bytes in the store are not those that were written.
pub const GRIDSTONE_ERROR_CORRUPTION: gridstone_status = 8;
/// A file of another format has changed since it was attached.
pub const GRIDSTONE_ERROR_SOURCE_CHANGED: gridstone_status = 9;
/// The version was vacuumed.
pub const GRIDSTONE_ERROR_SNAPSHOT_EXPIRED: gridstone_status = 10;
/// The work does not fit into the memory budget, or a cell into the caller's buffers.
pub const GRIDSTONE_ERROR_BUDGET: gridstone_status = 11;
/// The storage refused: it is full, read-only or not reached.
pub const GRIDSTONE_ERROR_STORAGE: gridstone_status = 12;
/// A key, credentials or permissions are missing or wrong.
pub const GRIDSTONE_ERROR_ACCESS: gridstone_status = 13;
/// The request is valid, and this version or this storage does not support it.
pub const GRIDSTONE_ERROR_UNSUPPORTED: gridstone_status = 14;
/// The work was cancelled.
pub const GRIDSTONE_ERROR_CANCELLED: gridstone_status = 15;
/// A handle is 0, was freed, or is of another kind.
pub const GRIDSTONE_ERROR_HANDLE: gridstone_status = 16;
/// Another thread is using the handle, which serves one at a time; or a callback has called the library.
pub const GRIDSTONE_ERROR_BUSY: gridstone_status = 17;
/// The library failed, by a mistake in it; please report the message.
pub const GRIDSTONE_ERROR_FAILED: gridstone_status = 18;

/// What went wrong.
#[derive(Debug)]
pub(crate) struct Failure {
    status: gridstone_status,
    message: String,
    os_error: Option<i32>,
}

/// What the work of a call gives.
pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(status: gridstone_status, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), os_error: None }
    }

    pub(crate) fn status(&self) -> gridstone_status {
        self.status
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// A wrong argument.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(GRIDSTONE_ERROR_INPUT, message)
    }
}

impl Failure {
    /// The failure for an error of the engine that others have too.
    pub(crate) fn of(error: &Error) -> Self {
        Self { status: status_of(error.kind()), message: in_c(error.message()), os_error: error.os_error() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::of(&error)
    }
}

/// The status for a kind of error of the engine.
pub(crate) fn status_of(kind: ErrorKind) -> gridstone_status {
    match kind {
        ErrorKind::Input => GRIDSTONE_ERROR_INPUT,
        ErrorKind::Schema => GRIDSTONE_ERROR_SCHEMA,
        ErrorKind::Bounds => GRIDSTONE_ERROR_BOUNDS,
        ErrorKind::NotFound => GRIDSTONE_ERROR_NOT_FOUND,
        ErrorKind::Exists => GRIDSTONE_ERROR_EXISTS,
        ErrorKind::Conflict => GRIDSTONE_ERROR_CONFLICT,
        ErrorKind::CommitUnknown => GRIDSTONE_ERROR_COMMIT_UNKNOWN,
        ErrorKind::Corruption => GRIDSTONE_ERROR_CORRUPTION,
        ErrorKind::SourceChanged => GRIDSTONE_ERROR_SOURCE_CHANGED,
        ErrorKind::SnapshotExpired => GRIDSTONE_ERROR_SNAPSHOT_EXPIRED,
        ErrorKind::Budget => GRIDSTONE_ERROR_BUDGET,
        ErrorKind::Storage => GRIDSTONE_ERROR_STORAGE,
        ErrorKind::Access => GRIDSTONE_ERROR_ACCESS,
        ErrorKind::Unsupported => GRIDSTONE_ERROR_UNSUPPORTED,
        ErrorKind::Cancelled => GRIDSTONE_ERROR_CANCELLED,
        _ => GRIDSTONE_ERROR_FAILED,
    }
}

/// The error of a thread.
struct Last {
    status: gridstone_status,
    message: Option<CString>,
    os_error: Option<i32>,
}

thread_local! {
    static LAST: RefCell<Last> = const { RefCell::new(Last { status: GRIDSTONE_OK, message: None, os_error: None }) };
    /// The callback that this thread is in, which may not call the library.
    static IN_CALLBACK: Cell<Callback> = const { Cell::new(Callback::None) };
}

/// Callbacks of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callback {
    None,
    Log,
    Progress,
}

/// Does work from which no panic comes, unless this thread is in a callback that may not call the library.
pub(crate) fn contained<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    contained_but_in(Callback::None, work)
}

/// As [`contained`], also in callbacks of one kind.
fn contained_but_in<T>(allowed: Callback, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let name = match IN_CALLBACK.try_with(Cell::get) {
        Ok(found) if found == Callback::None || found == allowed => {
            return catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(failed(panic.as_ref())));
        }
        Ok(Callback::Progress) => "progress",
        Ok(_) => "log",
        Err(_) => return Err(Failure::new(GRIDSTONE_ERROR_FAILED, "this thread is ending")),
    };
    Err(Failure::new(
        GRIDSTONE_ERROR_BUSY,
        format!(
            "a {name} callback may not call the library, as locks may be held meanwhile: keep what it was given, and call later"
        ),
    ))
}

/// Runs the body of a function of C: gives its status, and keeps what went wrong as the error of this thread.
pub(crate) fn guarded(work: impl FnOnce() -> Outcome<()>) -> gridstone_status {
    keep(contained(work))
}

/// As [`guarded`], of a function that callbacks of progress may call.
pub(crate) fn guarded_also_in_progress(work: impl FnOnce() -> Outcome<()>) -> gridstone_status {
    keep(contained_but_in(Callback::Progress, work))
}

/// Keeps an outcome as the error of this thread, and gives its status.
fn keep(outcome: Outcome<()>) -> gridstone_status {
    let status = outcome.as_ref().map_or_else(|failure| failure.status, |()| GRIDSTONE_OK);
    // A thread that is ending has no error to keep.
    let _ = LAST.try_with(|last| {
        let mut last = last.borrow_mut();
        if status == GRIDSTONE_OK && last.status == GRIDSTONE_OK {
            return;
        }
        *last = outcome.err().map_or(Last { status, message: None, os_error: None }, |failure| Last {
            status,
            message: CString::new(failure.message.replace('\0', "\u{fffd}")).ok(),
            os_error: failure.os_error,
        });
    });
    status
}

/// Runs a callback of the caller that may not call the library.
pub(crate) fn in_callback<T>(kind: Callback, call: impl FnOnce() -> T) -> T {
    let before = IN_CALLBACK.replace(kind);
    let given = call();
    IN_CALLBACK.set(before);
    given
}

/// The failure for a panic of the engine.
fn failed(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("it does not say why");
    Failure::new(
        GRIDSTONE_ERROR_FAILED,
        format!("the library failed: {text}. This is a mistake in Gridstone; please report it"),
    )
}

/// The message of the last call of this thread, in UTF-8; empty if it gave `GRIDSTONE_OK`. It says what was asked, what was found
/// and what to do. The text is the library's and valid until the next call of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn gridstone_last_error() -> *const c_char {
    const EMPTY: &CStr = c"";
    let message = LAST.try_with(|last| last.borrow().message.as_ref().map_or(EMPTY.as_ptr(), |text| text.as_ptr()));
    message.unwrap_or(EMPTY.as_ptr())
}

/// The status that the last call of this thread gave.
#[unsafe(no_mangle)]
pub extern "C" fn gridstone_last_status() -> gridstone_status {
    LAST.try_with(|last| last.borrow().status).unwrap_or(GRIDSTONE_OK)
}

/// The `errno` of the operating system behind the error of the last call of this thread; 0 if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn gridstone_last_errno() -> i32 {
    LAST.try_with(|last| last.borrow().os_error.unwrap_or(0)).unwrap_or(0)
}

/// The name of a status in small letters, as "not found"; "unknown" for any other number. The text is the library's, for ever.
///
/// @param status what a call gave.
#[unsafe(no_mangle)]
pub extern "C" fn gridstone_status_name(status: gridstone_status) -> *const c_char {
    let name = match status {
        GRIDSTONE_OK => c"ok",
        GRIDSTONE_ERROR_INPUT => c"input",
        GRIDSTONE_ERROR_SCHEMA => c"schema",
        GRIDSTONE_ERROR_BOUNDS => c"bounds",
        GRIDSTONE_ERROR_NOT_FOUND => c"not found",
        GRIDSTONE_ERROR_EXISTS => c"exists",
        GRIDSTONE_ERROR_CONFLICT => c"conflict",
        GRIDSTONE_ERROR_COMMIT_UNKNOWN => c"commit unknown",
        GRIDSTONE_ERROR_CORRUPTION => c"corruption",
        GRIDSTONE_ERROR_SOURCE_CHANGED => c"source changed",
        GRIDSTONE_ERROR_SNAPSHOT_EXPIRED => c"snapshot expired",
        GRIDSTONE_ERROR_BUDGET => c"budget",
        GRIDSTONE_ERROR_STORAGE => c"storage",
        GRIDSTONE_ERROR_ACCESS => c"access",
        GRIDSTONE_ERROR_UNSUPPORTED => c"unsupported",
        GRIDSTONE_ERROR_CANCELLED => c"cancelled",
        GRIDSTONE_ERROR_HANDLE => c"handle",
        GRIDSTONE_ERROR_BUSY => c"busy",
        GRIDSTONE_ERROR_FAILED => c"failed",
        _ => c"unknown",
    };
    name.as_ptr()
}

/// The version of the library, as "0.1.0". The text is the library's, for ever.
#[unsafe(no_mangle)]
pub extern "C" fn gridstone_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
