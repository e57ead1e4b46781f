//! An object being written, front to back: one request if it is small, else parts, several of which are in flight.
//!
//! The object is not visible before it is finished. The parts of a large object that a dead process had sent are an
//! *incomplete multipart upload*. It is never listed as an object, but is kept and paid for until the bucket's
//! lifecycle rule deletes it.

use super::client::{Client, fetched};
use super::write::{Condition, MARK, write_if};
use crate::base::{ByteSink, Error};
use crate::runtime::{Driven, Owner, PerProcess, drive, driven};
use crate::storage::PutOutcome;
use bytes::Bytes;
use futures_util::future::{AbortHandle, Aborted, abortable};
use object_store::{AttributeValue, Attributes, GetOptions, MultipartUpload, PutMultipartOptions, PutPayload};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

type Result<T, E = Error> = std::result::Result<T, E>;

/// The size of a part of a large object; a smaller object is one request.
pub(super) const PART_BYTES: usize = 8 << 20;
/// Stores accept 10,000 parts per object. The second half of them are larger, so that an object may have 350 GiB.
const SMALL_PARTS: usize = 5_000;
const LARGE_PART_BYTES: usize = 64 << 20;
/// The largest number of parts in flight.
const PARTS_UNDER_WAY: usize = 4;
/// The time limit for giving up an object.
const ABORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Names that sinks of this process are writing to.
#[derive(Debug, Default)]
pub(super) struct Claims(PerProcess<Mutex<BTreeSet<String>>>);

impl Claims {
    fn held(&self) -> Result<MutexGuard<'_, BTreeSet<String>>> {
        let held = self.0.get_or_try_build(|| Ok(Mutex::default()))?;
        Ok(held.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes `name`; returns false if it is taken.
    pub(super) fn take(&self, name: &str) -> Result<bool> {
        Ok(self.held()?.insert(name.to_owned()))
    }

    fn give_back(&self, name: &str) {
        if let Ok(mut held) = self.held() {
            held.remove(name);
        }
    }
}

/// An object that is sent in parts.
struct Upload {
    parts: Box<dyn MultipartUpload>,
    under_way: VecDeque<Part>,
    started: usize,
}

/// A part in flight.
struct Part {
    answer: Driven<Result<object_store::Result<()>, Aborted>>,
    stop: AbortHandle,
}

/// An object being written.
pub(super) struct ObjectSink {
    client: Arc<Client>,
    claims: Arc<Claims>,
    name: String,
    mark: String,
    /// The process that gives the object up: a forked child only drops its copy.
    owner: Owner,
    buffer: Vec<u8>,
    written: u64,
    upload: Option<Upload>,
}

impl ObjectSink {
    /// Starts the object `name`, which is taken in `claims`; nothing is sent yet.
    pub(super) fn new(client: Arc<Client>, claims: Arc<Claims>, name: &str, mark: String) -> Self {
        let (name, owner) = (name.to_owned(), Owner::here());
        Self { client, claims, name, mark, owner, buffer: Vec::new(), written: 0, upload: None }
    }

    fn part_bytes(&self) -> usize {
        if self.upload.as_ref().is_some_and(|u| u.started >= SMALL_PARTS) { LARGE_PART_BYTES } else { PART_BYTES }
    }

    fn begun(&mut self) -> Result<&mut Upload> {
        if self.upload.is_none() {
            let attributes = Attributes::from_iter([(MARK, AttributeValue::from(self.mark.clone()))]);
            let options = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
            let path = self.client.path(&self.name);
            let parts = self.client.ask("cannot write", &self.name, |stores| async move {
                stores.patient.put_multipart_opts(&path, options).await
            })?;
            self.upload = Some(Upload { parts, under_way: VecDeque::new(), started: 0 });
        }
        self.upload.as_mut().ok_or_else(|| Error::storage("an upload that was begun is not there"))
    }

