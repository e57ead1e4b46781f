//! Keys of sealed stores: bytes, text, or a function that is asked.

use crate::errors::{input, raise};
use gridstone::base::{self, Error, Key, KeyId, Result};
use gridstone::engine;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::sync::Arc;

/// What a context was given as its key. Shows no key to Python: only the id of one that is fixed.
#[pyclass(frozen, module = "gridstone._native")]
pub(crate) struct Keys {
    pub(crate) inner: Arc<dyn base::Keys>,
    id: Option<KeyId>,
}

#[pymethods]
impl Keys {
    #[new]
    fn new(py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Self> {
        if key.is_callable() {
            return Ok(Self { inner: Arc::new(Function(key.clone().unbind())), id: None });
        }
        let Some(found) = key_of(key) else {
            return Err(input(py, &format!("key is 32 bytes, text or a function, not {}", key.get_type().name()?)));
        };
        found.and_then(fixed).map_err(|e| raise(py, &e))
    }

    /// The id of a fixed key, in hexadecimal digits.
    #[getter]
    fn id(&self) -> Option<String> {
        self.id.map(|id| id.to_string())
    }
}

fn fixed(key: Key) -> Result<Keys> {
    Ok(Keys { id: Some(engine::key_id(&key)?), inner: Arc::new(key) })
}

/// The key that bytes or text are; `None` for anything else.
fn key_of(value: &Bound<'_, PyAny>) -> Option<Result<Key>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Some(Key::from_slice(bytes.as_bytes()));
    }
    let text = value.cast::<PyString>().ok()?;
    Some(
        text.to_str()
            .map_err(|e| Error::input("a key is text that is not Unicode").with_source(e))
            .and_then(Key::parse),
    )
}

/// The key in the environment, if one is set.
#[pyfunction]
pub(crate) fn environment_keys(py: Python<'_>) -> PyResult<Option<Keys>> {
    engine::key_from_environment().and_then(|key| key.map(fixed).transpose()).map_err(|e| raise(py, &e))
}

/// A Python function that is given an id, or None for the current key.
struct Function(Py<PyAny>);

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Function")
    }
}

impl base::Keys for Function {
    fn key(&self, id: Option<KeyId>) -> Result<Key> {
        Python::attach(|py| {
            let asked = id.map(|id| PyBytes::new(py, &id.0));
            let given = self.0.bind(py).call1((asked,)).map_err(|error| refused(py, error))?;
            let kind = || given.get_type().name().map_or_else(|_| "something".to_owned(), |name| name.to_string());
            let found =
                key_of(&given).unwrap_or_else(|| Err(Error::input(format!("it is 32 bytes or text, not {}", kind()))));
            found.map_err(|e| Error::access(format!("the function given as key= returned no key: {e}")))
        })
    }
}

fn refused(py: Python<'_>, error: PyErr) -> Error {
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        return Error::cancelled("stopped while a key was asked for").with_source(error);
    }
    Error::access(format!("the function given as key= raised {error}")).with_source(error)
}
