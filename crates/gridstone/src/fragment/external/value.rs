//! How the values of a field lie in the records of a foreign page, and the steps that make the attribute's values of them.
//!
//! A field is written in section 16 as JSON; a field or a step that a reader does not know is refused, since values would be
//! wrong without it. The steps follow the conventions of NetCDF ("CF"), as xarray applies them.

use crate::base::{Error, Result};
use crate::schema::{Datatype, Primitive};
use serde::{Deserialize, Serialize};

/// One attribute of an external fragment: where its values lie, and how they are decoded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForeignField {
    /// The permanent number of the attribute.
    pub attr: u32,
    /// The list of pages that hold its values: members of one record have one list.
    pub list: u32,
    /// Bytes from the start of a record to the value.
    pub offset: u32,
    /// Bytes from a record to the next.
    pub step: u32,
    /// The value in the record.
    pub value: StoredValue,
    /// What is done to the values, first to last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<DecodingStep>,
}

/// What a stored value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueKind {
    /// Signed integers of 1, 2, 4, 8 bytes.
    Int,
    /// Unsigned integers of 1, 2, 4, 8 bytes.
    UInt,
    /// IEEE 754 floats of 2, 4, 8 bytes.
    Float,
    /// Bytes that are not looked into.
    Bytes,
}

/// A value as a record stores it: `count` numbers of `width` bytes, side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredValue {
    /// What its numbers are.
    pub kind: ValueKind,
    /// Bytes of one.
    pub width: u32,
    /// How many of them a value is: 2 of a complex number, more of a vector.
    pub count: u32,
    /// Whether the most significant byte comes first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub big_endian: bool,
}

/// A step of decoding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case", tag = "step")]
pub enum DecodingStep {
    /// Values equal to one of `values` are null. Each is a number as stored, its bits in hexadecimal digits. A NaN stands for all NaN.
    Null {
        /// The bits.
        values: Vec<String>,
    },
    /// `x * factor + add` as floats of `width` bytes, each operation rounded.
    Scale {
        /// The factor.
        factor: Option<FloatBits>,
        /// What is added.
        add: Option<FloatBits>,
        /// Bytes of the result: 4 or 8.
        width: u32,
    },
    /// `x * factor + add` in whole numbers: steps of a time since 1970. A result beyond 64 bits is an error.
    Time {
        /// Steps of the attribute's time in a stored unit.
        factor: i64,
        /// Steps from 1970 to the stored zero.
        add: i64,
    },
    /// The place of the value in `values`: of categories. A value that is not there is an error.
    Codes {
        /// The stored values by code.
        values: Vec<i64>,
    },
    /// Text of fixed length: what pads it is cut off.
    Text {
        /// What ends it.
        padding: TextPadding,
    },
    /// Text of numbers, each a code point of Unicode: zeros at the end are no text.
    CodePoints,
    /// 1 for each value that is not 0.
    Truth,
}

/// What follows a text that is shorter than its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextPadding {
    /// The text ends at the first zero byte.
    Terminated,
    /// Zero bytes at the end are no text.
    Zeros,
    /// Spaces at the end are no text.
    Spaces,
}

/// A float and the width of its computation, bit for bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FloatBits {
    /// The bits of the float64.
    pub bits: u64,
    /// Bytes of the floats that are computed with: 4 or 8.
    pub width: u32,
}

impl FloatBits {
    /// This number, computed with in float64 or in float32.
    pub fn new(value: f64, width: u32) -> Self {
        Self { bits: value.to_bits(), width }
    }

    pub(super) fn value(self) -> f64 {
        f64::from_bits(self.bits)
    }
}

impl StoredValue {
    /// Bytes of a value.
    pub fn size(self) -> usize {
        self.width as usize * self.count as usize
    }

    fn is_possible(self) -> bool {
        let width = match self.kind {
            ValueKind::Int | ValueKind::UInt => matches!(self.width, 1 | 2 | 4 | 8),
            ValueKind::Float => matches!(self.width, 2 | 4 | 8),
            ValueKind::Bytes => self.width > 0 && !self.big_endian,
        };
        width && self.count > 0 && self.size() <= crate::base::limits::CELL_BYTES_MAX
    }

