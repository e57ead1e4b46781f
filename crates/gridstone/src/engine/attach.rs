//! Attaching files of other formats: their cells become those of an array, and stay where they are.

use super::write::for_box;
use super::{Array, Call, Context, Staged};
use crate::base::{Error, ForeignObject, Id, Result};
use crate::fragment::Description;
use crate::fragment::external::{ExternalSpec, ForeignSource, TilePage};
use crate::query::{open_fragment, write_external};
use crate::runtime::LruCache;
use crate::schema::Subarray;
use crate::storage::ForeignFiles;
use crate::store::{Changes, Growth, Operation, Removed, StandardRules};
use std::collections::HashMap;
use std::sync::Arc;

/// A file of another format that an array's cells lie in, and what became of it.
#[derive(Debug)]
pub struct SourceState {
    /// The file, as it was when it was attached.
    pub attached: ForeignObject,
    /// Cells of the array that lie in it, about: those of the fragments that name it.
    pub cells: u64,
    /// The pipelines of its chunks, each once.
    pub pipelines: Vec<String>,
    /// What is wrong with it now; `None`: it is as it was.
    pub problem: Option<Error>,
}

/// A box of an array whose cells lie in files of another format.
#[derive(Debug)]
pub struct AttachedBox {
    /// The fragment that says where.
    pub id: Id,
    /// The box.
    pub bounds: Subarray,
    /// The permanent numbers of the attributes.
    pub attrs: Vec<u32>,
    /// The files, or the prefixes under which they lie.
    pub sources: Vec<ForeignObject>,
}

impl Context {
    /// The same context, whose stores may also read files of other formats under these folders and URLs. It has a cache of its own, so
    /// that handles of this context are allowed no more than before.
    ///
    /// # Errors
    /// Input: a prefix is empty.
    pub fn allowing(&self, sources: &[String]) -> Result<Self> {
        let mut allowed = self.foreign.allowed().to_vec();
        allowed.extend(sources.iter().filter(|prefix| !self.foreign.allowed().contains(prefix)).cloned());
        let foreign = ForeignFiles::new(allowed, self.storage_options.as_ref().clone())?;
        let cache = Arc::new(LruCache::new(self.cache.limit_bytes()));
        Ok(Self { foreign: Arc::new(foreign), cache, ..self.clone() })
    }

    /// Folders and URLs under which files of other formats may be read.
    pub fn sources(&self) -> &[String] {
        self.foreign.allowed()
    }
}

impl Array {
    /// The state of a file now, as an attached fragment records it: with its path from the store's folder, if it lies there.
    ///
    /// # Errors
    /// SourceChanged: there is no such file; Access: the context does not allow it.
    pub fn look_at_source(&self, uri: &str) -> Result<ForeignObject> {
        self.store().foreign().look(&self.store().storage().describe(), uri)
    }

    /// Stages cells that lie in files of another format; `pages` gives those of each tile, a page per list, in the order of the grid.
    /// Nothing is visible before the commit. A call that grows takes a box beyond the domain, and any call one beyond an end that is open.
    ///
    /// # Errors
    /// Input: the fields do not fit the attributes. Bounds, Storage, and those of `pages`.
    pub fn stage_external(
        &self,
        spec: ExternalSpec,
        pages: &mut dyn Iterator<Item = Result<Vec<TilePage>>>,
        call: &Call,
    ) -> Result<Staged> {
        let (_, state) = self.state()?;
        let context = self.write_context(&state, call)?;
        let schema = &for_box(state.schema(), spec.grid.bounds(), call.grows)?;
        let staged = write_external(&context, schema, spec, pages)?;
        Ok(self.staged(vec![staged]).with_growth(state.schema(), schema))
    }

