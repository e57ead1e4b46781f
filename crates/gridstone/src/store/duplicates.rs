//! Finds fragments that a store lists twice. A fragment is added by one record of one array, and a fold describes it on
//! one page of each root. So a fragment is listed twice in three cases: two records add it, two pages of one root
//! describe it, or a root describes it that is older than the record which adds it. Duplicates within one record or one
//! page are refused when it is decoded.

use super::record::Record;
use crate::base::{Error, Id, Result};
use crate::fragment::Description;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Which record and which pages list each fragment.
#[derive(Debug, Default)]
pub(super) struct Tellers {
    /// The version that added it.
    records: HashMap<Id, u64>,
    /// The manifest pages that describe it.
    pages: HashMap<Id, Vec<Id>>,
}

impl Tellers {
    /// Notes the fragments that a record adds. A Corruption error if an earlier record adds one of them; records come
    /// in order.
    pub(super) fn record(&mut self, record: &Record) -> Result<()> {
        let mut twice = None;
        for id in record.added().map(|d| d.id) {
            let before = self.records.insert(id, record.version);
            twice = twice.or(before.map(|version| (id, version)));
        }
        match twice {
            None => Ok(()),
            Some((id, version)) => Err(Error::corruption(format!(
                "it adds the fragment {id}, which the record of version {version} adds already"
            ))),
        }
    }

    /// Notes the fragments that the page `page` describes. A root of `version` is the first to name the page, among the
    /// pages `named`. A Corruption error if another of these pages describes one of them, or a later record adds it.
    /// All records come first.
    pub(super) fn page(
        &mut self,
        page: Id,
        version: u64,
        named: &HashSet<Id>,
        fragments: &[Arc<Description>],
    ) -> Result<()> {
        let mut why = None;
        for id in fragments.iter().map(|d| d.id) {
            let later = self.records.get(&id).filter(|added| **added > version);
            let told = self.pages.entry(id).or_default();
            if let Some(other) = told.iter().find(|other| named.contains(other)) {
                why =
                    why.or_else(|| Some(format!("it describes the fragment {id}, and so does manifest page {other}")));
            } else if let Some(added) = later {
                why = why.or_else(|| {
                    Some(format!(
                        "it describes the fragment {id} as of version {version}, and the record of version {added} adds it"
                    ))
                });
            }
            told.push(page);
        }
        why.map_or(Ok(()), |why| Err(Error::corruption(format!("manifest page {page}: {why}"))))
    }
}
