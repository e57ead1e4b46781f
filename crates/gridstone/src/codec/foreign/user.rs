//! User-defined foreign filters: `id` or `id:PARAMETERS`, with the id of a filter that the program has registered
//! ([`crate::codec::register`]). By custom `hdf5.32013` is HDF5's filter of that number, and `numcodecs.zfpy` the codec
//! of numcodecs with that name.
//!
//! The parameters are a text that only the filter reads. In the text of a pipeline every byte of its UTF-8 that is not
//! printable ASCII, and each space, comma and percent sign, is written as `%` and two hexadecimal digits:
//! `hdf5.32013:1%2C2` has the parameters `1,2`. Readers take digits in upper and lower case; the canonical text has upper
//! case, and escapes nothing else.

use super::filter::ForeignFilter;
use crate::base::{Error, Result};
use crate::codec::filter::front;
use crate::codec::user::{self, encoded_len_max, is_id};

/// The most bytes of parameters.
const PARAMETER_BYTES_MAX: usize = 64 << 10;

/// A user-defined foreign filter in a pipeline.
#[derive(Debug, Clone)]
pub(super) struct Named {
    id: String,
    parameters: Option<String>,
}

impl Named {
    /// The filter `id` with the escaped `parameters`.
    ///
    /// Errors: Unsupported if `id` is none, Schema if the parameters are not escaped as above, or too long.
    pub(super) fn parse(id: &str, parameters: Option<&str>) -> Result<Self> {
        if !is_id(id) {
            return Err(Error::unsupported(format!(
                "filter {id:?} is not known; the id of a user-defined one has letters, digits, _ and - in parts separated by dots"
            )));
        }
        let parameters = parameters.map(|text| unescaped(text).ok_or_else(|| badly_escaped(text))).transpose()?;
        check_len(parameters.as_deref())?;
        Ok(Self { id: id.to_owned(), parameters })
    }
}

impl ForeignFilter for Named {
    fn name(&self) -> String {
        let parameters = self.parameters.as_ref().map(|text| format!(":{}", escaped(text)));
        format!("{}{}", self.id, parameters.unwrap_or_default())
    }

    fn check_available(&self) -> Result<()> {
        user::registered_filter(&self.id).map(drop)
    }

    fn is_user_defined(&self) -> bool {
        true
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        encoded_len_max(len)
    }

    fn decode(&self, input: &[u8], out: &mut [u8]) -> Result<usize> {
        let parameters = self.parameters.as_deref().unwrap_or_default();
        let made = user::registered_filter(&self.id)?.decode_foreign(input, parameters, out.len());
        let made = made.map_err(|e| e.context(format!("filter {:?}", self.id)))?;
        front(&self.id, out, made.len())?.copy_from_slice(&made);
        Ok(made.len())
    }
}

/// The text of the filter `id` with `parameters`, which are left out if there are none.
pub(super) fn name(id: &str, parameters: &str) -> Result<String> {
    if !is_id(id) {
        return Err(Error::schema(format!(
            "a user-defined filter has a name with a dot, such as hdf5.32013; found {id:?}"
        )));
    }
    check_len(Some(parameters))?;
    let parameters = (!parameters.is_empty()).then(|| parameters.to_owned());
    Ok(Named { id: id.to_owned(), parameters }.name())
}

fn check_len(parameters: Option<&str>) -> Result<()> {
    let len = parameters.unwrap_or_default().len();
    if len <= PARAMETER_BYTES_MAX {
        return Ok(());
    }
    Err(Error::schema(format!(
        "the parameters of a filter take {len} bytes, at most {PARAMETER_BYTES_MAX} are allowed"
    )))
}

fn badly_escaped(text: &str) -> Error {
    let shown: String = text.chars().take(80).collect();
    Error::schema(format!(
        "the parameters of a user-defined filter are printable ASCII, with %2C for a comma and %25 for %; found {shown:?}"
    ))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b',' | b'%')
}

