//! A real array and the oracle side by side: every operation is applied to both, and their reads are compared.

use crate::Dice;
use crate::coord::{Coord, Place, box_texts};
use crate::filter::Filter;
use crate::model::{Change, Expected, Model, expected_rows};
use crate::plan::{Case, Plan, Size};
use crate::stage::stage;
use crate::value::values_of;
use gridstone::base::{ErrorKind, Result};
use gridstone::engine::{
    Array, At, BlockCells, Call, Cells, Condition, Context, Durability, Keep, MergeChoice, Opened, Options, ReadOrder,
    Strategy, VacuumOptions, create_array_on, open_on,
};
use gridstone::fragment::{AsStored, TileSources};
use gridstone::storage::{Fault, FaultPlan, FaultyStorage, Storage};
use std::collections::BTreeMap;
use std::sync::Arc;

mod filtered;

const ORDERS: [ReadOrder; 4] = [ReadOrder::Row, ReadOrder::Col, ReadOrder::Global, ReadOrder::Any];

/// An array under test.
pub struct Session {
    pub(crate) healthy: Arc<dyn Storage>,
    pub(crate) faults: Option<Arc<FaultPlan>>,
    pub(crate) plan: Plan,
    /// The plan from each version on.
    pub(crate) plans: BTreeMap<u64, Plan>,
    pub(crate) model: Model,
    pub(crate) array: Array,
    /// A second writer, which falls behind and must rebase.
    pub(crate) other: Array,
    /// What all contexts read dense fragments through.
    pub(crate) tiles: Arc<dyn TileSources>,
    trace: Vec<String>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "schema {}", self.plan.schema.to_json())?;
        self.trace.iter().enumerate().try_for_each(|(i, line)| writeln!(f, "{i:3} {line}"))
    }
}

/// A context of one of several budgets (small ones switch the overlay off), thread counts and block sizes.
pub(crate) fn context(dice: &mut Dice, tiles: &Arc<dyn TileSources>) -> Context {
    let (usual, odd) = (BlockCells::default(), BlockCells { dense: 1_000, sparse: 333, ..BlockCells::default() });
    let options = Options {
        memory_budget: *dice.pick(&[1 << 20, 1 << 20, 3 << 20, 64 << 20]),
        threads: Some(*dice.pick(&[1, 1, 1, 2])),
        cache: *dice.pick(&[0, 64 << 10, 256 << 20]),
        durability: Durability::Close,
        blocks: *dice.pick(&[usual, usual, BlockCells { dense: 7, sparse: 3, room_bytes: 40 }, odd]),
        tiles: tiles.clone(),
        ..Options::default()
    };
    Context::new(&options).unwrap()
}

pub(crate) fn opened(context: &Context, storage: &Arc<dyn Storage>, writable: bool, at: At) -> Result<Array> {
    match open_on(context, storage.clone(), "/", writable, at)? {
        Opened::Array(array) => Ok(array),
        Opened::Group(_) => panic!("a group lies where the array was created"),
    }
}

impl Session {
    /// Creates the array of `case` on an empty storage. With `faults` some operations fail.
    pub fn new(case: &Case, storage: Arc<dyn Storage>, faults: bool) -> Self {
        Self::through(Arc::new(AsStored), case, storage, faults)
    }

    /// The same, whose reads go through these tiles of dense fragments.
    pub fn through(tiles: Arc<dyn TileSources>, case: &Case, storage: Arc<dyn Storage>, faults: bool) -> Self {
        let plan = Plan::new(case.kind, case.size, case.seed);
        let mut dice = Dice::new(case.seed ^ 0x5eed);
        let faults = faults.then(FaultPlan::new);
        let used = Self::used_storage(&storage, &faults);
        let array = create_array_on(
            &context(&mut dice, &tiles),
            used.clone(),
            "/",
            Arc::unwrap_or_clone(plan.schema.clone()),
            false,
        );
        let array = array.unwrap();
        let other = opened(&context(&mut dice, &tiles), &used, true, At::Latest).unwrap();
        let model = Model::new(plan.schema.clone(), array.version());
        let plans = BTreeMap::from([(array.version(), plan.clone())]);
        Self { healthy: storage, faults, plan, plans, model, array, other, tiles, trace: Vec::new() }
    }

    /// The plan as it was at `version`.
    pub(crate) fn plan_at(&self, version: u64) -> &Plan {
        self.plans.range(..=version).next_back().unwrap().1
    }

