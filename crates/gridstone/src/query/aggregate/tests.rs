//! Promise: an answer does not depend on the memory that there is for it, and no file is left of groups beyond it.

use super::answer::Answer;
use super::answers::Answers;
use super::plan::Plan;
use super::{Aggregate, Aggregation, By, Question, Width};
use crate::base::{
    AlignedBuf, Budget, ByteSink, ByteSource, Cancel, Counters, Error, ErrorKind, FileRef, Files, Id, MemorySource,
    NeverCancel, Result, Silent,
};
use crate::condition::{Call, Expression};
use crate::fragment::AsStored;
use crate::query::request::ReadContext;
use crate::runtime::{Arena, CancelFlag, LruCache, Pool, SystemEntropy};
use crate::schema::{Datatype, Schema};
use crate::tile::{Cells, Column};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Files in memory, of which a write fails once so many were done.
#[derive(Debug, Default, Clone)]
struct MemoryFiles {
    all: Arc<Mutex<HashMap<Id, Bytes>>>,
    writes: Arc<AtomicU64>,
    fails_at: Option<u64>,
    /// How that write fails; `None`: the device is full.
    failure: Option<fn() -> Error>,
}

struct Sink {
    files: MemoryFiles,
    id: Id,
    bytes: Vec<u8>,
}

impl MemoryFiles {
    fn count(&self) -> usize {
        self.all.lock().unwrap().len()
    }

    fn note(&self) -> Result<()> {
        match self.fails_at == Some(self.writes.fetch_add(1, Ordering::Relaxed)) {
            true => {
                Err(self.failure.map_or_else(|| Error::storage("no space left on the device"), |failure| failure()))
            }
            false => Ok(()),
        }
    }
}

impl ByteSink for Sink {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.files.note()?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.files.note()?;
        self.files.all.lock().unwrap().insert(self.id, Bytes::from(self.bytes));
        Ok(())
    }
}

impl Files for MemoryFiles {
    fn open(&self, file: FileRef) -> Result<Arc<dyn ByteSource>> {
        let FileRef::Data(id) = file else { return Err(Error::storage("no such file")) };
        let found = self.all.lock().unwrap().get(&id).cloned();
        Ok(Arc::new(MemorySource(found.ok_or_else(|| Error::storage("no such file"))?)))
    }

    fn is_near(&self) -> bool {
        true
    }

    fn create(&self, id: Id) -> Result<Box<dyn ByteSink>> {
        self.note()?;
        Ok(Box::new(Sink { files: self.clone(), id, bytes: Vec::new() }))
    }

    fn remove(&self, id: Id) -> Result<()> {
        self.all.lock().unwrap().remove(&id);
        Ok(())
    }
}

fn context(files: &MemoryFiles, budget: u64, threads: usize) -> ReadContext {
    ReadContext {
        place: Id([1; 16]),
        pool: Arc::new(Pool::new(Some(threads)).unwrap()),
        files: Arc::new(files.clone()),
        tiles: Arc::new(AsStored),
        cache: Arc::new(LruCache::new(0)),
        budget: Arc::new(Budget::new(budget)),
        arena: Arc::new(Arena::new(0)),
        counters: Arc::new(Counters::default()),
        cancel: Arc::new(NeverCancel),
        progress: Arc::new(Silent),
    }
}

fn schema() -> Arc<Schema> {
    let text = r#"{"sparse":true,"duplicates":true,"dims":[{"name":"x","dtype":"int64","domain":["0","1000000"]}],
        "attrs":[{"name":"k","dtype":"int32","nullable":true},{"name":"s","dtype":"string","nullable":true},
        {"name":"f","dtype":"float64"},{"name":"v","dtype":"int64","nullable":true}]}"#;
    Arc::new(Schema::from_json(text).unwrap())
}