    /// Sends the collected bytes as a part.
    fn send_part(&mut self) -> Result<()> {
        let bytes = Bytes::from(std::mem::take(&mut self.buffer));
        let upload = self.begun()?;
        let (part, stop) = abortable(upload.parts.put_part(PutPayload::from_bytes(bytes)));
        upload.under_way.push_back(Part { answer: drive(part)?, stop });
        upload.started += 1;
        self.settle(PARTS_UNDER_WAY - 1)
    }

    /// Waits until only `left` parts are in flight.
    fn settle(&mut self, left: usize) -> Result<()> {
        let Some(upload) = self.upload.as_mut() else { return Ok(()) };
        while upload.under_way.len() > left {
            let Some(part) = upload.under_way.pop_front() else { break };
            let answer =
                part.answer.wait_or_cancel()?.map_err(|_| Error::storage("a part was given up while it was sent"))?;
            answer.map_err(|e| self.client.error("cannot write", &self.name, e))?;
        }
        Ok(())
    }

    /// Makes an object of the parts sent.
    fn complete(&mut self) -> Result<()> {
        if !self.buffer.is_empty() {
            self.send_part()?;
        }
        self.settle(0)?;
        let Some(mut upload) = self.upload.take() else { return Ok(()) };
        let (outcome, parts) = driven(async move {
            let outcome = upload.parts.complete().await;
            (outcome, upload.parts)
        })?;
        let Err(error) = outcome else { return Ok(()) };
        self.upload = Some(Upload { parts, under_way: VecDeque::new(), started: 0 });
        if self.is_complete()? {
            self.upload = None;
            return Ok(());
        }
        Err(self.client.error("cannot write", &self.name, error))
    }

    /// Whether our object exists, whatever the answer to its last request was.
    fn is_complete(&self) -> Result<bool> {
        let path = self.client.path(&self.name);
        let options = GetOptions { head: true, ..GetOptions::default() };
        let found =
            self.client.start(|stores| async move { fetched(stores.patient.as_ref(), &path, options).await })?;
        Ok(found.wait()?.is_ok_and(|f| f.meta.size == self.written && f.mark.as_ref() == Some(&self.mark)))
    }

    /// Sends the whole object in one request.
    fn put_whole(&mut self) -> Result<()> {
        let (path, mark) = (self.client.path(&self.name), self.mark.clone());
        let bytes = Bytes::from(std::mem::take(&mut self.buffer));
        let asked = self
            .client
            .start(|stores| async move { write_if(&stores, &path, bytes, &mark, &Condition::Absent).await })?;
        match asked.wait()?.map_err(|e| self.client.error("cannot write", &self.name, e.error))? {
            PutOutcome::Created | PutOutcome::CreatedLate => Ok(()),
            PutOutcome::Exists => Err(exists(&self.client, &self.name)),
        }
    }
}

/// The error for a name that is taken.
pub(super) fn exists(client: &Client, name: &str) -> Error {
    Error::exists(format!("cannot create {}: it is there", client.named(name)))
}

impl ByteSink for ObjectSink {
    fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.written += bytes.len() as u64;
        while !bytes.is_empty() {
            let room = self.part_bytes().saturating_sub(self.buffer.len());
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() >= self.part_bytes() {
                self.send_part()?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if self.upload.is_some() { self.complete() } else { self.put_whole() }
    }
}

impl Drop for ObjectSink {
    fn drop(&mut self) {
        if !self.owner.is_here() {
            // Its parts belong to the parent, and so does the thread that would stop them.
            std::mem::forget(self.upload.take());
            return;
        }
        self.claims.give_back(&self.name);
        if let Some(mut upload) = self.upload.take() {
            // A part that arrives after the upload was given up would be kept.
            for Part { answer, stop } in upload.under_way.drain(..) {
                stop.abort();
                let _ = answer.wait();
            }
            let _ = driven(async move { tokio::time::timeout(ABORT_TIMEOUT, upload.parts.abort()).await });
        }
    }
}
