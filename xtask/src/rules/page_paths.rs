//! A file that ARCHITECTURE.md or docs/testing.md names in backticks exists, relative to the root, the core's sources,
//! or the Python package.

use crate::finding::Finding;
use crate::tree::Tree;

const PAGES: [&str; 2] = ["ARCHITECTURE.md", "docs/testing.md"];
/// The folders that a path may be relative to.
const ROOTS: [&str; 6] = ["", "crates/gridstone/src/", "crates/gridstone/", "python/gridstone/", "python/", "crates/"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let pages = PAGES.iter().filter_map(|path| tree.get(path));
    let missing = pages.flat_map(|page| {
        let lines = page.text.lines().zip(1..);
        lines
            .flat_map(|(line, number)| named(line).map(move |path| (path, number)))
            .filter(|(path, _)| !is_there(tree, path))
            .map(|(path, number)| {
                Finding::new(
                    &page.path,
                    number,
                    format!("`{path}` is named, and there is no such file; name the one that is"),
                )
            })
    });
    missing.collect()
}

/// The files that a line names in backticks.
fn named(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    let path =
        |text: &&str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b)) && text.contains('/');
    quoted.filter(path).filter(|text| text.ends_with(".rs") || text.ends_with(".py"))
}

fn is_there(tree: &Tree, path: &str) -> bool {
    ROOTS.iter().any(|root| tree.get(&format!("{root}{path}")).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_has_to_be_there() {
        let page = "Reads `store/log.rs`,\n`python/gridstone/a.py`, `x.rs`, `gone/file.rs` and `_log/<n>`.\n";
        let files = [
            ("ARCHITECTURE.md", page),
            ("crates/gridstone/src/store/log.rs", ""),
            ("python/gridstone/a.py", ""),
            ("README.md", "`gone/file.rs`\n"),
        ];
        let found = check(&Tree::of(&files));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].path.as_str(), found[0].line), ("ARCHITECTURE.md", 2));
    }
}
