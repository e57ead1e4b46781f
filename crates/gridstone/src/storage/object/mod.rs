//! A store in a bucket of an object store: S3 and compatible stores, Google Cloud Storage, Azure Blob Storage.
//!
//! An object of the store is an object of the bucket, under the store's key. The operations of the trait map as
//! follows:
//!
//! - `put_if_absent` and `put_if_unchanged` are conditional PUTs ([`write`] describes how their outcome is determined).
//!   Before the first commit of a process, a test verifies that they are exclusive here ([`proof`]).
//! - An object is visible whole or not at all, and is durable when its PUT has been answered: `sync` has nothing to do.
//! - `open` is one request, which returns the object's end; ranges are read concurrently ([`source`]). Its tag reveals
//!   that an object has changed since.
//! - Objects that are read whole are read in ranges, and their length is checked first ([`content`]).
//! - `create` collects parts ([`sink`]); `remove_everything` writes a tombstone first ([`removal`]).
//!
//! One thread per process makes all requests ([`crate::runtime::drive`]) for all callers. A call does not notice a
//! cancellation of its caller: it ends with the request, whose time is limited.

mod ahead;
mod client;
mod content;
mod failure;
mod hint;
mod proof;
mod removal;
mod settings;
mod sink;
mod source;
mod write;

pub(super) use settings::check_names;

use super::{FLOOR, Listed, PutOutcome, Storage, StorageOptions, Swept, names};
use crate::base::{ByteSink, ByteSource, Entropy, Error, ErrorKind, Id, Result};
use crate::runtime::SystemEntropy;
use bytes::Bytes;
use client::{Client, Maker, Stores};
use content::Question;
use failure::Place;
use object_store::path::Path;
use object_store::{ObjectStore, UpdateVersion};
use removal::{Log, LogState, Look};
use settings::{Kind, Settings};
use std::sync::Arc;
use write::{Condition, Unwritten, write_if};

/// The prefix of the names of temporary objects.
const TEMPORARY: &str = ".probe-";

/// A store in a bucket.
#[derive(Debug)]
pub struct ObjectStorage {
    client: Arc<Client>,
    claims: Arc<sink::Claims>,
    log: LogState,
    proof: proof::Proof,
    hints: hint::Hints,
    identity: String,
}

impl ObjectStorage {
    /// The store at `bucket/key` of the kind that `scheme` names; no request is sent yet.
    ///
    /// # Errors
    /// Input if there is no bucket or key, or an option is unknown.
    pub(super) fn at(uri: &str, scheme: &str, rest: &str, options: &StorageOptions) -> Result<Self> {
        let kind =
            Kind::of_scheme(scheme).ok_or_else(|| Error::input(format!("{uri}: {scheme:?} is no object store")))?;
        let bad = || Error::input(format!("{uri:?} names no store; give {scheme}://bucket/key, without ? and #"));
        let (bucket, key) = rest.split_once('/').ok_or_else(bad)?;
        let key = key.strip_suffix('/').unwrap_or(key);
        if bucket.is_empty() || key.is_empty() || rest.contains(['?', '#', '\0', '\\']) {
            return Err(bad());
        }
        let prefix = Path::parse(key).map_err(|e| bad().with_source(e))?;
        let settings = Settings::new(kind, bucket, options, environment())?;
        let place = Place { bucket: format!("{scheme}://{bucket}"), uri: format!("{scheme}://{bucket}/{key}") };
        let identity = format!("{} {:016x}", place.uri, settings.fingerprint());
        Ok(Self::of(place, prefix, Maker::Settings(settings), identity))
    }

    /// A store under `key` of the object store `patient`, described as `uri`. Conditional writes go to `once`, which
    /// must send each request only once.
    ///
    /// # Errors
    /// Input if the key is invalid.
    pub fn over(uri: &str, key: &str, patient: Arc<dyn ObjectStore>, once: Arc<dyn ObjectStore>) -> Result<Self> {
        let prefix = Path::parse(key)
            .map_err(|e| Error::input(format!("{key:?} cannot be the key of a store")).with_source(e))?;
        let place = Place { bucket: uri.to_owned(), uri: uri.to_owned() };
        Ok(Self::of(place, prefix, Maker::Given(Stores { patient, once }), uri.to_owned()))
    }

    fn of(place: Place, prefix: Path, maker: Maker, identity: String) -> Self {
        let client = Arc::new(Client::new(place, prefix, maker));
        let (proof, hints) = Default::default();
        Self { client, claims: Arc::default(), log: LogState::new(), proof, hints, identity }
    }

