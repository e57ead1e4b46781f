//! The scripted life of a store, which crash harnesses cut short: every kind of work there is, once in a table.
//!
//! A [`Kind`] does something to a store and says what it means to the model. A [`script`] does each of its kinds twice, in
//! chapters of two steps; folds happen every third version, so that each kind meets some. The version that a step ends at is found in a
//! rehearsal. A new kind of work is one more entry of [`kinds`], or, where it wants a store of another sort, of another script:
//! [`sealed`], [`doubled`], [`mended`], [`together`], [`attached`], [`copied`].

pub(crate) mod alternating;
mod attached;
pub(crate) mod check;
mod copied;
pub(crate) mod doubled;
pub(crate) mod hand;
mod mended;
pub(crate) mod model;
mod parts;
pub(crate) mod script;
mod sealed;
mod together;

use gridstone::base::Result;
use gridstone::engine::{Isolation, Strategy};
use gridstone_testkit::Dice;
use hand::{Hand, Sort};
use model::{EVERYWHERE, Model, Node, Size, TILE, area, filled, notes, places, scattered};
use script::Script;
use std::collections::BTreeSet;

/// The dense array of the script, and the sparse one.
pub(crate) const GRID: &str = "/grid";
pub(crate) const CELLS: &str = "/deep/cells";

/// A kind of work.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// Does it, as the seed says, and gives the store's version afterwards.
    pub(crate) act: fn(&mut Hand, u64) -> Result<u64>,
    /// What it means. Its last version shows this; earlier ones, if it makes several, show what was there before, unless the hand
    /// says that they showed it already.
    pub(crate) mean: fn(&mut Model, u64),
}

/// All scripts, each of a store of its own.
pub(crate) fn scripts() -> Vec<Script> {
    let mut all = vec![Script { kinds, again: true, reads: true, ..Script::new("plain") }];
    all.extend([sealed::script(), doubled::script(), together::script(), attached::script()]);
    all.extend(copied::scripts());
    all.extend(mended::scripts());
    all
}

/// Every kind of work on a store that is like most, in the order in which the script does them.
pub(crate) fn kinds() -> Vec<Kind> {
    let mut all = creations();
    all.extend(dense_writes());
    all.extend(sparse_writes());
    all.extend(deletions());
    all.extend(parts::kinds());
    all.extend(merges());
    all.extend(nodes());
    all.extend(evolutions());
    all.extend(commits_of_several());
    all.extend(merges_by_choice());
    all.extend(names());
    all
}

/// Both arrays, each made where nothing is and then made anew in place of what is there.
fn creations() -> Vec<Kind> {
    vec![
        Kind {
            name: "create a dense array",
            act: |hand, _| hand.create(GRID, Sort::Dense, true),
            mean: |model, _| model.put_array(GRID, Sort::Dense),
        },
        Kind {
            name: "create a sparse array below a group",
            act: |hand, _| hand.create(CELLS, Sort::Sparse, true),
            mean: |model, _| model.put_array(CELLS, Sort::Sparse),
        },
    ]
}

fn dense_writes() -> Vec<Kind> {
    vec![
        Kind {
            name: "small box",
            act: |hand, seed| hand.write_boxes(GRID, &[(area(seed), filled(area(seed), Size::Small, seed))]),
            mean: |model, seed| model.cells(GRID).extend(filled(area(seed), Size::Small, seed)),
        },
        Kind {
            name: "large box",
            act: |hand, seed| hand.write_boxes(GRID, &[(EVERYWHERE, filled(EVERYWHERE, Size::Large, seed))]),
            mean: |model, seed| model.cells(GRID).extend(filled(EVERYWHERE, Size::Large, seed)),
        },
        Kind {
            name: "two boxes in one commit",
            act: |hand, seed| {
                let (one, two) = (area(seed), area(seed + 100));
                let first = (one, filled(one, Size::Large, seed));
                hand.write_boxes(GRID, &[first, (two, filled(two, Size::Small, seed + 1))])
            },
            mean: |model, seed| {
                let (one, two) = (area(seed), area(seed + 100));
                model.cells(GRID).extend(filled(one, Size::Large, seed));
                model.cells(GRID).extend(filled(two, Size::Small, seed + 1));
            },
        },
        Kind {
            name: "streamed tile",
            act: |hand, seed| {
                let tile = ((0, TILE.0 - 1), (0, TILE.1 - 1));
                hand.stream(GRID, Some(tile), &filled(tile, Size::Small, seed))
            },
            mean: |model, seed| {
                let tile = ((0, TILE.0 - 1), (0, TILE.1 - 1));
                model.cells(GRID).extend(filled(tile, Size::Small, seed));
            },
        },
        Kind {
            name: "cells into a dense array",
            act: |hand, seed| hand.write_cells(GRID, &scattered(9, Size::Small, seed)),
            mean: |model, seed| model.cells(GRID).extend(scattered(9, Size::Small, seed)),
        },
        Kind {
            name: "tombstones in a dense array",
            act: |hand, seed| hand.delete(GRID, &scattered(20, Size::Small, seed).into_keys().collect()),
            mean: |model, seed| model.delete(GRID, &scattered(20, Size::Small, seed).into_keys().collect()),
        },
        Kind {
            name: "metadata of a dense array",
            act: |hand, seed| hand.note(GRID, notes(seed)),
            mean: |model, seed| note(model, GRID, seed),
        },
    ]
}

