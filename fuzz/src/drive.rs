//! The driver: mutates inputs for a while and says what it found.

use crate::mutate::mutate;
use crate::targets::Target;
use gridstone_testkit::{Dice, Measured};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Accepted inputs that are kept to go on from.
const POOL_MAX: usize = 2_000;
const INPUT_BYTES_MAX: usize = 1 << 16;

/// What a run came to.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Inputs tried.
    pub tries: u64,
    /// Inputs accepted.
    pub accepted: u64,
}

/// An input that a target must not fail on.
#[derive(Debug)]
pub struct Finding {
    /// What went wrong.
    pub what: String,
    /// Where the input was written.
    pub file: PathBuf,
}

/// Runs `target` on its corpus and on changes of it that follow from `seed`, until the time is over or something is
/// found. With `keep` every input is written there first, for what ends the process.
pub fn drive(target: &Target, time: Duration, seed: u64, keep: Option<&PathBuf>) -> Result<Summary, Finding> {
    let (end, mut dice) = (Instant::now() + time, Dice::new(seed));
    let corpus = (target.corpus)();
    let mut pool = corpus.clone();
    let mut summary = Summary::default();
    loop {
        let n = summary.tries as usize;
        let input = corpus.get(n).cloned().unwrap_or_else(|| changed(&pool, &corpus, &mut dice));
        if let Some(path) = keep {
            std::fs::write(path, &input).unwrap();
        }
        let accepted = tried(target, &input)?;
        assert!(accepted || n >= corpus.len(), "{}: an input of the corpus is refused", target.name);
        summary.tries += 1;
        summary.accepted += u64::from(accepted);
        if accepted && n >= corpus.len() {
            match pool.len() {
                len if len < POOL_MAX => pool.push(input),
                len => pool[dice.below(len)] = input,
            }
        }
        if Instant::now() >= end && n >= corpus.len() {
            return Ok(summary);
        }
    }
}

fn changed(pool: &[Vec<u8>], corpus: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let from = if dice.chance(50) { pool } else { corpus };
    let mut input = dice.pick(from).clone();
    let other: &Vec<u8> = dice.pick(pool);
    mutate(&mut input, other, dice);
    input.truncate(INPUT_BYTES_MAX);
    input
}

/// Runs a target once; a finding if it panics or asks for too much.
pub fn tried(target: &Target, input: &[u8]) -> Result<bool, Finding> {
    Measured::take_largest();
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let (largest, most) = (Measured::take_largest(), (target.allocation_max)(input.len()));
    match outcome {
        Ok(accepted) if largest <= most => Ok(accepted),
        Ok(_) => Err(found(target, input, format!("{largest} bytes were asked for at once, {most} may be"))),
        Err(panic) => Err(found(target, input, message(panic.as_ref()))),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_else(|| "a panic".to_owned())
}

fn found(target: &Target, input: &[u8], what: String) -> Finding {
    let file = std::env::temp_dir().join(format!("gridstone-fuzz-{}-{}", target.name, std::process::id()));
    std::fs::write(&file, input).unwrap();
    Finding { what, file }
}
