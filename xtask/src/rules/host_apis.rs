//! Files, sockets, threads, clocks, randomness and the environment are used only on their own floors.
//!
//! So the rest can be fuzzed, run under Miri, and needs no async twin.

use super::floor_imports::floor_of;
use crate::finding::Finding;
use crate::lex::{UsedPath, tokens, used_paths};
use crate::tree::{Source, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(|file| check_file(tree, file)).collect()
}

fn check_file(tree: &Tree, file: &Source) -> Vec<Finding> {
    let Some(floor) = floor_of(file) else { return Vec::new() };
    let tokens = tokens(&file.code);
    let mut found = Vec::new();
    for path in used_paths(&tokens) {
        let Some(message) = breach(tree, floor, &path) else { continue };
        let line = tokens.get(path.token).map_or(1, |token| file.line_of(token.at));
        found.push(Finding::new(&file.path, line, message));
    }
    found
}

fn breach(tree: &Tree, floor: &str, path: &UsedPath<'_>) -> Option<String> {
    let sans_io = &tree.floors.sans_io;
    if sans_io.floors.iter().any(|name| name == floor)
        && let Some(forbidden) = sans_io.forbidden.iter().find(|forbidden| touches(path, forbidden))
    {
        return Some(format!(
            "`{floor}` reaches `{forbidden}`, but it takes bytes and gives values only, so that it can be fuzzed; \
             take what is needed through a trait of `base`"
        ));
    }
    let confined = tree.floors.confined.iter().find(|confined| touches(path, &confined.path))?;
    (!confined.floors.iter().any(|name| name == floor)).then(|| {
        format!(
            "`{floor}` reaches `{}`, which belongs to {} alone; go through a trait of `base`",
            confined.path,
            confined.floors.join(", ")
        )
    })
}

/// Whether `path` names `forbidden` or something in it, or imports a whole module that contains it.
fn touches(path: &UsedPath<'_>, forbidden: &str) -> bool {
    let forbidden: Vec<&str> = forbidden.split("::").collect();
    if path.segments.starts_with(&forbidden) {
        return true;
    }
    let module = match path.segments.as_slice() {
        [module @ .., "self" | "*"] => module,
        whole => whole,
    };
    !module.is_empty() && forbidden.starts_with(module)
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn sans_io_floors_touch_no_machine() {
        let path = "crates/gridstone/src/tile/grid.rs";
        assert_eq!(lines(check, path, "use std::{sync::Arc,\n fs};\n"), [2]);
        assert_eq!(lines(check, path, "use std::time::{Duration, Instant};\n"), [1]);
        assert_eq!(lines(check, path, "use std::time;\n"), [1]);
        assert_eq!(lines(check, path, "fn f() { getrandom::fill(&mut b); std::env::var(\"A\"); }\n"), [1, 1]);
        let good = "use std::{io, sync::Arc, time::Duration};\nuse std::fmt::{self, Write as _};\n";
        assert!(lines(check, path, good).is_empty());
    }

    #[test]
    fn files_belong_to_storage_and_threads_to_runtime() {
        assert_eq!(lines(check, "crates/gridstone/src/array/log.rs", "use std::fs::File;\n"), [1]);
        assert_eq!(lines(check, "crates/gridstone/src/query/fetch.rs", "fn f() { std::thread::spawn(g); }\n"), [1]);
        assert!(lines(check, "crates/gridstone/src/storage/local.rs", "use std::fs::File;\n").is_empty());
        assert!(lines(check, "crates/gridstone/src/runtime/pool.rs", "use std::thread;\n").is_empty());
        assert!(lines(check, "crates/gridstone/src/engine/clock.rs", "use std::time::Instant;\n").is_empty());
        assert!(lines(check, "crates/gridstone/tests/main.rs", "use std::fs;\n").is_empty());
    }
}
