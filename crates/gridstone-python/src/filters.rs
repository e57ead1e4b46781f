//! User-defined filters: a pair of Python callables as a filter of the engine.
//!
//! The calling thread and those of the pool call them, each taking the GIL for it: no call of the glue waits for the engine while it holds that.

use crate::errors::raise;
use gridstone::base::{Error, ErrorKind, Result};
use gridstone::engine::{self, UserFilter};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

struct Callables {
    encode: Py<PyAny>,
    decode: Py<PyAny>,
}

impl UserFilter for Callables {
    fn encode(&self, input: &[u8], width: usize) -> Result<Vec<u8>> {
        called((&self.encode, "encode", ErrorKind::Input), input, width)
    }

    fn decode(&self, input: &[u8], width: usize, _len_max: usize) -> Result<Vec<u8>> {
        called((&self.decode, "decode", ErrorKind::Corruption), input, width)
    }
}

/// What a callable makes of `input`. An exception is an error of `kind`; one that stops the program stops the work.
fn called((callable, what, kind): (&Py<PyAny>, &str, ErrorKind), input: &[u8], width: usize) -> Result<Vec<u8>> {
    let made = Python::try_attach(|py| {
        let made = callable.bind(py).call1((PyBytes::new(py, input), width)).and_then(|made| bytes_of(&made));
        made.map_err(|error| {
            let stops = !error.is_instance_of::<PyException>(py);
            let message = match stops {
                true => format!("{what} was stopped: {error}"),
                false => format!("{what} of {} bytes raised {error}", input.len()),
            };
            Error::new(if stops { ErrorKind::Cancelled } else { kind }, message).with_source(error)
        })
    });
    made.unwrap_or_else(|| Err(Error::unsupported(format!("{what}: Python is shutting down"))))
}

fn bytes_of(made: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(bytes) = made.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    let view = made.py().import("builtins")?.getattr("memoryview")?.call1((made,))?;
    Ok(view.call_method0("tobytes")?.cast::<PyBytes>()?.as_bytes().to_vec())
}

#[pyfunction]
pub(crate) fn register_filter(
    py: Python<'_>,
    id: &str,
    encode: Py<PyAny>,
    decode: Py<PyAny>,
    overwrite: bool,
) -> PyResult<()> {
    engine::register_filter(id, Arc::new(Callables { encode, decode }), overwrite).map_err(|e| raise(py, &e))
}

#[pyfunction]
pub(crate) fn registered_filters() -> Vec<String> {
    engine::registered_filters()
}
