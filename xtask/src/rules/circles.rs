//! Files of a floor import one another without cycles, so that there is an order to read them in.

use crate::finding::Finding;
use crate::imports::{Module, Modules};
use crate::tree::Tree;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let modules = Modules::of(tree);
    tree.floors.without_circles().flat_map(|floor| check_floor(&modules, floor)).collect()
}

/// The imports of each module, with the line of the first import.
type Graph = BTreeMap<Module, BTreeMap<Module, usize>>;

fn check_floor(modules: &Modules<'_>, floor: &str) -> Vec<Finding> {
    let files: BTreeMap<&Module, &str> = modules.of_floor(floor).map(|(m, file)| (m, file.path.as_str())).collect();
    let mut graph = Graph::new();
    for module in files.keys() {
        let edges = graph.entry((*module).clone()).or_default();
        for import in modules.imports(module).into_iter().filter(|import| files.contains_key(&import.to)) {
            edges.entry(import.to).or_insert(import.line);
        }
    }
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for module in graph.keys() {
        let Some(circle) = circle(&graph, module) else { continue };
        if circle.iter().any(|step| seen.contains(step)) {
            continue;
        }
        let names: Vec<String> = circle.iter().chain(circle.first()).map(|step| step.join("::")).collect();
        let line = circle.get(1).or(circle.first()).and_then(|next| graph.get(module)?.get(next));
        let message = format!(
            "files import one another in a circle: {}; move what they share into a file below",
            names.join(" -> ")
        );
        found.push(Finding::new(files.get(module).copied().unwrap_or_default(), line.copied().unwrap_or(1), message));
        seen.extend(circle);
    }
    found
}

/// The shortest cycle from `start` back to itself, `start` first.
fn circle(graph: &Graph, start: &Module) -> Option<Vec<Module>> {
    let mut before: BTreeMap<&Module, &Module> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(module) = queue.pop_front() {
        for next in graph.get(module)?.keys() {
            if next == start {
                let mut way = vec![module.clone()];
                let mut at = module;
                while let Some(earlier) = before.get(at) {
                    way.push((*earlier).clone());
                    at = earlier;
                }
                way.reverse();
                return Some(way);
            }
            if next != start && !before.contains_key(next) {
                before.insert(next, module);
                queue.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).into_iter().map(|f| format!("{}:{}: {}", f.path, f.line, f.message)).collect()
    }

    #[test]
    fn a_circle_is_found_once_and_shown() {
        let a = ("crates/gridstone/src/query/a.rs", "\nuse super::b::B;\n");
        let b = ("crates/gridstone/src/query/b.rs", "use crate::query::c::C;\n");
        let c = ("crates/gridstone/src/query/c.rs", "fn f(x: super::a::A) {}\n");
        let reports = found(&[a, b, c]);
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert!(reports[0].starts_with("crates/gridstone/src/query/a.rs:2: "), "{reports:?}");
        assert!(reports[0].contains("query::a -> query::b -> query::c -> query::a"), "{reports:?}");
        assert!(found(&[a, b]).is_empty());
    }

    #[test]
    fn a_circle_through_a_folders_face_is_one() {
        let face = ("crates/gridstone/src/query/d/mod.rs", "mod e;\npub use e::E;\npub struct D;\n");
        let inner = ("crates/gridstone/src/query/d/e.rs", "use super::D;\n");
        assert_eq!(found(&[face, inner]).len(), 1);
        let apart = ("crates/gridstone/src/query/d/e.rs", "use super::super::x::D;\n");
        assert!(found(&[face, apart]).is_empty());
    }
}
