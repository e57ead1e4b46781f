//! An attribute: name, type, nullability, fill and filters, and the categories of an enumerated one.

use super::{Categories, Datatype, Primitive, bytes_to_text, text_to_bytes};
use crate::base::{Element, Error, Result};
use crate::codec::{Pipeline, Rounding};
use std::sync::Arc;

/// The filters of an attribute's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filters {
    /// Chosen from a sample: per dense tile, or for some sparse tiles together.
    Auto,
    /// This pipeline, by its canonical name.
    Named(String),
}

impl Filters {
    /// Parses "auto" or a pipeline such as "delta,zstd:3"; a Schema error names the unknown filter.
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

/// Splits `text` into the rounding of an attribute's values, if it begins with one, and the filters.
fn rounding_and_filters(text: &str, element: Element) -> Result<(Option<Rounding>, Filters)> {
    let (first, rest) = text.split_once(',').unwrap_or((text, "auto"));
    let Some(rounding) = Rounding::parse(first.trim())? else {
        let filters = Filters::parse(text)?;
        return check_filters(&filters, element).map(|()| (None, filters));
    };
    rounding.check(element)?;
    let filters = Filters::parse(rest.trim())?;
    check_filters(&filters, element).map(|()| (Some(rounding), filters))
}

fn check_filters(filters: &Filters, element: Element) -> Result<()> {
    match filters {
        Filters::Auto => Ok(()),
        Filters::Named(pipeline) => Pipeline::parse(pipeline)?.check(element),
    }
}

/// The default fill of an attribute.
fn default_fill(datatype: Datatype) -> Vec<u8> {
    match datatype {
        time if time.is_time() => i64::MIN.to_le_bytes().to_vec(),
        Datatype::Vector(Primitive::Datetime(_) | Primitive::Timedelta(_), shape) => {
            i64::MIN.to_le_bytes().repeat(shape.count())
        }
        other => vec![0; other.width().unwrap_or(0)],
    }
}

/// The code of the category in `text`.
fn code_of_fill(categories: &Categories, codes: Datatype, text: &str) -> Result<Vec<u8>> {
    let code = categories.code_of(&text_to_bytes(categories.datatype(), text)?).ok_or_else(|| {
        Error::schema(format!("the fill {text:?} is none of the categories {}", categories.texts().join(", ")))
    })?;
    Ok(code.to_le_bytes().into_iter().take(codes.width().unwrap_or(0)).collect())
}

/// An attribute of an array.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    id: u32,
    name: String,
    datatype: Datatype,
    categories: Option<Arc<Categories>>,
    nullable: bool,
    fill: Vec<u8>,
    rounding: Option<Rounding>,
    filters: Filters,
}

impl Attribute {
    /// An attribute. `fill` is text (`None`: 0, "", NaT, no item; for a vector that of its primitive); unwritten dense
    /// cells read as the fill, unless the attribute is nullable. `filters`: "auto", or a pipeline; `bitround:N` may
    /// precede either.
    pub fn new(name: &str, datatype: Datatype, nullable: bool, fill: Option<&str>, filters: &str) -> Result<Self> {
        Self::made((name, datatype, None), nullable, fill, filters)
    }

    /// An attribute whose values are among `categories`, stored as `codes` (uint8, uint16 or uint32; `None`: the
    /// smallest with room for more of them). `fill` is the text of a category (`None`: the first).
    pub fn enumerated(
        name: &str,
        (categories, codes): (Categories, Option<Datatype>),
        nullable: bool,
        fill: Option<&str>,
        filters: &str,
    ) -> Result<Self> {
        let codes = codes.unwrap_or_else(|| categories.codes_type());
        Self::made((name, codes, Some(Arc::new(categories))), nullable, fill, filters)
    }

    fn made(
        (name, datatype, categories): (&str, Datatype, Option<Arc<Categories>>),
        nullable: bool,
        fill: Option<&str>,
        filters: &str,
    ) -> Result<Self> {
        let named = |e: Error| e.context(format!("attribute {name:?}"));
        if let Some(categories) = &categories {
            categories.check_codes(datatype).map_err(named)?;
            if categories.is_empty() && !nullable {
                return Err(named(Error::schema("without a category it has no value, unless it may be null")));
            }
        }
        let fill = match (fill, &categories) {
            (Some(text), Some(categories)) => code_of_fill(categories, datatype, text).map_err(named)?,
            (Some(text), None) => text_to_bytes(datatype, text).map_err(named)?,
            (None, _) => default_fill(datatype),
        };
        let (rounding, filters) = rounding_and_filters(filters, datatype.element()).map_err(named)?;
        Ok(Self { id: 0, name: name.to_owned(), datatype, categories, nullable, fill, rounding, filters })
    }

    /// The same attribute with another name, nullability, fill (`None`: that of its type), filters, and more categories.
    pub(super) fn changed(
        &self,
        name: &str,
        nullable: bool,
        fill: Option<&str>,
        filters: &str,
        more: &[String],
    ) -> Result<Self> {
        let extend = |categories: &Arc<Categories>| categories.extended(more).map(Arc::new);
        let named = |e: Error| e.context(format!("attribute {:?}", self.name));
        let categories = self.categories.as_ref().map(extend).transpose().map_err(named)?;
        if categories.is_none() && !more.is_empty() {
            return Err(named(Error::schema("it has no categories, and cannot get any; add another attribute")));
        }
        Ok(Self::made((name, self.datatype, categories), nullable, fill, filters)?.with_id(self.id))
    }

    /// A Schema error unless codes have the same meaning under this attribute as under `before`.
    pub(super) fn check_categories(&self, before: &Self) -> Result<()> {
        let follows = match (&self.categories, &before.categories) {
            (Some(new), Some(old)) => new.check_follows(old),
            (None, None) => Ok(()),
            _ => Err(Error::schema("categories are there from the start or not at all; add another attribute")),
        };
        follows.map_err(|e| e.context(format!("attribute {:?}", before.name)))
    }

    /// The same attribute with its permanent number, assigned by its schema.
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

    /// The stored type: that of its values, or of the codes of its categories.
    pub fn datatype(&self) -> Datatype {
        self.datatype
    }

    /// The allowed values, if the attribute is enumerated.
    pub fn categories(&self) -> Option<&Categories> {
        self.categories.as_deref()
    }

    /// The type of its values.
    pub fn value_type(&self) -> Datatype {
        self.categories().map_or(self.datatype, Categories::datatype)
    }

    /// Whether a value may be null.
    pub fn nullable(&self) -> bool {
        self.nullable
    }

    /// The fill as little-endian bytes (UTF-8 or raw bytes for variable-length types; the code of a category).
    pub fn fill(&self) -> &[u8] {
        &self.fill
    }

    /// The fill as text; `None` if there is no category yet.
    pub fn fill_text(&self) -> Option<String> {
        let Some(categories) = self.categories() else { return Some(bytes_to_text(self.datatype, &self.fill)) };
        let code = self.fill.iter().rev().fold(0usize, |code, byte| code << 8 | usize::from(*byte));
        categories.values().nth(code).map(|value| bytes_to_text(categories.datatype(), value))
    }

    /// The rounding applied when its values are written, if any.
    pub fn rounding(&self) -> Option<Rounding> {
        self.rounding
    }

    /// The filters of its values.
    pub fn filters(&self) -> &Filters {
        &self.filters
    }

    /// Rounding and filters as text.
    pub fn filters_text(&self) -> String {
        match self.rounding {
            Some(rounding) => format!("{rounding},{}", self.filters.text()),
            None => self.filters.text().to_owned(),
        }
    }
}
