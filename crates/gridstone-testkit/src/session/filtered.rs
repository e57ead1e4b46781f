//! Reads and scans with a condition, compared with the oracle's selected rows.

use super::{Session, rows_of, show};
use crate::Dice;
use crate::coord::{Coord, box_texts};
use crate::filter::Filter;
use crate::model::{Expected, Model};
use crate::plan::Size;
use crate::value::Value;
use gridstone::base::Result;
use gridstone::engine::{Array, Call, Condition, ReadOrder, Span};

/// A box's range in a dimension.
#[derive(Debug)]
struct Side {
    span: Span,
    lo: Option<Coord>,
    hi: Option<Coord>,
}

impl Side {
    fn of_box(model: &Model, sub: Vec<(Coord, Coord)>, dice: &mut Dice) -> Vec<Self> {
        let side = |((lo, hi), (low, high)): ((Coord, Coord), (String, String))| {
            let (text, sparse) = (matches!(lo, Coord::Text(_)), model.schema().sparse());
            let (from, to) = (!sparse || dice.chance(85), !sparse || dice.chance(85));
            Self {
                span: Span {
                    lo: from.then(|| low.into()),
                    hi: to.then(|| high.into()),
                    below: text && dice.chance(40),
                },
                lo: from.then_some(lo),
                hi: to.then_some(hi),
            }
        };
        let texts = box_texts(model.dims(), &sub);
        sub.into_iter().zip(texts).map(side).collect()
    }

    fn holds(&self, at: Coord) -> bool {
        let below = |hi: Coord| if self.span.below { at < hi } else { at <= hi };
        self.lo.is_none_or(|lo| lo <= at) && self.hi.is_none_or(below)
    }
}

impl Session {
    /// Reads and streams a random box with a random condition.
    pub(super) fn filtered(&mut self, array: &Array, version: u64, dice: &mut Dice) {
        let plan = self.plan_at(version);
        let (sub, attrs, order) = Self::request_of(plan, dice);
        let filter = Filter::random(plan, dice);
        self.note(format!("read {} {order:?} {attrs:?} where {}", show(&sub), filter.text));
        let expected = self.selected(version, &filter, (&sub, &attrs), order);
        let condition = Condition::parse(&filter.text).unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        let (texts, names) = (box_texts(self.model.dims(), &sub), self.names(array, &attrs));
        let read = array.read_where(Some(&texts), Some(&names), &condition, order, &Call::default());
        let (cells, counters) = read.unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        assert_eq!(counters.cells_returned, cells.count as u64, "{self:?}");
        assert_eq!(cells.dims.len(), self.model.dims().len(), "{self:?}");
        self.same(rows_of(&self.model, &cells), expected.clone(), order);
        if dice.chance(40) {
            self.filtered_scan(array, (&texts, &names, &condition), (expected, order), dice);
        }
    }

    /// Reads some boxes together, which may overlap, perhaps with a condition. Their texts may be open-ended, or have a
    /// high end below the low one.
    pub(super) fn boxes(&mut self, array: &Array, version: u64, dice: &mut Dice) {
        let plan = self.plan_at(version);
        let (_, attrs, order) = Self::request_of(plan, dice);
        let boxes: Vec<Vec<Side>> =
            (0..dice.below(4)).map(|_| Side::of_box(&self.model, plan.a_box(dice), dice)).collect();
        let filter = dice.chance(30).then(|| Filter::random(plan, dice));
        let text = filter.as_ref().map(|filter| filter.text.clone());
        self.note(format!("read boxes {boxes:?} {order:?} {attrs:?} where {text:?}"));
        let all: Vec<usize> = (0..self.plan_at(version).schema.attrs().len()).collect();
        let rows = self.model.read(version, &self.plan_at(version).everything(), &all, order).into_iter();
        let inside = |place: &[Coord]| boxes.iter().any(|sides| sides.iter().zip(place).all(|(s, c)| s.holds(*c)));
        let taken = rows.filter(|(place, v)| inside(place) && filter.as_ref().is_none_or(|f| f.takes(place, v)));
        let kept = |values: Vec<Value>| attrs.iter().map(|a| values[*a].clone()).collect();
        let expected: Vec<Expected> = taken.map(|(place, values)| (place, kept(values))).collect();
        let spans: Vec<Vec<Span>> = boxes.iter().map(|sides| sides.iter().map(|s| s.span.clone()).collect()).collect();
        let region = array.region(&spans).unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        let condition = text.map(|text| Condition::parse(&text).unwrap());
        let (names, call) = (self.names(array, &attrs), Call::default());
        let read = array.read_region(Some(&region), Some(&names), condition.as_ref(), order, &call);
        let (cells, _) = read.unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        self.same(rows_of(&self.model, &cells), expected.clone(), order);
        let scan = array.scan_region(Some(&region), Some(&names), condition.as_ref(), order, 5_000, &call);
        let (mut scan, mut found) = (scan.unwrap_or_else(|e| panic!("{e}\n{self:?}")), Vec::new());
        while let Some(cells) = scan.next_batch().unwrap_or_else(|e| panic!("{e}\n{self:?}")) {
            found.extend(rows_of(&self.model, &cells));
        }
        self.same(found, expected, order);
    }

    /// A read with a random condition that may fail.
    pub(super) fn try_filtered(
        &self,
        array: &Array,
        (sub, attrs, order): (&[(Coord, Coord)], &[usize], ReadOrder),
        dice: &mut Dice,
    ) -> Result<()> {
        let filter = Filter::random(&self.plan, dice);
        let condition = Condition::parse(&filter.text).unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        let (texts, names) = (box_texts(self.model.dims(), sub), self.names(array, attrs));
        let (cells, _) = array.read_where(Some(&texts), Some(&names), &condition, order, &Call::default())?;
        let expected = self.selected(self.model.newest(), &filter, (sub, attrs), order);
        self.same(rows_of(&self.model, &cells), expected, order);
        Ok(())
    }

    fn filtered_scan(
        &self,
        array: &Array,
        (texts, names, condition): (&[(String, String)], &[String], &Condition),
        (expected, order): (Vec<Expected>, ReadOrder),
        dice: &mut Dice,
    ) {
        let few = self.plan.size == Size::Tiny && self.model.versions().len() < 20;
        let batch = *dice.pick(if few { &[1, 200, 5_000] } else { &[20_000, 300_000, 1 << 30] });
        let scan = array.scan_where(Some(texts), Some(names), condition, order, batch, &Call::default());
        let mut scan = scan.unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        let mut found = Vec::new();
        while let Some(cells) = scan.next_batch().unwrap_or_else(|e| panic!("{e}\n{self:?}")) {
            assert!(cells.count > 0, "an empty batch\n{self:?}");
            found.extend(rows_of(&self.model, &cells));
        }
        self.same(found, expected, order);
    }

    /// The oracle's rows that a filter selects.
    pub(super) fn selected(
        &self,
        version: u64,
        filter: &Filter,
        (sub, attrs): (&[(Coord, Coord)], &[usize]),
        order: ReadOrder,
    ) -> Vec<Expected> {
        let all: Vec<usize> = (0..self.plan_at(version).schema.attrs().len()).collect();
        let rows = self.model.read(version, sub, &all, order).into_iter();
        let taken = rows.filter(|(place, values)| filter.takes(place, values));
        taken.map(|(place, values)| (place, attrs.iter().map(|a| values[*a].clone()).collect())).collect()
    }
}
