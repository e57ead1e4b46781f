//! The names that objects may have.

use super::{PutOutcome, Storage};
use crate::base::{Error, Result, limits};
use std::fmt::Display;

/// The folder of log records.
pub const LOG: &str = "_log";
/// The folder of fragments.
pub const DATA: &str = "_data";
/// The folder of manifest pages.
pub const MANIFEST: &str = "_manifest";
/// The folder of leases.
pub const LEASE: &str = "_lease";
/// The folder of damaged objects that a repair has replaced.
pub const DAMAGED: &str = "_damaged";
/// How many damaged objects of one name are kept.
const ASIDE_MAX: u32 = 10_000;
/// The name of the log while the store is being deleted.
pub(super) const REMOVED: &str = "_removed";

/// The floor, a lease: a short line.
const NOTE_BYTES_MAX: u64 = 64 << 10;
/// A manifest root: its line, its checksum and the ends of both lines. A page, of [`limits::PAGE_FRAGMENTS_MAX`] descriptions and lists of
/// [`limits::ATTRIBUTES_MAX`] numbers, is shorter.
const ROOT_BYTES_MAX: u64 = limits::ROOT_LINE_BYTES_MAX as u64 + 18;
/// A record: its line and its bodies.
const RECORD_BYTES_MAX: u64 = (limits::RECORD_LINE_BYTES_MAX + 64 + limits::RECORD_BODIES_BYTES_MAX) as u64;
/// How much longer a sealed object is: its header and first tag, and a tag for each segment.
const SEALED_BYTES: u64 = 128;
const SEALED_SEGMENT_BYTES_MIN: u64 = 4 << 10;
const SEALED_TAG_BYTES: u64 = 16;

/// The name, if it stays inside the store and cannot be taken for a temporary file.
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

/// The largest size of an object of this name: it bounds what a length found in a storage may make a reader allocate.
/// Sealed objects are a little longer than their content; the bound allows for that.
pub(super) fn bytes_max(name: &str) -> u64 {
    let plain = match name.split_once('/') {
        Some((LOG, "latest")) => limits::HINT_BYTES_MAX as u64,
        Some((LOG, "floor")) | Some((LEASE, _)) => NOTE_BYTES_MAX,
        Some((LOG, _)) => RECORD_BYTES_MAX,
        Some((MANIFEST, _)) => ROOT_BYTES_MAX,
        _ => return u64::MAX,
    };
    plain + plain / SEALED_SEGMENT_BYTES_MIN * SEALED_TAG_BYTES + SEALED_BYTES
}

/// A Corruption error if an object is longer than any that the engine writes under its name.
pub(super) fn check_length(object: &dyn Display, len: u64, bytes_max: u64) -> Result<()> {
    if len <= bytes_max {
        return Ok(());
    }
    Err(Error::corruption(format!(
        "{object} has {len} bytes, an object of this name has at most {bytes_max}; the engine has not written it"
    )))
}

/// The names that a copy of a damaged object may have, in the order in which they are tried.
pub(super) fn asides(name: &str) -> impl Iterator<Item = String> {
    let file = name.replace('/', "-");
    (0..ASIDE_MAX).map(move |number| format!("{DAMAGED}/{}-{number}", file.trim_start_matches('_')))
}

/// The error where all of them are taken.
pub(super) fn too_many_asides(name: &str) -> Error {
    Error::storage(format!("{DAMAGED} holds {ASIDE_MAX} copies of {name} already; look at them and remove some"))
}

/// Copies an object to a free name in [`DAMAGED`].
pub(super) fn copy_aside<S: Storage + ?Sized>(storage: &S, name: &str) -> Result<String> {
    let bytes = storage.read_all(name)?;
    for aside in asides(name) {
        if storage.put_if_absent(&aside, &bytes)? != PutOutcome::Exists {
            return Ok(aside);
        }
    }
    Err(too_many_asides(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    #[test]
    fn each_kind_of_object_has_its_largest() {
        let with_seal = |plain: u64, segments: u64| plain + 72 + 16 * segments;
        for (name, plain, slack) in
            [("_log/latest", 256 << 10, 2 << 10), ("_log/floor", 64 << 10, 1 << 10), ("_lease/a", 64 << 10, 1 << 10)]
        {
            assert!((with_seal(plain, plain / 4_096 + 1)..=plain + slack).contains(&bytes_max(name)), "{name}");
        }
        let line = limits::ROOT_LINE_BYTES_MAX as u64;
        assert!((line + 18..line + (line >> 7)).contains(&bytes_max("_manifest/a")));
        assert!((5 << 28..(5 << 28) + (1 << 24)).contains(&bytes_max("_log/00000000000000000007")));
        assert_eq!((bytes_max("_data/a.frag"), bytes_max("_damaged/log-1-0")), (u64::MAX, u64::MAX));
        check_length(&"it", 32, 32).unwrap();
        assert_eq!(check_length(&"it", 33, 32).unwrap_err().kind(), ErrorKind::Corruption);
    }

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
