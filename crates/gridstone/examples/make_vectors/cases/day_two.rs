//! Labels, hidden arrays, metadata of attributes and dimensions, domains that are open or empty, arrays of no dimension.

use super::super::case::Case;
use super::super::world::World;
use super::{ints, signed, singles, with_nulls};
use gridstone::base::Result;
use gridstone::schema::{Datatype, Evolution, KeyRange, Labels, Order, Steps, Subarray, key};
use gridstone::store::Field;

pub(super) fn cases() -> Result<Vec<Case>> {
    Ok(vec![day_two()?, shared_labels()?])
}

const ALONG: &str = r#"{"dims":[{"name":"y","dtype":"int16","domain":["0","9"],"tile":"4"}],
    "attrs":[{"name":"lat","dtype":"float32"}]}"#;
const ENDLESS: &str = r#"{"dims":[{"name":"t","dtype":"int64","domain":["3",null],"tile":"4"}],
    "attrs":[{"name":"v","dtype":"int16","fill":"-1"}]}"#;
const SCATTERED: &str = r#"{"sparse":true,"capacity":3,"dims":[{"name":"p","dtype":"int32","domain":[null,"50"],"tile":"10",
    "origin":"-2147483648"},
    {"name":"q","dtype":"float32","domain":[null,null],"tile":null},
    {"name":"r","dtype":"timedelta64[30s]","domain":["-5",null],"tile":null}],"attrs":[{"name":"v","dtype":"int16"}]}"#;
const WIDE: &str = r#"{"sparse":true,"dims":[{"name":"t","dtype":"uint8","domain":["3",null],"tile":"254"}],
    "attrs":[{"name":"v","dtype":"int16"}]}"#;
const WINDOW: &str = r#"{"dims":[{"name":"a","dtype":"int16","domain":[null,"9"],"tile":"6"},
    {"name":"b","dtype":"uint16","domain":[null,null],"tile":"4"}],"attrs":[{"name":"v","dtype":"int16","fill":"-1"}]}"#;
const CURVE: &str = r#"{"sparse":true,"capacity":4,"cell_order":"hilbert","dims":[
    {"name":"x","dtype":"int32","domain":[null,null],"tile":"16"},
    {"name":"y","dtype":"float32","domain":["-1","1"],"tile":null}],"attrs":[{"name":"v","dtype":"int16"}]}"#;
const LONG: &str = r#"{"dims":[{"name":"x","dtype":"uint8","domain":["2","5"],"tile":"256"},
    {"name":"y","dtype":"int16","domain":["-1","1"],"tile":"7"}],"attrs":[{"name":"v","dtype":"int16","fill":"-1"}]}"#;
const UNTILED: &str = r#"{"dims":[{"name":"x","dtype":"int16","domain":["0","3"],"tile":null,
    "labels":{"start":"7","step":"2","dtype":"int16"}}],"attrs":[{"name":"v","dtype":"int16","fill":"-1"}]}"#;
const UNBORN: &str = r#"{"dims":[{"name":"x","dtype":"uint8","domain":["1","4"],"tile":"3"},
    {"name":"t","dtype":"int16","domain":[],"tile":"5"}],"attrs":[{"name":"v","dtype":"int16","fill":"-1"}]}"#;
const SINGLE: &str = r#"{"scalar":true,"dims":[{"name":"@","dtype":"uint8","domain":["0","0"],"tile":null}],
    "attrs":[{"name":"v","dtype":"float32","nullable":true}]}"#;
const HOURS: &str = r#"{"dims":[{"name":"at","dtype":"datetime64[6h]","domain":["-2","9"],"tile":"4"}],
    "attrs":[{"name":"after","dtype":"timedelta64[15m]"},{"name":"until","dtype":"datetime64[2147483647as]","nullable":true}]}"#;

