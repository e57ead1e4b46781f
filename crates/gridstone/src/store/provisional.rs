//! Staged, uncommitted changes, and the store with them applied.
//!
//! Each operation is encoded and decoded as in a record of the version after the base, with that record's orders and
//! locations. It is then applied to a copy of the base. So a transaction sees what its commit will do. Everything
//! staged has a greater order than everything in the base. The bodies of small fragments are in a log file of that
//! version that exists in memory only.

use super::draft;
use super::operation::{Changes, Operation};
use super::snapshot::Snapshot;
use super::wording::{Bodies, OperationText, Place, read_operation};
use crate::base::{ByteRange, ByteSource, Entropy, Error, FileRef, Id, Pending, Ready, Result};
use bytes::Bytes;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

/// Staged changes over a snapshot.
#[derive(Debug)]
pub struct Provisional {
    base: Arc<Snapshot>,
    view: Arc<Snapshot>,
    operations: Vec<Operation>,
    /// Groups that were created as missing parents, each with the operation that needed them. The commit creates them
    /// anew, or finds them created by another.
    implied: Vec<(usize, Id, String)>,
    bodies: Arc<StagedBodies>,
    /// How many fragments are staged so far.
    index: u32,
}

impl Provisional {
    /// Starts with nothing staged after `base`.
    pub fn new(base: Arc<Snapshot>) -> Self {
        let (view, bodies) = (Arc::clone(&base), Arc::default());
        Self { base, view, operations: Vec::new(), implied: Vec::new(), bodies, index: 0 }
    }

    /// The snapshot that the changes follow.
    pub fn base(&self) -> &Arc<Snapshot> {
        &self.base
    }

    /// What is staged, in order.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Whether nothing is staged.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// The base with everything staged applied. It has the base's version.
    pub fn view(&self) -> &Arc<Snapshot> {
        &self.view
    }

    /// Replaces `view` by `rested`, the same state on another root, unless something was staged since.
    pub fn rest(&mut self, view: &Arc<Snapshot>, rested: Arc<Snapshot>) {
        if Arc::ptr_eq(&self.view, view) {
            self.view = rested;
        }
    }

    /// Replaces the base by `settled`, the same version on another root.
    pub fn settle_base(&mut self, settled: Arc<Snapshot>) {
        if Arc::ptr_eq(&self.view, &self.base) {
            self.view = Arc::clone(&settled);
        }
        self.base = settled;
    }

    /// The version in the order of staged fragments.
    pub fn version(&self) -> u64 {
        self.base.version() + 1
    }

    /// The log file in memory that holds the bodies of staged inline fragments, and its bytes.
    pub fn log_file(&self) -> (FileRef, Arc<StagedBodies>) {
        (FileRef::Log(self.version()), Arc::clone(&self.bodies))
    }

    /// Stages `operations` after the earlier ones.
    ///
    /// # Errors
    /// Those of a commit that do not depend on other commits; nothing is staged then.
    pub fn stage(&mut self, operations: Vec<Operation>, entropy: &dyn Entropy) -> Result<()> {
        let changes = Changes::new(operations);
        let mut next = Snapshot::clone(&self.view);
        let (mut bodies, from) = (Bodies::default(), self.bodies.next());
        let mut place = Place::starting(self.version(), from, self.index);
        let drafted = draft::operations(&self.view, &changes, entropy)?;
        for operation in &drafted {
            let text = serde_json::to_value(OperationText::of(operation, &mut bodies)?)
                .map_err(|e| Error::input("a change cannot be written as JSON").with_source(e))?;
            next.provisionally(Arc::new(read_operation(text, &mut place)?))?;
        }
        self.index = place.index();
        self.bodies.extend(place.inline.iter().map(|inline| inline.range.offset).zip(bodies.parts));
        self.view = Arc::new(next);
        let at = self.operations.len();
        let given: Vec<Id> = changes.operations.iter().filter_map(created_group).map(|(id, _)| id).collect();
        let implied = drafted.iter().filter_map(created_group).filter(|(id, _)| !given.contains(id));
        self.implied.extend(implied.map(|(id, path)| (at, id, path.to_owned())));
        self.operations.extend(changes.operations);
        Ok(())
    }

