//! Roughly how many different values there are: a HyperLogLog sketch per group.
//!
//! Flajolet, Fusy, Gandouet and Meunier, "HyperLogLog: the analysis of a near-optimal cardinality estimation algorithm" (2007), as
//! Apache DataSketches has it. The composite estimate depends on the registers alone, so that it is the same for every split of
//! the rows; the other one of that library depends on the order in which values came.

use super::super::words::{NanPlace, words_into};
use super::input::{Input, Rows, State, for_each_valid, strange, words_column};
use crate::base::{AlignedBuf, Error, Result};
use crate::schema::{Datatype, Sorting};
use crate::tile::{Column, ColumnView};
use datasketches::hll::{HllSketch, HllType, HllUnion};

/// The base-2 logarithm of the number of registers: the standard error is 1.04 / sqrt(4,096), 1.6 %.
const LOG_REGISTERS: u8 = 12;

/// A sketch per group.
#[derive(Debug)]
pub(in crate::query) struct Sketches {
    datatype: Datatype,
    sketches: Vec<HllUnion>,
    bytes: usize,
}

impl Sketches {
    /// A state over values of a type.
    ///
    /// # Errors
    /// Input: values of this type are not told apart.
    pub(in crate::query) fn new(datatype: Datatype, text: &str) -> Result<Self> {
        match datatype.sorting() {
            Sorting::None => Err(Error::input(format!("{text}: values of {datatype} have no order"))),
            _ => Ok(Self { datatype, sketches: Vec::new(), bytes: 0 }),
        }
    }

    /// Changes the sketch of a group.
    fn change(&mut self, group: usize, change: impl FnOnce(&mut HllUnion)) {
        if let Some(sketch) = self.sketches.get_mut(group) {
            self.bytes -= sketch.estimated_size();
            change(sketch);
            self.bytes += sketch.estimated_size();
        }
    }
}

impl State for Sketches {
    fn fresh(&self) -> Box<dyn State> {
        Box::new(Self { datatype: self.datatype, sketches: Vec::new(), bytes: 0 })
    }

    fn grow(&mut self, groups: usize) {
        while self.sketches.len() < groups {
            // The number of registers is one that is known to be taken.
            let Ok(sketch) = HllUnion::new(LOG_REGISTERS) else { return };
            self.bytes += sketch.estimated_size();
            self.sketches.push(sketch);
        }
    }

    fn update(&mut self, rows: Rows<'_>, input: &Input<'_>) -> Result<()> {
        let view = input.values()?;
        if self.datatype.sorting() == Sorting::Bytes {
            for_each_valid(rows, view.validity(), |row, group| {
                self.change(group, |sketch| sketch.update_value(view.value(row)));
            });
            return Ok(());
        }
        let mut words = Vec::with_capacity(view.len());
        words_into(view, NanPlace::Last, &mut words);
        for_each_valid(rows, view.validity(), |row, group| {
            if let Some(word) = words.get(row) {
                self.change(group, |sketch| sketch.update_value(word));
            }
        });
        Ok(())
    }

    fn absorb(&mut self, groups: &[u32], fields: &[ColumnView<'_>]) -> Result<()> {
        let view = fields.first().filter(|view| view.datatype() == Datatype::Bytes).ok_or_else(strange)?;
        for (row, group) in groups.iter().enumerate() {
            let sketch = HllSketch::deserialize(view.value(row)).map_err(|e| strange().with_source(e))?;
            if sketch.lg_config_k() != LOG_REGISTERS {
                return Err(strange());
            }
            self.change(*group as usize, |own| own.update(&sketch));
        }
        Ok(())
    }

    fn kinds(&self) -> Vec<(String, Datatype)> {
        vec![("sketch".to_owned(), Datatype::Bytes)]
    }

    fn fields(&self, groups: &[u32]) -> Result<Vec<Column>> {
        let (mut bytes, mut offsets) = (Vec::new(), vec![0u64]);
        for group in groups {
            let sketch = self.sketches.get(*group as usize).ok_or_else(strange)?;
            bytes.extend_from_slice(&sketch.to_sketch(HllType::Hll8).serialize());
            offsets.push(bytes.len() as u64);
        }
        Ok(vec![Column::new(Datatype::Bytes, AlignedBuf::from_slice(&bytes), Some(offsets), None)?])
    }

    fn finish(&self, groups: &[u32]) -> Result<Column> {
        let estimate = |group: &u32| {
            let sketch = self.sketches.get(*group as usize);
            sketch.map_or(0, |sketch| sketch.composite_estimate().round() as u64)
        };
        words_column(Datatype::Int64, groups.iter().map(estimate))
    }

    fn size_bytes(&self) -> u64 {
        self.bytes as u64
    }
}
