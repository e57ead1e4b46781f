//! The calls to the disk, their order, and the outcome of a write when one fails.

use super::*;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Records each call by its name and its folder or file; the call of a chosen number fails.
#[derive(Debug, Default)]
struct Watch {
    calls: Mutex<Vec<String>>,
    /// The number of the call that fails, from 1, not counting removals; 0: none.
    fails: AtomicU32,
    errno: i32,
}

impl Watch {
    fn failing(errno: i32) -> Arc<Self> {
        Arc::new(Self { errno, ..Self::default() })
    }

    /// The calls since the last query.
    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn fail_at(&self, number: u32) {
        self.fails.store(number, Ordering::Relaxed);
        self.taken();
    }

    fn call<T>(&self, what: &str, path: &Path, answer: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let name = path.file_name().unwrap().to_str().unwrap();
        let name = if name.starts_with('.') { "temporary" } else { name };
        let mut calls = self.calls.lock().unwrap();
        calls.push(format!("{what} {name}"));
        let number = calls.iter().filter(|call| *call != "remove").count();
        let fails = self.fails.load(Ordering::Relaxed) as usize == number;
        drop(calls);
        if fails { Err(io::Error::from_raw_os_error(self.errno)) } else { answer() }
    }
}

impl DiskCalls for Watch {
    fn create(&self, path: &Path) -> io::Result<fs::File> {
        self.call("create", path, || SystemCalls.create(path))
    }

    fn write(&self, path: &Path, file: &fs::File, bytes: &[u8]) -> io::Result<usize> {
        self.call("write", path, || SystemCalls.write(path, file, bytes))
    }

    fn sync_file(&self, path: &Path, file: &fs::File) -> io::Result<()> {
        self.call("sync", path, || SystemCalls.sync_file(path, file))
    }

    fn sync_folder(&self, path: &Path, folder: &fs::File) -> io::Result<()> {
        self.call("sync folder", path, || SystemCalls.sync_folder(path, folder))
    }

