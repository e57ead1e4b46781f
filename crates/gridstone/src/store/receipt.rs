//! Receipts: fragments written by one process, to be committed by another.
//!
//! ```json
//! {"gridstone_receipt":1,"id":…,"store":…,"array":…,"path":"/temp","version":7,"writer":"gridstone 0.1.0, process 4711",
//!  "fragments":[{"id":…,"kind":"dense","schema":0,"bounds":[…],"cells":9,"attrs":[0],"at":{"data":{…}}}],"footers":["…"]}
//! ```
//! Fragments are encoded as in a record. A delete by condition has the order of the version that it was evaluated at,
//! or lies over a fragment of that version. `grow` has the growth of the domain that the fragments need. Everything is bound by id: `path` is for people. `version` is that of the
//! store when the receipt was written; it cannot have been committed before. `footers` are the checksums of the last 64
//! bytes of the files, which pin the rest.

use super::conflict::{DeleteRules, Queueing, Rebase, StandardRules};
use super::operation::{Changes, Operation, Recorded};
use super::record::Record;
use super::shape::{Hex, IdText, Whole};
use super::snapshot::Snapshot;
use super::wording::{Bodies, FragmentText, Place, earlier};
use crate::base::{Error, ErrorKind, FileRef, Id, Result, newer, unknown_name};
use crate::fragment::{Description, FragmentOrder, Staged};
use crate::schema::{KeyRange, Subarray};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The version of receipts that this engine writes and reads.
const RECEIPT: u64 = 1;

/// Written fragments of one array that no commit refers to yet; a value that may be sent anywhere.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// Its own random id.
    pub id: Id,
    /// The store.
    pub store: Id,
    /// The array.
    pub array: Id,
    /// The path of the array then, for people.
    pub path: String,
    /// The store's version when it was written.
    pub version: u64,
    /// What wrote it, for people.
    pub writer: String,
    /// The growth of the domain that it commits with the fragments.
    pub growth: Vec<Growth>,
    /// The fragments, oldest first, each in a data file of its own.
    pub fragments: Vec<Staged>,
    /// The checksum of the last 64 bytes of each fragment; 0 for a deletion, which has none.
    pub footers: Vec<u64>,
}

/// Growth of a domain along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growth {
    /// The place of the axis.
    pub dimension: u32,
    /// The keys that are inside from then on.
    pub range: KeyRange,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GrowthText {
    dimension: u32,
    low: Hex,
    high: Hex,
}

impl GrowthText {
    fn of(growth: &Growth) -> Self {
        Self { dimension: growth.dimension, low: Hex(growth.range.lo), high: Hex(growth.range.hi) }
    }

