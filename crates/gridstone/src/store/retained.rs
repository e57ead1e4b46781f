//! What is kept of a store's past: tags, the version that becomes the floor, and files that are going to be deleted.
//!
//! Condemned files stay in the state until a later vacuum has seen that they are gone. So a writer that would use one
//! learns of it from the log, however long ago it prepared its commit.

use super::extension::Ext;
use super::kept::Kept;
use super::node_row::{decode_tag, encode_tag};
use super::operation::{Condemned, Recorded};
use super::rows::key::{self, File};
use super::rows::{Change, RowMap};
use super::shape::RootRef;
use crate::base::{Error, FileRef, Id, PRINTABLE, Result, is_unprintable, limits};
use crate::fragment::Description;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Tags, floor and condemned files at one version: those of the manifest root, read when they are needed, and what
/// changed since.
#[derive(Debug, Clone)]
pub struct Retained {
    rows: RowMap,
    floor: Option<RootRef>,
    /// Tags given, moved or (`None`) removed since.
    tags: BTreeMap<String, Option<(u64, Ext)>>,
    /// Whether a file is condemned, of those condemned and forgotten since.
    files: BTreeMap<(File, Id), bool>,
}

impl Default for Retained {
    fn default() -> Self {
        Self::of(&RowMap::empty(), None)
    }
}

impl Retained {
    /// What `rows` have, and the floor of their root.
    pub(super) fn of(rows: &RowMap, floor: Option<RootRef>) -> Self {
        Self { rows: rows.clone(), floor, tags: BTreeMap::new(), files: BTreeMap::new() }
    }

    /// Names with the versions that they keep.
    ///
    /// # Errors
    /// Corruption if a page of the manifest is missing or damaged, Storage.
    pub fn tags(&self) -> Result<BTreeMap<String, u64>> {
        let mut tags = BTreeMap::new();
        self.rows.scan(&key::tags(), &mut |row| {
            let name = key::read_tag(row.key()).ok_or_else(|| Error::corruption("a tag is not UTF-8"))?;
            tags.insert(name.to_owned(), decode_tag(&self.rows.value_of(row)?)?);
            Ok(())
        })?;
        for (name, version) in &self.tags {
            match version {
                Some((version, _)) => tags.insert(name.clone(), *version),
                None => tags.remove(name),
            };
        }
        Ok(tags)
    }

    /// The version that the tag `name` keeps, if there is such a tag.
    ///
    /// # Errors
    /// Those of [`Retained::tags`].
    pub fn tag(&self, name: &str) -> Result<Option<u64>> {
        match self.tags.get(name) {
            Some(changed) => Ok(changed.as_ref().map(|(version, _)| *version)),
            None => self.rows.get(&key::tag(name))?.map(|value| decode_tag(&value)).transpose(),
        }
    }

    /// The root of the lowest version kept: decided, and published or about to be. `None`: all versions are kept.
    pub fn floor(&self) -> Option<RootRef> {
        self.floor
    }

    /// Data files that are going to be deleted, or are gone.
    ///
    /// # Errors
    /// Those of [`Retained::tags`].
    pub fn condemned_data(&self) -> Result<BTreeSet<Id>> {
        self.condemned_files(File::Data)
    }

    /// Manifest roots and pages that are going to be deleted, or are gone.
    ///
    /// # Errors
    /// Those of [`Retained::tags`].
    pub fn condemned_manifest(&self) -> Result<BTreeSet<Id>> {
        self.condemned_files(File::Manifest)
    }

    fn condemned_files(&self, kind: File) -> Result<BTreeSet<Id>> {
        let mut found = BTreeSet::new();
        self.rows.scan(&key::all_condemned(), &mut |row| {
            found.extend(key::read_condemned(row.key()).filter(|(file, _)| *file == kind).map(|(_, id)| id));
            Ok(())
        })?;
        for ((_, id), condemned) in self.files.iter().filter(|((file, _), _)| *file == kind) {
            if *condemned {
                found.insert(*id);
            } else {
                found.remove(id);
            }
        }
        Ok(found)
    }

    fn is_condemned(&self, file: File, id: Id) -> Result<bool> {
        match self.files.get(&(file, id)) {
            Some(condemned) => Ok(*condemned),
            None => Ok(self.rows.get(&key::condemned(file, id))?.is_some()),
        }
    }

