//! What a column is, beside its values.

use gridstone::engine::ResultColumn;
use gridstone::schema::{Attribute, Categories, Coordinate, Datatype, Schema};

/// The name of a column, the type of its values, whether some may be null, and the categories whose codes they are.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) datatype: Datatype,
    pub(crate) nullable: bool,
    pub(crate) categories: Option<Categories>,
}

impl Field {
    pub(crate) fn of_dimension(dim: Coordinate<'_>) -> Self {
        Self { name: dim.name().to_owned(), datatype: dim.datatype(), nullable: false, categories: None }
    }

    pub(crate) fn of_attribute(attr: &Attribute) -> Self {
        Self {
            name: attr.name().to_owned(),
            datatype: attr.datatype(),
            nullable: attr.nullable(),
            categories: attr.categories().cloned(),
        }
    }

    /// The fields of all dimensions.
    pub(crate) fn of_dimensions(schema: &Schema) -> Vec<Self> {
        schema.coordinates().map(Self::of_dimension).collect()
    }

    /// The fields of the attributes of these names.
    pub(crate) fn of_attributes(schema: &Schema, names: &[String]) -> gridstone::base::Result<Vec<Self>> {
        names.iter().map(|name| Ok(Self::of_attribute(schema.attr(name)?.1))).collect()
    }

    /// The field of a column of an answer to a question to an array of this schema.
    pub(crate) fn of_answer(schema: &Schema, column: &ResultColumn, datatype: Datatype) -> Self {
        let attr = column.categories.and_then(|place| schema.attrs().get(place));
        let categories = attr.and_then(Attribute::categories).cloned();
        Self { name: column.name.clone(), datatype, nullable: column.nullable, categories }
    }
}
