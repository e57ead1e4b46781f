//! What an array should hold, kept cell by cell beside the engine: slow, and too simple to be wrong in the same way.

use super::value::{self, Cell};
use gridstone::base::Result;
use gridstone::schema::text::text_of;
use gridstone::schema::{Coordinate, Order, Schema, Subarray, key};
use gridstone::tile::KeyLayout;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// One row of cells: a value per attribute, `None` where it was never written.
type Row = Vec<Option<Cell>>;

/// An array as it should be. A place has several rows only where the schema allows duplicates.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    /// Its schema.
    pub schema: Schema,
    places: BTreeMap<Vec<u64>, Vec<Row>>,
}

impl Model {
    /// An array without cells.
    pub(crate) fn new(schema: Schema) -> Self {
        Self { schema, places: BTreeMap::new() }
    }

    /// Writes one cell: attributes by place in the schema.
    pub(crate) fn put(&mut self, keys: Vec<u64>, values: impl IntoIterator<Item = (usize, Cell)>) {
        let blank = vec![None; self.schema.attrs().len()];
        let rows = self.places.entry(keys).or_default();
        if rows.is_empty() || self.schema.options().duplicates {
            rows.push(blank);
        }
        if let Some(row) = rows.last_mut() {
            for (place, cell) in values {
                row[place] = Some(cell);
            }
        }
    }

    /// Takes another schema; attributes that both have are those of the same number.
    pub(crate) fn evolve(&mut self, schema: Schema) {
        let old = std::mem::replace(&mut self.schema, schema);
        let place = |id: u32| old.attrs().iter().position(|a| a.id() == id);
        let places: Vec<Option<usize>> = self.schema.attrs().iter().map(|a| place(a.id())).collect();
        let moved = |row: &Row| places.iter().map(|at| at.and_then(|at| row[at].clone())).collect();
        self.places.values_mut().flatten().for_each(|row| *row = moved(row));
    }

    /// Deletes what is at a place.
    pub(crate) fn delete(&mut self, keys: &[u64]) {
        self.places.remove(keys);
    }

    /// Deletes what is in a box.
    pub(crate) fn delete_box(&mut self, sub: &Subarray) {
        self.places.retain(|keys, _| !sub.contains(keys.iter().copied()));
    }

    /// Deletes the cells whose attribute at this place of the schema is selected.
    pub(crate) fn delete_where(&mut self, attr: usize, selects: impl Fn(&Cell) -> bool) {
        let schema = &self.schema;
        let blank = |row: &Row| row[attr].clone().unwrap_or_else(|| Some(schema.attrs()[attr].fill().to_vec()));
        self.places.values_mut().for_each(|rows| rows.retain(|row| !selects(&blank(row))));
        self.places.retain(|_, rows| !rows.is_empty());
    }

    /// What reading `sub` should give: a dense box in row-major order, sparse cells in global order. The whole of an array
    /// whose domain is empty is no box, and has no cell.
    pub(crate) fn read(&self, sub: &Subarray) -> Result<Value> {
        // Along texts all is read.
        let ends = |dim: Coordinate<'_>| match (dim.number(), sub.ranges().get(dim.axes().start)) {
            (Some(axis), Some(range)) => json!([axis.text(range.lo), axis.text(range.hi)]),
            _ => Value::Null,
        };
        let mut read = Map::new();
        let told = match (self.schema.is_without_cells(), self.schema.is_scalar()) {
            (true, _) => Value::Null,
            // The axis that an array of no dimension has on disk.
            (_, true) => json!([["0", "0"]]),
            _ => self.schema.coordinates().map(ends).collect(),
        };
        read.insert("box".into(), told);
        let found = if self.schema.sparse() { self.sparse(sub) } else { self.dense(sub) };
        read.insert("cells".into(), json!(found.len()));
        let mut columns = Map::new();
        if self.schema.sparse() {
            for dim in self.schema.coordinates() {
                if dim.number().is_none() {
                    let texts: Vec<Cell> =
                        found.iter().map(|(keys, _)| Some(text_of(keys[dim.axes()].to_vec()))).collect();
                    columns.insert(dim.name().to_owned(), value::column(dim.datatype(), &texts));
                    continue;
                }
                let mut bytes = Vec::new();
                let width = dim.datatype().width().unwrap_or(8);
                key::decode(dim.datatype(), found.iter().map(|(keys, _)| keys[dim.axes().start]), &mut bytes);
                let cells: Vec<Cell> = bytes.chunks(width).map(|c| Some(c.to_vec())).collect();
                columns.insert(dim.name().to_owned(), value::column(dim.datatype(), &cells));
            }
        }
        for (place, attr) in self.schema.attrs().iter().enumerate() {
            let blank = || if attr.nullable() { None } else { Some(attr.fill().to_vec()) };
            let of = |row: &Row| row.get(place).cloned().flatten().unwrap_or_else(blank);
            let cells: Vec<Cell> = found.iter().map(|(_, row)| of(row)).collect();
            columns.insert(attr.name().to_owned(), value::of_attr(attr, &cells));
        }
        read.insert("columns".into(), Value::Object(columns));
        Ok(Value::Object(read))
    }

    fn dense(&self, sub: &Subarray) -> Vec<(Vec<u64>, Row)> {
        let at = |keys: Vec<u64>| {
            let row = self.places.get(&keys).and_then(|rows| rows.last()).cloned().unwrap_or_default();
            (keys, row)
        };
        places_of(sub, Order::Row).into_iter().map(at).collect()
    }

    fn sparse(&self, sub: &Subarray) -> Vec<(Vec<u64>, Row)> {
        let inside = self.places.iter().filter(|(keys, _)| sub.contains(keys.iter().copied()));
        let mut found: Vec<(Vec<u64>, Row)> =
            inside.flat_map(|(k, rows)| rows.iter().map(|r| (k.clone(), r.clone()))).collect();
        let (dims, options) = (self.schema.dims(), self.schema.options());
        if options.cell_order == Order::Hilbert {
            // As the engine has it: the independent reader, which follows the page on keys, says whether that is right.
            let column = |d: usize| found.iter().map(|(keys, _)| keys[d]).collect::<Vec<u64>>();
            let columns: Vec<Vec<u64>> = (0..dims.len()).map(column).collect();
            let keys = KeyLayout::new(&self.schema).keys(&columns.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let mut rows: Vec<usize> = (0..found.len()).collect();
            rows.sort_by(|a, b| keys.compare(*a, &keys, *b));
            return rows.into_iter().map(|row| found[row].clone()).collect();
        }
        found.sort_by_cached_key(|(keys, _)| {
            let tiles = self.schema.slowest_first(options.tile_order).into_iter().map(|d| dims[d].tile_of(keys[d]));
            let cells = self.schema.slowest_first(options.cell_order).into_iter().map(|d| keys[d]);
            tiles.chain(cells).collect::<Vec<u64>>()
        });
        found
    }
}

/// Every place of a box, in `order`.
pub(crate) fn places_of(sub: &Subarray, order: Order) -> Vec<Vec<u64>> {
    let mut places = vec![vec![0; sub.ndim()]];
    for d in order.slowest_first(sub.ndim()) {
        let range = sub.ranges()[d];
        let grow = |place: Vec<u64>| {
            (range.lo..=range.hi).map(move |k| {
                let mut place = place.clone();
                place[d] = k;
                place
            })
        };
        places = places.into_iter().flat_map(grow).collect();
    }
    places
}
