//! Damage is an error or harmless: never a panic, a hang, a huge allocation or a wrong cell.
//!
//! Small stores hold every kind of fragment and of attribute, in log records and in a pack. Every byte of every object
//! is changed and every object cut at every length; all versions are opened and read whole each time, with a new context,
//! so that no cache can hide anything.

use gridstone::base::{Error, ErrorKind, Result, xxh3};
use gridstone::engine::{
    Array, At, Call, Cells, Column, Context, Dedup, Durability, Opened, Options, ReadOrder, create_array_on, open_on,
};
use gridstone::runtime::{SystemClock, SystemEntropy};
use gridstone::schema::Schema;
use gridstone::storage::{MemoryStorage, Storage, log_name};
use gridstone::store::{Changes, Operation, StandardRules, Store};
use gridstone_testkit::{Change, Coord, Dice, Measured, Model, box_cells, random, rows_of, stage};
use std::sync::Arc;

const ALLOCATION_MAX: usize = 64 << 20;

const ATTRS: &str = r#"[{"name":"b","dtype":"bool","filters":"bitshuffle,zstd"},{"name":"i","dtype":"int16","nullable":true,"filters":"none"},
    {"name":"u","dtype":"uint64","filters":"delta,for"},{"name":"f","dtype":"float64","filters":"shuffle,lz4"},
    {"name":"t","dtype":"datetime64[s]","filters":"pco"},{"name":"s","dtype":"string","nullable":true,"filters":"gzip"},
    {"name":"y","dtype":"bytes","filters":"none"}]"#;

/// A store and what it holds at every version.
struct Damaged {
    storage: MemoryStorage,
    model: Model,
    everything: Vec<(Coord, Coord)>,
}

fn context() -> Context {
    let options = Options {
        memory_budget: 1 << 20,
        threads: Some(1),
        cache: 1 << 20,
        durability: Durability::Close,
        ..Options::default()
    };
    Context::new(&options).unwrap()
}

fn integers(ranges: &[(i128, i128)]) -> Vec<(Coord, Coord)> {
    ranges.iter().map(|(lo, hi)| (Coord::Int(*lo), Coord::Int(*hi))).collect()
}

/// The bytes, offsets and validity of a column.
type Parts = (Vec<u8>, Option<Vec<u64>>, Option<Vec<u8>>);

fn parts(cells: Cells) -> Vec<Parts> {
    let columns = cells.dims.into_iter().chain(cells.attrs);
    columns.map(Column::into_parts).map(|(values, offsets, validity)| (values.to_vec(), offsets, validity)).collect()
}

impl Damaged {
    fn new(json: &str, changes: &[Change]) -> Self {
        let storage = MemoryStorage::new();
        let schema = Schema::from_json(json).unwrap();
        let array = create_array_on(&context(), Arc::new(storage.clone()), "/", schema.clone(), false).unwrap();
        let mut model = Model::new(Arc::new(schema), array.version());
        let everything = model.dims().iter().map(|d| (d.lo, d.hi)).collect();
        for change in changes {
            let staged = stage(&array, &model, change, &mut Dice::new(3)).unwrap();
            model.commit(array.commit(vec![staged], None).unwrap(), std::slice::from_ref(change));
        }
        Self { storage, model, everything }
    }

    /// Folds the log, so that the fragments lie in a pack and are described by a manifest page.
    fn fold(&mut self, array: &Array) {
        let store = Store::new(Arc::new(self.storage.clone()), Arc::new(SystemClock), Arc::new(SystemEntropy))
            .with_fold_versions(1);
        let touch = Operation::SetMetadata { node: array.id(), changes: vec![("k".to_owned(), Some("1".to_owned()))] };
        let snapshot = store.commit(&store.latest().unwrap(), Changes::new(vec![touch]), &mut StandardRules).unwrap();
        self.model.commit(snapshot.version(), &[]);
    }

    fn open(storage: &MemoryStorage, version: u64) -> Result<Array> {
        match open_on(&context(), Arc::new(storage.clone()), "/", false, At::Version(version))? {
            Opened::Array(array) => Ok(array),
            Opened::Group(_) => panic!("a group where an array was created"),
        }
    }

    fn read(&self, version: u64) -> Result<Cells> {
        let array = Self::open(&self.storage, version)?;
        Ok(array.read(None, None, ReadOrder::Global, &Call::default())?.0)
    }

    /// What every version reads as, which is what the oracle says.
    fn truth(&self) -> Vec<(u64, Vec<Parts>)> {
        let attrs: Vec<usize> = (0..self.model.schema().attrs().len()).collect();
        let one = |version| {
            let cells = self.read(version).unwrap();
            let expected = self.model.read(version, &self.everything, &attrs, ReadOrder::Global);
            let found = rows_of(&self.model, &cells);
            assert!(found.iter().map(|row| &row.1).eq(expected.iter().map(|row| &row.1)), "version {version}");
            assert!(cells.dims.is_empty() || found == expected, "version {version}");
            (version, parts(cells))
        };
        self.model.versions().into_iter().map(one).collect()
    }

