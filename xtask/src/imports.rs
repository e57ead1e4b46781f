//! The imports between the modules of the core, file by file. A name that a `mod.rs` re-exports counts as an import
//! from its origin. Tests are ignored.

use crate::lex::{InlineModule, Token, inline_modules, tokens, used_paths};
use crate::tree::{Source, Tree};
use std::collections::BTreeMap;

/// The folder of the floors.
pub(crate) const CORE: &str = "crates/gridstone/src/";

/// Through how many `mod.rs` a name may be re-exported.
const HANDS_MAX: usize = 8;

/// A module's path below the crate's root, with its floor first.
pub(crate) type Module = Vec<String>;

/// A path in a file that refers to a module of the core.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) to: Module,
    /// The first name after the crate's root, the second, …, as written.
    pub(crate) written: Vec<String>,
    pub(crate) line: usize,
}

/// The modules of the core by path, with their files.
pub(crate) struct Modules<'a> {
    files: BTreeMap<Module, &'a Source>,
    /// The re-exports of each `mod.rs`: the name, and the absolute path of its origin.
    taken: BTreeMap<Module, BTreeMap<String, Module>>,
}

impl<'a> Modules<'a> {
    pub(crate) fn of(tree: &'a Tree) -> Self {
        let core = tree.rust().filter(|file| file.path.starts_with(CORE));
        let files: BTreeMap<Module, &Source> = core.map(|file| (module_of(file), file)).collect();
        let mut modules = Self { files, taken: BTreeMap::new() };
        for (module, file) in &modules.files {
            if file.file_name() == "mod.rs" {
                let paths = absolute_paths(file, module).into_iter();
                let taken = paths.filter_map(|(path, _)| Some((path.last()?.clone(), path))).collect();
                modules.taken.insert(module.clone(), taken);
            }
        }
        modules
    }

    /// The modules of `floor`, except its `mod.rs`, with their files.
    pub(crate) fn of_floor(&self, floor: &str) -> impl Iterator<Item = (&Module, &'a Source)> {
        let inside = move |module: &Module| module.len() > 1 && module.first().is_some_and(|name| name == floor);
        self.files.iter().filter(move |(module, _)| inside(module) && !is_test(module)).map(|(m, file)| (m, *file))
    }

    /// The imports of `module`'s file from the core, without itself.
    pub(crate) fn imports(&self, module: &Module) -> Vec<Import> {
        let Some(file) = self.files.get(module) else { return Vec::new() };
        let paths = absolute_paths(file, module).into_iter();
        let found = paths.filter_map(|(written, line)| Some(Import { to: self.target(&written)?, written, line }));
        found.filter(|import| import.to != *module && !is_test(&import.to)).collect()
    }

    /// The module that an absolute path refers to.
    fn target(&self, path: &[String]) -> Option<Module> {
        let mut path = path.to_vec();
        for _ in 0..HANDS_MAX {
            let known = (1..=path.len()).rev().find(|n| path.get(..*n).is_some_and(|p| self.files.contains_key(p)))?;
            let (module, rest) = path.split_at_checked(known)?;
            let handed = rest.first().and_then(|name| self.taken.get(module)?.get(name));
            match handed.filter(|to| !to.starts_with(module) || to.len() > known + 1) {
                Some(to) => path = to.iter().chain(rest.get(1..).unwrap_or_default()).cloned().collect(),
                None => return Some(module.to_vec()),
            }
        }
        None
    }
}

fn module_of(file: &Source) -> Module {
    let inner = file.path.strip_prefix(CORE).and_then(|path| path.strip_suffix(".rs")).unwrap_or_default();
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    inner.split('/').filter(|part| *part != "lib").map(str::to_owned).collect()
}

fn is_test(module: &Module) -> bool {
    module.iter().any(|part| part == "tests")
}

