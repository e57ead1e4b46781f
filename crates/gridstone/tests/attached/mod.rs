//! Promise: cells of attached files are read as if they were written, can be updated and brought home, and the files are never changed.

mod states;
mod world;
mod worlds;
