//! A store's files by id, and their names.

use super::{ForeignFiles, Storage, foreign, names};
use crate::base::{ByteSink, ByteSource, Error, FileRef, Files, ForeignObject, Id, Result, Sources};
use std::sync::Arc;

/// The object that holds the lowest version still kept.
pub const FLOOR: &str = "_log/floor";
/// The object that hints at the newest version; never trusted.
pub const LATEST: &str = "_log/latest";

/// The name of the log record of `version`.
pub fn log_name(version: u64) -> String {
    format!("{}/{version:020}", names::LOG)
}

/// The name of the data file `id`.
pub fn data_name(id: Id) -> String {
    format!("{}/{id}.frag", names::DATA)
}

/// The name of the manifest page `id`.
pub fn manifest_name(id: Id) -> String {
    format!("{}/{id}", names::MANIFEST)
}

/// The name of the lease `id`.
pub fn lease_name(id: Id) -> String {
    format!("{}/{id}", names::LEASE)
}

/// [`Files`] of a storage, for the floors that do not know names.
#[derive(Debug, Clone)]
pub struct StoreFiles {
    /// Where the files are.
    pub storage: Arc<dyn Storage>,
    /// What files of other formats may be read; `None`: none is looked at.
    pub foreign: Option<Arc<ForeignFiles>>,
}

impl StoreFiles {
    /// The files of a storage, without any of another format.
    pub fn own(storage: Arc<dyn Storage>) -> Self {
        Self { storage, foreign: None }
    }
}

impl Files for StoreFiles {
    fn open(&self, file: FileRef) -> Result<Arc<dyn ByteSource>> {
        self.storage.open(&match file {
            FileRef::Data(id) => data_name(id),
            FileRef::Log(version) => log_name(version),
            FileRef::Nowhere => return Err(Error::corruption("bytes are wanted of a deletion, which has none")),
            FileRef::OnBase(base, id) => {
                return Err(Error::unsupported(format!(
                    "the file {id} lies on base {base}, and this release of Gridstone reads the own store alone; use a newer Gridstone"
                )));
            }
        })
    }

    fn sources(&self) -> Option<Arc<dyn Sources>> {
        let foreign = Arc::clone(self.foreign.as_ref()?);
        Some(Arc::new(StoreSources { store: self.storage.describe(), foreign }))
    }

    fn is_near(&self) -> bool {
        self.storage.is_near()
    }

    fn create(&self, id: Id) -> Result<Box<dyn ByteSink>> {
        self.storage.create(&data_name(id))
    }

    fn remove(&self, id: Id) -> Result<()> {
        self.storage.delete(&data_name(id))
    }
}

/// The files of other formats that a store in this location refers to.
#[derive(Debug)]
struct StoreSources {
    store: String,
    foreign: Arc<ForeignFiles>,
}

impl Sources for StoreSources {
    fn open(&self, object: &ForeignObject) -> Result<Arc<dyn ByteSource>> {
        self.foreign.open(&self.store, object)
    }

    fn folder(&self) -> Option<String> {
        foreign::counted_from(&self.store)
    }

    fn open_under(&self, prefix: &ForeignObject, object: &ForeignObject) -> Result<Arc<dyn ByteSource>> {
        self.foreign.open_under(&self.store, prefix, object)
    }

    fn check_prefix(&self, prefix: &ForeignObject) -> Result<()> {
        self.foreign.check_prefix(&self.store, prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{ByteRange, ErrorKind};
    use crate::storage::MemoryStorage;

    #[test]
    fn names_are_fixed_by_the_format() {
        let id = Id([0xab; 16]);
        assert_eq!(log_name(1), "_log/00000000000000000001");
        assert_eq!(log_name(u64::MAX), "_log/18446744073709551615");
        assert_eq!(data_name(id), format!("_data/{}.frag", "ab".repeat(16)));
        assert_eq!(manifest_name(id), format!("_manifest/{}", "ab".repeat(16)));
        assert_eq!(lease_name(id), format!("_lease/{}", "ab".repeat(16)));
    }

    #[test]
    fn files_are_found_by_identity() {
        let files = StoreFiles::own(Arc::new(MemoryStorage::new()));
        let id = Id([7; 16]);
        assert_eq!(files.open(FileRef::Data(id)).unwrap_err().kind(), ErrorKind::NotFound);
        let mut sink = files.create(id).unwrap();
        sink.write(b"cells").unwrap();
        sink.finish().unwrap();
        assert_eq!(files.create(id).err().unwrap().kind(), ErrorKind::Exists);
        assert_eq!(&files.open(FileRef::Data(id)).unwrap().read_one(ByteRange::new(0, 5)).unwrap()[..], b"cells");
        files.storage.put(&log_name(3), b"record").unwrap();
        assert_eq!(files.open(FileRef::Log(3)).unwrap().len(), 6);
    }
}
