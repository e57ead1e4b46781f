//! Items shared by the threads of a [`super::Pool`]: each thread takes the next one until none is left.

use crate::base::{Cancel, Result};
use std::iter::Enumerate;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How often a thread that waits for its helpers checks for cancellation.
const ASK_EVERY: Duration = Duration::from_millis(25);

/// Coarse items that several threads take: a block to decode, a range to read.
pub(super) struct Work<T, R> {
    left: Mutex<Enumerate<std::vec::IntoIter<T>>>,
    /// The results, each with the index of its item.
    done: Mutex<Result<Vec<(usize, R)>>>,
    /// How many helpers have ended.
    ended: Mutex<usize>,
    one_ended: Condvar,
}

impl<T, R> Work<T, R> {
    pub(super) fn new(items: Vec<T>) -> Self {
        let done = Vec::with_capacity(items.len());
        let left = Mutex::new(items.into_iter().enumerate());
        Self { left, done: Mutex::new(Ok(done)), ended: Mutex::new(0), one_ended: Condvar::new() }
    }

    /// Runs items in addition to the thread that owns the work.
    pub(super) fn help(&self, one: &impl Fn(T) -> Result<R>) {
        // After a panic too.
        let _ended = Ended { count: &self.ended, changed: &self.one_ended };
        self.go_on(one);
    }

    /// Waits until all helpers have ended. `cancel` is checked at intervals, as it is before each item: some
    /// cancellations are noticed only by a check on this thread.
    pub(super) fn wait(&self, helpers: usize, cancel: &dyn Cancel) {
        loop {
            let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = self.one_ended.wait_timeout_while(ended, ASK_EVERY, |ended| *ended < helpers);
            let (ended, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            if !timeout.timed_out() {
                return;
            }
            drop(ended);
            cancel.cancelled();
        }
    }

    /// Runs one item after the other until none is left.
    pub(super) fn go_on(&self, one: &impl Fn(T) -> Result<R>) {
        let mut mine = Vec::new();
        // A thread that waits for the lock waits for a few instructions.
        let next = || self.left.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some((place, item)) = next() {
            match one(item) {
                Ok(result) => mine.push((place, result)),
                Err(error) => {
                    let rest = std::mem::replace(
                        &mut *self.left.lock().unwrap_or_else(PoisonError::into_inner),
                        Vec::new().into_iter().enumerate(),
                    );
                    drop(rest);
                    let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
                    if done.is_ok() {
                        *done = Err(error);
                    }
                    return;
                }
            }
        }
        if let Ok(done) = &mut *self.done.lock().unwrap_or_else(PoisonError::into_inner) {
            done.append(&mut mine);
        }
    }

    /// The results in the order of the items.
    pub(super) fn results(self) -> Result<Vec<R>> {
        let mut done = self.done.into_inner().unwrap_or_else(PoisonError::into_inner)?;
        done.sort_unstable_by_key(|(place, _)| *place);
        Ok(done.into_iter().map(|(_, result)| result).collect())
    }
}

/// Increments a count when it is dropped.
struct Ended<'a> {
    count: &'a Mutex<usize>,
    changed: &'a Condvar,
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }
}
