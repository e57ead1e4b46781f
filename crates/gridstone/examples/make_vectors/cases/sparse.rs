//! Sparse arrays: overlaps, duplicates, deletions, several tiles and blocks, domains at the edges.

use super::super::case::Case;
use super::super::world::World;
use super::{doubles, ints, noise, signed, singles, with_nulls};
use gridstone::base::Result;
use gridstone::fragment::FragmentKind;
use gridstone::schema::{Evolution, Order, key};

pub(super) fn cases() -> Result<Vec<Case>> {
    Ok(vec![tiny()?, overlap()?, duplicates()?, blocks()?, edges()?, hilbert()?, grown()?, by_value()?])
}

/// The one that the pages of the format take apart byte by byte.
fn tiny() -> Result<Case> {
    let schema = r#"{"sparse":true,"coord_filters":"none","dims":[{"name":"i","dtype":"int8","domain":["-9","9"],"tile":"5"}],
        "attrs":[{"name":"s","dtype":"string","nullable":true,"filters":"none"}]}"#;
    let mut world = World::with_array("tiny_sparse", "three cells, taken apart in docs/format/fragment.md", schema)?;
    let cells = vec![Some(b"north".to_vec()), None, Some(b"up".to_vec())];
    world.write_cells("/", &[vec![signed(4)], vec![signed(-9)], vec![signed(-5)]], vec![("s", cells)])?;
    world.commit_and_expect(None)?;
    Ok(world.finish())
}

fn overlap() -> Result<Case> {
    let schema = r#"{"sparse":true,"capacity":8,"tile_order":"row","cell_order":"col","dims":[
        {"name":"id","dtype":"int64","domain":["-100","100"],"tile":"20"},
        {"name":"t","dtype":"datetime64[s]","domain":["1767225600","1767226599"],"tile":"100"}],
        "attrs":[{"name":"v","dtype":"int32"},{"name":"name","dtype":"string"}]}"#;
    let about = "three fragments at overlapping places, the newest wins; then deletions";
    let mut world = World::with_array("sparse_overlap", about, schema)?;
    for version in 0..3i64 {
        let cells = 25 + 5 * version;
        let place = |i: i64| {
            let seed = noise(i as u64 / 2 * 3 + (i as u64 % 2) * (version as u64 + 11));
            vec![signed((seed % 201) as i64 - 100), signed(1_767_225_600 + (seed >> 20) as i64 % 1000)]
        };
        let mut places: Vec<Vec<u64>> = (0..cells).map(place).collect();
        places.sort_by_key(|p| noise(p[0] ^ p[1]));
        places.dedup();
        let names = (0..places.len()).map(|i| Some(format!("v{version}#{i}").into_bytes())).collect();
        let values = ints(4, (0..places.len() as i64).map(|i| version * 1000 + i));
        world.write_cells("/", &places, vec![("v", values), ("name", names)])?;
        if version == 2 {
            world.delete("/", &places[3..9])?;
        }
        world.commit_and_expect(None)?;
    }
    let place = |i: u64| {
        vec![
            signed((noise(i / 2 * 3) % 201) as i64 - 100),
            signed(1_767_225_600 + (noise(i / 2 * 3) >> 20) as i64 % 1000),
        ]
    };
    world.delete("/", &(0..20).step_by(4).map(place).collect::<Vec<_>>())?;
    world.commit(Some("deletions, some of them of nothing"))?;
    world
        .expect(&[&[("-100", "100"), ("1767225600", "1767226599")], &[("-20", "60"), ("1767225700", "1767226150")]])?;
    Ok(world.finish())
}

fn duplicates() -> Result<Case> {
    let schema = r#"{"sparse":true,"duplicates":true,"capacity":6,"tile_order":"col","cell_order":"row",
        "coord_filters":"shuffle,zstd:1","dims":[
        {"name":"x","dtype":"float64","domain":["-1.5","2.25"],"tile":"0.7"},
        {"name":"y","dtype":"float32","domain":["0.0","100.0"],"tile":null}],
        "attrs":[{"name":"n","dtype":"int16"}]}"#;
    let about = "float dimensions, several cells at one place, deletions of all that is older; -0.0 is stored as 0.0";
    let mut world = World::with_array("sparse_duplicates", about, schema)?;
    let at = |x: f64, y: f32| vec![key::from_float(x), key::from_float(f64::from(y))];
    let places = [
        at(-1.5, 0.0),
        at(-0.0, 0.1),
        at(0.0, 0.1),
        at(2.25, 100.0),
        at(0.0, 0.1),
        at(-0.1, 33.3),
        at(-0.8, 7.5),
        at(5e-324, 0.1),
    ];
    world.write_cells("/", &places, vec![("n", ints(2, 0..8))])?;
    world.commit_and_expect(None)?;
    world.write_cells("/", &[at(0.0, 0.1), at(1.0 / 3.0, 1.0), at(-1.5, 0.0)], vec![("n", ints(2, 10..13))])?;
    world.delete("/", &[at(-1.5, 0.0), at(1.0, 1.0)])?;
    world.write_cells("/", &[at(-1.5, 0.0)], vec![("n", ints(2, [20]))])?;
    world.commit_and_expect(Some("cells, deletions, cells"))?;
    world.delete("/", &[at(0.0, 0.1)])?;
    world.commit(Some("all three cells of a place"))?;
    world.expect(&[&[("-1.5", "2.25"), ("0.0", "100.0")], &[("-0.8", "0.0"), ("0.0", "33.3")]])?;
    Ok(world.finish())
}

