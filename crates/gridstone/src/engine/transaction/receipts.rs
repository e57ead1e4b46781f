//! What a transaction staged, as receipts: cells with the growth of the domain that they need. And receipts of arrays that a
//! transaction creates.

use super::{Open, Transaction};
use crate::base::{Error, Id, Result};
use crate::engine::content;
use crate::engine::receipts::{check_files, receipt_of};
use crate::engine::session::settled;
use crate::engine::staged::Staged;
use crate::engine::{Array, Receipt};
use crate::schema::Schema;
use crate::store::{Growth, Operation, ReceiptRules, Snapshot};
use std::collections::{BTreeMap, HashSet};

impl Transaction {
    /// Creates an array with this id, which has to be random. Other processes can write its cells before it is there: each in a transaction
    /// of its own, which creates it with the same id and schema and is never committed ([`Array::receipt`]).
    /// [`Transaction::add_receipts`] takes what they have written.
    ///
    /// # Errors
    /// Exists (also the id), Input (the path).
    pub fn create_array_as(&self, id: Id, path: &str, schema: Schema, overwrite: bool) -> Result<Array> {
        let schema = schema.of_new_array();
        let create = Operation::CreateArray { id, path: path.to_owned(), schema: schema.clone(), ext: None };
        self.create(path, &create, overwrite, |content| content.create(id, path, &schema, overwrite))?;
        self.array(path)
    }

    /// Adds the cells of receipts to arrays that the transaction has created. Where cells of several lie at one place the one later in the
    /// list wins, and all of them over what was staged before.
    ///
    /// # Errors
    /// Input (a receipt of another store, given twice, or of an array that the transaction has not created), NotFound (a file is gone; names
    /// it), Corruption (it was changed), Storage; nothing is added then.
    pub fn add_receipts(&self, receipts: &[Receipt]) -> Result<()> {
        ReceiptRules::new(receipts)?;
        let base = self.with(|open| Ok(open.provisional.base().clone()))?;
        for receipt in receipts {
            if receipt.store != base.store() {
                return Err(Error::input(format!(
                    "the receipt {} is of the store with the id {}, {} has the id {}; nothing was added",
                    receipt.id,
                    receipt.store,
                    self.uri(),
                    base.store()
                )));
            }
            let is_new = settled(self, &base, |base| Ok(base.find_array(receipt.array)?.is_none()))?.1;
            if !is_new || self.looked(|view| view.find_array(receipt.array))?.1.is_none() {
                return Err(Error::input(format!(
                    "the receipt {} is for the array {} (id {}), which this transaction has not created; commit it by itself, or create \
                     the array with this id. Nothing was added",
                    receipt.id, receipt.path, receipt.array
                )));
            }
        }
        self.looked(|view| check_files(&self.shared.context, &self.shared.store, view, receipts))?;
        let operations = ReceiptRules::operations(receipts);
        for operation in &operations {
            if let Operation::AddFragments { array, fragments } = operation {
                self.shared.cache.keep(*array, fragments.iter().map(|f| f.description.id));
            }
        }
        let plan = |_: &Snapshot| Ok(operations.clone());
        self.stage(&mut Vec::new(), plan, |content| {
            for receipt in receipts {
                content.statement(receipt.array, content::of_receipts(std::iter::once(receipt.id)));
            }
        })
    }

    /// Ends the transaction without a commit, and gives what it staged as receipts, one per array. The files are left to
    /// whoever commits these. A receipt has the growth of the domain that was staged, and commits it with the cells.
    ///
    /// # Errors
    /// Input, and the transaction goes on: something else was staged than cells, deletes and growth of domains; it has a key; a
    /// condition deletes cells that it wrote itself. Storage; the transaction has ended then, and nothing is left behind.
    pub fn receipts(&self) -> Result<Vec<Receipt>> {
        self.with(|open| check(open))?;
        let Open { provisional, staged, claim, .. } = self.end("gave its changes away as receipts")?;
        claim.touch();
        let mut growth: BTreeMap<Id, Vec<Growth>> = BTreeMap::new();
        for operation in provisional.operations() {
            if let Operation::Grow { array, dimension, range } = operation {
                growth.entry(*array).or_default().push(Growth { dimension: *dimension, range: *range });
            }
        }
        let mut files: BTreeMap<Id, Vec<Staged>> = BTreeMap::new();
        for part in staged {
            files.entry(part.array).or_default().push(part);
        }
        growth.keys().for_each(|array| {
            files.entry(*array).or_default();
        });
        let mut made = Vec::new();
        for (array, parts) in &mut files {
            let (snapshot, state) = settled(self, provisional.base(), |base| base.array_by_id(*array))?;
            let growth = growth.remove(array).unwrap_or_default();
            made.push(receipt_of(&self.shared.store, &snapshot, &state, parts, growth)?);
        }
        files.values_mut().flatten().for_each(Staged::keep_files);
        Ok(made)
    }
}

/// An Input error unless receipts can say all that was staged.
fn check(open: &Open) -> Result<()> {
    if open.keyed.is_some() {
        return Err(Error::input("a commit key is given with the commit of receipts, not when they are written"));
    }
    let mut own: HashSet<Id> = HashSet::new();
    for operation in open.provisional.operations() {
        match operation {
            Operation::Grow { .. } => {}
            Operation::AddFragments { fragments, .. } => own.extend(fragments.iter().map(|f| f.description.id)),
            _ => {
                return Err(Error::input(
                    "receipts have cells, deletes and growth of domains; this transaction has staged other changes: commit it",
                ));
            }
        }
    }
    let mut staged = open.staged.iter().flat_map(|part| &part.fragments);
    if staged.any(|fragment| fragment.description.over.is_some_and(|over| own.contains(&over))) {
        return Err(Error::input(
            "a condition deletes cells that this transaction wrote itself, which no receipt can say; commit the transaction",
        ));
    }
    Ok(())
}
