//! Masks: which rows of sparse fragments a read leaves out.

use super::open::moved;
use crate::base::{ByteRange, CacheKey, Counters, Error, ErrorKind, Id, Result};
use crate::fragment::{Description, FragmentKind, Mask};
use crate::query::request::ReadContext;
use std::collections::HashMap;
use std::sync::Arc;

/// The masks over the fragments of a read, by fragment.
#[derive(Debug, Clone, Default)]
pub(in crate::query) struct Masks {
    over: HashMap<Id, Vec<Arc<Mask>>>,
}

impl Masks {
    /// Reads the masks among `fragments`, those that lie over one of them.
    pub(in crate::query) fn load(context: &ReadContext, fragments: &[Arc<Description>]) -> Result<Self> {
        let mut masks = Self::default();
        if fragments.iter().all(|d| d.kind != FragmentKind::Mask) {
            return Ok(masks);
        }
        let cells: HashMap<Id, u64> = fragments.iter().map(|d| (d.id, d.cells)).collect();
        for mask in fragments.iter().filter(|d| d.kind == FragmentKind::Mask) {
            context.cancel.check()?;
            if let Some((over, cells)) = mask.over.and_then(|over| Some((over, *cells.get(&over)?))) {
                masks.over.entry(over).or_default().push(open_mask(context, mask, (over, cells))?);
            }
        }
        Ok(masks)
    }

    /// Whether no row is masked.
    pub(in crate::query) fn is_empty(&self) -> bool {
        self.over.is_empty()
    }

    /// The masks over one fragment.
    pub(in crate::query) fn over(&self, fragment: Id) -> &[Arc<Mask>] {
        self.over.get(&fragment).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Whether one of `masks` deletes a row of a tile.
pub(in crate::query) fn is_masked(masks: &[Arc<Mask>], tile: u64, row: usize) -> bool {
    masks.iter().any(|mask| mask.has(tile, row))
}

/// Whether one of `masks` deletes one of `count` rows of a tile from `first` on.
pub(in crate::query) fn touch(masks: &[Arc<Mask>], tile: u64, first: usize, count: usize) -> bool {
    masks.iter().any(|mask| mask.touches(tile, first, count))
}

/// Clears the flags of the rows of a tile, from `first` on, that one of `masks` deletes.
pub(in crate::query) fn clear(masks: &[Arc<Mask>], tile: u64, first: usize, flags: &mut [bool]) {
    masks.iter().for_each(|mask| {
        mask.clear(tile, first, flags);
    });
}

/// A mask over a fragment (id and number of cells), from the cache or from its file.
pub(in crate::query) fn open_mask(
    context: &ReadContext,
    description: &Arc<Description>,
    of: (Id, u64),
) -> Result<Arc<Mask>> {
    let key = CacheKey { place: context.place, what: "mask", id: description.id, version: 0 };
    if let Some(mask) = context.cache.get(&key).and_then(|held| held.downcast::<Mask>().ok()) {
        return Ok(mask);
    }
    let mask = Arc::new(read_mask(context, description, of)?);
    context.cache.put(key, mask.clone(), mask.size_bytes());
    Ok(mask)
}

/// Reads a mask over a fragment (id and number of cells) from its file, past the cache.
pub fn read_mask(context: &ReadContext, description: &Description, (over, cells): (Id, u64)) -> Result<Mask> {
    let location = description.location;
    let named = |e: Error| e.context(format!("mask {}", description.id));
    let missing = |e: Error| match e.kind() {
        ErrorKind::NotFound => named(Error::corruption("its file is missing").with_source(e)),
        _ => named(e),
    };
    let (file, range) = (location.file, ByteRange::new(location.offset, location.len));
    let source = context.files.open(file).map(|source| (source, range)).or_else(|error| {
        let (file, range) = moved(context, description.id, error)?;
        Ok((context.files.open(file)?, range))
    });
    let (source, range) = source.map_err(missing)?;
    let bytes = source.read_one(range).map_err(named)?;
    Counters::add(&context.counters.requests, 1);
    Counters::add(&context.counters.bytes_fetched, bytes.len() as u64);
    Mask::decode(&bytes, over, description.cells, cells).map_err(named)
}
