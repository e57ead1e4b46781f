//! A folder that is written through two handles in turn, of which only one waits for the disk: as two processes with different contexts do.

use gridstone::base::{ByteSink, ByteSource, Id, KeyId, Result};
use gridstone::storage::{DiskCalls, Durability, Listed, LocalStorage, PutOutcome, Storage, Swept};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Two handles of one folder.
#[derive(Debug)]
pub(crate) struct Alternating {
    waiting: LocalStorage,
    deferring: LocalStorage,
    defers: AtomicBool,
}

impl Alternating {
    /// Both are changed by `calls`.
    pub(crate) fn new(root: &Path, calls: &Arc<impl DiskCalls + 'static>) -> Self {
        let handle = |durability| LocalStorage::with_calls(root, durability, calls.clone()).unwrap();
        let (waiting, deferring) = (handle(Durability::Full), handle(Durability::Close));
        Self { waiting, deferring, defers: AtomicBool::new(true) }
    }

    /// The other handle's turn.
    pub(crate) fn turn(&self) {
        self.defers.fetch_xor(true, Ordering::Relaxed);
    }

    fn now(&self) -> &LocalStorage {
        if self.defers.load(Ordering::Relaxed) { &self.deferring } else { &self.waiting }
    }
}

/// Passes calls on to the handle whose turn it is.
macro_rules! pass {
    ($(fn $name:ident(&self $(, $argument:ident: $kind:ty)*) -> $result:ty;)*) => {
        impl Storage for Alternating {
            $(fn $name(&self $(, $argument: $kind)*) -> $result {
                self.now().$name($($argument),*)
            })*
        }
    };
}

pass! {
    fn describe(&self) -> String;
    fn identity(&self) -> String;
    fn is_near(&self) -> bool;
    fn defers_sync(&self) -> bool;
    fn now_us(&self) -> Result<i64>;
    fn is_removed(&self) -> Result<bool>;
    fn prove_exclusive(&self, id: Id) -> Result<Option<i64>>;
    fn key_id(&self) -> Option<KeyId>;
    fn prepare(&self) -> Result<()>;
    fn open(&self, name: &str) -> Result<Arc<dyn ByteSource>>;
    fn read_all(&self, name: &str) -> Result<bytes::Bytes>;
    fn read_start(&self, name: &str, len: u64) -> Result<bytes::Bytes>;
    fn create(&self, name: &str) -> Result<Box<dyn ByteSink>>;
    fn put_if_absent(&self, name: &str, content: &[u8]) -> Result<PutOutcome>;
    fn put(&self, name: &str, content: &[u8]) -> Result<()>;
    fn put_hint(&self, name: &str, content: &[u8]) -> Result<()>;
    fn sync(&self, name: &str) -> Result<()>;
    fn set_aside(&self, name: &str) -> Result<String>;
    fn delete(&self, name: &str) -> Result<()>;
    fn delete_each(&self, names: &[String]) -> Result<()>;
    fn list(&self, folder: &str) -> Result<Vec<String>>;
    fn survey(&self, folder: &str, visit: &mut dyn FnMut(Listed)) -> Result<()>;
    fn sweep(&self, folder: &str, before_us: i64, delete: bool) -> Result<Swept>;
    fn put_if_unchanged(&self, name: &str, expected: Option<&[u8]>, content: &[u8]) -> Result<bool>;
    fn exists(&self, name: &str) -> Result<bool>;
    fn remove_everything(&self) -> Result<()>;
}