    pub(crate) fn used_storage(healthy: &Arc<dyn Storage>, faults: &Option<Arc<FaultPlan>>) -> Arc<dyn Storage> {
        match faults {
            Some(plan) => Arc::new(FaultyStorage::new(healthy.clone(), plan.clone())),
            None => healthy.clone(),
        }
    }

    /// The oracle.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The array.
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// The schema and the positions of its cells.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Runs all operations of `case` and checks everything at the end.
    pub fn run(&mut self, case: &Case) {
        for seed in &case.operations {
            self.step(&mut Dice::new(*seed));
        }
        self.check_everything(&mut Dice::new(case.seed));
    }

    /// One random operation, and sometimes a read after it.
    pub fn step(&mut self, dice: &mut Dice) {
        match dice.below(24) {
            0..=8 => self.write(1, false, dice),
            9..=10 => self.write(2 + dice.below(2), false, dice),
            11..=12 => self.write(1, true, dice),
            13 if self.faults.is_some() => self.failing_read(dice),
            13 => self.reopen(dice),
            14 => self.read_old(dice),
            15 if dice.chance(50) => self.delete_where(dice),
            15 => self.scan(dice),
            16 => self.consolidate(dice),
            17 if self.faults.is_some() => self.failing_write(dice),
            18..=19 if self.faults.is_some() => self.failing_write(dice),
            20 => self.vacuum(dice),
            21 => self.tag(dice),
            22 => self.evolve(dice),
            23 if self.faults.is_some() => self.failing_evolve(dice),
            _ => self.read(dice),
        }
        if dice.chance(40) {
            self.read(dice);
        }
    }

    pub(crate) fn note(&mut self, line: String) {
        self.trace.push(line);
    }

    /// Commits `count` random changes as one version, through either handle.
    fn write(&mut self, count: usize, through_other: bool, dice: &mut Dice) {
        let seen = if through_other { self.other.version() } else { self.array.version() };
        let plan = self.plan_at(seen);
        let changes: Vec<Change> = (0..count).map(|_| plan.change(dice)).collect();
        self.note(format!(
            "commit {}{}",
            changes.iter().map(describe).collect::<Vec<_>>().join(" + "),
            if through_other { " (other)" } else { "" }
        ));
        let array = if through_other { self.other.clone() } else { self.array.clone() };
        let before = self.model.newest();
        match self.commit(&array, &changes, dice) {
            Ok(version) if version > before => self.model.commit_written(version, &changes, seen),
            Ok(_) => assert!(changes.iter().all(is_empty), "a commit made no version\n{self:?}"),
            Err(e) => assert!(self.must_refuse(&changes, &e), "a write failed: {e}\n{self:?}"),
        }
        let target = if through_other { &mut self.other } else { &mut self.array };
        *target = array;
        self.array.refresh().unwrap();
        assert_eq!(self.array.version(), self.model.newest(), "{self:?}");
    }

    fn commit(&self, array: &Array, changes: &[Change], dice: &mut Dice) -> Result<u64> {
        let model = self.model.seen_at(array.version());
        let staged = changes.iter().map(|c| stage(array, &model, c, dice)).collect::<Result<Vec<_>>>()?;
        array.commit(staged, dice.chance(20).then(|| "why".to_owned()))
    }

    /// Merges fragments, through either handle: this creates versions without changes of cells.
    fn consolidate(&mut self, dice: &mut Dice) {
        // The other handle may be behind: fragments that it would merge may have been merged.
        let late = dice.chance(30);
        let array = if late { &self.other } else { &self.array };
        // That version may have been vacuumed; then planning reports what was merged.
        let fragments = array.fragments().unwrap_or_default();
        let at = dice.below(fragments.len().max(1));
        let some = || fragments[at..].iter().take(1 + at % 4).map(|f| f.id).collect();
        let sub = box_texts(self.model.dims(), &self.plan_at(array.version()).a_box(dice));
        let strategy = match dice.below(8) {
            0..=1 => Strategy::Tiered,
            2 if !fragments.is_empty() => Strategy::Fragments(some()),
            3 => Strategy::Updates,
            4 => match array.strategy(&MergeChoice::Box(&sub)) {
                // There may be no text between two texts that are longer than any.
                Err(e)
                    if e.kind() == ErrorKind::Bounds && self.model.dims().iter().any(|dim| dim.max_bytes.is_some()) =>
                {
                    Strategy::All
                }
                found => found.unwrap(),
            },
            5 if dice.chance(30) => Strategy::Manifest,
            _ => Strategy::All,
        };
        let target_bytes = *dice.pick(&[1, 5_000, 1 << 30]);
        match array.consolidate(&strategy, target_bytes, false, &Call::default()) {
            Ok(report) => assert!(late || report.overtaken == 0, "{self:?}"),
            Err(e) if e.kind() == ErrorKind::SnapshotExpired => {
                assert!(late, "{self:?}");
                self.other.refresh().unwrap();
            }
            Err(e) => {
                let named = matches!(strategy, Strategy::Fragments(_));
                assert!(named && e.kind() == ErrorKind::Input, "consolidation failed: {e}\n{self:?}");
            }
        }
        self.catch_up();
        self.note(format!("consolidate {strategy:?} to {target_bytes} bytes: version {}", self.model.newest()));
        let (sub, attrs, order) =
            (self.plan.everything(), (0..self.plan.schema.attrs().len()).collect::<Vec<_>>(), ReadOrder::Any);
        let rows = self.read_from(&self.array, &sub, &attrs, order).unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        self.compare(rows, self.model.newest(), &sub, &attrs, order);
    }

