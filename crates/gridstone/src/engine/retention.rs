//! Keeping and forgetting versions: tags, and vacuum. Both are about the store as a whole, whatever handle they are asked of.

use super::address::{look_at, store_at};
use super::sorted_copies::commit_copying;
use super::{Array, At, Call, Context, Group, Opened, open};
use crate::base::{Error, ErrorKind, Result};
use crate::maintain::{StoreUsage, VacuumOptions, VacuumReport, forget, usage, vacuum};
use crate::store::{Changes, Operation, Snapshot, StandardRules, Store};
use std::sync::Arc;

impl Array {
    /// Forgets versions that nobody wants any more and deletes what only they named, in the whole store; the handle moves to
    /// the newest version, unless it was opened at one.
    ///
    /// # Errors
    /// Input (not writable, impossible options), Corruption (nothing was deleted that is named), Storage, Cancelled.
    pub fn vacuum(&self, options: &VacuumOptions, call: &Call) -> Result<VacuumReport> {
        if !options.dry_run {
            self.check_writable()?;
            // This handle needs no older version itself.
            self.refresh()?;
        }
        let report = vacuum(self.store(), options, call.cancel.as_ref(), call.progress.as_ref())?;
        if report.committed.is_some() || !options.dry_run && report.hidden > 0 {
            self.refresh()?;
        }
        Ok(report)
    }

    /// The store's tags at this version: names with the versions that they keep, sorted. A writable handle that is in no
    /// transaction shows those of the newest version: tags are about the store, and such a handle follows it.
    pub fn tags(&self) -> Result<Vec<(String, u64)>> {
        let (store, snapshot) = (self.store(), self.snapshot());
        if self.writable() && !self.in_transaction() {
            let newest = store.refresh(&snapshot)?;
            let (_, tags) = store.settling_newest(newest, |newest| newest.retained().tags())?;
            return Ok(tags.into_iter().collect());
        }
        tags_of(store, &snapshot)
    }
}

impl Group {
    /// Vacuums the store; see [`Array::vacuum`].
    pub fn vacuum(&self, options: &VacuumOptions, call: &Call) -> Result<VacuumReport> {
        vacuum(self.store(), options, call.cancel.as_ref(), call.progress.as_ref())
    }

    /// The store's tags at this version; see [`Array::tags`].
    pub fn tags(&self) -> Result<Vec<(String, u64)>> {
        tags_of(self.store(), self.snapshot())
    }
}

fn tags_of(store: &Store, snapshot: &Arc<Snapshot>) -> Result<Vec<(String, u64)>> {
    let (_, tags) = store.settling(snapshot, |snapshot| snapshot.retained().tags())?;
    Ok(tags.into_iter().collect())
}

/// Gives `version` (`None`: the newest) of the store at `uri` a name, which keeps it; with `replace` a name in use is moved.
/// Gives the version named.
///
/// # Errors
/// Exists (the name is in use), NotFound (no store, no such version), SnapshotExpired (it has been vacuumed), Input (an
/// impossible name), Storage.
///
/// ```
/// use gridstone::engine::{open_tagged, tag};
/// use gridstone::{Context, Options};
///
/// # fn main() -> gridstone::Result<()> {
/// let context = Context::new(&Options::default())?;
/// let root = gridstone::create_group(&context, "mem://tagged", "/")?;
/// tag(&context, "mem://tagged", "as delivered", None, false)?;
/// root.create_group("later")?;
///
/// let delivered = open_tagged(&context, "mem://tagged", "/", "as delivered")?.into_group()?;
/// assert!(!delivered.contains("later")? && root.refreshed()?.contains("later")?);
/// # Ok(())
/// # }
/// ```
pub fn tag(context: &Context, uri: &str, name: &str, version: Option<u64>, replace: bool) -> Result<u64> {
    tag_in(context, &*store_at(context, uri)?, name, version, replace)
}

/// As [`tag`], in a store.
pub(super) fn tag_in(context: &Context, store: &Store, name: &str, version: Option<u64>, replace: bool) -> Result<u64> {
    let newest = store.latest()?;
    let version = version.unwrap_or(newest.version());
    // What the state says of vacuums is not all: that of a copied history may end before the vacuum that its floor is from.
    if version < newest.version()
        && let Err(unknown) = store.at_version(version)
        && unknown.kind() != ErrorKind::NotFound
    {
        return Err(unknown);
    }
    let operation = Operation::Tag { name: name.to_owned(), version, replace };
    commit_copying(context, store, &newest, Changes::new(vec![operation]), &mut StandardRules)?;
    Ok(version)
}

