//! Events of the engine on their way to Python's `logging`.
//!
//! 1. A call that may change a store asks `logging` which levels are wanted ([`listen`]). Otherwise nothing is kept.
//! 2. The engine puts events into a queue, from any thread; Python is not called then.
//! 3. The end of the next call takes them out and hands them to `gridstone.base.log` ([`deliver`]). No lock is held then.
//!
//! Events of the background wait for the next call of the process. A forked child has a queue of its own.

use gridstone::engine::{Detail, Event, Events, Level, PerProcess};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Events that wait at most; the oldest go.
const WAITING_MAX: usize = 4_096;

/// The levels of `logging`; above all of them nothing is wanted.
const NOTHING: u8 = u8::MAX;

/// An event, and when it happened: seconds since 1970.
type Dated = (f64, Event);

#[derive(Debug)]
struct Journal {
    /// The least level that is wanted.
    wanted: AtomicU8,
    /// Whether an event may wait.
    has_some: AtomicBool,
    waiting: Queue,
}

struct Queue(PerProcess<Mutex<VecDeque<Dated>>>);

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Queue")
    }
}

static JOURNAL: Journal =
    Journal { wanted: AtomicU8::new(NOTHING), has_some: AtomicBool::new(false), waiting: Queue(PerProcess::new()) };

thread_local! {
    /// Whether this thread is handing events over. What a handler does is logged by the next call.
    static DELIVERING: Cell<bool> = const { Cell::new(false) };
}

/// The level's number in `logging`.
fn number(level: Level) -> u8 {
    match level {
        Level::Debug => 10,
        Level::Info => 20,
        Level::Warning => 30,
    }
}

impl Queue {
    fn held(&self) -> Option<MutexGuard<'_, VecDeque<Dated>>> {
        let queue = self.0.get_or_try_build(|| Ok(Mutex::default())).ok()?;
        Some(queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Puts events into the process's queue.
#[derive(Debug)]
struct Sender;

impl Events for Sender {
    fn wants(&self, level: Level) -> bool {
        number(level) >= JOURNAL.wanted.load(Ordering::Relaxed)
    }

    fn take(&self, event: Event) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        let Some(mut waiting) = JOURNAL.waiting.held() else { return };
        if waiting.len() >= WAITING_MAX {
            waiting.pop_front();
        }
        waiting.push_back((now, event));
        JOURNAL.has_some.store(true, Ordering::Release);
    }
}

/// Where the events of contexts go.
pub(crate) fn events() -> Arc<dyn Events> {
    Arc::new(Sender)
}

/// Asks `logging` which events are wanted.
///
/// # Errors
/// What a signal handler raised meanwhile, as `KeyboardInterrupt`.
pub(crate) fn listen(py: Python<'_>) -> PyResult<()> {
    static ASK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let ask = ASK.get_or_try_init(py, || Ok::<_, PyErr>(py.import("gridstone.base.log")?.getattr("wanted")?.unbind()));
    // Without anybody to ask nothing is logged, and the call goes on.
    let wanted = ask.map_or(Ok(NOTHING), |ask| ask.bind(py).call0()?.extract::<u8>())?;
    JOURNAL.wanted.store(wanted, Ordering::Relaxed);
    Ok(())
}

/// Hands the events that wait to `logging`. What a handler raises is reported as that of a destructor is.
pub(crate) fn deliver(py: Python<'_>) {
    if !JOURNAL.has_some.load(Ordering::Acquire) || DELIVERING.get() {
        return;
    }
    JOURNAL.has_some.store(false, Ordering::Release);
    let Some(events) = JOURNAL.waiting.held().map(|mut waiting| std::mem::take(&mut *waiting)) else { return };
    DELIVERING.set(true);
    match hand_over(py, events) {
        // SAFETY: Python is attached. The signal is as if it came now: what the call has done is not lost with it.
        Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => unsafe { pyo3::ffi::PyErr_SetInterrupt() },
        Err(error) => error.write_unraisable(py, None),
        Ok(()) => {}
    }
    DELIVERING.set(false);
}

fn hand_over(py: Python<'_>, events: VecDeque<Dated>) -> PyResult<()> {
    let told = PyList::empty(py);
    for (time, event) in events {
        let details = PyDict::new(py);
        for (name, detail) in event.details {
            match detail {
                Detail::Number(number) => details.set_item(name, number)?,
                Detail::Seconds(seconds) => details.set_item(name, seconds)?,
                Detail::Text(text) => details.set_item(name, text)?,
            }
        }
        told.append((number(event.level), event.topic, event.what, details, time))?;
    }
    py.import("gridstone.base.log")?.call_method1("tell", (told,)).map(drop)
}

/// Logs what waits. A process that ends does it once more, for what the background did.
#[pyfunction]
pub(crate) fn log_events(py: Python<'_>) {
    deliver(py);
}
