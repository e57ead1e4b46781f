//! Groups by direct addressing: where keys are numbers of small ranges, the number of a group stands at the place that they make.
//!
//! ```text
//! place of a row    sum over keys of  floor((value - low) / step) * stride
//! slots             [ 0 | 3 | 0 | 1 | 2 | 0 | 0 | 0 ]      group + 1, or 0
//! ```
//!
//! Nothing is hashed and no key is compared. The ranges grow with the keys that come. While there would be many more slots than rows
//! were seen, the hash table finds the groups; where a key is null or no number, or too far away, it does for good.

use super::key::{Bin, GroupKey, bin_number};
use super::table::GroupTable;
use super::words::NanPlace;
use crate::base::Result;
use crate::schema::{Sorting, key};

/// Slots that are made however few rows there are; in tests few, so that groups go to and fro.
const SLOTS_FREE: u64 = if cfg!(test) { 1 << 8 } else { 1 << 18 };
/// Slots per row that was seen, at most.
const SLOTS_PER_ROW: u64 = 4;
/// Slots at most.
const SLOTS_MAX: u64 = 1 << 24;
/// Whole numbers below this one are exact as floats, and so are the quotients of two whose sum is below it, rounded down: the
/// quotient lies further below the next whole number than it is rounded.
const EXACT: u64 = 1 << 53;
/// Numbers of bins of floats at most: the low edge of such a bin tells its number.
const NUMBER_MAX: f64 = (1u64 << 50) as f64;

/// How the values of a key become places.
#[derive(Debug, Clone, Copy)]
enum Scale {
    /// Bins of whole numbers; without bins the step is 1. The word of the low edge at place 0.
    Whole { low: u64, step: u64 },
    /// Bins of any width. The number of the bin at place 0.
    Float { low: f64, width: f64 },
}

/// The places of one key.
#[derive(Debug, Clone, Copy)]
struct Axis {
    scale: Scale,
    places: u64,
}

impl Axis {
    /// The places from the bin of the word `min` to that of `max`; `None`: these are no numbers, or lie too far apart. With `edges`
    /// both are keys of groups.
    fn around(key: &GroupKey, (min, max): (u64, u64), edges: bool) -> Result<Option<Self>> {
        if NanPlace::Last.is_nan(key.datatype, max) {
            return Ok(None);
        }
        if let Bin::Float(width) = key.bin {
            let number = |word| match edges {
                true => (key::to_float(word) / width).round(),
                false => bin_number(key.number(word), width),
            };
            let (low, high) = (number(min), number(max));
            let has_edge = |number: f64| number.abs() < NUMBER_MAX && (number * width).is_finite();
            let places = ((high - low) as u64).saturating_add(1);
            return Ok((has_edge(low) && has_edge(high)).then_some(Self { scale: Scale::Float { low, width }, places }));
        }
        let step = if let Bin::Whole(width) = key.bin { width } else { 1 };
        let low = key.edge(min, step)?;
        if low > min || (max - low).checked_add(step).is_none_or(|sum| sum >= EXACT) {
            return Ok(None);
        }
        Ok(Some(Self { scale: Scale::Whole { low, step }, places: (max - low) / step + 1 }))
    }

    /// How many places `self` lies above the first of `other`, which may be below it.
    fn above(&self, other: &Self) -> i128 {
        match (self.scale, other.scale) {
            (Scale::Whole { low, step }, Scale::Whole { low: first, .. }) => {
                (i128::from(low) - i128::from(first)) / i128::from(step)
            }
            (Scale::Float { low, .. }, Scale::Float { low: first, .. }) => (low - first) as i128,
            (Scale::Whole { .. } | Scale::Float { .. }, _) => 0,
        }
    }

    /// The same from `by` places below on; `None` if there are not so many.
    fn lowered(&self, by: u64) -> Option<Self> {
        let scale = match self.scale {
            Scale::Whole { low, step } => Scale::Whole { low: low.checked_sub(by.checked_mul(step)?)?, step },
            Scale::Float { low, width } => Scale::Float { low: low - by as f64, width },
        };
        Some(Self { scale, places: self.places.checked_add(by)? })
    }

    /// The places of both, with room for as many more by a half on a side where `other` passes `self`; `None` if there is none.
    fn united(&self, other: &Self, with_room: bool) -> Option<Self> {
        let above = other.above(self);
        let room = |more: i128| {
            let more = u64::try_from(more.max(0)).ok()?;
            Some(if with_room && more > 0 { more.saturating_add(self.places.saturating_add(more) / 2) } else { more })
        };
        let below = room(-above)?;
        let beyond = room(above + i128::from(other.places) - i128::from(self.places))?;
        let mut united = match self.lowered(below) {
            Some(united) => united,
            None => self.lowered(u64::try_from(-above).ok()?)?,
        };
        united.places = united.places.checked_add(beyond)?;
        let is_exact = match united.scale {
            Scale::Whole { step, .. } => united.places.checked_add(1)?.checked_mul(step)? < EXACT,
            Scale::Float { low, .. } => low > -NUMBER_MAX && low + (united.places as f64) < NUMBER_MAX,
        };
        is_exact.then_some(united)
    }

