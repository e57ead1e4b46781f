//! Reads and scans with a condition, against the oracle's rows of which those selected are kept.

use super::{Session, rows_of, show};
use crate::Dice;
use crate::coord::{Coord, box_texts};
use crate::filter::Filter;
use crate::model::Expected;
use crate::plan::Size;
use gridstone::base::Result;
use gridstone::engine::{Array, Call, Condition, ReadOrder};

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

    /// The rows of the oracle that a filter takes.
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
