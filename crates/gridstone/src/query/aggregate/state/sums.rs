//! Sums and means.
//!
//! Integers are added in 128 bits, so that no order of additions matters. Floats are added with what each addition lost kept
//! beside the sum (Knuth, "The Art of Computer Programming" vol. 2, 4.2.2, theorem B; Neumaier 1974). Runs of one group are
//! added in lanes first.

use super::input::{
    Input, Known, Lines, Rows, State, field, floats_field, for_each_valid, longs_field, nullable_words, pick, strange,
    valid_count, words_column,
};
use crate::base::{ElementKind, Error, Result};
use crate::schema::Datatype;
use crate::tile::{Column, ColumnView, Numbers};

/// Sums of floats that are added side by side.
const LANES: usize = 8;

/// What becomes of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) enum Total {
    /// The sum itself.
    Sum,
    /// Divided by the number of values.
    Mean,
}

/// The sum of a group, and the number of its values. What belongs together lies together: groups are visited in no order.
#[derive(Debug, Clone, Copy, Default)]
struct Integer {
    sum: i128,
    count: u64,
}

/// The same of floats, with what the additions lost.
#[derive(Debug, Clone, Copy, Default)]
struct Float {
    sum: f64,
    lost: f64,
    count: u64,
}

#[derive(Debug)]
enum Sum {
    Integers(Vec<Integer>),
    Floats(Vec<Float>),
}

/// A sum per group.
#[derive(Debug)]
pub(in crate::query) struct Sums {
    sums: Sum,
    datatype: Datatype,
    total: Total,
    /// The aggregate as it was written, for errors.
    text: String,
}

/// Adds `value` to a sum, and what is lost to `lost`.
pub(super) fn add(sum: &mut f64, lost: &mut f64, value: f64) {
    let total = *sum + value;
    let held = total - *sum;
    *lost += (*sum - (total - held)) + (value - held);
    *sum = total;
}

/// The sum with what was lost of it.
pub(super) fn settled(sum: f64, lost: f64) -> f64 {
    if sum.is_finite() { sum + lost } else { sum }
}

/// The sum of a run.
pub(super) fn sum_of(values: &[f64]) -> f64 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane += value);
    }
    lanes.iter().sum::<f64>() + rest.iter().sum::<f64>()
}

impl Sums {
    /// A state over values of a type.
    ///
    /// # Errors
    /// Input: values of this type have no sum.
    pub(in crate::query) fn new(datatype: Datatype, total: Total, text: &str) -> Result<Self> {
        let summable = !matches!(datatype, Datatype::Datetime(_)) || total == Total::Mean;
        let sums = match datatype.element().kind {
            _ if !summable || datatype.sorting() != crate::schema::Sorting::Keys => {
                let name = if total == Total::Sum { "sum" } else { "mean" };
                return Err(Error::input(format!("{text}: values of {datatype} have no {name}")));
            }
            ElementKind::Float => Sum::Floats(Vec::new()),
            ElementKind::Signed | ElementKind::Unsigned => Sum::Integers(Vec::new()),
        };
        Ok(Self { sums, datatype, total, text: text.to_owned() })
    }

    fn unfit(&self, sum: i128) -> Error {
        Error::input(format!(
            "{} is {sum}, which does not fit 64 bits; sum floats instead: sum(cast(x as float64))",
            self.text
        ))
    }

    fn integer(&self, sum: i128, count: u64) -> Result<u64> {
        if self.datatype.is_time() {
            let sum = if self.total == Total::Mean { sum.div_euclid(i128::from(count.max(1))) } else { sum };
            return i64::try_from(sum).map(|sum| sum as u64).map_err(|_| self.unfit(sum));
        }
        if self.total == Total::Mean {
            return Ok(quotient(sum, count).to_bits());
        }
        match self.result() {
            Datatype::UInt64 => u64::try_from(sum).map_err(|_| self.unfit(sum)),
            _ => i64::try_from(sum).map(|sum| sum as u64).map_err(|_| self.unfit(sum)),
        }
    }

    fn result(&self) -> Datatype {
        match (&self.sums, self.total) {
            (Sum::Integers(_), _) if self.datatype.is_time() => self.datatype,
            (Sum::Integers(_), Total::Sum) if self.datatype == Datatype::Bool => Datatype::Int64,
            (Sum::Integers(_), Total::Sum) => match self.datatype.element().kind {
                ElementKind::Unsigned => Datatype::UInt64,
                ElementKind::Signed | ElementKind::Float => Datatype::Int64,
            },
            _ => Datatype::Float64,
        }
    }

    /// NaT makes a sum of times NaT.
    fn is_nat(&self, value: i64) -> bool {
        self.datatype.is_time() && value == i64::MIN
    }

