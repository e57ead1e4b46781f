//! Promise: files that are kept beside an array, a fragment or a data file live as long as their owner and their entry do, and no
//! longer. Copies take them along. A lost one is found, and no cell is lost by it.

use super::newer::{newest, open_for_writing, some, store};
use crate::support::copy::{WHOLE, copied, memory};
use crate::support::line::{read, write};
use crate::support::room::{commit, entry, id_of};
use crate::support::store::{context, nothing_is_left, store_of, vacuum};
use gridstone::base::{ErrorKind, FileRef, Id};
use gridstone::engine::{Call, CopyOptions, Keep, RepairOptions, Strategy, repair_on, verify_on};
use gridstone::fragment::Description;
use gridstone::storage::{Storage, data_name};
use gridstone::store::{Kept, Operation, Owner};
use std::sync::Arc;

type Memory = Arc<dyn Storage>;

fn keep(storage: &Memory, kept: &Kept, near: Option<&Description>) -> gridstone::base::Result<u64> {
    let near = near.map(|d| d.bounds.clone());
    commit(storage, vec![Operation::Keep { array: id_of(storage, "/line"), kept: kept.clone(), near }])
}

fn fragments(storage: &Memory) -> Vec<Arc<Description>> {
    store_of(storage).latest().unwrap().array("/line").unwrap().fragments(None).unwrap()
}

/// The entries of `/line`, by the ids of their files.
fn entries(storage: &Memory) -> Vec<Id> {
    let kept = store_of(storage).latest().unwrap().array("/line").unwrap().kept().unwrap();
    kept.iter().map(|kept| kept.files[0].id).collect()
}

fn is_there(storage: &Memory, kept: &Kept) -> bool {
    storage.exists(&data_name(kept.files[0].id)).unwrap()
}

fn is_sound(storage: &Memory, what: &str) {
    assert_eq!(verify_on(&context(64), storage.clone(), &Call::default()).unwrap().damage, Vec::new(), "{what}");
    assert_eq!(read(&newest(storage).unwrap()).unwrap().len(), 40, "{what}");
}

fn pack_of(d: &Description) -> Id {
    match d.location.file {
        FileRef::Data(file) => file,
        other => panic!("{other:?} is no data file"),
    }
}

/// A store with an entry of each kind of owner: the array, its first fragment, the data file that has it.
fn with_entries() -> (Memory, [Kept; 3]) {
    let storage = store();
    let first = fragments(&storage)[0].clone();
    let owners = [Owner::Array, Owner::Fragment(first.id), Owner::Data(pack_of(&first))];
    let kept = owners.map(|owner| entry(&storage, owner, &format!("beside {owner:?}")));
    kept.iter().for_each(|kept| _ = keep(&storage, kept, Some(&first)).unwrap());
    (storage, kept)
}

fn fold(storage: &Memory) {
    let store = store_of(storage);
    store.pack(&store.latest().unwrap()).unwrap();
}

#[test]
fn files_live_as_long_as_their_owner_and_their_entry() {
    for folds in [false, true] {
        let what = format!("folds: {folds}");
        let (storage, [array, fragment, data]) = with_entries();
        let lost = entry(&storage, Owner::Array, "nobody committed it");
        let settle = || {
            if folds {
                fold(&storage);
            }
            is_sound(&storage, &what);
            vacuum(&open_for_writing(&storage), Keep::Versions(1)).unwrap();
            is_sound(&storage, &what);
            nothing_is_left(&storage, &what);
        };
        settle();
        assert_eq!([&array, &fragment, &data, &lost].map(|kept| is_there(&storage, kept)), [true, true, true, false]);
        assert_eq!(entries(&storage).len(), 3);
        // A merge takes the fragment, and with it the last one of the file.
        open_for_writing(&storage).consolidate(&Strategy::All, 1 << 20, false, &Call::default()).unwrap();
        assert_eq!(entries(&storage), [array.files[0].id]);
        settle();
        assert_eq!([&array, &fragment, &data].map(|kept| is_there(&storage, kept)), [true, false, false]);
        assert_eq!(entries(&storage), [array.files[0].id]);
        commit(&storage, vec![Operation::Release { array: id_of(&storage, "/line"), entry: array.entry }]).unwrap();
        assert!(entries(&storage).is_empty());
        settle();
        assert!(!is_there(&storage, &array));
    }
}

#[test]
fn files_of_an_array_go_with_it() {
    let (storage, kept) = with_entries();
    let grid = gridstone::engine::CopyOptions { path: "/grid", target_path: "/other", ..WHOLE };
    copied(&storage, &storage, &grid).unwrap();
    fold(&storage);
    commit(&storage, vec![Operation::Remove { id: id_of(&storage, "/line") }]).unwrap();
    let grid = crate::support::store::open(&context(64), &storage, "/grid", gridstone::engine::At::Latest).unwrap();
    vacuum(&grid, Keep::Versions(1)).unwrap();
    assert!(kept.iter().all(|kept| !is_there(&storage, kept)));
    nothing_is_left(&storage, "the array is gone");
    assert_eq!(verify_on(&context(64), storage.clone(), &Call::default()).unwrap().damage, Vec::new());
}

