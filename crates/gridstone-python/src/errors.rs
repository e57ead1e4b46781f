//! Errors of the engine as the classes of `gridstone.errors`.

use gridstone::base::{Error, ErrorKind};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

fn class_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Schema => "SchemaError",
        ErrorKind::Bounds => "BoundsError",
        ErrorKind::NotFound => "NotFoundError",
        ErrorKind::Exists => "ExistsError",
        ErrorKind::Conflict => "ConflictError",
        ErrorKind::CommitUnknown => "CommitUnknownError",
        ErrorKind::Corruption => "CorruptionError",
        ErrorKind::SourceChanged => "SourceChangedError",
        ErrorKind::SnapshotExpired => "SnapshotExpiredError",
        ErrorKind::Budget => "BudgetError",
        ErrorKind::Storage => "StorageError",
        ErrorKind::Access => "AccessError",
        ErrorKind::Unsupported => "UnsupportedError",
        ErrorKind::Input => "InputError",
        _ => "GridstoneError",
    }
}

/// The Python exception of an engine's error.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    if error.kind() == ErrorKind::Cancelled {
        return PyKeyboardInterrupt::new_err(error.message().to_owned());
    }
    let made = py.import("gridstone.errors").and_then(|m| {
        let made = m.getattr(class_name(error.kind()))?.call1((error.message(),))?;
        if let Some(number) = error.os_error()
            && matches!(error.kind(), ErrorKind::Storage | ErrorKind::Access)
        {
            made.setattr("errno", number)?;
        }
        Ok(made)
    });
    made.map_or_else(|failed| failed, PyErr::from_value)
}

/// The kind of an exception that a decoder raises about what it was given, or needs; `None` if it is another one.
pub(crate) fn told_kind(py: Python<'_>, error: &PyErr) -> Option<ErrorKind> {
    let module = py.import("gridstone.errors").ok()?;
    let told = [ErrorKind::Unsupported, ErrorKind::Corruption, ErrorKind::Storage, ErrorKind::Budget];
    told.into_iter().find(|kind| module.getattr(class_name(*kind)).is_ok_and(|class| error.is_instance(py, &class)))
}

/// An Input error of the glue itself.
pub(crate) fn input(py: Python<'_>, message: &str) -> PyErr {
    raise(py, &Error::input(message))
}