fn sparse_writes() -> Vec<Kind> {
    vec![
        Kind {
            name: "few cells",
            act: |hand, seed| hand.write_cells(CELLS, &scattered(9, Size::Small, seed)),
            mean: |model, seed| model.cells(CELLS).extend(scattered(9, Size::Small, seed)),
        },
        Kind {
            name: "many bytes of cells",
            act: |hand, seed| hand.write_cells(CELLS, &scattered(80, Size::Large, seed)),
            mean: |model, seed| model.cells(CELLS).extend(scattered(80, Size::Large, seed)),
        },
        Kind {
            name: "streamed cells",
            act: |hand, seed| hand.stream(CELLS, None, &scattered(80, Size::Large, seed)),
            mean: |model, seed| model.cells(CELLS).extend(scattered(80, Size::Large, seed)),
        },
        Kind {
            name: "tombstones",
            act: |hand, seed| hand.delete(CELLS, &scattered(20, Size::Small, seed).into_keys().collect()),
            mean: |model, seed| model.delete(CELLS, &scattered(20, Size::Small, seed).into_keys().collect()),
        },
        Kind {
            name: "tombstones and cells in one commit",
            act: |hand, seed| {
                let gone: BTreeSet<_> = scattered(20, Size::Small, seed).into_keys().collect();
                hand.replace(CELLS, &gone, &scattered(12, Size::Small, seed + 1))
            },
            mean: |model, seed| {
                model.delete(CELLS, &scattered(20, Size::Small, seed).into_keys().collect());
                model.cells(CELLS).extend(scattered(12, Size::Small, seed + 1));
            },
        },
        Kind {
            name: "metadata of a sparse array",
            act: |hand, seed| hand.note(CELLS, notes(seed)),
            mean: |model, seed| note(model, CELLS, seed),
        },
    ]
}

/// A number in the middle of those that cells hold, so that a condition takes about half of them.
fn limit(seed: u64) -> i64 {
    Dice::new(seed).word() as i64 / 4
}

/// Deletes of boxes and of what a condition selects.
fn deletions() -> Vec<Kind> {
    vec![
        Kind {
            name: "box deleted in a dense array",
            act: |hand, seed| hand.delete_box(GRID, area(seed)),
            mean: |model, seed| model.delete(GRID, &places(area(seed)).collect()),
        },
        Kind {
            name: "box deleted",
            act: |hand, seed| hand.delete_box(CELLS, area(seed)),
            mean: |model, seed| model.delete(CELLS, &places(area(seed)).collect()),
        },
        Kind {
            name: "cells deleted by a condition",
            act: |hand, seed| hand.delete_above(CELLS, limit(seed)),
            mean: |model, seed| model.cells(CELLS).retain(|_, value| value.0 <= limit(seed)),
        },
        Kind {
            name: "cells deleted by a condition in a dense array",
            act: |hand, seed| hand.delete_above(GRID, limit(seed)),
            mean: |model, seed| model.cells(GRID).retain(|_, value| value.0 <= limit(seed)),
        },
    ]
}

fn note(model: &mut Model, path: &str, seed: u64) {
    for (key, value) in notes(seed) {
        match value {
            Some(value) => drop(model.notes(path).insert(key, value)),
            None => drop(model.notes(path).remove(&key)),
        }
    }
}

/// Work that nobody who reads can notice.
fn merges() -> Vec<Kind> {
    vec![
        Kind {
            name: "consolidate cells by tiers",
            act: |hand, _| hand.consolidate(CELLS, &Strategy::Tiered, 1 << 30),
            mean: |_, _| {},
        },
        Kind {
            name: "consolidate all cells into small fragments",
            act: |hand, _| hand.consolidate(CELLS, &Strategy::All, 20_000),
            mean: |_, _| {},
        },
        Kind {
            name: "consolidate a dense array",
            act: |hand, _| hand.consolidate(GRID, &Strategy::All, 1 << 30),
            mean: |_, _| {},
        },
        Kind { name: "vacuum", act: |hand, seed| hand.vacuum(CELLS, 2 + seed % 3), mean: |_, _| {} },
    ]
}

