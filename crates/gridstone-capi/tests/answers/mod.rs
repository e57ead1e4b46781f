//! What is read into results, asked, and given to and taken from Arrow.

mod aggregate;
mod arrow_in;
mod arrow_out;
mod fixture;
mod points;
mod producer;
mod result;
mod source;
