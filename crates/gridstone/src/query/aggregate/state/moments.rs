//! Variances and standard deviations.
//!
//! Each group has the number of its values, their mean, and the sum of squared distances from it. A run of one group is looked at
//! twice; single values are added as Welford does (1962); states are merged as Chan, Golub and LeVeque do (1979).

use super::input::{Input, Rows, State, field, floats_field, for_each_valid, longs_field, nullable_words, pick};
use super::sums::sum_of;
use crate::base::{Error, Result};
use crate::schema::{Datatype, Sorting};
use crate::tile::{Column, ColumnView, Numbers};

/// What becomes of the moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) struct Spread {
    /// Whether the values are all there are, rather than a sample.
    pub(in crate::query) population: bool,
    /// Whether the root is taken.
    pub(in crate::query) root: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Moment {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moment {
    fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    fn merge(&mut self, other: Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other;
            return;
        }
        let (mine, theirs) = (self.count as f64, other.count as f64);
        let (apart, all) = (other.mean - self.mean, mine + theirs);
        self.mean += apart * (theirs / all);
        self.squares += other.squares + apart * apart * (mine * theirs / all);
        self.count += other.count;
    }

    fn of_run(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let count = values.len() as f64;
        let mean = sum_of(values) / count;
        let apart: Vec<f64> = values.iter().map(|value| value - mean).collect();
        // What rounding of the mean left over is taken out.
        let rest = sum_of(&apart);
        let squares = sum_of(&apart.iter().map(|d| d * d).collect::<Vec<_>>()) - rest * rest / count;
        Self { count: values.len() as u64, mean, squares: if squares < 0.0 { 0.0 } else { squares } }
    }
}

/// Moments per group.
#[derive(Debug)]
pub(in crate::query) struct Moments {
    moments: Vec<Moment>,
    spread: Spread,
}

impl Moments {
    /// A state over values of a type.
    ///
    /// # Errors
    /// Input: values of this type have no variance.
    pub(in crate::query) fn new(datatype: Datatype, spread: Spread, text: &str) -> Result<Self> {
        if datatype.sorting() != Sorting::Keys || datatype.is_time() {
            return Err(Error::input(format!("{text}: values of {datatype} have no variance")));
        }
        Ok(Self { moments: Vec::new(), spread })
    }
}

impl State for Moments {
    fn fresh(&self) -> Box<dyn State> {
        Box::new(Self { moments: Vec::new(), spread: self.spread })
    }

    fn grow(&mut self, groups: usize) {
        self.moments.resize(groups, Moment::default());
    }

    fn update(&mut self, rows: Rows<'_>, input: &Input<'_>) -> Result<()> {
        let view = input.values()?;
        let mut values = Numbers::of(view).into_floats();
        if let Rows::One(group, _) = rows {
            if let Some(valid) = view.validity() {
                let mut valid = valid.iter();
                values.retain(|_| valid.next().is_some_and(|v| *v != 0));
            }
            let run = Moment::of_run(&values);
            self.moments.get_mut(group as usize).into_iter().for_each(|moment| moment.merge(run));
            return Ok(());
        }
        for_each_valid(rows, view.validity(), |row, group| {
            if let (Some(moment), Some(value)) = (self.moments.get_mut(group), values.get(row)) {
                moment.add(*value);
            }
        });
        Ok(())
    }

    fn absorb(&mut self, groups: &[u32], fields: &[ColumnView<'_>]) -> Result<()> {
        let (counts, means, squares) = (field(fields, 0)?, field(fields, 1)?, field(fields, 2)?);
        for (((group, count), mean), squares) in groups.iter().zip(counts).zip(means).zip(squares) {
            let other = Moment { count, mean: f64::from_bits(mean), squares: f64::from_bits(squares) };
            self.moments.get_mut(*group as usize).into_iter().for_each(|moment| moment.merge(other));
        }
        Ok(())
    }

    fn kinds(&self) -> Vec<(String, Datatype)> {
        let kinds = [("count", Datatype::UInt64), ("mean", Datatype::Float64), ("squares", Datatype::Float64)];
        kinds.map(|(name, datatype)| (name.to_owned(), datatype)).to_vec()
    }

    fn fields(&self, groups: &[u32]) -> Result<Vec<Column>> {
        let all = || pick(&self.moments, groups);
        Ok(vec![
            longs_field(all().map(|m| m.count))?,
            floats_field(all().map(|m| m.mean))?,
            floats_field(all().map(|m| m.squares))?,
        ])
    }

    fn finish(&self, groups: &[u32]) -> Result<Column> {
        let Spread { population, root } = self.spread;
        let result = |moment: Moment| {
            let free = moment.count.checked_sub(u64::from(!population)).filter(|free| *free > 0)?;
            let variance = moment.squares / free as f64;
            Some(if root { variance.sqrt() } else { variance }.to_bits())
        };
        nullable_words(Datatype::Float64, pick(&self.moments, groups).map(result))
    }

    fn size_bytes(&self) -> u64 {
        (self.moments.capacity() * size_of::<Moment>()) as u64
    }
}