/// Changes of the tree: what is made with an even seed goes with the odd one after it.
fn nodes() -> Vec<Kind> {
    vec![
        Kind {
            name: "make and remove a group",
            act: |hand, seed| match seed % 2 {
                0 => hand.create_group("/deep/group"),
                _ => hand.remove("/deep/group"),
            },
            mean: |model, seed| match seed % 2 {
                0 => model.put("/deep/group", Node::Group),
                _ => model.remove("/deep/group"),
            },
        },
        Kind {
            name: "remove and make anew all below a group",
            act: |hand, seed| match seed % 2 {
                0 => hand.remove("/deep"),
                _ => hand.create(CELLS, Sort::Sparse, false),
            },
            mean: |model, seed| match seed % 2 {
                0 => model.remove("/deep"),
                _ => model.put_array(CELLS, Sort::Sparse),
            },
        },
    ]
}

/// Changes of schema: an attribute that comes with an even seed goes with the odd one after it. The cells that the script looks
/// at stay as they are.
fn evolutions() -> Vec<Kind> {
    vec![
        Kind {
            name: "add and drop an attribute of a dense array",
            act: |hand, seed| match seed % 2 {
                0 => hand.add_attribute(GRID, "q"),
                _ => hand.drop_attribute(GRID, "q"),
            },
            mean: |_, _| {},
        },
        Kind { name: "grow the domain of a sparse array", act: |hand, _| hand.grow(CELLS, 3), mean: |_, _| {} },
        Kind { name: "grow the domain of a dense array", act: |hand, _| hand.grow(GRID, 3), mean: |_, _| {} },
    ]
}

/// Commits of several arrays, or of what was prepared elsewhere.
fn commits_of_several() -> Vec<Kind> {
    let both = |model: &mut Model, seed: u64| {
        for (path, cells) in [(GRID, scattered(7, Size::Small, seed)), (CELLS, scattered(60, Size::Large, seed + 1))] {
            model.cells(path).extend(cells);
        }
    };
    vec![
        Kind {
            name: "a transaction over two arrays",
            act: |hand, seed| {
                let isolation = [Isolation::Snapshot, Isolation::Serializable][seed as usize % 2];
                let writes = [(GRID, scattered(7, Size::Small, seed)), (CELLS, scattered(60, Size::Large, seed + 1))];
                hand.transact(&writes, isolation)
            },
            mean: both,
        },
        Kind {
            name: "receipts of two arrays",
            act: |hand, seed| {
                let writes = [(GRID, scattered(7, Size::Small, seed)), (CELLS, scattered(60, Size::Large, seed + 1))];
                hand.commit_receipts_for(&writes)
            },
            mean: both,
        },
        Kind {
            name: "a receipt for a delete by a condition",
            act: |hand, seed| hand.delete_above_by_receipt(CELLS, limit(seed)),
            mean: |model, seed| model.cells(CELLS).retain(|_, value| value.0 <= limit(seed)),
        },
        Kind {
            name: "unsorted cells in little memory",
            act: |hand, seed| hand.write_unsorted(CELLS, &filled(EVERYWHERE, Size::Large, seed)),
            mean: |model, seed| model.cells(CELLS).extend(filled(EVERYWHERE, Size::Large, seed)),
        },
    ]
}

/// Merges of what is chosen otherwise than by size.
fn merges_by_choice() -> Vec<Kind> {
    vec![
        Kind {
            name: "consolidate the updates of a dense array",
            act: |hand, _| hand.consolidate(GRID, &Strategy::Updates, 1 << 30),
            mean: |_, _| {},
        },
        Kind { name: "consolidate a box", act: |hand, seed| hand.consolidate_box(CELLS, area(seed)), mean: |_, _| {} },
        Kind {
            name: "pack the list of fragments",
            act: |hand, _| hand.consolidate(CELLS, &Strategy::Manifest, 1 << 30),
            mean: |_, _| {},
        },
    ]
}

/// Names of versions and of arrays: what an even seed does the odd one after it undoes.
fn names() -> Vec<Kind> {
    vec![
        Kind {
            name: "tag and untag",
            act: |hand, seed| match seed % 2 {
                0 => hand.tag(CELLS, "kept"),
                _ => hand.untag(CELLS, "kept"),
            },
            mean: |_, _| {},
        },
        Kind {
            name: "move an array there and back",
            act: |hand, seed| match seed % 2 {
                0 => hand.move_node(GRID, "/deep/grid"),
                _ => hand.move_node("/deep/grid", GRID),
            },
            mean: |model, seed| match seed % 2 {
                0 => model.rename(GRID, "/deep/grid"),
                _ => model.rename("/deep/grid", GRID),
            },
        },
    ]
}