    /// The rows that changed since the manifest root.
    pub(super) fn changes(&self) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        for (name, version) in &self.tags {
            let value = version.as_ref().map(|(version, ext)| encode_tag(*version, ext)).transpose()?;
            changes.push(Change { key: key::tag(name), value });
        }
        for ((file, id), condemned) in &self.files {
            changes.push(Change { key: key::condemned(*file, *id), value: condemned.then(Bytes::new) });
        }
        Ok(changes)
    }

    /// Applies `operation` as part of `version`, as far as it concerns tags, floor and condemned files. Errors say why
    /// it cannot be done.
    pub(super) fn apply(self: &mut Arc<Self>, operation: &Recorded, version: u64) -> Result<()> {
        match operation {
            Recorded::AddFragments { fragments, .. } | Recorded::ReplaceFragments { fragments, .. } => {
                self.check_files(fragments)
            }
            Recorded::Tag { name, version: tagged, ext } => {
                self.check_tag(name, *tagged, true, version)?;
                Arc::make_mut(self).tags.insert(name.clone(), Some((*tagged, ext.clone())));
                Ok(())
            }
            Recorded::Untag { name } => match self.tag(name)? {
                Some(_) => {
                    Arc::make_mut(self).tags.insert(name.clone(), None);
                    Ok(())
                }
                None => Err(Error::not_found(format!("there is no tag {name:?}"))),
            },
            Recorded::Keep { kept, .. } => self.check_kept(kept),
            Recorded::Condemn(condemned) => self.condemn(condemned, version),
            _ => Ok(()),
        }
    }

    /// A Conflict error if one of these new fragments lies in a condemned file.
    fn check_files(&self, fragments: &[Arc<Description>]) -> Result<()> {
        for d in fragments {
            if let FileRef::Data(file) = d.location.file
                && self.is_condemned(File::Data, file)?
            {
                return Err(Error::conflict(format!(
                    "the file of fragment {} was not committed for so long that a vacuum has condemned it, and is deleted by \
                     now or soon; write the data again. Nothing was committed",
                    d.id
                )));
            }
        }
        Ok(())
    }

    /// A Conflict error if one of the files to be kept is condemned.
    fn check_kept(&self, kept: &Kept) -> Result<()> {
        for file in &kept.files {
            if self.is_condemned(File::Data, file.id)? {
                return Err(Error::conflict(format!(
                    "the file {}, which was to be kept, was not committed for so long that a vacuum has condemned it, and is deleted by \
                     now or soon; write it again. Nothing was committed",
                    file.id
                )));
            }
        }
        Ok(())
    }

    /// An Input error if `name`, of a new tag, holds characters that act on a terminal. Existing tags may.
    pub(super) fn check_new_tag(&self, name: &str) -> Result<()> {
        if name.contains(is_unprintable) && self.tag(name)?.is_none() {
            return Err(Error::input(format!("{name:?} cannot be a tag: {PRINTABLE}")));
        }
        Ok(())
    }

    /// Whether `name` can be given to version `tagged` by a commit that makes `version`.
    pub(super) fn check_tag(&self, name: &str, tagged: u64, replace: bool, version: u64) -> Result<()> {
        if name.is_empty() || name.len() > limits::NAME_BYTES_MAX || name.contains(char::is_control) {
            return Err(Error::input(format!(
                "{name:?} cannot be a tag; give 1 to {} bytes without control characters",
                limits::NAME_BYTES_MAX
            )));
        }
        if tagged == 0 || tagged >= version {
            return Err(Error::not_found(format!(
                "version {tagged} cannot be tagged {name:?}: there is no such version; the newest is {}",
                version.saturating_sub(1)
            )));
        }
        if let Some(floor) = self.floor.filter(|f| f.version > tagged) {
            return Err(Error::snapshot_expired(format!(
                "version {tagged} cannot be tagged {name:?}: it has been vacuumed; the oldest that stays is {}",
                floor.version
            )));
        }
        match self.tag(name)? {
            Some(known) if !replace => Err(Error::exists(format!(
                "the tag {name:?} names version {known} already; untag it first, or pass replace=True to move it"
            ))),
            _ => Ok(()),
        }
    }

    fn condemn(self: &mut Arc<Self>, condemned: &Condemned, version: u64) -> Result<()> {
        let Condemned { floor, data, manifest, forget } = condemned;
        if let Some(floor) = floor {
            if self.floor.is_some_and(|held| held.version > floor.version) || floor.version >= version {
                return Err(Error::conflict(format!(
                    "version {} cannot become the lowest that is kept: another vacuum has gone further",
                    floor.version
                )));
            }
            if let Some((name, tagged)) = self.tags()?.iter().find(|(_, tagged)| **tagged < floor.version) {
                return Err(Error::conflict(format!("version {tagged} has the tag {name:?} and cannot be vacuumed")));
            }
        }
        let this = Arc::make_mut(self);
        this.floor = floor.or(this.floor);
        for file in [File::Data, File::Manifest] {
            this.files.extend(forget.iter().map(|id| ((file, *id), false)));
        }
        this.files.extend(data.iter().map(|id| ((File::Data, *id), true)));
        this.files.extend(manifest.iter().map(|id| ((File::Manifest, *id), true)));
        Ok(())
    }
}
