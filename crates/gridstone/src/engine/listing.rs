//! What users see of fragments and tiles.

use crate::base::{AlignedBuf, FileRef, Id, Result};
use crate::fragment::{Description, Fragment, FragmentKind};
use crate::query::ReadContext;
use crate::schema::{Coordinate, Datatype, Schema, Subarray, key};
use crate::tile::Column;
use std::sync::Arc;

/// A fragment of an array.
#[derive(Debug, Clone)]
pub struct FragmentListing {
    /// Its id.
    pub id: Id,
    /// "dense", "sparse", "tombstones", "deletion" or "mask".
    pub kind: &'static str,
    /// The version that committed it.
    pub version: u64,
    /// Its place in that commit.
    pub index: u32,
    /// Cells in it.
    pub cells: u64,
    /// Bytes it takes.
    pub bytes: u64,
    /// Whether it lives in a log record's body.
    pub inline: bool,
    /// The attributes it has values of.
    pub attrs: Vec<String>,
    /// Its box or MBR, in texts: low and high per dimension, inclusive.
    pub domain: Vec<(String, String)>,
}

impl FragmentListing {
    pub(super) fn of(description: &Description, schema: &Schema) -> Self {
        let name = |id: &u32| schema.attr_by_id(*id).map(|a| a.name().to_owned());
        Self {
            id: description.id,
            kind: description.kind.name(),
            version: description.order.version,
            index: description.order.index,
            cells: description.cells,
            bytes: description.location.len,
            inline: matches!(description.location.file, FileRef::Log(_)),
            attrs: description.attrs.iter().filter_map(name).collect(),
            domain: schema.ends(&description.bounds),
        }
    }
}

/// A data tile of a fragment.
#[derive(Debug, Clone)]
pub struct TileListing {
    /// The fragment's place in the list of fragments.
    pub fragment: u32,
    /// Cells in it.
    pub cells: u64,
    /// Its box (dense) or MBR, as ordered keys.
    pub bounds: Subarray,
}

/// The least, or greatest, coordinates of tiles, a column per dimension.
///
/// # Errors
/// Corruption: bounds that are no coordinates.
pub fn tile_ends(schema: &Schema, tiles: &[TileListing], low: bool) -> Result<Vec<Column>> {
    let end = |dim: Coordinate<'_>| {
        let Some(axis) = dim.number() else {
            let ends = tiles.iter().map(|tile| dim.ends(tile.bounds.ranges()));
            return text_column(ends.map(|(lo, hi)| if low { lo } else { hi }));
        };
        let ranges = tiles.iter().filter_map(|tile| tile.bounds.ranges().get(dim.axes().start));
        let mut values = Vec::new();
        key::decode(axis.datatype(), ranges.map(|range| if low { range.lo } else { range.hi }), &mut values);
        Column::new(axis.datatype(), AlignedBuf::from_slice(&values), None, None)
    };
    schema.coordinates().map(end).collect()
}

fn text_column(texts: impl Iterator<Item = String>) -> Result<Column> {
    let (mut values, mut offsets) = (String::new(), vec![0]);
    for text in texts {
        values.push_str(&text);
        offsets.push(values.len() as u64);
    }
    Column::new(Datatype::String, AlignedBuf::from_slice(values.as_bytes()), Some(offsets), None)
}

/// The data tiles of a fragment that touch `sub`; looks for an interrupt once per stripe.
pub(super) fn tiles(
    context: &ReadContext,
    number: u32,
    fragment: &Arc<Fragment>,
    schema: &Schema,
    sub: &Subarray,
) -> Result<Vec<TileListing>> {
    let mut found = Vec::new();
    if fragment.description().kind == FragmentKind::Dense {
        let source = context.tiles.of(fragment.clone(), schema)?;
        let boxes = source.tiles_in(sub).filter_map(|tile| source.tile_box(tile));
        found.extend(boxes.map(|bounds| TileListing { fragment: number, cells: bounds.cells() as u64, bounds }));
        return Ok(found);
    }
    for number_of_stripe in 0..fragment.stripes() {
        context.cancel.check()?;
        let stripe = fragment.stripe(number_of_stripe)?;
        for tile in 0..stripe.tiles() {
            if let (Some(bounds), Some(cells)) = (stripe.tile_bounds(tile), stripe.tile_cells(tile))
                && bounds.intersects(sub)
            {
                found.push(TileListing { fragment: number, cells, bounds: bounds.to_subarray() });
            }
        }
    }
    Ok(found)
}