    /// Does a read of `name`; `None` if it is in the log of a store that is being deleted.
    fn seen<T>(&self, name: &str, read: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
        if name != names::LOG && !in_log(name) {
            return read().map(Some);
        }
        match self.log.get() {
            Log::Alive => read().map(Some),
            Log::Removed => Ok(None),
            Log::Unknown => {
                let look = Look::start(&self.client)?;
                let found = read();
                match self.log.learn(look.floor(&self.client)?.as_deref()) {
                    Log::Removed => Ok(None),
                    _ => found.map(Some),
                }
            }
        }
    }

    /// An error if `name` is in the log of a store that is being deleted.
    fn check_alive(&self, name: &str) -> Result<()> {
        let alive = self.seen(name, || Ok(()))?;
        alive.ok_or_else(|| removal::deleted(&self.client))
    }

    fn absent(&self, name: &str) -> Error {
        Error::not_found(format!("cannot open {}: no such object", self.client.named(name)))
    }

    fn mark(&self) -> String {
        SystemEntropy.id().to_string()
    }

    fn write_if(&self, name: &str, bytes: &[u8], condition: Condition) -> Result<PutOutcome> {
        check_length(name, bytes)?;
        let (path, mark, bytes) = (self.client.path(name), self.mark(), Bytes::copy_from_slice(bytes));
        let asked = self
            .client
            .start(|stores| async move { write_if(&stores, &path, bytes, &mark, &condition).await })
            .map_err(Error::without_effect)?;
        asked.wait()?.map_err(|Unwritten { error, in_doubt }| {
            let error = self.client.error("cannot write", name, error);
            if in_doubt { error } else { error.without_effect() }
        })
    }

    /// The whole object, with its metadata.
    fn whole(&self, name: &str) -> Result<client::Found> {
        Question::start_whole(&self.client, name)?.whole(&self.client)
    }

    /// The result of a read of the floor: the floor, distinguished from a tombstone, and whether there is a log.
    fn learnt(&self, floor: Result<Option<Bytes>>) -> (Result<Bytes>, bool) {
        let known = self.log.get();
        let floor = match floor {
            Ok(floor) => floor,
            Err(e) => return (Err(e), known == Log::Alive),
        };
        match self.log.learn(floor.as_deref()) {
            Log::Removed if known == Log::Alive => (Err(removal::deleted(&self.client)), false),
            Log::Removed => (Err(self.absent(FLOOR)), false),
            _ => (floor.ok_or_else(|| self.absent(FLOOR)), true),
        }
    }

    /// The floor, distinguished from a tombstone.
    fn read_floor(&self) -> Result<Bytes> {
        self.learnt(Look::start(&self.client)?.floor(&self.client)).0
    }

    /// Passes the first `len` bytes of objects, or all, to `visit`; they are requested concurrently.
    fn visit_each(
        &self,
        names: &[String],
        len: Option<u64>,
        visit: &mut dyn FnMut(&str, Result<Bytes>) -> Result<()>,
    ) -> Result<()> {
        let Some(first) = names.first() else { return Ok(()) };
        names.iter().try_for_each(|name| names::checked(name).map(drop))?;
        let start = |name: &String| match len {
            Some(len) if name != FLOOR => Question::start(&self.client, name, len),
            _ => Question::start_whole(&self.client, name),
        };
        let asked = || names.iter().map(start).collect::<Result<Vec<_>>>();
        let received = |question: Question| {
            let is_floor = question.name() == FLOOR;
            let found =
                if len.is_some() && !is_floor { question.first(&self.client) } else { question.whole(&self.client) };
            match found {
                Err(e) if e.kind() == ErrorKind::Cancelled => Err(e),
                found if is_floor => Ok(self.learnt(removal::or_absent(found)).0),
                found => Ok(found.map(|found| found.bytes)),
            }
        };
        // If one of them is in the log, all are.
        let first = names.iter().find(|name| in_log(name)).unwrap_or(first);
        let answers = self.seen(first, || asked()?.into_iter().map(received).collect::<Result<Vec<_>>>())?;
        let Some(answers) = answers else {
            return names.iter().try_for_each(|name| visit(name, Err(self.absent(name))));
        };
        let cut = |answer: Result<Bytes>| answer.map(|bytes| len.map_or(bytes.clone(), |len| start_of(bytes, len)));
        names.iter().zip(answers).try_for_each(|(name, answer)| visit(name, cut(answer)))
    }

