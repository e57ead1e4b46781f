//! The rows that changed since the manifest root: what a fold writes.
//!
//! 1. A changed node gives its head, the schemas added, the metadata set, and the pages of fragments that differ.
//! 2. A changed group gives the names of the children that came, were replaced or went; an array those of hidden arrays.
//! 3. A removed node takes all its rows with it, and those of all that lay below it in the root. A node that was moved
//!    out of there has changed, and keeps its rows.
//! 4. Kept files give theirs, without those whose owner is gone.
//! 5. Tags, condemned files, bases and commit keys give theirs.

use super::node_row::{Child, encode_page};
use super::page::PageInfo;
use super::rows::key::NodeRow;
use super::rows::{Change, RowMap, key};
use super::snapshot::Snapshot;
use super::state::ArrayState;
use super::tree::{Node, Tree, folded_child};
use crate::base::{Error, Id, Result};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

/// The rows of `snapshot` that differ from those of its root, by ascending key, and a range of rows that go. `pages` has
/// the pages of the arrays that gained or lost fragments.
pub(super) fn delta(
    snapshot: &Snapshot,
    pages: &HashMap<Id, Vec<PageInfo>>,
) -> Result<(Vec<Change>, Option<Range<Bytes>>)> {
    let tree = snapshot.tree();
    let changed: HashSet<Id> = tree.changed().map(|(id, _)| id).collect();
    let mut delta = Delta { rows: tree.rows(), changed, found: BTreeMap::new() };
    for (id, _) in tree.changed().filter(|(_, node)| node.is_none()) {
        delta.remove(id)?;
    }
    for node in tree.changed().filter_map(|(_, node)| node) {
        delta.node(tree, node)?;
        if let Node::Array(array) = node {
            delta.array(array, pages.get(&array.id).map(Vec::as_slice))?;
        }
    }
    let keys = snapshot.keys().changes()?;
    let bases = snapshot.bases().changed_rows()?;
    let changes = snapshot.retained().changes()?.into_iter().chain(bases).chain(keys.rows);
    delta.found.extend(changes.map(|change| (change.key, change.value)));
    Ok((delta.found.into_iter().map(|(key, value)| Change { key, value }).collect(), keys.cut))
}

struct Delta<'a> {
    /// The rows of the root.
    rows: &'a RowMap,
    changed: HashSet<Id>,
    found: BTreeMap<Bytes, Option<Bytes>>,
}

impl Delta<'_> {
    fn put(&mut self, key: Bytes, value: Bytes) {
        self.found.insert(key, Some(value));
    }

    /// Takes away all rows with this prefix.
    fn remove_all(&mut self, prefix: &[u8]) -> Result<()> {
        let found = &mut self.found;
        self.rows.scan_all(prefix, &mut |row| {
            found.insert(row.key().clone(), None);
            Ok(())
        })
    }

    /// Takes away the rows of a node, and of all that lies below it in the root and was not changed.
    fn remove(&mut self, id: Id) -> Result<()> {
        let (mut waiting, mut seen) = (vec![id], HashSet::new());
        while let Some(id) = waiting.pop() {
            if !seen.insert(id) {
                return Err(Error::corruption(format!("the node with the id {id} lies in two groups")));
            }
            self.remove_all(&key::node(id))?;
            let (prefix, changed) = (key::children(id), &self.changed);
            self.rows.scan(&prefix, &mut |row| {
                let (_, child) = folded_child(self.rows, row)?;
                waiting.extend((!changed.contains(&child.id)).then_some(child.id));
                Ok(())
            })?;
            self.remove_all(&prefix)?;
        }
        Ok(())
    }

    fn node(&mut self, tree: &Tree, node: &Node) -> Result<()> {
        let id = node.id();
        if !node.is_folded() && tree.rows().get(&key::head(id))?.is_some() {
            // Its id was given to another node before.
            self.remove(id)?;
        }
        let (key, head) = (key::head(id), node.head().encode()?);
        if tree.rows().get(&key)?.as_ref() != Some(&head) || self.found.contains_key(&key) {
            self.put(key, head);
        }
        for (name, text) in node.metadata().changes.iter() {
            self.found.insert(key::metadata(id, name), text.as_ref().map(|text| Bytes::from(text.clone())));
        }
        match node {
            Node::Group(group) => self.children(id, &group.changed),
            Node::Array(array) => {
                self.children(id, &array.hidden);
                self.fields(array)?;
            }
        }
        Ok(())
    }

    fn children(&mut self, id: Id, changed: &BTreeMap<String, Option<Child>>) {
        for (name, child) in changed {
            self.found.insert(key::child(id, name), child.map(|child| child.encode()));
        }
    }

    /// The metadata of attributes and dimensions. That of attributes that were dropped goes.
    fn fields(&mut self, array: &ArrayState) -> Result<()> {
        if array.schemas.count_folded() > 0 && !array.schemas.added.is_empty() {
            let found = &mut self.found;
            self.rows.scan(&key::all_field_metadata(array.id), &mut |row| {
                match key::read_node(row.key()) {
                    Some((_, NodeRow::FieldMetadata(field, _))) if !array.has_field(field) => {
                        found.insert(row.key().clone(), None);
                    }
                    _ => {}
                }
                Ok(())
            })?;
        }
        for (field, metadata) in array.fields.iter() {
            let prefix = key::field_metadata(array.id, *field);
            for (name, text) in metadata.changes.iter() {
                let key = Bytes::from([&prefix, name.as_bytes()].concat());
                self.found.insert(key, text.as_ref().map(|text| Bytes::from(text.clone())));
            }
        }
        Ok(())
    }

    fn array(&mut self, array: &ArrayState, pages: Option<&[PageInfo]>) -> Result<()> {
        for (schema, number) in array.schemas.added.iter().zip(array.schemas.count_folded()..) {
            self.put(key::schema(array.id, number), schema.to_stored_json().into());
        }
        for (entry, kept) in array.changed_kept()? {
            self.found.insert(key::kept(array.id, entry), kept.map(|kept| kept.encode()).transpose()?);
        }
        let Some(pages) = pages else { return Ok(()) };
        let named: HashSet<Id> = pages.iter().map(|page| page.id).collect();
        let before: HashSet<Id> = array.shelves.iter().map(|shelf| shelf.info().id).collect();
        for id in before.iter().filter(|id| !named.contains(id)) {
            self.found.insert(key::page(array.id, *id), None);
        }
        for page in pages.iter().filter(|page| !before.contains(&page.id)) {
            self.put(key::page(array.id, page.id), encode_page(page)?);
        }
        Ok(())
    }
}