    /// `None` if the range is empty.
    fn read(&self) -> Option<Growth> {
        let range = (self.low.0 <= self.high.0).then(|| KeyRange::new(self.low.0, self.high.0))?;
        Some(Growth { dimension: self.dimension, range })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReceiptText {
    gridstone_receipt: u64,
    id: IdText,
    store: IdText,
    array: IdText,
    path: String,
    version: Whole,
    writer: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    grow: Vec<GrowthText>,
    fragments: Vec<FragmentText>,
    footers: Vec<Hex>,
}

impl Receipt {
    /// Encodes it as JSON; an Input error if a fragment does not lie in a data file.
    pub fn to_json(&self) -> Result<String> {
        let mut bodies = Bodies::default();
        let fragments =
            self.fragments.iter().map(|f| FragmentText::of(f, earlier(f), &mut bodies)).collect::<Result<_>>()?;
        if !bodies.parts.is_empty() {
            return Err(Error::input("a receipt tells of data files only, and a fragment of this one is in memory"));
        }
        let text = ReceiptText {
            gridstone_receipt: RECEIPT,
            id: IdText(self.id),
            store: IdText(self.store),
            array: IdText(self.array),
            path: self.path.clone(),
            version: Whole(self.version),
            writer: self.writer.clone(),
            grow: self.growth.iter().map(GrowthText::of).collect(),
            fragments,
            footers: self.footers.iter().copied().map(Hex).collect(),
        };
        serde_json::to_string(&text).map_err(|e| Error::input("the receipt cannot be written as JSON").with_source(e))
    }

    /// Decodes what [`Receipt::to_json`] wrote. Input if `text` is no receipt, Unsupported if it has another version.
    pub fn from_json(text: &str) -> Result<Self> {
        let bad = |why: String| {
            Error::input(format!("this is not a Gridstone receipt as write(commit=False) gives it: {why}"))
        };
        let value: serde_json::Value = serde_json::from_str(text).map_err(|e| bad(e.to_string()))?;
        match value.get("gridstone_receipt").map(serde_json::Value::as_u64) {
            Some(Some(RECEIPT)) => {}
            Some(Some(other)) => {
                return Err(Error::unsupported(format!(
                    "the receipt is of version {other}, this Gridstone knows version {RECEIPT}; write and commit with the same"
                )));
            }
            _ => return Err(bad("it does not say its version".to_owned())),
        }
        let text: ReceiptText = serde_json::from_value(value).map_err(|e| match unknown_name::<ReceiptText>(text) {
            Some(name) => newer("the receipt", name),
            None => bad(e.to_string()),
        })?;
        let growth = text.grow.iter().map(GrowthText::read).collect::<Option<_>>();
        let growth = growth.ok_or_else(|| bad("a domain should grow to an empty range".to_owned()))?;
        let looked_at = text.version.0;
        let mut place = Place::new(looked_at.saturating_add(1), 0);
        let mut read = |text: FragmentText| {
            let ordered = text.has_order();
            let mut description = text.read(false, &mut place).map_err(|e| match e.kind() {
                ErrorKind::Unsupported => e.context("the receipt"),
                _ => bad(e.to_string()),
            })?;
            if !ordered {
                description.order = FragmentOrder { version: 0, index: 0 };
            } else if description.order != FragmentOrder::after(looked_at) {
                return Err(bad("it deletes as of another version than it was written at".to_owned()));
            }
            match description.location.file {
                FileRef::Data(_) | FileRef::Nowhere => Ok(Staged { description, body: None }),
                FileRef::Log(_) => Err(bad("it speaks of a fragment in the log".to_owned())),
                FileRef::OnBase(base, _) => Err(newer("the receipt", format!("a fragment on base {base}"))),
            }
        };
        let fragments: Vec<Staged> = text.fragments.into_iter().map(&mut read).collect::<Result<_>>()?;
        if text.footers.len() != fragments.len() {
            return Err(bad(format!("{} footers for {} fragments", text.footers.len(), fragments.len())));
        }
        Ok(Self {
            id: text.id.0,
            store: text.store.0,
            array: text.array.0,
            path: text.path,
            version: text.version.0,
            writer: text.writer,
            growth,
            fragments,
            footers: text.footers.into_iter().map(|f| f.0).collect(),
        })
    }
}

impl Receipt {
    /// The domain that an array with `domain` has once the receipt is committed.
    pub fn reach(&self, domain: &Subarray) -> Subarray {
        let mut ranges = domain.ranges().to_vec();
        for growth in &self.growth {
            ranges.iter_mut().skip(growth.dimension as usize).take(1).for_each(|own| *own = own.joined(growth.range));
        }
        Subarray::new(ranges)
    }
}

/// The rules for committing receipts: those of [`StandardRules`], those of [`DeleteRules`] for their deletes by
/// condition, and that no receipt was committed before. Versions in between are checked one by one: a fragment that was
/// committed and then merged is absent from the newest.
#[derive(Debug)]
pub struct ReceiptRules {
    /// The receipt of each fragment.
    fragments: HashMap<Id, Id>,
    /// The deletes of data as of an earlier version, with their arrays.
    deletes: Vec<(Id, Description)>,
}

impl ReceiptRules {
    /// The rules for `receipts`; an Input error if two are the same, or hold the same fragment.
    pub fn new(receipts: &[Receipt]) -> Result<Self> {
        let mut fragments = HashMap::new();
        for (place, receipt) in receipts.iter().enumerate() {
            let known = receipts.iter().take(place).any(|r| r.id == receipt.id);
            let ids = receipt.fragments.iter().map(|f| f.description.id);
            let mut twice = ids.map(|id| fragments.insert(id, receipt.id)).collect::<Vec<_>>().into_iter().flatten();
            if known || twice.next().is_some() {
                return Err(Error::input(format!(
                    "the receipt {} is given twice; a receipt can be committed once. Nothing was committed",
                    receipt.id
                )));
            }
        }
        let dated = |r: &Receipt, f: &Staged| earlier(f).map(|_| (r.array, f.description.clone()));
        let deletes = receipts.iter().flat_map(|r| r.fragments.iter().filter_map(move |f| dated(r, f)));
        Ok(Self { fragments, deletes: deletes.collect() })
    }

    /// A Conflict error if `record` commits one of the receipts, or merges data that one of them deletes.
    pub fn check(&self, record: &Record) -> Result<()> {
        let added = record.operations.iter().filter_map(|operation| match operation {
            Recorded::AddFragments { fragments, .. } => Some(fragments),
            _ => None,
        });
        match added.flatten().find_map(|d| self.fragments.get(&d.id)) {
            Some(receipt) => Err(Error::conflict(format!(
                "the receipt {receipt} was committed already, in version {}; nothing was committed now",
                record.version
            ))),
            None => self
                .deletes
                .iter()
                .try_for_each(|(array, delete)| DeleteRules { array: *array }.check(record, std::iter::once(delete))),
        }
    }

    /// The operations that commit `receipts`: domains grow, then fragments are added. The later a receipt is in the list, the
    /// greater is its order.
    pub fn operations(receipts: &[Receipt]) -> Vec<Operation> {
        let mut reached: BTreeMap<(Id, u32), KeyRange> = BTreeMap::new();
        for (receipt, growth) in receipts.iter().flat_map(|r| r.growth.iter().map(move |growth| (r, growth))) {
            let range = reached.entry((receipt.array, growth.dimension)).or_insert(growth.range);
            *range = range.joined(growth.range);
        }
        let grow = |((array, dimension), range)| Operation::Grow { array, dimension, range };
        let mut made: Vec<Operation> = reached.into_iter().map(grow).collect();
        for receipt in receipts.iter().filter(|r| !r.fragments.is_empty()) {
            let same = made.iter_mut().find_map(|operation| match operation {
                Operation::AddFragments { array, fragments } if *array == receipt.array => Some(fragments),
                _ => None,
            });
            match same {
                Some(fragments) => fragments.extend(receipt.fragments.iter().cloned()),
                None => {
                    made.push(Operation::AddFragments { array: receipt.array, fragments: receipt.fragments.clone() })
                }
            }
        }
        made
    }
}

impl Rebase for ReceiptRules {
    fn queueing(&self) -> Queueing {
        Queueing::InTurn
    }

    fn rebase(&mut self, lost_to: &Record, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        self.check(lost_to)?;
        StandardRules.rebase(lost_to, newest, changes)
    }
}
