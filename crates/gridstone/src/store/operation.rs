//! The operations of a commit: as requested ([`Operation`], with staged fragments), and as recorded in the log
//! ([`Recorded`], with fully described fragments).

use super::bases::Base;
use super::commit_key::Keyed;
use super::extension::Ext;
use super::field::Field;
use super::kept::Kept;
use super::shape::RootRef;
use crate::base::Id;
use crate::fragment::{Description, FragmentOrder, Staged};
use crate::schema::{KeyRange, Schema, Subarray};
use std::sync::Arc;

/// The changes that one commit is to make, all or nothing.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// A line for the history.
    pub message: Option<String>,
    /// The caller's key of the commit, if there is one; of commits that share a record those of all.
    pub keys: Vec<Keyed>,
    /// The operations, in this order; a later one sees the effects of the earlier ones.
    pub operations: Vec<Operation>,
}

impl Changes {
    /// Changes with these `operations`, without a message and a key.
    pub fn new(operations: Vec<Operation>) -> Self {
        Self { operations, ..Self::default() }
    }

    /// The same changes with this message.
    #[must_use]
    pub fn with_message(self, message: Option<String>) -> Self {
        Self { message, ..self }
    }

    /// The same changes with this key.
    #[must_use]
    pub fn with_key(self, key: Option<Keyed>) -> Self {
        Self { keys: key.into_iter().collect(), ..self }
    }

    /// Whether they give an array its next schema.
    pub fn alters(&self, array: Id) -> bool {
        self.operations.iter().any(|operation| matches!(operation, Operation::AlterArray { id, .. } if *id == array))
    }

    /// The fragments that they add to an array.
    pub fn added_to(&self, array: Id) -> impl Iterator<Item = &Description> + Clone {
        self.operations.iter().flat_map(move |operation| {
            let added = match operation {
                Operation::AddFragments { array: to, fragments } if *to == array => fragments.as_slice(),
                _ => &[],
            };
            added.iter().map(|fragment| &fragment.description)
        })
    }
}

/// A fragment removed from an array: enough to find the manifest page that describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// The fragment.
    pub id: Id,
    /// Its precedence.
    pub order: FragmentOrder,
    /// Its box.
    pub bounds: Subarray,
}

impl Removed {
    /// The reference for removing the fragment that `description` describes.
    pub fn of(description: &Description) -> Self {
        Self { id: description.id, order: description.order, bounds: description.bounds.clone() }
    }
}

/// The files that a vacuum is going to delete, and the lowest version that it keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condemned {
    /// The root of the lowest version kept; `None`: all versions are.
    pub floor: Option<RootRef>,
    /// Data files.
    pub data: Vec<Id>,
    /// Manifest roots and pages.
    pub manifest: Vec<Id>,
    /// Files condemned before that are gone, or are kept after all.
    pub forget: Vec<Id>,
}

