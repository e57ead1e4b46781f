//! The state of an array and of a group at one version.
//!
//! An array's fragments are those on the pages of the manifest root, which are loaded when needed, and those that
//! versions since have added, without those that they removed. Successive snapshots share everything unchanged: pages,
//! batches, schemas, metadata.

use super::extension::Ext;
use super::field::Field;
use super::kept::KeptEntries;
use super::node_metadata::NodeMetadata;
use super::node_row::{self, Child, Head};
use super::operation::Removed;
use super::page::PageInfo;
use super::path;
use super::rows::RowMap;
use super::rows::key::{self, NodeRow};
use super::schemas::Schemas;
use super::shelf::Shelf;
use crate::base::{Error, ErrorKind, Id, Result, xxh3};
use crate::fragment::{Description, FragmentKind, FragmentOrder};
use crate::schema::{KeyRange, Schema, Subarray};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The fragments that one operation added.
pub(super) type Batch = Arc<[Arc<Description>]>;

/// An array at one version.
#[derive(Debug, Clone)]
pub struct ArrayState {
    pub(super) id: Id,
    /// The group that it lies in; `None` at "/".
    pub(super) parent: Option<Id>,
    pub(super) path: Arc<str>,
    pub(super) schemas: Schemas,
    /// The domain: as far as any schema, or what made it grow, reached.
    pub(super) domain: Subarray,
    /// The last schema, over the domain.
    pub(super) newest: Arc<Schema>,
    pub(super) metadata: NodeMetadata,
    /// The metadata of attributes and dimensions, where it has changed since the manifest root.
    pub(super) fields: Arc<BTreeMap<Field, NodeMetadata>>,
    /// Whether it is a hidden array: its parent is the array that it belongs to.
    pub(super) is_hidden: bool,
    /// Hidden arrays of it that were added or (`None`) taken away since the manifest root.
    pub(super) hidden: BTreeMap<String, Option<Child>>,
    pub(super) shelves: Vec<Arc<Shelf>>,
    /// Fragments added since the manifest root.
    pub(super) recent: Vec<Batch>,
    /// The boxes of fragments removed since the manifest root, which may still describe them.
    pub(super) gone: Arc<HashMap<Id, Subarray>>,
    /// Files kept beside it.
    pub(super) kept: KeptEntries,
    pub(super) ext: Ext,
}

/// A group at one version. Its children are asked for with [`super::Snapshot::children_of`].
#[derive(Debug, Clone)]
pub struct GroupState {
    pub(super) id: Id,
    /// The group that it lies in; `None` at "/".
    pub(super) parent: Option<Id>,
    pub(super) path: Arc<str>,
    pub(super) metadata: NodeMetadata,
    /// Whether the manifest root has children of it.
    pub(super) is_folded: bool,
    /// Children added, replaced or (`None`) taken away since.
    pub(super) changed: BTreeMap<String, Option<Child>>,
    pub(super) ext: Ext,
}

/// The boxes of manifest pages that cannot be read, with their errors.
pub type LostBoxes = Vec<(Subarray, Error)>;

impl ArrayState {
    /// An array without cells.
    pub(super) fn new(id: Id, parent: Option<Id>, path: &str, schema: Arc<Schema>) -> Self {
        Self {
            id,
            parent,
            path: path.into(),
            schemas: Schemas::new(Arc::clone(&schema)),
            domain: schema.domain(),
            newest: schema,
            metadata: NodeMetadata::default(),
            fields: Arc::default(),
            is_hidden: false,
            hidden: BTreeMap::new(),
            shelves: Vec::new(),
            recent: Vec::new(),
            gone: Arc::default(),
            kept: KeptEntries::default(),
            ext: None,
        }
    }

