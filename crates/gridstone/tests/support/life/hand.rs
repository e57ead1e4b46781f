//! The hand that does what a script says: handles that stay open from step to step, so that each is behind by what
//! the others did.

use super::model::{Area, COLUMNS, Cells, Note, Place, ROWS, TILE};
use super::script::{Ground, Script};
use crate::support::columns::{as_text, bytes_of, view};
use bytes::Bytes;
use gridstone::base::{AlignedBuf, Entropy, Keys, Result};
use gridstone::engine::{
    Array, At, Call, CellData, Column, Condition, Context, CopyOptions, Dedup, Durability, Isolation, Keep,
    MergeChoice, Opened, Options, Receipt, Staged, Strategy, Transaction, VacuumOptions, commit_receipts_on, copy_on,
    create_array_on, move_node_on, open_on,
};
use gridstone::runtime::{SystemClock, SystemEntropy};
use gridstone::schema::{Attribute, Datatype, Evolution, Order, Schema};
use gridstone::storage::{KeyRing, SealedStorage, Sealing, Storage};
use gridstone::store::{Changes, Operation, StandardRules, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A log is folded whenever its newest root is so many versions behind.
pub(crate) const FOLD_VERSIONS: u64 = 3;

/// All objects of a store by name, but for leases, and for what repairs put aside.
pub(crate) type Objects = BTreeMap<String, Bytes>;

pub(crate) fn objects(storage: &Arc<dyn Storage>) -> Objects {
    let names = ["_log", "_data", "_manifest"].iter().flat_map(|folder| storage.list(folder).unwrap());
    names.map(|name| (name.clone(), storage.read_all(&name).unwrap())).collect()
}

/// How all of the scripts work.
pub(super) fn options(key: Option<Arc<dyn Keys>>) -> Options {
    let (threads, sources) = (Some(1), Some(vec![super::attached::folder().to_owned()]));
    let (durability, fold_versions) = (Durability::Close, FOLD_VERSIONS);
    Options { threads, durability, fold_versions, key, sources, ..Options::default() }
}

/// A new context, that of a sealed store if there are keys.
pub(crate) fn context(keys: Option<Arc<dyn Keys>>) -> Context {
    Context::new(&options(keys)).unwrap()
}

/// What an array of a script is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    Dense,
    Sparse,
    /// Sparse, and cells may lie several times at one place.
    Doubled,
}

pub(super) fn schema(sort: Sort) -> Schema {
    let (sparse, duplicates) = (sort != Sort::Dense, sort == Sort::Doubled);
    let dim = |name: &str, count: i64, tile: i64| {
        let tile = if sparse { "null".to_owned() } else { format!("\"{tile}\"") };
        format!(r#"{{"name":"{name}","dtype":"int64","domain":["0","{}"],"tile":{tile}}}"#, count - 1)
    };
    Schema::from_json(&format!(
        r#"{{"sparse":{sparse},"duplicates":{duplicates},"capacity":16,"dims":[{},{}],
        "attrs":[{{"name":"n","dtype":"int64"}},{{"name":"v","dtype":"bytes","filters":"none"}}]}}"#,
        dim("y", ROWS, TILE.0),
        dim("x", COLUMNS, TILE.1)
    ))
    .unwrap()
}

/// The two attributes of cells as columns.
pub(crate) fn columns(cells: &Cells) -> [Column; 2] {
    let numbers = AlignedBuf::from_slice(&bytes_of(cells.values().map(|v| v.0)));
    let mut bytes = Vec::new();
    let mut offsets = vec![0];
    for (_, value) in cells.values() {
        bytes.extend_from_slice(value);
        offsets.push(bytes.len() as u64);
    }
    let bytes = AlignedBuf::from_slice(&bytes);
    [
        Column::new(Datatype::Int64, numbers, None, None).unwrap(),
        Column::new(Datatype::Bytes, bytes, Some(offsets), None).unwrap(),
    ]
}

/// The coordinates of places, one buffer per dimension.
fn coordinates<'a>(places: impl Iterator<Item = &'a Place> + Clone) -> [Vec<u8>; 2] {
    [bytes_of(places.clone().map(|p| p.0)), bytes_of(places.map(|p| p.1))]
}

