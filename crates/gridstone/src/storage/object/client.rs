//! Requests to one bucket, under one prefix, from any thread: the clients of this process, and each request as a
//! blocking call.
//!
//! A client's connections belong to the process that made it, so the child of a fork makes its own.

use super::failure::Place;
use super::settings::Settings;
use crate::base::{Error, Result};
use crate::runtime::{Asked, Driven, PerProcess, drive};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, PutPayload};
use std::future::Future;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The largest number of concurrent requests: enough to hide their latency, few enough for one thread and for the
/// store.
const REQUESTS_MAX: usize = 64;

/// Clients of one bucket.
#[derive(Debug, Clone)]
pub(super) struct Stores {
    /// Retries failed requests, where that does no harm.
    pub(super) patient: Arc<dyn ObjectStore>,
    /// Sends each request once: for requests that must not be retried blindly.
    pub(super) once: Arc<dyn ObjectStore>,
}

/// The origin of clients.
#[derive(Debug, Clone)]
pub(super) enum Maker {
    /// Made from settings.
    Settings(Settings),
    /// Passed by the caller.
    Given(Stores),
}

/// The clients of this process, and the limit of their concurrent requests.
#[derive(Debug, Clone)]
struct Connected {
    stores: Stores,
    turns: Arc<Semaphore>,
}

/// A prefix in a bucket.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) place: Place,
    prefix: Path,
    maker: Maker,
    connected: PerProcess<Connected>,
}

/// The answer to a read of an object.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) meta: ObjectMeta,
    /// The mark of the conditional write that made it, if any.
    pub(super) mark: Option<String>,
    /// The offset of `bytes` in the object.
    pub(super) start: u64,
    pub(super) bytes: Bytes,
}

/// Runs a request when its turn comes.
async fn in_turn<T>(turns: Arc<Semaphore>, request: impl Future<Output = T>) -> T {
    // The semaphore is never closed; without a turn the request is only early.
    let _turn = turns.acquire_owned().await.ok();
    request.await
}

/// Reads an object, or the part that `options` selects.
pub(super) async fn fetched(store: &dyn ObjectStore, path: &Path, options: GetOptions) -> object_store::Result<Found> {
    let head = options.head;
    let found = store.get_opts(path, options).await?;
    let mark = found.attributes.get(&super::write::MARK).map(|mark| mark.to_string());
    let (meta, start) = (found.meta.clone(), found.range.start);
    let bytes = if head { Bytes::new() } else { found.bytes().await? };
    Ok(Found { meta, mark, start, bytes })
}

impl Client {
    pub(super) fn new(place: Place, prefix: Path, maker: Maker) -> Self {
        Self { place, prefix, maker, connected: PerProcess::new() }
    }

    /// The full path of an object or folder.
    pub(super) fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// `s3://bucket/key/name`, for messages.
    pub(super) fn named(&self, name: &str) -> String {
        format!("{}/{name}", self.place.uri)
    }

    fn connected(&self) -> Result<Connected> {
        let connect = || {
            let stores = match &self.maker {
                Maker::Settings(settings) => settings.connect()?,
                Maker::Given(stores) => stores.clone(),
            };
            Ok(Connected { stores, turns: Arc::new(Semaphore::new(REQUESTS_MAX)) })
        };
        self.connected.get_or_try_build(connect).cloned()
    }

