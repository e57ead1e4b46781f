//! Labels of the positions along a dense dimension, as its array's commits make them.
//!
//! 1. *Listed* labels lie in a hidden array, which is made with them, grows with the blocks that are appended, and goes once other labels
//!    are set.
//! 2. All of that happens in the commit of the owner: no version has labels that do not belong to its cells.
//! 3. *Shared* labels lie in an ordinary array, which other arrays may have labels in too (`shared_labels.rs`).
//! 4. Labels at steps say those of all coordinates. A block that is appended continues them, or they become listed ones.

use super::content;
use super::write::for_domain;
use super::{Array, Call, Staged};
use crate::base::{Entropy, Error, Id, Result};
use crate::query::{DenseWrite, WriteContext, write_dense};
use crate::runtime::SystemEntropy;
use crate::schema::{
    Attribute, Datatype, Dimension, Evolution, KeyRange, Labels, Order, Schema, SchemaOptions, Steps, Subarray, key,
};
use crate::store::{ArrayState, Changes, Operation, Rebase, Record, Snapshot, StandardRules};
use crate::tile::ColumnView;
use std::sync::Arc;

/// The attribute of a hidden array that has the labels.
const ATTRIBUTE: &str = "label";

/// Labels at steps become listed ones, for an append, up to so many.
const RELISTED_MAX: u64 = 1 << 24;

/// Labels of a dimension that are listed: one for each coordinate of its domain.
#[derive(Debug)]
pub struct Listed<'a> {
    /// The name of the dimension.
    pub dimension: String,
    /// The labels.
    pub values: ColumnView<'a>,
}

/// What a commit needs for labels.
#[derive(Debug, Default)]
pub(super) struct LabelParts {
    /// What comes before the fragments.
    pub(super) operations: Vec<Operation>,
    /// The fragments of hidden arrays.
    pub(super) staged: Vec<Staged>,
}

/// A hidden array of labels that is to be made.
struct Hidden {
    id: Id,
    create: Operation,
    staged: Staged,
}

