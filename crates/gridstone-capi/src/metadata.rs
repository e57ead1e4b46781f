//! Metadata of arrays, groups, attributes and dimensions: keys with values of JSON.

use crate::array::ArrayObject;
use crate::group::GroupObject;
use crate::handle::{get_either, gridstone_handle};
use crate::memory::{Out, optional_text, optional_texts, text, texts};
use crate::status::{Failure, GRIDSTONE_ERROR_NOT_FOUND, Outcome, gridstone_status, guarded};
use crate::text::{gridstone_text, text_handle};
use gridstone::base::Result;
use gridstone::engine::Field;
use serde_json::json;
use std::ffi::c_char;
use std::sync::Arc;

/// What has metadata.
enum Place {
    Array(Arc<ArrayObject>),
    Group(Arc<GroupObject>),
    Field(Arc<ArrayObject>, Field),
}

impl Place {
    /// The place that a handle and the name of an attribute or dimension mean.
    ///
    /// # Safety
    /// The contract of the header.
    unsafe fn new(node: gridstone_handle, field: *const c_char) -> Outcome<Self> {
        // SAFETY: passed on.
        let field = unsafe { optional_text(field, "field") }?;
        match (get_either::<ArrayObject, GroupObject>(node)?, field) {
            (Ok(array), None) => Ok(Self::Array(array)),
            (Ok(array), Some(name)) => {
                let field = array.0.field(name)?;
                Ok(Self::Field(array, field))
            }
            (Err(group), None) => Ok(Self::Group(group)),
            (Err(_), Some(name)) => {
                Err(Failure::input(format!("a group has no attribute or dimension {name:?}; give NULL as the field")))
            }
        }
    }

    fn get(&self, key: &str) -> Result<Option<String>> {
        match self {
            Self::Array(array) => array.0.metadata(key),
            Self::Group(group) => group.shown().metadata(key),
            Self::Field(array, field) => array.0.field_metadata(*field, key),
        }
    }

    fn keys(&self) -> Result<Vec<String>> {
        match self {
            Self::Array(array) => array.0.metadata_keys(),
            Self::Group(group) => group.shown().metadata_keys(),
            Self::Field(array, field) => Ok(array.0.all_field_metadata(*field)?.keys().cloned().collect()),
        }
    }

    fn set(&self, changes: Vec<(String, Option<String>)>) -> Outcome<u64> {
        match self {
            Self::Array(array) => Ok(array.0.set_metadata(changes)?),
            Self::Group(group) => {
                let version = group.to_write()?.set_metadata(changes)?;
                group.follow();
                Ok(version)
            }
            Self::Field(array, field) => Ok(array.0.set_field_metadata(*field, changes)?),
        }
    }
}

pub(crate) fn missing_key(key: &str) -> Failure {
    Failure::new(GRIDSTONE_ERROR_NOT_FOUND, format!("there is no metadata called {key:?}"))
}

/// Keys with their texts of JSON as one object.
pub(crate) fn object_of<'a>(pairs: impl Iterator<Item = (&'a String, &'a String)>) -> String {
    // The texts as they are stored: a number keeps all of its digits.
    let members = pairs.map(|(key, value)| format!("{}:{value}", json!(key)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// What is to be set, and removed.
pub(crate) fn changes_of(keys: &[&str], values: &[Option<&str>]) -> Outcome<Vec<(String, Option<String>)>> {
    if let Some(place) = keys.iter().position(|key| key.is_empty()) {
        return Err(Failure::input(format!("keys[{place}] is empty; a key of metadata has a character at least")));
    }
    Ok(keys.iter().zip(values).map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned))).collect())
}

