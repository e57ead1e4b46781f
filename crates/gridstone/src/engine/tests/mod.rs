//! Tests of what only this floor and those below can make: parts of arrays that no caller gives yet.

mod labels;
mod parts;
mod shared_labels;
mod unborn;
