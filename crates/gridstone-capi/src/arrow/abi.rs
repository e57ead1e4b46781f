//! The three structs of the Arrow C data interface, and who owns them.
//!
//! A struct whose `release` is null holds nothing. What is taken over is moved: the other place is marked as released, so that each
//! struct is released once.

use crate::status::{Failure, Outcome};
use std::ffi::{c_char, c_int, c_void};

/// The type of an array of Arrow.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowSchema {
    /// the type, in the words of the interface
    pub format: *const c_char,
    /// the name of the column
    pub name: *const c_char,
    /// keys and values, or NULL
    pub metadata: *const c_char,
    /// `ARROW_FLAG_NULLABLE` and others
    pub flags: i64,
    /// structs in `children`
    pub n_children: i64,
    /// the types of nested arrays
    pub children: *mut *mut ArrowSchema,
    /// the type of the entries of a dictionary, or NULL
    pub dictionary: *mut ArrowSchema,
    /// frees what the struct holds; NULL: it holds nothing
    pub release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    /// the producer's own
    pub private_data: *mut c_void,
}

/// The values of an array of Arrow.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArray {
    /// its values
    pub length: i64,
    /// values that are null; -1: not known
    pub null_count: i64,
    /// values in the buffers before the first
    pub offset: i64,
    /// pointers in `buffers`
    pub n_buffers: i64,
    /// structs in `children`
    pub n_children: i64,
    /// the buffers, as many as the type has
    pub buffers: *mut *const c_void,
    /// nested arrays
    pub children: *mut *mut ArrowArray,
    /// the entries of a dictionary, or NULL
    pub dictionary: *mut ArrowArray,
    /// frees what the struct holds; NULL: it holds nothing
    pub release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    /// the producer's own
    pub private_data: *mut c_void,
}

/// Arrays of one type, one after the other.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArrayStream {
    /// gives the type
    pub get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    /// gives the next array; one that holds nothing after the last
    pub get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    /// says what went wrong in the call before
    pub get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    /// frees what the struct holds; NULL: it holds nothing
    pub release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    /// the producer's own
    pub private_data: *mut c_void,
}

/// Values may be null.
pub(super) const FLAG_NULLABLE: i64 = 2;
/// The order of a dictionary's entries is one of values.
pub(super) const FLAG_ORDERED: i64 = 1;

/// A struct of the interface.
pub(crate) trait Releasable: Sized {
    /// Its name in C.
    const NAME: &'static str;

    /// One that holds nothing.
    fn released() -> Self;

    /// Its release callback.
    fn release_of(&self) -> Option<unsafe extern "C" fn(*mut Self)>;
}

impl Releasable for ArrowSchema {
    const NAME: &'static str = "ArrowSchema";

    fn released() -> Self {
        let null = std::ptr::null_mut();
        Self {
            format: std::ptr::null(),
            name: std::ptr::null(),
            metadata: std::ptr::null(),
            flags: 0,
            n_children: 0,
            children: std::ptr::null_mut(),
            dictionary: std::ptr::null_mut(),
            release: None,
            private_data: null,
        }
    }

    fn release_of(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.release
    }
}

impl Releasable for ArrowArray {
    const NAME: &'static str = "ArrowArray";

    fn released() -> Self {
        Self {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: std::ptr::null_mut(),
            children: std::ptr::null_mut(),
            dictionary: std::ptr::null_mut(),
            release: None,
            private_data: std::ptr::null_mut(),
        }
    }

    fn release_of(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.release
    }
}

impl Releasable for ArrowArrayStream {
    const NAME: &'static str = "ArrowArrayStream";

    fn released() -> Self {
        Self {
            get_schema: None,
            get_next: None,
            get_last_error: None,
            release: None,
            private_data: std::ptr::null_mut(),
        }
    }

    fn release_of(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.release
    }
}

/// A struct of a producer that is ours now: it is released when this is dropped.
pub(crate) struct Owned<T: Releasable>(Box<T>);

impl<T: Releasable> Owned<T> {
    /// One that holds nothing yet, to be filled by a producer.
    pub(crate) fn empty() -> Self {
        Self(Box::new(T::released()))
    }

    /// A struct that was made here.
    pub(super) fn of(inner: T) -> Self {
        Self(Box::new(inner))
    }

    /// Hands the struct over, in a box of its own.
    pub(super) fn into_raw(mut self) -> *mut T {
        Box::into_raw(Box::new(std::mem::replace(&mut *self.0, T::released())))
    }

    /// Moves a struct of the caller here, which is marked as released there.
    ///
    /// # Safety
    /// A `pointer` that is not null points to a struct that holds nothing, or that its producer has filled as the interface says, and
    /// which nothing else uses until the call ends.
    pub(crate) unsafe fn take(pointer: *mut T) -> Outcome<Self> {
        if pointer.is_null() || !pointer.is_aligned() {
            return Err(Failure::input(format!("{} is a null pointer, or not aligned", T::NAME)));
        }
        // SAFETY: not null and aligned; the rest is the caller's promise.
        let taken = Self(Box::new(unsafe { pointer.replace(T::released()) }));
        match taken.is_released() {
            true => Err(Failure::input(format!("{} was released, or moved away", T::NAME))),
            false => Ok(taken),
        }
    }

    pub(crate) fn is_released(&self) -> bool {
        self.0.release_of().is_none()
    }

    pub(crate) fn get(&self) -> &T {
        &self.0
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        &raw mut *self.0
    }
}

impl<T: Releasable> Drop for Owned<T> {
    fn drop(&mut self) {
        if let Some(release) = self.0.release_of() {
            // SAFETY: the producer gave the callback for this struct, which was moved here and not released since.
            unsafe { release(&raw mut *self.0) };
        }
    }
}
