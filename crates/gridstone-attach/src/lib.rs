//! Attaching files of other formats: what the index of a file says ([`gridstone_foreign`]) becomes an external fragment of an array.
//!
//! Callers in any language say in JSON what is to be attached ([`Attached`]). The tables of chunks, which may have millions of entries, are
//! read here and never cross a border.

mod objects;

use gridstone::base::{ByteRange, Error, ErrorKind, ForeignObject, Result};
use gridstone::codec::foreign::ForeignPipeline;
use gridstone::engine;
use gridstone::fragment::external::{ChunkGrid, ExternalSpec, ForeignField, ForeignPage, ForeignSource, TilePage};
use gridstone::schema::{KeyRange, Schema, Subarray};
use gridstone_foreign::model::{ForeignDataset, ForeignFile, ForeignGroup};
use gridstone_foreign::{ByteSource, FileSource, Hdf5File, netcdf3, npy, zarr};
use objects::Listed;
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;

/// What is attached in one fragment; positions count from the low edge of the array's domain.
///
/// ```
/// let json = r#"{"position": [0], "shape": [100], "lead": [0], "sides": [50], "ranks": [0], "padded": false,
///     "sources": [{"uri": "numbers.bin", "size": 400, "time_us": null, "etag": null}],
///     "attrs": ["v"], "fields": [{"attr": 0, "list": 0, "offset": 0, "step": 4, "value": {"kind": "float", "width": 4, "count": 1}}],
///     "fills": ["00000000"],
///     "lists": [{"kind": "strided", "source": 0, "offset": 0, "strides": [4], "step": 4, "record": 4}]}"#;
/// assert!(gridstone_attach::Attached::parse(json).is_ok());
/// ```
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attached {
    position: Vec<u64>,
    shape: Vec<u64>,
    /// How far the first chunk begins before the box.
    lead: Vec<u64>,
    sides: Vec<u64>,
    ranks: Vec<u32>,
    padded: bool,
    sources: Vec<Object>,
    /// The name of each field's attribute.
    attrs: Vec<String>,
    fields: Vec<ForeignField>,
    /// Per list of pages the fill of its records, in hexadecimal digits.
    fills: Vec<String>,
    lists: Vec<Pages>,
}

/// A source as Python gives it. With the objects of a list of pages it is the prefix of their keys.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Object {
    uri: String,
    size: Option<u64>,
    time_us: Option<i64>,
    etag: Option<String>,
}

/// Where the pages of a list lie.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case", tag = "kind")]
enum Pages {
    /// The chunks of a dataset in a local HDF5 file.
    Hdf5 { file: String, dataset: Box<ForeignDataset>, source: u32, pipeline: String, decoded: u32 },
    /// The chunks of a dataset in a local folder of objects.
    Objects { folder: String, dataset: Box<ForeignDataset>, source: u32, decoded: u32 },
    /// Cells at constant distances, in bytes; `record` is the length of one.
    Strided { source: u32, offset: u64, strides: Vec<u64>, step: u64, record: u64 },
    /// All cells in the index itself: one tile.
    Kept { bytes: Vec<u8> },
    /// Nothing was ever written.
    Nothing,
}

/// The most chunks of one fragment: a small file may declare any number of them.
const CHUNKS_MAX: u64 = 1 << 24;

/// The pages of a list by tile, where some have one; ascending.
type Entries = Vec<(u64, ForeignPage, u32)>;

impl Attached {
    /// Reads the JSON of what is attached.
    ///
    /// # Errors
    /// Input: it is no such JSON.
    pub fn parse(json: &str) -> Result<Self> {
        serde_json::from_str(json).map_err(|e| Error::input(format!("what is to be attached is no such JSON: {e}")))
    }
}

/// The tree of the file at `path` as JSON, [`ForeignFile`]: of HDF5 and NetCDF, of an array of NumPy (`.npy`), which is the dataset
/// `array`, and of a folder of Zarr.
///
/// # Errors
/// Storage: it cannot be read; Input: it is of another format; Corruption, Unsupported.
pub fn tree(path: &str) -> Result<String> {
    let tree = tree_of(path).map_err(|e| foreign(path, &e))?;
    serde_json::to_string(&tree).map_err(|e| Error::input(format!("{path} has names that JSON cannot hold: {e}")))
}

