//! Imports go only down the table of floors, in tests too.
//!
//! A file's module path has a depth (`base/io.rs` is `crate::base::io`, depth 2; a module written inside adds one).
//! `crate` goes to depth 0, each `super` one up; the name that follows depth 0 is a floor.

use crate::finding::Finding;
use crate::imports::CORE;
use crate::lex::{inline_modules, tokens, used_paths};
use crate::tree::{Source, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().filter(|file| file.path.starts_with(CORE)).flat_map(|file| check_file(tree, file)).collect()
}

/// The floor of `file`; `None` for the crate's root and for other crates.
pub(super) fn floor_of(file: &Source) -> Option<&str> {
    file.path.strip_prefix(CORE)?.split_once('/').map(|(floor, _)| floor)
}

fn check_file(tree: &Tree, file: &Source) -> Vec<Finding> {
    let Some(floor) = floor_of(file) else {
        let stray = file.path != format!("{CORE}lib.rs");
        let message = "a file of the core outside the floors, which no rule of imports covers; move it into one";
        return stray.then(|| Finding::new(&file.path, 1, message)).into_iter().collect();
    };
    let Some(imports) = tree.floors.imports(floor) else {
        let message = format!(
            "`{floor}` is not a floor; the floors are {}: move the file, or add the floor to xtask/floors.toml",
            tree.floors.names().collect::<Vec<_>>().join(", ")
        );
        return vec![Finding::new(&file.path, 1, message)];
    };
    floors_named(file)
        .into_iter()
        .filter(|(named, _)| named != floor && !imports.contains(named))
        .map(|(named, line)| Finding::new(&file.path, line, breach(tree, floor, &named, imports)))
        .collect()
}

fn breach(tree: &Tree, floor: &str, named: &str, imports: &[String]) -> String {
    let allowed = if imports.is_empty() { "nothing".to_owned() } else { imports.join(", ") };
    match tree.floors.imports(named) {
        Some(_) => format!(
            "`{floor}` imports `{named}`, but the floors only look down (`{floor}` may import {allowed}); \
             move the item down, or put a trait into `base`"
        ),
        None => format!("`{named}` of the crate's root is not a floor; name the floor that holds the item"),
    }
}

/// The names after the crate's root, each with its line.
fn floors_named(file: &Source) -> Vec<(String, usize)> {
    let tokens = tokens(&file.code);
    let modules = inline_modules(&tokens);
    let mut named = Vec::new();
    for path in used_paths(&tokens) {
        let inside = modules.iter().filter(|module| module.holds(path.token)).count();
        let Some(name) = name_after_root(&path.segments, depth(file) + inside) else { continue };
        let line = tokens.get(path.token).map_or(1, |token| file.line_of(token.at));
        named.push((name.to_owned(), line));
    }
    named
}

fn depth(file: &Source) -> usize {
    let inner = file.path.strip_prefix(CORE).unwrap_or_default();
    inner.split('/').filter(|part| *part != "mod.rs").count()
}

fn name_after_root<'a>(segments: &[&'a str], mut depth: usize) -> Option<&'a str> {
    let mut climbed = false;
    for segment in segments {
        match *segment {
            "crate" => depth = 0,
            "super" => depth = depth.saturating_sub(1),
            "self" if !climbed => {}
            name => return (climbed && depth == 0).then_some(name),
        }
        climbed = true;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn looking_down_is_fine() {
        let good = "//! Doc.\nuse super::Id;\nuse crate::{base::{Error, Id}, codec};\npub(crate) fn f() {}\n";
        assert!(lines(check, "crates/gridstone/src/schema/domain.rs", good).is_empty());
        assert!(lines(check, "crates/gridstone/src/lib.rs", "pub mod base;\n").is_empty());
        assert!(lines(check, "crates/gridstone-python/src/lib.rs", "use crate::array::X;\n").is_empty());
    }

    #[test]
    fn looking_up_is_found_in_every_spelling() {
        let path = "crates/gridstone/src/codec/zstd.rs";
        assert_eq!(lines(check, path, "\nuse crate::schema::Schema;\n"), [2]);
        assert_eq!(lines(check, path, "use crate::{base::Id,\n    array::Log};\n"), [2]);
        assert_eq!(lines(check, path, "fn f(x: super::super::tile::Tile) {}\n"), [1]);
        assert_eq!(lines(check, path, "mod tests {\n    use super::super::super::query::Plan;\n}\n"), [2]);
        assert_eq!(lines(check, path, "use super::{super::engine};\n"), [1]);
        assert_eq!(lines(check, "crates/gridstone/src/codec/mod.rs", "use super::schema::Schema;\n"), [1]);
    }

    #[test]
    fn the_crates_root_is_no_floor() {
        let path = "crates/gridstone/src/codec/zstd.rs";
        assert_eq!(lines(check, path, "use crate::Error;\n"), [1]);
        assert_eq!(lines(check, path, "use crate::*;\n"), [1]);
        assert_eq!(lines(check, "crates/gridstone/src/util.rs", "//! Doc.\n"), [1]);
        assert_eq!(lines(check, "crates/gridstone/src/attic/mod.rs", "//! Doc.\n"), [1]);
    }

    #[test]
    fn comments_and_strings_import_nothing() {
        let text = "// use crate::engine::Store;\nconst S: &str = \"crate::engine::Store\";\n";
        assert!(lines(check, "crates/gridstone/src/codec/zstd.rs", text).is_empty());
    }
}
