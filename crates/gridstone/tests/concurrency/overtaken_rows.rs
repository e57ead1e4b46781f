//! Promise: where the state of a version lies in pages of rows, a vacuum may remove pages under a version that somebody holds. Every
//! lookup gives what it gave before, or SnapshotExpired if the version is gone. A storage that fails gives its error, and no
//! lookup takes that for "not there".

use crate::support::copy::{WHOLE, memory};
use crate::support::store::{context, options, store_of};
use gridstone::base::{ErrorKind, Id, NeverCancel, Result, Silent};
use gridstone::engine::{
    Array, At, Call, CopyOptions, Group, Isolation, Keep, Opened, Transaction, commit_receipts_on, copy_on,
    create_array_on, create_group_on, move_node_on, open_on,
};
use gridstone::schema::{Attribute, Datatype, Evolution, Schema};
use gridstone::storage::{Fault, FaultPlan, FaultyStorage, HookedStorage, Storage};
use gridstone::store::{Changes, Operation, StandardRules, Store};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const SCHEMA: &str = r#"{"sparse":true,"dims":[{"name":"x","dtype":"int64","domain":["0","99"],"tile":"10"}],
    "attrs":[{"name":"v","dtype":"int64"}]}"#;

/// Arrays with metadata that takes pages, and after each so many small arrays.
const BIGS: u64 = 9;
const SMALLS: u64 = 60;

fn schema() -> Schema {
    Schema::from_json(SCHEMA).unwrap()
}

fn id(n: u64) -> Id {
    Id(u128::from(n).to_be_bytes())
}

fn set(node: Id, key: &str, len: usize) -> Operation {
    Operation::SetMetadata { node, changes: vec![(key.to_owned(), Some(format!("\"{}\"", "x".repeat(len))))] }
}

fn commit(store: &Store, operations: Vec<Operation>) {
    store.commit(&store.latest().unwrap(), Changes::new(operations), &mut StandardRules).unwrap();
}

fn array(n: u64, path: String) -> Operation {
    Operation::CreateArray { id: id(n), path, schema: schema(), ext: None }
}

/// The array of number 3 has so many schemas that they take pages.
fn evolved() -> impl Iterator<Item = Operation> {
    let (first, mut last) = (schema(), schema());
    (1..=600u32).map(move |number| {
        let attr = Attribute::new(&format!("n{}", number % 2), Datatype::Int16, true, None, "auto").unwrap();
        let drop = if number > 1 { vec![format!("n{}", (number + 1) % 2)] } else { Vec::new() };
        last = last.evolved(&first, &Evolution { add: vec![attr], drop, ..Evolution::default() }).unwrap();
        Operation::AlterArray { id: id(3), number, schema: last.clone() }
    })
}

/// A store of 552 nodes, folded, and a version after the root. That changes rows in pages that opening it does not load: of each
/// second large array the last key, which lies pages after its head and beside small arrays.
fn built() -> Arc<dyn Storage> {
    let storage = memory();
    let store = store_of(&storage);
    let group = |n: u64, path: &str| Operation::CreateGroup { id: id(n), path: path.to_owned(), ext: None };
    let mut operations = vec![group(1, "/"), group(2, "/g"), array(3, "/g/evolved".to_owned())];
    operations.extend(evolved());
    for big in 0..BIGS {
        let n = 1_000 * (big + 1);
        operations.push(array(n, format!("/g/big{big}")));
        operations.extend((0..30).map(|key| set(id(n), &format!("key {key:02}"), 15_000)));
        operations.extend((0..SMALLS).map(|small| array(n + 1 + small, format!("/g/small{big}_{small:02}"))));
    }
    store.create(Changes::new(operations)).unwrap();
    commit(&store, vec![set(id(2), "a", 1)]);
    store.pack(&store.latest().unwrap()).unwrap();
    let mut touched: Vec<Operation> = (0..BIGS).step_by(2).map(|big| set(id(1_000 * (big + 1)), "key 29", 3)).collect();
    touched.push(set(id(3), "key", 3));
    commit(&store, touched);
    storage
}

fn twin(of: &Arc<dyn Storage>) -> Arc<dyn Storage> {
    let storage = memory();
    storage.prepare().unwrap();
    for name in ["_log", "_manifest", "_data"].iter().flat_map(|folder| of.list(folder).unwrap()) {
        storage.put(&name, &of.read_all(&name).unwrap()).unwrap();
    }
    storage
}

