//! Files of other formats that stores refer to, and which of them a context allows to be read.
//!
//! A store may come from somebody else. So what it refers to is read only in the folder that the store itself lies in, and
//! below; all else, and every URL, must be allowed by the context. Links are followed first: what counts is where a
//! file really lies.

use super::{Durability, StorageOptions, local, open_uri};
use crate::base::{ByteSource, Error, ErrorKind, ForeignObject, Result, has_scheme};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Where a context lets stores read foreign files, and how they are reached.
#[derive(Debug, Default)]
pub struct ForeignFiles {
    allowed: Vec<String>,
    options: StorageOptions,
}

impl ForeignFiles {
    /// Files under these prefixes, folders or URLs, are allowed besides those beside a store.
    ///
    /// # Errors
    /// Input: a prefix is empty.
    pub fn new(allowed: Vec<String>, options: StorageOptions) -> Result<Self> {
        if allowed.iter().any(|prefix| prefix.trim().is_empty()) {
            return Err(Error::input("a prefix of sources is empty; give a folder, or \"/\" for every local file"));
        }
        Ok(Self { allowed, options })
    }

    /// The prefixes.
    pub fn allowed(&self) -> &[String] {
        &self.allowed
    }

    /// Opens an object that a store in `store` (its location, as [`super::Storage::describe`] gives it) refers to.
    ///
    /// # Errors
    /// Access: it is not allowed; the message names the prefix that would allow it. SourceChanged: it is gone, or not what it was.
    /// Storage.
    pub(super) fn open(&self, store: &str, object: &ForeignObject) -> Result<Arc<dyn ByteSource>> {
        match located(store, &object.uri)? {
            Located::Path(path) => {
                let path = self.allowed_path(store, &path, &object.uri)?;
                local::open_foreign(path, object)
            }
            Located::Url(folder, name) => {
                let source = self.object(store, &folder, &name).map_err(|e| gone(&object.uri, e))?;
                let found = ForeignObject { size: Some(source.len()), ..unknown(&object.uri) };
                unchanged(object, &found)?;
                Ok(source)
            }
        }
    }

    /// Opens an object under the prefix of a source; where it really lies is what counts.
    ///
    /// # Errors
    /// As [`ForeignFiles::open`]; an Access error names the prefix, if that is not allowed.
    pub(super) fn open_under(
        &self,
        store: &str,
        prefix: &ForeignObject,
        object: &ForeignObject,
    ) -> Result<Arc<dyn ByteSource>> {
        let opened = self.open(store, object);
        if let (Err(error), Located::Path(path)) = (&opened, located(store, &prefix.uri)?)
            && error.kind() == ErrorKind::Access
        {
            self.allowed_path(store, &path, &prefix.uri)?;
        }
        opened
    }

    /// A SourceChanged error if the files under a prefix are not those that were attached: their number, their bytes and the time of
    /// the newest are compared. What lies in a bucket is compared when it is read.
    ///
    /// # Errors
    /// As [`ForeignFiles::look`].
    pub(super) fn check_prefix(&self, store: &str, prefix: &ForeignObject) -> Result<()> {
        match located(store, &prefix.uri)? {
            Located::Path(_) => unchanged(prefix, &self.look(store, &prefix.uri)?),
            Located::Url(..) => Ok(()),
        }
    }

    /// The state of an object now, and its location as a store in `store` keeps it. A folder, which is a prefix, has the bytes of all
    /// files below, the time of the newest, and as the tag their number and what tells their names, lengths and times apart.
    ///
    /// # Errors
    /// As opening it; NotFound where there is none.
    pub fn look(&self, store: &str, uri: &str) -> Result<ForeignObject> {
        match located(store, uri)? {
            Located::Path(path) => {
                let path = self.allowed_path(store, &path, uri)?;
                let kept = unknown(&kept_as(store, &path));
                if path.is_dir() {
                    let found = local::state_of_folder(&path)?;
                    let etag = format!("{} files, {:016x}", found.files, found.mark);
                    let (size, time_us) = (found.bytes, found.newest_us);
                    return Ok(ForeignObject { size: Some(size), time_us, etag: Some(etag), ..kept });
                }
                let (size, time_us) = local::state_of(&path)?;
                Ok(ForeignObject { size: Some(size), time_us: Some(time_us), ..kept })
            }
            Located::Url(folder, name) => {
                let size = self.object(store, &folder, &name)?.len();
                Ok(ForeignObject { size: Some(size), ..unknown(uri) })
            }
        }
    }

    /// An object of a bucket, if it may be read.
    fn object(&self, store: &str, folder: &str, name: &str) -> Result<Arc<dyn ByteSource>> {
        let whole = format!("{folder}/{name}");
        if !self.allowed.iter().any(|prefix| is_under(&whole, prefix)) && !is_beside(store, &whole) {
            return Err(refused(&whole, folder));
        }
        open_uri(folder, Durability::Close, &self.options)?.open(name)
    }

