//! Schemas: dimensions, attributes, and how cells are laid out.

use crate::array::ArrayObject;
use crate::handle::{Brief, Object, get, gridstone_handle, insert};
use crate::memory::{OptionStruct, Out, optional_text, options, text, texts};
use crate::status::{Failure, Outcome, gridstone_status, guarded};
use crate::text::{gridstone_text, text_handle};
use gridstone::schema::notation::ticks;
use gridstone::schema::{Datatype, Schema};
use serde_json::{Value, json};
use std::ffi::c_char;

/// A schema that is being described, or that of an array.
pub type gridstone_schema = gridstone_handle;

/// Cells or tiles in the order of rows: the last dimension varies fastest.
pub const GRIDSTONE_ORDER_ROW: u32 = 0;
/// Cells or tiles in the order of columns: the first dimension varies fastest.
pub const GRIDSTONE_ORDER_COLUMN: u32 = 1;
/// Cells along a Hilbert curve; of sparse arrays.
pub const GRIDSTONE_ORDER_HILBERT: u32 = 2;
/// Reads give cells as they lie: tile by tile.
pub const GRIDSTONE_ORDER_GLOBAL: u32 = 3;
/// Reads give cells in any order, which is quickest.
pub const GRIDSTONE_ORDER_ANY: u32 = 4;

/// What an array is like, beside its dimensions and attributes; 0 everywhere: dense, in row order.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct gridstone_schema_options {
    /// `sizeof(gridstone_schema_options)`
    pub size: usize,
    /// not 0: only the cells that were written exist
    pub sparse: u32,
    /// not 0: a sparse array may have several cells at one position
    pub duplicates: u32,
    /// cells of a data tile of a sparse array; 0: 10,000
    pub capacity: u64,
    /// the order of tiles: `GRIDSTONE_ORDER_ROW` or `GRIDSTONE_ORDER_COLUMN`
    pub tile_order: u32,
    /// the order of the cells of a tile; of sparse arrays also `GRIDSTONE_ORDER_HILBERT`
    pub cell_order: u32,
    /// filters of coordinates, as "zstd:3"; NULL: "auto"
    pub coordinate_filters: *const c_char,
}

// SAFETY: it begins with its size; zeros are the usual values.
unsafe impl OptionStruct for gridstone_schema_options {
    const NAME: &'static str = "gridstone_schema_options";
}

/// A dimension: its name, its type, its domain and the extent of its tiles.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct gridstone_dimension {
    /// `sizeof(gridstone_dimension)`
    pub size: usize,
    /// the name
    pub name: *const c_char,
    /// "int8" to "uint64", "float32", "float64", "datetime64[s]", "timedelta64[ms]", "string" …
    pub r#type: *const c_char,
    /// the low end of the domain as a text, included: "0", "-0.5", a time as "2026-03-01", "20454 D", or its ticks "20454"; NULL: it is
    /// open. A date or time is a period: a domain begins with its first instant, which must be the beginning of a step, and ends with its
    /// last. Four digits alone are a year and a number of ticks, and an error: add a unit or a month
    pub low: *const c_char,
    /// the high end of the domain as a text, included; NULL: it is open
    pub high: *const c_char,
    /// the extent of a tile as a text, of times as "7 D" or ticks; NULL: one tile, or what suits an open end
    pub tile: *const c_char,
    /// the most bytes of a text of a "string" dimension; 0: the usual number
    pub text_bytes_max: usize,
}

// SAFETY: as above.
unsafe impl OptionStruct for gridstone_dimension {
    const NAME: &'static str = "gridstone_dimension";
}

/// An attribute: a value in each cell.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct gridstone_attribute {
    /// `sizeof(gridstone_attribute)`
    pub size: usize,
    /// the name
    pub name: *const c_char,
    /// "bool", "int8" to "uint64", "float16" to "float64", "string", "bytes", "datetime64[s]", "float32[3]" …
    pub r#type: *const c_char,
    /// not 0: values may be null
    pub nullable: u32,
    /// not 0: the order of the categories is one of values
    pub ordered: u32,
    /// what an unwritten cell of a dense array reads as, as a text, of times as the low end of a domain; NULL: null, NaN, 0, or an empty text
    pub fill: *const c_char,
    /// filters, as "auto", "shuffle,zstd:3", "none"; NULL: "auto"
    pub filters: *const c_char,
    /// the texts that values can be, which are stored as codes, or NULL. `type` is that of the texts, "string"; columns and buffers
    /// carry codes, the place in this list, of type "uint8" for up to 128, "uint16" for up to 32,768, "uint32" for more
    pub categories: *const *const c_char,
    /// texts in `categories`
    pub category_count: usize,
}