    /// Names and bytes of all objects.
    fn objects(&self) -> Vec<(String, Vec<u8>)> {
        let names = ["_log", "_manifest", "_data"].map(|folder| self.storage.list(folder).unwrap()).concat();
        names.into_iter().map(|name| (name.clone(), self.storage.read_all(&name).unwrap().to_vec())).collect()
    }
}

fn check_kind(error: &Error, what: &str) {
    let allowed = [ErrorKind::Corruption, ErrorKind::Unsupported, ErrorKind::NotFound];
    assert!(allowed.contains(&error.kind()), "{what}: {error} ({:?})", error.kind());
}

/// Reads a version of a damaged store; says whether the read noticed.
fn read_damaged(store: &Damaged, (version, truth): &(u64, Vec<Parts>), what: &dyn Fn() -> String) -> bool {
    Measured::take_largest();
    let outcome = store.read(*version);
    let largest = Measured::take_largest();
    assert!(largest <= ALLOCATION_MAX, "{}: {largest} bytes were allocated at once", what());
    match outcome {
        Ok(cells) => {
            assert!(parts(cells) == *truth, "{}: version {version} reads wrong cells", what());
            false
        }
        Err(error) => {
            check_kind(&error, &what());
            true
        }
    }
}

/// Flips bytes and cuts objects, at every `step`-th place; gives how many tries there were and how many were noticed. The
/// newest version is read each time, and an older one in turn.
fn damage_everything(store: &Damaged, step: usize) -> (usize, usize) {
    let truth = store.truth();
    let (newest, older) = truth.split_last().unwrap();
    let (mut tries, mut noticed) = (0, 0);
    let mut read = |at: usize, what: &dyn Fn() -> String| {
        tries += 1;
        let seen = older.get(at % older.len().max(1)).is_some_and(|old| read_damaged(store, old, what));
        noticed += usize::from(read_damaged(store, newest, what) || seen);
    };
    for (name, bytes) in store.objects() {
        let last = bytes.len().saturating_sub(if step > 1 { 200 } else { 0 });
        for at in (0..bytes.len()).filter(|at| at % step == 0 || *at >= last) {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << (at % 8);
            store.storage.put(&name, &bad).unwrap();
            read(at, &|| format!("{name} flipped at {at}"));
            store.storage.put(&name, &bytes[..at]).unwrap();
            read(at, &|| format!("{name} cut to {at} bytes"));
        }
        store.storage.put(&name, &bytes).unwrap();
    }
    assert!(truth.iter().all(|t| !read_damaged(store, t, &|| "repaired".to_owned())));
    (tries, noticed)
}

fn columns(schema: &Schema, count: usize, dice: &mut Dice) -> (Vec<usize>, Vec<Vec<gridstone_testkit::Value>>) {
    let attrs: Vec<usize> = (0..schema.attrs().len()).collect();
    (attrs.clone(), attrs.iter().map(|a| random(&schema.attrs()[*a], count, dice)).collect())
}

fn a_box(schema: &Schema, ranges: &[(i128, i128)], dice: &mut Dice) -> Change {
    let sub = integers(ranges);
    let (attrs, columns) = columns(schema, box_cells(&sub).len(), dice);
    Change::Box { sub, attrs, columns }
}

fn some_cells(schema: &Schema, cells: Vec<Vec<Coord>>, dice: &mut Dice) -> Change {
    let (attrs, columns) = columns(schema, cells.len(), dice);
    Change::Cells { cells, attrs, columns, dedup: Dedup::Last }
}

#[test]
fn a_dense_store() {
    let json = format!(
        r#"{{"dims":[{{"name":"d0","dtype":"int8","domain":["-3","2"],"tile":"4"}},{{"name":"d1","dtype":"uint64","domain":["0","4"]}}],"attrs":{ATTRS}}}"#
    );
    let (schema, mut dice) = (Schema::from_json(&json).unwrap(), Dice::new(1));
    let place = |y, x| vec![Coord::Int(y), Coord::Int(x)];
    let changes = [
        a_box(&schema, &[(-2, 1), (1, 4)], &mut dice),
        some_cells(&schema, vec![place(2, 2), place(-2, 1), place(0, 0)], &mut dice),
        Change::Delete { cells: vec![place(1, 1), place(-3, 4)] },
        Change::Clear { sub: vec![(Coord::Int(0), Coord::Int(1)), (Coord::Int(2), Coord::Int(2))] },
    ];
    let mut store = Damaged::new(&json, &changes);
    let array = Damaged::open(&store.storage, 1).unwrap();
    store.fold(&array);
    let (tries, noticed) = damage_everything(&store, 1);
    assert!(tries > 10_000 && noticed > tries / 2, "{noticed} of {tries}");
}

