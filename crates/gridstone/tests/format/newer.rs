//! Promise: what a newer release wrote is called newer and nothing else: by reads, by the check of a store, by its repair, and by reads
//! around damage. What is told twice is damage. Names that act on a terminal are refused, and shown as what they are where they are there.
//!
//! The stores are altered object by object, with right checksums all the way up to the newest record.

use crate::support::line::{Cells, create, read, stage, write};
use crate::support::manifest::{Root, Row};
use crate::support::store::{context, open, store_of, vacuum};
use gridstone::base::{Error, ErrorKind, is_unprintable, xxh3};
use gridstone::engine::{
    Array, At, Call, Keep, Opened, ReadOrder, RepairOptions, create_array_on, move_node_on, open_on, repair_on,
    verify_on,
};
use gridstone::schema::{Evolution, Schema};
use gridstone::storage::{FLOOR, LATEST, LOG, MANIFEST, MemoryStorage, Storage, log_name};
use gridstone::store::{Changes, Lease, Operation, StandardRules};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) fn some(from: i64) -> Cells {
    (from..from + 20).map(|x| (x, 3 * x + 1)).collect()
}

/// Versions 1 to 6: two arrays and two small fragments of each, then version 7, which names a root of version 6 with a page of each array.
pub(super) fn store() -> Arc<dyn Storage> {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let context = context(64);
    for path in ["/line", "/grid"] {
        let array = create(&context, &storage, path, false);
        write(&array, &some(10)).unwrap();
        write(&array, &some(5_010)).unwrap();
    }
    let store = store_of(&storage).with_fold_versions(1);
    store.commit(&store.latest().unwrap(), Changes::default(), &mut StandardRules).unwrap();
    storage
}

pub(super) fn line_of(storage: &Arc<dyn Storage>, name: &str) -> String {
    let bytes = storage.read_all(name).unwrap();
    let end = bytes.iter().position(|b| *b == b'\n').unwrap();
    String::from_utf8(bytes[..end].to_vec()).unwrap()
}

/// Puts `content` with its checksum, and with it all that names `before`, the checksum that the object had.
fn put(storage: &Arc<dyn Storage>, name: &str, content: Vec<u8>, (before, after): (u64, u64)) {
    storage.put(name, &content).unwrap();
    let (before, after) = (format!("{before:016x}"), format!("{after:016x}"));
    for other in [LOG, MANIFEST].iter().flat_map(|folder| storage.list(folder).unwrap()) {
        if other == name || is_page(storage, &other) {
            continue;
        }
        if line_of(storage, &other).contains(&before) {
            reword(storage, &other, |line| line.replace(&before, &after));
        } else if other.starts_with(MANIFEST) {
            let text = |value: &[u8]| String::from_utf8(value.to_vec()).ok().filter(|text| text.contains(&before));
            if rows_of(storage, &other).iter().any(|row| text(&row.value).is_some()) {
                rerow(storage, &other, |rows| {
                    for row in rows {
                        if let Some(text) = text(&row.value) {
                            row.value = text.replace(&before, &after).into_bytes();
                        }
                    }
                });
            }
        }
    }
}

pub(super) fn rows_of(storage: &Arc<dyn Storage>, root: &str) -> Vec<Row> {
    Root::of(&storage.read_all(root).unwrap()).rows
}

/// Changes the rows of a root.
pub(super) fn rerow(storage: &Arc<dyn Storage>, name: &str, edit: impl Fn(&mut Vec<Row>)) {
    let bytes = storage.read_all(name).unwrap();
    let mut root = Root::of(&bytes);
    edit(&mut root.rows);
    let content = root.object();
    let sums = (Root::sum(&bytes), Root::sum(&content));
    put(storage, name, content, sums);
}

/// Changes the text of the rows whose text holds `from`, all of them.
pub(super) fn replace_in_rows(storage: &Arc<dyn Storage>, root: &str, from: &str, to: &str) {
    rerow(storage, root, |rows| {
        let mut found = false;
        for row in rows {
            if let Some(text) = String::from_utf8(row.value.clone()).ok().filter(|text| text.contains(from)) {
                row.value = text.replace(from, to).into_bytes();
                found = true;
            }
        }
        assert!(found, "{from}");
    });
}

