//! The index of a fragment, section by section, unpacked and packed: bytes, and the time that a reader would need to
//! unpack it before it finds anything.

use super::input::Input;
use super::measure::{Effort, median};
use super::stored::Place;
use super::table::default_cells;
use gridstone::base::{Element, Error, Result};
use gridstone::codec::Pipeline;
use std::hint::black_box;
use std::time::Instant;

/// The packings compared; sections are words of 4 and 8 bytes.
pub(crate) const PACKINGS: [&str; 5] = ["lz4", "zstd:1", "zstd:3", "shuffle,zstd:1", "delta,for"];

/// The index of an input.
#[derive(Debug)]
pub(crate) struct Sections {
    /// The input.
    pub(crate) name: String,
    /// Bytes of the fragment.
    pub(crate) total: u64,
    /// Each kind of section with its bytes.
    pub(crate) kinds: Vec<(String, u64)>,
    /// The bytes of each of [`PACKINGS`], and the seconds to unpack all of it.
    pub(crate) packed: Vec<(u64, f64)>,
}

/// Writes `input` as `auto` would and measures its index.
///
/// # Errors
/// Input if a packing returns other bytes; those of the engine.
pub(crate) fn look(input: &Input, effort: Effort) -> Result<Sections> {
    let place = Place::new("sections", default_cells(input.is_sparse()), effort.threads)?;
    place.write(input, &input.schema(&|_| true, &|_| "auto".to_owned())?)?;
    let (total, sections) = place.sections()?;
    let mut kinds: Vec<(String, u64)> = Vec::new();
    for (kind, bytes) in &sections {
        match kinds.iter_mut().find(|(known, _)| known == kind) {
            Some((_, sum)) => *sum += bytes.len() as u64,
            None => kinds.push((kind.clone(), bytes.len() as u64)),
        }
    }
    let raw: Vec<&[u8]> = sections.iter().map(|(_, bytes)| bytes.as_slice()).collect();
    let packed = PACKINGS.iter().map(|packing| pack(&raw, packing, effort)).collect::<Result<_>>()?;
    Ok(Sections { name: input.name.clone(), total, kinds, packed })
}

fn pack(raw: &[&[u8]], packing: &str, effort: Effort) -> Result<(u64, f64)> {
    let pipeline = Pipeline::parse(packing)?;
    let element =
        |bytes: &[u8]| if bytes.len().is_multiple_of(8) { Element::unsigned(8) } else { Element::unsigned(4) };
    let stored = raw.iter().map(|bytes| pipeline.encode(bytes, element(bytes))).collect::<Result<Vec<_>>>()?;
    let mut seconds = Vec::new();
    for _ in 0..effort.repeats {
        let start = Instant::now();
        for (bytes, stored) in raw.iter().zip(&stored) {
            black_box(pipeline.decode(stored, element(bytes), bytes.len())?);
        }
        seconds.push(start.elapsed().as_secs_f64());
    }
    for (bytes, stored) in raw.iter().zip(&stored) {
        if pipeline.decode(stored, element(bytes), bytes.len())?.as_slice() != *bytes {
            return Err(Error::input(format!("{packing} gives back other bytes of an index")));
        }
    }
    Ok((stored.iter().map(|stored| stored.len() as u64).sum(), median(seconds)))
}
