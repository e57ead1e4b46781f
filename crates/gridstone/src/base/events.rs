//! Events: what happened to a store, as plain values for the log of the caller. Nothing is made of them here.
//!
//! A receiver must return quickly and call nothing of the engine. An event is only built if it is wanted.

use std::fmt::Debug;

/// How much an event matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A step on the way: a slot that was lost, a put that was tried again.
    Debug,
    /// Something is done or was given up: a commit, a merge, a conflict.
    Info,
    /// Something failed that no caller waits for.
    Warning,
}

/// A value that belongs to an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Detail {
    /// A count, a version, bytes.
    Number(u64),
    /// A duration.
    Seconds(f64),
    /// A path, a reason.
    Text(String),
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// How much it matters.
    pub level: Level,
    /// What it is about: "commit", "merge", "vacuum".
    pub topic: &'static str,
    /// What happened, in words.
    pub what: &'static str,
    /// The values that belong to it, by name.
    pub details: Vec<(&'static str, Detail)>,
}

/// Receives events.
pub trait Events: Send + Sync + Debug {
    /// Whether events of this level are wanted. Must cost next to nothing.
    fn wants(&self, level: Level) -> bool;

    /// Takes an event. Locks of the engine may be held meanwhile.
    fn take(&self, event: Event);
}
