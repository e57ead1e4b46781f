//! The tree of nodes: those that changed since the manifest root, over the rows of the root.
//!
//! Changed nodes lie in 64 shards by their random ids, so a copy shares everything, and a change copies only the shard
//! and the node that it touches. Any other node is built from its rows when it is first needed, and shared by all copies
//! whose nodes have the same paths. A path is resolved by walking down the groups. A node exists while all nodes above it
//! do. Operations are applied here, so the same code decides what a writer may do and what a reader replays.

use super::extension::Ext;
use super::node_metadata::NodeMetadata;
use super::node_row::{Child, Head};
use super::operation::Recorded;
use super::page::PageInfo;
use super::path;
use super::rows::{Entry, RowMap, key};
use super::shelf::{Shelf, Shelves};
use super::state::{ArrayState, GroupState};
use crate::base::{Error, Id, Result};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

const SHARDS: usize = 64;
/// The most nodes above each other that are believed.
const DEPTH_MAX: usize = 4_096;

/// A node of a store.
#[derive(Debug, Clone)]
pub enum Node {
    /// A group.
    Group(Arc<GroupState>),
    /// An array.
    Array(Arc<ArrayState>),
}

impl Node {
    /// The permanent id.
    pub fn id(&self) -> Id {
        match self {
            Self::Group(group) => group.id,
            Self::Array(array) => array.id,
        }
    }

    /// The path at this version.
    pub fn path(&self) -> &str {
        match self {
            Self::Group(group) => &group.path,
            Self::Array(array) => &array.path,
        }
    }

    /// Its metadata.
    pub fn metadata(&self) -> &NodeMetadata {
        match self {
            Self::Group(group) => &group.metadata,
            Self::Array(array) => &array.metadata,
        }
    }

    /// "group" or "array".
    pub fn kind(&self) -> &'static str {
        self.as_child().kind()
    }

    /// How the group that it lies in names it.
    pub(super) fn as_child(&self) -> Child {
        let is_hidden = matches!(self, Self::Array(array) if array.is_hidden);
        Child { id: self.id(), is_array: matches!(self, Self::Array(_)), is_hidden }
    }

    /// What its row says of it.
    pub(super) fn head(&self) -> Head {
        match self {
            Self::Group(group) => group.head(),
            Self::Array(array) => array.head(),
        }
    }

    /// Whether the manifest root has it.
    pub(super) fn is_folded(&self) -> bool {
        match self {
            Self::Group(group) => group.is_folded,
            Self::Array(array) => array.schemas.count_folded() > 0,
        }
    }

    fn parent(&self) -> Option<Id> {
        match self {
            Self::Group(group) => group.parent,
            Self::Array(array) => array.parent,
        }
    }

    fn metadata_mut(&mut self) -> &mut NodeMetadata {
        match self {
            Self::Group(group) => &mut Arc::make_mut(group).metadata,
            Self::Array(array) => &mut Arc::make_mut(array).metadata,
        }
    }

    fn set_ext(&mut self, ext: &Ext) {
        match self {
            Self::Group(group) => Arc::make_mut(group).ext.clone_from(ext),
            Self::Array(array) => Arc::make_mut(array).ext.clone_from(ext),
        }
    }

    fn place(&mut self, parent: Option<Id>, path: &str) {
        match self {
            Self::Group(group) => {
                let group = Arc::make_mut(group);
                (group.parent, group.path) = (parent, path.into());
            }
            Self::Array(array) => {
                let array = Arc::make_mut(array);
                (array.parent, array.path) = (parent, path.into());
            }
        }
    }
}

/// Nodes that changed since the root; `None`: it was removed.
type Shard = BTreeMap<Id, Option<Node>>;

/// Nodes built from rows; `None`: there is no such node.
type Built = RwLock<HashMap<Id, Option<Node>>>;

/// All nodes of a store.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    rows: RowMap,
    root: Option<Id>,
    shards: Vec<Arc<Shard>>,
    built: Arc<Built>,
    /// Pages of fragments that are loaded.
    shelves: Arc<Shelves>,
}

impl Tree {
    /// A tree without nodes, not even a root.
    pub(super) fn empty() -> Self {
        Self {
            rows: RowMap::empty(),
            root: None,
            shards: vec![Arc::default(); SHARDS],
            built: Arc::default(),
            shelves: Arc::default(),
        }
    }

