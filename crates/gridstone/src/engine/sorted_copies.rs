//! Sorted copies of packs, written after the commit that folded: what was committed stands already, and readers who find no copy read
//! the fragments.

use super::{Array, Call};
use crate::array::Snapshot;
use crate::base::{FileRef, Id, limits};
use crate::fragment::{Description, FragmentKind};
use crate::query::{MEMBERS_MAX, MEMBERS_MIN, Target, write_sorted_copy};
use crate::runtime::PerProcess;
use crate::storage::data_name;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Fragments that one copy may hold: of one pack, with the same attributes, written with one schema.
type Alike<'a> = (Id, &'a [u32], u32);

/// Packs that a thread of this process is copying: those that share a commit all find that it folded.
static COPYING: PerProcess<Mutex<HashSet<Id>>> = PerProcess::new();

/// The claim to be the one that copies a pack.
struct Claim(Id);

impl Claim {
    fn of(pack: Id) -> Option<Self> {
        let copying = COPYING.get_or_try_build(|| Ok(Mutex::default())).ok()?;
        copying.lock().unwrap_or_else(PoisonError::into_inner).insert(pack).then_some(Self(pack))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Ok(copying) = COPYING.get_or_try_build(|| Ok(Mutex::default())) {
            copying.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
        }
    }
}

impl Array {
    /// Called after a commit that came after `before`: if it folded, small fragments that lie in one pack now are written
    /// once more, sorted. Where reads are requests they are not: a pack is one request as well.
    pub(super) fn copy_packs(&self, before: &Snapshot, newer: &Arc<Snapshot>) {
        // A root is made of the version before the commit that folded.
        let folded = newer.root_version() > before.root_version() && newer.root_version() + 1 == newer.version();
        if !folded || !self.store.storage().is_near() {
            return;
        }
        let Ok(state) = newer.array_by_id(self.id()) else { return };
        let Ok(schema) = state.schema() else { return };
        let fragments = state.at_hand();
        for (pack, members) in packs(&fragments, before.root_version()) {
            let call = Call::default();
            let target = Target { array: self.id(), schema: schema.clone(), fragments: members };
            // What is read here nobody asked for: it is not to take others' place in the cache.
            let context = self.read_context(newer, &call).apart();
            // A copy that cannot be written, or that somebody else has written, is missed by no reader.
            let Some(_claim) = Claim::of(pack) else { continue };
            if self.store.storage().exists(&data_name(pack.beside())).is_ok_and(|there| !there) {
                let _ = write_sorted_copy(&context, &target, pack);
            }
        }
    }
}

/// The packs among `fragments`, of versions after `after`, that are worth a sorted copy, with the fragments for it.
fn packs(fragments: &[Arc<Description>], after: u64) -> Vec<(Id, Vec<Arc<Description>>)> {
    let mut alike: HashMap<Alike<'_>, Vec<Arc<Description>>> = HashMap::new();
    for d in fragments.iter().filter(|d| d.kind == FragmentKind::Sparse && d.order.version > after) {
        let small = d.location.len <= limits::INLINE_BYTES_MAX as u64;
        if let FileRef::Data(pack) = d.location.file
            && small
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
