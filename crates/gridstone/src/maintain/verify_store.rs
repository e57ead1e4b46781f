//! Verifies a whole store: the log, the floor, the hint, all roots and pages, all data files, the leases.
//!
//! The floor `store` inspects the records, roots and pages. This module reads every byte of every fragment that a kept
//! version names, and counts unnamed files. Damage goes into the report, and the verification continues.

use super::vacuum::Tally;
use super::verify::{Damage, Meter, damage_or, verify_among};
use crate::base::{Error, ErrorKind, FileRef, Id, Result};
use crate::fragment::Description;
use crate::query::ReadContext;
use crate::storage::{DATA, MANIFEST, data_name, log_name};
use crate::store::{Affected, Flaw, Inspection, KnownFile, Store};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Cells of an array that a damaged object affects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AffectedCells {
    /// The array's path.
    pub array: String,
    /// The fragment; `None`: all fragments of a manifest page.
    pub fragment: Option<Id>,
    /// The data tile, where known.
    pub tile: Option<u64>,
    /// The dimension or attribute, where known.
    pub column: Option<String>,
    /// The box of the cells, in texts: low and high per dimension, inclusive.
    pub domain: Vec<(String, String)>,
    /// The largest number of cells affected.
    pub cells: u64,
}

/// A damaged or missing object of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreDamage {
    /// Its name in the store.
    pub object: String,
    /// The versions that cannot be opened, or not read completely, as inclusive ranges. None: nothing is lost by it.
    pub versions: Vec<(u64, u64)>,
    /// The cells of these versions that cannot be read; none: all of them, or none.
    pub cells: Vec<AffectedCells>,
    /// What is wrong.
    pub message: String,
}

/// The scope and the result of a store's verification.
#[derive(Debug, Clone, Default)]
pub struct StoreReport {
    /// The oldest kept version.
    pub oldest: u64,
    /// The newest version.
    pub newest: u64,
    /// Log records read.
    pub records: u64,
    /// Manifest roots and pages read.
    pub manifest: u64,
    /// Data files named by kept versions.
    pub files: u64,
    /// Blocks decoded.
    pub blocks: u64,
    /// Stored bytes of blocks read.
    pub bytes: u64,
    /// Leases checked.
    pub leases: u64,
    /// Data files and manifest objects that no kept version names. They belong to writes in progress or given up; a
    /// vacuum deletes them, and they are no damage.
    pub orphans: Tally,
    /// The damage found; empty if there is none.
    pub damage: Vec<StoreDamage>,
    /// What this release cannot read, and so has not checked: sentences.
    pub unchecked: Vec<String>,
}

/// Verifies everything that a kept version of the store needs.
///
/// # Errors
/// NotFound if there is no store; Unsupported, with the object's name, if a newer release wrote unknown data; Storage,
/// Access, Cancelled. Damage is reported in the result.
pub fn verify_store(store: &Store, context: &ReadContext) -> Result<StoreReport> {
    loop {
        let floor = store.floor().ok();
        let found = store.inspect(context.cancel.as_ref())?;
        let report = check(store, context, &found)?;
        // A concurrent vacuum deleted the objects that were looked for.
        if report.damage.is_empty() || store.floor().ok() == floor {
            return Ok(report);
        }
    }
}

/// Like [`verify_store`], for a store that was inspected already.
pub(super) fn check(store: &Store, context: &ReadContext, found: &Inspection) -> Result<StoreReport> {
    let mut report = StoreReport {
        oldest: found.oldest(),
        newest: found.newest,
        records: found.records,
        manifest: (found.roots.len() + found.pages.len()) as u64,
        files: found.data.len() as u64,
        damage: found.flaws.iter().map(|flaw| told(found, flaw)).collect(),
        ..StoreReport::default()
    };
    let mut unsound = HashSet::new();
    for (id, file) in &found.data {
        context.cancel.check()?;
        if let Err(error) = length(store, *id, file) {
            let affected = file.fragments.iter().map(|(array, d)| affected(*array, d)).collect();
            let flaw = Flaw {
                object: data_name(*id),
                message: damage_or(error)?.to_string(),
                // Nothing that is read needs a file that is kept beside fragments.
                versions: if file.fragments.is_empty() { Vec::new() } else { file.versions.clone() },
                affected,
            };
            report.damage.push(told(found, &flaw));
            unsound.insert(*id);
        }
    }
    bytes(context, found, &unsound, &mut report)?;
    report.unchecked = unchecked(found);
    for (object, lease) in store.leases()? {
        report.leases += 1;
        if lease.is_none() {
            let message = "it is no lease; it keeps no version, and a vacuum deletes it".to_owned();
            report.damage.push(StoreDamage { object, versions: Vec::new(), cells: Vec::new(), message });
        }
    }
    orphans(store, found, &mut report)?;
    report.damage.sort_by(|a, b| a.object.cmp(&b.object));
    Ok(report)
}

fn affected(array: Id, d: &Description) -> Affected {
    Affected { array, fragment: Some(d.id), bounds: d.bounds.clone(), cells: d.cells }
}

