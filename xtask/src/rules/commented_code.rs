//! Unused code is deleted, not commented out: git remembers it.
//!
//! The rule finds a `mod` declaration in a comment, and three consecutive plain comment lines that read like code.

use crate::finding::Finding;
use crate::lex::SpanKind;
use crate::tree::{Source, Tree};

const RUN: usize = 3;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().flat_map(check_file).collect()
}

fn check_file(file: &Source) -> Vec<Finding> {
    let comments = whole_line_comments(file);
    let reads_like_code = if file.is_python() { is_python_code } else { is_braced_code };
    let mut found = Vec::new();
    let mut run: Vec<usize> = Vec::new();
    for (line, body) in comments {
        if file.is_rust() && is_module(body) {
            let message = format!("a module commented out (`{body}`): dead code misleads; delete it with its file");
            found.push(Finding::new(&file.path, line, message));
        }
        let goes_on = run.last().is_some_and(|last| last + 1 == line);
        if !reads_like_code(body) || !goes_on {
            run.clear();
        }
        if reads_like_code(body) {
            run.push(line);
        }
        if run.len() == RUN {
            let message = "code commented out: dead code misleads, and git remembers it; delete it";
            found.push(Finding::new(&file.path, line + 1 - RUN, message));
        }
    }
    found
}

/// The plain comments on lines of their own: line, and text without the sign.
fn whole_line_comments(file: &Source) -> Vec<(usize, &str)> {
    let plain = file.spans.iter().filter(|span| span.kind == SpanKind::Comment);
    let whole = plain.filter(|span| {
        let line = file.text.get(..span.start).and_then(|before| before.rsplit('\n').next());
        line.is_some_and(|before| before.trim().is_empty())
    });
    whole
        .flat_map(|span| {
            let text = file.text.get(span.range()).unwrap_or_default();
            let first = file.line_of(span.start);
            text.lines().enumerate().map(move |(index, line)| (first + index, bare(line)))
        })
        .collect()
}

fn bare(line: &str) -> &str {
    line.trim().trim_start_matches(['/', '*', '#']).trim_end_matches("*/").trim()
}

fn is_module(body: &str) -> bool {
    let declaration = body.strip_prefix("pub").map_or(body, |rest| match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')').map_or(body, |(_, rest)| rest),
        None => rest,
    });
    let name = declaration.trim_start().strip_prefix("mod ").and_then(|name| name.strip_suffix(';'));
    name.is_some_and(|name| name.chars().all(|c| c.is_alphanumeric() || c == '_'))
}

fn is_braced_code(body: &str) -> bool {
    body.ends_with([';', '{', '}']) || ["},", "})", "}),"].iter().any(|end| body.ends_with(end))
}

fn is_python_code(body: &str) -> bool {
    const STATEMENTS: [&str; 7] = ["import ", "from ", "return", "raise ", "assert ", "yield ", "@"];
    const BLOCKS: [&str; 9] = ["def ", "class ", "if ", "elif ", "else", "for ", "while ", "with ", "try"];
    let starts = |words: &[&str]| words.iter().any(|word| body.starts_with(word));
    let statement = starts(&STATEMENTS) && !body.ends_with(['.', ',', ':']);
    let block = starts(&BLOCKS) && body.ends_with(':');
    statement || block || is_assignment(body) || is_call(body)
}

fn is_assignment(body: &str) -> bool {
    let target = body.split_once(" = ").map(|(target, _)| target);
    target.is_some_and(|target| is_name(target) && !body.ends_with('.'))
}

fn is_call(body: &str) -> bool {
    body.ends_with(')') && body.split_once('(').is_some_and(|(name, _)| is_name(name))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '[' | ']'))
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn prose_is_welcome() {
        let rust = "// The log is the truth;\n// the rest is a hint {see format}.\n// mod is a keyword.\n/// let x = 1;\n/// f();\n/// g();\n";
        assert!(lines(check, "a/b.rs", rust).is_empty());
        let python = "# One pass, because:\n# x = 1 is the least\n# from here on it is sorted.\n# return early (see above)\nf()\n";
        assert!(lines(check, "a/b.py", python).is_empty());
    }

    #[test]
    fn commented_code_is_found_once() {
        assert_eq!(lines(check, "a/b.rs", "x();\n// let a = 1;\n// if a {\n//     f();\n// }\n"), [2]);
        assert_eq!(lines(check, "a/b.rs", "/*\nlet a = 1;\nlet b = 2;\nlet c = 3;\n*/\n"), [2]);
        assert_eq!(lines(check, "a/b.py", "# x = f(1)\n# if x:\n#     print(x)\n"), [1]);
    }

    #[test]
    fn commented_modules_are_found() {
        assert_eq!(lines(check, "a/b.rs", "mod a;\n// mod b;\n// pub(crate) mod c;\n"), [2, 3]);
    }
}