    /// Adds rows of one group, `more` of which have a value.
    fn add_run(&mut self, group: usize, more: u64, numbers: &Numbers, validity: Option<&[u8]>) {
        match (&mut self.sums, numbers) {
            (Sum::Floats(sums), Numbers::Float(values)) => {
                let run = match validity {
                    None => sum_of(values),
                    Some(valid) => sum_of(
                        &values.iter().zip(valid).map(|(v, k)| if *k == 0 { 0.0 } else { *v }).collect::<Vec<_>>(),
                    ),
                };
                if let Some(own) = sums.get_mut(group) {
                    add(&mut own.sum, &mut own.lost, run);
                    own.count += more;
                }
            }
            (Sum::Integers(sums), numbers) => {
                if let Some(own) = sums.get_mut(group) {
                    own.sum += whole_sum_of(numbers, validity);
                    own.count += more;
                }
            }
            _ => {}
        }
    }

    /// Adds rows in lines of one group, or of groups side by side.
    fn add_lines(&mut self, lines: Lines<'_>, numbers: &Numbers) {
        let (length, count) = (lines.length.max(1), lines.length as u64);
        let firsts = lines.firsts.iter().map(|first| *first as usize);
        match (&mut self.sums, numbers) {
            (Sum::Floats(sums), Numbers::Float(values)) if lines.step == 0 => {
                for (first, line) in firsts.zip(values.chunks(length)) {
                    if let Some(own) = sums.get_mut(first) {
                        add(&mut own.sum, &mut own.lost, sum_of(line));
                        own.count += count;
                    }
                }
            }
            (Sum::Floats(sums), Numbers::Float(values)) => {
                for (first, line) in firsts.zip(values.chunks(length)) {
                    for (own, value) in sums.get_mut(first..).unwrap_or_default().iter_mut().zip(line) {
                        add(&mut own.sum, &mut own.lost, *value);
                        own.count += 1;
                    }
                }
            }
            _ => self.add_each(Rows::Lines(lines), numbers, None),
        }
    }

    fn add_each(&mut self, rows: Rows<'_>, numbers: &Numbers, validity: Option<&[u8]>) {
        match (&mut self.sums, numbers) {
            (Sum::Floats(sums), Numbers::Float(values)) => for_each_valid(rows, validity, |row, group| {
                if let (Some(own), Some(value)) = (sums.get_mut(group), values.get(row)) {
                    add(&mut own.sum, &mut own.lost, *value);
                    own.count += 1;
                }
            }),
            (Sum::Integers(sums), Numbers::Signed(values)) => for_each_valid(rows, validity, |row, group| {
                if let (Some(own), Some(value)) = (sums.get_mut(group), values.get(row)) {
                    own.sum += i128::from(*value);
                    own.count += 1;
                }
            }),
            (Sum::Integers(sums), Numbers::Unsigned(values)) => for_each_valid(rows, validity, |row, group| {
                if let (Some(own), Some(value)) = (sums.get_mut(group), values.get(row)) {
                    own.sum += i128::from(*value);
                    own.count += 1;
                }
            }),
            _ => {}
        }
    }
}

/// The sum of a run of whole numbers.
fn whole_sum_of(numbers: &Numbers, validity: Option<&[u8]>) -> i128 {
    let is_valid = |row: usize| validity.is_none_or(|valid| valid.get(row).is_some_and(|v| *v != 0));
    match (numbers, validity) {
        // The halves are added apart, in 64 bits each.
        (Numbers::Signed(values), None) => values
            .chunks(1 << 20)
            .map(|chunk| {
                let low: u64 = chunk.iter().map(|v| *v as u64 & 0xffff_ffff).sum();
                let high: i64 = chunk.iter().map(|v| v >> 32).sum();
                (i128::from(high) << 32) + i128::from(low)
            })
            .sum(),
        (Numbers::Signed(values), Some(_)) => {
            (0..).zip(values).filter(|(row, _)| is_valid(*row)).map(|(_, v)| i128::from(*v)).sum()
        }
        (Numbers::Unsigned(values), _) => {
            (0..).zip(values).filter(|(row, _)| is_valid(*row)).map(|(_, v)| i128::from(*v)).sum()
        }
        (Numbers::Float(_), _) => 0,
    }
}

/// A sum divided by a count, rounded once where the sum is a float, and to about a unit in the last place else.
fn quotient(sum: i128, count: u64) -> f64 {
    let (whole, count) = (sum.unsigned_abs(), u128::from(count.max(1)));
    // The whole part and the rest apart: a sum of 128 bits has more digits than a float. Both have one sign, so nothing cancels.
    let quotient = (whole / count) as f64 + (whole % count) as f64 / count as f64;
    if sum < 0 { -quotient } else { quotient }
}

impl State for Sums {
    fn fresh(&self) -> Box<dyn State> {
        let sums = match &self.sums {
            Sum::Integers(_) => Sum::Integers(Vec::new()),
            Sum::Floats(_) => Sum::Floats(Vec::new()),
        };
        Box::new(Self { sums, text: self.text.clone(), ..*self })
    }

    fn grow(&mut self, groups: usize) {
        match &mut self.sums {
            Sum::Integers(sums) => sums.resize_with(groups, Integer::default),
            Sum::Floats(sums) => sums.resize_with(groups, Float::default),
        }
    }

