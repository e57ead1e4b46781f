//! Repairs: whatever a repair that was cut short has left, the next one mends it, and leaves what an undisturbed one leaves.
//!
//! Each step damages a store that is sound and repairs it. So what is found after a crash may be damaged, and is repaired first.

use super::check::{Outcome, told, version_of};
use super::hand::{Hand, Objects, Sort, objects};
use super::model::{EVERYWHERE, Size, filled, scattered};
use super::script::{Ground, Life, Script};
use super::{CELLS, GRID, Kind};
use bytes::Bytes;
use gridstone::base::Result;
use gridstone::engine::{Call, RepairOptions, RepairReport, StoreDamage, repair_on};
use gridstone::storage::{FLOOR, LATEST, data_name, log_name, manifest_name};

/// Repairs that make everything as it was, and those after which past versions are lost.
pub(super) fn scripts() -> [Script; 2] {
    let mending = Script { prelude: 4, damages: true, heal: Some(mended), ..Script::new("") };
    [
        Script { name: "mended in place", kinds: in_place, ..mending },
        Script { name: "mended by a commit", kinds: by_a_commit, heal: Some(mended_in_part), ..mending },
    ]
}

/// What is done to an object.
#[derive(Clone, Copy)]
enum Harm {
    Gone,
    Flipped,
}

impl Hand {
    /// Harms objects, then repairs the store.
    fn mend(&mut self, names: &[String], harm: Harm) -> Result<RepairReport> {
        assert!(!names.is_empty(), "there is nothing to harm");
        for name in names {
            let mut bytes = self.storage.read_all(name)?.to_vec();
            match harm {
                Harm::Gone => self.storage.delete(name)?,
                Harm::Flipped => {
                    // Behind the first line of a record, where its fragments are.
                    let at = bytes.len() * 3 / 4;
                    bytes[at] ^= 0x10;
                    self.storage.put(name, &bytes)?;
                }
            }
        }
        let report = repair_on(
            &self.context,
            self.storage.clone(),
            RepairOptions { dry_run: false, cut: false },
            &Call::default(),
        )?;
        assert!(!report.damage.is_empty(), "nothing was found");
        Ok(report)
    }

    /// As [`Hand::mend`], of damage that asks for no commit, and of which nothing stays. Gives the version.
    fn mend_in_place(&mut self, names: &[String], harm: Harm) -> Result<u64> {
        let report = self.mend(names, harm)?;
        assert!(report.committed.is_none() && report.remaining.is_empty(), "{report:?}");
        Ok(self.store().latest()?.version())
    }

    /// The data files: as all fragments are small, folds have made them of records, and repairs can make them again.
    fn packs(&self) -> Result<Vec<String>> {
        let found = self.store().inspect(Call::default().cancel.as_ref())?;
        Ok(found.data.keys().map(|id| data_name(*id)).collect())
    }
}

/// Whether what a repair could not mend are roots that no version needs from this one on.
fn is_before(version: u64, report: &RepairReport) -> bool {
    let is_past = |d: &StoreDamage| d.versions.iter().all(|(_, hi)| *hi < version);
    report.remaining.iter().all(|d| d.object.starts_with("_manifest/") && is_past(d))
}

fn in_place() -> Vec<Kind> {
    let mut all = prelude();
    all.extend(repairs());
    all
}

fn by_a_commit() -> Vec<Kind> {
    let mut all = prelude();
    all.push(Kind {
        name: "repair where nothing tells of the root",
        act: |hand, _| {
            let all = hand.storage.list("_manifest")?;
            let report = hand.mend(&all, Harm::Gone)?;
            let made = report.committed.expect("a new root is named by a commit");
            assert!(is_before(made, &report), "{report:?}");
            Ok(made)
        },
        mean: |_, _| {},
    });
    all
}

