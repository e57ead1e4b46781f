//! Packages of `python/gridstone` import only down their table, and modules import one another without cycles.
//!
//! 1. Each file belongs to a package: its folder, or the module itself if it lies beside the folders. The root's
//!    `__init__` is a package of its own, above all others.
//! 2. Every import counts: at the top, in a function, for type checkers only, by a literal text. The computed imports
//!    of a `__getattr__` in an `__init__` are unknown, so only the root's may have them.
//! 3. Within a package the imports between modules have no cycle; an `__init__` is a module like the others.

use crate::finding::Finding;
use crate::lex::{python_imports, tokens};
use crate::tree::{Source, Tree};
use std::collections::{BTreeMap, VecDeque};

const ROOT: &str = "python/gridstone/";
const NAME: &str = "gridstone";
const TABLE: &str = "xtask/packages.toml";
const TOP: &str = "__init__";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let modules: BTreeMap<String, &Source> =
        tree.python().filter_map(|file| Some((module_of(&file.path)?, file))).collect();
    let mut found = table_findings(tree, &modules);
    let mut inner: BTreeMap<&str, Vec<Edge<'_>>> = BTreeMap::new();
    for (name, file) in &modules {
        for edge in edges(&modules, name, file) {
            match edge.to {
                Ok(to) if package_of(to) == package_of(name) => inner.entry(name.as_str()).or_default().push(edge),
                _ => found.extend(breach(tree, file, name, &edge)),
            }
        }
        found.extend(computed(name, file));
    }
    found.extend(circles(&modules, &inner));
    found
}

/// An import of a module, and its line: one of our modules, or an unknown name.
#[derive(Debug)]
struct Edge<'a> {
    to: Result<&'a str, String>,
    line: usize,
}

/// The dotted name of a module below the root, `__init__` for the root itself; `None` for other files.
fn module_of(path: &str) -> Option<String> {
    let inner = path.strip_prefix(ROOT)?;
    let dotted = inner.strip_suffix(".py").or_else(|| inner.strip_suffix(".pyi"))?.replace('/', ".");
    Some(dotted.strip_suffix(".__init__").map_or(dotted.clone(), str::to_owned))
}

fn package_of(module: &str) -> &str {
    module.split('.').next().unwrap_or_default()
}

/// Packages that only the table or only the tree has. A tree without the root lacks none.
fn table_findings(tree: &Tree, modules: &BTreeMap<String, &Source>) -> Vec<Finding> {
    let mut found = Vec::new();
    if modules.contains_key(TOP) {
        for name in tree.packages.names().filter(|name| !modules.keys().any(|module| package_of(module) == *name)) {
            found.push(Finding::new(
                TABLE,
                1,
                format!("there is no package `{name}` in {ROOT}; take it out of the table"),
            ));
        }
    }
    let mut unknown: BTreeMap<&str, &Source> = BTreeMap::new();
    for (module, file) in modules {
        if tree.packages.imports(package_of(module)).is_none() {
            unknown.entry(package_of(module)).or_insert(file);
        }
    }
    found.extend(unknown.into_iter().map(|(package, file)| {
        let message = format!("`{package}` is not in {TABLE}; move the file, or say there what the package imports");
        Finding::new(&file.path, 1, message)
    }));
    found
}

/// The imports of a module from the package.
fn edges<'a>(modules: &'a BTreeMap<String, &Source>, name: &str, file: &Source) -> Vec<Edge<'a>> {
    let mut found = Vec::new();
    for import in python_imports(&file.text, &file.code) {
        let line = file.line_of(import.at);
        let Some(base) = base_of(name, file, import.level, &import.module) else { continue };
        let below = import.name.as_ref().map(|name| joined(&base, name));
        let known = below.into_iter().chain([base.clone()]).find_map(|asked| known_module(modules, &asked));
        let to = known.ok_or_else(|| if base.is_empty() { TOP.to_owned() } else { base });
        found.push(Edge { to, line });
    }
    found
}

fn known_module<'a>(modules: &'a BTreeMap<String, &Source>, asked: &str) -> Option<&'a str> {
    let asked = if asked.is_empty() { TOP } else { asked };
    modules.get_key_value(asked).map(|(known, _)| known.as_str())
}

