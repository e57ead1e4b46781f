//! Dense arrays: orders, boxes that fit no tile, overlaps, cells and tombstones over them, raw pages, stripes.

use super::super::case::Case;
use super::super::world::World;
use super::{doubles, ints, noise, signed, texts, with_nulls};
use gridstone::base::Result;
use gridstone::schema::{Datatype, Order};

pub(super) fn cases() -> Result<Vec<Case>> {
    Ok(vec![
        tiny()?,
        orders("dense_row", "row", "row")?,
        orders("dense_col", "col", "col")?,
        orders("dense_mixed", "col", "row")?,
        three_dimensions()?,
        overlap()?,
        cells_and_tombstones()?,
        raw_pages()?,
        edges()?,
    ])
}

/// The one that the pages of the format take apart byte by byte.
fn tiny() -> Result<Case> {
    let schema = r#"{"dims":[{"name":"i","dtype":"uint8","domain":["0","9"],"tile":"4"}],
        "attrs":[{"name":"v","dtype":"int16","filters":"delta"}]}"#;
    let mut world = World::with_array("tiny", "five cells, taken apart in docs/format/fragment.md", schema)?;
    world.write_box("/", &[("2", "6")], vec![("v", ints(2, [10, 11, 300, -1, 7]))], Order::Row)?;
    world.commit_and_expect(None)?;
    Ok(world.finish())
}

fn orders(name: &'static str, tile_order: &str, cell_order: &str) -> Result<Case> {
    let schema = format!(
        r#"{{"tile_order":"{tile_order}","cell_order":"{cell_order}","dims":[
        {{"name":"y","dtype":"int32","domain":["-5","14"],"tile":"7"}},
        {{"name":"x","dtype":"int32","domain":["0","29"],"tile":"8"}}],
        "attrs":[{{"name":"v","dtype":"int32","fill":"-1","filters":"delta,for"}}]}}"#
    );
    let about = "int32 cells; boxes that are not aligned to tiles, tile extents that do not divide the domain";
    let mut world = World::with_array(name, about, &schema)?;
    world.commit_and_expect(Some("an empty array"))?;
    let values = ints(4, (0..14 * 21).map(|i| i * 3 - 400));
    world.write_box("/", &[("-3", "10"), ("5", "25")], vec![("v", values)], Order::Row)?;
    world.commit(Some("a box"))?;
    world.expect(&[&[("-5", "14"), ("0", "29")], &[("2", "3"), ("7", "8")], &[("-5", "-5"), ("0", "29")]])?;
    let values = ints(4, (0..3 * 30).map(|i| i64::from(noise(i) as i32)));
    world.write_box("/", &[("12", "14"), ("0", "29")], vec![("v", values)], Order::Col)?;
    world.commit_and_expect(Some("the last rows, from a column-major buffer"))?;
    Ok(world.finish())
}

fn three_dimensions() -> Result<Case> {
    let schema = r#"{"tile_order":"row","cell_order":"col","dims":[
        {"name":"t","dtype":"datetime64[D]","domain":["20454","20460"],"tile":"3"},
        {"name":"z","dtype":"uint8","domain":["250","255"],"tile":"4"},
        {"name":"c","dtype":"int16","domain":["-2","2"],"tile":null}],
        "attrs":[{"name":"v","dtype":"uint8","filters":"lz4"}]}"#;
    let mut world = World::with_array("dense_3d", "three dimensions of three types, one of them untiled", schema)?;
    let values = ints(1, (0..6 * 5 * 5).map(|i| i64::from(noise(i) as u8 & 7)));
    world.write_box("/", &[("20454", "20459"), ("251", "255"), ("-2", "2")], vec![("v", values)], Order::Row)?;
    world.commit(None)?;
    world.expect(&[
        &[("20454", "20460"), ("250", "255"), ("-2", "2")],
        &[("20456", "20457"), ("253", "254"), ("0", "1")],
    ])?;
    Ok(world.finish())
}

fn overlap() -> Result<Case> {
    let schema = r#"{"dims":[{"name":"y","dtype":"uint16","domain":["0","9"],"tile":"5"},
        {"name":"x","dtype":"uint16","domain":["0","9"],"tile":"5"}],
        "attrs":[{"name":"a","dtype":"int16","fill":"-7"},{"name":"b","dtype":"float64","nullable":true},
        {"name":"c","dtype":"string","fill":"empty"}]}"#;
    let mut world =
        World::with_array("dense_overlap", "overlapping fragments; the newer one has some attributes only", schema)?;
    let whole = [("0", "9"), ("0", "9")];
    let c = (0..100).map(|i| Some(format!("cell {i}").into_bytes())).collect();
    let b = with_nulls(doubles((0..100).map(|i| f64::from(i) / 4.0)), |i| i % 9 == 4);
    world.write_box("/", &whole, vec![("a", ints(2, 0..100)), ("b", b), ("c", c)], Order::Row)?;
    world.commit_and_expect(None)?;
    let b = with_nulls(doubles((0..20).map(|i| f64::from(-i))), |i| i == 3);
    world.write_box("/", &[("3", "6"), ("4", "8")], vec![("b", b)], Order::Col)?;
    world.commit_and_expect(Some("only b"))?;
    let a = ints(2, (0..4).map(|i| 1000 + i));
    world.write_box("/", &[("6", "7"), ("8", "9")], vec![("a", a.clone())], Order::Row)?;
    world.write_box("/", &[("7", "8"), ("8", "9")], vec![("a", a)], Order::Row)?;
    world.commit_and_expect(Some("two overlapping fragments of one commit: the later one wins"))?;
    Ok(world.finish())
}

