//! The one error type of the engine: a kind that answers "what would the caller do?", a message, and the error
//! underneath. The message says what was asked, what was found and what to do.

use super::printable;
use std::borrow::Cow;
use std::fmt;

/// The result of every fallible call of the engine.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, from the caller's point of view. Each kind is one Python exception class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The requested schema is contradictory or unsupported, or data does not fit it.
    Schema,
    /// A position or coordinate lies outside the domain.
    Bounds,
    /// The store, array, group, attribute or version does not exist.
    NotFound,
    /// The object to create exists.
    Exists,
    /// Another commit made this one impossible.
    Conflict,
    /// It is unknown whether the commit happened; nothing was deleted.
    CommitUnknown,
    /// Bytes on disk are not what was written.
    Corruption,
    /// A foreign source changed since it was attached.
    SourceChanged,
    /// The requested version has been vacuumed.
    SnapshotExpired,
    /// The work does not fit into the memory budget.
    Budget,
    /// The storage refused: full, read-only, unreachable.
    Storage,
    /// Keys, credentials or permissions are missing or wrong.
    Access,
    /// Valid, but not supported by this version or this storage.
    Unsupported,
    /// The caller's values are wrong: type, shape, NaN, duplicates. The message names the row and column where known.
    Input,
    /// The caller cancelled the work.
    Cancelled,
}

/// An error: kind, message (without control characters; on one line, unless made of lines), and cause.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    without_effect: bool,
    foreign: bool,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error of `kind` with `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: shown(message.into()), without_effect: false, foreign: false, source: None }
    }

    /// An error of `kind` whose message is `lines`, one below the other.
    pub fn of_lines<const N: usize>(kind: ErrorKind, lines: [String; N]) -> Self {
        Self { kind, message: lines.map(shown).join("\n"), without_effect: false, foreign: false, source: None }
    }

    /// The same error with its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same error with `context` before its message: "context: message".
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{}: {}", shown(context.to_string()), self.message);
        self
    }

    /// The same error, marked as that of a write that certainly did not happen, and will not.
    #[must_use]
    pub fn without_effect(mut self) -> Self {
        self.without_effect = true;
        self
    }

    /// Whether the write that failed certainly did not happen, and will not. For other errors this is unknown.
    pub fn had_no_effect(&self) -> bool {
        self.without_effect
    }

    /// The same error, marked as that of an object that was read and belongs to another store than the known one.
    #[must_use]
    pub fn foreign(mut self) -> Self {
        self.foreign = true;
        self
    }

    /// Whether an object was read that belongs to another store than the known one.
    pub fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// What the caller would do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the error may come from a missing object, which a vacuum may have removed.
    pub fn may_be_missing(&self) -> bool {
        matches!(self.kind, ErrorKind::NotFound | ErrorKind::Corruption)
    }

    /// The message, without the causes.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The operating system's error number, if one of the causes has it.
    pub fn os_error(&self) -> Option<i32> {
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            if let Some(io) = error.downcast_ref::<std::io::Error>() {
                return io.raw_os_error();
            }
            cause = error.source();
        }
        None
    }
}

macro_rules! constructors {
    ($($name:ident => $kind:ident),* $(,)?) => {
        impl Error {
            $(#[doc = concat!("An error of kind [`ErrorKind::", stringify!($kind), "`].")]
            pub fn $name(message: impl Into<String>) -> Self {
                Self::new(ErrorKind::$kind, message)
            })*
        }
    };
}

constructors! {
    schema => Schema, bounds => Bounds, not_found => NotFound, exists => Exists, conflict => Conflict,
    commit_unknown => CommitUnknown, corruption => Corruption, snapshot_expired => SnapshotExpired,
    source_changed => SourceChanged,
    budget => Budget, storage => Storage, access => Access, unsupported => Unsupported, input => Input,
    cancelled => Cancelled,
}

/// A message in printable form: names in it may contain any character.
fn shown(message: String) -> String {
    match printable(&message) {
        Cow::Borrowed(_) => message,
        Cow::Owned(shown) => shown,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|s| s.as_ref() as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_does_nothing_to_a_terminal() {
        let error = Error::input("no /a\u{1b}[2J\nb").context("in \u{202e}c");
        assert_eq!(error.message(), "in \\u{202e}c: no /a\\u{1b}[2J\\nb");
        let lines = Error::of_lines(ErrorKind::Input, ["what\n".to_owned(), "  ^".to_owned()]).context("c");
        assert_eq!(lines.message(), "c: what\\n\n  ^");
    }
}
