//! Work on a sealed store, and the life of its keys: a new one is given as the current one, and old ones are kept for what they sealed.

use super::hand::{Hand, Sort};
use super::model::{Size, scattered};
use super::script::Script;
use super::{CELLS, Kind};
use gridstone::base::{Error, Key, KeyId, Keys, Result};
use gridstone::engine::{Strategy, key_id};
use std::sync::Arc;

/// Keys there are in all.
const KEYS: u8 = 3;

/// All keys, of which one seals what is new.
#[derive(Debug)]
struct Safe {
    current: u8,
}

impl Keys for Safe {
    fn key(&self, id: Option<KeyId>) -> Result<Key> {
        let Some(id) = id else { return Key::from_slice(&[self.current; 32]) };
        for byte in 1..=KEYS {
            let key = Key::from_slice(&[byte; 32])?;
            if key_id(&key)? == id {
                return Ok(key);
            }
        }
        Err(Error::access("that key is not in the safe"))
    }
}

fn safe(current: u8) -> Arc<dyn Keys> {
    Arc::new(Safe { current })
}

pub(super) fn script() -> Script {
    Script { kinds, keys: Some(|| safe(1)), ..Script::new("sealed") }
}

/// The key of a seed: the second or the third, so that each step has another than the one before.
fn rotated(hand: &mut Hand, seed: u64) {
    hand.takes(safe(2 + (seed % 2) as u8));
}

fn kinds() -> Vec<Kind> {
    vec![
        Kind {
            name: "create a sealed array",
            act: |hand, _| hand.create(CELLS, Sort::Sparse, true),
            mean: |model, _| model.put_array(CELLS, Sort::Sparse),
        },
        Kind {
            name: "few sealed cells",
            act: |hand, seed| hand.write_cells(CELLS, &scattered(9, Size::Small, seed)),
            mean: |model, seed| model.cells(CELLS).extend(scattered(9, Size::Small, seed)),
        },
        Kind {
            name: "many bytes of cells under a new key",
            act: |hand, seed| {
                rotated(hand, seed);
                hand.write_cells(CELLS, &scattered(70, Size::Large, seed))
            },
            mean: |model, seed| model.cells(CELLS).extend(scattered(70, Size::Large, seed)),
        },
        Kind {
            name: "consolidate and vacuum sealed cells under a new key",
            act: |hand, seed| {
                rotated(hand, seed);
                hand.consolidate(CELLS, &Strategy::All, 1 << 30)?;
                hand.vacuum(CELLS, 2 + seed % 3)
            },
            mean: |_, _| {},
        },
    ]
}
