//! The JSON of Zarr: metadata files, with the numbers that JSON does not have.
//!
//! Writers in Python write `NaN` and `Infinity` without quotes. A reader of JSON rounds long numbers. So such numbers become texts with
//! [`MARK`] in front before the JSON is read, and are numbers again afterwards.

use crate::error::{Error, Result};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The longest file of metadata: that of a root may hold those of all arrays.
const BYTES_MAX: u64 = 64 << 20;
/// What stands in front of a number that is kept as its text; a private character of Unicode.
const MARK: char = '\u{f8f0}';
/// The most digits of a number that is read as one.
const DIGITS_MAX: usize = 18;

/// The object in the file at `path`; `None` if there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<Map<String, Value>>> {
    let failed = |e| Error::io(&format!("cannot read {}", path.display()), e);
    // A pipe would be waited for when it is opened.
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(Error::damaged(format!("{} is no file", path.display()))),
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) => return Err(failed(e)),
    }
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(Error::limit(format!("{} has more than {BYTES_MAX} bytes", path.display())));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    parse(&bytes).map_err(|reason| Error::damaged(format!("its {name} is no JSON object: {reason}"))).map(Some)
}

/// The object in `bytes`, or why there is none.
pub(super) fn parse(bytes: &[u8]) -> std::result::Result<Map<String, Value>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is no UTF-8".to_owned())?;
    if text.contains(MARK) || text.to_ascii_lowercase().contains("\\uf8f0") {
        return Err("it has the character U+F8F0, which is of private use".to_owned());
    }
    match serde_json::from_str(&marked(text)) {
        Ok(Value::Object(found)) => Ok(found),
        Ok(_) => Err("it holds another value".to_owned()),
        Err(e) => Err(e.to_string()),
    }
}

/// The text with a mark before each number that is kept as its text.
fn marked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '"' => quoted(rest),
            '-' | '+' | '.' | '0'..='9' | 'N' | 'I' => {
                rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(rest.len())
            }
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(len);
        if is_kept(token) {
            out.extend(['"', MARK]);
            out.push_str(token);
            out.push('"');
        } else {
            out.push_str(token);
        }
        rest = after;
    }
    out
}

/// Bytes of the text in quotes that `rest` begins with.
fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn is_kept(token: &str) -> bool {
    if matches!(token, "NaN" | "Infinity" | "-Infinity") {
        return true;
    }
    let begins = token.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let is_long = token.len() > DIGITS_MAX || token.contains(['.', 'e', 'E']);
    begins && is_long && serde_json::from_str::<serde_json::Number>(token).is_ok()
}

/// The text of a number that was kept as one.
fn kept(value: &Value) -> Option<&str> {
    value.as_str().and_then(|text| text.strip_prefix(MARK))
}

/// A text, which is none of the numbers that were kept as texts.
pub(super) fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.starts_with(MARK))
}

/// A whole number; one such as `1.0` too.
pub(super) fn whole(value: &Value) -> Option<i128> {
    if let Value::Number(number) = value {
        return number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
    }
    let digits = kept(value)?;
    let float = || digits.parse::<f64>().ok().filter(|x| x.fract() == 0.0 && x.abs() < 2f64.powi(53));
    digits.parse().ok().or_else(|| float().map(|x| x as i128))
}

/// A whole number from 0 on.
pub(super) fn length(value: &Value) -> Option<u64> {
    whole(value).and_then(|number| u64::try_from(number).ok())
}

/// A number, or the name of one that JSON does not have.
pub(super) fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.to_string().parse().ok(),
        Value::String(text) => match text.strip_prefix(MARK).unwrap_or(text) {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            digits => kept(value).and_then(|_| digits.parse().ok()),
        },
        _ => None,
    }
}

/// The value as JSON, the numbers as they were written; `NaN` and `Infinity` without quotes, as Python reads them.
pub(super) fn written(value: &Value) -> String {
    let (whole, opening) = (value.to_string(), format!("\"{MARK}"));
    let mut parts = whole.split(&opening);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (number, after) = part.split_once('"').unwrap_or((part, ""));
        out.push_str(number);
        out.push_str(after);
    }
    out
}

/// The list of whole numbers from 0 on of a key.
pub(super) fn lengths(of: &Map<String, Value>, key: &str) -> Result<Vec<u64>> {
    let found = of.get(key).and_then(Value::as_array);
    let lengths = found.and_then(|list| list.iter().map(length).collect::<Option<Vec<u64>>>());
    lengths.ok_or_else(|| {
        Error::damaged(format!("its {key} is no list of whole numbers from 0 on: {}", shown(of.get(key))))
    })
}

/// A value for people, not too long.
pub(super) fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "it is missing".to_owned() };
    let whole = written(value);
    match whole.char_indices().nth(80) {
        None => whole,
        Some((end, _)) => format!("{}…", whole.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        parse(format!("{{\"v\": {text}}}").as_bytes()).unwrap().remove("v").unwrap()
    }

    #[test]
    fn numbers_keep_their_digits() {
        assert_eq!(float(&value("0.1")).unwrap().to_bits(), 0.1f64.to_bits());
        assert_eq!(float(&value("9007199254740993")), Some(9007199254740992.0));
        for digits in ["5e-324", "1.7976931348623157e308", "0.30000000000000004", "2.2250738585072011e-308"] {
            assert_eq!(float(&value(digits)).unwrap().to_bits(), digits.parse::<f64>().unwrap().to_bits());
        }
        assert!(float(&value("NaN")).unwrap().is_nan() && float(&value("\"NaN\"")).unwrap().is_nan());
        assert_eq!(
            (float(&value("-Infinity")), float(&value("\"Infinity\""))),
            (Some(f64::NEG_INFINITY), Some(f64::INFINITY))
        );
        assert_eq!(whole(&value("18446744073709551615")), Some(i128::from(u64::MAX)));
        assert_eq!(whole(&value("-9223372036854775808")), Some(i128::from(i64::MIN)));
        assert_eq!((whole(&value("3.0")), whole(&value("3.5")), whole(&value("\"3\""))), (Some(3), None, None));
        assert_eq!((length(&value("-1")), length(&value("1e3"))), (None, Some(1_000)));
    }

    #[test]
    fn values_are_written_as_they_were_read() {
        for text in [
            "[1,2.50,NaN,-Infinity,\"a \\\"NaN\\\" 1.5\",{\"x\":null}]",
            "0.1",
            "123456789012345678901234567890",
            "\"1.5\"",
        ] {
            assert_eq!(written(&value(text)), text);
        }
        assert_eq!((text(&value("1.5")), text(&value("\"1.5\""))), (None, Some("1.5")));
    }

    #[test]
    fn what_is_no_json_is_an_error() {
        for text in [
            "",
            "[]",
            "{\"a\": NaNa}",
            "{\"a\": 01.5}",
            "{\"a\": 1.}",
            "{\"a\": +1}",
            "{\"a\": \"",
            "{\"a\": -}",
            "{\"a\": 1e}",
            "{\"a\": \"\\uF8f0x\"}",
            "{\"\u{f8f0}\": 1}",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse(&[b'{', b'"', 0xff, b'"', b':', b'1', b'}']).is_err());
        assert!(parse("{\"a\":".repeat(100_000).as_bytes()).unwrap_err().contains("recursion"));
    }
}
