//! The persistent tree of nodes: a copy shares everything, and a change copies only the shard and the node that it
//! touches.
//!
//! Nodes lie in 64 shards by their random ids; a path is resolved by walking down the groups. Operations are applied
//! here, so the same code decides what a writer may do and what a reader replays.

use super::operation::Recorded;
use super::path;
use super::state::{ArrayState, GroupState, Metadata};
use crate::base::{Error, Id, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

const SHARDS: usize = 64;

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
    pub fn metadata(&self) -> &Metadata {
        match self {
            Self::Group(group) => &group.metadata,
            Self::Array(array) => &array.metadata,
        }
    }

    /// "group" or "array".
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Group(_) => "group",
            Self::Array(_) => "array",
        }
    }

    /// Its shared metadata.
    pub(super) fn shared_metadata(&self) -> Arc<Metadata> {
        Arc::clone(match self {
            Self::Group(group) => &group.metadata,
            Self::Array(array) => &array.metadata,
        })
    }

    pub(super) fn metadata_mut(&mut self) -> &mut Metadata {
        Arc::make_mut(match self {
            Self::Group(group) => &mut Arc::make_mut(group).metadata,
            Self::Array(array) => &mut Arc::make_mut(array).metadata,
        })
    }
}

type Shard = BTreeMap<Id, Node>;

/// All nodes of a store.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    root: Option<Id>,
    shards: Vec<Arc<Shard>>,
}

impl Tree {
    /// A tree without nodes, not even a root.
    pub(super) fn empty() -> Self {
        Self { root: None, shards: vec![Arc::default(); SHARDS] }
    }

    fn shard_of(id: Id) -> usize {
        let [.., last] = id.0;
        usize::from(last) % SHARDS
    }

    /// The node with this id.
    pub(super) fn get(&self, id: Id) -> Option<&Node> {
        self.shards.get(Self::shard_of(id))?.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: Id) -> Option<&mut Node> {
        self.get(id)?;
        Arc::make_mut(self.shards.get_mut(Self::shard_of(id))?).get_mut(&id)
    }

    /// The node at `path`.
    pub(super) fn find(&self, path: &str) -> Option<&Node> {
        let mut node = self.get(self.root?)?;
        for name in path::names(path) {
            let Node::Group(group) = node else { return None };
            node = self.get(*group.children.get(name)?)?;
        }
        Some(node)
    }

    /// Every node, parents before children, children by name.
    pub(super) fn walk(&self) -> Vec<&Node> {
        let mut waiting: Vec<Id> = self.root.into_iter().collect();
        let mut found = Vec::new();
        while let Some(node) = waiting.pop().and_then(|id| self.get(id)) {
            if let Node::Group(group) = node {
                waiting.extend(group.children.values().rev());
            }
            found.push(node);
        }
        found
    }

    /// Passes the node with this id, if there is one, and every node below it to `visit`.
    pub(super) fn each_below(&self, id: Id, mut visit: impl FnMut(&Node)) {
        let mut waiting = vec![id];
        while let Some(node) = waiting.pop().and_then(|id| self.get(id)) {
            if let Node::Group(group) = node {
                waiting.extend(group.children.values());
            }
            visit(node);
        }
    }

    /// How many nodes [`Tree::each_below`] visits.
    pub(super) fn count_below(&self, id: Id) -> u64 {
        let mut count = 0;
        self.each_below(id, |_| count += 1);
        count
    }

    /// Inserts a node without children at its path.
    pub(super) fn insert(&mut self, node: Node) -> Result<()> {
        let path = node.path().to_owned();
        path::check(&path)?;
        if let Some(there) = self.find(&path) {
            return Err(Error::exists(format!("there is already {} {path}", an(there.kind()))));
        }
        if self.get(node.id()).is_some() {
            return Err(Error::exists(format!("there is already a node with the id {}", node.id())));
        }
        match path::parent(&path) {
            None => self.root = Some(node.id()),
            Some(parent) => self.adopt(parent, path::name(&path), node.id())?,
        }
        if let Some(shard) = self.shards.get_mut(Self::shard_of(node.id())) {
            Arc::make_mut(shard).insert(node.id(), node);
        }
        Ok(())
    }

    fn adopt(&mut self, parent: &str, name: &str, child: Id) -> Result<()> {
        let id =
            self.find(parent).map(Node::id).ok_or_else(|| Error::not_found(format!("there is no group {parent}")))?;
        match self.get_mut(id) {
            Some(Node::Group(group)) => {
                Arc::make_mut(group).children.insert(name.to_owned(), child);
                Ok(())
            }
            _ => Err(Error::exists(format!(
                "{parent} is an array, and an array has no children; {name:?} cannot be put there"
            ))),
        }
    }

