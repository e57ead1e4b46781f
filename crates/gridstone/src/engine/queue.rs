//! Where the commits of this process to one store meet.
//!
//! The child of a fork starts with empty queues: those of its parent may be locked, by threads that the child has not.

use crate::base::Result;
use crate::runtime::{CondvarSignals, PerProcess};
use crate::storage::Durability;
use crate::store::{CommitQueue, GroupCommit, Queues};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The queue of one store.
#[derive(Debug, Default)]
pub(super) struct ProcessQueue {
    slot: PerProcess<GroupCommit>,
}

impl Queues for ProcessQueue {
    fn queue(&self) -> Result<&dyn CommitQueue> {
        let queue = self.slot.get_or_try_build(|| Ok(GroupCommit::new(Arc::new(CondvarSignals))))?;
        Ok(queue)
    }
}

/// Queues by the store's place and whether its writes are synced: who wants them to be must not depend on who does not.
type Known = HashMap<(String, bool), Weak<ProcessQueue>>;

static KNOWN: PerProcess<Mutex<Known>> = PerProcess::new();

/// The queue of the store at `place` in this process.
pub(super) fn queue_of(place: &str, durability: Durability) -> Result<Arc<ProcessQueue>> {
    let known = KNOWN.get_or_try_build(|| Ok(Mutex::default()))?;
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (place.to_owned(), durability == Durability::Full);
    if let Some(queue) = known.get(&key).and_then(Weak::upgrade) {
        return Ok(queue);
    }
    known.retain(|_, queue| queue.strong_count() > 0);
    let queue = Arc::<ProcessQueue>::default();
    known.insert(key, Arc::downgrade(&queue));
    Ok(queue)
}

/// Lets handles that are opened from now on at `place` meet in new queues. After a history was copied there, the old ones
/// remember versions of a store that was there before, under the same id.
pub(super) fn forget_queues(place: &str) -> Result<()> {
    let known = KNOWN.get_or_try_build(|| Ok(Mutex::default()))?;
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    for is_full in [true, false] {
        known.remove(&(place.to_owned(), is_full));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_has_one_queue_as_long_as_somebody_holds_it() {
        let queue = || queue_of("mem://queues", Durability::Full).unwrap();
        let held = queue();
        assert!(Arc::ptr_eq(&held, &queue()));
        assert!(!Arc::ptr_eq(&held, &queue_of("mem://queues", Durability::Close).unwrap()));
        assert!(!Arc::ptr_eq(&held, &queue_of("mem://other", Durability::Full).unwrap()));
        let address = Arc::downgrade(&held);
        drop(held);
        assert!(address.upgrade().is_none());
        assert!(std::ptr::eq(queue().queue().unwrap(), queue().queue().unwrap()) || address.upgrade().is_none());
    }
}
