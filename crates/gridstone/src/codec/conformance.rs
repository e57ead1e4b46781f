//! The conformance suite of filters: decoding returns what was encoded, and damage is an error, never a panic.

use super::Filter;
use crate::base::{Element, ErrorKind};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const ELEMENTS: [Element; 11] = [
    Element::unsigned(1),
    Element::unsigned(2),
    Element::unsigned(4),
    Element::unsigned(8),
    Element::signed(1),
    Element::signed(2),
    Element::signed(4),
    Element::signed(8),
    Element::float(2),
    Element::float(4),
    Element::float(8),
];

/// Runs the whole suite on `filter`.
pub(super) fn check(filter: &dyn Filter) {
    let elements = ELEMENTS.into_iter().step_by(if cfg!(miri) { 3 } else { 1 });
    for element in elements {
        if filter.accepts(element) {
            roundtrips(filter, element);
            damage(filter, element);
        } else if let Err(error) = filter.encode(&[0; 8], element, &mut vec![]) {
            assert_eq!(error.kind(), ErrorKind::Schema);
        } else {
            panic!("{} encodes {element:?}, which it does not accept", filter.name());
        }
    }
}

/// Encodes and decodes `input` behind bytes that must not change, into a buffer at an odd address.
pub(super) fn roundtrip(filter: &dyn Filter, input: &[u8], element: Element) {
    let mut stored = vec![1, 2, 3];
    match filter.encode(input, element, &mut stored) {
        Ok(()) => {}
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Input, "{error}");
            assert!(!input.len().is_multiple_of(element.size()), "{error}");
            return;
        }
    }
    let name = filter.name();
    assert_eq!(&stored[..3], &[1, 2, 3]);
    assert!(
        input.len() <= filter.decoded_len_max(stored.len() - 3),
        "{name}: {} from {}",
        input.len(),
        stored.len() - 3
    );
    let len_max = filter.encoded_len_max(input.len());
    assert!(stored.len() - 3 <= len_max, "{name}: {} -> {}, bound {len_max}", input.len(), stored.len() - 3);
    let mut out = vec![0xee; input.len() + 9];
    let written = filter.decode(&stored[3..], element, &mut out[1..=input.len()]).unwrap();
    assert_eq!(written, input.len(), "{name} {element:?}");
    assert!(&out[1..=written] == input, "{name} {element:?}: other bytes came back");
    if input.len().is_multiple_of(element.size()) {
        picks(filter, &stored[3..], input, element);
    }
}

/// Rows of `count` elements: none, all, the first, the last, every third, a contiguous part, a few random ones.
fn selections(count: u32) -> [Vec<u32>; 7] {
    let few = |row: &u32| row.wrapping_mul(0x9e37_79b9).rotate_left(9).is_multiple_of(23);
    [
        vec![],
        (0..count).collect(),
        (0..count.min(1)).collect(),
        (count.saturating_sub(1)..count).collect(),
        (0..count).step_by(3).collect(),
        (count / 3..count / 2).collect(),
        (0..count).filter(few).collect(),
    ]
}

/// The elements that a filter finds in `stored` are those of `input`.
fn picks(filter: &dyn Filter, stored: &[u8], input: &[u8], element: Element) {
    let Some(picks) = filter.picks() else { return };
    let count = input.len() / element.size();
    for rows in selections(count as u32) {
        let mut out = vec![0xee; rows.len() * element.size() + 1];
        let found = picks.decode_rows(stored, element, count, &rows, &mut out[1..]).unwrap();
        let wanted = rows.iter().flat_map(|row| &input[*row as usize * element.size()..][..element.size()]);
        assert_eq!(found, input.len(), "{} {element:?}", filter.name());
        assert!(out[1..].iter().eq(wanted), "{} {element:?}: other elements were found", filter.name());
    }
}