/// What a vacuum leaves of the version that is held.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Strike {
    /// The version, on another root.
    Root,
    /// Nothing.
    Version,
}

impl Strike {
    /// Others commit, and vacuum; `held` is the version that somebody holds.
    fn on(self, storage: &Arc<dyn Storage>, held: u64) {
        let store = store_of(storage);
        commit(&store, vec![set(id(2), "struck", 1)]);
        let since = store.latest().unwrap().version() - held;
        let keep = Keep::Versions(if self == Self::Root { since + 1 } else { 1 });
        gridstone::maintain::vacuum(&store, &options(keep), &NeverCancel, &Silent).unwrap();
    }
}

/// Names of small arrays whose pages a vacuum removes under the newest version, though it keeps that.
fn lost(of: &Arc<dyn Storage>) -> Vec<String> {
    let storage = twin(of);
    let held = store_of(&storage).latest().unwrap();
    assert!(held.root_version() > 0 && held.root_version() < held.version());
    Strike::Root.on(&storage, held.version());
    assert_eq!(store_of(&storage).floor().unwrap().unwrap().version, held.version());
    let names = (0..BIGS).flat_map(|big| (0..SMALLS).map(move |small| format!("small{big}_{small:02}")));
    let lost: Vec<String> = names.filter(|name| held.find(&format!("/g/{name}")).is_err()).collect();
    assert!(lost.len() > 20, "{lost:?}");
    lost
}

/// Handles of one version.
struct Scene {
    storage: Arc<dyn Storage>,
    evolved: Array,
    big: Array,
    group: Group,
    /// One of each isolation.
    transactions: [Transaction; 2],
    /// Names in the group whose rows are not loaded.
    a: String,
    b: String,
}

impl Scene {
    fn new(storage: Arc<dyn Storage>, lost: &[String]) -> Self {
        let open = |path: &str| open_on(&context(64), storage.clone(), path, true, At::Latest).unwrap();
        let array = |path: &str| match open(path) {
            Opened::Array(array) => array,
            Opened::Group(_) => panic!("{path} is a group"),
        };
        let Opened::Group(group) = open("/g") else { panic!("/g is an array") };
        let (evolved, big) = (array("/g/evolved"), array("/g/big0"));
        let transactions = [Isolation::Snapshot, Isolation::Serializable]
            .map(|isolation| Transaction::begin_on(&context(64), storage.clone(), isolation).unwrap());
        let (a, b) = (lost.first().unwrap().clone(), lost.last().unwrap().clone());
        Self { storage, evolved, big, group, transactions, a, b }
    }

    fn path(&self) -> String {
        format!("/g/{}", self.a)
    }

    /// What the newest version has at two paths.
    fn newest(&self, paths: [&str; 2]) -> Result<String> {
        let store = store_of(&self.storage);
        let found = store.settling_newest(store.latest()?, |newest| {
            let at = |path: &str| newest.find(path).map(|found| found.map(|node| node.kind()));
            Ok((at(paths[0])?, at(paths[1])?))
        })?;
        Ok(format!("{:?}", found.1))
    }

    /// Does the same in both transactions, and commits; what the newest version has at two paths then.
    fn both(&self, paths: [&str; 2], work: impl Fn(&Transaction, usize) -> Result<()>) -> Result<String> {
        let mut seen = String::new();
        for (number, transaction) in self.transactions.iter().enumerate() {
            work(transaction, number)?;
            transaction.commit(None)?;
            seen += &self.newest(paths)?;
        }
        Ok(seen)
    }
}