#[test]
fn a_sparse_store() {
    let json = format!(
        r#"{{"sparse":true,"duplicates":true,"capacity":3,"dims":[{{"name":"d0","dtype":"datetime64[ns]","domain":["-50","50"],"tile":"30"}},
        {{"name":"d1","dtype":"float32","domain":["-1.0","1.0"],"tile":"0.3"}}],"attrs":{ATTRS}}}"#
    );
    let (schema, mut dice) = (Schema::from_json(&json).unwrap(), Dice::new(2));
    let place = |t, x| vec![Coord::Int(t), Coord::Float(x)];
    let cells = vec![place(-50, -1.0), place(0, 0.0), place(0, 0.0), place(7, 0.5), place(50, 1.0)];
    let changes = [
        some_cells(&schema, cells, &mut dice),
        Change::Delete { cells: vec![place(0, 0.0)] },
        some_cells(&schema, vec![place(0, 0.25)], &mut dice),
        Change::Clear { sub: vec![(Coord::Int(5), Coord::Int(10)), (Coord::Float(0.4), Coord::Float(0.6))] },
    ];
    let mut store = Damaged::new(&json, &changes);
    let array = Damaged::open(&store.storage, 1).unwrap();
    store.fold(&array);
    let (tries, noticed) = damage_everything(&store, 1);
    assert!(tries > 10_000 && noticed > tries / 2, "{noticed} of {tries}");
}

/// One dense fragment in a file of its own, with raw pages that are checked per 4 KiB.
fn large_raw() -> Damaged {
    let json = r#"{"dims":[{"name":"y","dtype":"int32","domain":["0","299"]},{"name":"x","dtype":"int32","domain":["0","99"]}],
        "attrs":[{"name":"v","dtype":"int64","filters":"none"},{"name":"w","dtype":"int8","filters":"zstd"}]}"#;
    let schema = Schema::from_json(json).unwrap();
    Damaged::new(json, &[a_box(&schema, &[(0, 299), (0, 99)], &mut Dice::new(1))])
}

#[test]
fn large_raw_pages() {
    let store = large_raw();
    assert_eq!(store.storage.list("_data").unwrap().len(), 1);
    let (tries, noticed) = damage_everything(&store, 211);
    assert!(tries > 2_000 && noticed > tries / 2, "{noticed} of {tries}");
}

/// Whoever writes a bad root with right checksums gets errors or nonsense, but no panic and no huge allocation.
#[test]
fn a_root_that_lies() {
    let store = large_raw();
    let name = store.storage.list("_data").unwrap().remove(0);
    let whole = store.storage.read_all(&name).unwrap().to_vec();
    let footer = whole.len() - 64;
    let word = |at: usize| u64::from_le_bytes(whole[footer + at..][..8].try_into().unwrap()) as usize;
    let (root, len) = (word(0), word(8));
    let mut refused = 0;
    for at in 0..len {
        for bit in 0..8 {
            let mut bad = whole.clone();
            bad[root + at] ^= 1 << bit;
            let seal = xxh3(&bad[root..root + len]);
            bad[footer + 16..footer + 24].copy_from_slice(&seal.to_le_bytes());
            let seal = xxh3(&bad[footer..footer + 56]);
            bad[footer + 56..].copy_from_slice(&seal.to_le_bytes());
            store.storage.put(&name, &bad).unwrap();
            Measured::take_largest();
            if let Err(error) = store.read(2) {
                check_kind(&error, &format!("root byte {at}, bit {bit}"));
                refused += 1;
            }
            let largest = Measured::take_largest();
            assert!(largest <= ALLOCATION_MAX, "root byte {at}, bit {bit}: {largest} bytes were allocated at once");
        }
    }
    assert!(refused > len * 4, "{refused} of {} were refused", len * 8);
}

#[test]
fn missing_objects() {
    let json = r#"{"dims":[{"name":"x","dtype":"uint8","domain":["0","9"]}],"attrs":[{"name":"v","dtype":"int8"}]}"#;
    let schema = Schema::from_json(json).unwrap();
    let mut store = Damaged::new(json, &[a_box(&schema, &[(0, 9)], &mut Dice::new(1))]);
    let array = Damaged::open(&store.storage, 1).unwrap();
    store.fold(&array);
    let (newest, truth) = (store.model.newest(), store.truth());
    for (name, bytes) in store.objects() {
        let before_the_root = name.starts_with("_log") && name != log_name(newest);
        store.storage.delete(&name).unwrap();
        match store.read(newest) {
            Ok(cells) => assert!(before_the_root && parts(cells) == truth.last().unwrap().1, "{name} is not missed"),
            Err(error) => check_kind(&error, &name),
        }
        store.storage.put(&name, &bytes).unwrap();
    }
}
