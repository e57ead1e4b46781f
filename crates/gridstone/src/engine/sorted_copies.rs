//! Sorted copies of packs, written after the commit that folded: what was committed stands already, and readers who find no copy read
//! the fragments.

use super::{Call, Context};
use crate::base::{FileRef, Id, Result};
use crate::fragment::{Description, FragmentKind};
use crate::query::{MEMBERS_MAX, MEMBERS_MIN, Target, write_sorted_copy};
use crate::runtime::Claims;
use crate::storage::data_name;
use crate::store::{Changes, Rebase, Snapshot, Store};
use std::collections::HashMap;
use std::sync::Arc;

/// Fragments of an array that one copy may hold: of one pack, with the same attributes, written with one schema.
type Alike<'a> = (Id, &'a [u32], u32);

/// Copies that a thread of this process is writing: those that share a commit all find that it folded.
static COPYING: Claims<Id> = Claims::new();

/// Commits as [`Store::commit`] does, and writes the sorted copies of what it folded.
///
/// # Errors
/// Those of [`Store::commit`].
pub(super) fn commit_copying(
    context: &Context,
    store: &Store,
    base: &Arc<Snapshot>,
    changes: Changes,
    rules: &mut dyn Rebase,
) -> Result<Arc<Snapshot>> {
    let newer = store.commit(base, changes, rules)?;
    copy_packs(context, store, base, &newer);
    Ok(newer)
}

/// Called after a commit that came after `before`: if it folded, small fragments of an array that lie in one pack now are written
/// once more, sorted. Where reads are requests they are not: a pack is one request as well.
pub(super) fn copy_packs(context: &Context, store: &Store, before: &Snapshot, newer: &Snapshot) {
    // A root is made of the version before the commit that folded.
    let folded = newer.root_version() > before.root_version() && newer.root_version() + 1 == newer.version();
    if !folded || !store.storage().is_near() {
        return;
    }
    // What is read here nobody asked for: it is not to take others' place in the cache.
    let context =
        context.read_context(store.place(newer.store()), store.files(), &Call::default()).with_private_cache();
    for id in newer.folded() {
        let Ok(state) = newer.array_by_id(*id) else { continue };
        let (schema, array) = (state.schema(), state.id());
        for (pack, fragments) in packs(&state.at_hand(before.root_version())) {
            // A copy that cannot be written, or that somebody else has written, is missed by no reader.
            let copy = pack.beside(array);
            let Some(_claim) = COPYING.take(copy) else { continue };
            if store.storage().exists(&data_name(copy)).is_ok_and(|there| !there) {
                let _ = write_sorted_copy(&context, &Target { array, schema: schema.clone(), fragments }, pack);
            }
        }
    }
}

/// The packs that `fragments` lie in and that are worth a sorted copy, with the fragments for it.
fn packs(fragments: &[Arc<Description>]) -> Vec<(Id, Vec<Arc<Description>>)> {
    let mut alike: HashMap<Alike<'_>, Vec<Arc<Description>>> = HashMap::new();
    for d in fragments.iter().filter(|d| d.kind == FragmentKind::Sparse) {
        if let FileRef::Data(pack) = d.location.file
            && d.is_small()
            && pack != d.id
        {
            alike.entry((pack, &d.attrs, d.schema)).or_default().push(Arc::clone(d));
        }
    }
    // One copy per pack: of the fragments that most have the like of.
    let mut best: HashMap<Id, Vec<Arc<Description>>> = HashMap::new();
    for ((pack, ..), members) in alike {
        let held = best.entry(pack).or_default();
        if members.len() > held.len() {
            *held = members;
        }
    }
    best.into_iter().filter(|(_, members)| (MEMBERS_MIN..=MEMBERS_MAX).contains(&members.len())).collect()
}
