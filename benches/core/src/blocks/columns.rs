//! How small each pipeline makes each column of an input, at the default block size.

use super::input::Input;
use super::stored::Place;
use gridstone::base::{Element, Result, limits};
use gridstone::codec::Pipeline;
use gridstone::schema::{Datatype, Schema};

/// What `auto` is compared with: general compressors, and pcodec alone at its own default level.
pub(crate) const OTHERS: [&str; 5] = ["zstd:3", "shuffle,zstd:3", "gzip:6", "pco:4", "pco:8"];

/// A column of an input, or all its coordinates.
#[derive(Debug)]
pub(crate) struct Packed {
    /// The input and the column.
    pub(crate) name: String,
    /// The type of its values.
    pub(crate) datatype: String,
    /// Bytes of a value before packing.
    pub(crate) width: f64,
    /// Bytes per value as `auto` packs it.
    pub(crate) auto: f64,
    /// What `auto` took.
    pub(crate) chosen: Vec<String>,
    /// Bytes per value by each of [`OTHERS`]; `None` where it does not suit the type.
    pub(crate) others: Vec<Option<f64>>,
}

/// A field of the fragment: the coordinates together, or one attribute.
struct Field<'a> {
    name: Option<&'a str>,
    datatype: Datatype,
    /// The first of its fields in a fragment of it alone, and how many there are.
    span: (usize, usize),
}

impl Field<'_> {
    fn suits(&self, pipeline: &str) -> bool {
        let element: Element = self.datatype.element();
        Pipeline::parse(pipeline).is_ok_and(|p| p.check(element).is_ok())
    }
}

/// Packs every column of `input` with `auto` and with the others.
///
/// # Errors
/// Whatever the engine says.
pub(crate) fn pack(input: &Input) -> Result<Vec<Packed>> {
    let dims = input.dims().len();
    let coordinates = input.dims().first().map(|c| Field { name: None, datatype: c.datatype(), span: (0, dims) });
    let attrs = input.attrs().iter();
    let attrs = attrs.map(|(name, c)| Field { name: Some(name), datatype: c.datatype(), span: (dims, 1) });
    coordinates.into_iter().chain(attrs).map(|field| packed(input, &field)).collect()
}

fn packed(input: &Input, field: &Field<'_>) -> Result<Packed> {
    let (auto, chosen) = bytes_per_value(input, field, "auto")?;
    let other = |name: &&str| field.suits(name).then(|| Ok(bytes_per_value(input, field, name)?.0)).transpose();
    Ok(Packed {
        name: format!("{} {}", input.name, field.name.unwrap_or("coordinates")),
        datatype: field.datatype.to_string(),
        width: field.datatype.width().unwrap_or(1) as f64,
        auto,
        chosen,
        others: OTHERS.iter().map(other).collect::<Result<_>>()?,
    })
}

/// Writes the field with `pipeline`, whatever must be written with it as it is.
fn bytes_per_value(input: &Input, field: &Field<'_>, pipeline: &str) -> Result<(f64, Vec<String>)> {
    let any = input.attrs().first().map(|(name, _)| name.as_str());
    let keep = |name: &str| Some(name) == field.name.or(any);
    let filters = |name: Option<&str>| if name == field.name { pipeline } else { "none" }.to_owned();
    let schema: Schema = input.schema(&keep, &filters)?;
    let cells = if input.is_sparse() { limits::SPARSE_BLOCK_CELLS } else { limits::DENSE_BLOCK_CELLS };
    let place = Place::new("columns", cells as u32, 1)?;
    place.write(input, &schema)?;
    let sizes = place.sizes()?;
    let bytes: u64 = sizes.fields.iter().skip(field.span.0).take(field.span.1).sum();
    let mut chosen = sizes.pipelines;
    if input.is_sparse() && chosen.len() > 1 {
        chosen.retain(|name| name != "none");
    }
    Ok((bytes as f64 / (input.cells() * field.span.1).max(1) as f64, chosen))
}
