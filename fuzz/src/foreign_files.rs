//! Files of other formats: their trees, and the places of their chunks.

use gridstone_foreign::model::{ForeignFile, ForeignGroup, Layout};
use gridstone_foreign::{Error, ErrorKind, Hdf5File, Result, netcdf3, npy};
use std::sync::Arc;

/// Small files that other libraries wrote.
const FILES: &str = include_str!("../../vectors/foreign/files.json");

/// Whether it worked; fails on an error that damage must not give.
fn accepted<T>(outcome: Result<T>) -> Option<T> {
    outcome.inspect_err(|e| assert!(e.kind() != ErrorKind::Caller, "{e}")).ok()
}

/// A whole file.
pub(crate) fn foreign_file(data: &[u8]) -> bool {
    let bytes = data.to_vec();
    if data.starts_with(b"CDF") {
        return accepted(netcdf3::tree(&bytes)).is_some_and(|tree| is_inside(&tree, data.len()));
    }
    if data.starts_with(b"\x93NUMPY") {
        return accepted(npy::dataset(&bytes)).is_some();
    }
    let Some(file) = accepted(Hdf5File::open(Arc::new(bytes))) else { return false };
    let Some(tree) = accepted(file.tree()) else { return false };
    walk(&tree.root, &mut |group| {
        for dataset in group.datasets.iter().filter(|dataset| matches!(dataset.layout, Layout::Chunked { .. })) {
            let mut seen = 0usize;
            let found = file.for_each_chunk(dataset, &mut |chunk| {
                assert!(
                    chunk.offset.checked_add(chunk.length).is_some_and(|end| end <= data.len() as u64),
                    "{chunk:?}"
                );
                seen += 1;
                // Small files may name the same bytes often, and no more often than they have room to say it.
                if seen > 1 << 20 { Err(Error::caller("enough".into())) } else { Ok(()) }
            });
            assert!(seen <= 1 << 20, "{} has {seen} chunks", dataset.name);
            accepted(found);
        }
    });
    is_inside(&tree, data.len())
}

fn walk(group: &ForeignGroup, visit: &mut dyn FnMut(&ForeignGroup)) {
    visit(group);
    group.groups.iter().for_each(|inner| walk(inner, visit));
}

/// Whether all cells that lie in one piece lie in the file; fails if they do not.
fn is_inside(tree: &ForeignFile, len: usize) -> bool {
    walk(&tree.root, &mut |group| {
        for dataset in &group.datasets {
            if let Layout::Contiguous { offset: Some(offset), length } = dataset.layout {
                assert!(offset.checked_add(length).is_some_and(|end| end <= len as u64), "{}", dataset.name);
            }
        }
    });
    let json = serde_json::to_string(tree).unwrap();
    assert!(&serde_json::from_str::<ForeignFile>(&json).unwrap() == tree, "another tree came back");
    true
}

pub(crate) fn foreign_files() -> Vec<Vec<u8>> {
    let entries: Vec<serde_json::Value> = serde_json::from_str(FILES).unwrap();
    let bytes = |entry: &serde_json::Value| {
        let digits = entry["bytes"].as_str().unwrap();
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
    };
    entries.iter().map(bytes).collect()
}