fn roundtrips(filter: &dyn Filter, element: Element) {
    // Under Miri a byte takes a thousand times as long, so lengths and cases are few; every line of the filters is
    // covered.
    let long: &[usize] = if cfg!(miri) { &[7, 9, 136] } else { &[511, 512, 8191, 8192, 8200, 65_536, 70_001] };
    let short = if cfg!(miri) { 2 } else { 40 };
    for len in (0..short).chain(long.iter().copied()) {
        for kind in 0..SHAPES {
            roundtrip(filter, &shape(kind, len, 1, element), element);
        }
    }
    let (cases, most) = if cfg!(miri) { (1, 200) } else { (48, 70_000usize) };
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let input = (0..SHAPES, 0..most, any::<u64>());
    let whole = runner.run(&input, |(kind, len, seed)| {
        roundtrip(filter, &shape(kind, len, seed, element), element);
        roundtrip(filter, &shape(kind, len - len % element.size(), seed, element), element);
        Ok(())
    });
    whole.unwrap();
}

const SHAPES: usize = 6;

/// `len` bytes of values of one kind: noise, equal, small, a walk, a sequence, mostly equal.
fn shape(kind: usize, len: usize, seed: u64, element: Element) -> Vec<u8> {
    let mut state = seed | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut walk = 0u64;
    let value = |i: u64| {
        let noise = random();
        walk = walk.wrapping_add((noise % 17).wrapping_sub(8));
        match kind {
            0 => noise,
            1 => seed,
            2 => noise % 100,
            3 => walk,
            4 => i.wrapping_mul(seed % 9),
            _ => seed ^ (u64::from(noise % 50 == 0) * noise),
        }
    };
    let number = |v: u64| v.to_le_bytes().into_iter().take(element.size());
    (0..len.div_ceil(element.size()) as u64).map(value).flat_map(number).take(len).collect()
}

/// If all elements decode, the picked ones are equal to them; if not, the error is the same.
fn picks_of_damaged(
    filter: &dyn Filter,
    bytes: &[u8],
    element: Element,
    decoded: crate::base::Result<&[u8]>,
    len: usize,
) {
    let Some(picks) = filter.picks() else { return };
    let (size, count) = (element.size(), len / element.size());
    let rows: Vec<u32> = (0..count as u32).step_by(7).collect();
    let mut found = vec![0; rows.len() * size];
    match (picks.decode_rows(bytes, element, count, &rows, &mut found), decoded) {
        (Ok(written), Ok(all)) => {
            assert_eq!(written, all.len(), "{}", filter.name());
            let held =
                rows.iter().zip(found.chunks_exact(size)).take_while(|(row, _)| (**row as usize + 1) * size <= written);
            held.for_each(|(row, value)| assert_eq!(value, &all[*row as usize * size..][..size]));
        }
        (Err(error), Err(whole)) => assert_eq!((error.kind(), error.message()), (whole.kind(), whole.message())),
        (found, whole) => panic!("{}: {found:?} of some elements, {whole:?} of all", filter.name()),
    }
}

/// Every truncated or changed encoded block decodes to something or is Corruption.
fn damage(filter: &dyn Filter, element: Element) {
    let inputs: &[(usize, usize)] = &[(0, 96), (1, 4000), (2, 1600), (3, 2400), (4, 2400), (5, 2400)];
    for (kind, len) in if cfg!(miri) { [(2, 32), (3, 48)].iter() } else { inputs.iter() }.copied() {
        let mut stored = vec![];
        filter.encode(&shape(kind, len, 77, element), element, &mut stored).unwrap();
        let mut out = vec![0; len];
        let mut decode = |bytes: &[u8]| {
            let decoded = filter.decode(bytes, element, &mut out);
            match &decoded {
                Ok(written) => assert!(*written <= len),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Corruption, "{error}"),
            }
            picks_of_damaged(filter, bytes, element, decoded.map(|written| &out[..written]), len);
        };
        (0..stored.len()).for_each(|cut| decode(&stored[..cut]));
        for at in 0..stored.len() {
            let old = stored[at];
            let (bits, bytes): (u8, &[u8]) = if cfg!(miri) { (0, &[!old]) } else { (8, &[0, 0xff, !old]) };
            for new in (0..bits).map(|bit| old ^ (1 << bit)).chain(bytes.iter().copied()) {
                stored[at] = new;
                decode(&stored);
            }
            stored[at] = old;
        }
        stored.push(0);
        decode(&stored);
    }
}
