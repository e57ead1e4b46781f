//! Stores whose state does not fit the top page of a root.

use super::super::world::{Case, World};
use super::stores::POINTS;
use super::{ints, noise, signed};
use gridstone::base::Result;
use gridstone::schema::Evolution;

pub(super) fn cases() -> Result<Vec<Case>> {
    Ok(vec![paged()?, keyed()?])
}

/// Digits that hardly compress.
fn digits(seed: u64, count: usize) -> String {
    let words = (0..count as u64 / 16 + 1).map(|n| format!("{:016x}", noise(seed << 32 | n)));
    words.collect::<String>().chars().take(count).collect()
}

fn paged() -> Result<Case> {
    let about = "an array whose 450 schemas lie in pages of rows, and a value of metadata that is an object; two vacuums and \
                 a fold between them, whose root has condemned files";
    let mut world = World::new("paged", about)?;
    world.create_group("/group");
    world.create_array("/points", POINTS)?;
    world.commit(None)?;
    let mut name = "v".to_owned();
    for n in 0..450 {
        let next = if n == 449 { "v".to_owned() } else { format!("n{n:0240}") };
        world.alter("/points", &Evolution { rename: vec![(name, next.clone())], ..Evolution::default() })?;
        name = next;
    }
    world.set_metadata("/points", "long", Some(&format!("\"{}\"", digits(999, 17_000))))?;
    world.write_cells("/points", &[vec![signed(-50)], vec![signed(3)]], vec![("v", ints(2, [1, 2]))])?;
    world.commit(None)?;
    world.pack()?;
    world.vacuum(1)?;
    world.write_cells("/points", &[vec![signed(4)]], vec![("v", ints(2, [3]))])?;
    world.commit(None)?;
    world.pack()?;
    world.write_cells("/points", &[vec![signed(5)]], vec![("v", ints(2, [4]))])?;
    world.commit_and_expect(None)?;
    let kept = world.snapshot()?.version();
    world.tag("kept", Some(kept))?;
    world.commit_and_expect(None)?;
    world.vacuum(2)?;
    world.expect(&[])?;
    Ok(world.finish())
}

fn keyed() -> Result<Case> {
    let about = "commits with keys: of one byte, of 128, two in one record; folded into rows, and others since";
    let mut world = World::new("keyed", about)?;
    world.create_array("/points", POINTS)?;
    world.commit(None)?;
    let write = |world: &mut World, place: i64| {
        world.write_cells("/points", &[vec![signed(place)]], vec![("v", ints(2, [place]))])
    };
    write(&mut world, 1)?;
    world.key(b"a", 1)?;
    world.commit_and_expect(Some("a key"))?;
    write(&mut world, 2)?;
    world.key(&[0xff; 128], u128::MAX)?;
    world.key("jöb 4".as_bytes(), noise(4).into())?;
    world.commit_and_expect(Some("two commits in one record"))?;
    world.pack()?;
    write(&mut world, 3)?;
    world.commit_and_expect(Some("none"))?;
    write(&mut world, 4)?;
    world.key(b"b", 0)?;
    world.commit_and_expect(Some("after the fold"))?;
    Ok(world.finish())
}
