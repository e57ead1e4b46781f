//! A store being made for a vector: every write goes to the engine and to the model.

use super::case::Case;
use super::model::{Model, places_of};
use super::parts;
use super::value::Cell;
use gridstone::base::limits::BlockCells;
use gridstone::base::{AlignedBuf, Budget, Clock, Entropy, Error, FileRef, Id, Key, NeverCancel, Result, Silent, xxh3};
use gridstone::condition::Condition;
use gridstone::fragment::{AsStored, Description, FragmentKind, Staged};
use gridstone::maintain::{Keep, PlanLimits, Strategy, VacuumOptions, Written, merge, plan, vacuum};
use gridstone::query::{
    CellWrite, Dedup, DeleteRequest, DenseWrite, ReadContext, Target, WriteContext, delete_where, write_cells,
    write_dense, write_sorted_copy, write_tombstones,
};
use gridstone::runtime::{Arena, LruCache, Pool};
use gridstone::schema::text::text_of;
use gridstone::schema::{Coordinate, Datatype, Evolution, KeyRange, Order, Schema, Subarray, key};
use gridstone::storage::{KeyRing, MemoryStorage, SealedStorage, Sealing, Storage, log_name};
use gridstone::store::{Changes, CommitKey, Keyed, Operation, Snapshot, StandardRules, Store};
use gridstone::tile::Column;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// 2026-01-01T00:00:00Z in microseconds; every look at the clock is a second later.
#[derive(Debug)]
struct Ticks(AtomicI64);

impl Clock for Ticks {
    fn now_us(&self) -> i64 {
        self.0.fetch_add(1_000_000, Ordering::Relaxed)
    }
}

/// Ids that look random and follow from the case's name.
#[derive(Debug)]
struct Numbered(&'static str, AtomicU64);

impl Entropy for Numbered {
    fn id(&self) -> Id {
        let number = self.1.fetch_add(1, Ordering::Relaxed);
        let half = |part: &str| u128::from(xxh3(format!("{} {part} {number}", self.0).as_bytes()));
        Id((half("high") << 64 | half("low")).to_be_bytes())
    }

    fn secret(&self) -> Result<[u8; 32]> {
        Ok(bytemuck::cast([self.id().0, self.id().0]))
    }
}

/// Attribute values of a write, by name.
pub(crate) type Values<'a> = Vec<(&'a str, Vec<Cell>)>;

/// An array and what it should hold.
struct Entry {
    id: Id,
    model: Model,
    /// Its schemas so far, by their numbers.
    schemas: Vec<Schema>,
}

/// A store being made.
pub(crate) struct World {
    name: &'static str,
    about: &'static str,
    /// Where the store's bytes lie, sealed if the store is.
    storage: Arc<dyn Storage>,
    key: Option<Key>,
    store: Store,
    snapshot: Option<Arc<Snapshot>>,
    entropy: Arc<Numbered>,
    pool: Arc<Pool>,
    arrays: BTreeMap<String, Entry>,
    operations: Vec<Operation>,
    /// The keys of the next commit, and those of all.
    next_keys: Vec<Keyed>,
    keys: BTreeSet<CommitKey>,
    versions: Vec<Value>,
    budget: Arc<Budget>,
    arena: Arc<Arena>,
    /// Whether small fragments go into the log.
    pub(crate) inline: bool,
}

impl World {
    /// An empty store.
    pub(crate) fn new(name: &'static str, about: &'static str) -> Result<Self> {
        Self::on(name, about, None)
    }

    /// An empty store that is sealed with `key`.
    pub(crate) fn sealed(name: &'static str, about: &'static str, key: Key) -> Result<Self> {
        Self::on(name, about, Some(key))
    }

    fn on(name: &'static str, about: &'static str, key: Option<Key>) -> Result<Self> {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let entropy = Arc::new(Numbered(name, AtomicU64::new(0)));
        let clock = Arc::new(Ticks(AtomicI64::new(1_767_225_600_000_000)));
        let used: Arc<dyn Storage> = match &key {
            None => storage.clone(),
            Some(key) => {
                // Salts are numbered apart, so that ids do not depend on how often something is sealed.
                let salts = Arc::new(Numbered("salt", AtomicU64::new(0)));
                let keys = Arc::new(KeyRing::new(Arc::new(key.clone())));
                Arc::new(SealedStorage::new(storage.clone(), Sealing::Always(keys), salts))
            }
        };
        let store = Store::new(used, clock, entropy.clone());
        Ok(Self {
            name,
            about,
            storage,
            key,
            store,
            snapshot: None,
            entropy,
            pool: Arc::new(Pool::new(Some(1))?),
            arrays: BTreeMap::new(),
            operations: Vec::new(),
            next_keys: Vec::new(),
            keys: BTreeSet::new(),
            versions: Vec::new(),
            budget: Arc::new(Budget::new(1 << 30)),
            arena: Arc::new(Arena::new(0)),
            inline: true,
        })
    }