    /// The word of the key at a place.
    fn word(&self, place: u64) -> u64 {
        match self.scale {
            Scale::Whole { low, step } => low + place * step,
            Scale::Float { low, width } => key::from_float((low + place as f64) * width),
        }
    }

    /// The place of a key that is an edge.
    fn place(&self, word: u64) -> u64 {
        match self.scale {
            Scale::Whole { low, step } => (word - low) / step,
            Scale::Float { low, width } => ((key::to_float(word) / width).round() - low) as u64,
        }
    }

    /// Adds the places of values, times a stride.
    fn add_places(&self, key: &GroupKey, words: &[u64], stride: u32, places: &mut [u32]) {
        let rows = words.iter().zip(places);
        match self.scale {
            Scale::Whole { low, step: 1 } => rows.for_each(|(word, place)| *place += (word - low) as u32 * stride),
            Scale::Whole { low, step } => {
                let step = step as f64;
                rows.for_each(|(word, place)| *place += ((word - low) as i64 as f64 / step) as u32 * stride);
            }
            Scale::Float { low, width } => rows.for_each(|(word, place)| {
                *place += (bin_number(key.number(*word), width) - low) as u32 * stride;
            }),
        }
    }

    /// The same of values that are edges; whether they are.
    fn add_edges(&self, words: &[u64], stride: u32, places: &mut [u32]) -> bool {
        let mut all = true;
        for (word, place) in words.iter().zip(places) {
            let own = self.place(*word).min(self.places - 1);
            all &= self.word(own) == *word;
            *place += own as u32 * stride;
        }
        all
    }
}

/// The groups of rows.
#[derive(Debug)]
pub(super) enum Found {
    /// All rows are of one.
    One(u32),
    Each(Vec<u32>),
    /// These rows are not addressed, and those that come may be.
    NotNow,
    /// Nor will any others be.
    Never,
}

/// What tells the groups of keys by their places.
#[derive(Debug, Clone)]
pub(super) struct Direct {
    /// Slots at most.
    slots_max: u64,
    axes: Vec<Axis>,
    /// None while the hash table finds the groups.
    slots: Vec<u32>,
    rows: u64,
    /// The words of the key of a group that is made.
    words: Vec<u64>,
}

impl Direct {
    /// Whether keys like these can be addressed at all.
    pub(super) fn suits(keys: &[GroupKey]) -> bool {
        let number = |key: &GroupKey| match key.bin {
            Bin::None => key.datatype.sorting() == Sorting::Bytes || !key.datatype.is_float(),
            Bin::Whole(_) | Bin::Float(_) => true,
        };
        !keys.is_empty() && keys.iter().all(number)
    }

    /// No group yet, with so many slots at most.
    pub(super) fn new(slots_max: u64) -> Self {
        Self { slots_max: slots_max.min(SLOTS_MAX), axes: Vec::new(), slots: Vec::new(), rows: 0, words: Vec::new() }
    }

    /// Bytes that it takes.
    pub(super) fn size_bytes(&self) -> u64 {
        (self.slots.capacity() * 4) as u64
    }

    /// The groups in the order of their places, which is that of their keys where these are numbers.
    pub(super) fn ascending(&self) -> Vec<u32> {
        self.slots.iter().filter(|slot| **slot > 0).map(|slot| slot - 1).collect()
    }

    /// The groups of rows of which no key is null, whose words are given per key; those that are new are made. With `edges` the
    /// words are those of groups elsewhere.
    pub(super) fn find(
        &mut self,
        keys: &[GroupKey],
        table: &mut GroupTable,
        columns: &[Vec<u64>],
        edges: bool,
    ) -> Result<Found> {
        let rows = columns.first().map_or(0, Vec::len);
        self.rows += rows as u64;
        let mut reached = Vec::with_capacity(keys.len());
        for (key, words) in keys.iter().zip(columns) {
            let Some(ends) = ends_of(words) else { return Ok(Found::Each(Vec::new())) };
            let Some(axis) = Axis::around(key, ends, edges)? else { return Ok(Found::Never) };
            reached.push(axis);
        }
        match self.reach(&reached, table) {
            Some(true) => {}
            Some(false) => return Ok(Found::NotNow),
            None => return Ok(Found::Never),
        }
        if !edges && reached.iter().all(|axis| axis.places == 1) {
            let place = self
                .axes
                .iter()
                .zip(&reached)
                .fold(0, |place, (axis, own)| place * axis.places + u64::try_from(own.above(axis)).unwrap_or(0));
            return Ok(Found::One(self.group_at(place as u32, table)));
        }
        let mut places = vec![0u32; rows];
        let mut stride = 1;
        for (axis, (key, words)) in self.axes.iter().zip(keys.iter().zip(columns)).rev() {
            if !edges {
                axis.add_places(key, words, stride, &mut places);
            } else if !axis.add_edges(words, stride, &mut places) {
                return Ok(Found::Never);
            }
            stride *= axis.places as u32;
        }
        for place in &mut places {
            *place = match self.slots.get(*place as usize) {
                Some(0) | None => self.group_at(*place, table),
                Some(slot) => slot - 1,
            };
        }
        Ok(Found::Each(places))
    }

