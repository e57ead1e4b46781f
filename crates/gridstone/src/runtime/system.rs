//! The machine's clock and its source of randomness.

use crate::base::{Clock, Entropy, Error, Id, Result, xxh3};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_us(&self) -> i64 {
        let micros = |d: std::time::Duration| i64::try_from(d.as_micros()).unwrap_or(i64::MAX);
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => micros(since),
            Err(before) => -micros(before.duration()),
        }
    }
}

/// The randomness of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn id(&self) -> Id {
        let mut bytes = [0; 16];
        match getrandom::fill(&mut bytes) {
            Ok(()) => Id(bytes),
            Err(_) => distinct(),
        }
    }

    fn secret(&self) -> Result<[u8; 32]> {
        let mut bytes = [0; 32];
        match getrandom::fill(&mut bytes) {
            Ok(()) => Ok(bytes),
            Err(error) => Err(Error::storage(format!(
                "the operating system's source of randomness fails ({error}); nothing can be sealed without it"
            ))),
        }
    }
}

/// An id for systems whose random source fails. Ids must be distinct, not secret: it mixes time, process, a counter and
/// an address that the loader randomises.
fn distinct() -> Id {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let seed = format!("{now} {} {count} {:p}", std::process::id(), &raw const COUNT);
    let halves = [xxh3(seed.as_bytes()), xxh3(format!("{seed} again").as_bytes())];
    Id(bytemuck::cast(halves))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_distinct_with_and_without_the_random_source() {
        let mut ids: Vec<Id> = (0..1_000).flat_map(|_| [SystemEntropy.id(), distinct()]).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 2_000);
    }

    #[test]
    fn the_clock_counts_microseconds_since_1970() {
        let year_2020 = 1_577_836_800_000_000;
        let year_2200 = 7_258_118_400_000_000;
        assert!((year_2020..year_2200).contains(&SystemClock.now_us()));
    }
}