    /// A store with one array at "/", not committed yet.
    pub(crate) fn with_array(name: &'static str, about: &'static str, schema: &str) -> Result<Self> {
        let mut world = Self::new(name, about)?;
        world.create_array("/", schema)?;
        Ok(world)
    }

    /// Sets the bytes a quarter of which ends a stripe (64 KiB at least).
    pub(crate) fn set_budget(&mut self, bytes: u64) {
        self.budget = Arc::new(Budget::new(bytes));
    }

    /// Creates an array, without the frame that a curve gets today.
    pub(crate) fn create_array(&mut self, path: &str, schema: &str) -> Result<()> {
        self.create(path, Schema::from_json(schema)?)
    }

    /// Creates an array as the engine does.
    pub(crate) fn create_framed(&mut self, path: &str, schema: &str) -> Result<()> {
        self.create(path, Schema::from_json(schema)?.of_new_array())
    }

    pub(crate) fn create(&mut self, path: &str, schema: Schema) -> Result<()> {
        let id = self.entropy.id();
        self.operations.push(Operation::CreateArray { id, path: path.to_owned(), schema: schema.clone(), ext: None });
        self.follow(path, id, schema);
        Ok(())
    }

    /// Notes an array that is being created.
    pub(crate) fn follow(&mut self, path: &str, id: Id, schema: Schema) {
        self.arrays.insert(path.to_owned(), Entry { id, model: Model::new(schema.clone()), schemas: vec![schema] });
    }

    /// The id of an array, and what it should hold.
    pub(crate) fn model(&mut self, path: &str) -> Result<(Id, &mut Model)> {
        self.entry(path).map(|entry| (entry.id, &mut entry.model))
    }

    /// Changes the schema of an array.
    pub(crate) fn alter(&mut self, path: &str, evolution: &Evolution) -> Result<()> {
        let entry = self.entry(path)?;
        let schema = entry.model.schema.evolved(entry.schemas.first().unwrap_or(&entry.model.schema), evolution)?;
        let (id, number, before) = (entry.id, entry.schemas.len() as u32, entry.model.schema.clone());
        entry.model.evolve(schema.clone());
        let is_altered = schema != before.reaching(&schema.domain());
        if is_altered {
            entry.schemas.push(schema.clone());
        }
        let dims = schema.dims().iter().zip(before.dims()).zip(0u32..);
        let grown = dims.filter(|((new, old), _)| new.range() != old.range());
        let grown: Vec<Operation> =
            grown.map(|((new, _), dimension)| Operation::Grow { array: id, dimension, range: new.range() }).collect();
        self.operations.extend(grown);
        if is_altered {
            self.operations.push(Operation::AlterArray { id, number, schema });
        }
        Ok(())
    }

    /// A root is made whenever one is so many versions behind.
    pub(crate) fn folding(self, versions: u64) -> Self {
        Self { store: self.store.with_fold_versions(versions), ..self }
    }

    /// Creates a group.
    pub(crate) fn create_group(&mut self, path: &str) {
        let id = self.entropy.id();
        self.operations.push(Operation::CreateGroup { id, path: path.to_owned(), ext: None });
    }

    /// Removes an array.
    pub(crate) fn remove(&mut self, path: &str) {
        if let Some(entry) = self.arrays.remove(path) {
            self.operations.push(Operation::Remove { id: entry.id });
        }
    }

    /// Moves a committed node.
    pub(crate) fn move_node(&mut self, from: &str, to: &str) -> Result<()> {
        let id = self.snapshot()?.node(from)?.id();
        self.operations.push(Operation::Move { id, from: from.to_owned(), path: to.to_owned() });
        let within = |path: &String| path == from || path.starts_with(&format!("{from}/"));
        let moved: Vec<String> = self.arrays.keys().filter(|path| within(path)).cloned().collect();
        for old in moved {
            if let Some(entry) = self.arrays.remove(&old) {
                self.arrays.insert(format!("{to}{}", old.get(from.len()..).unwrap_or_default()), entry);
            }
        }
        Ok(())
    }

