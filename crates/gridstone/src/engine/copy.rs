//! Copying arrays, groups and stores to another place, of any kind and under any key.
//!
//! One version is copied into one commit of the target: nodes with their schemas and metadata, and the fragments of that
//! version as they are stored ([`crate::maintain::Copier`]). A store with its history is copied object by object
//! ([`crate::maintain::HistoryCopier`]). Why so is told in `docs/design/013-copies.md`.

use super::address::{look_at, snapshot_at, store_at, store_on};
use super::claim::Claim;
use super::labels::free_name;
use super::queue::forget_queues;
use super::retention::tagged;
use super::shared_labels::shared_state;
use super::sorted_copies::commit_copying;
use super::{Array, At, Call, Context, Staged};
use crate::base::{Detail, Entropy, Error, ErrorKind, FileRef, Id, Level, Result};
use crate::fragment::Description;
use crate::maintain::{Copier, HistoryCopier, KeptCopier};
use crate::runtime::SystemEntropy;
use crate::schema::{Labels, Schema};
use crate::storage::Storage;
use crate::store::{ArrayState, Changes, Kept, Metadata, Node, Operation, Snapshot, StandardRules, Store};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// What is copied, and to where.
#[derive(Debug, Clone, Copy)]
pub struct CopyOptions<'a> {
    /// The array or group; "/": all that the store holds.
    pub path: &'a str,
    /// Where it is put in the target, which is created if it is no store.
    pub target_path: &'a str,
    /// The version of the source.
    pub at: At,
    /// The version's tag, instead of `at`.
    pub tag: Option<&'a str>,
    /// Whether all kept versions up to that one are copied; for whole stores, to a place where there is none, or onto an
    /// earlier copy, which gets what it lacks.
    pub history: bool,
    /// Whether what lies at the target's path is replaced.
    pub overwrite: bool,
}

/// What a copy did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// The version of the source that was copied.
    pub source_version: u64,
    /// The version of the target that has it.
    pub version: u64,
    /// Arrays copied.
    pub arrays: u64,
    /// Fragments copied; of a history those of its newest version.
    pub fragments: u64,
    /// Bytes copied.
    pub bytes: u64,
    /// Objects copied, if it was a history.
    pub objects: u64,
    /// Versions copied, if it was a history.
    pub versions: u64,
}

/// An end of a copy: a store, and the context that reaches it.
#[derive(Clone, Copy)]
struct End<'a> {
    context: &'a Context,
    store: &'a Arc<Store>,
}

/// Copies from the store at one URI to that at another; each context has the key and the address of its store.
///
/// # Errors
/// NotFound (no store, no such path or version), Exists (something lies at the target's path), Input (into itself; a history of
/// less than a store), Conflict (a copy with commits of its own), SnapshotExpired (a vacuum forgot the version meanwhile). Also
/// Corruption, Storage, Access, Cancelled, CommitUnknown. But for the last, there is nothing new to be seen in the target then.
pub fn copy(
    from: (&Context, &str),
    to: (&Context, &str),
    options: &CopyOptions<'_>,
    call: &Call,
) -> Result<CopyReport> {
    let (source, target) = (store_at(from.0, from.1)?, store_at(to.0, to.1)?);
    copy_in(End { context: from.0, store: &source }, End { context: to.0, store: &target }, options, call)
}

/// Copies between the stores on two storages; see [`copy`].
pub fn copy_on(
    from: (&Context, Arc<dyn Storage>),
    to: (&Context, Arc<dyn Storage>),
    options: &CopyOptions<'_>,
    call: &Call,
) -> Result<CopyReport> {
    let (source, target) = (store_on(from.0, from.1), store_on(to.0, to.1));
    copy_in(End { context: from.0, store: &source }, End { context: to.0, store: &target }, options, call)
}

