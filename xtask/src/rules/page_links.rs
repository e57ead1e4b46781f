//! Every page of `docs/format` and `docs/design` is linked from the README of its folder, and that README links only to
//! existing pages.

use crate::finding::Finding;
use crate::tree::{Source, Tree};

const FOLDERS: [&str; 2] = ["docs/format", "docs/design"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    FOLDERS
        .iter()
        .filter_map(|folder| tree.get(&format!("{folder}/README.md")))
        .flat_map(|index| check_folder(tree, index))
        .collect()
}

fn check_folder(tree: &Tree, index: &Source) -> Vec<Finding> {
    let links = links(index);
    let unlinked = tree.files.iter().filter(|page| is_page_beside(page, index)).filter_map(|page| {
        let linked = links.iter().any(|(_, target)| *target == page.file_name());
        let message = format!("no link in {}, so no reader gets here; add one, or delete the page", index.path);
        (!linked).then(|| Finding::new(&page.path, 1, message))
    });
    let broken = links.iter().filter_map(|(line, target)| {
        let missing = tree.get(&format!("{}/{target}", index.folder())).is_none();
        let message = format!("a link to `{target}`, which does not exist; mend it");
        (is_beside(target) && missing).then(|| Finding::new(&index.path, *line, message))
    });
    unlinked.chain(broken).collect()
}

fn is_page_beside(page: &Source, index: &Source) -> bool {
    page.folder() == index.folder() && page.extension() == "md" && page.path != index.path
}

/// Whether a link's target is a page in the same folder.
fn is_beside(target: &str) -> bool {
    target.ends_with(".md") && !target.contains('/')
}

/// The targets of a page's links without anchors, with their lines.
fn links(page: &Source) -> Vec<(usize, &str)> {
    let lines = page.text.lines().enumerate();
    let targets = lines.flat_map(|(index, line)| line.split("](").skip(1).map(move |rest| (index + 1, rest)));
    targets
        .filter_map(|(line, rest)| Some((line, rest.split_once(')')?.0)))
        .map(|(line, target)| (line, target.split('#').next().unwrap_or_default().trim_start_matches("./")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn linked_pages_pass() {
        let readme = "- [log](log.md#records) and [file](./file.md), [other](../guide/a.md), [web](https://a.b/c.md)\n";
        let files = [("docs/format/README.md", readme), ("docs/format/log.md", ""), ("docs/format/file.md", "")];
        assert!(found(&files).is_empty());
        assert!(found(&[("docs/format/log.md", "")]).is_empty(), "no README, no rule");
    }

    #[test]
    fn unlinked_pages_and_broken_links_are_found() {
        let files = [("docs/design/README.md", "[gone](gone.md)"), ("docs/design/002-x.md", "")];
        assert_eq!(found(&files), ["docs/design/002-x.md", "docs/design/README.md"]);
    }
}
