//! Long calls: the GIL released, Ctrl-C seen within 100 ms, progress told.
//!
//! Signal handlers of Python run on its main thread only, and only while it holds the GIL. So a call from the main
//! thread works on a thread of the context's pool while the main thread looks for signals every 25 ms. With one thread
//! (`threads=1`) it works itself, and looks where the work asks whether to go on. So it does in reads ([`read`]), which ask so once per
//! block and most of which take a millisecond: waking a thread, and being woken by it, would be a third of that. Not where a network is
//! waited for, in which nothing is asked.

use crate::errors::raise;
use crate::journal::{deliver, listen};
use gridstone::base::{Cancel, Progress, Result};
use gridstone::engine::{Array, Call, CancelFlag, Context, is_remote};
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(25);
const REPORT_EVERY: Duration = Duration::from_millis(50);

/// A Python callable told about progress; its first exception stops the work.
struct Reporter {
    callable: Py<PyAny>,
    flag: CancelFlag,
    state: Mutex<(Option<Instant>, Option<PyErr>)>,
}

impl Progress for Reporter {
    fn report(&self, done: u64, total: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = state.0.is_some_and(|at| at.elapsed() < REPORT_EVERY);
        if state.1.is_some() || (recent && done < total) {
            return;
        }
        state.0 = Some(Instant::now());
        if let Err(error) = Python::attach(|py| self.callable.call1(py, (done, total)).map(drop)) {
            self.flag.cancel();
            state.1 = Some(error);
        }
    }
}

/// Whether to go on with work that Python's main thread does itself.
struct Looking {
    flag: CancelFlag,
    /// The only thread on which signals can be seen.
    main: ThreadId,
    /// When they were last looked for, and what a handler raised.
    state: Mutex<(Instant, Option<PyErr>)>,
}

impl Looking {
    fn new(flag: CancelFlag) -> Self {
        Self { flag, main: thread::current().id(), state: Mutex::new((Instant::now(), None)) }
    }

    /// Whether it is time to look again.
    fn is_due(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let due = state.0.elapsed() >= LOOK_EVERY;
        if due {
            state.0 = Instant::now();
        }
        due
    }

    fn raised(&self) -> Option<PyErr> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1.take()
    }
}

impl Cancel for Looking {
    fn cancelled(&self) -> bool {
        // No lock is held while a handler runs: it may call for more work.
        if !self.flag.cancelled()
            && thread::current().id() == self.main
            && self.is_due()
            && let Err(error) = Python::attach(|py| py.check_signals())
        {
            self.flag.cancel();
            self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = Some(error);
        }
        self.flag.cancelled()
    }
}

fn on_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    Ok(threading.call_method0("current_thread")?.is(&threading.call_method0("main_thread")?))
}

/// Runs `work` without the GIL. An interrupt, or an exception of `progress`, stops it and is raised; a panic
/// is a GridstoneError.
pub(crate) fn run<R: Send>(
    py: Python<'_>,
    context: &Context,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Call) -> Result<R> + Send,
) -> PyResult<R> {
    listen(py)?;
    let how = if context.threads() == 1 { How::Itself } else { How::Beside };
    run_how(py, context, how, progress, work)
}

/// As [`run`], for a read of the store at `uri`, which asks often whether to go on; unless a network is waited for, the main thread works
/// itself beside the pool's.
pub(crate) fn read<R: Send>(
    py: Python<'_>,
    context: &Context,
    uri: &str,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Call) -> Result<R> + Send,
) -> PyResult<R> {
    let how = if context.threads() == 1 || !is_remote(uri) { How::Itself } else { How::Beside };
    run_how(py, context, how, progress, work)
}

/// Where the work of a call from the main thread is done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// On the main thread.
    Itself,
    /// On a thread of the pool.
    Beside,
}

fn run_how<R: Send>(
    py: Python<'_>,
    context: &Context,
    how: How,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Call) -> Result<R> + Send,
) -> PyResult<R> {
    let flag = CancelFlag::new();
    let reporter =
        progress.map(|callable| Arc::new(Reporter { callable, flag: flag.clone(), state: Mutex::new((None, None)) }));
    let mut call = Call { cancel: Arc::new(flag.clone()), ..Call::default() };
    if let Some(reporter) = &reporter {
        call.progress = reporter.clone();
    }
    let main = on_main_thread(py)?;
    let looking = (main && how == How::Itself).then(|| Arc::new(Looking::new(flag.clone())));
    if let Some(looking) = &looking {
        call.cancel = looking.clone();
    }
    let mut interrupt = None;
    let outcome = py.detach(|| {
        if main && looking.is_none() {
            watched(context, &call, &flag, work, &mut interrupt)
        } else {
            catch_unwind(AssertUnwindSafe(|| call.run(|| work(&call))))
        }
    });
    let outcome = outcome.map_err(|panic| failed(py, panic.as_ref()))?;
    if let Some(error) = interrupt.or_else(|| looking.and_then(|looking| looking.raised())) {
        return Err(error);
    }
    if let Some(reporter) = reporter
        && let Some(error) = reporter.state.lock().unwrap_or_else(PoisonError::into_inner).1.take()
    {
        return Err(error);
    }
    warn(py, context);
    outcome.map_err(|e| raise(py, &e))
}

