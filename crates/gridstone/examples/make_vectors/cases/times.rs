//! Times in every unit, as attributes and as dimensions.

use super::super::case::Case;
use super::super::value::Cell;
use super::super::world::World;
use super::{ints, noise, signed, with_nulls};
use gridstone::base::Result;
use gridstone::schema::Order;

const UNITS: [&str; 13] = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"];

pub(super) fn cases() -> Result<Vec<Case>> {
    Ok(vec![times()?])
}

fn times() -> Result<Case> {
    let about = "datetimes and lengths of time in every unit: as attributes of a dense array along lengths of time, with NaT and \
                 nulls, and as the dimensions of sparse arrays; a dense array along datetimes";
    let mut world = World::new("times", about)?;
    values(&mut world)?;
    for (seed, unit) in (0..).zip(UNITS) {
        places(&mut world, unit, seed)?;
    }
    months(&mut world)?;
    world.commit_and_expect(None)?;
    Ok(world.finish())
}

/// Both kinds of time in every unit, every other attribute nullable.
fn values(world: &mut World) -> Result<()> {
    let kinds = ["datetime64", "timedelta64"];
    let named = kinds.iter().flat_map(|kind| UNITS.map(|unit| (format!("{kind}_{unit}"), format!("{kind}[{unit}]"))));
    let attrs: Vec<(String, String, bool)> =
        named.zip(0..).map(|((name, dtype), i)| (name, dtype, i % 2 == 1)).collect();
    let listed = attrs.iter().map(|(name, dtype, nullable)| {
        format!(r#"{{"name":"{name}","dtype":"{dtype}","nullable":{nullable},"filters":"delta,for"}}"#)
    });
    let schema = format!(
        r#"{{"dims":[{{"name":"after","dtype":"timedelta64[h]","domain":["-6","13"],"tile":"7"}}],"attrs":[{}]}}"#,
        listed.collect::<Vec<_>>().join(",")
    );
    world.create_array("/values", &schema)?;
    let cells = |seed: u64, nullable: bool| -> Vec<Cell> {
        let edges = [i64::MIN, i64::MAX, 0, -1, 1];
        let cells = ints(
            8,
            (0..15).map(|i| edges.get(i).copied().unwrap_or_else(|| (noise(seed * 64 + i as u64) >> 40) as i64)),
        );
        if nullable { with_nulls(cells, |i| i % 4 == 3) } else { cells }
    };
    let values = attrs.iter().zip(0..).map(|((name, _, nullable), seed)| (name.as_str(), cells(seed, *nullable)));
    world.write_box("/values", &[("-4", "10")], values.collect(), Order::Row)
}

/// Places in time on both sides of 1970, in tiles, and after lengths of time in one tile.
fn places(world: &mut World, unit: &str, seed: u64) -> Result<()> {
    let path = format!("/places/{unit}");
    let schema = format!(
        r#"{{"sparse":true,"capacity":4,"dims":[
        {{"name":"at","dtype":"datetime64[{unit}]","domain":["-40","60"],"tile":"25"}},
        {{"name":"after","dtype":"timedelta64[{unit}]","domain":["-9","9"],"tile":null}}],
        "attrs":[{{"name":"v","dtype":"int8"}}]}}"#
    );
    world.create_array(&path, &schema)?;
    let place = |i: i64| vec![signed(i * 17 % 101 - 40), signed((noise(seed * 64 + i as u64) % 19) as i64 - 9)];
    world.write_cells(&path, &(0..9).map(place).collect::<Vec<_>>(), vec![("v", ints(1, 0..9))])
}

fn months(world: &mut World) -> Result<()> {
    let schema = r#"{"dims":[{"name":"month","dtype":"datetime64[M]","domain":["-5","18"],"tile":"12"}],
        "attrs":[{"name":"v","dtype":"int16","fill":"-1"}]}"#;
    world.create_array("/months", schema)?;
    world.write_box("/months", &[("-3", "9")], vec![("v", ints(2, 0..13))], Order::Row)
}
