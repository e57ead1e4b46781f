//! A storage that seals every object with AES-256-GCM. Nothing in the storage below can be read, nor changed,
//! truncated, or exchanged for another object without detection. The floors above do not depend on it.
//!
//! An object is a [`header`] and segments of 16 KiB that can be decrypted alone (the STREAM construction). So reading a
//! range costs only the segments that hold it. An object is sealed under its final name: a temporary file of the
//! storage below is sealed already. `docs/format/sealing.md` is the specification.
//!
//! Invariants: a store is sealed or not, as its first record is. An object of the other sort is never accepted in it,
//! except `_log/latest`, which is never trusted and may be of either sort. A reader with
//! a key gets the number alone of one that is not sealed, so that nothing of a sealed store depends on bytes that no key protects. Access errors concern keys: a missing key, a
//! wrong key, or a key for a store that is not sealed. Every other deviation from what was written is Corruption.

mod cipher;
mod environment;
mod header;
mod ring;
mod sink;
mod source;
#[cfg(test)]
mod tests;

pub use cipher::key_id;
pub use environment::key_from_environment;
pub use ring::KeyRing;

use super::{FLOOR, LATEST, Listed, PutOutcome, Storage, Swept, log_name};
use crate::base::{ByteRange, ByteSink, ByteSource, Entropy, Error, ErrorKind, Id, KeyId, Result};
use bytes::Bytes;
use cipher::TAG_BYTES;
use environment::{KEY_FILE_VARIABLE, KEY_VARIABLE};
use header::{HEADER_BYTES, Header, Looks, SEGMENT_LOG2, Segments};
use sink::{SealedSink, Sealer, seal_whole};
use source::{Opener, SealedSource};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The start of a log object that is not sealed: all that this module knows of the content of objects.
const PLAIN_LINE: &[u8] = b"{\"gs\":";

/// How many bytes of a hint have its number.
const HINT_NUMBER_BYTES: usize = 32;

/// Which stores may be opened, and whether new ones are sealed.
#[derive(Debug, Clone)]
pub enum Sealing {
    /// There is no key: sealed stores are refused, new ones are not sealed.
    Without,
    /// Stores are opened sealed or not, as found; new ones are sealed.
    AsFound(Arc<KeyRing>),
    /// All stores are sealed: one that is not is refused.
    Always(Arc<KeyRing>),
}

impl Sealing {
    fn ring(&self) -> Option<&KeyRing> {
        match self {
            Self::Without => None,
            Self::AsFound(ring) | Self::Always(ring) => Some(ring),
        }
    }
}

/// Whether a store, or an object of it, is sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Plain,
    Sealed,
}

/// A storage whose objects are sealed, if its store is.
#[derive(Debug)]
pub struct SealedStorage {
    inner: Arc<dyn Storage>,
    sealing: Sealing,
    entropy: Arc<dyn Entropy>,
    /// The sort of the store, once it is known.
    found: OnceLock<Sort>,
    /// Whether an object has been opened with a key: from then on an object that is not sealed is damage.
    proved: AtomicBool,
    /// The key of the newest record seen, with its version; before the first record, of any object.
    key_id: Mutex<Option<(u64, KeyId)>>,
}

impl SealedStorage {
    /// Over `inner`. Salts are secrets from `entropy`; if it returns none, nothing is written.
    pub fn new(inner: Arc<dyn Storage>, sealing: Sealing, entropy: Arc<dyn Entropy>) -> Self {
        let found = match sealing {
            Sealing::Always(_) => OnceLock::from(Sort::Sealed),
            _ => OnceLock::new(),
        };
        Self { inner, sealing, entropy, found, proved: AtomicBool::new(false), key_id: Mutex::default() }
    }

    /// Remembers the key with which an object is sealed.
    fn saw_key(&self, name: &str, id: KeyId) {
        let version = name.rsplit('/').next().and_then(|file| file.parse::<u64>().ok()).unwrap_or(0);
        if let Ok(mut known) = self.key_id.try_lock()
            && known.is_none_or(|(newest, _)| version > newest)
        {
            *known = Some((version, id));
        }
    }

