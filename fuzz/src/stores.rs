//! Small stores that several targets are about: what they are written and opened with, and copies of them.

use gridstone::base::AlignedBuf;
use gridstone::engine::{Column, Context, Durability, Options};
use gridstone::schema::Datatype;
use gridstone::storage::{MemoryStorage, Storage};

/// After so many versions a writer folds: few, so that a small store has folded.
pub(crate) const FOLD: u64 = 12;

pub(crate) fn context() -> Context {
    let (threads, durability) = (Some(1), Durability::Close);
    Context::new(&Options { threads, durability, fold_versions: FOLD, ..Options::default() }).unwrap()
}

/// A column of these values, none of them null.
pub(crate) fn column(datatype: Datatype, values: impl Iterator<Item = u8>) -> Column {
    Column::new(datatype, AlignedBuf::from_slice(&values.collect::<Vec<u8>>()), None, None).unwrap()
}

/// A copy of what is in these folders, as near as the original.
pub(crate) fn copied(storage: &MemoryStorage, folders: &[&str]) -> MemoryStorage {
    let copy = MemoryStorage::new();
    let copy = if storage.is_near() { copy.near() } else { copy };
    for name in folders.iter().flat_map(|folder| storage.list(folder).unwrap()) {
        copy.put(&name, &storage.read_all(&name).unwrap()).unwrap();
    }
    copy
}