    /// The type of the values as they are stored, without any step.
    fn primitive(self) -> Option<Primitive> {
        Some(match (self.kind, self.width) {
            (ValueKind::Int, 1) => Primitive::Int8,
            (ValueKind::Int, 2) => Primitive::Int16,
            (ValueKind::Int, 4) => Primitive::Int32,
            (ValueKind::Int, 8) => Primitive::Int64,
            (ValueKind::UInt, 1) => Primitive::UInt8,
            (ValueKind::UInt, 2) => Primitive::UInt16,
            (ValueKind::UInt, 4) => Primitive::UInt32,
            (ValueKind::UInt, 8) => Primitive::UInt64,
            (ValueKind::Float, 2) => Primitive::Float16,
            (ValueKind::Float, 4) => Primitive::Float32,
            (ValueKind::Float, 8) => Primitive::Float64,
            _ => return None,
        })
    }
}

impl ForeignField {
    /// Checks that its values become those of an attribute of `datatype`, null only if that may be.
    ///
    /// # Errors
    /// Input, in the words of the caller's file.
    pub fn check(&self, datatype: Datatype, nullable: bool) -> Result<()> {
        let size = self.value.size() as u64;
        if !self.value.is_possible() || u64::from(self.offset) + size > u64::from(self.step) {
            return Err(Error::input("a foreign value that does not fit its record"));
        }
        let nulls = self.steps.iter().any(|step| matches!(step, DecodingStep::Null { .. }));
        if nulls && !nullable {
            return Err(Error::input("a foreign value may be null, and its attribute may not"));
        }
        if self.leads_to(datatype) {
            return Ok(());
        }
        Err(Error::input(format!("the values of the file are not {datatype} after they are decoded")))
    }

    /// Whether the values after all steps are of `datatype`.
    fn leads_to(&self, datatype: Datatype) -> bool {
        let mut steps = self.steps.iter().filter(|step| !matches!(step, DecodingStep::Null { .. }));
        let step = steps.next();
        if steps.next().is_some() {
            return false;
        }
        let whole = matches!(self.value.kind, ValueKind::Int | ValueKind::UInt) && self.value.count == 1;
        let number = self.value.count == 1 && self.value.kind != ValueKind::Bytes;
        match (step, datatype) {
            (None, datatype) => self.is_stored(datatype),
            (Some(DecodingStep::Scale { width, .. }), Datatype::Float32) => number && *width == 4,
            (Some(DecodingStep::Scale { width, .. }), Datatype::Float64) => number && *width == 8,
            (Some(DecodingStep::Time { .. }), Datatype::Datetime(_) | Datatype::Timedelta(_)) => number,
            (Some(DecodingStep::Codes { .. }), code) => {
                whole && code.width().is_some_and(|w| matches!(w, 1 | 2 | 4 | 8))
            }
            (Some(DecodingStep::Text { .. }), Datatype::String | Datatype::Bytes) => {
                self.value.kind == ValueKind::Bytes
            }
            (Some(DecodingStep::CodePoints), Datatype::String) => {
                (self.value.kind, self.value.width) == (ValueKind::UInt, 4)
            }
            (Some(DecodingStep::Truth), Datatype::Bool) => whole,
            _ => false,
        }
    }

    /// Whether values of `datatype` are stored as these are.
    fn is_stored(&self, datatype: Datatype) -> bool {
        let StoredValue { kind, width, count, .. } = self.value;
        let Some(primitive) = self.value.primitive() else {
            return datatype == Datatype::FixedBytes(width * count);
        };
        match datatype {
            Datatype::Complex64 => (kind, width, count) == (ValueKind::Float, 4, 2),
            Datatype::Complex128 => (kind, width, count) == (ValueKind::Float, 8, 2),
            Datatype::Datetime(_) | Datatype::Timedelta(_) => (kind, width, count) == (ValueKind::Int, 8, 1),
            Datatype::Vector(of, _) => of == primitive && datatype.width() == Some(self.value.size()),
            _ => count == 1 && datatype == primitive.datatype(),
        }
    }
}
