//! Promise: dense fragments that were written over and beside each other read like one after a merge, which changes nothing
//! that anybody reads; tiles that nothing lies over are copied without being decoded, and damage is not copied with them.

use crate::support::dense::{
    BOTH, consolidate, created, created_uncached, delete, noise, read, schema, write_box, write_cells,
};
use gridstone::base::ErrorKind;
use gridstone::engine::{Array, At, Call, MergeChoice, Strategy};

#[test]
fn a_thousand_overwrites_and_updates_read_like_one() {
    let (array, _) = created(schema(100, 10, false), 1 << 30);
    write_box(&array, ((0, 99), (0, 99)), &BOTH, 0);
    let mut seen = vec![(array.version(), read(&array))];
    for n in 1..1_001i64 {
        let (i, j) = (n * 37 % 95, n * 59 % 95);
        match n % 3 {
            0 => write_cells(&array, &[(i, j), (i + 1, j), (99 - i, 99)], n),
            _ => write_box(&array, ((i, i + n % 5), (j, j + n % 4)), &BOTH, n),
        }
        if n % 250 == 0 {
            seen.push((array.version(), read(&array)));
        }
    }
    let planned = array.consolidate(&Strategy::Tiered, 1 << 30, true, &Call::default()).unwrap();
    let done = consolidate(&array, &Strategy::Tiered);
    assert_eq!((planned.before, planned.after, done.after), (1_001, 1, 1), "more than a tenth is written twice");
    // What later ones hide wholly goes first, unread.
    assert_eq!((done.merges.len(), done.merges[0].kind, done.merges[1].kind), (2, "hidden", "dense"));
    assert_eq!(done.merges[1].written.unwrap().0, 1);
    let (estimate, written) = (planned.merges[1].estimate.1, done.merges[1].written.unwrap().1);
    assert!(written / 8 < estimate && estimate < written * 8, "{estimate} bytes were foreseen, {written} written");
    for (version, expected) in &seen {
        assert_eq!(&read(&array.at(At::Version(*version)).unwrap()), expected);
    }
    assert_eq!(read(&array), seen.last().unwrap().1);
    assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
    assert!(consolidate(&array, &Strategy::All).merges.is_empty());
}

#[test]
fn slabs_become_one_box_and_no_tile_is_decoded() {
    let (array, _) = created(schema(400, 50, false), 1 << 30);
    for n in 0..8 {
        write_box(&array, ((n * 50, n * 50 + 49), (0, 399)), &BOTH, n);
    }
    let before = read(&array);
    let done = consolidate(&array, &Strategy::Tiered);
    assert_eq!((done.after, done.counters.tiles_copied, done.counters.blocks_decoded), (1, 64, 0));
    assert_eq!(read(&array), before);
    assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
    // One tile is written over: the others are copied, cut into fragments at borders of tiles.
    write_box(&array, ((60, 70), (110, 120)), &BOTH, 99);
    let before = read(&array);
    let cut = array.consolidate(&Strategy::All, 200_000, false, &Call::default()).unwrap();
    assert_eq!(cut.counters.tiles_copied, 63);
    assert!(cut.after > 2 && cut.merges[0].written.unwrap().0 == cut.after, "{cut:?}");
    assert_eq!(read(&array), before);
    assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
}

#[test]
fn damage_is_not_copied_under_a_new_name() {
    let (array, storage) = created_uncached(schema(400, 50, false));
    for n in 0..2 {
        write_box(&array, ((n * 200, n * 200 + 199), (0, 399)), &BOTH, n);
    }
    let files = storage.list("_data").unwrap();
    assert_eq!(files.len(), 2, "they are too large for the log");
    let name = if files[0].contains('/') { files[0].clone() } else { format!("_data/{}", files[0]) };
    let whole = storage.read_all(&name).unwrap();
    let mut damaged = whole.to_vec();
    damaged[5_000] ^= 1;
    storage.put(&name, &damaged).unwrap();
    let error = array.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.message().contains("tile 0, attribute"), "{error}");
    assert_eq!(storage.list("_data").unwrap(), files, "what was written is gone");
    storage.put(&name, &whole).unwrap();
    assert_eq!(consolidate(&array, &Strategy::All).after, 1);
}

#[test]
fn deleted_cells_stay_deleted() {
    for nullable in [false, true] {
        let (array, _) = created(schema(40, 10, nullable), 1 << 30);
        write_box(&array, ((0, 39), (0, 39)), &BOTH, 1);
        write_box(&array, ((5, 20), (5, 20)), &BOTH, 2);
        delete(&array, &[(6, 6), (30, 30)]);
        for n in 3..12 {
            write_box(&array, ((n, n + 3), (2 * n, 2 * n + 2)), &BOTH, n);
        }
        delete(&array, &[(39, 39)]);
        let (before, version) = (read(&array), array.version());
        consolidate(&array, &Strategy::All);
        assert_eq!(read(&array), before);
        assert_eq!(read(&array.at(At::Version(version)).unwrap()), before);
        let kinds: Vec<&str> = array.fragments().unwrap().iter().map(|f| f.kind).collect();
        // Null says all that a tombstone says; cells without null need tombstones, which are left over the result.
        if nullable { assert_eq!(kinds, ["dense"]) } else { assert_eq!(kinds, ["dense", "tombstones"]) }
    }
}

