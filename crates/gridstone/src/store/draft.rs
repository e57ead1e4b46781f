//! Turns changes into the operations of a record: creates missing parents and checks texts.
//!
//! All of this depends on the snapshot that the commit follows, so it is repeated for every slot.

use super::field::Field;
use super::kept::Kept;
use super::operation::{Changes, Operation, Recorded};
use super::path;
use super::retained::Retained;
use super::snapshot::Snapshot;
use super::tree::{Node, Tree};
use crate::base::{Entropy, Error, Id, Result, limits};
use crate::schema::{Schema, Subarray};
use std::sync::Arc;

/// The operations of `changes` after `base`. Input, Exists or NotFound errors say what cannot be done.
pub(super) fn operations(base: &Snapshot, changes: &Changes, entropy: &dyn Entropy) -> Result<Vec<Operation>> {
    let (tree, retained) = (base.tree().clone(), base.retained_state());
    let mut draft = Draft { tree, retained, version: base.version() + 1, operations: Vec::new() };
    for operation in &changes.operations {
        draft.add(operation, entropy)?;
    }
    draft.check_labels()?;
    if base.version() == 0 && draft.tree.root().is_none() {
        draft.create_groups(path::ROOT, entropy)?;
    }
    Ok(draft.operations)
}

struct Draft {
    /// The nodes as they will be; fragments and metadata are not tracked here.
    tree: Tree,
    retained: Arc<Retained>,
    version: u64,
    operations: Vec<Operation>,
}

impl Draft {
    /// An Unsupported error if a newer release writes the array that `operation` writes to in a way that this one does not
    /// know. Such an array can be moved and removed. Its hidden arrays are a part of it: none comes or goes by itself.
    fn check_writable(&self, operation: &Operation) -> Result<()> {
        let written = match operation {
            Operation::CreateHidden { owner, .. } => Some(*owner),
            Operation::Remove { id } => match self.tree.get(*id)? {
                Some(Node::Array(array)) => array.owner(),
                _ => None,
            },
            Operation::Move { .. } => None,
            _ => operation.node(),
        };
        let Some(id) = written else { return Ok(()) };
        match self.tree.get(id)? {
            Some(Node::Array(array)) => array.schema().check_writable(&format!("array {}", array.path())),
            _ => Ok(()),
        }
    }

    /// A Conflict error unless the owner of `kept` is there, or comes with the same changes.
    fn check_owner(&self, array: Id, kept: &Kept, near: Option<&Subarray>) -> Result<()> {
        let added = self.operations.iter().flat_map(|operation| match operation {
            Operation::AddFragments { array: to, fragments } if *to == array => fragments.as_slice(),
            _ => &[],
        });
        match self.tree.get(array)? {
            Some(Node::Array(state)) if !kept.is_of(added.map(|staged| &staged.description)) => {
                state.check_owner(kept, near)
            }
            _ => Ok(()),
        }
    }

    /// A Conflict error unless the array has these kept files.
    fn check_entry(&self, array: Id, entry: Id) -> Result<()> {
        match self.tree.get(array)? {
            Some(Node::Array(state)) => state.check_entry(entry),
            _ => Ok(()),
        }
    }

    /// A Schema error if a schema brings a name that no writer may give.
    fn check_altered_names(&self, array: Id, schema: &Schema) -> Result<()> {
        match self.tree.get(array)? {
            Some(Node::Array(state)) => schema.check_new_names(Some(state.schema())),
            _ => schema.check_new_names(None),
        }
    }

    fn check_field(&self, array: Id, field: Field) -> Result<()> {
        match self.tree.get(array)? {
            Some(Node::Array(state)) => state.check_field(field),
            _ => Ok(()),
        }
    }

    fn add(&mut self, operation: &Operation, entropy: &dyn Entropy) -> Result<()> {
        self.check_writable(operation)?;
        let recorded = match operation {
            Operation::CreateGroup { id, path, ext } => {
                self.create_parents(path, entropy)?;
                Some(Recorded::CreateGroup { id: *id, path: path.clone(), ext: ext.clone() })
            }
            Operation::CreateArray { id, path, schema, ext } => {
                schema.check_new_names(None)?;
                self.create_parents(path, entropy)?;
                let schema = Arc::new(schema.clone());
                Some(Recorded::CreateArray { id: *id, path: path.clone(), schema, ext: ext.clone() })
            }
            Operation::CreateHidden { id, owner, name, schema, ext } => {
                schema.check_new_names(None)?;
                path::check_new_hidden(name)?;
                let schema = Arc::new(schema.clone());
                Some(Recorded::CreateHidden { id: *id, owner: *owner, name: name.clone(), schema, ext: ext.clone() })
            }
            Operation::AlterArray { id, number, schema } => {
                self.check_altered_names(*id, schema)?;
                Some(Recorded::AlterArray { id: *id, number: *number, schema: Arc::new(schema.clone()) })
            }
            Operation::Grow { array, dimension, range } => {
                Some(Recorded::Grow { array: *array, dimension: *dimension, range: *range })
            }
            Operation::Remove { id } => Some(Recorded::Remove { id: *id }),
            Operation::Move { id, path, .. } => {
                self.tree.check_move(*id, path)?;
                self.create_parents(path, entropy)?;
                Some(Recorded::Move { id: *id, path: path.clone() })
            }
            Operation::AddFragments { .. } | Operation::ReplaceFragments { .. } => None,
            Operation::SetMetadata { changes, .. } => {
                check_texts(changes)?;
                None
            }
            Operation::SetFieldMetadata { array, field, changes } => {
                check_texts(changes)?;
                self.check_field(*array, *field)?;
                None
            }
            Operation::Tag { name, version, replace } => {
                self.retained.check_new_tag(name)?;
                self.retained.check_tag(name, *version, *replace, self.version)?;
                Some(Recorded::Tag { name: name.clone(), version: *version, ext: None })
            }
            Operation::Untag { name, .. } => Some(Recorded::Untag { name: name.clone() }),
            Operation::Keep { array, kept, near } => {
                check_kept(kept)?;
                self.check_owner(*array, kept, near.as_ref())?;
                Some(Recorded::Keep { array: *array, kept: Arc::new(kept.clone()) })
            }
            Operation::Release { array, entry } => {
                self.check_entry(*array, *entry)?;
                Some(Recorded::Release { array: *array, entry: *entry })
            }
            Operation::SetBase { number, .. } => {
                check_base(*number)?;
                None
            }
            Operation::Condemn(_) => None,
        };
        if let Some(recorded) = recorded {
            self.tree.apply(&recorded)?;
            self.retained.apply(&recorded, self.version)?;
        }
        self.operations.push(operation.clone());
        Ok(())
    }

