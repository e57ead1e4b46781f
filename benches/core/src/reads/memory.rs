//! The cost of a result's memory: fresh from the system, fresh in huge pages, and reused.

use crate::blocks::measure::{median, turns};
use gridstone::base::{Error, Result};
use gridstone::runtime::Arena;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

/// Bytes of a result.
const SIZES: [usize; 3] = [4 << 20, 32 << 20, 256 << 20];
const WAYS: [Way; 3] = [Way::Fresh, Way::Huge, Way::Again];

#[derive(Clone, Copy)]
enum Way {
    /// From the allocator, like a `Vec`'s.
    Fresh,
    /// From an arena that keeps nothing: huge pages are requested.
    Huge,
    /// From an arena that has the buffer from before.
    Again,
}

/// The table of copies into such memory, every byte of which is written once.
///
/// # Errors
/// Budget if there is no memory; Input if a copy is wrong.
pub fn memory(repeats: usize) -> Result<String> {
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let mut text = format!(
        "Huge pages: {}\n\n| MiB | fresh, ms | fresh, huge pages asked for | used again |\n|--:|--:|--:|--:|\n",
        setting.trim()
    );
    for size in SIZES {
        let source: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
        let arenas = [Arena::new(0), Arena::new(2 * size as u64)];
        let mut times = vec![Vec::new(); WAYS.len()];
        // The first round fills the arena and is not counted.
        for round in 0..=repeats {
            for at in turns(WAYS.len(), round) {
                let Some((way, times)) = WAYS.get(at).zip(times.get_mut(at)) else { continue };
                let taken = copy(*way, &arenas, &source)?;
                if round > 0 {
                    times.push(taken);
                }
            }
        }
        let _ = write!(text, "| {} |", size >> 20);
        times.into_iter().for_each(|times| {
            let _ = write!(text, " {:.2} |", 1e3 * median(times));
        });
        text.push('\n');
    }
    Ok(text)
}

/// Seconds of taking the memory, filling it, and releasing it.
fn copy(way: Way, [none, kept]: &[Arena; 2], source: &[u8]) -> Result<f64> {
    let start = Instant::now();
    let last = match way {
        Way::Fresh => {
            let mut fresh = vec![0; source.len()];
            fresh.copy_from_slice(source);
            black_box(&fresh).last().copied()
        }
        Way::Huge | Way::Again => {
            let arena = if matches!(way, Way::Huge) { none } else { kept };
            let mut buffer = arena.take(source.len())?;
            buffer.copy_from_slice(source);
            let last = black_box(&buffer).last().copied();
            arena.give(buffer);
            last
        }
    };
    let taken = start.elapsed().as_secs_f64();
    if last == source.last().copied() { Ok(taken) } else { Err(Error::input("a copy is wrong")) }
}
