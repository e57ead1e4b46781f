//! The common part of all decorators: every call to the storage, its sources and its sinks goes through one function.

use super::{FLOOR, Listed, PutOutcome, Storage, Swept};
use crate::base::{Begun, ByteRange, ByteSink, ByteSource, Id, KeyId, Pending, Result};
use bytes::Bytes;
use std::fmt::Debug;
use std::sync::Arc;

/// An operation of a storage, a source or a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// [`Storage::prepare`].
    Prepare,
    /// [`Storage::open`].
    Open,
    /// Waiting for the ranges submitted to a source, whatever their number.
    Read,
    /// [`Storage::read_all`] and [`Storage::read_start`].
    ReadAll,
    /// [`Storage::create`].
    Create,
    /// [`ByteSink::write`].
    Write,
    /// [`ByteSink::finish`].
    Finish,
    /// [`Storage::put_if_absent`].
    PutIfAbsent,
    /// [`Storage::put`] and [`Storage::put_if_unchanged`].
    Put,
    /// [`Storage::put_hint`].
    PutHint,
    /// [`Storage::sync`].
    Sync,
    /// [`Storage::delete`] and [`Storage::delete_each`].
    Delete,
    /// [`Storage::list`].
    List,
    /// [`Storage::exists`].
    Exists,
    /// [`Storage::remove_everything`].
    RemoveEverything,
    /// [`Storage::survey`].
    Survey,
    /// [`Storage::sweep`].
    Sweep,
    /// [`Storage::now_us`].
    Now,
}

impl Operation {
    /// Whether it needs space on the device.
    pub(super) fn takes_space(self) -> bool {
        use Operation::{Create, Finish, Prepare, Put, PutHint, PutIfAbsent, Write};
        matches!(self, Prepare | Create | Write | Finish | PutIfAbsent | Put | PutHint)
    }
}

/// One call that goes through a layer.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub(super) operation: Operation,
    /// The object or folder; empty for the store as a whole.
    pub(super) name: &'a str,
    /// The bytes to write, if any.
    pub(super) bytes: &'a [u8],
    /// The ranges to read, if known in advance.
    pub(super) ranges: &'a [ByteRange],
}

impl<'a> Call<'a> {
    pub(super) fn new(operation: Operation, name: &'a str) -> Self {
        Self { operation, name, bytes: &[], ranges: &[] }
    }

    pub(super) fn writing(operation: Operation, name: &'a str, bytes: &'a [u8]) -> Self {
        Self { bytes, ..Self::new(operation, name) }
    }
}

/// What a decorator adds to every call. Sealed: it is public only because [`Layered`] names it.
pub trait Layer: Debug + Send + Sync + Sized + 'static {
    /// Makes the call: `run` is the call itself; it takes the bytes to write ([`Call::bytes`] or fewer).
    fn around<T>(&self, call: Call<'_>, run: impl FnOnce(&[u8]) -> Result<T>) -> Result<T>;

    /// Whether the deletion of several objects counts as one call for each.
    fn deletes_one_by_one(&self) -> bool {
        false
    }

    /// Called with the number of bytes that a read returned.
    fn received(&self, _name: &str, _bytes: u64) {}

    /// The sink that the caller gets for `inner`.
    fn sink(self: Arc<Self>, name: &str, inner: Box<dyn ByteSink>) -> Box<dyn ByteSink> {
        Box::new(LayeredSink { inner, layer: self, name: name.to_owned() })
    }
}

/// A storage behind a layer.
#[derive(Debug)]
pub struct Layered<L> {
    inner: Arc<dyn Storage>,
    pub(super) layer: Arc<L>,
}

impl<L> Layered<L> {
    pub(super) fn over(inner: Arc<dyn Storage>, layer: Arc<L>) -> Self {
        Self { inner, layer }
    }
}

impl<L: Layer> Layered<L> {
    fn call<T>(&self, operation: Operation, name: &str, run: impl FnOnce() -> Result<T>) -> Result<T> {
        self.layer.around(Call::new(operation, name), |_| run())
    }

    fn write<T>(
        &self,
        operation: Operation,
        name: &str,
        bytes: &[u8],
        run: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        self.layer.around(Call::writing(operation, name, bytes), run)
    }
}

impl<L: Layer> Storage for Layered<L> {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn identity(&self) -> String {
        self.inner.identity()
    }

    fn place(&self) -> String {
        self.inner.place()
    }

    fn is_near(&self) -> bool {
        self.inner.is_near()
    }

    fn defers_sync(&self) -> bool {
        self.inner.defers_sync()
    }

    fn now_us(&self) -> Result<i64> {
        self.call(Operation::Now, "", || self.inner.now_us())
    }

    fn is_removed(&self) -> Result<bool> {
        self.call(Operation::ReadAll, FLOOR, || self.inner.is_removed())
    }

    fn prove_exclusive(&self, id: Id) -> Result<Option<i64>> {
        self.inner.prove_exclusive(id)
    }

    fn key_id(&self) -> Option<KeyId> {
        self.inner.key_id()
    }