    /// Sets (JSON text) or removes a metadata key of a committed node.
    pub(crate) fn set_metadata(&mut self, path: &str, key: &str, text: Option<&str>) -> Result<()> {
        let node = self.snapshot()?.node(path)?.id();
        self.operations.push(Operation::SetMetadata { node, changes: vec![(key.to_owned(), text.map(str::to_owned))] });
        Ok(())
    }

    /// Writes a box of a dense array; values lie in `layout`.
    pub(crate) fn write_box(
        &mut self,
        path: &str,
        sub: &[(&str, &str)],
        values: Values<'_>,
        layout: Order,
    ) -> Result<()> {
        let schema = self.entry(path)?.model.schema.clone();
        let sub = parse_box(&schema, sub)?;
        let columns = self.columns(&schema, &values)?;
        let staged = {
            let placed = columns.iter().map(|(place, column)| (*place, column.view())).collect();
            write_dense(&self.context(path), &schema, &DenseWrite { sub: sub.clone(), columns: placed, layout })?
        };
        let model = &mut self.entry(path)?.model;
        for (row, keys) in places_of(&sub, layout).into_iter().enumerate() {
            model.put(keys, columns.iter().zip(&values).map(|((place, _), (_, cells))| (*place, cells[row].clone())));
        }
        self.add(path, Some(staged))
    }

    /// Writes single cells.
    pub(crate) fn write_cells(&mut self, path: &str, coordinates: &[Vec<u64>], values: Values<'_>) -> Result<()> {
        let schema = self.entry(path)?.model.schema.clone();
        let columns = self.columns(&schema, &values)?;
        let dims = coordinate_columns(&schema, coordinates)?;
        let staged = {
            let placed = columns.iter().map(|(place, column)| (*place, column.view())).collect();
            let dims = dims.iter().map(Column::view).collect();
            write_cells(
                &self.context(path),
                &schema,
                &CellWrite { dims, columns: placed, sorted: false, dedup: Dedup::Error },
            )?
        };
        let model = &mut self.entry(path)?.model;
        for (row, keys) in coordinates.iter().enumerate() {
            model.put(
                keys.clone(),
                columns.iter().zip(&values).map(|((place, _), (_, cells))| (*place, cells[row].clone())),
            );
        }
        self.add(path, staged)
    }

    /// Deletes single cells.
    pub(crate) fn delete(&mut self, path: &str, coordinates: &[Vec<u64>]) -> Result<()> {
        let schema = self.entry(path)?.model.schema.clone();
        let dims = coordinate_columns(&schema, coordinates)?;
        let staged =
            write_tombstones(&self.context(path), &schema, &dims.iter().map(Column::view).collect::<Vec<_>>())?;
        let model = &mut self.entry(path)?.model;
        coordinates.iter().for_each(|keys| model.delete(keys));
        self.add(path, staged)
    }

    /// Deletes a box.
    pub(crate) fn delete_box(&mut self, path: &str, sub: &[(&str, &str)]) -> Result<()> {
        let sub = parse_box(&self.entry(path)?.model.schema, sub)?;
        self.delete_sub(path, sub)
    }

    /// Deletes a box along the axes.
    pub(crate) fn delete_sub(&mut self, path: &str, sub: Subarray) -> Result<()> {
        let id = self.entropy.id();
        let number = self.context(path).schema_number;
        let model = &mut self.entry(path)?.model;
        model.delete_box(&sub);
        self.add(path, Some(Staged { description: Description::deletion(id, number, sub), body: None }))
    }

    /// Deletes what a condition selects of what has been committed; `selects` says it of an attribute's cell.
    pub(crate) fn delete_where(
        &mut self,
        path: &str,
        text: &str,
        attr: &str,
        selects: impl Fn(&Cell) -> bool,
    ) -> Result<()> {
        let (snapshot, reader) = (self.snapshot()?.clone(), self.reader()?);
        let entry = self.entry(path)?;
        let (array, schema) = (entry.id, Arc::new(entry.model.schema.clone()));
        entry.model.delete_where(schema.attr(attr)?.0, selects);
        let fragments = snapshot.array_by_id(array)?.fragments(None)?;
        let condition = Condition::parse(text)?.bind(&schema)?;
        let doomed = DeleteRequest { sub: schema.domain(), condition: &condition, version: snapshot.version() };
        let mut staged = Vec::new();
        delete_where(&reader, &self.context(path), &Target { array, schema, fragments }, &doomed, &mut staged)?;
        self.operations.push(Operation::AddFragments { array, fragments: staged });
        Ok(())
    }