    /// The tree that `rows` have; its node at "/" is `root`. Pages of fragments among `shelves` are not read again.
    pub(super) fn of_rows(rows: RowMap, root: Id, shelves: Shelves) -> Self {
        Self { rows, root: Some(root), shelves: Arc::new(shelves), ..Self::empty() }
    }

    /// The rows of the root.
    pub(super) fn rows(&self) -> &RowMap {
        &self.rows
    }

    /// The node at "/".
    pub(super) fn root(&self) -> Option<Id> {
        self.root
    }

    /// The nodes that changed since the root, by ascending ids within a shard; `None`: it was removed.
    pub(super) fn changed(&self) -> impl Iterator<Item = (Id, Option<&Node>)> {
        self.shards.iter().flat_map(|shard| shard.iter().map(|(id, node)| (*id, node.as_ref())))
    }

    /// The pages of fragments that are loaded, or belong to nodes that are.
    pub(super) fn known_shelves(&self) -> Shelves {
        let built = self.built.read().unwrap_or_else(PoisonError::into_inner);
        let changed = self.changed().filter_map(|(_, node)| node);
        let arrays = changed.chain(built.values().flatten()).filter_map(|node| match node {
            Node::Array(array) => Some(array),
            Node::Group(_) => None,
        });
        arrays.flat_map(|array| &array.shelves).map(|shelf| (shelf.info().id, Arc::clone(shelf))).collect()
    }

    fn shard_of(id: Id) -> usize {
        let [.., last] = id.0;
        usize::from(last) % SHARDS
    }