    fn close(&self, path: &Path, file: fs::File) -> io::Result<()> {
        self.call("close", path, || SystemCalls.close(path, file))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call("link", to, || SystemCalls.link(from, to))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call("rename", to, || SystemCalls.rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        // A full disk still removes names.
        self.calls.lock().unwrap().push("remove".to_owned());
        SystemCalls.remove_file(path)
    }
}

fn watched(scratch: &Scratch, durability: Durability, watch: &Arc<Watch>) -> LocalStorage {
    let storage = LocalStorage::with_calls(scratch.0.join("a.gs"), durability, watch.clone()).unwrap();
    storage.prepare().unwrap();
    watch.taken();
    storage
}

fn sunk(storage: &LocalStorage, name: &str) -> Result<()> {
    let mut sink = storage.create(name)?;
    sink.write(b"cells")?;
    sink.finish()
}

const WRITTEN: [&str; 4] = ["create temporary", "write temporary", "sync temporary", "close temporary"];

/// A record's bytes are durable before its name exists, whatever the durability.
#[test]
fn a_records_bytes_are_durable_before_its_name_is_there() {
    for (durability, folder) in [(Durability::Full, &["sync folder _log"][..]), (Durability::Close, &[])] {
        let (scratch, watch) = (Scratch::new(), Arc::new(Watch::default()));
        let storage = watched(&scratch, durability, &watch);
        storage.put_if_absent("_log/1", b"record").unwrap();
        assert_eq!(watch.taken(), [&WRITTEN[..], &["link 1", "remove"], folder].concat(), "{durability:?}");
    }
}

#[test]
fn what_is_replaced_is_durable_and_hints_and_leases_are_not() {
    for durability in [Durability::Full, Durability::Close] {
        let (scratch, watch) = (Scratch::new(), Arc::new(Watch::default()));
        let storage = watched(&scratch, durability, &watch);
        let floor = [&WRITTEN[..], &["rename floor", "sync folder _log"]].concat();
        storage.put("_log/floor", b"1").unwrap();
        assert_eq!(watch.taken(), floor);
        assert!(storage.put_if_unchanged("_log/floor", Some(b"1"), b"2").unwrap());
        assert_eq!(watch.taken(), floor);
        for (name, renamed) in [("_log/latest", "rename latest"), ("_lease/a", "rename a")] {
            storage.put_hint(name, b"7").unwrap();
            assert_eq!(watch.taken(), ["create temporary", "write temporary", "close temporary", renamed]);
        }
    }
}

/// A sync makes durable what a plain write leaves to the system.
#[test]
fn a_data_file_is_synced_at_its_end_or_when_it_is_asked_for() {
    let asked = ["sync a.frag", "sync folder _data"];
    for (durability, at_once) in [(Durability::Full, true), (Durability::Close, false)] {
        let (scratch, watch) = (Scratch::new(), Arc::new(Watch::default()));
        let storage = watched(&scratch, durability, &watch);
        sunk(&storage, "_data/a.frag").unwrap();
        let synced = ["create a.frag", "write a.frag", "sync a.frag", "close a.frag", "sync folder _data"];
        let deferred = ["create a.frag", "write a.frag", "close a.frag"];
        assert_eq!(watch.taken(), if at_once { &synced[..] } else { &deferred });
        storage.sync("_data/a.frag").unwrap();
        assert_eq!(watch.taken(), asked);
        assert_eq!(storage.defers_sync(), !at_once);
    }
}

#[test]
fn making_a_store_is_durable_always() {
    let made = |durability| {
        let (scratch, watch) = (Scratch::new(), Arc::new(Watch::default()));
        let storage = LocalStorage::with_calls(scratch.0.join("above/a.gs"), durability, watch.clone()).unwrap();
        storage.prepare().unwrap();
        let mut calls = watch.taken();
        // The folder above the first missing one has a different name in each test.
        calls.retain(|call| call.starts_with("sync folder") && !call.contains("gridstone-"));
        calls
    };
    let folders = ["above", "_log", "_data", "_manifest", "a.gs"].map(|name| format!("sync folder {name}"));
    assert_eq!(made(Durability::Full), folders);
    assert_eq!(made(Durability::Close), folders);
}

/// Network file systems and quotas may report at the end that nothing was written.
#[test]
fn what_close_says_is_believed() {
    for (durability, errno) in [(Durability::Full, libc::ENOSPC), (Durability::Close, libc::EIO)] {
        let (scratch, watch) = (Scratch::new(), Watch::failing(errno));
        let storage = watched(&scratch, durability, &watch);
        storage.put("_log/floor", b"1").unwrap();
        let close = |calls: &[String]| calls.iter().position(|call| call.starts_with("close")).unwrap() as u32 + 1;
        let works: [&dyn Fn() -> Result<()>; 5] = [
            &|| storage.put_if_absent("_log/1", b"record").map(drop),
            &|| sunk(&storage, "_data/a.frag"),
            &|| storage.put("_log/floor", b"2"),
            &|| storage.put_if_unchanged("_log/floor", Some(b"1"), b"2").map(drop),
            &|| storage.put_hint("_log/latest", b"7"),
        ];
        for work in works {
            watch.fail_at(0);
            let undo = fs::read(scratch.0.join("a.gs/_log/floor")).unwrap();
            work().unwrap();
            let number = close(&watch.taken());
            for name in ["_log/1", "_data/a.frag", "_log/latest"] {
                storage.delete(name).unwrap();
            }
            fs::write(scratch.0.join("a.gs/_log/floor"), undo).unwrap();
            watch.fail_at(number);
            let error = work().unwrap_err();
            assert_eq!((error.kind(), error.os_error()), (ErrorKind::Storage, Some(errno)));
            assert!(error.had_no_effect(), "{error}");
            watch.fail_at(0);
            assert_eq!(scratch.hidden_files(), Vec::<PathBuf>::new());
            assert_eq!(storage.list("_log").unwrap(), ["_log/floor"]);
            assert!(storage.list("_data").unwrap().is_empty());
            assert_eq!(storage.read_all("_log/floor").unwrap(), "1");
        }
    }
}

#[test]
fn a_disk_that_is_full_at_any_call_leaves_nothing_half_done() {
    for (durability, errno) in
        [(Durability::Full, libc::ENOSPC), (Durability::Close, libc::ENOSPC), (Durability::Full, libc::EDQUOT)]
    {
        let (scratch, watch) = (Scratch::new(), Watch::failing(errno));
        let mut outcomes = Vec::new();
        for number in 1.. {
            let storage = watched(&scratch, durability, &watch);
            watch.fail_at(number);
            let record = storage.put_if_absent("_log/1", b"record");
            let calls = watch.taken();
            watch.fail_at(0);
            assert_eq!(scratch.hidden_files(), Vec::<PathBuf>::new());
            let Err(error) = record else { break };
            assert_eq!((error.kind(), error.os_error()), (ErrorKind::Storage, Some(errno)), "{error}");
            let there = storage.exists("_log/1").unwrap();
            // Only after the link is the state of the disk unknown.
            assert_eq!(error.had_no_effect(), !there, "{calls:?}");
            storage.delete("_log/1").unwrap();
            outcomes.push(there);
        }
        let in_doubt = if durability == Durability::Full { &[true][..] } else { &[] };
        // Creating, writing, syncing, closing and linking; then the folder.
        assert_eq!(outcomes, [&[false; 5][..], in_doubt].concat(), "{durability:?}");
        for number in 1.. {
            let storage = watched(&scratch, durability, &watch);
            storage.delete("_data/a.frag").unwrap();
            watch.fail_at(number);
            let data = sunk(&storage, "_data/a.frag");
            let calls = watch.taken().iter().filter(|call| *call != "remove").count() as u32;
            watch.fail_at(0);
            let Err(error) = data else {
                assert!(number > calls, "a call that failed was passed over");
                break;
            };
            assert_eq!((error.kind(), error.had_no_effect()), (ErrorKind::Storage, true), "{error}");
            assert!(storage.list("_data").unwrap().is_empty());
        }
    }
}

#[test]
fn only_what_a_link_certainly_did_not_do_is_said_to_be_undone() {
    let scratch = Scratch::new();
    scratch.store();
    let certain = [libc::EACCES, libc::EPERM, libc::ENOSPC, libc::EDQUOT, libc::EROFS, libc::EMLINK, libc::ENOENT];
    let certain = certain.map(|errno| (errno, true));
    let in_doubt = [libc::EIO, libc::ESTALE, libc::ETIMEDOUT, libc::EINTR, 9_999].map(|errno| (errno, false));
    for (errno, no_effect) in certain.into_iter().chain(in_doubt) {
        let watch = Watch::failing(errno);
        let storage = watched(&scratch, Durability::Full, &watch);
        watch.fail_at(5);
        let error = storage.put_if_absent("_log/1", b"record").unwrap_err();
        assert_eq!(watch.taken()[4], "link 1");
        assert_eq!(error.had_no_effect(), no_effect, "{errno}: {error}");
        assert_eq!(scratch.hidden_files(), Vec::<PathBuf>::new());
    }
}

#[test]
fn what_comes_before_the_link_had_no_effect() {
    let scratch = Scratch::new();
    let nowhere = LocalStorage::new(scratch.0.join("none.gs"), Durability::Full).unwrap();
    let missing = nowhere.put_if_absent("_log/1", b"x").unwrap_err();
    assert_eq!((missing.kind(), missing.had_no_effect()), (ErrorKind::NotFound, true));
    let watch = Watch::failing(libc::EIO);
    let storage = watched(&scratch, Durability::Full, &watch);
    watch.fail_at(6);
    assert!(!storage.put_if_absent("_log/1", b"x").unwrap_err().had_no_effect(), "its folder was not synced");
    watch.fail_at(0);
    let distrusted = storage.put_if_absent("_log/2", b"x").unwrap_err();
    assert!(distrusted.message().contains("failed before") && distrusted.had_no_effect(), "{distrusted}");
    assert!(storage.put_if_absent("../outside", b"x").unwrap_err().had_no_effect());
}

#[test]
fn a_store_that_can_only_be_read_says_so_when_it_is_asked_for_the_time() {
    let (scratch, watch) = (Scratch::new(), Watch::failing(libc::EROFS));
    let storage = watched(&scratch, Durability::Full, &watch);
    storage.now_us().unwrap();
    assert_eq!(watch.taken(), ["create temporary", "remove"], "no fsync, no bytes");
    watch.fail_at(1);
    let error = storage.now_us().unwrap_err();
    assert!(error.kind() == ErrorKind::Storage && error.message().contains("only be read"), "{error}");
    assert_eq!(scratch.hidden_files(), Vec::<PathBuf>::new());
}
