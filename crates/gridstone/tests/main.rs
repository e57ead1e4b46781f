//! One binary for all integration tests, a module per promise.

#[cfg(test)]
mod child;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod paper_examples;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod writer;
