//! Inspects a store: every record, root and page that a kept version names, without stopping at damage.
//!
//! 1. Records are listed. Each one from the floor to the newest must exist, decode, hold its bodies, and follow from
//!    the one before.
//! 2. Every root that a record or the floor names, and every page of it, must decode. The root must match its version's
//!    record and this store.
//! 3. A fragment that is listed twice is damage of the object that lists it last.
//! 4. The versions that a damaged object affects follow from the root that each version is based on.
//!
//! Data files are not opened here; [`Inspection::data`] lists those that must exist, and their fragments. Memory: one
//! entry per version, root, page and fragment description.

use super::duplicates::Tellers;
use super::floor::Floor;
use super::handle::Store;
use super::hint::Hint;
use super::kept::Kept;
use super::operation::Recorded;
use super::record::Record;
use super::rows::RowMap;
use super::shape::RootRef;
use super::snapshot::Snapshot;
use super::tree::Node;
use crate::base::{Cancel, Error, ErrorKind, FileRef, Id, Result};
use crate::fragment::Description;
use crate::schema::{KeyRange, Schema, Subarray};
use crate::storage::{FLOOR, LATEST, LOG, log_name, manifest_name};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// A part of an array that a damage affects.
#[derive(Debug, Clone)]
pub struct Affected {
    /// The array.
    pub array: Id,
    /// The fragment, if the part is one.
    pub fragment: Option<Id>,
    /// The box of its cells.
    pub bounds: Subarray,
    /// The largest number of cells affected.
    pub cells: u64,
}

/// A damaged or missing object.
#[derive(Debug, Clone)]
pub struct Flaw {
    /// Its name in the store.
    pub object: String,
    /// What is wrong.
    pub message: String,
    /// The versions that it affects, in whole or in part.
    pub versions: Versions,
    /// The cells that it affects, if not all.
    pub affected: Vec<Affected>,
}

/// Ranges of versions, both ends inclusive, ascending.
pub type Versions = Vec<(u64, u64)>;

/// An array that some kept version has.
#[derive(Debug, Clone)]
pub struct KnownArray {
    /// Its path where it was last seen.
    pub path: String,
    /// Its newest schema, through which fragments of older ones are read too.
    pub schema: Arc<Schema>,
    /// The number of that schema in the array's history.
    pub number: u32,
    /// Every description of one of its fragments, by fragment and location.
    pub fragments: Vec<Arc<Description>>,
}

/// A data file that some kept version names.
#[derive(Debug, Clone, Default)]
pub struct KnownFile {
    /// The fragments in it, with their arrays.
    pub fragments: Vec<(Id, Arc<Description>)>,
    /// The versions that may read it.
    pub versions: Versions,
    /// Its lengths as entries of kept files say.
    pub kept: Vec<u64>,
}

/// The result of an inspection.
#[derive(Debug, Clone, Default)]
pub struct Inspection {
    /// The floor by which the log was read: the published one, or the one that must have been published.
    pub floor: Option<Floor>,
    /// The newest version.
    pub newest: u64,
    /// The format of the newest record that can be read; 0 if none can.
    pub format: u64,
    /// How many records were read.
    pub records: u64,
    /// All manifest roots named, by ascending version, including damaged ones.
    pub roots: Vec<RootRef>,
    /// Every page and value named, with the roots that name it.
    pub pages: HashMap<Id, Vec<RootRef>>,
    /// The damaged and missing objects.
    pub flaws: Vec<Flaw>,
    /// The arrays by their ids.
    pub arrays: HashMap<Id, KnownArray>,
    /// The data files by their ids.
    pub data: BTreeMap<Id, KnownFile>,
}

impl Inspection {
    /// The oldest version that is kept.
    pub fn oldest(&self) -> u64 {
        self.floor.map_or(1, |f| f.version)
    }

    /// Whether this manifest object is named.
    pub fn names_manifest(&self, id: Id) -> bool {
        self.pages.contains_key(&id) || self.roots.iter().any(|r| r.id == id)
    }

    /// Whether an object of this name is damaged or missing.
    pub fn is_flawed(&self, object: &str) -> bool {
        self.flaws.iter().any(|f| f.object == object)
    }

    pub(super) fn flaw(&mut self, object: String, error: &Error, versions: Versions, affected: Vec<Affected>) {
        self.flaws.push(Flaw { object, message: error.to_string(), versions, affected });
    }
}

/// The versions as ranges.
pub(super) fn ranges(versions: impl IntoIterator<Item = u64>) -> Versions {
    let sorted: BTreeSet<u64> = versions.into_iter().collect();
    let mut found = Versions::new();
    for version in sorted {
        match found.last_mut() {
            Some((_, end)) if *end + 1 == version => *end = version,
            _ => found.push((version, version)),
        }
    }
    found
}

