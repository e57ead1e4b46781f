//! Adapters use the core's public interface only; the floors below it may change without affecting them.

use crate::finding::Finding;
use crate::lex::{tokens, used_paths};
use crate::tree::{Source, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().filter(|file| is_adapter(tree, file)).flat_map(|file| check_file(tree, file)).collect()
}

fn is_adapter(tree: &Tree, file: &Source) -> bool {
    let package = file.path.strip_prefix("crates/").and_then(|inner| inner.split('/').next());
    package.is_some_and(|package| tree.floors.public.adapters.iter().any(|adapter| adapter == package))
}

fn check_file(tree: &Tree, file: &Source) -> Vec<Finding> {
    let face = &tree.floors.public.face;
    let tokens = tokens(&file.code);
    let mut found = Vec::new();
    for path in used_paths(&tokens) {
        let ["gridstone", name, ..] = path.segments.as_slice() else { continue };
        if face.iter().any(|floor| floor == name) {
            continue;
        }
        let line = tokens.get(path.token).map_or(1, |token| file.line_of(token.at));
        let message = format!(
            "an adapter names `gridstone::{name}`, which is inside the core and may change; use {} (or let `engine` \
             offer what is missing)",
            face.join(", ")
        );
        found.push(Finding::new(&file.path, line, message));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn adapters_use_the_face_only() {
        let path = "crates/gridstone-python/src/lib.rs";
        let good = "use gridstone::{base::Error, engine::Store, schema::Schema};\nuse pyo3::prelude::*;\n";
        assert!(lines(check, path, good).is_empty());
        assert_eq!(lines(check, path, "use gridstone::engine::Store;\nuse gridstone::{array::Log};\n"), [2]);
        assert_eq!(lines(check, path, "fn f(x: gridstone::tile::Tile) {}\n"), [1]);
        assert_eq!(lines(check, "crates/gridstone-capi/src/lib.rs", "use gridstone::*;\n"), [1]);
    }

    #[test]
    fn the_testkit_sees_everything() {
        assert!(lines(check, "crates/gridstone-testkit/src/lib.rs", "use gridstone::tile::Tile;\n").is_empty());
    }
}
