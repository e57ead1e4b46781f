//! A module's doc comes first: its purpose, its invariants, its layout or steps.

use crate::finding::Finding;
use crate::tree::{Source, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().filter(|file| needs_doc(file) && !has_doc(file)).map(finding).collect()
}

fn needs_doc(file: &Source) -> bool {
    match file.extension() {
        "rs" => (file.path.starts_with("crates/") || file.path.starts_with("xtask/")) && file.path.contains("/src/"),
        "py" => file.path.starts_with("python/gridstone/"),
        _ => false,
    }
}

fn has_doc(file: &Source) -> bool {
    let mut lines = file.text.lines().map(str::trim_start).filter(|line| !line.is_empty());
    if file.is_rust() {
        return lines.next().is_some_and(|line| line.starts_with("//!"));
    }
    let first = lines.find(|line| !line.starts_with('#'));
    first.is_some_and(|line| line.starts_with("\"\"\"") || line.starts_with("r\"\"\""))
}

fn finding(file: &Source) -> Finding {
    let doc = if file.is_rust() { "a `//!` comment" } else { "a docstring" };
    let message = format!("the file does not begin with {doc}; say first what it is and what always holds in it");
    Finding::new(&file.path, 1, message)
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn documented_modules_pass() {
        assert!(lines(check, "crates/x/src/a.rs", "//! What it is.\nuse b;\n").is_empty());
        assert!(lines(check, "python/gridstone/a.py", "# licence\n\"\"\"What it is.\"\"\"\n").is_empty());
        assert!(lines(check, "crates/x/tests/main.rs", "mod a;\n").is_empty());
        assert!(lines(check, "python/tests/test_a.py", "x = 1\n").is_empty());
    }

    #[test]
    fn undocumented_modules_are_found() {
        assert_eq!(lines(check, "crates/x/src/a.rs", "use b;\n"), [1]);
        assert_eq!(lines(check, "crates/x/src/a.rs", "// What it is.\nuse b;\n"), [1]);
        assert_eq!(lines(check, "python/gridstone/io/a.py", "import b\n\"\"\"Late.\"\"\"\n"), [1]);
        assert_eq!(lines(check, "python/gridstone/a.py", ""), [1]);
    }
}
