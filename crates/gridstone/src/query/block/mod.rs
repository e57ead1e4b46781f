//! Room `block`: fetches and decodes blocks of fragments, with what hides rows of them.

pub(super) mod coalesced;
pub(super) mod deletions;
pub(super) mod fetch;
pub(super) mod masks;
pub(super) mod open;
pub(super) mod sparse;