fn cells_and_tombstones() -> Result<Case> {
    let schema = r#"{"dims":[{"name":"y","dtype":"int8","domain":["-4","5"],"tile":"4"},
        {"name":"x","dtype":"int8","domain":["0","7"],"tile":"3"}],
        "attrs":[{"name":"a","dtype":"int32","fill":"9"},{"name":"s","dtype":"string","nullable":true}]}"#;
    let about = "a dense array with single cells and deletions, a newer box over both";
    let mut world = World::with_array("dense_cells", about, schema)?;
    let s = (0..80).map(|i| (i % 5 > 0).then(|| vec![b'a' + i % 26; usize::from(i % 4)])).collect();
    world.write_box("/", &[("-4", "5"), ("0", "7")], vec![("a", ints(4, 100..180)), ("s", s)], Order::Row)?;
    world.commit(None)?;
    let at = |y: i64, x: i64| vec![signed(y), signed(x)];
    let s = texts(Datatype::String, &["new", "null", ""])?;
    world.write_cells("/", &[at(5, 7), at(-4, 0), at(0, 3)], vec![("a", ints(4, [1, 2, 3])), ("s", s)])?;
    world.commit_and_expect(Some("cells"))?;
    world.delete("/", &[at(0, 3), at(1, 1), at(5, 0)])?;
    world.write_cells("/", &[at(1, 1), at(2, 2)], vec![("a", ints(4, [4, 5]))])?;
    world.commit_and_expect(Some("deletions, then cells of one attribute, in one commit"))?;
    world.write_box("/", &[("0", "2"), ("1", "3")], vec![("a", ints(4, -9..0))], Order::Row)?;
    world.write_cells("/", &[at(2, 3)], vec![("a", ints(4, [77]))])?;
    world.commit_and_expect(Some("a box over them"))?;
    Ok(world.finish())
}

fn raw_pages() -> Result<Case> {
    let schema = r#"{"dims":[{"name":"i","dtype":"uint32","domain":["0","39999"],"tile":"20000"}],
        "attrs":[{"name":"raw","dtype":"int32","filters":"none"},{"name":"bits","dtype":"uint8","nullable":true,"filters":"for"}]}"#;
    let about = "raw pages over 64 KiB, with a CRC32C per 4 KiB; tiles of two blocks; two stripes; a data file";
    let mut world = World::with_array("dense_raw_pages", about, schema)?;
    world.set_budget(1);
    world.inline = false;
    let raw = ints(4, (0..25_000).map(|i| i64::from(noise(i) as u32)));
    let bits = with_nulls(ints(1, (0..25_000).map(|i| (noise(i) >> 40) as i64 & 3)), |i| i > 20_000 && i % 5 == 0);
    world.write_box("/", &[("500", "25499")], vec![("raw", raw), ("bits", bits)], Order::Row)?;
    world.commit(None)?;
    world.expect(&[&[("0", "39999")], &[("16880", "16890")], &[("19995", "20005")], &[("25495", "25505")]])?;
    Ok(world.finish())
}

fn edges() -> Result<Case> {
    let schema = r#"{"dims":[
        {"name":"i","dtype":"int64","domain":["-9223372036854775808","9223372036854775807"],"tile":"10"},
        {"name":"u","dtype":"uint64","domain":["0","18446744073709551615"],"tile":"3"}],
        "attrs":[{"name":"v","dtype":"int64"}]}"#;
    let mut world =
        World::with_array("dense_edges", "boxes at both ends of the whole int64 and uint64 ranges", schema)?;
    let low = [("-9223372036854775808", "-9223372036854775798"), ("0", "3")];
    let high = [("9223372036854775800", "9223372036854775807"), ("18446744073709551610", "18446744073709551615")];
    world.write_box("/", &low, vec![("v", ints(8, 0..44))], Order::Row)?;
    world.write_box("/", &high, vec![("v", ints(8, (0..48).map(|i| i64::MIN + i)))], Order::Row)?;
    world.commit(None)?;
    let beyond = [("9223372036854775797", "9223372036854775807"), ("18446744073709551606", "18446744073709551615")];
    world.expect(&[&low, &high, &beyond])?;
    Ok(world.finish())
}
