//! Memory owned by the engine, lent to Python through the buffer protocol without a copy.

use gridstone::base::AlignedBuf;
use gridstone::engine::Arena;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_int;
use std::sync::Arc;

enum Memory {
    Aligned(AlignedBuf),
    Words(Vec<u64>),
    Flags(Vec<u8>),
}

/// Bytes owned by the core. Never resized or moved after it was made, so that pointers into it stay good.
#[pyclass(module = "gridstone._native")]
pub(crate) struct Buffer {
    memory: Memory,
    home: Option<Arc<Arena>>,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let (Memory::Aligned(bytes), Some(home)) = (&mut self.memory, &self.home) {
            home.give(std::mem::take(bytes));
        }
    }
}

impl From<AlignedBuf> for Buffer {
    fn from(bytes: AlignedBuf) -> Self {
        Self::with_home(bytes, None)
    }
}

impl From<Vec<u64>> for Buffer {
    fn from(words: Vec<u64>) -> Self {
        Self { memory: Memory::Words(words), home: None }
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(flags: Vec<u8>) -> Self {
        Self { memory: Memory::Flags(flags), home: None }
    }
}

impl Buffer {
    /// A buffer whose memory is given to `home` at the end.
    pub(crate) fn with_home(bytes: AlignedBuf, home: Option<Arc<Arena>>) -> Self {
        Self { memory: Memory::Aligned(bytes), home }
    }

    fn bytes(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Aligned(bytes) => bytes.as_mut_slice(),
            Memory::Words(words) => bytemuck::cast_slice_mut(words),
            Memory::Flags(flags) => flags,
        }
    }
}

#[pymethods]
impl Buffer {
    fn __len__(&mut self) -> usize {
        self.bytes().len()
    }

    /// # Safety
    /// Called by the interpreter only, with a view to be filled.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("no view was given"));
        }
        let (pointer, len) = {
            let mut this = slf.borrow_mut();
            let bytes = this.bytes();
            (bytes.as_mut_ptr(), bytes.len())
        };
        let len = isize::try_from(len).map_err(|_| PyBufferError::new_err("the buffer is too long"))?;
        // SAFETY: `view` was checked; the memory lives as long as the exporter, of which PyBuffer_FillInfo takes a new
        // reference, and is never resized or moved while the object lives. Python code that writes through one view
        // and reads through another is as safe as with any NumPy array: both hold the GIL.
        let status = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), pointer.cast(), len, 0, flags) };
        if status == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