fn question(by: &[&str], aggregates: &[&str]) -> Question {
    let key = |name: &&str| By {
        name: (*name).to_owned(),
        value: Expression::parse(name).unwrap(),
        width: (*name == "f").then_some(Width::Float(0.5)),
    };
    let asked = |text: &&str| Aggregate {
        name: (*text).to_owned(),
        call: Call::parse(text).unwrap(),
        text: (*text).to_owned(),
    };
    Question { by: by.iter().map(key).collect(), aggregates: aggregates.iter().map(asked).collect() }
}

type Row = (u64, Option<i32>, Option<String>, f64, Option<i64>);

fn cells(rows: &[Row]) -> Cells {
    let fixed = |datatype, bytes: Vec<u8>, valid: Option<Vec<u8>>| {
        Column::new(datatype, AlignedBuf::from_slice(&bytes), None, valid).unwrap()
    };
    let valid = |of: &dyn Fn(&Row) -> bool| Some(rows.iter().map(|row| u8::from(of(row))).collect::<Vec<u8>>());
    let texts: Vec<&str> = rows.iter().map(|row| row.2.as_deref().unwrap_or_default()).collect();
    let mut offsets = vec![0u64];
    texts.iter().for_each(|text| offsets.push(offsets[offsets.len() - 1] + text.len() as u64));
    let strings = AlignedBuf::from_slice(texts.concat().as_bytes());
    Cells {
        count: rows.len(),
        dims: vec![fixed(Datatype::Int64, rows.iter().flat_map(|row| row.0.to_le_bytes()).collect(), None)],
        attrs: vec![
            fixed(
                Datatype::Int32,
                rows.iter().flat_map(|row| row.1.unwrap_or(0).to_le_bytes()).collect(),
                valid(&|row| row.1.is_some()),
            ),
            Column::new(Datatype::String, strings, Some(offsets), valid(&|row| row.2.is_some())).unwrap(),
            fixed(Datatype::Float64, rows.iter().flat_map(|row| row.3.to_le_bytes()).collect(), None),
            fixed(
                Datatype::Int64,
                rows.iter().flat_map(|row| row.4.unwrap_or(0).to_le_bytes()).collect(),
                valid(&|row| row.4.is_some()),
            ),
        ],
    }
}

/// The cells with the attributes that are asked for.
fn picked(cells: &Cells, attrs: &[usize]) -> Cells {
    let attrs = attrs.iter().map(|place| cells.attrs[*place].clone()).collect();
    Cells { count: cells.count, dims: cells.dims.clone(), attrs }
}

fn answers(context: &ReadContext, question: &Question, rows: &[Row], batch: usize) -> Result<Answers> {
    let mut aggregation = Aggregation::new(schema(), question)?.spilling(Arc::new(SystemEntropy));
    for rows in rows.chunks(batch) {
        let cells = picked(&cells(rows), aggregation.attrs());
        aggregation.take(context, &cells)?;
    }
    aggregation.end(context)?;
    aggregation.into_answers(Some(context))
}

/// Values, offsets and validity of a column.
type Plain = (Vec<u8>, Option<Vec<u64>>, Option<Vec<u8>>);

/// The columns, each as nullable, so that columns without a null equal those that could have one.
fn plain(answer: Answer) -> Vec<Plain> {
    let parts = |column: Column| {
        let (values, offsets, valid) = column.into_nullable().into_parts();
        (values.to_vec(), offsets, valid)
    };
    answer.columns.into_iter().map(|(_, column)| parts(column)).collect()
}

fn rows(keys: i32) -> impl Strategy<Value = Vec<Row>> {
    let floats = prop::sample::select(vec![0.0, -1.25, 0.5, 7.75, f64::NAN, f64::INFINITY]);
    let text = prop::option::weighted(0.8, "[a-cä]{0,3}");
    let row = (0u64..50, prop::option::weighted(0.9, -keys..keys), text, floats, prop::option::weighted(0.8, -9i64..9));
    // Chunks of several thousand rows end where groups may be written.
    prop::collection::vec(row, 0..700)
        .prop_flat_map(|some| (0usize..60).prop_map(move |times| vec![some.clone(); times].concat()))
}