    fn update(&mut self, rows: Rows<'_>, input: &Input<'_>) -> Result<()> {
        let view = input.values()?;
        let numbers = Numbers::of(view);
        if let Numbers::Signed(values) = &numbers
            && self.datatype.is_time()
            && (0..values.len()).any(|row| view.is_valid(row) && values.get(row).is_some_and(|v| self.is_nat(*v)))
        {
            return Err(Error::input(format!("{}: some values are NaT; leave them out by a condition", self.text)));
        }
        match rows {
            Rows::One(group, count) => {
                let more = valid_count(count, view.validity());
                self.add_run(group as usize, more, &numbers, view.validity());
            }
            Rows::Lines(lines) if view.validity().is_none() && lines.step <= 1 => self.add_lines(lines, &numbers),
            Rows::Each(_) | Rows::Lines(_) => self.add_each(rows, &numbers, view.validity()),
        }
        Ok(())
    }

    fn absorb(&mut self, groups: &[u32], fields: &[ColumnView<'_>]) -> Result<()> {
        let (first, second, counts) = (field(fields, 0)?, field(fields, 1)?, field(fields, 2)?);
        let too_large = || Error::input(format!("{}: the sum does not fit 128 bits", self.text));
        let theirs = first.into_iter().zip(second).zip(counts);
        for (group, ((first, second), count)) in groups.iter().map(|group| *group as usize).zip(theirs) {
            match &mut self.sums {
                Sum::Integers(sums) => {
                    let more = (i128::from(second as i64) << 64) | i128::from(first);
                    let own = sums.get_mut(group).ok_or_else(strange)?;
                    own.sum = own.sum.checked_add(more).ok_or_else(too_large)?;
                    own.count += count;
                }
                Sum::Floats(sums) => {
                    let own = sums.get_mut(group).ok_or_else(strange)?;
                    add(&mut own.sum, &mut own.lost, f64::from_bits(first));
                    own.lost += f64::from_bits(second);
                    own.count += count;
                }
            }
        }
        Ok(())
    }

    fn can_know(&self) -> bool {
        !self.datatype.is_time()
    }

    fn known(&self, _rows: u64, known: Option<&Known>) -> Result<Option<Vec<Column>>> {
        let Some(known) = known else { return Ok(None) };
        let count = longs_field(std::iter::once(known.valid()))?;
        Ok(match (&self.sums, known.sum) {
            (Sum::Integers(_), crate::tile::Sum::Integer(sum)) => Some(vec![
                longs_field(std::iter::once(sum as u64))?,
                words_column(Datatype::Int64, std::iter::once((sum >> 64) as u64))?,
                count,
            ]),
            (Sum::Floats(_), crate::tile::Sum::Float(sum)) => {
                let sum = if known.nans > 0 { f64::NAN } else { sum };
                Some(vec![floats_field(std::iter::once(sum))?, floats_field(std::iter::once(0.0))?, count])
            }
            _ => None,
        })
    }

    fn kinds(&self) -> Vec<(String, Datatype)> {
        let (first, second) = match &self.sums {
            Sum::Integers(_) => (("low", Datatype::UInt64), ("high", Datatype::Int64)),
            Sum::Floats(_) => (("sum", Datatype::Float64), ("lost", Datatype::Float64)),
        };
        [first, second, ("count", Datatype::UInt64)].map(|(name, datatype)| (name.to_owned(), datatype)).to_vec()
    }

    fn fields(&self, groups: &[u32]) -> Result<Vec<Column>> {
        match &self.sums {
            Sum::Integers(sums) => Ok(vec![
                longs_field(pick(sums, groups).map(|own| own.sum as u64))?,
                words_column(Datatype::Int64, pick(sums, groups).map(|own| (own.sum >> 64) as u64))?,
                longs_field(pick(sums, groups).map(|own| own.count))?,
            ]),
            Sum::Floats(sums) => Ok(vec![
                floats_field(pick(sums, groups).map(|own| own.sum))?,
                floats_field(pick(sums, groups).map(|own| own.lost))?,
                longs_field(pick(sums, groups).map(|own| own.count))?,
            ]),
        }
    }

    fn finish(&self, groups: &[u32]) -> Result<Column> {
        let words: Vec<Option<u64>> = match &self.sums {
            Sum::Integers(sums) => {
                let word = |own: Integer| match own.count {
                    0 => Ok(None),
                    count => self.integer(own.sum, count).map(Some),
                };
                pick(sums, groups).map(word).collect::<Result<_>>()?
            }
            Sum::Floats(sums) => {
                let total = |own: Float| {
                    let sum = settled(own.sum, own.lost);
                    let sum = if self.total == Total::Mean { sum / own.count as f64 } else { sum };
                    (own.count > 0).then(|| sum.to_bits())
                };
                pick(sums, groups).map(total).collect()
            }
        };
        nullable_words(self.result(), words.into_iter())
    }

    fn size_bytes(&self) -> u64 {
        (match &self.sums {
            Sum::Integers(sums) => sums.capacity() * size_of::<Integer>(),
            Sum::Floats(sums) => sums.capacity() * size_of::<Float>(),
        }) as u64
    }
}
