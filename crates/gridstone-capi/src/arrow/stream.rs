//! Streams of Arrow that are handed over: a read or an answer, batch by batch, and no handle is needed any more.

use super::abi::{ArrowArray, ArrowArrayStream, ArrowSchema, Releasable};
use super::export::{Home, Node, schema_of};
use super::types::ArrowType;
use crate::field::Field;
use crate::status::{
    Failure, GRIDSTONE_ERROR_BUDGET, GRIDSTONE_ERROR_BUSY, GRIDSTONE_ERROR_CANCELLED, GRIDSTONE_ERROR_INPUT, Outcome,
    contained,
};
use gridstone::engine::{AnswerStream, Column, Portions};
use std::ffi::{CString, c_char, c_int};
use std::sync::Arc;

/// Where batches come from.
pub(super) enum Batches {
    Read(Box<Portions>),
    Answer(Box<AnswerStream>),
}

impl Batches {
    /// The rows of the next batch and its columns; `None` at the end.
    fn next(&mut self) -> gridstone::base::Result<Option<(usize, Vec<Column>)>> {
        Ok(match self {
            Self::Read(portions) => {
                let cells = portions.next_batch()?;
                cells.map(|cells| (cells.count, cells.dims.into_iter().chain(cells.attrs).collect()))
            }
            Self::Answer(answers) => {
                let answer = answers.next_batch()?;
                answer.map(|answer| (answer.rows, answer.columns.into_iter().map(|(_, column)| column).collect()))
            }
        })
    }
}

/// What a stream that was handed over holds.
struct StreamOwner {
    fields: Vec<Field>,
    batches: Option<Batches>,
    /// What went wrong last.
    failure: Option<CString>,
    /// The error that has ended it: nothing is given any more.
    over: Option<c_int>,
}

impl StreamOwner {
    /// Keeps what went wrong, and gives its error number.
    fn fail(&mut self, failure: &Failure) -> c_int {
        self.failure = CString::new(failure.message().replace('\0', "\u{fffd}")).ok();
        match failure.status() {
            GRIDSTONE_ERROR_INPUT => libc::EINVAL,
            GRIDSTONE_ERROR_BUDGET => libc::ENOMEM,
            GRIDSTONE_ERROR_CANCELLED => libc::ECANCELED,
            GRIDSTONE_ERROR_BUSY => libc::EBUSY,
            _ => libc::EIO,
        }
    }

    fn next(&mut self) -> Outcome<ArrowArray> {
        let Some(batches) = &mut self.batches else { return Ok(ArrowArray::released()) };
        let Some((rows, columns)) = batches.next()? else {
            self.batches = None;
            return Ok(ArrowArray::released());
        };
        let columns = Arc::new(columns);
        let node = Node::of_rows(rows, self.fields.iter().zip(columns.iter()))?;
        let home: Home = columns;
        Ok(node.into_array(&home))
    }
}

/// Hands a stream over; its release callback drops what it holds.
pub(super) fn stream_of(fields: Vec<Field>, batches: Batches) -> ArrowArrayStream {
    let owner = Box::new(StreamOwner { fields, batches: Some(batches), failure: None, over: None });
    ArrowArrayStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release),
        private_data: Box::into_raw(owner).cast(),
    }
}

/// The owner of a stream.
///
/// # Safety
/// `stream` was made by [`stream_of`], or that was moved there, and it was not released; no other call on it is under way.
unsafe fn owner<'a>(stream: *mut ArrowArrayStream) -> Option<&'a mut StreamOwner> {
    if stream.is_null() {
        return None;
    }
    // SAFETY: not null; the rest is the caller's promise. A released stream has no private data.
    unsafe { (*stream).private_data.cast::<StreamOwner>().as_mut() }
}

unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the interface says so.
    let Some(owner) = (unsafe { owner(stream) }) else { return libc::EINVAL };
    if out.is_null() {
        return owner.fail(&Failure::input("the schema to be filled is a null pointer"));
    }
    match contained(|| schema_of(&ArrowType::of_rows(&owner.fields))) {
        Ok(schema) => {
            // SAFETY: not null; the interface says that there is room.
            unsafe { out.write(schema) };
            0
        }
        Err(failure) => owner.fail(&failure),
    }
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: the interface says so.
    let Some(owner) = (unsafe { owner(stream) }) else { return libc::EINVAL };
    if out.is_null() {
        return owner.fail(&Failure::input("the array to be filled is a null pointer"));
    }
    if let Some(status) = owner.over {
        return status;
    }
    match contained(|| owner.next()) {
        Ok(array) => {
            // SAFETY: not null; the interface says that there is room.
            unsafe { out.write(array) };
            0
        }
        Err(failure) => {
            let status = owner.fail(&failure);
            // A call from a log callback has not touched the batches.
            if status != libc::EBUSY {
                (owner.batches, owner.over) = (None, Some(status));
            }
            status
        }
    }
}

unsafe extern "C" fn get_last_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: the interface says so.
    let owner = unsafe { owner(stream) };
    owner.and_then(|owner| owner.failure.as_ref()).map_or(std::ptr::null(), |text| text.as_ptr())
}

unsafe extern "C" fn release(stream: *mut ArrowArrayStream) {
    // SAFETY: the interface says that a consumer calls it once.
    unsafe {
        let owner = Box::from_raw((*stream).private_data.cast::<StreamOwner>());
        stream.write(ArrowArrayStream::released());
        // Dropping it may give files back, and must not unwind into C.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || drop(owner)));
    }
}
