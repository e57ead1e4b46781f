//! The map against a model: any changes, in any portions, give the rows of a sorted map, and untouched pages stay.

use super::frame::{self, ObjectRef};
use super::key;
use super::page::{Child, Entry, Page};
use super::{Change, Inspected, Press, Role, RowMap, Visited, top_of};
use crate::base::{Error, ErrorKind, Id, Result, xxh3};
use crate::storage::{MemoryStorage, Storage, manifest_name};
use crate::store::tests::world::fresh;
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

struct Written {
    storage: Arc<dyn Storage>,
    objects: BTreeSet<Id>,
}

impl Press for Written {
    fn object(&mut self, _: Role, bytes: &[u8], _: u64) -> Result<Id> {
        let id = fresh();
        let mut sink = self.storage.create(&manifest_name(id))?;
        sink.write(bytes)?;
        sink.finish()?;
        self.objects.insert(id);
        Ok(id)
    }
}

type Model = BTreeMap<Bytes, Bytes>;

fn rows_of(map: &RowMap) -> Model {
    let mut found = Model::new();
    map.scan(&[], &mut |row| {
        found.insert(row.key().clone(), map.value_of(row)?);
        Ok(())
    })
    .unwrap();
    found
}

fn objects_of(map: &RowMap) -> BTreeSet<Id> {
    let mut found = BTreeSet::new();
    map.walk(&mut |visited| {
        if let Visited::Page(object) | Visited::Value(object) = visited {
            found.insert(object.id);
        }
        Ok(true)
    })
    .unwrap();
    found
}

fn reopened(map: &RowMap, storage: &Arc<dyn Storage>) -> RowMap {
    let (bytes, sum) = top_of(map).unwrap();
    RowMap::open(&bytes, sum, storage).unwrap()
}

/// A key of a small space, so that changes meet; now and then a long one.
fn a_key() -> impl Strategy<Value = Bytes> {
    (0u16..600, prop::bool::weighted(0.02)).prop_map(|(n, long)| {
        let mut key = format!("{:05}", u32::from(n) * 37 % 997).into_bytes();
        if long {
            key.extend(std::iter::repeat_n(b'x', 40_000));
        }
        key.into()
    })
}

/// Mostly small values; some that are objects of their own; some removals.
fn a_value() -> impl Strategy<Value = Option<Bytes>> {
    prop_oneof![
        1 => Just(None),
        6 => (0usize..900, any::<u8>()).prop_map(|(len, byte)| Some(vec![byte; len].into())),
        1 => (9_000usize..15_000, any::<u8>()).prop_map(|(len, byte)| Some(vec![byte; len].into())),
        1 => (17_000usize..40_000, any::<u8>()).prop_map(|(len, byte)| Some(vec![byte; len].into())),
    ]
}

proptest! {
    #[test]
    fn a_range_that_is_cut_out_takes_its_rows_and_no_others(
        rows in prop::collection::btree_map(a_key(), a_value(), 0..600),
        ends in (a_key(), a_key()),
        changes in prop::collection::btree_map(a_key(), a_value(), 0..40),
    ) {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let mut press = Written { storage: Arc::clone(&storage), objects: BTreeSet::new() };
        let all: Vec<Change> = rows.into_iter().map(|(key, value)| Change { key, value }).collect();
        let map = RowMap::of(Vec::new(), &storage).update(&all, None, &storage, &mut press).unwrap();
        let mut model = rows_of(&map);
        let (low, high) = if ends.0 < ends.1 { ends } else { (ends.1, ends.0) };
        let cut = low..high;
        model.retain(|key, _| !cut.contains(key));
        let changes: Vec<Change> = changes
            .into_iter()
            .filter(|(key, _)| !cut.contains(key))
            .map(|(key, value)| Change { key, value })
            .collect();
        for Change { key, value } in &changes {
            match value {
                Some(value) => model.insert(key.clone(), value.clone()),
                None => model.remove(key),
            };
        }
        let map = reopened(&map, &storage).update(&changes, Some(&cut), &storage, &mut press).unwrap();
        prop_assert_eq!(&rows_of(&reopened(&map, &storage)), &model);
        let keys: Vec<Bytes> = model.keys().cloned().chain([cut.start.clone(), Bytes::from_static(b"z")]).collect();
        let found = reopened(&map, &storage).get_each(&keys).unwrap();
        for (key, value) in keys.iter().zip(found) {
            prop_assert_eq!(value.as_ref(), model.get(key));
        }
    }

    #[test]
    fn a_map_is_what_its_changes_say(
        portions in prop::collection::vec(prop::collection::btree_map(a_key(), a_value(), 0..250), 1..8)
    ) {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let mut press = Written { storage: Arc::clone(&storage), objects: BTreeSet::new() };
        let mut map = RowMap::of(Vec::new(), &storage);
        let mut model = Model::new();
        for portion in portions {
            let before = objects_of(&map);
            press.objects.clear();
            let changes: Vec<Change> = portion.into_iter().map(|(key, value)| Change { key, value }).collect();
            map = reopened(&map, &storage).update(&changes, None, &storage, &mut press).unwrap();
            for Change { key, value } in changes {
                match value {
                    Some(value) => model.insert(key, value),
                    None => model.remove(&key),
                };
            }
            prop_assert!(objects_of(&map).is_subset(&before.union(&press.objects).copied().collect()));
            for map in [map.clone(), reopened(&map, &storage), reopened(&map, &storage).sharing(&map)] {
                prop_assert_eq!(&rows_of(&map), &model);
                for key in model.keys().step_by(7) {
                    let found = map.get(key).unwrap();
                    prop_assert_eq!(found.as_ref(), model.get(key));
                }
                prop_assert_eq!(map.get(b"00000 and none").unwrap(), None);
            }
            let (top, _) = top_of(&map).unwrap();
            prop_assert!(top.len() < 120_000, "{}", top.len());
        }
        let scanned = |prefix: &str| {
            let mut keys = Vec::new();
            map.scan(prefix.as_bytes(), &mut |row| { keys.push(row.key().clone()); Ok(()) }).unwrap();
            keys
        };
        for prefix in ["0", "004", "9", "00999", "zz"] {
            let expected: Vec<Bytes> = model.keys().filter(|key| key.starts_with(prefix.as_bytes())).cloned().collect();
            prop_assert_eq!(scanned(prefix), expected);
        }
    }
}

