//! Promise: what newer fragments hide goes without being read, and without anything being written for it; older versions have it as long as they
//! are kept.

use crate::support::columns::{bytes_of, numbers, view};
use crate::support::line::{Cells, create, read, write};
use crate::support::random::Random;
use crate::support::store::{context, nothing_is_left, open, options, vacuum};
use gridstone::engine::{
    Array, At, Call, CellData, Condition, Dedup, Keep, ReadOrder, Strategy, VacuumOptions, create_array_on,
};
use gridstone::schema::{Datatype, Order, Schema};
use gridstone::storage::{CountingStorage, MemoryStorage, Operation, Storage};
use gridstone::tile::{Column, ColumnView};
use std::collections::BTreeMap;
use std::sync::Arc;

const SIDE: i64 = 20_000;

fn overwrite(array: &Array, within: (i64, i64), value: i64) {
    let bytes = bytes_of((within.0..=within.1).map(|x| x * 7 + value));
    let sub = [(within.0.to_string(), within.1.to_string())];
    let staged =
        array.stage_dense(Some(&sub), &vec![("v".to_owned(), view(&bytes))], Order::Row, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
}

fn delete(array: &Array, within: Option<(i64, i64)>) {
    let sub = within.map(|(low, high)| [(low.to_string(), high.to_string())]);
    let staged = array.stage_delete_box(sub.as_ref().map(|sub| sub.as_slice())).unwrap();
    array.commit(vec![staged], None).unwrap();
}

fn expected(value: i64) -> Cells {
    (0..SIDE).map(|x| (x, x * 7 + value)).filter(|(_, v)| *v != 0).collect()
}

fn data_of(counted: &CountingStorage) -> u64 {
    let counts = counted.snapshot();
    let read: u64 = counts.reads.iter().filter(|(name, _)| name.starts_with("_data")).map(|(_, n)| n).sum();
    read + counts.count(Operation::Create)
}

#[test]
fn what_is_written_over_goes_unread_and_unwritten() {
    for strategy in [Strategy::Tiered, Strategy::Updates, Strategy::All] {
        let counted = Arc::new(CountingStorage::new(Arc::new(MemoryStorage::new())));
        let storage: Arc<dyn Storage> = counted.clone();
        let array = create(&context(64), &storage, "/grid", false);
        (1..=10).for_each(|value| overwrite(&array, (0, SIDE - 1), value));
        write(&array, &[(5, 5), (6, 6)].into()).unwrap();
        delete(&array, Some((0, 99)));
        // Slabs over the whole of it, one after the other.
        (0..4).for_each(|n| overwrite(&array, (n * 5_000, n * 5_000 + 4_999), 50));
        let before = array.version();
        let plan = array.consolidate(&strategy, 1 << 30, true, &Call::default()).unwrap();
        assert_eq!((plan.merges[0].kind, plan.merges[0].fragments, plan.before), ("hidden", 12, 16), "{plan:?}");
        assert_eq!(array.version(), before);
        let touched = data_of(&counted);
        let report = array.consolidate(&strategy, 1 << 30, false, &Call::default()).unwrap();
        let first = &report.merges[0];
        assert_eq!((first.kind, first.fragments, report.before), ("hidden", 12, 16), "{report:?}");
        // What is left lies side by side: only who merges all has something to do.
        let left = if matches!(strategy, Strategy::All) { (2, 1) } else { (1, 4) };
        assert_eq!((report.merges.len(), report.after), left, "{report:?}");
        let made: u64 = report.merges.iter().filter_map(|merge| merge.written).map(|(files, _)| files).sum();
        assert_eq!(
            (made, data_of(&counted) - touched),
            (left.0 as u64 - 1, made),
            "no data file of a hidden one was read"
        );
        assert_eq!(read(&array).unwrap(), expected(50));
        let old = array.at(At::Version(before)).unwrap();
        assert_eq!((read(&old).unwrap(), old.fragments().unwrap().len()), (expected(50), 16));
        assert_eq!(read(&array.at(At::Version(5)).unwrap()).unwrap(), expected(4));
        assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
        let again = array.consolidate(&strategy, 1 << 30, false, &Call::default()).unwrap();
        assert!(again.merges.is_empty(), "{again:?}");
    }
}

/// A store that only overwrites needs no consolidation to shrink.
#[test]
fn a_vacuum_takes_out_what_is_hidden_and_a_dry_run_says_so() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let array = create(&context(64), &storage, "/grid", false);
    let line = create(&context(64), &storage, "/line", false);
    (1..=10).for_each(|value| overwrite(&array, (0, SIDE - 1), value));
    let many: Cells = (0..9_000).map(|x| (x, x)).collect();
    write(&line, &many).unwrap();
    delete(&line, None);
    let newest = line.version();
    let day = VacuumOptions { safety_us: 86_400_000_000, ..options(Keep::Versions(1)) };
    let plan = array.vacuum(&VacuumOptions { dry_run: true, ..day }, &Call::default()).unwrap();
    assert_eq!((plan.oldest, plan.newest, plan.hidden, plan.data.objects), (newest, newest, 10, 10), "{plan:?}");
    let done = array.vacuum(&day, &Call::default()).unwrap();
    assert_eq!((done.hidden, done.data, done.oldest), (10, plan.data, newest + 1), "{done:?}");
    assert_eq!(storage.list("_data").unwrap().len(), 1);
    assert_eq!(read(&array).unwrap(), expected(10));
    assert!(read(&open(&context(64), &storage, "/line", At::Latest).unwrap()).unwrap().is_empty());
    // Another one finds nothing more to do.
    let again = array.vacuum(&day, &Call::default()).unwrap();
    assert_eq!((again.hidden, again.oldest, again.committed), (0, done.oldest, None), "{again:?}");
    // Of several versions that are to stay none is counted that only took something out.
    overwrite(&array, (0, SIDE - 1), 11);
    let newest = array.version();
    let two = array.vacuum(&VacuumOptions { keep: Keep::Versions(2), ..day }, &Call::default()).unwrap();
    assert_eq!((two.hidden, two.data.objects, two.newest), (1, 0, newest + 1), "{two:?}");
    assert_eq!(read(&array.at(At::Version(newest)).unwrap()).unwrap(), expected(11));
    assert_eq!(read(&array.at(At::Version(two.oldest)).unwrap()).unwrap(), expected(10));
}

