//! Arrays: properties, reading, staging, committing, metadata, listings.

use crate::boxes::{Boxes, Sides, box_region, region, side_spans, spans};
use crate::cells::{Cells, Names, Scan, stats_dict};
use crate::columns::{Outs, columns, views};
use crate::condition::{GivenCondition, branch};
use crate::consolidate;
use crate::errors::raise;
use crate::interrupt::{self, run_quick};
use crate::listings::tiles_dict;
use crate::portions::Portions;
use crate::positions::{GivenMask, Selection};
use crate::retention::options;
use crate::store::{GivenKey, Version, at, commit_key_of};
use crate::writer::{Staged, Writer, hold_attrs, hold_dims, take_all, with_key};
use gridstone::engine::{self, Branch, CellData, Dedup, FragmentListing, PortionsOf, ReadOrder, VersionListing};
use gridstone::schema::{Evolution, Order, Region, Schema};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;

/// An array at one version of its store.
#[pyclass(frozen, module = "gridstone._native")]
pub(crate) struct Array {
    pub(crate) inner: engine::Array,
}

/// What a read of cells is asked for.
struct Asked {
    region: Option<Region>,
    condition: Option<Branch>,
    order: ReadOrder,
}

fn ordered(py: Python<'_>, order: &str) -> PyResult<ReadOrder> {
    ReadOrder::parse(order).map_err(|e| raise(py, &e))
}

impl Array {
    /// The arguments that all readers of cells take.
    fn asked(
        &self,
        py: Python<'_>,
        boxes: Option<Boxes>,
        condition: Option<GivenCondition<'_>>,
        order: &str,
    ) -> PyResult<Asked> {
        let (order, condition) = (ordered(py, order)?, condition.as_ref().map(branch));
        Ok(Asked { region: region(py, &self.inner, boxes)?, condition, order })
    }

    fn names(&self, py: Python<'_>, attrs: Option<&[String]>, dims: bool) -> PyResult<Names> {
        let schema = self.schema(py)?;
        let all = || schema.attrs().iter().map(|a| a.name().to_owned()).collect();
        let dims = if dims { schema.coordinates().map(|d| d.name().to_owned()).collect() } else { Vec::new() };
        Ok(Names { dims, attrs: attrs.map_or_else(all, <[String]>::to_vec) })
    }

    fn schema(&self, py: Python<'_>) -> PyResult<std::sync::Arc<Schema>> {
        self.look(py, || self.inner.schema())
    }

    fn look<R: Send>(&self, py: Python<'_>, work: impl FnOnce() -> gridstone::base::Result<R> + Send) -> PyResult<R> {
        interrupt::look(py, &self.inner, work)
    }

    fn ask<R: Send>(&self, py: Python<'_>, work: impl FnOnce() -> gridstone::base::Result<R> + Send) -> PyResult<R> {
        interrupt::ask(py, self.inner.context(), &self.inner.uri(), work)
    }

    /// Looks, or asks if there is a commit key, which is looked for in the store.
    fn look_or_ask<R: Send>(
        &self,
        py: Python<'_>,
        is_keyed: bool,
        work: impl FnOnce() -> gridstone::base::Result<R> + Send,
    ) -> PyResult<R> {
        if is_keyed { self.ask(py, work) } else { self.look(py, work) }
    }

    /// The Python face of a writer of these attributes.
    fn streaming(&self, py: Python<'_>, inner: engine::Writer, attrs: Option<&[String]>) -> PyResult<Writer> {
        let schema = self.schema(py)?;
        let wanted = |name: &str| attrs.is_none_or(|given| given.iter().any(|g| g == name));
        let names = schema.attrs().iter().map(|a| a.name()).filter(|n| wanted(n)).map(str::to_owned).collect();
        Ok(Writer::new(self.inner.context().clone(), inner, schema, names))
    }
}

#[pymethods]
impl Array {
    #[getter]
    fn uri(&self) -> String {
        self.inner.uri()
    }

    /// The id of the key that seals the store, in hexadecimal digits; None if it is not sealed.
    #[getter]
    fn key_id(&self) -> Option<String> {
        self.inner.key_id().map(|id| id.to_string())
    }

