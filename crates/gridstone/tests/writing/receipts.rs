//! Receipts: written in many processes, committed by one, once.

use crate::support::child::{Child, Folder, say};
use crate::support::columns::{bytes_of, view};
use crate::support::pair::{cells, memory, one, opened, schema};
use crate::support::writer::{CellMap, commit_cells, context};
use gridstone::base::{ErrorKind, Result};
use gridstone::engine::{
    Array, At, Call, CellData, Condition, Dedup, Isolation, Opened, Receipt, Strategy, Transaction, commit_receipts,
    commit_receipts_on, create_array, open, open_on,
};
use gridstone::storage::{CountingStorage, MemoryStorage, Operation, Storage};
use gridstone_testkit::Dice;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

const ALL: ((i64, i64), (i64, i64)) = ((0, 39), (0, 39));

fn receipt(array: &Array, cells: &CellMap) -> Receipt {
    let column = |f: fn((&(i64, i64), &i64)) -> i64| bytes_of(cells.iter().map(f));
    let (rows, columns, values) = (column(|(at, _)| at.0), column(|(at, _)| at.1), column(|(_, v)| *v));
    let attrs = vec![("v".to_owned(), view(&values))];
    let data = CellData { dims: vec![view(&rows), view(&columns)], attrs, sorted: false, dedup: Dedup::Error };
    array.receipt(vec![array.stage_cells(data, &Call::default()).unwrap()]).unwrap()
}

/// Sent through text, as between processes.
fn sent(receipt: &Receipt) -> Receipt {
    let text = receipt.to_json().unwrap();
    let back = Receipt::from_json(&text).unwrap();
    assert_eq!(back.to_json().unwrap(), text);
    back
}

fn commit(storage: &Arc<dyn Storage>, receipts: &[Receipt]) -> Result<u64> {
    commit_receipts_on(&context(), storage.clone(), receipts, None)
}

fn refused(storage: &Arc<dyn Storage>, receipts: &[Receipt], kind: ErrorKind, word: &str) {
    let version = opened(&context(), storage, "/dense").version();
    let error = commit(storage, receipts).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.message().contains(word), "{error}");
    assert_eq!(opened(&context(), storage, "/dense").version(), version, "nothing was committed");
}

#[test]
fn receipts_of_several_arrays_make_one_version_and_the_later_wins() {
    let storage = memory();
    let (dense, sparse) = (opened(&context(), &storage, "/dense"), opened(&context(), &storage, "/sparse"));
    let receipts = [
        receipt(&sparse, &one(1, 1, 10)),
        receipt(&dense, &one(2, 2, 20)),
        receipt(&sparse, &CellMap::from([((1, 1), 11), ((3, 3), 30)])),
    ];
    assert_eq!(cells(&opened(&context(), &storage, "/sparse"), ALL), CellMap::new(), "nothing is seen before");
    let sent: Vec<Receipt> = receipts.iter().map(sent).collect();
    assert_eq!(commit_receipts_on(&context(), storage.clone(), &sent, Some("both".to_owned())).unwrap(), 3);
    let sparse = opened(&context(), &storage, "/sparse");
    assert_eq!(cells(&sparse, ALL), CellMap::from([((1, 1), 11), ((3, 3), 30)]));
    assert_eq!(cells(&opened(&context(), &storage, "/dense"), ALL), one(2, 2, 20));
    assert_eq!(sparse.history(&Call::default()).unwrap().last().unwrap().message.as_deref(), Some("both"));
    assert!(sparse.fragments().unwrap().iter().all(|f| !f.inline));
    assert_eq!((receipts[2].cells(), receipts[2].fragment_ids().len()), (2, 1));

    let storage = memory();
    let sparse = opened(&context(), &storage, "/sparse");
    let (first, second) = (receipt(&sparse, &one(1, 1, 1)), receipt(&sparse, &one(1, 1, 2)));
    commit(&storage, &[second, first]).unwrap();
    assert_eq!(cells(&opened(&context(), &storage, "/sparse"), ALL), one(1, 1, 1), "the order of the call counts");
}