#[test]
fn what_is_kept_beside_something_that_is_gone_is_a_conflict() {
    let storage = store();
    let first = fragments(&storage)[0].clone();
    let beside = |owner| entry(&storage, owner, "content");
    for (owner, near) in [(Owner::Fragment(Id([1; 16])), None), (Owner::Data(Id([1; 16])), Some(first.as_ref()))] {
        let error = keep(&storage, &beside(owner), near).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    }
    let unknown = Operation::Release { array: id_of(&storage, "/line"), entry: Id([3; 16]) };
    assert_eq!(commit(&storage, vec![unknown]).unwrap_err().kind(), ErrorKind::Conflict);
    let mut missing = beside(Owner::Array);
    missing.files[0].id = Id([2; 16]);
    let error = keep(&storage, &missing, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.message().contains("is missing"), "{error}");
    // A file that a vacuum has condemned.
    let late = beside(Owner::Array);
    vacuum(&open_for_writing(&storage), Keep::Versions(1)).unwrap();
    assert_eq!(keep(&storage, &late, None).unwrap_err().kind(), ErrorKind::Conflict);
    let unnamed = Kept { kind: String::new(), ..beside(Owner::Array) };
    assert_eq!(keep(&storage, &unnamed, None).unwrap_err().kind(), ErrorKind::Input);
}

#[test]
fn copies_take_the_files_along() {
    let (storage, [array, fragment, data]) = with_entries();
    let contents = |storage: &Memory| {
        let kept = store_of(storage).latest().unwrap().array("/line").unwrap().kept().unwrap();
        let mut found: Vec<String> = kept
            .iter()
            .map(|kept| {
                assert_eq!((kept.kind.as_str(), &kept.ext), ("a kind of later", &array.ext));
                String::from_utf8(storage.read_all(&data_name(kept.files[0].id)).unwrap().to_vec()).unwrap()
            })
            .collect();
        found.sort();
        found
    };
    let history = memory();
    copied(&storage, &history, &CopyOptions { history: true, ..WHOLE }).unwrap();
    assert_eq!(contents(&history), contents(&storage));
    is_sound(&history, "a copy with its history");
    // The small fragments of a copy wait in its record: there is no data file that the entry could belong to.
    let target = memory();
    let error = copied(&storage, &target, &WHOLE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(target.list("_data").unwrap().is_empty(), "what was written is gone again");
    commit(&storage, vec![Operation::Release { array: id_of(&storage, "/line"), entry: data.entry }]).unwrap();
    let target = memory();
    copied(&storage, &target, &WHOLE).unwrap();
    assert_eq!(contents(&target), contents(&storage));
    is_sound(&target, "a copy");
    let first = fragments(&target)[0].id;
    let kept = store_of(&target).latest().unwrap().array("/line").unwrap().kept().unwrap();
    let owners: Vec<Owner> = kept.iter().map(|kept| kept.owner).collect();
    assert!(owners.contains(&Owner::Array) && owners.contains(&Owner::Fragment(first)), "{owners:?}");
    assert!(kept.iter().all(|kept| ![array.entry, fragment.entry].contains(&kept.entry)));
    vacuum(&open_for_writing(&target), Keep::Versions(1)).unwrap();
    assert_eq!(contents(&target).len(), 2);
}

#[test]
fn a_lost_or_changed_file_is_found_and_no_cell_is_lost_by_it() {
    for folds in [false, true] {
        let (storage, [array, fragment, _]) = with_entries();
        if folds {
            fold(&storage);
        }
        let names = [&array, &fragment].map(|kept| data_name(kept.files[0].id));
        storage.delete(&names[0]).unwrap();
        storage.put(&names[1], b"longer than what was kept under this name").unwrap();
        let report = verify_on(&context(64), storage.clone(), &Call::default()).unwrap();
        let mut found: Vec<&str> = report.damage.iter().map(|d| d.object.as_str()).collect();
        let mut expected = [names[0].as_str(), names[1].as_str()];
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
        assert!(report.damage.iter().all(|d| d.versions.is_empty() && d.cells.is_empty()), "{report:?}");
        assert_eq!(read(&newest(&storage).unwrap()).unwrap().len(), 40);
        let options = RepairOptions { dry_run: false, cut: false };
        let report = repair_on(&context(64), storage.clone(), options, &Call::default()).unwrap();
        assert_eq!((report.remaining.len(), report.committed, report.lost.len()), (2, None, 0));
        write(&open_for_writing(&storage), &some(900)).unwrap();
    }
}