/// Who writes a store.
pub(crate) struct Hand {
    pub(super) context: Context,
    keys: Option<Arc<dyn Keys>>,
    pub(super) storage: Arc<dyn Storage>,
    /// Where there is another store to copy from.
    pub(super) source: Arc<dyn Storage>,
    arrays: BTreeMap<String, Array>,
    /// The first version that shows what the step means, if that is not its last.
    pub(super) shown: Option<u64>,
}

impl Hand {
    pub(crate) fn new(script: &Script, ground: &Ground) -> Self {
        let (storage, source) = (ground.store.clone(), ground.source.clone());
        let mut hand =
            Self { context: context(None), keys: None, storage, source, arrays: BTreeMap::new(), shown: None };
        if let Some(keys) = script.keys {
            hand.takes(keys());
        }
        hand
    }

    /// Goes on with these keys.
    pub(super) fn takes(&mut self, keys: Arc<dyn Keys>) {
        self.context = context(Some(keys.clone()));
        (self.keys, self.arrays) = (Some(keys), BTreeMap::new());
    }

    /// The array at `path`: the handle that is open, or a new one.
    pub(crate) fn array(&mut self, path: &str) -> Result<&Array> {
        if !self.arrays.contains_key(path) {
            match open_on(&self.context, self.storage.clone(), path, true, At::Latest)? {
                Opened::Array(array) => self.arrays.insert(path.to_owned(), array),
                Opened::Group(_) => panic!("{path} is a group, which the script did not make"),
            };
        }
        Ok(&self.arrays[path])
    }

    /// The store below the engine, for what the engine does not offer.
    pub(crate) fn store(&self) -> Store {
        let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
        let storage = match &self.keys {
            Some(keys) => {
                let sealing = Sealing::Always(Arc::new(KeyRing::new(keys.clone())));
                Arc::new(SealedStorage::new(self.storage.clone(), sealing, entropy.clone()))
            }
            None => self.storage.clone(),
        };
        Store::new(storage, clock, entropy).with_fold_versions(FOLD_VERSIONS)
    }

    pub(crate) fn create(&mut self, path: &str, sort: Sort, overwrite: bool) -> Result<u64> {
        self.arrays.remove(path);
        let made = create_array_on(&self.context, self.storage.clone(), path, schema(sort), overwrite)?;
        let version = made.version();
        self.arrays.insert(path.to_owned(), made);
        Ok(version)
    }

    pub(crate) fn create_group(&mut self, path: &str) -> Result<u64> {
        let store = self.store();
        let create = Operation::CreateGroup { id: SystemEntropy.id(), path: path.to_owned(), ext: None };
        let made = store.commit(&store.latest()?, Changes::new(vec![create]), &mut StandardRules)?;
        Ok(made.version())
    }

    pub(crate) fn remove(&mut self, path: &str) -> Result<u64> {
        self.arrays.remove(path);
        let store = self.store();
        let base = store.latest()?;
        let remove = Operation::Remove { id: base.node(path)?.id() };
        Ok(store.commit(&base, Changes::new(vec![remove]), &mut StandardRules)?.version())
    }

    /// Fills boxes, each a fragment of its own, in one commit.
    pub(crate) fn write_boxes(&mut self, path: &str, boxes: &[(Area, Cells)]) -> Result<u64> {
        let array = self.array(path)?;
        let stage = |(area, cells): &(Area, Cells)| {
            let columns = columns(cells);
            let data = vec![("n".to_owned(), columns[0].view()), ("v".to_owned(), columns[1].view())];
            array.stage_dense(Some(&[as_text(area.0), as_text(area.1)]), &data, Order::Row, &Call::default())
        };
        let staged = boxes.iter().map(stage).collect::<Result<Vec<_>>>()?;
        array.commit(staged, Some("boxes".to_owned()))
    }

    pub(crate) fn write_cells(&mut self, path: &str, cells: &Cells) -> Result<u64> {
        let array = self.array(path)?;
        array.commit(vec![staged_cells(array, cells)?], None)
    }

    /// Streams cells, which are in global order, in portions of seven.
    pub(crate) fn stream(&mut self, path: &str, area: Option<Area>, cells: &Cells) -> Result<u64> {
        let array = self.array(path)?;
        let bounds = area.map(|area| [as_text(area.0), as_text(area.1)]);
        let mut writer = array.writer(bounds.as_ref().map(|b| b.as_slice()), None)?;
        let all: Vec<_> = cells.iter().map(|(place, value)| (*place, value.clone())).collect();
        for portion in all.chunks(7) {
            let portion: Cells = portion.iter().cloned().collect();
            let (places, columns) = (coordinates(portion.keys()), columns(&portion));
            let dims = if area.is_some() { Vec::new() } else { places.iter().map(|b| view(b)).collect() };
            writer.append(&Call::default(), &dims, &[columns[0].view(), columns[1].view()])?;
        }
        array.commit(vec![writer.finish(&Call::default())?], None)
    }

