//! Which names objects may have.

use super::{FLOOR, LATEST, PutOutcome, Storage};
use crate::base::{Error, Result, limits};

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
/// A hint: a number, with room for spaces.
const HINT_BYTES_MAX: u64 = 32;
/// A floor and a lease: a line of a few numbers, with room for later fields. Also what surrounds the line of a manifest root.
const LINE_BYTES_MAX: u64 = 64 * 1024;
/// All bodies of a record. No writer here makes one of more than some tens of megabytes.
const BODIES_BYTES_MAX: u64 = 1 << 30;
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

/// Bytes that an object of this name has at most as it is stored, sealed or not: who reads it whole refuses a longer one before taking
/// memory for it.
pub(super) fn bytes_max(name: &str) -> u64 {
    let plain = match name {
        LATEST => HINT_BYTES_MAX,
        FLOOR => LINE_BYTES_MAX,
        _ => match name.split_once('/') {
            Some((LEASE, _)) => LINE_BYTES_MAX,
            Some((LOG, _)) => limits::RECORD_LINE_BYTES_MAX as u64 + BODIES_BYTES_MAX,
            Some((MANIFEST, _)) => limits::RECORD_LINE_BYTES_MAX as u64 + LINE_BYTES_MAX,
            _ => return u64::MAX,
        },
    };
    // A sealed object has a header, and a tag for each segment of 4 KiB or more.
    plain + 128 + plain / 4_096 * 16
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
    fn each_kind_of_object_has_a_length_at_most() {
        for (name, least, most) in [
            (LATEST, 32 + 88, 1_000),
            (FLOOR, 64 << 10, 66 << 10),
            ("_lease/a", 64 << 10, 66 << 10),
            ("_log/00000000000000000001", 256 << 20, 2 << 30),
            ("_manifest/a", 256 << 20, 258 << 20),
            ("_data/a.frag", u64::MAX, u64::MAX),
            ("_damaged/log-1-0", u64::MAX, u64::MAX),
        ] {
            assert!((least..=most).contains(&bytes_max(name)), "{name}: {}", bytes_max(name));
        }
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
