//! Fragments that a store tells of twice. A fragment is added by one record of one array; a fold describes it on one page of each root.
//! So it is told twice where two records add it, where two pages of one root describe it, and where a root describes it that is older
//! than the record which adds it. What one record or one page says twice is refused when it is decoded.

use super::record::Record;
use crate::base::{Error, Id, Result};
use crate::fragment::Description;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Who tells of which fragment.
#[derive(Debug, Default)]
pub(super) struct Tellers {
    /// The version that added it.
    records: HashMap<Id, u64>,
    /// The manifest pages that describe it.
    pages: HashMap<Id, Vec<Id>>,
}

impl Tellers {
    /// Notes what a record adds. A Corruption error if an earlier one adds some of it; records come in order.
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

    /// Notes what the page `page` describes, which a root of `version` is the first to name, among the pages `named`. A Corruption error if another of
    /// these describes some of it, or a later record adds it. All records come first.
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
