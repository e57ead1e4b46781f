//! Floor `maintain`: what keeps an array healthy: today the check of every stored byte.

mod verify;

pub use verify::{Damage, VerifyReport, verify};
