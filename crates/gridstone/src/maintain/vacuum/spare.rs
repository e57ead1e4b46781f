//! How a vacuum's commit adapts to commits that came first.

use crate::base::{Error, Result};
use crate::store::{Changes, Condemned, Names, Operation, Rebase, Record, Recorded, Snapshot, Store};
use std::sync::Arc;

/// Checks the commits that came before the one that condemns: files that they name leave the list.
pub(super) struct Spare<'a> {
    pub(super) store: &'a Store,
    pub(super) floor: u64,
    pub(super) named: Names,
}

impl Rebase for Spare<'_> {
    fn rebase(&mut self, lost_to: &Record, _newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        for operation in &lost_to.operations {
            match operation {
                Recorded::Condemn(_) => return Err(Error::conflict("another vacuum came first")),
                Recorded::Tag { version, .. } if *version < self.floor => {
                    return Err(Error::conflict(format!("version {version} was tagged meanwhile and stays")));
                }
                _ => {}
            }
        }
        self.named.add_record(self.store, lost_to, self.floor)?;
        for operation in &mut changes.operations {
            if let Operation::Condemn(Condemned { data, manifest, .. }) = operation {
                data.retain(|id| !self.named.has_data(*id));
                manifest.retain(|id| !self.named.has_manifest(*id));
            }
        }
        Ok(())
    }
}
