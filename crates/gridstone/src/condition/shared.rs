//! Nodes that several trees share: cheap to clone, and measured once.

use super::expression::Expression;
use super::tree::{Condition, DEPTH_MAX, SIZE_MAX};
use crate::base::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// How large a tree is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measure {
    /// Half levels: a condition counts two, an operator of values one.
    pub(super) levels: usize,
    /// Nodes and literals.
    pub(super) parts: usize,
}

impl Measure {
    /// That of a leaf of so many half levels.
    pub(super) fn leaf(levels: usize, parts: usize) -> Self {
        Self { levels, parts }
    }

    /// That of a node of so many half levels around these parts.
    pub(super) fn around(levels: usize, parts: impl IntoIterator<Item = Self>) -> Self {
        let inner = parts.into_iter().fold(Self::leaf(0, 0), |all, part| Self {
            levels: all.levels.max(part.levels),
            parts: all.parts.saturating_add(part.parts),
        });
        Self { levels: inner.levels + levels, parts: inner.parts.saturating_add(1) }
    }

    /// An Input error if that is more than the engine takes.
    pub(super) fn check(self) -> Result<()> {
        if self.levels > 2 * DEPTH_MAX {
            return Err(Error::input(format!(
                "a condition of more than {DEPTH_MAX} levels, where operators of values count half; write a and b and c, \
                 not a and (b and (c))"
            )));
        }
        if self.parts > SIZE_MAX {
            return Err(Error::input(format!("a condition of more than {SIZE_MAX} parts; ask in several calls")));
        }
        Ok(())
    }
}

/// A node that others may share as a part of theirs; cheap to clone, measured once.
#[derive(Debug, Clone)]
pub struct Shared<T> {
    node: Arc<T>,
    pub(super) measure: Measure,
}

/// A condition that others may share as a part of theirs.
pub type Branch = Shared<Condition>;

/// An expression that others may share as a part of theirs.
pub type Term = Shared<Expression>;

impl From<Condition> for Branch {
    fn from(condition: Condition) -> Self {
        Self { measure: condition.measure(), node: Arc::new(condition) }
    }
}

impl From<Expression> for Term {
    fn from(expression: Expression) -> Self {
        Self { measure: expression.measure(), node: Arc::new(expression) }
    }
}

impl Term {
    /// An expression made of parts; an Input error if it is deeper or larger than the engine takes.
    pub fn new(expression: Expression) -> Result<Self> {
        let made = Self::from(expression);
        made.measure.check()?;
        Ok(made)
    }
}

impl Branch {
    /// A condition made of parts; an Input error if it is deeper or larger than the engine takes.
    pub fn new(condition: Condition) -> Result<Self> {
        let made = Self::from(condition);
        made.measure.check()?;
        Ok(made)
    }

    /// The opposite.
    ///
    /// # Errors
    /// Those of [`Branch::new`].
    pub fn negated(&self) -> Result<Self> {
        Self::new(Condition::Not { arg: self.clone() })
    }

    /// Both; what is an `and` already is one with more parts.
    ///
    /// # Errors
    /// Those of [`Branch::new`].
    pub fn and(&self, other: &Self) -> Result<Self> {
        let parts = |side: &Self| if let Condition::And { args } = &**side { Some(args.clone()) } else { None };
        Self::new(Condition::And { args: self.joined(other, parts) })
    }

    /// At least one of both; what is an `or` already is one with more parts.
    ///
    /// # Errors
    /// Those of [`Branch::new`].
    pub fn or(&self, other: &Self) -> Result<Self> {
        let parts = |side: &Self| if let Condition::Or { args } = &**side { Some(args.clone()) } else { None };
        Self::new(Condition::Or { args: self.joined(other, parts) })
    }

    /// The parts of both sides, each a part itself where `parts` has none of it.
    fn joined(&self, other: &Self, parts: impl Fn(&Self) -> Option<Vec<Self>>) -> Vec<Self> {
        let mut all = parts(self).unwrap_or_else(|| vec![self.clone()]);
        match parts(other) {
            Some(more) => all.extend(more),
            None => all.push(other.clone()),
        }
        all
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.node
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.node, &other.node) || self.node == other.node
    }
}

impl<T: Eq> Eq for Shared<T> {}

impl<T: Hash> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.node.hash(state);
    }
}

impl<T: Serialize> Serialize for Shared<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.node.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Shared<T>
where
    Self: From<T>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::from)
    }
}
