//! A sealed object with random access: only the segments that hold a range are fetched and opened.

use super::cipher::{ObjectCipher, TAG_BYTES};
use super::header::Segments;
use crate::base::{Begun, ByteRange, ByteSource, Error, Pending, Result};
use crate::storage::coalesce::{MERGED_BYTES_MAX, Merged, coalesce};
use bytes::Bytes;
use std::sync::Arc;

/// The alignment of plain bytes in memory relative to the object. Segments start at multiples of it.
const ALIGNMENT: usize = 64;

/// How many segments are opened at a time where the target is the caller's.
const RUN_SEGMENTS: u64 = 64;

/// An object's cipher, and the positions of its segments.
#[derive(Debug)]
pub(super) struct Opener {
    pub(super) what: String,
    pub(super) cipher: ObjectCipher,
    pub(super) segments: Segments,
}

impl Opener {
    /// The range of the sealed segments of `plain`, which starts and ends at segment boundaries.
    fn sealed(&self, plain: ByteRange) -> ByteRange {
        let (first, end) = (plain.offset / self.segments.size, plain.end().div_ceil(self.segments.size));
        let start = self.segments.sealed_start(first);
        ByteRange::new(start, plain.len + (end - first) * TAG_BYTES as u64)
    }

    /// Opens segment `number` into `out`, which has its plain length.
    fn open_segment(&self, number: u64, sealed: &[u8], out: &mut [u8]) -> Result<()> {
        if self.cipher.open(number, self.segments.is_last(number), sealed, out) {
            return Ok(());
        }
        Err(Error::corruption(format!(
            "segment {number} of {} of {} does not fit its seal: it was damaged, moved or cut",
            self.segments.count, self.what
        )))
    }

    /// The plain bytes of the segments in `sealed`, the first of which is `first`.
    pub(super) fn open_run(&self, first: u64, sealed: &[u8]) -> Result<Bytes> {
        let stride = self.segments.size as usize + TAG_BYTES;
        let len = sealed.len() - sealed.len().div_ceil(stride) * TAG_BYTES;
        let mut buffer = vec![0; len + ALIGNMENT];
        let lead = buffer.as_ptr().align_offset(ALIGNMENT) % ALIGNMENT;
        let mut rest = buffer.get_mut(lead..lead + len).unwrap_or_default();
        for (number, segment) in (first..).zip(sealed.chunks(stride)) {
            let (now, later) = std::mem::take(&mut rest).split_at_mut(segment.len().saturating_sub(TAG_BYTES));
            self.open_segment(number, segment, now)?;
            rest = later;
        }
        Ok(Bytes::from(buffer).slice(lead..lead + len))
    }
}

/// A sealed object, open.
#[derive(Debug)]
pub(super) struct SealedSource {
    pub(super) inner: Arc<dyn ByteSource>,
    pub(super) opener: Opener,
}

impl SealedSource {
    fn checked(&self, range: ByteRange) -> Result<()> {
        if range.offset.checked_add(range.len).is_some_and(|end| end <= self.len()) {
            return Ok(());
        }
        Err(Error::corruption(format!(
            "{} is too short: {} bytes wanted at offset {}, its length is {}",
            self.opener.what,
            range.len,
            range.offset,
            self.len()
        )))
    }

    /// The whole segments that hold `range`, which lies inside; no segment holds an empty range.
    fn rounded(&self, range: ByteRange) -> ByteRange {
        if range.len == 0 {
            return ByteRange::new(0, 0);
        }
        let size = self.opener.segments.size;
        let start = range.offset / size * size;
        let end = range.end().next_multiple_of(size).min(self.len());
        ByteRange::new(start, end - start)
    }

    /// The sealed ranges of the segments of `ranges`, without those that are not inside.
    fn sealed_ranges(&self, ranges: &[ByteRange]) -> Vec<ByteRange> {
        let inside = |range: &&ByteRange| range.end() <= self.len();
        let sealed = |range: &ByteRange| self.opener.sealed(self.rounded(*range));
        ranges.iter().filter(inside).map(sealed).collect()
    }
}

impl ByteSource for SealedSource {
    fn len(&self) -> u64 {
        self.opener.segments.plain_len
    }

