//! Group commit under many schedules, explored by shuttle, which takes control before every operation on the storage and
//! whenever a thread waits. Promised: no commit is lost or doubled, nobody waits for ever, history is one line.

use crate::support::writers::{World, ids};
use gridstone::base::{Id, Result, Signal, Signals};
use gridstone::storage::{HookedStorage, MemoryStorage, Operation, Storage};
use gridstone::store::{CommitQueue, GroupCommit, Queues, Snapshot, StandardRules};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads that wait hand control to the scheduler.
#[derive(Debug)]
struct Scheduled;

#[derive(Debug, Default)]
struct Flag {
    raised: shuttle::sync::Mutex<bool>,
    changed: shuttle::sync::Condvar,
}

impl Signals for Scheduled {
    fn signal(&self) -> Arc<dyn Signal> {
        Arc::<Flag>::default()
    }
}

impl Signal for Flag {
    fn raise(&self) {
        *self.raised.lock().unwrap() = true;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let mut raised = self.raised.lock().unwrap();
        while !*raised {
            raised = self.changed.wait(raised).unwrap();
        }
    }
}

#[derive(Debug)]
struct Queue(GroupCommit);

impl Queues for Queue {
    fn queue(&self) -> Result<&dyn CommitQueue> {
        Ok(&self.0)
    }
}

/// `writers` threads of one process and `strangers` of others; the most commits that shared a record in any schedule.
fn explore(writers: usize, strangers: usize, commits: usize, fold_versions: u64, schedules: usize) -> usize {
    let shared_most = Arc::new(AtomicUsize::new(0));
    let most = shared_most.clone();
    let scenario = move || {
        let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let storage = HookedStorage::new(memory, |operation, _| {
            if operation != Operation::Exists {
                shuttle::thread::yield_now();
            }
        });
        let world = World::new(Arc::new(storage), fold_versions);
        let one = world.create().unwrap();
        let queue: Arc<dyn Queues> = Arc::new(Queue(GroupCommit::new(Arc::new(Scheduled))));
        let write = |queue: Option<Arc<dyn Queues>>| {
            let (world, one) = (world.clone(), one.clone());
            shuttle::thread::spawn(move || write(&world, one, commits, queue))
        };
        let threads: Vec<_> = (0..writers).map(|_| write(Some(queue.clone()))).collect();
        let others: Vec<_> = (0..strangers).map(|_| write(None)).collect();
        let written: BTreeSet<Id> = threads.into_iter().chain(others).flat_map(|t| t.join().unwrap()).collect();

        let store = world.store();
        let last = store.latest().unwrap();
        let found = ids(&last);
        assert_eq!(found.len(), (writers + strangers) * commits);
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), written);
        let records: Vec<_> = store.history(1, u64::MAX).unwrap().map(Result::unwrap).collect();
        assert!(records.windows(2).all(|pair| pair[1].parent == Some(pair[0].xxh3)));
        let fragments = records.iter().map(|r| r.inline.len()).max().unwrap_or(0);
        most.fetch_max(fragments, Ordering::Relaxed);
    };
    shuttle::check_random(scenario, schedules);
    shared_most.load(Ordering::Relaxed)
}

/// Commits fragments one by one, each after what the one before gave back; each must see its own.
fn write(world: &World, mut snapshot: Arc<Snapshot>, count: usize, queue: Option<Arc<dyn Queues>>) -> Vec<Id> {
    let store = match queue {
        Some(queue) => world.store().with_queues(queue),
        None => world.store(),
    };
    let one = |_| {
        let (id, changes) = world.addition();
        snapshot = store.commit(&snapshot, changes, &mut StandardRules).unwrap();
        assert!(ids(&snapshot).contains(&id));
        id
    };
    (0..count).map(one).collect()
}

#[test]
fn three_threads_of_one_process() {
    assert_eq!(explore(3, 0, 2, 64, 2_000), 2, "while one commits, two gather");
}

#[test]
fn four_threads_of_one_process_that_fold() {
    assert_eq!(explore(4, 0, 2, 2, 1_000), 3);
}

#[test]
fn three_threads_of_one_process_and_two_of_others() {
    assert!(explore(3, 2, 2, 64, 1_000) >= 2);
}
