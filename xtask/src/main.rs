//! The project's own tasks. `cargo xtask tidy` checks the rules of STYLE.md that a program can decide. `cargo xtask
//! instructions` checks that the workloads of `benches/core` take no more instructions than before. `cargo xtask s3`
//! and `azure` run tests beside a server of object stores.

mod child;
mod finding;
mod floors;
mod imports;
mod instructions;
mod lex;
mod packages;
mod prose;
mod rules;
mod seeds;
mod servers;
mod tree;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  tidy                    check floors, packages, lengths, names, words and pages of the whole tree
  tidy --record           record how many sentences of each file are too long; --raise: though they are more
  instructions            count the instructions of the workloads and compare them with the baseline
  instructions --record   count them and write the baseline
  seeds [--minutes N]     run the models with new seeds for N minutes (10); what fails is kept in xtask/seeds.toml
  seeds --kept            run what failed once, with the seeds that it failed with
  s3 -- COMMAND           run a command, tests mostly, beside an S3 server (versitygw; installed with Go)
  azure -- COMMAND        the same beside Azurite (installed with npm)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => tidy(),
        ["tidy", "--record"] => record(false),
        ["tidy", "--record", "--raise"] => record(true),
        ["instructions"] => instructions::run(false),
        ["instructions", "--record"] => instructions::run(true),
        ["seeds", rest @ ..] => seeds::run(rest).unwrap_or_else(usage),
        [server, "--", command @ ..] => servers::run(server, command).unwrap_or_else(usage),
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

fn record(may_rise: bool) -> ExitCode {
    let written = tree::Tree::read().and_then(|tree| {
        let text = rules::sentences::record(&tree, may_rise)?;
        tree::write(rules::sentences::TABLE, &text)
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("tidy: {message}");
            ExitCode::FAILURE
        }
    }
}

fn tidy() -> ExitCode {
    let tree = match tree::Tree::read() {
        Ok(tree) => tree,
        Err(message) => {
            eprintln!("tidy: {message}");
            return ExitCode::from(2);
        }
    };
    let reports = rules::check(&tree);
    for report in &reports {
        println!("{report}");
    }
    match reports.len() {
        0 => {
            println!("tidy: {} files, {} rules, nothing found", tree.files.len(), rules::ALL.len());
            ExitCode::SUCCESS
        }
        count => {
            eprintln!("tidy: {count} found");
            ExitCode::FAILURE
        }
    }
}
