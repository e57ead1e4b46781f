//! Tests of texts: patterns of SQL, regular expressions, parts of texts.

use crate::base::{Error, Result};
use regex::{Regex, RegexBuilder};

/// The most bytes of memory that a compiled pattern takes, and again as many for its states.
const PATTERN_BYTES_MAX: usize = 4 << 20;

/// What a text is tested for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::condition) enum Search {
    Like,
    /// As `Like`, in any case of letters.
    ILike,
    /// Whether a part of the text matches a regular expression.
    Regexp,
    StartsWith,
    EndsWith,
    Contains,
}

impl Search {
    /// The test of this name.
    pub(in crate::condition) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "like" => Self::Like,
            "ilike" => Self::ILike,
            "regexp_matches" => Self::Regexp,
            "starts_with" => Self::StartsWith,
            "ends_with" => Self::EndsWith,
            "contains" => Self::Contains,
            _ => return None,
        })
    }

    /// Whether the second value must be a literal, since it is compiled.
    pub(super) fn is_compiled(self) -> bool {
        matches!(self, Self::Like | Self::ILike | Self::Regexp)
    }

    /// Whether `text` passes; for tests that are not compiled.
    pub(super) fn holds(self, text: &str, part: &str) -> bool {
        match self {
            Self::StartsWith => text.starts_with(part),
            Self::EndsWith => text.ends_with(part),
            _ => text.contains(part),
        }
    }
}

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(in crate::condition) struct Pattern {
    search: Search,
    written: String,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    Equal(String),
    Start(String),
    End(String),
    Part(String),
    Regex(Regex),
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        (self.search, &self.written) == (other.search, &other.written)
    }
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// Input: it is none, or takes too much memory.
    pub(in crate::condition) fn new(search: Search, written: &str) -> Result<Self> {
        let test = match search {
            Search::Like => like(written, false)?,
            Search::ILike => like(written, true)?,
            Search::Regexp => Test::Regex(compiled(written, written, false)?),
            Search::StartsWith => Test::Start(written.to_owned()),
            Search::EndsWith => Test::End(written.to_owned()),
            Search::Contains => Test::Part(written.to_owned()),
        };
        Ok(Self { search, written: written.to_owned(), test })
    }

    /// Whether `text` passes.
    pub(super) fn holds(&self, text: &str) -> bool {
        match &self.test {
            Test::Equal(whole) => text == whole,
            Test::Start(part) => text.starts_with(part.as_str()),
            Test::End(part) => text.ends_with(part.as_str()),
            Test::Part(part) => text.contains(part.as_str()),
            Test::Regex(regex) => regex.is_match(text),
        }
    }

    /// What the texts that pass begin with, if nothing else is asked of them.
    pub(in crate::condition) fn start(&self) -> Option<&str> {
        if let Test::Start(part) = &self.test { Some(part) } else { None }
    }
}

fn compiled(pattern: &str, written: &str, any_case: bool) -> Result<Regex> {
    let mut builder = RegexBuilder::new(pattern);
    builder.case_insensitive(any_case).size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX);
    builder.build().map_err(|e| {
        let shown: String = written.chars().take(60).collect();
        let reason = e.to_string();
        let reason = reason.lines().last().unwrap_or_default().trim().trim_start_matches("error: ").to_owned();
        Error::input(format!("{shown:?} is no pattern that can be searched: {reason}")).with_source(e)
    })
}

/// A piece of a pattern of SQL.
#[derive(Debug, PartialEq)]
enum Piece {
    Text(String),
    /// `_`
    One,
    /// `%`
    Any,
}

fn pieces(written: &str) -> Result<Vec<Piece>> {
    let mut found: Vec<Piece> = Vec::new();
    let mut letters = written.chars();
    while let Some(letter) = letters.next() {
        let letter = match letter {
            '%' => {
                if found.last() != Some(&Piece::Any) {
                    found.push(Piece::Any);
                }
                continue;
            }
            '_' => {
                found.push(Piece::One);
                continue;
            }
            '\\' => letters.next().ok_or_else(|| {
                Error::input(format!("the pattern {written:?} ends with \"\\\"; a \"\\\" itself is written twice"))
            })?,
            other => other,
        };
        match found.last_mut() {
            Some(Piece::Text(text)) => text.push(letter),
            _ => found.push(Piece::Text(letter.to_string())),
        }
    }
    Ok(found)
}

fn like(written: &str, any_case: bool) -> Result<Test> {
    let pieces = pieces(written)?;
    if !any_case {
        match pieces.as_slice() {
            [] => return Ok(Test::Equal(String::new())),
            [Piece::Text(text)] => return Ok(Test::Equal(text.clone())),
            [Piece::Text(text), Piece::Any] => return Ok(Test::Start(text.clone())),
            [Piece::Any] => return Ok(Test::Start(String::new())),
            [Piece::Any, Piece::Text(text)] => return Ok(Test::End(text.clone())),
            [Piece::Any, Piece::Text(text), Piece::Any] => return Ok(Test::Part(text.clone())),
            _ => {}
        }
    }
    let parts = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => regex::escape(text),
        Piece::One => ".".to_owned(),
        Piece::Any => ".*".to_owned(),
    });
    let pattern = format!("(?s)\\A{}\\z", parts.collect::<String>());
    compiled(&pattern, written, any_case).map(Test::Regex)
}
