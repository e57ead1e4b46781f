//! Deterministic inputs.

use gridstone_testkit::Dice;

/// Cells along each side of the plane of sparse cells.
pub(crate) const PLANE: i64 = 1 << 13;

/// The value of a cell of a grid: a slope with noise, which filters shrink but do not remove.
pub(crate) fn slope(y: i64, x: i64) -> i64 {
    let noise = (y * 8_191 + x).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64) >> 56;
    5 * y + 3 * x + noise
}

/// Positions in the plane: no two alike, in no order. Disjoint ranges of numbers give distinct positions.
pub(crate) fn scattered(numbers: std::ops::Range<u32>) -> Vec<(i64, i64)> {
    // Invertible steps on 26 bits: distinct numbers stay distinct.
    const MASK: u32 = (1 << 26) - 1;
    let mix = |n: u32| {
        let n = n.wrapping_mul(0x9e37_79b1) & MASK;
        let n = ((n ^ (n >> 13)).wrapping_mul(0x85eb_ca6b)) & MASK;
        let n = ((n ^ (n >> 11)).wrapping_mul(0xc2b2_ae35)) & MASK;
        n ^ (n >> 14)
    };
    numbers.map(|n| (i64::from(mix(n) >> 13), i64::from(mix(n) & 0x1fff))).collect()
}

/// Random positions in a box that begins at (0, 0), no two alike.
pub(crate) fn places(count: usize, height: i64, width: i64) -> Vec<(i64, i64)> {
    let mut dice = Dice::new(11);
    let mut seen = std::collections::BTreeSet::new();
    let mut places = Vec::with_capacity(count);
    while places.len() < count.min((height * width) as usize) {
        let place = (dice.below(height as usize) as i64, dice.below(width as usize) as i64);
        if seen.insert(place) {
            places.push(place);
        }
    }
    places
}

/// A random walk.
pub(crate) fn walk(count: usize) -> impl Iterator<Item = i64> {
    let mut dice = Dice::new(3);
    (0..count).scan(1_000_000, move |at, _| {
        *at += dice.between(-100, 100) as i64;
        Some(*at)
    })
}

/// Random numbers below `n`.
pub(crate) fn below(n: usize, count: usize) -> impl Iterator<Item = usize> {
    let mut dice = Dice::new(5);
    (0..count).map(move |_| dice.below(n))
}
