//! The bytes of an external fragment as one source: its own, then those of each foreign source.
//!
//! Ranges of pages count in one space of 64-bit offsets, in which every source has a place. So whoever fetches blocks knows no
//! files. A source is opened, and compared with its recorded state, when its first byte is wanted.
//!
//! An object under a prefix is opened for each read, compared, and closed: there may be millions. Its state is in its pages, and
//! remembered from the moment that a page's range is asked for.

use super::table::{ChunkKeys, ForeignPage, ForeignSource, OWN_SOURCE};
use crate::base::{Begun, ByteRange, ByteSource, Error, ForeignObject, Pending, Ready, Result, Sources};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// Offsets between two sources that are nobody's, so that nobody reads the end of one and the start of the next together.
const BETWEEN: u64 = 1 << 32;

/// The sources of an external fragment, side by side.
#[derive(Debug)]
pub(super) struct ForeignBytes {
    own: Arc<dyn ByteSource>,
    files: Arc<dyn Sources>,
    places: Vec<Place>,
    len: u64,
}

#[derive(Debug)]
struct Place {
    source: ForeignSource,
    /// Where the source begins in the space of all.
    base: u64,
    /// How much of the space it has.
    span: u64,
    opened: OnceLock<Arc<dyn ByteSource>>,
    /// The objects under a prefix whose ranges were asked for.
    objects: RwLock<HashMap<u64, ObjectState>>,
}

/// The state of an object under a prefix when it was attached.
#[derive(Debug, Clone, Copy)]
struct ObjectState {
    /// When it was last changed, where known.
    time_us: Option<i64>,
    /// The low 32 bits of its size, where known.
    size: Option<u32>,
}

impl Place {
    /// The number of the object that holds an offset under the prefix, and the offset in it.
    fn object_at(&self, keys: &ChunkKeys, offset: u64) -> (u64, u64) {
        (offset >> keys.shift, offset & ((1 << keys.shift) - 1))
    }

    /// Remembers the state of the object that holds a page.
    fn remember(&self, page: &ForeignPage) {
        let Some(keys) = &self.source.keys else { return };
        let (number, _) = self.object_at(keys, page.offset);
        if !self.objects.read().unwrap_or_else(PoisonError::into_inner).contains_key(&number) {
            let state = ObjectState { time_us: (page.time_us != 0).then_some(page.time_us), size: page.object_size };
            self.objects.write().unwrap_or_else(PoisonError::into_inner).insert(number, state);
        }
    }

    fn state_of(&self, number: u64) -> Result<ObjectState> {
        let states = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        states.get(&number).copied().ok_or_else(|| Error::corruption("bytes are wanted of an object that has no page"))
    }
}

impl ForeignBytes {
    /// The sources of a fragment whose own bytes are `own`.
    ///
    /// # Errors
    /// Corruption: more bytes than 64 bits count.
    pub(super) fn new(own: Arc<dyn ByteSource>, files: Arc<dyn Sources>, sources: &[ForeignSource]) -> Result<Self> {
        let too_many = || Error::corruption("foreign sources of more than 2^64 bytes");
        let mut base = own.len().checked_add(BETWEEN).ok_or_else(too_many)?;
        let mut places = Vec::with_capacity(sources.len());
        for source in sources {
            let span = match &source.keys {
                Some(keys) => keys.span(),
                None => Some(source.object.size.unwrap_or(1 << 48)),
            };
            let end = span.and_then(|span| base.checked_add(span));
            let (span, end) = span.zip(end).ok_or_else(too_many)?;
            places.push(Place {
                source: source.clone(),
                base,
                span,
                opened: OnceLock::new(),
                objects: RwLock::default(),
            });
            base = end.checked_add(BETWEEN).ok_or_else(too_many)?;
        }
        Ok(Self { own, files, places, len: base })
    }

    /// Where a page lies in the space of all sources; a page of this fragment counts from `own_base`.
    ///
    /// # Errors
    /// Corruption: it does not lie in its source.
    pub(super) fn range_of(&self, page: &ForeignPage, own_base: u64) -> Result<ByteRange> {
        let outside = || Error::corruption("a page lies outside of its source");
        let (base, span) = if page.source == OWN_SOURCE {
            (own_base, self.own.len().saturating_sub(own_base))
        } else {
            self.places.get(page.source as usize).map(|place| (place.base, place.span)).ok_or_else(outside)?
        };
        if let Some(place) = self.places.get(page.source as usize) {
            place.remember(page);
        }
        let end = page.offset.checked_add(page.length).filter(|end| *end <= span);
        end.map(|_| ByteRange::new(base + page.offset, page.length)).ok_or_else(outside)
    }

    /// The place that holds an offset; `None`: the fragment's own bytes.
    fn place_of(&self, offset: u64) -> Option<usize> {
        self.places.partition_point(|place| place.base <= offset).checked_sub(1)
    }

    fn at(&self, place: Option<usize>) -> Option<&Place> {
        place.and_then(|number| self.places.get(number))
    }

    /// The file of a place that is one, opened.
    fn file<'a>(&'a self, place: &'a Place) -> Result<&'a Arc<dyn ByteSource>> {
        if let Some(opened) = place.opened.get() {
            return Ok(opened);
        }
        let opened = self.files.open(&place.source.object)?;
        Ok(place.opened.get_or_init(|| opened))
    }