fn day_two() -> Result<Case> {
    let about = "labels in steps and in hidden arrays; metadata of attributes and dimensions, one of them dropped and one renamed; times in \
                 steps; an array of no dimension; domains with open ends, and an empty one, which begin without a cell and \
                 reach to what is written; tiles that are longer than the domain; origins of tiles and of labels that are no ends of \
                 the domain; a deletion beyond the domain; a moved fragment";
    let mut world = World::new("day_two", about)?.folding(4);
    let (labels, spare) = (world.fresh(), world.fresh());
    let field = format!(
        r#"{{"dims":[{{"name":"y","dtype":"int16","domain":["0","9"],"tile":"4","labels":{{"array":"{labels}"}}}},
        {{"name":"x","dtype":"int8","domain":["-3","8"],"tile":"6","labels":{{"start":"-180.0","step":"0.5","dtype":"float64"}}}}],
        "attrs":[{{"name":"v","dtype":"int16","fill":"-1"}},{{"name":"w","dtype":"int8"}}]}}"#
    );
    world.create_stored("/maps/field", &field)?;
    world.hide(labels, "/maps/field", "@y", ALONG)?;
    world.hide(spare, "/maps/field", "@\u{fc}", ALONG)?;
    world.write_box(
        "/maps/field/@y",
        &[("0", "7")],
        vec![("lat", singles((0..8).map(|n| n as f32 / 4.0)))],
        Order::Row,
    )?;
    let ends = [("/endless", ENDLESS), ("/scattered", SCATTERED), ("/unborn", UNBORN), ("/wide", WIDE)];
    for (path, schema) in ends.into_iter().chain([("/single", SINGLE), ("/untiled", UNTILED)]) {
        world.create_stored(path, schema)?;
    }
    for (path, schema) in [("/window", WINDOW), ("/long", LONG), ("/hours", HOURS)] {
        world.create_array(path, schema)?;
    }
    world.create_framed("/curve", CURVE)?;
    world.commit_and_expect(Some("nothing but labels is written"))?;
    world.tell("/maps/field", Field::Attribute(0), "unit", Some("\"K\""))?;
    world.tell("/maps/field", Field::Attribute(1), "unit", Some("\"gone\""))?;
    world.tell("/maps/field", Field::Dimension(0), "standard", Some("{\"name\":\"latitude\",\"of\":[1,2]}"))?;
    world.tell("/maps/field", Field::Dimension(1), "unit", Some("1"))?;
    write(&mut world)?;
    world.commit_and_expect(Some("written"))?;
    change(&mut world, labels)?;
    world.commit_and_expect(Some("other schemas, a deletion and a moved fragment"))?;
    world.move_node("/maps", "/charts")?;
    world.commit_and_expect(Some("moved with what is hidden below"))?;
    world.pack()?;
    grown(&mut world)?;
    world.commit_and_expect(Some("folded, and grown"))?;
    world.remove("/charts/field/@\u{fc}");
    world.tell("/charts/field", Field::Dimension(1), "unit", None)?;
    world.commit_and_expect(Some("a hidden array removed by itself"))?;
    world.create_array("/gone", HOURS)?;
    world.commit_and_expect(None)?;
    world.pack()?;
    world.remove("/gone");
    world.commit_and_expect(None)?;
    Ok(world.finish())
}

const TIMES: &str = r#"{"dims":[{"name":"time","dtype":"int32","domain":["0","5"],"tile":"4"}],
    "attrs":[{"name":"hour","dtype":"datetime64[h]"}]}"#;

fn shared_labels() -> Result<Case> {
    let about =
        "labels in an array that two others share, and name by its id: in its group, moved to another one, and removed";
    let mut world = World::new("shared_labels", about)?;
    world.create_group("/run");
    world.create_group("/old");
    world.create_array("/run/time", TIMES)?;
    let (times, _) = world.model("/run/time")?;
    for (name, last) in [("light", 5), ("heat", 2)] {
        let schema = format!(
            r#"{{"dims":[{{"name":"time","dtype":"int32","domain":["0","{last}"],"tile":"2","labels":{{"shared":"{times}"}}}}],
            "attrs":[{{"name":"v","dtype":"int16","fill":"-1"}}]}}"#
        );
        world.create_stored(&format!("/run/{name}"), &schema)?;
    }
    world.write_box("/run/time", &[("0", "4")], vec![("hour", ints(8, 100..105))], Order::Row)?;
    world.write_box("/run/light", &[("1", "5")], vec![("v", ints(2, 0..5))], Order::Row)?;
    world.write_box("/run/heat", &[("0", "2")], vec![("v", ints(2, 7..10))], Order::Row)?;
    world.commit_and_expect(Some("two arrays along one axis of times"))?;
    world.move_node("/run/time", "/old/time")?;
    world.commit_and_expect(Some("their times are moved"))?;
    world.remove("/old/time");
    world.commit_and_expect(Some("their times are removed"))?;
    Ok(world.finish())
}

fn span(lo: i64, hi: i64) -> KeyRange {
    KeyRange::new(signed(lo), signed(hi))
}

