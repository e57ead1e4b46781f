//! Background work on a thread of its own, at the lowest priority of the system.
//!
//! The thread is not joined, so a process can end without waiting for it. Its work then stops as if the machine had
//! stopped, which every commit survives. The thread does not exist in the child of a fork, and waiting for it there is
//! an error.

use super::{CancelFlag, Owner};
use crate::base::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The outcome, once there is one, and the condition variable of the waiters.
type Shared<T> = (Mutex<Option<Arc<Result<T>>>>, Condvar);

/// Work in the background.
#[derive(Debug)]
pub struct Background<T> {
    shared: Arc<Shared<T>>,
    flag: CancelFlag,
    owner: Owner,
}

impl<T> Clone for Background<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), flag: self.flag.clone(), owner: self.owner }
    }
}

impl<T: Send + Sync + 'static> Background<T> {
    /// Starts `work`, which checks the flag for cancellation. A Budget error if no thread can be started.
    pub fn start(name: &str, work: impl FnOnce(&CancelFlag) -> Result<T> + Send + 'static) -> Result<Self> {
        let this = Self { shared: Arc::default(), flag: CancelFlag::new(), owner: Owner::here() };
        let (shared, flag) = (this.shared.clone(), this.flag.clone());
        let run = move || {
            lower_priority();
            let outcome = catch_unwind(AssertUnwindSafe(|| work(&flag)));
            let failed = |_| {
                Err(Error::storage("work in the background ended without an outcome; this is a mistake in Gridstone"))
            };
            *shared.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(outcome.unwrap_or_else(failed)));
            shared.1.notify_all();
        };
        let spawned = thread::Builder::new().name(format!("gridstone-{name}")).spawn(run);
        spawned.map_err(|e| Error::budget(format!("no thread can be started for work in the background: {e}")))?;
        Ok(this)
    }

    /// Whether it has ended. In the child of a fork, where it does not continue, it has.
    pub fn is_done(&self) -> bool {
        !self.owner.is_here() || self.shared.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Waits for at most `most`; `None` if it is still running.
    pub fn wait(&self, most: Duration) -> Option<Arc<Result<T>>> {
        if !self.owner.is_here() {
            let elsewhere = "this was started by the process that this one was forked from, and goes on there";
            return Some(Arc::new(Err(Error::input(elsewhere))));
        }
        let until = Instant::now() + most;
        let mut outcome = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(found) = outcome.as_ref() {
                return Some(found.clone());
            }
            let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
            outcome = self.shared.1.wait_timeout(outcome, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Cancels it.
    pub fn cancel(&self) {
        self.flag.cancel();
    }
}

/// Lets every other thread run first, where the system supports it. A failure does no harm.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    // SAFETY: both calls take plain numbers; a thread may always lower its own priority.
    unsafe {
        let thread = libc::syscall(libc::SYS_gettid) as libc::id_t;
        libc::setpriority(libc::PRIO_PROCESS, thread, 19);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Cancel, ErrorKind};

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn it_ends_with_an_outcome_whatever_happens() {
        let good = Background::start("test", |_| Ok(7)).unwrap();
        assert_eq!(*good.wait(LONG).unwrap().as_ref().as_ref().unwrap(), 7);
        assert!(good.is_done());
        let bad = Background::<u8>::start("test", |_| panic!("on purpose")).unwrap();
        assert!(bad.wait(LONG).unwrap().is_err());
    }

    #[test]
    fn it_can_be_stopped_and_waited_for_in_vain() {
        let work = |flag: &CancelFlag| {
            while !flag.cancelled() {
                thread::yield_now();
            }
            flag.check().map(|()| 0)
        };
        let running = Background::start("test", work).unwrap();
        assert!(running.wait(Duration::from_millis(5)).is_none() && !running.is_done());
        running.cancel();
        let outcome = running.wait(LONG).unwrap();
        assert_eq!(outcome.as_ref().as_ref().unwrap_err().kind(), ErrorKind::Cancelled);
    }

    #[test]
    fn a_forked_child_waits_for_nothing() {
        let mut parents = Background::start("test", |_| Ok(7)).unwrap();
        parents.owner = Owner::elsewhere();
        assert!(parents.is_done());
        assert!(parents.wait(LONG).unwrap().is_err());
    }
}
