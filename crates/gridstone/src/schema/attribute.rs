//! An attribute: name, type, nullability, fill and filters.

use super::{Datatype, Primitive, bytes_to_text, text_to_bytes};
use crate::base::Result;
use crate::codec::Pipeline;

/// The filters of an attribute's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filters {
    /// Chosen from a sample: of each dense tile, of some sparse tiles together.
    Auto,
    /// This pipeline, by its canonical name.
    Named(String),
}

impl Filters {
    /// "auto" or a pipeline such as "delta,zstd:3"; a Schema error names the unknown filter.
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Self::Auto),
            other => Ok(Self::Named(Pipeline::parse(other)?.name())),
        }
    }

    /// The text that parses back to this.
    pub fn text(&self) -> &str {
        match self {
            Self::Auto => "auto",
            Self::Named(name) => name,
        }
    }
}

/// The fill of an attribute that has none of its own.
fn default_fill(datatype: Datatype) -> Vec<u8> {
    match datatype {
        time if time.is_time() => i64::MIN.to_le_bytes().to_vec(),
        Datatype::Vector(Primitive::Datetime(_) | Primitive::Timedelta(_), shape) => {
            i64::MIN.to_le_bytes().repeat(shape.count())
        }
        other => vec![0; other.width().unwrap_or(0)],
    }
}

/// An attribute of an array.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    id: u32,
    name: String,
    datatype: Datatype,
    nullable: bool,
    fill: Vec<u8>,
    filters: Filters,
}

impl Attribute {
    /// An attribute. `fill` is text (`None`: 0, "", NaT, no item; of a vector that of its primitive); it is what an unwritten dense cell reads as, unless nullable.
    pub fn new(name: &str, datatype: Datatype, nullable: bool, fill: Option<&str>, filters: &str) -> Result<Self> {
        let named = |e: crate::base::Error| e.context(format!("attribute {name:?}"));
        let fill = match fill {
            Some(text) => text_to_bytes(datatype, text).map_err(named)?,
            None => default_fill(datatype),
        };
        let filters = Filters::parse(filters).map_err(named)?;
        if let Filters::Named(pipeline) = &filters {
            Pipeline::parse(pipeline)?.check(datatype.element()).map_err(named)?;
        }
        Ok(Self { id: 0, name: name.to_owned(), datatype, nullable, fill, filters })
    }

    /// The same attribute with its permanent number, given by the schema that it belongs to.
    #[must_use]
    pub(super) fn with_id(mut self, id: u32) -> Self {
        self.id = id;
        self
    }

    /// The permanent number by which fragments refer to it, whatever its name.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of its values.
    pub fn datatype(&self) -> Datatype {
        self.datatype
    }

    /// Whether a value may be null.
    pub fn nullable(&self) -> bool {
        self.nullable
    }

    /// The fill as little-endian bytes (UTF-8 or raw bytes for variable-length types).
    pub fn fill(&self) -> &[u8] {
        &self.fill
    }

    /// The fill as text.
    pub fn fill_text(&self) -> String {
        bytes_to_text(self.datatype, &self.fill)
    }

    /// The filters of its values.
    pub fn filters(&self) -> &Filters {
        &self.filters
    }
}
