//! Arrays that the store keeps, and this release cannot use.

use crate::base::{Error, Result};
use crate::store::ArrayState;

/// An Unsupported error if an array cannot be used in this release, though the store can: it has no domain yet, or a dense one
/// has an end that is open, or it has no dimension.
pub(super) fn check_usable(state: &ArrayState) -> Result<()> {
    let refuse = |what: String| {
        Err(Error::unsupported(format!(
            "array {} {what}, which this release of Gridstone keeps and does not use; use a newer one",
            state.path()
        )))
    };
    let schema = state.schema();
    if schema.is_scalar() {
        return refuse("has no dimension".to_owned());
    }
    let dims = schema.dims();
    if let Some(dim) = dims.iter().find(|dim| dim.range().is_empty()) {
        return refuse(format!("has no domain along dimension {:?} yet", dim.name()));
    }
    match dims.iter().find(|dim| !schema.sparse() && dim.open() != [false; 2]) {
        Some(dim) => refuse(format!("is dense and open at an end of dimension {:?}", dim.name())),
        None => Ok(()),
    }
}
