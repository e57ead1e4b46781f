//! An allocator that records the largest single allocation, so that a test can check how much memory damaged data makes
//! the engine request.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator with this record; use it as a test binary's `#[global_allocator]`.
#[derive(Debug)]
pub struct Measured;

impl Measured {
    /// The size in bytes of the largest single allocation that this thread has requested since the last call.
    pub fn take_largest() -> usize {
        LARGEST.replace(0)
    }
}

fn note(bytes: usize) {
    // A thread that is ending has no cell any more, and no record is needed.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(bytes)));
}

// SAFETY: every call is forwarded to the system's allocator with the caller's own arguments.
unsafe impl GlobalAlloc for Measured {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller upholds the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        note(bytes);
        // SAFETY: the caller upholds the contract of `realloc`.
        unsafe { System.realloc(at, layout, bytes) }
    }
}
