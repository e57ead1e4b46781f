//! Columns of Python buffers as views for the engine, and columns of the engine as buffers for Python.

use crate::buffer::Buffer;
use crate::errors::input;
use gridstone::base::{Cancel, Result};
use gridstone::engine::{Call, Column, ColumnView};
use gridstone::schema::Datatype;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;

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

/// A column of the engine as buffers.
pub(crate) fn out(py: Python<'_>, column: Column) -> PyResult<Out> {
    let (values, offsets, validity) = column.into_parts();
    let offsets = offsets.map(|o| Py::new(py, Buffer::from(o))).transpose()?;
    let validity = validity.map(|v| Py::new(py, Buffer::from(v))).transpose()?;
    Ok((Py::new(py, Buffer::from(values))?, offsets, validity))
}
