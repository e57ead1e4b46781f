//! Promise: a delete by condition in a transaction takes the cells that the transaction sees, those that it staged before among them; not what it
//! stages later. It reads: if others commit to what it deletes meanwhile, that is a Conflict.

use crate::support::columns::{as_text, bytes_of, numbers, view};
use crate::support::pair::{memory, opened};
use crate::support::writer::{CellMap, commit_cells, context};
use gridstone::base::{ErrorKind, Result};
use gridstone::engine::{Array, Call, Condition, Isolation, ReadOrder, Strategy, Transaction, verify_on};
use gridstone::storage::Storage;
use gridstone_testkit::Dice;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Cells of the square that is written to.
const SIDE: i64 = 12;
const PATHS: [(&str, bool); 2] = [("/dense", false), ("/sparse", true)];

fn begin(storage: &Arc<dyn Storage>, isolation: Isolation) -> Transaction {
    Transaction::begin_on(&context(), storage.clone(), isolation).unwrap()
}

fn read(array: &Array) -> CellMap {
    let sides = [as_text((0, SIDE - 1)), as_text((0, SIDE - 1))];
    let (found, shape, _) = array.read(Some(&sides), None, ReadOrder::Row, &Call::default()).unwrap();
    let values = numbers(&found.attrs[0]);
    match shape {
        Some(_) => (0..).map(|i| (i / SIDE, i % SIDE)).zip(values).filter(|(_, v)| *v != 0).collect(),
        None => numbers(&found.dims[0]).into_iter().zip(numbers(&found.dims[1])).zip(values).collect(),
    }
}

fn delete_where(array: &Array, text: &str) -> Result<u64> {
    array.delete_where(None, &Condition::parse(text).unwrap(), None, &Call::default())
}

fn delete_at(array: &Array, places: &BTreeSet<(i64, i64)>) {
    let (rows, columns) = (bytes_of(places.iter().map(|p| p.0)), bytes_of(places.iter().map(|p| p.1)));
    let staged = array.stage_delete(&[view(&rows), view(&columns)], &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
}

fn delete_box(array: &Array, rows: (i64, i64), columns: (i64, i64)) {
    let staged = array.stage_delete_box(Some(&[as_text(rows), as_text(columns)])).unwrap();
    array.commit(vec![staged], None).unwrap();
}

fn some(dice: &mut Dice, count: usize) -> CellMap {
    let place = |dice: &mut Dice| (dice.below(SIDE as usize) as i64, dice.below(SIDE as usize) as i64);
    (0..count).map(|_| (place(dice), 1 + dice.below(9) as i64)).collect()
}

/// What a transaction does to a place, and what becomes of it beside others.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// What the base has there.
    base: Option<i64>,
    /// What is staged there.
    own: Option<i64>,
    /// What the base has was deleted by condition.
    base_gone: bool,
    /// It was deleted as by its coordinates: from the transaction's version on nothing older is there.
    buried: bool,
}

impl Place {
    fn seen(&self) -> Option<i64> {
        let below = if self.base_gone || self.buried { None } else { self.base };
        self.own.or(below)
    }

    fn judged(&mut self, selects: impl Fn(i64) -> bool) {
        if self.seen().is_some_and(selects) {
            // The cell that was staged is deleted by a tombstone in the same version.
            self.buried |= self.own.is_some();
            (self.own, self.base_gone) = (None, true);
        }
    }

    fn is_written(&self) -> bool {
        self.own.is_some() || self.base_gone || self.buried
    }

    fn after(&self, others: Option<i64>) -> Option<i64> {
        match (self.own, self.buried) {
            (Some(own), _) => Some(own),
            (None, true) => None,
            (None, false) => others.or(self.seen()),
        }
    }
}

/// One write or delete in a transaction, and what it means to the model.
fn act(dice: &mut Dice, array: &Array, model: &mut [Vec<Place>], blind: bool) {
    match dice.below(if blind { 3 } else { 6 }) {
        0 | 1 => {
            let cells = some(dice, 25);
            commit_cells(array, &cells, None).unwrap();
            cells.iter().for_each(|((y, x), v)| model[*y as usize][*x as usize].own = Some(*v));
        }
        2 => {
            let places: BTreeSet<(i64, i64)> = some(dice, 5).into_keys().collect();
            delete_at(array, &places);
            for (y, x) in places {
                let place = &mut model[y as usize][x as usize];
                (place.own, place.buried) = (None, true);
            }
        }
        3 if dice.chance(40) => {
            delete_box(array, (2, 4), (3, 9));
            model[2..=4].iter_mut().flat_map(|row| &mut row[3..=9]).for_each(|place| {
                (place.own, place.buried) = (None, true);
            });
        }
        _ => {
            let limit = 1 + dice.below(9) as i64;
            delete_where(array, &format!("v <= {limit} and v > 0")).unwrap();
            model.iter_mut().flatten().for_each(|place| place.judged(|v| v <= limit));
        }
    }
}

