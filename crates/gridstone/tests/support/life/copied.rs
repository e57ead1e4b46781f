//! Copies from one store into another, and within one: what is copied is there whole or not at all, and its source stays as it is.

use super::check::{Outcome, told, version_of};
use super::hand::{Hand, Sort};
use super::model::{EVERYWHERE, Model, Size, area, filled, scattered};
use super::script::{Ground, Life, Script};
use super::{CELLS, GRID, Kind};
use gridstone::base::{ErrorKind, Result};
use gridstone::engine::{At, CopyOptions, Strategy};

const TWIN: &str = "/twin";
const AGAIN: &str = "/deep/again";

/// The newest version with nothing else, and all that there was.
const ONE: CopyOptions<'_> =
    CopyOptions { path: "/", target_path: "/", at: At::Latest, tag: None, history: false, overwrite: false };
const HISTORY: CopyOptions<'_> = CopyOptions { history: true, ..ONE };

/// A version of the source before its last, of which it holds all that this many steps made.
const EARLY: u64 = 5;

/// A whole history, one that begins with a floor, and a single version; each to where nothing is.
pub(super) fn scripts() -> [Script; 3] {
    let copying = Script { heal: Some(copied_anew), ..Script::new("") };
    [
        Script { name: "copied history", kinds: histories, source: Some(source), past: true, ..copying },
        Script {
            name: "copied history, vacuumed",
            kinds: vacuumed_histories,
            source: Some(vacuumed),
            past: true,
            ..copying
        },
        Script { name: "copied version", kinds: versions, source: Some(source), ..copying },
    ]
}

fn source() -> Script {
    Script { kinds: source_kinds, ..Script::new("source") }
}

fn vacuumed() -> Script {
    Script { kinds: vacuumed_kinds, ..Script::new("vacuumed source") }
}

fn source_kinds() -> Vec<Kind> {
    vec![
        Kind {
            name: "two arrays of a source",
            act: |hand, seed| match seed % 2 {
                0 => hand.create(GRID, Sort::Dense, false),
                _ => hand.create(CELLS, Sort::Sparse, false),
            },
            mean: |model, seed| match seed % 2 {
                0 => model.put_array(GRID, Sort::Dense),
                _ => model.put_array(CELLS, Sort::Sparse),
            },
        },
        Kind {
            name: "cells of a source",
            act: |hand, seed| hand.write_cells(CELLS, &scattered(9, Size::Small, seed)),
            mean: |model, seed| model.cells(CELLS).extend(scattered(9, Size::Small, seed)),
        },
        Kind {
            name: "boxes of a source",
            act: |hand, seed| match seed % 2 {
                0 => hand.write_boxes(GRID, &[(EVERYWHERE, filled(EVERYWHERE, Size::Large, seed))]),
                _ => hand.delete_box(GRID, area(seed)),
            },
            mean: |model, seed| match seed % 2 {
                0 => model.cells(GRID).extend(filled(EVERYWHERE, Size::Large, seed)),
                _ => model.delete(GRID, &super::model::places(area(seed)).collect()),
            },
        },
    ]
    .into_iter()
    .chain(super::parts::kinds())
    .collect()
}

fn vacuumed_kinds() -> Vec<Kind> {
    let mut all = source_kinds();
    all.push(Kind {
        name: "vacuum a source",
        act: |hand, _| {
            hand.consolidate(CELLS, &Strategy::All, 1 << 30)?;
            hand.vacuum(CELLS, 2)
        },
        mean: |_, _| {},
    });
    all
}

impl Hand {
    fn copy_here(&mut self, copying: &CopyOptions<'_>) -> Result<u64> {
        self.copy(self.source.clone(), copying)
    }
}

fn whole(source: Script) -> Model {
    source.comes_to(usize::MAX)
}

fn histories() -> Vec<Kind> {
    vec![
        Kind {
            name: "copy a store with its history, and go on",
            act: |hand, seed| match seed % 2 {
                0 => hand.copy_here(&HISTORY),
                _ => hand.write_cells(CELLS, &scattered(9, Size::Small, seed)),
            },
            mean: |model, seed| match seed % 2 {
                0 => *model = whole(source()),
                _ => model.cells(CELLS).extend(scattered(9, Size::Small, seed)),
            },
        },
        Kind {
            name: "copy an array of a store beside others, and over another",
            act: |hand, seed| {
                let path = if seed % 2 == 0 { CELLS } else { GRID };
                hand.copy_here(&CopyOptions { path, target_path: TWIN, overwrite: seed % 2 == 1, ..ONE })
            },
            mean: |model, seed| {
                let path = if seed % 2 == 0 { CELLS } else { GRID };
                model.put(TWIN, whole(source()).nodes[path].clone());
            },
        },
        Kind {
            name: "copy an array within its store, and over another",
            act: |hand, seed| {
                let path = if seed % 2 == 0 { CELLS } else { GRID };
                let copying = CopyOptions { path, target_path: AGAIN, overwrite: seed % 2 == 1, ..ONE };
                hand.copy(hand.storage.clone(), &copying)
            },
            mean: |model, seed| {
                let path = if seed % 2 == 0 { CELLS } else { GRID };
                model.put(AGAIN, model.nodes[path].clone());
            },
        },
    ]
}

fn vacuumed_histories() -> Vec<Kind> {
    vec![Kind {
        name: "copy a vacuumed store with its history, and go on",
        act: |hand, seed| match seed % 2 {
            0 => hand.copy_here(&HISTORY),
            _ => hand.write_cells(CELLS, &scattered(9, Size::Small, seed)),
        },
        mean: |model, seed| match seed % 2 {
            0 => *model = whole(vacuumed()),
            _ => model.cells(CELLS).extend(scattered(9, Size::Small, seed)),
        },
    }]
}

fn versions() -> Vec<Kind> {
    vec![Kind {
        name: "copy one version of a store, and an earlier one over it",
        act: |hand, seed| match seed % 2 {
            0 => hand.copy_here(&ONE),
            _ => hand.copy_here(&CopyOptions { at: At::Version(EARLY), overwrite: true, ..ONE }),
        },
        mean: |model, seed| match seed % 2 {
            0 => *model = whole(source()),
            _ => *model = source().comes_to(EARLY as usize),
        },
    }]
}

/// A copy that was cut short is made again: of one version as if nothing had been there; a history, once its beginning is cleared away,
/// which nobody takes for a store.
fn copied_anew(ground: &Ground, life: &Life, steps: usize) -> Outcome<()> {
    if steps > 0 || version_of(&life.script, ground)? > 0 {
        return Ok(());
    }
    let mut hand = Hand::new(&life.script, ground);
    let copying = &life.kinds[0];
    let seed = life.chapters[0][0].seed;
    match (copying.act)(&mut hand, seed) {
        Err(e) if matches!(e.kind(), ErrorKind::Exists | ErrorKind::NotFound) && life.script.past => {
            if version_of(&life.script, ground)? > 0 {
                return Err("a copy that was refused has made a store".to_owned());
            }
            told(ground.store.remove_everything(), "clear the beginning away")?;
        }
        outcome => return told(outcome, "copy again").map(drop),
    }
    told((copying.act)(&mut hand, seed), "copy anew").map(drop)
}