/// Attributes for themselves: a fragment goes when the last of its attributes is written over.
/// The version that takes hidden fragments out may be one that folds: its root is of the version before, which goes at once.
#[test]
fn a_vacuum_leaves_nothing_of_its_own_behind() {
    for (fold_versions, writes) in (2..=5).flat_map(|fold| (2..=10).map(move |writes| (fold, writes))) {
        for keep in [Keep::Versions(1), Keep::AgeUs(0)] {
            let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
            let array = create(&context(fold_versions), &storage, "/grid", false);
            (1..=writes).for_each(|value| overwrite(&array, (0, 9), value));
            let report = vacuum(&array, keep).unwrap();
            let what = format!("{writes} writes, folds after {fold_versions} versions, {keep:?}");
            assert!(report.hidden > 0, "{what}: {report:?}");
            nothing_is_left(&storage, &what);
        }
    }
}

#[test]
fn attributes_are_hidden_one_by_one() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let schema = r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","999"],"tile":"500"}],
        "attrs":[{"name":"a","dtype":"int64"},{"name":"b","dtype":"int64"}]}"#;
    let schema = Schema::from_json(schema).unwrap();
    let array = create_array_on(&context(64), storage.clone(), "/", schema, false).unwrap();
    let fill = |names: &[&str], value: i64| {
        let bytes = bytes_of((0..1_000).map(|_| value));
        let data: Vec<_> = names.iter().map(|name| ((*name).to_owned(), view(&bytes))).collect();
        array.commit(vec![array.stage_dense(None, &data, Order::Row, &Call::default()).unwrap()], None).unwrap();
    };
    let shed = || {
        let report = array.consolidate(&Strategy::Updates, 1 << 30, true, &Call::default()).unwrap();
        report.merges.iter().filter(|m| m.kind == "hidden").map(|m| m.fragments).sum::<u64>()
    };
    fill(&["a", "b"], 1);
    fill(&["a"], 2);
    assert_eq!(shed(), 0);
    fill(&["b"], 3);
    assert_eq!(shed(), 1);
    fill(&["a", "b"], 4);
    assert_eq!(shed(), 3);
}

