//! Cancellable waits: the cancellation that applies to a thread's work.
//!
//! A read over a network waits inside a storage, which has no access to the call. So a call's cancellation is kept per
//! thread, and is passed to the pool's threads with every task.

use crate::base::Cancel;
use std::cell::RefCell;
use std::sync::Arc;

thread_local!(static STANDING: RefCell<Option<Arc<dyn Cancel>>> = const { RefCell::new(None) });

/// Runs `work` under `cancel`; `None`: no wait is given up.
pub fn under<R>(cancel: Option<Arc<dyn Cancel>>, work: impl FnOnce() -> R) -> R {
    let _before = Before(STANDING.with(|standing| standing.replace(cancel)));
    work()
}

/// The cancellation of this thread's work.
pub fn standing() -> Option<Arc<dyn Cancel>> {
    STANDING.with(|standing| standing.borrow().clone())
}

/// Restores the previous cancellation, after a panic too.
struct Before(Option<Arc<dyn Cancel>>);

impl Drop for Before {
    fn drop(&mut self) {
        let before = self.0.take();
        STANDING.with(|standing| *standing.borrow_mut() = before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::NeverCancel;
    use crate::runtime::{CancelFlag, Pool};
    use std::time::Duration;

    fn cancelled() -> Option<bool> {
        standing().map(|cancel| cancel.cancelled())
    }

    fn raised() -> Option<Arc<dyn Cancel>> {
        let flag = CancelFlag::new();
        flag.cancel();
        Some(Arc::new(flag))
    }

    #[test]
    fn it_ends_with_the_work_and_what_stood_before_is_back() {
        assert_eq!(cancelled(), None);
        under(Some(Arc::new(NeverCancel)), || {
            assert_eq!(cancelled(), Some(false));
            under(raised(), || assert_eq!(cancelled(), Some(true)));
            under(None, || assert_eq!(cancelled(), None));
            let panic = std::panic::catch_unwind(|| under(raised(), || panic!("on purpose")));
            assert!(panic.is_err());
            assert_eq!(cancelled(), Some(false));
        });
        assert_eq!(cancelled(), None);
    }

    #[test]
    fn the_pools_threads_have_it_for_the_tasks_of_the_call_and_no_longer() {
        for threads in [1, 3] {
            let pool = Pool::new(Some(threads)).unwrap();
            let seen = || pool.map((0..50).collect(), &NeverCancel, |_: u8| Ok(cancelled())).unwrap();
            assert!(under(raised(), seen).iter().all(|c| *c == Some(true)));
            assert!(seen().iter().all(Option::is_none));
            let mut piped = Vec::new();
            let pipe = || {
                pool.pipe(
                    0..50,
                    4,
                    &NeverCancel,
                    |_: u8| Ok(cancelled()),
                    |c| {
                        piped.push(c);
                        Ok(())
                    },
                )
            };
            under(raised(), pipe).unwrap();
            assert!(piped.len() == 50 && piped.iter().all(|c| *c == Some(true)));
            assert_eq!(under(raised(), || pool.run(cancelled).unwrap()), Some(true));
            let beside = || pool.beside(cancelled, Duration::from_millis(1), || {}).unwrap();
            assert_eq!((under(raised(), beside), beside()), (Some(true), None));
        }
    }
}
