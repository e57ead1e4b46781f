//! Folding turns the records since the last root into pages and a new root.
//!
//! 1. The inline fragments of those records are verified and copied into one pack in `_data/`.
//! 2. For each array that gained or lost fragments, some pages are rewritten: the last page that is not full, and those
//!    that describe removed fragments. Added fragments are put into them, removed ones left out. If they do not fit one
//!    page, they are cut by space into several, which are full from then on. Other pages are kept unchanged.
//! 3. The rows that changed ([`super::delta`]) are applied to those of the last root: the pages of rows that change are
//!    written, and the root with the top page.
//!
//! Each object is durable before the next step, and all of them before the record that names the root. Two writers that
//! fold at once do no harm: each names its own root, and the one that loses the slot leaves unreferenced files. The
//! work is bounded by what was added since the last root plus one page per array.

use super::cut::cut;
use super::delta::delta;
use super::line::FORMAT;
use super::log::Log;
use super::page::{self, PageInfo};
use super::root::{self, Root};
use super::rows::{Press, Role};
use super::shape::RootRef;
use super::shelf::Shelf;
use super::snapshot::{Made, Snapshot};
use super::state::ArrayState;
use super::tree::Node;
use super::wording::BODY_ALIGNMENT;
use crate::base::{ByteSink, Entropy, Error, FileRef, Id, Result, limits};
use crate::fragment::{Description, Location};
use crate::storage::{Storage, data_name, manifest_name};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The same state as `snapshot`, based on a root of its own version, which is durable.
pub(super) fn fold(log: &Log, entropy: &dyn Entropy, snapshot: &Snapshot) -> Result<Snapshot> {
    fold_moving(log, entropy, snapshot).map(|(folded, _)| folded)
}

/// Like [`fold`]; also returns the locations of the fragments that were copied out of the log.
pub(super) fn fold_moving(log: &Log, entropy: &dyn Entropy, snapshot: &Snapshot) -> Result<(Snapshot, Moved)> {
    let Some(record) = snapshot.record() else { return Ok((snapshot.clone(), Moved::new())) };
    let moved = Packer { log, entropy }.pack(snapshot)?;
    let mut press = Printer { log, entropy };
    let (storage, page_version, made) = (&log.storage, page::VERSION, Made::default());
    let mut binder = Binder { storage, press: &mut press, moved: &moved, page_version, made };
    let root = binder.root(snapshot, record)?;
    let made = binder.made;
    let bytes = root::encode(&root)?;
    let reference = RootRef { id: entropy.id(), version: snapshot.version(), xxh3: root::checksum(&bytes)? };
    write(log, &manifest_name(reference.id), &bytes)?;
    Ok((snapshot.rested_on(root, reference, made)?, moved))
}

/// Passes the objects of a fold of `snapshot` to `press`, with the fragments of the log at the locations in `moved`, and returns
/// the root of its version. These are the bytes that a fold would write, without writing them. Its pages of fragments are of
/// this version.
pub(super) fn bind(
    (storage, press): (&Arc<dyn Storage>, &mut dyn Press),
    moved: &Moved,
    snapshot: &Snapshot,
    page_version: u32,
) -> Result<Root> {
    let record = snapshot.record().ok_or_else(|| Error::corruption("there is no root of nothing"))?;
    Binder { storage, press, moved, page_version, made: Made::default() }.root(snapshot, record)
}

/// Writes objects under fresh ids.
struct Printer<'a> {
    log: &'a Log,
    entropy: &'a dyn Entropy,
}

impl Press for Printer<'_> {
    fn object(&mut self, _: Role, bytes: &[u8], _xxh3: u64) -> Result<Id> {
        let id = self.entropy.id();
        write(self.log, &manifest_name(id), bytes).map(|()| id)
    }
}

fn write(log: &Log, name: &str, bytes: &[u8]) -> Result<()> {
    let mut sink = log.storage.create(name)?;
    sink.write(bytes)?;
    sink.finish()?;
    log.sync_deferred(name)
}

/// The locations of fragments after the fold, by id.
pub(super) type Moved = HashMap<Id, Location>;

/// Copies inline fragments out of the log into a pack.
struct Packer<'a> {
    log: &'a Log,
    entropy: &'a dyn Entropy,
}

impl Packer<'_> {
    fn pack(&self, snapshot: &Snapshot) -> Result<Moved> {
        let wanted = inline_by_version(snapshot);
        let mut moved = Moved::new();
        if wanted.is_empty() {
            return Ok(moved);
        }
        let pack = self.entropy.id();
        let mut sink = self.log.storage.create(&data_name(pack))?;
        let mut end = 0u64;
        for (version, ids) in wanted {
            let (record, file) = self.log.read_file(version)?;
            for inline in record.inline.iter().filter(|inline| ids.contains(&inline.id)) {
                let body = record.body(inline, &file)?;
                let offset = align(sink.as_mut(), end)?;
                sink.write(&body)?;
                end = offset + body.len() as u64;
                moved.insert(inline.id, Location { file: FileRef::Data(pack), offset, len: inline.range.len });
            }
        }
        sink.finish()?;
        self.log.sync_deferred(&data_name(pack))?;
        Ok(moved)
    }
}