/// The dotted name, below the root, of the module between `from` and `import`; `None` if it is not ours.
fn base_of(name: &str, file: &Source, level: usize, module: &str) -> Option<String> {
    if level == 0 {
        let inner = module.strip_prefix(NAME)?;
        return if inner.is_empty() { Some(String::new()) } else { inner.strip_prefix('.').map(str::to_owned) };
    }
    let own: Vec<&str> = if name == TOP { Vec::new() } else { name.split('.').collect() };
    // An `__init__` is its folder; the first dot of any other module removes its own name.
    let off = if file.file_name().starts_with("__init__.") { level - 1 } else { level };
    let kept = own.get(..own.len().checked_sub(off)?)?.join(".");
    Some(if module.is_empty() { kept } else { joined(&kept, module) })
}

fn joined(base: &str, name: &str) -> String {
    if base.is_empty() { name.to_owned() } else { format!("{base}.{name}") }
}

fn breach(tree: &Tree, file: &Source, name: &str, edge: &Edge<'_>) -> Option<Finding> {
    let package = package_of(name);
    let imports = tree.packages.imports(package)?;
    let message = match &edge.to {
        Err(asked) => format!("`{asked}` is no module of {ROOT}; mend the import"),
        Ok(TOP) => {
            "imports from the root, which stands above all packages; import from the module that has it".to_owned()
        }
        Ok(to) if imports.iter().any(|known| known == package_of(to)) => return None,
        Ok(to) => {
            let allowed = if imports.is_empty() { "nothing".to_owned() } else { imports.join(", ") };
            format!(
                "`{package}` imports `{to}`, but {TABLE} lets it import {allowed}, also in functions and for type \
                 checkers; move what is needed down, take a function, or write a Protocol"
            )
        }
    };
    Some(Finding::new(&file.path, edge.line, message))
}

/// A module's own `__getattr__`, whose imports are unknown here.
fn computed(name: &str, file: &Source) -> Option<Finding> {
    let tokens = tokens(&file.code);
    let lazy = tokens.windows(2).find_map(|pair| match pair {
        [def, call] if def.text == "def" && call.text == "__getattr__" => Some(def),
        _ => None,
    })?;
    let top_level = file.code.get(..lazy.at).is_none_or(|before| before.is_empty() || before.ends_with('\n'));
    (top_level && name != TOP).then(|| {
        let message = "a module that makes names when asked hides what it imports; only the root's `__init__` may";
        Finding::new(&file.path, file.line_of(lazy.at), message)
    })
}

/// The first cycle through each module that is in one, reported once, at the import that begins it.
fn circles(modules: &BTreeMap<String, &Source>, inner: &BTreeMap<&str, Vec<Edge<'_>>>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut reported: Vec<&str> = Vec::new();
    for (name, edges) in inner {
        if reported.contains(name) {
            continue;
        }
        let back = edges.iter().find_map(|edge| {
            let to = edge.to.as_deref().ok()?;
            let way = way(inner, to, name)?;
            (to != *name).then_some((edge, way))
        });
        if let (Some((edge, way)), Some(file)) = (back, modules.get(*name)) {
            let message = format!(
                "`{name}` imports itself in a circle ({name} -> {}), also if by an import in a function or for type \
                 checkers; move what both need into a module below them",
                way.join(" -> ")
            );
            found.push(Finding::new(&file.path, edge.line, message));
            reported.extend(way);
        }
    }
    found
}