#[test]
fn what_a_receipt_tells_of_is_in_durable_files_before_it_is_given() {
    let counting = Arc::new(CountingStorage::new(memory()));
    let storage: Arc<dyn Storage> = counting.clone();
    let sparse = opened(&context(), &storage, "/sparse");
    counting.reset();
    receipt(&sparse, &one(1, 1, 1));
    let counts = counting.snapshot();
    assert_eq!((counts.count(Operation::Create), counts.count(Operation::Finish)), (1, 1));
    assert_eq!(counts.count(Operation::PutIfAbsent), 0);
    let nothing = receipt(&sparse, &CellMap::new());
    assert_eq!((nothing.cells(), commit(&storage, &[sent(&nothing)]).unwrap()), (0, 2), "no cells, no commit");
    assert_eq!(commit(&storage, &[]).unwrap(), 2);
}

#[test]
fn a_receipt_is_committed_once() {
    let storage = memory();
    let sparse = opened(&context(), &storage, "/sparse");
    let mine = receipt(&sparse, &one(1, 1, 1));
    refused(&storage, &[mine.clone(), sent(&mine)], ErrorKind::Input, "twice");
    let mut other_name = mine.clone();
    other_name.id = gridstone::base::Id([9; 16]);
    refused(&storage, &[mine.clone(), other_name], ErrorKind::Input, "twice");
    commit(&storage, std::slice::from_ref(&mine)).unwrap();
    refused(&storage, std::slice::from_ref(&mine), ErrorKind::Conflict, "in version 3");
    // Its fragment goes: merged with another. No later state has it.
    commit_cells(&opened(&context(), &storage, "/sparse"), &one(2, 2, 2), None).unwrap();
    opened(&context(), &storage, "/sparse").consolidate(&Strategy::All, 1 << 20, false, &Call::default()).unwrap();
    let merged = opened(&context(), &storage, "/sparse");
    assert_eq!(merged.fragments().unwrap().len(), 1);
    let more = receipt(&sparse, &one(4, 4, 4));
    refused(&storage, &[more.clone(), mine], ErrorKind::Conflict, "in version 3");
    commit(&storage, &[more]).unwrap();
}

/// Two that commit the same receipt at the same time: one does.
#[test]
fn a_receipt_is_committed_once_by_whoever_comes_first() {
    for _ in 0..50 {
        let storage = memory();
        let mine = receipt(&opened(&context(), &storage, "/sparse"), &one(1, 1, 1));
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| commit(&storage, std::slice::from_ref(&mine)))).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert_eq!(outcomes.iter().filter(|o| o.is_ok()).count(), 1, "{outcomes:?}");
        assert!(outcomes.iter().flat_map(Result::as_ref).all(|version| *version == 3));
        assert!(outcomes.iter().filter_map(|o| o.as_ref().err()).all(|e| e.kind() == ErrorKind::Conflict));
    }
}

#[test]
fn a_receipt_that_does_not_fit_is_refused() {
    let storage = memory();
    let (dense, sparse) = (opened(&context(), &storage, "/dense"), opened(&context(), &storage, "/sparse"));
    let good = receipt(&dense, &one(1, 1, 1));
    let stranger = memory();
    let foreign = receipt(&opened(&context(), &stranger, "/sparse"), &one(1, 1, 1));
    refused(&storage, &[good.clone(), foreign.clone()], ErrorKind::Input, "is of the store");

    let name = |receipt: &Receipt| format!("_data/{}.frag", receipt.fragment_ids()[0]);
    let gone = receipt(&sparse, &one(1, 1, 1));
    storage.delete(&name(&gone)).unwrap();
    refused(&storage, &[good.clone(), gone.clone()], ErrorKind::NotFound, &name(&gone));

    // Any change of its bytes near the end, and of its length.
    let changed = receipt(&sparse, &one(1, 1, 1));
    let bytes = storage.read_all(&name(&changed)).unwrap().to_vec();
    for at in bytes.len() - 64..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 1;
        storage.put(&name(&changed), &bad).unwrap();
        refused(&storage, &[good.clone(), changed.clone()], ErrorKind::Corruption, &name(&changed));
    }
    for bad in [&bytes[..bytes.len() - 1], &[bytes.as_slice(), b"x"].concat(), &[]] {
        storage.put(&name(&changed), bad).unwrap();
        refused(&storage, &[good.clone(), changed.clone()], ErrorKind::Corruption, &name(&changed));
    }
    // A file that is whole in itself and ends otherwise than it was written.
    let mut otherwise = changed.clone();
    otherwise.footers[0] ^= 1;
    storage.put(&name(&changed), &bytes).unwrap();
    refused(&storage, &[good.clone(), otherwise], ErrorKind::Corruption, "last bytes");
    // Another fragment under its name, whole in itself.
    let twin = receipt(&sparse, &one(1, 1, 2));
    storage.put(&name(&changed), &storage.read_all(&name(&twin)).unwrap()).unwrap();
    refused(&storage, std::slice::from_ref(&changed), ErrorKind::Corruption, &name(&changed));
    storage.put(&name(&changed), &bytes).unwrap();

    let replaced = Transaction::begin_on(&context(), storage.clone(), Isolation::Snapshot).unwrap();
    replaced.create_array("/sparse", schema(true), true).unwrap();
    replaced.commit(None).unwrap();
    refused(&storage, &[good.clone(), changed.clone()], ErrorKind::Conflict, "/sparse");
    assert_eq!(commit(&storage, &[good]).unwrap(), 4, "what was refused with others is still good alone");
}