impl Array {
    /// Changes the schema as [`Array::alter`] does, and lists labels of dimensions, in one version. The hidden arrays whose labels
    /// are replaced are removed.
    ///
    /// # Errors
    /// Those of [`Array::alter`]; Input if there is not one label for each coordinate.
    pub fn alter_labelled(
        &self,
        evolution: &Evolution,
        listed: &[Listed<'_>],
        message: Option<String>,
        call: &Call,
    ) -> Result<u64> {
        self.check_writable()?;
        self.session().check_open()?;
        if call.commit_key.is_some() {
            return Err(Error::input("a change of labels takes no commit key; leave it out"));
        }
        let (snapshot, (state, first)) = self.looked_in(|snapshot| self.state_and_first(snapshot))?;
        let mut seen = Vec::new();
        let mut names = self.hidden_names_in(&snapshot, &state)?;
        let (mut evolution, mut parts) = (evolution.clone(), LabelParts::default());
        for one in listed {
            let place = place_of(state.schema(), &one.dimension)?;
            let hidden =
                self.hide_labels(&state, place, dim_at(state.schema(), place)?.range(), one.values, &mut names, call)?;
            evolution.labels.push((one.dimension.clone(), Some(Labels::Array(hidden.id))));
            parts.add(hidden);
            seen.push((place, dim_at(state.schema(), place)?.range()));
        }
        self.check_shared(&snapshot, &state, &evolution)?;
        let operations = self.evolved(&state, &first, &evolution)?;
        let gone = unused(state.schema(), &operations);
        let mut all = parts.operations;
        all.extend(operations);
        all.extend(gone.into_iter().map(|id| Operation::Remove { id }));
        if all.is_empty() {
            return Ok(snapshot.version());
        }
        self.commit_parts(all, parts.staged, message, &snapshot, &mut Listing { array: self.id(), seen })
    }

    /// What the labels of a block need that is appended in `range` along the dimension at a place.
    ///
    /// # Errors
    /// Input: labels are missing, of another type or number, or there are none to continue.
    pub(super) fn append_labels(
        &self,
        (snapshot, state): (&Snapshot, &ArrayState),
        (place, range): (usize, KeyRange),
        given: Option<ColumnView<'_>>,
        call: &Call,
    ) -> Result<LabelParts> {
        let dim = dim_at(state.schema(), place)?;
        let count = range.hi - range.lo + 1;
        if let Some(Labels::Shared(id)) = dim.labels() {
            return self.append_shared((snapshot, dim, *id), range, given, call);
        }
        let Some(given) = given else {
            return match dim.labels() {
                Some(Labels::Array(_)) => Err(Error::input(format!(
                    "dimension {:?} has a list of labels, and {count} positions were appended without any: give theirs with labels=, or \
                     take all labels away with alter(labels={{{:?}: None}})",
                    dim.name(),
                    dim.name()
                ))),
                _ => Ok(LabelParts::default()),
            };
        };
        if given.len() as u64 != count {
            return Err(Error::input(format!(
                "dimension {:?}: {count} positions were appended with {} labels; each needs one",
                dim.name(),
                given.len()
            )));
        }
        match dim.labels() {
            None if dim.range().is_empty() => self.list_first(snapshot, state, (place, range), given, call),
            None => Err(Error::input(format!(
                "dimension {:?} has no labels that those of a block could continue; leave labels= out, or set labels for all positions \
                 first: alter(labels={{{:?}: …}})",
                dim.name(),
                dim.name()
            ))),
            Some(Labels::Array(id) | Labels::Shared(id)) => self.list_more(snapshot, dim, *id, range, given, call),
            Some(Labels::Steps(steps)) => self.step_on(snapshot, state, (place, range, steps), given, call),
        }
    }

    /// A hidden array with the labels of the first positions that there are.
    fn list_first(
        &self,
        snapshot: &Snapshot,
        state: &ArrayState,
        (place, range): (usize, KeyRange),
        given: ColumnView<'_>,
        call: &Call,
    ) -> Result<LabelParts> {
        let mut names = self.hidden_names_in(snapshot, state)?;
        let hidden = self.hide_labels(state, place, range, given, &mut names, call)?;
        self.listing(state, place, hidden)
    }

    /// The changes that put the labels of a dimension into a new hidden array.
    fn listing(&self, state: &ArrayState, place: usize, hidden: Hidden) -> Result<LabelParts> {
        let name = dim_at(state.schema(), place)?.name().to_owned();
        let labels = vec![(name, Some(Labels::Array(hidden.id)))];
        let first = state.schemas().get(0)?.unwrap_or_else(|| Arc::clone(state.schema()));
        let mut parts = LabelParts::default();
        parts.add(hidden);
        parts.operations.extend(self.evolved(state, &first, &Evolution { labels, ..Evolution::default() })?);
        Ok(parts)
    }

    /// More labels in the hidden array that has those of a dimension.
    pub(super) fn list_more(
        &self,
        snapshot: &Snapshot,
        dim: &Dimension,
        id: Id,
        range: KeyRange,
        given: ColumnView<'_>,
        call: &Call,
    ) -> Result<LabelParts> {
        self.session().note(&mut |reads| reads.note_id(id));
        let hidden = self.with_id(id);
        let state = snapshot.array_by_id(id)?;
        check_type(dim, state.schema().attrs().first().map(Attribute::datatype), given)?;
        let sub = Subarray::new(vec![range]);
        let schema = for_domain(state.schema(), Some(&sub))?;
        let context = hidden.write_context(&state, call)?;
        let write = DenseWrite { sub, columns: vec![(0, given)], layout: Order::Row };
        let staged = hidden.staged(vec![write_dense(&context, &schema, &write)?]).with_growth(state.schema(), &schema);
        Ok(LabelParts { operations: Vec::new(), staged: vec![staged] })
    }

    /// Nothing if the labels continue the steps, else a hidden array with all that there are.
    fn step_on(
        &self,
        snapshot: &Snapshot,
        state: &ArrayState,
        (place, range, steps): (usize, KeyRange, &Steps),
        given: ColumnView<'_>,
        call: &Call,
    ) -> Result<LabelParts> {
        let dim = dim_at(state.schema(), place)?;
        check_type(dim, Some(steps.datatype()), given)?;
        let offset = |key: u64| i128::from(key) - i128::from(dim.origin());
        let is_whole = given.validity().is_none_or(|valid| valid.iter().all(|valid| *valid == 1));
        let next = steps.keys(offset(range.lo), range.hi - range.lo + 1);
        if is_whole
            && next.is_ok_and(|next| key::encode(given.datatype(), given.values()).is_ok_and(|keys| keys == next))
        {
            return Ok(LabelParts::default());
        }
        let all = if dim.range().is_empty() { range } else { KeyRange::new(dim.range().lo.min(range.lo), range.hi) };
        if all.count() > u128::from(RELISTED_MAX) {
            return Err(Error::input(format!(
                "dimension {:?}: the labels go on {}, and those given do not; {} labels would have to be listed for \
                 it. Give labels that go on, or others for all positions: alter(labels={{{:?}: …}})",
                dim.name(),
                steps.shown(),
                all.count(),
                dim.name()
            )));
        }
        let mut values = Vec::new();
        let datatype = steps.datatype();
        let before = steps.held_keys(offset(all.lo), range.lo - all.lo)?;
        if (datatype.is_float() || datatype.is_time()) && before.contains(&None) {
            steps.keys(offset(all.lo), range.lo - all.lo)?;
        }
        // Positions beyond a type of integers have no label.
        let blank = key::range_of(datatype).lo;
        key::decode(datatype, before.iter().map(|held| held.unwrap_or(blank)), &mut values);
        values.extend_from_slice(given.values());
        let mut valid: Vec<u8> = before.iter().map(|held| u8::from(held.is_some())).collect();
        valid.extend(given.validity().map_or_else(|| vec![1; given.len()], <[u8]>::to_vec));
        let validity = valid.contains(&0).then_some(valid);
        let listed = ColumnView::new(datatype, &values, None, validity.as_deref())?;
        let mut names = self.hidden_names_in(snapshot, state)?;
        let hidden = self.hide_labels(state, place, all, listed, &mut names, call)?;
        self.listing(state, place, hidden)
    }

    /// A new hidden array with labels for the coordinates of `range`.
    fn hide_labels(
        &self,
        state: &ArrayState,
        place: usize,
        range: KeyRange,
        values: ColumnView<'_>,
        names: &mut Vec<String>,
        call: &Call,
    ) -> Result<Hidden> {
        let dim = dim_at(state.schema(), place)?;
        let count = range.count();
        if values.len() as u128 != count {
            return Err(Error::input(format!(
                "dimension {:?} has {count} positions, and {} labels were given; each needs one",
                dim.name(),
                values.len()
            )));
        }
        let (id, name, schema) =
            (SystemEntropy.id(), free_name(place, names), hidden_schema(dim, range, values.datatype())?);
        let context = WriteContext { schema_number: 0, ..self.write_context(state, call)? };
        let write = DenseWrite { sub: Subarray::new(vec![range]), columns: vec![(0, values)], layout: Order::Row };
        let given = self.given(call, || content::of_labelled(0, &values))?;
        let fragments = if count == 0 { Vec::new() } else { vec![write_dense(&context, &schema, &write)?] };
        let staged = self.with_id(id).staged(fragments).with_given(given);
        names.push(name.clone());
        let create = Operation::CreateHidden { id, owner: self.id(), name, schema, ext: None };
        Ok(Hidden { id, create, staged })
    }

    fn hidden_names_in(&self, snapshot: &Snapshot, state: &ArrayState) -> Result<Vec<String>> {
        Ok(snapshot.hidden_in(state)?.into_iter().map(|(name, _)| name).collect())
    }
}

/// The rules of labels that are listed for whole dimensions: [`StandardRules`], and the dimensions are as long as they were.
struct Listing {
    array: Id,
    /// The listed dimensions, and their domains.
    seen: Vec<(usize, KeyRange)>,
}

impl Listing {
    fn check(&self, newest: &Snapshot, changes: &Changes) -> Result<()> {
        StandardRules::check(newest, changes)?;
        let state = newest.array_by_id(self.array)?;
        match self.seen.iter().find(|(place, range)| state.domain().ranges().get(*place) != Some(range)) {
            None => Ok(()),
            Some((place, _)) => Err(Error::conflict(format!(
                "another commit made dimension {:?} of array {} longer, so there would not be a label for each position; nothing \
                 was committed, give labels for all positions that there are now",
                dim_at(state.schema(), *place)?.name(),
                state.path()
            ))),
        }
    }
}

impl Rebase for Listing {
    fn newest_suffices(&self) -> bool {
        true
    }