    fn each_object(&self, folder: &str, visit: &mut dyn FnMut(Listed)) -> Result<()> {
        self.client.each(folder, &mut |file, meta| {
            let modified_us = meta.last_modified.timestamp_micros();
            visit(Listed { name: format!("{folder}/{file}"), bytes: meta.size, modified_us });
        })
    }
}

/// The full name of a temporary object of the log.
fn temporary_name(mark: &str) -> String {
    format!("{}/{TEMPORARY}{mark}", names::LOG)
}

/// An Input error, without effect, if readers would refuse an object of this name and length.
fn check_length(name: &str, bytes: &[u8]) -> Result<()> {
    let (len, len_max) = (bytes.len() as u64, names::bytes_max(name));
    if len <= len_max {
        return Ok(());
    }
    Err(Error::input(format!("{name} would have {len} bytes, at most {len_max} are allowed; nothing was written"))
        .without_effect())
}

/// The environment variables of this process that are text.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Whether the object of this full name is in the log.
fn in_log(name: &str) -> bool {
    name.strip_prefix(names::LOG).is_some_and(|rest| rest.starts_with('/'))
}

/// The first `len` bytes of `bytes`.
fn start_of(bytes: Bytes, len: u64) -> Bytes {
    let len = bytes.len().min(usize::try_from(len).unwrap_or(usize::MAX));
    bytes.slice(..len)
}

/// Whether the object of this full name is a temporary one.
fn is_temporary(name: &str) -> bool {
    name.rsplit('/').next().is_some_and(|file| file.starts_with('.'))
}

