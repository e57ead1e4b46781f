//! A storage that holds up a commit until a test lets it go.

use gridstone::storage::{HookedStorage, Operation, Storage};
use std::sync::{Arc, Condvar, Mutex};

/// A storage that stops at one record until the test says so: the others gather meanwhile.
pub(crate) struct Gate {
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

impl Gate {
    pub(crate) fn over(inner: Arc<dyn Storage>) -> (Arc<Self>, Arc<dyn Storage>) {
        let gate = Arc::new(Self { state: Mutex::new((false, false)), changed: Condvar::new() });
        let held = gate.clone();
        let storage = HookedStorage::new(inner, move |operation, _: &str| {
            if operation == Operation::PutIfAbsent {
                held.pass();
            }
        });
        (gate, Arc::new(storage))
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.1 = state.0;
        self.changed.notify_all();
        while state.0 {
            state = self.changed.wait(state).unwrap();
        }
        state.1 = false;
    }

    pub(crate) fn shut(&self) {
        self.state.lock().unwrap().0 = true;
    }

    pub(crate) fn wait_for_somebody(&self) {
        let mut state = self.state.lock().unwrap();
        while !state.1 {
            state = self.changed.wait(state).unwrap();
        }
    }

    pub(crate) fn open(&self) {
        self.state.lock().unwrap().0 = false;
        self.changed.notify_all();
    }
}
