//! The engine's threads: one pool per context, started with the first parallel work, rebuilt in the child of a fork.

use super::PerProcess;
use super::patience::{standing, under};
use super::work::Work;
use crate::base::{Cancel, Error, Result, Spawner, Task};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::thread;
use std::time::Duration;

/// The environment variable that sizes a pool whose size is not given.
pub const THREADS_VARIABLE: &str = "GRIDSTONE_THREADS";

/// More threads than any machine has cores: a larger number is a mistake, and would only exhaust the process.
const THREADS_MAX: usize = 4_096;

/// A pool of a fixed number of threads. A pool of one thread starts none: work runs on the calling thread.
#[derive(Debug)]
pub struct Pool {
    threads: usize,
    rayon: PerProcess<rayon::ThreadPool>,
}

impl Pool {
    /// A pool of `threads`, or of `GRIDSTONE_THREADS` if that is not given. If the variable is unset or empty, the pool
    /// has as many threads as this process may use cores. No thread is started yet.
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

    /// Runs `f` inside the pool, so that its parallel work stays there.
    ///
    /// # Errors
    /// Budget if the threads cannot be started.
    pub fn run<R: Send>(&self, f: impl FnOnce() -> R + Send) -> Result<R> {
        if self.threads == 1 {
            return Ok(f());
        }
        let over = standing();
        Ok(self.rayon()?.install(|| under(over, f)))
    }

