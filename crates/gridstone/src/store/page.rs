//! A manifest page: up to 4,096 fragment descriptions of one array, immutable.
//!
//! ```text
//! magic      8 bytes "GSPAGE\0\0"
//! version    u32, 1; 0 of GS0
//! dimensions u32
//! sets       u32 count, then per set: u32 count and the attributes' numbers, u32 each, ascending
//! fragments  u32 count, then per fragment, by ascending order:
//!              id 16 bytes · kind u8 · file u8 (0 data, 1 log, 2 none) · reserved u16 · schema u32 · set u32 · order.index u32
//!              · order.version u64 · cells u64 · file id 16 bytes (log: version u64, reserved u64; none: reserved) · offset u64 · len u64
//!              · per dimension lo u64, hi u64 · of a mask the id of its fragment, 16 bytes
//! xxh3       u64 over all before
//! ```
//! In version 1 each fragment has its length and flags before it, and optional parts behind it ([`super::page_parts`]).
//! Attribute lists are stored once each, since the fragments of an array mostly have the same.

use super::page_parts::{self, Entry};
use crate::base::{ByteReader, ByteWriter, Error, FileRef, Id, Result, id_named_twice, limits, newer, xxh3};
use crate::fragment::{Description, FragmentKind, FragmentOrder, Location, ValueBounds};
use crate::schema::{KeyRange, Subarray};
use std::collections::HashMap;
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"GSPAGE\0\0";
/// The version that this release writes.
pub(super) const VERSION: u32 = 1;
/// The version that GS0 wrote.
pub(super) const VERSION_GS0: u32 = 0;
const KINDS: [FragmentKind; 5] =
    [FragmentKind::Dense, FragmentKind::Sparse, FragmentKind::Tombstones, FragmentKind::Deletion, FragmentKind::Mask];
/// Bytes of a fragment without its box.
const FRAGMENT_LEN: usize = 80;

/// The description of a page in a manifest root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageInfo {
    /// Its object's id.
    pub(super) id: Id,
    /// The checksum at its end.
    pub(super) xxh3: u64,
    /// How many fragments it describes, at least one.
    pub(super) count: u32,
    /// The smallest box around all of them.
    pub(super) bounds: Subarray,
    /// The least order in it.
    pub(super) first: FragmentOrder,
    /// The greatest order in it.
    pub(super) last: FragmentOrder,
    /// Whether folds never rewrite it.
    pub(super) full: bool,
}

impl PageInfo {
    /// The description of the page `id` of `fragments` (in ascending order) with this checksum.
    pub(super) fn of(id: Id, xxh3: u64, fragments: &[Arc<Description>], full: bool) -> Result<Self> {
        let (Some(first), Some(last)) = (fragments.first(), fragments.last()) else {
            return Err(Error::corruption(format!("manifest page {id} describes no fragment")));
        };
        let bounds = fragments.iter().fold(first.bounds.clone(), |all, f| all.union(&f.bounds));
        let count = u32::try_from(fragments.len()).unwrap_or(u32::MAX);
        Ok(Self { id, xxh3, count, bounds, first: first.order, last: last.order, full })
    }
}

/// The bytes of a page of `fragments`, sorted by order, and its checksum; in this version of pages.
pub(super) fn encode(fragments: &[Arc<Description>], version: u32) -> Result<(Vec<u8>, u64)> {
    let mut numbers: HashMap<&[u32], u32> = HashMap::new();
    let mut sets: Vec<&[u32]> = Vec::new();
    for fragment in fragments {
        numbers.entry(&fragment.attrs).or_insert_with(|| {
            sets.push(&fragment.attrs);
            sets.len() as u32 - 1
        });
    }
    let mut w = ByteWriter::new();
    w.raw(MAGIC);
    w.u32(version);
    w.u32(fragments.first().map_or(0, |f| f.bounds.ndim() as u32));
    w.u32(sets.len() as u32);
    for set in sets {
        w.u32(set.len() as u32);
        set.iter().for_each(|attr| w.u32(*attr));
    }
    w.u32(fragments.len() as u32);
    for fragment in fragments {
        let set = numbers.get(fragment.attrs.as_slice()).copied().unwrap_or(0);
        match version {
            VERSION_GS0 => write_fragment(&mut w, fragment, set),
            _ => {
                let mut body = ByteWriter::new();
                write_fragment(&mut body, fragment, set);
                page_parts::write_entry(&mut w, fragment, body.as_slice())?;
            }
        }
    }
    let sum = xxh3(w.as_slice());
    w.u64(sum);
    Ok((w.into_bytes(), sum))
}