    /// An error unless arrays that were made or changed have their labels where their schemas say.
    fn check_labels(&self) -> Result<()> {
        let changed = self.operations.iter().filter_map(|operation| match operation {
            Operation::CreateArray { id, .. } | Operation::AlterArray { id, .. } => Some(*id),
            _ => None,
        });
        changed.into_iter().try_for_each(|id| self.tree.check_labels(id))
    }

    fn create_parents(&mut self, path: &str, entropy: &dyn Entropy) -> Result<()> {
        path::check(path)?;
        path::check_new(path)?;
        path::parent(path).map_or(Ok(()), |parent| self.create_groups(parent, entropy))
    }

    /// Creates the group at `path` and its missing parents.
    fn create_groups(&mut self, path: &str, entropy: &dyn Entropy) -> Result<()> {
        let mut missing = Vec::new();
        for ancestor in std::iter::successors(Some(path), |p| path::parent(p)) {
            if self.tree.find(ancestor)?.is_some() {
                break;
            }
            missing.push(ancestor);
        }
        for path in missing.into_iter().rev() {
            path::check_new(path)?;
            let (id, path): (Id, String) = (entropy.id(), path.to_owned());
            self.tree.apply(&Recorded::CreateGroup { id, path: path.clone(), ext: None })?;
            self.operations.push(Operation::CreateGroup { id, path, ext: None });
        }
        Ok(())
    }
}

/// An Input error unless an entry of kept files can be written.
fn check_kept(kept: &Kept) -> Result<()> {
    if !kept.kind.is_empty() && kept.kind.len() <= limits::NAME_BYTES_MAX {
        return Ok(());
    }
    Err(Error::input(format!("kept files have a kind of 1 to {} bytes, found {:?}", limits::NAME_BYTES_MAX, kept.kind)))
}

/// An Input error if the base is the own store.
fn check_base(number: u32) -> Result<()> {
    if number > 0 {
        return Ok(());
    }
    Err(Error::input("base 0 is the store itself; give another base a number from 1 on"))
}

/// An Input error for a key or a value that is too long. An existing one may be too long, and can be removed.
fn check_lengths(key: &str, text: Option<&str>) -> Result<()> {
    let Some(text) = text else { return Ok(()) };
    if key.len() > limits::METADATA_KEY_BYTES_MAX || text.len() > limits::METADATA_VALUE_BYTES_MAX {
        let start: String = key.chars().take(40).collect();
        return Err(Error::input(format!(
            "metadata with a key of {} bytes, which starts with {start:?}, and a value of {} bytes: at most {} and {} are allowed. Keep \
             large values in an array",
            key.len(),
            text.len(),
            limits::METADATA_KEY_BYTES_MAX,
            limits::METADATA_VALUE_BYTES_MAX
        )));
    }
    Ok(())
}

fn check_texts(changes: &[(String, Option<String>)]) -> Result<()> {
    for (key, text) in changes {
        check_lengths(key, text.as_deref())?;
        let parsed = text.as_deref().map(serde_json::from_str::<serde::de::IgnoredAny>).transpose();
        parsed
            .map_err(|e| Error::input(format!("the metadata value of {key:?} is no JSON text: {e}")).with_source(e))?;
        if text.as_deref().is_some_and(|text| levels(text) > limits::METADATA_LEVELS_MAX) {
            return Err(Error::input(format!(
                "the metadata value of {key:?} has lists and objects more than {} deep in each other; store less deeply nested values",
                limits::METADATA_LEVELS_MAX
            )));
        }
    }
    Ok(())
}

/// The nesting depth of lists and objects in a JSON text.
fn levels(json: &str) -> usize {
    let (mut level, mut deepest, mut quoted, mut escaped) = (0usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                level += 1;
                deepest = deepest.max(level);
            }
            b']' | b'}' if !quoted => level = level.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::levels;

    #[test]
    fn levels_are_counted_outside_of_texts() {
        for (json, deep) in [("1", 0), ("[]", 1), (r#"{"a":[1,[2]],"b":[]}"#, 3), (r#"["[[\"[[\\",{}]"#, 2)] {
            assert_eq!(levels(json), deep, "{json}");
        }
    }
}
