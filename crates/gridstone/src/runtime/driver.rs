//! The thread that talks to the network: one for the whole process, started by the first request.
//!
//! Callers hand it futures and block until they are done, on a plain channel: so they may be called from anywhere, from
//! within another async runtime too. The child of a fork starts its own; what its parent's was doing is not its business.

use super::PerProcess;
use crate::base::{Error, Result};
use std::future::Future;
use std::sync::mpsc::{Receiver, sync_channel};
use tokio::runtime::{Builder, Runtime};

static DRIVER: PerProcess<Driver> = PerProcess::new();

/// The runtime of this process. Of several threads that start one at once all but one are dropped, and one may be so inside
/// another async runtime, where waiting for its end would be refused.
struct Driver(Option<Runtime>);

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// The thread's name, as debuggers and `ps -T` show it.
const NAME: &str = "gridstone-io";

/// Threads that resolve names of hosts, which the operating system does not do without blocking; they end when idle.
const RESOLVERS_MAX: usize = 4;

/// What a future that was handed to the driver will give.
#[derive(Debug)]
pub struct Driven<T>(Receiver<T>);

impl<T> Driven<T> {
    /// Blocks until it is there.
    ///
    /// # Errors
    /// Storage if the work was given up: it panicked.
    pub fn wait(self) -> Result<T> {
        self.0.recv().map_err(|_| Error::storage("a request was given up: the thread that talks to the network failed"))
    }
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
    // It is taken by drop alone; were it not there, who waits would be told.
    if let Some(runtime) = &driver.0 {
        runtime.spawn(async move {
            // Who asked may have gone away.
            let _ = send.send(work.await);
        });
    }
    Ok(Driven(receive))
}

/// Does `work` on the driver's thread and waits for it.
///
/// # Errors
/// Those of [`drive`] and [`Driven::wait`].
pub fn driven<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T> {
    drive(work)?.wait()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

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

    #[test]
    fn a_panic_is_an_error_and_harms_no_other_work() {
        assert!(driven(async { panic!("on purpose") }).is_err());
        driven(async { tokio::time::sleep(Duration::from_millis(1)).await }).unwrap();
    }
}
