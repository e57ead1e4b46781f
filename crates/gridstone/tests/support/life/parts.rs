//! Work on what an array has besides its cells: hidden arrays, metadata of attributes and dimensions, files kept beside it.

use super::hand::{Hand, Sort, schema, staged_cells};
use super::model::{Beside, Cells, Model, Note, Parts, Place, Size, notes, scattered};
use super::{CELLS, GRID, Kind};
use gridstone::base::{Entropy, Id, Result};
use gridstone::engine::{Array, Call, Isolation, Strategy, Transaction};
use gridstone::runtime::SystemEntropy;
use gridstone::storage::data_name;
use gridstone::store::{Changes, Kept, KeptFile, Operation, Owner, StandardRules};
use gridstone_testkit::Dice;
use std::collections::BTreeSet;

/// The hidden arrays of the script.
const SIDE: &str = "@side";
const INDEX: &str = "@index";

/// All of it; what an even seed makes the odd one after it changes.
pub(super) fn kinds() -> Vec<Kind> {
    let mut all = hidden_arrays();
    all.extend(fields());
    all.extend(files());
    all
}

fn hidden_arrays() -> Vec<Kind> {
    vec![
        Kind {
            name: "a hidden array, and then its cells",
            act: |hand, seed| match seed % 2 {
                0 => hand.create_hidden(GRID, SIDE),
                _ => hand.write_hidden(GRID, SIDE, &scattered(80, Size::Large, seed)),
            },
            mean: |model, seed| match seed % 2 {
                0 => drop(model.parts(GRID).hidden.insert(SIDE.to_owned(), Cells::new())),
                _ => model.hidden(GRID, SIDE).extend(scattered(80, Size::Large, seed)),
            },
        },
        Kind {
            name: "a hidden array made and filled beside its owner's cells, and then merged",
            act: |hand, seed| match seed % 2 {
                0 => hand.create_hidden_with(
                    CELLS,
                    INDEX,
                    &scattered(9, Size::Small, seed),
                    &scattered(7, Size::Small, seed + 100),
                ),
                _ => {
                    let version = hand.write_hidden(CELLS, INDEX, &scattered(40, Size::Small, seed))?;
                    hand.shown = Some(version);
                    hand.consolidate_hidden(CELLS, INDEX)
                }
            },
            mean: |model, seed| match seed % 2 {
                0 => {
                    model.parts(CELLS).hidden.insert(INDEX.to_owned(), scattered(9, Size::Small, seed));
                    model.cells(CELLS).extend(scattered(7, Size::Small, seed + 100));
                }
                _ => model.hidden(CELLS, INDEX).extend(scattered(40, Size::Small, seed)),
            },
        },
    ]
}

fn fields() -> Vec<Kind> {
    vec![
        Kind {
            name: "metadata of an attribute, and of a dimension",
            act: |hand, seed| hand.note_field(GRID, ["n", "y"][seed as usize % 2], notes(seed)),
            mean: |model, seed| note_field(model, GRID, ["n", "y"][seed as usize % 2], seed),
        },
        Kind {
            name: "metadata of an attribute, twice",
            act: |hand, seed| hand.note_field(CELLS, "v", notes(seed)),
            mean: |model, seed| note_field(model, CELLS, "v", seed),
        },
    ]
}

fn note_field(model: &mut Model, path: &str, name: &str, seed: u64) {
    let fields = &mut model.parts(path).fields;
    for (key, value) in notes(seed) {
        let at = (name.to_owned(), key);
        match value {
            Some(value) => drop(fields.insert(at, value)),
            None => drop(fields.remove(&at)),
        }
    }
}

fn files() -> Vec<Kind> {
    vec![
        Kind {
            name: "a file beside an array, and another in its place",
            act: |hand, seed| hand.keep_beside(CELLS, &content(seed)),
            mean: |model, seed| model.parts(CELLS).kept = BTreeSet::from([(Beside::Array, content(seed))]),
        },
        Kind {
            name: "a file beside a fragment, which a merge replaces",
            act: |hand, seed| match seed % 2 {
                0 => hand.keep_beside_fragment(GRID, &content(seed)),
                _ => {
                    let before = hand.array(GRID)?.refresh()?;
                    let version = hand.consolidate(GRID, &Strategy::All, 1 << 30)?;
                    let kept = |at: &u64| hand.kept_at(GRID, *at).is_ok_and(|kept| kept.is_empty());
                    let shown = (before + 1..=version).find(kept);
                    hand.shown = shown;
                    Ok(version)
                }
            },
            mean: |model, seed| match seed % 2 {
                0 => drop(model.parts(GRID).kept.insert((Beside::Fragment, content(seed)))),
                _ => model.parts(GRID).kept.clear(),
            },
        },
        Kind {
            name: "a file beside an array, released",
            act: |hand, seed| match seed % 2 {
                0 => hand.keep_beside(GRID, &content(seed)),
                _ => hand.release(GRID),
            },
            mean: |model, seed| match seed % 2 {
                0 => drop(model.parts(GRID).kept.insert((Beside::Array, content(seed)))),
                _ => model.parts(GRID).kept.clear(),
            },
        },
    ]
}

/// The bytes of a kept file, small or large.
fn content(seed: u64) -> Vec<u8> {
    let mut dice = Dice::new(seed);
    let words = if dice.chance(50) { 3 } else { 2_000 };
    (0..words).flat_map(|_| dice.word().to_le_bytes()).collect()
}

