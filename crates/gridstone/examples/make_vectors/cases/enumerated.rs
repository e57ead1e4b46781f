//! Enumerated attributes, rounded ones, and a filter that a user brings along.

use super::super::case::Case;
use super::super::value::Cell;
use super::super::world::World;
use super::{ints, noise, signed, singles, texts, with_nulls};
use gridstone::base::Result;
use gridstone::engine::{UserFilter, register_filter};
use gridstone::fragment::FragmentKind;
use gridstone::schema::{Datatype, Evolution, Order};
use std::sync::Arc;

pub(super) fn cases() -> Result<Vec<Case>> {
    Ok(vec![categories()?, rounded()?, user_filters()?])
}

const STATUS: &str = r#"{"name":"status","dtype":"string","categories":["ok","bad",""],"fill":"bad"}"#;
const GRADE: &str = r#"{"name":"grade","dtype":"float64","categories":["1.5","-0.5"],"ordered":true,"codes":"uint16","nullable":true,
    "filters":"dict,lz4"}"#;
const LATE: &str = r#"{"name":"late","dtype":"datetime64[s]","categories":[],"codes":"uint32","nullable":true}"#;

fn array(sparse: bool, dim: &str, attrs: &[&str]) -> String {
    format!(r#"{{"sparse":{sparse},"capacity":7,"dims":[{dim}],"attrs":[{}]}}"#, attrs.join(","))
}

/// Codes below `count`.
fn codes(width: usize, cells: u64, count: u64) -> Vec<Cell> {
    ints(width, (0..cells).map(|i| (noise(i) % count) as i64))
}

fn categories() -> Result<Case> {
    let about = "categories: strings, ordered floats, times that come later; codes of one, two and four bytes; nulls, a fill; \
                 categories added, and cells on both sides of that, dense and sparse, merged";
    let mut world = World::new("categories", about)?;
    let (line, points) = (
        r#"{"name":"i","dtype":"int64","domain":["0","29"],"tile":"10"}"#,
        r#"{"name":"p","dtype":"int64","domain":["-40","40"],"tile":"20"}"#,
    );
    world.create_array("/line", &array(false, line, &[STATUS, GRADE, LATE]))?;
    world.create_array("/points", &array(true, points, &[STATUS, GRADE, LATE]))?;
    let cells = |first: i64| (0..18).map(|i| vec![signed(first + 2 * i)]).collect::<Vec<_>>();
    let values = |status: u64, grade: u64, late: u64| {
        let times = if late == 0 { vec![None; 18] } else { with_nulls(codes(4, 18, late), |i| i % 3 == 0) };
        vec![
            ("status", codes(1, 18, status)),
            ("grade", with_nulls(codes(2, 18, grade), |i| i % 4 == 1)),
            ("late", times),
        ]
    };
    world.write_box("/line", &[("3", "20")], values(3, 2, 0), Order::Row)?;
    world.write_cells("/points", &cells(-40), values(3, 2, 0))?;
    world.commit_and_expect(None)?;
    for path in ["/line", "/points"] {
        let more = |name: &str, texts: &[&str]| (name.to_owned(), texts.iter().map(|t| (*t).to_owned()).collect());
        let categories = vec![
            more("status", &["lost \u{e9}"]),
            more("grade", &["1e300", "-inf"]),
            more("late", &["0", "-5", "1700000000"]),
        ];
        world.alter(path, &Evolution { categories, ..Evolution::default() })?;
    }
    world.commit_and_expect(Some("categories added"))?;
    world.write_box("/line", &[("12", "29")], values(4, 4, 3), Order::Row)?;
    world.write_cells("/points", &cells(-21), values(4, 4, 3))?;
    world.commit_and_expect(None)?;
    world.merge("/points", FragmentKind::Sparse)?;
    world.commit_and_expect(Some("merged"))?;
    Ok(world.finish())
}

fn rounded() -> Result<Case> {
    let about = "bit rounding: in the schema, while pages and statistics are of values that are rounded already";
    let dim = r#"{"name":"i","dtype":"int64","domain":["0","29"],"tile":"10"}"#;
    let attrs = [
        r#"{"name":"auto","dtype":"float32","filters":"bitround:3"}"#,
        r#"{"name":"named","dtype":"float32","filters":"bitround:3,shuffle,zstd:1","nullable":true,"fill":"0.1"}"#,
    ];
    let mut world = World::with_array("rounded", about, &array(false, dim, &attrs))?;
    let kept = [
        1.0,
        -1.125,
        1e30,
        f32::NAN,
        f32::INFINITY,
        -0.0,
        0.0,
        f32::from_bits(0x7f70_0000),
        f32::from_bits(0x0010_0000),
    ];
    // What is kept of a number has three bits behind the first.
    let kept = kept.map(|v: f32| if v.is_finite() { f32::from_bits(v.to_bits() & 0xfff0_0000) } else { v });
    let cells = || singles((0..25).map(|i| kept[i % 9]));
    let values = vec![("auto", cells()), ("named", with_nulls(cells(), |i| i % 4 == 2))];
    world.write_box("/", &[("2", "26")], values, Order::Row)?;
    world.commit_and_expect(None)?;
    Ok(world.finish())
}

/// Every byte with the width of a value.
struct Xor;

impl UserFilter for Xor {
    fn encode(&self, input: &[u8], width: usize) -> Result<Vec<u8>> {
        Ok(input.iter().map(|byte| byte ^ (0xa0 | width as u8)).collect())
    }

    fn decode(&self, input: &[u8], width: usize, _len_max: usize) -> Result<Vec<u8>> {
        self.encode(input, width)
    }
}

fn user_filters() -> Result<Case> {
    register_filter("test.xor", Arc::new(Xor), true)?;
    let about = "a user-defined filter, which combines every byte with 0xa0 + the width of a value: alone, between others, and over \
                 strings";
    let dim = r#"{"name":"i","dtype":"int64","domain":["0","29"],"tile":"10"}"#;
    let attrs = [
        r#"{"name":"alone","dtype":"int32","filters":"test.xor"}"#,
        r#"{"name":"between","dtype":"int16","filters":"delta,test.xor,lz4","nullable":true}"#,
        r#"{"name":"text","dtype":"string","filters":"test.xor,test.xor,zstd:1"}"#,
        r#"{"name":"auto","dtype":"float32"}"#,
    ];
    let mut world = World::with_array("user_filters", about, &array(false, dim, &attrs))?;
    let words: Vec<&str> = (0..25).map(|i| ["", "harbour", "é"][i % 3]).collect();
    let values = vec![
        ("alone", ints(4, (0..25).map(|i| i * 70_000 - 5))),
        ("between", with_nulls(ints(2, (0..25).map(|i| i * i)), |i| i % 5 == 0)),
        ("text", texts(Datatype::String, &words)?),
        ("auto", singles((0..25).map(|i| i as f32 / 3.0))),
    ];
    world.write_box("/", &[("0", "24")], values, Order::Row)?;
    world.commit_and_expect(None)?;
    Ok(world.finish())
}