fn copy_in(from: End<'_>, to: End<'_>, options: &CopyOptions<'_>, call: &Call) -> Result<CopyReport> {
    let snapshot = match options.tag {
        Some(tag) => from.store.at_version(tagged(from.store, tag)?.1)?,
        None => snapshot_at(from.store, options.at)?,
    };
    if options.history {
        return copy_history(from, to, &snapshot, options, call);
    }
    check_apart(from, to, options)?;
    check_free(to.store, options)?;
    let mut nodes = Nodes::gather(from, &snapshot, options, call)?;
    if !to.store.exists()? {
        to.store.storage().prepare()?;
    }
    nodes.copy_fragments(from, to, call)?;
    let report = CopyReport {
        source_version: snapshot.version(),
        arrays: nodes.arrays.len() as u64,
        fragments: nodes.arrays.iter().map(|a| a.fragments.len() as u64).sum(),
        bytes: nodes.bytes(),
        ..CopyReport::default()
    };
    let source = from.store.storage().describe();
    let message = format!("copy of version {} of {} in {source}", snapshot.version(), options.path);
    let committed = nodes.commit(to, message, options)?;
    Ok(CopyReport { version: committed.version(), ..report })
}

/// An Input error if both ends are the same store and one path lies within the other.
fn check_apart(from: End<'_>, to: End<'_>, options: &CopyOptions<'_>) -> Result<()> {
    let (path, target) = (options.path, options.target_path);
    let within = |inner: &str, outer: &str| {
        outer == "/" || inner == outer || inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
    };
    if from.store.storage().identity() == to.store.storage().identity()
        && (within(path, target) || within(target, path))
    {
        return Err(Error::input(format!(
            "{path} cannot be copied to {target} of the same store: one lies within the other; give another target_path, \
             or another store"
        )));
    }
    Ok(())
}

/// What lies at the target's path, if it may be replaced. An Exists error if it may not.
fn check_free(target: &Store, options: &CopyOptions<'_>) -> Result<Option<Id>> {
    if !target.exists()? {
        return Ok(None);
    }
    match look_at(target, At::Latest, |newest| newest.find(options.target_path))?.1 {
        Some(node) if options.overwrite => Ok(Some(node.id())),
        Some(node) => Err(Error::exists(format!(
            "there is {} at {} in {} already; give another target_path, or overwrite=True to replace it",
            if node.kind() == "array" { "an array" } else { "a group" },
            options.target_path,
            target.storage().describe()
        ))),
        None => Ok(None),
    }
}

/// An array to be copied, and what has been written of it.
struct Copied {
    source: Array,
    fragments: Vec<Arc<Description>>,
    staged: Staged,
    kept: Vec<Arc<Kept>>,
    /// The entries of kept files in the target.
    kept_copies: Vec<Kept>,
}

/// An array's ids in the source and in the target, its fragments, and what is kept beside it.
struct Found {
    source: Id,
    target: Id,
    fragments: Vec<Arc<Description>>,
    kept: Vec<Arc<Kept>>,
}

impl Found {
    fn of(snapshot: &Snapshot, state: &ArrayState, target: Id) -> Result<Self> {
        let fragments = state.fragments(None)?;
        check_own(snapshot, state.path(), &fragments)?;
        Ok(Self { source: state.id(), target, fragments, kept: state.kept()? })
    }
}

/// An array in which a copied array has labels, and which is not copied itself: the copy gets it as a hidden one.
struct Taken {
    state: Arc<ArrayState>,
    id: Id,
    name: String,
}

/// The arrays outside of what is copied in which `state` has labels.
fn shared_outside(snapshot: &Snapshot, state: &ArrayState, ids: &HashMap<Id, Id>) -> Result<Vec<Taken>> {
    let mut found: Vec<Taken> = Vec::new();
    let mut names: Vec<String> = snapshot.hidden_in(state)?.into_iter().map(|(name, _)| name).collect();
    for (place, dim) in state.schema().dims().iter().enumerate() {
        let shared = dim.labels().and_then(Labels::shared).filter(|id| !ids.contains_key(id));
        let Some(id) = shared.filter(|id| found.iter().all(|taken| taken.state.id() != *id)) else { continue };
        if let Some(labels) = shared_state(snapshot, dim, id)? {
            let name = free_name(place, &names);
            names.push(name.clone());
            found.push(Taken { state: labels, id: SystemEntropy.id(), name });
        }
    }
    Ok(found)
}

/// What is to be copied. All of it is read from the manifest before the first fragment is copied.
struct Nodes {
    /// What makes the nodes in the target, without cells, parents before children. Nothing of it refers to the source.
    made: Vec<Operation>,
    arrays: Vec<Copied>,
    snapshot: Arc<Snapshot>,
}

