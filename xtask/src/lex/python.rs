//! Comments and strings of Python.

use super::{Span, SpanKind, escaped_end, line_end, tail};

pub(super) fn spans(text: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = tail(text, at).chars().next() {
        let span = match first {
            '#' => Some(Span { start: at, end: line_end(text, at), kind: SpanKind::Comment }),
            '"' | '\'' => Some(string(text, at, first)),
            _ => None,
        };
        at = span.map_or(at + first.len_utf8(), |span| span.end);
        found.extend(span);
    }
    found
}

/// A triple-quoted string at the start of its line counts as a docstring.
fn string(text: &str, start: usize, quote: char) -> Span {
    let triple = String::from(quote).repeat(3);
    if !tail(text, start).starts_with(&triple) {
        let end = escaped_end(text, start + 1, triple.get(..1).unwrap_or_default());
        return Span { start, end, kind: SpanKind::Text };
    }
    let line = text.get(..start).unwrap_or_default().rsplit('\n').next().unwrap_or_default();
    let begins_line = line.trim().is_empty() || line.trim() == "r";
    let kind = if begins_line { SpanKind::Doc } else { SpanKind::Text };
    Span { start, end: escaped_end(text, start + 3, &triple), kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<SpanKind> {
        spans(text).into_iter().map(|span| span.kind).collect()
    }

    #[test]
    fn docstrings_comments_and_strings_are_told_apart() {
        let text = "\"\"\"Doc's # no comment.\"\"\"\nx = \"# no\"  # yes\ny = '''a\nb'''\n";
        assert_eq!(kinds(text), [SpanKind::Doc, SpanKind::Text, SpanKind::Comment, SpanKind::Text]);
    }

    #[test]
    fn escapes_do_not_end_a_string() {
        assert_eq!(kinds(r#"a = 'it\'s' + "\\" + 'b'"#).len(), 3);
    }
}
