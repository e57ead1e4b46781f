//! The sorted copy of a pack: the cells of the small fragments that a fold put into one pack, once more, sorted among each other.
//!
//! A read of a small box has to open every small fragment that may have a cell there. Of a pack that has a sorted copy it opens one
//! file, whose blocks follow the global order, and takes the few that touch the box. The copy says of each cell which fragment it
//! is from, so a read leaves out those that its version does not have, and precedence is what it was.
//!
//! Nothing rests on a copy. No log record, manifest page or root names one: its id follows from the pack's and the array's ([`Id::beside`]). Where it
//! is missing, damaged, or of another array, the fragments are read. The format: `docs/format/sorted-copy.md`.

use crate::base::{ByteRange, ByteReader, ByteSource, ByteWriter, Error, FileRef, Id, Result, limits, xxh3};
use crate::fragment::{Description, FragmentKind, FragmentOrder, Location, ValueBounds};
use crate::schema::{KeyRange, Subarray};

/// The first bytes of a copy.
const MAGIC: [u8; 8] = *b"GS0SORT\n";
/// Bytes before the length of the header, and that.
const LEAD_BYTES: u64 = 12;
/// What is read at first: the header of some hundred fragments.
const FIRST_BYTES: u64 = 4 << 10;
/// No header is longer.
const BODY_BYTES_MAX: u64 = 256 << 10;
/// Where the fragment in a copy may begin.
const ALIGNMENT: usize = 64;
/// What a member takes in the header.
const MEMBER_BYTES: usize = 28;

/// The number of the attribute that says which member a cell is from. No schema comes so far.
pub(super) const MEMBER: u32 = u32::MAX;

/// Cells per block: few, since reads of small boxes are what copies are for.
pub(super) const BLOCK_CELLS: u32 = 256;

/// Fewer small fragments of one pack are read one by one.
pub const MEMBERS_MIN: usize = 8;

/// More are not copied: members are numbered by 16 bits.
pub const MEMBERS_MAX: usize = 1 << 12;

/// A fragment whose cells are in a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) struct Member {
    pub(in crate::query) id: Id,
    pub(in crate::query) order: FragmentOrder,
}

/// What a copy says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(in crate::query) pack: Id,
    pub(in crate::query) array: Id,
    pub(in crate::query) schema: u32,
    pub(in crate::query) cells: u64,
    /// The attributes that all members have, ascending.
    pub(in crate::query) attrs: Vec<u32>,
    pub(in crate::query) bounds: Subarray,
    /// By number.
    pub(in crate::query) members: Vec<Member>,
    /// Bytes of the fragment behind it.
    pub(in crate::query) len: u64,
}

impl Header {
    /// The bytes in front of the fragment.
    pub(in crate::query) fn encode(&self) -> Vec<u8> {
        let mut out = ByteWriter::new();
        out.raw(&self.pack.0);
        out.raw(&self.array.0);
        out.u32(self.schema);
        out.u64(self.cells);
        out.u64(self.len);
        out.u32(self.attrs.len() as u32);
        self.attrs.iter().for_each(|attr| out.u32(*attr));
        out.u32(self.bounds.ndim() as u32);
        for range in self.bounds.ranges() {
            out.u64(range.lo);
            out.u64(range.hi);
        }
        out.u32(self.members.len() as u32);
        for member in &self.members {
            out.raw(&member.id.0);
            out.u64(member.order.version);
            out.u32(member.order.index);
        }
        let (mut whole, body) = (ByteWriter::new(), out.into_bytes());
        whole.raw(&MAGIC);
        whole.u32(body.len() as u32);
        whole.raw(&body);
        whole.u64(xxh3(whole.as_slice()));
        whole.align(ALIGNMENT);
        whole.into_bytes()
    }