// SAFETY: as above.
unsafe impl OptionStruct for gridstone_attribute {
    const NAME: &'static str = "gridstone_attribute";
}

/// The parts of a schema as they are added.
pub(crate) struct Parts(Brief<Value>);

impl Object for Parts {
    const NAME: &'static str = "a schema";
}

impl Parts {
    fn push(&self, list: &str, part: Value) {
        self.0.with(|all| {
            if let Some(list) = all.get_mut(list).and_then(Value::as_array_mut) {
                list.push(part);
            }
        });
    }

    fn json(&self) -> String {
        self.0.with(|all| all.to_string())
    }

    pub(crate) fn schema(&self) -> Outcome<Schema> {
        Ok(Schema::from_json(&self.json())?)
    }
}

fn order_name(order: u32, what: &str) -> Outcome<&'static str> {
    match order {
        GRIDSTONE_ORDER_ROW => Ok("row"),
        GRIDSTONE_ORDER_COLUMN => Ok("col"),
        GRIDSTONE_ORDER_HILBERT => Ok("hilbert"),
        other => Err(Failure::input(format!("{what} is {other}; it is GRIDSTONE_ORDER_ROW, _COLUMN or _HILBERT"))),
    }
}

/// Begins a schema: add its dimensions and attributes, then create an array with it. Free it with `gridstone_free`.
///
/// @param options_given what the array is like, or NULL: dense.
/// @param schema where the handle goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_schema_create(
    options_given: *const gridstone_schema_options,
    schema: *mut gridstone_schema,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, given) = unsafe { (Out::new(schema, "schema")?, options(options_given)?) };
        let mut parts = json!({"dims": [], "attrs": []});
        if let Some(given) = given {
            // SAFETY: the contract of the header.
            let filters = unsafe { optional_text(given.coordinate_filters, "coordinate_filters") }?;
            parts["sparse"] = json!(given.sparse != 0);
            parts["duplicates"] = json!(given.duplicates != 0);
            parts["tile_order"] = json!(order_name(given.tile_order, "tile_order")?);
            parts["cell_order"] = json!(order_name(given.cell_order, "cell_order")?);
            if given.capacity != 0 {
                parts["capacity"] = json!(given.capacity);
            }
            if let Some(filters) = filters {
                parts["coord_filters"] = json!(filters);
            }
        }
        out.put(insert(Parts(Brief::new(parts)))?);
        Ok(())
    })
}

/// What the text of a time is in a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Low,
    High,
    Fill,
    Tile,
}

/// A text as schemas hold it: of times the ticks of what a date, a time or a length of time is, any other text as it is.
fn stored_text(type_name: &str, text: &str, role: Role) -> Outcome<String> {
    let asked = match (Datatype::parse(type_name), role) {
        (Ok(Datatype::Datetime(step)), Role::Tile) => Datatype::Timedelta(step),
        (Ok(datatype), _) => datatype,
        // The schema says what is wrong with it.
        (Err(_), _) => return Ok(text.to_owned()),
    };
    if text.trim() == "NaT" {
        return Ok(text.to_owned());
    }
    let Some(ticks) = ticks(asked, text)? else { return Ok(text.to_owned()) };
    let (tick, fits) = match role {
        // A domain ends with the last step that begins in the period.
        Role::High => (ticks.last, ticks.first <= ticks.last),
        Role::Low | Role::Fill | Role::Tile => (ticks.first, ticks.is_exact),
    };
    if !fits {
        return Err(Failure::input(format!("{text:?} begins within a step of {type_name}: give the beginning of one")));
    }
    i64::try_from(tick)
        .map(|tick| tick.to_string())
        .map_err(|_| Failure::input(format!("{text:?} is beyond what {type_name} holds")))
}