    /// The array that `rows` have, at `path`; `shelf` makes the shelf of a page.
    pub(super) fn of_rows(
        rows: &RowMap,
        (id, path): (Id, &str),
        head: Head,
        shelf: &dyn Fn(PageInfo) -> Result<Arc<Shelf>>,
    ) -> Result<Self> {
        let count = head.schemas.unwrap_or(0);
        let schemas = Schemas::of(rows, id, count);
        let newest = schemas
            .stored(count.saturating_sub(1))?
            .ok_or_else(|| Error::corruption(format!("array {path} has no schema")))?;
        let mut shelves = Vec::new();
        rows.scan(&key::pages(id), &mut |row| {
            let Some((_, NodeRow::Page(page))) = key::read_node(row.key()) else { return Ok(()) };
            let page = node_row::decode_page(page, &rows.value_of(row)?)?;
            if page.bounds.ndim() != newest.ndim() {
                let dims = newest.ndim();
                return Err(Error::corruption(format!("array {path} has {dims} dimensions, its pages do not")));
            }
            shelves.push(shelf(page)?);
            Ok(())
        })?;
        let Head { parent, ext, domain, is_hidden, .. } = head;
        if domain.as_ref().is_some_and(|domain| domain.ndim() != newest.ndim()) {
            return Err(Error::corruption(format!("the domain of array {path} does not have its dimensions")));
        }
        let (newest, domain) = match domain {
            Some(domain) => {
                let newest = Arc::new(newest.reaching(&domain));
                let domain = newest.domain();
                (newest, domain)
            }
            None => (Arc::clone(&newest), newest.domain()),
        };
        newest.check_limits().map_err(|e| Error::corruption(format!("array {path}: {e}")).with_source(e))?;
        let (metadata, path) = (NodeMetadata::of(rows, id), path.into());
        let (recent, gone, kept) = (Vec::new(), Arc::default(), KeptEntries::of(rows, id));
        let (fields, hidden) = (Arc::default(), BTreeMap::new());
        Ok(Self {
            id,
            parent,
            path,
            schemas,
            domain,
            newest,
            metadata,
            fields,
            is_hidden,
            hidden,
            shelves,
            recent,
            gone,
            kept,
            ext,
        })
    }

    /// What its row says of it.
    pub(super) fn head(&self) -> Head {
        let name = path::name(&self.path).to_owned();
        let (schemas, domain) = (Some(self.schemas.count()), Some(self.domain.clone()));
        Head { parent: self.parent, name, schemas, domain, is_hidden: self.is_hidden, ext: self.ext.clone() }
    }

    /// What a newer release says of it.
    pub fn ext(&self) -> &Ext {
        &self.ext
    }

    /// The permanent id.
    pub fn id(&self) -> Id {
        self.id
    }

    /// The path at this version.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The name at this version, in what it lies in.
    pub fn name(&self) -> &str {
        path::name(&self.path)
    }

    /// The domain at this version.
    pub fn domain(&self) -> &Subarray {
        &self.domain
    }

    /// A number that tells its schema and domain from all others that it had: the checksum of the number of schemas and of
    /// the domain.
    pub fn stamp(&self) -> u64 {
        let keys = self.domain.ranges().iter().flat_map(|range| [range.lo, range.hi]);
        let words: Vec<u8> =
            [u64::from(self.schemas.count())].into_iter().chain(keys).flat_map(u64::to_le_bytes).collect();
        xxh3(&words)
    }

    /// Makes the domain reach as far as `range` along an axis.
    ///
    /// # Errors
    /// Schema if there is no such axis, or its type does not have these coordinates.
    pub(super) fn grow(&mut self, dimension: u32, range: KeyRange) -> Result<()> {
        let mut ranges = self.domain.ranges().to_vec();
        let (Some(own), Some(dim)) = (ranges.get_mut(dimension as usize), self.newest.dims().get(dimension as usize))
        else {
            return Err(Error::schema(format!("array {} has no dimension number {dimension}", self.path)));
        };
        dim.check_range(range).map_err(|e| e.context(format!("array {}", self.path)))?;
        *own = own.joined(range);
        self.reach(Subarray::new(ranges))
    }

    /// Sets the domain, which contains the one before.
    fn reach(&mut self, domain: Subarray) -> Result<()> {
        let newest = self.newest.reaching(&domain);
        newest.check_limits().map_err(|e| e.context(format!("array {}", self.path)))?;
        (self.domain, self.newest) = (newest.domain(), Arc::new(newest));
        Ok(())
    }

    /// All schemas that it ever had, by their numbers; fragments refer to them.
    pub fn schemas(&self) -> &Schemas {
        &self.schemas
    }

    /// An Unsupported error, which names the features, unless this release can read it.
    ///
    /// # Errors
    /// Unsupported.
    pub fn check_readable(&self) -> Result<()> {
        self.newest.check_readable(format_args!("array {}", self.path))
    }