/// Random writes, deletes and merges: the cells are those before, whatever goes unread.
#[test]
fn no_cell_changes_when_what_is_hidden_goes() {
    for seed in 0..20 {
        let mut random = Random(seed);
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let array = create(&context(5), &storage, "/grid", false);
        let mut now = Cells::new();
        let mut hidden = 0;
        for round in 0..60 {
            let (low, len) = (random.below(4) as i64 * 5_000, 1 + random.below(20_000) as i64);
            let within = (low, (low + len).min(SIDE - 1));
            match random.below(6) {
                0 => {
                    delete(&array, Some(within));
                    now.retain(|x, _| !(within.0..=within.1).contains(x));
                }
                1 => {
                    let cells: Cells = (0..20).map(|_| (random.below(SIDE as u64) as i64, round + 1)).collect();
                    write(&array, &cells).unwrap();
                    now.extend(cells);
                }
                2 => {
                    let which = [Strategy::Tiered, Strategy::Updates, Strategy::All][random.below(3) as usize].clone();
                    let report = array.consolidate(&which, 1 << 30, false, &Call::default()).unwrap();
                    hidden += report.merges.iter().filter(|m| m.kind == "hidden").map(|m| m.fragments).sum::<u64>();
                }
                3 => {
                    let keep = Keep::Versions(1 + random.below(5));
                    hidden += array.vacuum(&options(keep), &Call::default()).unwrap().hidden;
                }
                _ => {
                    overwrite(&array, within, round + 1);
                    now.extend((within.0..=within.1).map(|x| (x, x * 7 + round + 1)));
                }
            }
            assert_eq!(read(&array).unwrap(), now, "seed {seed}, round {round}");
        }
        assert!(hidden > 0);
        assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
    }
}

/// Where the disk is not waited for, a record says so; those of creations, folds, merges and vacuums are waited for whatever the context says.
#[test]
fn a_record_says_whether_it_is_durable() {
    use crate::support::store::store_of;
    use gridstone::storage::{Durability, LocalStorage};
    use gridstone::store::Recorded;
    for (durability, defers) in [(Durability::Full, false), (Durability::Close, true)] {
        let folder = crate::support::scratch::Folder::new("says-durable");
        let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(folder.path().join("a.gs"), durability).unwrap());
        let line = create(&context(1_000), &storage, "/line", false);
        (0..4).for_each(|n| _ = write(&line, &(0..9_000).map(|x| (x + n, x)).collect()).unwrap());
        let store = store_of(&storage);
        // A fold, which nothing but the root tells of.
        store.pack(&store.latest().unwrap()).unwrap();
        let folds = store.latest().unwrap().version();
        line.refresh().unwrap();
        line.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
        line.refresh().unwrap();
        write(&line, &[(1, 1)].into()).unwrap();
        let (mut plain, mut waited) = (0, 0);
        let mut check = |from: u64| {
            let store = store_of(&storage);
            let newest = store.latest().unwrap().version();
            for version in from..=newest {
                let record = store.record(version).unwrap();
                let is = |o: &Recorded| matches!(o, Recorded::ReplaceFragments { .. } | Recorded::Condemn(_));
                let waits = version == 1 || version == folds || record.operations.iter().any(is);
                let what = &record.operations;
                assert_eq!(record.durable, waits || !defers, "version {version}, {durability:?}: {what:?}");
                (plain, waited) = (plain + u32::from(!waits), waited + u32::from(waits));
            }
            newest
        };
        let newest = check(1);
        line.vacuum(&options(Keep::Versions(2)), &Call::default()).unwrap();
        line.refresh().unwrap();
        write(&line, &[(2, 2)].into()).unwrap();
        check(newest + 1);
        assert!(plain >= 5 && waited >= 4, "{plain} {waited}");
    }
}

