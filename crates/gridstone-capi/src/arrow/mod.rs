//! The C data interface of Arrow in both directions, without a dependency: results, reads and answers out, cells in.
//!
//! ```text
//!  abi       the three structs, and who releases them
//!  types     the type of Arrow for each of ours          convert   numbers and times of another type, without loss
//!  export    columns as arrays over the same memory      given     arrays of others: counts checked, buffers as slices
//!  stream    reads and answers as streams                column    their values as columns of ours
//!                                                        write     batches into one commit
//! ```

mod abi;
mod column;
mod convert;
mod export;
mod given;
mod stream;
mod types;
mod write;

pub use abi::{ArrowArray, ArrowArrayStream, ArrowSchema};

use crate::aggregate::{AnswersObject, gridstone_answers};
use crate::array::{ArrayObject, gridstone_array};
use crate::call::{Asked, gridstone_call};
use crate::field::Field;
use crate::handle::{Object, get};
use crate::memory::{Out, options};
use crate::read::{ReadObject, gridstone_read};
use crate::result::{Named, ResultObject, gridstone_result};
use crate::status::{Failure, Outcome, gridstone_status, guarded};
use crate::write::{dedup_of, gridstone_cells_options, gridstone_staged, staged_handle};
use abi::Owned;
use export::{Home, Node, schema_of};
use gridstone::engine::{Array, Dedup, Staged};
use std::sync::Arc;
use stream::{Batches, stream_of};
use types::ArrowType;
use write::{How, Source, stage};

/// A result as an array of Arrow: a struct with a child for each column, over the memory of the result, which stays as long as the array
/// is not released. The result may be freed before.
///
/// @param result the result.
/// @param schema where the type goes; release it.
/// @param array where the values go; release it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_result_to_arrow(
    result: gridstone_result,
    schema: *mut ArrowSchema,
    array: *mut ArrowArray,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (schema, array) = unsafe { (Out::new(schema, "schema")?, Out::new(array, "array")?) };
        let result = get::<ResultObject>(result)?;
        let fields: Vec<Field> = result.columns.iter().map(|column| column.field.clone()).collect();
        let columns = result.columns.iter().map(|Named { field, column, .. }| (field, column));
        let node = Node::of_rows(result.rows, columns)?;
        let made = schema_of(&ArrowType::of_rows(&fields))?;
        let home: Home = Arc::clone(&result) as Home;
        schema.put(made);
        array.put(node.into_array(&home));
        Ok(())
    })
}

/// Moves a read into a stream of Arrow, whose batches are as large as `batch_bytes` of the read says, about: what the read has not given
/// yet. The read's handle is used up, and is still to be freed.
///
/// @param read the read.
/// @param stream where the stream goes; release it, also before its end. One thread at a time may use it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_read_to_arrow(
    read: gridstone_read,
    stream: *mut ArrowArrayStream,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(stream, "stream") }?;
        let read = get::<ReadObject>(read)?;
        let fields = read.fields()?;
        let mut portions = read.portions.take(ReadObject::NAME)?;
        // That of the last call may be one whose callback is gone.
        portions.set_cancel(Arc::new(gridstone::base::NeverCancel));
        portions.set_progress(Arc::new(gridstone::base::Silent));
        out.put(stream_of(fields, Batches::Read(Box::new(portions))));
        Ok(())
    })
}

/// Moves an answer into a stream of Arrow: what it has not given yet. The handle of the answers is used up, and is still to be freed.
///
/// @param answers the answers.
/// @param stream where the stream goes; release it, also before its end. One thread at a time may use it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_answers_to_arrow(
    answers: gridstone_answers,
    stream: *mut ArrowArrayStream,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(stream, "stream") }?;
        let answers = get::<AnswersObject>(answers)?;
        let fields = answers.0.with(AnswersObject::NAME, |stream| {
            let nothing = stream.nothing()?;
            let field = |(named, column): &(_, gridstone::engine::Column)| {
                Field::of_answer(stream.schema(), named, column.datatype())
            };
            Ok(nothing.columns.iter().map(field).collect::<Vec<_>>())
        })?;
        let mut taken = answers.0.take(AnswersObject::NAME)?;
        let never: Arc<dyn gridstone::base::Cancel> = Arc::new(gridstone::base::NeverCancel);
        taken.set_cancel(&never);
        taken.set_progress(Arc::new(gridstone::base::Silent));
        out.put(stream_of(fields, Batches::Answer(Box::new(taken))));
        Ok(())
    })
}