/// What files of NetCDF-3 and of NumPy begin with.
const NETCDF3: &[u8] = b"CDF";
const NUMPY: &[u8] = b"\x93NUMPY";
/// What archives of ZIP begin with.
const ZIP: &[u8] = b"PK\x03\x04";

fn tree_of(path: &str) -> gridstone_foreign::Result<ForeignFile> {
    if Path::new(path).is_dir() {
        return zarr::tree(Path::new(path));
    }
    let source = FileSource::open(Path::new(path))?;
    let mut head = [0; NUMPY.len()];
    let known = usize::try_from(source.length()).unwrap_or(head.len()).min(head.len());
    source.read_at(0, head.get_mut(..known).unwrap_or_default())?;
    if head.starts_with(NETCDF3) {
        return netcdf3::tree(&source);
    }
    if head.starts_with(ZIP) {
        let message = "it is an archive of ZIP; unpack it, and attach the folder or the files in it";
        return Err(gridstone_foreign::Error::new(gridstone_foreign::ErrorKind::Unsupported, message));
    }
    if head.starts_with(NUMPY) {
        let dataset = ForeignDataset { name: "array".into(), ..npy::dataset(&source)? };
        let root = ForeignGroup { datasets: vec![dataset], ..ForeignGroup::default() };
        return Ok(ForeignFile { format: "npy".into(), root });
    }
    Hdf5File::open(Arc::new(source))?.tree()
}

fn opened(path: &str) -> Result<Hdf5File> {
    let source = FileSource::open(Path::new(path)).map_err(|e| foreign(path, &e))?;
    Hdf5File::open(Arc::new(source)).map_err(|e| foreign(path, &e))
}

/// An error of the index in the engine's kinds.
fn foreign(path: &str, error: &gridstone_foreign::Error) -> Error {
    use gridstone_foreign::ErrorKind as Of;
    let kind = match error.kind() {
        Of::Io => ErrorKind::Storage,
        Of::Unsupported => ErrorKind::Unsupported,
        Of::Damaged => ErrorKind::Corruption,
        _ => ErrorKind::Input,
    };
    Error::new(kind, format!("{path}: {error}"))
}

/// Stages cells that lie in files of another format; nothing is visible before the commit.
///
/// # Errors
/// Those of the index of the files, and of [`engine::Array::stage_external`].
pub fn stage(array: &engine::Array, attached: &Attached, call: &engine::Call) -> Result<engine::Staged> {
    let schema = array.schema()?;
    let grid = grid_of(&schema, attached)?;
    if grid.len() > CHUNKS_MAX {
        let (found, most) = (grid.len(), CHUNKS_MAX);
        return Err(Error::unsupported(format!("the dataset has {found} chunks; at most {most} are attached at once")));
    }
    let fills: Vec<Vec<u8>> = attached.fills.iter().map(|digits| bytes_of(digits)).collect::<Result<_>>()?;
    let mut sources: Vec<ForeignSource> = attached.sources.iter().map(source_of).collect();
    let mut entries: Vec<Entries> = Vec::with_capacity(attached.lists.len());
    for pages in &attached.lists {
        entries.push(entries_of(&grid, pages, &mut sources, call)?);
    }
    objects::check_span(&sources)?;
    let masks: Vec<Masked> = attached.lists.iter().map(Masked::of).collect::<Result<_>>()?;
    let mut places = vec![0usize; entries.len()];
    let total = grid.len();
    let spec = ExternalSpec { grid, sources, fields: fields_of(&schema, attached)?, fills };
    let mut tiles = (0..total).map(|tile| {
        let page = |(list, masks): (usize, &Masked)| {
            if let Some(Pages::Kept { bytes }) = attached.lists.get(list) {
                return Ok(TilePage::Kept(bytes.clone()));
            }
            let place = places.get_mut(list).ok_or_else(|| Error::input("a list of pages that is not there"))?;
            match entries.get(list).and_then(|pages| pages.get(*place)).filter(|(of, _, _)| *of == tile) {
                Some((_, page, mask)) => {
                    *place += 1;
                    Ok(TilePage::Stored { page: *page, pipeline: masks.pipeline(*mask) })
                }
                None => Ok(TilePage::Fill),
            }
        };
        masks.iter().enumerate().map(page).collect()
    });
    array.stage_external(spec, &mut tiles, call)
}