#[test]
fn attributes_written_apart_are_merged_apart() {
    let (array, _) = created(schema(40, 10, false), 1 << 30);
    for n in 0..4 {
        write_box(&array, ((n * 10, n * 10 + 9), (0, 39)), &["v"], n);
        write_box(&array, ((n * 10, n * 10 + 9), (0, 39)), &["w"], n + 10);
    }
    let before = read(&array);
    let done = consolidate(&array, &Strategy::All);
    assert_eq!((done.merges.len(), done.after), (2, 2));
    assert_eq!(read(&array), before);
    write_box(&array, ((0, 39), (0, 39)), &BOTH, 50);
    write_box(&array, ((3, 3), (3, 30)), &["w"], 51);
    let before = read(&array);
    let done = consolidate(&array, &Strategy::All);
    assert_eq!((done.merges[0].kind, done.merges[0].fragments), ("hidden", 2), "what lies under both");
    assert_eq!((done.merges.len(), done.after), (2, 1), "what has one attribute goes into what has both");
    assert_eq!(read(&array), before);
}

#[test]
fn a_box_is_merged_and_nothing_else() {
    let (array, _) = created(schema(100, 10, false), 1 << 30);
    for n in 0..10 {
        write_box(&array, ((n * 10, n * 10 + 9), (0, 99)), &BOTH, n);
    }
    let before = read(&array);
    let sub = [("15".to_owned(), "34".to_owned()), ("0".to_owned(), "0".to_owned())];
    let strategy = array.strategy(&MergeChoice::Box(&sub)).unwrap();
    assert_eq!(consolidate(&array, &strategy).after, 8);
    assert_eq!(read(&array), before);
    let outside = [("15".to_owned(), "100".to_owned()), ("0".to_owned(), "0".to_owned())];
    assert_eq!(array.strategy(&MergeChoice::Box(&outside)).unwrap_err().kind(), ErrorKind::Bounds);
    let ids: Vec<_> = array.fragments().unwrap().iter().map(|f| f.id).collect();
    let refused = array.consolidate(&Strategy::Fragments(vec![ids[0], ids[7]]), 1, false, &Call::default());
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Input, "they lie apart");
}

#[test]
fn the_list_of_fragments_is_packed_on_request() {
    let (array, storage) = created(schema(40, 10, false), 1 << 30);
    for n in 0..20 {
        write_cells(&array, &[(n, n)], n);
    }
    let (before, version) = (read(&array), array.version());
    assert!(storage.list("_manifest").unwrap().is_empty());
    consolidate(&array, &Strategy::Manifest);
    assert_eq!((array.version(), array.fragments().unwrap().len()), (version + 1, 20));
    let pages = storage.list("_manifest").unwrap();
    assert_eq!(pages.len(), 2, "a page and a root");
    consolidate(&array, &Strategy::Manifest);
    assert_eq!((array.version(), storage.list("_manifest").unwrap()), (version + 1, pages));
    assert_eq!(read(&array), before);
}

/// Overwrites and updates of an array of 32 MiB, in budgets that hold some tiles, many, and everything.
#[test]
fn a_dense_merge_stays_within_its_memory() {
    for budget in [16u64 << 20, 64 << 20, 1 << 30] {
        let (array, _) = created(schema(1_448, 128, false), budget);
        write_box(&array, ((0, 1_447), (0, 1_447)), &BOTH, 1);
        for n in 2..30 {
            write_box(&array, ((n * 38, n * 38 + 300), (n * 31, n * 31 + 400)), &BOTH, n);
            write_cells(&array, &(0..500).map(|i| (n + i, i * 2)).collect::<Vec<_>>(), n);
        }
        let before = read(&array);
        let held = array.context().peak_bytes();
        let report = consolidate(&array, &Strategy::All);
        assert_eq!((report.after, read(&array) == before), (1, true));
        assert!(array.context().peak_bytes() <= budget, "{} bytes ({held} before)", array.context().peak_bytes());
    }
}