fn prelude() -> Vec<Kind> {
    vec![
        Kind {
            name: "two arrays to be damaged",
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
            name: "cells to be damaged",
            act: |hand, seed| hand.write_cells(CELLS, &scattered(9, Size::Small, seed)),
            mean: |model, seed| model.cells(CELLS).extend(scattered(9, Size::Small, seed)),
        },
        Kind {
            name: "boxes to be damaged",
            act: |hand, seed| hand.write_boxes(GRID, &[(EVERYWHERE, filled(EVERYWHERE, Size::Small, seed))]),
            mean: |model, seed| model.cells(GRID).extend(filled(EVERYWHERE, Size::Small, seed)),
        },
        Kind {
            name: "more cells to be damaged",
            act: |hand, seed| hand.write_cells(CELLS, &scattered(30, Size::Small, seed)),
            mean: |model, seed| model.cells(CELLS).extend(scattered(30, Size::Small, seed)),
        },
    ]
}

fn repairs() -> Vec<Kind> {
    vec![
        Kind {
            name: "repair the newest root, and a page",
            act: |hand, seed| {
                let root = manifest_name(hand.store().latest()?.root().map(|root| root.id).unwrap());
                let page = hand.storage.list("_manifest")?.into_iter().find(|name| *name != root);
                match seed % 2 {
                    0 => hand.mend_in_place(&[root], Harm::Gone),
                    _ => hand.mend_in_place(&page.into_iter().collect::<Vec<_>>(), Harm::Flipped),
                }
            },
            mean: |_, _| {},
        },
        Kind {
            name: "repair packs, and a record",
            act: |hand, seed| match seed % 2 {
                0 => {
                    let packs = hand.packs()?;
                    hand.mend_in_place(&packs, Harm::Flipped)
                }
                _ => hand.mend_in_place(&[log_name(3)], Harm::Flipped),
            },
            mean: |_, _| {},
        },
        Kind {
            name: "vacuum what is going to be damaged",
            act: |hand, seed| match seed % 2 {
                0 => hand.vacuum(CELLS, 3),
                _ => hand.write_cells(CELLS, &scattered(9, Size::Small, seed)),
            },
            mean: |model, seed| {
                if seed % 2 == 1 {
                    model.cells(CELLS).extend(scattered(9, Size::Small, seed));
                }
            },
        },
        Kind {
            name: "repair the floor and the hint",
            act: |hand, seed| match seed % 2 {
                0 => hand.mend_in_place(&[FLOOR.to_owned()], Harm::Gone),
                _ => hand.mend_in_place(&[FLOOR.to_owned(), LATEST.to_owned()], Harm::Flipped),
            },
            mean: |_, _| {},
        },
    ]
}

/// Repairs what was left, and compares it with what the rehearsal left, if it ends in the same record: another one, of another process, has other
/// ids.
fn mended(ground: &Ground, life: &Life, steps: usize) -> Outcome<()> {
    let report = repaired(ground, life)?;
    if !report.remaining.is_empty() {
        return Err(format!("after a repair there is damage: {:?}", report.remaining));
    }
    let (versions, found) = (life.possible(steps), objects(&ground.store));
    let newest = log_name(*versions.end());
    let is_same = |left: &&Objects| versions.count() == 1 && left.get(&newest) == found.get(&newest);
    let Some(expected) = life.left.get(steps).filter(is_same) else { return Ok(()) };
    // After a power cut there may be more: what a vacuum has deleted.
    let differs = |(name, bytes): &(&String, &Bytes)| *name != LATEST && found.get(*name) != Some(*bytes);
    match expected.iter().find(differs) {
        Some((name, _)) => Err(format!("{name} is not what an undisturbed repair leaves")),
        None => Ok(()),
    }
}

/// Repairs what was left. The newest version is whole then.
fn mended_in_part(ground: &Ground, life: &Life, _: usize) -> Outcome<()> {
    let report = repaired(ground, life)?;
    let newest = version_of(&life.script, ground)?;
    match is_before(newest, &report) {
        true => Ok(()),
        false => Err(format!("after a repair version {newest} has damage: {:?}", report.remaining)),
    }
}

fn repaired(ground: &Ground, life: &Life) -> Outcome<RepairReport> {
    let context = life.script.context();
    told(
        repair_on(&context, ground.store.clone(), RepairOptions { dry_run: false, cut: false }, &Call::default()),
        "repair",
    )
}
