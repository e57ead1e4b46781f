//! Whole stores: groups and metadata, a manifest with pages and a pack, a truncated log.

use super::super::case::Case;
use super::super::world::World;
use super::{ints, signed, singles, texts};
use gridstone::base::{Error, Result};
use gridstone::fragment::FragmentKind;
use gridstone::maintain::Strategy;
use gridstone::schema::{Attribute, Datatype, Evolution, Order};
use gridstone::storage::{FLOOR, log_name};
use gridstone::store::Floor;

pub(super) fn cases() -> Result<Vec<Case>> {
    Ok(vec![
        groups()?,
        merged()?,
        moved()?,
        deleted()?,
        evolved()?,
        many_commits()?.finish(),
        truncated()?,
        tagged()?.finish(),
        vacuumed()?,
    ])
}

const SMALL: &str =
    r#"{"dims":[{"name":"i","dtype":"int32","domain":["0","9"],"tile":"4"}],"attrs":[{"name":"v","dtype":"int16"}]}"#;
pub(super) const POINTS: &str = r#"{"sparse":true,"capacity":3,"dims":[{"name":"p","dtype":"int64","domain":["-50","50"],"tile":"10"}],
    "attrs":[{"name":"v","dtype":"int16"}]}"#;

fn groups() -> Result<Case> {
    let about = "groups, arrays below them, metadata of every node; an array removed and another put in its place";
    let mut world = World::new("groups", about)?;
    world.create_array("/city/rain", SMALL)?;
    world.create_array("/city/ships", POINTS)?;
    world.commit_and_expect(Some("parents are created as needed"))?;
    world.create_group("/empty group/ü");
    world.write_box("/city/rain", &[("2", "6")], vec![("v", ints(2, 5..10))], Order::Row)?;
    world.write_cells("/city/ships", &[vec![signed(-50)], vec![signed(3)]], vec![("v", ints(2, [1, 2]))])?;
    world.set_metadata("/", "title", Some("\"Häfen\""))?;
    world.set_metadata("/city/rain", "unit", Some("\"mm\""))?;
    world.set_metadata(
        "/city/rain",
        "scale",
        Some("{\"factor\":0.1,\"big\":18446744073709551615,\"list\":[1,null,true]}"),
    )?;
    world.commit_and_expect(Some("one commit touches two arrays"))?;
    world.set_metadata("/city/rain", "unit", None)?;
    world.set_metadata("/city/rain", "scale", Some("2"))?;
    world.commit_and_expect(None)?;
    world.remove("/city/rain");
    world.create_array("/city/rain", POINTS)?;
    world.write_cells("/city/rain", &[vec![signed(7)]], vec![("v", ints(2, [-7]))])?;
    world.commit_and_expect(Some("another array at the same path"))?;
    Ok(world.finish())
}

fn moved() -> Result<Case> {
    let about =
        "an array and a group moved, to where groups have to be made, and another array put where the first was";
    let mut world = World::new("moved", about)?;
    world.create_array("/line", SMALL)?;
    world.create_array("/group/points", POINTS)?;
    world.write_box("/line", &[("2", "6")], vec![("v", ints(2, 5..10))], Order::Row)?;
    world.write_cells("/group/points", &[vec![signed(7)]], vec![("v", ints(2, [-7]))])?;
    world.commit_and_expect(None)?;
    world.move_node("/line", "/far/away/line")?;
    world.commit_and_expect(Some("moved"))?;
    world.move_node("/group", "/far/group")?;
    world.create_array("/line", POINTS)?;
    world.write_cells("/line", &[vec![signed(1)]], vec![("v", ints(2, [1]))])?;
    world.write_box("/far/away/line", &[("0", "2")], vec![("v", ints(2, 1..4))], Order::Row)?;
    world.write_cells("/far/group/points", &[vec![signed(8)]], vec![("v", ints(2, [-8]))])?;
    world.commit_and_expect(Some("a group, with what lies in it, and writes by id"))?;
    Ok(world.finish())
}