    fn reader(&self) -> Result<ReadContext> {
        Ok(ReadContext {
            place: self.snapshot()?.store(),
            pool: self.pool.clone(),
            files: self.store.files(),
            tiles: Arc::new(AsStored),
            cache: Arc::new(LruCache::new(0)),
            budget: self.budget.clone(),
            arena: self.arena.clone(),
            counters: Arc::default(),
            cancel: Arc::new(NeverCancel),
            progress: Arc::new(Silent),
        })
    }

    /// Merges all fragments of a kind with coordinates that have been committed; of tombstones those that are newer than all cells.
    pub(crate) fn merge(&mut self, path: &str, kind: FragmentKind) -> Result<()> {
        let snapshot = self.snapshot()?.clone();
        let fragments = snapshot.array_by_id(self.entry(path)?.id)?.fragments(None)?;
        let newest = fragments.iter().filter(|d| d.kind.holds_cells()).map(|d| d.order).max();
        let those = fragments.iter().filter(|d| d.kind == kind && (d.kind.holds_cells() || Some(d.order) > newest));
        self.merge_by(path, &Strategy::Fragments(those.map(|d| d.id).collect()))
    }

    /// Merges fragments of an array, each merge an operation of the same commit.
    pub(crate) fn merge_by(&mut self, path: &str, strategy: &Strategy) -> Result<()> {
        let (snapshot, entry) = (self.snapshot()?.clone(), self.entry(path)?);
        let (array, schema) = (entry.id, Arc::new(entry.model.schema.clone()));
        let fragments = snapshot.array_by_id(array)?.fragments(None)?;
        let limits = PlanLimits { memory_bytes: 1 << 30, cell_bytes: 64 };
        let reader = self.reader()?;
        for planned in plan(&schema, &fragments, strategy, limits)?.merges {
            let target = Target { array, schema: schema.clone(), fragments: Vec::new() };
            let merged = merge(&reader, &self.context(path), &target, &planned, 1 << 20, &mut Written::default())?;
            self.operations.extend(merged.into_iter().flat_map(|merged| merged.operations(array)));
        }
        Ok(())
    }

    /// Writes the sorted copies of the packs that the fragments of an array lie in, as who folds does.
    pub(crate) fn sort_packs(&mut self, path: &str) -> Result<()> {
        // Where nothing may be held, nothing is sorted.
        let reader = ReadContext { cache: Arc::new(LruCache::new(1 << 20)), ..self.reader()? };
        let (snapshot, entry) = (self.snapshot()?.clone(), self.entry(path)?);
        let (array, schema) = (entry.id, Arc::new(entry.model.schema.clone()));
        let mut packs: BTreeMap<Id, Vec<_>> = BTreeMap::new();
        for d in snapshot.array_by_id(array)?.fragments(None)? {
            if let (FragmentKind::Sparse, FileRef::Data(file)) = (d.kind, d.location.file)
                && file != d.id
            {
                packs.entry(file).or_default().push(d);
            }
        }
        packs.into_iter().try_for_each(|(pack, fragments)| {
            write_sorted_copy(&reader, &Target { array, schema: schema.clone(), fragments }, pack)
        })
    }

    /// Gives a version a name, or takes the name away.
    pub(crate) fn tag(&mut self, name: &str, version: Option<u64>) -> Result<()> {
        let (name, known) = (name.to_owned(), self.snapshot()?.retained().tag(name)?);
        self.operations.push(match version {
            Some(version) => Operation::Tag { name, version, replace: true },
            None => Operation::Untag { name, version: known.unwrap_or_default() },
        });
        Ok(())
    }

