//! Killed at any point of any kind of work, a process leaves a store that is whole, holds all that was acknowledged,
//! and goes on working.
//!
//! A child process does one chapter of the [`crate::life`] on a folder and ends itself by SIGKILL at its n-th point,
//! for all n: before every operation on the storage, before every call to the operating system of which those that
//! write are made, and in the middle of each that writes.

use crate::child::{Child, Folder, say};
use crate::life::{Life, chapters, check, kinds, perform};
use gridstone::storage::{DiskCalls, Durability, HookedStorage, LocalStorage, Storage, SystemCalls};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Points of the script at least: fewer would mean that they are not reached.
const POINTS_MIN: usize = 600;

/// Ends the process at a point.
#[derive(Debug)]
struct Killer {
    left: AtomicU64,
}

impl Killer {
    /// A point that was reached; whether it is the last.
    fn passes(&self) -> bool {
        self.left.fetch_sub(1, Ordering::Relaxed) > 1
    }

    fn point(&self) {
        if !self.passes() {
            die();
        }
    }
}

/// SIGKILL, as from outside: nothing is flushed, no destructor runs.
fn die() -> ! {
    // SAFETY: sends a signal to this very process; touches no memory.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    loop {
        std::thread::park();
    }
}

impl DiskCalls for Killer {
    fn create(&self, path: &Path) -> io::Result<File> {
        self.point();
        SystemCalls.create(path)
    }

    fn write(&self, path: &Path, file: &File, bytes: &[u8]) -> io::Result<usize> {
        self.point();
        if !self.passes() {
            SystemCalls.write(path, file, &bytes[..bytes.len() / 2])?;
            die();
        }
        SystemCalls.write(path, file, bytes)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.point();
        SystemCalls.link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.point();
        SystemCalls.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.point();
        SystemCalls.remove_file(path)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.point();
        SystemCalls.make_folder(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.point();
        SystemCalls.remove_folder(path)
    }

    fn remove_all(&self, path: &Path) -> io::Result<()> {
        self.point();
        SystemCalls.remove_all(path)
    }
}

/// The child: does the chapter in the upper half of `number`, says the version after each step, and dies at the point
/// in the lower half.
pub(crate) fn live_a_chapter(store: &Path, number: u64) {
    let (kinds, killer) = (kinds(), Arc::new(Killer { left: AtomicU64::new(number & 0xffff_ffff) }));
    let local = LocalStorage::with_calls(store, Durability::Close, killer.clone()).unwrap();
    let storage: Arc<dyn Storage> = Arc::new(HookedStorage::new(Arc::new(local), move |_, _| killer.point()));
    let chapter = chapters(&kinds).swap_remove((number >> 32) as usize);
    perform(&kinds, &chapter, &storage, |_, version| say("version", version));
    say("alive", 0);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The life on a folder, with a copy of it from the beginning of each chapter.
struct Stage {
    folder: Folder,
    life: Life,
}

impl Stage {
    fn new() -> Self {
        let folder = Folder::new("kill");
        let store = folder.0.join("rehearsal");
        let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(&store, Durability::Close).unwrap());
        let keep = |chapter: usize| {
            if store.exists() {
                copy(&store, &folder.0.join(format!("{chapter}")));
            }
        };
        let life = Life::rehearsed_on(&storage, keep, |_| {});
        Self { folder, life }
    }

    /// Kills a child at one point of a chapter and checks what it left; whether it got so far as to be killed.
    fn kill_at(&self, chapter: usize, point: u64, work: &Path) -> bool {
        let _ = fs::remove_dir_all(work);
        let start = self.folder.0.join(format!("{chapter}"));
        if start.exists() {
            copy(&start, work);
        }
        let mut child = Child::start("live-a-chapter", work, (chapter as u64) << 32 | point);
        let (mut said, mut alive) = (self.life.starts[chapter], false);
        while let Some((word, number)) = child.hear_any(&["version", "alive"]) {
            (said, alive) = if word == 0 { (number, false) } else { (said, true) };
        }
        assert_eq!(child.succeeds(), alive, "a child ends by being killed or not at all");
        let name = self.life.kinds[self.life.chapters[chapter][0].kind].name;
        let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(work, Durability::Close).unwrap());
        let versions = if alive { said..=said } else { self.life.possible(said) };
        if let Err(wrong) = check::survives(&storage, &self.life, versions) {
            panic!("chapter {chapter} ({name}), point {point}, version {said} said: {wrong}");
        }
        !alive
    }

    /// Takes chapters until there is none left; gives the points at which children were killed.
    fn kill_everywhere(&self, next: &AtomicUsize, work: PathBuf) -> usize {
        let mut points = 0;
        loop {
            let chapter = next.fetch_add(1, Ordering::Relaxed);
            if chapter >= self.life.chapters.len() {
                return points;
            }
            points += (1..).take_while(|point| self.kill_at(chapter, *point, &work)).count();
        }
    }
}

#[test]
fn a_kill_at_any_point_of_any_work_loses_nothing() {
    let (stage, next) = (Stage::new(), AtomicUsize::new(0));
    let points: usize = std::thread::scope(|scope| {
        let worker = |n: usize| {
            let (stage, next) = (&stage, &next);
            scope.spawn(move || stage.kill_everywhere(next, stage.folder.0.join(format!("work-{n}"))))
        };
        let workers = [worker(0), worker(1)];
        workers.into_iter().map(|w| w.join().unwrap()).sum()
    });
    println!("{points} points in {} chapters, {} versions", stage.life.chapters.len(), stage.life.last());
    assert!(points >= POINTS_MIN, "{points} points");
}
