//! Labels of a dense dimension: what its positions stand for. The coordinate at the dimension's origin has the first label.
//!
//! ```json
//! {"start": "1850", "step": "10", "dtype": "datetime64[Y]"}
//! {"array": "0123456789abcdef0123456789abcdef"}
//! {"shared": "0123456789abcdef0123456789abcdef"}
//! ```

use super::scalar::{key_shown, key_text, text_key};
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
    /// The values of an ordinary array of the store, which other arrays may share: one dimension, along the axis. It has its own life: once
    /// it is removed there are no labels.
    Shared(Id),
}

/// Values at equal steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    datatype: Datatype,
    start: String,
    step: String,
}

/// Where labels begin and how far they are apart, with a time as its date. The step of a datetime counts its units.
fn shown_steps(datatype: Datatype, start: &str, step: &str) -> String {
    let first = text_key(datatype, start).map_or_else(|_| start.to_owned(), |key| key_shown(datatype, key));
    let units = match (datatype, step.parse::<i64>()) {
        (Datatype::Datetime(each) | Datatype::Timedelta(each), Ok(count)) => {
            format!("{} {}", i128::from(count) * i128::from(each.count()), each.unit().step())
        }
        _ => step.to_owned(),
    };
    format!("from {first} in steps of {units}")
}

impl Steps {
    /// Values of `datatype` from `start` on, each `step` after the one before, as text. A step of a datetime counts its units.
    ///
    /// # Errors
    /// Schema if a value has another type, is not finite or, of the step, 0.
    pub fn new(datatype: Datatype, start: &str, step: &str) -> Result<Self> {
        let wrong = |why: &str| {
            let shown = shown_steps(datatype, start, step);
            Error::schema(format!("labels {shown}: {why}"))
        };
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

    /// The labels as messages show them: from where on, and in which steps.
    pub fn shown(&self) -> String {
        shown_steps(self.datatype, &self.start, &self.step)
    }

    /// The first label, as text.
    pub fn start(&self) -> &str {
        &self.start
    }

    /// The difference of a label to the one before, as text.
    pub fn step(&self) -> &str {
        &self.step
    }

    /// The ordered keys of the labels of `count` coordinates, of which the first lies `offset` behind the origin. Those of floats are the
    /// start and a multiple of the step, added as 64-bit floats and then rounded to the type.
    ///
    /// # Errors
    /// Schema: the type does not hold all of them.
    pub fn keys(&self, offset: i128, count: u64) -> Result<Vec<u64>> {
        self.held_keys(offset, count)?.into_iter().collect::<Option<_>>().ok_or_else(|| {
            Error::schema(format!("labels {}: {} does not hold all of them", self.shown(), self.datatype))
        })
    }

    /// The same; `None` for those that the type does not hold.
    ///
    /// # Errors
    /// Schema: start or step is no value of the type.
    pub fn held_keys(&self, offset: i128, count: u64) -> Result<Vec<Option<u64>>> {
        let (first, step) = (text_key(self.datatype, &self.start)?, text_key(self.datatype, &self.step)?);
        let is_whole = |key: &u64| key::range_of(self.datatype).contains(*key);
        let float =
            |place: i128| key::of_float(self.datatype, key::to_float(first) + place as f64 * key::to_float(step));
        let (low, by) = (self.integer(&self.start), self.integer(&self.step));
        let integer = |place: i128| key::of_int(self.datatype, low?.checked_add(by?.checked_mul(place)?)?);
        let label = |place: i128| if self.datatype.is_float() { float(place) } else { integer(place) };
        Ok((0..count).map(|n| label(offset + i128::from(n)).filter(is_whole)).collect())
    }

    fn integer(&self, text: &str) -> Option<i128> {
        text.parse().ok()
    }
}

impl Labels {
    /// The hidden array that has them, if one has.
    pub fn array(&self) -> Option<Id> {
        match self {
            Self::Array(id) => Some(*id),
            Self::Steps(_) | Self::Shared(_) => None,
        }
    }

    /// The ordinary array that has them, if one has.
    pub fn shared(&self) -> Option<Id> {
        match self {
            Self::Shared(id) => Some(*id),
            Self::Steps(_) | Self::Array(_) => None,
        }
    }

    /// The same labels with another id of the array that has them, or none if `renamed` gives none.
    #[must_use]
    pub fn renamed(&self, renamed: impl Fn(Id) -> Option<Id>) -> Option<Self> {
        match self {
            Self::Steps(steps) => Some(Self::Steps(steps.clone())),
            Self::Array(id) => renamed(*id).map(Self::Array),
            Self::Shared(id) => renamed(*id).map(Self::Shared),
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shared: Option<String>,
}

impl LabelsText {
    pub(super) fn of(labels: &Labels) -> Self {
        let (mut start, mut step, mut dtype, mut array, mut shared) = (None, None, None, None, None);
        match labels {
            Labels::Array(id) => array = Some(id.to_string()),
            Labels::Shared(id) => shared = Some(id.to_string()),
            Labels::Steps(steps) => {
                (start, step) = (Some(steps.start.clone()), Some(steps.step.clone()));
                dtype = Some(steps.datatype.to_string());
            }
        }
        Self { start, step, dtype, array, shared }
    }

    pub(super) fn read(&self) -> Result<Labels> {
        let held = (&self.array, &self.shared);
        match (&self.start, &self.step, &self.dtype, held) {
            (None, None, None, (Some(id), None)) => Ok(Labels::Array(Id::parse(id)?)),
            (None, None, None, (None, Some(id))) => Ok(Labels::Shared(Id::parse(id)?)),
            (Some(start), Some(step), Some(dtype), (None, None)) => {
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
    fn labels_follow_from_start_and_step_on_both_sides_of_the_origin() {
        let labels = |dtype: &str, start: &str, step: &str, offset: i128| {
            let datatype = Datatype::parse(dtype).unwrap();
            let keys = Steps::new(datatype, start, step).unwrap().keys(offset, 3);
            keys.map(|keys| keys.into_iter().map(|key| key_text(datatype, key)).collect::<Vec<_>>().join(" "))
        };
        for (dtype, start, step, offset, expected) in [
            ("float64", "89.5", "-1", -1, "90.5 89.5 88.5"),
            ("float64", "0", "0.1", 1, "0.1 0.2 0.30000000000000004"),
            ("float32", "0", "0.1", 1, "0.1 0.2 0.3"),
            ("int8", "100", "10", 0, "100 110 120"),
            (
                "uint64",
                "18446744073709551613",
                "1",
                0,
                "18446744073709551613 18446744073709551614 18446744073709551615",
            ),
            ("datetime64[10Y]", "-12", "1", 2, "-10 -9 -8"),
        ] {
            assert_eq!(labels(dtype, start, step, offset).unwrap(), expected, "{dtype}");
        }
        for (dtype, start, step, offset) in [
            ("int8", "100", "10", 1),
            ("uint8", "1", "1", -2),
            ("float32", "3e38", "3e37", 0),
            ("datetime64[s]", "0", "1", 1 << 63),
        ] {
            assert!(labels(dtype, start, step, offset).unwrap_err().message().contains("does not hold"), "{dtype}");
        }
    }

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
