//! States of aggregates: for each group what was seen of its rows, in columns over the groups.
//!
//! A state is built from rows (`update`), and from the fields of other states of its kind (`absorb`). What it holds is written
//! as columns (`fields`): so states of threads, of tiles that the index answers for, and of other machines are merged the
//! same way. `finish` gives the results.
//!
//! Invariant: rows may be split in any way, and the fields of the parts absorbed in any order. Counts, sums of integers, least and
//! greatest values, and rows picked by a rank are those of one state over all rows.

mod counts;
mod extremes;
pub(super) mod input;
mod moments;
mod payload;
mod picks;
mod sketches;
mod sums;
mod truths;

pub(super) use counts::Counts;
pub(super) use extremes::Extremes;
pub(super) use moments::{Moments, Spread};
pub(super) use picks::{Picks, Rank};
pub(super) use sketches::Sketches;
pub(super) use sums::{Sums, Total};
pub(super) use truths::Truths;
