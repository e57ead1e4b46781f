//! Opening fragments, once per cache.

use super::ReadContext;
use crate::base::{CacheKey, Result};
use crate::fragment::{Description, Fragment};
use crate::schema::Schema;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The open fragment that `description` describes, from the cache or from its file.
pub fn open_fragment(context: &ReadContext, schema: &Schema, description: &Arc<Description>) -> Result<Arc<Fragment>> {
    context.counters.fragments_touched.fetch_add(1, Ordering::Relaxed);
    let key = CacheKey { store: context.store, what: "fragment", id: description.id, version: 0 };
    if let Some(held) = context.cache.get(&key)
        && let Ok(fragment) = held.downcast::<Fragment>()
    {
        return Ok(fragment);
    }
    let source = context.files.open(description.location.file)?;
    let fragment = Arc::new(Fragment::open(source, description.clone(), schema)?);
    // What it will hold once its stripes are read: the file itself if small, else about a hundredth.
    let bytes =
        if description.location.len <= 160 * 1024 { description.location.len } else { description.location.len / 64 };
    context.cache.put(key, fragment.clone(), bytes + 1024);
    Ok(fragment)
}

/// Opens several fragments, in parallel where they are many.
pub(super) fn open_all(
    context: &ReadContext,
    schema: &Arc<Schema>,
    descriptions: Vec<Arc<Description>>,
) -> Result<Vec<Arc<Fragment>>> {
    context.pool.map(descriptions, context.cancel.as_ref(), |d| open_fragment(context, schema, &d))
}
