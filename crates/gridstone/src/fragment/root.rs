//! The root of a fragment: what it holds, and the table of its index sections.
//!
//! ```text
//! u8 kind (0 dense, 1 sparse, 2 tombstones) | u8 dimensions | u8 tile order | u8 cell order (0 row, 1 col)
//! u32 cells per block at most | u64 cells | u64 tiles
//! per dimension: u64 lo key | u64 hi key                    box written, or MBR
//! u32 fields | per field: u8 role (0 dimension, 1 attribute) | u8 nullable | u32 number | u32-sized datatype name
//! u32 pipelines | per pipeline: u32-sized name
//! u32 stripes | per stripe: u64 tiles | u64 blocks | u64 texts
//! u32 sections | per section: u32 id | u32 version | u32 stripe | u32 0 | u64 offset | u64 length | u64 xxh3
//! ```
//! Unknown sections are skipped; a section of a known id and unknown version is an Unsupported error.

use super::FragmentKind;
use super::format::SectionId;
use crate::base::{ByteRange, ByteReader, ByteWriter, Error, Result, limits, newer};
use crate::schema::{Datatype, KeyRange, Order, Subarray};

/// Which column of cells a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The coordinates of a dimension, by its place.
    Dimension(u32),
    /// The values of an attribute, by its permanent number.
    Attribute(u32),
}

/// A column of cells that the fragment stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// What it holds.
    pub role: Role,
    /// The type of its values.
    pub datatype: Datatype,
    /// Whether its blocks have the nullable layout.
    pub nullable: bool,
}

/// A stripe: a run of tiles whose pages lie together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StripeInfo {
    /// Tiles in it.
    pub tiles: u64,
    /// Blocks per field in it.
    pub blocks: u64,
    /// Variable-length bounds in its Texts section.
    pub texts: u64,
}

/// An index section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// Which one.
    pub id: SectionId,
    /// The stripe it belongs to.
    pub stripe: u32,
    /// Its bytes.
    pub range: ByteRange,
    /// Their checksum.
    pub xxh3: u64,
}

/// What a fragment holds and where its index lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// What it holds.
    pub kind: FragmentKind,
    /// Tile order it was written in.
    pub tile_order: Order,
    /// Cell order it was written in.
    pub cell_order: Order,
    /// Cells per block at most.
    pub block_cells: u32,
    /// Cells in it.
    pub cells: u64,
    /// Data tiles in it.
    pub tiles: u64,
    /// The box written, or the MBR of the cells.
    pub bounds: Subarray,
    /// Its columns: dimensions first.
    pub fields: Vec<Field>,
    /// The pipelines that its pages refer to by place.
    pub pipelines: Vec<String>,
    /// Its stripes in order.
    pub stripes: Vec<StripeInfo>,
    /// Its index sections.
    pub sections: Vec<Section>,
}

const SECTION_VERSION: u32 = 0;
/// What errors call it.
const ROOT: &str = "a fragment's root";

fn order_code(order: Order) -> u8 {
    match order {
        Order::Row => 0,
        Order::Col => 1,
        Order::Hilbert => 2,
    }
}

fn code_order(code: u8) -> Result<Order> {
    match code {
        0 => Ok(Order::Row),
        1 => Ok(Order::Col),
        2 => Ok(Order::Hilbert),
        _ => Err(newer(ROOT, format!("the order {code}"))),
    }
}

