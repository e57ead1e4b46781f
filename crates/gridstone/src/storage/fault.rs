//! A decorator that injects faults at a chosen operation and in a chosen way, for crash tests.
//!
//! A test first runs a scenario with an idle plan and counts its operations. For each n up to that count it runs the
//! scenario again with a fault at the n-th operation, and checks the state of the store.

use super::layer::{Call, Layer, Layered};
use super::os_error::os_error;
use super::{Operation, Storage};
use crate::base::{ByteSink, Error, Result};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The error numbers of a device that fails and of one that is full; the same on every Unix.
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// How an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It reports an I/O error and has no effect.
    Error,
    /// It reports an I/O error but takes effect.
    ErrorAfter,
    /// It reports an I/O error, and the first half of the bytes written (by a sink up to then, or by a put) is stored
    /// under the name. Equals [`Fault::Error`] where nothing is written, and for `put_if_absent`, which is never torn.
    Torn,
    /// It finds no space. So does every later operation that needs some, until the plan is cleared.
    Full,
    /// It and every later operation fails, as if the process had died before it. Files being written stay, with the
    /// bytes written so far.
    Kill,
}

/// Which operation fails, and how. The test sets it while the storage is in use; at first it is idle.
#[derive(Debug, Default)]
pub struct FaultPlan(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    seen: Vec<Operation>,
    armed: Option<Armed>,
    /// Full or Kill, once it has struck.
    lasting: Option<Fault>,
    struck: bool,
}

#[derive(Debug)]
struct Armed {
    fault: Fault,
    only: Option<Operation>,
    left: u64,
}

impl FaultPlan {
    /// An idle plan.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Makes the `n`-th operation from now (1 is the next) fail by `fault`; replaces the previous plan.
    pub fn fail_nth(&self, n: u64, fault: Fault) {
        self.lock().armed = Some(Armed { fault, only: None, left: n });
    }

    /// Makes the `n`-th operation of one kind from now fail by `fault`; replaces the previous plan.
    pub fn fail_nth_of(&self, operation: Operation, n: u64, fault: Fault) {
        self.lock().armed = Some(Armed { fault, only: Some(operation), left: n });
    }

    /// Lets everything succeed again, also after a kill, and counts from zero.
    pub fn clear(&self) {
        *self.lock() = State::default();
    }

    /// The number of operations since the start or the last `clear`, including failed ones.
    pub fn operations(&self) -> u64 {
        self.lock().seen.len() as u64
    }

    /// The operations since the start or the last `clear`, in order.
    pub fn journal(&self) -> Vec<Operation> {
        self.lock().seen.clone()
    }

    /// Whether the planned fault has happened.
    pub fn struck(&self) -> bool {
        self.lock().struck
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn killed(&self) -> bool {
        self.lock().lasting == Some(Fault::Kill)
    }
}

impl State {
    /// Counts `operation` and returns how it fails, if it does.
    fn next(&mut self, operation: Operation) -> Option<Fault> {
        self.seen.push(operation);
        match self.lasting {
            Some(Fault::Kill) => return Some(Fault::Kill),
            Some(fault) if operation.takes_space() => return Some(fault),
            _ => {}
        }
        let armed = self.armed.as_mut().filter(|armed| armed.only.is_none_or(|only| only == operation))?;
        armed.left = armed.left.saturating_sub(1);
        if armed.left > 0 {
            return None;
        }
        let fault = armed.fault;
        self.armed = None;
        self.struck = true;
        if matches!(fault, Fault::Full | Fault::Kill) {
            self.lasting = Some(fault);
        }
        Some(fault)
    }
}

/// A storage that fails by plan.
pub type FaultyStorage = Layered<FaultPlan>;

impl FaultyStorage {
    /// `inner`, failing as `plan` says. Several storages may share a plan, like the threads of one process.
    pub fn new(inner: Arc<dyn Storage>, plan: Arc<FaultPlan>) -> Self {
        Self::over(inner, plan)
    }
}

impl Layer for FaultPlan {
    /// A process may die between any two of them.
    fn deletes_one_by_one(&self) -> bool {
        true
    }

    fn around<T>(&self, call: Call<'_>, run: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let fault = self.lock().next(call.operation);
        match fault {
            None => return run(call.bytes),
            Some(Fault::ErrorAfter) => drop(run(call.bytes)?),
            Some(Fault::Torn) if matches!(call.operation, Operation::Put | Operation::PutHint | Operation::Finish) => {
                drop(run(half(call.bytes))?);
            }
            Some(_) => {}
        }
        let error = injected(fault, call);
        Err(if matches!(fault, Some(Fault::ErrorAfter | Fault::Kill)) { error } else { error.without_effect() })
    }

    fn sink(self: Arc<Self>, name: &str, inner: Box<dyn ByteSink>) -> Box<dyn ByteSink> {
        Box::new(FaultySink { inner: Some(inner), plan: self, name: name.to_owned(), bytes: Vec::new() })
    }
}

fn half(bytes: &[u8]) -> &[u8] {
    bytes.get(..bytes.len() / 2).unwrap_or_default()
}

fn injected(fault: Option<Fault>, call: Call<'_>) -> Error {
    let asked = format!("injected fault in {:?} of {:?}", call.operation, call.name);
    match fault {
        Some(Fault::Kill) => Error::storage(format!("{asked}: the process is dead")),
        Some(Fault::Full) => os_error(asked, io::Error::from_raw_os_error(ENOSPC)),
        _ => os_error(asked, io::Error::from_raw_os_error(EIO)),
    }
}

/// A sink that keeps all bytes until it is finished, so that the file can get any prefix of them.
struct FaultySink {
    /// Taken when the file is finished, or is left as a dead process would leave it.
    inner: Option<Box<dyn ByteSink>>,
    plan: Arc<FaultPlan>,
    name: String,
    bytes: Vec<u8>,
}

/// Makes `bytes` the whole content of the file.
fn complete(inner: Option<Box<dyn ByteSink>>, bytes: &[u8]) -> Result<()> {
    let Some(mut sink) = inner else { return Ok(()) };
    sink.write(bytes)?;
    sink.finish()
}

impl ByteSink for FaultySink {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let call = Call::writing(Operation::Write, &self.name, bytes);
        let fault = self.plan.lock().next(Operation::Write);
        if matches!(fault, None | Some(Fault::ErrorAfter | Fault::Torn)) {
            self.bytes.extend_from_slice(bytes);
        }
        if fault == Some(Fault::Torn) {
            complete(self.inner.take(), half(&self.bytes))?;
        }
        if fault.is_none() { Ok(()) } else { Err(injected(fault, call)) }
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let bytes = std::mem::take(&mut self.bytes);
        let mut inner = self.inner.take();
        let call = Call::writing(Operation::Finish, &self.name, &bytes);
        let finished = self.plan.around(call, |bytes| complete(inner.take(), bytes));
        // The rest is put back; drop removes it or leaves it behind.
        (self.inner, self.bytes) = (inner, bytes);
        finished
    }
}

impl Drop for FaultySink {
    fn drop(&mut self) {
        if self.plan.killed() {
            // A dead process removes nothing.
            let _ = complete(self.inner.take(), &self.bytes);
        }
    }
}

#[cfg(test)]
mod tests;
