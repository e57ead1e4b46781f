//! Reads the key from the environment.

use crate::base::{Error, KEY_BYTES, Key, Result};
use std::env::VarError;
use std::path::Path;
use zeroize::Zeroizing;

/// The variable that holds a key as text.
pub(super) const KEY_VARIABLE: &str = "GRIDSTONE_KEY";
/// The variable that names a file with a key.
pub(super) const KEY_FILE_VARIABLE: &str = "GRIDSTONE_KEY_FILE";

/// The key in `GRIDSTONE_KEY` (hexadecimal or base64), or in the file that `GRIDSTONE_KEY_FILE` names (such a text, or the 32
/// bytes themselves); `None` if neither is set.
///
/// # Errors
/// Access if one is set but gives no key (also if it is empty: a store is not left unsealed by mistake), or both are
/// set.
pub fn key_from_environment() -> Result<Option<Key>> {
    match (variable(KEY_VARIABLE)?, variable(KEY_FILE_VARIABLE)?) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(Error::access(format!(
            "{KEY_VARIABLE} and {KEY_FILE_VARIABLE} are both set; unset one, so that it is clear which key is meant"
        ))),
        (Some(text), None) => Key::parse(&text).map_err(|e| not_a_key(KEY_VARIABLE, &e)).map(Some),
        (None, Some(path)) => read_key(Path::new(path.as_str())).map(Some),
    }
}

fn variable(name: &str) -> Result<Option<Zeroizing<String>>> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(Zeroizing::new(text))),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(Error::access(format!("{name} is set, but is not UTF-8"))),
    }
}

fn not_a_key(place: &str, error: &Error) -> Error {
    Error::access(format!("{place} is set, but gives no key: {error}; unset it, or set it to a key"))
}

/// The key in the file at `path`.
fn read_key(path: &Path) -> Result<Key> {
    let place = format!("{KEY_FILE_VARIABLE} ({})", path.display());
    let bytes = std::fs::read(path)
        .map_err(|e| Error::access(format!("{place} is set, but the file cannot be read: {e}")).with_source(e))?;
    let bytes = Zeroizing::new(bytes);
    if bytes.len() == KEY_BYTES {
        return Key::from_slice(&bytes);
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| Error::input("the file is neither 32 bytes nor text"));
    text.and_then(Key::parse).map_err(|e| not_a_key(&place, &e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Entropy, ErrorKind};
    use crate::runtime::SystemEntropy;

    #[test]
    fn a_key_file_holds_bytes_or_text() {
        let path = std::env::temp_dir().join(format!("gridstone-key-{}", SystemEntropy.id()));
        let hex = "5a".repeat(32);
        for content in [vec![0x5a; 32], hex.clone().into_bytes(), format!("{hex}\n").into_bytes()] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(read_key(&path).unwrap().bytes(), &[0x5a; 32]);
        }
        for content in [&b""[..], b"no key", &[0xff; 33]] {
            std::fs::write(&path, content).unwrap();
            let error = read_key(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Access);
            assert!(error.message().contains("gridstone-key-"), "{error}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(read_key(&path).unwrap_err().message().contains("cannot be read"));
    }
}
