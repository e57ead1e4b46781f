//! Cells being streamed: in global order, or in any order.
//!
//! A stream for a commit with a key is hashed piece by piece. If a commit with that key was done before, nothing is
//! written: the hash decides at the end whether it is the same.

use super::boxes::{ReadBox, given_hull, hull_of, parse_box};
use super::content::{Given, Naming, StreamContent};
use super::write::{for_box, for_domain};
use super::{Array, Call, Staged};
use crate::base::{Error, Result, Silent};
use crate::query::{
    CellStream, CellWrite, Dedup, ReadOrder, Request, UnsortedCells, WriteContext, check_sorted, sorting_bytes,
    write_sorted,
};
use crate::schema::{Region, Schema, Subarray};
use crate::store::CommitKey;
use crate::tile::ColumnView;
use std::sync::Arc;

/// Cells being streamed; nothing is visible before their [`Staged`] is committed.
#[derive(Debug)]
pub struct Writer {
    array: Array,
    stream: Option<Stream>,
    form: Form,
    /// What was appended, if that matters.
    content: Option<Content>,
}

/// The hash of what is appended.
#[derive(Debug)]
struct Content {
    /// What is given at the end, but for the hash.
    given: Given,
    stream: StreamContent,
}

/// What takes the cells.
#[derive(Debug)]
enum Stream {
    /// With the fragments that lie over the streamed one.
    Ordered(Box<CellStream>, Staged),
    /// With the runs written so far, whose files go with them, and the number of the schema that it was started with.
    Unsorted(Box<UnsortedCells>, Staged, u32),
    /// A commit with the same key was done before.
    Repeated,
}

/// What a stream is of.
#[derive(Debug)]
struct Form {
    attrs: Vec<String>,
    /// The box, of cells in global order, as it was asked for.
    given: Option<Subarray>,
    /// What becomes of several cells at one place, of cells in any order.
    dedup: Option<Dedup>,
}

impl Form {
    fn content(&self) -> StreamContent {
        StreamContent::new(self.attrs.iter().map(String::as_str), self.given.as_ref(), self.dedup)
    }
}

impl Writer {
    /// Of cells in any order, or in global order. What is appended is hashed in a transaction with a key.
    fn new(array: Array, stream: Stream, form: Form) -> Self {
        let given = Given { key: None, naming: Naming::Id, body: 0 };
        let content = array.session().wants_content().then(|| Content { given, stream: form.content() });
        Self { array, stream: Some(stream), form, content }
    }

    /// The same writer, for a commit with the key `key`; nothing has been appended. If a commit with that key was done
    /// before, nothing is written, and the end is a Conflict error unless the same was appended.
    ///
    /// # Errors
    /// Input (within a transaction, which has the key), Corruption, Storage.
    pub fn with_key(mut self, key: CommitKey, naming: Naming) -> Result<Self> {
        self.array.check_keyless()?;
        if self.array.store().keyed_commit(&self.array.snapshot(), &key)?.1.is_some() {
            self.stream = Some(Stream::Repeated);
        }
        self.content = Some(Content { given: Given { key: Some(key), naming, body: 0 }, stream: self.form.content() });
        Ok(self)
    }

    /// The same writer of cells in any order, that takes them beyond the domain, which grows in their commit.
    ///
    /// # Errors
    /// Input: the cells come in global order.
    pub fn growing(mut self) -> Result<Self> {
        match &mut self.stream {
            Some(Stream::Unsorted(cells, ..)) => cells.grows(),
            Some(Stream::Repeated) | None => {}
            Some(Stream::Ordered(..)) => {
                return Err(Error::input(
                    "the domain cannot grow while cells come in global order; stream them in any order, or make it grow first",
                ));
            }
        }
        Ok(self)
    }