    /// Forgets all but the newest `count` versions, those that tags keep aside.
    pub(crate) fn vacuum(&mut self, count: u64) -> Result<()> {
        // No file is older than the clock of a vector says, so that none goes for its age.
        let options = VacuumOptions { keep: Keep::Versions(count), safety_us: i64::MAX, dry_run: false };
        let report = vacuum(&self.store, &options, &NeverCancel, &Silent)?;
        // As a vacuum does once they are an hour old.
        (report.oldest_before..report.oldest).try_for_each(|version| self.storage.delete(&log_name(version)))?;
        self.snapshot = Some(self.store.latest()?);
        self.forget_before(report.oldest);
        Ok(())
    }

    /// Folds the records since the newest root.
    pub(crate) fn pack(&mut self) -> Result<()> {
        self.snapshot = Some(self.store.pack(self.snapshot()?)?);
        Ok(())
    }

    /// Gives the next commit a key; several belong to commits that share a record.
    pub(crate) fn key(&mut self, key: &[u8], content: u128) -> Result<()> {
        let key = CommitKey::new(key)?;
        self.keys.insert(key.clone());
        self.next_keys.push(Keyed { key, content });
        Ok(())
    }

    /// Commits what was done since the last commit.
    pub(crate) fn commit(&mut self, message: Option<&str>) -> Result<()> {
        let (operations, keys) = (std::mem::take(&mut self.operations), std::mem::take(&mut self.next_keys));
        let changes = Changes { message: message.map(str::to_owned), keys, operations };
        self.snapshot = Some(match &self.snapshot {
            None => self.store.create(changes)?,
            Some(base) => self.store.commit(base, changes, &mut StandardRules)?,
        });
        Ok(())
    }

    /// Commits, and notes what the version should hold; of every array the whole domain is read.
    pub(crate) fn commit_and_expect(&mut self, message: Option<&str>) -> Result<()> {
        self.commit(message)?;
        self.expect(&[])
    }

    /// Notes what the newest version should hold; of the array at "/" these boxes are read, else the whole domain.
    pub(crate) fn expect(&mut self, boxes: &[&[(&str, &str)]]) -> Result<()> {
        let snapshot = self.snapshot()?.clone();
        let mut nodes = Vec::new();
        for node in snapshot.nodes()? {
            let metadata = node.metadata().all()?;
            let mut listed = json!({"path": node.path(), "kind": node.kind(), "metadata": *metadata});
            parts::list(&mut listed, &node)?;
            if let Some(entry) = self.arrays.get(node.path()) {
                let schema = &entry.model.schema;
                let subs = boxes.iter().map(|b| parse_box(schema, b)).collect::<Result<Vec<Subarray>>>()?;
                let subs = if subs.is_empty() { vec![schema.domain()] } else { subs };
                let reads = subs.iter().map(|sub| entry.model.read(sub)).collect::<Result<Vec<Value>>>()?;
                listed["schema"] = serde_json::from_str(&schema.to_stored_json()).map_err(no_json)?;
                listed["reads"] = Value::Array(reads);
            }
            nodes.push(listed);
        }
        let mut listed = json!({"version": snapshot.version(), "time_us": snapshot.time_us(), "nodes": nodes});
        let retained = snapshot.retained();
        let (tags, floor) = (retained.tags()?, retained.floor().map(|f| f.version));
        let (data, manifest) = (retained.condemned_data()?, retained.condemned_manifest()?);
        if !tags.is_empty() || floor.is_some() || !data.is_empty() || !manifest.is_empty() {
            let ids = |ids: &BTreeSet<Id>| ids.iter().map(Id::to_string).collect::<Vec<_>>();
            let condemned = json!({"data": ids(&data), "manifest": ids(&manifest)});
            listed["retained"] = json!({"tags": tags, "floor": floor, "condemned": condemned});
        }
        let mut keys = serde_json::Map::new();
        for key in &self.keys {
            let Some(commit) = snapshot.keyed_commit(key)? else { continue };
            let digits = key.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            keys.insert(digits, json!([commit.version, format!("{:032x}", commit.content)]));
        }
        if !keys.is_empty() {
            listed["keys"] = keys.into();
        }
        self.versions.push(listed);
        Ok(())
    }

    /// Makes another vector of it.
    pub(crate) fn rename(&mut self, name: &'static str, about: &'static str) {
        (self.name, self.about) = (name, about);
    }

    /// Forgets the expectations of versions below `version`.
    pub(crate) fn forget_before(&mut self, version: u64) {
        self.versions.retain(|v| v["version"].as_u64() >= Some(version));
    }

