//! The text of each kind, with nulls, empty lists and the largest numbers, as readers in other languages parse it.

use crate::base::{CounterSnapshot, Error, ErrorKind, ForeignObject, Id};
use crate::engine::{
    AffectedCells, ArrayUsage, AttachedBox, CellChange, Change, ConditionListing, ConsolidateReport, CopyReport,
    Damage, FragmentListing, Holder, LostVersion, MergeListing, RepairAction, RepairReport, SkippedCells, SourceState,
    StoreDamage, StoreReport, StoreUsage, Tally, VacuumReport, VerifyReport, VersionListing,
};

const ID: Id = Id([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);

fn domain(ends: &[(&str, &str)]) -> Vec<(String, String)> {
    ends.iter().map(|(lo, hi)| ((*lo).to_owned(), (*hi).to_owned())).collect()
}

fn tally(objects: u64, bytes: u64) -> Tally {
    Tally { objects, bytes }
}

#[test]
fn a_version_tells_each_kind_of_operation_apart() {
    let written =
        CellChange { fragments: 2, cells: 30, deleted_cells: 4, deleted_boxes: 1, bytes: 500, ..CellChange::default() };
    let merged = CellChange {
        fragments: 1,
        cells: 8,
        bytes: 90,
        removed: 3,
        removed_cells: 9,
        removed_bytes: 70,
        ..CellChange::default()
    };
    let forgotten = CellChange { removed: 2, removed_cells: 5, removed_bytes: 6, unknown: 1, ..CellChange::default() };
    let change = |name, count, cells| Change { name, count, tag: None, cells };
    let version = VersionListing {
        version: u64::MAX,
        time_us: -1,
        message: Some("two \"lines\",\none tab\t, é and \u{1}".to_owned()),
        commit_id: ID,
        operations: vec![
            change("create_array", 1, None),
            Change { tag: Some("paper".to_owned()), ..change("tag", 1, None) },
            change("add_fragments", 2, Some(written)),
            change("replace_fragments", 1, Some(merged)),
            change("replace_fragments", 0, Some(forgotten)),
        ],
        tags: vec!["a".to_owned(), "b".to_owned()],
    };
    let text = concat!(
        r#"{"version":18446744073709551615,"time_us":-1,"message":"two \"lines\",\none tab\t, é and \u0001","operations":["#,
        r#"{"op":"create_array","count":1},{"op":"tag","count":1,"tag":"paper"},"#,
        r#"{"op":"add_fragments","count":2,"fragments":2,"cells":30,"bytes":500,"deleted_cells":4,"deleted_boxes":1,"#,
        r#""removed":0,"removed_cells":0,"removed_bytes":0},"#,
        r#"{"op":"replace_fragments","count":1,"fragments":1,"cells":8,"bytes":90,"deleted_cells":0,"deleted_boxes":0,"#,
        r#""removed":3,"removed_cells":9,"removed_bytes":70},"#,
        r#"{"op":"replace_fragments","count":0,"fragments":0,"cells":0,"bytes":0,"deleted_cells":0,"deleted_boxes":0,"#,
        r#""removed":2,"removed_cells":null,"removed_bytes":null}],"#,
        r#""commit_id":"000102030405060708090a0b0c0d0eff","tags":["a","b"]}"#,
    );
    assert_eq!(version.to_json(), text);
}

#[test]
fn a_version_without_message_operations_and_tags_has_null_and_empty_lists() {
    let version = VersionListing {
        version: 1,
        time_us: 1_500_000,
        message: None,
        commit_id: ID,
        operations: vec![],
        tags: vec![],
    };
    let text = r#"{"version":1,"time_us":1500000,"message":null,"operations":[],"commit_id":"000102030405060708090a0b0c0d0eff","tags":[]}"#;
    assert_eq!(version.to_json(), text);
}

#[test]
fn a_fragment_has_its_domain_as_texts() {
    let fragment = FragmentListing {
        id: ID,
        kind: "sparse",
        version: 7,
        index: 2,
        cells: 100,
        bytes: 4_096,
        inline: true,
        attrs: vec!["sog".to_owned(), "name".to_owned()],
        domain: domain(&[("-1.5", "inf"), ("a\\b", "")]),
    };
    let text = concat!(
        r#"{"id":"000102030405060708090a0b0c0d0eff","kind":"sparse","version":7,"index":2,"cells":100,"bytes":4096,"#,
        r#""inline":true,"attrs":["sog","name"],"domain":[["-1.5","inf"],["a\\b",""]]}"#,
    );
    assert_eq!(fragment.to_json(), text);
}

#[test]
fn a_check_of_an_array_has_null_for_tiles_and_attributes_that_are_not_known() {
    let known = Damage {
        fragment: ID,
        tile: Some(0),
        column: Some("v".to_owned()),
        domain: domain(&[("0", "9")]),
        cells: 10,
        message: "its checksum differs".to_owned(),
    };
    let unknown = Damage { tile: None, column: None, ..known.clone() };
    let report = VerifyReport { fragments: 1, tiles: 2, blocks: 3, bytes: 4, damage: vec![known, unknown] };
    let text = concat!(
        r#"{"fragments":1,"tiles":2,"blocks":3,"bytes":4,"damage":["#,
        r#"{"fragment":"000102030405060708090a0b0c0d0eff","tile":0,"attribute":"v","domain":[["0","9"]],"cells":10,"#,
        r#""message":"its checksum differs"},"#,
        r#"{"fragment":"000102030405060708090a0b0c0d0eff","tile":null,"attribute":null,"domain":[["0","9"]],"cells":10,"#,
        r#""message":"its checksum differs"}]}"#,
    );
    assert_eq!(report.to_json(), text);
}

/// A record whose versions are lost, and a page, with the text of both.
fn damaged() -> (StoreDamage, StoreDamage, &'static str) {
    let record = StoreDamage {
        object: "log/3".to_owned(),
        versions: vec![(3, 3), (5, 9)],
        cells: vec![],
        message: "it is missing".to_owned(),
    };
    let some = AffectedCells {
        array: "/a/b".to_owned(),
        fragment: Some(ID),
        tile: Some(12),
        column: Some("v".to_owned()),
        domain: domain(&[("0", "9"), ("x", "y")]),
        cells: 40,
    };
    let all = AffectedCells { fragment: None, tile: None, column: None, ..some.clone() };
    let page = StoreDamage {
        object: "manifest/1".to_owned(),
        versions: vec![],
        cells: vec![some, all],
        message: "its checksum differs".to_owned(),
    };
    let text = concat!(
        r#"{"object":"log/3","versions":[[3,3],[5,9]],"cells":[],"message":"it is missing"},"#,
        r#"{"object":"manifest/1","versions":[],"cells":["#,
        r#"{"array":"/a/b","fragment":"000102030405060708090a0b0c0d0eff","tile":12,"attribute":"v","#,
        r#""domain":[["0","9"],["x","y"]],"cells":40},"#,
        r#"{"array":"/a/b","fragment":null,"tile":null,"attribute":null,"domain":[["0","9"],["x","y"]],"cells":40}],"#,
        r#""message":"its checksum differs"}"#,
    );
    (record, page, text)
}

#[test]
fn a_check_of_a_store_lists_objects_versions_and_cells() {
    let (record, page, damage) = damaged();
    let report = StoreReport {
        oldest: 1,
        newest: 9,
        records: 8,
        manifest: 7,
        files: 6,
        blocks: 5,
        bytes: 4,
        leases: 3,
        orphans: tally(2, 20),
        damage: vec![record, page],
        unchecked: vec!["a fragment of array /far on base 3 was not checked".to_owned()],
    };
    let unchecked = r#""unchecked":["a fragment of array /far on base 3 was not checked"]"#;
    let scope = r#"{"oldest":1,"newest":9,"records":8,"manifest":7,"files":6,"blocks":5,"bytes":4,"leases":3,"#;
    let text = format!(r#"{scope}"orphans":{{"objects":2,"bytes":20}},"damage":[{damage}],{unchecked}}}"#);
    assert_eq!(report.to_json(), text);
}

#[test]
fn a_repair_tells_what_was_done_what_is_left_and_what_was_cut() {
    let (record, page, damage) = damaged();
    let sound = LostVersion {
        version: 8,
        time_us: Some(-5),
        message: Some("night run".to_owned()),
        operations: vec!["add_fragments", "tag"],
    };
    let unread = LostVersion { version: 9, time_us: None, message: None, operations: vec![] };
    let report = RepairReport {
        damage: vec![record, page.clone()],
        actions: vec![RepairAction { object: "log/3".to_owned(), what: "made from its pack".to_owned() }],
        remaining: vec![],
        kept: vec!["_damaged/log/3".to_owned()],
        committed: Some(10),
        lost: vec![sound, unread],
    };
    let rest = concat!(
        r#""actions":[{"object":"log/3","what":"made from its pack"}],"remaining":[],"kept":["_damaged/log/3"],"#,
        r#""committed":10,"lost":["#,
        r#"{"version":8,"time_us":-5,"message":"night run","operations":["add_fragments","tag"]},"#,
        r#"{"version":9,"time_us":null,"message":null,"operations":[]}]}"#,
    );
    assert_eq!(report.to_json(), format!(r#"{{"damage":[{damage}],{rest}"#));
    let nothing = r#"{"damage":[],"actions":[],"remaining":[],"kept":[],"committed":null,"lost":[]}"#;
    assert_eq!(RepairReport::default().to_json(), nothing);
    let left = RepairReport { remaining: vec![page], ..RepairReport::default() }.to_json();
    assert!(
        left.starts_with(r#"{"damage":[],"actions":[],"remaining":[{"object":"manifest/1","versions":[],"cells":[{"#),
        "{left}"
    );
}

#[test]
fn a_vacuum_names_what_holds_versions() {
    let report = VacuumReport {
        oldest_before: 1,
        oldest: 4,
        newest: 9,
        records: tally(3, 30),
        data: tally(5, 50),
        manifest: tally(7, 70),
        temporary: tally(11, 110),
        leases: 13,
        young: tally(17, 170),
        held_by: vec![Holder { tag: Some("paper".to_owned()), version: 4 }, Holder { tag: None, version: 6 }],
        committed: Some(10),
        hidden: 19,
    };
    let text = concat!(
        r#"{"oldest_before":1,"oldest":4,"newest":9,"records":{"objects":3,"bytes":30},"data":{"objects":5,"bytes":50},"#,
        r#""manifest":{"objects":7,"bytes":70},"temporary":{"objects":11,"bytes":110},"young":{"objects":17,"bytes":170},"#,
        r#""leases":13,"held_by":[{"tag":"paper","version":4},{"tag":null,"version":6}],"committed":10,"hidden":19}"#,
    );
    assert_eq!(report.to_json(), text);
    let idle = VacuumReport { held_by: vec![], committed: None, ..report };
    assert!(
        idle.to_json().ends_with(r#""leases":13,"held_by":[],"committed":null,"hidden":19}"#),
        "{}",
        idle.to_json()
    );
}

#[test]
fn the_use_of_a_store_is_by_array_and_by_purpose() {
    let a = ArrayUsage { path: "/a".to_owned(), fragments: 1, cells: 2, data_bytes: 3, log_bytes: 4, external: 5 };
    let usage = StoreUsage {
        version: 9,
        oldest: 4,
        arrays: vec![a, ArrayUsage { path: "/ü".to_owned(), ..ArrayUsage::default() }],
        live: tally(1, 10),
        older: tally(2, 20),
        orphans: tally(3, 30),
        manifest: tally(4, 40),
        log: tally(5, 50),
        other: tally(6, u64::MAX),
    };
    let text = concat!(
        r#"{"version":9,"oldest":4,"arrays":["#,
        r#"{"path":"/a","fragments":1,"cells":2,"data_bytes":3,"log_bytes":4,"external":5},"#,
        r#"{"path":"/ü","fragments":0,"cells":0,"data_bytes":0,"log_bytes":0,"external":0}],"#,
        r#""live":{"objects":1,"bytes":10},"older":{"objects":2,"bytes":20},"orphans":{"objects":3,"bytes":30},"#,
        r#""manifest":{"objects":4,"bytes":40},"log":{"objects":5,"bytes":50},"#,
        r#""other":{"objects":6,"bytes":18446744073709551615}}"#,
    );
    assert_eq!(usage.to_json(), text);
}

#[test]
fn a_consolidation_has_null_for_what_is_planned_only() {
    let planned = MergeListing {
        kind: "sparse",
        fragments: 4,
        cells: 100,
        bytes: 900,
        estimate: (1, 800),
        memory: 1 << 20,
        written: None,
    };
    let done = MergeListing { kind: "hidden", written: Some((0, 0)), ..planned.clone() };
    let counters = CounterSnapshot { tiles_copied: 6, blocks_decoded: 7, requests: 8, ..CounterSnapshot::default() };
    let report = ConsolidateReport {
        merges: vec![planned, done],
        overtaken: 1,
        before: 8,
        after: 5,
        background_failure: Some("the disk is full".to_owned()),
        counters,
    };
    let text = concat!(
        r#"{"before":8,"after":5,"overtaken":1,"merges":["#,
        r#"{"kind":"sparse","fragments":4,"cells":100,"bytes":900,"estimate":[1,800],"memory":1048576,"written":null},"#,
        r#"{"kind":"hidden","fragments":4,"cells":100,"bytes":900,"estimate":[1,800],"memory":1048576,"written":[0,0]}],"#,
        r#""failure":"the disk is full","tiles_copied":6,"blocks_decoded":7}"#,
    );
    assert_eq!(report.to_json(), text);
    let idle = r#"{"before":0,"after":0,"overtaken":0,"merges":[],"failure":null,"tiles_copied":0,"blocks_decoded":0}"#;
    assert_eq!(ConsolidateReport::default().to_json(), idle);
}

#[test]
fn a_copy_tells_its_versions_first() {
    let report =
        CopyReport { source_version: 1, version: 2, arrays: 3, fragments: 4, bytes: 5, objects: 6, versions: 7 };
    let text = r#"{"source_version":1,"version":2,"arrays":3,"fragments":4,"bytes":5,"objects":6,"versions":7}"#;
    assert_eq!(report.to_json(), text);
}

#[test]
fn what_a_read_left_out_has_a_reason() {
    let tile = SkippedCells {
        fragment: Some(ID),
        tile: Some(3),
        column: Some("v".to_owned()),
        domain: domain(&[("1", "2")]),
        cells: 2,
        message: "its checksum differs".to_owned(),
    };
    let page = SkippedCells { fragment: None, tile: None, column: None, ..tile.clone() };
    let text = concat!(
        r#"{"fragment":"000102030405060708090a0b0c0d0eff","tile":3,"attribute":"v","domain":[["1","2"]],"cells":2,"#,
        r#""reason":"its checksum differs"}"#,
    );
    assert_eq!(tile.to_json(), text);
    let text = concat!(
        r#"{"fragment":null,"tile":null,"attribute":null,"domain":[["1","2"]],"cells":2,"#,
        r#""reason":"its checksum differs"}"#,
    );
    assert_eq!(page.to_json(), text);
}

#[test]
fn a_source_has_null_for_what_was_not_known_and_for_no_problem() {
    let attached = ForeignObject {
        uri: "s3://bucket/run.h5".to_owned(),
        size: Some(10),
        time_us: Some(1_500_000),
        etag: Some("\"x\"".to_owned()),
    };
    let changed = SourceState {
        attached,
        cells: 6,
        pipelines: vec!["shuffle,deflate".to_owned(), String::new()],
        problem: Some(Error::new(ErrorKind::SourceChanged, "its size was 10 bytes and is 11 bytes")),
    };
    let text = concat!(
        r#"{"uri":"s3://bucket/run.h5","size":10,"time_us":1500000,"etag":"\"x\"","cells":6,"#,
        r#""pipelines":["shuffle,deflate",""],"problem":"its size was 10 bytes and is 11 bytes"}"#,
    );
    assert_eq!(changed.to_json(), text);
    let attached = ForeignObject { uri: "run.h5".to_owned(), size: None, time_us: None, etag: None };
    let same = SourceState { attached, cells: 0, pipelines: vec![], problem: None };
    let text = r#"{"uri":"run.h5","size":null,"time_us":null,"etag":null,"cells":0,"pipelines":[],"problem":null}"#;
    assert_eq!(same.to_json(), text);
}

#[test]
fn a_condition_that_selects_nothing_has_no_box() {
    let some = ConditionListing {
        columns: vec!["x".to_owned(), "v".to_owned()],
        bounds: Some(domain(&[("3", "9")])),
        constant: None,
    };
    assert_eq!(some.to_json(), r#"{"columns":["x","v"],"box":[["3","9"]],"constant":null}"#);
    let none = ConditionListing { columns: vec![], bounds: None, constant: Some(false) };
    assert_eq!(none.to_json(), r#"{"columns":[],"box":null,"constant":false}"#);
}

#[test]
fn counters_have_the_names_of_their_fields() {
    let counted = CounterSnapshot {
        fragments_considered: 1,
        tiles_read: 2,
        bytes_fetched: u64::MAX,
        overlay_entries: 3,
        ..CounterSnapshot::default()
    };
    let text = concat!(
        r#"{"fragments_considered":1,"fragments_pruned":0,"fragments_touched":0,"tiles_considered":0,"tiles_read":2,"#,
        r#""tiles_shadowed":0,"tiles_pruned":0,"tiles_from_index":0,"blocks_rejected":0,"tiles_copied":0,"#,
        r#""blocks_decoded":0,"blocks_alone":0,"cells_scanned":0,"cells_merged":0,"cells_returned":0,"requests":0,"#,
        r#""bytes_fetched":18446744073709551615,"bytes_decoded":0,"bytes_spilled":0,"regions_skipped":0,"#,
        r#""overlay_entries":3}"#,
    );
    assert_eq!(counted.to_json(), text);
}

#[test]
fn an_attached_box_counts_from_the_low_edge_of_the_domain() {
    use crate::schema::{KeyRange, Schema, Subarray};
    let schema = r#"{"dims":[{"name":"x","dtype":"int64","domain":["-5","94"],"tile":"10"}],"attrs":[{"name":"v","dtype":"int8"}]}"#;
    let schema = Schema::from_json(schema).unwrap();
    let low = schema.domain().ranges()[0].lo;
    let source = ForeignObject { uri: "run.h5".to_owned(), size: None, time_us: Some(-1), etag: None };
    assert_eq!(source.to_json(), r#"{"uri":"run.h5","size":null,"time_us":-1,"etag":null}"#);
    let bounds = Subarray::new(vec![KeyRange::new(low + 3, low + 6)]);
    let known = schema.attrs()[0].id();
    let attached = AttachedBox { id: ID, bounds, attrs: vec![known, known + 7], sources: vec![source] };
    let text =
        r#"{"id":"000102030405060708090a0b0c0d0eff","position":[3],"shape":[4],"attrs":["v",null],"uris":["run.h5"]}"#;
    assert_eq!(attached.to_json(&schema), text);
}
