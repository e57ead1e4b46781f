//! An array and a group as one version knows them.
//!
//! An array's fragments are those on the pages of the manifest root, loaded when needed, and those that versions
//! since then added. Successive snapshots share all that did not change: pages, batches, schemas, metadata.

use super::shelf::Shelf;
use crate::base::{Error, Id, Result};
use crate::fragment::Description;
use crate::schema::{Schema, Subarray};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Metadata of a node: JSON texts by key.
pub type Metadata = BTreeMap<String, String>;

/// The fragments that one operation added.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) version: u64,
    pub(super) fragments: Vec<Arc<Description>>,
}

/// An array at one version.
#[derive(Debug, Clone)]
pub struct ArrayState {
    pub(super) id: Id,
    pub(super) path: Arc<str>,
    pub(super) schemas: Vec<Arc<Schema>>,
    pub(super) metadata: Arc<Metadata>,
    pub(super) shelves: Vec<Arc<Shelf>>,
    pub(super) recent: Vec<Arc<Batch>>,
}

/// A group at one version.
#[derive(Debug, Clone)]
pub struct GroupState {
    pub(super) id: Id,
    pub(super) path: Arc<str>,
    pub(super) metadata: Arc<Metadata>,
    pub(super) children: BTreeMap<String, Id>,
}

impl ArrayState {
    pub(super) fn new(id: Id, path: &str, schema: Arc<Schema>) -> Self {
        Self {
            id,
            path: path.into(),
            schemas: vec![schema],
            metadata: Arc::default(),
            shelves: Vec::new(),
            recent: Vec::new(),
        }
    }

    /// The permanent id.
    pub fn id(&self) -> Id {
        self.id
    }

    /// The path at this version.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// All schemas it ever had, by their numbers; fragments refer to them.
    pub fn schemas(&self) -> &[Arc<Schema>] {
        &self.schemas
    }

    /// The schema at this version: the last of its history. A Corruption error if there is none.
    pub fn schema(&self) -> Result<&Arc<Schema>> {
        self.schemas.last().ok_or_else(|| Error::corruption(format!("array {} has no schema", self.path)))
    }

    /// Its metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// How many fragments it has; nothing is loaded.
    pub fn count_fragments(&self) -> u64 {
        let folded: u64 = self.shelves.iter().map(|s| u64::from(s.info().count)).sum();
        folded + self.recent.iter().map(|b| b.fragments.len() as u64).sum::<u64>()
    }

    /// The fragments whose boxes intersect `within` (`None`: all), by ascending order. Loads, and keeps, the manifest
    /// pages whose boxes intersect it, and no other. Corruption if a page is damaged.
    pub fn fragments(&self, within: Option<&Subarray>) -> Result<Vec<Arc<Description>>> {
        let wanted = |bounds: &Subarray| within.is_none_or(|w| w.intersects(bounds));
        let mut found = Vec::new();
        for shelf in self.shelves.iter().filter(|s| wanted(&s.info().bounds)) {
            found.extend(shelf.load()?.iter().filter(|d| wanted(&d.bounds)).cloned());
        }
        found.extend(self.recent().filter(|d| wanted(&d.bounds)).cloned());
        // Pages are cut by space, so their orders interleave.
        found.sort_by_key(|d| d.order);
        Ok(found)
    }

    /// Whether there are so few fragments that looking at all of them takes no time.
    pub fn has_few_fragments(&self) -> bool {
        self.shelves.len() <= 1 && self.recent().count() <= 64
    }

    /// The fragments added since the manifest root, by ascending order.
    pub(super) fn recent(&self) -> impl Iterator<Item = &Arc<Description>> {
        self.recent.iter().flat_map(|batch| &batch.fragments)
    }

    /// Adds `fragments`, committed as `version`. Input, Bounds or Conflict errors say what does not fit.
    pub(super) fn add(&mut self, version: u64, fragments: &[Arc<Description>]) -> Result<()> {
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
        self.recent.push(Arc::new(Batch { version, fragments: fragments.to_vec() }));
        Ok(())
    }

    /// The error of adding a fragment that is there.
    pub(super) fn twice(&self, id: Id) -> Error {
        Error::conflict(format!("fragment {id} is in array {} already; it can be committed only once", self.path))
    }

    fn check(&self, d: &Description) -> Result<()> {
        let wrong = |why: String| Err(Error::input(format!("fragment {} cannot be added: {why}", d.id)));
        let Some(schema) = self.schemas.get(d.schema as usize) else {
            return wrong(format!("it was written with schema {}, the array has {}", d.schema, self.schemas.len()));
        };
        schema.check_inside(&d.bounds)?;
        if d.kind == crate::fragment::FragmentKind::Dense && schema.sparse() {
            return wrong("it is dense, the array sparse".to_owned());
        }
        let mut known = schema.attrs().iter().map(crate::schema::Attribute::id);
        // Both are ascending: a number not found in the rest is in none of it.
        if let Some(attr) = d.attrs.iter().find(|attr| !known.any(|k| k == **attr)) {
            return wrong(format!("it has values of attribute number {attr}, its schema does not"));
        }
        if d.location.offset.checked_add(d.location.len).is_none() {
            return wrong("its place is beyond any file".to_owned());
        }
        Ok(())
    }
}

impl GroupState {
    pub(super) fn new(id: Id, path: &str) -> Self {
        Self { id, path: path.into(), metadata: Arc::default(), children: BTreeMap::new() }
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
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Its children by name, sorted.
    pub fn children(&self) -> &BTreeMap<String, Id> {
        &self.children
    }
}