/// `Ok(Err)`: the bytes read are damaged. `Err`: they could not be read for another reason; data of a newer release is
/// no damage.
pub(super) fn damage<T>(read: Result<T>) -> Result<Result<T>> {
    match read {
        Err(e) if !matches!(e.kind(), ErrorKind::Corruption | ErrorKind::NotFound | ErrorKind::SnapshotExpired) => {
            Err(e)
        }
        read => Ok(read),
    }
}

impl Store {
    /// Checks every record from the floor to the newest, the floor, the hint, and every root and page that they name.
    ///
    /// # Errors
    /// NotFound if there is no store; Unsupported, with the name of the object, if a newer release wrote one of them;
    /// Storage, Access, Cancelled. Damage is no error: the result lists it.
    pub fn inspect(&self, cancel: &dyn Cancel) -> Result<Inspection> {
        let mut listed = BTreeSet::new();
        self.log.storage.survey(LOG, &mut |object| {
            let digits = object.name.rsplit('/').next().filter(|file| file.len() == 20);
            listed.extend(digits.and_then(|d| d.parse::<u64>().ok()).filter(|v| *v > 0));
        })?;
        let (found, tellers) = (Inspection::default(), Tellers::default());
        let mut walk =
            Walk { store: self, cancel, found, lines: Vec::new(), seen: HashMap::new(), before: None, tellers };
        let published = damage(self.log.floor())?;
        let Some(newest) = listed.last().copied() else {
            return match published {
                Ok(None) => Err(self.no_store()),
                _ => {
                    Err(Error::corruption("the log has a floor and no record at all; nothing of the store can be read"))
                }
            };
        };
        walk.found.newest = newest;
        walk.floor(published, &listed)?;
        walk.records()?;
        walk.roots()?;
        walk.hint()?;
        walk.blame();
        Ok(walk.found)
    }
}

/// The state of a version's record.
#[derive(Debug, Clone, Copy)]
struct Line {
    version: u64,
    /// Its checksum; `None` if it is damaged or missing.
    xxh3: Option<u64>,
    /// The root that the version is based on.
    root: Option<RootRef>,
}

pub(super) struct Walk<'a> {
    pub(super) store: &'a Store,
    cancel: &'a dyn Cancel,
    pub(super) found: Inspection,
    lines: Vec<Line>,
    /// The objects below roots that were looked at: of a page of fragments its cells.
    pub(super) seen: HashMap<Id, Option<Affected>>,
    /// The rows of the root that was looked at before.
    pub(super) before: Option<RowMap>,
    pub(super) tellers: Tellers,
}

