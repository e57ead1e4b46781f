//! A checked little-endian cursor: if the bytes run out, the error names what was being read.

use super::{Error, Id, Result};

/// Reads little-endian numbers from bytes that are not trusted.
#[derive(Debug, Clone)]
pub struct ByteReader<'a> {
    bytes: &'a [u8],
    position: usize,
    what: &'static str,
}

macro_rules! read_number {
    ($($name:ident: $t:ty),*) => { $(
        #[doc = concat!("The next `", stringify!($t), "`.")]
        #[inline]
        pub fn $name(&mut self) -> Result<$t> {
            const N: usize = size_of::<$t>();
            let mut raw = [0u8; N];
            raw.copy_from_slice(self.take(N)?);
            Ok(<$t>::from_le_bytes(raw))
        }
    )* };
}

impl<'a> ByteReader<'a> {
    /// A reader of `bytes`; `what` names the structure in error messages.
    pub fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { bytes, position: 0, what }
    }

    read_number!(u8: u8, u16: u16, u32: u32, u64: u64, i64: i64, f64: f64, u128: u128);

    /// The next `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let end = self.position.checked_add(len);
        let Some(found) = end.and_then(|end| self.bytes.get(self.position..end)) else {
            return Err(self.ends_early(len));
        };
        self.position += len;
        Ok(found)
    }

    #[cold]
    fn ends_early(&self, len: usize) -> Error {
        Error::corruption(format!(
            "{} ends early: {len} bytes wanted at offset {}, {} there",
            self.what,
            self.position,
            self.bytes.len().saturating_sub(self.position)
        ))
    }

    /// An identity, as its 16 bytes.
    pub fn id(&mut self) -> Result<Id> {
        let mut id = Id([0; 16]);
        id.0.copy_from_slice(self.take(16)?);
        Ok(id)
    }

    /// A length read as u32, for which at least `width` bytes each must remain, so that nothing huge is allocated.
    pub fn count(&mut self, width: usize) -> Result<usize> {
        let n = self.u32()? as usize;
        if n.checked_mul(width.max(1)).is_none_or(|need| need > self.remaining()) {
            return Err(Error::corruption(format!(
                "{}: a count of {n} items of {width} bytes exceeds the {} bytes left",
                self.what,
                self.remaining()
            )));
        }
        Ok(n)
    }

    /// A u32 length followed by that many bytes.
    pub fn sized(&mut self) -> Result<&'a [u8]> {
        let n = self.count(1)?;
        self.take(n)
    }

    /// A sized run of bytes that must be UTF-8.
    pub fn string(&mut self) -> Result<&'a str> {
        let what = self.what;
        std::str::from_utf8(self.sized()?)
            .map_err(|e| Error::corruption(format!("{what}: a name is not UTF-8")).with_source(e))
    }

    /// The number of bytes left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// The number of bytes read.
    pub fn position(&self) -> usize {
        self.position
    }

    /// An error unless everything has been read.
    pub fn expect_end(&self) -> Result<()> {
        match self.remaining() {
            0 => Ok(()),
            n => Err(Error::corruption(format!("{}: {n} bytes too many", self.what))),
        }
    }
}

/// Writes little-endian numbers; the counterpart of [`ByteReader`].
#[derive(Debug, Default, Clone)]
pub struct ByteWriter {
    bytes: Vec<u8>,
}

macro_rules! write_number {
    ($($name:ident: $t:ty),*) => { $(
        #[doc = concat!("Appends a `", stringify!($t), "`.")]
        pub fn $name(&mut self, value: $t) {
            self.bytes.extend_from_slice(&value.to_le_bytes());
        }
    )* };
}

impl ByteWriter {
    /// An empty writer.
    pub fn new() -> Self {
        Self::default()
    }

    write_number!(u8: u8, u16: u16, u32: u32, u64: u64, i64: i64, f64: f64, u128: u128);

    /// Appends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a u32 length and the bytes; an error past 4 GiB.
    pub fn sized(&mut self, bytes: &[u8]) -> Result<()> {
        let n = u32::try_from(bytes.len())
            .map_err(|e| Error::input("a value of more than 4 GiB cannot be stored").with_source(e))?;
        self.u32(n);
        self.raw(bytes);
        Ok(())
    }

    /// Appends zeros up to a multiple of `alignment`.
    pub fn align(&mut self, alignment: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(alignment), 0);
    }

    /// The number of bytes written.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes written so far.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