    /// Appends cells: attribute columns in the writer's order; coordinates unless it is of a dense array in global order.
    /// After an error, or when it was stopped, the writer is closed and what it wrote is gone.
    ///
    /// # Errors
    /// Input (closed; columns of another type or length; duplicates; cells out of order), Bounds, Budget, Storage, Cancelled.
    pub fn append(&mut self, call: &Call, dims: &[ColumnView<'_>], columns: &[ColumnView<'_>]) -> Result<()> {
        let outcome = match self.stream.as_mut().ok_or_else(closed)? {
            Stream::Ordered(stream, over) => {
                let (_, state) = self.array.state()?;
                stream.append(&self.array.write_context(&state, call)?, (dims, columns), &mut over.fragments)
            }
            Stream::Unsorted(cells, runs, number) => {
                let (_, state) = self.array.state()?;
                let write = WriteContext { schema_number: *number, ..self.array.write_context(&state, call)? };
                cells.append(&write, (dims, columns), &mut runs.fragments)
            }
            Stream::Repeated => Ok(()),
        };
        if let Some(content) = &mut self.content {
            content.stream.add(dims, columns);
        }
        if outcome.is_err() {
            self.stream = None;
        }
        outcome
    }

    /// Ends the fragment, or merges what was appended in any order.
    ///
    /// # Errors
    /// Input (a box that is not complete; two cells at one place), Storage, Cancelled.
    pub fn finish(&mut self, call: &Call) -> Result<Staged> {
        let stream = self.stream.take().ok_or_else(closed)?;
        let given = self.content.take().map(|content| Given { body: content.stream.finish(), ..content.given });
        self.finished(stream, given.as_ref(), call).map(|staged| staged.with_given(given))
    }

    fn finished(&self, stream: Stream, given: Option<&Given>, call: &Call) -> Result<Staged> {
        match stream {
            Stream::Repeated => {
                let done = self.array.done_before(given)?;
                let done = done.ok_or_else(|| {
                    Error::conflict(
                        "the commit key was forgotten while the cells were streamed: so many newer keys were given meanwhile; \
                         nothing was committed, write them again",
                    )
                })?;
                Ok(self.array.staged(Vec::new()).repeating(done))
            }
            Stream::Ordered(stream, mut over) => {
                let streamed = stream.finish(call.cancel.as_ref())?;
                // What lies over another fragment comes later.
                over.fragments.splice(0..0, streamed);
                let Some(hull) = over.fragments.iter().map(|f| f.description.bounds.clone()).reduce(|a, b| a.union(&b))
                else {
                    return Ok(over);
                };
                let (_, state) = self.array.state()?;
                Ok(over.with_growth(state.schema(), &state.schema().reaching(&hull)))
            }
            Stream::Unsorted(cells, mut runs, schema_number) => {
                let (snapshot, state) = self.array.state()?;
                let write = WriteContext { schema_number, ..self.array.write_context(&state, call)? };
                // The runs go: no cache that others share is to hold anything of them. What is told is how much was merged, not how much was
                // read for it.
                let read = self.array.read_context(&snapshot, &quiet(call)).with_private_cache();
                // The files of both go with them after an error.
                let mut done = self.array.staged(Vec::new()).with_growth(state.schema(), cells.schema());
                let ended = cells.finish(&read, &write, self.array.id(), &mut runs.fragments, &mut done.fragments);
                read.explain_missing(ended).map(|()| done)
            }
        }
    }

    /// Drops what was written.
    pub fn abort(&mut self) {
        self.stream = None;
    }
}

impl Array {
    /// As [`Array::box_writer`], of a box in texts.
    ///
    /// # Errors
    /// As there.
    pub fn writer(&self, sub: ReadBox<'_>, attrs: Option<&[String]>) -> Result<Writer> {
        self.check_writable()?;
        let region = parse_box(self.schema()?.as_ref(), sub)?;
        self.box_writer(region.as_ref(), attrs, false)
    }

    /// Starts one streamed fragment of these attributes (`None`: all) in a box (`None`: the whole domain). If it `grows`, the
    /// domain grows to take in the box, or the cells of a sparse array; beyond ends that are open it does so anyway.
    ///
    /// # Errors
    /// Input (not writable, unknown attributes), Bounds, Storage.
    pub fn box_writer(&self, region: Option<&Region>, attrs: Option<&[String]>, grows: bool) -> Result<Writer> {
        let (_, state) = self.state()?;
        let call = Call::default();
        let context = self.write_context(&state, &call)?;
        let schema = &match state.schema().sparse() && region.is_none() {
            true => for_domain(state.schema(), Some(&state.schema().reachable(grows)))?,
            false => for_box(state.schema(), &hull_of(state.schema(), region)?, grows)?,
        };
        let request = Request::new(schema, Some(hull_of(schema, region)?), attrs, ReadOrder::Global)?;
        let mut places = request.attrs;
        places.sort_unstable();
        let form = Form { attrs: named(schema, &places), given: given_hull(schema, region), dedup: None };
        let stream = CellStream::new(&context, schema.clone(), request.sub, places)?;
        let stream = Stream::Ordered(Box::new(stream), self.staged(Vec::new()));
        Ok(Writer::new(self.clone(), stream, form))
    }

