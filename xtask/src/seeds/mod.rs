//! `cargo xtask seeds`: runs the models of the tests with new seeds until the time is over; `--kept` runs those that
//! have failed before.
//!
//! 1. A round draws one seed, and runs the models of the core and then those of the Python package with it.
//! 2. A failure is shown as the test shows it, shrunk if the test shrinks, with the command that repeats it.
//! 3. Seed and tests are written into `xtask/seeds.toml`. From then on the gate runs them, so that a fault found once
//!    stays covered.

mod kept;
mod part;

use kept::{Kept, Seed};
use part::{PARTS, Part};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The default duration of a run.
const MINUTES: u64 = 10;

/// Runs the task; `None` if the arguments are unknown.
pub(crate) fn run(arguments: &[&str]) -> Option<ExitCode> {
    let outcome = match arguments {
        [] => explore(MINUTES),
        ["--minutes", minutes] => explore(minutes.parse().ok()?),
        ["--kept"] => repeat(),
        _ => return None,
    };
    Some(outcome.unwrap_or_else(|message| {
        eprintln!("seeds: {message}");
        ExitCode::from(2)
    }))
}

/// Runs rounds with new seeds for so many minutes, at least one.
fn explore(minutes: u64) -> Result<ExitCode, String> {
    let (start, length) = (Instant::now(), Duration::from_secs(minutes * 60));
    let (mut rounds, mut failures) = (0, 0);
    while rounds == 0 || start.elapsed() < length {
        let seed = RandomState::new().build_hasher().finish() % 1_000_000_000;
        rounds += 1;
        for part in &PARTS {
            println!("seeds: round {rounds}, seed {seed}: {}", part.name);
            let failed = part.run(seed, &[])?;
            if failed.is_empty() {
                continue;
            }
            failures += failed.len();
            println!("seeds: to repeat it: {}", part.command(seed, &failed));
            Kept::read()?.add(Seed { seed, part: part.name.to_owned(), tests: failed })?;
        }
    }
    println!("seeds: {rounds} rounds, {failures} tests failed");
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Repeats the failed tests with the seeds that they failed with.
fn repeat() -> Result<ExitCode, String> {
    let (kept, mut failures) = (Kept::read()?, 0);
    for Seed { seed, part, tests } in &kept.seed {
        let part = Part::named(part).ok_or_else(|| format!("seeds.toml: there is no part {part:?}"))?;
        println!("seeds: seed {seed}: {}", tests.join(" "));
        failures += part.run(*seed, tests)?.len();
    }
    println!("seeds: {} kept, {failures} tests failed", kept.seed.len());
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
