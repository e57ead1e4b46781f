//! The network thread: one for the whole process, started by the first request.
//!
//! Callers pass futures to it and block on a plain channel until they are done. So they may be called from anywhere,
//! also from within another async runtime. The child of a fork starts its own thread; its parent's work stays with the
//! parent.

use super::{PerProcess, standing};
use crate::base::{Error, Result};
use std::future::Future;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

static DRIVER: PerProcess<Driver> = PerProcess::new();

/// The runtime of this process. If several threads start one at once, all but one are dropped, possibly inside another
/// async runtime, which refuses to wait for a runtime's end.
struct Driver(Option<Runtime>);

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// The thread's name in debuggers and `ps -T`.
const NAME: &str = "gridstone-io";

/// Threads that resolve host names, which the operating system does not do without blocking; they end when idle.
const RESOLVERS_MAX: usize = 4;

/// How often a cancellable wait checks for cancellation.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The result of a future that was passed to the driver.
#[derive(Debug)]
pub struct Driven<T> {
    answer: Receiver<T>,
    task: Option<AbortHandle>,
}

impl<T> Driven<T> {
    /// Blocks until the result is there.
    ///
    /// # Errors
    /// Storage if the work was given up: it panicked.
    pub fn wait(self) -> Result<T> {
        self.answer.recv().map_err(|_| lost())
    }

    /// Like [`Self::wait`], for work without effects: the work and the wait are given up once this thread's
    /// cancellation is raised.
    ///
    /// # Errors
    /// Cancelled; those of [`Self::wait`].
    pub fn wait_or_cancel(&self) -> Result<T> {
        let Some(cancel) = standing() else { return self.answer.recv().map_err(|_| lost()) };
        loop {
            match self.answer.recv_timeout(LOOK_EVERY) {
                Ok(found) => return Ok(found),
                Err(RecvTimeoutError::Disconnected) => return Err(lost()),
                Err(RecvTimeoutError::Timeout) => cancel.check().inspect_err(|_| self.abort())?,
            }
        }
    }

    fn abort(&self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// The answer to a request without effects. If it is dropped before the answer arrives, the request is given up.
#[derive(Debug)]
pub struct Asked<T>(Driven<T>);

impl<T> Asked<T> {
    /// Blocks until the answer arrives, or this thread's cancellation is raised.
    ///
    /// # Errors
    /// Those of [`Driven::wait_or_cancel`].
    pub fn wait(self) -> Result<T> {
        self.0.wait_or_cancel()
    }
}

impl<T> From<Driven<T>> for Asked<T> {
    fn from(driven: Driven<T>) -> Self {
        Self(driven)
    }
}

impl<T> Drop for Asked<T> {
    fn drop(&mut self) {
        // This does nothing if the work is done.
        self.0.abort();
    }
}

fn lost() -> Error {
    Error::storage("a request was given up: the thread that talks to the network failed")
}

/// Starts `work` on the driver's thread.
///
/// # Errors
/// Storage if the thread cannot be started.
pub fn drive<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<Driven<T>> {
    let driver = DRIVER.get_or_try_build(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).max_blocking_threads(RESOLVERS_MAX).thread_name(NAME).enable_all();
        let failed = |e| Error::storage("the thread that talks to the network cannot be started").with_source(e);
        Ok(Driver(Some(builder.build().map_err(failed)?)))
    })?;
    let (send, receive) = sync_channel(1);
    // Only drop takes it; if it were missing, the waiter would get an error.
    let spawn = |runtime: &Runtime| {
        let task = runtime.spawn(async move {
            // The receiver may be gone.
            let _ = send.send(work.await);
        });
        task.abort_handle()
    };
    Ok(Driven { answer: receive, task: driver.0.as_ref().map(spawn) })
}

/// Runs `work` on the driver's thread and waits for it.
///
/// # Errors
/// Those of [`drive`] and [`Driven::wait`].
pub fn driven<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T> {
    drive(work)?.wait()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Cancel, ErrorKind};
    use crate::runtime::{CancelFlag, under};
    use std::sync::Arc;

    #[test]
    fn work_is_done_on_one_thread_of_its_own() {
        let name = || async { std::thread::current().name().map(str::to_owned) };
        let first = driven(name()).unwrap();
        assert_eq!(first.as_deref(), Some(NAME));
        assert_eq!(driven(name()).unwrap(), first);
    }

    #[test]
    fn pieces_of_work_wait_side_by_side() {
        let (send, receive) = tokio::sync::oneshot::channel();
        let waits = drive(async move { receive.await.unwrap() }).unwrap();
        drive(async move { send.send(7).unwrap() }).unwrap();
        assert_eq!(waits.wait().unwrap(), 7);
    }

    #[test]
    fn it_may_be_called_from_within_another_runtime() {
        let other = Builder::new_current_thread().build().unwrap();
        assert_eq!(other.block_on(async { driven(async { 3 }).unwrap() }), 3);
    }

    /// Sends a message when it is dropped.
    struct Told(std::sync::mpsc::Sender<()>);

    impl Drop for Told {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
        }
    }

    #[test]
    fn a_wait_is_given_up_with_its_work_once_the_call_is_cancelled() {
        let flag = CancelFlag::new();
        let (tell, told) = std::sync::mpsc::channel();
        let told_when_gone = Told(tell);
        let endless = drive(async move {
            let _gone = told_when_gone;
            std::future::pending::<()>().await;
        });
        let cancel: Arc<dyn Cancel> = Arc::new(flag.clone());
        let waits = std::thread::spawn(move || under(Some(cancel), || endless.unwrap().wait_or_cancel()));
        assert!(told.recv_timeout(3 * LOOK_EVERY).is_err());
        flag.cancel();
        assert_eq!(waits.join().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
        told.recv_timeout(Duration::from_secs(60)).expect("the work goes on, and nobody waits for it");
        assert_eq!(drive(async { 3 }).unwrap().wait_or_cancel().unwrap(), 3);
    }

    #[test]
    fn a_question_that_nobody_waits_for_is_given_up() {
        let (tell, told) = std::sync::mpsc::channel();
        let told_when_gone = Told(tell);
        let endless = drive(async move {
            let _gone = told_when_gone;
            std::future::pending::<()>().await;
        });
        let asked: Vec<Asked<()>> = vec![drive(async {}).unwrap().into(), endless.unwrap().into()];
        let mut asked = asked.into_iter();
        asked.next().unwrap().wait().unwrap();
        told.recv_timeout(3 * LOOK_EVERY).unwrap_err();
        drop(asked);
        told.recv_timeout(Duration::from_secs(60)).expect("the question goes on, and nobody waits for it");
    }

    #[test]
    fn a_panic_is_an_error_and_harms_no_other_work() {
        assert!(driven(async { panic!("on purpose") }).is_err());
        driven(async { tokio::time::sleep(Duration::from_millis(1)).await }).unwrap();
    }
}