impl Hand {
    fn create_hidden(&mut self, path: &str, name: &str) -> Result<u64> {
        let array = self.array(path)?;
        array.create_hidden(SystemEntropy.id(), name, schema(Sort::Sparse))?;
        array.refresh()
    }

    fn write_hidden(&mut self, path: &str, name: &str, cells: &Cells) -> Result<u64> {
        let hidden = self.array(path)?.hidden(name)?;
        hidden.commit(vec![staged_cells(&hidden, cells)?], None)
    }

    /// A hidden array with cells, and cells of its owner, in one transaction.
    fn create_hidden_with(&mut self, path: &str, name: &str, cells: &Cells, owner: &Cells) -> Result<u64> {
        let transaction = Transaction::begin_on(&self.context, self.storage.clone(), Isolation::Snapshot)?;
        let array = transaction.array(path)?;
        let hidden = array.create_hidden(SystemEntropy.id(), name, schema(Sort::Sparse))?;
        hidden.commit(vec![staged_cells(&hidden, cells)?], None)?;
        array.commit(vec![staged_cells(&array, owner)?], None)?;
        transaction.commit(None)
    }

    fn consolidate_hidden(&mut self, path: &str, name: &str) -> Result<u64> {
        let hidden = self.array(path)?.hidden(name)?;
        hidden.consolidate(&Strategy::All, 1 << 30, false, &Call::default())?;
        self.array(path)?.refresh()
    }

    fn note_field(&mut self, path: &str, name: &str, notes: Vec<Note>) -> Result<u64> {
        let array = self.array(path)?;
        array.set_field_metadata(array.field(name)?, notes)
    }

    /// A new file with this content. The format has no checksum of it: a power cut that tore it after a commit that did not wait for the
    /// disk would not be reported, so its bytes are made durable here.
    fn file(&self, content: &[u8]) -> Result<KeptFile> {
        let id = SystemEntropy.id();
        let mut sink = self.storage.create(&data_name(id))?;
        sink.write(content)?;
        sink.finish()?;
        self.storage.sync(&data_name(id))?;
        Ok(KeptFile { id, len: content.len() as u64 })
    }

    fn kept(&self, owner: Owner, content: &[u8]) -> Result<Kept> {
        let files = vec![self.file(content)?];
        Ok(Kept { entry: SystemEntropy.id(), owner, kind: "of the script".to_owned(), files, ext: None })
    }

    /// Keeps a file beside an array, in the place of all that is kept there.
    fn keep_beside(&mut self, path: &str, content: &[u8]) -> Result<u64> {
        let mut operations = self.releases(path)?;
        let (array, kept) = (self.array_id(path)?, self.kept(Owner::Array, content)?);
        operations.push(Operation::Keep { array, kept, near: None });
        self.commit_operations(operations)
    }

    /// Keeps a file beside the newest fragment.
    fn keep_beside_fragment(&mut self, path: &str, content: &[u8]) -> Result<u64> {
        let fragments = self.store().latest()?.array(path)?.fragments(None)?;
        let newest = fragments.iter().max_by_key(|d| (d.order.version, d.order.index)).expect("a fragment");
        let (array, kept) = (self.array_id(path)?, self.kept(Owner::Fragment(newest.id), content)?);
        self.commit_operations(vec![Operation::Keep { array, kept, near: Some(newest.bounds.clone()) }])
    }

    fn release(&mut self, path: &str) -> Result<u64> {
        let operations = self.releases(path)?;
        self.commit_operations(operations)
    }

    fn releases(&self, path: &str) -> Result<Vec<Operation>> {
        let array = self.array_id(path)?;
        let kept = self.store().latest()?.array(path)?.kept()?;
        Ok(kept.iter().map(|kept| Operation::Release { array, entry: kept.entry }).collect())
    }

    fn array_id(&self, path: &str) -> Result<Id> {
        Ok(self.store().latest()?.node(path)?.id())
    }

    fn commit_operations(&self, operations: Vec<Operation>) -> Result<u64> {
        let store = self.store();
        Ok(store.commit(&store.latest()?, Changes::new(operations), &mut StandardRules)?.version())
    }

    /// The contents of the files that are kept beside an array at a version, and beside its fragments.
    pub(super) fn kept_at(&self, path: &str, version: u64) -> Result<BTreeSet<(Beside, Vec<u8>)>> {
        let mut found = BTreeSet::new();
        for kept in self.store().at_version(version)?.array(path)?.kept()? {
            let beside = if kept.owner == Owner::Array { Beside::Array } else { Beside::Fragment };
            for file in &kept.files {
                found.insert((beside, self.storage.read_all(&data_name(file.id))?.to_vec()));
            }
        }
        Ok(found)
    }
}

/// What an array has besides its cells and its own metadata, but for kept files.
pub(super) fn read(
    array: &Array,
    cells_of: impl Fn(&Array) -> Result<Vec<(Place, super::model::Value)>>,
) -> Result<Parts> {
    let mut parts = Parts::default();
    for name in array.hidden_names()? {
        let cells = cells_of(&array.hidden(&name)?)?.into_iter().collect();
        parts.hidden.insert(name, cells);
    }
    let schema = array.schema()?;
    let names = schema.dims().iter().map(|dim| dim.name()).chain(schema.attrs().iter().map(|attr| attr.name()));
    for name in names {
        for (key, value) in array.all_field_metadata(array.field(name)?)?.iter() {
            parts.fields.insert((name.to_owned(), key.clone()), value.clone());
        }
    }
    Ok(parts)
}
