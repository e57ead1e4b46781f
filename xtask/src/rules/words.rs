//! No unfinished work is committed: no marks of it, no test disabled without a reason.

use crate::finding::Finding;
use crate::lex::tokens;
use crate::tree::{Source, Tree};

const MARKS: [&str; 3] = ["TODO", "FIXME", "XXX"];
const MACROS: [&str; 2] = ["todo", "unimplemented"];
const PHRASE: &str = "for now";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().filter(|file| is_code(file)).flat_map(check_file).collect()
}

fn is_code(file: &Source) -> bool {
    file.is_rust() || file.is_python() || matches!(file.extension(), "c" | "h")
}

fn check_file(file: &Source) -> Vec<Finding> {
    let mut found = marks(file);
    if file.is_rust() {
        found.extend(macros(file));
        found.extend(ignored_tests(file));
    }
    found
}

fn marks(file: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, (comment, code)) in file.comments.lines().zip(file.code.lines()).enumerate() {
        let mark = MARKS.iter().find(|mark| has_word(comment, mark) || has_word(code, mark));
        let mark = mark.copied().or_else(|| has_word(&comment.to_lowercase(), PHRASE).then_some(PHRASE));
        if let Some(mark) = mark {
            let message =
                format!("`{mark}` marks unfinished work, which nobody finds again; finish it or open an issue");
            found.push(Finding::new(&file.path, index + 1, message));
        }
    }
    found
}

/// Whether `word` occurs in `line` without a letter or digit on either side.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|head| head.chars().next_back());
        let after = line.get(at + word.len()..).and_then(|rest| rest.chars().next());
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

fn macros(file: &Source) -> Vec<Finding> {
    let tokens = tokens(&file.code);
    let calls = tokens.windows(2).filter_map(|pair| match pair {
        [name, sign] if sign.text == "!" && MACROS.contains(&name.text) => Some(name),
        _ => None,
    });
    calls
        .map(|name| {
            let message = format!("`{}!` panics where a user waits; implement it, or return an error", name.text);
            Finding::new(&file.path, file.line_of(name.at), message)
        })
        .collect()
}

/// `#[ignore]` and `#[cfg_attr(…, ignore)]` without a reason.
fn ignored_tests(file: &Source) -> Vec<Finding> {
    let tokens = tokens(&file.code);
    let bare = tokens.windows(3).filter_map(|window| match window {
        [before, name, after] if is_bare_ignore([before.text, name.text, after.text]) => Some(name),
        _ => None,
    });
    bare.map(|name| {
        let message = "a test ignored without a reason, so nobody knows when it may run; write `ignore = \"why\"`";
        Finding::new(&file.path, file.line_of(name.at), message)
    })
    .collect()
}

fn is_bare_ignore(texts: [&str; 3]) -> bool {
    matches!(texts, ["[", "ignore", "]"] | [",", "ignore", ")"])
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn finished_work_passes() {
        let rust =
            "// Before nowadays' readers.\n#[ignore = \"needs a bucket\"]\nfn f() { g(\"TODO\"); method.todo(); }\n";
        assert!(lines(check, "a/b.rs", rust).is_empty());
        assert!(lines(check, "a/b.py", "x = 'XXX'  # for nowhere\n").is_empty());
        assert!(lines(check, "a/b.md", "TODO\n").is_empty());
    }

    #[test]
    fn unfinished_work_is_found() {
        assert_eq!(lines(check, "a/b.rs", "// TODO: more\nfn f() {\n    todo!(\"x\")\n}\n"), [1, 3]);
        assert_eq!(lines(check, "a/b.rs", "//! For now, one.\n/* FIXME */\nfn f() { unimplemented!() }\n"), [1, 2, 3]);
        assert_eq!(lines(check, "a/b.py", "\"\"\"Doc.\n\nXXX odd\n\"\"\"\nx = 1  # good enough for now\n"), [3, 5]);
        assert_eq!(lines(check, "a/b.c", "/* TODO */\n"), [1]);
    }

    #[test]
    fn ignored_tests_give_their_reason() {
        assert_eq!(lines(check, "a/b.rs", "#[test]\n#[ignore]\nfn f() {}\n"), [2]);
        assert_eq!(lines(check, "a/b.rs", "#[cfg_attr(miri, ignore)]\nfn f() {}\n"), [1]);
        assert!(lines(check, "a/b.rs", "#[cfg_attr(miri, ignore = \"C code\")]\nfn f() {}\n").is_empty());
    }
}
