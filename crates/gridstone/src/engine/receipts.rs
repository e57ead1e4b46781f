//! Writing in many processes and committing in one.
//!
//! A writer makes its fragments durable in files and hands a [`Receipt`] to whoever commits. That one looks at each file,
//! cheaply, and adds all of them in one version. Files of receipts that are never committed are removed by a vacuum.

use super::address::{store_at, store_on};
use super::content;
use super::sorted_copies::copy_packs;
use super::staged::settle;
use super::upkeep::grown;
use super::{Array, Call, Context, Staged};
use crate::base::{ByteRange, ByteSource, Entropy, Error, ErrorKind, FileRef, Files, Id, NeverCancel, Result, xxh3};
use crate::condition::Condition;
use crate::fragment::{self, Description, Fragment, FragmentKind, Mask};
use crate::runtime::SystemEntropy;
use crate::schema::{Region, Subarray};
use crate::storage::{Storage, data_name};
use crate::store::{
    ArrayState, Changes, CommitKey, Growth, Keyed, Operation, ReceiptRules, Snapshot, StandardRules, Store,
};
use std::sync::Arc;

pub use crate::store::Receipt;

/// Bytes at the end of a fragment that pin the rest of it.
const FOOTER_BYTES: u64 = 64;

impl Array {
    /// A receipt for staged fragments, whose files are left to whoever commits it. Small fragments are written to files now. Inside a
    /// transaction it is for an array that this has created: another transaction creates it too, and adds the receipt.
    ///
    /// # Errors
    /// Input (fragments of another array, not writable, inside a transaction that did not create it), Storage; nothing is left behind
    /// then.
    pub fn receipt(&self, staged: Vec<Staged>) -> Result<Receipt> {
        staged.iter().try_for_each(|s| self.check_commit(s))?;
        if !self.session().creates(self.id())? {
            self.check_outside("receipts of an array that is in the store cannot be written")?;
        }
        if staged.iter().any(Staged::has_key) {
            return Err(Error::input("a commit key is given with the commit of receipts, not when they are written"));
        }
        self.receipt_at(&self.state()?.0, staged)
    }

    /// A receipt for a delete of the cells in a region (`None`: the whole domain) that `condition` selects and that this handle sees,
    /// whenever it is committed: cells that others commit meanwhile stay, whatever they hold. Without any fragment if none is selected.
    ///
    /// # Errors
    /// Input (not writable; inside a transaction; a condition that does not fit the schema), Corruption, Storage, Cancelled; nothing is
    /// left behind then.
    pub fn receipt_where(&self, region: Option<&Region>, condition: &Condition, call: &Call) -> Result<Receipt> {
        self.check_outside("receipts cannot be written")?;
        let found = self.stage_delete_where(region, condition, call)?;
        self.receipt_at(&found.snapshot, vec![found.staged])
    }

    /// A receipt for what was staged with a look at `snapshot`.
    fn receipt_at(&self, snapshot: &Snapshot, mut staged: Vec<Staged>) -> Result<Receipt> {
        let (state, growth) = (snapshot.array_by_id(self.id())?, Staged::growth(staged.iter()));
        let receipt = receipt_of(self.store(), snapshot, &state, &mut staged, growth)?;
        staged.iter_mut().for_each(Staged::keep_files);
        Ok(receipt)
    }
}

/// A receipt for what was staged for an array of `snapshot`, with the growth of the domain that it needs. Small fragments are
/// written to files; all of these are left to `staged`.
pub(super) fn receipt_of(
    store: &Store,
    snapshot: &Snapshot,
    state: &ArrayState,
    staged: &mut [Staged],
    growth: Vec<Growth>,
) -> Result<Receipt> {
    let files = store.files();
    let (mut fragments, mut footers) = (Vec::new(), Vec::new());
    for fragment in staged.iter_mut().flat_map(|s| s.fragments.iter_mut()) {
        settle(files.as_ref(), fragment)?;
        if let FileRef::Data(id) = fragment.description.location.file {
            sync_deferred(store.storage().as_ref(), &data_name(id))?;
        }
        footers.push(match fragment.description.location.file {
            FileRef::Nowhere => 0,
            file => footer(files.open(file)?.as_ref())?,
        });
        fragments.push(fragment.clone());
    }
    Ok(Receipt {
        id: SystemEntropy.id(),
        store: snapshot.store(),
        array: state.id(),
        path: state.path().to_owned(),
        version: snapshot.version(),
        writer: format!("gridstone {}, process {}", env!("CARGO_PKG_VERSION"), std::process::id()),
        growth,
        fragments,
        footers,
    })
}

/// Makes a file durable that a receipt tells of: who commits it may be another process.
fn sync_deferred(storage: &dyn Storage, name: &str) -> Result<()> {
    if storage.defers_sync() { storage.sync(name) } else { Ok(()) }
}

