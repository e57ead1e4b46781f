//! Consolidation: which fragments, and one that goes on in the background.

use crate::boxes::{Boxes, region};
use crate::errors::raise;
use crate::interrupt::look;
use crate::journal::deliver;
use gridstone::base::Id;
use gridstone::engine::{Array, ConsolidateReport, Consolidating, MergeChoice, Strategy};
use pyo3::prelude::*;
use std::time::Duration;

/// What is asked for: ids of fragments, or a box, or a strategy by its name.
pub(crate) fn strategy(
    py: Python<'_>,
    array: &Array,
    name: &str,
    fragments: Option<&[String]>,
    within: Option<Boxes>,
) -> PyResult<Strategy> {
    let within = region(py, array, within)?;
    look(py, array, || match (fragments, within) {
        (Some(ids), _) => {
            let ids = ids
                .iter()
                .map(|id| Id::given(id).map_err(|e| e.context("fragments")))
                .collect::<Result<Vec<_>, _>>()?;
            array.strategy(&MergeChoice::Fragments(&ids))
        }
        (None, Some(region)) => array.strategy(&MergeChoice::Within(&region)),
        (None, None) => array.strategy(&MergeChoice::Named(name)),
    })
}

/// A consolidation that goes on in the background.
#[pyclass(frozen, module = "gridstone._native")]
pub(crate) struct Upkeep {
    pub(crate) inner: Consolidating,
}

#[pymethods]
impl Upkeep {
    #[getter]
    fn done(&self) -> bool {
        self.inner.is_done()
    }

    fn cancel(&self) {
        self.inner.cancel();
    }

    fn wait(&self, py: Python<'_>, milliseconds: u64) -> PyResult<Option<String>> {
        let outcome = py.detach(|| self.inner.wait(Duration::from_millis(milliseconds)));
        deliver(py);
        outcome.map(|o| o.as_ref().as_ref().map(ConsolidateReport::to_json).map_err(|e| raise(py, e))).transpose()
    }
}
