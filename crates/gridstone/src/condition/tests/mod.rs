//! Tests of conditions: random ones on random columns against an oracle that goes row by row; borders; texts.

mod borders;
mod enumerated;
mod oracle;
mod random;
mod text;
mod world;