/// One change. To overwrite a node, remove it and create another at its path in the same commit.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Creates a group; missing parents are created as groups.
    CreateGroup {
        /// The new group's id.
        id: Id,
        /// Its path.
        path: String,
        /// What a newer release says of it.
        ext: Ext,
    },
    /// Creates an array; missing parents are created as groups.
    CreateArray {
        /// The new array's id.
        id: Id,
        /// Its path.
        path: String,
        /// The first schema of its history.
        schema: Schema,
        /// What a newer release says of it.
        ext: Ext,
    },
    /// Creates a hidden array of an array.
    CreateHidden {
        /// The new array's id.
        id: Id,
        /// The array that it belongs to.
        owner: Id,
        /// Its name, unique there; it begins with "@".
        name: String,
        /// The first schema of its history.
        schema: Schema,
        /// What a newer release says of it.
        ext: Ext,
    },
    /// Gives an array its next schema.
    AlterArray {
        /// The array.
        id: Id,
        /// The number of the schema in the array's history: one more than that of the schema that it was made from.
        number: u32,
        /// The schema.
        schema: Schema,
    },
    /// Makes the domain of an array reach as far as `range` along a dimension. It never becomes smaller, so two that
    /// grow it do not conflict.
    Grow {
        /// The array.
        array: Id,
        /// The place of the dimension's axis.
        dimension: u32,
        /// The keys that are inside from now on.
        range: KeyRange,
    },
    /// Removes a node and everything below it.
    Remove {
        /// The node.
        id: Id,
    },
    /// Moves a node, with all below it, to another path; missing groups above that are created.
    Move {
        /// The node.
        id: Id,
        /// The path that it is expected at.
        from: String,
        /// Its new path.
        path: String,
    },
    /// Adds fragments to an array.
    AddFragments {
        /// The array.
        array: Id,
        /// The fragments, oldest first.
        fragments: Vec<Staged>,
    },
    /// Replaces fragments by the fragments that they were merged into.
    ReplaceFragments {
        /// The array.
        array: Id,
        /// The fragments to remove, at least one.
        removed: Vec<Removed>,
        /// Their replacements; the order in each description is the greatest of those removed.
        fragments: Vec<Staged>,
    },
    /// Sets or removes metadata of a node.
    SetMetadata {
        /// The node.
        node: Id,
        /// Keys with their new values as JSON text, `None` to remove the key.
        changes: Vec<(String, Option<String>)>,
    },
    /// Sets or removes metadata of an attribute or dimension.
    SetFieldMetadata {
        /// The array.
        array: Id,
        /// The attribute or dimension.
        field: Field,
        /// Keys with their new values as JSON text, `None` to remove the key.
        changes: Vec<(String, Option<String>)>,
    },
    /// Gives a version a name, which keeps it.
    Tag {
        /// The name, unique in the store.
        name: String,
        /// The version.
        version: u64,
        /// Whether the name may be in use, and is then moved.
        replace: bool,
    },
    /// Removes a tag.
    Untag {
        /// The name.
        name: String,
        /// The version that it is expected to name.
        version: u64,
    },
    /// Condemns files and versions, which are going to be deleted.
    Condemn(Condemned),
    /// Keeps files beside an array as long as their owner is there.
    Keep {
        /// The array.
        array: Id,
        /// The entry.
        kept: Kept,
        /// The box of the fragment that owns it, or of one in the data file that does.
        near: Option<Subarray>,
    },
    /// Keeps files no longer.
    Release {
        /// The array.
        array: Id,
        /// The entry.
        entry: Id,
    },
    /// Says what a base is.
    SetBase {
        /// Its number, not 0.
        number: u32,
        /// What it is; `None`: it is removed.
        base: Option<Arc<Base>>,
        /// What it is expected to be before.
        before: Option<Arc<Base>>,
    },
}

impl Operation {
    /// The node that it changes by its id; `None` if it creates one, or is about the store as a whole.
    pub fn node(&self) -> Option<Id> {
        match self {
            Self::Remove { id } | Self::Move { id, .. } | Self::AlterArray { id, .. } => Some(*id),
            Self::AddFragments { array, .. } | Self::ReplaceFragments { array, .. } | Self::Grow { array, .. } => {
                Some(*array)
            }
            Self::SetMetadata { node, .. } => Some(*node),
            Self::Keep { array, .. } | Self::Release { array, .. } => Some(*array),
            Self::SetFieldMetadata { array, .. } => Some(*array),
            Self::CreateGroup { .. }
            | Self::CreateArray { .. }
            | Self::CreateHidden { .. }
            | Self::Tag { .. }
            | Self::Untag { .. }
            | Self::SetBase { .. }
            | Self::Condemn(_) => None,
        }
    }
}

