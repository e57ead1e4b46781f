//! The prose of a file, as sentences: comments of Rust, comments and docstrings of Python, and Markdown.
//!
//! Comments are parsed like Markdown: a blank line, a heading or a list item ends a paragraph. Code blocks, tables,
//! headings, HTML comments and generated text between `<!-- x: begin -->` and `<!-- x: end -->` are ignored. Code in
//! backticks counts as one word, a link as its text.

use crate::lex::{Span, SpanKind};
use crate::tree::Source;

/// One sentence, joined to one line, with the line of the file that it begins on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sentence {
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl Sentence {
    /// How many words it has.
    pub(crate) fn words(&self) -> usize {
        words(&without_links(&self.text))
    }

    /// Whether most of it is the text of links: a list of pages, not a sentence.
    pub(crate) fn is_list_of_links(&self) -> bool {
        2 * words(&outside_links(&self.text)) < self.words()
    }
}

/// The sentences of a file, in order; none for files of other kinds.
pub(crate) fn sentences(source: &Source) -> Vec<Sentence> {
    let blocks = match source.extension() {
        "md" => vec![source.text.lines().enumerate().map(|(at, line)| (at + 1, line.to_owned())).collect()],
        _ if source.is_rust() || source.is_python() => comment_blocks(source),
        _ => Vec::new(),
    };
    blocks.iter().flat_map(|block| paragraphs(block)).flat_map(|paragraph| split(&paragraph)).collect()
}

type Lines = Vec<(usize, String)>;

/// Comments on consecutive lines are one block; a docstring is one.
fn comment_blocks(source: &Source) -> Vec<Lines> {
    let mut blocks: Vec<Lines> = Vec::new();
    let mut before: Option<&Span> = None;
    for span in source.spans.iter().filter(|span| span.kind != SpanKind::Text) {
        let first = source.line_of(span.start);
        let text = source.text.get(span.range()).unwrap_or_default();
        let lines = text.lines().enumerate().map(|(at, line)| (first + at, bare(line)));
        let goes_on = before.is_some_and(|last| follows(source, last, span));
        match blocks.last_mut() {
            Some(block) if goes_on => block.extend(lines),
            _ => blocks.push(lines.collect()),
        }
        before = Some(span);
    }
    blocks
}

/// Whether `span` is on the line after the comment that ends with `last`.
fn follows(source: &Source, last: &Span, span: &Span) -> bool {
    let between = source.text.get(last.end..span.start).unwrap_or("x");
    last.kind == span.kind && between.trim().is_empty() && between.matches('\n').count() == 1
}

/// A line of a comment without its marks, with its indentation.
fn bare(line: &str) -> String {
    let line = line.trim_end();
    let inner = line.trim_start();
    for mark in ["///", "//!", "//", "/**", "/*!", "/*", "#:", "#!", "#"] {
        if let Some(rest) = inner.strip_prefix(mark) {
            return rest.trim_end_matches("*/").to_owned();
        }
    }
    for quotes in ["r\"\"\"", "\"\"\"", "'''"] {
        if let Some(rest) = inner.strip_prefix(quotes) {
            return rest.trim_end_matches("\"\"\"").trim_end_matches("'''").to_owned();
        }
    }
    line.trim_end_matches("\"\"\"").trim_end_matches("'''").trim_end_matches("*/").to_owned()
}

/// The role of a line in a paragraph.
enum Kind {
    /// Ends a paragraph and belongs to none: blank, a heading, a row of a table.
    Gap,
    /// Begins a paragraph of its own: a list item, an argument in a docstring.
    Item,
    /// Continues the paragraph before it.
    Text,
}