/// Without memory for all updates decoded they are merged with each other first: a tile does not decode all of them.
#[test]
fn scattered_updates_beyond_the_memory_are_decoded_a_few_times() {
    let (array, storage) = created(schema(320, 32, true), 4 << 20);
    write_box(&array, ((0, 319), (0, 319)), &BOTH, 0);
    for n in 1..601 {
        let place = |i: i64| (noise(n * 131 + i).rem_euclid(320), noise(n * 177 - i).rem_euclid(320));
        let cells: std::collections::BTreeSet<(i64, i64)> = (0..100).map(place).collect();
        let cells: Vec<_> = cells.into_iter().collect();
        match n {
            200 => write_box(&array, ((40, 200), (50, 260)), &BOTH, n),
            300 => delete(&array, &cells),
            400 => delete_box(&array, ((100, 130), (0, 319))),
            _ => write_cells(&array, &cells, n),
        }
    }
    let (before, files) = (read(&array), storage.list("_data").unwrap());
    let report = consolidate(&array, &Strategy::All);
    assert!(read(&array) == before && report.after < 20, "{report:?}");
    // 600 updates of four columns, each in a tile of a hundred: were all decoded for every tile it would be 240,000.
    assert!(report.counters.blocks_decoded < 30_000, "{:?}", report.counters);
    assert!(array.context().peak_bytes() <= 4 << 20, "{}", array.context().peak_bytes());
    let written: u64 = report.merges.iter().filter_map(|m| m.written).map(|(fragments, _)| fragments).sum();
    let made = storage.list("_data").unwrap().iter().filter(|name| !files.contains(name)).count() as u64;
    assert!(made <= written, "{made} files for {written} fragments: what only the merge needed is still there");
    assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
}

fn delete_box(array: &Array, (x, y): ((i64, i64), (i64, i64))) {
    let sub = [(x.0.to_string(), x.1.to_string()), (y.0.to_string(), y.1.to_string())];
    array.commit(vec![array.stage_delete_box(Some(&sub)).unwrap()], None).unwrap();
}

#[test]
fn deleted_boxes_are_cut_out_and_their_cells_are_gone() {
    let (array, _) = created(schema(100, 10, false), 1 << 30);
    write_box(&array, ((0, 99), (0, 99)), &BOTH, 0);
    // Askew to the tiles; written into again, by a box and by cells beside the hole and in that box.
    delete_box(&array, ((15, 84), (33, 66)));
    write_box(&array, ((40, 59), (40, 49)), &BOTH, 1);
    write_cells(&array, &[(2, 2), (3, 99)], 2);
    write_cells(&array, &[(41, 41), (59, 49)], 3);
    let (version, before) = (array.version(), read(&array));
    let bytes = || array.fragments().unwrap().iter().map(|f| f.bytes).sum::<u64>();
    let (kept, most) = (10_000 - 70 * 34 + 200, bytes());
    let done = consolidate(&array, &Strategy::All);
    assert_eq!(read(&array), before);
    let fragments = array.fragments().unwrap();
    assert_eq!(fragments.iter().map(|f| f.cells).sum::<u64>(), kept, "neither deleted cells nor what deleted them");
    assert!(fragments.len() == done.after as usize && done.after <= 6, "{done:?}");
    assert!(bytes() < most * 9 / 10 && done.counters.tiles_copied > 0, "{} of {most} bytes; {done:?}", bytes());
    assert!(consolidate(&array, &Strategy::All).merges.is_empty(), "there is nothing left to do");
    // An update that reaches into a hole is no reason to forget it.
    delete_box(&array, ((0, 9), (0, 99)));
    write_cells(&array, &[(5, 5), (20, 20)], 4);
    let expected = read(&array);
    consolidate(&array, &Strategy::All);
    assert_eq!(read(&array), expected);
    // All of it.
    delete_box(&array, ((0, 99), (0, 99)));
    consolidate(&array, &Strategy::Tiered);
    assert_eq!(array.fragments().unwrap().len(), 0);
    assert_eq!(read(&array.at(At::Version(version)).unwrap()), before);
}

/// What a merge has cut at the target size is not merged again and again; a larger target joins it, and what was written since goes into it.
#[test]
fn what_was_cut_at_the_target_is_left_alone() {
    let (array, _) = created(schema(200, 20, false), 1 << 30);
    write_box(&array, ((0, 199), (0, 199)), &BOTH, 1);
    for n in 2..6 {
        write_box(&array, ((n * 20, n * 20 + 30), (0, 99)), &BOTH, n);
    }
    delete(&array, &[(1, 1), (150, 150)]);
    let before = read(&array);
    let all = |target: u64| array.consolidate(&Strategy::All, target, false, &Call::default()).unwrap();
    all(100_000);
    // The tombstones that were left over each part become one.
    all(100_000);
    let (version, parts) = (array.version(), array.fragments().unwrap().len());
    assert!(parts > 5, "{parts} fragments");
    assert!(all(100_000).merges.is_empty() && all(50_000).merges.is_empty());
    assert_eq!((array.version(), array.fragments().unwrap().len()), (version, parts));
    write_box(&array, ((0, 3), (0, 3)), &BOTH, 9);
    assert_eq!(all(100_000).merges.len(), 1);
    let now = read(&array);
    assert_ne!(now, before);
    assert_eq!(all(1 << 30).after, 2);
    assert_eq!(read(&array), now);
}
