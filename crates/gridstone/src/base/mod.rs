//! Floor `base`: the basic types that every floor uses, and the small traits between floors.
//!
//! Nothing here depends on arrays. Invariants: no path, no thread, no clock, no randomness of its own; no imports from
//! the other floors.

mod ahead;
mod buffer;
mod checksum;
mod counters;
mod cursor;
mod digest;
mod element;
mod error;
mod events;
mod foreign;
mod id;
mod io;
mod key;
pub mod limits;
mod names;
mod newer;
mod notices;
mod services;
mod wide;

pub use ahead::Ahead;
pub use buffer::AlignedBuf;
pub use checksum::{crc32c, crc32c_append, xxh3};
pub use counters::{CounterSnapshot, Counters};
pub use cursor::{ByteReader, ByteWriter};
pub use digest::Digest;
pub use element::{Element, ElementKind};
pub use error::{Error, ErrorKind, Result};
pub use events::{Detail, Event, Events, Level};
pub use foreign::{ForeignObject, has_scheme};
pub use id::{Id, id_named_twice};
pub use io::{Begun, ByteRange, ByteSink, ByteSource, FileRef, Files, MemorySource, Pending, Ready, Sources};
pub use key::{KEY_BYTES, Key, KeyId, Keys};
pub use names::{PRINTABLE, is_unprintable, printable};
pub use newer::{newer, unknown_name};
pub use notices::Notices;
pub use services::{
    Budget, Cache, CacheKey, Cancel, Clock, Entropy, Inline, NeverCancel, Part, Progress, Signal, Signals, Silent,
    Spawner, Task,
};
pub(crate) use wide::wide;