    /// What waits for a commit.
    pub(crate) fn operations_mut(&mut self) -> &mut Vec<Operation> {
        &mut self.operations
    }

    /// An id that nothing has.
    pub(crate) fn fresh(&self) -> Id {
        self.entropy.id()
    }

    /// Where the store's objects are put, sealed or not.
    pub(crate) fn used(&self) -> &Arc<dyn Storage> {
        self.store.storage()
    }

    /// Where the store lies.
    pub(crate) fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// The newest version.
    pub(crate) fn snapshot(&self) -> Result<&Arc<Snapshot>> {
        self.snapshot.as_ref().ok_or_else(|| Error::input("nothing has been committed"))
    }

    /// The vector.
    pub(crate) fn finish(self) -> Case {
        let mut expect = json!({"case": self.name, "about": self.about, "format": "GS1"});
        if let Some(key) = &self.key {
            expect["key"] = key.bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>().into();
        }
        expect["versions"] = self.versions.into();
        Case::new(self.name, self.storage, expect)
    }

    fn entry(&mut self, path: &str) -> Result<&mut Entry> {
        self.arrays.get_mut(path).ok_or_else(|| Error::not_found(format!("no array {path}")))
    }

    fn add(&mut self, path: &str, staged: Option<Staged>) -> Result<()> {
        let array = self.entry(path)?.id;
        let fragments = staged.into_iter().collect();
        self.operations.push(Operation::AddFragments { array, fragments });
        Ok(())
    }

    fn context(&self, path: &str) -> WriteContext<'_> {
        WriteContext {
            pool: self.pool.as_ref(),
            files: self.store.files(),
            entropy: self.entropy.as_ref(),
            budget: self.budget.as_ref(),
            arena: &self.arena,
            cancel: &NeverCancel,
            progress: &Silent,
            schema_number: self.arrays.get(path).map_or(0, |entry| entry.schemas.len() as u32 - 1),
            inline: self.inline,
            quick_cells_max: 0,
            blocks: BlockCells::default(),
        }
    }

    fn columns(&self, schema: &Schema, values: &Values<'_>) -> Result<Vec<(usize, Column)>> {
        let column = |(name, cells): &(&str, Vec<Cell>)| {
            let (place, attr) = schema.attr(name)?;
            Ok((place, to_column(attr.datatype(), attr.nullable(), cells)?))
        };
        values.iter().map(column).collect()
    }
}

fn no_json(error: serde_json::Error) -> Error {
    Error::schema("a schema is no JSON").with_source(error)
}

fn parse_box(schema: &Schema, sub: &[(&str, &str)]) -> Result<Subarray> {
    let range =
        |(dim, (lo, hi)): (&gridstone::schema::Dimension, &(&str, &str))| Ok(KeyRange::new(dim.key(lo)?, dim.key(hi)?));
    Ok(Subarray::new(schema.dims().iter().zip(sub).map(range).collect::<Result<_>>()?))
}

fn coordinate_columns(schema: &Schema, coordinates: &[Vec<u64>]) -> Result<Vec<Column>> {
    let column = |dim: Coordinate<'_>| {
        if dim.number().is_none() {
            let texts: Vec<Cell> = coordinates.iter().map(|c| Some(text_of(c[dim.axes()].to_vec()))).collect();
            return to_column(Datatype::String, false, &texts);
        }
        let mut bytes = Vec::new();
        key::decode(dim.datatype(), coordinates.iter().map(|c| c[dim.axes().start]), &mut bytes);
        Column::new(dim.datatype(), AlignedBuf::from_slice(&bytes), None, None)
    };
    schema.coordinates().map(column).collect()
}

/// A column as a caller would hand it in: under nulls lies garbage, which must not reach the disk.
fn to_column(datatype: Datatype, nullable: bool, cells: &[Cell]) -> Result<Column> {
    let mut values = Vec::new();
    let mut offsets = vec![0];
    let garbage = vec![if datatype.holds_bools() { 1 } else { 0xee }; datatype.width().unwrap_or(0)];
    for cell in cells {
        values.extend_from_slice(cell.as_deref().unwrap_or(&garbage));
        offsets.push(values.len() as u64);
    }
    let validity = nullable.then(|| cells.iter().map(|c| u8::from(c.is_some())).collect());
    Column::new(datatype, AlignedBuf::from_slice(&values), datatype.is_var().then_some(offsets), validity)
}
