//! The one place where errors of the operating system become errors of the engine.

use crate::base::{Error, ErrorKind};
use std::io;

/// The error for `asked` ("cannot write /a/b"), made from the operating system's error.
pub(super) fn os_error(asked: impl std::fmt::Display, error: io::Error) -> Error {
    let (kind, advice) = meaning(error.kind());
    Error::new(kind, format!("{asked}: {error}{advice}")).with_source(error)
}

/// The kind of our error, and advice (empty where the operating system's text suffices).
fn meaning(kind: io::ErrorKind) -> (ErrorKind, &'static str) {
    use io::ErrorKind as Os;
    match kind {
        Os::NotFound => (ErrorKind::NotFound, ""),
        Os::AlreadyExists => (ErrorKind::Exists, ""),
        Os::PermissionDenied => (ErrorKind::Access, "; ask for permission to this path, or use another one"),
        Os::ReadOnlyFilesystem => (ErrorKind::Storage, "; this store can only be read: write to a copy elsewhere"),
        Os::StorageFull => (ErrorKind::Storage, "; free some space and try again, nothing was committed"),
        Os::QuotaExceeded => (ErrorKind::Storage, "; free some of your quota and try again, nothing was committed"),
        Os::NotADirectory => (ErrorKind::Storage, "; a file is where a folder should be: move it, or use another path"),
        Os::InvalidFilename => (ErrorKind::Input, "; use a shorter path"),
        Os::Unsupported => (ErrorKind::Unsupported, "; use another filesystem"),
        Os::StaleNetworkFileHandle | Os::TimedOut => (ErrorKind::Storage, "; check the file server and try again"),
        _ => (ErrorKind::Storage, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_number_has_its_kind_and_advice() {
        let cases = [
            (1, ErrorKind::Access, "permission"),
            (2, ErrorKind::NotFound, "No such file"),
            (5, ErrorKind::Storage, "error"),
            (13, ErrorKind::Access, "permission"),
            (17, ErrorKind::Exists, "exists"),
            (20, ErrorKind::Storage, "folder"),
            (28, ErrorKind::Storage, "free some space"),
            (30, ErrorKind::Storage, "only be read"),
        ];
        for (number, kind, part) in cases {
            let error = os_error("cannot write /a", io::Error::from_raw_os_error(number));
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.message().starts_with("cannot write /a: ") && error.message().contains(part), "{error}");
            assert_eq!(error.os_error(), Some(number));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_quota_is_like_a_full_disk() {
        let error = os_error("cannot write /a", io::Error::from_raw_os_error(122));
        assert_eq!(error.kind(), ErrorKind::Storage);
        assert!(error.message().contains("quota"));
    }
}