    fn group_at(&mut self, place: u32, table: &mut GroupTable) -> u32 {
        let Some(slot) = self.slots.get_mut(place as usize) else { return 0 };
        if *slot > 0 {
            return *slot - 1;
        }
        self.words.resize(table.width(), 0);
        let mut left = u64::from(place);
        for (axis, word) in self.axes.iter().zip(&mut self.words).rev() {
            *word = axis.word(left % axis.places);
            left /= axis.places;
        }
        let group = table.push(&self.words);
        *slot = group + 1;
        group
    }

    /// Whether it finds the groups that there are.
    pub(super) fn is_active(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Makes the ranges reach to these too; whether there are slots for them, and `None` if there never will be.
    fn reach(&mut self, reached: &[Axis], table: &GroupTable) -> Option<bool> {
        let within = |(axis, own): (&Axis, &Axis)| {
            let above = own.above(axis);
            above >= 0 && above + i128::from(own.places) <= i128::from(axis.places)
        };
        if self.is_active() && self.axes.iter().zip(reached).all(within) {
            return Some(true);
        }
        let united = |with_room| match self.axes.is_empty() {
            true => Some(reached.to_vec()),
            false => self.axes.iter().zip(reached).map(|(axis, own)| axis.united(own, with_room)).collect(),
        };
        let (roomy, tight): (Option<Vec<Axis>>, Vec<Axis>) = (united(true), united(false)?);
        if let Some(axes) = roomy.into_iter().chain([tight.clone()]).find(|axes| self.is_affordable(axes)) {
            self.take_axes(axes, table);
            return Some(true);
        }
        (self.axes, self.slots) = (tight, Vec::new());
        slots_of(&self.axes).filter(|slots| *slots <= self.slots_max).map(|_| false)
    }

    fn is_affordable(&self, axes: &[Axis]) -> bool {
        let most = SLOTS_FREE.max(self.rows.saturating_mul(SLOTS_PER_ROW)).min(self.slots_max);
        slots_of(axes).is_some_and(|slots| slots <= most)
    }

    fn take_axes(&mut self, axes: Vec<Axis>, table: &GroupTable) {
        self.axes = axes;
        self.slots = vec![0; slots_of(&self.axes).unwrap_or(0) as usize];
        for group in 0..table.len() {
            let own = self.axes.iter().zip(table.key(group));
            let place = own.fold(0, |place, (axis, word)| place * axis.places + axis.place(*word));
            if let Some(slot) = self.slots.get_mut(place as usize) {
                *slot = group as u32 + 1;
            }
        }
    }
}

fn slots_of(axes: &[Axis]) -> Option<u64> {
    axes.iter().try_fold(1u64, |slots, axis| slots.checked_mul(axis.places))
}

/// The least and the greatest word.
fn ends_of(words: &[u64]) -> Option<(u64, u64)> {
    let first = *words.first()?;
    Some(words.iter().fold((first, first), |(min, max), word| (min.min(*word), max.max(*word))))
}

#[cfg(test)]
mod tests {
    use super::super::groups::{Groups, RowGroups};
    use super::*;
    use crate::base::NeverCancel;
    use crate::schema::{Datatype, TimeUnit};
    use crate::tile::ColumnView;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use std::sync::Arc;

    fn key(datatype: Datatype, bin: Bin) -> GroupKey {
        GroupKey { name: "k".to_owned(), datatype, nullable: true, bin }
    }

