//! Reads the start of an object, or all of it, in few ranges: no bytes are held in memory before the length is known
//! and allowed.
//!
//! 1. The first bytes are requested. The answer includes the length of the object; for a small object it is complete.
//! 2. A length beyond what an object of this kind may have ([`names::bytes_max`]) is damage, and nothing more is read.
//! 3. The rest is requested concurrently, from the same object that the first bytes came from.

use super::client::{Client, Found};
use super::source::has_no_end;
use crate::base::{Error, Result};
use crate::runtime::Asked;
use crate::storage::names;
use bytes::{Bytes, BytesMut};
use object_store::{Error as Store, GetOptions, GetRange};

/// The first request for an object of unknown length, and the size of each request for a long one.
pub(super) const PIECE_BYTES: u64 = 8 << 20;

/// Longer than any object; stores reject a range that ends beyond what they can count.
const RANGE_END_MAX: u64 = 1 << 50;

/// A request for the first bytes of an object, in flight.
#[derive(Debug)]
pub(super) struct Question {
    name: String,
    answer: Asked<object_store::Result<Found>>,
}

impl Question {
    /// Requests the first `len` bytes of `name`, at least one, or all if it has fewer.
    pub(super) fn start(client: &Client, name: &str, len: u64) -> Result<Self> {
        let range = Some(GetRange::Bounded(0..len.clamp(1, RANGE_END_MAX)));
        let answer = client.start_get(name, GetOptions { range, ..GetOptions::default() })?;
        Ok(Self { name: name.to_owned(), answer })
    }

    /// Requests all of `name`.
    pub(super) fn start_whole(client: &Client, name: &str) -> Result<Self> {
        Self::start(client, name, names::bytes_max(name).min(PIECE_BYTES))
    }

    /// The object requested.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The first bytes; NotFound if the object does not exist.
    pub(super) fn first(self, client: &Client) -> Result<Found> {
        match self.answer.wait()? {
            Ok(found) => Ok(found),
            Err(e) if has_no_end(&e) => empty(client, &self.name, e),
            Err(e) => Err(client.error("cannot read", &self.name, e)),
        }
    }

    /// The whole object; NotFound if it does not exist, Corruption if it is longer than its kind allows.
    pub(super) fn whole(self, client: &Client) -> Result<Found> {
        let name = self.name.clone();
        let first = self.first(client)?;
        let (len, len_max) = (first.meta.size, names::bytes_max(&name));
        if len > len_max {
            return Err(Error::corruption(format!(
                "{} has {len} bytes, and no object of its kind has more than {len_max}: it was damaged, or put there by somebody \
                 else. Nothing of it was used",
                client.named(&name)
            )));
        }
        if first.bytes.len() as u64 == len { Ok(first) } else { completed(client, &name, first) }
    }
}

/// The answer for an empty object, for which stores return no range (`refusal`).
fn empty(client: &Client, name: &str, refusal: Store) -> Result<Found> {
    match client.head(name)? {
        Some(found) if found.meta.size == 0 => Ok(found),
        Some(_) => Err(client.error("cannot read", name, refusal)),
        None => {
            Err(Error::not_found(format!("cannot read {}: no such object", client.named(name))).with_source(refusal))
        }
    }
}

/// The whole object whose start is `first`.
fn completed(client: &Client, name: &str, first: Found) -> Result<Found> {
    let (len, start) = (first.meta.size, first.bytes.len() as u64);
    let too_long = |_| Error::budget(format!("{} has {len} bytes, more than can be addressed", client.named(name)));
    let mut all = BytesMut::with_capacity(usize::try_from(len).map_err(too_long)?);
    all.extend_from_slice(&first.bytes);
    let mut asked = Vec::new();
    for from in (start..len).step_by(PIECE_BYTES as usize) {
        let range = from..len.min(from + PIECE_BYTES);
        asked.push((range.end - range.start, client.start_range(name, range, first.meta.e_tag.clone())?));
    }
    for (wanted, answer) in asked {
        let found = answer.wait()?.map_err(|e| client.error("cannot read", name, e))?;
        if found.bytes.len() as u64 != wanted || found.meta.size != len {
            return Err(Error::storage(format!("{} changed while it was read; try again", client.named(name))));
        }
        all.extend_from_slice(&found.bytes);
    }
    Ok(Found { bytes: Bytes::from(all), ..first })
}