    /// Deletes what a condition selects.
    fn delete_where(&mut self, dice: &mut Dice) {
        let schema = self.plan.schema.clone();
        let sub = if dice.chance(50) { self.plan.everything() } else { self.plan.a_box(dice) };
        let filter = Filter::random(&self.plan, dice);
        self.note(format!("delete from {} where {}", show(&sub), filter.text));
        let condition = Condition::parse(&filter.text).unwrap();
        let (texts, all) = (box_texts(self.model.dims(), &sub), (0..schema.attrs().len()).collect::<Vec<_>>());
        let outcome = self.array.delete_where(Some(&texts), &condition, None, &Call::default());
        let version = outcome.unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        if version > self.model.newest() {
            self.model.commit_where(version, &sub, &|place, values| filter.takes(place, values));
        } else {
            let left = self.selected(version, &filter, (&sub, &all), ReadOrder::Row);
            assert!(!schema.sparse() || left.is_empty(), "nothing was deleted\n{self:?}");
        }
        let rows = self.read_from(&self.array, &sub, &all, ReadOrder::Any).unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        self.compare(rows, self.model.newest(), &sub, &all, ReadOrder::Any);
    }

    /// Notes versions in which the cells did not change.
    fn catch_up(&mut self) {
        self.array.refresh().unwrap();
        for version in self.model.newest() + 1..=self.array.version() {
            self.model.commit(version, &[]);
        }
    }

    fn tags(&self) -> Vec<(String, u64)> {
        self.array.tags().unwrap_or_else(|e| panic!("{e}\n{self:?}"))
    }

    /// Vacuums all but some versions; the model's versions that go are no longer read.
    fn vacuum(&mut self, dice: &mut Dice) {
        let count = 1 + dice.below(8) as u64;
        let options = VacuumOptions { keep: Keep::Versions(count), safety_us: 0, dry_run: false };
        let kept = self.tags().iter().map(|(_, version)| *version).min().unwrap_or(u64::MAX);
        let report = self.array.vacuum(&options, &Call::default()).unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        self.note(format!("vacuum of all but {count} versions: {report:?}"));
        self.catch_up();
        assert!(report.oldest <= kept.max(report.oldest_before) && report.oldest <= report.newest, "{self:?}");
        self.model.forget_below(report.oldest);
        if report.oldest > 1 {
            let gone = self.array.at(At::Version(report.oldest - 1)).map(drop).map_err(|e| e.kind());
            assert_eq!(gone, Err(ErrorKind::SnapshotExpired), "{self:?}");
        }
        match dice.chance(20) {
            true => self.check_everything(dice),
            false => self.read(dice),
        }
    }

    /// Tags a version, or removes the tag.
    fn tag(&mut self, dice: &mut Dice) {
        let version = *dice.pick(&self.model.versions());
        let known = self.tags().iter().any(|(name, _)| name == "tag");
        self.note(format!("tag version {version}, tagged before: {known}"));
        match known && dice.chance(50) {
            true => self.array.untag("tag").map(drop),
            false => self.array.tag("tag", Some(version), true).map(drop),
        }
        .unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        self.catch_up();
    }

    fn must_refuse(&self, changes: &[Change], error: &gridstone::base::Error) -> bool {
        changes.iter().any(|c| self.model.refuses(c))
            && error.kind() == ErrorKind::Input
            && error.message().contains("same cell")
    }

