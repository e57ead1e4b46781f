//! Moving arrays and groups within a store.

use super::Context;
use super::address::{At, look_at, store_at, store_on};
use super::sorted_copies::commit_copying;
use crate::base::Result;
use crate::storage::Storage;
use crate::store::{Changes, Operation, StandardRules, Store};
use std::sync::Arc;

/// Moves what lies at `from` in the store at `uri`, with everything below it, to the free path `to`, in one commit; groups above
/// that are missing are created. Ids stay: handles, receipts and transactions still mean it. Gives the version.
///
/// # Errors
/// NotFound, Exists, Input (the root; a group into itself; no path), Conflict (another commit moved or removed it), Storage.
pub fn move_node(context: &Context, uri: &str, from: &str, to: &str, message: Option<String>) -> Result<u64> {
    move_in(context, &*store_at(context, uri)?, from, to, message)
}

/// Moves in the store on `storage`; see [`move_node`].
pub fn move_node_on(
    context: &Context,
    storage: Arc<dyn Storage>,
    from: &str,
    to: &str,
    message: Option<String>,
) -> Result<u64> {
    move_in(context, &store_on(context, storage), from, to, message)
}

fn move_in(context: &Context, store: &Store, from: &str, to: &str, message: Option<String>) -> Result<u64> {
    let (newest, id) = look_at(store, At::Latest, |newest| Ok(newest.node(from)?.id()))?;
    let operations = vec![Operation::Move { id, from: from.to_owned(), path: to.to_owned() }];
    Ok(commit_copying(context, store, &newest, Changes::new(operations).with_message(message), &mut StandardRules)?
        .version())
}
