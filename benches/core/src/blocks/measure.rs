//! Measures one input: every block size, every query, in turn; medians.

use super::asked::{Asked, Texts};
use super::input::Input;
use super::stored::{Place, Sizes, context};
use gridstone::base::{CounterSnapshot, Error, Result};
use gridstone::engine::{Array, Call, Cells, Column, ReadOrder};
use gridstone::schema::Schema;
use std::time::Instant;

/// The number of repeats and threads.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Interleaved repeats, of which medians are taken.
    pub repeats: usize,
    /// Threads of a context.
    pub threads: usize,
}

/// The timed queries, in the order of a table's columns.
pub(crate) const TIMED: [&str; 7] = ["load", "all", "small box", "large box", "cell", "1,000 cells", "open + cell"];

/// The figures of one block size of one input.
#[derive(Debug)]
pub(crate) struct Figures {
    /// Cells per block.
    pub(crate) block_cells: u32,
    /// Bytes on disk.
    pub(crate) sizes: Sizes,
    /// Typical seconds of each of [`TIMED`].
    pub(crate) seconds: Vec<f64>,
    /// Bytes decoded for the small boxes, per byte returned.
    pub(crate) decoded: f64,
}

/// One input with one choice of filters.
#[derive(Debug)]
pub(crate) struct Measured {
    /// The input's name.
    pub(crate) name: String,
    /// Its description.
    pub(crate) about: String,
    /// The filters of all columns.
    pub(crate) filters: String,
    /// Whether it is sparse.
    pub(crate) sparse: bool,
    /// Bytes before packing.
    pub(crate) raw_bytes: usize,
    /// A row per block size.
    pub(crate) rows: Vec<Figures>,
}

/// An array under measurement.
struct Subject {
    place: Place,
    array: Array,
    /// One buffer per attribute of a dense array, for reads of everything.
    buffers: Vec<Vec<u8>>,
}

/// Loads `input` with `filters` at every block size, checks that all read the same, and times all queries.
///
/// # Errors
/// Those of the engine; Input if two sizes read differently.
pub(crate) fn measure(input: &Input, filters: &str, sizes: &[u32], effort: Effort) -> Result<Measured> {
    let schema = input.schema(&|_| true, &|_| filters.to_owned())?;
    let asked = Asked::of(input, &schema)?;
    let place = |cells: &u32| Place::new(&input.name, *cells, effort.threads);
    let places: Vec<Place> = sizes.iter().map(place).collect::<Result<_>>()?;
    let mut samples = vec![vec![Samples::default(); TIMED.len()]; sizes.len()];
    for repeat in 0..effort.repeats {
        for at in turns(sizes.len(), repeat) {
            let Some((place, [load, ..])) = places.get(at).zip(samples.get_mut(at).map(Vec::as_mut_slice)) else {
                continue;
            };
            load.add([place.write(input, &schema)?]);
        }
    }
    let mut subjects: Vec<Subject> = places.into_iter().map(|p| Subject::new(p, input)).collect::<Result<_>>()?;
    check(input, &schema, &subjects, &asked)?;
    let round = Round { input, asked: &asked, threads: effort.threads };
    for repeat in 0..effort.repeats {
        for question in 1..TIMED.len() {
            for at in turns(sizes.len(), repeat) {
                let into = samples.get_mut(at).and_then(|s| s.get_mut(question));
                let Some((subject, into)) = subjects.get_mut(at).zip(into) else { continue };
                into.add(subject.ask(question, round)?);
            }
        }
    }
    let mut rows = Vec::new();
    for ((subject, cells), samples) in subjects.iter().zip(sizes).zip(samples) {
        rows.push(Figures {
            block_cells: *cells,
            sizes: subject.place.sizes()?,
            seconds: samples.into_iter().map(Samples::typical).collect(),
            decoded: subject.decoded(&asked.small)?,
        });
    }
    Ok(Measured {
        name: input.name.clone(),
        about: input.describe()?,
        filters: filters.to_owned(),
        sparse: input.is_sparse(),
        raw_bytes: input.raw_bytes(),
        rows,
    })
}

/// The subjects in another order at every repeat, so that none always follows the same one.
pub(crate) fn turns(count: usize, repeat: usize) -> impl Iterator<Item = usize> {
    (0..count).map(
        move |i| if repeat.is_multiple_of(2) { (i + repeat) % count } else { (2 * count - 1 - i + repeat) % count },
    )
}

/// Seconds of each item of a query, for every round.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples(Vec<Vec<f64>>);

impl Samples {
    pub(crate) fn add(&mut self, round: impl IntoIterator<Item = f64>) {
        for (at, seconds) in round.into_iter().enumerate() {
            match self.0.get_mut(at) {
                Some(list) => list.push(seconds),
                None => self.0.push(vec![seconds]),
            }
        }
    }

    /// The mean over the items of the median over the rounds: an interruption by another program affects a few samples,
    /// which no median heeds.
    pub(crate) fn typical(self) -> f64 {
        let count = self.0.len().max(1) as f64;
        self.0.into_iter().map(median).sum::<f64>() / count
    }
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

impl Subject {
    fn new(place: Place, input: &Input) -> Result<Self> {
        let array = place.open()?;
        let dense = if input.is_sparse() { &[] } else { input.attrs() };
        let buffers = dense.iter().map(|(_, column)| vec![0; column.view().values().len()]).collect();
        Ok(Self { place, array, buffers })
    }

