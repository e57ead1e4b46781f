//! The cells of a dense box for aggregates: whole tiles that the index answers for, and units of painted cells.
//!
//! The box is halved down to space tiles, as reads with a condition do. A tile whose cells come from one source, with nothing
//! newer, is whole; where nothing was written its cells are the fill. Other tiles are cut into units of whole blocks.

use crate::base::Result;
use crate::query::dense::plan::{CellSource, DensePlan};
use crate::query::request::{ReadContext, Request, Target};
use crate::query::select::{Known, WholeTile, halves, of_fill};
use crate::schema::{Attribute, Schema, Subarray};
use crate::tile::{Statistics, Strided, Sum};
use std::collections::VecDeque;

/// Cells of a unit, about: a block of usual size.
const UNIT_CELLS: u64 = 16_384;

/// What comes next of a box.
#[derive(Debug)]
pub(super) enum DensePart {
    /// A tile, with the statistics of the attributes read.
    Whole(WholeTile),
    /// A unit whose cells are to be painted.
    Unit(Subarray),
}

/// The cells of a dense box, under way.
pub(super) struct DenseCells {
    pub(super) context: ReadContext,
    pub(super) plan: DensePlan,
    known: Known,
    /// Parts of the box that were not looked at, the next one last.
    boxes: Vec<Subarray>,
    units: VecDeque<Subarray>,
    /// Whether whole tiles are of use.
    asks_index: bool,
}

impl std::fmt::Debug for DenseCells {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DenseCells({} boxes)", self.boxes.len())
    }
}

impl DenseCells {
    /// Plans a read of a box.
    pub(super) fn new(context: &ReadContext, target: &Target, request: &Request, asks_index: bool) -> Result<Self> {
        let plan = DensePlan::new(context, target, request)?;
        let boxes = vec![request.sub.clone()];
        let (context, known) = (context.clone(), Known::default());
        Ok(Self { context, plan, known, boxes, units: VecDeque::new(), asks_index })
    }

    /// Makes units of a tile that was not taken whole.
    pub(super) fn cut(&mut self, region: &Subarray) {
        self.units.extend(self.plan.parts(region, UNIT_CELLS));
    }

    /// The next part; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<DensePart>> {
        loop {
            if let Some(unit) = self.units.pop_front() {
                return Ok(Some(DensePart::Unit(unit)));
            }
            self.context.cancel.check()?;
            let Some(region) = self.boxes.pop() else { return Ok(None) };
            if let Some((low, high)) = halves(&self.plan.schema, &region) {
                self.boxes.push(high);
                self.boxes.push(low);
                continue;
            }
            if self.asks_index
                && let Some(tile) = self.whole(&region)?
            {
                return Ok(Some(DensePart::Whole(tile)));
            }
            self.cut(&region);
        }
    }

    /// The statistics of all attributes read, if the cells of a region in one space tile are those of one tile, or fill.
    fn whole(&mut self, region: &Subarray) -> Result<Option<WholeTile>> {
        let Ok(cells) = u64::try_from(region.cells()) else { return Ok(None) };
        let packed = Strided::packed(&region.shape(), self.plan.schema.options().cell_order);
        if !self.plan.overlay_cells(region, &packed)?.is_empty() {
            return Ok(None);
        }
        let schema = self.plan.schema.clone();
        let mut statistics = Vec::with_capacity(self.plan.request.attrs.len());
        for attr in self.plan.request.attrs.iter().filter_map(|place| schema.attrs().get(*place)) {
            let found = match self.plan.origin(attr, region) {
                CellSource::Nowhere(_) => filled(attr, cells),
                CellSource::One(source) => {
                    let mut tiles = source.tiles_in(region);
                    match (tiles.next(), tiles.next()) {
                        (Some(tile), None) if source.tile_box(tile).as_ref() == Some(region) => {
                            self.known.of(source.as_ref(), attr.id(), tile)?
                        }
                        _ => None,
                    }
                }
                CellSource::Many => None,
            };
            let Some(found) = found else { return Ok(None) };
            statistics.push(found);
        }
        Ok(Some(WholeTile { bounds: region.clone(), cells, statistics }))
    }
}

/// The statistics of cells that were never written.
fn filled(attr: &Attribute, cells: u64) -> Option<Statistics> {
    let one = of_fill(attr)?;
    let times = |count: u64| if count > 0 { cells } else { 0 };
    let sum = match one.sum {
        Sum::Integer(sum) => Sum::Integer(sum * i128::from(cells)),
        Sum::Float(sum) => Sum::Float(sum * cells as f64),
        Sum::None => Sum::None,
    };
    Some(Statistics { null_count: times(one.null_count), nan_count: times(one.nan_count), sum, ..one })
}

/// The coordinates along a dimension, as keys, of the cells of a box in cell order.
pub(super) fn keys_along(schema: &Schema, region: &Subarray, axis: usize) -> Vec<u64> {
    let shape = region.shape();
    let strides = schema.options().cell_order.strides(&shape);
    let (Some(range), Some(stride), Some(count)) = (region.ranges().get(axis), strides.get(axis), shape.get(axis))
    else {
        return Vec::new();
    };
    let cells = region.cells() as usize;
    let mut keys = Vec::with_capacity(cells);
    while keys.len() < cells {
        for step in 0..*count {
            keys.extend(std::iter::repeat_n(range.lo + step, *stride as usize));
        }
    }
    keys.truncate(cells);
    keys
}
