//! A function has at most 70 lines, from `fn` or `def` to its end; Python's docstrings are not counted.

use crate::finding::Finding;
use crate::lex::{SpanKind, Token, matching, tokens};
use crate::tree::{Source, Tree};

const LINES_MAX: usize = 70;

/// A function's name and lines, from 1, both ends inclusive.
#[derive(Debug)]
struct Function<'a> {
    name: &'a str,
    first: usize,
    last: usize,
}

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let rust = tree.rust().flat_map(|file| too_long(file, rust_functions(file), &[]));
    let python = tree.python().flat_map(|file| too_long(file, python_functions(file), &docstrings(file)));
    rust.chain(python).collect()
}

/// The functions with more than the allowed lines; `uncounted` are lines to ignore.
fn too_long(file: &Source, functions: Vec<Function<'_>>, uncounted: &[usize]) -> Vec<Finding> {
    let mut found = Vec::new();
    for Function { name, first, last } in functions {
        let skipped = uncounted.iter().filter(|line| (first..=last).contains(line)).count();
        let count = last + 1 - first - skipped;
        if count > LINES_MAX {
            let message = format!(
                "`{name}` has {count} lines, more than the {LINES_MAX} that fit a screen; let the parent keep the \
                 control flow and move its steps into functions"
            );
            found.push(Finding::new(&file.path, first, message));
        }
    }
    found
}

fn rust_functions(file: &Source) -> Vec<Function<'_>> {
    let tokens = tokens(&file.code);
    let mut functions = Vec::new();
    for (index, pair) in tokens.windows(2).enumerate() {
        let [keyword, name] = pair else { continue };
        if keyword.text != "fn" || !name.is_word() {
            continue;
        }
        let Some(close) = body(&tokens, index).and_then(|open| tokens.get(matching(&tokens, open))) else { continue };
        functions.push(Function { name: name.text, first: file.line_of(keyword.at), last: file.line_of(close.at) });
    }
    functions
}

/// The index of the brace that opens the body of the function at `keyword`; `None` for a declaration.
fn body(tokens: &[Token<'_>], keyword: usize) -> Option<usize> {
    let mut index = keyword;
    loop {
        match tokens.get(index)?.text {
            "{" => return Some(index),
            ";" => return None,
            "(" | "[" => index = matching(tokens, index) + 1,
            _ => index += 1,
        }
    }
}

/// Functions by indentation: one ends before the next statement that is not indented deeper.
fn python_functions(file: &Source) -> Vec<Function<'_>> {
    let mut open: Vec<(usize, Function<'_>)> = Vec::new();
    let mut closed = Vec::new();
    let mut depth = 0usize;
    for (index, line) in file.code.lines().enumerate() {
        let trimmed = line.trim_start();
        if trimmed.is_empty() {
            continue;
        }
        let indent = line.len() - trimmed.len();
        if depth == 0 {
            while let Some((_, function)) = open.pop_if(|(column, _)| *column >= indent) {
                closed.push(function);
            }
            if let Some(name) = defined_name(trimmed) {
                open.push((indent, Function { name, first: index + 1, last: index + 1 }));
            }
        }
        for (_, function) in &mut open {
            function.last = index + 1;
        }
        depth = line.chars().fold(depth, |depth, sign| match sign {
            '(' | '[' | '{' => depth + 1,
            ')' | ']' | '}' => depth.saturating_sub(1),
            _ => depth,
        });
    }
    closed.extend(open.into_iter().map(|(_, function)| function));
    closed
}

fn defined_name(statement: &str) -> Option<&str> {
    let rest = statement.strip_prefix("async ").unwrap_or(statement).strip_prefix("def ")?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').find(|name| !name.is_empty())
}

/// The lines of docstrings.
fn docstrings(file: &Source) -> Vec<usize> {
    let docs = file.spans.iter().filter(|span| span.kind == SpanKind::Doc);
    docs.flat_map(|span| file.line_of(span.start)..=file.line_of(span.end.saturating_sub(1))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn seventy_lines_of_rust_are_the_most() {
        let function =
            |lines: usize| format!("\nfn f(a: [u8; 3]) -> u8 {{\n{}}}\n", "    x(\"}\"); // }\n".repeat(lines));
        assert!(lines(check, "a/b.rs", &function(68)).is_empty());
        assert_eq!(lines(check, "a/b.rs", &function(69)), [2]);
        assert!(lines(check, "a/b.rs", &format!("trait T {{ fn f();\n{} }}\n", "\n".repeat(90))).is_empty());
    }

    #[test]
    fn seventy_lines_of_python_are_the_most() {
        let function = |lines: usize| {
            format!("class A:\n    def f(\n        self,\n    ):\n{}\nx = 1\n", "        y\n".repeat(lines))
        };
        assert!(lines(check, "a/b.py", &function(67)).is_empty());
        assert_eq!(lines(check, "a/b.py", &function(68)), [2]);
    }

    #[test]
    fn pythons_docstrings_are_free_and_methods_are_apart() {
        let doc = format!("def f():\n    \"\"\"Doc.\n{}    \"\"\"\n    return 1\n", "    more (\n".repeat(90));
        assert!(lines(check, "a/b.py", &doc).is_empty());
        assert!(lines(check, "a/b.py", &"def f():\n    return [\n1,\n    ]\n\n\n".repeat(30)).is_empty());
    }
}
