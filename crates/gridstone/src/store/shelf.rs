//! A manifest page that is loaded when it is first needed, and kept as long as any snapshot refers to it.

use super::page::{self, PageInfo};
use crate::base::{Error, ErrorKind, Id, Result};
use crate::fragment::Description;
use crate::storage::{Storage, manifest_name};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Pages by id.
pub(super) type Shelves = HashMap<Id, Arc<Shelf>>;

/// The descriptions of a page, in ascending order.
pub(super) type Loaded = Arc<[Arc<Description>]>;

/// A page of an array's manifest.
#[derive(Debug)]
pub(super) struct Shelf {
    info: PageInfo,
    storage: Arc<dyn Storage>,
    loaded: OnceLock<Loaded>,
}

impl Shelf {
    /// The page that `info` describes; nothing is read yet.
    pub(super) fn new(info: PageInfo, storage: Arc<dyn Storage>) -> Self {
        Self { info, storage, loaded: OnceLock::new() }
    }

    /// A page just written, whose fragments are in memory.
    pub(super) fn filled(info: PageInfo, storage: Arc<dyn Storage>, fragments: Loaded) -> Self {
        Self { info, storage, loaded: OnceLock::from(fragments) }
    }

    /// Its description in the root.
    pub(super) fn info(&self) -> &PageInfo {
        &self.info
    }

    /// Its fragments, if they are loaded.
    pub(super) fn at_hand(&self) -> Option<Loaded> {
        self.loaded.get().cloned()
    }

    /// Its fragments, read from storage the first time. Two threads may both read; the first keeps its result.
    pub(super) fn load(&self) -> Result<Loaded> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(Arc::clone(loaded));
        }
        let bytes = self.storage.read_all(&manifest_name(self.info.id)).map_err(|e| match e.kind() {
            ErrorKind::NotFound => {
                Error::corruption(format!("manifest page {}, which a root names, is missing", self.info.id))
                    .with_source(e)
            }
            _ => e,
        })?;
        let fragments: Loaded = page::decode(&bytes, &self.info)?.into();
        Ok(Arc::clone(self.loaded.get_or_init(|| fragments)))
    }
}