fn merged() -> Result<Case> {
    let about = "fragments replaced by merged ones, in a sparse array and over a dense one, with tombstones that stay, that go, and that are left over a dense fragment";
    let mut world = World::new("merged", about)?;
    world.create_array("/line", SMALL)?;
    world.create_array("/points", POINTS)?;
    world.write_box("/line", &[("0", "9")], vec![("v", ints(2, 0..10))], Order::Row)?;
    world.commit_and_expect(None)?;
    let cells = |places: &[i64]| places.iter().map(|p| vec![signed(*p)]).collect::<Vec<_>>();
    for step in 0..4i64 {
        let values = |count: i64| vec![("v", ints(2, (0..count).map(|i| 100 * step + i)))];
        world.write_cells("/points", &cells(&[-50 + step, 3, 40 - step]), values(3))?;
        world.write_cells("/line", &cells(&[step, 9 - step]), values(2))?;
        if step == 1 {
            world.delete("/points", &cells(&[3, -50, 7]))?;
            world.delete("/line", &cells(&[0, 5]))?;
        }
        world.commit_and_expect(None)?;
    }
    world.merge("/points", FragmentKind::Sparse)?;
    world.merge("/line", FragmentKind::Sparse)?;
    world.commit_and_expect(Some("merged"))?;
    world.write_cells("/points", &cells(&[3]), vec![("v", ints(2, [-1]))])?;
    world.commit_and_expect(Some("newer than what was merged"))?;
    for place in [2, 7, 8] {
        world.delete("/line", &cells(&[place]))?;
        world.delete("/points", &cells(&[40, place]))?;
        world.commit(None)?;
    }
    world.merge("/line", FragmentKind::Tombstones)?;
    world.merge("/points", FragmentKind::Tombstones)?;
    world.commit_and_expect(Some("tombstones merged with each other"))?;
    world.write_box("/line", &[("7", "9")], vec![("v", ints(2, 50..53))], Order::Row)?;
    world.commit_and_expect(Some("a box over what was deleted"))?;
    world.merge_by("/line", &Strategy::All)?;
    world.commit_and_expect(Some("tombstones left over a dense fragment"))?;
    world.delete("/line", &cells(&[4, 9]))?;
    world.commit_and_expect(Some("and deleted since"))?;
    world.merge_by("/line", &Strategy::All)?;
    world.commit_and_expect(Some("and what was deleted since is forgotten"))?;
    Ok(world.finish())
}

const REPEATED: &str = r#"{"sparse":true,"capacity":3,"duplicates":true,
    "dims":[{"name":"p","dtype":"int64","domain":["-50","50"],"tile":"10"}],"attrs":[{"name":"v","dtype":"int16"}]}"#;

fn deleted() -> Result<Case> {
    let about = "boxes deleted, in a dense and in sparse arrays; cells that a condition selects: masks (also two over one fragment), \
                 tombstones and a deletion of the order of an earlier version; all folded into pages at the end";
    let mut world = World::new("deleted", about)?;
    for (path, schema) in [("/line", SMALL), ("/points", POINTS), ("/repeated", REPEATED)] {
        world.create_array(path, schema)?;
    }
    world.write_box("/line", &[("0", "9")], vec![("v", ints(2, 0..10))], Order::Row)?;
    let places: Vec<Vec<u64>> = (-5..5).map(|p| vec![signed(10 * p)]).collect();
    let twice: Vec<Vec<u64>> = places.iter().flat_map(|p| [p.clone(), p.clone()]).collect();
    world.write_cells("/points", &places, vec![("v", ints(2, 0..10))])?;
    world.write_cells("/repeated", &twice, vec![("v", ints(2, 0..20))])?;
    world.commit_and_expect(None)?;
    world.delete_box("/line", &[("3", "5")])?;
    world.delete_box("/points", &[("-20", "0")])?;
    world.delete_box("/repeated", &[("40", "50")])?;
    world.commit_and_expect(Some("a box of each"))?;
    world.write_cells("/line", &[vec![signed(4)]], vec![("v", ints(2, [70]))])?;
    world.write_cells("/points", &[vec![signed(0)], vec![signed(10)]], vec![("v", ints(2, [70, 2]))])?;
    world.commit_and_expect(Some("newer cells in them"))?;
    let above = |least: i64| move |cell: &Option<Vec<u8>>| cell.as_ref().is_some_and(|c| i64::from(c[0]) >= least);
    for path in ["/line", "/points", "/repeated"] {
        world.delete_where(path, "v >= 8", "v", above(8))?;
    }
    world.write_cells("/line", &[vec![signed(9)]], vec![("v", ints(2, [9]))])?;
    world.commit_and_expect(Some("by condition, with a newer cell in the same commit"))?;
    world
        .delete_where("/repeated", "v in (1, 4)", "v", |cell| cell.as_ref().is_some_and(|c| c[0] == 1 || c[0] == 4))?;
    world.delete_where("/line", "v >= 0", "v", |_| true)?;
    world.commit_and_expect(Some("a second mask; a dense array all of which is selected"))?;
    for version in 6..=66i64 {
        world.set_metadata("/line", "version", Some(&version.to_string()))?;
        world.commit(None)?;
        if version == 64 {
            world.expect(&[])?;
        }
    }
    world.expect(&[])?;
    Ok(world.finish())
}