/// Cells of every array.
fn write(world: &mut World) -> Result<()> {
    let values = vec![("v", ints(2, 0..35)), ("w", ints(1, 100..135))];
    world.write_box("/maps/field", &[("2", "6"), ("-1", "5")], values, Order::Row)?;
    world.grow("/endless", 0, span(5, 14))?;
    world.write_box("/endless", &[("5", "14")], vec![("v", ints(2, 0..10))], Order::Row)?;
    world.write_box(
        "/hours",
        &[("4", "9")],
        vec![("until", with_nulls(ints(8, -2..4), |i| i % 3 == 1))],
        Order::Row,
    )?;
    let place = |p: i64, q: f64| vec![signed(p), key::from_float(q), signed(p.abs())];
    let places = [
        place(i64::from(i32::MIN), 0.0),
        place(-7, f64::from(f32::MAX)),
        place(-7, -1.5),
        place(50, f64::from(f32::MIN)),
    ];
    world.grow("/scattered", 0, span(i64::from(i32::MIN), 50))?;
    world.grow(
        "/scattered",
        1,
        KeyRange::new(key::from_float(f64::from(f32::MIN)), key::from_float(f64::from(f32::MAX))),
    )?;
    world.grow("/scattered", 2, span(7, 1 << 31))?;
    world.write_cells("/scattered", &places, vec![("v", ints(2, 1..5))])?;
    world.grow("/wide", 0, KeyRange::new(3, 255))?;
    world.write_cells("/wide", &[vec![3], vec![255]], vec![("v", ints(2, 1..3))])?;
    world.write_box("/single", &[("0", "0")], vec![("v", singles([2.5]))], Order::Row)?;
    world.grow("/window", 0, span(-8, -6))?;
    world.grow("/window", 1, KeyRange::new(5, 6))?;
    world.write_box("/window", &[("-8", "-6"), ("5", "6")], vec![("v", ints(2, 0..6))], Order::Row)?;
    let along = |x: i64, y: f64| vec![signed(x), key::from_float(y)];
    world.grow("/curve", 0, span(-40, 7))?;
    let places = [along(-40, 0.5), along(-33, 1.0), along(-33, -0.25), along(0, -1.0), along(7, 0.125)];
    world.write_cells("/curve", &places, vec![("v", ints(2, 1..6))])?;
    world.write_box("/long", &[("3", "5"), ("-1", "0")], vec![("v", ints(2, 0..6))], Order::Row)?;
    world.write_box("/hours", &[("-2", "5")], vec![("after", ints(8, [0, 1, -1, i64::MIN, 7, 96, 3, 2]))], Order::Row)
}

/// Other names, labels and attributes, also where an end is open; a deletion that reaches further than the domain; a fragment by
/// three tiles off.
fn change(world: &mut World, labels: gridstone::base::Id) -> Result<()> {
    let text = |name: &str| name.to_owned();
    let steps = Labels::Steps(Steps::new(Datatype::parse("datetime64[6h]")?, "100", "-4")?);
    let renamed = Evolution {
        drop: vec![text("w")],
        rename: vec![(text("y"), text("lat")), (text("x"), text("lon"))],
        labels: vec![(text("x"), Some(steps)), (text("y"), Some(Labels::Array(labels)))],
        ..Evolution::default()
    };
    world.alter("/maps/field", &renamed)?;
    world.delete_sub("/maps/field", Subarray::new(vec![span(5, 400), span(2, 100)]))?;
    world.delete_sub("/unborn", Subarray::new(vec![KeyRange::new(0, 9), span(-9, 9)]))?;
    let to_time = vec![(text("t"), text("time"))];
    world.alter("/endless", &Evolution { rename: to_time, ..Evolution::default() })?;
    world.grow("/endless", 0, span(18, 24))?;
    world.write_moved("/endless", &[("6", "12")], &[3], vec![("v", ints(2, 50..57))])
}

/// Domains grow, over what was deleted too.
fn grown(world: &mut World) -> Result<()> {
    world.grow("/charts/field", 0, span(-2, 12))?;
    world.grow("/charts/field/@y", 0, span(-2, 12))?;
    world.write_box("/charts/field", &[("8", "12"), ("3", "3")], vec![("v", ints(2, 70..75))], Order::Row)?;
    world.write_box("/charts/field/@y", &[("-2", "-1")], vec![("lat", singles([-0.5, -0.25]))], Order::Row)?;
    let to_plain = ("lon".to_owned(), "x".to_owned());
    let labels = vec![("lon".to_owned(), None)];
    world.alter("/charts/field", &Evolution { rename: vec![to_plain], labels, ..Evolution::default() })?;
    world.grow("/untiled", 0, span(-2, 5))?;
    world.write_box("/untiled", &[("-1", "4")], vec![("v", ints(2, 0..6))], Order::Row)?;
    let to_place = vec![("x".to_owned(), "place".to_owned())];
    world.alter("/untiled", &Evolution { rename: to_place, ..Evolution::default() })?;
    world.grow("/unborn", 1, span(-3, 4))?;
    world.write_box("/unborn", &[("2", "3"), ("-1", "1")], vec![("v", ints(2, 0..6))], Order::Row)?;
    let to_time = vec![("t".to_owned(), "time".to_owned())];
    world.alter("/unborn", &Evolution { rename: to_time, ..Evolution::default() })?;
    // Beyond the closed end.
    world.grow("/endless", 0, span(-2, 30))?;
    world.write_box("/endless", &[("-1", "2")], vec![("v", ints(2, 90..94))], Order::Row)?;
    world.grow("/long", 0, KeyRange::new(0, 7))?;
    world.write_box("/long", &[("1", "3"), ("0", "1")], vec![("v", ints(2, 10..16))], Order::Row)?;
    world.grow("/window", 1, KeyRange::new(0, 3))?;
    world.write_box("/window", &[("-7", "9"), ("2", "2")], vec![("v", ints(2, 20..37))], Order::Row)?;
    world.write_box("/single", &[("0", "0")], vec![("v", vec![None])], Order::Row)
}