fn footer(source: &dyn ByteSource) -> Result<u64> {
    let len = source.len();
    let range = ByteRange::new(len.saturating_sub(FOOTER_BYTES), len.min(FOOTER_BYTES));
    source.read_one(range).map(|bytes| xxh3(&bytes))
}

/// Commits `receipts`, of any arrays of the store at `uri`, in one version, and gives it. Where cells of several lie at one
/// place the one later in the list wins. Without any fragment nothing is committed and the newest version is given.
///
/// # Errors
/// Input (a receipt of another store, or given twice), Conflict (committed before; its array was removed), NotFound (its file
/// is gone; names it), Corruption (its file was changed), SnapshotExpired (written so long ago that nobody can tell whether
/// it was committed), CommitUnknown, Storage. The files stay, so that the others can be committed.
pub fn commit_receipts(context: &Context, uri: &str, receipts: &[Receipt], message: Option<String>) -> Result<u64> {
    commit_receipts_once(context, uri, receipts, message, None)
}

/// Commits receipts with a key; see [`commit_receipts`]. If a commit of the same receipts had the key before, nothing is
/// committed, and its version is given.
///
/// # Errors
/// Those of [`commit_receipts`]; Conflict if the key was given to other content.
pub fn commit_receipts_once(
    context: &Context,
    uri: &str,
    receipts: &[Receipt],
    message: Option<String>,
    key: Option<CommitKey>,
) -> Result<u64> {
    let store = store_at(context, uri)?;
    commit_in(context, &store, receipts, message, key)
}

/// Commits receipts to the store on `storage`; see [`commit_receipts`].
pub fn commit_receipts_on(
    context: &Context,
    storage: Arc<dyn Storage>,
    receipts: &[Receipt],
    message: Option<String>,
) -> Result<u64> {
    commit_in(context, &store_on(context, storage), receipts, message, None)
}

fn commit_in(
    context: &Context,
    store: &Arc<Store>,
    receipts: &[Receipt],
    message: Option<String>,
    key: Option<CommitKey>,
) -> Result<u64> {
    let mut rules = ReceiptRules::new(receipts)?;
    let mut newest = store.latest()?;
    if let Some(stranger) = receipts.iter().find(|r| r.store != newest.store()) {
        return Err(Error::input(format!(
            "the receipt {} is of the store with the id {}, {} has the id {}; commit it there. Nothing was committed",
            stranger.id,
            stranger.store,
            store.storage().describe(),
            newest.store()
        )));
    }
    let keyed = key.map(|key| Keyed { key, content: content::of_receipts(receipts.iter().map(|r| r.id)) });
    let operations = loop {
        if let Some(keyed) = &keyed
            && let Some(done) = store.done_before(&newest, keyed)?
        {
            return Ok(done.version);
        }
        match check_in(context, store, &newest, receipts, &rules) {
            Ok(operations) => break operations,
            // A vacuum has taken away what the version rests on, or the version.
            Err(e) if e.may_be_missing() && store.floor()?.is_some_and(|f| f.version > newest.root_version()) => {
                newest = store.latest()?;
            }
            Err(e) => return Err(e),
        }
    };
    if operations.is_empty() {
        return Ok(newest.version());
    }
    let grown = grown(&operations);
    let changes = Changes::new(operations).with_message(message).with_key(keyed);
    let done = store.commit_once(&newest, changes, &mut rules)?;
    copy_packs(context, store, &newest, &done.snapshot);
    context.look_after(store, &done.snapshot, grown);
    Ok(done.version)
}

/// What commits the receipts after `newest`; an error if they may not be.
fn check_in(
    context: &Context,
    store: &Store,
    newest: &Arc<Snapshot>,
    receipts: &[Receipt],
    rules: &ReceiptRules,
) -> Result<Vec<Operation>> {
    check_new(store, newest, receipts, rules)?;
    for receipt in receipts {
        newest.find_array(receipt.array)?.ok_or_else(|| gone(receipt, newest))?;
    }
    let changes = Changes::new(ReceiptRules::operations(receipts));
    StandardRules::check(newest, &changes)?;
    check_files(context, store, newest, receipts)?;
    Ok(changes.operations)
}

/// An error if one of the receipts was committed, or nobody can tell any more, since it was written.
fn check_new(store: &Store, newest: &Snapshot, receipts: &[Receipt], rules: &ReceiptRules) -> Result<()> {
    let Some(oldest) = receipts.iter().filter(|r| !r.fragments.is_empty()).min_by_key(|r| r.version) else {
        return Ok(());
    };
    let from = oldest.version.saturating_add(1);
    for (expected, record) in (from..).zip(store.history(from, newest.version())?) {
        let record = record?;
        if record.version != expected {
            return Err(Error::snapshot_expired(format!(
                "the receipt {} was written at version {}, and the log begins at {} now, so nobody can tell whether it was \
                 committed; look whether its cells are there, and else write them again",
                oldest.id, oldest.version, record.version
            )));
        }
        rules.check(&record)?;
    }
    Ok(())
}

