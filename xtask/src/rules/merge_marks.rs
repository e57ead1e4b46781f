//! No file holds the marks that a merge leaves where it could not decide.

use crate::finding::Finding;
use crate::tree::Tree;

/// How the first and the last mark begin. They are split in halves, since this file is checked too.
const MARKS: [&str; 2] = [concat!("<<<<", "<<< "), concat!(">>>>", ">>> ")];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in &tree.files {
        let marked = file.text.lines().zip(1..).filter(|(line, _)| MARKS.iter().any(|mark| line.starts_with(mark)));
        let message = "the mark of a merge that was not decided; keep one side, or join both";
        found.extend(marked.map(|(_, number)| Finding::new(&file.path, number, message.to_owned())));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn both_marks_are_found_at_the_start_of_a_line() {
        let text = format!("a\n{}HEAD\nb\n=======\nc\n{}0123 (words)\n", MARKS[0], MARKS[1]);
        assert_eq!(lines(check, "docs/a.md", &text), [2, 6]);
        assert!(lines(check, "docs/a.md", &format!("x {}HEAD\n>>> python\n", MARKS[0])).is_empty());
    }
}
