//! Inspects the rows of a manifest root: every page, every value that is an object of its own, every page of fragments.
//!
//! Each row must be found by its key, and have a content. No object is named twice. The rows of nodes must fit together.

use super::bases::Base;
use super::commit_key::{KeyRow, decode_count};
use super::inspect::{Affected, Versions, Walk, cells_of, damage};
use super::kept::Kept;
use super::node_row::{decode_page, decode_tag};
use super::page::PageInfo;
use super::root::Root;
use super::rows::key::{self, CommitKeyRow, NodeRow};
use super::rows::{Entry, Inspected, ObjectRef};
use super::shape::RootRef;
use super::shelf::Shelf;
use super::snapshot::Snapshot;
use super::state::ArrayState;
use super::tree::Node;
use crate::base::{Error, ErrorKind, Id, Result, id_named_twice, limits};
use crate::storage::manifest_name;
use bytes::Bytes;
use serde::de::IgnoredAny;
use std::collections::HashSet;
use std::sync::Arc;

/// What the rows of a root name.
#[derive(Default)]
pub(super) struct Named {
    pages: Vec<(ObjectRef, Result<()>)>,
    /// With the keys of their rows.
    values: Vec<(Bytes, ObjectRef)>,
    /// The objects of rows that are passed over.
    skipped: Vec<ObjectRef>,
    fragments: Vec<(Id, PageInfo)>,
    kept: Vec<Kept>,
    /// How many rows are heads of nodes.
    heads: usize,
    /// The number of the next commit key.
    next_key: u64,
}