    pub(crate) fn delete(&mut self, path: &str, places: &BTreeSet<Place>) -> Result<u64> {
        let array = self.array(path)?;
        let dims = coordinates(places.iter());
        array.commit(vec![array.stage_delete(&[view(&dims[0]), view(&dims[1])], &Call::default())?], None)
    }

    pub(crate) fn delete_box(&mut self, path: &str, area: Area) -> Result<u64> {
        let array = self.array(path)?;
        let staged = array.stage_delete_box(Some(&[as_text(area.0), as_text(area.1)]))?;
        array.commit(vec![staged], None)
    }

    /// Deletes the cells whose number is greater.
    pub(crate) fn delete_above(&mut self, path: &str, number: i64) -> Result<u64> {
        let array = self.array(path)?;
        // A condition takes what the handle sees.
        array.refresh()?;
        let condition = Condition::parse(&format!("n > {number}"))?;
        array.delete_where(None, &condition, None, &Call::default())
    }

    /// Forgets all but so many versions, and deletes at once what only they named.
    pub(crate) fn vacuum(&mut self, path: &str, versions: u64) -> Result<u64> {
        let array = self.array(path)?;
        array.refresh()?;
        let options = VacuumOptions { keep: Keep::Versions(versions), safety_us: 0, dry_run: false };
        array.vacuum(&options, &Call::default())?;
        array.refresh()
    }

    /// Cells and tombstones of others, in one commit.
    pub(crate) fn replace(&mut self, path: &str, places: &BTreeSet<Place>, cells: &Cells) -> Result<u64> {
        let array = self.array(path)?;
        let dims = coordinates(places.iter());
        let tombstones = array.stage_delete(&[view(&dims[0]), view(&dims[1])], &Call::default())?;
        array.commit(vec![tombstones, staged_cells(array, cells)?], None)
    }

    /// Cells in any order through a writer that has little memory, and so puts sorted runs aside.
    pub(crate) fn write_unsorted(&mut self, path: &str, cells: &Cells) -> Result<u64> {
        let options =
            Options { threads: Some(1), durability: Durability::Close, memory_budget: 1 << 20, ..Options::default() };
        let thrifty = Context::new(&options)?.with_fold_versions(FOLD_VERSIONS);
        let Opened::Array(array) = open_on(&thrifty, self.storage.clone(), path, true, At::Latest)? else {
            panic!("{path} is a group, which the script did not make")
        };
        let mut writer = array.unsorted_writer(None, Dedup::Error)?;
        let mut all: Vec<_> = cells.iter().map(|(place, value)| (*place, value.clone())).collect();
        all.reverse();
        let mut spilled = false;
        for portion in all.chunks(9) {
            let before = self.storage.list("_data")?.len();
            let portion: Cells = portion.iter().cloned().collect();
            let (places, columns) = (coordinates(portion.keys()), columns(&portion));
            let dims: Vec<_> = places.iter().map(|b| view(b)).collect();
            writer.append(&Call::default(), &dims, &[columns[0].view(), columns[1].view()])?;
            spilled |= self.storage.list("_data")?.len() > before;
        }
        let staged = writer.finish(&Call::default())?;
        assert!(spilled, "all of it fitted into memory");
        array.commit(vec![staged], None)
    }

    /// Cells for several arrays in one transaction; what it staged is read before it is committed.
    pub(crate) fn transact(&mut self, writes: &[(&str, Cells)], isolation: Isolation) -> Result<u64> {
        let transaction = Transaction::begin_on(&self.context, self.storage.clone(), isolation)?;
        for (path, cells) in writes {
            let array = transaction.array(path)?;
            array.commit(vec![staged_cells(&array, cells)?], None)?;
            super::check::read(&array)?;
        }
        transaction.commit(Some("together".to_owned()))
    }

    /// Receipts for cells of several arrays, committed together.
    pub(crate) fn commit_receipts_for(&mut self, writes: &[(&str, Cells)]) -> Result<u64> {
        let mut receipts = Vec::new();
        for (path, cells) in writes {
            let array = self.array(path)?;
            receipts.push(array.receipt(vec![staged_cells(array, cells)?])?);
        }
        self.commit_receipts(&receipts)
    }

