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
//! Features (`read`, `write`) and `ext` objects of newer releases are kept ([`super::extra`]).
//! There a domain may have an open end, which is null, or be empty, `[]`; dimensions have their `labels`; and `scalar` is
//! true of an array of no dimension.

use super::array_schema::SCALAR_AXIS;
use super::extra::{self, Ext, Extra};
use super::labels::LabelsText;
use super::text::TEXT_BYTES;
use super::{
    Attribute, Categories, Coordinate, Datatype, Dimension, Evolution, Filters, Frame, Framing, Order, Schema,
    SchemaOptions, Side,
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    read: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    write: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ext: Option<Ext>,
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

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DimensionJson {
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
    /// The domain of an array at a version, where an end is open; for bindings alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reach: Option<[String; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ext: Option<Ext>,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ext: Option<Ext>,
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
        let mut json = SchemaJson::parse(text)?;
        if json.is_numbered() || json.frame.is_some() || json.scalar || json.dims.iter().any(DimensionJson::is_stored) {
            return Err(Error::schema(
                "\"id\", \"next_id\", \"origin\", \"reach\", \"frame\", \"labels\" and \"scalar\" are given by the store; leave them \
                 out of a schema",
            ));
        }
        if json.extra() != Extra::default() {
            return Err(Error::schema(
                "\"read\", \"write\" and \"ext\" are written by the store; leave them out of a schema",
            ));
        }
        if json.dims.is_empty() {
            (json.scalar, json.dims) = (true, vec![DimensionJson::of_scalar()]);
        }
        json.read()
    }

    /// The schema as JSON on one line, with every option written out. An array of no dimension has none.
    pub fn to_json(&self) -> String {
        SchemaJson::as_given(self).text()
    }

    /// Like [`Schema::to_json`], with the `origin` of each dimension whose domain does not begin there, its `labels`, and the
    /// domain, `reach`, of each that has an open end. A binding that cuts boxes, or shows labels, needs them;
    /// [`Schema::from_json`] refuses them.
    pub fn to_json_with_reach(&self) -> String {
        let mut json = SchemaJson::as_given(self);
        for (written, dim) in json.dims.iter_mut().zip(self.coordinates().map(|dim| dim.number())) {
            let elsewhere = |dim: &&Dimension| !dim.range().is_empty() && dim.origin() != dim.range().lo;
            written.origin = dim.filter(elsewhere).map(|dim| dim.text(dim.origin()));
            written.labels = dim.and_then(Dimension::labels).map(LabelsText::of);
            let reached = dim.filter(|dim| dim.open() != [false; 2] && !dim.range().is_empty());
            written.reach = reached.map(|dim| [dim.range().lo, dim.range().hi].map(|key| dim.text(key)));
        }
        json.text()
    }

    /// Parses what [`Schema::to_stored_json`] wrote, under a matching checksum, with the attributes' permanent numbers
    /// where they are written.
    ///
    /// # Errors
    /// Unsupported if it has values that this release does not know or allow, so that a newer one wrote it. Corruption
    /// if it is no schema.
    pub fn from_stored_json(text: &str) -> Result<Self> {
        let json = match SchemaJson::parse(text) {
            Ok(json) if !extra::has_unknown(&json.read) => json,
            parsed => {
                if let Some(schema) = extra::unreadable(text) {
                    return Ok(schema);
                }
                parsed.map_err(|e| match unknown_name::<SchemaJson>(text) {
                    Some(name) => newer("a schema", name),
                    None => Error::corruption(format!("a schema is intact but not understood: {e}")).with_source(e),
                })?
            }
        };
        json.read().map_err(|e| {
            let why = format!("a schema was written by a newer release of Gridstone: {e}; use a newer Gridstone");
            Error::unsupported(why).with_source(e)
        })
    }

    /// Like [`Schema::to_json`], with the attributes' permanent numbers where they differ from the positions.
    pub fn to_stored_json(&self) -> String {
        if let Some(whole) = self.extra().and_then(|extra| extra.whole.as_ref()) {
            return whole.clone();
        }
        let mut json = SchemaJson::of(self);
        let by_place = self.attrs().iter().zip(0u32..).all(|(attr, place)| attr.id() == place);
        if !by_place || self.next_id() as usize != self.attrs().len() {
            json.next_id = Some(self.next_id());
            json.attrs.iter_mut().zip(self.attrs()).for_each(|(written, attr)| written.id = Some(attr.id()));
        }
        for (written, dim) in json.dims.iter_mut().zip(self.coordinates().map(|dim| dim.number())) {
            let elsewhere = |dim: &&Dimension| dim.origin() != dim.default_origin();
            written.origin = dim.filter(elsewhere).map(|dim| dim.text(dim.origin()));
            written.labels = dim.and_then(Dimension::labels).map(LabelsText::of);
        }
        json.scalar = self.is_scalar();
        json.frame = self.given_frame().map(FrameJson::of);
        if let Some(extra) = self.extra() {
            json.put_extra(extra, self);
        }
        json.text()
    }
}

