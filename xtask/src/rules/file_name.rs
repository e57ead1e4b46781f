//! A file is named by a noun and does not repeat its folder's name: `array/log.rs`, not `array/array_log.rs`.

use crate::finding::Finding;
use crate::tree::{Source, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().chain(tree.python()).filter_map(check_file).collect()
}

fn check_file(file: &Source) -> Option<Finding> {
    // The name that Cargo looks for in a folder of tests.
    if file.file_name() == "main.rs" {
        return None;
    }
    let folder = file.folder().rsplit('/').next().filter(|folder| !folder.is_empty())?;
    let stem = file.file_name().split('.').next().unwrap_or_default();
    let rest = stem.strip_prefix(folder)?;
    (rest.is_empty() || rest.starts_with(['_', '-'])).then(|| {
        let message = format!("`{stem}` repeats its folder `{folder}`; name the file by what it alone holds");
        Finding::new(&file.path, 1, message)
    })
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn the_folder_is_not_repeated() {
        for good in
            ["array/log.rs", "array/mod.rs", "array/arrays.rs", "gridstone/cli.py", "setup.py", "tests/main/main.rs"]
        {
            assert!(lines(check, good, "").is_empty(), "{good}");
        }
        for bad in ["array/array.rs", "src/array/array_log.rs", "python/gridstone/gridstone.py", "main/main_log.rs"] {
            assert_eq!(lines(check, bad, ""), [1], "{bad}");
        }
    }
}