impl Root {
    /// The root's bytes.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut w = ByteWriter::new();
        w.u8(match self.kind {
            FragmentKind::Dense => 0,
            FragmentKind::Sparse => 1,
            FragmentKind::Tombstones => 2,
            FragmentKind::Deletion | FragmentKind::Mask => {
                return Err(Error::input(format!("a {} is no fragment of cells", self.kind.name())));
            }
        });
        w.u8(self.bounds.ndim() as u8);
        w.u8(order_code(self.tile_order));
        w.u8(order_code(self.cell_order));
        w.u32(self.block_cells);
        w.u64(self.cells);
        w.u64(self.tiles);
        for range in self.bounds.ranges() {
            w.u64(range.lo);
            w.u64(range.hi);
        }
        w.u32(self.fields.len() as u32);
        for field in &self.fields {
            let (role, number) = match field.role {
                Role::Dimension(n) => (0, n),
                Role::Attribute(n) => (1, n),
            };
            w.u8(role);
            w.u8(u8::from(field.nullable));
            w.u32(number);
            w.sized(field.datatype.to_string().as_bytes())?;
        }
        w.u32(self.pipelines.len() as u32);
        self.pipelines.iter().try_for_each(|name| w.sized(name.as_bytes()))?;
        self.encode_tables(&mut w);
        Ok(w.into_bytes())
    }

    fn encode_tables(&self, w: &mut ByteWriter) {
        w.u32(self.stripes.len() as u32);
        for stripe in &self.stripes {
            w.u64(stripe.tiles);
            w.u64(stripe.blocks);
            w.u64(stripe.texts);
        }
        w.u32(self.sections.len() as u32);
        for s in &self.sections {
            w.u32(s.id as u32);
            w.u32(SECTION_VERSION);
            w.u32(s.stripe);
            w.u32(0);
            w.u64(s.range.offset);
            w.u64(s.range.len);
            w.u64(s.xxh3);
        }
    }

    /// Reads a root; the caller has checked its checksum. A Corruption error says what does not fit, an Unsupported one what is not known.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = ByteReader::new(bytes, ROOT);
        let kind = match r.u8()? {
            0 => FragmentKind::Dense,
            1 => FragmentKind::Sparse,
            2 => FragmentKind::Tombstones,
            other => return Err(newer(ROOT, format!("the kind {other}"))),
        };
        let ndim = usize::from(r.u8()?);
        if ndim == 0 || ndim > limits::AXES_MAX {
            return Err(Error::corruption(format!("a fragment's root has {ndim} dimensions")));
        }
        let (tile_order, cell_order) = (code_order(r.u8()?)?, code_order(r.u8()?)?);
        let (block_cells, cells, tiles) = (r.u32()?, r.u64()?, r.u64()?);
        if block_cells == 0 || block_cells > limits::BLOCK_CELLS_MAX {
            return Err(Error::corruption(format!("a fragment's root has blocks of {block_cells} cells")));
        }
        let bounds = Self::decode_bounds(&mut r, ndim)?;
        let fields = Self::decode_fields(&mut r)?;
        let pipelines = (0..r.count(4)?).map(|_| Ok(r.string()?.to_owned())).collect::<Result<_>>()?;
        let stripes = Self::decode_stripes(&mut r, tiles)?;
        let sections = Self::decode_sections(&mut r, stripes.len())?;
        r.expect_end()?;
        Ok(Self {
            kind,
            tile_order,
            cell_order,
            block_cells,
            cells,
            tiles,
            bounds,
            fields,
            pipelines,
            stripes,
            sections,
        })
    }

    fn decode_bounds(r: &mut ByteReader<'_>, ndim: usize) -> Result<Subarray> {
        let range = |r: &mut ByteReader<'_>| {
            let (lo, hi) = (r.u64()?, r.u64()?);
            if lo > hi {
                return Err(Error::corruption("a fragment's root has an empty box"));
            }
            Ok(KeyRange::new(lo, hi))
        };
        Ok(Subarray::new((0..ndim).map(|_| range(r)).collect::<Result<_>>()?))
    }

    fn decode_fields(r: &mut ByteReader<'_>) -> Result<Vec<Field>> {
        let field = |r: &mut ByteReader<'_>| {
            let (role, nullable, number) = (r.u8()?, r.u8()?, r.u32()?);
            let name = r.string()?;
            let datatype = Datatype::parse(name).map_err(|_| newer(ROOT, format!("the datatype {name:?}")))?;
            let role = match role {
                0 => Role::Dimension(number),
                1 => Role::Attribute(number),
                other => return Err(newer(ROOT, format!("a field of role {other}"))),
            };
            if nullable > 1 {
                return Err(newer(ROOT, format!("a field of the layout {nullable}")));
            }
            Ok(Field { role, datatype, nullable: nullable == 1 })
        };
        (0..r.count(10)?).map(|_| field(r)).collect()
    }

    fn decode_stripes(r: &mut ByteReader<'_>, tiles: u64) -> Result<Vec<StripeInfo>> {
        let stripe = |r: &mut ByteReader<'_>| Ok(StripeInfo { tiles: r.u64()?, blocks: r.u64()?, texts: r.u64()? });
        let stripes = (0..r.count(24)?).map(|_| stripe(r)).collect::<Result<Vec<StripeInfo>>>()?;
        let total = stripes.iter().try_fold(0u64, |n, s| n.checked_add(s.tiles));
        if total != Some(tiles) {
            return Err(Error::corruption("a fragment's stripes do not add up to its tiles"));
        }
        Ok(stripes)
    }

    fn decode_sections(r: &mut ByteReader<'_>, stripes: usize) -> Result<Vec<Section>> {
        let mut sections = Vec::new();
        for _ in 0..r.count(40)? {
            let (number, version, stripe) = (r.u32()?, r.u32()?, r.u32()?);
            r.u32()?;
            let (range, xxh3) = (ByteRange::new(r.u64()?, r.u64()?), r.u64()?);
            if stripe as usize >= stripes {
                return Err(Error::corruption(format!("an index section belongs to stripe {stripe} of {stripes}")));
            }
            let Some(id) = SectionId::from_number(number) else { continue };
            if version != SECTION_VERSION {
                return Err(Error::unsupported(format!(
                    "an index section {id:?} has version {version}, known is {SECTION_VERSION}; use a newer Gridstone"
                )));
            }
            sections.push(Section { id, stripe, range, xxh3 });
        }
        Ok(sections)
    }
}
