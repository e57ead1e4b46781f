//! Filter `pco:LEVEL`: the numeric codec of the `pco` crate (bins, deltas, common multiples, tANS).
//!
//! Levels 0 to 12, default 4. Layout, in pco's *wrapped* format (version 4.1 or one that the crate can read):
//!
//! ```text
//! u32 little-endian    n, the number of values; nothing follows if it is 0
//! bytes                the wrapped header (2 bytes)
//! then for each run of 262,144 values (the last one shorter):
//!   bytes              the chunk's metadata
//!   bytes              its only page
//! ```
//!
//! The filter is bit-exact, NaN payloads and -0.0 included. Two features of the format are refused: the dictionary
//! mode, and lookback windows over 2^15 values. The encoder makes neither, and their lengths in a damaged block would
//! allocate far more than the block decodes to.

use super::Filter;
use super::filter::{check_whole, front, refused};
use crate::base::{AlignedBuf, ByteReader, Element, ElementKind, Error, Result};
use ::pco::data_types::Number;
use ::pco::errors::PcoError;
use ::pco::metadata::DeltaEncoding;
use ::pco::wrapped::{FileCompressor, FileDecompressor};
use ::pco::{ChunkConfig, DecompressorScratch, DeltaSpec, PagingSpec};
use std::cell::RefCell;

// The crate returns native numbers, and the bytes of a block are little-endian.
const _: () = assert!(cfg!(target_endian = "little"), "filter pco is written for little-endian machines");

/// Values per chunk.
const CHUNK: usize = 1 << 18;
/// The largest lookback window that the encoder makes, as the base-2 logarithm of a number of values.
const WINDOW_LOG_MAX: u32 = 15;
/// The mode of a chunk (the low four bits of its first byte) that holds a dictionary.
const MODE_DICTIONARY: u8 = 4;

/// In a shorter run this module decides whether values are stored as differences. The crate would compress a part of
/// them in several ways to find out, which for 1,024 values takes longer than everything else. (Measured on columns of
/// ships' reports: 25 of 42 ns per value; sizes stay within 4 %, half of them smaller.)
const SHORT_RUN: usize = 8_192;
/// The number of values of a run that are sampled for that.
const SAMPLE: usize = 256;
/// The distance in rank over which the density of the sample is measured.
const SPACING: usize = 8;

/// The filter `pco`.
#[derive(Debug, Clone, Copy)]
pub struct Pco {
    /// 0 (fastest) to 12 (smallest).
    pub level: u8,
}

thread_local! {
    static SCRATCH: RefCell<DecompressorScratch> = RefCell::default();
}

/// Evaluates `$body` with the type `$t` bound to the number type of `$element`, or `$other` if pco has none.
macro_rules! by_number {
    ($element:expr, $t:ident => $body:expr, else $other:expr) => {
        by_number!(@ $element, $t, $body, $other, Unsigned 2 u16, Unsigned 4 u32, Unsigned 8 u64,
            Signed 2 i16, Signed 4 i32, Signed 8 i64, Float 2 half::f16, Float 4 f32, Float 8 f64)
    };
    (@ $element:expr, $t:ident, $body:expr, $other:expr, $($kind:ident $width:literal $number:ty),*) => {
        match ($element.kind, $element.width) {
            $((ElementKind::$kind, $width) => {
                type $t = $number;
                $body
            })*
            _ => $other,
        }
    };
}

impl Filter for Pco {
    fn name(&self) -> String {
        format!("pco:{}", self.level)
    }

    fn accepts(&self, element: Element) -> bool {
        by_number!(element, _N => true, else false)
    }

    fn output(&self, _element: Element) -> Element {
        Element::BYTE
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        // pco guarantees the values' own bytes and a few bytes of metadata per chunk.
        len + 6 + 64 * (len / (2 * CHUNK) + 1)
    }

    fn encode(&self, input: &[u8], element: Element, out: &mut Vec<u8>) -> Result<()> {
        check_whole("pco", input, element)?;
        by_number!(element, N => encode::<N>(input, element, self.level, out), else Err(refused("pco", element)))
    }

    fn decode(&self, input: &[u8], element: Element, out: &mut [u8]) -> Result<usize> {
        by_number!(element, N => decode::<N>(input, out), else Err(refused("pco", element)))
    }
}