impl Walk<'_> {
    /// Checks what lies below `root`. Damage of an object of its own is noted; an error is damage of the root itself.
    pub(super) fn rows(&mut self, root: Root, reference: RootRef) -> Result<()> {
        self.before = Some(root.rows.clone());
        let named = named(&root)?;
        named.kept.iter().for_each(|kept| self.kept(kept));
        let fragments = named.fragments.iter().map(|(_, info)| info.id);
        let objects = named.pages.iter().map(|(object, _)| object.id).chain(named.values.iter().map(|(_, o)| o.id));
        let objects = objects.chain(named.skipped.iter().map(|object| object.id));
        if let Some(id) = id_named_twice(objects.chain(fragments.clone())) {
            return Err(Error::corruption(format!("it names the page or value {id} twice")));
        }
        let pages: HashSet<Id> = fragments.collect();
        let mut is_whole = true;
        for (object, sound) in named.pages {
            is_whole &= self.object(object, reference, || sound)?;
        }
        for object in named.skipped {
            let there = || root.rows.storage()?.open(&manifest_name(object.id)).map(drop);
            self.object(object, reference, there)?;
        }
        for (key, object) in named.values {
            let of = (&root, named.next_key);
            let sound = || match root.rows.value(object) {
                // A newer release may write the values of its rows in its own way.
                Err(e) if e.kind() == ErrorKind::Unsupported && !key::is_known(&key) => Ok(()),
                value => check_value(of, &key, &value?),
            };
            is_whole &= self.object(object, reference, sound)?;
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
            let children = match node {
                Node::Group(group) => snapshot.children_of(group)?,
                Node::Array(array) => snapshot.hidden_in(array)?,
            };
            for (name, child) in children {
                let found = snapshot.node_by_id(child.id)?;
                let is_said =
                    |found: &Node| child == found.as_child() && found.path() == super::path::below(node.path(), &name);
                if !found.is_some_and(|found| is_said(&found)) {
                    return Err(wrong(format!("{name:?} in {} is not the node that its row says", node.path())));
                }
            }
            if let Node::Array(array) = node {
                check_history(array)?;
                snapshot.check_labels(node.id()).map_err(|e| match e.kind() {
                    ErrorKind::Conflict | ErrorKind::Schema => wrong(e.to_string()),
                    _ => e,
                })?;
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

/// What the rows of a root name; every one of them is decoded.
pub(super) fn named(root: &Root) -> Result<Named> {
    let next_key = match damage(root.rows.get(&key::commit_key_count()))? {
        Ok(count) => count.map_or(Ok(0), |value| decode_count(&value))?,
        // Damage of the page that has it is found as such.
        Err(_) => u64::MAX,
    };
    let mut named = Named { next_key, ..Named::default() };
    root.rows.inspect(&mut |inspected| {
        match inspected {
            Inspected::Page(_, object, sound) => named.pages.push((object, sound)),
            Inspected::Row(row) => named.add_row(root, row)?,
        }
        Ok(())
    })?;
    Ok(named)
}

impl Named {
    fn add_row(&mut self, root: &Root, row: &Entry) -> Result<()> {
        if let Entry::Skipped(..) = row {
            self.skipped.extend(row.value_object());
            return Ok(());
        }
        check_place(root, row)?;
        match row {
            Entry::Value(key, value) => check_value((root, self.next_key), key, value)?,
            Entry::Large(key, object) => self.values.push((key.clone(), *object)),
            Entry::Page(..) | Entry::Skipped(..) => {}
        }
        match key::read_node(row.key()) {
            Some((array, NodeRow::Page(page))) => {
                // A value that cannot be read is damage of its own.
                if let Ok(value) = damage(root.rows.value_of(row))? {
                    self.fragments.push((array, decode_page(page, &value)?));
                }
            }
            Some((_, NodeRow::Kept(entry))) => {
                if let Ok(value) = damage(root.rows.value_of(row))? {
                    self.kept.push(Kept::decode(&value, entry)?);
                }
            }
            Some((_, NodeRow::Head)) => self.heads += 1,
            _ => {}
        }
        Ok(())
    }
}

/// A Corruption error unless the row is the one that is found by its key.
fn check_place(root: &Root, row: &Entry) -> Result<()> {
    let is_same = match (root.rows.row(row.key())?, row) {
        (Some(Entry::Value(_, found)), Entry::Value(_, value)) => found == *value,
        (Some(Entry::Large(_, found)), Entry::Large(_, object)) => found == *object,
        _ => false,
    };
    if is_same {
        return Ok(());
    }
    let key = row.key().escape_ascii();
    Err(Error::corruption(format!("a scan finds the row \"{key}\", and a lookup of its key does not")))
}

/// A Corruption error unless the value of this key has the form that [`super::rows::key`] says. Heads, schemas and
/// children are read with their nodes. Rows of newer releases are passed over. The root comes with the number of its next
/// commit key.
fn check_value((root, next_key): (&Root, u64), key: &[u8], value: &[u8]) -> Result<()> {
    let wrong = |why: String| Error::corruption(format!("the row \"{}\" {why}", key.escape_ascii()));
    if let Some((_, NodeRow::Metadata(name) | NodeRow::FieldMetadata(_, name))) = key::read_node(key) {
        let is_text = std::str::from_utf8(name).is_ok() && std::str::from_utf8(value).is_ok();
        return match serde_json::from_slice::<IgnoredAny>(value) {
            Ok(_) if is_text => Ok(()),
            Ok(_) => Err(wrong("is of metadata and not UTF-8".to_owned())),
            Err(e) => Err(wrong(format!("is of metadata and no JSON text: {e}")).with_source(e)),
        };
    }
    if key.starts_with(&key::tags()) {
        let name = key::read_tag(key).filter(|name| (1..=limits::NAME_BYTES_MAX).contains(&name.len()));
        let version = decode_tag(value).map_err(|e| e.context(format!("the row \"{}\"", key.escape_ascii())))?;
        let oldest = root.floor.map_or(1, |floor| floor.version);
        return match name {
            None => Err(wrong("is of a tag without a name".to_owned())),
            Some(_) if (oldest..root.version).contains(&version) => Ok(()),
            Some(_) => Err(wrong(format!("is of a tag of version {version}, which is no version that can have one"))),
        };
    }
    if let Some(row) = key::read_commit_key(key) {
        return check_commit_key((root, next_key), row, value).map_err(|e| wrong(format!("is of commit keys: {e}")));
    }
    if key.starts_with(&key::bases()) {
        let number = key::read_base(key).filter(|number| *number > 0);
        let number = number.ok_or_else(|| wrong("is of a base without a number".to_owned()))?;
        return Base::decode(value, number).map(drop);
    }
    if let Some((_, NodeRow::Kept(entry))) = key::read_node(key) {
        return Kept::decode(value, entry).map(drop);
    }
    if key.starts_with(b"Cd") || key.starts_with(b"Cm") {
        let is_one = key::read_condemned(key).is_some() && value.is_empty();
        return if is_one { Ok(()) } else { Err(wrong("is of no condemned object".to_owned())) };
    }
    Ok(())
}

/// A Corruption error unless `value` is that of a row of commit keys. The root comes with the number of the next one.
fn check_commit_key((root, next): (&Root, u64), row: CommitKeyRow<'_>, value: &[u8]) -> Result<()> {
    let wrong = |why: String| Err(Error::corruption(why));
    match row {
        CommitKeyRow::Count => decode_count(value).map(drop),
        CommitKeyRow::Wrong => wrong("its key is that of none".to_owned()),
        CommitKeyRow::Key(epoch, _) => {
            let KeyRow { commit, number } = KeyRow::decode(value)?;
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

/// A Corruption error if one of the array's schemas may not follow the one before.
fn check_history(array: &ArrayState) -> Result<()> {
    let schemas = array.schemas().all_stored()?;
    for pair in schemas.windows(2) {
        let ([before, after], Some(first)) = (pair, schemas.first()) else { continue };
        after.check_may_follow(before, first).map_err(|e| {
            Error::corruption(format!("array {} has schemas that do not follow each other: {e}", array.path()))
        })?;
    }
    Ok(())
}
