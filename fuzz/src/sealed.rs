//! Objects that are sealed: whatever is changed in one, what comes out of it is what was sealed under its name, or an error.

use crate::seal;
use gridstone::base::{ByteRange, ErrorKind, Key, Result};
use gridstone::runtime::SystemEntropy;
use gridstone::storage::{KeyRing, MemoryStorage, SealedStorage, Sealing, Storage};
use std::sync::Arc;

/// Plain bytes of the objects: none, part of a segment of 16 KiB, and up to three.
const LENGTHS: [usize; 8] = [0, 1, 100, 16_383, 16_384, 16_385, 32_768, 40_000];

fn name(object: usize) -> String {
    format!("_data/{object}.frag")
}

fn plain(object: usize) -> Vec<u8> {
    (0..LENGTHS[object]).map(|i| (i * 31 % 251 + object) as u8).collect()
}

fn over(inner: &MemoryStorage) -> SealedStorage {
    let ring = KeyRing::new(Arc::new(Key::from_slice(&[7; 32]).unwrap()));
    SealedStorage::new(Arc::new(inner.clone()), Sealing::Always(Arc::new(ring)), Arc::new(SystemEntropy))
}

/// Which object, and its sealed bytes. They are opened as they are, and with the checksum of their header put right.
pub(crate) fn sealed(data: &[u8]) -> bool {
    let Some((object, bytes)) = data.split_first() else { return false };
    let object = usize::from(*object) % LENGTHS.len();
    let as_is = opens(object, bytes);
    let mut headed = bytes.to_vec();
    seal::sealed_header(&mut headed);
    opens(object, &headed) || as_is
}

fn opens(object: usize, bytes: &[u8]) -> bool {
    let (inner, expected) = (MemoryStorage::new(), plain(object));
    inner.put(&name(object), bytes).unwrap();
    let whole = same(over(&inner).read_all(&name(object)).map(|found| found.to_vec()), &expected);
    let Ok(source) = over(&inner).open(&name(object)) else { return whole };
    let len = source.len();
    for (from, to) in [(0, len), (len / 3, len / 2), (len.saturating_sub(1), len)] {
        if from == to {
            continue;
        }
        // What is not there can be had as little as what is wrong.
        let part = expected.get(from as usize..to as usize);
        let one = source.read_one(ByteRange::new(from, to - from)).map(|found| found.to_vec());
        let mut out = vec![0; (to - from) as usize];
        let into = source.read_into(from, &mut out).map(|()| out);
        for found in [one, into] {
            assert!(part.is_some() || found.is_err(), "bytes {from} to {to} were opened of {}", expected.len());
            same(found, part.unwrap_or_default());
        }
    }
    whole
}

/// Whether what was sealed came back; fails if something else did, or an error that damage must not give.
fn same(outcome: Result<Vec<u8>>, expected: &[u8]) -> bool {
    use ErrorKind::{Access, Corruption, Unsupported};
    match outcome {
        Ok(found) => {
            assert!(found == expected, "other bytes were opened than were sealed");
            true
        }
        Err(e) => {
            assert!([Access, Corruption, Unsupported].contains(&e.kind()), "{:?}: {e}", e.kind());
            false
        }
    }
}

pub(crate) fn sealed_corpus() -> Vec<Vec<u8>> {
    let of = |object: usize| {
        let inner = MemoryStorage::new();
        over(&inner).put(&name(object), &plain(object)).unwrap();
        [&[object as u8][..], &inner.read_all(&name(object)).unwrap()].concat()
    };
    (0..LENGTHS.len()).map(of).collect()
}