/// What is asked for, and whether it is about the newest version, so that it always comes to its end.
type Act = (&'static str, bool, fn(&Scene) -> Result<String>);

const TRANSACTIONS: &[Act] = &[
    ("kind", false, |s| s.both(["/g", "/"], |t, _| t.kind(&s.path()).map(|kind| assert_eq!(kind, Some("array"))))),
    ("array", false, |s| {
        s.both(["/g", "/"], |t, _| {
            let array = t.array(&s.path())?;
            array.set_metadata(vec![("k".to_owned(), Some("1".to_owned()))]).map(drop)
        })
    }),
    ("children", false, |s| {
        s.both(["/g", "/"], |t, n| {
            assert_eq!(t.children("/g")?.len(), 1 + (BIGS * (1 + SMALLS)) as usize);
            // Something to commit, so that what was read is compared.
            t.array("/g/evolved")?.set_metadata(vec![(n.to_string(), Some("1".to_owned()))]).map(drop)
        })
    }),
    ("create below", false, |s| {
        s.both(["/g/0", "/g/1"], |t, n| t.create_array(&format!("/g/{n}"), schema(), false).map(drop))
    }),
    ("create over", false, |s| {
        let path = [&s.a, &s.b].map(|name| format!("/g/{name}"));
        s.both([&path[0], &path[1]], |t, n| t.create_array(&path[n], schema(), true).map(drop))
    }),
    ("refuse to create", false, |s| {
        s.both(["/g", "/"], |t, _| match t.create_array(&s.path(), schema(), false) {
            Err(e) if e.kind() == ErrorKind::Exists => Ok(()),
            created => created.map(|_| panic!("{} was there", s.path())),
        })
    }),
    ("create a group", false, |s| s.both(["/h/0", "/h/1"], |t, n| t.create_group(&format!("/h/{n}")))),
    ("remove", false, |s| {
        let path = [&s.a, &s.b].map(|name| format!("/g/{name}"));
        s.both([&path[0], &path[1]], |t, n| t.remove(&path[n]))
    }),
    ("move", false, |s| {
        let path = [&s.a, &s.b].map(|name| format!("/g/{name}"));
        s.both(["/g/moved0", "/g/moved1"], |t, n| t.move_node(&path[n], &format!("/g/moved{n}")))
    }),
    ("alter and remove", false, |s| {
        s.both(["/g/evolved", "/g/big1"], |t, n| {
            let path = ["/g/evolved", "/g/big1"][n];
            let array = t.array(path)?;
            let attr = Attribute::new(&format!("new{n}"), Datatype::Int16, true, None, "auto")?;
            array.alter(&Evolution { add: vec![attr], ..Evolution::default() }, None)?;
            assert!(array.schema_since(Some(0))?.is_some());
            if n == 1 { t.remove(path) } else { Ok(()) }
        })
    }),
    ("write and remove", false, |s| {
        let path = [&s.a, &s.b].map(|name| format!("/g/{name}"));
        s.both([&path[0], &path[1]], |t, n| {
            let array = t.array(&path[n])?;
            array.nonempty_domain()?;
            array.commit(vec![array.stage_delete_box(None)?], None)?;
            t.remove(&path[n])
        })
    }),
    ("ended", false, |s| {
        let mut seen = String::new();
        for transaction in &s.transactions {
            let array = transaction.array(&s.path())?;
            transaction.abort();
            assert_eq!(transaction.remove(&s.path()).unwrap_err().kind(), ErrorKind::Input);
            seen += &format!("{:?}", array.schema_since(None)?.map(|(number, _)| number));
        }
        Ok(seen)
    }),
];

const HANDLES: &[Act] = &[
    ("metadata", false, |s| Ok(format!("{:?}", s.big.metadata("key 28")?.map(|text| text.len())))),
    ("keys", false, |s| Ok(format!("{:?}", s.big.metadata_keys()?))),
    ("schema since", false, |s| Ok(format!("{:?}", s.evolved.schema_since(Some(7))?.map(|(number, _)| number)))),
    ("fragments", false, |s| Ok(format!("{:?}", s.big.fragments()?.len()))),
    ("tags", false, |s| Ok(format!("{:?} {:?}", s.big.tags()?, s.group.tags()?))),
    ("history", false, |s| s.big.history(&Call::default()).map(|_| String::new())),
    ("refresh", true, |s| s.evolved.refresh().map(|version| (version >= 3).to_string())),
    ("at the newest", true, |s| Ok(format!("{:?}", s.evolved.at(At::Latest)?.schema()?.attrs().len()))),
    ("at a version", false, |s| Ok(format!("{:?}", s.evolved.at(At::Version(s.evolved.version()))?.path()?))),
    ("alter", false, |s| {
        let attr = Attribute::new("new", Datatype::Int16, true, None, "auto")?;
        s.evolved.alter(&Evolution { add: vec![attr], ..Evolution::default() }, None)?;
        Ok(format!("{:?}", s.evolved.schema()?.attrs().len()))
    }),
    ("tag", false, |s| s.big.tag("t", None, false).and_then(|_| s.big.untag("t")).map(|_| String::new())),
    ("children", false, |s| s.group.children().map(|children| children.len().to_string())),
    ("walk", false, |s| s.group.walk().map(|nodes| nodes.len().to_string())),
    ("contains", false, |s| Ok(format!("{} {}", s.group.contains(&s.a)?, s.group.contains("none")?))),
    ("open a child", false, |s| match s.group.open(&s.a, true, false)? {
        Opened::Array(array) => Ok(format!("{} {:?}", array.path()?, array.schema()?.attrs().len())),
        Opened::Group(_) => panic!("a group"),
    }),
    ("metadata of a group", false, |s| Ok(format!("{:?}", s.group.metadata("a")?))),
    ("history of a group", true, |s| s.group.history(false, &Call::default()).map(|all| (!all.is_empty()).to_string())),
    ("history of a version", false, |s| {
        s.group.history(true, &Call::default()).map(|all| all.last().map_or(0, |v| v.version).to_string())
    }),
    ("refresh a group", true, |s| Ok(s.group.refreshed()?.path().to_owned())),
    ("set metadata", true, |s| {
        s.group.set_metadata(vec![("k".to_owned(), Some("1".to_owned()))]).map(|_| String::new())
    }),
    ("create in a group", true, |s| {
        s.group.create_array("new", schema(), false)?;
        s.group.create_array(&s.a, schema(), true)?;
        s.group.create_group("h").map(|group| group.path().to_owned())
    }),
    ("create below an array", true, |s| match s.group.create_group(&format!("{}/below", s.a)) {
        Err(e) if e.kind() == ErrorKind::Exists => Ok("refused".to_owned()),
        created => created.map(|group| group.path().to_owned()),
    }),
    ("change a group", true, |s| {
        s.group.remove(&s.a, None)?;
        s.group.move_child(&s.b, "moved", None)?;
        s.newest([&s.path(), "/g/moved"])
    }),
];

const STORES: &[Act] = &[
    ("open", true, |s| match open_on(&context(64), s.storage.clone(), &s.path(), true, At::Latest)? {
        Opened::Array(array) => array.path(),
        Opened::Group(_) => panic!("a group"),
    }),
    ("create an array", true, |s| {
        create_array_on(&context(64), s.storage.clone(), &s.path(), schema(), true).and_then(|array| array.path())
    }),
    ("refuse to create an array", true, |s| {
        match create_array_on(&context(64), s.storage.clone(), &s.path(), schema(), false) {
            Err(e) if e.kind() == ErrorKind::Exists => Ok(String::new()),
            created => created.map(|_| panic!("it was there")),
        }
    }),
    ("create a group", true, |s| {
        let made = |path: &str| create_group_on(&context(64), s.storage.clone(), path).map(|g| g.path().to_owned());
        Ok(made("/g")? + &made("/g/h")?)
    }),
    ("move", true, |s| {
        move_node_on(&context(64), s.storage.clone(), &s.path(), "/g/moved", None)?;
        s.newest([&s.path(), "/g/moved"])
    }),
    ("copy", false, |s| {
        let options = CopyOptions { at: At::Version(s.big.version()), ..WHOLE };
        copied(s, &options, "/g/big0")
    }),
    ("copy an array", false, |s| copied(s, &CopyOptions { path: "/g/evolved", target_path: "/e", ..WHOLE }, "/e")),
    ("copy within", false, |s| {
        let to = format!("/g/{}", s.b);
        let options = CopyOptions { path: "/g/evolved", target_path: &to, overwrite: true, ..WHOLE };
        let ends = (&context(64), s.storage.clone());
        let report = copy_on((ends.0, ends.1.clone()), ends, &options, &Call::default())?;
        Ok(format!("{}", report.arrays))
    }),
    ("copy with history", false, |s| {
        let options = CopyOptions { history: true, at: At::Version(s.big.version()), ..WHOLE };
        copied(s, &options, "/g/big0")
    }),
    ("receipt", false, |s| {
        let receipt = s.big.receipt(vec![s.big.stage_delete_box(None)?])?;
        commit_receipts_on(&context(64), s.storage.clone(), &[receipt], None).map(|_| String::new())
    }),
];

fn copied(scene: &Scene, options: &CopyOptions<'_>, path: &str) -> Result<String> {
    let target = memory();
    let from = (&context(64), scene.storage.clone());
    let report = copy_on(from, (&context(64), target.clone()), options, &Call::default())?;
    let found = store_of(&target).latest()?.array(path)?;
    let metadata = found.metadata().all()?;
    Ok(format!("{} {} {:?}", report.arrays, found.schemas().count(), metadata.keys().collect::<Vec<_>>()))
}

fn acts() -> impl Iterator<Item = &'static Act> {
    TRANSACTIONS.iter().chain(HANDLES).chain(STORES)
}

