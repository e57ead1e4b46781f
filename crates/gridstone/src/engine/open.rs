//! Creating and opening stores, arrays and groups.

use super::address::{At, look_at, storage_at, store_at, store_on};
use super::group::below;
use super::sorted_copies::commit_copying;
use super::{Array, Context, Group};
use crate::base::{Entropy, Error, ErrorKind, Result};
use crate::runtime::SystemEntropy;
use crate::schema::Schema;
use crate::storage::{FLOOR, SealedStorage, Storage, log_name};
use crate::store::{Changes, Node, Operation, Snapshot, StandardRules, Store, UNFINISHED};
use std::sync::Arc;

/// What lies at a path.
#[derive(Debug)]
pub enum Opened {
    /// An array.
    Array(Array),
    /// A group.
    Group(Group),
}

impl Opened {
    /// The array.
    ///
    /// # Errors
    /// NotFound: a group lies there.
    pub fn into_array(self) -> Result<Array> {
        match self {
            Self::Array(array) => Ok(array),
            Self::Group(group) => {
                Err(Error::not_found(format!("{} of {} is a group, not an array", group.path(), group.uri())))
            }
        }
    }

    /// The group.
    ///
    /// # Errors
    /// NotFound: an array lies there.
    pub fn into_group(self) -> Result<Group> {
        match self {
            Self::Group(group) => Ok(group),
            Self::Array(array) => {
                Err(Error::not_found(format!("{} of {} is an array, not a group", array.path()?, array.uri())))
            }
        }
    }
}

/// Opens what lies at `path` in the store at `uri`.
///
/// # Errors
/// NotFound (no store, no such path or version), SnapshotExpired, Corruption, Unsupported (newer format), Storage; Access if
/// the store is sealed and its key is missing or another, or it is not sealed and the context has a key.
///
/// ```
/// use gridstone::{At, Attribute, Context, Datatype, Dimension, ErrorKind, Options, Schema, SchemaOptions};
///
/// # fn main() -> gridstone::Result<()> {
/// let context = Context::new(&Options::default())?;
/// let day = Dimension::new("day", Datatype::parse("datetime64[D]")?, "0", "364", Some("30"))?;
/// let rain = Attribute::new("rain", Datatype::Float32, true, None, "auto")?;
/// let schema = Schema::new(vec![day], vec![rain], SchemaOptions::default())?;
/// gridstone::create_array(&context, "mem://opening", "/stations/uccle", schema, false)?;
///
/// let stations = gridstone::open(&context, "mem://opening", "/stations", false, At::Latest)?.into_group()?;
/// assert_eq!(stations.children()?, [("uccle".to_owned(), "array")]);
/// let uccle = stations.open("uccle", true, false)?.into_array()?;
/// assert!(uccle.writable() && uccle.path()? == "/stations/uccle");
///
/// let missing = gridstone::open(&context, "mem://opening", "/stations/bonn", false, At::Latest).unwrap_err();
/// assert_eq!(missing.kind(), ErrorKind::NotFound);
/// let group = gridstone::open(&context, "mem://opening", "/stations", false, At::Latest)?;
/// assert_eq!(group.into_array().unwrap_err().kind(), ErrorKind::NotFound);
/// # Ok(())
/// # }
/// ```
pub fn open(context: &Context, uri: &str, path: &str, writable: bool, at: At) -> Result<Opened> {
    open_in(context, store_at(context, uri)?, path, writable, at)
}

/// Opens what lies at `path` in the store on `storage`; see [`open`].
pub fn open_on(context: &Context, storage: Arc<dyn Storage>, path: &str, writable: bool, at: At) -> Result<Opened> {
    open_in(context, store_on(context, storage), path, writable, at)
}

fn open_in(context: &Context, store: Arc<Store>, path: &str, writable: bool, at: At) -> Result<Opened> {
    if writable && at != At::Latest {
        return Err(Error::input(
            "a past version is read-only: open it with mode \"r\", or open the newest with \"r+\"",
        ));
    }
    let (snapshot, node) = look_at(&store, at, |snapshot| snapshot.node(path))?;
    match node {
        Node::Array(array) => {
            array.check_readable()?;
            let id = array.id();
            Ok(Opened::Array(Array::new(context.clone(), store, snapshot, id, writable, at != At::Latest)))
        }
        Node::Group(group) => Ok(Opened::Group(Group::new(context, store, snapshot, &group))),
    }
}

/// Creates an array at `path` in the store at `uri`, which is created with it if there is none. With `overwrite` what
/// lies at the path is replaced (its history stays).
///
/// # Errors
/// Schema, Exists, Storage, Access.
pub fn create_array(context: &Context, uri: &str, path: &str, schema: Schema, overwrite: bool) -> Result<Array> {
    create_array_in(context, store_at(context, uri)?, path, schema, overwrite)
}

/// Creates an array in the store on `storage`; see [`create_array`].
pub fn create_array_on(
    context: &Context,
    storage: Arc<dyn Storage>,
    path: &str,
    schema: Schema,
    overwrite: bool,
) -> Result<Array> {
    create_array_in(context, store_on(context, storage), path, schema, overwrite)
}

fn create_array_in(context: &Context, store: Arc<Store>, path: &str, schema: Schema, overwrite: bool) -> Result<Array> {
    let id = SystemEntropy.id();
    let create = Operation::CreateArray { id, path: path.to_owned(), schema: schema.of_new_array(), ext: None };
    let snapshot = create_node(context, &store, path, create, overwrite)?;
    Ok(Array::new(context.clone(), store, snapshot, id, true, false))
}

