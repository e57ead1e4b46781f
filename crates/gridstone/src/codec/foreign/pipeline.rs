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

    /// Whether a program decodes a filter: that may take long.
    pub fn has_user_filters(&self) -> bool {
        self.filters.iter().any(|filter| filter.is_user_defined())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    #[test]
    fn names_are_canonical() {
        for (text, name) in [
            ("none", "none"),
            (" shuffle:4, deflate ,fletcher32", "shuffle:4,deflate,fletcher32"),
            ("bitshuffle:2", "bitshuffle:2"),
            ("bitshuffle:2:lz4", "bitshuffle:2:lz4"),
            ("bitshuffle:20:64:zstd,crc32c", "bitshuffle:20:64:zstd,crc32c"),
            ("delta:<i4:<i4", "delta:<i4"),
            ("delta:>i4:|u1,blosc", "delta:>i4:|u1,blosc"),
            ("fixedscaleoffset:1e3:0.1:<f8:|u1", "fixedscaleoffset:1000:0.1:<f8:|u1"),
            ("hdf5.32013:a:b%2C1,gzip,lz4,lz4h5,lzf,zstd", "hdf5.32013:a:b%2C1,gzip,lz4,lz4h5,lzf,zstd"),
        ] {
            let pipeline = ForeignPipeline::parse(text).unwrap();
            assert_eq!(pipeline.name(), name);
            assert_eq!(ForeignPipeline::parse(name).unwrap(), pipeline);
            assert_eq!(pipeline.is_none(), text == "none");
        }
        assert_eq!(ForeignPipeline::none().name(), "none");
    }

    #[test]
    fn bad_names_say_what_is_known() {
        use ErrorKind::{Schema, Unsupported};
        let many = vec!["crc32c"; 33].join(",");
        for (text, kind, part) in [
            ("szip", Unsupported, "\"szip\" is not known; known are none, shuffle:W"),
            ("", Unsupported, "\"\" is not known"),
            ("deflate,none", Unsupported, "\"none\" is not known"),
            ("shuffle", Schema, "shuffle:W"),
            ("shuffle:0", Schema, "found \"0\""),
            ("shuffle:4:4", Schema, "shuffle:W"),
            ("shuffle:+4", Schema, "found \"+4\""),
            ("shuffle:4294967296", Schema, "found \"4294967296\""),
            ("deflate:6", Schema, "has no parameters"),
            ("bitshuffle", Schema, "bitshuffle:W"),
            ("bitshuffle:4:lz5", Schema, "found \"lz5\""),
            ("bitshuffle:4:12", Schema, "multiple of 8"),
            ("delta", Schema, "delta:T"),
            ("delta:<i4:<i4:<i4", Schema, "delta:T"),
            ("delta:<i3", Schema, "<i3"),
            ("fixedscaleoffset:1:nan:<f8", Schema, "its scale"),
            ("fixedscaleoffset:1:2", Schema, "OFFSET"),
            (many.as_str(), Schema, "at most 32"),
        ] {
            let error = ForeignPipeline::parse(text).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.message().contains(part), "{error}");
        }
    }

    /// Every mask of three filters: what is left is applied, in its order.
    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn masks_leave_filters_out() {
        let pipeline = ForeignPipeline::parse("shuffle:4,deflate,fletcher32").unwrap();
        let input: Vec<u8> = (0..400u16).map(|n| (n / 7) as u8).collect();
        for mask in 0..16u32 {
            let parts = ["shuffle:4", "deflate", "fletcher32"];
            let kept: Vec<_> = (0..3).filter(|i| mask >> i & 1 == 0).map(|i| parts[i]).collect();
            let left = pipeline.without(mask);
            assert_eq!(left.name(), if kept.is_empty() { "none".to_owned() } else { kept.join(",") });
            assert_eq!(left.decode(&left.encode(&input).unwrap(), 400).unwrap(), input);
        }
        assert!(ForeignPipeline::parse(&vec!["crc32c"; 32].join(",")).unwrap().without(u32::MAX).is_none());
    }

    #[test]
    fn lengths_are_exact() {
        for text in ["none", "lz4", "shuffle:2,lz4h5,crc32c"] {
            let pipeline = ForeignPipeline::parse(text).unwrap();
            let stored = pipeline.encode(&[5; 800]).unwrap();
            assert_eq!(pipeline.decode(&stored, 800).unwrap(), [5; 800]);
            for wrong in [0, 1, 799, 801, 1 << 20] {
                assert_eq!(
                    pipeline.decode(&stored, wrong).unwrap_err().kind(),
                    ErrorKind::Corruption,
                    "{text} {wrong}"
                );
            }
            let error = pipeline.decode(&stored, CHUNK_BYTES_MAX + 1).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
        }
    }

    /// A few bytes that a compressor makes much of do not make much of the next one's input.
    #[test]
    fn intermediate_results_are_bounded() {
        let pipeline = ForeignPipeline::parse("lz4,lz4").unwrap();
        let once = ForeignPipeline::parse("lz4").unwrap();
        let bomb = once.encode(&once.encode(&vec![0; 1 << 20]).unwrap()).unwrap();
        assert_eq!(pipeline.decode(&bomb, 1 << 20).unwrap().len(), 1 << 20);
        let huge = once.encode(&vec![0; 1 << 20]).unwrap();
        let error = pipeline.decode(&huge, 1_000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
    }

    #[test]
    fn filters_that_only_decode_say_so() {
        for text in ["blosc", "lzf"] {
            let error = ForeignPipeline::parse(text).unwrap().encode(&[1]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.message().contains(text), "{error}");
        }
    }
}
