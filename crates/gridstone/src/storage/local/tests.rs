//! Tests specific to directories: durability, permissions, temporary files, and what a removal spares.

use super::*;
use crate::base::Entropy;
use crate::base::{ByteRange, ErrorKind};
use crate::runtime::SystemEntropy;
use crate::storage::conformance;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU32, Ordering};

mod disk;
mod trust;

/// A temporary directory that is removed with this value.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("gridstone-{}", SystemEntropy.id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn store(&self) -> LocalStorage {
        let storage = LocalStorage::new(self.0.join("a.gs"), Durability::Full).unwrap();
        storage.prepare().unwrap();
        storage
    }

    fn hidden_files(&self) -> Vec<PathBuf> {
        let inside = |folder: &str| fs::read_dir(self.0.join("a.gs").join(folder)).unwrap();
        let paths = ["_log", "_data"].into_iter().flat_map(inside).map(|entry| entry.unwrap().path());
        paths.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with('.')).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn local_conforms_with_and_without_fsync() {
    for durability in [Durability::Full, Durability::Close] {
        let scratch = Scratch::new();
        conformance::check(&|| {
            let root = scratch.0.join(SystemEntropy.id().to_string()).join("deep/a.gs");
            Arc::new(LocalStorage::new(root, durability).unwrap())
        });
        conformance::check_lengths(&|| Arc::new(LocalStorage::new(scratch.0.join("long"), durability).unwrap()));
    }
}

#[test]
fn no_write_leaves_a_temporary_file() {
    let scratch = Scratch::new();
    let storage = scratch.store();
    storage.put_if_absent("_log/1", b"a").unwrap();
    storage.put_if_absent("_log/1", b"b").unwrap();
    storage.put("_log/floor", b"1").unwrap();
    // A folder in its place makes the last step of each fail.
    fs::create_dir(scratch.0.join("a.gs/_log/2")).unwrap();
    assert_eq!(storage.put_if_absent("_log/2", b"c").unwrap(), PutOutcome::Exists);
    assert!(storage.put("_log/2", b"c").is_err());
    assert!(storage.put_hint("_log/2", b"c").is_err());
    assert_eq!(scratch.hidden_files(), Vec::<PathBuf>::new());
}

#[test]
fn what_a_dead_writer_left_is_not_listed() {
    let scratch = Scratch::new();
    let storage = scratch.store();
    fs::write(scratch.0.join("a.gs/_log/.tmp-1-2-3"), b"half").unwrap();
    storage.put("_log/1", b"x").unwrap();
    assert_eq!(storage.list("_log").unwrap(), ["_log/1"]);
    storage.remove_everything().unwrap();
    assert!(!scratch.0.join("a.gs").exists());
}

#[test]
fn old_temporary_files_are_swept_and_nothing_else() {
    let scratch = Scratch::new();
    let store = scratch.store();
    store.prepare().unwrap();
    store.put("_log/floor", b"kept").unwrap();
    let (old, young) = (scratch.0.join("a.gs/_log/.tmp-1-2-3"), scratch.0.join("a.gs/_log/.tmp-4-5-6"));
    fs::write(&old, b"half").unwrap();
    fs::write(&young, b"written now").unwrap();
    fs::write(scratch.0.join("a.gs/_log/.hidden"), b"not ours").unwrap();
    let year_2000 = std::time::UNIX_EPOCH + std::time::Duration::from_secs(946_684_800);
    fs::File::options().write(true).open(&old).unwrap().set_modified(year_2000).unwrap();
    let before_us = 1_000_000_000_000_000;
    let found = super::Swept { files: 1, bytes: 4 };
    assert_eq!(store.sweep("_log", before_us, false).unwrap(), found);
    assert!(old.exists());
    assert_eq!(store.sweep("_log", before_us, true).unwrap(), found);
    assert!(!old.exists() && young.exists());
    assert_eq!(store.sweep("_log", before_us, true).unwrap(), super::Swept::default());
    assert_eq!(store.list("_log").unwrap(), ["_log/floor"]);
}

#[test]
fn bytes_in_memory_are_aligned_as_in_the_file() {
    let scratch = Scratch::new();
    let storage = scratch.store();
    storage.put("_data/a.frag", &[7; 300_000]).unwrap();
    let offsets = [0, 64, 100, 6_400, 131_072, 250_001];
    let ranges = offsets.map(|offset| ByteRange::new(offset, 1_000));
    let found = storage.open("_data/a.frag").unwrap().read(&ranges).unwrap();
    for (offset, bytes) in offsets.iter().zip(found) {
        assert_eq!(bytes.as_ptr() as u64 % 64, offset % 64);
    }
}

