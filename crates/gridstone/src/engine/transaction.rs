//! Transactions: changes of any number of arrays in one commit, all or nothing.
//!
//! A transaction reads the snapshot that it began with and, above every order of it, what it has staged so far. Small staged
//! fragments wait in memory for the record, large ones lie in files that go with the transaction unless it is committed.

mod keyed;
mod metadata;
mod receipts;
mod rules;

use super::address::{store_at, store_on};
use super::claim::{Claim, View};
use super::content::{KeyedContent, TransactionContent};
use super::reading::SnapshotFiles;
use super::session::{Session, Submission, settled};
use super::sorted_copies::copy_packs;
use super::staged::settle;
use super::staged_reads::{StagedCache, StagedFiles};
use super::upkeep::grown;
use super::{Array, Context, Staged};
use crate::base::{ByteSource, Cache, Entropy, Error, ErrorKind, Files, Id, Result};
use crate::runtime::{Owner, SystemEntropy};
use crate::schema::Schema;
use crate::storage::Storage;
use crate::store::{Changes, Committed, Operation, Provisional, Reads, Snapshot, Store};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes of small fragments that wait for a transaction's record, about. Whoever reads the record reads them.
const BODIES_BYTES_MAX: u64 = 8 << 20;

/// What may happen between a transaction's snapshot and its commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Anything that does not make its changes impossible, or change what it has both read and written.
    Snapshot,
    /// Nothing that changes what it has read: as if transactions had run one after the other.
    Serializable,
}

impl Isolation {
    /// The isolation named "snapshot" or "serializable".
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "snapshot" => Ok(Self::Snapshot),
            "serializable" => Ok(Self::Serializable),
            other => Err(Error::input(format!("unknown isolation {other:?}; it is \"snapshot\" or \"serializable\""))),
        }
    }
}

