//! Stages of an aggregation: groups, and the states of their aggregates.

use super::columns::{ColumnPart, column_of, join, views};
use super::groups::{Groups, RowGroups};
use super::key::GroupKey;
use super::state::input::{Input, Known, Positions, Rows, State, strange};
use crate::base::{Cancel, Error, Result};
use crate::schema::{Datatype, Sorting};
use crate::tile::{Column, ColumnView};
use std::borrow::Cow;

/// Groups that are taken in between two looks at whether to go on.
const GROUPS_AT_ONCE: usize = if cfg!(test) { 1 << 8 } else { 1 << 16 };

/// What a chunk of cells gives: a column per source of the plan.
#[derive(Debug)]
pub(super) struct ChunkValues<'a> {
    pub(super) rows: usize,
    pub(super) sources: Vec<ColumnView<'a>>,
    pub(super) positions: Positions<'a>,
}

/// Groups, and what was seen of each.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) groups: Groups,
    /// The sources of the keys.
    keys: Vec<usize>,
    /// States, and the sources of their arguments.
    states: Vec<(Box<dyn State>, Vec<usize>)>,
    /// Whether the last key is a value of which rows without one are left out.
    of_values: bool,
    /// How many groups there are, if they are known by their numbers and have no keys.
    numbered: Option<usize>,
}

/// The columns of a stage: keys, then the fields of states.
#[derive(Debug, Clone)]
pub struct PartialTable {
    /// How many groups.
    pub rows: usize,
    /// Names and columns.
    pub columns: Vec<(String, Column)>,
}

impl Stage {
    pub(super) fn new(groups: Groups, keys: Vec<usize>, states: Vec<(Box<dyn State>, Vec<usize>)>) -> Self {
        let mut stage = Self { groups, keys, states, of_values: false, numbered: None };
        stage.grow();
        stage
    }

    /// The same whose last key is a value.
    pub(super) fn of_values(self) -> Self {
        Self { of_values: true, ..self }
    }

    /// The source of the value that is its last key.
    pub(super) fn value_source(&self) -> Option<usize> {
        self.keys.last().copied().filter(|_| self.of_values)
    }

    pub(super) fn fresh(&self) -> Self {
        let states = self.states.iter().map(|(state, args)| (state.fresh(), args.clone())).collect();
        let (groups, keys) = (self.groups.fresh(), self.keys.clone());
        let mut stage = Self { groups, keys, states, of_values: self.of_values, numbered: self.numbered };
        stage.grow();
        stage
    }

    pub(super) fn state(&self, place: usize) -> Option<&dyn State> {
        self.states.get(place).map(|(state, _)| state.as_ref())
    }

    /// The same without keys, of so many groups that are known by their numbers.
    fn of_groups(&self, groups: usize) -> Self {
        let mut stage = Self { numbered: Some(groups), ..self.fresh() };
        stage.grow();
        stage
    }

    /// How many groups there are.
    pub(super) fn len(&self) -> usize {
        self.numbered.unwrap_or_else(|| self.groups.len())
    }

    /// How many aggregates have states.
    pub(super) fn states_len(&self) -> usize {
        self.states.len()
    }

    fn grow(&mut self) {
        let groups = self.len();
        self.states.iter_mut().for_each(|(state, _)| state.grow(groups));
    }

    /// Takes a chunk of cells in.
    pub(super) fn take(&mut self, chunk: &ChunkValues<'_>) -> Result<()> {
        let view = |place: &usize| chunk.sources.get(*place).copied().ok_or_else(strange);
        let keys = self.keys.iter().map(view).collect::<Result<Vec<_>>>()?;
        let nulls = if self.of_values { keys.last().and_then(ColumnView::validity) } else { None };
        if let Some(valid) = nulls.filter(|valid| valid.contains(&0)) {
            let rows: Vec<u32> = (0u32..).zip(valid).filter(|(_, v)| **v != 0).map(|(row, _)| row).collect();
            let picked: Vec<Column> = keys.iter().map(|key| key.gather(&rows)).collect();
            let views: Vec<ColumnView<'_>> = picked.iter().map(Column::view).collect();
            return self.take_rows(rows.len(), &views, chunk);
        }
        self.take_rows(chunk.rows, &keys, chunk)
    }

