//! What an index says of a foreign file. All structures are plain and have a JSON form, so that another reader of the
//! format can produce the same.

mod objects;

use serde::{Deserialize, Serialize};

pub use objects::{ObjectCodec, ObjectEntry, ShardIndex};

/// A file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForeignFile {
    /// `"hdf5"`, `"netcdf4"`, `"netcdf3"`, `"npy"` or `"zarr"`.
    pub format: String,
    /// The group that holds all others.
    pub root: ForeignGroup,
}

/// A group: named objects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ForeignGroup {
    /// The name in the group above; empty for the root.
    pub name: String,
    /// The attributes of the group.
    pub attributes: Vec<ForeignAttribute>,
    /// The groups inside.
    pub groups: Vec<ForeignGroup>,
    /// The datasets inside.
    pub datasets: Vec<ForeignDataset>,
    /// The datatypes inside that have names.
    pub types: Vec<ForeignNamedType>,
    /// Members that are names of objects elsewhere.
    pub links: Vec<ForeignLink>,
    /// Members and attributes that could not be read.
    pub refused: Vec<Refused>,
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The name of the member or attribute; empty if its name is unknown.
    pub name: String,
    /// Why, for people.
    pub reason: String,
}

/// A datatype that has a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForeignNamedType {
    /// The name in its group.
    pub name: String,
    /// The type.
    pub datatype: ForeignType,
}

/// A name of an object that lies elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignLink {
    /// The name in its group.
    pub name: String,
    /// What it refers to.
    pub target: LinkTarget,
}

/// What a link refers to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum LinkTarget {
    /// A second name of an object that the tree holds at `path`.
    Hard {
        /// The absolute path.
        path: String,
    },
    /// A path in this file, relative to the group if it has no slash in front. The object need not exist.
    Soft {
        /// The path as stored.
        path: String,
    },
    /// A path in another file.
    External {
        /// The other file, as stored.
        file: String,
        /// The path in it.
        path: String,
    },
}

/// A dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForeignDataset {
    /// The name in its group, as stored. NetCDF-4 puts `_nc4_non_coord_` before the name of a variable that is called
    /// as a dimension and lies along others.
    pub name: String,
    /// Cells along each axis. Empty for a single cell.
    pub shape: Vec<u64>,
    /// How far each axis may grow. `None`: without limit.
    pub max_shape: Vec<Option<u64>>,
    /// Whether the dataset has no cells at all, not even a single one; `shape` is empty then.
    pub is_null: bool,
    /// The type of a cell.
    pub datatype: ForeignType,
    /// Bytes of a cell as it is stored, filters apart.
    pub element_size: u32,
    /// The value of cells that were never written, as stored. `None`: zero bytes.
    pub fill: Option<Vec<u8>>,
    /// The attributes.
    pub attributes: Vec<ForeignAttribute>,
    /// Absolute path of the dimension scale of each axis.
    pub dimension_scales: Vec<Option<String>>,
    /// The name of each axis, where it has one of its own; empty where none has.
    #[serde(default)]
    pub dimension_names: Vec<Option<String>>,
    /// Whether the dataset is a dimension scale itself.
    pub is_scale: bool,
    /// Whether the dataset only stands for a dimension of NetCDF-4 and has no values.
    pub is_bare_dimension: bool,
    /// Where the cells lie.
    pub layout: Layout,
    /// Attributes that could not be read.
    pub refused: Vec<Refused>,
}

/// Where the cells of a dataset lie.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Layout {
    /// In one piece, in row-major order.
    Contiguous {
        /// Absolute offset in the file. `None`: nothing was written yet.
        offset: Option<u64>,
        /// Bytes of all cells.
        length: u64,
    },
    /// In one piece, in column-major order: the first axis is the fastest.
    ColumnMajor {
        /// Absolute offset in the file.
        offset: u64,
        /// Bytes of all cells.
        length: u64,
    },
    /// In records, which other variables of the file share. A record is one step along the first axis, in row-major
    /// order.
    Records {
        /// Absolute offset of the first record's cells.
        offset: u64,
        /// Bytes of the cells of one record.
        length: u64,
        /// Bytes from one record to the next.
        stride: u64,
    },
    /// In the metadata.
    Compact {
        /// The cells in row-major order.
        bytes: Vec<u8>,
    },
    /// In chunks of one shape.
    Chunked {
        /// Cells of a chunk along each axis. Chunks at the edges are stored whole.
        chunk: Vec<u64>,
        /// What was done to a chunk when it was written, in this order.
        filters: Vec<ForeignFilter>,
        /// Where the entries of chunks are found.
        index: ChunkIndex,
    },
    /// In chunks of one shape, each an object of its own, or several in one.
    Objects {
        /// The folder of the objects, from that of the file; empty if it is the same.
        folder: String,
        /// `"2"` or `"3"`: the version of the format.
        version: String,
        /// Cells of a chunk along each axis. Chunks at the edges are stored whole.
        chunk: Vec<u64>,
        /// The place of each axis in the order of a chunk's cells, 0 the slowest.
        ranks: Vec<u32>,
        /// The key of an object in the folder: `{0}`, `{1}` … stand for its number along each axis.
        template: String,
        /// Objects along each axis.
        objects: Vec<u64>,
        /// What was done to a chunk when it was written, in this order.
        codecs: Vec<ObjectCodec>,
        /// How chunks lie in an object, where it holds several.
        shard: Option<ShardIndex>,
    },
    /// In parts of other datasets.
    Virtual,
    /// In other files, one after another.
    External {
        /// The files in the order of the cells.
        files: Vec<ExternalPart>,
    },
    /// The place of the cells could not be read.
    Refused {
        /// Why, for people.
        reason: String,
    },
}