/// The key of the page of fragments of an array, in a root's rows.
pub(super) fn page_key(storage: &Arc<dyn Storage>, path: &str) -> Vec<u8> {
    let id = store_of(storage).latest().unwrap().array(path).unwrap().id();
    let prefix = [b"I", &id.0[..], &[1]].concat();
    rows_of(storage, &root_of(storage)).into_iter().map(|row| row.key).find(|key| key.starts_with(&prefix)).unwrap()
}

fn is_page(storage: &Arc<dyn Storage>, name: &str) -> bool {
    !storage.read_all(name).unwrap().starts_with(b"{")
}

/// Changes the line of a record, a root or the floor.
pub(super) fn reword(storage: &Arc<dyn Storage>, name: &str, edit: impl Fn(&str) -> String) {
    let (bytes, line) = (storage.read_all(name).unwrap(), line_of(storage, name));
    let mut edited = edit(line.trim_end());
    assert_ne!(edited, line.trim_end(), "{name}: {line}");
    if name.starts_with(LOG) && name != FLOOR {
        let padded = (edited.len() + 18).next_multiple_of(64) - 18;
        edited = format!("{edited:<padded$}");
    }
    let sums = (xxh3(line.as_bytes()), xxh3(edited.as_bytes()));
    let mut content = format!("{edited}\n{:016x}\n", sums.1).into_bytes();
    content.extend_from_slice(&bytes[line.len() + 18..]);
    put(storage, name, content, sums);
}

/// The name of the page of an array.
fn page_of(storage: &Arc<dyn Storage>, path: &str) -> String {
    let key = page_key(storage, path);
    let id: String = key[18..].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{MANIFEST}/{id}")
}

pub(super) fn root_of(storage: &Arc<dyn Storage>) -> String {
    let manifest = storage.list(MANIFEST).unwrap();
    manifest.into_iter().find(|name| !is_page(storage, name)).unwrap()
}

/// Changes the bytes of a manifest page before its checksum.
fn repage(storage: &Arc<dyn Storage>, name: &str, edit: impl Fn(&mut [u8])) {
    let bytes = storage.read_all(name).unwrap();
    let (content, before) = bytes.split_last_chunk::<8>().unwrap();
    let mut content = content.to_vec();
    edit(&mut content);
    let sums = (u64::from_le_bytes(*before), xxh3(&content));
    content.extend_from_slice(&sums.1.to_le_bytes());
    put(storage, name, content, sums);
}

/// Where the first description of a page with one list of one attribute begins, after its length and flags.
const FRAGMENTS: usize = 8 + 4 + 4 + 4 + 8 + 4 + 8;

fn objects(storage: &Arc<dyn Storage>) -> BTreeMap<String, Vec<u8>> {
    let names = [LOG, MANIFEST, "_data", "_damaged"].iter().flat_map(|folder| storage.list(folder).unwrap());
    names.map(|name| (name.clone(), storage.read_all(&name).unwrap().to_vec())).collect()
}

pub(super) fn newest(storage: &Arc<dyn Storage>) -> gridstone::base::Result<Array> {
    open(&context(64), storage, "/line", At::Latest)
}

fn is_newer(error: &Error, holds: &str) {
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let words = ["newer release of Gridstone", "use a newer Gridstone", holds];
    assert!(words.iter().all(|word| error.message().contains(word)), "{error}");
}

/// The check and the repair say that it is newer and what, and leave all as it is.
fn is_no_damage(storage: &Arc<dyn Storage>, object: &str, holds: &str) {
    let before = objects(storage);
    let errors = [
        verify_on(&context(64), storage.clone(), &Call::default()).unwrap_err(),
        repair_on(&context(64), storage.clone(), RepairOptions { dry_run: true, cut: false }, &Call::default())
            .unwrap_err(),
        repair_on(&context(64), storage.clone(), RepairOptions { dry_run: false, cut: false }, &Call::default())
            .unwrap_err(),
    ];
    for error in errors {
        is_newer(&error, holds);
        assert!(error.message().contains(object), "{object}: {error}");
    }
    assert_eq!(objects(storage), before);
}

