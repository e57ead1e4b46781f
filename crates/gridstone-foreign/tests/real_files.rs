//! All HDF5 and NetCDF files below the folder that `GRIDSTONE_TEST_DATA` names, damaged ones included.

use gridstone_foreign::model::{ForeignGroup, Layout};
use gridstone_foreign::{FileSource, Hdf5File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn files_below(folder: &Path, into: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => files_below(&entry.path(), into)?,
            false => into.push(entry.path()),
        }
    }
    Ok(())
}

/// Walks the chunks of all datasets, and gives the numbers of datasets and of chunks.
fn walk(file: &Hdf5File, group: &ForeignGroup, length: u64) -> (u64, u64) {
    let (mut datasets, mut chunks) = (group.datasets.len() as u64, 0);
    for dataset in &group.datasets {
        if let Layout::Contiguous { offset: Some(offset), length: bytes } = dataset.layout {
            assert!(offset + bytes <= length, "{}", dataset.name);
        }
        if matches!(dataset.layout, Layout::Chunked { .. }) {
            // Damaged files may fail; what they give first must lie in the file nevertheless.
            let _ = file.for_each_chunk(dataset, &mut |chunk| {
                assert!(chunk.offset + chunk.length <= length, "{}: {chunk:?}", dataset.name);
                assert_eq!(chunk.place.len(), dataset.shape.len());
                chunks += 1;
                Ok(())
            });
        }
    }
    for child in &group.groups {
        let below = walk(file, child, length);
        datasets += below.0;
        chunks += below.1;
    }
    (datasets, chunks)
}

#[test]
fn every_file_is_indexed_or_refused() {
    let Some(folder) = std::env::var_os("GRIDSTONE_TEST_DATA") else {
        eprintln!("skipped: set GRIDSTONE_TEST_DATA to a folder with HDF5 files");
        return;
    };
    let mut files = Vec::new();
    files_below(Path::new(&folder), &mut files).unwrap();
    let (mut indexed, mut datasets, mut chunks) = (0, 0, 0);
    for path in files {
        let length = path.metadata().unwrap().len();
        let source = Arc::new(FileSource::open(&path).unwrap());
        let Ok(file) = Hdf5File::open(source) else { continue };
        let Ok(tree) = file.tree() else { continue };
        let found = walk(&file, &tree.root, length);
        indexed += 1;
        datasets += found.0;
        chunks += found.1;
    }
    eprintln!("{indexed} files, {datasets} datasets, {chunks} chunks");
    assert!(indexed > 0, "no file below {} could be indexed", Path::new(&folder).display());
}
