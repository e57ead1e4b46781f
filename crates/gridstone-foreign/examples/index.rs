//! Prints the index of a file, or of a folder of Zarr, as JSON lines: the tree, then a line for each chunk with the path of its dataset.
//!
//! `cargo run --example index -- FILE [--count]`; with `--count` a line for each dataset with its number of chunks.

use gridstone_foreign::model::{ForeignDataset, ForeignFile, ForeignGroup, Layout};
use gridstone_foreign::{Error, ErrorKind, FileSource, Hdf5File, Result, netcdf3, zarr};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        eprintln!("usage: index FILE [--count]");
        return ExitCode::from(2);
    };
    let only_count = arguments.next().is_some_and(|argument| argument == "--count");
    match print(Path::new(&path), only_count) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{path}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print(path: &Path, only_count: bool) -> Result<()> {
    if path.is_dir() {
        let found = zarr::tree(path)?;
        return print_index(
            &found,
            &|dataset, each| zarr::for_each_chunk(path, dataset, &mut |chunk| each(json!(chunk))),
            only_count,
        );
    }
    let source = Arc::new(FileSource::open(path)?);
    let (file, tree) = match Hdf5File::open(source.clone()) {
        Ok(file) => {
            let tree = file.tree()?;
            (Some(file), tree)
        }
        Err(error) if error.kind() == ErrorKind::Format => (None, netcdf3::tree(source.as_ref()).map_err(|_| error)?),
        Err(error) => return Err(error),
    };
    let chunks = |dataset: &ForeignDataset, each: &mut dyn FnMut(Value) -> Result<()>| match &file {
        Some(file) => file.for_each_chunk(dataset, &mut |chunk| each(json!(chunk))),
        None => Ok(()),
    };
    print_index(&tree, &chunks, only_count)
}

/// Calls a function with the chunks of a dataset.
type Chunks<'a> = dyn Fn(&ForeignDataset, &mut dyn FnMut(Value) -> Result<()>) -> Result<()> + 'a;

fn print_index(tree: &ForeignFile, chunks: &Chunks<'_>, only_count: bool) -> Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    serde_json::to_writer(&mut out, tree).map_err(|error| Error::caller(Box::new(error)))?;
    line(&mut out, "")?;
    print_group(chunks, &tree.root, "", only_count, &mut out)?;
    out.flush().map_err(|error| Error::caller(Box::new(error)))
}

fn line(out: &mut dyn Write, text: &str) -> Result<()> {
    writeln!(out, "{text}").map_err(|error| Error::caller(Box::new(error)))
}

fn print_group(
    chunks: &Chunks<'_>,
    group: &ForeignGroup,
    path: &str,
    only_count: bool,
    out: &mut dyn Write,
) -> Result<()> {
    for dataset in &group.datasets {
        if matches!(dataset.layout, Layout::Chunked { .. } | Layout::Objects { .. }) {
            print_chunks(chunks, dataset, &format!("{path}/{}", dataset.name), only_count, out)?;
        }
    }
    for child in &group.groups {
        print_group(chunks, child, &format!("{path}/{}", child.name), only_count, out)?;
    }
    Ok(())
}

fn print_chunks(
    chunks: &Chunks<'_>,
    dataset: &ForeignDataset,
    path: &str,
    only_count: bool,
    out: &mut dyn Write,
) -> Result<()> {
    let mut count = 0u64;
    let walked = chunks(dataset, &mut |chunk| {
        count += 1;
        if only_count {
            return Ok(());
        }
        line(out, &json!({ "dataset": path, "chunk": chunk }).to_string())
    });
    match walked {
        Ok(()) if only_count => line(out, &json!({ "dataset": path, "chunks": count }).to_string()),
        Ok(()) => Ok(()),
        Err(error) => line(out, &json!({ "dataset": path, "refused": error.message() }).to_string()),
    }
}
