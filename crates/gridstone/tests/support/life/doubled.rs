//! Work on cells that may lie several times at one place: none is lost, and none is doubled again.

use super::Kind;
use super::hand::{Hand, Sort};
use super::limit;
use super::model::{Cells, Size, area, places, scattered};
use super::script::Script;
use gridstone::base::Result;
use gridstone::engine::{Call, CommitKey, Strategy};
use std::collections::BTreeSet;

pub(crate) const TWICE: &str = "/twice";

/// The kind whose commits have keys.
const KEYED: &str = "doubled cells with a commit key";

pub(super) fn script() -> Script {
    Script { kinds, ..Script::new("doubled") }
}

/// Cells twice at the same places in one commit; and since places are few, often beside others that were there before.
fn pairs(seed: u64) -> [Cells; 2] {
    let (one, mut other) = (scattered(30, Size::Small, seed), scattered(30, Size::Small, seed));
    other.values_mut().for_each(|value| value.0 ^= 1 << 40);
    [one, other]
}

impl Hand {
    fn write_pairs(&mut self, pairs: &[Cells; 2]) -> Result<u64> {
        let array = self.array(TWICE)?;
        let staged = pairs.iter().map(|cells| super::hand::staged_cells(array, cells)).collect::<Result<_>>()?;
        array.commit(staged, None)
    }

    /// Writes the cells of a seed with a key of their own, as often as it is called; gives the version that has them.
    pub(crate) fn write_keyed(&mut self, seed: u64) -> Result<u64> {
        let key = CommitKey::new(format!("cells of {seed}").as_bytes())?;
        let array = self.array(TWICE)?;
        let staged = super::hand::staged_cells_of(array, &keyed_cells(seed), &Call::default().with_key(Some(key)))?;
        array.commit(vec![staged], None)
    }
}

/// The cells that are written with a key.
pub(crate) fn keyed_cells(seed: u64) -> Cells {
    scattered(if seed.is_multiple_of(2) { 9 } else { 80 }, Size::Large, seed)
}

/// The seeds of the steps whose commits have keys.
pub(crate) fn keyed_seeds() -> [u64; 2] {
    let place = kinds().iter().position(|kind| kind.name == KEYED).expect("a kind with keys");
    [0, 1].map(|step| 2 * place as u64 + step)
}

fn kinds() -> Vec<Kind> {
    let mut all = writes();
    all.extend(merges());
    all.push(Kind {
        name: KEYED,
        act: |hand, seed| {
            let version = hand.write_keyed(seed)?;
            assert_eq!(hand.write_keyed(seed)?, version, "a repeated commit is another version");
            Ok(version)
        },
        mean: |model, seed| {
            model.double(TWICE, keyed_cells(seed));
            model.keyed.insert(seed);
        },
    });
    all
}

fn writes() -> Vec<Kind> {
    vec![
        Kind {
            name: "create an array with doubled cells",
            act: |hand, _| hand.create(TWICE, Sort::Doubled, true),
            mean: |model, _| model.put_array(TWICE, Sort::Doubled),
        },
        Kind {
            name: "cells twice at one place",
            act: |hand, seed| hand.write_pairs(&pairs(seed)),
            mean: |model, seed| pairs(seed).into_iter().for_each(|cells| model.double(TWICE, cells)),
        },
        Kind {
            name: "many bytes of cells beside others",
            act: |hand, seed| hand.write_cells(TWICE, &scattered(80, Size::Large, seed)),
            mean: |model, seed| model.double(TWICE, scattered(80, Size::Large, seed)),
        },
        Kind {
            name: "delete doubled cells by place, box and condition",
            act: |hand, seed| match seed % 2 {
                0 => {
                    let gone: BTreeSet<_> = scattered(20, Size::Small, seed).into_keys().collect();
                    hand.replace(TWICE, &gone, &scattered(12, Size::Small, seed + 1))
                }
                _ => hand.delete_above(TWICE, limit(seed)),
            },
            mean: |model, seed| match seed % 2 {
                0 => {
                    let gone = scattered(20, Size::Small, seed);
                    model.doubled(TWICE).retain(|(place, _)| !gone.contains_key(place));
                    model.double(TWICE, scattered(12, Size::Small, seed + 1));
                }
                _ => model.doubled(TWICE).retain(|(_, value)| value.0 <= limit(seed)),
            },
        },
    ]
}

fn merges() -> Vec<Kind> {
    vec![
        Kind {
            name: "consolidate doubled cells",
            act: |hand, seed| match seed % 2 {
                0 => hand.consolidate(TWICE, &Strategy::All, 20_000),
                _ => {
                    let before = hand.write_pairs(&pairs(seed))?;
                    hand.shown = Some(before);
                    hand.consolidate(TWICE, &Strategy::Tiered, 1 << 30)
                }
            },
            mean: |model, seed| {
                if seed % 2 == 1 {
                    pairs(seed).into_iter().for_each(|cells| model.double(TWICE, cells));
                }
            },
        },
        Kind {
            name: "a deleted box of doubled cells, and a vacuum",
            act: |hand, seed| match seed % 2 {
                0 => hand.delete_box(TWICE, area(seed)),
                _ => hand.vacuum(TWICE, 1),
            },
            mean: |model, seed| {
                if seed % 2 == 0 {
                    let gone: BTreeSet<_> = places(area(seed)).collect();
                    model.doubled(TWICE).retain(|(place, _)| !gone.contains(place));
                }
            },
        },
    ]
}
