//! The pipeline of foreign filters: its text, and decoding a chunk.

use super::filter::ForeignFilter;
use super::{names, user};
use crate::base::{Error, Result};
use std::sync::Arc;

/// The largest number of filters: a mask has a bit for each, and HDF5 allows as many.
const FILTERS_MAX: usize = 32;

/// The largest decoded chunk in bytes, that of HDF5.
const CHUNK_BYTES_MAX: usize = u32::MAX as usize;

/// What an intermediate result may take beyond [`ROOM_FACTOR`] times the decoded length.
const ROOM_BYTES: usize = 64 << 10;

/// Numbers of one byte may be stored as numbers of eight.
const ROOM_FACTOR: usize = 8;

/// The filters of a foreign chunk, in the order in which its writer applied them.
#[derive(Debug, Clone, Default)]
pub struct ForeignPipeline {
    filters: Vec<Arc<dyn ForeignFilter>>,
}

impl PartialEq for ForeignPipeline {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for ForeignPipeline {}

impl ForeignPipeline {
    /// The pipeline without a filter, `"none"`: chunks are stored raw.
    pub fn none() -> Self {
        Self::default()
    }

    /// Parses the pipeline in `text`: filters separated by commas, or `"none"`.
    ///
    /// Errors: Unsupported for a filter that is not known; the message names it and lists the known ones. Schema for
    /// parameters that a filter does not have, and for more than 32 filters.
    pub fn parse(text: &str) -> Result<Self> {
        if text.trim() == "none" {
            return Ok(Self::none());
        }
        let filters = text.split(',').map(|part| names::filter(part.trim())).collect::<Result<Vec<_>>>();
        let filters = filters.and_then(within_limits);
        filters.map(|filters| Self { filters }).map_err(|e| e.context(format!("foreign pipeline {text:?}")))
    }

    /// The name of a user-defined filter in the text of a pipeline: `id`, and `parameters` of any characters behind it.
    ///
    /// Errors: Schema if `id` is not that of a user-defined filter, or the parameters are too long.
    pub fn user_filter(id: &str, parameters: &str) -> Result<String> {
        user::name(id, parameters)
    }

    /// The canonical text; `parse` returns the same pipeline.
    pub fn name(&self) -> String {
        if self.is_none() {
            return "none".into();
        }
        self.filters.iter().map(|f| f.name()).collect::<Vec<_>>().join(",")
    }

    /// Whether stored bytes are the raw bytes.
    pub fn is_none(&self) -> bool {
        self.filters.is_empty()
    }

    /// An Unsupported error if a filter is user-defined and not registered.
    pub fn check_available(&self) -> Result<()> {
        self.filters.iter().try_for_each(|filter| filter.check_available())
    }

    /// The pipeline without the filters that `mask` has a bit for, bit 0 for the first: a chunk of HDF5 says so which
    /// filters its writer skipped.
    pub fn without(&self, mask: u32) -> Self {
        let applied = |(i, _): &(usize, &Arc<dyn ForeignFilter>)| *i >= FILTERS_MAX || mask >> *i & 1 == 0;
        Self { filters: self.filters.iter().enumerate().filter(applied).map(|(_, f)| f.clone()).collect() }
    }

    /// The stored form of `input`.
    ///
    /// Errors: Unsupported if a filter only decodes, Input if `input` is of a length that a filter cannot take.
    pub fn encode(&self, input: &[u8]) -> Result<Vec<u8>> {
        let mut filters = self.filters.iter();
        let Some(first) = filters.next() else { return Ok(input.to_vec()) };
        filters.try_fold(first.encode(input)?, |bytes, filter| filter.encode(&bytes))
    }

    /// Decodes all of `input`; the result has exactly `decoded_len` bytes.
    ///
    /// Memory: an intermediate result takes at most what its filter makes of the bytes before it. That is their length
    /// for `shuffle`, four more for checksums, an eighth and 4,096 more for compressors, twice as much and 4,096 more
    /// for user-defined filters, and the ratio of the types' widths for numbers. None takes more than eight times
    /// `decoded_len` and 64 KiB. Beside it, `blosc` and `bitshuffle` take a block of at most `decoded_len` bytes, and
    /// `bzip2` and `zstd` up to 4 MiB.
    ///
    /// Errors: Corruption if `input` is malformed or decodes to another length; Unsupported if a filter is missing, the
    /// chunk is of a variant that is not read, or `decoded_len` exceeds the 4 GiB of HDF5.
    pub fn decode(&self, input: &[u8], decoded_len: usize) -> Result<Vec<u8>> {
        if decoded_len > CHUNK_BYTES_MAX {
            return Err(Error::unsupported(format!(
                "a foreign chunk of {decoded_len} bytes exceeds the limit of {CHUNK_BYTES_MAX}"
            )));
        }
        if self.is_none() {
            check_decoded(input.len(), decoded_len)?;
            return Ok(input.to_vec());
        }
        let most = decoded_len.saturating_mul(ROOM_FACTOR).saturating_add(ROOM_BYTES);
        let rooms = self.filters.iter().scan(decoded_len, |room, filter| {
            let given = *room;
            *room = filter.encoded_len_max(given).min(most);
            Some((filter, given))
        });
        let stages: Vec<_> = rooms.collect();
        let mut decoded: Option<Vec<u8>> = None;
        for (filter, room) in stages.into_iter().rev() {
            let mut out = vec![0; room];
            let len = filter.decode(decoded.as_deref().unwrap_or(input), &mut out)?;
            out.truncate(len);
            decoded = Some(out);
        }
        let decoded = decoded.unwrap_or_default();
        check_decoded(decoded.len(), decoded_len)?;
        Ok(decoded)
    }
}

fn within_limits(filters: Vec<Arc<dyn ForeignFilter>>) -> Result<Vec<Arc<dyn ForeignFilter>>> {
    if filters.len() <= FILTERS_MAX {
        return Ok(filters);
    }
    Err(Error::schema(format!("{} filters in one pipeline; at most {FILTERS_MAX} are allowed", filters.len())))
}

fn check_decoded(found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::corruption(format!("the foreign chunk decodes to {found} bytes; {expected} were expected")))
}
