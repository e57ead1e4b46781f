//! Inspects the rows of a manifest root: every page, every value that is an object of its own, every page of fragments,
//! and whether the rows of nodes fit together.

use super::commit_key::{KeyRow, decode_count};
use super::inspect::{Affected, Versions, Walk, cells_of, damage};
use super::node_row::decode_page;
use super::page::PageInfo;
use super::root::Root;
use super::rows::key::{self, CommitKeyRow, NodeRow};
use super::rows::{Entry, Inspected, ObjectRef};
use super::shape::RootRef;
use super::shelf::Shelf;
use super::snapshot::Snapshot;
use super::state::ArrayState;
use super::tree::Node;
use crate::base::{Error, Id, Result, id_named_twice, limits};
use crate::storage::manifest_name;
use std::collections::HashSet;
use std::sync::Arc;

/// What the rows of a root name.
#[derive(Default)]
struct Named {
    pages: Vec<(ObjectRef, Result<()>)>,
    values: Vec<ObjectRef>,
    fragments: Vec<(Id, PageInfo)>,
    /// How many rows are heads of nodes.
    heads: usize,
}

impl Walk<'_> {
    /// Checks what lies below `root`. Damage of an object of its own is noted; an error is damage of the root itself.
    pub(super) fn rows(&mut self, root: Root, reference: RootRef) -> Result<()> {
        self.before = Some(root.rows.clone());
        let named = named(&root)?;
        let mut is_whole = true;
        for (object, sound) in named.pages {
            is_whole &= self.object(object, reference, || sound)?;
        }
        for object in named.values {
            is_whole &= self.object(object, reference, || root.rows.value(object).map(drop))?;
        }
        let pages: HashSet<Id> = named.fragments.iter().map(|(_, info)| info.id).collect();
        if let Some(page) = id_named_twice(named.fragments.iter().map(|(_, info)| info.id)) {
            return Err(Error::corruption(format!("it names the page {page} twice")));
        }
        if is_whole {
            self.nodes(Snapshot::of_root(root, reference), named.heads)?;
        }
        named.fragments.iter().try_for_each(|(array, info)| self.fragments_of(*array, info, &pages, reference))
    }

    /// Notes that a root names an object, which is checked once. Returns whether it is sound.
    fn object(&mut self, object: ObjectRef, reference: RootRef, check: impl FnOnce() -> Result<()>) -> Result<bool> {
        self.found.pages.entry(object.id).or_default().push(reference);
        let name = manifest_name(object.id);
        if self.seen.contains_key(&object.id) {
            return Ok(!self.found.is_flawed(&name));
        }
        self.seen.insert(object.id, None);
        match damage(check())? {
            Ok(()) => Ok(true),
            Err(error) => {
                self.found.flaw(name, &error, Versions::new(), Vec::new());
                Ok(false)
            }
        }
    }

    /// Checks that the rows of nodes fit together, and notes the arrays.
    fn nodes(&mut self, snapshot: Snapshot, heads: usize) -> Result<()> {
        let wrong = |why: String| Error::corruption(why);
        let nodes = snapshot.nodes()?;
        let mut reached = HashSet::new();
        for node in &nodes {
            if !reached.insert(node.id()) {
                return Err(wrong(format!("node {} lies in two groups", node.id())));
            }
            if let Node::Group(group) = node {
                for (name, child) in snapshot.children_of(group)? {
                    let found = snapshot.node_by_id(child.id)?;
                    if found.is_none_or(|node| {
                        node.as_child() != child || node.path() != super::path::below(group.path(), &name)
                    }) {
                        return Err(wrong(format!(
                            "{name:?} in the group {} is not the node that its row says",
                            group.path()
                        )));
                    }
                }
            }
            if let Node::Array(array) = node {
                check_history(array)?;
                self.array(node.id(), node.path(), (array.schemas().count().saturating_sub(1), array.schema()));
            }
        }
        if nodes.len() == heads {
            return Ok(());
        }
        Err(wrong(format!("it has {heads} nodes, and {} of them lie in groups", nodes.len())))
    }

    /// Checks a page of fragments, unless it was checked for another root.
    fn fragments_of(&mut self, array: Id, info: &PageInfo, named: &HashSet<Id>, reference: RootRef) -> Result<()> {
        self.found.pages.entry(info.id).or_default().push(reference);
        if self.seen.contains_key(&info.id) {
            return Ok(());
        }
        let whole = Affected { array, fragment: None, bounds: info.bounds.clone(), cells: cells_of(&info.bounds) };
        self.seen.insert(info.id, Some(whole));
        match damage(Shelf::new(info.clone(), Arc::clone(&self.store.log.storage)).load())? {
            Ok(fragments) => {
                let versions = self.resting_on(&[reference]);
                fragments.iter().for_each(|d| self.fragment(array, d, &versions));
                if let Err(error) = self.tellers.page(info.id, reference.version, named, &fragments) {
                    self.found.flaw(manifest_name(info.id), &error, Versions::new(), Vec::new());
                }
            }
            Err(error) => self.found.flaw(manifest_name(info.id), &error, Versions::new(), Vec::new()),
        }
        Ok(())
    }
}

/// Checks a row of commit keys. `next` is the number of the next one.
fn check_commit_key(root: &Root, row: &Entry, next: u64) -> Result<()> {
    let wrong = |why: String| Err(Error::corruption(format!("a row of commit keys: {why}")));
    match key::read_commit_key(row.key()) {
        None => Ok(()),
        Some(CommitKeyRow::Count) => decode_count(&root.rows.value_of(row)?).map(drop),
        Some(CommitKeyRow::Wrong) => wrong("its key is that of none".to_owned()),
        Some(CommitKeyRow::Key(epoch, _)) => {
            let KeyRow { commit, number } = KeyRow::decode(&root.rows.value_of(row)?)?;
            if number >= next || number / limits::COMMIT_KEYS_PER_EPOCH != epoch {
                return wrong(format!("the number {number} is not one of epoch {epoch}, of {next} keys"));
            }
            if commit.version == 0 || commit.version > root.version {
                return wrong(format!("it names version {}, which is not one up to {}", commit.version, root.version));
            }
            Ok(())
        }
    }
}

fn named(root: &Root) -> Result<Named> {
    let mut named = Named::default();
    let next = match damage(root.rows.get(&key::commit_key_count()))? {
        Ok(count) => count.map_or(Ok(0), |value| decode_count(&value))?,
        // Damage of the page that has it is found as such.
        Err(_) => u64::MAX,
    };
    root.rows.inspect(&mut |inspected| {
        match inspected {
            Inspected::Page(object, sound) => named.pages.push((object, sound)),
            Inspected::Value(object) => named.values.push(object),
            Inspected::Row(row) => match key::read_node(row.key()) {
                Some((array, NodeRow::Page(page))) => {
                    named.fragments.push((array, decode_page(page, &root.rows.value_of(row)?)?));
                }
                Some((_, NodeRow::Head)) => named.heads += 1,
                Some(_) => {}
                None => check_commit_key(root, row, next)?,
            },
        }
        Ok(())
    })?;
    Ok(named)
}

/// A Corruption error if one of the array's schemas may not follow the one before.
fn check_history(array: &ArrayState) -> Result<()> {
    let schemas = array.schemas().all()?;
    for pair in schemas.windows(2) {
        let ([before, after], Some(first)) = (pair, schemas.first()) else { continue };
        after.check_follows(before, first).map_err(|e| {
            Error::corruption(format!("array {} has schemas that do not follow each other: {e}", array.path()))
        })?;
    }
    Ok(())
}
