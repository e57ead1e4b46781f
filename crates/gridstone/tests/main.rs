//! One binary for all integration tests, a module per promise.

mod vectors;