impl SchemaJson {
    fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|e| Error::schema(format!("this is no schema in JSON: {e}")).with_source(e))
    }

    /// What newer releases say, with places in the list of attributes instead of their numbers.
    fn extra(&self) -> Extra {
        let dims = self.dims.iter().enumerate().filter_map(|(place, dim)| Some((place, dim.ext.clone()?)));
        let number = |attr: &AttributeJson, place: u32| attr.id.unwrap_or(place);
        let attrs = self.attrs.iter().zip(0u32..).filter_map(|(attr, at)| Some((number(attr, at), attr.ext.clone()?)));
        Extra {
            read: self.read.clone(),
            write: self.write.clone(),
            ext: self.ext.clone(),
            dims: dims.collect(),
            attrs: attrs.collect(),
            whole: None,
        }
    }

    /// Adds what newer releases say in `schema`, whose form this is.
    fn put_extra(&mut self, extra: &Extra, schema: &Schema) {
        (self.read, self.write, self.ext) = (extra.read.clone(), extra.write.clone(), extra.ext.clone());
        for (place, dim) in self.dims.iter_mut().enumerate() {
            dim.ext = extra.dims.get(&place).cloned();
        }
        for (written, attr) in self.attrs.iter_mut().zip(schema.attrs()) {
            written.ext = extra.attrs.get(&attr.id()).cloned();
        }
    }

    fn is_numbered(&self) -> bool {
        self.next_id.is_some() || self.attrs.iter().any(|a| a.id.is_some())
    }

    fn read(self) -> Result<Schema> {
        let extra = self.extra();
        Ok(self.read_known()?.with_extra(extra))
    }

    fn read_known(self) -> Result<Schema> {
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
            return Err(Error::schema(
                "a Hilbert curve goes over a domain with two ends: give each dimension that is open or empty a tile",
            ));
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

    /// As a user would write it.
    fn as_given(schema: &Schema) -> Self {
        let mut json = Self::of(schema);
        if schema.is_scalar() {
            json.dims.clear();
        }
        json
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
            dims: Coordinate::all(schema.dims()).map(DimensionJson::of).collect(),
            attrs: schema.attrs().iter().map(AttributeJson::of).collect(),
            next_id: None,
            frame: None,
            read: Vec::new(),
            write: Vec::new(),
            ext: None,
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
    pub(super) fn read(&self) -> Result<Vec<Dimension>> {
        let wrong = |why: &str| Error::schema(format!("dimension {:?}: {why}", self.name));
        let datatype = Datatype::parse(&self.dtype).map_err(|e| e.context(format!("dimension {:?}", self.name)))?;
        if datatype == Datatype::String {
            if self.origin.is_some() || self.labels.is_some() {
                return Err(wrong("text has neither an origin of tiles nor labels"));
            }
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
        let labels = self.labels.as_ref().map(LabelsText::read).transpose().map_err(|e| wrong(e.message()))?;
        // Without tiles an origin counts only where there are labels.
        let dim = dim.with_labels(labels);
        Ok(vec![self.origin.as_ref().map_or(Ok(dim.clone()), |origin| dim.with_origin(origin))?])
    }

    /// The one axis of an array of no dimension.
    fn of_scalar() -> Self {
        let ends = vec![Some("0".to_owned()); 2];
        Self { name: SCALAR_AXIS.to_owned(), dtype: "uint8".to_owned(), domain: Some(ends), ..Self::default() }
    }

    /// Whether it says what only a store does.
    fn is_stored(&self) -> bool {
        self.origin.is_some() || self.labels.is_some() || self.reach.is_some()
    }

    fn of(coordinate: Coordinate<'_>) -> Self {
        let (name, dtype) = (coordinate.name().to_owned(), coordinate.datatype().to_string());
        Self {
            name,
            dtype,
            domain: coordinate.number().map(Dimension::given_ends),
            tile: coordinate.number().and_then(|dim| dim.texts().2),
            max_bytes: coordinate.max_bytes(),
            ..Self::default()
        }
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
            ext: None,
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
    labels: Vec<(String, Option<LabelsText>)>,
}

impl Evolution {
    /// Parses the changes in `text`: an object with the fields of this type, lists of names or of lists; attributes as
    /// in the JSON of a schema. A Schema error says what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self> {
        let json: EvolutionJson = serde_json::from_str(text)
            .map_err(|e| Error::schema(format!("these are no changes of a schema in JSON: {e}")).with_source(e))?;
        let EvolutionJson { domains, add, drop, rename, fill, filters, nullable, categories, labels } = json;
        if add.iter().any(|a| a.id.is_some() || a.ext.is_some()) {
            return Err(Error::schema(
                "the \"id\" and \"ext\" of an attribute are written by the store; leave them out",
            ));
        }
        let add = add.iter().map(AttributeJson::read).collect::<Result<_>>()?;
        let read = |(name, text): (String, Option<LabelsText>)| {
            let labels = text.map(|text| text.read()).transpose();
            Ok((name.clone(), labels.map_err(|e| e.context(format!("dimension {name:?}")))?))
        };
        let labels = labels.into_iter().map(read).collect::<Result<_>>()?;
        Ok(Self { domains, add, drop, rename, fill, filters, nullable, categories, labels })
    }
}
