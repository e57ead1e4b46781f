//! Groups by their keys: a word per key, and one that flags nulls where a key may be null.
//!
//! ```text
//! by=["kind", {"lon": 0.5}, "name"]
//! kind   integer, code            its word
//! lon    bin of half a degree     the word of the low edge of the bin
//! name   text                     the number of the text in the table
//! flags                           bit k: key k is null
//! ```
//! Groups are numbered in the order in which they come first.

use super::direct::{Direct, Found};
use super::key::GroupKey;
use super::sort::sort_by;
use super::table::GroupTable;
use super::words::{NanPlace, column_of};
use crate::base::{AlignedBuf, Cancel, Error, Result};
use crate::tile::{Column, ColumnView};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// Keys at most: a bit each flags a null.
const KEYS_MAX: usize = 64;

/// Texts, each with a number.
#[derive(Debug, Clone, Default)]
struct Texts {
    numbers: HashMap<Arc<[u8]>, u64>,
    all: Vec<Arc<[u8]>>,
    bytes: u64,
}

impl Texts {
    fn number_of(&mut self, text: &[u8]) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let (number, text) = (self.all.len() as u64, Arc::<[u8]>::from(text));
        // The text, its entries in both, and the counters of an `Arc`.
        self.bytes += text.len() as u64 + 64;
        self.numbers.insert(text.clone(), number);
        self.all.push(text);
        number
    }

    fn get(&self, number: u64) -> &[u8] {
        self.all.get(number as usize).map(AsRef::as_ref).unwrap_or_default()
    }
}

/// Groups by their keys.
#[derive(Debug, Clone)]
pub(super) struct Groups {
    keys: Arc<Vec<GroupKey>>,
    flagged: bool,
    table: GroupTable,
    /// What finds groups in place of the table, where keys are numbers of small ranges.
    direct: Option<Direct>,
    /// Slots that it may have at most.
    slots_max: u64,
    texts: Vec<Texts>,
}

impl Groups {
    /// No group yet, but for one where there is no key.
    ///
    /// # Errors
    /// Input: a type is no key, or there are too many.
    pub(super) fn new(keys: Arc<Vec<GroupKey>>) -> Result<Self> {
        keys.iter().try_for_each(GroupKey::check)?;
        if keys.len() > KEYS_MAX {
            return Err(Error::input(format!("{} keys of groups were given, {KEYS_MAX} are possible", keys.len())));
        }
        let flagged = keys.iter().any(|key| key.nullable);
        let table = GroupTable::new(keys.len() + usize::from(flagged));
        let texts = keys.iter().map(|_| Texts::default()).collect();
        let direct = Direct::suits(&keys).then(|| Direct::new(u64::MAX));
        let slots_max = u64::MAX;
        Ok(Self { keys, flagged, table, direct, slots_max, texts })
    }

    /// Groups that come after the first find themselves by so many slots at most.
    pub(super) fn limit_slots(&mut self, slots_max: u64) {
        self.slots_max = slots_max;
        if self.len() == 0 && self.direct.is_some() {
            self.direct = Some(Direct::new(slots_max));
        }
    }

    /// The same keys, and no group.
    pub(super) fn fresh(&self) -> Self {
        let texts = self.keys.iter().map(|_| Texts::default()).collect();
        Self {
            keys: Arc::clone(&self.keys),
            flagged: self.flagged,
            table: GroupTable::new(self.width()),
            direct: Direct::suits(&self.keys).then(|| Direct::new(self.slots_max)),
            slots_max: self.slots_max,
            texts,
        }
    }

    fn width(&self) -> usize {
        self.keys.len() + usize::from(self.flagged)
    }

    /// How many groups there are.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// The keys.
    pub(super) fn keys(&self) -> &[GroupKey] {
        &self.keys
    }

    /// Bytes that they take.
    pub(super) fn size_bytes(&self) -> u64 {
        let direct = self.direct.as_ref().map_or(0, Direct::size_bytes);
        direct + self.table.size_bytes() + self.texts.iter().map(|texts| texts.bytes).sum::<u64>()
    }