/// A part of another file that holds cells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalPart {
    /// The file, as stored.
    pub file: String,
    /// The first byte in it.
    pub offset: u64,
    /// Bytes of the part. `None`: without limit.
    pub length: Option<u64>,
}

/// A filter of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignFilter {
    /// The registered number.
    pub id: u32,
    /// The name, for people.
    pub name: String,
    /// Parameters, as stored.
    pub parameters: Vec<u32>,
    /// Whether a writer may leave the filter out for a chunk.
    pub optional: bool,
}

/// Where the entries of a dataset's chunks are found. Addresses count from the superblock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ChunkIndex {
    /// No chunk was written.
    Empty,
    /// One chunk holds all cells.
    Single {
        /// Address of the chunk.
        address: u64,
        /// Stored bytes; `None` if the chunk is not filtered.
        length: Option<u64>,
        /// Filters that were left out.
        filter_mask: u32,
    },
    /// All chunks lie one after another, unfiltered.
    Implicit {
        /// Address of the first chunk.
        address: u64,
    },
    /// An array of entries for axes of bounded length.
    FixedArray {
        /// Address of its header.
        address: u64,
        /// Whether chunks at the edges are stored without filters.
        plain_edges: bool,
    },
    /// An array of entries that grows along one axis.
    ExtensibleArray {
        /// Address of its header.
        address: u64,
        /// Whether chunks at the edges are stored without filters.
        plain_edges: bool,
    },
    /// A B-tree of version 1.
    #[serde(rename = "btree1")]
    BTree1 {
        /// Address of its root.
        address: u64,
    },
    /// A B-tree of version 2.
    #[serde(rename = "btree2")]
    BTree2 {
        /// Address of its header.
        address: u64,
        /// Whether chunks at the edges are stored without filters.
        plain_edges: bool,
    },
    /// The entries are given beside the tree.
    Listed,
}

/// A chunk that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkEntry {
    /// The chunk's number along each axis.
    pub place: Vec<u64>,
    /// Absolute offset in the file.
    pub offset: u64,
    /// Stored bytes.
    pub length: u64,
    /// Bit `n` is set if filter `n` of the pipeline was left out.
    pub filter_mask: u32,
}

/// The order of bytes and the bits in use, where a number does not fill its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BitRange {
    /// The lowest bit.
    pub offset: u16,
    /// The number of bits.
    pub precision: u16,
}

/// How a float is made of bits, where it is not one of IEEE 754.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloatBits {
    /// The bits in use.
    pub bits: BitRange,
    /// The lowest bit of the exponent.
    pub exponent_offset: u8,
    /// Bits of the exponent.
    pub exponent_bits: u8,
    /// The lowest bit of the mantissa.
    pub mantissa_offset: u8,
    /// Bits of the mantissa.
    pub mantissa_bits: u8,
    /// What is added to the exponent.
    pub exponent_bias: u32,
    /// The bit of the sign.
    pub sign_bit: u8,
    /// Whether the bytes are in the order of the VAX.
    pub vax_order: bool,
}

/// How a text of fixed length ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextPadding {
    /// A zero byte ends it.
    ZeroTerminated,
    /// Zero bytes fill it.
    ZeroPadded,
    /// Spaces fill it.
    SpacePadded,
}

/// What a reference refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReferenceKind {
    /// An object, by its address.
    Object,
    /// A part of a dataset.
    Region,
    /// A later form, whose bytes say what it refers to.
    Standard,
}

