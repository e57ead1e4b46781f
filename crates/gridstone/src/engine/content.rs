//! The hash of what a caller gave for a commit with a key: whether a repeated call is the same one.
//!
//! ```text
//! write        array's id · box, or columns of coordinates · columns of values by name
//! delete       array's id · boxes · condition; or columns of coordinates
//! load         array's path · what a stream of cells has, however it is cut into pieces
//! receipts     their ids
//! transaction  what was created, removed and moved · per array its writes, deletes and metadata
//! column       type · cells · values without those of nulls · lengths · places of nulls
//! ```
//! It is taken before filters, of values in row order. Statements of a transaction count in their order within an array,
//! and not across arrays. Arrays that a transaction creates are named by their paths, hidden ones by their owner and name,
//! since their ids are random.

use crate::base::{Digest, Id};
use crate::condition::Condition;
use crate::query::Dedup;
use crate::schema::{Datatype, Order, Region, Schema, Subarray};
use crate::store::{CommitKey, Keyed, Operation};
use crate::tile::{ColumnView, Strided};
use std::collections::{BTreeMap, HashMap};

/// How the content of a commit names an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// By its id.
    Id,
    /// By its path: of a load, which may create the array and, repeated, find it there.
    Path,
}

/// What was given for fragments, if that matters.
#[derive(Debug, Clone)]
pub(super) struct Given {
    /// The key of the commit; `None` within a transaction.
    pub(super) key: Option<CommitKey>,
    pub(super) naming: Naming,
    /// The hash without the array.
    pub(super) body: u128,
}

/// The hash of what was given for an array.
pub(super) fn of_array(naming: Naming, id: Id, path: &str, body: u128) -> u128 {
    let (kind, name) = match naming {
        Naming::Id => ("write", &id.0[..]),
        Naming::Path => ("load", path.as_bytes()),
    };
    let mut digest = Digest::new(kind);
    digest.bytes(name);
    digest.hash(body);
    digest.finish()
}

/// The hash of receipts.
pub(super) fn of_receipts(ids: impl Iterator<Item = Id>) -> u128 {
    let mut digest = Digest::new("receipts");
    ids.for_each(|id| digest.bytes(&id.0));
    digest.finish()
}

fn add_box(digest: &mut Digest, sub: &Subarray) {
    digest.number(sub.ndim() as u64);
    for range in sub.ranges() {
        digest.number(range.lo);
        digest.number(range.hi);
    }
}

