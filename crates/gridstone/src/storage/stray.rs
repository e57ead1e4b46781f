//! A decorator that gives wrong answers, for tests of the commit protocol. Reads are refused, find nothing or return
//! rubbish though the object exists; puts take effect after their sender got an error.
//!
//! Unlike in [`super::FaultyStorage`], no error says that it had no effect.

use super::{FLOOR, Listed, PutOutcome, Storage, Swept};
use crate::base::{ByteSink, ByteSource, Error, ErrorKind, Id, KeyId, Result};
use bytes::Bytes;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An answer that does not reflect what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stray {
    /// Permission is refused (403).
    Refused,
    /// The object is reported missing (404).
    Missing,
    /// Bytes that are not the object's (200).
    Rubbish,
    /// The server fails (503).
    Failed,
    /// The server does not know the request (501).
    Unknown,
    /// Bytes that start like an object of a later format, without its checksum (200).
    Newer,
}

/// Decides about each read of an object; `None`: it is answered correctly.
type Answer = dyn Fn(&str) -> Option<Stray> + Send + Sync;

/// Decides about each conditional put; `true`: its sender gets an error, and it takes effect later.
type Delay = dyn Fn(&str) -> bool + Send + Sync;

/// A storage that gives wrong answers.
#[derive(Clone)]
pub struct StrayStorage {
    inner: Arc<dyn Storage>,
    answer: Arc<Answer>,
    delay: Arc<Delay>,
    late: Arc<Mutex<VecDeque<(String, Bytes)>>>,
}

impl Debug for StrayStorage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StrayStorage").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl StrayStorage {
    /// `inner`, with the answers of `answer` to its reads, and with late conditional puts where `delay` says so.
    pub fn new(
        inner: Arc<dyn Storage>,
        answer: impl Fn(&str) -> Option<Stray> + Send + Sync + 'static,
        delay: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { inner, answer: Arc::new(answer), delay: Arc::new(delay), late: Arc::default() }
    }

    /// Lets the oldest late put take effect; returns whether there was one, and its outcome.
    pub fn land(&self) -> Option<Result<PutOutcome>> {
        let (name, bytes) = self.late().pop_front()?;
        Some(self.inner.put_if_absent(&name, &bytes))
    }

    fn late(&self) -> MutexGuard<'_, VecDeque<(String, Bytes)>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to a read whose correct answer is `read`.
    fn answered(&self, name: &str, read: impl FnOnce() -> Result<Bytes>) -> Result<Bytes> {
        match (self.answer)(name) {
            None => read(),
            Some(Stray::Rubbish) => Ok(Bytes::from_static(b"<html>Service temporarily unavailable</html>\n")),
            Some(Stray::Newer) => Ok(Bytes::from_static(b"{\"gs\":7,\"version\":1}\n0123456789abcdef\n")),
            Some(stray) => Err(error(stray, name)),
        }
    }
}

fn error(stray: Stray, name: &str) -> Error {
    let kind = match stray {
        Stray::Refused => ErrorKind::Access,
        Stray::Missing => ErrorKind::NotFound,
        Stray::Unknown => ErrorKind::Unsupported,
        Stray::Rubbish | Stray::Newer | Stray::Failed => ErrorKind::Storage,
    };
    Error::new(kind, format!("a stray answer about {name}: {stray:?}"))
}

impl Storage for StrayStorage {
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
        self.inner.key_id()
    }

    fn prepare(&self) -> Result<()> {
        self.inner.prepare()
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ByteSource>> {
        self.inner.open(name)
    }

    fn read_all(&self, name: &str) -> Result<Bytes> {
        self.answered(name, || self.inner.read_all(name))
    }

    fn read_start(&self, name: &str, len: u64) -> Result<Bytes> {
        self.answered(name, || self.inner.read_start(name, len))
    }

    /// The floor first, as answers of concurrent requests may arrive.
    fn read_start_and_floor(&self, name: &str, len: u64) -> (Result<Bytes>, Result<Bytes>) {
        let floor = self.read_all(FLOOR);
        (self.read_start(name, len), floor)
    }

    fn create(&self, name: &str) -> Result<Box<dyn ByteSink>> {
        self.inner.create(name)
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<PutOutcome> {
        if !(self.delay)(name) {
            return self.inner.put_if_absent(name, bytes);
        }
        self.late().push_back((name.to_owned(), Bytes::copy_from_slice(bytes)));
        Err(error(Stray::Failed, name))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.inner.put(name, bytes)
    }

    fn put_hint(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.inner.put_hint(name, bytes)
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

    fn survey(&self, folder: &str, visit: &mut dyn FnMut(Listed)) -> Result<()> {
        self.inner.survey(folder, visit)
    }

    fn sweep(&self, folder: &str, before_us: i64, delete: bool) -> Result<Swept> {
        self.inner.sweep(folder, before_us, delete)
    }

    fn put_if_unchanged(&self, name: &str, expected: Option<&[u8]>, bytes: &[u8]) -> Result<bool> {
        self.inner.put_if_unchanged(name, expected, bytes)
    }

    fn exists(&self, name: &str) -> Result<bool> {
        match (self.answer)(name) {
            None => self.inner.exists(name),
            Some(Stray::Missing) => Ok(false),
            Some(Stray::Rubbish | Stray::Newer) => Ok(true),
            Some(stray) => Err(error(stray, name)),
        }
    }

    fn remove_everything(&self) -> Result<()> {
        self.inner.remove_everything()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{MemoryStorage, conformance};

    #[test]
    fn honest_answers_conform() {
        conformance::check(&|| Arc::new(StrayStorage::new(Arc::new(MemoryStorage::new()), |_| None, |_| false)));
    }

    #[test]
    fn a_late_put_lands_once_and_only_where_nothing_is() {
        let inner = MemoryStorage::new();
        let storage = StrayStorage::new(Arc::new(inner.clone()), |_| None, |name| name.ends_with("late"));
        for name in ["_log/late", "_log/x.late"] {
            storage.put_if_absent(name, b"bytes").unwrap_err();
        }
        inner.put("_log/x.late", b"others").unwrap();
        let landed: Vec<_> = std::iter::from_fn(|| storage.land().map(Result::unwrap)).collect();
        assert_eq!(landed, [PutOutcome::Created, PutOutcome::Exists]);
        assert_eq!(
            (inner.read_all("_log/late").unwrap(), inner.read_all("_log/x.late").unwrap()),
            ("bytes".into(), "others".into())
        );
    }
}