/// Cells of the arrays with nulls.
const PLACES: u64 = 400;

/// Coordinate and values of each cell, sorted.
type Rows = Vec<(i64, Option<i64>, Option<i64>)>;

fn rows(array: &Array) -> Rows {
    let (cells, ..) = array.read(None, None, ReadOrder::Row, &Call::default()).unwrap();
    let values = |column: &Column| -> Vec<Option<i64>> {
        let valid = column.view().validity().unwrap().to_vec();
        numbers(column).into_iter().zip(valid).map(|(value, valid)| (valid == 1).then_some(value)).collect()
    };
    let places = cells.dims.first().map_or_else(|| (0..PLACES as i64).collect(), numbers);
    let both = values(&cells.attrs[0]).into_iter().zip(values(&cells.attrs[1]));
    let mut rows: Rows = places.into_iter().zip(both).map(|(x, (a, b))| (x, a, b)).collect();
    rows.sort_unstable();
    rows
}

/// An array whose values may be null, with what it held at each version that was looked at.
struct Mixed {
    array: Array,
    /// Whether a cell may be there twice.
    twice: bool,
    random: Random,
    seen: BTreeMap<u64, Rows>,
    tags: BTreeMap<String, u64>,
    hidden: u64,
    selected: u64,
}

impl Mixed {
    fn new(kind: &str, seed: u64) -> Self {
        let schema = format!(
            r#"{{{kind}"dims":[{{"name":"x","dtype":"int64","domain":["0","{}"],"tile":"50"}}],
            "attrs":[{{"name":"a","dtype":"int64","nullable":true}},{{"name":"b","dtype":"int64","nullable":true}}]}}"#,
            PLACES - 1
        );
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let array = create_array_on(&context(7), storage, "/", Schema::from_json(&schema).unwrap(), false).unwrap();
        let (seen, tags, twice) = (BTreeMap::new(), BTreeMap::new(), kind.contains("duplicates"));
        Self { array, twice, random: Random(seed), seen, tags, hidden: 0, selected: 0 }
    }

    fn is_sparse(&self) -> bool {
        self.array.schema().unwrap().sparse()
    }

    /// Tiles, several of them mostly.
    fn span(&mut self) -> (i64, i64) {
        let low = self.random.below(4) as i64 * 50;
        (low, (low + 49 + self.random.below(8) as i64 * 50).min(PLACES as i64 - 1))
    }

    /// Values and their validity.
    fn column(&mut self, len: usize) -> (Vec<u8>, Vec<u8>) {
        let values = bytes_of((0..len).map(|_| self.random.below(50) as i64).collect::<Vec<_>>());
        (values, (0..len).map(|_| u8::from(self.random.below(4) > 0)).collect())
    }

    /// Both attributes, or one of them where that will do.
    fn write(&mut self) {
        let sparse = self.is_sparse();
        let span = self.span();
        let places: Vec<i64> = match sparse {
            true => (0..1 + self.random.below(40)).map(|_| self.random.below(PLACES) as i64).collect(),
            false => (span.0..=span.1).collect(),
        };
        let columns = [self.column(places.len()), self.column(places.len())];
        let view = |(values, valid)| ColumnView::new(Datatype::Int64, values, None, Some(valid)).unwrap();
        let [a, b] = columns.each_ref().map(|(values, valid)| view((values.as_slice(), valid.as_slice())));
        let mut attrs = vec![("a".to_owned(), a), ("b".to_owned(), b)];
        let x = bytes_of(places);
        let staged = if sparse {
            let dedup = if self.twice { Dedup::Error } else { Dedup::Last };
            let data = CellData { dims: vec![crate::support::columns::view(&x)], attrs, sorted: false, dedup };
            self.array.stage_cells(data, &Call::default()).unwrap()
        } else {
            match self.random.below(3) {
                0 => drop(attrs.pop()),
                1 => drop(attrs.remove(0)),
                _ => {}
            }
            let sub = [(span.0.to_string(), span.1.to_string())];
            self.array.stage_dense(Some(&sub), &attrs, Order::Row, &Call::default()).unwrap()
        };
        self.array.commit(vec![staged], None).unwrap();
    }

    fn delete_where(&mut self) {
        let (k, span) = (self.random.below(50), self.span());
        let texts = [format!("a < {k}"), format!("b > {k} && x < 200"), "a is null".to_owned()];
        let condition = Condition::parse(&texts[self.random.below(3) as usize]).unwrap();
        let sub = [(span.0.to_string(), span.1.to_string())];
        let before = self.array.version();
        let version = self.array.delete_where(Some(&sub), &condition, None, &Call::default()).unwrap();
        self.selected += version - before;
    }

    fn tag(&mut self) {
        let name = format!("t{}", self.random.below(3));
        let version = *self.seen.keys().next_back().unwrap();
        self.array.tag(&name, Some(version), true).unwrap();
        self.tags.insert(name, version);
    }

    fn consolidate(&mut self) {
        let which = [Strategy::Tiered, Strategy::Updates, Strategy::All][self.random.below(3) as usize].clone();
        let report = self.array.consolidate(&which, 1 << 30, false, &Call::default()).unwrap();
        self.hidden += report.merges.iter().filter(|m| m.kind == "hidden").map(|m| m.fragments).sum::<u64>();
    }

    /// What is kept, by its number or its name, reads as before.
    fn vacuum(&mut self, what: &str) {
        let keep = Keep::Versions(1 + self.random.below(6));
        let report = self.array.vacuum(&options(keep), &Call::default()).unwrap();
        self.hidden += report.hidden;
        self.seen.retain(|version, _| *version >= report.oldest || self.tags.values().any(|kept| kept == version));
        for (version, expected) in &self.seen {
            assert_eq!(&rows(&self.array.at(At::Version(*version)).unwrap()), expected, "{what}, version {version}");
        }
        for (name, version) in &self.tags {
            assert_eq!(rows(&self.array.at_tag(name).unwrap()), self.seen[version], "{what}, {name}");
        }
    }

    /// Does something; a change is remembered as it reads, and what is none changes nothing.
    fn step(&mut self, what: &str) {
        let choice = self.random.below(10);
        match choice {
            0 => self.vacuum(what),
            1 => self.consolidate(),
            2 if !self.seen.is_empty() => self.tag(),
            3 | 4 => {
                let span = self.span();
                delete(&self.array, Some(span));
            }
            5 | 6 => self.delete_where(),
            _ => self.write(),
        }
        self.array.refresh().unwrap();
        let (version, now) = (self.array.version(), rows(&self.array));
        if let Some(before) = self.seen.values().next_back().filter(|_| choice < 3 && !self.seen.is_empty()) {
            assert_eq!(&now, before, "{what}, {choice}");
        }
        self.seen.insert(version, now);
    }
}

/// Nulls, single attributes, sparse cells, rows that a condition has deleted, cells that are there twice, versions that are kept by name.
#[test]
fn no_version_that_is_kept_changes_when_what_is_hidden_goes() {
    let kinds = ["", r#""sparse":true,"capacity":20,"#, r#""sparse":true,"duplicates":true,"capacity":20,"#];
    for kind in kinds {
        let (mut hidden, mut selected) = (0, 0);
        for seed in 0..4 {
            let mut mixed = Mixed::new(kind, seed);
            (0..50).for_each(|round| mixed.step(&format!("{kind}, seed {seed}, round {round}")));
            mixed.vacuum(&format!("{kind}, seed {seed}, at the end"));
            assert!(mixed.array.verify(&Call::default()).unwrap().damage.is_empty());
            (hidden, selected) = (hidden + mixed.hidden, selected + mixed.selected);
        }
        assert!(hidden > 0 && selected > 0, "{kind}: {hidden} hidden, {selected} deletes by condition");
    }
}
