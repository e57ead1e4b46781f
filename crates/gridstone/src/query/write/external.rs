//! Staging an external fragment: the index of cells that lie in files of another format.

use super::stage::StageSink;
use crate::base::{Error, FileRef, Result};
use crate::fragment::external::{ExternalSpec, ExternalWriter, TilePage};
use crate::fragment::{Description, FragmentKind, FragmentOrder, Location, Staged, ValueBounds};
use crate::query::request::WriteContext;
use crate::schema::Schema;

/// Stages a fragment of `spec` whose tiles have these pages, in the order of its grid; a page per list for each tile.
///
/// # Errors
/// Input: it does not fit the array. Bounds: its box lies outside of the domain. Storage.
pub fn write_external(
    context: &WriteContext<'_>,
    schema: &Schema,
    spec: ExternalSpec,
    pages: &mut dyn Iterator<Item = Result<Vec<TilePage>>>,
) -> Result<Staged> {
    if schema.sparse() {
        return Err(Error::input("files of other formats are attached to dense arrays"));
    }
    let bounds = spec.grid.bounds().clone();
    schema.check_inside(&bounds)?;
    let cells = u64::try_from(bounds.cells());
    let cells = cells.map_err(|_| Error::unsupported("a foreign array of 2^64 cells or more"))?;
    let attrs: Vec<u32> = spec.fields.iter().map(|field| field.attr).collect();
    if !attrs.is_sorted_by(|a, b| a < b) {
        return Err(Error::input("foreign fields are not in the order of their attributes"));
    }
    let (id, total) = (context.entropy.id(), spec.grid.len());
    let extra = vec![Description::external_part(&spec)];
    let sink = StageSink::new(context.files.clone(), id, context.inline);
    let mut writer = ExternalWriter::new(sink, schema, id, spec)?;
    for (tile, pages) in (0..total).zip(&mut *pages) {
        if tile % 4_096 == 0 {
            context.cancel.check()?;
            context.progress.report(tile, total);
        }
        writer.push(pages?)?;
    }
    let (sink, len) = writer.finish()?;
    let body = sink.close()?;
    let description = Description {
        id,
        kind: FragmentKind::Dense,
        order: FragmentOrder { version: 0, index: 0 },
        schema: context.schema_number,
        bounds,
        cells,
        attrs,
        location: Location { file: FileRef::Data(id), offset: 0, len },
        over: None,
        stats: ValueBounds::default(),
        extra,
        moved: Vec::new(),
    };
    Ok(Staged { description, body: body.map(bytes::Bytes::from) })
}
