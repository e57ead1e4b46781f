//! Rebuilds lost objects, exactly as they were.
//!
//! A fold depends on nothing but the log: the same records on the same earlier root give the same pages and the same
//! root, except for ids. The ids are known from elsewhere. A root's id is in the object that names it. The ids of pages
//! and values are in the root or among the objects in `_manifest/` ([`super::recall`]). A pack's id is among the data
//! files of the right length. The result is accepted only if its checksum is the one by which it is named. A pack's
//! fragments are also in the records that they were copied from, and vice versa, each with its checksum.

use super::fold::{Moved, bind, inline_by_version};
use super::handle::Store;
use super::inspect::{Inspection, KnownFile, damage};
use super::line::FORMAT;
use super::log::Log;
use super::page;
use super::recall::{Known, Recall, Remade, Search};
use super::root::{self, Root};
use super::rows::key;
use super::shape::RootRef;
use super::snapshot::Snapshot;
use super::tree::Node;
use super::wording::BODY_ALIGNMENT;
use crate::base::{ByteRange, Cancel, Error, FileRef, Files, Id, Result, xxh3};
use crate::fragment::{Description, Location};
use crate::storage::{DATA, Storage, StoreFiles, log_name, manifest_name};
use std::collections::HashSet;
use std::sync::Arc;

/// How many earlier roots are tried as the base of a fold. Mostly it is the newest before it.
const BASES_MAX: usize = 4;

/// How many data files are tried as the pack of a fold.
const PACKS_MAX: usize = 10_000;

/// How often a fold is repeated with other ids for equal objects.
const TRIES_MAX: usize = 1_000;

impl Store {
    /// The same store in another storage; its commits share no queue.
    #[must_use]
    pub fn on(&self, storage: Arc<dyn Storage>) -> Self {
        let (clock, entropy) = (Arc::clone(&self.clock), Arc::clone(&self.entropy));
        Self::new(storage, clock, entropy).with_fold_versions(self.fold_versions)
    }

    /// The damaged objects among `target` and its pages, rebuilt from the log; empty if the log lacks what is needed.
    ///
    /// # Errors
    /// Storage, Access, Cancelled.
    pub fn refold(&self, target: RootRef, found: &Inspection, cancel: &dyn Cancel) -> Result<Vec<Remade>> {
        let whole = damage(self.log.root(target))?.ok();
        let own = whole.as_ref().map(Known::of_root).transpose()?;
        let known = Known::in_storage(self.log.storage.as_ref())?;
        let aim = Aim { target, whole: whole.as_ref(), own: own.as_ref(), known: &known, cancel };
        for base in bases(found, target.version) {
            cancel.check()?;
            let Ok(snapshot) = damage(self.state_from(base, target.version))? else { continue };
            let remade = match damage(self.refold_on(&snapshot, &aim))? {
                Ok(Some(remade)) => remade,
                Ok(None) | Err(_) => continue,
            };
            let wanted: Vec<Remade> = remade.into_iter().filter(|(name, _)| found.is_flawed(name)).collect();
            if !wanted.is_empty() {
                return Ok(wanted);
            }
        }
        Ok(Vec::new())
    }

    /// The pages and values of the fold of `snapshot`, and the root where that is missing, if they match the names.
    fn refold_on(&self, snapshot: &Snapshot, aim: &Aim<'_>) -> Result<Option<Vec<Remade>>> {
        let (places, end) = places(&self.log, snapshot)?;
        for pack in if places.is_empty() { vec![Id([0; 16])] } else { self.data_of_length(end)? } {
            let moved: Moved = places
                .iter()
                .map(|(id, offset, len)| (*id, Location { file: FileRef::Data(pack), offset: *offset, len: *len }))
                .collect();
            if let Some(remade) = self.refold_with(snapshot, aim, &moved)? {
                return Ok(Some(remade));
            }
        }
        Ok(None)
    }