const ASKED: [&str; 12] = [
    "count(*)",
    "count(v)",
    "sum(v)",
    "mean(v)",
    "min(s)",
    "max(f)",
    "arg_max(v, x)",
    "count(distinct s)",
    "count(distinct v)",
    "median(v)",
    "quantile(f, 0.3)",
    "quantile_disc(v, 0.7)",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_small_budget_gives_the_same_answer(
        rows in rows(300),
        keys in prop::sample::subsequence(vec!["k", "s", "f", "x"], 0..4),
        threads in 1usize..3,
        budget in prop::sample::select(vec![2_048u64, 16_384, 100_000]),
    ) {
        let (files, asked) = (MemoryFiles::default(), question(&keys, &ASKED));
        let whole = answers(&context(&files, 1 << 30, threads), &asked, &rows, 40_000).unwrap();
        let whole = plain(whole.collect().unwrap());
        prop_assert_eq!(files.writes.load(Ordering::Relaxed), 0);
        let small = context(&files, budget, threads);
        let mut spilled = answers(&small, &asked, &rows, 20_000).unwrap();
        let mut all = spilled.nothing().unwrap();
        while let Some(more) = spilled.next_batch(100).unwrap() {
            prop_assert!((1..=100).contains(&more.rows));
            all.append(more);
        }
        prop_assert_eq!(plain(all), whole);
        drop(spilled);
        prop_assert_eq!(files.count(), 0);
        prop_assert_eq!(small.budget.used_bytes(), 0);
        prop_assert_eq!(small.counters.snapshot().bytes_spilled > 0, files.writes.load(Ordering::Relaxed) > 0);
    }
}

fn many(count: u64) -> Vec<Row> {
    let row = |n: u64| {
        let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        (n % 1_000_000, Some(7), Some(format!("text {}", mixed % 5_000)), 0.5, Some((mixed % 100_003) as i64))
    };
    (0..count).map(row).collect()
}

#[test]
fn values_of_one_group_may_take_more_than_the_budget() {
    let rows = many(200_000);
    let (files, asked) =
        (MemoryFiles::default(), question(&["k"], &["count(distinct v)", "median(v)", "count(distinct s)"]));
    let small = context(&files, 1 << 20, 2);
    let found = answers(&small, &asked, &rows, 20_000).unwrap().collect().unwrap();
    let mut values: Vec<i64> = rows.iter().filter_map(|row| row.4).collect();
    values.sort_unstable();
    let median = (values[99_999] + values[100_000]) as f64 / 2.0;
    values.dedup();
    let numbers: Vec<&[u8]> = found.columns.iter().map(|(_, column)| column.view().value(0)).collect();
    assert_eq!(numbers[1], (values.len() as i64).to_le_bytes());
    assert_eq!(numbers[2], median.to_le_bytes());
    assert_eq!(numbers[3], 5_000i64.to_le_bytes());
    assert!(small.counters.snapshot().bytes_spilled > 1 << 20);
    assert!(small.budget.peak_bytes() <= 3 << 20, "{} bytes at once", small.budget.peak_bytes());
    assert_eq!(files.count(), 0);
}

#[test]
fn a_write_that_fails_is_an_error_and_leaves_no_file() {
    let (rows, asked) = (many(60_000), question(&["x", "s"], &["count(*)", "median(v)"]));
    let mut failed = 0;
    for fails_at in (0..40).chain((40..400).step_by(23)) {
        let files = MemoryFiles { fails_at: Some(fails_at), ..MemoryFiles::default() };
        let small = context(&files, 1 << 20, 2);
        let outcome = answers(&small, &asked, &rows, 20_000).and_then(Answers::collect);
        if let Err(error) = outcome {
            assert_eq!(error.kind(), ErrorKind::Storage, "{error}");
            failed += 1;
        }
        assert_eq!((files.count(), small.budget.used_bytes()), (0, 0));
    }
    assert!(failed > 40, "{failed}");
}

