//! Turns a user's URI into a storage.

use super::{Durability, LocalStorage, MemoryStorage, Storage, StorageOptions};
use crate::base::{Error, Result};
use std::sync::Arc;

const SUPPORTED: &str = "a path, file:///path (or local), mem://name (or memory), s3://bucket/key (or s3a, s3n), gs://bucket/key (gcs) or az://container/key (azure, abfs, abfss)";

/// Opens the storage at `uri`. That is a path, `file:///path` (with `%20` and the like decoded), or `mem://name`, the
/// memory of this process. For object stores it is `s3://bucket/key`, `gs://bucket/key` or `az://container/key`, taken
/// as written, without decoding. The other schemes by which fsspec and obstore know these mean the same. Nothing is
/// opened or created yet. `durability` is for local storage, `options` are for object stores.
///
/// # Errors
/// Input if the URI is empty, malformed or of an unknown scheme, or an option is unknown; Unsupported for object stores
/// in a build without them.
pub fn open_uri(uri: &str, durability: Durability, options: &StorageOptions) -> Result<Arc<dyn Storage>> {
    match uri.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme) => {
            open_scheme(uri, &scheme.to_ascii_lowercase(), rest, durability, options)
        }
        _ => Ok(Arc::new(LocalStorage::new(uri, durability)?)),
    }
}

/// Whether the store at `uri` is reached over a network, where an answer may take long.
pub fn is_remote(uri: &str) -> bool {
    let scheme = uri.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    scheme.is_some_and(|scheme| bucket_scheme(&scheme).is_some())
}

/// The canonical scheme of an object store that has several.
fn bucket_scheme(scheme: &str) -> Option<&'static str> {
    match scheme {
        "s3" | "s3a" | "s3n" => Some("s3"),
        "gs" | "gcs" => Some("gs"),
        "az" | "azure" | "abfs" | "abfss" => Some("az"),
        _ => None,
    }
}

fn open_scheme(
    uri: &str,
    scheme: &str,
    rest: &str,
    durability: Durability,
    options: &StorageOptions,
) -> Result<Arc<dyn Storage>> {
    match scheme {
        "file" | "local" => Ok(Arc::new(LocalStorage::new(file_path(uri, rest)?, durability)?)),
        "mem" | "memory" if rest.is_empty() || rest.contains(['#', '\0']) => {
            Err(Error::input(format!("{uri:?} names no memory store; give mem://name, without # and NUL")))
        }
        "mem" | "memory" => Ok(Arc::new(MemoryStorage::named(rest))),
        _ => match bucket_scheme(scheme) {
            Some(scheme) => open_bucket(uri, scheme, without_account(uri, scheme, rest)?, options),
            None => Err(Error::input(format!("{uri}: there is no storage named {scheme:?}; give {SUPPORTED}"))),
        },
    }
}

/// An Input error if the container names its account, as `abfss://container@account.dfs.core.windows.net/key` does: a
/// store is described, and opened again, by container and key.
fn without_account<'r>(uri: &str, scheme: &str, rest: &'r str) -> Result<&'r str> {
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    match bucket.split_once('@').filter(|_| scheme == "az") {
        None => Ok(rest),
        Some((container, host)) => Err(Error::input(format!(
            "{uri} names an account; give az://{container}/{key} and the storage option account_name={}",
            host.split('.').next().unwrap_or_default()
        ))),
    }
}

#[cfg(feature = "object-stores")]
fn open_bucket(uri: &str, scheme: &str, rest: &str, options: &StorageOptions) -> Result<Arc<dyn Storage>> {
    Ok(Arc::new(super::ObjectStorage::at(uri, scheme, rest, options)?))
}

#[cfg(not(feature = "object-stores"))]
fn open_bucket(uri: &str, scheme: &str, _rest: &str, _options: &StorageOptions) -> Result<Arc<dyn Storage>> {
    Err(Error::unsupported(format!(
        "{uri}: this Gridstone was built without object stores; build it with the feature object-stores for {scheme}://"
    )))
}

/// A scheme by RFC 3986; any other text before "://" is part of a path.
fn is_scheme(text: &str) -> bool {
    let rest = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(rest)
}