/// The paths in `file` that begin at the crate's root, as absolute paths, each with its line; paths in tests are
/// omitted.
fn absolute_paths(file: &Source, module: &Module) -> Vec<(Module, usize)> {
    let tokens = tokens(&file.code);
    let inline = inline_modules(&tokens);
    let children = declared(&tokens);
    let mut found = Vec::new();
    for path in used_paths(&tokens) {
        let holding: Vec<&InlineModule<'_>> = inline.iter().filter(|inner| inner.holds(path.token)).collect();
        if holding.iter().any(|inner| inner.of_tests) {
            continue;
        }
        let inner: Module = module.iter().cloned().chain(holding.iter().map(|inner| inner.name.to_owned())).collect();
        let line = tokens.get(path.token).map_or(1, |token| file.line_of(token.at));
        found.extend(absolute(&path.segments, &inner, &children).map(|path| (path, line)));
    }
    found
}

/// The names of the modules that a file declares and that have files of their own.
fn declared<'a>(tokens: &[Token<'a>]) -> Vec<&'a str> {
    let named = tokens.windows(3).filter_map(|next| match next {
        [keyword, name, end] if keyword.text == "mod" && end.text == ";" => Some(name.text),
        _ => None,
    });
    named.collect()
}

fn absolute(segments: &[&str], module: &Module, children: &[&str]) -> Option<Module> {
    let (first, mut rest) = segments.split_first()?;
    let mut path = match *first {
        "crate" => Vec::new(),
        "self" => module.clone(),
        "super" => module.get(..module.len().checked_sub(1)?)?.to_vec(),
        name if children.contains(&name) => module.iter().cloned().chain([name.to_owned()]).collect(),
        _ => return None,
    };
    while let Some(("super", after)) = rest.split_first().map(|(name, after)| (*name, after)) {
        path.pop()?;
        rest = after;
    }
    path.extend(rest.iter().filter(|name| !matches!(**name, "self" | "*")).map(|name| (*name).to_owned()));
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Module {
        text.split('/').map(str::to_owned).collect()
    }

    fn imports(files: &[(&str, &str)], of: &str) -> Vec<String> {
        let files: Vec<(String, &str)> = files.iter().map(|(at, text)| (format!("{CORE}{at}"), *text)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(at, text)| (at.as_str(), *text)).collect();
        let tree = Tree::of(&files);
        Modules::of(&tree).imports(&path(of)).into_iter().map(|import| import.to.join("/")).collect()
    }

    #[test]
    fn paths_lead_to_files_however_they_are_written() {
        let files = [
            ("a/mod.rs", "mod b;\nmod c;\npub use b::Item;\n"),
            ("a/b.rs", "use super::c::d::Deep;\nuse crate::a::c::Other;\n"),
            ("a/c/mod.rs", "pub(super) mod d;\nuse super::Item;\nfn f() -> d::Deep { todo() }\n"),
            ("a/c/d.rs", "use super::super::Item as I;\nuse super::Other;\n"),
        ];
        assert_eq!(imports(&files, "a/b"), ["a/c/d", "a/c"]);
        assert_eq!(imports(&files, "a/c"), ["a/b", "a/c/d"], "handed on by a mod.rs");
        assert_eq!(imports(&files, "a/c/d"), ["a/b", "a/c"]);
    }

    #[test]
    fn other_inline_modules_import() {
        let files = [
            ("a/b.rs", "mod inner {\n    use super::super::c::C;\n    fn f() -> crate::a::d::D {}\n}\n"),
            ("a/c.rs", ""),
            ("a/d.rs", ""),
        ];
        assert_eq!(imports(&files, "a/b"), ["a/c", "a/d"]);
    }

    #[test]
    fn tests_import_nothing() {
        let files =
            [("a/b.rs", "mod tests { use super::super::c::C; }\n"), ("a/c.rs", ""), ("a/tests.rs", "use super::b;\n")];
        assert!(imports(&files, "a/b").is_empty());
        let tested = [("a/b.rs", "#[cfg(test)]\nmod model { use crate::a::c::C; }\n"), ("a/c.rs", "")];
        assert!(imports(&tested, "a/b").is_empty());
        let tree = Tree::of(&[("crates/gridstone/src/a/tests.rs", ""), ("crates/gridstone/src/a/b.rs", "")]);
        assert_eq!(Modules::of(&tree).of_floor("a").count(), 1);
    }
}