    /// The arrays that fragments were staged for and that `view`, the base with everything staged, does not have: they
    /// were removed again.
    ///
    /// # Errors
    /// Corruption, Unsupported or Storage if the manifest cannot be read.
    pub fn removed(&self, view: &Snapshot) -> Result<HashSet<Id>> {
        let mut removed = HashSet::new();
        for operation in &self.operations {
            if let Operation::AddFragments { array, .. } = operation
                && view.node_by_id(*array)?.is_none()
            {
                removed.insert(*array);
            }
        }
        Ok(removed)
    }

    /// The operations to commit: everything staged, except fragments of arrays that were `removed` again. Consecutive
    /// additions to one array are joined.
    pub fn into_operations(self, removed: &HashSet<Id>) -> Vec<Operation> {
        let by_id = |operation: &Operation| match operation {
            Operation::Remove { id } | Operation::Move { id, .. } | Operation::SetMetadata { node: id, .. } => {
                Some(*id)
            }
            _ => None,
        };
        let named: Vec<Id> = self.operations.iter().filter_map(by_id).collect();
        let mut made: Vec<Operation> = Vec::with_capacity(self.operations.len());
        for (place, operation) in self.operations.into_iter().enumerate() {
            // A node that is removed, moved or described by its id has to be created with it.
            let needed = self.implied.iter().filter(|(at, id, _)| *at == place && named.contains(id));
            made.extend(needed.map(|(_, id, path)| Operation::CreateGroup { id: *id, path: path.clone(), ext: None }));
            let Operation::AddFragments { array, fragments } = operation else {
                made.push(operation);
                continue;
            };
            if removed.contains(&array) {
                continue;
            }
            match made.last_mut() {
                Some(Operation::AddFragments { array: last, fragments: before }) if *last == array => {
                    before.extend(fragments);
                }
                _ => made.push(Operation::AddFragments { array, fragments }),
            }
        }
        made
    }
}

fn created_group(operation: &Operation) -> Option<(Id, &str)> {
    if let Operation::CreateGroup { id, path, .. } = operation { Some((*id, path)) } else { None }
}

/// The bodies of staged fragments, as a file that grows.
#[derive(Debug, Default)]
pub struct StagedBodies {
    parts: RwLock<BTreeMap<u64, Bytes>>,
}

impl StagedBodies {
    /// The offset at which the next body may start.
    fn next(&self) -> u64 {
        self.len().next_multiple_of(super::wording::BODY_ALIGNMENT)
    }

    fn extend(&self, parts: impl Iterator<Item = (u64, Bytes)>) {
        self.parts.write().unwrap_or_else(PoisonError::into_inner).extend(parts);
    }

    fn part(&self, range: ByteRange) -> Option<Bytes> {
        let parts = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        let (start, part) = parts.range(..=range.offset).next_back()?;
        let from = usize::try_from(range.offset - start).ok()?;
        let to = from.checked_add(usize::try_from(range.len).ok()?)?;
        (to <= part.len()).then(|| part.slice(from..to))
    }
}

impl ByteSource for StagedBodies {
    fn len(&self) -> u64 {
        let parts = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        parts.last_key_value().map_or(0, |(start, part)| start + part.len() as u64)
    }

    fn submit(&self, ranges: &[ByteRange]) -> Result<Box<dyn Pending + '_>> {
        let slice = |range: &ByteRange| {
            self.part(*range).ok_or_else(|| {
                Error::corruption(format!(
                    "{} bytes at offset {} are not those of one staged fragment",
                    range.len, range.offset
                ))
            })
        };
        Ok(Box::new(Ready(ranges.iter().map(slice).collect::<Result<_>>()?)))
    }
}