/// Does `act`, struck before its operation of number `at`; gives whether it was, what came of it, and the operations from then on.
fn struck(
    act: &Act,
    world: (&Arc<dyn Storage>, &[String]),
    at: u64,
    strike: Strike,
) -> (bool, Result<String>, Vec<String>) {
    let (memory, held) = (twin(world.0), store_of(world.0).latest().unwrap().version());
    let (operations, hit) = (Arc::new(AtomicU64::new(1 << 60)), Arc::new(AtomicBool::new(false)));
    let (counting, hitting, armed) = (operations.clone(), hit.clone(), memory.clone());
    let trace = Arc::new(Mutex::new(Vec::new()));
    let traced = trace.clone();
    let storage: Arc<dyn Storage> = Arc::new(HookedStorage::new(memory, move |operation, name| {
        if hitting.load(Ordering::SeqCst) {
            traced.lock().unwrap().push(format!("{operation:?} {name}"));
        }
        if counting.fetch_add(1, Ordering::SeqCst) == at {
            hitting.store(true, Ordering::SeqCst);
            strike.on(&armed, held);
        }
    }));
    let scene = Scene::new(storage, world.1);
    // What opening the handles takes does not count.
    operations.store(0, Ordering::SeqCst);
    let outcome = act.2(&scene);
    let seen = trace.lock().unwrap().clone();
    (hit.load(Ordering::SeqCst), outcome, seen)
}

