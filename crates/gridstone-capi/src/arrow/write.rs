//! Cells of arrays of Arrow, written in one commit, batch by batch.

use super::abi::{ArrowArray, ArrowArrayStream, ArrowSchema, Owned};
use super::column::{Values, column_of};
use super::given::{Given, child_schemas, format_of};
use crate::call::Asked;
use crate::field::Field;
use crate::status::{Failure, GRIDSTONE_ERROR_CANCELLED, Outcome};
use gridstone::engine::{Array, ColumnView, Dedup, Naming, Staged, Writer};
use gridstone::schema::Schema;
use std::ffi::{CStr, c_int};

/// Where batches come from.
pub(super) enum Source {
    Stream(Owned<ArrowArrayStream>),
    /// One batch, until it was given.
    Batch(Option<Owned<ArrowArray>>),
}

impl Source {
    /// The next batch; `None` at the end.
    fn next(&mut self) -> Outcome<Option<Owned<ArrowArray>>> {
        let stream = match self {
            Self::Batch(batch) => return Ok(batch.take()),
            Self::Stream(stream) => stream,
        };
        let mut batch = Owned::empty();
        let Some(next) = stream.get().get_next else {
            return Err(Failure::input("ArrowArrayStream.get_next is a null pointer"));
        };
        // SAFETY: the stream was not released, and the batch holds nothing.
        let status = unsafe { next(stream.as_mut_ptr(), batch.as_mut_ptr()) };
        match status {
            0 if batch.is_released() => Ok(None),
            0 => Ok(Some(batch)),
            status => Err(failed(stream, status)),
        }
    }
}

/// What went wrong in a stream.
fn failed(stream: &mut Owned<ArrowArrayStream>, status: c_int) -> Failure {
    let last = stream.get().get_last_error;
    // SAFETY: the stream was not released.
    let text = last.map_or(std::ptr::null(), |last| unsafe { last(stream.as_mut_ptr()) });
    let text = match text.is_null() {
        true => format!("error number {status}"),
        // SAFETY: not null; the interface says that the text ends with a zero and is valid until the stream's next call.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    };
    let message = format!("the Arrow stream failed, and nothing was written: {text}");
    match status {
        libc::ECANCELED => Failure::new(GRIDSTONE_ERROR_CANCELLED, message),
        _ => Failure::input(message),
    }
}

/// The type of the batches of a stream.
pub(super) fn schema_of(stream: &mut Owned<ArrowArrayStream>) -> Outcome<Owned<ArrowSchema>> {
    let mut schema = Owned::empty();
    let Some(get) = stream.get().get_schema else {
        return Err(Failure::input("ArrowArrayStream.get_schema is a null pointer"));
    };
    // SAFETY: the stream was not released, and the schema holds nothing.
    match unsafe { get(stream.as_mut_ptr(), schema.as_mut_ptr()) } {
        0 if schema.is_released() => Err(Failure::input("the Arrow stream gave no schema")),
        0 => Ok(schema),
        status => Err(failed(stream, status)),
    }
}

/// Which column of the batches is which field.
struct Plan {
    /// The dimensions, then attributes in the order of the schema, each with its place in a batch.
    fields: Vec<(Field, usize)>,
    dims: usize,
}

impl Plan {
    fn new(schema: &Schema, given: &ArrowSchema) -> Outcome<Self> {
        // SAFETY: the caller gave a schema of the interface, which is ours until the end.
        let (format, children) = unsafe { (format_of(given, "rows")?, child_schemas(given, "rows")?) };
        if format != "+s" {
            let message = format!(
                "the Arrow data is of format {format:?}; a struct is needed, with a column for each dimension and attribute"
            );
            return Err(Failure::input(message));
        }
        let name = |child: &&ArrowSchema| {
            // SAFETY: as above.
            unsafe { crate::memory::optional_text(child.name, "the name of an Arrow column") }
                .map(Option::unwrap_or_default)
        };
        let names: Vec<&str> = children.iter().map(name).collect::<Outcome<_>>()?;
        let dims = Field::of_dimensions(schema);
        let count = dims.len();
        let known: Vec<Field> = dims.into_iter().chain(schema.attrs().iter().map(Field::of_attribute)).collect();
        for (place, name) in names.iter().enumerate() {
            if names.iter().take(place).any(|earlier| earlier == name) {
                return Err(Failure::input(format!("the Arrow data has two columns {name:?}")));
            }
            if !known.iter().any(|field| field.name == *name) {
                let all: Vec<&str> = known.iter().map(|field| field.name.as_str()).collect();
                let message =
                    format!("the array has no column {name:?} as the Arrow data has; it has {}", all.join(", "));
                return Err(Failure::input(message));
            }
        }
        let mut fields = Vec::with_capacity(names.len());
        for (number, field) in known.into_iter().enumerate() {
            match names.iter().position(|name| *name == field.name) {
                Some(place) => fields.push((field, place)),
                None if number < count => {
                    let message =
                        format!("the Arrow data lacks the dimension {:?}; it has {}", field.name, names.join(", "));
                    return Err(Failure::input(message));
                }
                None => {}
            }
        }
        Ok(Self { fields, dims: count })
    }

    fn attrs(&self) -> Vec<String> {
        self.fields.iter().skip(self.dims).map(|(field, _)| field.name.clone()).collect()
    }
}

/// How cells are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct How {
    pub(super) sorted: bool,
    pub(super) dedup: Dedup,
}

