//! Prunes blocks by statistics and boxes: decides about many rows without reading them.

use super::bind::{Bound, Field, Node, Place};
use super::interval::Cut;
use super::pair::{self, Pair};
use super::values::{Values, keys_of, last_below};
use crate::schema::text::{interval_hull, text_of, word_interval};
use crate::schema::{Datatype, KeyRange, Schema, Sorting, Subarray, key};
use crate::tile::{Bound as Limit, Statistics};
use std::cmp::Ordering;
use std::ops::Bound as End;

/// How many of some rows a condition selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Certainly none.
    None,
    /// Certainly all.
    All,
    /// Possibly some; they must be tested.
    Some,
}

/// The known facts about the rows of a tile, a block or a fragment.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    rows: u64,
    sub: Option<&'a Subarray>,
    attrs: Vec<(usize, &'a Statistics)>,
}

impl<'a> Facts<'a> {
    /// Facts with nothing known but the number of rows.
    pub fn new(rows: u64) -> Self {
        Self { rows, sub: None, attrs: Vec::new() }
    }

    /// Adds that all their coordinates lie in `sub`.
    #[must_use]
    pub fn within(mut self, sub: &'a Subarray) -> Self {
        self.sub = Some(sub);
        self
    }

    /// Adds the statistics of exactly these rows' values of the attribute with index `place` in the schema.
    #[must_use]
    pub fn with_attr(mut self, place: usize, statistics: &'a Statistics) -> Self {
        self.attrs.push((place, statistics));
        self
    }
}

impl Bound {
    /// How many of the rows that `facts` describe are selected; [`Verdict::Some`] if that is unknown.
    pub fn prune(&self, facts: &Facts<'_>) -> Verdict {
        if facts.rows == 0 { Verdict::None } else { verdict(&self.root, facts) }
    }

    /// The smallest box that the condition confines the coordinates to, each part of it taken by itself; `None` if no
    /// coordinate can be selected. Rows outside are never selected.
    pub fn bounds(&self, schema: &Schema) -> Option<Subarray> {
        self.reach(&schema.domain())
    }

    /// The smallest box that it confines coordinates in `sub` to; `None` if none of them can be selected.
    pub fn reach(&self, sub: &Subarray) -> Option<Subarray> {
        confine(&self.root, sub)
    }

    /// The largest number of integer cells of `sub` that it may select by their coordinates, saturating.
    pub fn cells_max(&self, sub: &Subarray) -> u128 {
        cells_max(&self.root, sub)
    }

    /// The boxes of its region within `sub`, if it has a region that every cell must lie in.
    pub fn listed(&self, sub: &Subarray) -> Option<Vec<Subarray>> {
        listed(&self.root, sub)
    }
}

fn verdict(node: &Node, facts: &Facts<'_>) -> Verdict {
    match node {
        Node::Constant(true) => Verdict::All,
        Node::Constant(false) => Verdict::None,
        Node::Valid(field) => by_nulls(*field, facts, Verdict::None, Verdict::All),
        Node::Null(field) => by_nulls(*field, facts, Verdict::All, Verdict::None),
        Node::In(field, values) => Spread::of(*field, facts).map_or(Verdict::Some, |s| s.verdict(values)),
        Node::Pair(pair) => of_pair(pair, facts),
        Node::Computed(_) => Verdict::Some,
        Node::Within(region) => match facts.sub {
            Some(sub) if region.covers(sub) => Verdict::All,
            Some(sub) if !region.touches(sub) => Verdict::None,
            _ => Verdict::Some,
        },
        Node::And(args) => joined(args, facts, Verdict::All, Verdict::None),
        Node::Or(args) => joined(args, facts, Verdict::None, Verdict::All),
    }
}

/// `settled` as soon as one part has this verdict, `neutral` if all parts do.
fn joined(args: &[Node], facts: &Facts<'_>, neutral: Verdict, settled: Verdict) -> Verdict {
    let mut found = neutral;
    for arg in args {
        match verdict(arg, facts) {
            v if v == settled => return settled,
            v if v == neutral => {}
            _ => found = Verdict::Some,
        }
    }
    found
}

fn by_nulls(field: Field, facts: &Facts<'_>, all_null: Verdict, none_null: Verdict) -> Verdict {
    let nulls = match field.place {
        Place::Dim(_) | Place::Text { .. } => Some(0),
        Place::Attr(place) => facts.attrs.iter().find(|(p, _)| *p == place).map(|(_, s)| s.null_count),
    };
    match nulls {
        Some(0) => none_null,
        Some(nulls) if nulls == facts.rows => all_null,
        _ => Verdict::Some,
    }
}

