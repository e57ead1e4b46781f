//! Files of other formats: what is recorded of one when it is attached, and what is opened again later.

use std::path::Path;

/// An object that holds foreign bytes, and its state when it was attached. What is `None` was not known then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignObject {
    /// Where it lies. Without a scheme: a path from the folder that the store lies in.
    pub uri: String,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// When it was last changed, in microseconds since 1970, UTC.
    pub time_us: Option<i64>,
    /// The tag that its storage gave this content.
    pub etag: Option<String>,
}

/// Whether a URI has a scheme, such as `s3://`.
pub fn has_scheme(uri: &str) -> bool {
    uri.split_once("://")
        .is_some_and(|(scheme, _)| !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric()))
}

impl ForeignObject {
    /// The same object, whose path counts from `folder` if it has counted from a store's.
    #[must_use]
    pub fn counted_from(mut self, folder: &str) -> Self {
        if !has_scheme(&self.uri) && !Path::new(&self.uri).is_absolute() {
            self.uri = format!("{}/{}", folder.trim_end_matches('/'), self.uri);
        }
        self
    }

    /// What differs in `found`, in words; `None` if it is the object that was attached.
    pub fn difference(&self, found: &Self) -> Option<String> {
        let differs = |known: bool, what: &str, was: String, is: String| {
            known.then(|| format!("its {what} was {was} and is {is}"))
        };
        let (was, is) = (self, found);
        let size = was
            .size
            .zip(is.size)
            .and_then(|(a, b)| differs(a != b, "size", format!("{a} bytes"), format!("{b} bytes")));
        let etag = was.etag.as_ref().zip(is.etag.as_ref());
        let etag = etag.and_then(|(a, b)| differs(a != b, "tag", a.clone(), b.clone()));
        let time = was.time_us.zip(is.time_us).and_then(|(a, b)| differs(a != b, "time of change", stamp(a), stamp(b)));
        size.or(etag).or(time)
    }
}

fn stamp(time_us: i64) -> String {
    format!("{}.{:06} s", time_us.div_euclid(1_000_000), time_us.rem_euclid(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_without_a_root_count_from_a_folder() {
        let from = |uri: &str, folder: &str| {
            ForeignObject { uri: uri.into(), size: Some(1), time_us: None, etag: None }.counted_from(folder).uri
        };
        assert_eq!(from("runs/1.h5", "/data"), "/data/runs/1.h5");
        assert_eq!(from("1.h5", "/"), "/1.h5");
        assert_eq!(from("1.h5", "s3://bucket/runs"), "s3://bucket/runs/1.h5");
        assert_eq!(from("/other/1.h5", "/data"), "/other/1.h5");
        assert_eq!(from("s3://other/1.h5", "/data"), "s3://other/1.h5");
        assert_eq!(from("odd://", "/data"), "odd://");
        assert_eq!(from("a_b://c", "/data"), "/data/a_b://c");
    }

    #[test]
    fn a_change_is_named_and_what_was_not_known_is_none() {
        let was = ForeignObject { uri: "run.h5".into(), size: Some(10), time_us: Some(1_500_000), etag: None };
        assert_eq!(was.difference(&was), None);
        let grown = ForeignObject { size: Some(11), time_us: Some(7), ..was.clone() };
        assert_eq!(was.difference(&grown).unwrap(), "its size was 10 bytes and is 11 bytes");
        let touched = ForeignObject { time_us: Some(-1), ..was.clone() };
        assert_eq!(was.difference(&touched).unwrap(), "its time of change was 1.500000 s and is -1.999999 s");
        let unknown = ForeignObject { size: None, time_us: None, etag: Some("x".into()), ..was.clone() };
        assert_eq!(was.difference(&unknown), None);
    }
}
