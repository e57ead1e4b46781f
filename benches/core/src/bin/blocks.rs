//! Compares block sizes on prepared inputs: `blocks FOLDER [--repeats N] [--threads N] [--only NAME]… [--sizes] [--columns] [--coords] [--rates] [--index]`.
//!
//! It runs the named ones of the five parts, or all. The folder is what `benches/blocks/prepare.py` wrote; the tables
//! are in Markdown. `make bench-blocks` does both.

use gridstone::base::{Error, Result};
use gridstone_bench::blocks::{Choice, Effort, compare};
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("blocks: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut args: impl Iterator<Item = String>) -> Result<()> {
    let mut folder = None;
    let mut effort = Effort { repeats: 5, threads: 1 };
    let mut choice =
        Choice { only: Vec::new(), sizes: false, columns: false, coords: false, rates: false, index: false };
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| Error::input(format!("{arg} needs a value")));
        let number = |text: String| text.parse().map_err(|_| Error::input(format!("{text:?} is no number")));
        match arg.as_str() {
            "--repeats" => effort.repeats = number(value()?)?,
            "--threads" => effort.threads = number(value()?)?,
            "--only" => choice.only.push(value()?),
            "--sizes" => choice.sizes = true,
            "--columns" => choice.columns = true,
            "--coords" => choice.coords = true,
            "--rates" => choice.rates = true,
            "--index" => choice.index = true,
            _ if arg.starts_with("--") => return Err(Error::input(format!("there is no option {arg}"))),
            _ => folder = Some(PathBuf::from(arg)),
        }
    }
    let folder = folder.ok_or_else(|| Error::input("which folder did prepare.py write?"))?;
    if effort.repeats == 0 {
        return Err(Error::input("nothing comes of 0 repeats"));
    }
    if !(choice.sizes || choice.columns || choice.coords || choice.rates || choice.index) {
        choice = Choice { sizes: true, columns: true, coords: true, rates: true, index: true, ..choice };
    }
    compare(&folder, &choice, effort, |table| println!("{table}"))
}
