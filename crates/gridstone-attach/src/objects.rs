//! Chunks that are objects of their own, or several in one: their pages, and the keys of their source.

use super::{Entries, foreign, walked};
use gridstone::base::{Error, Result};
use gridstone::codec::foreign::ForeignPipeline;
use gridstone::engine;
use gridstone::fragment::external::{ChunkGrid, ChunkKeys, ForeignPage, ForeignSource};
use gridstone_foreign::model::{ForeignDataset, Layout, ObjectEntry};
use gridstone_foreign::zarr;
use std::path::Path;

/// Bits of a place in an object, at least: objects lie so far from each other that no read goes from one into the next.
const SHIFT_MIN: u32 = 33;
/// The most stored bytes of a chunk.
const STORED_BYTES_MAX: u64 = 1 << 31;
/// The room for the offsets of all sources of a fragment, and of what lies between them.
const SPAN_BITS: u32 = 62;

/// The pipeline of the codecs of a dataset.
///
/// # Errors
/// Unsupported: a filter that is not known, or not registered.
pub(super) fn pipeline_of(dataset: &ForeignDataset) -> Result<ForeignPipeline> {
    let Layout::Objects { codecs, .. } = &dataset.layout else { return Err(no_objects()) };
    let name = |codec: &gridstone_foreign::model::ObjectCodec| match &codec.parameters {
        None => Ok(codec.name.clone()),
        Some(parameters) => ForeignPipeline::user_filter(&codec.name, parameters),
    };
    let names: Vec<String> = codecs.iter().map(name).collect::<Result<_>>()?;
    let pipeline = match names.is_empty() {
        true => ForeignPipeline::none(),
        false => ForeignPipeline::parse(&names.join(","))?,
    };
    pipeline.check_available()?;
    Ok(pipeline)
}

fn no_objects() -> Error {
    Error::input("a dataset whose chunks are no objects is attached as one whose chunks are")
}

/// The chunks of a dataset as its folder lists them.
pub(super) struct Listed<'a> {
    template: &'a str,
    counts: &'a [u64],
    /// The tile and the object's number of each, with its place.
    chunks: Vec<(u64, u64, Place)>,
    largest: u64,
}

/// Where a chunk lies in its object, and the state of that.
struct Place {
    offset: u64,
    length: u64,
    object_size: u64,
    time_us: i64,
}

impl<'a> Listed<'a> {
    pub(super) fn of(grid: &ChunkGrid, folder: &str, dataset: &'a ForeignDataset, call: &engine::Call) -> Result<Self> {
        let Layout::Objects { template, objects, .. } = &dataset.layout else { return Err(no_objects()) };
        let mut listed = Self { template, counts: objects, chunks: Vec::new(), largest: 0 };
        // An array may have dimensions in front of those of the dataset.
        let outer = grid.counts().len().saturating_sub(dataset.shape.len());
        walked(folder, call, |check| {
            zarr::for_each_chunk(Path::new(folder), dataset, &mut |entry| {
                check(listed.chunks.len())?;
                listed.add(grid, outer, &entry);
                Ok(())
            })
        })?;
        if let Some((_, _, place)) = listed.chunks.iter().find(|(_, _, place)| place.length > STORED_BYTES_MAX) {
            let message = format!("a chunk of {} bytes; at most 2 GiB are read", place.length);
            let error = gridstone_foreign::Error::new(gridstone_foreign::ErrorKind::Unsupported, message);
            return Err(foreign(folder, &error));
        }
        Ok(listed)
    }

    fn add(&mut self, grid: &ChunkGrid, outer: usize, entry: &ObjectEntry) {
        let place = [vec![0; outer], entry.place.clone()].concat();
        let number = entry.object.iter().zip(self.counts).try_fold(0u64, |number, (place, count)| {
            number.checked_mul(*count).and_then(|number| number.checked_add(*place))
        });
        // Chunks beyond the shape are of no tile.
        if let (Some(tile), Some(number)) = (grid.number_of(&place), number) {
            let ObjectEntry { offset, length, object_size, time_us, .. } = *entry;
            self.largest = self.largest.max(object_size);
            self.chunks.push((tile, number, Place { offset, length, object_size, time_us }));
        }
    }

    /// The pages of the chunks, and the keys of their objects.
    ///
    /// # Errors
    /// Unsupported: their offsets pass 64 bits.
    pub(super) fn entries(self, source: u32, decoded: u32) -> Result<(Entries, ChunkKeys)> {
        let shift = SHIFT_MIN.max(u64::BITS - self.largest.leading_zeros() + 1);
        let page = |(tile, number, place): (u64, u64, Place)| {
            let start = 1u64.checked_shl(shift).and_then(|span| number.checked_mul(span)).ok_or_else(too_many)?;
            let page = ForeignPage {
                source,
                offset: start + place.offset,
                length: place.length,
                time_us: place.time_us,
                pipeline: 0,
                decoded,
                crc: None,
                object_size: Some(place.object_size as u32),
                is_fill: false,
            };
            Ok((tile, page, 0))
        };
        let entries = self.chunks.into_iter().map(page).collect::<Result<Entries>>()?;
        let keys = ChunkKeys { template: self.template.to_owned(), shift, counts: self.counts.to_vec() };
        Ok((entries, keys))
    }
}

fn too_many() -> Error {
    Error::unsupported(
        "so many objects, or such large ones, that their offsets pass 64 bits; attach fewer datasets at once",
    )
}

/// An Unsupported error if the offsets of all objects pass what a fragment counts.
pub(super) fn check_span(sources: &[ForeignSource]) -> Result<()> {
    let spans = sources.iter().filter_map(|source| source.keys.as_ref()).map(|keys| {
        let objects = keys.counts.iter().try_fold(1u64, |n, count| n.checked_mul(*count));
        objects.and_then(|objects| objects.checked_mul(1u64.checked_shl(keys.shift)?))
    });
    let all = spans.into_iter().try_fold(0u64, |all, span| all.checked_add(span?));
    if all.is_some_and(|all| all < 1 << SPAN_BITS) { Ok(()) } else { Err(too_many()) }
}
