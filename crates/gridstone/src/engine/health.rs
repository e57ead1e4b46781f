//! The check of whole stores, and their repair.

use super::address::{store_at, store_on};
use super::{Array, Call, Context};
use crate::base::{Detail, Id, Level, Result};
use crate::maintain::{self, RepairOptions, RepairReport, StoreReport, VerifyReport, verify, verify_store};
use crate::storage::Storage;
use std::sync::Arc;

impl Array {
    /// Reads and checks every byte of every fragment of this version.
    ///
    /// # Errors
    /// Storage, Access, Cancelled. Damage is reported.
    pub fn verify(&self, call: &Call) -> Result<VerifyReport> {
        let (snapshot, state) = self.state()?;
        let fragments = self.described(&snapshot, &state, None)?;
        let report = verify(&self.read_context(&snapshot, call), state.schema(), &fragments)?;
        if !report.damage.is_empty() {
            // What is missing because the version was vacuumed is no damage.
            self.store().resettled(&snapshot)?;
        }
        Ok(report)
    }
}

/// Checks everything that a kept version of the store at `uri` needs, also where nothing of it can be opened.
///
/// # Errors
/// NotFound if there is no store; Storage, Access, Cancelled. Damage is reported.
pub fn verify_uri(context: &Context, uri: &str, call: &Call) -> Result<StoreReport> {
    let store = store_at(context, uri)?;
    verify_store(&store, &context.read_context(store.place(Id([0; 16])), store.files(), call))
}

/// As [`verify_uri`], of the store on `storage`.
///
/// # Errors
/// As there.
pub fn verify_on(context: &Context, storage: Arc<dyn Storage>, call: &Call) -> Result<StoreReport> {
    let store = store_on(context, storage);
    verify_store(&store, &context.read_context(store.place(Id([0; 16])), store.files(), call))
}

/// Makes damaged and lost objects of the store at `uri` again, as far as the rest of it tells how; if asked, cuts the log at its last sound
/// version.
///
/// # Errors
/// NotFound if there is no store; Conflict if it was written to meanwhile; Storage, Access, Cancelled. Whenever it stops, what was
/// readable is.
pub fn repair(context: &Context, uri: &str, options: RepairOptions, call: &Call) -> Result<RepairReport> {
    let store = store_at(context, uri)?;
    let done = maintain::repair(&store, &context.read_context(store.place(Id([0; 16])), store.files(), call), options)?;
    if !options.dry_run {
        store.tell((Level::Info, "repair", "repaired"), || {
            vec![
                ("actions", Detail::Number(done.actions.len() as u64)),
                ("remaining", Detail::Number(done.remaining.len() as u64)),
                ("versions_lost", Detail::Number(done.lost.len() as u64)),
            ]
        });
    }
    Ok(done)
}

/// As [`repair`], of the store on `storage`.
pub fn repair_on(
    context: &Context,
    storage: Arc<dyn Storage>,
    options: RepairOptions,
    call: &Call,
) -> Result<RepairReport> {
    let store = store_on(context, storage);
    maintain::repair(&store, &context.read_context(store.place(Id([0; 16])), store.files(), call), options)
}