    /// Removes a node and everything below it.
    fn remove(&mut self, id: Id) -> Result<()> {
        let node =
            self.get(id).cloned().ok_or_else(|| Error::not_found(format!("there is no node with the id {id}")))?;
        match path::parent(node.path()).and_then(|parent| self.find(parent)).map(Node::id) {
            None => self.root = None,
            Some(parent) => {
                if let Some(Node::Group(group)) = self.get_mut(parent) {
                    Arc::make_mut(group).children.remove(path::name(node.path()));
                }
            }
        }
        let mut doomed = vec![node];
        while let Some(node) = doomed.pop() {
            if let Node::Group(group) = &node {
                doomed.extend(group.children.values().filter_map(|child| self.get(*child)).cloned());
            }
            if let Some(shard) = self.shards.get_mut(Self::shard_of(node.id())) {
                Arc::make_mut(shard).remove(&node.id());
            }
        }
        Ok(())
    }

    /// An error unless the node can be moved to `path`, once there is a group above it.
    pub(super) fn check_move(&self, id: Id, path: &str) -> Result<()> {
        path::check(path)?;
        let node = self.get(id).ok_or_else(|| Error::not_found(format!("there is no node with the id {id}")))?;
        if node.path() == path::ROOT {
            return Err(Error::input("the root of a store cannot be moved; move what lies in it"));
        }
        if path.strip_prefix(node.path()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            return Err(Error::input(format!("{} cannot be moved to {path}: it would lie in itself", node.path())));
        }
        match self.find(path) {
            Some(there) => Err(Error::exists(format!("there is already {} {path}", an(there.kind())))),
            None => Ok(()),
        }
    }

    /// Moves a node, with all below it, to another path.
    fn move_to(&mut self, id: Id, path: &str) -> Result<()> {
        self.check_move(id, path)?;
        let node =
            self.get(id).cloned().ok_or_else(|| Error::not_found(format!("there is no node with the id {id}")))?;
        let old = node.path().to_owned();
        self.adopt(path::parent(path).unwrap_or(path::ROOT), path::name(path), id)?;
        let parent = path::parent(&old).and_then(|parent| self.find(parent)).map(Node::id);
        if let Some(Node::Group(group)) = parent.and_then(|parent| self.get_mut(parent)) {
            Arc::make_mut(group).children.remove(path::name(&old));
        }
        let mut waiting = vec![id];
        while let Some(node) = waiting.pop().and_then(|id| self.get_mut(id)) {
            let moved = format!("{path}{}", node.path().strip_prefix(&old).unwrap_or_default());
            match node {
                Node::Array(array) => Arc::make_mut(array).path = moved.as_str().into(),
                Node::Group(group) => {
                    let group = Arc::make_mut(group);
                    group.path = moved.as_str().into();
                    waiting.extend(group.children.values());
                }
            }
        }
        Ok(())
    }

    /// Applies `operation` as part of `version`. Errors say, in the caller's terms, why it cannot be done.
    pub(super) fn apply(&mut self, operation: &Recorded, version: u64) -> Result<()> {
        match operation {
            Recorded::CreateGroup { id, path } => self.insert(Node::Group(Arc::new(GroupState::new(*id, path)))),
            Recorded::CreateArray { id, path, schema } => {
                self.insert(Node::Array(Arc::new(ArrayState::new(*id, path, Arc::clone(schema)))))
            }
            Recorded::AlterArray { id, number, schema } => match self.get_mut(*id) {
                Some(Node::Array(state)) => Arc::make_mut(state).alter(*number, schema),
                _ => Err(Error::conflict(format!(
                    "the array with the id {id} was removed; its schema cannot be changed any more"
                ))),
            },
            Recorded::Remove { id } => self.remove(*id),
            Recorded::Move { id, path } => self.move_to(*id, path),
            Recorded::AddFragments { array, fragments } => match self.get_mut(*array) {
                Some(Node::Array(state)) => Arc::make_mut(state).add(version, fragments),
                _ => Err(Error::conflict(format!(
                    "the array with the id {array} was removed; fragments written for it cannot be committed"
                ))),
            },
            Recorded::ReplaceFragments { array, removed, fragments } => match self.get_mut(*array) {
                Some(Node::Array(state)) => Arc::make_mut(state).replace(version, removed, fragments),
                _ => Err(Error::conflict(format!(
                    "the array with the id {array} was removed; its fragments cannot be merged any more"
                ))),
            },
            Recorded::SetMetadata { node, changes } => {
                let found = self.get_mut(*node);
                let node = found.ok_or_else(|| Error::not_found(format!("there is no node with the id {node}")))?;
                set_metadata(node.metadata_mut(), changes);
                Ok(())
            }
            Recorded::Tag { .. } | Recorded::Untag { .. } | Recorded::Condemn(_) => Ok(()),
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

fn set_metadata(metadata: &mut Metadata, changes: &[(String, Option<String>)]) {
    for (key, value) in changes {
        match value {
            Some(text) => metadata.insert(key.clone(), text.clone()),
            None => metadata.remove(key),
        };
    }
}

fn an(kind: &str) -> String {
    format!("{} {kind} at", if kind == "array" { "an" } else { "a" })
}
