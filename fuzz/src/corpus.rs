//! Objects of real stores, to start from: small stores that hold every kind of fragment, attribute and operation.

use gridstone::base::{FileRef, Id};
use gridstone::engine::{Array, Call, Context, Dedup, Durability, Options, Strategy, create_array_on};
use gridstone::fragment::{Description, Part, Staged};
use gridstone::runtime::{SystemClock, SystemEntropy};
use gridstone::schema::Schema;
use gridstone::storage::{MemoryStorage, Storage, data_name, log_name};
use gridstone::store::{Base, Changes, CommitKey, Field, Kept, Keyed, Operation, Owner, StandardRules, Store};
use gridstone_testkit::{Change, Dice, Dim, Model, Place, box_cells, random, stage};
use std::sync::{Arc, OnceLock};

const ATTRS: &str = r#"[{"name":"b","dtype":"bool","filters":"bitshuffle,zstd"},
    {"name":"i","dtype":"int16","nullable":true,"filters":"none"},{"name":"u","dtype":"uint64","filters":"delta,for"},
    {"name":"f","dtype":"float64","filters":"shuffle,lz4"},{"name":"t","dtype":"datetime64[s]","filters":"pco"},
    {"name":"s","dtype":"string","nullable":true,"filters":"gzip"},{"name":"y","dtype":"bytes","filters":"none"},
    {"name":"h","dtype":"float16","filters":"for"},{"name":"z","dtype":"complex64","nullable":true,"filters":"lz4"},
    {"name":"v","dtype":"bool[3]","filters":"none"},{"name":"x","dtype":"bytes[5]","fill":"0001020304","filters":"zstd"},
    {"name":"l","dtype":"list[int32]","nullable":true,"fill":"[1,-2]","filters":"delta,for"}]"#;

/// A store, and what was read of it.
#[derive(Debug)]
pub struct Seed {
    /// All of it.
    pub storage: MemoryStorage,
    /// The schema of its one array.
    pub schema: Arc<Schema>,
    /// The fragments of its newest and of an older version, with their bytes.
    pub fragments: Vec<(Arc<Description>, Vec<u8>)>,
    /// The newest version.
    pub version: u64,
}

impl Seed {
    /// The bytes of the record of a version.
    pub fn record(&self, version: u64) -> Vec<u8> {
        self.storage.read_all(&log_name(version)).unwrap().to_vec()
    }

    /// The objects of the manifest that begin so.
    pub fn manifest(&self, start: &[u8]) -> Vec<Vec<u8>> {
        let names = self.storage.list("_manifest").unwrap();
        let all = names.iter().map(|name| self.storage.read_all(name).unwrap().to_vec());
        all.filter(|bytes| bytes.starts_with(start)).collect()
    }
}

/// The stores that inputs are made from; the same in every run but for ids and times.
pub fn seeds() -> &'static [Seed] {
    static SEEDS: OnceLock<Vec<Seed>> = OnceLock::new();
    SEEDS.get_or_init(|| vec![dense(), sparse()])
}

