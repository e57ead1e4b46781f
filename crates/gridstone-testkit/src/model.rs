//! The oracle: an array as a sorted map of cells, one per version.

use crate::coord::{Coord, Dim, Place, box_cells, compare_global, compare_plain, inside};
use crate::value::Value;
use gridstone::engine::{Dedup, ReadOrder};
use gridstone::schema::{Order, Schema};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One fragment's worth of change.
#[derive(Debug, Clone)]
pub enum Change {
    /// A dense box; the columns, one per attribute, hold its cells in row-major order.
    Box { sub: Vec<(Coord, Coord)>, attrs: Vec<usize>, columns: Vec<Vec<Value>> },
    /// Single cells in order of writing.
    Cells { cells: Vec<Place>, attrs: Vec<usize>, columns: Vec<Vec<Value>>, dedup: Dedup },
    /// Cells to be removed, whether there or not.
    Delete { cells: Vec<Place> },
    /// A box whose cells are removed.
    Clear { sub: Vec<(Coord, Coord)> },
}

/// Attribute values of one cell of the map; `None` where an attribute was not written.
type Row = Vec<Option<Value>>;

/// The cells of one version; several rows at a place where duplicates are allowed, in order of writing.
type State = BTreeMap<Place, Vec<Row>>;

/// A cell as it should be read: coordinates, and a value per attribute asked for.
pub type Expected = (Place, Vec<Value>);

/// A naive array.
#[derive(Debug, Clone)]
pub struct Model {
    schema: Arc<Schema>,
    dims: Vec<Dim>,
    versions: BTreeMap<u64, Arc<State>>,
}

impl Model {
    /// An empty array, which has been empty since `version`.
    pub fn new(schema: Arc<Schema>, version: u64) -> Self {
        let dims = Dim::all(&schema);
        Self { schema, dims, versions: BTreeMap::from([(version, Arc::default())]) }
    }

    /// Its dimensions.
    pub fn dims(&self) -> &[Dim] {
        &self.dims
    }

    /// Its schema.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The versions it knows, ascending.
    pub fn versions(&self) -> Vec<u64> {
        self.versions.keys().copied().collect()
    }

    /// Versions below `floor` are gone.
    pub fn forget_below(&mut self, floor: u64) {
        self.versions.retain(|version, _| *version >= floor);
    }

    /// The newest version.
    pub fn newest(&self) -> u64 {
        *self.versions.keys().next_back().unwrap()
    }

    /// Cells in the newest version.
    pub fn cells(&self) -> usize {
        self.versions.values().next_back().unwrap().values().map(Vec::len).sum()
    }

    /// Does `changes` as `version`.
    pub fn commit(&mut self, version: u64, changes: &[Change]) {
        assert!(version > self.newest(), "version {version} is not after {}", self.newest());
        let mut state = State::clone(self.versions.values().next_back().unwrap());
        for change in changes {
            self.apply(&mut state, change);
        }
        self.versions.insert(version, Arc::new(state));
    }

    /// Removes, as `version`, the cells in `sub` whose value of an attribute `selects` takes.
    pub fn commit_where(
        &mut self,
        version: u64,
        sub: &[(Coord, Coord)],
        attr: usize,
        selects: &dyn Fn(&Value) -> bool,
    ) {
        assert!(version > self.newest(), "version {version} is not after {}", self.newest());
        let mut state = State::clone(self.versions.values().next_back().unwrap());
        for (_, rows) in state.iter_mut().filter(|(place, _)| inside(sub, place)) {
            rows.retain(|row| !selects(&self.values(Some(row), &[attr])[0]));
        }
        state.retain(|_, rows| !rows.is_empty());
        self.versions.insert(version, Arc::new(state));
    }

    fn apply(&self, state: &mut State, change: &Change) {
        match change {
            Change::Box { sub, attrs, columns } => {
                for (row, place) in box_cells(sub).into_iter().enumerate() {
                    self.overwrite(state, place, attrs, columns, row);
                }
            }
            Change::Cells { cells, attrs, columns, dedup } => {
                for row in self.kept(cells, *dedup) {
                    let place = cells[row].clone();
                    if self.schema.options().duplicates {
                        let values = columns.iter().map(|c| Some(c[row].clone())).collect();
                        state.entry(place).or_default().push(values);
                    } else {
                        self.overwrite(state, place, attrs, columns, row);
                    }
                }
            }
            Change::Clear { sub } => state.retain(|place, _| !inside(sub, place)),
            Change::Delete { cells } => cells.iter().for_each(|place| drop(state.remove(place))),
        }
    }

