//! The rules, one file each: a tree in, findings out.

mod circles;
mod commented_code;
mod dead_module;
mod file_length;
mod file_name;
mod floor_imports;
mod function_length;
mod host_apis;
mod machine_names;
mod merge_marks;
mod module_doc;
mod package_imports;
mod page_links;
mod page_paths;
mod public_face;
mod room_imports;
mod seam;
pub(crate) mod sentences;
mod words;

use crate::finding::Finding;
use crate::tree::Tree;

/// A rule's name and its check.
pub(crate) type Rule = (&'static str, fn(&Tree) -> Vec<Finding>);

/// Every rule.
pub(crate) const ALL: &[Rule] = &[
    ("floor-imports", floor_imports::check),
    ("room-imports", room_imports::check),
    ("circles", circles::check),
    ("seam", seam::check),
    ("package-imports", package_imports::check),
    ("host-apis", host_apis::check),
    ("public-face", public_face::check),
    ("file-length", file_length::check),
    ("function-length", function_length::check),
    ("dead-module", dead_module::check),
    ("commented-code", commented_code::check),
    ("file-name", file_name::check),
    ("words", words::check),
    ("machine-names", machine_names::check),
    ("merge-marks", merge_marks::check),
    ("module-doc", module_doc::check),
    ("page-links", page_links::check),
    ("page-paths", page_paths::check),
    ("sentences", sentences::check),
];

/// Runs every rule; one line per finding, `path:line: rule: message`, by path and line.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut found: Vec<(Finding, &str)> =
        ALL.iter().flat_map(|(name, rule)| rule(tree).into_iter().map(move |finding| (finding, *name))).collect();
    found.sort();
    found
        .into_iter()
        .map(|(finding, rule)| format!("{}:{}: {rule}: {}", finding.path, finding.line, finding.message))
        .collect()
}

/// The lines of the findings of `check` in a tree of one file.
#[cfg(test)]
fn lines(check: fn(&Tree) -> Vec<Finding>, path: &str, text: &str) -> Vec<usize> {
    check(&Tree::of(&[(path, text)])).into_iter().map(|finding| finding.line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_sorted_and_name_their_rule() {
        let tree = Tree::of(&[("crates/x/src/lib.rs", "use a::b;\n"), ("a/a.py", "x = 1\n")]);
        let reports = check(&tree);
        assert_eq!(reports.len(), 2, "{reports:?}");
        assert!(reports[0].starts_with("a/a.py:1: file-name: "));
        assert!(reports[1].starts_with("crates/x/src/lib.rs:1: module-doc: "));
    }
}