    fn rebase(&mut self, _lost_to: &Record, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        self.check(newest, changes)
    }

    fn rebase_past_floor(&mut self, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        self.check(newest, changes)
    }
}

impl LabelParts {
    fn add(&mut self, hidden: Hidden) {
        self.operations.push(hidden.create);
        self.staged.push(hidden.staged);
    }
}

pub(super) fn dim_at(schema: &Schema, place: usize) -> Result<&Dimension> {
    schema.dims().get(place).ok_or_else(|| Error::bounds(format!("there is no axis {place}")))
}

pub(super) fn place_of(schema: &Schema, name: &str) -> Result<usize> {
    let names: Vec<&str> = schema.coordinates().map(|dim| dim.name()).collect();
    let place = schema.dims().iter().position(|dim| dim.name() == name);
    place.ok_or_else(|| Error::schema(format!("there is no dimension {name:?}; there are {}", names.join(", "))))
}

/// An Input error unless labels have the type of those that are there.
pub(super) fn check_type(dim: &Dimension, there: Option<Datatype>, given: ColumnView<'_>) -> Result<()> {
    match there {
        Some(datatype) if datatype != given.datatype() => Err(Error::input(format!(
            "the labels of dimension {:?} are {datatype}, those given {}; convert them, or set others for all positions with \
             alter(labels={{{:?}: …}})",
            dim.name(),
            given.datatype(),
            dim.name()
        ))),
        _ => Ok(()),
    }
}

/// A name of a hidden array that its owner has none of.
pub(super) fn free_name(place: usize, taken: &[String]) -> String {
    let plain = format!("@labels-{place}");
    let others = (2..).map(|number| format!("{plain}-{number}"));
    let mut names = std::iter::once(plain.clone()).chain(others);
    names.find(|name| !taken.contains(name)).unwrap_or(plain)
}

/// The schema of a hidden array with labels of this type. Where there is none it has NaN, NaT or null.
fn hidden_schema(dim: &Dimension, range: KeyRange, datatype: Datatype) -> Result<Schema> {
    let along = match range.is_empty() {
        true => Dimension::without_domain("coordinate", dim.datatype(), None)?,
        false => Dimension::new("coordinate", dim.datatype(), &dim.text(range.lo), &dim.text(range.hi), None)?,
    };
    let is_nullable = !datatype.is_float() && !datatype.is_time();
    let fill = datatype.is_float().then_some("NaN");
    let attribute = Attribute::new(ATTRIBUTE, datatype, is_nullable, fill, "auto")?;
    Schema::new(vec![along], vec![attribute], SchemaOptions::default())
}

/// The hidden arrays that `before` has labels in, and the schema in `operations` has not.
fn unused(before: &Schema, operations: &[Operation]) -> Vec<Id> {
    let held = |schema: &Schema| schema.dims().iter().filter_map(|d| d.labels()?.array()).collect::<Vec<_>>();
    let after = operations.iter().find_map(|operation| match operation {
        Operation::AlterArray { schema, .. } => Some(held(schema)),
        _ => None,
    });
    after.map_or_else(Vec::new, |after| held(before).into_iter().filter(|id| !after.contains(id)).collect())
}