fn encode<N: Number + bytemuck::Pod>(input: &[u8], element: Element, level: u8, out: &mut Vec<u8>) -> Result<()> {
    let failed = |e: PcoError| Error::input("filter pco could not compress a block").with_source(e);
    let aligned;
    let values: &[N] = match bytemuck::try_cast_slice(input) {
        Ok(values) => values,
        Err(_) => {
            aligned = bytemuck::pod_collect_to_vec::<u8, N>(input);
            &aligned
        }
    };
    let count = u32::try_from(values.len())
        .map_err(|e| Error::input("filter pco: a block of more than 2^32 values cannot be stored").with_source(e))?;
    out.extend_from_slice(&count.to_le_bytes());
    if values.is_empty() {
        return Ok(());
    }
    let file = FileCompressor::default();
    file.write_header(&mut *out).map_err(failed)?;
    let config =
        ChunkConfig::default().with_compression_level(level.into()).with_paging_spec(PagingSpec::EqualPagesUpTo(CHUNK));
    for (run, bytes) in values.chunks(CHUNK).zip(input.chunks(CHUNK * size_of::<N>())) {
        let config = match run.len() {
            SHORT_RUN.. => config.clone(),
            _ if differences_pay(bytes, element) => config.clone().with_delta_spec(DeltaSpec::TryConsecutive(1)),
            _ => config.clone().with_delta_spec(DeltaSpec::NoOp),
        };
        let mut chunk = file.chunk_compressor(run, &config).map_err(failed)?;
        chunk.write_meta(&mut *out).map_err(failed)?;
        chunk.write_page(0, &mut *out).map_err(failed)?;
    }
    Ok(())
}

/// Whether the differences of neighbours take fewer bits than the values, by the entropy of a contiguous sample from
/// the middle.
fn differences_pay(values: &[u8], element: Element) -> bool {
    let width = usize::from(element.width);
    let count = values.len() / width.max(1);
    let from = count.saturating_sub(SAMPLE) / 2;
    let cells = values.get(from * width..(from + SAMPLE.min(count)) * width).unwrap_or_default().chunks_exact(width);
    let mut values: Vec<u64> = cells.map(|cell| ordered(cell, element.kind)).collect();
    let mut differences: Vec<u64> =
        values.windows(2).map(|pair| if let [a, b] = pair { b.wrapping_sub(*a) ^ (1 << 63) } else { 0 }).collect();
    bits(&mut differences) < bits(&mut values)
}

/// A value as a number with the same order.
fn ordered(cell: &[u8], kind: ElementKind) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(cell).for_each(|(to, from)| *to = *from);
    let (word, sign) = (u64::from_le_bytes(bytes), 1u64 << (8 * cell.len().clamp(1, 8) - 1));
    match kind {
        ElementKind::Unsigned => word,
        ElementKind::Signed => word ^ sign,
        // All bits of negative numbers are flipped, so that the greater magnitude is the smaller number.
        ElementKind::Float if word & sign != 0 => !word & (sign | (sign - 1)),
        ElementKind::Float => word | sign,
    }
}

/// The bits that one of `values` takes, up to a constant: the mean logarithm of the distance to the value a few ranks
/// higher. (The entropy estimator of Vasicek, "A test for normality based on sample entropy", 1976.)
fn bits(values: &mut [u64]) -> f64 {
    values.sort_unstable();
    let spans = values.iter().zip(values.iter().skip(SPACING)).step_by(2);
    let (sum, count) = spans.fold((0.0, 0u32), |(sum, count), (a, b)| (sum + ((b - a) as f64 + 1.0).log2(), count + 1));
    sum / f64::from(count.max(1))
}

fn decode<N: Number + bytemuck::Pod>(input: &[u8], out: &mut [u8]) -> Result<usize> {
    let mut reader = ByteReader::new(input, "a block of filter pco");
    let len = (reader.u32()? as usize).saturating_mul(size_of::<N>());
    let body = reader.take(reader.remaining())?;
    let out = front("pco", out, len)?;
    if let Ok(values) = bytemuck::try_cast_slice_mut::<u8, N>(out) {
        decode_values(body, values)?;
    } else {
        let mut aligned = AlignedBuf::zeroed(len);
        decode_values::<N>(body, bytemuck::try_cast_slice_mut(&mut aligned).unwrap_or_default())?;
        out.copy_from_slice(&aligned);
    }
    Ok(len)
}

fn decode_values<N: Number>(body: &[u8], values: &mut [N]) -> Result<()> {
    let mut rest = body;
    if !values.is_empty() {
        let (file, chunks) = FileDecompressor::new(body).map_err(corrupt)?;
        rest = chunks;
        for run in values.chunks_mut(CHUNK) {
            rest = decode_chunk(&file, rest, run)?;
        }
    }
    match rest.len() {
        0 => Ok(()),
        n => Err(Error::corruption(format!("filter pco: {n} bytes too many"))),
    }
}

