//! Bases: the places where files of fragments lie, by number. The own store is base 0, and has no row.
//!
//! ```json
//! {"kind":"store","places":[{"place":"s3://bucket/weather","state":"active","ext":{…}}],"ext":{…}}
//! ```
//! This release reads the own store alone. It keeps what is said of other bases, and what lies there is Unsupported.

use super::extension::Ext;
use super::node_row::read;
use super::rows::{Change, RowMap, key};
use crate::base::{Error, Id, Result};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A base other than the own store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// What it is: "own", "store", "source", "partition", or another word of a newer release.
    pub kind: String,
    /// Where it is: any of these places will do, as their states allow.
    pub places: Vec<Place>,
    /// What a newer release says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ext: Ext,
}

/// A place of a base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The place, as text.
    pub place: String,
    /// Its state, a word.
    pub state: String,
    /// What a newer release says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ext: Ext,
}

impl Base {
    pub(super) fn encode(&self) -> Result<Bytes> {
        serde_json::to_vec(self)
            .map(Bytes::from)
            .map_err(|e| Error::input("the manifest cannot be written as JSON").with_source(e))
    }

    /// The base in the value of its row.
    pub(super) fn decode(value: &[u8], number: u32) -> Result<Self> {
        read(value, &format!("base {number}"))
    }
}

/// The bases of a version: those of the manifest root, read when they are needed, and what changed since.
#[derive(Debug, Clone)]
pub struct Bases {
    rows: RowMap,
    /// Bases set or (`None`) removed since.
    changes: BTreeMap<u32, Option<Arc<Base>>>,
}

impl Bases {
    /// Those that `rows` have.
    pub(super) fn of(rows: &RowMap) -> Self {
        Self { rows: rows.clone(), changes: BTreeMap::new() }
    }

    /// The base of this number, if it is described.
    ///
    /// # Errors
    /// Corruption if a page of the manifest is missing or damaged; Unsupported if a newer release wrote the row, Storage.
    pub fn get(&self, number: u32) -> Result<Option<Arc<Base>>> {
        match self.changes.get(&number) {
            Some(changed) => Ok(changed.clone()),
            None => {
                let value = self.rows.get(&key::base(number))?;
                value.map(|value| Base::decode(&value, number).map(Arc::new)).transpose()
            }
        }
    }

    /// All of them.
    ///
    /// # Errors
    /// Those of [`Bases::get`].
    pub fn all(&self) -> Result<BTreeMap<u32, Arc<Base>>> {
        let mut all = BTreeMap::new();
        self.rows.scan(&key::bases(), &mut |row| {
            if let Some(number) = key::read_base(row.key()) {
                all.insert(number, Arc::new(Base::decode(&self.rows.value_of(row)?, number)?));
            }
            Ok(())
        })?;
        for (number, change) in &self.changes {
            match change {
                Some(base) => all.insert(*number, Arc::clone(base)),
                None => all.remove(number),
            };
        }
        Ok(all)
    }

    /// The Unsupported error of reading the file `file` on the base `number`, with what is known of that.
    pub fn unreadable(&self, number: u32, file: Id) -> Error {
        let what = match self.get(number) {
            Ok(Some(base)) => {
                let places: Vec<String> = base.places.iter().map(|place| format!("{:?}", place.place)).collect();
                format!("of the kind {:?}, at {}", base.kind, places.join(" or "))
            }
            Ok(None) => "which the store does not describe".to_owned(),
            Err(e) => return e,
        };
        Error::unsupported(format!(
            "the file {file} lies on base {number}, {what}. This release of Gridstone reads what lies in the store itself, use a newer \
             Gridstone; the rest of the store can be read and written"
        ))
    }

    /// Sets what a base is; `None`: it is removed.
    pub(super) fn set(self: &mut Arc<Self>, number: u32, base: Option<&Arc<Base>>) {
        Arc::make_mut(self).changes.insert(number, base.cloned());
    }

    /// The rows that changed since the manifest root.
    pub(super) fn changed_rows(&self) -> Result<Vec<Change>> {
        let row = |(number, base): (&u32, &Option<Arc<Base>>)| {
            let value = base.as_ref().map(|base| base.encode()).transpose()?;
            Ok(Change { key: key::base(*number), value })
        };
        self.changes.iter().map(row).collect()
    }
}
