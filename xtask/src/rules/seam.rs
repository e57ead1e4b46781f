//! The seam of tile sources: above the floor that owns the grids of stored tiles, only the files that the table names
//! lay out grids, and those are of what is asked for or written. Other files ask a tile source.

use crate::finding::Finding;
use crate::imports::Modules;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let (modules, Some(seam)) = (Modules::of(tree), &tree.floors.seam) else { return Vec::new() };
    let above = tree.floors.names().skip_while(|floor| *floor != seam.floor).skip(1);
    let mut found = Vec::new();
    for (module, file) in above.flat_map(|floor| modules.of_floor(floor)) {
        let name = module.join("::");
        let allowed = seam.uses.iter().find(|one| one.module == name);
        let imports = modules.imports(module);
        let named = imports.iter().find_map(|import| {
            if import.to.first().is_some_and(|floor| *floor == seam.floor) {
                let source = import.written.iter().find(|name| seam.sources.contains(name))?;
                return Some((import.line, source));
            }
            let held = import.to.first().is_some_and(|floor| *floor == seam.of);
            // The floor's name alone stands for all that it holds.
            let whole = import.written.first().filter(|_| import.written.len() == 1);
            let item = whole.or_else(|| import.written.iter().find(|name| seam.items.contains(name)))?;
            held.then_some((import.line, item))
        });
        match (named, allowed) {
            (Some((line, item)), None) => {
                let message = format!(
                    "`{item}` lays out stored tiles, which only `{}` does; ask a `TileSource`, or say in \
                     xtask/floors.toml what else it lays out",
                    seam.floor
                );
                found.push(Finding::new(&file.path, line, message));
            }
            (None, Some(_)) => {
                let message = format!("`{name}` lays out no grid; take it out of the seam in xtask/floors.toml");
                found.push(Finding::new(&file.path, 1, message));
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let grid = ("crates/gridstone/src/tile/mod.rs", "mod grid;\npub use grid::TileGrid;\n");
        let held = ("crates/gridstone/src/tile/grid.rs", "pub struct TileGrid;\n");
        let face = ("crates/gridstone/src/fragment/mod.rs", "mod dense;\npub use dense::DenseFragment;\n");
        let source = ("crates/gridstone/src/fragment/dense.rs", "pub struct DenseFragment;\n");
        let files = [grid, held, face, source, (path, text)];
        let some: Vec<(&str, &str)> = files.into_iter().filter(|(at, code)| *at != path || *code == text).collect();
        check(&Tree::of(&some)).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn grids_above_the_seam_are_found_however_they_are_named() {
        let file = "crates/gridstone/src/query/points/dense.rs";
        assert_eq!(lines(file, "use crate::base::Result;\nuse crate::tile::{Cells, TileGrid};\n"), [2]);
        assert_eq!(lines(file, "fn f() {\n    crate::tile::BlockGrid::new();\n}\n"), [2]);
        assert_eq!(lines(file, "use crate::tile::grid::TileGrid;\n"), [1]);
        assert_eq!(lines(file, "use crate::tile::*;\n"), [1]);
        assert_eq!(lines(file, "mod grids {\n    pub fn f() { crate::tile::TileGrid::new() }\n}\n"), [2]);
        assert_eq!(lines(file, "use crate::tile;\n"), [1]);
        assert_eq!(lines(file, "use crate::fragment::{Fragment, DenseFragment};\n"), [1]);
        assert!(lines(file, "use crate::fragment::{Fragment, TileSource};\n").is_empty());
        assert!(lines(file, "use crate::tile::Cells;\nuse crate::schema::TileGrid;\n").is_empty());
        assert!(lines("crates/gridstone/src/fragment/dense.rs", "use crate::tile::TileGrid;\n").is_empty());
    }

    #[test]
    fn a_file_of_the_table_lays_out_a_grid() {
        let file = "crates/gridstone/src/query/write/dense.rs";
        assert!(lines(file, "use crate::tile::TileGrid;\n").is_empty());
        assert_eq!(lines(file, "use crate::tile::Column;\n"), [1]);
    }
}