    /// As `delete_above`, by a receipt.
    pub(crate) fn delete_above_by_receipt(&mut self, path: &str, number: i64) -> Result<u64> {
        let array = self.array(path)?;
        array.refresh()?;
        let condition = Condition::parse(&format!("n > {number}"))?;
        let receipt = array.receipt_where(None, &condition, &Call::default())?;
        self.commit_receipts(&[receipt])
    }

    fn commit_receipts(&self, receipts: &[Receipt]) -> Result<u64> {
        commit_receipts_on(&self.context, self.storage.clone(), receipts, None)
    }

    pub(crate) fn tag(&mut self, path: &str, name: &str) -> Result<u64> {
        self.array(path)?.tag(name, None, false)?;
        self.newest(path)
    }

    pub(crate) fn untag(&mut self, path: &str, name: &str) -> Result<u64> {
        self.array(path)?.untag(name)?;
        self.newest(path)
    }

    fn newest(&mut self, path: &str) -> Result<u64> {
        self.array(path)?.refresh()
    }

    /// Copies a part of another store, or of this one, into this one.
    pub(crate) fn copy(&mut self, from: Arc<dyn Storage>, copying: &CopyOptions<'_>) -> Result<u64> {
        self.arrays.clear();
        let to = (&self.context, self.storage.clone());
        Ok(copy_on((&context(None), from), to, copying, &Call::default())?.version)
    }

    pub(crate) fn move_node(&mut self, from: &str, to: &str) -> Result<u64> {
        self.arrays.clear();
        move_node_on(&self.context, self.storage.clone(), from, to, None)
    }

    pub(crate) fn note(&mut self, path: &str, notes: Vec<Note>) -> Result<u64> {
        self.array(path)?.set_metadata(notes)
    }

    pub(crate) fn add_attribute(&mut self, path: &str, name: &str) -> Result<u64> {
        let attr = Attribute::new(name, Datatype::Int64, true, None, "auto")?;
        self.alter(path, &Evolution { add: vec![attr], ..Evolution::default() })
    }

    pub(crate) fn drop_attribute(&mut self, path: &str, name: &str) -> Result<u64> {
        self.alter(path, &Evolution { drop: vec![name.to_owned()], ..Evolution::default() })
    }

    /// Moves both ends of the first dimension, which is one tile, outwards.
    pub(crate) fn grow(&mut self, path: &str, by: i64) -> Result<u64> {
        let array = self.array(path)?;
        array.refresh()?;
        let (lo, hi, _) = array.schema()?.dims()[0].texts();
        let moved = |text: &str, by: i64| (text.parse::<i64>().unwrap() + by).to_string();
        let domains = vec![("y".to_owned(), moved(&lo, -by), moved(&hi, by))];
        self.alter(path, &Evolution { domains, ..Evolution::default() })
    }

    fn alter(&mut self, path: &str, evolution: &Evolution) -> Result<u64> {
        let array = self.array(path)?;
        // A change is made from the newest schema.
        array.refresh()?;
        array.alter(evolution, None)
    }

    pub(crate) fn consolidate(&mut self, path: &str, strategy: &Strategy, target_bytes: u64) -> Result<u64> {
        let array = self.array(path)?;
        array.refresh()?;
        array.consolidate(strategy, target_bytes, false, &Call::default())?;
        Ok(array.version())
    }

    pub(crate) fn consolidate_box(&mut self, path: &str, area: Area) -> Result<u64> {
        let strategy = self.array(path)?.strategy(&MergeChoice::Box(&[as_text(area.0), as_text(area.1)]))?;
        self.consolidate(path, &strategy, 1 << 30)
    }
}

pub(super) fn staged_cells(array: &Array, cells: &Cells) -> Result<Staged> {
    staged_cells_of(array, cells, &Call::default())
}

pub(super) fn staged_cells_of(array: &Array, cells: &Cells, call: &Call) -> Result<Staged> {
    let (places, columns) = (coordinates(cells.keys()), columns(cells));
    let dims = places.iter().map(|b| view(b)).collect();
    let attrs = vec![("n".to_owned(), columns[0].view()), ("v".to_owned(), columns[1].view())];
    array.stage_cells(CellData { dims, attrs, sorted: false, dedup: Dedup::Error }, call)
}
