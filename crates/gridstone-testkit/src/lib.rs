//! Oracles and generators for the tests: a naive in-memory array, schemas, boxes and cells. A session applies the same
//! operations to a real array and to the naive one and compares what they read.
//!
//! The oracle shares no code with the engine: coordinates are numbers, not ordered keys; the global order is its
//! definition; a state is a sorted map of cells. All randomness comes from [`Dice`], whose seeds proptest prints.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test kit fails by panicking")]

mod alloc;
mod coord;
mod dice;
mod enumeration;
mod evolve;
mod filter;
mod model;
mod plan;
mod relaid;
mod rounding;
mod run;
mod session;
mod stage;
mod text;
mod value;

pub use alloc::Measured;
pub use coord::{Coord, Dim, Place, box_cells, box_texts, inside};
pub use dice::Dice;
pub use model::{Change, Expected, Model, Shape, expected_rows};
pub use plan::{Case, Kind, Plan, Size, cases};
pub use relaid::Relaying;
pub use run::on_random;
pub use session::{Session, rows_of};
pub use stage::stage;
pub use value::{Value, column, random, values_of};
