//! What a store provides for a vacuum, and for readers and writers that a vacuum has overtaken.
//!
//! A snapshot that was opened before the floor moved may be based on a root below the floor, though its version is
//! kept. That root's pages, and records that hold its small fragments, may be gone. The version is then opened anew
//! ([`Store::resettled`]): it is based on the floor's root, which holds all of them. A snapshot that follows the record
//! in which a vacuum condemned files is based on a root from the floor on, since that record names one.

use super::floor::Floor;
use super::fold::{Moved, fold_moving, inline_by_version};
use super::handle::{OPENINGS, Store, expired};
use super::lease::Lease;
use super::operation::{Recorded, Removed};
use super::record::Record;
use super::shape::RootRef;
use super::shelf::Shelf;
use super::snapshot::{Made, Snapshot};
use super::state::ArrayState;
use crate::base::{ByteRange, Error, ErrorKind, Files, Id, Result, xxh3};
use crate::fragment::Description;
use crate::storage::{FLOOR, LEASE, Listed, StoreFiles};
use std::sync::Arc;

/// How often the floor may change while it is being raised.
const RAISES_MAX: usize = 1_000;

impl Record {
    /// Whether it changed only what is kept of the past.
    pub fn is_upkeep(&self) -> bool {
        !self.operations.is_empty() && self.operations.iter().all(|o| matches!(o, Recorded::Condemn(_)))
    }

    /// Whether it only removed fragments without replacements: no read returns other cells because of it.
    pub fn is_removal(&self) -> bool {
        let removes = |o: &Recorded| matches!(o, Recorded::ReplaceFragments { fragments, .. } if fragments.is_empty());
        !self.operations.is_empty() && self.operations.iter().all(removes)
    }
}

impl Snapshot {
    /// The same version without the fragments `removed` of an array: for reading, not for committing after it.
    ///
    /// # Errors
    /// Conflict if the array does not exist.
    pub fn without(&self, array: Id, removed: Vec<Removed>) -> Result<Self> {
        let mut bare = self.clone();
        let operation = Recorded::ReplaceFragments { array, removed, fragments: Vec::new() };
        bare.provisionally(Arc::new(operation))?;
        Ok(bare)
    }
}

/// The leases in a store, as a vacuum sees them.
#[derive(Debug, Clone, Default)]
pub struct Leases {
    /// The versions that readers hold.
    pub held: Vec<u64>,
    /// The names of expired leases, and of objects that are no lease of this format.
    pub expired: Vec<String>,
}

impl Store {
    /// Now, by this machine's clock: UTC in microseconds.
    pub fn now_us(&self) -> i64 {
        self.clock.now_us()
    }

    /// A fresh random id.
    pub fn fresh_id(&self) -> Id {
        self.entropy.id()
    }

    /// The published floor; `None` if all versions are kept.
    pub fn floor(&self) -> Result<Option<Floor>> {
        self.log.floor()
    }

    /// The snapshot of `version`, based on a durable root of exactly this version that was read back. The root is
    /// written if there is none; `known` is one, perhaps of another version.
    ///
    /// # Errors
    /// Those of [`Store::at_version`]; Corruption if the bytes read back differ from those written.
    pub fn rooted(&self, version: u64, known: Option<RootRef>) -> Result<Arc<Snapshot>> {
        let snapshot = self.at_version(version)?;
        let named = match known.or(snapshot.root()).filter(|r| r.version == version) {
            Some(root) => Some(root),
            // A writer may have folded at exactly this version.
            None => self.log.read(version + 1)?.and_then(|next| next.root).filter(|r| r.version == version),
        };
        let (reference, moved) = match named {
            Some(root) => (Some(root), Moved::new()),
            None => {
                let (folded, moved) = fold_moving(&self.log, self.entropy.as_ref(), &snapshot)?;
                (folded.root(), moved)
            }
        };
        let Some(reference) = reference else { return Ok(snapshot) };
        self.check_moved(&snapshot, &moved)?;
        let root = self.log.root(reference)?;
        Ok(Arc::new(Snapshot::of_root(root, reference)))
    }

    /// A Corruption error unless the fragments of `snapshot` that were `moved` out of the log are intact in their new
    /// location.
    fn check_moved(&self, snapshot: &Snapshot, moved: &Moved) -> Result<()> {
        if moved.is_empty() {
            return Ok(());
        }
        let files = StoreFiles::own(Arc::clone(&self.log.storage));
        for (version, ids) in inline_by_version(snapshot) {
            let (record, _) = self.log.read_file(version)?;
            for inline in record.inline.iter().filter(|inline| ids.contains(&inline.id)) {
                let there = moved.get(&inline.id).map(|at| {
                    files.open(at.file)?.read_one(ByteRange::new(at.offset, at.len)).map(|bytes| xxh3(&bytes))
                });
                if there.transpose()? != Some(inline.xxh3) {
                    return Err(Error::corruption(format!(
                        "fragment {} was copied out of the log record of version {version} and reads otherwise there; \
                         nothing was deleted",
                        inline.id
                    )));
                }
            }
        }
        Ok(())
    }

    /// `newest` based on the root of `rooted`, an earlier version, if that is newer than its own root.
    pub fn resting_on(&self, newest: &Arc<Snapshot>, rooted: &Snapshot) -> Result<Arc<Snapshot>> {
        match rooted.root().filter(|r| r.version > newest.root_version()) {
            None => Ok(Arc::clone(newest)),
            Some(reference) => newest.rested_on(self.log.root(reference)?, reference, Made::default()).map(Arc::new),
        }
    }

