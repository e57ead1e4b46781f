//! Choosing filters ahead of the tiles that need the choice.
//!
//! Some tiles share a choice ([`super::tiler`], [`super::cells::write_cells`]), which takes as long as encoding one of them or two. Made by
//! whoever came first to a tile of theirs, it kept all others waiting that had come to the next. So it is a step of its own, done
//! while tiles of the choice before are encoded.

use crate::base::Result;
use std::collections::VecDeque;

/// What may be the first of the tiles that share a choice.
pub(in crate::query) trait Settles {
    /// The choice.
    type Choice;

    /// The choice, if this tile is the first that needs it.
    fn choice(&self) -> Option<Self::Choice>;
}

/// What is to be done next.
pub(in crate::query) enum Step<T: Settles> {
    /// A choice to be made.
    Settle(T::Choice),
    /// A tile to be encoded.
    Encode(T),
}

impl<T: Settles> Step<T> {
    /// Does it; gives what became of a tile.
    pub(in crate::query) fn done<R>(
        self,
        settle: impl FnOnce(T::Choice),
        encode: impl FnOnce(T) -> Result<R>,
    ) -> Result<Option<R>> {
        match self {
            Self::Encode(tile) => encode(tile).map(Some),
            Self::Settle(choice) => {
                settle(choice);
                Ok(None)
            }
        }
    }
}

/// Of as many tiles as may be held at once, `ahead`, how many are being encoded, and how many wait behind their choice.
pub(in crate::query) fn encoded_and_waiting(ahead: usize, threads: usize) -> (usize, usize) {
    // One thread does one step after the other.
    let waiting = if threads == 1 { 0 } else { ahead / 3 };
    ((ahead - waiting).max(1), waiting)
}

/// The steps for tiles that come one after the other: each choice as soon as the first tile that needs it is seen, which is
/// `lag` tiles before that is encoded. After an error there is no further step.
pub(in crate::query) struct ChoicesAhead<I, T: Settles> {
    from: I,
    lag: usize,
    choices: VecDeque<T::Choice>,
    tiles: VecDeque<T>,
    ended: bool,
}

impl<T: Settles, I: Iterator<Item = Result<T>>> ChoicesAhead<I, T> {
    pub(in crate::query) fn new(from: I, lag: usize) -> Self {
        Self { from, lag, choices: VecDeque::new(), tiles: VecDeque::new(), ended: false }
    }
}

impl<T: Settles, I: Iterator<Item = Result<T>>> Iterator for ChoicesAhead<I, T> {
    type Item = Result<Step<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended && self.choices.is_empty() && self.tiles.len() <= self.lag {
            match self.from.next() {
                Some(Ok(tile)) => {
                    self.choices.extend(tile.choice());
                    self.tiles.push_back(tile);
                }
                Some(Err(e)) => {
                    self.choices.clear();
                    self.tiles.clear();
                    self.ended = true;
                    return Some(Err(e));
                }
                None => self.ended = true,
            }
        }
        let choice = self.choices.pop_front().map(Step::Settle);
        choice.or_else(|| self.tiles.pop_front().map(Step::Encode)).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Error;

    /// A tile by its number; every fifth begins a choice of that number.
    impl Settles for usize {
        type Choice = usize;

        fn choice(&self) -> Option<usize> {
            self.is_multiple_of(5).then_some(*self)
        }
    }

    fn steps(tiles: impl Iterator<Item = Result<usize>>, lag: usize) -> Vec<String> {
        let told = |step: Result<Step<usize>>| match step {
            Ok(Step::Settle(choice)) => format!("settle {choice}"),
            Ok(Step::Encode(tile)) => tile.to_string(),
            Err(e) => e.message().to_owned(),
        };
        ChoicesAhead::new(tiles, lag).map(told).collect()
    }

    #[test]
    fn choices_come_so_many_tiles_ahead_and_tiles_in_order() {
        assert_eq!(steps((0..7).map(Ok), 0).join(", "), "settle 0, 0, 1, 2, 3, 4, settle 5, 5, 6");
        assert_eq!(steps((0..7).map(Ok), 2).join(", "), "settle 0, 0, 1, 2, settle 5, 3, 4, 5, 6");
        assert_eq!(steps((0..7).map(Ok), 5).join(", "), "settle 0, settle 5, 0, 1, 2, 3, 4, 5, 6");
        assert_eq!(steps((0..2).map(Ok), 100).join(", "), "settle 0, 0, 1");
        assert!(steps(std::iter::empty(), 3).is_empty());
    }

    #[test]
    fn a_choice_waits_for_no_tile_but_its_first() {
        let pulled = std::cell::Cell::new(0);
        let mut steps = ChoicesAhead::new(
            (0..20usize).map(|tile| {
                pulled.set(pulled.get() + 1);
                Ok(tile)
            }),
            4,
        );
        assert!(matches!(steps.next(), Some(Ok(Step::Settle(0)))) && pulled.get() == 1);
        assert!(matches!(steps.next(), Some(Ok(Step::Encode(0)))) && pulled.get() == 5);
    }

    #[test]
    fn tiles_that_wait_are_among_those_that_may_be_held() {
        for (ahead, threads) in (1..40).flat_map(|ahead| [1, 2, 8].map(|threads| (ahead, threads))) {
            let (encoded, waiting) = encoded_and_waiting(ahead, threads);
            assert!(encoded > 0 && encoded + waiting <= ahead.max(1) && (threads > 1 || waiting == 0));
        }
    }

    #[test]
    fn an_error_is_the_last_step() {
        let tiles = || (0..9).map(|tile| if tile == 4 { Err(Error::storage("lost")) } else { Ok(tile) });
        assert_eq!(steps(tiles(), 0).join(", "), "settle 0, 0, 1, 2, 3, lost");
        assert_eq!(steps(tiles(), 2).join(", "), "settle 0, 0, 1, lost");
    }
}
