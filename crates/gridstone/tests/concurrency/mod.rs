//! Promise: threads and processes work on one store at once. Commits form one history, each is whole, and none is lost.

mod commit_schedules;
mod concurrent_commits;
mod doubles;
mod first_committer;
mod group_commit;
mod group_moments;
mod group_schedules;
mod lost_updates;
mod many_writers;
mod overtaken;
pub(crate) mod processes;
mod protocol_schedules;
mod serializable;
pub(crate) mod stress;
mod together;
mod transactions;
