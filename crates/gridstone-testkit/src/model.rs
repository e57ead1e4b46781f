//! The oracle: an array as a sorted map of cells, one per version.

use crate::coord::{Coord, Dim, Place, box_cells, compare_global, compare_plain, inside};
use crate::rounding;
use crate::value::Value;
use gridstone::engine::{Dedup, ReadOrder};
use gridstone::schema::{Order, Schema};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The change of one fragment.
#[derive(Debug, Clone)]
pub enum Change {
    /// A dense box; the columns, one per attribute, have its cells in row-major order.
    Box { sub: Vec<(Coord, Coord)>, attrs: Vec<usize>, columns: Vec<Vec<Value>> },
    /// Single cells in the order of writing.
    Cells { cells: Vec<Place>, attrs: Vec<usize>, columns: Vec<Vec<Value>>, dedup: Dedup },
    /// Cells to delete, whether they exist or not.
    Delete { cells: Vec<Place> },
    /// A box whose cells are deleted.
    Clear { sub: Vec<(Coord, Coord)> },
}

/// Attribute values of one cell of the map, by the attribute's number in the model; an attribute that was not written
/// is missing.
type Row = BTreeMap<u32, Value>;

/// The cells of one version; several rows at a position where duplicates are allowed, in the order of writing.
type State = BTreeMap<Place, Vec<Row>>;

/// A cell as it should be read: coordinates, and a value per requested attribute.
pub type Expected = (Place, Vec<Value>);

/// The definition of an array from some version on.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Its schema; attributes are numbered by their position in it.
    pub schema: Arc<Schema>,
    /// Its dimensions.
    pub dims: Vec<Dim>,
    /// The number of each attribute, which is the same as long as the attribute exists.
    pub keys: Vec<u32>,
    /// The number of the next attribute.
    pub next_key: u32,
    /// How many changes of attributes made it.
    pub changes: u32,
}

impl Shape {
    /// The shape of a new array.
    pub fn new(schema: Arc<Schema>) -> Self {
        let next_key = schema.attrs().len() as u32;
        Self { dims: Dim::all(&schema), keys: (0..next_key).collect(), next_key, changes: 0, schema }
    }
}

/// A naive array.
#[derive(Debug, Clone)]
pub struct Model {
    /// By the first version of each.
    shapes: BTreeMap<u64, Arc<Shape>>,
    versions: BTreeMap<u64, Arc<State>>,
}

impl Model {
    /// An empty array, which has been empty since `version`.
    pub fn new(schema: Arc<Schema>, version: u64) -> Self {
        let shapes = BTreeMap::from([(version, Arc::new(Shape::new(schema)))]);
        Self { shapes, versions: BTreeMap::from([(version, Arc::default())]) }
    }

    /// Its dimensions in the newest version.
    pub fn dims(&self) -> &[Dim] {
        &self.shape().dims
    }

