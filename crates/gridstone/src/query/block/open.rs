//! Opening fragments, once per cache.

use crate::base::{ByteRange, CacheKey, Counters, Error, ErrorKind, FileRef, Id, Result};
use crate::fragment::{Description, Fragment, Location};
use crate::query::request::ReadContext;
use crate::schema::Schema;
use std::collections::HashMap;
use std::sync::Arc;

/// Small fragments of one file that are read together have at most so many bytes in all.
const TOGETHER_BYTES_MAX: u64 = 4 << 20;

fn key_of(context: &ReadContext, description: &Description) -> CacheKey {
    CacheKey { place: context.place, what: "fragment", id: description.id, version: 0 }
}

fn held(context: &ReadContext, description: &Description) -> Option<Arc<Fragment>> {
    Counters::add(&context.counters.fragments_touched, 1);
    context.cache.get(&key_of(context, description))?.downcast::<Fragment>().ok()
}

fn keep(context: &ReadContext, fragment: Fragment) -> Arc<Fragment> {
    let fragment = Arc::new(fragment);
    let description = fragment.description();
    // What it will hold once its stripes are read: the file itself if small, else about a hundredth.
    let len = description.location.len;
    let is_all_index = Fragment::is_read_whole(description) || description.is_external();
    let bytes = if is_all_index { len } else { len / 64 };
    context.cache.put(key_of(context, description), fragment.clone(), bytes + 1024);
    fragment
}

/// The open fragment that `description` describes, from the cache or from its file.
pub fn open_fragment(context: &ReadContext, schema: &Schema, description: &Arc<Description>) -> Result<Arc<Fragment>> {
    if let Some(fragment) = held(context, description) {
        return Ok(fragment);
    }
    open_uncached(context, schema, description).map(|fragment| keep(context, fragment))
}

/// The fragment that `description` describes, from its file; or from where it lies now, if a fold and a vacuum have moved it
/// since.
pub fn open_uncached(context: &ReadContext, schema: &Schema, description: &Arc<Description>) -> Result<Fragment> {
    let open = |d: &Arc<Description>| {
        Fragment::open(context.files.open(d.location.file)?, d.clone(), schema)?
            .with_files(&context.files, (context.place, &context.cache))
    };
    open(description).or_else(|error| {
        let (file, range) = moved(context, description.id, error)?;
        let location = Location { file, offset: range.offset, len: range.len };
        open(&Arc::new(Description { location, ..Description::clone(description) }))
    })
}

/// Where what could not be opened for `error` lies now; `error` if it is not missing, or nowhere else. Only what is missing is
/// looked for, since that may read every page of the manifest.
pub(in crate::query) fn moved(context: &ReadContext, id: Id, error: Error) -> Result<(FileRef, ByteRange)> {
    if error.kind() != ErrorKind::NotFound {
        return Err(error);
    }
    context.files.moved(id).ok().flatten().ok_or(error)
}

/// Opens several fragments, in parallel where they are many. Small ones that lie in one file, a pack mostly, are read
/// together: opening the file and asking for bytes would take as long as decoding them.
pub(in crate::query) fn open_all(
    context: &ReadContext,
    schema: &Arc<Schema>,
    descriptions: Vec<Arc<Description>>,
) -> Result<Vec<Arc<Fragment>>> {
    let mut found: Vec<Option<Arc<Fragment>>> = descriptions.iter().map(|d| held(context, d)).collect();
    let missing = descriptions.iter().zip(&found).enumerate().filter(|(_, (_, found))| found.is_none());
    let groups = groups(missing.map(|(place, (d, _))| (place, d)));
    let opened = context.pool.map(groups, context.cancel.as_ref(), |group| open_group(context, schema, group))?;
    for (place, fragment) in opened.into_iter().flatten() {
        if let Some(slot) = found.get_mut(place) {
            *slot = Some(fragment);
        }
    }
    Ok(found.into_iter().flatten().collect())
}

/// Fragments of one file with their places among those asked for.
type Group<'a> = (FileRef, Vec<(usize, &'a Arc<Description>)>);

fn groups<'a>(missing: impl Iterator<Item = (usize, &'a Arc<Description>)>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut open: HashMap<FileRef, (usize, u64)> = HashMap::new();
    for (place, description) in missing {
        let (file, len) = (description.location.file, description.location.len);
        let small = Fragment::is_read_whole(description);
        let joins = open.get(&file).filter(|(_, bytes)| small && bytes.saturating_add(len) <= TOGETHER_BYTES_MAX);
        match joins.copied() {
            Some((group, bytes)) => {
                if let Some((_, members)) = groups.get_mut(group) {
                    members.push((place, description));
                }
                open.insert(file, (group, bytes + len));
            }
            None => {
                if small {
                    open.insert(file, (groups.len(), len));
                }
                groups.push((file, vec![(place, description)]));
            }
        }
    }
    groups
}

fn open_group(
    context: &ReadContext,
    schema: &Schema,
    (file, members): Group<'_>,
) -> Result<Vec<(usize, Arc<Fragment>)>> {
    let ranges: Vec<ByteRange> =
        members.iter().map(|(_, d)| ByteRange::new(d.location.offset, d.location.len)).collect();
    let together = if ranges.len() > 1 {
        context.files.open(file).and_then(|source| source.read(&ranges))
    } else {
        Ok(Vec::new())
    };
    let alone = ranges.len() <= 1 || together.as_ref().is_err_and(|e| e.kind() == ErrorKind::NotFound);
    if alone {
        let open = |(place, description): (usize, &Arc<Description>)| {
            Ok((place, keep(context, open_uncached(context, schema, description)?)))
        };
        return members.into_iter().map(open).collect();
    }
    let bytes = together?;
    let open = |((place, description), bytes): (&(usize, &Arc<Description>), _)| {
        let fragment = Fragment::open_read(bytes, (*description).clone(), schema)?
            .with_files(&context.files, (context.place, &context.cache))?;
        Ok((*place, keep(context, fragment)))
    };
    members.iter().zip(bytes).map(open).collect()
}
