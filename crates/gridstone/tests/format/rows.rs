//! Promise: rows of a root that no writer would leave are found by the check of the store, each with its object. What a newer release
//! adds to rows and to the floor survives.

use super::newer::{
    damaged, newest, open_for_writing, page_key, replace_in_rows, rerow, reword, root_of, rows_of, some, store,
};
use crate::support::copy::memory;
use crate::support::line::{read, write};
use crate::support::manifest::{Root, Row, encoded, framed};
use crate::support::store::{context, store_of, vacuum};
use gridstone::base::{Entropy, xxh3};
use gridstone::engine::{Call, Keep, verify_on};
use gridstone::runtime::SystemEntropy;
use gridstone::schema::Schema;
use gridstone::storage::{FLOOR, MANIFEST, Storage};
use gridstone::store::{Changes, Operation, StandardRules};
use std::sync::Arc;

const PAGE: &[u8; 8] = b"GSROWS\0\0";
const VALUE: &[u8; 8] = b"GSVALUE\0";

type Memory = Arc<dyn Storage>;

fn row(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Row {
    Row { key: key.into(), flags: 0, value: value.into() }
}

/// Puts an object of the manifest; gives its name, and a row of `key` that refers to it.
fn object(storage: &Memory, id: u8, key: &[u8], magic: &[u8; 8], content: &[u8]) -> (String, Row) {
    let name = format!("{MANIFEST}/{}", format!("{id:02x}").repeat(16));
    storage.put(&name, &framed(magic, content)).unwrap();
    let reference = [&[id; 16][..], &xxh3(content).to_le_bytes(), &(content.len() as u64).to_le_bytes()].concat();
    (name, Row { key: key.to_vec(), flags: if magic == PAGE { 1 } else { 2 }, value: reference })
}

fn add(storage: &Memory, added: &[Row]) {
    rerow(storage, &root_of(storage), |rows| {
        rows.extend(added.iter().cloned());
        rows.sort_by(|a, b| a.key.cmp(&b.key));
    });
}

fn is_sound(storage: &Memory) {
    assert_eq!(verify_on(&context(64), storage.clone(), &Call::default()).unwrap().damage, Vec::new());
    assert_eq!(read(&newest(storage).unwrap()).unwrap().len(), 40);
}

/// The key of a piece of metadata of `/line`.
fn metadata(storage: &Memory, name: &[u8]) -> Vec<u8> {
    [&page_key(storage, "/line")[..17], &[4], name].concat()
}

#[test]
fn rows_of_tags_and_metadata_that_mean_nothing_are_found() {
    let sound = store();
    let tag = |value: &str| row(&b"Tname"[..], value);
    let meta = |value: &[u8]| row(metadata(&sound, b"k"), value);
    let file = |key: &[u8], value: &[u8]| row(key, value);
    add(&sound, &[tag("{\"version\":5,\"ext\":{}}"), file(&[b"Cd", &[7; 16][..]].concat(), b"")]);
    is_sound(&sound);
    for (bad, word) in [
        (meta(b"{\"a\":"), "no JSON"),
        (meta(b""), "no JSON"),
        (meta(b"1 2"), "no JSON"),
        (meta(b"\"\xff\""), "metadata"),
        (row(metadata(&sound, b"\xff"), &b"1"[..]), "not UTF-8"),
        (tag("name"), "not understood"),
        (tag("{\"version\":\"x\"}"), "not understood"),
        (tag("{}"), "not understood"),
        (tag("{\"version\":0}"), "no version that can have one"),
        (tag("{\"version\":-1}"), "not understood"),
        (tag("{\"version\":7}"), "no version that can have one"),
        (row(&b"T"[..], "{\"version\":1}"), "without a name"),
        (row(&b"T\xff"[..], "{\"version\":1}"), "without a name"),
        (row([b'T'; 257], "{\"version\":1}"), "without a name"),
        (file(&[b"Cd", &[7; 15][..]].concat(), b""), "no condemned object"),
        (file(&[b"Cm", &[7; 16][..]].concat(), b"1"), "no condemned object"),
    ] {
        let storage = store();
        let id = page_key(&storage, "/line")[..17].to_vec();
        let key = if bad.key.starts_with(b"I") { [&id[..], &bad.key[17..]].concat() } else { bad.key };
        add(&storage, &[Row { key, ..bad }]);
        assert_eq!(damaged(&storage, word), [root_of(&storage)], "{word}");
    }
    // A value that is an object of its own: the damage is that object's.
    for (value, word) in [(&b"{{"[..], "no JSON"), (b"[\"\xff\"]", "metadata")] {
        let storage = store();
        let (name, large) = object(&storage, 0xee, &metadata(&storage, b"k"), VALUE, value);
        add(&storage, &[large]);
        assert_eq!(damaged(&storage, word), [name], "{word}");
    }
}

#[test]
fn rows_of_schemas_whose_labels_lie_nowhere_are_found() {
    let (owner, hidden) = (SystemEntropy.id(), SystemEntropy.id());
    let along = r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","9"]}],"attrs":[{"name":"lat","dtype":"int8"}]}"#;
    let labels = format!(r#""domain":["0","9"],"labels":{{"array":"{hidden}"}}"#);
    let labelled = along.replace(r#""domain":["0","9"]"#, &labels).replace("lat", "v");
    let folded = || {
        let storage = memory();
        let store = store_of(&storage).with_fold_versions(1);
        let schema = |text: &str| Schema::from_stored_json(text).unwrap();
        let operations = vec![
            Operation::CreateArray { id: owner, path: "/a".to_owned(), schema: schema(&labelled), ext: None },
            Operation::CreateHidden { id: hidden, owner, name: "@x".to_owned(), schema: schema(along), ext: None },
        ];
        let one = store.create(Changes::new(operations)).unwrap();
        store.commit(&one, Changes::default(), &mut StandardRules).unwrap();
        storage
    };
    assert_eq!(verify_on(&context(64), folded(), &Call::default()).unwrap().damage, Vec::new());
    let (own, other) = (hidden.to_string(), SystemEntropy.id().to_string());
    let top = store_of(&folded()).latest().unwrap().node("/").unwrap().id().to_string();
    for (from, to, word) in [
        (own.as_str(), other.as_str(), "which is no hidden array of it"),
        (&own, &top, "which is no hidden array of it"),
        (
            "\"attrs\":[{\"name\":\"lat\"",
            "\"attrs\":[{\"name\":\"q\",\"dtype\":\"int8\"},{\"name\":\"lat\"",
            "it needs one",
        ),
    ] {
        let storage = folded();
        replace_in_rows(&storage, &root_of(&storage), from, to);
        assert_eq!(damaged(&storage, word), [root_of(&storage)], "{word}");
    }
}

#[test]
fn rows_of_commit_keys_that_mean_nothing_are_found() {
    let key = |epoch: u64, hashed: &[u8], key: &[u8]| {
        [b"K", &epoch.to_be_bytes()[..], &xxh3(hashed).to_be_bytes(), key].concat()
    };
    let value =
        |version: u64, number: u64| [&version.to_le_bytes()[..], &[7; 16], &number.to_le_bytes(), b"newer"].concat();
    let count = |value: &str| row(&b"K"[..], value);
    let sound = store();
    add(&sound, &[count("{\"next\":8194}"), row(key(1, b"k", b"k"), value(1, 8_193))]);
    is_sound(&sound);
    for (bad, word) in [
        (vec![count("{}")], "not understood"),
        (vec![count("{\"next\":-1}")], "not understood"),
        (vec![row(key(0, b"k", b"k"), value(1, 0))], "of 0 keys"),
        (vec![count("{\"next\":1}"), row(key(0, b"k", b"k"), value(1, 1))], "of 1 keys"),
        (vec![count("{\"next\":9}"), row(key(1, b"k", b"k"), value(1, 8))], "not one of epoch 1"),
        (vec![count("{\"next\":9}"), row(key(0, b"k", b"k"), value(0, 8))], "names version 0"),
        (vec![count("{\"next\":9}"), row(key(0, b"k", b"k"), value(99, 8))], "names version 99"),
        (vec![count("{\"next\":9}"), row(key(0, b"k", b"k"), &value(1, 8)[..31])], "commit key"),
        (vec![count("{\"next\":9}"), row(key(0, b"l", b"k"), value(1, 8))], "that of none"),
        (vec![count("{\"next\":9}"), row(key(0, b"", b""), value(1, 8))], "that of none"),
        (vec![count("{\"next\":9}"), row(&b"Kshort"[..], value(1, 8))], "that of none"),
    ] {
        let storage = store();
        add(&storage, &bad);
        assert_eq!(damaged(&storage, word), [root_of(&storage)], "{word}");
    }
    // A value that is an object of its own: the damage is that object's.
    let storage = store();
    let (name, large) = object(&storage, 0xee, &key(0, b"k", b"k"), VALUE, &value(99, 8));
    add(&storage, &[count("{\"next\":9}"), large]);
    assert_eq!(damaged(&storage, "names version 99"), [name]);
}

#[test]
fn a_tag_below_the_floor_is_found() {
    let storage = store();
    let array = open_for_writing(&storage);
    vacuum(&array, Keep::Versions(1)).unwrap();
    for at in 0..2 {
        array.refresh().unwrap();
        write(&array, &some(2_000 + 100 * at)).unwrap();
    }
    store_of(&storage).pack(&store_of(&storage).latest().unwrap()).unwrap();
    let name = format!("{MANIFEST}/{}", store_of(&storage).latest().unwrap().root().unwrap().id);
    assert!(Root::of(&storage.read_all(&name).unwrap()).line.contains("\"floor\""));
    rerow(&storage, &name, |rows| {
        rows.push(row(&b"Told"[..], "{\"version\":1}"));
        rows.sort_by(|a, b| a.key.cmp(&b.key));
    });
    assert!(damaged(&storage, "no version that can have one").contains(&name));
}

#[test]
fn an_object_that_is_named_twice_is_found() {
    let storage = store();
    let (name, one) = object(&storage, 0xee, &metadata(&storage, b"k"), VALUE, b"[1]");
    add(&storage, std::slice::from_ref(&one));
    is_sound(&storage);
    add(&storage, &[Row { key: metadata(&storage, b"l"), ..one }]);
    let found = damaged(&storage, "twice");
    assert!(found.contains(&root_of(&storage)) && !found.contains(&name), "{found:?}");
    // Pages without rows are in their place anywhere.
    let storage = store();
    let (_, one) = object(&storage, 0xee, b"Q", PAGE, b"");
    add(&storage, std::slice::from_ref(&one));
    is_sound(&storage);
    add(&storage, &[Row { key: b"R".to_vec(), ..one }]);
    assert!(damaged(&storage, "twice").contains(&root_of(&storage)));
    // A page of fragments and a page of rows of one id.
    let storage = store();
    let key = page_key(&storage, "/line");
    let twice = [&key[18..], &[0; 16][..]].concat();
    add(&storage, &[Row { key: b"Q".to_vec(), flags: 1, value: twice }]);
    assert!(damaged(&storage, "twice").contains(&root_of(&storage)));
}

/// Gives rows of the root to a page of their own, and lets the root refer to it at `key`.
fn paged(storage: &Memory, places: &[usize], key: &[u8]) -> String {
    let rows = rows_of(storage, &root_of(storage));
    let inside: Vec<Row> = places.iter().map(|at| rows[*at].clone()).collect();
    let (name, reference) = object(storage, 0xee, key, PAGE, &encoded(&inside));
    rerow(storage, &root_of(storage), |rows| {
        rows.retain(|row| !inside.contains(row));
        rows.push(reference.clone());
        rows.sort_by(|a, b| a.key.cmp(&b.key));
    });
    name
}

#[test]
fn rows_that_a_lookup_would_miss_are_found() {
    let rows = |storage: &Memory| rows_of(storage, &root_of(storage));
    let whole = store();
    let count = rows(&whole).len();
    let key = |storage: &Memory, at: usize| rows(storage)[at].key.clone();
    for places in [&[0, 1, 2][..], &[count - 2, count - 1]] {
        let storage = store();
        paged(&storage, places, &key(&storage, places[0]));
        is_sound(&storage);
    }
    // The page reaches beyond the next row of the root.
    let storage = store();
    let page = paged(&storage, &[0, 2], &key(&storage, 0));
    assert_eq!(damaged(&storage, "out of order"), [page]);
    // The reference comes after the first row of its page.
    let storage = store();
    let page = paged(&storage, &[0, 1], &key(&storage, 1));
    assert_eq!(damaged(&storage, "out of order"), [page]);
    // A page below a page reaches beyond that one's end, which only the root knows.
    let storage = store();
    let below = paged(&storage, &[0, 2], &key(&storage, 0));
    let reference = rows(&storage)[0].clone();
    let (_, above) = object(&storage, 0xdd, &reference.key, PAGE, &encoded(std::slice::from_ref(&reference)));
    rerow(&storage, &root_of(&storage), |rows| rows[0] = above.clone());
    assert_eq!(damaged(&storage, "out of order"), [below]);
}

/// A group that lies in itself, and two groups of which each lies in the other one.
#[test]
fn groups_in_a_cycle_are_damage_and_no_endless_loop() {
    let head = |storage: &Memory| {
        let rows = rows_of(storage, &root_of(storage));
        let is_top = |row: &&Row| row.key.starts_with(b"I") && row.value.starts_with(b"{\"parent\":null");
        rows.iter().find(is_top).unwrap().key[1..17].to_vec()
    };
    let storage = store();
    let top = head(&storage);
    add(&storage, &[row([b"N", &top[..], b"again"].concat(), [&top[..], &[0]].concat())]);
    assert_eq!(damaged(&storage, "lies in two groups"), [root_of(&storage)]);

    let group = |id: u8, parent: u8| {
        let text =
            format!("{{\"parent\":\"{}\",\"name\":\"g\",\"kind\":\"group\"}}", format!("{parent:02x}").repeat(16));
        let child = row([&b"N"[..], &[parent; 16], b"g"].concat(), [&[id; 16][..], &[0]].concat());
        [row([&b"I"[..], &[id; 16], &[0]].concat(), text), child]
    };
    let ring = [group(0xa1, 0xa2), group(0xa2, 0xa1)].concat();
    let storage = store();
    add(&storage, &ring);
    assert_eq!(damaged(&storage, "of them lie in groups"), [root_of(&storage)]);
    let storage = store();
    add(&storage, &ring);
    add(&storage, &[row([b"N", &head(&storage)[..], b"g"].concat(), [&[0xa1; 16][..], &[0]].concat())]);
    assert_eq!(damaged(&storage, "missing"), [root_of(&storage)]);
}

/// `ext` on rows that do not change.
#[test]
fn ext_of_pages_and_tags_survives_folds() {
    let storage = store();
    let root = root_of(&storage);
    replace_in_rows(&storage, &root, "\"full\":false", "\"full\":false,\"ext\":{\"of\":\"page\"}");
    add(&storage, &[row(&b"Tname"[..], "{\"version\":5,\"ext\":{\"of\":[\"tag\",1]}}")]);
    let kept: Vec<Row> = rows_of(&storage, &root)
        .into_iter()
        .filter(|row| row.key == b"Tname" || row.key == page_key(&storage, "/grid"))
        .collect();
    assert!(kept.len() == 2 && kept.iter().all(|row| String::from_utf8_lossy(&row.value).contains("\"ext\"")));
    let array = open_for_writing(&storage);
    for at in 0..3 {
        write(&array, &some(1_000 + 100 * at)).unwrap();
        store_of(&storage).pack(&store_of(&storage).latest().unwrap()).unwrap();
        array.refresh().unwrap();
        let newest_root = store_of(&storage).latest().unwrap().root().unwrap();
        assert!(newest_root.version > 6 + at as u64);
        let rows = rows_of(&storage, &format!("{MANIFEST}/{}", newest_root.id));
        assert!(kept.iter().all(|row| rows.contains(row)), "{at}");
    }
    assert_eq!(store_of(&storage).latest().unwrap().retained().tag("name").unwrap(), Some(5));
    assert_eq!(verify_on(&context(64), storage.clone(), &Call::default()).unwrap().damage, Vec::new());
}

#[test]
fn features_and_ext_of_the_floor_survive_a_vacuum_that_raises_it() {
    let storage = store();
    let array = open_for_writing(&storage);
    vacuum(&array, Keep::Versions(1)).unwrap();
    let fields = "\"write\":[\"wavelets\"],\"ext\":{\"of\":[\"floor\",3]}";
    reword(&storage, FLOOR, |line| line.replacen("{\"gs\":1,", &format!("{{\"gs\":1,{fields},"), 1));
    let before = store_of(&storage).floor().unwrap().unwrap();
    for at in 0..2 {
        array.refresh().unwrap();
        write(&array, &some(2_000 + 100 * at)).unwrap();
        vacuum(&array, Keep::Versions(1)).unwrap();
    }
    assert!(store_of(&storage).floor().unwrap().unwrap().version > before.version + 1);
    let line = super::newer::line_of(&storage, FLOOR);
    assert!(line.contains(fields), "{line}");
    assert_eq!(read(&newest(&storage).unwrap()).unwrap().len(), 80);
}