    fn what(&self, name: &str) -> String {
        format!("{name} in {}", self.inner.describe())
    }

    /// The sort of an object that starts with `head`. The first object that shows it determines the sort of the store.
    fn sort_of(&self, name: &str, head: &[u8]) -> Result<Sort> {
        match (header::looks(head), self.found.get()) {
            (Looks::Sealed, _) if self.sealing.ring().is_none() => Err(self.keyless(name, head)?),
            (Looks::Sealed, Some(Sort::Plain)) => Err(self.mixed(name, "is sealed and the store is not").foreign()),
            (Looks::Sealed, _) => Ok(self.decide(name, Sort::Sealed)),
            (Looks::Other, Some(Sort::Sealed)) if name != LATEST => Err(self.unsealed(name, head)),
            (Looks::Cut, Some(Sort::Sealed)) if name != LATEST => Err(self.mixed(name, "ends inside its header")),
            (Looks::Other, None) if head.starts_with(PLAIN_LINE) => Ok(self.decide(name, Sort::Plain)),
            // A hint, or an object that its reader will find damaged.
            _ => Ok(Sort::Plain),
        }
    }

    fn decide(&self, name: &str, sort: Sort) -> Sort {
        if name != LATEST {
            let _ = self.found.set(sort);
        }
        sort
    }

    /// The error for a sealed object without a key.
    fn keyless(&self, name: &str, head: &[u8]) -> Result<Error> {
        let what = self.what(name);
        let id = Header::decode(head, &what)?.key;
        let error = Error::access(format!(
            "{what} is sealed with the key {id}, and no key was given: give that key to the context, or set {KEY_VARIABLE} or \
             {KEY_FILE_VARIABLE}"
        ));
        Ok(if self.found.get() == Some(&Sort::Plain) { error.foreign() } else { error })
    }

    /// The error for an object that is not sealed in a store that must be.
    fn unsealed(&self, name: &str, head: &[u8]) -> Error {
        if head.starts_with(PLAIN_LINE) && !self.proved.load(Ordering::Relaxed) {
            return Error::access(format!(
                "{} is not sealed, and a key was given: with a key only sealed stores are opened; give none to read this one, \
                 or copy it into a new store",
                self.what(name)
            ))
            .foreign();
        }
        let error = self.mixed(name, "is not sealed");
        if head.starts_with(PLAIN_LINE) { error.foreign() } else { error }
    }

    fn mixed(&self, name: &str, why: &str) -> Error {
        Error::corruption(format!("{} {why}: it was damaged, or put there by somebody else", self.what(name)))
    }

    /// The opener of the object `name` of `sealed_len` bytes that starts with `head`; `None`: of one that is longer
    /// than the part to be opened.
    fn opener(&self, name: &str, head: &[u8], sealed_len: Option<u64>) -> Result<Opener> {
        let what = self.what(name);
        let header = Header::decode(head, &what)?;
        let ring = self.sealing.ring().ok_or_else(|| Error::access(format!("{what} is sealed; give its key")))?;
        let key = ring.by_id(header.key, &what)?;
        if name != LATEST {
            self.saw_key(name, header.key);
        }
        let segments = match sealed_len {
            Some(len) => Segments::new(&header, len, &what)?,
            None => Segments::endless(&header),
        };
        Ok(Opener { cipher: key.object(&header, name)?, what, segments })
    }

    /// Whether objects written now are sealed. In a store of unknown sort the first object decides.
    fn seals(&self) -> Result<Option<&KeyRing>> {
        let Some(ring) = self.sealing.ring() else {
            let _ = self.found.set(Sort::Plain);
            return Ok(None);
        };
        if self.found.get().is_none() {
            let first = [FLOOR.to_owned(), log_name(1)];
            match first.iter().find_map(|name| self.head(name).transpose().map(|head| head.map(|h| (name, h)))) {
                Some(found) => drop(found.and_then(|(name, head)| self.sort_of(name, &head))?),
                None => drop(self.found.set(Sort::Sealed)),
            }
        }
        Ok((self.found.get() != Some(&Sort::Plain)).then_some(ring))
    }

