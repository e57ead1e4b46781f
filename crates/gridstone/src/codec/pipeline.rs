//! A pipeline: the ordered filters between the raw bytes of a block and its stored bytes.

use super::Filter;
use super::{registry, user};
use crate::base::limits::BLOCK_BYTES_MAX;
use crate::base::{Element, Error, Result};
use std::cell::Cell;
use std::sync::Arc;

/// Scratch buffers above this size in bytes are freed after use.
const SCRATCH_BYTES_MAX: usize = 16 << 20;

/// The largest number of user-defined filters in one pipeline.
const USER_FILTERS_MAX: usize = 4;

thread_local! {
    /// The intermediate results between two filters. Taken while in use, so that a filter may itself run a pipeline.
    static SCRATCH: Cell<[Vec<u8>; 2]> = const { Cell::new([Vec::new(), Vec::new()]) };
}

/// An ordered list of filters; encoding runs it from first to last, decoding from last to first.
#[derive(Debug, Clone, Default)]
pub struct Pipeline {
    filters: Vec<Arc<dyn Filter>>,
}

impl PartialEq for Pipeline {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Pipeline {}

impl Pipeline {
    /// The pipeline without a filter, `"none"`: blocks are stored raw.
    pub fn none() -> Self {
        Self::default()
    }

    /// The pipeline of `filters`, first to last.
    pub fn new(filters: Vec<Arc<dyn Filter>>) -> Self {
        Self { filters }
    }

    /// Parses the pipeline in `text`: filters separated by commas, or `"none"`. Levels may be omitted.
    ///
    /// Errors: Schema for an unknown filter (the message lists the known ones) or a level out of range.
    pub fn parse(text: &str) -> Result<Self> {
        if text.trim() == "none" {
            return Ok(Self::none());
        }
        let parts = || text.split(',').map(str::trim);
        let filters = parts().map(registry::filter).collect::<Result<_>>();
        let made = filters.map(Self::new).and_then(|made| made.within_limits(parts()));
        made.map_err(|e| e.context(format!("pipeline {text:?}")))
    }

    /// Each user-defined filter may double the intermediate result, for which a reader must have room.
    fn within_limits<'a>(self, parts: impl Iterator<Item = &'a str>) -> Result<Self> {
        let count = parts.filter(|part| user::is_id(part)).count();
        if count <= USER_FILTERS_MAX {
            return Ok(self);
        }
        Err(Error::schema(format!(
            "{count} user-defined filters in one pipeline; at most {USER_FILTERS_MAX} are allowed"
        )))
    }

    /// An Unsupported error if a filter is user-defined and not registered.
    pub fn check_available(&self) -> Result<()> {
        self.filters.iter().try_for_each(|filter| filter.check_available())
    }

    /// The canonical text, with every level; `parse` returns the same pipeline.
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

    /// A Schema error unless every filter accepts its input when the pipeline is given `element`.
    pub fn check(&self, element: Element) -> Result<()> {
        self.stages(element).try_for_each(|(filter, e)| {
            if filter.accepts(e) {
                return Ok(());
            }
            let (pipeline, filter, kind, width) = (self.name(), filter.name(), e.kind, e.width);
            let message = format!(
                "filters {pipeline:?}: {filter} does not accept {kind} values of {width} bytes; choose another filter"
            );
            Err(Error::schema(message))
        })
    }

