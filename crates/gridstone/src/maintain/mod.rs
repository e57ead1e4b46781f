//! Floor `maintain`: what keeps an array healthy: merging fragments, forgetting versions, and the check of every stored byte.

mod consolidate;
mod plan;
mod vacuum;
mod verify;

pub use consolidate::{Merged, merge_cells};
pub use plan::{Merge, PlanLimits, Strategy, plan};
pub use vacuum::{Holder, Keep, Tally, VacuumOptions, VacuumReport, vacuum};
pub use verify::{Damage, VerifyReport, verify};