fn blocks() -> Result<Case> {
    let schema = r#"{"sparse":true,"capacity":2100,"dims":[
        {"name":"x","dtype":"uint32","domain":["0","999999"],"tile":"250000"},
        {"name":"y","dtype":"int16","domain":["-300","300"],"tile":"50"}],
        "attrs":[{"name":"f","dtype":"float32","filters":"pco:4"},{"name":"s","dtype":"string","nullable":true,"filters":"zstd:3"}]}"#;
    let about = "4,500 cells in three data tiles of up to three blocks; a later fragment over a part of them";
    let mut world = World::with_array("sparse_blocks", about, schema)?;
    let place = |i: u64| vec![i * 222 + noise(i) % 200, signed((noise(i) >> 32) as i64 % 601 - 300)];
    let write = |world: &mut World, from: u64, to: u64, step: usize| {
        let rows: Vec<u64> = (from..to).step_by(step).collect();
        let f = singles(rows.iter().map(|i| (noise(*i) % 1000) as f32 / 8.0 + step as f32));
        let s = rows.iter().map(|i| Some(format!("ship {}", noise(*i) % 40).into_bytes())).collect();
        let places: Vec<Vec<u64>> = rows.iter().map(|i| place(*i)).collect();
        world.write_cells("/", &places, vec![("f", f), ("s", with_nulls(s, |i| i % 7 == 0))])
    };
    write(&mut world, 0, 4500, 1)?;
    world.commit_and_expect(None)?;
    write(&mut world, 1000, 1600, 3)?;
    world.commit(None)?;
    world.expect(&[&[("0", "999999"), ("-300", "300")], &[("240000", "260000"), ("-100", "-20")]])?;
    Ok(world.finish())
}

fn edges() -> Result<Case> {
    let schema = r#"{"sparse":true,"capacity":4,"tile_order":"col","cell_order":"col","dims":[
        {"name":"i","dtype":"int64","domain":["-9223372036854775808","9223372036854775807"],"tile":"7"},
        {"name":"u","dtype":"uint64","domain":["0","18446744073709551615"],"tile":"18446744073709551615"},
        {"name":"d","dtype":"float64","domain":["-1e300","1e300"],"tile":"1.0"}],
        "attrs":[{"name":"v","dtype":"float64"}]}"#;
    let about =
        "coordinates at the ends of int64, uint64 and float64 ranges; keys of more than 128 bits; clamped float tiles";
    let mut world = World::with_array("sparse_edges", about, schema)?;
    let (mut places, mut values) = (Vec::new(), Vec::new());
    for i in [i64::MIN, i64::MIN + 6, i64::MIN + 7, -1, 0, i64::MAX - 1, i64::MAX] {
        for u in [0, 1, u64::MAX - 1, u64::MAX] {
            for d in [-1e300, 0.5, 1e300] {
                places.push(vec![signed(i), u, key::from_float(d)]);
                values.push(values.len() as f64);
            }
        }
    }
    places.sort_by_key(|p| noise(p[0] ^ p[1].rotate_left(9) ^ p[2].rotate_left(23)));
    world.write_cells("/", &places, vec![("v", doubles(values))])?;
    world.commit(None)?;
    let all = ("-9223372036854775808", "9223372036854775807");
    world.expect(&[
        &[all, ("0", "18446744073709551615"), ("-1e300", "1e300")],
        &[("-1", "9223372036854775806"), ("1", "18446744073709551614"), ("0.5", "1e300")],
    ])?;
    Ok(world.finish())
}