impl Nodes {
    fn gather(from: End<'_>, snapshot: &Arc<Snapshot>, options: &CopyOptions<'_>, call: &Call) -> Result<Self> {
        let look = |snapshot: &Snapshot| Self::look(snapshot, options, call);
        let (snapshot, (made, found)) = from.store.settling(snapshot, look)?;
        let copied = |Found { source, target, fragments, kept }: Found| {
            let (context, store) = (from.context.clone(), from.store.clone());
            let source = Array::new(context, store, snapshot.clone(), source, false, true);
            let staged = Staged::new(target, Vec::new(), from.store.storage().clone());
            Copied { source, fragments, staged, kept, kept_copies: Vec::new() }
        };
        let arrays = found.into_iter().map(copied).collect();
        Ok(Self { made, arrays, snapshot })
    }

    /// What makes the nodes, and the arrays among them.
    fn look(snapshot: &Snapshot, options: &CopyOptions<'_>, call: &Call) -> Result<(Vec<Operation>, Vec<Found>)> {
        let top = snapshot.node(options.path)?.path().to_owned();
        let mut copied = Vec::new();
        for node in snapshot.nodes()? {
            call.cancel.check()?;
            if let Some(path) = moved_path(node.path(), &top, options.target_path) {
                copied.push((node, SystemEntropy.id(), path));
            }
        }
        let ids: HashMap<Id, Id> = copied.iter().map(|(node, id, _)| (node.id(), *id)).collect();
        let (mut made, mut arrays) = (Vec::new(), Vec::new());
        for (node, id, path) in copied {
            call.cancel.check()?;
            match &node {
                Node::Group(group) => made.push(Operation::CreateGroup { id, path, ext: group.ext().clone() }),
                Node::Array(state) => {
                    let taken = shared_outside(snapshot, state, &ids)?;
                    let own = |labels: &Labels| match labels
                        .shared()
                        .and_then(|id| taken.iter().find(|t| t.state.id() == id))
                    {
                        Some(taken) => Some(Labels::Array(taken.id)),
                        None => labels.renamed(|id| ids.get(&id).copied()),
                    };
                    made.extend(making(state, id, creating(state, id, path, &ids)?, own)?);
                    arrays.push(Found::of(snapshot, state, id)?);
                    let owner = id;
                    for Taken { state, id, name } in &taken {
                        let (id, name, ext) = (*id, name.clone(), state.ext().clone());
                        let create = |schema| Operation::CreateHidden { id, owner, name, schema, ext };
                        made.extend(making(state, id, create, |labels| labels.renamed(|_| None))?);
                        arrays.push(Found::of(snapshot, state, id)?);
                    }
                }
            }
            made.extend(describing(&node, id)?);
        }
        Ok((made, arrays))
    }

    fn bytes(&self) -> u64 {
        self.arrays.iter().flat_map(|a| &a.fragments).map(|d| d.location.len).sum()
    }

    fn copy_fragments(&mut self, from: End<'_>, to: End<'_>, call: &Call) -> Result<()> {
        let (total_bytes, done_bytes, bodies_bytes) = (self.bytes(), AtomicU64::new(0), AtomicU64::new(0));
        for array in &mut self.arrays {
            let copier = Copier {
                pool: &from.context.pool,
                from: array.source.read_context(&self.snapshot, call).files,
                to: to.store.files(),
                entropy: &SystemEntropy,
                cancel: call.cancel.as_ref(),
                progress: call.progress.as_ref(),
                done_bytes: &done_bytes,
                total_bytes,
                bodies_bytes: &bodies_bytes,
            };
            // Dropped without a commit, their files go.
            array.staged = Staged::new(array.staged.array, Vec::new(), to.store.storage().clone());
            copier.copy(&array.fragments, &mut array.staged.fragments)?;
            let (from, to, cancel) = (copier.from.as_ref(), copier.to.as_ref(), copier.cancel);
            let copier = KeptCopier { from, to, entropy: &SystemEntropy, cancel };
            let Staged { fragments, beside, .. } = &mut array.staged;
            array.kept_copies = copier.copy(&array.kept, (&array.fragments, fragments), beside)?;
        }
        Ok(())
    }

