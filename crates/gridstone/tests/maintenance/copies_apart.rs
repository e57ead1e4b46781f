//! Promise: what a context remembers of a store never answers for a copy of it. A copy has the ids of its original, and
//! is read where it lies.

use crate::support::columns::numbers;
use crate::support::copy::{HISTORY, array, copied};
use crate::support::gate::Gate;
use crate::support::scratch::{Folder, copy_folder, unsynced};
use crate::support::writer::{Kind, Write, Writer, context};
use gridstone::base::{ErrorKind, Result};
use gridstone::engine::{Array, At, Call, Context, ReadOrder, Strategy, verify_on};
use gridstone::storage::Storage;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A store in a folder: a dense array whose cells are all in one data file, and a sparse one.
fn written(path: &Path) -> Arc<dyn Storage> {
    let storage = unsynced(path);
    let mut writer = Writer::open(&storage);
    for version in 1..=2 {
        writer.commit(&Write::of(version)).unwrap();
    }
    writer.commit(&Write::new(Kind::WholeBox, 3)).unwrap();
    writer.commit(&Write::new(Kind::ManyCells, 4)).unwrap();
    storage
}

/// Another content where the cells of each data file lie; their ends, where the indexes are, stay.
fn damage(path: &Path) {
    for entry in fs::read_dir(path.join("_data")).unwrap() {
        let file = entry.unwrap().path();
        let mut bytes = fs::read(&file).unwrap();
        let half = bytes.len() / 2;
        bytes[64..half].iter_mut().for_each(|byte| *byte ^= 0x55);
        fs::write(&file, bytes).unwrap();
    }
}

fn cells(array: &Array) -> Result<Vec<i64>> {
    let (found, ..) = array.read(None, None, ReadOrder::Row, &Call::default())?;
    Ok(numbers(&found.attrs[0]))
}

/// All values of both arrays of the store in a folder, read in `context`.
fn read(context: &Context, path: &Path) -> Result<[Vec<i64>; 2]> {
    let storage = unsynced(path);
    let of = |name: &str| cells(&array(context, &storage, name, At::Latest));
    Ok([of("/dense")?, of("/sparse")?])
}

#[test]
fn a_sound_copy_reads_beside_its_damaged_original() {
    let folder = Folder::new("apart");
    let [original, copy, by_hand] = ["a", "b", "c"].map(|name| folder.path().join(name));
    let storage = written(&original);
    copied(&storage, &unsynced(&copy), &HISTORY).unwrap();
    copy_folder(&original, &by_hand);
    let expected = read(&context(), &original).unwrap();
    damage(&original);
    let shared = context();
    for _ in 0..2 {
        assert_eq!(read(&shared, &original).unwrap_err().kind(), ErrorKind::Corruption);
        for sound in [&copy, &by_hand] {
            assert_eq!(read(&shared, sound).unwrap(), expected);
            let report = verify_on(&shared, unsynced(sound), &Call::default()).unwrap();
            assert!(report.damage.is_empty(), "{report:?}");
        }
        let report = verify_on(&shared, unsynced(&original), &Call::default()).unwrap();
        assert!(!report.damage.is_empty());
    }
}

/// The other way round: what is held of the sound one does not hide the damage of the other.
#[test]
fn a_damaged_copy_is_seen_beside_its_sound_original() {
    let folder = Folder::new("apart");
    let [original, copy] = ["a", "b"].map(|name| folder.path().join(name));
    let storage = written(&original);
    copied(&storage, &unsynced(&copy), &HISTORY).unwrap();
    damage(&copy);
    let shared = context();
    let expected = read(&shared, &original).unwrap();
    assert_eq!(read(&shared, &copy).unwrap_err().kind(), ErrorKind::Corruption);
    assert_eq!(read(&shared, &original).unwrap(), expected);
}

/// A folder that is renamed is read under its new name; a sound copy put in the place of a damaged store is read there.
#[test]
fn what_is_put_in_a_place_is_read_there() {
    let folder = Folder::new("apart");
    let [live, backup, aside] = ["live", "backup", "aside"].map(|name| folder.path().join(name));
    let storage = written(&live);
    copied(&storage, &unsynced(&backup), &HISTORY).unwrap();
    let shared = context();
    let expected = read(&shared, &live).unwrap();
    damage(&live);
    for round in 0..3 {
        // The files that the context has open are the damaged ones, under another name now.
        assert_eq!(read(&context(), &live).unwrap_err().kind(), ErrorKind::Corruption, "round {round}");
        drop(read(&shared, &live));
        fs::rename(&live, &aside).unwrap();
        assert_eq!(read(&shared, &aside).unwrap_err().kind(), ErrorKind::Corruption, "round {round}");
        copy_folder(&backup, &live);
        assert_eq!(read(&shared, &live).unwrap(), expected, "round {round}");
        fs::remove_dir_all(&live).unwrap();
        fs::rename(&aside, &live).unwrap();
    }
    // Deleted by the engine, and restored from the backup at the same path.
    drop(read(&shared, &live));
    gridstone::engine::delete_store(&shared, live.to_str().unwrap()).unwrap();
    copied(&unsynced(&backup), &unsynced(&live), &HISTORY).unwrap();
    assert_eq!(read(&shared, &live).unwrap(), expected);
}

/// A copy is consolidated in the background whatever goes on in its original.
#[test]
fn a_copy_is_consolidated_beside_its_original() {
    let folder = Folder::new("apart");
    let [original, copy] = ["a", "b"].map(|name| folder.path().join(name));
    let storage = written(&original);
    Writer::open(&storage).commit(&Write::new(Kind::ManyCells, 5)).unwrap();
    copied(&storage, &unsynced(&copy), &HISTORY).unwrap();
    let shared = context();
    let (gate, held) = Gate::over(storage.clone());
    let beside = unsynced(&copy);
    let open = |storage: &Arc<dyn Storage>| array(&shared, storage, "/sparse", At::Latest);
    let (first, second) = (open(&held), open(&beside));
    gate.shut();
    let running = first.consolidate_in_background(Strategy::All, 1 << 30).unwrap();
    gate.wait_for_somebody();
    let started = second.consolidate_in_background(Strategy::All, 1 << 30);
    gate.open();
    for running in [running, started.unwrap()] {
        assert_eq!(running.wait(Duration::from_secs(60)).unwrap().as_ref().as_ref().unwrap().after, 1);
    }
    assert_eq!(cells(&open(&storage)).unwrap(), cells(&open(&beside)).unwrap());
}
