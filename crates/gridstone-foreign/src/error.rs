//! The error of the index: a kind, a message, and the cause.

use std::fmt;

/// The result of every fallible call of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, from the caller's point of view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes could not be read.
    Io,
    /// The file is of another format.
    Format,
    /// The file contradicts its format.
    Damaged,
    /// Valid, but not read by this crate.
    Unsupported,
    /// The file asks for more memory or work than the index spends on it.
    Limit,
    /// The caller's function that receives chunks failed.
    Caller,
}

/// An error: kind, message and cause.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error of `kind` with `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// The failure of a function that was called with chunks.
    pub fn caller(source: Box<dyn std::error::Error + Send + Sync>) -> Self {
        Self { kind: ErrorKind::Caller, message: source.to_string(), source: Some(source) }
    }

    pub(crate) fn io(what: &str, source: std::io::Error) -> Self {
        Self { kind: ErrorKind::Io, message: format!("{what}: {source}"), source: Some(Box::new(source)) }
    }

    pub(crate) fn damaged(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Damaged, message)
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    /// What the caller may do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The cause, to be given on by the one who passed the function.
    pub fn into_source(self) -> Option<Box<dyn std::error::Error + Send + Sync>> {
        self.source
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
