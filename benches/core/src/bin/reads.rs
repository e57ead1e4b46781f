//! Measures the costs of reads: `reads [--ways] [--ahead] [--inline] [--memory] [--threads] [--repeats N]`; the named
//! parts, or all.
//!
//! `--ways`: four ways of reading a file. `--ahead`: read-ahead on and off. `--inline`: small commits with and without
//! a data file of their own. `--memory`: results in fresh memory and in reused memory. `--threads`: boxes by one thread
//! and by two. Files are written to the folder for temporary files (`TMPDIR`), which must be on a device for the cold
//! rows. Linux only.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("reads: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("reads: the ways of reading that are compared are those of Linux; there is nothing to measure here");
    ExitCode::FAILURE
}

#[cfg(target_os = "linux")]
fn run(mut args: impl Iterator<Item = String>) -> gridstone::base::Result<()> {
    use gridstone::base::Error;
    use gridstone_bench::reads;
    type Part = fn(usize) -> gridstone::base::Result<String>;
    let parts: [(&str, Part); 5] = [
        ("--ways", reads::ways),
        ("--ahead", reads::ahead),
        ("--inline", reads::inline),
        ("--memory", reads::memory),
        ("--threads", reads::threads),
    ];
    let (mut chosen, mut repeats) = (Vec::new(), 15);
    while let Some(arg) = args.next() {
        if arg == "--repeats" {
            let number = args.next().and_then(|text| text.parse().ok()).filter(|n| *n > 0);
            repeats = number.ok_or_else(|| Error::input("--repeats needs a number above 0"))?;
        } else {
            let part = parts.iter().find(|(name, _)| *name == arg);
            chosen.push(*part.ok_or_else(|| Error::input(format!("there is no option {arg}")))?);
        }
    }
    let chosen = if chosen.is_empty() { parts.to_vec() } else { chosen };
    chosen.into_iter().try_for_each(|(_, part)| {
        println!("{}", part(repeats)?);
        Ok(())
    })
}
