//! No file names the machine it was written on, nor the registries that its packages come from.

use crate::finding::Finding;
use crate::tree::{Source, Tree};

/// Roots of a machine's own folders. They are split in halves, since this file is checked too.
const FOLDERS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// Registries of package managers; their configuration belongs to the user's machine.
const REGISTRIES: [&str; 8] = [
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("npmjs", ".org"),
    concat!("proxy.golang", ".org"),
    concat!("anaconda", ".org"),
    concat!("--index", "-url"),
    concat!("--extra-index", "-url"),
];

/// Written by cargo, which names the registry.
const LOCK_FILE: &str = "Cargo.lock";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().filter(|file| file.file_name() != LOCK_FILE).flat_map(check_file).collect()
}

fn check_file(file: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let folder = FOLDERS.iter().find(|folder| names_root(line, folder)).map(|folder| {
            format!("`{folder}` exists on one machine only; use a relative path, a variable or a temporary folder")
        });
        let registry = REGISTRIES.iter().find(|registry| line.contains(**registry)).map(|registry| {
            format!("`{registry}` ties the project to one package source; leave that to the user's configuration")
        });
        found.extend(folder.into_iter().chain(registry).map(|message| Finding::new(&file.path, index + 1, message)));
    }
    found
}

/// Whether `folder` occurs in `line` as an absolute path, not within a longer one.
fn names_root(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line.get(..at).and_then(|head| head.chars().next_back());
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '}' | ')' | '~'))
    })
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn relative_paths_and_addresses_pass() {
        let good = format!("see ../shared{0}x, $(TOP){0}x and https://example.org{0}x\n", FOLDERS[0]);
        assert!(lines(check, "docs/a.md", &good).is_empty());
        assert!(lines(check, "Cargo.lock", REGISTRIES[0]).is_empty());
    }

    #[test]
    fn machine_paths_and_registries_are_found_anywhere() {
        for folder in FOLDERS {
            assert_eq!(lines(check, "a/b.rs", &format!("\nf(\"{folder}data\")\n")), [2]);
            assert_eq!(lines(check, "Makefile", &format!("DATA = {folder}data\n")), [1]);
        }
        for registry in REGISTRIES {
            assert_eq!(lines(check, "constraints.txt", &format!("# from {registry}\n")), [1]);
        }
    }
}