#[test]
fn a_file_cut_under_a_reader_is_corruption_that_names_it() {
    let scratch = Scratch::new();
    let storage = scratch.store();
    storage.put("_data/a.frag", &[7; 10_000]).unwrap();
    let source = storage.open("_data/a.frag").unwrap();
    fs::OpenOptions::new().write(true).open(scratch.0.join("a.gs/_data/a.frag")).unwrap().set_len(5_000).unwrap();
    assert_eq!(source.read_one(ByteRange::new(0, 5_000)).unwrap().len(), 5_000);
    let error = source.read_one(ByteRange::new(4_000, 2_000)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    for part in ["_data/a.frag", "2000 bytes", "offset 4000"] {
        assert!(error.message().contains(part), "{error}");
    }
}

#[test]
fn a_folder_that_may_not_be_written_is_an_access_error() {
    let scratch = Scratch::new();
    let storage = scratch.store();
    let log = scratch.0.join("a.gs/_log");
    fs::set_permissions(&log, fs::Permissions::from_mode(0o555)).unwrap();
    let superuser = fs::write(log.join("trial"), b"x").is_ok();
    let result = storage.put_if_absent("_log/1", b"x");
    fs::set_permissions(&log, fs::Permissions::from_mode(0o755)).unwrap();
    if superuser {
        eprintln!(
            "skipped: this user may write anywhere; python/tests/stores/test_permissions.py tries it as another user"
        );
        return;
    }
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Access);
    assert!(error.message().contains("_log/1") && error.message().contains("ermission"), "{error}");
}

#[test]
fn a_file_given_as_a_store_holds_nothing_and_is_not_overwritten() {
    let scratch = Scratch::new();
    fs::write(scratch.0.join("plain.h5"), b"x").unwrap();
    for root in ["plain.h5", "plain.h5/a.gs"] {
        let storage = LocalStorage::new(scratch.0.join(root), Durability::Full).unwrap();
        assert!(!storage.exists("_log/1").unwrap());
        assert!(storage.list("_log").unwrap().is_empty());
        assert_eq!(storage.open("_log/1").err().unwrap().kind(), ErrorKind::NotFound);
        assert_eq!(storage.read_all("_log/1").unwrap_err().kind(), ErrorKind::NotFound);
        let error = storage.prepare().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.message().contains("a file is where a folder should be"), "{error}");
        storage.remove_everything().unwrap();
    }
    assert_eq!(fs::read(scratch.0.join("plain.h5")).unwrap(), b"x");
}

/// A store with a bound on open files.
fn with_few_files(scratch: &Scratch, files_max: usize) -> LocalStorage {
    let files = Box::leak(Box::new(open_files::OpenFiles::new(files_max)));
    LocalStorage { files, ..scratch.store() }
}

/// The open descriptors of this process whose files are in the scratch folder.
#[cfg(target_os = "linux")]
fn descriptors(scratch: &Scratch) -> usize {
    let all = fs::read_dir("/proc/self/fd").unwrap();
    all.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
        .filter(|path| path.starts_with(&scratch.0))
        .count()
}

#[test]
#[cfg(target_os = "linux")]
fn many_sources_need_few_descriptors() {
    let scratch = Scratch::new();
    let storage = with_few_files(&scratch, 8);
    let name = |i: usize| format!("_data/{i}.frag");
    for i in 0..300 {
        storage.put(&name(i), &[i as u8; 100]).unwrap();
    }
    let sources: Vec<_> = (0..300).map(|i| storage.open(&name(i)).unwrap()).collect();
    assert_eq!(descriptors(&scratch), 8);
    for round in 0..2 {
        for (i, source) in sources.iter().enumerate() {
            assert_eq!(source.read_one(ByteRange::new(round, 2)).unwrap(), vec![i as u8; 2]);
            assert!(descriptors(&scratch) <= 8);
        }
    }
    drop(sources);
    assert_eq!(descriptors(&scratch), 0);
}

#[test]
fn a_file_that_cannot_be_opened_again_is_named() {
    let scratch = Scratch::new();
    let storage = with_few_files(&scratch, 1);
    for name in ["_data/a.frag", "_data/b.frag", "_data/c.frag"] {
        storage.put(name, b"0123456789").unwrap();
    }
    let sources = ["a", "b", "c"].map(|name| storage.open(&format!("_data/{name}.frag")).unwrap());
    storage.delete("_data/a.frag").unwrap();
    fs::write(scratch.0.join("a.gs/_data/b.frag"), b"another").unwrap();
    let read = |n: usize| sources[n].read_one(ByteRange::new(0, 3));
    let (gone, changed) = (read(0).unwrap_err(), read(1).unwrap_err());
    assert!(gone.kind() == ErrorKind::NotFound && gone.message().contains("_data/a.frag"), "{gone}");
    assert!(changed.kind() == ErrorKind::Corruption && changed.message().contains("_data/b.frag"), "{changed}");
    assert_eq!(read(2).unwrap(), "012");
}

/// As many fsyncs of folders fail, later ones succeed, as in Linux.
#[derive(Debug, Default)]
struct Disk(AtomicU32);