/// Adds a dimension, behind those that were added before.
///
/// @param schema a schema that is being described.
/// @param dimension the dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_schema_add_dimension(
    schema: gridstone_schema,
    dimension: *const gridstone_dimension,
) -> gridstone_status {
    guarded(|| {
        let parts = get::<Parts>(schema)?;
        // SAFETY: the contract of the header.
        let given = unsafe { options(dimension) }?.ok_or_else(|| Failure::input("dimension is a null pointer"))?;
        // SAFETY: the contract of the header.
        let (name, datatype, low, high, tile) = unsafe {
            (
                text(given.name, "gridstone_dimension.name")?,
                text(given.r#type, "gridstone_dimension.type")?,
                optional_text(given.low, "low")?,
                optional_text(given.high, "high")?,
                optional_text(given.tile, "tile")?,
            )
        };
        let low = low.map(|text| stored_text(datatype, text, Role::Low)).transpose()?;
        let high = high.map(|text| stored_text(datatype, text, Role::High)).transpose()?;
        let tile = tile.map(|text| stored_text(datatype, text, Role::Tile)).transpose()?;
        let mut part = json!({"name": name, "dtype": datatype, "tile": tile});
        part["domain"] =
            if datatype == "string" && low.is_none() && high.is_none() { Value::Null } else { json!([low, high]) };
        if given.text_bytes_max != 0 {
            part["max_bytes"] = json!(given.text_bytes_max);
        }
        parts.push("dims", part);
        Ok(())
    })
}

/// Adds a dimension of integers or times by numbers, which is shorter to write: the ends of its domain, both included, and the extent of
/// its tiles; 0: one tile.
///
/// @param schema a schema that is being described.
/// @param name the name.
/// @param type_given "int8" to "uint64", "datetime64[s]", "timedelta64[ms]" …
/// @param low the low end of the domain, included; of times the ticks.
/// @param high the high end of the domain, included.
/// @param tile the extent of a tile, or 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_schema_add_axis(
    schema: gridstone_schema,
    name: *const c_char,
    type_given: *const c_char,
    low: i64,
    high: i64,
    tile: u64,
) -> gridstone_status {
    guarded(|| {
        let parts = get::<Parts>(schema)?;
        // SAFETY: the contract of the header.
        let (name, datatype) = unsafe { (text(name, "name")?, text(type_given, "type")?) };
        let tile = (tile != 0).then(|| tile.to_string());
        parts.push(
            "dims",
            json!({"name": name, "dtype": datatype, "domain": [low.to_string(), high.to_string()], "tile": tile}),
        );
        Ok(())
    })
}

/// Adds an attribute, behind those that were added before.
///
/// @param schema a schema that is being described.
/// @param attribute the attribute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_schema_add_attribute(
    schema: gridstone_schema,
    attribute: *const gridstone_attribute,
) -> gridstone_status {
    guarded(|| {
        let parts = get::<Parts>(schema)?;
        // SAFETY: the contract of the header.
        let given = unsafe { options(attribute) }?.ok_or_else(|| Failure::input("attribute is a null pointer"))?;
        // SAFETY: the contract of the header.
        let (name, datatype, fill, filters, categories) = unsafe {
            (
                text(given.name, "gridstone_attribute.name")?,
                text(given.r#type, "gridstone_attribute.type")?,
                optional_text(given.fill, "fill")?,
                optional_text(given.filters, "filters")?,
                texts(given.categories, given.category_count, "categories")?,
            )
        };
        let fill = fill.map(|text| stored_text(datatype, text, Role::Fill)).transpose()?;
        let mut part = json!({"name": name, "dtype": datatype, "nullable": given.nullable != 0, "fill": fill});
        part["filters"] = json!(filters.unwrap_or("auto"));
        if !given.categories.is_null() {
            part["categories"] = json!(categories);
            part["ordered"] = json!(given.ordered != 0);
        }
        parts.push("attrs", part);
        Ok(())
    })
}

/// A schema of its JSON, as `gridstone_schema_json` gives it. Free it with `gridstone_free`.
///
/// @param json_given the text.
/// @param schema where the handle goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_schema_from_json(
    json_given: *const c_char,
    schema: *mut gridstone_schema,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, json) = unsafe { (Out::new(schema, "schema")?, text(json_given, "json")?) };
        let checked = Schema::from_json(json)?.to_json();
        let parts =
            serde_json::from_str(&checked).map_err(|e| Failure::input(format!("the schema is no JSON: {e}")))?;
        out.put(insert(Parts(Brief::new(parts)))?);
        Ok(())
    })
}

/// A schema as an object of JSON, with every option written out. `GRIDSTONE_ERROR_SCHEMA`: it is contradictory. Free the text.
///
/// @param schema a schema, or an array, whose schema is given.
/// @param json where the handle of the text goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_schema_json(
    schema: gridstone_handle,
    json: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(json, "json") }?;
        let found = match get::<Parts>(schema) {
            Ok(parts) => parts.schema()?.to_json(),
            Err(failure) => match get::<ArrayObject>(schema) {
                Ok(array) => array.0.schema()?.to_json_with_reach(),
                Err(_) => return Err(failure),
            },
        };
        out.put(text_handle(found)?);
        Ok(())
    })
}
