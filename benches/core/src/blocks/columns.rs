//! The size of each column of an input under each pipeline, and the time to read it, at the default block size.

use super::input::{Input, suits};
use super::measure::{Effort, Samples, timed, turns};
use super::stored::{Place, Sizes};
use super::table::default_cells;
use gridstone::base::Result;
use gridstone::engine::{Array, Call, ReadOrder};
use gridstone::schema::Datatype;

/// `auto`, general compressors, and pcodec alone, at the level that `auto` uses and at its own default.
pub(crate) const OTHERS: [&str; 6] = ["auto", "zstd:3", "shuffle,zstd:3", "gzip:6", "pco:4", "pco:8"];

/// A column of an input, or all its coordinates.
#[derive(Debug)]
pub(crate) struct Packed {
    /// The input and the column.
    pub(crate) name: String,
    /// The type of its values.
    pub(crate) datatype: String,
    /// Bytes of a value before packing.
    pub(crate) width: f64,
    /// The pipelines that `auto` chose.
    pub(crate) chosen: Vec<String>,
    /// The figures of each of [`OTHERS`]; `None` if it does not accept the type.
    pub(crate) packed: Vec<Option<PerValue>>,
}

/// The costs of a value.
#[derive(Debug)]
pub(crate) struct PerValue {
    /// Bytes on disk.
    pub(crate) bytes: f64,
    /// Typical seconds of a read of everything; for a sparse array with its coordinates.
    pub(crate) seconds: f64,
}

/// The coordinates together, or one attribute.
pub(crate) struct Field<'a> {
    name: Option<&'a str>,
    datatype: Datatype,
    /// The first of its fields in a fragment of it alone, and their number.
    span: (usize, usize),
}

/// Packs every column of `input` with every pipeline.
///
/// # Errors
/// Those of the engine.
pub(crate) fn pack(input: &Input, effort: Effort) -> Result<Vec<Packed>> {
    let (dims, coordinates) = (input.dims().len(), coordinates(input));
    let attrs = input.attrs().iter();
    let attrs = attrs.map(|(name, c)| Field { name: Some(name), datatype: c.datatype(), span: (dims, 1) });
    coordinates.into_iter().chain(attrs).map(|field| packed(input, &field, effort)).collect()
}

/// All coordinates of a sparse input.
pub(crate) fn coordinates(input: &Input) -> Option<Field<'static>> {
    input.dims().first().map(|c| Field { name: None, datatype: c.datatype(), span: (0, input.dims().len()) })
}

fn packed(input: &Input, field: &Field<'_>, effort: Effort) -> Result<Packed> {
    let named = |name: &&str| suits(name, field.datatype).then(|| write(input, field, name, effort)).transpose();
    let written: Vec<Option<(Place, Sizes)>> = OTHERS.iter().map(named).collect::<Result<_>>()?;
    let opened = |one: &Option<(Place, Sizes)>| one.as_ref().map(|(place, _)| place.open()).transpose();
    let arrays: Vec<Option<Array>> = written.iter().map(opened).collect::<Result<_>>()?;
    let mut samples = vec![Samples::default(); OTHERS.len()];
    for repeat in 0..effort.repeats {
        for at in turns(OTHERS.len(), repeat) {
            let Some((Some(array), samples)) = arrays.get(at).zip(samples.get_mut(at)) else { continue };
            samples.add([timed(|| array.read(None, None, ReadOrder::Any, &Call::default()))?]);
        }
    }
    let values = (input.cells() * field.span.1).max(1) as f64;
    let per_value = |(one, samples): (&Option<(Place, Sizes)>, Samples)| {
        let (_, sizes) = one.as_ref()?;
        let bytes: u64 = sizes.fields.iter().skip(field.span.0).take(field.span.1).sum();
        Some(PerValue { bytes: bytes as f64 / values, seconds: samples.typical() / values })
    };
    let mut chosen = written.iter().flatten().next().map(|(_, sizes)| sizes.pipelines.clone()).unwrap_or_default();
    if input.is_sparse() && chosen.len() > 1 {
        chosen.retain(|name| name != "none");
    }
    Ok(Packed {
        name: format!("{} {}", input.name, field.name.unwrap_or("coordinates")),
        datatype: field.datatype.to_string(),
        width: field.datatype.width().unwrap_or(1) as f64,
        chosen,
        packed: written.iter().zip(samples).map(per_value).collect(),
    })
}

/// Writes the field with `pipeline`, and what must be written with it unchanged.
pub(crate) fn write(input: &Input, field: &Field<'_>, pipeline: &str, effort: Effort) -> Result<(Place, Sizes)> {
    let any = input.attrs().first().map(|(name, _)| name.as_str());
    let keep = |name: &str| Some(name) == field.name.or(any);
    let filters = |name: Option<&str>| if name == field.name { pipeline } else { "none" }.to_owned();
    let schema = input.schema(&keep, &filters)?;
    let place = Place::new(&format!("columns-{pipeline}"), default_cells(input.is_sparse()), effort.threads)?;
    place.write(input, &schema)?;
    let sizes = place.sizes()?;
    Ok((place, sizes))
}
