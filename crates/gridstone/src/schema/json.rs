//! Schemas as JSON: the form in the log and in users' exports. Values are text (see [`super::text_to_bytes`]).
//!
//! ```json
//! {"sparse": true, "capacity": 10000, "tile_order": "row", "cell_order": "row", "duplicates": true,
//!  "coord_filters": "auto",
//!  "dims":  [{"name": "x", "dtype": "int64", "domain": ["0", "999"], "tile": "100"}],
//!  "attrs": [{"name": "sog", "dtype": "float32", "nullable": true, "fill": "0.0", "filters": "auto"}]}
//! ```
//! A text dimension has neither domain nor tile: `{"name": "gene", "dtype": "string", "domain": null, "tile": null,
//! "max_bytes": 32}`. An enumerated attribute has `categories` (a list of texts), `ordered` and the type of its
//! `codes`. `tile` may be null (one tile); `fill`, `nullable`, `filters` and every top-level option but `dims` and
//! `attrs` may be omitted. Unknown keys are an error, so that a schema is never half understood.
//!
//! The log's form also has the attributes' permanent numbers (`"id"` of each attribute, and `"next_id"`), if they
//! differ from the positions: in the schemas of arrays that lost an attribute. Where they do not follow from the domain
//! it has the `origin` of the tiles of a dimension, a coordinate; and the `frame` of a Hilbert curve:
//! `{"by": "key", "bits": 32, "sides": [["0", "4294967295"]]}`, with ordered keys, or offsets in a tile, as decimal text.
//! There a domain may have an open end, which is null, or be empty, `[]`; dimensions have their `labels`; and `scalar` is
//! true of an array of no dimension.

use super::labels::LabelsText;
use super::text::TEXT_BYTES;
use super::{
    Attribute, Categories, Coordinate, Datatype, Dimension, Evolution, Extent, Filters, Frame, Framing, KeyRange,
    Order, Schema, SchemaOptions, Side,
};
use crate::base::{Error, Result, newer, unknown_name};
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_id: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    frame: Option<FrameJson>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    scalar: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FrameJson {
    by: String,
    bits: u32,
    sides: Vec<(String, String)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DimensionJson {
    name: String,
    dtype: String,
    /// Two ends, of which null is open; none: it is empty.
    #[serde(default)]
    domain: Option<Vec<Option<String>>>,
    #[serde(default)]
    tile: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_bytes: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    labels: Option<LabelsText>,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    categories: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ordered: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    codes: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<u32>,
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
    /// Parses the schema in `text`; a Schema error says what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self> {
        let json = SchemaJson::parse(text)?;
        if json.is_numbered() || json.frame.is_some() || json.scalar || json.dims.iter().any(DimensionJson::is_stored) {
            return Err(Error::schema(
                "\"id\", \"next_id\", \"origin\", \"frame\", \"labels\" and \"scalar\" are given by the store; leave them out \
                 of a schema, and give both ends of each domain",
            ));
        }
        json.read()
    }

    /// The schema as JSON on one line, with every option written out.
    pub fn to_json(&self) -> String {
        SchemaJson::of(self).text()
    }

    /// Parses what [`Schema::to_stored_json`] wrote, under a matching checksum, with the attributes' permanent numbers
    /// where they are written.
    ///
    /// # Errors
    /// Unsupported if it has values that this release does not know or allow, so that a newer one wrote it. Corruption
    /// if it is no schema.
    pub fn from_stored_json(text: &str) -> Result<Self> {
        let json = SchemaJson::parse(text).map_err(|e| match unknown_name::<SchemaJson>(text) {
            Some(name) => newer("a schema", name),
            None => Error::corruption(format!("a schema is intact but not understood: {e}")).with_source(e),
        })?;
        json.read().map_err(|e| {
            let why = format!("a schema was written by a newer release of Gridstone: {e}; use a newer Gridstone");
            Error::unsupported(why).with_source(e)
        })
    }

    /// Like [`Schema::to_json`], with the attributes' permanent numbers where they differ from the positions.
    pub fn to_stored_json(&self) -> String {
        let mut json = SchemaJson::of(self);
        let by_place = self.attrs().iter().zip(0u32..).all(|(attr, place)| attr.id() == place);
        if !by_place || self.next_id() as usize != self.attrs().len() {
            json.next_id = Some(self.next_id());
            json.attrs.iter_mut().zip(self.attrs()).for_each(|(written, attr)| written.id = Some(attr.id()));
        }
        for (written, dim) in json.dims.iter_mut().zip(self.coordinates().map(|dim| dim.number())) {
            let tiled = |dim: &&Dimension| dim.extent() != Extent::Whole && dim.origin() != dim.range().lo;
            written.origin = dim.filter(tiled).map(|dim| dim.text(dim.origin()));
            written.labels = dim.and_then(Dimension::labels).map(LabelsText::of);
            if let (Some(dim), Some(ends)) = (dim, &mut written.domain) {
                ends.iter_mut().zip(dim.open()).filter(|(_, is_open)| *is_open).for_each(|(end, _)| *end = None);
            }
        }
        json.scalar = self.is_scalar();
        json.frame = self.given_frame().map(FrameJson::of);
        json.text()
    }
}

