//! Pipelines of the coordinates of sparse inputs: stored bytes, and the rates of packing and unpacking blocks in the
//! stored order.

use super::columns::{coordinates, write};
use super::input::Input;
use super::measure::{Effort, median, turns};
use super::table::default_cells;
use gridstone::base::{Element, Error, Result};
use gridstone::codec::{self, Pipeline, choose};
use gridstone::engine::{Call, Column, ReadOrder};
use std::hint::black_box;
use std::time::Instant;

/// The pipelines compared: `for` packs bits after subtracting the least value of a block, `delta` takes differences
/// first.
pub(crate) const PIPELINES: [&str; 7] =
    ["auto", "for", "delta,for", "shuffle,zstd:3", "delta,shuffle,zstd:3", "zstd:3", "pco:4"];

/// Cells of the data tiles of the inputs: a block ends at the end of each.
const TILE_CELLS: usize = 10_000;
/// The number of data tiles for which `auto` chooses once.
const CHOSEN_TILES: usize = 8;

/// The coordinates of one input.
#[derive(Debug)]
pub(crate) struct Coords {
    /// The input.
    pub(crate) name: String,
    /// Bytes of all coordinates of a cell before packing.
    pub(crate) raw_per_cell: usize,
    /// The rates of each of [`PIPELINES`].
    pub(crate) packed: Vec<Rates>,
}

/// The result of a pipeline.
#[derive(Debug)]
pub(crate) struct Rates {
    /// Stored bytes per raw byte.
    pub(crate) share: f64,
    /// Raw bytes encoded per second, including the choice of `auto`.
    pub(crate) encode_rate: f64,
    /// Raw bytes decoded per second.
    pub(crate) decode_rate: f64,
}

/// The coordinates of a dimension in the stored order.
struct Stored {
    element: Element,
    values: Vec<u8>,
}

/// A stored block: its pipeline, its bytes, its raw length.
type Block = (Pipeline, Vec<u8>, usize);

/// Packs the coordinates of the sparse `input` with every pipeline.
///
/// # Errors
/// Input if a pipeline returns other values; those of the engine.
pub(crate) fn pack(input: &Input, effort: Effort) -> Result<Coords> {
    let field = coordinates(input).ok_or_else(|| Error::input("coordinates of a dense input"))?;
    let raw = input.dims().iter().map(|column| column.view().values().len()).sum::<usize>() as f64;
    let (mut shares, mut columns) = (Vec::new(), Vec::new());
    for name in PIPELINES {
        let (place, sizes) = write(input, &field, name, effort)?;
        shares.push(sizes.fields.iter().take(input.dims().len()).sum::<u64>() as f64 / raw);
        if columns.is_empty() {
            let cells = place.open()?.read(None, None, ReadOrder::Global, &Call::default())?.0;
            let stored = |column: &Column| Stored {
                element: column.datatype().element(),
                values: column.view().values().to_vec(),
            };
            columns = cells.dims.iter().map(stored).collect();
        }
    }
    let mut times = vec![(Vec::new(), Vec::new()); PIPELINES.len()];
    for repeat in 0..effort.repeats {
        for at in turns(PIPELINES.len(), repeat) {
            let Some((name, (encode, decode))) = PIPELINES.get(at).zip(times.get_mut(at)) else { continue };
            let taken = both_ways(&columns, name)?;
            encode.push(taken.0);
            decode.push(taken.1);
        }
    }
    let rates = |(share, (encode, decode))| Rates {
        share,
        encode_rate: raw / median(encode),
        decode_rate: raw / median(decode),
    };
    Ok(Coords {
        name: input.name.clone(),
        raw_per_cell: raw as usize / input.cells().max(1),
        packed: shares.into_iter().zip(times).map(rates).collect(),
    })
}

/// Seconds of packing all columns and of unpacking them; the unpacked values are compared.
fn both_ways(columns: &[Stored], name: &str) -> Result<(f64, f64)> {
    let (mut encode, mut decode) = (0.0, 0.0);
    let mut out = vec![0; default_cells(true) as usize * 8];
    for column in columns {
        let start = Instant::now();
        let blocks = encoded(column, name)?;
        encode += start.elapsed().as_secs_f64();
        let start = Instant::now();
        for (pipeline, stored, len) in &blocks {
            pipeline.decode_into(stored, column.element, out.get_mut(..*len).unwrap_or_default())?;
            black_box(&out);
        }
        decode += start.elapsed().as_secs_f64();
        let mut back = Vec::with_capacity(column.values.len());
        for (pipeline, stored, len) in &blocks {
            back.extend(pipeline.decode(stored, column.element, *len)?);
        }
        if back != column.values {
            return Err(Error::input(format!("{name} gives back other coordinates")));
        }
    }
    Ok((encode, decode))
}

/// All blocks of a column. `auto` chooses from the first, the middle and the last block of every few tiles.
fn encoded(column: &Stored, name: &str) -> Result<Vec<Block>> {
    let width = usize::from(column.element.width).max(1);
    let mut blocks = Vec::new();
    for tiles in column.values.chunks(CHOSEN_TILES * TILE_CELLS * width) {
        let cut = |tile| <[u8]>::chunks(tile, default_cells(true) as usize * width);
        let raw: Vec<&[u8]> = tiles.chunks(TILE_CELLS * width).flat_map(cut).collect();
        let pipeline = if name == "auto" {
            let sample = [raw.first(), raw.get(raw.len().saturating_sub(1) / 2), raw.last()];
            choose(&sample.map(|block| block.copied().unwrap_or_default()), column.element, codec::Effort::Full)
        } else {
            Pipeline::parse(name)?
        };
        for block in raw {
            let mut stored = Vec::new();
            pipeline.encode_into(block, column.element, &mut stored)?;
            blocks.push((pipeline.clone(), stored, block.len()));
        }
    }
    Ok(blocks)
}
