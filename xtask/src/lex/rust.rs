//! Comments and literals of Rust (and, approximately, of C).

use super::{Span, SpanKind, escaped_end, line_end, tail};

pub(super) fn spans(text: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut after_word = false;
    while let Some(first) = tail(text, at).chars().next() {
        if let Some((end, kind)) = literal_or_comment(text, at, after_word) {
            found.push(Span { start: at, end, kind });
            at = end;
            after_word = false;
        } else {
            at += first.len_utf8();
            after_word = first.is_alphanumeric() || first == '_';
        }
    }
    found
}

/// The end and kind of the span that begins at `at`, if it is not code. `after_word`: the byte before belongs to a
/// word, so that an `r` or a `b` here is no prefix.
fn literal_or_comment(text: &str, at: usize, after_word: bool) -> Option<(usize, SpanKind)> {
    let rest = tail(text, at);
    if rest.starts_with("//") {
        return Some((line_end(text, at), line_comment_kind(rest)));
    }
    if rest.starts_with("/*") {
        let kind = if rest.starts_with("/**") || rest.starts_with("/*!") { SpanKind::Doc } else { SpanKind::Comment };
        return Some((block_end(text, at), kind));
    }
    let end = match rest.as_bytes().first()? {
        b'"' => escaped_end(text, at + 1, "\""),
        b'\'' => char_end(text, at)?,
        b'b' | b'c' | b'r' if !after_word => prefixed_end(text, at)?,
        _ => return None,
    };
    Some((end, SpanKind::Text))
}

fn line_comment_kind(rest: &str) -> SpanKind {
    let doc = rest.starts_with("//!") || (rest.starts_with("///") && !rest.starts_with("////"));
    if doc { SpanKind::Doc } else { SpanKind::Comment }
}

/// Block comments nest.
fn block_end(text: &str, start: usize) -> usize {
    let mut depth = 0usize;
    let mut at = start;
    while at < text.len() {
        let rest = text.as_bytes().get(at..).unwrap_or_default();
        let step = if rest.starts_with(b"/*") {
            depth += 1;
            2
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            2
        } else {
            1
        };
        at += step;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The end of a character literal; `None` for a lifetime.
fn char_end(text: &str, at: usize) -> Option<usize> {
    let mut rest = tail(text, at + 1).char_indices();
    let (_, first) = rest.next()?;
    if first == '\\' {
        return Some(escaped_end(text, at + 1, "'"));
    }
    rest.next().filter(|(_, second)| *second == '\'' && first != '\'').map(|(length, _)| at + 1 + length + 1)
}

/// The end of `b"…"`, `b'…'`, `c"…"`, `r"…"`, `r#"…"#`, `br#"…"#`; `None` if the letters begin a word.
fn prefixed_end(text: &str, at: usize) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r"].into_iter().find(|prefix| {
        let after = tail(text, at).strip_prefix(prefix);
        after.is_some_and(|after| after.starts_with(['"', '#', '\'']))
    })?;
    let body = at + prefix.len();
    if !prefix.ends_with('r') {
        return match tail(text, body).as_bytes().first()? {
            b'"' => Some(escaped_end(text, body + 1, "\"")),
            b'\'' if prefix == "b" => char_end(text, body),
            _ => None,
        };
    }
    let hashes = tail(text, body).bytes().take_while(|byte| *byte == b'#').count();
    let quoted = tail(text, body + hashes).strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let length = quoted.find(&close).map_or(quoted.len(), |length| length + close.len());
    Some(body + hashes + 1 + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        spans(text).into_iter().map(|span| &text[span.range()]).collect()
    }

    #[test]
    fn comments_nest_and_end_with_their_line() {
        assert_eq!(texts("a /* b /* c */ d */ e // f\ng"), ["/* b /* c */ d */", "// f"]);
    }

    #[test]
    fn doc_comments_are_told_from_plain_ones() {
        let kinds: Vec<SpanKind> = spans("//! a\n/// b\n//// c\n// d").iter().map(|span| span.kind).collect();
        assert_eq!(kinds, [SpanKind::Doc, SpanKind::Doc, SpanKind::Comment, SpanKind::Comment]);
    }

    #[test]
    fn literals_hide_their_quotes_and_braces() {
        assert_eq!(texts(r##"f("a\"{", 'x', '\'', b'{', b"\"", r#"" {"#, br"\")"##).len(), 7);
    }

    #[test]
    fn lifetimes_and_raw_names_are_code() {
        assert!(texts("fn f<'a>(x: &'a str, r#type: u8) -> &'static str { x }").is_empty());
    }

    #[test]
    fn an_open_literal_reaches_the_end() {
        assert_eq!(texts("let a = \"b"), ["\"b"]);
    }
}