    fn keys() -> impl Strategy<Value = (GroupKey, Vec<u64>)> {
        let whole = prop_oneof![Just(Bin::None), (1u64..20).prop_map(Bin::Whole), Just(Bin::Whole(1 << 40))];
        let float = prop_oneof![(0.001f64..3.0).prop_map(Bin::Float), Just(Bin::Float(0.1))];
        let of_ints = prop_oneof![whole.clone(), float.clone()];
        let near = prop_oneof![
            3 => prop_oneof![8 => -30i64..30, 2 => -4_000i64..4_000].boxed(),
            1 => prop_oneof![60 => -30i64..30, 2 => -4_000i64..4_000, 1 => any::<i64>()].boxed(),
        ];
        let ints = prop_oneof![Just(Datatype::Int64), Just(Datatype::UInt64)];
        let ints = (ints, of_ints, prop::collection::vec(near.clone(), 1..300))
            .prop_map(|(datatype, bin, values)| (key(datatype, bin), values.into_iter().map(|v| v as u64).collect()));
        let time = Datatype::Datetime(TimeUnit::Second.step());
        let times = (whole, prop::collection::vec(prop_oneof![20 => near, 1 => Just(i64::MIN)], 1..300))
            .prop_map(move |(bin, values)| (key(time, bin), values.into_iter().map(|v| v as u64).collect()));
        let value = prop_oneof![9 => -20.0f64..20.0, 2 => -1e4f64..1e4, 1 => any::<f64>(), 1 => Just(-0.0)];
        let floats = (float, prop::collection::vec(value, 1..300))
            .prop_map(|(bin, values)| (key(Datatype::Float64, bin), values.into_iter().map(f64::to_bits).collect()));
        prop_oneof![ints, times, floats]
    }

    /// Values as bytes, and which are there.
    fn column(words: &[u64], nulls: Option<usize>) -> (Vec<u8>, Vec<u8>) {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        (bytes, (0..words.len()).map(|row| u8::from(nulls.is_none_or(|null| row % null != 0))).collect())
    }

    proptest! {
        #[test]
        fn groups_are_those_of_the_table(
            (first, values) in keys(),
            (second, others) in keys(),
            chunk in 1usize..80,
            nulls_from in prop::option::weighted(0.2, 0usize..300),
        ) {
            let keys = Arc::new(vec![first, second]);
            let (mut groups, mut merged) = (Groups::new(keys.clone()).unwrap(), Groups::new(keys.clone()).unwrap());
            let mut model: HashMap<Vec<Option<u64>>, u32> = HashMap::new();
            let rows = values.len().min(others.len());
            for at in (0..rows).step_by(chunk) {
                let part = at..(at + chunk).min(rows);
                let nulls = nulls_from.filter(|from| part.start >= *from).map(|_| 3);
                let held = [column(&values[part.clone()], nulls), column(&others[part.clone()], None)];
                let views: Vec<ColumnView<'_>> = held.iter().zip(keys.iter())
                    .map(|((bytes, valid), key)| ColumnView::new(key.datatype, bytes, None, Some(valid)).unwrap())
                    .collect();
                let words: Result<Vec<Vec<u64>>> = keys.iter().zip(&views).map(|(key, view)| key.words(*view)).collect();
                let Ok(words) = words else {
                    prop_assert!(groups.of_rows(part.len(), &views).is_err());
                    return Ok(());
                };
                let found = match groups.of_rows(part.len(), &views).unwrap() {
                    RowGroups::One(group) => vec![group; part.len()],
                    RowGroups::Each(each) => each,
                };
                for (row, group) in found.iter().enumerate() {
                    let own: Vec<Option<u64>> = words.iter().zip(&views)
                        .map(|(words, view)| view.is_valid(row).then_some(words[row])).collect();
                    let next = model.len() as u32;
                    prop_assert_eq!(*model.entry(own).or_insert(next), *group);
                }
                // The keys of all groups so far, given to others, are as many groups there.
                let all: Vec<u32> = (0..groups.len() as u32).collect();
                let given = groups.columns(&all).unwrap();
                let given: Vec<ColumnView<'_>> = given.iter().map(crate::tile::Column::view).collect();
                let theirs = merged.of_keys(all.len(), &given).unwrap();
                prop_assert_eq!(theirs, all);
            }
            prop_assert_eq!(groups.len(), model.len());
            let sorted = groups.sorted(&NeverCancel).unwrap();
            prop_assert_eq!(sorted.len(), model.len());
            prop_assert!(sorted.windows(2).all(|pair| groups.compare((pair[0], pair[1])).is_lt()));
        }
    }

    #[test]
    fn quotients_of_floats_are_those_of_whole_numbers() {
        for (n, d) in
            [(EXACT - 4, 3u64), (EXACT - 2, 1), (EXACT / 2, EXACT / 2 - 1), (EXACT - 1_001, 1_000), (999, 1_000)]
        {
            for n in n.saturating_sub(3)..=n {
                assert_eq!((n as f64 / d as f64) as u64, n / d, "{n} / {d}");
            }
        }
    }
}
