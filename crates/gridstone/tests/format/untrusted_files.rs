//! Promise: a folder that somebody else made is not trusted. Whatever lies in the place of an object, a FIFO, a socket, a link, a folder
//! or a file of a terabyte, every call ends with a result or an error; no link is followed out of the store, and what lies outside is
//! neither read nor changed.

use crate::support::line::{Cells, create, read, write};
use crate::support::scratch::Folder;
use crate::support::store::{context, open, options};
use gridstone::base::{ErrorKind, Result};
use gridstone::engine::{At, Call, CopyOptions, Keep, RepairOptions, copy_on, repair_on, verify_on};
use gridstone::storage::{Durability, LATEST, LocalStorage, Storage, log_name};
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Longer than the work of one store takes, shorter than for ever.
const PATIENCE: Duration = Duration::from_secs(120);

/// What lies in the place of an object; what has been there lies outside of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Odd {
    Fifo,
    Socket,
    LinkToItself,
    LinkToNowhere,
    LinkToZeros,
    /// To the very object, moved out of the store: whoever follows it notices nothing.
    LinkOutside,
    Folder,
    Terabyte,
}

const ODD: [Odd; 8] = [
    Odd::Fifo,
    Odd::Socket,
    Odd::LinkToItself,
    Odd::LinkToNowhere,
    Odd::LinkToZeros,
    Odd::LinkOutside,
    Odd::Folder,
    Odd::Terabyte,
];

impl Odd {
    fn put(self, place: &Path, outside: &Path) {
        match fs::rename(place, outside) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => fs::write(outside, b"{\"gs\":0}").unwrap(),
            moved => moved.unwrap(),
        }
        match self {
            Self::Fifo => {
                let path = CString::new(place.as_os_str().as_bytes()).unwrap();
                // SAFETY: the text ends in a NUL and is only read.
                assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
            }
            Self::Socket => {
                // The path of a socket must be short.
                let short = std::env::temp_dir().join(format!("gs-{}", std::process::id()));
                let _ = fs::remove_file(&short);
                drop(UnixListener::bind(&short).unwrap());
                fs::rename(short, place).unwrap();
            }
            Self::LinkToItself => symlink(place, place).unwrap(),
            Self::LinkToNowhere => symlink("nowhere", place).unwrap(),
            Self::LinkToZeros => symlink("/dev/zero", place).unwrap(),
            Self::LinkOutside => symlink(outside, place).unwrap(),
            Self::Folder => fs::create_dir(place).unwrap(),
            Self::Terabyte => fs::File::create(place).unwrap().set_len(1 << 40).unwrap(),
        }
    }
}

fn local(path: &Path) -> Arc<dyn Storage> {
    Arc::new(LocalStorage::new(path, Durability::Close).unwrap())
}

fn many(from: i64, count: i64) -> Cells {
    (from..from + count).map(|x| (x, x * 3 + 1)).collect()
}

/// A store with a floor, roots and pages, data files, and a hint.
fn make(path: &Path) {
    let (storage, context) = (local(path), context(4));
    let line = create(&context, &storage, "/line", false);
    write(&line, &many(0, 12_000)).unwrap();
    for step in 0..6 {
        write(&line, &many(step * 900, 40)).unwrap();
    }
    line.vacuum(&options(Keep::Versions(4)), &Call::default()).unwrap();
    for step in 0..9 {
        write(&line, &many(step * 700, 20)).unwrap();
    }
}

fn newest(storage: &Arc<dyn Storage>) -> u64 {
    storage.list("_log").unwrap().iter().filter_map(|name| name[5..].parse().ok()).max().unwrap()
}

/// One object of each kind, by what it is.
fn objects(storage: &Arc<dyn Storage>) -> Vec<(&'static str, String)> {
    let newest = newest(storage);
    let manifest = storage.list("_manifest").unwrap();
    let of = |start: &[u8]| {
        let found = manifest.iter().rev().find(|name| storage.read_start(name, 4).unwrap() == start);
        found.unwrap().clone()
    };
    let data = storage.list("_data").unwrap();
    let longest = data.iter().max_by_key(|name| storage.open(name).unwrap().len()).unwrap();
    vec![
        ("hint", LATEST.to_owned()),
        ("floor", "_log/floor".to_owned()),
        ("newest record", log_name(newest)),
        ("next record", log_name(newest + 1)),
        ("record in the middle", log_name(newest - 2)),
        ("lease", format!("_lease/{}", "7a".repeat(16))),
        ("root", of(b"{\"gs")),
        ("page", of(b"GSPA")),
        ("data file", longest.clone()),
    ]
}

fn copied(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for folder in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let target = to.join(folder.file_name());
        fs::create_dir(&target).unwrap();
        for file in fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap()) {
            fs::copy(file.path(), target.join(file.file_name())).unwrap();
        }
    }
}