    /// Where a file really lies, if it may be read.
    fn allowed_path(&self, store: &str, path: &Path, uri: &str) -> Result<PathBuf> {
        let real = path.canonicalize().map_err(|e| gone(uri, local::opening_failed(path, e)))?;
        let beside = folder_of(store).and_then(|folder| folder.canonicalize().ok());
        let prefixes = self.allowed.iter().filter(|prefix| !has_scheme(prefix));
        let allowed = prefixes.filter_map(|prefix| Path::new(prefix).canonicalize().ok()).chain(beside);
        if allowed.into_iter().any(|folder| real.starts_with(folder)) {
            return Ok(real);
        }
        let folder = real.parent().unwrap_or(&real).display().to_string();
        Err(refused(uri, &folder))
    }
}

/// Where a URI of a store points.
enum Located {
    Path(PathBuf),
    /// The URL of a folder, and the name there.
    Url(String, String),
}

/// The folder that a local store lies in.
fn folder_of(store: &str) -> Option<PathBuf> {
    if has_scheme(store) { None } else { Path::new(store).parent().map(Path::to_path_buf) }
}

/// The folder that paths of sources of a store count from, or its URL; `None` if there is none.
pub(super) fn counted_from(store: &str) -> Option<String> {
    match has_scheme(store) {
        false => folder_of(store)?.canonicalize().ok().map(|folder| folder.display().to_string()),
        true => store.rsplit_once('/').filter(|(parent, _)| is_folder_url(parent)).map(|(parent, _)| parent.to_owned()),
    }
}

/// Whether a URL names a folder, and not a scheme alone.
fn is_folder_url(url: &str) -> bool {
    url.contains("://") && !url.ends_with('/')
}

fn located(store: &str, uri: &str) -> Result<Located> {
    if uri.is_empty() || uri.contains('\0') {
        return Err(Error::corruption("a foreign source without a name"));
    }
    if let Some(path) = uri.strip_prefix("file://") {
        return Ok(Located::Path(PathBuf::from(path)));
    }
    if has_scheme(uri) {
        return url(uri);
    }
    if Path::new(uri).is_absolute() {
        return Ok(Located::Path(PathBuf::from(uri)));
    }
    match folder_of(store) {
        Some(folder) => Ok(Located::Path(folder.join(uri))),
        None => match store.rsplit_once('/') {
            Some((parent, _)) if is_folder_url(parent) => url(&format!("{parent}/{uri}")),
            _ => Err(Error::access(format!(
                "{uri} has no folder: the store {store} lies in none; attach it by its whole path"
            ))),
        },
    }
}

fn url(uri: &str) -> Result<Located> {
    let scheme = uri.split("://").next().unwrap_or_default().to_ascii_lowercase();
    if matches!(scheme.as_str(), "http" | "https" | "ftp") {
        return Err(Error::unsupported(format!(
            "{uri}: sources are read from files and from object stores (s3://, gs://, az://), not by {scheme} yet; copy it first"
        )));
    }
    if uri.split('/').any(|part| part == "..") {
        return Err(Error::access(format!("{uri} leaves its folder by \"..\"; attach it by its whole address")));
    }
    match uri.rsplit_once('/') {
        Some((folder, name)) if !name.is_empty() && folder.contains("://") && !folder.ends_with(":/") => {
            Ok(Located::Url(folder.to_owned(), name.to_owned()))
        }
        _ => Err(Error::input(format!("{uri} names no object"))),
    }
}

/// Whether a URL lies under a prefix, part by part.
fn is_under(url: &str, prefix: &str) -> bool {
    let prefix = prefix.trim_end_matches('/');
    url.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) && has_scheme(prefix)
}

/// Whether a URL lies in the folder that a store in a bucket lies in.
fn is_beside(store: &str, url: &str) -> bool {
    has_scheme(store)
        && store.rsplit_once('/').is_some_and(|(parent, _)| !parent.ends_with('/') && is_under(url, parent))
}

/// How a store keeps a path: from its own folder, if it lies there, so that both move together.
fn kept_as(store: &str, real: &Path) -> String {
    let beside = folder_of(store).and_then(|folder| folder.canonicalize().ok());
    let relative = beside.and_then(|folder| real.strip_prefix(folder).ok().map(Path::to_path_buf));
    let plain = |path: &PathBuf| path.components().all(|part| matches!(part, Component::Normal(_)));
    let inside = relative.filter(|path| !path.as_os_str().is_empty() && plain(path));
    inside.unwrap_or_else(|| real.to_path_buf()).display().to_string()
}

fn unknown(uri: &str) -> ForeignObject {
    ForeignObject { uri: uri.to_owned(), size: None, time_us: None, etag: None }
}

