//! Tests of the form of schemas in the log.

mod json;
mod stored;