fn many(storage: &Arc<dyn Storage>, count: u32) -> (RowMap, Written) {
    let mut press = Written { storage: Arc::clone(storage), objects: BTreeSet::new() };
    let value =
        |n: u32| Bytes::from(format!("{:x}", u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)));
    let changes: Vec<Change> =
        (0..count).map(|n| Change { key: Bytes::from(format!("{n:08}")), value: Some(value(n)) }).collect();
    (RowMap::empty().update(&changes, None, storage, &mut press).unwrap(), press)
}

#[test]
fn one_change_among_many_rows_writes_one_page() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let (map, mut press) = many(&storage, 200_000);
    let before = objects_of(&map);
    assert!(before.len() > 50, "{}", before.len());
    press.objects.clear();
    let change = Change { key: Bytes::from_static(b"00100000"), value: Some(Bytes::from_static(b"new")) };
    let next = map.update(&[change], None, &storage, &mut press).unwrap();
    assert_eq!(press.objects.len(), 1);
    assert_eq!(objects_of(&next).difference(&before).count(), 1);
    assert_eq!(rows_of(&map).len(), 200_000);
}

/// Pages that lie in the range are left out unread: they may be missing.
#[test]
fn a_range_is_cut_out_without_its_pages() {
    let memory = MemoryStorage::new();
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    let (map, mut press) = many(&storage, 200_000);
    let (key, before) = (|n: u32| Bytes::from(format!("{n:08}")), objects_of(&map));
    let map = reopened(&map, &storage);
    let kept = map.update(&[], Some(&(key(10_000)..key(190_000))), &storage, &mut press).unwrap();
    assert_eq!(rows_of(&kept).len(), 20_000);
    let gone: Vec<Id> = before.difference(&objects_of(&kept)).copied().collect();
    assert!(gone.len() > 50, "{}", gone.len());
    let borders = [10_000, 189_999].map(|n| match map.top.at(&key(n)) {
        Some((Entry::Page(_, child), _)) => child.reference.id,
        _ => panic!("no page"),
    });
    for id in gone.into_iter().filter(|id| !borders.contains(id)) {
        memory.delete(&manifest_name(id)).unwrap();
    }
    let again = reopened(&map, &storage).update(&[], Some(&(key(10_000)..key(190_000))), &storage, &mut press).unwrap();
    assert_eq!(rows_of(&again), rows_of(&kept));
}

#[test]
fn rows_that_go_leave_a_small_map() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let (map, mut press) = many(&storage, 50_000);
    let changes: Vec<Change> = rows_of(&map).into_keys().skip(20).map(|key| Change { key, value: None }).collect();
    let next = map.update(&changes, None, &storage, &mut press).unwrap();
    assert_eq!((rows_of(&next).len(), objects_of(&next).len()), (20, 0));
}