fn evolved() -> Result<Case> {
    let about = "schemas changed: domains grown at both ends, attributes added, dropped and renamed, one that may be null from \
                 then on, a name that another attribute had; dense and sparse; merged, and folded into a root of several schemas";
    let mut world = World::new("evolved", about)?.folding(6);
    world.create_array("/line", SMALL)?;
    world.create_array("/points", POINTS)?;
    let cells = |places: &[i64]| places.iter().map(|p| vec![signed(*p)]).collect::<Vec<_>>();
    world.write_box("/line", &[("2", "6")], vec![("v", ints(2, 5..10))], Order::Row)?;
    world.write_cells("/points", &cells(&[-50, 3, 50]), vec![("v", ints(2, [1, 2, 3]))])?;
    world.commit_and_expect(None)?;
    let text = |name: &str| name.to_owned();
    let grow = |name: &str, lo: &str, hi: &str| vec![(text(name), text(lo), text(hi))];
    let added = vec![
        Attribute::new("q", Datatype::Int16, false, Some("-7"), "auto")?,
        Attribute::new("note", Datatype::String, true, None, "auto")?,
    ];
    let none = Evolution::default;
    world.alter("/line", &Evolution { domains: grow("i", "-8", "13"), add: added.clone(), ..none() })?;
    world.alter("/points", &Evolution { domains: grow("p", "-90", "55"), add: added, ..none() })?;
    world.commit_and_expect(Some("grown, two attributes added"))?;
    let notes = texts(Datatype::String, &["ä", "null", "b"])?;
    let three = |v: i64| vec![("v", ints(2, v..v + 3)), ("q", ints(2, v + 10..v + 13)), ("note", notes.clone())];
    world.write_cells("/points", &cells(&[-90, 3, 55]), three(20))?;
    world.write_cells("/line", &cells(&[-8, 6, 13]), three(30))?;
    world.commit_and_expect(None)?;
    world.alter("/line", &Evolution { drop: vec![text("v")], rename: vec![(text("q"), text("v"))], ..none() })?;
    let nullable = vec![text("v")];
    let filters = vec![(text("q"), text("delta,zstd:3"))];
    world.alter("/points", &Evolution { drop: vec![text("note")], nullable, filters, ..none() })?;
    world.commit_and_expect(Some("dropped, renamed, nullable"))?;
    let fill = vec![(text("v"), Some(text("99")))];
    let again = vec![Attribute::new("q", Datatype::Float32, true, None, "auto")?];
    world.alter("/line", &Evolution { add: again, fill, ..none() })?;
    world.write_box("/line", &[("-8", "-6")], vec![("q", singles([0.5, 1.5, -2.0]))], Order::Row)?;
    let values = vec![("v", texts(Datatype::Int16, &["null", "41"])?), ("q", ints(2, [50, 51]))];
    world.write_cells("/points", &cells(&[3, 4]), values)?;
    world.commit_and_expect(Some("another q; nulls beside values written before they were allowed"))?;
    world.merge("/points", FragmentKind::Sparse)?;
    world.commit_and_expect(Some("merged"))?;
    world.delete_box("/points", &[("40", "55")])?;
    world.commit_and_expect(None)?;
    Ok(world.finish())
}