impl SchemaJson {
    fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|e| Error::schema(format!("this is no schema in JSON: {e}")).with_source(e))
    }

    fn is_numbered(&self) -> bool {
        self.next_id.is_some() || self.attrs.iter().any(|a| a.id.is_some())
    }

    fn read(self) -> Result<Schema> {
        let dims = self.dims.iter().map(DimensionJson::read).collect::<Result<Vec<_>>>()?.concat();
        let attrs = self.attrs.iter().map(AttributeJson::read);
        let options = SchemaOptions {
            sparse: self.sparse,
            capacity: self.capacity,
            tile_order: Order::parse(&self.tile_order)?,
            cell_order: Order::parse_of_cells(&self.cell_order)?,
            duplicates: self.duplicates,
            coord_filters: Filters::parse(&self.coord_filters)?,
        };
        let attrs = attrs.collect::<Result<Vec<_>>>()?;
        let frame = self.frame.as_ref().map(|frame| frame.read(&dims)).transpose()?;
        let schema = self.numbered(dims, attrs, options)?;
        if frame.is_none() && schema.needs_frame() {
            return Err(Error::schema("a Hilbert curve over a domain without an end needs tiles or a frame"));
        }
        let schema = schema.framed(frame);
        if self.scalar { schema.into_scalar() } else { Ok(schema) }
    }

    /// The schema of these parts, with the numbers of the attributes.
    fn numbered(&self, dims: Vec<Dimension>, attrs: Vec<Attribute>, options: SchemaOptions) -> Result<Schema> {
        if !self.is_numbered() {
            return Schema::new(dims, attrs, options);
        }
        let ids: Option<Vec<u32>> = self.attrs.iter().map(|a| a.id).collect();
        let (Some(ids), Some(next_id)) = (ids, self.next_id) else {
            return Err(Error::schema("either all attributes have a number, and there is a next one, or none has"));
        };
        let attrs = attrs.into_iter().zip(ids).map(|(attr, id)| attr.with_id(id)).collect();
        Schema::numbered(dims, attrs, next_id, options)
    }

    fn of(schema: &Schema) -> Self {
        let o = schema.options();
        Self {
            sparse: o.sparse,
            capacity: o.capacity,
            tile_order: o.tile_order.to_string(),
            cell_order: o.cell_order.to_string(),
            duplicates: o.duplicates,
            coord_filters: o.coord_filters.text().to_owned(),
            dims: schema.coordinates().map(DimensionJson::of).collect(),
            attrs: schema.attrs().iter().map(AttributeJson::of).collect(),
            next_id: None,
            frame: None,
            scalar: false,
        }
    }

    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl FrameJson {
    fn read(&self, dims: &[Dimension]) -> Result<Frame> {
        let wrong = || Error::schema("the frame of the Hilbert curve does not fit the dimensions");
        let side = |(low, high): &(String, String)| {
            let low = low.parse().map_err(|e| wrong().with_source(e))?;
            Ok(Side { low, high: high.parse().map_err(|e| wrong().with_source(e))? })
        };
        let sides = self.sides.iter().map(side).collect::<Result<_>>()?;
        let framing = Framing::parse(&self.by)
            .ok_or_else(|| Error::schema(format!("the frame of the Hilbert curve is by {:?}", self.by)))?;
        Frame::new(framing, self.bits, sides, dims).ok_or_else(wrong)
    }

    fn of(frame: &Frame) -> Self {
        let side = |side: &Side| (side.low.to_string(), side.high.to_string());
        let sides = frame.sides().iter().map(side).collect();
        Self { by: frame.framing().name().to_owned(), bits: frame.bits(), sides }
    }
}

