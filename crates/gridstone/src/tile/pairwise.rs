//! Pairwise summation of a stream of floats, in bounded memory.
//!
//! The sum of at most 128 values is computed from left to right, starting at 0.0. More values are split at the greatest
//! power of two below their count, and the sums of both parts are added. The error grows with the logarithm of the
//! count (Higham, "The accuracy of floating point summation", 1993). The same tree is built here from the leaves, as a
//! binary counter is incremented. Complete leaves of 128 are joined with a neighbour of the same size as soon as there
//! is one.

const LEAF: usize = 128;
/// How many leaves are summed side by side: each sum is a chain of additions that wait for each other.
const LEAVES: usize = 8;

/// A sum in progress.
#[derive(Debug)]
pub(super) struct Pairwise {
    /// Values that do not fill a leaf yet.
    leaf: Vec<f64>,
    /// Sums of complete subtrees with the number of leaves in each, largest first.
    subtrees: Vec<(f64, usize)>,
}

impl Pairwise {
    pub(super) fn new() -> Self {
        Self { leaf: Vec::with_capacity(LEAF), subtrees: Vec::new() }
    }

    pub(super) fn add(&mut self, mut values: &[f64]) {
        if !self.leaf.is_empty() {
            let (filling, later) = values.split_at(values.len().min(LEAF - self.leaf.len()));
            self.leaf.extend_from_slice(filling);
            values = later;
            if self.leaf.len() < LEAF {
                return;
            }
            let sum = in_order(&self.leaf);
            self.leaf.clear();
            self.push(sum);
        }
        let (leaves, rest) = values.as_chunks::<LEAF>();
        let (groups, single) = leaves.as_chunks::<LEAVES>();
        for group in groups {
            let mut sums = [0.0; LEAVES];
            for place in 0..LEAF {
                for (sum, leaf) in sums.iter_mut().zip(group) {
                    *sum += leaf.get(place).copied().unwrap_or(0.0);
                }
            }
            sums.into_iter().for_each(|sum| self.push(sum));
        }
        single.iter().for_each(|leaf| self.push(in_order(leaf)));
        self.leaf.extend_from_slice(rest);
    }

    fn push(&mut self, mut sum: f64) {
        let mut leaves = 1;
        while let Some((left, _)) = self.subtrees.pop_if(|(_, size)| *size == leaves) {
            sum += left;
            leaves *= 2;
        }
        self.subtrees.push((sum, leaves));
    }

    pub(super) fn finish(mut self) -> f64 {
        let mut sum = match self.subtrees.pop_if(|_| self.leaf.is_empty()) {
            Some((last, _)) => last,
            None => in_order(&self.leaf),
        };
        while let Some((left, _)) = self.subtrees.pop() {
            sum += left;
        }
        sum
    }
}

/// Not `sum()`: its initial value (0.0 or -0.0) depends on the compiler's version.
fn in_order(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |sum, value| sum + value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the format's documentation defines it.
    fn defined(values: &[f64]) -> f64 {
        if values.len() <= 128 {
            return in_order(values);
        }
        let (left, right) = values.split_at(values.len().next_power_of_two() / 2);
        defined(left) + defined(right)
    }

    #[test]
    fn the_tree_is_that_of_the_definition() {
        let values: Vec<f64> = (0..5_000u32).map(|i| (f64::from(i) * 0.7).sin() * 10f64.powi(i as i32 % 17)).collect();
        let long: &[usize] = &[511, 512, 513, 1_023, 1_024, 1_025, 2_047, 2_049, 4_095, 4_096, 4_097, 5_000];
        let (short, long) = if cfg!(miri) { (140, &long[..1]) } else { (400, long) };
        for count in (0..short).step_by(if cfg!(miri) { 13 } else { 1 }).chain(long.iter().copied()) {
            let values = &values[..count];
            for step in [1, 7, 128, 130, 1_024, 5_000] {
                let mut sum = Pairwise::new();
                values.chunks(step).for_each(|run| sum.add(run));
                assert_eq!(sum.finish().to_bits(), defined(values).to_bits(), "{count} values in runs of {step}");
            }
        }
    }
}
