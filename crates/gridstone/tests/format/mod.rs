//! Promise: stored bytes stay readable in every storage. Damage, forgery and newer formats are errors, never wrong cells.

mod astray;
mod bases;
mod damage;
mod features;
mod kept;
mod large_state;
mod newer;
#[cfg(feature = "object-stores")]
mod objects;
pub(crate) mod older;
mod pure_rust;
mod room;
mod rows;
mod sealing;
mod untrusted_files;
pub(crate) mod vectors;