    /// The source of one place, where the ranges are those of that source.
    fn one<'a>(&'a self, place: Option<usize>, ranges: &[ByteRange]) -> Result<(&'a dyn ByteSource, Vec<ByteRange>)> {
        match self.at(place) {
            None => Ok((self.own.as_ref(), ranges.to_vec())),
            Some(place) => {
                let inside = ranges.iter().map(|r| ByteRange::new(r.offset - place.base, r.len)).collect();
                Ok((self.file(place)?.as_ref(), inside))
            }
        }
    }

    /// Reads ranges of objects under a prefix; those of one object that follow each other together.
    fn read_objects(&self, place: &Place, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
        let Some(keys) = &place.source.keys else { return Err(Error::corruption("a prefix without keys")) };
        let object = |range: &ByteRange| place.object_at(keys, range.offset - place.base);
        let mut found = Vec::with_capacity(ranges.len());
        for run in ranges.chunk_by(|a, b| object(a).0 == object(b).0) {
            let Some(first) = run.first() else { continue };
            let opened = self.open_object(place, keys, object(first).0)?;
            let inside: Vec<ByteRange> = run.iter().map(|range| ByteRange::new(object(range).1, range.len)).collect();
            found.extend(opened.submit(&inside)?.wait()?);
        }
        Ok(found)
    }

    /// An object under a prefix, as it was when it was attached.
    fn open_object(&self, place: &Place, keys: &ChunkKeys, number: u64) -> Result<Arc<dyn ByteSource>> {
        let key = keys.key(number).ok_or_else(|| Error::corruption("a chunk that has no key"))?;
        let state = place.state_of(number)?;
        let uri = format!("{}/{key}", place.source.object.uri);
        let object = ForeignObject { uri, size: None, time_us: state.time_us, etag: None };
        let opened = self.files.open_under(&place.source.object, &object)?;
        match state.size.filter(|size| *size != opened.len() as u32) {
            None => Ok(opened),
            Some(_) => Err(Error::source_changed(format!(
                "the source {} has changed since it was attached: its size was another one than {} bytes; attach it again if the \
                 change is meant",
                object.uri,
                opened.len()
            ))),
        }
    }

    fn submit_run(&self, place: Option<usize>, ranges: &[ByteRange]) -> Result<Box<dyn Pending + '_>> {
        if let Some(prefix) = self.at(place).filter(|place| place.source.keys.is_some()) {
            return Ok(Box::new(Ready(self.read_objects(prefix, ranges)?)));
        }
        let (source, inside) = self.one(place, ranges)?;
        source.submit(&inside)
    }

    /// What was opened so far.
    fn opened(&self) -> impl Iterator<Item = &Arc<dyn ByteSource>> {
        self.places.iter().filter_map(|place| place.opened.get())
    }
}

/// Runs of ranges that lie in one source each; an empty range lies anywhere.
fn runs<'r>(bytes: &ForeignBytes, ranges: &'r [ByteRange]) -> impl Iterator<Item = (Option<usize>, &'r [ByteRange])> {
    let of = |range: &ByteRange| bytes.place_of(range.offset);
    let same = move |a: &ByteRange, b: &ByteRange| of(a) == of(b);
    ranges.chunk_by(same).map(move |run| (run.first().and_then(|first| bytes.place_of(first.offset)), run))
}

impl ByteSource for ForeignBytes {
    fn len(&self) -> u64 {
        self.len
    }

    fn submit(&self, ranges: &[ByteRange]) -> Result<Box<dyn Pending + '_>> {
        let parts = runs(self, ranges).map(|(place, run)| self.submit_run(place, run)).collect::<Result<_>>()?;
        Ok(Box::new(Parts(parts)))
    }

    fn is_cold(&self) -> bool {
        self.opened().any(|source| source.is_cold())
    }

    fn prefetch(&self, ranges: &[ByteRange]) {
        for (place, run) in runs(self, ranges) {
            // What cannot be opened is reported by the read itself.
            if self.at(place).is_none_or(|place| place.opened.get().is_some())
                && let Ok((source, inside)) = self.one(place, run)
            {
                source.prefetch(&inside);
            }
        }
    }

    fn remote_gap(&self) -> Option<u64> {
        self.opened().find_map(|source| source.remote_gap())
    }

    fn begin(&self, ranges: &[ByteRange]) -> Option<Arc<dyn Begun>> {
        let begun = runs(self, ranges).filter_map(|(place, run)| {
            let opened = self.at(place).is_none_or(|place| place.opened.get().is_some());
            let (source, inside) = opened.then(|| self.one(place, run).ok()).flatten()?;
            source.begin(&inside)
        });
        let begun: Vec<Arc<dyn Begun>> = begun.collect();
        if begun.is_empty() { None } else { Some(Arc::new(Several { _begun: begun })) }
    }
}

/// Reads of several sources, in the order of their ranges.
struct Parts<'a>(Vec<Box<dyn Pending + 'a>>);

impl Pending for Parts<'_> {
    fn wait(self: Box<Self>) -> Result<Vec<Bytes>> {
        let mut all = Vec::new();
        for part in self.0 {
            all.extend(part.wait()?);
        }
        Ok(all)
    }
}

/// Reads begun in several sources.
#[derive(Debug)]
struct Several {
    _begun: Vec<Arc<dyn Begun>>,
}

impl Begun for Several {}