    /// The header of the copy in `source`, and where the fragment behind it begins. Corruption if it is not one.
    pub(in crate::query) fn read(source: &dyn ByteSource) -> Result<(Self, u64)> {
        let wrong = || Error::corruption("this is no sorted copy of a pack");
        let mut bytes = source.read_one(ByteRange::new(0, source.len().min(FIRST_BYTES)))?;
        let mut lead = ByteReader::new(&bytes, "a sorted copy");
        if lead.take(MAGIC.len())? != MAGIC {
            return Err(wrong());
        }
        let body = u64::from(lead.u32()?);
        let (end, whole) = (LEAD_BYTES + body, LEAD_BYTES + body + 8);
        if body > BODY_BYTES_MAX || whole > source.len() {
            return Err(wrong());
        }
        if whole > bytes.len() as u64 {
            bytes = source.read_one(ByteRange::new(0, whole))?;
        }
        let (header, sum) = bytes.split_at_checked(end as usize).ok_or_else(wrong)?;
        if ByteReader::new(sum, "a sorted copy").u64()? != xxh3(header) {
            return Err(Error::corruption("the header of a sorted copy fails its checksum"));
        }
        let header = Self::decode(header.get(LEAD_BYTES as usize..).unwrap_or_default())?;
        Ok((header, whole.next_multiple_of(ALIGNMENT as u64)))
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let mut from = ByteReader::new(bytes, "the header of a sorted copy");
        let (pack, array) = (from.id()?, from.id()?);
        let (schema, cells, len) = (from.u32()?, from.u64()?, from.u64()?);
        let attrs = (0..from.count(4)?).map(|_| from.u32()).collect::<Result<Vec<u32>>>()?;
        let ranges = (0..from.count(16)?).map(|_| Ok(KeyRange { lo: from.u64()?, hi: from.u64()? }));
        let ranges = ranges.collect::<Result<Vec<KeyRange>>>()?;
        let member = |from: &mut ByteReader<'_>| {
            Ok(Member { id: from.id()?, order: FragmentOrder { version: from.u64()?, index: from.u32()? } })
        };
        let members = (0..from.count(MEMBER_BYTES)?).map(|_| member(&mut from)).collect::<Result<Vec<Member>>>()?;
        from.expect_end()?;
        let sound = !members.is_empty()
            && members.len() <= MEMBERS_MAX
            && !ranges.is_empty()
            && ranges.len() <= limits::AXES_MAX
            && ranges.iter().all(|r| r.lo <= r.hi)
            && attrs.len() <= limits::ATTRIBUTES_MAX
            && attrs.is_sorted_by(|a, b| a < b)
            && attrs.last().is_none_or(|last| *last < MEMBER);
        if !sound {
            return Err(Error::corruption("the header of a sorted copy contradicts itself"));
        }
        Ok(Self { pack, array, schema, cells, attrs, bounds: Subarray::new(ranges), members, len })
    }

    /// The fragment behind it, which begins at `offset`, as one that could be a store's.
    pub(in crate::query) fn described(&self, offset: u64) -> Description {
        let id = self.pack.beside(self.array);
        Description {
            id,
            kind: FragmentKind::Sparse,
            order: self.members.iter().map(|m| m.order).min().unwrap_or(FragmentOrder { version: 0, index: 0 }),
            schema: self.schema,
            bounds: self.bounds.clone(),
            cells: self.cells,
            attrs: self.attrs.iter().copied().chain([MEMBER]).collect(),
            location: Location { file: FileRef::Data(id), offset, len: self.len },
            over: None,
            stats: ValueBounds::default(),
            extra: Vec::new(),
            moved: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::MemorySource;

    fn header(members: usize) -> Header {
        let member =
            |n: u64| Member { id: Id([n as u8; 16]), order: FragmentOrder { version: n, index: (n % 3) as u32 } };
        Header {
            pack: Id([1; 16]),
            array: Id([2; 16]),
            schema: 3,
            cells: 1_000,
            attrs: vec![0, 4],
            bounds: Subarray::new(vec![KeyRange { lo: 5, hi: 9 }, KeyRange { lo: 0, hi: u64::MAX }]),
            members: (0..members as u64).map(member).collect(),
            len: 77,
        }
    }

    fn read(bytes: Vec<u8>) -> Result<(Header, u64)> {
        Header::read(&MemorySource(bytes.into()))
    }

    #[test]
    fn a_header_of_any_length_reads_back() {
        for members in [1, 64, 4_000] {
            let bytes = header(members).encode();
            assert_eq!(bytes.len() % ALIGNMENT, 0);
            let behind = bytes.len() as u64;
            assert_eq!(read([bytes, vec![9; 100]].concat()).unwrap(), (header(members), behind));
        }
    }

    #[test]
    fn whatever_is_changed_or_cut_is_found() {
        let bytes = header(9).encode();
        let end = LEAD_BYTES as usize + u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize + 8;
        for at in 0..end {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            read(changed).unwrap_err();
            read(bytes[..at].to_vec()).unwrap_err();
        }
        read(header(0).encode()).unwrap_err();
        read(Header { attrs: vec![4, 0], ..header(9) }.encode()).unwrap_err();
        read(Header { attrs: vec![MEMBER], ..header(9) }.encode()).unwrap_err();
    }

    #[test]
    fn the_id_of_a_copy_follows_from_its_pack_and_array() {
        let Header { pack, array, .. } = header(1);
        let copy = pack.beside(array);
        // As docs/format/sorted-copy.md gives it.
        assert_eq!(copy.to_string(), "64716a6770776c6d6623706c71776667");
        assert!(copy != pack && copy != array && copy != pack.beside(pack));
        let described = header(9).described(640);
        assert_eq!((described.id, described.attrs), (copy, vec![0, 4, MEMBER]));
        assert_eq!(described.location, Location { file: FileRef::Data(copy), offset: 640, len: 77 });
    }
}
