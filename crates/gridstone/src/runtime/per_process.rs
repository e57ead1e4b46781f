//! The fork guard: a value that is built lazily, and rebuilt in the child of a fork.
//!
//! A fork copies memory but only the calling thread. In the child, a pool has no threads, a lock may be held by a
//! thread that does not exist, and a connection is shared with the parent. So:
//!
//! 1. the value is stored together with the id of the process that built it;
//! 2. a process that finds another one's value leaks it (joining its threads or taking its locks could hang) and
//!    builds its own;
//! 3. the slot is one atomic pointer, without a lock or a `Once`: whatever another thread was doing at the moment of
//!    the fork, the child can continue.
//!
//! Assumption: a process never has the id of the ancestor that built the value. That would require a dead ancestor and
//! process ids that have wrapped around since.

use crate::base::Result;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, Ordering};

struct Built<T> {
    pid: u32,
    value: T,
}

/// A value of this process: built on first use, rebuilt after a fork.
pub struct PerProcess<T> {
    /// Null, or a pointer from `Box::into_raw` that stays valid until this struct is dropped (or for ever, if
    /// another process built it).
    slot: AtomicPtr<Built<T>>,
    pid: fn() -> u32,
    owns: PhantomData<T>,
}

impl<T: Send + Sync> PerProcess<T> {
    /// An empty slot; nothing is built yet.
    pub const fn new() -> Self {
        Self::with_pid(std::process::id)
    }

    /// Like `new`, with another source of the process's id, so that tests can simulate a fork.
    pub(crate) const fn with_pid(pid: fn() -> u32) -> Self {
        Self { slot: AtomicPtr::new(std::ptr::null_mut()), pid, owns: PhantomData }
    }

    /// This process's value, built by `build` if there is none. If several threads build at once, one wins and the
    /// others' values are dropped.
    ///
    /// # Errors
    /// The error of `build`; the slot then stays as it was.
    pub fn get_or_try_build(&self, build: impl FnOnce() -> Result<T>) -> Result<&T> {
        let pid = (self.pid)();
        let seen = self.slot.load(Ordering::Acquire);
        if let Some(value) = self.value_of(seen, pid) {
            return Ok(value);
        }
        let fresh = Box::into_raw(Box::new(Built { pid, value: build()? }));
        // On success `seen` is leaked: it is null or the parent's.
        match self.slot.compare_exchange(seen, fresh, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: `fresh` came from `Box::into_raw` just now and is in the slot, whose pointers live until drop.
            Ok(_) => Ok(unsafe { &(*fresh).value }),
            Err(winner) => {
                // SAFETY: the exchange failed, so no other thread has seen `fresh`; it is still this thread's box.
                drop(unsafe { Box::from_raw(fresh) });
                // SAFETY: `winner` was read from the slot, so it is a box that lives until drop; it is not null,
                // since nothing ever stores null.
                Ok(unsafe { &(*winner).value })
            }
        }
    }

    fn value_of(&self, seen: *mut Built<T>, pid: u32) -> Option<&T> {
        // SAFETY: the slot holds null or a box that is freed only by drop, which needs `&mut self`; no mutable
        // reference exists before that.
        let built = unsafe { seen.as_ref() }?;
        (built.pid == pid).then_some(&built.value)
    }
}

impl<T: Send + Sync> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let last = *self.slot.get_mut();
        if last.is_null() {
            return;
        }
        // SAFETY: not null, so a live box (see `slot`); `&mut self` guarantees that no reference into it is left.
        let pid = unsafe { (*last).pid };
        if pid == (self.pid)() {
            // SAFETY: as above; the slot goes away with this call, so the box is freed once.
            drop(unsafe { Box::from_raw(last) });
        }
    }
}

impl<T> std::fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PerProcess")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Error;
    use std::cell::Cell;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    thread_local!(static FAKE_PID: Cell<u32> = const { Cell::new(1) });

    fn fake_pid() -> u32 {
        FAKE_PID.get()
    }

    #[derive(Debug)]
    struct Dropped(Arc<AtomicUsize>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn builds_once_and_drops_once() {
        let drops = Arc::new(AtomicUsize::new(0));
        let slot = PerProcess::new();
        let first: *const Dropped = slot.get_or_try_build(|| Ok(Dropped(drops.clone()))).unwrap();
        let second: *const Dropped = slot.get_or_try_build(|| panic!("built already")).unwrap();
        assert_eq!(first, second);
        drop(slot);
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn an_error_leaves_the_slot_empty() {
        let slot: PerProcess<u32> = PerProcess::default();
        assert!(slot.get_or_try_build(|| Err(Error::budget("no threads left"))).is_err());
        assert_eq!(*slot.get_or_try_build(|| Ok(7)).unwrap(), 7);
    }

    #[test]
    fn a_child_leaks_its_parents_value_and_builds_its_own() {
        let drops = Arc::new(AtomicUsize::new(0));
        let slot = PerProcess::with_pid(fake_pid);
        let build = || Ok(Dropped(drops.clone()));
        let parents: *const Dropped = slot.get_or_try_build(build).unwrap();
        FAKE_PID.set(2);
        let childs: *const Dropped = slot.get_or_try_build(build).unwrap();
        assert_ne!(parents, childs);
        assert_eq!(childs, std::ptr::from_ref(slot.get_or_try_build(build).unwrap()));
        drop(slot);
        assert_eq!(drops.load(Ordering::SeqCst), 1, "the child frees its own value, never its parent's");
    }

    #[test]
    fn a_child_that_asks_for_nothing_drops_nothing() {
        let drops = Arc::new(AtomicUsize::new(0));
        let slot = PerProcess::with_pid(fake_pid);
        slot.get_or_try_build(|| Ok(Dropped(drops.clone()))).unwrap();
        FAKE_PID.set(3);
        drop(slot);
        assert_eq!(drops.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn racing_threads_agree_on_one_value() {
        let drops = Arc::new(AtomicUsize::new(0));
        let built = AtomicUsize::new(0);
        let slot = PerProcess::new();
        let address = || {
            let value: &Dropped = slot
                .get_or_try_build(|| {
                    built.fetch_add(1, Ordering::SeqCst);
                    Ok(Dropped(drops.clone()))
                })
                .unwrap();
            std::ptr::from_ref(value) as usize
        };
        let seen: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(address)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(seen.windows(2).all(|w| w[0] == w[1]));
        drop(slot);
        assert_eq!(drops.load(Ordering::SeqCst), built.load(Ordering::SeqCst));
    }
}