    fn read(&self, sub: &Texts) -> Result<(Cells, CounterSnapshot)> {
        let (cells, _, counters) = self.array.read(Some(sub), None, ReadOrder::Any, &Call::default())?;
        Ok((cells, counters))
    }

    /// Bytes decoded per byte returned.
    fn decoded(&self, boxes: &[Texts]) -> Result<f64> {
        let (mut decoded, mut returned) = (0, 0);
        for sub in boxes {
            let (cells, counters) = self.read(sub)?;
            decoded += counters.bytes_decoded;
            returned += cells.dims.iter().chain(&cells.attrs).map(|c| c.view().values().len() as u64).sum::<u64>();
        }
        Ok(decoded as f64 / returned.max(1) as f64)
    }
}

/// The inputs of every query.
#[derive(Clone, Copy)]
struct Round<'a> {
    input: &'a Input,
    asked: &'a Asked,
    threads: usize,
}

impl Subject {
    /// Seconds of each item of the query.
    fn ask(&mut self, question: usize, round: Round<'_>) -> Result<Vec<f64>> {
        match TIMED.get(question).copied() {
            Some("all") => self.everything(round.input),
            Some("small box") => round.asked.small.iter().map(|sub| timed(|| self.read(sub))).collect(),
            Some("large box") => round.asked.large.iter().map(|sub| timed(|| self.read(sub))).collect(),
            Some("cell") => self.single(&round.asked.single, None),
            Some("1,000 cells") => self.many(&round.asked.many),
            _ => self.single(&round.asked.single, Some(round.threads)),
        }
    }

    fn everything(&mut self, input: &Input) -> Result<Vec<f64>> {
        let once = |_| {
            if input.is_sparse() {
                return timed(|| self.array.read(None, None, ReadOrder::Any, &Call::default()));
            }
            let mut outs: Vec<&mut [u8]> = self.buffers.iter_mut().map(Vec::as_mut_slice).collect();
            timed(|| self.array.read_into(None, None, ReadOrder::Row, &mut outs, &Call::default()))
        };
        (0..EVERYTHING).map(once).collect()
    }

    /// Single cells of an open array, or of one that a new context of so many threads opens for each.
    fn single(&self, cells: &[Vec<Column>], reopened: Option<usize>) -> Result<Vec<f64>> {
        let one = |cell: &Vec<Column>| {
            let dims: Vec<_> = cell.iter().map(Column::view).collect();
            timed(|| match reopened {
                Some(threads) => self.place.open_with(&context(1, threads)?)?.points(&dims, None, &Call::default()),
                None => self.array.points(&dims, None, &Call::default()),
            })
        };
        cells.iter().map(one).collect()
    }

    fn many(&self, cells: &[Column]) -> Result<Vec<f64>> {
        let dims: Vec<_> = cells.iter().map(Column::view).collect();
        (0..3).map(|_| timed(|| self.array.points(&dims, None, &Call::default()))).collect()
    }
}

/// How many reads of everything a round has.
const EVERYTHING: usize = 3;

/// Seconds that `work` takes; its answer is dropped after the clock has stopped.
pub(crate) fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<f64> {
    let start = Instant::now();
    let answer = work()?;
    let taken = start.elapsed().as_secs_f64();
    drop(answer);
    Ok(taken)
}

/// Bytes read by the three queries: everything, boxes, a list of cells; each column by column.
type Answers = [Vec<Vec<u8>>; 3];
const ANSWERS: [&str; 3] = ["everything", "a box", "a list of cells"];

/// A read of everything returns what was written; boxes and cells are the same at every block size.
fn check(input: &Input, schema: &Schema, subjects: &[Subject], asked: &Asked) -> Result<()> {
    let mut first: Option<Answers> = None;
    for subject in subjects {
        let found = answers(input, schema, subject, asked)?;
        let Some(first) = &first else {
            first = Some(found);
            continue;
        };
        if let Some(place) = (0..ANSWERS.len()).find(|i| first.get(*i) != found.get(*i)) {
            let what = ANSWERS.get(place).copied().unwrap_or_default();
            return Err(Error::input(format!("{}: {what} differs between block sizes", input.name)));
        }
    }
    Ok(())
}

fn answers(input: &Input, schema: &Schema, subject: &Subject, asked: &Asked) -> Result<Answers> {
    let columns = |cells: &Cells| -> Vec<Vec<u8>> {
        cells.dims.iter().chain(&cells.attrs).map(|c| c.view().values().to_vec()).collect()
    };
    let order = if input.is_sparse() { ReadOrder::Global } else { ReadOrder::Row };
    let whole = subject.array.read(None, None, order, &Call::default())?.0;
    let same = |(given, read): (&(String, Column), &Column)| given.1.view().values() == read.view().values();
    let as_written = input.is_sparse() || input.attrs().iter().zip(&whole.attrs).all(same);
    if !as_written || whole.count != input.cells() || schema.attrs().len() != whole.attrs.len() {
        return Err(Error::input(format!("{}: what is read is not what was written", input.name)));
    }
    let boxes = asked.small.iter().map(|b| Ok(columns(&subject.read(b)?.0).concat())).collect::<Result<_>>()?;
    let dims: Vec<_> = asked.many.iter().map(Column::view).collect();
    let many = columns(&subject.array.points(&dims, None, &Call::default())?.0);
    Ok([columns(&whole), boxes, many])
}
