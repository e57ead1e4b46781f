//! A local store whose sources do or do not get prefetches. The calls that read are the same.

use bytes::Bytes;
use gridstone::base::{ByteRange, ByteSink, ByteSource, Pending, Result, limits};
use gridstone::storage::{Listed, LocalStorage, PutOutcome, Storage, Swept, coalesce};
use std::sync::Arc;

/// A local store with or without read-ahead.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) inner: LocalStorage,
    pub(super) tells: bool,
}

#[derive(Debug)]
struct Silent(Arc<dyn ByteSource>);

impl ByteSource for Silent {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn submit(&self, ranges: &[ByteRange]) -> Result<Box<dyn Pending + '_>> {
        Ok(Box::new(Reads { source: self.0.as_ref(), ranges: ranges.to_vec() }))
    }

    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.0.read_into(offset, out)
    }

    fn remote_gap(&self) -> Option<u64> {
        self.0.remote_gap()
    }
}

/// A local source prefetches the rest of its own request, so it gets one merged range after the other.
struct Reads<'a> {
    source: &'a dyn ByteSource,
    ranges: Vec<ByteRange>,
}

impl Pending for Reads<'_> {
    fn wait(self: Box<Self>) -> Result<Vec<Bytes>> {
        let mut found = vec![Bytes::new(); self.ranges.len()];
        for read in coalesce(&self.ranges, limits::GAP_BYTES, MERGED_BYTES_MAX) {
            let bytes = self.source.read_one(read.range)?;
            for part in read.parts {
                if let (Some(asked), Some(place)) = (self.ranges.get(part.index), found.get_mut(part.index)) {
                    let start = part.start as usize;
                    *place = bytes.slice(start..start + asked.len as usize);
                }
            }
        }
        Ok(found)
    }
}

/// The largest range that local sources merge.
const MERGED_BYTES_MAX: u64 = 4 << 20;

impl Storage for Told {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn is_near(&self) -> bool {
        self.inner.is_near()
    }

    fn prepare(&self) -> Result<()> {
        self.inner.prepare()
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ByteSource>> {
        let source = self.inner.open(name)?;
        Ok(if self.tells { source } else { Arc::new(Silent(source)) })
    }

    fn read_all(&self, name: &str) -> Result<Bytes> {
        self.inner.read_all(name)
    }

    fn create(&self, name: &str) -> Result<Box<dyn ByteSink>> {
        self.inner.create(name)
    }

    fn now_us(&self) -> Result<i64> {
        self.inner.now_us()
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<PutOutcome> {
        self.inner.put_if_absent(name, bytes)
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
        self.inner.exists(name)
    }

    fn remove_everything(&self) -> Result<()> {
        self.inner.remove_everything()
    }
}