    fn overwrite(&self, state: &mut State, place: Place, attrs: &[usize], columns: &[Vec<Value>], row: usize) {
        let rows = state.entry(place).or_insert_with(|| vec![vec![None; self.schema.attrs().len()]]);
        for (attr, column) in attrs.iter().zip(columns) {
            rows[0][*attr] = Some(column[row].clone());
        }
    }

    /// The rows of a write that count, in order of writing.
    fn kept(&self, cells: &[Place], dedup: Dedup) -> Vec<usize> {
        let mut chosen: BTreeMap<&Place, usize> = BTreeMap::new();
        match dedup {
            Dedup::Error => return (0..cells.len()).collect(),
            Dedup::First => chosen.extend(cells.iter().enumerate().rev().map(|(row, c)| (c, row))),
            Dedup::Last => chosen.extend(cells.iter().enumerate().map(|(row, c)| (c, row))),
        }
        chosen.into_values().collect()
    }

    /// Whether the engine must refuse the write because it names a cell twice.
    pub fn refuses(&self, change: &Change) -> bool {
        let Change::Cells { cells, dedup: Dedup::Error, .. } = change else { return false };
        let distinct: std::collections::BTreeSet<&Place> = cells.iter().collect();
        !self.schema.options().duplicates && distinct.len() < cells.len()
    }

    /// What a read of `sub` at `version` should give, in `order`: every cell of the box for a dense array.
    pub fn read(&self, version: u64, sub: &[(Coord, Coord)], attrs: &[usize], order: ReadOrder) -> Vec<Expected> {
        let state = self.versions.range(..=version).next_back().unwrap().1;
        let mut rows: Vec<Expected> = if self.schema.sparse() {
            let there = state.iter().filter(|(place, _)| inside(sub, place));
            there
                .flat_map(|(place, rows)| rows.iter().map(|row| (place.clone(), self.values(Some(row), attrs))))
                .collect()
        } else {
            box_cells(sub)
                .into_iter()
                .map(|p| {
                    let values = self.values(state.get(&p).and_then(|rows| rows.first()), attrs);
                    (p, values)
                })
                .collect()
        };
        // A stable sort: duplicates stay in order of writing.
        rows.sort_by(|a, b| self.compare(order, &a.0, &b.0));
        rows
    }

    /// What a read of the cells at `places` should give: one row per place for a dense array, of a sparse one the rows
    /// that are there.
    pub fn points(&self, version: u64, places: &[Place], attrs: &[usize]) -> Vec<Expected> {
        let state = self.versions.range(..=version).next_back().unwrap().1;
        let mut found = Vec::new();
        for place in places {
            let rows = state.get(place).map(Vec::as_slice).unwrap_or_default();
            if !self.schema.sparse() {
                found.push((place.clone(), self.values(rows.first(), attrs)));
                continue;
            }
            found.extend(rows.iter().map(|row| (place.clone(), self.values(Some(row), attrs))));
        }
        found
    }

    fn values(&self, row: Option<&Row>, attrs: &[usize]) -> Vec<Value> {
        let blank = |attr: usize| {
            let attr = &self.schema.attrs()[attr];
            (!attr.nullable()).then(|| attr.fill().to_vec())
        };
        attrs.iter().map(|a| row.and_then(|r| r[*a].clone()).unwrap_or_else(|| blank(*a))).collect()
    }

    /// Compares two cells in the order of a result.
    pub fn compare(&self, order: ReadOrder, a: &Place, b: &Place) -> Ordering {
        match order {
            ReadOrder::Row => compare_plain(Order::Row, a, b),
            ReadOrder::Col => compare_plain(Order::Col, a, b),
            ReadOrder::Global | ReadOrder::Any => compare_global(&self.schema, &self.dims, a, b),
        }
    }
}

/// `rows` as a canonical multiset, for results whose order is left open.
pub fn expected_rows(mut rows: Vec<Expected>) -> Vec<Expected> {
    rows.sort();
    rows
}