/// Takes a name away; gives the version that it named.
///
/// # Errors
/// NotFound (no store, no such tag), Conflict (another commit moved it), Storage.
pub fn untag(context: &Context, uri: &str, name: &str) -> Result<u64> {
    untag_in(context, &*store_at(context, uri)?, name)
}

/// As [`untag`], in a store.
pub(super) fn untag_in(context: &Context, store: &Store, name: &str) -> Result<u64> {
    let (newest, version) = tagged(store, name)?;
    let operation = Operation::Untag { name: name.to_owned(), version };
    commit_copying(context, store, &newest, Changes::new(vec![operation]), &mut StandardRules)?;
    Ok(version)
}

/// The newest version of a store, and the version that has the tag `name` there; NotFound names the tags that there are.
pub(super) fn tagged(store: &Store, name: &str) -> Result<(Arc<Snapshot>, u64)> {
    let (newest, tags) = look_at(store, At::Latest, |newest| newest.retained().tags())?;
    let version = tags.get(name).copied().ok_or_else(|| {
        let known: Vec<String> = tags.keys().take(20).map(|tag| format!("{tag:?}")).collect();
        let known = if known.is_empty() { "it has none".to_owned() } else { format!("its tags: {}", known.join(", ")) };
        Error::not_found(format!("the store has no version tagged {name:?}; {known}"))
    })?;
    Ok((newest, version))
}

/// Opens what lies at `path` in the version tagged `name`, read-only.
///
/// # Errors
/// NotFound (no such tag), those of [`open`].
pub fn open_tagged(context: &Context, uri: &str, path: &str, name: &str) -> Result<Opened> {
    let (_, version) = tagged(&*store_at(context, uri)?, name)?;
    open(context, uri, path, false, At::Version(version))
}

impl Array {
    /// The same array, read-only, at the version tagged `name`.
    ///
    /// # Errors
    /// NotFound (no such tag), those of [`Array::at`].
    pub fn at_tag(&self, name: &str) -> Result<Self> {
        self.at(At::Version(tagged(self.store(), name)?.1))
    }

    /// Gives a version of the store a name; see [`tag`]. The handle moves to the version that has the tag.
    ///
    /// # Errors
    /// Input (not writable), those of [`tag`].
    pub fn tag(&self, name: &str, version: Option<u64>, replace: bool) -> Result<u64> {
        self.check_writable()?;
        let version = tag_in(self.context(), self.store(), name, version, replace)?;
        self.refresh()?;
        Ok(version)
    }

    /// Takes a name away; see [`untag`].
    ///
    /// # Errors
    /// Input (not writable), those of [`untag`].
    pub fn untag(&self, name: &str) -> Result<u64> {
        self.check_writable()?;
        let version = untag_in(self.context(), self.store(), name)?;
        self.refresh()?;
        Ok(version)
    }
}

/// Forgets old versions of the copy of a history at `uri`, without a commit, so that it can be brought up to date afterwards.
///
/// # Errors
/// Those of [`Array::vacuum`]; NotFound if there is no store.
pub fn forget_copied(context: &Context, uri: &str, options: &VacuumOptions, call: &Call) -> Result<VacuumReport> {
    let store = store_at(context, uri)?;
    forget(&store, options, call.cancel.as_ref(), call.progress.as_ref())
}

/// What the store at `uri` takes, and what a vacuum with these options would free. Nothing is written but a temporary object, to ask
/// for the storage's time.
///
/// # Errors
/// NotFound (no store), Corruption (the log or the manifest cannot be read), Storage, Cancelled.
pub fn store_usage(
    context: &Context,
    uri: &str,
    options: &VacuumOptions,
    call: &Call,
) -> Result<(StoreUsage, VacuumReport)> {
    let (store, options) = (store_at(context, uri)?, VacuumOptions { dry_run: true, ..*options });
    let taken = usage(&store, call.cancel.as_ref())?;
    Ok((taken, vacuum(&store, &options, call.cancel.as_ref(), call.progress.as_ref())?))
}