/// The known facts about one column: how many rows are null, NaN, or a value, and the range of the values.
struct Spread {
    nulls: u64,
    nans: u64,
    values: u64,
    range: Range,
}

enum Range {
    /// Inclusive keys.
    Keys(u64, u64),
    /// Half-open texts.
    Texts(Cut, Cut),
}

impl Spread {
    /// `None` if nothing is known, or the facts do not fit the rows or the type.
    fn of(field: Field, facts: &Facts<'_>) -> Option<Self> {
        match field.place {
            Place::Dim(place) => {
                let range = facts.sub?.ranges().get(place)?;
                Some(Self { nulls: 0, nans: 0, values: facts.rows, range: Range::Keys(range.lo, range.hi) })
            }
            Place::Text { axis, words } => {
                let ranges = facts.sub?.ranges().get(axis..axis + words)?;
                // The corners may be no valid texts, but no text in the box lies beyond them.
                let (low, high) = (text_of(ranges.iter().map(|r| r.lo)), text_of(ranges.iter().map(|r| r.hi)));
                let range = Range::Texts(Cut::Below(low), Cut::above(&high));
                Some(Self { nulls: 0, nans: 0, values: facts.rows, range })
            }
            Place::Attr(place) => {
                let (_, statistics) = facts.attrs.iter().find(|(p, _)| *p == place)?;
                let (nulls, nans) = (statistics.null_count, statistics.nan_count);
                let values = facts.rows.checked_sub(nulls)?.checked_sub(nans)?;
                Some(Self { nulls, nans, values, range: range_of(field.datatype, statistics)? })
            }
        }
    }

    fn verdict(&self, accepted: &Values) -> Verdict {
        let (touched, covered, nan) = match (accepted, &self.range) {
            (Values::Keys(set, nan), Range::Keys(lo, hi)) => {
                // Ends that are no value's key (between two of float32) only make this more conservative.
                let (lo, hi) = (u128::from(*lo), u128::from(*hi) + 1);
                (set.touches(&lo, &hi), set.covers(&lo, &hi), *nan)
            }
            (Values::Texts(set), Range::Texts(from, to)) => (set.touches(from, to), set.covers(from, to), false),
            _ => return Verdict::Some,
        };
        let may = (self.values > 0 && touched) || (self.nans > 0 && nan);
        let must = self.nulls == 0 && (self.nans == 0 || nan) && (self.values == 0 || covered);
        match (may, must) {
            (false, _) => Verdict::None,
            (true, true) => Verdict::All,
            (true, false) => Verdict::Some,
        }
    }
}

/// The range of the values by the statistics; the type's own ends if one is missing.
fn range_of(datatype: Datatype, statistics: &Statistics) -> Option<Range> {
    let bytes = |limit: &Option<Limit>| limit.as_ref().map(|l| l.bytes.clone());
    let (min, max) = (bytes(&statistics.min), bytes(&statistics.max));
    if datatype.sorting() == Sorting::Bytes {
        let from = Cut::Below(min.unwrap_or_default());
        return Some(Range::Texts(from, max.map_or(Cut::End, |text| Cut::above(&text))));
    }
    let (first, end) = keys_of(datatype);
    let key_of = |bytes: Vec<u8>| match key::encode(datatype, &bytes).ok()?.as_slice() {
        [key] => Some(*key),
        _ => None,
    };
    let lo = min.map_or_else(|| u64::try_from(first).ok(), key_of)?;
    let hi = max.map_or_else(|| u64::try_from(end - 1).ok(), key_of)?;
    (lo <= hi).then_some(Range::Keys(lo, hi))
}

/// The verdict for a comparison of two columns.
fn of_pair(pair: &Pair, facts: &Facts<'_>) -> Verdict {
    let (Some(a), Some(b)) = (Spread::of(pair.left, facts), Spread::of(pair.right, facts)) else {
        return Verdict::Some;
    };
    if a.nulls == facts.rows || b.nulls == facts.rows {
        return Verdict::None;
    }
    let (Some(least), Some(greatest)) = extremes(pair, &a.range, &b.range) else { return Verdict::Some };
    let mut possible = if a.nans > 0 || b.nans > 0 { pair::outcome(None) } else { 0 };
    if a.values > 0 && b.values > 0 {
        possible |= between(least, greatest);
    }
    if possible & pair.outcomes == 0 {
        Verdict::None
    } else if possible & !pair.outcomes == 0 && a.nulls == 0 && b.nulls == 0 {
        Verdict::All
    } else {
        Verdict::Some
    }
}