fn told(found: &Inspection, flaw: &Flaw) -> StoreDamage {
    let cells = flaw.affected.iter().filter_map(|a| {
        let array = found.arrays.get(&a.array)?;
        Some(AffectedCells {
            array: array.path.clone(),
            fragment: a.fragment,
            tile: None,
            column: None,
            domain: array.schema.ends(&a.bounds),
            cells: a.cells,
        })
    });
    let cells = cells.collect();
    StoreDamage { object: flaw.object.clone(), versions: flaw.versions.clone(), cells, message: flaw.message.clone() }
}

/// Corruption unless the file exists and is as long as its fragments need; a file with a single fragment must have
/// exactly that length, and so must a kept one.
fn length(store: &Store, id: Id, file: &KnownFile) -> Result<()> {
    let (there, fragments) = (store.files().open(FileRef::Data(id))?.len(), &file.fragments);
    if let Some(len) = file.kept.iter().find(|len| **len != there) {
        return Err(Error::corruption(format!("the file has {there} bytes, and is kept as one of {len}")));
    }
    let end = fragments.iter().map(|(_, d)| d.location.offset.saturating_add(d.location.len)).max().unwrap_or(0);
    let alone = fragments.iter().any(|(_, d)| d.id == id);
    if there < end || (alone && there > end) {
        return Err(Error::corruption(format!("the file has {there} bytes, its fragments take {end}")));
    }
    Ok(())
}

/// What this release cannot read of the arrays: those with unknown features, and fragments on other bases.
fn unchecked(found: &Inspection) -> Vec<String> {
    let mut told = Vec::new();
    for array in found.arrays.values() {
        if let Err(e) = array.schema.check_readable(format_args!("array {}", array.path)) {
            told.push(format!("the fragments of array {} were not checked: {}", array.path, e.message()));
        }
        let mut bases: BTreeMap<u32, u64> = BTreeMap::new();
        for d in &array.fragments {
            if let FileRef::OnBase(base, _) = d.location.file {
                *bases.entry(base).or_default() += 1;
            }
        }
        for (base, count) in bases {
            let what = if count == 1 { "a fragment".to_owned() } else { format!("{count} fragments") };
            told.push(format!("{what} of array {} on base {base} was not checked", array.path));
        }
    }
    told.sort();
    told
}

/// Reads every byte of the fragments in data files, except in files already known to be damaged, and of the files of other formats that fragments name.
fn bytes(context: &ReadContext, found: &Inspection, unsound: &HashSet<Id>, report: &mut StoreReport) -> Result<()> {
    let mut damaged: BTreeMap<String, StoreDamage> = BTreeMap::new();
    let mut meter = Meter::of(found.arrays.values().flat_map(|array| &array.fragments));
    for array in found.arrays.values() {
        let cells: HashMap<Id, u64> = array.fragments.iter().map(|d| (d.id, d.cells)).collect();
        for description in &array.fragments {
            let (object, versions) = match description.location.file {
                FileRef::Data(id) if !unsound.contains(&id) && array.schema.is_readable() => {
                    (data_name(id), found.data.get(&id).map(|f| f.versions.clone()).unwrap_or_default())
                }
                // The bytes of a record were verified with it; those of files of other formats were not.
                FileRef::Log(version) if description.is_external() && array.schema.is_readable() => {
                    (log_name(version), vec![(version, version)])
                }
                _ => {
                    meter.pass(context, description);
                    continue;
                }
            };
            let one = std::slice::from_ref(description);
            let checked = verify_among(context, &array.schema, one, &cells, &mut meter);
            let checked =
                checked.map_err(|e| if e.kind() == ErrorKind::Unsupported { e.context(object.clone()) } else { e })?;
            report.blocks += checked.blocks;
            report.bytes += checked.bytes;
            for damage in checked.damage {
                let entry = damaged.entry(object.clone()).or_insert_with(|| StoreDamage {
                    object: object.clone(),
                    versions: versions.clone(),
                    cells: Vec::new(),
                    message: damage.message.clone(),
                });
                entry.cells.push(cells_of(&array.path, damage));
            }
        }
    }
    report.damage.extend(damaged.into_values());
    Ok(())
}

fn cells_of(array: &str, damage: Damage) -> AffectedCells {
    let Damage { fragment, tile, column, domain, cells, message: _ } = damage;
    AffectedCells { array: array.to_owned(), fragment: Some(fragment), tile, column, domain, cells }
}

/// Counts the objects that no kept version names.
fn orphans(store: &Store, found: &Inspection, report: &mut StoreReport) -> Result<()> {
    // A sorted copy belongs to its pack, which is named.
    let packs = found.data.iter().flat_map(|(pack, file)| file.fragments.iter().map(|(array, _)| pack.beside(*array)));
    let copies: HashSet<Id> = packs.collect();
    for (folder, ending) in [(DATA, ".frag"), (MANIFEST, "")] {
        store.storage().survey(folder, &mut |listed| {
            let file = listed.name.rsplit('/').next().and_then(|file| file.strip_suffix(ending));
            let Some(Ok(id)) = file.map(Id::parse) else { return };
            let named = match folder {
                DATA => found.data.contains_key(&id) || copies.contains(&id),
                _ => found.names_manifest(id),
            };
            if !named {
                report.orphans.objects += 1;
                report.orphans.bytes += listed.bytes;
            }
        })?;
    }
    Ok(())
}
