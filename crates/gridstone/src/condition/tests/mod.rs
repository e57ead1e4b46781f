//! Tests of conditions: random ones on random columns against a row-by-row oracle; limits; texts.

mod borders;
mod case;
mod computed;
mod enumerated;
mod oracle;
mod random;
mod text;
mod world;