/// The order of the least value on the left and the greatest on the right, and of the greatest and the least.
fn extremes(pair: &Pair, a: &Range, b: &Range) -> (Option<Ordering>, Option<Ordering>) {
    let (left, right) = (pair.left.datatype, pair.right.datatype);
    match (a, b) {
        (Range::Keys(a, z), Range::Keys(b, y)) => {
            (pair::compare_keys((left, *a), (right, *y)), pair::compare_keys((left, *z), (right, *b)))
        }
        (Range::Texts(a, z), Range::Texts(b, y)) => (Some(below(a, y)), Some(below(b, z).reverse())),
        _ => (None, None),
    }
}

/// The order of the least text above `from` and the greatest below `to`, which may be the least itself.
fn below(from: &Cut, to: &Cut) -> Ordering {
    match from {
        _ if from >= to => Ordering::Greater,
        Cut::Below(text) if Cut::above(text) == *to => Ordering::Equal,
        _ => Ordering::Less,
    }
}

/// The outcomes from least against greatest to greatest against least.
fn between(least: Ordering, greatest: Ordering) -> u8 {
    let [less, equal, greater] = [Ordering::Less, Ordering::Equal, Ordering::Greater].map(|o| pair::outcome(Some(o)));
    match (least, greatest) {
        (Ordering::Greater, _) => greater,
        (_, Ordering::Less) => less,
        (Ordering::Equal, Ordering::Equal) => equal,
        (Ordering::Equal, _) => equal | greater,
        (_, Ordering::Equal) => less | equal,
        (Ordering::Less, Ordering::Greater) => less | equal | greater,
    }
}

/// The start of the texts above a cut, as coordinates. Coordinates have no NUL, so the cut directly above a text means
/// that the text itself is excluded.
fn texts_from(cut: &Cut) -> Option<End<&[u8]>> {
    let Cut::Below(text) = cut else { return None };
    Some(
        text.iter()
            .position(|b| *b == 0)
            .map_or(End::Included(text), |end| End::Excluded(text.get(..end).unwrap_or_default())),
    )
}

/// The end of the texts below a cut.
fn texts_to(cut: &Cut) -> End<&[u8]> {
    let Cut::Below(text) = cut else { return End::Unbounded };
    text.iter()
        .position(|b| *b == 0)
        .map_or(End::Excluded(text), |end| End::Included(text.get(..end).unwrap_or_default()))
}

fn cells_max(node: &Node, sub: &Subarray) -> u128 {
    let all = sub.cells();
    match node {
        Node::Constant(false) => 0,
        Node::Within(region) => {
            let parts = region.touching(sub).into_iter().filter_map(|b| b.intersect(sub));
            parts.fold(0, |n: u128, part| n.saturating_add(part.cells())).min(all)
        }
        Node::And(args) => args.iter().map(|arg| cells_max(arg, sub)).min().unwrap_or(all),
        _ => all,
    }
}

fn listed(node: &Node, sub: &Subarray) -> Option<Vec<Subarray>> {
    match node {
        Node::Within(region) => Some(region.touching(sub).into_iter().filter_map(|b| b.intersect(sub)).collect()),
        Node::And(args) => args.iter().find_map(|arg| listed(arg, sub)),
        _ => None,
    }
}

fn confine(node: &Node, sub: &Subarray) -> Option<Subarray> {
    match node {
        Node::Constant(false) => None,
        Node::In(Field { place: Place::Dim(place), datatype, .. }, Values::Keys(set, _)) => {
            let mut ranges = sub.ranges().to_vec();
            let range = ranges.get_mut(*place)?;
            let domain = super::interval::Intervals::one(range.lo.into(), u128::from(range.hi) + 1);
            let inside = set.intersect(&domain);
            let (from, to) = (inside.list().first()?.0, inside.list().last()?.1);
            let (lo, hi) = (u64::try_from(from).ok()?, last_below(*datatype, to));
            *range = KeyRange { lo, hi };
            (lo <= hi).then(|| Subarray::new(ranges))
        }
        Node::In(Field { place: Place::Text { axis, words }, .. }, Values::Texts(set)) => {
            let (from, to) = (&set.list().first()?.0, &set.list().last()?.1);
            let (low, high) = word_interval(texts_from(from)?, texts_to(to), *words)?;
            let mut ranges = sub.ranges().to_vec();
            for (slot, range) in ranges.iter_mut().skip(*axis).zip(interval_hull(&low, &high)) {
                *slot = slot.intersect(range)?;
            }
            Some(Subarray::new(ranges))
        }
        Node::Within(region) => region.hull_within(sub),
        Node::And(args) => args.iter().try_fold(sub.clone(), |sub, arg| confine(arg, &sub)),
        Node::Or(args) => args.iter().filter_map(|arg| confine(arg, sub)).reduce(|a, b| a.union(&b)),
        _ => Some(sub.clone()),
    }
}
