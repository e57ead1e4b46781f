//! Floor `base`: the basic types that every floor uses, and the small traits between floors.
//!
//! Programs meet here the one [`Error`], and what they may hand to the engine: a [`Cancel`], a [`Progress`], [`Keys`] of sealed
//! stores, a [`Clock`], [`Events`]. What else the floors share is public for tools, and does not appear here.
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
#[doc(hidden)]
pub mod limits;
mod names;
mod newer;
mod notices;
mod services;
mod wide;

pub use buffer::AlignedBuf;
pub use counters::CounterSnapshot;
pub use error::{Error, ErrorKind, Result};
pub use events::{Detail, Event, Events, Level};
pub use foreign::ForeignObject;
pub use id::Id;
pub use key::{KEY_BYTES, Key, KeyId, Keys};
pub use services::{Cancel, Clock, NeverCancel, Progress, Silent};

// What the floors share among themselves.
#[doc(hidden)]
pub use self::{
    ahead::Ahead,
    checksum::{crc32c, crc32c_append, xxh3},
    counters::Counters,
    cursor::{ByteReader, ByteWriter},
    digest::Digest,
    element::{Element, ElementKind},
    foreign::has_scheme,
    id::id_named_twice,
    io::{Begun, ByteRange, ByteSink, ByteSource, FileRef, Files, MemorySource, Pending, Ready, Sources},
    names::{PRINTABLE, is_unprintable, printable},
    newer::{newer, unknown_name},
    notices::Notices,
    services::{Budget, Cache, CacheKey, Entropy, Inline, Part, Signal, Signals, Spawner, Task},
};
pub(crate) use wide::wide;
