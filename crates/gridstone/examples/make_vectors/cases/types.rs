//! Every datatype, nulls, special values, and every filter.

use super::super::case::Case;
use super::super::value::Cell;
use super::super::world::World;
use super::{doubles, ints, noise, singles, texts, with_nulls};
use gridstone::base::Result;
use gridstone::schema::{Datatype, Order};

pub(super) fn cases() -> Result<Vec<Case>> {
    Ok(vec![integers()?, floats()?, strings()?, filters()?, automatic()?])
}

/// A dense array of one dimension `i` from 0 to `last`; attributes as "name dtype nullable filters".
fn line(last: u64, tile: u64, attrs: &[(&str, &str, bool, &str)]) -> String {
    let attrs = attrs.iter().map(|(name, dtype, nullable, filters)| {
        format!(r#"{{"name":"{name}","dtype":"{dtype}","nullable":{nullable},"filters":"{filters}"}}"#)
    });
    format!(
        r#"{{"dims":[{{"name":"i","dtype":"int64","domain":["0","{last}"],"tile":"{tile}"}}],"attrs":[{}]}}"#,
        attrs.collect::<Vec<_>>().join(",")
    )
}

fn integers() -> Result<Case> {
    let names = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"];
    let mut attrs: Vec<(String, &str, bool)> = names.iter().map(|n| (format!("a_{n}"), *n, false)).collect();
    attrs.extend(names.iter().map(|n| (format!("n_{n}"), *n, true)));
    attrs.extend(
        [
            ("bool", false),
            ("bool", true),
            ("datetime64[ms]", true),
            ("timedelta64[D]", false),
            ("datetime64[as]", false),
        ]
        .iter()
        .enumerate()
        .map(|(i, (n, nullable))| (format!("t{i}"), *n, *nullable)),
    );
    let listed: Vec<(&str, &str, bool, &str)> = attrs.iter().map(|(a, d, n)| (a.as_str(), *d, *n, "auto")).collect();
    let about = "bool, all integer types and times, nullable and not: least and greatest values, NaT, nulls, fill";
    let mut world = World::with_array("integers", about, &line(19, 8, &listed))?;
    let mut values = Vec::new();
    for (name, dtype, nullable) in &attrs {
        let cells = integer_cells(Datatype::parse(dtype)?);
        values.push((name.as_str(), if *nullable { with_nulls(cells, |i| i % 4 == 1) } else { cells }));
    }
    world.write_box("/", &[("1", "17")], values, Order::Row)?;
    world.commit_and_expect(None)?;
    Ok(world.finish())
}

fn integer_cells(datatype: Datatype) -> Vec<Cell> {
    if datatype == Datatype::Bool {
        return ints(1, (0..17).map(|i| i64::from(i % 3 == 0)));
    }
    let width = datatype.width().unwrap_or(8);
    let sign = 1i64 << (8 * width - 1);
    let edges = [0, -1, sign, sign.wrapping_sub(1), 1];
    ints(width, (0..17).map(|i| if i < 5 { edges[i as usize] } else { noise(i) as i64 }))
}

fn floats() -> Result<Case> {
    let attrs = [
        ("raw", "float64", false, "none"),
        ("for", "float64", true, "for"),
        ("pco", "float64", false, "pco:8"),
        ("single", "float32", false, "pco:1"),
        ("auto", "float32", true, "auto"),
    ];
    let about = "NaN with payloads, infinities, -0.0, subnormals: the bits come back; statistics leave NaN out";
    let mut world = World::with_array("float_special", about, &line(29, 10, &attrs))?;
    let bits = [
        0x7ff8_0000_0000_0000,
        0xfff8_dead_beef_0001,
        0x7ff0_0000_0000_0001,
        0x7ff0_0000_0000_0000,
        0xfff0_0000_0000_0000,
        0x8000_0000_0000_0000,
        0,
        1,
        0x8000_0000_0000_0001,
        0x7fef_ffff_ffff_ffff,
        0x3ff0_0000_0000_0000,
    ];
    let short = [
        0x7fc0_0000,
        0xffc1_2345,
        0x7f80_0001,
        0x7f80_0000,
        0xff80_0000,
        0x8000_0000,
        0,
        1,
        0x8000_0001,
        0x7f7f_ffff,
        0x3f80_0000,
    ];
    let wide = || doubles((0..27).map(|i| f64::from_bits(bits[i % 11])));
    let narrow = || singles((0..27).map(|i| f32::from_bits(short[i % 11])));
    let values = vec![
        ("raw", wide()),
        ("for", with_nulls(wide(), |i| i % 5 == 0 || i > 17)),
        ("pco", wide()),
        ("single", narrow()),
        ("auto", with_nulls(narrow(), |i| i % 2 == 0)),
    ];
    world.write_box("/", &[("0", "26")], values, Order::Row)?;
    world.commit_and_expect(None)?;
    Ok(world.finish())
}

fn strings() -> Result<Case> {
    let attrs = [
        ("s", "string", false, "auto"),
        ("sn", "string", true, "zstd:1"),
        ("b", "bytes", false, "none"),
        ("bn", "bytes", true, "lz4"),
    ];
    let mut schema = line(49, 20, &attrs);
    schema = schema.replacen(r#""nullable":false"#, r#""nullable":false,"fill":"häfen""#, 1);
    let about = "strings and bytes, empty, null, non-ASCII and longer than the 64 bytes that statistics keep";
    let mut world = World::with_array("strings", about, &schema)?;
    let long = "ä".repeat(40);
    let words = ["", "Rotterdam", "null", "Göteborg", "東京", long.as_str(), "\u{0}\u{1F6A2}", "a"];
    let pick = |n: usize| (0..45).map(move |i| words[(i * n + 3) % 8]);
    let bytes = |i: u64| {
        Some(
            (0..noise(i) % 90)
                .map(|j| if i.is_multiple_of(9) { 0xff } else { noise(j ^ i) as u8 })
                .collect::<Vec<u8>>(),
        )
    };
    let never_null: Vec<&str> = pick(3).map(|w| if w == "null" { "nil" } else { w }).collect();
    let values = vec![
        ("s", texts(Datatype::String, &never_null)?),
        ("sn", texts(Datatype::String, &pick(5).collect::<Vec<_>>())?),
        ("b", (0..45).map(bytes).collect()),
        ("bn", with_nulls((100..145).map(bytes).collect(), |i| !(8..30).contains(&i))),
    ];
    world.write_box("/", &[("3", "47")], values, Order::Row)?;
    world.commit_and_expect(None)?;
    Ok(world.finish())
}

fn filters() -> Result<Case> {
    let attrs = [
        ("none", "int16", false, "none"),
        ("delta", "int16", false, "delta"),
        ("for1", "uint8", false, "for"),
        ("for2", "int16", false, "for"),
        ("for4", "uint32", false, "for"),
        ("for8", "int64", false, "for"),
        ("delta_for", "uint64", false, "delta,for"),
        ("shuffle", "float32", false, "shuffle"),
        ("bitshuffle", "int32", false, "bitshuffle"),
        ("lz4", "int32", false, "lz4"),
        ("zstd", "int32", false, "zstd:19"),
        ("gzip", "int32", false, "gzip:9"),
        ("pco_i16", "int16", false, "pco:4"),
        ("pco_u32", "uint32", false, "pco:0"),
        ("pco_i64", "int64", false, "pco:12"),
        ("pco_f32", "float32", false, "pco:4"),
        ("pco_f64", "float64", false, "pco:8"),
        ("delta_pco", "int64", true, "delta,pco:4"),
        ("shuffle_zstd", "float64", false, "shuffle,zstd:1"),
        ("delta_shuffle_zstd", "int64", false, "delta,shuffle,zstd:1"),
        ("bitshuffle_lz4", "uint16", false, "bitshuffle,lz4"),
        ("for_gzip", "int32", true, "for,gzip:6"),
        ("three", "int32", false, "delta,for,zstd:3"),
        ("twice", "int32", false, "delta,delta,bitshuffle,zstd:1"),
        ("text_zstd", "string", true, "zstd:3"),
        ("text_for", "bytes", false, "for"),
        ("text_shuffle", "string", false, "shuffle,lz4"),
        ("bool_bitshuffle", "bool", false, "bitshuffle,zstd:1"),
        ("rle", "int16", false, "rle"),
        ("bool_rle", "bool", true, "rle"),
        ("dict_f64", "float64", false, "dict"),
        ("delta_rle_zstd", "int64", false, "delta,rle,zstd:1"),
        ("text_dict", "string", false, "dict,lz4"),
    ];
    let about = "every filter, and pipelines of several, over 2,500 cells in tiles of 2,300 and 200";
    let mut world = World::with_array("filters", about, &line(2499, 2300, &attrs))?;
    let values = attrs.iter().zip(0u64..).map(|((name, dtype, nullable, _), seed)| {
        let cells = Datatype::parse(dtype).map(|d| filter_cells(d, seed));
        cells.map(|c| (*name, if *nullable { with_nulls(c, |i| noise(i as u64).is_multiple_of(11)) } else { c }))
    });
    let values = values.collect::<Result<Vec<_>>>()?;
    world.write_box("/", &[("0", "2499")], values, Order::Row)?;
    world.commit(None)?;
    world.expect(&[&[("0", "2499")], &[("2290", "2309")]])?;
    Ok(world.finish())
}

fn filter_cells(datatype: Datatype, seed: u64) -> Vec<Cell> {
    let n = 0..2500u64;
    let wave = |i: u64| (i / 3 * 5 + noise(i ^ seed) % 40) as i64 - 900;
    match datatype {
        Datatype::Bool => ints(1, n.map(|i| i64::from(noise(i / 30).is_multiple_of(2)))),
        Datatype::Float32 => singles(n.map(|i| wave(i) as f32 * 0.25)),
        Datatype::Float64 => doubles(n.map(|i| wave(i) as f64 / 100.0)),
        Datatype::String | Datatype::Bytes => n.map(|i| Some(format!("{}", wave(i) / 50).into_bytes())).collect(),
        fixed => ints(fixed.width().unwrap_or(8), n.map(wave)),
    }
}

fn automatic() -> Result<Case> {
    let attrs = [("v", "int64", false, "auto"), ("f", "float64", false, "auto"), ("c", "uint8", true, "auto")];
    let about = "filters chosen per tile: noise, steps and constants lie in different tiles of one attribute";
    let mut world = World::with_array("filters_auto", about, &line(2999, 1000, &attrs))?;
    let by_tile = |i: u64| match i / 1000 {
        0 => noise(i) as i64,
        1 => 1_000_000 + i as i64 * 17 + (noise(i) % 5) as i64,
        _ => 42,
    };
    let values = vec![
        ("v", ints(8, (0..3000).map(by_tile))),
        ("f", doubles((0..3000).map(|i| by_tile(i) as f64 / 100.0))),
        ("c", with_nulls(ints(1, (0..3000).map(by_tile)), |i| (1500..2500).contains(&i))),
    ];
    world.write_box("/", &[("0", "2999")], values, Order::Row)?;
    world.commit_and_expect(None)?;
    Ok(world.finish())
}
