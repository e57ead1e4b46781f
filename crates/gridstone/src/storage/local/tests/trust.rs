//! Entries of a folder that are no files of a store: no call waits for one, follows it, or changes what it leads to. A
//! call that waited would wait for ever here; the tests of whole stores (`tests/format/untrusted_files.rs`) give each call a
//! time limit.

use super::*;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

fn make_fifo(path: &Path) {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the text ends in a NUL and is only read.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
}

/// Creates an entry at a path, which may lead to a file outside of the store.
type Make = fn(&Path, &Path);

/// Each kind of entry that is no file, by the word with which an error names it.
const ODD: [(&str, Make); 7] = [
    ("a FIFO", |path, _| make_fifo(path)),
    ("a socket", |path, _| drop(UnixListener::bind(path).unwrap())),
    ("a link", |path, outside| symlink(outside, path).unwrap()),
    ("a link", |path, _| symlink("/dev/zero", path).unwrap()),
    ("a link", |path, _| symlink("nowhere", path).unwrap()),
    ("a link", |path, _| symlink(path, path).unwrap()),
    ("a folder", |path, _| fs::create_dir(path).unwrap()),
];

const NAMES: [&str; 6] =
    ["_log/00000000000000000007", "_log/floor", "_log/latest", "_manifest/a", "_data/a", "_lease/a"];

#[test]
fn what_is_no_file_is_no_object() {
    for (n, (word, make)) in ODD.into_iter().enumerate() {
        for name in NAMES {
            let what = format!("{word} ({n}) as {name}");
            // A socket's path must be short.
            let scratch = Scratch::new();
            let outside = scratch.0.join("outside");
            fs::write(&outside, b"secret").unwrap();
            let storage = scratch.store();
            make(&scratch.0.join("a.gs").join(name), &outside);
            let errors = [
                storage.open(name).map(drop).unwrap_err(),
                storage.read_all(name).map(drop).unwrap_err(),
                storage.read_start(name, 4).map(drop).unwrap_err(),
                storage.sync(name).unwrap_err(),
                storage.put_if_unchanged(name, None, b"x").map(drop).unwrap_err(),
            ];
            for error in errors {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{what}: {error}");
                assert!(error.message().contains(name) && error.message().contains(word), "{what}: {error}");
            }
            assert!(storage.exists(name).unwrap(), "{what}");
            assert_eq!(storage.put_if_absent(name, b"x").unwrap(), PutOutcome::Exists, "{what}");
            assert_eq!(storage.create(name).map(drop).unwrap_err().kind(), ErrorKind::Exists, "{what}");
            let folder = name.split('/').next().unwrap();
            assert!(storage.list(folder).unwrap().is_empty(), "{what}");
            storage.survey(folder, &mut |listed| panic!("{what}: {listed:?}")).unwrap();
            // A folder in the place of an object can be neither replaced nor deleted; any other entry can.
            assert_eq!(storage.put(name, b"sound").is_ok(), word != "a folder", "{what}");
            assert_eq!(storage.delete(name).is_ok(), word != "a folder", "{what}");
            assert_eq!(fs::read(&outside).unwrap(), b"secret", "{what}");
            assert_eq!(scratch.hidden_files(), Vec::<PathBuf>::new(), "{what}");
        }
    }
}

#[test]
fn what_is_no_file_is_set_aside_as_it_is() {
    for (word, make) in ODD.into_iter().filter(|(word, _)| *word != "a folder") {
        let scratch = Scratch::new();
        let outside = scratch.0.join("outside");
        fs::write(&outside, b"secret").unwrap();
        let storage = scratch.store();
        make(&scratch.0.join("a.gs/_log/7"), &outside);
        let aside = storage.set_aside("_log/7").unwrap();
        let kept = fs::symlink_metadata(scratch.0.join("a.gs").join(aside)).unwrap();
        assert!(!kept.is_file(), "{word} is not followed");
        storage.put("_log/7", b"sound").unwrap();
        assert_eq!(storage.read_all("_log/7").unwrap(), "sound");
    }
}