/// The paragraphs of a block, each with the number of every line.
fn paragraphs(block: &[(usize, String)]) -> Vec<Lines> {
    let mut made: Vec<Lines> = vec![Vec::new()];
    let mut fence: Option<&str> = None;
    let mut comment: Option<&str> = None;
    let mut section: Option<usize> = None;
    for (number, line) in block {
        let inner = line.trim();
        if let Some(close) = fence {
            fence = (!inner.starts_with(close)).then_some(close);
            continue;
        }
        fence = ["```", "~~~"].into_iter().find(|mark| inner.starts_with(mark));
        comment = comment.or_else(|| comment_end(inner));
        if fence.is_some() || comment.is_some() {
            comment = comment.filter(|end| !inner.contains(end));
            made.push(Vec::new());
            continue;
        }
        let (kind, text) = classify(inner);
        let depth = line.len() - line.trim_start().len();
        let argument = section.is_some_and(|least| depth > 0 && depth <= least);
        match kind {
            Kind::Gap => made.push(Vec::new()),
            Kind::Text if !argument => {}
            Kind::Text | Kind::Item => made.push(Vec::new()),
        }
        section = next_section(section, inner, depth);
        if !matches!(kind, Kind::Gap)
            && let Some(paragraph) = made.last_mut()
        {
            paragraph.push((*number, text.to_owned()));
        }
    }
    made.retain(|paragraph| !paragraph.is_empty());
    made
}

/// The end mark of the HTML comment that begins here, or of the generated text behind it.
fn comment_end(inner: &str) -> Option<&'static str> {
    let is_generated = inner.ends_with(": begin -->");
    inner.starts_with("<!--").then_some(if is_generated { ": end -->" } else { "-->" })
}

/// The indentation of the arguments that a docstring lists; `usize::MAX` until the first of them is seen.
fn next_section(section: Option<usize>, inner: &str, depth: usize) -> Option<usize> {
    const HEADS: [&str; 6] = ["Args:", "Returns:", "Raises:", "Yields:", "Attributes:", "Examples:"];
    match section {
        _ if HEADS.contains(&inner) => Some(usize::MAX),
        Some(_) if inner.is_empty() => None,
        Some(least) => Some(least.min(depth)),
        None => None,
    }
}

fn classify(inner: &str) -> (Kind, &str) {
    let inner = inner.trim_start_matches("> ");
    let is_rule = !inner.is_empty() && inner.chars().all(|sign| matches!(sign, '-' | '=' | '+' | '*' | '_' | ' '));
    if inner.is_empty() || is_rule || inner.starts_with(['#', '|']) {
        return (Kind::Gap, "");
    }
    for mark in ["- ", "* ", "+ "] {
        if let Some(rest) = inner.strip_prefix(mark) {
            return (Kind::Item, rest);
        }
    }
    let digits = inner.bytes().take_while(u8::is_ascii_digit).count();
    match inner.get(digits..).and_then(|rest| rest.strip_prefix(". ")) {
        Some(rest) if digits > 0 => (Kind::Item, rest),
        _ => (Kind::Text, inner),
    }
}

/// The sentences of a paragraph.
fn split(paragraph: &[(usize, String)]) -> Vec<Sentence> {
    let mut made = Vec::new();
    let mut open: Option<Sentence> = None;
    let mut in_code = false;
    let tokens: Vec<(usize, &str)> =
        paragraph.iter().flat_map(|(line, text)| text.split_whitespace().map(|word| (*line, word))).collect();
    for (at, (line, word)) in tokens.iter().enumerate() {
        let sentence = open.get_or_insert_with(|| Sentence { line: *line, text: String::new() });
        if !sentence.text.is_empty() {
            sentence.text.push(' ');
        }
        sentence.text.push_str(word);
        in_code ^= word.matches('`').count() % 2 == 1;
        let next = tokens.get(at + 1).map(|(_, word)| *word);
        if !in_code && ends_sentence(word, next) {
            made.extend(open.take());
        }
    }
    made.extend(open);
    made
}

fn ends_sentence(word: &str, next: Option<&str>) -> bool {
    const SHORT: [&str; 5] = ["e.g.", "i.e.", "cf.", "etc.", "vs."];
    let bare = word.trim_end_matches([')', '"', '*', '_', ']', '\'', '”']);
    let closed = bare.ends_with(['.', '!', '?']) && !SHORT.contains(&bare.trim_start_matches('('));
    closed && next.is_none_or(|next| !next.starts_with(char::is_lowercase))
}