/// Decodes one chunk and returns the bytes after it.
fn decode_chunk<'a, N: Number>(file: &FileDecompressor, input: &'a [u8], run: &mut [N]) -> Result<&'a [u8]> {
    if input.first().is_some_and(|byte| byte & 0xf == MODE_DICTIONARY) {
        return Err(Error::corruption("filter pco: a chunk with a dictionary, which no writer makes"));
    }
    let (chunk, page) = file.chunk_decompressor::<N, _>(input).map_err(corrupt)?;
    if let DeltaEncoding::Lookback { config, .. } = &chunk.meta().delta_encoding
        && config.window_n_log > WINDOW_LOG_MAX
    {
        return Err(Error::corruption(format!("filter pco: a lookback window of 2^{} values", config.window_n_log)));
    }
    SCRATCH.with_borrow_mut(|scratch| {
        let mut page = chunk.page_decompressor_with_scratch(page, run.len(), scratch).map_err(corrupt)?;
        let progress = page.read(run).map_err(corrupt)?;
        if progress.n_processed != run.len() || !progress.finished {
            return Err(Error::corruption(format!("filter pco: a page of {} values ends early", run.len())));
        }
        Ok(page.into_src())
    })
}

fn corrupt(e: PcoError) -> Error {
    Error::corruption("filter pco could not decompress a block").with_source(e)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::conformance;

    #[test]
    fn conforms() {
        conformance::check(&Pco { level: 4 });
        conformance::check(&Pco { level: 8 });
    }

    #[test]
    fn float_bits_survive() {
        let odd = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::MIN_POSITIVE / 3.0];
        let bits = odd.iter().map(|x: &f64| x.to_bits()).chain([0x7ff0_0000_0000_0001, 0xfff8_dead_beef_0001]);
        let (some, more) = if cfg!(miri) { (16, 100) } else { (400, 3000) };
        let plain = (0..more).map(|i| (f64::from(i) * 0.01).to_bits());
        let input: Vec<u8> = bits.cycle().take(some).chain(plain).flat_map(u64::to_le_bytes).collect();
        conformance::roundtrip(&Pco { level: 8 }, &input, Element::float(8));
    }

    #[test]
    fn differences_are_stored_where_they_are_smaller() {
        let random = |i: i64| {
            let mixed = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            ((mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) >> 40 & 0xfff) as i64
        };
        let long = |f: &dyn Fn(i64) -> i64| (0..1_024).flat_map(|i| f(i).to_le_bytes()).collect::<Vec<u8>>();
        let float = |f: &dyn Fn(i64) -> f64| (0..1_024).flat_map(|i| f(i).to_le_bytes()).collect::<Vec<u8>>();
        let (signed, double) = (Element::signed(8), Element::float(8));
        // Sequences, rising and falling through zero; and values that are mostly constant, or random.
        assert!(differences_pay(&long(&|i| i * 1_000 + random(i)), signed));
        assert!(differences_pay(&long(&|i| 500_000 - i * 1_000 - random(i)), signed));
        assert!(differences_pay(&float(&|i| (i - 500) as f64 * 0.25 + random(i) as f64 * 1e-5), double));
        assert!(!differences_pay(&long(&|i| random(i)), signed));
        assert!(!differences_pay(&long(&|i| if i % 3 == 0 { random(i) } else { 3_600 }), signed));
        assert!(!differences_pay(&float(&|i| random(i) as f64 - 2_000.0), double));
        let level = |values: &[u8]| {
            let mut out = Vec::new();
            Pco { level: 4 }.encode(values, signed, &mut out).unwrap();
            out.len()
        };
        assert!(level(&long(&|i| i * 1_000 + random(i) % 16)) < 1_024, "a sequence takes its steps");
        for n in [0, 1, 2, 5, 300] {
            conformance::roundtrip(&Pco { level: 4 }, &long(&|i| i * 3)[..n * 8], signed);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "a chunk has a quarter of a million values")]
    fn several_chunks() {
        let input: Vec<u8> = (0..600_000u32).flat_map(|i| (i * 7).to_le_bytes()).collect();
        conformance::roundtrip(&Pco { level: 1 }, &input, Element::signed(4));
    }

    #[test]
    fn dictionaries_are_refused() {
        // One value; header of version 4.1; a chunk that claims 2^25 - 1 dictionary entries.
        let block = [1, 0, 0, 0, 4, 1, 0xf4, 0xff, 0xff, 0x1f, 0, 0, 0, 0, 0, 0];
        let error = Pco { level: 8 }.decode(&block, Element::signed(8), &mut [0; 8]).unwrap_err();
        assert!(error.message().contains("dictionary"), "{error}");
    }
}
