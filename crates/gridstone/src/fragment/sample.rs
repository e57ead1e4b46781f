//! From which cells of a column its filters are chosen: the first, the middle and the last block.

/// The blocks, as spans of cells, that stand for all those between `cuts`: the first, the middle and the last, each once.
pub fn sampled(cuts: &[usize]) -> Vec<(usize, usize)> {
    let last = cuts.len().saturating_sub(2);
    let mut picks = vec![0, last / 2, last];
    picks.dedup();
    picks.into_iter().filter_map(|pick| span(cuts, pick)).collect()
}

/// The middle one alone.
pub(super) fn middle(cuts: &[usize]) -> Option<(usize, usize)> {
    span(cuts, cuts.len().saturating_sub(2) / 2)
}

fn span(cuts: &[usize], block: usize) -> Option<(usize, usize)> {
    cuts.get(block).copied().zip(cuts.get(block + 1).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_blocks_are_all_taken() {
        assert_eq!((sampled(&[]), sampled(&[0]), middle(&[0])), (vec![], vec![], None));
        assert_eq!((sampled(&[0, 5]), middle(&[0, 5])), (vec![(0, 5)], Some((0, 5))));
        assert_eq!(sampled(&[0, 5, 7]), [(0, 5), (5, 7)]);
        assert_eq!(sampled(&[0, 5, 10, 11]), [(0, 5), (5, 10), (10, 11)]);
        assert_eq!(sampled(&[0, 1, 2, 3, 4, 5]), [(0, 1), (2, 3), (4, 5)]);
        assert_eq!(middle(&[0, 1, 2, 3, 4, 5]), Some((2, 3)));
    }
}