    /// Publishes `floor`, durably, unless it is as high already. It is never lowered, also if another process raises it
    /// meanwhile. Features and `ext` of the floor before stay.
    ///
    /// # Errors
    /// Storage: whether it was published is unknown; nothing may be deleted.
    pub fn publish_floor(&self, floor: Floor) -> Result<()> {
        for _ in 0..RAISES_MAX {
            let held = self.log.read_object(FLOOR)?;
            if let Some(held) = &held
                && Floor::decode(held)?.version >= floor.version
            {
                // The writer that put it may have died before it was durable.
                return self.log.storage.sync(FLOOR);
            }
            let bytes = floor.encode_over(held.as_deref())?;
            if self.log.storage.put_if_unchanged(FLOOR, held.as_deref(), &bytes)? {
                return Ok(());
            }
        }
        Err(Error::storage(format!("the log's floor could not be raised in {RAISES_MAX} tries; try again later")))
    }

    /// The snapshot to read instead of `snapshot` if one of its objects is missing: the same version based on what is
    /// kept. `None` if no vacuum can be the cause.
    ///
    /// # Errors
    /// SnapshotExpired if the version has been vacuumed.
    pub fn resettled(&self, snapshot: &Snapshot) -> Result<Option<Arc<Snapshot>>> {
        for _ in 0..OPENINGS {
            let Some(floor) = self.log.floor()? else { return Ok(None) };
            if snapshot.version() < floor.version {
                return Err(expired(snapshot.version(), floor.version));
            }
            if snapshot.root_version() >= floor.version {
                return Ok(None);
            }
            match self.at_version(snapshot.version()) {
                Ok(settled) => return Ok(Some(settled)),
                // The floor may have moved again meanwhile.
                Err(e) if self.log.floor()? == Some(floor) => return Err(e),
                Err(_) => {}
            }
        }
        Ok(None)
    }

    /// The result of `look` on `snapshot`, or on the same version opened anew if a vacuum has removed what it is based
    /// on; and the snapshot that gave the result. Vacuums may overtake it repeatedly.
    ///
    /// # Errors
    /// SnapshotExpired if the version has been vacuumed; those of `look`.
    pub fn settling<T>(
        &self,
        snapshot: &Arc<Snapshot>,
        mut look: impl FnMut(&Snapshot) -> Result<T>,
    ) -> Result<(Arc<Snapshot>, T)> {
        let mut snapshot = Arc::clone(snapshot);
        loop {
            match look(&snapshot) {
                Ok(found) => return Ok((snapshot, found)),
                Err(e) if e.may_be_missing() => snapshot = self.resettled(&snapshot)?.ok_or(e)?,
                Err(e) => return Err(e),
            }
        }
    }

    /// Like [`Store::settling`] on the newest version, which `newest` was when it was opened. If a vacuum has removed that
    /// version, the look is repeated on the version that is the newest then.
    ///
    /// # Errors
    /// Those of `look`.
    pub fn settling_newest<T>(
        &self,
        mut newest: Arc<Snapshot>,
        mut look: impl FnMut(&Snapshot) -> Result<T>,
    ) -> Result<(Arc<Snapshot>, T)> {
        loop {
            match self.settling(&newest, &mut look) {
                Err(e) if e.kind() == ErrorKind::SnapshotExpired => newest = self.latest()?,
                outcome => return outcome,
            }
        }
    }

    /// The leases in the store by their names; `None` for an object that is no lease of this format.
    ///
    /// # Errors
    /// Storage.
    pub fn leases(&self) -> Result<Vec<(String, Option<Lease>)>> {
        Ok(self.dated_leases()?.into_iter().map(|(listed, lease)| (listed.name, lease)).collect())
    }

    /// The leases in the store at `now_us`, by the storage's clock. Each holds for its length from the time at which it
    /// was written there, so the clocks of readers and vacuums do not matter.
    ///
    /// # Errors
    /// Storage.
    pub fn leases_at(&self, now_us: i64) -> Result<Leases> {
        let mut found = Leases::default();
        for (listed, lease) in self.dated_leases()? {
            match lease.filter(|lease| lease.holds(listed.modified_us, now_us)) {
                Some(lease) => found.held.push(lease.version),
                None => found.expired.push(listed.name),
            }
        }
        Ok(found)
    }

    fn dated_leases(&self) -> Result<Vec<(Listed, Option<Lease>)>> {
        let (mut all, mut found) = (Vec::new(), Vec::new());
        self.log.storage.survey(LEASE, &mut |listed| all.push(listed))?;
        all.sort_by(|a, b| a.name.cmp(&b.name));
        for listed in all {
            match self.log.storage.read_all(&listed.name) {
                Ok(bytes) => match Lease::decode(&bytes) {
                    Err(e) if e.kind() == ErrorKind::Unsupported => {}
                    lease => found.push((listed, lease.ok())),
                },
                // Its reader has removed it meanwhile.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        Ok(found)
    }

    /// The fragments of an array, in ascending order. Its manifest pages are read and dropped again.
    ///
    /// # Errors
    /// Corruption if a page is missing or damaged, Storage.
    pub fn fragments_of(&self, array: &ArrayState) -> Result<Vec<Arc<Description>>> {
        let mut found: Vec<Arc<Description>> = array.recent().cloned().collect();
        for shelf in &array.shelves {
            let page = Shelf::new(shelf.info().clone(), Arc::clone(&self.log.storage));
            found.extend(page.load()?.iter().filter(|d| array.has(d.id)).cloned());
        }
        found.sort_by_key(|d| d.order);
        Ok(found)
    }
}