#[test]
fn a_stream_is_stopped_and_dropped_between_batches() {
    let (rows, asked) = (many(60_000), question(&["x"], &["count(*)", "min(s)"]));
    let files = MemoryFiles::default();
    let small = context(&files, 1 << 20, 2);
    let mut stream = answers(&small, &asked, &rows, 20_000).unwrap();
    assert!(stream.next_batch(10).unwrap().is_some_and(|batch| batch.rows == 10) && files.count() > 0);
    let flag = CancelFlag::new();
    flag.cancel();
    stream.set_cancel(&(Arc::new(flag) as Arc<dyn crate::base::Cancel>));
    let stopped = loop {
        match stream.next_batch(usize::MAX) {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the stream ended"),
            Err(error) => break error,
        }
    };
    assert_eq!(stopped.kind(), ErrorKind::Cancelled);
    drop(stream);
    assert_eq!((files.count(), small.budget.used_bytes()), (0, 0));
}

/// Counts how often it is asked whether to go on, and says no from one time on.
struct Looks {
    seen: AtomicU64,
    stops_at: u64,
}

impl Looks {
    fn stopping_at(stops_at: u64) -> Arc<Self> {
        Arc::new(Self { seen: AtomicU64::new(0), stops_at })
    }

    fn count(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }
}

impl Cancel for Looks {
    fn cancelled(&self) -> bool {
        self.seen.fetch_add(1, Ordering::Relaxed) >= self.stops_at
    }
}

/// What does something with `looks`, is stopped early, late and in between.
fn is_stopped(looks: u64, mut work: impl FnMut(&Looks) -> Result<()>) {
    for stops_at in [0, 1, looks / 2, looks - 1] {
        assert_eq!(work(&Looks::stopping_at(stops_at)).unwrap_err().kind(), ErrorKind::Cancelled);
    }
}

#[test]
fn the_merge_and_the_sort_of_groups_are_stopped() {
    let (files, rows) = (MemoryFiles::default(), many(30_000));
    for keys in [["x", "s"], ["k", "x"]] {
        let asked = question(&keys, &["count(*)", "max(f)"]);
        let (groups, fresh) = (rows.len() as u64, || Plan::new(&schema(), &asked).unwrap().stages);
        let mut aggregation = Aggregation::new(schema(), &asked).unwrap();
        let context = context(&files, 1 << 30, 1);
        aggregation.take(&context, &picked(&cells(&rows), aggregation.attrs())).unwrap();
        aggregation.end(&context).unwrap();
        let tables = aggregation.tables(&NeverCancel).unwrap();
        let mut all = fresh();
        let looks = Looks::stopping_at(u64::MAX);
        all.absorb_tables(&tables, looks.as_ref()).unwrap();
        assert!(looks.count() >= groups / 256, "{} looks at tables", looks.count());
        is_stopped(looks.count(), |looks| fresh().absorb_tables(&tables, looks));
        let looks = Looks::stopping_at(u64::MAX);
        fresh().absorb(&all, looks.as_ref()).unwrap();
        assert!(looks.count() >= groups / 256, "{} looks at stages", looks.count());
        is_stopped(looks.count(), |looks| fresh().absorb(&all, looks));
        let looks = Looks::stopping_at(u64::MAX);
        all.tables(looks.as_ref()).unwrap();
        let sorting = if keys == ["x", "s"] { groups / 64 } else { 0 };
        assert!(looks.count() >= sorting + groups / 256, "{} looks at their order", looks.count());
        is_stopped(looks.count(), |looks| all.tables(looks).map(drop));
    }
}

