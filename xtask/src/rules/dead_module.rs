//! Every Rust file is part of some crate: `mod` declarations lead to it from a root that cargo builds.

use crate::finding::Finding;
use crate::lex::{Token, inline_modules, tokens};
use crate::tree::{Source, Tree};
use std::collections::BTreeSet;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut alive: BTreeSet<String> = BTreeSet::new();
    let mut pending: Vec<&Source> = tree.rust().filter(|file| is_root(tree, file)).collect();
    while let Some(file) = pending.pop() {
        if alive.insert(file.path.clone()) {
            pending.extend(declared(tree, file));
        }
    }
    let dead = tree.rust().filter(|file| !alive.contains(&file.path));
    dead.map(|file| {
        let message = "no `mod` reaches this file, so nothing compiles it; declare it in its parent, or delete it";
        Finding::new(&file.path, 1, message)
    })
    .collect()
}

/// Whether `file` is a crate root: at one of the usual paths, or named by a manifest above.
fn is_root(tree: &Tree, file: &Source) -> bool {
    if matches!(file.file_name(), "lib.rs" | "main.rs" | "build.rs") {
        return true;
    }
    let folder = file.folder().rsplit('/').next().unwrap_or_default();
    matches!(folder, "tests" | "benches" | "examples" | "bin" | "fuzz_targets") || is_named_by_manifest(tree, file)
}

fn is_named_by_manifest(tree: &Tree, file: &Source) -> bool {
    let mut manifests = tree.files.iter().filter(|manifest| manifest.file_name() == "Cargo.toml");
    manifests.any(|manifest| {
        let mut quoted = manifest.text.split('"').filter(|text| text.ends_with(".rs"));
        quoted.any(|path| resolved(manifest.folder(), path) == file.path)
    })
}

/// The path of what `path` means in `folder`, without `..`.
fn resolved(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The files of the `mod name;` declarations of `file`.
fn declared<'a>(tree: &'a Tree, file: &Source) -> Vec<&'a Source> {
    let tokens = tokens(&file.code);
    let modules = inline_modules(&tokens);
    let mut found = Vec::new();
    for (index, window) in tokens.windows(3).enumerate() {
        let [keyword, name, end] = window else { continue };
        if keyword.text != "mod" || end.text != ";" {
            continue;
        }
        let inside: Vec<&str> = modules.iter().filter(|module| module.holds(index)).map(|module| module.name).collect();
        let candidates = match path_attribute(file, &tokens, index) {
            Some(path) => vec![resolved(file.folder(), path)],
            None => places(file, &inside, name.text),
        };
        found.extend(candidates.iter().filter_map(|path| tree.get(path)));
    }
    found
}

/// The possible paths of the module `name`, declared in `file` inside the modules `inside`.
fn places(file: &Source, inside: &[&str], name: &str) -> Vec<String> {
    let stem = file.file_name().trim_end_matches(".rs");
    let own = file.folder().to_owned();
    let below = joined(&own, stem);
    let mut folders = if matches!(stem, "mod" | "lib" | "main") { vec![own] } else { vec![below, own] };
    for folder in &mut folders {
        *folder = inside.iter().fold(folder.clone(), |folder, module| joined(&folder, module));
    }
    folders
        .iter()
        .flat_map(|folder| [joined(folder, &format!("{name}.rs")), joined(folder, &format!("{name}/mod.rs"))])
        .collect()
}

fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The path of a `#[path = "…"]` before the declaration at `index`; its visibility may be in between.
fn path_attribute<'a>(file: &'a Source, tokens: &[Token<'_>], index: usize) -> Option<&'a str> {
    let before = tokens.get(index.saturating_sub(9)..index)?;
    let attribute = before.windows(4).rev().find_map(|window| match window {
        [path, equals, value, close] if path.text == "path" && equals.text == "=" && close.text == "]" => Some(value),
        _ => None,
    })?;
    let is_own = before.iter().filter(|token| token.at > attribute.at).all(|token| !matches!(token.text, ";" | "}"));
    let quoted = file.text.get(attribute.at..attribute.at + attribute.text.len())?;
    is_own.then(|| quoted.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn reached_files_are_alive() {
        let files = [
            ("crates/x/src/lib.rs", "mod a;\npub(crate) mod b;\n#[path = \"odd.rs\"]\nmod c;"),
            ("crates/x/src/a/mod.rs", "mod inner;"),
            ("crates/x/src/a/inner.rs", ""),
            ("crates/x/src/b.rs", "mod below { mod deep; }"),
            ("crates/x/src/b/below/deep.rs", ""),
            ("crates/x/src/odd.rs", ""),
            ("crates/x/tests/main.rs", "mod promise;"),
            ("crates/x/tests/promise.rs", ""),
            ("fuzz/fuzz_targets/page.rs", ""),
            ("examples/rust/hello.rs", ""),
            ("crates/x/Cargo.toml", ""),
            ("Cargo.toml", "path = \"examples/rust/hello.rs\""),
            ("examples/rust/beside.rs", ""),
            ("examples/rust/tested.rs", ""),
            ("crates/y/Cargo.toml", "path = \"../../examples/rust/beside.rs\""),
            ("crates/y/tests/main.rs", "#[path = \"../../../examples/rust/tested.rs\"]\nmod tested;"),
        ];
        assert!(dead(&files).is_empty(), "{:?}", dead(&files));
    }

    #[test]
    fn unreached_files_are_dead() {
        let files = [
            ("crates/x/src/lib.rs", "// mod a;\n/* mod b; */\nmod c { }"),
            ("crates/x/src/a.rs", "mod b;"),
            ("crates/x/src/b.rs", ""),
            ("crates/x/src/c.rs", ""),
        ];
        assert_eq!(dead(&files), ["crates/x/src/a.rs", "crates/x/src/b.rs", "crates/x/src/c.rs"]);
    }
}
