//! The open files of a process: their number is bounded, whatever the number of sources.
//!
//! The source that was read least recently gives up its descriptor, and opens its file again when it is read. After a
//! fork the child starts without any: another thread may have held the parent's lock at that moment.

use crate::base::{Error, Result};
use crate::runtime::PerProcess;
use std::collections::HashMap;
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many files of all stores together a process keeps open for reading. The usual limit is 1,024 descriptors, most
/// of which the embedding program needs.
const OPEN_FILES_MAX: usize = 128;

/// The open files of all stores of this process.
pub(super) static OPEN_FILES: OpenFiles = OpenFiles::new(OPEN_FILES_MAX);

/// Open files by the number of their source, the least recently read out first.
#[derive(Debug)]
pub(super) struct OpenFiles {
    files_max: usize,
    numbers: AtomicU64,
    state: PerProcess<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    files: HashMap<u64, (Arc<File>, u64)>,
    moment: u64,
}

impl OpenFiles {
    /// Allows `files_max` files. Concurrent reads may exceed it by one per thread.
    pub(super) const fn new(files_max: usize) -> Self {
        Self { files_max, numbers: AtomicU64::new(0), state: PerProcess::new() }
    }

    /// A number that no other source has.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// The file of source `number`, opened by `open` unless it is open.
    pub(super) fn get(&self, number: u64, open: impl FnOnce() -> Result<File>) -> Result<Arc<File>> {
        if let Some(file) = self.lock()?.touch(number) {
            return Ok(file);
        }
        let file = Arc::new(open()?);
        // Closed after the lock is released.
        let _gone = self.lock()?.insert(number, &file, self.files_max.min(quarter_of_limit()));
        Ok(file)
    }

    /// Closes the file of source `number`, which will not be read again.
    pub(super) fn forget(&self, number: u64) {
        let _gone = self.lock().map(|mut state| state.files.remove(&number));
    }

    fn lock(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state.get_or_try_build(|| Ok::<_, Error>(Mutex::default()))?;
        Ok(state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A quarter of the descriptors that the process may have, at least one.
fn quarter_of_limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is the call's own for as long as the call takes.
    let answer = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    if answer != 0 {
        return OPEN_FILES_MAX;
    }
    usize::try_from(limit.rlim_cur / 4).unwrap_or(usize::MAX).max(1)
}

impl State {
    fn touch(&mut self, number: u64) -> Option<Arc<File>> {
        self.moment += 1;
        let (file, moment) = self.files.get_mut(&number)?;
        *moment = self.moment;
        Some(Arc::clone(file))
    }

    fn insert(&mut self, number: u64, file: &Arc<File>, files_max: usize) -> Option<Arc<File>> {
        self.moment += 1;
        let mut gone = self.files.insert(number, (Arc::clone(file), self.moment)).map(|(file, _)| file);
        if self.files.len() > files_max
            && let Some(oldest) = self.files.iter().min_by_key(|(_, (_, moment))| *moment).map(|(number, _)| *number)
        {
            gone = self.files.remove(&oldest).map(|(file, _)| file);
        }
        gone
    }
}
