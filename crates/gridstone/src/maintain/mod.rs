//! Floor `maintain`: upkeep of arrays and stores: merging fragments, forgetting versions, and verifying every stored
//! byte.

mod consolidate;
mod copy;
mod copy_history;
mod copy_kept;
mod copy_onward;
mod cover;
mod cut;
mod plan;
mod repair;
mod usage;
mod vacuum;
mod verify;
mod verify_store;

pub use consolidate::{Merged, Written, is_done, memory_bytes, merge};
pub use copy::Copier;
pub use copy_history::{HistoryCopied, HistoryCopier};
pub use copy_kept::KeptCopier;
pub use cut::LostVersion;
pub use plan::{HIDDEN_BYTES_MAX, Merge, Plan, PlanLimits, Strategy, hidden, plan};
pub use repair::{RepairAction, RepairOptions, RepairReport, repair};
pub use usage::{ArrayUsage, StoreUsage, usage};
pub use vacuum::{Holder, Keep, Tally, VacuumOptions, VacuumReport, forget, vacuum};
pub use verify::{Damage, VerifyReport, verify};
pub use verify_store::{AffectedCells, StoreDamage, StoreReport, verify_store};
