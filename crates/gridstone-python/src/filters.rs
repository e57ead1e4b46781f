//! User-defined filters: a pair of Python callables as a filter of the engine; and filters of foreign chunks that
//! Python libraries decode, which `gridstone.foreign.decoders` finds when the first chunk needs them.
//!
//! The calling thread and those of the pool call them, each taking the GIL for it: no call of the glue waits for the engine while it holds that.

use crate::errors::{raise, told_kind};
use gridstone::base::{Error, ErrorKind, Result};
use gridstone::engine::{self, FilterFamily, UserFilter};
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

/// The families of filters that are decoded in Python.
const FAMILIES: [&str; 2] = ["hdf5", "numcodecs"];

/// A family of filters: what `gridstone.foreign.decoders` has under an id.
struct Family;

impl FilterFamily for Family {
    fn filter(&self, id: &str) -> Result<Arc<dyn UserFilter>> {
        let made = Python::try_attach(|py| {
            let found = py.import("gridstone.foreign.decoders").and_then(|m| m.getattr("decoder")?.call1((id,)));
            found.map(Bound::unbind).map_err(|error| told(py, error, ErrorKind::Unsupported))
        });
        let callable = made.unwrap_or_else(|| Err(Error::unsupported("Python is shutting down")))?;
        Ok(Arc::new(Decoder { callable }))
    }
}

/// A callable of a chunk's bytes, the filter's parameters, and the most bytes that it may give.
struct Decoder {
    callable: Py<PyAny>,
}

impl UserFilter for Decoder {
    fn encode(&self, _input: &[u8], _width: usize) -> Result<Vec<u8>> {
        Err(Error::unsupported("this filter only decodes"))
    }

    fn decode(&self, input: &[u8], _width: usize, len_max: usize) -> Result<Vec<u8>> {
        self.decode_foreign(input, "", len_max)
    }

    fn decode_foreign(&self, input: &[u8], parameters: &str, len_max: usize) -> Result<Vec<u8>> {
        let made = Python::try_attach(|py| {
            let made = self.callable.bind(py).call1((PyBytes::new(py, input), parameters, len_max));
            let made = made.and_then(|made| bytes_of(&made));
            made.map_err(|error| told(py, error, ErrorKind::Corruption))
        });
        made.unwrap_or_else(|| Err(Error::unsupported("Python is shutting down")))
    }
}

/// What a decoder raised, of the kind that it is, or else of `kind`; what stops the program stops the work.
fn told(py: Python<'_>, error: PyErr, kind: ErrorKind) -> Error {
    if !error.is_instance_of::<PyException>(py) {
        return Error::new(ErrorKind::Cancelled, format!("decoding was stopped: {error}")).with_source(error);
    }
    match told_kind(py, &error) {
        Some(kind) => Error::new(kind, error.value(py).to_string()).with_source(error),
        None => Error::new(kind, error.to_string()).with_source(error),
    }
}

/// Makes the families known to this process; no library is imported before a chunk needs it.
pub(crate) fn register_families(py: Python<'_>) -> PyResult<()> {
    let register = |name: &str| engine::register_filter_family(name, Arc::new(Family));
    FAMILIES.into_iter().try_for_each(register).map_err(|e| raise(py, &e))
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
