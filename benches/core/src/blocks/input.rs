//! Prepared inputs: a schema and raw columns, as `benches/blocks/prepare.py` writes them.

use gridstone::base::{AlignedBuf, Error, Result};
use gridstone::codec::Pipeline;
use gridstone::engine::Column;
use gridstone::schema::{Datatype, Schema};
use serde_json::Value;
use std::path::Path;

/// A future array: its schema without filters, and its columns.
#[derive(Debug)]
pub(crate) struct Input {
    /// Its name in tables.
    pub(crate) name: String,
    /// Its description.
    pub(crate) about: String,
    schema: Value,
    dims: Vec<Column>,
    attrs: Vec<(String, Column)>,
}

fn wrong(what: &str) -> Error {
    Error::input(format!("inputs.json lacks {what}; run prepare.py again"))
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value.get(key).and_then(Value::as_str).ok_or_else(|| wrong(key))
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value.get(key).and_then(Value::as_array).ok_or_else(|| wrong(key))
}

/// Whether a pipeline, or `auto`, accepts a type.
pub(crate) fn suits(filters: &str, datatype: Datatype) -> bool {
    filters == "auto" || Pipeline::parse(filters).is_ok_and(|p| p.check(datatype.element()).is_ok())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| Error::input(format!("{} cannot be read: {e}", path.display())))
}

impl Input {
    /// The inputs of a folder whose names contain one of `only` (all if there is none), one after the other.
    ///
    /// # Errors
    /// Input if the folder was not prepared.
    pub(crate) fn all(folder: &Path, only: &[String]) -> Result<impl Iterator<Item = Result<Self>>> {
        let json: Value = serde_json::from_slice(&read(&folder.join("inputs.json"))?)
            .map_err(|e| Error::input(format!("inputs.json is no JSON: {e}")))?;
        let wanted = |entry: &&Value| {
            let name = text(entry, "name").unwrap_or_default();
            only.is_empty() || only.iter().any(|part| part == name)
        };
        let entries: Vec<Value> = list(&json, "inputs")?.iter().filter(wanted).cloned().collect();
        let folder = folder.to_owned();
        Ok(entries.into_iter().map(move |entry| Self::read(&folder, &entry)))
    }

    fn read(folder: &Path, entry: &Value) -> Result<Self> {
        let schema = entry.get("schema").ok_or_else(|| wrong("schema"))?;
        let files = entry.get("files").ok_or_else(|| wrong("files"))?;
        let column = |field: &Value| {
            let name = text(field, "name")?;
            let values = read(&folder.join(text(files, name)?))?;
            let datatype = Datatype::parse(text(field, "dtype")?)?;
            Ok((name.to_owned(), Column::new(datatype, AlignedBuf::from_slice(&values), None, None)?))
        };
        let sparse = schema.get("sparse").and_then(Value::as_bool).unwrap_or(false);
        let dims = if sparse { list(schema, "dims")?.as_slice() } else { &[] };
        Ok(Self {
            name: text(entry, "name")?.to_owned(),
            about: text(entry, "about")?.to_owned(),
            schema: schema.clone(),
            dims: dims.iter().map(|d| column(d).map(|c| c.1)).collect::<Result<_>>()?,
            attrs: list(schema, "attrs")?.iter().map(column).collect::<Result<_>>()?,
        })
    }

    /// Whether its cells have coordinates.
    pub(crate) fn is_sparse(&self) -> bool {
        !self.dims.is_empty()
    }

    /// How many cells it has.
    pub(crate) fn cells(&self) -> usize {
        self.attrs.first().map_or(0, |(_, column)| column.len())
    }

    /// Bytes of all values and coordinates.
    pub(crate) fn raw_bytes(&self) -> usize {
        self.dims.iter().chain(self.attrs.iter().map(|(_, c)| c)).map(|c| c.view().values().len()).sum()
    }

    /// Coordinates, a column per dimension; none for a dense input.
    pub(crate) fn dims(&self) -> &[Column] {
        &self.dims
    }

    /// Values by attribute.
    pub(crate) fn attrs(&self) -> &[(String, Column)] {
        &self.attrs
    }

    /// Whether a pipeline, or `auto`, accepts all columns.
    pub(crate) fn accepts(&self, filters: &str) -> bool {
        self.schema(&|_| true, &|_| filters.to_owned()).is_ok()
            && self.dims.iter().all(|column| suits(filters, column.datatype()))
    }

    /// The schema of these attributes, and of the coordinates, with the filters that `filters` returns for each
    /// column's name (`None`: the coordinates).
    ///
    /// # Errors
    /// Schema if a filter does not accept its column.
    pub(crate) fn schema(
        &self,
        keep: &dyn Fn(&str) -> bool,
        filters: &dyn Fn(Option<&str>) -> String,
    ) -> Result<Schema> {
        let mut json = self.schema.clone();
        if let Some(attrs) = json.get_mut("attrs").and_then(Value::as_array_mut) {
            attrs.retain(|attr| text(attr, "name").is_ok_and(keep));
            for attr in attrs {
                let chosen = filters(Some(text(attr, "name")?));
                if let Some(fields) = attr.as_object_mut() {
                    fields.insert("filters".to_owned(), Value::String(chosen));
                }
            }
        }
        if let Some(fields) = json.as_object_mut() {
            fields.insert("coord_filters".to_owned(), Value::String(filters(None)));
        }
        Schema::from_json(&json.to_string())
    }

    /// The datatype, the space tiles and the shape in words.
    ///
    /// # Errors
    /// Schema if the input has no valid one.
    pub(crate) fn describe(&self) -> Result<String> {
        let schema = self.schema(&|_| true, &|_| "none".to_owned())?;
        let kinds: Vec<String> = self.attrs.iter().map(|(_, c)| c.datatype().to_string()).collect();
        let tiles: Vec<String> =
            schema.dims().iter().map(|d| d.texts().2.unwrap_or_else(|| "whole".to_owned())).collect();
        let shape: Vec<String> = schema.domain().shape().iter().map(u64::to_string).collect();
        let what = if self.is_sparse() { format!("{} cells", self.cells()) } else { shape.join(" x ") };
        Ok(format!("{}: {what}, {}, tiles {}", self.about, kinds.join(" "), tiles.join(" x ")))
    }
}
