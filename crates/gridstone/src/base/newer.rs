//! Distinguishes data of a newer release from damaged data.
//!
//! An unknown field, operation or kind under a matching checksum is no damage: a later release wrote it. Text is parsed
//! by its types, which costs nothing extra. Only if that fails is it parsed once more, with errors that separate
//! unknown names from other errors.

use super::Error;
use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde_json::Value;
use std::fmt;

/// The Unsupported error of `what`, which has `unknown` under a matching checksum.
pub fn newer(what: impl fmt::Display, unknown: impl fmt::Display) -> Error {
    Error::unsupported(format!(
        "{what} was written by a newer release of Gridstone: it holds {unknown}, which this one does not know; use a newer Gridstone"
    ))
}

/// The first name in `json` that the type `T` does not know, quoted; `None` if another error comes first.
pub fn unknown_name<T: DeserializeOwned>(json: &str) -> Option<String> {
    let value: Value = serde_json::from_str(json).ok()?;
    match T::deserialize(Looked(&value)) {
        Err(Cause::Unknown(name)) => Some(format!("{name:?}")),
        _ => None,
    }
}

/// Why a value does not have a type.
#[derive(Debug)]
enum Cause {
    /// It has a field or variant that the type does not know.
    Unknown(String),
    /// Anything else.
    Other,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Cause {}

impl serde::de::Error for Cause {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::Other
    }

    fn unknown_field(field: &str, _: &'static [&'static str]) -> Self {
        Self::Unknown(field.to_owned())
    }

    fn unknown_variant(variant: &str, _: &'static [&'static str]) -> Self {
        Self::Unknown(variant.to_owned())
    }
}

/// A value whose errors are [`Cause`]s. The field names of a struct are checked before the fields.
struct Looked<'a>(&'a Value);

type Fields<'a> = MapDeserializer<'a, std::vec::IntoIter<(&'a str, Looked<'a>)>, Cause>;

impl<'a> Looked<'a> {
    fn fields(object: &'a serde_json::Map<String, Value>) -> Fields<'a> {
        let fields: Vec<_> = object.iter().map(|(name, value)| (name.as_str(), Looked(value))).collect();
        MapDeserializer::new(fields.into_iter())
    }
}

impl<'a> IntoDeserializer<'a, Cause> for Looked<'a> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Looked<'de> {
    type Error = Cause;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Cause> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(value), ..) => visitor.visit_u64(value),
                (_, Some(value), _) => visitor.visit_i64(value),
                (.., Some(value)) => visitor.visit_f64(value),
                _ => Err(Cause::Other),
            },
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.iter().map(Looked))),
            Value::Object(object) => visitor.visit_map(Self::fields(object)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Cause> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Cause> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Cause> {
        let names = self.0.as_object().into_iter().flat_map(serde_json::Map::keys);
        match names.into_iter().find(|name| !fields.contains(&name.as_str())) {
            Some(name) => Err(Cause::unknown_field(name, fields)),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Cause> {
        match self.0 {
            Value::String(name) => visitor.visit_enum(name.as_str().into_deserializer()),
            Value::Object(object) => visitor.visit_enum(MapAccessDeserializer::new(Self::fields(object))),
            _ => Err(Cause::Other),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;
    use serde::Deserialize;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only whether it can be read is asked")]
    struct Outer {
        count: u8,
        inner: Option<Inner>,
        #[serde(default)]
        ops: Vec<Op>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case", deny_unknown_fields)]
    #[expect(dead_code, reason = "only whether it can be read is asked")]
    enum Inner {
        Here { place: (u8, u8) },
        Nowhere,
    }

    #[derive(Deserialize)]
    #[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
    #[expect(dead_code, reason = "only whether it can be read is asked")]
    enum Op {
        Add { inners: Vec<Inner> },
    }

    #[test]
    fn what_is_unknown_is_told_from_what_is_wrong() {
        let unknown = |json: &str| unknown_name::<Outer>(json);
        for (json, name) in [
            (r#"{"count":1,"inner":null,"later":[1,{"a":1.5}]}"#, "\"later\""),
            (r#"{"count":"so many","later":1}"#, "\"later\""),
            (r#"{"count":1,"inner":"elsewhere"}"#, "\"elsewhere\""),
            (r#"{"count":1,"inner":{"here":{"place":[1,2],"depth":-3}}}"#, "\"depth\""),
            (r#"{"count":1,"inner":{"there":{}}}"#, "\"there\""),
            (r#"{"count":1,"ops":[{"op":"add","inners":["nowhere"]},{"op":"mend"}]}"#, "\"mend\""),
            (r#"{"count":1,"ops":[{"op":"add","inners":[],"by":"me"}]}"#, "\"by\""),
            (r#"{"count":1,"ops":[{"op":"add","inners":[{"here":{"place":[1,2],"on":true}}]}]}"#, "\"on\""),
            ("{\"count\":1,\"a\\u001bb\\u202e\":1}", "\"a\\u{1b}b\\u{202e}\""),
        ] {
            assert_eq!(unknown(json).as_deref(), Some(name), "{json}");
        }
        for json in [
            r#"{"count":1,"inner":{"here":{"place":[1,2]}},"ops":[{"op":"add","inners":["nowhere"]}]}"#,
            "{}",
            r#"{"count":256}"#,
            r#"{"count":1,"inner":7}"#,
            r#"{"count":1,"ops":[{"inners":[]}]}"#,
            "[",
        ] {
            assert_eq!(unknown(json), None, "{json}");
        }
        let error = newer("version 3", "\"later\"");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains("newer release") && error.message().contains("\"later\""), "{error}");
    }
}
