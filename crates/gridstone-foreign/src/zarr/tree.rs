//! The tree of a folder: the groups and arrays in it, by what each folder's metadata say.

use super::dataset;
use super::{json, version2, version3};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{ForeignDataset, ForeignFile, ForeignGroup, ForeignLink, LinkTarget, Refused};
use serde_json::{Map, Value};
use std::fs;
use std::path::{Path, PathBuf};

/// Groups in groups.
const DEPTH_MAX: usize = 64;
/// The most entries of folders that are looked at.
const ENTRIES_MAX: u64 = 1 << 20;

/// What the metadata of a folder say that it is.
enum Node {
    Group(Map<String, Value>),
    Array(Box<ForeignDataset>),
}

/// The tree of the folder at `root`. An array alone is the dataset `array`.
pub(super) fn tree(root: &Path) -> Result<ForeignFile> {
    let failed = |e| Error::io(&format!("cannot open {}", root.display()), e);
    let real = root.canonicalize().map_err(failed)?;
    let mut walk = Walk { real, entries: 0 };
    let mut group = match node(root, "array", "")? {
        Some(Node::Array(dataset)) => ForeignGroup { datasets: vec![*dataset], ..ForeignGroup::default() },
        Some(Node::Group(attributes)) => walk.group(root, "", "", &attributes, 0)?,
        None => {
            let message = "this folder is no Zarr: it has none of zarr.json, .zgroup and .zarray";
            return Err(Error::new(ErrorKind::Format, message));
        }
    };
    find_scales(&mut group, "");
    Ok(ForeignFile { format: "zarr".into(), root: group })
}

/// What the folder at `path` is; `None` if it has no metadata.
fn node(path: &Path, name: &str, folder: &str) -> Result<Option<Node>> {
    let array = |described: dataset::Described| {
        Node::Array(Box::new(described.into_dataset(name.to_owned(), folder.to_owned())))
    };
    if let Some(of) = json::read(&path.join("zarr.json"))? {
        let (kind, attributes) = version3::node(&of)?;
        return match kind {
            "group" => Ok(Some(Node::Group(attributes))),
            "array" => version3::array(&of, attributes).map(array).map(Some),
            other => Err(Error::unsupported(format!("its zarr.json is of a {other:?}, neither a group nor an array"))),
        };
    }
    let attributes = || json::read(&path.join(".zattrs")).map(Option::unwrap_or_default);
    if let Some(of) = json::read(&path.join(".zarray"))? {
        return version2::array(&of, attributes()?).map(array).map(Some);
    }
    match json::read(&path.join(".zgroup"))? {
        Some(of) if of.get("zarr_format").and_then(json::whole) == Some(2) => Ok(Some(Node::Group(attributes()?))),
        Some(of) => {
            Err(Error::unsupported(format!("its .zgroup is of the version {}", json::shown(of.get("zarr_format")))))
        }
        None => Ok(None),
    }
}

struct Walk {
    /// The root, with links followed.
    real: PathBuf,
    entries: u64,
}

impl Walk {
    fn group(
        &mut self,
        path: &Path,
        name: &str,
        folder: &str,
        attributes: &Map<String, Value>,
        depth: usize,
    ) -> Result<ForeignGroup> {
        if depth > DEPTH_MAX {
            return Err(Error::limit(format!("more than {DEPTH_MAX} groups lie in each other")));
        }
        let mut made = ForeignGroup {
            name: name.to_owned(),
            attributes: dataset::attributes(attributes),
            ..ForeignGroup::default()
        };
        let (folders, odd) = self.folders(path)?;
        made.refused.extend(odd);
        for name in folders {
            let below = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            match self.member(&path.join(&name), &name, &below, depth) {
                Ok(Some(Member::Group(group))) => made.groups.push(group),
                Ok(Some(Member::Array(dataset))) => made.datasets.push(*dataset),
                Ok(Some(Member::Link(link))) => made.links.push(link),
                Ok(None) => {
                    let reason = "it is a folder without metadata of Zarr".to_owned();
                    made.refused.push(Refused { name, reason });
                }
                Err(e) if e.kind() == ErrorKind::Limit && self.entries > ENTRIES_MAX => return Err(e),
                Err(e) => made.refused.push(Refused { name, reason: e.message().to_owned() }),
            }
        }
        Ok(made)
    }

    fn member(&mut self, path: &Path, name: &str, folder: &str, depth: usize) -> Result<Option<Member>> {
        if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
            return self.link(path, name).map(|link| Some(Member::Link(link)));
        }
        Ok(match node(path, name, folder)? {
            None => None,
            Some(Node::Array(dataset)) => Some(Member::Array(dataset)),
            Some(Node::Group(attributes)) => {
                Some(Member::Group(self.group(path, name, folder, &attributes, depth + 1)?))
            }
        })
    }

    /// A link to a folder is another name of what lies there: walks through links may have no end.
    fn link(&self, path: &Path, name: &str) -> Result<ForeignLink> {
        let real = path.canonicalize().map_err(|e| Error::io(&format!("cannot open {}", path.display()), e))?;
        let Some(inside) = real.strip_prefix(&self.real).ok().and_then(Path::to_str) else {
            return Err(Error::unsupported(format!("it is a link to {}, outside of the folder", real.display())));
        };
        Ok(ForeignLink { name: name.to_owned(), target: LinkTarget::Soft { path: format!("/{inside}") } })
    }

    /// The names of the folders in a folder, in order, and what of their names cannot be read.
    fn folders(&mut self, path: &Path) -> Result<(Vec<String>, Vec<Refused>)> {
        let failed = |e| Error::io(&format!("cannot list {}", path.display()), e);
        let (mut names, mut odd) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                return Err(Error::limit(format!("its groups have more than {ENTRIES_MAX} members")));
            }
            let kind = entry.file_type().map_err(failed)?;
            let is_folder = kind.is_dir() || (kind.is_symlink() && entry.path().is_dir());
            match entry.file_name().into_string() {
                _ if !is_folder => {}
                Ok(name) if name.starts_with('.') => {}
                Ok(name) => names.push(name),
                Err(name) => odd
                    .push(Refused { name: name.to_string_lossy().into_owned(), reason: "its name is no UTF-8".into() }),
            }
        }
        names.sort_unstable();
        Ok((names, odd))
    }
}

enum Member {
    Group(ForeignGroup),
    Array(Box<ForeignDataset>),
    Link(ForeignLink),
}

/// Says of each axis which array of its group holds its coordinates: that of its name, along itself alone.
fn find_scales(group: &mut ForeignGroup, path: &str) {
    let is_scale = |dataset: &ForeignDataset| {
        matches!(&dataset.dimension_names[..], [Some(name)] if *name == dataset.name) && dataset.shape.len() == 1
    };
    let scales: Vec<(String, Vec<u64>)> = group
        .datasets
        .iter()
        .filter(|dataset| is_scale(dataset))
        .map(|dataset| (dataset.name.clone(), dataset.shape.clone()))
        .collect();
    for dataset in &mut group.datasets {
        dataset.is_scale = is_scale(dataset);
        let along = dataset.dimension_names.iter().zip(&dataset.shape);
        let found = along.map(|(name, length)| {
            let name = name.as_ref()?;
            scales
                .iter()
                .any(|(scale, shape)| scale == name && shape[..] == [*length])
                .then(|| format!("{path}/{name}"))
        });
        let found: Vec<Option<String>> = found.collect();
        if !found.is_empty() {
            dataset.dimension_scales = found;
        }
    }
    for below in &mut group.groups {
        let path = format!("{path}/{}", below.name);
        find_scales(below, &path);
    }
}
