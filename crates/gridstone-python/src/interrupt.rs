//! Long calls: the GIL released, Ctrl-C seen within 100 ms, progress told.
//!
//! Signal handlers of Python run on its main thread only, and only while it holds the GIL. So a call from the main
//! thread works on a helper thread while the main thread looks for signals every 25 ms.

use crate::errors::raise;
use gridstone::base::{Cancel, Progress, Result};
use gridstone::engine::{Call, CancelFlag};
use pyo3::prelude::*;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
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

fn on_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    Ok(threading.call_method0("current_thread")?.is(&threading.call_method0("main_thread")?))
}

/// Runs `work` without the GIL. An interrupt, or an exception of `progress`, stops it and is raised.
pub(crate) fn run<R: Send>(
    py: Python<'_>,
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
    let mut interrupt = None;
    let outcome = py.detach(|| if main { watched(&call, &flag, work, &mut interrupt) } else { work(&call) });
    if let Some(error) = interrupt {
        return Err(error);
    }
    if let Some(reporter) = reporter
        && let Some(error) = reporter.state.lock().unwrap_or_else(PoisonError::into_inner).1.take()
    {
        return Err(error);
    }
    outcome.map_err(|e| raise(py, &e))
}

/// Works on a helper thread while this one, Python's main thread, looks for signals.
fn watched<R: Send>(
    call: &Call,
    flag: &CancelFlag,
    work: impl FnOnce(&Call) -> Result<R> + Send,
    interrupt: &mut Option<PyErr>,
) -> Result<R> {
    std::thread::scope(|scope| {
        let (done, finished) = channel();
        scope.spawn(move || {
            // The receiver lives until a value came, so sending cannot fail before.
            let _ = done.send(work(call));
        });
        loop {
            match finished.recv_timeout(LOOK_EVERY) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(gridstone::base::Error::storage(
                        "the engine's thread ended without an answer; please report this",
                    ));
                }
                Err(RecvTimeoutError::Timeout) if flag.cancelled() => {}
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(error) = Python::attach(|py| py.check_signals()) {
                        flag.cancel();
                        *interrupt = Some(error);
                    }
                }
            }
        }
    })
}
