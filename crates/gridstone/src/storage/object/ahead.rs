//! Requests begun ahead of the reads that need their bytes: while a few of the blocks that a read is going to decode are decoded, the others are
//! on their way.

use super::client::Found;
use crate::base::{Begun, ByteRange, Result};
use crate::runtime::{Asked, PerProcess};
use bytes::Bytes;
use std::sync::{Arc, Mutex, PoisonError, Weak};

type Answer = object_store::Result<Found>;

/// The reads of one object that were begun and that somebody still holds. The child of a fork begins with none: its parent's thread
/// answers its parent.
#[derive(Default)]
pub(super) struct ReadsAhead {
    reads: PerProcess<Mutex<Vec<Weak<ReadAhead>>>>,
}

impl std::fmt::Debug for ReadsAhead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReadsAhead")
    }
}

/// A read under way, or its bytes.
#[derive(Debug)]
pub(super) struct ReadAhead {
    range: ByteRange,
    state: Mutex<State>,
}

enum State {
    Asked(Asked<Answer>),
    Here(Bytes),
    /// It failed, or whoever waited for it was told to stop.
    Lost,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Asked(_) => "Asked",
            Self::Here(_) => "Here",
            Self::Lost => "Lost",
        })
    }
}

/// Reads that were begun together.
#[derive(Debug)]
struct Together(#[expect(dead_code, reason = "held so that they go on")] Vec<Arc<ReadAhead>>);

impl Begun for Together {}

impl ReadsAhead {
    fn reads(&self) -> Result<&Mutex<Vec<Weak<ReadAhead>>>> {
        self.reads.get_or_try_build(|| Ok(Mutex::default()))
    }

    /// Keeps reads for those who will need them, as long as the result is held; `None` if there is none.
    pub(super) fn hold(&self, begun: Vec<(ByteRange, Asked<Answer>)>) -> Option<Arc<dyn Begun>> {
        if begun.is_empty() {
            return None;
        }
        let read = |(range, answer)| Arc::new(ReadAhead { range, state: Mutex::new(State::Asked(answer)) });
        let begun: Vec<Arc<ReadAhead>> = begun.into_iter().map(read).collect();
        let mut reads = self.reads().ok()?.lock().unwrap_or_else(PoisonError::into_inner);
        reads.retain(|read| read.strong_count() > 0);
        reads.extend(begun.iter().map(Arc::downgrade));
        Some(Arc::new(Together(begun)))
    }

    /// The read that holds all of `range`, if there is one.
    pub(super) fn holding(&self, range: ByteRange) -> Option<Arc<ReadAhead>> {
        let reads = self.reads().ok()?.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = |read: &Arc<ReadAhead>| read.range.offset <= range.offset && range.end() <= read.range.end();
        reads.iter().filter_map(Weak::upgrade).find(holds)
    }
}

impl ReadAhead {
    /// What it reads.
    pub(super) fn range(&self) -> ByteRange {
        self.range
    }

    /// Its bytes, as `received` takes them from the answer; `None` if another was told of its failure before. Blocks until they are there.
    pub(super) fn bytes(&self, received: impl FnOnce(Result<Answer>) -> Result<Bytes>) -> Result<Option<Bytes>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Lost) {
            State::Asked(answer) => {
                let bytes = received(answer.wait())?;
                *state = State::Here(bytes.clone());
                Ok(Some(bytes))
            }
            State::Here(bytes) => {
                *state = State::Here(bytes.clone());
                Ok(Some(bytes))
            }
            State::Lost => Ok(None),
        }
    }
}
