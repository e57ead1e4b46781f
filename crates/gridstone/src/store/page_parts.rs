//! The optional parts of a fragment's entry on a page of version 1.
//!
//! ```text
//! entry   u32 length of all of it · u32 flags · what version 0 has · a part per flag that is set, lowest bit first
//! part    u32 length · bytes
//! ```
//! | bit | part |
//! |---|---|
//! | 0 | the base that the data file lies on, u32, not 0 |
//! | 1 | by how many whole tiles a dense fragment was moved, i64 per dimension |
//! | 16 | [`ValueBounds`] |
//! | 17 | the `ext` of the fragment, a JSON object |
//! | 18 | of external fragments: bytes and number of their sources |
//!
//! A reader must know the parts of bits 0 to 15. Those of bits 16 to 31 may be passed over, and are kept with the fragment
//! ([`Part`]). To add a part, give it a bit here, write it in [`parts_of`] and take it in [`Entry::take_part`].

use super::extension::Ext;
use crate::base::{ByteReader, ByteWriter, Error, FileRef, Id, Result, limits, newer};
use crate::fragment::{Description, Part, ValueBounds};
use serde_json::{Map, Value};

/// The part that says on which base the file lies.
const BASE: u8 = 0;
/// The part that says by how many whole tiles the fragment was moved.
const MOVED: u8 = 1;
/// The first bit of a part that a reader need not know.
pub(super) const SKIPPABLE: u8 = 16;
/// The part that tells of values.
const STATS: u8 = 16;
/// The part that is the fragment's `ext`.
pub(super) const EXT: u8 = 17;

/// What the parts of an entry say of a fragment.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// The base of its file; 0 is the own store.
    pub(super) base: u32,
    /// By how many whole tiles it was moved; empty: by none.
    pub(super) moved: Vec<i64>,
    /// What is known of its values.
    pub(super) stats: ValueBounds,
    /// Parts that are kept as they are.
    pub(super) extra: Vec<Part>,
}

/// The parts of a fragment, by ascending bits.
fn parts_of(f: &Description) -> Vec<Part> {
    let mut parts = Vec::new();
    if let FileRef::OnBase(base, _) = f.location.file {
        parts.push(Part { bit: BASE, bytes: base.to_le_bytes().to_vec() });
    }
    if !f.moved.is_empty() {
        parts.push(Part { bit: MOVED, bytes: f.moved.iter().flat_map(|by| by.to_le_bytes()).collect() });
    }
    if !f.stats.as_bytes().is_empty() {
        parts.push(Part { bit: STATS, bytes: f.stats.as_bytes().to_vec() });
    }
    parts.extend(f.extra.iter().cloned());
    parts
}

/// Appends an entry of `body`, what version 0 has of the fragment.
pub(super) fn write_entry(w: &mut ByteWriter, f: &Description, body: &[u8]) -> Result<()> {
    let parts = parts_of(f);
    let flags = parts.iter().fold(0u32, |flags, part| flags | 1 << part.bit);
    let len = 8 + body.len() + parts.iter().map(|part| 4 + part.bytes.len()).sum::<usize>();
    let len = u32::try_from(len).ok().filter(|_| len <= limits::ENTRY_BYTES_MAX).ok_or_else(|| {
        Error::input(format!("what is to be said of fragment {} takes {len} bytes, too many for a page", f.id))
    })?;
    w.u32(len);
    w.u32(flags);
    w.raw(body);
    parts.iter().try_for_each(|part| w.sized(&part.bytes))
}

/// The flags of the next entry, and what follows them in it.
pub(super) fn open_entry<'a>(r: &mut ByteReader<'a>) -> Result<(u32, ByteReader<'a>)> {
    let len = r.u32()? as usize;
    let rest = len.checked_sub(4).filter(|_| len <= limits::ENTRY_BYTES_MAX);
    let rest = rest.ok_or_else(|| Error::corruption(format!("the entry of a fragment has {len} bytes")))?;
    let mut entry = ByteReader::new(r.take(rest)?, "the entry of a fragment");
    Ok((entry.u32()?, entry))
}

impl Entry {
    /// The parts in the rest of the entry of fragment `id`.
    pub(super) fn read(flags: u32, r: &mut ByteReader<'_>, id: Id) -> Result<Self> {
        let mut entry = Self::default();
        for bit in (0..32u8).filter(|bit| flags & 1 << bit != 0) {
            let bytes = r.sized()?;
            entry.take_part(bit, bytes).map_err(|e| e.context(format!("fragment {id}")))?;
        }
        r.expect_end()?;
        Ok(entry)
    }