fn at_any_moment(strike: Strike) {
    let storage = built();
    let lost = lost(&storage);
    for act in acts() {
        let world = (&storage, lost.as_slice());
        let expected = struck(act, world, u64::MAX, strike).1.unwrap_or_else(|e| panic!("{} alone: {e}", act.0));
        // All operations are struck with GRIDSTONE_TEST_DEEP; else each third.
        let is_deep = std::env::var_os("GRIDSTONE_TEST_DEEP").is_some();
        let (mut at, stride, mut expired) = if is_deep { (0, 1, 0) } else { (1, 3, 0) };
        loop {
            let (hit, outcome, seen) = struck(act, world, at, strike);
            match outcome {
                Ok(found) => assert_eq!(found, expected, "{}, {strike:?} before operation {at}", act.0),
                Err(e) => {
                    // A history begins with the oldest version.
                    let begins_below = ["history", "copy with history"].contains(&act.0);
                    let may_be_gone = !act.1 && strike == Strike::Version || begins_below;
                    let gone = e.kind() == ErrorKind::SnapshotExpired && may_be_gone;
                    assert!(gone, "{}, {strike:?} before operation {at}: {e} ({:?}): {seen:#?}", act.0, e.kind());
                    expired += 1;
                }
            }
            if !hit {
                break;
            }
            at += stride;
        }
        println!("{}: {at} operations, expired {expired} times", act.0);
    }
}

#[test]
fn a_vacuum_may_remove_the_pages_under_a_version_at_any_moment() {
    at_any_moment(Strike::Root);
}

#[test]
fn a_vacuum_may_remove_a_version_at_any_moment() {
    at_any_moment(Strike::Version);
}

#[test]
fn an_error_of_the_storage_is_given_on_by_every_lookup() {
    let storage = built();
    let lost = lost(&storage);
    let mut failed = 0;
    for act in acts() {
        let mut at = 1;
        let expected = act.2(&Scene::new(twin(&storage), &lost)).unwrap();
        loop {
            let plan = FaultPlan::new();
            let scene = Scene::new(Arc::new(FaultyStorage::new(twin(&storage), plan.clone())), &lost);
            plan.clear();
            plan.fail_nth(at, Fault::Error);
            let outcome = act.2(&scene);
            let struck = plan.operations() >= at;
            match outcome {
                Ok(found) => assert_eq!(found, expected, "{}, operation {at} failed", act.0),
                Err(e) => {
                    let told = matches!(e.kind(), ErrorKind::Storage | ErrorKind::CommitUnknown);
                    assert!(told && struck, "{}, operation {at} failed: {e} ({:?})", act.0, e.kind());
                    failed += 1;
                }
            }
            if !struck {
                break;
            }
            at += 1;
        }
    }
    assert!(failed > 200, "{failed}");
}
