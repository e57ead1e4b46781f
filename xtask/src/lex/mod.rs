//! Lexes Rust and Python just enough to separate code from comments and strings.
//!
//! These are no parsers: files that do not compile are read too, and the worst outcome is a wrong finding.

mod paths;
mod python;
mod python_imports;
mod rust;
mod tokens;

pub(crate) use paths::{UsedPath, used_paths};
pub(crate) use python_imports::python_imports;
pub(crate) use tokens::{InlineModule, Token, inline_modules, matching, tokens};

use std::ops::Range;

/// The supported languages. C comments and strings are read like Rust's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    Python,
}

impl Language {
    pub(crate) fn of(path: &str) -> Option<Self> {
        match path.rsplit_once('.')?.1 {
            "rs" | "c" | "h" => Some(Self::Rust),
            "py" | "pyi" => Some(Self::Python),
            _ => None,
        }
    }
}

/// The kind of a span that is not code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// A plain comment.
    Comment,
    /// A doc comment or a docstring.
    Doc,
    /// A string or character literal.
    Text,
}

/// A range of bytes that is not code, including delimiters; a line comment ends before its newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: SpanKind,
}

impl Span {
    pub(crate) fn range(&self) -> Range<usize> {
        self.start..self.end
    }
}

/// The comments and strings of `text`, in order.
pub(crate) fn spans(language: Language, text: &str) -> Vec<Span> {
    match language {
        Language::Rust => rust::spans(text),
        Language::Python => python::spans(text),
    }
}

/// The end of the line with byte `at`, without its newline.
fn line_end(text: &str, at: usize) -> usize {
    tail(text, at).find('\n').map_or(text.len(), |length| at + length)
}

/// `text` from `at` on; empty past its end.
fn tail(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or_default()
}

/// The byte after the literal whose body begins at `from` and that `close` ends; `\` escapes one byte.
fn escaped_end(text: &str, from: usize, close: &str) -> usize {
    let mut at = from;
    while at < text.len() {
        let rest = text.as_bytes().get(at..).unwrap_or_default();
        if rest.starts_with(close.as_bytes()) {
            return at + close.len();
        }
        at += if rest.first() == Some(&b'\\') { 2 } else { 1 };
    }
    text.len()
}