/// How cells of Arrow are written.
///
/// # Safety
/// The contract of the header.
unsafe fn how_of(given: *const gridstone_cells_options) -> Outcome<How> {
    // SAFETY: passed on.
    let how = unsafe { options(given) }?;
    let (dedup, sorted) = how.map_or((0, false), |how| (how.dedup, how.sorted != 0));
    let dedup = dedup_of(dedup)?;
    match sorted && dedup != Dedup::Error {
        true => Err(Failure::input("cells in global order come with GRIDSTONE_DEDUP_ERROR")),
        false => Ok(How { sorted, dedup }),
    }
}

/// Stages a stream.
///
/// # Safety
/// The contract of the header.
unsafe fn stage_stream(
    array: &Array,
    stream: Outcome<Owned<ArrowArrayStream>>,
    how: *const gridstone_cells_options,
    asked: &Asked,
) -> Outcome<Staged> {
    let mut stream = stream?;
    // SAFETY: passed on.
    let how = unsafe { how_of(how) }?;
    let schema = write::schema_of(&mut stream)?;
    stage(array, (schema, Source::Stream(stream)), how, asked)
}

/// Writes the cells of a stream of Arrow, in one commit and in bounded memory: its structs have a column for each dimension and for
/// attributes, by name. A column of another type is taken if nothing is lost by it, but that float64 is rounded to float32: wider or
/// narrower numbers, other units of times, texts with short offsets, dictionaries. The stream is released in any case, also after an
/// error, unless its pointer is null.
///
/// @param array an array that is open for writing.
/// @param stream the stream; it is moved away.
/// @param how in which order cells come, and what becomes of several at one place, or NULL.
/// @param call what goes with the call, or NULL.
/// @param version where the version of the commit goes, or NULL; the array shows it from now on.
///
/// `GRIDSTONE_ERROR_INPUT`: a column or a value does not fit, which the message names, or the stream failed. Nothing was written then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_write_arrow(
    array: gridstone_array,
    stream: *mut ArrowArrayStream,
    how: *const gridstone_cells_options,
    call: *const gridstone_call,
    version: *mut u64,
) -> gridstone_status {
    // SAFETY: the contract of the header.
    let stream = unsafe { Owned::take(stream) };
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, asked) = unsafe { (Out::optional(version, "version")?, Asked::new(call)?) };
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let staged = unsafe { stage_stream(&array.0, stream, how, &asked) }?;
        out.put(asked.commit(&array.0, staged)?);
        Ok(())
    })
}

/// As `gridstone_array_write_arrow`, without the commit.
///
/// @param array an array that is open for writing.
/// @param stream the stream; it is moved away.
/// @param how in which order cells come, and what becomes of several at one place, or NULL.
/// @param call what goes with the call, or NULL.
/// @param staged where the handle goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_stage_arrow(
    array: gridstone_array,
    stream: *mut ArrowArrayStream,
    how: *const gridstone_cells_options,
    call: *const gridstone_call,
    staged: *mut gridstone_staged,
) -> gridstone_status {
    // SAFETY: the contract of the header.
    let stream = unsafe { Owned::take(stream) };
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, asked) = unsafe { (Out::new(staged, "staged")?, Asked::new(call)?) };
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        out.put(staged_handle(unsafe { stage_stream(&array.0, stream, how, &asked) }?)?);
        Ok(())
    })
}

/// As `gridstone_array_write_arrow`, of one struct array. Both structs are released in any case, unless a pointer is null.
///
/// @param array an array that is open for writing.
/// @param schema the type; it is moved away.
/// @param batch the values; they are moved away.
/// @param how in which order cells come, and what becomes of several at one place, or NULL.
/// @param call what goes with the call, or NULL.
/// @param version where the version of the commit goes, or NULL; the array shows it from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_write_arrow_batch(
    array: gridstone_array,
    schema: *mut ArrowSchema,
    batch: *mut ArrowArray,
    how: *const gridstone_cells_options,
    call: *const gridstone_call,
    version: *mut u64,
) -> gridstone_status {
    // SAFETY: the contract of the header.
    let (schema, batch) = unsafe { (Owned::take(schema), Owned::take(batch)) };
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, asked, how) = unsafe { (Out::optional(version, "version")?, Asked::new(call)?, how_of(how)?) };
        let array = get::<ArrayObject>(array)?;
        let staged = stage(&array.0, (schema?, Source::Batch(Some(batch?))), how, &asked)?;
        out.put(asked.commit(&array.0, staged)?);
        Ok(())
    })
}
