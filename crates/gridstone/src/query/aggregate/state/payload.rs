//! A value per group, of any type, or none.

use crate::base::{AlignedBuf, Result};
use crate::schema::Datatype;
use crate::tile::Column;

/// Values as bytes.
#[derive(Debug)]
pub(super) struct Payload {
    datatype: Datatype,
    known: Vec<bool>,
    /// Values of fixed width, side by side.
    fixed: Vec<u8>,
    /// Values that vary in length.
    varied: Vec<Box<[u8]>>,
    varied_bytes: u64,
}

impl Payload {
    pub(super) fn new(datatype: Datatype) -> Self {
        Self { datatype, known: Vec::new(), fixed: Vec::new(), varied: Vec::new(), varied_bytes: 0 }
    }

    pub(super) fn datatype(&self) -> Datatype {
        self.datatype
    }

    pub(super) fn grow(&mut self, groups: usize) {
        self.known.resize(groups, false);
        match self.datatype.width() {
            Some(width) => self.fixed.resize(groups * width, 0),
            None => self.varied.resize(groups, Box::default()),
        }
    }

    pub(super) fn is_known(&self, group: usize) -> bool {
        self.known.get(group).copied().unwrap_or(false)
    }

    pub(super) fn get(&self, group: usize) -> Option<&[u8]> {
        let value = match self.datatype.width() {
            Some(width) => self.fixed.get(group * width..(group + 1) * width),
            None => self.varied.get(group).map(AsRef::as_ref),
        };
        value.filter(|_| self.is_known(group))
    }

    pub(super) fn set(&mut self, group: usize, value: &[u8]) {
        match self.datatype.width() {
            Some(width) => {
                if let Some(slot) = self.fixed.get_mut(group * width..(group + 1) * width)
                    && slot.len() == value.len()
                {
                    slot.copy_from_slice(value);
                }
            }
            None => {
                if let Some(slot) = self.varied.get_mut(group) {
                    self.varied_bytes += value.len() as u64;
                    self.varied_bytes -= slot.len() as u64;
                    *slot = value.into();
                }
            }
        }
        self.known.get_mut(group).into_iter().for_each(|known| *known = true);
    }

    /// The values of groups; null where there is none.
    pub(super) fn column(&self, groups: &[u32]) -> Result<Column> {
        let (mut bytes, mut valid) = (Vec::new(), Vec::with_capacity(groups.len()));
        let mut offsets = self.datatype.is_var().then(|| vec![0u64]);
        let blank = vec![0; self.datatype.width().unwrap_or(0)];
        for group in groups {
            let value = self.get(*group as usize);
            valid.push(u8::from(value.is_some()));
            bytes.extend_from_slice(value.unwrap_or(&blank));
            offsets.iter_mut().for_each(|offsets| offsets.push(bytes.len() as u64));
        }
        let validity = valid.contains(&0).then_some(valid);
        Column::new(self.datatype, AlignedBuf::from_slice(&bytes), offsets, validity)
    }

    pub(super) fn size_bytes(&self) -> u64 {
        (self.known.capacity() + self.fixed.capacity() + self.varied.capacity() * 16) as u64 + self.varied_bytes
    }
}
