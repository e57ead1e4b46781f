//! The engine's threads: one pool per context, started when the first parallel work arrives, rebuilt in the child
//! of a fork.

use super::PerProcess;
use crate::base::{Cancel, Error, Result, Spawner, Task};
use rayon::prelude::*;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// The environment variable that sizes a pool whose size is not given.
pub const THREADS_VARIABLE: &str = "GRIDSTONE_THREADS";

/// More threads than any machine has cores: a larger number is a mistake, and would only exhaust the process.
const THREADS_MAX: usize = 4_096;

/// A pool of a fixed number of threads. With one thread none is kept: work runs where it is asked for.
#[derive(Debug)]
pub struct Pool {
    threads: usize,
    rayon: PerProcess<rayon::ThreadPool>,
}

impl Pool {
    /// A pool of `threads`; if not given, of `GRIDSTONE_THREADS`; if that is not set or empty, of as many threads
    /// as this process may use cores. No thread is started yet.
    ///
    /// # Errors
    /// Input if the number is 0, too large or, in the variable, not a number.
    pub fn new(threads: Option<usize>) -> Result<Self> {
        let variable = std::env::var_os(THREADS_VARIABLE).map(|value| value.to_string_lossy().into_owned());
        Ok(Self { threads: size(threads, variable.as_deref())?, rayon: PerProcess::new() })
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `f` inside the pool, so that parallel work it starts stays there.
    ///
    /// # Errors
    /// Budget if the threads cannot be started.
    pub fn run<R: Send>(&self, f: impl FnOnce() -> R + Send) -> Result<R> {
        if self.threads == 1 { Ok(f()) } else { Ok(self.rayon()?.install(f)) }
    }

    /// The results of `f` for all items, in their order. The items run in parallel; after an error, or once
    /// `cancel` says so (asked before each item), no further item is begun.
    ///
    /// # Errors
    /// One of the errors of `f` (not always the one of the lowest item), Cancelled, or Budget if the threads
    /// cannot be started.
    pub fn map<T: Send, R: Send>(
        &self,
        items: Vec<T>,
        cancel: &dyn Cancel,
        f: impl Fn(T) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let one = |item| cancel.check().and_then(|()| f(item));
        if self.threads == 1 || items.len() <= 1 {
            return items.into_iter().map(one).collect();
        }
        // Items are coarse (a block to decode, a range to read), so each may be taken by another thread.
        self.rayon()?.install(|| items.into_par_iter().with_max_len(1).map(one).collect())
    }

    /// Runs `work` on another thread while `watch` is called here again and again, as long as `work` goes on.
    ///
    /// # Errors
    /// Budget if no thread can be started.
    pub fn beside<R: Send>(
        &self,
        work: impl FnOnce() -> R + Send,
        every: Duration,
        mut watch: impl FnMut(),
    ) -> Result<R> {
        let (give, done) = channel();
        // Dropped with its result sent, or in a panic, which ends the waiting too.
        let task = move || {
            let _ = give.send(work());
        };
        let mut wait = || loop {
            match done.recv_timeout(every) {
                Ok(result) => return Some(result),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => watch(),
            }
        };
        let result = if self.threads == 1 {
            thread::scope(|scope| {
                scope.spawn(task);
                wait()
            })
        } else {
            self.rayon()?.in_place_scope(|scope| {
                scope.spawn(move |_| task());
                wait()
            })
        };
        result.ok_or_else(|| Error::storage("the work ended without a result"))
    }

    fn rayon(&self) -> Result<&rayon::ThreadPool> {
        self.rayon.get_or_try_build(|| {
            let builder = rayon::ThreadPoolBuilder::new().num_threads(self.threads);
            builder.thread_name(|i| format!("gridstone-{i}")).build().map_err(|e| {
                Error::budget(format!(
                    "{} threads could not be started ({e}); set {THREADS_VARIABLE} to a smaller number",
                    self.threads
                ))
                .with_source(e)
            })
        })
    }
}

impl Spawner for Pool {
    fn threads(&self) -> usize {
        self.threads
    }