#[test]
fn every_flipped_bit_of_a_page_or_a_value_is_an_error() {
    let memory = MemoryStorage::new();
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    let mut press = Written { storage: Arc::clone(&storage), objects: BTreeSet::new() };
    let large = Change { key: Bytes::from_static(b"k"), value: Some(vec![7; 20_000].into()) };
    let map = RowMap::of(Vec::new(), &storage).update(&[large], None, &storage, &mut press).unwrap();
    let name = manifest_name(*press.objects.first().unwrap());
    let (top, sum) = top_of(&map).unwrap();
    let bytes = storage.read_all(&name).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut bad = bytes.to_vec();
        bad[bit / 8] ^= 1 << (bit % 8);
        memory.put(&name, &bad).unwrap();
        RowMap::open(&top, sum, &storage).unwrap().get(b"k").unwrap_err();
    }
    for bit in 0..top.len() * 8 {
        let mut bad = top.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        RowMap::open(&bad, sum, &storage).unwrap_err();
    }
}

/// A page whose rows are said to begin elsewhere could hide rows.
#[test]
fn a_page_out_of_its_place_is_damage() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let (map, _) = many(&storage, 50_000);
    let mut entries = map.top.entries.clone();
    let Entry::Page(_, child) = entries[1].clone() else { panic!("no page") };
    entries[0] = Entry::Page(entries[0].key().clone(), Arc::new(Child::new(child.reference)));
    let crossed = RowMap { top: Arc::new(Page { entries }), storage: map.storage.clone() };
    let error: Error = crossed.get(b"00000005").unwrap_err();
    assert!(error.to_string().contains("out of order"), "{error}");
}

fn page_in(storage: &Arc<dyn Storage>, entries: Vec<Entry>) -> Arc<Child> {
    let mut press = Written { storage: Arc::clone(storage), objects: BTreeSet::new() };
    let content = Page::encode(&entries);
    let object = frame::encode(frame::ROWS, &content).unwrap();
    let id = press.object(Role::Rows(Bytes::new()), &object, xxh3(&content)).unwrap();
    Arc::new(Child::new(ObjectRef { id, xxh3: xxh3(&content), bytes: content.len() as u64 }))
}

fn row(key: &'static str) -> Entry {
    Entry::Value(Bytes::from(key), Bytes::from_static(b"v"))
}

fn reference(key: &'static str, page: &Arc<Child>) -> Entry {
    Entry::Page(Bytes::from(key), Arc::new(Child::new(page.reference)))
}

fn map_of(entries: Vec<Entry>, storage: &Arc<dyn Storage>) -> RowMap {
    RowMap { top: Arc::new(Page { entries }), storage: Some(Arc::clone(storage)) }
}

/// Every way through the map meets an error with this word.
fn is_damage_everywhere(map: &RowMap, key: &'static str, word: &str) {
    let change = Change { key: Bytes::from(key), value: None };
    let mut press = Written { storage: map.storage.clone().unwrap(), objects: BTreeSet::new() };
    let errors = [
        map.get(key.as_bytes()).unwrap_err(),
        map.scan(&[], &mut |_| Ok(())).unwrap_err(),
        map.scan(key.as_bytes(), &mut |_| Ok(())).unwrap_err(),
        map.walk(&mut |_| Ok(true)).unwrap_err(),
        map.get_each(&[Bytes::from(key)]).unwrap_err(),
        map.update(&[change], None, map.storage.as_ref().unwrap(), &mut press).map(drop).unwrap_err(),
    ];
    assert!(errors.iter().all(|e| e.kind() == ErrorKind::Corruption && e.message().contains(word)), "{errors:?}");
    let mut found = Vec::new();
    map.inspect(&mut |inspected| {
        if let Inspected::Page(_, _, Err(e)) = inspected {
            found.push(e);
        }
        Ok(())
    })
    .unwrap();
    assert!(found.len() == 1 && found[0].message().contains(word), "{found:?}");
}

/// A page below a page ends where that one ends, also where it has been loaded for a map in which it was in its place.
#[test]
fn a_page_that_reaches_beyond_the_page_above_is_damage() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let first = page_in(&storage, vec![row("a1")]);
    let last = page_in(&storage, vec![row("a3"), row("c9")]);
    let middle = page_in(&storage, vec![reference("a", &first), reference("a2", &last)]);
    let alone = map_of(vec![reference("a", &middle), row("d")], &storage);
    assert_eq!(rows_of(&alone).len(), 4);
    let crossed = || map_of(vec![reference("a", &middle), row("b")], &storage);
    for map in [crossed(), crossed().sharing(&alone)] {
        is_damage_everywhere(&map, "a3", "out of order");
        assert!(map.get(b"a1").unwrap().is_some() && map.get(b"b").unwrap().is_some(), "the other page is sound");
    }
    // A page that begins before its key.
    for map in [
        map_of(vec![reference("a2", &first)], &storage),
        map_of(vec![reference("a2", &first)], &storage).sharing(&alone),
    ] {
        is_damage_everywhere(&map, "a3", "out of order");
    }
}

