//! What states are given, what they give, and the columns of numbers that they read and write.

use crate::base::{AlignedBuf, Error, Result};
use crate::schema::Datatype;
use crate::tile::{Column, ColumnView, Sum};

/// The groups that rows belong to.
#[derive(Debug, Clone, Copy)]
pub(in crate::query) enum Rows<'a> {
    /// All of so many rows to one group.
    One(u32, usize),
    /// Each row to its own.
    Each(&'a [u32]),
    /// Rows in lines of one length, each line from its group on.
    Lines(Lines<'a>),
}

/// Rows in lines, as the cells of a box: each line has rows of one group, or of groups that follow each other.
#[derive(Debug, Clone, Copy)]
pub(in crate::query) struct Lines<'a> {
    /// The group of the first row of each.
    pub(in crate::query) firsts: &'a [u32],
    /// Rows of each.
    pub(in crate::query) length: usize,
    /// How far the groups of two neighbours are apart.
    pub(in crate::query) step: u32,
}

impl Lines<'_> {
    /// The group of a row.
    pub(in crate::query) fn group(&self, row: usize) -> u32 {
        let length = self.length.max(1);
        self.firsts.get(row / length).map_or(0, |first| first + (row % length) as u32 * self.step)
    }
}

/// Where rows stand in the order of the array: their coordinates as ordered keys, a column per axis, and the number of the
/// first of them, for cells at one place.
#[derive(Debug, Clone, Copy)]
pub(in crate::query) struct Positions<'a> {
    pub(in crate::query) axes: &'a [Vec<u64>],
    pub(in crate::query) first: u64,
}

/// What an aggregate is given of rows.
#[derive(Debug, Clone, Copy)]
pub(in crate::query) struct Input<'a> {
    /// The arguments.
    pub(in crate::query) args: &'a [ColumnView<'a>],
    pub(in crate::query) positions: Positions<'a>,
}

impl<'a> Input<'a> {
    /// The first argument.
    pub(in crate::query) fn values(&self) -> Result<ColumnView<'a>> {
        self.args.first().copied().ok_or_else(|| Error::input("an aggregate lacks its argument"))
    }
}

/// What is known of all values of some rows without reading them.
#[derive(Debug)]
pub(in crate::query) struct Known {
    pub(in crate::query) datatype: Datatype,
    pub(in crate::query) rows: u64,
    pub(in crate::query) nulls: u64,
    pub(in crate::query) nans: u64,
    /// The least and the greatest value, NaN aside; `None` if there is none, or they are not known.
    pub(in crate::query) ends: Option<(Vec<u8>, Vec<u8>)>,
    /// The sum, NaN aside.
    pub(in crate::query) sum: Sum,
}

impl Known {
    /// How many values there are, NaN among them.
    pub(in crate::query) fn valid(&self) -> u64 {
        self.rows.saturating_sub(self.nulls)
    }
}

/// What an aggregate has seen of each group.
pub(in crate::query) trait State: std::fmt::Debug + Send + Sync {
    /// A state of the same kind that has seen nothing.
    fn fresh(&self) -> Box<dyn State>;

    /// Makes room for so many groups.
    fn grow(&mut self, groups: usize);

    /// Takes rows in.
    fn update(&mut self, rows: Rows<'_>, input: &Input<'_>) -> Result<()>;

