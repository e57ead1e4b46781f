//! Which chunks an array has: its folders are listed, never asked for one chunk after the other, since most of a sparse array's are
//! missing.
//!
//! ```text
//! shard: chunk | chunk | … | index        index: per chunk u64 offset | u64 length, then u32 CRC32C; or in front
//! ```

use super::keys::{Level, levels};
use crate::error::{Error, Result};
use crate::model::{ForeignDataset, Layout, ObjectEntry, ShardIndex};
use crate::source::{ByteSource, FileSource};
use std::fs::{self, Metadata};
use std::io::ErrorKind as Os;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// An offset or length in the index of a shard that has no such chunk.
const MISSING: u64 = u64::MAX;
/// The most chunks of an object.
const INNER_MAX: u64 = 1 << 24;

/// Calls `each` with every chunk of a dataset of the folder `root`, in any order. Chunks that were never written are left out.
///
/// # Errors
/// Io, Damaged: a folder or an index cannot be read. Caller: that of `each`.
pub fn for_each_chunk(
    root: &Path,
    dataset: &ForeignDataset,
    each: &mut dyn FnMut(ObjectEntry) -> Result<()>,
) -> Result<()> {
    let Layout::Objects { folder, template, objects, chunk, shard, .. } = &dataset.layout else {
        return Err(Error::unsupported("its chunks are no objects"));
    };
    if chunk.len() != dataset.shape.len() || objects.len() != dataset.shape.len() {
        return Err(Error::damaged("its objects do not fit its shape"));
    }
    // A cell alone may be described as a list of one: its key has no number.
    let axes = template.matches('{').count();
    let levels = levels(template, axes)?;
    let mut found = |places: &[u64], path: &Path, metadata: &Metadata| {
        let object: Vec<u64> = if axes == 0 { vec![0; objects.len()] } else { places.to_vec() };
        // An object beyond the shape is left from a longer one.
        if object.len() != objects.len() || object.iter().zip(objects).any(|(place, count)| place >= count) {
            return Ok(());
        }
        let object = Found { path, object, size: metadata.len(), time_us: changed(path, metadata)? };
        match shard {
            Some(index) => object.inner(index, each),
            None => each(object.entry(object.object.clone(), 0, object.size)),
        }
    };
    list(&root.join(folder), &levels, &mut Vec::new(), &mut found)
}

type FoundObject<'a> = dyn FnMut(&[u64], &Path, &Metadata) -> Result<()> + 'a;

/// The objects in a folder whose names the levels make; `places` are the numbers in the names above.
fn list(folder: &Path, rest: &[Level], places: &mut Vec<u64>, found: &mut FoundObject<'_>) -> Result<()> {
    let Some((level, below)) = rest.split_first() else { return Ok(()) };
    if let Some(name) = level.literal() {
        return entry(&folder.join(name), below, places, found);
    }
    let failed = |e| Error::io(&format!("cannot list {}", folder.display()), e);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == Os::NotFound => return Ok(()),
        Err(e) => return Err(failed(e)),
    };
    for one in entries {
        let one = one.map_err(failed)?;
        let Some(numbers) = one.file_name().to_str().and_then(|name| level.numbers(name)) else {
            if level.is_of_other_separator(&one.file_name(), rest, one.path().is_dir()) {
                return Err(Error::damaged(format!(
                    "{} is named as a chunk of another separator than that of the metadata: dimension_separator is wrong or missing",
                    one.path().display()
                )));
            }
            continue;
        };
        let before = places.len();
        places.extend(numbers);
        entry(&one.path(), below, places, found)?;
        places.truncate(before);
    }
    Ok(())
}

fn entry(path: &Path, below: &[Level], places: &mut Vec<u64>, found: &mut FoundObject<'_>) -> Result<()> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == Os::NotFound && fs::symlink_metadata(path).is_err() => return Ok(()),
        Err(e) => return Err(Error::io(&format!("cannot look at {}", path.display()), e)),
    };
    match (below.is_empty(), metadata.is_dir()) {
        (false, true) => list(path, below, places, found),
        (true, false) if metadata.is_file() => found(places, path, &metadata),
        // A file in place of a folder holds no chunk with such a key.
        (false, false) => Ok(()),
        _ => Err(Error::damaged(format!("{} should be a chunk, and is no file", path.display()))),
    }
}

