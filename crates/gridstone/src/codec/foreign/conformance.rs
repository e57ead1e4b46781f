//! The conformance suite of foreign filters: decoding returns what was encoded, chunks of other writers decode to what
//! they were made of, and damage is an error, never a panic.

use super::ForeignPipeline;
use super::filter::ForeignFilter;
use crate::base::{ErrorKind, Result};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Runs the whole suite on a filter that encodes.
pub(super) fn check(filter: &dyn ForeignFilter) {
    let (long, short): (&[usize], usize) = match cfg!(miri) {
        true => (&[136, 480], 3),
        false => (&[511, 512, 8_191, 8_192, 20_480, 70_001], 40),
    };
    for len in (0..short).chain(long.iter().copied()) {
        for kind in 0..SHAPES {
            roundtrip(filter, &shape(kind, len, 1));
        }
    }
    let mut runner = TestRunner::new(config(32));
    let inputs = (0..SHAPES, 0..if cfg!(miri) { 100 } else { 40_000usize }, any::<u64>());
    let ran = runner.run(&inputs, |(kind, len, seed)| {
        roundtrip(filter, &shape(kind, len, seed));
        Ok(())
    });
    ran.unwrap();
    for (kind, len) in [(0, 96), (1, 4_000), (2, 1_600)] {
        let input = shape(kind, if cfg!(miri) { len / 30 } else { len }, 77);
        match filter.encode(&input) {
            Ok(stored) => check_damage(filter, &stored, input.len()),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Input, "{error}"),
        }
    }
    canonical(filter);
}

fn config(cases: u32) -> Config {
    Config { cases: if cfg!(miri) { 1 } else { cases }, failure_persistence: None, ..Config::default() }
}

/// The name is read as the same filter.
fn canonical(filter: &dyn ForeignFilter) {
    let name = filter.name();
    assert_eq!(ForeignPipeline::parse(&name).unwrap().name(), name);
}

/// Encodes and decodes `input` into a buffer with room behind it.
fn roundtrip(filter: &dyn ForeignFilter, input: &[u8]) {
    let name = filter.name();
    let stored = match filter.encode(input) {
        Ok(stored) => stored,
        Err(error) => return assert_eq!(error.kind(), ErrorKind::Input, "{name}: {error}"),
    };
    let most = filter.encoded_len_max(input.len());
    assert!(stored.len() <= most, "{name}: {} -> {}, bound {most}", input.len(), stored.len());
    let mut out = vec![0xee; input.len() + 9];
    let written = filter.decode(&stored, &mut out).unwrap();
    assert_eq!(written, input.len(), "{name}");
    assert!(&out[..written] == input, "{name}: other bytes came back");
    assert_eq!(filter.decode(&stored, &mut out[..input.len()]).unwrap(), written, "{name}: needs no room behind");
}

const SHAPES: usize = 4;

/// `len` bytes of one kind: noise, equal, small numbers of four bytes, a walk of two bytes.
fn shape(kind: usize, len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut walk = 0u16;
    let words = (0..len.div_ceil(2)).flat_map(|i| {
        let noise = random();
        walk = walk.wrapping_add((noise % 17) as u16).wrapping_sub(8);
        let word = match kind {
            0 => noise as u16,
            1 => 0x0707,
            2 => (noise % 100) as u16 * u16::from(i % 2 == 0),
            _ => walk,
        };
        word.to_le_bytes()
    });
    words.take(len).collect()
}

/// Truncated and changed forms of `stored`, which decodes to `len` bytes, decode to something or are refused. So do
/// random bytes behind the start of it, and any room.
pub(super) fn check_damage(filter: &dyn ForeignFilter, stored: &[u8], len: usize) {
    let mut bytes = stored.to_vec();
    // Long chunks have the first bytes and a sample of the others changed.
    let step = bytes.len() / 256 + 1;
    let places = |len: usize| (0..len).filter(move |at| *at < 64 || at % step == 0);
    places(bytes.len()).for_each(|cut| refused_or_within(filter, &bytes[..cut], len));
    for at in places(bytes.len()) {
        let old = bytes[at];
        let flips = (0..8).map(|bit| old ^ 1 << bit);
        for new in flips.chain([0, 0xff, !old]).step_by(if cfg!(miri) { 8 } else { 1 }) {
            bytes[at] = new;
            refused_or_within(filter, &bytes, len);
        }
        bytes[at] = old;
    }
    for room in [0, len / 2, len.saturating_sub(1), len + 1, 3 * len + 100] {
        refused_or_within(filter, &bytes, room);
    }
    bytes.extend([0; 5]);
    refused_or_within(filter, &bytes, len);
    let mut runner = TestRunner::new(config(128));
    let random = (0..=stored.len(), prop::collection::vec(any::<u8>(), 0..200), 0..2_000usize);
    let ran = runner.run(&random, |(kept, behind, room)| {
        refused_or_within(filter, &[&stored[..kept], &behind].concat(), room);
        refused_or_within(filter, &behind, room);
        Ok(())
    });
    ran.unwrap();
}

fn refused_or_within(filter: &dyn ForeignFilter, bytes: &[u8], room: usize) {
    let mut out = vec![0; room];
    judge(&filter.name(), filter.decode(bytes, &mut out), room);
}

fn judge(name: &str, decoded: Result<usize>, room: usize) {
    match decoded {
        Ok(written) => assert!(written <= room, "{name}: {written} bytes in room for {room}"),
        Err(error) => {
            let known = matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Unsupported);
            assert!(known, "{name}: {error}");
        }
    }
}