    /// The groups of rows with these values, a column per key.
    pub(super) fn of_rows(&mut self, rows: usize, values: &[ColumnView<'_>]) -> Result<RowGroups> {
        let keys = Arc::clone(&self.keys);
        if let Some(found) = self.addressed(&keys, values, false)? {
            return Ok(found);
        }
        let columns = keys.iter().zip(values).enumerate().map(|(place, (key, view))| self.column(place, key, *view));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        self.of_words(rows, columns, values)
    }

    /// The groups of keys that were groups elsewhere, a column per key.
    pub(super) fn of_keys(&mut self, rows: usize, keys: &[ColumnView<'_>]) -> Result<Vec<u32>> {
        let given: Vec<GroupKey> = self.keys.iter().map(GroupKey::of_edges).collect();
        if given.iter().zip(keys).any(|(given, view)| view.datatype() != given.datatype) {
            return Err(super::state::input::strange());
        }
        let found = match self.addressed(&given, keys, true)? {
            Some(found) => found,
            None => {
                let columns = given.iter().zip(keys).enumerate();
                let columns = columns.map(|(place, (key, view))| self.column(place, key, *view));
                let columns = columns.collect::<Result<Vec<_>>>()?;
                self.of_words(rows, columns, keys)?
            }
        };
        Ok(match found {
            RowGroups::One(group) => vec![group; rows],
            RowGroups::Each(groups) => groups,
        })
    }

    /// Grows the table if it is large and nearly full; groups that are addressed are not looked for in it.
    ///
    /// # Errors
    /// Cancelled.
    pub(super) fn make_room(&mut self, cancel: &dyn Cancel) -> Result<()> {
        if self.direct.as_ref().is_some_and(Direct::is_active) { Ok(()) } else { self.table.make_room(cancel) }
    }

    /// The groups of rows by their places, if all keys are numbers of small ranges. With `edges` the values are keys of groups.
    fn addressed(&mut self, given: &[GroupKey], values: &[ColumnView<'_>], edges: bool) -> Result<Option<RowGroups>> {
        let Some(mut direct) = self.direct.take() else { return Ok(None) };
        let has_null = |view: &ColumnView<'_>| view.validity().is_some_and(|valid| valid.contains(&0));
        let (mut found, was_active) = (Found::Never, direct.is_active());
        if !values.iter().any(has_null) {
            let mut columns = Vec::with_capacity(values.len());
            for (place, (key, view)) in given.iter().zip(values).enumerate() {
                columns.push(match key.is_text() {
                    true => self.column(place, key, *view)?,
                    false => key.words_of_values(*view),
                });
            }
            let keys = Arc::clone(&self.keys);
            found = direct.find(&keys, &mut self.table, &columns, edges)?;
        }
        if was_active && matches!(found, Found::NotNow | Found::Never) {
            self.table.index();
        }
        self.direct = Some(direct).filter(|_| !matches!(found, Found::Never));
        Ok(match found {
            Found::One(group) => Some(RowGroups::One(group)),
            Found::Each(groups) => Some(RowGroups::Each(groups)),
            Found::NotNow | Found::Never => None,
        })
    }

    fn column(&mut self, place: usize, key: &GroupKey, view: ColumnView<'_>) -> Result<Vec<u64>> {
        if !key.is_text() {
            return key.words(view);
        }
        let Some(texts) = self.texts.get_mut(place) else { return Ok(Vec::new()) };
        let mut last: Option<(&[u8], u64)> = None;
        let mut number = |row: usize| {
            let text = view.value(row);
            match last {
                Some((before, number)) if before == text => number,
                _ => {
                    let number = texts.number_of(text);
                    last = Some((text, number));
                    number
                }
            }
        };
        Ok((0..view.len()).map(|row| if view.is_valid(row) { number(row) } else { 0 }).collect())
    }

    fn of_words(&mut self, rows: usize, mut columns: Vec<Vec<u64>>, values: &[ColumnView<'_>]) -> Result<RowGroups> {
        if self.flagged {
            let mut flags = vec![0u64; rows];
            for (bit, (column, view)) in columns.iter_mut().zip(values).enumerate() {
                let Some(validity) = view.validity() else { continue };
                for ((word, flag), valid) in column.iter_mut().zip(&mut flags).zip(validity) {
                    if *valid == 0 {
                        (*word, *flag) = (0, *flag | 1 << bit);
                    }
                }
            }
            columns.push(flags);
        }
        if u32::try_from(self.len() + rows).is_err() {
            return Err(Error::budget("more than 2^32 groups are in memory at once; give the context less memory"));
        }
        let alike =
            columns.iter().all(|column| column.first().is_none_or(|first| column.iter().all(|word| word == first)));
        if alike && rows > 0 {
            let key: Vec<u64> = columns.iter().filter_map(|column| column.first()).copied().collect();
            return Ok(RowGroups::One(self.table.group_of(&key)));
        }
        let mut groups = Vec::new();
        match columns.as_slice() {
            [only] => self.table.groups_of(only, rows, &mut groups),
            _ => self.table.groups_of(&side_by_side(&columns, rows), rows, &mut groups),
        }
        Ok(RowGroups::Each(groups))
    }

    /// The keys of groups, a column per key.
    pub(super) fn columns(&self, groups: &[u32]) -> Result<Vec<Column>> {
        self.keys.iter().enumerate().map(|(place, key)| self.column_of(place, key, groups)).collect()
    }

    fn column_of(&self, place: usize, key: &GroupKey, groups: &[u32]) -> Result<Column> {
        let word = |group: &u32| {
            let words = self.table.key(*group as usize);
            words.get(place).copied().filter(|_| self.flags(words) >> place & 1 == 0)
        };
        if !key.is_text() {
            return column_of(key.result(), NanPlace::Last, groups.iter().map(word));
        }
        let (mut bytes, mut valid) = (Vec::new(), Vec::with_capacity(groups.len()));
        let mut offsets = key.datatype.is_var().then(|| vec![0u64]);
        let blank = vec![0; key.datatype.width().unwrap_or(0)];
        for number in groups.iter().map(word) {
            valid.push(u8::from(number.is_some()));
            let text = number.zip(self.texts.get(place)).map_or(blank.as_slice(), |(number, texts)| texts.get(number));
            bytes.extend_from_slice(text);
            offsets.iter_mut().for_each(|offsets| offsets.push(bytes.len() as u64));
        }
        let validity = valid.contains(&0).then_some(valid);
        Column::new(key.datatype, AlignedBuf::from_slice(&bytes), offsets, validity)
    }

    /// The word of the last key of a group.
    pub(super) fn last_word(&self, group: u32) -> u64 {
        let place = self.keys.len().saturating_sub(1);
        self.table.key(group as usize).get(place).copied().unwrap_or(0)
    }

    fn flags(&self, words: &[u64]) -> u64 {
        if self.flagged { words.last().copied().unwrap_or(0) } else { 0 }
    }

    /// The order of two groups: by their keys from the first on, NaN and then null after all others.
    pub(super) fn compare(&self, (a, b): (u32, u32)) -> Ordering {
        let (a, b) = (self.table.key(a as usize), self.table.key(b as usize));
        if !self.flagged && self.keys.iter().all(|key| !key.is_text()) {
            return a.cmp(b);
        }
        let nulls = (self.flags(a), self.flags(b));
        for (place, key) in self.keys.iter().enumerate() {
            let null = |flags: u64| flags >> place & 1;
            let (x, y) = (a.get(place).copied().unwrap_or(0), b.get(place).copied().unwrap_or(0));
            let values = || match self.texts.get(place).filter(|_| key.is_text()) {
                Some(texts) => texts.get(x).cmp(texts.get(y)),
                None => x.cmp(&y),
            };
            let order = null(nulls.0).cmp(&null(nulls.1)).then_with(values);
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    }

    /// All groups in ascending order of their keys.
    ///
    /// # Errors
    /// Cancelled.
    pub(super) fn sorted(&self, cancel: &dyn Cancel) -> Result<Vec<u32>> {
        cancel.check()?;
        let numbers = !self.keys.iter().any(GroupKey::is_text);
        if let Some(direct) = self.direct.as_ref().filter(|direct| numbers && direct.is_active()) {
            return Ok(direct.ascending());
        }
        if self.flagged || !numbers {
            let order: Vec<u32> = (0..self.len() as u32).collect();
            return sort_by(order, cancel, |a, b| self.compare((*a, *b)));
        }
        // The first word lies beside the group, so most comparisons look nowhere else.
        let first = |group: u32| (self.table.key(group as usize).first().copied().unwrap_or(0), group);
        let order: Vec<(u64, u32)> = (0..self.len() as u32).map(first).collect();
        let order = sort_by(order, cancel, |(x, a), (y, b)| x.cmp(y).then_with(|| self.compare((*a, *b))))?;
        Ok(order.into_iter().map(|(_, group)| group).collect())
    }
}

/// The groups of rows.
#[derive(Debug)]
pub(super) enum RowGroups {
    /// All rows are of one.
    One(u32),
    /// Each row has its own.
    Each(Vec<u32>),
}

fn side_by_side(columns: &[Vec<u64>], rows: usize) -> Vec<u64> {
    let mut all = vec![0; columns.len() * rows];
    for (place, column) in columns.iter().enumerate() {
        let slots = all.iter_mut().skip(place).step_by(columns.len());
        slots.zip(column).for_each(|(slot, word)| *slot = *word);
    }
    all
}