fn hilbert() -> Result<Case> {
    let schema = r#"{"sparse":true,"capacity":9,"tile_order":"col","cell_order":"hilbert","dims":[
        {"name":"x","dtype":"int16","domain":["-50","149"],"tile":"50"},
        {"name":"y","dtype":"uint8","domain":["3","99"]},
        {"name":"z","dtype":"float32","domain":["-2.0","2.0"],"tile":"1.5"}],
        "attrs":[{"name":"v","dtype":"int32"}]}"#;
    let about = "cells along a Hilbert curve in each space tile; keys of more than 64 bits; an overwrite and deletions";
    let mut world = World::with_array("sparse_hilbert", about, schema)?;
    let place = |i: u64| {
        let z = f64::from((noise(i) >> 40) as i32 % 17 - 8) / 4.0;
        vec![signed(noise(i) as i64 % 100 + 49), 3 + (noise(i) >> 20) % 97, key::from_float(z)]
    };
    let mut write = |rows: std::ops::Range<u64>, base: i64| {
        let places: Vec<Vec<u64>> = rows.clone().map(place).collect();
        world.write_cells("/", &places, vec![("v", ints(4, rows.map(|i| base + i as i64)))])?;
        world.commit_and_expect(None)
    };
    write(0..40, 0)?;
    write(30..45, 1_000)?;
    world.delete("/", &(5..20).step_by(3).map(place).collect::<Vec<_>>())?;
    world.commit(None)?;
    world
        .expect(&[&[("-50", "149"), ("3", "99"), ("-2.0", "2.0")], &[("-10", "60"), ("20", "80"), ("-1.0", "0.5")]])?;
    Ok(world.finish())
}

fn grown() -> Result<Case> {
    let about = "domains that grew at both ends, not by whole tiles: a first tile that the type cuts, and cells along a Hilbert \
                 curve inside of its frame, outside and with the same place";
    let mut world = World::new("grown", about)?.folding(4);
    world.create_array(
        "/field",
        r#"{"dims":[{"name":"x","dtype":"uint8","domain":["5","19"],"tile":"7"},
        {"name":"y","dtype":"int8","domain":["0","3"],"tile":"2"}],"attrs":[{"name":"v","dtype":"int16","fill":"-1"}]}"#,
    )?;
    world.create_array(
        "/curve",
        r#"{"sparse":true,"capacity":7,"cell_order":"hilbert","dims":[
        {"name":"x","dtype":"int16","domain":["0","9"]},
        {"name":"y","dtype":"int32","domain":["-4","5"],"tile":"5"},
        {"name":"z","dtype":"float64","domain":["0.0","4.0"],"tile":"2.5"}],"attrs":[{"name":"v","dtype":"int32"}]}"#,
    )?;
    let text = |name: &str| name.to_owned();
    let grow = |name: &str, lo: &str, hi: &str| (text(name), text(lo), text(hi));
    let place = |i: u64, far: i64| {
        let at = |shift: u32, lo: i64, hi: i64| lo + ((noise(i) >> shift) % (hi - lo + 1) as u64) as i64;
        let z = (at(20, 0, 8) + if far > 0 { at(30, -6, 10) } else { 0 }) as f64 / 2.0;
        vec![
            signed(at(0, -far, 9 + far)),
            signed(at(10, -4 - far, 5 + far)),
            key::from_float(if far > 0 { z } else { z.min(4.0) }),
        ]
    };
    world.write_box("/field", &[("6", "13"), ("0", "2")], vec![("v", ints(2, 0..24))], Order::Row)?;
    let write = |world: &mut World, rows: std::ops::Range<u64>, far: i64, base: i64| {
        let mut places: Vec<Vec<u64>> = rows.map(|i| place(i, far)).collect();
        places.sort();
        places.dedup();
        let values = ints(4, (0..places.len() as i64).map(|i| base + i));
        world.write_cells("/curve", &places, vec![("v", values)])
    };
    write(&mut world, 0..20, 0, 0)?;
    world.commit_and_expect(None)?;
    world.alter(
        "/field",
        &Evolution { domains: vec![grow("x", "0", "255"), grow("y", "-1", "3")], ..Evolution::default() },
    )?;
    let domains = vec![grow("x", "-40", "60"), grow("y", "-44", "46"), grow("z", "-3.0", "9.0")];
    world.alter("/curve", &Evolution { domains, ..Evolution::default() })?;
    world.commit_and_expect(Some("grown"))?;
    world.write_box("/field", &[("0", "7"), ("-1", "1")], vec![("v", ints(2, 100..124))], Order::Row)?;
    world.write_box("/field", &[("250", "255"), ("3", "3")], vec![("v", ints(2, 200..206))], Order::Row)?;
    write(&mut world, 10..60, 30, 100)?;
    world.commit_and_expect(None)?;
    world.delete("/curve", &(5..50).step_by(9).map(|i| place(i, 30)).collect::<Vec<_>>())?;
    world.commit_and_expect(None)?;
    world.write_box("/field", &[("1", "2"), ("2", "3")], vec![("v", ints(2, 300..304))], Order::Row)?;
    world.commit_and_expect(Some("after a root of all before"))?;
    world.merge("/curve", FragmentKind::Sparse)?;
    world.commit_and_expect(Some("merged"))?;
    Ok(world.finish())
}