/// Random transactions over random arrays, with and without a commit of others meanwhile, against a model.
#[test]
fn random_transactions_agree_with_a_model() {
    for (seed, (path, _)) in (0..120u64).flat_map(|seed| PATHS.map(|kind| (seed, kind))) {
        let (mut dice, storage) = (Dice::new(seed), memory());
        let outside = opened(&context(), &storage, path);
        let base = some(&mut dice, 60);
        commit_cells(&outside, &base, None).unwrap();
        let mut model = vec![vec![Place::default(); SIDE as usize]; SIDE as usize];
        base.iter().for_each(|((y, x), v)| model[*y as usize][*x as usize].base = Some(*v));
        let transaction = begin(&storage, Isolation::Snapshot);
        let array = transaction.array(path).unwrap();
        // Who reads nothing writes over what others have written.
        let blind = dice.chance(30);
        for _ in 0..1 + dice.below(7) {
            act(&mut dice, &array, &mut model, blind);
            let seen: CellMap = (0..SIDE * SIDE)
                .map(|i| (i / SIDE, i % SIDE))
                .filter_map(|(y, x)| Some(((y, x), model[y as usize][x as usize].seen()?)))
                .collect();
            if !blind {
                assert_eq!(read(&array), seen, "{path}, seed {seed}, inside");
            }
        }
        let count = if blind { 40 } else { 3 };
        let others = if dice.chance(70) { some(&mut dice, count) } else { CellMap::new() };
        if !others.is_empty() {
            commit_cells(&outside, &others, None).unwrap();
        }
        let lost = others.keys().any(|(y, x)| model[*y as usize][*x as usize].is_written());
        let mut expected: CellMap = (0..SIDE * SIDE)
            .map(|i| (i / SIDE, i % SIDE))
            .filter_map(|(y, x)| Some(((y, x), model[y as usize][x as usize].after(others.get(&(y, x)).copied())?)))
            .collect();
        match transaction.commit(None) {
            Ok(_) => assert!(blind || !lost, "{path}, seed {seed}: an update was lost"),
            Err(error) => {
                assert!(!blind && lost && error.kind() == ErrorKind::Conflict, "{path}, seed {seed}: {error}");
                expected = base.iter().chain(&others).map(|(at, v)| (*at, *v)).collect();
            }
        }
        let later = opened(&context(), &storage, path);
        assert_eq!(read(&later), expected, "{path}, seed {seed}");
        assert!(
            verify_on(&context(), storage.clone(), &Call::default()).unwrap().damage.is_empty(),
            "{path}, seed {seed}"
        );
        for strategy in [Strategy::Manifest, Strategy::All] {
            later.consolidate(&strategy, 1 << 30, false, &Call::default()).unwrap();
            assert_eq!(read(&opened(&context(), &storage, path)), expected, "{path}, seed {seed}, {strategy:?}");
        }
    }
}

