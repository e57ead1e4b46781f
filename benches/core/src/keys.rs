//! Floors `schema` and `tile`: coordinates tested against a box, and the keys of cells sorted.

use super::case::{Case, work};
use super::input::below;
use gridstone::base::{Inline, NeverCancel};
use gridstone::schema::{Datatype, KeyRange, key};
use gridstone::tile::CellKeys;

/// Random keys, keys of which nine in ten share a few values, and sorted keys; each of one and of two words.
pub(crate) fn cases(count: usize) -> Vec<Case> {
    let random = move || below(1 << 40, count).map(|k| k as u64).collect::<Vec<_>>();
    let skewed = move || random().into_iter().map(|k| if k % 10 == 0 { k } else { (k % 50) << 30 }).collect::<Vec<_>>();
    let sorted = move || (0..count as u64).map(|k| 3 * k).collect::<Vec<_>>();
    vec![
        case("random", count, random),
        case("skewed", count, skewed),
        case("sorted", count, sorted),
        wide(count, move || random().into_iter().map(|k| u128::from(k) << 40 | u128::from(k)).collect()),
        marked(Datatype::Int64, count),
        marked(Datatype::Int32, count),
        marked(Datatype::Float64, count),
    ]
}

/// The standard library's comparison sort of the random keys with their rows, for comparison.
pub(crate) fn library(count: usize) -> Case {
    Case::repeated(format!("sort/library/{count}"), 8 * count as u64, move || {
        let given: Vec<(u64, u32)> = below(1 << 40, count).map(|k| k as u64).zip(0..).collect();
        work(
            move || {
                let mut pairs = given.clone();
                pairs.sort_unstable();
                Ok(pairs)
            },
            move |pairs| Ok(pairs.is_sorted() && pairs.len() == count),
        )
    })
}

/// Stored coordinates, of which the middle half is selected, in blocks of 1,024 as reads of boxes test them.
fn marked(datatype: Datatype, count: usize) -> Case {
    const BLOCK: usize = 1_024;
    let name = format!("mark/{datatype}/{count}");
    Case::repeated(name, (count * datatype.width().unwrap_or(1)) as u64, move || {
        let mut values = Vec::new();
        let low = key::from_signed(0);
        let keys: Vec<u64> = match datatype {
            Datatype::Float64 => (0..count).map(|i| key::from_float((i * 7_919 % count) as f64)).collect(),
            _ => (0..count as u64).map(|i| low + i * 7_919 % count as u64).collect(),
        };
        key::decode(datatype, keys.iter().copied(), &mut values);
        let end = |of: usize| match datatype {
            Datatype::Float64 => key::from_float(of as f64),
            _ => low + of as u64,
        };
        let (all, half) = (KeyRange::new(end(0), end(count)), KeyRange::new(end(count / 4), end(count / 4 * 3 - 1)));
        let expected = keys.iter().filter(|k| half.contains(**k)).count();
        let bytes = BLOCK * datatype.width().unwrap_or(1);
        work(
            move || {
                let mut found = 0;
                for block in values.chunks(bytes) {
                    let mut flags = [true; BLOCK];
                    let _ = key::mark(datatype, block, all, half, &mut flags);
                    let cells = block.len() / (bytes / BLOCK);
                    found += flags.iter().take(cells).filter(|flag| **flag).count();
                }
                Ok(found)
            },
            move |found| Ok(*found == expected),
        )
    })
}

fn case(name: &str, count: usize, keys: impl Fn() -> Vec<u64> + 'static) -> Case {
    Case::repeated(format!("sort/{name}/{count}"), 8 * count as u64, move || {
        let given = keys();
        let mut expected = given.clone();
        expected.sort_unstable();
        work(
            move || CellKeys::Narrow(given.clone()).sort(&Inline, &NeverCancel),
            move |(keys, rows)| Ok(matches!(keys, CellKeys::Narrow(k) if *k == expected) && rows.len() == count),
        )
    })
}

fn wide(count: usize, keys: impl Fn() -> Vec<u128> + 'static) -> Case {
    Case::repeated(format!("sort/wide/{count}"), 16 * count as u64, move || {
        let given = keys();
        let mut expected = given.clone();
        expected.sort_unstable();
        work(
            move || CellKeys::Wide(given.clone()).sort(&Inline, &NeverCancel),
            move |(keys, rows)| Ok(matches!(keys, CellKeys::Wide(k) if *k == expected) && rows.len() == count),
        )
    })
}
