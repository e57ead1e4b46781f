//! A store in a bucket of an object store: S3 and what speaks its protocol, Google's, Azure's.
//!
//! An object of the store is an object of the bucket, under the store's key. What the trait asks for is had so:
//!
//! - `put_if_absent` and `put_if_unchanged` are conditional PUTs ([`write`] tells how their outcome is found out). A store
//!   without them is found out when a Gridstone store is created there: it is tried, and refused.
//! - An object is seen whole or not at all, and is durable when its PUT has been answered: `sync` has nothing to do.
//! - `open` is one request, which brings the object's end; ranges are read side by side ([`source`]). An object that
//!   changed since is told by its tag.
//! - `create` gathers parts ([`sink`]); `remove_everything` leaves a tombstone first ([`removal`]).
//!
//! All requests are made by one thread per process ([`crate::runtime::drive`]), whoever waits for them. A call does not
//! notice that its caller wants to stop: it ends with the request, whose time is limited.

mod ahead;
mod client;
mod failure;
mod removal;
mod settings;
mod sink;
mod source;
mod write;

pub(super) use settings::check_names;

use super::{FLOOR, Listed, PutOutcome, Storage, StorageOptions, Swept, names};
use crate::base::{ByteSink, ByteSource, Entropy, Error, ErrorKind, Result};
use crate::runtime::{Asked, SystemEntropy};
use bytes::Bytes;
use client::{Client, Maker, Stores};
use failure::Place;
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore, UpdateVersion};
use removal::{Log, LogState, Look};
use settings::{Kind, Settings};
use std::sync::Arc;
use write::{Condition, write_if};

/// What temporary objects begin with.
const TEMPORARY: &str = ".probe-";

/// A store in a bucket.
#[derive(Debug)]
pub struct ObjectStorage {
    client: Arc<Client>,
    claims: Arc<sink::Claims>,
    log: LogState,
    identity: String,
}

impl ObjectStorage {
    /// The store at `bucket/key` of the kind that `scheme` names; nothing is asked of it yet.
    ///
    /// # Errors
    /// Input if there is no bucket or key, or an option is none.
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

    /// A store under `key` of the object store `patient`, described as `uri`. Conditional writes go to `once`, which must
    /// send each request a single time.
    ///
    /// # Errors
    /// Input if the key is none.
    pub fn over(uri: &str, key: &str, patient: Arc<dyn ObjectStore>, once: Arc<dyn ObjectStore>) -> Result<Self> {
        let prefix = Path::parse(key)
            .map_err(|e| Error::input(format!("{key:?} cannot be the key of a store")).with_source(e))?;
        let place = Place { bucket: uri.to_owned(), uri: uri.to_owned() };
        Ok(Self::of(place, prefix, Maker::Given(Stores { patient, once }), uri.to_owned()))
    }

    fn of(place: Place, prefix: Path, maker: Maker, identity: String) -> Self {
        let client = Arc::new(Client::new(place, prefix, maker));
        Self { client, claims: Arc::default(), log: LogState::new(), identity }
    }

    /// Does a read of `name`; `None` if it is in the log of a store that is being deleted.
    fn seen<T>(&self, name: &str, read: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
        if name != names::LOG && !name.starts_with("_log/") {
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

    fn write_if(&self, name: &str, bytes: &[u8], condition: Condition) -> Result<bool> {
        let (path, mark, bytes) = (self.client.path(name), self.mark(), Bytes::copy_from_slice(bytes));
        self.client
            .ask("cannot write", name, |stores| async move { write_if(&stores, &path, bytes, &mark, &condition).await })
    }

    /// The floor, of which a tombstone is told apart.
    fn read_floor(&self) -> Result<Bytes> {
        let known = self.log.get();
        let floor = Look::start(&self.client)?.floor(&self.client)?;
        match self.log.learn(floor.as_deref()) {
            Log::Removed if known == Log::Alive => Err(removal::deleted(&self.client)),
            Log::Removed => Err(self.absent(FLOOR)),
            _ => floor.ok_or_else(|| self.absent(FLOOR)),
        }
    }

    /// Creates an object twice: only once may that succeed.
    fn try_conditions(&self) -> Result<()> {
        let name = format!("{}/{TEMPORARY}{}", names::LOG, self.mark());
        let first = self.write_if(&name, b"first", Condition::Absent)?;
        let second = self.write_if(&name, b"second", Condition::Absent);
        self.client.delete(&[name])?;
        if first && !second? {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "{} cannot hold a store that is written to: it takes a PUT with If-None-Match for a plain one, so two writers would \
             overwrite each other; use a store that knows conditional writes, or a newer version of this one",
            self.client.place.bucket
        )))
    }