/// A transaction; clones are handles of the same one. Threads may stage through one at the same time.
///
/// ```
/// use gridstone::{Attribute, Call, ColumnView, Context, Datatype, Dimension, Isolation, Options, Order, Schema};
/// use gridstone::{SchemaOptions, Transaction};
///
/// # fn main() -> gridstone::Result<()> {
/// let context = Context::new(&Options::default())?;
/// let series = || {
///     let dim = Dimension::new("i", Datatype::Int64, "0", "2", None)?;
///     let attr = Attribute::new("v", Datatype::Int32, false, None, "auto")?;
///     Schema::new(vec![dim], vec![attr], SchemaOptions::default())
/// };
/// gridstone::create_group(&context, "mem://both", "/")?;
///
/// // Two arrays and their cells in one version: a reader sees both, or neither.
/// let both = Transaction::begin(&context, "mem://both", Isolation::Snapshot)?;
/// for (path, values) in [("/a", [1, 2, 3]), ("/b", [10, 20, 30])] {
///     let array = both.create_array(path, series()?, false)?;
///     let data = vec![("v".to_owned(), ColumnView::of(&values))];
///     array.commit(vec![array.stage_box(None, &data, Order::Row, &Call::default())?], None)?;
/// }
/// assert!(!gridstone::open(&context, "mem://both", "/", false, gridstone::At::Latest)?.into_group()?.contains("a")?);
/// let version = both.commit(Some("both series".to_owned()))?;
/// assert_eq!(version, both.base_version() + 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Transaction {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    context: Context,
    store: Arc<Store>,
    base: Arc<Snapshot>,
    isolation: Isolation,
    /// The store's files, and the one that staged fragments lie in.
    files: Arc<StagedFiles>,
    cache: Arc<StagedCache>,
    /// The process that it belongs to: a forked child has a copy, whose lock may be held for ever.
    owner: Owner,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` once it has ended.
    open: Option<Open>,
    /// What is seen after the end.
    view: Arc<Snapshot>,
    end: &'static str,
    committed: Option<u64>,
}

#[derive(Debug)]
struct Open {
    /// On the base; goes when the transaction ends.
    claim: Arc<Claim>,
    provisional: Provisional,
    staged: Vec<Staged>,
    reads: Reads,
    /// Arrays in which something was deleted of the order of the base.
    deletes: BTreeSet<Id>,
    /// What was staged, if the commit has a key.
    keyed: Option<KeyedContent>,
}

impl Transaction {
    /// Begins a transaction on the newest version of the store at `uri`.
    ///
    /// # Errors
    /// NotFound (no store), Corruption, Unsupported (newer format), Storage.
    pub fn begin(context: &Context, uri: &str, isolation: Isolation) -> Result<Self> {
        Self::begin_in(context, store_at(context, uri)?, isolation)
    }

    /// Begins a transaction in the store on `storage`; see [`Transaction::begin`].
    pub fn begin_on(context: &Context, storage: Arc<dyn Storage>, isolation: Isolation) -> Result<Self> {
        Self::begin_in(context, store_on(context, storage), isolation)
    }

    fn begin_in(context: &Context, store: Arc<Store>, isolation: Isolation) -> Result<Self> {
        Ok(Self::over(context, store.clone(), store.latest()?, isolation))
    }

    /// Begins another transaction on the newest version of the same store.
    ///
    /// # Errors
    /// Corruption, Storage.
    pub fn again(&self) -> Result<Self> {
        let Shared { context, store, base, isolation, .. } = self.shared.as_ref();
        Ok(Self::over(context, store.clone(), store.refresh(base)?, *isolation))
    }

    fn over(context: &Context, store: Arc<Store>, base: Arc<Snapshot>, isolation: Isolation) -> Self {
        let provisional = Provisional::new(base.clone());
        let (file, source) = provisional.log_file();
        let files = Arc::new(StagedFiles { store: store.files(), file, source });
        let cache = Arc::new(StagedCache::new(context.cache.clone()));
        let claim = View::new(context, &store, base.clone()).claim;
        let (staged, reads, deletes) = (Vec::new(), Reads::default(), BTreeSet::new());
        let open = Open { claim, provisional, staged, reads, deletes, keyed: None };
        let state = State { open: Some(open), view: base.clone(), end: "", committed: None };
        let (context, owner, state) = (context.clone(), Owner::here(), Mutex::new(state));
        Self { shared: Arc::new(Shared { context, store, base, isolation, files, cache, owner, state }) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `work` gives, with the open transaction. An Input error if it has ended, or belongs to another process.
    fn with<R>(&self, work: impl FnOnce(&mut Open) -> Result<R>) -> Result<R> {
        if !self.shared.owner.is_here() {
            return Err(Error::input(
                "a transaction belongs to the process that began it; begin another one in this process",
            ));
        }
        let mut state = self.lock();
        let end = state.end;
        match &mut state.open {
            Some(open) => work(open),
            None => Err(Error::input(format!("this transaction {end}; begin another one, and open its arrays there"))),
        }
    }

    /// What it was opened with.
    pub fn context(&self) -> &Context {
        &self.shared.context
    }

    /// The store's URI.
    pub fn uri(&self) -> String {
        self.shared.store.storage().describe()
    }

    /// The version that it reads.
    pub fn base_version(&self) -> u64 {
        self.shared.base.version()
    }

    /// The version that it made; `None` before it is committed.
    pub fn version(&self) -> Option<u64> {
        self.lock().committed
    }

    /// How isolated it is.
    pub fn isolation(&self) -> Isolation {
        self.shared.isolation
    }

    /// Whether it has neither been committed nor aborted.
    pub fn is_open(&self) -> bool {
        self.check_open().is_ok()
    }

    fn check_open(&self) -> Result<()> {
        self.with(|_| Ok(()))
    }

    /// The store as the transaction sees it.
    fn view(&self) -> Arc<Snapshot> {
        if !self.shared.owner.is_here() {
            return self.shared.base.clone();
        }
        let state = self.lock();
        state.open.as_ref().map_or(&state.view, |open| open.provisional.view()).clone()
    }

    /// Remembers a read of cells or metadata.
    fn note(&self, read: impl FnOnce(&mut Reads)) {
        // After the end nothing is read.
        let _ = self.with(|open| {
            read(&mut open.reads);
            Ok(())
        });
    }

    /// Remembers that nodes were looked up in the base, if it matters. An Input error if the transaction has ended.
    fn note_nodes(&self, read: impl Fn(&mut Reads, &Snapshot) -> Result<()>) -> Result<()> {
        if self.shared.isolation != Isolation::Serializable {
            return self.check_open();
        }
        self.with(|open| {
            let Open { provisional, reads, .. } = open;
            let base = provisional.base().clone();
            let (settled, ()) = self.shared.store.settling(&base, |base| read(reads, base))?;
            provisional.settle_base(settled);
            Ok(())
        })
    }

    /// `view` on another root, if a vacuum has taken away what it rests on.
    fn rested(&self, view: &Arc<Snapshot>) -> Result<Option<Arc<Snapshot>>> {
        let store = &self.shared.store;
        loop {
            let Some(settled) = store.resettled(view)? else { return Ok(None) };
            match store.resting_on(view, &settled) {
                // The next vacuum has taken that away too.
                Err(e) if e.may_be_missing() && store.floor()?.is_some_and(|f| f.version > settled.root_version()) => {}
                rested => return Ok(Some(rested?).filter(|rested| !Arc::ptr_eq(rested, view))),
            }
        }
    }

    /// Stages what `plan` makes of the view, with the files that it needs, and notes what was `given` for it if the commit has a key. If a
    /// vacuum has taken away what the view rests on, the same version is opened anew.
    fn stage(
        &self,
        files: &mut Vec<Staged>,
        plan: impl Fn(&Snapshot) -> Result<Vec<Operation>>,
        given: impl FnOnce(&mut TransactionContent),
    ) -> Result<()> {
        self.with(|open| {
            loop {
                let view = open.provisional.view().clone();
                match plan(&view).and_then(|operations| open.provisional.stage(operations, &SystemEntropy)) {
                    Err(e) if e.may_be_missing() => {
                        let rested = self.rested(&view)?.ok_or(e)?;
                        open.provisional.rest(&view, rested);
                    }
                    outcome => {
                        outcome?;
                        open.staged.append(files);
                        open.give(given);
                        return Ok(());
                    }
                }
            }
        })
    }

    /// From now on `rested` is seen instead of `view`, the same state on another root, unless something was staged since.
    fn keep(&self, view: &Arc<Snapshot>, rested: &Arc<Snapshot>) {
        if !self.shared.owner.is_here() {
            return;
        }
        let mut state = self.lock();
        if let Some(open) = &mut state.open {
            open.provisional.rest(view, rested.clone());
        } else if Arc::ptr_eq(&state.view, view) {
            state.view = rested.clone();
        }
    }

    /// Where its reads of `array` find bytes and what was decoded, under a claim on its base.
    fn reading_under(&self, claim: Arc<Claim>, array: Id) -> (Arc<dyn Files>, Arc<dyn Cache>) {
        let Shared { store, base, files, cache, .. } = self.shared.as_ref();
        claim.touch();
        let below = SnapshotFiles {
            files: store.files(),
            store: store.clone(),
            snapshot: base.clone(),
            array,
            claim,
            moved: OnceLock::new(),
        };
        (Arc::new(files.over(Arc::new(below))), cache.clone())
    }

    /// What `look` finds in what the transaction sees, and the view that it was found in. If a vacuum has taken away what that
    /// rests on, the same version is opened anew.
    fn looked<T>(&self, look: impl Fn(&Snapshot) -> Result<T>) -> Result<(Arc<Snapshot>, T)> {
        settled(self, &self.view(), look)
    }

    /// The array at `path`, for reading and writing within the transaction.
    ///
    /// # Errors
    /// NotFound if there is none, or a group.
    pub fn array(&self, path: &str) -> Result<Array> {
        self.note_nodes(|reads, base| reads.note_node(base, path))?;
        let (view, id) = self.looked(|view| Ok(view.array(path)?.id()))?;
        let Shared { context, store, .. } = self.shared.as_ref();
        Ok(Array::new(context.clone(), store.clone(), view, id, true, false).through(Arc::new(self.clone())))
    }

    /// What lies at `path`: "array", "group" or `None`.
    ///
    /// # Errors
    /// Input (the transaction has ended), Corruption, Storage.
    pub fn kind(&self, path: &str) -> Result<Option<&'static str>> {
        self.note_nodes(|reads, base| reads.note_node(base, path))?;
        Ok(self.looked(|view| view.find(path))?.1.map(|node| node.kind()))
    }

    /// Name and kind of every child of the group at `path`, sorted by name.
    ///
    /// # Errors
    /// NotFound (no group lies there), Input (the transaction has ended), Corruption, Storage.
    pub fn children(&self, path: &str) -> Result<Vec<(String, &'static str)>> {
        self.note_nodes(|reads, base| {
            reads.note_node(base, path)?;
            reads.note_listing(base, path)
        })?;
        let (_, children) = self.looked(|view| view.children(path))?;
        Ok(children.into_iter().map(|(name, child)| (name, child.kind())).collect())
    }

    /// Creates an array, and the groups above it that are missing; with `overwrite` in the place of what is there.
    ///
    /// # Errors
    /// Exists, Input (the path).
    pub fn create_array(&self, path: &str, schema: Schema, overwrite: bool) -> Result<Array> {
        self.create_array_as(SystemEntropy.id(), path, schema, overwrite)
    }

    /// Creates a group, and those above it that are missing. One that is there is left as it is.
    ///
    /// # Errors
    /// Exists if there is an array, Input (the path).
    pub fn create_group(&self, path: &str) -> Result<()> {
        if self.kind(path)? == Some("group") {
            return self.with(|open| {
                open.give(|content| content.change("create group", &[path]));
                Ok(())
            });
        }
        let create = Operation::CreateGroup { id: SystemEntropy.id(), path: path.to_owned(), ext: None };
        self.create(path, &create, false, |content| content.change("create group", &[path]))
    }

    fn create(
        &self,
        path: &str,
        create: &Operation,
        overwrite: bool,
        given: impl FnOnce(&mut TransactionContent),
    ) -> Result<()> {
        self.note_nodes(|reads, base| reads.note_node(base, path))?;
        let plan = |view: &Snapshot| match view.find(path)?.map(|node| node.id()) {
            None => Ok(vec![create.clone()]),
            Some(id) if overwrite => Ok(vec![Operation::Remove { id }, create.clone()]),
            Some(_) => Err(Error::exists(format!(
                "{path} exists in the store, or was created in this transaction; use it, or pass overwrite=True to replace it"
            ))),
        };
        self.stage(&mut Vec::new(), plan, given)
    }

    /// Removes what lies at `path` and everything below it.
    ///
    /// # Errors
    /// NotFound; Input for the root, which can only be replaced.
    pub fn remove(&self, path: &str) -> Result<()> {
        self.note_nodes(|reads, base| reads.note_node(base, path))?;
        if path == "/" {
            return Err(Error::input(
                "the root of a store cannot be removed; create(\"/\", …, overwrite=True) replaces it",
            ));
        }
        let plan = |view: &Snapshot| Ok(vec![Operation::Remove { id: view.node(path)?.id() }]);
        self.stage(&mut Vec::new(), plan, |content| content.change("remove", &[path]))
    }

    /// Moves what lies at `from`, with everything below it, to the free path `to`; groups above that are missing are created.
    ///
    /// # Errors
    /// NotFound; Exists; Input for the root, and for a move of a group into itself.
    pub fn move_node(&self, from: &str, to: &str) -> Result<()> {
        self.note_nodes(|reads, base| {
            reads.note_node(base, from)?;
            reads.note_node(base, to)
        })?;
        let plan = |view: &Snapshot| {
            let id = view.node(from)?.id();
            Ok(vec![Operation::Move { id, from: from.to_owned(), path: to.to_owned() }])
        };
        self.stage(&mut Vec::new(), plan, |content| content.change("move", &[from, to]))
    }

    /// Commits all that was staged in one version, and gives it; without changes the version that was read. The transaction
    /// has ended afterwards, whatever the outcome. Unless the commit happened, or may have, its files are removed.
    ///
    /// With a key that a commit with the same statements had before, nothing is committed, and its version is given.
    ///
    /// # Errors
    /// Conflict if its key was given to other content. Conflict if another commit made it impossible, wrote into what this one has both
    /// read and written or, serializable, changed what it has read; Exists, NotFound; CommitUnknown; SnapshotExpired if what came in
    /// between cannot be told any more; Storage.
    pub fn commit(&self, message: Option<String>) -> Result<u64> {
        let Open { provisional, staged, reads, deletes, claim, keyed } = self.end("failed to commit")?;
        let (base, keyed) = (provisional.base().clone(), keyed.map(KeyedContent::finish));
        if let Some(done) = self.done_before(&base, keyed.as_ref())? {
            return Ok(self.committed(&base, &done, BTreeSet::new()));
        }
        let (view, removed) = settled(self, provisional.view(), |view| provisional.removed(view))?;
        let operations = provisional.into_operations(&removed);
        let changes = Changes::new(operations).with_message(message).with_key(keyed);
        let grown = grown(&changes.operations);
        let outcome = self.commit_changes(&base, changes, |changes| self.rules(reads, changes, &view, &claim, deletes));
        let keeps = match &outcome {
            Ok(done) => !done.is_repeat,
            Err(e) => e.kind() == ErrorKind::CommitUnknown,
        };
        if keeps {
            // Files of arrays that were removed again go.
            let lives = |s: &Staged| !removed.contains(&s.array);
            staged.into_iter().filter(lives).for_each(|mut s| s.keep_files());
        }
        Ok(self.committed(&base, &outcome?, grown))
    }

    /// Takes note that it is committed, after `base`, and gives its version.
    fn committed(&self, base: &Snapshot, done: &Committed, grown: BTreeSet<Id>) -> u64 {
        let Committed { snapshot: newer, version, .. } = done;
        {
            let mut state = self.lock();
            (state.end, state.committed) = ("was committed", Some(*version));
        }
        let Shared { context, store, .. } = self.shared.as_ref();
        copy_packs(context, store, base, newer);
        context.look_after(store, newer, grown);
        *version
    }

    /// Gives up all that was staged and removes its files. One that has ended stays as it is.
    pub fn abort(&self) {
        // The files go with what is staged, outside of the lock.
        let _ = self.end("was aborted");
    }

    fn end(&self, end: &'static str) -> Result<Open> {
        self.check_open()?;
        let mut state = self.lock();
        let ended = |state: &State| Error::input(format!("this transaction {}; begin another one", state.end));
        let Some(open) = state.open.take() else { return Err(ended(&state)) };
        (state.view, state.end) = (open.provisional.view().clone(), end);
        Ok(open)
    }
}

impl Session for Transaction {
    fn is_transaction(&self) -> bool {
        true
    }

    fn wants_content(&self) -> bool {
        self.with(|open| Ok(open.keyed.is_some())).unwrap_or(false)
    }

    fn check_open(&self) -> Result<()> {
        Self::check_open(self)
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        self.view()
    }

    /// It stays at the version that it began with.
    fn move_to(&self, _: Arc<Snapshot>) {}

    fn settle(&self, view: &Arc<Snapshot>, look: &mut dyn FnMut(&Snapshot) -> Result<()>) -> Result<Arc<Snapshot>> {
        let mut view = Arc::clone(view);
        loop {
            let error = match look(&view) {
                Err(e) if e.may_be_missing() => e,
                outcome => return outcome.map(|()| view),
            };
            let rested = self.rested(&view)?.ok_or(error)?;
            self.keep(&view, &rested);
            view = rested;
        }
    }

    fn reading(&self, array: Id, _: &Arc<Snapshot>) -> (Arc<dyn Files>, Arc<dyn Cache>) {
        let Shared { context, store, base, .. } = self.shared.as_ref();
        let held =
            if self.shared.owner.is_here() { self.lock().open.as_ref().map(|open| open.claim.clone()) } else { None };
        self.reading_under(held.unwrap_or_else(|| View::new(context, store, base.clone()).claim), array)
    }

    fn note(&self, read: &mut dyn FnMut(&mut Reads)) {
        Self::note(self, |reads| read(reads));
    }

    fn note_nodes(&self, read: &dyn Fn(&mut Reads, &Snapshot) -> Result<()>) -> Result<()> {
        Self::note_nodes(self, read)
    }

    fn make_room(&self, staged: &mut [Staged]) -> Result<()> {
        let (_, held) = self.with(|open| Ok(open.provisional.log_file()))?;
        if held.len() < BODIES_BYTES_MAX {
            return Ok(());
        }
        let mut fragments = staged.iter_mut().flat_map(|s| s.fragments.iter_mut());
        fragments.try_for_each(|fragment| settle(self.shared.files.as_ref(), fragment))
    }

    fn submit(&self, changes: Changes, mut staged: Vec<Staged>) -> Result<Submission> {
        if changes.message.is_some() {
            return Err(Error::input(
                "a transaction has one message, given when it begins; leave the message of the write out",
            ));
        }
        for operation in &changes.operations {
            if let Operation::AddFragments { array, fragments } = operation {
                self.shared.cache.keep(*array, fragments.iter().map(|f| f.description.id));
            }
        }
        let bodies: Vec<u128> = staged.iter().filter_map(|s| s.given().map(|given| given.body)).collect();
        let given = |content: &mut TransactionContent| {
            for operation in &changes.operations {
                match (operation.node(), operation) {
                    (None, Operation::CreateHidden { id, owner, name, schema, .. }) => {
                        content.hide(*id, *owner, name, schema);
                    }
                    (None, _) => {}
                    (Some(id), Operation::AddFragments { .. }) => {
                        bodies.iter().for_each(|body| content.statement(id, *body));
                    }
                    (Some(id), other) => content.operation(id, other),
                }
            }
        };
        self.stage(&mut staged, |_| Ok(changes.operations.clone()), given)?;
        Ok(Submission::Kept(self.base_version()))
    }

    fn give(&self, array: Id, body: u128) -> Result<()> {
        self.with(|open| {
            open.give(|content| content.statement(array, body));
            Ok(())
        })
    }

    fn creates(&self, array: Id) -> Result<bool> {
        self.with(|open| Ok(open.provisional.base().find_array(array)?.is_none()))
    }

    fn deletes_as_of_base(&self, array: Id) -> Result<()> {
        self.with(|open| {
            open.deletes.insert(array);
            Ok(())
        })
    }

    fn another(&self) -> Arc<dyn Session> {
        Arc::new(self.clone())
    }
}
