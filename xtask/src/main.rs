//! The house's own chores: `cargo xtask tidy` checks the rules of STYLE.md that a program can decide.

mod finding;
mod floors;
mod lex;
mod rules;
mod tree;

use std::process::ExitCode;

const USAGE: &str =
    "usage: cargo xtask tidy\n\n  tidy   check floors, lengths, names, words and pages of the whole tree";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => tidy(),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
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
