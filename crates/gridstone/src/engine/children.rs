//! Changes of the children of a group: made, moved, removed.
//!
//! 1. Where the group lies is looked up in the newest version, and what is called by the name there.
//! 2. The change is committed under a rule: the group still lies there, and the name still means the same.
//! 3. If the group was moved meanwhile, begin anew.

use super::group::below;
use super::sorted_copies::commit_copying;
use super::{Array, Group, Opened};
use crate::base::{Entropy, Error, ErrorKind, Id, Result};
use crate::runtime::SystemEntropy;
use crate::schema::Schema;
use crate::store::{Changes, Node, Operation, Queueing, Rebase, Record, Snapshot, StandardRules};
use std::sync::Arc;

/// How often a change is begun anew because the group was moved.
const TRIES: usize = 16;

/// The rule of a change in a group: that of others, and that path and name mean what they did.
struct InGroup {
    group: Id,
    /// Where the group lies.
    path: String,
    /// The path of what is changed, and what lies there, if that is to be left the same.
    held: Option<(String, Id)>,
    /// Whether the group was found elsewhere, or gone.
    moved: bool,
}

impl InGroup {
    fn check(&mut self, newest: &Snapshot, changes: &Changes) -> Result<()> {
        if newest.node_by_id(self.group)?.is_none_or(|group| group.path() != self.path) {
            self.moved = true;
            return Err(Error::conflict(format!(
                "the group at {} was moved or removed by another commit, at the latest in version {}; nothing was committed",
                self.path,
                newest.version()
            )));
        }
        StandardRules::check(newest, changes)?;
        match &self.held {
            Some((path, id)) if newest.find(path)?.map(|node| node.id()) != Some(*id) => Err(Error::conflict(format!(
                "what lay at {path} was moved or replaced by another commit, at the latest in version {}; nothing was committed",
                newest.version()
            ))),
            _ => Ok(()),
        }
    }
}

impl Rebase for InGroup {
    fn queueing(&self) -> Queueing {
        Queueing::InTurn
    }

    fn newest_suffices(&self) -> bool {
        true
    }

    fn rebase(&mut self, _lost_to: &Record, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        self.check(newest, changes)
    }

    fn rebase_past_floor(&mut self, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        self.check(newest, changes)
    }
}

/// What a change does, given where the group lies.
struct Plan {
    operations: Vec<Operation>,
    held: Option<(String, Id)>,
}

impl Group {
    /// Commits what `plan` says of the newest version and the group's path there.
    fn change(&self, message: Option<&str>, plan: impl Fn(&Snapshot, &str) -> Result<Plan>) -> Result<Arc<Snapshot>> {
        let mut newest = self.store.refresh(&self.snapshot)?;
        for _ in 0..TRIES {
            let look = |newest: &Snapshot| {
                let path = self.state(newest)?.path().to_owned();
                plan(newest, &path).map(|plan| (path, plan))
            };
            let (settled, (path, Plan { operations, held })) = self.store.settling_newest(newest, look)?;
            newest = settled;
            let changes = Changes::new(operations).with_message(message.map(str::to_owned));
            let mut rules = InGroup { group: self.id, path, held, moved: false };
            match commit_copying(&self.context, &self.store, &newest, changes, &mut rules) {
                Err(e) if rules.moved && e.kind() == ErrorKind::Conflict => newest = self.store.refresh(&newest)?,
                outcome => return outcome,
            }
        }
        Err(Error::conflict(format!(
            "the group that lay at {} was moved by other commits {TRIES} times, each time before this one came through; \
             nothing was committed, try again",
            self.path()
        )))
    }

    /// Creates an array called `name` here, or at this path below. With `overwrite` what lies there is replaced.
    ///
    /// # Errors
    /// Exists, Input (no name), NotFound (the group is gone), Conflict, Storage, Access.
    pub fn create_array(&self, name: &str, schema: Schema, overwrite: bool) -> Result<Array> {
        let (id, schema) = (SystemEntropy.id(), schema.of_new_array());
        let snapshot = self.change(None, |newest, path| {
            let path = below(path, name);
            let mut operations = Vec::new();
            match newest.find(&path)?.map(|node| node.id()) {
                Some(there) if overwrite => operations.push(Operation::Remove { id: there }),
                Some(_) => {
                    return Err(Error::exists(format!(
                        "{path} exists in {}; open it, or pass overwrite=True to replace it",
                        self.uri()
                    )));
                }
                None => {}
            }
            operations.push(Operation::CreateArray { id, path, schema: schema.clone(), ext: None });
            Ok(Plan { operations, held: None })
        })?;
        Ok(Array::new(self.context.clone(), self.store.clone(), snapshot, id, true, false))
    }

