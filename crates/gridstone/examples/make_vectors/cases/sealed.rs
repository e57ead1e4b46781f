//! A sealed store.

use super::super::case::Case;
use super::super::world::World;
use super::{ints, noise, signed};
use gridstone::base::{Key, Result};
use gridstone::schema::Order;

pub(super) fn cases() -> Result<Vec<Case>> {
    Ok(vec![sealed()?])
}

const LINE: &str = r#"{"dims":[{"name":"i","dtype":"int32","domain":["0","4999"],"tile":"2500"}],
    "attrs":[{"name":"v","dtype":"int64","filters":"none"}]}"#;
const POINTS: &str = r#"{"sparse":true,"capacity":3,"dims":[{"name":"p","dtype":"int64","domain":["-50","50"],"tile":"10"}],
    "attrs":[{"name":"v","dtype":"int16"}]}"#;

/// Objects of less than a segment, of several, and a hint.
fn sealed() -> Result<Case> {
    let about = "a sealed store; records of one and of three segments, a data file, tombstones, metadata, a hint";
    let key = Key::from_slice(&(0..32).map(|i| i * 7 + 1).collect::<Vec<u8>>())?;
    let mut world = World::sealed("sealed", about, key)?;
    world.create_array("/line", LINE)?;
    world.create_array("/points", POINTS)?;
    world.commit_and_expect(Some("nobody reads this without the key"))?;
    let values = |count: u64| vec![("v", ints(8, (0..count).map(|i| noise(i) as i64)))];
    world.write_box("/line", &[("0", "4899")], values(4900), Order::Row)?;
    world.commit_and_expect(None)?;
    world.inline = false;
    world.write_box("/line", &[("100", "199")], values(100), Order::Row)?;
    world.commit_and_expect(Some("in a file of its own"))?;
    world.inline = true;
    let places: Vec<Vec<u64>> = (-4..4).map(|i| vec![signed(i * 11)]).collect();
    world.write_cells("/points", &places, vec![("v", ints(2, 0..8))])?;
    world.set_metadata("/line", "unit", Some("\"secret\""))?;
    world.commit(None)?;
    world.delete("/points", &[vec![signed(11)], vec![signed(12)]])?;
    world.commit_and_expect(None)?;
    for step in 0..4 {
        world.set_metadata("/points", "step", Some(&step.to_string()))?;
        world.commit(None)?;
    }
    world.expect(&[])?;
    Ok(world.finish())
}