/// The number of words: a word has a letter or digit; code in backticks is one word.
fn words(text: &str) -> usize {
    let mut count = 0;
    for (at, part) in text.split('`').enumerate() {
        let is_code = at % 2 == 1;
        count += if is_code { 1 } else { part.split_whitespace().filter(|word| has_letter(word)).count() };
    }
    count
}

fn has_letter(word: &str) -> bool {
    word.contains(char::is_alphanumeric)
}

/// `[text](page)` becomes `text`.
fn without_links(text: &str) -> String {
    let mut made = String::new();
    for (before, inner) in links(text) {
        made.push_str(before);
        made.push_str(inner);
    }
    made
}

/// `[text](page)` is removed.
fn outside_links(text: &str) -> String {
    links(text).into_iter().map(|(before, _)| before).collect()
}

/// The text before each link, and the link's own; the last has no link.
fn links(text: &str) -> Vec<(&str, &str)> {
    let mut made = Vec::new();
    let mut rest = text;
    while let Some((before, inner, after)) = first_link(rest) {
        made.push((before, inner));
        rest = after;
    }
    made.push((rest, ""));
    made
}

fn first_link(text: &str) -> Option<(&str, &str, &str)> {
    let middle = text.find("](")?;
    let open = text.get(..middle)?.rfind('[')?;
    let close = middle + text.get(middle..)?.find(')')?;
    Some((text.get(..open)?, text.get(open + 1..middle)?, text.get(close + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        sentences(&Source::new(path, text)).into_iter().map(|one| (one.line, one.text)).collect()
    }

    fn of(line: usize, text: &str) -> (usize, String) {
        (line, text.to_owned())
    }

    #[test]
    fn comments_of_rust_are_read_across_their_lines() {
        let text = "//! What it\n//! is. And\n//! more.\n//!\n//! ```\n//! no. Prose.\n//! ```\nfn f() {} // Aside.\n";
        assert_eq!(found("a/b.rs", text), [of(1, "What it is."), of(2, "And more."), of(8, "Aside.")],);
        assert_eq!(found("a/b.rs", "/// One.\n// Two.\nlet s = \"No. Prose.\";\n"), [of(1, "One."), of(2, "Two.")]);
    }

    #[test]
    fn docstrings_list_their_arguments_one_by_one() {
        let text =
            "\"\"\"Does it.\n\nArgs:\n    a: the one,\n        which goes on\n    b: the other\n\"\"\"\n# A remark.\n";
        let expected = [
            of(1, "Does it."),
            of(3, "Args:"),
            of(4, "a: the one, which goes on"),
            of(6, "b: the other"),
            of(8, "A remark."),
        ];
        assert_eq!(found("a/b.py", text), expected);
    }

    #[test]
    fn markdown_is_prose_but_for_code_tables_headings_and_marks() {
        let text = "# Head. No\n\nOne, e.g. this\nline.\n\n| a. | B |\n\n```sh\nx. Y\n```\n- An item.\n- Two (it ends.) Three.\n<!-- no.\nNo -->\n1. Four.\n\
            <!-- x: begin -->\nNo. No.\n<!-- x: end -->\nFive.\n";
        let expected = [
            of(3, "One, e.g. this line."),
            of(11, "An item."),
            of(12, "Two (it ends.)"),
            of(12, "Three."),
            of(15, "Four."),
            of(19, "Five."),
        ];
        assert_eq!(found("a.md", text), expected);
    }

    #[test]
    fn a_dot_within_code_or_before_a_small_letter_ends_nothing() {
        assert_eq!(found("a.md", "See `a. B c` and x.py of 1.5 Mb.\n").len(), 1);
        assert_eq!(found("a.md", "It reads `f(x). Then`. So it ends.\n").len(), 2);
    }

    #[test]
    fn code_is_one_word_and_a_link_is_its_text() {
        let counted = |text: &str| Sentence { line: 1, text: text.to_owned() }.words();
        assert_eq!(counted("a `b c d` [e f](g h) — i"), 5);
        assert_eq!(counted(""), 0);
        let listed = |text: &str| Sentence { line: 1, text: text.to_owned() }.is_list_of_links();
        assert!(listed("[a b](c), [d e](f), and [g](h)"));
        assert!(!listed("see [a](b) for what it does"));
    }
}