    /// The node, or that there is none, if that is known without reading.
    fn known(&self, id: Id) -> Option<Option<Node>> {
        if let Some(changed) = self.shards.get(Self::shard_of(id)).and_then(|shard| shard.get(&id)) {
            return Some(changed.clone());
        }
        self.built.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// Whether the node, or that there is none, is known without reading.
    pub(super) fn is_known(&self, id: Id) -> bool {
        self.known(id).is_some()
    }

    /// The node with this id, if it exists.
    ///
    /// # Errors
    /// Corruption if a page of the manifest, or a group above the node, is missing or damaged; Unsupported if a newer
    /// release wrote it, Storage.
    pub(super) fn get(&self, id: Id) -> Result<Option<Node>> {
        if let Some(known) = self.known(id) {
            return Ok(known);
        }
        let Some(head) = self.head(id)? else { return Ok(None) };
        match self.path_of(id, &head)? {
            Some(path) => self.build(id, head, &path),
            None => Ok(self.remember(id, None)),
        }
    }

    /// The path of a node with this head; `None` if a group above it was removed.
    fn path_of(&self, id: Id, head: &Head) -> Result<Option<String>> {
        let (mut names, mut at, mut above) = (vec![head.name.clone()], id, head.parent);
        // Only what lies directly above a hidden array is an array.
        let mut in_array = head.is_hidden;
        let top = loop {
            let Some(group) = above else {
                if self.root != Some(at) {
                    return Ok(None);
                }
                names.pop();
                break path::ROOT.to_owned();
            };
            match self.known(group) {
                Some(Some(Node::Group(group))) => break group.path.to_string(),
                Some(Some(Node::Array(array))) if in_array && !array.is_hidden => break array.path.to_string(),
                Some(Some(Node::Array(array))) => {
                    return Err(Error::corruption(format!(
                        "the node with the id {id} lies in the array {}",
                        array.path
                    )));
                }
                Some(None) => return Ok(None),
                None => {}
            }
            let head = self.head(group)?;
            let may_be_above = |head: &Head| head.schemas.is_some() == in_array && !head.is_hidden;
            let head = head.filter(|head| may_be_above(head) && names.len() < DEPTH_MAX).ok_or_else(|| {
                Error::corruption(format!("the group with the id {group}, above the node with the id {at}, is missing"))
            })?;
            names.push(head.name);
            (at, above, in_array) = (group, head.parent, false);
        };
        Ok(Some(names.iter().rev().fold(top, |path, name| path::below(&path, name))))
    }

    fn head(&self, id: Id) -> Result<Option<Head>> {
        self.rows.get(&key::head(id))?.map(|head| Head::decode(&head, id)).transpose()
    }

    fn remember(&self, id: Id, node: Option<Node>) -> Option<Node> {
        self.built.write().unwrap_or_else(PoisonError::into_inner).insert(id, node.clone());
        node
    }

    /// The node of a row, which lies at `path`.
    fn build(&self, id: Id, head: Head, path: &str) -> Result<Option<Node>> {
        if head.schemas.is_none() {
            let group = GroupState::of_rows(&self.rows, (id, path), head);
            return Ok(self.remember(id, Some(Node::Group(Arc::new(group)))));
        }
        let shelf = |page: PageInfo| self.shelf(page);
        let array = ArrayState::of_rows(&self.rows, (id, path), head, &shelf)?;
        Ok(self.remember(id, Some(Node::Array(Arc::new(array)))))
    }

    fn shelf(&self, page: PageInfo) -> Result<Arc<Shelf>> {
        match self.shelves.get(&page.id).filter(|shelf| *shelf.info() == page) {
            Some(known) => Ok(Arc::clone(known)),
            None => Ok(Arc::new(Shelf::new(page, Arc::clone(self.rows.storage()?)))),
        }
    }

    /// The same node, to be changed.
    pub(super) fn get_mut(&mut self, id: Id) -> Result<Option<&mut Node>> {
        let Some(node) = self.get(id)? else { return Ok(None) };
        let shard = self.shards.get_mut(Self::shard_of(id));
        let slot = shard.and_then(|shard| Arc::make_mut(shard).entry(id).or_insert_with(|| Some(node)).as_mut());
        Ok(slot)
    }

    pub(super) fn put(&mut self, id: Id, node: Option<Node>) {
        if let Some(shard) = self.shards.get_mut(Self::shard_of(id)) {
            Arc::make_mut(shard).insert(id, node);
        }
    }

    /// The child with this name of the group, or array, with this id, which exists. The group itself is not read.
    pub(super) fn child(&self, group: Id, name: &str) -> Result<Option<Child>> {
        if let Some(Some(node)) = self.known(group) {
            let changed = match &node {
                Node::Group(group) => &group.changed,
                Node::Array(array) => &array.hidden,
            };
            match changed.get(name) {
                Some(changed) => return Ok(*changed),
                None if !node.is_folded() => return Ok(None),
                None => {}
            }
        }
        self.rows.get(&key::child(group, name))?.map(|value| Child::decode(&value)).transpose()
    }

    /// The children of a group by name.
    pub(super) fn children(&self, group: &GroupState) -> Result<BTreeMap<String, Child>> {
        self.children_in(group.id, group.is_folded, &group.changed)
    }

    /// The children of a node by name: those in the rows, if it has some there, with those that `changed`.
    pub(super) fn children_in(
        &self,
        id: Id,
        is_folded: bool,
        changed: &BTreeMap<String, Option<Child>>,
    ) -> Result<BTreeMap<String, Child>> {
        let mut found = BTreeMap::new();
        if is_folded {
            self.rows.scan(&key::children(id), &mut |row| {
                let (name, child) = folded_child(&self.rows, row)?;
                found.insert(name.to_owned(), child);
                Ok(())
            })?;
        }
        for (name, child) in changed {
            match child {
                Some(child) => found.insert(name.clone(), *child),
                None => found.remove(name),
            };
        }
        Ok(found)
    }

    /// The node at `path`. The groups above it are not read, only the rows of their children.
    pub(super) fn find(&self, path: &str) -> Result<Option<Node>> {
        let Some(mut id) = self.root else { return Ok(None) };
        let mut is_array = matches!(self.known(id), Some(Some(Node::Array(_))));
        for name in path::names(path) {
            let child = if is_array { None } else { self.child(id, name)? };
            // An array at "/" may be known by its id alone.
            let Some(child) = child.filter(|child| !child.is_hidden) else { return Ok(None) };
            (id, is_array) = (child.id, child.is_array);
        }
        if let Some(known) = self.known(id) {
            return Ok(known);
        }
        match self.head(id)? {
            Some(head) => self.build(id, head, path),
            None => {
                Err(Error::corruption(format!("the node with the id {id}, which should lie at {path}, is missing")))
            }
        }
    }

    /// Every node, parents before children, children by name. Reads all rows.
    pub(super) fn walk(&self) -> Result<Vec<Node>> {
        self.rows.scan(&key::nodes(), &mut |_| Ok(()))?;
        let mut waiting: Vec<Id> = self.root.into_iter().collect();
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        while let Some(id) = waiting.pop() {
            if !seen.insert(id) {
                return Err(Error::corruption(format!("the node with the id {id} lies in two groups")));
            }
            let node = self.get(id)?;
            let node = node.ok_or_else(|| Error::corruption(format!("the node with the id {id} is missing")))?;
            let children = match &node {
                Node::Group(group) => self.children(group)?,
                Node::Array(array) => self.hidden_in(array)?,
            };
            waiting.extend(children.values().rev().map(|child| child.id));
            found.push(node);
        }
        Ok(found)
    }

    /// Inserts a node without children at its path.
    fn insert(&mut self, path: &str, node: impl FnOnce(Option<Id>) -> Node) -> Result<()> {
        path::check(path)?;
        if let Some(there) = self.find(path)? {
            return Err(Error::exists(format!("there is already {} {path}", an(there.kind()))));
        }
        let parent = match path::parent(path) {
            None => None,
            Some(above) => Some(self.group_at(above, path)?),
        };
        let node = node(parent);
        if self.get(node.id())?.is_some() {
            return Err(Error::exists(format!("there is already a node with the id {}", node.id())));
        }
        match parent {
            None => self.root = Some(node.id()),
            Some(parent) => self.adopt(parent, path::name(path), Some(node.as_child()))?,
        }
        self.put(node.id(), Some(node));
        Ok(())
    }

    /// The id of the group at `above`, which is to get a child at `path`.
    fn group_at(&self, above: &str, path: &str) -> Result<Id> {
        match self.find(above)? {
            Some(Node::Group(group)) => Ok(group.id),
            Some(Node::Array(_)) => Err(Error::exists(format!(
                "{above} is an array, and an array has no children; {:?} cannot be put there",
                path::name(path)
            ))),
            None => Err(Error::not_found(format!("there is no group {above}"))),
        }
    }

    pub(super) fn adopt(&mut self, group: Id, name: &str, child: Option<Child>) -> Result<()> {
        match self.get_mut(group)? {
            Some(Node::Group(group)) => Arc::make_mut(group).changed.insert(name.to_owned(), child),
            Some(Node::Array(array)) => Arc::make_mut(array).hidden.insert(name.to_owned(), child),
            None => None,
        };
        Ok(())
    }

    fn existing(&self, id: Id) -> Result<Node> {
        self.get(id)?.ok_or_else(|| Error::not_found("the array or group was removed"))
    }

    /// The changed nodes below `path`.
    fn changed_below(&self, path: &str) -> Vec<Id> {
        let below = |node: &Node| {
            let rest = node.path().strip_prefix(path.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'))
        };
        self.changed().filter_map(|(id, node)| node.is_some_and(below).then_some(id)).collect()
    }

    /// Removes a node, and with it everything below.
    fn remove(&mut self, id: Id) -> Result<()> {
        let node = self.existing(id)?;
        self.check_unused(&node)?;
        match node.parent() {
            None => self.root = None,
            Some(parent) => self.adopt(parent, path::name(node.path()), None)?,
        }
        for below in self.changed_below(node.path()) {
            self.put(below, None);
        }
        self.put(id, None);
        self.built = Arc::default();
        Ok(())
    }

    /// An error unless the node can be moved to `path`, once there is a group above it.
    pub(super) fn check_move(&self, id: Id, path: &str) -> Result<()> {
        path::check(path)?;
        let node = self.existing(id)?;
        if node.path() == path::ROOT {
            return Err(Error::input("the root of a store cannot be moved; move what lies in it"));
        }
        if node.as_child().is_hidden {
            return Err(Error::input(format!("the hidden array {} stays in its array; move that", node.path())));
        }
        if path.strip_prefix(node.path()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            return Err(Error::input(format!("{} cannot be moved to {path}: it would lie in itself", node.path())));
        }
        match self.find(path)? {
            Some(there) => Err(Error::exists(format!("there is already {} {path}", an(there.kind())))),
            None => Ok(()),
        }
    }

    /// Moves a node, with all below it, to another path.
    fn move_to(&mut self, id: Id, path: &str) -> Result<()> {
        self.check_move(id, path)?;
        let mut node = self.existing(id)?;
        let old = node.path().to_owned();
        let parent = self.group_at(path::parent(path).unwrap_or(path::ROOT), path)?;
        self.adopt(parent, path::name(path), Some(node.as_child()))?;
        if let Some(before) = node.parent() {
            self.adopt(before, path::name(&old), None)?;
        }
        for below in self.changed_below(&old) {
            if let Some(node) = self.get_mut(below)? {
                let moved = format!("{path}{}", node.path().strip_prefix(&old).unwrap_or_default());
                let parent = node.parent();
                node.place(parent, &moved);
            }
        }
        node.place(Some(parent), path);
        self.put(id, Some(node));
        self.built = Arc::default();
        Ok(())
    }

    fn array_mut(&mut self, id: Id, why: &str) -> Result<&mut ArrayState> {
        match self.get_mut(id)? {
            Some(Node::Array(state)) => Ok(Arc::make_mut(state)),
            _ => Err(Error::conflict(format!("the array was removed; {why}"))),
        }
    }

    /// Applies `operation`. Errors say, in the caller's terms, why it cannot be done.
    pub(super) fn apply(&mut self, operation: &Recorded) -> Result<()> {
        match operation {
            Recorded::CreateGroup { id, path, ext } => self.insert(path, |parent| {
                Node::Group(Arc::new(GroupState { ext: ext.clone(), ..GroupState::new(*id, parent, path) }))
            }),
            Recorded::CreateArray { id, path, schema, ext } => self.insert(path, |parent| {
                let state = ArrayState::new(*id, parent, path, Arc::clone(schema));
                Node::Array(Arc::new(ArrayState { ext: ext.clone(), ..state }))
            }),
            Recorded::CreateHidden { id, owner, name, schema, ext } => self.insert_hidden(*owner, name, |path| {
                let state = ArrayState::new(*id, Some(*owner), path, Arc::clone(schema));
                ArrayState { ext: ext.clone(), ..state }
            }),
            Recorded::AlterArray { id, number, schema } => {
                self.array_mut(*id, "its schema cannot be changed any more")?.alter(*number, schema)
            }
            Recorded::Grow { array, dimension, range } => {
                self.array_mut(*array, "its domain cannot grow any more")?.grow(*dimension, *range)
            }
            Recorded::Remove { id } => self.remove(*id),
            Recorded::Move { id, path } => self.move_to(*id, path),
            Recorded::AddFragments { array, fragments } => {
                self.array_mut(*array, "fragments written for it cannot be committed")?.add(fragments)
            }
            Recorded::ReplaceFragments { array, removed, fragments } => {
                let array = self.array_mut(*array, "its fragments cannot be merged any more")?;
                array.replace(removed, fragments)
            }
            Recorded::SetMetadata { node, changes, ext } => {
                let found = self.get_mut(*node)?;
                let node = found.ok_or_else(|| Error::not_found("the array or group was removed"))?;
                node.metadata_mut().set(changes);
                if ext.is_some() {
                    node.set_ext(ext);
                }
                Ok(())
            }
            Recorded::SetFieldMetadata { array, field, changes } => {
                self.array_mut(*array, "metadata cannot be set any more")?.set_field(*field, changes)
            }
            Recorded::Keep { array, kept } => {
                self.array_mut(*array, "files cannot be kept beside it any more")?.keep(kept)
            }
            Recorded::Release { array, entry } => {
                self.array_mut(*array, "what was kept beside it is gone with it")?.release(*entry);
                Ok(())
            }
            Recorded::Tag { .. } | Recorded::Untag { .. } | Recorded::Condemn(_) | Recorded::SetBase { .. } => Ok(()),
        }
    }

    /// An Input error unless there is a root.
    pub(super) fn check_root(&self) -> Result<()> {
        match self.root {
            Some(_) => Ok(()),
            None => Err(Error::input("the root of a store cannot be removed, only replaced in the same commit")),
        }
    }
}

/// The name and the child in a row of a group's children.
pub(super) fn folded_child<'a>(rows: &RowMap, row: &'a Entry) -> Result<(&'a str, Child)> {
    let name = key::read_child(row.key()).ok_or_else(|| Error::corruption("the name of a node is not UTF-8"))?;
    Ok((name, Child::decode(&rows.value_of(row)?)?))
}

fn an(kind: &str) -> String {
    format!("{} {kind} at", if kind == "array" { "an" } else { "a" })
}
