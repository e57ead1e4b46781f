//! Chosen positions as Python gives them: per dimension None for all, (start, count, step), or a list of 64-bit positions; and a mask.

use crate::columns::Held;
use crate::errors::input;
use gridstone::base::Result;
use gridstone::engine::{AxisPositions, Chosen, Mask};
use gridstone::schema::Datatype;
use pyo3::prelude::*;

/// What one dimension is given: nothing, a range, or a kind with its positions; "masked" has none.
#[derive(FromPyObject)]
enum Given<'py> {
    Strided(u64, u64, i64),
    Listed(String, Bound<'py, PyAny>),
    Masked(String),
}

/// What a selection chooses, and its mask.
pub(crate) struct Selection {
    chosen: Vec<Chosen>,
    /// A copy: the caller's threads may change theirs while it is read.
    mask: Option<(usize, Vec<u64>, Vec<u8>)>,
}

/// The number of the first dimension that a mask stands for, its shape, and its bytes.
pub(crate) type GivenMask<'py> = (usize, Vec<u64>, Bound<'py, PyAny>);

impl Selection {
    /// Takes what `given` and the mask hold.
    pub(crate) fn new(given: &[Bound<'_, PyAny>], mask: Option<GivenMask<'_>>) -> PyResult<Self> {
        let chosen = given.iter().map(chosen).collect::<PyResult<_>>()?;
        let mask = mask.map(|(first, shape, cells)| {
            let column = (cells.clone(), cells.py().None(), cells.py().None()).into_pyobject(cells.py())?;
            Ok::<_, PyErr>((first, shape, Held::new(Datatype::UInt8, column.as_any())?.bytes().to_vec()))
        });
        Ok(Self { chosen, mask: mask.transpose()? })
    }

    /// The choices, one per dimension.
    pub(crate) fn chosen(&self) -> Vec<Chosen> {
        self.chosen.clone()
    }

    /// The mask over its dimensions.
    pub(crate) fn mask(&self) -> Result<Option<Mask<'_>>> {
        self.mask.as_ref().map(|(first, shape, cells)| Mask::new(*first, shape.clone(), cells)).transpose()
    }
}

fn chosen(given: &Bound<'_, PyAny>) -> PyResult<Chosen> {
    if given.is_none() {
        return Ok(Chosen::Combined(AxisPositions::All));
    }
    match given.extract()? {
        Given::Strided(start, count, step) => Ok(Chosen::Combined(AxisPositions::Strided { start, count, step })),
        Given::Listed(kind, list) => {
            let column = (list.clone(), list.py().None(), list.py().None()).into_pyobject(list.py())?;
            let held = Held::new(Datatype::UInt64, column.as_any())?;
            let positions = held.bytes().chunks_exact(8).filter_map(|b| b.try_into().ok()).map(u64::from_le_bytes);
            match kind.as_str() {
                "listed" => Ok(Chosen::Combined(AxisPositions::Listed(positions.collect()))),
                "paired" => Ok(Chosen::Paired(positions.collect())),
                other => Err(unknown(given.py(), other)),
            }
        }
        Given::Masked(kind) if kind == "masked" => Ok(Chosen::Masked),
        Given::Masked(kind) => Err(unknown(given.py(), &kind)),
    }
}

fn unknown(py: Python<'_>, kind: &str) -> PyErr {
    input(py, &format!("positions are \"listed\", \"paired\" or \"masked\", not {kind:?}"))
}