    /// The files of other formats that the array's cells lie in, each once, with their state now.
    ///
    /// # Errors
    /// Corruption, Storage, Cancelled.
    pub fn sources(&self, call: &Call) -> Result<Vec<SourceState>> {
        let (snapshot, state) = self.state()?;
        let context = self.read_context(&snapshot, call);
        let opener = context.files.sources();
        let (mut found, mut places): (Vec<SourceState>, HashMap<String, usize>) = (Vec::new(), HashMap::new());
        for description in self.described(&snapshot, &state, None)?.iter().filter(|d| d.is_external()) {
            call.cancel.check()?;
            let fragment = open_fragment(&context, state.schema(), description)?;
            let pipelines = fragment.foreign_pipelines();
            for ForeignSource { object, keys } in fragment.foreign_sources() {
                let known = places.get(&object.uri).and_then(|place| found.get_mut(*place));
                if let Some(known) = known.filter(|known| known.attached == *object) {
                    known.cells = known.cells.saturating_add(description.cells);
                    let more = pipelines.iter().filter(|one| !known.pipelines.contains(one)).cloned();
                    known.pipelines.extend(more.collect::<Vec<_>>());
                    continue;
                }
                let looked = opener.as_ref().map(|sources| match keys {
                    None => sources.open(object).map(drop),
                    Some(_) => sources.check_prefix(object),
                });
                places.insert(object.uri.clone(), found.len());
                let problem = looked.and_then(Result::err);
                found.push(SourceState {
                    attached: object.clone(),
                    cells: description.cells,
                    pipelines: pipelines.clone(),
                    problem,
                });
            }
        }
        Ok(found)
    }

    /// The boxes of the array whose cells lie in files of another format, oldest first.
    ///
    /// # Errors
    /// Corruption, Storage, Cancelled.
    pub fn attached(&self, call: &Call) -> Result<Vec<AttachedBox>> {
        let (snapshot, state) = self.state()?;
        let context = self.read_context(&snapshot, call);
        let mut described = self.described(&snapshot, &state, None)?;
        described.retain(|d| d.is_external());
        described.sort_by_key(|d| d.order);
        let attached = |description: &Arc<Description>| {
            call.cancel.check()?;
            let fragment = open_fragment(&context, state.schema(), description)?;
            let sources = fragment.foreign_sources().iter().map(|source| source.object.clone()).collect();
            let (bounds, attrs) = (description.bounds.clone(), description.attrs.clone());
            Ok(AttachedBox { id: description.id, bounds, attrs, sources })
        };
        described.iter().map(attached).collect()
    }

    /// Puts staged external fragments in the place of others, whose files have changed: what was written over these stays over the new
    /// ones. Gives the version.
    ///
    /// # Errors
    /// Conflict: one of `replaced` is no attached box of the array any more. Input, CommitUnknown, Storage.
    pub fn replace_attached(&self, mut staged: Vec<Staged>, replaced: &[Id]) -> Result<u64> {
        staged.iter().try_for_each(|part| self.check_commit(part))?;
        let (snapshot, state) = self.state()?;
        let mut old = self.described(&snapshot, &state, None)?;
        old.retain(|d| d.is_external() && replaced.contains(&d.id));
        let Some(order) = old.iter().map(|d| d.order).max().filter(|_| old.len() == replaced.len()) else {
            return Err(Error::conflict(
                "cells of the files were brought home, or attached anew, meanwhile; look again",
            ));
        };
        staged.iter_mut().flat_map(|part| &mut part.fragments).for_each(|made| made.description.order = order);
        self.session().make_room(&mut staged)?;
        let array = self.id();
        let grow = |g: Growth| Operation::Grow { array, dimension: g.dimension, range: g.range };
        let mut operations: Vec<Operation> = Staged::growth(staged.iter()).into_iter().map(grow).collect();
        let removed = old.iter().map(|d| Removed::of(d)).collect();
        let fragments = staged.iter().flat_map(|part| part.fragments.iter().cloned()).collect();
        operations.push(Operation::ReplaceFragments { array, removed, fragments });
        self.submit(&snapshot, Changes::new(operations), staged, &mut StandardRules)
    }
}