    /// Starts a stream of cells in any order, of these attributes (`None`: all); more than memory holds are written as sorted
    /// runs and merged at the end. `dedup`: what becomes of several cells at one place, of all that are appended.
    ///
    /// # Errors
    /// Input (not writable, unknown attributes), Storage.
    pub fn unsorted_writer(&self, attrs: Option<&[String]>, dedup: Dedup) -> Result<Writer> {
        let (stream, attrs) = self.start_unsorted(attrs, dedup)?;
        Ok(Writer::new(self.clone(), stream, Form { attrs, given: None, dedup: Some(dedup) }))
    }

    /// A stream of cells in any order, and the names of its attributes.
    fn start_unsorted(&self, attrs: Option<&[String]>, dedup: Dedup) -> Result<(Stream, Vec<String>)> {
        let (_, state) = self.state()?;
        let schema = state.schema();
        let call = Call::default();
        let mut places = Request::new(schema, None, attrs, ReadOrder::Global)?.attrs;
        places.sort_unstable();
        let names = named(schema, &places);
        let context = self.write_context(&state, &call)?;
        let cells = UnsortedCells::new(&context, schema.clone(), places, dedup)?;
        Ok((Stream::Unsorted(Box::new(cells), self.staged(Vec::new()), context.schema_number), names))
    }

    /// Whether there is no memory for the keys of these cells at once. What a stream refuses is left to a write at once, which says so.
    pub(super) fn is_beyond_memory(&self, schema: &Schema, write: &CellWrite<'_>) -> bool {
        let whole = !write.columns.is_empty() && (!schema.sparse() || write.columns.len() == schema.attrs().len());
        whole && sorting_bytes(schema, write.cells()) > self.context().budget.limit_bytes() / 2
    }

    /// Writes cells that are said to be in order, which is checked: those of a sparse array as they come, single cells of a dense one as cells
    /// in any order.
    pub(super) fn stage_sorted(
        &self,
        context: &WriteContext<'_>,
        schema: &Arc<Schema>,
        write: &CellWrite<'_>,
        call: &Call,
    ) -> Result<Staged> {
        check_sorted(context, schema, write)?;
        if !schema.sparse() {
            return self.stage_in_runs(schema, write, call);
        }
        Ok(self.staged(write_sorted(context, schema, write)?.into_iter().collect()))
    }

    /// Writes cells by way of a stream of cells in any order.
    pub(super) fn stage_in_runs(&self, schema: &Schema, write: &CellWrite<'_>, call: &Call) -> Result<Staged> {
        let named = write.columns.iter().filter_map(|(place, _)| schema.attrs().get(*place));
        let names: Vec<String> = named.map(|attr| attr.name().to_owned()).collect();
        let (mut stream, attrs) = self.start_unsorted(Some(&names), write.dedup)?;
        if let Stream::Unsorted(cells, ..) = &mut stream
            && call.grows
        {
            cells.grows();
        }
        let form = Form { attrs, given: None, dedup: Some(write.dedup) };
        // What is written was hashed as a whole.
        let mut writer = Writer { array: self.clone(), stream: Some(stream), form, content: None };
        let columns: Vec<ColumnView<'_>> = write.columns.iter().map(|(_, view)| *view).collect();
        writer.append(&quiet(call), &write.dims, &columns)?;
        let staged = writer.finish(call)?;
        call.progress.report(write.cells(), write.cells());
        Ok(staged)
    }
}

/// The names of the attributes at `places`.
fn named(schema: &Schema, places: &[usize]) -> Vec<String> {
    places.iter().filter_map(|place| schema.attrs().get(*place)).map(|attr| attr.name().to_owned()).collect()
}

/// The same call, of whose progress nobody is told.
fn quiet(call: &Call) -> Call {
    Call { progress: Arc::new(Silent), ..call.clone() }
}

fn closed() -> Error {
    Error::input("this writer is closed: it was finished, aborted, or an append failed; start another")
}
