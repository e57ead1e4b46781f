//! Stores whose state does not fit the top page of a root.

use super::stores::POINTS;
use super::{ints, noise, signed};
use crate::world::{Case, World};
use gridstone::base::Result;

pub(super) fn cases() -> Result<Vec<Case>> {
    Ok(vec![paged()?])
}

/// A JSON text of so many digits, which hardly compress.
fn digits(seed: u64, count: usize) -> String {
    let words = (0..count as u64 / 16 + 1).map(|n| format!("{:016x}", noise(seed << 32 | n)));
    format!("\"{}\"", &words.collect::<String>()[..count])
}

fn paged() -> Result<Case> {
    let about = "70 groups with long metadata, in pages of rows; a value that is an object; then a vacuum, and a fold \
                 after it, whose root has condemned files";
    let mut world = World::new("paged", about)?;
    for n in 0..70 {
        world.create_group(&format!("/group {n:02}"));
    }
    world.create_array("/points", POINTS)?;
    world.commit(None)?;
    for n in 0..70u64 {
        world.set_metadata(&format!("/group {n:02}"), "digits", Some(&digits(n, 950)))?;
    }
    world.set_metadata("/points", "long", Some(&digits(99, 17_000)))?;
    world.write_cells("/points", &[vec![signed(-50)], vec![signed(3)]], vec![("v", ints(2, [1, 2]))])?;
    world.commit(None)?;
    world.pack()?;
    world.vacuum(1)?;
    world.write_cells("/points", &[vec![signed(4)]], vec![("v", ints(2, [3]))])?;
    world.tag("paged", Some(3))?;
    world.commit(None)?;
    world.pack()?;
    world.expect(&[])?;
    Ok(world.finish())
}
