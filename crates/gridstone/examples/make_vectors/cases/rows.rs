//! Stores whose state does not fit the top page of a root, and with rows that this release only keeps.

use super::super::case::Case;
use super::super::world::World;
use super::stores::POINTS;
use super::{ints, noise, signed};
use gridstone::base::Result;
use gridstone::schema::Evolution;
use gridstone::store::Owner;

pub(super) fn cases() -> Result<Vec<Case>> {
    Ok(vec![paged()?, keyed()?, newer()?])
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

/// What newer releases write, and this one keeps.
fn newer() -> Result<Case> {
    let about = "files kept beside an array and beside a fragment, one of them released; a base that was set, changed and named by no \
                 fragment, and one that was removed; a fragment with an ext and with a part that nobody knows";
    let mut world = World::new("newer", about)?;
    world.create_array("/points", POINTS)?;
    world.commit(None)?;
    world.write_cells("/points", &[vec![signed(-50)], vec![signed(3)]], vec![("v", ints(2, [1, 2]))])?;
    world.mark_fragments(br#"{"of":["later",1]}"#, b"any bytes");
    world.commit(None)?;
    let fragment = world.first_fragment("/points")?;
    let kept = [Owner::Array, Owner::Fragment(fragment), Owner::Array];
    let entries = kept.into_iter().map(|owner| world.keep("/points", owner)).collect::<Result<Vec<_>>>()?;
    world.set_base(1, None, Some("store"));
    world.set_base(2, None, Some("source"));
    world.commit_and_expect(None)?;
    if let Some(entry) = entries.last() {
        world.release("/points", *entry)?;
    }
    world.set_base(1, Some("store"), Some("of later"));
    world.set_base(2, Some("source"), None);
    world.commit_and_expect(None)?;
    world.pack()?;
    world.write_cells("/points", &[vec![signed(4)]], vec![("v", ints(2, [3]))])?;
    world.commit_and_expect(None)?;
    Ok(world.finish())
}