    /// A write while the storage fails somewhere: afterwards all of it or nothing exists.
    fn failing_write(&mut self, dice: &mut Dice) {
        let Some(plan) = self.faults.clone() else { return };
        let count = 1 + dice.below(2);
        let changes: Vec<Change> = (0..count).map(|_| self.plan.change(dice)).collect();
        if changes.iter().any(|c| self.model.refuses(c)) {
            return;
        }
        let fault = *dice.pick(&[Fault::Error, Fault::ErrorAfter, Fault::Torn, Fault::Full, Fault::Kill]);
        let soon = dice.chance(70);
        let nth = 1 + dice.below(if soon { 5 } else { 40 }) as u64;
        self.note(format!(
            "{fault:?} at {nth}: commit {}",
            changes.iter().map(describe).collect::<Vec<_>>().join(" + ")
        ));
        plan.clear();
        plan.fail_nth(nth, fault);
        let outcome = self.commit(&self.array, &changes, dice);
        let journal = plan.journal();
        plan.clear();
        self.array =
            opened(&context(dice, &self.tiles), &Self::used_storage(&self.healthy, &self.faults), true, At::Latest)
                .unwrap_or_else(|e| panic!("the store does not open after {journal:?}: {e}\n{self:?}"));
        let (before, now) = (self.model.newest(), self.array.version());
        match outcome {
            Ok(version) => assert!(version == now, "version {version} was reported, {now} is there\n{self:?}"),
            Err(e) if e.kind() == ErrorKind::CommitUnknown => {}
            Err(e) => assert!(
                now == before,
                "{e} ({:?}) was reported, but version {now} is there; {journal:?}\n{self:?}",
                e.kind()
            ),
        }
        assert!(now <= before + 1, "{self:?}");
        if now > before {
            self.model.commit(now, &changes);
        }
        self.check_everything(dice);
    }

    /// A read while the storage fails somewhere: an error or the right answer, and the next read is right.
    fn failing_read(&mut self, dice: &mut Dice) {
        let Some(plan) = self.faults.clone() else { return };
        let (sub, attrs, order) = self.request(dice);
        let fault = *dice.pick(&[Fault::Error, Fault::ErrorAfter, Fault::Full]);
        self.note(format!("{fault:?} while reading {sub:?}"));
        plan.clear();
        plan.fail_nth(1 + dice.below(6) as u64, fault);
        let array = self.array.clone();
        let places = self.plan.cells(10, dice);
        let outcome = match dice.below(3) {
            0 => self
                .read_from(&array, &sub, &attrs, order)
                .map(|rows| self.compare(rows, self.model.newest(), &sub, &attrs, order)),
            1 => self.try_filtered(&array, (&sub, &attrs, order), dice),
            _ => self
                .read_points(&array, &places, &attrs)
                .map(|rows| self.same_points(rows, self.model.newest(), &places, &attrs)),
        };
        if let Err(e) = outcome {
            assert!(plan.struck() && e.kind() == ErrorKind::Storage, "{e} ({:?})\n{self:?}", e.kind());
        }
        plan.clear();
        let rows = self.read_from(&array, &sub, &attrs, order).unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        self.compare(rows, self.model.newest(), &sub, &attrs, order);
    }

    fn reopen(&mut self, dice: &mut Dice) {
        self.note("reopen".to_owned());
        let storage = Self::used_storage(&self.healthy, &self.faults);
        self.array = opened(&context(dice, &self.tiles), &storage, true, At::Latest).unwrap();
        assert_eq!(self.array.version(), self.model.newest(), "{self:?}");
    }

    fn request(&self, dice: &mut Dice) -> (Vec<(Coord, Coord)>, Vec<usize>, ReadOrder) {
        Self::request_of(&self.plan, dice)
    }

    fn request_of(plan: &Plan, dice: &mut Dice) -> (Vec<(Coord, Coord)>, Vec<usize>, ReadOrder) {
        let sub = if dice.chance(25) { plan.everything() } else { plan.a_box(dice) };
        let mut attrs: Vec<usize> = (0..plan.schema.attrs().len()).collect();
        dice.shuffle(&mut attrs);
        attrs.truncate(dice.below(attrs.len()) + 1);
        (sub, attrs, *dice.pick(&ORDERS))
    }

    fn read(&mut self, dice: &mut Dice) {
        let (sub, attrs, order) = self.request(dice);
        self.note(format!("read {} {order:?} {attrs:?}", show(&sub)));
        let rows = self.read_from(&self.array, &sub, &attrs, order).unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        self.compare(rows, self.model.newest(), &sub, &attrs, order);
        self.check_points(&self.array, self.model.newest(), &attrs, dice);
        self.filtered(&self.array.clone(), self.model.newest(), dice);
        if dice.chance(40) {
            self.boxes(&self.array.clone(), self.model.newest(), dice);
        }
    }