fn escaped(text: &str) -> String {
    let escape = |byte: u8| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

/// Nothing if `text` is not escaped, or is of bytes that are no UTF-8.
fn unescaped(text: &str) -> Option<String> {
    let (mut bytes, mut found) = (text.bytes(), Vec::with_capacity(text.len()));
    while let Some(byte) = bytes.next() {
        found.push(match byte {
            b'%' => hexadecimal(bytes.next()?)? << 4 | hexadecimal(bytes.next()?)?,
            _ if is_plain(byte) => byte,
            _ => return None,
        });
    }
    String::from_utf8(found).ok()
}

fn hexadecimal(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::super::ForeignPipeline;
    use super::*;
    use crate::base::ErrorKind;
    use crate::codec::{UserFilter, register};
    use proptest::prelude::*;
    use std::sync::Arc;

    /// Repeats its input as often as its parameters say.
    struct Repeats;

    impl UserFilter for Repeats {
        fn encode(&self, input: &[u8], _width: usize) -> Result<Vec<u8>> {
            Ok(input.to_vec())
        }

        fn decode(&self, input: &[u8], width: usize, _len_max: usize) -> Result<Vec<u8>> {
            assert_eq!(width, 1);
            Ok(input.to_vec())
        }

        fn decode_foreign(&self, input: &[u8], parameters: &str, _len_max: usize) -> Result<Vec<u8>> {
            let times = parameters.split(',').map(|part| part.parse::<usize>().unwrap_or(0)).sum();
            Ok(input.repeat(times))
        }
    }

    /// Has no way to take parameters.
    struct Copies;

    impl UserFilter for Copies {
        fn encode(&self, input: &[u8], width: usize) -> Result<Vec<u8>> {
            Repeats.encode(input, width)
        }

        fn decode(&self, input: &[u8], width: usize, len_max: usize) -> Result<Vec<u8>> {
            Repeats.decode(input, width, len_max)
        }
    }

    #[test]
    fn parameters_reach_the_filter() {
        register("foreign.repeats", Arc::new(Repeats), true).unwrap();
        register("foreign.copies", Arc::new(Copies), true).unwrap();
        let name = ForeignPipeline::user_filter("foreign.repeats", "1,2").unwrap();
        assert_eq!(name, "foreign.repeats:1%2C2");
        let text = format!("crc32c,foreign.copies:anything,{name}");
        let pipeline = ForeignPipeline::parse(&text).unwrap();
        assert_eq!(pipeline.name(), text);
        pipeline.check_available().unwrap();
        let decoded = ForeignPipeline::parse(&name).unwrap().decode(&[4, 5], 6).unwrap();
        assert_eq!(decoded, [4, 5, 4, 5, 4, 5]);
        for wrong in [0, 5, 7, 1 << 20] {
            let error = ForeignPipeline::parse(&name).unwrap().decode(&[4, 5], wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption);
        }
        assert_eq!(pipeline.without(0b101).decode(&[9, 8], 2).unwrap(), [9, 8]);
        assert_eq!(pipeline.encode(&[1]).unwrap_err().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn one_that_is_missing_is_named() {
        let pipeline = ForeignPipeline::parse("shuffle:4,hdf5.32013:3,crc32c").unwrap();
        for error in [pipeline.check_available().unwrap_err(), pipeline.decode(&[0; 4], 8).unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.message().contains("\"hdf5.32013\""), "{error}");
        }
        assert!(pipeline.without(0b10).check_available().is_ok());
        assert!(pipeline.has_user_filters() && !pipeline.without(0b10).has_user_filters());
    }

    #[test]
    fn bad_names_and_escapes_are_refused() {
        for text in
            ["a.b:%", "a.b:%2", "a.b:%2g", "a.b:%ff", "a.b:x y", "a.b:ä", &format!("a.b:{}", "x".repeat(70_000))]
        {
            assert_eq!(ForeignPipeline::parse(text).unwrap_err().kind(), ErrorKind::Schema, "{text}");
        }
        for text in [".a", "a..b", "hdf5.", "a b.c"] {
            assert_eq!(ForeignPipeline::parse(text).unwrap_err().kind(), ErrorKind::Unsupported, "{text}");
        }
        assert_eq!(ForeignPipeline::user_filter("zfp", "").unwrap_err().kind(), ErrorKind::Schema);
        assert_eq!(ForeignPipeline::user_filter("a.b", "").unwrap(), "a.b");
        assert_eq!(ForeignPipeline::parse("a.b:%2c").unwrap().name(), "a.b:%2C");
    }

    proptest! {
        #[test]
        fn every_text_comes_back(parameters in any::<String>()) {
            let name = ForeignPipeline::user_filter("numcodecs.zfpy", &parameters).unwrap();
            let pipeline = ForeignPipeline::parse(&format!("gzip,{name},lz4")).unwrap();
            prop_assert_eq!(pipeline.name(), format!("gzip,{name},lz4"));
            prop_assert!(name.is_ascii() && !name.contains([',', ' ']));
            prop_assert_eq!(unescaped(&escaped(&parameters)).unwrap(), parameters);
        }
    }
}
