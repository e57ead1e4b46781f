//! An array at one version of its store: what it is, and reading. Writing is in [`super::write`].

use super::address::{At, look_at};
use super::boxes::{ReadBox, hull_of, parse_box};
use super::claim::Claim;
use super::history::{Historian, VersionListing};
use super::listing::FragmentListing;
use super::session::{Direct, Session, settled};
use super::{Call, Context};
use crate::base::{CounterSnapshot, Error, ErrorKind, Id, Result};
use crate::fragment;
use crate::query::{ReadContext, ReadOrder, Request, Target, read_dense, read_dense_into, touched_cells};
use crate::schema::{Region, Schema, Subarray};
use crate::store::{ArrayState, Changes, LostBoxes, Operation, Snapshot, Store};
use crate::tile::Cells;
use std::sync::Arc;

/// Fragments, and the boxes of damaged manifest pages, which may tell of others.
type DescribedAround = (Vec<Arc<fragment::Description>>, LostBoxes);

/// An array; cloning gives another handle at the same version.
///
/// The cells of a sparse array are written and read as columns: coordinates, and values by attribute.
///
/// ```
/// use gridstone::{Attribute, Call, CellData, Column, ColumnView, Condition, Context, Datatype, Dedup, Dimension, Options};
/// use gridstone::{ReadOrder, Schema, SchemaOptions};
///
/// # fn main() -> gridstone::Result<()> {
/// let context = Context::new(&Options::default())?;
/// let dims = vec![
///     Dimension::new("lon", Datatype::Float64, "-180", "180", None)?,
///     Dimension::new("lat", Datatype::Float64, "-90", "90", None)?,
/// ];
/// let attrs = vec![
///     Attribute::new("name", Datatype::String, false, None, "auto")?,
///     Attribute::new("knots", Datatype::Float32, true, None, "auto")?,
/// ];
/// let options = SchemaOptions { sparse: true, ..SchemaOptions::default() };
/// let ships = gridstone::create_array(&context, "mem://ships", "/", Schema::new(dims, attrs, options)?, false)?;
///
/// let (names, knots) = (Column::of_texts(["Ada", "Büßer", "Zoë"]), Column::of_options(&[Some(0.1_f32), None, Some(12.5)]));
/// let data = CellData {
///     dims: vec![ColumnView::of(&[-74.01, 4.05, -74.02]), ColumnView::of(&[40.70, 51.95, 40.69])],
///     attrs: vec![("name".to_owned(), names.view()), ("knots".to_owned(), knots.view())],
///     sorted: false,
///     dedup: Dedup::Error,
/// };
/// let call = Call::default();
/// ships.commit(vec![ships.stage_cells(data, &call)?], None)?;
///
/// // A box, a condition, or both. Coordinates come with the cells.
/// let harbour = ships.region(&[vec![(-75.0..=-73.0).into(), (40.0..=41.0).into()]])?;
/// let slow = Condition::parse("knots < 1")?;
/// let (cells, _) = ships.read_region(Some(&harbour), None, Some(&slow), ReadOrder::Row, &call)?;
/// assert_eq!((cells.count, cells.dims[0].numbers::<f64>()?), (1, &[-74.01][..]));
/// assert_eq!(cells.attrs[0].texts()?, ["Ada"]);
///
/// // More cells than memory holds are streamed.
/// let mut scan = ships.scan_region(None, None, None, ReadOrder::Any, 1 << 20, &call)?;
/// let mut found = 0;
/// while let Some(batch) = scan.next_batch()? {
///     found += batch.count;
/// }
/// assert_eq!(found, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Array {
    context: Context,
    pub(super) store: Arc<Store>,
    session: Arc<dyn Session>,
    id: Id,
    writable: bool,
    pinned: bool,
}

impl Clone for Array {
    fn clone(&self) -> Self {
        let (context, store) = (self.context.clone(), self.store.clone());
        Self { context, store, session: self.session.another(), ..*self }
    }
}

