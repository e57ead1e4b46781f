//! What may lie in a store's place beside what versions name: sorted copies of packs; the beginning of a copy.

use super::super::case::Case;
use super::super::world::World;
use super::{ints, noise, signed, texts};
use gridstone::base::Result;
use gridstone::schema::{Datatype, Order};
use gridstone::storage::FLOOR;
use gridstone::store::UNFINISHED;

pub(super) fn cases() -> Result<Vec<Case>> {
    Ok(vec![sorted_copies()?, unfinished_copy()?])
}

const LINE: &str = r#"{"dims":[{"name":"i","dtype":"int32","domain":["0","39"],"tile":"16"}],
    "attrs":[{"name":"v","dtype":"int16"},{"name":"w","dtype":"float32","nullable":true}]}"#;
const POINTS: &str = r#"{"sparse":true,"capacity":7,"dims":[
    {"name":"y","dtype":"int16","domain":["-20","20"],"tile":"11"},{"name":"x","dtype":"uint8","domain":["0","30"],"tile":"8"}],
    "attrs":[{"name":"v","dtype":"int16"},{"name":"s","dtype":"string","nullable":true}]}"#;
const REPEATED: &str = r#"{"sparse":true,"capacity":5,"duplicates":true,"tile_order":"col","cell_order":"hilbert",
    "dims":[{"name":"p","dtype":"int64","domain":["-50","50"],"tile":"10"},{"name":"q","dtype":"int64","domain":["0","9"],"tile":"5"}],
    "attrs":[{"name":"v","dtype":"uint16"}]}"#;
const PATHS: [&str; 3] = ["/line", "/points", "/repeated"];

/// Writes a few cells of each array, some where others lie.
fn step(world: &mut World, step: u64) -> Result<()> {
    let count = 3 + step % 3;
    let drawn = |i: u64, below: u64| noise(step * 97 + i) % below;
    let line: Vec<Vec<u64>> = (0..count).map(|i| vec![signed((drawn(i, 13) * 3 + i % 3) as i64)]).collect();
    let line: Vec<Vec<u64>> = std::collections::BTreeSet::from_iter(line).into_iter().collect();
    world.write_cells("/line", &line, vec![("v", ints(2, (0..line.len() as i64).map(|i| 100 * step as i64 + i)))])?;
    let points: Vec<Vec<u64>> =
        (0..count).map(|i| vec![signed(8 * i as i64 - 20 + (step % 2) as i64), drawn(i + 50, 31)]).collect();
    let words: Vec<&str> = (0..count).map(|i| ["null", "", "häfen", "a"][(drawn(i, 4)) as usize]).collect();
    let values =
        vec![("v", ints(2, (0..count as i64).map(|i| 10 * step as i64 + i))), ("s", texts(Datatype::String, &words)?)];
    world.write_cells("/points", &points, values)?;
    let repeated: Vec<Vec<u64>> =
        (0..count).map(|i| vec![signed(drawn(i / 2, 101) as i64 - 50), signed(i as i64 / 2)]).collect();
    world.write_cells("/repeated", &repeated, vec![("v", ints(2, (0..count as i64).map(|i| step as i64 + i)))])?;
    world.commit(None)
}

fn sorted_copies() -> Result<Case> {
    let about = "packs with sorted copies, one of each of three arrays: cells over a dense array without one of its attributes, cells \
                 over cells with tombstones among them, repeated cells in Hilbert order under a mask; newer cells on all";
    let mut world = World::new("sorted_copies", about)?.folding(12);
    for (path, schema) in PATHS.into_iter().zip([LINE, POINTS, REPEATED]) {
        world.create_array(path, schema)?;
    }
    world.write_box("/line", &[("2", "30")], vec![("v", ints(2, -29..0))], Order::Row)?;
    world.commit(None)?;
    for number in 2..=11 {
        if number == 6 {
            world.delete("/points", &[vec![signed(-20), 3], vec![signed(4), 15]])?;
        }
        step(&mut world, number)?;
    }
    step(&mut world, 12)?;
    world.expect(&[])?;
    step(&mut world, 13)?;
    for path in PATHS {
        world.sort_packs(path)?;
    }
    world.expect(&[])?;
    world.delete_where("/repeated", "v >= 14", "v", |cell| cell.as_ref().is_some_and(|c| c[0] >= 14))?;
    world.commit_and_expect(Some("a mask over cells that the copy has too"))?;
    step(&mut world, 15)?;
    world.expect(&[])?;
    Ok(world.finish())
}

fn unfinished_copy() -> Result<Case> {
    let about = "the beginning of a copy of a store: its floor says that it was not finished, so there is no store";
    let mut world = World::with_array("unfinished_copy", about, LINE)?;
    world.write_box("/", &[("2", "6")], vec![("v", ints(2, 5..10))], Order::Row)?;
    world.commit(None)?;
    world.storage().put(FLOOR, UNFINISHED)?;
    Ok(world.finish())
}