    fn prepare(&self) -> Result<()> {
        self.call(Operation::Prepare, "", || self.inner.prepare())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ByteSource>> {
        let inner = self.call(Operation::Open, name, || self.inner.open(name))?;
        Ok(Arc::new(LayeredSource { inner, layer: self.layer.clone(), name: name.to_owned() }))
    }

    fn read_all(&self, name: &str) -> Result<Bytes> {
        let bytes = self.call(Operation::ReadAll, name, || self.inner.read_all(name))?;
        self.layer.received(name, bytes.len() as u64);
        Ok(bytes)
    }

    fn read_start(&self, name: &str, len: u64) -> Result<Bytes> {
        let bytes = self.call(Operation::ReadAll, name, || self.inner.read_start(name, len))?;
        self.layer.received(name, bytes.len() as u64);
        Ok(bytes)
    }

    fn create(&self, name: &str) -> Result<Box<dyn ByteSink>> {
        let inner = self.call(Operation::Create, name, || self.inner.create(name))?;
        Ok(self.layer.clone().sink(name, inner))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<PutOutcome> {
        self.write(Operation::PutIfAbsent, name, bytes, |bytes| self.inner.put_if_absent(name, bytes))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.write(Operation::Put, name, bytes, |bytes| self.inner.put(name, bytes))
    }

    fn put_hint(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.write(Operation::PutHint, name, bytes, |bytes| self.inner.put_hint(name, bytes))
    }

    fn sync(&self, name: &str) -> Result<()> {
        self.call(Operation::Sync, name, || self.inner.sync(name))
    }

    fn set_aside(&self, name: &str) -> Result<String> {
        self.call(Operation::Put, name, || self.inner.set_aside(name))
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.call(Operation::Delete, name, || self.inner.delete(name))
    }

    fn delete_each(&self, names: &[String]) -> Result<()> {
        if self.layer.deletes_one_by_one() {
            return names.iter().try_for_each(|name| self.delete(name));
        }
        let [first, ..] = names else { return Ok(()) };
        self.call(Operation::Delete, first, || self.inner.delete_each(names))
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.call(Operation::List, folder, || self.inner.list(folder))
    }

    fn list_few(&self, folder: &str, most: usize) -> Result<Option<Vec<String>>> {
        self.call(Operation::List, folder, || self.inner.list_few(folder, most))
    }

    fn survey(&self, folder: &str, visit: &mut dyn FnMut(Listed)) -> Result<()> {
        self.call(Operation::Survey, folder, || self.inner.survey(folder, visit))
    }

    fn sweep(&self, folder: &str, before_us: i64, delete: bool) -> Result<Swept> {
        self.call(Operation::Sweep, folder, || self.inner.sweep(folder, before_us, delete))
    }

    fn put_if_unchanged(&self, name: &str, expected: Option<&[u8]>, bytes: &[u8]) -> Result<bool> {
        self.write(Operation::Put, name, bytes, |bytes| self.inner.put_if_unchanged(name, expected, bytes))
    }

    fn exists(&self, name: &str) -> Result<bool> {
        self.call(Operation::Exists, name, || self.inner.exists(name))
    }

    fn remove_everything(&self) -> Result<()> {
        self.call(Operation::RemoveEverything, "", || self.inner.remove_everything())
    }
}

#[derive(Debug)]
struct LayeredSource<L> {
    inner: Arc<dyn ByteSource>,
    layer: Arc<L>,
    name: String,
}

impl<L: Layer> ByteSource for LayeredSource<L> {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn submit(&self, ranges: &[ByteRange]) -> Result<Box<dyn Pending + '_>> {
        Ok(Box::new(LayeredReads { inner: self.inner.submit(ranges)?, source: self, ranges: ranges.to_vec() }))
    }

    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let ranges = [ByteRange::new(offset, out.len() as u64)];
        let call = Call { ranges: &ranges, ..Call::new(Operation::Read, &self.name) };
        self.layer.around(call, |_| self.inner.read_into(offset, out))?;
        self.layer.received(&self.name, out.len() as u64);
        Ok(())
    }

    fn is_cold(&self) -> bool {
        self.inner.is_cold()
    }

    fn prefetch(&self, ranges: &[ByteRange]) {
        self.inner.prefetch(ranges);
    }

    fn remote_gap(&self) -> Option<u64> {
        self.inner.remote_gap()
    }

    fn begin(&self, ranges: &[ByteRange]) -> Option<Arc<dyn Begun>> {
        self.inner.begin(ranges)
    }
}

struct LayeredReads<'a, L> {
    inner: Box<dyn Pending + 'a>,
    source: &'a LayeredSource<L>,
    ranges: Vec<ByteRange>,
}

impl<L: Layer> Pending for LayeredReads<'_, L> {
    fn wait(self: Box<Self>) -> Result<Vec<Bytes>> {
        let LayeredReads { inner, source, ranges } = *self;
        let call = Call { ranges: &ranges, ..Call::new(Operation::Read, &source.name) };
        let found = source.layer.around(call, |_| inner.wait())?;
        source.layer.received(&source.name, found.iter().map(|bytes| bytes.len() as u64).sum());
        Ok(found)
    }
}

struct LayeredSink<L> {
    inner: Box<dyn ByteSink>,
    layer: Arc<L>,
    name: String,
}

impl<L: Layer> ByteSink for LayeredSink<L> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let call = Call::writing(Operation::Write, &self.name, bytes);
        self.layer.around(call, |bytes| self.inner.write(bytes))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let Self { inner, layer, name } = *self;
        layer.around(Call::new(Operation::Finish, &name), |_| inner.finish())
    }
}