/// 70 commits: version 65 names a root of version 64.
fn many_commits() -> Result<World> {
    let about = "70 commits, so that a manifest root, two pages and a pack exist; versions on both sides of the fold";
    let mut world = World::new("many_commits", about)?;
    world.create_array("/line", SMALL)?;
    world.create_array("/points", POINTS)?;
    world.commit_and_expect(None)?;
    for version in 2..=70i64 {
        match version % 5 {
            0 => {
                let from = (version / 5) % 8;
                let (lo, hi) = (from.to_string(), (from + 2).to_string());
                world.write_box("/line", &[(&lo, &hi)], vec![("v", ints(2, version..version + 3))], Order::Row)?;
            }
            2 if version < 40 => {
                let places: Vec<Vec<u64>> = (0..4).map(|i| vec![signed((version * 7 + i * 13) % 101 - 50)]).collect();
                world.write_cells("/points", &places, vec![("v", ints(2, version..version + 4))])?;
            }
            3 if version > 60 => world.delete("/points", &[vec![signed(-50)], vec![signed(version - 50)]])?,
            _ => world.set_metadata("/line", "version", Some(&version.to_string()))?,
        }
        world.commit(None)?;
        if [2, 5, 32, 64, 65, 66].contains(&version) {
            world.expect(&[])?;
        }
    }
    world.expect(&[])?;
    Ok(world)
}

/// A tag holds the floor at version 5; files that only older versions named are condemned.
fn tagged() -> Result<World> {
    let about =
        "a vacuum that a tag holds back: tags, a floor with its root, a record that condemns files which are gone";
    let mut world = World::new("tagged", about)?;
    world.inline = false;
    world.create_array("/line", SMALL)?;
    world.create_array("/points", POINTS)?;
    world.commit_and_expect(None)?;
    let cells = |places: &[i64]| places.iter().map(|p| vec![signed(*p)]).collect::<Vec<_>>();
    for step in 0..3i64 {
        world.write_cells("/points", &cells(&[-50 + step, 3]), vec![("v", ints(2, [step, 10 + step]))])?;
        world.commit_and_expect(None)?;
    }
    world.merge("/points", FragmentKind::Sparse)?;
    world.commit_and_expect(Some("merged"))?;
    world.inline = true;
    world.write_box("/line", &[("2", "6")], vec![("v", ints(2, 5..10))], Order::Row)?;
    world.tag("merged", Some(5))?;
    world.tag("early", Some(2))?;
    world.commit_and_expect(None)?;
    world.tag("early", None)?;
    world.tag("ünïque", Some(6))?;
    world.commit_and_expect(None)?;
    world.vacuum(1)?;
    world.expect(&[])?;
    Ok(world)
}

fn vacuumed() -> Result<Case> {
    let mut world = tagged()?;
    world.rename(
        "vacuumed",
        "the same store after a second vacuum, whose root holds the tags and what the first one condemned",
    );
    world.tag("merged", None)?;
    world.write_cells("/points", &[vec![signed(9)]], vec![("v", ints(2, [9]))])?;
    world.commit_and_expect(None)?;
    world.tag("ünïque", Some(9))?;
    world.commit_and_expect(None)?;
    world.vacuum(1)?;
    world.expect(&[])?;
    world.write_cells("/points", &[vec![signed(11)]], vec![("v", ints(2, [11]))])?;
    world.commit_and_expect(Some("after both"))?;
    Ok(world.finish())
}

fn truncated() -> Result<Case> {
    let mut world = many_commits()?;
    world.rename("truncated_log", "the same store with its log cut at version 64: a floor, and no record below it");
    let root = world.snapshot()?.root().ok_or_else(|| Error::not_found("70 commits made no root"))?;
    let storage = world.storage().clone();
    storage.put(FLOOR, &Floor { version: root.version, root }.encode()?)?;
    for version in 1..root.version {
        storage.delete(&log_name(version))?;
    }
    world.forget_before(root.version);
    Ok(world.finish())
}
