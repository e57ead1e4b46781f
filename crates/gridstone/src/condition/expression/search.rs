//! What is looked for in texts: patterns, beginnings, ends and parts.

use crate::base::{Error, Result};
use regex::{Regex, RegexBuilder};

/// The largest size of a compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// A pattern and what it was made of.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    source: String,
    regex: Regex,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

/// A test of a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Search {
    Matches(Pattern),
    StartsWith(String),
    EndsWith(String),
    Contains(String),
}

impl Search {
    /// Whether there is a test of this name.
    pub(super) fn is_known(name: &str) -> bool {
        matches!(name, "like" | "ilike" | "starts_with" | "ends_with" | "contains" | "regexp_matches")
    }

    /// The test `name` for `sought`.
    ///
    /// # Errors
    /// Input: there is no such test, or `sought` is no pattern.
    pub(super) fn new(name: &str, sought: &str) -> Result<Self> {
        let pattern = |source: String| {
            let built = RegexBuilder::new(&source).size_limit(PATTERN_BYTES_MAX).build();
            let regex =
                built.map_err(|e| Error::input(format!("{name}: {sought:?} is no pattern that is taken: {e}")))?;
            Ok(Self::Matches(Pattern { source, regex }))
        };
        match name {
            "like" => pattern(format!("(?s)\\A{}\\z", of_like(sought)?)),
            "ilike" => pattern(format!("(?si)\\A{}\\z", of_like(sought)?)),
            "regexp_matches" => pattern(sought.to_owned()),
            "starts_with" => Ok(Self::StartsWith(sought.to_owned())),
            "ends_with" => Ok(Self::EndsWith(sought.to_owned())),
            "contains" => Ok(Self::Contains(sought.to_owned())),
            _ => Err(Error::input(format!("there is no test of texts {name:?}"))),
        }
    }

    pub(super) fn holds(&self, text: &str) -> bool {
        match self {
            Self::Matches(pattern) => pattern.regex.is_match(text),
            Self::StartsWith(start) => text.starts_with(start),
            Self::EndsWith(end) => text.ends_with(end),
            Self::Contains(part) => text.contains(part),
        }
    }
}

/// The regular expression of a pattern of `like`.
fn of_like(sought: &str) -> Result<String> {
    let mut source = String::with_capacity(sought.len());
    let mut letters = sought.chars();
    while let Some(letter) = letters.next() {
        let plain = match letter {
            '%' => {
                source.push_str(".*");
                continue;
            }
            '_' => {
                source.push('.');
                continue;
            }
            '\\' => letters.next().ok_or_else(|| {
                Error::input(format!("the pattern {sought:?} ends with \\, which stands before %, _ or \\; write \\\\"))
            })?,
            other => other,
        };
        source.push_str(&regex::escape(plain.encode_utf8(&mut [0; 4])));
    }
    Ok(source)
}