    /// The results of `f` for all items, in their order. The items run in parallel, on this thread and the pool's
    /// others, and start in their order. After an error or a cancellation (checked before each item) no further one is
    /// started.
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
        let over = standing();
        let one = |item| cancel.check().and_then(|()| under(over.clone(), || f(item)));
        let helpers = self.threads.min(items.len()).saturating_sub(1);
        if helpers == 0 {
            return items.into_iter().map(one).collect();
        }
        // Waking a thread takes as long as decoding a block or two. So this thread starts at once; the others take the
        // remaining items when they arrive.
        let work = Work::new(items);
        self.rayon()?.in_place_scope(|scope| {
            (0..helpers).for_each(|_| scope.spawn(|_| work.help(&one)));
            work.go_on(&one);
            // A thread of the pool runs other work meanwhile.
            if rayon::current_thread_index().is_none() {
                work.wait(helpers, cancel);
            }
        });
        work.results()
    }

    /// Runs `work` for all items in parallel, at most `ahead` items ahead of `consume`, which gets the results on this
    /// thread, in the order of the items. After an error or a cancellation no further item is started.
    ///
    /// # Errors
    /// Those of [`Pool::map`], and those of `consume`.
    pub fn pipe<T: Send, R: Send>(
        &self,
        items: impl IntoIterator<Item = T>,
        ahead: usize,
        cancel: &dyn Cancel,
        work: impl Fn(T) -> Result<R> + Sync,
        mut consume: impl FnMut(R) -> Result<()>,
    ) -> Result<()> {
        let over = standing();
        let one = |item| cancel.check().and_then(|()| under(over.clone(), || work(item)));
        let mut items = items.into_iter();
        if self.threads == 1 {
            return items.try_for_each(|item| consume(one(item)?));
        }
        let one = &one;
        let stopped = AtomicBool::new(false);
        let stopped = &stopped;
        // The oldest first, whichever thread takes it: the next result is waited for, and choices for later tiles must
        // be made by then.
        self.rayon()?.in_place_scope_fifo(|scope| {
            // Whatever ends this, items not started by then do nothing.
            let _stop = Stop(stopped);
            // A queue per item, oldest first: each is answered once, in any order.
            let mut begun = VecDeque::new();
            let mut begin = |begun: &mut VecDeque<Receiver<Result<R>>>| {
                let Some(item) = items.next() else { return };
                let (give, done) = channel();
                begun.push_back(done);
                scope.spawn_fifo(move |_| {
                    if !stopped.load(Ordering::Relaxed) {
                        drop(give.send(one(item)));
                    }
                });
            };
            (0..ahead.max(1)).for_each(|_| begin(&mut begun));
            while let Some(done) = begun.pop_front() {
                let result = wait_for(&done)?;
                begin(&mut begun);
                consume(result?)?;
            }
            Ok(())
        })
    }

    /// Runs `work` on another thread while `watch` is called here repeatedly, until `work` ends.
    ///
    /// # Errors
    /// Budget if no thread can be started.
    pub fn beside<R: Send>(
        &self,
        work: impl FnOnce() -> R + Send,
        every: Duration,
        mut watch: impl FnMut(),
    ) -> Result<R> {
        let ((give, done), over) = (channel(), standing());
        // Dropped with its result sent, or in a panic, which ends the waiting too.
        let task = move || {
            let _ = give.send(under(over, work));
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

/// Sets the flag when it is dropped.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Receives the result of a task. A thread of the pool runs other tasks meanwhile, so that threads which all wait for
/// tasks cannot block those tasks.
fn wait_for<R>(done: &Receiver<R>) -> Result<R> {
    let lost = || Error::storage("the work ended without a result");
    loop {
        match done.try_recv() {
            Ok(result) => return Ok(result),
            Err(TryRecvError::Disconnected) => return Err(lost()),
            Err(TryRecvError::Empty) => {}
        }
        match rayon::yield_now() {
            Some(rayon::Yield::Executed) => {}
            Some(rayon::Yield::Idle) => match done.recv_timeout(Duration::from_millis(1)) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Disconnected) => return Err(lost()),
                Err(RecvTimeoutError::Timeout) => {}
            },
            None => return done.recv().map_err(|_| lost()),
        }
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
    use std::sync::atomic::AtomicUsize;

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
    fn map_keeps_the_order_and_uses_this_thread_and_the_pools() {
        let pool = Pool::new(Some(3)).unwrap();
        let here = std::thread::current().id();
        let (others, mine) = (Mutex::new(HashSet::new()), AtomicUsize::new(0));
        // No thread continues before all three have arrived: one or two of them might have done everything.
        let all = std::sync::Barrier::new(3);
        let doubled = pool.map((0..500).collect(), &NeverCancel, |i: u64| {
            if i < 3 {
                all.wait();
            }
            let current = std::thread::current();
            if current.id() == here {
                mine.fetch_add(1, Ordering::Relaxed);
            } else {
                others.lock().unwrap().insert(current.name().unwrap_or("").to_owned());
            }
            Ok(i * 2)
        });
        assert_eq!(doubled.unwrap(), (0..500).map(|i| i * 2).collect::<Vec<_>>());
        let others = others.into_inner().unwrap();
        assert_eq!(others.len(), 2, "{others:?}");
        assert!(others.iter().all(|name| name.starts_with("gridstone-")) && mine.into_inner() > 0);
    }

    /// A thread outside the pool proceeds alone while all of the pool's threads are busy.
    #[test]
    fn a_full_pool_keeps_nobody_waiting_for_the_first_item() {
        let pool = Pool::new(Some(2)).unwrap();
        let (go, begun) = (AtomicBool::new(false), AtomicUsize::new(0));
        let wait = || {
            begun.fetch_add(1, Ordering::Relaxed);
            while !go.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        };
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| pool.beside(wait, MILLISECOND, || ()).unwrap());
            }
            while begun.load(Ordering::Relaxed) < 2 {
                std::thread::yield_now();
            }
            // Its last item releases the pool's threads.
            let last = |i: u8| {
                go.store(i == 9, Ordering::Relaxed);
                Ok(i)
            };
            assert_eq!(pool.map((0..10).collect(), &NeverCancel, last).unwrap(), (0..10).collect::<Vec<_>>());
        });
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
    fn a_pipe_keeps_the_order_and_its_distance() {
        for threads in [1, 2, 3] {
            let pool = Pool::new(Some(threads)).unwrap();
            let (begun, mut seen) = (AtomicUsize::new(0), Vec::new());
            let work = |i: usize| {
                begun.fetch_add(1, Ordering::Relaxed);
                Ok(i * 2)
            };
            let consume = |i: usize| {
                seen.push(i);
                assert!(begun.load(Ordering::Relaxed) <= seen.len() + 4);
                Ok(())
            };
            pool.pipe(0..300, 4, &NeverCancel, work, consume).unwrap();
            assert_eq!(seen, (0..300).map(|i| i * 2).collect::<Vec<_>>());
            pool.pipe(0..0, 4, &NeverCancel, work, |_| Ok(())).unwrap();
        }
    }

    /// A thread that waits for a pipe's results helps with the next items, not with the last.
    #[test]
    fn a_pipe_in_the_pool_begins_its_items_in_order() {
        let pool = Pool::new(Some(2)).unwrap();
        let (go, busy) = (AtomicBool::new(false), AtomicBool::new(false));
        let begun = Mutex::new(Vec::new());
        let wait = || {
            busy.store(true, Ordering::Relaxed);
            while !go.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        };
        thread::scope(|scope| {
            // One thread of the pool is busy until the pipe, which runs in the other one, has ended.
            scope.spawn(|| pool.beside(wait, MILLISECOND, || ()).unwrap());
            while !busy.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let work = |i: usize| {
                begun.lock().unwrap().push(i);
                Ok(())
            };
            pool.run(|| pool.pipe(0..50, 8, &NeverCancel, work, Ok)).unwrap().unwrap();
            go.store(true, Ordering::Relaxed);
        });
        assert_eq!(begun.into_inner().unwrap(), (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn a_pipe_stops_at_errors_of_either_end_and_when_cancelled() {
        for threads in [1, 2] {
            let pool = Pool::new(Some(threads)).unwrap();
            let begun = AtomicUsize::new(0);
            let work = |i: usize| {
                begun.fetch_add(1, Ordering::Relaxed);
                if i == 20 { Err(Error::corruption("tile 20")) } else { Ok(i) }
            };
            let error = pool.pipe(0..1_000, 4, &NeverCancel, work, |_| Ok(())).unwrap_err();
            assert_eq!(error.message(), "tile 20");
            let full = |i: usize| if i == 10 { Err(Error::storage("full")) } else { Ok(()) };
            assert_eq!(pool.pipe(0..1_000, 4, &NeverCancel, work, full).unwrap_err().message(), "full");
            let flag = CancelFlag::new();
            let stop = |i: usize| {
                if i == 5 {
                    flag.cancel();
                }
                Ok(())
            };
            assert_eq!(pool.pipe(0..1_000, 4, &flag, work, stop).unwrap_err().kind(), ErrorKind::Cancelled);
            assert!(begun.into_inner() < 100);
        }
    }

    #[test]
    fn what_a_failed_pipe_has_queued_does_nothing() {
        let begun = AtomicUsize::new(0);
        let work = |_: usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            thread::sleep(2 * MILLISECOND);
            Ok(())
        };
        let full = |()| Err(Error::storage("full"));
        let error = Pool::new(Some(2)).unwrap().pipe(0..1_000, 50, &NeverCancel, work, full).unwrap_err();
        assert_eq!(error.message(), "full");
        let begun = begun.into_inner();
        assert!(begun < 25, "{begun} were done");
    }

    /// All threads of the pool wait in a pipe for tasks that only they can run.
    #[test]
    fn pipes_nest_in_a_full_pool() {
        let pool = Pool::new(Some(2)).unwrap();
        let inner = |i: u64| {
            let mut sum = 0;
            pool.pipe(0..i, 3, &NeverCancel, Ok, |n| {
                sum += n;
                Ok(())
            })?;
            Ok(sum)
        };
        let sums = pool.map((0..50).collect(), &NeverCancel, inner).unwrap();
        assert_eq!(sums, (0..50).map(|i: u64| i * i.saturating_sub(1) / 2).collect::<Vec<_>>());
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

    /// Raised on one thread only, once it was checked often enough there.
    struct OnlyHere(std::thread::ThreadId, AtomicUsize);

    impl Cancel for OnlyHere {
        fn cancelled(&self) -> bool {
            if std::thread::current().id() == self.0 {
                self.1.fetch_add(1, Ordering::Relaxed);
            }
            self.1.load(Ordering::Relaxed) > 3
        }
    }

    #[test]
    fn who_waits_for_helpers_asks_whether_to_go_on() {
        let pool = Pool::new(Some(2)).unwrap();
        let here = std::thread::current().id();
        let cancel = OnlyHere(here, AtomicUsize::new(0));
        // The helper's item ends only when the cancellation is checked on this thread, which finishes its own item at
        // once and then waits.
        let begun = std::sync::Barrier::new(2);
        let done = pool.map(vec![(); 2], &cancel, |()| {
            begun.wait();
            while std::thread::current().id() != here && !cancel.cancelled() {
                std::thread::yield_now();
            }
            Ok(())
        });
        assert_eq!(done.unwrap().len(), 2);
        assert!(cancel.1.load(Ordering::Relaxed) >= 4, "more often where the helper is slow to end");
    }

    #[test]
    fn maps_nest() {
        let pool = Pool::new(Some(2)).unwrap();
        let inner = |i: u64| Ok(pool.map((0..i).collect(), &NeverCancel, Ok)?.into_iter().sum::<u64>());
        let sums = pool.map((0..50).collect(), &NeverCancel, inner).unwrap();
        assert_eq!(sums, (0..50).map(|i: u64| i * i.saturating_sub(1) / 2).collect::<Vec<_>>());
    }
}
