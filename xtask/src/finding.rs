//! A finding of a rule: its location, what is wrong, why, and what to do.

/// One violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Relative to the repository's root, with `/`.
    pub(crate) path: String,
    /// From 1.
    pub(crate) line: usize,
    /// What was found, why it matters, what to do.
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}
