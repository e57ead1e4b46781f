//! Cells that come in global order cut into data tiles, which are encoded side by side.
//!
//! Filters are chosen anew every so many cells, from a sample of the first tile of them: a step of its own
//! ([`super::choices_ahead`]). Whoever comes to one of those tiles before it is done chooses; since all have the same sample, it
//! does not matter who.

use super::choices_ahead::Settles;
use super::write_cells::{columns_of, encode_sparse_tile, settled_cells, sparse_cuts};
use crate::base::Result;
use crate::fragment::{EncodedTile, Field, Packing, sampled};
use crate::schema::Schema;
use crate::tile::{Column, ColumnView};
use std::sync::{Arc, OnceLock};

/// Cells in global order: coordinates as ordered keys, a column per dimension, and a column per attribute.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    pub(super) keys: Vec<Vec<u64>>,
    pub(super) columns: Vec<Column>,
}

impl Batch {
    /// How many cells it holds.
    pub(super) fn len(&self) -> usize {
        self.keys.first().map_or(0, Vec::len)
    }

    /// Its cells `from .. to`.
    pub(super) fn part(&self, from: usize, to: usize) -> Self {
        let keys = self.keys.iter().map(|k| k.get(from..to).unwrap_or_default().to_vec()).collect();
        Self { keys, columns: self.columns.iter().map(|c| c.view().copy_range(from, to)).collect() }
    }
}

/// The choice of filters that some tiles share.
#[derive(Debug)]
pub(super) struct Settling {
    sample: Vec<Column>,
    cuts: Vec<usize>,
    packing: OnceLock<Packing>,
}

/// The cells of one data tile, to be encoded.
#[derive(Debug)]
pub(super) struct RawTile {
    cells: Batch,
    settling: Arc<Settling>,
    /// Whether it is the first that needs this choice.
    settles: bool,
}

impl RawTile {
    /// How many cells it holds.
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }
}

/// How tiles of cells are encoded.
#[derive(Debug, Clone)]
pub(super) struct TileForm {
    pub(super) fields: Vec<Field>,
    pub(super) packing: Packing,
    pub(super) block_cells: u32,
}

impl Settles for RawTile {
    type Choice = Arc<Settling>;

    fn choice(&self) -> Option<Arc<Settling>> {
        self.settles.then(|| Arc::clone(&self.settling))
    }
}

impl TileForm {
    /// Makes a choice, if it is not made.
    pub(super) fn settle<'a>(&self, settling: &'a Settling) -> &'a Packing {
        settling.packing.get_or_init(|| self.packing.settled(&settling.sample, &settling.cuts))
    }

    /// Encodes one tile.
    pub(super) fn encode(&self, tile: RawTile) -> Result<EncodedTile> {
        let RawTile { cells: Batch { keys, columns }, settling, .. } = tile;
        let packing = self.settle(&settling);
        let columns = columns_of(&self.fields, &keys, columns)?;
        encode_sparse_tile((&self.fields, packing), self.block_cells, &keys, columns)
    }
}

/// Cuts tiles of `capacity` cells.
#[derive(Debug)]
pub(super) struct Cutter {
    form: TileForm,
    capacity: usize,
    held: Batch,
    /// How the next tiles are packed, and for how many cells more.
    settled: Option<(Arc<Settling>, usize)>,
}

impl Cutter {
    /// Without a cell yet; the attributes at `places` of `schema` come.
    pub(super) fn new(schema: &Schema, places: &[usize], form: TileForm) -> Self {
        let attrs = places.iter().filter_map(|p| schema.attrs().get(*p));
        let columns = attrs.map(|a| Column::empty(a.datatype(), a.nullable())).collect();
        let held = Batch { keys: vec![Vec::new(); schema.ndim()], columns };
        Self { form, capacity: schema.options().capacity as usize, held, settled: None }
    }

    /// How its tiles are to be encoded.
    pub(super) fn form(&self) -> &TileForm {
        &self.form
    }

    /// Takes cells from row `from` on, until a tile is full; gives it, and the row after the last that was taken.
    pub(super) fn take(
        &mut self,
        keys: &[Vec<u64>],
        columns: &[ColumnView<'_>],
        from: usize,
    ) -> Result<(usize, Option<RawTile>)> {
        let rows = keys.first().map_or(0, Vec::len);
        let to = rows.min(from + self.capacity - self.held.len());
        for (held, key) in self.held.keys.iter_mut().zip(keys) {
            held.extend_from_slice(key.get(from..to).unwrap_or_default());
        }
        for (held, view) in self.held.columns.iter_mut().zip(columns) {
            held.append(*view, from, to);
        }
        let full = self.held.len() == self.capacity;
        Ok((to, if full { self.rest()? } else { None }))
    }

    /// The cells that do not fill a tile, as one; `None` if there are none.
    pub(super) fn rest(&mut self) -> Result<Option<RawTile>> {
        if self.held.len() == 0 {
            return Ok(None);
        }
        let empty = |c: &Column| Column::empty(c.datatype(), c.view().validity().is_some());
        let columns = self.held.columns.iter().map(empty).collect();
        let next = Batch { keys: vec![Vec::with_capacity(self.held.len()); self.held.keys.len()], columns };
        let cells = std::mem::replace(&mut self.held, next);
        let settled = self.settled.take().filter(|(_, left)| *left > 0);
        let settles = settled.is_none();
        let (settling, left) = match settled {
            Some(settled) => settled,
            None => (Arc::new(self.settling(&cells)?), settled_cells(self.capacity)),
        };
        self.settled = Some((settling.clone(), left.saturating_sub(cells.len())));
        Ok(Some(RawTile { cells, settling, settles }))
    }

    /// A sample of the tile decides.
    fn settling(&self, cells: &Batch) -> Result<Settling> {
        let cuts = sparse_cuts(cells.len(), self.form.block_cells);
        let (mut sample, mut ends) = (cells.part(0, 0), vec![0]);
        for (from, to) in sampled(&cuts) {
            let block = cells.part(from, to);
            sample.keys.iter_mut().zip(&block.keys).for_each(|(all, some)| all.extend_from_slice(some));
            sample
                .columns
                .iter_mut()
                .zip(&block.columns)
                .for_each(|(all, some)| all.append(some.view(), 0, some.len()));
            ends.push(sample.len());
        }
        let sample = columns_of(&self.form.fields, &sample.keys, sample.columns)?;
        Ok(Settling { sample, cuts: ends, packing: OnceLock::new() })
    }
}