/// An error unless the files of every receipt are there and as they were written.
pub(super) fn check_files(context: &Context, store: &Store, newest: &Snapshot, receipts: &[Receipt]) -> Result<()> {
    let files = store.files();
    let mut checks: Vec<(Arc<ArrayState>, Subarray, &fragment::Staged, u64)> = Vec::new();
    for receipt in receipts {
        let state = newest.array_by_id(receipt.array)?;
        let domain = receipt.reach(state.domain());
        let parts = receipt.fragments.iter().zip(&receipt.footers);
        checks.extend(parts.map(|(f, footer)| (Arc::clone(&state), domain.clone(), f, *footer)));
    }
    let check = |(state, domain, fragment, footer): (Arc<ArrayState>, Subarray, &fragment::Staged, u64)| {
        check_file(files.as_ref(), (&state, &domain), fragment, footer)
    };
    context.pool.map(checks, &NeverCancel, check).map(|_| ())
}

/// An error unless the file of a fragment is as it was written. The array comes with the domain that it will have.
fn check_file(
    files: &dyn Files,
    (state, domain): (&ArrayState, &Subarray),
    fragment: &fragment::Staged,
    expected: u64,
) -> Result<()> {
    let description = &fragment.description;
    if description.location.file == FileRef::Nowhere {
        return Ok(());
    }
    let name = data_name(description.id);
    let schema = state.schemas().get(description.schema)?.ok_or_else(|| {
        Error::input(format!(
            "{name} was written with schema {}, the array has {}",
            description.schema,
            state.schemas().count()
        ))
    })?;
    let schema = schema.reaching(domain);
    let source = files.open(description.location.file).map_err(|e| match e.kind() {
        ErrorKind::NotFound => Error::not_found(format!(
            "the file {name} of a receipt for {} is gone, vacuumed or deleted; write its cells again. Nothing was committed",
            state.path()
        ))
        .with_source(e),
        _ => e,
    })?;
    let changed = |why: String| {
        Error::corruption(format!(
            "the file {name} of a receipt for {} was changed: {why}; nothing was committed",
            state.path()
        ))
    };
    if source.len() != description.location.len {
        return Err(changed(format!("{} bytes were written, it has {}", description.location.len, source.len())));
    }
    if footer(source.as_ref())? != expected {
        return Err(changed("its last bytes are others".to_owned()));
    }
    let opened = match description.over {
        Some(over) => {
            let below = state.find(over, &description.bounds)?;
            check_mask(below.as_ref(), source.as_ref(), description, over)
        }
        None => Fragment::open(source, Arc::new(description.clone()), &schema).map(|_| ()),
    };
    opened.map_err(|e| match e.kind() {
        ErrorKind::Storage | ErrorKind::Access | ErrorKind::Cancelled => e,
        _ => changed(e.message().to_owned()).with_source(e),
    })
}

/// An error unless `source` is the mask over the fragment `over` that `description` speaks of; `below` is that fragment in the array.
fn check_mask(below: Option<&Description>, source: &dyn ByteSource, description: &Description, over: Id) -> Result<()> {
    let wrong = || Error::corruption(format!("it is not the mask over fragment {over} that the receipt describes"));
    let below = below.ok_or_else(wrong)?;
    let whole = description.location.offset == 0 && description.location.file == FileRef::Data(description.id);
    // A tile has a cell at least, and three words beside its bits.
    let len_max = below.cells.saturating_mul(25).saturating_add(1 << 12);
    let fits = below.kind == FragmentKind::Sparse && below.bounds == description.bounds && source.len() <= len_max;
    if !whole || !fits || description.kind != FragmentKind::Mask {
        return Err(wrong());
    }
    let bytes = source.read_one(ByteRange::new(0, source.len()))?;
    Mask::decode(&bytes, over, description.cells, below.cells).map(|_| ())
}

fn gone(receipt: &Receipt, newest: &Snapshot) -> Error {
    Error::conflict(format!(
        "the receipt {} is for the array {} (id {}), which version {} does not have any more; an array created at its path \
         later is another one. Nothing was committed",
        receipt.id,
        receipt.path,
        receipt.array,
        newest.version()
    ))
}

impl Receipt {
    /// Cells in its fragments.
    pub fn cells(&self) -> u64 {
        self.fragments.iter().map(|f| f.description.cells).sum()
    }

    /// Bytes of its fragments.
    pub fn bytes(&self) -> u64 {
        self.fragments.iter().map(|f| f.description.location.len).sum()
    }

    /// The ids of its fragments, which are those of their files.
    pub fn fragment_ids(&self) -> Vec<Id> {
        self.fragments.iter().map(|f| f.description.id).collect()
    }
}