/// The path of a file URI after "file://": an empty host or "localhost", then an absolute path.
fn file_path(uri: &str, rest: &str) -> Result<String> {
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return Err(Error::input(format!("{uri} names another machine or no absolute path; give file:///path")));
    }
    let bad = || Error::input(format!("{uri}: after % come two hexadecimal digits, and the whole is UTF-8"));
    let mut bytes = Vec::with_capacity(path.len());
    let mut pieces = path.split('%');
    bytes.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2).ok_or_else(bad)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(bad());
        }
        bytes.push(u8::from_str_radix(digits, 16).map_err(|e| bad().with_source(e))?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).map_err(|e| bad().with_source(e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    fn opened(uri: &str) -> Result<Arc<dyn Storage>> {
        open_uri(uri, Durability::Full, &StorageOptions::default())
    }

    fn described(uri: &str) -> String {
        let storage = opened(uri).unwrap();
        assert_eq!(opened(&storage.describe()).unwrap().describe(), storage.describe());
        storage.describe()
    }

    #[test]
    fn a_uri_has_one_description_that_opens_the_same_store() {
        assert_eq!(described("/data/ais.gs"), "/data/ais.gs");
        assert_eq!(described("/data/ais.gs/"), "/data/ais.gs/");
        assert_eq!(described("file:///data/a%20b.gs"), "/data/a b.gs");
        assert_eq!(described("FILE://localhost/data/100%25"), "/data/100%");
        assert_eq!(described("mem://a/b"), "mem://a/b");
        assert_eq!(described("memory://a/b"), "mem://a/b");
        assert_eq!(described("local:///data/ais.gs"), "/data/ais.gs");
        let here = std::env::current_dir().unwrap();
        assert_eq!(described("./a.gs"), here.join("a.gs").to_str().unwrap());
        assert_eq!(described("a b://c"), here.join("a b:/c").to_str().unwrap());
    }

    #[test]
    fn buckets_are_remote_and_nothing_else() {
        assert!(
            ["s3://b/k", "S3://b", "gs://b", "az://c/k", "s3a://b", "s3n://b", "GCS://b", "abfss://c"]
                .into_iter()
                .all(is_remote)
        );
        assert!(["/s3/a", "mem://a", "file:///a", "s3", "a b://c"].into_iter().all(|uri| !is_remote(uri)));
    }

    #[test]
    fn a_bad_uri_says_what_to_give() {
        let bad = [
            "",
            "a\0b",
            "/a\0b",
            "file:///a%00",
            "file://",
            "file://host/a",
            "file:///a%2",
            "file:///a%+1",
            "file:///%ff",
            "mem://",
            "mem://#1",
            "http://a/b",
        ];
        for uri in bad {
            assert_eq!(opened(uri).unwrap_err().kind(), ErrorKind::Input, "{uri:?}");
        }
        assert!(opened("http://a/b").unwrap_err().message().contains("s3://bucket/key"));
    }

    #[test]
    #[cfg(feature = "object-stores")]
    fn a_bucket_has_one_description_too() {
        assert_eq!(described("s3://box/a/b.gs"), "s3://box/a/b.gs");
        assert_eq!(described("S3://box/a/b.gs/"), "s3://box/a/b.gs");
        assert_eq!(described("gs://box/ü b"), "gs://box/ü b");
        for same in ["az://box/a", "azure://box/a", "abfs://box/a", "ABFSS://box/a/"] {
            assert_eq!(described(same), "az://box/a");
        }
        assert_eq!((described("s3a://box/a"), described("gcs://box/a")), ("s3://box/a".into(), "gs://box/a".into()));
        let account = opened("abfss://box@me.dfs.core.windows.net/a/b").unwrap_err();
        assert_eq!(account.kind(), ErrorKind::Input);
        assert!(
            account.message().contains("az://box/a/b") && account.message().contains("account_name=me"),
            "{account}"
        );
        let bad = [
            "s3://",
            "s3://box",
            "s3://box/",
            "s3:///a",
            "s3://box/a?x=1",
            "s3://box/a#b",
            "s3://box/a//b",
            "s3://box/../a",
        ];
        for uri in bad {
            let error = opened(uri).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input, "{uri}");
            assert!(error.message().contains("s3://bucket/key"), "{error}");
        }
    }

    /// Storages reached through another address, or with another account, do not share a queue of commits.
    #[test]
    #[cfg(feature = "object-stores")]
    fn what_is_reached_otherwise_is_another_storage() {
        let identity = |options: &[(&str, &str)]| {
            let own = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            open_uri("s3://box/a", Durability::Full, &StorageOptions::new(own).unwrap()).unwrap().identity()
        };
        assert_eq!(identity(&[("key", "k"), ("secret", "s")]), identity(&[("secret", "s"), ("access_key_id", "k")]));
        assert_ne!(identity(&[("key", "k"), ("secret", "s")]), identity(&[("key", "k"), ("secret", "t")]));
        assert_ne!(identity(&[("endpoint_url", "http://a")]), identity(&[("endpoint_url", "http://b")]));
        assert!(!identity(&[("key", "k"), ("secret", "hunter2")]).contains("hunter2"));
    }
}