#[test]
fn a_file_of_an_impossible_length_is_told_and_can_be_set_aside() {
    let scratch = Scratch::new();
    let storage = scratch.store();
    for name in NAMES {
        fs::File::create(scratch.0.join("a.gs").join(name)).unwrap().set_len(1 << 40).unwrap();
        let error = storage.read_all(name).unwrap_err();
        // A data file may have that length; there is no memory for it.
        let expected = if name == "_data/a" { ErrorKind::Budget } else { ErrorKind::Corruption };
        assert!(error.kind() == expected && error.message().contains(name), "{error}");
        assert!(error.message().contains(&(1u64 << 40).to_string()), "{error}");
        let aside = storage.set_aside(name).unwrap();
        assert_eq!(fs::metadata(scratch.0.join("a.gs").join(aside)).unwrap().len(), 1 << 40);
        storage.delete(name).unwrap();
    }
}

/// A folder of the store that is a link to another folder with objects of the same names.
#[test]
fn no_folder_of_a_store_may_be_a_link() {
    for name in ["_log/1", "_data/a.frag", "_manifest/a", "_lease/a"] {
        let scratch = Scratch::new();
        let (root, outside) = (scratch.0.join("a.gs"), scratch.0.join("outside"));
        fs::create_dir(&outside).unwrap();
        let (folder, file) = name.split_once('/').unwrap();
        for there in [file, ".tmp-1-2-3"] {
            fs::write(outside.join(there), b"secret").unwrap();
        }
        let storage = scratch.store();
        fs::remove_dir(root.join(folder)).unwrap();
        symlink(&outside, root.join(folder)).unwrap();
        let absent = format!("{folder}/absent");
        let errors = [
            storage.open(name).map(drop).unwrap_err(),
            storage.read_all(name).map(drop).unwrap_err(),
            storage.exists(name).map(drop).unwrap_err(),
            storage.exists(&absent).map(drop).unwrap_err(),
            storage.open(&absent).map(drop).unwrap_err(),
            storage.sync(name).unwrap_err(),
            storage.list(folder).map(drop).unwrap_err(),
            storage.sweep(folder, i64::MAX, true).map(drop).unwrap_err(),
            storage.create(&absent).map(drop).unwrap_err(),
            storage.put_if_absent(&absent, b"x").map(drop).unwrap_err(),
            storage.put(name, b"x").unwrap_err(),
            storage.put_hint(name, b"x").unwrap_err(),
            storage.delete(name).unwrap_err(),
            storage.prepare().unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Corruption, "{name}: {error}");
            assert!(error.message().contains(folder) && error.message().contains("is a link"), "{error}");
        }
        if folder == "_log" {
            assert_eq!(storage.now_us().unwrap_err().kind(), ErrorKind::Corruption);
        }
        storage.remove_everything().unwrap();
        let mut left: Vec<_> = fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".tmp-1-2-3", file], "{name}");
        assert_eq!(fs::read(outside.join(file)).unwrap(), b"secret");
        assert!(!root.exists());
    }
}

#[test]
fn what_is_no_folder_is_deleted_with_the_store() {
    for (word, make) in ODD.into_iter().filter(|(word, _)| *word != "a folder") {
        let scratch = Scratch::new();
        let storage = scratch.store();
        let (root, outside) = (scratch.0.join("a.gs"), scratch.0.join("outside"));
        fs::write(&outside, b"secret").unwrap();
        fs::remove_dir(root.join("_data")).unwrap();
        make(&root.join("_data"), &outside);
        storage.open("_data/a.frag").map(drop).unwrap_err();
        storage.create("_data/a.frag").map(drop).unwrap_err();
        storage.prepare().unwrap_err();
        storage.remove_everything().unwrap();
        assert!(!root.exists() && fs::read(&outside).unwrap() == b"secret", "{word}");
    }
}

/// The user who opens the store chose the root, and the path above it.
#[test]
fn the_root_of_a_store_may_be_a_link() {
    let scratch = Scratch::new();
    scratch.store().put("_log/1", b"x").unwrap();
    symlink("a.gs", scratch.0.join("one.gs")).unwrap();
    symlink(&scratch.0, scratch.0.join("above")).unwrap();
    for root in ["one.gs", "above/a.gs", "above/one.gs"] {
        let storage = LocalStorage::new(scratch.0.join(root), Durability::Full).unwrap();
        storage.prepare().unwrap();
        assert_eq!(storage.read_all("_log/1").unwrap(), "x");
        storage.put("_log/2", b"y").unwrap();
        storage.delete("_log/2").unwrap();
        storage.now_us().unwrap();
        assert_eq!(storage.list("_log").unwrap(), ["_log/1"]);
    }
}