    fn each_object(&self, folder: &str, visit: &mut dyn FnMut(Listed)) -> Result<()> {
        self.client.each(folder, &mut |file, meta| {
            let modified_us = meta.last_modified.timestamp_micros();
            visit(Listed { name: format!("{folder}/{file}"), bytes: meta.size, modified_us });
        })
    }
}

/// The variables of this process that are text.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Whether an object of this whole name is a temporary one.
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

    fn now_us(&self) -> Result<i64> {
        let name = format!("{}/{TEMPORARY}{}", names::LOG, self.mark());
        self.client.put(&name, b"time")?;
        let found = self.client.head(&name)?;
        self.client.delete(&[name.clone()])?;
        found.map(|found| found.meta.last_modified.timestamp_micros()).ok_or_else(|| self.absent(&name))
    }

    fn is_removed(&self) -> Result<bool> {
        removal::is_removed(&self.client)
    }

    fn prepare(&self) -> Result<()> {
        if removal::is_removed(&self.client)? {
            removal::finish(&self.client)?;
        }
        self.try_conditions()?;
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
        let found = self.seen(name, || self.client.get(name, GetOptions::default()))?;
        found.map(|found| found.bytes).ok_or_else(|| self.absent(name))
    }

    fn read_each(&self, names: &[String], visit: &mut dyn FnMut(&str, Result<Bytes>) -> Result<()>) -> Result<()> {
        let Some(first) = names.first() else { return Ok(()) };
        names.iter().try_for_each(|name| names::checked(name).map(drop))?;
        let start = |name: &String| self.client.start_get(name, GetOptions::default());
        let asked = || names.iter().map(start).collect::<Result<Vec<_>>>();
        // The log that one of them is in, all of them are in.
        let answers = self.seen(first, || asked()?.into_iter().map(Asked::wait).collect::<Result<Vec<_>>>())?;
        let Some(answers) = answers else {
            return names.iter().try_for_each(|name| visit(name, Err(self.absent(name))));
        };
        names.iter().zip(answers).try_for_each(|(name, answer)| {
            visit(name, answer.map(|found| found.bytes).map_err(|e| self.client.error("cannot read", name, e)))
        })
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
        self.check_alive(name)?;
        let created = self.write_if(name, bytes, Condition::Absent)?;
        Ok(if created { PutOutcome::Created } else { PutOutcome::Exists })
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.client.put(names::checked(name)?, bytes)
    }

    fn put_hint(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.put(name, bytes)
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
        let found = match self.client.get(name, GetOptions::default()) {
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            found => Some(found?),
        };
        if name == FLOOR && found.as_ref().is_some_and(|found| found.bytes == removal::TOMBSTONE) {
            return Err(removal::deleted(&self.client));
        }
        match (expected, found) {
            (None, None) => self.write_if(name, bytes, Condition::Absent),
            (Some(expected), Some(found)) if found.bytes == expected => {
                let version = UpdateVersion { e_tag: found.meta.e_tag, version: found.meta.version };
                self.write_if(name, bytes, Condition::Unchanged(version))
            }
            _ => Ok(false),
        }
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