    fn take_rows(&mut self, rows: usize, keys: &[ColumnView<'_>], chunk: &ChunkValues<'_>) -> Result<()> {
        if rows == 0 {
            return Ok(());
        }
        let groups = self.groups.of_rows(rows, keys)?;
        self.grow();
        let rows = match &groups {
            RowGroups::One(group) => Rows::One(*group, rows),
            RowGroups::Each(groups) => Rows::Each(groups),
        };
        self.update(rows, chunk)
    }

    /// Takes rows in whose groups are known.
    fn update(&mut self, rows: Rows<'_>, chunk: &ChunkValues<'_>) -> Result<()> {
        for (state, args) in &mut self.states {
            let args: Vec<ColumnView<'_>> =
                args.iter().filter_map(|place| chunk.sources.get(*place)).copied().collect();
            state.update(rows, &Input { args: &args, positions: chunk.positions })?;
        }
        Ok(())
    }

    /// Takes in groups that are in order elsewhere: keys, then the fields of states.
    pub(super) fn absorb_columns(&mut self, rows: usize, columns: &[ColumnView<'_>]) -> Result<()> {
        let (keys, mut fields) = columns.split_at_checked(self.keys.len()).ok_or_else(strange)?;
        let groups = self.groups.of_keys(rows, keys)?;
        self.grow();
        for (state, _) in &mut self.states {
            let (own, others) = fields.split_at_checked(state.kinds().len()).ok_or_else(strange)?;
            state.absorb(&groups, own)?;
            fields = others;
        }
        if fields.is_empty() { Ok(()) } else { Err(strange()) }
    }

    /// Takes in `rows` rows of which no more is known than `known`, of each source of the plan; whether that suffices.
    fn take_known(&mut self, rows: u64, known: &[Known]) -> Result<bool> {
        let of = |place: &usize| known.get(*place).ok_or_else(strange);
        let mut keys = Vec::with_capacity(self.keys.len());
        for (place, key) in self.keys.iter().zip(self.groups.keys()) {
            let Some(value) = only_value(key, of(place)?)? else { return Ok(false) };
            keys.push(value);
        }
        let mut fields = Vec::with_capacity(self.states.len());
        for (state, args) in &self.states {
            let Some(held) = state.known(rows, args.first().map(of).transpose()?)? else { return Ok(false) };
            fields.push(held);
        }
        let groups = match self.groups.of_rows(1, &views(&keys))? {
            RowGroups::One(group) => vec![group],
            RowGroups::Each(groups) => groups,
        };
        self.grow();
        for ((state, _), fields) in self.states.iter_mut().zip(&fields) {
            state.absorb(&groups, &views(fields))?;
        }
        Ok(true)
    }

    /// Takes in what another stage of the same kind holds.
    pub(super) fn absorb(&mut self, other: &Self, cancel: &dyn Cancel) -> Result<()> {
        let all: Vec<u32> = (0..other.len() as u32).collect();
        for groups in all.chunks(GROUPS_AT_ONCE) {
            cancel.check()?;
            self.groups.make_room(cancel)?;
            if self.numbered.is_some() {
                for ((mine, _), (theirs, _)) in self.states.iter_mut().zip(&other.states) {
                    mine.absorb(groups, &views(&theirs.fields(groups)?))?;
                }
            } else {
                self.absorb_columns(groups.len(), &views(&other.columns(groups)?))?;
            }
        }
        Ok(())
    }

    /// Takes in a table of groups: keys, then the fields of states.
    fn absorb_table(&mut self, table: &PartialTable, cancel: &dyn Cancel) -> Result<()> {
        // A table without a group is checked too.
        for from in (0..table.rows.max(1)).step_by(GROUPS_AT_ONCE) {
            cancel.check()?;
            self.groups.make_room(cancel)?;
            let part = (from, (from + GROUPS_AT_ONCE).min(table.rows));
            let columns = table.columns.iter().map(|(_, column)| ColumnPart::of(column.view(), part));
            let columns: Vec<ColumnPart<'_>> = columns.collect();
            self.absorb_columns(part.1 - part.0, &columns.iter().map(ColumnPart::view).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Keys and fields of groups.
    pub(super) fn columns(&self, groups: &[u32]) -> Result<Vec<Column>> {
        let mut columns = self.groups.columns(groups)?;
        for (state, _) in &self.states {
            columns.extend(state.fields(groups)?);
        }
        Ok(columns)
    }

    /// The names of [`Stage::columns`].
    pub(super) fn names(&self) -> Vec<String> {
        let keys = self.groups.keys().iter().map(|key| key.name.clone());
        let fields = self.states.iter().enumerate();
        let fields = fields
            .flat_map(|(place, (state, _))| state.kinds().into_iter().map(move |(name, _)| format!("{place}.{name}")));
        keys.chain(fields).collect()
    }

    /// The types of [`Stage::columns`].
    pub(super) fn kinds(&self) -> Vec<Datatype> {
        let keys = self.groups.keys().iter().map(GroupKey::result);
        keys.chain(self.states.iter().flat_map(|(state, _)| state.kinds()).map(|(_, kind)| kind)).collect()
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.groups.size_bytes() + self.states.iter().map(|(state, _)| state.size_bytes()).sum::<u64>()
    }
}

/// The value of a key that rows have of which `known` is known, if they are all of one group.
fn only_value(key: &GroupKey, known: &Known) -> Result<Option<Column>> {
    let Some((least, greatest)) = known.ends.as_ref().filter(|_| known.nulls == 0 && known.nans == 0) else {
        return Ok(None);
    };
    let ends = column_of(known.datatype, &[least, greatest])?;
    let alike = match least == greatest {
        true => true,
        false if known.datatype.sorting() == Sorting::Keys => {
            matches!(key.words(ends.view())?.as_slice(), [low, high] if low == high)
        }
        false => false,
    };
    Ok(alike.then(|| ends.view().copy_range(0, 1)))
}

/// The stages of a question.
#[derive(Debug)]
pub(super) struct Stages(Vec<Stage>);

impl Stages {
    pub(super) fn new(stages: Vec<Stage>) -> Self {
        Self(stages)
    }

    pub(super) fn all(&self) -> &[Stage] {
        &self.0
    }

    pub(super) fn into_all(self) -> Vec<Stage> {
        self.0
    }

    /// The same without a row.
    pub(super) fn fresh(&self) -> Self {
        Self(self.0.iter().map(Stage::fresh).collect())
    }

    /// Groups are found by so many slots at most.
    pub(super) fn limit_slots(&mut self, slots_max: u64) {
        self.0.iter_mut().for_each(|stage| stage.groups.limit_slots(slots_max));
    }

    /// Grows tables that are large and nearly full.
    ///
    /// # Errors
    /// Cancelled.
    pub(super) fn make_room(&mut self, cancel: &dyn Cancel) -> Result<()> {
        self.0.iter_mut().try_for_each(|stage| stage.groups.make_room(cancel))
    }

    /// Whether the first stage has one group, whatever the cells are.
    pub(super) fn begins_with_one(&self) -> bool {
        self.0.first().is_some_and(|first| first.groups.keys().is_empty() && first.len() == 1)
    }

    /// The first stage; one that has seen nothing takes its place.
    pub(super) fn take_first(&mut self) -> Option<Stage> {
        self.0.first_mut().map(|first| {
            let fresh = first.fresh();
            std::mem::replace(first, fresh)
        })
    }

    /// Takes in what another first stage holds.
    pub(super) fn absorb_first(&mut self, other: &Stage, cancel: &dyn Cancel) -> Result<()> {
        self.0.first_mut().map_or(Ok(()), |first| first.absorb(other, cancel))
    }

    /// Whether there is one group, whatever the cells are, and nothing but it.
    pub(super) fn is_ungrouped(&self) -> bool {
        matches!(self.0.as_slice(), [only] if only.groups.keys().is_empty() && only.numbered.is_none())
    }

    /// The same without keys, of so many groups that are known by their numbers.
    pub(super) fn of_groups(&self, groups: usize) -> Self {
        Self(self.0.iter().map(|stage| stage.of_groups(groups)).collect())
    }

    /// Whether no row was taken in yet.
    pub(super) fn is_unused(&self) -> bool {
        self.0.iter().all(|stage| stage.len() == 0)
    }

    /// Groups of the stage that has most.
    pub(super) fn groups_max(&self) -> usize {
        self.0.iter().map(Stage::len).max().unwrap_or(0)
    }

    /// Takes rows in whose groups are known.
    pub(super) fn update(&mut self, rows: Rows<'_>, chunk: &ChunkValues<'_>) -> Result<()> {
        self.0.iter_mut().try_for_each(|stage| stage.update(rows, chunk))
    }

    pub(super) fn take(&mut self, chunk: &ChunkValues<'_>) -> Result<()> {
        self.0.iter_mut().try_for_each(|stage| stage.take(chunk))
    }

    /// Whether they can be told of many rows by [`Stages::take_known`].
    pub(super) fn can_know(&self) -> bool {
        matches!(self.0.as_slice(), [only] if only.states.iter().all(|(state, _)| state.can_know()))
    }

    /// Takes in `rows` rows of which no more is known than `known`, of each source of the plan; whether that suffices.
    pub(super) fn take_known(&mut self, rows: u64, known: &[Known]) -> Result<bool> {
        let [only] = self.0.as_mut_slice() else { return Ok(false) };
        only.take_known(rows, known)
    }

    pub(super) fn absorb(&mut self, other: &Self, cancel: &dyn Cancel) -> Result<()> {
        self.0.iter_mut().zip(&other.0).try_for_each(|(mine, theirs)| mine.absorb(theirs, cancel))
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.0.iter().map(Stage::size_bytes).sum()
    }

    /// What the stages hold, groups ascending.
    pub(super) fn tables(&self, cancel: &dyn Cancel) -> Result<Vec<PartialTable>> {
        let table = |stage: &Stage| {
            let order = stage.groups.sorted(cancel)?;
            let mut columns = stage.columns(&[])?;
            for groups in order.chunks(GROUPS_AT_ONCE) {
                cancel.check()?;
                columns.iter_mut().zip(&stage.columns(groups)?).for_each(|(all, more)| join(all, more));
            }
            Ok(PartialTable { rows: order.len(), columns: stage.names().into_iter().zip(columns).collect() })
        };
        self.0.iter().map(table).collect()
    }

    /// Takes in tables that [`Stages::tables`] gave elsewhere.
    ///
    /// # Errors
    /// Input: they are of another question.
    pub(super) fn absorb_tables(&mut self, tables: &[PartialTable], cancel: &dyn Cancel) -> Result<()> {
        if tables.len() != self.0.len() {
            return Err(strange());
        }
        for (stage, table) in self.0.iter_mut().zip(tables) {
            let names = stage.names();
            if !names.iter().eq(table.columns.iter().map(|(name, _)| name)) {
                let given: Vec<Cow<'_, str>> = table.columns.iter().map(|(name, _)| Cow::from(name)).collect();
                return Err(Error::input(format!(
                    "these partial results have the columns {}, where this question has {}; merge those of one question",
                    given.join(", "),
                    names.join(", ")
                )));
            }
            stage.absorb_table(table, cancel)?;
        }
        Ok(())
    }
}
