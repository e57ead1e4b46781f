//! Tiles whose cells are all read as they are, found before blocks are planned: what holds of such a tile as a whole may be enough.
//!
//! A tile is alone if the box holds all of it, no row of its fragment is deleted, no deleted box touches it, and no other fragment
//! reaches into its box: then its cells hide none and none hides them. Where a place may hold several cells, only what deletes and
//! what is laid over matter.

use crate::base::Result;
use crate::fragment::{Description, Fragment, FragmentKind, IndexBox};
use crate::query::block::deletions::Deletions;
use crate::query::block::masks::Masks;
use crate::query::overlay::is_small;
use crate::query::request::{Request, Target};
use crate::schema::Subarray;
use std::sync::Arc;

/// Fragments whose boxes a tile is compared with, at most: with more of them, blocks are planned and indexed.
const OTHERS_MAX: usize = 64;

/// A tile whose cells are all read as they are.
pub(in crate::query) struct LoneTile<'a> {
    pub(in crate::query) fragment: &'a Fragment,
    pub(in crate::query) tile: u64,
    /// The least box around its cells.
    pub(in crate::query) bounds: Subarray,
    pub(in crate::query) cells: u64,
}

/// Answers for tiles, so that their cells are not read.
pub(in crate::query) trait TileTaker {
    /// Whether it answers for the cells of a tile.
    ///
    /// # Errors
    /// Corruption, Storage; those of what it answers.
    fn takes(&mut self, tile: LoneTile<'_>) -> Result<bool>;
}

/// Answers for no tile.
pub(in crate::query) struct NoTaker;

impl TileTaker for NoTaker {
    fn takes(&mut self, _tile: LoneTile<'_>) -> Result<bool> {
        Ok(false)
    }
}

/// What tells whether a tile is alone.
pub(super) struct Surroundings<'a> {
    pub(super) request: &'a Request,
    pub(super) deletions: &'a Deletions,
    pub(super) masks: &'a Masks,
    /// The fragments that may hide cells of others, or be hidden.
    others: Vec<&'a Description>,
}

impl<'a> Surroundings<'a> {
    pub(super) fn new(target: &'a Target, request: &'a Request, deletions: &'a Deletions, masks: &'a Masks) -> Self {
        let duplicates = target.schema.options().duplicates;
        let matters = |d: &&Description| match d.kind {
            FragmentKind::Deletion | FragmentKind::Mask => false,
            FragmentKind::Sparse => !duplicates || is_small(d),
            FragmentKind::Dense | FragmentKind::Tombstones => true,
        };
        let others = target.fragments.iter().map(AsRef::as_ref).filter(matters).take(OTHERS_MAX + 1).collect();
        Self { request, deletions, masks, others }
    }

    /// Whether no fragment but one of `of` reaches anywhere, so that all its tiles in the box are alone that may be.
    pub(super) fn is_empty_but(&self, of: &[Arc<Fragment>]) -> bool {
        let own = if let [only] = of { Some(only.description().id) } else { None };
        self.others.iter().all(|other| Some(other.id) == own)
    }

    /// Whether tiles of a fragment may be alone.
    pub(super) fn may_be_alone(&self, of: &Description) -> bool {
        of.kind == FragmentKind::Sparse && self.others.len() <= OTHERS_MAX && self.masks.over(of.id).is_empty()
    }

    /// The box of a tile of a fragment whose tiles may be alone, if it is.
    pub(super) fn lone(&self, of: &Description, bounds: IndexBox<'_>) -> Option<Subarray> {
        let reaches = |other: &&Description| other.id != of.id && bounds.intersects(&other.bounds);
        if self.others.iter().any(reaches) {
            return None;
        }
        let bounds = bounds.to_subarray();
        (self.request.area().covers(&bounds) && !self.deletions.touch(of.order, &bounds)).then_some(bounds)
    }
}