    fn submit(&self, ranges: &[ByteRange]) -> Result<Box<dyn Pending + '_>> {
        ranges.iter().try_for_each(|range| self.checked(*range))?;
        let whole: Vec<ByteRange> = ranges.iter().map(|range| self.rounded(*range)).collect();
        // The gap between two runs is at least one segment: never worth fetching.
        let runs = coalesce(&whole, 0, MERGED_BYTES_MAX);
        let sealed: Vec<ByteRange> = runs.iter().map(|run| self.opener.sealed(run.range)).collect();
        let inner = self.inner.submit(&sealed)?;
        Ok(Box::new(SealedReads { inner, opener: &self.opener, ranges: ranges.to_vec(), runs }))
    }

    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let asked = ByteRange::new(offset, out.len() as u64);
        self.checked(asked)?;
        let (mut scratch, mut bounce) = (Vec::new(), Vec::new());
        let whole = self.rounded(asked);
        let (mut at, mut rest) = (offset, out);
        for start in (whole.offset..whole.end()).step_by((RUN_SEGMENTS * self.opener.segments.size) as usize) {
            let run = ByteRange::new(start, (RUN_SEGMENTS * self.opener.segments.size).min(whole.end() - start));
            let sealed = self.opener.sealed(run);
            scratch.resize(sealed.len as usize, 0);
            self.inner.read_into(sealed.offset, &mut scratch)?;
            let (later, end) = self.opener.open_into(run, &scratch, at, rest, &mut bounce)?;
            (rest, at) = (later, end);
        }
        Ok(())
    }

    fn is_cold(&self) -> bool {
        self.inner.is_cold()
    }

    fn prefetch(&self, ranges: &[ByteRange]) {
        self.inner.prefetch(&self.sealed_ranges(ranges));
    }

    fn remote_gap(&self) -> Option<u64> {
        self.inner.remote_gap()
    }

    fn begin(&self, ranges: &[ByteRange]) -> Option<Arc<dyn Begun>> {
        self.inner.begin(&self.sealed_ranges(ranges))
    }
}

impl Opener {
    /// Opens the segments of `run` and copies the bytes from `at` on into `out`, as far as both reach. Returns the rest
    /// of `out`, and the offset of its first byte.
    fn open_into<'a>(
        &self,
        run: ByteRange,
        sealed: &[u8],
        mut at: u64,
        mut out: &'a mut [u8],
        bounce: &mut Vec<u8>,
    ) -> Result<(&'a mut [u8], u64)> {
        let stride = self.segments.size as usize + TAG_BYTES;
        for (number, segment) in (run.offset / self.segments.size..).zip(sealed.chunks(stride)) {
            let (len, lead) = (self.segments.len_of(number), (at - number * self.segments.size) as usize);
            let take = len.saturating_sub(lead).min(out.len());
            let (now, later) = out.split_at_mut(take);
            if take == len {
                self.open_segment(number, segment, now)?;
            } else {
                bounce.resize(len, 0);
                self.open_segment(number, segment, bounce)?;
                now.copy_from_slice(bounce.get(lead..lead + take).unwrap_or_default());
            }
            (out, at) = (later, at + take as u64);
        }
        Ok((out, at))
    }
}

/// Submitted segments, opened when the caller waits for them.
struct SealedReads<'a> {
    inner: Box<dyn Pending + 'a>,
    opener: &'a Opener,
    ranges: Vec<ByteRange>,
    runs: Vec<Merged>,
}

impl Pending for SealedReads<'_> {
    fn wait(self: Box<Self>) -> Result<Vec<Bytes>> {
        let Self { inner, opener, ranges, runs } = *self;
        let mut found = vec![Bytes::new(); ranges.len()];
        for (run, sealed) in runs.into_iter().zip(inner.wait()?) {
            let plain = opener.open_run(run.range.offset / opener.segments.size, &sealed)?;
            for part in run.parts {
                if let (Some(asked), Some(place)) = (ranges.get(part.index), found.get_mut(part.index)) {
                    let start = (asked.offset - run.range.offset) as usize;
                    *place = plain.slice(start..start + asked.len as usize);
                }
            }
        }
        Ok(found)
    }
}
