//! The calls that changed a folder, in order, with what was written.

use gridstone::storage::{DiskCalls, SystemCalls};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// One change that succeeded, or a word of the script.
#[derive(Debug, Clone)]
pub(super) enum Event {
    Create(PathBuf),
    Write(PathBuf, Arc<[u8]>),
    SyncFile(PathBuf),
    SyncFolder(PathBuf),
    /// A file that was written is whole, as far as the system says.
    Close(PathBuf),
    Link(PathBuf, PathBuf),
    Rename(PathBuf, PathBuf),
    RemoveFile(PathBuf),
    MakeFolder(PathBuf),
    RemoveFolder(PathBuf),
    RemoveAll(PathBuf),
    /// This version was acknowledged.
    Said(u64),
}

/// Does every call and notes those that succeed.
#[derive(Debug, Default)]
pub(super) struct Recorder(Mutex<Vec<Event>>);

impl Recorder {
    pub(super) fn note(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }

    /// All that was noted so far.
    pub(super) fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    fn noted<T>(&self, outcome: io::Result<T>, event: impl FnOnce() -> Event) -> io::Result<T> {
        if outcome.is_ok() {
            self.note(event());
        }
        outcome
    }
}

impl DiskCalls for Recorder {
    fn create(&self, path: &Path) -> io::Result<File> {
        self.noted(SystemCalls.create(path), || Event::Create(path.into()))
    }

    fn write(&self, path: &Path, file: &File, bytes: &[u8]) -> io::Result<usize> {
        let taken = SystemCalls.write(path, file, bytes)?;
        self.note(Event::Write(path.into(), bytes[..taken].into()));
        Ok(taken)
    }

    // Nothing here is to survive a power cut, so that the syncs themselves can be spared.
    fn sync_file(&self, path: &Path, _: &File) -> io::Result<()> {
        self.note(Event::SyncFile(path.into()));
        Ok(())
    }

    fn sync_folder(&self, path: &Path, _: &File) -> io::Result<()> {
        self.note(Event::SyncFolder(path.into()));
        Ok(())
    }

    fn close(&self, path: &Path, file: File) -> io::Result<()> {
        self.noted(SystemCalls.close(path, file), || Event::Close(path.into()))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.noted(SystemCalls.link(from, to), || Event::Link(from.into(), to.into()))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.noted(SystemCalls.rename(from, to), || Event::Rename(from.into(), to.into()))
    }

    fn rename_folder(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.noted(SystemCalls.rename_folder(from, to), || Event::Rename(from.into(), to.into()))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.noted(SystemCalls.remove_file(path), || Event::RemoveFile(path.into()))
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.noted(SystemCalls.make_folder(path), || Event::MakeFolder(path.into()))
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.noted(SystemCalls.remove_folder(path), || Event::RemoveFolder(path.into()))
    }

    fn remove_all(&self, path: &Path) -> io::Result<()> {
        self.noted(SystemCalls.remove_all(path), || Event::RemoveAll(path.into()))
    }
}
