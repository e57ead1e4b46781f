//! Paths of nodes: "/" or "/name/name…".
//!
//! A name has 1 to 255 bytes of UTF-8, is neither "." nor "..", and holds neither "/" nor NUL. So a path can be shown,
//! typed and put into a URI without an escape syntax. A new name holds no control characters either.

use crate::base::{Error, PRINTABLE, Result, is_unprintable, limits};

/// The path of the node at the top.
pub(super) const ROOT: &str = "/";

/// An Input error unless `path` is the path of a node.
pub(super) fn check(path: &str) -> Result<()> {
    let wrong = |why: &str| {
        Err(Error::input(format!(
            "{path:?} is no path of an array or group: {why}; an example is \"/city/temperature\""
        )))
    };
    let Some(rest) = path.strip_prefix('/') else { return wrong("it does not start with \"/\"") };
    if rest.is_empty() {
        return Ok(());
    }
    for name in rest.split('/') {
        match name {
            "" => return wrong("a name is empty"),
            "." | ".." => return wrong("\".\" and \"..\" are no names"),
            n if n.contains('\0') => return wrong("a name holds a NUL byte"),
            n if n.len() > limits::NAME_BYTES_MAX => return wrong("a name has more than 255 bytes"),
            _ => {}
        }
    }
    Ok(())
}

/// An Input error if the last name of `path`, that of a new node, holds characters that act on a terminal. Existing
/// names may.
pub(super) fn check_new(path: &str) -> Result<()> {
    if name(path).contains(is_unprintable) {
        return Err(Error::input(format!("{path:?} cannot be the path of a new array or group: {PRINTABLE}")));
    }
    Ok(())
}

/// The path of the node above `path`; `None` for the root.
pub(super) fn parent(path: &str) -> Option<&str> {
    match path.rsplit_once('/') {
        Some(("", "")) | None => None,
        Some(("", _)) => Some(ROOT),
        Some((parent, _)) => Some(parent),
    }
}

/// The path of the node called `name` in the group at `path`.
pub(super) fn below(path: &str, name: &str) -> String {
    format!("{}/{name}", path.trim_end_matches('/'))
}

/// The last name of `path`; empty for the root.
pub(super) fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// The names from the root down; none for the root itself.
pub(super) fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty())
}

/// What the names of hidden arrays begin with.
pub(super) const MARK: char = '@';

/// An Input error unless a hidden array may have this name.
pub(super) fn check_hidden(name: &str) -> Result<()> {
    let fits = name.starts_with(MARK) && name.len() <= limits::NAME_BYTES_MAX && !name.contains(['/', '\0']);
    if fits {
        return Ok(());
    }
    Err(Error::input(format!(
        "{name:?} cannot name a hidden array: it begins with {MARK:?} and has up to 255 bytes, no \"/\""
    )))
}

/// The same of a new name, which holds nothing that acts on a terminal.
pub(super) fn check_new_hidden(name: &str) -> Result<()> {
    check_hidden(name)?;
    match name.contains(is_unprintable) {
        true => Err(Error::input(format!("{name:?} cannot name a new hidden array: {PRINTABLE}"))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_checked_and_taken_apart() {
        for good in ["/", "/a", "/a/b c/ä", "/a.b/..c"] {
            check(good).unwrap();
        }
        let long = format!("/{}", "x".repeat(256));
        for bad in ["", "a", "//", "/a/", "/a//b", "/./a", "/a/..", "/a\0b", long.as_str()] {
            check(bad).unwrap_err();
        }
        check_new("/a\u{1b}/b").unwrap();
        for bad in ["/a\u{1b}[2J", "/a\n", "/a/\u{85}", "/\u{202e}a"] {
            check(bad).unwrap();
            let error = check_new(bad).unwrap_err();
            assert!(error.message().contains("\\") && !error.message().contains(is_unprintable), "{error}");
        }
        check_new("/a/b c/\u{e4}").unwrap();
        assert_eq!([parent("/"), parent("/a"), parent("/a/b")], [None, Some("/"), Some("/a")]);
        assert_eq!([name("/"), name("/a"), name("/a/b")], ["", "a", "b"]);
        assert_eq!(names("/a/b").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(names("/").count(), 0);
    }
}
