//! One binary for all integration tests, a module per promise.

#[cfg(test)]
mod paper_examples;
