//! One binary for all integration tests, a module per promise.

mod commit_schedules;
mod concurrent_commits;
mod paper_examples;
mod vectors;
mod writers;
