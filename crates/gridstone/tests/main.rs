//! One binary for all integration tests, a module per promise.

mod damage;
mod edges;
mod io_count;
mod many_writers;
mod oracle;
mod refusals;
mod scratch;

/// Measures the largest single allocation of each thread; see `damage`.
#[global_allocator]
static ALLOCATOR: gridstone_testkit::Measured = gridstone_testkit::Measured;
