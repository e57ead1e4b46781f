//! The output of a decoder of the Lempel-Ziv family: literal bytes, and copies of what lies before.

use super::filter::corrupt;
use crate::base::Result;

/// The decoded bytes so far, at the front of a buffer.
pub(super) struct Window<'a> {
    filter: &'static str,
    out: &'a mut [u8],
    len: usize,
}

impl<'a> Window<'a> {
    /// A window over `out` for the filter that its errors name.
    pub(super) fn new(filter: &'static str, out: &'a mut [u8]) -> Self {
        Self { filter, out, len: 0 }
    }

    /// The number of bytes decoded.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Appends `bytes`.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let end = self.end(bytes.len())?;
        self.out.get_mut(self.len..end).unwrap_or_default().copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }

    /// Appends `count` bytes, each the one `distance` bytes before it; they may be among those appended.
    pub(super) fn repeat(&mut self, distance: usize, count: usize) -> Result<()> {
        let end = self.end(count)?;
        if distance == 0 || distance > self.len {
            let message = format!("a copy from {distance} bytes back, {} bytes behind the start", self.len);
            return Err(corrupt(self.filter, message));
        }
        // Each round copies what is there of the period, so that the stretch doubles.
        let start = self.len - distance;
        while self.len < end {
            let part = (self.len - start).min(end - self.len);
            self.out.copy_within(start..start + part, self.len);
            self.len += part;
        }
        Ok(())
    }

    fn end(&self, count: usize) -> Result<usize> {
        let end = self.len.saturating_add(count);
        if end <= self.out.len() {
            return Ok(end);
        }
        Err(corrupt(
            self.filter,
            format_args!("the chunk holds {end} bytes or more, at most {} were expected", self.out.len()),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_overlap() {
        let mut out = [9; 12];
        let mut window = Window::new("test", &mut out);
        window.append(b"ab").unwrap();
        window.repeat(2, 5).unwrap();
        window.repeat(1, 2).unwrap();
        window.repeat(9, 1).unwrap();
        assert_eq!(window.len(), 10);
        for (distance, count) in [(0, 1), (11, 1), (1, 3), (1, usize::MAX)] {
            assert!(window.repeat(distance, count).is_err(), "{distance} {count}");
        }
        assert!(window.append(b"xyz").is_err());
        assert_eq!(&out, b"abababaaaa\x09\x09");
    }
}