/// One change as recorded in the log; its parents exist, its fragments have an order and a location.
#[derive(Debug, Clone, PartialEq)]
pub enum Recorded {
    /// A group was created.
    CreateGroup {
        /// The group's id.
        id: Id,
        /// Its path.
        path: String,
        /// What a newer release says of it.
        ext: Ext,
    },
    /// An array was created.
    CreateArray {
        /// The array's id.
        id: Id,
        /// Its path.
        path: String,
        /// The first schema of its history.
        schema: Arc<Schema>,
        /// What a newer release says of it.
        ext: Ext,
    },
    /// A hidden array of an array was created.
    CreateHidden {
        /// The array's id.
        id: Id,
        /// The array that it belongs to.
        owner: Id,
        /// Its name there.
        name: String,
        /// The first schema of its history.
        schema: Arc<Schema>,
        /// What a newer release says of it.
        ext: Ext,
    },
    /// An array was given its next schema.
    AlterArray {
        /// The array.
        id: Id,
        /// The schema's number.
        number: u32,
        /// The schema.
        schema: Arc<Schema>,
    },
    /// The domain of an array was made to reach as far as `range` along a dimension.
    Grow {
        /// The array.
        array: Id,
        /// The place of the dimension's axis.
        dimension: u32,
        /// The keys that are inside from then on.
        range: KeyRange,
    },
    /// A node and everything below it were removed.
    Remove {
        /// The node.
        id: Id,
    },
    /// A node, with all below it, was moved to another path.
    Move {
        /// The node.
        id: Id,
        /// Its new path.
        path: String,
    },
    /// Fragments were added to an array.
    AddFragments {
        /// The array.
        array: Id,
        /// The fragments, in ascending order.
        fragments: Vec<Arc<Description>>,
    },
    /// Fragments were replaced by the fragments that they were merged into.
    ReplaceFragments {
        /// The array.
        array: Id,
        /// The fragments removed.
        removed: Vec<Removed>,
        /// The fragments added, all of one order.
        fragments: Vec<Arc<Description>>,
    },
    /// Metadata of a node was set or removed.
    SetMetadata {
        /// The node.
        node: Id,
        /// Keys with their values as JSON text, `None` where the key was removed.
        changes: Vec<(String, Option<String>)>,
        /// What a newer release says of the node from now on.
        ext: Ext,
    },
    /// Metadata of an attribute or dimension was set or removed.
    SetFieldMetadata {
        /// The array.
        array: Id,
        /// The attribute or dimension.
        field: Field,
        /// Keys with their values as JSON text, `None` where the key was removed.
        changes: Vec<(String, Option<String>)>,
    },
    /// A version was given a name.
    Tag {
        /// The name.
        name: String,
        /// The version.
        version: u64,
        /// What a newer release says of the tag.
        ext: Ext,
    },
    /// A tag was removed.
    Untag {
        /// The name.
        name: String,
    },
    /// Files were condemned.
    Condemn(Condemned),
    /// Files beside an array were kept.
    Keep {
        /// The array.
        array: Id,
        /// The entry.
        kept: Arc<Kept>,
    },
    /// Files were kept no longer.
    Release {
        /// The array.
        array: Id,
        /// The entry.
        entry: Id,
    },
    /// It was said what a base is.
    SetBase {
        /// Its number.
        number: u32,
        /// What it is; `None`: it was removed.
        base: Option<Arc<Base>>,
    },
}

impl Recorded {
    /// The name used in the log and in listings.
    pub fn name(&self) -> &'static str {
        match self {
            Self::CreateGroup { .. } => "create_group",
            Self::CreateArray { .. } | Self::CreateHidden { .. } => "create_array",
            Self::AlterArray { .. } => "alter_array",
            Self::Grow { .. } => "grow",
            Self::Remove { .. } => "remove",
            Self::Move { .. } => "move",
            Self::AddFragments { .. } => "add_fragments",
            Self::ReplaceFragments { .. } => "replace_fragments",
            Self::SetMetadata { .. } | Self::SetFieldMetadata { .. } => "set_metadata",
            Self::Tag { .. } => "tag",
            Self::Untag { .. } => "untag",
            Self::Condemn(_) => "condemn",
            Self::Keep { .. } => "keep",
            Self::Release { .. } => "release",
            Self::SetBase { .. } => "set_base",
        }
    }

    /// The node it changed; `None` if it is about the store as a whole.
    pub fn node(&self) -> Option<Id> {
        Some(match self {
            Self::CreateGroup { id, .. }
            | Self::CreateArray { id, .. }
            | Self::CreateHidden { id, .. }
            | Self::AlterArray { id, .. }
            | Self::Move { id, .. }
            | Self::Remove { id } => *id,
            Self::AddFragments { array, .. } | Self::ReplaceFragments { array, .. } | Self::Grow { array, .. } => {
                *array
            }
            Self::SetMetadata { node, .. } => *node,
            Self::SetFieldMetadata { array, .. } => *array,
            Self::Keep { array, .. } | Self::Release { array, .. } => *array,
            Self::Tag { .. } | Self::Untag { .. } | Self::Condemn(_) | Self::SetBase { .. } => return None,
        })
    }
}
