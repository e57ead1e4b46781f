//! The files to check, read once. It is the only module here that uses the disk.

use crate::floors::Floors;
use crate::lex::{Language, Span, SpanKind, spans};
use crate::packages::Packages;
use std::path::Path;
use std::process::Command;

/// Every text file that git tracks or would track, and the tables of floors and packages.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) files: Vec<Source>,
    pub(crate) floors: Floors,
    pub(crate) packages: Packages,
}

/// One text file and its views.
///
/// `code` and `comments` have the length and the lines of `text`; everything else is blanked. Strings are kept in
/// `code` as a pair of quotes.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) code: String,
    pub(crate) comments: String,
    pub(crate) spans: Vec<Span>,
    line_starts: Vec<usize>,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let spans = Language::of(path).map(|language| spans(language, text)).unwrap_or_default();
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code: without_spans(text, &spans),
            comments: only_comments(text, &spans),
            spans,
            line_starts,
        }
    }

    /// The line, from 1, of the byte at `offset`.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset)
    }

    /// The path's extension after the last dot; empty if there is none.
    pub(crate) fn extension(&self) -> &str {
        self.file_name().rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.extension() == "rs"
    }

    pub(crate) fn is_python(&self) -> bool {
        matches!(self.extension(), "py" | "pyi")
    }

    pub(crate) fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// The folder's path, without a slash at its end; empty at the root.
    pub(crate) fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

impl Tree {
    /// Reads the repository of the current directory.
    pub(crate) fn read() -> Result<Self, String> {
        let root = git(&["rev-parse", "--show-toplevel"])?;
        let root = Path::new(root.trim_end());
        let table = |name: &str| {
            let path = root.join("xtask").join(name);
            std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let (floors, packages) = (Floors::parse(&table("floors.toml")?)?, Packages::parse(&table("packages.toml")?)?);
        let top = root.to_string_lossy();
        let listed = git(&["-C", &top, "ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
        let mut files: Vec<Source> = listed
            .split('\0')
            .filter(|path| !path.is_empty() && !is_data(path))
            .filter_map(|path| Some(Source::new(path, &std::fs::read_to_string(root.join(path)).ok()?)))
            .collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files, floors, packages })
    }

    /// The file at `path`.
    pub(crate) fn get(&self, path: &str) -> Option<&Source> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|file| file.is_rust())
    }

    pub(crate) fn python(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|file| file.is_python())
    }

    /// A tree of samples under the repository's own tables.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let floors = Floors::parse(include_str!("../floors.toml")).unwrap();
        let packages = Packages::parse(include_str!("../packages.toml")).unwrap();
        Self { files: files.iter().map(|(path, text)| Source::new(path, text)).collect(), floors, packages }
    }
}

/// Writes a file at `path` from the root of the repository of the current directory.
pub(crate) fn write(path: &str, text: &str) -> Result<(), String> {
    let root = git(&["rev-parse", "--show-toplevel"])?;
    std::fs::write(Path::new(root.trim_end()).join(path), text).map_err(|error| format!("{path}: {error}"))
}

/// Whether a file is data, as vectors and corpora are: only the programs beside them are read.
fn is_data(path: &str) -> bool {
    let data = path.starts_with("vectors/") || path.starts_with("fuzz/corpus/");
    data && !matches!(path.rsplit_once('.'), Some((_, "py" | "rs" | "md")))
}

fn git(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git").args(arguments).output().map_err(|error| format!("cannot run git: {error}"))?;
    if !output.status.success() {
        return Err(format!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("git {}: {error}", arguments.join(" ")))
}

fn blank(text: &str, keep: impl Fn(usize) -> Option<u8>) -> String {
    let bytes = text.bytes().enumerate().map(|(at, byte)| match keep(at) {
        _ if byte == b'\n' => byte,
        Some(shown) => shown,
        None => b' ',
    });
    // Spans begin and end at character borders, so whole characters are kept or blanked.
    String::from_utf8(bytes.collect()).unwrap_or_default()
}

fn without_spans(text: &str, spans: &[Span]) -> String {
    let bytes = text.as_bytes();
    let mut shown: Vec<Option<u8>> = bytes.iter().copied().map(Some).collect();
    for span in spans {
        shown.get_mut(span.range()).unwrap_or_default().fill(None);
        if span.kind == SpanKind::Text {
            for edge in [span.start, span.end.saturating_sub(1)] {
                shown.get_mut(edge..=edge).unwrap_or_default().fill(Some(b'"'));
            }
        }
    }
    blank(text, |at| shown.get(at).copied().flatten())
}

fn only_comments(text: &str, spans: &[Span]) -> String {
    let mut shown = vec![None; text.len()];
    for span in spans.iter().filter(|span| span.kind != SpanKind::Text) {
        let bytes = text.as_bytes().get(span.range()).unwrap_or_default();
        for (slot, byte) in shown.get_mut(span.range()).unwrap_or_default().iter_mut().zip(bytes) {
            *slot = Some(*byte);
        }
    }
    blank(text, |at| shown.get(at).copied().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_keep_lines_and_split_code_from_comments() {
        let source = Source::new("a.rs", "let s = \"// é\"; // ü {\nfn f() {}\n");
        assert_eq!(source.code, "let s = \"     \";        \nfn f() {}\n");
        assert_eq!(source.comments.trim(), "// ü {");
        assert_eq!(source.line_of(0), 1);
        assert_eq!(source.line_of(source.text.find("fn f").unwrap()), 2);
    }

    #[test]
    fn vectors_are_data_but_their_reader_is_code() {
        assert!(is_data("vectors/GS0/dense/_log/1"));
        assert!(is_data("vectors/GS0/dense/expect.json"));
        assert!(!is_data("vectors/reader.py"));
        assert!(!is_data("python/gridstone/cli.py"));
    }
}
