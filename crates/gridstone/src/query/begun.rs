//! Units of a dense read whose blocks are asked for before the units are read, where the answer to a request takes long: those of many units
//! together, and while the units before them are decoded.
//!
//! Left out are cells that lie in a sparse fragment, and what newer fragments hide.

use super::deliver::{Origin, Sheet};
use super::dense::{DensePlan, Layer, Located, Unit, absolute};
use super::layout::ResultLayout;
use crate::base::{Begun, ByteRange, Result};
use crate::fragment::{Fragment, Role};
use crate::schema::{Attribute, Subarray};
use std::sync::Arc;

/// Units that are asked for together, at most, and the bytes of their cells.
pub(super) const UNITS_MAX: usize = 1_024;
pub(super) const UNITS_BYTES_MAX: u64 = 16 << 20;

/// Ranges wanted, those of each file together.
#[derive(Default)]
struct Wanted<'p> {
    files: Vec<(&'p Arc<Fragment>, Vec<ByteRange>)>,
}

impl<'p> Wanted<'p> {
    fn push(&mut self, fragment: &'p Arc<Fragment>, ranges: Vec<ByteRange>) {
        match self.files.iter_mut().find(|(other, _)| Arc::ptr_eq(other, fragment)) {
            Some((_, all)) => all.extend(ranges),
            None => self.files.push((fragment, ranges)),
        }
    }
}

impl DensePlan {
    /// Whether the answer to a request takes long.
    pub(super) fn is_far(&self) -> bool {
        let far = |layer: &Layer| matches!(layer, Layer::Dense(fragment, _) if fragment.source().far_gap().is_some());
        self.painters.iter().any(|painter| far(&painter.layer))
    }

    /// Asks for what the units will read; it is on its way as long as the result is held.
    pub(super) fn begin(
        &self,
        sheets: &[Sheet<'_>],
        painted: &[&Attribute],
        units: &[Unit],
        layout: &ResultLayout,
    ) -> Result<Vec<Arc<dyn Begun>>> {
        let mut wanted = Wanted::default();
        for Unit { region, tile, .. } in units {
            let to = layout.place(region, *tile);
            for attr in sheets.iter().map(|sheet| sheet.attr) {
                match self.origin(attr, region) {
                    Origin::One(fragment, grid) => {
                        wanted.push(fragment, self.piece_ranges(attr, (fragment, grid), region, &to)?);
                    }
                    Origin::Many => self.want_blocks(attr, region, &mut wanted)?,
                    Origin::Nowhere(_) => {}
                }
            }
            painted.iter().try_for_each(|attr| self.want_blocks(attr, region, &mut wanted))?;
        }
        Ok(wanted.files.into_iter().filter_map(|(fragment, ranges)| fragment.source().begin(&ranges)).collect())
    }

    /// Wants what is decoded to paint an attribute in a region.
    fn want_blocks<'p>(&'p self, attr: &Attribute, region: &Subarray, wanted: &mut Wanted<'p>) -> Result<()> {
        for (place, painter) in self.painters.iter().enumerate() {
            let Layer::Dense(fragment, grid) = &painter.layer else { continue };
            let (part, field) = (region.intersect(&fragment.root().bounds), fragment.field(Role::Attribute(attr.id())));
            let (Some(part), Some(field)) = (part, field) else { continue };
            let Located { tile, tile_box, blocks, wanted: cells, .. } = self.locate(fragment, grid, &part)?;
            let mut ranges = Vec::new();
            for block in blocks.touched_by(&cells) {
                let Some(common) = blocks.block_box(block).intersect(&cells) else { continue };
                if !self.shadowed(place, attr, &absolute(&common, &tile_box)) {
                    ranges.push(fragment.block(field, tile, block as usize, blocks.cells(block) as usize)?.range);
                }
            }
            wanted.push(fragment, ranges);
        }
        Ok(())
    }
}