/// The path of an array, and the coordinates of its cell of this number, so far out.
type PlacesOf<'a> = (&'a str, &'a dyn Fn(u64, f64) -> Vec<u64>);

fn by_value() -> Result<Case> {
    let about = "arrays with the frame that a new curve gets: floats by value, whole numbers stretched, cells that share a place; \
                 overwritten, deleted, merged, and beyond the frame once the domains grew";
    let mut world = World::new("curve_by_value", about)?.folding(3);
    let dims = |dims: &str, more: &str| {
        format!(
            r#"{{"sparse":true,"capacity":8,"cell_order":"hilbert"{more},"dims":[{dims}],"attrs":[{{"name":"v","dtype":"int32"}}]}}"#
        )
    };
    let floats = r#"{"name":"x","dtype":"float64","domain":["-180.0","180.0"]},{"name":"y","dtype":"float32","domain":["-90.0","90.0"]}"#;
    let whole = r#"{"name":"x","dtype":"int64","domain":["-9223372036854775808","9223372036854775807"]},
        {"name":"y","dtype":"uint8","domain":["3","99"]}"#;
    let tiled = r#"{"name":"x","dtype":"int16","domain":["-50","149"],"tile":"50"},{"name":"y","dtype":"uint16","domain":["7","106"]},
        {"name":"z","dtype":"float64","domain":["-2.0","2.0"],"tile":"1.5"}"#;
    world.create_framed("/float", &dims(floats, r#","duplicates":true"#))?;
    world.create_framed("/whole", &dims(whole, ""))?;
    world.create_framed("/tiled", &dims(tiled, r#","tile_order":"col""#))?;
    // Some of the floats and of the large numbers are too near to each other for places of their own.
    let pick = |i: u64, shift: u32, count: u64| (noise(i) >> shift) % count;
    let float = |i: u64, far: f64| {
        let x = (pick(i, 0, 9) as f64 - 4.0) * far + pick(i, 8, 3) as f64 * 1e-9;
        vec![key::from_float(x), key::from_float((pick(i, 16, 7) as f64 - 3.0) * far / 2.0)]
    };
    let whole = |i: u64, _: f64| vec![signed(pick(i, 0, 5) as i64 * 2_000_000_000 - 4_000_000_000), 3 + pick(i, 20, 4)];
    let tiled = |i: u64, far: f64| {
        let z = (pick(i, 40, 17) as f64 - 8.0) / 160.0 * far;
        vec![signed(pick(i, 0, 100) as i64), 7 + pick(i, 20, 100), key::from_float(z)]
    };
    let write = |world: &mut World, rows: std::ops::Range<u64>, far: f64, base: i64| -> Result<()> {
        let place: [PlacesOf<'_>; 3] = [("/float", &float), ("/whole", &whole), ("/tiled", &tiled)];
        for (path, place) in place {
            let mut places: Vec<Vec<u64>> = rows.clone().map(|i| place(i, far)).collect();
            places.sort_by_key(|place| noise(place[0] ^ place[1].rotate_left(9)));
            places.dedup();
            let values = ints(4, (0..places.len() as i64).map(|i| base + i));
            world.write_cells(path, &places, vec![("v", values)])?;
        }
        Ok(())
    };
    write(&mut world, 0..30, 40.0, 0)?;
    world.commit_and_expect(None)?;
    write(&mut world, 20..45, 40.0, 1_000)?;
    world.commit_and_expect(None)?;
    let text = |name: &str| name.to_owned();
    let grow = |name: &str, lo: &str, hi: &str| (text(name), text(lo), text(hi));
    let domains = vec![grow("x", "-400.0", "1e300"), grow("y", "-300.0", "300.0")];
    world.alter("/float", &Evolution { domains, ..Evolution::default() })?;
    let domains = vec![grow("x", "-120", "200"), grow("y", "0", "500"), grow("z", "-9.0", "9.0")];
    world.alter("/tiled", &Evolution { domains, ..Evolution::default() })?;
    world.commit_and_expect(Some("grown"))?;
    write(&mut world, 40..70, 90.0, 2_000)?;
    world.commit_and_expect(None)?;
    for (path, place) in [("/float", float(3, 40.0)), ("/whole", whole(3, 0.0)), ("/tiled", tiled(3, 40.0))] {
        world.delete(path, &[place])?;
    }
    world.commit_and_expect(None)?;
    for path in ["/float", "/whole", "/tiled"] {
        world.merge(path, FragmentKind::Sparse)?;
    }
    world.commit_and_expect(Some("merged"))?;
    Ok(world.finish())
}