/// Pages that name each other in a ring, which only a forgery can do with right checksums. A further row in one of them is
/// out of its place already where the ring comes around.
#[test]
fn pages_in_a_cycle_are_damage_and_no_endless_loop() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let page = |n: u64| Arc::new(Child::new(ObjectRef { id: fresh(), xxh3: n, bytes: n }));
    for (pages, with_row, word) in [(1, false, "deep"), (3, false, "deep"), (1, true, "order"), (3, true, "order")] {
        let ring: Vec<Arc<Child>> = (0..pages).map(page).collect();
        for (at, child) in ring.iter().enumerate() {
            let next = Arc::clone(&ring[(at + 1) % ring.len()]);
            let mut entries = vec![Entry::Page(Bytes::from("a"), next)];
            entries.extend((with_row && at == 0).then(|| row("b")));
            child.loaded.set(Arc::new(Page { entries })).unwrap();
        }
        let top = vec![Entry::Page(Bytes::from("a"), Arc::clone(&ring[0]))];
        is_damage_everywhere(&map_of(top, &storage), "a5", word);
    }
}

#[test]
fn keys_sort_as_what_they_are_about() {
    let (one, two) = (Id([1; 16]), Id([2; 16]));
    let sorted = [
        key::head(one),
        key::page(one, one),
        key::schema(one, 9),
        key::schema(one, 0),
        key::metadata(one, ""),
        key::metadata(one, "a"),
        key::head(two),
    ];
    assert!(sorted.is_sorted());
    assert!(sorted[..6].iter().all(|key| key.starts_with(&key::node(one))));
    assert_eq!(key::read_node(&sorted[3]), Some((one, key::NodeRow::Schema(0))));
    assert_eq!(key::after(&[1, 255, 255]).as_deref(), Some(&[2][..]));
    assert_eq!(key::after(&[255]), None);
}

/// References to pages lie in pages too once there are many; every row is found by its key, and by a scan of its
/// prefix.
#[test]
fn rows_under_two_levels_of_references_are_found() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let mut press = Written { storage: Arc::clone(&storage), objects: BTreeSet::new() };
    let row = |n: u32| Change { key: Bytes::from(format!("{n:08}")), value: Some(vec![n as u8; 900].into()) };
    let map = RowMap::empty().update(&(0..130_000).map(row).collect::<Vec<_>>(), None, &storage, &mut press).unwrap();
    assert!(map.top.entries.len() < 100, "{}", map.top.entries.len());
    for n in 0..130_000 {
        let key = format!("{n:08}");
        assert!(map.get(key.as_bytes()).unwrap().is_some(), "{key}");
        let mut found = 0;
        map.scan(key.as_bytes(), &mut |_| {
            found += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(found, 1, "{key}");
    }
    // A change in each of many pages, so that references are cut anew.
    let changes: Vec<Change> = (0..130_000)
        .step_by(97)
        .map(|n| Change { key: Bytes::from(format!("{n:08}x")), value: Some(vec![7; 9_000].into()) })
        .collect();
    let next = map.update(&changes, None, &storage, &mut press).unwrap();
    (0..130_000).for_each(|n| assert!(next.get(format!("{n:08}").as_bytes()).unwrap().is_some(), "{n}"));
    assert!(changes.iter().all(|change| next.get(&change.key).unwrap().is_some()));
}

/// The longest keys of metadata, alike but for their ends.
#[test]
fn long_keys_do_not_lie_deep() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let mut press = Written { storage: Arc::clone(&storage), objects: BTreeSet::new() };
    let key = |n: u32| Bytes::from(format!("{}{n:06}", "k".repeat(65_530)));
    let changes: Vec<Change> =
        (0..300).map(|n| Change { key: key(n), value: Some(Bytes::from_static(b"1")) }).collect();
    let map = RowMap::empty().update(&changes, None, &storage, &mut press).unwrap();
    let map = map.update(&changes[..100], None, &storage, &mut press).unwrap();
    assert!((0..300).all(|n| map.get(&key(n)).unwrap().is_some()));
    assert_eq!(rows_of(&map).len(), 300);
}
