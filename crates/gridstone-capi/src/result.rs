//! Results: columns that the library holds, of reads whose size is not known before.

use crate::cell::gridstone_column;
use crate::field::Field;
use crate::handle::{Object, get, gridstone_handle, insert};
use crate::memory::{Out, OutStruct, text};
use crate::status::{Failure, Outcome, gridstone_status, guarded};
use crate::text::{gridstone_text, text_handle};
use gridstone::base::CounterSnapshot;
use gridstone::engine::{Answer, Cells, Column, ResultColumn};
use gridstone::schema::Schema;
use serde_json::json;
use std::ffi::{CString, c_char};

/// Columns of cells or of groups. They never change; many threads may use one.
pub type gridstone_result = gridstone_handle;

/// A column with its name and type as C takes them.
pub(crate) struct Named {
    name: CString,
    type_name: CString,
    pub(crate) field: Field,
    pub(crate) column: Column,
}

impl Named {
    fn new(field: Field, column: Column) -> Outcome<Self> {
        let zero = |_| Failure::input(format!("the name {:?} has a zero in it, which C cannot show", field.name));
        let name = CString::new(field.name.as_str()).map_err(zero)?;
        let type_name = CString::new(field.datatype.to_string()).map_err(zero)?;
        Ok(Self { name, type_name, field, column })
    }
}

pub(crate) struct ResultObject {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<Named>,
    /// The sides of what the rows are in row order.
    shape: Vec<u64>,
    counters: CounterSnapshot,
}

impl Object for ResultObject {
    const NAME: &'static str = "a result";
}

impl ResultObject {
    /// A result of columns, and its shape if it has several axes.
    pub(crate) fn new(
        rows: usize,
        columns: impl Iterator<Item = (Field, Column)>,
        shape: Option<Vec<u64>>,
        counters: CounterSnapshot,
    ) -> Outcome<Self> {
        let columns = columns.map(|(field, column)| Named::new(field, column)).collect::<Outcome<_>>()?;
        Ok(Self { rows, columns, shape: shape.unwrap_or_else(|| vec![rows as u64]), counters })
    }

    /// Cells with these attributes; their coordinates, if they come with them, in front.
    pub(crate) fn of_cells(
        schema: &Schema,
        attrs: &[String],
        (cells, shape): (Cells, Option<Vec<u64>>),
        counters: CounterSnapshot,
    ) -> Outcome<Self> {
        let dims = if cells.dims.is_empty() { Vec::new() } else { Field::of_dimensions(schema) };
        let fields = dims.into_iter().chain(Field::of_attributes(schema, attrs)?);
        Self::new(cells.count, fields.zip(cells.dims.into_iter().chain(cells.attrs)), shape, counters)
    }

    /// The answer to a question to an array of this schema.
    pub(crate) fn of_answer(
        schema: &Schema,
        answer: Answer,
        shape: Option<Vec<u64>>,
        counters: CounterSnapshot,
    ) -> Outcome<Self> {
        let field =
            |(named, column): (ResultColumn, Column)| (Field::of_answer(schema, &named, column.datatype()), column);
        Self::new(answer.rows, answer.columns.into_iter().map(field), shape, counters)
    }

    pub(crate) fn into_handle(self) -> Outcome<gridstone_result> {
        insert(self)
    }

    fn column(&self, index: u64) -> Outcome<&Named> {
        let found = usize::try_from(index).ok().and_then(|index| self.columns.get(index));
        found.ok_or_else(|| {
            Failure::input(format!("index is {index}; the result has {} columns, counted from 0", self.columns.len()))
        })
    }
}

/// The number of rows of a result: cells, or groups.
///
/// @param result the result.
/// @param rows where the number goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_result_rows(result: gridstone_result, rows: *mut u64) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(rows, "rows") }?;
        out.put(get::<ResultObject>(result)?.rows as u64);
        Ok(())
    })
}

/// The number of columns of a result.
///
/// @param result the result.
/// @param columns where the number goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_result_columns(result: gridstone_result, columns: *mut u64) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(columns, "columns") }?;
        out.put(get::<ResultObject>(result)?.columns.len() as u64);
        Ok(())
    })
}

/// A column of a result: its name, its type, its values, their offsets and their validity. All pointers are the library's, to be read
/// only, and valid until the result is freed.
///
/// @param result the result.
/// @param index which column, from 0.
/// @param column where it goes; set its `size` before. `offsets` is NULL if values are of fixed width, `validity` if none is null. Values
/// of an attribute with categories are codes, and `type` is that of the codes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_result_column(
    result: gridstone_result,
    index: u64,
    column: *mut gridstone_column,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { OutStruct::new(column) }?;
        let result = get::<ResultObject>(result)?;
        let named = result.column(index)?;
        let view = named.column.view();
        out.put(gridstone_column {
            size: size_of::<gridstone_column>(),
            name: named.name.as_ptr(),
            r#type: named.type_name.as_ptr(),
            values: view.values().as_ptr().cast(),
            values_bytes: view.values().len(),
            offsets: view.offsets().map_or(std::ptr::null(), <[u64]>::as_ptr),
            offset_count: view.offsets().map_or(0, <[u64]>::len),
            validity: view.validity().map_or(std::ptr::null(), <[u8]>::as_ptr),
            validity_count: view.validity().map_or(0, <[u8]>::len),
        });
        Ok(())
    })
}

/// The index of the column of a name. `GRIDSTONE_ERROR_NOT_FOUND`: there is none.
///
/// @param result the result.
/// @param name the name.
/// @param index where the index goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_result_find(
    result: gridstone_result,
    name: *const c_char,
    index: *mut u64,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, name) = unsafe { (Out::new(index, "index")?, text(name, "name")?) };
        let result = get::<ResultObject>(result)?;
        let place = result.columns.iter().position(|column| column.field.name == name).ok_or_else(|| {
            let names: Vec<&str> = result.columns.iter().map(|column| column.field.name.as_str()).collect();
            let message = format!("the result has no column {name:?}; it has {}", names.join(", "));
            Failure::new(crate::status::GRIDSTONE_ERROR_NOT_FOUND, message)
        })?;
        out.put(place as u64);
        Ok(())
    })
}

/// The categories of a column, by code, as a JSON array of texts; `null` if its values are no codes. Free the text.
///
/// @param result the result.
/// @param index which column, from 0.
/// @param categories where the handle of the text goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_result_categories(
    result: gridstone_result,
    index: u64,
    categories: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(categories, "categories") }?;
        let result = get::<ResultObject>(result)?;
        let texts = result.column(index)?.field.categories.as_ref().map(|known| known.texts());
        out.put(text_handle(json!(texts).to_string())?);
        Ok(())
    })
}

/// The sides of a result whose rows are an array of several axes in row order, as positions and reductions give it; of any other result
/// the number of its rows.
///
/// @param result the result.
/// @param sides where the pointer goes; it is valid until the result is freed.
/// @param count where the number of axes goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_result_shape(
    result: gridstone_result,
    sides: *mut *const u64,
    count: *mut usize,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (sides, count) = unsafe { (Out::new(sides, "sides")?, Out::new(count, "count")?) };
        let result = get::<ResultObject>(result)?;
        sides.put(result.shape.as_ptr());
        count.put(result.shape.len());
        Ok(())
    })
}

/// What was done for a result, as JSON: names of counters and their values. Free the text.
///
/// @param result the result.
/// @param counters where the handle of the text goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_result_counters(
    result: gridstone_result,
    counters: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(counters, "counters") }?;
        out.put(text_handle(get::<ResultObject>(result)?.counters.to_json())?);
        Ok(())
    })
}