    /// The stored form of `input`.
    ///
    /// Errors: as [`Self::encode_into`].
    pub fn encode(&self, input: &[u8], element: Element) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.encode_into(input, element, &mut out)?;
        Ok(out)
    }

    /// Appends the stored form of `input` to `out`; after an error, `out` is as it was.
    ///
    /// Errors: Schema if a filter does not accept its element, Input if `input` is not whole elements where a filter
    /// needs them, or is longer than a block may be.
    pub fn encode_into(&self, input: &[u8], element: Element, out: &mut Vec<u8>) -> Result<()> {
        self.check(element)?;
        check_len(input.len())?;
        let start = out.len();
        let encoded = with_scratch(|a, b| self.encode_stages(input, element, out, [a, b]));
        if encoded.is_err() {
            out.truncate(start);
        }
        encoded
    }

    fn encode_stages(
        &self,
        input: &[u8],
        element: Element,
        out: &mut Vec<u8>,
        [mut from, mut to]: [&mut Vec<u8>; 2],
    ) -> Result<()> {
        let Some(last) = self.filters.len().checked_sub(1) else {
            out.extend_from_slice(input);
            return Ok(());
        };
        for (i, (filter, element)) in self.stages(element).enumerate() {
            let input = if i == 0 { input } else { from.as_slice() };
            if i == last {
                return filter.encode(input, element, out);
            }
            to.clear();
            filter.encode(input, element, to)?;
            std::mem::swap(&mut from, &mut to);
        }
        Ok(())
    }

    /// The largest number of bytes that any `len` stored bytes decode to.
    pub fn decoded_len_max(&self, len: usize) -> usize {
        self.filters.iter().rev().fold(len, |len, filter| filter.decoded_len_max(len))
    }

    /// The `expected_len` raw bytes of the stored form `stored`.
    ///
    /// Errors: as [`Self::decode_into`]; nothing is allocated for an `expected_len` above the limit of a block.
    pub fn decode(&self, stored: &[u8], element: Element, expected_len: usize) -> Result<Vec<u8>> {
        check_len(expected_len).map_err(|e| Error::corruption(e.message()))?;
        let mut out = vec![0; expected_len];
        self.decode_into(stored, element, &mut out)?;
        Ok(out)
    }

    /// Decodes `stored` into `out`, which has the length of the raw bytes. The last step writes to `out` itself, so a
    /// pipeline of one filter copies nothing.
    ///
    /// Errors: Corruption if `stored` is malformed or does not decode to exactly `out.len()` bytes; `out` is then
    /// unspecified. Schema if a filter does not accept its element.
    pub fn decode_into(&self, stored: &[u8], element: Element, out: &mut [u8]) -> Result<()> {
        self.check(element)?;
        let expected = out.len();
        let found = match self.filters.as_slice() {
            [] if stored.len() == expected => {
                out.copy_from_slice(stored);
                expected
            }
            [] => stored.len(),
            [only] => only.decode(stored, element, out)?,
            [first, ..] => {
                let last = |input: &[u8]| first.decode(input, element, out);
                with_scratch(|a, b| self.decode_stages(stored, element, expected, [a, b], last))?
            }
        };
        self.check_decoded(found, expected)
    }

    /// Fills `out` with only the elements `rows` (ascending) of the `count` in `stored`, side by side, if the first
    /// filter to encode can pick them. Returns false if it cannot; then nothing was done.
    ///
    /// Errors: those of [`Self::decode_into`] for all elements.
    pub fn decode_rows(
        &self,
        stored: &[u8],
        element: Element,
        count: usize,
        rows: &[u32],
        out: &mut [u8],
    ) -> Result<bool> {
        let Some(picks) = self.filters.first().and_then(|filter| filter.picks()) else { return Ok(false) };
        self.check(element)?;
        let expected = count.saturating_mul(element.size());
        let mut last = |input: &[u8]| picks.decode_rows(input, element, count, rows, out);
        let found = match self.filters.len() {
            1 => last(stored)?,
            _ => with_scratch(|a, b| self.decode_stages(stored, element, expected, [a, b], last))?,
        };
        self.check_decoded(found, expected)?;
        Ok(true)
    }

    fn check_decoded(&self, found: usize, expected: usize) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        let name = self.name();
        let message = format!("a block of pipeline {name:?} decodes to {found} bytes, {expected} were expected");
        Err(Error::corruption(message))
    }

    fn decode_stages(
        &self,
        stored: &[u8],
        element: Element,
        expected: usize,
        [mut from, mut to]: [&mut Vec<u8>; 2],
        last: impl FnOnce(&[u8]) -> Result<usize>,
    ) -> Result<usize> {
        // The input of each filter at encoding, and the most bytes that it can have had.
        let mut bound = expected;
        let mut stages = Vec::with_capacity(self.filters.len());
        for (filter, element) in self.stages(element) {
            stages.push((filter, element, bound));
            bound = filter.encoded_len_max(bound);
        }
        for (i, (filter, element, bound)) in stages.iter().enumerate().rev() {
            let input = if i + 1 == stages.len() { stored } else { from.as_slice() };
            if i == 0 {
                return last(input);
            }
            to.resize(*bound, 0);
            let len = filter.decode(input, *element, to)?;
            to.truncate(len);
            std::mem::swap(&mut from, &mut to);
        }
        Ok(0)
    }

    /// The filters, each with its element.
    fn stages(&self, element: Element) -> impl Iterator<Item = (&dyn Filter, Element)> {
        self.filters.iter().scan(element, |element, filter| {
            let given = *element;
            *element = filter.output(given);
            Some((filter.as_ref(), given))
        })
    }
}

fn check_len(len: usize) -> Result<()> {
    if len <= BLOCK_BYTES_MAX {
        return Ok(());
    }
    Err(Error::input(format!("a block of {len} bytes exceeds the limit of {BLOCK_BYTES_MAX}")))
}

