//! Floor `maintain`: what keeps an array healthy: merging fragments, and the check of every stored byte.

mod consolidate;
mod plan;
mod verify;

pub use consolidate::{Merged, merge_cells};
pub use plan::{Merge, PlanLimits, Strategy, plan};
pub use verify::{Damage, VerifyReport, verify};
