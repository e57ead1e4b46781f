//! Reusable memory for results.
//!
//! The first touch of fresh memory costs more than reading a file from the page cache (a fault per 4 KiB page, which
//! the kernel also clears). So a large buffer asks for huge pages, and returns here when its result is dropped. It is
//! handed out again without clearing, to any context of the process. The memory is freed with the last context.

use super::PerProcess;
use crate::base::{AlignedBuf, Error, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Smaller buffers are left to the allocator, which keeps such memory itself.
const KEPT_BYTES_MIN: usize = 128 << 10;
/// Buffers from this size on ask for huge pages: at least one lies wholly inside.
const HUGE_BYTES_MIN: usize = 4 << 20;
/// The largest ratio of a buffer's size to the request that it is handed out for.
const SHARE_MIN: usize = 2;

/// A fork's child starts without buffers: the lock may be held by a thread that it does not have.
type Held = PerProcess<Mutex<Vec<AlignedBuf>>>;

/// The buffers that the contexts of this process share.
static SHARED: PerProcess<Mutex<Weak<Held>>> = PerProcess::new();

/// Buffers waiting for reuse; after each return at most `limit_bytes` of them.
#[derive(Debug)]
pub struct Arena {
    limit_bytes: usize,
    held: Arc<Held>,
}

impl Arena {
    /// An arena of its own that keeps at most `limit_bytes`.
    pub fn new(limit_bytes: u64) -> Self {
        Self::of(limit_bytes, Arc::new(PerProcess::new()))
    }

    /// A share in the buffers of this process; keeps at most `limit_bytes` of returned buffers.
    pub fn shared(limit_bytes: u64) -> Self {
        let held = SHARED.get_or_try_build(|| Ok(Mutex::default())).map_or_else(
            |_| Arc::default(),
            |shared| {
                let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let held = shared.upgrade().unwrap_or_default();
                *shared = Arc::downgrade(&held);
                held
            },
        );
        Self::of(limit_bytes, held)
    }

    fn of(limit_bytes: u64, held: Arc<Held>) -> Self {
        Self { limit_bytes: usize::try_from(limit_bytes).unwrap_or(usize::MAX), held }
    }

    /// A buffer of `len` bytes with unspecified content: the caller writes all of them. A Budget error if there is no
    /// memory for it.
    pub fn take(&self, len: usize) -> Result<AlignedBuf> {
        if len >= KEPT_BYTES_MIN
            && let Some(mut held) = self.lock()
        {
            let fits = |buf: &AlignedBuf| buf.capacity() >= len && buf.capacity() / SHARE_MIN <= len;
            let best = held.iter().enumerate().filter(|(_, b)| fits(b)).min_by_key(|(_, b)| b.capacity());
            if let Some((place, _)) = best {
                let mut buf = held.swap_remove(place);
                buf.set_len(len);
                return Ok(buf);
            }
        }
        let buf = AlignedBuf::try_zeroed(len)?;
        if len >= HUGE_BYTES_MIN {
            ask_for_huge_pages(&buf);
        }
        Ok(buf)
    }

    /// Like [`Arena::take`], for `cells` cells of `width` bytes.
    pub fn take_cells(&self, cells: usize, width: usize) -> Result<AlignedBuf> {
        let bytes = cells.checked_mul(width).filter(|bytes| *bytes <= isize::MAX as usize);
        self.take(bytes.ok_or_else(|| Error::budget(format!("{cells} cells pass this machine's memory")))?)
    }

    /// Takes a buffer back for reuse, or frees it if it is not worth keeping.
    pub fn give(&self, buf: AlignedBuf) {
        let size = buf.capacity();
        if size < KEPT_BYTES_MIN || size > self.limit_bytes {
            return;
        }
        // Dropped after the lock is released: freeing takes a while.
        let mut gone = Vec::new();
        let Some(mut held) = self.lock() else { return };
        // The oldest go first.
        while held.iter().map(AlignedBuf::capacity).sum::<usize>() > self.limit_bytes - size {
            gone.push(held.remove(0));
        }
        held.push(buf);
        drop(held);
    }

    fn lock(&self) -> Option<MutexGuard<'_, Vec<AlignedBuf>>> {
        let held = self.held.get_or_try_build(|| Ok(Mutex::default())).ok()?;
        Some(held.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// This is advice only: where it is ignored, everything works as before.
#[cfg(target_os = "linux")]
fn ask_for_huge_pages(buf: &AlignedBuf) {
    const HUGE: usize = 2 << 20;
    let start = (buf.as_ptr() as usize).next_multiple_of(HUGE);
    let end = (buf.as_ptr() as usize + buf.len()) / HUGE * HUGE;
    if start < end {
        // SAFETY: the range lies inside memory that `buf` owns; this advice changes how the kernel maps it, never its
        // content.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages(_buf: &AlignedBuf) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_for_requests_of_its_size() {
        let arena = Arena::new(1 << 20);
        let mut buf = arena.take(300_000).unwrap();
        buf.as_mut_slice().fill(7);
        let place = buf.as_ptr() as usize;
        arena.give(buf);
        assert_ne!(arena.take(400_000).unwrap().as_ptr() as usize, place, "too small");
        assert_ne!(arena.take(140_000).unwrap().as_ptr() as usize, place, "too large");
        let again = arena.take(200_000).unwrap();
        assert_eq!((again.as_ptr() as usize, again.len()), (place, 200_000));
        assert_ne!(arena.take(200_000).unwrap().as_ptr() as usize, place, "handed out already");
    }

    #[test]
    fn shares_are_of_the_same_buffers() {
        let (one, other) = (Arena::shared(1 << 20), Arena::shared(1 << 20));
        assert!(Arc::ptr_eq(&one.held, &other.held));
        assert!(!Arc::ptr_eq(&one.held, &Arena::new(1 << 20).held));
    }

    #[test]
    fn what_passes_the_limit_is_freed_oldest_first() {
        let arena = Arena::new(1 << 20);
        let sizes = || arena.lock().unwrap().iter().map(AlignedBuf::len).collect::<Vec<_>>();
        for size in [100, 400_000, 500_000, 600_000, 2 << 20] {
            arena.give(AlignedBuf::zeroed(size));
        }
        assert_eq!(sizes(), [600_000]);
        arena.give(AlignedBuf::zeroed(300_000));
        assert_eq!(sizes(), [600_000, 300_000]);
    }

    /// Simulates another thread that takes or returns a buffer at the moment of the fork.
    #[test]
    #[cfg_attr(miri, ignore = "Miri has no fork")]
    fn a_forks_child_takes_and_gives_while_its_parents_lock_is_held() {
        let arena = Arena::new(1 << 20);
        arena.give(AlignedBuf::zeroed(300_000));
        let held = arena.lock();
        // SAFETY: the child has this thread alone. It allocates, which the C library allows after a fork, and ends
        // without running anything else of this process.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: the alarm's signal ends a child that waits for the lock.
            unsafe { libc::alarm(20) };
            let taken = arena.take(300_000);
            let whole = taken.is_ok_and(|buf| {
                let len = buf.len();
                arena.give(buf);
                len == 300_000
            });
            // SAFETY: ends the child at once, without the test harness, which is the parent's.
            unsafe { libc::_exit(i32::from(!whole)) };
        }
        drop(held);
        let mut status = -1;
        // SAFETY: `status` is ours to be written; the child is this test's own.
        let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((ended, status), (child, 0), "the child failed, or waits for ever");
        assert_eq!(arena.take(300_000).unwrap().len(), 300_000);
    }

    #[test]
    fn a_length_beyond_all_memory_is_a_budget_error() {
        let arena = Arena::new(1 << 20);
        assert_eq!(arena.take_cells(usize::MAX / 2, 8).unwrap_err().kind(), crate::base::ErrorKind::Budget);
        assert_eq!(arena.take(1 << 60).unwrap_err().kind(), crate::base::ErrorKind::Budget);
        assert_eq!(arena.take_cells(3, 8).unwrap().len(), 24);
    }
}