    /// The group called `name` here, or at this path below; created if nothing lies there.
    ///
    /// # Errors
    /// Input (no name, or an array lies there), Exists (an array lies above), NotFound (this group is gone), Conflict, Storage, Access.
    pub fn create_group(&self, name: &str) -> Result<Self> {
        for _ in 0..TRIES {
            let now = self.refreshed()?;
            match now.open(name, true, false) {
                Ok(Opened::Group(group)) => return Ok(group),
                Ok(Opened::Array(_)) => {
                    let place = below(now.path(), name);
                    return Err(Error::input(format!("{:?} holds an array at {place:?}, not a group", self.uri())));
                }
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                // A vacuum took this version away.
                Err(e) if e.kind() == ErrorKind::SnapshotExpired => continue,
                Err(e) => return Err(e),
            }
            let id = SystemEntropy.id();
            let created = now.change(None, |_, path| {
                let operations = vec![Operation::CreateGroup { id, path: below(path, name), ext: None }];
                Ok(Plan { operations, held: None })
            });
            match created {
                // Another made it meanwhile: that is opened.
                Err(e) if e.kind() == ErrorKind::Exists && !now.has_array_above(name)? => {}
                created => return self.by_id(created?, id),
            }
        }
        Err(Error::conflict(format!("{name:?} is created and removed again and again by others; try again")))
    }

    /// Whether what is called `name` here would lie below an array.
    fn has_array_above(&self, name: &str) -> Result<bool> {
        let path = below(self.path(), name);
        let above = |snapshot: &Snapshot| {
            for place in path.match_indices('/').filter_map(|(end, _)| path.get(..end)).filter(|p| !p.is_empty()) {
                if matches!(snapshot.find(place)?, Some(Node::Array(_))) {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        Ok(self.store.settling_newest(Arc::clone(&self.snapshot), above)?.1)
    }

    fn by_id(&self, newest: Arc<Snapshot>, id: Id) -> Result<Self> {
        let (snapshot, node) = self.store.settling_newest(newest, |newest| newest.node_by_id(id))?;
        match node {
            Some(Node::Group(group)) => Ok(Self::new(&self.context, self.store.clone(), snapshot, &group)),
            _ => Err(Error::not_found(format!("version {} has no group with the id {id}", snapshot.version()))),
        }
    }

    /// Removes what is called `name` here, with everything below it; gives the version.
    ///
    /// # Errors
    /// NotFound, Input (the root), Conflict (another commit moved or replaced it), Storage, Access.
    pub fn remove(&self, name: &str, message: Option<&str>) -> Result<u64> {
        let newer = self.change(message, |newest, path| {
            let path = below(path, name);
            if path == "/" {
                return Err(Error::input(
                    "the root of a store cannot be removed; delete the store as a whole: gs.delete(uri)",
                ));
            }
            let id = newest.node(&path)?.id();
            Ok(Plan { operations: vec![Operation::Remove { id }], held: Some((path, id)) })
        })?;
        Ok(newer.version())
    }

    /// Moves what is called `name` here, with everything below it, to `target`: a name or path in this group, or, from "/" on,
    /// a path in the store. Gives the version.
    ///
    /// # Errors
    /// NotFound, Exists, Input (the root; a group into itself; no path), Conflict (another commit moved or replaced it),
    /// Storage, Access.
    pub fn move_child(&self, name: &str, target: &str, message: Option<&str>) -> Result<u64> {
        let newer = self.change(message, |newest, path| {
            let from = below(path, name);
            let target = if target.starts_with('/') { target.to_owned() } else { below(path, target) };
            let id = newest.node(&from)?.id();
            let moved = Operation::Move { id, from: from.clone(), path: target };
            Ok(Plan { operations: vec![moved], held: Some((from, id)) })
        })?;
        Ok(newer.version())
    }
}
