//! Labels of a dense dimension: what its positions stand for. The coordinate at the dimension's origin has the first label.
//!
//! ```json
//! {"start": "1850", "step": "10", "dtype": "datetime64[Y]"}
//! {"array": "0123456789abcdef0123456789abcdef"}
//! ```

use super::scalar::{key_text, text_key};
use super::{Datatype, key};
use crate::base::{Error, Id, Result};
use serde::{Deserialize, Serialize};

/// What the positions along a dense dimension stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Labels {
    /// Values at equal steps.
    Steps(Steps),
    /// The values of a hidden array of this array: one dimension, along the axis.
    Array(Id),
}

/// Values at equal steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    datatype: Datatype,
    start: String,
    step: String,
}

impl Steps {
    /// Values of `datatype` from `start` on, each `step` after the one before, as text. A step of a datetime counts its units.
    ///
    /// # Errors
    /// Schema if a value has another type, is not finite or, of the step, 0.
    pub fn new(datatype: Datatype, start: &str, step: &str) -> Result<Self> {
        let wrong = |why: &str| Error::schema(format!("labels from {start:?} in steps of {step:?}: {why}"));
        if !datatype.can_be_dimension(true) {
            return Err(wrong(&format!("values of type {datatype} have no steps; use numbers or times")));
        }
        let read = |text: &str| {
            let found = text_key(datatype, text)?;
            let is_finite = !datatype.is_float() || key::to_float(found).is_finite();
            is_finite.then_some(found).ok_or_else(|| wrong("both must be finite"))
        };
        let (first, step_key) = (read(start)?, read(step)?);
        if step_key == text_key(datatype, "0")? {
            return Err(wrong("all labels would be the same"));
        }
        Ok(Self { datatype, start: key_text(datatype, first), step: key_text(datatype, step_key) })
    }

    /// The type of the labels.
    pub fn datatype(&self) -> Datatype {
        self.datatype
    }

    /// The first label, as text.
    pub fn start(&self) -> &str {
        &self.start
    }

    /// The difference of a label to the one before, as text.
    pub fn step(&self) -> &str {
        &self.step
    }
}

impl Labels {
    /// The hidden array that has them, if one has.
    pub fn array(&self) -> Option<Id> {
        match self {
            Self::Array(id) => Some(*id),
            Self::Steps(_) => None,
        }
    }
}

/// [`Labels`] in the JSON of a schema.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LabelsText {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dtype: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    array: Option<String>,
}

impl LabelsText {
    pub(super) fn of(labels: &Labels) -> Self {
        let (mut start, mut step, mut dtype, mut array) = (None, None, None, None);
        match labels {
            Labels::Array(id) => array = Some(id.to_string()),
            Labels::Steps(steps) => {
                (start, step) = (Some(steps.start.clone()), Some(steps.step.clone()));
                dtype = Some(steps.datatype.to_string());
            }
        }
        Self { start, step, dtype, array }
    }

    pub(super) fn read(&self) -> Result<Labels> {
        match (&self.start, &self.step, &self.dtype, &self.array) {
            (None, None, None, Some(id)) => Ok(Labels::Array(Id::parse(id)?)),
            (Some(start), Some(step), Some(dtype), None) => {
                Steps::new(Datatype::parse(dtype)?, start, step).map(Labels::Steps)
            }
            _ => Err(Error::schema("labels are a start, a step and their dtype, or the id of an array")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_one_spelling_and_are_checked() {
        let steps = Steps::new(Datatype::Float64, "0.50", "-1e-1").unwrap();
        assert_eq!((steps.start(), steps.step(), steps.datatype()), ("0.5", "-0.1", Datatype::Float64));
        for (dtype, start, step, word) in [
            ("int8", "0", "0", "the same"),
            ("int8", "200", "1", "int8"),
            ("float64", "inf", "1", "finite"),
            ("float32", "0", "nan", "no coordinate"),
            ("datetime64[D]", "NaT", "1", "NaT"),
            ("bool", "false", "true", "no steps"),
            ("string", "a", "b", "no steps"),
        ] {
            let error = Steps::new(Datatype::parse(dtype).unwrap(), start, step).unwrap_err();
            assert!(error.message().contains(word), "{dtype} {error}");
        }
    }
}
