//! The costs of reads on Linux: ways of reading a file, read-ahead on and off, commits with and without a data file,
//! fresh memory, a second thread.
//!
//! Every answer is compared with the expected one before its time counts. The variants take turns, in another order
//! each round; figures are medians. "Cold" means that the pages of the files were dropped from memory just before
//! (`posix_fadvise`). A file system that keeps them, as one in memory does, is reported. The program is
//! `src/bin/reads.rs`; see docs/design/003-speed.md.

mod ahead;
mod inline;
mod memory;
mod scratch;
mod threads;
mod told;
mod ways;

pub use ahead::ahead;
pub use inline::inline;
pub use memory::memory;
pub use threads::threads;
pub use ways::ways;

use gridstone::base::Error;

/// The system's error while `what` was done.
fn failed(what: &str, error: std::io::Error) -> Error {
    Error::storage(format!("{what}: {error}")).with_source(error)
}
