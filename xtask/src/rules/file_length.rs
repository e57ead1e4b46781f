//! A code file has at most 600 lines.

use crate::finding::Finding;
use crate::tree::{Source, Tree};

const LINES_MAX: usize = 600;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().filter(|file| is_code(file) && !is_generated(file)).filter_map(check_file).collect()
}

fn is_code(file: &Source) -> bool {
    matches!(file.extension(), "rs" | "py" | "pyi" | "c" | "h")
}

/// Whether a file is generated: such files have a mark at their top that tools know.
fn is_generated(file: &Source) -> bool {
    file.text.lines().take(5).any(|line| line.contains("@generated"))
}

fn check_file(file: &Source) -> Option<Finding> {
    let lines = file.text.lines().count();
    (lines > LINES_MAX).then(|| {
        let message = format!("{lines} lines, more than the {LINES_MAX} that can be kept in mind; split it by nouns");
        Finding::new(&file.path, LINES_MAX + 1, message)
    })
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn six_hundred_lines_are_the_most() {
        for path in ["a/b.rs", "a/b.py", "a/b.c", "a/b.h"] {
            assert!(lines(check, path, &"x\n".repeat(600)).is_empty());
            assert_eq!(lines(check, path, &"x\n".repeat(601)), [601]);
        }
    }

    #[test]
    fn data_and_generated_code_may_be_longer() {
        assert!(lines(check, "docs/a.md", &"x\n".repeat(900)).is_empty());
        assert!(lines(check, "a/gridstone.h", &format!("/* @generated */\n{}", "x\n".repeat(900))).is_empty());
    }
}