    /// Reads random cells, some of them twice, by their coordinates.
    fn check_points(&self, array: &Array, version: u64, attrs: &[usize], dice: &mut Dice) {
        let most = *dice.pick(if self.plan.size == Size::Tiny { &[1, 5, 40][..] } else { &[1, 20, 3_000] });
        let count = dice.below(most + 1);
        let mut places = self.plan_at(version).cells(count, dice);
        match dice.below(3) {
            0 => places.sort(),
            1 => places.extend(places.clone()),
            _ => {}
        }
        let mut attrs = attrs.to_vec();
        attrs.extend(attrs.first().copied().filter(|_| dice.chance(10)));
        let found = self.read_points(array, &places, &attrs).unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        self.same_points(found, version, &places, &attrs);
    }

    fn read_points(&self, array: &Array, places: &[Place], attrs: &[usize]) -> Result<Cells> {
        let dims = self.model.dims().iter().enumerate();
        let columns: Vec<_> = dims.map(|(i, dim)| dim.column(places.iter().map(|p| p[i]))).collect();
        let views: Vec<_> = columns.iter().map(|c| c.view()).collect();
        let (cells, counters) = array.points(&views, Some(&self.names(array, attrs)), &Call::default())?;
        assert_eq!(counters.cells_returned, cells.count as u64, "{self:?}");
        Ok(cells)
    }

    fn same_points(&self, cells: Cells, version: u64, places: &[Place], attrs: &[usize]) {
        let expected = self.model.points(version, places, attrs);
        let mut found = rows_of(&self.model, &cells);
        if !self.plan.schema.sparse() {
            assert!(cells.dims.is_empty() && found.len() == expected.len(), "rows of dense points\n{self:?}");
            found.iter_mut().zip(&expected).for_each(|(f, e)| f.0.clone_from(&e.0));
        }
        self.same(found, expected, ReadOrder::Row);
    }

    fn read_old(&mut self, dice: &mut Dice) {
        let version = *dice.pick(&self.model.versions());
        let (sub, attrs, order) = Self::request_of(self.plan_at(version), dice);
        self.note(format!("read version {version} {} {order:?} {attrs:?}", show(&sub)));
        let old = match dice.chance(50) {
            true => self.array.at(At::Version(version)),
            false => opened(&context(dice, &self.tiles), &self.healthy, false, At::Version(version)),
        };
        let old = old.unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        let rows = self.read_from(&old, &sub, &attrs, order).unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        self.compare(rows, version, &sub, &attrs, order);
        self.check_points(&old, version, &attrs, dice);
        self.filtered(&old, version, dice);
        self.boxes(&old, version, dice);
    }

    fn names(&self, array: &Array, attrs: &[usize]) -> Vec<String> {
        let plan = self.plan_at(array.version());
        attrs.iter().map(|a| plan.schema.attrs()[*a].name().to_owned()).collect()
    }

    fn read_from(&self, array: &Array, sub: &[(Coord, Coord)], attrs: &[usize], order: ReadOrder) -> Result<Cells> {
        let texts = box_texts(self.model.dims(), sub);
        Ok(array.read(Some(&texts), Some(&self.names(array, attrs)), order, &Call::default())?.0)
    }

    /// Compares a result with the oracle's; a dense one has no coordinates and is compared as a flat vector.
    fn compare(&self, cells: Cells, version: u64, sub: &[(Coord, Coord)], attrs: &[usize], order: ReadOrder) {
        let expected = self.model.read(version, sub, attrs, order);
        let mut found = rows_of(&self.model, &cells);
        if !self.plan.schema.sparse() && cells.dims.is_empty() {
            assert_eq!(found.len(), expected.len(), "cells of a dense read\n{self:?}");
            found.iter_mut().zip(&expected).for_each(|(f, e)| f.0.clone_from(&e.0));
        }
        self.same(found, expected, order);
    }

    fn same(&self, found: Vec<Expected>, expected: Vec<Expected>, order: ReadOrder) {
        let (found, expected) = match order {
            ReadOrder::Any if self.plan.schema.sparse() => (expected_rows(found), expected_rows(expected)),
            _ => (found, expected),
        };
        if let Some(row) = (0..found.len().max(expected.len())).find(|r| found.get(*r) != expected.get(*r)) {
            let (f, e) = (found.get(row), expected.get(row));
            panic!(
                "{} cells read in order {order:?}, {} expected; row {row} is {f:?}, expected {e:?}\n{self:?}",
                found.len(),
                expected.len()
            );
        }
    }

