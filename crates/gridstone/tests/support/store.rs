//! Stores of a test: their contexts, clocks and vacuums, and the check that no object is left over.

use gridstone::base::{Clock, Id, Result};
use gridstone::engine::{
    Array, At, Call, Context, Durability, Keep, Opened, Options, VacuumOptions, VacuumReport, open_on,
};
use gridstone::runtime::{SystemClock, SystemEntropy};
use gridstone::storage::Storage;
use gridstone::store::{Names, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// A clock that shows what it was set to.
#[derive(Debug, Default)]
pub(crate) struct SetClock(pub(crate) AtomicI64);

impl Clock for SetClock {
    fn now_us(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A context that answers nothing from memory: a version that has expired could be read from there.
pub(crate) fn context_with(fold_versions: u64, clock: Arc<dyn Clock>) -> Context {
    let (threads, durability) = (Some(1), Durability::Close);
    Context::new(&Options { threads, durability, fold_versions, clock, cache: 0, ..Options::default() }).unwrap()
}

pub(crate) fn context(fold_versions: u64) -> Context {
    context_with(fold_versions, Arc::new(SystemClock))
}

pub(crate) fn open(context: &Context, storage: &Arc<dyn Storage>, path: &str, at: At) -> Result<Array> {
    match open_on(context, storage.clone(), path, at == At::Latest, at)? {
        Opened::Array(array) => Ok(array),
        Opened::Group(_) => panic!("{path} is a group"),
    }
}

pub(crate) fn options(keep: Keep) -> VacuumOptions {
    VacuumOptions { keep, safety_us: 0, dry_run: false }
}

pub(crate) fn vacuum(array: &Array, keep: Keep) -> Result<VacuumReport> {
    array.vacuum(&options(keep), &Call::default())
}

pub(crate) fn store_of(storage: &Arc<dyn Storage>) -> Store {
    Store::new(storage.clone(), Arc::new(SystemClock), Arc::new(SystemEntropy))
}

/// Nothing is left that no kept version names; nothing is missing that one names.
pub(crate) fn nothing_is_left(storage: &Arc<dyn Storage>, what: &str) {
    let store = store_of(storage);
    let floor = store.floor().unwrap().map_or(1, |f| f.version);
    let newest = store.latest().unwrap().version();
    let mut names = Names::default();
    names.add_snapshot(&store, &store.at_version(floor).unwrap()).unwrap();
    for record in store.history(floor + 1, newest).unwrap() {
        names.add_record(&store, &record.unwrap(), floor).unwrap();
    }
    let id = |name: &str| Id::parse(name.rsplit('/').next().unwrap().trim_end_matches(".frag")).unwrap();
    for name in storage.list("_data").unwrap() {
        assert!(names.has_data(id(&name)), "{what}: {name} is left and no version names it");
    }
    for name in storage.list("_manifest").unwrap() {
        assert!(names.has_manifest(id(&name)), "{what}: {name} is left and no version names it");
    }
    for name in storage.list("_log").unwrap().iter().filter_map(|n| n[5..].parse::<u64>().ok()) {
        assert!(name >= floor, "{what}: record {name} is left below the floor {floor}");
    }
}