#[test]
fn the_store_that_is_altered_is_sound() {
    let storage = store();
    let report = verify_on(&context(64), storage.clone(), &Call::default()).unwrap();
    assert_eq!((report.newest, report.damage), (7, Vec::new()));
    reword(&storage, &log_name(3), |line| line.replace("\"message\":null", "\"message\":\"hello\""));
    // The hint has the line as it was.
    storage.delete(LATEST).unwrap();
    let report = verify_on(&context(64), storage.clone(), &Call::default()).unwrap();
    assert_eq!(report.damage, Vec::new(), "checksums are right up to the newest record");
    assert_eq!(read(&newest(&storage).unwrap()).unwrap().len(), 40);
}

#[test]
fn an_unknown_field_of_a_record_is_newer() {
    for (from, to, holds) in [
        ("\"message\":null", "\"message\":null,\"author\":\"me\"", "\"author\""),
        ("\"cells\":20", "\"cells\":20,\"sorted\":true", "\"sorted\""),
        ("\"op\":\"add_fragments\"", "\"op\":\"add_fragment_views\"", "\"add_fragment_views\""),
        ("{\"body\":{", "{\"shared\":{", "\"shared\""),
        ("\"kind\":\"sparse\"", "\"kind\":\"ragged\"", "\"ragged\""),
    ] {
        let storage = store();
        reword(&storage, &log_name(3), |line| line.replacen(from, to, 1));
        is_newer(&open(&context(64), &storage, "/line", At::Version(3)).unwrap_err(), holds);
        is_no_damage(&storage, "version 3", holds);
    }
}

