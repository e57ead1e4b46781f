//! Positions on a Hilbert curve through a cube of any number of dimensions.
//!
//! The algorithm is J. Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707 (2004). It transforms
//! the coordinates of a cell, bit by bit and in place, into its *transposed* index on the curve. The highest bit of the
//! index is the highest bit of the first number, the next one that of the second, and so on. This implementation
//! processes many cells at once, without a branch.

/// All ones if bit `bit` of `x` is set, else 0.
fn mask(x: u64, bit: u32) -> u64 {
    (x >> bit & 1).wrapping_neg()
}

/// Transforms coordinates below 2^`bits`, a column per dimension, into transposed indices.
pub(super) fn transpose(columns: &mut [Vec<u64>], bits: u32) {
    let Some((first, others)) = columns.split_first_mut() else { return };
    for bit in (1..bits).rev() {
        let low = (1u64 << bit) - 1;
        first.iter_mut().for_each(|x| *x ^= low & mask(*x, bit));
        for other in others.iter_mut() {
            for (x, y) in first.iter_mut().zip(other) {
                // Inverts the low bits of the first number, or exchanges them with those of the other.
                let inverts = mask(*y, bit);
                let exchanged = (*x ^ *y) & low & !inverts;
                *x ^= exchanged | (low & inverts);
                *y ^= exchanged;
            }
        }
    }
    gray(columns, bits);
}

/// The Gray code of the bits, dimension by dimension.
fn gray(columns: &mut [Vec<u64>], bits: u32) {
    for place in 1..columns.len() {
        let (before, from) = columns.split_at_mut(place);
        if let (Some(before), Some(column)) = (before.last(), from.first_mut()) {
            column.iter_mut().zip(before).for_each(|(x, before)| *x ^= before);
        }
    }
    let turn = |x: &u64| (1..bits).rev().fold(0, |turned, bit| turned ^ (((1u64 << bit) - 1) & mask(*x, bit)));
    let turns: Vec<u64> = columns.last().map(|last| last.iter().map(turn).collect()).unwrap_or_default();
    for column in columns {
        column.iter_mut().zip(&turns).for_each(|(x, turned)| *x ^= turned);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The bits of the index of one cell, highest first.
    pub(crate) fn index(cell: &[u64], bits: u32) -> Vec<u64> {
        let mut columns: Vec<Vec<u64>> = cell.iter().map(|x| vec![*x]).collect();
        transpose(&mut columns, bits);
        (0..bits).rev().flat_map(|bit| columns.iter().map(move |c| c[0] >> bit & 1)).collect()
    }

    /// Visits every cell of the cube once, each adjacent to the one before it, and every sub-cube without interruption.
    #[test]
    fn the_curve_fills_cubes_without_a_jump() {
        for (n, bits) in [(1, 4), (2, 1), (2, 4), (3, 3), (4, 2), (5, 2)] {
            let cells: Vec<Vec<u64>> = (0..1u64 << (n * bits))
                .map(|c| (0..n).map(|d| c >> (d * bits) & ((1 << bits) - 1)).collect())
                .collect();
            let mut along: Vec<(Vec<u64>, &Vec<u64>)> = cells.iter().map(|c| (index(c, bits), c)).collect();
            along.sort();
            assert!(along[0].1.iter().all(|x| *x == 0), "it begins at the origin");
            for pair in along.windows(2) {
                assert!(pair[0].0 < pair[1].0, "no index twice");
                let steps: u64 = pair[0].1.iter().zip(pair[1].1).map(|(a, b)| a.abs_diff(*b)).sum();
                assert_eq!(steps, 1, "{n} dimensions of {bits} bits: {pair:?}");
            }
            for run in along.chunks(1 << n) {
                assert!(run.iter().all(|(_, c)| c.iter().zip(run[0].1).all(|(a, b)| a >> 1 == b >> 1)), "{run:?}");
            }
        }
    }

    #[test]
    fn many_cells_at_once_are_each_as_alone_and_high_bits_work() {
        let cell = |i: u64| [i.wrapping_mul(0x9E37_79B9_7F4A_7C15), !i << 40, u64::MAX - i * i];
        let mut columns: Vec<Vec<u64>> = (0..3).map(|d| (0..100).map(|i| cell(i)[d]).collect()).collect();
        transpose(&mut columns, 64);
        let mut seen = std::collections::BTreeSet::new();
        for i in 0..100 {
            let bits: Vec<u64> = (0..64).rev().flat_map(|bit| columns.iter().map(move |c| c[i] >> bit & 1)).collect();
            assert_eq!(bits, index(&cell(i as u64), 64));
            assert!(seen.insert(bits));
        }
    }
}