    /// Takes in what other states hold: the columns of [`State::fields`], whose rows are of `groups`.
    fn absorb(&mut self, groups: &[u32], fields: &[ColumnView<'_>]) -> Result<()>;

    /// Whether it can be told of many rows by [`State::known`].
    fn can_know(&self) -> bool {
        false
    }

    /// The fields, of one group, of a state that has seen `rows` rows, whose argument is `known`; `None` if that does not suffice.
    fn known(&self, _rows: u64, _known: Option<&Known>) -> Result<Option<Vec<Column>>> {
        Ok(None)
    }

    /// The names and types of its fields.
    fn kinds(&self) -> Vec<(String, Datatype)>;

    /// What it holds of groups, a column per field.
    fn fields(&self, groups: &[u32]) -> Result<Vec<Column>>;

    /// The results of groups.
    fn finish(&self, groups: &[u32]) -> Result<Column>;

    /// Bytes that it takes.
    fn size_bytes(&self) -> u64;
}

/// Calls `f` with each row that has a value, and its group.
pub(in crate::query) fn for_each_valid(rows: Rows<'_>, validity: Option<&[u8]>, mut f: impl FnMut(usize, usize)) {
    let is_valid = |row: usize| validity.is_none_or(|valid| valid.get(row).is_some_and(|v| *v != 0));
    match (rows, validity) {
        (Rows::One(group, count), None) => (0..count).for_each(|row| f(row, group as usize)),
        (Rows::One(group, _), Some(valid)) => {
            valid.iter().enumerate().filter(|(_, valid)| **valid != 0).for_each(|(row, _)| f(row, group as usize));
        }
        (Rows::Each(groups), None) => groups.iter().enumerate().for_each(|(row, group)| f(row, *group as usize)),
        (Rows::Each(groups), Some(valid)) => {
            let rows = groups.iter().zip(valid).enumerate().filter(|(_, (_, valid))| **valid != 0);
            rows.for_each(|(row, (group, _))| f(row, *group as usize));
        }
        (Rows::Lines(lines), _) => {
            for (line, first) in lines.firsts.iter().enumerate() {
                let places = (0..lines.length).map(|place| (line * lines.length + place, place as u32 * lines.step));
                places.filter(|(row, _)| is_valid(*row)).for_each(|(row, more)| f(row, (first + more) as usize));
            }
        }
    }
}

/// How many rows have a value.
pub(in crate::query) fn valid_count(rows: usize, validity: Option<&[u8]>) -> u64 {
    validity.map_or(rows, |valid| valid.iter().filter(|v| **v != 0).count()) as u64
}

/// A field of unsigned numbers.
pub(in crate::query) fn longs_field(values: impl Iterator<Item = u64>) -> Result<Column> {
    words_column(Datatype::UInt64, values)
}

/// A field of floats.
pub(in crate::query) fn floats_field(values: impl Iterator<Item = f64>) -> Result<Column> {
    words_column(Datatype::Float64, values.map(f64::to_bits))
}

/// A column of a type of eight bytes.
pub(in crate::query) fn words_column(datatype: Datatype, values: impl Iterator<Item = u64>) -> Result<Column> {
    let words: Vec<[u8; 8]> = values.map(u64::to_le_bytes).collect();
    let bytes = words.as_flattened();
    Column::new(datatype, AlignedBuf::from_slice(bytes), None, None)
}

/// The same with nulls.
pub(in crate::query) fn nullable_words(
    datatype: Datatype,
    values: impl Iterator<Item = Option<u64>>,
) -> Result<Column> {
    let (words, valid): (Vec<[u8; 8]>, Vec<u8>) =
        values.map(|value| (value.unwrap_or(0).to_le_bytes(), u8::from(value.is_some()))).unzip();
    let validity = valid.contains(&0).then_some(valid);
    Column::new(datatype, AlignedBuf::from_slice(words.as_flattened()), None, validity)
}

/// The words of a field of eight bytes.
pub(in crate::query) fn field(fields: &[ColumnView<'_>], place: usize) -> Result<Vec<u64>> {
    let view = fields.get(place).filter(|view| view.datatype().width() == Some(8)).ok_or_else(strange)?;
    Ok(view.values().as_chunks::<8>().0.iter().copied().map(u64::from_le_bytes).collect())
}

/// The error for fields that are not those of a state.
pub(in crate::query) fn strange() -> Error {
    Error::input(
        "these partial results do not have the fields of the aggregates that they name; make them with partial()",
    )
}

/// The elements of a column over groups, in the order of `groups`.
pub(in crate::query) fn pick<'a, T: Copy + Default + 'a>(
    all: &'a [T],
    groups: &'a [u32],
) -> impl ExactSizeIterator<Item = T> + 'a {
    groups.iter().map(|group| all.get(*group as usize).copied().unwrap_or_default())
}
