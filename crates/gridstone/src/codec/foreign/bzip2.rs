//! Foreign filter `bzip2`: one or several bzip2 streams, one behind the other. HDF5's filter 307 and the `bz2` of
//! numcodecs.
//!
//! Decoding takes about 4 MB beside the result: bzip2 sorts blocks of up to 900,000 bytes.

use super::filter::{ForeignFilter, compressed_len_max, corrupt};
use crate::base::{Error, Result};
use crate::codec::filter::append_with;
use ::bzip2::{Action, Compress, Compression, Decompress, Status};

/// The foreign filter `bzip2`; it writes level 9.
#[derive(Debug, Clone, Copy)]
pub struct Bzip2;

impl ForeignFilter for Bzip2 {
    fn name(&self) -> String {
        "bzip2".into()
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        compressed_len_max(len)
    }

    fn encode(&self, input: &[u8]) -> Result<Vec<u8>> {
        let (mut out, mut stream) = (Vec::new(), Compress::new(Compression::best(), 0));
        append_with(&mut out, compressed_len_max(input.len()), |room| {
            loop {
                let (taken, written) = (stream.total_in() as usize, stream.total_out() as usize);
                let (rest, place) = (input.get(taken..), room.get_mut(written..));
                let failed = |e| Error::input("filter bzip2 could not compress a chunk").with_source(e);
                let status = stream.compress(rest.unwrap_or_default(), place.unwrap_or_default(), Action::Finish);
                if status.map_err(failed)? == Status::StreamEnd {
                    return Ok(stream.total_out() as usize);
                }
                if (taken, written) == (stream.total_in() as usize, stream.total_out() as usize) {
                    return Err(Error::input("filter bzip2 made no progress with a chunk; choose another filter"));
                }
            }
        })?;
        Ok(out)
    }

    fn decode(&self, input: &[u8], out: &mut [u8]) -> Result<usize> {
        let (mut rest, mut written) = (input, 0);
        loop {
            let (taken, made) = decode_stream(rest, out.get_mut(written..).unwrap_or_default())?;
            written += made;
            rest = rest.get(taken..).unwrap_or_default();
            if rest.is_empty() {
                return Ok(written);
            }
        }
    }
}

/// Decodes the first stream of `input`; returns the bytes taken and those written.
fn decode_stream(input: &[u8], out: &mut [u8]) -> Result<(usize, usize)> {
    let mut stream = Decompress::new(false);
    loop {
        let (taken, written) = (stream.total_in() as usize, stream.total_out() as usize);
        let (rest, place) = (input.get(taken..).unwrap_or_default(), out.get_mut(written..).unwrap_or_default());
        let failed = |e| Error::corruption("filter bzip2 could not decompress a chunk").with_source(e);
        let status = stream.decompress(rest, place).map_err(failed)?;
        let now = (stream.total_in() as usize, stream.total_out() as usize);
        if status == Status::StreamEnd {
            return Ok(now);
        }
        if (taken, written) == now {
            let what = format!("the chunk ends early or holds more than {} bytes", out.len());
            return Err(corrupt("bzip2", what));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::*;
    use crate::base::ErrorKind;

    #[test]
    #[cfg_attr(miri, ignore = "takes minutes")]
    fn conforms() {
        conformance::check(&Bzip2);
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes minutes")]
    fn streams_are_joined() {
        let mut stored =
            [Bzip2.encode(b"abc").unwrap(), Bzip2.encode(b"").unwrap(), Bzip2.encode(b"de").unwrap()].concat();
        let mut out = [0; 5];
        assert_eq!(Bzip2.decode(&stored, &mut out).unwrap(), 5);
        assert_eq!(&out, b"abcde");
        assert_eq!(Bzip2.decode(&stored, &mut [0; 4]).unwrap_err().kind(), ErrorKind::Corruption);
        stored.push(b'B');
        assert_eq!(Bzip2.decode(&stored, &mut out).unwrap_err().kind(), ErrorKind::Corruption);
    }
}