    /// What makes the nodes in the target, with their cells.
    fn operations(&self) -> Vec<Operation> {
        let filled = self.arrays.iter().filter(|array| !array.staged.fragments.is_empty());
        let cells = filled.map(|array| Operation::AddFragments {
            array: array.staged.array,
            fragments: array.staged.fragments.clone(),
        });
        let kept = self.arrays.iter().flat_map(|array| {
            let keep = |kept: &Kept| Operation::Keep { array: array.staged.array, kept: kept.clone(), near: None };
            array.kept_copies.iter().map(keep)
        });
        self.made.iter().cloned().chain(cells).chain(kept).collect()
    }

    fn commit(
        &mut self,
        End { context, store: target }: End<'_>,
        message: String,
        options: &CopyOptions<'_>,
    ) -> Result<Arc<Snapshot>> {
        let mut changes = Changes::new(self.operations()).with_message(Some(message));
        let outcome = if target.exists()? {
            if let Some(id) = check_free(target, options)? {
                changes.operations.insert(0, Operation::Remove { id });
            }
            commit_copying(context, target, &target.latest()?, changes, &mut StandardRules)
        } else {
            target.create(changes)
        };
        if outcome.as_ref().err().is_none_or(|e| e.kind() == ErrorKind::CommitUnknown) {
            self.arrays.iter_mut().for_each(|array| array.staged.keep_files());
        }
        outcome
    }
}

/// An Unsupported error if one of these fragments of the array at `path` lies on another base.
fn check_own(snapshot: &Snapshot, path: &str, fragments: &[Arc<Description>]) -> Result<()> {
    let on_base = fragments.iter().find_map(|d| match d.location.file {
        FileRef::OnBase(base, file) => Some((base, file)),
        _ => None,
    });
    on_base.map_or(Ok(()), |(base, file)| {
        let why = snapshot.bases().unreadable(base, file);
        Err(why.context(format!(
            "array {path} cannot be copied; a copy of the store with its history keeps what is said of it"
        )))
    })
}

/// What gives a node the metadata of `node`.
fn describing(node: &Node, id: Id) -> Result<Vec<Operation>> {
    let given = |all: &Metadata| all.iter().map(|(key, text)| (key.clone(), Some(text.clone()))).collect();
    let mut made = Vec::new();
    let metadata = node.metadata().all()?;
    if !metadata.is_empty() {
        made.push(Operation::SetMetadata { node: id, changes: given(&metadata) });
    }
    if let Node::Array(array) = node {
        for (field, metadata) in array.field_metadata()? {
            made.push(Operation::SetFieldMetadata { array: id, field, changes: given(&metadata) });
        }
    }
    Ok(made)
}

/// What creates an array at `path`, or a hidden one, for `state`. Nodes have the copies that `ids` says.
fn creating(
    state: &ArrayState,
    id: Id,
    path: String,
    ids: &HashMap<Id, Id>,
) -> Result<impl FnOnce(Schema) -> Operation + use<>> {
    let owner = state.owner().map(|owner| {
        let lost =
            || Error::corruption(format!("the array that the hidden array {} belongs to is missing", state.path()));
        ids.get(&owner).copied().ok_or_else(lost)
    });
    let (owner, name, ext) = (owner.transpose()?, state.name().to_owned(), state.ext().clone());
    Ok(move |schema| match owner {
        None => Operation::CreateArray { id, path, schema, ext },
        Some(owner) => Operation::CreateHidden { id, owner, name, schema, ext },
    })
}

/// What makes an array with the schemas and the domain of `state`. Labels are those that `own` gives; others are left out.
fn making(
    state: &ArrayState,
    id: Id,
    create: impl FnOnce(Schema) -> Operation,
    own: impl Fn(&Labels) -> Option<Labels>,
) -> Result<Vec<Operation>> {
    let schemas = state.schemas().all()?;
    let mut numbered = schemas.iter().map(|schema| schema.relabelled(&own)).zip(0u32..);
    let Some((schema, _)) = numbered.next() else {
        return Err(Error::corruption(format!("array {} has no schema", state.path())));
    };
    let mut operations = vec![create(schema)];
    operations.extend(numbered.map(|(schema, number)| Operation::AlterArray { id, number, schema }));
    for (range, dimension) in state.domain().ranges().iter().zip(0u32..) {
        let reached = schemas.iter().filter_map(|schema| schema.dims().get(dimension as usize)).map(|dim| dim.range());
        let (lo, hi) = reached.fold((u64::MAX, 0), |(lo, hi), own| (lo.min(own.lo), hi.max(own.hi)));
        if (lo, hi) != (range.lo, range.hi) {
            operations.push(Operation::Grow { array: id, dimension, range: *range });
        }
    }
    Ok(operations)
}