    /// The first bytes of an object, if it exists.
    fn head(&self, name: &str) -> Result<Option<Bytes>> {
        match self.inner.open(name) {
            Ok(source) => head_of(source.as_ref()).map(Some),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The content of an object from its stored `bytes`.
    fn opened(&self, name: &str, bytes: Bytes) -> Result<Bytes> {
        let head = bytes.get(..HEADER_BYTES).unwrap_or(&bytes);
        match self.sort_of(name, head)? {
            Sort::Plain => Ok(self.trusted(name, bytes)),
            Sort::Sealed => {
                let opener = self.opener(name, head, Some(bytes.len() as u64))?;
                let plain = opener.open_run(0, bytes.get(HEADER_BYTES..).unwrap_or_default())?;
                self.proved.store(true, Ordering::Relaxed);
                Ok(plain)
            }
        }
    }

    /// The first `len` bytes of the content of an object that starts with `start`: [`sealed_start_bytes`] of it, or all
    /// if it has fewer.
    fn start_opened(&self, name: &str, len: u64, start: Bytes) -> Result<Bytes> {
        let cut = |plain: Bytes| plain.slice(..plain.len().min(usize::try_from(len).unwrap_or(usize::MAX)));
        let head = start.get(..HEADER_BYTES).unwrap_or(&start);
        if self.sort_of(name, head)? == Sort::Plain {
            return Ok(cut(self.trusted(name, start)));
        }
        if (start.len() as u64) < sealed_start_bytes(len) {
            return self.opened(name, start).map(cut);
        }
        // At least one byte follows the wanted segments, so that none of them is the last.
        let opener = self.opener(name, head, None)?;
        let count = len.div_ceil(opener.segments.size);
        let sealed = usize::try_from(opener.segments.sealed_start(count)).ok().filter(|end| *end < start.len());
        let Some(sealed) = sealed.and_then(|end| start.get(HEADER_BYTES..end)) else {
            // Its segments are longer than those written by this module.
            let source = self.open(name)?;
            return source.read_one(ByteRange::new(0, source.len().min(len)));
        };
        let plain = opener.open_run(0, sealed)?;
        self.proved.store(true, Ordering::Relaxed);
        Ok(cut(plain))
    }

    /// What is used of an object that is not sealed: of a hint, where there is a key, the bytes of its number.
    fn trusted(&self, name: &str, bytes: Bytes) -> Bytes {
        match name == LATEST && self.sealing.ring().is_some() {
            true => bytes.slice(..bytes.len().min(HINT_NUMBER_BYTES)),
            false => bytes,
        }
    }

    /// Calls `write` with the stored form of `bytes`.
    fn written<T>(&self, name: &str, bytes: &[u8], write: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        super::names::checked(name)?;
        match self.seals()? {
            None => write(bytes),
            Some(ring) => {
                let key = ring.current()?;
                let done = write(&seal_whole(&key, self.entropy.as_ref(), name, bytes)?)?;
                self.saw_key(name, key.id);
                Ok(done)
            }
        }
    }
}

/// How many bytes of a sealed object hold its first `len` bytes, and one byte more, which distinguishes the last
/// segment from others.
fn sealed_start_bytes(len: u64) -> u64 {
    let segments = len.div_ceil(1 << SEGMENT_LOG2);
    let whole = segments.saturating_mul((1 << SEGMENT_LOG2) + TAG_BYTES as u64);
    whole.saturating_add(HEADER_BYTES as u64 + 1)
}

fn head_of(source: &dyn ByteSource) -> Result<Bytes> {
    source.read_one(ByteRange::new(0, source.len().min(HEADER_BYTES as u64)))
}

impl Storage for SealedStorage {
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
        self.inner.now_us()
    }

    fn is_removed(&self) -> Result<bool> {
        self.inner.is_removed()
    }

    fn prove_exclusive(&self, id: Id) -> Result<Option<i64>> {
        self.inner.prove_exclusive(id)
    }

    fn key_id(&self) -> Option<KeyId> {
        // In the child of a fork the lock may be held by a thread that does not exist there.
        self.key_id.try_lock().ok().and_then(|known| known.map(|(_, id)| id))
    }

    fn prepare(&self) -> Result<()> {
        self.inner.prepare()
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ByteSource>> {
        let inner = self.inner.open(name)?;
        if self.found.get() == Some(&Sort::Plain) {
            return Ok(inner);
        }
        let head = head_of(inner.as_ref())?;
        match self.sort_of(name, &head)? {
            Sort::Plain => Ok(inner),
            Sort::Sealed => {
                let opener = self.opener(name, &head, Some(inner.len()))?;
                Ok(Arc::new(SealedSource { inner, opener }))
            }
        }
    }

    fn read_all(&self, name: &str) -> Result<Bytes> {
        self.opened(name, self.inner.read_all(name)?)
    }

    fn read_start(&self, name: &str, len: u64) -> Result<Bytes> {
        self.start_opened(name, len, self.inner.read_start(name, sealed_start_bytes(len))?)
    }

    fn read_start_and_floor(&self, name: &str, len: u64) -> (Result<Bytes>, Result<Bytes>) {
        let (start, floor) = self.inner.read_start_and_floor(name, sealed_start_bytes(len));
        (start.and_then(|start| self.start_opened(name, len, start)), floor.and_then(|floor| self.opened(FLOOR, floor)))
    }

    fn read_each(&self, names: &[String], visit: &mut dyn FnMut(&str, Result<Bytes>) -> Result<()>) -> Result<()> {
        self.inner.read_each(names, &mut |name, bytes| visit(name, bytes.and_then(|bytes| self.opened(name, bytes))))
    }

    fn read_each_start(
        &self,
        names: &[String],
        len: u64,
        visit: &mut dyn FnMut(&str, Result<Bytes>) -> Result<()>,
    ) -> Result<()> {
        self.inner.read_each_start(names, sealed_start_bytes(len), &mut |name, start| {
            visit(name, start.and_then(|start| self.start_opened(name, len, start)))
        })
    }

    fn create(&self, name: &str) -> Result<Box<dyn ByteSink>> {
        super::names::checked(name)?;
        let Some(ring) = self.seals()? else { return self.inner.create(name) };
        let mut out = Vec::new();
        let sealer = Sealer::new(ring.current()?.as_ref(), self.entropy.as_ref(), name, &mut out)?;
        Ok(Box::new(SealedSink::new(self.inner.create(name)?, sealer, out)))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<PutOutcome> {
        self.written(name, bytes, |bytes| self.inner.put_if_absent(name, bytes))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.written(name, bytes, |bytes| self.inner.put(name, bytes))
    }

    fn put_hint(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.written(name, bytes, |bytes| self.inner.put_hint(name, bytes))
    }

    /// The storage below compares the sealed bytes that were read here.
    fn put_if_unchanged(&self, name: &str, expected: Option<&[u8]>, bytes: &[u8]) -> Result<bool> {
        let found = match self.inner.read_all(name) {
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            found => Some(found?),
        };
        let plain = found.is_some().then(|| self.read_all(name)).transpose();
        let plain = match plain {
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            plain => plain?,
        };
        if plain.as_deref() != expected {
            return Ok(false);
        }
        self.written(name, bytes, |bytes| self.inner.put_if_unchanged(name, found.as_deref(), bytes))
    }

    fn survey(&self, folder: &str, visit: &mut dyn FnMut(Listed)) -> Result<()> {
        self.inner.survey(folder, visit)
    }

    fn sweep(&self, folder: &str, before_us: i64, delete: bool) -> Result<Swept> {
        self.inner.sweep(folder, before_us, delete)
    }

    fn sync(&self, name: &str) -> Result<()> {
        self.inner.sync(name)
    }

    fn set_aside(&self, name: &str) -> Result<String> {
        self.inner.set_aside(name)
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.inner.delete(name)
    }

    fn delete_each(&self, names: &[String]) -> Result<()> {
        self.inner.delete_each(names)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.inner.list(folder)
    }

    fn list_few(&self, folder: &str, most: usize) -> Result<Option<Vec<String>>> {
        self.inner.list_few(folder, most)
    }

    fn exists(&self, name: &str) -> Result<bool> {
        self.inner.exists(name)
    }

    fn remove_everything(&self) -> Result<()> {
        self.inner.remove_everything()
    }
}