#[test]
fn what_is_no_receipt_is_refused() {
    let storage = memory();
    let text = receipt(&opened(&context(), &storage, "/sparse"), &one(1, 1, 1)).to_json().unwrap();
    for cut in 0..text.len() {
        assert_eq!(Receipt::from_json(&text[..cut]).unwrap_err().kind(), ErrorKind::Input);
    }
    for bad in ["{}", "[]", "7", r#"{"gridstone_receipt":"1"}"#, r#"{"gridstone_receipt":1}"#] {
        assert_eq!(Receipt::from_json(bad).unwrap_err().kind(), ErrorKind::Input);
    }
    let later = text.replacen(r#""gridstone_receipt":1"#, r#""gridstone_receipt":2"#, 1);
    assert_eq!(Receipt::from_json(&later).unwrap_err().kind(), ErrorKind::Unsupported);
    let (before, _) = text.split_once(r#""footers":["#).unwrap();
    let lost_footer = format!(r#"{before}"footers":[]}}"#);
    assert_eq!(Receipt::from_json(&lost_footer).unwrap_err().kind(), ErrorKind::Input);
    let newer = text.replacen(r#""footers":"#, r#""sums":[],"footers":"#, 1);
    let error = Receipt::from_json(&newer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("newer release") && error.message().contains("\"sums\""), "{error}");
}

fn condition(text: &str) -> Condition {
    Condition::parse(text).unwrap()
}

fn receipt_where(array: &Array, text: &str) -> Receipt {
    array.receipt_where(None, &condition(text), &Call::default()).unwrap()
}

/// Cells of some places, none of them 0.
fn some(dice: &mut Dice, count: usize) -> CellMap {
    let value = |dice: &mut Dice| (1 + dice.below(50) as i64) * if dice.below(2) == 0 { 1 } else { -1 };
    (0..count).map(|_| ((dice.below(40) as i64, dice.below(40) as i64), value(dice))).collect()
}

/// One history around a receipt of a delete; says whether something was merged meanwhile, and whether it was refused.
fn a_delete_waits(path: &str, dice: &mut Dice) -> (bool, bool) {
    let storage = memory();
    let array = opened(&context(), &storage, path);
    let mut now = CellMap::new();
    let write = |now: &mut CellMap, dice: &mut Dice| {
        let count = 1 + dice.below(200);
        let cells = some(dice, count);
        commit_cells(&array, &cells, None).unwrap();
        now.extend(&cells);
        cells
    };
    for _ in 0..1 + dice.below(5) {
        write(&mut now, dice);
    }
    let mut doomed: BTreeSet<(i64, i64)> = now.iter().filter(|(_, v)| **v < 0).map(|(place, _)| *place).collect();
    let mine = receipt_where(&array, "v < 0");
    assert_eq!(cells(&opened(&context(), &storage, path), ALL), now, "nothing is deleted before the commit");
    let mut merged = false;
    for _ in 0..dice.below(5) {
        match dice.below(4) {
            0 => {
                array.delete_where(None, &condition("v between -20 and 10"), None, &Call::default()).unwrap();
                now.retain(|_, v| !(-20..=10).contains(v));
            }
            1 => {
                array.consolidate(&Strategy::All, 1 << 20, false, &Call::default()).unwrap();
                merged = true;
            }
            _ => {
                let cells = write(&mut now, dice);
                doomed.retain(|place| !cells.contains_key(place));
            }
        }
    }
    let version = opened(&context(), &storage, path).version();
    let mine = if dice.below(2) == 0 { sent(&mine) } else { mine };
    let refused = match commit(&storage, std::slice::from_ref(&mine)) {
        Ok(_) => {
            now.retain(|place, _| !doomed.contains(place));
            false
        }
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
            assert_eq!(opened(&context(), &storage, path).version(), version);
            true
        }
    };
    assert_eq!(cells(&opened(&context(), &storage, path), ALL), now);
    (merged, refused)
}

#[test]
fn a_receipt_deletes_what_its_maker_saw_and_nothing_newer() {
    for path in ["/dense", "/sparse"] {
        let lives: Vec<_> = (0..150).map(|seed| a_delete_waits(path, &mut Dice::new(seed))).collect();
        let count = |life: (bool, bool)| lives.iter().filter(|found| **found == life).count();
        assert_eq!(count((false, true)), 0, "{path}: only merges stand in its way");
        assert!(count((false, false)) > 30 && count((true, true)) > 10, "{path}: {lives:?}");
    }
    // Merged alone, without anything newer, dense cells are deleted as before.
    let lives: Vec<_> = (0..150).map(|seed| a_delete_waits("/dense", &mut Dice::new(seed))).collect();
    assert!(lives.contains(&(true, false)), "{lives:?}");
}

#[test]
fn a_receipt_of_a_delete_that_does_not_fit_is_refused() {
    for path in ["/dense", "/sparse"] {
        let storage = memory();
        let array = opened(&context(), &storage, path);
        commit_cells(&array, &CellMap::from([((1, 1), -1), ((2, 2), 2)]), None).unwrap();
        let nothing = receipt_where(&array, "v > 1000");
        assert_eq!((nothing.fragment_ids().len(), commit(&storage, &[sent(&nothing)]).unwrap()), (0, 3));
        let mine = receipt_where(&array, "v < 0");
        let name = format!("_data/{}.frag", mine.fragment_ids()[0]);
        let bytes = storage.read_all(&name).unwrap().to_vec();
        for at in (0..bytes.len()).step_by(if path == "/sparse" { 1 } else { bytes.len() }).chain([bytes.len() - 1]) {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            storage.put(&name, &bad).unwrap();
            refused(&storage, std::slice::from_ref(&mine), ErrorKind::Corruption, &name);
        }
        storage.delete(&name).unwrap();
        refused(&storage, std::slice::from_ref(&mine), ErrorKind::NotFound, &name);
        storage.put(&name, &bytes).unwrap();
        commit(&storage, &[sent(&mine)]).unwrap();
        refused(&storage, &[mine], ErrorKind::Conflict, "in version 4");
        assert_eq!(cells(&opened(&context(), &storage, path), ALL), one(2, 2, 2));

        let transaction = Transaction::begin_on(&context(), storage.clone(), Isolation::Snapshot).unwrap();
        let within = transaction.array(path).unwrap();
        let told = within.receipt_where(None, &condition("v > 0"), &Call::default()).unwrap_err();
        assert!(told.kind() == ErrorKind::Input && told.message().contains("transaction"), "{told}");
        let reader = match open_on(&context(), storage.clone(), path, false, At::Latest).unwrap() {
            Opened::Array(array) => array,
            Opened::Group(_) => panic!("a group where an array was created"),
        };
        assert!(reader.receipt_where(None, &condition("v > 0"), &Call::default()).is_err(), "it is not writable");
    }
}

/// What a receipt says of a delete must be what was written: nothing else may come into the store.
#[test]
fn a_receipt_that_says_otherwise_of_what_it_deletes_is_refused() {
    for path in ["/dense", "/sparse"] {
        let storage = memory();
        let array = opened(&context(), &storage, path);
        commit_cells(&array, &one(5, 5, 5), None).unwrap();
        commit_cells(&array, &CellMap::from([((1, 1), -1), ((2, 2), 2), ((30, 30), -3)]), None).unwrap();
        let good: serde_json::Value = serde_json::from_str(&receipt_where(&array, "v < 0").to_json().unwrap()).unwrap();
        let other: serde_json::Value =
            serde_json::from_str(&receipt(&array, &one(2, 2, 2)).to_json().unwrap()).unwrap();
        let newest = array.version();
        let mut changes = vec![
            ("/fragments/0/cells", serde_json::json!(3)),
            ("/fragments/0/at/data/offset", serde_json::json!(64)),
            ("/fragments/0/at/data/len", serde_json::json!(64)),
            ("/fragments/0/at/data/id", other["fragments"][0]["id"].clone()),
            ("/fragments/0/bounds", other["fragments"][0]["bounds"].clone()),
            ("/fragments/0/kind", serde_json::json!("sparse")),
        ];
        if path == "/sparse" {
            changes.push(("/fragments/0/over", serde_json::json!(array.fragments().unwrap()[0].id.to_string())));
        } else {
            changes.push(("/version", serde_json::json!(newest + 1)));
            let orders = [(newest, 0), (newest - 1, u32::MAX), (newest + 1, u32::MAX)];
            changes.extend(orders.map(|order| ("/fragments/0/order", serde_json::json!(order))));
        }
        for (place, value) in changes {
            let mut bad = good.clone();
            *bad.pointer_mut(place).unwrap_or_else(|| panic!("{place} in {good}")) = value;
            let outcome = Receipt::from_json(&bad.to_string()).and_then(|receipt| commit(&storage, &[receipt]));
            assert!(outcome.is_err(), "{path}: {place} {bad}");
            assert_eq!(opened(&context(), &storage, path).version(), newest, "{path}: {place}");
        }
        commit(&storage, &[Receipt::from_json(&good.to_string()).unwrap()]).unwrap();
        assert_eq!(cells(&opened(&context(), &storage, path), ALL), CellMap::from([((2, 2), 2), ((5, 5), 5)]));
    }
}

#[test]
fn a_receipt_older_than_the_log_cannot_be_judged() {
    let memory_storage = MemoryStorage::new();
    let storage: Arc<dyn Storage> = Arc::new(memory_storage);
    gridstone::engine::create_array_on(&context(), storage.clone(), "/dense", schema(true), false).unwrap();
    let array = opened(&context(), &storage, "/dense");
    let old = receipt(&array, &one(1, 1, 1));
    for n in 0..70 {
        commit_cells(&array, &one(2, 2, n), None).unwrap();
    }
    let store = gridstone::store::Store::new(
        storage.clone(),
        Arc::new(gridstone::runtime::SystemClock),
        Arc::new(gridstone::runtime::SystemEntropy),
    );
    let root = store.record(70).unwrap().root.unwrap();
    let floor = gridstone::store::Floor { version: root.version, root };
    storage.put("_log/floor", &floor.encode().unwrap()).unwrap();
    refused(&storage, &[old], ErrorKind::SnapshotExpired, "nobody can tell");
}

/// A process that writes a part of an array and leaves its receipt.
pub(crate) fn write_a_part(store: &Path, number: u64) {
    let uri = store.join("store");
    let Opened::Array(array) = open(&context(), uri.to_str().unwrap(), "/dense", true, At::Latest).unwrap() else {
        panic!("a group where an array was created")
    };
    let row: CellMap = (0..40).map(|x| ((number as i64, x), 1 + number as i64 * 100 + x)).collect();
    std::fs::write(store.join(format!("receipt-{number}")), receipt(&array, &row).to_json().unwrap()).unwrap();
    say("wrote", number);
}

#[test]
fn processes_write_and_one_commits() {
    let folder = Folder::new("receipts");
    let uri = folder.0.join("store");
    let uri = uri.to_str().unwrap();
    create_array(&context(), uri, "/dense", schema(false), false).unwrap();
    let mut children: Vec<Child> = (0..6).map(|number| Child::start("write-a-part", &folder.0, number)).collect();
    for child in &mut children {
        assert!(child.hear("wrote").is_some());
        assert!(child.succeeds());
    }
    let read = |number: u64| std::fs::read_to_string(folder.0.join(format!("receipt-{number}"))).unwrap();
    let receipts: Vec<Receipt> = (0..6).map(|number| Receipt::from_json(&read(number)).unwrap()).collect();
    assert_eq!(commit_receipts(&context(), uri, &receipts, None).unwrap(), 2);
    let Opened::Array(array) = open(&context(), uri, "/dense", false, At::Latest).unwrap() else { panic!("a group") };
    let expected: CellMap = (0..6).flat_map(|n| (0..40).map(move |x| ((n, x), 1 + n * 100 + x))).collect();
    assert_eq!(cells(&array, ALL), expected);
    let writers: std::collections::BTreeSet<&str> = receipts.iter().map(|r| r.writer.as_str()).collect();
    assert_eq!(writers.len(), 6, "each says which process wrote it");
}