#[test]
fn answers_are_stopped_while_they_are_made() {
    let rows = many(60_000);
    // About 45,000 values of one group are looked at; texts are sorted.
    for (asked, least) in [("median(v)", 40), ("count(distinct s)", 5_000 / 64)] {
        let asked = question(&["k"], &[asked, "count(*)"]);
        for budget in [1 << 30, 1 << 19] {
            let files = MemoryFiles::default();
            let context = context(&files, budget, 1);
            let made = |looks: &Arc<Looks>| {
                let mut found = answers(&context, &asked, &rows, 20_000).unwrap();
                found.set_cancel(&(Arc::clone(looks) as Arc<dyn Cancel>));
                found.collect()
            };
            let looks = Looks::stopping_at(u64::MAX);
            made(&looks).unwrap();
            assert!(looks.count() > least, "{} looks", looks.count());
            for stops_at in [0, 1, looks.count() / 3, looks.count() / 2, looks.count() - 1] {
                assert_eq!(made(&Looks::stopping_at(stops_at)).unwrap_err().kind(), ErrorKind::Cancelled, "{stops_at}");
                assert_eq!((files.count(), context.budget.used_bytes()), (0, 0));
            }
        }
    }
}

#[test]
fn an_order_is_stopped_and_equals_that_of_the_values() {
    let (files, rows) = (MemoryFiles::default(), many(20_000));
    let asked = question(&["x"], &["min(s)", "sum(v)", "count(v)"]);
    let context = context(&files, 1 << 30, 1);
    let batches = || {
        let mut found = answers(&context, &asked, &rows, 20_000).unwrap();
        std::iter::from_fn(move || found.next_batch(3_000).unwrap()).collect::<Vec<_>>()
    };
    let by = [("min(s)".to_owned(), true), ("sum(v)".to_owned(), false)];
    let looks = Looks::stopping_at(u64::MAX);
    let sorted = Answer::ordered(batches(), &by, None, looks.as_ref()).unwrap();
    assert!(looks.count() >= 20_000 / 64, "{} looks", looks.count());
    is_stopped(looks.count(), |looks| Answer::ordered(batches(), &by, None, looks).map(drop));
    let mut expected: Vec<&Row> = rows.iter().collect();
    expected.sort_by(|a, b| b.2.cmp(&a.2).then(a.4.cmp(&b.4)).then(a.0.cmp(&b.0)));
    let expected: Vec<u8> = expected.iter().flat_map(|row| row.0.to_le_bytes()).collect();
    assert_eq!(sorted.columns[0].1.view().values(), expected);
    let first = Answer::ordered(batches(), &by, Some(7), &NeverCancel).unwrap();
    assert_eq!((first.rows, first.columns[0].1.view().values()), (7, &expected[..56]));
}

#[test]
fn groups_stay_in_memory_where_the_store_cannot_be_written_to() {
    let rows = many(60_000);
    let asked = question(&["x"], &["count(*)", "min(s)"]);
    let ample = context(&MemoryFiles::default(), 1 << 30, 1);
    let whole = plain(answers(&ample, &asked, &rows, 20_000).unwrap().collect().unwrap());
    let peak = ample.budget.peak_bytes();
    let read_only = || Error::storage("read-only").with_source(std::io::Error::from_raw_os_error(libc::EROFS));
    for failure in [|| Error::access("denied"), || Error::unsupported("no writes"), read_only] {
        // A local store refuses to create a file, a bucket to write or to end it.
        for fails_at in 0..3 {
            let files = MemoryFiles { fails_at: Some(fails_at), failure: Some(failure), ..MemoryFiles::default() };
            let roomy = context(&files, peak * 2, 1);
            assert_eq!(plain(answers(&roomy, &asked, &rows, 20_000).unwrap().collect().unwrap()), whole);
            assert!(files.writes.load(Ordering::Relaxed) > fails_at, "nothing was written");
            assert_eq!((files.count(), roomy.budget.used_bytes()), (0, 0));
            let files = MemoryFiles { fails_at: Some(fails_at), failure: Some(failure), ..MemoryFiles::default() };
            let small = context(&files, peak / 2, 1);
            let error = answers(&small, &asked, &rows, 20_000).unwrap_err();
            let advice = "the store cannot be written to, where groups beyond memory go; ask for fewer groups";
            assert!(error.kind() == ErrorKind::Budget && error.message().contains(advice), "{error}");
            assert_eq!((files.count(), small.budget.used_bytes()), (0, 0));
        }
    }
}
