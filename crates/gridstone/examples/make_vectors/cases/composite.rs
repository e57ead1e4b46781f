//! Halves, complex numbers, bytes of a length, vectors and lists.

use super::super::case::Case;
use super::super::value::Cell;
use super::super::world::World;
use super::{noise, signed, texts, with_nulls};
use gridstone::base::Result;
use gridstone::schema::{Datatype, Order};

pub(super) fn cases() -> Result<Vec<Case>> {
    Ok(vec![halves()?, complex()?, vectors()?, raw_vectors()?, lists()?, sparse()?])
}

/// An attribute: name, datatype, nullable, filters, fill.
type Attr = (&'static str, &'static str, bool, &'static str, Option<&'static str>);

fn attributes(attrs: &[Attr]) -> String {
    let attrs = attrs.iter().map(|(name, dtype, nullable, filters, fill)| {
        let fill = fill.map_or("null".to_owned(), |text| format!("\"{text}\""));
        format!(r#"{{"name":"{name}","dtype":"{dtype}","nullable":{nullable},"fill":{fill},"filters":"{filters}"}}"#)
    });
    attrs.collect::<Vec<_>>().join(",")
}

/// A dense array of one dimension `i` from 0 to `last`.
fn line(last: u64, tile: u64, attrs: &[Attr]) -> String {
    format!(
        r#"{{"dims":[{{"name":"i","dtype":"int64","domain":["0","{last}"],"tile":"{tile}"}}],"attrs":[{}]}}"#,
        attributes(attrs)
    )
}

/// Cells of `width` bytes that look random; small numbers where `small`.
fn bytes(width: usize, count: u64, small: bool) -> Vec<Cell> {
    let byte = |i: u64, b: usize| if small && b % 2 == 1 { 0 } else { noise(i * 256 + b as u64) as u8 };
    (0..count).map(|i| Some((0..width).map(|b| byte(i, b)).collect())).collect()
}

fn halves() -> Result<Case> {
    let attrs = [
        ("raw", "float16", false, "none", Some("0.1")),
        ("for", "float16", true, "for", None),
        ("shuffle", "float16", false, "shuffle,lz4", Some("-inf")),
        ("pco", "float16", false, "pco:4", Some("NaN")),
        ("auto", "float16", true, "auto", None),
    ];
    let about =
        "float16: NaN with payloads, infinities, -0.0, subnormals; the bits come back, statistics leave NaN out";
    let mut world = World::with_array("halves", about, &line(29, 10, &attrs))?;
    let bits = [0x7e00, 0xfe01, 0x7c01, 0x7c00, 0xfc00, 0x8000, 0, 1, 0x8001, 0x7bff, 0x3c00u16];
    let cells = || (0..27).map(|i| Some(bits[i % 11].to_le_bytes().to_vec())).collect::<Vec<Cell>>();
    let values = vec![
        ("raw", cells()),
        ("for", with_nulls(cells(), |i| i % 5 == 0 || i > 17)),
        ("shuffle", cells()),
        ("pco", cells()),
        ("auto", with_nulls(cells(), |i| i % 2 == 0)),
    ];
    world.write_box("/", &[("1", "27")], values, Order::Row)?;
    world.commit_and_expect(None)?;
    Ok(world.finish())
}

fn complex() -> Result<Case> {
    let attrs = [
        ("c", "complex64", false, "auto", Some("1.5-2.0j")),
        ("cn", "complex64", true, "none", None),
        ("d", "complex128", false, "pco:4", Some("NaN+infj")),
        ("dn", "complex128", true, "shuffle,zstd:1", None),
    ];
    let about = "complex numbers: two floats each, without minimum, maximum and sum; nulls, NaN, fills";
    let mut world = World::with_array("complex", about, &line(19, 7, &attrs))?;
    let words = ["0.0+0.0j", "1.5-2.0j", "NaN+NaNj", "-0.0-infj", "1e-30+1e30j", "null"];
    let picked = |from: usize, count: usize| -> Vec<&str> { (0..17).map(|i| words[(i * from + 1) % count]).collect() };
    let values = vec![
        ("c", texts(Datatype::Complex64, &picked(1, 5))?),
        ("cn", texts(Datatype::Complex64, &picked(5, 6))?),
        ("d", texts(Datatype::Complex128, &picked(2, 5))?),
        ("dn", texts(Datatype::Complex128, &picked(1, 6))?),
    ];
    world.write_box("/", &[("2", "18")], values, Order::Row)?;
    world.commit_and_expect(None)?;
    Ok(world.finish())
}

fn vectors() -> Result<Case> {
    let attrs = [
        ("rgb", "uint8[3]", false, "lz4", Some("[1,2,255]")),
        ("m", "float32[2,3]", true, "auto", None),
        ("t", "datetime64[s][2]", false, "delta,for", None),
        ("h", "float16[5]", false, "none", None),
        ("z", "complex64[2]", true, "for", None),
        ("b", "bool[3]", false, "none", Some("[true,false,true]")),
        ("one", "int64[1]", false, "delta,zstd:1", None),
        ("id", "bytes[5]", false, "zstd:1", Some("00ff00ff00")),
        ("idn", "bytes[16]", true, "none", None),
    ];
    let dims = r#"{"name":"y","dtype":"int16","domain":["-2","5"],"tile":"3"},{"name":"x","dtype":"uint8","domain":["0","6"],"tile":"4"}"#;
    let schema = format!(r#"{{"dims":[{dims}],"cell_order":"col","attrs":[{}]}}"#, attributes(&attrs));
    let about = "vectors of several types, shapes and filters, bytes of a length, over a box, cells on top of it, a deleted one";
    let mut world = World::with_array("vectors", about, &schema)?;
    let count = 6 * 5;
    let bools = (0..count).map(|i| Some((0..3).map(|b| (noise(i + b) & 1) as u8).collect())).collect();
    let values = vec![
        ("rgb", bytes(3, count, false)),
        ("m", with_nulls(bytes(24, count, true), |i| i % 3 == 0)),
        ("t", bytes(16, count, true)),
        ("h", bytes(10, count, false)),
        ("z", with_nulls(bytes(16, count, true), |i| i > 20)),
        ("b", bools),
        ("one", bytes(8, count, true)),
        ("id", bytes(5, count, true)),
        ("idn", with_nulls(bytes(16, count, false), |i| i % 2 == 1)),
    ];
    world.write_box("/", &[("-1", "4"), ("1", "5")], values, Order::Row)?;
    world.commit(None)?;
    let places = vec![vec![signed(-1), 1], vec![signed(5), 6], vec![signed(2), 3]];
    world.write_cells(
        "/",
        &places,
        vec![("rgb", bytes(3, 3, true)), ("m", with_nulls(bytes(24, 3, false), |i| i == 1))],
    )?;
    world.commit_and_expect(None)?;
    Ok(world.finish())
}

fn raw_vectors() -> Result<Case> {
    let attrs = [("rgb", "uint8[3]", false, "none", None)];
    let about = "raw cells of three bytes in a page large enough for checksums per 4 KiB, which end within cells";
    let mut world = World::with_array("vectors_raw", about, &line(22_999, 23_000, &attrs))?;
    world.write_box("/", &[("0", "22999")], vec![("rgb", bytes(3, 23_000, true))], Order::Row)?;
    world.commit(None)?;
    world.expect(&[&[("0", "22999")], &[("1364", "1366")], &[("17000", "17004")]])?;
    Ok(world.finish())
}

/// Lists of values of `width` bytes, some empty.
fn list_cells(width: usize, count: u64, seed: u64) -> Vec<Cell> {
    let item = |i: u64, b: usize| if b > 1 { 0 } else { noise(i * 64 + b as u64 + seed) as u8 };
    let list = |i: u64| (0..noise(i ^ seed) % 5).flat_map(move |n| (0..width).map(move |b| item(i + n, b))).collect();
    (0..count).map(|i| Some(list(i))).collect()
}

fn lists() -> Result<Case> {
    let attrs = [
        ("n", "list[int32]", false, "auto", None),
        ("f", "list[float64]", true, "pco:4", Some("[0.1,NaN]")),
        ("h", "list[float16]", false, "none", Some("[1.5,-inf]")),
        ("c", "list[complex64]", true, "shuffle,lz4", None),
        ("t", "list[timedelta64[ms]]", false, "delta,for", Some("[NaT,7]")),
    ];
    let about = "lists of several types, empty ones and nulls among them, and a fill that is a list";
    let mut world = World::with_array("lists", about, &line(39, 15, &attrs))?;
    let values = vec![
        ("n", list_cells(4, 35, 1)),
        ("f", with_nulls(list_cells(8, 35, 2), |i| i % 4 == 0)),
        ("h", list_cells(2, 35, 3)),
        ("c", with_nulls(list_cells(8, 35, 4), |i| (5..20).contains(&i))),
        ("t", list_cells(8, 35, 5)),
    ];
    world.write_box("/", &[("2", "36")], values, Order::Row)?;
    world.commit_and_expect(None)?;
    Ok(world.finish())
}

fn sparse() -> Result<Case> {
    let attrs = [
        ("l", "list[uint16]", true, "auto", None),
        ("v", "float32[3]", false, "auto", None),
        ("h", "float16", true, "auto", None),
        ("s", "bytes[4]", false, "auto", None),
        ("z", "complex128", false, "auto", None),
    ];
    let schema = format!(
        r#"{{"sparse":true,"capacity":6,"dims":[{{"name":"x","dtype":"int32","domain":["-50","50"],"tile":"20"}}],"attrs":[{}]}}"#,
        attributes(&attrs)
    );
    let about =
        "a sparse array of halves, complex numbers, vectors, bytes of a length and lists; newer cells on older ones";
    let mut world = World::with_array("sparse_composite", about, &schema)?;
    for round in 0..2 {
        let count = 20 - 12 * round;
        let places: Vec<Vec<u64>> = (0..count as i64).map(|i| vec![signed(i * (5 - round as i64) - 50)]).collect();
        let values = vec![
            ("l", with_nulls(list_cells(2, count, 9 + round), |i| i % 5 == 2)),
            ("v", bytes(12, count, round == 0)),
            ("h", with_nulls(bytes(2, count, true), |i| i % 7 == 3)),
            ("s", bytes(4, count, round == 1)),
            ("z", bytes(16, count, true)),
        ];
        world.write_cells("/", &places, values)?;
        world.commit(None)?;
    }
    world.expect(&[&[("-50", "50")], &[("-12", "33")]])?;
    Ok(world.finish())
}
