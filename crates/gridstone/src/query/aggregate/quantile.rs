//! Aggregates of all values of a group at once, from how often each value is there, in ascending order.
//!
//! The quantile of a share q of n values, sorted and numbered from 0, is the one at q (n - 1); between two it is interpolated
//! linearly (Hyndman and Fan 1996, definition 7, which NumPy uses). The discrete one is the first value at or before which
//! lies a share of q or more (definition 1). A NaN or NaT among the values makes it NaN or NaT.

use super::words::NanPlace;
use crate::base::{ElementKind, Error, Result};
use crate::schema::{Datatype, Sorting, key};

/// What all values of a group become.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reduction {
    /// How many there are.
    Count,
    Quantile(Distribution),
}

/// A quantile of values of a type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Distribution {
    datatype: Datatype,
    share: f64,
    discrete: bool,
}

impl Distribution {
    /// # Errors
    /// Input: values of this type are not interpolated, or have no order.
    pub(super) fn new(datatype: Datatype, share: f64, discrete: bool, text: &str) -> Result<Self> {
        match datatype.sorting() {
            Sorting::Keys => Ok(Self { datatype, share, discrete }),
            Sorting::Bytes | Sorting::None => {
                Err(Error::input(format!("{text}: values of {datatype} have no quantiles")))
            }
        }
    }

    pub(super) fn discrete(self) -> bool {
        self.discrete
    }

    /// The type of the result.
    pub(super) fn result(self) -> Datatype {
        if self.discrete || self.datatype.is_time() { self.datatype } else { Datatype::Float64 }
    }

    /// The numbers of the two values that the result of so many lies between, and the share of the way to the second.
    fn ranks(self, count: u64) -> (u64, u64, f64) {
        if self.discrete {
            let rank = (self.share * count as f64).ceil().max(1.0) as u64 - 1;
            return (rank, rank, 0.0);
        }
        let last = count.saturating_sub(1);
        let place = self.share * last as f64;
        (place.floor() as u64, (place.floor() as u64 + 1).min(last), place - place.floor())
    }

    fn between(self, low: u64, high: u64, part: f64) -> u64 {
        if self.datatype.is_time() {
            let (from, to) = (i128::from(low), i128::from(high));
            return (from + ((to - from) as f64 * part).round() as i128) as u64;
        }
        let (from, to) = (self.number(low), self.number(high));
        // Both ends are exact. Between a number and an infinity lies the infinity, between two opposite ones NaN.
        let value = match part {
            _ if from == to || part == 0.0 => from,
            _ if from.is_infinite() || to.is_infinite() => from + to,
            // The rounded sum of both, halved, as a median is: their distance may lose what the sum keeps.
            0.5 => from.midpoint(to),
            part if part < 0.5 => from + (to - from) * part,
            part => to - (to - from) * (1.0 - part),
        };
        if value.is_nan() { u64::MAX } else { key::from_float(value) }
    }

    fn number(self, word: u64) -> f64 {
        match self.datatype.element().kind {
            ElementKind::Float => key::to_float(word),
            ElementKind::Signed => key::to_signed(word) as f64,
            ElementKind::Unsigned => word as f64,
        }
    }
}

/// A quantile of so many values, which come in ascending order.
#[derive(Debug)]
pub(super) struct Pick {
    distribution: Distribution,
    /// The numbers of the values that the result lies between, and the share of the way to the second.
    ranks: (u64, u64, f64),
    /// Values that came.
    seen: u64,
    low: Option<u64>,
    high: Option<u64>,
    last: Option<u64>,
}

impl Pick {
    pub(super) fn new(distribution: Distribution, count: u64) -> Self {
        Self { distribution, ranks: distribution.ranks(count), seen: 0, low: None, high: None, last: None }
    }

    /// Takes a value that is there so many times.
    pub(super) fn take(&mut self, word: u64, times: u64) {
        self.seen += times;
        let (low, high, _) = self.ranks;
        for (slot, rank) in [(&mut self.low, low), (&mut self.high, high)] {
            if slot.is_none() && rank < self.seen {
                *slot = Some(word);
            }
        }
        self.last = Some(word);
    }

    /// The word of the result in its type (NaN last); `None` without any value.
    pub(super) fn word(&self) -> Option<u64> {
        let distribution = self.distribution;
        if NanPlace::Last.is_nan(distribution.datatype, self.last?) {
            return Some(u64::MAX);
        }
        let (low, high) = (self.low?, self.high?);
        Some(if distribution.discrete { low } else { distribution.between(low, high, self.ranks.2) })
    }
}
