//! Painting a region of a dense array, from its oldest layer to its newest. What a newer one hides is never fetched.

use super::canvas::Canvas;
use super::layer::{Layer, LayerKind};
use super::overlay::OverlayCell;
use super::plan::DensePlan;
use super::sparse_layer::paint_sparse;
use crate::base::{Counters, Result};
use crate::fragment::{Role, StoredPart, TileSource};
use crate::query::block::fetch::{Want, fetch};
use crate::query::request::ReadContext;
use crate::schema::{Attribute, Subarray};
use crate::tile::{Column, Strided, offsets_in};
use std::sync::Arc;

impl DensePlan {
    /// The cells of `region`, in cell order, a column per attribute.
    pub(in crate::query) fn paint(
        &self,
        context: &ReadContext,
        region: &Subarray,
        attrs: &[&Attribute],
    ) -> Result<Vec<Column>> {
        let cells = region.cells() as usize;
        Counters::add(&context.counters.cells_scanned, cells as u64);
        let mut canvases: Vec<Canvas<'_>> = attrs.iter().map(|a| Canvas::new(a, cells)).collect::<Result<_>>()?;
        let packed = Strided::packed(&region.shape(), self.schema.options().cell_order);
        let mut overlay = self.overlay_cells(region, &packed)?;
        overlay.sort_unstable_by_key(OverlayCell::age);
        let alone = overlay.is_empty() && self.layers.iter().filter(|p| p.touches(region)).count() == 1;
        for (place, layer) in self.layers.iter().enumerate() {
            context.cancel.check()?;
            if !layer.touches(region) {
                continue;
            }
            let order = layer.description.order;
            let older = overlay.partition_point(|cell| cell.order < order);
            let rest = overlay.split_off(older);
            self.paint_overlay(context, &overlay, &mut canvases)?;
            overlay = rest;
            match &layer.kind {
                LayerKind::Dense(source) => {
                    let painted = self.paint_dense(context, (place, source), region, &mut canvases)?;
                    Counters::add(&context.counters.blocks_alone, if alone { painted } else { 0 });
                }
                LayerKind::Sparse(fragment, blocks) => {
                    paint_sparse(context, &self.schema, (fragment, blocks), region, &mut canvases)?;
                }
                LayerKind::Deletion => clear_box(layer, region, &packed, &mut canvases),
            }
        }
        self.paint_overlay(context, &overlay, &mut canvases)?;
        canvases.into_iter().map(Canvas::finish).collect()
    }

    /// Paints what a dense layer shows in `region`; gives the number of blocks fetched.
    fn paint_dense(
        &self,
        context: &ReadContext,
        (place, source): (usize, &Arc<dyn TileSource>),
        region: &Subarray,
        canvases: &mut [Canvas<'_>],
    ) -> Result<u64> {
        let description = source.description();
        let Some(part) = region.intersect(&description.bounds) else { return Ok(0) };
        Counters::add(&context.counters.tiles_considered, 1);
        let mut held = canvases.iter().map(Canvas::attr).filter(|a| description.attrs.contains(&a.id())).peekable();
        let some = held.peek().is_some();
        // Nothing of it is asked for: not its index either, which may be damaged.
        if held.all(|attr| self.shadowed(place, attr, &part)) {
            Counters::add(&context.counters.tiles_shadowed, u64::from(some));
            return Ok(0);
        }
        let parts = source.parts(&part)?;
        let (mut wants, mut targets, mut shadowed) = (Vec::new(), Vec::new(), false);
        for part in &parts {
            for (number, canvas) in canvases.iter().enumerate() {
                let attr = canvas.attr();
                let Some(field) = source.field(Role::Attribute(attr.id())) else { continue };
                if self.shadowed(place, attr, &part.region) {
                    shadowed = true;
                    continue;
                }
                wants.push(Want { source: source.clone(), block: source.block(field, part.block)? });
                targets.push((number, part));
            }
        }
        Counters::add(&context.counters.tiles_read, u64::from(!wants.is_empty()));
        Counters::add(&context.counters.tiles_shadowed, u64::from(shadowed && wants.is_empty()));
        let to = Strided::packed(&region.shape(), self.schema.options().cell_order);
        for (column, (canvas, StoredPart { region: cells, from, .. })) in
            fetch(context, &wants, false)?.into_iter().zip(targets)
        {
            if let Some(canvas) = canvases.get_mut(canvas) {
                canvas.paint_box(&Arc::new(column), &cells.shape(), from, &to.at(&offsets_in(cells, region)));
            }
        }
        Ok(wants.len() as u64)
    }
}

/// Makes the cells of `region`, laid out as `packed`, unwritten where they lie in the box of `deletion`.
fn clear_box(deletion: &Layer, region: &Subarray, packed: &Strided, canvases: &mut [Canvas<'_>]) {
    let Some(part) = deletion.description.bounds.intersect(region) else { return };
    let (shape, to) = (part.shape(), packed.at(&offsets_in(&part, region)));
    let cleared = canvases.iter_mut().filter(|canvas| deletion.clears(canvas.attr()));
    cleared.for_each(|canvas| canvas.clear_box(&shape, &to));
}
