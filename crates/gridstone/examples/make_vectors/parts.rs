//! Hidden arrays, metadata of attributes and dimensions, domains and boxes as only a store has them, in a store that is being made.

use super::model::{Model, places_of};
use super::world::{Values, World};
use gridstone::base::{Error, Id, Result};
use gridstone::schema::{Extent, KeyRange, Order, Schema, Subarray};
use gridstone::store::{Field, Node, Operation};
use serde_json::{Value, json};

/// Adds what `expect.json` says of a hidden array, and of the attributes and dimensions that have metadata.
pub(crate) fn list(listed: &mut Value, node: &Node) -> Result<()> {
    let Node::Array(array) = node else { return Ok(()) };
    if array.is_hidden() {
        listed["hidden"] = true.into();
    }
    let told = array.field_metadata()?;
    if !told.is_empty() {
        let of = |(field, metadata): (Field, _)| match field {
            Field::Attribute(number) => json!({"attr": number, "metadata": metadata}),
            Field::Dimension(place) => json!({"dim": place, "metadata": metadata}),
        };
        listed["fields"] = told.iter().map(|(field, metadata)| of((*field, &**metadata))).collect();
    }
    Ok(())
}

impl World {
    /// Creates an array with a schema as stores have it.
    pub(crate) fn create_stored(&mut self, path: &str, schema: &str) -> Result<()> {
        self.create(path, Schema::from_stored_json(schema)?)
    }

    /// Creates a hidden array of an array.
    pub(crate) fn hide(&mut self, id: Id, owner: &str, name: &str, schema: &str) -> Result<()> {
        let (above, schema) = (self.model(owner)?.0, Schema::from_stored_json(schema)?);
        self.follow(&format!("{owner}/{name}"), id, schema.clone());
        let name = name.to_owned();
        self.operations_mut().push(Operation::CreateHidden { id, owner: above, name, schema, ext: None });
        Ok(())
    }

    /// Sets (JSON text) or removes metadata of an attribute or dimension.
    pub(crate) fn tell(&mut self, path: &str, field: Field, key: &str, text: Option<&str>) -> Result<()> {
        let array = self.model(path)?.0;
        let changes = vec![(key.to_owned(), text.map(str::to_owned))];
        self.operations_mut().push(Operation::SetFieldMetadata { array, field, changes });
        Ok(())
    }

    /// Lets the domain of an array reach over `range` along an axis.
    pub(crate) fn grow(&mut self, path: &str, axis: u32, range: KeyRange) -> Result<()> {
        let (array, model) = self.model(path)?;
        let mut reached = model.schema.domain().ranges().to_vec();
        let at = reached.get_mut(axis as usize).ok_or_else(|| Error::input("there is no such axis"))?;
        *at = range;
        model.schema = model.schema.reaching(&Subarray::new(reached));
        self.operations_mut().push(Operation::Grow { array, dimension: axis, range });
        Ok(())
    }

    /// Writes a box of a dense array whose fragment then lies by so many whole tiles off.
    pub(crate) fn write_moved(
        &mut self,
        path: &str,
        sub: &[(&str, &str)],
        by: &[i64],
        values: Values<'_>,
    ) -> Result<()> {
        let before: Model = self.model(path)?.1.clone();
        self.write_box(path, sub, values.clone(), Order::Row)?;
        let last = match self.operations_mut().last_mut() {
            Some(Operation::AddFragments { fragments, .. }) => fragments.last_mut(),
            _ => None,
        };
        let Some(staged) = last else { return Err(Error::input("nothing was written")) };
        let shifted = |(range, (dim, by)): (&KeyRange, (&gridstone::schema::Dimension, &i64))| {
            let extent = match dim.extent() {
                Extent::Cells(extent) => extent,
                _ => 0,
            };
            let end = |key: u64| key.wrapping_add_signed(by.wrapping_mul(extent as i64));
            KeyRange::new(end(range.lo), end(range.hi))
        };
        let ranges = staged.description.bounds.ranges().iter();
        let bounds = Subarray::new(ranges.zip(before.schema.dims().iter().zip(by)).map(shifted).collect());
        (staged.description.bounds, staged.description.moved) = (bounds.clone(), by.to_vec());
        let model = self.model(path)?.1;
        *model = before;
        let places: Vec<usize> =
            values.iter().map(|(name, _)| model.schema.attr(name).map(|(place, _)| place)).collect::<Result<_>>()?;
        for (row, keys) in places_of(&bounds, Order::Row).into_iter().enumerate() {
            model.put(keys, places.iter().zip(&values).map(|(place, (_, cells))| (*place, cells[row].clone())));
        }
        Ok(())
    }
}
