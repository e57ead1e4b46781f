//! The tree of a file: groups, datasets, attributes.
//!
//! 1. A walk from the root reads the header of each object once. An object with several names gets the first, in the
//!    order of the walk; the others are links to it.
//! 2. When all paths are known, references in attributes become paths, and axes get their scales.
//!
//! What cannot be read is listed with a reason.

use super::attributes::{Access, StoredAttributes};
use super::dataset::{self, DatasetParts};
use super::datatype::Datatype;
use super::header::{ObjectHeader, kind};
use super::heaps::GlobalHeaps;
use super::links::{Link, LinkTo, Links};
use super::scales::{self, Numbers, ScaleFacts};
use super::values::{Paths, Values};
use crate::error::{Error, Result};
use crate::model::{
    ForeignAttribute, ForeignDataset, ForeignFile, ForeignGroup, ForeignLink, ForeignNamedType, LinkTarget, Refused,
};

/// Groups inside groups.
const DEPTH_MAX: usize = 48;

/// A group whose attributes are not yet values.
#[derive(Debug, Default)]
struct StoredGroup {
    group: ForeignGroup,
    attributes: StoredAttributes,
    groups: Vec<StoredGroup>,
    datasets: Vec<StoredDataset>,
}

/// A dataset whose attributes are not yet values.
#[derive(Debug)]
struct StoredDataset {
    name: String,
    parts: DatasetParts,
    attributes: StoredAttributes,
}

/// The walk.
struct Walk<'a> {
    access: Access<'a>,
    paths: Paths,
}

/// The tree of the file whose root group's header is at `root`.
pub(super) fn read(access: Access<'_>, root: u64) -> Result<ForeignFile> {
    let mut walk = Walk { access, paths: Paths::new() };
    let header = ObjectHeader::read(access.reader, access.budget, root)?;
    walk.paths.insert(root, "/".to_owned());
    let stored = walk.group(String::new(), &header, "", 0);
    let heaps = GlobalHeaps::default();
    let values = Values { access, heaps: &heaps, paths: &walk.paths };
    let mut naming = Naming { values, numbers: Numbers::new(), is_netcdf4: false };
    naming.find_numbers(&stored, "");
    let root = naming.group(stored, "");
    let format = if naming.is_netcdf4 { "netcdf4" } else { "hdf5" };
    Ok(ForeignFile { format: format.to_owned(), root })
}

impl Walk<'_> {
    /// Reads the group at `path` (empty for the root), and all below it.
    fn group(&mut self, name: String, header: &ObjectHeader, path: &str, depth: usize) -> StoredGroup {
        let links = Links::read(self.access.reader, self.access.budget, header);
        let group = ForeignGroup { name, refused: links.refused, ..ForeignGroup::default() };
        let attributes = StoredAttributes::read(self.access, header);
        let mut stored = StoredGroup { group, attributes, ..StoredGroup::default() };
        for link in links.links {
            let name = link.name.clone();
            if let Err(error) = self.member(&mut stored, link, path, depth) {
                stored.group.refused.push(Refused { name, reason: error.to_string() });
            }
        }
        stored
    }

    fn member(&mut self, into: &mut StoredGroup, link: Link, path: &str, depth: usize) -> Result<()> {
        let name = link.name;
        let target = match link.to {
            LinkTo::Object(address) => match self.paths.get(&address) {
                Some(path) => {
                    self.access.budget.spend(path.len() as u64)?;
                    LinkTarget::Hard { path: path.clone() }
                }
                None => return self.object(into, name, address, path, depth),
            },
            LinkTo::Soft(path) => LinkTarget::Soft { path },
            LinkTo::External { file, path } => LinkTarget::External { file, path },
            LinkTo::UserDefined(number) => {
                return Err(Error::unsupported(format!(
                    "the link is of type {number}, which a program defined for itself"
                )));
            }
        };
        into.group.links.push(ForeignLink { name, target });
        Ok(())
    }

    fn object(&mut self, into: &mut StoredGroup, name: String, address: u64, path: &str, depth: usize) -> Result<()> {
        let path = format!("{path}/{name}");
        self.access.budget.spend(path.len() as u64)?;
        let header = ObjectHeader::read(self.access.reader, self.access.budget, address)?;
        self.paths.insert(address, path.clone());
        let has = |kind| header.first(kind).is_some();
        if has(kind::LAYOUT) || has(kind::DATATYPE) && has(kind::DATASPACE) {
            let parts = dataset::read(self.access, &header)?;
            let attributes = StoredAttributes::read(self.access, &header);
            into.datasets.push(StoredDataset { name, parts, attributes });
        } else if let Some(message) = header.first(kind::DATATYPE) {
            let body = self.access.shared.resolve(self.access.reader, self.access.budget, message)?;
            let datatype = Datatype::parse(&mut self.access.reader.cursor(&body, "datatype"))?.shown;
            into.group.types.push(ForeignNamedType { name, datatype });
        } else if has(kind::SYMBOL_TABLE) || has(kind::LINK_INFO) || has(kind::LINK) || has(kind::GROUP_INFO) {
            if depth >= DEPTH_MAX {
                return Err(Error::limit(format!("groups are nested more than {DEPTH_MAX} times")));
            }
            into.groups.push(self.group(name, &header, &path, depth + 1));
        } else {
            return Err(Error::unsupported("the object is neither a group nor a dataset nor a datatype"));
        }
        Ok(())
    }
}

