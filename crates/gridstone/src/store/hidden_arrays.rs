//! Hidden arrays: arrays that belong to another one, their *owner*, and live as long as it does. They have no path that
//! finds them and are in no list. Else they are arrays as all others.
//!
//! 1. Its row says that a hidden array is one; its parent is its owner, which is no hidden array itself. Its name begins
//!    with [`path::MARK`].
//! 2. Where a schema says that labels lie in an array, that is a hidden one of its array, in every version in which the
//!    schema is the last. It is dense, has one dimension of the same type, and one attribute.

use super::node_row::Child;
use super::path;
use super::state::ArrayState;
use super::tree::{Node, Tree};
use crate::base::{Error, Id, Result};
use crate::schema::{Dimension, Labels, Schema};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is wrong with an array with this schema that has the labels of `dim`. What a newer release made is not looked at.
///
/// # Errors
/// What it is, for a message.
pub fn check_label_form(dim: &Dimension, labels: &Schema) -> std::result::Result<(), &'static str> {
    if !labels.is_readable() {
        return Ok(());
    }
    let is_along = matches!(labels.dims(), [along] if along.datatype() == dim.datatype() && along.word() == dim.word());
    match (is_along && !labels.sparse() && !labels.is_scalar(), labels.attrs().len()) {
        (false, _) => Err("an array that is not dense, of one dimension of the same type"),
        (true, 1) => Ok(()),
        (true, _) => Err("an array of several attributes; it needs one"),
    }
}

/// The dimension of `owner` that has its labels in the array with this id.
fn labelled(owner: &ArrayState, id: Id) -> Option<&str> {
    let mut dims = owner.schema().dims().iter();
    dims.find(|dim| dim.labels().and_then(Labels::array) == Some(id)).map(Dimension::name)
}

impl Tree {
    /// Inserts a hidden array of `owner`, which `made` makes for the path that messages name it by.
    ///
    /// # Errors
    /// Conflict (the owner was removed), Exists, Input.
    pub(super) fn insert_hidden(&mut self, owner: Id, name: &str, made: impl FnOnce(&str) -> ArrayState) -> Result<()> {
        path::check_hidden(name)?;
        let Some(Node::Array(above)) = self.get(owner)? else {
            return Err(Error::conflict(format!(
                "the array with the id {owner} was removed; no array can be hidden in it"
            )));
        };
        if above.is_hidden {
            return Err(Error::input(format!("the hidden array {} cannot have another one", above.path())));
        }
        if self.child(owner, name)?.is_some() {
            return Err(Error::exists(format!("the array {} has a hidden array {name:?} already", above.path())));
        }
        let array = ArrayState { is_hidden: true, ..made(&path::below(above.path(), name)) };
        if self.get(array.id)?.is_some() {
            return Err(Error::exists(format!("there is already a node with the id {}", array.id)));
        }
        let node = Node::Array(Arc::new(array));
        self.adopt(owner, name, Some(node.as_child()))?;
        self.put(node.id(), Some(node));
        Ok(())
    }

    /// The hidden arrays of an array, by name.
    pub(super) fn hidden_in(&self, array: &ArrayState) -> Result<BTreeMap<String, Child>> {
        if array.is_hidden {
            return Ok(BTreeMap::new());
        }
        self.children_in(array.id, array.schemas.count_folded() > 0, &array.hidden)
    }

    /// A Conflict error if `node` is a hidden array in which its owner has labels.
    pub(super) fn check_unused(&self, node: &Node) -> Result<()> {
        let Node::Array(array) = node else { return Ok(()) };
        let Some(owner) = array.parent.filter(|_| array.is_hidden) else { return Ok(()) };
        let Some(Node::Array(owner)) = self.get(owner)? else { return Ok(()) };
        match labelled(&owner, array.id) {
            Some(dim) => Err(Error::conflict(format!(
                "the labels of dimension {dim:?} of array {} lie in its hidden array that should be removed; give the \
                 dimension other labels first",
                owner.path()
            ))),
            None => Ok(()),
        }
    }

    /// An error unless the arrays that the schema of an array has labels in are there. Those of a hidden array's owner are
    /// checked with it.
    ///
    /// # Errors
    /// Conflict: one is not, or not any more. Schema: it does not lie along the dimension, or has not one attribute.
    pub(super) fn check_labels(&self, id: Id) -> Result<()> {
        let Some(Node::Array(array)) = self.get(id)? else { return Ok(()) };
        if let Some(owner) = array.owner() {
            return self.check_labels(owner);
        }
        for dim in array.schema().dims() {
            let Some(named) = dim.labels().and_then(Labels::array) else { continue };
            let wrong = format!("the labels of dimension {:?} of array {}", dim.name(), array.path());
            match self.get(named)? {
                Some(Node::Array(labels)) if labels.is_hidden && labels.parent == Some(id) => {
                    check_label_form(dim, labels.schema())
                        .map_err(|why| Error::schema(format!("{wrong} lie in {why}")))?;
                }
                _ => {
                    return Err(Error::conflict(format!(
                        "{wrong} should lie in the array with the id {named}, which is no hidden array of it, or none any more"
                    )));
                }
            }
        }
        Ok(())
    }
}
