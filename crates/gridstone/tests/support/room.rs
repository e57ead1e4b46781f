//! What newer releases write into a store, made by hand: entries of kept files, bases, and fragments that lie there.

use super::store::store_of;
use gridstone::base::{Entropy, FileRef, Id, Result};
use gridstone::fragment::{Description, FragmentKind, FragmentOrder, Location, Part, Staged, ValueBounds};
use gridstone::runtime::SystemEntropy;
use gridstone::schema::{KeyRange, Subarray, key};
use gridstone::storage::{Storage, data_name};
use gridstone::store::{Base, Changes, Kept, KeptFile, Operation, Owner, Place, StandardRules};
use std::sync::Arc;

/// Commits operations to the newest version.
pub(crate) fn commit(storage: &Arc<dyn Storage>, operations: Vec<Operation>) -> Result<u64> {
    let store = store_of(storage);
    let newest = store.latest()?;
    store.commit(&newest, Changes::new(operations), &mut StandardRules).map(|snapshot| snapshot.version())
}

/// A JSON object.
pub(crate) fn ext(text: &str) -> Option<Box<serde_json::Map<String, serde_json::Value>>> {
    Some(Box::new(serde_json::from_str(text).unwrap()))
}

/// A new file in `_data/` with this content.
pub(crate) fn file(storage: &Arc<dyn Storage>, content: &str) -> KeptFile {
    let id = SystemEntropy.id();
    let mut sink = storage.create(&data_name(id)).unwrap();
    sink.write(content.as_bytes()).unwrap();
    sink.finish().unwrap();
    KeptFile { id, len: content.len() as u64 }
}

/// An entry with one new file.
pub(crate) fn entry(storage: &Arc<dyn Storage>, owner: Owner, content: &str) -> Kept {
    let files = vec![file(storage, content)];
    Kept { entry: SystemEntropy.id(), owner, kind: "a kind of later".to_owned(), files, ext: ext(r#"{"of":"kept"}"#) }
}

pub(crate) fn base(kind: &str) -> Base {
    let place = Place { place: "s3://far/away".to_owned(), state: "asleep".to_owned(), ext: ext(r#"{"of":"place"}"#) };
    Base { kind: kind.to_owned(), places: vec![place], ext: ext(r#"{"of":"base"}"#) }
}

pub(crate) fn range(lo: i64, hi: i64) -> Subarray {
    Subarray::new(vec![KeyRange::new(key::from_signed(lo), key::from_signed(hi))])
}

/// A dense fragment of `/grid` on a base.
pub(crate) fn far_fragment(base: u32, (lo, hi): (i64, i64)) -> Staged {
    let id = SystemEntropy.id();
    let description = Description {
        id,
        kind: FragmentKind::Dense,
        order: FragmentOrder { version: 0, index: 0 },
        schema: 0,
        bounds: range(lo, hi),
        cells: (hi - lo + 1) as u64,
        attrs: vec![0],
        location: Location { file: FileRef::OnBase(base, id), offset: 64, len: 7_000 },
        over: None,
        stats: ValueBounds::default(),
        moved: vec![-2],
        extra: extra(),
    };
    Staged { description, body: None }
}

/// What a newer release says of a fragment.
pub(crate) fn extra() -> Vec<Part> {
    let ext = br#"{"of":["fragment",7]}"#.to_vec();
    [(17, ext), (21, vec![0, 255, 7]), (31, Vec::new())].map(|(bit, bytes)| Part { bit, bytes }).to_vec()
}

/// The deletion of a box, with what a newer release says of it.
pub(crate) fn marked_deletion(lo: i64, hi: i64) -> Staged {
    let description = Description { extra: extra(), ..Description::deletion(SystemEntropy.id(), 0, range(lo, hi)) };
    Staged { description, body: None }
}

pub(crate) fn id_of(storage: &Arc<dyn Storage>, path: &str) -> Id {
    store_of(storage).latest().unwrap().node(path).unwrap().id()
}