impl DimensionJson {
    /// The axes of the dimension.
    fn read(&self) -> Result<Vec<Dimension>> {
        let wrong = |why: &str| Error::schema(format!("dimension {:?}: {why}", self.name));
        let datatype = Datatype::parse(&self.dtype).map_err(|e| e.context(format!("dimension {:?}", self.name)))?;
        if datatype == Datatype::String {
            return match (&self.domain, &self.tile) {
                (None, None) => Dimension::text_axes(&self.name, self.max_bytes.unwrap_or(TEXT_BYTES)),
                (Some(_), _) => Err(wrong("text has no domain: every text is inside; give null")),
                (_, Some(_)) => Err(wrong("text is one tile: give null for its extent")),
            };
        }
        if self.max_bytes.is_some() {
            return Err(wrong("max_bytes is for dimensions of type string"));
        }
        let tile = self.tile.as_deref();
        let dim = match self.domain.as_deref() {
            Some([lo, hi]) => Dimension::with_ends(&self.name, datatype, [lo.as_deref(), hi.as_deref()], tile)?,
            Some([]) => Dimension::without_domain(&self.name, datatype, tile)?,
            _ => return Err(wrong("it needs a domain (lowest, highest)")),
        };
        let placed = self.origin.as_ref().map_or(Ok(dim.clone()), |origin| dim.with_origin(origin))?;
        let labels = self.labels.as_ref().map(LabelsText::read).transpose().map_err(|e| wrong(e.message()))?;
        Ok(vec![placed.with_labels(labels)])
    }

    /// Whether it says what only a store does.
    fn is_stored(&self) -> bool {
        let is_endless = |ends: &Vec<Option<String>>| ends.iter().flatten().count() < 2;
        self.origin.is_some() || self.labels.is_some() || self.domain.as_ref().is_some_and(is_endless)
    }

    fn of(coordinate: Coordinate<'_>) -> Self {
        let (lo, hi, tile) = coordinate.number().map(Dimension::texts).unwrap_or_default();
        let is_empty = |dim: &Dimension| dim.range() == KeyRange::EMPTY;
        let ends = |dim: &Dimension| if is_empty(dim) { Vec::new() } else { vec![Some(lo), Some(hi)] };
        let domain = coordinate.number().map(ends);
        let (name, dtype) = (coordinate.name().to_owned(), coordinate.datatype().to_string());
        Self { name, dtype, domain, tile, max_bytes: coordinate.max_bytes(), origin: None, labels: None }
    }
}

impl AttributeJson {
    fn read(&self) -> Result<Attribute> {
        let named = |e: Error| e.context(format!("attribute {:?}", self.name));
        let datatype = Datatype::parse(&self.dtype).map_err(named)?;
        let Some(texts) = &self.categories else {
            if self.ordered.is_some() || self.codes.is_some() {
                return Err(named(Error::schema("\"ordered\" and \"codes\" are of attributes with \"categories\"")));
            }
            return Attribute::new(&self.name, datatype, self.nullable, self.fill.as_deref(), &self.filters);
        };
        let categories = Categories::new(datatype, texts, self.ordered.unwrap_or(false)).map_err(named)?;
        let codes = self.codes.as_deref().map(Datatype::parse).transpose().map_err(named)?;
        Attribute::enumerated(&self.name, (categories, codes), self.nullable, self.fill.as_deref(), &self.filters)
    }

    fn of(attr: &Attribute) -> Self {
        Self {
            name: attr.name().to_owned(),
            dtype: attr.value_type().to_string(),
            nullable: attr.nullable(),
            fill: attr.fill_text(),
            filters: attr.filters_text(),
            categories: attr.categories().map(Categories::texts),
            ordered: attr.categories().map(Categories::ordered),
            codes: attr.categories().map(|_| attr.datatype().to_string()),
            id: None,
        }
    }
}