/// Writes zeros up to the alignment of the next body, and returns that offset.
fn align(sink: &mut dyn ByteSink, end: u64) -> Result<u64> {
    let offset = end.next_multiple_of(BODY_ALIGNMENT);
    sink.write([0; BODY_ALIGNMENT as usize].get(..(offset - end) as usize).unwrap_or_default())?;
    Ok(offset)
}

/// The fragments whose data is inline in records, by version.
pub(super) fn inline_by_version(snapshot: &Snapshot) -> BTreeMap<u64, Vec<Id>> {
    let mut wanted: BTreeMap<u64, Vec<Id>> = BTreeMap::new();
    for (_, node) in snapshot.tree().changed() {
        let Some(Node::Array(array)) = node else { continue };
        for fragment in array.recent() {
            if let FileRef::Log(version) = fragment.location.file {
                wanted.entry(version).or_default().push(fragment.id);
            }
        }
    }
    wanted
}

/// Whether a page describes a fragment that was removed since.
fn loses(array: &ArrayState, shelf: &Shelf) -> Result<bool> {
    let near = array.gone.values().any(|gone| gone.intersects(&shelf.info().bounds));
    Ok(near && shelf.load()?.iter().any(|d| !array.has(d.id)))
}

/// Makes pages, and their root.
struct Binder<'a> {
    storage: &'a Arc<dyn Storage>,
    press: &'a mut dyn Press,
    moved: &'a Moved,
    /// The version of the pages of fragments.
    page_version: u32,
    /// The pages of fragments written, with their fragments in memory.
    made: Made,
}

impl Binder<'_> {
    fn root(&mut self, snapshot: &Snapshot, record: u64) -> Result<Root> {
        let tree = snapshot.tree();
        let mut pages = HashMap::new();
        for (id, node) in tree.changed() {
            if let Some(Node::Array(array)) = node
                && (!array.recent.is_empty() || !array.gone.is_empty())
            {
                pages.insert(id, self.pages(array)?);
                self.made.arrays.push(id);
            }
        }
        let (changes, cut) = delta(snapshot, &pages)?;
        let rows = tree.rows().update(&changes, cut.as_ref(), self.storage, self.press)?;
        Ok(Root {
            format: FORMAT,
            version: snapshot.version(),
            time_us: snapshot.time_us(),
            record,
            store: snapshot.store(),
            node: tree.root().ok_or_else(|| Error::corruption("there is no root of nothing"))?,
            floor: snapshot.retained().floor(),
            features: snapshot.features().clone(),
            ext: snapshot.ext().clone(),
            rows,
        })
    }

    fn pages(&mut self, array: &ArrayState) -> Result<Vec<PageInfo>> {
        let added: Vec<Arc<Description>> = array.recent().map(|d| self.settled(d)).collect::<Result<_>>()?;
        let (mut pages, mut fragments) = (Vec::new(), Vec::new());
        for shelf in &array.shelves {
            let losing = loses(array, shelf)?;
            if !losing && (shelf.info().full || added.is_empty()) {
                pages.push(shelf.info().clone());
            } else {
                fragments.extend(shelf.load()?.iter().filter(|d| array.has(d.id)).cloned());
            }
        }
        fragments.extend(added);
        if fragments.is_empty() {
            return Ok(pages);
        }
        let parts = cut(fragments, limits::PAGE_FRAGMENTS_MAX);
        let full = parts.len() > 1;
        for part in parts {
            pages.push(self.page(part, full)?);
        }
        Ok(pages)
    }

    /// The description of a fragment with its final location.
    fn settled(&self, d: &Arc<Description>) -> Result<Arc<Description>> {
        match (d.location.file, self.moved.get(&d.id)) {
            (FileRef::Data(_) | FileRef::OnBase(..) | FileRef::Nowhere, _) => Ok(Arc::clone(d)),
            (FileRef::Log(_), Some(location)) => {
                Ok(Arc::new(Description { location: *location, ..Description::clone(d) }))
            }
            (FileRef::Log(version), None) => Err(Error::corruption(format!(
                "the log record of version {version} does not hold fragment {} any more",
                d.id
            ))),
        }
    }

    fn page(&mut self, fragments: Vec<Arc<Description>>, full: bool) -> Result<PageInfo> {
        let (bytes, xxh3) = page::encode(&fragments, self.page_version)?;
        let full = full || fragments.len() == limits::PAGE_FRAGMENTS_MAX;
        let info = PageInfo::of(self.press.object(Role::Fragments, &bytes, xxh3)?, xxh3, &fragments, full)?;
        let shelf = Shelf::filled(info.clone(), Arc::clone(self.storage), fragments.into());
        self.made.shelves.insert(info.id, Arc::new(shelf));
        Ok(info)
    }
}
