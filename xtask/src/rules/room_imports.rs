//! Rooms of a floor import in one direction, and from the module that defines the item, not through the floor's
//! `mod.rs`.

use crate::finding::Finding;
use crate::floors::Room;
use crate::imports::{Import, Module, Modules};
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let modules = Modules::of(tree);
    let mut found = Vec::new();
    for floor in tree.floors.names() {
        let rooms: Vec<&Room> = tree.floors.rooms(floor).collect();
        if rooms.is_empty() {
            continue;
        }
        for (module, file) in modules.of_floor(floor) {
            let Some(room) = room_of(&rooms, module) else {
                let message =
                    format!("a file of the floor `{floor}` in none of its rooms; add it to xtask/floors.toml");
                found.push(Finding::new(&file.path, 1, message));
                continue;
            };
            let breaches = modules.imports(module).into_iter().filter_map(|import| breach(floor, room, &import));
            found.extend(breaches.map(|(line, message)| Finding::new(&file.path, line, message)));
        }
    }
    found
}

fn room_of<'a>(rooms: &[&'a Room], module: &Module) -> Option<&'a Room> {
    let name = module.get(1)?;
    rooms.iter().find(|room| room.name == *name).copied()
}

fn breach(floor: &str, room: &Room, import: &Import) -> Option<(usize, String)> {
    if import.to.first().is_none_or(|first| first != floor) {
        return None;
    }
    let named = import.written.get(1)?;
    let Some(held) = import.to.get(1) else {
        return Some((import.line, format!("`{named}` is of the face of `{floor}`, which its rooms do not see")));
    };
    if held != named {
        return Some((import.line, format!("`{named}` comes through the face of `{floor}`; import it from `{held}`")));
    }
    (*held != room.name && !room.imports.contains(held)).then(|| {
        let allowed = if room.imports.is_empty() { "none".to_owned() } else { room.imports.join(", ") };
        let message = format!(
            "the room `{}` imports `{held}`, but rooms only look down (`{}` may import {allowed}); move the item down",
            room.name, room.name
        );
        (import.line, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACE: (&str, &str) =
        ("crates/gridstone/src/query/mod.rs", "mod block;\nmod write;\npub use write::Staged;\npub fn f() {}\n");
    const WRITE: (&str, &str) = ("crates/gridstone/src/query/write/mod.rs", "use super::request::WriteContext;\n");
    const REQUEST: (&str, &str) = ("crates/gridstone/src/query/request.rs", "");

    fn lines(text: &str) -> Vec<usize> {
        let block = ("crates/gridstone/src/query/block/fetch.rs", text);
        check(&Tree::of(&[FACE, WRITE, REQUEST, block])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn rooms_look_down_and_past_the_face() {
        assert!(lines("use crate::query::request::ReadContext;\nuse crate::tile::Column;\n").is_empty());
        assert_eq!(lines("\nuse crate::query::write::Staged;\n"), [2], "up");
        assert_eq!(lines("fn g(x: super::super::write::Staged) {}\n"), [1], "up");
        assert_eq!(lines("use crate::query::Staged;\n"), [1], "through the face");
        assert_eq!(lines("use crate::query::f;\n"), [1], "of the face");
    }

    #[test]
    fn every_file_is_in_a_room() {
        let stray = ("crates/gridstone/src/query/attic/mod.rs", "//! Doc.\n");
        assert_eq!(check(&Tree::of(&[stray])).len(), 1);
    }
}
