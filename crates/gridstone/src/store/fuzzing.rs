//! Entry points of fuzz targets into the manifest, which nothing outside this floor decodes. Only with the feature
//! `fuzzing`.

use super::commit_key::CommitKey;
use super::hint::{self, Hint};
use super::inspect_rows;
use super::line;
use super::page::{self, PageInfo};
use super::root;
use super::shape::RootRef;
use super::snapshot::Snapshot;
use super::tree::Node;
use crate::base::{Error, Id, Result, limits};
use crate::schema::{KeyRange, Subarray};
use crate::storage::Storage;
use serde_json::Value;
use std::sync::Arc;

/// Decodes a manifest root without a reference to check it against, encodes it again, and walks the state that is based
/// on it; its pages are read from `storage`. Returns whether the second decoding equals the first.
///
/// # Errors
/// Those of opening a store.
pub fn manifest_root(bytes: &[u8], storage: &Arc<dyn Storage>) -> Result<bool> {
    let line = line::open(bytes, "a manifest root")?;
    let named = line::parse::<Value>(line, "a manifest root")?;
    let version = named.get("version").and_then(Value::as_u64).unwrap_or(1);
    let reference = RootRef { id: Id([0; 16]), version, xxh3: line.xxh3 };
    let decoded = root::decode(bytes, reference, storage)?;
    let again = root::encode(&decoded)?;
    let back = root::decode(&again, RootRef { xxh3: root::checksum(&again)?, ..reference }, storage)?;
    let same = root::encode(&back)? == again;
    // Rows that no snapshot asks for, too: bases, commit keys, kept files. A wrong one is no reason to stop.
    let rows = inspect_rows::named(&decoded).map(drop);
    let snapshot = Snapshot::of_root(decoded, reference);
    for node in snapshot.nodes()? {
        node.metadata().all()?;
        match node {
            Node::Group(group) => drop(snapshot.children(group.path())?),
            Node::Array(array) => {
                array.schemas().all()?;
                drop((array.fragments(None)?, array.kept()?, array.field_metadata()?));
                drop(snapshot.hidden_in(&array)?);
            }
        }
    }
    snapshot.retained().tags()?;
    snapshot.retained().condemned_data()?;
    snapshot.bases().all()?;
    snapshot.keys().find(&CommitKey::new(b"a job")?)?;
    rows.map(|()| same)
}

/// Decodes a hint, encodes it again, and returns the number of records in it; `None` if the second decoding differs
/// from the first.
pub fn hint(bytes: &[u8]) -> Option<usize> {
    let decoded = Hint::decode(bytes);
    let again = Hint::decode(&hint::encode(decoded.version, decoded.tail.iter()));
    (again.version == decoded.version && again.tail == decoded.tail).then_some(decoded.tail.len())
}

/// Decodes a page of rows, encodes it again, and returns whether the second decoding equals the first.
///
/// # Errors
/// Those of opening a store.
pub fn manifest_rows(bytes: &[u8]) -> Result<bool> {
    super::rows::page_survives(bytes)
}

/// Decodes a value that is an object of its own, encodes it again, and returns whether the second decoding equals the first.
///
/// # Errors
/// Those of opening a store.
pub fn manifest_value(bytes: &[u8]) -> Result<bool> {
    super::rows::value_survives(bytes)
}

/// Decodes a manifest page without a root to check it against, encodes it again, and returns whether the second
/// decoding equals the first.
///
/// # Errors
/// Those of opening a store.
pub fn manifest_page(bytes: &[u8]) -> Result<bool> {
    let (Some((_, sum)), Some(dims)) = (bytes.split_last_chunk::<8>(), bytes.get(12..16)) else {
        return Err(Error::corruption("too few bytes for a manifest page"));
    };
    let dims = dims.try_into().map_or(0, u32::from_le_bytes) as usize;
    if dims > limits::AXES_MAX {
        return Err(Error::corruption(format!("a manifest page of {dims} dimensions")));
    }
    let bounds = Subarray::new(vec![KeyRange::new(0, 0); dims]);
    let (first, id) = (crate::fragment::FragmentOrder { version: 0, index: 0 }, Id([0; 16]));
    let named = PageInfo { id, xxh3: u64::from_le_bytes(*sum), count: 0, bounds, first, last: first, full: false };
    let fragments = page::read_page(bytes, &named)?;
    if fragments.is_empty() {
        return Ok(true);
    }
    let (again, sum) = page::encode(&fragments, page::VERSION)?;
    Ok(page::decode(&again, &PageInfo::of(id, sum, &fragments, false)?)? == fragments)
}
