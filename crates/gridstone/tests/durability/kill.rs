//! Killed at any point of any kind of work, a process leaves a store that is whole, holds all that was acknowledged,
//! and goes on working.
//!
//! A child process does one chapter of a script of the [`crate::support::life`] on a folder and ends itself by SIGKILL at its n-th point,
//! for one n in four, which the seed tells, and for all with `GRIDSTONE_TEST_DEEP`: before every operation on the storage, before every call to the operating system of which those that
//! write are made, and in the middle of each that writes. Its commits wait for the disk and do not, in turn. Before operations that only read it dies in the longest of the scripts, and in
//! the others with `GRIDSTONE_TEST_DEEP`: the folder is then as at the next point.

use crate::support::child::{Child, Folder, say};
use crate::support::life::alternating::Alternating;
use crate::support::life::script::{Ground, Life, Script, is_tried, perform};
use crate::support::life::{check, scripts};
use crate::support::scratch::unsynced;
use gridstone::storage::{DiskCalls, HookedStorage, Operation, Storage, SystemCalls};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// Points of a chapter at least, on the average: fewer would mean that they are not reached.
const POINTS_MIN: usize = 15;

/// The folders in which a script is done.
const STORE: &str = "store";
const SOURCE: &str = "source";

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

    // The process dies, not the machine.
    fn sync_file(&self, _: &Path, _: &File) -> io::Result<()> {
        Ok(())
    }

    fn sync_folder(&self, _: &Path, _: &File) -> io::Result<()> {
        Ok(())
    }

    fn close(&self, path: &Path, file: File) -> io::Result<()> {
        self.point();
        SystemCalls.close(path, file)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.point();
        SystemCalls.link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.point();
        SystemCalls.rename(from, to)
    }

    fn rename_folder(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.point();
        SystemCalls.rename_folder(from, to)
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

fn only_reads(operation: Operation) -> bool {
    use Operation::{Exists, List, Open, Read, ReadAll, Survey};
    matches!(operation, Read | ReadAll | Open | Exists | List | Survey)
}

/// What a child is to do: the number of a script, that of a chapter in it, and the point at which it dies.
fn order(script: usize, chapter: usize, point: u64) -> u64 {
    (script as u64) << 48 | (chapter as u64) << 32 | point
}

/// The child: does the chapter that `order` says, says the version after each step, and dies at the point.
pub(crate) fn live_a_chapter(folder: &Path, order: u64) {
    let script = scripts().swap_remove((order >> 48) as usize);
    let kinds = (script.kinds)();
    let killer = Arc::new(Killer { left: AtomicU64::new(order & 0xffff_ffff) });
    let number = (order >> 32) as usize & 0xffff;
    let disk = Arc::new(Alternating::new(&folder.join(STORE), &killer));
    if number % 2 == 1 {
        disk.turn();
    }
    let store: Arc<dyn Storage> = Arc::new(HookedStorage::new(disk.clone(), move |operation, _| {
        if script.reads || !only_reads(operation) {
            killer.point();
        }
    }));
    let chapter = script.chapters(&kinds).swap_remove(number);
    let source = unsynced(folder.parent().unwrap().join(SOURCE));
    perform(&script, &kinds, &chapter, &Ground { store, source }, |_, _, version| {
        say("version", version);
        disk.turn();
    });
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

/// A life on a folder, with a copy of it from the beginning of each chapter.
struct Stage {
    folder: Folder,
    number: usize,
    life: Life,
}

impl Stage {
    fn new(number: usize, script: Script) -> Self {
        let folder = Folder::new("kill");
        let store = folder.0.join("rehearsal");
        let ground = Ground { store: unsynced(store.clone()), source: unsynced(folder.0.join(SOURCE)) };
        let keep = |chapter: usize| {
            if store.exists() {
                copy(&store, &folder.0.join(format!("{chapter}")));
            }
        };
        let life = Life::rehearsed_on(script, &ground, keep, |_| {});
        Self { folder, number, life }
    }

    /// Kills a child at one point of a chapter and checks what it left; whether it got so far as to be killed.
    fn kill_at(&self, chapter: usize, point: u64, work: &Path) -> bool {
        let _ = fs::remove_dir_all(work);
        let start = self.folder.0.join(format!("{chapter}"));
        if start.exists() {
            copy(&start, &work.join(STORE));
        }
        let mut child = Child::start("live-a-chapter", work, order(self.number, chapter, point));
        let (mut steps, mut alive) = (chapter * self.life.chapters[chapter].len(), false);
        while let Some((word, _)) = child.hear_any(&["version", "alive"]) {
            (steps, alive) = if word == 0 { (steps + 1, false) } else { (steps, true) };
        }
        assert_eq!(child.succeeds(), alive, "a child ends by being killed or not at all");
        let ground = Ground { store: unsynced(work.join(STORE)), source: unsynced(self.folder.0.join(SOURCE)) };
        let mut versions = self.life.possible(steps);
        if alive {
            versions = *versions.start()..=*versions.start();
        }
        if let Err(wrong) = check::survives(&ground, &self.life, steps, versions) {
            let (script, name) = (self.life.script.name, self.life.under_way(steps));
            panic!("script {script}, chapter {chapter}, point {point}, {steps} steps said, then {name}: {wrong}");
        }
        !alive
    }

    /// Takes chapters until there is none left; gives the points that there were, or a few less.
    fn kill_everywhere(&self, next: &AtomicUsize, work: PathBuf) -> usize {
        let mut points = 0;
        loop {
            let chapter = next.fetch_add(1, Ordering::Relaxed);
            if chapter >= self.life.chapters.len() {
                return points;
            }
            let tried = (1..).filter(|point| is_tried((self.number, chapter, point)));
            points += tried.take_while(|point| self.kill_at(chapter, *point, &work)).last().unwrap_or(0) as usize;
        }
    }
}

#[test]
fn a_kill_at_any_point_of_any_work_loses_nothing() {
    for (number, script) in scripts().into_iter().enumerate().filter(|(_, script)| script.is_wanted()) {
        let begun = Instant::now();
        let (stage, next) = (Stage::new(number, script), AtomicUsize::new(script.prelude));
        let points: usize = std::thread::scope(|scope| {
            let worker = |n: usize| {
                let (stage, next) = (&stage, &next);
                scope.spawn(move || stage.kill_everywhere(next, stage.folder.0.join(format!("work-{n}"))))
            };
            let workers = [worker(0), worker(1)];
            workers.into_iter().map(|w| w.join().unwrap()).sum()
        });
        let (chapters, last) = (stage.life.chapters.len() - script.prelude, stage.life.last());
        println!("{}: {points} points in {chapters} chapters, {last} versions, {:?}", script.name, begun.elapsed());
        assert!(points > POINTS_MIN * chapters, "{}: {points} points", script.name);
    }
}