fn write_fragment(w: &mut ByteWriter, f: &Description, set: u32) {
    w.raw(&f.id.0);
    w.u8(KINDS.iter().position(|k| *k == f.kind).unwrap_or(0) as u8);
    w.u8(match f.location.file {
        FileRef::Data(_) | FileRef::OnBase(..) => 0,
        FileRef::Log(_) => 1,
        FileRef::Nowhere => 2,
    });
    w.u16(0);
    w.u32(f.schema);
    w.u32(set);
    w.u32(f.order.index);
    w.u64(f.order.version);
    w.u64(f.cells);
    match f.location.file {
        FileRef::Data(id) | FileRef::OnBase(_, id) => w.raw(&id.0),
        FileRef::Log(version) => {
            w.u64(version);
            w.u64(0);
        }
        FileRef::Nowhere => w.raw(&[0; 16]),
    }
    w.u64(f.location.offset);
    w.u64(f.location.len);
    for range in f.bounds.ranges() {
        w.u64(range.lo);
        w.u64(range.hi);
    }
    f.over.iter().for_each(|over| w.raw(&over.0));
}

/// The fragments of the page in `bytes`, which must be the one that `info` describes, else a Corruption error.
/// Unsupported if it is that page, and holds unknown values.
pub(super) fn decode(bytes: &[u8], info: &PageInfo) -> Result<Vec<Arc<Description>>> {
    let named = |e: Error| e.context(format!("manifest page {}", info.id));
    let fragments = read_page(bytes, info).map_err(named)?;
    if PageInfo::of(info.id, info.xxh3, &fragments, info.full)? != *info {
        return Err(named(Error::corruption("its fragments are not those that the manifest root tells of")));
    }
    Ok(fragments)
}

/// The checksum of `bytes`, if they are an intact page.
pub(super) fn checksum(bytes: &[u8]) -> Option<u64> {
    let (content, sum) = bytes.split_last_chunk::<8>()?;
    let sum = u64::from_le_bytes(*sum);
    (content.starts_with(MAGIC) && xxh3(content) == sum).then_some(sum)
}

/// The fragments of a page whose checksum and number of dimensions match `info`.
pub(super) fn read_page(bytes: &[u8], info: &PageInfo) -> Result<Vec<Arc<Description>>> {
    let (content, sum) = bytes.split_last_chunk::<8>().ok_or_else(|| Error::corruption("it is cut"))?;
    let mut r = ByteReader::new(content, "a manifest page");
    if r.take(MAGIC.len())? != MAGIC {
        return Err(Error::corruption("it does not start with the magic of a page"));
    }
    if u64::from_le_bytes(*sum) != info.xxh3 || xxh3(content) != info.xxh3 {
        return Err(Error::corruption("its bytes do not match their checksum"));
    }
    let version = r.u32()?;
    if version > VERSION {
        return Err(newer("it", format!("a page of version {version}")));
    }
    let dims = r.u32()? as usize;
    if dims != info.bounds.ndim() {
        return Err(Error::corruption(format!("it is of {dims} dimensions, its box of {}", info.bounds.ndim())));
    }
    let sets = (0..r.count(4)?).map(|_| read_set(&mut r)).collect::<Result<Vec<_>>>()?;
    let count = r.count(FRAGMENT_LEN + 16 * dims + if version == VERSION_GS0 { 0 } else { 8 })?;
    if count > limits::PAGE_FRAGMENTS_MAX {
        return Err(Error::corruption(format!("it describes {count} fragments")));
    }
    let read = |_| match version {
        VERSION_GS0 => read_fragment(&mut r, dims, &sets).map(Arc::new),
        _ => read_entry(&mut r, dims, &sets).map(Arc::new),
    };
    let fragments = (0..count).map(read).collect::<Result<Vec<_>>>()?;
    r.expect_end()?;
    if !fragments.is_sorted_by_key(|f| f.order) {
        return Err(Error::corruption("its fragments are out of order"));
    }
    if let Some(id) = id_named_twice(fragments.iter().map(|f| f.id)) {
        return Err(Error::corruption(format!("it describes the fragment {id} twice")));
    }
    Ok(fragments)
}