    /// The same with the fragments of the log at the locations in `moved`.
    fn refold_with(&self, snapshot: &Snapshot, aim: &Aim<'_>, moved: &Moved) -> Result<Option<Vec<Remade>>> {
        let (mut search, mut near) = (Search::default(), None);
        for _ in 0..TRIES_MAX {
            aim.cancel.check()?;
            let is_gs0 = aim.whole.is_some_and(|root| root.format < FORMAT);
            let page_version = if is_gs0 { page::VERSION_GS0 } else { page::VERSION };
            let (taken, remade) = (HashSet::new(), Vec::new());
            let mut recall = Recall { own: aim.own, known: aim.known, is_gs0, search: &mut search, taken, remade };
            if let Ok(root) = damage(bind((&self.log.storage, &mut recall), moved, snapshot, page_version))? {
                let (mut remade, bytes) = (recall.remade, root::encode(&root)?);
                if root::checksum(&bytes)? == aim.target.xxh3 {
                    remade.extend(aim.whole.is_none().then(|| (manifest_name(aim.target.id), bytes)));
                    return Ok(Some(remade));
                }
                // The pages are those that the root names, though all of it does not come out.
                near = near.or(aim.whole.map(|_| remade));
            }
            if near.is_some() && !search.has_choices() || !search.advance() {
                break;
            }
        }
        Ok(near)
    }

    /// The state of `version`, replayed from `base` or from all records, whatever root the records name.
    ///
    /// # Errors
    /// Corruption if one of the objects needed is damaged or missing.
    pub fn state_from(&self, base: Option<RootRef>, version: u64) -> Result<Snapshot> {
        let mut snapshot = match base {
            Some(base) => Snapshot::of_root(self.log.root(base)?, base),
            None => Snapshot::before_all(),
        };
        for next in snapshot.version() + 1..=version {
            snapshot.follow(self.log.read_file(next)?.0)?;
        }
        Ok(snapshot)
    }

    /// Commits a version that names a new root. The root is folded from the newest intact root with intact pages, or
    /// from all records; `None` if neither is possible. A store of an older format is upgraded by that version, since no
    /// root of its format is written.
    ///
    /// # Errors
    /// Those of [`Store::commit`].
    pub fn fold_anew(&self, found: &Inspection) -> Result<Option<Arc<Snapshot>>> {
        for base in bases(found, found.newest) {
            let Ok(state) = damage(self.state_from(base, found.newest))? else { continue };
            if damage(read_all(&state))?.is_ok()
                && let Ok(folded) = damage(self.rooted_anew(&Arc::new(state)))?
            {
                return Ok(Some(folded));
            }
        }
        Ok(None)
    }

    /// The bytes of the pack `file`, rebuilt from the records that its fragments were copied from; `None` if one of
    /// them is not in the log any more.
    ///
    /// # Errors
    /// Storage, Access.
    pub fn repack(&self, file: &KnownFile, found: &Inspection) -> Result<Option<Vec<u8>>> {
        let sum: u64 = file.fragments.iter().map(|(_, d)| d.location.len.next_multiple_of(BODY_ALIGNMENT)).sum();
        let end = file.fragments.iter().map(|(_, d)| d.location.offset.saturating_add(d.location.len)).max();
        // A pack may hold fragments that are not named any more; but a longer file is no pack.
        let Some(end) = end.filter(|end| end / 64 <= sum) else { return Ok(None) };
        let mut bytes = vec![0; usize::try_from(end).map_err(|_| Error::corruption("a pack is longer than memory"))?];
        for (array, wanted) in &file.fragments {
            let inline = copies(found, *array, wanted.id).find_map(|d| match d.location.file {
                FileRef::Log(version) => Some(version),
                _ => None,
            });
            let Some(version) = inline else { return Ok(None) };
            let Ok(body) = damage(self.body(version, wanted.id))? else { return Ok(None) };
            let start = wanted.location.offset as usize;
            match bytes.get_mut(start..start + body.len()) {
                Some(place) if body.len() as u64 == wanted.location.len => place.copy_from_slice(&body),
                _ => return Ok(None),
            }
        }
        Ok(Some(bytes))
    }

    fn body(&self, version: u64, fragment: Id) -> Result<bytes::Bytes> {
        let (record, file) = self.log.read_file(version)?;
        let inline = record.inline.iter().find(|i| i.id == fragment);
        record.body(inline.ok_or_else(|| Error::corruption("the record does not hold the fragment"))?, &file)
    }