/// The shortest path of imports from one module to another, both ends inclusive.
fn way<'a>(inner: &BTreeMap<&'a str, Vec<Edge<'a>>>, from: &'a str, to: &'a str) -> Option<Vec<&'a str>> {
    let mut before: BTreeMap<&str, Option<&str>> = BTreeMap::from([(from, None)]);
    let mut pending = VecDeque::from([from]);
    while let Some(at) = pending.pop_front() {
        if at == to {
            let mut way = vec![at];
            while let Some(Some(previous)) = before.get(way.last().copied().unwrap_or_default()) {
                way.push(*previous);
            }
            way.reverse();
            return Some(way);
        }
        for next in inner.get(at).into_iter().flatten().filter_map(|edge| edge.to.as_ref().ok()) {
            if !before.contains_key(*next) {
                before.insert(*next, Some(at));
                pending.push_back(*next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;
    use crate::packages::Packages;

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        let found = check(&Tree::of(files)).into_iter();
        found.map(|finding| format!("{}:{}: {}", finding.path, finding.line, finding.message)).collect()
    }

    /// Findings in `text` as a module of the package `column`, beside modules to import.
    fn found(text: &str) -> Vec<usize> {
        let files = [
            ("python/gridstone/column/arrow.py", text),
            ("python/gridstone/column/columns.py", ""),
            ("python/gridstone/base/html.py", ""),
            ("python/gridstone/errors.py", ""),
            ("python/gridstone/_native.pyi", ""),
            ("python/gridstone/arrays/array.py", ""),
        ];
        check(&Tree::of(&files)).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn imports_down_and_of_others_are_fine() {
        let good = "from .. import _native\nfrom ..base import html\nfrom ..base.html import escape\n\
                    from . import columns\nfrom ..errors import InputError\nimport numpy as np\n\
                    import gridstone.base.html\nfrom gridstonelike import x\n";
        assert!(found(good).is_empty(), "{:?}", found(good));
    }

    #[test]
    fn imports_up_are_found_wherever_they_stand() {
        assert_eq!(found("from ..arrays.array import Array\n"), [1]);
        assert_eq!(found("from ..arrays import array\n"), [1]);
        assert_eq!(found("def f():\n    from ..arrays.array import Array\n"), [2]);
        assert_eq!(found("if TYPE_CHECKING:\n    from ..arrays.array import Array\n"), [2]);
        assert_eq!(found("from gridstone.arrays.array import Array\n"), [1]);
        assert_eq!(found("x = 1\nimport gridstone.arrays.array as a\n"), [2]);
        assert_eq!(found("importlib.import_module(\"gridstone.arrays.array\")\n"), [1]);
        assert_eq!(
            found("from ..errors import (\n    InputError,\n)\nfrom ..arrays.array import (\n    Array,\n)\n"),
            [4]
        );
    }

    #[test]
    fn nothing_imports_from_the_root() {
        let files = [
            ("python/gridstone/__init__.py", "from . import errors\n"),
            ("python/gridstone/errors.py", ""),
            ("python/gridstone/base/html.py", "from .. import __version__\n"),
        ];
        let reports = messages(&files).into_iter().filter(|message| !message.starts_with(TABLE)).collect::<Vec<_>>();
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert!(reports[0].starts_with("python/gridstone/base/html.py:1: imports from the root"));
        assert!(messages(&[("python/gridstone/base/html.py", "import gridstone\n")])[0].contains("no module"));
        assert!(messages(&[("python/gridstone/base/html.py", "from .gone import x\n")])[0].contains("`base.gone`"));
    }

    #[test]
    fn no_circle_within_a_package() {
        let circle = |first: &str, second: &str| {
            messages(&[("python/gridstone/column/a.py", first), ("python/gridstone/column/b.py", second)])
        };
        assert!(circle("from . import b\n", "").is_empty());
        for back in [
            "from . import a\n",
            "def f():\n    from .a import x\n",
            "if TYPE_CHECKING:\n    from .a import x\n",
            "from gridstone.column import a\n",
        ] {
            let reports = circle("\nfrom .b import y\n", back);
            assert_eq!(reports.len(), 1, "{reports:?}");
            assert!(reports[0].starts_with("python/gridstone/column/a.py:2: "), "{reports:?}");
            assert!(reports[0].contains("column.a -> column.b -> column.a"), "{reports:?}");
        }
    }

    #[test]
    fn an_init_is_a_module_too() {
        let files = [
            ("python/gridstone/io/__init__.py", "from .csv.read import from_csv\n"),
            ("python/gridstone/io/csv/__init__.py", ""),
            ("python/gridstone/io/csv/read.py", "from .. import from_csv\n"),
        ];
        let reports = messages(&files);
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert!(reports[0].contains("io -> io.csv.read -> io"), "{reports:?}");
    }

    #[test]
    fn lazy_names_are_the_roots_alone() {
        let lazy = "\ndef __getattr__(name):\n    pass\n";
        assert_eq!(lines(check, "python/gridstone/base/html.py", lazy), [2]);
        assert!(lines(check, "python/gridstone/base/html.py", "class A:\n    def __getattr__(self): ...\n").is_empty());
    }

    #[test]
    fn table_and_folders_name_the_same_packages() {
        assert_eq!(lines(check, "python/gridstone/attic/old.py", ""), [1]);
        let mut tree = Tree::of(&[("python/gridstone/__init__.py", ""), ("python/gridstone/errors.py", "")]);
        let table = |names: &[&str]| {
            let rows = names.iter().map(|name| format!("[[package]]\nname = \"{name}\"\nimports = []\n"));
            Packages::parse(&rows.collect::<String>()).unwrap()
        };
        tree.packages = table(&["errors", "__init__"]);
        assert!(check(&tree).is_empty());
        tree.packages = table(&["errors", "attic", "__init__"]);
        assert_eq!(check(&tree).iter().map(|finding| finding.path.as_str()).collect::<Vec<_>>(), [TABLE]);
    }
}