/// When a file was last changed, in microseconds since 1970, UTC.
fn changed(path: &Path, metadata: &Metadata) -> Result<i64> {
    let failed = |e| Error::io(&format!("cannot look at {}", path.display()), e);
    let micros = |of: std::time::Duration| i64::try_from(of.as_micros()).unwrap_or(i64::MAX);
    let moment = metadata.modified().map_err(failed)?;
    Ok(match moment.duration_since(UNIX_EPOCH) {
        Ok(since) => micros(since),
        Err(before) => -micros(before.duration()),
    })
}

/// An object that was listed.
struct Found<'a> {
    path: &'a Path,
    object: Vec<u64>,
    size: u64,
    time_us: i64,
}

impl Found<'_> {
    fn entry(&self, place: Vec<u64>, offset: u64, length: u64) -> ObjectEntry {
        ObjectEntry {
            place,
            object: self.object.clone(),
            offset,
            length,
            object_size: self.size,
            time_us: self.time_us,
        }
    }

    /// Gives the chunks that the index of a shard names.
    fn inner(&self, index: &ShardIndex, each: &mut dyn FnMut(ObjectEntry) -> Result<()>) -> Result<()> {
        let wrong = |what: &str| Error::damaged(format!("{}: {what}", self.path.display()));
        let count = index.counts.iter().try_fold(1u64, |n, count| n.checked_mul(*count)).filter(|n| *n <= INNER_MAX);
        let count = count.ok_or_else(|| wrong("an object of more than 2^24 chunks"))?;
        let bytes = count * 16 + if index.has_checksum { 4 } else { 0 };
        if bytes > self.size {
            return Err(wrong(&format!("it has {} bytes, its index of chunks should have {bytes}", self.size)));
        }
        let source = FileSource::open(self.path)?;
        let mut table = vec![0; bytes as usize];
        source.read_at(if index.at_start { 0 } else { self.size - bytes }, &mut table)?;
        let (words, checksum) = table.as_chunks::<8>();
        if index.has_checksum {
            let numbers = table.get(..table.len() - 4).unwrap_or_default();
            if crc32c::crc32c(numbers).to_le_bytes() != checksum {
                return Err(wrong("its index of chunks fails its checksum"));
            }
        }
        let word =
            |bytes: &[u8; 8]| if index.big_endian { u64::from_be_bytes(*bytes) } else { u64::from_le_bytes(*bytes) };
        for (number, pair) in (0u64..).zip(words.chunks_exact(2)) {
            let [offset, length] = pair else { continue };
            let (offset, length) = (word(offset), word(length));
            if (offset, length) == (MISSING, MISSING) {
                continue;
            }
            let end = offset.checked_add(length);
            // The index itself is no chunk.
            let inside = if index.at_start { bytes..=self.size } else { 0..=self.size - bytes };
            if !inside.contains(&offset) || !end.is_some_and(|end| inside.contains(&end)) {
                let place = format!("{length} bytes at {offset}");
                return Err(wrong(&format!(
                    "its index has a chunk of {place}, outside of the room for chunks, {inside:?}"
                )));
            }
            each(self.entry(self.place_of(number, index), offset, length))?;
        }
        Ok(())
    }

    /// The number along each axis of chunk `number` of the object.
    fn place_of(&self, number: u64, index: &ShardIndex) -> Vec<u64> {
        let mut rest = number;
        let along = index.counts.iter().zip(&self.object).rev();
        let mut place: Vec<u64> = along
            .map(|(count, object)| {
                let inner = rest % count.max(&1);
                rest /= count.max(&1);
                object.saturating_mul(*count).saturating_add(inner)
            })
            .collect();
        place.reverse();
        place
    }
}
