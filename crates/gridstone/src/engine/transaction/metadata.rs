//! Metadata of groups and arrays by path, within a transaction.

use super::Transaction;
use crate::base::Result;
use crate::store::{Metadata, Operation, Snapshot};
use std::sync::Arc;

impl Transaction {
    /// All metadata of what lies at `path`, with what was staged.
    ///
    /// # Errors
    /// NotFound; those of a lookup.
    pub fn metadata(&self, path: &str) -> Result<Arc<Metadata>> {
        self.note_nodes(|reads, base| reads.note_node(base, path))?;
        let look = |view: &Snapshot| {
            let node = view.node(path)?;
            Ok((node.id(), node.metadata().all()?))
        };
        let (id, found) = self.looked(look)?.1;
        self.note(|reads| reads.note_key(id, None));
        Ok(found)
    }

    /// Sets (JSON text) or removes (`None`) metadata keys of what lies at `path`.
    ///
    /// # Errors
    /// NotFound; Input.
    pub fn set_metadata(&self, path: &str, changes: &[(String, Option<String>)]) -> Result<()> {
        self.note_nodes(|reads, base| reads.note_node(base, path))?;
        if changes.is_empty() {
            return self.check_open();
        }
        let plan = |view: &Snapshot| {
            Ok(vec![Operation::SetMetadata { node: view.node(path)?.id(), changes: changes.to_vec() }])
        };
        self.stage(&mut Vec::new(), plan, |content| {
            content.change("metadata", &[path]);
            for (key, value) in changes {
                content.change(if value.is_some() { "set" } else { "remove" }, &[key, value.as_deref().unwrap_or("")]);
            }
        })
    }
}
