//! Columns of Python buffers as views for the engine, and columns of the engine as buffers for Python.

use crate::buffer::Buffer;
use crate::errors::input;
use gridstone::base::{Cancel, Result};
use gridstone::engine::{Arena, Call, Column, ColumnView};
use gridstone::schema::Datatype;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use std::sync::Arc;

/// Values, offsets, validity as they come from Python.
type Given<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>);

/// Values, offsets, validity as Python gets them.
pub(crate) type Out = (Py<Buffer>, Option<Py<Buffer>>, Option<Py<Buffer>>);

/// The buffers of one column, held while the engine reads them.
pub(crate) struct Held {
    datatype: Datatype,
    values: PyUntypedBuffer,
    offsets: Option<PyUntypedBuffer>,
    validity: Option<PyUntypedBuffer>,
}

fn contiguous(given: &Bound<'_, PyAny>) -> PyResult<PyUntypedBuffer> {
    let buffer = PyUntypedBuffer::get(given)?;
    if buffer.is_c_contiguous() { Ok(buffer) } else { Err(input(given.py(), "a column's buffer must be contiguous")) }
}

fn bytes(buffer: &PyUntypedBuffer) -> &[u8] {
    if buffer.len_bytes() == 0 {
        return &[];
    }
    // SAFETY: the buffer is C-contiguous and held, so its memory stays where it is. Another thread that writes to the
    // array meanwhile breaks the contract that every NumPy call documents; the engine checks what it reads and copies it.
    unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<u8>(), buffer.len_bytes()) }
}

impl Held {
    /// Takes hold of a column's buffers.
    pub(crate) fn new(datatype: Datatype, given: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (values, offsets, validity): Given<'_> = given.extract()?;
        let offsets = offsets.as_ref().map(contiguous).transpose()?;
        let validity = validity.as_ref().map(contiguous).transpose()?;
        let held = Self { datatype, values: contiguous(&values)?, offsets, validity };
        if let Some(offsets) = &held.offsets
            && bytemuck::try_cast_slice::<u8, u64>(bytes(offsets)).is_err()
        {
            return Err(input(given.py(), "offsets must be aligned 64-bit integers"));
        }
        Ok(held)
    }

    /// The bytes of its values.
    pub(crate) fn bytes(&self) -> &[u8] {
        bytes(&self.values)
    }

    /// The column, checked.
    fn view(&self, cancel: &dyn Cancel) -> Result<ColumnView<'_>> {
        let offsets = self.offsets.as_ref().and_then(|o| bytemuck::try_cast_slice(bytes(o)).ok());
        let validity = self.validity.as_ref().map(bytes);
        ColumnView::checked(self.datatype, bytes(&self.values), offsets, validity, cancel)
    }
}

/// The views of several columns, checked, which takes a while for texts; errors have the column's name in front.
pub(crate) fn views<'a>(held: &'a [(String, Held)], call: &Call) -> Result<Vec<(String, ColumnView<'a>)>> {
    held.iter().zip(columns(held, call)?).map(|((name, _), view)| Ok((name.clone(), view))).collect()
}

/// As [`views`], without the names.
pub(crate) fn columns<'a>(held: &'a [(String, Held)], call: &Call) -> Result<Vec<ColumnView<'a>>> {
    let cancel = call.cancel.as_ref();
    held.iter().map(|(name, held)| held.view(cancel).map_err(|e| e.context(format!("{name:?}")))).collect()
}

/// A column of the engine as buffers; the memory of its values goes back to `home` when Python lets go of it.
pub(crate) fn out(py: Python<'_>, column: Column, home: Option<&Arc<Arena>>) -> PyResult<Out> {
    let (values, offsets, validity) = column.into_parts();
    let offsets = offsets.map(|o| Py::new(py, Buffer::from(o))).transpose()?;
    let validity = validity.map(|v| Py::new(py, Buffer::from(v))).transpose()?;
    Ok((Py::new(py, Buffer::with_home(values, home.cloned()))?, offsets, validity))
}

/// Buffers of the caller, to be filled.
pub(crate) struct Outs {
    held: Vec<PyUntypedBuffer>,
}

impl Outs {
    /// Takes hold of writable, contiguous buffers, no two of which overlap.
    pub(crate) fn new(py: Python<'_>, given: &[Bound<'_, PyAny>]) -> PyResult<Self> {
        let held: Vec<PyUntypedBuffer> = given.iter().map(PyUntypedBuffer::get).collect::<PyResult<_>>()?;
        if held.iter().any(|b| b.readonly() || !(b.is_c_contiguous() || b.is_fortran_contiguous())) {
            return Err(input(py, "a buffer to be filled must be writable and contiguous"));
        }
        let mut spans: Vec<(usize, usize)> = held.iter().map(|b| (b.buf_ptr() as usize, b.len_bytes())).collect();
        spans.sort_unstable();
        if spans.windows(2).any(|w| matches!(w, [(a, len), (b, _)] if a + len > *b)) {
            return Err(input(py, "two buffers to be filled overlap"));
        }
        Ok(Self { held })
    }

    /// Their bytes.
    pub(crate) fn slices(&mut self) -> Vec<&mut [u8]> {
        let slice = |b: &PyUntypedBuffer| {
            if b.len_bytes() == 0 {
                return Default::default();
            }
            // SAFETY: the buffer is held, writable and contiguous, and overlaps no other one here; `self` is borrowed
            // mutably, so no other slice of it exists. Another thread that uses the array meanwhile breaks the
            // contract that every NumPy call with `out=` documents.
            unsafe { std::slice::from_raw_parts_mut(b.buf_ptr().cast::<u8>(), b.len_bytes()) }
        };
        self.held.iter().map(slice).collect()
    }
}