fn with_scratch<T>(work: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>) -> T) -> T {
    let [mut a, mut b] = SCRATCH.take();
    let done = work(&mut a, &mut b);
    if a.capacity() + b.capacity() <= SCRATCH_BYTES_MAX {
        SCRATCH.set([a, b]);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;
    use proptest::prelude::*;

    #[test]
    fn names_are_canonical() {
        for (text, name) in [
            ("none", "none"),
            ("delta, for", "delta,for"),
            ("zstd", "zstd:3"),
            ("gzip", "gzip:6"),
            ("shuffle,zstd:19", "shuffle,zstd:19"),
            ("bitshuffle,lz4", "bitshuffle,lz4"),
            ("pco:8", "pco:8"),
        ] {
            let pipeline = Pipeline::parse(text).unwrap();
            assert_eq!(pipeline.name(), name);
            assert_eq!(Pipeline::parse(name).unwrap(), pipeline);
        }
        assert!(Pipeline::parse("none").unwrap().is_none());
    }

    #[test]
    fn bad_names_say_what_is_known() {
        for (text, part) in [
            ("zstb", "\"zstb\" is not known; known are none"),
            ("", "\"\" is not known"),
            ("zstd:23", "levels 1 to 22, found \"23\""),
            ("zstd:0", "levels 1 to 22"),
            ("pco:x", "found \"x\""),
            ("delta:1", "has no level"),
            ("none,zstd", "\"none\" is not known"),
        ] {
            let error = Pipeline::parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Schema);
            assert!(error.message().contains(part), "{error}");
        }
    }

    #[test]
    fn a_filter_that_does_not_accept_its_element_is_a_schema_error() {
        for (text, element) in
            [("delta", Element::float(8)), ("pco", Element::BYTE), ("shuffle,pco", Element::signed(8))]
        {
            let error = Pipeline::parse(text).unwrap().encode(&[0; 8], element).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Schema, "{error}");
        }
        assert!(Pipeline::parse("delta,pco").unwrap().check(Element::unsigned(2)).is_ok());
    }

    #[test]
    fn a_length_that_is_not_the_expected_one_is_corruption() {
        let texts = ["none", "delta", "for", "lz4", "zstd", "gzip", "pco", "delta,for", "delta,for,zstd:1"];
        // Miri cannot call C.
        for text in texts.into_iter().filter(|text| !cfg!(miri) || !text.contains('z') || text.contains("lz4")) {
            let pipeline = Pipeline::parse(text).unwrap();
            let stored = pipeline.encode(&[5; 800], Element::signed(4)).unwrap();
            for wrong in [0, 796, 804, 1 << 20, BLOCK_BYTES_MAX + 1] {
                let error = pipeline.decode(&stored, Element::signed(4), wrong).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corruption, "{text} {wrong}: {error}");
            }
        }
    }

    #[test]
    fn an_error_leaves_the_output_as_it_was() {
        let mut out = vec![1, 2, 3];
        let error =
            Pipeline::parse("delta,for").unwrap().encode_into(&[0; 7], Element::signed(2), &mut out).unwrap_err();
        assert_eq!((error.kind(), out), (ErrorKind::Input, vec![1, 2, 3]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_pipeline_gives_back_its_input(
            values in prop::collection::vec(-500i32..500, 0..5000),
            pick in 0..if cfg!(miri) { 6 } else { 11usize },
        ) {
            // Miri takes the first six, since it cannot call C.
            let text = ["none", "delta,for", "bitshuffle,lz4", "delta,pco:2", "rle,dict", "delta,rle,lz4",
                "delta,shuffle,zstd:1", "for,gzip:6", "for,lz4,zstd:3", "dict,zstd:1", "delta,delta,bitshuffle,zstd:1"][pick];
            let input: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let pipeline = Pipeline::parse(text).unwrap();
            let mut stored = vec![9];
            pipeline.encode_into(&input, Element::signed(4), &mut stored).unwrap();
            prop_assert_eq!(stored[0], 9);
            prop_assert_eq!(&pipeline.decode(&stored[1..], Element::signed(4), input.len()).unwrap(), &input);
            let rows: Vec<u32> = (0..values.len() as u32).filter(|row| row % 37 < 3).collect();
            let mut found = vec![0; rows.len() * 4];
            if pipeline.decode_rows(&stored[1..], Element::signed(4), values.len(), &rows, &mut found).unwrap() {
                let wanted: Vec<u8> = rows.iter().flat_map(|row| values[*row as usize].to_le_bytes()).collect();
                prop_assert_eq!(found, wanted);
                // The same errors as for all of them: another number of elements is corruption.
                for wrong in [values.len() - rows.len().min(1), values.len() + 1] {
                    let decoded = pipeline.decode(&stored[1..], Element::signed(4), wrong * 4);
                    let mut found = vec![0; rows.len() * 4];
                    let picked = pipeline.decode_rows(&stored[1..], Element::signed(4), wrong, &rows, &mut found);
                    prop_assert_eq!(decoded.map(drop).map_err(|e| e.kind()), picked.map(drop).map_err(|e| e.kind()));
                }
            }
        }
    }
}