fn dense() -> Seed {
    let dims = r#"{"name":"d0","dtype":"int8","domain":["-3","2"],"tile":"4"},{"name":"d1","dtype":"uint64","domain":["0","4"]}"#;
    lived(&format!(r#"{{"dims":[{dims}],"attrs":{ATTRS}}}"#))
}

fn sparse() -> Seed {
    let dims = r#"{"name":"d0","dtype":"datetime64[ns]","domain":["-50","50"],"tile":"30"},
        {"name":"d1","dtype":"float32","domain":["-1.0","1.0"],"tile":"0.3"}"#;
    lived(&format!(r#"{{"sparse":true,"capacity":5,"dims":[{dims}],"attrs":{ATTRS}}}"#))
}

/// Writes, deletes, folds and merges of an array of that schema.
fn lived(json: &str) -> Seed {
    let storage = MemoryStorage::new();
    let options = Options { threads: Some(1), durability: Durability::Close, ..Options::default() };
    let context = Context::new(&options).unwrap();
    let schema = Schema::from_json(json).unwrap();
    let array = create_array_on(&context, Arc::new(storage.clone()), "/deep/a", schema.clone(), false).unwrap();
    let mut model = Model::new(Arc::new(schema), array.version());
    of_newer(&storage, &array);
    array.refresh().unwrap();
    model.commit(array.version(), &[]);
    let mut dice = Dice::new(7);
    let mut changes: Vec<Change> = (0..6).map(|n| some_cells(&model, 3 + 8 * n, &mut dice)).collect();
    if !model.schema().sparse() {
        changes.insert(0, whole_box(&model, &mut dice));
    }
    changes.push(Change::Delete { cells: places(&model, 4, &mut dice) });
    let mut fragments = Vec::new();
    for (n, change) in changes.iter().enumerate() {
        let staged = stage(&array, &model, change, &mut Dice::new(3)).unwrap();
        model.commit(array.commit(vec![staged], Some("why".to_owned())).unwrap(), std::slice::from_ref(change));
        if n % 3 == 2 {
            fold(&storage, &array, n);
            array.refresh().unwrap();
            model.commit(array.version(), &[]);
        }
    }
    fragments.extend(read_fragments(&storage));
    array.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
    fragments.extend(read_fragments(&storage));
    let (schema, version) = (model.schema().clone(), array.version());
    Seed { storage, schema, fragments, version }
}

fn store(storage: &MemoryStorage) -> Store {
    Store::new(Arc::new(storage.clone()), Arc::new(SystemClock), Arc::new(SystemEntropy))
}

/// Sets metadata by a writer that folds each time.
fn fold(storage: &MemoryStorage, array: &Array, number: usize) {
    let store = store(storage).with_fold_versions(1);
    let changes = vec![(format!("k{number}"), Some("{\"a\":[1,null,\"x\"]}".to_owned())), ("gone".to_owned(), None)];
    let touch = Operation::SetMetadata { node: array.id(), changes };
    store.commit(&store.latest().unwrap(), Changes::new(vec![touch]), &mut StandardRules).unwrap();
}

/// What a newer release writes: a base, kept files, and a deletion of nothing with parts of its own. Also a hidden array,
/// metadata of attributes and dimensions, a tag, a commit key, and a value that takes an object of its own.
fn of_newer(storage: &MemoryStorage, array: &Array) {
    let place = gridstone::store::Place { place: "s3://far".to_owned(), state: "asleep".to_owned(), ext: None };
    let base = Base { kind: "store".to_owned(), places: vec![place], ext: None };
    let owner = Owner::Array;
    let kept = Kept { entry: Id([7; 16]), owner, kind: "bloom".to_owned(), files: Vec::new(), ext: None };
    let extra = [(17, &b"{\"of\":1}"[..]), (20, b"any"), (31, b"")];
    let extra = extra.map(|(bit, bytes)| Part { bit, bytes: bytes.to_vec() }).to_vec();
    let bounds = array.schema().unwrap().domain();
    let description = Description { extra, ..Description::deletion(Id([9; 16]), 0, bounds) };
    let text = r#"{"dims":[{"name":"x","dtype":"int8","domain":["0","9"]}],"attrs":[{"name":"v","dtype":"int8"}]}"#;
    let (id, name, owner, ext) = (Id([5; 16]), "@x".to_owned(), array.id(), None);
    let told = |text: String| vec![("unit".to_owned(), Some(format!("\"{text}\"")))];
    let of_field = |field: Field| Operation::SetFieldMetadata { array: owner, field, changes: told("m".to_owned()) };
    let long: String = (0..6_000).map(|n: u32| format!("{:x}", n.wrapping_mul(2_654_435_761))).collect();
    let operations = vec![
        Operation::CreateHidden { id, owner, name, schema: Schema::from_json(text).unwrap(), ext },
        of_field(Field::Attribute(0)),
        of_field(Field::Dimension(1)),
        Operation::SetMetadata { node: owner, changes: told(long) },
        Operation::Tag { name: "first".to_owned(), version: 1, replace: false },
        Operation::SetBase { number: 7, base: Some(Arc::new(base)), before: None },
        Operation::Keep { array: array.id(), kept, near: None },
        Operation::AddFragments { array: array.id(), fragments: vec![Staged { description, body: None }] },
    ];
    let store = store(storage);
    let changes = Changes::new(operations).with_key(Some(Keyed { key: CommitKey::new(b"a job").unwrap(), content: 7 }));
    store.commit_once(&store.latest().unwrap(), changes, &mut StandardRules).unwrap();
}

fn read_fragments(storage: &MemoryStorage) -> Vec<(Arc<Description>, Vec<u8>)> {
    let snapshot = store(storage).latest().unwrap();
    let fragments = snapshot.array("/deep/a").unwrap().fragments(None).unwrap();
    let bytes_of = |description: &Arc<Description>| {
        let place = description.location;
        let name = match place.file {
            FileRef::Data(id) => data_name(id),
            FileRef::Log(version) => log_name(version),
            FileRef::Nowhere | FileRef::OnBase(..) => return None,
        };
        Some(storage.read_all(&name).unwrap()[place.offset as usize..(place.offset + place.len) as usize].to_vec())
    };
    fragments.iter().filter_map(|description| Some((description.clone(), bytes_of(description)?))).collect()
}

fn places(model: &Model, count: usize, dice: &mut Dice) -> Vec<Place> {
    let coordinate = |dim: &Dim, dice: &mut Dice| match (dim.lo, dim.hi) {
        (gridstone_testkit::Coord::Int(lo), gridstone_testkit::Coord::Int(hi)) => {
            gridstone_testkit::Coord::Int(dice.between(lo, hi))
        }
        (lo, hi) => *dice.pick(&[lo, hi, gridstone_testkit::Coord::Float(0.0), gridstone_testkit::Coord::Float(0.25)]),
    };
    (0..count).map(|_| model.dims().iter().map(|dim| coordinate(dim, dice)).collect()).collect()
}

fn some_cells(model: &Model, count: usize, dice: &mut Dice) -> Change {
    let cells = places(model, count, dice);
    let attrs: Vec<usize> = (0..model.schema().attrs().len()).collect();
    let columns = attrs.iter().map(|a| random(&model.schema().attrs()[*a], cells.len(), dice)).collect();
    Change::Cells { cells, attrs, columns, dedup: Dedup::Last }
}

fn whole_box(model: &Model, dice: &mut Dice) -> Change {
    let sub: Vec<_> = model.dims().iter().map(|dim| (dim.lo, dim.hi)).collect();
    let attrs: Vec<usize> = (0..model.schema().attrs().len()).collect();
    let count = box_cells(&sub).len();
    let columns = attrs.iter().map(|a| random(&model.schema().attrs()[*a], count, dice)).collect();
    Change::Box { sub, attrs, columns }
}
