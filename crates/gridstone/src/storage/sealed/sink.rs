//! A sealed object being written, segment by segment. A full segment is held until more bytes come: only then is it
//! known not to be the last.

use super::cipher::{MasterKey, ObjectCipher, TAG_BYTES};
use super::header::{HEADER_BYTES, Header, SEGMENT_LOG2, SEGMENTS_MAX};
use crate::base::{ByteSink, Entropy, Error, Result};

/// How many bytes are taken at a time, so that little is sealed at once.
const PIECE_BYTES: usize = 1 << 20;

/// Turns plain bytes into the bytes of a sealed object.
#[derive(Debug)]
pub(super) struct Sealer {
    cipher: ObjectCipher,
    segment_bytes: usize,
    number: u64,
    /// The plain bytes of the segment that is not sealed yet; at most a whole segment.
    pending: Vec<u8>,
}

impl Sealer {
    /// A sealer of the object `name`, with a salt of its own. Its header is appended to `out`.
    pub(super) fn new(key: &MasterKey, entropy: &dyn Entropy, name: &str, out: &mut Vec<u8>) -> Result<Self> {
        let header = Header { segment_log2: SEGMENT_LOG2, key: key.id, salt: entropy.secret()? };
        out.extend_from_slice(&header.encode());
        let segment_bytes = header.segment_bytes();
        Ok(Self { cipher: key.object(&header, name)?, segment_bytes, number: 0, pending: Vec::new() })
    }

    /// Appends plain bytes; sealed segments are appended to `out`.
    pub(super) fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        while !bytes.is_empty() {
            if self.pending.len() == self.segment_bytes {
                let full = std::mem::take(&mut self.pending);
                self.seal(&full, out)?;
                self.pending = full;
                self.pending.clear();
            }
            // Strictly more than a segment: it is not the last, and need not wait.
            while self.pending.is_empty() && bytes.len() > self.segment_bytes {
                let (now, later) = bytes.split_at(self.segment_bytes);
                self.seal(now, out)?;
                bytes = later;
            }
            let (now, later) = bytes.split_at(bytes.len().min(self.segment_bytes - self.pending.len()));
            self.pending.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if self.number + 1 >= SEGMENTS_MAX {
            return Err(Error::unsupported(format!(
                "a sealed object has at most {SEGMENTS_MAX} segments of {} bytes; write smaller fragments",
                self.segment_bytes
            )));
        }
        self.cipher.seal(self.number, false, plain, out)?;
        self.number += 1;
        Ok(())
    }

    /// Appends the last segment to `out`.
    pub(super) fn finish(self, out: &mut Vec<u8>) -> Result<()> {
        self.cipher.seal(self.number, true, &self.pending, out)
    }
}

/// The sealed object `name` with the content `bytes`.
pub(super) fn seal_whole(key: &MasterKey, entropy: &dyn Entropy, name: &str, bytes: &[u8]) -> Result<Vec<u8>> {
    let segments = (bytes.len() >> SEGMENT_LOG2) + 1;
    let mut out = Vec::with_capacity(HEADER_BYTES + bytes.len() + segments * TAG_BYTES);
    let mut sealer = Sealer::new(key, entropy, name, &mut out)?;
    sealer.push(bytes, &mut out)?;
    sealer.finish(&mut out)?;
    Ok(out)
}

/// A sink that seals.
pub(super) struct SealedSink {
    inner: Box<dyn ByteSink>,
    sealer: Sealer,
    /// Sealed and not yet written.
    out: Vec<u8>,
}

impl SealedSink {
    pub(super) fn new(inner: Box<dyn ByteSink>, sealer: Sealer, out: Vec<u8>) -> Self {
        Self { inner, sealer, out }
    }

    fn pass_on(&mut self) -> Result<()> {
        if !self.out.is_empty() {
            self.inner.write(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }
}

impl ByteSink for SealedSink {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        for piece in bytes.chunks(PIECE_BYTES) {
            self.sealer.push(piece, &mut self.out)?;
            self.pass_on()?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.sealer.finish(&mut self.out)?;
        self.inner.write(&self.out)?;
        self.inner.finish()
    }
}
