//! Promise: a write stores its cells as given, in one commit, or is refused with a reason.

mod commit_keys;
mod edges;
mod evolution;
mod growth;
mod keyed_repeats;
mod large_values;
mod many_commits;
mod moves;
mod open_axes;
pub(crate) mod receipts;
mod refusals;
mod same_bytes;
mod staged_deletes;
mod stopping;
mod unsorted;
mod user_filters;
