//! Floor `tile`: sorting the keys of cells.

use super::case::{Case, work};
use super::input::below;
use gridstone::base::{Inline, NeverCancel};
use gridstone::tile::CellKeys;

/// Random keys, keys of which nine in ten share a few values, and keys in order already; of one and of two words.
pub(crate) fn cases(count: usize) -> Vec<Case> {
    let random = move || below(1 << 40, count).map(|k| k as u64).collect::<Vec<_>>();
    let skewed = move || random().into_iter().map(|k| if k % 10 == 0 { k } else { (k % 50) << 30 }).collect::<Vec<_>>();
    let sorted = move || (0..count as u64).map(|k| 3 * k).collect::<Vec<_>>();
    vec![
        case("random", count, random),
        case("skewed", count, skewed),
        case("sorted", count, sorted),
        wide(count, move || random().into_iter().map(|k| u128::from(k) << 40 | u128::from(k)).collect()),
    ]
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