/// An [`Evolution`] as a caller in another language writes it; omitted fields change nothing.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct EvolutionJson {
    domains: Vec<(String, String, String)>,
    add: Vec<AttributeJson>,
    drop: Vec<String>,
    rename: Vec<(String, String)>,
    fill: Vec<(String, Option<String>)>,
    filters: Vec<(String, String)>,
    nullable: Vec<String>,
    categories: Vec<(String, Vec<String>)>,
}

impl Evolution {
    /// Parses the changes in `text`: an object with the fields of this type, lists of names or of lists; attributes as
    /// in the JSON of a schema. A Schema error says what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self> {
        let json: EvolutionJson = serde_json::from_str(text)
            .map_err(|e| Error::schema(format!("these are no changes of a schema in JSON: {e}")).with_source(e))?;
        let EvolutionJson { domains, add, drop, rename, fill, filters, nullable, categories } = json;
        if add.iter().any(|a| a.id.is_some()) {
            return Err(Error::schema("the \"id\" of an attribute is given by the store; leave it out"));
        }
        let add = add.iter().map(AttributeJson::read).collect::<Result<_>>()?;
        Ok(Self { domains, add, drop, rename, fill, filters, nullable, categories, labels: Vec::new() })
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
    fn text_dimensions_are_several_axes() {
        let with = |gene: &str, rest: &str| {
            Schema::from_json(&format!(
                r#"{{"sparse":true,"dims":[{{"name":"x","dtype":"int8","domain":["0","9"]}},{{"name":"gene","dtype":"string"{gene}}}],
                "attrs":[{{"name":"v","dtype":"int8"}}]{rest}}}"#
            ))
        };
        let schema = with("", "").unwrap();
        assert_eq!((schema.ndim(), schema.coordinates().count()), (5, 2));
        let gene = schema.coordinates().nth(1).unwrap();
        assert_eq!(
            (gene.name(), gene.datatype(), gene.axes(), gene.max_bytes()),
            ("gene", Datatype::String, 1..5, Some(32))
        );
        assert!(
            schema.to_json().contains(r#"{"name":"gene","dtype":"string","domain":null,"tile":null,"max_bytes":32}"#)
        );
        assert_eq!(Schema::from_json(&schema.to_json()).unwrap(), schema);
        assert_eq!(with(r#","max_bytes":9"#, "").unwrap().ndim(), 3);
        assert_eq!(schema.slowest_first(Order::Row), [0, 1, 2, 3, 4]);
        assert_eq!(schema.slowest_first(Order::Col), [1, 2, 3, 4, 0], "the words of a text keep their order");
        assert_eq!(with(r#","max_bytes":248"#, "").unwrap().ndim(), 32);
        assert_eq!(
            schema.describe_cell(|axis| [(1 << 63) + 3, 0x41 << 56].get(axis).copied().unwrap_or(0)),
            "x=3, gene=\"A\""
        );
        for (gene, rest, word) in [
            (r#","max_bytes":0"#, "", "max_bytes"),
            (r#","max_bytes":257"#, "", "256"),
            (r#","max_bytes":256"#, "", "33 axes"),
            (r#","domain":["a","b"]"#, "", "no domain"),
            (r#","tile":"3""#, "", "one tile"),
            ("", r#","cell_order":"hilbert""#, "Hilbert"),
            ("", r#","coord_filters":"zstd:99""#, "zstd"),
        ] {
            let error = with(gene, rest).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
        let dense = with("", "").unwrap().to_json().replace("\"sparse\":true", "\"sparse\":false");
        assert!(Schema::from_json(&dense).unwrap_err().message().contains("is text"));
        let number = r#"{"dims":[{"name":"x","dtype":"int8"}],"attrs":[{"name":"v","dtype":"int8"}]}"#;
        assert!(Schema::from_json(number).unwrap_err().message().contains("needs a domain"));
        let number = number.replacen("\"int8\"}]", "\"int8\",\"domain\":[\"0\",\"9\"],\"max_bytes\":8}]", 1);
        assert!(Schema::from_json(&number).unwrap_err().message().contains("max_bytes"));
    }

    #[test]
    fn categories_survive_json() {
        let of = |attr: &str| {
            Schema::from_json(&format!(
                r#"{{"dims":[{{"name":"x","dtype":"int8","domain":["0","9"]}}],"attrs":[{attr}]}}"#
            ))
        };
        let schema = of(r#"{"name":"a","dtype":"string","categories":["ok","bad"],"fill":"bad"}"#).unwrap();
        let attr = &schema.attrs()[0];
        assert_eq!((attr.datatype(), attr.value_type(), attr.fill()), (Datatype::UInt8, Datatype::String, &[1][..]));
        let text = schema.to_json();
        assert!(
            text.contains(r#""fill":"bad","filters":"auto","categories":["ok","bad"],"ordered":false,"codes":"uint8""#)
        );
        assert_eq!(Schema::from_json(&text).unwrap(), schema);
        let wide =
            of(r#"{"name":"a","dtype":"int64","categories":[],"ordered":true,"codes":"uint32","nullable":true}"#)
                .unwrap();
        assert_eq!(Schema::from_json(&wide.to_json()).unwrap(), wide);
        assert!(wide.to_json().contains("\"fill\":null"));
        for (attr, word) in [
            (r#"{"name":"a","dtype":"string","categories":[]}"#, "without a category"),
            (r#"{"name":"a","dtype":"string","categories":["b"],"fill":"c"}"#, "none of the categories"),
            (r#"{"name":"a","dtype":"string","ordered":true}"#, "are of attributes with"),
            (r#"{"name":"a","dtype":"uint8","codes":"uint8"}"#, "are of attributes with"),
            (r#"{"name":"a","dtype":"string","categories":["b","b"]}"#, "twice"),
            (r#"{"name":"a","dtype":"string","categories":["b"],"codes":"int8"}"#, "uint8, uint16 or uint32"),
            (r#"{"name":"a","dtype":"list[int8]","categories":["[1]"]}"#, "not list[int8]"),
            (r#"{"name":"a","dtype":"float32","categories":["1.5"],"filters":"bitround:3"}"#, "floats"),
        ] {
            let error = of(attr).unwrap_err();
            assert!(error.message().contains(word), "{error}");
        }
    }

    #[test]
    fn changes_are_read_from_json() {
        let text = r#"{"domains":[["x","0","99"]],"add":[{"name":"q","dtype":"int8","fill":"3"}],"rename":[["v","w"]],
            "fill":[["v",null]],"filters":[["v","zstd:1"]],"nullable":["v"],"drop":["z"]}"#;
        let found = Evolution::from_json(text).unwrap();
        assert_eq!(
            (found.add[0].fill(), found.fill[0].1.as_deref(), found.domains[0].2.as_str()),
            (&[3][..], None, "99")
        );
        assert_eq!(Evolution::from_json("{}").unwrap(), Evolution::default());
        for bad in ["", "7", r#"{"dorp":[]}"#, r#"{"add":[{"name":"q","dtype":"int7"}]}"#] {
            assert!(Evolution::from_json(bad).is_err(), "{bad}");
        }
        assert!(Evolution::from_json(r#"{"add":[{"name":"q","dtype":"int8","id":7}]}"#).is_err());
    }

    #[test]
    fn numbers_are_written_where_they_are_not_the_places() {
        let (one, plain) =
            (r#"{"dims":[{"name":"x","dtype":"int8","domain":["0","9"]}],"attrs":["#, r#""dtype":"int8""#);
        let stored = |attrs: &str, rest: &str| Schema::from_stored_json(&format!("{one}{attrs}]{rest}}}"));
        let gaps =
            stored(&format!(r#"{{"name":"a",{plain},"id":1}},{{"name":"b",{plain},"id":4}}"#), r#","next_id":9"#);
        let gaps = gaps.unwrap();
        assert_eq!((gaps.attrs()[1].id(), gaps.next_id()), (4, 9));
        assert_eq!(Schema::from_stored_json(&gaps.to_stored_json()).unwrap(), gaps);
        assert!(!gaps.to_json().contains("id\"") && gaps.to_stored_json().contains("\"next_id\":9"));
        let fresh = Schema::from_json(&gaps.to_json()).unwrap();
        assert_eq!((fresh.attrs()[1].id(), fresh.next_id()), (1, 2));
        assert_eq!(gaps.clone().renumbered(), fresh);
        assert_eq!(fresh.to_stored_json(), fresh.to_json());
        let dropped_last = stored(&format!(r#"{{"name":"a",{plain},"id":0}}"#), r#","next_id":3"#).unwrap();
        assert!(dropped_last.to_stored_json().contains("\"next_id\":3"));
        for (attrs, rest) in [
            (format!(r#"{{"name":"a",{plain},"id":1}},{{"name":"b",{plain},"id":1}}"#), r#","next_id":9"#),
            (format!(r#"{{"name":"a",{plain},"id":1}},{{"name":"b",{plain}}}"#), r#","next_id":9"#),
            (format!(r#"{{"name":"a",{plain},"id":1}}"#), r#","next_id":1"#),
            (format!(r#"{{"name":"a",{plain},"id":1}}"#), ""),
            (format!(r#"{{"name":"a",{plain}}}"#), r#","next_id":1"#),
        ] {
            assert!(stored(&attrs, rest).is_err(), "{attrs}{rest}");
        }
        assert!(Schema::from_json(&gaps.to_stored_json()).unwrap_err().message().contains("leave them out"));
    }

    #[test]
    fn origins_and_frames_are_written_where_they_do_not_follow_from_the_domain() {
        let text = |order: &str| {
            format!(
                r#"{{"sparse":true,"cell_order":"{order}","dims":[{{"name":"x","dtype":"uint8","domain":["5","9"],"tile":"3"}},
                {{"name":"y","dtype":"float64","domain":["0","2"],"tile":"0.5"}},{{"name":"z","dtype":"int8","domain":["-9","9"]}}],
                "attrs":[{{"name":"v","dtype":"int8"}}]}}"#
            )
        };
        for order in ["row", "hilbert"] {
            let first = Schema::from_json(&text(order)).unwrap();
            assert!(!first.to_stored_json().contains("origin") && !first.to_stored_json().contains("frame"));
            let ranges = first.dims().iter().map(|dim| match dim.name() {
                "x" => crate::schema::KeyRange::new(0, 255),
                _ => dim.range(),
            });
            let grown = first.reaching(&crate::schema::Subarray::new(ranges.collect()));
            let stored = grown.to_stored_json();
            assert!(stored.contains(r#""domain":["0","255"],"tile":"3","origin":"5""#), "{stored}");
            assert_eq!(stored.matches("origin").count(), 1);
            assert!(!stored.contains("\"frame\""), "the tiles frame x: {stored}");
            assert_eq!(Schema::from_stored_json(&stored).unwrap().to_stored_json(), stored);
            // A user's schema has neither: the store gives them.
            assert_eq!(Schema::from_json(&stored).unwrap_err().kind(), crate::base::ErrorKind::Schema);
            assert!(!grown.to_json().contains("origin"));
        }
        let bad = |from: &str, to: &str| {
            let stored = r#"{"sparse":true,"cell_order":"hilbert","dims":[{"name":"x","dtype":"uint8","domain":["5","9"],"tile":"3",
                "origin":"4"}],"attrs":[{"name":"v","dtype":"int8"}],"frame":{"by":"value","bits":9,"sides":[["0","2"]]}}"#;
            assert!(Schema::from_stored_json(stored).is_ok() && stored.contains(from));
            Schema::from_stored_json(&stored.replace(from, to)).unwrap_err().message().to_owned()
        };
        assert!(bad(r#""origin":"4""#, r#""origin":"x""#).contains("origin"));
        assert!(bad(r#"["0","2"]"#, r#"["0","1"]"#).contains("does not fit"));
        assert!(bad(r#"["0","2"]"#, r#"["0","2"],["0","2"]"#).contains("does not fit"));
        assert!(bad(r#"["0","2"]"#, r#"["2","0"]"#).contains("does not fit"));
        assert!(bad(r#""bits":9"#, r#""bits":65"#).contains("does not fit"));
        assert!(bad(r#""by":"value""#, r#""by":"sum""#).contains("sum"));
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