fn source_of(object: &Object) -> ForeignSource {
    let Object { uri, size, time_us, etag } = object;
    let object = ForeignObject { uri: uri.clone(), size: *size, time_us: *time_us, etag: etag.clone() };
    ForeignSource { object, keys: None }
}

/// The fields with the numbers of their attributes, ascending by these.
fn fields_of(schema: &Schema, attached: &Attached) -> Result<Vec<ForeignField>> {
    if attached.attrs.len() != attached.fields.len() {
        return Err(Error::input("what is attached names other attributes than it has fields"));
    }
    let number = |(name, field): (&String, &ForeignField)| {
        let (_, attr) = schema.attr(name)?;
        Ok(ForeignField { attr: attr.id(), ..field.clone() })
    };
    let mut fields: Vec<ForeignField> =
        attached.attrs.iter().zip(&attached.fields).map(number).collect::<Result<_>>()?;
    fields.sort_by_key(|field| field.attr);
    Ok(fields)
}

/// The pipeline of a list, and what is left of it where some filters were skipped.
struct Masked {
    whole: ForeignPipeline,
}

impl Masked {
    fn of(pages: &Pages) -> Result<Self> {
        let whole = match pages {
            Pages::Hdf5 { pipeline, .. } => ForeignPipeline::parse(pipeline)?,
            Pages::Objects { dataset, .. } => objects::pipeline_of(dataset)?,
            Pages::Strided { .. } | Pages::Kept { .. } | Pages::Nothing => ForeignPipeline::none(),
        };
        Ok(Self { whole })
    }

    fn pipeline(&self, mask: u32) -> String {
        if mask == 0 { self.whole.name() } else { self.whole.without(mask).name() }
    }
}

fn bytes_of(digits: &str) -> Result<Vec<u8>> {
    let pair = |at: usize| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes = (0..digits.len()).step_by(2).map(pair).collect::<Option<Vec<u8>>>();
    bytes.ok_or_else(|| Error::input(format!("the fill {digits:?} is not in hexadecimal digits")))
}

fn grid_of(schema: &Schema, attached: &Attached) -> Result<ChunkGrid> {
    let Attached { position, shape, lead, sides, ranks, padded, .. } = attached;
    let wrong = || Error::input("the box that is attached does not fit the dimensions of the array");
    if [position.len(), shape.len(), lead.len()].iter().any(|n| *n != schema.ndim()) || shape.contains(&0) {
        return Err(wrong());
    }
    let (mut ranges, mut origin) = (Vec::new(), Vec::new());
    for (((dim, at), len), lead) in schema.dims().iter().zip(position).zip(shape).zip(lead) {
        let lo = dim.range().lo.checked_add(*at).ok_or_else(wrong)?;
        ranges.push(KeyRange::new(lo, lo.checked_add(len - 1).ok_or_else(wrong)?));
        origin.push(lo.checked_sub(*lead).ok_or_else(wrong)?);
    }
    ChunkGrid::new(Subarray::new(ranges), origin, sides.clone(), ranks.clone(), *padded)
}