    /// Its schema in the newest version.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.shape().schema
    }

    /// Its shape in the newest version.
    pub fn shape(&self) -> &Arc<Shape> {
        self.shapes.values().next_back().unwrap()
    }

    /// Its shape at `version`.
    pub fn shape_at(&self, version: u64) -> &Arc<Shape> {
        self.shapes.range(..=version).next_back().unwrap().1
    }

    /// The model as seen by a user who has not seen later versions.
    pub fn seen_at(&self, version: u64) -> Self {
        let shapes = self.shapes.range(..=version).map(|(v, s)| (*v, s.clone())).collect();
        Self { shapes, versions: self.versions.clone() }
    }

    /// Changes the shape to `shape` in `version`.
    pub fn evolve(&mut self, version: u64, shape: Shape) {
        self.commit(version, &[]);
        self.shapes.insert(version, Arc::new(shape));
    }

    /// The versions it knows, ascending.
    pub fn versions(&self) -> Vec<u64> {
        self.versions.keys().copied().collect()
    }

    /// Forgets versions below `floor`.
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

    /// Applies `changes` as `version`.
    pub fn commit(&mut self, version: u64, changes: &[Change]) {
        self.commit_written(version, changes, self.newest());
    }

    /// Applies `changes` as `version`, by a writer that has not seen versions after `seen`.
    pub fn commit_written(&mut self, version: u64, changes: &[Change], seen: u64) {
        let shape = self.shape_at(seen).clone();
        assert!(version > self.newest(), "version {version} is not after {}", self.newest());
        let mut state = State::clone(self.versions.values().next_back().unwrap());
        for change in changes {
            Self::apply(&shape, &mut state, change);
        }
        self.versions.insert(version, Arc::new(state));
    }

    /// Deletes, as `version`, the cells in `sub` that `selects` accepts by their coordinates and their values, one per
    /// attribute.
    pub fn commit_where(&mut self, version: u64, sub: &[(Coord, Coord)], selects: &dyn Fn(&Place, &[Value]) -> bool) {
        let attrs: Vec<usize> = (0..self.schema().attrs().len()).collect();
        assert!(version > self.newest(), "version {version} is not after {}", self.newest());
        let mut state = State::clone(self.versions.values().next_back().unwrap());
        for (place, rows) in state.iter_mut().filter(|(place, _)| inside(sub, place)) {
            rows.retain(|row| !selects(place, &Self::values(self.shape(), Some(row), &attrs)));
        }
        state.retain(|_, rows| !rows.is_empty());
        self.versions.insert(version, Arc::new(state));
    }

    fn apply(shape: &Shape, state: &mut State, change: &Change) {
        let written = |attrs: &[usize], columns: &[Vec<Value>], row: usize| -> Row {
            let stored = |attr: usize, value: &Value| {
                value.as_deref().map(|bytes| rounding::stored(&shape.schema.attrs()[attr], bytes))
            };
            attrs.iter().zip(columns).map(|(attr, column)| (shape.keys[*attr], stored(*attr, &column[row]))).collect()
        };
        match change {
            Change::Box { sub, attrs, columns } => {
                for (row, place) in box_cells(sub).into_iter().enumerate() {
                    let values = written(attrs, columns, row);
                    state.entry(place).or_insert_with(|| vec![Row::new()])[0].extend(values);
                }
            }
            Change::Cells { cells, attrs, columns, dedup } => {
                for row in Self::kept(cells, *dedup) {
                    let (place, values) = (cells[row].clone(), written(attrs, columns, row));
                    let rows = state.entry(place).or_default();
                    match (shape.schema.options().duplicates, shape.schema.sparse()) {
                        (true, _) => rows.push(values),
                        // A cell of a sparse array is written whole.
                        (false, true) => *rows = vec![values],
                        (false, false) if rows.is_empty() => rows.push(values),
                        (false, false) => rows[0].extend(values),
                    }
                }
            }
            Change::Clear { sub } => state.retain(|place, _| !inside(sub, place)),
            Change::Delete { cells } => cells.iter().for_each(|place| drop(state.remove(place))),
        }
    }

    /// The rows of a write that count, in the order of writing.
    fn kept(cells: &[Place], dedup: Dedup) -> Vec<usize> {
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
        !self.schema().options().duplicates && distinct.len() < cells.len()
    }

    /// The expected result of a read of `sub` at `version`, in `order`: every cell of the box for a dense array.
    pub fn read(&self, version: u64, sub: &[(Coord, Coord)], attrs: &[usize], order: ReadOrder) -> Vec<Expected> {
        let (state, shape) = (self.versions.range(..=version).next_back().unwrap().1, self.shape_at(version));
        let values = |row: Option<&Row>| Self::values(shape, row, attrs);
        let mut rows: Vec<Expected> = if shape.schema.sparse() {
            let there = state.iter().filter(|(place, _)| inside(sub, place));
            there.flat_map(|(place, rows)| rows.iter().map(|row| (place.clone(), values(Some(row))))).collect()
        } else {
            box_cells(sub)
                .into_iter()
                .map(|p| {
                    let values = values(state.get(&p).and_then(|rows| rows.first()));
                    (p, values)
                })
                .collect()
        };
        // A stable sort: duplicates keep the order of writing.
        rows.sort_by(|a, b| self.compare(order, &a.0, &b.0));
        rows
    }

    /// The expected result of a read of the cells at `places`: one row per place for a dense array; for a sparse one
    /// the rows that exist.
    pub fn points(&self, version: u64, places: &[Place], attrs: &[usize]) -> Vec<Expected> {
        let (state, shape) = (self.versions.range(..=version).next_back().unwrap().1, self.shape_at(version));
        let mut found = Vec::new();
        for place in places {
            let rows = state.get(place).map(Vec::as_slice).unwrap_or_default();
            if !shape.schema.sparse() {
                found.push((place.clone(), Self::values(shape, rows.first(), attrs)));
                continue;
            }
            found.extend(rows.iter().map(|row| (place.clone(), Self::values(shape, Some(row), attrs))));
        }
        found
    }

    fn values(shape: &Shape, row: Option<&Row>, attrs: &[usize]) -> Vec<Value> {
        let blank = |attr: usize| {
            let attr = &shape.schema.attrs()[attr];
            (!attr.nullable()).then(|| attr.fill().to_vec())
        };
        let written = |attr: &usize| row.and_then(|r| r.get(&shape.keys[*attr]).cloned());
        attrs.iter().map(|a| written(a).unwrap_or_else(|| blank(*a))).collect()
    }

    /// Compares two cells in the order of a result.
    pub fn compare(&self, order: ReadOrder, a: &Place, b: &Place) -> Ordering {
        match order {
            ReadOrder::Row => compare_plain(Order::Row, a, b),
            ReadOrder::Col => compare_plain(Order::Col, a, b),
            ReadOrder::Global | ReadOrder::Any => compare_global(self.schema(), self.dims(), a, b),
        }
    }
}

/// `rows` as a canonical multiset, for results without a defined order.
pub fn expected_rows(mut rows: Vec<Expected>) -> Vec<Expected> {
    rows.sort();
    rows
}
