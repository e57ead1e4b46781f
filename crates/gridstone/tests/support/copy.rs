//! Stores that a [`Writer`] made, and their copies.

use super::store::options;
use super::writer::{Model, Write, Writer, context};
use gridstone::base::Result;
use gridstone::engine::{Array, At, Call, Context, CopyOptions, CopyReport, Keep, Opened, copy_on, open_on};
use gridstone::storage::{MemoryStorage, Storage};
use std::sync::Arc;

pub(crate) const WHOLE: CopyOptions<'_> =
    CopyOptions { path: "/", target_path: "/", at: At::Latest, tag: None, history: false, overwrite: false };
pub(crate) const HISTORY: CopyOptions<'_> = CopyOptions { history: true, ..WHOLE };

pub(crate) fn memory() -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new())
}

pub(crate) fn copied(from: &Arc<dyn Storage>, to: &Arc<dyn Storage>, options: &CopyOptions<'_>) -> Result<CopyReport> {
    copy_on((&context(), from.clone()), (&context(), to.clone()), options, &Call::default())
}

/// A store of `versions` versions that a writer made, and what it holds.
pub(crate) fn written(versions: u64) -> (Arc<dyn Storage>, Model) {
    let (storage, mut model) = (memory(), Model::default());
    let mut writer = Writer::open(&storage);
    for version in 1..=versions {
        writer.commit(&Write::of(version)).unwrap();
    }
    model.advance(versions);
    (storage, model)
}

pub(crate) fn of_version(versions: u64) -> Model {
    let mut model = Model::default();
    model.advance(versions);
    model
}

/// The model, of what is `version` in another store.
pub(crate) fn at(version: u64, model: &Model) -> Model {
    let mut model = model.clone();
    model.version = version;
    model
}

pub(crate) fn array(context: &Context, storage: &Arc<dyn Storage>, path: &str, at: At) -> Array {
    match open_on(context, storage.clone(), path, at == At::Latest, at).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("{path} is a group"),
    }
}

pub(crate) fn vacuum(storage: &Arc<dyn Storage>, versions: u64) {
    let array = array(&context(), storage, "/sparse", At::Latest);
    array.vacuum(&options(Keep::Versions(versions)), &Call::default()).unwrap();
}
