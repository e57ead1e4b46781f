//! Promise: each question of a group is answered of one moment, and each change is made where the group lies, though others move
//! it between any two operations.

use crate::support::copy::memory;
use crate::support::store::context;
use gridstone::base::{ErrorKind, Result};
use gridstone::engine::{At, Call, Group, Opened, create_array_on, create_group_on, move_node_on, open_on};
use gridstone::schema::Schema;
use gridstone::storage::{HookedStorage, Storage};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const BELOW: [&str; 4] = ["/inner", "/inner/deep", "/inner/deep/w", "/x"];

fn schema() -> Schema {
    let text = r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","9"]}],"attrs":[{"name":"v","dtype":"int8"}]}"#;
    Schema::from_json(text).unwrap()
}

fn group(storage: &Arc<dyn Storage>, path: &str) -> Group {
    match open_on(&context(4), storage.clone(), path, true, At::Latest).unwrap() {
        Opened::Group(group) => group,
        Opened::Array(_) => panic!("an array at {path}"),
    }
}

fn path_of(opened: &Opened) -> String {
    match opened {
        Opened::Array(array) => array.path().unwrap(),
        Opened::Group(group) => group.path().to_owned(),
    }
}

/// A question or a change of a group that was opened before, by its newest version.
type Act = (&'static str, fn(&Group) -> Result<()>);

const QUESTIONS: &[Act] = &[
    ("walk", |group| {
        let now = group.refreshed()?;
        let found: Vec<String> = now.walk()?.into_iter().map(|(path, _)| path).collect();
        assert_eq!(found, BELOW.map(|below| format!("{}{below}", now.path())));
        Ok(())
    }),
    ("children", |group| {
        assert_eq!(group.refreshed()?.children()?, [("inner".to_owned(), "group"), ("x".to_owned(), "array")]);
        Ok(())
    }),
    ("contains", |group| {
        let now = group.refreshed()?;
        assert!(now.contains("x").unwrap() && now.contains("inner/deep/w").unwrap() && !now.contains("y").unwrap());
        Ok(())
    }),
    ("open", |group| {
        let now = group.refreshed()?;
        for name in ["x", "inner", "inner/deep/w"] {
            assert_eq!(path_of(&now.open(name, true, false)?), format!("{}/{name}", now.path()));
        }
        Ok(())
    }),
    ("history", |group| {
        let now = group.refreshed()?;
        assert_eq!(now.history(true, &Call::default())?.len() as u64, now.version());
        Ok(())
    }),
    ("metadata", |group| {
        let now = group.refreshed()?;
        assert_eq!((now.metadata("k")?.as_deref(), now.metadata_keys()?.len()), (Some("1"), 1));
        Ok(())
    }),
];

/// Each leaves a child called "made", or metadata.
const CHANGES: &[Act] = &[
    ("create an array", |group| group.create_array("made", schema(), false).map(drop)),
    ("create an array over another", |group| {
        group.create_array("made", schema(), false)?;
        group.create_array("made", schema(), true).map(drop)
    }),
    ("create a group", |group| group.create_group("made").map(drop)),
    ("create below", |group| group.create_array("made/below", schema(), false).map(drop)),
    ("move a child", |group| {
        group.create_group("first")?;
        group.move_child("first", "made", None).map(drop)
    }),
    ("move and remove", |group| {
        group.create_group("made")?;
        group.create_group("gone")?;
        group.move_child("gone", "inner/gone", Some("tidied"))?;
        group.remove("inner/gone", None).map(drop)
    }),
];

/// A store whose group lies at "/a", and the same store with a hook before each operation.
fn scene(before: impl Fn(&Arc<dyn Storage>) + Send + Sync + 'static) -> (Arc<dyn Storage>, Arc<dyn Storage>) {
    let memory = memory();
    let made = create_group_on(&context(4), memory.clone(), "/a").unwrap();
    for path in ["/a/x", "/a/inner/deep/w"] {
        create_array_on(&context(4), memory.clone(), path, schema(), false).unwrap();
    }
    made.set_metadata(vec![("k".into(), Some("1".into()))]).unwrap();
    let beside = memory.clone();
    let hooked: Arc<dyn Storage> = Arc::new(HookedStorage::new(memory.clone(), move |_, _| before(&beside)));
    (memory, hooked)
}

fn swap(storage: &Arc<dyn Storage>) {
    let moved = move_node_on(&context(4), storage.clone(), "/a", "/b", None);
    if moved.is_err() {
        move_node_on(&context(4), storage.clone(), "/b", "/a", None).unwrap();
    }
}

/// Does `act`, before whose operations of numbers in `span` the group is moved; says how often it was.
fn moved_beside(act: &Act, span: std::ops::Range<u64>, made: bool) -> u64 {
    let (operations, moves) = (Arc::new(AtomicU64::new(1 << 60)), Arc::new(AtomicU64::new(0)));
    let (counting, moving, over) = (operations.clone(), moves.clone(), span.clone());
    let (memory, hooked) = scene(move |memory| {
        if over.contains(&counting.fetch_add(1, Ordering::SeqCst)) {
            moving.fetch_add(1, Ordering::SeqCst);
            swap(memory);
        }
    });
    let handle = group(&hooked, "/a");
    operations.store(0, Ordering::SeqCst);
    act.1(&handle).unwrap_or_else(|e| panic!("{}, moved before operations {span:?}: {e}", act.0));
    operations.store(1 << 60, Ordering::SeqCst);
    let now = handle.refreshed().unwrap();
    let names: Vec<String> = now.children().unwrap().into_iter().map(|(name, _)| name).collect();
    let expected: &[&str] = if made { &["inner", "made", "x"] } else { &["inner", "x"] };
    assert_eq!(names, expected, "{}, moved before operations {span:?}", act.0);
    // Nothing was made where the group lay before.
    assert_eq!(group(&memory, "/").children().unwrap().len(), 1, "{}, moved before operations {span:?}", act.0);
    moves.load(Ordering::SeqCst)
}

#[test]
fn each_question_is_of_one_moment_and_each_change_goes_along() {
    for (acts, made) in [(QUESTIONS, false), (CHANGES, true)] {
        for act in acts {
            for at in 0.. {
                if moved_beside(act, at..at + 1, made) == 0 {
                    assert!(at > 0, "{}", act.0);
                    break;
                }
            }
            assert!(moved_beside(act, 0..8, made) > 0);
        }
    }
}

/// Who moves a group faster than anybody can commit is told of in words, and nothing is committed.
#[test]
fn a_change_gives_up_in_words() {
    let armed = Arc::new(AtomicU64::new(0));
    let striking = armed.clone();
    let (memory, hooked) = scene(move |memory| {
        if striking.load(Ordering::SeqCst) > 0 {
            swap(memory);
        }
    });
    let handle = group(&hooked, "/a");
    armed.store(1, Ordering::SeqCst);
    let refused = handle.create_group("made").unwrap_err();
    armed.store(0, Ordering::SeqCst);
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    assert!(refused.message().contains("moved by other commits 16 times"), "{refused}");
    let (root, now) = (group(&memory, "/"), handle.refreshed().unwrap());
    assert_eq!((root.children().unwrap().len(), now.children().unwrap().len()), (1, 2));
}

/// An array has no children, whoever asks for one, and that is said at once.
#[test]
fn nothing_is_made_below_an_array() {
    let asked = Arc::new(AtomicU64::new(0));
    let counting = asked.clone();
    let (memory, hooked) = scene(move |_| {
        counting.fetch_add(1, Ordering::SeqCst);
    });
    let handle = group(&hooked, "/a");
    for name in ["x/below", "x/below/deep"] {
        let made = handle.create_array(name, schema(), false).unwrap_err();
        let before = asked.load(Ordering::SeqCst);
        let refused = handle.create_group(name).unwrap_err();
        assert_eq!((refused.kind(), refused.message()), (ErrorKind::Exists, made.message()), "{name}");
        assert!(refused.message().contains("/a/x is an array, and an array has no children"), "{refused}");
        let spent = asked.load(Ordering::SeqCst) - before;
        assert!(spent < 20, "{name}: {spent} operations");
    }
    let on_it = handle.create_group("x").unwrap_err();
    assert!(on_it.kind() == ErrorKind::Input && on_it.message().contains("holds an array at \"/a/x\""), "{on_it}");
    assert_eq!(group(&memory, "/").walk().unwrap().len(), 5);
}

/// What a change is about is moved out of the group, replaced or removed, before each of its operations.
#[test]
fn what_lies_elsewhere_by_now_is_left_alone() {
    let acts: [Act; 2] = [
        ("remove", |group| group.remove("x", None).map(drop)),
        ("move", |group| group.move_child("x", "made", None).map(drop)),
    ];
    for act in acts {
        let (mut done, mut refused) = (0, 0);
        for at in 0.. {
            let operations = Arc::new(AtomicU64::new(1 << 60));
            let counting = operations.clone();
            let (memory, hooked) = scene(move |memory| {
                if counting.fetch_add(1, Ordering::SeqCst) == at {
                    // It may be gone by then.
                    let _ = move_node_on(&context(4), memory.clone(), "/a/x", "/kept", None);
                }
            });
            let handle = group(&hooked, "/a");
            operations.store(0, Ordering::SeqCst);
            let outcome = act.1(&handle);
            let struck = operations.load(Ordering::SeqCst) > at;
            let kept = group(&memory, "/").contains("kept").unwrap();
            match outcome {
                Ok(()) => {
                    assert!(!kept, "{} before operation {at}", act.0);
                    done += 1;
                }
                Err(e) => {
                    assert!([ErrorKind::Conflict, ErrorKind::NotFound].contains(&e.kind()), "{}: {e}", act.0);
                    assert!(kept, "{} before operation {at}: {e}", act.0);
                    refused += 1;
                }
            }
            if !struck {
                break;
            }
        }
        assert!(done > 0 && refused > 1, "{}: {done} done, {refused} refused", act.0);
    }
}

/// A version comes and a vacuum goes before any one operation of a history: it is whole, or it says that it expired.
#[test]
fn a_history_beside_a_vacuum_is_of_its_version_or_expired() {
    use crate::support::store::options;
    use gridstone::engine::Keep;
    let (mut whole, mut expired) = (0, 0);
    for at in 0.. {
        let operations = Arc::new(AtomicU64::new(1 << 60));
        let counting = operations.clone();
        let (_, hooked) = scene(move |memory| {
            if counting.fetch_add(1, Ordering::SeqCst) == at {
                swap(memory);
                let Opened::Array(x) = open_on(&context(4), memory.clone(), "/b/x", true, At::Latest).unwrap() else {
                    panic!("no array")
                };
                x.vacuum(&options(Keep::Versions(1)), &Call::default()).unwrap();
            }
        });
        let handle = group(&hooked, "/a");
        operations.store(0, Ordering::SeqCst);
        let outcome = handle.history(true, &Call::default());
        let struck = operations.load(Ordering::SeqCst) > at;
        match outcome {
            Ok(found) => {
                assert_eq!(found.last().map(|last| last.version), Some(handle.version()), "before operation {at}");
                whole += 1;
            }
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::SnapshotExpired, "before operation {at}: {e}");
                assert!(e.message().contains("while its history was read"), "before operation {at}: {e}");
                expired += 1;
            }
        }
        if !struck {
            break;
        }
    }
    assert!(whole > 0 && expired > 0, "{whole} whole, {expired} expired");
}

/// Another makes the group between the look and the commit.
#[test]
fn a_group_that_another_makes_first_is_opened() {
    for below in [false, true] {
        let made = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let armed = made.clone();
        let memory = memory();
        create_group_on(&context(4), memory.clone(), "/a").unwrap();
        let beside = memory.clone();
        let hooked: Arc<dyn Storage> = Arc::new(HookedStorage::new(memory.clone(), move |operation, _: &str| {
            if operation == gridstone::storage::Operation::PutIfAbsent && !armed.swap(true, Ordering::SeqCst) {
                create_group_on(&context(4), beside.clone(), "/a/made").unwrap();
            }
        }));
        let handle = group(&hooked, "/a");
        made.store(false, Ordering::SeqCst);
        let found = match below {
            true => handle.create_group("made").unwrap(),
            false => create_group_on(&context(4), hooked.clone(), "/a/made").unwrap(),
        };
        assert_eq!(found.path(), "/a/made");
        assert_eq!(group(&memory, "/a").children().unwrap().len(), 1);
    }
}