fn read_set(r: &mut ByteReader<'_>) -> Result<Vec<u32>> {
    let set = (0..r.count(4)?).map(|_| r.u32()).collect::<Result<Vec<_>>>()?;
    if !set.is_sorted_by(|a, b| a < b) || set.len() > limits::ATTRIBUTES_MAX {
        return Err(Error::corruption("a list of attributes is out of order"));
    }
    Ok(set)
}

fn read_entry(r: &mut ByteReader<'_>, dims: usize, sets: &[Vec<u32>]) -> Result<Description> {
    let (flags, mut entry) = page_parts::open_entry(r)?;
    let mut read = read_fragment(&mut entry, dims, sets)?;
    let Entry { base, moved, stats, extra } = Entry::read(flags, &mut entry, read.id)?;
    read.location.file = match (base, read.location.file) {
        (0, file) => file,
        (base, FileRef::Data(id)) => FileRef::OnBase(base, id),
        _ => return Err(Error::corruption(format!("fragment {} has a base and no data file", read.id))),
    };
    (read.moved, read.stats, read.extra) = (moved, stats, extra);
    possible(read)
}

fn read_fragment(r: &mut ByteReader<'_>, dims: usize, sets: &[Vec<u32>]) -> Result<Description> {
    let wrong = |what: &str| Error::corruption(format!("{what} of a fragment is impossible"));
    let id = r.id()?;
    let (code, tag) = (r.u8()?, r.u8()?);
    let unknown = |what: &str, code: u8| newer(format!("fragment {id}"), format!("{what} {code}"));
    let kind = KINDS.get(usize::from(code)).copied().ok_or_else(|| unknown("the kind", code))?;
    r.u16()?;
    let schema = r.u32()?;
    let attrs = sets.get(r.u32()? as usize).cloned().ok_or_else(|| wrong("the list of attributes"))?;
    let index = r.u32()?;
    let order = FragmentOrder { version: r.u64()?, index };
    let cells = r.u64()?;
    let file = match tag {
        0 => FileRef::Data(r.id()?),
        1 => {
            let version = r.u64()?;
            r.u64()?;
            FileRef::Log(version)
        }
        2 => {
            r.id()?;
            FileRef::Nowhere
        }
        other => return Err(unknown("the file", other)),
    };
    let location = Location { file, offset: r.u64()?, len: r.u64()? };
    if location.offset.checked_add(location.len).is_none() {
        return Err(wrong("the place"));
    }
    let mut range = |_| {
        let (lo, hi) = (r.u64()?, r.u64()?);
        if lo <= hi { Ok(KeyRange::new(lo, hi)) } else { Err(wrong("the box")) }
    };
    let bounds = Subarray::new((0..dims).map(&mut range).collect::<Result<_>>()?);
    let over = if kind == FragmentKind::Mask { Some(r.id()?) } else { None };
    let (stats, moved, extra) = (ValueBounds::default(), Vec::new(), Vec::new());
    let description =
        Description { id, kind, order, schema, bounds, cells, attrs, location, over, stats, moved, extra };
    possible(description)
}

/// The description, unless its parts contradict each other.
fn possible(description: Description) -> Result<Description> {
    match description.contradiction() {
        None => Ok(description),
        Some(why) => Err(Error::corruption(format!("fragment {} is impossible: {why}", description.id))),
    }
}