/// The second pass: with all paths known, attributes become values.
struct Naming<'a> {
    values: Values<'a>,
    numbers: Numbers,
    is_netcdf4: bool,
}

impl Naming<'_> {
    fn find_numbers(&mut self, group: &StoredGroup, path: &str) {
        self.is_netcdf4 |= scales::is_netcdf4(&group.attributes);
        for dataset in &group.datasets {
            let facts = ScaleFacts::read(&self.values, &dataset.attributes);
            self.is_netcdf4 |= facts.is_bare_dimension || scales::is_netcdf4(&dataset.attributes);
            if let (true, Some(number)) = (facts.is_scale, facts.number) {
                self.numbers.insert(number, format!("{path}/{}", dataset.name));
            }
        }
        for child in &group.groups {
            self.find_numbers(child, &format!("{path}/{}", child.group.name));
        }
    }

    fn group(&self, stored: StoredGroup, path: &str) -> ForeignGroup {
        let StoredGroup { mut group, attributes, groups, datasets } = stored;
        group.attributes = self.attributes(attributes, &mut group.refused);
        group.datasets = datasets.into_iter().map(|dataset| self.dataset(dataset, path)).collect();
        let below = |child: StoredGroup| {
            let path = format!("{path}/{}", child.group.name);
            self.group(child, &path)
        };
        group.groups = groups.into_iter().map(below).collect();
        group
    }

    fn dataset(&self, stored: StoredDataset, path: &str) -> ForeignDataset {
        let StoredDataset { name, parts, attributes } = stored;
        let DatasetParts { space, datatype, fill, layout } = parts;
        let facts = ScaleFacts::read(&self.values, &attributes);
        let rank = space.shape.len();
        let path = format!("{path}/{name}");
        let mut refused = Vec::new();
        let scales = scales::scales_of(&self.values, &attributes, &self.numbers, &path, rank);
        let dimension_scales = scales.unwrap_or_else(|error| {
            refused.push(Refused { name: "DIMENSION_LIST".to_owned(), reason: error.to_string() });
            vec![None; rank]
        });
        ForeignDataset {
            name,
            shape: space.shape,
            max_shape: space.max_shape,
            is_null: space.is_null,
            datatype: datatype.shown,
            element_size: datatype.size,
            fill,
            attributes: self.attributes(attributes, &mut refused),
            dimension_scales,
            dimension_names: Vec::new(),
            is_scale: facts.is_scale,
            is_bare_dimension: facts.is_bare_dimension,
            layout,
            refused,
        }
    }

    fn attributes(&self, stored: StoredAttributes, refused: &mut Vec<Refused>) -> Vec<ForeignAttribute> {
        refused.extend(stored.refused);
        let mut found = Vec::new();
        for attribute in stored.found.into_iter().filter(|attribute| !scales::is_reserved(&attribute.name)) {
            match self.values.value(&attribute) {
                Ok(value) => found.push(ForeignAttribute {
                    name: attribute.name,
                    shape: attribute.space.shape,
                    datatype: attribute.datatype.shown,
                    value,
                }),
                Err(error) => refused.push(Refused { name: attribute.name, reason: error.to_string() }),
            }
        }
        found
    }
}