/// Creates a group at `path` in the store at `uri`, which is created with it if there is none.
///
/// # Errors
/// Exists (something else lies there), Storage, Access. A group that exists is opened.
pub fn create_group(context: &Context, uri: &str, path: &str) -> Result<Group> {
    create_group_in(context, &store_at(context, uri)?, path)
}

/// Creates a group in the store on `storage`; see [`create_group`].
pub fn create_group_on(context: &Context, storage: Arc<dyn Storage>, path: &str) -> Result<Group> {
    create_group_in(context, &store_on(context, storage), path)
}

fn create_group_in(context: &Context, store: &Arc<Store>, path: &str) -> Result<Group> {
    let there = |exists: bool| -> Result<Option<Group>> {
        if !exists {
            return Ok(None);
        }
        match look_at(store, At::Latest, |newest| newest.find(path))? {
            (newest, Some(Node::Group(group))) => Ok(Some(Group::new(context, store.clone(), newest, &group))),
            _ => Ok(None),
        }
    };
    if let Some(group) = there(store.exists()?)? {
        return Ok(group);
    }
    let create = Operation::CreateGroup { id: SystemEntropy.id(), path: path.to_owned(), ext: None };
    match create_node(context, store, path, create, false) {
        // Another may have created the same group meanwhile.
        Err(e) if e.kind() == ErrorKind::Exists => there(true)?.ok_or(e),
        created => {
            let look = |snapshot: &Snapshot| snapshot.node(path);
            match store.settling_newest(created?, look)? {
                (snapshot, Node::Group(group)) => Ok(Group::new(context, store.clone(), snapshot, &group)),
                (_, Node::Array(_)) => Err(Error::not_found(format!("{path} is an array, not a group"))),
            }
        }
    }
}

fn create_node(
    context: &Context,
    store: &Store,
    path: &str,
    create: Operation,
    overwrite: bool,
) -> Result<Arc<Snapshot>> {
    if !store.exists()? {
        match store.create(Changes::new(vec![create.clone()])) {
            // Another process created the store meanwhile: the node goes into it.
            Err(error) if error.kind() == ErrorKind::Exists => {}
            other => return other,
        }
    }
    let (base, taken) = look_at(store, At::Latest, |newest| Ok(newest.find(path)?.map(|node| node.id())))?;
    let mut operations = Vec::new();
    match taken {
        Some(id) if overwrite => operations.push(Operation::Remove { id }),
        Some(_) => {
            return Err(Error::exists(format!(
                "{path} exists in {}; open it, or pass overwrite=True to replace it",
                store.storage().describe()
            )));
        }
        None => {}
    }
    operations.push(create);
    commit_copying(context, store, &base, Changes::new(operations), &mut StandardRules)
}

/// Whether there is a store at `uri`, sealed or not.
///
/// # Errors
/// Input (no such kind of place), Access, Storage.
pub fn exists(context: &Context, uri: &str) -> Result<bool> {
    is_store(context, &storage_at(context, uri)?)
}

/// By names, so that no key is needed, but for the beginning of a copy.
fn is_store(context: &Context, storage: &Arc<dyn Storage>) -> Result<bool> {
    if storage.exists(FLOOR)? { Ok(!is_unfinished(context, storage)) } else { storage.exists(&log_name(1)) }
}

/// Whether the floor of a place says that a store is copied there. Who has not its key is told that it does not.
fn is_unfinished(context: &Context, storage: &Arc<dyn Storage>) -> bool {
    let sealed = SealedStorage::new(storage.clone(), context.sealing.clone(), Arc::new(SystemEntropy));
    sealed.read_all(FLOOR).is_ok_and(|floor| floor == UNFINISHED)
}

/// Deletes the store at `uri` with all its history, or the beginning of a copy; NotFound if there is none. A sealed one needs no
/// key for that.
///
/// # Errors
/// NotFound, Access, Storage.
pub fn delete_store(context: &Context, uri: &str) -> Result<()> {
    let storage = storage_at(context, uri)?;
    if !is_store(context, &storage)? {
        let unfinished = is_unfinished(context, &storage);
        // What a deletion that was cut short has left behind goes all the same.
        storage.remove_everything()?;
        if unfinished {
            return Ok(());
        }
        return Err(Error::not_found(format!("there is no Gridstone store in {}", storage.describe())));
    }
    storage.remove_everything()
}

impl Group {
    /// Opens what is called `name` here, or lies at this path below. `pinned`: this version is the past, and stays.
    ///
    /// # Errors
    /// NotFound, Input (no name).
    pub fn open(&self, name: &str, writable: bool, pinned: bool) -> Result<Opened> {
        let (snapshot, node) = self.looked_in(|snapshot, group| snapshot.node(&below(group.path(), name)))?;
        if let Node::Array(array) = &node {
            array.check_readable()?;
        }
        Ok(self.opened(&snapshot, &node, writable, pinned))
    }

    pub(super) fn opened(&self, snapshot: &Arc<Snapshot>, node: &Node, writable: bool, pinned: bool) -> Opened {
        let (context, store, snapshot) = (self.context.clone(), self.store.clone(), snapshot.clone());
        match node {
            Node::Array(array) => Opened::Array(Array::new(context, store, snapshot, array.id(), writable, pinned)),
            Node::Group(group) => Opened::Group(Group::new(&context, store, snapshot, group)),
        }
    }
}