    fn take_part(&mut self, bit: u8, bytes: &[u8]) -> Result<()> {
        match bit {
            BASE => {
                let base = bytes.try_into().map_or(0, u32::from_le_bytes);
                self.base = Some(base).filter(|base| *base > 0).ok_or_else(|| wrong("its base"))?;
            }
            MOVED => {
                let (words, []) = bytes.as_chunks::<8>() else { return Err(wrong("its way")) };
                self.moved = words.iter().map(|word| i64::from_le_bytes(*word)).collect();
            }
            STATS => self.stats = ValueBounds::new(bytes.to_vec())?,
            EXT if !is_object(bytes) => return Err(wrong("its ext")),
            bit if bit < SKIPPABLE => return Err(unknown_part(bit)),
            bit => self.extra.push(Part { bit, bytes: bytes.to_vec() }),
        }
        Ok(())
    }
}

fn wrong(what: &str) -> Error {
    Error::corruption(format!("{what} is impossible"))
}

/// The Unsupported error of a part that a reader must know.
pub(super) fn unknown_part(bit: u8) -> Error {
    newer("its description", format!("the part {bit}"))
}

fn is_object(bytes: &[u8]) -> bool {
    serde_json::from_slice::<Map<String, Value>>(bytes).is_ok()
}

/// A part of a description as JSON writes it: the bit, and the bytes in hexadecimal digits.
pub(super) type PartText = (u8, String);

/// The `ext` of a fragment and its other parts, as JSON writes them.
pub(super) fn extra_texts(extra: &[Part]) -> (Ext, Vec<PartText>) {
    let ext = extra.iter().find(|part| part.bit == EXT).and_then(|part| serde_json::from_slice(&part.bytes).ok());
    let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let others = extra.iter().filter(|part| part.bit != EXT).map(|part| (part.bit, digits(&part.bytes)));
    (ext, others.collect())
}

/// The parts of a description of which JSON has this `ext` and these other parts.
pub(super) fn read_extra(ext: Ext, texts: &[PartText]) -> Result<Vec<Part>> {
    let mut extra = Vec::new();
    if let Some(ext) = ext {
        let bytes = serde_json::to_vec(&ext).map_err(|e| wrong("its ext").with_source(e))?;
        extra.push(Part { bit: EXT, bytes });
    }
    for (bit, digits) in texts {
        match bit {
            // It has a field of its own.
            32.. | &STATS => return Err(wrong("a part")),
            0..SKIPPABLE => return Err(unknown_part(*bit)),
            bit => extra.push(Part { bit: *bit, bytes: bytes_of(digits).ok_or_else(|| wrong("a part"))? }),
        }
    }
    extra.sort_by_key(|part| part.bit);
    let len: usize = extra.iter().map(|part| part.bytes.len()).sum();
    if len > limits::EXTRA_BYTES_MAX || extra.windows(2).any(|pair| matches!(pair, [a, b] if a.bit == b.bit)) {
        return Err(wrong("what is said of it"));
    }
    Ok(extra)
}