/// Values of a dense box, laid out in `layout`.
pub(super) fn of_box(schema: &Schema, sub: &Subarray, columns: &[(usize, ColumnView<'_>)], layout: Order) -> u128 {
    let mut digest = Digest::new("box");
    add_box(&mut digest, sub);
    add_named(&mut digest, schema, columns, |view| {
        let mut column = ColumnDigest::default();
        if layout == Order::Col && sub.cells() == view.len() as u128 {
            column.add_cells(view, RowOrder::new(sub, layout));
        } else {
            column.add(view);
        }
        column.finish()
    });
    digest.finish()
}

/// A block that is appended along an axis; `packed` is a box of its shape.
pub(super) fn of_appended(
    schema: &Schema,
    axis: usize,
    packed: &Subarray,
    columns: &[(usize, ColumnView<'_>)],
    layout: Order,
) -> u128 {
    let mut digest = Digest::new("append");
    digest.number(axis as u64);
    digest.hash(of_box(schema, packed, columns, layout));
    digest.finish()
}

/// A block that is appended with labels.
pub(super) fn of_labelled(block: u128, labels: &ColumnView<'_>) -> u128 {
    let mut digest = Digest::new("labels");
    digest.hash(block);
    digest.hash(ColumnDigest::of(labels));
    digest.finish()
}

/// Values of cells by their coordinates.
pub(super) fn of_cells(
    schema: &Schema,
    dims: &[ColumnView<'_>],
    columns: &[(usize, ColumnView<'_>)],
    dedup: Dedup,
) -> u128 {
    let mut digest = Digest::new("cells");
    digest.bytes(dedup_name(dedup).as_bytes());
    dims.iter().for_each(|view| digest.hash(ColumnDigest::of(view)));
    add_named(&mut digest, schema, columns, ColumnDigest::of);
    digest.finish()
}

/// A delete of cells by their coordinates.
pub(super) fn of_deleted_cells(dims: &[ColumnView<'_>]) -> u128 {
    let mut digest = Digest::new("delete cells");
    dims.iter().for_each(|view| digest.hash(ColumnDigest::of(view)));
    digest.finish()
}

/// A delete of a region (`None`: the whole domain), of the cells that a condition selects if there is one. An end that was left open
/// counts as open, since others may make the domain grow before the call is repeated.
pub(super) fn of_deletion(region: Option<&Region>, condition: Option<&Condition>) -> u128 {
    let mut digest = Digest::new("delete");
    digest.number(region.map_or(u64::MAX, |region| region.given().len() as u64));
    region.into_iter().flat_map(Region::given).for_each(|sub| add_box(&mut digest, sub));
    digest.bytes(condition.map(ToString::to_string).unwrap_or_default().as_bytes());
    digest.finish()
}

fn add_named<'a>(
    digest: &mut Digest,
    schema: &Schema,
    columns: &[(usize, ColumnView<'a>)],
    of: impl Fn(&ColumnView<'a>) -> u128,
) {
    let name = |place: usize| schema.attrs().get(place).map_or("", |attr| attr.name());
    let mut named: Vec<_> = columns.iter().map(|(place, view)| (name(*place), view)).collect();
    named.sort_by_key(|(name, _)| *name);
    digest.number(named.len() as u64);
    for (name, view) in named {
        digest.bytes(name.as_bytes());
        digest.hash(of(view));
    }
}

fn dedup_name(dedup: Dedup) -> &'static str {
    match dedup {
        Dedup::Error => "error",
        Dedup::First => "first",
        Dedup::Last => "last",
    }
}

/// The hash of a column that comes in pieces.
#[derive(Debug, Clone)]
struct ColumnDigest {
    datatype: Option<Datatype>,
    cells: u64,
    values: Digest,
    lengths: Digest,
    nulls: Digest,
}

impl Default for ColumnDigest {
    fn default() -> Self {
        let [values, lengths, nulls] = ["values", "lengths", "nulls"].map(Digest::new);
        Self { datatype: None, cells: 0, values, lengths, nulls }
    }
}

impl ColumnDigest {
    fn of(view: &ColumnView<'_>) -> u128 {
        let mut digest = Self::default();
        digest.add(view);
        digest.finish()
    }

    /// Adds the cells of `view`, in their order.
    fn add(&mut self, view: &ColumnView<'_>) {
        self.datatype = Some(view.datatype());
        let Some(validity) = view.validity() else {
            self.add_valid(view, 0, view.len());
            self.cells += view.len() as u64;
            return;
        };
        let mut from = 0;
        for row in validity.iter().enumerate().filter(|(_, valid)| **valid == 0).map(|(row, _)| row) {
            self.add_valid(view, from, row);
            self.nulls.number(self.cells + row as u64);
            from = row + 1;
        }
        self.add_valid(view, from, view.len());
        self.cells += view.len() as u64;
    }

    /// Adds the cells `rows` of `view`, in that order.
    fn add_cells(&mut self, view: &ColumnView<'_>, rows: impl Iterator<Item = usize>) {
        self.datatype = Some(view.datatype());
        for row in rows {
            if view.is_valid(row) {
                self.add_valid(view, row, row + 1);
            } else {
                self.nulls.number(self.cells);
            }
            self.cells += 1;
        }
    }

    /// Adds the values of the cells `from .. to`, which are not null.
    fn add_valid(&mut self, view: &ColumnView<'_>, from: usize, to: usize) {
        let ends = match (view.offsets(), view.datatype().width()) {
            (Some(offsets), _) => {
                let within = offsets.get(from..=to).unwrap_or_default();
                within.windows(2).for_each(|pair| {
                    if let [start, end] = pair {
                        self.lengths.number(end - start);
                    }
                });
                within.first().zip(within.last()).map_or(0..0, |(start, end)| *start as usize..*end as usize)
            }
            (None, width) => from * width.unwrap_or(1)..to * width.unwrap_or(1),
        };
        self.values.part(view.values().get(ends).unwrap_or_default());
    }

    fn finish(&self) -> u128 {
        let mut digest = Digest::new("column");
        digest.bytes(self.datatype.map(|datatype| datatype.to_string()).unwrap_or_default().as_bytes());
        digest.number(self.cells);
        [&self.values, &self.lengths, &self.nulls].into_iter().for_each(|part| digest.hash(part.finish()));
        digest.finish()
    }
}

/// The places of the cells of a box, laid out in some order, in row order.
struct RowOrder {
    placed: Strided,
    shape: Vec<u64>,
    next: Option<Vec<u64>>,
}

impl RowOrder {
    fn new(sub: &Subarray, layout: Order) -> Self {
        let shape = sub.shape();
        Self { placed: Strided::packed(&shape, layout), next: Some(vec![0; shape.len()]), shape }
    }
}

impl Iterator for RowOrder {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let mut at = self.next.take()?;
        let place = self.placed.place(at.iter().copied());
        for (position, count) in at.iter_mut().zip(&self.shape).rev() {
            *position += 1;
            if *position < *count {
                self.next = Some(at);
                break;
            }
            *position = 0;
        }
        usize::try_from(place).ok()
    }
}

/// What was streamed so far, however it was cut into pieces.
#[derive(Debug, Clone)]
pub(super) struct StreamContent {
    head: Digest,
    columns: Vec<ColumnDigest>,
}

impl StreamContent {
    /// A stream of these attributes: in global order into a box, or in any order with a rule for cells at one place.
    pub(super) fn new<'a>(attrs: impl Iterator<Item = &'a str>, sub: Option<&Subarray>, dedup: Option<Dedup>) -> Self {
        let mut head = Digest::new("stream");
        attrs.for_each(|name| head.bytes(name.as_bytes()));
        head.bytes(dedup.map_or("ordered", dedup_name).as_bytes());
        sub.into_iter().for_each(|sub| add_box(&mut head, sub));
        Self { head, columns: Vec::new() }
    }

    /// Adds a piece.
    pub(super) fn add(&mut self, dims: &[ColumnView<'_>], columns: &[ColumnView<'_>]) {
        let count = (dims.len() + columns.len()).max(self.columns.len());
        self.columns.resize_with(count, ColumnDigest::default);
        self.columns.iter_mut().zip(dims.iter().chain(columns)).for_each(|(digest, view)| digest.add(view));
    }

    pub(super) fn finish(&self) -> u128 {
        let mut digest = self.head.clone();
        self.columns.iter().for_each(|column| digest.hash(column.finish()));
        digest.finish()
    }
}

/// What was staged in a transaction.
#[derive(Debug, Clone)]
pub(super) struct TransactionContent {
    structure: Digest,
    /// The statements about each array, in their order.
    nodes: BTreeMap<u128, Digest>,
    /// How arrays created in it are named, and their paths; a hidden array has none.
    created: HashMap<Id, (u128, Option<String>)>,
    /// The only statement as a load.
    load: Option<u128>,
    statements: u64,
}

impl Default for TransactionContent {
    fn default() -> Self {
        let structure = Digest::new("structure");
        Self { structure, nodes: BTreeMap::new(), created: HashMap::new(), load: None, statements: 0 }
    }
}

impl TransactionContent {
    /// Something was created, removed or moved, at these paths.
    pub(super) fn change(&mut self, what: &str, paths: &[&str]) {
        self.structure.bytes(what.as_bytes());
        paths.iter().for_each(|path| self.structure.bytes(path.as_bytes()));
    }

    /// An array was created.
    pub(super) fn create(&mut self, id: Id, path: &str, schema: &Schema, overwrite: bool) {
        self.change(if overwrite { "replace" } else { "create" }, &[path, &self.text_of(schema)]);
        let mut label = Digest::new("created");
        label.number(self.created.values().filter(|(_, path)| path.is_some()).count() as u64);
        label.bytes(path.as_bytes());
        self.created.insert(id, (label.finish(), Some(path.to_owned())));
    }

    /// A hidden array was created: a statement about its owner.
    pub(super) fn hide(&mut self, id: Id, owner: Id, name: &str, schema: &Schema) {
        let mut digest = Digest::new("hide");
        digest.bytes(name.as_bytes());
        digest.bytes(self.text_of(schema).as_bytes());
        self.statement(owner, digest.finish());
        let mut label = Digest::new("hidden");
        label.hash(self.label(owner));
        label.bytes(name.as_bytes());
        self.created.insert(id, (label.finish(), None));
    }

    /// How an array is named.
    fn label(&self, id: Id) -> u128 {
        self.created.get(&id).map_or_else(|| of_array(Naming::Id, id, "", 0), |(label, _)| *label)
    }

    /// The text of a schema, in which labels name arrays created in it by what they are called here.
    fn text_of(&self, schema: &Schema) -> String {
        let named = |id: Id| self.created.get(&id).map_or(id, |(label, _)| Id(label.to_le_bytes()));
        schema.relabelled(|labels| labels.renamed(|id| Some(named(id)))).to_stored_json()
    }

    /// A statement about an array with this content.
    pub(super) fn statement(&mut self, id: Id, body: u128) {
        let label = self.label(id);
        let path = self.created.get(&id).and_then(|(_, path)| path.as_deref());
        self.load = path.map(|path| of_array(Naming::Path, id, path, body));
        self.nodes.entry(label).or_insert_with(|| Digest::new("statements")).hash(body);
        self.statements += 1;
    }

    /// The same of an operation that has no fragments.
    pub(super) fn operation(&mut self, id: Id, operation: &Operation) {
        let mut digest = Digest::new("operation");
        match operation {
            Operation::SetMetadata { changes, .. } => {
                for (key, text) in changes {
                    digest.bytes(key.as_bytes());
                    digest.number(u64::from(text.is_some()));
                    digest.bytes(text.as_deref().unwrap_or_default().as_bytes());
                }
            }
            Operation::SetFieldMetadata { field, changes, .. } => {
                digest.bytes(field.to_string().as_bytes());
                for (key, text) in changes {
                    digest.bytes(key.as_bytes());
                    digest.number(u64::from(text.is_some()));
                    digest.bytes(text.as_deref().unwrap_or_default().as_bytes());
                }
            }
            Operation::AlterArray { schema, .. } => digest.bytes(self.text_of(schema).as_bytes()),
            Operation::Grow { dimension, range, .. } => {
                digest = Digest::new("growth");
                [u64::from(*dimension), range.lo, range.hi].into_iter().for_each(|number| digest.number(number));
            }
            _ => return,
        }
        self.statement(id, digest.finish());
    }

    /// The hash of all of it.
    pub(super) fn finish(&self, naming: Naming) -> u128 {
        if let (Naming::Path, Some(load), 1) = (naming, self.load, self.statements) {
            return load;
        }
        let mut digest = Digest::new("transaction");
        digest.hash(self.structure.finish());
        for (label, statements) in &self.nodes {
            digest.hash(*label);
            digest.hash(statements.finish());
        }
        digest.finish()
    }
}

/// The key of a transaction's commit, and what was staged for it.
#[derive(Debug)]
pub(super) struct KeyedContent {
    key: CommitKey,
    naming: Naming,
    pub(super) content: TransactionContent,
}

impl KeyedContent {
    /// The key of a transaction in which nothing is staged.
    pub(super) fn new(key: CommitKey, naming: Naming) -> Self {
        Self { key, naming, content: TransactionContent::default() }
    }

    /// The key with the hash of what was staged.
    pub(super) fn finish(self) -> Keyed {
        Keyed { content: self.content.finish(self.naming), key: self.key }
    }
}