    /// The schema at this version: the last of its history.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.newest
    }

    /// Appends the next schema, which should get `number`. A Conflict error if another schema has that number, a Schema
    /// error if it cannot follow the last.
    pub(super) fn alter(&mut self, number: u32, schema: &Arc<Schema>) -> Result<()> {
        self.check_alter(number)?;
        let first = self.schemas.stored(0)?.unwrap_or_else(|| Arc::clone(schema));
        // Another commit may have made the domain grow since the schema was made.
        let next = match schema.ndim() == self.newest.ndim() {
            true => Arc::new(schema.reaching(&self.domain)),
            false => Arc::clone(schema),
        };
        next.check_may_follow(&self.newest, &first).map_err(|e| e.context(format!("array {}", self.path)))?;
        self.schemas.added.push(Arc::clone(schema));
        (self.domain, self.newest) = (next.domain(), next);
        self.forget_fields();
        Ok(())
    }

    /// A Conflict error unless the next schema gets this number.
    pub(super) fn check_alter(&self, number: u32) -> Result<()> {
        if self.schemas.count() == number {
            return Ok(());
        }
        Err(Error::conflict(format!(
            "the schema of array {} was changed by another commit: it has had {} schemas by now, not {number}; nothing was \
             committed, look at the new schema and change that",
            self.path,
            self.schemas.count()
        )))
    }

    /// Its metadata.
    pub fn metadata(&self) -> &NodeMetadata {
        &self.metadata
    }

    /// How many fragments it has; nothing is loaded.
    pub fn count_fragments(&self) -> u64 {
        let folded: u64 = self.shelves.iter().map(|s| u64::from(s.info().count)).sum();
        let added: u64 = self.recent.iter().map(|batch| batch.len() as u64).sum();
        (folded + added).saturating_sub(self.gone.len() as u64)
    }

    /// The fragments whose boxes intersect `within` (`None`: all), in ascending order. Loads and keeps only the
    /// manifest pages whose boxes intersect it. Corruption if a page is damaged.
    pub fn fragments(&self, within: Option<&Subarray>) -> Result<Vec<Arc<Description>>> {
        let wanted = |bounds: &Subarray| within.is_none_or(|w| w.intersects(bounds));
        let mut found = Vec::new();
        for shelf in self.shelves.iter().filter(|s| wanted(&s.info().bounds)) {
            found.extend(shelf.load()?.iter().filter(|d| wanted(&d.bounds) && self.has(d.id)).cloned());
        }
        found.extend(self.recent().filter(|d| wanted(&d.bounds)).cloned());
        // Pages are cut by space, so their orders interleave; merged fragments keep the order of their inputs.
        found.sort_by_key(|d| d.order);
        Ok(found)
    }

    /// The fragments of versions after `after` that are known without reading: those added since the manifest root, and
    /// those on its pages that this process has read or written.
    pub fn at_hand(&self, after: u64) -> Vec<Arc<Description>> {
        let newer = |d: &&Arc<Description>| d.order.version > after;
        let pages = self.shelves.iter().filter_map(|shelf| shelf.at_hand());
        let there = |d: &&Arc<Description>| newer(d) && self.has(d.id);
        let folded = pages.flat_map(|page| page.iter().filter(there).cloned().collect::<Vec<_>>());
        folded.chain(self.recent().filter(newer).cloned()).collect()
    }

    /// Like [`ArrayState::fragments`], but leaves out damaged pages and returns their boxes with the errors.
    ///
    /// # Errors
    /// Storage, Access.
    pub fn fragments_around(&self, within: Option<&Subarray>) -> Result<(Vec<Arc<Description>>, LostBoxes)> {
        let wanted = |bounds: &Subarray| within.is_none_or(|w| w.intersects(bounds));
        let (mut found, mut lost) = (Vec::new(), Vec::new());
        for shelf in self.shelves.iter().filter(|s| wanted(&s.info().bounds)) {
            match shelf.load() {
                Ok(all) => found.extend(all.iter().filter(|d| wanted(&d.bounds) && self.has(d.id)).cloned()),
                Err(e) if e.kind() == ErrorKind::Corruption => lost.push((shelf.info().bounds.clone(), e)),
                Err(e) => return Err(e),
            }
        }
        found.extend(self.recent().filter(|d| wanted(&d.bounds)).cloned());
        found.sort_by_key(|d| d.order);
        Ok((found, lost))
    }

    /// Whether it is a hidden array.
    pub fn is_hidden(&self) -> bool {
        self.is_hidden
    }

    /// The array that it is a hidden array of.
    pub fn owner(&self) -> Option<Id> {
        self.parent.filter(|_| self.is_hidden)
    }

    /// Whether there are so few fragments that a scan of all of them takes no time.
    pub fn has_few_fragments(&self) -> bool {
        self.shelves.len() <= 1 && self.recent().count() <= 64
    }

    /// The fragments added since the manifest root, in commit order.
    pub(super) fn recent(&self) -> impl Iterator<Item = &Arc<Description>> {
        self.recent.iter().flat_map(|batch| batch.iter()).filter(|d| self.has(d.id))
    }

    /// Whether the fragment, which the root or a version since describes, is still in the array.
    pub(super) fn has(&self, id: Id) -> bool {
        !self.gone.contains_key(&id)
    }

    /// A Conflict error unless all of `removed` are in the array, and with each the masks over it. Loads the manifest
    /// pages that may describe them.
    pub(super) fn check_present(&self, removed: &[Removed]) -> Result<()> {
        let taken: HashSet<Id> = removed.iter().map(|r| r.id).collect();
        let mut missing = taken.clone();
        let mut unmasked = true;
        self.look_near(removed, |d| {
            missing.remove(&d.id);
            unmasked &= d.over.is_none_or(|over| !taken.contains(&over) || taken.contains(&d.id));
        })?;
        if !missing.is_empty() || taken.len() < removed.len() {
            return Err(Error::conflict(format!(
                "fragments of array {} that were to be merged have been merged or removed by another commit; nothing was \
                 committed",
                self.path
            )));
        }
        if unmasked {
            return Ok(());
        }
        Err(Error::conflict(format!(
            "cells of fragments of array {} that were to be merged have been deleted by another commit; nothing was committed",
            self.path
        )))
    }

    /// Those of `removed` that are in the array, and that no mask lies over which is not among them. Loads the manifest
    /// pages that may describe them.
    pub(super) fn present_among(&self, removed: &[Removed]) -> Result<Vec<Removed>> {
        let taken: HashSet<Id> = removed.iter().map(|r| r.id).collect();
        let (mut present, mut masked) = (HashSet::new(), HashSet::new());
        self.look_near(removed, |d| {
            if taken.contains(&d.id) {
                present.insert(d.id);
            } else {
                masked.extend(d.over);
            }
        })?;
        Ok(removed.iter().filter(|r| present.contains(&r.id) && !masked.contains(&r.id)).cloned().collect())
    }

    /// A Conflict error unless every fragment that a mask among those `added` by one commit lies over is in the array,
    /// or is added with it.
    pub(super) fn check_masked<'a>(&self, added: impl Iterator<Item = &'a Description> + Clone) -> Result<()> {
        let over = |d: &Description| Some(Removed { id: d.over?, order: d.order, bounds: d.bounds.clone() });
        let mut wanted: Vec<Removed> = added.clone().filter_map(over).collect();
        if !wanted.is_empty() {
            let own: HashSet<Id> = added.map(|d| d.id).collect();
            wanted.retain(|r| !own.contains(&r.id));
        }
        let mut missing: HashSet<Id> = wanted.iter().map(|r| r.id).collect();
        if missing.is_empty() {
            return Ok(());
        }
        self.look_near(&wanted, |d| {
            missing.remove(&d.id);
        })?;
        if missing.is_empty() {
            return Ok(());
        }
        Err(Error::conflict(format!(
            "fragments of array {} whose cells were to be deleted have been merged by another commit; nothing was committed",
            self.path
        )))
    }

    /// The fragment with this id, one that touches `near`, if the array has it.
    ///
    /// # Errors
    /// Corruption if a manifest page that `near` touches is missing or damaged, Storage.
    pub fn find(&self, id: Id, near: &Subarray) -> Result<Option<Description>> {
        let wanted = Removed { id, order: FragmentOrder::after(0), bounds: near.clone() };
        let mut found = None;
        self.look_near(&[wanted], |d| {
            if d.id == id {
                found = Some(d.clone());
            }
        })?;
        Ok(found)
    }

    /// Calls `each` with every fragment of the array that is in a batch, or on a manifest page that one of `wanted`
    /// touches.
    fn look_near(&self, wanted: &[Removed], mut each: impl FnMut(&Description)) -> Result<()> {
        self.recent().for_each(|d| each(d));
        for shelf in &self.shelves {
            if wanted.iter().any(|r| r.bounds.intersects(&shelf.info().bounds)) {
                shelf.load()?.iter().filter(|d| self.has(d.id)).for_each(|d| each(d));
            }
        }
        Ok(())
    }

    /// Replaces `removed` by `fragments`. Input, Bounds or Conflict errors say what does not fit;
    /// [`ArrayState::check_present`] checks that those removed exist.
    pub(super) fn replace(&mut self, removed: &[Removed], fragments: &[Arc<Description>]) -> Result<()> {
        if removed.is_empty() {
            return Err(Error::input(format!("array {}: a merge of no fragments", self.path)));
        }
        // Deletes may have been removed with them and have a greater order; and tombstones may be left over a dense
        // fragment.
        let known = |d: &&Arc<Description>| {
            let is_left = d.kind == FragmentKind::Tombstones;
            removed.iter().any(|r| r.order == d.order || is_left && r.order.leftover() == d.order)
        };
        if let Some(wrong) = fragments.iter().find(|d| !known(d)) {
            return Err(Error::input(format!(
                "array {}: merged fragment {} has another order than each of those merged",
                self.path, wrong.id
            )));
        }
        let gone = Arc::make_mut(&mut self.gone);
        for Removed { id, bounds, .. } in removed {
            if gone.insert(*id, bounds.clone()).is_some() {
                return Err(Error::conflict(format!("fragment {id} of array {} was taken out before", self.path)));
            }
        }
        if fragments.is_empty() { Ok(()) } else { self.add(fragments) }
    }

    /// Adds `fragments`. Input, Bounds or Conflict errors say what does not fit.
    pub(super) fn add(&mut self, fragments: &[Arc<Description>]) -> Result<()> {
        let mut ids = HashSet::with_capacity(fragments.len());
        for fragment in fragments {
            self.check(fragment).map_err(|e| e.context(format!("array {}", self.path)))?;
            if !ids.insert(fragment.id) {
                return Err(self.twice(fragment.id));
            }
        }
        if let Some(known) = self.recent().find(|d| ids.contains(&d.id)) {
            return Err(self.twice(known.id));
        }
        // It would count as one of those that went.
        if let Some(gone) = ids.iter().find(|id| !self.has(**id)) {
            return Err(Error::conflict(format!(
                "fragment {gone} was taken out of array {}; no other gets its id",
                self.path
            )));
        }
        self.recent.push(fragments.into());
        Ok(())
    }

    /// The error of adding a fragment that exists already.
    pub(super) fn twice(&self, id: Id) -> Error {
        Error::conflict(format!("fragment {id} is in array {} already; it can be committed only once", self.path))
    }

    fn check(&self, d: &Description) -> Result<()> {
        let wrong = |why: String| Err(Error::input(format!("fragment {} cannot be added: {why}", d.id)));
        let Some(schema) = self.schemas.stored(d.schema)? else {
            return wrong(format!("it was written with schema {}, the array has {}", d.schema, self.schemas.count()));
        };
        // A deletion may have been written for a domain that others know, or none.
        match d.kind {
            FragmentKind::Deletion => self.newest.check_possible(&d.bounds)?,
            _ => self.newest.check_inside(&d.bounds)?,
        }
        if let Some(why) = d.contradiction() {
            return wrong(why.to_owned());
        }
        if d.location.offset.checked_add(d.location.len).is_none() {
            return wrong("its place is beyond any file".to_owned());
        }
        if !schema.is_readable() {
            return Ok(());
        }
        if d.kind == FragmentKind::Dense && schema.sparse() {
            return wrong("it is dense, the array sparse".to_owned());
        }
        if d.over.is_some_and(|over| !self.has(over)) || (d.over.is_some() && !schema.sparse()) {
            return wrong("it masks a fragment that is not in the array, or not of cells alone".to_owned());
        }
        let mut known = schema.attrs().iter().map(crate::schema::Attribute::id);
        // Both are ascending: a number not found in the rest is in none of it.
        if let Some(attr) = d.attrs.iter().find(|attr| !known.any(|k| k == **attr)) {
            return wrong(format!("it has values of attribute number {attr}, its schema does not"));
        }
        let whole = !schema.sparse() || !d.kind.holds_cells() || d.attrs.len() == schema.attrs().len();
        if !whole {
            return wrong("cells of a sparse array have a value of every attribute".to_owned());
        }
        Ok(())
    }
}

impl GroupState {
    /// A group without children.
    pub(super) fn new(id: Id, parent: Option<Id>, path: &str) -> Self {
        let (path, metadata) = (path.into(), NodeMetadata::default());
        Self { id, parent, path, metadata, is_folded: false, changed: BTreeMap::new(), ext: None }
    }

    /// The group that `rows` have, at `path`.
    pub(super) fn of_rows(rows: &RowMap, (id, path): (Id, &str), head: Head) -> Self {
        let (metadata, parent, ext) = (NodeMetadata::of(rows, id), head.parent, head.ext);
        Self { metadata, is_folded: true, ext, ..Self::new(id, parent, path) }
    }

    /// What its row says of it.
    pub(super) fn head(&self) -> Head {
        let name = path::name(&self.path).to_owned();
        let (parent, ext) = (self.parent, self.ext.clone());
        Head { parent, name, schemas: None, domain: None, is_hidden: false, ext }
    }

    /// What a newer release says of it.
    pub fn ext(&self) -> &Ext {
        &self.ext
    }

    /// The permanent id.
    pub fn id(&self) -> Id {
        self.id
    }

    /// The path at this version.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its metadata.
    pub fn metadata(&self) -> &NodeMetadata {
        &self.metadata
    }
}