/// The bytes that have these digits, two each, in lower case.
fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: &u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(value(high)? << 4 | value(low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;
    use crate::fragment::{FragmentKind, FragmentOrder, Location};
    use crate::schema::{KeyRange, Subarray};
    use crate::store::page::{self, PageInfo};
    use std::sync::Arc;

    fn described(id: u8, file: FileRef, extra: Vec<Part>) -> Arc<Description> {
        Arc::new(Description {
            id: Id([id; 16]),
            kind: if file == FileRef::Nowhere { FragmentKind::Deletion } else { FragmentKind::Dense },
            order: FragmentOrder { version: u64::from(id), index: 0 },
            schema: 0,
            bounds: Subarray::new(vec![KeyRange::new(1, 9)]),
            cells: if file == FileRef::Nowhere { 0 } else { 9 },
            attrs: if file == FileRef::Nowhere { Vec::new() } else { vec![0] },
            location: Location { file, offset: 0, len: if file == FileRef::Nowhere { 0 } else { 70 } },
            over: None,
            moved: Vec::new(),
            stats: ValueBounds::default(),
            extra,
        })
    }

    fn part(bit: u8, bytes: &[u8]) -> Part {
        Part { bit, bytes: bytes.to_vec() }
    }

    fn fragments() -> Vec<Arc<Description>> {
        let ext = br#"{"of":["fragment",1]}"#;
        vec![
            described(1, FileRef::Data(Id([9; 16])), Vec::new()),
            described(2, FileRef::OnBase(u32::MAX, Id([9; 16])), vec![part(EXT, ext), part(31, b"")]),
            described(3, FileRef::Nowhere, vec![part(18, b"bounds"), part(20, &[7; 300])]),
        ]
    }

    /// The page of these fragments, changed by `edit` and under a right checksum.
    fn decoded(fragments: &[Arc<Description>], edit: impl FnOnce(&mut [u8])) -> Result<Vec<Arc<Description>>> {
        let (mut bytes, _) = page::encode(fragments, page::VERSION)?;
        let end = bytes.len() - 8;
        edit(&mut bytes[..end]);
        let sum = crate::base::xxh3(&bytes[..end]);
        bytes[end..].copy_from_slice(&sum.to_le_bytes());
        page::decode(&bytes, &PageInfo::of(Id([1; 16]), sum, fragments, false)?)
    }

    #[test]
    fn parts_survive_a_page_and_json() {
        let all = fragments();
        assert_eq!(decoded(&all, |_| ()).unwrap(), all);
        let stats = ValueBounds::new(vec![9, 1, 2]).unwrap();
        let told = vec![Arc::new(Description { stats, ..Description::clone(&all[1]) })];
        assert_eq!(decoded(&told, |_| ()).unwrap(), told);
        for fragment in &all {
            let (ext, texts) = extra_texts(&fragment.extra);
            assert_eq!(read_extra(ext, &texts).unwrap(), fragment.extra);
        }
        let (bytes, sum) = page::encode(&all[..1], page::VERSION_GS0).unwrap();
        let info = PageInfo::of(Id([1; 16]), sum, &all[..1], false).unwrap();
        assert_eq!(page::decode(&bytes, &info).unwrap(), &all[..1]);
    }

    /// Where the first entry of a page with one list of one attribute begins.
    const ENTRY: usize = 8 + 4 + 4 + 4 + 8 + 4;

    #[test]
    fn unknown_parts_are_newer_and_wrong_ones_damage() {
        let one = |extra| vec![described(1, FileRef::Data(Id([9; 16])), extra)];
        let plain = one(vec![part(20, &[1, 0, 0, 0])]);
        let flags = |bits: u32| move |page: &mut [u8]| page[ENTRY + 4..ENTRY + 8].copy_from_slice(&bits.to_le_bytes());
        let kind = |fragments: &[Arc<Description>], edit: &dyn Fn(&mut [u8])| {
            decoded(fragments, |page| edit(page)).unwrap_err().kind()
        };
        for bit in 2..16 {
            assert_eq!(kind(&plain, &flags(1 << bit)), ErrorKind::Unsupported, "{bit}");
        }
        let moved = decoded(&plain, flags(1)).unwrap();
        assert_eq!(moved[0].location.file, FileRef::OnBase(1, Id([9; 16])));
        // Two parts where one is, none where one is, an ext that is no object, a base that is none or too short.
        for bits in [1 << 20 | 1 << 21, 0, 1 << EXT] {
            assert_eq!(kind(&plain, &flags(bits)), ErrorKind::Corruption, "{bits:x}");
        }
        for base in [&[0; 4][..], &[1, 0, 0]] {
            assert_eq!(kind(&one(vec![part(20, base)]), &flags(1)), ErrorKind::Corruption);
        }
        let deletion = vec![described(3, FileRef::Nowhere, vec![part(20, &[1, 0, 0, 0])])];
        let at = ENTRY - 4;
        let on_base = |page: &mut [u8]| page[at + 4..at + 8].copy_from_slice(&1u32.to_le_bytes());
        assert_eq!(kind(&deletion, &on_base), ErrorKind::Corruption);
        for len in [0u32, 3, 8, u32::MAX] {
            let cut = |page: &mut [u8]| page[ENTRY..ENTRY + 4].copy_from_slice(&len.to_le_bytes());
            assert_eq!(kind(&plain, &cut), ErrorKind::Corruption, "{len}");
        }
    }

    #[test]
    fn parts_in_json_that_are_none_are_refused() {
        let text = |bit: u8, digits: &str| read_extra(None, &[(bit, digits.to_owned())]);
        assert_eq!(text(20, "00ff").unwrap(), [part(20, &[0, 255])]);
        assert_eq!(text(1, "00").unwrap_err().kind(), ErrorKind::Unsupported);
        for (bit, digits) in [(32, ""), (16, "00"), (20, "0"), (20, "0G"), (20, "FF"), (20, "é")] {
            assert_eq!(text(bit, digits).unwrap_err().kind(), ErrorKind::Corruption, "{bit} {digits}");
        }
        let twice = [(20, String::new()), (20, "00".to_owned())];
        assert_eq!(read_extra(None, &twice).unwrap_err().kind(), ErrorKind::Corruption);
        assert!(read_extra(None, &[(20, "00".repeat(limits::EXTRA_BYTES_MAX + 1))]).is_err());
    }
}
