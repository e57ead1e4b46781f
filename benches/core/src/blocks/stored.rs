//! An input as an array on disk, written with blocks of one size.

use super::input::Input;
use gridstone::base::{Error, Result};
use gridstone::engine::{
    Array, At, BlockCells, Call, CellData, Column, Context, Dedup, Durability, Opened, Options, create_array_on,
    open_on,
};
use gridstone::fragment::{Fragment, Section};
use gridstone::runtime::{SystemClock, SystemEntropy};
use gridstone::schema::{Order, Schema};
use gridstone::storage::{LocalStorage, Storage};
use gridstone::store::Store;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// The sizes of an array on disk.
#[derive(Debug, Clone)]
pub(crate) struct Sizes {
    /// The whole fragment.
    pub(crate) total: u64,
    /// The sections of its index.
    pub(crate) index: u64,
    /// The blocks of all fields.
    pub(crate) blocks: u64,
    /// Stored bytes of each field, coordinates first, at most the raw bytes.
    pub(crate) fields: Vec<u64>,
    /// The pipelines chosen.
    pub(crate) pipelines: Vec<String>,
}

/// Sections of an index: the kind of each, and its bytes.
pub(crate) type NamedSections = Vec<(String, Vec<u8>)>;

/// A folder for one array.
#[derive(Debug)]
pub(crate) struct Place {
    folder: PathBuf,
    context: Context,
}

fn no_folder(error: std::io::Error) -> Error {
    Error::input(format!("a temporary folder cannot be made or removed: {error}"))
}

/// A context that writes blocks of `cells` cells, dense or sparse.
///
/// # Errors
/// Input if no block can have that size.
pub(crate) fn context(cells: u32, threads: usize) -> Result<Context> {
    let blocks = BlockCells { dense: cells, sparse: cells, ..BlockCells::default() };
    Context::new(&Options { threads: Some(threads), durability: Durability::Close, blocks, ..Options::default() })
}

impl Place {
    /// A folder of the name `name`, for blocks of `cells` cells.
    ///
    /// # Errors
    /// Input for an impossible size.
    pub(crate) fn new(name: &str, cells: u32, threads: usize) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("gridstone-blocks-{}-{name}-{cells}", std::process::id()));
        Ok(Self { folder, context: context(cells, threads)? })
    }

    fn storage(&self) -> Result<Arc<dyn Storage>> {
        Ok(Arc::new(LocalStorage::new(&self.folder, Durability::Close)?))
    }

    /// Writes the columns of `schema` in one commit, replacing what was here; returns the seconds taken.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn write(&self, input: &Input, schema: &Schema) -> Result<f64> {
        self.remove()?;
        let array = create_array_on(&self.context, self.storage()?, "/", schema.clone(), false)?;
        let kept = |(name, column): &(String, Column)| Some((schema.attr(name).ok()?, name.clone(), column.clone()));
        let attrs: Vec<_> = input.attrs().iter().filter_map(kept).collect();
        let attrs = attrs.iter().map(|(_, name, column)| (name.clone(), column.view())).collect();
        let start = Instant::now();
        let staged = if input.is_sparse() {
            let dims = input.dims().iter().map(Column::view).collect();
            array.stage_cells(CellData { dims, attrs, sorted: false, dedup: Dedup::Error }, &Call::default())?
        } else {
            array.stage_dense(None, &attrs, Order::Row, &Call::default())?
        };
        array.commit(vec![staged], None)?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// The array, opened by the context that wrote it.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn open(&self) -> Result<Array> {
        self.open_with(&self.context)
    }

    /// The array, opened by another context.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn open_with(&self, context: &Context) -> Result<Array> {
        match open_on(context, self.storage()?, "/", false, At::Latest)? {
            Opened::Array(array) => Ok(array),
            Opened::Group(_) => Err(Error::input("a group where an array was created")),
        }
    }

    /// The sizes of the array.
    ///
    /// # Errors
    /// Those of the engine; Input if it has more than one fragment.
    pub(crate) fn sizes(&self) -> Result<Sizes> {
        let fragment = self.fragment()?;
        let root = fragment.root();
        let fields = (0..root.fields.len()).map(|field| stored_bytes(&fragment, field)).collect::<Result<_>>()?;
        Ok(Sizes {
            total: fragment.description().location.len,
            index: root.sections.iter().map(|s| s.range.len).sum(),
            blocks: root.stripes.iter().map(|s| s.blocks).sum(),
            fields,
            pipelines: root.pipelines.clone(),
        })
    }

    /// Bytes of the fragment, and the sections of its index: the kind of each, and its bytes.
    ///
    /// # Errors
    /// Those of [`Place::sizes`].
    pub(crate) fn sections(&self) -> Result<(u64, NamedSections)> {
        let fragment = self.fragment()?;
        let read =
            |section: &Section| Ok((format!("{:?}", section.id), fragment.source().read_one(section.range)?.to_vec()));
        let sections = fragment.root().sections.iter().map(read).collect::<Result<_>>()?;
        Ok((fragment.description().location.len, sections))
    }

    /// The one fragment of the array.
    fn fragment(&self) -> Result<Fragment> {
        let store = Store::new(self.storage()?, Arc::new(SystemClock), Arc::new(SystemEntropy));
        let snapshot = store.latest()?;
        let state = snapshot.array_by_id(snapshot.node("/")?.id())?.clone();
        let fragments = state.fragments(None)?;
        let [description] = fragments.as_slice() else { return Err(Error::input("an array of one fragment expected")) };
        Fragment::open(store.files().open(description.location.file)?, description.clone(), state.schema())
    }

    fn remove(&self) -> Result<()> {
        if self.folder.exists() { std::fs::remove_dir_all(&self.folder).map_err(no_folder) } else { Ok(()) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The rest is in the folder for temporary files.
        let _ = self.remove();
    }
}

fn stored_bytes(fragment: &Fragment, field: usize) -> Result<u64> {
    let root = fragment.root();
    let width = root.fields.get(field).and_then(|f| f.datatype.width()).unwrap_or(1) as u64;
    let mut bytes = 0;
    for tile in 0..root.tiles {
        for block in 0..fragment.tile_blocks(tile)? {
            bytes += fragment.block(field, tile, block, 0)?.range.len;
        }
    }
    // Blocks of raw pages are returned with the whole chunks they lie in, so that some bytes count twice.
    Ok(bytes.min(root.cells * width))
}
