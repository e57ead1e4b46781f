//! The data behind the weights of `auto`, at the default block sizes. For every column in its stored order, and each
//! pipeline that `auto` may choose, it has the stored bytes and the time per value to encode and to decode.

use super::input::{Input, suits};
use super::measure::{Effort, median, turns};
use super::stored::Place;
use super::table::default_cells;
use gridstone::base::{Element, Error, Result};
use gridstone::codec::Pipeline;
use gridstone::engine::{Call, Column, ReadOrder};
use gridstone::schema::Datatype;
use std::hint::black_box;
use std::time::Instant;

/// The pipelines compared.
pub(crate) const PIPELINES: [&str; 9] =
    ["for", "delta,for", "lz4", "shuffle,zstd:1", "delta,shuffle,zstd:1", "zstd:1", "zstd:3", "pco:1", "pco:4"];

/// Cells of the data tiles of sparse inputs: a block ends at the end of each.
const TILE_CELLS: usize = 10_000;
/// The least duration of a sample: passes over a column are repeated until they take as long, so that a short column
/// can be timed.
const PASS_SECONDS: f64 = 2e-3;

/// A column of an input.
#[derive(Debug)]
pub(crate) struct Rated {
    /// The input and the column.
    pub(crate) name: String,
    /// The type of its values.
    pub(crate) datatype: String,
    /// The rates of each of [`PIPELINES`]; `None` if it does not accept the type.
    pub(crate) rates: Vec<Option<Rate>>,
}

/// The costs of a value.
#[derive(Debug)]
pub(crate) struct Rate {
    /// Stored bytes.
    pub(crate) bytes: f64,
    /// Seconds.
    pub(crate) encode: f64,
    /// Seconds.
    pub(crate) decode: f64,
}

/// The stored blocks of a column, and their raw lengths.
type Blocks = Vec<(Vec<u8>, usize)>;

/// Rates every column of `input`.
///
/// # Errors
/// Input if a pipeline returns other values; those of the engine.
pub(crate) fn rate(input: &Input, effort: Effort) -> Result<Vec<Rated>> {
    let cells = default_cells(input.is_sparse());
    let place = Place::new("rates", cells, effort.threads)?;
    place.write(input, &input.schema(&|_| true, &|_| "none".to_owned())?)?;
    let read = place.open()?.read(None, None, ReadOrder::Global, &Call::default())?.0;
    let names = (0..read.dims.len()).map(|d| format!("dimension {d}")).chain(input.attrs().iter().map(|a| a.0.clone()));
    let columns = names.zip(read.dims.iter().chain(&read.attrs)).filter(|(_, c)| c.datatype().width().is_some());
    columns.map(|(name, column)| rated(format!("{} {name}", input.name), column, input.is_sparse(), effort)).collect()
}

fn rated(name: String, column: &Column, sparse: bool, effort: Effort) -> Result<Rated> {
    let (datatype, values): (Datatype, &[u8]) = (column.datatype(), column.view().values());
    let raw = blocks(values, usize::from(datatype.element().width).max(1), sparse);
    let mut samples = vec![(0usize, Vec::new(), Vec::new()); PIPELINES.len()];
    for repeat in 0..effort.repeats {
        for at in turns(PIPELINES.len(), repeat) {
            let Some((pipeline, sample)) = PIPELINES.get(at).zip(samples.get_mut(at)) else { continue };
            if suits(pipeline, datatype) {
                let (bytes, encode, decode) = both_ways(&raw, datatype.element(), pipeline)?;
                sample.0 = bytes;
                sample.1.push(encode);
                sample.2.push(decode);
            }
        }
    }
    let count = column.len().max(1) as f64;
    let rate = |(bytes, encode, decode): (usize, Vec<f64>, Vec<f64>)| {
        (!encode.is_empty()).then(|| Rate {
            bytes: bytes as f64 / count,
            encode: median(encode) / count,
            decode: median(decode) / count,
        })
    };
    Ok(Rated { name, datatype: datatype.to_string(), rates: samples.into_iter().map(rate).collect() })
}

/// A column cut as the engine cuts it; a dense column counts as one tile.
fn blocks(values: &[u8], width: usize, sparse: bool) -> Vec<&[u8]> {
    let cut = default_cells(sparse) as usize * width;
    let tile = if sparse { TILE_CELLS * width } else { values.len().max(1) };
    values.chunks(tile).flat_map(|tile| tile.chunks(cut)).collect()
}

/// Stored bytes, seconds of a pass of encoding, and of one of decoding.
fn both_ways(raw: &[&[u8]], element: Element, name: &str) -> Result<(usize, f64, f64)> {
    let pipeline = Pipeline::parse(name)?;
    let (mut stored, encode) = passes(|| {
        let encoded = raw.iter().map(|block| {
            let mut bytes = Vec::with_capacity(block.len());
            pipeline.encode_into(block, element, &mut bytes).map(|()| (bytes, block.len()))
        });
        encoded.collect::<Result<Blocks>>()
    })?;
    let mut out = vec![0; raw.iter().map(|block| block.len()).max().unwrap_or(0)];
    let ((), decode) = passes(|| {
        for (bytes, len) in &stored {
            pipeline.decode_into(bytes, element, out.get_mut(..*len).unwrap_or_default())?;
            black_box(&out);
        }
        Ok(())
    })?;
    for ((bytes, len), block) in stored.iter().zip(raw) {
        if pipeline.decode(bytes, element, *len)?.as_slice() != *block {
            return Err(Error::input(format!("{name} gives back other values")));
        }
    }
    Ok((stored.drain(..).map(|(bytes, _)| bytes.len()).sum(), encode, decode))
}

/// The result of a pass, and its seconds.
fn passes<T>(mut pass: impl FnMut() -> Result<T>) -> Result<(T, f64)> {
    let start = Instant::now();
    let mut count = 0.0;
    loop {
        let given = pass()?;
        count += 1.0;
        let taken = start.elapsed().as_secs_f64();
        if taken >= PASS_SECONDS {
            return Ok((given, taken / count));
        }
    }
}