impl DiskCalls for Disk {
    fn sync_folder(&self, path: &Path, folder: &fs::File) -> std::io::Result<()> {
        if self.0.load(Ordering::Relaxed) == 0 {
            return SystemCalls.sync_folder(path, folder);
        }
        self.0.fetch_sub(1, Ordering::Relaxed);
        Err(std::io::Error::from_raw_os_error(5))
    }
}

#[test]
fn after_a_failed_fsync_nothing_is_called_durable() {
    let disk = Arc::new(Disk::default());
    let scratch = Scratch::new();
    let disk_calls = Arc::clone(&disk);
    let root = scratch.store().root;
    let storage = LocalStorage::with_calls(root, Durability::Full, disk_calls).unwrap();
    storage.put_if_absent("_log/1", b"a").unwrap();
    storage.sync("_log/1").unwrap();
    let mut half = storage.create("_data/a.frag").unwrap();
    half.write(b"x").unwrap();
    disk.0.store(1, Ordering::Relaxed);
    assert_eq!(storage.put_if_absent("_log/2", b"b").unwrap_err().os_error(), Some(5));
    assert_eq!((disk.0.load(Ordering::Relaxed), storage.read_all("_log/2").unwrap().as_ref()), (0, &b"b"[..]));
    let refused = [
        storage.sync("_log/2").unwrap_err(),
        storage.put_if_absent("_log/3", b"c").unwrap_err(),
        storage.put("_log/floor", b"1").unwrap_err(),
        storage.create("_data/b.frag").err().unwrap(),
        half.finish().unwrap_err(),
    ];
    for error in refused {
        assert!(error.kind() == ErrorKind::Storage && error.message().contains("failed before"), "{error}");
    }
    assert_eq!(storage.list("_log").unwrap(), ["_log/1", "_log/2"]);
    LocalStorage::new(scratch.0.join("a.gs"), Durability::Full).unwrap().sync("_log/2").unwrap();
}

#[derive(Debug)]
struct NoLinks;

impl DiskCalls for NoLinks {
    fn link(&self, _: &Path, _: &Path) -> std::io::Result<()> {
        Err(std::io::Error::from_raw_os_error(1))
    }
}

#[test]
fn a_filesystem_without_links_gets_no_store() {
    let without_links = |scratch: &Scratch| {
        LocalStorage::with_calls(scratch.0.join("b.gs"), Durability::Full, Arc::new(NoLinks)).unwrap()
    };
    let scratch = Scratch::new();
    let root = scratch.0.join("b.gs");
    assert_eq!(without_links(&scratch).prepare().unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(!root.exists());
    fs::create_dir(&root).unwrap();
    assert_eq!(without_links(&scratch).prepare().unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
    // A store copied there can be opened, and reports the same when it is written.
    LocalStorage::new(&root, Durability::Full).unwrap().prepare().unwrap();
    without_links(&scratch).prepare().unwrap();
    assert_eq!(fs::read_dir(root.join("_log")).unwrap().count(), 0);
    assert_eq!(without_links(&scratch).put_if_absent("_log/1", b"x").unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn a_store_that_was_never_made_says_not_found() {
    let scratch = Scratch::new();
    let storage = LocalStorage::new(scratch.0.join("none.gs"), Durability::Full).unwrap();
    assert_eq!(storage.put_if_absent("_log/1", b"x").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(storage.create("_data/a.frag").err().unwrap().kind(), ErrorKind::NotFound);
    assert!(storage.list("_log").unwrap().is_empty());
}

#[test]
fn removing_spares_what_is_not_the_stores() {
    let scratch = Scratch::new();
    let root = scratch.0.join("a.gs");
    let storage = scratch.store();
    fs::write(root.join("notes.txt"), b"mine").unwrap();
    storage.remove_everything().unwrap();
    let left: Vec<_> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["notes.txt"]);
    // A folder that happens to have one of our names, where no store is.
    fs::create_dir(root.join("_data")).unwrap();
    fs::write(root.join("_data/mine.yml"), b"mine").unwrap();
    storage.remove_everything().unwrap();
    assert!(root.join("_data/mine.yml").exists());
}

#[test]
fn a_removal_cut_short_leaves_no_store_and_can_be_repeated() {
    let scratch = Scratch::new();
    let root = scratch.0.join("a.gs");
    let storage = scratch.store();
    storage.put("_log/1", b"x").unwrap();
    storage.put("_data/a.frag", b"x").unwrap();
    assert!(storage.log_set_aside().unwrap());
    assert!(storage.list("_log").unwrap().is_empty());
    // A new store may even be created in the same place before the removal is repeated.
    storage.prepare().unwrap();
    storage.put("_log/1", b"new").unwrap();
    storage.remove_everything().unwrap();
    assert!(!root.exists());
}

#[test]
fn sync_reaches_what_another_process_wrote() {
    let scratch = Scratch::new();
    let storage = scratch.store();
    fs::write(scratch.0.join("a.gs/_log/1"), b"x").unwrap();
    storage.sync("_log/1").unwrap();
    assert_eq!(storage.sync("_log/2").unwrap_err().kind(), ErrorKind::NotFound);
}
