//! The start of an object, and all of it, each as few ranges: nothing is taken into memory before its length is known and allowed.
//!
//! 1. The first bytes are asked for. The answer brings the length of the object; of a small one it is all there is.
//! 2. A length beyond what an object of this kind may have ([`names::bytes_max`]) is damage, and nothing more is read.
//! 3. The rest is asked for side by side, of the very object that the first bytes came from.

use super::client::{Client, Found};
use super::source::has_no_end;
use crate::base::{Error, Result};
use crate::runtime::Asked;
use crate::storage::names;
use bytes::{Bytes, BytesMut};
use object_store::{Error as Store, GetOptions, GetRange};

/// What is asked for first of an object whose length is not known, and of a long one at once.
pub(super) const PIECE_BYTES: u64 = 8 << 20;

/// Longer than any object; stores take a range that ends beyond what they can count for none.
const RANGE_END_MAX: u64 = 1 << 50;

/// A question for the first bytes of an object, under way.
#[derive(Debug)]
pub(super) struct Question {
    name: String,
    answer: Asked<object_store::Result<Found>>,
}

impl Question {
    /// Asks for the first `len` bytes of `name`, or all if it has fewer; for one at least.
    pub(super) fn start(client: &Client, name: &str, len: u64) -> Result<Self> {
        let range = Some(GetRange::Bounded(0..len.clamp(1, RANGE_END_MAX)));
        let answer = client.start_get(name, GetOptions { range, ..GetOptions::default() })?;
        Ok(Self { name: name.to_owned(), answer })
    }

    /// Asks for all of `name`.
    pub(super) fn start_whole(client: &Client, name: &str) -> Result<Self> {
        Self::start(client, name, names::bytes_max(name).min(PIECE_BYTES))
    }

    /// What is asked for.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The first bytes; NotFound if there is no such object.
    pub(super) fn first(self, client: &Client) -> Result<Found> {
        match self.answer.wait()? {
            Ok(found) => Ok(found),
            Err(e) if has_no_end(&e) => empty(client, &self.name, e),
            Err(e) => Err(client.error("cannot read", &self.name, e)),
        }
    }

    /// All of the object; NotFound if there is none, Corruption if it is longer than any of its kind.
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

/// The answer for an empty object, of which stores give no range (`refusal`).
fn empty(client: &Client, name: &str, refusal: Store) -> Result<Found> {
    match client.head(name)? {
        Some(found) if found.meta.size == 0 => Ok(found),
        Some(_) => Err(client.error("cannot read", name, refusal)),
        None => {
            Err(Error::not_found(format!("cannot read {}: no such object", client.named(name))).with_source(refusal))
        }
    }
}

/// The whole object of which `first` is the start.
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