/// Where what lies at `path` comes to lie if `top` comes to lie at `target`; `None` if it does not lie there.
fn moved_path(path: &str, top: &str, target: &str) -> Option<String> {
    let rest = if top == "/" { path.strip_prefix('/')? } else { path.strip_prefix(top)? };
    match (rest, target) {
        ("", target) => Some(target.to_owned()),
        (rest, "/") if top == "/" => Some(format!("/{rest}")),
        (rest, target) if top == "/" => Some(format!("{target}/{rest}")),
        (rest, "/") if rest.starts_with('/') => Some(rest.to_owned()),
        (rest, target) if rest.starts_with('/') => Some(format!("{target}{rest}")),
        _ => None,
    }
}

fn copy_history(
    from: End<'_>,
    to: End<'_>,
    snapshot: &Arc<Snapshot>,
    options: &CopyOptions<'_>,
    call: &Call,
) -> Result<CopyReport> {
    if options.path != "/" || options.target_path != "/" || options.overwrite {
        return Err(Error::input(
            "with its history only a whole store can be copied, to a place where there is none: leave path, target_path and \
             overwrite out, or copy one version",
        ));
    }
    let oldest = from.store.floor()?.map_or(1, |floor| floor.version);
    let claim = Claim::held(from.context, from.store, oldest);
    let copier = HistoryCopier {
        source: from.store,
        target: to.store,
        pool: &from.context.pool,
        cancel: call.cancel.as_ref(),
        progress: call.progress.as_ref(),
        alive: &|| claim.touch(),
    };
    // Once all is copied the source may have forgotten the version.
    let (_, (arrays, fragments)) = from.store.settling(snapshot, counted)?;
    let done = copier.copy(snapshot.version())?;
    forget_queues(&to.store.storage().identity())?;
    let (source_version, version) = (snapshot.version(), done.newest);
    let (bytes, objects, versions) = (done.bytes, done.objects, done.versions);
    to.store.tell((Level::Info, "copy", "copied a history"), || {
        let number = Detail::Number;
        let source = Detail::Text(from.store.storage().describe());
        vec![
            ("source", source),
            ("version", number(version)),
            ("versions", number(versions)),
            ("objects", number(objects)),
            ("bytes", number(bytes)),
        ]
    });
    Ok(CopyReport { source_version, version, arrays, fragments, bytes, objects, versions })
}

/// How many arrays and fragments a version has.
fn counted(snapshot: &Snapshot) -> Result<(u64, u64)> {
    let (mut arrays, mut fragments) = (0, 0);
    for node in snapshot.nodes()? {
        if let Node::Array(array) = node {
            (arrays, fragments) = (arrays + 1, fragments + array.count_fragments());
        }
    }
    Ok((arrays, fragments))
}

#[cfg(test)]
mod tests {
    use super::moved_path;

    #[test]
    fn paths_move_with_the_node_above_them() {
        let cases = [
            ("/", "/", "/", Some("/")),
            ("/a/b", "/", "/", Some("/a/b")),
            ("/", "/", "/x", Some("/x")),
            ("/a/b", "/", "/x/y", Some("/x/y/a/b")),
            ("/a", "/a", "/", Some("/")),
            ("/a/b", "/a", "/", Some("/b")),
            ("/a/b", "/a", "/x", Some("/x/b")),
            ("/ab", "/a", "/x", None),
            ("/b", "/a", "/x", None),
            ("/", "/a", "/x", None),
        ];
        for (path, top, target, expected) in cases {
            assert_eq!(moved_path(path, top, target).as_deref(), expected, "{path} with {top} to {target}");
        }
    }
}