/// The value of a key of metadata, as the text of JSON that was set.
///
/// Values are plain JSON: null, true, numbers, texts, lists, objects. What JSON lacks is an object with one key, which Python reads as the
/// value and writes for it: `{"$int": "…"}` for an integer beyond 64 bits, `{"$float": "nan"}`, `"inf"` or `"-inf"`, `{"$bytes": "base64"}`,
/// `{"$datetime": "ISO 8601"}`, `{"$datetime64": [ticks, "s"]}` and `{"$timedelta64": [ticks, "s"]}` with null for NaT. An object with a
/// key that begins with "$" is `{"$dict": {…}}`.
///
/// @param node an array or a group.
/// @param field the name of an attribute or dimension of the array, whose metadata is meant; or NULL: that of the node.
/// @param key the key.
/// @param value where the text goes; free it with `gridstone_free`.
///
/// `GRIDSTONE_ERROR_NOT_FOUND`: there is no such key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_metadata_get(
    node: gridstone_handle,
    field: *const c_char,
    key: *const c_char,
    value: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, key, place) = unsafe { (Out::new(value, "value")?, text(key, "key")?, Place::new(node, field)?) };
        out.put(text_handle(place.get(key)?.ok_or_else(|| missing_key(key))?)?);
        Ok(())
    })
}

/// The keys of metadata, sorted, as a list of texts in JSON.
///
/// @param node an array or a group.
/// @param field as in `gridstone_metadata_get`.
/// @param keys where the text goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_metadata_keys(
    node: gridstone_handle,
    field: *const c_char,
    keys: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, place) = unsafe { (Out::new(keys, "keys")?, Place::new(node, field)?) };
        out.put(text_handle(json!(place.keys()?).to_string())?);
        Ok(())
    })
}

/// All keys of metadata with their values, as an object of JSON.
///
/// @param node an array or a group.
/// @param field as in `gridstone_metadata_get`.
/// @param all where the text goes; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_metadata_all(
    node: gridstone_handle,
    field: *const c_char,
    all: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, place) = unsafe { (Out::new(all, "all")?, Place::new(node, field)?) };
        let mut pairs = Vec::new();
        for key in place.keys()? {
            // Another thread may have moved the handle on, and the key is gone.
            if let Some(value) = place.get(&key)? {
                pairs.push((key, value));
            }
        }
        out.put(text_handle(object_of(pairs.iter().map(|(key, value)| (key, value))))?);
        Ok(())
    })
}

/// Sets and removes keys of metadata in one commit.
///
/// @param node an array or a group that is open for writing.
/// @param field as in `gridstone_metadata_get`.
/// @param keys the keys, none of them empty.
/// @param values a text of JSON for each key, as `gridstone_metadata_get` describes them; NULL removes the key.
/// @param count how many.
/// @param version where the version goes, or NULL; the node shows it from now on.
///
/// `GRIDSTONE_ERROR_INPUT`: a value is no JSON.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_metadata_set(
    node: gridstone_handle,
    field: *const c_char,
    keys: *const *const c_char,
    values: *const *const c_char,
    count: usize,
    version: *mut u64,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, keys, values, place) = unsafe {
            (
                Out::optional(version, "version")?,
                texts(keys, count, "keys")?,
                optional_texts(values, count, "values")?,
                Place::new(node, field)?,
            )
        };
        out.put(place.set(changes_of(&keys, &values)?)?);
        Ok(())
    })
}

/// Removes a key of metadata in one commit.
///
/// @param node an array or a group that is open for writing.
/// @param field as in `gridstone_metadata_get`.
/// @param key the key.
/// @param version where the version goes, or NULL; the node shows it from now on.
///
/// `GRIDSTONE_ERROR_NOT_FOUND`: there is no such key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_metadata_remove(
    node: gridstone_handle,
    field: *const c_char,
    key: *const c_char,
    version: *mut u64,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, key, place) =
            unsafe { (Out::optional(version, "version")?, text(key, "key")?, Place::new(node, field)?) };
        place.get(key)?.ok_or_else(|| missing_key(key))?;
        out.put(place.set(vec![(key.to_owned(), None)])?);
        Ok(())
    })
}