/// A checksum finds every flipped bit.
pub(super) fn finds_every_flip(filter: &dyn ForeignFilter) {
    let mut stored = filter.encode(&shape(0, 61, 3)).unwrap();
    for bit in 0..8 * stored.len() {
        stored[bit / 8] ^= 1 << (bit % 8);
        let error = filter.decode(&stored, &mut [0; 61]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.message().contains("checksum"), "{error}");
        stored[bit / 8] ^= 1 << (bit % 8);
    }
}

/// Chunks that h5py, hdf5plugin and numcodecs wrote: `python vectors/foreign/chunks.py` makes them.
const CHUNKS: &str = include_str!("../../../../../vectors/foreign/chunks.json");

/// A chunk of another writer.
struct Chunk {
    pipeline: ForeignPipeline,
    text: String,
    stored: Vec<u8>,
    values: Vec<u8>,
}

fn chunks() -> Vec<Chunk> {
    let entries: Vec<serde_json::Value> = serde_json::from_str(CHUNKS).unwrap();
    let of = |entry: &serde_json::Value| {
        let field = |name: &str| entry[name].as_str().unwrap();
        let mask = entry.get("mask").map_or(0, |mask| mask.as_u64().unwrap() as u32);
        let text = field("pipeline").to_owned();
        let pipeline = ForeignPipeline::parse(&text).unwrap();
        assert_eq!(pipeline.name(), text);
        Chunk {
            pipeline: pipeline.without(mask),
            text,
            stored: digits(field("stored")),
            values: values(field("values")),
        }
    };
    entries.iter().map(of).collect()
}

fn digits(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().as_chunks::<2>().0.iter();
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// The bytes of a recipe of the script, or of digits.
fn values(recipe: &str) -> Vec<u8> {
    let Some((kind, len)) = recipe.split_once(':') else { return digits(recipe) };
    let len: usize = len.parse().unwrap();
    match kind {
        "same" => vec![7; len],
        "steps" => (0..len.div_ceil(4) as u32).flat_map(|i| (i / 3).to_le_bytes()).take(len).collect(),
        "lines" => {
            let line = |n: u16| [&b"a record of so and"[..], &n.to_le_bytes()].concat();
            (0..len.div_ceil(20) as u16).flat_map(line).take(len).collect()
        }
        _ => {
            let step = |state: &mut u32| {
                *state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
                Some((*state >> 24) as u8)
            };
            (0..len).scan(12_345, |state, _| step(state)).collect()
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "calls C")]
fn chunks_of_other_writers_are_decoded() {
    let chunks = chunks();
    let known =
        ["shuffle", "bitshuffle", "deflate", "gzip", "zstd", "lz4", "lz4h5", "lzf", "bzip2", "blosc", "fletcher32"];
    for name in known.iter().chain(&["crc32c", "delta", "fixedscaleoffset"]) {
        let names_it = |chunk: &Chunk| chunk.text.split([',', ':']).any(|part| part == *name);
        assert!(chunks.iter().any(names_it), "no chunk of {name}");
    }
    for Chunk { pipeline, text, stored, values } in &chunks {
        let decoded = pipeline.decode(stored, values.len()).map_err(|e| format!("{text}: {e}")).unwrap();
        assert!(decoded == *values, "{text}: other bytes than were written");
        for wrong in [values.len() - 1, values.len() + 1, 0] {
            let error = pipeline.decode(stored, wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "{text}, {wrong} instead of {}: {error}", values.len());
        }
    }
}

/// Chunks of other writers with damage: whatever is decoded has the length asked for.
#[test]
#[cfg_attr(miri, ignore = "calls C")]
fn damaged_chunks_are_refused_or_of_the_length_asked_for() {
    for Chunk { pipeline, text, stored, values } in &chunks() {
        let whole = |decoded: Result<Vec<u8>>| judge(text, decoded.map(|bytes| bytes.len()), values.len());
        let mut bytes = stored.clone();
        // Long chunks have the first bytes and a sample of the others changed.
        for at in (0..bytes.len()).filter(|at| *at < 64 || at % 29 == 0) {
            whole(pipeline.decode(&stored[..at], values.len()));
            for new in [0, 0x7f, 0xff, stored[at] ^ 1, stored[at] ^ 0x10, stored[at] ^ 0x80, !stored[at]] {
                bytes[at] = new;
                whole(pipeline.decode(&bytes, values.len()));
            }
            bytes[at] = stored[at];
        }
    }
}

proptest! {
    #![proptest_config(config(400))]
    /// Any changes of a chunk at once, and any length asked for.
    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn any_damage_is_survived(
        pick in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<prop::sample::Index>(),
        len in 0..3_000usize,
    ) {
        let chunks = chunks();
        let Chunk { pipeline, text, stored, values } = pick.get(&chunks);
        let mut bytes = stored.clone();
        for (at, new) in changes {
            *at.get_mut(&mut bytes) = new;
        }
        for (bytes, len) in [(&bytes[..], values.len()), (&bytes[..cut.index(bytes.len())], values.len()), (&bytes[..], len)] {
            match pipeline.decode(bytes, len) {
                Ok(decoded) => prop_assert_eq!(decoded.len(), len, "{}", text),
                error => judge(text, error.map(|bytes| bytes.len()), len),
            }
        }
    }
}
