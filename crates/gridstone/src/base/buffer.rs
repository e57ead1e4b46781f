//! A byte buffer aligned to 16 bytes, so that a slice of any element type can view it in place.
//!
//! It is entirely safe code: the storage is a vector of 16-byte blocks, viewed as bytes by `bytemuck`. The alignment is
//! not 64, the width of a cache line: up to 16 the allocator returns large zeroed memory untouched, beyond it writes
//! every byte.

use bytemuck::{Pod, Zeroable};

const ALIGNMENT: usize = 16;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(16))]
struct Block([u8; ALIGNMENT]);

/// A growable, zero-initialised byte buffer whose start is aligned to 16 bytes.
#[derive(Default, Clone)]
pub struct AlignedBuf {
    blocks: Vec<Block>,
    len: usize,
}

impl AlignedBuf {
    /// A buffer of `len` zero bytes.
    pub fn zeroed(len: usize) -> Self {
        Self { blocks: bytemuck::zeroed_vec(len.div_ceil(ALIGNMENT)), len }
    }

    /// A buffer of `len` zero bytes; a Budget error if there is no memory for it.
    pub fn try_zeroed(len: usize) -> super::Result<Self> {
        let blocks = bytemuck::try_zeroed_vec(len.div_ceil(ALIGNMENT));
        let blocks = blocks.map_err(|()| {
            super::Error::budget(format!(
                "{len} bytes of memory could not be had; ask for a smaller box, or stream it with scan()"
            ))
        })?;
        Ok(Self { blocks, len })
    }

    /// How many bytes it can hold without reallocation.
    pub fn capacity(&self) -> usize {
        self.blocks.len() * ALIGNMENT
    }

    /// How many bytes of memory it takes.
    pub fn allocated_bytes(&self) -> usize {
        self.blocks.capacity() * ALIGNMENT
    }

    /// Sets the length to `len` bytes, whatever they contain; to fewer if there is less memory.
    pub fn set_len(&mut self, len: usize) {
        self.len = len.min(self.capacity());
    }

    /// A buffer with a copy of `bytes`.
    pub fn from_slice(bytes: &[u8]) -> Self {
        let mut buf = Self::zeroed(bytes.len());
        buf.as_mut_slice().copy_from_slice(bytes);
        buf
    }

    /// The length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the buffer has no byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        bytemuck::cast_slice(&self.blocks).get(..self.len).unwrap_or_default()
    }

    /// The bytes, for writing.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.blocks).get_mut(..self.len).unwrap_or_default()
    }

    /// Reserves room for `more` bytes, so that appending them needs no reallocation; a Budget error if there is no
    /// memory.
    pub fn try_reserve(&mut self, more: usize) -> super::Result<()> {
        let blocks = self.len.saturating_add(more).div_ceil(ALIGNMENT).saturating_sub(self.blocks.len());
        self.blocks.try_reserve(blocks).map_err(|e| {
            super::Error::budget(format!(
                "{more} bytes of memory could not be had; ask for a smaller box, or stream it with scan()"
            ))
            .with_source(e)
        })
    }

    /// Appends `bytes`.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let old = self.len;
        self.resize(old + bytes.len());
        if let Some(tail) = self.as_mut_slice().get_mut(old..) {
            tail.copy_from_slice(bytes);
        }
    }

    /// Grows (with zeros) or shrinks to `len` bytes.
    pub fn resize(&mut self, len: usize) {
        let needed = len.div_ceil(ALIGNMENT);
        if needed > self.blocks.capacity() {
            self.blocks.reserve(needed.max(self.blocks.len() * 2) - self.blocks.len());
        }
        // Bytes past the length may be stale: those that become visible are cleared.
        let (old, held) = (self.len, self.capacity());
        if let Some(stale) = bytemuck::cast_slice_mut(&mut self.blocks).get_mut(old..len.min(held).max(old)) {
            stale.fill(0u8);
        }
        self.blocks.resize(needed, Block([0; ALIGNMENT]));
        self.len = len;
    }
}

impl std::fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AlignedBuf({} bytes)", self.len)
    }
}

impl std::ops::Deref for AlignedBuf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl std::ops::DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.as_mut_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignment_and_zeroing_survive_growth_and_shrinking() {
        let mut buf = AlignedBuf::default();
        for i in 0..300u32 {
            buf.extend_from_slice(&i.to_le_bytes());
            assert_eq!(buf.as_ptr() as usize % ALIGNMENT, 0);
        }
        assert_eq!(buf.len(), 1200);
        assert_eq!(&buf[1196..], &299u32.to_le_bytes());
        buf.resize(10);
        buf.resize(100);
        assert!(buf[10..].iter().all(|b| *b == 0));
        buf.as_mut_slice().fill(7);
        buf.set_len(40);
        assert_eq!((buf.len(), buf[39]), (40, 7));
        buf.extend_from_slice(&[1]);
        buf.resize(60);
        assert_eq!((buf[39], buf[40]), (7, 1));
        assert!(buf[41..].iter().all(|b| *b == 0));
        buf.set_len(1000);
        assert_eq!(buf.len(), buf.capacity());
    }
}