#[test]
fn an_unknown_field_of_a_schema_is_newer() {
    for (from, to, holds) in [
        ("\"sparse\":true", "\"sparse\":true,\"ragged\":true", "\"ragged\""),
        ("\"tile\":\"1000\"", "\"tile\":\"1000\",\"halo\":\"1\"", "\"halo\""),
        ("\"dtype\":\"int64\"", "\"dtype\":\"int65\"", "int65"),
        ("\"tile_order\":\"row\"", "\"tile_order\":\"peano\"", "peano"),
    ] {
        let storage = store();
        let edit = |line: &str| line.replacen(from, to, 1);
        reword(&storage, &log_name(1), edit);
        is_newer(&open(&context(64), &storage, "/line", At::Version(1)).unwrap_err(), holds);
        is_no_damage(&storage, "version 1", holds);
    }
    // What a schema needs is missing, or no number: that is damage, whoever wrote it.
    for (from, to) in [("\"sparse\":true", "\"sparse\":7"), ("\"attrs\":[{\"name\":\"v\",", "\"attrs\":[{")] {
        let storage = store();
        reword(&storage, &log_name(1), |line| line.replacen(from, to, 1));
        let error = open(&context(64), &storage, "/line", At::Version(1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    }
}

#[test]
fn an_unknown_field_of_a_root_is_newer() {
    let storage = store();
    let root = root_of(&storage);
    reword(&storage, &root, |line| line.replacen("\"store\":", "\"region\":\"eu\",\"store\":", 1));
    is_newer(&newest(&storage).unwrap_err(), "\"region\"");
    is_no_damage(&storage, root.rsplit('/').next().unwrap(), "\"region\"");
    for (from, to, holds) in [
        ("\"kind\":\"array\"", "\"kind\":\"array\",\"owner\":1", "\"owner\""),
        ("\"kind\":\"array\"", "\"kind\":\"table\"", "\"table\""),
        ("\"full\":false", "\"full\":false,\"sums\":[1]", "\"sums\""),
        ("\"sparse\":true", "\"sparse\":true,\"ragged\":true", "\"ragged\""),
    ] {
        let storage = store();
        let root = root_of(&storage);
        replace_in_rows(&storage, &root, from, to);
        is_newer(&newest(&storage).unwrap_err(), holds);
        is_no_damage(&storage, root.rsplit('/').next().unwrap(), holds);
    }
}

#[test]
fn unknown_features_are_named_and_ext_is_passed_over() {
    let objects = |storage: &Arc<dyn Storage>| [log_name(7), root_of(storage), FLOOR.to_owned()];
    for at in 0..3 {
        let make = |fields: &str| {
            let storage = store();
            if at == 2 {
                vacuum(&newest(&storage).unwrap(), Keep::Versions(1)).unwrap();
            }
            let name = objects(&storage)[at].clone();
            reword(&storage, &name, |line| line.replacen("{\"gs\":1,", &format!("{{\"gs\":1,{fields},"), 1));
            storage
        };
        let read_feature = make("\"read\":[\"columns\",\"wavelets\"]");
        is_newer(&newest(&read_feature).unwrap_err(), "\"columns\", \"wavelets\"");
        assert_eq!(read(&newest(&make("\"ext\":{\"a\":[1,{}]}")).unwrap()).unwrap().len(), 40);
        let no_object = newest(&make("\"ext\":7")).unwrap_err();
        assert_eq!(no_object.kind(), ErrorKind::Corruption, "{no_object}");
        let write_feature = make("\"write\":[\"wavelets\"]");
        let array = newest(&write_feature).unwrap();
        assert_eq!(read(&array).unwrap().len(), 40);
        if at == 0 {
            let error = write(&open_for_writing(&write_feature), &some(300)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            assert!(error.message().contains("wavelets") && error.message().contains("Nothing was written"), "{error}");
        }
    }
}

/// A store as a newer release may leave it: `ext` everywhere, and rows that this release does not know.
#[test]
fn what_is_not_known_survives_writes_folds_and_vacuums() {
    let storage = store();
    let root = root_of(&storage);
    let unknown = [
        Row { key: b"Q and more".to_vec(), flags: 0, value: vec![1, 2, 3] },
        Row { key: [b"I", &page_key(&storage, "/line")[1..17], &[9, 9]].concat(), flags: 0, value: vec![4; 40] },
    ];
    reword(&storage, &root, |line| line.replacen("{\"gs\":1,", "{\"gs\":1,\"ext\":{\"of\":\"store\"},", 1));
    replace_in_rows(&storage, &root, "\"kind\":\"array\"", "\"kind\":\"array\",\"ext\":{\"of\":[\"array\",2]}");
    rerow(&storage, &root, |rows| {
        rows.extend(unknown.clone());
        rows.sort_by(|a, b| a.key.cmp(&b.key));
    });
    let array = open_for_writing(&storage);
    for at in 0..5 {
        write(&array, &some(1_000 + 100 * at)).unwrap();
    }
    store_of(&storage).pack(&store_of(&storage).latest().unwrap()).unwrap();
    array.refresh().unwrap();
    vacuum(&array, Keep::Versions(1)).unwrap();
    assert_eq!(verify_on(&context(64), storage.clone(), &Call::default()).unwrap().damage, Vec::new());
    let newest_root = store_of(&storage).latest().unwrap().root().unwrap();
    let kept = Root::of(&storage.read_all(&format!("{MANIFEST}/{}", newest_root.id)).unwrap());
    assert!(kept.line.contains("\"ext\":{\"of\":\"store\"}"), "{}", kept.line);
    assert!(unknown.iter().all(|row| kept.rows.contains(row)));
    let ext = |row: &&Row| String::from_utf8_lossy(&row.value).contains("\"ext\":{\"of\":[\"array\",2]}");
    assert_eq!(kept.rows.iter().filter(ext).count(), 2);
}

pub(super) fn open_for_writing(storage: &Arc<dyn Storage>) -> Array {
    match open_on(&context(64), storage.clone(), "/line", true, At::Latest).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("it is an array"),
    }
}

#[test]
fn an_unknown_kind_on_a_page_is_newer_and_is_not_read_around() {
    for (at, byte, holds) in [(16, 5, "the kind 5"), (17, 3, "the file 3")] {
        let storage = store();
        let page = page_of(&storage, "/line");
        repage(&storage, &page, |bytes| bytes[FRAGMENTS + at] = byte);
        let array = newest(&storage).unwrap();
        is_newer(&read(&array).unwrap_err(), holds);
        is_newer(&array.verify(&Call::default()).unwrap_err(), holds);
        is_newer(&array.read_around(None, None, None, ReadOrder::Row, &Call::default()).unwrap_err(), holds);
        is_no_damage(&storage, page.rsplit('/').next().unwrap(), holds);
    }
    let storage = store();
    let page = page_of(&storage, "/line");
    repage(&storage, &page, |bytes| bytes[8] = 2);
    is_no_damage(&storage, page.rsplit('/').next().unwrap(), "a page of version 2");
}

#[test]
fn an_unknown_version_without_a_right_checksum_is_damage() {
    let storage = store();
    let page = page_of(&storage, "/line");
    let mut bytes = storage.read_all(&page).unwrap().to_vec();
    bytes[8] = 2;
    storage.put(&page, &bytes).unwrap();
    let mut record = storage.read_all(&log_name(3)).unwrap().to_vec();
    record[6] = b'4';
    storage.put(&log_name(3), &record).unwrap();
    let report = verify_on(&context(64), storage.clone(), &Call::default()).unwrap();
    let named: Vec<_> = report.damage.iter().map(|d| d.object.as_str()).collect();
    assert_eq!(named, [log_name(3).as_str(), page.as_str()], "{report:?}");
}

#[test]
fn reserved_fields_of_a_page_are_passed_over() {
    let storage = store();
    let (before, page) = (read(&newest(&storage).unwrap()).unwrap(), page_of(&storage, "/line"));
    repage(&storage, &page, |bytes| bytes[FRAGMENTS + 18..FRAGMENTS + 20].fill(0xff));
    assert_eq!(read(&newest(&storage).unwrap()).unwrap(), before);
    assert_eq!(verify_on(&context(64), storage.clone(), &Call::default()).unwrap().damage, Vec::new());
}

#[test]
fn an_unknown_field_of_the_floor_or_a_lease_is_newer() {
    let storage = store();
    let array = newest(&storage).unwrap();
    vacuum(&array, Keep::Versions(1)).unwrap();
    reword(&storage, FLOOR, |line| line.replacen("{\"gs\":1,", "{\"gs\":1,\"until\":9,", 1));
    is_newer(&newest(&storage).unwrap_err(), "\"until\"");
    is_no_damage(&storage, "floor", "\"until\"");

    let lease = Lease { version: 1, written_us: 1, expires_us: 2 }.encode().unwrap();
    let text = String::from_utf8(lease).unwrap();
    let line = text.lines().next().unwrap().replace("{\"gs\":0,", "{\"gs\":0,\"host\":\"a\",");
    let sealed = format!("{line}\n{:016x}\n", xxh3(line.as_bytes()));
    is_newer(&Lease::decode(sealed.as_bytes()).unwrap_err(), "\"host\"");
}

/// The objects that the check of the store calls damaged.
pub(super) fn damaged(storage: &Arc<dyn Storage>, word: &str) -> Vec<String> {
    let report = verify_on(&context(64), storage.clone(), &Call::default()).unwrap();
    assert!(report.damage.iter().any(|d| d.message.contains(word)), "{word}: {report:?}");
    report.damage.into_iter().map(|d| d.object).collect()
}

fn is_refused(storage: &Arc<dyn Storage>, word: &str) {
    let error = newest(storage).and_then(|array| read(&array)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert!(error.message().contains(word), "{error}");
}

#[test]
fn a_fragment_told_twice_on_a_page_is_refused_and_found() {
    let storage = store();
    let page = page_of(&storage, "/line");
    repage(&storage, &page, |bytes| {
        // The length of an entry is eight bytes before its id.
        let len = u32::from_le_bytes(*bytes[FRAGMENTS - 8..].first_chunk().unwrap()) as usize;
        bytes.copy_within(FRAGMENTS..FRAGMENTS + 16, FRAGMENTS + len);
    });
    is_refused(&storage, "twice");
    assert_eq!(damaged(&storage, "twice"), [page]);
}

#[test]
fn a_fragment_told_on_two_pages_is_found() {
    let storage = store();
    let (one, two) = (page_of(&storage, "/line"), page_of(&storage, "/grid"));
    let id = storage.read_all(&one).unwrap().slice(FRAGMENTS..FRAGMENTS + 16);
    repage(&storage, &two, |bytes| bytes[FRAGMENTS..FRAGMENTS + 16].copy_from_slice(&id));
    let found = damaged(&storage, "and so does manifest page");
    assert!(found.contains(&one) || found.contains(&two), "{found:?}");
}

#[test]
fn rows_of_a_root_that_do_not_fit_together_are_found() {
    type Edit = Box<dyn Fn(&mut Vec<Row>, &[u8], &[u8])>;
    let key = |storage: &Arc<dyn Storage>, path: &str| page_key(storage, path);
    let edits: [(&str, Edit); 7] = [
        // A page of one array under another one too.
        (
            "twice",
            Box::new(|rows, line, grid| {
                let row = rows.iter().find(|row| row.key == line).unwrap().clone();
                rows.push(Row { key: [&grid[..18], &line[18..]].concat(), ..row });
            }),
        ),
        // The node of one name under another one too.
        (
            "lies in two groups",
            Box::new(|rows, line, _| {
                let of = |row: &&mut Row| row.key.starts_with(b"N") && row.value[..16] != line[1..17];
                rows.iter_mut().find(of).unwrap().value[..16].copy_from_slice(&line[1..17]);
            }),
        ),
        // Two nodes under each other's names.
        (
            "is not the node that its row says",
            Box::new(|rows, line, grid| {
                for row in rows.iter_mut().filter(|row| row.key.starts_with(b"N")) {
                    let other = if row.value[..16] == line[1..17] { grid } else { line };
                    row.value[..16].copy_from_slice(&other[1..17]);
                }
            }),
        ),
        // An array that is called a group.
        (
            "is not the node that its row says",
            Box::new(|rows, _, _| rows.iter_mut().find(|row| row.key.starts_with(b"N")).unwrap().value[16] = 0),
        ),
        // A node without a head, and one without a name.
        (
            "is missing",
            Box::new(|rows, line, _| {
                rows.retain(|row| row.key[..] != [&line[..17], &[0]].concat());
            }),
        ),
        (
            "lie in groups",
            Box::new(|rows, _, _| {
                let at = rows.iter().position(|row| row.key.starts_with(b"N")).unwrap();
                rows.remove(at);
            }),
        ),
        (
            "of another",
            Box::new(|rows, line, grid| {
                let at = rows.iter().find(|row| row.key == line).unwrap().value.clone();
                rows.iter_mut().find(|row| row.key == grid).unwrap().value = at;
            }),
        ),
    ];
    for (word, edit) in edits {
        let storage = store();
        let (root, line, grid) = (root_of(&storage), key(&storage, "/line"), key(&storage, "/grid"));
        rerow(&storage, &root, |rows| {
            edit(rows, &line, &grid);
            rows.sort_by(|a, b| a.key.cmp(&b.key));
        });
        let found = damaged(&storage, word);
        assert!(found.contains(&root), "{word}: {found:?}");
    }
}

/// The id of a fragment that a record adds.
fn added(storage: &Arc<dyn Storage>, version: u64, nth: usize) -> String {
    line_of(storage, &log_name(version)).split("{\"id\":\"").nth(nth + 1).unwrap()[..32].to_owned()
}

#[test]
fn a_fragment_that_a_record_adds_twice_is_refused_and_found() {
    let storage = store();
    let array = newest(&storage).unwrap();
    array.commit(vec![stage(&array, &some(100)), stage(&array, &some(200))], None).unwrap();
    let (one, two) = (added(&storage, 8, 1), added(&storage, 8, 2));
    assert_ne!(one, two);
    reword(&storage, &log_name(8), |line| line.replace(&two, &one));
    is_refused(&storage, "twice");
    assert_eq!(damaged(&storage, "twice"), [log_name(8)]);
}

#[test]
fn a_fragment_that_two_records_add_is_found() {
    let storage = store();
    let array = newest(&storage).unwrap();
    write(&array, &some(100)).unwrap();
    write(&array, &some(200)).unwrap();
    let [old, recent, last] = [(2, 0), (8, 1), (9, 1)].map(|(version, nth)| added(&storage, version, nth));
    reword(&storage, &log_name(9), |line| line.replace(&last, &recent));
    is_refused(&storage, "already");
    assert!(damaged(&storage, "version 8 adds already").contains(&log_name(9)));
    // The root describes the fragment, and a record that comes later adds it: nobody who opens the newest version sees both.
    reword(&storage, &log_name(9), |line| line.replace(&recent, &old));
    assert!(damaged(&storage, "version 2 adds already").contains(&log_name(9)));
}

#[test]
fn names_that_act_on_a_terminal_are_refused() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let context = context(64);
    let line = create(&context, &storage, "/line", false);
    let schema = |name: &str| {
        let name = name.escape_default().to_string().replace("\\u{1b}", "\\u001b").replace("\\u{202e}", "\\u202e");
        let json = format!(
            r#"{{"dims":[{{"name":"x","dtype":"int8","domain":["0","9"]}}],"attrs":[{{"name":"{name}","dtype":"int8"}}]}}"#
        );
        Schema::from_json(&json).unwrap()
    };
    let shown = |error: Error, kind: ErrorKind| {
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains("control characters") && !error.message().contains(is_unprintable), "{error}");
    };
    let make = |path: &str, name: &str| create_array_on(&context, storage.clone(), path, schema(name), false);
    for path in ["/a\u{1b}[2J", "/a\n", "/a\u{7f}b/c", "/\u{202e}a", "/a/b\u{2028}"] {
        shown(make(path, "v").unwrap_err(), ErrorKind::Input);
        shown(move_node_on(&context, storage.clone(), "/line", path, None).unwrap_err(), ErrorKind::Input);
        let tag = Operation::Tag { name: path[1..].to_owned(), version: 1, replace: false };
        let store = store_of(&storage);
        let tagged = store.commit(&store.latest().unwrap(), Changes::new(vec![tag]), &mut StandardRules);
        shown(tagged.unwrap_err(), ErrorKind::Input);
    }
    for name in ["v\u{1b}[31m", "v\u{202e}"] {
        shown(make("/b", name).unwrap_err(), ErrorKind::Schema);
        let rename = Evolution { rename: vec![("v".to_owned(), name.to_owned())], ..Evolution::default() };
        shown(line.alter(&rename, None).unwrap_err(), ErrorKind::Schema);
    }
    let deep = |levels: usize| vec![("k".to_owned(), Some(format!("{}{}", "[".repeat(levels), "]".repeat(levels))))];
    line.set_metadata(deep(128)).unwrap();
    assert_eq!(line.set_metadata(deep(129)).unwrap_err().kind(), ErrorKind::Input);
}

#[test]
fn names_of_earlier_releases_are_read_and_shown_as_what_they_are() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let context = context(64);
    write(&create(&context, &storage, "/line", false), &some(10)).unwrap();
    reword(&storage, &log_name(1), |line| {
        line.replace("\"path\":\"/line\"", "\"path\":\"/li\\u001b[2Jne\"")
            .replace("\"name\":\"v\"", "\"name\":\"v\\u0007\"")
    });
    let path = "/li\u{1b}[2Jne";
    let array = open(&context, &storage, path, At::Latest).unwrap();
    assert_eq!(read(&array).unwrap(), some(10));
    assert_eq!(array.schema().unwrap().attrs()[0].name(), "v\u{7}");
    let error = open(&context, &storage, "/li\u{1b}[2J", At::Latest).unwrap_err();
    assert!(error.message().contains("/li\\u{1b}[2J") && !error.message().contains(is_unprintable), "{error}");
    // What is there may stay, whatever else changes; what is put beside it has a name of its own.
    let grow = Evolution { rename: vec![("v\u{7}".to_owned(), "v".to_owned())], ..Evolution::default() };
    array.alter(&grow, None).unwrap();
    match open_on(&context, storage, "/", false, At::Latest).unwrap() {
        Opened::Group(group) => assert_eq!(group.children().unwrap()[0].0, "li\u{1b}[2Jne"),
        Opened::Array(_) => panic!("a group was made"),
    }
}
