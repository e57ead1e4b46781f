//! `gridstone-fuzz [--seconds N] [--seed N] [--keep FILE] [TARGET…]` runs the targets, all by default;
//! `gridstone-fuzz --replay FILE TARGET` runs one on a file.

use gridstone_fuzz::{TARGETS, Target, drive};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What was asked for.
#[derive(Debug)]
struct Asked {
    seconds: u64,
    seed: u64,
    keep: Option<PathBuf>,
    replay: Option<PathBuf>,
    targets: Vec<Target>,
}

fn asked() -> Result<Asked, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let mut asked = Asked { seconds: 60, seed: now, keep: None, replay: None, targets: Vec::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        let number = |text: String| text.parse().map_err(|_| format!("{text:?} is no number"));
        match word.as_str() {
            "--seconds" => asked.seconds = number(value()?)?,
            "--seed" => asked.seed = number(value()?)?,
            "--keep" => asked.keep = Some(value()?.into()),
            "--replay" => asked.replay = Some(value()?.into()),
            name => asked.targets.push(
                *TARGETS
                    .iter()
                    .find(|t| t.name == name)
                    .ok_or_else(|| format!("no target {name:?}; there are {}", TARGETS.map(|t| t.name).join(", ")))?,
            ),
        }
    }
    if asked.targets.is_empty() {
        asked.targets = TARGETS.to_vec();
    }
    Ok(asked)
}

fn run(asked: &Asked) -> Result<(), String> {
    for target in &asked.targets {
        if let Some(file) = &asked.replay {
            let input = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
            let outcome = gridstone_fuzz::drive::tried(target, &input).map_err(|found| found.what)?;
            println!("{}: accepted: {outcome}", target.name);
            continue;
        }
        let time = Duration::from_secs(asked.seconds);
        let outcome = drive(target, time, asked.seed, asked.keep.as_ref());
        let (name, seed) = (target.name, asked.seed);
        let summary = outcome.map_err(|finding| {
            let file = finding.file.display();
            format!("{name}, seed {seed}: {}; repeat it with --replay {file} {name}", finding.what)
        })?;
        println!("{name}, seed {seed}: {} inputs, {} accepted", summary.tries, summary.accepted);
    }
    Ok(())
}

fn main() -> ExitCode {
    match asked().and_then(|asked| run(&asked)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