fn entries_of(grid: &ChunkGrid, pages: &Pages, sources: &mut [ForeignSource], call: &engine::Call) -> Result<Entries> {
    match pages {
        Pages::Kept { .. } | Pages::Nothing => Ok(Vec::new()),
        Pages::Strided { source, offset, strides, step, record } => {
            let page = |tile: u64| strided_page(grid, tile, (*source, *offset), strides, (*step, *record));
            (0..grid.len()).filter_map(|tile| page(tile).transpose()).collect()
        }
        Pages::Hdf5 { file, dataset, source, decoded, .. } => {
            let entries = chunks_of(grid, file, dataset, (*source, *decoded), call)?;
            in_order(entries, file, dataset)
        }
        Pages::Objects { folder, dataset, source, decoded } => {
            let (entries, keys) = Listed::of(grid, folder, dataset, call)?.entries(*source, *decoded)?;
            let of = sources.get_mut(*source as usize).ok_or_else(|| Error::input("a source that is not there"))?;
            of.keys = Some(keys);
            in_order(entries, folder, dataset)
        }
    }
}

/// The entries ascending by their tiles, each of which has one.
fn in_order(mut entries: Entries, file: &str, dataset: &ForeignDataset) -> Result<Entries> {
    entries.sort_unstable_by_key(|(tile, _, _)| *tile);
    if entries.windows(2).any(|pair| matches!(pair, [a, b] if a.0 == b.0)) {
        return Err(Error::corruption(format!("{file}: the index of {} has a chunk twice", dataset.name)));
    }
    Ok(entries)
}

fn chunks_of(
    grid: &ChunkGrid,
    file: &str,
    dataset: &ForeignDataset,
    (source, decoded): (u32, u32),
    call: &engine::Call,
) -> Result<Entries> {
    let mut entries = Vec::new();
    // An array may have dimensions in front of those of the dataset.
    let outer = grid.counts().len().saturating_sub(dataset.shape.len());
    let opened = opened(file)?;
    walked(file, call, |check| {
        opened.for_each_chunk(dataset, &mut |entry| {
            check(entries.len())?;
            // A chunk beyond the shape is left from a longer one.
            let place = [vec![0; outer], entry.place].concat();
            if let Some(tile) = grid.number_of(&place) {
                let page = ForeignPage::new(source, ByteRange::new(entry.offset, entry.length), decoded);
                entries.push((tile, page, entry.filter_mask));
            }
            Ok(())
        })
    })?;
    Ok(entries)
}

/// A walk through the chunks of `file`, which stops with an error when the call is cancelled: `check` is called with their number.
fn walked(
    file: &str,
    call: &engine::Call,
    walk: impl FnOnce(&mut dyn FnMut(usize) -> gridstone_foreign::Result<()>) -> gridstone_foreign::Result<()>,
) -> Result<()> {
    let mut cancelled = None;
    let found = walk(&mut |count| match call.cancel.check() {
        Err(e) if count.is_multiple_of(4_096) => {
            let message = e.to_string();
            cancelled = Some(e);
            Err(gridstone_foreign::Error::new(gridstone_foreign::ErrorKind::Caller, message))
        }
        _ => Ok(()),
    });
    match cancelled {
        Some(e) => Err(e),
        None => found.map_err(|e| foreign(file, &e)),
    }
}

/// The page of a tile whose cells lie at constant distances; `None` if the tile has no cell.
fn strided_page(
    grid: &ChunkGrid,
    tile: u64,
    (source, offset): (u32, u64),
    strides: &[u64],
    (step, record): (u64, u64),
) -> Result<Option<(u64, ForeignPage, u32)>> {
    let wrong = || Error::input("cells that lie past 2^64 bytes, or in a tile above 1 GiB");
    let Some(cells) = grid.chunk_box(tile) else { return Ok(None) };
    let mut along = cells.ranges().iter().zip(grid.bounds().ranges()).zip(strides);
    let first = along
        .try_fold(offset, |at, ((cell, whole), stride)| at.checked_add((cell.lo - whole.lo).checked_mul(*stride)?));
    let count = u64::try_from(cells.cells()).map_err(|_| wrong())?;
    let length = (count - 1).checked_mul(step).and_then(|before| before.checked_add(record)).ok_or_else(wrong)?;
    let decoded = u32::try_from(length).map_err(|_| wrong())?;
    let offset = first.ok_or_else(wrong)?;
    let page = ForeignPage::new(source, ByteRange::new(offset, length), decoded);
    Ok(Some((tile, page, 0)))
}