    /// Starts a request to the clients.
    pub(super) fn start<T, F>(&self, request: impl FnOnce(Stores) -> F) -> Result<Driven<T>>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let Connected { stores, turns } = self.connected()?;
        drive(in_turn(turns, request(stores)))
    }

    /// Makes a request to the clients; `asked` ("cannot read") and `name` describe it in errors.
    pub(super) fn ask<T, F>(&self, asked: &str, name: &str, request: impl FnOnce(Stores) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = object_store::Result<T>> + Send + 'static,
    {
        self.start(request)?.wait()?.map_err(|e| self.error(asked, name, e))
    }

    pub(super) fn error(&self, asked: &str, name: &str, error: object_store::Error) -> Error {
        self.place.error(format_args!("{asked} {}", self.named(name)), error)
    }

    /// Reads an object, or the part that `options` selects.
    pub(super) fn get(&self, name: &str, options: GetOptions) -> Result<Found> {
        self.start_get(name, options)?.wait()?.map_err(|e| self.error("cannot read", name, e))
    }

    /// Starts a read of an object, or of the part that `options` selects.
    pub(super) fn start_get(&self, name: &str, options: GetOptions) -> Result<Asked<object_store::Result<Found>>> {
        let path = self.path(name);
        self.start(|stores| async move { fetched(stores.patient.as_ref(), &path, options).await }).map(Asked::from)
    }

    /// Starts a read of a range of an object, which must have the tag `tag`.
    pub(super) fn start_range(
        &self,
        name: &str,
        range: std::ops::Range<u64>,
        tag: Option<String>,
    ) -> Result<Asked<object_store::Result<Found>>> {
        let options = GetOptions { range: Some(GetRange::Bounded(range)), if_match: tag, ..GetOptions::default() };
        self.start_get(name, options)
    }

    /// The metadata of an object; `None` if it does not exist.
    pub(super) fn head(&self, name: &str) -> Result<Option<Found>> {
        match self.start_get(name, GetOptions { head: true, ..GetOptions::default() })?.wait()? {
            Ok(found) => Ok(Some(found)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(e) => Err(self.error("cannot look for", name, e)),
        }
    }

    /// Creates or replaces an object.
    pub(super) fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let (path, bytes) = (self.path(name), Bytes::copy_from_slice(bytes));
        self.ask("cannot write", name, |stores| async move {
            stores.patient.put(&path, PutPayload::from_bytes(bytes)).await.map(drop)
        })
    }

    /// Deletes objects, whether they exist or not.
    pub(super) fn delete(&self, names: &[String]) -> Result<()> {
        let Some(first) = names.first() else { return Ok(()) };
        let paths: Vec<_> = names.iter().map(|name| self.path(name)).collect();
        self.ask("cannot delete", first, |stores| async move {
            if let [path] = paths.as_slice() {
                return gone(stores.patient.delete(path).await);
            }
            let paths = futures_util::stream::iter(paths.into_iter().map(Ok)).boxed();
            let mut deleted = stores.patient.delete_stream(paths);
            while let Some(outcome) = deleted.next().await {
                gone(outcome.map(drop))?;
            }
            Ok(())
        })
    }

    /// Passes the entries directly in `folder` to `visit`, page by page: names within the folder, and metadata.
    pub(super) fn each(&self, folder: &str, visit: &mut dyn FnMut(&str, ObjectMeta)) -> Result<()> {
        let prefix = self.path(folder);
        let Connected { stores, .. } = self.connected()?;
        // The consumer requests pages, so a second future drives the stream between two of its pages.
        let mut pages = Some(stores.patient.list(Some(&prefix)).chunks(PAGE));
        while let Some(mut stream) = pages.take() {
            let asked = drive(async move {
                let page = stream.next().await;
                (page, stream)
            })?;
            let (page, rest) = asked.wait_or_cancel()?;
            let Some(page) = page else { break };
            for found in page {
                let found = found.map_err(|e| self.error("cannot list", folder, e))?;
                let within = found.location.prefix_match(&prefix).map(|parts| parts.collect::<Vec<_>>());
                if let Some([file]) = within.as_deref() {
                    let file = file.as_ref().to_owned();
                    visit(&file, found);
                }
            }
            pages = Some(rest);
        }
        Ok(())
    }

    /// The names of all entries directly in `folder`, relative to it, in one request; `None` if there are more than
    /// `most`. `most` must be less than stores return in one answer.
    pub(super) fn few(&self, folder: &str, most: usize) -> Result<Option<Vec<String>>> {
        let prefix = self.path(folder);
        let below = prefix.clone();
        let asked = self.start(|stores| async move {
            stores.patient.list(Some(&below)).take(most + 1).try_collect::<Vec<ObjectMeta>>().await
        })?;
        let found = asked.wait_or_cancel()?.map_err(|e| self.error("cannot list", folder, e))?;
        let within = |found: &ObjectMeta| {
            let parts: Vec<_> = found.location.prefix_match(&prefix)?.collect();
            if let [file] = parts.as_slice() { Some(file.as_ref().to_owned()) } else { None }
        };
        Ok((found.len() <= most).then(|| found.iter().filter_map(within).collect()))
    }

    /// Whether `folder` has any entry.
    pub(super) fn any(&self, folder: &str) -> Result<bool> {
        let prefix = self.path(folder);
        let found =
            self.start(|stores| async move { Ok(stores.patient.list(Some(&prefix)).try_next().await?.is_some()) })?;
        found.wait_or_cancel()?.map_err(|e| self.error("cannot list", folder, e))
    }
}

/// How many entries of a listing are passed on at once: what most stores return in one answer.
const PAGE: usize = 1_000;

/// Success if the object was deleted, or did not exist.
fn gone(outcome: object_store::Result<()>) -> object_store::Result<()> {
    match outcome {
        Err(object_store::Error::NotFound { source, path }) => {
            let missing = object_store::Error::NotFound { source, path };
            if super::failure::is_bucket_missing(&missing) { Err(missing) } else { Ok(()) }
        }
        other => other,
    }
}