    fn scan(&mut self, dice: &mut Dice) {
        let (sub, attrs, order) = self.request(dice);
        // Every batch of a row- or column-ordered stream opens every fragment, so batches of one cell are used only
        // with few.
        let sizes = match (self.plan.size, self.model.versions().len() < 20) {
            (Size::Tiny, true) => [1, 200, 5_000],
            (Size::Tiny, false) => [1_000, 2_000, 5_000],
            (Size::Blocks, _) => [20_000, 300_000, 1 << 30],
        };
        let batch = *dice.pick(&sizes);
        self.note(format!("scan {} {order:?} {attrs:?} by {batch} bytes", show(&sub)));
        let texts = box_texts(self.model.dims(), &sub);
        let scan =
            self.array.scan(Some(&texts), Some(&self.names(&self.array, &attrs)), order, batch, &Call::default());
        let mut scan = scan.unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        let mut found = Vec::new();
        while let Some(cells) = scan.next_batch().unwrap_or_else(|e| panic!("{e}\n{self:?}")) {
            assert!(cells.count > 0, "an empty batch\n{self:?}");
            assert_eq!(cells.dims.len(), self.model.dims().len(), "{self:?}");
            found.extend(rows_of(&self.model, &cells));
        }
        self.same(found, self.model.read(self.model.newest(), &sub, &attrs, order), order);
    }

    /// Reads all in every order, through a new context, and verifies every byte.
    pub fn check_everything(&mut self, dice: &mut Dice) {
        self.note("check everything".to_owned());
        let array = opened(&context(dice, &self.tiles), &self.healthy, false, At::Latest)
            .unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        assert_eq!(array.version(), self.model.newest(), "{self:?}");
        let (sub, attrs) = (self.plan.everything(), (0..self.plan.schema.attrs().len()).collect::<Vec<_>>());
        for order in ORDERS {
            let rows = self.read_from(&array, &sub, &attrs, order).unwrap_or_else(|e| panic!("{e}\n{self:?}"));
            self.compare(rows, self.model.newest(), &sub, &attrs, order);
        }
        self.check_points(&array, self.model.newest(), &attrs, dice);
        let report = array.verify(&Call::default()).unwrap();
        assert!(report.damage.is_empty(), "{:?}\n{self:?}", report.damage);
    }
}

/// The cells of a result; without coordinates if it has none.
pub fn rows_of(model: &Model, cells: &Cells) -> Vec<Expected> {
    let coords: Vec<Vec<Coord>> = model.dims().iter().zip(&cells.dims).map(|(d, c)| d.coords(c.view())).collect();
    let values: Vec<_> = cells.attrs.iter().map(|c| values_of(c.view())).collect();
    assert!(
        coords.iter().map(Vec::len).chain(values.iter().map(Vec::len)).all(|n| n == cells.count),
        "columns differ in length"
    );
    let row = |r: usize| (coords.iter().map(|c| c[r]).collect(), values.iter().map(|v| v[r].clone()).collect());
    (0..cells.count).map(row).collect()
}

/// Whether the change may be empty.
fn is_empty(change: &Change) -> bool {
    match change {
        Change::Box { .. } => false,
        // There may be no text between its ends.
        Change::Clear { sub } => sub.iter().any(|(lo, _)| matches!(lo, Coord::Text(_))),
        Change::Cells { cells, .. } | Change::Delete { cells } => cells.is_empty(),
    }
}

fn show(sub: &[(Coord, Coord)]) -> String {
    let number = |c: &Coord| match c {
        Coord::Int(v) => v.to_string(),
        Coord::Float(v) => format!("{v:?}"),
        Coord::Text(text) => format!("{text:?}"),
    };
    sub.iter().map(|(lo, hi)| format!("{}..={}", number(lo), number(hi))).collect::<Vec<_>>().join(" x ")
}

fn describe(change: &Change) -> String {
    match change {
        Change::Box { sub, attrs, .. } => format!("box {} {attrs:?}", show(sub)),
        Change::Cells { cells, attrs, dedup, .. } => format!("{} cells {attrs:?} {dedup:?}", cells.len()),
        Change::Clear { sub } => format!("clear {}", show(sub)),
        Change::Delete { cells } => format!("delete of {} cells", cells.len()),
    }
}