/// As [`run`], for work without a store: on this thread, which looks for an interrupt where the work asks whether to go on.
pub(crate) fn alone<R: Send>(py: Python<'_>, work: impl FnOnce(&Call) -> Result<R> + Send) -> PyResult<R> {
    let looking = Arc::new(Looking::new(CancelFlag::new()));
    let call = Call { cancel: looking.clone(), ..Call::default() };
    let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(|| work(&call))));
    let outcome = outcome.map_err(|panic| failed(py, panic.as_ref()))?;
    looking.raised().map_or_else(|| outcome.map_err(|e| raise(py, &e)), Err)
}

/// Commits, which is brought to its end whatever happens, then warns of what it noticed.
pub(crate) fn commit<R: Send>(
    py: Python<'_>,
    context: &Context,
    work: impl FnOnce() -> Result<R> + Send,
) -> PyResult<R> {
    listen(py)?;
    let outcome = py.detach(work);
    warn(py, context);
    outcome.map_err(|e| raise(py, &e))
}

/// Warns of what a call noticed, and logs what happened. What is done is done: a warning that was made an error is told, and takes no
/// outcome's place.
fn warn(py: Python<'_>, context: &Context) {
    deliver(py);
    for text in context.take_notices() {
        let category = py.import("gridstone.errors").and_then(|errors| errors.getattr("ClockWarning"));
        let warned = category.and_then(|category| py.import("warnings")?.call_method1("warn", (text, category, 2)));
        if let Err(error) = warned {
            error.write_unraisable(py, None);
        }
    }
}

/// Runs what asks the store at `uri` something small: where that goes over a network it may wait for long, and is run as
/// [`run`] does; else on this thread.
pub(crate) fn ask<R: Send>(
    py: Python<'_>,
    context: &Context,
    uri: &str,
    work: impl FnOnce() -> Result<R> + Send,
) -> PyResult<R> {
    if is_remote(uri) {
        return run(py, context, None, |_| work());
    }
    listen(py)?;
    let outcome = run_quick(py, |_| work());
    warn(py, context);
    outcome
}

/// Runs what asks for the schema of an array, or the like: as [`ask`], unless that is in memory, as mostly.
pub(crate) fn look<R: Send>(py: Python<'_>, array: &Array, work: impl FnOnce() -> Result<R> + Send) -> PyResult<R> {
    // A transaction may hold its lock while it reads: without the GIL nobody waits for both.
    let tried = py.detach(|| if array.is_at_hand() { Ok(catch_unwind(AssertUnwindSafe(work))) } else { Err(work) });
    match tried {
        Ok(outcome) => outcome.map_err(|panic| failed(py, panic.as_ref()))?.map_err(|e| raise(py, &e)),
        Err(work) => ask(py, array.context(), &array.uri(), work),
    }
}

/// As [`run`], for work that is over before anybody could want to stop it: done on this thread.
pub(crate) fn run_quick<R: Send>(py: Python<'_>, work: impl FnOnce(&Call) -> Result<R> + Send) -> PyResult<R> {
    let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(|| work(&Call::default()))));
    outcome.map_err(|panic| failed(py, panic.as_ref()))?.map_err(|e| raise(py, &e))
}

/// Works on a thread of the pool while this one, Python's main thread, looks for signals. Err: the work panicked.
fn watched<R: Send>(
    context: &Context,
    call: &Call,
    flag: &CancelFlag,
    work: impl FnOnce(&Call) -> Result<R> + Send,
    interrupt: &mut Option<PyErr>,
) -> thread::Result<Result<R>> {
    let caught = || catch_unwind(AssertUnwindSafe(|| call.run(|| work(call))));
    let look = || {
        if !flag.cancelled()
            && let Err(error) = Python::attach(|py| py.check_signals())
        {
            flag.cancel();
            *interrupt = Some(error);
        }
    };
    context.beside(caught, LOOK_EVERY, look).unwrap_or_else(|error| Ok(Err(error)))
}

/// The exception for a panic of the engine, which is a mistake in it, whatever the caller did.
fn failed(py: Python<'_>, panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("it does not say why");
    let message = format!("the engine failed: {text}. This is a mistake in Gridstone; please report it");
    let made = py.import("gridstone.errors").and_then(|m| m.getattr("GridstoneError")?.call1((message,)));
    made.map_or_else(|failed| failed, PyErr::from_value)
}