fn refused(uri: &str, folder: &str) -> Error {
    Error::access(format!(
        "this store refers to {uri}, which lies outside of the store's folder; if you trust it, allow its folder: \
         Context(sources=[{folder:?}]), --source {folder:?}, or GRIDSTONE_SOURCES"
    ))
}

/// The error of a source that is not there any more.
pub(in crate::storage) fn gone(uri: &str, error: Error) -> Error {
    if error.kind() != ErrorKind::NotFound {
        return error;
    }
    let message =
        format!("the source {uri} is gone: put it back where it was, or attach it again from where it is now");
    Error::source_changed(message).with_source(error)
}

/// A SourceChanged error if an object is not what it was when it was attached.
pub(in crate::storage) fn unchanged(was: &ForeignObject, found: &ForeignObject) -> Result<()> {
    match was.difference(found) {
        None => Ok(()),
        Some(what) => Err(Error::source_changed(format!(
            "the source {} has changed since it was attached: {what}; attach it again if the change is meant",
            was.uri
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("gridstone-foreign-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("inside/store")).unwrap();
            fs::create_dir_all(path.join("outside")).unwrap();
            fs::write(path.join("inside/a.h5"), b"inside").unwrap();
            fs::write(path.join("outside/b.h5"), b"outside").unwrap();
            Self(path.canonicalize().unwrap())
        }

        fn path(&self, name: &str) -> String {
            self.0.join(name).display().to_string()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn read(files: &ForeignFiles, store: &str, uri: &str) -> Result<Vec<u8>> {
        let source = files.open(store, &unknown(uri))?;
        Ok(source.read_one(crate::base::ByteRange::new(0, source.len()))?.to_vec())
    }

    #[test]
    fn files_beside_a_store_are_read_and_others_only_where_they_are_allowed() {
        let folder = Folder::new("trust");
        let store = folder.path("inside/store");
        let none = ForeignFiles::default();
        assert_eq!(read(&none, &store, "a.h5").unwrap(), b"inside");
        std::os::unix::fs::symlink(folder.path("outside/b.h5"), folder.path("inside/link.h5")).unwrap();
        std::os::unix::fs::symlink(folder.path("outside"), folder.path("inside/folder")).unwrap();
        let ways = [
            "../outside/b.h5",
            "link.h5",
            "folder/b.h5",
            &folder.path("outside/b.h5"),
            &format!("file://{}", folder.path("outside/b.h5")),
        ];
        for way in ways {
            let error = read(&none, &store, way).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Access, "{way}: {error}");
            assert!(error.to_string().contains(&folder.path("outside")), "{error}");
            for allowed in [folder.path("outside"), folder.path("inside/../outside/"), "/".to_owned()] {
                let files = ForeignFiles::new(vec![allowed], StorageOptions::default()).unwrap();
                assert_eq!(read(&files, &store, way).unwrap(), b"outside");
            }
            let near = ForeignFiles::new(vec![folder.path("out"), folder.path("outside/b")], StorageOptions::default());
            assert_eq!(read(&near.unwrap(), &store, way).unwrap_err().kind(), ErrorKind::Access, "no part of a name");
        }
        assert!(ForeignFiles::new(vec![" ".into()], StorageOptions::default()).is_err());
    }

    #[test]
    fn urls_need_to_be_allowed_and_hosts_are_not_asked_before() {
        let none = ForeignFiles::default();
        for (store, url, kind) in [
            ("/tmp/store", "s3://bucket/a/b.h5", ErrorKind::Access),
            ("s3://bucket/a/store", "s3://bucket/ab.h5", ErrorKind::Access),
            ("s3://bucket/a/store", "s3://bucket/a/../b.h5", ErrorKind::Access),
            ("s3://bucket/a/store", "/etc/passwd", ErrorKind::Access),
            ("mem://store", "a.h5", ErrorKind::Access),
            ("/tmp/store", "http://169.254.169.254/latest/meta-data", ErrorKind::Unsupported),
            ("/tmp/store", "s3://bucket", ErrorKind::Input),
        ] {
            let error = none.open(store, &unknown(url)).map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), kind, "{url}: {error}");
        }
        assert!(
            is_under("s3://b/a/c", "s3://b/a/")
                && is_under("s3://b/a", "s3://b/a")
                && !is_under("s3://b/ab", "s3://b/a")
        );
        assert!(is_beside("s3://b/a/store", "s3://b/a/x/y") && !is_beside("s3://b", "s3://c"));
    }

    #[test]
    fn objects_under_a_prefix_are_trusted_by_where_they_really_lie() {
        let folder = Folder::new("prefix");
        let (store, none) = (folder.path("inside/store"), ForeignFiles::default());
        fs::create_dir_all(folder.path("inside/z/c")).unwrap();
        fs::write(folder.path("inside/z/c/0"), b"chunk").unwrap();
        std::os::unix::fs::symlink(folder.path("outside/b.h5"), folder.path("inside/z/c/1")).unwrap();
        std::os::unix::fs::symlink(folder.path("outside"), folder.path("inside/z/d")).unwrap();
        let near = unknown("z");
        let open = |files: &ForeignFiles, prefix: &ForeignObject, uri: &str| {
            files.open_under(&store, prefix, &unknown(uri)).map(|source| source.len())
        };
        assert_eq!(open(&none, &near, "z/c/0").unwrap(), 5);
        for way in ["z/c/1", "z/d/b.h5", "z/../../outside/b.h5"] {
            let error = open(&none, &near, way).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Access, "{way}: {error}");
            assert!(error.to_string().contains(way), "{error}");
        }
        fs::create_dir_all(folder.path("outside/z/c")).unwrap();
        fs::write(folder.path("outside/z/c/0"), b"chunk").unwrap();
        let far = unknown(&folder.path("outside/z"));
        let error = open(&none, &far, &folder.path("outside/z/c/0")).unwrap_err();
        let named = format!("sources=[{:?}]", folder.path("outside"));
        assert!(error.to_string().contains(&named), "the folder of the prefix, not that of the object: {error}");
        let allowed = ForeignFiles::new(vec![folder.path("outside/z")], StorageOptions::default()).unwrap();
        assert_eq!(open(&allowed, &far, &folder.path("outside/z/c/0")).unwrap(), 5);
    }

    #[test]
    fn the_state_of_a_prefix_is_that_of_all_files_below() {
        let folder = Folder::new("folder");
        let (store, files) = (folder.path("inside/store"), ForeignFiles::default());
        fs::create_dir_all(folder.path("inside/z/c/0")).unwrap();
        assert_eq!(files.look(&store, "z").unwrap().time_us, None);
        fs::write(folder.path("inside/z/c/0/1"), b"chunk").unwrap();
        fs::write(folder.path("inside/z/.zarray"), b"{}").unwrap();
        std::os::unix::fs::symlink(folder.path("inside"), folder.path("inside/z/loop")).unwrap();
        let link = fs::symlink_metadata(folder.path("inside/z/loop")).unwrap().len();
        let was = files.look(&store, "z").unwrap();
        assert_eq!((was.uri.as_str(), was.size), ("z", Some(7 + link)));
        assert!(was.etag.as_deref().unwrap().starts_with("3 files, "), "{was:?}");
        files.check_prefix(&store, &was).unwrap();
        // Another chunk of the same length, which is older than what was there.
        let chunk = fs::File::options().write(true).open(folder.path("inside/z/c/0/1")).unwrap();
        chunk.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1)).unwrap();
        assert_eq!(files.look(&store, "z").unwrap().size, was.size);
        assert_eq!(files.check_prefix(&store, &was).unwrap_err().kind(), ErrorKind::SourceChanged);
        fs::write(folder.path("inside/z/c/0/2"), b"").unwrap();
        let error = files.check_prefix(&store, &was).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SourceChanged);
        assert!(error.to_string().contains("its tag was 3 files"), "{error}");
        fs::remove_dir_all(folder.path("inside/z")).unwrap();
        assert_eq!(files.check_prefix(&store, &was).unwrap_err().kind(), ErrorKind::SourceChanged);
    }

    #[test]
    fn a_source_that_changed_shrank_or_vanished_is_named_also_while_it_is_open() {
        let folder = Folder::new("change");
        let store = folder.path("inside/store");
        let files = ForeignFiles::default();
        let was = files.look(&store, "a.h5").unwrap();
        assert_eq!((was.uri.as_str(), was.size), ("a.h5", Some(6)), "kept relative to the store's folder");
        let whole = crate::base::ByteRange::new(0, 6);
        let open = files.open(&store, &was).unwrap();
        assert_eq!(&open.read_one(whole).unwrap()[..], b"inside");
        fs::write(folder.path("inside/a.h5"), b"insid").unwrap();
        for source in [Ok(open.clone()), files.open(&store, &was)] {
            let error = source.and_then(|source| source.read_one(whole)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SourceChanged, "{error}");
            assert!(error.to_string().contains("a.h5"), "{error}");
        }
        fs::remove_file(folder.path("inside/a.h5")).unwrap();
        let error = files.open(&store, &was).map(|_| ()).unwrap_err();
        assert!(error.kind() == ErrorKind::SourceChanged && error.to_string().contains("is gone"), "{error}");
        assert_eq!(files.look(&store, "nothing.h5").unwrap_err().kind(), ErrorKind::SourceChanged);
        let outside = ForeignFiles::new(vec![folder.path("outside")], StorageOptions::default()).unwrap();
        assert_eq!(outside.look(&store, "../outside/b.h5").unwrap().uri, folder.path("outside/b.h5"));
    }
}
