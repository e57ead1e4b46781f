//! One binary for all integration tests, a module per promise.

mod child;
mod commit_schedules;
mod concurrent_commits;
mod crash;
mod paper_examples;
mod processes;
mod stopping;
mod vectors;
mod verify;
mod writer;
mod writers;