    /// The record of `version` with the fragments in its body restored from the packs that they were copied to; `None`
    /// if its line is damaged or one of them has no copy.
    ///
    /// # Errors
    /// Storage, Access.
    pub fn refill(&self, version: u64, found: &Inspection) -> Result<Option<Remade>> {
        let Ok((record, file)) = damage(self.log.read_file(version))? else { return Ok(None) };
        let mut bytes = file.to_vec();
        let files = StoreFiles::own(Arc::clone(&self.log.storage));
        for inline in record.inline.iter().filter(|i| record.body(i, &file).is_err()) {
            let mut sound = None;
            for copy in found.arrays.keys().flat_map(|array| copies(found, *array, inline.id)) {
                let FileRef::Data(_) = copy.location.file else { continue };
                let range = ByteRange::new(copy.location.offset, copy.location.len);
                let read = damage(files.open(copy.location.file).and_then(|source| source.read_one(range)))?;
                sound = sound.or(read.ok().filter(|body| xxh3(body) == inline.xxh3));
            }
            let place = bytes.get_mut(inline.range.offset as usize..inline.range.end() as usize);
            match (sound, place) {
                (Some(body), Some(place)) if body.len() == place.len() => place.copy_from_slice(&body),
                _ => return Ok(None),
            }
        }
        Ok((bytes[..] != file[..]).then(|| (log_name(version), bytes)))
    }

    /// The data files of this length.
    fn data_of_length(&self, len: u64) -> Result<Vec<Id>> {
        let mut found = Vec::new();
        for name in self.log.storage.list(DATA)? {
            let file = name.rsplit('/').next().and_then(|file| file.strip_suffix(".frag"));
            let Some(Ok(id)) = file.map(Id::parse) else { continue };
            if damage(self.log.storage.open(&name))?.is_ok_and(|source| source.len() == len) && found.len() < PACKS_MAX
            {
                found.push(id);
            }
        }
        Ok(found)
    }
}

/// What a fold is repeated for.
struct Aim<'a> {
    target: RootRef,
    /// The root, if it is intact, and what it names.
    whole: Option<&'a Root>,
    own: Option<&'a Known>,
    known: &'a Known,
    cancel: &'a dyn Cancel,
}

/// Reads all of a state that its root describes.
fn read_all(state: &Snapshot) -> Result<()> {
    for node in state.nodes()? {
        node.metadata().all()?;
        if let Node::Array(array) = node {
            array.schemas().all_stored()?;
            array.fragments(None)?;
        }
    }
    // Rows of commit keys are of no node.
    state.tree().rows().scan(&key::commit_key_count(), &mut |_| Ok(()))
}

/// The intact roots before `version`, newest first, and the beginning of the log if it exists.
fn bases(found: &Inspection, version: u64) -> Vec<Option<RootRef>> {
    let sound = |r: &&RootRef| r.version < version && !found.is_flawed(&manifest_name(r.id));
    let mut bases: Vec<_> = found.roots.iter().rev().filter(sound).take(BASES_MAX).copied().map(Some).collect();
    if found.floor.is_none() {
        bases.push(None);
    }
    bases
}

/// All descriptions of a fragment.
fn copies(found: &Inspection, array: Id, fragment: Id) -> impl Iterator<Item = &Arc<Description>> {
    let fragments = found.arrays.get(&array).map(|a| a.fragments.as_slice()).unwrap_or_default();
    fragments.iter().filter(move |d| d.id == fragment)
}

/// A fragment with its offset and length in a pack.
type Place = (Id, u64, u64);

/// The locations that a fold of `snapshot` gives to the inline fragments of the log, and the length of its pack.
fn places(log: &Log, snapshot: &Snapshot) -> Result<(Vec<Place>, u64)> {
    let (mut places, mut end) = (Vec::new(), 0u64);
    for (version, ids) in inline_by_version(snapshot) {
        let (record, _) = log.read_file(version)?;
        for inline in record.inline.iter().filter(|inline| ids.contains(&inline.id)) {
            let offset = end.next_multiple_of(BODY_ALIGNMENT);
            places.push((inline.id, offset, inline.range.len));
            end = offset.saturating_add(inline.range.len);
        }
    }
    Ok((places, end))
}