    fn each(&self, tasks: Vec<Task<'_>>, cancel: &dyn Cancel) -> Result<()> {
        self.map(tasks, cancel, |task| task()).map(drop)
    }
}

fn size(given: Option<usize>, variable: Option<&str>) -> Result<usize> {
    let (threads, place) = match (given, variable.map(str::trim).filter(|text| !text.is_empty())) {
        (Some(threads), _) => (threads, "the context"),
        (None, None) => return Ok(std::thread::available_parallelism().map_or(1, |n| n.get().min(THREADS_MAX))),
        (None, Some(text)) => {
            let bad =
                |e| Error::input(format!("{THREADS_VARIABLE} is {text:?}; give a number of threads")).with_source(e);
            (text.parse().map_err(bad)?, THREADS_VARIABLE)
        }
    };
    if threads == 0 || threads > THREADS_MAX {
        return Err(Error::input(format!("{place} asks for {threads} threads; give 1 to {THREADS_MAX}")));
    }
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{ErrorKind, NeverCancel};
    use crate::runtime::CancelFlag;
    use std::collections::HashSet;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn the_size_comes_from_the_context_then_the_variable_then_the_machine() {
        assert_eq!(size(Some(3), Some("5")).unwrap(), 3);
        assert_eq!(size(None, Some(" 5 ")).unwrap(), 5);
        assert!(size(None, Some("")).unwrap() >= 1);
        assert!(size(None, None).unwrap() >= 1);
    }

    #[test]
    fn a_bad_size_is_named() {
        for (given, variable) in [(Some(0), None), (None, Some("0")), (None, Some("many")), (Some(5_000), None)] {
            let error = size(given, variable).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input);
        }
        assert!(size(None, Some("-1")).unwrap_err().message().contains("GRIDSTONE_THREADS is \"-1\""));
    }

    #[test]
    fn map_keeps_the_order_and_uses_the_pools_threads() {
        let pool = Pool::new(Some(3)).unwrap();
        let names = Mutex::new(HashSet::new());
        let doubled = pool.map((0..500).collect(), &NeverCancel, |i: u64| {
            names.lock().unwrap().insert(std::thread::current().name().unwrap_or("").to_owned());
            Ok(i * 2)
        });
        assert_eq!(doubled.unwrap(), (0..500).map(|i| i * 2).collect::<Vec<_>>());
        assert!(names.into_inner().unwrap().iter().all(|name| name.starts_with("gridstone-")));
    }

    #[test]
    fn one_thread_or_one_item_runs_inline() {
        let here = std::thread::current().id();
        let id = |_: u8| Ok(std::thread::current().id());
        let single = Pool::new(Some(1)).unwrap();
        assert_eq!(single.map(vec![0, 1, 2], &NeverCancel, id).unwrap(), vec![here; 3]);
        assert_eq!(single.run(|| std::thread::current().id()).unwrap(), here);
        let many = Pool::new(Some(2)).unwrap();
        assert_eq!(many.map(vec![0], &NeverCancel, id).unwrap(), vec![here]);
        assert!(many.map(Vec::new(), &NeverCancel, id).unwrap().is_empty());
        assert_ne!(many.run(|| std::thread::current().id()).unwrap(), here);
    }

    #[test]
    fn an_error_stops_the_rest() {
        for threads in [1, 2] {
            let begun = AtomicUsize::new(0);
            let failing = |i: usize| {
                begun.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(MILLISECOND);
                if i == 0 { Err(Error::corruption("tile 0")) } else { Ok(()) }
            };
            let error = Pool::new(Some(threads)).unwrap().map((0..1_000).collect(), &NeverCancel, failing).unwrap_err();
            assert_eq!(error.message(), "tile 0");
            assert!(begun.into_inner() < 900);
        }
    }

    const MILLISECOND: std::time::Duration = std::time::Duration::from_millis(1);

    #[test]
    fn cancelling_stops_the_rest() {
        for threads in [1, 2] {
            let flag = CancelFlag::new();
            let begun = AtomicUsize::new(0);
            let work = |i: usize| {
                begun.fetch_add(1, Ordering::Relaxed);
                if i == 3 {
                    flag.cancel()
                }
                std::thread::sleep(MILLISECOND);
                Ok(())
            };
            let error = Pool::new(Some(threads)).unwrap().map((0..1_000).collect(), &flag, work).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Cancelled);
            assert!(begun.into_inner() < 900);
        }
    }

    #[test]
    fn work_beside_goes_on_while_this_thread_watches() {
        for threads in [1, 2] {
            let pool = Pool::new(Some(threads)).unwrap();
            let here = std::thread::current().id();
            let looks = AtomicUsize::new(0);
            let work = || {
                while looks.load(Ordering::Relaxed) < 3 {
                    std::thread::yield_now();
                }
                std::thread::current().id()
            };
            let look = || {
                looks.fetch_add(1, Ordering::Relaxed);
            };
            let there = pool.beside(work, MILLISECOND / 10, look).unwrap();
            assert_ne!(there, here);
            let nested = pool.beside(|| pool.map(vec![1, 2, 3], &NeverCancel, |i| Ok(i * 2)), MILLISECOND, || ());
            assert_eq!(nested.unwrap().unwrap(), [2, 4, 6]);
        }
    }

    #[test]
    fn maps_nest() {
        let pool = Pool::new(Some(2)).unwrap();
        let inner = |i: u64| Ok(pool.map((0..i).collect(), &NeverCancel, Ok)?.into_iter().sum::<u64>());
        let sums = pool.map((0..50).collect(), &NeverCancel, inner).unwrap();
        assert_eq!(sums, (0..50).map(|i: u64| i * i.saturating_sub(1) / 2).collect::<Vec<_>>());
    }
}
