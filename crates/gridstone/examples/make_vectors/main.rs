//! Writes the golden vectors of the format: `cargo run --release -p gridstone --example make_vectors -- vectors/gs1`.
//!
//! Deterministic: ids and times come from counters, so that the same code gives the same bytes on every machine. What
//! `expect.json` says comes from a naive model beside the engine (see [`model`]), not from reading back.

mod case;
mod cases;
mod model;
mod newer;
mod parts;
mod value;
mod world;

use gridstone::base::{Error, Result};
use std::path::Path;

fn main() -> std::process::ExitCode {
    let Some(target) = std::env::args().nth(1) else {
        eprintln!("usage: make_vectors FOLDER");
        return std::process::ExitCode::FAILURE;
    };
    match write_all(Path::new(&target)) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn write_all(target: &Path) -> Result<()> {
    let failed = |e: std::io::Error| Error::storage("a vector could not be written").with_source(e);
    for case in cases::all()? {
        let folder = target.join(case.name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(failed)?;
        }
        let mut total = 0;
        for (name, bytes) in case.files()? {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(&folder)).map_err(failed)?;
            std::fs::write(&path, &bytes).map_err(failed)?;
            total += bytes.len();
        }
        println!("{:7} bytes  {}", total, case.name);
    }
    Ok(())
}
