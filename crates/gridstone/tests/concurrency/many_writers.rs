//! Many writers at once: nothing is lost, nothing fails, and readers see whole commits only.

use crate::support::crowd::{COMMITS, WRITERS, created, open, read, write};
use gridstone::engine::{At, Call};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[test]
fn eight_writers_lose_nothing() {
    let folder = created("writers");
    let (done, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let follower = || {
            let (array, mut seen) = (open(folder.path(), false), 0);
            while !done.load(Ordering::Relaxed) {
                array.refresh().unwrap();
                let now = read(&array);
                assert!(now >= seen, "{now} cells after {seen}");
                seen = now;
                reads.fetch_add(1, Ordering::Relaxed);
            }
        };
        let newcomer = || {
            while !done.load(Ordering::Relaxed) {
                read(&open(folder.path(), false));
                reads.fetch_add(1, Ordering::Relaxed);
            }
        };
        scope.spawn(follower);
        scope.spawn(newcomer);
        let writer = |number: i64| {
            let array = open(folder.path(), true);
            (0..COMMITS).map(|commit| write(&array, number, commit)).collect::<Vec<u64>>()
        };
        let writers: Vec<_> = (0..WRITERS).map(|number| scope.spawn(move || writer(number))).collect();
        let outcomes: Vec<_> = writers.into_iter().map(|w| w.join()).collect();
        done.store(true, Ordering::Relaxed);
        let mut versions: Vec<u64> = outcomes.into_iter().flat_map(Result::unwrap).collect();
        versions.sort_unstable();
        assert_eq!(
            versions,
            (2..2 + (WRITERS * COMMITS) as u64).collect::<Vec<u64>>(),
            "every commit has a version of its own"
        );
    });
    assert!(reads.into_inner() > 2, "the readers read nothing");
    let array = open(folder.path(), false);
    assert_eq!(read(&array), (2 * WRITERS * COMMITS) as usize);
    assert_eq!(array.history(&Call::default()).unwrap().len(), 1 + (WRITERS * COMMITS) as usize);
    // Any version is whole: as many cells as commits before it.
    for version in [1, 2, 63, 64, 65, 129, 400, 801] {
        assert_eq!(read(&array.at(At::Version(version)).unwrap()), 2 * (version as usize - 1));
    }
}