impl Array {
    pub(super) fn new(
        context: Context,
        store: Arc<Store>,
        snapshot: Arc<Snapshot>,
        id: Id,
        writable: bool,
        pinned: bool,
    ) -> Self {
        let session = Arc::new(Direct::new(&context, &store, snapshot));
        Self { context, store, session, id, writable, pinned }
    }

    /// The same array at the same version with another context.
    pub(super) fn with_context(&self, context: Context) -> Self {
        Self { context, ..self.clone() }
    }

    /// The array with another id, as this handle shows its own.
    pub(super) fn with_id(&self, id: Id) -> Self {
        Self { id, ..self.clone() }
    }

    /// The same array through another session.
    pub(super) fn through(self, session: Arc<dyn Session>) -> Self {
        Self { session, ..self }
    }

    /// Whether it is a part of a transaction.
    pub fn in_transaction(&self) -> bool {
        self.session.is_transaction()
    }

    pub(super) fn session(&self) -> &dyn Session {
        self.session.as_ref()
    }

    /// The store that it is in.
    pub(super) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// An Input error on an array of a transaction; `what` cannot be done there.
    pub(super) fn check_outside(&self, what: &str) -> Result<()> {
        if self.in_transaction() {
            return Err(Error::input(format!("{what} inside a transaction; open the array outside of it for that")));
        }
        Ok(())
    }

    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.session.snapshot()
    }

    /// The fragments of `state`, an array of `snapshot`, that touch `within`. If a vacuum has taken away the pages that
    /// describe them, the same version is opened anew, and the handle keeps that.
    pub(super) fn described(
        &self,
        snapshot: &Arc<Snapshot>,
        state: &ArrayState,
        within: Option<&Subarray>,
    ) -> Result<Vec<Arc<fragment::Description>>> {
        if let Ok(fragments) = state.fragments(within) {
            return Ok(fragments);
        }
        let look = |snapshot: &Snapshot| snapshot.array_by_id(self.id)?.fragments(within);
        Ok(settled(self.session(), snapshot, look)?.1)
    }

    /// As [`Array::described`], around manifest pages that are damaged, with those. What a vacuum has taken away is not damaged.
    pub(super) fn described_around(&self, snapshot: &Arc<Snapshot>, within: &Subarray) -> Result<DescribedAround> {
        let mut last = None;
        let outcome = self.session.settle(snapshot, &mut |snapshot| {
            let (fragments, lost) = snapshot.array_by_id(self.id)?.fragments_around(Some(within))?;
            let complete = lost.is_empty();
            last = Some((fragments, lost));
            if complete { Ok(()) } else { Err(Error::corruption("manifest pages cannot be read")) }
        });
        match (outcome, last) {
            (Err(e), None) => Err(e),
            (Err(e), _) if e.kind() != ErrorKind::Corruption => Err(e),
            (_, last) => Ok(last.unwrap_or_default()),
        }
    }

    /// What `look` finds in the version that the handle shows, and the snapshot that has it. If a vacuum has taken away what that rests
    /// on, the same version is opened anew, and the handle keeps that.
    pub(super) fn looked_in<T>(&self, look: impl FnMut(&Snapshot) -> Result<T>) -> Result<(Arc<Snapshot>, T)> {
        settled(self.session(), &self.snapshot(), look)
    }

    pub(super) fn state(&self) -> Result<(Arc<Snapshot>, Arc<ArrayState>)> {
        self.session.check_open()?;
        self.looked_in(|snapshot| snapshot.array_by_id(self.id))
    }

    /// What `look` finds in the array's state, as [`Array::looked_in`].
    fn looked<T>(&self, look: impl Fn(&ArrayState) -> Result<T>) -> Result<T> {
        self.session.check_open()?;
        Ok(self.looked_in(|snapshot| look(&*snapshot.array_by_id(self.id)?))?.1)
    }

    /// What it was opened with.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The store's URI.
    pub fn uri(&self) -> String {
        self.store.storage().describe()
    }

    /// The path in the store.
    ///
    /// # Errors
    /// NotFound (the array was removed in this version), SnapshotExpired (it has been vacuumed), Corruption, Storage.
    pub fn path(&self) -> Result<String> {
        Ok(self.state()?.1.path().to_owned())
    }

    /// The permanent id.
    pub fn id(&self) -> Id {
        self.id
    }

    /// Whether it was opened for writing.
    pub fn writable(&self) -> bool {
        self.writable
    }

    /// The store's version that it shows.
    pub fn version(&self) -> u64 {
        self.snapshot().version()
    }

    /// When that version was committed: UTC in microseconds.
    pub fn time_us(&self) -> i64 {
        self.snapshot().time_us()
    }

    /// Whether what is asked of the array, but for cells and metadata, is answered without reading.
    pub fn is_at_hand(&self) -> bool {
        self.snapshot().is_at_hand(self.id)
    }

    /// The schema at that version.
    ///
    /// # Errors
    /// NotFound (the array was removed in this version), SnapshotExpired (it has been vacuumed), Corruption, Storage.
    pub fn schema(&self) -> Result<Arc<Schema>> {
        Ok(Arc::clone(self.state()?.1.schema()))
    }

    /// Moves to the newest version and gives it.
    ///
    /// # Errors
    /// Input: the handle was opened at a version. Corruption, Storage.
    pub fn refresh(&self) -> Result<u64> {
        self.check_outside("an array cannot be moved to another version")?;
        if self.pinned {
            return Err(Error::input("this array was opened at a version; open it without one to follow the newest"));
        }
        let newer = self.store.refresh(&self.snapshot())?;
        let (newer, _) = self.store.settling_newest(newer, |newer| newer.array_by_id(self.id))?;
        self.session.move_to(newer);
        Ok(self.version())
    }

    /// The same array, read-only, at another version.
    ///
    /// # Errors
    /// NotFound (no such version, or no such array in it), SnapshotExpired (it has been vacuumed), Corruption, Storage.
    pub fn at(&self, at: At) -> Result<Self> {
        let (snapshot, _) = look_at(&self.store, at, |snapshot| snapshot.array_by_id(self.id))?;
        Ok(Self::new(self.context.clone(), self.store.clone(), snapshot, self.id, false, at != At::Latest))
    }

    /// The same array, read-only, at the version that this handle shows now, whatever becomes of the handle; in a transaction a
    /// part of that as this one is.
    pub fn still(&self) -> Self {
        Self { writable: false, pinned: true, ..self.clone() }
    }

    /// The versions up to this one that changed this array, oldest first.
    ///
    /// # Errors
    /// SnapshotExpired (versions were vacuumed meanwhile), Corruption, Storage, Cancelled.
    pub fn history(&self, call: &Call) -> Result<Vec<VersionListing>> {
        let (snapshot, mut versions) = (self.snapshot(), Vec::new());
        let (snapshot, tags) = self.store.settling(&snapshot, |snapshot| snapshot.retained().tags())?;
        let mut historian = Historian::new(&self.store, tags);
        for record in self.store.history(1, snapshot.version())? {
            call.cancel.check()?;
            let record = record?;
            if record.touches(self.id) {
                versions.push(historian.version(&record, Some(self.id)));
            }
        }
        Ok(versions)
    }

    /// The union of all fragments' boxes, tombstones left out; `None` if there is no cell.
    ///
    /// # Errors
    /// NotFound (the array was removed in this version), SnapshotExpired (it has been vacuumed), Corruption, Storage.
    pub fn nonempty_domain(&self) -> Result<Option<Vec<(String, String)>>> {
        let (snapshot, state) = self.state()?;
        self.note(&state.schema().domain());
        let fragments = self.described(&snapshot, &state, None)?;
        let boxes = fragments.iter().filter(|d| d.kind.holds_cells()).map(|d| d.bounds.clone());
        let schema = state.schema();
        Ok(boxes.reduce(|a, b| a.union(&b)).map(|sub| schema.ends(&sub)))
    }

    /// The fragments, oldest order first.
    ///
    /// # Errors
    /// NotFound (the array was removed in this version), SnapshotExpired (it has been vacuumed), Corruption, Storage.
    pub fn fragments(&self) -> Result<Vec<FragmentListing>> {
        let (snapshot, state) = self.state()?;
        let schema = state.schema();
        self.note(&schema.domain());
        Ok(self.described(&snapshot, &state, None)?.iter().map(|d| FragmentListing::of(d, schema)).collect())
    }

    /// A claim on the version of `snapshot` from now on, for work that takes long.
    pub(super) fn claim(&self, snapshot: &Snapshot) -> Claim {
        self.claim_version(snapshot.version())
    }

    /// A claim on a version from now on.
    pub(super) fn claim_version(&self, version: u64) -> Claim {
        Claim::held(&self.context, &self.store, version)
    }

    /// What a read of `snapshot` needs; from now on it holds a claim on it.
    pub(super) fn read_context(&self, snapshot: &Arc<Snapshot>, call: &Call) -> ReadContext {
        let (files, cache) = self.session.reading(self.id, snapshot);
        ReadContext { cache, ..self.context.read_context(self.store.place(snapshot.store()), files, call) }
    }

    pub(super) fn plan(
        &self,
        region: Option<&Region>,
        attrs: Option<&[String]>,
        order: ReadOrder,
        call: &Call,
    ) -> Result<(ReadContext, Target, Request)> {
        let (snapshot, state) = self.state()?;
        let schema = state.schema().clone();
        let request = Request::new(&schema, Some(hull_of(&schema, region)?), attrs, order)?;
        self.note(&request.sub);
        let target =
            Target { array: self.id, fragments: self.described(&snapshot, &state, Some(&request.sub))?, schema };
        Ok((self.read_context(&snapshot, call), target, request))
    }

    /// As [`Array::is_quick_box`], of a box in texts.
    pub fn is_quick(&self, sub: ReadBox<'_>) -> bool {
        let region = self.schema().and_then(|schema| parse_box(&schema, sub));
        region.map_or(true, |region| self.is_quick_box(region.as_ref()))
    }

    /// Whether reading a box takes a millisecond or so, and so needs no check for an interrupt.
    pub fn is_quick_box(&self, region: Option<&Region>) -> bool {
        const CELLS_MAX: u64 = 1 << 18;
        let Ok((_, state)) = self.state() else { return true };
        let schema = state.schema();
        // A guess without a look at the fragments: that they were written as this context would write them.
        let block_cells = u64::from(self.context.blocks.dense);
        let touched = |sub: &Subarray| touched_cells(schema, sub, block_cells);
        let few = |sub: &Subarray| touched(sub).saturating_mul(schema.attrs().len() as u64) <= CELLS_MAX;
        if schema.sparse() || region.is_none() {
            return false;
        }
        let fixed = schema.attrs().iter().all(|a| !a.datatype().is_var());
        hull_of(schema, region).map_or(true, |sub| fixed && few(&sub) && state.has_few_fragments())
    }

    /// As [`Array::read_box`], of a box in texts.
    ///
    /// # Errors
    /// As there.
    pub fn read(
        &self,
        sub: ReadBox<'_>,
        attrs: Option<&[String]>,
        order: ReadOrder,
        call: &Call,
    ) -> Result<(Cells, Option<Vec<u64>>, CounterSnapshot)> {
        let region = parse_box(self.schema()?.as_ref(), sub)?;
        self.read_box(region.as_ref(), attrs, order, call)
    }

    /// Reads a box (`None`: the whole domain) whole; gives the cells, the box's shape (dense arrays), and what the read did.
    ///
    /// # Errors
    /// Input (unknown attributes), Bounds, Corruption, Storage, Cancelled; Budget if the result does not fit into memory.
    pub fn read_box(
        &self,
        region: Option<&Region>,
        attrs: Option<&[String]>,
        order: ReadOrder,
        call: &Call,
    ) -> Result<(Cells, Option<Vec<u64>>, CounterSnapshot)> {
        if self.schema()?.sparse() {
            let (cells, counters) = self.read_region(region, attrs, None, order, call)?;
            return Ok((cells, None, counters));
        }
        let (context, target, request) = self.plan(region, attrs, order, call)?;
        let shape = request.sub.shape();
        if shape.contains(&0) {
            // The domain is empty. As of any box, there are no coordinates.
            let cells = Cells { dims: Vec::new(), ..Cells::none(&target.schema, &request.attrs) };
            return Ok((cells, Some(shape), context.counters.snapshot()));
        }
        let cells = context.explain_missing(read_dense(&context, &target, &request))?;
        Ok((cells, Some(shape), context.counters.snapshot()))
    }

    /// As [`Array::read_box_into`], of a box in texts.
    ///
    /// # Errors
    /// As there.
    pub fn read_into(
        &self,
        sub: ReadBox<'_>,
        attrs: Option<&[String]>,
        order: ReadOrder,
        outs: &mut [&mut [u8]],
        call: &Call,
    ) -> Result<CounterSnapshot> {
        let region = parse_box(self.schema()?.as_ref(), sub)?;
        self.read_box_into(region.as_ref(), attrs, order, outs, call)
    }

    /// Reads a box of a dense array into buffers of the caller, one per attribute asked for and as long as its cells;
    /// gives what the read did.
    ///
    /// # Errors
    /// Those of [`Array::read_box`]; Input for attributes that may be null, vary in length or are bool: those need
    /// [`Array::read_box`].
    pub fn read_box_into(
        &self,
        region: Option<&Region>,
        attrs: Option<&[String]>,
        order: ReadOrder,
        outs: &mut [&mut [u8]],
        call: &Call,
    ) -> Result<CounterSnapshot> {
        let (context, target, request) = self.plan(region, attrs, order, call)?;
        if target.schema.sparse() {
            return Err(Error::input(
                "only a dense read knows before how many cells it will find; read without buffers",
            ));
        }
        if request.sub.cells() == 0 && outs.iter().all(|out| out.is_empty()) {
            return Ok(context.counters.snapshot());
        }
        if request.sub.cells() == 0 {
            return Err(Error::input("the array has no cell yet, and buffers for some were given; give empty ones"));
        }
        context.explain_missing(read_dense_into(&context, &target, &request, outs))?;
        Ok(context.counters.snapshot())
    }

    /// The JSON text of a metadata value.
    ///
    /// # Errors
    /// NotFound (the array was removed in this version), SnapshotExpired (it has been vacuumed), Corruption, Storage.
    pub fn metadata(&self, key: &str) -> Result<Option<String>> {
        self.note_key(Some(key));
        self.looked(|state| state.metadata().get(key))
    }

    /// The metadata's keys, sorted.
    ///
    /// # Errors
    /// NotFound (the array was removed in this version), SnapshotExpired (it has been vacuumed), Corruption, Storage.
    pub fn metadata_keys(&self) -> Result<Vec<String>> {
        self.note_key(None);
        self.looked(|state| Ok(state.metadata().all()?.keys().cloned().collect()))
    }

    /// Sets (JSON text) or removes (`None`) metadata keys in one commit.
    ///
    /// # Errors
    /// Input (not writable, text that is no JSON), Conflict, CommitUnknown, Storage.
    pub fn set_metadata(&self, changes: Vec<(String, Option<String>)>) -> Result<u64> {
        if changes.is_empty() {
            return Ok(self.version());
        }
        let operations = vec![Operation::SetMetadata { node: self.id, changes }];
        self.commit_changes(&self.snapshot(), Changes::new(operations))
    }
}