/// The type of a cell or attribute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "class")]
pub enum ForeignType {
    /// A whole number.
    Integer {
        /// Bytes.
        width: u32,
        /// In two's complement.
        signed: bool,
        /// The order of the bytes.
        big_endian: bool,
        /// The bits in use; `None`: all.
        bits: Option<BitRange>,
    },
    /// A float of IEEE 754 with 2, 4 or 8 bytes, or what `layout` says.
    Float {
        /// Bytes.
        width: u32,
        /// The order of the bytes.
        big_endian: bool,
        /// The bits of a float that is not one of IEEE 754.
        layout: Option<FloatBits>,
    },
    /// A byte, 0 or 1.
    Boolean,
    /// Named values.
    Enumeration {
        /// The integer that is stored.
        base: Box<ForeignType>,
        /// The names.
        members: Vec<EnumerationMember>,
    },
    /// A text of fixed length.
    FixedText {
        /// Bytes.
        length: u32,
        /// How it ends.
        padding: TextPadding,
        /// Whether it is UTF-8; else ASCII.
        utf8: bool,
    },
    /// A text of code points of four bytes; zeros fill it.
    CodePoints {
        /// The number of code points.
        length: u32,
        /// The order of the bytes of each.
        big_endian: bool,
    },
    /// A moment or a duration as NumPy counts it: 64 bits, the lowest number for none.
    Moment {
        /// The unit as NumPy names it.
        unit: String,
        /// How many of the unit a step is.
        count: u32,
        /// Whether it is a duration.
        is_duration: bool,
        /// The order of the bytes.
        big_endian: bool,
    },
    /// A text in a global heap.
    VariableText {
        /// Whether it is UTF-8; else ASCII.
        utf8: bool,
    },
    /// Several values.
    Compound {
        /// Bytes.
        size: u32,
        /// The values.
        members: Vec<CompoundMember>,
    },
    /// An array in each cell.
    Array {
        /// Its shape.
        dimensions: Vec<u64>,
        /// The type of its cells.
        base: Box<ForeignType>,
    },
    /// Bytes without meaning.
    Opaque {
        /// Bytes.
        size: u32,
        /// What they are, for people.
        tag: String,
    },
    /// Real and imaginary part, floats of IEEE 754.
    Complex {
        /// Bytes of both.
        width: u32,
        /// The order of the bytes of each.
        big_endian: bool,
    },
    /// Bits.
    BitField {
        /// Bytes.
        width: u32,
        /// The order of the bytes.
        big_endian: bool,
        /// The bits in use; `None`: all.
        bits: Option<BitRange>,
    },
    /// A time of the format's own.
    Time {
        /// Bytes.
        width: u32,
        /// The order of the bytes.
        big_endian: bool,
    },
    /// A reference.
    Reference {
        /// Bytes.
        size: u32,
        /// To what.
        to: ReferenceKind,
    },
    /// A list in a global heap.
    VariableLength {
        /// The type of its cells.
        base: Box<ForeignType>,
    },
}

/// A named value of an enumeration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnumerationMember {
    /// The name.
    pub name: String,
    /// The value.
    pub value: WholeNumber,
}

/// An integer of up to 64 bits with or without a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WholeNumber {
    /// All that fit into a signed one.
    Signed(i64),
    /// The others.
    Unsigned(u64),
}

/// A value of a compound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompoundMember {
    /// The name.
    pub name: String,
    /// Its first byte.
    pub offset: u32,
    /// Its type.
    pub datatype: ForeignType,
}

/// An attribute of a group or dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForeignAttribute {
    /// The name.
    pub name: String,
    /// The shape of the value; empty for a single one.
    pub shape: Vec<u64>,
    /// The type as stored.
    pub datatype: ForeignType,
    /// The value.
    pub value: ForeignValue,
}

/// The value of an attribute, in row-major order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "values")]
pub enum ForeignValue {
    /// Integers and members of enumerations.
    Integers(Vec<WholeNumber>),
    /// Floats.
    Floats(#[serde(with = "floats")] Vec<f64>),
    /// Truth values.
    Booleans(Vec<bool>),
    /// Texts. Bytes that are not UTF-8 are read as Latin-1.
    Texts(Vec<String>),
    /// Absolute paths of objects; `None`: no object of the tree.
    Objects(Vec<Option<String>>),
    /// Values of other types, as stored.
    Bytes(Vec<u8>),
    /// Any value, as JSON.
    Json(String),
    /// No value.
    Empty,
}

/// Floats in JSON: numbers, and the names of those that JSON has no number for.
mod floats {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Float {
        Number(f64),
        Name(String),
    }

    pub(super) fn serialize<S: Serializer>(values: &[f64], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(values.iter().map(|&value| match value {
            value if value.is_finite() => Float::Number(value),
            value if value.is_nan() => Float::Name("nan".into()),
            value => Float::Name(if value > 0.0 { "inf" } else { "-inf" }.into()),
        }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
        let values = Vec::<Float>::deserialize(from)?;
        values
            .into_iter()
            .map(|value| match value {
                Float::Number(value) => Ok(value),
                Float::Name(name) => {
                    name.parse().map_err(|_| D::Error::custom(format!("expected a float, found the text {name:?}")))
                }
            })
            .collect()
    }
}

impl ForeignType {
    /// Whether a value lies in a global heap, wholly or in part.
    pub fn has_variable_parts(&self) -> bool {
        match self {
            Self::VariableText { .. } | Self::VariableLength { .. } => true,
            Self::Compound { members, .. } => members.iter().any(|member| member.datatype.has_variable_parts()),
            Self::Array { base, .. } => base.has_variable_parts(),
            _ => false,
        }
    }
}
