//! Upgrades stores of older formats.

use super::Context;
use super::address::{store_at, store_on};
use crate::base::Result;
use crate::storage::Storage;
use std::sync::Arc;

/// Makes the store at `uri` one of the format that this release writes, in one version without changes, and gives the
/// newest version. Nothing is written if it has that format. No fragment is written anew, versions before stay
/// readable; releases that know the older format only cannot open the newest version afterwards.
///
/// # Errors
/// NotFound (no store), Corruption, Unsupported (a newer format), CommitUnknown, Storage, Access.
pub fn upgrade(context: &Context, uri: &str) -> Result<u64> {
    Ok(store_at(context, uri)?.upgrade()?.version())
}

/// Upgrades the store on `storage`; see [`upgrade`].
pub fn upgrade_on(context: &Context, storage: Arc<dyn Storage>) -> Result<u64> {
    Ok(store_on(context, storage).upgrade()?.version())
}
