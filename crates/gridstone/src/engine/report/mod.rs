//! Reports and listings as JSON: what a binding hands to its users as text, the same in each language.
//!
//! Each file has the methods `to_json` of one kind. The [floor](super) says what holds for all of these texts. The keys
//! stand in the order of the method's documentation, and no method can fail.

mod condition;
mod consolidation;
mod copy;
mod counters;
mod health;
mod omission;
mod retention;
mod source;
mod version;

#[cfg(test)]
mod tests;
