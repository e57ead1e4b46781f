//! What is kept of a store's past: tags, the version that becomes the floor, and files that are going to be deleted.
//!
//! Condemned files stay in the state until a later vacuum has seen that they are gone. So a writer that would use one
//! learns of it from the log, however long ago it prepared its commit.

use super::operation::{Condemned, Recorded};
use super::shape::{IdText, RootRef, RootText, Whole, id_texts, ids};
use crate::base::{Error, FileRef, Id, PRINTABLE, Result, is_unprintable, limits};
use crate::fragment::Description;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Tags, floor and condemned files at one version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retained {
    tags: BTreeMap<String, u64>,
    floor: Option<RootRef>,
    data: BTreeSet<Id>,
    manifest: BTreeSet<Id>,
}

impl Retained {
    /// Names with the versions that they keep.
    pub fn tags(&self) -> &BTreeMap<String, u64> {
        &self.tags
    }

    /// The root of the lowest version kept: decided, and published or about to be. `None`: all versions are kept.
    pub fn floor(&self) -> Option<RootRef> {
        self.floor
    }

    /// Data files that are going to be deleted, or are gone.
    pub fn condemned_data(&self) -> &BTreeSet<Id> {
        &self.data
    }

    /// Manifest roots and pages that are going to be deleted, or are gone.
    pub fn condemned_manifest(&self) -> &BTreeSet<Id> {
        &self.manifest
    }

    /// Applies `operation` as part of `version`, as far as it concerns tags, floor and condemned files. Errors say why
    /// it cannot be done.
    pub(super) fn apply(self: &mut Arc<Self>, operation: &Recorded, version: u64) -> Result<()> {
        match operation {
            Recorded::AddFragments { fragments, .. } | Recorded::ReplaceFragments { fragments, .. } => {
                self.check_files(fragments)
            }
            Recorded::Tag { name, version: tagged } => {
                self.check_tag(name, *tagged, true, version)?;
                Arc::make_mut(self).tags.insert(name.clone(), *tagged);
                Ok(())
            }
            Recorded::Untag { name } => match Arc::make_mut(self).tags.remove(name) {
                Some(_) => Ok(()),
                None => Err(Error::not_found(format!("there is no tag {name:?}"))),
            },
            Recorded::Condemn(condemned) => self.condemn(condemned, version),
            _ => Ok(()),
        }
    }

    /// A Conflict error if one of these new fragments lies in a condemned file.
    fn check_files(&self, fragments: &[Arc<Description>]) -> Result<()> {
        let condemned = |d: &&Arc<Description>| matches!(d.location.file, FileRef::Data(id) if self.data.contains(&id));
        match fragments.iter().find(condemned) {
            None => Ok(()),
            Some(d) => Err(Error::conflict(format!(
                "the file of fragment {} was not committed for so long that a vacuum has condemned it, and is deleted by \
                 now or soon; write the data again. Nothing was committed",
                d.id
            ))),
        }
    }

    /// An Input error if `name`, of a new tag, holds characters that act on a terminal. Existing tags may.
    pub(super) fn check_new_tag(&self, name: &str) -> Result<()> {
        if name.contains(is_unprintable) && !self.tags.contains_key(name) {
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
        match self.tags.get(name) {
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
            if let Some((name, tagged)) = self.tags.iter().find(|(_, tagged)| **tagged < floor.version) {
                return Err(Error::conflict(format!("version {tagged} has the tag {name:?} and cannot be vacuumed")));
            }
        }
        let this = Arc::make_mut(self);
        this.floor = floor.or(this.floor);
        for id in forget {
            this.data.remove(id);
            this.manifest.remove(id);
        }
        this.data.extend(data);
        this.manifest.extend(manifest);
        Ok(())
    }
}

/// [`Retained`] in a manifest root.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RetainedText {
    tags: BTreeMap<String, Whole>,
    floor: Option<RootText>,
    data: Vec<IdText>,
    manifest: Vec<IdText>,
}

impl RetainedText {
    /// `None` if there is nothing to record.
    pub(super) fn of(retained: &Retained) -> Option<Self> {
        (*retained != Retained::default()).then(|| Self {
            tags: retained.tags.iter().map(|(name, version)| (name.clone(), Whole(*version))).collect(),
            floor: retained.floor.map(RootText::from),
            data: id_texts(&retained.data),
            manifest: id_texts(&retained.manifest),
        })
    }

    pub(super) fn read(self) -> Retained {
        Retained {
            tags: self.tags.into_iter().map(|(name, version)| (name, version.0)).collect(),
            floor: self.floor.map(RootRef::from),
            data: ids(self.data),
            manifest: ids(self.manifest),
        }
    }
}