/// A writer of the cells of a plan.
fn writer_of(array: &Array, plan: &Plan, how: How, asked: &Asked) -> gridstone::base::Result<Writer> {
    let attrs = plan.attrs();
    let writer = match how.sorted && array.schema()?.sparse() {
        true => array.box_writer(None, Some(&attrs), asked.call.grows)?,
        false => {
            let writer = array.unsorted_writer(Some(&attrs), how.dedup)?;
            if asked.call.grows { writer.growing()? } else { writer }
        }
    };
    match &asked.call.commit_key {
        Some(key) => writer.with_key(key.clone(), Naming::Id),
        None => Ok(writer),
    }
}

/// Stages the cells of all batches.
pub(super) fn stage(
    array: &Array,
    (schema, mut source): (Owned<ArrowSchema>, Source),
    how: How,
    asked: &Asked,
) -> Outcome<Staged> {
    let plan = Plan::new(array.schema()?.as_ref(), schema.get())?;
    let mut writer = writer_of(array, &plan, how, asked)?;
    let mut rows = 0;
    while let Some(batch) = source.next()? {
        asked.call.cancel.check()?;
        rows += append(&mut writer, &plan, (schema.get(), batch.get(), rows), asked)?;
        asked.call.progress.report(rows, 0);
    }
    asked.run(|call| writer.finish(call))
}

/// Appends the rows of a batch, and gives their number.
fn append(
    writer: &mut Writer,
    plan: &Plan,
    (schema, batch, first_row): (&ArrowSchema, &ArrowArray, u64),
    asked: &Asked,
) -> Outcome<u64> {
    let cancel = asked.call.cancel.as_ref();
    // SAFETY: the producer gave both; they are ours until they are released, after this call.
    let rows = unsafe { Given::new("rows", first_row, schema, batch) }?;
    rows.expect_buffers(1)?;
    if let Some(row) = rows.validity()?.and_then(|flags| flags.iter().position(|flag| *flag == 0)) {
        let row = first_row + row as u64;
        return Err(Failure::input(format!("row {row} of the Arrow data is null as a whole; drop it")));
    }
    let mut values: Vec<Values<'_>> = Vec::with_capacity(plan.fields.len());
    for (field, place) in &plan.fields {
        values.push(column_of(field, &rows.column(*place, &field.name)?, cancel)?);
    }
    let views = values.iter().zip(&plan.fields).map(|(values, (field, _))| values.view(&field.name, cancel));
    let views: Vec<ColumnView<'_>> = views.collect::<gridstone::base::Result<_>>()?;
    let (dims, attrs) = views.split_at_checked(plan.dims).unwrap_or((&views, &[]));
    asked.run(|call| writer.append(call, dims, attrs))?;
    Ok(rows.count as u64)
}