    #[getter]
    fn path(&self, py: Python<'_>) -> PyResult<String> {
        self.look(py, || self.inner.path())
    }

    #[getter]
    fn id(&self) -> String {
        self.inner.id().to_string()
    }

    #[getter]
    fn writable(&self) -> bool {
        self.inner.writable()
    }

    #[getter]
    fn version(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.inner.version())
    }

    #[getter]
    fn timestamp_us(&self, py: Python<'_>) -> i64 {
        py.detach(|| self.inner.time_us())
    }

    #[getter]
    fn schema_json(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.schema(py)?.to_json_with_reach())
    }

    fn refresh(&self, py: Python<'_>) -> PyResult<u64> {
        self.ask(py, || self.inner.refresh())
    }

    #[pyo3(signature = (version, timestamp_us))]
    fn at(&self, py: Python<'_>, version: Option<Version>, timestamp_us: Option<i64>) -> PyResult<Self> {
        let (number, tag) = Version::parts(version);
        let at = at(py, number, timestamp_us)?;
        let found = self.ask(py, || tag.map_or_else(|| self.inner.at(at), |tag| self.inner.at_tag(&tag)));
        Ok(Self { inner: found? })
    }

    /// The same array, read-only, at the version that this handle shows now.
    fn still(&self, py: Python<'_>) -> Self {
        Self { inner: py.detach(|| self.inner.still()) }
    }

    fn history(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let versions = interrupt::run(py, self.inner.context(), None, |call| self.inner.history(call))?;
        Ok(versions.iter().map(VersionListing::to_json).collect())
    }

    fn nonempty_domain(&self, py: Python<'_>) -> PyResult<Option<Vec<(String, String)>>> {
        self.ask(py, || self.inner.nonempty_domain())
    }

    fn fragments(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let all = self.ask(py, || self.inner.fragments())?;
        Ok(all.iter().map(FragmentListing::to_json).collect())
    }

    #[pyo3(signature = (boxes = None))]
    fn tiles(&self, py: Python<'_>, boxes: Option<Boxes>) -> PyResult<Py<PyDict>> {
        let region = region(py, &self.inner, boxes)?;
        let tiles = interrupt::run(py, self.inner.context(), None, |call| self.inner.tiles(region.as_ref(), call))?;
        tiles_dict(py, self.schema(py)?.as_ref(), &tiles)
    }

    #[pyo3(signature = (r#box, attrs, order, progress = None))]
    fn read(
        &self,
        py: Python<'_>,
        r#box: Option<Sides>,
        attrs: Option<Vec<String>>,
        order: &str,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Cells> {
        let (order, spans, uri) = (ordered(py, order)?, r#box.map(|sides| [side_spans(sides)]), self.inner.uri());
        let may_be_quick = !engine::is_remote(&uri) && progress.is_none();
        let (region, quick) = self.look(py, || {
            let region = spans.map(|spans| self.inner.region(&spans)).transpose()?;
            let quick = may_be_quick && self.inner.is_quick_box(region.as_ref());
            Ok((region, quick))
        })?;
        let work = |call: &engine::Call| self.inner.read_box(region.as_ref(), attrs.as_deref(), order, call);
        let context = self.inner.context();
        let found = if quick { run_quick(py, work) } else { interrupt::read(py, context, &uri, progress, work) };
        let (cells, shape, stats) = found?;
        let home = Some(self.inner.context().arena());
        Cells::new(py, &self.names(py, attrs.as_deref(), shape.is_none())?, cells, shape, stats, home)
    }

    #[pyo3(signature = (boxes, attrs, condition, order, progress = None))]
    fn read_cells(
        &self,
        py: Python<'_>,
        boxes: Option<Boxes>,
        attrs: Option<Vec<String>>,
        condition: Option<GivenCondition<'_>>,
        order: &str,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Cells> {
        let Asked { region, condition, order } = self.asked(py, boxes, condition, order)?;
        let (cells, stats) = interrupt::read(py, self.inner.context(), &self.inner.uri(), progress, |call| {
            self.inner.read_region(region.as_ref(), attrs.as_deref(), condition.as_deref(), order, call)
        })?;
        let home = Some(self.inner.context().arena());
        Cells::new(py, &self.names(py, attrs.as_deref(), true)?, cells, None, stats, home)
    }

    #[pyo3(signature = (boxes, attrs, condition, order, progress = None))]
    fn read_around(
        &self,
        py: Python<'_>,
        boxes: Option<Boxes>,
        attrs: Option<Vec<String>>,
        condition: Option<GivenCondition<'_>>,
        order: &str,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Cells> {
        let Asked { region, condition, order } = self.asked(py, boxes, condition, order)?;
        let found = interrupt::run(py, self.inner.context(), progress, |call| {
            self.inner.read_region_around(region.as_ref(), attrs.as_deref(), condition.as_deref(), order, call)
        })?;
        let names = self.names(py, attrs.as_deref(), found.shape.is_none())?;
        let cells = Cells::new(py, &names, found.cells, found.shape, found.counters, None)?;
        Ok(cells.with_damage(&found.skipped))
    }

    #[pyo3(signature = (boxes, attrs, order, batch_bytes, condition = None))]
    fn scan_around(
        &self,
        py: Python<'_>,
        boxes: Option<Boxes>,
        attrs: Option<Vec<String>>,
        order: &str,
        batch_bytes: u64,
        condition: Option<GivenCondition<'_>>,
    ) -> PyResult<Scan> {
        let Asked { region, condition, order } = self.asked(py, boxes, condition, order)?;
        let (scan, skipped) = interrupt::run(py, self.inner.context(), None, |call| {
            let form = (order, batch_bytes);
            self.inner.scan_region_around(region.as_ref(), attrs.as_deref(), condition.as_deref(), form, call)
        })?;
        let scan = Scan::new(self.inner.context().clone(), self.names(py, attrs.as_deref(), true)?, scan);
        Ok(scan.with_damage(&skipped))
    }

    #[pyo3(signature = (r#box, attrs, order, outs, progress = None))]
    fn read_into(
        &self,
        py: Python<'_>,
        r#box: Option<Sides>,
        attrs: Vec<String>,
        order: &str,
        outs: Vec<Bound<'_, PyAny>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyDict>> {
        let (order, region) = (ordered(py, order)?, box_region(py, &self.inner, r#box)?);
        let mut held = Outs::new(py, &outs)?;
        let work = |call: &engine::Call| {
            self.inner.read_box_into(region.as_ref(), Some(&attrs), order, &mut held.slices(), call)
        };
        let stats = interrupt::read(py, self.inner.context(), &self.inner.uri(), progress, work)?;
        stats_dict(py, &stats)
    }

    #[pyo3(signature = (dims, attrs, progress = None))]
    fn points(
        &self,
        py: Python<'_>,
        dims: &Bound<'_, PyAny>,
        attrs: Option<Vec<String>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Cells> {
        let schema = self.schema(py)?;
        let held = hold_dims(&schema, dims)?;
        let work = |call: &engine::Call| self.inner.points(&columns(&held, call)?, attrs.as_deref(), call);
        let (cells, stats) = interrupt::read(py, self.inner.context(), &self.inner.uri(), progress, work)?;
        Cells::new(py, &self.names(py, attrs.as_deref(), schema.sparse())?, cells, None, stats, None)
    }

    #[pyo3(signature = (chosen, mask, attrs))]
    fn read_positions(
        &self,
        py: Python<'_>,
        chosen: Vec<Bound<'_, PyAny>>,
        mask: Option<GivenMask<'_>>,
        attrs: Option<Vec<String>>,
    ) -> PyResult<Cells> {
        let selection = Selection::new(&chosen, mask)?;
        let work = |call: &engine::Call| {
            self.inner.read_positions(selection.chosen(), selection.mask()?, attrs.as_deref(), call)
        };
        let (cells, stats) = interrupt::read(py, self.inner.context(), &self.inner.uri(), None, work)?;
        let names = self.names(py, attrs.as_deref(), self.schema(py)?.sparse())?;
        Cells::new(py, &names, cells, None, stats, Some(self.inner.context().arena()))
    }

    #[pyo3(signature = (boxes, attrs, order, batch_bytes, condition = None))]
    fn scan(
        &self,
        py: Python<'_>,
        boxes: Option<Boxes>,
        attrs: Option<Vec<String>>,
        order: &str,
        batch_bytes: u64,
        condition: Option<GivenCondition<'_>>,
    ) -> PyResult<Scan> {
        let Asked { region, condition, order } = self.asked(py, boxes, condition, order)?;
        let scan = interrupt::run(py, self.inner.context(), None, |call| {
            let (region, condition) = (region.as_ref(), condition.as_deref());
            self.inner.scan_region(region, attrs.as_deref(), condition, order, batch_bytes, call)
        })?;
        Ok(Scan::new(self.inner.context().clone(), self.names(py, attrs.as_deref(), true)?, scan))
    }

    #[pyo3(signature = (boxes, attrs, order, columns, batch_bytes, condition = None))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's, by position")]
    fn portions(
        &self,
        py: Python<'_>,
        boxes: Option<Boxes>,
        attrs: Vec<String>,
        order: &str,
        columns: Vec<crate::portions::Given<'_>>,
        batch_bytes: u64,
        condition: Option<GivenCondition<'_>>,
    ) -> PyResult<Portions> {
        let Asked { region, condition, order } = self.asked(py, boxes, condition, order)?;
        let names = self.names(py, Some(&attrs), true)?;
        let (region, condition) = (region.as_ref(), condition.as_deref());
        let wanted = PortionsOf { region, attrs: &attrs, condition, order, bytes: batch_bytes };
        let inner = interrupt::run(py, self.inner.context(), None, |call| self.inner.portions(&wanted, call))?;
        let names = [names.dims, names.attrs].concat();
        Portions::new(py, self.inner.context().clone(), names, columns, inner)
    }

    #[pyo3(signature = (r#box, attrs, layout, progress = None, commit_key = None, grow = false))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's, by position")]
    fn stage_dense(
        &self,
        py: Python<'_>,
        r#box: Sides,
        attrs: &Bound<'_, PyDict>,
        layout: &str,
        progress: Option<Py<PyAny>>,
        commit_key: Option<Vec<u8>>,
        grow: bool,
    ) -> PyResult<Staged> {
        let key = commit_key_of(py, commit_key)?;
        let layout = Order::parse(layout).map_err(|e| raise(py, &e))?;
        let region = box_region(py, &self.inner, Some(r#box))?;
        let held = hold_attrs(self.schema(py)?.as_ref(), attrs)?;
        let work = |call: &engine::Call| {
            let call = &call.with_key(key.clone()).growing(grow);
            self.inner.stage_box(region.as_ref(), &views(&held, call)?, layout, call)
        };
        interrupt::run(py, self.inner.context(), progress, work).map(Staged::new)
    }

    #[pyo3(signature = (dims, attrs, sorted, dedup, progress = None, commit_key = None, grow = false))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's, by position")]
    fn stage_cells(
        &self,
        py: Python<'_>,
        dims: &Bound<'_, PyAny>,
        attrs: &Bound<'_, PyDict>,
        sorted: bool,
        dedup: &str,
        progress: Option<Py<PyAny>>,
        commit_key: Option<Vec<u8>>,
        grow: bool,
    ) -> PyResult<Staged> {
        let key = commit_key_of(py, commit_key)?;
        let dedup = Dedup::parse(dedup).map_err(|e| raise(py, &e))?;
        let schema = self.schema(py)?;
        let (held_dims, held_attrs) = (hold_dims(&schema, dims)?, hold_attrs(&schema, attrs)?);
        let work = |call: &engine::Call| {
            let data = CellData { dims: columns(&held_dims, call)?, attrs: views(&held_attrs, call)?, sorted, dedup };
            self.inner.stage_cells(data, &call.with_key(key.clone()).growing(grow))
        };
        interrupt::run(py, self.inner.context(), progress, work).map(Staged::new)
    }

    #[pyo3(signature = (chosen, mask, attrs))]
    fn stage_positions(
        &self,
        py: Python<'_>,
        chosen: Vec<Bound<'_, PyAny>>,
        mask: Option<GivenMask<'_>>,
        attrs: &Bound<'_, PyDict>,
    ) -> PyResult<Staged> {
        let selection = Selection::new(&chosen, mask)?;
        let held = hold_attrs(self.schema(py)?.as_ref(), attrs)?;
        let work = |call: &engine::Call| {
            self.inner.stage_positions(selection.chosen(), selection.mask()?, &views(&held, call)?, call)
        };
        interrupt::run(py, self.inner.context(), None, work).map(Staged::new)
    }

    #[pyo3(signature = (dims, progress = None, commit_key = None))]
    fn stage_delete(
        &self,
        py: Python<'_>,
        dims: &Bound<'_, PyAny>,
        progress: Option<Py<PyAny>>,
        commit_key: Option<Vec<u8>>,
    ) -> PyResult<Staged> {
        let key = commit_key_of(py, commit_key)?;
        let held = hold_dims(self.schema(py)?.as_ref(), dims)?;
        let work = |call: &engine::Call| self.inner.stage_delete(&columns(&held, call)?, &call.with_key(key.clone()));
        interrupt::run(py, self.inner.context(), progress, work).map(Staged::new)
    }

    #[pyo3(signature = (boxes, commit_key = None))]
    fn stage_delete_boxes(&self, py: Python<'_>, boxes: Boxes, commit_key: Option<Vec<u8>>) -> PyResult<Staged> {
        let (spans, key) = (spans(boxes), commit_key_of(py, commit_key)?);
        let call = engine::Call::default().with_key(key);
        let stage = || self.inner.stage_deletion(&self.inner.region(&spans)?, &call);
        self.look_or_ask(py, call.commit_key.is_some(), stage).map(Staged::new)
    }

    #[pyo3(signature = (boxes, condition, message, progress = None, commit_key = None))]
    fn delete_where(
        &self,
        py: Python<'_>,
        boxes: Option<Boxes>,
        condition: GivenCondition<'_>,
        message: Option<String>,
        progress: Option<Py<PyAny>>,
        commit_key: Option<Vec<u8>>,
    ) -> PyResult<u64> {
        let key = commit_key_of(py, commit_key)?;
        let (region, condition) = (region(py, &self.inner, boxes)?, branch(&condition));
        interrupt::run(py, self.inner.context(), progress, |call| {
            let call = &call.with_key(key.clone());
            self.inner.delete_region_where(region.as_ref(), &condition, message.clone(), call)
        })
    }

    #[pyo3(signature = (boxes, condition, progress = None))]
    fn receipt_where(
        &self,
        py: Python<'_>,
        boxes: Option<Boxes>,
        condition: GivenCondition<'_>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let (region, condition) = (region(py, &self.inner, boxes)?, branch(&condition));
        interrupt::run(py, self.inner.context(), progress, |call| {
            self.inner.receipt_where(region.as_ref(), &condition, call)?.to_json()
        })
    }

    #[pyo3(signature = (evolution_json, message))]
    fn alter(&self, py: Python<'_>, evolution_json: &str, message: Option<String>) -> PyResult<u64> {
        let alter = || self.inner.alter(&Evolution::from_json(evolution_json)?, message);
        interrupt::commit(py, self.inner.context(), alter)
    }

    #[pyo3(signature = (known))]
    fn schema_since(&self, py: Python<'_>, known: Option<u64>) -> PyResult<Option<(u64, String)>> {
        let newer = self.look(py, || self.inner.schema_since(known))?;
        Ok(newer.map(|(stamp, schema)| (stamp, schema.to_json_with_reach())))
    }

    fn note_ends(&self, py: Python<'_>, ends: Vec<(bool, bool)>) -> PyResult<()> {
        self.look(py, || self.inner.note_ends_of(&ends))
    }

    #[pyo3(signature = (r#box, attrs, commit_key = None, grow = false))]
    fn writer(
        &self,
        py: Python<'_>,
        r#box: Option<Sides>,
        attrs: Option<Vec<String>>,
        commit_key: Option<GivenKey>,
        grow: bool,
    ) -> PyResult<Writer> {
        let (region, is_keyed) = (box_region(py, &self.inner, r#box)?, commit_key.is_some());
        let begin = || self.inner.box_writer(region.as_ref(), attrs.as_deref(), grow);
        let inner = self.look_or_ask(py, is_keyed, || with_key(begin()?, commit_key))?;
        self.streaming(py, inner, attrs.as_deref())
    }

    #[pyo3(signature = (attrs, dedup, commit_key = None, grow = false))]
    fn unsorted_writer(
        &self,
        py: Python<'_>,
        attrs: Option<Vec<String>>,
        dedup: &str,
        commit_key: Option<GivenKey>,
        grow: bool,
    ) -> PyResult<Writer> {
        let dedup = Dedup::parse(dedup).map_err(|e| raise(py, &e))?;
        let is_keyed = commit_key.is_some();
        let begin = || {
            let writer = self.inner.unsorted_writer(attrs.as_deref(), dedup)?;
            if grow { writer.growing() } else { Ok(writer) }
        };
        let inner = self.look_or_ask(py, is_keyed, || with_key(begin()?, commit_key))?;
        self.streaming(py, inner, attrs.as_deref())
    }

    #[pyo3(signature = (staged, message))]
    fn commit(&self, py: Python<'_>, staged: &Bound<'_, PyAny>, message: Option<String>) -> PyResult<u64> {
        let staged = take_all(&self.inner, staged)?;
        interrupt::commit(py, self.inner.context(), || self.inner.commit(staged, message))
    }

    fn receipt(&self, py: Python<'_>, staged: &Bound<'_, PyAny>) -> PyResult<String> {
        let staged = take_all(&self.inner, staged)?;
        py.detach(|| self.inner.receipt(staged)?.to_json()).map_err(|e| raise(py, &e))
    }

    #[getter]
    fn in_transaction(&self) -> bool {
        self.inner.in_transaction()
    }

    fn meta_get(&self, py: Python<'_>, key: &str) -> PyResult<Option<String>> {
        self.ask(py, || self.inner.metadata(key))
    }

    fn meta_keys(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.ask(py, || self.inner.metadata_keys())
    }

    fn meta_set(&self, py: Python<'_>, changes: BTreeMap<String, Option<String>>) -> PyResult<u64> {
        interrupt::commit(py, self.inner.context(), || self.inner.set_metadata(changes.into_iter().collect()))
    }

    #[pyo3(signature = (strategy, fragments, within, target_bytes, dry_run, progress = None))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's, by position")]
    fn consolidate(
        &self,
        py: Python<'_>,
        strategy: &str,
        fragments: Option<Vec<String>>,
        within: Option<Boxes>,
        target_bytes: u64,
        dry_run: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let strategy = consolidate::strategy(py, &self.inner, strategy, fragments.as_deref(), within)?;
        let work = |call: &engine::Call| self.inner.consolidate(&strategy, target_bytes, dry_run, call);
        interrupt::run(py, self.inner.context(), progress, work).map(|report| report.to_json())
    }

    #[pyo3(signature = (strategy, fragments, within, target_bytes))]
    fn consolidate_in_background(
        &self,
        py: Python<'_>,
        strategy: &str,
        fragments: Option<Vec<String>>,
        within: Option<Boxes>,
        target_bytes: u64,
    ) -> PyResult<consolidate::Upkeep> {
        let strategy = consolidate::strategy(py, &self.inner, strategy, fragments.as_deref(), within)?;
        let begun = py.detach(|| self.inner.consolidate_in_background(strategy, target_bytes));
        begun.map(|inner| consolidate::Upkeep { inner }).map_err(|e| raise(py, &e))
    }

    /// The consolidation that the context's policy started and that goes on.
    fn upkeep(&self, py: Python<'_>) -> Option<consolidate::Upkeep> {
        py.detach(|| self.inner.upkeep()).map(|inner| consolidate::Upkeep { inner })
    }

    #[getter]
    fn tags(&self, py: Python<'_>) -> PyResult<Vec<(String, u64)>> {
        self.ask(py, || self.inner.tags())
    }

    fn vacuum(
        &self,
        py: Python<'_>,
        keep_us: Option<i64>,
        versions: Option<u64>,
        safety_us: i64,
        dry_run: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let options = options(py, keep_us, versions, safety_us, dry_run)?;
        interrupt::run(py, self.inner.context(), progress, |call| self.inner.vacuum(&options, call))
            .map(|report| report.to_json())
    }

    fn verify(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<String> {
        let report = interrupt::run(py, self.inner.context(), progress, |call| self.inner.verify(call))?;
        Ok(report.to_json())
    }
}
