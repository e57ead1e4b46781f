//! Requests started ahead of the reads that need their bytes: while a few blocks of a read are decoded, others are in
//! flight.

use super::client::Found;
use crate::base::{Begun, ByteRange, Result};
use crate::runtime::{Asked, PerProcess, standing};
use bytes::Bytes;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

type Answer = object_store::Result<Found>;

/// The reads of one object that were started and are still held. The child of a fork starts with none: the parent's
/// thread answers only the parent.
#[derive(Default)]
pub(super) struct ReadsAhead {
    reads: PerProcess<Mutex<Vec<Weak<ReadAhead>>>>,
}

impl std::fmt::Debug for ReadsAhead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReadsAhead")
    }
}

/// How often a waiter for another thread's answer checks for cancellation.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A read in flight, or its bytes.
#[derive(Debug)]
pub(super) struct ReadAhead {
    range: ByteRange,
    state: Mutex<State>,
    /// Signalled when the answer has arrived or is lost.
    answered: Condvar,
}

enum State {
    Asked(Asked<Answer>),
    /// A thread waits for the answer.
    Awaited,
    Here(Bytes),
    /// It failed, or the thread that waited for it was cancelled.
    Lost,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Asked(_) => "Asked",
            Self::Awaited => "Awaited",
            Self::Here(_) => "Here",
            Self::Lost => "Lost",
        })
    }
}

/// Reads that were started together.
#[derive(Debug)]
struct Together(#[expect(dead_code, reason = "held so that they go on")] Vec<Arc<ReadAhead>>);

impl Begun for Together {}

impl ReadsAhead {
    fn reads(&self) -> Result<&Mutex<Vec<Weak<ReadAhead>>>> {
        self.reads.get_or_try_build(|| Ok(Mutex::default()))
    }

    /// Keeps reads for later use, as long as the result is held; `None` if there are none.
    pub(super) fn hold(&self, begun: Vec<(ByteRange, Asked<Answer>)>) -> Option<Arc<dyn Begun>> {
        if begun.is_empty() {
            return None;
        }
        let read =
            |(range, answer)| ReadAhead { range, state: Mutex::new(State::Asked(answer)), answered: Condvar::new() };
        let begun: Vec<Arc<ReadAhead>> = begun.into_iter().map(read).map(Arc::new).collect();
        let mut reads = self.reads().ok()?.lock().unwrap_or_else(PoisonError::into_inner);
        reads.retain(|read| read.strong_count() > 0);
        reads.extend(begun.iter().map(Arc::downgrade));
        Some(Arc::new(Together(begun)))
    }

    /// The reads that together hold `range`, in ascending order of offset, none of them lost; `None` if any part is
    /// missing.
    pub(super) fn holding(&self, range: ByteRange) -> Option<Vec<Arc<ReadAhead>>> {
        let reads = self.reads().ok()?.lock().unwrap_or_else(PoisonError::into_inner);
        let touches = |read: &Arc<ReadAhead>| read.range.offset < range.end() && range.offset < read.range.end();
        let mut touching: Vec<Arc<ReadAhead>> = reads.iter().filter_map(Weak::upgrade).filter(touches).collect();
        drop(reads);
        touching.retain(|read| !matches!(*read.state(), State::Lost));
        touching.sort_by_key(|read| (read.range.offset, read.range.end()));
        let (mut at, mut found) = (range.offset, Vec::new());
        for read in touching {
            if read.range.offset <= at && at < read.range.end().min(range.end()) {
                at = read.range.end();
                found.push(read);
            }
        }
        (at >= range.end() && !found.is_empty()).then_some(found)
    }
}

/// The thread that waits for the answer. Its drop wakes the other waiters, which see the outcome.
struct Waiting<'a> {
    read: &'a ReadAhead,
    found: Option<Bytes>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        *self.read.state() = self.found.take().map_or(State::Lost, State::Here);
        self.read.answered.notify_all();
    }
}

impl ReadAhead {
    /// The range that it reads.
    pub(super) fn range(&self) -> ByteRange {
        self.range
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its bytes, as `received` makes them from the answer; `None` if its failure was reported to another caller.
    /// Blocks until they have arrived.
    ///
    /// # Errors
    /// Those of `received`, for the first caller; Cancelled.
    pub(super) fn bytes(&self, received: impl FnOnce(Result<Answer>) -> Result<Bytes>) -> Result<Option<Bytes>> {
        let mut state = self.state();
        loop {
            match std::mem::replace(&mut *state, State::Awaited) {
                State::Asked(answer) => {
                    drop(state);
                    let mut waiting = Waiting { read: self, found: None };
                    let bytes = received(answer.wait())?;
                    waiting.found = Some(bytes.clone());
                    return Ok(Some(bytes));
                }
                State::Here(bytes) => {
                    *state = State::Here(bytes.clone());
                    return Ok(Some(bytes));
                }
                State::Lost => {
                    *state = State::Lost;
                    return Ok(None);
                }
                State::Awaited => {
                    standing().map_or(Ok(()), |cancel| cancel.check())?;
                    let woken = self.answered.wait_timeout(state, LOOK_EVERY);
                    state = woken.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }
}
