//! What a region of a dense array is painted with, layer over layer: dense fragments, sparse ones, deletions.

use super::sparse_layer::{PaintedBlock, blocks_in};
use crate::base::Result;
use crate::fragment::{Description, Fragment, FragmentKind, TileSource};
use crate::query::block::deletions::Deletions;
use crate::query::request::{ReadContext, Request, Target};
use crate::schema::{Attribute, Subarray};
use std::sync::Arc;

/// A fragment that may paint, or a deletion that clears; oldest order first.
pub(in crate::query) struct Layer {
    pub(in crate::query) description: Arc<Description>,
    pub(in crate::query) kind: LayerKind,
}

/// What a layer paints with.
pub(in crate::query) enum LayerKind {
    /// The tiles of a dense fragment.
    Dense(Arc<dyn TileSource>),
    /// A sparse fragment, and its blocks that touch the box.
    Sparse(Arc<Fragment>, Vec<PaintedBlock>),
    /// A box that is cleared.
    Deletion,
}

impl Layer {
    pub(super) fn new(
        context: &ReadContext,
        target: &Target,
        (request, deletions): (&Request, &Deletions),
        fragment: Arc<Fragment>,
    ) -> Result<Self> {
        let description = fragment.description().clone();
        let kind = if description.kind == FragmentKind::Dense {
            LayerKind::Dense(context.tiles.of(fragment, &target.schema)?)
        } else {
            let blocks = blocks_in(context, &fragment, &request.sub, deletions)?;
            LayerKind::Sparse(fragment, blocks)
        };
        Ok(Self { description, kind })
    }

    pub(in crate::query) fn touches(&self, region: &Subarray) -> bool {
        self.description.bounds.intersects(region)
    }

    /// Whether nothing of `attr` in `region` shows through it: all cells there are painted or cleared.
    pub(in crate::query) fn hides(&self, attr: &Attribute, region: &Subarray) -> bool {
        let all = match self.kind {
            LayerKind::Dense(_) => self.description.attrs.contains(&attr.id()),
            LayerKind::Deletion => self.clears(attr),
            LayerKind::Sparse(..) => false,
        };
        all && self.description.bounds.covers(region)
    }

    /// Whether a deletion is of this attribute: a hole in another one is not.
    pub(super) fn clears(&self, attr: &Attribute) -> bool {
        self.description.attrs.is_empty() || self.description.attrs.contains(&attr.id())
    }

    /// Whether it may have a say in what is in `attr`.
    pub(super) fn concerns(&self, attr: &Attribute) -> bool {
        match self.kind {
            LayerKind::Dense(_) => self.description.attrs.contains(&attr.id()),
            LayerKind::Deletion => self.clears(attr),
            LayerKind::Sparse(..) => true,
        }
    }

    pub(in crate::query) fn is_dense(&self) -> bool {
        matches!(self.kind, LayerKind::Dense(_))
    }
}