/// Everything that is done with a store, each with whether it went well.
fn used(store: &Path, copies: &Path, odd: Odd, kind: &str) -> Vec<(&'static str, Result<()>)> {
    let (storage, context, call) = (local(store), context(4), Call::default());
    let line = || open(&context, &storage, "/line", At::Latest);
    let copy = |name: &str, history: bool| {
        let (path, at) = ("/", At::Latest);
        let options = CopyOptions { path, target_path: path, at, tag: None, history, overwrite: false };
        copy_on((&context, storage.clone()), (&context, local(&copies.join(name))), &options, &call).map(drop)
    };
    let mut done = vec![
        ("open", line().map(drop)),
        ("read", line().and_then(|line| read(&line).map(drop))),
        ("history", line().and_then(|line| line.history(&call).map(drop))),
        ("verify", verify_on(&context, storage.clone(), &call).map(drop)),
        (
            "repair, dry",
            repair_on(&context, storage.clone(), RepairOptions { dry_run: true, cut: false }, &call).map(drop),
        ),
        ("copy", copy("version", false)),
    ];
    // A history is copied as its files lie there, a data file of a terabyte too.
    if (odd, kind) != (Odd::Terabyte, "data file") {
        done.push(("copy of the history", copy("history", true)));
    }
    done.push(("write", line().and_then(|line| write(&line, &many(5, 3)).map(drop))));
    done.push(("vacuum", line().and_then(|line| line.vacuum(&options(Keep::Versions(1)), &call).map(drop))));
    done.push((
        "repair",
        repair_on(&context, storage.clone(), RepairOptions { dry_run: false, cut: false }, &call).map(drop),
    ));
    done.push(("delete", storage.remove_everything()));
    done
}

/// The same by a handle that was open before.
fn used_by_a_handle(store: &Path, change: impl FnOnce()) {
    let (storage, context) = (local(store), context(4));
    let line = open(&context, &storage, "/line", At::Latest).unwrap();
    change();
    let _ = line.refresh();
    let _ = read(&line);
    let _ = write(&line, &many(5, 3));
    let _ = line.vacuum(&options(Keep::Versions(2)), &Call::default());
}

/// Does `work` on a thread of its own; fails if that hangs or panics.
fn in_time<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || send.send(work()));
    receive.recv_timeout(PATIENCE).unwrap_or_else(|e| panic!("{what}: {e}"))
}

#[test]
fn whatever_lies_in_the_place_of_an_object_every_call_ends_and_nothing_outside_is_touched() {
    let folder = Folder::new("untrusted");
    let whole = folder.path().join("whole.gs");
    make(&whole);
    for (kind, name) in objects(&local(&whole)) {
        for odd in ODD {
            let what = format!("{odd:?} as {kind}");
            let place: PathBuf = folder.path().join(format!("{odd:?} {kind}"));
            fs::create_dir(&place).unwrap();
            let (store, outside, copies) = (place.join("a.gs"), place.join("outside"), place.join("copies"));
            copied(&whole, &store);
            let name = name.clone();
            let _ = fs::create_dir_all(store.join("_lease"));
            let (first, of) = (what.clone(), whole.clone());
            let outcomes = in_time(&what, move || {
                odd.put(&store.join(&name), &outside);
                let before = fs::read(&outside).unwrap();
                let done = used(&store, &copies, odd, kind);
                assert_eq!(fs::read(&outside).unwrap(), before, "{first}");
                fs::remove_file(&outside).unwrap();
                let _ = fs::remove_dir_all(&store);
                copied(&of, &store);
                let _ = fs::create_dir_all(store.join("_lease"));
                used_by_a_handle(&store, || odd.put(&store.join(&name), &outside));
                assert_eq!(fs::read(&outside).unwrap(), before, "{first}, by a handle");
                done
            });
            let kind_of = |name: &str| {
                let outcome = &outcomes.iter().find(|(done, _)| *done == name).unwrap().1;
                outcome.as_ref().err().map(gridstone::base::Error::kind)
            };
            match kind {
                "hint" => assert_eq!((kind_of("read"), kind_of("write")), (None, None), "{what}: {outcomes:?}"),
                "newest record" | "next record" | "floor" => {
                    assert_eq!(kind_of("open"), Some(ErrorKind::Corruption), "{what}: {outcomes:?}");
                }
                "data file" => {
                    assert_eq!(kind_of("read"), Some(ErrorKind::Corruption), "{what}: {outcomes:?}");
                    assert!(kind_of("copy").is_some(), "{what}: {outcomes:?}");
                }
                _ => {}
            }
            fs::remove_dir_all(&place).unwrap();
        }
    }
}

#[test]
fn no_folder_of_a_store_leads_out_of_it() {
    let folder = Folder::new("untrusted-folders");
    let whole = folder.path().join("whole.gs");
    make(&whole);
    for name in ["_log", "_data", "_manifest", "_lease"] {
        let place = folder.path().join(name);
        fs::create_dir(&place).unwrap();
        let (store, outside, copies) = (place.join("a.gs"), place.join("outside"), place.join("copies"));
        copied(&whole, &store);
        let _ = fs::create_dir(store.join(name));
        let outcomes = in_time(name, move || {
            fs::rename(store.join(name), &outside).unwrap();
            symlink(&outside, store.join(name)).unwrap();
            let list = || {
                let files = fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().path());
                let mut files: Vec<_> = files.map(|path| (fs::read(&path).unwrap(), path)).collect();
                files.sort();
                files
            };
            let before = list();
            let done = used(&store, &copies, Odd::LinkOutside, "folder");
            assert!(list() == before, "{name}: {done:?}");
            done
        });
        let failed: Vec<_> = outcomes.iter().filter(|(_, outcome)| outcome.is_err()).map(|(done, _)| *done).collect();
        if name != "_lease" {
            assert!(failed.contains(&"read") && failed.contains(&"copy"), "{name}: {outcomes:?}");
        }
    }
}
