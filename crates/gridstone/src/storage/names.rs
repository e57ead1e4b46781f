//! Which names objects may have.

use super::{PutOutcome, Storage};
use crate::base::{Error, Result};

/// The folder of log records.
pub const LOG: &str = "_log";
/// The folder of fragments.
pub const DATA: &str = "_data";
/// The folder of manifest pages.
pub const MANIFEST: &str = "_manifest";
/// The folder of living readers.
pub const LEASE: &str = "_lease";
/// The folder of damaged objects that a repair has put something sound in the place of.
pub(super) const DAMAGED: &str = "_damaged";
/// How many damaged objects of one name are kept.
const ASIDE_MAX: u32 = 10_000;
/// What the log is called while the store is deleted.
pub(super) const REMOVED: &str = "_removed";

/// The name if it stays inside the store and cannot be taken for a temporary file.
pub(super) fn checked(name: &str) -> Result<&str> {
    let bad_part = |part: &str| part.is_empty() || part.starts_with('.');
    if name.contains(['\0', '\\']) || name.split('/').any(bad_part) {
        return Err(Error::input(format!(
            "{name:?} cannot name an object: give a relative path whose parts are not empty, hold no NUL and no \
             backslash, and do not start with a dot"
        )));
    }
    Ok(name)
}

/// Copies an object to a free name in [`DAMAGED`].
pub(super) fn copy_aside<S: Storage + ?Sized>(storage: &S, name: &str) -> Result<String> {
    let bytes = storage.read_all(name)?;
    let file = name.replace('/', "-");
    for number in 0..ASIDE_MAX {
        let aside = format!("{DAMAGED}/{}-{number}", file.trim_start_matches('_'));
        if storage.put_if_absent(&aside, &bytes)? == PutOutcome::Created {
            return Ok(aside);
        }
    }
    Err(Error::storage(format!("{DAMAGED} holds {ASIDE_MAX} copies of {name} already; look at them and remove some")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    #[test]
    fn a_name_cannot_leave_the_store() {
        let outside =
            ["", "/", "/etc/passwd", "..", "_log/../x", "_log//1", "_log/", ".tmp", "_log/.tmp-1", "a\0", "a\\b"];
        for name in outside {
            assert_eq!(checked(name).unwrap_err().kind(), ErrorKind::Input, "{name:?}");
        }
        for name in ["_log", "_log/00000000000000000001", "_data/ab.frag", "ü/a b"] {
            assert_eq!(checked(name).unwrap(), name);
        }
    }
}
