//! Schemas as JSON: what the log holds and what users export. Values are text (see [`super::text_to_bytes`]).
//!
//! ```json
//! {"sparse": true, "capacity": 10000, "tile_order": "row", "cell_order": "row", "duplicates": true,
//!  "coord_filters": "auto",
//!  "dims":  [{"name": "x", "dtype": "int64", "domain": ["0", "999"], "tile": "100"}],
//!  "attrs": [{"name": "sog", "dtype": "float32", "nullable": true, "fill": "0.0", "filters": "auto"}]}
//! ```
//! `tile` may be null (one tile); `fill`, `nullable`, `filters` and every top-level option but `dims` and `attrs` may
//! be left out. Unknown keys are an error, so that a schema is never half understood.

use super::{Attribute, Datatype, Dimension, Filters, Order, Schema, SchemaOptions};
use crate::base::{Error, Result};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemaJson {
    #[serde(default)]
    sparse: bool,
    #[serde(default = "default_capacity")]
    capacity: u64,
    #[serde(default = "default_order")]
    tile_order: String,
    #[serde(default = "default_order")]
    cell_order: String,
    #[serde(default)]
    duplicates: bool,
    #[serde(default = "default_filters")]
    coord_filters: String,
    dims: Vec<DimensionJson>,
    attrs: Vec<AttributeJson>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DimensionJson {
    name: String,
    dtype: String,
    domain: (String, String),
    #[serde(default)]
    tile: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AttributeJson {
    name: String,
    dtype: String,
    #[serde(default)]
    nullable: bool,
    #[serde(default)]
    fill: Option<String>,
    #[serde(default = "default_filters")]
    filters: String,
}

fn default_capacity() -> u64 {
    SchemaOptions::default().capacity
}

fn default_order() -> String {
    "row".to_owned()
}

fn default_filters() -> String {
    "auto".to_owned()
}

impl Schema {
    /// The schema written in `text`; a Schema error says what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self> {
        let json: SchemaJson = serde_json::from_str(text)
            .map_err(|e| Error::schema(format!("this is no schema in JSON: {e}")).with_source(e))?;
        let dims = json.dims.iter().map(|d| {
            let datatype = Datatype::parse(&d.dtype).map_err(|e| e.context(format!("dimension {:?}", d.name)))?;
            Dimension::new(&d.name, datatype, &d.domain.0, &d.domain.1, d.tile.as_deref())
        });
        let attrs = json.attrs.iter().map(|a| {
            let datatype = Datatype::parse(&a.dtype).map_err(|e| e.context(format!("attribute {:?}", a.name)))?;
            Attribute::new(&a.name, datatype, a.nullable, a.fill.as_deref(), &a.filters)
        });
        let options = SchemaOptions {
            sparse: json.sparse,
            capacity: json.capacity,
            tile_order: Order::parse(&json.tile_order)?,
            cell_order: Order::parse_of_cells(&json.cell_order)?,
            duplicates: json.duplicates,
            coord_filters: Filters::parse(&json.coord_filters)?,
        };
        Self::new(dims.collect::<Result<_>>()?, attrs.collect::<Result<_>>()?, options)
    }

    /// The schema as JSON on one line, with every option written out.
    pub fn to_json(&self) -> String {
        let o = self.options();
        let json = SchemaJson {
            sparse: o.sparse,
            capacity: o.capacity,
            tile_order: o.tile_order.to_string(),
            cell_order: o.cell_order.to_string(),
            duplicates: o.duplicates,
            coord_filters: o.coord_filters.text().to_owned(),
            dims: self.dims().iter().map(DimensionJson::of).collect(),
            attrs: self.attrs().iter().map(AttributeJson::of).collect(),
        };
        serde_json::to_string(&json).unwrap_or_default()
    }
}

impl DimensionJson {
    fn of(dim: &Dimension) -> Self {
        let (lo, hi, tile) = dim.texts();
        Self { name: dim.name().to_owned(), dtype: dim.datatype().to_string(), domain: (lo, hi), tile }
    }
}

impl AttributeJson {
    fn of(attr: &Attribute) -> Self {
        Self {
            name: attr.name().to_owned(),
            dtype: attr.datatype().to_string(),
            nullable: attr.nullable(),
            fill: Some(attr.fill_text()),
            filters: attr.filters().text().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AIS: &str = r#"{"sparse":true,"capacity":1000,"tile_order":"col","cell_order":"row","duplicates":true,
        "coord_filters":"delta,zstd:3","dims":[{"name":"x","dtype":"int64","domain":["-9","999"],"tile":"100"},
        {"name":"t","dtype":"datetime64[s]","domain":["0","999"],"tile":null}],
        "attrs":[{"name":"sog","dtype":"float32","nullable":true,"fill":"-1.5","filters":"shuffle,zstd:1"},
        {"name":"name","dtype":"string"}]}"#;

    #[test]
    fn schemas_survive_json() {
        let mut text = AIS.to_owned();
        text = text.replace("delta,zstd:3", "zstd:3");
        let schema = Schema::from_json(&text).unwrap();
        assert_eq!(Schema::from_json(&schema.to_json()).unwrap(), schema);
        assert_eq!(schema.attrs()[1].id(), 1);
        assert_eq!(schema.attrs()[0].fill(), (-1.5f32).to_le_bytes());
    }

    #[test]
    fn bad_schemas_are_refused() {
        let refuse = |from: &str, to: &str, word: &str| {
            let error = Schema::from_json(&AIS.replace(from, to)).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        };
        refuse("\"sparse\":true", "\"sparse\":false", "duplicates");
        refuse("\"name\":\"sog\"", "\"name\":\"x\"", "twice");
        refuse("\"capacity\":1000", "\"capacity\":0", "capacity");
        refuse("float32", "float128", "float128");
        refuse("\"nullable\":true", "\"nulable\":true", "nulable");
        refuse("shuffle,zstd:1", "shufle", "shufle");
        refuse("\"cell_order\":\"row\"", "\"cell_order\":\"zig\"", "zig");
        assert!(Schema::from_json("{}").is_err() && Schema::from_json("").is_err());
    }
}