impl Storage for ObjectStorage {
    fn describe(&self) -> String {
        self.client.place.uri.clone()
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    /// The time in answers is rounded down to whole seconds, so it is up to a second behind listings of the same
    /// moment.
    fn now_us(&self) -> Result<i64> {
        let name = temporary_name(&self.mark());
        self.client.put(&name, b"time")?;
        let found = self.client.head(&name);
        // If it stays behind, it is swept like other temporary objects.
        let _ = self.client.delete(std::slice::from_ref(&name));
        let found = found?.ok_or_else(|| self.absent(&name))?;
        Ok(found.meta.last_modified.timestamp().saturating_mul(1_000_000))
    }

    fn is_removed(&self) -> Result<bool> {
        removal::is_removed(&self.client)
    }

    fn prove_exclusive(&self, id: Id) -> Result<Option<i64>> {
        self.proof.of_store(&self.client, &self.identity, id)
    }

    fn prepare(&self) -> Result<()> {
        if removal::is_removed(&self.client)? {
            removal::finish(&self.client)?;
        }
        self.proof.of_place(&self.client)?;
        self.log.set(Log::Alive);
        Ok(())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ByteSource>> {
        let name = names::checked(name)?;
        let opened = self.seen(name, || source::ObjectSource::open(Arc::clone(&self.client), name))?;
        Ok(Arc::new(opened.ok_or_else(|| self.absent(name))?))
    }

    fn read_all(&self, name: &str) -> Result<Bytes> {
        let name = names::checked(name)?;
        if name == FLOOR {
            return self.read_floor();
        }
        let found = self.seen(name, || self.whole(name))?;
        found.map(|found| found.bytes).ok_or_else(|| self.absent(name))
    }

    fn read_start(&self, name: &str, len: u64) -> Result<Bytes> {
        let name = names::checked(name)?;
        if name == FLOOR {
            return self.read_floor().map(|floor| start_of(floor, len));
        }
        let found = self.seen(name, || Question::start(&self.client, name, len)?.first(&self.client))?;
        found.map(|found| start_of(found.bytes, len)).ok_or_else(|| self.absent(name))
    }

    fn read_start_and_floor(&self, name: &str, len: u64) -> (Result<Bytes>, Result<Bytes>) {
        let asked = names::checked(name).and_then(|name| Question::start(&self.client, name, len));
        let (floor, alive) = self.learnt(Look::start(&self.client).and_then(|look| look.floor(&self.client)));
        let start = match asked {
            Err(e) => Err(e),
            Ok(asked) if alive => asked.first(&self.client).map(|found| start_of(found.bytes, len)),
            // The existence of the log is unknown, or there is none.
            Ok(_) => Err(match &floor {
                Err(e) if e.kind() != ErrorKind::NotFound => Error::new(e.kind(), e.message()),
                _ => self.absent(name),
            }),
        };
        (start, floor)
    }

    fn read_each(&self, names: &[String], visit: &mut dyn FnMut(&str, Result<Bytes>) -> Result<()>) -> Result<()> {
        self.visit_each(names, None, visit)
    }

    fn read_each_start(
        &self,
        names: &[String],
        len: u64,
        visit: &mut dyn FnMut(&str, Result<Bytes>) -> Result<()>,
    ) -> Result<()> {
        self.visit_each(names, Some(len), visit)
    }

    fn create(&self, name: &str) -> Result<Box<dyn ByteSink>> {
        let name = names::checked(name)?;
        if !self.claims.take(name)? {
            return Err(sink::exists(&self.client, name));
        }
        let sink = sink::ObjectSink::new(Arc::clone(&self.client), Arc::clone(&self.claims), name, self.mark());
        if self.client.head(name)?.is_some() {
            return Err(sink::exists(&self.client, name));
        }
        Ok(Box::new(sink))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<PutOutcome> {
        let name = names::checked(name)?;
        self.check_alive(name).map_err(Error::without_effect)?;
        self.write_if(name, bytes, Condition::Absent)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        check_length(name, bytes)?;
        self.client.put(names::checked(name)?, bytes)
    }

    fn put_hint(&self, name: &str, bytes: &[u8]) -> Result<()> {
        check_length(name, bytes)?;
        self.hints.write(&self.client, names::checked(name)?, bytes)
    }

    fn sync(&self, name: &str) -> Result<()> {
        if self.exists(name)? { Ok(()) } else { Err(self.absent(name)) }
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.client.delete(&[names::checked(name)?.to_owned()])
    }

    fn delete_each(&self, names: &[String]) -> Result<()> {
        names.iter().try_for_each(|name| names::checked(name).map(drop))?;
        self.client.delete(names)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        self.survey(folder, &mut |listed| found.push(listed.name))?;
        found.sort();
        Ok(found)
    }

    fn list_few(&self, folder: &str, most: usize) -> Result<Option<Vec<String>>> {
        let folder = names::checked(folder)?;
        let Some(found) = self.seen(folder, || self.client.few(folder, most))? else { return Ok(Some(Vec::new())) };
        Ok(found.map(|files| {
            let names = files.into_iter().map(|file| format!("{folder}/{file}"));
            let mut names: Vec<String> = names.filter(|name| !is_temporary(name)).collect();
            names.sort();
            names
        }))
    }

    fn survey(&self, folder: &str, visit: &mut dyn FnMut(Listed)) -> Result<()> {
        let folder = names::checked(folder)?;
        self.seen(folder, || Ok(()))?.map_or(Ok(()), |()| {
            self.each_object(folder, &mut |listed| {
                if !is_temporary(&listed.name) {
                    visit(listed);
                }
            })
        })
    }

    fn sweep(&self, folder: &str, before_us: i64, delete: bool) -> Result<Swept> {
        let mut old = Vec::new();
        self.each_object(names::checked(folder)?, &mut |listed| {
            if is_temporary(&listed.name) && listed.modified_us < before_us {
                old.push(listed);
            }
        })?;
        if delete {
            self.client.delete(&old.iter().map(|listed| listed.name.clone()).collect::<Vec<_>>())?;
        }
        Ok(Swept { files: old.len() as u64, bytes: old.iter().map(|listed| listed.bytes).sum() })
    }

    fn put_if_unchanged(&self, name: &str, expected: Option<&[u8]>, bytes: &[u8]) -> Result<bool> {
        let name = names::checked(name)?;
        self.check_alive(name)?;
        let found = match self.whole(name) {
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            found => Some(found?),
        };
        if name == FLOOR && found.as_ref().is_some_and(|found| found.bytes == removal::TOMBSTONE) {
            return Err(removal::deleted(&self.client));
        }
        let condition = match (expected, found) {
            (None, None) => Condition::Absent,
            (Some(expected), Some(found)) if found.bytes == expected => {
                Condition::Unchanged(UpdateVersion { e_tag: found.meta.e_tag, version: found.meta.version })
            }
            _ => return Ok(false),
        };
        Ok(self.write_if(name, bytes, condition)? != PutOutcome::Exists)
    }

    fn exists(&self, name: &str) -> Result<bool> {
        let name = names::checked(name)?;
        Ok(self.seen(name, || self.client.head(name))?.flatten().is_some())
    }

    fn remove_everything(&self) -> Result<()> {
        removal::remove(&self.client)?;
        self.log.set(Log::Unknown);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