/// What was looked at may not be merged meanwhile with what came later: nobody can say which of the merged cells were meant. Masks lie
/// over fragments, which are not there any more after any merge; of a dense array what is older than the delete after the merge too is deleted.
#[test]
fn a_merge_meanwhile_is_a_conflict() {
    for (path, sparse, later) in [("/sparse", true, false), ("/sparse", true, true), ("/dense", false, true)] {
        let storage = memory();
        let outside = opened(&context(), &storage, path);
        for value in 1..5 {
            commit_cells(&outside, &some(&mut Dice::new(value), 50), None).unwrap();
        }
        let transaction = begin(&storage, Isolation::Snapshot);
        let array = transaction.array(path).unwrap();
        commit_cells(&array, &CellMap::from([((0, 0), 3)]), None).unwrap();
        delete_where(&array, "v == 3").unwrap();
        if later {
            commit_cells(&outside, &CellMap::from([((1, 1), 4)]), None).unwrap();
        }
        let before = read(&outside);
        outside.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
        let error = transaction.commit(None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{path}: {error}");
        assert!(sparse || error.message().contains("with newer ones"), "{error}");
        assert_eq!(read(&opened(&context(), &storage, path)), before, "{path}: nothing was deleted");
        // Again, on what is there now.
        let again = transaction.again().unwrap();
        delete_where(&again.array(path).unwrap(), "v == 3").unwrap();
        again.commit(None).unwrap();
        let kept: CellMap = before.into_iter().filter(|(_, v)| *v != 3).collect();
        assert_eq!(read(&opened(&context(), &storage, path)), kept, "{path}");
    }
}

/// Random deletes of a dense array, with merges and writes of others meanwhile: each stands, and says what it deleted, or is a Conflict and
/// changes nothing; a merge of nothing newer than the delete is none.
#[test]
fn merges_beside_dense_deletes_lose_nothing() {
    let (mut stood, mut refused) = (0, 0);
    for seed in 0..60 {
        let (mut dice, storage) = (Dice::new(seed), memory());
        let outside = opened(&context(), &storage, "/dense");
        for _ in 0..1 + dice.below(5) {
            commit_cells(&outside, &some(&mut dice, 40), None).unwrap();
        }
        let base = read(&outside);
        let transaction = begin(&storage, Isolation::Snapshot);
        let limit = 1 + dice.below(9) as i64;
        delete_where(&transaction.array("/dense").unwrap(), &format!("v <= {limit} and v > 0")).unwrap();
        let mut expected: CellMap = base.iter().filter(|(_, v)| **v > limit).map(|(p, v)| (*p, *v)).collect();
        let mut later = false;
        for _ in 0..dice.below(4) {
            if dice.chance(50) {
                let many = dice.chance(50);
                let cells = some(&mut dice, if many { 11 } else { 1 });
                commit_cells(&outside, &cells, None).unwrap();
                expected.extend(cells);
                later = true;
            } else {
                outside.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
            }
        }
        let present = read(&outside);
        match transaction.commit(None) {
            Ok(_) => stood += 1,
            Err(error) => {
                assert!(later && error.kind() == ErrorKind::Conflict, "seed {seed}: {error}");
                (expected, refused) = (present, refused + 1);
            }
        }
        for strategy in [None, Some(Strategy::All)] {
            let array = opened(&context(), &storage, "/dense");
            if let Some(strategy) = strategy {
                array.consolidate(&strategy, 1 << 30, false, &Call::default()).unwrap();
            }
            assert_eq!(read(&opened(&context(), &storage, "/dense")), expected, "seed {seed}");
        }
    }
    assert!(stood > 20 && refused > 3, "{stood} stood, {refused} were refused");
}

/// A delete by condition reads: a serializable transaction fails if others wrote where it looked.
#[test]
fn a_serializable_delete_has_read_its_box() {
    for (path, _) in PATHS {
        for (place, stands) in [((1, 1), false), ((30, 30), true)] {
            let storage = memory();
            let outside = opened(&context(), &storage, path);
            commit_cells(&outside, &some(&mut Dice::new(1), 30), None).unwrap();
            let transaction = begin(&storage, Isolation::Serializable);
            let array = transaction.array(path).unwrap();
            let within = [as_text((0, SIDE - 1)), as_text((0, SIDE - 1))];
            let condition = Condition::parse("v > 4").unwrap();
            array.delete_where(Some(&within), &condition, None, &Call::default()).unwrap();
            commit_cells(&outside, &CellMap::from([(place, 9)]), None).unwrap();
            match transaction.commit(None) {
                Ok(_) => assert!(stands, "{path}: a write to {place:?} is not noticed"),
                Err(error) => assert!(!stands && error.kind() == ErrorKind::Conflict, "{path}: {error}"),
            }
        }
    }
}

/// Staged fragments that are too large for the record, an array made in the transaction, nothing selected, and a message.
#[test]
fn large_and_new_and_empty() {
    let storage = memory();
    let transaction = begin(&storage, Isolation::Snapshot);
    for (path, sparse) in [("/new-dense", false), ("/new-sparse", true)] {
        let array = transaction.create_array(path, crate::support::pair::schema(sparse), false).unwrap();
        let many: CellMap = (0..150 * 150).map(|i| ((i / 150, i % 150), i + 1)).collect();
        commit_cells(&array, &many, None).unwrap();
        delete_where(&array, "v > 20 or v < 0").unwrap();
        delete_where(&array, "v > 1000000").unwrap();
        let expected: CellMap = many.into_iter().filter(|((y, x), v)| *y < SIDE && *x < SIDE && *v <= 20).collect();
        assert_eq!(read(&array), expected, "{path}");
        let message = Some("why".to_owned());
        let condition = Condition::parse("v == 1").unwrap();
        let error = array.delete_where(None, &condition, message, &Call::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    }
    transaction.commit(None).unwrap();
    for path in ["/new-dense", "/new-sparse"] {
        assert_eq!(read(&opened(&context(), &storage, path)).len(), SIDE as usize, "{path}");
    }
    assert!(verify_on(&context(), storage, &Call::default()).unwrap().damage.is_empty());
}

/// Who deletes by a condition has read what is there: written over or deleted again, what others put there meanwhile is not lost.
#[test]
fn what_was_written_and_deleted_is_not_what_others_wrote_meanwhile() {
    for (path, _) in PATHS {
        for (at, stands) in [((3, 4), false), ((5, 5), false), ((3, 5), true)] {
            let storage = memory();
            let transaction = begin(&storage, Isolation::Snapshot);
            let inside = transaction.array(path).unwrap();
            commit_cells(&inside, &CellMap::from([((3, 4), 7), ((5, 5), 8)]), None).unwrap();
            delete_where(&inside, "v == 7").unwrap();
            let others = opened(&context(), &storage, path);
            commit_cells(&others, &CellMap::from([(at, 7)]), None).unwrap();
            assert_eq!(read(&inside), CellMap::from([((5, 5), 8)]), "{path} inside");
            let outcome = transaction.commit(None).map_err(|e| e.kind());
            others.refresh().unwrap();
            let expected = match outcome {
                Err(ErrorKind::Conflict) if !stands => CellMap::from([(at, 7)]),
                Ok(_) if stands => CellMap::from([(at, 7), ((5, 5), 8)]),
                outcome => panic!("{path}, {at:?}: {outcome:?}"),
            };
            assert_eq!(read(&others), expected, "{path}, {at:?}");
        }
    }
}
