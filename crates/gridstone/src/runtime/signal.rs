//! Signals between threads of the operating system.

use crate::base::{Signal, Signals};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Makes signals that block the waiting thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct CondvarSignals;

impl Signals for CondvarSignals {
    fn signal(&self) -> Arc<dyn Signal> {
        Arc::<Flag>::default()
    }
}

#[derive(Debug, Default)]
struct Flag {
    raised: Mutex<bool>,
    changed: Condvar,
}

impl Signal for Flag {
    fn raise(&self) {
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        while !*raised {
            raised = self.changed.wait(raised).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    #[test]
    fn who_waits_goes_on_once_the_signal_is_raised_and_not_before() {
        let (signal, passed) = (CondvarSignals.signal(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                signal.wait();
                passed.store(true, Ordering::SeqCst);
            });
            std::thread::sleep(Duration::from_millis(20));
            assert!(!passed.load(Ordering::SeqCst));
            signal.raise();
        });
        assert!(passed.load(Ordering::SeqCst));
        signal.wait();
    }
}