impl Walk<'_> {
    /// The published floor; if that is damaged or lost, the one that a vacuum must have published.
    fn floor(&mut self, published: Result<Option<Floor>>, listed: &BTreeSet<u64>) -> Result<()> {
        let error = match published {
            Ok(Some(floor)) => {
                self.found.floor = Some(floor);
                return Ok(());
            }
            // Either a vacuum died before it published the floor that it decided, or the floor is lost and the records
            // below it were young. In both cases the versions below it are not needed.
            Ok(None) if listed.contains(&1) => {
                let of_state = |newest: Arc<Snapshot>| newest.retained().floor();
                self.found.floor = match damage(self.store.latest().map(of_state))? {
                    Ok(root) => root.map(|root| Floor { version: root.version, root }),
                    Err(_) => self.decided_floor(listed)?,
                };
                let Some(floor) = self.found.floor else { return Ok(()) };
                if !self.lacks_roots(floor.version, listed)? {
                    return Ok(());
                }
                Error::not_found("the log's floor is missing, and what lies below it is gone in part")
            }
            Ok(None) => Error::not_found("the log's floor is missing, and the log does not start at version 1"),
            Err(error) => error,
        };
        if self.found.floor.is_none() {
            self.found.floor = self.decided_floor(listed)?;
        }
        if error.kind() == ErrorKind::NotFound && self.found.floor.is_none() {
            // No vacuum decided a floor: the record of version 1 is missing.
            return Ok(());
        }
        let versions = vec![(self.found.oldest(), self.found.newest)];
        self.found.flaw(FLOOR.to_owned(), &error, versions, Vec::new());
        Ok(())
    }

    /// Whether a root below `floor` is missing that a version from there on names. If so, the floor was published.
    fn lacks_roots(&self, floor: u64, listed: &BTreeSet<u64>) -> Result<bool> {
        for version in listed.range(floor..) {
            self.cancel.check()?;
            let Ok(Some(record)) = damage(self.store.log.read(*version))? else { continue };
            let Some(root) = record.root.filter(|root| root.version < floor) else { break };
            if damage(self.store.log.root(root))?.is_err() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The floor that vacuums decided last, according to the records: its root was durable before it was decided.
    /// Records below it may exist or be missing.
    fn decided_floor(&self, listed: &BTreeSet<u64>) -> Result<Option<Floor>> {
        let mut decided: Option<RootRef> = None;
        for version in listed {
            self.cancel.check()?;
            let Ok(Some(record)) = damage(self.store.log.read(*version))? else { continue };
            for operation in &record.operations {
                if let Recorded::Condemn(condemned) = operation
                    && let Some(root) = condemned.floor
                {
                    decided = decided.into_iter().chain([root]).max_by_key(|root| root.version);
                }
            }
        }
        Ok(decided.map(|root| Floor { version: root.version, root }))
    }

    /// Checks every record, in order, and replays the state alongside.
    fn records(&mut self) -> Result<()> {
        let mut previous: Option<Record> = None;
        let mut state = self.found.floor.is_none().then(Snapshot::before_all);
        for version in self.found.oldest()..=self.found.newest {
            self.cancel.check()?;
            let read = damage(self.store.log.read_file(version))?;
            let floor = self.found.floor.map(|f| f.root);
            let named = read.as_ref().ok().and_then(|(record, _)| record.root);
            let root = [named, floor].into_iter().flatten().max_by_key(|r| r.version);
            let line = |xxh3| Line { version, xxh3, root };
            match read {
                Ok((record, file)) => {
                    (self.found.records, self.found.format) = (self.found.records + 1, record.format);
                    self.lines.push(line(Some(record.xxh3)));
                    self.bodies(&record, &file);
                    state = match self.tellers.record(&record) {
                        Ok(()) => self.follow(state, &record, previous.as_ref())?,
                        Err(error) => {
                            self.found.flaw(log_name(version), &error, Versions::new(), Vec::new());
                            None
                        }
                    };
                    self.collect(&record);
                    previous = Some(record);
                }
                Err(error) => {
                    self.lines.push(line(None));
                    self.found.flaw(log_name(version), &error, Versions::new(), Vec::new());
                    (state, previous) = (None, None);
                }
            }
        }
        Ok(())
    }

    /// The state after `record`, if the one before is known; reports a record that does not follow.
    fn follow(
        &mut self,
        state: Option<Snapshot>,
        record: &Record,
        previous: Option<&Record>,
    ) -> Result<Option<Snapshot>> {
        let parted = previous.filter(|p| record.parent != Some(p.xxh3) || record.time_us <= p.time_us);
        if let Some(before) = parted {
            let error = Error::corruption(format!(
                "the record does not follow from that of version {}: its parent or time is another",
                before.version
            ));
            self.found.flaw(log_name(record.version), &error, Versions::new(), Vec::new());
            return Ok(None);
        }
        let state = match state {
            Some(state) => Some(state),
            None => self.state_before(record)?,
        };
        let Some(mut state) = state else { return Ok(None) };
        if state.version() >= record.version {
            return Ok(Some(state));
        }
        match damage(state.follow(record.clone()))? {
            Ok(()) => Ok(Some(state)),
            Err(error) => {
                self.found.flaw(log_name(record.version), &error, Versions::new(), Vec::new());
                Ok(None)
            }
        }
    }

    /// The state from a root of the version before `record`, or of its own version, if there is one.
    fn state_before(&mut self, record: &Record) -> Result<Option<Snapshot>> {
        let floor = self.found.floor.map(|f| f.root);
        let near = |r: &RootRef| r.version == record.version || r.version + 1 == record.version;
        let Some(reference) = [record.root, floor].into_iter().flatten().find(near) else { return Ok(None) };
        let Ok(root) = damage(self.store.log.root(reference))? else { return Ok(None) };
        let state = Some(Snapshot::of_root(root, reference));
        // The records that created these arrays may be missing, while later ones add fragments to them.
        let Some(state) = state else { return Ok(None) };
        let Ok(nodes) = damage(state.nodes().map_err(|e| in_root(reference, e)))? else { return Ok(None) };
        for node in nodes {
            if let Node::Array(array) = &node {
                self.array(node.id(), node.path(), (array.schemas().count().saturating_sub(1), array.schema()));
            }
        }
        Ok(Some(state))
    }

    /// Checks the inline fragments of the record.
    fn bodies(&mut self, record: &Record, file: &bytes::Bytes) {
        let bad: Vec<(Id, Error)> =
            record.inline.iter().filter_map(|i| record.body(i, file).err().map(|e| (i.id, e))).collect();
        let Some((_, error)) = bad.first() else { return };
        let bad_ids: HashSet<Id> = bad.iter().map(|(id, _)| *id).collect();
        let affected = added(record).filter(|(_, d)| bad_ids.contains(&d.id)).map(|(array, d)| affected(array, d));
        self.found.flaw(log_name(record.version), error, vec![(record.version, self.found.newest)], affected.collect());
    }

    /// Collects the arrays, roots and data files that a record names.
    fn collect(&mut self, record: &Record) {
        let from = self.found.oldest();
        let mut roots: Vec<RootRef> = record.root.into_iter().collect();
        for operation in &record.operations {
            match operation {
                Recorded::CreateArray { id, path, schema, .. } => self.array(*id, path, (0, schema)),
                Recorded::CreateHidden { id, owner, name, schema, .. } => {
                    let above = self.found.arrays.get(owner).map_or("", |known| known.path.as_str());
                    let path = super::path::below(above, name);
                    self.array(*id, &path, (0, schema));
                }
                Recorded::AlterArray { id, number, schema } => {
                    let path = self.found.arrays.get(id).map_or_else(String::new, |known| known.path.clone());
                    self.array(*id, &path, (*number, schema));
                }
                Recorded::Grow { array, dimension, range } => self.grown(*array, *dimension, *range),
                Recorded::Keep { kept, .. } => self.kept(kept),
                Recorded::Condemn(condemned) => roots.extend(condemned.floor),
                _ => {}
            }
        }
        self.found.roots.extend(roots.into_iter().filter(|r| r.version >= from));
        for (array, description) in added(record) {
            self.fragment(array, description, &[(record.version, self.found.newest)]);
        }
    }

    pub(super) fn array(&mut self, id: Id, path: &str, (number, schema): (u32, &Arc<Schema>)) {
        let known = KnownArray { path: path.to_owned(), schema: Arc::clone(schema), number, fragments: Vec::new() };
        let known = self.found.arrays.entry(id).or_insert(known);
        if known.path.is_empty() {
            path.clone_into(&mut known.path);
        }
        let domain = known.schema.domain();
        if number > known.number {
            (known.number, known.schema) = (number, Arc::clone(schema));
        }
        if known.schema.ndim() == schema.ndim() && domain.ndim() == schema.ndim() {
            let joined = known.schema.reaching(&schema.domain()).reaching(&domain);
            known.schema = Arc::new(joined);
        }
    }

    /// Notes the files of an entry.
    pub(super) fn kept(&mut self, kept: &Kept) {
        for file in &kept.files {
            self.found.data.entry(file.id).or_default().kept.push(file.len);
        }
    }

    /// Notes that the domain of an array grew.
    fn grown(&mut self, id: Id, dimension: u32, range: KeyRange) {
        let Some(known) = self.found.arrays.get_mut(&id) else { return };
        let mut ranges = known.schema.domain().ranges().to_vec();
        if let Some(own) = ranges.get_mut(dimension as usize) {
            *own = KeyRange::new(own.lo.min(range.lo), own.hi.max(range.hi));
            known.schema = Arc::new(known.schema.reaching(&Subarray::new(ranges)));
        }
    }

    pub(super) fn fragment(&mut self, array: Id, description: &Arc<Description>, versions: &[(u64, u64)]) {
        if let Some(known) = self.found.arrays.get_mut(&array) {
            known.fragments.push(Arc::clone(description));
        }
        if let FileRef::Data(id) = description.location.file {
            let file = self.found.data.entry(id).or_default();
            file.fragments.push((array, Arc::clone(description)));
            file.versions.extend(versions);
        }
    }

    /// Checks every root named, and its pages.
    fn roots(&mut self) -> Result<()> {
        let floor = self.found.floor.map(|f| f.root);
        let mut named: Vec<RootRef> = self.found.roots.drain(..).chain(floor).collect();
        named.sort_by_key(|r| (r.version, r.id, r.xxh3));
        named.dedup();
        for reference in &named {
            self.cancel.check()?;
            if let Err(error) = damage(self.root(*reference))? {
                self.found.flaw(manifest_name(reference.id), &error, self.resting_on(&[*reference]), Vec::new());
            }
        }
        self.found.roots = named;
        Ok(())
    }

    fn root(&mut self, reference: RootRef) -> Result<()> {
        let mut root = self.store.log.root(reference)?;
        if let Some(before) = &self.before {
            root.rows = root.rows.sharing(before);
        }
        let line = self.lines.iter().find(|l| l.version == reference.version);
        if line.and_then(|l| l.xxh3).is_some_and(|xxh3| xxh3 != root.record) {
            return Err(Error::corruption(format!(
                "manifest root {} is not of the record of version {}",
                reference.id, reference.version
            )));
        }
        self.rows(root, reference).map_err(|e| in_root(reference, e))
    }

    /// The versions that are based on one of these roots.
    pub(super) fn resting_on(&self, roots: &[RootRef]) -> Versions {
        ranges(self.lines.iter().filter(|l| l.root.is_some_and(|r| roots.contains(&r))).map(|l| l.version))
    }

    /// Checks the hint: it may be absent or behind, but not beyond the newest version.
    fn hint(&mut self) -> Result<()> {
        let hint = match damage(self.store.log.storage.read_all(LATEST))? {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            bytes => bytes.map(|bytes| Hint::decode(&bytes)).unwrap_or_default(),
        };
        let (newest, version) = (self.found.newest, hint.version);
        let differs = |record: &&Record| {
            let line = self.lines.iter().find(|line| line.version == record.version);
            line.and_then(|line| line.xxh3).is_some_and(|xxh3| xxh3 != record.xxh3)
        };
        let why = match hint.tail.iter().find(differs) {
            _ if version > newest => format!(
                "the hint names version {version}, the newest that is there is {newest}: it is damaged, or the newest records are lost"
            ),
            _ if version == 0 => "the hint does not start with the number of a version".to_owned(),
            _ if hint.damaged => "the records in the hint are damaged".to_owned(),
            Some(record) => format!("the hint has another record of version {} than the log", record.version),
            None => return Ok(()),
        };
        self.found.flaw(LATEST.to_owned(), &Error::corruption(why), Versions::new(), Vec::new());
        Ok(())
    }

    /// Fills in which versions damaged records and pages affect, and the cells of pages.
    fn blame(&mut self) {
        let mut flaws = std::mem::take(&mut self.found.flaws);
        for flaw in flaws.iter_mut().filter(|f| f.versions.is_empty()) {
            let record = self.lines.iter().find(|l| log_name(l.version) == flaw.object).map(|l| l.version);
            if let Some(version) = record {
                let over = |l: &&Line| {
                    l.version == version || l.version > version && l.root.map_or(0, |r| r.version) < version
                };
                flaw.versions = ranges(self.lines.iter().filter(over).map(|l| l.version));
            } else if let Some((id, place)) = self.seen.iter().find(|(id, _)| manifest_name(**id) == flaw.object) {
                flaw.versions = self.resting_on(self.found.pages.get(id).map(Vec::as_slice).unwrap_or_default());
                flaw.affected = place.iter().cloned().collect();
            }
        }
        for file in self.found.data.values_mut() {
            file.versions = joined(std::mem::take(&mut file.versions));
        }
        for array in self.found.arrays.values_mut() {
            let mut seen = HashSet::new();
            array.fragments.retain(|d| seen.insert((d.id, d.location.file, d.location.offset)));
        }
        for file in self.found.data.values_mut() {
            let mut seen = HashSet::new();
            file.fragments.retain(|(_, d)| seen.insert((d.id, d.location.offset)));
        }
        self.found.flaws = flaws;
    }
}

fn in_root(reference: RootRef, error: Error) -> Error {
    error.context(format!("manifest root {}", reference.id))
}

/// Merges ranges that overlap or touch.
fn joined(mut versions: Versions) -> Versions {
    versions.sort_unstable();
    let mut found = Versions::new();
    for (lo, hi) in versions {
        match found.last_mut() {
            Some((_, end)) if lo <= end.saturating_add(1) => *end = hi.max(*end),
            _ => found.push((lo, hi)),
        }
    }
    found
}

pub(super) fn cells_of(bounds: &Subarray) -> u64 {
    u64::try_from(bounds.cells()).unwrap_or(u64::MAX)
}

/// The part of an array that a fragment covers.
pub(super) fn affected(array: Id, d: &Description) -> Affected {
    Affected { array, fragment: Some(d.id), bounds: d.bounds.clone(), cells: d.cells }
}

/// The fragments that a record adds, with their arrays.
fn added(record: &Record) -> impl Iterator<Item = (Id, &Arc<Description>)> {
    record.operations.iter().flat_map(|operation| {
        let (array, fragments) = match operation {
            Recorded::AddFragments { array, fragments } | Recorded::ReplaceFragments { array, fragments, .. } => {
                (Some(*array), fragments.as_slice())
            }
            _ => (None, &[][..]),
        };
        fragments.iter().filter_map(move |d| Some((array?, d)))
    })
}
